//! Shared Ethernet adapters, alone and in pairs.

use super::{advice, lsattr, lsdev, npiv, silent, top};
use planner::advise::Severity;

/// One SEA with a trunk adapter and a control channel.
#[derive(Clone)]
struct Sea {
    system: &'static str,
    attributes: Vec<(&'static str, &'static str)>,
    pvid: u16,
    vlans: &'static str,
    control_trunk: bool,
    control_vlan: u16,
    control_in: u32,
    state: &'static str,
    bridge: &'static str,
    mode: &'static str,
    priority: u8,
    became: u32,
}

fn primary() -> Sea {
    let attributes = vec![
        ("ctl_chan", "ent9"),
        ("ha_mode", "auto"),
        ("jumbo_frames", "no"),
        ("pvid", "100"),
        ("pvid_adapter", "ent8"),
        ("real_adapter", "ent0"),
        ("thread", "1"),
        ("adapter_reset", "no"),
        ("virt_adapters", "ent8"),
    ];
    Sea {
        system: "viosa1",
        attributes,
        pvid: 100,
        vlans: " 101  200  201",
        control_trunk: false,
        control_vlan: 4000,
        control_in: 4456,
        state: "PRIMARY",
        bridge: "All",
        mode: "Auto",
        priority: 1,
        became: 1,
    }
}

fn backup() -> Sea {
    Sea { system: "viosa2", state: "BACKUP", bridge: "None", priority: 2, ..primary() }
}

impl Sea {
    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.attributes.iter_mut().filter(|(own, _)| *own == name).for_each(|set| set.1 = value);
        self
    }

    fn text(&self) -> String {
        let Sea {
            system,
            pvid,
            vlans,
            control_trunk,
            control_vlan,
            control_in,
            state,
            bridge,
            mode,
            priority,
            became,
            ..
        } = self;
        let trunk = |on: bool| {
            if on {
                format!(
                    "Trunk Adapter: True\n  Priority: {priority}  Active: {}",
                    if *bridge == "None" { "False" } else { "True" }
                )
            } else {
                "Trunk Adapter: False".to_owned()
            }
        };
        let adapter = |kind: &str, name: &str, on: bool, port: u16, tags: &str| {
            format!(
                "--------------------------------------------------------------
{kind} Adapter: {name}

ETHERNET STATISTICS ({name}) :
Device Type: Virtual I/O Ethernet Adapter (l-lan)
Hardware Address: 42:d0:7a:00:11:02
Elapsed Time: 12 days 3 hours 4 minutes 7 seconds

General Statistics:
-------------------
No mbuf Errors: 0
Driver Flags: Up Broadcast Running

Virtual I/O Ethernet Adapter (l-lan) Specific Statistics:
---------------------------------------------------------
RQ Length: 4481
{}

Port VLAN ID:   {port}
VLAN Tag IDs: {tags}

Switch ID: ETHERNET0

",
                trunk(on)
            )
        };
        let shown = lsdev(system, "ent12", &self.attributes);
        format!(
            "{shown}{system}:/home/padmin> entstat -all ent12
--------------------------------------------------------------
ETHERNET STATISTICS (ent12) :
Device Type: Shared Ethernet Adapter
Hardware Address: 98:be:94:11:22:33
Elapsed Time: 12 days 3 hours 4 minutes 5 seconds

--------------------------------------------------------------
Statistics for adapters in the Shared Ethernet Adapter ent12
--------------------------------------------------------------
Number of adapters: 3
SEA Flags: 00000013
    < THREAD >
    < LARGESEND >
VLAN Ids :
    ent8: {pvid} {vlans}
High Availability Statistics:
    Control Channel PVID: {control_vlan}
    Control Packets in: {control_in}
    Control Packets out: 44164
Type of Packets Received:
    Keep-Alive Packets: 456
    Recovery Packets: 1
    Notify Packets: 2
    Limbo Packets: 0
    State: {state}
    Bridge Mode: {bridge}
    Number of Times Server became Backup: {became}
    Number of Times Server became Primary: {became}
    High Availability Mode: {mode}
    Priority: {priority}
{}{}",
            adapter("Virtual", "ent8", true, *pvid, vlans),
            adapter("Control", "ent9", *control_trunk, *control_vlan, "None"),
        )
    }
}

