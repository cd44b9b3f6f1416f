use super::*;
use crate::hba::Disk;
use crate::model::discovered::Discovered;
use crate::model::{allocations, samples};
use fabric::attribute::Value;
use proptest::prelude::*;
use proptest::sample::Index;
use std::fmt::Write as _;

/// What is done to a state.
#[derive(Debug, Clone)]
enum Step {
    /// An object goes.
    Remove(Index),
    /// One becomes as another state has it.
    Take(Index),
    /// An attribute of one gets another value, by the name of the attribute.
    Set(Index, &'static str, Value),
}

fn step() -> impl Strategy<Value = Step> {
    step_in(&Object::ALL)
}

/// With attributes of these.
fn step_in(objects: &[Object]) -> impl Strategy<Value = Step> + use<> {
    let attributes: Vec<_> = objects.iter().copied().flat_map(Object::attributes).collect();
    let set = proptest::sample::select(attributes).prop_flat_map(|attribute| {
        (any::<Index>(), samples::change_of(attribute))
            .prop_map(|(index, value)| Step::Set(index, attribute.name, value))
    });
    prop_oneof![
        2 => any::<Index>().prop_map(Step::Remove),
        4 => any::<Index>().prop_map(Step::Take),
        4 => set,
    ]
}

fn keys(state: &Desired) -> Vec<Key> {
    Desired::default().touched(state)
}

fn carry_out(step: &Step, state: &mut Desired, other: &Desired) {
    let all = keys(if matches!(step, Step::Take(_)) { other } else { state });
    if all.is_empty() {
        return;
    }
    match step {
        Step::Remove(index) => {
            let (object, name) = index.get(&all);
            state[*object].remove(name);
        }
        Step::Take(index) => {
            let (object, name) = index.get(&all);
            state[*object].insert(name.clone(), other[*object][name.as_str()].clone());
        }
        Step::Set(index, attribute, value) => {
            let having: Vec<&Key> =
                all.iter().filter(|(object, _)| object.attribute(attribute).is_some()).collect();
            if having.is_empty() {
                return;
            }
            let (object, name) = index.get(&having);
            if let Some(set) = state[*object].get_mut(name) {
                set.insert((*attribute).to_owned(), value.clone());
            }
        }
    }
}

/// Over several changes, since who has to do with whom is followed.
fn judged_alike(
    first: Desired,
    other: &Desired,
    changes: &[Vec<Step>],
) -> Result<(), TestCaseError> {
    let paths = samples::paths();
    let (mut now, mut neighbours) = (first, Neighbours::default());
    for steps in changes {
        neighbours.follow(&now, &paths);
        let mut next = now.clone();
        steps.iter().for_each(|step| carry_out(step, &mut next, other));
        if allocations::settle(&now, &mut next, 42).is_err() {
            continue;
        }
        let whole = validate(&next, &paths);
        let part = neighbours.part(&next, &now.touched(&next), &paths);
        if let (Ok(_), Err(refusal)) = (validate(&part, &paths), &whole) {
            panic!("not refused: {refusal}\n{part:?}\n{next:?}");
        }
        prop_assert_eq!(neighbours.validate(&next, &paths), whole.clone());
        for key in keys(&now) {
            let found = neighbours.users(&next, &now.touched(&next), &key);
            let users = next.users();
            let expected = users.of(key.0, &key.1);
            let found: Vec<(Object, &str)> =
                found.iter().map(|(object, name)| (*object, name.as_str())).collect();
            prop_assert_eq!(found, expected);
        }
        now = whole.unwrap_or(now);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_change_is_judged_as_the_whole_state_is(
        first in samples::desired(),
        other in samples::desired(),
        changes in proptest::collection::vec(proptest::collection::vec(step(), 1..4), 1..5),
    ) {
        judged_alike(first, &other, &changes)?;
    }

    /// Networks alone are judged sooner, so more of them.
    #[test]
    fn a_change_of_networks_is_judged_as_the_whole_state_is(
        first in samples::wired(),
        other in samples::wired(),
        changes in proptest::collection::vec(
            proptest::collection::vec(
                step_in(&[Object::Network, Object::Uplink, Object::Trunk, Object::Sea]),
                1..4,
            ),
            1..9,
        ),
    ) {
        judged_alike(first, &other, &changes)?;
    }

    /// Also by who knows the neighbours of an earlier state only.
    #[test]
    fn what_data_planes_shall_be_follows_a_change_as_if_all_of_it_were_worked_out(
        first in samples::desired(),
        other in samples::desired(),
        changes in proptest::collection::vec(
            (any::<bool>(), proptest::collection::vec(step(), 1..4)),
            1..6,
        ),
        hba in proptest::option::of(proptest::collection::vec(0_u16..4, 4)),
    ) {
        let paths = samples::paths();
        let (mut now, mut neighbours) = (first, Neighbours::default());
        if let Some(luns) = hba {
            now.discovered = found(&now, &luns).into();
        }
        for (follow, steps) in &changes {
            if *follow {
                neighbours.follow(&now, &paths);
            }
            let mut next = now.clone();
            steps.iter().for_each(|step| carry_out(step, &mut next, &other));
            if allocations::settle(&now, &mut next, 42).is_err() {
                continue;
            }
            let Ok(next) = validate(&next, &paths) else { continue };
            if let Some((found, _)) = neighbours.wanted((&now, &whole(&now)), &next, &paths) {
                prop_assert_eq!(found, whole(&next));
            }
            now = next;
        }
    }
}

/// Disks behind virtual ports of its first adapters.
fn found(state: &Desired, luns: &[u16]) -> Discovered {
    let disk = |host: usize, lun: u16| Disk {
        host: host as u32,
        id: host as u8,
        target: "50:05:07:68:01:00:00:09".parse().unwrap(),
        lun,
        device: format!("/dev/sd{host}{lun}").into(),
        block_size: 512,
        wwid: format!("naa.600507680000000{lun}"),
    };
    let fc = state[Object::Adapter]
        .iter()
        .filter(|(_, set)| attr::adapter::KIND.value(set) == AdapterKind::Fc);
    let seen = fc.zip(luns).enumerate().map(|(host, ((name, _), lun))| {
        (name.clone(), (0..*lun).map(|lun| disk(host, lun)).collect())
    });
    Discovered { seen: seen.collect(), ..Discovered::default() }
}

/// What data planes shall be.
fn whole(state: &Desired) -> WantedOfAll {
    let of = |name: String| (name.clone(), resolve::wanted(state, &name, &samples::paths()));
    state.dataplane_names().into_iter().map(of).collect()
}

/// Clients that see disks in every way, members of zones and masks by name and by WWPN.
const EVERY_WAY: &str = "[dataplane.side]\n[port.p]\n[volume.v]\nkind=\"null\"\nsize=4096\n[volume.w]\nkind=\"null\"\nsize=4096\n\
    [target.t]\nwwpn=\"50:05:07:68:01:00:00:01\"\nluns=\"0=v\"\n[target.u]\nwwpn=\"50:05:07:68:01:00:00:02\"\nluns=\"3=w\"\n\
    [adapter.f]\nkind=\"fc\"\nport=\"p\"\nwwpns=\"c0:50:76:00:00:01:00:00,c0:50:76:00:00:01:00:01\"\n\
    [adapter.g]\nkind=\"fc\"\nport=\"p\"\nwwpns=\"c0:50:76:00:00:01:00:02,c0:50:76:00:00:01:00:03\"\n\
    [zone.names]\nmembers=\"f,t\"\n[zone.wwpns]\nmembers=\"c0:50:76:00:00:01:00:02,50:05:07:68:01:00:00:02\"\n\
    [mask.names]\ninitiators=\"f\"\ntargets=\"t\"\n\
    [mask.wwpns]\ninitiators=\"c0:50:76:00:00:01:00:02\"\ntargets=\"50:05:07:68:01:00:00:02\"\n\
    [volume.b]\nkind=\"null\"\nsize=4096\n[adapter.b]\nvolume=\"b\"\n\
    [volume.d]\nkind=\"null\"\nsize=4096\n[adapter.s]\nkind=\"scsi\"\ndataplane=\"side\"\n\
    [medium.m]\npath=\"/m\"\n[vtd.cd]\nkind=\"optical\"\nadapter=\"s\"\nmedium=\"m\"\n[vtd.disk]\nadapter=\"s\"\nvolume=\"d\"\n";

#[test]
fn what_clients_see_in_every_way_follows_a_change_of_all_that_it_takes() {
    let paths = samples::paths();
    let mut all = crate::config::read(&format!("{BESIDE}{EVERY_WAY}{WIRED}{POOLED}")).unwrap();
    allocations::settle(&Desired::default(), &mut all, 1).unwrap();
    let all = validate(&all, &paths).unwrap();
    let mut neighbours = Neighbours::default();
    neighbours.follow(&all, &paths);
    let text = |text: &str| Value::Text(text.to_owned());
    let mut others: Vec<(String, Desired)> = Vec::new();
    for (object, name) in keys(&all) {
        let mut without = all.clone();
        without[object].remove(&name);
        others.push((format!("without {object} {name}"), without));
    }
    for (object, name, attribute, value) in [
        (Object::Zone, "names", "members", text("g,t")),
        (Object::Zone, "names", "members", text("f,g,t,u")),
        (Object::Zone, "wwpns", "members", text("c0:50:76:00:00:01:00:00,50:05:07:68:01:00:00:02")),
        (Object::Mask, "names", "luns", text("5=0")),
        (Object::Mask, "wwpns", "luns", text("7=3")),
        (Object::Target, "t", "luns", text("0=v,1=w")),
        (Object::Target, "u", "luns", text("4=w")),
        (Object::Port, "p", "max_xfer_size", Value::Number(1 << 17)),
        (Object::Volume, "b", "read_only", Value::Switch(true)),
        (Object::Volume, "w", "read_only", Value::Switch(true)),
        (Object::Adapter, "b", "dataplane", text("side")),
        (Object::Adapter, "s", "dataplane", text("main")),
        (Object::Adapter, "f", "queues", Value::Number(3)),
        (Object::Vtd, "disk", "lun", Value::Number(9)),
        (Object::Medium, "m", "path", text("/n")),
        (Object::Network, "n", "mtu", Value::Number(9000)),
        (Object::Network, "n", "dataplane", text("side")),
        (Object::Uplink, "up", "vlans", text("7")),
        (Object::Adapter, "e", "pvid", Value::Number(5)),
        (Object::Pool, "r", "dataplane", text("side")),
        (Object::Volume, "l", "thick", Value::Switch(true)),
    ] {
        let mut other = all.clone();
        let set = other[object].get_mut(name).unwrap();
        set.insert(attribute.to_owned(), value.clone());
        others.push((format!("{object} {name} {attribute} {value}"), other));
    }
    let mut seen = 0;
    for (what, other) in others {
        let Ok(other) = validate(&other, &paths) else { continue };
        for (now, next) in [(&all, &other), (&other, &all)] {
            let (before, after) = (whole(now), whole(next));
            seen += usize::from(before != after);
            match neighbours.wanted((now, &before), next, &paths) {
                Some((made, _)) => assert!(made == after, "{what}"),
                None => assert!(what == "without dataplane side", "{what}"),
            }
            // The same with disks that are found behind the HBA of a client: what has to do with these is worked out as a whole.
            let [now, next] = [now, next].map(|state| {
                let discovered = found(state, &[2]).into();
                Desired { discovered, ..state.clone() }
            });
            let (before, after) = (whole(&now), whole(&next));
            if let Some((made, _)) = neighbours.wanted((&now, &before), &next, &paths) {
                assert!(made == after, "{what}, with an HBA");
            }
        }
    }
    assert!(seen >= 52, "{seen}");
}

/// A network with a client and a way out.
const WIRED: &str = "[network.n]\n[adapter.e]\nkind=\"ethernet\"\nnetwork=\"n\"\n\
    [uplink.up]\nnetwork=\"n\"\ninterface=\"eth7\"\n";

/// An LU, and its client.
const POOLED: &str = "[pool.q]\npvs=\"/q1\"\n[volume.l]\nkind=\"lu\"\npool=\"q\"\nsize=\"64MiB\"\n[adapter.l]\nvolume=\"l\"\n\
    [volume.k]\nkind=\"lu\"\npool=\"q\"\nsize=\"64MiB\"\n[pool.r]\npvs=\"/r1\"\n[volume.j]\nkind=\"lu\"\npool=\"r\"\nsize=\"64MiB\"\n";

/// Adapters of virtual Fibre Channel, each with a zone and two masks, ten to a target.
pub(crate) fn fabric_of(count: usize) -> Desired {
    let mut text = String::new();
    for port in 0..count.div_ceil(200) {
        let _ = writeln!(text, "[port.p{port}]\nmax_adapters = 255");
    }
    for target in 0..count.div_ceil(10) {
        let _ = writeln!(text, "[target.t{target}]\nid = {}\nluns = \"0=v{target}\"", target % 250);
        let _ = writeln!(text, "[volume.v{target}]\nkind = \"null\"\nsize = \"1MiB\"");
    }
    for n in 0..count {
        let (port, target) = (n / 200, n / 10);
        let _ = writeln!(text, "[adapter.f{n}]\nkind = \"fc\"\nport = \"p{port}\"");
        let _ = writeln!(text, "[zone.z{n}]\nmembers = \"f{n},t{target}\"");
        for mask in ["a", "b"] {
            let _ = writeln!(
                text,
                "[mask.m{n}{mask}]\ninitiators = \"f{n}\"\ntargets = \"t{target}\"\nluns = \"0\""
            );
        }
    }
    let mut desired = crate::config::read(&text).unwrap();
    allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
    validate(&desired, &samples::paths()).unwrap()
}

#[test]
fn what_a_change_does_not_touch_is_not_judged() {
    let paths = samples::paths();
    let judged = |count: usize, change: &dyn Fn(&mut Desired)| {
        let now = fabric_of(count);
        let mut neighbours = Neighbours::default();
        neighbours.follow(&now, &paths);
        let mut next = now.clone();
        change(&mut next);
        neighbours.validate(&next, &paths).unwrap();
        neighbours.judged.get()
    };
    let set = |object: Object, name: &'static str, attribute: &'static str, value: Value| {
        move |state: &mut Desired| {
            state[object].get_mut(name).unwrap().insert(attribute.to_owned(), value.clone());
        }
    };
    let queues = set(Object::Adapter, "f1", "queues", Value::Number(3));
    let size = set(Object::Volume, "v0", "size", Value::Number(1 << 21));
    let luns = set(Object::Mask, "m1a", "luns", Value::Text("all".to_owned()));
    let changes: [&dyn Fn(&mut Desired); 4] = [&queues, &size, &luns, &|state| {
        state[Object::Zone].remove("z1");
    }];
    for change in changes {
        let (few, many) = (judged(100, change), judged(1000, change));
        assert!(few < 20, "{few}");
        assert_eq!(few, many);
    }
}

/// What is there, and two objects that do not go together.
const DISPUTES: [(&str, &str, &str); 19] = [
    // One LUN number for two LUNs, the initiator named in three ways.
    (
        FABRIC,
        "[mask.a]\ninitiators=\"f\"\ntargets=\"t\"\nluns=\"0\"",
        "[mask.b]\ninitiators=\"f\"\ntargets=\"t\"\nluns=\"0=1\"",
    ),
    (
        FABRIC,
        "[mask.a]\ninitiators=\"f\"\ntargets=\"t\"\nluns=\"0\"",
        "[mask.b]\ninitiators=\"c0:50:76:00:00:01:00:00\"\ntargets=\"t\"\nluns=\"0=1\"",
    ),
    (
        FABRIC,
        "[mask.a]\ninitiators=\"c0:50:76:00:00:01:00:01\"\ntargets=\"50:05:07:68:01:00:00:01\"\nluns=\"0\"",
        "[mask.b]\ninitiators=\"f\"\ntargets=\"t\"\nluns=\"0=1\"",
    ),
    // More adapters than a port takes.
    (
        "[port.p]\nmax_adapters=1",
        "[adapter.f]\nkind=\"fc\"\nport=\"p\"",
        "[adapter.g]\nkind=\"fc\"\nport=\"p\"",
    ),
    ("", "[volume.a]\nkind=\"file\"\npath=\"/x\"", "[volume.b]\nkind=\"file\"\npath=\"/x\""),
    ("", "[volume.a]\nkind=\"file\"\npath=\"/x\"", "[medium.b]\npath=\"/x\""),
    (
        "",
        "[volume.a]\nkind=\"null\"\nsize=4096\nnaa=\"2000000000000001\"",
        "[volume.b]\nkind=\"null\"\nsize=4096\nnaa=\"2000000000000001\"",
    ),
    (DISK, "[adapter.a]\nkind=\"fc\"\nsocket=\"/s\"", "[adapter.b]\nvolume=\"v\"\nsocket=\"/s\""),
    (
        "",
        "[dataplane.side]\ncpus=\"0\"",
        "[adapter.b]\nkind=\"fc\"\nsocket=\"/run/t/dataplane-side.sock\"",
    ),
    (DISK, "[adapter.a]\nvolume=\"v\"", "[target.t]\nluns=\"0=v\""),
    ("", "[target.a]\nid=7", "[target.b]\nid=7"),
    (
        "",
        "[target.a]\nwwpn=\"c0:50:76:00:00:01:00:01\"",
        "[adapter.f]\nkind=\"fc\"\nwwpns=\"c0:50:76:00:00:01:00:01,c0:50:76:00:00:01:00:02\"",
    ),
    (
        "[adapter.s]\nkind=\"scsi\"",
        "[vtd.a]\nadapter=\"s\"\nvolume=\"o1\"\nlun=3",
        "[vtd.b]\nadapter=\"s\"\nvolume=\"o2\"\nlun=3",
    ),
    // One name for two devices of networks.
    (NETWORK, "[adapter.ent5]\nkind=\"fc\"", "[trunk.ent5]\nnetwork=\"n\""),
    (
        NETWORK,
        "[uplink.ent6]",
        "[sea.ent6]\nreal_adapter=\"ent1\"\nvirt_adapters=\"t\"\npvid_adapter=\"t\"\npvid=9",
    ),
    // Two ways out for a VLAN.
    (NETWORK, "[uplink.a]\nnetwork=\"n\"", "[uplink.b]\nnetwork=\"n\"\npvid=2\nvlans=\"1\""),
    (NETWORK, SEA, "[uplink.a]\nnetwork=\"n\"\npvid=9"),
    (NETWORK, SEA, "[trunk.a]\nnetwork=\"n\"\npvid=2\nvlans=\"9\""),
    // Two shared adapters on one uplink.
    (
        NETWORK,
        SEA,
        "[sea.b]\nreal_adapter=\"ent1\"\nvirt_adapters=\"u\"\npvid_adapter=\"u\"\npvid=8",
    ),
];
const NETWORK: &str = "[network.n]\n[uplink.ent1]\n[trunk.t]\nnetwork=\"n\"\npvid=9\n[trunk.u]\nnetwork=\"n\"\npvid=8";
const SEA: &str = "[sea.a]\nreal_adapter=\"ent1\"\nvirt_adapters=\"t\"\npvid_adapter=\"t\"\npvid=9";
const DISK: &str = "[volume.v]\nkind=\"null\"\nsize=4096";
const FABRIC: &str = "[volume.v]\nkind=\"null\"\nsize=4096\n[volume.w]\nkind=\"null\"\nsize=4096\n[port.p]\n\
    [target.t]\nwwpn=\"50:05:07:68:01:00:00:01\"\nluns=\"0=v,1=w\"\n\
    [adapter.f]\nkind=\"fc\"\nport=\"p\"\nwwpns=\"c0:50:76:00:00:01:00:00,c0:50:76:00:00:01:00:01\"\n";
/// What is beside it, so that the part is a small one.
const BESIDE: &str = "[volume.o1]\nkind=\"null\"\nsize=4096\n[volume.o2]\nkind=\"null\"\nsize=4096\n[volume.o3]\nkind=\"null\"\nsize=4096\n";

#[test]
fn a_dispute_is_seen_from_either_side() {
    let paths = samples::paths();
    for (there, first, second) in DISPUTES {
        let state = |objects: &[&str], before: &Desired| {
            let mut state = crate::config::read(&objects.join("\n")).unwrap();
            allocations::settle(before, &mut state, 1).unwrap();
            state.allocations.system = Some(1);
            state
        };
        let parts = |first, second| {
            let now = state(&[BESIDE, there, first], &Desired::default());
            let now = validate(&now, &paths).unwrap();
            let next = state(&[BESIDE, there, first, second], &now);
            let mut neighbours = Neighbours::default();
            neighbours.follow(&now, &paths);
            assert!(validate(&next, &paths).is_err(), "{first}\n{second}");
            let part = neighbours.part(&next, &now.touched(&next), &paths);
            assert!(validate(&part, &paths).is_err(), "{first}\n{second}\n{part:?}");
            assert_eq!(neighbours.validate(&next, &paths), validate(&next, &paths));
        };
        parts(first, second);
        parts(second, first);
    }
}

#[test]
fn a_network_that_moves_is_judged_with_all_beside_the_partner() {
    let paths = samples::paths();
    let sea = |name: &str, uplink: &str, trunk: &str, pvid: u16| {
        format!(
            "[uplink.{uplink}]\n[sea.{name}]\nreal_adapter=\"{uplink}\"\nvirt_adapters=\"{trunk}\"\npvid_adapter=\"{trunk}\"\npvid={pvid}\n\
             priority={pvid}\nha_mode=\"auto\"\nctl_chan=\"/run/c\"\n"
        )
    };
    let text = "[dataplane.side]\n[network.n]\n[network.m]\ndataplane=\"side\"\n\
        [trunk.a]\nnetwork=\"n\"\npvid=1\n[trunk.b]\nnetwork=\"m\"\npvid=2\n[trunk.c]\nnetwork=\"n\"\npvid=2\n";
    let text = format!("{BESIDE}{text}{}{}", sea("s", "u", "a", 1), sea("t", "v", "b", 2));
    let mut now = crate::config::read(&text).unwrap();
    allocations::settle(&Desired::default(), &mut now, 1).unwrap();
    now.allocations.system = Some(1);
    let now = validate(&now, &paths).unwrap();
    let mut neighbours = Neighbours::default();
    neighbours.follow(&now, &paths);
    let mut next = now.clone();
    let network = next[Object::Network].get_mut("m").unwrap();
    network.insert("dataplane".to_owned(), Value::Text("main".to_owned()));
    let whole = validate(&next, &paths);
    assert!(
        whole.as_ref().is_err_and(|refusal| refusal.message.contains("same VLAN")),
        "{whole:?}"
    );
    let part = neighbours.part(&next, &now.touched(&next), &paths);
    assert!(validate(&part, &paths).is_err(), "{part:?}");
}
