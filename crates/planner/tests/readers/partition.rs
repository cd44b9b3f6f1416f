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
        (report.info[14].name.as_str(), report.info[14].value.as_str()),
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
