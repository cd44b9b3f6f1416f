//! A pool at work on such PVs, with clients; each step is one effect that is carried out.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::disk::{Disks, Image, Pages, Part, SECTOR, Write};
use super::oracle::{Death, Oracle, stamp};
use crate::format::Uuid;
use crate::pool::{
    Effect, Extent, Fault, Lookup, NotOpened, Outcome, Payload, Policy, Pool, Reader, Reply,
    Request, Rule, Shadow, Source,
};

pub(super) const SERVER: Uuid = Uuid(*b"the only server.");
/// Checkpoints come by themselves, if rarely.
pub(super) const POLICY: Policy =
    Policy { checkpoint_blocks: 9, checkpoint_homes: 4096, layers: true, held_parts: 1 };

/// A generator of numbers that is the same everywhere.
#[derive(Clone, Copy)]
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % end.max(1) as u64) as usize
    }
}

/// In which order effects are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    First,
    Last,
    Any,
}

/// Something under way.
enum Flying {
    Effect(Effect, u64),
    /// A channel writes without asking the pool: its request, and what it writes.
    Channel(u64, Write),
}

pub(super) struct World {
    pub(super) pool: Pool,
    pub(super) disks: Disks,
    pub(super) oracle: Oracle,
    flying: VecDeque<Flying>,
    /// Drains with the requests of channels that were under way when they began.
    requests: BTreeMap<u64, (u32, u64)>,
    tag: u64,
    pub(super) random: Random,
    pub(super) schedule: Schedule,
    /// Requests that were refused.
    pub(super) faults: BTreeMap<u64, Fault>,
    /// Something changed that a crash could show.
    pub(super) changed: bool,
    /// Copies from this PV fail.
    pub(super) unreadable: Option<u16>,
    /// So does whatever the pool reads of its own there.
    pub(super) own_unreadable: Option<u16>,
}

impl World {
    pub(super) fn open(
        pages: Pages,
        mut oracle: Oracle,
        broken: Option<Rule>,
    ) -> Result<World, NotOpened> {
        oracle.power_failed();
        let mut pool = Pool::open(&mut Image::new(&pages), SERVER, None, POLICY)?;
        pool.broken = broken;
        let mut world = World {
            pool,
            disks: Disks::new(pages),
            oracle,
            flying: VecDeque::new(),
            requests: BTreeMap::new(),
            tag: 1 << 20,
            random: Random(1),
            schedule: Schedule::First,
            faults: BTreeMap::new(),
            changed: true,
            unreadable: None,
            own_unreadable: None,
        };
        world.pool.start();
        world.collect();
        Ok(world)
    }

    pub(super) fn tag(&mut self) -> u64 {
        self.tag += 1;
        self.tag
    }

    /// Tags from here on.
    pub(super) fn tags_from(&mut self, tag: u64) {
        self.tag = tag;
    }

    /// Begins a request, which the oracle knows by the same tag.
    pub(super) fn submit(&mut self, request: Request) -> u64 {
        let tag = self.tag();
        match request {
            Request::Create { chunks, .. } => self.oracle.create(tag, chunks),
            Request::Delete { lu } => self.oracle.delete(tag, lu),
            Request::Write { extent: Extent { lu, at, bytes }, durable } => {
                self.oracle.write(tag, lu, at, bytes, durable);
                self.requests.insert(tag, (lu, at));
            }
            Request::Zeroes(Extent { lu, at, bytes }) => self.oracle.zeroes(tag, lu, at, bytes),
            Request::Discard(Extent { lu, at, bytes }) => self.oracle.discard(tag, lu, at, bytes),
            Request::Flush { lu } => self.oracle.flush(tag, lu),
            Request::Resize { lu, chunks } => self.oracle.resize(tag, lu, chunks),
            Request::Snapshot { lus, .. } => self.oracle.snapshot(tag, lus.iter().collect()),
            Request::Clone { snapshot } => self.oracle.clone_of(tag, snapshot),
            Request::Rollback { lus, snapshots } => {
                self.oracle.rollback(tag, lus.iter().zip(snapshots.iter()).collect());
            }
            Request::Move { .. }
            | Request::AddPv(_)
            | Request::RemovePv { .. }
            | Request::KeepPv { .. }
            | Request::Detach { .. }
            | Request::StopDetach { .. }
            | Request::Coalesce
            | Request::Checkpoint
            | Request::FindSnapshot { .. }
            | Request::Read(_) => self.oracle.other(tag),
        }
        self.changed = true;
        // A channel looks first; what it can do alone it does.
        if let Request::Write { extent, durable: false } = request
            && let Lookup::There { legs, count } = self.pool.lookup(extent)
        {
            for (pv, at) in legs.into_iter().take(count) {
                let sectors = extent.bytes as usize / SECTOR;
                let bytes = Rc::new(stamp(extent.lu, tag).repeat(sectors));
                self.flying.push_back(Flying::Channel(tag, Write { pv, at, bytes }));
            }
            return tag;
        }
        self.pool.submit(tag, request);
        self.collect();
        tag
    }

