//! Uplinks: descriptors of the host's interfaces, each in a channel as a queue without a client.
//!
//! Which channel, [`crate::placement`] says. With `thread` all are on the last one, and the balancer takes clients' queues off it: it is told when that begins.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use channel::{Command, Drain, QueueId, QueueResources};
use device_net::{Descriptor, TraceError, UplinkPort, XdpSocket};
use protocol::message::{
    Failure, FailureCode, Reply, TallySpec, TraceSpec, UplinkKind, UplinkSpec, UplinkStatus,
    WaitMode,
};
use protocol::stats::{NAME_BYTES_MAX, QueueCounter, QueueStats};
use rustix::io::Errno;
use spec::{Change, change};
use vring::{GuestAddr, MemTable, Queue, QueueConfig, RegionSpec, UserAddr};

use super::{Plane, failure, in_use, not_found};
use crate::adapter::PlaneContext;
use crate::devices::Behind;
use crate::failover::{Failover, standby};
use crate::lock::locked;
use crate::placement;

/// An uplink that is connected.
pub(crate) struct Uplink {
    spec: UplinkSpec,
    port: Arc<UplinkPort>,
    /// None is here while they move.
    running: Vec<Running>,
    channel_of_queue: Vec<u32>,
    failover: Option<Failover>,
    /// Descriptors that are to be kept as long.
    keeps: Vec<OwnedFd>,
    way: Option<String>,
}

/// What an uplink is made of.
struct Descriptors {
    /// Those of its queues.
    all: Vec<(OwnedFd, Descriptor)>,
    keeps: Vec<OwnedFd>,
    /// As in [`UplinkStatus`].
    way: Option<String>,
}

/// A descriptor in its channel.
struct Running {
    channel: usize,
    id: QueueId,
    stats: QueueStats,
    what: Descriptor,
}

impl Plane {
    pub(super) fn put_uplink(&self, spec: UplinkSpec) -> Result<Reply, Failure> {
        check(&spec)?;
        let _changing = locked(&self.changes);
        let change = |uplink: &mut Uplink| uplink.change(&spec);
        let known = self.state().uplinks.get_mut(&spec.name).map(change).transpose()?;
        let done = match known {
            None => {
                let uplink = Uplink::start(&self.context, spec)?;
                self.state().uplinks.insert(uplink.spec.name.clone(), uplink);
                Ok(Reply::Done)
            }
            Some(None) => return Ok(Reply::Done),
            Some(Some(moving)) => {
                let (running, moved) = moving.carry_out(&self.context, spec.thread);
                if let Some(uplink) = self.state().uplinks.get_mut(&spec.name) {
                    uplink.arrive(running);
                    // Whoever asked asks again.
                    uplink.spec.thread ^= moved.is_err();
                }
                moved.map(|()| Reply::Done)
            }
        };
        self.keep_a_channel();
        done
    }

    pub(super) fn remove_uplink(&self, name: &str) -> Result<Reply, Failure> {
        let _changing = locked(&self.changes);
        let uplink = self.state().uplinks.remove(name);
        uplink.ok_or_else(|| not_found("uplink", name))?.remove(&self.context);
        self.keep_a_channel();
        Ok(Reply::Done)
    }

    /// The last channel is kept for uplinks as long as there is one with `thread`.
    fn keep_a_channel(&self) {
        let keeps = self.state().uplinks.values().any(|uplink| uplink.spec.thread);
        if self.context.keeps_one.swap(keeps, SeqCst) != keeps {
            self.balancer.activity().ring();
        }
    }

    /// What has passed an uplink that counts it.
    pub(super) fn tallies(&self, spec: &TallySpec) -> Result<Reply, Failure> {
        let state = self.state();
        let uplink = state.uplinks.get(&spec.uplink);
        let uplink = uplink.ok_or_else(|| not_found("uplink", &spec.uplink))?;
        Ok(Reply::Tallies(uplink.port.tallies(spec.clear)))
    }

    /// Frames of a network are watched.
    pub(super) fn trace(&self, spec: &TraceSpec) -> Result<Reply, Failure> {
        let TraceSpec { network, port, .. } = spec;
        let report = self.context.services.ethernet.trace(spec);
        report.map(Reply::Trace).map_err(|error| match error {
            TraceError::Network => {
                let message = format!("no adapter is on the network {network}");
                failure(FailureCode::NotFound, message, "create an adapter on it first")
            }
            TraceError::Port => {
                let port = port.clone().unwrap_or_default();
                let message = format!("{port} is not on the network {network} now");
                failure(FailureCode::NotFound, message, "name an adapter or an uplink that is")
            }
            TraceError::Busy => {
                let message = format!("somebody else watches frames of the network {network}");
                failure(
                    FailureCode::InUse,
                    message,
                    "wait until that has ended, at most 10 seconds",
                )
            }
        })
    }
}

