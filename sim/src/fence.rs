//! What the persistent reservations of a unit may be (SPC-4, 5.13), written from the standard: every order in which what is under way may have happened.
//!
//! - [`State`] is one state, and [`State::apply`] what a service action makes of it.
//! - A [`World`] is one of the states that there may be now, with those of the orders under way that have happened in it. [`Fence`] has all of
//!   them: an order that begins may happen from then on in any of them, an answer leaves those in which it was given, and a death leaves
//!   what was to survive a power loss. When none is left, no order of things explains the answers.
//! - A command that was let through, or was refused for a reservation, was under way at a time at which a world says so.
//! - Whoever was preempted *and aborted*, and has had no access since, has nothing under way that has an effect: [`Fence::answered`] says who.

use std::collections::{BTreeMap, BTreeSet};

/// A client: its only nexus.
pub(crate) type Who = usize;

/// Names an order that is under way.
pub(crate) type Order = u64;

/// What PERSISTENT RESERVE OUT or IN is to do. `kind` is a TYPE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    Register { key: u64, next: u64, ignore: bool, aptpl: bool },
    Reserve { key: u64, kind: u8 },
    Release { key: u64, kind: u8 },
    Clear { key: u64 },
    Preempt { key: u64, victim: u64, kind: u8, abort: bool },
    ReadKeys,
    ReadReservation,
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Good,
    /// RESERVATION CONFLICT.
    Conflict,
    /// ILLEGAL REQUEST.
    Illegal,
    /// PRGENERATION, and the keys, sorted.
    Keys(u32, Vec<u64>),
    /// PRGENERATION, and key and type of the reservation.
    Held(u32, Option<(u64, u8)>),
}

/// The six types that there are.
pub(crate) const KINDS: [u8; 6] = [1, 3, 5, 6, 7, 8];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct State {
    generation: u32,
    keys: BTreeMap<Who, u64>,
    held: Option<(Who, u8)>,
    aptpl: bool,
}

/// Everybody who is registered holds it.
fn is_of_all(kind: u8) -> bool {
    matches!(kind, 7 | 8)
}

impl State {
    fn holds(&self, who: Who) -> bool {
        self.held.is_some_and(|(holder, kind)| {
            holder == who || is_of_all(kind) && self.keys.contains_key(&who)
        })
    }

    /// Whether somebody may write, or read.
    fn lets(&self, who: Who, writes: bool) -> bool {
        let Some((_, kind)) = self.held else { return true };
        let by_key = matches!(kind, 5..=8) && self.keys.contains_key(&who);
        let all_read = matches!(kind, 1 | 5 | 7);
        self.holds(who) || by_key || all_read && !writes
    }

    /// Takes registrations away; a reservation that nobody is left for goes with them. Whoever preempts stays.
    fn remove(&mut self, gone: impl Fn(Who, u64) -> bool) -> BTreeSet<Who> {
        let out: BTreeSet<Who> =
            self.keys.iter().filter(|(who, key)| gone(**who, **key)).map(|(who, _)| *who).collect();
        self.keys.retain(|who, _| !out.contains(who));
        if let Some((holder, kind)) = self.held {
            let heir = self.keys.keys().next().copied().filter(|_| is_of_all(kind));
            let holder = if out.contains(&holder) { heir } else { Some(holder) };
            self.held = holder.map(|holder| (holder, kind));
        }
        out
    }

