//! Other threads' side of a channel.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use protocol::stats::ChannelStats;
use rustix::event::EventfdFlags;
use uring::{Ring, RingConfig, RingError};

use crate::handler::Handler;
use crate::mailbox::{Bell, Mailbox, OneShot, Pending, one_shot};
use crate::off_path::{Returned, Returns};
use crate::queue::{Adapter, QueueId, QueueResources};
use crate::sync::Thread;
use crate::worker::{StartFailure, Worker};

/// What a channel is made with.
#[derive(Debug, Clone)]
pub struct ChannelConfig {
    /// Its number; also in the name of its thread.
    pub index: u32,
    /// The CPU that it is bound to, if to one.
    pub cpu: Option<u32>,
    /// Most files at once: a kick for each queue, and each lane's files.
    pub files_max: u32,
    /// What a sleep is worth in time of looking, and the longest look, for adapters that wait adaptively. None: what it costs here is measured.
    pub poll_us_max: Option<u32>,
    /// Who wants to know that there is work again after a quiet time.
    pub activity: Option<Arc<Activity>>,
}

/// Wakes a thread that sleeps while no channel has work. One load per turn for a channel, unless somebody is asleep.
#[derive(Debug)]
pub struct Activity {
    asleep: AtomicBool,
    bell: EventBell,
}

impl Activity {
    /// Nobody is asleep yet.
    ///
    /// # Errors
    ///
    /// When the kernel gives no eventfd.
    pub fn new() -> std::io::Result<Activity> {
        let bell =
            EventBell(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Activity { asleep: AtomicBool::new(false), bell })
    }

    /// The descriptor to sleep on, after this call: readable as soon as a channel has worked. Takes back what was readable before.
    pub fn before_sleep(&self) -> BorrowedFd<'_> {
        let mut count = [0; 8];
        // Nothing to take back is no error here.
        let _ = rustix::io::read(&self.bell.0, &mut count);
        self.asleep.store(true, Relaxed);
        self.bell.0.as_fd()
    }

    /// There is something to look at, although no channel has worked.
    pub fn ring(&self) {
        self.bell.ring();
    }

    #[inline]
    pub(crate) fn note(&self) {
        // A look that misses the store is followed by another one in the next turn.
        if self.asleep.load(Relaxed) && self.asleep.swap(false, Relaxed) {
            self.bell.ring();
        }
    }
}

/// Why a channel could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The thread or its eventfd.
    #[error("channel {index}: {source}")]
    System {
        /// Which channel.
        index: u32,
        /// The kernel's reason.
        source: std::io::Error,
    },
    /// Its io_uring.
    #[error("channel {index}: {source}")]
    Ring {
        /// Which channel.
        index: u32,
        /// What the ring says.
        source: RingError,
    },
    /// Its CPU.
    #[error("channel {index} cannot be bound to CPU {cpu}: {source}; see `cpus` of the data plane")]
    Cpu {
        /// Which channel.
        index: u32,
        /// Which CPU.
        cpu: u32,
        /// The kernel's reason.
        source: std::io::Error,
    },
}

/// The eventfd that wakes a channel.
#[derive(Debug)]
pub(crate) struct EventBell(pub(crate) OwnedFd);

impl Bell for EventBell {
    fn ring(&self) {
        #[cfg(feature = "sim")]
        memory::sim::bell();
        // It fails only when the counter is full, and then the channel is awake already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// How a queue that is to stop treats commands that wait for a rate limit or a modelled delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// They wait as long as they have to: a client must not get around its limit by stopping.
    Ordinary,
    /// They go at once, and so do those that follow: the server itself wants the queue to stop.
    SkipWaits,
    /// As [`Drain::Ordinary`], and the server starts it again, with the same memory and record of what is in flight. What it only holds since it
    /// pauses stays there and waits on.
    Move,
    /// As [`Drain::SkipWaits`], and the server starts it again as with [`Drain::Move`].
    Change,
}

impl Drain {
    /// Whether nothing waits for a limit or a modelled delay.
    #[must_use]
    pub fn skips_waits(self) -> bool {
        matches!(self, Drain::SkipWaits | Drain::Change)
    }

