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
    let connected = Connected::from([(adapter.to_owned(), 2)]);
    assert!(losses(&now, &next, &Connected::new()).is_empty(), "nobody is connected");
    losses(&now, &next, &connected).pop().map(|loss| loss.what)
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
