//! What of a state a change has to do with: so that a change is judged with that, and not with all there is.
//!
//! The rules between objects ([`validate`]) are about objects that name each other, or claim one thing: a file, a socket, a WWPN. So a state
//! that keeps them keeps them after a change, if what was changed keeps them together with all that it has such a thing in common with.
//! [`Neighbours`] knows who names and claims what in one state. [`Neighbours::validate`] makes a small state of the neighbourhood of a change
//! and has [`validate`] judge that, by the same rules. What it refuses is judged as a whole, which has the last word, and the better one:
//! it sees names that are near.

mod wanted;

pub use wanted::WantedOfAll;

use super::map::SharedMap;
use super::validate::validate;
use super::{Desired, Key, home, mentions_of, pools, resolve, san, seas};
use crate::error::ApiError;
use crate::paths::Paths;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attributes, Object, attr};
use fabric::san::{Member, Wwpn, read_members};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What an object names, or what is to be its alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    Names(Object, String),
    File(PathBuf),
    Naa(u64),
    Socket(PathBuf),
    /// Of an adapter or a target, or as a member.
    Wwpn(Wwpn),
    /// The number of a target in a data plane.
    Id(String, u64),
    /// As an initiator of a mask.
    Masked(Member),
    /// An LU of a pool, by its number.
    Lu(String, u64),
    /// In a network.
    Mac(String, [u8; 6]),
    Interface(Option<PathBuf>, String),
    /// The control file of partners.
    Control(String),
    /// The name of a device of a network.
    Device(String),
}

/// Who names and claims what in a state.
#[derive(Debug, Default)]
pub struct Neighbours {
    at: Desired,
    /// Whether that state keeps the rules.
    sound: bool,
    holders: BTreeMap<Claim, BTreeSet<Key>>,
    #[cfg(test)]
    pub(crate) judged: std::cell::Cell<usize>,
}

impl Neighbours {
    /// They become those of another state, which costs what it differs in.
    pub fn follow(&mut self, next: &Desired, paths: &Paths) {
        // Names of disks are made of the server's own number, which it has once it needs it.
        if self.at.allocations.system != next.allocations.system {
            *self = Neighbours::default();
        }
        let touched = self.at.touched(next);
        for key in &touched {
            for claim in claims(&self.at, key, paths) {
                if let Some(holders) = self.holders.get_mut(&claim) {
                    holders.remove(key);
                    if holders.is_empty() {
                        self.holders.remove(&claim);
                    }
                }
            }
            for claim in claims(next, key, paths) {
                self.holders.entry(claim).or_default().insert(key.clone());
            }
        }
        // What was judged on the way here was found sound.
        self.sound = self.sound || validate(next, paths).is_ok();
        self.at = next.clone();
    }

    /// As [`validate`] does, where `next` was made of the state that they are of.
    pub fn validate(&self, next: &Desired, paths: &Paths) -> Result<Desired, ApiError> {
        let touched = self.at.touched(next);
        let all: usize = Object::ALL.into_iter().map(|object| next[object].len()).sum();
        let same_names = self.at.allocations.system == next.allocations.system;
        if !self.sound || !same_names || 2 * touched.len() > all {
            return validate(next, paths);
        }
        let part = self.part(next, &touched, paths);
        #[cfg(test)]
        self.judged.set(Object::ALL.into_iter().map(|object| part[object].len()).sum());
        let Ok(part) = validate(&part, paths) else { return validate(next, paths) };
        let mut checked = next.clone();
        for (object, name) in touched {
            match (part[object].get(&name), next[object].get(&name)) {
                (Some(whole), Some(given)) if whole != given => {
                    checked[object].insert(name, whole.clone());
                }
                _ => {}
            }
        }
        Ok(checked)
    }

    /// The objects that name this one in `next`.
    pub fn users(&self, next: &Desired, touched: &[Key], (object, name): &Key) -> Vec<Key> {
        let before = self.holders(&Claim::Names(*object, name.clone()));
        let all: BTreeSet<&Key> = before.chain(touched).collect();
        let names_it = |(by, whose): &&&Key| {
            let set = next[*by].get(whose);
            set.is_some_and(|set| {
                mentions_of(*by, set).any(|of| of.name == *name && of.objects.contains(object))
            })
        };
        all.iter().filter(names_it).map(|key| (*key).clone()).collect()
    }