    /// Whether the queue is started again as it was.
    pub(crate) fn comes_back(self) -> bool {
        matches!(self, Drain::Move | Drain::Change)
    }
}

pub(crate) enum Message<H: Handler> {
    Start(Box<QueueResources>, H::Device, OneShot<Result<QueueId, StartFailure>>),
    Stop(QueueId, Drain, OneShot<QueueResources>),
    SkipWaits(QueueId, Arc<Adapter>, u16),
    SetLog(QueueId, Option<Arc<vring::DirtyLog>>, Option<vring::GuestAddr>, OneShot<()>),
    Tell(QueueId, H::Message),
    ResetMarks(QueueId),
    Abort(H::Scope, OneShot<u32>),
    Returned(Returned),
    Elements(QueueId),
    Refresh,
    Run(Box<dyn FnOnce() + Send>),
    Exit,
}

pub(crate) type Inbox<H> = Mailbox<Message<H>, EventBell>;

impl<H: Handler> Returns for Inbox<H> {
    fn post_returned(&self, returned: Returned) {
        self.post(Message::Returned(returned));
    }

    fn post_elements(&self, queue: QueueId) {
        self.post(Message::Elements(queue));
    }
}

/// A running channel, for queues with handlers of one type. All methods may be called from any thread but the channel's own.
pub struct Channel<H: Handler> {
    config: ChannelConfig,
    inbox: Arc<Inbox<H>>,
    thread: Option<Thread>,
}

impl<H: Handler> std::fmt::Debug for Channel<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("config", &self.config).finish_non_exhaustive()
    }
}

impl<H: Handler> std::fmt::Debug for Message<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Message::Start(..) => "Start",
            Message::Stop(..) => "Stop",
            Message::SkipWaits(..) => "SkipWaits",
            Message::SetLog(..) => "SetLog",
            Message::Tell(..) => "Tell",
            Message::ResetMarks(..) => "ResetMarks",
            Message::Abort(..) => "Abort",
            Message::Returned(_) => "Returned",
            Message::Elements(_) => "Elements",
            Message::Refresh => "Refresh",
            Message::Run(_) => "Run",
            Message::Exit => "Exit",
        })
    }
}

