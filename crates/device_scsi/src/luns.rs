//! [`LunMap`]: what one client sees.

use std::sync::Arc;

use block::Volume;
use scsi::{Lun, Nexus};

/// Numbers below this are found by their place; those from here on are searched.
const DIRECT: usize = 256;
const NOTHING: u16 = u16::MAX;
/// Most entries of a map.
const ENTRIES_MAX: usize = NOTHING as usize;

/// A logical unit that a client sees.
#[derive(Clone)]
pub struct LunEntry {
    /// The client's nexus with it. An entry whose nexus and volume are both the same object as before is the same entry: its commands
    /// are not disturbed by a new map.
    pub nexus: Arc<Nexus>,
    /// What its data is in; `None`: no medium.
    pub volume: Option<Arc<dyn Volume>>,
}

impl std::fmt::Debug for LunEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LunEntry").field("nexus", &self.nexus.id()).finish_non_exhaustive()
    }
}

/// A target and the logical units that a client sees there; there may be none.
#[derive(Debug, Clone)]
pub struct Target {
    /// virtio's number of it.
    pub id: u8,
    /// By logical unit number, in any order.
    pub luns: Vec<(Lun, LunEntry)>,
}

/// Why there is no such map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LunMapError {
    /// A target stands there twice.
    #[error("target {0} is named twice")]
    Target(u8),
    /// A logical unit number stands there twice.
    #[error("LUN {lun} of target {target} is named twice")]
    Lun {
        /// The target.
        target: u8,
        /// The logical unit number.
        lun: u16,
    },
    /// There are too many logical units.
    #[error("{0} logical units, and a client can see at most {ENTRIES_MAX}")]
    TooMany(usize),
}

#[derive(Debug)]
struct Row {
    id: u8,
    /// Ascending: what REPORT LUNS tells.
    luns: Box<[Lun]>,
    /// Entry of `luns[0]`; the others follow.
    first: u16,
    /// Entry of each number below [`DIRECT`], as far as there are any.
    direct: Box<[u16]>,
}

/// What one client sees, unchangeable. A logical unit that is not in it does not exist for the client. Entries are numbered by target
/// and logical unit number, ascending.
pub struct LunMap {
    rows: Box<[Row]>,
    /// Row of each target.
    targets: Box<[u8; 256]>,
    known: [u64; 4],
    entries: Box<[(u8, Lun, LunEntry)]>,
}

impl std::fmt::Debug for LunMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let luns = |row: &Row| (row.id, row.luns.len());
        f.debug_map().entries(self.rows.iter().map(luns)).finish()
    }
}

impl LunMap {
    /// A map of these targets.
    ///
    /// # Errors
    ///
    /// When a target, or a logical unit number of a target, stands there twice, or there are more than 65535 logical units.
    pub fn new(mut targets: Vec<Target>) -> Result<LunMap, LunMapError> {
        targets.sort_by_key(|target| target.id);
        let count = targets.iter().map(|target| target.luns.len()).sum();
        if count > ENTRIES_MAX {
            return Err(LunMapError::TooMany(count));
        }
        let (mut rows, mut entries) = (Vec::new(), Vec::with_capacity(count));
        let (mut place, mut known) = (Box::new([0; 256]), [0; 4]);
        for Target { id, mut luns } in targets {
            if rows.last().is_some_and(|row: &Row| row.id == id) {
                return Err(LunMapError::Target(id));
            }
            luns.sort_by_key(|(lun, _)| *lun);
            if let Some(twice) = luns.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(LunMapError::Lun { target: id, lun: twice[0].0.number() });
            }
            // At most 256 rows; entries were counted.
            place[usize::from(id)] = rows.len() as u8;
            known[usize::from(id / 64)] |= 1 << (id % 64);
            rows.push(row(id, &luns, entries.len() as u16));
            entries.extend(luns.into_iter().map(|(lun, entry)| (id, lun, entry)));
        }
        let (rows, entries) = (rows.into(), entries.into());
        Ok(LunMap { rows, targets: place, known, entries })
    }

    /// A client that sees nothing.
    #[must_use]
    pub fn empty() -> LunMap {
        LunMap {
            rows: Box::new([]),
            targets: Box::new([0; 256]),
            known: [0; 4],
            entries: Box::new([]),
        }
    }

    /// Whether there is such a target.
    #[must_use]
    pub fn has_target(&self, target: u8) -> bool {
        self.known[usize::from(target / 64)] & 1 << (target % 64) != 0
    }

    fn row(&self, target: u8) -> Option<&Row> {
        let row = || self.rows.get(usize::from(self.targets[usize::from(target)]));
        self.has_target(target).then(row).flatten()
    }

    /// The number of an entry.
    #[must_use]
    pub fn find(&self, target: u8, lun: Lun) -> Option<usize> {
        let row = self.row(target)?;
        let number = usize::from(lun.number());
        if number < DIRECT {
            let entry = *row.direct.get(number)?;
            return (entry != NOTHING).then_some(usize::from(entry));
        }
        let at = row.luns.binary_search(&lun).ok()?;
        Some(usize::from(row.first) + at)
    }

    /// The logical unit numbers of a target, ascending. None for a target that there is not.
    #[must_use]
    pub fn luns(&self, target: u8) -> &[Lun] {
        self.row(target).map_or(&[], |row| &row.luns)
    }

    /// The target with the lowest number.
    #[must_use]
    pub fn first_target(&self) -> Option<u8> {
        self.rows.first().map(|row| row.id)
    }

    /// An entry by its number.
    #[must_use]
    pub fn entry(&self, number: usize) -> Option<&LunEntry> {
        self.entries.get(number).map(|(.., entry)| entry)
    }

    /// All entries in the order of their numbers, with target and logical unit number.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (u8, Lun, &LunEntry)> {
        self.entries.iter().map(|(target, lun, entry)| (*target, *lun, entry))
    }
}

fn row(id: u8, luns: &[(Lun, LunEntry)], first: u16) -> Row {
    let numbers = || luns.iter().map(|(lun, _)| usize::from(lun.number()));
    let direct = numbers().filter(|number| *number < DIRECT).max().map_or(0, |max| max + 1);
    let mut direct = vec![NOTHING; direct];
    for (number, entry) in numbers().zip(first..) {
        if let Some(place) = direct.get_mut(number).filter(|_| number < DIRECT) {
            *place = entry;
        }
    }
    let luns = luns.iter().map(|(lun, _)| *lun).collect();
    Row { id, luns, first, direct: direct.into() }
}

#[cfg(test)]
mod tests;
