//! Commands that end early: aborts, and logical units that leave a LUN map. Also the count of what there is.
//!
//! Nothing here is quick. What matters is what the answer says: no command of the scope is left, its end is published, and nothing of
//! it will happen any more. So what waits (for a place, for a list, for time, for its lane) is ended here and taken off the list on
//! which it waited; what is out at the volume ends when it comes back, and the channel waits for that.

use std::sync::Arc;

use block::{IoError, Tag};
use channel::mailbox::OneShot;
use channel::{Adapter, After, Io, RunningQueue, State};
use scsi::{Aborted, Nexus, Step};
use vring::Head;

use super::Message;
use super::slow_path::Peeked;
use crate::luns::LunMap;
use crate::off_path::{AbortReason, AbortScope, AbortTarget, Question};
use crate::requests::Requests;

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
    /// Whether the queue leads to the scope's unit.
    pub(super) fn leads_to(&self, scope: &AbortScope) -> bool {
        let mut bindings = self.bindings.iter().flatten();
        bindings.any(|binding| Arc::ptr_eq(binding.nexus.unit(), &scope.unit))
    }

    /// Counts the commands of a scope, or ends them; those that end later are put into `left`.
    pub(super) fn ask_for(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        question: &Question,
        left: &mut Vec<Tag>,
    ) -> u32 {
        let (Question::Abort(scope) | Question::Count(scope)) = question;
        let found = self.commands_of(io, queue, scope);
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
        for found in found {
            let tag = queue.tag(found.head);
            match self.abort_one(io, queue, found, reason) {
                Aborted::Now => {}
                Aborted::Behind if !waits_for_all => {}
                Aborted::Later | Aborted::Behind => left.push(tag),
            }
        }
    }

    /// Commands of the queue that a scope means.
    fn commands_of(&self, io: &Io, queue: &mut RunningQueue, scope: &AbortScope) -> Vec<Affected> {
        let mut heads = queue.under_way();
        heads.retain(|head| scope.except != Some(io.name_of(queue, *head)));
        let adapter = Arc::clone(&queue.resources.adapter);
        self.select(queue, heads, |binding, id| {
            let binding = self.binding(binding);
            binding.is_some_and(|binding| is_meant(scope, &adapter, &binding.nexus, id))
        })
    }

    /// Commands of the queue that go to some of its bindings. What is not begun goes by the new map.
    fn commands_through(&self, queue: &mut RunningQueue, bindings: &[u16]) -> Vec<Affected> {
        let mut heads = queue.under_way();
        heads.retain(|head| !matches!(queue.state(*head), State::Held | State::Unread));
        self.select(queue, heads, |binding, _| bindings.contains(&binding))
    }

    fn select(
        &self,
        queue: &mut RunningQueue,
        heads: Vec<Head>,
        meant: impl Fn(u16, u64) -> bool,
    ) -> Vec<Affected> {
        let (mut found, mut bufs) = (Vec::new(), Vec::new());
        for head in heads {
            let unread = matches!(queue.state(head), State::Held | State::Unread);
            let look = if unread { self.peek(queue, head, &mut bufs) } else { None };
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
            if named.is_some_and(|(binding, id)| meant(binding, id)) {
                let peeked = look.map(|look| look.keep(&bufs));
                found.push(Affected { head, peeked });
            }
        }
        found
    }

    /// Ends a command, or has it end later.
    fn abort_one(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        found: Affected,
        reason: AbortReason,
    ) -> Aborted {
        let Affected { head, peeked } = found;
        let state = queue.state(head);
        io.stop_waiting(queue, head);
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