    /// What an order of somebody's makes of this, and who was preempted.
    fn apply(&mut self, who: Who, act: Act) -> (Outcome, BTreeSet<Who>) {
        let own = self.keys.get(&who).copied();
        let mut gone = BTreeSet::new();
        let needs = match act {
            Act::Reserve { key, .. }
            | Act::Release { key, .. }
            | Act::Clear { key }
            | Act::Preempt { key, .. } => Some(key),
            _ => None,
        };
        if needs.is_some() && own != needs {
            return (Outcome::Conflict, gone);
        }
        let outcome = match act {
            Act::ReadKeys => {
                let mut keys: Vec<u64> = self.keys.values().copied().collect();
                keys.sort_unstable();
                Outcome::Keys(self.generation, keys)
            }
            Act::ReadReservation => {
                let held = self.held.map(|(holder, kind)| {
                    (if is_of_all(kind) { 0 } else { self.keys[&holder] }, kind)
                });
                Outcome::Held(self.generation, held)
            }
            Act::Register { key, ignore, .. } if !ignore && own.unwrap_or(0) != key => {
                Outcome::Conflict
            }
            Act::Register { next: 0, .. } if own.is_none() => Outcome::Good,
            Act::Register { next, aptpl, .. } => {
                self.generation += 1;
                self.aptpl = aptpl;
                match next {
                    0 => drop(self.remove(|each, _| each == who)),
                    next => drop(self.keys.insert(who, next)),
                }
                Outcome::Good
            }
            Act::Reserve { kind, .. } => match self.held {
                None => {
                    self.held = Some((who, kind));
                    Outcome::Good
                }
                Some((_, held)) if self.holds(who) && held == kind => Outcome::Good,
                Some(_) => Outcome::Conflict,
            },
            Act::Release { .. } if !self.holds(who) => Outcome::Good,
            Act::Release { kind, .. } if self.held.is_some_and(|(_, held)| held != kind) => {
                Outcome::Illegal
            }
            Act::Release { .. } => {
                self.held = None;
                Outcome::Good
            }
            Act::Clear { .. } => {
                self.generation += 1;
                self.keys.clear();
                self.held = None;
                Outcome::Good
            }
            Act::Preempt { victim, kind, .. } => {
                let outcome;
                (outcome, gone) = self.preempt(who, victim, kind);
                outcome
            }
        };
        (outcome, gone)
    }

    fn preempt(&mut self, who: Who, victim: u64, kind: u8) -> (Outcome, BTreeSet<Who>) {
        let of_all = self.held.is_some_and(|(_, kind)| is_of_all(kind));
        let holder = self.held.and_then(|(holder, _)| self.keys.get(&holder).copied());
        let takes_over = if of_all { victim == 0 } else { holder == Some(victim) };
        if victim == 0 && !of_all {
            return (Outcome::Illegal, BTreeSet::new());
        }
        if !takes_over && !self.keys.values().any(|key| *key == victim) {
            return (Outcome::Conflict, BTreeSet::new());
        }
        self.generation += 1;
        let gone = self.remove(|each, key| each != who && (victim == 0 || key == victim));
        if takes_over {
            self.held = Some((who, kind));
        }
        (Outcome::Good, gone)
    }

    /// The power fails, or the process dies.
    fn survive(&mut self) {
        self.generation = 0;
        self.aptpl &= !self.keys.is_empty();
        if !self.aptpl {
            self.keys.clear();
            self.held = None;
        }
    }
}

/// One of the states that there may be, and what has happened of what is under way; with whom each order has shut out without a gap.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
struct World {
    state: State,
    done: BTreeMap<Order, (Outcome, BTreeSet<Who>)>,
}

impl World {
    fn after(&self, order: Order, (who, act): (Who, Act)) -> World {
        let mut world = self.clone();
        let (outcome, gone) = world.state.apply(who, act);
        let aborts = matches!(act, Act::Preempt { abort: true, .. });
        world.done.insert(order, (outcome, if aborts { gone } else { BTreeSet::new() }));
        for (_, shut) in world.done.values_mut() {
            shut.retain(|who| !world.state.lets(*who, true));
        }
        world
    }
}

/// A read or a write under way.
#[derive(Debug, Clone, Copy)]
struct Access {
    writes: bool,
    /// It may have been let through, and refused.
    lets: bool,
    refuses: bool,
}

/// The reservations of a unit, as they may be.
#[derive(Debug)]
pub(crate) struct Fence {
    worlds: BTreeSet<World>,
    open: BTreeMap<Order, (Who, Act)>,
    /// Of those: they do not happen any more where they have not happened.
    barred: BTreeSet<Order>,
    accesses: BTreeMap<(Who, u64), Access>,
    next: Order,
    /// Orders that were answered.
    pub orders: u64,
    /// Clients that were shut out by PREEMPT AND ABORT.
    pub shut: u64,
}

impl Default for Fence {
    fn default() -> Fence {
        Fence {
            worlds: BTreeSet::from([World::default()]),
            open: BTreeMap::new(),
            barred: BTreeSet::new(),
            accesses: BTreeMap::new(),
            next: 0,
            orders: 0,
            shut: 0,
        }
    }
}