#[track_caller]
fn rule_of(seas: &[Sea], rule: &str) -> planner::advise::Finding {
    let texts: Vec<String> = seas.iter().map(Sea::text).collect();
    let files: Vec<(&str, &str)> =
        texts.iter().zip(["a.txt", "b.txt"]).map(|(text, name)| (name, text.as_str())).collect();
    top(&files, rule)
}

#[test]
fn a_healthy_pair_gets_no_advice() {
    silent(&[("a.txt", &primary().text()), ("b.txt", &backup().text())]);
    silent(&[("a.txt", &primary().text())]);
    let sharing =
        |sea: Sea| Sea { mode: "Sharing", bridge: "Partial", ..sea.with("ha_mode", "sharing") };
    let (one, two) = (
        sharing(Sea { state: "PRIMARY_SH", ..primary() }),
        sharing(Sea { state: "BACKUP_SH", ..backup() }),
    );
    silent(&[("a.txt", &one.text()), ("b.txt", &two.text())]);
    // Auto and standby are a pair: auto is the primary.
    silent(&[
        ("a.txt", &primary().text()),
        ("b.txt", &Sea { mode: "Standby", ..backup().with("ha_mode", "standby") }.text()),
    ]);
}

#[test]
fn one_fault_in_one_bridge_is_its_own_rule() {
    let finding = rule_of(&[primary().with("pvid", "1")], "sea-pvid");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev ent12 -attr pvid=100"));
    rule_of(&[Sea { control_trunk: true, ..primary() }], "sea-control-channel");
    rule_of(&[Sea { control_in: 0, ..primary() }], "sea-control-channel");
    rule_of(&[Sea { control_vlan: 200, ..primary() }], "sea-control-channel");
    rule_of(&[Sea { state: "LIMBO", bridge: "None", ..primary() }], "sea-failover");
    rule_of(&[Sea { bridge: "All", ..backup() }], "sea-failover");
    rule_of(&[Sea { became: 180, ..primary() }], "sea-failover");
}

/// What is the default is a fault where IBM says so: up to VIOS 2.2.4.0.
#[test]
fn a_reset_at_failover_is_changed_at_old_levels_only() {
    let at = |level: &str| {
        let text = primary().with("adapter_reset", "yes").text();
        let (known, without) = ("ioslevel\n3.1.4.21\n", "uname\nAIX\n");
        assert!(text.contains(known), "{text}");
        let text = match level {
            "" => text.replace(known, without),
            level => text.replace("\n3.1.4.21\n", &format!("\n{level}\n")),
        };
        let finding = top(&[("a.txt", &text)], "sea-adapter-reset");
        (finding.severity, finding.command)
    };
    let command = "chdev -dev ent12 -attr adapter_reset=no".to_owned();
    for old in ["2.2.4.0", "2.2.3.60"] {
        assert_eq!(at(old), (Severity::Warning, Some(command.clone())), "{old}");
    }
    for newer in ["2.2.4.10", "3.1.4.21", "4.1.0.10", ""] {
        assert_eq!(at(newer), (Severity::Note, None), "{newer}");
    }
}

/// Updates of the VIOS change the primary some times a year: twenty changes in two years are those.
#[test]
fn changes_of_the_primary_are_held_against_their_time() {
    let years = Sea { became: 24, ..primary() }.text();
    let years = years.replace("Elapsed Time: 12 days", "Elapsed Time: 712 days");
    silent(&[("a.txt", &years)]);
    let days = Sea { became: 24, ..primary() }.text();
    assert_eq!(top(&[("a.txt", &days)], "sea-failover").rule, "sea-failover");
}

