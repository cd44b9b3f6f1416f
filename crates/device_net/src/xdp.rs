//! An uplink's queue by AF_XDP: frames cross by rings in memory that is shared with the kernel, without an operation for each.
//!
//! ```text
//!   take_in ─► room ─► send ring ┐                          ┌─► received ring ─► relay ─► fill ring
//!                                └─ told: one write a turn ─┘
//! ```
//!
//! The kernel takes what is in the ring when it is told to, by a write of any bytes, of which one is under way at most: what comes meanwhile goes with the next. What it does not take although it
//! is told is taken back and counted: nothing waits in the ring for an interface that is down. There is no segmentation and no checksum on this way; both are done
//! before ([`switch::Takes`]).

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Mutex;

use channel::{Io, RunningQueue};
use memory::xdp::{Received, Rings};
use memory::{IoBuf, Lasting};
use protocol::stats::QueueCounter;
use switch::{Piece, Reason};
use uring::{Op, WriteFlags};

use crate::copy::{Source, write_piece};
use crate::counter_of;
use crate::line::{self, HEADER_BYTES};

/// Marks of its operations: the kernel was told that there is something to send; there may be more that came.
const TOLD: u16 = u16::MAX;
const GO_ON: u16 = u16::MAX - 1;
/// With so many entries in the ring that stand for frames which were taken back, none is added while the kernel takes none.
const VOID_MAX: u32 = 32;
/// How often the kernel is told again that takes nothing and says nothing.
const TRIES_MAX: u32 = 64;

/// A socket with the memory of its frames. Its rings stand where they stand, whichever channel has them: they are here while none does.
#[derive(Debug)]
pub struct XdpSocket {
    memory: OwnedFd,
    rings: Mutex<Option<Box<Xdp>>>,
}

impl XdpSocket {
    /// One that was opened just now.
    #[must_use]
    pub fn new(memory: OwnedFd) -> XdpSocket {
        XdpSocket { memory, rings: Mutex::default() }
    }

    /// A channel has its rings from now on.
    pub(crate) fn take(&self, socket: &OwnedFd) -> Result<Box<Xdp>, String> {
        let kept = self.rings.lock().expect("a panic ends the process").take();
        kept.map_or_else(|| Xdp::open(socket, &self.memory).map(Box::new), Ok)
    }

    /// … and no more.
    pub(crate) fn put_back(&self, rings: Box<Xdp>) {
        *self.rings.lock().expect("a panic ends the process") = Some(rings);
    }
}

/// Rings, and what is under way by them.
#[derive(Debug)]
pub(crate) struct Xdp {
    rings: Rings,
    pub(crate) received: Received,
    /// What is written to tell the kernel.
    word: Lasting,
    telling: bool,
    goes_on: bool,
    /// Why the kernel took nothing when it was told last.
    refused: Option<Reason>,
    /// How far it was.
    taken: u32,
    /// How often it took nothing and said nothing.
    tries: u32,
    /// Of those that it takes and that were not counted yet: so many did not leave.
    dropped: u64,
}

/// What the end of an operation means.
pub(crate) enum Ended {
    /// Frames that came are to be looked for.
    GoOn,
    /// There may be room to send again.
    Told,
    /// It was none of these.
    Other,
}

impl Xdp {
    /// The memory is that of the queue's descriptor.
    pub(crate) fn open(socket: &OwnedFd, memory: &OwnedFd) -> Result<Xdp, String> {
        let rings = Rings::new(socket.as_fd(), memory).map_err(|error| error.to_string())?;
        let word = Lasting::new(8).map_err(|error| error.to_string())?;
        let received = Received::default();
        Ok(Xdp {
            rings,
            received,
            word,
            telling: false,
            goes_on: false,
            refused: None,
            taken: 0,
            tries: 0,
            dropped: 0,
        })
    }

    /// Takes so many frames that came at most; whether these are all.
    pub(crate) fn receive(&mut self, most: u16, queue: &RunningQueue) -> bool {
        let lost = self.rings.receive(usize::from(most), HEADER_BYTES, &mut self.received);
        if lost > 0 {
            queue.count(counter_of(Reason::FullRing), lost);
        }
        self.received.len() < usize::from(most)
    }

