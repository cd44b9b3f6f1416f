//! What LUs with two legs need besides: writes of clients in order, PVs that hang, PVs that return.
//!
//! # In order
//!
//! Two writes to the same blocks that are under way at once may reach the legs in a different order, and these would differ afterwards with nobody knowing. So of such writes the second begins when the first is
//! answered ([`order`](super::order)). Reads wait for nobody: of a write that is not answered they may see what was before.
//!
//! # A PV that hangs
//!
//! An operation on a PV without which the pool goes on may take [`DEADLINE`]. After that the PV is away: all that is under way there is told as failed, and goes on with the other leg. The kernel may still
//! carry it out, so its memory is nobody else's until it is over, and the PV does not return before. Where no PV answers that has the other leg, it is waited for one that does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use block::OpKind;
use memory::clock;
use pool::{Outcome, Request};

use super::effects::Todo;
use super::order::{Order, Range};
use super::{Asker, For, Work};
use crate::PoolError;
use crate::engine::Engine;
use crate::post::{Ask, ReplyTo};
use crate::table::OpenPv;

/// How long an operation on a PV may take without which the pool goes on.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
/// How often it is looked whether one takes longer.
const LOOK: Duration = Duration::from_secs(1);
/// A PV answers if it has done something within that time, or had nothing to do that is older.
const LATELY: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct Mirror {
    /// Writes that are not over, none under way over another.
    order: Order<Ask>,
    /// Those that waited for one that is over.
    next: Vec<Ask>,
    /// When it is looked again whether a PV hangs.
    look: Option<Instant>,
    /// The superblock of which it was told who is away.
    told: u64,
    /// The PV on which something failed before it served.
    failed: Option<u16>,
    /// Devices that were found where PVs should be and are not used: to be let go of, since they may be somebody else's.
    refused: BTreeSet<u16>,
    /// Who is told then.
    untold: Vec<(ReplyTo<Result<(), PoolError>>, PoolError)>,
    /// When something on a PV was done last.
    answered: BTreeMap<u16, Instant>,
}

fn changes(ask: &Ask) -> bool {
    ask.bytes > 0 && ask.op.writes() && ask.op != OpKind::Flush
}

impl Mirror {
    /// A PV that is away leaves: its device may be somebody else's.
    pub(super) fn lets_go_of(&mut self, pv: u16) {
        self.refused.insert(pv);
    }
}

impl Work {
    /// A request of a lane, behind those that write to the same place.
    pub(super) fn ask_in_order(&mut self, ask: Ask) {
        // One that lies nowhere is refused, and is nobody's neighbour.
        let end = ask.at.checked_add(ask.bytes).filter(|_| changes(&ask));
        let end = end.filter(|_| !memory::planted("legs-unordered"));
        let Some(end) = end else { return self.begin_ask(ask) };
        let range = Range { lu: ask.lu, at: ask.at, end };
        if let Some(ask) = self.mirror.order.come(range, ask) {
            self.begin_ask(ask);
        }
    }

    /// What wrote there is over.
    pub(super) fn is_over(&mut self, ask: &Ask) {
        if changes(ask) && ask.at.checked_add(ask.bytes).is_some() {
            let next = self.mirror.order.over(ask.lu, ask.at);
            self.mirror.next.extend(next);
        }
    }

    /// Begins with those that waited for others and need not any more.
    pub(super) fn next_asks(&mut self) {
        for ask in std::mem::take(&mut self.mirror.next) {
            self.begin_ask(ask);
        }
    }

    /// Keeps for a successor which PVs are lost, and tells of what superblocks say.
    pub(super) fn show_away(&mut self) {
        let unsaid = self.core.unsaid_losses();
        let told = self.core.superblock().sequence;
        self.stale |= self.mirror.told != told || !unsaid.is_empty();
        self.mirror.told = told;
        self.shared.shadow.lose(&unsaid);
    }

