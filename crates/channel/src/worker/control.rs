//! What other threads ask of a channel: start, stop, tell, abort. Off the path of an I/O.

use std::collections::{HashSet, VecDeque};
use std::os::fd::AsFd;
use std::sync::Arc;

use block::Tag;
use protocol::message::WaitMode;
use protocol::stats::{ChannelCounter, FlightKind, QueueCounter};
use uring::{FileSlot, Op};

use super::{Drain, Handler, Message, OneShot, Opened, Phase, Served, StartFailure, Worker, token};
use crate::handler::{After, Sweep};
use crate::lanes::Lanes;
use crate::off_path::Returned;
use crate::queue::{QueueId, QueueResources, RunningQueue};

/// Commands that have to end, and who waits for that.
pub(super) struct Ending<H: Handler> {
    left: HashSet<Tag>,
    /// More of them are looked for.
    search: Option<Search<H::Scope>>,
    then: Then<H>,
}

/// A search for the commands of a scope: some in each turn. What is not taken from a ring yet is taken first.
struct Search<S> {
    scope: S,
    /// Queues that were there when it began, the first one under way.
    queues: VecDeque<(u16, Stage)>,
}

enum Stage {
    /// So many heads are in the ring at most: a client that adds more all the while must not keep the search here. To the client they came before
    /// what is handled next.
    Take(u16),
    Look(Sweep),
}

/// How much searches do in one turn: descriptors that are looked at, as a rule.
pub(super) const EFFORT: usize = 512;

impl Stage {
    const START: Stage = Stage::Look(Sweep { next: 0, effort: 0 });
}

enum Then<H: Handler> {
    /// So many there were, as far as is known.
    Count(OneShot<u32>, u32),
    /// The handler of a queue is told.
    Tell(u16, H::Message),
}

impl<H: Handler> Worker<H> {
    pub(super) fn message(&mut self, message: Message<H>) {
        match message {
            Message::Start(queue, device, answer) => answer.send(self.start(queue, device)),
            Message::Stop(id, drain, answer) => self.stop(id, drain, answer),
            Message::SkipWaits(id, adapter, number) => {
                let served = self.queues.get(usize::from(id.0)).and_then(Option::as_deref);
                let queue = served.map(|served| &served.queue.resources);
                let is_meant = |queue: &QueueResources| {
                    Arc::ptr_eq(&queue.adapter, &adapter) && queue.number == number
                };
                if queue.is_some_and(is_meant) {
                    self.skip_waits(id);
                }
            }
            Message::SetLog(id, log, used, answer) => {
                self.served(id.0).queue.resources.ring.set_log(log, used);
                answer.send(());
            }
            Message::Tell(id, message) => self.tell(id.0, message),
            Message::ResetMarks(id) => {
                let Served { queue, handler } = self.served(id.0);
                queue.resources.stats.reset_marks();
                handler.reset_marks();
            }
            Message::Abort(scope, answer) => self.abort(scope, answer),
            Message::Returned(returned) => self.returned(returned),
            Message::Elements(id) => self.elements_came(id),
            Message::Refresh => self.refresh(),
            Message::Run(function) => function(),
            Message::Exit => self.exit = true,
        }
    }

    pub(crate) fn start(
        &mut self,
        resources: Box<QueueResources>,
        device: H::Device,
    ) -> Result<QueueId, StartFailure> {
        let index = self.queues.iter().position(Option::is_none).unwrap_or_else(|| {
            self.queues.push(None);
            self.queues.len() - 1
        });
        let id = QueueId(index as u16);
        self.io.opening = id;
        // Who is to be looked through under this number has been given back.
        for search in self.endings.iter_mut().filter_map(|ending| ending.search.as_mut()) {
            search.queues.retain(|(other, _)| *other != id.0);
        }
        let (kick, call, opened) = match self.register(&resources, device) {
            Ok(registered) => registered,
            Err(what) => return Err(StartFailure { queue: resources, what }),
        };
        let Opened { handler, lists: (count, length), pulls, owes, rereads, is_asked } = opened;
        let mut queue = RunningQueue::new(*resources, id, kick, call);
        queue.lists = self.io.lists.open(count, length);
        self.io.reserve(usize::from(queue.resources.ring.size()), self.queues.len());
        self.hot.reserve(self.queues.len());
        self.io.watch(&mut queue);
        queue.disarm();
        queue.count(QueueCounter::Starts, 1);
        self.io.event(FlightKind::Start, &queue, 0);
        self.io.notify(&mut queue);
        queue.pulls = pulls;
        queue.rereads = rereads;
        queue.is_asked = is_asked;
        if pulls {
            // Its heads stay in the ring until there is something to tell.
            queue.phase = Phase::Armed;
        } else {
            self.hot.push(id.0);
        }
        let served = self.queues[index].insert(Box::new(Served { queue, handler }));
        if owes && let Err(error) = served.take_owed(&mut self.io) {
            self.ring_broke(id.0, error);
        }
        self.refresh();
        Ok(id)
    }

