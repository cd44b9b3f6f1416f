//! What a client may find, told by what was answered and flushed; knows nothing of chunks.

use std::collections::{BTreeMap, BTreeSet};

use super::disk::SECTOR;
use crate::format::{BLOCK_BYTES, CHUNK_BYTES};

/// Which death it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// The process's: what was answered counts.
    Process,
    /// The host's: what was flushed counts.
    Power,
}

/// What somebody did to a part of an LU.
#[derive(Clone, Debug)]
struct Version {
    tag: u64,
    /// The LU to which it was written first.
    lu: u32,
    from: u64,
    end: u64,
    zeros: bool,
    submitted: u64,
    /// When it was over, however it ended.
    over: Option<u64>,
    answered: bool,
    flushed: bool,
    /// It was under way when something else was that undoes it, if it came after.
    may: bool,
}

#[derive(Clone, Debug)]
struct Lu {
    /// The chunks that it may have.
    chunks: Vec<u32>,
    versions: Vec<Version>,
    /// What it may hold instead, because of a rollback that is not over or was cut off, by its request.
    others: Vec<(u64, Vec<Version>)>,
    /// There is a snapshot of it, or may be: discards change nothing.
    shares: bool,
    deleted: Option<bool>,
}

impl Lu {
    /// All versions of all states.
    fn all(&mut self) -> impl Iterator<Item = &mut Version> {
        let others = self.others.iter_mut().flat_map(|(_, state)| state);
        self.versions.iter_mut().chain(others)
    }

    /// What a snapshot may hold that was asked for at that time and is there now: what was answered before is in it, and durable; what was under way may be.
    fn held(&self, submitted: u64) -> Vec<Vec<Version>> {
        let held = |version: &Version| {
            let before = version.over.is_some_and(|over| over < submitted);
            let there = before && version.answered;
            let over = version.over.filter(|_| before);
            // That it is answered later does not put it in.
            let may = version.may || over.is_none();
            Version { over, answered: there, flushed: there, may, ..version.clone() }
        };
        let states = [&self.versions].into_iter().chain(self.others.iter().map(|(_, one)| one));
        states.map(|state| state.iter().map(held).collect()).collect()
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Data { lu: u32, durable: bool },
    Flush { lu: u32 },
    Create { chunks: u32 },
    Delete { lu: u32 },
    Resize { lu: u32, chunks: u32 },
    Snapshot { lus: Vec<u32> },
    Clone { snapshot: u32 },
    Rollback { lus: Vec<u32> },
    Other,
}

/// The oracle.
#[derive(Clone, Debug, Default)]
pub(super) struct Oracle {
    now: u64,
    lus: BTreeMap<u32, Lu>,
    open: BTreeMap<u64, (Kind, u64)>,
    /// LUs whose making was cut off: chunks of each.
    perhaps: Vec<u32>,
    /// LUs of which snapshots and clones may be that nobody was told of.
    strange: BTreeSet<u32>,
    /// What a request has made.
    made: BTreeMap<u64, Vec<u32>>,
    /// Requests that end now are cut off, not refused.
    cut: bool,
}

/// What each sector of a client's write has: 64 times the tag of its request, with the LU.
pub(super) fn stamp(lu: u32, tag: u64) -> [u8; SECTOR] {
    let word = (u64::from(lu) << 48 | tag | 1 << 47).to_le_bytes();
    std::array::from_fn(|index| word[index % 8])
}

impl Oracle {
    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    fn submitted(&mut self, tag: u64, kind: Kind) -> u64 {
        let now = self.tick();
        self.open.insert(tag, (kind, now));
        now
    }

    pub(super) fn write(&mut self, tag: u64, lu: u32, at: u64, bytes: u64, durable: bool) {
        self.change(tag, lu, (at, at + bytes), false, durable);
    }

    pub(super) fn zeroes(&mut self, tag: u64, lu: u32, at: u64, bytes: u64) {
        self.change(tag, lu, (at, at + bytes), true, false);
    }

    pub(super) fn discard(&mut self, tag: u64, lu: u32, at: u64, bytes: u64) {
        let whole = (at.next_multiple_of(BLOCK_BYTES), (at + bytes) / BLOCK_BYTES * BLOCK_BYTES);
        self.change(tag, lu, whole, true, false);
        if self.lus.get(&lu).is_some_and(|lu| lu.shares)
            && let Some(open) = self.open.get_mut(&tag)
        {
            open.0 = Kind::Other;
        }
    }

    pub(super) fn snapshot(&mut self, tag: u64, lus: Vec<u32>) {
        for lu in &lus {
            if let Some(lu) = self.lus.get_mut(lu) {
                lu.shares = true;
            }
        }
        self.submitted(tag, Kind::Snapshot { lus });
    }

