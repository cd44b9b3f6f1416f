//! The queue contract: how many channels serve a client's queues, and what limits them.
//!
//! The number of queues is what the guest sees and never changes while its driver runs. The number
//! of channels behind them is the minimum over what each party brings, and may change at any time
//! without the guest noticing. This module is the only place where that rule stands; the server
//! places by it, `trunkline adapter explain` names its answer, and the planner foretells with it.
//!
//! [`negotiate`] is the rule for block adapters, [`negotiate_npiv`] the one for virtual Fibre Channel
//! adapters, which have more parties and, with AIX clients, a memory.

mod npiv;

pub use npiv::{Levels, NpivNegotiated, NpivTerms, Offer, Policy, Subqueues, negotiate_npiv};

use serde::{Deserialize, Serialize};

/// What each party brings. Every number is at least 1; zero is taken as 1, because an adapter that
/// exists is always served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Queues that the client has started. Without a client: the queues the adapter offers.
    pub client: u32,
    /// The adapter's attribute `channels`; `None` when it is 0, "as many as there are".
    pub adapter: Option<u32>,
    /// Channels that the data plane runs.
    pub data_plane: u32,
    /// Submission queues of the physical port; `None` for adapters without one.
    pub port: Option<u32>,
}

/// Who limits the number of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// The client has no more queues.
    Client,
    /// The adapter's attribute `channels`.
    Adapter,
    /// The data plane runs no more channels.
    DataPlane,
    /// The port has no more submission queues.
    Port,
    /// The client's own attribute `num_io_queues`.
    ClientAttribute,
    /// The client's system has a single queue.
    ClientLevel,
    /// The virtual Fibre Channel adapter's attribute `num_per_range`.
    NumPerRange,
    /// The data plane's `num_per_range` (`viosnpiv0`), which the adapter inherits.
    Inherited,
    /// The adapter's attribute `limit_intr`.
    LimitIntr,
    /// The server has a single queue.
    ServerLevel,
    /// The firmware has no sub-queues.
    Firmware,
    /// The adapter behind the port has a single queue.
    PortLevel,
    /// The number that the client negotiated before, under the policy `aix`.
    Earlier,
}

impl Term {
    /// What would have to change for more channels.
    pub fn remedy(self) -> &'static str {
        match self {
            Term::Client => "give the client more queues (QEMU: num-queues)",
            Term::Adapter => "raise the adapter's `channels`, or set it to 0 for no limit",
            Term::DataPlane => "give the data plane more `channels` or `cpus`",
            Term::Port => "raise the port's `num_io_queues`",
            Term::ClientAttribute => {
                "raise the client's `num_io_queues` and reconfigure its adapter"
            }
            Term::ClientLevel => "bring the client to a level with multi-queue",
            Term::NumPerRange => "raise the adapter's `num_per_range`, or set it to 0 to inherit",
            Term::Inherited => "raise `num_per_range` of `viosnpiv0`, or of this adapter",
            Term::LimitIntr => "set the adapter's `limit_intr` to false",
            Term::ServerLevel => "bring the server to a level with multi-queue",
            Term::Firmware => "bring the firmware to a level with sub-queues",
            Term::PortLevel => "map the adapter to a port with multi-queue",
            Term::Earlier => "reconfigure the client's adapter, or restart the client",
        }
    }
}

impl std::fmt::Display for Term {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Term::Client => "client",
            Term::Adapter => "adapter",
            Term::DataPlane => "data plane",
            Term::Port => "port",
            Term::ClientAttribute => "client's num_io_queues",
            Term::ClientLevel => "client's level",
            Term::NumPerRange => "adapter's num_per_range",
            Term::Inherited => "viosnpiv0's num_per_range",
            Term::LimitIntr => "limit_intr",
            Term::ServerLevel => "server's level",
            Term::Firmware => "firmware",
            Term::PortLevel => "port's adapter",
            Term::Earlier => "earlier negotiation",
        })
    }
}

/// The answer: how many channels, and the first term (in the order of [`Term`]) that is this small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Negotiated {
    /// Channels that serve the client's queues; at least 1.
    pub channels: u32,
    /// Who limits them.
    pub limit: Term,
}

/// `channels = min(client, adapter, data plane, port)` over the terms that are there.
pub fn negotiate(terms: &Terms) -> Negotiated {
    least([
        (Some(terms.client), Term::Client),
        (terms.adapter, Term::Adapter),
        (Some(terms.data_plane), Term::DataPlane),
        (terms.port, Term::Port),
    ])
}

/// The smallest of the counts that are there and the first term that has it.
fn least(all: impl IntoIterator<Item = (Option<u32>, Term)>) -> Negotiated {
    let mut least = Negotiated { channels: u32::MAX, limit: Term::Client };
    for (count, limit) in all {
        if let Some(count) = count.map(|n| n.max(1))
            && count < least.channels
        {
            least = Negotiated { channels: count, limit };
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms() -> impl Strategy<Value = Terms> {
        let count = || 0u32..300;
        (count(), proptest::option::of(count()), count(), proptest::option::of(count())).prop_map(
            |(client, adapter, data_plane, port)| Terms { client, adapter, data_plane, port },
        )
    }

    fn present(terms: &Terms) -> Vec<(u32, Term)> {
        let mut all = vec![(terms.client, Term::Client), (terms.data_plane, Term::DataPlane)];
        all.extend(terms.adapter.map(|n| (n, Term::Adapter)));
        all.extend(terms.port.map(|n| (n, Term::Port)));
        all.into_iter().map(|(n, term)| (n.max(1), term)).collect()
    }

    #[test]
    fn the_smallest_party_is_named() {
        let all = Terms { client: 8, adapter: Some(4), data_plane: 2, port: Some(16) };
        assert_eq!(negotiate(&all), Negotiated { channels: 2, limit: Term::DataPlane });
        let one = Terms { client: 1, adapter: None, data_plane: 1, port: None };
        assert_eq!(negotiate(&one), Negotiated { channels: 1, limit: Term::Client });
        let none = Terms { client: u32::MAX, adapter: None, data_plane: u32::MAX, port: None };
        assert_eq!(negotiate(&none).channels, u32::MAX);
    }

    proptest! {
        #[test]
        fn is_the_minimum_of_the_terms_and_at_least_one(terms in terms()) {
            let answer = negotiate(&terms);
            let least = present(&terms).into_iter().map(|(n, _)| n).min().unwrap();
            prop_assert_eq!(answer.channels, least);
            prop_assert!(answer.channels >= 1);
        }

        #[test]
        fn the_named_term_is_the_limit(terms in terms()) {
            let answer = negotiate(&terms);
            prop_assert!(present(&terms).contains(&(answer.channels, answer.limit)));
        }

        #[test]
        fn raising_another_term_changes_nothing(terms in terms(), more in 1u32..100) {
            let before = negotiate(&terms);
            let mut raised = terms;
            if before.limit != Term::Client { raised.client += more; }
            if before.limit != Term::DataPlane { raised.data_plane += more; }
            if before.limit != Term::Adapter { raised.adapter = raised.adapter.map(|n| n + more); }
            if before.limit != Term::Port { raised.port = raised.port.map(|n| n + more); }
            prop_assert_eq!(negotiate(&raised).channels, before.channels);
        }

        #[test]
        fn never_grows_when_a_term_shrinks(terms in terms(), less in 1u32..100) {
            let before = negotiate(&terms).channels;
            let mut fewer = terms;
            fewer.client = fewer.client.saturating_sub(less);
            prop_assert!(negotiate(&fewer).channels <= before);
        }
    }
}
