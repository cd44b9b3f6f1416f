//! What identifies partitions, machines and adapters, with its lines.

use planner::capture::{Captures, Identifies};

use super::{assert_whole, only, read, read_bytes, value};

/// Every identifier: what, value, device, line.
fn all(captures: &Captures) -> Vec<(Identifies, String, Option<String>, u32)> {
    captures
        .reports
        .iter()
        .flat_map(planner::capture::Report::identifiers)
        .map(|found| (found.what, found.value, found.device, found.at.line))
        .collect()
}

#[track_caller]
fn has(captures: &Captures, what: Identifies, value: &str, device: Option<&str>, line: u32) {
    let wanted = (what, value.to_owned(), device.map(str::to_owned), line);
    let all = all(captures);
    assert!(all.contains(&wanted), "{wanted:?} in {all:?}");
}

#[test]
fn uname_and_hostname() {
    let captures = read_bytes(
        b"# uname -a\nAIX payroll1 3 7 00F78A1B4C00\n# uname -L\n5 payroll\n# hostname; uname -Mu\npayroll1\n# uname -M\nIBM,9009-42A\n# uname -u\nIBM,0278A1B2C\n# fcstat fcs0\n",
    );
    has(&captures, Identifies::HostName, "payroll1", None, 2);
    has(&captures, Identifies::MachineId, "00F78A1B4C00", None, 2);
    has(&captures, Identifies::PartitionName, "payroll", None, 4);
    has(&captures, Identifies::PartitionId, "5", None, 4);
    has(&captures, Identifies::HostName, "payroll1", None, 6);
    has(&captures, Identifies::MachineSerial, "78A1B2C", None, 10);
    let about: Vec<_> = captures.hosts().map(|host| &host.about).collect();
    assert_eq!(value(&about[0].version), "7.3");
    assert_eq!(
        about.iter().find_map(|about| about.machine_model.as_ref()).map(|m| m.value.as_str()),
        Some("9009-42A")
    );
    assert_eq!(captures.unread, []);
}

/// Several letters at once print one line, whose words are known by their form.
#[test]
fn uname_with_several_letters() {
    for (letters, printed) in [
        ("-uM", "IBM,9009-42A IBM,0278A1B2C"),
        ("-Mu", "IBM,0278A1B2C IBM,9009-42A"),
        ("-n -u", "vios7 IBM,0278A1B2C"),
        ("-nMu", "vios7 IBM,9009-42A IBM,0278A1B2C"),
    ] {
        let captures = read_bytes(format!("# uname {letters}\n{printed}\n").as_bytes());
        has(&captures, Identifies::MachineSerial, "78A1B2C", None, 2);
        if letters.contains('n') {
            has(&captures, Identifies::HostName, "vios7", None, 2);
        }
        assert_eq!(captures.unread, [], "{letters}");
    }
    // A word too many belongs to something else.
    let captures = read_bytes(b"# uname -nu\nvios7 is IBM,0278A1B2C\n");
    assert_eq!(captures.hosts().count(), 0);
}

#[test]
fn a_host_that_was_asked_names_what_follows() {
    let captures = read_bytes(b"$ uname -n\nvios7\n$ lsattr -El fcs0\na 1 A True\nb 2 B True\n");
    assert_eq!(value(&only(captures.lsattrs()).head.partition), "vios7");
    let captures =
        read_bytes(b"$ uname -L\n5 payroll\n$ lsattr -El fcs0\na 1 A True\nb 2 B True\n");
    assert_eq!(value(&only(captures.lsattrs()).head.partition), "payroll");
    // Two commands on one line, in their order.
    let captures = read_bytes(
        b"$ hostname; uname -L\nvios7\n1 vios7lpar\n$ lsattr -El fcs0\na 1 A True\nb 2 B True\n",
    );
    assert_eq!(value(&only(captures.lsattrs()).head.partition), "vios7");
    assert_eq!(captures.hosts().count(), 2);
}

#[test]
fn prtconf_names_machine_and_partition() {
    let captures = read("prtconf");
    assert_whole(&captures);
    let report = only(captures.hosts());
    assert_eq!(value(&report.head.partition), "payroll1");
    let about = &report.about;
    assert_eq!((value(&about.partition_id), value(&about.partition_name).as_str()), (5, "payroll"));
    assert_eq!(
        (value(&about.processors), value(&about.clock_mhz), value(&about.memory_mb)),
        (8, 3000, 65_536)
    );
    assert_eq!(value(&about.firmware), "VL950_092");
    has(&captures, Identifies::MachineSerial, "78A1B2C", None, 3);
}

