//! A queue inside its channel.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use block::{LaneId, Volume};
use device::blk::{Shape, Status};
use memory::clock;
use protocol::message::WaitMode;
use protocol::stats::{Latency, LunStats, QueueCounter, QueueStats, Span, StatsRegion};
use uring::FileSlot;
use vring::{Head, Queue, QueueError};

use crate::command::{Command, State};
use crate::mailbox::OneShot;
use crate::scsi::{
    CommandPool, ControlQueue, Errand, EventQueue, LunMap, Requests, ScsiLimits, ScsiRole,
};

/// Why a queue stopped by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// Its ring breaks the rules.
    #[error(transparent)]
    Ring(#[from] QueueError),
    /// The client took away memory that it had shared.
    #[error("the client truncated its shared memory; connect again")]
    Memory,
}

/// What the queues of one adapter share, and read only.
pub struct Adapter {
    /// Its name.
    pub name: String,
    wait: AtomicU8,
    on_stop: Box<dyn Fn(u16, StopReason) + Send + Sync>,
    pub(crate) errands: Box<dyn Fn(Errand) + Send + Sync>,
    /// Where LUNs are counted.
    pub(crate) region: Option<Arc<StatsRegion>>,
}

impl Adapter {
    /// `on_stop` is called on the channel's thread when a queue stops by itself, with its number; `errands` when a SCSI command needs
    /// what a channel may not do. Neither may block. A block device has no errands.
    pub fn new(
        name: &str,
        on_stop: Box<dyn Fn(u16, StopReason) + Send + Sync>,
        errands: Box<dyn Fn(Errand) + Send + Sync>,
    ) -> Adapter {
        let wait = AtomicU8::new(WaitMode::default() as u8);
        Adapter { name: name.to_owned(), wait, on_stop, errands, region: None }
    }

    /// The same, and each channel counts what the adapter's LUNs do, in slots of this memory.
    #[must_use]
    pub fn counting_luns(self, region: Arc<StatsRegion>) -> Adapter {
        Adapter { region: Some(region), ..self }
    }

    /// How its channels wait. They take it over when a queue starts or stops, or with [`crate::Channel::refresh`].
    pub fn set_wait(&self, mode: WaitMode) {
        self.wait.store(mode as u8, Relaxed);
    }

    pub(crate) fn wait(&self) -> WaitMode {
        let modes = [WaitMode::Poll, WaitMode::Adaptive, WaitMode::Interrupt];
        modes.into_iter().find(|mode| *mode as u8 == self.wait.load(Relaxed)).unwrap_or_default()
    }
}

impl std::fmt::Debug for Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adapter").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What is behind a queue.
#[derive(Clone)]
pub enum Device {
    /// A block device.
    Block {
        /// The disk that the client sees.
        shape: Arc<Shape>,
        /// What its data is in.
        volume: Arc<dyn Volume>,
    },
    /// A SCSI host device.
    Scsi {
        /// What this queue carries.
        role: ScsiRole,
        /// What the client sees. [`crate::Channel::set_luns`] changes it while the queue runs.
        luns: Arc<LunMap>,
        /// Commands that the adapter's queues share.
        pool: Arc<CommandPool>,
        /// What the queue is allowed.
        limits: ScsiLimits,
    },
}

/// A queue on its way into or out of a channel.
pub struct Seat {
    /// The ring.
    pub ring: Queue,
    /// Its number in the adapter.
    pub number: u16,
    /// Its adapter.
    pub adapter: Arc<Adapter>,
    /// What is behind it.
    pub device: Device,
    /// The client's notifications.
    pub kick: OwnedFd,
    /// Notifications to the client; none: it looks by itself.
    pub call: Option<OwnedFd>,
    /// Told once when the queue stops by itself.
    pub error: Option<OwnedFd>,
    /// Its command slots, one for each descriptor.
    pub commands: Box<[Command]>,
    /// Its counters.
    pub stats: QueueStats,
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seat")
            .field("adapter", &self.adapter.name)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// Names a queue of a channel while it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueueId(pub(crate) u16);

/// What a queue is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Looked at in every turn.
    Hot,
    /// Waits for a kick.
    Armed,
    /// Takes nothing more; waits for what is in flight.
    Draining,
    /// Nothing is in flight; waits for the end of its poll and of its notification.
    Closing,
}

/// What the channel keeps for a queue, by what is behind it.
pub(crate) enum Kind {
    Block(LaneId),
    Request(Box<Requests>),
    Control(Box<ControlQueue>),
    Event(EventQueue),
}

