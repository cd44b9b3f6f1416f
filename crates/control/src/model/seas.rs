//! Shared Ethernet adapters as the rules of [`fabric::sea`] see them.

use super::resolve::network::{aggregate_of, netaddr, trunks, vlans};
use super::{Desired, MAIN, home};
use crate::error::ApiError;
use crate::tokens::Place;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attributes, Object, attr};
use fabric::sea::{
    BridgeMode, ClientAdapter, Finding, HaMode, Rule, Server, Severity, SharedAdapter, State,
    VirtualAdapter,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a shared adapter is and bridges at a moment.
#[derive(Debug, Clone, Default)]
pub struct Now {
    /// None: it is in limbo, or does not fail over.
    pub state: Option<State>,
    /// Of its VLANs, if it fails over.
    pub bridge_mode: Option<BridgeMode>,
    /// Which members of its uplink are down, and why.
    pub down: Option<String>,
}

/// Everything that is wrong with the shared adapters of a state, worst first. A network is a virtual switch, a data plane a server. Networks of partners are
/// one virtual switch: clients are on both, or they do not fail over. Of a partner that another program has nothing is known, and nothing is said. `now`: what
/// shared adapters are and bridge at the moment, by name, as far as that is known.
pub fn findings(desired: &Desired, now: &BTreeMap<String, Now>) -> Vec<Finding> {
    let mut servers: BTreeMap<&str, Server> = BTreeMap::new();
    let shared = controls(desired);
    let vswitch = |network: Option<&str>| {
        let network = network.unwrap_or_default();
        shared.get(network).copied().unwrap_or(network).to_owned()
    };
    let bridge = |trunk: &str| {
        let mut seas = desired[Object::Sea].iter().map(|(_, sea)| sea);
        seas.find(|sea| trunks(desired, sea).any(|(name, _)| name == trunk))
    };
    for (name, set) in &desired[Object::Trunk] {
        let server = servers.entry(server_of(desired, set)).or_default();
        server.adapters.push(VirtualAdapter {
            name: name.clone(),
            vswitch: vswitch(attr::trunk::NETWORK.of(set)),
            pvid: narrow(attr::trunk::PVID.value(set)),
            vids: vlans(attr::trunk::VLANS.value(set)).unwrap_or_default(),
            trunk: Some(bridge(name).map_or(1, |sea| narrow8(attr::sea::PRIORITY.value(sea)))),
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
            ha_mode: if partners(desired, set) {
                attr::sea::HA_MODE.value(set)
            } else {
                HaMode::Disabled
            },
            adapter_reset: None,
            state: now.get(name).and_then(|now| now.state),
            bridge_mode: now.get(name).and_then(|now| now.bridge_mode),
            down: now.get(name).and_then(|now| now.down.clone()),
        });
    }
    let name = |(name, server): (&str, Server)| Server { name: name.to_owned(), ..server };
    let servers: Vec<Server> = servers.into_iter().map(name).collect();
    let cards = desired[Object::Adapter].iter();
    let cards = cards.filter(|(_, set)| attr::adapter::KIND.value(set) == AdapterKind::Ethernet);
    let client = |(name, set): (&String, &Attributes)| ClientAdapter {
        client: name.clone(),
        vswitch: vswitch(attr::adapter::NETWORK.of(set)),
        pvid: narrow(attr::adapter::PVID.value(set)),
    };
    fabric::sea::check(&servers, &cards.map(client).collect::<Vec<_>>())
}

/// What a shared adapter and its partner have in common: a control file, or a place in etcd.
pub fn control_of(set: &Attributes) -> Option<&str> {
    attr::sea::CTL_CHAN.of(set).or(attr::sea::TOKEN.of(set))
}

/// Networks whose shared adapter has something in common with a partner, and what.
fn controls(desired: &Desired) -> BTreeMap<&str, &str> {
    let mut all = BTreeMap::new();
    for (_, set) in &desired[Object::Sea] {
        let control = control_of(set);
        let network = trunks(desired, set).next().and_then(|(_, it)| attr::trunk::NETWORK.of(it));
        all.extend(network.zip(control));
    }
    all
}

/// Whether the partner of a shared adapter is one of this state.
fn partners(desired: &Desired, set: &Attributes) -> bool {
    let control = control_of(set);
    let its = desired[Object::Sea].iter().filter(|(_, sea)| control_of(sea) == control);
    control.is_some() && its.count() > 1
}

/// The data plane of a trunk adapter.
fn server_of<'a>(desired: &'a Desired, trunk: &Attributes) -> &'a str {
    let network = attr::trunk::NETWORK.of(trunk).unwrap_or_default();
    desired[Object::Network].get(network).map_or(MAIN, home)
}

