//! [`Handler`]: the seam between a channel and the devices.
//!
//! ```text
//!   channel                                    a device's room
//!   ┌────────────────────────────────┐         ┌──────────────────────────────┐
//!   │ turn, wait, ring, timers,      │ begin   │ Handler: one for each queue  │
//!   │ lanes, lists, notification,    │ ──────► │  parse, judge, ask a volume, │
//!   │ in-flight recovery, moving     │ ◄────── │  answer                      │
//!   │ RunningQueue, Io               │ settle  │ Shared: one for each channel │
//!   └────────────────────────────────┘         └──────────────────────────────┘
//! ```
//!
//! The channel takes heads, follows their chains, and hands each to its queue's handler; the handler ends it with [`Io::settle`], at once
//! or later. In between the command may be with a lane ([`Io::submit`]), wait for time or for a resource, or wait for the answer to an
//! off-path request ([`Io::off_path`]); the channel says when it can go on. Nothing is boxed and nothing is called through a table on the
//! way: a channel is made for one type of handler, which may be an enum of several.

use block::{LaneId, Outcome, Tag};
use protocol::stats::{Latency, QueueCounter, Span, Timed};
use vring::{Chain, ChainError, Head, QueueError};

use crate::command::State;
use crate::io::Io;
use crate::queue::{QueueId, QueueResources, RunningQueue};

/// What a walk along a chain found. Its buffers are the first `total` of [`crate::Command::all`].
#[derive(Debug, Clone, Copy)]
pub struct Walked {
    /// How many buffers are readable; they come first.
    pub readable: usize,
    /// How many buffers there are.
    pub total: usize,
    /// Bytes of the readable ones.
    pub readable_bytes: u64,
    /// Bytes of the others.
    pub writable_bytes: u64,
}

impl Walked {
    /// Of a chain that was followed to its end.
    #[inline]
    #[must_use]
    pub fn of(chain: &Chain<'_>) -> Walked {
        let Chain { readable, total, readable_bytes, writable_bytes, .. } = *chain;
        Walked { readable, total, readable_bytes, writable_bytes }
    }
}

/// A chain that breaks the rules.
#[derive(Debug, Clone, Copy)]
pub struct BadChain {
    /// Which rule.
    pub error: ChainError,
    /// Readable buffers that were found, as far as they are known.
    pub readable: usize,
    /// All buffers that were found.
    pub total: usize,
}

impl BadChain {
    pub(crate) fn of(chain: &Chain<'_>, error: ChainError) -> BadChain {
        BadChain { error, readable: chain.readable, total: chain.total }
    }
}

/// A handler, and what its queue needs of the channel.
#[derive(Debug)]
pub struct Opened<H> {
    /// The handler.
    pub handler: H,
    /// Segment lists of the queue's own: how many, and for how many segments each.
    pub lists: (u16, usize),
    /// Heads stay in the ring until the handler has something for the client, and takes one: see [`Handler::buffers_came`].
    pub pulls: bool,
    /// Something was said of what is in the ring: the handler is asked of each of these heads before anything else, in
    /// [`Handler::ended_before`].
    pub owes: bool,
    /// A command that waits for a moment, with nothing of it done, gives its segment list back, so that who is held back keeps nothing that others
    /// need. Then its chain is read anew: see [`Handler::begin_again`].
    pub rereads: bool,
    /// Its kicks are a client's, who is asked for each: not those of a file that is always to be heard.
    pub is_asked: bool,
}

impl<H> Opened<H> {
    /// One that takes heads as they come, asks its client for kicks, and needs nothing else.
    #[must_use]
    pub fn of(handler: H) -> Opened<H> {
        let (pulls, owes, rereads) = (false, false, false);
        Opened { handler, lists: (0, 0), pulls, owes, rereads, is_asked: true }
    }

    /// The same around another handler.
    pub fn map<T>(self, wrap: impl FnOnce(H) -> T) -> Opened<T> {
        let Opened { handler, lists, pulls, owes, rereads, is_asked } = self;
        Opened { handler: wrap(handler), lists, pulls, owes, rereads, is_asked }
    }
}