impl Fence {
    /// Orders at once: all of their sequences are tried.
    pub(crate) const ORDERS_MAX: usize = 4;

    /// Whether another order may begin.
    pub(crate) fn has_room(&self) -> bool {
        self.open.len() < Fence::ORDERS_MAX
    }

    /// A key that somebody may be registered with.
    pub(crate) fn key_of(&self, who: Who) -> Option<u64> {
        self.worlds.iter().find_map(|world| world.state.keys.get(&who).copied())
    }

    /// An order begins.
    pub(crate) fn begin(&mut self, who: Who, act: Act) -> Order {
        self.next += 1;
        self.open.insert(self.next, (who, act));
        // What else may happen has happened in one of them already.
        let next: Vec<World> =
            self.worlds.iter().map(|world| world.after(self.next, (who, act))).collect();
        let new = next.into_iter().filter(|world| self.worlds.insert(world.clone())).collect();
        self.spread(new);
        self.next
    }

    /// Whatever may happen has happened in one of the worlds, of which these are new.
    fn spread(&mut self, mut new: Vec<World>) {
        while let Some(world) = new.pop() {
            for (order, act) in &self.open {
                if world.done.contains_key(order) || self.barred.contains(order) {
                    continue;
                }
                let next = world.after(*order, *act);
                if self.worlds.insert(next.clone()) {
                    new.push(next);
                }
            }
        }
        for ((who, _), access) in &mut self.accesses {
            note(access, *who, &self.worlds);
        }
    }

    /// An order was never sent.
    pub(crate) fn forget(&mut self, order: Order) {
        self.open.remove(&order);
        self.worlds.retain(|world| !world.done.contains_key(&order));
    }

    /// An order does not happen any more, if it has not happened.
    pub(crate) fn bar(&mut self, order: Order) {
        if self.open.contains_key(&order) {
            self.barred.insert(order);
        }
    }

    /// An order was answered; `None`: that it ended early, so it has happened or not. Who has been shut out for sure.
    pub(crate) fn answered(
        &mut self,
        order: Order,
        outcome: Option<&Outcome>,
    ) -> Result<BTreeSet<Who>, String> {
        let (who, act) = self.open.remove(&order).expect("it was begun");
        self.barred.remove(&order);
        self.orders += 1;
        let mut shut: Option<BTreeSet<Who>> = None;
        let before = std::mem::take(&mut self.worlds);
        for mut world in before.iter().cloned() {
            let done = world.done.remove(&order);
            if let Some(outcome) = outcome {
                let Some((_, gone)) = done.filter(|(here, _)| here == outcome) else { continue };
                shut = Some(shut.map_or(gone.clone(), |shut| &shut & &gone));
            }
            self.worlds.insert(world);
        }
        if self.worlds.is_empty() {
            let states: BTreeSet<&State> = before.iter().map(|world| &world.state).collect();
            return Err(format!("{act:?} of client {who} ends with {outcome:?}, of {states:?}"));
        }
        let shut = shut.unwrap_or_default();
        self.shut += shut.len() as u64;
        Ok(shut)
    }

    /// An order was answered: that it was refused before anything of it happened.
    pub(crate) fn refused(&mut self, order: Order) -> Result<(), String> {
        let (who, act) = self.open.remove(&order).expect("it was begun");
        self.barred.remove(&order);
        self.worlds.retain(|world| !world.done.contains_key(&order));
        match self.worlds.is_empty() {
            true => Err(format!("{act:?} of client {who} was refused, and has happened")),
            false => Ok(()),
        }
    }

    /// The process dies.
    pub(crate) fn die(&mut self) {
        let before = std::mem::take(&mut self.worlds);
        for mut world in before {
            world.state.survive();
            for (_, shut) in world.done.values_mut() {
                shut.retain(|who| !world.state.lets(*who, true));
            }
            self.worlds.insert(world);
        }
        self.spread(self.worlds.iter().cloned().collect());
    }

    /// The hosts of the clients lose their power: nobody asks any more.
    pub(crate) fn lose_power(&mut self) {
        self.accesses.clear();
        self.barred.clear();
        for order in std::mem::take(&mut self.open).into_keys() {
            let forget = |mut world: World| {
                world.done.remove(&order);
                world
            };
            self.worlds = std::mem::take(&mut self.worlds).into_iter().map(forget).collect();
        }
    }

