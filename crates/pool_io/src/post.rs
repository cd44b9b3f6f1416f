//! What lanes and the pools' thread send each other.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use block::{IoError, OpKind, Tag, VolumeError};
use memory::IoBuf;
use pool::format::Superblock;
use pool::{Fault, Layout, NewPv, Reply, Request};
use rustix::event::{EventfdFlags, eventfd};
use spec::FullSpec;

use crate::PoolError;
use crate::findings::ScrubView;
use crate::table::{OpenPv, Progress, Shared, Table, locked};
use crate::turns;
use crate::work::Work;

/// What wakes a ring that reads it.
#[derive(Debug)]
pub(crate) struct Bell(pub(crate) OwnedFd);

impl Bell {
    pub(crate) fn new() -> std::io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC)?))
    }

    pub(crate) fn ring(&self) {
        turns::rings();
        // It fails when 2^64 rings were not read: then it is rung as it is.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// A request of a lane.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) from: Arc<LaneBox>,
    pub(crate) tag: Tag,
    pub(crate) op: OpKind,
    pub(crate) lu: u32,
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    /// The client's memory for a read or write. It is there until the answer, as for any request in flight.
    pub(crate) bufs: Box<[IoBuf]>,
}

impl Ask {
    /// Sets a part of the client's memory, from a byte of the request on.
    pub(crate) fn put(&self, from: u64, what: IoBuf) {
        let mut at = 0;
        walk(&self.bufs, from, what.len() as u64, |piece| {
            piece.copy_from(what.slice(at, piece.len()));
            at += piece.len();
        });
    }

    /// Sets it to bytes that were looked at.
    pub(crate) fn put_bytes(&self, from: u64, what: &[u8]) {
        let mut at = 0;
        walk(&self.bufs, from, what.len() as u64, |piece| {
            piece.write(0, &what[at..at + piece.len()]);
            at += piece.len();
        });
    }

    /// Sets a part of it to zeros.
    pub(crate) fn zero(&self, from: u64, bytes: u64) {
        walk(&self.bufs, from, bytes, |piece| piece.fill(0));
    }

    /// Copies a part of it.
    pub(crate) fn take(&self, from: u64, to: IoBuf) {
        let mut at = 0;
        walk(&self.bufs, from, to.len() as u64, |piece| {
            to.slice(at, piece.len()).copy_from(piece);
            at += piece.len();
        });
    }
}

/// Calls `each` with the parts of `bufs` that hold the bytes from `skip` on, `limit` at most; how many bytes that were.
pub(crate) fn walk(bufs: &[IoBuf], mut skip: u64, limit: u64, mut each: impl FnMut(IoBuf)) -> u64 {
    let mut seen = 0;
    for buf in bufs {
        let len = buf.len() as u64;
        if skip >= len {
            skip -= len;
            continue;
        }
        let take = (len - skip).min(limit - seen);
        if take == 0 {
            break;
        }
        // Both are at most the buffer's length.
        each(buf.slice(skip as usize, take as usize));
        (skip, seen) = (0, seen + take);
    }
    seen
}

/// The end of one.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) tag: Tag,
    pub(crate) result: Result<(), IoError>,
}

/// Where a lane finds its answers.
#[derive(Debug)]
pub(crate) struct LaneBox {
    answers: Mutex<Vec<Answered>>,
    pub(crate) bell: Bell,
}

impl LaneBox {
    pub(crate) fn new() -> std::io::Result<LaneBox> {
        Ok(LaneBox { answers: Mutex::default(), bell: Bell::new()? })
    }

    /// Leaves an answer. Whether it is the first, for which the bell has to be rung: whoever hears it takes all.
    pub(crate) fn post(&self, answered: Answered) -> bool {
        let mut answers = locked(&self.answers);
        answers.push(answered);
        answers.len() == 1
    }

    pub(crate) fn take(&self) -> Vec<Answered> {
        std::mem::take(&mut *locked(&self.answers))
    }
}

/// An LU that is to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// This one.
    Number(u32),
    /// A new one, or that which was made when it was asked for with this mark.
    New { chunks: u32, thick: bool, sums: bool, tier: u8, asked: u64 },
    /// … which holds what this snapshot holds.
    Clone { snapshot: u32, asked: u64 },
}

/// Where an answer goes that somebody waits for.
pub(crate) type ReplyTo<T> = SyncSender<T>;

/// A pool that serves; or why it does not, and the PV on which it failed, if it may open without that.
pub(crate) type Served = Result<Arc<Shared>, (PoolError, Option<PathBuf>)>;

