//! Commands that end early: aborts, and logical units that leave a LUN map. Also the count of what there is.
//!
//! Nothing here is quick. What matters is what the answer says: no command of the scope is left, its end is published, and nothing of
//! it will happen any more. So what waits (for a place, for a list, for time, for its lane) is ended here and taken off the list on
//! which it waited; what is out at the volume ends when it comes back.

use std::sync::Arc;

use block::{IoError, Tag};
use scsi::{Aborted, Input, Nexus, Step};
use vring::Head;

use super::super::io::{head_of, queue_of, tag_of};
use super::super::{Io, Worker};
use super::with_task;
use crate::BATCH;
use crate::command::State;
use crate::mailbox::OneShot;
use crate::queue::{Active, Kind, Phase};
use crate::scsi::{AbortScope, LunMap, Means, Pause, Requests, Verdict, Whom};

/// Commands that have to end, and who waits for that.
pub(crate) struct Abort {
    left: Vec<Tag>,
    then: Then,
}

enum Then {
    /// So many there were.
    Count(OneShot<u32>, u32),
    /// These bindings of a queue are then used by nobody.
    Release(OneShot<Result<(), String>>, u16, Vec<u16>),
}

/// A command that is meant.
struct Found {
    head: Head,
    /// Not begun: the chain was looked at.
    peeked: Option<super::rare::Peeked>,
}

fn is_meant(scope: &AbortScope, queue: &Active, nexus: &Nexus, id: u64) -> bool {
    Arc::ptr_eq(nexus.unit(), &scope.unit)
        && match &scope.whom {
            Whom::Everybody => true,
            Whom::Nexuses(nexuses) => nexuses.contains(&nexus.id()),
            Whom::One { adapter, nexus: whose, id: named } => {
                Arc::ptr_eq(adapter, &queue.seat.adapter) && *whose == nexus.id() && *named == id
            }
        }
}

impl Worker {
    /// Aborts the commands of a scope.
    pub(in super::super) fn abort(&mut self, scope: &AbortScope, answer: OneShot<u32>) {
        let (mut left, mut count) = (Vec::new(), 0);
        for id in self.queues_of(scope) {
            self.take_all(id);
            let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else { continue };
            for found in self.io.commands_of(id, queue, scope) {
                count += 1;
                let tag = tag_of(id, found.head);
                if !self.io.abort_one(id, queue, found, scope.verdict) {
                    left.push(tag);
                }
            }
        }
        self.aborts.push(Abort { left, then: Then::Count(answer, count) });
    }

    /// Counts the commands of a scope.
    pub(in super::super) fn query(&mut self, scope: &AbortScope, answer: OneShot<u32>) {
        let mut count = 0;
        for id in self.queues_of(scope) {
            self.take_all(id);
            let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else { continue };
            count += self.io.commands_of(id, queue, scope).len();
        }
        // Fewer than there are descriptors on a channel.
        answer.send(count as u32);
    }

    /// Queues that lead to the scope's unit.
    fn queues_of(&self, scope: &AbortScope) -> Vec<u16> {
        let leads = |queue: &Active| match &queue.kind {
            Kind::Request(requests) => {
                let mut bindings = requests.bindings.iter().flatten();
                bindings.any(|binding| Arc::ptr_eq(binding.nexus.unit(), &scope.unit))
            }
            _ => false,
        };
        let queues = (0..).zip(&self.queues);
        queues.filter(|(_, queue)| queue.as_deref().is_some_and(leads)).map(|(id, _)| id).collect()
    }

    /// Begins everything that is in a ring now: to the client it came before what is handled next. An error of the ring is found
    /// again, and told, in the next turn.
    fn take_all(&mut self, id: u16) {
        let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else { return };
        if queue.broken || !matches!(queue.phase, Phase::Hot | Phase::Armed) {
            return;
        }
        // A client that adds more all the while must not keep the channel here.
        for _ in 0..=queue.seat.ring.size() / BATCH {
            if !matches!(self.io.take(id, queue), Ok(1..)) {
                break;
            }
        }
        self.heat(id);
    }

