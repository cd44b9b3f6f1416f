//! Every interleaving of senders that wait for room with the receiver that makes it.
//!
//! ```text
//! cargo test -p channel --features loom --test loom_room
//! ```
//!
//! [`Waiters`] is the code that runs. The inbox is a number of free places, and what wakes a sender a model of its channel's bell. A lost wake shows as a deadlock.
#![cfg(feature = "loom")]

mod bell;

use bell::EventFd;
use channel::room::Waiters;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use loom::thread;

/// An inbox of one place, with those that wait for it.
struct Inbox {
    free: AtomicU32,
    full: AtomicU32,
    /// The receiver says that it takes nothing for now: who waits is to know.
    starved: AtomicU32,
    waiters: Waiters,
    bells: [EventFd; 2],
    /// That of the receiver.
    bell: EventFd,
}

fn take_one(count: &AtomicU32) -> bool {
    count.fetch_update(AcqRel, Acquire, |count| count.checked_sub(1)).is_ok()
}

impl Inbox {
    fn new() -> Arc<Inbox> {
        Arc::new(Inbox {
            free: AtomicU32::new(1),
            full: AtomicU32::new(0),
            starved: AtomicU32::new(0),
            waiters: Waiters::new(),
            bells: [EventFd::default(), EventFd::default()],
            bell: EventFd::default(),
        })
    }

    /// Puts a frame in, and waits for room until there is some; or until it hears that nothing is taken.
    fn send(&self, place: u32) -> bool {
        loop {
            if take_one(&self.free) {
                break;
            }
            self.waiters.wait(place);
            if take_one(&self.free) {
                break;
            }
            if self.starved.load(Relaxed) == 1 {
                return false;
            }
            self.bells[place as usize].sleep();
        }
        self.full.fetch_add(1, AcqRel);
        self.bell.ring();
        true
    }

    /// Takes all there is.
    fn receive(&self) -> u32 {
        let mut taken = 0;
        while take_one(&self.full) {
            self.free.fetch_add(1, AcqRel);
            taken += 1;
        }
        self.waiters.wake(|place| self.bells[place as usize].ring());
        taken
    }
}

#[test]
fn a_sender_that_waits_is_woken_when_there_is_room() {
    loom::model(|| {
        let inbox = Inbox::new();
        let theirs = Arc::clone(&inbox);
        let sender = thread::spawn(move || (0..2).for_each(|_| assert!(theirs.send(0))));
        let mut taken = 0;
        while taken < 2 {
            inbox.bell.sleep();
            taken += inbox.receive();
        }
        sender.join().unwrap();
    });
}

#[test]
fn two_senders_and_one_place() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let inbox = Inbox::new();
        let senders = [0, 1].map(|place| {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || assert!(inbox.send(place)))
        });
        let mut taken = 0;
        while taken < 2 {
            inbox.bell.sleep();
            taken += inbox.receive();
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

/// A receiver that takes nothing says so, and who waits hears it: nobody sleeps for somebody who waits himself.
#[test]
fn who_waits_hears_that_nothing_is_taken() {
    loom::model(|| {
        let inbox = Inbox::new();
        let theirs = Arc::clone(&inbox);
        let sender = thread::spawn(move || {
            assert!(theirs.send(0));
            assert!(!theirs.send(0));
        });
        inbox.bell.sleep();
        inbox.starved.store(1, Relaxed);
        inbox.waiters.wake(|place| inbox.bells[place as usize].ring());
        sender.join().unwrap();
    });
}
