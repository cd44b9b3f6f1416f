//! The rules of virtual Ethernet adapters and uplinks.

use super::super::{Desired, home, resolve::network};
use crate::error::ApiError;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attribute, Attributes, Object, attr};
use std::collections::BTreeMap;

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
    uplinks(desired)
}

/// Each uplink by itself, and beside the others: none has the name of an adapter, no interface has two, and no VLAN of a network has two ways to the world outside, which would be a
/// loop if they meet there.
fn uplinks(desired: &Desired) -> Result<(), ApiError> {
    use attr::uplink as u;
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    let mut ways: BTreeMap<(&str, u16), &str> = BTreeMap::new();
    for (name, set) in &desired[Object::Uplink] {
        let refuse = |attribute: &Attribute, problem: String, help: &str| {
            let problem = format!("uplink `{name}`: {problem}");
            Err(ApiError::invalid(problem).on(attribute.name).help(help))
        };
        if desired[Object::Adapter].contains_key(name) {
            let problem = format!("uplink `{name}`: an adapter has this name");
            let help = "choose another name: statistics are kept by it";
            return Err(ApiError::invalid(problem).on("name").help(help));
        }
        let interface = network::interface(name, set);
        let is_name = |c: char| c.is_ascii_graphic() && !"/:%".contains(c);
        if interface.is_empty() || interface.len() > 15 || !interface.chars().all(is_name) {
            let problem = format!("`{interface}` is no name of an interface");
            return refuse(
                &u::INTERFACE,
                problem,
                "set `interface` to one of 1 to 15 letters and digits",
            );
        }
        if let Some(other) = owners.insert(interface, name) {
            let problem = format!("uplink `{other}` has the interface `{interface}`");
            return refuse(&u::INTERFACE, problem, "give it an interface of its own");
        }
        let text = u::VLANS.value(set);
        let Some(vlans) = network::vlans(text) else {
            let problem = format!("`{text}` is no list of VLANs from 1 to 4094");
            return refuse(&u::VLANS, problem, "write it as 10,20-29");
        };
        let whose = u::NETWORK.of(set).unwrap_or_default();
        // At most 4094.
        let pvid = u::PVID.value(set) as u16;
        for vlan in vlans.into_iter().filter(|vlan| *vlan != pvid).chain([pvid]) {
            if let Some(other) = ways.insert((whose, vlan), name) {
                let problem = format!(
                    "uplink `{other}` carries VLAN {vlan} of network `{whose}`, too: that may be a loop"
                );
                return refuse(&u::VLANS, problem, "let each VLAN of a network have one uplink");
            }
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
    let most = super::queues_max(AdapterKind::Ethernet);
    if queues > most {
        let problem = format!("{queues} pairs of queues are more than vhost-user can name");
        return refuse(name, &a::QUEUES, &problem, &format!("use at most {most}"));
    }
    let whose = a::NETWORK.of(set).unwrap_or_default();
    let there = desired[Object::Network].get(whose).map(home);
    if let Some(there) = there.filter(|there| *there != home(set)) {
        let problem = format!("its network `{whose}` is in data plane `{there}`");
        return refuse(name, &a::DATAPLANE, &problem, &format!("set `dataplane = \"{there}\"`"));
    }
    Ok(())
}

fn refuse(name: &str, attribute: &Attribute, problem: &str, help: &str) -> Result<(), ApiError> {
    let problem = format!("adapter `{name}`: {problem}");
    Err(ApiError::invalid(problem).on(attribute.name).help(help))
}

#[cfg(test)]
mod tests {
    use super::super::validate;
    use crate::model::samples;

    #[test]
    fn uplinks_that_could_be_a_loop_are_refused() {
        let judge = |uplinks: &str| {
            let text = format!("[network.n]\n[network.m]\n{uplinks}");
            let desired = crate::config::read(&text).unwrap();
            validate(&desired, &samples::paths()).map(drop).map_err(|error| error.message)
        };
        let two = |a: &str, b: &str| {
            judge(&format!("[uplink.a]\nnetwork=\"n\"\n{a}\n[uplink.b]\nnetwork={b}\n"))
        };
        assert_eq!(two("vlans=\"20-29\"", "\"m\"\nvlans=\"20\""), Ok(()));
        assert_eq!(two("vlans=\"1,20-29\"", "\"n\"\npvid=30"), Ok(()));
        for (a, b, problem) in [
            ("", "\"n\"", "uplink `a` carries VLAN 1 of network `n`, too"),
            ("vlans=\"20-29\"", "\"n\"\npvid=2\nvlans=\"25\"", "carries VLAN 25"),
            ("vlans=\"20-29\"", "\"n\"\npvid=29", "carries VLAN 29"),
            ("interface=\"t\"", "\"m\"\ninterface=\"t\"", "uplink `a` has the interface `t`"),
            ("", "\"m\"\ninterface=\"a\"", "uplink `a` has the interface `a`"),
            ("", "\"m\"\ninterface=\"a/b\"", "is no name of an interface"),
            ("", "\"m\"\nvlans=\"x\"", "is no list of VLANs"),
        ] {
            let refused = two(a, b).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
        let adapter = "[adapter.a]\nkind=\"ethernet\"\nnetwork=\"m\"\n";
        let refused = judge(&format!("[uplink.a]\nnetwork=\"n\"\n{adapter}")).unwrap_err();
        assert_eq!(refused, "uplink `a`: an adapter has this name");
    }
}
