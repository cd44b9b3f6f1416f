//! Reading the statistics, from any process that was given their descriptor.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst, fence};

use memory::{Access, MapError, Mapping};

use super::{
    CHANNEL_COUNTER_WORDS, CHANNEL_WORDS, CHANNELS_MAX, ChannelCounter, FlightEvent, HEADER_WORDS,
    Histogram, Kind, Latency, MAGIC, QUEUE_SLOTS, QUEUE_WORDS, QueueCounter, SHORT_MS, flight,
    header, histogram, name, slot, words_total,
};

/// How often a copy is begun again because counts went from one slot to another meanwhile.
const ATTEMPTS: u32 = 64;

/// Why the statistics could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// They could not be mapped.
    #[error("statistics: {0}")]
    Map(#[from] MapError),
    /// They have another layout.
    #[error(
        "the data plane's statistics have another layout (magic {found:#x}, expected {MAGIC:#x}): it runs another version; restart it"
    )]
    Layout {
        /// First word of the memory.
        found: u64,
    },
}

/// A reader of one data plane's statistics.
#[derive(Debug)]
pub struct StatsReader {
    mapping: Mapping,
    channels: usize,
}

/// One queue's statistics at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueSnapshot {
    /// Name of its adapter.
    pub adapter: String,
    /// Its number in the adapter.
    pub queue: u16,
    /// The channel that owns it, or owned it last.
    pub channel: u32,
    /// Its slot, by which the flight recorder names it.
    pub slot: u32,
    counters: Vec<u64>,
    latencies: Vec<Histogram>,
}

impl QueueSnapshot {
    /// The value of a counter.
    #[must_use]
    pub fn get(&self, counter: QueueCounter) -> u64 {
        self.counters[counter as usize]
    }

    /// A latency histogram.
    #[must_use]
    pub fn latency(&self, which: Latency) -> &Histogram {
        &self.latencies[which as usize]
    }
}

/// A LUN's statistics on one channel at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct LunSnapshot {
    /// The target, as the client numbers it.
    pub target: u8,
    /// The logical unit number.
    pub lun: u16,
    /// The adapter, the channel, and what was counted; its queue says nothing.
    pub counted: QueueSnapshot,
}

/// What is one figure for all queues of an adapter, at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterSnapshot {
    /// Its name.
    pub adapter: String,
    /// Most commands that were active at once.
    pub active_max: u64,
    /// When that was, in milliseconds since 1970.
    pub active_max_at_ms: u64,
    /// Most commands that were held at once.
    pub pending_max: u64,
    /// Most active commands that waited in the server at once.
    pub waiting_max: u64,
    /// The slot of the port on which it is.
    pub port: Option<u32>,
    /// When that port began to be short of elements for it, and when that ended ([`super::SHORT_STILL`]), in milliseconds since 1970; 0 for never.
    pub short: (u64, u64),
    /// Times that another one found no element of their port while this one had most beyond its part.
    pub holds_up: u64,
    /// What queues have counted that it has no more.
    pub retired: QueueSnapshot,
}

impl AdapterSnapshot {
    /// Since when its port is short of elements for it, in milliseconds since 1970, if it is at `now_ms`.
    #[must_use]
    pub fn short_since_ms(&self, now_ms: u64) -> Option<u64> {
        let (since, end) = self.short;
        (since > 0 && now_ms.saturating_sub(end) < SHORT_MS).then_some(since)
    }
}

/// What adapters that are gone did on a port.
#[derive(Debug, Clone, PartialEq)]
pub struct PortSnapshot {
    /// Its name.
    pub port: String,
    /// When its high-water mark of active commands was reached, or when it began, in milliseconds since 1970; 0: nobody keeps it.
    pub active_max_at_ms: u64,
    /// Its slot, and what was counted.
    pub gone: QueueSnapshot,
}

/// What an adapter did on a port until it left it, or on none.
#[derive(Debug, Clone, PartialEq)]
pub struct PartSnapshot {
    /// The slot of the port.
    pub port: Option<u32>,
    /// The adapter, and what was counted.
    pub counted: QueueSnapshot,
}

/// What was done on a port, at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct PortTotal {
    /// All adapters, those that are gone among them. Gauges are of those that are on it now. High-water marks of active, pending and waiting commands
    /// are of all at once, where the data plane counts that, and else their sum.
    pub total: QueueSnapshot,
    /// When that of active commands was reached, or when it began, in milliseconds since 1970; `None`: it is a sum.
    pub active_max_at_ms: Option<u64>,
    /// Each adapter that is there, by name.
    pub adapters: Vec<PortPart>,
}

