//! A session with a vhost-user-blk, vhost-user-scsi or vhost-user-net server: what a VMM's front end does, in user space.
//!
//! ```text
//!  connect ──► handshake ──► start ──► (I/O by the queues' owners) ──► stop
//!                  ▲                        │ the server dies
//!                  └──────── reconnect ◄────┘
//! ```
//!
//! [`Session::connect`] learns what the server offers; [`Session::start`] makes guest memory (a memfd), rings and buffers and
//! hands out one [`Queue`] each, which may move to other threads. The session stays with the thread that made it and is
//! the only one to speak on the socket.
//!
//! **Restart of the server.** Memory, rings, eventfds and the in-flight region belong to this side and outlive the server.
//! [`Session::reconnect`] gives them to the successor: SET_INFLIGHT_FD with the region of the first connection, and
//! SET_VRING_BASE with the used index that stands in the ring, since no one is left to answer GET_VRING_BASE. The successor finds
//! in the region which requests were taken and not completed. Owners of queues notice nothing but a pause: they may submit
//! and wait meanwhile, and outstanding requests complete later.
//!
//! A vhost-user server does not say which device it is: [`SessionOptions::device`] does.
//!
//! Not here: what requests look like ([`crate::blk`], [`crate::scsi`]), who submits how many ([`crate::load`]).

mod endpoint;
mod link;

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use memory::IoBuf;
use vhost::vhost_user::message::{VhostUserInflight, VhostUserProtocolFeatures as Protocol};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vmm_sys_util::eventfd::{EFD_CLOEXEC, EFD_NONBLOCK, EventFd};
use vring::driver::{
    DriverAddresses, DriverConfig, DriverError, DriverMemory, DriverMemoryError, DriverQueue,
};

use self::endpoint::Endpoint;
use self::link::Link;
pub use self::link::Offer;
use crate::blk::{Queue, SlotPlan};
use crate::config::feature;
use crate::net;
use crate::scsi;
use crate::scsi::control::{Control, Events};

/// What is written to a call eventfd by this side to wake its reader. The server adds 1 for each interrupt, so that the reader
/// can tell both from the sum.
pub const NUDGE: u64 = 1 << 32;

/// Protocol feature bits for [`SessionOptions::mask_protocol`].
pub mod protocol_feature {
    use vhost::vhost_user::message::VhostUserProtocolFeatures as Protocol;

    /// More than one queue.
    pub const MQ: u64 = Protocol::MQ.bits();
    /// Acknowledged messages.
    pub const REPLY_ACK: u64 = Protocol::REPLY_ACK.bits();
    /// Configuration space.
    pub const CONFIG: u64 = Protocol::CONFIG.bits();
    /// Tracking of requests in flight.
    pub const INFLIGHT_SHMFD: u64 = Protocol::INFLIGHT_SHMFD.bits();
    /// Memory regions one by one.
    pub const CONFIGURE_MEM_SLOTS: u64 = Protocol::CONFIGURE_MEM_SLOTS.bits();
}

