//! Statistics in shared memory.
//!
//! The data plane makes one memfd, counts in it, and hands its descriptor to whoever may read. Every word has one writer, the
//! channel that owns the queue (or itself); a reader loads words and disturbs nobody. There are no locks and no
//! sequence numbers: two words of one snapshot may be a few I/Os apart.
//!
//! ```text
//! header            4 KiB   magic, version, number of channels and queue slots, clock
//! channel blocks    each 4 KiB of counters + the flight recorder's ring of 32-byte events
//! slots             each 8 KiB: identity, counters, three latency histograms; of a queue, of a LUN on a channel, of an adapter, or of a port
//! ```
//!
//! The memory is sparse: a slot that was never used takes none. What can be counted stands in one table each
//! ([`QueueCounter`], [`ChannelCounter`]), from which the CLI, the API and `/metrics` are made.

mod adapters;
mod counters;
mod flight;
mod histogram;
mod luns;
mod ports;
mod reader;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, MutexGuard};

use memory::{Access, MapError, Mapping, clock};

pub use adapters::{AdapterStats, SHORT_MS, SHORT_STILL};
pub use counters::{ChannelCounter, CounterInfo, Kind, QueueCounter, Unit};
pub use flight::{FlightEvent, FlightKind};
pub use histogram::{BUCKETS, Histogram, bucket_of, bucket_upper_ns};
pub use luns::LunStats;
pub use ports::PortStats;
pub use reader::{
    AdapterSnapshot, ChannelSnapshot, LunSnapshot, PartSnapshot, PortPart, PortSnapshot, PortTotal,
    QueueSnapshot, ReadError, Snapshot, StatsReader,
};

/// First word of the memory: "TRUNKST" and a version of the layout.
pub const MAGIC: u64 = 0x5452_554e_4b53_5402;
/// Most channels of one data plane.
pub const CHANNELS_MAX: usize = 256;
/// Most queues and LUNs of one data plane.
pub const QUEUE_SLOTS: usize = 16384;
/// Most of them that LUNs may have: a client with many LUNs must not leave others without queues.
pub const LUN_SLOTS_MAX: usize = QUEUE_SLOTS / 2;

const WORD: usize = size_of::<u64>();
pub(crate) const HEADER_WORDS: usize = 4096 / WORD;
/// Counters of a channel, before its flight recorder.
pub(crate) const CHANNEL_COUNTER_WORDS: usize = 4096 / WORD;
/// Whole pages, so that neither two channels nor a channel and a queue write to one cache line.
pub(crate) const CHANNEL_WORDS: usize =
    (CHANNEL_COUNTER_WORDS + flight::RING_WORDS).next_multiple_of(4096 / WORD);
/// A queue slot.
pub const QUEUE_WORDS: usize = 8192 / WORD;

pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    pub(crate) const CHANNELS: usize = 1;
    pub(crate) const QUEUE_SLOTS: usize = 2;
    pub(crate) const TICKS_PER_SECOND: usize = 3;
    pub(crate) const PID: usize = 4;
    /// One more than the highest slot that was ever used.
    pub(crate) const SLOTS_USED: usize = 5;
    /// Odd while counts go from one slot to another.
    pub(crate) const GENERATION: usize = 6;
}

/// Words of a queue slot before its counters.
pub(crate) mod slot {
    /// 0: free; else 1.
    pub(crate) const USED: usize = 0;
    pub(crate) const QUEUE: usize = 1;
    /// Of an adapter, or of what it did on a port: one more than the slot of that port, 0 for none.
    pub(crate) const CHANNEL: usize = 2;
    /// What the slot is of: one of those below.
    pub(crate) const KIND: usize = 3;
    pub(crate) const OF_QUEUE: u64 = 0;
    /// The number of the queue is then the LUN, and above its 16 bits the target.
    pub(crate) const OF_LUN: u64 = 1;
    /// The number of the queue is then the moment of its high-water mark.
    pub(crate) const OF_ADAPTER: u64 = 2;
    /// What adapters that are gone did on a port.
    pub(crate) const OF_PORT: u64 = 3;
    /// What an adapter did on a port, until it left it.
    pub(crate) const OF_PART: u64 = 4;
    /// Name of the adapter or port: its first 48 bytes, padded with zeroes.
    pub(crate) const NAME: usize = 4;
    pub(crate) const NAME_WORDS: usize = 6;
    /// Of an adapter: when its port began to be short of elements for it, and when that ended, in milliseconds since 1970.
    pub(crate) const SHORT_SINCE: usize = 10;
    pub(crate) const SHORT_END: usize = 11;
    /// Of an adapter: times that another one found none while this one had most beyond its part.
    pub(crate) const HOLDS_UP: usize = 12;
    pub(crate) const COUNTERS: usize = 16;
    pub(crate) const HISTOGRAMS: usize = 128;
    /// What follows in a longer name. Zeroes of a data plane that knows none.
    pub(crate) const NAME_REST: usize = super::QUEUE_WORDS - NAME_REST_WORDS;
    pub(crate) const NAME_REST_WORDS: usize = 26;
}

