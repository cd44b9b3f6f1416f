//! Reading the statistics, from any process that was given their descriptor.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed};

use memory::{Access, MapError, Mapping};

use super::{
    CHANNEL_COUNTER_WORDS, CHANNEL_WORDS, CHANNELS_MAX, ChannelCounter, FlightEvent, HEADER_WORDS,
    Histogram, Latency, MAGIC, QUEUE_SLOTS, QUEUE_WORDS, QueueCounter, flight, header, histogram,
    slot, words_total,
};

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterSnapshot {
    /// Its name.
    pub adapter: String,
    /// Most commands that were active at once.
    pub active_max: u64,
    /// When that was, in milliseconds since 1970.
    pub active_max_at_ms: u64,
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
    /// LUNs by slot: one entry for each channel that serves one.
    pub luns: Vec<LunSnapshot>,
}

fn load(words: &[AtomicU64]) -> Vec<u64> {
    words.iter().map(|word| word.load(Relaxed)).collect()
}

/// The name of the adapter of a slot.
fn name(words: &[AtomicU64]) -> String {
    let name: Vec<u8> = load(&words[slot::NAME..][..slot::NAME_WORDS])
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&name).into_owned()
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
        let words = self.mapping.words();
        let channel = |index: usize| ChannelSnapshot {
            index: index as u32,
            counters: load(&words[HEADER_WORDS + index * CHANNEL_WORDS..][..ChannelCounter::COUNT]),
        };
        let used = (words[header::SLOTS_USED].load(Relaxed) as usize).min(QUEUE_SLOTS);
        Snapshot {
            pid: words[header::PID].load(Relaxed) as u32,
            ticks_per_second: words[header::TICKS_PER_SECOND].load(Relaxed),
            channels: (0..self.channels).map(channel).collect(),
            queues: (0..used).filter_map(|index| self.queue(index)).collect(),
            adapters: (0..used).filter_map(|index| self.adapter(index)).collect(),
            luns: (0..used).filter_map(|index| self.lun(index)).collect(),
        }
    }

    /// Some counters by adapter, summed over its queues: much less to read than a snapshot.
    #[must_use]
    pub fn count<const N: usize>(&self, which: [QueueCounter; N]) -> BTreeMap<String, [u64; N]> {
        let words = self.mapping.words();
        let used = (words[header::SLOTS_USED].load(Relaxed) as usize).min(QUEUE_SLOTS);
        let mut counts: BTreeMap<String, [u64; N]> = BTreeMap::new();
        for index in (0..used)
            .filter(|index| self.what(*index).is_some_and(|(kind, _)| kind == slot::OF_QUEUE))
        {
            let words = self.words_of(index);
            let sums = counts.entry(name(words)).or_insert([0; N]);
            for (sum, counter) in sums.iter_mut().zip(which) {
                *sum += words[slot::COUNTERS + counter as usize].load(Relaxed);
            }
        }
        counts
    }

    fn queue(&self, index: usize) -> Option<QueueSnapshot> {
        let (kind, number) = self.what(index)?;
        (kind == slot::OF_QUEUE).then(|| self.counted(index, number as u16))
    }

    fn adapter(&self, index: usize) -> Option<AdapterSnapshot> {
        let (kind, active_max_at_ms) = self.what(index)?;
        let words = self.words_of(index);
        (kind == slot::OF_ADAPTER).then(|| AdapterSnapshot {
            adapter: name(words),
            active_max: words[slot::COUNTERS + QueueCounter::ActiveMax as usize].load(Relaxed),
            active_max_at_ms,
        })
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