    fn holders(&self, claim: &Claim) -> impl Iterator<Item = &Key> + use<'_> {
        self.holders.get(claim).into_iter().flatten()
    }

    /// The part of `next` with which a change is judged.
    fn part(&self, next: &Desired, touched: &[Key], paths: &Paths) -> Desired {
        let mut around: BTreeSet<Key> = touched.iter().cloned().collect();
        // A virtual target device opens its volume in its adapter's data plane, so it is changed with that.
        for (object, name) in touched.iter().filter(|(object, _)| *object == Object::Adapter) {
            let users = self.holders(&Claim::Names(*object, name.clone()));
            around.extend(users.filter(|(by, _)| *by == Object::Vtd).cloned());
        }
        for key in around.clone() {
            for state in [&self.at, next] {
                let Some(set) = state[key.0].get(&key.1) else { continue };
                for claim in claims_of(state, &key, set, paths) {
                    self.beside(next, &key, set, &claim, &mut around);
                }
            }
            self.below(next, &key, &mut around);
            self.of_its_server(next, &key, &mut around);
            // Zones and masks name both alike.
            if let (Object::Adapter | Object::Target, name) = &key {
                around.extend([(Object::Adapter, name.clone()), (Object::Target, name.clone())]);
            }
        }
        self.shared(next, &mut around);
        let mut part = Desired { allocations: next.allocations.clone(), ..Desired::default() };
        part.allocations.files = SharedMap::default();
        let mut open: Vec<Key> = around.into_iter().collect();
        while let Some((object, name)) = open.pop() {
            let Some(set) = next[object].get(&name) else { continue };
            if part[object].contains_key(&name) {
                continue;
            }
            for of in mentions_of(object, set) {
                open.extend(of.objects.iter().map(|object| (*object, of.name.clone())));
            }
            part[object].insert(name, set.clone());
        }
        part
    }

    /// Who has to do with an object because both name or claim the same.
    fn beside(
        &self,
        next: &Desired,
        (object, name): &Key,
        set: &Attributes,
        claim: &Claim,
        around: &mut BTreeSet<Key>,
    ) {
        let mut add = |claim: &Claim, of: &[Object]| {
            let holders = self.holders(claim).filter(|(by, _)| of.contains(by));
            around.extend(holders.cloned());
        };
        match claim {
            // All that have it open agree on who writes.
            Claim::Names(Object::Volume, _) => add(claim, &Object::ALL),
            // Those of a port are counted when there is another one.
            Claim::Names(Object::Port, port) => {
                let before = self.at[*object].get(name);
                let had = before.and_then(|set| attr::adapter::PORT.of(set));
                if *object == Object::Adapter && had != Some(port) {
                    add(claim, &[Object::Adapter]);
                }
            }
            // The devices of an adapter have numbers.
            Claim::Names(Object::Adapter, _) if *object == Object::Vtd => {
                add(claim, &[Object::Vtd]);
            }
            Claim::Masked(member) => {
                add(claim, &[Object::Mask]);
                for other in self.same_initiator(next, member) {
                    add(&Claim::Masked(other), &[Object::Mask]);
                }
            }
            // Nothing of a network carries a VLAN to the world outside twice.
            Claim::Names(Object::Network, network)
                if matches!(object, Object::Uplink | Object::Trunk) =>
            {
                self.ways_out(network, around);
            }
            Claim::Names(Object::Trunk, trunk) => {
                let trunks = [&self.at, next].map(|state| state[Object::Trunk].get(trunk));
                let networks =
                    trunks.into_iter().flatten().filter_map(|set| attr::trunk::NETWORK.of(set));
                networks.for_each(|network| self.ways_out(network, around));
            }
            // An uplink belongs to one shared adapter, or to one of which it is a member.
            Claim::Names(Object::Uplink, _) => add(claim, &[Object::Sea, Object::Uplink]),
            Claim::Names(..) => {}
            // Masks that name an initiator in another way are found by their claims of it.
            Claim::Wwpn(_) if matches!(object, Object::Zone | Object::Mask) => {
                add(claim, &[Object::Adapter, Object::Target]);
            }
            Claim::Wwpn(wwpn) => {
                add(claim, &Object::ALL);
                add(&Claim::Masked(Member::Wwpn(*wwpn)), &[Object::Mask]);
                let of_adapter = san::wwpns(set).filter(|_| *object == Object::Adapter);
                for wwpn in of_adapter.into_iter().flatten() {
                    add(&Claim::Masked(Member::Wwpn(wwpn)), &[Object::Mask]);
                }
            }
            // Others were made, and claim nothing.
            Claim::Lu(pool, number) => {
                add(claim, &[Object::Volume]);
                let lus = pools::lus_in(next, pool).map(|(name, _)| name);
                let same = |name: &&String| next.lu_number(name).map(u64::from) == Some(*number);
                around.extend(lus.filter(same).map(|name| (Object::Volume, name.clone())));
            }
            Claim::File(_)
            | Claim::Naa(_)
            | Claim::Socket(_)
            | Claim::Id(..)
            | Claim::Mac(..)
            | Claim::Interface(..)
            | Claim::Control(_)
            | Claim::Device(_) => add(claim, &Object::ALL),
        }
    }

    /// What may carry VLANs of a network to the world outside.
    fn ways_out(&self, network: &str, around: &mut BTreeSet<Key>) {
        for key in self.holders(&Claim::Names(Object::Network, network.to_owned())) {
            if let (object @ (Object::Uplink | Object::Trunk), name) = key {
                around.insert(key.clone());
                around.extend(self.holders(&Claim::Names(*object, name.clone())).cloned());
            }
        }
    }

    /// A network that moves to another data plane takes what is on it there.
    fn of_its_server(&self, next: &Desired, (object, name): &Key, around: &mut BTreeSet<Key>) {
        let home_in =
            |state: &Desired| state[Object::Network].get(name).map(|set| home(set).to_owned());
        if *object == Object::Network && home_in(&self.at) != home_in(next) {
            self.ways_out(name, around);
        }
    }

    /// Partners are judged together, whatever of one of them changes, and each beside all that is on its network: for the rules the networks of
    /// partners are one virtual switch.
    fn shared(&self, next: &Desired, around: &mut BTreeSet<Key>) {
        let is_sea = |key: &&Key| key.0 == Object::Sea;
        let mut open: Vec<Key> = around.iter().filter(is_sea).cloned().collect();
        while let Some((object, name)) = open.pop() {
            let mut near = BTreeSet::new();
            for state in [&self.at, next] {
                let Some(set) = state[object].get(&name) else { continue };
                let control =
                    seas::control_of(set).map(|control| Claim::Control(control.to_owned()));
                near.extend(control.iter().flat_map(|claim| self.holders(claim)).cloned());
                let trunks = resolve::network::trunks(state, set);
                let networks = trunks.filter_map(|(_, trunk)| attr::trunk::NETWORK.of(trunk));
                networks.for_each(|network| self.ways_out(network, &mut near));
            }
            open.extend(near.iter().filter(is_sea).filter(|key| !around.contains(*key)).cloned());
            around.append(&mut near);
        }
    }

    /// Under what else masks may name an initiator.
    fn same_initiator(&self, next: &Desired, member: &Member) -> Vec<Member> {
        let adapters: BTreeSet<&str> = match member {
            Member::Name(name) => [name.as_str()].into(),
            Member::Wwpn(wwpn) => {
                let holders = self.holders(&Claim::Wwpn(*wwpn));
                let adapters = holders.filter(|(object, _)| *object == Object::Adapter);
                adapters.map(|(_, name)| name.as_str()).collect()
            }
        };
        let mut members = Vec::new();
        for name in adapters {
            members.push(Member::Name(name.to_owned()));
            for state in [&self.at, next] {
                let wwpns = state[Object::Adapter].get(name).and_then(san::wwpns);
                members.extend(wwpns.into_iter().flatten().map(Member::Wwpn));
            }
        }
        members
    }

    /// Who names an object, where it may not be any more what they need.
    fn below(&self, next: &Desired, (object, name): &Key, around: &mut BTreeSet<Key>) {
        let (before, after) = (self.at[*object].get(name), next[*object].get(name));
        let stays = before.is_some() && after.is_some();
        let of = |attribute: &str| {
            let value = |set: Option<&Attributes>| set.and_then(|set| set.get(attribute)).cloned();
            value(before) == value(after)
        };
        let same = match object {
            Object::Volume | Object::Port | Object::Trunk | Object::Uplink | Object::Pool => false,
            Object::Adapter => {
                stays && of(attr::adapter::KIND.name) && of(attr::adapter::WWPNS.name)
            }
            Object::Target => stays && of(attr::target::LUNS.name) && of(attr::target::WWPN.name),
            _ => stays,
        };
        if !same {
            around.extend(self.holders(&Claim::Names(*object, name.clone())).cloned());
        }
    }
}

