//! An RX queue inside its channel: buffers are taken when a frame needs them.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use channel::{Io, NO_PART, RunningQueue};
use memory::{IoBuf, clock};
use protocol::stats::QueueCounter;
use switch::{Egress, Offload, Piece, Reason, Scratch, Switch, View};
use vring::{Chain, Head, QueueError};

use crate::copy::{Place, Source};
use crate::counter_of;
use crate::network::{Pair, Parcel, Port};
use crate::replica::Replica;

/// Most buffers of a chain.
pub(crate) const SEGMENTS: usize = 1024;

/// The RX queue of a pair.
pub(crate) struct Receiver {
    pub(crate) replica: Rc<RefCell<Replica>>,
    pub(crate) port: Arc<Port>,
    pub(crate) pair: u16,
    header: usize,
    mergeable: bool,
    /// The frame that waits for buffers, before those in the inbox.
    waiting: Option<Box<Parcel>>,
    /// Its client was asked to say when it has buffers.
    armed: bool,
    scratch: Box<Scratch>,
    buffers: Buffers,
}

/// Buffers that were taken for a frame.
struct Buffers {
    heads: Vec<(Head, usize)>,
    bufs: Vec<IoBuf>,
    bytes: usize,
    chain: Box<[IoBuf]>,
}

/// What became of a frame, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrived,
    Lost(Reason),
    /// There are too few buffers, and so many parts of it have arrived.
    Waits(usize),
}

impl Receiver {
    pub(crate) fn new(
        replica: Rc<RefCell<Replica>>,
        port: Arc<Port>,
        pair: u16,
        (header, mergeable): (usize, bool),
        size: u16,
    ) -> Receiver {
        let waiting = port.pairs[usize::from(pair)].kept().take();
        Receiver {
            replica,
            port,
            pair,
            header,
            mergeable,
            waiting,
            armed: false,
            scratch: Box::default(),
            buffers: Buffers {
                heads: Vec::with_capacity(usize::from(size)),
                bufs: Vec::with_capacity(SEGMENTS),
                bytes: 0,
                chain: vec![IoBuf::EMPTY; SEGMENTS].into(),
            },
        }
    }

    /// The queue goes; what waits stays for its next channel.
    pub(crate) fn close(&mut self) {
        let waiting = self.waiting.take();
        *self.pair().kept() = waiting;
        self.pair().set_bell(None);
        self.replica.borrow_mut().leave(self.port.id, self.pair);
    }

    fn pair(&self) -> &Pair {
        &self.port.pairs[usize::from(self.pair)]
    }

    /// Buffers or frames may have come.
    pub(crate) fn look(&mut self, io: &mut Io, queue: &mut RunningQueue) -> Result<(), QueueError> {
        let replica = Rc::clone(&self.replica);
        let mut replica = replica.borrow_mut();
        let now_ns = clock::to_ns(clock::ticks());
        replica.catch_up(now_ns);
        self.drain(io, queue, &mut replica.switch, now_ns)
    }

