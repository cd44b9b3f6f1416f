//! The types of the waist: [`Request`], [`Volume`], [`Lane`] and what they answer.

use std::time::Instant;

use memory::IoBuf;
use uring::Ring;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    /// Fills the buffers from the volume.
    Read,
    /// Writes the buffers to the volume.
    Write {
        /// Force unit access: durable before it is answered.
        fua: bool,
    },
    /// Makes every write durable that was completed before.
    Flush,
    /// Gives the range back; what it reads as afterwards is undefined.
    Discard,
    /// Makes the range read as zeroes.
    WriteZeroes {
        /// The space may be given back.
        unmap: bool,
        /// Durable before it is answered.
        fua: bool,
    },
}

impl OpKind {
    /// Whether the operation changes the volume.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, OpKind::Write { .. } | OpKind::Discard | OpKind::WriteZeroes { .. })
    }
}

/// The caller's name for a request; volumes only hand it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u32);

/// One request. The caller keeps `bufs` until the request is finished.
#[derive(Debug)]
pub struct Request<'a> {
    /// What to do.
    pub op: OpKind,
    /// First byte of the volume.
    pub offset: u64,
    /// Number of bytes; 0 for a flush.
    pub len: u64,
    /// The client's memory; empty unless it is a read or a write.
    pub bufs: &'a [IoBuf],
    /// The caller's name for it.
    pub tag: Tag,
    /// Bytes finished by earlier rounds ([`Outcome::Again`]); 0 at first. A lane goes on behind them.
    pub done: u64,
    /// One bit for each wrapper that has let the request through, by its depth; 0 at first. It survives parking, so that a
    /// limit counts a request once. The last bit is the volume's own.
    pub passed: u8,
}

/// Wrappers around a volume at most: bits of [`Request::passed`].
pub(crate) const DEPTH_MAX: u8 = 7;

/// What became of a submitted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submit {
    /// Served; no [`Finish`] follows.
    Done(Result<(), IoError>),
    /// Begun; a [`Finish`] follows.
    Pending,
    /// The same, by somebody else, which may take long: whoever counts waits counts this one.
    Held {
        /// What it waits for.
        reason: Wait,
    },
    /// Not begun: submit it again at `until`, or, where that is `None`, when something of this lane completes.
    Park {
        /// What it waits for.
        reason: Wait,
        /// When to try again.
        until: Option<Instant>,
    },
}

/// Why a request waits. Each is a counter in the statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wait {
    /// A limit on IOPS or bandwidth.
    Throttled,
    /// No bounce buffer is free.
    NoDma,
    /// The back end takes no more requests now.
    BackEndFull,
    /// A modelled service time.
    Delay,
    /// Its pool: a first write, zeroes, a discard, a flush.
    Pool,
    /// Space in its pool.
    PoolFull,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum IoError {
    /// The medium failed.
    #[error("input/output error")]
    Io,
    /// The file system under the volume is full.
    #[error("no space left")]
    NoSpace,
    /// The volume cannot do this.
    #[error("not supported by this volume")]
    Unsupported,
    /// Outside of the volume.
    #[error("beyond the end of the volume")]
    OutOfRange,
    /// The volume is read-only.
    #[error("the volume is read-only")]
    ReadOnly,
    /// The file or device is no longer there.
    #[error("the volume's file or device is gone")]
    Gone,
    /// Somebody else has taken the device over, and nothing of it was done.
    #[error("another host has taken the volume's device over")]
    Fenced,
}

/// The end of a request that was [`Submit::Pending`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finish {
    /// Which request.
    pub tag: Tag,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a round of a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is finished.
    Done(Result<(), IoError>),
    /// Only the first `done` bytes are: submit the request again with this figure.
    Again {
        /// Bytes finished from the start of the request.
        done: u64,
    },
}

/// Shape and abilities of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Capacity in bytes, a multiple of `block_size`.
    pub bytes: u64,
    /// Smallest unit of a request in bytes: 512 or 4096.
    pub block_size: u32,
    /// Unit in which the medium writes without reading first, in bytes; at least `block_size`.
    pub physical_block_size: u32,
    /// Preferred size of a request in bytes; 0: none.
    pub optimal_io_size: u32,
    /// Whether [`OpKind::Discard`] does anything.
    pub discard: bool,
    /// Whether [`OpKind::WriteZeroes`] is served.
    pub write_zeroes: bool,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether a completed write may be lost in a power failure until a flush.
    pub write_cache: bool,
}

/// Why a volume could not be opened, resized, or given a lane.
#[derive(Debug, thiserror::Error)]
#[error("volume {volume}: {what}{}{}",
    .source.as_ref().map(|source| format!(": {source}")).unwrap_or_default(),
    .help.as_ref().map(|help| format!("; {help}")).unwrap_or_default())]
pub struct VolumeError {
    /// The volume's name.
    pub volume: String,
    /// What is wrong.
    pub what: String,
    /// What mends it.
    pub help: Option<String>,
    /// The kernel's reason, if it was one.
    #[source]
    pub source: Option<std::io::Error>,
}

