//! An adapter: its socket, its client, its state.
//!
//! The adapter's thread has one client at a time and reads its messages. It comes through the [`Door`]; a second one is refused
//! while the first is there. When a client leaves, its queues drain before the next one is accepted, so that no two of them ever write through
//! the same adapter.
//!
//! A changed specification takes effect at once where it can ([`Adapter::put`]) and otherwise when the next client connects: then
//! [`Shared`], which is everything that one specification determines, is made anew.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use block::{Geometry, Volume};
use channel::{Channel, Drain, StopReason};
use device::blk::Shape;
use device::blk::config::{self, Offer};
use protocol::message::{AdapterSpec, AdapterState, AdapterStatus, BlockSpec, SocketRole};
use protocol::stats::{QueueStats, StatsRegion};
use rustix::event::{EventfdFlags, PollFd, PollFlags};
use vhost::vhost_user::message::VhostUserProtocolFeatures as Protocol;
use vhost::vhost_user::{BackendReqHandler, Error};

use crate::door::Door;
use crate::placement;
use crate::queues::{Ground, Queues, feature};
use crate::session::{RING_FEATURES, Session, backend_channel, locked, send_config_change};

/// What the state of an adapter is made of. Locked for moments only, also by channels.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    connected: bool,
    /// Queues that the client uses, and their channels.
    queues: u16,
    channels: Vec<u32>,
    /// The client broke a rule.
    broken: bool,
    reason: Option<String>,
    connections: u64,
}

impl Condition {
    fn break_down(&mut self, queue: u16, what: &str) {
        self.broken = true;
        self.reason = Some(format!("queue {queue}: {what}"));
    }
}

/// What every adapter of a data plane needs.
#[derive(Clone)]
pub(crate) struct Means {
    pub(crate) channels: Arc<Vec<Channel>>,
    pub(crate) stats: Arc<StatsRegion>,
}

/// Everything that one specification determines.
pub(crate) struct Shared {
    pub(crate) adapter: Arc<channel::Adapter>,
    pub(crate) shape: Arc<Shape>,
    spec: Mutex<AdapterSpec>,
    geometry: Mutex<Geometry>,
    queues: Mutex<Queues>,
    condition: Arc<Mutex<Condition>>,
    protocol_features: AtomicU64,
    /// The client's channel for messages from here to there.
    backend: Mutex<Option<OwnedFd>>,
}

impl Shared {
    pub(crate) fn new(
        means: &Means,
        spec: AdapterSpec,
        volume: Arc<dyn Volume>,
        condition: Arc<Mutex<Condition>>,
        stats: Vec<Option<QueueStats>>,
    ) -> Shared {
        let geometry = volume.geometry();
        let block = block(&spec);
        let shape = Shape::new(&geometry, &block.serial, block.read_only, block.discard);
        shape.set_write_through(!block.write_cache);
        let board = Arc::clone(&condition);
        let on_stop = move |queue: u16, reason: StopReason| {
            locked(&board).break_down(queue, &reason.to_string());
        };
        let shape = Arc::new(shape);
        // A block device has no errands.
        let errands = Box::new(|_| ());
        let adapter = Arc::new(channel::Adapter::new(&spec.name, Box::new(on_stop), errands));
        adapter.set_wait(spec.wait);
        let board = Arc::clone(&condition);
        let ground = Ground {
            channels: Arc::clone(&means.channels),
            adapter: Arc::clone(&adapter),
            stats: Arc::clone(&means.stats),
            on_failure: Box::new(move |queue, what| locked(&board).break_down(queue, what)),
        };
        let queues = Queues::new(ground, Arc::clone(&shape), volume, spec.queues, stats);
        Shared {
            adapter,
            shape,
            spec: Mutex::new(spec),
            geometry: Mutex::new(geometry),
            queues: Mutex::new(queues),
            condition,
            protocol_features: AtomicU64::new(0),
            backend: Mutex::new(None),
        }
    }