    /// When it is looked for PVs that hang.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let now = || clock::instant() + LOOK;
        (self.shared.mirrors && self.flying > 0).then(|| self.mirror.look.unwrap_or_else(now))
    }

    /// PVs on which something takes too long are away, if the pool goes on without them.
    pub(super) fn give_up_hung(&mut self, engine: &mut Engine<For>) {
        if !self.shared.mirrors || self.flying == 0 {
            return self.mirror.look = None;
        }
        let now = clock::instant();
        let due = *self.mirror.look.get_or_insert(now + LOOK);
        if now < due {
            return;
        }
        self.mirror.look = Some(now + LOOK);
        // It was this process that stood still, and what has come meanwhile may not be known yet.
        if now > due + LOOK {
            return;
        }
        let pool = self.number;
        let ours = move |what: &For| matches!(what, For::Effect { pool: of, .. } if *of == pool);
        let lanes = (0..).zip(self.lanes.clone()).filter_map(|(pv, lane)| Some((pv, lane?)));
        for (pv, lane) in lanes {
            let since = engine.oldest(lane, ours);
            let hangs = since.is_some_and(|since| since + DEADLINE <= now);
            // Before it serves it fails, and is opened again without that PV.
            let fails = self.opening.is_some() && !self.core.is_serving();
            if !hangs || !(fails || self.gives_up(engine, pv)) {
                continue;
            }
            self.fails(pv);
            self.stale = true;
            let mut failed = Vec::new();
            for what in engine.reasons(lane).filter(|what| ours(what)) {
                if let For::Effect { op, pv, paced, .. } = std::mem::replace(what, For::Nobody) {
                    *what = For::Late { pool, pv };
                    self.pacing.ends(pv, paced);
                    failed.push(op);
                }
            }
            self.flying -= failed.len();
            failed.append(&mut self.leave_line(pv));
            failed.into_iter().for_each(|op| self.core.done(op, Outcome::Failed));
        }
    }

    /// Gives up a PV that hangs, if the pool goes on without it. One that is away already has nothing to lose.
    fn gives_up(&mut self, engine: &Engine<For>, pv: u16) -> bool {
        let goes_on = self.core.is_away(pv) || self.another_answers(engine, pv);
        goes_on && self.core.does_without(pv) && self.core.give_up_pv(pv)
    }

    /// Whether a PV answers that has the other leg: where none does, what hangs is something that both need, and whichever comes back first is to serve.
    fn another_answers(&self, engine: &Engine<For>, pv: u16) -> bool {
        let members = &self.core.superblock().members;
        // One that is being added has nothing yet.
        let Some(its) = members.get(usize::from(pv)) else { return true };
        let lately = clock::instant().checked_sub(LATELY);
        let is_late = |at: Instant| lately.is_some_and(|lately| at < lately);
        let answers = |(number, lane): (u16, u16)| {
            let old = engine.oldest(lane, |_| true).is_some_and(is_late);
            !old || self.mirror.answered.get(&number).is_some_and(|at| !is_late(*at))
        };
        let mut others = (0..).zip(&self.lanes).zip(members).filter(|((number, _), other)| {
            other.tier == its.tier && other.group != its.group && !self.core.is_away(*number)
        });
        others.any(|((number, lane), _)| lane.is_some_and(|lane| answers((number, lane))))
    }

    /// Something on a PV is over.
    pub(super) fn answers(&mut self, pv: u16, well: bool) {
        if self.shared.mirrors && well {
            self.mirror.answered.insert(pv, clock::instant());
        }
    }

    /// Something failed on a PV.
    pub(super) fn fails(&mut self, pv: u16) {
        if self.opening.is_some() && !self.core.is_serving() {
            self.mirror.failed.get_or_insert(pv);
        }
    }

    /// Where the PV is on which it failed before it served, if it may open without that.
    pub(crate) fn failed_on(&self) -> Option<PathBuf> {
        let failed = self.mirror.failed.filter(|_| self.shared.mirrors)?;
        self.shared.pv(failed).map(|pv| pv.path)
    }

    /// Takes what waits for a PV's buffers out of the lines; what goes to others with it stays.
    fn leave_line(&mut self, pv: u16) -> Vec<u64> {
        let mut left = Vec::new();
        let mut todo = std::mem::take(&mut self.todo);
        for (line, all) in &mut todo {
            for one in std::mem::take(all) {
                let effects = [one.effect].into_iter().chain(one.also);
                let (theirs, others): (Vec<_>, Vec<_>) =
                    effects.partition(|effect| effect.pvs().contains(&Some(pv)));
                left.extend(theirs.iter().filter_map(pool::Effect::number));
                let mut others = others.into_iter();
                if let Some(effect) = others.next() {
                    all.push_back(Todo { effect, also: others.collect() });
                }
            }
            debug_assert!(*line != pv || all.iter().all(|one| one.pvs().all(|of| of != pv)));
        }
        todo.retain(|_, all| !all.is_empty());
        self.todo = todo;
        left
    }

    /// Lets go of a PV that is away; whether nothing is under way there, nor waits for a buffer: that would go to whatever device is there next.
    pub(crate) fn let_go_of(&mut self, engine: &mut Engine<For>, number: u16) -> bool {
        let Some(place) = self.lanes.get_mut(usize::from(number)) else { return false };
        let idle = place.is_none_or(|lane| engine.is_idle(lane));
        let away = self.core.is_away(number) || self.core.has_left_while_away(number);
        if !away || !idle || self.core.works_on(number) {
            return false;
        }
        self.mirror.refused.remove(&number);
        place.take().into_iter().for_each(|lane| engine.leave(lane));
        self.shared.put_pv(number, None);
        true
    }

    /// A PV does not return, by what is where it should be.
    pub(super) fn refuses(
        &mut self,
        pv: u16,
        reply: ReplyTo<Result<(), PoolError>>,
        why: PoolError,
    ) {
        self.mirror.refused.insert(pv);
        self.mirror.untold.push((reply, why));
    }

    /// Lets go of devices that are not used, as soon as nothing is under way there.
    pub(super) fn let_go_of_refused(&mut self, engine: &mut Engine<For>) {
        for pv in self.mirror.refused.clone() {
            self.let_go_of(engine, pv);
        }
        for (reply, why) in std::mem::take(&mut self.mirror.untold) {
            let _ = reply.send(Err(why));
        }
    }

    /// A PV that was away is there again.
    pub(crate) fn return_pv(
        &mut self,
        engine: &mut Engine<For>,
        number: u16,
        (pv, lane): (OpenPv, u16),
        reply: ReplyTo<Result<(), PoolError>>,
    ) {
        let place = self.lanes.get_mut(usize::from(number));
        let may = self.core.is_away(number) && !self.core.works_on(number);
        match place.filter(|place| place.is_none() && may) {
            Some(place) => {
                *place = Some(lane);
                self.shared.put_pv(number, Some(pv));
                // What was known of it is from before it was lost.
                self.shared.shadow.forget_pv(number);
                self.submit(Asker::Return(number, reply), Request::ReturnPv { pv: number });
            }
            None => {
                engine.leave(lane);
                let what = format!("PV {} does not return now", pv.path.display());
                let _ = reply.send(Err(PoolError { what, help: None }));
            }
        }
    }
}
