//! Command elements: how many commands of each client a port lets be active at once.
//!
//! An adapter has up to what its own `num_cmd_elems` says, and all adapters of a port together up to what the port has. What one does not
//! use, others may. Only while commands of several adapters wait for one that ends, each has its part of the port's, by `share`; and the
//! last thirty-second of these is for adapters that have less than their part.

use serde::{Deserialize, Serialize};

/// What one adapter brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// Its own `num_cmd_elems`.
    pub own: u32,
    /// Its `share`; zero is taken as 1.
    pub share: u32,
}

/// What a port has, and what its adapters ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The port's `num_cmd_elems`.
    pub elements: u32,
    /// How many adapters are mapped to it.
    pub adapters: u32,
    /// Their own values together.
    pub asked: u64,
    /// Their shares together.
    pub shares: u64,
}

/// Who bounds the commands of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandTerm {
    /// The adapter's own `num_cmd_elems`.
    Adapter,
    /// The port's `num_cmd_elems`.
    Port,
    /// Its part of these, while others wait for them, too.
    PortShare,
}

impl CommandTerm {
    /// What would have to change for more commands.
    pub fn remedy(self) -> &'static str {
        match self {
            CommandTerm::Adapter => "raise the adapter's `num_cmd_elems`",
            CommandTerm::Port => "raise the port's `num_cmd_elems`",
            CommandTerm::PortShare => {
                "raise the port's `num_cmd_elems` or the adapter's `share`, or map adapters to another port"
            }
        }
    }
}

impl std::fmt::Display for CommandTerm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CommandTerm::Adapter => "adapter",
            CommandTerm::Port => "port",
            CommandTerm::PortShare => "part of the port",
        })
    }
}

/// What an adapter gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    /// Most commands of its client that are active at once.
    pub commands: u32,
    /// What is left to it when all adapters of the port want all that they may have; `None` where there is enough for all.
    pub part: Option<u32>,
    /// Whose the bound is: the adapter's own where both are the same.
    pub limit: CommandTerm,
}

impl Budget {
    /// A port with so many elements and the claims of the adapters that are mapped to it.
    pub fn new(elements: u32, claims: impl IntoIterator<Item = Claim>) -> Budget {
        let none = Budget { elements, adapters: 0, asked: 0, shares: 0 };
        claims.into_iter().fold(none, |sum, claim| Budget {
            adapters: sum.adapters.saturating_add(1),
            asked: sum.asked + u64::from(claim.own),
            shares: sum.shares + u64::from(claim.share.max(1)),
            ..sum
        })
    }

    /// The part of one of these adapters, when all want all that they may have.
    pub fn part(&self, claim: Claim) -> u32 {
        let share = u64::from(claim.share.max(1));
        // At most `elements`.
        let part = (u64::from(self.elements) * share / self.shares.max(share)) as u32;
        part.clamp(1, claim.own.max(1))
    }

    /// What one of these adapters gets.
    pub fn grant(&self, claim: Claim) -> Granted {
        let part = (self.asked > u64::from(self.elements)).then(|| self.part(claim));
        let (commands, limit) = match self.elements < claim.own {
            true => (self.elements, CommandTerm::Port),
            false => (claim.own, CommandTerm::Adapter),
        };
        Granted { commands, part, limit }
    }
}

#[cfg(test)]
mod tests;
