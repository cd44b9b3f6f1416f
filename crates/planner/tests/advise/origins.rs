//! What is told by its cause and not by what it looks like, and what shows beside its twin.

use super::{PHYSICAL, Port, advice, lsattr, lsdev, npiv, silent, top};
use planner::advise::Severity;

/// Two adapters of a client, of which the second is not logged in.
fn half() -> String {
    npiv(
        "vioa",
        &[("vfchost1", 7, "db7", "fcs0", "fcs0", 3), ("vfchost2", 7, "db7", "fcs1", "fcs1", 0)],
    )
}

#[test]
fn a_login_that_fails_for_its_transfer_size_is_told_by_that() {
    let ports = lsdev("vioa", "fcs0", &[("max_xfer_size", "0x100000")])
        + &lsdev("vioa", "fcs1", &[("max_xfer_size", "0x100000")]);
    let client = |size: &str| {
        lsattr("db7", "fcs0", &[("max_xfer_size", "0x100000")])
            + &lsattr("db7", "fcs1", &[("max_xfer_size", size)])
    };
    let files = |size: &str| [half(), ports.clone(), client(size)];
    let told = files("0x200000");
    let told: Vec<(&str, &str)> =
        ["a", "b", "c"].into_iter().zip(told.iter().map(String::as_str)).collect();
    let finding = top(&told, "fc-max-xfer-mismatch");
    assert_eq!((finding.object.as_str(), finding.severity), ("fcs1 on db7", Severity::Critical));
    assert!(finding.reasoning.iter().any(|why| why.contains("one WWPN of db7 is not logged in")));
    assert!(advice(&told).findings.iter().all(|one| one.rule != "fc-wwpn-second-missing"));
    // Where the sizes fit, the login is what there is to tell.
    let fits = files("0x100000");
    let fits: Vec<(&str, &str)> =
        ["a", "b", "c"].into_iter().zip(fits.iter().map(String::as_str)).collect();
    top(&fits, "fc-wwpn-second-missing");
}

#[test]
fn a_login_that_fails_for_want_of_ports_is_told_by_the_port() {
    let list = |free: u32| {
        format!(
            "vioa:/home/padmin> lsnports\nname             physloc                        fabric tports aports swwpns  awwpns\nfcs0             U78D3.001.WZS0ABC-P1-C4-T1          1     64     30   2048    1940\nfcs1             U78D3.001.WZS0ABC-P1-C4-T1          1     64     {free}   2048    1920\n"
        )
    };
    let finding = top(&[("a", &half()), ("b", &list(0))], "npiv-ports-full");
    assert_eq!((finding.object.as_str(), finding.severity), ("fcs1 on vioa", Severity::Critical));
    top(&[("a", &half()), ("b", &list(3))], "fc-wwpn-second-missing");
}

/// A 10 Gbit/s port of a VIOS that runs at this speed.
fn wire(host: &str, name: &str, speed: &str) -> String {
    format!(
        "padmin@{host}:/home/padmin$ ioslevel
3.1.4.21
padmin@{host}:/home/padmin$ entstat -d {name}
-------------------------------------------------------------
ETHERNET STATISTICS ({name}) :
Device Type: PCIe3 4-Port 10GbE SR Adapter (df1020e21410e304)
Hardware Address: 00:90:fa:7c:11:2{}
Elapsed Time: 61 days 2 hours 44 minutes 9 seconds

Transmit Statistics:                          Receive Statistics:
--------------------                          -------------------
Packets: 40210433                             Packets: 51209901
Bytes: 22210443112                            Bytes: 61210440000

PCIe3 4-Port 10GbE SR Adapter (df1020e21410e304) Specific Statistics:
---------------------------------------------------------------------
Link Status: Up
Media Speed Selected: Auto negotiation
Media Speed Running: {speed} Full Duplex
",
        &host[host.len() - 1..],
    )
}

#[test]
fn a_port_that_is_slower_than_the_same_one_of_the_other_vios() {
    let files = |host: &str, name: &str, speed: &str| {
        [wire("wroc-vio1", "ent4", "10 Gbps"), wire(host, name, speed)].concat()
    };
    let finding = top(&[("a", &files("wroc-vio2", "ent4", "1000 Mbps"))], "net-speed");
    assert_eq!(finding.title, "ent4 runs at 1,000 Mbit/s where ent4 on wroc-vio1 runs at 10,000");
    // Another port, or one of a VIOS that is none of a pair, may be for something else.
    silent(&[("a", &files("wroc-vio2", "ent5", "1000 Mbps"))]);
    silent(&[("a", &files("gdan-vio2", "ent4", "1000 Mbps"))]);
}

/// Waits are told from a share on, and many of them from a smaller one.
#[test]
fn thousands_of_waits_in_a_night_are_told() {
    let sizes =
        lsattr("viosa1", "fcs0", &[("max_xfer_size", "0x100000"), ("num_cmd_elems", "2048")]);
    let night = |waits: u64| {
        let first = Port { no_dma: 66_120, ..PHYSICAL };
        let last = Port { no_dma: 66_120 + waits, ..first.later(7200, 29_000_000) };
        [first.text(), last.text(), sizes.clone()].concat()
    };
    top(&[("a", &night(4700))], "fc-dma-resource");
    // Some hundreds, and as many in ten times the requests.
    silent(&[("a", &night(700))]);
    let first = Port { no_dma: 66_120, ..PHYSICAL };
    let last = Port { no_dma: 70_820, ..first.later(72_000, 290_000_000) };
    silent(&[("a", &[first.text(), last.text(), sizes].concat())]);
}

