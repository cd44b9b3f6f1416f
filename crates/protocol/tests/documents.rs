//! The reference pages say what the code does: a counter, an offset or a message that changes fails here until its page follows.

use std::os::unix::fs::FileExt;

use protocol::message::{FailureCode, Reply, Request};
use protocol::stats::{
    ChannelCounter, CounterInfo, FlightKind, Kind, Latency, MAGIC, QUEUE_SLOTS, QUEUE_WORDS,
    QueueCounter, StatsRegion, Unit, bucket_of,
};

const GUIDE: &str = include_str!("../../../docs/guide/statistics.md");
const LAYOUT: &str = include_str!("../../../docs/formats/statistics.md");
const MESSAGES: &str = include_str!("../../../docs/formats/messages.md");

fn row(info: CounterInfo) -> String {
    let kind = match info.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::HighWater => "high-water mark",
        Kind::Longest => "longest",
        Kind::Shortest => "shortest",
    };
    let unit = match info.unit {
        Unit::Count => "",
        Unit::Bytes => "bytes",
        Unit::Nanoseconds => "ns",
    };
    format!("| `{}` | {kind} | {unit} | {} |\n", info.name, info.help)
}

fn table(rows: impl Iterator<Item = CounterInfo>) -> String {
    let head = "| name | kind | unit | meaning |\n|---|---|---|---|\n".to_owned();
    rows.fold(head, |table, info| table + &row(info))
}

/// What follows a heading, up to the next one.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let start = page.find(heading).unwrap_or_else(|| panic!("the page has no `{heading}`"));
    let rest = &page[start + heading.len()..];
    &rest[..rest.find("\n## ").unwrap_or(rest.len())]
}

#[test]
fn the_guide_has_every_counter() {
    let queues = table(QueueCounter::ALL.iter().map(|counter| counter.info()));
    let channels = table(ChannelCounter::ALL.iter().map(|counter| counter.info()));
    for (heading, table) in [("\n## Queues\n", queues), ("\n## Channels\n", channels)] {
        assert!(
            section(GUIDE, heading).contains(&table),
            "docs/guide/statistics.md is stale; under{heading}it needs\n\n{table}"
        );
    }
}

/// The word at a byte offset of the shared memory.
fn word(region: &StatsRegion, offset: u64) -> u64 {
    let mut bytes = [0; 8];
    region.file().read_exact_at(&mut bytes, offset).unwrap();
    u64::from_ne_bytes(bytes)
}

#[test]
fn the_layout_is_as_documented() {
    const CHANNEL_BYTES: u64 = 73_728;
    const SLOT_BYTES: u64 = 8192;
    for number in [CHANNEL_BYTES, SLOT_BYTES, QUEUE_SLOTS as u64] {
        assert!(LAYOUT.contains(&number.to_string()), "{number} is not on the page");
    }
    assert!(LAYOUT.contains(&format!("{MAGIC:#x}")));
    assert_eq!(QUEUE_WORDS as u64 * 8, SLOT_BYTES);

    let region = StatsRegion::create(2).unwrap();
    let channel = |index: u64| 4096 + CHANNEL_BYTES * index;
    let slot = |index: u64| channel(2) + SLOT_BYTES * index;
    assert_eq!(region.file().metadata().unwrap().len(), slot(QUEUE_SLOTS as u64));

    region.channel(1).add(ChannelCounter::Commands, 7);
    region.channel(1).event(5, FlightKind::Park, 6, 7);
    let first = region.queue("vhost0", 3).unwrap();
    let queue = region.queue("vhost1", 4).unwrap();
    assert_eq!(first.slot(), 0);
    queue.set_channel(1);
    queue.add(QueueCounter::Moves, 9);
    for latency in Latency::ALL {
        queue.record(latency, 1000 * (1 + latency as u64), 2);
    }

    let header: Vec<u64> = (0..6).map(|index| word(&region, 8 * index)).collect();
    assert_eq!(header[..3], [MAGIC, 2, QUEUE_SLOTS as u64]);
    assert_eq!(header[4..], [u64::from(std::process::id()), 2]);
    assert_eq!(word(&region, channel(1) + 8 * ChannelCounter::Commands as u64), 7);
    assert_eq!(word(&region, channel(1) + 4096), 1);
    let record: Vec<u64> =
        (0..4).map(|index| word(&region, channel(1) + 4128 + 8 * index)).collect();
    assert_eq!(record, [5, 11 << 32 | 6, 7, 1]);
    let queue_word = |index: u64| word(&region, slot(1) + 8 * index);
    assert_eq!([queue_word(0), queue_word(1), queue_word(2)], [1, 4, 1]);
    assert_eq!(queue_word(4).to_ne_bytes(), *b"vhost1\0\0");
    assert_eq!(queue_word(16 + QueueCounter::Moves as u64), 9);
    for (start, ns) in [(128, 1000), (369, 2000), (610, 3000)] {
        assert_eq!(queue_word(start), 2 * ns);
        assert_eq!(queue_word(start + 1 + bucket_of(ns) as u64), 2);
    }
}

