//! Where the statistics lie in memory: each of their cache lines has one writer.

use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;

use protocol::stats::{
    ChannelCounter, FlightKind, Latency, QUEUE_SLOTS, QUEUE_WORDS, QueueCounter, StatsRegion,
};

/// Two lines are fetched together on the machines that this is for.
const LINES: usize = 128;
const CHANNELS: usize = 3;
const QUEUES: u16 = 40;

/// The part of the memory that channels and the first queues use.
fn bytes(region: &StatsRegion) -> Vec<u8> {
    let whole = region.file().metadata().unwrap().len() as usize;
    let unused = (QUEUE_SLOTS - usize::from(QUEUES)) * QUEUE_WORDS * 8;
    let mut bytes = vec![0; whole - unused];
    region.file().read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// From the first to the last line that `write` has changed.
fn lines(region: &StatsRegion, write: impl FnOnce()) -> RangeInclusive<usize> {
    let before = bytes(region);
    write();
    let after = bytes(region);
    let changed = |at: &usize| before[*at] != after[*at];
    let first = (0..before.len()).find(changed).expect("something was written");
    let last = (0..before.len()).rfind(changed).expect("something was written");
    first / LINES..=last / LINES
}

#[test]
fn no_two_queues_or_channels_write_to_one_line() {
    let region = StatsRegion::create(CHANNELS).unwrap();
    let queues: Vec<_> = (0..QUEUES).map(|queue| region.queue("vhost0", queue).unwrap()).collect();
    let mut written = Vec::new();
    for queue in &queues {
        written.push(lines(&region, || {
            QueueCounter::ALL.iter().for_each(|counter| queue.add(*counter, 1));
            for which in Latency::ALL {
                [0, 1, 1000, u64::MAX].iter().for_each(|ns| queue.record(which, *ns, 1));
            }
            queue.set_channel(2);
        }));
    }
    for index in 0..CHANNELS {
        let channel = region.channel(index);
        written.push(lines(&region, || {
            ChannelCounter::ALL.iter().for_each(|counter| channel.add(*counter, 1));
            // More than the recorder keeps: it comes round.
            (0..100_000).for_each(|tick| channel.event(tick, FlightKind::Take, 7, tick));
        }));
    }
    written.sort_unstable_by_key(|lines| *lines.start());
    for pair in written.windows(2) {
        assert!(pair[0].end() < pair[1].start(), "{pair:?}");
    }
    assert_eq!(written.len(), usize::from(QUEUES) + CHANNELS);
}
