//! Which chunks are *active*, so that their legs may differ after a crash of the host: from before they are changed until they are quiet.
//!
//! ```text
//! a chunk is changed ──► *active*, and that is durable before ──► nobody changes it for a while ──► *quiet*: its bits are said ──► PVs flushed, and a root: it is active no longer
//!                            ▲                                                                         │
//!                            └──────────────────── somebody changes it ────────────────────────────────┘
//! ```
//!
//! The shell has the clock: it [looks](Pool::look_at_activity) now and then while there is something to look for, and says whether nobody has changed anything for as long as is waited. Then everything becomes quiet.
//! While others are changed a chunk has to be patient: unchanged for one look, and each time that it was changed soon after it had become quiet for twice as many. So what is changed now and then stays active.
//!
//! A root ends the activity of quiet chunks. It flushes both PVs behind what was written there, as for its pages, and is not written if it is not known whether that is durable.

use super::*;
use crate::format::PAGE_RECORDS;
use crate::tables::Entry;

/// Looks for which a chunk has to be unchanged, at most.
const PATIENCE_MAX: u32 = 64;
/// For so many looks it is known that a chunk was quiet, and of so many.
const REMEMBERED: u32 = 128;
const REMEMBERED_MAX: usize = 1 << 18;
/// Pages that a root writes to end activity: 16 MiB. What is on others is for the next.
const PAGES_MAX: usize = 256;

/// A chunk that is active.
#[derive(Clone, Copy, Debug)]
struct Warm {
    /// The look before which it was changed last.
    since: u32,
    patience: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Active, and not quiet.
    warm: BTreeMap<(u32, u32), Warm>,
    /// Those that became quiet: at which look, and how patient they were.
    remembered: BTreeMap<(u32, u32), (u32, u32)>,
    /// It is not known what is on their legs.
    doubtful: BTreeSet<(u32, u32)>,
    /// Looks so far.
    looks: u32,
    /// Changes so far, begun or over.
    changes: u64,
    /// There is something to look for.
    looking: bool,
    /// What the last look has left: after another that leaves the same there is none before something happens.
    left: (u64, usize, usize),
    /// Flushes by which bits of quiet chunks are said.
    syncing: u32,
    /// Quiet chunks are there for a root.
    wants_root: bool,
}

impl Activity {
    /// Something happens after which it is worth to look.
    pub(super) fn stirs(&mut self) {
        self.changes += 1;
        self.looking = true;
    }

    /// A chunk is active and may become quiet.
    pub(super) fn goes_on(&mut self, key: (u32, u32)) {
        let Activity { warm, remembered, looks, .. } = self;
        let patience = || {
            let soon = remembered.get(&key).filter(|(at, _)| *looks - *at <= REMEMBERED);
            soon.map_or(1, |(_, patience)| (2 * patience).min(PATIENCE_MAX))
        };
        let since = *looks;
        let state = warm.entry(key).or_insert_with(|| Warm { since, patience: patience() });
        state.since = since;
    }

    /// A write of what is not shown has failed on a leg: before the pool is opened again that is not made good.
    pub(super) fn is_doubtful(&mut self, key: (u32, u32)) {
        self.doubtful.insert(key);
    }

    /// There is a quiet chunk more.
    pub(super) fn wants_a_root(&mut self) {
        self.wants_root = true;
    }

    /// The bits of quiet chunks are said, or cannot be.
    pub(super) fn said(&mut self) {
        self.syncing -= 1;
    }
}

impl Pool {
    /// Chunks of LUs that are made the same from their first leg after a death of this process or its host, with those [whose activity is ending](Pool::ending_chunks).
    pub fn active_chunks(&self) -> usize {
        self.tables.active.len()
    }

    /// Whether it is worth to [look](Pool::look_at_activity), now or later.
    pub fn wants_look(&self) -> bool {
        self.activity.looking && self.phase == Phase::Serving
    }

    /// A number that is another when a chunk with two legs was changed since, or became one whose activity may end.
    pub fn changes(&self) -> u64 {
        self.activity.changes
    }

