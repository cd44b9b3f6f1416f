//! The queue contract of a virtual Fibre Channel adapter, and where a value comes from.

use super::{narrow16, narrow32};
use crate::model::{Desired, home, text};
use fabric::attribute::{Attributes, Default, Object};
use fabric::negotiate::{Levels, NpivTerms, Policy, negotiate_npiv};

/// The terms of an adapter that its attributes, its data plane and its port bring. `client` are the queues that its client
/// uses, `data_plane` the channels that the data plane runs, where these are known.
pub fn npiv_terms(
    desired: &Desired,
    name: &str,
    set: &Attributes,
    client: Option<u32>,
    data_plane: Option<u32>,
) -> NpivTerms {
    let empty = Attributes::new();
    let number = |object: Object, set: &Attributes, name| {
        let value = desired.effective(object, set, name).and_then(|value| value.as_number());
        narrow32(value.unwrap_or(0))
    };
    let dataplane = desired.dataplanes.get(home(set)).unwrap_or(&empty);
    let port = text(set, "port").and_then(|port| desired.ports.get(port));
    let limit_intr = desired.effective(Object::Adapter, set, "limit_intr");
    NpivTerms {
        client,
        client_num_io_queues: None,
        num_per_range: number(Object::Adapter, set, "num_per_range"),
        inherited: number(Object::DataPlane, dataplane, "num_per_range"),
        data_plane,
        port: port.map(|port| number(Object::Port, port, "num_io_queues")),
        limit_intr: limit_intr.and_then(|value| value.as_switch()).unwrap_or(false),
        levels: Levels::ALL,
        policy: match text(set, "policy") {
            Some("aix") => Policy::Aix,
            _ => Policy::Linux,
        },
        earlier: desired.given.maxima.get(name).map(|maximum| maximum.channels),
    }
}

/// Most channels that may serve an adapter, whatever its client and its data plane have.
pub fn channels(desired: &Desired, name: &str, set: &Attributes) -> u16 {
    narrow16(negotiate_npiv(&npiv_terms(desired, name, set, None, None)).channels.into())
}

/// Where the effective value of an attribute comes from, in a few words.
pub fn source(desired: &Desired, object: Object, set: &Attributes, name: &str) -> String {
    let Some(attribute) = object.attribute(name) else { return String::new() };
    if set.contains_key(name) {
        return "set".to_owned();
    }
    match attribute.default {
        Default::Inherit(from, inherited) => {
            let parent = match from {
                Object::DataPlane => home(set),
                _ => text(set, from.noun()).unwrap_or_default(),
            };
            let own = desired.of(from).get(parent).is_some_and(|set| set.contains_key(inherited));
            if own { format!("{from} {parent}") } else { "default".to_owned() }
        }
        _ => "default".to_owned(),
    }
}
