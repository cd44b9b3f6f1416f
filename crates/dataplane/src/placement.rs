//! Which channel serves which queue. Pure.
//!
//! The queue contract: a client's queue count is constant; the number of channels behind it is the minimum of its queues, the
//! adapter's `channels` and those that the data plane has. An adapter begins at the channel with the fewest queues (its *home*) and uses the
//! next ones, round. `spread` uses all of them from the start. `adaptive` begins on the home channel alone; the rule [`rebalance`] moves
//! queues away from a channel that is busy and back together when the load has gone.
//!
//! Units of network cards *talk*: a frame for one on another channel is handed over, which costs a copy and perhaps a wake-up. So those that talk are brought
//! together while a channel has room for them ([`gather`]), and are not folded apart. What placements cost by that is one number, which every such move makes
//! lower ([`Placed::cost`]); and since none makes a channel busier than [`QUIET`], none undoes what a busy channel gave away.
//!
//! What is placed is a *unit*: queues that are always on one channel. That is a queue of a disk, and the pair of a network card
//! ([`channel::device::Device::TOGETHER`]), which answers by the one what came by the other. Wherever the contract counts queues it counts units.
//!
//! An uplink with `thread` has its descriptors on the last channel, which is *kept* for such as long as there is another: clients' queues are on those before it, which are
//! *open*. So what passes it is handed over, and no disk waits for the network's work.

use std::collections::{BTreeMap, BTreeSet};

use protocol::message::{AdapterSpec, Placement};

/// How many channels are open for clients' queues, the first ones, if one is to be kept.
pub(crate) fn open_channels(channels: usize, keeps_one: bool) -> usize {
    if keeps_one { channels.saturating_sub(1).max(1) } else { channels }
}

/// The channel of a descriptor of an uplink, by its number.
pub(crate) fn of_descriptor(number: usize, channels: usize, thread: bool) -> usize {
    if thread { channels.saturating_sub(1) } else { number % channels.max(1) }
}

/// How many channels may serve an adapter with this many units.
pub(crate) fn channels_allowed(spec: &AdapterSpec, units: usize, channels: usize) -> usize {
    let wanted = if spec.channels == 0 { channels } else { usize::from(spec.channels) };
    wanted.min(channels).min(units).max(1)
}

/// The channel of each unit for a client that has just connected. `load`: queues that each open channel owns.
pub(crate) fn initial(spec: &AdapterSpec, units: usize, load: &[u64]) -> Vec<usize> {
    let home = (0..load.len()).min_by_key(|index| load[*index]).unwrap_or(0);
    let allowed = match spec.placement {
        Placement::Spread => channels_allowed(spec, units, load.len()),
        Placement::Adaptive => 1,
    };
    (0..units).map(|unit| (home + unit % allowed) % load.len().max(1)).collect()
}

/// A channel whose share of busy time is above this gives queues away.
pub(crate) const BUSY: f64 = 0.70;
/// Queues fold onto one channel if it stays below this share of busy time with all of them.
pub(crate) const QUIET: f64 = 0.45;

/// So many frames a second that are handed over no more are worth a move.
pub(crate) const TALK: f64 = 100.0;
/// A channel more for an adapter costs as much as so many frames a second that are handed over: less than what is worth a move.
const SCATTER: f64 = TALK / 2.0;

/// A running unit, as the balancer sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct UnitLoad {
    /// Which adapter, by any number that tells adapters apart.
    pub(crate) adapter: usize,
    pub(crate) unit: usize,
    pub(crate) channel: usize,
    /// How many channels its adapter may use.
    pub(crate) allowed: usize,
    /// Its share of its channel's time, 0 to 1.
    pub(crate) share: f64,
    /// It stays where it is: its adapter is not adaptive.
    pub(crate) stays: bool,
}

/// Two units that talk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Talk {
    /// Which units, by their places in the list of all.
    pub(crate) between: [usize; 2],
    /// Frames a second, in both directions together.
    pub(crate) frames: f64,
}

/// A unit that is to run on another channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) adapter: usize,
    pub(crate) unit: usize,
    pub(crate) to: usize,
}