/// What one adapter did on a port.
#[derive(Debug, Clone, PartialEq)]
pub struct PortPart {
    /// Whether it is on it now.
    pub here: bool,
    /// What was counted.
    pub counted: QueueSnapshot,
}

/// One channel's statistics at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelSnapshot {
    /// Its number.
    pub index: u32,
    counters: Vec<u64>,
}

impl ChannelSnapshot {
    /// The value of a counter.
    #[must_use]
    pub fn get(&self, counter: ChannelCounter) -> u64 {
        self.counters[counter as usize]
    }
}

/// All statistics of a data plane at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The data plane's process id.
    pub pid: u32,
    /// Ticks of its clock in a second.
    pub ticks_per_second: u64,
    /// Its channels.
    pub channels: Vec<ChannelSnapshot>,
    /// Its queues, by slot.
    pub queues: Vec<QueueSnapshot>,
    /// Adapters that have figures of their own, by slot.
    pub adapters: Vec<AdapterSnapshot>,
    /// Ports, by slot.
    pub ports: Vec<PortSnapshot>,
    /// What adapters did on ports where they are no more, by slot. Where one came back, what it does now is not in it.
    pub parts: Vec<PartSnapshot>,
    /// LUNs by slot: one entry for each channel that serves one.
    pub luns: Vec<LunSnapshot>,
}

impl QueueSnapshot {
    /// What only grows of another one, added or taken away.
    fn grow(&mut self, by: &QueueSnapshot, how: fn(u64, u64) -> u64) {
        for counter in
            QueueCounter::ALL.iter().filter(|counter| counter.info().kind == Kind::Counter)
        {
            let value = &mut self.counters[*counter as usize];
            *value = how(*value, by.get(*counter));
        }
        for (own, other) in self.latencies.iter_mut().zip(&by.latencies) {
            own.sum_ns = how(own.sum_ns, other.sum_ns);
            let buckets = own.buckets.iter_mut().zip(&other.buckets);
            buckets.for_each(|(own, other)| *own = how(*own, *other));
        }
    }

    /// Gauges and high-water marks of another one, added; of single values the highest or the lowest.
    fn add_levels(&mut self, of: &QueueSnapshot) {
        for counter in
            QueueCounter::ALL.iter().filter(|counter| counter.info().kind != Kind::Counter)
        {
            let (own, other) = (&mut self.counters[*counter as usize], of.get(*counter));
            *own = match counter.info().kind {
                kind @ (Kind::Longest | Kind::Shortest) => kind.of_both(*own, other).unwrap_or(0),
                _ => *own + other,
            };
        }
    }
}

impl Snapshot {
    /// What was done on a port; `None`: no adapter was ever mapped to it.
    #[must_use]
    pub fn port(&self, name: &str) -> Option<PortTotal> {
        let port = self.ports.iter().find(|port| port.port == name)?;
        let slot = Some(port.gone.slot);
        let left = self.parts.iter().filter(|part| part.port == slot);
        let left = left.filter(|part| !self.is_on(&part.counted.adapter, slot));
        let mut adapters: Vec<PortPart> =
            left.map(|part| PortPart { here: false, counted: part.counted.clone() }).collect();
        let here = self.adapters.iter().filter(|adapter| adapter.port == slot);
        adapters.extend(here.map(|adapter| PortPart { here: true, counted: self.now(adapter) }));
        adapters.sort_by(|one, two| one.counted.adapter.cmp(&two.counted.adapter));
        let mut total = port.gone.clone();
        for part in &adapters {
            total.grow(&part.counted, u64::saturating_add);
            total.add_levels(&part.counted);
        }
        // All at once, where the data plane counts that.
        let counts = port.active_max_at_ms > 0;
        for mark in [QueueCounter::ActiveMax, QueueCounter::PendingMax, QueueCounter::WaitingMax] {
            if counts || port.gone.get(mark) > 0 {
                total.counters[mark as usize] = port.gone.get(mark);
            }
        }
        Some(PortTotal {
            total,
            active_max_at_ms: counts.then_some(port.active_max_at_ms),
            adapters,
        })
    }

    fn is_on(&self, adapter: &str, port: Option<u32>) -> bool {
        self.adapters.iter().any(|one| one.adapter == adapter && one.port == port)
    }

