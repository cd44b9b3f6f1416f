//! Effects on PVs: carried out where there is memory for them, lined up by PV where there is none.

use std::collections::VecDeque;

use block::OpKind;
use memory::IoBuf;
use pool::{Effect, Outcome, Payload, Reader};

use super::{Asker, For, Then, Whose, Work};
use crate::engine::{Buffer, Engine, is_large};

/// Buffers that operations on one PV have at once, of each size. So a PV that hangs keeps those, and none of others.
const SMALL_MAX: usize = 32;
const LARGE_MAX: usize = 8;

/// Buffers that operations on a PV have.
#[derive(Debug, Default)]
pub(super) struct Purse {
    small: usize,
    large: usize,
}

impl Purse {
    fn of(&mut self, large: bool) -> &mut usize {
        if large { &mut self.large } else { &mut self.small }
    }

    fn has_room(&self, large: bool) -> bool {
        if large { self.large < LARGE_MAX } else { self.small < SMALL_MAX }
    }
}

/// An effect on a PV. With it go writes of the same bytes of a client to others: that may change its memory meanwhile, and they are to be alike.
#[derive(Debug)]
pub(super) struct Todo {
    pub(super) effect: Effect,
    pub(super) also: Vec<Effect>,
}

impl Todo {
    pub(super) fn pvs(&self) -> impl Iterator<Item = u16> {
        [&self.effect].into_iter().chain(&self.also).filter_map(of_effect)
    }
}

impl Work {
    pub(super) fn begin(
        &mut self,
        engine: &mut Engine<For>,
        pv: u16,
        op: OpKind,
        (at, bytes): (u64, u64),
        buffer: Option<Buffer>,
        (number, then, whose): (u64, Then, Whose),
    ) {
        // Never what another PV has at that place.
        let Some(lane) = self.lanes.get(usize::from(pv)).copied().flatten() else {
            buffer.into_iter().for_each(|buffer| engine.give_back(buffer));
            return self.core.done(number, Outcome::Failed);
        };
        self.flying += 1;
        if let Some(buffer) = &buffer {
            self.pay(pv, buffer, true);
        }
        let paced = self.pacing.begins(pv, whose, bytes);
        let what_for = For::Effect { pool: self.number, op: number, pv, then, paced };
        engine.begin(lane, op, at, bytes, buffer, what_for);
    }

    /// An operation on a PV has a buffer from now on, or not any more.
    pub(crate) fn pay(&mut self, pv: u16, buffer: &Buffer, takes: bool) {
        let count = self.purses.entry(pv).or_default().of(buffer.is_large());
        *count = if takes { *count + 1 } else { count.saturating_sub(1) };
    }

    /// Carries out effects behind those that wait for a PV's buffers, or lines them up there.
    pub(super) fn put(&mut self, engine: &mut Engine<For>, todo: Todo) {
        let waits = |pv: &u16| bytes_of(&todo.effect) > 0 && self.todo.contains_key(pv);
        let waits = todo.pvs().find(waits);
        let waits = match waits {
            Some(pv) => Some((pv, todo)),
            None => self.carry_out(engine, todo),
        };
        if let Some((pv, todo)) = waits {
            self.todo.entry(pv).or_default().push_back(todo);
        }
    }

    /// Goes on with what waited for buffers, as far as there are some by now.
    pub(super) fn go_on(&mut self, engine: &mut Engine<For>) {
        for pv in self.todo.keys().copied().collect::<Vec<_>>() {
            while let Some(todo) = self.todo.get_mut(&pv).and_then(VecDeque::pop_front) {
                let Some((whose, todo)) = self.carry_out(engine, todo) else { continue };
                let line = self.todo.entry(whose).or_default();
                if whose == pv {
                    line.push_front(todo);
                    break;
                }
                // Of another PV too many are out as well: nobody here waits for that.
                line.push_back(todo);
            }
            if self.todo.get(&pv).is_some_and(VecDeque::is_empty) {
                self.todo.remove(&pv);
            }
        }
    }

    /// Carries out effects on PVs; gives them back where there is no memory for them now, with the PV whose operations have it.
    fn carry_out(&mut self, engine: &mut Engine<For>, todo: Todo) -> Option<(u16, Todo)> {
        if self.lacks_its_bytes(&todo.effect) {
            let effects = [todo.effect].into_iter().chain(todo.also);
            let numbers: Vec<u64> = effects.filter_map(|effect| effect.number()).collect();
            numbers.into_iter().for_each(|op| self.core.done(op, Outcome::Failed));
            return None;
        }
        let bytes = bytes_of(&todo.effect);
        let mut buffers = Vec::new();
        if bytes > 0 {
            let full = |pv: &u16| {
                let purse = self.purses.get(pv);
                purse.is_some_and(|purse| !purse.has_room(is_large(bytes)))
            };
            let whose = todo.pvs().find(full);
            while whose.is_none() && buffers.len() <= todo.also.len() {
                let Some(buffer) = engine.buffer(bytes as usize) else { break };
                buffers.push(buffer);
            }
            if buffers.len() <= todo.also.len() {
                buffers.into_iter().for_each(|buffer| engine.give_back(buffer));
                let whose = whose.or(of_effect(&todo.effect)).unwrap_or_default();
                return Some((whose, todo));
            }
        }
        let first = buffers.first().map(|buffer| buffer.part(0, bytes as usize));
        if let (Effect::Write { what, .. }, Some(buffer)) = (&todo.effect, first) {
            self.fill(buffer, what);
        }
        for buffer in buffers.iter().skip(1) {
            buffer.part(0, bytes as usize).copy_from(first.unwrap_or(IoBuf::EMPTY));
        }
        let mut buffers = buffers.into_iter();
        for effect in [todo.effect].into_iter().chain(todo.also) {
            self.begin_effect(engine, effect, bytes, buffers.next());
        }
        None
    }

