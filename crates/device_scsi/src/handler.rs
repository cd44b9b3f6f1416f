//! [`ScsiHandler`]: what a channel has for a queue of a SCSI adapter, by what the queue carries.

mod abort;
mod command;
mod control;
mod events;
mod slow_path;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use block::{LaneId, Outcome, Tag};
use channel::elements::Elements;
use channel::mailbox::OneShot;
use channel::{
    After, BadChain, Handler, Io, Opened, QueueResources, RunningQueue, State, Sweep, Walked,
};
use protocol::stats::{Latency, QueueCounter, Span, Timed};
use vring::{Head, QueueError};

use crate::control::Management;
use crate::counted::Counted;
use crate::event::EVENT_BYTES;
use crate::limits::{ScsiLimits, ScsiRole};
use crate::link::Link;
use crate::luns::LunMap;
use crate::off_path::{Question, Services};
use crate::requests::{Requests, Writers};
use crate::scratch::Scratches;
use control::ControlQueue;
use events::EventQueue;

/// What is behind a queue of a SCSI adapter.
#[derive(Debug, Clone)]
pub struct Behind {
    /// What the queue carries.
    pub role: ScsiRole,
    /// What the client sees. [`Message::SetLuns`] changes it while the queue runs.
    pub luns: Arc<LunMap>,
    /// The adapter's command elements.
    pub elements: Arc<Elements>,
    /// Which of the adapter's request queues it is, from 0.
    pub place: u16,
    /// What the queue is allowed.
    pub limits: ScsiLimits,
    /// The way to its targets.
    pub link: Arc<Link>,
    /// What others do for the adapter.
    pub services: Arc<Services>,
    /// Task management functions that were answered while the queue was not in use. What they mean of its ring ends when it comes.
    pub owed: Vec<Management>,
}

/// What a queue is told while it runs.
#[derive(Debug)]
pub enum Message {
    /// The client sees other LUNs. Entries that stay are not disturbed; the commands of those that are gone are ended with TASK ABORTED.
    /// The answer comes when nothing of an entry that is gone is in flight on this queue.
    ///
    /// An error says what a new entry lacks (a lane to its volume); then the queue keeps the map that it had.
    SetLuns(Arc<LunMap>, OneShot<Result<(), String>>),
    /// Commands through these bindings have ended.
    Release(Vec<u16>, OneShot<Result<(), String>>),
    /// The client of an event queue is told something ([`crate::event`]). Without a buffer the event is lost, and the client is told so
    /// with the next buffer.
    Event([u8; EVENT_BYTES]),
}

/// What the SCSI queues of a channel share.
#[derive(Debug, Default)]
pub(crate) struct OfChannel {
    pub(crate) scratches: RefCell<Scratches>,
    pub(crate) writers: RefCell<Writers>,
    pub(crate) counted: RefCell<Counted>,
}

/// The same, for the channel's keeping.
#[derive(Debug, Default, Clone)]
pub struct Shared(pub(crate) Rc<OfChannel>);

/// The handler of a SCSI adapter's queues.
#[derive(Debug)]
pub struct ScsiHandler(Kind);

#[derive(Debug)]
enum Kind {
    Request(Box<Requests>),
    Control(Box<ControlQueue>),
    Event(EventQueue),
}

impl Handler for ScsiHandler {
    type Device = Behind;
    type Shared = Shared;
    type Message = Message;
    type Scope = Question;

    fn open(
        behind: Behind,
        shared: &mut Shared,
        io: &mut Io,
        queue: &QueueResources,
    ) -> Result<Opened<ScsiHandler>, String> {
        let size = queue.ring.size();
        let (mut lists, mut pulls, mut owes) = ((0, 0), false, false);
        let kind = match behind.role {
            ScsiRole::Event => {
                pulls = true;
                Kind::Event(EventQueue::default())
            }
            ScsiRole::Control => Kind::Control(Box::new(ControlQueue::new(behind))),
            ScsiRole::Request => {
                let mut requests = {
                    let wakes = [io.wake(), io.wake()];
                    Requests::new(size, &behind, shared, &queue.adapter, wakes)
                };
                requests.remap(behind.luns, io)?;
                let scratch = shared.0.scratches.borrow_mut().open();
                requests.scratch = scratch.map_err(|error| error.to_string())?;
                // Header and response are segments, too.
                let segments = usize::from(requests.limits.buffers) + 2;
                lists = (requests.limits.local.min(size), segments);
                requests.owed = behind.owed;
                owes = !requests.owed.is_empty();
                Kind::Request(Box::new(requests))
            }
        };
        Ok(Opened { lists, pulls, owes, ..Opened::of(ScsiHandler(kind)) })
    }

    fn close(&mut self, io: &mut Io) {
        if let Kind::Request(requests) = &mut self.0 {
            requests.release_all(io);
            let scratch = std::mem::take(&mut requests.scratch);
            requests.shared.scratches.borrow_mut().close(scratch);
        }
    }

    #[inline]
    fn pauses(&mut self) -> bool {
        match &mut self.0 {
            Kind::Request(requests) => requests.pauses(),
            Kind::Control(_) | Kind::Event(_) => false,
        }
    }

    fn cut(&mut self) {
        self.requests().cut();
    }

