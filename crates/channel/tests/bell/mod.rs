//! A model of an eventfd on which a channel sleeps: a wake is kept until it is taken.

use loom::sync::{Condvar, Mutex};

#[derive(Default)]
pub(crate) struct EventFd {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl EventFd {
    pub(crate) fn sleep(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.changed.wait(rung).unwrap();
        }
        *rung = false;
    }

    pub(crate) fn ring(&self) {
        *self.rung.lock().unwrap() = true;
        self.changed.notify_one();
    }
}
