//! `lparstat`, `oslevel`.

use planner::capture::System;

use super::{assert_whole, at, only, read, value};

#[test]
fn intervals_of_a_shared_partition() {
    let captures = read("lparstat");
    assert_whole(&captures);
    let report = only(captures.lparstats());
    assert_eq!(
        (value(&report.kind).as_str(), value(&report.mode).as_str(), value(&report.smt).as_str()),
        ("Shared", "Uncapped", "8")
    );
    assert_eq!(
        (value(&report.lcpu), value(&report.memory_mb), value(&report.pool_size)),
        (16, 16_384, 24)
    );
    assert_eq!(at(&report.entitlement), (1.5, 3));
    assert_eq!(report.samples.len(), 3);
    let sample = &report.samples[1];
    let all = [
        &sample.user,
        &sample.system,
        &sample.wait,
        &sample.idle,
        &sample.physical,
        &sample.entitlement_percent,
        &sample.logical_busy,
        &sample.pool_free,
        &sample.context_switches,
        &sample.phantom_interrupts,
    ];
    assert_eq!(all.map(value), [4.0, 45.0, 0.0, 51.0, 1.62, 108.0, 14.0, 10.9, 6100.0, 2.0]);
    assert_eq!(at(&sample.physical).1, 8);
}

/// `-t` puts the time of day behind each row.
#[test]
fn rows_with_the_time_are_rows() {
    let text = "aix5:/> lparstat -t 5 2

System configuration: type=Shared mode=Capped smt=4 lcpu=8 mem=4096MB psize=16 ent=1.00

%user  %sys  %wait  %idle physc %entc  lbusy   app  vcsw phint  %nsp   time
----- ----- ------ ------ ----- ----- ------   --- ----- ----- -----   --------
 41.0  12.5    0.3   46.2  0.58  58.0   21.0  9.12   810     1   100   09:10:05
 44.0  10.5    0.1   45.4  0.60  60.0   22.0  9.10   790     0   100   09:10:10
";
    let mut captures = planner::capture::Captures::new();
    captures.read("a.txt", text.as_bytes(), None);
    assert_whole(&captures);
    let report = only(captures.lparstats());
    let used: Vec<f64> = report.samples.iter().map(|sample| value(&sample.physical)).collect();
    assert_eq!(used, [0.58, 0.6]);
}

#[test]
fn a_dedicated_partition_has_fewer_columns() {
    let captures = read("lparstat-dedicated");
    assert_whole(&captures);
    let report = only(captures.lparstats());
    assert_eq!((report.entitlement, report.pool_size), (None, None));
    let sample = &report.samples[0];
    assert_eq!(
        (value(&sample.idle), sample.physical, sample.entitlement_percent),
        (68.0, None, None)
    );
}

#[test]
fn the_configuration_names_the_partition() {
    let captures = read("lparstat-i");
    assert_whole(&captures);
    let report = only(captures.lparstats());
    assert_eq!(at(&report.head.partition), ("viosa1".to_owned(), 1));
    assert_eq!(
        (value(&report.partition_name).as_str(), value(&report.partition_number)),
        ("p9-viosa1", 1)
    );
    assert_eq!(
        (value(&report.kind).as_str(), value(&report.mode).as_str()),
        ("Shared-SMT-8", "Uncapped")
    );
    assert_eq!(
        (value(&report.entitlement), value(&report.virtual_cpus), value(&report.virtual_cpus_max)),
        (1.5, 2, 6)
    );
    assert_eq!((value(&report.memory_mb), value(&report.weight)), (16_384, 255));
    assert_eq!(report.info.len(), 17);
    assert_eq!(
        (report.info[14].name.as_ref(), report.info[14].value.as_str()),
        ("Physical CPU Percentage", "75.00%")
    );
}

