//! What is printed of networks is read again by the planner, and every number is compared.

use super::entstat::{
    self, AGGREGATE, Aggregate, EntReport, Frames, HighAvailability, Lan, SHARED, SeaReport,
    UPLINK, VIRTUAL, Way,
};
use super::maps::{self, Backing, ListOptions, NetMap};
use super::seastat;
use super::tests::{read, value};
use control::server::{PassedView, SeaClientView};

fn frames() -> Frames {
    Frames {
        sent: 410_223,
        sent_bytes: 61_533_450,
        received: 520_334,
        received_bytes: 104_066_800,
        refused: 13,
        dropped: 37,
        filtered: 11,
        reserved: 1,
        failed: 5,
        no_memory: 2,
    }
}

fn report(name: &str, device_type: &str, lan: Option<Lan>) -> EntReport {
    EntReport {
        name: name.to_owned(),
        device_type: device_type.to_owned(),
        mac: None,
        seconds: 12 * 86_400 + 3 * 3_600 + 4 * 60 + 5,
        up: true,
        frames: lan.is_none().then(frames),
        lan,
        aggregate: None,
    }
}

fn sea() -> SeaReport {
    let trunk = |name: &str, pvid: u16, vlans: &[u16]| {
        let network = "net0".to_owned();
        let lan = Lan { pvid, vlans: vlans.to_vec(), network, trunk: Some((1, true)) };
        report(name, VIRTUAL, Some(lan))
    };
    SeaReport {
        own: report("ent6", SHARED, None),
        thread: false,
        jumbo: true,
        real: report("ent1", UPLINK, None),
        trunks: vec![trunk("ent5", 1, &[10, 20]), trunk("ent7", 99, &[])],
        failover: Some(HighAvailability {
            state: "BACKUP_SH".to_owned(),
            bridge_mode: "Partial".to_owned(),
            primary: 7,
            mode: "sharing".to_owned(),
            priority: 2,
        }),
    }
}

#[test]
fn a_shared_adapter_is_read_again() {
    let text = entstat::shared(&sea());
    let captures = read("entstat -all ent6", &text);
    let found = captures.reports[0].entstat().unwrap();
    let names: Vec<&str> = found.adapters.iter().map(|one| one.name.value.as_str()).collect();
    assert_eq!(names, ["ent6", "ent1", "ent5", "ent7"]);
    let wanted = frames();
    for (one, wanted_type) in found.adapters.iter().zip([SHARED, UPLINK, VIRTUAL, VIRTUAL]) {
        assert_eq!(value(&one.device_type).as_deref(), Some(wanted_type));
        assert_eq!(value(&one.elapsed_seconds), Some(1_047_845));
        assert!(one.driver_flags.iter().any(|flag| flag == "Running"));
    }
    for one in &found.adapters[..2] {
        assert_eq!(value(&one.transmitted.packets), Some(wanted.sent));
        assert_eq!(value(&one.transmitted.bytes), Some(wanted.sent_bytes));
        assert_eq!(value(&one.received.packets), Some(wanted.received));
        assert_eq!(value(&one.received.bytes), Some(wanted.received_bytes));
        assert_eq!(value(&one.transmitted.errors), Some(wanted.failed));
        assert_eq!(value(&one.received.dropped), Some(wanted.refused));
        assert_eq!(value(&one.no_mbuf_errors), Some(wanted.no_memory));
    }
    let sea = found.sea.as_ref().unwrap();
    assert_eq!(value(&sea.adapter_count), Some(3));
    assert_eq!(
        sea.flag_names.iter().map(|flag| flag.value.as_str()).collect::<Vec<_>>(),
        ["LARGESEND", "JUMBO_FRAMES", "LARGE_RECEIVE"]
    );
    let ha = sea.failover.as_ref().unwrap();
    assert_eq!(value(&ha.state).as_deref(), Some("BACKUP_SH"));
    assert_eq!(value(&ha.bridge_mode).as_deref(), Some("Partial"));
    assert_eq!(value(&ha.mode).as_deref(), Some("Sharing"));
    assert_eq!((value(&ha.became_primary), value(&ha.priority)), (Some(7), Some(2)));
    let vlans: Vec<_> =
        sea.vlans.iter().map(|one| (one.adapter.as_str(), &one.vlans[..])).collect();
    assert_eq!(vlans, [("ent5", &[1, 10, 20][..]), ("ent7", &[99])]);
    let (real, other) = (&sea.real_side, &sea.virtual_side);
    assert_eq!(
        (value(&real.received), value(&real.transmitted)),
        (Some(wanted.received + 13), Some(wanted.sent))
    );
    assert_eq!(
        (value(&other.received), value(&other.transmitted)),
        (Some(wanted.sent), Some(wanted.received))
    );
    assert_eq!(
        (value(&real.bridged), value(&other.bridged)),
        (Some(wanted.received), Some(wanted.sent))
    );
    assert_eq!((value(&real.dropped), value(&real.filtered_vlan)), (Some(37), Some(11)));
    assert_eq!(value(&real.filtered_reserved), Some(1));
    assert_eq!(value(&sea.flags), Some(0x16));
    assert_eq!((value(&sea.output_failures), value(&sea.memory_failures)), (Some(5), Some(2)));
    assert_eq!(value(&sea.real_adapter).as_deref(), Some("ent1"));
    let virtuals: Vec<&str> = sea.virtual_adapters.iter().map(|one| one.value.as_str()).collect();
    assert_eq!(virtuals, ["ent5", "ent7"]);
    let lan = found.adapters[2].virtual_adapter.as_ref().unwrap();
    assert_eq!((value(&lan.port_vlan), value(&lan.vlans)), (Some(1), Some(vec![10, 20])));
    assert_eq!(
        (value(&lan.trunk), value(&lan.priority), value(&lan.active)),
        (Some(true), Some(1), Some(true))
    );
    assert_eq!(value(&lan.switch).as_deref(), Some("net0"));
    let none = found.adapters[3].virtual_adapter.as_ref().unwrap();
    assert_eq!(value(&none.vlans), Some(vec![]));
    // Counted where somebody counts.
    assert_eq!(value(&found.adapters[2].transmitted.packets), None);
    insta::assert_snapshot!(text);
}