    fn collect(&mut self) {
        for effect in self.pool.effects() {
            match effect {
                Effect::Answer { tag, result } => {
                    let created = match result {
                        Ok(Reply::Created(lu)) => Some(lu),
                        _ => None,
                    };
                    match result {
                        Ok(Reply::Snapshots(made)) => self.oracle.made(tag, made.iter().collect()),
                        Ok(Reply::Created(made)) => self.oracle.made(tag, vec![made]),
                        _ => {}
                    }
                    self.oracle.over(tag, result.is_ok(), created);
                    self.faults.extend(result.err().map(|fault| (tag, fault)));
                    self.changed = true;
                }
                Effect::Zero { .. } => {}
                other => {
                    let mark = self.disks.mark();
                    self.changed |= matches!(other, Effect::Write { .. } | Effect::Copy { .. });
                    self.flying.push_back(Flying::Effect(other, mark));
                }
            }
        }
    }

    fn write_of(&self, pv: u16, at: u64, what: &Payload) -> Write {
        let bytes = match what {
            Payload::Own(bytes) => bytes.clone(),
            Payload::Zeros(bytes) => vec![0; *bytes as usize],
            Payload::Client { tag, bytes, before, after, .. } => {
                let (lu, _) = self.requests[tag];
                let mut all = vec![0; *before as usize];
                all.extend(stamp(lu, *tag).repeat(*bytes as usize / SECTOR));
                all.resize(all.len() + *after as usize, 0);
                all
            }
        };
        Write { pv, at, bytes: Rc::new(bytes) }
    }

    fn copy_of(&self, from: (u16, u64), (pv, at): (u16, u64), bytes: u64) -> Write {
        let found = Image::new(self.disks.now()).read(from.0, from.1, bytes as usize).unwrap();
        Write { pv, at, bytes: Rc::new(found) }
    }

    /// What could not be copied is tried again.
    pub(super) fn move_again(&mut self) {
        self.pool.move_again();
        self.collect();
    }

    /// Calls back the request that has waited longest for space.
    pub(super) fn cancel_first(&mut self) {
        if let Some(tag) = self.pool.paused_requests().into_keys().next() {
            assert!(self.cancel(tag));
        }
    }

    /// Calls a request back, if it waits for space.
    pub(super) fn cancel(&mut self, tag: u64) -> bool {
        let waited = self.pool.cancel(tag);
        self.collect();
        waited
    }