    #[inline]
    fn admit(&mut self, queue: &RunningQueue) -> Result<(), QueueCounter> {
        match &mut self.0 {
            Kind::Request(requests) => requests.may_begin(queue),
            Kind::Control(control) => match control.has_room(queue.answers_due()) {
                true => Ok(()),
                false => Err(QueueCounter::WaitNoCommand),
            },
            Kind::Event(_) => Ok(()),
        }
    }

    #[inline]
    fn rest(&mut self, queue: &RunningQueue, now: u64) {
        if let Kind::Request(requests) = &mut self.0 {
            requests.elements.rest(|| queue.waits(), now);
        }
    }

    fn woken(&mut self, _: &mut Io, queue: &mut RunningQueue) {
        if let Kind::Request(requests) = &mut self.0 {
            requests.elements.woken(queue.held());
        }
    }

    #[inline]
    fn begin(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, walked: Walked) {
        match &mut self.0 {
            Kind::Request(requests) => requests.judge(io, queue, head, walked),
            Kind::Control(control) => control.judge(io, queue, head, walked),
            Kind::Event(_) => unreachable!("an event queue takes its own heads"),
        }
    }

    #[cold]
    fn begin_bad(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, bad: BadChain) {
        let BadChain { readable, total, .. } = bad;
        match &mut self.0 {
            Kind::Request(requests) => requests.bad_chain(io, queue, head, readable, total),
            Kind::Control(_) => control::bad_chain(io, queue, head, readable, total),
            Kind::Event(_) => unreachable!("an event queue takes its own heads"),
        }
    }

    fn recover(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) -> bool {
        match &mut self.0 {
            Kind::Request(requests) => requests.recover(io, queue, head),
            Kind::Control(_) => control::recover(io, queue, head),
            Kind::Event(_) => unreachable!("an event queue takes its own heads"),
        }
    }

    fn ended_before(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) -> bool {
        self.requests().ended_before(io, queue, head)
    }

    fn completed(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, outcome: Outcome) {
        self.requests().finished(io, queue, head, outcome);
    }

    fn try_again(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head) {
        let requests = self.requests();
        match queue.state(head) {
            State::Paused => requests.unpause(io, queue, head),
            _ => requests.unpark(io, queue, head),
        }
    }

    fn lane_of(&self, head: Head) -> Option<LaneId> {
        match &self.0 {
            Kind::Request(requests) => requests.lane_of(head),
            _ => None,
        }
    }

    fn answered(&mut self, io: &mut Io, queue: &mut RunningQueue, head: Head, answer: u32) {
        match &mut self.0 {
            Kind::Request(requests) => requests.off_path_done(io, queue, head, answer),
            Kind::Control(_) => control::managed(io, queue, head, answer),
            Kind::Event(_) => unreachable!("an event asks for nothing"),
        }
    }

    fn message(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        message: Message,
    ) -> Result<Option<After<Message>>, QueueError> {
        match (message, &mut self.0) {
            (Message::SetLuns(map, answer), Kind::Request(requests)) => {
                return Ok(requests.set_luns(io, queue, map, answer));
            }
            (Message::SetLuns(map, answer), Kind::Control(control)) => {
                control.map = map;
                answer.send(Ok(()));
            }
            (Message::SetLuns(_, answer), Kind::Event(_)) => answer.send(Ok(())),
            (Message::Release(gone, answer), Kind::Request(requests)) => {
                gone.iter().for_each(|binding| requests.release(*binding, io));
                answer.send(Ok(()));
            }
            (Message::Event(event), Kind::Event(events)) => events.tell(io, queue, Some(event))?,
            (message, kind) => unreachable!("{message:?} is not for {kind:?}"),
        }
        Ok(None)
    }

    fn buffers_came(&mut self, io: &mut Io, queue: &mut RunningQueue) -> Result<(), QueueError> {
        match &mut self.0 {
            Kind::Event(events) => events.tell(io, queue, None),
            kind => unreachable!("{kind:?} does not pull"),
        }
    }

    fn concerns(&self, question: &Question) -> bool {
        match (&self.0, question) {
            (Kind::Request(requests), Question::Abort(scope) | Question::Count(scope)) => {
                requests.leads_to(scope)
            }
            _ => false,
        }
    }

    fn abort(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        question: &Question,
        sweep: &mut Sweep,
        left: &mut Vec<Tag>,
    ) -> u32 {
        self.requests().ask_for(io, queue, question, sweep, left)
    }

    #[inline]
    fn record(&self, part: u16, which: Latency, span: Span, count: u64) {
        if let Kind::Request(requests) = &self.0
            && let Some(lun) = requests.lun_stats(part)
        {
            lun.record_at(which, span, count);
        }
    }

    #[inline]
    fn record_timed(&self, part: u16, timed: &Timed) {
        if let Kind::Request(requests) = &self.0
            && let Some(lun) = requests.lun_stats(part)
        {
            lun.record_timed(timed);
        }
    }

    fn reset_marks(&self) {
        if let Kind::Request(requests) = &self.0 {
            requests.reset_extremes();
        }
    }
}

impl ScsiHandler {
    #[inline]
    fn requests(&mut self) -> &mut Requests {
        match &mut self.0 {
            Kind::Request(requests) => requests,
            kind => unreachable!("{kind:?} asks no volume"),
        }
    }
}
