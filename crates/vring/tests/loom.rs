//! Every interleaving of sleeping against kicking, for the functions the rings use.
//!
//! ```text
//! cargo test -p vring --features loom --test loom
//! ```
//!
//! Both directions of a ring are the same four functions, so one model stands for both: the driver
//! kicks the device (`avail.idx`, `avail_event`) and the device interrupts the driver (`used.idx`,
//! `used_event`). A lost wake shows as a deadlock, which loom reports; an entry that is read before
//! it was written shows as a data race.
#![cfg(feature = "loom")]
#![allow(unsafe_code)] // UNSAFE: loom's cells, by which it finds data races.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU16, Ordering, fence};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use vring::handshake::{self, Word};

/// The ring's word on loom's atomics.
struct Model(AtomicU16);

impl Word for Model {
    fn load(&self, order: Ordering) -> u16 {
        self.0.load(order)
    }

    fn store(&self, value: u16, order: Ordering) {
        self.0.store(value, order);
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// An eventfd: a wake is kept until it is taken.
struct EventFd {
    signalled: Mutex<bool>,
    changed: Condvar,
}

impl EventFd {
    fn new() -> EventFd {
        EventFd { signalled: Mutex::new(false), changed: Condvar::new() }
    }

    fn write(&self) {
        *self.signalled.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn read(&self) {
        let mut signalled = self.signalled.lock().unwrap();
        while !*signalled {
            signalled = self.changed.wait(signalled).unwrap();
        }
        *signalled = false;
    }
}

/// One direction of a ring.
struct Direction {
    index: Model,
    /// The event index, or the flags.
    wake: Model,
    entries: [UnsafeCell<u16>; 4],
    eventfd: EventFd,
}

// SAFETY: the entries are what the model is about; loom checks every access to them.
unsafe impl Sync for Direction {}

#[derive(Clone, Copy)]
enum Way {
    Event,
    Flag,
}

impl Direction {
    fn new(start: u16) -> Direction {
        Direction {
            index: Model(AtomicU16::new(start)),
            // Armed for an entry that has passed: nobody is to be woken.
            wake: Model(AtomicU16::new(start.wrapping_sub(1))),
            entries: std::array::from_fn(|_| UnsafeCell::new(0)),
            eventfd: EventFd::new(),
        }
    }

    fn entry(&self, index: u16) -> &UnsafeCell<u16> {
        &self.entries[usize::from(index % 4)]
    }

    /// Publishes a batch of entries and wakes if asked to.
    fn produce(&self, way: Way, old: u16, count: u16) {
        let new = old.wrapping_add(count);
        for i in 0..count {
            let index = old.wrapping_add(i);
            // SAFETY: not published yet; loom checks.
            self.entry(index).with_mut(|entry| unsafe { *entry = index });
        }
        handshake::publish(&self.index, new);
        let wake = match way {
            Way::Event => handshake::must_wake_event(&self.wake, new, old),
            Way::Flag => handshake::must_wake_flag(&self.wake),
        };
        if wake {
            self.eventfd.write();
        }
    }

    /// Takes `count` entries from `start`, sleeping whenever there are none.
    fn consume(&self, way: Way, start: u16, count: u16) {
        let end = start.wrapping_add(count);
        let mut next = start;
        loop {
            let seen = handshake::observe(&self.index);
            while next != seen {
                // SAFETY: published; loom checks.
                let value = self.entry(next).with(|entry| unsafe { *entry });
                assert_eq!(value, next);
                next = next.wrapping_add(1);
            }
            if next == end {
                return;
            }
            if let Way::Flag = way {
                // As a device does that has polled for a while.
                handshake::quiet_flag(&self.wake);
            }
            let more = match way {
                Way::Event => handshake::arm_event(&self.wake, &self.index, next),
                Way::Flag => handshake::arm_flag(&self.wake, &self.index, next),
            };
            if !more {
                self.eventfd.read();
            }
        }
    }
}

/// `batches` published one after the other, while the other side sleeps whenever it may.
fn model(way: Way, start: u16, batches: &'static [u16]) {
    loom::model(move || {
        let direction = Arc::new(Direction::new(start));
        let consumer = Arc::clone(&direction);
        let total = batches.iter().sum();
        let consumer = thread::spawn(move || consumer.consume(way, start, total));
        let mut index = start;
        for &count in batches {
            direction.produce(way, index, count);
            index = index.wrapping_add(count);
        }
        consumer.join().unwrap();
    });
}

#[test]
fn no_wake_is_lost_with_events() {
    model(Way::Event, 0, &[1, 1]);
}

#[test]
fn no_wake_is_lost_with_events_and_batches() {
    model(Way::Event, 0, &[2, 1]);
}

#[test]
fn no_wake_is_lost_with_events_over_the_wrap() {
    model(Way::Event, 65535, &[1, 2]);
}

#[test]
fn no_wake_is_lost_with_flags() {
    model(Way::Flag, 0, &[1, 1]);
}

/// Both directions at once, with one request: the driver makes it available and sleeps until it is
/// used; the device sleeps until it is available.
#[test]
fn a_request_goes_there_and_back() {
    loom::model(|| {
        let avail = Arc::new(Direction::new(0));
        let used = Arc::new(Direction::new(0));
        let (there, back) = (Arc::clone(&avail), Arc::clone(&used));
        let device = thread::spawn(move || {
            there.consume(Way::Event, 0, 1);
            back.produce(Way::Event, 0, 1);
        });
        avail.produce(Way::Event, 0, 1);
        used.consume(Way::Event, 0, 1);
        device.join().unwrap();
    });
}

/// The control: without the fences there is an interleaving in which the one sleeps and the other does
/// not wake it. (It is asked for, not slept through: loom's report of a deadlock ends the process.)
#[test]
fn without_the_fences_a_wake_is_lost() {
    use std::sync::atomic::AtomicBool;
    static LOST: AtomicBool = AtomicBool::new(false);
    loom::model(|| {
        let direction = Arc::new(Direction::new(0));
        let consumer = Arc::clone(&direction);
        let consumer = thread::spawn(move || {
            consumer.wake.store(0, Ordering::Relaxed);
            consumer.index.load(Ordering::Acquire) == 0
        });
        handshake::publish(&direction.index, 1);
        let event = direction.wake.load(Ordering::Relaxed);
        let wakes = handshake::passes(event, 1, 0);
        let sleeps = consumer.join().unwrap();
        if sleeps && !wakes {
            LOST.store(true, Ordering::Relaxed);
        }
    });
    assert!(LOST.load(Ordering::Relaxed));
}