    pub(crate) fn queues(&self) -> MutexGuard<'_, Queues> {
        locked(&self.queues)
    }

    pub(crate) fn spec(&self) -> AdapterSpec {
        locked(&self.spec).clone()
    }

    fn withheld(&self, feature: &str) -> bool {
        locked(&self.spec).withhold.iter().any(|name| name == feature)
    }

    fn offer(&self) -> Offer {
        let spec = locked(&self.spec);
        Offer { queues: spec.queues, seg_max: spec.seg_max, write_cache: block(&spec).write_cache }
    }

    /// virtio and vhost features offered to the client.
    pub(crate) fn features(&self) -> u64 {
        let mut features = RING_FEATURES | config::features(&self.shape, &self.offer());
        let named = [
            ("event_idx", feature::EVENT_IDX),
            ("indirect", feature::INDIRECT_DESC),
            ("mq", config::feature::MQ),
            ("log", feature::LOG_ALL),
        ];
        for (name, bit) in named {
            if self.withheld(name) {
                features &= !bit;
            }
        }
        features
    }

    /// vhost-user protocol features offered; REPLY_ACK comes from the `vhost` crate.
    pub(crate) fn protocol_features(&self) -> Protocol {
        let mut features = Protocol::MQ
            | Protocol::CONFIG
            | Protocol::INFLIGHT_SHMFD
            | Protocol::CONFIGURE_MEM_SLOTS
            | Protocol::LOG_SHMFD
            | Protocol::BACKEND_REQ
            | Protocol::RESET_DEVICE;
        let named = [
            ("mq", Protocol::MQ),
            ("inflight", Protocol::INFLIGHT_SHMFD),
            ("mem_slots", Protocol::CONFIGURE_MEM_SLOTS),
            ("log", Protocol::LOG_SHMFD),
        ];
        for (name, bit) in named {
            if self.withheld(name) {
                features.remove(bit);
            }
        }
        features
    }

    pub(crate) fn set_protocol_features(&self, features: u64) {
        self.protocol_features.store(features, Relaxed);
    }

    pub(crate) fn queue_size_max(&self) -> u16 {
        locked(&self.spec).queue_size
    }

    pub(crate) fn config_space(&self) -> [u8; config::CONFIG_BYTES] {
        config::space(&self.shape, &locked(&self.geometry), &self.offer())
    }

    /// Remembers why a message was refused.
    pub(crate) fn note(&self, what: String) {
        locked(&self.condition).reason = Some(what);
    }

    /// The client has reset the device: what it broke is over.
    pub(crate) fn mended(&self) {
        let mut condition = locked(&self.condition);
        condition.broken = false;
        condition.queues = 0;
        condition.channels.clear();
    }

    /// Shows what the queues are doing.
    pub(crate) fn update(&self, queues: &Queues) {
        let mut condition = locked(&self.condition);
        condition.queues = queues.started();
        condition.channels = queues.channels_of_queues();
    }

    /// Takes over what can change while a client is there.
    fn apply_live(&self, spec: &AdapterSpec) {
        self.adapter.set_wait(spec.wait);
        let mut now = locked(&self.spec);
        now.wait = spec.wait;
        (now.channels, now.placement) = (spec.channels, spec.placement);
    }

    /// The volume has another size now.
    fn resized(&self, geometry: Geometry) {
        self.shape.set_bytes(geometry.bytes);
        *locked(&self.geometry) = geometry;
        if let Some(backend) = &*locked(&self.backend) {
            send_config_change(backend);
        }
    }
}

/// The plane lets no other device pass.
fn block(spec: &AdapterSpec) -> &BlockSpec {
    spec.block().expect("a block adapter")
}

/// Whether a client notices a difference between two specifications: it takes effect when the next one connects.
fn needs_new_client(now: &AdapterSpec, then: &AdapterSpec) -> bool {
    let blank = AdapterSpec {
        wait: now.wait,
        channels: now.channels,
        placement: now.placement,
        ..then.clone()
    };
    blank != *now
}

/// An adapter of the data plane.
pub(crate) struct Adapter {
    inner: Arc<Inner>,
    /// The socket's file, if it is ours to remove.
    socket: Option<PathBuf>,
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

/// A form that an adapter may take; without a volume it waits for one.
type Form = (AdapterSpec, Option<Arc<dyn Volume>>);

/// What the adapter's thread and the plane both use.
struct Inner {
    means: Means,
    shared: Mutex<Arc<Shared>>,
    /// The form that it takes when the next client connects. Without a volume while that is being replaced: then it waits for
    /// the client after. Locked before `shared` where both are.
    next: Mutex<Option<Form>>,
    condition: Arc<Mutex<Condition>>,
    /// The client's socket, to be shut down from outside.
    stream: Mutex<Option<UnixStream>>,
}

impl Adapter {
    /// Opens the socket and starts the adapter's thread. `listener`: a socket that somebody else has made.
    pub(crate) fn start(
        means: &Means,
        spec: AdapterSpec,
        volume: Arc<dyn Volume>,
        listener: Option<OwnedFd>,
    ) -> std::io::Result<Adapter> {
        let (door, socket) = Door::open(&spec, listener)?;
        let stop = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        let theirs = stop.try_clone()?;
        let name = spec.name.clone();
        let condition = Arc::new(Mutex::new(Condition::default()));
        let shared = Shared::new(means, spec, volume, Arc::clone(&condition), Vec::new());
        let inner = Arc::new(Inner {
            means: means.clone(),
            shared: Mutex::new(Arc::new(shared)),
            next: Mutex::new(None),
            condition,
            stream: Mutex::new(None),
        });
        let of_thread = Arc::clone(&inner);
        let thread = std::thread::Builder::new()
            .name(format!("adapter-{name}"))
            .stack_size(256 << 10)
            .spawn(move || of_thread.serve(&door, &theirs))?;
        Ok(Adapter { inner, socket, stop, thread: Some(thread) })
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&locked(&self.inner.shared))
    }

