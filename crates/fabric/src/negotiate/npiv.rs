//! The queue contract of virtual Fibre Channel adapters.
//!
//! The number of channels is the minimum over what the client asks for, what the server offers and what the port
//! has. `num_per_range` of an adapter *replaces* the data plane's when it is not 0; `limit_intr` and any party without
//! multi-queue leave one channel. A client under the policy [`Policy::Aix`] remembers: what it negotiated first is its
//! maximum until its adapter is reconfigured, and what it had to give up stays given up until then (PowerVM NPIV
//! multi-queue article, "How are the end to end IO queues selected?" and the table of migrations). A client under
//! [`Policy::Linux`] asks anew each time and grows back (ibmvfc asks for the same number at every login).
//!
//! The answer is never more than the client asked for.

use serde::{Deserialize, Serialize};

use super::{Negotiated, Term, least};

/// How a client behaves when it negotiates again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// It never goes above what it negotiated before, until its adapter is reconfigured.
    Aix,
    /// It asks for all it wants each time.
    #[default]
    Linux,
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Policy::Aix => "aix",
            Policy::Linux => "linux",
        })
    }
}

/// Whether the firmware under a server can connect more than one queue.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Subqueues {
    /// It can.
    #[default]
    Yes,
    /// It cannot, and the one queue that comes of it becomes the maximum of a client that has none yet.
    No,
    /// It cannot, but a client that has no maximum yet keeps having none.
    NoUncounted,
}

/// Which parties know multi-queue at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// The client's system.
    pub client: bool,
    /// The server. A client that meets one that does not has negotiated nothing: it gets no maximum, though one that
    /// it has shrinks to 1.
    pub server: bool,
    /// The firmware.
    pub firmware: Subqueues,
    /// The physical adapter behind the port.
    pub port: bool,
}

impl Levels {
    /// Everybody knows it: our own servers and clients.
    pub const ALL: Levels =
        Levels { client: true, server: true, firmware: Subqueues::Yes, port: true };
}

/// What each party brings. Zero is taken as 1, except where it is said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NpivTerms {
    /// Queues that the client has started, or could; `None` where that is not known.
    pub client: Option<u32>,
    /// The client's own attribute `num_io_queues`; `None` for clients without it.
    pub client_num_io_queues: Option<u32>,
    /// The adapter's attribute `num_per_range`; 0 inherits.
    pub num_per_range: u32,
    /// The data plane's (`viosnpiv0`) `num_per_range`.
    pub inherited: u32,
    /// Channels that the data plane runs; `None` where that is not known.
    pub data_plane: Option<u32>,
    /// The port's attribute `num_io_queues`; `None` where that is not known.
    pub port: Option<u32>,
    /// The adapter's attribute `limit_intr`.
    pub limit_intr: bool,
    /// Who knows multi-queue.
    pub levels: Levels,
    /// How the client behaves when it negotiates again.
    pub policy: Policy,
    /// [`NpivNegotiated::maximum`] of the negotiation before; `None` at first and after the client's adapter was
    /// reconfigured. Has no effect under [`Policy::Linux`].
    pub earlier: Option<u32>,
}

/// What one term allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Whose.
    pub term: Term,
    /// How many; `None` means no limit.
    pub count: Option<u32>,
    /// Whether the answer is this small because of it. Several terms may be as small.
    pub limits: bool,
}

/// The answer with all that led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NpivNegotiated {
    /// Channels that serve the client's queues; at least 1, never more than the client asked for.
    pub channels: u32,
    /// The first term that limits them; [`Term::remedy`] says what would change it.
    pub limit: Term,
    /// All terms.
    pub offers: Vec<Offer>,
    /// How many there would be, and who would limit them then, if every term that limits now were lifted; `None` when
    /// nothing else would.
    pub then: Option<(u32, Term)>,
    /// The client's maximum from now on, for [`NpivTerms::earlier`] of the next negotiation.
    pub maximum: Option<u32>,
}

/// The minimum over the terms that are there, and the client's maximum after it.
pub fn negotiate_npiv(terms: &NpivTerms) -> NpivNegotiated {
    let all = counts(terms);
    let Negotiated { channels, limit } = least(all);
    let limits = |count: Option<u32>| count.is_some_and(|n| n.max(1) == channels);
    let rest = all.into_iter().filter(|(count, _)| count.is_some() && !limits(*count));
    let then = least(rest);
    NpivNegotiated {
        channels,
        limit,
        offers: all
            .into_iter()
            .map(|(count, term)| Offer { term, count, limits: limits(count) })
            .collect(),
        then: (then.channels < u32::MAX).then_some((then.channels, then.limit)),
        maximum: maximum(terms, channels),
    }
}

/// One line for each term, in the order in which they are named when several are as small.
fn counts(terms: &NpivTerms) -> [(Option<u32>, Term); 11] {
    let single = |is: bool| is.then_some(1);
    let levels = &terms.levels;
    let per_range = match terms.num_per_range {
        0 => (Some(terms.inherited), Term::Inherited),
        own => (Some(own), Term::NumPerRange),
    };
    [
        (single(!levels.client), Term::ClientLevel),
        (single(!levels.server), Term::ServerLevel),
        (single(levels.firmware != Subqueues::Yes), Term::Firmware),
        (single(terms.limit_intr), Term::LimitIntr),
        (single(!levels.port), Term::PortLevel),
        (terms.client, Term::Client),
        (terms.client_num_io_queues, Term::ClientAttribute),
        per_range,
        (terms.data_plane, Term::DataPlane),
        (terms.port, Term::Port),
        (terms.earlier.filter(|_| terms.policy == Policy::Aix), Term::Earlier),
    ]
}

/// A number was agreed on only where client and server both know multi-queue and the firmware does not stand in the
/// way; what was agreed on is kept, and only shrinks.
fn maximum(terms: &NpivTerms, channels: u32) -> Option<u32> {
    let levels = &terms.levels;
    let agreed = levels.client && levels.server && levels.firmware != Subqueues::NoUncounted;
    match (terms.policy, terms.earlier) {
        (Policy::Linux, _) => None,
        (Policy::Aix, Some(earlier)) => Some(earlier.max(1).min(channels)),
        (Policy::Aix, None) => agreed.then_some(channels),
    }
}

#[cfg(test)]
mod tests;