#[test]
fn counts_of_trunk_adapters_are_read_again() {
    let counted = |number| Frames {
        sent: number,
        sent_bytes: number + 1,
        received: number + 2,
        received_bytes: number + 3,
        ..Frames::default()
    };
    let mut sea = sea();
    for (trunk, number) in sea.trunks.iter_mut().zip([70, 80]) {
        trunk.frames = Some(counted(number));
    }
    let captures = read("entstat -all ent6", &entstat::shared(&sea));
    let found = captures.reports[0].entstat().unwrap();
    for (one, wanted) in found.adapters[2..].iter().zip([70, 80].map(counted)) {
        assert_eq!(value(&one.transmitted.packets), Some(wanted.sent));
        assert_eq!(value(&one.transmitted.bytes), Some(wanted.sent_bytes));
        assert_eq!(value(&one.received.packets), Some(wanted.received));
        assert_eq!(value(&one.received.bytes), Some(wanted.received_bytes));
        assert_eq!(
            (value(&one.transmitted.errors), value(&one.received.dropped)),
            (Some(0), Some(0))
        );
    }
    assert_eq!(found.adapters.len(), 4);
}

#[test]
fn members_of_an_uplink_are_read_again() {
    let member = |name: &str, up| EntReport { up, ..report(name, UPLINK, None) };
    let members = vec![member("ent0", false), member("ent1", true)];
    for (way, channel, hash) in [
        (Way::One { first: true }, Some("primary channel"), None),
        (Way::One { first: false }, Some("backup adapter"), None),
        (Way::Each, None, Some("Source and destination TCP/UDP ports")),
    ] {
        let aggregate = Some(Aggregate { way, members: members.clone() });
        let real = EntReport { aggregate, ..report("ent4", AGGREGATE, None) };
        let alone = read("entstat -d ent4", &entstat::whole(&real));
        let shared = entstat::shared(&SeaReport { real, ..sea() });
        let below = read("entstat -all ent6", &shared);
        for (captures, names, at) in [
            (&alone, &["ent4", "ent0", "ent1"][..], 0),
            (&below, &["ent6", "ent4", "ent0", "ent1", "ent5", "ent7"], 1),
        ] {
            let found = captures.reports[0].entstat().unwrap();
            let printed: Vec<&str> =
                found.adapters.iter().map(|one| one.name.value.as_str()).collect();
            assert_eq!(printed, names);
            let of = found.adapters[at].aggregation.as_ref().unwrap();
            assert_eq!((value(&of.adapters), of.members.len()), (Some(2), 2));
            assert_eq!(of.members, ["ent0", "ent1"]);
            assert_eq!(value(&of.active_channel).as_deref(), channel);
            assert_eq!(value(&of.hash_mode).as_deref(), hash);
            let [first, second] = [&found.adapters[at + 1], &found.adapters[at + 2]];
            let runs = [first, second].map(|one| one.driver_flags.iter().any(|it| it == "Running"));
            assert_eq!(runs, [false, true]);
            assert_eq!(value(&second.received.packets), Some(frames().received));
        }
        if way == Way::Each {
            let sea = below.reports[0].entstat().unwrap().sea.as_ref().unwrap();
            assert_eq!(value(&sea.real_adapter).as_deref(), Some("ent4"));
            assert_eq!(sea.virtual_adapters.len(), 2);
            insta::assert_snapshot!(entstat::whole(&EntReport {
                aggregate: Some(Aggregate { way, members: members.clone() }),
                ..report("ent4", AGGREGATE, None)
            }));
        }
    }
}