    /// Takes over a specification: at once where no client can notice, else when the next one connects.
    pub(crate) fn put(&self, spec: &AdapterSpec, volume: &Arc<dyn Volume>) {
        let shared = self.shared();
        let now = shared.spec();
        shared.apply_live(spec);
        let mut next = locked(&self.inner.next);
        *next = needs_new_client(&shared.spec(), spec)
            .then(|| (spec.clone(), Some(Arc::clone(volume))));
        drop(next);
        if now.wait != spec.wait {
            self.inner.means.channels.iter().for_each(Channel::refresh);
        }
        if (now.channels, now.placement) != (spec.channels, spec.placement) {
            self.inner.place(&shared);
        }
    }

    /// Whether its present or its next form uses this volume.
    pub(crate) fn uses(&self, volume: &str) -> bool {
        let next =
            locked(&self.inner.next).as_ref().is_some_and(|(spec, _)| spec.uses_volume(volume));
        next || locked(&self.shared().spec).uses_volume(volume)
    }

    /// Puts another volume in the place of the one of this name, or, with `None`, stops the queues that use it until there is one.
    /// Its present and its next form may use different volumes.
    pub(crate) fn set_volume(&self, name: &str, volume: Option<&Arc<dyn Volume>>) {
        let mut next = locked(&self.inner.next);
        let shared = self.shared();
        if shared.spec().uses_volume(name) {
            shared.queues().set_volume(volume.cloned());
        }
        if let Some((spec, next)) = &mut *next
            && spec.uses_volume(name)
        {
            *next = volume.cloned();
        }
    }

    /// The volume of this name has another size now.
    pub(crate) fn resized(&self, name: &str, geometry: Geometry) {
        let shared = self.shared();
        if shared.spec().uses_volume(name) {
            shared.resized(geometry);
        }
    }

    pub(crate) fn status(&self) -> AdapterStatus {
        let shared = self.shared();
        let condition = locked(&self.inner.condition);
        let state = match (condition.broken, condition.connected, condition.queues) {
            (true, _, _) => AdapterState::Broken,
            (_, false, _) if shared.spec().socket_role == SocketRole::Client => {
                AdapterState::Connecting
            }
            (_, false, _) => AdapterState::Listening,
            (_, true, 0) => AdapterState::Connected,
            (_, true, _) => AdapterState::Running,
        };
        AdapterStatus {
            spec: shared.spec(),
            state,
            reason: condition.reason.clone(),
            client_queues: condition.queues,
            channel_of_queue: condition.channels.clone(),
            connections: condition.connections,
            features: shared.feature_names(),
        }
    }

    /// Disconnects the client, after what is in flight is done, and ends the thread.
    pub(crate) fn remove(mut self) {
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(stream) = &*locked(&self.inner.stream) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        let joined = self.thread.take().expect("an adapter is removed once").join();
        assert!(joined.is_ok(), "a panic ends the process");
        let shared = self.shared();
        shared.queues().release_stats();
        if let Some(socket) = self.socket.take() {
            let _ = std::fs::remove_file(socket);
        }
    }
}

impl Shared {
    /// Names of the negotiated features that matter to an administrator.
    fn feature_names(&self) -> Vec<String> {
        let acked = Protocol::from_bits_truncate(self.protocol_features.load(Relaxed));
        let named = [
            (Protocol::INFLIGHT_SHMFD, "inflight"),
            (Protocol::LOG_SHMFD, "log"),
            (Protocol::CONFIGURE_MEM_SLOTS, "mem_slots"),
            (Protocol::BACKEND_REQ, "resize_events"),
        ];
        named
            .iter()
            .filter(|(bit, _)| acked.contains(*bit))
            .map(|(_, name)| (*name).to_owned())
            .collect()
    }
}

