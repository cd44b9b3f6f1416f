//! Faults of the program that are put in on purpose, to see whether they are found.

/// A fault that is put in on purpose, and that a run has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Control {
    /// How it is called on the command line, and by whoever has it.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
}

/// Those of the control plane.
pub(crate) const CONTROL_CONTROLS: [Control; 5] = [
    Control { name: "said-first", what: "a state is said to be before it is kept" },
    Control { name: "store-unsynced", what: "the store is not synced when something is kept" },
    Control {
        name: "file-left",
        what: "files of volumes that are gone are left for those that come",
    },
    Control {
        name: "start-untold",
        what: "a data plane that was started is not told what it shall be",
    },
    Control { name: "never-again", what: "what a data plane could not do is not tried again" },
];

/// Those of pools.
pub(crate) const POOL_CONTROLS: [Control; 3] = [
    Control {
        name: "pv-unflushed",
        what: "what a pool needs to be durable is not flushed on its PVs",
    },
    Control {
        name: "shadow-unkept",
        what: "a first write is answered and is in no memory that survives the process",
    },
    Control {
        name: "legs-unordered",
        what: "writes to the same place go to both legs in any order",
    },
];

/// The controls.
pub(crate) const CONTROLS: [Control; 24] = [
    Control { name: "no-inflight", what: "a queue starts again without its in-flight region" },
    Control {
        name: "inflight-early",
        what: "the in-flight region is cleared before the used index moves",
    },
    Control { name: "notification-lost", what: "one notification in forty does not arrive" },
    Control { name: "arm-blindly", what: "a queue is armed without a second look at its ring" },
    Control {
        name: "no-lock",
        what: "a volume is opened while an earlier process's writes are under way",
    },
    Control { name: "short-is-whole", what: "a transfer that was cut short counts as done" },
    Control {
        name: "manage-early",
        what: "a task management function is carried out before its client's queues are back",
    },
    Control {
        name: "abort-taken-only",
        what: "an abort does not see what was not taken from the ring",
    },
    Control {
        name: "once-again",
        what: "a command that may happen once is done again after a death",
    },
    Control { name: "shared-lock", what: "nobody waits for an earlier process's reads" },
    Control { name: "flush-early", what: "a flush is answered before anything was written back" },
    Control {
        name: "one-file",
        what: "lanes share an open file, so that one takes the error another one's flush is to tell",
    },
    Control {
        name: "one-pool",
        what: "all queues of a channel take their segment lists from one pool",
    },
    Control { name: "permit-held", what: "a write keeps its permit while a limit holds it back" },
    Control {
        name: "removal-waits",
        what: "commands that a limit holds back are waited for when their adapter is removed",
    },
    Control {
        name: "cut-running",
        what: "a volume is made smaller while writes that were judged by its old size are under way",
    },
    Control {
        name: "unit-anew",
        what: "a unit that is made anew forgets the reservations that were not to survive a power loss",
    },
    Control {
        name: "preempt-leaves",
        what: "PREEMPT AND ABORT is answered while writes of who is shut out are under way",
    },
    Control { name: "kept-nowhere", what: "reservations are not kept before they are answered" },
    Control {
        name: "kept-unsynced",
        what: "reservations are answered before what keeps them is on the disk",
    },
    Control {
        name: "kept-unsettled",
        what: "reservations that a process which died had not brought to the disk are relied on",
    },
    Control { name: "abort-uncounted", what: "commands that a function has ended are not counted" },
    Control { name: "passing-fails", what: "what the kernel cannot do now has failed for good" },
    Control { name: "abort-neighbours", what: "ABORT TASK SET ends the commands of all clients" },
];
