//! The operations that a ring can do, and how each becomes a submission entry.

use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::{opcode, types};
use memory::IoBuf;

use crate::files::FileSlot;

/// How a write is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteFlags {
    /// The completion comes when the data would survive a power failure (`RWF_DSYNC`).
    pub dsync: bool,
    /// As [`Op::Read::nowait`].
    pub nowait: bool,
}

impl WriteFlags {
    /// A plain write.
    pub const NONE: WriteFlags = WriteFlags { dsync: false, nowait: false };
    /// A write that is durable when it completes.
    pub const DSYNC: WriteFlags = WriteFlags { dsync: true, nowait: false };

    fn bits(self) -> i32 {
        (if self.dsync { libc::RWF_DSYNC } else { 0 }) | nowait(self.nowait)
    }
}

fn nowait(set: bool) -> i32 {
    if set { libc::RWF_NOWAIT } else { 0 }
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub enum Op<'a> {
    /// Reads from `offset` on into `bufs`, in their order.
    Read {
        /// The file.
        file: FileSlot,
        /// At most [`Op::MAX_BUFS`] pieces; the slice is needed during the call only.
        bufs: &'a [IoBuf],
        /// Position in bytes; 0 for a file without positions.
        offset: u64,
        /// Completes with `-EAGAIN` where the kernel would give it to one of its workers, which waits (`RWF_NOWAIT`), and with
        /// `-EOPNOTSUPP` where the file system cannot tell.
        nowait: bool,
    },
    /// Writes `bufs`, in their order, from `offset` on.
    Write {
        /// The file.
        file: FileSlot,
        /// At most [`Op::MAX_BUFS`] pieces; the slice is needed during the call only.
        bufs: &'a [IoBuf],
        /// Position in bytes; 0 for a file without positions.
        offset: u64,
        /// Durability.
        flags: WriteFlags,
    },
    /// Receives one message of a socket into `bufs`, in their order, without waiting: completes with `-EAGAIN` where there is none.
    Receive {
        /// The socket.
        file: FileSlot,
        /// One or two pieces; the slice is needed during the call only.
        bufs: &'a [IoBuf],
        /// [`crate::message::ENVELOPE_BYTES`] from a multiple of 8 on, until the completion the kernel's as `bufs` are: with what came beside the message it is
        /// read by [`crate::message::beside`].
        envelope: IoBuf,
    },
    /// `fdatasync`: all writes to the file that completed before this was submitted, by whichever
    /// thread, are durable when it completes.
    DataSync {
        /// The file.
        file: FileSlot,
    },
    /// `fallocate(2)`.
    Fallocate {
        /// The file.
        file: FileSlot,
        /// `FALLOC_FL_*`.
        mode: i32,
        /// Position in bytes.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// A completion each time the file becomes readable, until one says that no more will come.
    ///
    /// The trigger is the wake-up and not the state: an eventfd that was written once and not
    /// read gives one completion, and one more for each further write.
    PollMulti {
        /// The file, an eventfd mostly.
        file: FileSlot,
    },
    /// Adds 1 to an eventfd. Never waits, whatever others do to the counter and to the flags of the file: if it is full the
    /// operation stays in flight, and on a file without `O_NONBLOCK` a worker of the kernel does it.
    Notify {
        /// The eventfd.
        file: FileSlot,
    },
    /// Completes with `-ETIME` after this time, or with `-ECANCELED`.
    Timeout {
        /// From the submission on, on the monotonic clock.
        after: Duration,
    },
    /// Cancels one operation with this user data. Completes with 0, or `-ENOENT` when there is
    /// none, or `-EALREADY` when it is too late. The cancelled operation completes on its own.
    Cancel {
        /// The user data of the operation to cancel.
        user_data: u64,
    },
    /// Completes with 0.
    Nop,
}

impl Op<'_> {
    /// The most pieces that one read or write can have (the kernel's `UIO_MAXIOV`). More is the
    /// caller's to split.
    pub const MAX_BUFS: usize = 1024;
}

