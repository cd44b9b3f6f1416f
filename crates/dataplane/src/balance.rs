//! Moves queues of adaptive adapters between channels while they run.
//!
//! While there is load the thread looks at the counters ten times a second; when there is hardly any it sleeps until a channel
//! has worked again. What to move is [`placement::rebalance`]'s decision.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use channel::Activity;
use protocol::message::Placement;
use protocol::stats::{ChannelCounter, QueueCounter};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};

use crate::adapter::{PlaneContext, Shared};
use crate::lock::locked;
use crate::placement::{self, Move, QueueLoad};

/// How often the load is measured while there is some.
const PERIOD: Duration = Duration::from_millis(100);
/// A channel with less than this share of busy time has hardly any load.
const HARDLY: f64 = 0.02;

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
                if !scale.step() && stopped(&stop, Some(activity.before_sleep()), None) {
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
        }
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
        let adapters = (self.adapters)();
        let mut loads = Vec::new();
        for (number, adapter) in adapters.iter().enumerate() {
            self.measure(number, adapter, &busy, &commands, &mut loads);
        }
        let moves = placement::rebalance(&busy, &loads);
        for step in &moves {
            carry_out(&adapters[step.adapter], step);
        }
        !moves.is_empty() || busy.iter().any(|share| *share >= HARDLY)
    }

    fn measure(
        &mut self,
        number: usize,
        adapter: &Shared,
        busy: &[f64],
        commands: &[u64],
        loads: &mut Vec<QueueLoad>,
    ) {
        let spec = adapter.spec();
        let Some(queues) = adapter.queues_now() else { return };
        let allowed = placement::channels_allowed(&spec, usize::from(queues.started()), busy.len());
        for (queue, channel, stats) in queues.running() {
            let slot = stats.slot();
            if self.received.len() <= slot {
                self.received.resize(slot + 1, 0);
            }
            let received =
                since(&mut self.received[slot], stats.get(QueueCounter::CommandsReceived));
            let of_channel = commands[channel].max(received).max(1);
            let share = busy[channel] * received as f64 / of_channel as f64;
            if spec.placement == Placement::Adaptive {
                loads.push(QueueLoad { adapter: number, queue, channel, allowed, share });
            }
        }
    }
}

fn since(last: &mut u64, now: u64) -> u64 {
    now.saturating_sub(std::mem::replace(last, now))
}

fn carry_out(adapter: &Shared, step: &Move) {
    let Some(mut queues) = adapter.queues_now() else { return };
    queues.place_one(step.queue, step.to);
    adapter.update(&queues);
}

impl PlaneContext {
    /// How many queues each channel owns.
    pub(crate) fn queues_of_channels(&self) -> Vec<u64> {
        use protocol::stats::ChannelCounter::Queues;
        (0..self.channels.len()).map(|index| self.stats.channel(index).get(Queues)).collect()
    }
}
