//! What the pool wants done, and what became of it.

use super::{Fault, Group};

/// What the pool wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Write to a PV.
    Write {
        /// For [`Pool::done`](super::Pool::done).
        op: u64,
        /// Number of the PV among the members.
        pv: u16,
        /// Byte of the PV.
        at: u64,
        /// What.
        what: Payload,
        /// On stable storage when it is done.
        durable: bool,
    },
    /// Read from a PV.
    Read {
        /// For [`Pool::done`](super::Pool::done).
        op: u64,
        /// Number of the PV among the members.
        pv: u16,
        /// Byte of the PV.
        at: u64,
        /// Bytes.
        bytes: u64,
        /// Whose it is.
        to: Reader,
    },
    /// A part of what a client reads is zeros.
    Zero {
        /// Its request.
        tag: u64,
        /// First byte, from the beginning of the request.
        from: u64,
        /// Bytes.
        bytes: u64,
    },
    /// A part of what a client reads is this.
    Give {
        /// Its request.
        tag: u64,
        /// First byte, from the beginning of the request.
        from: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// Copy from one PV to another.
    Copy {
        /// For [`Pool::done`](super::Pool::done).
        op: u64,
        /// Number of the PV and byte of it.
        from: (u16, u64),
        /// Number of the PV and byte of it.
        to: (u16, u64),
        /// Bytes.
        bytes: u64,
    },
    /// Make durable what was done on a PV before this.
    Flush {
        /// For [`Pool::done`](super::Pool::done).
        op: u64,
        /// Number of the PV among the members.
        pv: u16,
    },
    /// To be told as done when everything that channels had begun before this is over.
    Drain {
        /// For [`Pool::done`](super::Pool::done).
        op: u64,
    },
    /// The end of a request.
    Answer {
        /// The request.
        tag: u64,
        /// What became of it.
        result: Result<Reply, Fault>,
    },
}

/// What is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A block of the pool's own.
    Own(Vec<u8>),
    /// A part of a client's request, with zeros around it.
    Client {
        /// The request.
        tag: u64,
        /// First byte, from the beginning of the request.
        from: u64,
        /// Bytes of the request.
        bytes: u64,
        /// Zeros before them.
        before: u64,
        /// Zeros after them.
        after: u64,
    },
    /// So many zeros.
    Zeros(u64),
}

/// Who wants what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The pool: the bytes are told.
    Pool,
    /// The pool as well, which looks whether legs are the same: it gives way to clients as copies do.
    Check,
    /// A client, and the bytes are told first: they are held against checksums, and [given](Effect::Give) to its request.
    Verified,
    /// A client: they go to its request.
    Client {
        /// The request.
        tag: u64,
        /// First byte, from the beginning of the request.
        from: u64,
    },
}

/// What became of an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was done, and this is what the pool wanted to read.
    Bytes(Vec<u8>),
    /// It was not, or not altogether.
    Failed,
}

/// The answer to a request that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It was done.
    Done,
    /// The LU that was made.
    Created(u32),
    /// The PV that was added.
    Added(u16),
    /// The snapshots that were made, in the order of the LUs.
    Snapshots(Group),
}

impl Effect {
    /// What it is told as done by.
    pub fn number(&self) -> Option<u64> {
        match self {
            Effect::Write { op, .. }
            | Effect::Read { op, .. }
            | Effect::Copy { op, .. }
            | Effect::Flush { op, .. }
            | Effect::Drain { op } => Some(*op),
            Effect::Zero { .. } | Effect::Give { .. } | Effect::Answer { .. } => None,
        }
    }

    /// The PVs that it needs.
    pub fn pvs(&self) -> [Option<u16>; 2] {
        match self {
            Effect::Write { pv, .. } | Effect::Read { pv, .. } | Effect::Flush { pv, .. } => {
                [Some(*pv), None]
            }
            Effect::Copy { from, to, .. } => [Some(from.0), Some(to.0)],
            Effect::Zero { .. }
            | Effect::Give { .. }
            | Effect::Drain { .. }
            | Effect::Answer { .. } => [None, None],
        }
    }
}
