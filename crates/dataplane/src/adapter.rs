//! An adapter: its socket, its client, its state.
//!
//! An adapter has one client at a time, and a thread that reads its messages while there is one. It comes through the [`Endpoint`], where the
//! [`Acceptor`] waits for it; a second one is refused while the first is there ([`event`]). When a client leaves, its queues drain before the next one is accepted,
//! so that no two of them ever write through the same adapter.
//!
//! A changed specification takes effect at once where it can ([`Adapter::put`]) and otherwise when the next client connects: then
//! [`Shared`], which is everything that one specification determines, is made anew.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use channel::device::{Resized, Tell};
use channel::{Drain, StopReason};
use protocol::message::{AdapterSpec, AdapterState, AdapterStatus, DeviceSpec, SocketRole};
use protocol::place::Access;
use protocol::stats::{QueueStats, StatsRegion};
use rustix::event::EventfdFlags;
use vhost::vhost_user::message::VhostUserProtocolFeatures as Protocol;
use vhost::vhost_user::{BackendReqHandler, Error};

mod condition;
mod connection;
mod ended;
mod event;
#[cfg(feature = "sim")]
mod simulated;

pub(crate) use condition::Condition;
use connection::Connection;
use ended::Ended;
use event::{Event, Watch};

use crate::acceptor::{Acceptor, Attempt, Entry, PAUSE};
use crate::carrier::Carriers;
use crate::devices::{AnyDevice, Backing, Channel, Services, take_live_part};
use crate::endpoint::Endpoint;
use crate::journal::{Journal, Relay, peer};
use crate::lock::locked;
use crate::outside::Outside;
use crate::placement;
use crate::queues::{AdapterContext, Queues, feature};
use crate::session::{RING_FEATURES, Session, ahead, backend_channel, send_config_change};

/// The longest time from one attempt to connect to a client to the next; it begins with [`PAUSE`] and doubles.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What every adapter of a data plane needs.
#[derive(Clone)]
pub(crate) struct PlaneContext {
    pub(crate) channels: Arc<Vec<Channel>>,
    pub(crate) stats: Arc<StatsRegion>,
    pub(crate) services: Arc<Services>,
    pub(crate) relay: Relay,
    pub(crate) outside: Arc<Outside>,
    pub(crate) carriers: Carriers,
    pub(crate) acceptor: Acceptor,
    /// Who serves storage pools; nobody in a simulation.
    pub(crate) pools: Option<Arc<pool_io::Pools>>,
    /// The last channel is for uplinks with a channel of their own, as long as there is another.
    pub(crate) keeps_one: Arc<AtomicBool>,
}

/// Everything that one specification determines.
pub(crate) struct Shared {
    pub(crate) device: Arc<AnyDevice>,
    adapter: Arc<channel::Adapter>,
    spec: Mutex<Arc<AdapterSpec>>,
    queues: Mutex<Queues>,
    condition: Arc<Mutex<Condition>>,
    journal: Arc<Journal>,
    protocol_features: AtomicU64,
    /// The client's channel for messages from here to there.
    backend: Mutex<Option<OwnedFd>>,
}

impl Shared {
    /// # Errors
    ///
    /// When the specification makes no sense, or something behind it is being replaced.
    pub(crate) fn new(
        plane: &PlaneContext,
        spec: AdapterSpec,
        backing: &Backing,
        condition: Arc<Mutex<Condition>>,
        journal: Arc<Journal>,
        stats: Vec<Option<QueueStats>>,
    ) -> Result<Shared, String> {
        let (board, log) = (Arc::clone(&condition), Arc::clone(&journal));
        let on_stop = move |queue: u16, reason: StopReason| {
            let reason = reason.to_string();
            locked(&board).break_down(queue, &reason);
            log.queue_broke(queue, reason);
        };
        let adapter = Arc::new(channel::Adapter::new(&spec.name, Box::new(on_stop)));
        adapter.set_wait(spec.wait);
        let device = AnyDevice::new(&spec, backing, &adapter, &plane.services, &plane.stats)?;
        let device = Arc::new(device);
        let board = Arc::clone(&condition);
        let context = AdapterContext {
            channels: Arc::clone(&plane.channels),
            known_as: Arc::clone(&adapter),
            device: Arc::clone(&device),
            stats: Arc::clone(&plane.stats),
            journal: Arc::clone(&journal),
            on_failure: Box::new(move |queue, what| locked(&board).break_down(queue, what)),
        };
        let queues = Queues::new(context, spec.queues + device.fixed_queues(), stats);
        Ok(Shared {
            device,
            adapter,
            spec: Mutex::new(Arc::new(spec)),
            queues: Mutex::new(queues),
            condition,
            journal,
            protocol_features: AtomicU64::new(0),
            backend: Mutex::new(None),
        })
    }