impl Uplink {
    /// Opens a descriptor for each channel, or as many as the interface has, and gives them to the channels.
    fn start(context: &PlaneContext, spec: UplinkSpec) -> Result<Uplink, Failure> {
        let Descriptors { all, keeps, way } = open(context, &spec)?;
        let networks = &context.services.ethernet;
        let system = |what: String| {
            let what = format!("uplink {} cannot be connected: {what}", spec.name);
            failure(FailureCode::System, what, "free memory, or run another data plane")
        };
        let port = UplinkPort::join(networks, &spec, all.len() as u16).map_err(system)?;
        let port = Arc::new(port);
        let mut uplink = Uplink {
            spec: spec.clone(),
            port,
            running: Vec::new(),
            channel_of_queue: Vec::new(),
            failover: None,
            keeps,
            way,
        };
        let adapter = channel::Adapter::new(&spec.name, Box::new(|_, _| ()));
        adapter.set_wait(WaitMode::Adaptive);
        let adapter = Arc::new(adapter);
        for (number, descriptor) in (0..).zip(all) {
            let started = uplink.start_one(context, &adapter, number, descriptor);
            if let Err(what) = started {
                uplink.remove(context);
                return Err(system(what));
            }
        }
        uplink.note_channels();
        let _ = uplink.port.show(&spec, &standby(&spec));
        if let Some(failover) = &spec.failover {
            let port = Arc::clone(&uplink.port);
            match Failover::start(&context.outside, &spec, failover, port) {
                Ok(failover) => uplink.failover = Some(failover),
                Err(error) => {
                    let path = failover.control.display();
                    let which =
                        if failover.lease().is_some() { "the place" } else { "the control file" };
                    let what = format!("{}: {which} {path}: {error}", failover.sea);
                    uplink.remove(context);
                    let help =
                        "name a file in a folder that is there and that both servers may write";
                    return Err(failure(FailureCode::System, what, help));
                }
            }
        }
        Ok(uplink)
    }

    fn start_one(
        &mut self,
        context: &PlaneContext,
        adapter: &Arc<channel::Adapter>,
        number: u16,
        (kick, what): (OwnedFd, Descriptor),
    ) -> Result<(), String> {
        let stats = context
            .stats
            .queue(&self.spec.name, number)
            .ok_or("the statistics have no room for another queue")?;
        let channel =
            placement::of_descriptor(usize::from(number), context.channels.len(), self.spec.thread);
        let started = empty_ring().map_err(|error| error.to_string()).and_then(|ring| {
            let resources = QueueResources {
                ring,
                number,
                adapter: Arc::clone(adapter),
                kick,
                call: None,
                error: None,
                commands: Command::pool(RING_SIZE),
                stats,
            };
            stats.set_channel(channel as u32);
            let behind = Behind::Ethernet(self.port.behind(what.clone()));
            let started = context.channels[channel].start_queue(resources, behind);
            started.map_err(|failure| failure.what)
        });
        match started {
            Ok(id) => {
                self.running.push(Running { channel, id, stats, what });
                Ok(())
            }
            Err(what) => {
                context.stats.release(stats);
                Err(what)
            }
        }
    }

    /// Takes another specification over, as far as that needs no descriptor to move; those that are to move.
    fn change(&mut self, spec: &UplinkSpec) -> Result<Option<Moving>, Failure> {
        if change::uplink(&self.spec, spec) == Change::Recreate {
            let user = "what it was made with: its network, its kind, its interface and its control file or place in etcd";
            let what = format!("uplink {}", spec.name);
            return Err(in_use(what, user, "remove the uplink first"));
        }
        match &self.failover {
            Some(failover) => failover.set(spec),
            None => drop(self.port.show(spec, &BTreeSet::new())),
        }
        let before = std::mem::replace(&mut self.spec, spec.clone());
        Ok((before.thread != spec.thread).then(|| Moving {
            name: spec.name.clone(),
            port: Arc::clone(&self.port),
            running: std::mem::take(&mut self.running),
        }))
    }

    /// Its descriptors have moved.
    fn arrive(&mut self, running: Vec<Running>) {
        self.running = running;
        self.note_channels();
    }

    fn note_channels(&mut self) {
        let channels = self.running.iter().map(|running| running.channel as u32);
        self.channel_of_queue = channels.collect();
    }

