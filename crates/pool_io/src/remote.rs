//! Operations on PVs for those on other threads, who wait for each: a pool is made, looked at and opened there, so that a PV that hangs meanwhile delays nobody else.

use std::cell::Cell;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use block::{IoError, OpKind, VolumeError};
use pool::{ReadFailed, Source};

use crate::PoolError;
use crate::engine::Engine;
use crate::post::{Inbox, Message, ReplyTo};
use crate::table::OpenPv;
use crate::thread::ask;
use crate::turns;
use crate::work::For;

/// Bytes that are read at once.
const READ: usize = 128 << 10;
/// Bytes that are written at once.
pub(crate) const WRITE: usize = 128 << 10;

/// A lane of the thread to a PV. It is given up when it is dropped, unless it was [kept](PvLane::keep).
pub(crate) struct PvLane<'a> {
    inbox: &'a Inbox,
    lane: Option<u16>,
    /// How long an operation may take.
    most: Option<Duration>,
    refused: Cell<bool>,
}

impl Drop for PvLane<'_> {
    fn drop(&mut self) {
        self.lane.into_iter().for_each(|lane| self.inbox.post(Message::Detach(lane)));
    }
}

impl<'a> PvLane<'a> {
    pub(crate) fn new(inbox: &'a Inbox, pv: &OpenPv) -> Result<PvLane<'a>, Refused> {
        let attached = ask(inbox, |reply| Message::Attach(pv.clone(), reply));
        let lane = attached.map_err(Refused::Pool)?.map_err(Refused::Volume)?;
        Ok(PvLane { inbox, lane: Some(lane), most: None, refused: Cell::new(false) })
    }

    /// What takes longer than that has failed.
    pub(crate) fn at_most(mut self, most: Option<Duration>) -> PvLane<'a> {
        self.most = most;
        self
    }

    /// Its number; somebody on the thread has it from now on.
    pub(crate) fn keep(&mut self) -> Option<u16> {
        self.lane.take()
    }

    /// Whether another server has it: it has refused something.
    pub(crate) fn is_fenced(&self) -> bool {
        self.refused.get()
    }

    fn run(&self, op: OpKind, offset: u64, data: Vec<u8>) -> (Result<(), IoError>, Vec<u8>) {
        let (result, data) = self.run_once(op, offset, data);
        if result == Err(IoError::Fenced) {
            self.refused.set(true);
        }
        (result, data)
    }

    fn run_once(&self, op: OpKind, offset: u64, data: Vec<u8>) -> (Result<(), IoError>, Vec<u8>) {
        let Some(lane) = self.lane else { return (Err(IoError::Gone), data) };
        let Some(most) = self.most else {
            return ask(self.inbox, |reply| Message::Io { lane, op, offset, data, reply })
                .unwrap_or((Err(IoError::Gone), Vec::new()));
        };
        let (reply, answer) = sync_channel(1);
        self.inbox.post(Message::Io { lane, op, offset, data, reply });
        turns::wait_for(&answer, most).unwrap_or((Err(IoError::Io), Vec::new()))
    }

    pub(crate) fn read(&self, pv: u16, at: u64, bytes: usize) -> Result<Vec<u8>, ReadFailed> {
        let mut all = Vec::with_capacity(bytes);
        while all.len() < bytes {
            let part = vec![0; READ.min(bytes - all.len())];
            // Blocks of the pool that are not there any more, in a file that became shorter, are as bytes of another kind: no error of the pool's.
            let (result, part) = self.run(OpKind::Read, at + all.len() as u64, part);
            result.map_err(|_| ReadFailed { pv, at })?;
            all.extend(part);
        }
        Ok(all)
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), IoError> {
        for (index, piece) in bytes.chunks(WRITE).enumerate() {
            let offset = at + (index * WRITE) as u64;
            self.run(OpKind::Write { fua: false }, offset, piece.to_vec()).0?;
        }
        Ok(())
    }

    pub(crate) fn flush(&self) -> Result<(), IoError> {
        self.run(OpKind::Flush, 0, Vec::new()).0
    }
}

/// Why there is none.
pub(crate) enum Refused {
    Pool(PoolError),
    Volume(VolumeError),
}

/// PVs that are read, by number of the member or of the candidate.
pub(crate) struct Reading<'a, 'b>(pub(crate) Vec<Option<&'b PvLane<'a>>>);

impl Reading<'_, '_> {
    fn lane(&self, pv: u16) -> Option<&PvLane<'_>> {
        self.0.get(usize::from(pv)).copied().flatten()
    }
}

impl Source for Reading<'_, '_> {
    fn read(&mut self, pv: u16, at: u64, bytes: usize) -> Result<Vec<u8>, ReadFailed> {
        self.lane(pv).ok_or(ReadFailed { pv, at })?.read(pv, at, bytes)
    }

    fn is_there(&mut self, pv: u16) -> bool {
        self.lane(pv).is_some()
    }
}

/// On the thread: an operation for who waits for it.
pub(crate) fn for_caller(
    engine: &mut Engine<For>,
    (lane, op, offset): (u16, OpKind, u64),
    data: Vec<u8>,
    reply: ReplyTo<(Result<(), IoError>, Vec<u8>)>,
) {
    let len = data.len() as u64;
    let buffer = if len > 0 { engine.buffer(data.len()) } else { None };
    match &buffer {
        Some(buffer) if op.writes() => buffer.part(0, data.len()).write(0, &data),
        None if len > 0 => return drop(reply.send((Err(IoError::Io), data))),
        _ => {}
    }
    engine.begin(lane, op, offset, len, buffer, For::Caller(data, reply));
}