#[test]
fn adapters_by_vital_product_data() {
    let captures = read("lscfg");
    assert_whole(&captures);
    let report = only(captures.lscfgs());
    let device = only(report.devices.iter());
    assert_eq!((device.name.as_str(), device.at.line), ("fcs0", 2));
    assert_eq!(device.description, "PCIe3 4-Port 16Gb FC Adapter (df1000e314101406)");
    assert_eq!(device.field("Device Specific (ZM)").map(|f| f.value.as_str()), Some("3"));
    has(&captures, Identifies::Wwpn, "100000109b4c71d2", Some("fcs0"), 10);
    has(&captures, Identifies::Serial, "Y050HY74A018", Some("fcs0"), 5);
    has(&captures, Identifies::Location, "U78D3.001.WZS0ABC-P1-C4-T1", Some("fcs0"), 2);
    // Without the command.
    let text = super::fixture("lscfg");
    let start = text.iter().position(|byte| *byte == b'\n').expect("lines");
    assert_eq!(only(read_bytes(&text[start + 1..]).lscfgs()).devices.len(), 1);
}

#[test]
fn every_reader_gives_what_identifies() {
    let captures = read("fcstat-physical");
    has(&captures, Identifies::Wwpn, "100000109b4c71d2", Some("fcs2"), 11);
    let captures = read("lsmap-npiv");
    has(&captures, Identifies::Location, "U9009.42A.78A1B2C-V5-C20", Some("fcs0"), 10);
    let captures = read("entstat-sea");
    has(&captures, Identifies::Mac, "98be94112233", Some("ent0"), 121);
    let captures = read("fcstat-client");
    has(&captures, Identifies::Wwpn, "c05076071a2b0010", Some("fcs0"), 5);
    let captures = read("errpt-a");
    has(&captures, Identifies::MachineId, "00F78A1B4C00", None, 8);
    let captures = read("lssyscfg-F");
    has(&captures, Identifies::PartitionName, "payroll", None, 3);
    let captures = read("lparstat-i");
    assert!(all(&captures).iter().any(|found| found.0 == Identifies::PartitionId));
}

#[test]
fn what_is_masked_is_marked() {
    let text = String::from_utf8(super::fixture("lscfg")).expect("UTF-8");
    let captures = read_bytes(text.replace("100000109B4C71D2", "10000010XXXXXXXX").as_bytes());
    let report = only(captures.lscfgs());
    assert_eq!(report.head.masked.len(), 1);
    let masked: Vec<_> =
        captures.reports[0].identifiers().into_iter().filter(|found| found.masked).collect();
    assert_eq!(masked.len(), 1, "{masked:?}");
    assert_eq!(masked[0].what, Identifies::Wwpn);
}

fn partitions(text: &str) -> Vec<String> {
    let captures = read_bytes(text.as_bytes());
    let name = |report: &planner::capture::Report| {
        report.head().partition.as_ref().map_or("-", |read| &read.value).to_owned()
    };
    captures.reports.iter().map(name).collect()
}

#[test]
fn what_several_hosts_printed_alike_is_of_each() {
    let rule = "-".repeat(79);
    let bar = format!("HOSTS {}", "-".repeat(73));
    let text = format!(
        "mgmt:/ # xdsh app1,app2,app3 lspath | dshbak -c\n{bar}\napp1, app2\n{rule}\n\
         Enabled hdisk0 vscsi0\nEnabled hdisk0 vscsi1\n\n{bar}\napp3\n{rule}\n\
         Enabled hdisk0 vscsi0\nFailed  hdisk0 vscsi1\n\nmgmt:/ # lspath\nEnabled hdisk0 vscsi0\n"
    );
    assert_eq!(partitions(&text), ["app1", "app2", "app3", "mgmt"]);
}

#[test]
fn a_host_that_is_underlined_printed_what_follows() {
    let of = |host: &str| {
        let rule = "-".repeat(6 + host.len());
        format!("HOST: {host}\n{rule}\nhcheck_interval 60 Health Check Interval True+\n\n")
    };
    let text = format!(
        "nim01:/ # dsh -n a,app2 lsattr -El hdisk1 | dshbak\n{}{}nim01:/ # lspath\nEnabled hdisk0 vscsi0\n",
        of("a"),
        of("app2")
    );
    assert_eq!(partitions(&text), ["a", "app2", "nim01"]);
}

#[test]
fn a_prompt_of_two_lines_ends_a_list_of_names_and_values() {
    let text = "(0) root @ vios1: /\n# lparstat -i\nNode Name      : vios1\nPartition Number : 1\n\
                (0) root @ vios2: /\n# ioslevel\n4.1.0.21\n";
    assert_eq!(partitions(text), ["vios1", "vios2"]);
}
