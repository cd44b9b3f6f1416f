//! Random desired states that make sense, for property tests.

use super::validate::validate;
use super::{Desired, allocations};
use crate::paths::Paths;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attribute, Attributes, Kind, Object, Value, attr};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;

/// The folders of the samples.
pub(crate) fn paths() -> Paths {
    Paths::in_one("/run/t")
}

fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

/// A value that an attribute takes.
fn value(attribute: &'static Attribute) -> BoxedStrategy<Value> {
    match attribute.kind {
        Kind::Switch => any::<bool>().prop_map(Value::Switch).boxed(),
        Kind::Number { min, max } => (min..=max).prop_map(Value::Number).boxed(),
        Kind::NumberOrAuto { min, max } => {
            prop_oneof![(min..=max).prop_map(Value::Number), Just(text("auto"))].boxed()
        }
        Kind::PowerOfTwo { min, max } => (min.trailing_zeros()..=max.trailing_zeros())
            .prop_map(|shift| Value::Number(1 << shift))
            .boxed(),
        Kind::NumberOf(list) => select(list).prop_map(Value::Number).boxed(),
        Kind::Size { .. } => (1u64..1 << 20).prop_map(|n| Value::Number(n << 12)).boxed(),
        Kind::Word(list) => select(list).prop_map(text).boxed(),
        Kind::Text { bytes_max } => {
            proptest::collection::vec(select(&b"abc -,\"\\~"[..]), 0..=bytes_max)
                .prop_map(|bytes| text(String::from_utf8_lossy(&bytes)))
                .boxed()
        }
        Kind::Luns => select(&["all", "0-2", "0,5=1", "3=0"][..]).prop_map(text).boxed(),
        Kind::WwpnPrefix => Just(text("c0:50:76:aa:bb:cc")).boxed(),
        Kind::Naa => "[235][0-9a-f]{15}".prop_map(text).boxed(),
        // Those that name other objects, or must be unique, are chosen by hand.
        Kind::Name(_)
        | Kind::Names(_)
        | Kind::Members
        | Kind::LunMap
        | Kind::Wwpn
        | Kind::WwpnPair => Just(text("main")).boxed(),
        Kind::Path => "/[a-z]{1,8}(/[a-z.]{1,8}){0,2}".prop_map(text).boxed(),
        Kind::Cpus => select(&["", "0", "2-5,8"][..]).prop_map(text).boxed(),
        Kind::Mode => select(&["0600", "0660", "0666"][..]).prop_map(text).boxed(),
    }
}

/// Another value of an attribute of an object of [`desired`].
pub(crate) fn change_of(attribute: &'static Attribute) -> BoxedStrategy<Value> {
    let one_of = |list: &'static [&'static str]| select(list).prop_map(text).boxed();
    match attribute.kind {
        Kind::Name(Object::DataPlane) => one_of(&["main", "side"]),
        Kind::Name(Object::Volume) => one_of(&["v0", "v1", "v2", "v3"]),
        Kind::Name(Object::Port) | Kind::Names(Object::Port) => one_of(&["fcs0", "fcs1"]),
        Kind::Name(Object::Network) => one_of(&["n0", "n1"]),
        Kind::Name(Object::Uplink) => one_of(&["u0", "u1"]),
        Kind::Name(Object::Trunk) => one_of(&["r0", "r1", "r2"]),
        Kind::Names(Object::Uplink) => one_of(&["e0,e1", "e1,e0", "e0,u0", "u0,u1"]),
        Kind::Names(_) => one_of(&["r0", "r1", "r0,r1", "r1,r2"]),
        Kind::Number { max: 4094, .. } => (1u64..4).prop_map(Value::Number).boxed(),
        Kind::Name(Object::Medium) => one_of(&["m0", "m1"]),
        Kind::Name(_) => one_of(&["a0", "a1", "a2", "a3", "a4"]),
        Kind::Members => members().prop_map(text).boxed(),
        Kind::LunMap => one_of(&["", "0=v0", "0=v1,3=v0", "2=v2"]),
        Kind::Wwpn => one_of(&["50:05:07:68:01:00:00:42"]),
        Kind::WwpnPair => one_of(&["c0:50:76:00:00:2a:01:02,c0:50:76:00:00:2a:01:03"]),
        _ => value(attribute),
    }
}