    /// A read or a write begins.
    pub(crate) fn access(&mut self, who: Who, token: u64, writes: bool) {
        let mut access = Access { writes, lets: false, refuses: false };
        note(&mut access, who, &self.worlds);
        self.accesses.insert((who, token), access);
    }

    /// It was answered: that it was let through, or refused for a reservation; `None`: something else.
    pub(crate) fn accessed(
        &mut self,
        who: Who,
        token: u64,
        lets: Option<bool>,
    ) -> Result<(), String> {
        let Some(access) = self.accesses.remove(&(who, token)) else { return Ok(()) };
        let what = if access.writes { "write" } else { "read" };
        match lets {
            Some(true) if !access.lets => {
                Err(format!("a {what} {token:#x} of client {who} was let through a reservation"))
            }
            Some(false) if !access.refuses => Err(format!(
                "a {what} {token:#x} of client {who} met a reservation, and none shuts it out"
            )),
            _ => Ok(()),
        }
    }
}

fn note(access: &mut Access, who: Who, worlds: &BTreeSet<World>) {
    if access.lets && access.refuses {
        return;
    }
    for world in worlds {
        let lets = world.state.lets(who, access.writes);
        access.lets |= lets;
        access.refuses |= !lets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(next: u64) -> Act {
        Act::Register { key: 0, next, ignore: false, aptpl: true }
    }

    fn done(fence: &mut Fence, who: Who, act: Act, outcome: Outcome) -> BTreeSet<Who> {
        let order = fence.begin(who, act);
        fence.answered(order, Some(&outcome)).expect("it may be so")
    }

    #[test]
    fn a_fenced_client_is_let_through_only_while_it_may_be() {
        let mut fence = Fence::default();
        done(&mut fence, 0, register(10), Outcome::Good);
        done(&mut fence, 1, register(11), Outcome::Good);
        done(&mut fence, 1, Act::Reserve { key: 11, kind: 5 }, Outcome::Good);
        fence.access(1, 1, true);
        let act = Act::Preempt { key: 10, victim: 11, kind: 5, abort: true };
        let shut = done(&mut fence, 0, act, Outcome::Good);
        assert_eq!(shut, BTreeSet::from([1]));
        assert!(fence.accessed(1, 1, Some(true)).is_ok(), "it began before");
        fence.access(1, 2, true);
        assert!(fence.accessed(1, 2, Some(true)).is_err());
        fence.access(1, 3, false);
        assert!(fence.accessed(1, 3, Some(false)).is_err(), "everybody reads");
    }

    #[test]
    fn two_orders_happen_in_either_order_and_both_answers_have_to_fit() {
        for (first, second, fits) in [(true, false, true), (false, true, true), (true, true, false)]
        {
            let mut fence = Fence::default();
            done(&mut fence, 0, register(10), Outcome::Good);
            done(&mut fence, 1, register(11), Outcome::Good);
            let one = fence.begin(0, Act::Reserve { key: 10, kind: 1 });
            let other = fence.begin(1, Act::Reserve { key: 11, kind: 1 });
            let outcome = |good| if good { Outcome::Good } else { Outcome::Conflict };
            let ok = fence.answered(one, Some(&outcome(first))).is_ok()
                && fence.answered(other, Some(&outcome(second))).is_ok();
            assert_eq!(ok, fits);
        }
    }

    #[test]
    fn a_death_leaves_what_was_to_survive() {
        for aptpl in [false, true] {
            let mut fence = Fence::default();
            let act = Act::Register { key: 0, next: 10, ignore: true, aptpl };
            done(&mut fence, 0, act, Outcome::Good);
            // It is under way when the process dies.
            let second = fence.begin(1, register(11));
            fence.die();
            fence.bar(second);
            assert!(fence.answered(second, None).is_ok());
            let keys: &[&[u64]] = if aptpl { &[&[10], &[10, 11]] } else { &[&[], &[10, 11]] };
            for keys in keys {
                let mut fence = Fence { worlds: fence.worlds.clone(), ..Fence::default() };
                done(&mut fence, 0, Act::ReadKeys, Outcome::Keys(0, keys.to_vec()));
            }
            let order = fence.begin(0, Act::ReadKeys);
            assert!(fence.answered(order, Some(&Outcome::Keys(0, vec![11]))).is_err());
        }
    }
}