fn claims(state: &Desired, key: &Key, paths: &Paths) -> Vec<Claim> {
    let set = state[key.0].get(&key.1);
    set.map(|set| claims_of(state, key, set, paths)).unwrap_or_default()
}

/// What an object names and claims.
fn claims_of(state: &Desired, (object, name): &Key, set: &Attributes, paths: &Paths) -> Vec<Claim> {
    let named = mentions_of(*object, set);
    let mut claims: Vec<Claim> = named
        .flat_map(|of| of.objects.iter().map(move |object| Claim::Names(*object, of.name.clone())))
        .collect();
    let wwpn = |text: Option<&str>| text.and_then(|text| text.parse().ok()).map(Claim::Wwpn);
    let members = |text: Option<&str>| text.and_then(|text| read_members(text).ok());
    let wwpn_of = |member: &Member| match member {
        Member::Wwpn(wwpn) => Some(Claim::Wwpn(*wwpn)),
        Member::Name(_) => None,
    };
    match object {
        Object::Volume => {
            claims.extend(resolve::volume_path(name, set, paths).map(Claim::File));
            claims.extend(resolve::naa(state, name, set).map(Claim::Naa));
            let lu = pools::pool_of(set).zip(attr::volume::NUMBER.of(set));
            claims.extend(lu.map(|(pool, number)| Claim::Lu(pool.to_owned(), number)));
        }
        Object::Medium => claims.push(Claim::File(paths.medium(name, set))),
        Object::DataPlane => claims.push(Claim::Socket(paths.dataplane(name))),
        Object::Adapter => {
            claims.push(Claim::Socket(resolve::adapter_socket(name, set, paths)));
            claims.push(Claim::Device(name.clone()));
            if attr::adapter::KIND.value(set) == AdapterKind::Fc {
                claims.extend(san::wwpns(set).into_iter().flatten().map(Claim::Wwpn));
            }
            if let (Some(network), Some(mac)) =
                (attr::adapter::NETWORK.of(set), attr::adapter::MAC.of(set))
            {
                let mac = resolve::network::mac(mac);
                claims.extend(mac.map(|mac| Claim::Mac(network.to_owned(), mac)));
            }
        }
        Object::Target => {
            claims.extend(wwpn(attr::target::WWPN.of(set)));
            let id = attr::target::ID.of(set);
            claims.extend(id.map(|id| Claim::Id(home(set).to_owned(), id)));
        }
        Object::Zone => {
            let members = members(attr::zone::MEMBERS.of(set)).unwrap_or_default();
            claims.extend(members.iter().filter_map(wwpn_of));
        }
        Object::Mask => {
            let initiators = members(attr::mask::INITIATORS.of(set)).unwrap_or_default();
            let targets = members(attr::mask::TARGETS.of(set)).unwrap_or_default();
            claims.extend(initiators.iter().chain(&targets).filter_map(wwpn_of));
            claims.extend(initiators.into_iter().map(Claim::Masked));
        }
        Object::Uplink => {
            // Those of an aggregated one are its members'.
            if attr::uplink::MEMBERS.of(set).is_none() {
                let interface = resolve::network::interface(name, set);
                claims.push(Claim::Interface(resolve::network::netns(set), interface.to_owned()));
            }
            claims.push(Claim::Device(name.clone()));
        }
        Object::Sea => {
            claims.push(Claim::Device(name.clone()));
            claims.extend(seas::control_of(set).map(str::to_owned).map(Claim::Control));
        }
        Object::Trunk => claims.push(Claim::Device(name.clone())),
        Object::Pool => claims.extend(pools::pvs(set, paths).into_iter().map(Claim::File)),
        Object::Port | Object::Vtd | Object::Network | Object::Snapshot => {}
    }
    claims
}

#[cfg(test)]
mod tests;