/// What the thread is told.
pub(crate) enum Message {
    /// Make a way to a PV; the number of the thread's lane.
    Attach(OpenPv, ReplyTo<Result<u16, VolumeError>>),
    /// Give it up.
    Detach(u16),
    /// An operation on one, on memory of its own, which comes back.
    Io {
        lane: u16,
        op: OpKind,
        offset: u64,
        data: Vec<u8>,
        reply: ReplyTo<(Result<(), IoError>, Vec<u8>)>,
    },
    /// Serve a pool that was opened.
    Serve(Box<Work>, ReplyTo<Served>),
    /// A request of a lane.
    Ask(Arc<Shared>, Ask),
    /// Channels have taken most of what an LU offers, or written much of which nothing is known: what they have written is learnt before anything else.
    Taken(Arc<Shared>, u32),
    /// A PV has told a channel that another server has it.
    Fenced(Arc<Shared>),
    /// What holds where it is full, or nearly so; LUs for whose reserve there is no room are told, if somebody waits for that, and else get it.
    WhenFull(Arc<Shared>, FullSpec, Option<ReplyTo<Vec<u32>>>),
    /// What a copy of a whole LU wants beside reads and writes.
    OfCopy(Arc<Shared>, OfCopy),
    /// A request to the core.
    Core(Arc<Shared>, Request, ReplyTo<Result<Reply, Fault>>),
    /// An LU.
    Lu(Arc<Shared>, Wanted, ReplyTo<Result<Arc<Table>, Fault>>),
    /// The superblock that counts.
    Superblock(Arc<Shared>, ReplyTo<Superblock>),
    /// Add a PV to which there is that lane.
    Join(Arc<Shared>, (OpenPv, u16, NewPv), ReplyTo<Result<(), PoolError>>),
    /// Make room for what is known of the chunks of a PV that is about to have so many.
    Room(Arc<Shared>, (u16, u32), ReplyTo<Result<(), String>>),
    /// Let go of a PV that is away, unless operations are under way there: whether nothing holds it any more.
    LetGo(Arc<Shared>, u16, ReplyTo<bool>),
    /// A PV that is away is there again, to which there is that lane.
    Return(Arc<Shared>, u16, (OpenPv, u16), ReplyTo<Result<(), PoolError>>),
    /// Begin to remove a PV, by number of the member; whether it was promised, and waits for room.
    Leave(Arc<Shared>, (u16, bool), ReplyTo<Result<(), Fault>>),
    /// Detach an LU, or have that stop; asked again, how far it is.
    Part(Arc<Shared>, Parting, ReplyTo<Result<Option<Progress>, Fault>>),
    /// Begin a scrub, end it, or say how far it is.
    Scrub(Arc<Shared>, Scrubs, ReplyTo<Result<ScrubView, Fault>>),
    /// How what an LU has lies on the PVs.
    Layout(Arc<Shared>, u32, ReplyTo<Option<Layout>>),
    /// Close a pool when nothing of it is under way.
    Close(Arc<Shared>, ReplyTo<()>),
    /// End.
    Exit,
}

/// What a copy of a whole LU wants.
pub(crate) enum OfCopy {
    /// Its requests that wait for space are not to any more.
    CallBack(Arc<LaneBox>),
    /// The first chunk of an LU or a snapshot from this one on that may hold something; not too far away.
    Holds((u32, u32), ReplyTo<u32>),
}

/// An LU that is to share nothing any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parting {
    pub(crate) lu: u32,
    /// A number of the asker's own: what went wrong is told to him alone.
    pub(crate) id: u64,
    /// It is to go on sharing.
    pub(crate) stops: bool,
}

/// All that is written is read from every leg.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scrubs {
    /// A number of the asker's own: what became of it is told to him alone.
    pub(crate) id: u64,
    /// It is to end.
    pub(crate) stops: bool,
}

/// Where the thread finds what it is told.
pub(crate) struct Inbox {
    /// None when the thread has ended.
    messages: Mutex<Option<Vec<Message>>>,
    pub(crate) bell: Arc<Bell>,
}

impl Inbox {
    pub(crate) fn new(bell: Arc<Bell>) -> Inbox {
        Inbox { messages: Mutex::new(Some(Vec::new())), bell }
    }

    /// The bell is rung with the first message alone: whoever hears it takes all.
    pub(crate) fn post(&self, message: Message) {
        let mut messages = locked(&self.messages);
        let Some(all) = &mut *messages else { return };
        let first = all.is_empty();
        all.push(message);
        drop(messages);
        if first {
            self.bell.ring();
        }
    }
}

/// The thread's end of its inbox.
pub(crate) struct Mail(pub(crate) Arc<Inbox>);

impl Mail {
    /// All that came, in the order in which it came.
    pub(crate) fn take(&self) -> Vec<Message> {
        locked(&self.0.messages).as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// However the thread ends, nobody is left waiting for it.
impl Drop for Mail {
    fn drop(&mut self) {
        let left = locked(&self.0.messages).take();
        drop(left);
    }
}
