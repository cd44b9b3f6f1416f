//! What a client may find, told by what was answered and flushed; knows nothing of chunks.

use std::collections::BTreeMap;

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
    from: u64,
    end: u64,
    zeros: bool,
    submitted: u64,
    /// When it was over, however it ended.
    over: Option<u64>,
    answered: bool,
    flushed: bool,
}

#[derive(Clone, Debug)]
struct Lu {
    /// The chunks that it may have.
    chunks: Vec<u32>,
    versions: Vec<Version>,
    deleted: Option<bool>,
}

#[derive(Clone, Debug)]
enum Kind {
    Data { lu: u32, durable: bool },
    Flush { lu: u32 },
    Create { chunks: u32 },
    Delete { lu: u32 },
    Resize { lu: u32, chunks: u32 },
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
    }

    fn change(&mut self, tag: u64, lu: u32, (from, end): (u64, u64), zeros: bool, durable: bool) {
        let submitted = self.submitted(tag, Kind::Data { lu, durable });
        let version = Version {
            tag,
            from,
            end,
            zeros,
            submitted,
            over: None,
            answered: false,
            flushed: false,
        };
        if let Some(lu) = self.lus.get_mut(&lu) {
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
                let versions = self.lus.get_mut(&lu).map(|lu| lu.versions.iter_mut());
                for version in versions.into_iter().flatten().filter(|version| version.tag == tag) {
                    version.over = Some(now);
                    version.answered = answered;
                    version.flushed = answered && durable;
                }
            }
            Kind::Flush { lu } if answered => {
                let versions = self.lus.get_mut(&lu).map(|lu| lu.versions.iter_mut());
                for version in versions.into_iter().flatten() {
                    let before = version.over.is_some_and(|over| over < submitted);
                    version.flushed |= version.answered && before;
                }
            }
            Kind::Create { chunks } => match created {
                Some(number) => {
                    let lu = Lu { chunks: vec![chunks], versions: Vec::new(), deleted: None };
                    assert!(self.lus.insert(number, lu).is_none(), "LU {number} was there");
                }
                None => self.perhaps.push(chunks),
            },
            Kind::Delete { lu } if answered => {
                if let Some(lu) = self.lus.get_mut(&lu) {
                    lu.deleted = Some(true);
                }
            }
            Kind::Flush { .. } | Kind::Delete { .. } | Kind::Other => {}
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
        for version in self.lus.values_mut().flat_map(|lu| lu.versions.iter_mut()) {
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
        if unknown > creates.count() + self.perhaps.len() {
            return Err("an LU that nobody made".to_string());
        }
        Ok(())
    }

    /// Holds what was read of an LU against what may be there.
    pub(super) fn judge(&self, death: Death, lu: u32, at: u64, bytes: &[u8]) -> Result<(), String> {
        let none = self.lus.get(&lu).is_none_or(|lu| {
            let end = at + bytes.len() as u64;
            lu.versions.iter().all(|version| version.end <= at || end <= version.from)
        });
        if none && bytes.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        for (sector, at) in bytes.chunks(SECTOR).zip((at..).step_by(SECTOR)) {
            let versions = self.lus.get(&lu).map_or(&[][..], |lu| &lu.versions[..]);
            let covering =
                || versions.iter().filter(|version| (version.from..version.end).contains(&at));
            let counts = |version: &Version| match death {
                Death::Process => version.answered,
                Death::Power => version.flushed,
            };
            // Gone is what was over before something began that must be there.
            let gone = |over: u64| covering().any(|later| counts(later) && over < later.submitted);
            let allowed = |version: &&Version| version.over.is_none_or(|over| !gone(over));
            let zeros = *sector == [0; SECTOR];
            let ok = (zeros && !gone(0))
                || covering().filter(allowed).any(|version| {
                    if version.zeros { zeros } else { sector == stamp(lu, version.tag) }
                });
            if !ok {
                let word = u64::from_le_bytes(sector[..8].try_into().unwrap());
                let may: Vec<&Version> = covering().filter(allowed).collect();
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