/// A queue that the channel owns. On cache lines of its own: its neighbours in memory may belong to another channel.
#[repr(align(128))]
pub(crate) struct Active {
    pub(crate) seat: Seat,
    pub(crate) kind: Kind,
    pub(crate) kick: FileSlot,
    pub(crate) call: Option<FileSlot>,
    /// A notification is in the kernel. A client can keep it there; then the next ones are one.
    pub(crate) notifying: bool,
    /// The error descriptor, while an operation on it is in the kernel.
    pub(crate) error: Option<FileSlot>,
    pub(crate) notify_again: bool,
    pub(crate) phase: Phase,
    /// The poll operation on the kick is in the kernel.
    pub(crate) watched: bool,
    /// Who waits for the queue to stop.
    pub(crate) stop: Option<OneShot<Seat>>,
    /// Whether it takes new heads: not after an error.
    pub(crate) broken: bool,
    /// Turns in a row in which it was found empty.
    pub(crate) empty_turns: u32,
    /// Completions were put and not yet published.
    pub(crate) touched: bool,
    /// It is on the channel's list of queues to be published at the end of the turn.
    pub(crate) listed: bool,
    pub(crate) parked: u32,
    /// Errands that were not answered yet.
    pub(crate) errands: u32,
    /// Heads that were seen and not taken, and since when.
    pub(crate) backlog: u16,
    pub(crate) backlog_since: u64,
    /// Heads finished and not yet published: when taken, how long in the device (ticks).
    finished: Vec<Finished>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Finished {
    taken: u64,
    device: u64,
    /// What led to its logical unit, or [`NO_BINDING`].
    binding: u16,
}

/// The binding of a command that is for no logical unit. A queue never has so many.
pub(crate) const NO_BINDING: u16 = u16::MAX;

impl Active {
    pub(crate) fn new(seat: Seat, kind: Kind, kick: FileSlot, call: Option<FileSlot>) -> Active {
        let finished = Vec::with_capacity(usize::from(seat.ring.size()));
        Active {
            seat,
            kind,
            kick,
            call,
            notifying: false,
            error: None,
            notify_again: false,
            phase: Phase::Hot,
            watched: false,
            stop: None,
            broken: false,
            empty_turns: 0,
            touched: false,
            listed: false,
            parked: 0,
            errands: 0,
            backlog: 0,
            backlog_since: 0,
            finished,
        }
    }

    pub(crate) fn count(&self, counter: QueueCounter, by: u64) {
        self.seat.stats.add(counter, by);
    }

    /// Shows the number of active and of parked commands, with their high-water marks. What is done and not yet published counts as
    /// active.
    #[inline]
    pub(crate) fn show_levels(&self) {
        let active = u64::from(self.seat.ring.in_flight()) + self.finished.len() as u64;
        self.seat.stats.set_with_high_water(QueueCounter::Active, QueueCounter::ActiveMax, active);
        let parked = u64::from(self.parked);
        self.seat.stats.set_with_high_water(
            QueueCounter::Pending,
            QueueCounter::PendingMax,
            parked,
        );
    }

    /// Ends a command: status byte, dirty log, used element. `written` bytes of data went into the client's memory. Everything but
    /// the publication, and the release of its long list.
    #[inline]
    pub(crate) fn finish(&mut self, head: Head, status: Status, written: u32, now: u64) {
        let command = &self.seat.commands[usize::from(head.0)];
        let status_bytes = command.status.len();
        if status_bytes == 1 {
            command.status.write(0, &[status as u8]);
            self.seat.ring.mark_written(command.status);
        }
        self.settle(head, NO_BINDING, written + status_bytes as u32, now);
        if status != Status::Ok {
            self.count(QueueCounter::Errors, 1);
        }
    }

    /// Gives a head back whose answer is written: `written` bytes of its writable part. The slot is free then.
    #[inline]
    pub(crate) fn settle(&mut self, head: Head, binding: u16, written: u32, now: u64) {
        let command = &mut self.seat.commands[usize::from(head.0)];
        debug_assert!(command.state != State::Free);
        let device =
            if command.state == State::Submitted { now.wrapping_sub(command.submitted) } else { 0 };
        self.finished.push(Finished { taken: command.taken, device, binding });
        command.state = State::Free;
        self.seat.ring.put_used(head, written);
        self.touched = true;
    }

    /// Takes no more heads, and nothing of it is under way.
    pub(crate) fn is_drained(&self) -> bool {
        self.phase == Phase::Draining && self.seat.ring.in_flight() == 0 && self.errands == 0
    }

    /// Makes completions visible. `true`: the client wants to be notified.
    #[inline]
    pub(crate) fn publish(&mut self) -> bool {
        self.touched = false;
        self.seat.ring.publish()
    }

    /// Records the latencies of what was published, and the levels; how many commands. Comes after the publication, so that no client
    /// waits for it.
    #[inline]
    pub(crate) fn account(&mut self, now: u64) -> u64 {
        let mut same: Option<(Finished, u64)> = None;
        for finished in &self.finished {
            // Commands of one batch that were served inline are alike: one record for all of them.
            match &mut same {
                Some((first, count)) if first == finished => *count += 1,
                _ => {
                    self.record(same, now);
                    same = Some((*finished, 1));
                }
            }
        }
        self.record(same, now);
        let count = self.finished.len() as u64;
        self.show_levels();
        self.finished.clear();
        self.show_levels();
        count
    }

    /// Reports an error of the whole queue, once.
    pub(crate) fn break_down(&mut self, reason: StopReason) {
        if !self.broken {
            self.broken = true;
            self.count(QueueCounter::RingErrors, 1);
            (self.seat.adapter.on_stop)(self.seat.number, reason);
        }
    }

    /// Records the latencies of commands that are alike, for the queue and for their logical unit.
    #[inline]
    fn record(&self, same: Option<(Finished, u64)>, now: u64) {
        let Some((finished, count)) = same else { return };
        let total = now.saturating_sub(finished.taken);
        let stats = self.seat.stats;
        let lun = self.lun_stats(finished.binding);
        let server = Span::of(clock::to_ns(total.saturating_sub(finished.device)));
        stats.record_at(Latency::Server, server, count);
        if let Some(lun) = lun {
            lun.record_at(Latency::Server, server, count);
        }
        if finished.device > 0 {
            let device = Span::of(clock::to_ns(finished.device));
            stats.record_at(Latency::Device, device, count);
            if let Some(lun) = lun {
                lun.record_at(Latency::Device, device, count);
            }
        }
    }

    /// Where what a binding leads to is counted, if it is.
    #[inline]
    pub(crate) fn lun_stats(&self, binding: u16) -> Option<LunStats> {
        match &self.kind {
            Kind::Request(requests) => requests.binding(binding)?.stats,
            _ => None,
        }
    }
}
