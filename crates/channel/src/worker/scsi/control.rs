//! The control queue and the event queue.

use device::scsi::control::{Answer as Bytes, Control};
use device::scsi::event::{self, EVENT_BYTES};
use device::scsi::{Place, Response, scatter};
use memory::IoBuf;
use protocol::stats::QueueCounter;
use vring::{Chain, Head, QueueError};

use super::super::io::Walked;
use super::super::{Io, Worker};
use crate::command::State;
use crate::lists;
use crate::queue::{Active, Kind, NO_BINDING, QueueId};
use crate::scsi::{Answer, ControlQueue, Ended, Errand, Returned};

/// Buffers of an event that are looked at; it has sixteen bytes.
const EVENT_BUFS: usize = EVENT_BYTES;

impl Io {
    /// Whether a request of the control queue may be read; if not it is held. None overtakes another.
    #[cold]
    pub(super) fn admit_function(&mut self, queue: &mut Active, head: Head) -> bool {
        let under_way = queue.errands;
        let Kind::Control(control) = &mut queue.kind else { return true };
        if control.held.is_empty() && control.has_room(under_way) {
            return true;
        }
        control.held.push_back(head.0);
        queue.seat.commands[usize::from(head.0)].state = State::Held;
        queue.parked += 1;
        queue.count(QueueCounter::WaitNoCommand, 1);
        queue.show_levels();
        false
    }

    /// Takes up held requests of the control queue, as far as functions may be under way now.
    pub(super) fn take_held_functions(&mut self, id: u16, queue: &mut Active) {
        loop {
            let under_way = queue.errands;
            let Kind::Control(control) = &mut queue.kind else { return };
            if !control.has_room(under_way) {
                return;
            }
            let Some(head) = control.held.pop_front().map(Head) else { return };
            queue.parked -= 1;
            queue.seat.commands[usize::from(head.0)].state = State::Unread;
            self.read(id, queue, head);
        }
    }

    /// Judges a request of the control queue.
    pub(in super::super) fn judge_control(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        walked: Walked,
    ) {
        let Kind::Control(control) = &mut queue.kind else { return };
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let bufs = command.all(&mut self.lists);
        let parsed = Control::parse(&bufs[..walked.readable]);
        // The walk had room for all of them.
        (command.first, command.end) = (walked.readable as u16, walked.total as u16);
        let Some(request) = parsed.filter(|_| walked.writable_bytes > 0) else {
            return self.spoilt_control(id, queue, head, walked.readable, walked.total);
        };
        let response = match request {
            Control::Refused(response) => response,
            Control::Unknown => Response::Failure,
            Control::Notify(place) => whether_there(control, place),
            Control::Manage(management) => {
                let place = match management.lun {
                    Some(lun) => Place::Unit { target: management.target, lun },
                    None => Place::Nothing { target: management.target },
                };
                match whether_there(control, place) {
                    Response::IncorrectLun if management.lun.is_none() => Response::Ok,
                    response => response,
                }
            }
        };
        let (Control::Manage(management), Response::Ok) = (request, response) else {
            return self.answer_control(id, queue, head, &request, response);
        };
        self.tickets += 1;
        control.tickets[usize::from(head.0)] = self.tickets;
        queue.errands += 1;
        queue.seat.commands[usize::from(head.0)].state = State::Paused;
        let answer = Answer::new(self.inbox.clone(), QueueId(id), head.0, self.tickets);
        (queue.seat.adapter.errands)(Errand::Manage { request: management, answer });
    }

    /// Writes the answer of a control request.
    fn answer_control(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        request: &Control,
        response: Response,
    ) {
        let Bytes { bytes, len } = request.answer(response);
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let bufs = command.data(&mut self.lists);
        let room: usize = bufs.iter().map(|buf| buf.len()).sum();
        if room < len {
            queue.count(QueueCounter::BadChains, 1);
            queue.count(QueueCounter::Errors, 1);
            return self.settle(id, queue, head, NO_BINDING, 0);
        }
        let written = match request {
            Control::Unknown => put_last(bufs, bytes[0]),
            _ => scatter(&bytes[..len], bufs),
        };
        bufs.iter().for_each(|buf| queue.seat.ring.mark_written(*buf));
        queue.count(QueueCounter::ControlRequests, 1);
        self.settle(id, queue, head, NO_BINDING, written as u64);
    }

