//! The thread's io_uring, with a lane of each PV of each pool, and buffers. Nothing here waits for one operation: how many buffers those of a PV may have is said by its pool
//! ([`crate::work`]).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use block::{
    Finish, IoError, Lane, LaneId, OpKind, Outcome, Request, Submit, Tag, Volume, VolumeError,
};
use memory::{IoBuf, Lasting, clock};
use uring::{FileSlot, Op, Ring, RingConfig};

use crate::post::Bell;
use crate::table::OpenPv;
use crate::traffic::{Kind, Meter};

/// A journal block, a page, what is around a first write of 64 KiB.
const SMALL: usize = 192 << 10;
/// As many bytes as a lane asks for at once, and the rest of the first and the last block.
const LARGE: usize = crate::lane::ASK_MAX as usize + (2 << 16);
/// The thread's own lane: its bell.
const OWN: LaneId = LaneId(0);

/// Memory for an operation.
#[derive(Debug)]
pub(crate) struct Buffer {
    memory: Lasting,
    large: bool,
}

/// Whether an operation of so many bytes takes a large buffer.
pub(crate) fn is_large(bytes: u64) -> bool {
    bytes > SMALL as u64
}

impl Buffer {
    pub(crate) fn is_large(&self) -> bool {
        self.large
    }

    pub(crate) fn part(&self, at: usize, len: usize) -> IoBuf {
        self.memory.buf(at, len).expect("whoever takes a buffer says how large it has to be")
    }
}

/// An operation on a PV that is not over.
struct Io<T> {
    lane: u16,
    op: OpKind,
    offset: u64,
    len: u64,
    buffer: Option<Buffer>,
    buf: IoBuf,
    done: u64,
    passed: u8,
    /// When its last round began.
    since: Instant,
    /// When it began, in ticks.
    began: u64,
    what_for: T,
}

/// The end of one.
pub(crate) struct Arrived<T> {
    pub(crate) what_for: T,
    pub(crate) result: Result<(), IoError>,
    pub(crate) buffer: Option<Buffer>,
    /// Its bytes in the buffer.
    pub(crate) buf: IoBuf,
}

/// See the module.
pub(crate) struct Engine<T> {
    ring: Ring,
    bell: Arc<Bell>,
    bell_slot: FileSlot,
    /// Where a ring of the bell is read to.
    rung: Lasting,
    lanes: BTreeMap<u16, (Box<dyn Lane>, Arc<Meter>)>,
    next_lane: u16,
    next_tag: u32,
    ios: BTreeMap<u32, Io<T>>,
    parked: Vec<(Option<Instant>, u32)>,
    arrived: VecDeque<(u32, Result<(), IoError>)>,
    finishes: Vec<Finish>,
    /// Buffers that nobody has.
    small: Vec<Buffer>,
    large: Vec<Buffer>,
}

impl<T> Engine<T> {
    /// To be made before the process gives up making rings.
    pub(crate) fn new(bell: Arc<Bell>) -> Result<Engine<T>, String> {
        let config =
            RingConfig { entries: 256, cq_entries: 4096, fixed_files: 4096, restrict: true };
        let mut ring = Ring::new(&config).map_err(|error| error.to_string())?;
        let bell_slot = ring.register(bell.0.as_fd()).map_err(|error| error.to_string())?;
        let rung = Lasting::new(4096).map_err(|error| error.to_string())?;
        let mut engine = Engine {
            ring,
            bell,
            bell_slot,
            rung,
            lanes: BTreeMap::new(),
            next_lane: 1,
            next_tag: 0,
            ios: BTreeMap::new(),
            parked: Vec::new(),
            arrived: VecDeque::new(),
            finishes: Vec::new(),
            small: Vec::new(),
            large: Vec::new(),
        };
        engine.listen();
        Ok(engine)
    }

    fn listen(&mut self) {
        let bufs = [self.rung.buf(0, 8).expect("8 bytes of a page")];
        let read = Op::Read { file: self.bell_slot, bufs: &bufs, offset: 0, nowait: false };
        if self.ring.push(read, OWN.user_data(0)).is_err() {
            // There was no room: after this there is, or the kernel is short of memory and the bell is rung once more.
            let _ = self.ring.submit();
            if self.ring.push(read, OWN.user_data(0)).is_err() {
                self.bell.ring();
            }
        }
    }

    /// A way to a PV; its number.
    pub(crate) fn join(&mut self, pv: &OpenPv) -> Result<u16, VolumeError> {
        while self.lanes.contains_key(&self.next_lane) || self.next_lane == 0 {
            self.next_lane = self.next_lane.wrapping_add(1);
        }
        let number = self.next_lane;
        let lane = pv.volume.lane(&mut self.ring, LaneId(number))?;
        self.lanes.insert(number, (lane, pv.meters.mine()));
        self.next_lane = number.wrapping_add(1);
        Ok(number)
    }

    /// Whether nothing is under way on it.
    pub(crate) fn is_idle(&self, lane: u16) -> bool {
        self.ios.values().all(|io| io.lane != lane)
    }

    /// Since when the oldest of these operations on a lane is under way, each since its last round began.
    pub(crate) fn oldest(&self, lane: u16, which: impl Fn(&T) -> bool) -> Option<Instant> {
        let those = self.ios.values().filter(|io| io.lane == lane && which(&io.what_for));
        those.map(|io| io.since).min()
    }

    /// What operations on a lane are for, to be changed: whoever waited for one that hangs need not. Its memory is there until it is over.
    pub(crate) fn reasons(&mut self, lane: u16) -> impl Iterator<Item = &mut T> {
        self.ios.values_mut().filter(move |io| io.lane == lane).map(|io| &mut io.what_for)
    }