/// Longest name of an adapter or port in bytes.
pub const NAME_BYTES_MAX: usize = (slot::NAME_WORDS + slot::NAME_REST_WORDS) * WORD;

const _: () = assert!(slot::COUNTERS + QueueCounter::COUNT <= slot::HISTOGRAMS);
const _: () = assert!(slot::HISTOGRAMS + Latency::COUNT * histogram::WORDS <= slot::NAME_REST);
const _: () = assert!(ChannelCounter::COUNT < CHANNEL_COUNTER_WORDS);

pub(crate) fn words_total(channels: usize) -> usize {
    HEADER_WORDS + channels * CHANNEL_WORDS + QUEUE_SLOTS * QUEUE_WORDS
}

/// Which part of a command's life a histogram measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    /// In the ring: from the moment the channel first saw the head to the moment it took it.
    Ring,
    /// In the server: everything between taking the head and publishing its end that is not [`Latency::Device`], waits included.
    Server,
    /// In the device: from submission to the volume to its completion.
    Device,
}

impl Latency {
    /// How many there are.
    pub const COUNT: usize = 3;
    /// All of them.
    pub const ALL: [Latency; Self::COUNT] = [Latency::Ring, Latency::Server, Latency::Device];

    /// As it is printed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Latency::Ring => "ring",
            Latency::Server => "server",
            Latency::Device => "device",
        }
    }
}

/// The data plane's side: makes the memory and hands out its parts.
///
/// The mapping lives as long as the process, so that writers can hold plain references into it.
#[derive(Debug)]
pub struct StatsRegion {
    file: File,
    words: &'static [AtomicU64],
    channels: usize,
    slots: Mutex<Slots>,
    /// Held while counts go from one slot to another.
    moving: Mutex<()>,
}

#[derive(Debug, Default)]
struct Slots {
    free: Vec<usize>,
    next: usize,
    /// How many are of LUNs.
    luns: usize,
    /// Those of LUNs that no channel writes to now.
    resting: luns::Resting,
    /// Those that are looked for by kind and name: all but LUNs', of which a client may have many.
    named: BTreeMap<(u64, String), Vec<QueueStats>>,
}

impl StatsRegion {
    /// Makes the memory for `channels` channels.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn create(channels: usize) -> Result<StatsRegion, MapError> {
        assert!(channels <= CHANNELS_MAX);
        let len = words_total(channels) * WORD;
        let kernel = |source: std::io::Error| MapError::Kernel { offset: 0, len, source };
        let fd = rustix::fs::memfd_create("trunkline-stats", rustix::fs::MemfdFlags::CLOEXEC)
            .map_err(|error| kernel(error.into()))?;
        let file = File::from(fd);
        file.set_len(len as u64).map_err(kernel)?;
        let mapping: &'static Mapping =
            Box::leak(Box::new(Mapping::file(&file, 0, len, Access::ReadWrite)?));
        let words = mapping.words();
        words[header::CHANNELS].store(channels as u64, Relaxed);
        words[header::QUEUE_SLOTS].store(QUEUE_SLOTS as u64, Relaxed);
        words[header::TICKS_PER_SECOND].store(clock::ticks_per_second(), Relaxed);
        words[header::PID].store(u64::from(std::process::id()), Relaxed);
        words[header::MAGIC].store(MAGIC, Release);
        Ok(StatsRegion { file, words, channels, slots: Mutex::default(), moving: Mutex::default() })
    }

    /// As if it had just been made: what a simulation has for each of its processes, since the mapping stays for ever. Nobody writes to it.
    #[cfg(feature = "sim")]
    pub fn renew(&self) {
        let mut slots = self.slots();
        for words in (0..slots.next).map(|index| self.words_of(index)) {
            words
                .iter()
                .filter(|word| word.load(Relaxed) != 0)
                .for_each(|word| word.store(0, Relaxed));
        }
        *slots = Slots::default();
    }

    /// The memory's file, for readers.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The part of one channel.
    #[must_use]
    pub fn channel(&self, index: usize) -> ChannelStats {
        assert!(index < self.channels);
        let start = HEADER_WORDS + index * CHANNEL_WORDS;
        let words = &self.words[start..start + CHANNEL_WORDS];
        ChannelStats { words: words.try_into().expect("length is CHANNEL_WORDS") }
    }

    /// Takes a slot for a queue, all counters 0; `None` when all are taken.
    ///
    /// # Panics
    ///
    /// When the name is longer than [`NAME_BYTES_MAX`]: it was checked when the adapter was created.
    #[must_use]
    pub fn queue(&self, adapter: &str, queue: u16) -> Option<QueueStats> {
        self.take(adapter, slot::OF_QUEUE, u64::from(queue))
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().expect("no panic while the lock is held")
    }

    fn take(&self, adapter: &str, kind: u64, number: u64) -> Option<QueueStats> {
        assert!(adapter.len() <= NAME_BYTES_MAX);
        let mut slots = self.slots();
        if kind == slot::OF_LUN && slots.luns == LUN_SLOTS_MAX {
            return None;
        }
        let index = slots.free.pop().or_else(|| {
            let next = slots.next;
            (next < QUEUE_SLOTS).then(|| {
                slots.next += 1;
                self.words[header::SLOTS_USED].store(slots.next as u64, Relaxed);
                next
            })
        })?;
        slots.luns += usize::from(kind == slot::OF_LUN);
        let words = self.words_of(index);
        for (word, bytes) in name_words(words).zip(adapter.as_bytes().chunks(WORD)) {
            let mut padded = [0; WORD];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(padded), Relaxed);
        }
        words[slot::QUEUE].store(number, Relaxed);
        words[slot::KIND].store(kind, Relaxed);
        words[slot::USED].store(1, Release);
        let taken = QueueStats { words, index };
        if kind != slot::OF_LUN {
            slots.named.entry((kind, adapter.to_owned())).or_default().push(taken);
        }
        Some(taken)
    }

    /// Gives a slot back. Nobody may write to it any more. What a queue has counted stays with the port of its adapter.
    pub fn release(&self, queue: QueueStats) {
        if queue.words[slot::KIND].load(Relaxed) == slot::OF_QUEUE {
            return self.retire(queue);
        }
        self.free(queue);
    }

    fn free(&self, queue: QueueStats) {
        let kind = queue.words[slot::KIND].load(Relaxed);
        let known = name(queue.words);
        queue.words[slot::USED].store(0, Release);
        for word in queue.words.iter().filter(|word| word.load(Relaxed) != 0) {
            word.store(0, Relaxed);
        }
        let mut slots = self.slots();
        slots.luns -= usize::from(kind == slot::OF_LUN);
        let known = (kind, known);
        if let Some(such) = slots.named.get_mut(&known) {
            such.retain(|each| each.index != queue.index);
            if such.is_empty() {
                slots.named.remove(&known);
            }
        }
        slots.free.push(queue.index);
    }
}