/// A virtual Ethernet adapter after so many days: what it lost, and how many buffers it had at most.
fn receiver(days: u32, lost: u64, most: u32) -> String {
    let packets = 8_000_000_000_u64 + u64::from(days) * 900_000_000;
    format!(
        "root@bkp3:/ # entstat -d ent0
-------------------------------------------------------------
ETHERNET STATISTICS (ent0) :
Device Type: Virtual I/O Ethernet Adapter (l-lan)
Hardware Address: fa:aa:bb:cc:dd:20
Elapsed Time: {days} days 2 hours 4 minutes 10 seconds

Transmit Statistics:                          Receive Statistics:
--------------------                          -------------------
Packets: 8101221210                           Packets: {packets}
Bytes: 22210443112                            Bytes: 61210440000

Virtual I/O Ethernet Adapter (l-lan) Specific Statistics:
---------------------------------------------------------
RQ Length: 4481
Trunk Adapter: False
LAN State: Operational

Hypervisor Send Failures: 0
  Receiver Failures: 0
  Send Errors: 0
Hypervisor Receive Failures: {lost}

Receive Information
  Receive Buffers
    Buffer Type             Tiny    Small   Medium    Large     Huge
    Min Buffers              512      512      128       24       24
    Max Buffers             2048     2048      256       64       64
    Allocated                512      512      128       24       24
    Registered               512      512      128       24       24
    History
      Max Allocated          512     {most}      200       30       24
      Lowest Registered      502      320       60       12       12
"
    )
}

#[test]
fn packets_that_are_lost_while_all_buffers_are_in_use() {
    let text =
        |lost: u64, most: u32| receiver(11, 48_812, most) + &receiver(12, 48_812 + lost, most);
    let finding = top(&[("a", &text(48_000, 2048))], "net-virtual-buffers");
    assert_eq!(finding.object, "ent0 on bkp3");
    // As many where buffers were left, and a few.
    silent(&[("a", &text(48_000, 900))]);
    silent(&[("a", &text(800, 2048))]);
}

#[test]
fn paths_that_an_adapter_could_not_configure_are_told_by_its_transfer_size() {
    let maps = npiv("vioa", &[("vfchost1", 7, "db7", "fcs0", "fcs0", 3)]);
    let port = lsdev("vioa", "fcs0", &[("max_xfer_size", "0x100000")]);
    let client = lsattr("db7", "fcs0", &[("max_xfer_size", "0x400000")]);
    let paths = |state: &str| {
        format!(
            "db7:/> lspath\nEnabled hdisk0 vscsi0\nEnabled hdisk0 vscsi1\n{state} hdisk1 fscsi0\n{state} hdisk2 fscsi0\ndb7:/>\n"
        )
    };
    let missing = [maps.clone(), port.clone(), client.clone() + &paths("Missing")];
    let missing: Vec<(&str, &str)> =
        ["a", "b", "c"].into_iter().zip(missing.iter().map(String::as_str)).collect();
    top(&missing, "fc-max-xfer-mismatch");
    assert!(advice(&missing).findings.iter().all(|one| one.rule != "disk-paths-failed"));
    // Paths that fail were configured.
    let failed = [maps, port, client + &paths("Failed")];
    let failed: Vec<(&str, &str)> =
        ["a", "b", "c"].into_iter().zip(failed.iter().map(String::as_str)).collect();
    assert!(advice(&failed).findings.iter().any(|one| one.rule == "disk-paths-failed"));
}

#[test]
fn a_port_that_has_less_than_its_sister_is_told_of_fewer_waits() {
    let port = |device: &'static str, waits: [u64; 2], size: &str| {
        let first = Port { device, no_dma: waits[0], ..PHYSICAL };
        let last = Port { no_dma: waits[1], ..first.later(86_400, 130_000_000) };
        [first.text(), last.text(), lsattr("viosa1", device, &[("max_xfer_size", size)])].concat()
    };
    let own = port("fcs1", [11_000, 18_000], "0x100000");
    let finding =
        top(&[("a", &(own.clone() + &port("fcs0", [0, 0], "0x200000")))], "fc-dma-resource");
    assert_eq!(finding.object, "fcs1 on viosa1");
    // A sister that has no more, or waits as well, shows nothing.
    silent(&[("a", &(own.clone() + &port("fcs0", [0, 0], "0x100000")))]);
    silent(&[("a", &(own + &port("fcs0", [11_000, 18_000], "0x200000")))]);
}

#[test]
fn a_disk_that_uses_one_path_beside_one_that_uses_all() {
    let disk = |name: &str, algorithm: &str, policy: &str| {
        lsattr(
            "db7",
            name,
            &[
                ("PCM", "PCM/friend/fcpother"),
                ("algorithm", algorithm),
                ("reserve_policy", policy),
                ("node_name", "0x5005076810000abc"),
            ],
        )
    };
    let paths = "db7:/> lspath\nEnabled hdisk4 fscsi0\nEnabled hdisk4 fscsi1\nEnabled hdisk5 fscsi0\nEnabled hdisk5 fscsi1\ndb7:/>\n";
    let text = |one: &str, policy: &str, two: &str| {
        [disk("hdisk4", one, policy), disk("hdisk5", two, "no_reserve"), paths.to_owned()].concat()
    };
    let finding =
        top(&[("a", &text("fail_over", "no_reserve", "shortest_queue"))], "disk-algorithm");
    assert_eq!(finding.object, "hdisk4 on db7");
    assert!(finding.command.unwrap().contains("-a algorithm=shortest_queue"));
    silent(&[("a", &text("fail_over", "no_reserve", "fail_over"))]);
    silent(&[("a", &text("fail_over", "single_path", "shortest_queue"))]);
    let one_way = text("fail_over", "no_reserve", "shortest_queue").replace("fscsi1", "fscsi0");
    silent(&[("a", &one_way)]);
}
