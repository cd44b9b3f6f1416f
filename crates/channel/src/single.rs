//! A channel without a thread, for measurements: whoever holds it makes its turns.

use std::sync::Arc;

use protocol::stats::ChannelStats;
use rustix::event::EventfdFlags;

use crate::handle::{ChannelConfig, ChannelError, Drain, EventBell, prepare};
use crate::handler::Handler;
use crate::mailbox::{Mailbox, Pending, one_shot};
use crate::queue::{QueueId, QueueResources};
use crate::worker::{StartFailure, Worker};

/// The channel. It never sleeps and gets no messages but what is asked of it here, and no turn of it ends early for the time that it took: what is counted is the same on every machine.
pub struct Single<H: Handler>(Worker<H>);

impl<H: Handler> Single<H> {
    /// Makes it on this thread.
    ///
    /// # Errors
    ///
    /// As [`crate::Channel::start`].
    pub fn new(config: &ChannelConfig, stats: ChannelStats) -> Result<Single<H>, ChannelError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = rustix::event::eventfd(0, flags)
            .map_err(|error| ChannelError::System { index: config.index, source: error.into() })?;
        let mut worker = prepare(config, Arc::new(Mailbox::new(EventBell(bell))), stats)?;
        worker.without_clock();
        Ok(Single(worker))
    }

    /// Moves a queue in, as [`crate::Channel::start_queue`]. It stays.
    ///
    /// # Errors
    ///
    /// When the channel has no room or the device lacks something; the queue comes back.
    pub fn start_queue(
        &mut self,
        queue: QueueResources,
        device: H::Device,
    ) -> Result<QueueId, StartFailure> {
        self.0.start(Box::new(queue), device)
    }

    /// Asks for a queue back, as [`crate::Channel::stop_queue`]. Turns that follow answer.
    #[must_use]
    pub fn stop_queue(&mut self, queue: QueueId) -> Pending<QueueResources> {
        let (answer, pending) = one_shot();
        self.0.stop(queue, Drain::Ordinary, answer);
        pending
    }

    /// One turn; whether it found work.
    #[inline(never)]
    pub fn turn(&mut self) -> bool {
        self.0.one_turn()
    }

    /// A turn that is accounted for in the channel's statistics, as those of a channel with a thread are. Without work it sleeps until there is some.
    pub fn accounted_turn(&mut self) {
        self.0.step();
    }
}

impl<H: Handler> std::fmt::Debug for Single<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Single").finish_non_exhaustive()
    }
}
