//! What data planes shall be after a change, made of what they were to be before it: only what the change has to do with is worked out anew.
//!
//! The specification of an object is made of the object, of what it names, and of those that name one of both with it: the zones and masks
//! of an adapter, the users of a volume. So a small state of these gives the same specification as the whole one, by the same rules
//! ([`resolve::wanted`]). Its tests hold both against each other.

use super::{Claim, Neighbours, claims_of};
use crate::model::discovered::Discovered;
use crate::model::files::Made;
use crate::model::map::SharedMap;
use crate::model::resolve::{self, MEDIUM_UNIT, Wanted};
use crate::model::{Desired, Key, mentions_of, pools, san};
use crate::paths::Paths;
use fabric::attribute::{Attributes, Object, attr};
use fabric::san::{Member, Wwpn, read_members};
use std::collections::{BTreeMap, BTreeSet};

/// What each data plane shall be, by name.
pub type WantedOfAll = BTreeMap<String, Wanted>;

/// A change, and who has to do with it.
struct Around<'a> {
    neighbours: &'a Neighbours,
    states: [&'a Desired; 2],
    /// Who names and claims what, of those that are not as the neighbours know them.
    touched: BTreeMap<Claim, BTreeSet<Key>>,
}

impl Neighbours {
    /// What data planes shall be in `next`, where it is known what they shall be in `known`. None: as much has changed, or something on
    /// which so much depends, that the whole is worked out as fast. With the objects of which it was made.
    pub fn wanted(
        &self,
        (known, wanted): (&Desired, &WantedOfAll),
        next: &Desired,
        paths: &Paths,
    ) -> Option<(WantedOfAll, usize)> {
        let (before, after) = (&known.allocations, &next.allocations);
        if before.system != after.system || known.discovered != next.discovered {
            return None;
        }
        let changed = known.touched(next);
        let seen = &next.discovered.seen;
        let of_all = |(object, name): &Key| match object {
            Object::DataPlane => true,
            // Whose disks are found, and by which way, is found for all.
            Object::Port => !seen.is_empty(),
            Object::Adapter => seen.contains_key(name),
            _ => false,
        };
        let all: usize = Object::ALL.into_iter().map(|object| next[object].len()).sum();
        if changed.iter().any(of_all) || 2 * changed.len() > all {
            return None;
        }
        let mut touched: BTreeMap<Claim, BTreeSet<Key>> = BTreeMap::new();
        let stale = self.at.touched(known);
        if 2 * stale.len() > all {
            return None;
        }
        for key in stale.iter().chain(&changed) {
            for set in [known, next].into_iter().filter_map(|state| state[key.0].get(&key.1)) {
                for claim in claims_of(next, key, set, paths) {
                    touched.entry(claim).or_default().insert(key.clone());
                }
            }
        }
        let around = Around { neighbours: self, states: [known, next], touched };
        let mut affected = BTreeSet::new();
        changed.iter().for_each(|key| around.affected(key, &mut affected));
        let of = |object, names: Vec<String>| names.into_iter().map(move |name| (object, name));
        let names = before.maxima.differences(&after.maxima);
        let names = names.iter().map(|difference| difference.name().to_owned()).collect();
        affected.extend(of(Object::Adapter, names));
        let names = before.files.differences(&after.files);
        let names = names.iter().map(|difference| difference.name().to_owned()).collect();
        affected.extend(of(Object::Volume, names));
        let is = |objects: &[Object]| changed.iter().any(|(object, _)| objects.contains(object));
        let uplinks = is(&[Object::Network, Object::Uplink, Object::Trunk, Object::Sea]);
        let asks = !next[Object::Snapshot].is_empty() && before.files != after.files;
        let placed = |(object, name): &Key| {
            let sets = [known, next].map(|state| state[*object].get(name));
            let says = |set: &Attributes| {
                attr::volume::TIER.is_set(set) || crate::model::pools::says_of_full(set)
            };
            *object == Object::Volume && sets.into_iter().flatten().any(says)
        };
        let places = changed.iter().any(placed) || affected.iter().any(placed);
        let pools = is(&[Object::Pool]) || before.pools != after.pools || asks || places;
        // LUs that are to be made of a snapshot that was made just now.
        let frozen = before.pools.differences(&after.pools).into_iter();
        let frozen =
            frozen.filter(|of| of.after.as_ref().is_some_and(|pool| !pool.1.snapshots.is_empty()));
        for pool in frozen {
            let lus = self.holders(&Claim::Names(Object::Pool, pool.name().to_owned()));
            affected.extend(
                lus.filter(|(object, name)| {
                    let set = next[Object::Volume].get(name);
                    let waits = after.files.get(name) == Some(&Made::New);
                    *object == Object::Volume
                        && waits
                        && set.is_some_and(|set| attr::volume::SNAPSHOT.is_set(set))
                })
                .cloned(),
            );
        }
        // And those whose tier has another number.
        let numbered = before.pools.differences(&after.pools).into_iter();
        let numbered = numbered.filter(|of| {
            let tiers = [&of.before, &of.after];
            let [was, is] = tiers.map(|entry| entry.as_ref().map(|entry| &entry.1.tiers));
            was != is
        });
        for pool in numbered {
            let lus = self.holders(&Claim::Names(Object::Pool, pool.name().to_owned()));
            affected.extend(lus.filter(|(object, _)| *object == Object::Volume).cloned());
        }
        let mut part = around.part(&affected);
        let own = part[Object::Adapter].keys().filter_map(|name| seen.get_key_value(name));
        let own = own.map(|(name, disks)| (name.clone(), disks.clone())).collect();
        part.discovered = Discovered { seen: own, ..Discovered::default() }.into();
        let size = Object::ALL.into_iter().map(|object| part[object].len()).sum();
        let one = |(dataplane, whole): (&String, &Wanted)| {
            let part = resolve::wanted(&part, dataplane, paths);
            let mut whole = whole.clone();
            for (object, name) in &affected {
                match object {
                    Object::Volume => {
                        put(&mut whole.volumes, &part.volumes, name);
                        put(&mut whole.units, &part.units, name);
                    }
                    Object::Medium => {
                        put(&mut whole.volumes, &part.volumes, &format!("{MEDIUM_UNIT}{name}"));
                    }
                    Object::Vtd => {
                        put(&mut whole.units, &part.units, &format!("{MEDIUM_UNIT}{name}"));
                    }
                    _ => put(&mut whole.adapters, &part.adapters, name),
                }
            }
            if pools {
                whole.pools = pools::wanted(next, dataplane, paths);
            }
            // There are as many as the host has interfaces.
            if uplinks {
                whole.uplinks = resolve::network::uplinks(next, dataplane).into_iter().collect();
            }
            (dataplane.clone(), whole)
        };
        Some((wanted.iter().map(one).collect(), size))
    }
}

