//! An RX queue inside its channel: buffers are taken when a frame needs them.

use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use channel::{Io, RunningQueue};
use memory::{IoBuf, clock};
use protocol::stats::QueueCounter;
use switch::{Reason, Scratch, Switch};
use vring::{Chain, Head, QueueError};

use crate::copy::{write_piece, write_whole};
use crate::counter_of;
use crate::trace::{Decision, Watch, unless};
use crate::waiting::{Around, Frame, Waiting, store};

/// Most buffers of a chain.
pub(crate) const SEGMENTS: usize = 1024;

/// So long a client whose buffers break the rules gets no frames: what they are is then looked at for a fiftieth of the time at most.
const BROKEN_NS: u64 = 100_000;

/// The RX queue of a pair.
pub(crate) struct Receiver {
    pub(crate) waiting: Waiting,
    header: usize,
    mergeable: bool,
    /// Its client was asked to say when it has buffers.
    armed: bool,
    scratch: Box<Scratch>,
    buffers: Buffers,
}

/// Buffers that were taken for a frame.
struct Buffers {
    heads: Vec<(Head, usize)>,
    /// The first `count` of these, and then room for those of one more chain.
    places: Vec<IoBuf>,
    count: usize,
    bytes: usize,
    /// When a chain was found that breaks the rules, in ticks. To be followed for that can take as long as twenty frames, so no other one is for [`BROKEN_NS`].
    broke: Option<u64>,
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
    pub(crate) fn new(waiting: Waiting, (header, mergeable): (usize, bool), size: u16) -> Receiver {
        Receiver {
            waiting,
            header,
            mergeable,
            armed: false,
            scratch: Box::default(),
            buffers: Buffers {
                heads: Vec::with_capacity(usize::from(size)),
                places: vec![IoBuf::EMPTY; 2 * SEGMENTS],
                count: 0,
                bytes: 0,
                broke: None,
            },
        }
    }

    /// Buffers or frames may have come.
    pub(crate) fn look(&mut self, io: &mut Io, queue: &mut RunningQueue) -> Result<(), QueueError> {
        let replica = Rc::clone(&self.waiting.replica);
        let mut replica = replica.borrow_mut();
        replica.catch_up();
        let tracer = replica.tracer();
        let switch = &mut replica.switch;
        unless!(tracer, watch => self.drain(io, queue, &mut Around { switch, watch }))
    }