    /// Takes the descriptors back and closes them.
    pub(super) fn remove(self, context: &PlaneContext) {
        // Nobody else bridges before nothing of this one is on its way.
        let tokens = self.failover.map(Failover::stop);
        for Running { channel, id, stats, what: _ } in self.running {
            let pending = context.channels[channel].stop_queue(id, Drain::SkipWaits);
            drop(pending.wait().expect("a channel answers until it is dropped"));
            context.stats.release(stats);
        }
        // From now on what comes is the host's.
        drop(self.keeps);
        drop(tokens);
    }

    pub(super) fn status(&self) -> UplinkStatus {
        UplinkStatus {
            spec: self.spec.clone(),
            channel_of_queue: self.channel_of_queue.clone(),
            failover: self.failover.as_ref().map(Failover::status),
            way: self.way.clone(),
        }
    }
}

/// Descriptors on their way to other channels. What comes meanwhile waits in the kernel, and what leaves in inboxes.
struct Moving {
    name: String,
    port: Arc<UplinkPort>,
    running: Vec<Running>,
}

impl Moving {
    /// Moves them: where they are then, and what went wrong. Waits for no client and no disk: nothing that an uplink has under way does.
    fn carry_out(
        self,
        context: &PlaneContext,
        thread: bool,
    ) -> (Vec<Running>, Result<(), Failure>) {
        let Moving { name, port, running } = self;
        let mut moved = Ok(());
        let place = |(number, running): (usize, Running)| {
            let channels = &context.channels;
            let to = placement::of_descriptor(number, channels.len(), thread);
            let Running { channel: from, id, stats, what } = running;
            if from == to {
                return Some(Running { channel: from, id, stats, what });
            }
            let stopping = channels[from].stop_queue(id, Drain::Move);
            let mut queue = stopping.wait().expect("a channel answers until it is dropped");
            // Back to where it was, if it has to be.
            for channel in [to, from] {
                let behind = Behind::Ethernet(port.behind(what.clone()));
                stats.set_channel(channel as u32);
                match channels[channel].start_queue(queue, behind) {
                    Ok(id) => {
                        stats.add(QueueCounter::Moves, u64::from(channel == to));
                        return Some(Running { channel, id, stats, what });
                    }
                    Err(refused) => {
                        let what = format!(
                            "uplink {name}: a descriptor cannot be on channel {channel}: {}",
                            refused.what
                        );
                        let help = "free memory, or run another data plane";
                        moved = Err(failure(FailureCode::System, what, help));
                        queue = *refused.queue;
                    }
                }
            }
            context.stats.release(stats);
            None
        };
        let running = running.into_iter().enumerate().filter_map(place).collect();
        (running, moved)
    }
}

/// A descriptor for each channel, or as many as the interface was made for.
fn open(context: &PlaneContext, spec: &UplinkSpec) -> Result<Descriptors, Failure> {
    if spec.kind == UplinkKind::Xdp {
        return open_xdp(context, spec);
    }
    let mut descriptors: Vec<OwnedFd> = Vec::new();
    let shared = context.channels.len() > 1;
    while descriptors.len() < context.channels.len() {
        let beside = descriptors.first().map(AsFd::as_fd);
        match context.outside.uplink(spec, beside, shared) {
            Ok(descriptor) => descriptors.push(descriptor),
            Err(_) if !descriptors.is_empty() => break,
            Err(error) => return Err(not_opened(spec, &error)),
        }
    }
    let of = |descriptor| (descriptor, Descriptor::File(spec.kind));
    Ok(Descriptors { all: descriptors.into_iter().map(of).collect(), keeps: Vec::new(), way: None })
}

/// All queues of a card.
fn open_xdp(context: &PlaneContext, spec: &UplinkSpec) -> Result<Descriptors, Failure> {
    let opened = context.outside.xdp(spec).map_err(|error| not_opened(spec, &error))?;
    let by = if opened.by_driver { "by its driver" } else { "by the host's stack" };
    let count = opened.queues.len();
    let way =
        Some(format!("AF_XDP {by}, copied, {count} queue{}", if count == 1 { "" } else { "s" }));
    let of = |queue: memory::xdp::Queue| {
        (queue.socket, Descriptor::Xdp(Arc::new(XdpSocket::new(queue.memory))))
    };
    let all = opened.queues.into_iter().map(of).collect();
    Ok(Descriptors { all, keeps: opened.keeps.into(), way })
}

fn not_opened(spec: &UplinkSpec, error: &io::Error) -> Failure {
    let UplinkSpec { name, interface, netns, kind, .. } = spec;
    let (which, help) = match kind {
        // It was not entered.
        _ if netns.is_some() && error.raw_os_error().is_none() => {
            ("interface", HELP_NAMESPACE.to_owned())
        }
        UplinkKind::Tap => ("TAP interface", help_tap(interface, error)),
        UplinkKind::Packet => ("interface", help_packet(interface, error)),
        UplinkKind::Xdp => ("interface", help_xdp(interface, error)),
    };
    let what = format!("uplink {name}: the {which} {interface}: {error}");
    failure(FailureCode::System, what, &help)
}