/// What is to move now. `busy` is each open channel's share of busy time.
///
/// What is on a channel that is not open leaves it, all at once. Else it is at most one adapter's worth of moves, so that each step can be measured before the next. Spreading comes first: the busiest channel above [`BUSY`] that has at least two loaded
/// units gives the one that fits best to the least busy channel, if that makes the worse of both better. Else an adapter that
/// uses several channels which together would keep one below [`QUIET`] is folded onto the one that has most of it, or those that talk are brought together.
pub(crate) fn rebalance(busy: &[f64], units: &[UnitLoad], talks: &[Talk]) -> Vec<Move> {
    let leaving = leave(busy, units);
    if !leaving.is_empty() {
        return leaving;
    }
    let placed = Placed { busy, units, talks };
    spread(busy, units)
        .map(|step| vec![step])
        .or_else(|| gather(&placed))
        .or_else(|| fold(&placed))
        .unwrap_or_default()
}

/// Takes units off channels that are not open, also those that stay otherwise: to the quietest one, within what their adapter may use. One that is adaptive is scattered no further
/// than it was.
fn leave(busy: &[f64], units: &[UnitLoad]) -> Vec<Move> {
    let (open, mut busy) = (busy.len(), busy.to_vec());
    let mut counts = vec![0_usize; open];
    let mut used: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for unit in units.iter().filter(|unit| unit.channel < open) {
        counts[unit.channel] += 1;
        used.entry(unit.adapter).or_default().insert(unit.channel);
    }
    let mut moves = Vec::new();
    for unit in units.iter().filter(|unit| unit.channel >= open) {
        let used = used.entry(unit.adapter).or_default();
        let most = if unit.stays { unit.allowed } else { 1 };
        let may = |to: &usize| used.len() < most.max(1) || used.contains(to);
        let quietest = (0..open)
            .filter(may)
            .min_by(|a, b| busy[*a].total_cmp(&busy[*b]).then(counts[*a].cmp(&counts[*b])));
        let Some(to) = quietest else { continue };
        used.insert(to);
        busy[to] += unit.share;
        counts[to] += 1;
        moves.push(Move { adapter: unit.adapter, unit: unit.unit, to });
    }
    moves
}

/// How everything is placed.
struct Placed<'a> {
    busy: &'a [f64],
    units: &'a [UnitLoad],
    talks: &'a [Talk],
}

impl Placed<'_> {
    /// What placements cost, in frames a second, as far as it depends on where the units of one adapter are, of which those that `moves` names are on channel
    /// `to`.
    fn cost(&self, adapter: usize, moves: impl Fn(usize) -> bool, to: usize) -> f64 {
        let place = |at: usize| if moves(at) { to } else { self.units[at].channel };
        let concerns =
            |talk: &&Talk| talk.between.iter().any(|at| self.units[*at].adapter == adapter);
        let parted = |talk: &&Talk| place(talk.between[0]) != place(talk.between[1]);
        let talks = self.talks.iter().filter(concerns).filter(parted);
        let frames: f64 = talks.map(|talk| talk.frames).sum();
        let of_adapter = (0..self.units.len()).filter(|at| self.units[*at].adapter == adapter);
        let mut channels: Vec<usize> = of_adapter.map(place).collect();
        channels.sort_unstable();
        channels.dedup();
        frames + SCATTER * channels.len().saturating_sub(1) as f64
    }

    /// What it gains to move these units of an adapter to a channel; none: it has no room for them, or they may not be there.
    fn gain(&self, adapter: usize, moves: impl Fn(usize) -> bool, to: usize) -> Option<f64> {
        let numbers = 0..self.units.len();
        let of_adapter = || numbers.clone().filter(|at| self.units[*at].adapter == adapter);
        let arrives = |at: &usize| moves(*at) && self.units[*at].channel != to;
        let arriving: f64 = of_adapter().filter(arrives).map(|at| self.units[at].share).sum();
        let mut channels: Vec<usize> =
            of_adapter().map(|at| if moves(at) { to } else { self.units[at].channel }).collect();
        channels.sort_unstable();
        channels.dedup();
        let allowed = of_adapter().map(|at| self.units[at].allowed).min().unwrap_or(1);
        let may = channels.len() <= allowed.max(channels_of(self.units, adapter).len());
        (may && self.busy[to] + arriving < QUIET)
            .then(|| self.cost(adapter, |_| false, to) - self.cost(adapter, moves, to))
    }
}