#[test]
fn buckets_are_as_documented() {
    for bucket in 0..240_u64 {
        let low = (8 + bucket % 8) << (bucket / 8 + 3);
        let end = (9 + bucket % 8) << (bucket / 8 + 3);
        assert_eq!(bucket_of(low) as u64, bucket);
        assert_eq!(bucket_of(end - 1) as u64, bucket);
    }
    assert_eq!([bucket_of(0), bucket_of(1 << 36)], [0, 239]);
}

/// Fails to compile when a message is added, and then to pass until it is named here and on the page.
#[test]
fn the_page_has_every_message() {
    let request = |request: Request| match request {
        Request::Hello { .. }
        | Request::PutVolume(_)
        | Request::ResizeVolume { .. }
        | Request::RemoveVolume { .. }
        | Request::PutUnit(_)
        | Request::RemoveUnit { .. }
        | Request::PutAdapter(_)
        | Request::RemoveAdapter { .. }
        | Request::PutPool(_)
        | Request::RemovePool { .. }
        | Request::GrowPvs { .. }
        | Request::Rollback(_)
        | Request::Detach(_)
        | Request::Scrub(_)
        | Request::Layout(_)
        | Request::Copy(_)
        | Request::PutUplink(_)
        | Request::RemoveUplink { .. }
        | Request::ResetMarks { .. }
        | Request::ResetPortMarks { .. }
        | Request::Trace(_)
        | Request::Tallies(_)
        | Request::Status
        | Request::Changes
        | Request::ChangesOf(_)
        | Request::Stats
        | Request::Opener
        | Request::Shutdown => (),
    };
    request(Request::Status);
    let reply = |reply: Reply| match reply {
        Reply::Hello { .. }
        | Reply::Done
        | Reply::Status(_)
        | Reply::Changes(_)
        | Reply::Trace(_)
        | Reply::Tallies(_)
        | Reply::Progress(_)
        | Reply::Scrub(_)
        | Reply::Layout(_)
        | Reply::Copy(_)
        | Reply::Stats
        | Reply::Error(_) => (),
    };
    reply(Reply::Done);
    let requests = [
        "hello",
        "put_volume",
        "resize_volume",
        "remove_volume",
        "put_unit",
        "remove_unit",
        "put_adapter",
        "remove_adapter",
        "put_pool",
        "remove_pool",
        "detach",
        "scrub",
        "copy",
        "put_uplink",
        "remove_uplink",
        "reset_marks",
        "reset_port_marks",
        "trace",
        "tallies",
        "status",
        "changes",
        "changes_of",
        "stats",
        "opener",
        "shutdown",
    ];
    let replies = ["hello", "done", "status", "changes", "trace", "tallies", "stats", "error"];
    for (heading, names) in [("\n## Requests\n", &requests[..]), ("\n## Replies\n", &replies[..])] {
        for name in names {
            let row = format!("\n| `{name}` |");
            assert!(section(MESSAGES, heading).contains(&row), "no row of `{name}` under{heading}");
        }
    }
    for code in [
        FailureCode::Version,
        FailureCode::BadMessage,
        FailureCode::NotFound,
        FailureCode::InUse,
        FailureCode::Invalid,
        FailureCode::System,
    ] {
        let mut bytes = Vec::new();
        ciborium::into_writer(&code, &mut bytes).unwrap();
        let name: String = ciborium::from_reader(&bytes[..]).unwrap();
        assert!(section(MESSAGES, "\n## Replies\n").contains(&format!("\n| `{name}` |")), "{name}");
    }
}
