//! A queue of a block device inside its channel: judge, ask the volume, answer.

use std::sync::Arc;

use block::{IoError, LaneId, OpKind, Outcome, Tag, Volume};
use channel::{
    After, BadChain, Handler, Io, NO_PART, Never, Opened, QueueResources, RunningQueue, Sweep,
    Walked,
};
use memory::IoBuf;
use protocol::stats::{FlightKind, QueueCounter};
use vring::{Head, QueueError};

use crate::{Action, Chain, Reject, Shape, Status, parse};

/// What is behind a queue of a block device.
#[derive(Clone)]
pub struct Behind {
    /// The disk that the client sees.
    pub shape: Arc<Shape>,
    /// What its data is in.
    pub volume: Arc<dyn Volume>,
}

impl std::fmt::Debug for Behind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Behind").field("shape", &self.shape).finish_non_exhaustive()
    }
}

/// The handler of a block device's queues.
#[derive(Debug)]
pub struct BlkHandler {
    shape: Arc<Shape>,
    lane: LaneId,
}

impl Handler for BlkHandler {
    type Device = Behind;
    type Shared = ();
    type Message = Never;
    type Scope = Never;

    fn open(
        Behind { shape, volume }: Behind,
        (): &mut (),
        io: &mut Io,
        _: &QueueResources,
    ) -> Result<Opened<BlkHandler>, String> {
        let lane = io.lanes.acquire(&volume, &mut io.ring).map_err(|error| error.to_string())?;
        let handler = BlkHandler { shape, lane };
        Ok(Opened { rereads: true, ..Opened::of(handler) })
    }

    fn close(&mut self, io: &mut Io) {
        io.lanes.release(self.lane, &mut io.ring);
    }

    fn lane_of(&self, _: Head) -> Option<LaneId> {
        Some(self.lane)
    }

    #[inline]
    fn begin(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, walked: Walked) {
        self.judge(io, queue, head, walked, None);
    }

    /// A guest that has changed its request meanwhile pays for what it asks for now.
    fn begin_again(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, walked: Walked) {
        let command = queue.command(head);
        let before = Action::Submit { op: command.op, offset: command.offset, len: command.len };
        self.judge(io, queue, head, walked, Some(before));
    }

    /// Where the chain's end is known, the last writable byte gets the status.
    #[cold]
    fn begin_bad(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, bad: BadChain) {
        let command = &mut queue.resources.commands[usize::from(head.0)];
        let mut status = IoBuf::EMPTY;
        if bad.error.has_buffers() && bad.total > bad.readable {
            let last = command.all(&mut io.lists)[bad.total - 1];
            if !last.is_empty() {
                status = last.slice(last.len() - 1, 1);
            }
        }
        command.status = status;
        self.reject(io, queue, head, Reject::BadChain);
    }

    fn completed(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, outcome: Outcome) {
        match outcome {
            Outcome::Done(result) => self.done(io, queue, head, result),
            Outcome::Again { done } => {
                queue.count(QueueCounter::Rounds, 1);
                // It fits: see the field.
                queue.command(head).done = done as u32;
                self.submit(io, queue, head);
            }
        }
    }

    fn try_again(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) {
        self.submit(io, queue, head);
    }

    fn message(
        &mut self,
        _: &mut Io,
        _: &mut RunningQueue,
        message: Never,
    ) -> Result<Option<After<Never>>, QueueError> {
        match message {}
    }

    fn concerns(&self, scope: &Never) -> bool {
        match *scope {}
    }

    fn abort(
        &mut self,
        _: &mut Io,
        _: &mut RunningQueue,
        scope: &Never,
        _: &mut Sweep,
        _: &mut Vec<Tag>,
    ) -> u32 {
        match *scope {}
    }
}

