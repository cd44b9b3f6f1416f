//! Ethernet adapters: the switch at the other end, and duplex.

use super::{silent, timed, top};
use planner::advise::{Advice, advise};
use planner::facts::Facts;

/// A member of an aggregation as `entstat -all` prints it.
fn member(name: &str, partner: &str, sync: &str) -> String {
    let carries = if sync == "IN_SYNC" { "Enabled" } else { "Disabled" };
    let state = |of: &str, sync: &str, carries: &str| {
        format!(
            "{of} State: \n\tLACP activity: Active\n\tLACP timeout: Long\n\tAggregation: Aggregatable\n\tSynchronization: {sync}\n\tCollecting: {carries}\n\tDistributing: {carries}\n\tDefaulted: False\n\tExpired: False\n\n"
        )
    };
    format!(
        "-------------------------------------------------------------
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
Media Speed Running: 10 Gbps / 10 Gbps, Full Duplex

Aggregation status: Aggregated

LACPDU Interval: Long

Received LACPDUs: 176056
Transmitted LACPDUs: 176054

Actor System Priority: 0x8000
Actor System: 00-90-FA-7C-11-20
{}Partner System Priority: 0x7FA4
Partner System: {partner}
{}",
        &name[3..],
        state("Actor", sync, carries),
        state("Partner", sync, carries),
    )
}

fn aggregation(partners: [&str; 2], sync: &str) -> String {
    format!(
        "vios1:/home/padmin> entstat -all ent10
-------------------------------------------------------------
ETHERNET STATISTICS (ent10) :
Device Type: IEEE 802.3ad Link Aggregation
Hardware Address: 00:90:fa:7c:11:20

Statistics for every adapter in the IEEE 802.3ad Link Aggregation:
------------------------------------------------------------------
Number of adapters: 2
Operating mode: Standard mode (IEEE 802.3ad)

{}{}",
        member("ent0", partners[0], "IN_SYNC"),
        member("ent2", partners[1], sync)
    )
}

#[test]
fn a_member_at_another_switch_is_left_out_of_its_aggregation() {
    let apart = aggregation(["00-1C-73-A0-44-01", "00-1C-73-A0-51-77"], "OUT_OF_SYNC");
    let finding = top(&[("a.txt", &apart)], "net-lacp-partner");
    assert_eq!(finding.object, "ent2 on vios1");
    assert_eq!(finding.command, None);
    let said = finding.reasoning.join(" ");
    assert!(said.contains("00-1C-73-A0-44-01") && said.contains("00-1C-73-A0-51-77"), "{said}");
    // One switch, or one that is written in small letters.
    let one = aggregation(["00-1C-73-A0-44-0A", "00-1c-73-a0-44-0a"], "IN_SYNC");
    silent(&[("a.txt", &one)]);
}

fn port(speed: &str, selected: &str, late: u64) -> String {
    format!(
        "web1:/> entstat -d ent1
ETHERNET STATISTICS (ent1) :
Device Type: 2-Port 10/100/1000 Base-TX PCI-Express Adapter (14104003)
Hardware Address: 00:14:5e:99:2c:41
Elapsed Time: 20 days 12 hours 0 minutes 11 seconds

Transmit Statistics:                          Receive Statistics:
--------------------                          -------------------
Packets: 41501544                             Packets: 52401333
Bytes: 17015633040                            Bytes: 26200666500
Late Collision Errors: {late}                 Receive Collision Errors: 0

2-Port 10/100/1000 Base-TX PCI-Express Adapter (14104003) Specific Statistics:
------------------------------------------------------------------------------
Link Status: Up
Media Speed Selected: {selected}
Media Speed Running: {speed}
"
    )
}

#[test]
fn half_duplex_is_told_with_its_late_collisions() {
    let at = |late, seconds| (port("100 Mbps Half Duplex", "Auto negotiation", late), seconds);
    let ((one, early), (two, later)) = (at(81_022, 1000), at(84_410, 4600));
    let captures = timed(&[("a.txt", &one, early), ("b.txt", &two, later)]);
    let Advice { findings, .. } = advise(&captures, &Facts::builtin());
    assert_eq!(findings[0].rule, "net-speed", "{findings:?}");
    assert_eq!(findings[0].object, "ent1 on web1");
    assert!(findings[0].reasoning.iter().any(|why| why.contains("grew by 3,388")));
    assert!(findings[0].effect.contains("Have the switch port negotiate"));
    assert_eq!(findings[0].command, None);
    let told =
        top(&[("a.txt", &port("100 Mbps Half Duplex", "100 Mbps Half Duplex", 0))], "net-speed");
    assert!(told.effect.contains("look at media_speed"), "{}", told.effect);
    silent(&[("a.txt", &port("1000 Mbps Full Duplex", "Auto negotiation", 0))]);
}

/// A gigabit card that negotiates and arrives at less.
#[test]
fn a_gigabit_port_that_runs_at_a_tenth_is_told() {
    let port = |kind: &str, selected: &str, running: &str| {
        format!(
            "vios1:/home/padmin> entstat -d ent2\n{}",
            member("ent2", "00-00-00-00-00-01", "IN_SYNC")
                .replace("PCIe3 4-Port 10GbE SR Adapter (df1020e21410e304)", kind)
                .replace("Auto negotiation", selected)
                .replace("10 Gbps / 10 Gbps, Full Duplex", running)
        )
    };
    let gigabit = "Gigabit Ethernet PCIe Adapter (e4145716e4142004)";
    let of = |running: &str| port(gigabit, "Autonegotiation", running);
    let finding = top(&[("a.txt", &of("100 Mbps Full Duplex"))], "net-speed");
    assert_eq!(finding.title, "ent2 runs at 100 Mbit/s and can 1000");
    silent(&[("a.txt", &of("1000 Mbps Full Duplex"))]);
    // The last capture is of a few lines.
    let picked = "vios1:/home/padmin> entstat -d ent2 | grep -E 'Link|Media|Device Type|STAT'\nETHERNET STATISTICS (ent2) :\nDevice Type: Gigabit Ethernet PCIe Adapter (e4145716e4142004)\nLink Status: Up\nMedia Speed Selected: Autonegotiation\nMedia Speed Running: 100 Mbps Full Duplex\n";
    let all = of("100 Mbps Full Duplex") + picked;
    assert_eq!(top(&[("a.txt", &all)], "net-speed").object, "ent2 on vios1");
    // Somebody has set it.
    silent(&[("a.txt", &port(gigabit, "100 Mbps Full Duplex", "100 Mbps Full Duplex"))]);
}

/// Losses day by day, of which a filter has left no count of packets.
#[test]
fn losses_without_the_packets_are_told_where_they_go_on() {
    let day = |day: u32, lost: u32| {
        format!(
            "vios1 2026-11-{day} 18:00 $ entstat -all ent7 | egrep 'ETHERNET STAT|Overrun|No Resource|Elapsed'\nETHERNET STATISTICS (ent3) :\nElapsed Time: {day} days 1 hours 2 minutes 3 seconds\nDMA Underrun: 0                               DMA Overrun: 0\nMax Collision Errors: 0                       No Resource Errors: {lost}\n"
        )
    };
    let days = |all: [u32; 3]| (20..).zip(all).map(|(at, lost)| day(at, lost)).collect::<String>();
    let growing = days([801_233, 951_120, 1_101_007]);
    assert_eq!(top(&[("a.txt", &growing)], "net-receive-loss").object, "ent3 on vios1");
    silent(&[("a.txt", &days([801_233; 3]))]);
    silent(&[("a.txt", &days([801_233, 801_300, 801_400]))]);
}
