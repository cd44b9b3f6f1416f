use super::*;

#[test]
fn a_reader_sees_what_the_owner_counted() {
    let region = StatsRegion::create(2).unwrap();
    let queue = region.queue("vhost0", 3).unwrap();
    queue.add(QueueCounter::Reads, 5);
    queue.set_with_high_water(QueueCounter::Active, QueueCounter::ActiveMax, 9);
    queue.set_with_high_water(QueueCounter::Active, QueueCounter::ActiveMax, 2);
    queue.record(Latency::Device, 1000, 4);
    queue.set_channel(1);
    region.channel(1).add(ChannelCounter::Wakeups, 7);

    let reader = StatsReader::open(region.file()).unwrap();
    let snapshot = reader.snapshot();
    assert_eq!(snapshot.channels[1].get(ChannelCounter::Wakeups), 7);
    let [seen] = &snapshot.queues[..] else { panic!("one queue expected") };
    assert_eq!((seen.adapter.as_str(), seen.queue, seen.channel), ("vhost0", 3, 1));
    assert_eq!(seen.get(QueueCounter::Reads), 5);
    assert_eq!((seen.get(QueueCounter::Active), seen.get(QueueCounter::ActiveMax)), (2, 9));
    assert_eq!(seen.latency(Latency::Device).count(), 4);
    assert_eq!(seen.latency(Latency::Device).mean_ns(), 1000);
    assert_eq!(seen.latency(Latency::Ring).count(), 0);
}

#[test]
fn a_released_slot_comes_back_empty() {
    let region = StatsRegion::create(1).unwrap();
    let longest = "a".repeat(NAME_BYTES_MAX);
    let queue = region.queue(&longest, 0).unwrap();
    queue.add(QueueCounter::Writes, 5);
    let slot = queue.slot();
    region.release(queue);
    let reader = StatsReader::open(region.file()).unwrap();
    assert!(reader.snapshot().queues.is_empty());
    let again = region.queue("b", 1).unwrap();
    assert_eq!((again.slot(), again.get(QueueCounter::Writes)), (slot, 0));
    assert_eq!(reader.snapshot().queues[0].adapter, "b");
}

#[test]
fn another_layout_is_refused() {
    let region = StatsRegion::create(1).unwrap();
    region.words[header::MAGIC].store(MAGIC + 1, Relaxed);
    assert!(matches!(StatsReader::open(region.file()), Err(ReadError::Layout { .. })));
}

#[test]
fn every_value_lies_in_its_bucket_and_buckets_are_in_order() {
    let mut previous = 0;
    for bit in 0..64 {
        for delta in [-1_i64, 0, 1, 5] {
            let ns = (1_u64 << bit).wrapping_add_signed(delta);
            let bucket = bucket_of(ns);
            if ns < 1 << 36 {
                assert!(ns < bucket_upper_ns(bucket), "{ns}");
                assert!(bucket == 0 || ns >= bucket_upper_ns(bucket - 1), "{ns}");
            } else {
                assert_eq!(bucket, BUCKETS - 1);
            }
        }
    }
    for bucket in 0..BUCKETS {
        assert!(bucket_upper_ns(bucket) > previous);
        previous = bucket_upper_ns(bucket);
    }
}

#[test]
fn quantiles_are_never_too_low_and_at_most_an_eighth_too_high() {
    let mut histogram = Histogram::default();
    let values: Vec<u64> = (1..=10_000).map(|i| i * 37 + 64).collect();
    for value in &values {
        histogram.buckets[bucket_of(*value)] += 1;
    }
    for quantile in [0.0, 0.5, 0.99, 0.999, 1.0] {
        let exact = values[((quantile * 10_000.0) as usize).clamp(1, 10_000) - 1];
        let found = histogram.quantile_ns(quantile);
        assert!(
            found >= exact && found <= exact + exact / 8 + 1,
            "{quantile}: {found} for {exact}"
        );
    }
    assert_eq!(Histogram::default().quantile_ns(0.5), 0);
}

