//! The fabric: ports, targets, zones and masks, and who sees which LUN.
//!
//! An adapter logs in through a port with its active WWPN. It sees a target if the port reaches the target and a zone
//! has both, and a LUN of it if a mask gives that LUN to it. [`Expanded::visible`] is the only place where that rule stands;
//! what data planes get is made of it, and a LUN that is not in its answer does not exist for the client.
//!
//! Everything here is sets: the order in which things were made has no influence. What must not change when others
//! come and go (WWPNs, a target's number) is given out once and kept ([`Ledger`], [`free_id`]).

mod members;
mod wwpn;

pub(crate) use members::join;
pub use members::{LUN_MAX, LunMap, Luns, Member, read_members, words, write_members};
pub use wwpn::{Ledger, Prefix, UsedUp, WWPNS_OF_PREFIX, Wwpn, read_pair};

use std::collections::{BTreeMap, BTreeSet};

/// An adapter as an initiator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initiator {
    /// Its pair; the first logs in, the second waits for a migration.
    pub wwpns: [Wwpn; 2],
    /// The port that it is mapped to.
    pub port: Option<String>,
}

/// A target port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its name in the fabric.
    pub wwpn: Wwpn,
    /// Its number at the client (virtio-scsi's target), kept for good: the client's paths to its disks have it.
    pub id: u8,
    /// The group of ports, a data plane, to which it belongs.
    pub group: String,
    /// The ports that reach it; empty is all of its group.
    pub ports: BTreeSet<String>,
    /// Its LUNs, and what is behind each.
    pub luns: BTreeMap<u16, String>,
}

/// A fabric.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct San {
    /// Ports, and the group of each.
    pub ports: BTreeMap<String, String>,
    /// Initiators by the adapter's name.
    pub initiators: BTreeMap<String, Initiator>,
    /// Targets by name.
    pub targets: BTreeMap<String, Target>,
    /// Zones: the members of one see each other.
    pub zones: Vec<BTreeSet<Member>>,
    /// Masks.
    pub masks: Vec<Mask>,
    /// What adapters see whose port leads to a fabric of the host's: its own zones and masks made it.
    pub remote: BTreeMap<String, BTreeMap<u8, Visible>>,
}

/// The LUNs that initiators have at targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    /// Who.
    pub initiators: BTreeSet<Member>,
    /// Where.
    pub targets: BTreeSet<Member>,
    /// Which.
    pub luns: Luns,
}

/// A target port that an initiator sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visible {
    /// The target.
    pub target: String,
    /// Its WWPN.
    pub wwpn: Wwpn,
    /// LUN numbers as the initiator has them, and what is behind each.
    pub luns: BTreeMap<u16, String>,
}

impl San {
    /// The fabric with all names replaced by WWPNs, to be asked.
    pub fn expand(&self) -> Expanded<'_> {
        let mut targets: BTreeMap<Wwpn, Vec<&str>> = BTreeMap::new();
        for (name, target) in &self.targets {
            targets.entry(target.wwpn).or_default().push(name);
        }
        let of = |wwpns: &BTreeSet<Wwpn>| -> BTreeSet<&str> {
            wwpns.iter().filter_map(|wwpn| targets.get(wwpn)).flatten().copied().collect()
        };
        let (mut zones, mut zones_of) = (Vec::new(), BTreeMap::<Wwpn, Vec<usize>>::new());
        for zone in &self.zones {
            let members = self.wwpns(zone);
            let targets = of(&members);
            if !targets.is_empty() {
                members.into_iter().for_each(|w| zones_of.entry(w).or_default().push(zones.len()));
                zones.push(targets);
            }
        }
        let (mut masks, mut masks_of) = (Vec::new(), BTreeMap::<Wwpn, Vec<usize>>::new());
        for mask in &self.masks {
            let initiators = self.wwpns(&mask.initiators);
            initiators.into_iter().for_each(|w| masks_of.entry(w).or_default().push(masks.len()));
            masks.push((of(&self.wwpns(&mask.targets)), &mask.luns));
        }
        Expanded { san: self, zones, zones_of, masks, masks_of }
    }

    /// The WWPNs for which members stand: both of an adapter, the one of a target.
    pub fn wwpns(&self, members: &BTreeSet<Member>) -> BTreeSet<Wwpn> {
        let mut all = BTreeSet::new();
        for member in members {
            match member {
                Member::Wwpn(wwpn) => all.extend([*wwpn]),
                Member::Name(name) => {
                    all.extend(self.initiators.get(name).into_iter().flat_map(|i| i.wwpns));
                    all.extend(self.targets.get(name).map(|target| target.wwpn));
                }
            }
        }
        all
    }

    /// Whether a port reaches a target.
    pub fn reaches(&self, port: &str, target: &Target) -> bool {
        self.ports.get(port).is_some_and(|group| *group == target.group)
            && (target.ports.is_empty() || target.ports.contains(port))
    }
}