#[test]
fn pairs_that_do_not_agree_are_told() {
    let finding =
        rule_of(&[primary(), Sea { state: "PRIMARY", bridge: "All", ..backup() }], "sea-failover");
    assert!(finding.object.contains("viosa1") && finding.object.contains("viosa2"));
    let finding = rule_of(&[primary(), backup().with("ha_mode", "disabled")], "sea-failover");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev ent12 -attr ha_mode=auto"));
    rule_of(&[primary(), Sea { priority: 1, ..backup() }], "sea-priority");
    rule_of(&[primary(), Sea { control_vlan: 4001, ..backup() }], "sea-control-channel");
    let finding = rule_of(&[primary(), Sea { vlans: " 101  200", ..backup() }], "sea-vlan");
    assert!(finding.title.contains("201"), "{}", finding.title);
    rule_of(&[primary().with("jumbo_frames", "yes"), backup()], "sea-mtu");
}

#[test]
fn a_bridge_without_threads_beside_disks_is_told() {
    let disks = "viosa1:/home/padmin> lsmap -all
SVSA            Physloc                                      Client Partition ID
--------------- -------------------------------------------- ------------------
vhost0          U9009.42A.78A1B2C-V1-C10                     0x00000005

VTD                   vtscsi0
Status                Available
LUN                   0x8100000000000000
Backing device        hdisk7
Physloc               U78D3.001.WZS0ABC-P1-C4-T1
Mirrored              false

";
    let finding = top(&[("a.txt", &(primary().with("thread", "0").text() + disks))], "sea-thread");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev ent12 -attr thread=1"));
    // A VIOS that does nothing but Ethernet may go without.
    silent(&[("a.txt", &primary().with("thread", "0").text())]);
}

#[test]
fn jumbo_frames_must_go_all_the_way() {
    let real =
        lsdev("viosa1", "ent0", &[("jumbo_frames", "no"), ("media_speed", "Auto_Negotiation")]);
    let finding =
        top(&[("a.txt", &(primary().with("jumbo_frames", "yes").text() + &real))], "sea-mtu");
    assert_eq!(finding.command.as_deref(), Some("chdev -dev ent0 -attr jumbo_frames=yes -perm"));
    let client = lsattr("payroll", "en0", &[("mtu", "9000"), ("state", "up")]);
    // A client is one of this bridge where a mapping of the VIOS names it.
    let map = npiv("viosa1", &[("vfchost0", 5, "payroll", "fcs0", "fcs0", 6)]);
    top(&[("a.txt", &(primary().text() + &map)), ("b.txt", &client)], "sea-mtu");
    silent(&[("vios1.txt", &primary().text()), ("lpar1.txt", &client)]);
}

#[test]
fn a_vlan_on_two_trunks_of_one_vios_is_a_loop() {
    let twice =
        primary().text().replace("Adapter: ent9", "Adapter: ent10").replace("(ent9)", "(ent10)");
    let twice = twice
        .replace("Trunk Adapter: False", "Trunk Adapter: True\n  Priority: 1  Active: True")
        .replace("Port VLAN ID:   4000", "Port VLAN ID:   200")
        .replace("Control Adapter", "Virtual Adapter")
        .replace("ctl_chan        ent9 ", "ctl_chan        ent19");
    let finding = top(&[("a.txt", &twice)], "sea-vlan");
    assert!(finding.title.contains("VLAN 200"), "{}", finding.title);
}

#[test]
fn a_backing_device_of_a_vnic_is_told_by_the_hmc_alone() {
    let list = |status: &str, active: u8| {
        format!(
            "hscroot@hmc:~> lshwres -m M -r virtualio --rsubtype vnicbkdev --level lpar\n\
             lpar_name=app1,lpar_id=5,slot_num=6,type=sriov,vios_lpar_name=vios2,vios_lpar_id=2,\
             sriov_adapter_id=3,sriov_physical_port_id=0,sriov_logical_port_id=27034005,\
             status={status},is_active={active},failover_priority=60,capacity=10.0\n"
        )
    };
    let finding = top(&[("hmc.txt", &list("link down", 0))], "vnic-backing-device");
    assert_eq!(finding.object, "vNIC of app1 over vios2");
    assert_eq!((finding.severity, finding.command), (Severity::Warning, None));
    let finding = top(&[("hmc.txt", &list("link down", 1))], "vnic-backing-device");
    assert_eq!(finding.severity, Severity::Critical);
    silent(&[("hmc.txt", &list("operational", 0))]);
}