    pub(crate) fn queues(&self) -> MutexGuard<'_, Queues> {
        locked(&self.queues)
    }

    /// The queues, unless somebody waits for them, for a hung disk perhaps.
    pub(crate) fn queues_now(&self) -> Option<MutexGuard<'_, Queues>> {
        self.queues.try_lock().ok()
    }

    pub(crate) fn spec(&self) -> Arc<AdapterSpec> {
        Arc::clone(&locked(&self.spec))
    }

    fn withheld(&self, feature: &str) -> bool {
        locked(&self.spec).withholds(feature)
    }

    /// virtio and vhost features offered to the client.
    pub(crate) fn features(&self) -> u64 {
        let mut features = RING_FEATURES | self.device.features(&locked(&self.spec));
        let named = [
            ("event_idx", feature::EVENT_IDX),
            ("indirect", feature::INDIRECT_DESC),
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
    ///
    /// A SCSI device has no shared objects. The feature is offered for what its acknowledgement says of the client: QEMU knows it since 8.2, in which
    /// its SCSI device began to connect again, and no older one acknowledges it (ADR 0013).
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
        features |= match self.spec().device {
            DeviceSpec::Block(_) => Protocol::empty(),
            DeviceSpec::Scsi(_) => Protocol::SHARED_OBJECT,
            DeviceSpec::Ethernet(_) => Protocol::RARP | Protocol::MTU,
        };
        if self.device.one_table() {
            features.remove(Protocol::CONFIGURE_MEM_SLOTS);
        }
        features
    }

    pub(crate) fn set_protocol_features(&self, features: u64) {
        self.protocol_features.store(features, Relaxed);
    }

    pub(crate) fn queue_size_max(&self) -> u16 {
        locked(&self.spec).queue_size
    }

    pub(crate) fn config_space(&self) -> Vec<u8> {
        self.device.config_space(&locked(&self.spec))
    }

    /// Remembers why a message was refused.
    pub(crate) fn note(&self, what: String) {
        self.journal.refused(&what);
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
        let had = std::mem::replace(&mut condition.queues, queues.started());
        condition.channels = queues.channels_of_queues();
        condition.num_io_queues = queues.named();
        condition.keeps_inflight = queues.has_inflight();
        drop(condition);
        if had == 0 && queues.started() > 0 {
            let names = self.feature_names(queues.has_inflight());
            self.journal.serves(queues.features(), &names);
        }
    }

    /// The present specification with what of `spec` can change while a client is there.
    fn with_live_part_of(&self, spec: &AdapterSpec) -> AdapterSpec {
        let mut live = AdapterSpec::clone(&self.spec());
        live.wait = spec.wait;
        live.socket_mode = spec.socket_mode;
        live.socket_owner.clone_from(&spec.socket_owner);
        live.socket_group.clone_from(&spec.socket_group);
        (live.channels, live.placement) = (spec.channels, spec.placement);
        take_live_part(&mut live, spec);
        live
    }

    /// Puts something else behind the device.
    pub(crate) fn set_backing(&self, spec: &AdapterSpec, backing: &Backing) -> Result<(), String> {
        self.device.set_backing(spec, backing, &mut self.queues())
    }

    /// Becomes what a specification says whose differences from the present one no client notices.
    ///
    /// # Errors
    ///
    /// When the channels cannot serve it; then nothing has changed.
    pub(crate) fn become_live(&self, live: AdapterSpec, backing: &Backing) -> Result<(), String> {
        if live.device != self.spec().device {
            self.set_backing(&live, backing)?;
        }
        *locked(&self.spec) = Arc::new(live);
        Ok(())
    }

    /// One message of the client's that has come, or the end of its connection.
    pub(crate) fn hear(
        &self,
        session: &Session,
        handler: &mut BackendReqHandler<Session>,
        socket: BorrowedFd<'_>,
    ) -> Result<(), Error> {
        if let Some(backend) = backend_channel(socket) {
            *locked(&self.backend) = Some(backend);
        }
        if ahead(session, socket)? {
            return Ok(());
        }
        match handler.handle_request() {
            Ok(()) | Err(Error::SocketRetry(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A volume has another size now.
    pub(crate) fn resized(&self, resized: &Resized<'_>) {
        match self.device.resized(&self.spec(), resized) {
            Tell::Nothing => {}
            Tell::Config => {
                if let Some(backend) = &*locked(&self.backend) {
                    send_config_change(backend);
                }
            }
            Tell::Messages(messages) => {
                let queues = self.queues();
                for (queue, message) in messages {
                    let mut message = Some(message);
                    queues.tell(&mut |number| message.take_if(|_| number == queue));
                }
            }
        }
    }
}

#[cfg(test)]
thread_local! {
    /// How often this thread has looked at the form of an adapter.
    pub(crate) static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// An adapter of the data plane.
pub(crate) struct Adapter {
    inner: Arc<Inner>,
}

/// A specification with what it leads to.
struct Specified {
    spec: AdapterSpec,
    backing: Backing,
}

/// What the adapter's thread, the acceptor's and the plane use.
struct Inner {
    plane: PlaneContext,
    name: String,
    entry: Entry,
    /// Whether it has gone. Held by whoever changes what it is or what is behind it, for as long as that takes: until a hung disk has answered, perhaps. Locked
    /// before all others, also those of the plane.
    gone: Mutex<bool>,
    shared: Mutex<Arc<Shared>>,
    /// The form that it takes when the next client connects. If its volume is being replaced then, it waits for the client after. Locked before `shared` where both are.
    next: Mutex<Option<Specified>>,
    /// What it is about to become.
    coming: Mutex<Option<AdapterSpec>>,
    condition: Arc<Mutex<Condition>>,
    connection: Connection,
    attendance: Mutex<Attendance>,
}

/// Who is there.
#[derive(Debug)]
struct Attendance {
    /// Of the last client, or attempt.
    thread: Option<JoinHandle<()>>,
    /// It has a client.
    serving: bool,
    /// It connects to one.
    calling: bool,
    removed: bool,
    /// The thread that has a client is to look what has changed: the adapter is removed, or has another socket.
    wake: Option<Arc<OwnedFd>>,
    /// Until the next attempt to connect.
    pause: Duration,
}

impl Attendance {
    fn wake(&self) {
        if let Some(wake) = &self.wake {
            // It is full: the thread is about to look.
            let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
        }
    }
}

impl Adapter {
    /// Opens the socket, where clients are served from now on. `listener`: a socket that somebody else has made.
    pub(crate) fn start(
        plane: &PlaneContext,
        spec: AdapterSpec,
        backing: &Backing,
        listener: Option<OwnedFd>,
    ) -> std::io::Result<Adapter> {
        let endpoint = Endpoint::open(&plane.outside, &spec, listener)?;
        let name = spec.name.clone();
        let condition = Arc::new(Mutex::new(Condition::default()));
        let journal = Arc::new(Journal::new(&name, plane.relay.clone()));
        let shared = Shared::new(plane, spec, backing, Arc::clone(&condition), journal, Vec::new())
            .inspect_err(|_| endpoint.leave())
            .map_err(std::io::Error::other)?;
        let attendance = Attendance {
            thread: None,
            serving: false,
            calling: false,
            removed: false,
            wake: None,
            pause: PAUSE,
        };
        let inner = Arc::new_cyclic(|myself: &std::sync::Weak<Inner>| {
            let myself = myself.clone();
            let come = move || myself.upgrade().iter().for_each(Inner::come);
            Inner {
                plane: plane.clone(),
                name,
                entry: plane.acceptor.enter(endpoint, come),
                gone: Mutex::new(false),
                shared: Mutex::new(Arc::new(shared)),
                next: Mutex::new(None),
                coming: Mutex::new(None),
                condition,
                connection: Connection::default(),
                attendance: Mutex::new(attendance),
            }
        });
        inner.expect(&mut locked(&inner.attendance));
        Ok(Adapter { inner })
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&locked(&self.inner.shared))
    }

    /// Takes over a specification: at once where no client can notice and for the targets of a SCSI device, else when the next client
    /// connects.
    ///
    /// # Errors
    ///
    /// When its channels cannot serve the targets; then nothing has changed.
    pub(crate) fn put(
        &self,
        spec: &AdapterSpec,
        backing: impl Fn(&AdapterSpec) -> Backing,
    ) -> Result<(), String> {
        let gone = locked(&self.inner.gone);
        let put = if *gone { Ok(()) } else { self.become_it(spec, &backing(spec)) };
        *locked(&self.inner.coming) = None;
        put
    }

    fn become_it(&self, spec: &AdapterSpec, backing: &Backing) -> Result<(), String> {
        let shared = self.shared();
        let now = shared.spec();
        let live = shared.with_live_part_of(spec);
        self.inner.entry.endpoint.permit(Access::of(spec)).map_err(|error| error.to_string())?;
        let left_over = live != *spec;
        shared.become_live(live, backing)?;
        // What is left over, a client notices: it takes effect when the next one connects.
        let next = left_over.then(|| Specified { spec: spec.clone(), backing: backing.clone() });
        let before = std::mem::replace(&mut *locked(&self.inner.next), next);
        drop(before);
        shared.adapter.set_wait(spec.wait);
        if now.wait != spec.wait {
            self.inner.plane.channels.iter().for_each(Channel::refresh);
        }
        if (now.channels, now.placement) != (spec.channels, spec.placement) {
            self.inner.place(&shared);
        }
        Ok(())
    }

    /// This is about to be put: until it is, whatever it uses is in use.
    pub(crate) fn is_to_be(&self, spec: &AdapterSpec) {
        *locked(&self.inner.coming) = Some(spec.clone());
    }

    /// Whether its present or its next form is so.
    pub(crate) fn is(&self, so: impl Fn(&AdapterSpec) -> bool) -> bool {
        #[cfg(test)]
        LOOKS.with(|looks| looks.set(looks.get() + 1));
        locked(&self.inner.next).as_ref().is_some_and(|form| so(&form.spec))
            || locked(&self.inner.coming).as_ref().is_some_and(&so)
            || so(&locked(&self.shared().spec))
    }

    /// Puts what there is behind its present and its next form.
    ///
    /// # Errors
    ///
    /// When the channels cannot serve it.
    pub(crate) fn renew(&self, backing: impl Fn(&AdapterSpec) -> Backing) -> Result<(), String> {
        let gone = locked(&self.inner.gone);
        if *gone {
            return Ok(());
        }
        let next = locked(&self.inner.next).as_ref().map(|form| form.spec.clone());
        if let Some(mut backing) = next.map(|spec| backing(&spec)) {
            let form = &mut *locked(&self.inner.next);
            form.iter_mut().for_each(|form| std::mem::swap(&mut form.backing, &mut backing));
        }
        let shared = self.shared();
        let spec = shared.spec();
        shared.set_backing(&spec, &backing(&spec))
    }

    /// A volume has another size now.
    pub(crate) fn resized(&self, resized: &Resized<'_>) {
        self.shared().resized(resized);
    }

    /// Its high-water marks, and those of its queues, begin again; not while somebody waits for its queues, for a hung disk perhaps.
    pub(crate) fn reset_marks(&self) -> bool {
        let shared = self.shared();
        let queues = shared.queues_now();
        if let Some(queues) = &queues {
            queues.reset_marks();
            shared.device.reset_marks();
        }
        queues.is_some()
    }

    pub(crate) fn status(&self) -> AdapterStatus {
        let becoming = locked(&self.inner.next).is_some() || locked(&self.inner.coming).is_some();
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
            hidden: self.inner.entry.endpoint.trouble(),
            client_queues: condition.queues,
            client_num_io_queues: condition.num_io_queues,
            channel_of_queue: condition.channels.clone(),
            connections: condition.connections,
            visits: condition.visits.iter().cloned().collect(),
            client: condition.client,
            features: shared.feature_names(condition.keeps_inflight),
            becoming,
        }
    }

    /// Disconnects the client, after what is in flight is done; nobody else is let in.
    pub(crate) fn remove(&self) {
        let inner = &self.inner;
        let mut attendance = locked(&inner.attendance);
        let before = std::mem::replace(&mut attendance.removed, true);
        assert!(!before, "an adapter is removed once");
        attendance.wake();
        // Nobody waits for an attempt: its thread will find the adapter gone.
        let thread = attendance.thread.take().filter(|_| !attendance.calling);
        drop(attendance);
        inner.connection.end();
        let joined = thread.map(JoinHandle::join).transpose();
        assert!(joined.is_ok(), "a panic ends the process");
        inner.entry.close();
        let mut gone = locked(&inner.gone);
        *gone = true;
        let shared = self.shared();
        shared.queues().release_stats();
        shared.device.removed();
    }

    /// Makes its socket again, if the file was removed. To be called by one thread at a time.
    pub(crate) fn renew_socket(&self) {
        let inner = &self.inner;
        if !inner.entry.renew() {
            return;
        }
        self.shared().journal.socket_renewed();
        let mut attendance = locked(&inner.attendance);
        match *attendance {
            Attendance { removed: true, .. } => {}
            Attendance { serving: true, .. } => attendance.wake(),
            _ => inner.expect(&mut attendance),
        }
    }
}

impl Shared {
    /// Names of the negotiated features that matter to an administrator. A client that has acknowledged in-flight regions, and has none, keeps
    /// none.
    fn feature_names(&self, keeps_inflight: bool) -> Vec<String> {
        let mut acked = Protocol::from_bits_truncate(self.protocol_features.load(Relaxed));
        acked.set(Protocol::INFLIGHT_SHMFD, keeps_inflight);
        let named = [
            (Protocol::INFLIGHT_SHMFD, "inflight"),
            (Protocol::LOG_SHMFD, "log"),
            (Protocol::CONFIGURE_MEM_SLOTS, "mem_slots"),
            (Protocol::BACKEND_REQ, "resize_events"),
            (Protocol::SHARED_OBJECT, "shared_object"),
        ];
        let of_protocol =
            named.iter().filter(|(bit, _)| acked.contains(*bit)).map(|(_, name)| *name);
        of_protocol.chain(self.device.feature_names()).map(str::to_owned).collect()
    }
}

impl Inner {
    /// Waits for the next client: for its knock, or for the time to connect to it.
    fn expect(&self, attendance: &mut Attendance) {
        if self.entry.endpoint.listener().is_some() {
            self.entry.expect();
        } else {
            self.call_later(attendance);
        }
    }

    /// Connects, a while later. Also before the first attempt: a client that hangs up at once is not called in a loop without end.
    fn call_later(&self, attendance: &mut Attendance) {
        let pause = attendance.pause;
        attendance.pause = (2 * pause).min(PAUSE_MAX);
        self.entry.call_after(pause);
    }

    /// Somebody has knocked, or it is time; on the acceptor's thread.
    fn come(self: &Arc<Inner>) {
        let mut attendance = locked(&self.attendance);
        if attendance.removed || attendance.serving || attendance.calling {
            return;
        }
        // The one before is at its end.
        let ended = attendance.thread.take().map(JoinHandle::join).transpose();
        assert!(ended.is_ok(), "a panic ends the process");
        if self.entry.endpoint.listener().is_none() {
            let attempt = self.entry.attempt();
            attendance.thread = attempt.and_then(|attempt| self.spawn(|its| its.call(attempt)));
            attendance.calling = attendance.thread.is_some();
            if !attendance.calling {
                self.call_later(&mut attendance);
            }
            return;
        }
        let Some(stream) = self.entry.accept() else { return };
        attendance.thread = self.spawn(|its| its.serve(stream));
        attendance.serving = attendance.thread.is_some();
        if !attendance.serving {
            // Without a thread this client has to go.
            self.entry.call_after(PAUSE);
        }
    }

    /// A thread of the adapter's, if there is one to be had.
    fn spawn(
        self: &Arc<Inner>,
        work: impl FnOnce(&Inner) + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        let (its, name) = (Arc::clone(self), format!("adapter-{}", self.name));
        let thread = std::thread::Builder::new().name(name).stack_size(256 << 10);
        thread.spawn(move || work(&its)).ok()
    }

    /// Connects to the client.
    fn call(&self, attempt: Attempt) {
        let connected = self.entry.endpoint.connect();
        drop(attempt);
        let mut attendance = locked(&self.attendance);
        attendance.calling = false;
        match connected {
            _ if attendance.removed => {}
            Ok(stream) => {
                attendance.serving = true;
                drop(attendance);
                self.serve(stream);
            }
            Err(why) => {
                locked(&self.condition).reason = Some(why);
                self.call_later(&mut attendance);
            }
        }
    }

    /// The adapter's thread, from one client's coming to its going.
    fn serve(&self, stream: UnixStream) {
        // Out of descriptors: this client has to go.
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        if let Ok(wake) = wake.map(Arc::new) {
            locked(&self.attendance).wake = Some(Arc::clone(&wake));
            self.take_next_form();
            self.session(stream, &wake);
        }
        let mut attendance = locked(&self.attendance);
        attendance.wake = None;
        attendance.serving = false;
        attendance.pause = PAUSE;
        if !attendance.removed {
            self.expect(&mut attendance);
        }
    }

    /// Becomes what a changed specification says, between two clients.
    fn take_next_form(&self) {
        let _changing = locked(&self.gone);
        let mut next = locked(&self.next);
        let Some(Specified { spec, backing }) = next.take_if(|form| form.backing.is_whole()) else {
            return;
        };
        let mut shared = locked(&self.shared);
        let stats = shared.queues().take_stats();
        let condition = Arc::clone(&self.condition);
        let journal = Arc::clone(&shared.journal);
        let form = Shared::new(&self.plane, spec, &backing, condition, journal, stats);
        // Checked when it was put.
        *shared = Arc::new(form.expect("a form that was accepted"));
    }

    /// One client, from connection to disconnection.
    fn session(&self, stream: UnixStream, wake: &OwnedFd) {
        let shared = Arc::clone(&locked(&self.shared));
        // Out of descriptors: this client has to go, the adapter stays for the next one.
        let Ok(watched) = stream.try_clone() else { return };
        self.connection.begins(&stream);
        let client = peer(&stream);
        let connections = locked(&self.condition).come(client);
        shared.journal.connected(client, connections);
        self.place(&shared);
        let session = Arc::new(Session::new(Arc::clone(&shared)));
        let mut handler = BackendReqHandler::from_stream(stream, Arc::clone(&session));
        let mut watch = Watch::new(self, &watched, wake);
        let ended = loop {
            match watch.next() {
                Event::Stop => break Ended::Removed,
                Event::SecondClient => {
                    // Accepted and closed, so that it learns of it instead of waiting in the backlog.
                    let listener = self.entry.endpoint.listener();
                    if listener.is_some_and(|listener| listener.accept().is_ok()) {
                        shared.note(
                            "a second client was refused: an adapter has one client at a time"
                                .into(),
                        );
                    }
                }
                Event::Message => {
                    if let Err(error) = shared.hear(&session, &mut handler, watched.as_fd()) {
                        break Ended::Error(error);
                    }
                }
            }
        };
        self.connection.is_left();
        *locked(&shared.backend) = None;
        let removed = matches!(ended, Ended::Removed);
        shared.queues().end_session(if removed { Drain::SkipWaits } else { Drain::Ordinary });
        shared.device.client_lost();
        let (queues, reason) = locked(&self.condition).leave(&ended);
        shared.journal.left(queues, reason.as_deref());
    }

    /// Gives each queue its channel, by the rule for a fresh client.
    fn place(&self, shared: &Shared) {
        let spec = shared.spec();
        let mut queues = shared.queues();
        let load = self.plane.queues_of_channels();
        let open = self.plane.open_channels();
        let units = placement::initial(&spec, queues.count_units(), &load[..open]);
        queues.set_places(&units);
        shared.update(&queues);
    }
}