    /// What an adapter did on the port where it is: all that it ever did, less what it did on others.
    fn now(&self, adapter: &AdapterSnapshot) -> QueueSnapshot {
        let mut sum = adapter.retired.clone();
        for queue in self.queues.iter().filter(|queue| queue.adapter == adapter.adapter) {
            sum.grow(queue, u64::saturating_add);
            sum.add_levels(queue);
        }
        sum.counters[QueueCounter::ActiveMax as usize] = adapter.active_max;
        sum.counters[QueueCounter::PendingMax as usize] = adapter.pending_max;
        sum.counters[QueueCounter::WaitingMax as usize] = adapter.waiting_max;
        let elsewhere = self.parts.iter().filter(|part| part.port != adapter.port);
        for part in elsewhere.filter(|part| part.counted.adapter == adapter.adapter) {
            sum.grow(&part.counted, u64::saturating_sub);
        }
        sum
    }
}

fn load(words: &[AtomicU64]) -> Vec<u64> {
    words.iter().map(|word| word.load(Relaxed)).collect()
}

impl StatsReader {
    /// Maps the statistics behind a descriptor that came with [`crate::message::Reply::Stats`].
    ///
    /// # Errors
    ///
    /// When it is no such memory, or of another version.
    pub fn open(file: &File) -> Result<StatsReader, ReadError> {
        let first = Mapping::file(file, 0, HEADER_WORDS * 8, Access::ReadOnly)?;
        let found = first.words()[header::MAGIC].load(Acquire);
        let channels = first.words()[header::CHANNELS].load(Relaxed) as usize;
        let slots = first.words()[header::QUEUE_SLOTS].load(Relaxed) as usize;
        if found != MAGIC || channels > CHANNELS_MAX || slots != QUEUE_SLOTS {
            return Err(ReadError::Layout { found });
        }
        let mapping = Mapping::file(file, 0, words_total(channels) * 8, Access::ReadOnly)?;
        Ok(StatsReader { mapping, channels })
    }

