//! Shared Ethernet adapters as the rules of [`fabric::sea`] see them.

use super::resolve::network::{trunks, vlans};
use super::{Desired, MAIN, home};
use crate::error::ApiError;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attributes, Object, attr};
use fabric::sea::{
    ClientAdapter, Finding, HaMode, Rule, Server, Severity, SharedAdapter, VirtualAdapter,
};
use std::collections::BTreeMap;

/// Everything that is wrong with the shared adapters of a state, worst first. A network is a virtual switch, a data plane a server.
pub fn findings(desired: &Desired) -> Vec<Finding> {
    let mut servers: BTreeMap<&str, Server> = BTreeMap::new();
    for (name, set) in &desired[Object::Trunk] {
        let server = servers.entry(server_of(desired, set)).or_default();
        server.adapters.push(VirtualAdapter {
            name: name.clone(),
            vswitch: attr::trunk::NETWORK.of(set).unwrap_or_default().to_owned(),
            pvid: narrow(attr::trunk::PVID.value(set)),
            vids: vlans(attr::trunk::VLANS.value(set)).unwrap_or_default(),
            trunk: Some(1),
            active: None,
            control_buffers: None,
        });
    }
    for (name, set) in &desired[Object::Sea] {
        let first = trunks(desired, set).next();
        let server = first.map_or(MAIN, |(_, trunk)| server_of(desired, trunk));
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        servers.entry(server).or_default().seas.push(SharedAdapter {
            name: name.clone(),
            pvid: narrow(attr::sea::PVID.of(set).unwrap_or_default()),
            pvid_adapter: text(attr::sea::PVID_ADAPTER.of(set)),
            virt_adapters: trunks(desired, set).map(|(trunk, _)| trunk.to_owned()).collect(),
            ctl_chan: None,
            ha_mode: HaMode::Disabled,
            adapter_reset: None,
            state: None,
            bridge_mode: None,
        });
    }
    let name = |(name, server): (&str, Server)| Server { name: name.to_owned(), ..server };
    let servers: Vec<Server> = servers.into_iter().map(name).collect();
    let cards = desired[Object::Adapter].iter();
    let cards = cards.filter(|(_, set)| attr::adapter::KIND.value(set) == AdapterKind::Ethernet);
    let client = |(name, set): (&String, &Attributes)| ClientAdapter {
        client: name.clone(),
        vswitch: attr::adapter::NETWORK.of(set).unwrap_or_default().to_owned(),
        pvid: narrow(attr::adapter::PVID.value(set)),
    };
    fabric::sea::check(&servers, &cards.map(client).collect::<Vec<_>>())
}

/// The data plane of a trunk adapter.
fn server_of<'a>(desired: &'a Desired, trunk: &Attributes) -> &'a str {
    let network = attr::trunk::NETWORK.of(trunk).unwrap_or_default();
    desired[Object::Network].get(network).map_or(MAIN, home)
}

/// At most 4094.
fn narrow(vlan: u64) -> u16 {
    u16::try_from(vlan).unwrap_or_default()
}

/// Refuses what could loop, and what cannot be carried out.
pub(super) fn check(desired: &Desired) -> Result<(), ApiError> {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, set) in &desired[Object::Sea] {
        let refuse = |problem: String, help: &str| {
            let refusal = ApiError::invalid(format!("sea `{name}`: {problem}"));
            Err(refusal.on(attr::sea::REAL_ADAPTER.name).help(help))
        };
        let real = attr::sea::REAL_ADAPTER.of(set).unwrap_or_default();
        let uplink = desired[Object::Uplink].get(real);
        if uplink.is_some_and(|uplink| attr::uplink::NETWORK.of(uplink).is_some()) {
            let problem = format!("its uplink `{real}` has a network of its own");
            return refuse(problem, "name an uplink without `network`");
        }
        if let Some(other) = owners.insert(real, name) {
            let problem = format!("sea `{other}` has the uplink `{real}`");
            return refuse(problem, "give each an uplink of its own");
        }
    }
    let broken = [Rule::PvidDiffers, Rule::DefaultNotBridged, Rule::SwitchesDiffer];
    let refused = |finding: &Finding| {
        finding.rule.severity() == Severity::Loop || broken.contains(&finding.rule)
    };
    let Some(Finding { rule, place, about }) = findings(desired).into_iter().find(refused) else {
        return Ok(());
    };
    let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
    let problem = format!("{place}: {}: {}{about}", rule.word(), rule.what());
    Err(ApiError::invalid(problem).on(attr::sea::VIRT_ADAPTERS.name).help(rule.fix()))
}