    /// Gives up those of these on which nothing is under way, and leaves the others.
    pub(crate) fn leave_idle(&mut self, lanes: &mut Vec<u16>) {
        lanes.retain(|lane| {
            let idle = self.is_idle(*lane);
            if idle {
                self.leave(*lane);
            }
            !idle
        });
    }

    /// Gives it up, with nothing in flight.
    pub(crate) fn leave(&mut self, lane: u16) {
        if let Some((mut lane, _)) = self.lanes.remove(&lane) {
            lane.detach(&mut self.ring);
        }
    }

    /// Memory for so many bytes, unless the system has none.
    pub(crate) fn buffer(&mut self, bytes: usize) -> Option<Buffer> {
        let large = is_large(bytes as u64);
        debug_assert!(bytes <= LARGE, "an operation of {bytes} bytes");
        let (free, size) = if large { (&mut self.large, LARGE) } else { (&mut self.small, SMALL) };
        let made = || Some(Buffer { memory: Lasting::new(size).ok()?, large });
        free.pop().or_else(made)
    }

    pub(crate) fn give_back(&mut self, buffer: Buffer) {
        if buffer.large { self.large.push(buffer) } else { self.small.push(buffer) }
    }

    /// Begins an operation on the first `len` bytes of a buffer, or one without.
    pub(crate) fn begin(
        &mut self,
        lane: u16,
        op: OpKind,
        offset: u64,
        len: u64,
        buffer: Option<Buffer>,
        what_for: T,
    ) -> u32 {
        // Whoever took the buffer asked for at least so many.
        let buf = buffer.as_ref().map_or(IoBuf::EMPTY, |buffer| buffer.part(0, len as usize));
        let io = Io {
            lane,
            op,
            offset,
            len,
            buffer,
            buf,
            done: 0,
            passed: 0,
            since: clock::instant(),
            began: clock::ticks(),
            what_for,
        };
        if let Some((_, meter)) = self.lanes.get(&lane) {
            meter.begins();
        }
        let tag = self.insert(io);
        self.submit(tag);
        tag
    }

    /// Under a tag that no other has.
    fn insert(&mut self, io: Io<T>) -> u32 {
        loop {
            self.next_tag = self.next_tag.wrapping_add(1);
            if let Entry::Vacant(free) = self.ios.entry(self.next_tag) {
                free.insert(io);
                return self.next_tag;
            }
        }
    }

    fn submit(&mut self, tag: u32) {
        let Some(io) = self.ios.get_mut(&tag) else { return };
        let Some((lane, _)) = self.lanes.get_mut(&io.lane) else {
            return self.arrived.push_back((tag, Err(IoError::Gone)));
        };
        if self.ring.space() < <dyn Lane>::SQES {
            // What the kernel does not take now stays queued.
            let _ = self.ring.submit();
        }
        let bufs = [io.buf];
        let bufs: &[IoBuf] = if io.op == OpKind::Flush { &[] } else { &bufs };
        let (op, offset, len, done, passed) = (io.op, io.offset, io.len, io.done, io.passed);
        let mut request = Request { op, offset, len, bufs, tag: Tag(tag), done, passed };
        let answer = lane.submit(&mut self.ring, &mut request);
        io.passed = request.passed;
        match answer {
            Submit::Pending | Submit::Held { .. } => {}
            Submit::Done(result) => self.arrived.push_back((tag, result)),
            Submit::Park { until, .. } => self.parked.push((until, tag)),
        }
    }

    /// Sleeps until something happens, or at most so long, and takes what has.
    pub(crate) fn wait(&mut self, most: Option<Duration>) {
        let now = clock::instant();
        let due = self.parked.iter().filter_map(|(until, _)| *until).min();
        let due = due.map(|due| due.saturating_duration_since(now));
        let sleep = match (most, due) {
            (Some(most), Some(due)) => Some(most.min(due)),
            (most, due) => most.or(due),
        };
        let sleep = if self.arrived.is_empty() { sleep } else { Some(Duration::ZERO) };
        self.ring.wait(sleep).expect("io_uring_enter fails by a defect of this program alone");
        let mut any = false;
        while let Some(completion) = self.ring.next() {
            any = true;
            let (id, token) = LaneId::split(completion.user_data);
            if id == OWN {
                self.listen();
                continue;
            }
            let Some((lane, _)) = self.lanes.get_mut(&id.0) else { continue };
            lane.complete(&mut self.ring, token, completion.result, &mut self.finishes);
            for finish in std::mem::take(&mut self.finishes) {
                self.finished(finish);
            }
        }
        let now = clock::instant();
        let due = |until: Option<Instant>| until.map_or(any, |until| until <= now);
        let (again, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.parked).into_iter().partition(|(until, _)| due(*until));
        self.parked = rest;
        again.into_iter().for_each(|(_, tag)| self.submit(tag));
    }

    fn finished(&mut self, Finish { tag, outcome }: Finish) {
        match outcome {
            Outcome::Done(result) => self.arrived.push_back((tag.0, result)),
            Outcome::Again { done } => {
                if let Some(io) = self.ios.get_mut(&tag.0) {
                    (io.done, io.since) = (done, clock::instant());
                }
                self.submit(tag.0);
            }
        }
    }

    /// The next operation that is over.
    pub(crate) fn next(&mut self) -> Option<Arrived<T>> {
        while let Some((tag, result)) = self.arrived.pop_front() {
            if let Some(io) = self.ios.remove(&tag) {
                if let Some((_, meter)) = self.lanes.get(&io.lane) {
                    meter.ends(Kind::of(io.op), io.len, clock::ticks().wrapping_sub(io.began));
                    if result.is_err() {
                        meter.fails();
                    }
                }
                let Io { what_for, buffer, buf, .. } = io;
                return Some(Arrived { what_for, result, buffer, buf });
            }
        }
        None
    }
}
