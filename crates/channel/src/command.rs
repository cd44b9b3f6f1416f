//! A command: one request in flight, in the slot of its descriptor head.

use block::OpKind;
use memory::IoBuf;

use crate::lists::{ListId, Lists};

/// Segments that fit the slot itself: header, two of data, status.
pub const INLINE: usize = 4;

/// Where a command stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The slot is free.
    Free,
    /// Taken; waits until fewer of its queue are active.
    Held,
    /// Taken; its chain was not read yet, because no long list was free, or is to be read again.
    Unread,
    /// Its handler waits for something other than its lane.
    Paused,
    /// Judged; waits for a second submission to its lane.
    Parked,
    /// With the lane.
    Submitted,
}

/// One slot: two cache lines of its own, so that the pools of two channels never meet in one. A queue of 256 has 32 KiB of them.
#[derive(Debug, Clone)]
#[repr(align(128))]
pub struct Command {
    /// The chain's segments, if they fit.
    pub bufs: [IoBuf; INLINE],
    /// Where the handler's status goes; empty when the chain has no place for it, or more than one.
    pub status: IoBuf,
    /// First byte of the volume.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// Bytes finished by earlier rounds. A chain has at most 2^32 bytes with header and status, a range 2^30, so 32 bits are enough.
    pub done: u32,
    /// When it was taken and when it went to its lane, in ticks.
    pub(crate) taken: u64,
    pub(crate) submitted: u64,
    /// Data is `first..end` of the segments.
    pub first: u16,
    /// See `first`.
    pub end: u16,
    pub(crate) list: Option<ListId>,
    /// What the volume is asked.
    pub op: OpKind,
    pub(crate) state: State,
    pub(crate) passed: u8,
}

const _: () = assert!(size_of::<Command>() == 128);

impl Command {
    /// A free slot.
    pub const FREE: Command = Command {
        bufs: [IoBuf::EMPTY; INLINE],
        status: IoBuf::EMPTY,
        offset: 0,
        len: 0,
        done: 0,
        taken: 0,
        submitted: 0,
        first: 0,
        end: 0,
        list: None,
        op: OpKind::Flush,
        state: State::Free,
        passed: 0,
    };

    /// The slots of a queue.
    #[must_use]
    pub fn pool(queue_size: u16) -> Box<[Command]> {
        vec![Command::FREE; usize::from(queue_size)].into_boxed_slice()
    }

    /// Where it stands.
    #[inline]
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// All places for segments.
    #[inline]
    pub fn all<'a>(&'a mut self, lists: &'a mut Lists) -> &'a mut [IoBuf] {
        match self.list {
            None => &mut self.bufs,
            Some(list) => lists.get(list),
        }
    }

    /// The data segments.
    #[inline]
    pub fn data<'a>(&'a self, lists: &'a mut Lists) -> &'a [IoBuf] {
        let range = usize::from(self.first)..usize::from(self.end);
        match self.list {
            None => &self.bufs[range],
            Some(list) => &lists.get(list)[range],
        }
    }

    /// Its request is another one than before, of which nothing is done. `passed`: who has let it through all the same
    /// ([`block::Request::passed`]).
    #[inline]
    pub fn ask(&mut self, op: OpKind, offset: u64, len: u64, passed: u8) {
        (self.op, self.offset, self.len) = (op, offset, len);
        (self.done, self.passed) = (0, passed);
    }

    /// Nobody has let its request through.
    pub fn let_through_by_nobody(&mut self) {
        self.passed = 0;
    }

    /// Who has let its request through.
    #[must_use]
    pub fn passed(&self) -> u8 {
        self.passed
    }
}
