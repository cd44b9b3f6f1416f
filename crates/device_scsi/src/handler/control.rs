//! The control queue inside its channel: task management.

use std::sync::Arc;

use channel::{Io, LIST_SEGMENTS, NO_PART, RunningQueue, Walked};
use memory::IoBuf;
use protocol::stats::QueueCounter;
use vring::{Chain, Head};

use super::Behind;
use crate::control::{Answer as Bytes, Control};
use crate::luns::LunMap;
use crate::off_path::{OffPath, Services};
use crate::{Place, Response, scatter};

/// A control queue.
#[derive(Debug)]
pub(super) struct ControlQueue {
    pub(super) map: Arc<LunMap>,
    services: Arc<Services>,
    /// Most functions that are under way at once.
    functions: u32,
}

impl ControlQueue {
    pub(super) fn new(behind: Behind) -> ControlQueue {
        let Behind { luns, services, limits, .. } = behind;
        ControlQueue { map: luns, services, functions: u32::from(limits.functions.max(1)) }
    }

    /// Whether there is room for one more function beside those that are under way.
    pub(super) fn has_room(&self, under_way: u32) -> bool {
        under_way < self.functions
    }

    /// Judges a request.
    pub(super) fn judge(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        head: Head,
        walked: Walked,
    ) {
        let command = queue.command(head);
        let parsed = Control::parse(&command.all(&mut io.lists)[..walked.readable]);
        // The walk had room for all of them.
        (command.first, command.end) = (walked.readable as u16, walked.total as u16);
        let Some(request) = parsed.filter(|_| walked.writable_bytes > 0) else {
            return bad_chain(io, queue, head, walked.readable, walked.total);
        };
        let response = match request {
            Control::Refused(response) => response,
            Control::Unknown => Response::Failure,
            Control::Notify(place) => self.whether_there(place),
            Control::Manage(management) => {
                let place = match management.lun {
                    Some(lun) => Place::Unit { target: management.target, lun },
                    None => Place::Nothing { target: management.target },
                };
                match self.whether_there(place) {
                    Response::IncorrectLun if management.lun.is_none() => Response::Ok,
                    response => response,
                }
            }
        };
        let (Control::Manage(management), Response::Ok) = (request, response) else {
            return answer(io, queue, head, &request, response);
        };
        let answer = io.off_path(queue, head);
        (self.services.off_path)(OffPath::Manage { request: management, answer });
    }

    fn whether_there(&self, place: Place) -> Response {
        let target = match place {
            Place::Unit { target, .. }
            | Place::Nothing { target }
            | Place::ReportLuns { target: Some(target) } => target,
            Place::Nowhere | Place::ReportLuns { target: None } => return Response::BadTarget,
        };
        if !self.map.has_target(target) {
            return Response::BadTarget;
        }
        match place {
            Place::Unit { lun, .. } if self.map.find(target, lun).is_some() => Response::Ok,
            _ => Response::IncorrectLun,
        }
    }
}

/// Writes the answer of a request.
fn answer(
    io: &mut Io,
    queue: &mut RunningQueue,
    head: Head,
    request: &Control,
    response: Response,
) {
    let Bytes { bytes, len } = request.answer(response);
    let resources = &mut queue.resources;
    let bufs = resources.commands[usize::from(head.0)].data(&mut io.lists);
    let room: usize = bufs.iter().map(|buf| buf.len()).sum();
    if room < len {
        queue.count(QueueCounter::BadChains, 1);
        queue.count(QueueCounter::Errors, 1);
        return io.settle(queue, head, NO_PART, 0);
    }
    let written = match request {
        Control::Unknown => put_last(bufs, bytes[0]),
        _ => scatter(&bytes[..len], bufs),
    };
    bufs.iter().for_each(|buf| resources.ring.mark_written(*buf));
    queue.count(QueueCounter::ControlRequests, 1);
    io.settle(queue, head, NO_PART, clip(written));
}

/// A function was carried out: the response as a word.
pub(super) fn managed(io: &mut Io, queue: &mut RunningQueue, head: Head, response: u32) {
    let resources = &mut queue.resources;
    let bufs = resources.commands[usize::from(head.0)].data(&mut io.lists);
    // It was made of a byte.
    let written = scatter(&[response as u8], bufs);
    bufs.iter().for_each(|buf| resources.ring.mark_written(*buf));
    queue.count(QueueCounter::ControlRequests, 1);
    io.settle(queue, head, NO_PART, clip(written));
}

/// A chain that breaks the rules: FAILURE in its last byte, where the response of all requests is.
#[cold]
pub(super) fn bad_chain(
    io: &mut Io,
    queue: &mut RunningQueue,
    head: Head,
    readable: usize,
    total: usize,
) {
    queue.count(QueueCounter::BadChains, 1);
    queue.count(QueueCounter::Errors, 1);
    let resources = &mut queue.resources;
    let bufs = resources.commands[usize::from(head.0)].all(&mut io.lists);
    let writable = &bufs[readable.min(bufs.len())..total.min(bufs.len())];
    let written = put_last(writable, Response::Failure as u8);
    writable.iter().for_each(|buf| resources.ring.mark_written(*buf));
    io.settle(queue, head, NO_PART, clip(written));
}

/// A request that an earlier process took: nobody knows how far it came, and a function must not be carried out twice.
pub(super) fn recover(io: &mut Io, queue: &mut RunningQueue, head: Head) -> bool {
    let mut bufs = vec![IoBuf::EMPTY; LIST_SEGMENTS];
    let mut walk = Chain::new(&mut bufs);
    if queue.resources.ring.chain(head, &mut walk).is_err() {
        return false;
    }
    let (readable, total) = (walk.readable, walk.total);
    let Some(request @ Control::Manage(_)) = Control::parse(&bufs[..readable]) else {
        return false;
    };
    io.note_taken(queue, head);
    let Bytes { bytes, len } = request.answer(Response::Reset);
    let written = scatter(&bytes[..len], &bufs[readable..total]);
    bufs[readable..total].iter().for_each(|buf| queue.resources.ring.mark_written(*buf));
    queue.count(QueueCounter::ControlRequests, 1);
    io.settle(queue, head, NO_PART, clip(written));
    true
}

/// Writes the last byte of buffers; how many bytes there are up to it.
fn put_last(bufs: &[IoBuf], byte: u8) -> usize {
    let Some(last) = bufs.iter().rfind(|buf| !buf.is_empty()) else { return 0 };
    last.write(last.len() - 1, &[byte]);
    bufs.iter().map(|buf| buf.len()).sum()
}

fn clip(written: usize) -> u32 {
    u32::try_from(written).unwrap_or(u32::MAX)
}