#[test]
fn hypervisor_calls() {
    let captures = read("lparstat-H");
    assert_whole(&captures);
    let report = only(captures.lparstats());
    let copy = report.hypervisor.iter().find(|call| call.name == "copy_rdma").expect("listed");
    assert_eq!((copy.calls, copy.total_percent, copy.hypervisor_percent), (9006, 1.4, 13.0));
    assert_eq!((copy.average_ns, copy.max_ns, copy.at.line), (2950, 77_005, 12));
    assert_eq!(report.hypervisor.len(), 3);
}

#[test]
fn levels() {
    let captures = read("level");
    assert_eq!(captures.unread, []);
    let report = only(captures.levels());
    assert_eq!(
        (report.system, report.level.value.as_str(), report.level.at.line),
        (System::Aix, "7300-02-01-2346", 2)
    );
    assert_eq!(value(&report.head.partition), "payroll");
}

#[test]
fn paging_spaces() {
    let captures = read("lsps");
    assert_whole(&captures);
    let list = only(captures.lspss());
    let rows: Vec<_> = list
        .spaces
        .iter()
        .map(|space| (space.name.as_str(), space.size_mb, space.used_percent, space.at.line))
        .collect();
    assert_eq!(rows, [("paging00", 2048, 91, 3), ("hd6", 1024, 74, 4)]);
    let captures =
        super::read_bytes(b"Total Paging Space   Percent Used\n      3072MB               85%\n");
    assert_whole(&captures);
    let sum = &only(captures.lspss()).spaces[0];
    assert_eq!((sum.name.as_str(), sum.size_mb, sum.used_percent), ("", 3072, 85));
}

#[test]
fn for_how_long_it_runs() {
    for (line, seconds) in [
        ("  02:15PM   up 41 days,  3:22,  2 users,  load average: 1.23, 1.10, 1.05", 3_554_520),
        ("  09:01AM   up 12 mins,  1 user,  load average: 0.40, 0.30, 0.10", 720),
        ("  09:01AM   up 3 hrs,  1 user,  load average: 0.40, 0.30, 0.10", 10_800),
        (" 14:15:09 up 1 day,  5:00,  0 users,  load average: 0.00, 0.01, 0.05", 104_400),
    ] {
        for text in [format!("vios1:/> uptime\n{line}\n"), format!("{line}\n")] {
            let captures = super::read_bytes(text.as_bytes());
            assert_whole(&captures);
            let host = only(captures.hosts());
            assert_eq!(value(&host.about.up_seconds), seconds, "{text}");
        }
    }
}

#[test]
fn the_xml_of_ibms_advisor() {
    // Composed: no public copy of such a file was found.
    let text = super::fixture("part");
    let captures = super::read_bytes(&text);
    assert_whole(&captures);
    let report = only(captures.parts());
    assert_eq!(value(&report.head.partition), "viosa1");
    let of = |index: usize| &report.advices[index];
    assert_eq!(report.advices.len(), 2);
    assert_eq!((of(0).about.as_str(), of(0).device.as_deref()), ("cpu/cpu_entitlement", None));
    assert_eq!(
        (value(&of(0).value), at(&Some(of(0).suggested.clone()))),
        ("1.5".into(), (">= 2.0".into(), 9))
    );
    assert_eq!((value(&of(0).risk), value(&of(0).impact)), ("3".into(), "4".into()));
    assert_eq!(
        (of(1).about.as_str(), of(1).device.as_deref()),
        ("disk/queue_depth", Some("hdisk4"))
    );
    assert_eq!(of(1).at.line, 13);
    // Cut off, and what is no XML: nothing is lost, and it is said.
    let captures = super::read_bytes(&text[..text.len() - 30]);
    assert!(
        only(captures.parts())
            .head
            .incomplete
            .as_ref()
            .is_some_and(|why| why.contains("end of the XML"))
    );
    let captures = super::read_bytes(b"<?xml version=\"1.0\"?>\n<note>hello</note>\n");
    assert!(captures.reports.is_empty());
}