    /// Takes in a frame from a queue of the same channel.
    pub(crate) fn take_in(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        switch: &mut Switch,
        now_ns: u64,
        frame: &Frame<'_>,
    ) -> Result<(), QueueError> {
        if !self.is_empty() {
            self.drain(io, queue, switch, now_ns)?;
        }
        let mut arrived = 0;
        if self.is_empty() {
            match self.deliver(io, queue, switch, now_ns, frame, 0)? {
                Fate::Waits(parts) => arrived = parts,
                fate => {
                    self.account(queue, fate, frame.view.len());
                    return Ok(());
                }
            }
        }
        match store(self.pair(), frame, arrived) {
            Ok(()) => self.drain(io, queue, switch, now_ns),
            Err(reason) => {
                queue.count(counter_of(reason), 1);
                Ok(())
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_none() && self.pair().inbox().is_none_or(|inbox| inbox.full.is_empty())
    }

    /// Delivers what waits, as far as there are buffers.
    fn drain(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        switch: &mut Switch,
        now_ns: u64,
    ) -> Result<(), QueueError> {
        self.give_back_old(io, queue);
        let port = Arc::clone(&self.port);
        let pair = &port.pairs[usize::from(self.pair)];
        let Some(inbox) = pair.inbox() else { return Ok(()) };
        let left = pair.left.swap(0, Relaxed);
        if left > 0 {
            queue.count(counter_of(Reason::PortDown), left);
        }
        loop {
            while let Some(mut parcel) = self.waiting.take().or_else(|| inbox.full.pop()) {
                let (view, bufs) = (parcel.view(), [parcel.memory]);
                let source = Source { bufs: &bufs, skip: 0 };
                let frame = Frame { view, source, offload: parcel.offload, egress: parcel.egress };
                let arrived = parcel.arrived;
                match self.deliver(io, queue, switch, now_ns, &frame, arrived)? {
                    Fate::Waits(arrived) => {
                        parcel.arrived = arrived;
                        self.waiting = Some(parcel);
                        break;
                    }
                    fate => {
                        self.account(queue, fate, parcel.len);
                        assert!(inbox.free.push(parcel).is_ok(), "it has room for all");
                    }
                }
            }
            if self.waiting.is_some() {
                // Who adds a frame need not ring: it is the client that is waited for.
                pair.rung.store(true, SeqCst);
                pair.starved.store(true, Relaxed);
                self.armed = true;
                if queue.resources.ring.enable_kicks_for_more() {
                    continue;
                }
                return Ok(());
            }
            pair.starved.store(false, Relaxed);
            pair.rung.store(false, SeqCst);
            if !inbox.full.is_empty() {
                continue;
            }
            if self.armed {
                self.armed = false;
                queue.resources.ring.disable_kicks();
            }
            return Ok(());
        }
    }

    /// Buffers that an earlier process took and did not give back: nobody knows what is in them.
    fn give_back_old(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        while let Some(head) = queue.resources.ring.resubmit_next() {
            queue.count(QueueCounter::Resubmitted, 1);
            io.note_taken(queue, head);
            io.settle(queue, head, NO_PART, 0);
        }
    }

    fn account(&self, queue: &RunningQueue, fate: Fate, bytes: usize) {
        match fate {
            Fate::Arrived => {
                queue.count(QueueCounter::RxFrames, 1);
                queue.count(QueueCounter::RxBytes, bytes as u64);
            }
            Fate::Lost(reason) => queue.count(counter_of(reason), 1),
            Fate::Waits(_) => {}
        }
    }

    /// Makes a frame into what the client takes, and puts it into buffers. So many parts of it have arrived before.
    fn deliver(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        switch: &mut Switch,
        now_ns: u64,
        frame: &Frame<'_>,
        arrived: usize,
    ) -> Result<Fate, QueueError> {
        let Receiver { scratch, buffers, header, mergeable, .. } = self;
        let Frame { view, source, offload, egress } = *frame;
        let pieces = switch.adapt(now_ns, egress, view, offload, scratch);
        let mut pieces = match pieces {
            Ok(pieces) => pieces,
            Err(reason) => return Ok(Fate::Lost(reason)),
        };
        let mut number = 0;
        while let Some(mut piece) = pieces.next() {
            if number >= arrived {
                let total = *header + piece.len();
                match buffers.gather(io, queue, total, *mergeable)? {
                    ControlFlow::Continue(()) => {}
                    ControlFlow::Break(None) => return Ok(Fate::Waits(number)),
                    ControlFlow::Break(Some(reason)) => {
                        switch.lost(egress.port, reason);
                        return Ok(Fate::Lost(reason));
                    }
                }
                buffers.fill(source, &mut piece, *header);
                buffers.give_back(io, queue, total);
            }
            number += 1;
        }
        switch.delivered(egress.port, view.len());
        Ok(Fate::Arrived)
    }
}

/// A frame on its way to a destination.
pub(crate) struct Frame<'a> {
    pub(crate) view: View<'a>,
    pub(crate) source: Source<'a>,
    pub(crate) offload: Offload,
    pub(crate) egress: Egress,
}

/// Puts a frame into an inbox, of which so many parts have arrived.
pub(crate) fn store(pair: &Pair, frame: &Frame<'_>, arrived: usize) -> Result<(), Reason> {
    let inbox = pair.inbox().ok_or(Reason::PortDown)?;
    let Some(mut parcel) = inbox.free.pop() else {
        let starved = pair.starved.load(Relaxed);
        return Err(if starved { Reason::RxNoBuffer } else { Reason::FullRing });
    };
    parcel.pack(&frame.view, frame.source);
    (parcel.offload, parcel.egress) = (frame.offload, frame.egress);
    parcel.arrived = arrived;
    assert!(inbox.full.push(parcel).is_ok(), "it has room for all");
    Ok(())
}

impl Buffers {
    /// Takes as many buffers as a frame of so many bytes needs. Without them all stay in the ring: none is `None`, and there will be none is a reason.
    fn gather(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        total: usize,
        mergeable: bool,
    ) -> Result<ControlFlow<Option<Reason>>, QueueError> {
        self.heads.clear();
        self.bufs.clear();
        self.bytes = 0;
        while self.bytes < total {
            let ring = &mut queue.resources.ring;
            let enough = if mergeable { usize::from(ring.size()) } else { 1 };
            if self.heads.len() == enough {
                self.undo(queue);
                return Ok(ControlFlow::Break(Some(Reason::RxBufferTooSmall)));
            }
            let head = match next_head(queue) {
                Ok(head) => head,
                Err(error) => {
                    self.undo(queue);
                    return Err(error);
                }
            };
            let Some(head) = head else {
                self.undo(queue);
                return Ok(ControlFlow::Break(None));
            };
            let mut chain = Chain::new(&mut self.chain);
            let walked = queue.resources.ring.chain(head, &mut chain);
            let (from, to) = (chain.readable, chain.total);
            if walked.is_err() {
                queue.count(QueueCounter::BadChains, 1);
                self.heads.push((head, 0));
                self.heads.iter_mut().for_each(|(_, bytes)| *bytes = 0);
                self.give_back(io, queue, 0);
                return Ok(ControlFlow::Break(Some(Reason::GuestMemory)));
            }
            let bytes = usize::try_from(chain.writable_bytes).unwrap_or(usize::MAX);
            self.bufs.extend_from_slice(&self.chain[from..to]);
            self.heads.push((head, bytes));
            self.bytes = self.bytes.saturating_add(bytes);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// They stay in the ring.
    fn undo(&mut self, queue: &mut RunningQueue) {
        while let Some((head, _)) = self.heads.pop() {
            queue.resources.ring.undo_pop(head);
        }
    }

    /// Writes a frame behind its header, which is written last.
    fn fill(&self, source: Source<'_>, piece: &mut Piece<'_>, header: usize) {
        let range = piece.rest.clone();
        let mut rest = Place::new(&self.bufs, header + piece.head().len());
        if piece.wants_sum() {
            piece.fill(|sum| source.copy(range, &mut rest, Some(sum)));
        } else {
            source.copy(range, &mut rest, None);
        }
        piece.header.num_buffers = self.heads.len() as u16;
        let mut place = Place::new(&self.bufs, 0);
        place.write(&piece.header.write()[..header]);
        place.write(piece.head());
    }

    /// Gives the buffers back, in their order, with so many bytes in them.
    fn give_back(&mut self, io: &mut Io, queue: &mut RunningQueue, total: usize) {
        if queue.resources.ring.is_logged() {
            let mut left = total;
            for buf in &self.bufs {
                let now = left.min(buf.len());
                queue.resources.ring.mark_written(buf.slice(0, now));
                left -= now;
            }
        }
        let mut left = total;
        for (head, bytes) in self.heads.drain(..) {
            let written = left.min(bytes);
            left -= written;
            io.note_taken(queue, head);
            // A frame is far shorter than 4 GiB.
            io.settle(queue, head, NO_PART, written as u32);
        }
    }
}

/// The next buffer of the ring.
fn next_head(queue: &mut RunningQueue) -> Result<Option<Head>, QueueError> {
    let ring = &mut queue.resources.ring;
    match ring.pop()? {
        None if ring.pending()? > 0 => ring.pop(),
        head => Ok(head),
    }
}