/// `seastat` of a bridge with two clients, by address, VLAN and bytes each way.
fn seastat(clients: [(&str, u16, u64, u64); 3]) -> String {
    let client = |(mac, vlan, sent, received): (&str, u16, u64, u64)| {
        format!(
            "MAC: {mac}\n----------------------\n\nVLAN: {vlan}\nVLAN Priority: 0\nHostname: h{vlan}.example.com\nIP: 192.0.2.{vlan}\n\nTransmit Statistics:                      Receive Statistics:\n--------------------                      -------------------\nPackets: 1000                             Packets: 1000\nBytes: {sent}                             Bytes: {received}\n\n================================================================================\n\n"
        )
    };
    let rule = "=".repeat(80);
    format!(
        "bcnvio1:/home/padmin> seastat -d ent8\n{rule}\n\nAdvanced Statistics for SEA\nDevice Name: ent8\n\n{rule}\n\n{}",
        clients.map(client).concat()
    )
}

#[test]
fn those_who_send_most_through_a_full_bridge_are_named() {
    let first = include_str!("../field/faulty/06-sea-queue-drops/bcnvio1-1.txt");
    let second = include_str!("../field/faulty/06-sea-queue-drops/bcnvio1-2.txt");
    let client = include_str!("../field/faulty/06-sea-queue-drops/bcnapp1.txt");
    let mac = client.lines().find_map(|line| line.split_once("Hardware Address: ")).unwrap().1;
    let capitals = mac.trim().to_uppercase();
    let others = |one, two| {
        [
            (capitals.as_str(), 12, one, one),
            ("EE:AF:21:70:E0:08", 70, 900_000, 500_000),
            ("EE:AF:21:70:E0:09", 71, two, 0),
        ]
    };
    // Since the accounting began a third one has most, and between the captures the client that was captured.
    let early = format!("{first}\n{}", seastat(others(0, 90_000_000)));
    let late = format!("{second}\n{}", seastat(others(30_000, 90_020_000)));
    let files = [("1.txt", early.as_str()), ("2.txt", late.as_str()), ("c.txt", client)];
    let told = advice(&files);
    let finding = told.findings.iter().find(|one| one.rule == "sea-overload").expect("it is full");
    let named = format!(
        "By seastat, most through it between the captures is of bcnapp1 ({capitals}, VLAN 12) with 75 % of the bytes; of h71.example.com (EE:AF:21:70:E0:09, VLAN 71) with 25 % of the bytes"
    );
    let says = |words: &str| finding.reasoning.iter().any(|why| why.contains(words));
    assert!(says(&named), "{:#?}", finding.reasoning);
    assert!(!finding.effect.contains("Turn on accounting"), "{}", finding.effect);
    let rows: Vec<(&str, f64)> =
        told.map.talkers.iter().map(|row| (row.client.as_str(), row.percent)).collect();
    assert_eq!(rows, [("bcnapp1", 75.0), ("h71.example.com", 25.0), ("h70.example.com", 0.0)]);
    // One capture has what was counted since the accounting began.
    let once = advice(&[("2.txt", &late)]);
    assert_eq!(once.map.talkers[0].client, "h71.example.com");
    assert!(!once.map.talkers[0].between_captures);
}

/// A bridge in limbo whose only way out has no link is told by the link; with a member that is left it is another trouble.
#[test]
fn limbo_that_follows_from_the_link_is_told_by_the_link() {
    let below = |members: &[(&str, &str)]| -> String {
        let one = |(name, link): &(&str, &str)| {
            format!(
                "--------------------------------------------------------------\nReal Adapter: {name}\n\nETHERNET STATISTICS ({name}) :\nDevice Type: PCIe2 4-Port Adapter (1GbE RJ45) (e4148a1614109404)\nHardware Address: 98:be:94:11:22:3{}\n\nLink Status: {link}\n\n",
                &name[3..]
            )
        };
        members.iter().map(one).collect()
    };
    let with = |members: &[(&str, &str)]| {
        let text = Sea { state: "LIMBO", bridge: "None", ..primary() }.text();
        let cut =
            "--------------------------------------------------------------\nVirtual Adapter: ";
        let (before, after) = text.split_once(cut).expect("its adapters");
        let rules = advice(&[("a.txt", &format!("{before}{}{cut}{after}", below(members)))]);
        rules.findings.iter().map(|finding| finding.rule).collect::<Vec<_>>()
    };
    assert_eq!(with(&[("ent0", "Down")]), ["net-link-down"]);
    assert_eq!(with(&[("ent0", "Up")]), ["sea-failover"]);
}