    /// Takes in a frame from a queue of the same channel, and counts what becomes of it. An error is one of the ring.
    #[inline]
    pub(crate) fn take_in<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        around: &mut Around<'_, W>,
        frame: &Frame<'_>,
    ) -> Result<(), QueueError> {
        let tried = match self.waiting.is_empty() {
            true => self.deliver(io, queue, around, frame, 0),
            false => self.deliver_behind(io, queue, around, frame),
        };
        match tried {
            Ok(Fate::Arrived) => {
                self.account(queue, around, frame, Fate::Arrived);
                Ok(())
            }
            tried => self.keep(io, queue, around, frame, tried),
        }
    }

    /// Delivers a frame behind those that wait, if there are buffers for all of them.
    #[cold]
    fn deliver_behind<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        around: &mut Around<'_, W>,
        frame: &Frame<'_>,
    ) -> Result<Fate, QueueError> {
        self.drain(io, queue, around)?;
        match self.waiting.is_empty() {
            true => self.deliver(io, queue, around, frame, 0),
            false => Ok(Fate::Waits(0)),
        }
    }

    /// A frame that has not arrived is lost, or waits.
    #[cold]
    fn keep<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        around: &mut Around<'_, W>,
        frame: &Frame<'_>,
        tried: Result<Fate, QueueError>,
    ) -> Result<(), QueueError> {
        let arrived = match tried {
            Ok(Fate::Waits(parts)) => parts,
            Ok(fate) => {
                self.account(queue, around, frame, fate);
                return Ok(());
            }
            Err(error) => {
                around.switch.lost(frame.egress.port, Reason::GuestMemory);
                self.account(queue, around, frame, Fate::Lost(Reason::GuestMemory));
                return Err(error);
            }
        };
        match store(self.waiting.pair(), around, frame, arrived) {
            Ok(()) => self.drain(io, queue, around),
            Err(reason) => {
                around.switch.lost(frame.egress.port, reason);
                self.account(queue, around, frame, Fate::Lost(reason));
                Ok(())
            }
        }
    }

    /// Delivers what waits, as far as there are buffers.
    fn drain<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        around: &mut Around<'_, W>,
    ) -> Result<(), QueueError> {
        let drained = self.deliver_all(io, queue, around);
        self.waiting.looked();
        drained
    }

    fn deliver_all<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        around: &mut Around<'_, W>,
    ) -> Result<(), QueueError> {
        self.give_back_old(io, queue);
        self.waiting.count_left(queue);
        loop {
            let mut starved = false;
            while let Some(parcel) = self.waiting.next() {
                let fate = self.deliver(io, queue, around, &parcel.frame(), parcel.arrived);
                match fate {
                    Ok(Fate::Waits(arrived)) => {
                        self.waiting.put_back(parcel, arrived);
                        starved = true;
                        break;
                    }
                    Ok(fate) => self.account(queue, around, &parcel.frame(), fate),
                    Err(error) => {
                        // It is lost with its client.
                        let arrived = parcel.arrived;
                        self.waiting.put_back(parcel, arrived);
                        return Err(error);
                    }
                }
                self.waiting.free(parcel);
            }
            let pair = self.waiting.pair();
            // Who adds a frame for one that is starved need not ring: it is the client that is waited for.
            pair.rung.store(starved, SeqCst);
            pair.starved.store(starved, Relaxed);
            if starved {
                self.armed = true;
                if io.arm_for_more(queue) {
                    continue;
                }
                return Ok(());
            }
            if !self.waiting.is_empty() {
                continue;
            }
            if self.armed {
                self.armed = false;
                queue.disarm();
            }
            return Ok(());
        }
    }

    /// Buffers that an earlier process took and did not give back: nobody knows what is in them.
    fn give_back_old(&mut self, io: &mut Io, queue: &mut RunningQueue) {
        while let Some(head) = queue.resources.ring.resubmit_next() {
            queue.count(QueueCounter::Resubmitted, 1);
            io.settle_taken(queue, head, 0);
        }
    }

    fn account<W: Watch>(
        &self,
        queue: &RunningQueue,
        around: &Around<'_, W>,
        frame: &Frame<'_>,
        fate: Fate,
    ) {
        match fate {
            Fate::Arrived => {
                queue.count(QueueCounter::RxFrames, 1);
                queue.count(QueueCounter::RxBytes, frame.view.len() as u64);
                around.note(frame, Decision::Delivered);
            }
            Fate::Lost(reason) => {
                queue.count(counter_of(reason), 1);
                around.note(frame, Decision::Lost(reason));
            }
            Fate::Waits(_) => {}
        }
    }

    /// Makes a frame into what the client takes, and puts it into buffers. So many parts of it have arrived before.
    #[inline]
    fn deliver<W: Watch>(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        Around { switch, .. }: &mut Around<'_, W>,
        frame: &Frame<'_>,
        arrived: usize,
    ) -> Result<Fate, QueueError> {
        if arrived == 0
            && let Some(mut its) = switch.as_it_came(frame.egress, &frame.view, &frame.offload)
        {
            let Frame { view, source, egress, .. } = frame;
            let header = self.header;
            let put = self.buffers.put(
                io,
                queue,
                (header + view.len(), self.mergeable),
                |bufs, count| {
                    its.num_buffers = count;
                    write_whole(*source, &its, view, bufs, header);
                },
            );
            match put? {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(None) => return Ok(Fate::Waits(0)),
                ControlFlow::Break(Some(reason)) => {
                    switch.lost(egress.port, reason);
                    return Ok(Fate::Lost(reason));
                }
            }
            switch.delivered(egress.port, view.len());
            return Ok(Fate::Arrived);
        }
        self.deliver_pieces(io, queue, switch, frame, arrived)
    }

    /// The same of a frame that is not delivered as it came, or not at once.
    #[inline(never)]
    fn deliver_pieces(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        switch: &mut Switch,
        frame: &Frame<'_>,
        arrived: usize,
    ) -> Result<Fate, QueueError> {
        let Receiver { scratch, buffers, header, mergeable, .. } = self;
        let Frame { view, source, offload, egress, .. } = *frame;
        let pieces = switch.adapt(egress, view, offload, scratch);
        let mut pieces = match pieces {
            Ok(pieces) => pieces,
            Err(reason) => return Ok(Fate::Lost(reason)),
        };
        let mut number = arrived;
        pieces.skip(arrived);
        while let Some(mut piece) = pieces.next() {
            let wanted = (*header + piece.len(), *mergeable);
            let put = buffers.put(io, queue, wanted, |bufs, count| {
                piece.header.num_buffers = count;
                write_piece(source, &mut piece, bufs, *header);
            });
            match put? {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(None) => return Ok(Fate::Waits(number)),
                ControlFlow::Break(Some(reason)) => {
                    switch.lost(egress.port, reason);
                    return Ok(Fate::Lost(reason));
                }
            }
            number += 1;
        }
        switch.delivered(egress.port, view.len());
        Ok(Fate::Arrived)
    }
}

