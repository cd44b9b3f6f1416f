//! A data plane's account of itself as what differs from the one before.
//!
//! An account names every LUN of every client; of thousands of adapters hardly one changes between two looks. So each connection
//! remembers what it has told, and tells what is new. Both sides hold the same account: [`Account`].

use std::collections::BTreeMap;

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

impl<T: Named> Delta<T> {
    fn between(before: &[T], now: &[T]) -> Delta<T> {
        let mut known: BTreeMap<&str, &T> = before.iter().map(|one| (one.name(), one)).collect();
        let other = |one: &&T| known.remove(one.name()) != Some(*one);
        let changed: Vec<T> = now.iter().filter(other).cloned().collect();
        Delta { gone: known.into_keys().map(str::to_owned).collect(), now: changed }
    }

    /// In the order of names, as every account is.
    fn apply(self, list: &mut Vec<T>) {
        if self.gone.is_empty() && self.now.is_empty() {
            return;
        }
        let all = std::mem::take(list).into_iter();
        let mut all: BTreeMap<String, T> = all.map(|one| (one.name().to_owned(), one)).collect();
        for name in &self.gone {
            all.remove(name);
        }
        all.extend(self.now.into_iter().map(|one| (one.name().to_owned(), one)));
        *list = all.into_values().collect();
    }
}

impl Changes {
    /// What makes `now` of `before`, both in the order of names.
    #[must_use]
    pub fn between(before: &Status, now: &Status) -> Changes {
        Changes {
            pid: now.pid,
            version: now.version.clone(),
            uptime_s: now.uptime_s,
            confinement: now.confinement.clone(),
            channels: now.channels.clone(),
            opening: now.opening.clone(),
            volumes: Delta::between(&before.volumes, &now.volumes),
            units: Delta::between(&before.units, &now.units),
            adapters: Delta::between(&before.adapters, &now.adapters),
            uplinks: Delta::between(&before.uplinks, &now.uplinks),
            pools: Delta::between(&before.pools, &now.pools),
        }
    }

    /// Makes of an account the one after it.
    pub fn apply(self, status: &mut Status) {
        let Changes { pid, version, uptime_s, confinement, channels, opening, .. } = self;
        let Changes { volumes, units, adapters, uplinks, pools, .. } = self;
        (status.pid, status.version, status.uptime_s) = (pid, version, uptime_s);
        status.confinement = confinement;
        (status.channels, status.opening) = (channels, opening);
        volumes.apply(&mut status.volumes);
        units.apply(&mut status.units);
        adapters.apply(&mut status.adapters);
        uplinks.apply(&mut status.uplinks);
        pools.apply(&mut status.pools);
    }
}

/// The account that both sides of a connection hold.
#[derive(Debug, Default)]
pub struct Account {
    status: Status,
}

impl Account {
    /// How an asker of this [`super::MINOR`] asks for an account.
    #[must_use]
    pub fn question(minor: u32) -> Request {
        if minor >= 1 { Request::Changes } else { Request::Status }
    }

    /// What to tell whoever asks for changes.
    pub fn tell(&mut self, now: Status) -> Reply {
        let changes = Changes::between(&self.status, &now);
        self.status = now;
        Reply::Changes(changes)
    }

    /// An answer with the whole account in place of its changes.
    pub fn hear(&mut self, reply: Reply) -> Reply {
        match reply {
            Reply::Changes(changes) => {
                changes.apply(&mut self.status);
                Reply::Status(self.status.clone())
            }
            other => other,
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
            assert_eq!(heard.hear(Reply::Changes(changes)), Reply::Status(now));
        }
        assert_eq!(heard.hear(Reply::Done), Reply::Done);
    }
}
