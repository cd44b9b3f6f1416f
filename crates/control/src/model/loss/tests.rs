//! Who loses what.

use super::*;
use crate::config::read;
use crate::model::validate::validate;
use crate::model::{Desired, allocations, resolve, samples};

const DISK: &str = "[volume.v]\nkind=\"null\"\nsize=4096\n[volume.w]\nkind=\"null\"\nsize=4096\n[adapter.a]\nvolume=\"v\"\n";
const SAN: &str = "[dataplane.main]\nwwpn_prefix=\"c0:50:76:00:00:01\"\n[volume.v]\nkind=\"null\"\nsize=4096\n[volume.w]\nkind=\"null\"\nsize=4096\n\
    [port.p]\n[target.t]\nluns=\"0=v,1=w\"\n[adapter.f]\nkind=\"fc\"\nport=\"p\"\n[zone.z]\nmembers=\"f,t\"\n[mask.m]\ninitiators=\"f\"\ntargets=\"t\"\n";

/// What the client of an adapter loses from one configuration to the next.
fn lost(adapter: &str, from: &str, to: &str) -> Option<String> {
    let client = Client { queues: 2, ..Client::default() };
    lost_of(&Connected::from([(adapter.to_owned(), client)]), from, to)
}

/// What somebody of these loses, the last of them by name.
fn lost_of(connected: &Connected, from: &str, to: &str) -> Option<String> {
    let paths = samples::paths();
    let settled = |now: &Desired, text: &str| {
        let mut next = read(text).unwrap();
        allocations::settle(now, &mut next, 7).unwrap();
        validate(&next, &paths).unwrap()
    };
    let now = settled(&Desired::default(), from);
    let next = settled(&now, to);
    let wanted = |desired: &Desired| -> BTreeMap<_, _> {
        let names = desired.dataplane_names().into_iter();
        names.map(|name| (name.clone(), resolve::wanted(desired, &name, &paths))).collect()
    };
    let (now, next) = (wanted(&now), wanted(&next));
    assert!(losses(&now, &next, &Connected::new()).is_empty(), "nobody is connected");
    losses(&now, &next, connected).pop().map(|loss| loss.what)
}

#[test]
fn a_disk_is_lost_with_its_adapter_its_volume_and_its_socket() {
    let gone = DISK.replace("[adapter.a]\nvolume=\"v\"\n", "");
    assert_eq!(lost("a", DISK, &gone).as_deref(), Some("its disk (volume `v`)"));
    let other = DISK.replace("volume=\"v\"", "volume=\"w\"");
    assert_eq!(lost("a", DISK, &other).as_deref(), Some("its disk (volume `v`)"));
    let moved = format!("{DISK}socket=\"/run/x\"\n");
    assert_eq!(lost("a", DISK, &moved).as_deref(), Some("its socket /run/t/a.sock"));
}

#[test]
fn a_lun_is_lost_by_target_zone_mask_and_port() {
    assert_eq!(lost("f", SAN, SAN), None);
    for (from, to, expected) in [
        ("0=v,1=w", "0=v", "LUN 1 of target 0 (w)"),
        ("0=v,1=w", "0=w,1=v", "LUN 0 of target 0 (v), LUN 1 of target 0 (w)"),
        ("members=\"f,t\"", "members=\"f\"", "LUN 0 of target 0 (v), LUN 1 of target 0 (w)"),
        ("targets=\"t\"\n", "targets=\"t\"\nluns=\"1\"\n", "LUN 0 of target 0 (v)"),
        ("\nport=\"p\"", "", "LUN 0 of target 0 (v), LUN 1 of target 0 (w)"),
    ] {
        assert_eq!(lost("f", SAN, &SAN.replace(from, to)).as_deref(), Some(expected), "{to}");
    }
}

