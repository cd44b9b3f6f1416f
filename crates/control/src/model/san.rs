//! The fabric that a desired state describes.

use super::{AdapterKind, Desired, MAIN, adapter_kind, home, number, text};
use fabric::attribute::{Attributes, Object};
use fabric::san::{Initiator, LunMap, Luns, Mask, San, Target, Wwpn, read_members, read_pair};
use std::collections::{BTreeMap, BTreeSet};

/// The fabric. What has no WWPN yet is not in it.
pub fn san(desired: &Desired) -> San {
    // One that stands for an HBA reaches none of the server's targets.
    let ports = desired.ports.iter().filter(|(_, set)| text(set, "host").is_none());
    let ports = ports.map(|(name, set)| (name.clone(), home(set).to_owned()));
    let fc = desired.adapters.iter().filter(|(_, set)| adapter_kind(set) == AdapterKind::Fc);
    let initiators = fc.filter_map(|(name, set)| {
        let port = text(set, "port").map(str::to_owned);
        Some((name.clone(), Initiator { wwpns: wwpns(set)?, port }))
    });
    let targets = desired.targets.iter().filter_map(|(name, set)| {
        let target = Target {
            wwpn: text(set, "wwpn")?.parse().ok()?,
            id: u8::try_from(number(set, "id")?).ok()?,
            group: home(set).to_owned(),
            ports: names(set, "ports"),
            luns: luns(set),
        };
        Some((name.clone(), target))
    });
    let members = |set, name| text(set, name).and_then(|list| read_members(list).ok());
    let zones = desired.zones.values().filter_map(|set| members(set, "members"));
    let masks = desired.masks.values().filter_map(|set| {
        Some(Mask {
            initiators: members(set, "initiators")?,
            targets: members(set, "targets")?,
            luns: text(set, "luns").map_or(Some(Luns::All), |luns| luns.parse().ok())?,
        })
    });
    San {
        ports: ports.collect(),
        initiators: initiators.collect(),
        targets: targets.collect(),
        zones: zones.collect(),
        masks: masks.collect(),
        remote: desired.found.visible(),
    }
}

/// The LUNs of a target.
pub fn luns(set: &Attributes) -> BTreeMap<u16, String> {
    text(set, "luns").and_then(|luns| luns.parse::<LunMap>().ok()).unwrap_or_default().0
}

/// The WWPNs of an adapter.
pub fn wwpns(set: &Attributes) -> Option<[Wwpn; 2]> {
    read_pair(text(set, "wwpns")?).ok()
}

fn names(set: &Attributes, attribute: &str) -> BTreeSet<String> {
    let list = text(set, attribute).unwrap_or_default().split(',');
    list.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// How many adapters a port takes: what was set, else what its link speed allows.
pub fn max_adapters(desired: &Desired, port: &str) -> u64 {
    let empty = Attributes::new();
    let set = desired.ports.get(port).unwrap_or(&empty);
    let speed = desired.effective(Object::Port, set, "link_speed").and_then(|v| v.as_number());
    number(set, "max_adapters").unwrap_or(if speed.unwrap_or(0) > 16 { 255 } else { 64 })
}

/// The adapters that are mapped to a port.
pub fn adapters_on<'a>(desired: &'a Desired, port: &'a str) -> impl Iterator<Item = &'a str> {
    let all = desired.adapters.iter().filter(move |(_, set)| text(set, "port") == Some(port));
    all.map(|(name, _)| name.as_str())
}

/// The data plane of a port.
pub fn dataplane_of_port<'a>(desired: &'a Desired, port: &str) -> &'a str {
    desired.ports.get(port).map_or(MAIN, home)
}
