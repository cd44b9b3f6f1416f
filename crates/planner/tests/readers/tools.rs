//! What the tools print around reports, and names that tell one host from another.

use super::{assert_whole, fixture, only, read_bytes};
use planner::capture::Captures;
use planner::model::Model;

fn names(captures: &Captures) -> Vec<Option<String>> {
    Model::of(captures).systems.iter().map(|system| system.name().map(str::to_owned)).collect()
}

#[test]
fn what_snap_collects_has_its_commands() {
    let text = "\n\n.....\n.....    uname -a\n.....\n\nAIX snap1 2 7 00F625AD4C00\n\n\n.....\n.....    lsattr -El fscsi0\n.....\n\n\
        attach       switch       How this adapter is CONNECTED         False\n\
        dyntrk       no           Dynamic Tracking of FC Devices        True+\n\
        fc_err_recov delayed_fail FC Fabric Event Error RECOVERY Policy True+\n\n\n\
        .....\n.....    lsvg -o\n.....\n\nrootvg\n\n.....\n.....    lsattr -El inet0\n.....\n\n\
        authm         65536    Authentication Methods                  True\n\
        hostname      snap1    Host Name                               True\n";
    let captures = read_bytes(text.as_bytes());
    let devices: Vec<&str> = captures
        .lsattrs()
        .filter_map(|list| list.head.device.as_ref())
        .map(|read| read.value.as_str())
        .collect();
    assert_eq!(devices, ["fscsi0", "inet0"]);
    assert!(captures.reports.iter().all(|report| report.head().incomplete.is_none()));
    assert_eq!(names(&captures), [Some("snap1".to_owned())]);
    // `inet0` alone tells it, too.
    let at = text.find(".....\n.....    lsattr -El inet0").expect("it is there");
    assert_eq!(names(&read_bytes(&text.as_bytes()[at..])), [Some("snap1".to_owned())]);
}

#[test]
fn a_virtual_adapter_that_counts_nothing_of_a_link_is_whole() {
    let text = String::from_utf8(fixture("fcstat-virtual-D")).expect("UTF-8");
    let keys = [
        "LIP Count:",
        "NOS Count:",
        "Error Frames:",
        "Dumped Frames:",
        "Link Failure Count:",
        "Invalid CRC Count:",
    ];
    let lines = text.lines().map(|line| match line.split_once(':') {
        Some(("Frames" | "Words", _)) => {
            format!("{}: -1              -1", &line[..6].trim_end_matches(':'))
        }
        Some((key, _)) if keys.contains(&format!("{key}:").as_str()) => format!("{key}: -1"),
        _ => line.to_owned(),
    });
    let text: String = lines.map(|line| line + "\n").collect();
    assert!(text.matches("-1").count() >= 8, "{text}");
    let captures = read_bytes(text.as_bytes());
    let report = only(captures.fcstats());
    assert_whole(&captures);
    assert_eq!(
        (report.frames.transmitted, report.invalid_crcs, report.error_frames),
        (None, None, None)
    );
}

#[test]
fn the_name_next_to_the_path_is_the_hosts() {
    for (prompt, host) in [
        ("zviosl(/)# ", "zviosl"),
        ("root:phost:/ # ", "phost"),
        ("PROD phost:/> ", "phost"),
        ("phost:/> ", "phost"),
        ("root@phost:/home> ", "phost"),
    ] {
        let text = format!("{prompt}oslevel -s\n7200-05-06-2320\n");
        let captures = read_bytes(text.as_bytes());
        assert_eq!(names(&captures), [Some(host.to_owned())], "{prompt}");
    }
}

#[test]
fn hosts_of_two_domains_are_two() {
    let of = |names: &[&str]| {
        let mut captures = Captures::new();
        for (at, name) in names.iter().enumerate() {
            let text = format!("$ hostname\n{name}\n$ oslevel -s\n7200-05-06-2320\n");
            captures.read(&format!("{at}.txt"), text.as_bytes(), None);
        }
        Model::of(&captures).systems.len()
    };
    assert_eq!(of(&["db01.prod.example.com", "db01.test.example.com"]), 2);
    assert_eq!(of(&["db01.prod.example.com", "DB01"]), 1);
    assert_eq!(of(&["db01.prod.example.com", "db01.prod.example.com"]), 1);
}

#[test]
fn a_masked_serial_number_is_that_of_no_machine() {
    let map = |serial: &str| {
        format!(
            "$ lsmap -all\nSVSA            Physloc                                      Client Partition ID\n--------------- -------------------------------------------- ------------------\nvhost0          U8233.E8B.{serial}-V1-C10                     0x00000005\n\nVTD                   NO VIRTUAL TARGET DEVICE FOUND\n"
        )
    };
    let joined = |serial: &str| {
        let mut captures = Captures::new();
        for name in ["maskva", "maskvb"] {
            let text = map(serial).replace("$ ", &format!("{name}:/home/padmin> "));
            captures.read(
                name,
                text.replace("-V1-", if name == "maskva" { "-V1-" } else { "-V2-" }).as_bytes(),
                None,
            );
        }
        let model = Model::of(&captures);
        let named: Vec<_> = captures
            .lsmap_scsis()
            .flat_map(|list| &list.adapters)
            .map(|adapter| model.named_at(adapter.at))
            .collect();
        named[0].is_some() && named[0] == named[1]
    };
    assert!(joined("061ABCD"));
    for hidden in ["XXXXXXX", "06xxxxx", "0000000"] {
        assert!(!joined(hidden), "{hidden}");
    }
}

#[test]
fn a_text_out_of_the_source_of_a_page_is_read() {
    let text = String::from_utf8(fixture("lsmap-npiv")).expect("UTF-8");
    let text = text.replace("$ ", "viosa1:/home/padmin> ");
    let source = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (plain, source) = (read_bytes(text.as_bytes()), read_bytes(source.as_bytes()));
    assert_eq!(plain.reports, source.reports);
}

#[test]
fn a_text_in_capitals_is_said_to_be_one() {
    let text = String::from_utf8(fixture("lsattr")).expect("UTF-8");
    let said = |text: &str| {
        read_bytes(text.as_bytes()).files[0].notes.iter().any(|note| note.contains("in capitals"))
    };
    assert!(said(&text.to_uppercase()));
    assert!(!said(&text));
}

/// What a card's driver prints beyond what is used ends no report: the next adapter belongs to it.
#[test]
fn a_drivers_own_lines_do_not_end_a_report() {
    let adapter = |name: &str| {
        format!(
            "ETHERNET STATISTICS ({name}) :\nDevice Type: PCIe2 2-port 10GbE SR Adapter\nHardware Address: 00:90:fa:00:00:01\n\n\
             General Statistics:\n-------------------\nNo mbuf Errors: 0\nAdapter Reset Count: 0\n\n\
             PCIe2 2-port 10GbE SR Adapter (a21910071410d003) Specific Statistics:\n\
             --------------------------------------------------------------------\n\
             Link Status: Up\nMedia Speed Running: 10 Gbps Full Duplex\nPCI Mode: PCI-Express X8\n{}",
            (0..40).map(|queue| format!("Receive statistics for RXQ number: {queue}\n\tNumber of receive packets: 81107\n\tNumber of rx_limit events: 0\n")).collect::<String>()
        )
    };
    let text = format!("aix1:/> netstat -v\n{}{}", adapter("ent0"), adapter("ent1"));
    let captures = read_bytes(text.as_bytes());
    let report = only(captures.entstats());
    assert_eq!(report.adapters.len(), 2);
    assert_eq!((&captures.unread[..], &report.head.unread[..]), (&[][..], &[][..]));
}