    pub(super) fn clone_of(&mut self, tag: u64, snapshot: u32) {
        self.submitted(tag, Kind::Clone { snapshot });
    }

    pub(super) fn rollback(&mut self, tag: u64, pairs: Vec<(u32, u32)>) {
        let lus = pairs.iter().map(|(lu, _)| *lu).collect();
        let now = self.submitted(tag, Kind::Rollback { lus });
        for (lu, snapshot) in pairs {
            let known = self.lus.get(&snapshot).map(|lu| lu.held(now));
            let held = known.or_else(|| self.held_soon(lu)).unwrap_or_default();
            let Some(lu) = self.lus.get_mut(&lu) else { continue };
            // What is under way may come before it or after.
            let under_way = lu.versions.iter().filter(|version| version.over.is_none()).cloned();
            let under_way: Vec<Version> =
                under_way.map(|version| Version { may: true, ..version }).collect();
            let other = |held: Vec<Version>| (tag, [held, under_way.clone()].concat());
            lu.others.extend(held.into_iter().map(other));
        }
    }

    /// What a snapshot of an LU will hold that is being made.
    fn held_soon(&self, lu: u32) -> Option<Vec<Vec<Version>>> {
        let begun = self.open.values().find_map(|(kind, begun)| match kind {
            Kind::Snapshot { lus } if lus.contains(&lu) => Some(*begun),
            _ => None,
        });
        Some(self.lus.get(&lu)?.held(begun?))
    }

    /// What a request has made, before it is over.
    pub(super) fn made(&mut self, tag: u64, lus: Vec<u32>) {
        self.made.insert(tag, lus);
    }

    fn take_made(&mut self, tag: u64, sources: &[u32], submitted: u64) {
        let Some(made) = self.made.remove(&tag) else { return };
        for (number, source) in made.into_iter().zip(sources) {
            let Some(from) = self.lus.get(source) else { continue };
            let mut states = from.held(submitted);
            let versions = states.remove(0);
            let others = states.into_iter().map(|state| (0, state)).collect();
            let chunks = from.chunks.clone();
            // Somebody may have asked for its end before it was there.
            let ends =
                |(kind, _): &(Kind, u64)| matches!(kind, Kind::Delete { lu } if *lu == number);
            let deleted = self.open.values().any(ends).then_some(false);
            let lu = Lu { chunks, versions, others, shares: true, deleted };
            assert!(self.lus.insert(number, lu).is_none(), "LU {number} was there");
        }
    }

    fn change(&mut self, tag: u64, lu: u32, (from, end): (u64, u64), zeros: bool, durable: bool) {
        let submitted = self.submitted(tag, Kind::Data { lu, durable });
        let version = Version {
            tag,
            lu,
            from,
            end,
            zeros,
            submitted,
            over: None,
            answered: false,
            flushed: false,
            may: false,
        };
        if let Some(lu) = self.lus.get_mut(&lu) {
            for (rollback, other) in &mut lu.others {
                // A rollback that is not over may come after it.
                let may = self.open.contains_key(rollback);
                other.push(Version { may, ..version.clone() });
            }
            lu.versions.push(version);
        }
    }

    pub(super) fn flush(&mut self, tag: u64, lu: u32) {
        self.submitted(tag, Kind::Flush { lu });
    }

    pub(super) fn create(&mut self, tag: u64, chunks: u32) {
        self.submitted(tag, Kind::Create { chunks });
    }

    pub(super) fn delete(&mut self, tag: u64, lu: u32) {
        self.submitted(tag, Kind::Delete { lu });
        if let Some(lu) = self.lus.get_mut(&lu) {
            lu.deleted = lu.deleted.or(Some(false));
        }
    }

    /// What is behind the new end is zeros, if it is ever seen again.
    pub(super) fn resize(&mut self, tag: u64, lu: u32, chunks: u32) {
        let end = u64::from(chunks) * CHUNK_BYTES;
        self.change(tag, lu, (end, u64::MAX), true, true);
        if let Some(open) = self.open.get_mut(&tag) {
            open.0 = Kind::Resize { lu, chunks };
        }
        if let Some(lu) = self.lus.get_mut(&lu) {
            lu.chunks.push(chunks);
        }
    }

    pub(super) fn other(&mut self, tag: u64) {
        self.submitted(tag, Kind::Other);
    }