impl Buffers {
    /// Takes as many as so many bytes need, has them written, of which it is told how many heads they have, and gives them back. Where there are too few
    /// all stay in the ring: none now is `None`, and there will be none is a reason.
    #[inline(always)] // As what follows: two places, and a call for each frame would cost a tenth of it.
    fn put(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        (total, mergeable): (usize, bool),
        write: impl FnOnce(&[IoBuf], u16),
    ) -> Result<ControlFlow<Option<Reason>>, QueueError> {
        let gathered = self.gather(io, queue, total, mergeable)?;
        if gathered.is_continue() {
            write(&self.places[..self.count], self.heads.len() as u16);
            self.give_back(io, queue, total);
        }
        Ok(gathered)
    }

    #[inline(always)]
    fn gather(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        total: usize,
        mergeable: bool,
    ) -> Result<ControlFlow<Option<Reason>>, QueueError> {
        self.heads.clear();
        (self.count, self.bytes) = (0, 0);
        if self.broke.is_some_and(|at| io.now().wrapping_sub(at) < clock::from_ns(BROKEN_NS)) {
            return Ok(ControlFlow::Break(Some(Reason::GuestMemory)));
        }
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
            if self.places.len() < self.count + SEGMENTS {
                self.places.resize(self.count + SEGMENTS, IoBuf::EMPTY);
            }
            let mut chain = Chain::new(&mut self.places[self.count..][..SEGMENTS]);
            let walked = queue.resources.ring.chain(head, &mut chain);
            let (readable, found) = (chain.readable, chain.total);
            if walked.is_err() {
                return Ok(ControlFlow::Break(Some(self.refuse(io, queue, head))));
            }
            let bytes = usize::try_from(chain.writable_bytes).unwrap_or(usize::MAX);
            if readable > 0 {
                // Nothing is written into those.
                self.places[self.count..][..found].rotate_left(readable);
            }
            self.count += found - readable;
            self.heads.push((head, bytes));
            self.bytes = self.bytes.saturating_add(bytes);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The chain of the last one breaks the rules: all go back with nothing in them.
    #[cold]
    fn refuse(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) -> Reason {
        queue.count(QueueCounter::BadChains, 1);
        self.broke = Some(io.now());
        self.heads.push((head, 0));
        self.heads.iter_mut().for_each(|(_, bytes)| *bytes = 0);
        self.give_back(io, queue, 0);
        Reason::GuestMemory
    }

    /// They stay in the ring.
    #[inline(never)]
    fn undo(&mut self, queue: &mut RunningQueue) {
        while let Some((head, _)) = self.heads.pop() {
            queue.resources.ring.undo_pop(head);
        }
    }

    /// Gives the buffers back, in their order, with so many bytes in them.
    #[inline(always)]
    fn give_back(&mut self, io: &mut Io, queue: &mut RunningQueue, total: usize) {
        if queue.resources.ring.is_logged() {
            self.log(queue, total);
        }
        let mut left = total;
        for &(head, bytes) in &self.heads {
            let written = left.min(bytes);
            left -= written;
            // A frame is far shorter than 4 GiB.
            io.settle_taken(queue, head, written as u32);
        }
    }

    /// Notes what was written, for who copies the client's memory meanwhile.
    #[cold]
    fn log(&self, queue: &mut RunningQueue, total: usize) {
        let mut left = total;
        for buf in &self.places[..self.count] {
            let now = left.min(buf.len());
            queue.resources.ring.mark_written(buf.slice(0, now));
            left -= now;
        }
    }
}

/// The next buffer of the ring.
#[inline(always)]
fn next_head(queue: &mut RunningQueue) -> Result<Option<Head>, QueueError> {
    let ring = &mut queue.resources.ring;
    match ring.pop()? {
        None if ring.pending()? > 0 => ring.pop(),
        head => Ok(head),
    }
}
