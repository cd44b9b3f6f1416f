//! One queue with its handler: take, read, hand over, publish.

use vring::{Chain, ChainError, Head, QueueError};

use crate::BATCH;
use crate::command::{Command, INLINE, State};
use crate::handler::{BadChain, Handler, Walked};
use crate::io::{Io, Lacking, Read, Refusal, Waiting, head_of};
use crate::queue::RunningQueue;
use memory::clock;
use protocol::stats::{FlightKind, Latency, QueueCounter};

/// What a volume answers at once is published after so many commands, and not at the end of the batch: the client
/// works on the first while the channel works on the next.
const PUBLISH_EVERY: u16 = 8;
/// After so many segments of long chains a turn ends early: following one costs as much as many ordinary requests.
pub(super) const SEGMENTS_MAX: usize = 512;

/// A queue that the channel owns, and its handler.
pub(crate) struct Served<H> {
    pub(crate) queue: RunningQueue,
    pub(crate) handler: H,
}

impl<H: Handler> Served<H> {
    /// Takes up to [`BATCH`] heads and begins them; how many. `None`: the queue pauses. What costs more than others are to wait for is
    /// left in the ring, and makes the queue a heavy one.
    #[inline]
    pub(crate) fn take(&mut self, io: &mut Io) -> Result<Option<u16>, QueueError> {
        if self.handler.pauses() {
            return Ok(None);
        }
        self.queue.heavy = 0;
        self.queue.segments = 0;
        let mut again = 0;
        if self.queue.resources.ring.resubmits() {
            again = self.take_resubmitted(io);
            self.handler.rest(&self.queue, io.now);
        }
        let seen = self.queue.resources.ring.pending()?;
        if seen == 0 {
            return Ok(Some(again));
        }
        let mut count = seen.min(BATCH);
        let begun = io.now;
        for taken in 1..=count {
            let Some(head) = self.queue.resources.ring.pop()? else { break };
            self.begin(io, head);
            if self.queue.segments > SEGMENTS_MAX
                || taken % PUBLISH_EVERY == 0 && self.much_was_done_since(io, begun)
            {
                if taken < seen {
                    self.queue.heavy = io.now.max(1);
                }
                count = taken;
                break;
            }
        }
        self.queue.count(QueueCounter::CommandsReceived, u64::from(count));
        self.queue.show_levels();
        self.handler.rest(&self.queue, io.now);
        self.account_ring_time(io.now, seen, count);
        io.event(FlightKind::Take, &self.queue, u64::from(count));
        Ok(Some(count + again))
    }

    /// Publishes what was done; whether that took so long that it is others' turn. The time is read when something is published.
    #[inline]
    fn much_was_done_since(&mut self, io: &mut Io, begun: u64) -> bool {
        if self.queue.touched {
            self.publish(io);
        }
        io.now.wrapping_sub(begun) > io.stretch
    }

    /// Takes everything that is in the ring of a queue that pauses, and holds it.
    #[cold]
    pub(crate) fn take_and_hold(&mut self, io: &mut Io) -> Result<(), QueueError> {
        let mut count = 0;
        while let Some(head) = self.queue.resources.ring.resubmit_next() {
            self.begin_old(io, head, true);
            count += 1;
        }
        self.queue.count(QueueCounter::Resubmitted, count);
        for _ in 0..self.queue.resources.ring.pending()? {
            let Some(head) = self.queue.resources.ring.pop()? else { break };
            self.begin_old(io, head, false);
            count += 1;
        }
        self.queue.count(QueueCounter::CommandsReceived, count);
        self.handler.rest(&self.queue, io.now);
        Ok(())
    }

    /// Takes all that an earlier process has left of a queue that is about to take no more. To its client a queue that has stopped has nothing in flight.
    #[cold]
    pub(crate) fn take_all_resubmitted(&mut self, io: &mut Io) {
        while !self.handler.pauses() && self.take_resubmitted(io) > 0 {
            self.handler.rest(&self.queue, io.now);
        }
        self.queue.heavy = 0;
    }