#[test]
fn the_flight_recorder_keeps_the_last_events_in_order() {
    let region = StatsRegion::create(1).unwrap();
    let channel = region.channel(0);
    for i in 0..5000 {
        channel.event(i, FlightKind::Take, 7, i * 2);
    }
    let events = StatsReader::open(region.file()).unwrap().flight(0).unwrap();
    assert_eq!(events.len(), 2048);
    assert!(
        events
            .iter()
            .zip(2952..)
            .all(|(event, i)| event.ticks == i && event.value == i * 2 && event.subject == 7)
    );
}

#[test]
fn names_are_unique_and_high_waters_follow_their_gauges() {
    let mut names: Vec<_> = QueueCounter::ALL.iter().map(|c| c.info().name).collect();
    names.extend(ChannelCounter::ALL.iter().map(|c| c.info().name));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    for (before, after) in QueueCounter::ALL.iter().zip(&QueueCounter::ALL[1..]) {
        if after.info().kind == Kind::HighWater {
            assert_eq!(before.info().kind, Kind::Gauge);
        }
    }
}

/// 0 is no time at all, neither the shortest of a queue nor that of two.
#[test]
fn the_shortest_and_the_longest_are_those_of_all_queues() {
    use QueueCounter::{ReadLongest, ReadShortest};
    let region = StatsRegion::create(1).unwrap();
    let queues = [2, 3, 4].map(|queue| region.queue("vfchost0", queue).unwrap());
    for (queue, ns) in [(0, 700), (0, 500), (0, 900), (1, 600), (1, 4000)] {
        queues[queue].note_extremes([ReadShortest, ReadLongest], ns);
    }
    let seen = queues.map(|queue| [ReadShortest, ReadLongest].map(|which| queue.get(which)));
    assert_eq!(seen, [[500, 900], [600, 4000], [0, 0]]);
    let both = |which: QueueCounter, index: usize| {
        let kind = which.info().kind;
        seen.iter().fold(0, |both, one| kind.of_both(both, one[index]).unwrap())
    };
    assert_eq!((both(ReadShortest, 0), both(ReadLongest, 1)), (500, 4000));
    assert_eq!(Kind::Counter.of_both(1, 2), None);
    queues[0].reset_marks();
    assert_eq!(queues[0].get(ReadShortest), 0);
    queues[0].note_extremes([ReadShortest, ReadLongest], 800);
    assert_eq!((queues[0].get(ReadShortest), queues[0].get(ReadLongest)), (800, 800));
}

#[test]
fn a_lun_is_counted_for_each_channel_and_is_no_queue() {
    let region = StatsRegion::create(2).unwrap();
    let _queue = region.queue("vfchost0", 2).unwrap();
    let lun = region.lun("vfchost0", 255, 0x3fff, 0).unwrap();
    let other = region.lun("vfchost0", 255, 0x3fff, 1).unwrap();
    lun.add(QueueCounter::Reads, 3);
    other.add(QueueCounter::Reads, 4);
    other.record(Latency::Device, 1000, 4);
    let reader = StatsReader::open(region.file()).unwrap();
    let snapshot = reader.snapshot();
    assert_eq!(snapshot.queues.len(), 1);
    let seen: Vec<_> = snapshot
        .luns
        .iter()
        .map(|lun| (lun.target, lun.lun, lun.counted.channel, lun.counted.get(QueueCounter::Reads)))
        .collect();
    assert_eq!(seen, [(255, 0x3fff, 0, 3), (255, 0x3fff, 1, 4)]);
    assert_eq!(snapshot.luns[1].counted.latency(Latency::Device).count(), 4);
    region.release_lun(lun);
    assert_eq!(reader.snapshot().luns.len(), 1);
    // What was a LUN's can be a queue's.
    assert_eq!(region.queue("vfchost1", 0).unwrap().slot(), 1);
    assert_eq!(reader.snapshot().queues.len(), 2);
}

