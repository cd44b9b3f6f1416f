//! The rules of virtual Ethernet adapters.

use super::super::{Desired, home, resolve::network};
use crate::error::ApiError;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attributes, Object, attr};
use std::collections::BTreeMap;

/// Pairs of queues: vhost-user names a queue with eight bits.
const PAIRS_MAX: u64 = 128;

/// Each adapter by itself, with its network, and beside the others of it.
pub(super) fn check(desired: &Desired) -> Result<(), ApiError> {
    let cards = desired[Object::Adapter]
        .iter()
        .filter(|(_, set)| attr::adapter::KIND.value(set) == AdapterKind::Ethernet);
    let mut owners: BTreeMap<(&str, [u8; 6]), &str> = BTreeMap::new();
    for (name, set) in cards {
        card(desired, name, set)?;
        let network = attr::adapter::NETWORK.of(set).unwrap_or_default();
        let mac = attr::adapter::MAC.of(set).and_then(network::mac);
        if let Some(mac) = mac
            && let Some(other) = owners.insert((network, mac), name)
        {
            let problem = format!("has the MAC address of adapter `{other}`, in the same network");
            return refuse(
                name,
                &attr::adapter::MAC,
                &problem,
                "leave `mac` out: it is given one of its own",
            );
        }
    }
    Ok(())
}

fn card(desired: &Desired, name: &str, set: &Attributes) -> Result<(), ApiError> {
    use attr::adapter as a;
    if let Some(text) = a::MAC.of(set)
        && network::mac(text).is_none()
    {
        let problem = format!("`{text}` is no MAC address of a station");
        return refuse(name, &a::MAC, &problem, "write it as 02:00:5e:00:00:01, or leave it out");
    }
    let text = a::VLANS.value(set);
    if network::vlans(text).is_none() {
        let problem = format!("`{text}` is no list of VLANs from 1 to 4094");
        return refuse(name, &a::VLANS, &problem, "write it as 10,20-29");
    }
    let queues = a::QUEUES.value(set);
    if queues > PAIRS_MAX {
        let problem = format!("{queues} pairs of queues are more than vhost-user can name");
        return refuse(name, &a::QUEUES, &problem, &format!("use at most {PAIRS_MAX}"));
    }
    let whose = a::NETWORK.of(set).unwrap_or_default();
    let there = desired[Object::Network].get(whose).map(home);
    if let Some(there) = there.filter(|there| *there != home(set)) {
        let problem = format!("its network `{whose}` is in data plane `{there}`");
        return refuse(name, &a::DATAPLANE, &problem, &format!("set `dataplane = \"{there}\"`"));
    }
    Ok(())
}

fn refuse(
    name: &str,
    attribute: &fabric::attribute::Attribute,
    problem: &str,
    help: &str,
) -> Result<(), ApiError> {
    let problem = format!("adapter `{name}`: {problem}");
    Err(ApiError::invalid(problem).on(attribute.name).help(help))
}