/// What can go wrong between this client and a server.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No server at the socket.
    #[error("cannot connect to {}: {source}; is the server running, and may this user open its socket?", path.display())]
    Connect {
        /// The socket's path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// No server came.
    #[error("no server has connected to {} within {seconds} s; is it told to connect there?", path.display())]
    NoServer {
        /// The socket's path.
        path: PathBuf,
        /// How long it was waited for.
        seconds: f64,
    },
    /// The socket cannot be made.
    #[error("cannot listen at {}: {source}; remove a file that is left over there, or choose another path", path.display())]
    Listen {
        /// The socket's path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The socket failed.
    #[error("{step}: the socket failed: {source}")]
    Socket {
        /// Which part of the protocol.
        step: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The server refused a message, answered nonsense or hung up.
    #[error("{step}: {source}; the server's log may say more")]
    Protocol {
        /// Which part of the protocol.
        step: &'static str,
        /// What the `vhost` crate says.
        source: vhost::Error,
    },
    /// The server did not answer.
    #[error("{step}: no answer from the server within {seconds} s")]
    NoAnswer {
        /// Which part of the protocol.
        step: &'static str,
        /// How long it was waited for.
        seconds: f64,
    },
    /// The server lacks something that is needed.
    #[error("the server does not offer {what}; {mends}")]
    Missing {
        /// What is missing.
        what: &'static str,
        /// What mends it.
        mends: &'static str,
    },
    /// Too few queues.
    #[error("the server offers {offered} queue{}, {asked} asked: use --queues {offered}{}",
        if *offered == 1 { "" } else { "s" },
        if *mq { "" } else { " (it does not offer the protocol feature MQ)" })]
    Queues {
        /// Queues of the server.
        offered: u16,
        /// Queues asked for.
        asked: u16,
        /// Whether the server knows more than one queue at all.
        mq: bool,
    },
    /// A plan that cannot work, with the reason.
    #[error("{0}")]
    Plan(String),
    /// The successor of a dead server offers less than its predecessor.
    #[error("the server came back as another one: {0}")]
    Changed(String),
    /// Guest memory or eventfds could not be made.
    #[error("cannot make {what}: {source}")]
    Resources {
        /// What.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// Guest memory could not be made.
    #[error(transparent)]
    Memory(#[from] DriverMemoryError),
    /// A ring could not be made.
    #[error("cannot make a ring: {0}")]
    Ring(#[from] DriverError),
}

impl SessionError {
    /// Whether the server has gone away, as one that dies does.
    #[must_use]
    pub fn is_hang_up(&self) -> bool {
        use vhost::vhost_user::Error::{Disconnected, PartialMessage, SocketBroken, SocketError};
        match self {
            SessionError::Socket { .. } => true,
            SessionError::Protocol { source: vhost::Error::VhostUserProtocol(error), .. } => {
                matches!(error, Disconnected | PartialMessage | SocketBroken(_) | SocketError(_))
            }
            _ => false,
        }
    }
}

impl SessionError {
    /// Whether trying again cannot help: the server is there, but not what is needed.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Changed(_) | Self::Plan(_))
    }
}

/// What stands behind a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// virtio-blk.
    #[default]
    Block,
    /// virtio-scsi.
    Scsi,
    /// virtio-net.
    Net,
}

impl Device {
    /// Queues before those for I/O: control and events of SCSI.
    #[must_use]
    pub fn queues_before_io(self) -> u16 {
        match self {
            Device::Block | Device::Net => 0,
            Device::Scsi => 2,
        }
    }
}

/// How to talk to a server.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The device.
    pub device: Device,
    /// Virtio features not to use although offered.
    pub mask_features: u64,
    /// Protocol features not to use although offered, see [`protocol_feature`].
    pub mask_protocol: u64,
    /// How long the server may take to answer a message.
    pub timeout: Duration,
    /// Size of the disk, for servers without a configuration space.
    pub capacity_bytes: Option<u64>,
    /// Makes the socket and waits, as long as `listen` says, for the server to connect to it.
    pub listen: Option<Duration>,
    /// Says 0 of every ring, also when it connects again (SET_VRING_BASE), as DPDK's virtio-user does.
    pub forgets_base: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            device: Device::Block,
            mask_features: 0,
            mask_protocol: 0,
            timeout: Duration::from_secs(10),
            capacity_bytes: None,
            listen: None,
            forgets_base: false,
        }
    }
}

/// What to set up.
#[derive(Clone, Debug)]
pub struct StartPlan {
    /// Queues for I/O to use.
    pub queues: u16,
    /// Entries of each ring, a power of two.
    pub queue_size: u16,
    /// Threads that will serve the queues: queue `i` belongs to thread `i % threads`, and the queues of a thread share one call
    /// eventfd.
    pub threads: u16,
    /// Requests and buffers of each queue.
    pub slots: SlotPlan,
}

struct Ring {
    kick: Arc<EventFd>,
    call: Arc<EventFd>,
    size: u16,
    addresses: DriverAddresses,
    /// `used.flags` and `used.idx`.
    used: IoBuf,
}

struct Inflight {
    region: VhostUserInflight,
    file: File,
}

/// A ring and its kick, for each queue.
type Rings = Vec<(DriverQueue, Arc<EventFd>)>;

/// The queues of a SCSI device.
pub struct ScsiQueues {
    /// Task management.
    pub control: Control,
    /// What the device says of itself. It has no buffers yet: see [`Events::offer`].
    pub events: Events,
    /// Commands.
    pub requests: Vec<scsi::Queue>,
}

/// A session; see the module.
pub struct Session {
    endpoint: Endpoint,
    options: SessionOptions,
    link: Link,
    offer: Offer,
    memory: Option<Arc<DriverMemory>>,
    rings: Vec<Ring>,
    calls: Vec<Arc<EventFd>>,
    inflight: Option<Inflight>,
}