    fn begin_effect(
        &mut self,
        engine: &mut Engine<For>,
        effect: Effect,
        bytes: u64,
        buffer: Option<Buffer>,
    ) {
        match effect {
            Effect::Write { op, pv, at, durable, what } => {
                let write = OpKind::Write { fua: durable };
                let whose = self.whose(matches!(what, Payload::Client { .. }));
                self.begin(engine, pv, write, (at, bytes), buffer, (op, Then::Done, whose));
            }
            Effect::Read { op, pv, at, to, .. } => {
                let (then, whose) = match to {
                    Reader::Pool => (Then::Bytes, Whose::Pool),
                    Reader::Check => (Then::Bytes, Whose::Copy),
                    Reader::Verified => (Then::Bytes, self.whose(true)),
                    Reader::Client { tag, from } => {
                        (Then::Client { ask: tag, from }, self.whose(true))
                    }
                };
                self.begin(engine, pv, OpKind::Read, (at, bytes), buffer, (op, then, whose));
            }
            Effect::Copy { op, from, to: (pv, at), .. } => {
                let then = Then::Copy { pv, at };
                let what = (op, then, Whose::Copy);
                self.begin(engine, from.0, OpKind::Read, (from.1, bytes), buffer, what);
            }
            Effect::Flush { op, .. } if memory::planted("pv-unflushed") => {
                self.core.done(op, Outcome::Done);
            }
            Effect::Flush { op, pv } => {
                let what = (op, Then::Done, Whose::Pool);
                self.begin(engine, pv, OpKind::Flush, (0, 0), None, what);
            }
            Effect::Zero { .. }
            | Effect::Give { .. }
            | Effect::Drain { .. }
            | Effect::Answer { .. } => {}
        }
    }

    /// Of clients whose channels do most by themselves nothing is learned.
    fn whose(&self, client: bool) -> Whose {
        if client && self.shared.mirrors { Whose::Client } else { Whose::Pool }
    }

    /// Whether it writes what a client gave whose request is over, as all are when the pool stops: nobody knows any more what that was, and its place keeps what it has.
    fn lacks_its_bytes(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Write { what: Payload::Client { tag, .. }, .. } => {
                !matches!(self.asks.get(tag), Some(Asker::Lane(_)))
            }
            _ => false,
        }
    }

    /// What is written.
    fn fill(&self, buffer: IoBuf, what: &Payload) {
        match what {
            Payload::Own(bytes) => buffer.write(0, bytes),
            Payload::Zeros(_) => buffer.fill(0),
            Payload::Client { tag, from, bytes, before, after } => {
                let (before, bytes, after) = (*before as usize, *bytes as usize, *after as usize);
                buffer.slice(0, before).fill(0);
                match self.asks.get(tag) {
                    Some(Asker::Lane(ask)) => ask.take(*from, buffer.slice(before, bytes)),
                    // It is not begun without. In no case what another one had there.
                    _ => buffer.slice(before, bytes).fill(0),
                }
                buffer.slice(before + bytes, after).fill(0);
            }
        }
    }

    pub(super) fn bring(&mut self, tag: u64, from: u64, bytes: &[u8]) {
        if let Some(Asker::Lane(ask)) = self.asks.get(&tag) {
            ask.put_bytes(from, bytes);
        }
    }

    pub(super) fn zero(&mut self, tag: u64, from: u64, bytes: u64) {
        if let Some(Asker::Lane(ask)) = self.asks.get(&tag) {
            ask.zero(from, bytes);
        }
    }
}

/// The PV of an effect.
fn of_effect(effect: &Effect) -> Option<u16> {
    match effect {
        Effect::Write { pv, .. } | Effect::Read { pv, .. } | Effect::Flush { pv, .. } => Some(*pv),
        Effect::Copy { from, .. } => Some(from.0),
        Effect::Zero { .. }
        | Effect::Give { .. }
        | Effect::Drain { .. }
        | Effect::Answer { .. } => None,
    }
}

/// Whether they write the same bytes of a client's to different places.
pub(super) fn is_same(one: &Effect, other: &Effect) -> bool {
    let (Effect::Write { what: first, .. }, Effect::Write { what, .. }) = (one, other) else {
        return false;
    };
    matches!(what, Payload::Client { .. }) && first == what
}

/// Bytes of a buffer that it takes.
fn bytes_of(effect: &Effect) -> u64 {
    match effect {
        Effect::Write { what, .. } => length(what),
        Effect::Read { bytes, .. } | Effect::Copy { bytes, .. } => *bytes,
        _ => 0,
    }
}

fn length(what: &Payload) -> u64 {
    match what {
        Payload::Own(bytes) => bytes.len() as u64,
        Payload::Zeros(bytes) => *bytes,
        Payload::Client { bytes, before, after, .. } => before + bytes + after,
    }
}
