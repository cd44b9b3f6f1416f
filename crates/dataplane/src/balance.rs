//! Moves queues of adaptive adapters between channels while they run.
//!
//! While there is load the thread looks at the counters ten times a second; when there is hardly any it sleeps until a channel
//! has worked again. What to move is [`placement::rebalance`]'s decision, which also takes who talks with whom: how many frames units of network cards have sent to
//! which others ([`channel::device::Device::talks`]), as a mean of the last looks.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use channel::Activity;
use channel::device::Party;
use protocol::message::Placement;
use protocol::stats::{ChannelCounter, QueueCounter};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

use crate::adapter::{PlaneContext, Shared};
use crate::lock::locked;
use crate::placement::{self, Move, Talk, UnitLoad};

/// How often the load is measured while there is some.
const PERIOD: Duration = Duration::from_millis(100);
/// A channel with less than this share of busy time has hardly any load.
const HARDLY: f64 = 0.02;

/// What the last look adds to the mean of those before.
const NEWEST: f64 = 0.25;

/// Says which adapters there are.
pub(crate) type Adapters = Box<dyn Fn() -> Vec<Arc<Shared>> + Send>;

/// The thread's handle.
pub(crate) struct Balancer {
    stop: OwnedFd,
    activity: Arc<Activity>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Balancer {
    pub(crate) fn new() -> std::io::Result<Balancer> {
        let stop = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        let activity = Arc::new(Activity::new()?);
        Ok(Balancer { stop, activity, thread: Mutex::new(None) })
    }

    /// What the channels ring.
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Starts the thread, if there is more than one channel to choose from.
    pub(crate) fn start(&self, plane: PlaneContext, adapters: Adapters) {
        if plane.channels.len() < 2 {
            return;
        }
        let Ok(stop) = self.stop.try_clone() else { return };
        let mut scale = Scale::new(plane, adapters);
        let activity = Arc::clone(&self.activity);
        let run = move || {
            while !stopped(&stop, None, Some(PERIOD)) {
                if scale.step() {
                    continue;
                }
                let bell = activity.before_sleep();
                // Who keeps a channel before that rang in vain.
                if scale.is_of_now() && stopped(&stop, Some(bell), None) {
                    return;
                }
            }
        };
        *locked(&self.thread) = std::thread::Builder::new().name("balancer".into()).spawn(run).ok();
    }

    pub(crate) fn stop(&self) {
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = locked(&self.thread).take() {
            let joined = thread.join();
            debug_assert!(joined.is_ok(), "a panic ends the process");
        }
    }
}

/// Waits for a time or for another descriptor; `true`: the thread is to end.
fn stopped(stop: &OwnedFd, other: Option<BorrowedFd<'_>>, wait: Option<Duration>) -> bool {
    let timeout = wait.and_then(|wait| Timespec::try_from(wait).ok());
    let stop = PollFd::new(stop, PollFlags::IN);
    let mut fds = match other {
        Some(other) => vec![stop, PollFd::from_borrowed_fd(other, PollFlags::IN)],
        None => vec![stop],
    };
    rustix::event::poll(&mut fds, timeout.as_ref()).is_ok() && !fds[0].revents().is_empty()
}

/// Counters at the last look.
struct Scale {
    plane: PlaneContext,
    adapters: Adapters,
    at: Instant,
    busy_ns: Vec<u64>,
    commands: Vec<u64>,
    /// By slot of the statistics.
    received: Vec<u64>,
    talks: HashMap<(Party, Party), Told>,
    /// Channels that were open.
    open: usize,
}

/// What a unit has told another.
#[derive(Debug, Clone, Copy)]
struct Told {
    frames: u64,
    /// Frames a second, as a mean of the last looks.
    rate: f64,
}

impl Scale {
    fn new(plane: PlaneContext, adapters: Adapters) -> Scale {
        let channels = plane.channels.len();
        Scale {
            plane,
            adapters,
            at: Instant::now(),
            busy_ns: vec![0; channels],
            commands: vec![0; channels],
            received: Vec::new(),
            talks: HashMap::new(),
            open: channels,
        }
    }

    /// Whether as many channels are open as at the last look.
    fn is_of_now(&self) -> bool {
        self.open == self.plane.open_channels()
    }

