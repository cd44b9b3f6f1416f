//! A data plane's account of itself as what differs from the one before.
//!
//! An account names every LUN of every client; of thousands of adapters hardly one changes between two looks. So each connection
//! remembers what it has told, and tells what is new. Both sides hold the same account: [`Account`].

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    AdapterStatus, ChannelStatus, OpeningStatus, PoolStatus, Reply, Request, Status, UnitStatus,
    UplinkStatus, VolumeStatus,
};

/// What differs between two accounts. What is small is told as it is now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    /// See [`Status::pid`].
    pub pid: u32,
    /// See [`Status::version`].
    pub version: String,
    /// See [`Status::uptime_s`].
    pub uptime_s: u64,
    /// See [`Status::confinement`].
    pub confinement: String,
    /// See [`Status::channels`].
    pub channels: Vec<ChannelStatus>,
    /// See [`Status::opening`].
    pub opening: Vec<OpeningStatus>,
    /// Volumes.
    pub volumes: Delta<VolumeStatus>,
    /// Logical units.
    pub units: Delta<UnitStatus>,
    /// Adapters.
    pub adapters: Delta<AdapterStatus>,
    /// Uplinks.
    pub uplinks: Delta<UplinkStatus>,
    /// Storage pools.
    pub pools: Delta<PoolStatus>,
}

/// What differs between two lists of named things.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delta<T> {
    /// Names of those that are no longer there.
    pub gone: Vec<String>,
    /// Those that are new, or other than they were.
    pub now: Vec<T>,
}

impl<T> Default for Delta<T> {
    fn default() -> Delta<T> {
        Delta { gone: Vec::new(), now: Vec::new() }
    }
}

/// What has a name of its own in its list.
pub trait Named: Clone + PartialEq {
    /// Its name.
    fn name(&self) -> &str;
}

impl Named for VolumeStatus {
    fn name(&self) -> &str {
        &self.spec.name
    }
}

impl Named for UnitStatus {
    fn name(&self) -> &str {
        &self.spec.name
    }
}

impl Named for AdapterStatus {
    fn name(&self) -> &str {
        &self.spec.name
    }
}

impl Named for UplinkStatus {
    fn name(&self) -> &str {
        &self.spec.name
    }
}

impl Named for PoolStatus {
    fn name(&self) -> &str {
        &self.spec.name
    }
}

/// What of an account is asked for, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Volumes.
    pub volumes: Vec<String>,
    /// Logical units.
    pub units: Vec<String>,
    /// Adapters.
    pub adapters: Vec<String>,
    /// Uplinks.
    pub uplinks: Vec<String>,
    /// Storage pools.
    pub pools: Vec<String>,
}

/// Named things of one kind, as the other side knows them.
#[derive(Debug)]
struct Shelf<T>(BTreeMap<String, T>);

impl<T> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf(BTreeMap::new())
    }
}

impl<T: Named> Shelf<T> {
    /// Becomes what there is now; what differs.
    fn become_all(&mut self, now: Vec<T>) -> Delta<T> {
        let mut before = std::mem::take(&mut self.0);
        let mut delta = Delta::default();
        for one in now {
            let name = one.name().to_owned();
            if before.remove(&name).as_ref() != Some(&one) {
                delta.now.push(one.clone());
            }
            self.0.insert(name, one);
        }
        delta.gone = before.into_keys().collect();
        delta
    }

    /// Becomes in what is named what there is of it now, all of which is told.
    fn become_some(&mut self, names: Vec<String>, now: Vec<T>) -> Delta<T> {
        let there: BTreeSet<&str> = now.iter().map(Named::name).collect();
        let gone = names.into_iter().filter(|name| !there.contains(name.as_str())).collect();
        let delta = Delta { gone, now };
        self.hear(delta.clone());
        delta
    }

    fn hear(&mut self, delta: Delta<T>) {
        for name in &delta.gone {
            self.0.remove(name);
        }
        self.0.extend(delta.now.into_iter().map(|one| (one.name().to_owned(), one)));
    }

    fn list(&self) -> Vec<T> {
        self.0.values().cloned().collect()
    }
}

/// The account that both sides of a connection hold.
#[derive(Debug, Default)]
pub struct Account {
    /// Without its lists.
    rest: Status,
    volumes: Shelf<VolumeStatus>,
    units: Shelf<UnitStatus>,
    adapters: Shelf<AdapterStatus>,
    uplinks: Shelf<UplinkStatus>,
    pools: Shelf<PoolStatus>,
}

impl Account {
    /// How an asker of this [`super::MINOR`] asks for an account.
    #[must_use]
    pub fn question(minor: u32) -> Request {
        if minor >= 1 { Request::Changes } else { Request::Status }
    }

    /// What to tell whoever asks for changes.
    pub fn tell(&mut self, now: Status) -> Reply {
        let Status { pid, version, uptime_s, confinement, channels, opening, .. } = now;
        let Status { volumes, units, adapters, uplinks, pools, .. } = now;
        self.rest = Status {
            pid,
            version: version.clone(),
            uptime_s,
            confinement: confinement.clone(),
            channels: channels.clone(),
            opening: opening.clone(),
            ..Status::default()
        };
        Reply::Changes(Changes {
            pid,
            version,
            uptime_s,
            confinement,
            channels,
            opening,
            volumes: self.volumes.become_all(volumes),
            units: self.units.become_all(units),
            adapters: self.adapters.become_all(adapters),
            uplinks: self.uplinks.become_all(uplinks),
            pools: self.pools.become_all(pools),
        })
    }

