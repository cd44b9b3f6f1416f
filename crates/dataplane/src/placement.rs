//! Which channel serves which queue. Pure.
//!
//! The queue contract: a client's queue count is constant; the number of channels behind it is the minimum of its queues, the
//! adapter's `channels` and those that the data plane has. An adapter begins at the channel with the fewest queues (its *home*) and uses the
//! next ones, round. `spread` uses all of them from the start. `adaptive` begins on the home channel alone; the rule [`rebalance`] moves
//! queues away from a channel that is busy and back together when the load has gone.

use protocol::message::{AdapterSpec, Placement};

/// How many channels may serve an adapter with this many queues.
pub(crate) fn channels_allowed(spec: &AdapterSpec, queues: usize, channels: usize) -> usize {
    let wanted = if spec.channels == 0 { channels } else { usize::from(spec.channels) };
    wanted.min(channels).min(queues).max(1)
}

/// The channel of each queue for a client that has just connected. `load`: queues that each channel owns.
pub(crate) fn initial(spec: &AdapterSpec, queues: usize, load: &[u64]) -> Vec<usize> {
    let home = (0..load.len()).min_by_key(|index| load[*index]).unwrap_or(0);
    let allowed = match spec.placement {
        Placement::Spread => channels_allowed(spec, queues, load.len()),
        Placement::Adaptive => 1,
    };
    (0..queues).map(|queue| (home + queue % allowed) % load.len().max(1)).collect()
}

/// A channel whose share of busy time is above this gives queues away.
pub(crate) const BUSY: f64 = 0.70;
/// Queues fold onto one channel if it stays below this share of busy time with all of them.
pub(crate) const QUIET: f64 = 0.45;

/// A running queue of an adaptive adapter, as the balancer sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QueueLoad {
    /// Which adapter, by any number that tells adapters apart.
    pub(crate) adapter: usize,
    pub(crate) queue: usize,
    pub(crate) channel: usize,
    /// How many channels its adapter may use.
    pub(crate) allowed: usize,
    /// Its share of its channel's time, 0 to 1.
    pub(crate) share: f64,
}

/// A queue that is to run on another channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) adapter: usize,
    pub(crate) queue: usize,
    pub(crate) to: usize,
}

/// At most one adapter's worth of moves, so that each step can be measured before the next.
///
/// `busy` is each channel's share of busy time. Spreading comes first: the busiest channel above [`BUSY`] that has at least two loaded
/// queues gives the one that fits best to the least busy channel, if that makes the worse of both better. Else an adapter that
/// uses several channels which together would keep one below [`QUIET`] is folded onto the one that has most of it.
pub(crate) fn rebalance(busy: &[f64], queues: &[QueueLoad]) -> Vec<Move> {
    spread(busy, queues).map_or_else(|| fold(busy, queues), |step| vec![step])
}

fn loaded(queues: &[QueueLoad], channel: usize) -> impl Iterator<Item = &QueueLoad> {
    queues.iter().filter(move |queue| queue.channel == channel && queue.share > 0.01)
}

/// Channels that an adapter's queues run on.
fn channels_of(queues: &[QueueLoad], adapter: usize) -> Vec<usize> {
    let mut channels: Vec<_> =
        queues.iter().filter(|queue| queue.adapter == adapter).map(|queue| queue.channel).collect();
    channels.sort_unstable();
    channels.dedup();
    channels
}

fn spread(busy: &[f64], queues: &[QueueLoad]) -> Option<Move> {
    let from = (0..busy.len()).max_by(|a, b| busy[*a].total_cmp(&busy[*b]))?;
    if busy[from] <= BUSY || loaded(queues, from).count() < 2 {
        return None;
    }
    let target = |queue: &QueueLoad| {
        let used = channels_of(queues, queue.adapter);
        let may = |to: &usize| *to != from && (used.len() < queue.allowed || used.contains(to));
        (0..busy.len()).filter(may).min_by(|a, b| busy[*a].total_cmp(&busy[*b]))
    };
    // The worse of the two channels after the move.
    let worse =
        |queue: &QueueLoad, to: usize| (busy[to] + queue.share).max(busy[from] - queue.share);
    loaded(queues, from)
        .filter_map(|queue| target(queue).map(|to| (queue, to)))
        .filter(|(queue, to)| worse(queue, *to) < busy[from] - 0.1)
        .min_by(|a, b| worse(a.0, a.1).total_cmp(&worse(b.0, b.1)))
        .map(|(queue, to)| Move { adapter: queue.adapter, queue: queue.queue, to })
}

fn fold(busy: &[f64], queues: &[QueueLoad]) -> Vec<Move> {
    let mut adapters: Vec<_> = queues.iter().map(|queue| queue.adapter).collect();
    adapters.sort_unstable();
    adapters.dedup();
    for adapter in adapters {
        let used = channels_of(queues, adapter);
        if used.len() < 2 {
            continue;
        }
        let of_adapter = || queues.iter().filter(|queue| queue.adapter == adapter);
        let count = |channel: usize| of_adapter().filter(|queue| queue.channel == channel).count();
        let home = used
            .iter()
            .copied()
            .max_by_key(|channel| (count(*channel), usize::MAX - channel))
            .unwrap_or(0);
        let arriving: f64 =
            of_adapter().filter(|queue| queue.channel != home).map(|queue| queue.share).sum();
        if busy[home] + arriving < QUIET {
            let away = of_adapter().filter(|queue| queue.channel != home);
            return away.map(|queue| Move { adapter, queue: queue.queue, to: home }).collect();
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests;
