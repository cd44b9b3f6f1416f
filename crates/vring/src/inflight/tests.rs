//! The region's layout, its recovery and what it makes of hostile contents. Crash points of a running
//! queue are in `split/tests/crash.rs`.

use std::cell::Cell;

use super::*;

thread_local! {
    /// How many stores until the process dies; none: never.
    static LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// What a simulated crash unwinds with.
pub(crate) struct Crash;

pub(crate) fn maybe_crash() {
    let left = LEFT.get();
    if left == Some(0) {
        LEFT.set(None);
        std::panic::resume_unwind(Box::new(Crash));
    }
    LEFT.set(left.map(|left| left - 1));
}

/// Runs `life`, which dies at its `at`-th crash point. True: it did.
pub(crate) fn dies_at(at: u64, life: impl FnOnce()) -> bool {
    LEFT.set(Some(at));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(life));
    LEFT.set(None);
    match result {
        Ok(()) => false,
        Err(panic) if panic.is::<Crash>() => true,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

fn queue(size: u16) -> InflightQueue {
    InflightRegion::create(1, size).unwrap().1.queue(0).unwrap()
}

#[test]
fn layout_is_the_protocols() {
    let region = queue(8);
    assert!(region.recover(8, 77).unwrap().fresh);
    let mut tracker = Tracker::new(region.clone(), 8, 5);
    tracker.take(3);
    tracker.take(6);
    tracker.give_back(3);
    tracker.before_publish();
    let mut bytes = [0; 16 + 8 * 16];
    region.mapping.view(0, bytes.len()).unwrap().read(0, &mut bytes);
    assert_eq!(bytes[..8], [0; 8], "features");
    assert_eq!(bytes[8..16], [1, 0, 8, 0, 3, 0, 77, 0], "version, desc_num, last_batch_head, used");
    assert_eq!(bytes[16 + 48..16 + 64], [1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[16 + 96..16 + 112], [1, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
    tracker.give_back(6);
    tracker.before_publish();
    tracker.after_publish(79);
    region.mapping.view(0, bytes.len()).unwrap().read(0, &mut bytes);
    assert_eq!(bytes[8..16], [1, 0, 8, 0, 6, 0, 79, 0]);
    assert_eq!((bytes[16 + 48], bytes[16 + 96]), (0, 0));
    assert_eq!(bytes[16 + 96 + 6], 3, "the batch is a list from its newest head");
}

#[test]
fn regions_of_two_queues_do_not_touch() {
    for size in [1, 2, 3, 8, 128, 1024] {
        let (_, region) = InflightRegion::create(3, size).unwrap();
        let queues = [0, 1, 2].map(|i| region.queue(i).unwrap());
        for queue in &queues {
            queue.recover(size, 0).unwrap();
        }
        let mut tracker = Tracker::new(queues[1].clone(), size, 0);
        (0..size).for_each(|head| tracker.take(head));
        for i in [0, 2] {
            assert_eq!(queues[i].recover(size, 0).unwrap().heads, [0u16; 0], "beside a full one");
        }
        assert_eq!(queues[1].recover(size, 0).unwrap().heads.len(), usize::from(size));
        assert!(region.queue(3).is_none());
        assert_eq!(InflightRegion::bytes(3, size) % 64, 0);
    }
}

#[test]
fn heads_come_back_in_the_order_they_were_taken() {
    let region = queue(8);
    region.recover(8, 0).unwrap();
    let mut tracker = Tracker::new(region.clone(), 8, 0);
    for head in [5, 2, 7, 0] {
        tracker.take(head);
    }
    tracker.give_back(7);
    tracker.before_publish();
    tracker.after_publish(1);
    let found = region.recover(8, 1).unwrap();
    assert_eq!((found.heads, found.counter, found.fresh), (vec![5, 2, 0], 4, false));
}

#[test]
fn open_takes_what_create_made() {
    let (file, region) = InflightRegion::create(2, 16).unwrap();
    region.queue(1).unwrap().recover(16, 9).unwrap();
    let len = file.metadata().unwrap().len();
    let again = InflightRegion::open(&file, 0, len, 2, 16).unwrap();
    assert!(!again.queue(1).unwrap().recover(16, 9).unwrap().fresh);
    assert!(again.queue(0).unwrap().recover(16, 9).unwrap().fresh);
    let short = InflightRegion::open(&file, 0, len - 1, 2, 16).unwrap_err();
    assert_eq!(short, InflightError::TooShort { len: len - 1, needed: len });
    assert!(matches!(
        InflightRegion::open(&file, 0, 1 << 30, 2, 1024).unwrap_err(),
        InflightError::Map(_)
    ));
    assert!(matches!(InflightRegion::open(&file, 4, len, 1, 8), Err(InflightError::Map(_))));
}

#[test]
fn shape_that_is_not_supported_is_refused() {
    for (queues, size) in [(0, 8), (8, 0), (1025, 8), (1, 1025)] {
        let error = InflightRegion::create(queues, size).unwrap_err();
        assert_eq!(error, InflightError::Shape { queues, size });
    }
}

#[test]
fn the_front_end_cannot_shrink_the_region() {
    let (file, _region) = InflightRegion::create(1, 8).unwrap();
    assert!(file.set_len(0).is_err());
}

#[test]
fn hostile_contents_are_refused() {
    let fresh = || {
        let region = queue(8);
        region.recover(8, 100).unwrap();
        Tracker::new(region.clone(), 8, 0).take(1);
        region
    };
    let region = fresh();
    region.set16(AT_VERSION, 2);
    assert_eq!(region.recover(8, 100), Err(InflightError::Version(2)));
    for desc_num in [0, 7, 9, 65535] {
        let region = fresh();
        region.set16(AT_DESC_NUM, desc_num);
        assert_eq!(region.recover(8, 100), Err(InflightError::DescNum { desc_num, size: 8 }));
    }
    for ring in [99, 109, 0, 40000] {
        let error = InflightError::UsedIndex { recorded: 100, ring };
        assert_eq!(fresh().recover(8, ring), Err(error));
    }
    let region = fresh();
    region.set16(AT_LAST_BATCH_HEAD, 8);
    assert_eq!(region.recover(8, 101), Err(InflightError::Head { head: 8, size: 8 }));
    let region = fresh();
    region.set16(AT_LAST_BATCH_HEAD, 2);
    region.set16(region.entry(2) + 6, 65535);
    assert_eq!(region.recover(8, 102), Err(InflightError::Head { head: 65535, size: 8 }));
    // A list that runs in a circle is walked as far as the batch is long, and no further.
    let region = fresh();
    region.set16(AT_LAST_BATCH_HEAD, 2);
    region.set16(region.entry(2) + 6, 2);
    assert_eq!(region.recover(8, 108).unwrap().heads, [1]);
    // Heads that a smaller ring does not have.
    let region = fresh();
    region.set_in_flight(5, true);
    assert_eq!(region.recover(4, 100), Err(InflightError::Head { head: 5, size: 4 }));
    // Counters may say anything: an order comes out, and nothing overflows.
    let region = fresh();
    for head in 0..8 {
        region.set_counter(head, u64::MAX);
        region.set_in_flight(head, true);
    }
    let found = region.recover(8, 100).unwrap();
    assert_eq!((found.heads, found.counter), ((0..8).collect(), 0));
    Tracker::new(region.clone(), 8, u64::MAX).take(0);
}

#[test]
fn idle_region_of_another_life_starts_afresh() {
    let region = queue(8);
    region.recover(8, 500).unwrap();
    let found = region.recover(8, 0).unwrap();
    assert_eq!((found.fresh, found.heads), (true, vec![]));
    assert_eq!(region.get16(AT_USED_IDX), 0);
}

#[test]
fn recovery_that_is_killed_can_be_repeated() {
    for at in 0.. {
        let region = queue(8);
        region.recover(8, 65535).unwrap();
        let mut tracker = Tracker::new(region.clone(), 8, 0);
        for head in [4, 1, 6] {
            tracker.take(head);
        }
        tracker.give_back(6);
        tracker.give_back(4);
        tracker.before_publish();
        // Published, and then nothing more.
        let died = dies_at(at, || drop(region.recover(8, 1)));
        assert_eq!(region.recover(8, 1).unwrap().heads, [1], "killed at {at}");
        assert_eq!(region.get16(AT_USED_IDX), 1);
        if !died {
            assert!(at > 2, "there are steps to be killed at");
            break;
        }
    }
    for at in 0.. {
        let region = queue(2);
        let died = dies_at(at, || drop(region.recover(2, 7)));
        assert_eq!(region.recover(2, 7).unwrap().heads, [0u16; 0]);
        assert_eq!(region.get16(AT_VERSION), 1);
        if !died {
            break;
        }
    }
}
