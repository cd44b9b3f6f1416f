//! Lists of interfaces: what they lose, and frames that do not fit.

use super::{silent, top};
use planner::advise::Severity;

fn ip(minute: u8, packets: u64, dropped: u64, flags: &str) -> String {
    format!(
        "lx1:~ # date\nTue Mar 11 09:{minute:02}:22 UTC 2025\nlx1:~ # ip -s link show eth0\n2: eth0: <{flags}> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\n    link/ether fa:33:91:2b:0c:20 brd ff:ff:ff:ff:ff:ff\n    RX: bytes  packets  errors  dropped overrun mcast\n    912345678901 {packets} 0       {dropped}  0       100\n    TX: bytes  packets  errors  dropped carrier collsns\n    81234567890  712345678 0       0       0       0\n"
    )
}

const UP: &str = "BROADCAST,MULTICAST,UP,LOWER_UP";

#[test]
fn packets_that_an_interface_drops_now_are_told() {
    let (one, two) = (ip(15, 812_000_000, 9_912_345, UP), ip(16, 812_600_000, 9_952_345, UP));
    let finding = top(&[("a.txt", &format!("{one}{two}"))], "net-interface");
    assert_eq!(finding.object, "eth0 on lx1");
    // Old ones, and a few that are of protocols that nobody listens to.
    silent(&[("a.txt", &format!("{one}{}", ip(16, 812_600_000, 9_912_345, UP)))]);
    silent(&[("a.txt", &format!("{one}{}", ip(16, 812_600_000, 9_912_845, UP)))]);
    silent(&[("a.txt", &one)]);
}

#[test]
fn an_interface_that_was_used_and_has_no_carrier_is_told() {
    let gone = ip(15, 812_000_000, 0, "NO-CARRIER,BROADCAST,MULTICAST,UP");
    assert_eq!(top(&[("a.txt", &gone)], "net-interface").severity, Severity::Critical);
    silent(&[("a.txt", &ip(15, 0, 0, "NO-CARRIER,BROADCAST,MULTICAST,UP"))]);
    silent(&[("a.txt", &ip(15, 812_000_000, 0, "BROADCAST,MULTICAST"))]);
}

#[test]
fn buffers_of_a_virtual_adapter_of_linux_that_run_out_are_told() {
    let one = |minute: u8, lost: u64| {
        format!(
            "lx1:~ # date\nTue Mar 11 09:{minute:02}:22 UTC 2025\nlx1:~ # ethtool -S eth0\nNIC statistics:\n     replenish_no_mem: 0\n     rx_invalid_buffer: 0\n     rx_no_buffer: {lost}\n     tx_send_failed: 0\n     fw_enabled_ipv4_csum: 1\n"
        )
    };
    let finding = top(&[("a.txt", &(one(15, 112_345) + &one(20, 182_345)))], "net-interface");
    assert_eq!(finding.object, "eth0 on lx1");
    silent(&[("a.txt", &(one(15, 112_345) + &one(20, 112_345)))]);
}

fn netstat(host: &str, mtu: u32, network: &str) -> String {
    format!(
        "$$ {host} $$ netstat -in\nName   Mtu   Network     Address                 Ipkts     Ierrs        Opkts     Oerrs  Coll\nen0    {mtu}  link#2      fa.2b.c9.{}.57.b9      84637372         0    300552564         0     0\nen0    {mtu}  {network}     {network}.18             84637372         0    300552564         0     0\nlo0    16896 link#1                               527510         0       527510         0     0\n\n",
        mtu % 100
    )
}

#[test]
fn two_sizes_of_frames_in_one_network_do_not_fit_through_a_small_bridge() {
    let bridge = "(vios1) lsdev -dev ent5 -attr\nattribute     value     description   user_settable\n\njumbo_frames  no        Enable Gigabit Ethernet Jumbo Frames                True\npvid_adapter  ent3      Default virtual adapter to use                      True\nreal_adapter  ent0      Physical adapter associated with the SEA            True\nvirt_adapters ent3      List of virtual adapters                            True\n(vios1) ioslevel\n3.1.4.31\n";
    let files = |two: u32, network: &str| {
        [
            ("vios1.txt", bridge.to_owned()),
            ("a.txt", netstat("nfs1", 9000, "10.41.0")),
            ("b.txt", netstat("nfs2", two, network)),
        ]
    };
    let told = files(1500, "10.41.0");
    let told: Vec<(&str, &str)> = told.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let finding = top(&told, "sea-mtu");
    assert_eq!(finding.title, "en0 on nfs1 sends 9,000 byte frames, the bridge takes 1500");
    assert_eq!(finding.command, None);
    // Large in the whole network, which no bridge may be in; and another network.
    for (two, network) in [(9000, "10.41.0"), (1500, "10.42.0")] {
        let files = files(two, network);
        let files: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        silent(&files);
    }
}