impl Session {
    /// Connects, or is connected to, and shakes hands.
    ///
    /// # Errors
    /// No server there, or one that lacks what is needed.
    pub fn connect(path: &Path, options: &SessionOptions) -> Result<Self, SessionError> {
        let endpoint = Endpoint::open(path, options)?;
        let mut link = Link::open(&endpoint, options, options.listen.unwrap_or_default())?;
        let offer = link.handshake(options)?;
        Ok(Self {
            endpoint,
            options: options.clone(),
            link,
            offer,
            memory: None,
            rings: Vec::new(),
            calls: Vec::new(),
            inflight: None,
        })
    }

    /// What the server offers.
    #[must_use]
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Whether requests in flight are tracked, so that a restart of the server loses none.
    #[must_use]
    pub fn tracks_inflight(&self) -> bool {
        self.inflight.is_some()
    }

    /// The call eventfds, one per thread of the plan. Reading one blocks.
    #[must_use]
    pub fn calls(&self) -> &[Arc<EventFd>] {
        &self.calls
    }

    /// Makes memory and rings and lets the server, of a block device, start on them.
    ///
    /// # Errors
    /// A plan that the server cannot fulfil, or a server that refuses.
    pub fn start(&mut self, plan: &StartPlan) -> Result<Vec<Queue>, SessionError> {
        let (memory, rings) = self.make_rings(plan)?;
        let queue = |(ring, kick)| Queue::new(ring, &memory, kick, &plan.slots);
        let queues = rings.into_iter().map(queue).collect::<Result<_, _>>()?;
        self.set_up(|_| 0)?;
        Ok(queues)
    }

    /// As [`start`](Self::start), of a SCSI device.
    ///
    /// # Errors
    /// A plan that the server cannot fulfil, or a server that refuses.
    pub fn start_scsi(&mut self, plan: &StartPlan) -> Result<ScsiQueues, SessionError> {
        let (memory, rings) = self.make_rings(plan)?;
        let mut rings = rings.into_iter();
        let mut fixed = || rings.next().ok_or(DriverError::NoMemory);
        let (control, events) = (fixed()?, fixed()?);
        let control = Control::new(control.0, &memory, control.1)?;
        let events = Events::new(events.0, &memory, events.1)?;
        let queue = |(ring, kick)| scsi::Queue::new(ring, &memory, kick, &plan.slots);
        let requests = rings.map(queue).collect::<Result<_, _>>()?;
        self.set_up(|_| 0)?;
        Ok(ScsiQueues { control, events, requests })
    }

    /// As [`start`](Self::start), of a network card: the plan's queues are two for each pair, its slots their buffers.
    ///
    /// # Errors
    /// A plan that the server cannot fulfil, or a server that refuses.
    pub fn start_net(&mut self, plan: &StartPlan) -> Result<Vec<net::Pair>, SessionError> {
        let (memory, rings) = self.make_rings(plan)?;
        let mergeable = self.offer.has(net::feature::MRG_RXBUF);
        let mut rings = rings.into_iter();
        let mut pairs = Vec::new();
        while let (Some(rx), Some(tx)) = (rings.next(), rings.next()) {
            let rx = net::Rx::new(rx.0, &memory, rx.1, &plan.slots, mergeable)?;
            let tx = net::Tx::new(tx.0, &memory, tx.1, &plan.slots)?;
            pairs.push(net::Pair { rx, tx });
        }
        self.set_up(|_| 0)?;
        Ok(pairs)
    }

    /// Guest memory, rings and the in-flight region.
    fn make_rings(&mut self, plan: &StartPlan) -> Result<(Arc<DriverMemory>, Rings), SessionError> {
        self.check(plan)?;
        let before = self.options.device.queues_before_io();
        let all = StartPlan { queues: plan.queues + before, ..plan.clone() };
        let memory = Arc::new(DriverMemory::new(all.memory_bytes())?);
        self.calls = (0..plan.threads).map(|_| eventfd(0)).collect::<Result<_, _>>()?;
        let mut rings = Rings::new();
        self.rings.clear();
        for index in 0..all.queues {
            let kick = eventfd(EFD_NONBLOCK)?;
            let call = match index.checked_sub(before) {
                Some(index) => Arc::clone(&self.calls[usize::from(index % plan.threads)]),
                None => eventfd(EFD_NONBLOCK)?,
            };
            let config = DriverConfig {
                size: plan.queue_size,
                event_idx: self.offer.has(feature::EVENT_IDX),
                indirect_max: plan.slots.table_entries(),
                in_order: self.offer.has(feature::IN_ORDER),
            };
            let queue = DriverQueue::new(&memory, config)?;
            self.rings.push(Ring::new(&queue, Arc::clone(&kick), call)?);
            rings.push((queue, kick));
        }
        self.memory = Some(Arc::clone(&memory));
        self.track_inflight(&all)?;
        Ok((memory, rings))
    }

