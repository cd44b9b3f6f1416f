//! All legs of a chunk are read, block by block, while clients work with it: for a scrub, or since one leg could not be read.
//!
//! ```text
//! drained ──► a block: all legs read ──► the same, or told where they differ ──► the next
//!                        └ one cannot be read ─► by parts of 4 KiB: written there again from the other leg ─► read there once more
//! ```
//!
//! It takes turns with moves of the chunk, and of blocks it has one at a time, which nobody writes meanwhile: so what differs does so for good, and nothing that a client writes is overwritten.
//!
//! What is written again is what the leg has there already, if it has anything: a crash at any moment leaves that, or what cannot be read. So nothing is said of it before. Of legs that differ nothing tells
//! which one is right, and so neither is changed.

use super::moves::{Goal, Stage};
use super::slots::byte_of;
use super::sums::Reading;
use super::*;
use crate::format::{SUMS_APART, SUMS_IN_CHUNK};
use crate::layers::{PART_BYTES, sectors, slot_at};

/// What is compared, and told of, at once.
pub(super) const CHECKED: u64 = 4096;
const PARTS: u64 = BLOCK_BYTES / CHECKED;
/// Chunks with blocks that clients could not read on one leg that are checked at once; places that are kept as hopeless.
const REPAIRS: usize = 2;
const HOPELESS: usize = 4096;

/// What was found in 4 KiB of an LU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// An LU or snapshot that holds it.
    pub lu: u32,
    /// Byte of the LU.
    pub at: u64,
    /// The PV on which it is, and for legs that differ or cannot be read both.
    pub pvs: [Option<u16>; 2],
}

/// What may be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingKind {
    /// The legs differ, and which one is right is not known: nothing was changed.
    Differs,
    /// It could not be read on the PV, was written there again, and can be read.
    Repaired,
    /// It cannot be read on the PV, also after it was written again. The other leg has it.
    Unreadable,
    /// No leg can be read.
    Lost,
}

/// How far a scrub is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrubbing {
    /// Chunks that are to be read.
    pub planned: u32,
    /// Those that are over, never more.
    pub over: u32,
    /// Those that could not be read to their end, since a PV was lost, or that are to be made the same first, and could not be.
    pub skipped: u32,
    /// Of the chunk that is being read, 1,024ths.
    pub parts: u32,
}

/// A scrub that goes on.
#[derive(Debug)]
struct Scrub {
    tag: u64,
    /// The chunk that comes next, or the first behind it that is mapped.
    next: (u32, u32),
    /// What is read now, and how often it was begun.
    now: Option<((u32, u32), u32)>,
    so_far: Scrubbing,
    stops: bool,
}

/// What is checked, and was found.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Blocks that a client could not read on one leg.
    wanted: BTreeMap<(u32, u32), Bits>,
    repairing: BTreeSet<(u32, u32)>,
    /// What was written again and cannot be read: no client's read has it written once more.
    hopeless: BTreeSet<(ChunkId, usize)>,
    scrub: Option<Scrub>,
    /// How far the last came.
    last: Scrubbing,
    found: Vec<Finding>,
}

impl Checks {
    /// Checksums of a chunk were damaged on a PV, and are there again.
    pub(super) fn found_sums(&mut self, (lu, vchunk): (u32, u32), pv: u16) {
        let (kind, at) = (FindingKind::Repaired, u64::from(vchunk) * CHUNK_BYTES);
        self.found.push(Finding { kind, lu, at, pvs: [Some(pv), None] });
    }

    /// Blocks of these legs were written by who has them: what could not be read there may be again, or fail anew.
    pub(super) fn are_written(&mut self, legs: &[ChunkId], blocks: std::ops::Range<usize>) {
        if !self.hopeless.is_empty() {
            let places = legs.iter().flat_map(|id| blocks.clone().map(move |block| (*id, block)));
            places.for_each(|place| _ = self.hopeless.remove(&place));
        }
    }

