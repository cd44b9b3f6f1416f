//! What one holder of leases does next: a state machine without a network or a clock.
//!
//! # What there is under a prefix
//!
//! | key | |
//! |---|---|
//! | `partner/0`, `partner/1` | the places of the two partners, each with a lease: who it is, and its beacon |
//! | `tokens` | of each partner the VLANs that it has; no lease |
//!
//! A VLAN is had by who stands in `tokens` with it *and* has a place. When the lease of a place runs out, what it had is free.
//!
//! # Why nobody is told that it holds what another has
//!
//! - A renewal is a *new* lease, put under the place in a transaction. Both go through the cluster's log, so a leader that was deposed cannot grant it,
//!   and none of it rests on etcd's keep-alives. The deadline counts from before the lease was asked for, with [`MARGIN_NS`] to spare for clocks that differ and
//!   for what was judged in time and is handed to the kernel a moment later.
//! - Every transaction compares the last change of its key with what was seen: a request that is late, doubled, or of a control plane of before does nothing. So
//!   an older lease never replaces a newer one.
//! - A VLAN is *had* when an own change of `tokens` that names it has succeeded. What is given up is not told from before the request is sent. So an answer
//!   that is lost leaves at most a VLAN that nobody uses, and the next change makes the lost one void. A partner that is there again after its lease had run
//!   out has nothing before such a change, whatever stands there.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use protocol::opener::Wants;
use serde::{Deserialize, Serialize};

/// For how long a lease runs without being renewed.
pub(super) const LEASE_S: u64 = 3;
/// How much sooner its holder stops.
pub(super) const MARGIN_NS: u64 = 500_000_000;
/// How often it is renewed.
const RENEW_NS: u64 = 500_000_000;

type VlanSet = BTreeSet<u16>;

/// A key, without its prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Partner(usize),
    Tokens,
}

impl Key {
    pub(super) const ALL: [Key; 3] = [Key::Partner(0), Key::Partner(1), Key::Tokens];

    pub(super) fn text(self) -> &'static str {
        match self {
            Key::Partner(0) => "partner/0",
            Key::Partner(_) => "partner/1",
            Key::Tokens => "tokens",
        }
    }
}

/// What a key has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) value: Vec<u8>,
    /// The revision in which it was made, and that of its last change.
    pub(super) created: i64,
    pub(super) changed: i64,
}

/// All keys at one moment, in the order of [`Key::ALL`].
pub(super) type Seen = [Option<Entry>; 3];

/// One transaction: a key gets a value, or goes, if it has not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Put {
    pub(super) key: Key,
    /// The revision of its last change; 0: it is not there.
    pub(super) changed: i64,
    /// None: it goes.
    pub(super) value: Option<Vec<u8>>,
    /// With a new lease of [`LEASE_S`].
    pub(super) leased: bool,
    /// The VLANs that are had when it has succeeded.
    vids: VlanSet,
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) succeeded: bool,
    /// The revision that it made.
    pub(super) revision: i64,
    /// For how long the lease runs that it got.
    pub(super) lease_s: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Partner {
    /// In hexadecimal: JSON's numbers are shorter.
    identity: String,
    /// In Base64.
    beacon: String,
}

fn name(identity: u64) -> String {
    format!("{identity:016x}")
}

/// Who has which VLANs.
type Record = BTreeMap<String, VlanSet>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Own {
    place: usize,
    created: i64,
}

/// One holder.
#[derive(Debug, Clone)]
pub(super) struct Session {
    name: String,
    own: Option<Own>,
    /// What it has.
    has: VlanSet,
    /// That is known: what an earlier control plane did for it is over.
    known: bool,
    until_ns: u64,
    renewed_ns: Option<u64>,
    said: Vec<u8>,
    partner: Option<Vec<u8>>,
}

impl Session {
    pub(super) fn new(identity: u64) -> Session {
        Session {
            name: name(identity),
            own: None,
            has: VlanSet::new(),
            known: false,
            until_ns: 0,
            renewed_ns: None,
            said: Vec::new(),
            partner: None,
        }
    }

    /// The VLANs that it has, if that is known.
    pub(super) fn has(&self) -> Option<&VlanSet> {
        self.known.then_some(&self.has)
    }

    /// Until when.
    pub(super) fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// What the partner says of itself, if one is there.
    pub(super) fn partner(&self) -> Option<&[u8]> {
        self.partner.as_deref()
    }

