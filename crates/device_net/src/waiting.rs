//! What waits for a queue that receives, in its channel: the frame at hand, and those in its inbox.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use channel::{Io, RunningQueue};
use switch::{Egress, Offload, PortId, Reason, Switch, View};

use crate::copy::Source;
use crate::counter_of;
use crate::network::{Inbox, Pair, Parcel, Port};
use crate::replica::Replica;
use crate::trace::{Decision, Event, Watch};

/// A frame on its way to a destination.
pub(crate) struct Frame<'a> {
    /// The port that it came by.
    pub(crate) from: PortId,
    pub(crate) view: View<'a>,
    pub(crate) source: Source<'a>,
    pub(crate) offload: Offload,
    pub(crate) egress: Egress,
    /// Its number, while frames are traced.
    pub(crate) number: u64,
}

/// What a batch of frames is handled with.
pub(crate) struct Around<'a, W> {
    pub(crate) switch: &'a mut Switch,
    /// Who watches.
    pub(crate) watch: W,
}

impl<W: Watch> Around<'_, W> {
    /// Tells who watches what becomes of a frame at its destination.
    pub(crate) fn note(&self, frame: &Frame<'_>, decision: Decision) {
        let Frame { from, view, egress, number, .. } = frame;
        self.watch.note(|| Event {
            number: *number,
            from: *from,
            to: Some(egress.port),
            vid: self.switch.leaves_in(*egress, view),
            head: view.head(),
            len: view.len(),
            decision,
        });
    }
}

/// What waits for a queue that is on this channel.
pub(crate) struct Waiting {
    pub(crate) replica: Rc<RefCell<Replica>>,
    pub(crate) port: Arc<Port>,
    number: u16,
    inbox: Arc<Inbox>,
    /// Before those in the inbox.
    at_hand: Option<Box<Parcel>>,
    /// Something was taken since it looked last.
    took: Cell<bool>,
}

impl Waiting {
    /// The channel has the receiving queue of that pair from now on.
    pub(crate) fn open(
        replica: Rc<RefCell<Replica>>,
        port: Arc<Port>,
        number: u16,
        io: &Io,
    ) -> Waiting {
        let pair = &port.pairs[usize::from(number)];
        let inbox = pair.inbox().expect("an inbox was made for the queue");
        let (inbox, at_hand) = (Arc::clone(inbox), pair.kept().take());
        pair.opened(io.wake());
        replica.borrow_mut().enter(port.id, number, io.opening());
        Waiting { replica, port, number, inbox, at_hand, took: Cell::new(false) }
    }

    /// It has the queue no more; what waits stays for the next one.
    pub(crate) fn close(&mut self) {
        let at_hand = self.at_hand.take();
        *self.pair().kept() = at_hand;
        self.pair().set_bell(None);
        self.replica.borrow_mut().leave(self.port.id, self.number);
    }

    /// The number of the pair.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    pub(crate) fn pair(&self) -> &Pair {
        &self.port.pairs[usize::from(self.number)]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at_hand.is_none() && self.inbox.full.is_empty()
    }

    /// The oldest.
    pub(crate) fn next(&mut self) -> Option<Box<Parcel>> {
        self.at_hand.take().or_else(|| self.inbox.full.pop())
    }

    /// It goes on waiting, and so many of its parts have arrived.
    pub(crate) fn put_back(&mut self, mut parcel: Box<Parcel>, arrived: usize) {
        parcel.arrived = arrived;
        self.at_hand = Some(parcel);
    }

    /// It waits no more.
    pub(crate) fn free(&self, parcel: Box<Parcel>) {
        assert!(self.inbox.free.push(parcel).is_ok(), "it has room for all");
        self.took.set(true);
    }

    /// It has looked into its inbox, and taken what it can: who waits for room looks again.
    pub(crate) fn looked(&self) {
        let pair = self.pair();
        pair.goes_on(self.took.take());
        pair.waiters.wake(|place| self.port.ring_sender(place));
    }

    /// Counts frames that came from here and waited for somebody who has gone.
    pub(crate) fn count_left(&self, queue: &RunningQueue) {
        let left = self.pair().left.swap(0, Relaxed);
        if left > 0 {
            queue.count(counter_of(Reason::PortDown), left);
        }
        let copies = self.pair().left_copies.swap(0, Relaxed);
        if copies > 0 {
            queue.count(counter_of(Reason::MirrorCopy), copies);
        }
    }
}

/// Puts a frame into an inbox, of which so many parts have arrived.
pub(crate) fn store<W: Watch>(
    pair: &Pair,
    around: &Around<'_, W>,
    frame: &Frame<'_>,
    arrived: usize,
) -> Result<(), Reason> {
    put(pair, frame, arrived, |parcel| {
        if W::ON {
            parcel.number = frame.number;
            around.note(frame, Decision::Waits);
        }
    })
}

/// The same, with something to be done to the parcel before somebody else may have it.
pub(crate) fn put(
    pair: &Pair,
    frame: &Frame<'_>,
    arrived: usize,
    seal: impl FnOnce(&mut Parcel),
) -> Result<(), Reason> {
    let inbox = pair.inbox().ok_or(Reason::PortDown)?;
    let Some(mut parcel) = inbox.free.pop() else {
        let starved = pair.starved.load(Relaxed);
        return Err(if starved { Reason::RxNoBuffer } else { Reason::FullRing });
    };
    parcel.pack(frame);
    parcel.arrived = arrived;
    seal(&mut parcel);
    assert!(inbox.full.push(parcel).is_ok(), "it has room for all");
    Ok(())
}