    /// Gives a queue another map.
    pub(in super::super) fn set_luns(
        &mut self,
        id: u16,
        map: Arc<LunMap>,
        answer: OneShot<Result<(), String>>,
    ) {
        let Some(queue) = self.queues.get_mut(usize::from(id)).and_then(Option::as_deref_mut)
        else {
            return answer.send(Ok(()));
        };
        let gone = match &mut queue.kind {
            Kind::Control(control) => {
                control.map = map;
                return answer.send(Ok(()));
            }
            Kind::Block(_) | Kind::Event(_) => return answer.send(Ok(())),
            Kind::Request(requests) => match requests.remap(map, &mut self.io.means()) {
                Ok(gone) => gone,
                Err(what) => return answer.send(Err(what)),
            },
        };
        let mut left = Vec::new();
        for found in self.io.commands_through(queue, &gone) {
            let tag = tag_of(id, found.head);
            if !self.io.abort_one(id, queue, found, Verdict::TaskAborted) {
                left.push(tag);
            }
        }
        self.aborts.push(Abort { left, then: Then::Release(answer, id, gone) });
    }

    /// Answers those who waited for commands that have ended, now that the ends are published.
    pub(in super::super) fn settle_aborts(&mut self) {
        let ended = std::mem::take(&mut self.io.ended_early);
        for abort in &mut self.aborts {
            abort.left.retain(|tag| !ended.contains(tag));
        }
        while let Some(at) = self.aborts.iter().position(|abort| abort.left.is_empty()) {
            match self.aborts.swap_remove(at).then {
                Then::Count(answer, count) => answer.send(count),
                Then::Release(answer, id, gone) => {
                    let queue = self.queues[usize::from(id)].as_deref_mut();
                    if let Some(Kind::Request(requests)) = queue.map(|queue| &mut queue.kind) {
                        let mut means = self.io.means();
                        gone.iter().for_each(|place| requests.release(*place, &mut means));
                    }
                    answer.send(Ok(()));
                }
            }
        }
    }
}

