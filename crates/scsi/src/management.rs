//! Task management (SAM-5, clause 7).
//!
//! A function is carried out in three steps, of which this crate does the first and the last:
//!
//! 1. [`Function::scope`] says whose commands are to be aborted.
//! 2. The caller takes no new commands of that scope, calls [`crate::Task::abort`] for each there is, on every channel, and waits until none
//!    is left: what is out at the volume ends with the volume's answer. So a write that was aborted happened or did not, and
//!    nothing of it happens after the function was answered.
//! 3. [`Function::finish`] changes the state of the logical unit and establishes the unit attentions. Then the function is answered.
//!
//! TAS is 1: a command that another I_T nexus aborted ends with TASK ABORTED ([`crate::Status::TaskAborted`]), and no unit attention says it
//! again (SAM-5 has COMMANDS CLEARED BY ANOTHER INITIATOR for TAS 0).

use crate::attention::Attention;
use crate::unit::Nexus;

/// A task management function (SAM-5, 7.2 to 7.12). CLEAR ACA is rejected: there is no ACA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// One command.
    AbortTask,
    /// All commands of the I_T nexus to the logical unit.
    AbortTaskSet,
    /// All commands to the logical unit.
    ClearTaskSet,
    /// The logical unit.
    LogicalUnitReset,
    /// Every logical unit of the target; the caller carries it out for each of them.
    TargetReset,
    /// All commands of the I_T nexus, to every logical unit; the caller carries it out for each of them.
    NexusReset,
    /// Is the command there?
    QueryTask,
    /// Is any command of the I_T nexus there?
    QueryTaskSet,
}

/// Whose commands to the logical unit end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Nobody's: the answer is whether there are any.
    Nobody,
    /// The named one.
    One,
    /// The I_T nexus's own.
    Own,
    /// Everybody's.
    Everybody,
}

impl Function {
    /// Whose commands end.
    #[must_use]
    pub fn scope(self) -> Scope {
        match self {
            Function::AbortTask => Scope::One,
            Function::AbortTaskSet | Function::NexusReset => Scope::Own,
            Function::ClearTaskSet | Function::LogicalUnitReset | Function::TargetReset => {
                Scope::Everybody
            }
            Function::QueryTask | Function::QueryTaskSet => Scope::Nobody,
        }
    }

    /// Changes the state of the logical unit when nothing of the scope is left.
    pub fn finish(self, nexus: &Nexus) {
        match self {
            Function::LogicalUnitReset => nexus.unit().reset(Attention::UnitReset),
            Function::TargetReset => nexus.unit().reset(Attention::TargetReset),
            Function::NexusReset => nexus.lost(),
            Function::AbortTask
            | Function::AbortTaskSet
            | Function::ClearTaskSet
            | Function::QueryTask
            | Function::QueryTaskSet => {}
        }
    }
}