    fn check(&self, plan: &StartPlan) -> Result<(), SessionError> {
        let offered = self.offer.queues;
        if plan.queues == 0 || plan.queues > offered {
            let mq = self.offer.protocol.contains(Protocol::MQ);
            return Err(SessionError::Queues { offered, asked: plan.queues, mq });
        }
        if !plan.queue_size.is_power_of_two() || plan.queue_size > 1024 {
            return Err(SessionError::Plan(format!(
                "queue size {} is not a power of two up to 1024: use --queue-size 128",
                plan.queue_size
            )));
        }
        if plan.threads == 0 || plan.threads > plan.queues {
            return Err(SessionError::Plan(format!(
                "{} threads for {} queues: use --threads 1 to {}",
                plan.threads, plan.queues, plan.queues
            )));
        }
        plan.slots.check(plan.queue_size, &self.offer)
    }

    /// Asks for a region that tracks requests in flight; the server makes it, this side keeps it.
    fn track_inflight(&mut self, plan: &StartPlan) -> Result<(), SessionError> {
        if !self.offer.protocol.contains(Protocol::INFLIGHT_SHMFD) {
            return Ok(());
        }
        self.link.acknowledged(false);
        let wanted = VhostUserInflight::new(0, 0, plan.queues, plan.queue_size);
        let (region, file) =
            self.link.step("in-flight region", |frontend| frontend.get_inflight_fd(&wanted))?;
        self.inflight = Some(Inflight { region, file });
        Ok(())
    }

    /// Everything that a server, new or restarted, needs to know before it serves the rings.
    fn set_up(&mut self, base: impl Fn(&Ring) -> u16) -> Result<(), SessionError> {
        let Self { link, offer, memory, rings, inflight, .. } = self;
        let memory = memory.as_ref().expect("start made the memory");
        link.acknowledged(true);
        link.step("features", |frontend| frontend.set_features(offer.acked))?;
        if let Some(Inflight { region, file }) = inflight {
            link.step("in-flight region", |frontend| {
                frontend.set_inflight_fd(region, file.as_raw_fd())
            })?;
        }
        set_memory(link, offer, memory)?;
        for (index, ring) in rings.iter().enumerate() {
            let base = base(ring);
            link.step("rings", |frontend| ring.set_up(frontend, index, base))?;
        }
        if offer.has(feature::PROTOCOL_FEATURES) {
            link.step("enabling the rings", |frontend| {
                (0..rings.len()).try_for_each(|index| frontend.set_vring_enable(index, true))
            })?;
        }
        link.acknowledged(false);
        Ok(())
    }

    /// Waits until the server hangs up, at most `timeout`; true when it did.
    ///
    /// # Errors
    /// The system cannot wait.
    pub fn closed_within(&self, timeout: Duration) -> Result<bool, SessionError> {
        self.link
            .closed_within(timeout)
            .map_err(|source| SessionError::Socket { step: "waiting", source })
    }