impl BlkHandler {
    /// Judges a request whose chain was read, and does it. `before`: what it was when somebody let it through.
    #[inline(always)] // Twice, and for the first time there is nothing to compare with.
    fn judge(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        walked: Walked,
        before: Option<Action>,
    ) {
        let command = &mut queue.resources.commands[usize::from(head.0)];
        let all = command.all(&mut io.lists);
        // The slot itself is the usual place; its length is known.
        let bufs = &mut all[..walked.total];
        let Walked { readable, readable_bytes, writable_bytes, .. } = walked;
        let mut chain = Chain { bufs, readable, readable_bytes, writable_bytes };
        let parsed = parse(&self.shape, &mut chain);
        command.status = parsed.status;
        // At most 1032 segments, so both fit.
        command.first = parsed.first as u16;
        command.end = parsed.end as u16;
        match parsed.action {
            Action::Submit { op, offset, len } => {
                (command.op, command.offset, command.len) = (op, offset, len);
                if before.is_some_and(|before| before != parsed.action) {
                    command.let_through_by_nobody();
                }
                self.submit(io, queue, head);
            }
            Action::GetId => self.get_id(io, queue, head),
            Action::Reject(reject) => self.reject(io, queue, head, reject),
        }
    }

    /// Hands a judged command to its lane.
    #[inline]
    fn submit(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) {
        if let Some(result) = io.submit(queue, head, self.lane, None) {
            self.done(io, queue, head, result);
        }
    }

    #[cold]
    fn reject(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, reject: Reject) {
        let counter = match reject {
            Reject::BadChain => QueueCounter::BadChains,
            Reject::Unsupported => QueueCounter::Unsupported,
            Reject::OutOfRange => QueueCounter::OutOfRange,
            Reject::ReadOnly => QueueCounter::Errors,
        };
        if counter != QueueCounter::Errors {
            queue.count(counter, 1);
        }
        let place = queue.command(head).status;
        end(io, queue, (head, place), reject.status(), 0);
    }

    #[cold]
    fn get_id(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) {
        let serial = *self.shape.serial();
        let command = &queue.resources.commands[usize::from(head.0)];
        let mut left = &serial[..];
        for buf in command.data(&mut io.lists) {
            let (now, later) = left.split_at(buf.len().min(left.len()));
            buf.write(0, now);
            left = later;
        }
        queue.count(QueueCounter::GetIds, 1);
        log_data(io, queue, head);
        let place = queue.command(head).status;
        end(io, queue, (head, place), Status::Ok, serial.len() as u32);
    }

    /// The volume has answered.
    #[inline]
    fn done(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        result: Result<(), IoError>,
    ) {
        let command = queue.command(head);
        let (op, len, place) = (command.op, command.len, command.status);
        if op == OpKind::Read && queue.resources.ring.is_logged() {
            // A failed read may have written a part of the buffers.
            log_data(io, queue, head);
        }
        let status = match result {
            Ok(()) => Status::Ok,
            Err(error) => failed(queue, error),
        };
        let written = if op == OpKind::Read && status == Status::Ok { len as u32 } else { 0 };
        if status == Status::Ok {
            match op {
                OpKind::Read => {
                    queue.count(QueueCounter::Reads, 1);
                    queue.count(QueueCounter::ReadBytes, len);
                }
                OpKind::Write { .. } => {
                    queue.count(QueueCounter::Writes, 1);
                    queue.count(QueueCounter::WrittenBytes, len);
                }
                OpKind::Flush => queue.count(QueueCounter::Flushes, 1),
                OpKind::Discard => queue.count(QueueCounter::Discards, 1),
                OpKind::WriteZeroes { .. } => queue.count(QueueCounter::WriteZeroes, 1),
            }
        }
        end(io, queue, (head, place), status, written);
    }
}

/// Records the data segments of a command in the dirty log, if there is one.
#[cold]
fn log_data(io: &mut Io, queue: &mut RunningQueue, head: Head) {
    let resources = &mut queue.resources;
    for buf in resources.commands[usize::from(head.0)].data(&mut io.lists) {
        resources.ring.mark_written(*buf);
    }
}

/// The end of every command: its head, with the place of its status byte. `written` bytes of data went into the client's memory.
#[inline]
fn end(
    io: &mut Io,
    queue: &mut RunningQueue,
    (head, place): (Head, IoBuf),
    status: Status,
    written: u32,
) {
    if status != Status::Ok {
        io.event(FlightKind::Error, queue, status as u64);
        queue.count(QueueCounter::Errors, 1);
    }
    if place.len() == 1 {
        place.write(0, &[status as u8]);
        queue.resources.ring.mark_written(place);
    }
    io.settle(queue, head, NO_PART, written + place.len() as u32);
}

#[cold]
fn failed(queue: &RunningQueue, error: IoError) -> Status {
    queue.count_failure(error);
    if error == IoError::Unsupported { Status::Unsupported } else { Status::IoErr }
}