#[test]
fn a_channel_of_its_own_is_read_as_a_thread() {
    let text = entstat::shared(&SeaReport { thread: true, ..sea() });
    let captures = read("entstat -all ent6", &text);
    let sea = captures.reports[0].entstat().unwrap().sea.as_ref().unwrap();
    assert_eq!(value(&sea.flags), Some(0x17));
    assert_eq!(sea.flag_names[0].value, "THREAD");
}

#[test]
fn a_virtual_adapter_is_read_again() {
    let lan = Lan { pvid: 20, vlans: vec![30], network: "net0".to_owned(), trunk: None };
    let mac = Some("02:00:5e:00:00:01".to_owned());
    let card =
        EntReport { mac, up: false, frames: Some(frames()), ..report("ent0", VIRTUAL, Some(lan)) };
    let captures = read("entstat -d ent0", &entstat::adapter(&card));
    let found = &captures.reports[0].entstat().unwrap().adapters[0];
    assert_eq!(value(&found.mac).as_deref(), Some("02:00:5e:00:00:01"));
    assert_eq!(value(&found.received.packets), Some(frames().received));
    assert!(!found.driver_flags.iter().any(|flag| flag == "Running"));
    let lan = found.virtual_adapter.as_ref().unwrap();
    assert_eq!((value(&lan.trunk), value(&lan.port_vlan)), (Some(false), Some(20)));
}

#[test]
fn maps_of_networks_are_read_again() {
    let place = |name: &str| format!("UTRUNKLINE.5EE3C1-main-V1-C-{name}");
    let backing =
        |available| Backing { name: "ent1".to_owned(), available, physloc: place("ent1") };
    let map = |name: &str, sea| NetMap { name: name.to_owned(), physloc: place(name), sea };
    let maps = [
        map("ent5", Some(("ent6".to_owned(), backing(true)))),
        map("ent7", Some(("ent6".to_owned(), backing(false)))),
        map("ent9", None),
    ];
    for form in [ListOptions::default(), ListOptions { delimiter: Some(":"), fields: &[] }] {
        let command =
            if form.delimiter.is_some() { "lsmap -all -net -fmt :" } else { "lsmap -all -net" };
        let captures = read(command, &maps::net(&maps, form));
        let found = &captures.reports[0].lsmap_net().unwrap().adapters;
        assert_eq!(found.len(), 3);
        for (found, map) in found.iter().zip(&maps) {
            assert_eq!(
                (&found.name, value(&found.physloc)),
                (&map.name, Some(map.physloc.clone()))
            );
            let sea = map.sea.as_ref();
            assert_eq!(value(&found.sea), sea.map(|(sea, _)| sea.clone()));
            assert_eq!(value(&found.backing), sea.map(|(_, backing)| backing.name.clone()));
            let status =
                sea.map(|(_, backing)| if backing.available { "Available" } else { "Defined" });
            assert_eq!(value(&found.status).as_deref(), status);
            assert_eq!(
                value(&found.backing_physloc),
                sea.map(|(_, backing)| backing.physloc.clone())
            );
        }
    }
    insta::assert_snapshot!(maps::net(&maps, ListOptions::default()));
}