    /// A request was answered, or ended in another way.
    pub(super) fn over(&mut self, tag: u64, answered: bool, created: Option<u32>) {
        let now = self.tick();
        let Some((kind, submitted)) = self.open.remove(&tag) else {
            panic!("{tag} answered twice")
        };
        match kind {
            Kind::Data { lu, .. } | Kind::Resize { lu, .. } => {
                let durable = !matches!(kind, Kind::Data { durable: false, .. });
                let cut = self.cut;
                if let (Kind::Resize { chunks, .. }, Some(lu)) = (&kind, self.lus.get_mut(&lu)) {
                    match (answered, cut) {
                        (true, _) => lu.chunks = vec![*chunks],
                        (false, true) => {}
                        (false, false) => _ = lu.chunks.pop(),
                    }
                }
                let versions = self.lus.get_mut(&lu).map(Lu::all);
                let versions = versions.into_iter().flatten();
                for version in versions.filter(|version| version.tag == tag && !version.may) {
                    version.over = Some(now);
                    version.answered = answered;
                    version.flushed = answered && durable;
                }
            }
            Kind::Flush { lu } if answered => {
                let versions = self.lus.get_mut(&lu).map(Lu::all);
                for version in versions.into_iter().flatten() {
                    let before = version.over.is_some_and(|over| over < submitted);
                    version.flushed |= version.answered && before;
                }
            }
            Kind::Create { chunks } => match created {
                Some(number) => {
                    let (versions, others) = (Vec::new(), Vec::new());
                    let chunks = vec![chunks];
                    let lu = Lu { chunks, versions, others, shares: false, deleted: None };
                    assert!(self.lus.insert(number, lu).is_none(), "LU {number} was there");
                }
                None => self.perhaps.push(chunks),
            },
            Kind::Delete { lu } if answered => {
                if let Some(lu) = self.lus.get_mut(&lu) {
                    lu.deleted = Some(true);
                }
            }
            Kind::Snapshot { lus } if answered => self.take_made(tag, &lus, submitted),
            Kind::Clone { snapshot } if answered => self.take_made(tag, &[snapshot], submitted),
            Kind::Snapshot { lus } if self.cut => self.strange.extend(lus),
            Kind::Clone { snapshot } if self.cut => _ = self.strange.insert(snapshot),
            Kind::Rollback { lus } => {
                let cut = self.cut;
                for lu in lus {
                    let Some(lu) = self.lus.get_mut(&lu) else { continue };
                    let others = std::mem::take(&mut lu.others).into_iter();
                    let (mut these, others): (Vec<_>, Vec<_>) =
                        others.partition(|(other, _)| *other == tag);
                    // What it held up comes after it.
                    for version in these.iter_mut().flat_map(|(_, state)| state) {
                        let later = version.submitted > submitted;
                        version.may &= !(later && answered && self.open.contains_key(&version.tag));
                    }
                    lu.others = others;
                    if answered {
                        lu.versions = these.remove(0).1;
                        // Another that is under way is still to come.
                        lu.others.retain(|(other, _)| self.open.contains_key(other));
                        lu.others.extend(these);
                    } else if cut {
                        lu.others.extend(these);
                    }
                }
            }
            Kind::Flush { .. }
            | Kind::Delete { .. }
            | Kind::Snapshot { .. }
            | Kind::Clone { .. }
            | Kind::Other => {}
        }
    }

    /// The process died: nothing that it was at will be answered.
    pub(super) fn died(&mut self) {
        self.cut = true;
        for tag in self.open.keys().copied().collect::<Vec<_>>() {
            self.over(tag, false, None);
        }
        self.cut = false;
    }

    /// The power failed: what was not flushed may be there or not, and counts for nothing.
    pub(super) fn power_failed(&mut self) {
        self.died();
        for version in self.lus.values_mut().flat_map(Lu::all) {
            version.answered &= version.flushed;
        }
    }

    pub(super) fn is_open(&self, tag: u64) -> bool {
        self.open.contains_key(&tag)
    }

    /// Holds the LUs that were found against those that may be.
    pub(super) fn judge_lus(&self, found: &BTreeMap<u32, u32>) -> Result<(), String> {
        for (number, lu) in &self.lus {
            match (lu.deleted, found.get(number)) {
                (Some(true), Some(_)) => {
                    return Err(format!("LU {number} was deleted and is there"));
                }
                (None, None) => return Err(format!("LU {number} is gone")),
                (_, Some(chunks)) if !lu.chunks.contains(chunks) => {
                    return Err(format!("LU {number} has {chunks} chunks"));
                }
                _ => {}
            }
        }
        let unknown = found.keys().filter(|number| !self.lus.contains_key(number)).count();
        let creates = self.open.values().filter(|(kind, _)| matches!(kind, Kind::Create { .. }));
        let sources = self.sources();
        if sources.is_empty() && unknown > creates.count() + self.perhaps.len() {
            return Err("an LU that nobody made".to_string());
        }
        Ok(())
    }