impl Io {
    /// What it takes to bind logical units.
    pub(in super::super) fn means(&mut self) -> Means<'_> {
        Means {
            ring: &mut self.ring,
            lanes: &mut self.lanes,
            writers: &mut self.writers,
            counted: &mut self.counted,
            channel: self.channel,
        }
    }

    /// Commands of a queue that a scope means.
    fn commands_of(&mut self, id: u16, queue: &mut Active, scope: &AbortScope) -> Vec<Found> {
        let excepted = |head: u16| {
            scope
                .except
                .is_some_and(|it| it.channel == self.channel && it.queue.0 == id && it.head == head)
        };
        let heads = under_way(queue).into_iter().filter(|head| !excepted(head.0)).collect();
        self.select(queue, heads, |queue, requests, binding, id| {
            let binding = requests.binding(binding);
            binding.is_some_and(|binding| is_meant(scope, queue, &binding.nexus, id))
        })
    }

    /// Commands of a queue that go to some of its bindings. What is not begun goes by the new map.
    fn commands_through(&mut self, queue: &mut Active, bindings: &[u16]) -> Vec<Found> {
        let begun = |head: &Head| {
            let state = queue.seat.commands[usize::from(head.0)].state;
            !matches!(state, State::Held | State::Unread)
        };
        let heads = under_way(queue).into_iter().filter(begun).collect();
        self.select(queue, heads, |_, _, binding, _| bindings.contains(&binding))
    }

    fn select(
        &mut self,
        queue: &mut Active,
        heads: Vec<Head>,
        meant: impl Fn(&Active, &Requests, u16, u64) -> bool,
    ) -> Vec<Found> {
        let mut found = Vec::new();
        for head in heads {
            let state = queue.seat.commands[usize::from(head.0)].state;
            let peeked = match state {
                State::Held | State::Unread => self.peek(queue, head),
                _ => None,
            };
            let Kind::Request(requests) = &queue.kind else { continue };
            let slot = &requests.slots[usize::from(head.0)];
            let named = match (&peeked, state) {
                (Some(peeked), _) => {
                    let header = &peeked.header;
                    requests.search(header.address()).map(|binding| (binding, header.id()))
                }
                // No request at all: it will be answered as such.
                (None, State::Held | State::Unread) => None,
                // What was aborted before is about to end; whoever asks again waits for it too.
                (None, _) => Some((slot.binding, slot.id)),
            };
            if named.is_some_and(|(binding, id)| meant(queue, requests, binding, id)) {
                found.push(Found { head, peeked });
            }
        }
        found
    }

    /// Ends a command, or has it end when what is out comes back (false).
    fn abort_one(&mut self, id: u16, queue: &mut Active, found: Found, verdict: Verdict) -> bool {
        let Found { head, peeked } = found;
        let state = queue.seat.commands[usize::from(head.0)].state;
        self.stop_waiting(id, queue, head, state);
        if let Some(peeked) = peeked {
            if let (State::Unread, Kind::Request(requests)) = (state, &mut queue.kind) {
                requests.dismiss();
            }
            self.end_peeked(id, queue, head, &peeked, verdict);
            return true;
        }
        let Kind::Request(requests) = &mut queue.kind else { return true };
        let slot = &mut requests.slots[usize::from(head.0)];
        slot.verdict.get_or_insert(verdict);
        // An errand that is out is answered to nobody, unless the task waits for it.
        let ticket = std::mem::take(&mut slot.ticket);
        let command = &mut queue.seat.commands[usize::from(head.0)];
        let (lists, scratches) = (&mut self.lists, &self.scratches);
        let how = with_task(command, lists, scratches, requests, head, |task, cx| task.abort(cx));
        match (how, state) {
            (Aborted::Now, _) => {
                let verdict = requests.slots[usize::from(head.0)].verdict.unwrap_or(verdict);
                self.aborted(id, queue, head, verdict);
                true
            }
            // The lane never got it, or has given it back between two rounds.
            (Aborted::Later, State::Parked) => {
                let input = self.came_back_aborted(queue, head);
                if let Step::Done(done) = self.proceed(queue, head, input) {
                    self.conclude(id, queue, head, &done);
                }
                true
            }
            (Aborted::Later, _) => {
                requests.slots[usize::from(head.0)].ticket = ticket;
                false
            }
        }
    }

    fn came_back_aborted(&mut self, queue: &mut Active, head: Head) -> Input {
        let Kind::Request(requests) = &mut queue.kind else {
            return Input::Block(Err(IoError::Io));
        };
        let slot = &mut requests.slots[usize::from(head.0)];
        slot.from_scratch = false;
        if slot.is_cut {
            self.mend(queue, head);
        }
        // The task ends whatever this says.
        Input::Block(Err(IoError::Io))
    }

    /// Takes a command off the list on which it waits.
    fn stop_waiting(&mut self, id: u16, queue: &mut Active, head: Head, state: State) {
        let Kind::Request(requests) = &mut queue.kind else { return };
        let waits = match state {
            State::Held => {
                requests.held.retain(|held| *held != head.0);
                true
            }
            State::Unread | State::Parked => true,
            State::Paused => requests.slots[usize::from(head.0)].pause != Pause::Errand,
            State::Free | State::Submitted => false,
        };
        if waits {
            let tag = tag_of(id, head);
            debug_assert!(queue_of(tag) == id && head_of(tag) == head);
            self.waiting.retain(|each| *each != tag);
            self.timers.retain(|timer| timer.tag != tag);
            queue.parked -= 1;
        }
    }
}

/// Heads of a queue that were taken and are not answered.
fn under_way(queue: &Active) -> Vec<Head> {
    let commands = (0..).zip(queue.seat.commands.iter());
    commands
        .filter(|(_, command)| command.state != State::Free)
        .map(|(head, _)| Head(head))
        .collect()
}