/// The opcodes that a restricted ring accepts: exactly those that [`Op`] becomes.
pub(crate) const OPCODES: &[u8] = &[
    opcode::Read::CODE,
    opcode::Readv::CODE,
    opcode::Write::CODE,
    opcode::Writev::CODE,
    opcode::RecvMsg::CODE,
    opcode::Fsync::CODE,
    opcode::Fallocate::CODE,
    opcode::PollAdd::CODE,
    opcode::Timeout::CODE,
    opcode::AsyncCancel::CODE,
    opcode::Nop::CODE,
];

/// The kernel moves at most this much at once (`MAX_RW_COUNT`); it cuts longer transfers short, and
/// so does the 32-bit length of a submission entry.
const MAX_RW_BYTES: usize = 0x7fff_f000;

fn rw_len(buf: IoBuf) -> u32 {
    // Bounded by the line above it, so it fits.
    buf.len().min(MAX_RW_BYTES) as u32
}

fn fixed(file: FileSlot) -> types::Fixed {
    types::Fixed(file.0)
}

/// A number of pieces as the kernel wants it; `push` has bounded it by `MAX_BUFS`.
fn count(pieces: usize) -> u32 {
    debug_assert!(pieces <= Op::MAX_BUFS);
    pieces as u32
}

/// Where the pieces of a vectored operation lie until the submission: (address, count).
pub(crate) type Vector = (*const IoBuf, usize);

pub(crate) fn read(
    file: FileSlot,
    bufs: &[IoBuf],
    vector: Option<Vector>,
    offset: u64,
    nowait: bool,
) -> Entry {
    let flags = self::nowait(nowait);
    match vector {
        Some((at, pieces)) => opcode::Readv::new(fixed(file), at.cast(), count(pieces))
            .offset(offset)
            .rw_flags(flags)
            .build(),
        None => {
            let buf = bufs.first().copied().unwrap_or(IoBuf::EMPTY);
            opcode::Read::new(fixed(file), buf.as_ptr(), rw_len(buf))
                .offset(offset)
                .rw_flags(flags)
                .build()
        }
    }
}

pub(crate) fn write(
    file: FileSlot,
    bufs: &[IoBuf],
    vector: Option<Vector>,
    offset: u64,
    flags: WriteFlags,
) -> Entry {
    match vector {
        Some((at, pieces)) => opcode::Writev::new(fixed(file), at.cast(), count(pieces))
            .offset(offset)
            .rw_flags(flags.bits())
            .build(),
        None => {
            let buf = bufs.first().copied().unwrap_or(IoBuf::EMPTY);
            opcode::Write::new(fixed(file), buf.as_ptr(), rw_len(buf))
                .offset(offset)
                .rw_flags(flags.bits())
                .build()
        }
    }
}

pub(crate) fn receive(file: FileSlot, message: *mut libc::msghdr) -> Entry {
    opcode::RecvMsg::new(fixed(file), message).flags(libc::MSG_DONTWAIT as u32).build()
}

/// What a notification adds, as an eventfd wants it.
static ONE: u64 = 1;

pub(crate) fn notify(file: FileSlot) -> Entry {
    opcode::Write::new(fixed(file), (&raw const ONE).cast(), 8).build()
}

pub(crate) fn data_sync(file: FileSlot) -> Entry {
    opcode::Fsync::new(fixed(file)).flags(types::FsyncFlags::DATASYNC).build()
}

pub(crate) fn fallocate(file: FileSlot, mode: i32, offset: u64, len: u64) -> Entry {
    opcode::Fallocate::new(fixed(file), len).offset(offset).mode(mode).build()
}

pub(crate) fn poll_multi(file: FileSlot) -> Entry {
    opcode::PollAdd::new(fixed(file), libc::POLLIN as u32).multi(true).build()
}

/// The operations without a file carry the fixed-file flag too: a restricted ring demands it of
/// every entry, and the kernel looks at it only where the operation has a file.
pub(crate) fn timeout(after: *const types::Timespec) -> Entry {
    opcode::Timeout::new(after).build().flags(Flags::FIXED_FILE)
}

pub(crate) fn cancel(user_data: u64) -> Entry {
    opcode::AsyncCancel::new(user_data).build().flags(Flags::FIXED_FILE)
}

pub(crate) fn nop() -> Entry {
    opcode::Nop::new().build().flags(Flags::FIXED_FILE)
}

pub(crate) fn timespec(after: Duration) -> types::Timespec {
    types::Timespec::new().sec(after.as_secs()).nsec(after.subsec_nanos())
}