#[test]
fn luns_leave_slots_for_queues() {
    let region = StatsRegion::create(1).unwrap();
    let luns: Vec<_> = (0..).map_while(|lun| region.lun("a", 0, lun, 0)).collect();
    assert_eq!(luns.len(), LUN_SLOTS_MAX);
    assert!(region.queue("b", 0).is_some());
    region.release_lun(luns[0]);
    assert!(region.lun("a", 1, 0, 0).is_some());
    assert!(region.lun("a", 1, 1, 0).is_none());
}

#[test]
fn a_lun_that_comes_back_goes_on_and_one_that_is_gone_gives_its_slot_back() {
    let region = StatsRegion::create(2).unwrap();
    let reader = StatsReader::open(region.file()).unwrap();
    let reads = || -> Vec<_> {
        let luns = reader.snapshot().luns;
        luns.iter().map(|lun| (lun.lun, lun.counted.get(QueueCounter::Reads))).collect()
    };
    let first = region.lun("a", 0, 7, 0).unwrap();
    first.add(QueueCounter::Reads, 5);
    region.rest_lun("a", 0, 7, 0, first);
    assert_eq!(reads(), [(7, 5)], "what rests can be read");
    // Another channel, and another adapter of the same LUN, begin with nothing.
    let other = region.lun("a", 0, 7, 1).unwrap();
    let foreign = region.lun("b", 0, 7, 0).unwrap();
    assert_eq!([other.get(QueueCounter::Reads), foreign.get(QueueCounter::Reads)], [0, 0]);
    let again = region.lun("a", 0, 7, 0).unwrap();
    again.add(QueueCounter::Reads, 1);
    assert_eq!(reads(), [(7, 6), (7, 0), (7, 0)]);
    region.rest_lun("a", 0, 7, 0, again);
    region.rest_lun("a", 0, 7, 1, other);
    region.keep_luns("a", |target, lun| (target, lun) == (0, 7));
    assert_eq!(reads().len(), 3);
    region.keep_luns("a", |_, _| false);
    assert_eq!(reads(), [(7, 0)], "the other adapter's");
    region.release_lun(foreign);
    assert_eq!(reads(), []);
}

#[test]
fn a_resting_slot_makes_way_when_no_other_is_free() {
    let region = StatsRegion::create(1).unwrap();
    let luns: Vec<_> = (0..).map_while(|lun| region.lun("a", 0, lun, 0)).collect();
    luns[3].add(QueueCounter::Reads, 9);
    region.rest_lun("a", 0, 3, 0, luns[3]);
    let taken = region.lun("b", 1, 0, 0).unwrap();
    assert_eq!(taken.get(QueueCounter::Reads), 0);
    assert!(region.lun("a", 0, 3, 0).is_none());
}

/// Reads of a port: by adapters that are gone, on other ports, and on it now.
fn reads_of(snapshot: &Snapshot, port: &str) -> u64 {
    snapshot.port(port).map_or(0, |port| port.total.get(QueueCounter::Reads))
}