    /// Carries out one thing that is under way; false if there is none.
    pub(super) fn step(&mut self) -> bool {
        let channels = |flying: &VecDeque<Flying>| {
            flying.iter().position(|flying| matches!(flying, Flying::Channel(..)))
        };
        let drains = |flying: &Flying| matches!(flying, Flying::Effect(Effect::Drain { .. }, _));
        // A drain is over when what channels had begun before it is.
        let before = channels(&self.flying);
        let ready: Vec<usize> = (0..self.flying.len())
            .filter(|index| {
                !drains(&self.flying[*index]) || before.is_none_or(|before| before > *index)
            })
            .collect();
        if ready.is_empty() {
            return false;
        }
        let at = match self.schedule {
            Schedule::First => ready[0],
            Schedule::Last => ready[ready.len() - 1],
            Schedule::Any => ready[self.random.below(ready.len())],
        };
        let Some(flying) = self.flying.remove(at) else { return false };
        let (op, outcome) = match flying {
            Flying::Channel(tag, write) => {
                self.disks.write(write, false);
                let more =
                    |flying: &Flying| matches!(flying, Flying::Channel(other, _) if *other == tag);
                if !self.flying.iter().any(more) {
                    self.oracle.over(tag, true, None);
                }
                self.changed = true;
                return true;
            }
            Flying::Effect(Effect::Write { op, pv, at, what, durable }, _) => {
                let write = self.write_of(pv, at, &what);
                self.disks.write(write, durable);
                self.changed = true;
                (op, Outcome::Done)
            }
            Flying::Effect(Effect::Read { op, pv, to: Reader::Pool, .. }, _)
                if self.own_unreadable == Some(pv) =>
            {
                (op, Outcome::Failed)
            }
            Flying::Effect(Effect::Read { op, pv, at, bytes, to }, _) => {
                let mut now = Image::new(self.disks.now());
                let bytes = now.read(pv, at, bytes as usize).unwrap();
                (op, if to == Reader::Pool { Outcome::Bytes(bytes) } else { Outcome::Done })
            }
            Flying::Effect(Effect::Copy { op, from, .. }, _) if self.unreadable == Some(from.0) => {
                (op, Outcome::Failed)
            }
            Flying::Effect(Effect::Copy { op, from, to, bytes }, _) => {
                let write = self.copy_of(from, to, bytes);
                self.disks.write(write, false);
                self.changed = true;
                (op, Outcome::Done)
            }
            Flying::Effect(Effect::Flush { op, pv }, mark) => {
                self.disks.flush(pv, mark);
                self.changed = true;
                (op, Outcome::Done)
            }
            Flying::Effect(Effect::Drain { op }, _) => (op, Outcome::Done),
            Flying::Effect(Effect::Answer { .. } | Effect::Zero { .. }, _) => unreachable!(),
        };
        self.pool.done(op, outcome);
        self.collect();
        true
    }

    /// Until nothing is under way.
    pub(super) fn rest(&mut self) {
        while self.step() {}
    }

    /// Writes that were given out and are not done.
    pub(super) fn flying(&self) -> Vec<Write> {
        let write = |flying: &Flying| match flying {
            Flying::Channel(_, write) => Some(write.clone()),
            Flying::Effect(Effect::Write { pv, at, what, .. }, _) => {
                Some(self.write_of(*pv, *at, what))
            }
            Flying::Effect(Effect::Copy { from, to, bytes, .. }, _) => {
                Some(self.copy_of(*from, *to, *bytes))
            }
            Flying::Effect(..) => None,
        };
        self.flying.iter().filter_map(write).collect()
    }

    /// The process dies, and another takes over; of what was under way some was done.
    pub(super) fn kill(&mut self) -> Result<(), NotOpened> {
        let some = self.random.below(3);
        for write in self.flying() {
            if some == 1 || some == 2 && self.random.below(2) == 0 {
                self.disks.write(write, false);
            }
        }
        self.flying.clear();
        self.own_unreadable = None;
        self.oracle.died();
        let (shadow, broken) = (self.pool.shadow(), self.pool.broken);
        let mut source = Image::new(self.disks.now());
        self.pool = Pool::open(&mut source, SERVER, Some(&shadow), POLICY)?;
        self.pool.broken = broken;
        self.pool.start();
        self.changed = true;
        self.collect();
        Ok(())
    }
}

/// Parts of each chunk that are read of what a crash left: bytes from its beginning. The last is where a container has its first slot.
const READ: [(u64, u64); 3] = [(0, 12 << 10), (60 << 10, 8 << 10), (128 << 10, 8 << 10)];