    /// A chain of the control queue that breaks the rules: FAILURE in its last byte, where the response of all requests is.
    #[cold]
    pub(in super::super) fn spoilt_control(
        &mut self,
        id: u16,
        queue: &mut Active,
        head: Head,
        readable: usize,
        total: usize,
    ) {
        queue.count(QueueCounter::BadChains, 1);
        queue.count(QueueCounter::Errors, 1);
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let bufs = command.all(&mut self.lists);
        let writable = &bufs[readable.min(bufs.len())..total.min(bufs.len())];
        let written = put_last(writable, Response::Failure as u8);
        writable.iter().for_each(|buf| queue.seat.ring.mark_written(*buf));
        self.settle(id, queue, head, NO_BINDING, written as u64);
    }

    /// A control request that an earlier process took: nobody knows how far it came, and a function must not be carried out twice.
    pub(super) fn refuse_control_again(&mut self, id: u16, queue: &mut Active, head: Head) {
        let mut bufs = vec![IoBuf::EMPTY; lists::LENGTH];
        let mut walk = Chain::new(&mut bufs);
        let request = match queue.seat.ring.chain(head, &mut walk) {
            Ok(()) => {
                let (readable, total) = (walk.readable, walk.total);
                Control::parse(&bufs[..readable]).map(|request| (request, readable, total))
            }
            Err(_) => None,
        };
        let Some((request @ Control::Manage(_), readable, total)) = request else {
            return self.begin(id, queue, head);
        };
        self.note_taken(queue, head);
        let Bytes { bytes, len } = request.answer(Response::Reset);
        let written = scatter(&bytes[..len], &bufs[readable..total]);
        bufs[readable..total].iter().for_each(|buf| queue.seat.ring.mark_written(*buf));
        queue.count(QueueCounter::ControlRequests, 1);
        self.settle(id, queue, head, NO_BINDING, written as u64);
    }

    /// Tells an event, or that some were lost, if the client has left a buffer.
    pub(in super::super) fn tell(
        &mut self,
        id: u16,
        queue: &mut Active,
        event: [u8; EVENT_BYTES],
    ) -> Result<bool, QueueError> {
        while let Some(head) = next_event_buffer(queue)? {
            self.note_taken(queue, head);
            let mut bufs = [IoBuf::EMPTY; EVENT_BUFS];
            let mut chain = Chain::new(&mut bufs);
            let fits = queue.seat.ring.chain(head, &mut chain).is_ok()
                && chain.readable == 0
                && chain.writable_bytes >= EVENT_BYTES as u64;
            let total = chain.total;
            if !fits {
                // Smaller than the configuration space says (clause 5.6.6.3): of no use for anything.
                queue.count(QueueCounter::BadChains, 1);
                self.settle(id, queue, head, NO_BINDING, 0);
                continue;
            }
            let Kind::Event(events) = &mut queue.kind else { return Ok(true) };
            let lost = std::mem::take(&mut events.missed);
            let event = if lost { event::missed(event) } else { event };
            scatter(&event, &bufs[..total]);
            bufs[..total].iter().for_each(|buf| queue.seat.ring.mark_written(*buf));
            self.settle(id, queue, head, NO_BINDING, EVENT_BYTES as u64);
            return Ok(true);
        }
        Ok(false)
    }
}

/// The oldest buffer: one that an earlier process had taken, or the next of the ring.
fn next_event_buffer(queue: &mut Active) -> Result<Option<Head>, QueueError> {
    if let Some(head) = queue.seat.ring.resubmit_next() {
        return Ok(Some(head));
    }
    queue.seat.ring.pending()?;
    queue.seat.ring.pop()
}

