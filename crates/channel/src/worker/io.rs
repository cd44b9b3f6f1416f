//! The way of a command: take, judge, submit, finish, publish.

use std::cmp::{Ordering, Reverse};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use block::{Finish, IoError, Lane, OpKind, Outcome, Request, Submit, Tag, Wait};
use device::blk::{self, Action, Reject, Status, parse};
use memory::clock;
use protocol::stats::{ChannelCounter, FlightKind, Latency, QueueCounter};
use uring::Op;
use vring::{Chain, ChainError, Head, QueueError};

use super::{Io, Lanes, token};
use crate::BATCH;
use crate::command::{INLINE, State};
use crate::queue::{Active, Device, Kind, Seat};
use crate::scsi::{ControlQueue, EventQueue, Requests, ScsiRole};

/// What a volume answers at once is published after so many commands, and not at the end of the batch: the client
/// works on the first while the channel works on the next.
const PUBLISH_EVERY: u16 = 8;

/// A command that waits until a moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(crate) at: Instant,
    pub(crate) tag: Tag,
}

impl Ord for Timer {
    /// The earliest is the greatest: the heap gives the greatest first.
    fn cmp(&self, other: &Timer) -> Ordering {
        Reverse((self.at, self.tag)).cmp(&Reverse((other.at, other.tag)))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What a walk found, without the buffers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walked {
    pub(super) readable: usize,
    pub(super) total: usize,
    pub(super) readable_bytes: u64,
    pub(super) writable_bytes: u64,
}

impl Walked {
    pub(super) fn of(chain: &Chain<'_>) -> Walked {
        let Chain { readable, total, readable_bytes, writable_bytes, .. } = *chain;
        Walked { readable, total, readable_bytes, writable_bytes }
    }
}

/// A tag is the queue's place in the channel and the head.
pub(super) fn tag_of(id: u16, head: Head) -> Tag {
    Tag(u32::from(id) << 16 | u32::from(head.0))
}

pub(super) fn queue_of(tag: Tag) -> u16 {
    (tag.0 >> 16) as u16
}

pub(super) fn head_of(tag: Tag) -> Head {
    Head(tag.0 as u16)
}

impl Io {
    pub(super) fn event(&self, kind: FlightKind, slot: usize, value: u64) {
        self.stats.event(self.now, kind, slot as u32, value);
    }

    /// Makes room for the commands of another queue, so that nothing is allocated later.
    pub(super) fn reserve(&mut self, commands: usize, queues: usize) {
        self.capacity += commands;
        let room = |len: usize| self.capacity.saturating_sub(len);
        self.timers.reserve(room(self.timers.len()));
        self.waiting.reserve(room(self.waiting.len()));
        self.finishes.reserve(room(self.finishes.len()));
        self.touched.reserve(queues);
    }

    /// Takes back what [`Io::reserve`] counted. The room stays; the next queue that comes finds it.
    pub(super) fn release(&mut self, commands: usize) {
        self.capacity -= commands;
    }

    /// What the channel keeps for a queue, with its lanes.
    pub(super) fn kind_of(&mut self, seat: &Seat) -> Result<Kind, String> {
        let size = seat.ring.size();
        let (role, luns, pool, limits) = match &seat.device {
            Device::Block { volume, .. } => {
                let lane = self.lanes.acquire(volume, &mut self.ring);
                return lane.map(Kind::Block).map_err(|error| error.to_string());
            }
            Device::Scsi { role, luns, pool, limits } => (role, luns, pool, limits),
        };
        Ok(match role {
            ScsiRole::Event => Kind::Event(EventQueue::default()),
            ScsiRole::Control => {
                let queue = ControlQueue::new(size, limits.functions, Arc::clone(luns));
                Kind::Control(Box::new(queue))
            }
            ScsiRole::Request => {
                self.scratches.provide().map_err(|error| error.to_string())?;
                let mut requests = Requests::new(size, *limits, Arc::clone(pool), &seat.adapter);
                requests.remap(Arc::clone(luns), &mut self.means())?;
                // Header and response are segments, too.
                let segments = usize::from(limits.buffers) + 2;
                requests.lists = self.lists.add_own(limits.local.min(size), segments);
                Kind::Request(Box::new(requests))
            }
        })
    }

    /// Takes back what [`Io::kind_of`] gave. Nothing is in flight.
    pub(super) fn let_go(&mut self, kind: &mut Kind) {
        match kind {
            Kind::Block(lane) => self.lanes.release(*lane, &mut self.ring),
            Kind::Request(requests) => {
                requests.release_all(&mut self.means());
                self.lists.remove_own(std::mem::take(&mut requests.lists));
            }
            Kind::Control(_) | Kind::Event(_) => {}
        }
    }

    /// Makes the commands of a queue that wait for a moment due. What they took from a limit stays taken.
    pub(super) fn make_due(&mut self, id: u16) {
        let mut timers = std::mem::take(&mut self.timers).into_vec();
        let now = Instant::now();
        for timer in timers.iter_mut().filter(|timer| queue_of(timer.tag) == id) {
            timer.at = timer.at.min(now);
        }
        self.timers = timers.into();
    }

    /// Adds an operation of the channel's own, submitting what is queued when there is no room.
    pub(super) fn push(&mut self, operation: Op<'_>, user_data: u64) {
        if self.ring.push(operation, user_data).is_err() {
            self.ring.submit().expect("io_uring_enter accepts what was pushed");
            self.ring.push(operation, user_data).expect("a submitted ring has room");
        }
    }

    /// Takes up to [`BATCH`] heads from a queue and begins them; how many.
    #[inline]
    pub(super) fn take(&mut self, id: u16, queue: &mut Active) -> Result<u16, QueueError> {
        let again = self.take_resubmitted(id, queue);
        let seen = queue.seat.ring.pending()?;
        if seen == 0 {
            return Ok(again);
        }
        let count = seen.min(BATCH);
        for taken in 1..=count {
            let Some(head) = queue.seat.ring.pop()? else { break };
            self.begin(id, queue, head);
            if taken % PUBLISH_EVERY == 0 && queue.touched {
                self.publish(id, queue);
            }
        }
        queue.count(QueueCounter::CommandsReceived, u64::from(count));
        queue.show_levels();
        self.account_ring_time(queue, seen, count);
        self.event(FlightKind::Take, queue.seat.stats.slot(), u64::from(count));
        Ok(count + again)
    }

    /// Records how long the taken heads were known to be in the ring.
    fn account_ring_time(&self, queue: &mut Active, seen: u16, count: u16) {
        let known = queue.backlog.min(count);
        if known > 0 {
            let waited = clock::to_ns(self.now.wrapping_sub(queue.backlog_since));
            queue.seat.stats.record(Latency::Ring, waited, u64::from(known));
        }
        if count > known {
            queue.seat.stats.record(Latency::Ring, 0, u64::from(count - known));
        }
        queue.backlog = seen - count;
        queue.backlog_since = self.now;
    }

    /// Heads that an earlier process took and did not finish, oldest first, before anything new.
    fn take_resubmitted(&mut self, id: u16, queue: &mut Active) -> u16 {
        let mut count = 0;
        while let Some(head) = queue.seat.ring.resubmit_next() {
            self.begin_again(id, queue, head);
            count += 1;
        }
        if count > 0 {
            queue.count(QueueCounter::Resubmitted, u64::from(count));
            queue.count(QueueCounter::CommandsReceived, u64::from(count));
        }
        count
    }

    /// Reads the chain of a head that was just taken, judges it, and sends it on its way.
    #[inline]
    pub(super) fn begin(&mut self, id: u16, queue: &mut Active, head: Head) {
        self.note_taken(queue, head);
        if self.admit(queue, head) {
            self.read(id, queue, head);
        }
    }

    /// A head was taken.
    #[inline]
    pub(super) fn note_taken(&mut self, queue: &mut Active, head: Head) {
        let command = &mut queue.seat.commands[usize::from(head.0)];
        debug_assert!(command.state == State::Free);
        command.state = State::Unread;
        command.taken = self.now;
        command.done = 0;
        command.passed = 0;
        command.list = None;
        self.under_way += 1;
    }

    /// Reads the chain into the slot, or into a long list if it does not fit.
    #[inline]
    pub(super) fn read(&mut self, id: u16, queue: &mut Active, head: Head) {
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let mut chain = Chain::new(&mut command.bufs);
        match queue.seat.ring.chain(head, &mut chain) {
            Ok(()) => {
                let walked = Walked::of(&chain);
                self.judge(id, queue, head, walked);
            }
            Err(ChainError::TooLong { .. }) => self.read_long(id, queue, head),
            Err(error) => {
                let (readable, total) = (chain.readable, chain.total);
                self.spoilt(id, queue, head, error, readable, total);
            }
        }
    }

    /// Reads a chain that does not fit its slot into one of the queue's own lists, or into a shared one.
    #[cold]
    pub(super) fn read_long(&mut self, id: u16, queue: &mut Active, head: Head) {
        let Active { kind, seat, .. } = queue;
        if let Kind::Request(requests) = kind
            && let Some(list) = requests.lists.pop()
        {
            let mut chain = Chain::new(self.lists.get(list));
            if seat.ring.chain(head, &mut chain).is_ok() {
                let walked = Walked::of(&chain);
                seat.commands[usize::from(head.0)].list = Some(list);
                return self.judge(id, queue, head, walked);
            }
            // Too long for it. What is wrong otherwise is found again.
            requests.lists.push(list);
        }
        self.read_shared(id, queue, head);
    }

    #[cold]
    pub(super) fn read_shared(&mut self, id: u16, queue: &mut Active, head: Head) {
        let Some(list) = self.lists.take() else {
            queue.count(QueueCounter::WaitNoDma, 1);
            queue.parked += 1;
            self.waiting.push_back(tag_of(id, head));
            return;
        };
        queue.seat.commands[usize::from(head.0)].list = Some(list);
        if matches!(queue.kind, Kind::Request(_)) {
            queue.count(QueueCounter::GlobalBuffers, 1);
        }
        let mut chain = Chain::new(self.lists.get(list));
        match queue.seat.ring.chain(head, &mut chain) {
            Ok(()) => {
                let walked = Walked::of(&chain);
                self.judge(id, queue, head, walked);
            }
            Err(error) => {
                let (readable, total) = (chain.readable, chain.total);
                self.spoilt(id, queue, head, error, readable, total);
            }
        }
    }

    /// A chain that breaks the rules. Where its end is known, the last writable byte gets the status.
    #[cold]
    fn spoilt(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        error: ChainError,
        readable: usize,
        total: usize,
    ) {
        match queue.kind {
            Kind::Block(_) => {}
            Kind::Request(_) => return self.spoilt_command(id, queue, head, readable, total),
            Kind::Control(_) | Kind::Event(_) => {
                return self.spoilt_control(id, queue, head, readable, total);
            }
        }
        let command = &mut queue.seat.commands[usize::from(head.0)];
        command.status = memory::IoBuf::EMPTY;
        if error.has_buffers() && total > readable {
            let bufs = match command.list {
                None => &command.bufs[..],
                Some(list) => self.lists.get(list),
            };
            let last = bufs[total - 1];
            if !last.is_empty() {
                command.status = last.slice(last.len() - 1, 1);
            }
        }
        self.reject(id, queue, head, Reject::BadChain);
    }

    #[inline]
    fn judge(&mut self, id: u16, queue: &mut Active, head: Head, walked: Walked) {
        match queue.kind {
            Kind::Block(_) => {}
            Kind::Request(_) => return self.judge_command(id, queue, head, walked),
            Kind::Control(_) | Kind::Event(_) => {
                return self.judge_control(id, queue, head, walked);
            }
        }
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let bufs = match command.list {
            None => &mut command.bufs[..walked.total.min(INLINE)],
            Some(list) => &mut self.lists.get(list)[..walked.total],
        };
        let Walked { readable, readable_bytes, writable_bytes, .. } = walked;
        let mut chain = blk::Chain { bufs, readable, readable_bytes, writable_bytes };
        let Device::Block { shape, .. } = &queue.seat.device else { return };
        let parsed = parse(shape, &mut chain);
        command.status = parsed.status;
        // At most 1032 segments, so both fit.
        command.first = parsed.first as u16;
        command.end = parsed.end as u16;
        match parsed.action {
            Action::Submit { op, offset, len } => {
                (command.op, command.offset, command.len) = (op, offset, len);
                self.submit(id, queue, head);
            }
            Action::GetId => self.get_id(id, queue, head),
            Action::Reject(reject) => self.reject(id, queue, head, reject),
        }
    }

    #[cold]
    fn reject(&mut self, id: u16, queue: &mut Active, head: Head, reject: Reject) {
        let counter = match reject {
            Reject::BadChain => QueueCounter::BadChains,
            Reject::Unsupported => QueueCounter::Unsupported,
            Reject::OutOfRange => QueueCounter::OutOfRange,
            Reject::ReadOnly => QueueCounter::Errors,
        };
        if counter != QueueCounter::Errors {
            queue.count(counter, 1);
        }
        self.end(id, queue, head, reject.status(), 0);
    }

    #[cold]
    fn get_id(&mut self, id: u16, queue: &mut Active, head: Head) {
        let Device::Block { shape, .. } = &queue.seat.device else { return };
        let serial = *shape.serial();
        let command = &queue.seat.commands[usize::from(head.0)];
        let mut left = &serial[..];
        for buf in command.data(&mut self.lists) {
            let (now, later) = left.split_at(buf.len().min(left.len()));
            buf.write(0, now);
            left = later;
        }
        queue.count(QueueCounter::GetIds, 1);
        self.log_data(queue, head);
        self.end(id, queue, head, Status::Ok, serial.len() as u32);
    }

    /// Hands a judged command to its lane.
    #[inline]
    fn submit(&mut self, id: u16, queue: &mut Active, head: Head) {
        if self.ring.space() < <dyn Lane>::SQES && self.ring.submit().is_err() {
            panic!("io_uring_enter failed");
        }
        let Kind::Block(lane) = queue.kind else { return };
        let Io { ring, lanes, lists, .. } = self;
        let lane = lanes.get(lane).expect("a queue's lane lives as long as the queue");
        let command = &queue.seat.commands[usize::from(head.0)];
        let mut request = Request {
            op: command.op,
            offset: command.offset,
            len: command.len,
            bufs: command.data(lists),
            tag: tag_of(id, head),
            done: u64::from(command.done),
            passed: command.passed,
        };
        let submit = lane.submit(ring, &mut request);
        let passed = request.passed;
        let command = &mut queue.seat.commands[usize::from(head.0)];
        match submit {
            Submit::Done(result) => self.done(id, queue, head, result),
            Submit::Pending => {
                command.state = State::Submitted;
                command.submitted = self.now;
            }
            Submit::Park { reason, until } => {
                command.passed = passed;
                self.park(id, queue, head, reason, until);
            }
        }
    }

    #[cold]
    pub(super) fn park(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        reason: Wait,
        until: Option<Instant>,
    ) {
        let counter = match reason {
            Wait::Throttled => QueueCounter::WaitThrottled,
            Wait::NoDma => QueueCounter::WaitNoDma,
            Wait::BackEndFull => QueueCounter::WaitBackEndFull,
            Wait::Delay => QueueCounter::WaitDelay,
        };
        queue.count(counter, 1);
        queue.parked += 1;
        queue.show_levels();
        queue.seat.commands[usize::from(head.0)].state = State::Parked;
        self.event(FlightKind::Park, queue.seat.stats.slot(), reason as u64);
        let tag = tag_of(id, head);
        match until {
            Some(at) => self.timers.push(Timer { at, tag }),
            None => self.waiting.push_back(tag),
        }
    }

    /// Tries a parked command again.
    pub(super) fn resubmit(&mut self, id: u16, queue: &mut Active, tag: Tag) {
        let head = head_of(tag);
        queue.parked -= 1;
        match queue.seat.commands[usize::from(head.0)].state {
            State::Unread => self.read(id, queue, head),
            State::Paused => self.unpause(id, queue, head),
            _ if matches!(queue.kind, Kind::Block(_)) => self.submit(id, queue, head),
            _ => self.offer_again(id, queue, head),
        }
    }

    /// A lane finished a round of a command.
    pub(super) fn finished(&mut self, id: u16, queue: &mut Active, finish: Finish) {
        let head = head_of(finish.tag);
        if !matches!(queue.kind, Kind::Block(_)) {
            return self.finished_command(id, queue, head, finish.outcome);
        }
        match finish.outcome {
            Outcome::Done(result) => self.done(id, queue, head, result),
            Outcome::Again { done } => {
                queue.count(QueueCounter::Rounds, 1);
                // It fits: see the field.
                queue.seat.commands[usize::from(head.0)].done = done as u32;
                self.submit(id, queue, head);
            }
        }
    }

    /// The volume has answered.
    #[inline]
    fn done(&mut self, id: u16, queue: &mut Active, head: Head, result: Result<(), IoError>) {
        let command = &queue.seat.commands[usize::from(head.0)];
        let (op, len) = (command.op, command.len);
        if op == OpKind::Read {
            // A failed read may have written a part of the buffers.
            self.log_data(queue, head);
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
        self.end(id, queue, head, status, written);
    }

    /// Records the data segments of a command in the dirty log, if there is one.
    #[inline]
    fn log_data(&mut self, queue: &mut Active, head: Head) {
        let command = &queue.seat.commands[usize::from(head.0)];
        for buf in command.data(&mut self.lists) {
            queue.seat.ring.mark_written(*buf);
        }
    }

    /// The end of every command.
    #[inline]
    fn end(&mut self, id: u16, queue: &mut Active, head: Head, status: Status, written: u32) {
        let command = &mut queue.seat.commands[usize::from(head.0)];
        if let Some(list) = command.list.take() {
            self.lists.give_back(list);
        }
        if status != Status::Ok {
            self.event(FlightKind::Error, queue.seat.stats.slot(), status as u64);
        }
        self.list(id, queue);
        queue.finish(head, status, written, self.now);
    }

    /// Puts a queue on the list of those that are looked at when the turn ends.
    #[inline]
    pub(super) fn list(&mut self, id: u16, queue: &mut Active) {
        if !queue.listed {
            queue.listed = true;
            self.touched.push(id);
        }
    }

    /// Makes a queue's completions visible and notifies its client if it wants that; then accounts for them.
    #[inline]
    pub(super) fn publish(&mut self, id: u16, queue: &mut Active) {
        if queue.publish() {
            self.notify(id, queue);
        } else {
            queue.count(QueueCounter::NotificationsSpared, 1);
        }
        self.now = clock::ticks();
        let count = queue.account(self.now);
        self.under_way -= count;
        self.stats.add(ChannelCounter::Commands, count);
        self.event(FlightKind::Publish, queue.seat.stats.slot(), count);
    }

    /// Tells a client that its queue has stopped by itself; as [`Io::notify`], for the same reason.
    #[cold]
    pub(super) fn signal_error(&mut self, id: u16, queue: &mut Active) {
        let Some(error) = &queue.seat.error else { return };
        // Without room in the table the client is not told; its adapter's state is.
        let Ok(file) = self.ring.register(error.as_fd()) else { return };
        queue.error = Some(file);
        self.push(Op::Notify { file }, Lanes::OWN.user_data(token::ERROR + u64::from(id)));
    }

    /// Notifies a queue's client. The eventfd is the client's too: a write of ours could wait for as long as the client likes, so the kernel
    /// does it for the ring, at most one for a queue at a time.
    pub(super) fn notify(&mut self, id: u16, queue: &mut Active) {
        let Some(file) = queue.call else { return };
        queue.count(QueueCounter::Notifications, 1);
        self.event(FlightKind::Notify, queue.seat.stats.slot(), 0);
        if queue.notifying {
            queue.notify_again = true;
            return;
        }
        queue.notifying = true;
        self.notified = true;
        self.push(Op::Notify { file }, Lanes::OWN.user_data(token::NOTIFY + u64::from(id)));
        // At once: the client waits.
        self.ring.submit().expect("io_uring_enter accepts what was pushed");
    }
}

#[cold]
fn failed(queue: &Active, error: IoError) -> Status {
    count_failure(queue, error);
    if error == IoError::Unsupported { Status::Unsupported } else { Status::IoErr }
}

/// Counts why a volume could not do something.
#[cold]
pub(super) fn count_failure(queue: &Active, error: IoError) {
    match error {
        IoError::NoSpace => queue.count(QueueCounter::ErrorsNoSpace, 1),
        IoError::Gone => queue.count(QueueCounter::ErrorsGone, 1),
        IoError::OutOfRange => queue.count(QueueCounter::OutOfRange, 1),
        IoError::Unsupported => queue.count(QueueCounter::Unsupported, 1),
        IoError::Io | IoError::ReadOnly => {}
    }
}
