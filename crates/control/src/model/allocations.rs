//! What is given out once and kept: WWPNs, numbers of targets, LUNs of virtual target devices.
//!
//! Clients know their disks by these, and fabrics their clients. So an object keeps them for its life, a configuration that
//! does not name them changes nothing, and no WWPN is given to a second one: not after a removal, not after a restart, not when
//! the creation was taken back.

use super::discovered::{Vport, vports};
use super::files::{self, Made};
use super::map::SharedMap;
use super::pools::{self, Kept};
use super::resolve::network;
use super::{Desired, MAIN, home, san};
use crate::error::{ApiError, Code};
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attribute, Attributes, Object, attr};
use fabric::san::{Ledger, Prefix, UsedUp, Wwpn, free_id};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What was given out, and what is remembered of clients.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allocations {
    /// The server's own number, drawn once: prefix of WWPNs and names of logical units are made of it.
    pub system: Option<u64>,
    /// WWPNs.
    pub wwpns: Ledger,
    /// The channels that clients of adapters under the policy `aix` have, and the connection for which that holds.
    pub maxima: SharedMap<Maximum>,
    /// Virtual ports that were made on HBAs of the host and not yet removed.
    pub vports: BTreeSet<Vport>,
    /// The files of volumes.
    pub files: SharedMap<Made>,
    /// Storage pools.
    #[serde(skip_serializing_if = "is_empty")]
    pub pools: SharedMap<Kept>,
    /// How many MAC addresses were given out.
    #[serde(skip_serializing_if = "is_zero")]
    pub macs: u32,
}

