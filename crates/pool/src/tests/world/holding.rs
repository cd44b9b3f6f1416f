//! What hangs, and what fails.

use std::collections::VecDeque;

use super::{Flying, World};
use crate::pool::{Effect, Outcome, Payload, Reader};

/// What hangs.
pub(in super::super) struct Held(VecDeque<Flying>);

impl Held {
    pub(in super::super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl World {
    /// Takes what clients write and is under way.
    pub(in super::super) fn hold_writes(&mut self) -> Held {
        let is_it =
            |effect: &Effect| matches!(effect, Effect::Write { what: Payload::Client { .. }, .. });
        self.hold(usize::MAX, is_it)
    }

    /// Takes what the pool writes of its own to one of these places and is under way.
    pub(in super::super) fn hold_own(&mut self, places: &[(u16, u64)]) -> Held {
        self.hold(usize::MAX, |effect| match effect {
            Effect::Write { pv, at, what: Payload::Own(_), .. } => places.contains(&(*pv, *at)),
            _ => false,
        })
    }

    /// Takes what is read for clients and is under way.
    pub(in super::super) fn hold_reads(&mut self) -> Held {
        self.hold(usize::MAX, |effect| match effect {
            Effect::Read { to, .. } => matches!(to, Reader::Verified | Reader::Client { .. }),
            _ => false,
        })
    }

    /// Takes a flush of a PV that is under way.
    pub(in super::super) fn hold_flush(&mut self, pv: u16) -> Option<Held> {
        let held =
            self.hold(1, |effect| matches!(effect, Effect::Flush { pv: of, .. } if *of == pv));
        Some(held).filter(|held| !held.is_empty())
    }

    fn hold(&mut self, most: usize, is_it: impl Fn(&Effect) -> bool) -> Held {
        let mut held = Held(VecDeque::new());
        for flying in std::mem::take(&mut self.flying) {
            let takes = matches!(&flying, Flying::Effect(effect, _) if is_it(effect));
            let to = if takes && held.0.len() < most { &mut held.0 } else { &mut self.flying };
            to.push_back(flying);
        }
        held
    }

    /// … which goes on.
    pub(in super::super) fn let_go(&mut self, held: Held) {
        self.flying.extend(held.0);
    }

    /// … which fails.
    pub(in super::super) fn fail(&mut self, held: Held) {
        for flying in held.0 {
            if let Flying::Effect(effect, _) = flying {
                self.pool.done(effect.op(), Outcome::Failed);
                self.collect();
            }
        }
    }

    /// What a client writes to a PV fails once, if something is under way.
    pub(in super::super) fn fail_write(&mut self, pv: u16) -> bool {
        self.fail_one(|_, effect| {
            matches!(effect, Effect::Write { pv: of, what: Payload::Client { .. }, .. } if *of == pv)
        })
    }

    /// What could not be read on a PV cannot be written there either, if it is being written.
    pub(in super::super) fn fail_rewrite(&mut self, pv: u16) -> bool {
        self.fail_one(|world, effect| match effect {
            Effect::Write { pv: of, what: Payload::Own(_), at, .. } => {
                *of == pv && world.bad.contains(&(pv, at / 4096))
            }
            _ => false,
        })
    }

    /// The first such effect that is under way fails, if there is one.
    fn fail_one(&mut self, is_it: impl Fn(&World, &Effect) -> bool) -> bool {
        let is_it = |flying: &Flying| match flying {
            Flying::Effect(effect, _) => is_it(self, effect),
            _ => false,
        };
        let Some(at) = self.flying.iter().position(is_it) else { return false };
        if let Some(Flying::Effect(effect, _)) = self.flying.remove(at) {
            self.pool.done(effect.op(), Outcome::Failed);
            self.collect();
        }
        true
    }
}
