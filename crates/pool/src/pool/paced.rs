//! Copies that wait until the shell lets them begin, for the sake of clients.
//!
//! What waits is a chunk whose next block is to be copied. No block is chosen for it, so a client that writes there waits for nothing; a block that somebody waits for is copied without leave.

use super::*;

/// A chunk whose next block may be copied when the shell lets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldCopy {
    /// The LU or layer, and the chunk of it.
    pub key: (u32, u32),
    /// The PV from which it is copied.
    pub from: u16,
    /// The PV to which it is copied, or that is read as well; the same where there is one leg to be read.
    pub to: u16,
}

/// Chunks that wait, by the PVs between which they are copied: however many there are, it is asked once for those of two PVs.
#[derive(Debug, Default)]
pub(super) struct HeldCopies(BTreeMap<(u16, u16), BTreeSet<(u32, u32)>>);

impl HeldCopies {
    pub(super) fn add(&mut self, between: (u16, u16), key: (u32, u32)) {
        self.0.entry(between).or_default().insert(key);
    }

    /// Whether it was there.
    fn take(&mut self, HeldCopy { key, from, to }: HeldCopy) -> bool {
        let Some(those) = self.0.get_mut(&(from, to)) else { return false };
        let was = those.remove(&key);
        if those.is_empty() {
            self.0.remove(&(from, to));
        }
        was
    }
}

impl Pool {
    /// Of each two PVs the first chunk of which a block may be copied as soon as [`Pool::let_copy`] lets it. Empty unless [`Policy::paced`].
    pub fn held_copies(&mut self) -> Vec<HeldCopy> {
        let slots = &self.slots;
        let between = |key: &(u32, u32)| {
            let slot = slots.get(key)?;
            slot.moving.as_ref()?.waits_between(&slot.legs)
        };
        let (mut firsts, mut elsewhere) = (Vec::new(), Vec::new());
        self.held.0.retain(|route, those| {
            let (from, to) = *route;
            while let Some(key) = those.first().copied() {
                let now = between(&key);
                if now == Some(*route) {
                    firsts.push(HeldCopy { key, from, to });
                    break;
                }
                // Of those that were given up nobody waits for leave.
                those.pop_first();
                elsewhere.extend(now.map(|now| (now, key)));
            }
            !those.is_empty()
        });
        if elsewhere.is_empty() {
            return firsts;
        }
        elsewhere.into_iter().for_each(|(route, key)| self.held.add(route, key));
        self.held_copies()
    }

    /// Whether [`Pool::held_copies`] may have some.
    pub fn has_held_copies(&self) -> bool {
        !self.held.0.is_empty()
    }

    /// Lets one block of a chunk be copied; the next one waits again.
    pub fn let_copy(&mut self, held: HeldCopy) {
        if self.held.take(held) {
            self.copy_next_block(held.key, true);
        }
    }

    /// How far chunks are that are being copied: 1,024ths of a chunk, of all together.
    pub(super) fn copied_parts<'a>(&self, keys: impl Iterator<Item = &'a (u32, u32)>) -> u32 {
        let part = |key| {
            if self.settling.contains(key) {
                return Some(1024);
            }
            let slot = self.slots.get(key)?;
            Some(slot.moving.as_ref()?.part(slot.live))
        };
        keys.filter_map(part).sum()
    }

    /// Of the chunks of [`Pool::balance`] that are neither over nor failed, 1,024ths of a chunk that are copied.
    pub fn balance_parts(&self) -> u32 {
        self.copied_parts(self.members.balancing.iter())
    }

    /// The same of the removal of a PV.
    pub fn removal_parts(&self, pv: u16) -> u32 {
        let those = self.members.leaving.get(&pv);
        self.copied_parts(those.into_iter().flat_map(|those| &those.moving))
    }
}