/// A [`San`] with all names replaced by WWPNs. A question about an initiator costs what its own zones and masks cost, however many
/// others there are.
#[derive(Debug)]
pub struct Expanded<'a> {
    san: &'a San,
    /// The targets of each zone that has some.
    zones: Vec<BTreeSet<&'a str>>,
    /// The zones of each member.
    zones_of: BTreeMap<Wwpn, Vec<usize>>,
    /// The targets of each mask, and their LUNs.
    masks: Vec<(BTreeSet<&'a str>, &'a Luns)>,
    /// The masks of each initiator.
    masks_of: BTreeMap<Wwpn, Vec<usize>>,
}

impl Expanded<'_> {
    /// What an adapter sees with its active WWPN through the port that it is mapped to, by the number of the target.
    /// Nothing without a port. What a fabric of the host's shows is seen as it is.
    pub fn visible(&self, adapter: &str) -> BTreeMap<u8, Visible> {
        if let Some(seen) = self.san.remote.get(adapter) {
            return seen.clone();
        }
        let initiator = self.san.initiators.get(adapter);
        let mapped = initiator.and_then(|i| Some((i.wwpns[0], i.port.as_deref()?)));
        mapped.map(|(wwpn, port)| self.seen_by(wwpn, port)).unwrap_or_default()
    }

    /// What a WWPN sees that logs in through a port.
    pub fn seen_by(&self, wwpn: Wwpn, port: &str) -> BTreeMap<u8, Visible> {
        let zones = self.zones_of.get(&wwpn).into_iter().flatten().map(|zone| &self.zones[*zone]);
        let targets: BTreeSet<&str> = zones.flatten().copied().collect();
        let seen = targets.into_iter().filter_map(|name| {
            let target = self.san.targets.get(name)?;
            let luns = || self.unmasked(wwpn, name, target);
            self.san.reaches(port, target).then(|| {
                (target.id, Visible { target: name.to_owned(), wwpn: target.wwpn, luns: luns() })
            })
        });
        seen.collect()
    }

    /// The LUNs of a target that masks give to an initiator. Where two masks put different LUNs under one number, the lower LUN
    /// has it; [`Expanded::conflict`] finds that.
    fn unmasked(&self, initiator: Wwpn, name: &str, target: &Target) -> BTreeMap<u16, String> {
        let mut luns = BTreeMap::new();
        for (shown, lun) in self.given(initiator, name, target) {
            luns.entry(shown).or_insert_with(|| target.luns[&lun].clone());
        }
        luns
    }

    /// Pairs of the number that an initiator has for a LUN and the LUN's own, of LUNs that the target has.
    fn given(&self, initiator: Wwpn, name: &str, target: &Target) -> BTreeSet<(u16, u16)> {
        let mut given = BTreeSet::new();
        for (_, luns) in self.masks_of(initiator).filter(|(targets, _)| targets.contains(name)) {
            match luns {
                Luns::All => given.extend(target.luns.keys().map(|lun| (*lun, *lun))),
                Luns::Some(map) => given.extend(
                    map.iter()
                        .map(|(shown, lun)| (*shown, *lun))
                        .filter(|(_, lun)| target.luns.contains_key(lun)),
                ),
            }
        }
        given
    }

    fn masks_of(&self, initiator: Wwpn) -> impl Iterator<Item = &(BTreeSet<&str>, &Luns)> {
        self.masks_of.get(&initiator).into_iter().flatten().map(|mask| &self.masks[*mask])
    }

    /// The first target of which an initiator would have two LUNs under one number, that number, and both.
    pub fn conflict(&self, initiator: Wwpn) -> Option<(&str, u16, [u16; 2])> {
        let targets: BTreeSet<&str> =
            self.masks_of(initiator).flat_map(|(targets, _)| targets.iter().copied()).collect();
        targets.into_iter().find_map(|name| {
            let given = self.given(initiator, name, self.san.targets.get(name)?);
            let mut pairs = given.iter().zip(given.iter().skip(1));
            pairs.find(|(a, b)| a.0 == b.0).map(|(a, b)| (name, a.0, [a.1, b.1]))
        })
    }
}

/// The lowest target number that is free: among those of all targets if there is one, else among those of the targets
/// that can be seen beside it. `None`: there are 256 of these.
pub fn free_id(
    all: impl IntoIterator<Item = u8>,
    beside: impl IntoIterator<Item = u8>,
) -> Option<u8> {
    let lowest = |taken: BTreeSet<u8>| (0..=u8::MAX).find(|id| !taken.contains(id));
    lowest(all.into_iter().collect()).or_else(|| lowest(beside.into_iter().collect()))
}

#[cfg(test)]
mod tests;