    /// What to tell whoever asks for what is named; `now` has nothing else.
    pub fn tell_of(&mut self, of: Selection, now: Status) -> Reply {
        let Status { pid, version, uptime_s, confinement, channels, opening, .. } = now;
        let Status { volumes, units, adapters, uplinks, pools, .. } = now;
        Reply::Changes(Changes {
            pid,
            version,
            uptime_s,
            confinement,
            channels,
            opening,
            volumes: self.volumes.become_some(of.volumes, volumes),
            units: self.units.become_some(of.units, units),
            adapters: self.adapters.become_some(of.adapters, adapters),
            uplinks: self.uplinks.become_some(of.uplinks, uplinks),
            pools: self.pools.become_some(of.pools, pools),
        })
    }

    /// Takes an answer in: [`Account::status`] has it from now on.
    pub fn hear(&mut self, changes: Changes) {
        let Changes { pid, version, uptime_s, confinement, channels, opening, .. } = changes;
        let Changes { volumes, units, adapters, uplinks, pools, .. } = changes;
        self.rest =
            Status { pid, version, uptime_s, confinement, channels, opening, ..Status::default() };
        self.volumes.hear(volumes);
        self.units.hear(units);
        self.adapters.hear(adapters);
        self.uplinks.hear(uplinks);
        self.pools.hear(pools);
    }

    /// All that was heard, in the order of names.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            volumes: self.volumes.list(),
            units: self.units.list(),
            adapters: self.adapters.list(),
            uplinks: self.uplinks.list(),
            pools: self.pools.list(),
            ..self.rest.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{NullSpec, VolumeSpec};

    fn status(volumes: &[(&str, u64)]) -> Status {
        let volume = |&(name, bytes): &(&str, u64)| VolumeStatus {
            spec: VolumeSpec::new(name, NullSpec { zero_fill: false }),
            bytes,
            access: "none".to_owned(),
            trouble: None,
            removed: false,
            lost: false,
            identity: None,
        };
        let channels = vec![ChannelStatus { index: 0, cpu: None, queues: volumes.len() as u32 }];
        let volumes = volumes.iter().map(volume).collect();
        let confinement = "some".to_owned();
        Status { pid: 7, confinement, channels, volumes, ..Status::default() }
    }

    #[test]
    fn what_is_heard_is_what_was_told_and_only_what_changed_travels() {
        let (mut told, mut heard) = (Account::default(), Account::default());
        type Volumes = &'static [(&'static str, u64)];
        let accounts: [(Volumes, [usize; 2]); 5] = [
            (&[("a", 1), ("b", 1), ("c", 1)], [0, 3]),
            (&[("a", 1), ("b", 1), ("c", 1)], [0, 0]),
            (&[("a", 1), ("aa", 1), ("c", 2)], [1, 2]),
            (&[], [3, 0]),
            (&[("z", 1)], [0, 1]),
        ];
        for (now, counts) in accounts {
            let now = status(now);
            let Reply::Changes(changes) = told.tell(now.clone()) else { panic!("changes") };
            let Delta { gone, now: new } = &changes.volumes;
            assert_eq!([gone.len(), new.len()], counts, "{changes:?}");
            heard.hear(changes);
            assert_eq!(heard.status(), now);
        }
    }

    #[test]
    fn what_was_told_by_name_is_not_forgotten_by_who_tells_the_rest() {
        let (mut told, mut heard) = (Account::default(), Account::default());
        let mut tell = |of: Option<&[&str]>, now: &[(&str, u64)]| {
            let now = status(now);
            let reply = match of {
                None => told.tell(now),
                Some(names) => {
                    let volumes: Vec<String> = names.iter().map(|name| (*name).into()).collect();
                    let mut part = now;
                    part.volumes.retain(|one| volumes.contains(&one.spec.name));
                    told.tell_of(Selection { volumes, ..Selection::default() }, part)
                }
            };
            let Reply::Changes(changes) = reply else { panic!("changes") };
            let counts = [changes.volumes.gone.len(), changes.volumes.now.len()];
            heard.hear(changes);
            (heard.status().volumes, counts)
        };
        let volumes = |volumes: &[(&str, u64)]| status(volumes).volumes;
        // Before anything else was told.
        let (heard, counts) = tell(Some(&["b", "none"]), &[("a", 1), ("b", 1)]);
        assert_eq!((heard, counts), (volumes(&[("b", 1)]), [1, 1]));
        let (heard, counts) = tell(None, &[("a", 1), ("b", 1)]);
        assert_eq!((heard, counts), (volumes(&[("a", 1), ("b", 1)]), [0, 1]));
        // It changes and changes back, and is told by name in between.
        tell(Some(&["a"]), &[("a", 2), ("b", 9)]);
        let (heard, counts) = tell(None, &[("a", 1), ("b", 1)]);
        assert_eq!((heard, counts), (volumes(&[("a", 1), ("b", 1)]), [0, 1]));
        // It goes and comes again.
        let (heard, _) = tell(Some(&["a"]), &[("b", 1)]);
        assert_eq!(heard, volumes(&[("b", 1)]));
        let (heard, counts) = tell(None, &[("a", 1), ("b", 1)]);
        assert_eq!((heard, counts), (volumes(&[("a", 1), ("b", 1)]), [0, 1]));
    }
}
