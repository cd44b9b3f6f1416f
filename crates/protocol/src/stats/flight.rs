//! The flight recorder: the last events of a channel, for the question "what was it doing".
//!
//! A ring of 32-byte records that its channel overwrites, oldest first. It records turns and hand-overs, not each I/O.

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

const RECORDS: usize = 2048;
const RECORD_WORDS: usize = 4;
/// The index word takes a record's place, so that records stay aligned.
pub(crate) const RING_WORDS: usize = RECORD_WORDS + RECORDS * RECORD_WORDS;

macro_rules! kinds {
    ($($variant:ident $name:literal $help:literal)*) => {
        /// What happened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        pub enum FlightKind { $(#[doc = $help] $variant),* }

        impl FlightKind {
            const ALL: &'static [FlightKind] = &[$(FlightKind::$variant),*];

            /// As it is printed.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(FlightKind::$variant => $name),* }
            }
        }
    };
}

kinds! {
    Take "take" "Took commands from a queue; value: how many."
    Publish "publish" "Published completions to a queue; value: how many."
    Notify "notify" "Notified the client of a queue."
    Sleep "sleep" "Went to sleep; value: commands in flight."
    Wake "wake" "Woke up; value: nanoseconds asleep."
    Kick "kick" "Was notified by the client of a queue."
    Start "start" "Began to own a queue."
    Stop "stop" "Was asked to give a queue back; value: commands in flight."
    Stopped "stopped" "Gave a queue back."
    Broken "broken" "A queue's ring breaks the rules and was stopped; value: the error's code."
    Error "error" "A command failed; value: the status."
    Park "park" "A command waits; value: the reason."
}

/// One record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlightEvent {
    /// When, in ticks of the data plane's clock.
    pub ticks: u64,
    /// What happened.
    pub kind: FlightKind,
    /// Which queue slot; nothing for [`FlightKind::Sleep`] and [`FlightKind::Wake`].
    pub subject: u32,
    /// See [`FlightKind`].
    pub value: u64,
}

#[inline]
pub(crate) fn write(ring: &[AtomicU64], ticks: u64, kind: FlightKind, subject: u32, value: u64) {
    let index = ring[0].load(Relaxed);
    let at = RECORD_WORDS + (index as usize % RECORDS) * RECORD_WORDS;
    // A reader recognises a record that is being overwritten by its index word, which goes first and comes last.
    ring[at + 3].store(0, Relaxed);
    ring[at].store(ticks, Release);
    ring[at + 1].store(u64::from(kind as u32) << 32 | u64::from(subject), Relaxed);
    ring[at + 2].store(value, Relaxed);
    ring[at + 3].store(index + 1, Release);
    ring[0].store(index + 1, Release);
}

/// The records in a ring, oldest first; those that are overwritten while they are read are left out.
pub(crate) fn read(ring: &[AtomicU64]) -> Vec<FlightEvent> {
    let end = ring[0].load(Acquire);
    let begin = end.saturating_sub(RECORDS as u64);
    let record = |index: u64| {
        let at = RECORD_WORDS + (index as usize % RECORDS) * RECORD_WORDS;
        let stamp = ring[at + 3].load(Acquire);
        let (ticks, what, value) =
            (ring[at].load(Relaxed), ring[at + 1].load(Relaxed), ring[at + 2].load(Acquire));
        if stamp != index + 1 || ring[at + 3].load(Relaxed) != stamp {
            return None;
        }
        let kind = *FlightKind::ALL.get((what >> 32) as usize)?;
        Some(FlightEvent { ticks, kind, subject: what as u32, value })
    };
    (begin..end).filter_map(record).collect()
}