fn client(mac: &str, untagged: bool, ip: Option<&str>, number: u64) -> SeaClientView {
    SeaClientView {
        mac: mac.to_owned(),
        vlan: 200,
        untagged,
        priority: 3,
        ip: ip.map(str::to_owned),
        passed: PassedView {
            sent_frames: number,
            sent_bytes: number + 1,
            received_frames: number + 2,
            received_bytes: number + 3,
        },
    }
}

#[test]
fn clients_are_found_by_what_is_printed_of_them() {
    let clients = [
        client("02:00:5e:00:00:0a", true, Some("10.0.0.7"), 1),
        client("02:00:5e:00:00:0a", false, Some("fd00::7"), 2),
        client("02:00:5e:00:00:0b", false, None, 3),
    ];
    let found = |typed: &[&str]| {
        let typed: Vec<String> = typed.iter().map(|&typed| typed.to_owned()).collect();
        let criteria = seastat::criteria(&typed).unwrap();
        let fits = |one: &&SeaClientView| criteria.iter().all(|it| it.fits(one));
        clients.iter().filter(fits).map(|one| one.passed.sent_frames).collect::<Vec<_>>()
    };
    assert_eq!(found(&[]), [1, 2, 3]);
    for mac in ["mac=02:00:5E:00:00:0A", "mac=02005e00000a", "mac=02-00-5e-00-00-0a"] {
        assert_eq!(found(&[mac]), [1, 2]);
    }
    assert_eq!((found(&["vlan=200"]), found(&["vlan=None"])), (vec![2, 3], vec![1]));
    assert_eq!((found(&["ip=10.0.0.7"]), found(&["ip=fd00:0::7"])), (vec![1], vec![2]));
    assert_eq!(found(&["mac=02:00:5e:00:00:0a", "vlan=200"]), [2]);
    assert_eq!(found(&["vlan=201"]), [0; 0]);
    for odd in ["mac", "mac=02:00", "mac=+2005e00000a", "vlan=x", "ip=7", "host=a", "size=1"] {
        assert!(seastat::criteria(&[odd.to_owned()]).is_err(), "{odd}");
    }
}

#[test]
fn clients_of_a_shared_adapter_are_read_again() {
    let clients = [
        client("02:00:5e:00:00:01", true, Some("10.0.0.7"), 70),
        client("02:00:5e:00:00:02", false, Some("fd00::7"), u64::MAX / 2),
        client("02:00:5e:00:00:03", false, None, 0),
    ];
    let text = seastat::report("ent6", &clients);
    let captures = read("seastat -d ent6", &text);
    let found = captures.reports[0].seastat().unwrap();
    assert_eq!(found.clients.len(), 3);
    for (found, one) in found.clients.iter().zip(&clients) {
        assert_eq!(found.mac, one.mac.to_uppercase());
        let of_tag = (value(&found.vlan), value(&found.vlan_priority));
        assert_eq!(of_tag, if one.untagged { (None, None) } else { (Some(200), Some(3)) });
        assert_eq!((value(&found.ip), value(&found.hostname)), (one.ip.clone(), None));
        let sent = (value(&found.transmitted_packets), value(&found.transmitted_bytes));
        assert_eq!(sent, (Some(one.passed.sent_frames), Some(one.passed.sent_bytes)));
        let received = (value(&found.received_packets), value(&found.received_bytes));
        assert_eq!(received, (Some(one.passed.received_frames), Some(one.passed.received_bytes)));
    }
    insta::assert_snapshot!(text);
}