/// Brings one unit, or all of an adapter, to the channel of those that it talks with, if that spares at least [`TALK`] frames a second and a quarter of what it
/// talks.
fn gather(placed: &Placed<'_>) -> Option<Vec<Move>> {
    let Placed { units, talks, .. } = *placed;
    let mut best: Option<(f64, Vec<Move>)> = None;
    for talk in talks.iter().filter(|talk| talk.frames > 0.0) {
        let [one, other] = talk.between;
        for (at, to) in [(one, units[other].channel), (other, units[one].channel)] {
            let UnitLoad { adapter, channel, stays, .. } = units[at];
            if stays || channel == to {
                continue;
            }
            let all = |each: usize| units[each].adapter == adapter;
            let alone = |each: usize| each == at;
            for (gain, whole) in
                [(placed.gain(adapter, alone, to), false), (placed.gain(adapter, all, to), true)]
            {
                let moves = |each: usize| if whole { all(each) } else { alone(each) };
                let talks = talks.iter().filter(|talk| talk.between.iter().any(|at| moves(*at)));
                let talked: f64 = talks.map(|talk| talk.frames).sum();
                let Some(gain) = gain.filter(|gain| *gain >= TALK.max(talked / 4.0)) else {
                    continue;
                };
                if best.as_ref().is_none_or(|(most, _)| gain > *most) {
                    let moved =
                        (0..units.len()).filter(|each| moves(*each) && units[*each].channel != to);
                    let steps = moved.map(|each| Move { adapter, unit: units[each].unit, to });
                    best = Some((gain, steps.collect()));
                }
            }
        }
    }
    best.map(|(_, moves)| moves)
}

fn loaded(units: &[UnitLoad], channel: usize) -> impl Iterator<Item = &UnitLoad> {
    units.iter().filter(move |unit| unit.channel == channel && unit.share > 0.01)
}

/// Channels that an adapter's units run on.
fn channels_of(units: &[UnitLoad], adapter: usize) -> Vec<usize> {
    let mut channels: Vec<_> =
        units.iter().filter(|unit| unit.adapter == adapter).map(|unit| unit.channel).collect();
    channels.sort_unstable();
    channels.dedup();
    channels
}

fn spread(busy: &[f64], units: &[UnitLoad]) -> Option<Move> {
    let from = (0..busy.len()).max_by(|a, b| busy[*a].total_cmp(&busy[*b]))?;
    if busy[from] <= BUSY || loaded(units, from).count() < 2 {
        return None;
    }
    let target = |unit: &UnitLoad| {
        let used = channels_of(units, unit.adapter);
        let stay = |other: &&UnitLoad| other.adapter == unit.adapter && other.channel == from;
        let left = used.len() - usize::from(units.iter().filter(stay).count() == 1);
        let may = |to: &usize| *to != from && (left < unit.allowed || used.contains(to));
        (0..busy.len()).filter(may).min_by(|a, b| busy[*a].total_cmp(&busy[*b]))
    };
    // The worse of the two channels after the move.
    let worse = |unit: &UnitLoad, to: usize| (busy[to] + unit.share).max(busy[from] - unit.share);
    loaded(units, from)
        .filter(|unit| !unit.stays)
        .filter_map(|unit| target(unit).map(|to| (unit, to)))
        .filter(|(unit, to)| worse(unit, *to) < busy[from] - 0.1)
        .min_by(|a, b| worse(a.0, a.1).total_cmp(&worse(b.0, b.1)))
        .map(|(unit, to)| Move { adapter: unit.adapter, unit: unit.unit, to })
}

/// Brings an adapter onto one channel, unless that parts those that talk.
fn fold(placed: &Placed<'_>) -> Option<Vec<Move>> {
    let units = placed.units;
    let mut adapters: Vec<_> =
        units.iter().filter(|unit| !unit.stays).map(|unit| unit.adapter).collect();
    adapters.sort_unstable();
    adapters.dedup();
    for adapter in adapters {
        let used = channels_of(units, adapter);
        if used.len() < 2 {
            continue;
        }
        let of_adapter = || units.iter().filter(|unit| unit.adapter == adapter);
        let count = |channel: usize| of_adapter().filter(|unit| unit.channel == channel).count();
        let home = used
            .iter()
            .copied()
            .max_by_key(|channel| (count(*channel), usize::MAX - channel))
            .unwrap_or(0);
        let all = |at: usize| units[at].adapter == adapter;
        if placed.gain(adapter, all, home).is_some_and(|gain| gain > 0.0) {
            let away = of_adapter().filter(|unit| unit.channel != home);
            return Some(away.map(|unit| Move { adapter, unit: unit.unit, to: home }).collect());
        }
    }
    None
}

#[cfg(test)]
mod tests;