    /// Whether something of a leg cannot be read, also after it was written again.
    pub(super) fn is_hopeless(&self, id: ChunkId) -> bool {
        self.hopeless.range((id, 0)..=(id, usize::MAX)).next().is_some()
    }

    /// The tags of those who wait, which wait no longer.
    pub(super) fn stop(&mut self) -> Option<u64> {
        self.scrub.take().map(|scrub| scrub.tag)
    }
}

/// How far a block is.
#[derive(Debug, Default)]
pub(super) struct Check {
    /// The number of the step.
    step: u64,
    doing: Doing,
    left: usize,
    read: Vec<(ChunkId, Option<Vec<u8>>)>,
}

#[derive(Debug, Default)]
enum Doing {
    #[default]
    Block,
    /// A part of it.
    Part(u64),
    /// What one leg has not is written there.
    Writes(u64, ChunkId, Vec<u8>),
    /// … and read again.
    Verifies(u64, ChunkId, Vec<u8>),
}

impl Check {
    /// The leg that is being written.
    pub(super) fn writes_to(&self) -> Option<ChunkId> {
        match &self.doing {
            Doing::Writes(_, leg, _) => Some(*leg),
            _ => None,
        }
    }
}

impl Pool {
    /// What was found since this was last asked.
    pub fn findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.checks.found)
    }

    /// How far a scrub is that goes on.
    pub fn scrubbing(&self) -> Option<Scrubbing> {
        let scrub = self.checks.scrub.as_ref()?;
        let slot = scrub.now.and_then(|(key, _)| self.slots.get(&key));
        let check = slot.and_then(|slot| {
            let moving = slot.moving.as_ref().filter(|moving| moving.goal == Goal::Check)?;
            Some(moving.share(slot.live))
        });
        Some(Scrubbing { parts: check.unwrap_or(0).min(1024), ..scrub.so_far })
    }

    /// How far the last scrub came that is over.
    pub fn last_scrub(&self) -> Scrubbing {
        self.checks.last
    }

    pub(super) fn scrub(&mut self, tag: u64) {
        if self.checks.scrub.is_some() {
            return self.answer(tag, Err(Fault::Busy));
        }
        let planned = self.tables.lus.values().map(|lu| lu.mapped).sum();
        let so_far = Scrubbing { planned, ..Scrubbing::default() };
        self.checks.scrub = Some(Scrub { tag, next: (0, 0), now: None, so_far, stops: false });
    }

    pub(super) fn stop_scrub(&mut self, tag: u64) {
        if let Some(scrub) = &mut self.checks.scrub {
            scrub.stops = true;
            if let Some((key, _)) = scrub.now {
                self.stop_check(key);
            }
        }
        self.answer(tag, Ok(Reply::Done));
    }

    /// A chunk is not read any further.
    fn stop_check(&mut self, key: (u32, u32)) {
        let slot = self.slots.get(&key).and_then(|slot| slot.moving.as_ref());
        if slot.is_some_and(|moving| moving.goal == Goal::Check) {
            self.give_up_move(key, Some(Fault::Cancelled));
        }
    }

    /// A client could not read something on one leg.
    pub(super) fn want_repair(&mut self, key: (u32, u32), (at, bytes): (u64, u64)) {
        let (first, end) =
            ((at / BLOCK_BYTES) as usize, (at + bytes).div_ceil(BLOCK_BYTES) as usize);
        let Some(slot) = self.slots.get(&key).filter(|slot| slot.legs.len() > 1) else { return };
        let ids = slot.ids();
        let hopeless = &self.checks.hopeless;
        let hopes = (first..end)
            .filter(|block| ids.iter().all(|id| !hopeless.contains(&(*id, *block))))
            .fold(Bits::NONE, |all, block| all.or(Bits::range(block, block + 1)));
        if !hopes.is_empty() && hopeless.len() < HOPELESS {
            let wanted = self.checks.wanted.entry(key).or_insert(Bits::NONE);
            *wanted = wanted.or(hopes);
        }
    }

    /// Begins with what is to be checked.
    pub(super) fn turn_checks(&mut self) {
        if self.phase != Phase::Serving {
            return;
        }
        while self.checks.repairing.len() < REPAIRS {
            let checks = &mut self.checks;
            let mut waiting = checks.wanted.keys().filter(|key| !checks.repairing.contains(key));
            let Some(key) = waiting.next().copied() else { break };
            checks.repairing.insert(key);
            self.begin_own(Asker::Check(key, true), key, PieceKind::Check { repairs: true });
        }
        while let Some(scrub) = self.checks.scrub.as_ref().filter(|scrub| scrub.now.is_none()) {
            let next = self.mapped_from(scrub.next).filter(|_| !scrub.stops);
            let Some(key) = next else {
                if let Some(scrub) = self.checks.scrub.take() {
                    self.checks.last = scrub.so_far;
                    let result = if scrub.stops { Err(Fault::Cancelled) } else { Ok(Reply::Done) };
                    self.answer(scrub.tag, result);
                }
                break;
            };
            if let Some(scrub) = &mut self.checks.scrub {
                (scrub.next, scrub.now) = ((key.0, key.1 + 1), Some((key, 1)));
            }
            self.begin_own(Asker::Check(key, false), key, PieceKind::Check { repairs: false });
        }
    }

    /// The first chunk that is mapped, from that one on.
    fn mapped_from(&self, (space, vchunk): (u32, u32)) -> Option<(u32, u32)> {
        self.tables.lus.range(space..).find_map(|(number, lu)| {
            let from = if *number == space { vchunk } else { 0 };
            let mapped = |vchunk: &u32| lu.legs_of(*vchunk).iter().any(|leg| leg.chunk().is_some());
            (from..lu.chunks).find(mapped).map(|vchunk| (*number, vchunk))
        })
    }

    /// Of 4 KiB that a client reads no leg is what it was.
    pub(super) fn no_leg_holds(&mut self, key: (u32, u32), at: u64) {
        let (block, part) = ((at / BLOCK_BYTES) as usize, at % BLOCK_BYTES / CHECKED);
        let ids = self.slots.get(&key).map(Slot::ids).unwrap_or_default();
        let room = self.checks.hopeless.len() < HOPELESS;
        let new =
            ids.iter().filter(|id| room && self.checks.hopeless.insert((**id, block))).count();
        if new > 0 {
            let pvs: Vec<u16> = ids.iter().map(|id| id.pv).collect();
            self.find(key, block, part, FindingKind::Lost, &pvs);
        }
    }

    /// Begins to read all legs of a chunk whose bits are known.
    pub(super) fn begin_check(&mut self, piece: Piece, repairs: bool) {
        let key = piece.key;
        let differs = self.mends.may_differ(key);
        let stops = !repairs && self.checks.scrub.as_ref().is_none_or(|scrub| scrub.stops);
        let Some(slot) = self.slots.get_mut(&key) else { return };
        if stops {
            return self.piece_done(&piece, Some(Fault::Cancelled));
        }
        if slot.moving.is_some() || !slot.also.is_empty() {
            slot.wait(piece);
            return;
        }
        // What may differ is made the same first, which reads it all.
        if differs {
            if repairs || self.mends.is_given_up(key) {
                return self.piece_done(&piece, Some(Fault::Medium));
            }
            slot.wait(piece);
            return self.want_mended(key);
        }
        let verifies = self.sums_hold(key);
        let sums = if verifies { self.known_sums(key) } else { None };
        if verifies && sums.is_none() {
            return self.wait_for_sums(piece);
        }
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let wanted = match repairs {
            true => self.checks.wanted.remove(&key).unwrap_or(Bits::NONE),
            false => Bits::NONE,
        };
        let Some(target) = slot.legs.last().filter(|_| !repairs || slot.legs.len() > 1).cloned()
        else {
            return self.piece_done(&piece, None);
        };
        let left = if repairs { slot.live.without(wanted) } else { Bits::NONE };
        self.begin_copy(piece, Goal::Check, target, Bits::NONE);
        self.reads_for(key, sums.map_or(Reading::Compare, Reading::Verify));
        if let Some(moving) = self.slots.get_mut(&key).and_then(|slot| slot.moving.as_mut()) {
            moving.copied = left;
            // A client has met it, and may again.
            moving.wanted = wanted;
        }
    }

    /// It is over with a chunk.
    pub(super) fn checked(&mut self, key: (u32, u32), repairs: bool, fault: Option<Fault>) {
        if repairs {
            self.checks.repairing.remove(&key);
            if fault.is_some() {
                self.checks.wanted.remove(&key);
            }
            return self.wake(key);
        }
        let lost = fault == Some(Fault::Medium);
        let again = lost && !self.mends.is_given_up(key);
        let Some(scrub) = &mut self.checks.scrub else { return };
        let times = scrub.now.take().map_or(1, |(_, times)| times);
        if again && times == 1 && !scrub.stops {
            // A PV was lost; the other has to be read all the more.
            scrub.now = Some((key, 2));
            self.begin_own(Asker::Check(key, false), key, PieceKind::Check { repairs: false });
            return self.wake(key);
        }
        scrub.so_far.over = (scrub.so_far.over + 1).min(scrub.so_far.planned);
        scrub.so_far.skipped += u32::from(lost);
        self.wake(key);
    }

    /// The check of a slot, if it is one.
    fn check(&mut self, key: (u32, u32)) -> Option<(&mut Check, usize)> {
        let moving = self.slots.get_mut(&key)?.moving.as_mut()?;
        match moving.stage {
            Stage::Copying(Some(block)) if moving.goal == Goal::Check => {
                Some((&mut moving.check, block))
            }
            _ => None,
        }
    }

    /// Reads a block, of which nobody writes anything meanwhile.
    pub(super) fn check_block(&mut self, key: (u32, u32), block: usize) {
        let legs = self.slots.get(&key).map(Slot::ids).unwrap_or_default();
        self.read_legs(key, Doing::Block, legs, (block as u64 * BLOCK_BYTES, BLOCK_BYTES));
    }

    fn read_legs(
        &mut self,
        key: (u32, u32),
        next: Doing,
        legs: Vec<ChunkId>,
        (at, bytes): (u64, u64),
    ) {
        let step = self.number();
        let Some((check, _)) = self.check(key) else { return };
        *check = Check { step, doing: next, left: legs.len(), read: Vec::new() };
        for leg in legs {
            let (pv, at, to) = (leg.pv, byte_of(leg, at), Reader::Check);
            let op = Op::Check { key, step, leg };
            self.give(op, |op| Effect::Read { op, pv, at, bytes, to });
        }
    }

    /// A leg was read, or could not be.
    pub(super) fn leg_read(&mut self, key: (u32, u32), step: u64, leg: ChunkId, outcome: Outcome) {
        let Some((check, block)) = self.check(key).filter(|(check, _)| check.step == step) else {
            return;
        };
        let bytes = if let Outcome::Bytes(bytes) = outcome { Some(bytes) } else { None };
        check.read.push((leg, bytes));
        check.left -= 1;
        if check.left > 0 {
            return;
        }
        let Check { doing, mut read, .. } = std::mem::take(check);
        read.sort_by_key(|(leg, _)| *leg);
        let at = block as u64 * BLOCK_BYTES;
        match doing {
            Doing::Block => self.verify(key, at, &mut read),
            Doing::Part(part) => self.verify(key, at + part * CHECKED, &mut read),
            Doing::Writes(..) | Doing::Verifies(..) => {}
        }
        let well = read.iter().all(|(_, bytes)| bytes.is_some());
        match doing {
            Doing::Block if well => {
                (0..PARTS).for_each(|part| self.compare(key, block, part, &read, part * CHECKED));
                self.block_over(key, block);
            }
            Doing::Block => self.check_part(key, block, 0),
            Doing::Part(part) if well => {
                self.compare(key, block, part, &read, 0);
                self.check_part(key, block, part + 1);
            }
            Doing::Part(part) => self.write_again(key, block, part, read),
            Doing::Verifies(part, leg, told) => {
                let again = read.iter().all(|(_, bytes)| bytes.as_ref() == Some(&told));
                self.tell_repair(key, block, part, leg, again);
                self.check_part(key, block, part + 1);
            }
            Doing::Writes(..) => {}
        }
    }

    fn check_part(&mut self, key: (u32, u32), block: usize, part: u64) {
        if part == PARTS {
            return self.block_over(key, block);
        }
        let legs = self.slots.get(&key).map(Slot::ids).unwrap_or_default();
        let at = block as u64 * BLOCK_BYTES + part * CHECKED;
        self.read_legs(key, Doing::Part(part), legs, (at, CHECKED));
    }

    /// Some leg cannot be read there: it gets what another has.
    fn write_again(
        &mut self,
        key: (u32, u32),
        block: usize,
        part: u64,
        read: Vec<(ChunkId, Option<Vec<u8>>)>,
    ) {
        let bad = read.iter().find(|(_, bytes)| bytes.is_none()).map(|(leg, _)| *leg);
        let good = read.iter().find_map(|(_, bytes)| bytes.clone());
        let Some((leg, bytes)) = bad.zip(good) else {
            let pvs: Vec<u16> = read.iter().map(|(leg, _)| leg.pv).collect();
            self.find(key, block, part, FindingKind::Lost, &pvs);
            return self.check_part(key, block, part + 1);
        };
        let step = self.number();
        let Some((check, _)) = self.check(key) else { return };
        let doing = Doing::Writes(part, leg, bytes.clone());
        *check = Check { step, doing, left: 1, read: Vec::new() };
        let at = byte_of(leg, block as u64 * BLOCK_BYTES + part * CHECKED);
        self.give_write(Op::Rewrite { key, leg, block }, leg.pv, at, Payload::Own(bytes), true);
    }

    /// What could not be read was written again, or not. A PV that could not write it is away, unless it cannot be done without.
    pub(super) fn rewritten(
        &mut self,
        key: (u32, u32),
        leg: ChunkId,
        block: usize,
        outcome: &Outcome,
    ) {
        if self.was_orphan(key, leg, block) {
            return;
        }
        let Some((check, _)) = self.check(key) else { return };
        let Doing::Writes(part, leg, bytes) = std::mem::take(&mut check.doing) else { return };
        if *outcome == Outcome::Failed {
            self.tell_repair(key, block, part, leg, false);
            return self.check_part(key, block, part + 1);
        }
        let at = block as u64 * BLOCK_BYTES + part * CHECKED;
        self.read_legs(key, Doing::Verifies(part, leg, bytes), vec![leg], (at, CHECKED));
    }

    fn tell_repair(&mut self, key: (u32, u32), block: usize, part: u64, leg: ChunkId, well: bool) {
        let kind = if well { FindingKind::Repaired } else { FindingKind::Unreadable };
        if !well && self.checks.hopeless.len() < HOPELESS {
            self.checks.hopeless.insert((leg, block));
        }
        self.find(key, block, part, kind, &[leg.pv]);
    }

    /// The next block.
    fn block_over(&mut self, key: (u32, u32), block: usize) {
        self.touched.insert(key);
        let one = Bits::range(block, block + 1);
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.busy = slot.busy.without(one);
            if let Some(moving) = &mut slot.moving {
                moving.copied = moving.copied.or(one);
                moving.stage = Stage::Copying(None);
            }
        }
        self.wake(key);
        self.go_on_moving(key);
    }

    /// Tells where legs differ that were read, from that byte on.
    fn compare(
        &mut self,
        key: (u32, u32),
        block: usize,
        part: u64,
        read: &[(ChunkId, Option<Vec<u8>>)],
        from: u64,
    ) {
        let [(one, Some(first)), (other, Some(second))] = read else { return };
        let range = from as usize..(from + CHECKED) as usize;
        let (Some(first), Some(second)) = (first.get(range.clone()), second.get(range)) else {
            return;
        };
        // A write that failed on one leg is known, and made good by whoever makes them the same.
        if first == second || self.mends.may_differ(key) {
            return;
        }
        let at = block as u64 * BLOCK_BYTES + part * CHECKED;
        if let Some((_, present)) = self.in_layer(key, at) {
            // What else is in a slot is nobody's.
            let sectors = first.chunks(512).zip(second.chunks(512)).enumerate();
            let mut differing = sectors.filter(|(_, (first, second))| first != second);
            if differing.all(|(sector, _)| present >> sector & 1 == 0) {
                return;
            }
        }
        self.find(key, block, part, FindingKind::Differs, &[one.pv, other.pv]);
    }

    /// Of 4 KiB of a container: where they are in the LUs above, and which of their sectors are there. Nothing of what is no container.
    fn in_layer(&self, (space, vchunk): (u32, u32), at: u64) -> Option<(u64, u8)> {
        if !self.tables.is_layer(space) {
            return None;
        }
        let Some((slot, from)) = slot_at(vchunk, at) else { return Some((0, 0)) };
        let mut live = self.layered.live.range((space, 0)..=(space, u64::MAX));
        let live = live.find(|(_, placed)| placed.slot == slot).map(|((_, part), _)| *part);
        let Some(part) = live.or_else(|| self.tables.parts.in_slot(space, slot)) else {
            return Some((0, 0));
        };
        let present = self.placed(space, part).map_or(0, |placed| placed.present);
        let present = (present & sectors(from, CHECKED)) >> (from / 512);
        Some((part * PART_BYTES + from, present as u8))
    }

    fn find(&mut self, key: (u32, u32), block: usize, part: u64, kind: FindingKind, pvs: &[u16]) {
        let (space, vchunk) = key;
        let at = block as u64 * BLOCK_BYTES + part * CHECKED;
        // Of checksums each leg says itself whether it is damaged, and what they are of is not.
        let sums = self.tables.sums.values().any(|sums| *sums == space);
        if sums && matches!(kind, FindingKind::Differs | FindingKind::Lost) {
            return self.sums_differ(key, at);
        }
        let at = match self.in_layer(key, at) {
            _ if sums => Pool::summed_by(key, at),
            Some((at, _)) => at,
            None => u64::from(vchunk) * CHUNK_BYTES + at,
        };
        let pvs = [pvs.first().copied(), pvs.get(1).copied()];
        self.checks.found.push(Finding { kind, lu: self.holder_of(space), at, pvs });
    }

    /// The first byte of an LU of which checksums are there.
    fn summed_by((_, vchunk): (u32, u32), at: u64) -> u64 {
        (u64::from(vchunk * SUMS_IN_CHUNK) + at / SUMS_APART) * CHUNK_BYTES
    }

    /// The LU or snapshot that comes first to a layer or space.
    fn holder_of(&self, space: u32) -> u32 {
        let lus = self.tables.lus.iter().filter(|(_, lu)| lu.is_lu());
        let holders = lus.filter_map(|(number, _)| {
            let depth = self.tables.chain(*number).iter().position(|one| *one == space)?;
            Some((depth, *number))
        });
        let origin = self.tables.sums.iter().find(|(_, sums)| **sums == space).map(|(lu, _)| *lu);
        holders.min().map(|(_, number)| number).or(origin).unwrap_or(space)
    }
}