/// What stands under a name in one becomes what stands there in the other.
fn put<V: Clone + PartialEq>(whole: &mut SharedMap<V>, part: &SharedMap<V>, name: &str) {
    match part.get(name) {
        Some(value) if whole.get(name) == Some(value) => {}
        Some(value) => drop(whole.insert(name.to_owned(), value.clone())),
        None => drop(whole.remove(name)),
    }
}

impl Around<'_> {
    fn holders<'a>(&'a self, claim: &Claim) -> impl Iterator<Item = &'a Key> + use<'a> {
        let touched = self.touched.get(claim).into_iter().flatten();
        self.neighbours.holders(claim).chain(touched)
    }

    /// The objects of one kind that name this one.
    fn users<'a>(
        &'a self,
        object: Object,
        name: &str,
        by: Object,
    ) -> impl Iterator<Item = &'a Key> + use<'a> {
        let claim = Claim::Names(object, name.to_owned());
        self.holders(&claim).filter(move |(object, _)| *object == by)
    }

    /// An object before and after.
    fn sets(&self, (object, name): &Key) -> impl Iterator<Item = &Attributes> {
        self.states.into_iter().filter_map(|state| state[*object].get(name))
    }

    /// Volumes, adapters, devices and media whose specifications may be others when this object is another.
    fn affected(&self, key: &Key, all: &mut BTreeSet<Key>) {
        let (object, name) = key;
        match object {
            Object::Volume => {
                all.insert(key.clone());
                all.extend(self.users(*object, name, Object::Adapter).cloned());
            }
            Object::Adapter => {
                all.insert(key.clone());
                self.opened(key, all);
                for vtd in self.users(*object, name, Object::Vtd) {
                    all.insert(vtd.clone());
                    self.opened(vtd, all);
                }
            }
            Object::Vtd => {
                all.insert(key.clone());
                self.opened(key, all);
                let adapters = self.sets(key).filter_map(|set| attr::vtd::ADAPTER.of(set));
                all.extend(adapters.map(|name| (Object::Adapter, name.to_owned())));
            }
            Object::Target => {
                self.opened(key, all);
                let mut ways: BTreeSet<&Key> = BTreeSet::new();
                for by in [Object::Zone, Object::Mask] {
                    ways.extend(self.users(*object, name, by));
                }
                for set in self.sets(key) {
                    let wwpn = attr::target::WWPN.of(set).and_then(|wwpn| wwpn.parse().ok());
                    ways.extend(wwpn.into_iter().flat_map(|wwpn| self.ways_of(wwpn)));
                }
                ways.into_iter().for_each(|way| self.members(way, Object::Adapter, all));
            }
            Object::Zone | Object::Mask => self.members(key, Object::Adapter, all),
            Object::Port => all.extend(self.users(*object, name, Object::Adapter).cloned()),
            Object::Medium => drop(all.insert(key.clone())),
            Object::Network => all.extend(self.users(*object, name, Object::Adapter).cloned()),
            // An LU is where its pool is.
            Object::Pool => {
                for volume in self.users(*object, name, Object::Volume) {
                    self.affected(volume, all);
                }
            }
            Object::DataPlane | Object::Uplink | Object::Trunk | Object::Sea | Object::Snapshot => {
            }
        }
    }

    /// What an object has open: where it is opened depends on who does.
    fn opened(&self, key: &Key, all: &mut BTreeSet<Key>) {
        for set in self.sets(key) {
            let named = mentions_of(key.0, set);
            all.extend(named.flat_map(|of| {
                let opened = [Object::Volume, Object::Medium].into_iter();
                let opened = opened.filter(move |object| of.objects.contains(object));
                opened.map(|object| (object, of.name.clone())).collect::<Vec<_>>()
            }));
        }
    }

    /// The zones and masks in which a WWPN stands.
    fn ways_of<'a>(&'a self, wwpn: Wwpn) -> impl Iterator<Item = &'a Key> + use<'a> {
        let holders = self.holders(&Claim::Wwpn(wwpn));
        holders.filter(|(object, _)| matches!(object, Object::Zone | Object::Mask))
    }

    /// The adapters, or the targets, that are members of a zone or a mask.
    fn members(&self, way: &Key, object: Object, all: &mut BTreeSet<Key>) {
        for set in self.sets(way) {
            let lists = [
                attr::zone::MEMBERS.of(set).filter(|_| way.0 == Object::Zone),
                attr::mask::INITIATORS.of(set).filter(|_| way.0 == Object::Mask),
                attr::mask::TARGETS.of(set).filter(|_| way.0 == Object::Mask),
            ];
            for member in lists.into_iter().flatten().flat_map(read_members).flatten() {
                match member {
                    Member::Name(name) => drop(all.insert((object, name))),
                    Member::Wwpn(wwpn) => {
                        let holders = self.holders(&Claim::Wwpn(wwpn));
                        all.extend(holders.filter(|(by, _)| *by == object).cloned());
                    }
                }
            }
        }
    }

    /// The part of the state of which the specifications of these are made.
    fn part(&self, affected: &BTreeSet<Key>) -> Desired {
        let next = self.states[1];
        let mut around = affected.clone();
        for key in affected {
            let (object, name) = key;
            let beside: &[Object] = match object {
                Object::Volume => &[Object::Adapter, Object::Target, Object::Vtd],
                Object::Adapter => &[Object::Vtd, Object::Zone, Object::Mask],
                Object::Medium => &[Object::Vtd],
                _ => &[],
            };
            let mut ways: BTreeSet<&Key> = BTreeSet::new();
            for by in beside {
                ways.extend(self.users(*object, name, *by));
            }
            if *object == Object::Adapter {
                let wwpns = next[*object].get(name).and_then(san::wwpns).into_iter().flatten();
                ways.extend(wwpns.flat_map(|wwpn| self.ways_of(wwpn)));
            }
            for way in ways {
                self.members(way, Object::Target, &mut around);
                around.insert(way.clone());
            }
        }
        let allocations = next.allocations.clone();
        let mut part = Desired { allocations, ..Desired::default() };
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
}
