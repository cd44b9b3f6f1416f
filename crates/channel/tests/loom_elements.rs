//! Every interleaving of queues that take, put back and wait for command elements.
//!
//! ```text
//! cargo test -p channel --features loom --test loom_elements
//! ```
//!
//! All of it is the code that runs, but for the channel, which is a thread that sleeps until its queue is woken. A lost wake shows as a
//! deadlock, an element that was lost or made as a wrong sum.
#![cfg(feature = "loom")]

mod bell;

use bell::EventFd;
use channel::elements::{Admission, Elements, Port, QueueElements, Share, Waits};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

/// A queue on its channel.
struct Queue {
    hold: QueueElements,
    bell: Arc<EventFd>,
}

impl Queue {
    fn new(adapter: &std::sync::Arc<Elements>, queue: u16, own: u16) -> Queue {
        let bell = Arc::new(EventFd::default());
        let rings = Arc::clone(&bell);
        let hold = QueueElements::new(adapter, queue, own, Box::new(move || rings.ring()));
        Queue { hold, bell }
    }

    /// One command, from the moment it is held to its end.
    fn command(&mut self, active: &AtomicU32, most: u32) {
        while let Admission::Wait(_) = self.hold.admit(|| 1) {
            self.bell.sleep();
        }
        assert!(active.fetch_add(1, Relaxed) < most, "more are active than there are elements");
        active.fetch_sub(1, Relaxed);
        self.hold.dismiss();
        self.hold.rest(Waits::default, 0);
    }
}

fn adapter(port: &std::sync::Arc<Port>, elements: u32) -> std::sync::Arc<Elements> {
    Elements::new(port, Share { elements, weight: 1 }, 2)
}

/// Two queues and one element, which each keeps at hand when it is idle.
#[test]
fn a_queue_that_waits_is_woken_by_the_one_that_gives_back() {
    loom::model(|| {
        let adapter = adapter(&Port::new(8), 1);
        let active = Arc::new(AtomicU32::new(0));
        let other = {
            let (mut queue, active) = (Queue::new(&adapter, 1, 1), Arc::clone(&active));
            thread::spawn(move || queue.command(&active, 1))
        };
        let mut queue = Queue::new(&adapter, 0, 1);
        queue.command(&active, 1);
        queue.command(&active, 1);
        other.join().unwrap();
        drop(queue);
        assert_eq!(adapter.active(), 0);
    });
}

/// Two adapters and the one element of their port.
#[test]
fn an_adapter_that_waits_is_woken_by_the_other() {
    loom::model(|| {
        let port = Port::new(1);
        let (one, two) = (adapter(&port, 1), adapter(&port, 1));
        let active = Arc::new(AtomicU32::new(0));
        let other = {
            let (mut queue, active) = (Queue::new(&two, 0, 1), Arc::clone(&active));
            thread::spawn(move || queue.command(&active, 1))
        };
        let mut queue = Queue::new(&one, 0, 1);
        queue.command(&active, 1);
        queue.command(&active, 1);
        other.join().unwrap();
    });
}

/// What a queue gives up when it stops goes to the one that waits.
#[test]
fn a_queue_that_stops_leaves_what_it_had() {
    loom::model(|| {
        let adapter = adapter(&Port::new(8), 1);
        let mut queue = Queue::new(&adapter, 0, 1);
        assert_eq!(queue.hold.admit(|| 1), Admission::Own);
        let other = {
            let mut queue = Queue::new(&adapter, 1, 1);
            thread::spawn(move || queue.command(&AtomicU32::new(0), 1))
        };
        queue.hold.dismiss();
        queue.hold.rest(Waits::default, 0);
        drop(queue);
        other.join().unwrap();
    });
}
