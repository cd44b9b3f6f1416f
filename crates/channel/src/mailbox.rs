//! Messages to a channel, and their answers. Off the I/O path: a message is a start, a stop, or a change.
//!
//! [`Mailbox`] is a list under a lock with a bell: whoever posts pushes first and rings then, so a channel that was woken by the bell, or
//! is awake anyway and looks because the bell rang, finds every message that was posted before. [`OneShot`] carries one answer back.
//! `tests/loom.rs` checks both, and the round trip of a queue, in all interleavings.

use std::sync::Arc;

use crate::sync::{Condvar, Mutex};

/// What wakes the receiver.
pub trait Bell {
    /// Wakes the receiver, now or when it next goes to sleep.
    fn ring(&self);
}

/// A list of messages for one receiver.
#[derive(Debug)]
pub struct Mailbox<T, B> {
    messages: Mutex<Vec<T>>,
    bell: B,
}

impl<T, B: Bell> Mailbox<T, B> {
    /// An empty one.
    pub fn new(bell: B) -> Mailbox<T, B> {
        Mailbox { messages: Mutex::new(Vec::new()), bell }
    }

    /// Adds a message and wakes the receiver. Any thread.
    pub fn post(&self, message: T) {
        self.messages.lock().expect("no panic while the lock is held").push(message);
        self.bell.ring();
    }

    /// Takes all messages, oldest first. The receiver's thread.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.messages.lock().expect("no panic while the lock is held"))
    }

    /// What wakes the receiver.
    pub fn bell(&self) -> &B {
        &self.bell
    }
}

struct Answer<T> {
    value: Option<T>,
    /// The sender is gone.
    closed: bool,
    /// Who takes the answer instead of a thread that waits.
    then: Option<Box<dyn FnOnce(Option<T>) + Send>>,
}

impl<T: std::fmt::Debug> std::fmt::Debug for Answer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("value", &self.value).finish_non_exhaustive()
    }
}

type Shared<T> = Arc<(Mutex<Answer<T>>, Condvar)>;

/// The sender of one answer. Dropped unused, the receiver learns that none will come.
#[derive(Debug)]
pub struct OneShot<T>(Shared<T>);

/// The receiver of one answer.
#[derive(Debug)]
pub struct Pending<T>(Shared<T>);

/// A pair for one answer.
#[must_use]
pub fn one_shot<T>() -> (OneShot<T>, Pending<T>) {
    let answer = Answer { value: None, closed: false, then: None };
    let shared = Arc::new((Mutex::new(answer), Condvar::new()));
    (OneShot(Arc::clone(&shared)), Pending(shared))
}

impl<T> OneShot<T> {
    /// Gives the answer.
    pub fn send(self, value: T) {
        self.0.0.lock().expect("no panic while the lock is held").value = Some(value);
        // Dropping `self` wakes the receiver.
    }
}

impl<T> Drop for OneShot<T> {
    fn drop(&mut self) {
        let mut answer = self.0.0.lock().expect("no panic while the lock is held");
        answer.closed = true;
        // In a simulation nobody sleeps for it.
        #[cfg(not(feature = "sim"))]
        self.0.1.notify_one();
        if let Some(then) = answer.then.take() {
            let value = answer.value.take();
            // It may do anything but wait; not under the lock.
            drop(answer);
            then(value);
        }
    }
}

impl<T> Pending<T> {
    /// Waits for the answer; `None` when the sender went away without one.
    #[must_use]
    pub fn wait(self) -> Option<T> {
        let mut answer = self.0.0.lock().expect("no panic while the lock is held");
        while !answer.closed {
            #[cfg(not(feature = "sim"))]
            {
                answer = self.0.1.wait(answer).expect("no panic while the lock is held");
            }
            #[cfg(feature = "sim")]
            {
                drop(answer);
                memory::sim::others();
                answer = self.0.0.lock().expect("no panic while the lock is held");
            }
        }
        answer.value.take()
    }

    /// Hands the answer to `take` instead, once: on the thread that answers, or on this one if the answer is there already. It must
    /// not wait.
    pub fn then(self, take: impl FnOnce(Option<T>) + Send + 'static) {
        let mut answer = self.0.0.lock().expect("no panic while the lock is held");
        if answer.closed {
            let value = answer.value.take();
            drop(answer);
            take(value);
        } else {
            answer.then = Some(Box::new(take));
        }
    }
}
