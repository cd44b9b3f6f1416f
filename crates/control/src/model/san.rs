//! The fabric that a desired state describes.

use super::{Desired, MAIN, NOTHING, home};
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attributes, Object, attr};
use fabric::san::{Initiator, LunMap, Luns, Mask, San, Target, Wwpn, read_members, read_pair};
use std::collections::BTreeMap;

/// The fabric. What has no WWPN yet is not in it.
pub fn san(desired: &Desired) -> San {
    // One that stands for an HBA reaches none of the server's targets.
    let ports = desired[Object::Port].iter().filter(|(_, set)| attr::port::HOST.of(set).is_none());
    let ports = ports.map(|(name, set)| (name.clone(), home(set).to_owned()));
    let fc = desired[Object::Adapter]
        .iter()
        .filter(|(_, set)| attr::adapter::KIND.value(set) == AdapterKind::Fc);
    let initiators = fc.filter_map(|(name, set)| {
        let port = attr::adapter::PORT.of(set).map(str::to_owned);
        Some((name.clone(), Initiator { wwpns: wwpns(set)?, port }))
    });
    let targets = desired[Object::Target].iter().filter_map(|(name, set)| {
        let target = Target {
            wwpn: attr::target::WWPN.of(set)?.parse().ok()?,
            id: u8::try_from(attr::target::ID.of(set)?).ok()?,
            group: home(set).to_owned(),
            ports: fabric::san::words(attr::target::PORTS.value(set)).map(str::to_owned).collect(),
            luns: luns(set),
        };
        Some((name.clone(), target))
    });
    let zones = desired[Object::Zone]
        .values()
        .filter_map(|set| read_members(attr::zone::MEMBERS.of(set)?).ok());
    let masks = desired[Object::Mask].values().filter_map(|set| {
        Some(Mask {
            initiators: read_members(attr::mask::INITIATORS.of(set)?).ok()?,
            targets: read_members(attr::mask::TARGETS.of(set)?).ok()?,
            luns: attr::mask::LUNS.value(set).parse::<Luns>().ok()?,
        })
    });
    San {
        ports: ports.collect(),
        initiators: initiators.collect(),
        targets: targets.collect(),
        zones: zones.collect(),
        masks: masks.collect(),
        remote: desired.discovered.visible(),
    }
}

/// The LUNs of a target.
pub fn luns(set: &Attributes) -> BTreeMap<u16, String> {
    attr::target::LUNS.value(set).parse::<LunMap>().unwrap_or_default().0
}

/// The WWPNs of an adapter.
pub fn wwpns(set: &Attributes) -> Option<[Wwpn; 2]> {
    read_pair(attr::adapter::WWPNS.of(set)?).ok()
}

/// How many adapters a port takes: what was set, else what its link speed allows.
pub fn max_adapters(desired: &Desired, port: &str) -> u64 {
    let set = desired[Object::Port].get(port).unwrap_or(&NOTHING);
    let by_speed = if attr::port::LINK_SPEED.value(set) > 16 { 255 } else { 64 };
    attr::port::MAX_ADAPTERS.of(set).unwrap_or(by_speed)
}

/// The data plane of a port.
pub fn dataplane_of_port<'a>(desired: &'a Desired, port: &str) -> &'a str {
    desired[Object::Port].get(port).map_or(MAIN, home)
}