/// Which lane of a channel: the upper 16 bits of the `user_data` of all its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub u16);

impl LaneId {
    const SHIFT: u32 = 48;
    /// The part of `user_data` that is the lane's own.
    pub const TOKEN_MASK: u64 = (1 << Self::SHIFT) - 1;
    /// The token of a completion that the lane makes itself ([`uring::Ring::note`]), and that is work on the channel's thread: a round of long copies. The
    /// channel hands it to the lane when everybody else had their turn, and one lane's in a turn. At most one of a lane is under way.
    pub const TICK: u64 = Self::TOKEN_MASK - 2;

    /// `user_data` for an operation of this lane. `token` must fit 48 bits.
    #[inline]
    #[must_use]
    pub fn user_data(self, token: u64) -> u64 {
        debug_assert!(token <= Self::TOKEN_MASK);
        u64::from(self.0) << Self::SHIFT | token
    }

    /// Lane and token of a completion's `user_data`.
    #[inline]
    #[must_use]
    pub fn split(user_data: u64) -> (LaneId, u64) {
        (LaneId((user_data >> Self::SHIFT) as u16), user_data & Self::TOKEN_MASK)
    }
}

/// Whose the operations of a lane are: a channel's lane, or a part of one that has several files. A part's tokens have its number above their 36 bits; the lane
/// hands them on by it ([`Seat::of`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    id: LaneId,
    part: u16,
}

impl Seat {
    const SHIFT: u32 = 36;
    /// What a part may have of a token.
    pub(crate) const MASK: u64 = (1 << Self::SHIFT) - 1;
    /// The number of the last part; what lies above is a lane's own.
    pub const LAST: u16 = (1 << 12) - 2;

    /// A part of a lane.
    ///
    /// # Panics
    ///
    /// When there are more than [`Seat::LAST`] before it: an own defect.
    #[must_use]
    pub fn part(id: LaneId, part: u16) -> Seat {
        assert!(part <= Self::LAST, "a lane has no so many parts");
        Seat { id, part }
    }

    /// `user_data` for an operation of this part.
    #[inline]
    #[must_use]
    pub fn user_data(self, token: u64) -> u64 {
        if token == LaneId::TICK {
            // Of the lane as a whole.
            return self.id.user_data(token);
        }
        self.id.user_data(u64::from(self.part) << Self::SHIFT | token & Self::MASK)
    }

    /// Part, and what it knows the operation by, of a lane's token.
    #[inline]
    #[must_use]
    pub fn of(token: u64) -> (u16, u64) {
        ((token >> Self::SHIFT) as u16, token & Self::MASK)
    }
}

impl From<LaneId> for Seat {
    fn from(id: LaneId) -> Seat {
        Seat { id, part: 0 }
    }
}

/// Anything that can be read and written by block. Shared by all threads.
pub trait Volume: Send + Sync {
    /// Shape and abilities now. May change by [`Volume::resize`] or with the device underneath.
    fn geometry(&self) -> Geometry;

    /// What is wrong with it although it is open, for people: its file was removed, for example. Never waits.
    fn trouble(&self) -> Option<String>;

    /// A write was lost, and writes and flushes fail since.
    fn lost(&self) -> bool {
        false
    }

    /// What is in it is gone when it is closed: its file was removed, which is among its troubles. Never waits.
    fn removed(&self) -> bool {
        false
    }

    /// Makes a channel's way to the volume. Called on the channel's thread; files are registered with `ring`.
    ///
    /// # Errors
    ///
    /// When the ring has no room for another file, or memory is short.
    fn lane(&self, ring: &mut Ring, id: LaneId) -> Result<Box<dyn Lane>, VolumeError>;

    /// Changes the capacity; geometry shows it when this returns. Requests beyond a new, smaller end fail, and what lies there is
    /// lost: the caller makes sure that this is wanted. No lane may be there then, because what was judged by the old size could be
    /// under way.
    ///
    /// # Errors
    ///
    /// When the volume cannot change its size, or not to this one.
    fn resize(&self, bytes: u64) -> Result<(), VolumeError>;
}

/// One channel's way to a volume. Lives on the channel's thread.
pub trait Lane {
    /// Begins a request. `ring` has room for at least `<dyn Lane>::SQES` operations; whatever is pushed is submitted by the caller once per turn.
    fn submit(&mut self, ring: &mut Ring, request: &mut Request<'_>) -> Submit;

    /// Takes the completion of an operation of this lane and appends what it finished to `out` (room is provided).
    fn complete(&mut self, ring: &mut Ring, token: u64, result: i32, out: &mut Vec<Finish>);

    /// Gives the lane's files back to the ring. Called once, with nothing in flight.
    fn detach(&mut self, ring: &mut Ring);
}

impl dyn Lane {
    /// How many ring entries one call of [`Lane::submit`] or [`Lane::complete`] may use.
    pub const SQES: usize = 2;
}