    /// Looks which chunks are quiet, and has a root end their activity, if there are some; `idle`: nobody has changed any for as long as is waited.
    pub fn look_at_activity(&mut self, idle: bool) -> bool {
        if self.phase != Phase::Serving {
            return false;
        }
        let look = self.activity.looks;
        self.activity.looks += 1;
        let mut under_way = BTreeSet::new();
        if self.keeps(Rule::QuietAtRest) {
            under_way.extend(self.writes.values().map(|write| write.place().0));
        }
        let warm = std::mem::take(&mut self.activity.warm);
        let (calm, mut warm): (BTreeMap<_, _>, BTreeMap<_, _>) =
            warm.into_iter().partition(|(key, state)| {
                let calm = idle || look - state.since >= state.patience;
                calm && !under_way.contains(key)
            });
        let remembered = &mut self.activity.remembered;
        remembered.retain(|_, (at, _)| !idle && look - *at <= REMEMBERED);
        for (key, state) in calm {
            // What is said of these when they have two legs that are the same.
            let legs = self.slots.get(&key).map_or_else(|| self.legs_in(key).len(), Slot::count);
            if self.mends.may_differ(key) || legs < 2 {
                continue;
            }
            if self.lacks(key.0) {
                warm.insert(key, state);
                continue;
            }
            self.becomes_quiet(key);
            let remembered = &mut self.activity.remembered;
            if !idle && remembered.len() < REMEMBERED_MAX {
                remembered.insert(key, (look, state.patience));
            }
        }
        self.activity.warm = warm;
        self.say_quiet();
        let activity = &mut self.activity;
        let left = (activity.changes, activity.warm.len(), self.mends.quiet.len());
        activity.looking = left != activity.left && left.1 + left.2 > 0;
        activity.left = left;
        let wants = activity.wants_root;
        self.turn();
        wants
    }

    /// Has a root end the activity of what is quiet, when its bits are said.
    fn say_quiet(&mut self) {
        let mut untold: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let ends = |key: &&(u32, u32)| !self.has_sums(key.0) || self.sums.is_durable(**key);
        let quiet = self.mends.quiet.iter().filter(|key| !self.lacks(key.0) && ends(key));
        let mut any = false;
        for key in quiet {
            any = true;
            let slot = self.slots.get(key).filter(|slot| slot.known);
            if slot.is_some_and(|slot| slot.legs.iter().any(|leg| leg.told != slot.live)) {
                untold.entry(key.0).or_default().push(key.1);
            }
        }
        self.activity.wants_root |= any;
        for (space, chunks) in untold {
            let job = self.begin_job(Asker::Quiet, space, 0);
            self.activity.syncing += 1;
            self.begin_sync(job, space, Some(chunks));
        }
    }

    /// Whether a root is wanted that ends activity.
    pub(super) fn quiet_wants_root(&self) -> bool {
        let Activity { wants_root, syncing, .. } = self.activity;
        wants_root && syncing == 0 && !self.mends.quiet.is_empty()
    }

    /// The chunks in which the legs of a chunk of an LU are, as the tables have them.
    fn legs_in(&self, (lu, vchunk): (u32, u32)) -> Vec<ChunkId> {
        let known = self.tables.lus.get(&lu).filter(|lu| vchunk < lu.chunks);
        let legs = known.into_iter().flat_map(|lu| lu.legs_of(vchunk));
        legs.copied().filter_map(Entry::chunk).collect()
    }

    /// Whether it is not known that what was written to a chunk is durable, and never will be.
    fn is_unsure(&self, key: (u32, u32)) -> bool {
        let unsure = || self.legs_in(key).into_iter().any(|id| self.missed.is_unsure(id));
        self.keeps(Rule::QuietUnsure) && (self.activity.doubtful.contains(&key) || unsure())
    }

    /// Chunks that are the same on both legs and that nobody has changed since are active no longer from the root on that is being written.
    pub(super) fn end_activity(&mut self) -> Vec<(u32, u32)> {
        let durable = self.log.durable;
        self.activity.wants_root = false;
        let (mut ended, mut rest) = (Vec::new(), BTreeSet::new());
        let mut pages = BTreeSet::new();
        for key in std::mem::take(&mut self.mends.quiet) {
            if self.is_unsure(key) {
                continue;
            }
            // Of one that is away the pages stay as they are.
            let together = !self.lacks(key.0) || !self.keeps(Rule::QuietTogether);
            let rests = self.slots.get(&key).is_none_or(|slot| slot.is_at_rest(durable));
            let legs = self.legs_in(key).into_iter();
            let its: Vec<(u16, u32)> =
                legs.map(|id| (id.pv, id.chunk / PAGE_RECORDS as u32)).collect();
            let fits = pages.len() < PAGES_MAX || its.iter().all(|page| pages.contains(page));
            let summed = !self.has_sums(key.0) || self.sums.is_durable(key);
            let summed = summed || !self.keeps(Rule::SumsBeforeRoot);
            if together && rests && fits && summed {
                pages.extend(its);
                ended.push(key);
            } else {
                rest.insert(key);
            }
        }
        self.mends.quiet = rest;
        for key in &ended {
            self.touched.insert(*key);
            self.sums.ends(*key);
            self.tables.set_quiet(*key);
            if let Some(slot) = self.slots.get_mut(key) {
                slot.activity = None;
            }
        }
        let mut left = self.mends.quiet.iter().chain(self.activity.warm.keys());
        self.activity.looking &= left.any(|key| !self.lacks(key.0));
        ended
    }

