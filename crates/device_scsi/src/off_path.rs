//! What a command needs and a channel may not do, since it would block or concerns other channels.

use std::sync::Arc;

use channel::{Adapter, Answer, CommandRef, Reply};
use protocol::stats::StatsRegion;
use scsi::management::Function;
use scsi::{LogicalUnit, NexusId, Persistent};

use crate::Response;
use crate::control::Management;

/// What others do for the queues of one adapter.
pub struct Services {
    /// Takes an off-path request, on a channel's thread: it may not block.
    pub off_path: Box<dyn Fn(OffPath) + Send + Sync>,
    /// Where each channel counts what the adapter's LUNs do, if it is to.
    pub region: Option<Arc<StatsRegion>>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}

/// An off-path request. It is handed over on the channel's thread and done elsewhere; the command waits until its [`Answer`] comes.
#[derive(Debug)]
pub enum OffPath {
    /// Store the reservations of a unit so that they survive a power loss; whether that worked.
    Store {
        /// Of which unit.
        unit: Arc<LogicalUnit>,
        /// What to store.
        state: Box<Persistent>,
        /// For the command.
        answer: Answer<bool>,
    },
    /// Abort commands on every channel ([`channel::Channel::abort`]); answer when none is left.
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

impl Reply for Response {
    const LOST: Response = Response::Failure;
    fn word(self) -> u32 {
        self as u32
    }
}

/// What all channels are asked about the commands of a scope.
#[derive(Debug, Clone)]
pub enum Question {
    /// To end them; answered when none is left: how many there were.
    Abort(AbortScope),
    /// How many there are.
    Count(AbortScope),
}

/// Which commands.
#[derive(Debug, Clone)]
pub struct AbortScope {
    /// At which logical unit.
    pub unit: Arc<LogicalUnit>,
    /// Whose.
    pub target: AbortTarget,
    /// But for this one.
    pub except: Option<CommandRef>,
    /// What the client of such a command is told.
    pub reason: AbortReason,
}

/// Whose commands.
#[derive(Debug, Clone)]
pub enum AbortTarget {
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

/// Why a command is aborted, and so what its client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AbortReason {
    /// On behalf of its own I_T nexus (ABORT TASK, ABORT TASK SET): response ABORTED.
    Aborted,
    /// A reset ended it: response RESET.
    Reset,
    /// Another I_T nexus had it aborted, or its logical unit is no longer there: status TASK ABORTED, which a driver tries again.
    TaskAborted,
}

impl AbortReason {
    /// What a function's own client is told of its commands; none: it ends nothing.
    pub(crate) fn of(function: Function) -> Option<AbortReason> {
        match function {
            Function::QueryTask | Function::QueryTaskSet => None,
            Function::AbortTask | Function::AbortTaskSet | Function::ClearTaskSet => {
                Some(AbortReason::Aborted)
            }
            Function::LogicalUnitReset | Function::TargetReset | Function::NexusReset => {
                Some(AbortReason::Reset)
            }
        }
    }
}