/// The words of a slot's name, in order.
fn name_words(words: &[AtomicU64]) -> impl Iterator<Item = &AtomicU64> {
    let first = words[slot::NAME..][..slot::NAME_WORDS].iter();
    first.chain(&words[slot::NAME_REST..][..slot::NAME_REST_WORDS])
}

/// The name of the adapter or port of a slot.
fn name(words: &[AtomicU64]) -> String {
    let name: Vec<u8> = name_words(words)
        .flat_map(|word| word.load(Relaxed).to_le_bytes())
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&name).into_owned()
}

#[inline]
fn bump(word: &AtomicU64, by: u64) {
    // One writer: load and store, not a locked add (14 ns against 1).
    word.store(word.load(Relaxed).wrapping_add(by), Relaxed);
}

/// The counters of one queue. Written by the channel that owns the queue, between start and stop; by the session otherwise.
#[derive(Debug, Clone, Copy)]
pub struct QueueStats {
    words: &'static [AtomicU64; QUEUE_WORDS],
    index: usize,
}

impl QueueStats {
    /// Number of the slot; names the queue in the flight recorder.
    #[must_use]
    pub fn slot(self) -> usize {
        self.index
    }

    /// Adds to a counter.
    #[inline]
    pub fn add(self, counter: QueueCounter, by: u64) {
        bump(&self.words[slot::COUNTERS + counter as usize], by);
    }

    /// Sets a gauge.
    #[inline]
    pub fn set(self, gauge: QueueCounter, value: u64) {
        self.words[slot::COUNTERS + gauge as usize].store(value, Relaxed);
    }

    /// Sets a gauge, and its high-water mark, which is the counter behind it.
    #[inline]
    pub fn set_with_high_water(self, gauge: QueueCounter, high_water: QueueCounter, value: u64) {
        self.set(gauge, value);
        self.raise(high_water, value);
    }

    /// Its high-water marks begin again, at what is there now.
    pub fn reset_marks(self) {
        use QueueCounter::{Active, ActiveMax, Pending, PendingMax, Waiting, WaitingMax};
        for (gauge, mark) in [(Active, ActiveMax), (Pending, PendingMax), (Waiting, WaitingMax)] {
            self.set(mark, self.get(gauge));
        }
        self.reset_extremes();
    }

    /// The shortest and the longest times begin again.
    pub fn reset_extremes(self) {
        for mark in [Way::Read, Way::Write].into_iter().flat_map(Way::extremes) {
            self.set(mark, 0);
        }
    }