    /// Measures the load since the last look and moves queues; whether there was any load.
    fn step(&mut self) -> bool {
        let elapsed_ns = self.at.elapsed().as_nanos().max(1) as f64;
        self.at = Instant::now();
        let (mut busy, mut commands) = (Vec::new(), Vec::new());
        for index in 0..self.busy_ns.len() {
            let stats = self.plane.stats.channel(index);
            let busy_ns = since(&mut self.busy_ns[index], stats.get(ChannelCounter::Busy));
            busy.push((busy_ns as f64 / elapsed_ns).min(1.0));
            commands.push(since(&mut self.commands[index], stats.get(ChannelCounter::Commands)));
        }
        self.open = self.plane.open_channels();
        let adapters = (self.adapters)();
        let (mut loads, mut missed) = (Vec::new(), false);
        for (number, adapter) in adapters.iter().enumerate() {
            missed |= !self.measure(number, adapter, (&busy, &commands), &mut loads);
        }
        let talks = self.listen(&adapters, &loads, elapsed_ns / 1e9);
        let moves = placement::rebalance(&busy[..self.open], &loads, &talks);
        for step in &moves {
            carry_out(&adapters[step.adapter], step);
        }
        // Those that could not be looked at may be on a channel that is not open.
        let waits = missed && self.open < busy.len();
        waits || !moves.is_empty() || busy.iter().any(|share| *share >= HARDLY)
    }

    /// Adds what runs of an adapter; false: somebody waits for its queues.
    fn measure(
        &mut self,
        number: usize,
        adapter: &Shared,
        (busy, commands): (&[f64], &[u64]),
        loads: &mut Vec<UnitLoad>,
    ) -> bool {
        let spec = adapter.spec();
        let Some(queues) = adapter.queues_now() else { return false };
        let started = queues.started().div_ceil(adapter.device.together());
        let allowed = placement::channels_allowed(&spec, usize::from(started), self.open);
        let stays = spec.placement != Placement::Adaptive;
        let before = loads.len();
        for (unit, channel, stats) in queues.running() {
            let slot = stats.slot();
            if self.received.len() <= slot {
                self.received.resize(slot + 1, 0);
            }
            let received =
                since(&mut self.received[slot], stats.get(QueueCounter::CommandsReceived));
            let of_channel = commands[channel].max(received).max(1);
            let share = busy[channel] * received as f64 / of_channel as f64;
            match loads[before..].last_mut() {
                Some(load) if load.unit == unit => load.share += share,
                _ => loads.push(UnitLoad { adapter: number, unit, channel, allowed, share, stays }),
            }
        }
        true
    }

    /// Who talks with whom of those that run, in these seconds since the last look.
    fn listen(&mut self, adapters: &[Arc<Shared>], loads: &[UnitLoad], seconds: f64) -> Vec<Talk> {
        let mut told = HashMap::new();
        for adapter in adapters {
            adapter.device.talks(&mut |from, to, frames| {
                // One that was not there before has told nothing yet.
                let before = self.talks.get(&(from, to));
                let Told { frames: known, rate } =
                    before.copied().unwrap_or(Told { frames, rate: 0.0 });
                let now = frames.saturating_sub(known) as f64 / seconds;
                told.insert((from, to), Told { frames, rate: rate + NEWEST * (now - rate) });
            });
        }
        self.talks = told;
        let party = |(place, load): (usize, &UnitLoad)| {
            let party = adapters[load.adapter].device.party()?;
            Some((Party { unit: load.unit as u16, ..party }, place))
        };
        let at: HashMap<Party, usize> = loads.iter().enumerate().filter_map(party).collect();
        let mut talks: BTreeMap<[usize; 2], f64> = BTreeMap::new();
        for ((from, to), Told { rate, .. }) in self.talks.iter().filter(|(_, told)| told.rate > 1.0)
        {
            if let (Some(from), Some(to)) = (at.get(from), at.get(to)) {
                *talks.entry([*from.min(to), *from.max(to)]).or_default() += rate;
            }
        }
        talks.into_iter().map(|(between, frames)| Talk { between, frames }).collect()
    }
}

fn since(last: &mut u64, now: u64) -> u64 {
    now.saturating_sub(std::mem::replace(last, now))
}

fn carry_out(adapter: &Shared, step: &Move) {
    let Some(mut queues) = adapter.queues_now() else { return };
    queues.place_unit(step.unit, step.to);
    adapter.update(&queues);
}

impl PlaneContext {
    /// How many channels are open for clients' queues: the first ones.
    pub(crate) fn open_channels(&self) -> usize {
        placement::open_channels(self.channels.len(), self.keeps_one.load(SeqCst))
    }

    /// How many queues each channel owns.
    pub(crate) fn queues_of_channels(&self) -> Vec<u64> {
        use protocol::stats::ChannelCounter::Queues;
        (0..self.channels.len()).map(|index| self.stats.channel(index).get(Queues)).collect()
    }
}