/// What hangs on a bridge stands in its statistics, too.
#[test]
fn the_map_has_what_the_statistics_of_a_bridge_list() {
    let map = advice(&[("a.txt", &primary().text())]).map;
    let rows: Vec<[&str; 4]> = map
        .ethernet
        .iter()
        .map(|row| [&row.vios, &row.adapter, &row.bridge, &row.uplink].map(String::as_str))
        .collect();
    assert_eq!(rows, [["viosa1", "ent8", "ent12", "ent0"]]);
}

/// A failover and its way back are one; what goes on all morning is told, with the statistics or by the log alone.
#[test]
fn a_bridge_that_changes_all_morning_is_told_by_the_log() {
    let log = |changes: u32| {
        let row = |at: u32| {
            let (id, what) = [("E48A73A4", "PRIMARY"), ("40D97644", "BACKUP")]
                [usize::from(at.is_multiple_of(2))];
            format!(
                "{id}   0806{:02}{:02}26 I H ent12          BECOME {what}\n",
                8 + at / 6,
                at % 6 * 9
            )
        };
        let rows: String = (0..changes).rev().map(row).collect();
        format!(
            "viosa1:/> date\nThu Aug  6 12:00:00 CEST 2026\nviosa1:/> errpt\nIDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION\n{rows}"
        )
    };
    let alone = top(&[("a.txt", &log(8))], "sea-failover");
    assert_eq!(alone.object, "ent12 on viosa1");
    assert!(alone.reasoning[0].contains("8 times in the day before"), "{alone:?}");
    silent(&[("a.txt", &log(4))]);
    let with = top(&[("a.txt", &log(8)), ("b.txt", &primary().text())], "sea-failover");
    assert!(with.reasoning[0].contains("it goes on"), "{with:?}");
    silent(&[("a.txt", &log(4)), ("b.txt", &primary().text())]);
}

/// Which words each level prints for a backup is not confirmed: what nothing else supports is only noted.
#[test]
fn a_backup_that_says_it_bridges_is_noted() {
    let odd = Sea { bridge: "All", ..backup() };
    let found = advice(&[("a.txt", &primary().text()), ("b.txt", &odd.text())]).findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].rule, found[0].severity), ("sea-failover", Severity::Note));
    assert_eq!(found[0].title, "state BACKUP with bridge mode All");
}

/// What follows from priorities or modes that do not fit is told with them, as bad as it is, and how it is stopped.
#[test]
fn what_follows_from_a_pair_is_told_with_its_cause() {
    let two = |one: Sea, two: Sea| {
        let found = advice(&[("a.txt", &one.text()), ("b.txt", &two.text())]).findings;
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().expect("one")
    };
    let twin = Sea { priority: 1, state: "PRIMARY", bridge: "All", ..backup() };
    let finding = two(primary(), twin);
    assert_eq!((finding.rule, finding.severity), ("sea-priority", Severity::Critical));
    assert!(finding.reasoning.iter().any(|why| why == "For that reason both bridges are primary."));
    assert!(finding.effect.ends_with("set ha_mode=standby on one of them."), "{finding:?}");
    let shared = backup().with("ha_mode", "sharing");
    let finding =
        two(primary(), Sea { state: "BACKUP_SH", bridge: "None", mode: "Sharing", ..shared });
    assert_eq!(finding.title, "ha_mode is auto on one and sharing on the other");
    assert_eq!(finding.severity, Severity::Critical);
    let why = "For that reason state BACKUP_SH with bridge mode None.";
    assert!(finding.reasoning.iter().any(|said| said == why), "{finding:?}");
}