fn help_tap(interface: &str, error: &io::Error) -> String {
    let make = format!("ip tuntap add {interface} mode tap multi_queue vnet_hdr user USER");
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            format!(
                "give `trunkline serve` CAP_NET_ADMIN, or make the interface for its user: {make}"
            )
        }
        Some(Errno::INVAL) => {
            format!("name one that is not there, or one that was made so: {make}")
        }
        Some(Errno::BUSY) => "stop the program that has it".to_owned(),
        Some(Errno::NOENT | Errno::NODEV) => "load the module: modprobe tun".to_owned(),
        Some(Errno::OPNOTSUPP) => {
            "use Linux 6.4 or later: reads of a TAP could wait before".to_owned()
        }
        _ => HELP.to_owned(),
    }
}

fn help_packet(interface: &str, error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            "give `trunkline serve` CAP_NET_RAW, or make the uplink with `kind` `tap`".to_owned()
        }
        Some(Errno::NODEV) => {
            "name one that `ip link` lists in the uplink's network namespace, which is that of `trunkline serve` without `netns`".to_owned()
        }
        Some(Errno::NETDOWN) => format!("set it up: ip link set {interface} up"),
        Some(Errno::MEDIUMTYPE) => "name an Ethernet interface".to_owned(),
        Some(Errno::AFNOSUPPORT) => "load the module: modprobe af_packet".to_owned(),
        Some(Errno::NOPROTOOPT) => "use Linux 6.5 or later, or `kind` `tap`".to_owned(),
        _ => HELP.to_owned(),
    }
}

fn help_xdp(interface: &str, error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            "give `trunkline serve` CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF, or make the uplink with `kind` `packet`".to_owned()
        }
        Some(Errno::BUSY) => format!(
            "stop the program that has it (`ip -d link show {interface}`, `ss --xdp`), or make the uplink with `kind` `packet`"
        ),
        Some(Errno::TOOBIG) => format!(
            "it has more than {max} queues: ethtool -L {interface} combined {max}",
            max = memory::xdp::QUEUES_MAX
        ),
        Some(Errno::PROTO) => "its driver takes tags out of frames and does not leave that: make the uplink with `kind` `packet`".to_owned(),
        Some(Errno::NOBUFS) => {
            "let `trunkline serve` lock 8 MiB for each queue of the card (systemd: LimitMEMLOCK), or give it CAP_IPC_LOCK".to_owned()
        }
        Some(Errno::AFNOSUPPORT | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => {
            "use Linux 6.6 or later with CONFIG_XDP_SOCKETS and an interface that takes an XDP program, or `kind` `packet`".to_owned()
        }
        _ => help_packet(interface, error),
    }
}

/// What helps where the reason says little.
const HELP: &str = "see its name, and whether the control plane runs";

const HELP_NAMESPACE: &str =
    "see `ip netns list` and `netns`; to enter it `trunkline serve` needs CAP_SYS_ADMIN";

/// Descriptors of a ring that nobody fills.
const RING_SIZE: u16 = 2;

/// What stands where a client's ring does: a queue of a channel has one.
fn empty_ring() -> io::Result<Queue> {
    const BYTES: u64 = 4096;
    let file = rustix::fs::memfd_create("uplink", rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&file, BYTES)?;
    let region = RegionSpec {
        guest: GuestAddr(0),
        user: UserAddr(0),
        size: BYTES,
        offset: 0,
        file: File::from(file),
    };
    let mem = MemTable::new(vec![region]).map_err(io::Error::other)?;
    let config = QueueConfig {
        size: RING_SIZE,
        desc: UserAddr(0),
        avail: UserAddr(1024),
        used: UserAddr(2048),
        base: 0,
        at_used: false,
        event_idx: false,
        indirect: false,
        in_order: false,
        used_log: None,
        log: None,
        inflight: None,
    };
    config.start(Arc::new(mem)).map_err(|(_, error)| io::Error::other(error))
}

fn check(spec: &UplinkSpec) -> Result<(), Failure> {
    let invalid = |what: String, help: &str| {
        Err(failure(FailureCode::Invalid, format!("uplink {}: {what}", spec.name), help))
    };
    if spec.name.len() > NAME_BYTES_MAX {
        return invalid("its name is too long".to_owned(), "use at most 256 bytes");
    }
    let mut vlans = spec.vids.iter().chain([&spec.pvid]);
    if let Some(vid) = vlans.find(|vid| !(1..=4094).contains(*vid)) {
        return invalid(format!("VLAN {vid}"), "use 1 to 4094");
    }
    Ok(())
}