#[test]
fn what_was_done_on_a_port_stays_with_it() {
    let region = StatsRegion::create(1).unwrap();
    let reader = StatsReader::open(region.file()).unwrap();
    let reads = |port| reads_of(&reader.snapshot(), port);
    let adapter = region.adapter("vfchost0").unwrap();
    let queues = [0, 1].map(|queue| region.queue("vfchost0", queue).unwrap());
    let read = |count| {
        queues[0].add(QueueCounter::Reads, count);
        queues[1].record(Latency::Device, 1000, count);
    };
    read(1);
    region.map_adapter(adapter, Some("fcs0"));
    assert_eq!(reads("fcs0"), 0, "that was on no port");
    read(10);
    region.map_adapter(adapter, Some("fcs0"));
    assert_eq!(reads("fcs0"), 10);
    region.map_adapter(adapter, Some("fcs1"));
    read(100);
    assert_eq!((reads("fcs0"), reads("fcs1")), (10, 100));
    region.map_adapter(adapter, None);
    read(1000);
    region.map_adapter(adapter, Some("fcs0"));
    read(10_000);
    assert_eq!((reads("fcs0"), reads("fcs1")), (10_010, 100));
    let port = reader.snapshot().port("fcs0").unwrap();
    assert_eq!(port.total.latency(Latency::Device).count(), 10_010);
    // Another one comes to it, the first one loses a queue and goes.
    let other = region.adapter("vfchost1").unwrap();
    region.map_adapter(other, Some("fcs0"));
    region.queue("vfchost1", 0).unwrap().add(QueueCounter::Reads, 7);
    let port = reader.snapshot().port("fcs0").unwrap();
    let parts: Vec<_> = port
        .adapters
        .iter()
        .map(|part| {
            (part.counted.adapter.as_str(), part.counted.get(QueueCounter::Reads), part.here)
        })
        .collect();
    assert_eq!(parts, [("vfchost0", 10_010, true), ("vfchost1", 7, true)]);
    region.release(queues[0]);
    assert_eq!((reads("fcs0"), reads("fcs1")), (10_017, 100));
    region.release(queues[1]);
    region.release_adapter(adapter);
    assert_eq!((reads("fcs0"), reads("fcs1")), (10_017, 100));
    assert!(reader.snapshot().parts.is_empty(), "its slots are free");
    // One of the same name begins at zero, and adds to it.
    let again = region.adapter("vfchost0").unwrap();
    region.map_adapter(again, Some("fcs1"));
    region.queue("vfchost0", 0).unwrap().add(QueueCounter::Reads, 3);
    assert_eq!((reads("fcs0"), reads("fcs1")), (10_017, 103));
}

/// They are no sum of its adapters', and of a data plane that does not keep them they are.
#[test]
fn the_marks_of_a_port_are_its_own() {
    let region = StatsRegion::create(1).unwrap();
    let reader = StatsReader::open(region.file()).unwrap();
    let mark = ["vfchost0", "vfchost1"].map(|name| {
        let adapter = region.adapter(name).unwrap();
        adapter.set_active_max(8, 1);
        adapter.set_waiting_max(5);
        region.map_adapter(adapter, Some("fcs0")).unwrap()
    })[0];
    let marks = || {
        let port = reader.snapshot().port("fcs0").unwrap();
        use QueueCounter::{ActiveMax, PendingMax, WaitingMax};
        let marks = [ActiveMax, PendingMax, WaitingMax].map(|mark| port.total.get(mark));
        (marks, port.active_max_at_ms)
    };
    assert_eq!(marks(), ([16, 0, 10], None));
    mark.set_active_max(12, 77);
    mark.set_pending_max(3);
    mark.set_waiting_max(7);
    assert_eq!(marks(), ([12, 3, 7], Some(77)));
    // They have begun again, and nothing was there since.
    mark.set_active_max(0, 99);
    mark.set_pending_max(0);
    mark.set_waiting_max(0);
    assert_eq!(marks(), ([0, 0, 0], Some(99)));
    assert!(region.port("fcs1").is_none());
}

#[test]
fn a_ports_counters_never_go_back_while_its_adapters_come_and_go() {
    let region = StatsRegion::create(1).unwrap();
    let reader = StatsReader::open(region.file()).unwrap();
    let adapter = region.adapter("vfchost0").unwrap();
    let queue = region.queue("vfchost0", 0).unwrap();
    region.map_adapter(adapter, Some("fcs0"));
    std::thread::scope(|scope| {
        let moving = scope.spawn(|| {
            for round in 0..2000 {
                queue.add(QueueCounter::Reads, 1);
                let port = ["fcs0", "fcs1"][round % 2];
                region.map_adapter(adapter, Some(port));
            }
        });
        let mut before = [0; 2];
        while !moving.is_finished() {
            let snapshot = reader.snapshot();
            let now = ["fcs0", "fcs1"].map(|port| reads_of(&snapshot, port));
            assert!(now[0] >= before[0] && now[1] >= before[1], "{now:?} after {before:?}");
            before = now;
        }
    });
    let snapshot = reader.snapshot();
    assert_eq!(reads_of(&snapshot, "fcs0") + reads_of(&snapshot, "fcs1"), 2000);
}