    /// Registers what a queue needs in the ring, its two descriptors, and makes its handler.
    fn register(
        &mut self,
        resources: &QueueResources,
        device: H::Device,
    ) -> Result<(FileSlot, Option<FileSlot>, Opened<H>), String> {
        let ring = &mut self.io.ring;
        let kick = ring.register(resources.kick.as_fd()).map_err(|error| error.to_string())?;
        let call = resources.call.as_ref().map(|call| ring.register(call.as_fd())).transpose();
        let call = call.map_err(|error| (None, error.to_string()));
        let opened = call.and_then(|call| {
            let opened = H::open(device, &mut self.shared, &mut self.io, resources);
            Ok((call, opened.map_err(|what| (call, what))?))
        });
        match opened {
            Ok((call, opened)) => Ok((kick, call, opened)),
            Err((call, what)) => {
                self.io.ring.unregister(kick);
                call.into_iter().for_each(|call| self.io.ring.unregister(call));
                Err(what)
            }
        }
    }

    pub(crate) fn stop(&mut self, id: QueueId, drain: Drain, answer: OneShot<QueueResources>) {
        if drain.skips_waits() {
            self.skip_waits(id);
        }
        let queue = &mut self.served(id.0).queue;
        assert!(queue.stop.is_none(), "a queue is stopped once");
        self.take_for_searches(id.0);
        // Who is looked through yet has to be here with all that was taken.
        let mut searches = self.endings.iter().filter_map(|ending| ending.search.as_ref());
        let is_searched =
            searches.any(|search| search.queues.iter().any(|(queue, _)| *queue == id.0));
        let Worker { io, queues, .. } = self;
        let served = queues[usize::from(id.0)].as_deref_mut();
        let served = served.expect("it was here a moment ago");
        if served.queue.takes_heads()
            && !served.queue.pulls
            && served.queue.resources.ring.resubmits()
        {
            served.take_all_resubmitted(io);
        }
        if drain.comes_back() && !is_searched && served.handler.pauses() {
            served.queue.leave_kept();
        }
        let queue = &mut served.queue;
        queue.stop = Some(answer);
        queue.phase = Phase::Draining;
        let (slot, in_flight) = (queue.resources.stats.slot(), queue.resources.ring.in_flight());
        let drained = queue.is_drained();
        if queue.held() > 0 {
            // What it holds only because it pauses is begun now.
            let Worker { io, queues, .. } = self;
            let served = queues[usize::from(id.0)].as_deref_mut();
            io.list(&mut served.expect("it was here a moment ago").queue);
        }
        self.io.record(FlightKind::Stop, slot, u64::from(in_flight));
        self.hot.retain(|hot| *hot != id.0);
        if drained {
            self.close(id.0);
        }
    }

    /// What waits for a moment is due, and what comes later does not wait.
    fn skip_waits(&mut self, id: QueueId) {
        if memory::planted("removal-waits") {
            return;
        }
        self.served(id.0).queue.skips_waits = true;
        self.io.make_due(id);
    }

    /// A drained queue: ends the poll on its kick. A broken queue stays drained until somebody asks for it.
    pub(super) fn close(&mut self, id: u16) {
        let Some(served) = self.queues[usize::from(id)].as_deref_mut() else {
            unreachable!("a queue that is drained is here");
        };
        if served.queue.stop.is_none() {
            return;
        }
        if served.queue.touched {
            served.publish(&mut self.io);
        }
        let queue = &mut served.queue;
        queue.phase = Phase::Closing;
        let erring = queue.error.is_some();
        for (in_kernel, token) in
            [(queue.watched, token::KICK), (queue.notifying, token::NOTIFY), (erring, token::ERROR)]
        {
            if in_kernel {
                let user_data = Lanes::OWN.user_data(token + u64::from(id));
                self.io.push(Op::Cancel { user_data }, Lanes::OWN.user_data(token::IGNORED));
            }
        }
        self.give_back_if_quiet(id);
    }

    pub(super) fn give_back_if_quiet(&mut self, id: u16) {
        let queue = &self.served(id).queue;
        if !queue.watched && !queue.notifying && queue.error.is_none() {
            self.give_back(id);
        }
    }