    /// Counts reads, or writes, that a volume was asked for, and their times.
    #[inline]
    pub fn record_timed(self, timed: &Timed) {
        let [count, server, device] = timed.way.counters();
        self.add(count, timed.count);
        self.add(server, timed.server_ns.wrapping_mul(timed.count));
        self.add(device, timed.device_ns.wrapping_mul(timed.count));
        if timed.device_ns > 0 {
            self.note_extremes(timed.way.extremes(), timed.device_ns);
        }
    }

    /// A single value of those that have a shortest and a longest.
    #[inline]
    pub fn note_extremes(self, [shortest, longest]: [QueueCounter; 2], value: u64) {
        let least = &self.words[slot::COUNTERS + shortest as usize];
        // 0 is none, and less than nothing after this.
        if least.load(Relaxed).wrapping_sub(1) >= value {
            least.store(value.max(1), Relaxed);
        }
        self.raise(longest, value);
    }

    /// A high-water mark is no less than this.
    #[inline]
    pub fn raise(self, high_water: QueueCounter, value: u64) {
        let mark = &self.words[slot::COUNTERS + high_water as usize];
        if value > mark.load(Relaxed) {
            mark.store(value, Relaxed);
        }
    }

    /// The value now.
    #[inline]
    #[must_use]
    pub fn get(self, counter: QueueCounter) -> u64 {
        self.words[slot::COUNTERS + counter as usize].load(Relaxed)
    }

    /// Says which channel owns the queue.
    pub fn set_channel(self, channel: u32) {
        self.words[slot::CHANNEL].store(u64::from(channel), Relaxed);
    }

    /// Records `count` commands that took `ns` each.
    #[inline]
    pub fn record(self, which: Latency, ns: u64, count: u64) {
        self.record_at(which, Span::of(ns), count);
    }

    /// As [`QueueStats::record`], for a time whose place in the histograms is known.
    #[inline]
    pub fn record_at(self, which: Latency, span: Span, count: u64) {
        let start = slot::HISTOGRAMS + which as usize * histogram::WORDS;
        bump(&self.words[start], span.ns.wrapping_mul(count));
        bump(&self.words[start + 1 + span.bucket], count);
    }
}

/// What is timed apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Out of the volume.
    Read,
    /// Into it.
    Write,
}

impl Way {
    /// How many there were, and their times in the server and with the volume.
    #[inline]
    fn counters(self) -> [QueueCounter; 3] {
        use QueueCounter as Q;
        match self {
            Way::Read => [Q::TimedReads, Q::ReadServer, Q::ReadDevice],
            Way::Write => [Q::TimedWrites, Q::WriteServer, Q::WriteDevice],
        }
    }

    /// The shortest and the longest of their times with the volume.
    #[inline]
    fn extremes(self) -> [QueueCounter; 2] {
        use QueueCounter as Q;
        match self {
            Way::Read => [Q::ReadShortest, Q::ReadLongest],
            Way::Write => [Q::WriteShortest, Q::WriteLongest],
        }
    }
}

/// So many reads, or writes, that took as long.
#[derive(Debug, Clone, Copy)]
pub struct Timed {
    /// Which of them.
    pub way: Way,
    /// How many.
    pub count: u64,
    /// How long each was in the server.
    pub server_ns: u64,
    /// How long each was with the volume.
    pub device_ns: u64,
}

/// A time and its place in a histogram, for whoever records it more than once.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    ns: u64,
    bucket: usize,
}

impl Span {
    /// Of so many nanoseconds.
    #[inline]
    #[must_use]
    pub fn of(ns: u64) -> Span {
        Span { ns, bucket: bucket_of(ns) }
    }
}

/// The counters and the flight recorder of one channel. Written by its thread alone.
#[derive(Debug, Clone, Copy)]
pub struct ChannelStats {
    words: &'static [AtomicU64; CHANNEL_WORDS],
}

impl ChannelStats {
    /// Adds to a counter.
    #[inline]
    pub fn add(self, counter: ChannelCounter, by: u64) {
        bump(&self.words[counter as usize], by);
    }

    /// The value now.
    #[inline]
    #[must_use]
    pub fn get(self, counter: ChannelCounter) -> u64 {
        self.words[counter as usize].load(Relaxed)
    }

    /// Sets a gauge.
    #[inline]
    pub fn set(self, gauge: ChannelCounter, value: u64) {
        self.words[gauge as usize].store(value, Relaxed);
    }

    /// Writes an event into the flight recorder, over the oldest one.
    #[inline]
    pub fn event(self, ticks: u64, kind: FlightKind, subject: u32, value: u64) {
        flight::write(&self.words[CHANNEL_COUNTER_WORDS..], ticks, kind, subject, value);
    }
}

#[cfg(test)]
mod tests;