impl<H: Handler> Channel<H> {
    /// Starts the thread and waits until its ring stands.
    ///
    /// # Errors
    ///
    /// When thread, ring or CPU binding is refused.
    pub fn start(config: ChannelConfig, stats: ChannelStats) -> Result<Channel<H>, ChannelError> {
        let index = config.index;
        let system = |source: std::io::Error| ChannelError::System { index, source };
        let bell = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| system(error.into()))?;
        let inbox = Arc::new(Mailbox::new(EventBell(bell)));
        #[cfg(not(feature = "sim"))]
        let thread = {
            let (ready, started) = one_shot();
            let (theirs, thread_config) = (Arc::clone(&inbox), config.clone());
            let run = move || match prepare(&thread_config, theirs, stats) {
                Ok(mut worker) => {
                    ready.send(Ok(()));
                    worker.run();
                }
                Err(error) => ready.send(Err(error)),
            };
            let thread = std::thread::Builder::new()
                .name(format!("channel-{index}"))
                .stack_size(256 << 10)
                .spawn(run)
                .map_err(system)?;
            started.wait().expect("the thread answers before it ends")?;
            thread
        };
        #[cfg(feature = "sim")]
        let thread = {
            let mut worker = prepare(&config, Arc::clone(&inbox), stats)?;
            Thread::new(&format!("channel-{index}"), Box::new(move || worker.step()))
        };
        Ok(Channel { config, inbox, thread: Some(thread) })
    }

    /// What it was made with.
    #[must_use]
    pub fn config(&self) -> &ChannelConfig {
        &self.config
    }

    /// Moves a queue in, for its handler to be made of `device`. It is looked at once without a kick, and its client is notified once:
    /// either side may have missed the other's last one.
    ///
    /// # Errors
    ///
    /// When the channel has no room or the device lacks something; the queue comes back.
    pub fn start_queue(
        &self,
        queue: QueueResources,
        device: H::Device,
    ) -> Result<QueueId, StartFailure> {
        let (answer, pending) = one_shot();
        self.inbox.post(Message::Start(Box::new(queue), device, answer));
        pending.wait().expect("a channel answers until it is dropped")
    }

    /// Asks for a queue back. The answer comes when nothing of it is in flight.
    #[must_use]
    pub fn stop_queue(&self, queue: QueueId, drain: Drain) -> Pending<QueueResources> {
        let (answer, pending) = one_shot();
        self.inbox.post(Message::Stop(queue, drain, answer));
        pending
    }

    /// Of a queue that was asked back with [`Drain::Ordinary`]: the server wants it now. If it has gone meanwhile, its place may be
    /// another one's, so its adapter and its number there are named as well.
    pub fn skip_waits(&self, queue: QueueId, adapter: &Arc<Adapter>, number: u16) {
        self.inbox.post(Message::SkipWaits(queue, Arc::clone(adapter), number));
    }

    /// Switches a queue's dirty log. After the answer nothing is written that the log does not have.
    #[must_use]
    pub fn set_log(
        &self,
        queue: QueueId,
        log: Option<Arc<vring::DirtyLog>>,
        used_log: Option<vring::GuestAddr>,
    ) -> Pending<()> {
        let (answer, pending) = one_shot();
        self.inbox.post(Message::SetLog(queue, log, used_log, answer));
        pending
    }

    /// Tells a queue's handler something. The queue is here: it was not asked back.
    pub fn tell(&self, queue: QueueId, message: H::Message) {
        self.inbox.post(Message::Tell(queue, message));
    }

    /// A queue's high-water marks begin again. The queue is here.
    pub fn reset_marks(&self, queue: QueueId) {
        self.inbox.post(Message::ResetMarks(queue));
    }

    /// Ends the commands of a scope. Those that the client has made available by now are among them. The answer comes when none of
    /// them is left on this channel and their ends are published: how many there were.
    #[must_use]
    pub fn abort(&self, scope: H::Scope) -> Pending<u32> {
        let (answer, pending) = one_shot();
        self.inbox.post(Message::Abort(scope, answer));
        pending
    }

    /// Takes over the adapters' wait modes.
    pub fn refresh(&self) {
        self.inbox.post(Message::Refresh);
    }

    /// Runs a function on the channel's thread and waits for it. For tests and diagnosis.
    pub fn run(&self, function: impl FnOnce() + Send + 'static) {
        let (answer, pending) = one_shot();
        self.inbox.post(Message::Run(Box::new(move || {
            function();
            answer.send(());
        })));
        let ran = pending.wait();
        debug_assert!(ran.is_some(), "a channel answers until it is dropped");
    }
}

impl<H: Handler> Drop for Channel<H> {
    /// Ends the thread. Its queues must have been stopped.
    fn drop(&mut self) {
        self.inbox.post(Message::Exit);
        if let Some(thread) = self.thread.take() {
            let result = thread.join();
            debug_assert!(result.is_ok(), "the channel's thread panicked");
        }
    }
}

/// On the channel's thread: binds it and makes its ring.
pub(crate) fn prepare<H: Handler>(
    config: &ChannelConfig,
    inbox: Arc<Inbox<H>>,
    stats: ChannelStats,
) -> Result<Worker<H>, ChannelError> {
    let index = config.index;
    if let Some(cpu) = config.cpu {
        let mut set = rustix::thread::CpuSet::new();
        set.set(cpu as usize);
        rustix::thread::sched_setaffinity(None, &set).map_err(|error| ChannelError::Cpu {
            index,
            cpu,
            source: error.into(),
        })?;
    }
    uring::thread::first();
    let ring = RingConfig {
        entries: 512,
        cq_entries: 4096,
        fixed_files: config.files_max,
        restrict: true,
    };
    let ring = Ring::new(&ring).map_err(|source| ChannelError::Ring { index, source })?;
    Worker::new(ring, inbox, stats, config).map_err(|source| ChannelError::Ring { index, source })
}