/// At most 15.
fn narrow8(priority: u64) -> u8 {
    u8::try_from(priority).unwrap_or(u8::MAX)
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
        if let Some(whole) = aggregate_of(desired, real) {
            let problem = format!("its uplink `{real}` is a member of `{whole}`");
            return refuse(problem, "name the uplink that has it as a member");
        }
        if attr::sea::HA_MODE.value(set) != HaMode::Disabled && control_of(set).is_none() {
            let problem = format!("sea `{name}`: ha_mode without ctl_chan or token");
            let help = "name what both partners share: on one host ctl_chan=/run/trunkline/sea.lock, on two \
                        token=etcd:http://HOST:2379/trunkline/sea";
            return Err(ApiError::invalid(problem).on(attr::sea::CTL_CHAN.name).help(help));
        }
        if let Some(path) = attr::sea::CTL_CHAN.of(set).filter(|path| !path.starts_with('/')) {
            let problem = format!("sea `{name}`: {path} does not begin with /");
            let help = "name the whole path of the control file";
            return Err(ApiError::invalid(problem).on(attr::sea::CTL_CHAN.name).help(help));
        }
        if let Some(token) = attr::sea::TOKEN.of(set) {
            let refuse = |problem: String, help: &str| {
                let refusal = ApiError::invalid(format!("sea `{name}`: {problem}"));
                Err(refusal.on(attr::sea::TOKEN.name).help(help))
            };
            if attr::sea::CTL_CHAN.of(set).is_some() {
                let problem = "ctl_chan and token together".to_owned();
                return refuse(problem, "use ctl_chan on one host, token on two: unset the other");
            }
            if let Err(what) = Place::parse(token) {
                let help = "write token=etcd:http://HOST:2379/trunkline/sea";
                return refuse(format!("token {token}: {what}"), help);
            }
        }
        let asked = attr::sea::NETADDR.of(set).unwrap_or("0");
        let problem = match netaddr(asked) {
            Ok(Some(_)) if control_of(set).is_none() => Some("says nothing without a partner"),
            Ok(_) => None,
            Err(what) => Some(what),
        };
        if let Some(what) = problem {
            let refusal = ApiError::invalid(format!("sea `{name}`: netaddr {asked} {what}"));
            let help = "name an address that always answers, such as netaddr=192.0.2.1, beside ctl_chan or token; 0 is none";
            return Err(refusal.on(attr::sea::NETADDR.name).help(help));
        }
        if let Some(other) = owners.insert(real, name) {
            let problem = format!("sea `{other}` has the uplink `{real}`");
            return refuse(problem, "give each an uplink of its own");
        }
        // Not left to the findings: these look for trunk adapters in one server, and take networks of partners for one.
        let networks = trunks(desired, set).filter_map(|(_, trunk)| attr::trunk::NETWORK.of(trunk));
        let networks: BTreeSet<&str> = networks.collect();
        if networks.len() > 1 {
            let networks = networks.into_iter().collect::<Vec<_>>().join(", ");
            return Err(refusal(Rule::SwitchesDiffer, &format!("sea `{name}`"), &networks));
        }
    }
    let broken = [Rule::PvidDiffers, Rule::DefaultNotBridged];
    let refused = |finding: &Finding| {
        finding.rule.severity() == Severity::Loop || broken.contains(&finding.rule)
    };
    match findings(desired, &BTreeMap::new()).into_iter().find(refused) {
        Some(Finding { rule, place, about }) => Err(refusal(rule, &place, &about)),
        None => Ok(()),
    }
}

fn refusal(rule: Rule, place: &str, about: &str) -> ApiError {
    let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
    let problem = format!("{place}: {}: {}{about}", rule.word(), rule.what());
    ApiError::invalid(problem).on(attr::sea::VIRT_ADAPTERS.name).help(rule.fix())
}