/// A message that a handler wants when some commands have ended and their ends are published.
#[derive(Debug)]
pub struct After<M> {
    /// Commands that are marked to end early: [`Io::ended_early`] is called for each.
    pub commands: Vec<Tag>,
    /// What to be told then.
    pub message: M,
}

impl<M> After<M> {
    /// The same around another message.
    pub fn map<T>(self, wrap: impl FnOnce(M) -> T) -> After<T> {
        After { commands: self.commands, message: wrap(self.message) }
    }
}

/// Messages and scopes of a device whose queues are told nothing, and of whose commands none is aborted.
#[derive(Debug, Clone, Copy)]
pub enum Never {}

/// The other queues of a channel, for [`Handler::relay`].
pub trait Peers<H> {
    /// A queue with its handler, if it is here and is not being stopped.
    fn get(&mut self, id: QueueId) -> Option<(&mut H, &mut RunningQueue)>;

    /// Whether a queue that is not to be had was asked back.
    fn is_leaving(&self, id: QueueId) -> bool;

    /// The ring of a queue makes no sense.
    fn ring_broke(&mut self, id: QueueId, error: QueueError);
}

/// A walk over the commands of a queue, of which there may be a thousand with a thousand segments each, in pieces: other queues have their turn in between.
#[derive(Debug)]
pub struct Sweep {
    /// The next head to be looked at.
    pub(crate) next: u16,
    /// How much may be done in this piece.
    pub(crate) effort: usize,
}

impl Sweep {
    /// The next head that was taken and is not settled, if this piece may look at one more.
    pub fn next(&mut self, queue: &RunningQueue) -> Option<Head> {
        let commands = &queue.resources.commands;
        while self.effort > 0
            && let Some(command) = commands.get(usize::from(self.next))
        {
            let head = Head(self.next);
            self.next += 1;
            self.effort -= 1;
            if command.state != State::Free {
                self.spend(SPEND_TAKEN);
                return Some(head);
            }
        }
        None
    }

    /// Looking at a head took this much more: the segments of its chain.
    pub fn spend(&mut self, effort: usize) {
        self.effort = self.effort.saturating_sub(effort);
    }

    pub(crate) fn is_over(&self, queue: &RunningQueue) -> bool {
        usize::from(self.next) >= queue.resources.commands.len()
    }
}

/// What a head that was taken costs beyond one that is free.
const SPEND_TAKEN: usize = 3;

