//! What a sleep costs here: the timer, and what follows from it ([`crate::price`]).

use std::time::Duration;

use memory::clock;
use protocol::stats::ChannelCounter;
use uring::Op;

use super::Worker;
use crate::handler::Handler;
use crate::io::token;
use crate::lanes::Lanes;
use crate::price::{AWAKE_NS, PROBE_NS, Price, Probe};

/// A channel's own.
#[derive(Debug, Default)]
pub(super) struct Learner {
    price: Price,
    probe: Probe,
}

impl<H: Handler> Worker<H> {
    /// Whether it may not sleep yet.
    pub(super) fn measures(&self) -> bool {
        let now_ns = || clock::to_ns(self.io.now);
        self.learner.as_ref().is_some_and(|learner| learner.probe.stays_awake(now_ns()))
    }

    fn arm(&mut self, after_ns: u64, token: u64) {
        let timer = Op::Timeout { after: Duration::from_nanos(after_ns) };
        if self.io.ring.push(timer, Lanes::OWN.user_data(token)).is_err()
            && let Some(learner) = &mut self.learner
        {
            learner.probe.not_armed();
        }
    }

    /// The channel falls asleep now.
    pub(super) fn before_sleep(&mut self, now_ns: u64) {
        let weighs = self.waiter.weighs();
        let learner = self.learner.as_mut().filter(|_| weighs);
        if learner.is_some_and(|learner| learner.probe.before_sleep(now_ns)) {
            self.arm(PROBE_NS, token::PROBE);
        }
    }

    /// It slept from `begin_ns` to `end_ns`.
    pub(super) fn slept(&mut self, begin_ns: u64, end_ns: u64) {
        let Some(learner) = &mut self.learner else { return };
        if learner.probe.may_have_woken(end_ns)
            && self.io.ring.first() == Some(Lanes::OWN.user_data(token::PROBE))
            && learner.probe.woken(begin_ns, end_ns)
        {
            self.arm(AWAKE_NS, token::PROBE_AWAKE);
        }
    }

    /// A timer has run out.
    pub(super) fn probe_over(&mut self, token: u64) {
        let Some(learner) = &mut self.learner else { return };
        if token == token::PROBE {
            learner.probe.over();
            return;
        }
        let Some(cost_ns) = learner.probe.awake_over(clock::to_ns(clock::ticks())) else { return };
        let stats = self.io.stats;
        if learner.price.learn(cost_ns) {
            self.waiter.set_price(learner.price.ns());
            stats.set(ChannelCounter::SleepPrice, learner.price.ns());
            stats.add(ChannelCounter::PriceChanges, 1);
        }
        stats.set(ChannelCounter::PriceProbes, learner.price.seen());
    }
}