    /// All that was received has been copied.
    pub(crate) fn give_back(&mut self) {
        self.rings.give_back(&mut self.received);
    }

    /// Looks for more in the next turn.
    pub(crate) fn go_on(&mut self, io: &mut Io, queue: &mut RunningQueue) -> bool {
        self.goes_on = self.goes_on || io.operate(queue, Op::Nop, GO_ON);
        self.goes_on
    }

    /// Puts a frame, or a part of one, into the ring.
    pub(crate) fn put(&mut self, source: Source<'_>, piece: &mut Piece<'_>) -> Result<(), Reason> {
        self.put_with(HEADER_BYTES + piece.len(), |room| {
            write_piece(source, piece, room, HEADER_BYTES);
        })
    }

    /// What was put last ends a frame of so many bytes, which is counted once the kernel has taken it.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.rings.mark(bytes);
    }

    /// The same of bytes as they are, which are not counted.
    pub(crate) fn put_bytes(&mut self, frame: &[u8]) -> Result<(), Reason> {
        self.put_with(HEADER_BYTES + frame.len(), |room| room[0].write(HEADER_BYTES, frame))
    }

    fn put_with(&mut self, bytes: usize, write: impl FnOnce(&[IoBuf])) -> Result<(), Reason> {
        let why = self.refused.unwrap_or(Reason::FullRing);
        if self.refused.is_some() && self.rings.void() >= VOID_MAX {
            return Err(why);
        }
        write(self.rings.room(bytes).ok_or(why)?);
        self.rings.push(HEADER_BYTES, bytes);
        Ok(())
    }

    /// Tells the kernel that there is something to send; false: it takes nothing now, for it is short of memory.
    pub(crate) fn tell(&mut self, io: &mut Io, queue: &mut RunningQueue) -> bool {
        let bufs = &[self.word.buf(0, 1).expect("it has a byte")];
        let flags = WriteFlags { nowait: true, ..WriteFlags::NONE };
        let write = Op::Write { file: queue.file(), bufs, offset: 0, flags };
        self.telling = self.telling || io.operate(queue, write, TOLD);
        self.telling
    }

    /// Whether the kernel is to be told, and was not.
    pub(crate) fn is_owed(&self) -> bool {
        !self.telling && !self.is_through()
    }

    /// Whether the kernel has taken all that was put, or will never.
    pub(crate) fn is_through(&self) -> bool {
        self.rings.under_way() == 0
    }

    /// An operation is over. What became of frames is counted.
    pub(crate) fn operated(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        mark: u16,
        result: i32,
    ) -> Ended {
        match mark {
            GO_ON => {
                self.goes_on = false;
                Ended::GoOn
            }
            TOLD => {
                self.telling = false;
                self.told(io, queue, result);
                Ended::Told
            }
            _ => Ended::Other,
        }
    }

    fn told(&mut self, io: &mut Io, queue: &mut RunningQueue, result: i32) {
        // The driver did not want one of those that were taken.
        self.dropped += u64::from(result == line::DROPPED);
        while let Some(bytes) = self.rings.sent() {
            if self.dropped > 0 {
                self.dropped -= 1;
                queue.count(counter_of(Reason::FullRing), 1);
                continue;
            }
            queue.count(QueueCounter::TxFrames, 1);
            queue.count(QueueCounter::TxBytes, bytes as u64);
        }
        let taken = self.rings.taken();
        let went_on = std::mem::replace(&mut self.taken, taken) != taken;
        if self.rings.left() == 0 {
            (self.refused, self.dropped, self.tries) = (None, 0, 0);
        } else if went_on || result == line::DROPPED || result == 0 && self.tries < TRIES_MAX {
            // As many as the kernel takes at once.
            self.refused = None;
            self.tries = if went_on { 0 } else { self.tries + 1 };
            self.tell(io, queue);
        } else {
            let reason = line::refused(result);
            (self.refused, self.tries) = (Some(reason), 0);
            while self.rings.withdraw().is_some() {
                queue.count(counter_of(reason), 1);
            }
        }
    }
}
