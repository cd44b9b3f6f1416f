//! Random desired states that make sense, for property tests.

use super::Desired;
use super::validate::validate;
use crate::paths::Paths;
use fabric::attribute::{Attribute, Attributes, Kind, Object, Value};
use proptest::prelude::*;
use proptest::sample::select;

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
        Kind::Name(_) => Just(text("main")).boxed(),
        Kind::Path => "/[a-z]{1,8}(/[a-z.]{1,8}){0,2}".prop_map(text).boxed(),
        Kind::Cpus => select(&["", "0", "2-5,8"][..]).prop_map(text).boxed(),
        Kind::Mode => select(&["0600", "0660", "0666"][..]).prop_map(text).boxed(),
    }
}

/// Some attributes of an object, without those that name others.
fn some(object: Object) -> BoxedStrategy<Attributes> {
    let all: Vec<_> = object
        .attributes()
        .filter(|attribute| !matches!(attribute.kind, Kind::Name(_)))
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
        for (name, value) in kind {
            set.insert((*name).to_owned(), text(*value));
        }
        // What does not go together.
        if set["kind"] != text("file") {
            for name in ["cache", "create", "preallocate"] {
                set.remove(name);
            }
        }
        if set["kind"] != text("null") {
            set.remove("zero_fill");
        }
        for name in ["delay_us_min", "limit_iops_burst", "limit_bytes_burst", "preallocate"] {
            set.remove(name);
        }
        set
    })
}

fn adapter() -> impl Strategy<Value = Attributes> {
    let names = (
        select(&["v0", "v1", "v2", "v3"][..]),
        select(&["main", "main", "side"][..]),
        any::<bool>(),
    );
    (some(Object::Adapter), names).prop_map(|(mut set, (volume, dataplane, own_socket))| {
        set.insert("volume".to_owned(), text(volume));
        set.insert("dataplane".to_owned(), text(dataplane));
        if !own_socket {
            set.remove("socket");
        }
        if set.get("read_only") == Some(&Value::Switch(false)) {
            set.remove("read_only");
        }
        set
    })
}

/// A valid state with up to four volumes, five adapters and two data planes.
pub(crate) fn desired() -> impl Strategy<Value = Desired> {
    let side = some(Object::DataPlane);
    let volumes = proptest::collection::btree_map("v[0-3]", volume(), 0..=4);
    let adapters = proptest::collection::btree_map("a[0-4]", adapter(), 0..=5);
    (side, volumes, adapters).prop_map(|(side, volumes, adapters)| {
        let mut desired = Desired {
            dataplanes: [("side".to_owned(), side)].into(),
            volumes,
            adapters: Default::default(),
        };
        // Objects that break a rule between objects are left out.
        let mut volumes = std::mem::take(&mut desired.volumes);
        while let Some((name, set)) = volumes.pop_first() {
            keep_if_valid(&mut desired, Object::Volume, name, set);
        }
        for (name, set) in adapters {
            keep_if_valid(&mut desired, Object::Adapter, name, set);
        }
        validate(&desired, &paths()).expect("every step was valid")
    })
}

fn keep_if_valid(desired: &mut Desired, object: Object, name: String, set: Attributes) {
    desired.of_mut(object).insert(name.clone(), set);
    if validate(desired, &paths()).is_err() {
        desired.of_mut(object).remove(&name);
    }
}