    /// What to do next; an error says what is in the way.
    pub(super) fn next(
        &mut self,
        seen: &Seen,
        wants: &Wants,
        now_ns: u64,
    ) -> Result<Option<Put>, String> {
        let partners = partners(seen)?;
        let mine = |at: &usize| partners[*at].as_ref().is_some_and(|one| one.identity == self.name);
        let found = (0..2).find(mine);
        let own = found.map(|place| Own { place, created: created(seen, Key::Partner(place)) });
        if self.own.is_some() && self.own != own {
            // The lease has run out.
            self.has.clear();
            (self.until_ns, self.renewed_ns) = (0, None);
        }
        if own.is_none() {
            // It has nothing then, whoever did something for it before.
            self.known = true;
        }
        self.own = own;
        let Some(Own { place, .. }) = self.own else {
            let Some(free) = (0..2).find(|at| partners[*at].is_none()) else {
                self.partner = None;
                return Err(
                    "two others have it already: a place in etcd is for one pair".to_owned()
                );
            };
            self.partner = partners[1 - free].as_ref().and_then(Partner::heard);
            return Ok(Some(self.say(free, 0, wants)));
        };
        let other = partners[1 - place].as_ref();
        self.partner = other.and_then(Partner::heard);
        let due = self.renewed_ns.is_none_or(|at| now_ns.saturating_sub(at) >= RENEW_NS);
        if due || self.said != wants.beacon {
            return Ok(Some(self.say(place, changed(seen, Key::Partner(place)), wants)));
        }
        let record = record(seen)?;
        let others = other.and_then(|one| record.get(&one.identity)).cloned().unwrap_or_default();
        let wanted: VlanSet = wants.vids.iter().copied().collect();
        let vids = &wanted - &others;
        let stands = record.get(&self.name).cloned().unwrap_or_default();
        if self.known && vids == self.has && vids == stands || vids.is_empty() && stands.is_empty()
        {
            self.known = true;
            return Ok(None);
        }
        // What is given up is somebody else's from now on.
        self.has = &self.has & &vids;
        let mut next = Record::new();
        if let Some(other) = other.filter(|_| !others.is_empty()) {
            next.insert(other.identity.clone(), others);
        }
        if !vids.is_empty() {
            next.insert(self.name.clone(), vids.clone());
        }
        let (key, changed) = (Key::Tokens, changed(seen, Key::Tokens));
        let value = Some(serde_json::to_vec(&next).expect("names and numbers"));
        Ok(Some(Put { key, changed, value, leased: false, vids }))
    }

    fn say(&self, place: usize, changed: i64, wants: &Wants) -> Put {
        let says = Partner { identity: self.name.clone(), beacon: BASE64.encode(&wants.beacon) };
        let value = Some(serde_json::to_vec(&says).expect("two texts"));
        Put { key: Key::Partner(place), changed, value, leased: true, vids: VlanSet::new() }
    }

    /// What became of it; `before_ns` is a moment before its lease was asked for. To be told before anything else is done.
    pub(super) fn done(&mut self, put: &Put, done: Done, before_ns: u64) {
        if !done.succeeded {
            return;
        }
        match put.key {
            Key::Tokens => {
                self.has.clone_from(&put.vids);
                self.known = true;
            }
            Key::Partner(place) => {
                if self.own.is_none() {
                    self.own = Some(Own { place, created: done.revision });
                }
                let runs = done.lease_s.saturating_mul(1_000_000_000).saturating_sub(MARGIN_NS);
                self.until_ns = self.until_ns.max(before_ns.saturating_add(runs));
                self.renewed_ns = Some(before_ns);
                self.said = put.value.as_deref().and_then(said).unwrap_or_default();
            }
        }
    }

    /// What takes a holder out that has ended.
    pub(super) fn leave(&self, seen: &Seen) -> Option<Put> {
        let partners = partners(seen).ok()?;
        let mine = |at: &usize| partners[*at].as_ref().is_some_and(|one| one.identity == self.name);
        let key = Key::Partner((0..2).find(mine)?);
        let changed = changed(seen, key);
        Some(Put { key, changed, value: None, leased: false, vids: VlanSet::new() })
    }
}

impl Partner {
    fn heard(&self) -> Option<Vec<u8>> {
        BASE64.decode(&self.beacon).ok()
    }
}

fn said(value: &[u8]) -> Option<Vec<u8>> {
    serde_json::from_slice::<Partner>(value).ok()?.heard()
}

fn entry(seen: &Seen, key: Key) -> Option<&Entry> {
    let at = Key::ALL.iter().position(|one| *one == key)?;
    seen[at].as_ref()
}

fn created(seen: &Seen, key: Key) -> i64 {
    entry(seen, key).map_or(0, |entry| entry.created)
}

fn changed(seen: &Seen, key: Key) -> i64 {
    entry(seen, key).map_or(0, |entry| entry.changed)
}

fn partners(seen: &Seen) -> Result<[Option<Partner>; 2], String> {
    let read =
        |at| entry(seen, Key::Partner(at)).map(|entry| read(Key::Partner(at), entry)).transpose();
    Ok([read(0)?, read(1)?])
}

fn record(seen: &Seen) -> Result<Record, String> {
    entry(seen, Key::Tokens).map_or(Ok(Record::new()), |entry| read(Key::Tokens, entry))
}

fn read<T: serde::de::DeserializeOwned>(key: Key, entry: &Entry) -> Result<T, String> {
    serde_json::from_slice(&entry.value)
        .map_err(|_| format!("what stands in {} was not written by Trunkline", key.text()))
}

#[cfg(test)]
mod tests;