    /// Nothing in the kernel knows the queue any more: answers with what it came with.
    fn give_back(&mut self, id: u16) {
        let Some(served) = self.queues[usize::from(id)].take() else {
            unreachable!("a queue is given back once");
        };
        let Served { mut queue, mut handler } = *served;
        if queue.listed {
            self.io.touched.retain(|listed| *listed != id);
        }
        self.io.ring.unregister(queue.kick);
        if let Some(call) = queue.call {
            self.io.ring.unregister(call);
        }
        handler.close(&mut self.io);
        // What it has at hand goes back before anybody may start the queue again.
        drop(handler);
        self.io.lists.close(std::mem::take(&mut queue.lists));
        self.io.wanting.retain(|wanting| *wanting != id);
        // What ended last on it has made room, too, and so have its lists. It is on no list of queues any more that would tell.
        self.io.room_came();
        self.io.release(usize::from(queue.resources.ring.size()));
        self.io.event(FlightKind::Stopped, &queue, 0);
        queue.show_levels();
        self.refresh();
        let answer = queue.stop.take().expect("a queue is closed for somebody");
        answer.send(queue.resources);
    }

    /// The channel polls if any of its queues wants that, is adaptive if any wants that, and else sleeps at once.
    pub(super) fn refresh(&mut self) {
        let rank = |mode: &WaitMode| match mode {
            WaitMode::Interrupt => 0,
            WaitMode::Adaptive => 1,
            WaitMode::Poll => 2,
        };
        let queues = || self.queues.iter().flatten();
        let mode = queues().map(|served| served.queue.resources.adapter.wait()).max_by_key(rank);
        self.waiter.set_mode(mode.unwrap_or(WaitMode::Interrupt));
        self.io.stats.set(ChannelCounter::Queues, queues().count() as u64);
    }

    fn tell(&mut self, id: u16, message: H::Message) {
        if self.endings.is_empty() {
            // Nobody waited for these. Their heads may be other commands' by now, for which somebody will.
            self.io.ended_early.clear();
        }
        let Some(Served { queue, handler }) = self.queues[usize::from(id)].as_deref_mut() else {
            unreachable!("a queue is told while it is here");
        };
        match handler.message(&mut self.io, queue, message) {
            Ok(None) => {}
            Ok(Some(After { commands, message })) => {
                let left = commands.into_iter().collect();
                self.endings.push(Ending { left, search: None, then: Then::Tell(id, message) });
            }
            Err(error) => self.ring_broke(id, error),
        }
    }

    /// An off-path request was answered.
    fn returned(&mut self, returned: Returned) {
        let Returned { queue: QueueId(id), head, ticket, answer } = returned;
        let Some(Served { queue, handler }) = self.queues[usize::from(id)].as_deref_mut() else {
            unreachable!("a queue stays until its answers came");
        };
        queue.answers_due -= 1;
        // The queue may have waited for just this.
        self.io.list(queue);
        // A command that was aborted meanwhile is gone, and its head may be another one's.
        let waits = &mut queue.tickets[usize::from(head)];
        if *waits == ticket {
            *waits = 0;
            handler.answered(&mut self.io, queue, vring::Head(head), answer);
            self.start_polling(id);
        }
    }

    /// A queue that waited for command elements has some, if it is still here.
    fn elements_came(&mut self, id: QueueId) {
        let served = self.queues.get_mut(usize::from(id.0)).and_then(Option::as_deref_mut);
        let Some(served) = served else { return };
        if served.take_held(&mut self.io) {
            self.io.list(&mut served.queue);
        }
        served.handler.woken(&mut self.io, &mut served.queue);
        self.start_polling(id.0);
    }

    /// Begins to end the commands of a scope.
    fn abort(&mut self, scope: H::Scope, answer: OneShot<u32>) {
        // What has ended so far must not be taken for a command that gets its head now.
        self.publish();
        self.settle_endings();
        let concerned = |(id, served): (usize, &Option<Box<Served<H>>>)| {
            let Served { queue, handler } = served.as_deref()?;
            let from_ring = queue.takes_heads() && !queue.pulls;
            let from_ring = from_ring && !memory::planted("abort-taken-only");
            let stage =
                if from_ring { Stage::Take(queue.resources.ring.size()) } else { Stage::START };
            handler.concerns(&scope).then_some((id as u16, stage))
        };
        let queues = self.queues.iter().enumerate().filter_map(concerned).collect();
        let search = Some(Search { scope, queues });
        self.endings.push(Ending { left: HashSet::new(), search, then: Then::Count(answer, 0) });
        self.search();
    }