/// Some attributes of an object, without those that name others, or must be unique.
fn some(object: Object) -> BoxedStrategy<Attributes> {
    let all: Vec<_> = object
        .attributes()
        .filter(|attribute| {
            use Kind::{LunMap, Members, Name, Names, Wwpn, WwpnPair};
            let by_hand = ["kind", "id", "lun", "max_adapters", "host"].contains(&attribute.name);
            let kind = attribute.kind;
            !by_hand && !matches!(kind, Name(_) | Names(_) | Members | LunMap | Wwpn | WwpnPair)
        })
        .map(|attribute| {
            let name = attribute.name.to_owned();
            proptest::option::weighted(0.15, value(attribute))
                .prop_map(move |v| Some((name.clone(), v?)))
        })
        .collect();
    all.prop_map(|pairs| pairs.into_iter().flatten().collect()).boxed()
}

fn volume() -> impl Strategy<Value = Attributes> {
    let kind = prop_oneof![
        4 => Just(&[("kind", "file"), ("path", "/data/a")][..]),
        2 => Just(&[("kind", "file"), ("path", "/data/b")][..]),
        2 => Just(&[("kind", "ram")][..]),
        2 => Just(&[("kind", "null")][..]),
    ];
    (some(Object::Volume), kind, 1u64..1 << 20).prop_map(|(mut set, kind, size)| {
        set.insert("size".to_owned(), Value::Number(size << 12));
        set.remove("path");
        set.remove("cache");
        for (name, value) in kind {
            set.insert((*name).to_owned(), text(*value));
        }
        fit(Object::Volume, &mut set);
        for name in ["delay_us_min", "limit_iops_burst", "limit_bytes_burst", "preallocate"] {
            set.remove(name);
        }
        set
    })
}

/// What its kind does not have goes.
fn fit(object: Object, set: &mut Attributes) {
    let kind = object.kind_of(set).map(str::to_owned);
    set.retain(|name, _| object.attribute(name).is_some_and(|a| a.is_of(kind.as_deref())));
}

fn dataplane() -> impl Strategy<Value = &'static str> {
    select(&["main", "main", "side"][..])
}

fn adapter() -> impl Strategy<Value = Attributes> {
    let names = (
        select(&["v0", "v1", "v2", "v3"][..]),
        dataplane(),
        select(&["block", "fc", "scsi"][..]),
        select(&["", "fcs0", "fcs1"][..]),
        any::<bool>(),
    );
    (some(Object::Adapter), names).prop_map(
        |(mut set, (volume, dataplane, kind, port, own_socket))| {
            set.insert("kind".to_owned(), text(kind));
            set.insert("dataplane".to_owned(), text(dataplane));
            set.insert("volume".to_owned(), text(volume));
            if !port.is_empty() {
                set.insert("port".to_owned(), text(port));
            }
            if !own_socket {
                set.remove("socket");
            }
            if set.get("read_only") == Some(&Value::Switch(false)) {
                set.remove("read_only");
            }
            fit(Object::Adapter, &mut set);
            set
        },
    )
}