#[test]
fn more_luns_limits_and_channels_take_nothing() {
    assert_eq!(lost("f", SAN, &SAN.replace("0=v,1=w", "0=v,1=w,2=v")), None);
    assert_eq!(lost("a", DISK, &format!("{DISK}queues=2\nchannels=1\n")), None);
    assert_eq!(lost("a", DISK, &DISK.replace("4096", "8192")), None);
    let split = format!("{DISK}dataplane=\"side\"\n[dataplane.side]\n");
    assert_eq!(lost("a", DISK, &split), None, "it connects again there");
}

#[test]
fn what_a_client_does_not_find_when_it_connects_again_it_loses() {
    let with = |more: &str| format!("{DISK}{more}\n");
    for (before, after, why) in [
        ("queues=8", "queues=1", "it has 2 queues, and `queues` would be 1"),
        ("", "queue_size=64", "its queues may be longer than 64, as `queue_size` would be"),
        ("", "withhold=\"inflight\"", "`inflight` would not be offered"),
        ("", "read_only=true", "it would be read-only"),
        ("", "discard=false", "`discard` would not be offered"),
        ("", "write_cache=false", "`write_cache` would not be offered"),
    ] {
        let what =
            "its disk (volume `v`) when it connects again, as after a restart of the data plane";
        let (before, after) = (with(before), with(after));
        assert_eq!(lost("a", &before, &after), Some(format!("{what}: {why}")));
        assert_eq!(lost("a", &after, &after), None);
        // More than it has does no harm.
        assert_eq!(lost("a", &after, &before), None);
    }
    let fewer = lost("f", SAN, &SAN.replace("port=\"p\"", "port=\"p\"\nqueues=1")).unwrap();
    assert!(fewer.starts_with("the adapter when it connects again"), "{fewer}");
}

/// Clients of adapters, with their processes.
fn clients(all: &[(&str, Option<u32>)]) -> Connected {
    let client = |pid: Option<u32>| Client {
        queues: 2,
        process: pid.map(|pid| ClientStatus { pid, uid: 107 }),
        ..Client::default()
    };
    all.iter().map(|(name, pid)| ((*name).to_owned(), client(*pid))).collect()
}

#[test]
fn a_link_is_lost_with_the_last_path_of_a_machine_and_not_with_one_of_two() {
    let two = SAN.replace("[zone.z]\nmembers=\"f,t\"", "[port.q]\n[target.u]\nluns=\"0=v\"\n[adapter.g]\nkind=\"fc\"\nport=\"q\"\n[zone.z]\nmembers=\"f,g,t,u\"");
    let both = two.replace("initiators=\"f\"\ntargets=\"t\"", "initiators=\"f,g\"\ntargets=\"t\"");
    let down = |text: &str| text.replace("[port.p]\n", "[port.p]\nlink=\"down\"\n");
    let cut = |units: &str| {
        format!(
            "its path to {units}, and no other one of it is known: its commands would wait 15 s for the link, and then fail"
        )
    };
    let machine = clients(&[("f", Some(7)), ("g", Some(7))]);
    assert_eq!(lost_of(&machine, &both, &down(&both)), None, "multipath goes on by the other");
    assert_eq!(lost_of(&machine, &down(&both), &both), None);
    for (connected, text, expected) in [
        (clients(&[("f", Some(7))]), &both, cut("`v`, `w`")),
        // Another machine's path is none of this one's, and of whom nothing is known neither.
        (clients(&[("f", Some(7)), ("g", Some(8))]), &both, cut("`v`, `w`")),
        (clients(&[("f", None), ("g", None)]), &both, cut("`v`, `w`")),
        // By another target, and of one of two disks.
        (machine.clone(), &two, cut("`v`, `w`")),
        (machine.clone(), &format!("{two}[mask.n]\ninitiators=\"g\"\ntargets=\"u\"\n"), cut("`w`")),
    ] {
        assert_eq!(lost_of(&connected, text, &down(text)), Some(expected), "{connected:?}");
    }
    let all_down = down(&both).replace("[port.q]\n", "[port.q]\nlink=\"down\"\n");
    assert_eq!(lost_of(&machine, &both, &all_down), Some(cut("`v`, `w`")), "both at once");
    assert_eq!(lost_of(&machine, &down(&both), &all_down), Some(cut("`v`, `w`")), "the last");
    let hasty = SAN.replace("port=\"p\"", "port=\"p\"\nlink_hold=0");
    let why = lost("f", &hasty, &down(&hasty)).unwrap();
    assert!(why.ends_with("is known: its commands would fail"), "{why}");
    let other = SAN.replace("[port.p]\n", "[port.p]\n[port.q]\nlink=\"down\"\n");
    let why = lost("f", &other, &other.replace("port=\"p\"", "port=\"q\""));
    assert_eq!(why, Some(cut("`v`, `w`")), "mapped to a port that is down");
}