/// What is behind one running queue, on its channel's thread. No method may block.
pub trait Handler: Sized + 'static {
    /// What a session hands over with a queue, for the handler to be made of.
    type Device: Send + 'static;
    /// What the handlers of one channel share.
    type Shared: Default;
    /// What a queue's handler can be told by other threads.
    type Message: Send + 'static;
    /// Names commands that are to be aborted or counted, on whichever queue they are.
    type Scope: Send + 'static;

    /// The queue was moved in.
    ///
    /// # Errors
    ///
    /// Says what the device lacks; then the queue goes back.
    fn open(
        device: Self::Device,
        shared: &mut Self::Shared,
        io: &mut Io,
        queue: &QueueResources,
    ) -> Result<Opened<Self>, String>;

    /// The queue is about to be given back; nothing of it is under way.
    fn close(&mut self, io: &mut Io);

    /// Whether the queue takes nothing for now. Its heads stay in the ring, so that it can be stopped and moved as ever; it is asked again when
    /// it is woken ([`Io::wake`]). What was taken before goes on; what an abort has it take meanwhile is held until it pauses no more, or stops:
    /// then it waits in the record of what is in flight, or is begun ([`Handler::cut`]).
    #[inline]
    fn pauses(&mut self) -> bool {
        false
    }

    /// The queue stops while it pauses, and what it took meanwhile is begun now: that cannot wait any longer, since nothing records it, or the client
    /// stops the queue.
    fn cut(&mut self) {}

    /// Whether one more command may become active. If not it is held, counted as what the error says, and none overtakes it; it is asked
    /// for again when a command of the queue has ended, or the queue was woken ([`Io::wake`]).
    ///
    /// # Errors
    ///
    /// What the command waits for.
    #[inline]
    fn admit(&mut self, _queue: &RunningQueue) -> Result<(), QueueCounter> {
        Ok(())
    }

    /// The channel has begun and ended what it can of the queue's commands, at a moment in ticks, and turns to something else.
    #[inline]
    fn rest(&mut self, _queue: &RunningQueue, _now: u64) {}

    /// The queue was woken, and has begun what it may of the commands that are held.
    fn woken(&mut self, _io: &mut Io, _queue: &mut RunningQueue) {}

    /// A head was taken, admitted, and its chain is in its command's slot or list.
    fn begin(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, walked: Walked);

    /// The same for a command whose chain is read anew ([`Opened::rereads`]). What it was asked before stands in its slot still, with who has let
    /// that through: if it asks for anything else now, nobody has.
    fn begin_again(&mut self, _: &mut Io, _: &mut RunningQueue, _: Head, _: Walked) {
        unreachable!("a device that puts nothing back")
    }

    /// A head whose chain breaks the rules.
    fn begin_bad(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, bad: BadChain);

    /// What it has begun may go on with other queues at hand: it asked for that ([`Io::relay`]). Everything of the turn is taken, and nothing of
    /// it published.
    fn relay(&mut self, _io: &mut Io, _queue: &mut RunningQueue, _peers: &mut dyn Peers<Self>) {}

    /// An operation of the queue's own is over ([`Io::operate`]), with what the kernel says. The turn's publication follows, and the queue may
    /// be stopping.
    fn operated(&mut self, _io: &mut Io, _queue: &mut RunningQueue, _mark: u16, _result: i32) {
        unreachable!("a device without operations of its own")
    }

    /// A head that an earlier process took and did not finish. `true`: it was settled here and is not to be done again.
    fn recover(&mut self, _io: &mut Io, _queue: &mut RunningQueue, _head: Head) -> bool {
        false
    }

    /// A head that was in the ring when the queue was moved in, if [`Opened::owes`]. `true`: it was settled here and is not done.
    fn ended_before(&mut self, _io: &mut Io, _queue: &mut RunningQueue, _head: Head) -> bool {
        false
    }

    /// A lane has finished a round of a command.
    fn completed(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, outcome: Outcome);

    /// A command that was parked or paused can be tried again.
    fn try_again(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head);

    /// The lane that a parked command waits for. Those that it refuses for the same reason need not be asked for one by one.
    fn lane_of(&self, _head: Head) -> Option<LaneId> {
        None
    }

    /// An off-path request of a paused command was answered: see [`crate::Reply`].
    fn answered(&mut self, _io: &mut Io, _queue: &mut RunningQueue, _head: Head, _answer: u32) {
        unreachable!("a device without off-path requests")
    }

    /// A message for this queue. It may ask for another one when commands of its have ended.
    ///
    /// # Errors
    ///
    /// When the ring makes no sense.
    fn message(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        message: Self::Message,
    ) -> Result<Option<After<Self::Message>>, QueueError>;

    /// Buffers may have come to a queue that pulls.
    ///
    /// # Errors
    ///
    /// When the ring makes no sense.
    fn buffers_came(&mut self, _io: &mut Io, _queue: &mut RunningQueue) -> Result<(), QueueError> {
        Ok(())
    }

    /// Whether there may be commands of a scope on this queue, taken or not.
    fn concerns(&self, scope: &Self::Scope) -> bool;

    /// Ends the commands of a scope among those that `sweep` comes to; how many there are. Those that end when what is out comes back are added
    /// to `left`: [`Io::ended_early`] is called for each. A scope may ask for the count alone.
    fn abort(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        scope: &Self::Scope,
        sweep: &mut Sweep,
        left: &mut Vec<Tag>,
    ) -> u32;

    /// Records a latency of commands that ended, for the part of the device that [`Io::settle`] named. Comes after the publication.
    #[inline]
    fn record(&self, _part: u16, _which: Latency, _span: Span, _count: u64) {}

    /// Records reads, or writes, that a volume was asked for, for that part.
    #[inline]
    fn record_timed(&self, _part: u16, _timed: &Timed) {}

    /// The shortest and the longest times of all parts begin again.
    fn reset_marks(&self) {}
}