    /// What is left to be done when a turn ends, for those who wait for commands to end; whether there is more of it.
    #[cold]
    pub(super) fn end_early(&mut self) -> bool {
        self.settle_endings();
        self.search();
        self.effort = EFFORT;
        self.endings.iter().any(|ending| ending.left.is_empty() || ending.search.is_some())
    }

    /// Goes on with searches, as far as this turn may. What has ended is published and settled.
    fn search(&mut self) {
        while self.effort > 0
            && let Some(at) = self.endings.iter().position(|ending| ending.search.is_some())
        {
            self.go_on_with(at);
        }
    }

    fn go_on_with(&mut self, at: usize) {
        // Taken out: to take heads is to serve a queue.
        let mut search = self.endings[at].search.take().expect("it has one");
        while self.effort > 0
            && let Some((id, stage)) = search.queues.front_mut()
        {
            if self.queues[usize::from(*id)].is_none() {
                // Given back, with everything ended.
                search.queues.pop_front();
                continue;
            }
            match stage {
                // Who takes heads publishes, and what has just ended would be taken for a command that gets its head: in the next turn.
                Stage::Take(_) if !self.io.ended_early.is_empty() => self.effort = 0,
                Stage::Take(left) => {
                    let taken = self.take_some(*id);
                    self.effort = self.effort.saturating_sub(1 + 4 * usize::from(taken));
                    *left = left.saturating_sub(taken);
                    if taken == 0 || *left == 0 {
                        *stage = Stage::START;
                    }
                }
                Stage::Look(sweep) => {
                    sweep.effort = self.effort;
                    let served = self.queues[usize::from(*id)].as_deref_mut();
                    let Served { queue, handler } = served.expect("looked at just now");
                    let mut later = Vec::new();
                    let found =
                        handler.abort(&mut self.io, queue, &search.scope, sweep, &mut later);
                    self.effort = sweep.effort;
                    if sweep.is_over(queue) {
                        search.queues.pop_front();
                    }
                    let ending = &mut self.endings[at];
                    ending.left.extend(later);
                    if let Then::Count(_, count) = &mut ending.then {
                        *count += found;
                    }
                }
            }
        }
        self.endings[at].search = Some(search).filter(|search| !search.queues.is_empty());
    }

    /// Begins some of what is in a ring; how many heads.
    fn take_some(&mut self, id: u16) -> u16 {
        let Worker { queues, io, .. } = self;
        let Some(served) = queues[usize::from(id)].as_deref_mut() else {
            unreachable!("a queue that is concerned is here");
        };
        if !served.queue.takes_heads() {
            return 0;
        }
        let taken = match served.take(io) {
            // Nothing is left then.
            Ok(None) => served.take_and_hold(io).map(|()| 0),
            Ok(Some(taken)) => Ok(taken),
            Err(error) => Err(error),
        };
        match taken {
            Ok(taken) => {
                self.start_polling(id);
                taken
            }
            Err(error) => {
                self.ring_broke(id, error);
                0
            }
        }
    }

    /// A queue is about to take no more heads. Those that searches want are taken now: nobody looks into its ring until it is somewhere else.
    fn take_for_searches(&mut self, id: u16) {
        let searches = self.endings.iter_mut().filter_map(|ending| ending.search.as_mut());
        let stages = searches.flat_map(|search| search.queues.iter_mut());
        let mut most = 0;
        for (_, stage) in stages.filter(|(queue, _)| *queue == id) {
            if let Stage::Take(left) = *stage {
                most = most.max(left);
                *stage = Stage::START;
            }
        }
        // No more were there; a client that adds more all the while must not keep the channel here.
        while most > 0 {
            match self.take_some(id) {
                0 => break,
                taken => most = most.saturating_sub(taken),
            }
        }
    }

    /// Answers those who waited for commands that have ended, now that the ends are published.
    pub(super) fn settle_endings(&mut self) {
        let ended = std::mem::take(&mut self.io.ended_early);
        for ending in self.endings.iter_mut().filter(|ending| !ending.left.is_empty()) {
            for tag in &ended {
                ending.left.remove(tag);
            }
        }
        let is_over = |ending: &Ending<H>| ending.left.is_empty() && ending.search.is_none();
        while let Some(at) = self.endings.iter().position(is_over) {
            match self.endings.remove(at).then {
                Then::Count(answer, count) => answer.send(count),
                Then::Tell(id, message) => self.tell(id, message),
            }
        }
    }
}