const NET: &str = "[network.n]\nmtu=9000\n[uplink.up]\nnetwork=\"n\"\nvlans=\"10,20\"\n[adapter.e]\nkind=\"ethernet\"\nnetwork=\"n\"\nvlans=\"10,30\"\n";

#[test]
fn a_network_is_lost_with_its_vlans_and_the_way_out() {
    for (from, to, expected) in [
        ("vlans=\"10,30\"", "vlans=\"10\"", "VLAN 30"),
        ("vlans=\"10,30\"", "", "VLANs 10, 30"),
        (
            "vlans=\"10,30\"",
            "pvid=5\nvlans=\"1,10,30\"",
            "VLAN 1: its frames without a tag would be of VLAN 5",
        ),
        (
            "vlans=\"10,30\"",
            "vlans=\"10,30\"\nany_mac=false\nmac=\"02:00:00:00:00:07\"",
            "what it sends from other MAC addresses than 02:00:00:00:00:07",
        ),
        (
            "vlans=\"10,30\"",
            "vlans=\"10,30\"\naddresses=\"10.0.0.5\"",
            "what it sends from IP addresses that are not in `addresses`",
        ),
        (
            "vlans=\"10,30\"",
            "vlans=\"10,30\"\ndhcp_server=false",
            "what it answers as a DHCP server",
        ),
        ("vlans=\"10,30\"", "vlans=\"10,30\"\nrouter=false", "what it says as a router"),
        (
            "vlans=\"10,30\"",
            "vlans=\"10,30\"\nmonitor=true",
            "its network `n`: it would get copies of others' frames",
        ),
        (
            "vlans=\"10,30\"",
            "vlans=\"10,30\"\ntagging=\"dot1ad\"",
            "its VLANs: other tags would say them",
        ),
        (
            "vlans=\"10,30\"",
            "vlans=\"10,30\"\nprivate=true",
            "what it exchanges with other private adapters of its network",
        ),
        (
            "mtu=9000",
            "mtu=1500",
            "packets of more than 1500 bytes when it connects again: it was told 9000",
        ),
        (
            "[uplink.up]\nnetwork=\"n\"\nvlans=\"10,20\"\n",
            "",
            "its way out of the host in VLANs 1, 10",
        ),
        ("vlans=\"10,20\"", "vlans=\"20\"", "its way out of the host in VLAN 10"),
        ("\n[adapter.e]\nkind=\"ethernet\"\nnetwork=\"n\"\nvlans=\"10,30\"", "", "its network `n`"),
    ] {
        let why = lost("e", NET, &NET.replace(from, to));
        assert_eq!(why.as_deref(), Some(expected), "{to}");
    }
    for (from, to) in [
        ("vlans=\"10,20\"", "vlans=\"10\""),
        ("vlans=\"10,30\"", "vlans=\"10,30,40\""),
        ("mtu=9000", "mtu=9001"),
        ("vlans=\"10,30\"", "vlans=\"10,30\"\nlimit_tx_bytes_per_s=1\nstorm_broadcast=1"),
        ("vlans=\"10,30\"", "vlans=\"10,30\"\nmac=\"02:00:00:00:00:07\""),
    ] {
        assert_eq!(lost("e", NET, &NET.replace(from, to)), None, "{to}");
    }
    let guarded = |addresses: &str| format!("{NET}addresses=\"{addresses}\"\nrouter=false\n");
    for (from, to, loses) in [
        ("10.0.0.5", "10.0.0.0/24", false),
        ("10.0.0.0/24,fd00::5", "fd00::/64,10.0.0.0/16", false),
        ("10.0.0.5", "", false),
        ("10.0.0.0/24", "10.0.0.0/25,10.0.0.128/26", true),
        ("10.0.0.5,fd00::5", "10.0.0.5", true),
        ("0.0.0.0/0", "::/0", true),
    ] {
        assert_eq!(lost("e", &guarded(from), &guarded(to)).is_some(), loses, "{from} {to}");
    }
    assert_eq!(lost("e", &guarded(""), NET), None);
    // Another card of the machine has the same way out.
    let two = format!(
        "{NET}[network.m]\n[uplink.um]\nnetwork=\"m\"\nvlans=\"10\"\n[adapter.g]\nkind=\"ethernet\"\nnetwork=\"m\"\nvlans=\"10\"\n"
    );
    let without = two.replace("[uplink.up]\nnetwork=\"n\"\nvlans=\"10,20\"\n", "");
    let machine = clients(&[("e", Some(7)), ("g", Some(7))]);
    assert_eq!(lost_of(&machine, &two, &without), None);
    let two_machines = clients(&[("e", Some(7)), ("g", Some(8))]);
    let why = lost_of(&two_machines, &two, &without);
    assert_eq!(why.as_deref(), Some("its way out of the host in VLANs 1, 10"));
}

