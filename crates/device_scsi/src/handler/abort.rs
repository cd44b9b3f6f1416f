//! Commands that end early: aborts, and logical units that leave a LUN map. Also the count of what there is.
//!
//! Nothing here is quick. What matters is what the answer says: no command of the scope is left, its end is published, and nothing of
//! it will happen any more. So what waits (for a place, for a list, for time, for its lane) is ended here and taken off the list on
//! which it waited; what is out at the volume ends when it comes back, and the channel waits for that.

use std::sync::Arc;

use block::{IoError, Tag};
use channel::mailbox::OneShot;
use channel::{Adapter, After, Io, RunningQueue, State, Sweep};
use scsi::{Aborted, Nexus, Step};
use vring::Head;

use super::Message;
use super::slow_path::Peeked;
use crate::luns::LunMap;
use crate::off_path::{AbortReason, AbortScope, AbortTarget, Question};
use crate::requests::{Binding, Requests};

/// A command that is meant.
struct Affected {
    head: Head,
    /// Not begun: the chain was looked at.
    peeked: Option<Peeked>,
}

fn is_meant(scope: &AbortScope, of: &Arc<Adapter>, nexus: &Nexus, id: u64) -> bool {
    Arc::ptr_eq(nexus.unit(), &scope.unit)
        && match &scope.target {
            AbortTarget::Everybody => true,
            AbortTarget::Nexuses(nexuses) => nexuses.contains(&nexus.id()),
            AbortTarget::One { adapter, nexus: whose, id: named } => {
                Arc::ptr_eq(adapter, of) && *whose == nexus.id() && *named == id
            }
        }
}

impl Requests {
    /// Whether the queue leads to the scope's unit as somebody who is meant.
    pub(super) fn leads_to(&self, scope: &AbortScope) -> bool {
        let mut bindings = self.bindings.iter().flatten();
        bindings.any(|Binding { nexus, .. }| {
            Arc::ptr_eq(nexus.unit(), &scope.unit)
                && match &scope.target {
                    AbortTarget::Everybody => true,
                    AbortTarget::Nexuses(nexuses) => nexuses.contains(&nexus.id()),
                    AbortTarget::One { nexus: whose, .. } => *whose == nexus.id(),
                }
        })
    }

    /// Counts the commands of a scope that a sweep comes to, or ends them; those that end later are put into `left`.
    pub(super) fn ask_for(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        question: &Question,
        sweep: &mut Sweep,
        left: &mut Vec<Tag>,
    ) -> u32 {
        let (Question::Abort(scope) | Question::Count(scope)) = question;
        let found = self.commands_of(io, queue, scope, sweep);
        // Fewer than there are descriptors on a channel.
        let count = found.len() as u32;
        if let Question::Abort(scope) = question {
            // Two PREEMPT AND ABORT that abort each other do not wait for each other.
            let waits_for_all = scope.except.is_none();
            self.end_all(io, queue, found, (scope.reason, waits_for_all), left);
        }
        count
    }

    /// Gives the queue another map. When the commands of what is gone have ended, it is let go of.
    pub(super) fn set_luns(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        map: Arc<LunMap>,
        answer: OneShot<Result<(), String>>,
    ) -> Option<After<Message>> {
        let gone = match self.remap(map, io) {
            Ok(gone) => gone,
            Err(what) => {
                answer.send(Err(what));
                return None;
            }
        };
        let mut commands = Vec::new();
        let found = self.commands_through(queue, &gone);
        self.end_all(io, queue, found, (AbortReason::TaskAborted, true), &mut commands);
        Some(After { commands, message: Message::Release(gone, answer) })
    }

    fn end_all(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        found: Vec<Affected>,
        (reason, waits_for_all): (AbortReason, bool),
        left: &mut Vec<Tag>,
    ) {
        io.stop_waiting(queue, found.iter().map(|found| found.head));
        for found in found {
            let tag = queue.tag(found.head);
            match self.abort_one(io, queue, found, reason) {
                Aborted::Now => {}
                Aborted::Behind if !waits_for_all => {}
                Aborted::Later | Aborted::Behind => left.push(tag),
            }
        }
    }

    /// Commands of the queue that a scope means, as far as a sweep goes.
    fn commands_of(
        &self,
        io: &Io,
        queue: &mut RunningQueue,
        scope: &AbortScope,
        sweep: &mut Sweep,
    ) -> Vec<Affected> {
        let adapter = Arc::clone(&queue.resources.adapter);
        let (mut found, mut bufs) = (Vec::new(), Vec::new());
        while let Some(head) = sweep.next(queue) {
            if scope.except == Some(io.name_of(queue, head)) {
                continue;
            }
            let unread = matches!(queue.state(head), State::Held | State::Unread);
            let look = if unread {
                let (look, segments) = self.peek(queue, head, &mut bufs);
                sweep.spend(segments);
                look
            } else {
                None
            };
            let slot = &self.slots[usize::from(head.0)];
            let named = match &look {
                Some(look) => {
                    let header = &look.header;
                    self.search(header.address()).map(|binding| (binding, header.id()))
                }
                // No request at all: it will be answered as such.
                None if unread => None,
                // What was aborted before is about to end; whoever asks again waits for it too.
                None => Some((slot.binding, slot.id)),
            };
            let meant = |(binding, id)| {
                let binding = self.binding(binding);
                binding.is_some_and(|binding| is_meant(scope, &adapter, &binding.nexus, id))
            };
            if named.is_some_and(meant) {
                let peeked = look.map(|look| look.keep(&bufs));
                found.push(Affected { head, peeked });
            }
        }
        found
    }

    /// Commands of the queue that go to some of its bindings. What is not begun goes by the new map.
    fn commands_through(&self, queue: &RunningQueue, bindings: &[u16]) -> Vec<Affected> {
        let mut heads = queue.under_way();
        heads.retain(|head| !matches!(queue.state(*head), State::Held | State::Unread));
        heads.retain(|head| bindings.contains(&self.slots[usize::from(head.0)].binding));
        heads.into_iter().map(|head| Affected { head, peeked: None }).collect()
    }

    /// Ends a command that waits on no list, or has it end later.
    fn abort_one(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        found: Affected,
        reason: AbortReason,
    ) -> Aborted {
        let Affected { head, peeked } = found;
        let state = queue.state(head);
        if let Some(peeked) = peeked {
            if state == State::Unread {
                self.elements.dismiss();
            }
            self.end_peeked(io, queue, head, &peeked, reason);
            return Aborted::Now;
        }
        let reason = *self.slots[usize::from(head.0)].reason.get_or_insert(reason);
        let command = &mut queue.resources.commands[usize::from(head.0)];
        let how = self.with_task(command, &mut io.lists, head, |task, cx| task.abort(cx));
        match (how, state) {
            (Aborted::Now, _) => {
                // An off-path request that is out is answered to nobody, unless the task waits for it.
                queue.forget_answer(head);
                self.aborted(io, queue, head, reason);
                Aborted::Now
            }
            // The lane never got it, or has given it back between two rounds. The task ends whatever the answer is.
            (Aborted::Later, State::Parked) => {
                let input = self.request_over(io, queue, head, Err(IoError::Io));
                match self.proceed(io, queue, head, input) {
                    Step::Done(done) => self.conclude(io, queue, head, &done),
                    step => unreachable!("an aborted task asks for {step:?}"),
                }
                Aborted::Now
            }
            (later, _) => later,
        }
    }
}