/// An object with some attributes, and these.
fn with(
    object: Object,
    more: impl Strategy<Value = Vec<(&'static str, String)>>,
) -> impl Strategy<Value = Attributes> {
    (some(object), more).prop_map(move |(mut set, more)| {
        let more = more.into_iter().filter(|(_, value)| !value.is_empty());
        set.extend(more.map(|(name, value)| (name.to_owned(), text(value))));
        fit(object, &mut set);
        set
    })
}

fn target() -> impl Strategy<Value = Attributes> {
    let luns = proptest::collection::btree_map(0u16..6, "v[0-3]", 0..4);
    let ports = select(&["", "", "fcs0", "fcs1"][..]);
    with(
        Object::Target,
        (dataplane(), luns, ports).prop_map(|(dataplane, luns, ports)| {
            let luns = fabric::san::LunMap(luns).to_string();
            vec![("dataplane", dataplane.to_owned()), ("luns", luns), ("ports", ports.to_owned())]
        }),
    )
}

fn members() -> impl Strategy<Value = String> {
    let all = ["a0", "a1", "a2", "a3", "a4", "t0", "t1", "c0:50:76:00:00:2a:00:02"];
    let count = all.len();
    proptest::sample::subsequence(all.to_vec(), 1..=count).prop_map(|list| {
        let members = fabric::san::read_members(&list.join(",")).unwrap_or_default();
        fabric::san::write_members(&members)
    })
}

fn mask() -> impl Strategy<Value = Attributes> {
    with(
        Object::Mask,
        (members(), members()).prop_map(|(initiators, targets)| {
            vec![("initiators", initiators), ("targets", targets)]
        }),
    )
}

fn vtd() -> impl Strategy<Value = Attributes> {
    let medium = select(&["", "m0", "m1"][..]);
    let names = ("a[0-4]", "v[0-3]", select(&["disk", "optical"][..]), medium);
    with(
        Object::Vtd,
        names.prop_map(|(adapter, volume, kind, medium)| {
            vec![
                ("adapter", adapter),
                ("volume", volume),
                ("kind", kind.to_owned()),
                ("medium", medium.to_owned()),
            ]
        }),
    )
}

/// Networks with what leads out of them.
fn bridges() -> impl Strategy<Value = Vec<(Object, String, Attributes)>> {
    let number = |name, number| (name, Value::Number(number));
    let make = move |object, name: &str, pairs: Vec<(&str, Value)>| {
        let pairs = pairs.into_iter().filter(|(_, value)| *value != text(""));
        (object, name.to_owned(), pairs.map(|(name, value)| (name.to_owned(), value)).collect())
    };
    let network = || select(&["n0", "n0", "n1"][..]);
    let vlans = || select(&["", "10", "10-11,20"][..]);
    let uplink = (
        select(&["", "", "n0", "n1"][..]),
        select(&["", "10"][..]),
        select(&["", "", "e0,e1", "e1,e0"][..]),
    );
    let trunk = (network(), 1u64..4, vlans());
    let control = select(&["", "", "/run/c0", "/run/c1", "etcd:http://a:1/c"][..]);
    let sea = (select(&["u0", "u1"][..]), select(&["r0", "r1", "r0,r1"][..]), 1u64..4, control);
    let all = (
        proptest::collection::vec(uplink, 2),
        proptest::collection::vec(trunk, 3),
        proptest::collection::vec(sea, 2),
    );
    all.prop_map(move |(uplinks, trunks, seas)| {
        let mut all = Vec::new();
        for (name, side) in [("n0", "main"), ("n1", "side")] {
            all.push(make(Object::Network, name, vec![("dataplane", text(side))]));
        }
        for (name, (network, vlans, members)) in ["u0", "u1"].into_iter().zip(uplinks) {
            let vlans = if network.is_empty() { "" } else { vlans };
            let pairs = vec![
                ("network", text(network)),
                ("vlans", text(vlans)),
                ("members", text(members)),
            ];
            all.push(make(Object::Uplink, name, pairs));
        }
        all.extend(["e0", "e1"].map(|name| make(Object::Uplink, name, Vec::new())));
        for (name, (network, pvid, vlans)) in ["r0", "r1", "r2"].into_iter().zip(trunks) {
            let pairs =
                vec![("network", text(network)), number("pvid", pvid), ("vlans", text(vlans))];
            all.push(make(Object::Trunk, name, pairs));
        }
        for (name, (real, virt, pvid, control)) in ["s0", "s1"].into_iter().zip(seas) {
            let pairs = vec![
                ("real_adapter", text(real)),
                ("virt_adapters", text(virt)),
                ("pvid_adapter", text(virt.split(',').next().unwrap_or_default())),
                number("pvid", pvid),
                (if control.starts_with("etcd") { "token" } else { "ctl_chan" }, text(control)),
                ("ha_mode", text(if control.is_empty() { "" } else { "auto" })),
                number("priority", pvid),
            ];
            all.push(make(Object::Sea, name, pairs));
        }
        all
    })
}

/// Objects of every sort, in the order in which they can be made.
fn objects() -> impl Strategy<Value = Vec<(Object, String, Attributes)>> {
    use proptest::collection::btree_map;
    let zone = with(Object::Zone, members().prop_map(|members| vec![("members", members)]));
    let port = |dataplane: &str| {
        let dataplane = dataplane.to_owned();
        with(Object::Port, Just(vec![("dataplane", dataplane)]))
    };
    let medium = |n: u8| with(Object::Medium, Just(vec![("path", format!("/iso/{n}"))]));
    let few = (port("main"), port("side"), medium(0), medium(1), bridges());
    let all = (
        btree_map("v[0-3]", volume(), 0..=4),
        few,
        btree_map("t[01]", target(), 0..=2),
        btree_map("a[0-4]", adapter(), 0..=5),
        btree_map("d[0-3]", vtd(), 0..=3),
        btree_map("z[01]", zone, 0..=2),
        btree_map("k[0-2]", mask(), 0..=3),
    );
    all.prop_map(
        |(volumes, (main, side, m0, m1, bridges), targets, adapters, vtds, zones, masks)| {
            let name = |name: &str, set| (name.to_owned(), set);
            let ports = [name("fcs0", main), name("fcs1", side)].into();
            let media = [name("m0", m0), name("m1", m1)].into();
            [
                (Object::Volume, volumes),
                (Object::Port, ports),
                (Object::Medium, media),
                (Object::Target, targets),
                (Object::Adapter, adapters),
                (Object::Vtd, vtds),
                (Object::Zone, zones),
                (Object::Mask, masks),
            ]
            .into_iter()
            .flat_map(|(object, all): (Object, BTreeMap<String, Attributes>)| {
                all.into_iter().map(move |(name, set)| (object, name, set))
            })
            .chain(bridges)
            .collect()
        },
    )
}

/// A valid state with up to four volumes, five adapters of all kinds, two data planes, and a fabric.
pub(crate) fn desired() -> impl Strategy<Value = Desired> {
    (some(Object::DataPlane), objects()).prop_map(|(side, objects)| valid(side, objects))
}

/// A valid state of nothing but networks in two data planes.
pub(crate) fn wired() -> impl Strategy<Value = Desired> {
    bridges().prop_map(|objects| valid(Attributes::new(), objects))
}

fn valid(side: Attributes, objects: Vec<(Object, String, Attributes)>) -> Desired {
    let mut desired = Desired::default();
    desired[Object::DataPlane].insert("side".to_owned(), side);
    // Objects that break a rule between objects are left out.
    for (object, name, mut set) in objects {
        if object == Object::Zone || object == Object::Mask {
            set.values_mut().for_each(|value| only_known(&desired, value));
        }
        keep_if_valid(&mut desired, object, name, set);
    }
    validate(&desired, &paths()).expect("every step was valid")
}

/// Members that are there.
fn only_known(desired: &Desired, value: &mut Value) {
    let Value::Text(list) = value else { return };
    if list == "all" || !list.starts_with(['a', 't', 'c']) {
        return;
    }
    let known = |word: &&str| {
        let fc = desired[Object::Adapter].get(word);
        let fc = fc.is_some_and(|set| attr::adapter::KIND.value(set) == AdapterKind::Fc);
        fc || desired[Object::Target].contains_key(word) || word.contains(':')
    };
    *list = list.split(',').filter(known).collect::<Vec<_>>().join(",");
}

fn keep_if_valid(desired: &mut Desired, object: Object, name: String, set: Attributes) {
    let before = desired.clone();
    desired[object].insert(name, set);
    let settled = allocations::settle(&before, desired, 42);
    if settled.is_err() || validate(desired, &paths()).is_err() {
        *desired = before;
    }
}