#[test]
fn a_socket_that_is_given_to_somebody_else_is_lost_at_the_next_connection() {
    let given = |to: &str| format!("{DISK}{to}\n");
    let client = |uid: u32, groups: Option<&[u32]>| {
        let identity =
            groups.map(|groups| Identity { uid, groups: groups.iter().copied().collect() });
        let process = Some(ClientStatus { pid: 7, uid });
        Connected::from([("a".to_owned(), Client { queues: 2, process, identity })])
    };
    let lost =
        |connected: &Connected, from: &str, to: &str| lost_of(connected, &given(from), &given(to));
    let kvm = client(107, Some(&[36]));
    let why = lost(&kvm, "group=\"36\"", "group=\"37\"").unwrap();
    assert!(
        why.starts_with("its socket /run/t/a.sock when it connects again, as after a restart of the data plane: it is user 107, who could not open what belongs to user")
            && why.ends_with("and group 37 with mode 0660"),
        "{why}"
    );
    assert!(lost(&kvm, "group=\"36\"", "").is_some());
    assert!(lost(&kvm, "group=\"36\"", "group=\"36\"\nmode=\"0640\"").is_some());
    assert!(lost(&kvm, "mode=\"0666\"", "mode=\"0660\"").is_some());
    assert!(lost(&kvm, "owner=\"107\"", "owner=\"108\"").is_some());
    // Whose groups are not known came in by that of the socket, and goes on by that.
    let stranger = client(107, None);
    assert!(lost(&stranger, "group=\"36\"", "group=\"37\"").is_some());
    for (connected, from, to) in [
        (&kvm, "group=\"36\"", "group=\"36\"\nmode=\"0620\""),
        (&kvm, "group=\"36\"", "group=\"37\"\nmode=\"0666\""),
        (&kvm, "group=\"36\"", "group=\"37\"\nowner=\"107\""),
        (&stranger, "group=\"36\"", "group=\"36\"\nowner=\"108\""),
        (&client(0, None), "group=\"36\"", "mode=\"0600\""),
        // Who had no right before was let in otherwise: by a descriptor that it was given.
        (&kvm, "mode=\"0600\"", "group=\"37\""),
        // Nothing is known of the process.
        (&clients(&[("a", None)]), "group=\"36\"", "group=\"37\""),
    ] {
        assert_eq!(lost(connected, from, to), None, "{to}");
    }
}