    /// A copy of everything.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let generation = &self.mapping.words()[header::GENERATION];
        // Counts go from one slot to another in a moment, unless their process dies meanwhile.
        for _ in 0..ATTEMPTS {
            let before = generation.load(Acquire);
            let copy = self.copy();
            fence(SeqCst);
            if before.is_multiple_of(2) && generation.load(Acquire) == before {
                return copy;
            }
            std::thread::yield_now();
        }
        self.copy()
    }

    fn copy(&self) -> Snapshot {
        let words = self.mapping.words();
        let channel = |index: usize| ChannelSnapshot {
            index: index as u32,
            counters: load(&words[HEADER_WORDS + index * CHANNEL_WORDS..][..ChannelCounter::COUNT]),
        };
        let used = self.used();
        Snapshot {
            pid: words[header::PID].load(Relaxed) as u32,
            ticks_per_second: words[header::TICKS_PER_SECOND].load(Relaxed),
            channels: (0..self.channels).map(channel).collect(),
            queues: (0..used).filter_map(|index| self.queue(index)).collect(),
            adapters: (0..used).filter_map(|index| self.adapter(index)).collect(),
            ports: (0..used).filter_map(|index| self.port(index)).collect(),
            parts: (0..used).filter_map(|index| self.part(index)).collect(),
            luns: (0..used).filter_map(|index| self.lun(index)).collect(),
        }
    }

    /// Some counters by adapter, summed over its queues: much less to read than a snapshot.
    #[must_use]
    pub fn count<const N: usize>(&self, which: [QueueCounter; N]) -> BTreeMap<String, [u64; N]> {
        let mut counts: BTreeMap<String, [u64; N]> = BTreeMap::new();
        self.each_queue(|adapter, _, words| {
            let sums = counts.entry(adapter).or_insert([0; N]);
            for (sum, counter) in sums.iter_mut().zip(which) {
                *sum += words[slot::COUNTERS + counter as usize].load(Relaxed);
            }
        });
        counts
    }

    /// The same of each queue.
    #[must_use]
    pub fn count_queues<const N: usize>(
        &self,
        which: [QueueCounter; N],
    ) -> BTreeMap<String, BTreeMap<u16, [u64; N]>> {
        let mut counts: BTreeMap<String, BTreeMap<u16, [u64; N]>> = BTreeMap::new();
        self.each_queue(|adapter, queue, words| {
            let value =
                |counter: QueueCounter| words[slot::COUNTERS + counter as usize].load(Relaxed);
            counts.entry(adapter).or_default().insert(queue, which.map(value));
        });
        counts
    }

    /// The most commands of an adapter that were active at once, and that were held at once, where that is counted for all its queues together.
    #[must_use]
    pub fn marks(&self) -> BTreeMap<String, [u64; 2]> {
        let mark = |index: usize| {
            let (kind, _) = self.what(index)?;
            let words = self.words_of(index);
            let marks = [QueueCounter::ActiveMax, QueueCounter::PendingMax];
            let marks = marks.map(|mark| words[slot::COUNTERS + mark as usize].load(Relaxed));
            (kind == slot::OF_ADAPTER && marks[0] > 0).then(|| (name(words), marks))
        };
        (0..self.used()).filter_map(mark).collect()
    }

    fn used(&self) -> usize {
        let used = self.mapping.words()[header::SLOTS_USED].load(Relaxed) as usize;
        used.min(QUEUE_SLOTS)
    }

    /// The adapter, the number and the words of each queue.
    fn each_queue(&self, mut work: impl FnMut(String, u16, &[AtomicU64])) {
        for index in 0..self.used() {
            if let Some((slot::OF_QUEUE, number)) = self.what(index) {
                let words = self.words_of(index);
                work(name(words), number as u16, words);
            }
        }
    }

    fn queue(&self, index: usize) -> Option<QueueSnapshot> {
        let (kind, number) = self.what(index)?;
        (kind == slot::OF_QUEUE).then(|| self.counted(index, number as u16))
    }

    fn adapter(&self, index: usize) -> Option<AdapterSnapshot> {
        let (kind, active_max_at_ms) = self.what(index)?;
        let word = |word: usize| self.words_of(index)[word].load(Relaxed);
        (kind == slot::OF_ADAPTER).then(|| AdapterSnapshot {
            adapter: name(self.words_of(index)),
            active_max: word(slot::COUNTERS + QueueCounter::ActiveMax as usize),
            active_max_at_ms,
            pending_max: word(slot::COUNTERS + QueueCounter::PendingMax as usize),
            waiting_max: word(slot::COUNTERS + QueueCounter::WaitingMax as usize),
            port: self.port_of(index),
            short: (word(slot::SHORT_SINCE), word(slot::SHORT_END)),
            holds_up: word(slot::HOLDS_UP),
            retired: self.counted(index, 0),
        })
    }

    fn port(&self, index: usize) -> Option<PortSnapshot> {
        let (kind, active_max_at_ms) = self.what(index)?;
        (kind == slot::OF_PORT).then(|| PortSnapshot {
            port: name(self.words_of(index)),
            active_max_at_ms,
            gone: self.counted(index, 0),
        })
    }

    fn part(&self, index: usize) -> Option<PartSnapshot> {
        let (kind, _) = self.what(index)?;
        let counted = || self.counted(index, 0);
        (kind == slot::OF_PART)
            .then(|| PartSnapshot { port: self.port_of(index), counted: counted() })
    }

    /// The slot of the port that an adapter, or a part of one, names.
    fn port_of(&self, index: usize) -> Option<u32> {
        (self.words_of(index)[slot::CHANNEL].load(Relaxed) as u32).checked_sub(1)
    }

    fn lun(&self, index: usize) -> Option<LunSnapshot> {
        let (kind, number) = self.what(index)?;
        (kind == slot::OF_LUN).then(|| LunSnapshot {
            target: (number >> 16) as u8,
            lun: number as u16,
            counted: self.counted(index, 0),
        })
    }

    fn words_of(&self, index: usize) -> &[AtomicU64] {
        let start = HEADER_WORDS + self.channels * CHANNEL_WORDS + index * QUEUE_WORDS;
        &self.mapping.words()[start..start + QUEUE_WORDS]
    }

    /// What a slot that is used is of, and its number.
    fn what(&self, index: usize) -> Option<(u64, u64)> {
        let words = self.words_of(index);
        (words[slot::USED].load(Acquire) != 0)
            .then(|| (words[slot::KIND].load(Relaxed), words[slot::QUEUE].load(Relaxed)))
    }

    fn counted(&self, index: usize, queue: u16) -> QueueSnapshot {
        let words = self.words_of(index);
        let latency = |which: &Latency| {
            let words =
                &words[slot::HISTOGRAMS + *which as usize * histogram::WORDS..][..histogram::WORDS];
            Histogram { sum_ns: words[0].load(Relaxed), buckets: load(&words[1..]) }
        };
        QueueSnapshot {
            adapter: name(words),
            queue,
            channel: words[slot::CHANNEL].load(Relaxed) as u32,
            slot: index as u32,
            counters: load(&words[slot::COUNTERS..][..QueueCounter::COUNT]),
            latencies: Latency::ALL.iter().map(latency).collect(),
        }
    }

    /// The flight recorder of a channel, oldest event first; `None` when there is no such channel.
    #[must_use]
    pub fn flight(&self, channel: usize) -> Option<Vec<FlightEvent>> {
        let start = HEADER_WORDS + channel * CHANNEL_WORDS + CHANNEL_COUNTER_WORDS;
        (channel < self.channels)
            .then(|| flight::read(&self.mapping.words()[start..start + flight::RING_WORDS]))
    }
}