impl Inner {
    /// The adapter's thread.
    fn serve(&self, door: &Door, stop: &OwnedFd) {
        let note = |what| locked(&self.condition).reason = Some(what);
        while let Some(stream) = door.next_client(stop, note) {
            self.take_next_form();
            if self.session(stream, door, stop).is_none() {
                return;
            }
        }
    }

    /// Becomes what a changed specification says, between two clients.
    fn take_next_form(&self) {
        let mut next = locked(&self.next);
        let Some((spec, Some(volume))) = next.take_if(|(_, volume)| volume.is_some()) else {
            return;
        };
        let mut shared = locked(&self.shared);
        let stats = shared.queues().take_stats();
        let condition = Arc::clone(&self.condition);
        *shared = Arc::new(Shared::new(&self.means, spec, volume, condition, stats));
    }

    /// One client, from connection to disconnection. `None`: the adapter is to go.
    fn session(&self, stream: UnixStream, door: &Door, stop: &OwnedFd) -> Option<()> {
        let shared = Arc::clone(&locked(&self.shared));
        // Out of descriptors: this client has to go, the adapter stays for the next one.
        let Ok(watched) = stream.try_clone() else { return Some(()) };
        *locked(&self.stream) = stream.try_clone().ok();
        let connections = {
            let mut condition = locked(&self.condition);
            let connections = condition.connections + 1;
            *condition = Condition { connected: true, connections, ..Condition::default() };
            connections
        };
        self.place(&shared);
        let mut handler =
            BackendReqHandler::from_stream(stream, Arc::new(Session::new(Arc::clone(&shared))));
        let ended = loop {
            match next_event(&watched, door, stop) {
                Event::Stop => break Ended::Removed,
                Event::SecondClient => {
                    // Accepted and closed, so that it learns at once instead of waiting in the backlog.
                    drop(door.listener().map(UnixListener::accept));
                    shared.note(
                        "a second client was refused: an adapter has one client at a time".into(),
                    );
                }
                Event::Message => {
                    if let Some(backend) = backend_channel(watched.as_fd()) {
                        *locked(&shared.backend) = Some(backend);
                    }
                    match handler.handle_request() {
                        Ok(()) | Err(Error::SocketRetry(_)) => {}
                        Err(error) => break Ended::Error(error),
                    }
                }
            }
        };
        *locked(&self.stream) = None;
        *locked(&shared.backend) = None;
        let removed = matches!(ended, Ended::Removed);
        shared.queues().end_session(if removed { Drain::SkipWaits } else { Drain::Ordinary });
        let mut condition = locked(&self.condition);
        let broken = std::mem::take(&mut condition.broken);
        let reason = condition.reason.take().filter(|_| broken || !ended.is_ordinary());
        let reason = reason.or_else(|| ended.reason());
        *condition = Condition { connections, reason, ..Condition::default() };
        (!matches!(ended, Ended::Removed)).then_some(())
    }

    /// Gives each queue its channel, by the rule for a fresh client.
    fn place(&self, shared: &Shared) {
        let spec = shared.spec();
        let mut queues = shared.queues();
        let load = self.means.queues_of_channels();
        let places = placement::initial(&spec, queues.count(), &load);
        queues.set_places(&places);
        shared.update(&queues);
    }
}

impl Means {
    /// How many queues each channel owns.
    pub(crate) fn queues_of_channels(&self) -> Vec<u64> {
        use protocol::stats::ChannelCounter::Queues;
        (0..self.channels.len()).map(|index| self.stats.channel(index).get(Queues)).collect()
    }
}

/// How a session ended.
enum Ended {
    Removed,
    Error(Error),
}

impl Ended {
    /// The client closed its connection.
    fn is_ordinary(&self) -> bool {
        match self {
            Ended::Removed => true,
            Ended::Error(error) => matches!(error, Error::Disconnected | Error::SocketBroken(_)),
        }
    }

    fn reason(&self) -> Option<String> {
        match self {
            Ended::Error(error) if !self.is_ordinary() => {
                Some(format!("the client's last message: {error}"))
            }
            _ => None,
        }
    }
}

enum Event {
    Stop,
    SecondClient,
    Message,
}

fn next_event(stream: &UnixStream, door: &Door, stop: &OwnedFd) -> Event {
    loop {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN), PollFd::new(stream, PollFlags::IN)];
        fds.extend(door.listener().map(|listener| PollFd::new(listener, PollFlags::IN)));
        if rustix::event::poll(&mut fds, None).is_err() {
            continue;
        }
        let ready = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
        match (ready(0), ready(1), ready(2)) {
            (true, ..) => return Event::Stop,
            (_, true, _) => return Event::Message,
            (_, _, true) => return Event::SecondClient,
            _ => {}
        }
    }
}