fn is_empty(pools: &SharedMap<Kept>) -> bool {
    pools.is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What a client negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maximum {
    /// So many channels.
    pub channels: u32,
    /// The number of the connection: the next client begins anew.
    pub connection: u64,
}

/// Gives what is missing: what an object of that name had before, else something new. `fresh` becomes the server's number if it
/// has none.
pub fn settle(now: &Desired, next: &mut Desired, fresh: u64) -> Result<(), ApiError> {
    next.allocations = now.allocations.clone();
    // Those whose names or location codes are made of it.
    let known = [
        Object::Port,
        Object::Target,
        Object::Vtd,
        Object::Adapter,
        Object::Trunk,
        Object::Sea,
        Object::Pool,
    ];
    if known.into_iter().any(|object| !next[object].is_empty()) {
        next.allocations.system.get_or_insert(fresh);
    }
    note_chosen(now, next);
    initiators(now, next)?;
    targets(now, next)?;
    vtds(now, next)?;
    macs(now, next);
    let vports = vports(next).into_values();
    next.allocations.vports.extend(vports);
    files::settle(now, next);
    pools::settle(now, next, fresh);
    Ok(())
}

/// Puts back what an object had.
fn kept(now: &Desired, attribute: &Attribute, name: &str, set: &mut Attributes) -> bool {
    let Attribute { object, name: attribute, .. } = *attribute;
    let before = now[object].get(name);
    let same = before.is_some_and(|before| object.kind_of(before) == object.kind_of(set));
    if !set.contains_key(attribute)
        && same
        && let Some(value) = before.and_then(|before| before.get(attribute))
    {
        set.insert(attribute.to_owned(), value.clone());
    }
    set.contains_key(attribute)
}

/// WWPNs that people set are not given to others.
fn note_chosen(now: &Desired, next: &mut Desired) {
    let of = |desired: &Desired| -> BTreeSet<Wwpn> {
        let all = |object| {
            let names = changed(now, next, object).into_iter();
            names.filter_map(move |name| desired[object].get(&name))
        };
        let adapters = all(Object::Adapter).filter_map(san::wwpns).flatten();
        let wwpn = |set| attr::target::WWPN.of(set).and_then(|wwpn| wwpn.parse().ok());
        adapters.chain(all(Object::Target).filter_map(wwpn)).collect()
    };
    let chosen: Vec<Wwpn> = of(next).difference(&of(now)).copied().collect();
    next.allocations.wwpns.note(chosen);
}

/// The prefix of a data plane's WWPNs.
pub fn prefix(desired: &Desired, dataplane: &str) -> Prefix {
    let set = desired[Object::DataPlane].get(dataplane);
    let own = set
        .and_then(|set| attr::dataplane::WWPN_PREFIX.of(set))
        .and_then(|prefix| prefix.parse().ok());
    own.unwrap_or_else(|| of_system(desired))
}

/// The prefix that is the server's own: that of the names of ports, whatever a data plane's is.
pub fn of_system(desired: &Desired) -> Prefix {
    Prefix::of_system(desired.allocations.system.unwrap_or(0))
}

fn used_up(object: Object, name: &str, dataplane: &str, problem: UsedUp) -> ApiError {
    ApiError::new(Code::Failed, format!("{object} `{name}`: {problem}")).help(format!(
        "set another prefix, such as `trunkline dataplane set {dataplane} --wwpn-prefix {}`; what was given \
         out stays valid",
        another(problem.0)
    ))
}

/// A prefix beside this one.
fn another(prefix: Prefix) -> Prefix {
    let low = (prefix.wwpn(0).0 >> 16) & 0xff_ffff;
    Prefix::of_system(low.wrapping_add(1))
}

fn initiators(now: &Desired, next: &mut Desired) -> Result<(), ApiError> {
    for name in changed(now, next, Object::Adapter) {
        let Some(set) = next[Object::Adapter].get(&name) else { continue };
        let mut own = set.clone();
        if attr::adapter::KIND.value(set) != AdapterKind::Fc {
            continue;
        }
        if !kept(now, &attr::adapter::WWPNS, &name, &mut own) {
            let (dataplane, prefix) = (home(set).to_owned(), prefix(next, home(set)));
            let pair = next.allocations.wwpns.take_pair(prefix);
            let [first, second] =
                pair.map_err(|e| used_up(Object::Adapter, &name, &dataplane, e))?;
            attr::adapter::WWPNS.put(&mut own, &format!("{first},{second}"));
        }
        next[Object::Adapter].insert(name, own);
    }
    Ok(())
}

/// The objects of one kind that are not as they were; those that are have been given what they need.
fn changed(now: &Desired, next: &Desired, object: Object) -> Vec<String> {
    let differences = now.differences(object, next).into_iter();
    differences.map(|difference| difference.name().to_owned()).collect()
}

fn targets(now: &Desired, next: &mut Desired) -> Result<(), ApiError> {
    let names = changed(now, next, Object::Target);
    for name in &names {
        if let Some(set) = next[Object::Target].get_mut(name) {
            kept(now, &attr::target::ID, name, set);
            kept(now, &attr::target::WWPN, name, set);
        }
    }
    for name in &names {
        let Some(set) = next[Object::Target].get(name) else { continue };
        let dataplane = home(set).to_owned();
        let mut own = set.clone();
        if !attr::target::WWPN.is_set(&own) {
            let prefix = prefix(next, &dataplane);
            let wwpn = next.allocations.wwpns.take_one(prefix);
            let wwpn = wwpn.map_err(|e| used_up(Object::Target, name, &dataplane, e))?;
            attr::target::WWPN.put(&mut own, &wwpn.to_string());
        }
        if !attr::target::ID.is_set(&own) {
            let id =
                |set: &Attributes| attr::target::ID.of(set).and_then(|id| u8::try_from(id).ok());
            let all = &next[Object::Target];
            let beside = all.values().filter(|set| home(set) == dataplane);
            let id = free_id(all.values().filter_map(id), beside.filter_map(id));
            let id = id.ok_or_else(|| full(Object::Target, name, "data plane", &dataplane))?;
            attr::target::ID.put(&mut own, id.into());
        }
        next[Object::Target].insert(name.clone(), own);
    }
    Ok(())
}

/// Locally administered addresses: two bytes of the server's own, and three that count.
fn macs(now: &Desired, next: &mut Desired) {
    let [.., first, second] = next.allocations.system.unwrap_or(0).to_be_bytes();
    for name in changed(now, next, Object::Adapter) {
        let Some(set) = next[Object::Adapter].get(&name) else { continue };
        if attr::adapter::KIND.value(set) != AdapterKind::Ethernet {
            continue;
        }
        let mut own = set.clone();
        while !kept(now, &attr::adapter::MAC, &name, &mut own) {
            let [_, a, b, c] = next.allocations.macs.to_be_bytes();
            next.allocations.macs = next.allocations.macs.wrapping_add(1);
            let mac = network::mac_text([2, first, second, a, b, c]);
            // Somebody may have set it.
            let mut others = next[Object::Adapter].values();
            if !others.any(|set| attr::adapter::MAC.of(set) == Some(mac.as_str())) {
                attr::adapter::MAC.put(&mut own, &mac);
            }
        }
        next[Object::Adapter].insert(name, own);
    }
}

fn full(object: Object, name: &str, of: &str, whose: &str) -> ApiError {
    ApiError::new(Code::Failed, format!("{object} `{name}`: {of} `{whose}` has 256 of them"))
        .help("remove one, or use another")
}

fn vtds(now: &Desired, next: &mut Desired) -> Result<(), ApiError> {
    let names = changed(now, next, Object::Vtd);
    for name in &names {
        if let Some(set) = next[Object::Vtd].get_mut(name) {
            kept(now, &attr::vtd::LUN, name, set);
        }
    }
    let mut taken: BTreeMap<String, BTreeSet<u8>> = BTreeMap::new();
    let unsettled =
        |name: &String| next[Object::Vtd].get(name).is_some_and(|set| !attr::vtd::LUN.is_set(set));
    let all = names.iter().any(unsettled).then(|| next[Object::Vtd].values());
    for set in all.into_iter().flatten() {
        let lun = attr::vtd::LUN.of(set).and_then(|lun| u8::try_from(lun).ok());
        let adapter = attr::vtd::ADAPTER.of(set).unwrap_or_default();
        taken.entry(adapter.to_owned()).or_default().extend(lun);
    }
    for name in &names {
        let Some(set) = next[Object::Vtd].get(name) else { continue };
        if attr::vtd::LUN.is_set(set) {
            continue;
        }
        let adapter = attr::vtd::ADAPTER.of(set).unwrap_or_default();
        let taken = taken.entry(adapter.to_owned()).or_default();
        let lun = free_id(taken.iter().copied(), 0..=u8::MAX);
        let lun = lun.ok_or_else(|| full(Object::Vtd, name, "adapter", adapter))?;
        taken.insert(lun);
        if let Some(set) = next[Object::Vtd].get_mut(name) {
            attr::vtd::LUN.put(set, lun.into());
        }
    }
    Ok(())
}

/// The server's number, if it has one yet.
pub fn system(desired: &Desired) -> u64 {
    desired.allocations.system.unwrap_or(0)
}

/// How many pairs of WWPNs the main data plane's prefix has left.
pub fn pairs_left(desired: &Desired) -> u32 {
    desired.allocations.wwpns.pairs_left(prefix(desired, MAIN))
}

#[cfg(test)]
mod tests;