    /// Takes what is in the ring of a queue that has just come, if something was said of it before: see [`Handler::ended_before`].
    #[cold]
    pub(crate) fn take_owed(&mut self, io: &mut Io) -> Result<(), QueueError> {
        let mut count = 0;
        while let Some(head) = self.queue.resources.ring.resubmit_next() {
            if !self.handler.ended_before(io, &mut self.queue, head) {
                self.begin_old(io, head, true);
            }
            count += 1;
        }
        self.queue.count(QueueCounter::Resubmitted, count);
        for _ in 0..self.queue.resources.ring.pending()? {
            let Some(head) = self.queue.resources.ring.pop()? else { break };
            if !self.handler.ended_before(io, &mut self.queue, head) {
                self.begin_old(io, head, false);
            }
            count += 1;
        }
        self.queue.count(QueueCounter::CommandsReceived, count);
        self.queue.show_levels();
        self.handler.rest(&self.queue, io.now);
        Ok(())
    }

    /// Records how long the taken heads were known to be in the ring.
    fn account_ring_time(&mut self, now: u64, seen: u16, count: u16) {
        let queue = &mut self.queue;
        let known = queue.backlog.min(count);
        if known > 0 {
            let waited = clock::to_ns(now.wrapping_sub(queue.backlog_since));
            queue.resources.stats.record(Latency::Ring, waited, u64::from(known));
        }
        if count > known {
            queue.resources.stats.record(Latency::Ring, 0, u64::from(count - known));
        }
        queue.backlog = seen - count;
        queue.backlog_since = now;
    }

    /// Heads that an earlier process took and did not finish, oldest first, before anything new: as many as of new ones. Until all have been
    /// taken the ring gives nothing new.
    #[cold]
    #[inline(never)]
    fn take_resubmitted(&mut self, io: &mut Io) -> u16 {
        let begun = io.now;
        let mut count = 0;
        while count < BATCH
            && let Some(head) = self.queue.resources.ring.resubmit_next()
        {
            self.begin_old(io, head, true);
            count += 1;
            if self.queue.segments > SEGMENTS_MAX
                || count % PUBLISH_EVERY == 0 && self.much_was_done_since(io, begun)
            {
                self.queue.heavy = io.now.max(1);
                break;
            }
        }
        if count > 0 {
            self.queue.count(QueueCounter::Resubmitted, u64::from(count));
            self.queue.count(QueueCounter::CommandsReceived, u64::from(count));
        }
        count
    }

    /// Begins a head that was there before the queue was; whether an earlier process took it. Apart, so that what is done for every head is
    /// made part of [`Served::take`].
    #[cold]
    #[inline(never)]
    fn begin_old(&mut self, io: &mut Io, head: Head, taken: bool) {
        if taken && self.handler.recover(io, &mut self.queue, head) {
            return;
        }
        if self.handler.pauses() {
            io.note_taken(&mut self.queue, head);
            self.queue.keep(head);
        } else {
            self.begin(io, head);
        }
    }

    /// Reads the chain of a head that was just taken, and hands it to the handler.
    #[inline]
    fn begin(&mut self, io: &mut Io, head: Head) {
        io.note_taken(&mut self.queue, head);
        if !self.queue.held.is_empty() {
            return self.queue.hold(head);
        }
        match self.handler.admit(&self.queue) {
            Ok(()) => self.read(io, head),
            Err(reason) => {
                self.queue.held_for = reason;
                self.queue.hold(head);
            }
        }
    }

    /// Reads the chain into the slot, or into a long list if it does not fit.
    #[inline]
    fn read(&mut self, io: &mut Io, head: Head) {
        let resources = &mut self.queue.resources;
        let mut chain = Chain::new(&mut resources.commands[usize::from(head.0)].bufs);
        match resources.ring.chain(head, &mut chain) {
            Ok(()) => {
                let walked = Walked::of(&chain);
                self.handler.begin(io, &mut self.queue, head, walked);
            }
            Err(ChainError::TooLong { needed }) => self.read_long(io, head, needed),
            Err(error) => {
                // One that goes round was followed as far as the longest that does not.
                self.queue.segments += error.followed(&chain);
                let bad = BadChain::of(&chain, error);
                self.handler.begin_bad(io, &mut self.queue, head, bad);
            }
        }
    }

