//! What a command needs and a channel may not do, since it would block or concerns other channels.

use std::marker::PhantomData;
use std::sync::Arc;

use device::scsi::Response;
use device::scsi::control::Management;
use scsi::{LogicalUnit, NexusId, Persistent};

use crate::handle::{Inbox, Message};
use crate::queue::{Adapter, QueueId};

/// Something to be done for a command. It is handed over on the channel's thread and done elsewhere; the command waits until its
/// [`Answer`] comes.
#[derive(Debug)]
pub enum Errand {
    /// Store the reservations of a unit so that they survive a power loss; whether that worked.
    Store {
        /// Of which unit.
        unit: Arc<LogicalUnit>,
        /// What to store.
        state: Box<Persistent>,
        /// For the command.
        answer: Answer<bool>,
    },
    /// Abort commands on every channel ([`crate::Channel::abort`]); answer when none is left.
    Abort {
        /// Which.
        scope: AbortScope,
        /// For the command.
        answer: Answer<()>,
    },
    /// Carry out a task management function. Target and logical unit were in the LUN map when it came.
    Manage {
        /// What the client asks.
        request: Management,
        /// What the client is told.
        answer: Answer<Response>,
    },
}

/// Which commands.
#[derive(Debug, Clone)]
pub struct AbortScope {
    /// At which logical unit.
    pub unit: Arc<LogicalUnit>,
    /// Whose.
    pub whom: Whom,
    /// But for this one.
    pub except: Option<CommandRef>,
    /// What the client of such a command is told.
    pub verdict: Verdict,
}

/// Whose commands.
#[derive(Debug, Clone)]
pub enum Whom {
    /// All.
    Everybody,
    /// Those of some I_T nexuses.
    Nexuses(Vec<NexusId>),
    /// One command.
    One {
        /// Of which adapter.
        adapter: Arc<Adapter>,
        /// Through which I_T nexus.
        nexus: NexusId,
        /// The client's name for it.
        id: u64,
    },
}

/// What the client of an aborted command is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It was aborted on behalf of its own I_T nexus (ABORT TASK, ABORT TASK SET): response ABORTED.
    Aborted,
    /// A reset ended it: response RESET.
    Reset,
    /// Another I_T nexus had it aborted, or its logical unit is no longer there: status TASK ABORTED, which a driver tries again.
    TaskAborted,
}

/// Names a command that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommandRef {
    pub(crate) channel: u32,
    pub(crate) queue: QueueId,
    pub(crate) head: u16,
}

/// An answer on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Returned {
    pub(crate) queue: QueueId,
    pub(crate) head: u16,
    /// Tells it from answers for an earlier command of the same head.
    pub(crate) ticket: u64,
    pub(crate) ended: Ended,
}

mod sealed {
    /// What comes back to the channel.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Ended {
        Stored(bool),
        Aborted,
        Managed(device::scsi::Response),
    }

    pub trait Sealed {
        /// What a command is told whose errand nobody did.
        const LOST: Self;
        fn ended(self) -> Ended;
    }
}

pub(crate) use sealed::Ended;

/// What an errand can be answered with.
pub trait Reply: sealed::Sealed + Copy {}

impl Reply for bool {}
impl Reply for () {}
impl Reply for Response {}

impl sealed::Sealed for bool {
    const LOST: bool = false;
    fn ended(self) -> Ended {
        Ended::Stored(self)
    }
}

impl sealed::Sealed for () {
    const LOST: () = ();
    fn ended(self) -> Ended {
        Ended::Aborted
    }
}

impl sealed::Sealed for Response {
    const LOST: Response = Response::Failure;
    fn ended(self) -> Ended {
        Ended::Managed(self)
    }
}

/// The way back to the command that waits. Its queue cannot leave the channel before. Dropped unused, the command is told that its
/// errand failed.
#[derive(Debug)]
pub struct Answer<T: Reply> {
    inbox: Option<Arc<Inbox>>,
    queue: QueueId,
    head: u16,
    ticket: u64,
    kind: PhantomData<fn(T)>,
}

impl<T: Reply> Answer<T> {
    pub(crate) fn new(inbox: Arc<Inbox>, queue: QueueId, head: u16, ticket: u64) -> Answer<T> {
        Answer { inbox: Some(inbox), queue, head, ticket, kind: PhantomData }
    }

    /// Gives the answer. Any thread; does not wait.
    pub fn send(mut self, result: T) {
        self.post(result);
    }

    fn post(&mut self, result: T) {
        let Some(inbox) = self.inbox.take() else { return };
        let Answer { queue, head, ticket, .. } = *self;
        let ended = result.ended();
        inbox.post(Message::Returned(Returned { queue, head, ticket, ended }));
    }
}

impl<T: Reply> Drop for Answer<T> {
    fn drop(&mut self) {
        self.post(T::LOST);
    }
}