fn whether_there(control: &ControlQueue, place: Place) -> Response {
    let target = match place {
        Place::Unit { target, .. }
        | Place::Nothing { target }
        | Place::ReportLuns { target: Some(target) } => target,
        Place::Nowhere | Place::ReportLuns { target: None } => return Response::BadTarget,
    };
    if !control.map.has_target(target) {
        return Response::BadTarget;
    }
    match place {
        Place::Unit { lun, .. } if control.map.find(target, lun).is_some() => Response::Ok,
        _ => Response::IncorrectLun,
    }
}

/// Writes the last byte of buffers; how many bytes there are up to it.
fn put_last(bufs: &[IoBuf], byte: u8) -> usize {
    let Some(last) = bufs.iter().rfind(|buf| !buf.is_empty()) else { return 0 };
    last.write(last.len() - 1, &[byte]);
    bufs.iter().map(|buf| buf.len()).sum()
}

impl Worker {
    /// An errand was answered.
    pub(in super::super) fn returned(&mut self, returned: Returned) {
        let Returned { queue: QueueId(id), head, ticket, ended } = returned;
        let head = Head(head);
        let Some(queue) = self.queues.get_mut(usize::from(id)).and_then(Option::as_deref_mut)
        else {
            return;
        };
        queue.errands -= 1;
        // The queue may have waited for just this.
        self.io.list(id, queue);
        let waits = queue.seat.commands[usize::from(head.0)].state == State::Paused;
        let known = match &queue.kind {
            Kind::Request(requests) => requests.slots[usize::from(head.0)].ticket,
            Kind::Control(control) => control.tickets[usize::from(head.0)],
            Kind::Block(_) | Kind::Event(_) => 0,
        };
        // A command that was aborted meanwhile is gone, and its head may be another one's.
        if !waits || known != ticket {
            return;
        }
        match ended {
            Ended::Managed(response) => self.io.managed(id, queue, head, response),
            Ended::Stored(stored) => {
                self.io.go_on(id, queue, head, scsi::Input::Stored(stored));
            }
            Ended::Aborted => self.io.go_on(id, queue, head, scsi::Input::Ready),
        }
        self.heat(id);
    }

    /// Tells the client of an event queue something.
    pub(in super::super) fn post_event(&mut self, id: u16, event: [u8; EVENT_BYTES]) {
        self.tell(id, Some(event));
    }

    /// A client has kicked its event queue. Only one that is owed something is looked at.
    pub(in super::super) fn buffer_came(&mut self, id: u16) {
        self.tell(id, None);
    }

    fn tell(&mut self, id: u16, event: Option<[u8; EVENT_BYTES]>) {
        let Some(queue) = self.queues.get_mut(usize::from(id)).and_then(Option::as_deref_mut)
        else {
            return;
        };
        let Kind::Event(events) = &queue.kind else { return };
        if queue.broken || queue.stop.is_some() || (event.is_none() && !events.missed) {
            return;
        }
        let event = event.unwrap_or(event::none());
        loop {
            match self.io.tell(id, queue, event) {
                Err(error) => return self.ring_broke(id, error),
                Ok(true) => return queue.seat.ring.disable_kicks(),
                Ok(false) => {}
            }
            if let Kind::Event(events) = &mut queue.kind {
                events.missed = true;
            }
            // From now on a kick says that there is a buffer. If one came before that, it is used now.
            if !queue.seat.ring.enable_kicks() {
                return;
            }
        }
    }
}

impl Io {
    fn managed(&mut self, id: u16, queue: &mut Active, head: Head, response: Response) {
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let bufs = command.data(&mut self.lists);
        let written = scatter(&[response as u8], bufs);
        bufs.iter().for_each(|buf| queue.seat.ring.mark_written(*buf));
        queue.count(QueueCounter::ControlRequests, 1);
        self.settle(id, queue, head, NO_BINDING, written as u64);
    }
}
