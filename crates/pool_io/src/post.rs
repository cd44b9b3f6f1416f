//! What lanes and the pools' thread send each other.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, SyncSender};
use std::sync::{Arc, Mutex};

use block::{IoError, OpKind, Tag};
use memory::IoBuf;
use pool::{Fault, Reply, Request};
use rustix::event::{EventfdFlags, eventfd};

use crate::PoolError;
use crate::table::{OpenPv, Shared, Table, locked};
use crate::thread::Opening;

/// What wakes a ring that reads it.
#[derive(Debug)]
pub(crate) struct Bell(pub(crate) OwnedFd);

impl Bell {
    pub(crate) fn new() -> std::io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC)?))
    }

    pub(crate) fn ring(&self) {
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
    /// What is to be written, or has been read.
    pub(crate) data: Vec<u8>,
    /// Where the lane puts what was read.
    pub(crate) bufs: Vec<IoBuf>,
}

/// The end of one.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) tag: Tag,
    pub(crate) result: Result<(), IoError>,
    pub(crate) data: Vec<u8>,
    pub(crate) bufs: Vec<IoBuf>,
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

    pub(crate) fn post(&self, answered: Answered) {
        locked(&self.answers).push(answered);
        self.bell.ring();
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
    /// A new one.
    New { chunks: u32, thick: bool },
}

/// Where an answer goes that somebody waits for.
pub(crate) type ReplyTo<T> = SyncSender<T>;

/// What the thread is told.
pub(crate) enum Message {
    /// Open a pool.
    Open(Box<Opening>, ReplyTo<Result<Arc<Shared>, PoolError>>),
    /// A request of a lane.
    Ask(Arc<Shared>, Ask),
    /// A request to the core.
    Core(Arc<Shared>, Request, ReplyTo<Result<Reply, Fault>>),
    /// An LU.
    Lu(Arc<Shared>, Wanted, ReplyTo<Result<Arc<Table>, Fault>>),
    /// Whether such PVs could be added.
    Look(Arc<Shared>, Vec<OpenPv>, ReplyTo<Result<(), PoolError>>),
    /// Add a PV.
    Join(Arc<Shared>, OpenPv, ReplyTo<Result<(), PoolError>>),
    /// Begin to remove a PV, by number of the member.
    Leave(Arc<Shared>, u16, ReplyTo<Result<(), Fault>>),
    /// Close a pool when nothing of it is under way.
    Close(Arc<Shared>, ReplyTo<()>),
    /// End.
    Exit,
}

/// Where the thread finds what it is told.
#[derive(Debug)]
pub(crate) struct Inbox {
    sender: Mutex<Sender<Message>>,
    pub(crate) bell: Arc<Bell>,
}

impl Inbox {
    pub(crate) fn new(sender: Sender<Message>, bell: Arc<Bell>) -> Inbox {
        Inbox { sender: Mutex::new(sender), bell }
    }

    pub(crate) fn post(&self, message: Message) {
        // Without the thread the process ends.
        let _ = locked(&self.sender).send(message);
        self.bell.ring();
    }
}