/// Opens what a crash left, and holds all of it against the oracle.
pub(super) fn judge(
    image: Image<'_>,
    shadow: Option<&Shadow>,
    oracle: &Oracle,
    broken: Option<Rule>,
) -> Result<(), String> {
    let death = if shadow.is_some() { Death::Process } else { Death::Power };
    let (lus, found) = read_all(image, shadow, broken)?;
    oracle.judge_lus(&lus)?;
    found.iter().try_for_each(|(lu, at, bytes)| oracle.judge(death, *lu, *at, bytes))
}

/// What is read of an LU: which, from which byte on.
pub(super) type Found = Vec<(u32, u64, Vec<u8>)>;

/// Opens what a crash left, and reads all LUs.
pub(super) fn read_all(
    image: Image<'_>,
    shadow: Option<&Shadow>,
    broken: Option<Rule>,
) -> Result<(BTreeMap<u32, u32>, Found), String> {
    let mut image = image;
    let mut pool = Pool::open(&mut image, SERVER, shadow, POLICY)
        .map_err(|error| format!("not opened: {error}"))?;
    pool.broken = broken;
    pool.start();
    let mut buffers: BTreeMap<u64, (u32, u64, Vec<u8>)> = BTreeMap::new();
    // Effects at once, in order.
    let mut carry_out = |pool: &mut Pool, buffers: &mut BTreeMap<u64, (u32, u64, Vec<u8>)>| {
        loop {
            let effects = pool.effects();
            if effects.is_empty() {
                return Ok(());
            }
            for effect in effects {
                let (op, outcome) = match effect {
                    Effect::Write { op, pv, at, what: Payload::Own(bytes), .. } => {
                        image.apply(&Write { pv, at, bytes: Rc::new(bytes) }, Part::All);
                        (op, Outcome::Done)
                    }
                    // PVs that were leaving go on leaving.
                    Effect::Write { op, pv, at, what: Payload::Zeros(bytes), .. } => {
                        let bytes = Rc::new(vec![0; bytes as usize]);
                        image.apply(&Write { pv, at, bytes }, Part::All);
                        (op, Outcome::Done)
                    }
                    Effect::Copy { op, from, to: (pv, at), bytes } => {
                        let bytes = Rc::new(image.read(from.0, from.1, bytes as usize).unwrap());
                        image.apply(&Write { pv, at, bytes }, Part::All);
                        (op, Outcome::Done)
                    }
                    Effect::Read { op, pv, at, bytes, to } => {
                        let found = image.read(pv, at, bytes as usize).unwrap();
                        if let Reader::Client { tag, from } = to {
                            let buffer = &mut buffers.get_mut(&tag).unwrap().2;
                            buffer[from as usize..][..found.len()].copy_from_slice(&found);
                        }
                        (op, Outcome::Bytes(found))
                    }
                    Effect::Zero { tag, from, bytes } => {
                        buffers.get_mut(&tag).unwrap().2[from as usize..][..bytes as usize].fill(0);
                        continue;
                    }
                    Effect::Flush { op, .. } | Effect::Drain { op } => (op, Outcome::Done),
                    Effect::Answer { result: Ok(_), .. } => continue,
                    other => return Err(format!("{other:?}")),
                };
                pool.done(op, outcome);
            }
        }
    };
    carry_out(&mut pool, &mut buffers)?;
    if !pool.is_serving() {
        return Err("it does not come to serve".to_string());
    }
    let lus: BTreeMap<u32, u32> = pool.lus().collect();
    for (lu, chunks) in &lus {
        for (chunk, (at, bytes)) in
            (0..*chunks).flat_map(|chunk| READ.iter().map(move |read| (chunk, *read)))
        {
            let at = u64::from(chunk) * crate::format::CHUNK_BYTES + at;
            let tag = buffers.len() as u64;
            buffers.insert(tag, (*lu, at, vec![0x77; bytes as usize]));
            pool.submit(tag, Request::Read(Extent { lu: *lu, at, bytes }));
        }
    }
    carry_out(&mut pool, &mut buffers)?;
    Ok((lus, buffers.into_values().collect()))
}
