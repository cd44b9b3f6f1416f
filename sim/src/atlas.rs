//! What met what: which events came while what was under way, in all runs. A combination that never comes is one that the simulator does not try.

use std::fmt;

use memory::sim::{self, Met, PHASES};

/// Kinds of things that may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Read,
    Write,
    Compare,
    Flush,
    Discard,
    Order,
    Function,
    /// A process begins: it opens the volume and takes up its clients.
    Beginning,
    /// Queues are stopped for a change.
    Changing,
}

const NAMES: [&str; 9] =
    ["read", "write", "compare", "flush", "discard", "order", "function", "beginning", "changing"];

/// Until it is dropped, by a death too.
pub(crate) struct Under(Phase);

impl Under {
    pub(crate) fn new(phase: Phase) -> Under {
        sim::enter(phase as usize);
        Under(phase)
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        sim::leave(self.0 as usize);
    }
}

/// The hosts of all clients have lost their power: nothing is asked.
pub(crate) fn nothing_is_asked() {
    (Phase::Read as usize..=Phase::Function as usize).for_each(sim::leave_all);
}

/// What met what in several runs.
#[derive(Debug, Default)]
pub(crate) struct Atlas(Met);

impl Atlas {
    pub(crate) fn add(&mut self, met: &Met) {
        for (event, phases) in met {
            let sum = self.0.entry(event).or_insert([0; PHASES]);
            sum.iter_mut().zip(phases).for_each(|(sum, phase)| *sum += phase);
        }
    }

    /// How often an event came while something was under way.
    #[cfg(test)]
    pub(crate) fn times(&self, event: &str, phase: Phase) -> u64 {
        self.0.get(event).map_or(0, |phases| phases[phase as usize])
    }
}

impl fmt::Display for Atlas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<26}", "while there was")?;
        NAMES.iter().try_for_each(|name| write!(f, "{name:>10}"))?;
        for (event, phases) in &self.0 {
            write!(f, "\n{event:<26}")?;
            phases[..NAMES.len()].iter().try_for_each(|times| write!(f, "{times:>10}"))?;
        }
        Ok(())
    }
}