    /// … which that root did not become.
    pub(super) fn activity_goes_on(&mut self, keys: Vec<(u32, u32)>) {
        for key in keys {
            self.touched.insert(key);
            self.tables.unset_quiet(key);
            if let Some(slot) = self.slots.get_mut(&key) {
                slot.activity = slot.activity.or(Some(0));
            }
            self.activity.goes_on(key);
            self.activity.stirs();
        }
    }

    /// Whether the flushes of a root that ends the activity of these came too late for one that nobody has changed since: an earlier one had failed.
    pub(super) fn ends_unsure(&self, keys: &[(u32, u32)]) -> bool {
        let changed = |key| self.slots.get(key).is_some_and(|slot| slot.activity.is_some());
        keys.iter().any(|key| !changed(key) && self.is_unsure(*key))
    }

    /// Members are other than they were: what could not end may end.
    pub(super) fn look_again(&mut self) {
        let Activity { warm, looking, .. } = &mut self.activity;
        *looking |= !warm.is_empty() || !self.mends.quiet.is_empty();
        self.activity.left = Default::default();
    }

    /// Whether a piece that changes a chunk has to wait until it is durable that its legs may differ. Then it is left with what it waits for.
    pub(super) fn waits_for_activity(&mut self, piece: &Piece) -> bool {
        let key = piece.key;
        let Some(slot) = self.slots.get_mut(&key) else { return false };
        if !slot.pair {
            return false;
        }
        if self.mends.is_changed(key) {
            self.touched.insert(key);
        }
        self.sums.is_changed(key);
        if let Some(moving) = &mut slot.moving {
            moving.is_changed();
        }
        // Looks are counted from 0 on, and a slot that is new has 0.
        let first =
            std::mem::replace(&mut slot.looks, self.activity.looks + 1) != self.activity.looks + 1;
        let known = slot.activity;
        self.activity.stirs();
        if first {
            self.activity.goes_on(key);
        }
        let txn = known.unwrap_or_else(|| self.activate(key));
        if first {
            self.run_ahead(key);
        }
        let waits = txn > self.log.durable && self.keeps(Rule::ActiveBeforeWrite);
        if waits && let Some(slot) = self.slots.get_mut(&key) {
            slot.wait(piece.clone());
        }
        waits
    }

    /// Says that the legs of a chunk may differ; the transaction.
    pub(super) fn activate(&mut self, key: (u32, u32)) -> u64 {
        let (lu, vchunk) = key;
        let record = Record { lu, vchunk, owner: self.slot, ..Record::of(Kind::Activity) };
        let txn = self.log.append(vec![record]);
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.activity = Some(txn);
        }
        self.waiters.entry(txn).or_default().push(Waiter::Active(key));
        txn
    }

    /// Somebody who writes one chunk after the other does not wait for the next.
    fn run_ahead(&mut self, (lu, vchunk): (u32, u32)) {
        let next = (lu, vchunk + 1);
        let before = vchunk.checked_sub(1).map(|before| (lu, before));
        let follows = before.is_some_and(|before| self.activity.warm.contains_key(&before));
        if !follows
            || next.1 >= self.chunks_of(lu)
            || self.tables.is_layer(lu)
            || self.tables.active.contains(&next)
            || self.legs_in(next).len() < 2
        {
            return;
        }
        let rests = |slot: &&mut Slot| {
            slot.activity.is_none() && slot.moving.is_none() && slot.legs.len() == 2
        };
        if self.slot(next).filter(rests).is_some() {
            self.mends.is_changed(next);
            self.sums.is_changed(next);
            self.activity.goes_on(next);
            self.activate(next);
            self.load(next);
        }
    }
}