    /// Reads a chain that was read before.
    #[cold]
    fn read_again(&mut self, io: &mut Io, head: Head) {
        let Some(read) = io.read_longer(&mut self.queue, head, INLINE + 1) else {
            unreachable!("what was put back has no list");
        };
        match read {
            Read::Whole(walked) => {
                io.followed += walked.total;
                self.handler.begin_again(io, &mut self.queue, head, walked);
            }
            Read::Bad(bad) => self.handler.begin_bad(io, &mut self.queue, head, bad),
            Read::Waits => {}
        }
    }

    #[cold]
    fn read_long(&mut self, io: &mut Io, head: Head, needed: usize) {
        self.queue.segments += needed;
        match io.read_longer(&mut self.queue, head, needed).expect("a slot is not the longest") {
            Read::Whole(walked) => self.handler.begin(io, &mut self.queue, head, walked),
            Read::Bad(bad) => self.handler.begin_bad(io, &mut self.queue, head, bad),
            Read::Waits => {}
        }
    }

    /// A command that waited is tried again.
    pub(crate) fn resubmit(&mut self, io: &mut Io, head: Head) {
        self.queue.parked -= 1;
        match self.queue.state(head) {
            State::Unread if self.queue.command(head).passed != 0 => self.read_again(io, head),
            State::Unread => self.read(io, head),
            State::Parked | State::Paused => self.handler.try_again(io, &mut self.queue, head),
            state @ (State::Free | State::Held | State::Submitted) => {
                unreachable!("{head:?} waited and is {state:?}")
            }
        }
    }

    /// Tries the first command again that waits until something completes, if there may be now what it lacks.
    pub(crate) fn retry_next(&mut self, io: &mut Io) {
        let Some(waiting) = self.queue.waiting.pop_front() else { return };
        let refusal = self.refusal(waiting);
        let in_vain = match waiting.what {
            Lacking::Lane(_) => refusal.is_some_and(|refusal| io.refusals.contains(&refusal)),
            Lacking::List { long } => !io.lists.has_for(&self.queue.lists, long),
            Lacking::Memory => false,
        };
        if in_vain {
            return self.queue.waiting.push_back(waiting);
        }
        io.tried = Some(waiting);
        self.resubmit(io, head_of(waiting.tag));
        io.tried = None;
        if self.queue.waiting.back() == Some(&waiting) {
            io.refusals.extend(refusal);
        }
    }

    /// What it would be if a command were refused again.
    fn refusal(&self, Waiting { tag, what }: Waiting) -> Option<Refusal> {
        let Lacking::Lane(reason) = what else { return None };
        let head = head_of(tag);
        let lane = self.handler.lane_of(head)?;
        let Command { op, passed, .. } = self.queue.resources.commands[usize::from(head.0)];
        Some(Refusal { lane, reason, op, passed })
    }

    /// Takes up held commands, as far as they may be active now, [`BATCH`] at most; whether there are more of them. What has just ended others may
    /// have first: who holds commands back is not the only one that does.
    #[inline]
    pub(crate) fn take_held(&mut self, io: &mut Io) -> bool {
        !self.queue.held.is_empty() && self.take_some_held(io)
    }

    #[inline(never)]
    fn take_some_held(&mut self, io: &mut Io) -> bool {
        self.handler.rest(&self.queue, io.now);
        let mut taken = 0;
        while let Some(head) = self.queue.held.front().copied().map(Head) {
            if self.handler.pauses() {
                if self.queue.held.len() == self.queue.kept {
                    if self.queue.takes_heads() {
                        return false;
                    }
                    self.handler.cut();
                }
            } else {
                self.queue.kept = 0;
            }
            if taken == BATCH {
                return true;
            }
            if let Err(reason) = self.handler.admit(&self.queue) {
                self.queue.held_for = reason;
                return false;
            }
            taken += 1;
            self.queue.held.pop_front();
            self.queue.kept = self.queue.kept.min(self.queue.held.len());
            self.queue.parked -= 1;
            self.queue.command(head).state = State::Unread;
            self.read(io, head);
        }
        false
    }

    /// Makes completions visible, and accounts for them.
    #[inline]
    pub(crate) fn publish(&mut self, io: &mut Io) {
        io.publish(&mut self.queue, &self.handler);
    }
}