    /// LUs of which there may be snapshots and clones that nobody was told of.
    fn sources(&self) -> BTreeSet<u32> {
        let open = self.open.values().flat_map(|(kind, _)| match kind {
            Kind::Snapshot { lus } => lus.clone(),
            Kind::Clone { snapshot } => vec![*snapshot],
            _ => Vec::new(),
        });
        open.chain(self.strange.iter().copied()).collect()
    }

    /// Holds what was read of an LU against what may be there.
    pub(super) fn judge(&self, death: Death, lu: u32, at: u64, bytes: &[u8]) -> Result<(), String> {
        let Some(known) = self.lus.get(&lu) else {
            // One that nobody was told of has what its source had at some time, or nothing.
            let sources = self.sources();
            let all = sources.iter().filter_map(|source| self.lus.get(source));
            let stamps: Vec<_> =
                all.flat_map(|lu| &lu.versions).map(|one| stamp(one.lu, one.tag)).collect();
            let ok = |sector: &[u8]| {
                *sector == [0; SECTOR] || stamps.iter().any(|stamp| sector == stamp)
            };
            let all = bytes.chunks(SECTOR).all(ok);
            return if all { Ok(()) } else { Err(format!("LU {lu} has what is another's")) };
        };
        let first = self.judge_state(death, lu, &known.versions, (at, bytes));
        let other = |(_, state): &(u64, Vec<Version>)| {
            self.judge_state(death, lu, state, (at, bytes)).is_ok()
        };
        if known.others.iter().any(other) { Ok(()) } else { first }
    }

    fn judge_state(
        &self,
        death: Death,
        lu: u32,
        versions: &[Version],
        (at, bytes): (u64, &[u8]),
    ) -> Result<(), String> {
        let end = at + bytes.len() as u64;
        // Between two bounds of versions, which are those of sectors, all is judged by the same.
        let bounds = versions.iter().flat_map(|version| [version.from, version.end]);
        let mut bounds: Vec<u64> = bounds.filter(|bound| (at + 1..end).contains(bound)).collect();
        bounds.extend([at, end]);
        bounds.sort_unstable();
        for (&from, &end) in bounds.iter().zip(&bounds[1..]) {
            let covering =
                || versions.iter().filter(|version| (version.from..version.end).contains(&from));
            let counts = |version: &Version| match death {
                Death::Process => version.answered,
                Death::Power => version.flushed,
            };
            // Gone is what was over before something began that must be there.
            let gone = |over: u64| covering().any(|later| counts(later) && over < later.submitted);
            let may: Vec<&Version> =
                covering().filter(|version| version.over.is_none_or(|over| !gone(over))).collect();
            let zeros = !gone(0) || may.iter().any(|version| version.zeros);
            let written = may.iter().filter(|version| !version.zeros);
            let stamps: Vec<_> = written.map(|version| stamp(version.lu, version.tag)).collect();
            let sectors = bytes[(from - at) as usize..(end - at) as usize].chunks(SECTOR);
            let wrong = |sector: &[u8]| {
                !(zeros && *sector == [0; SECTOR]) && stamps.iter().all(|stamp| sector != stamp)
            };
            if let Some((sector, at)) =
                sectors.zip((from..).step_by(SECTOR)).find(|(sector, _)| wrong(sector))
            {
                let word = u64::from_le_bytes(sector[..8].try_into().unwrap());
                return Err(format!(
                    "LU {lu} byte {at} (chunk {}) has {word:#x} after the death of {death:?}; zeros {}, or {may:?}",
                    at / CHUNK_BYTES,
                    !gone(0)
                ));
            }
        }
        Ok(())
    }
}

#[test]
fn only_what_was_flushed_before_something_else_is_gone() {
    let mut oracle = Oracle::default();
    oracle.create(1, 1);
    oracle.over(1, true, Some(7));
    let judge = |oracle: &Oracle, death, bytes: &[u8]| oracle.judge(death, 7, 0, bytes).is_ok();
    let [one, two] = [2, 3].map(|tag| stamp(7, tag));
    oracle.write(2, 7, 0, 512, false);
    for death in [Death::Process, Death::Power] {
        assert!(judge(&oracle, death, &one) && judge(&oracle, death, &[0; 512]));
        assert!(!judge(&oracle, death, &two) && !judge(&oracle, death, &[0xee; 512]));
    }
    oracle.over(2, true, None);
    assert!(judge(&oracle, Death::Power, &[0; 512]) && !judge(&oracle, Death::Process, &[0; 512]));
    oracle.flush(4, 7);
    oracle.write(3, 7, 0, 512, false);
    oracle.over(3, true, None);
    oracle.over(4, true, None);
    // The second write came after the flush began.
    assert!(judge(&oracle, Death::Power, &one) && judge(&oracle, Death::Power, &two));
    assert!(!judge(&oracle, Death::Power, &[0; 512]) && !judge(&oracle, Death::Process, &one));
}