    /// The socket, readable or hung up when the server is gone.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.link.fd()
    }

    /// Connects to the successor of a server that died, trying for `patience`, and gives it the rings as they stand. The owners of
    /// the queues need not stop for it.
    ///
    /// # Errors
    /// No server within `patience`, or one that offers less than the rings rely on.
    pub fn reconnect(&mut self, patience: Duration) -> Result<(), SessionError> {
        let end = Instant::now() + patience;
        loop {
            match self.reconnect_once(end.saturating_duration_since(Instant::now())) {
                // A server that dies again while it is told about the rings is one more restart.
                Err(SessionError::Protocol { .. } | SessionError::NoAnswer { .. })
                    if Instant::now() < end => {}
                other => return other,
            }
        }
    }

    fn reconnect_once(&mut self, patience: Duration) -> Result<(), SessionError> {
        let mut link = Link::open(&self.endpoint, &self.options, patience)?;
        let offer = link.handshake(&self.options)?;
        self.check_successor(&offer)?;
        self.link = link;
        (self.offer.protocol, self.offer.config) = (offer.protocol, offer.config);
        let forgets = self.options.forgets_base;
        self.set_up(|ring| if forgets { 0 } else { ring.used_index() })?;
        for ring in &self.rings {
            // A kick may have gone to the predecessor, and its last interrupt may never have been sent.
            ring.kick.write(1).map_err(|source| resources("a kick", source))?;
            ring.call.write(NUDGE).map_err(|source| resources("a wake-up", source))?;
        }
        Ok(())
    }

    fn check_successor(&self, offer: &Offer) -> Result<(), SessionError> {
        let lost = self.offer.acked & !offer.acked;
        if lost != 0 {
            return Err(SessionError::Changed(format!(
                "it no longer offers the features {lost:#x}"
            )));
        }
        let protocol = Protocol::INFLIGHT_SHMFD;
        if self.inflight.is_some() && !offer.protocol.contains(protocol) {
            return Err(SessionError::Changed("it no longer tracks requests in flight".into()));
        }
        let (now, then) = (offer.queues, self.rings.len());
        if usize::from(now + self.options.device.queues_before_io()) < then {
            return Err(SessionError::Changed(format!("it has {now} queues, {then} are in use")));
        }
        let (now, then) = (offer.config.capacity_bytes, self.offer.config.capacity_bytes);
        if now < then {
            return Err(SessionError::Changed(format!("the disk has {now} bytes, it had {then}")));
        }
        Ok(())
    }

    /// Stops all rings in order and returns where the server stopped in each: the index of the next request that it would take.
    /// A server answers when nothing of the ring is in flight, so that the used rings are final when this returns.
    ///
    /// # Errors
    /// A server that does not answer.
    pub fn stop(&mut self) -> Result<Vec<u16>, SessionError> {
        let rings = std::mem::take(&mut self.rings);
        self.link.acknowledged(false);
        self.link.step("stopping the rings", |frontend| {
            (0..rings.len())
                // The index has 16 bits on a split ring; the message has room for the wrap counters of a packed one.
                .map(|index| Ok((frontend.get_vring_base(index)? & 0xffff) as u16))
                .collect()
        })
    }
}

impl Ring {
    fn new(
        queue: &DriverQueue,
        kick: Arc<EventFd>,
        call: Arc<EventFd>,
    ) -> Result<Self, SessionError> {
        let addresses = queue.addresses();
        let used = queue.memory().buf(addresses.used_guest, 4).ok_or(DriverError::NoMemory)?;
        Ok(Self { kick, call, size: queue.config().size, addresses, used })
    }

    fn set_up(&self, frontend: &Frontend, index: usize, base: u16) -> Result<(), vhost::Error> {
        frontend.set_vring_num(index, self.size)?;
        frontend.set_vring_base(index, base)?;
        let addresses = VringConfigData {
            queue_max_size: self.size,
            queue_size: self.size,
            flags: 0,
            desc_table_addr: self.addresses.desc.0,
            used_ring_addr: self.addresses.used.0,
            avail_ring_addr: self.addresses.avail.0,
            log_addr: None,
        };
        frontend.set_vring_addr(index, &addresses)?;
        frontend.set_vring_call(index, &self.call)?;
        frontend.set_vring_kick(index, &self.kick)
    }

    /// The used index as the last server left it in the ring: what it completed is behind it.
    fn used_index(&self) -> u16 {
        let mut index = [0; 2];
        self.used.read(2, &mut index);
        u16::from_le_bytes(index)
    }
}

fn set_memory(link: &mut Link, offer: &Offer, memory: &DriverMemory) -> Result<(), SessionError> {
    let specs = memory.regions().map_err(|source| resources("a handle of the memory", source))?;
    let regions: Vec<_> = specs
        .iter()
        .map(|region| VhostUserMemoryRegionInfo {
            guest_phys_addr: region.guest.0,
            memory_size: region.size,
            userspace_addr: region.user.0,
            mmap_offset: region.offset,
            mmap_handle: region.file.as_raw_fd(),
        })
        .collect();
    if !offer.protocol.contains(Protocol::CONFIGURE_MEM_SLOTS) {
        return link.step("memory table", |frontend| frontend.set_mem_table(&regions).map(drop));
    }
    link.acknowledged(false);
    let slots = link.step("memory slots", VhostUserFrontend::get_max_mem_slots)?;
    if slots < regions.len() as u64 {
        let (have, need) = (slots, regions.len());
        return Err(SessionError::Plan(format!(
            "the server has {have} memory slots, {need} needed"
        )));
    }
    link.acknowledged(true);
    link.step("memory regions", |frontend| {
        regions.iter().try_for_each(|region| frontend.add_mem_region(region).map(drop))
    })
}

fn eventfd(flags: i32) -> Result<Arc<EventFd>, SessionError> {
    EventFd::new(EFD_CLOEXEC | flags)
        .map(Arc::new)
        .map_err(|source| resources("an eventfd", source))
}

fn resources(what: &'static str, source: io::Error) -> SessionError {
    SessionError::Resources { what, source }
}

#[cfg(test)]
mod tests;
