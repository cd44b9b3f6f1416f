//! The lines of an uplink: the descriptors of each of its interfaces, each in a channel as a queue without a client.
//!
//! Which channel, [`crate::placement`] says. With `thread` all are on the last one, and the balancer takes clients' queues off it: it is told when that begins.
//!
//! An uplink of one interface has one line, which is there as long as it is. An aggregated one has a line for each member, and begins with those that can be had. It hears of the carrier of each
//! ([`crate::carrier`]), takes the descriptors of an interface that has gone back, and opens one that has come anew. Whoever opens holds no lock meanwhile.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use channel::{Command, Drain, QueueId, QueueResources};
use device_net::{Descriptor, UplinkPort, XdpSocket};
use protocol::message::{
    Failure, FailureCode, MemberState, MemberStatus, UplinkKind, UplinkSpec, WaitMode,
};
use protocol::opener::Interface;
use protocol::stats::{QueueCounter, QueueStats};
use rustix::io::Errno;
use vring::{GuestAddr, MemTable, Queue, QueueConfig, RegionSpec, UserAddr};

use super::failure;
use crate::adapter::PlaneContext;
use crate::carrier::{Carrier, RETRY, Watch};
use crate::devices::Behind;
use crate::lock::locked;
use crate::placement;

/// The lines of an uplink.
pub(super) struct Lines {
    context: PlaneContext,
    name: String,
    port: Arc<UplinkPort>,
    /// What is behind each, as an uplink of its own.
    members: Vec<UplinkSpec>,
    all: Mutex<All>,
    /// Told at any time.
    shown: Mutex<Vec<Shown>>,
    /// Of the members of an aggregated one.
    watches: Mutex<Vec<Watch>>,
}

struct All {
    lines: Vec<Line>,
    /// They are on the last channel.
    thread: bool,
    ended: bool,
}

/// The descriptors of one interface.
#[derive(Default)]
struct Line {
    /// None is here while there is no interface.
    running: Vec<Running>,
    /// What is counted stays while descriptors come and go.
    stats: Vec<QueueStats>,
    /// Descriptors that are to be kept as long.
    keeps: Vec<OwnedFd>,
    /// Somebody opens them.
    opening: bool,
}

/// A descriptor in its channel.
struct Running {
    channel: usize,
    id: QueueId,
    what: Descriptor,
}

/// How a line is.
#[derive(Clone, Default)]
struct Shown {
    channels: Vec<u32>,
    way: Option<String>,
    /// Why nothing passes by it.
    trouble: Option<String>,
}

/// What an interface is made of.
struct Descriptors {
    /// Those of its queues.
    all: Vec<(OwnedFd, Descriptor)>,
    keeps: Vec<OwnedFd>,
    /// As in [`protocol::message::UplinkStatus`].
    way: Option<String>,
}

impl Lines {
    /// Opens descriptors for each channel, or as many as an interface has, and gives them to the channels.
    pub(super) fn start(context: &PlaneContext, spec: &UplinkSpec) -> Result<Arc<Lines>, Failure> {
        let members = spec.members();
        let opened: Vec<_> = members.iter().map(|member| open(context, member)).collect();
        let room = |(member, opened): (&UplinkSpec, &Result<Descriptors, Failure>)| match opened {
            Ok(opened) => opened.all.len() as u16,
            Err(_) if member.kind == UplinkKind::Xdp => memory::xdp::QUEUES_MAX as u16,
            Err(_) => context.channels.len() as u16,
        };
        let rooms: Vec<u16> = members.iter().zip(&opened).map(room).collect();
        let port = UplinkPort::join(&context.services.ethernet, spec, &rooms);
        let lines = Lines {
            context: context.clone(),
            name: spec.name.clone(),
            port: Arc::new(port),
            all: Mutex::new(All {
                lines: members.iter().map(|_| Line::default()).collect(),
                thread: spec.thread,
                ended: false,
            }),
            shown: Mutex::new(vec![Shown::default(); members.len()]),
            watches: Mutex::default(),
            members,
        };
        let mut refused = None;
        for (member, opened) in (0..).zip(opened) {
            let connected = opened.and_then(|opened| {
                let mut all = locked(&lines.all);
                lines.connect(&mut all, member, opened, true)
            });
            if let Err(failure) = connected {
                lines.note_trouble(member, &failure.message);
                refused.get_or_insert(failure);
            }
        }
        let none = locked(&lines.all).lines.iter().all(|line| line.running.is_empty());
        if let Some(failure) = refused.filter(|_| none) {
            lines.end();
            return Err(failure);
        }
        let lines = Arc::new(lines);
        if spec.aggregate.is_some() {
            lines.watch().map_err(|error| {
                lines.end();
                let what = format!("uplink {}: no thread for the carrier: {error}", spec.name);
                failure(FailureCode::System, what, "free memory, or let it have more threads")
            })?;
        }
        Ok(lines)
    }

    pub(super) fn port(&self) -> &Arc<UplinkPort> {
        &self.port
    }

    /// Gives the descriptors of a line to channels. Where that fails they are closed.
    fn connect(
        &self,
        all: &mut All,
        member: u16,
        opened: Descriptors,
        up: bool,
    ) -> Result<(), Failure> {
        let Range { start, end } = self.port.descriptors_of(member);
        let name = &self.members[usize::from(member)].name;
        let system = |what: String| {
            let what = format!("uplink {name} cannot be connected: {what}");
            failure(FailureCode::System, what, "free memory, or run another data plane")
        };
        if opened.all.len() > usize::from(end - start) {
            let what = format!("uplink {name} has more queues than before");
            let help = format!("remove the uplink {}, and create it again", self.name);
            return Err(failure(FailureCode::System, what, &help));
        }
        let adapter = channel::Adapter::new(name, Box::new(|_, _| ()));
        adapter.set_wait(WaitMode::Adaptive);
        let adapter = Arc::new(adapter);
        let thread = all.thread;
        let line = &mut all.lines[usize::from(member)];
        for (number, descriptor) in (0..).zip(opened.all) {
            let started = self.start_one(line, &adapter, (start, number), descriptor, thread);
            if let Err(what) = started {
                self.stop(line, start);
                return Err(system(what));
            }
        }
        line.keeps = opened.keeps;
        let channels = line.running.iter().map(|running| running.channel as u32).collect();
        let shown = &mut locked(&self.shown)[usize::from(member)];
        (shown.channels, shown.way) = (channels, opened.way);
        self.port.set_up(member, up);
        Ok(())
    }

    fn start_one(
        &self,
        line: &mut Line,
        adapter: &Arc<channel::Adapter>,
        (first, number): (u16, u16),
        (kick, what): (OwnedFd, Descriptor),
        thread: bool,
    ) -> Result<(), String> {
        let PlaneContext { channels, stats: region, .. } = &self.context;
        let stats = match line.stats.get(usize::from(number)) {
            Some(stats) => *stats,
            None => {
                let stats = region.queue(&adapter.name, number);
                let stats = stats.ok_or("the statistics have no room for another queue")?;
                line.stats.push(stats);
                stats
            }
        };
        let channel = placement::of_descriptor(usize::from(number), channels.len(), thread);
        self.port.open(first + number)?;
        let resources = QueueResources {
            ring: empty_ring().map_err(|error| error.to_string())?,
            number: first + number,
            adapter: Arc::clone(adapter),
            kick,
            call: None,
            error: None,
            commands: Command::pool(RING_SIZE),
            stats,
        };
        stats.set_channel(channel as u32);
        let behind = Behind::Ethernet(self.port.behind(what.clone()));
        let started = channels[channel].start_queue(resources, behind);
        let id = started.map_err(|failure| failure.what)?;
        line.running.push(Running { channel, id, what });
        Ok(())
    }

    /// Takes the descriptors of a line, of which the first one has that number, back and closes them.
    fn stop(&self, line: &mut Line, first: u16) {
        for (number, Running { channel, id, what: _ }) in (first..).zip(line.running.drain(..)) {
            let pending = self.context.channels[channel].stop_queue(id, Drain::SkipWaits);
            drop(pending.wait().expect("a channel answers until it is dropped"));
            self.port.close(number);
        }
        // From now on what comes is the host's.
        line.keeps.clear();
    }

    /// Ends all of them.
    pub(super) fn end(&self) {
        locked(&self.watches).clear();
        let mut all = locked(&self.all);
        all.ended = true;
        for (member, line) in (0..).zip(&mut all.lines) {
            self.stop(line, self.port.descriptors_of(member).start);
            line.stats.drain(..).for_each(|stats| self.context.stats.release(stats));
        }
    }

    /// Moves descriptors to the channels where they shall be. What comes meanwhile waits in the kernel, and what leaves in inboxes. Waits for no client and no disk: nothing that an
    /// uplink has under way does.
    pub(super) fn place(&self, thread: bool) -> Result<(), Failure> {
        let mut all = locked(&self.all);
        all.thread = thread;
        let mut moved = Ok(());
        for (member, line) in all.lines.iter_mut().enumerate() {
            let running = std::mem::take(&mut line.running).into_iter().enumerate();
            let stats = &line.stats;
            let placed = running.filter_map(|(number, running)| {
                self.place_one(running, number, stats[number], thread, &mut moved)
            });
            line.running = placed.collect();
            let channels = line.running.iter().map(|running| running.channel as u32);
            locked(&self.shown)[member].channels = channels.collect();
        }
        all.thread ^= moved.is_err();
        moved
    }

    fn place_one(
        &self,
        Running { channel: from, id, what }: Running,
        number: usize,
        stats: QueueStats,
        thread: bool,
        moved: &mut Result<(), Failure>,
    ) -> Option<Running> {
        let channels = &self.context.channels;
        let to = placement::of_descriptor(number, channels.len(), thread);
        if from == to {
            return Some(Running { channel: from, id, what });
        }
        let stopping = channels[from].stop_queue(id, Drain::Move);
        let mut queue = stopping.wait().expect("a channel answers until it is dropped");
        // Back to where it was, if it has to be.
        for channel in [to, from] {
            let behind = Behind::Ethernet(self.port.behind(what.clone()));
            stats.set_channel(channel as u32);
            match channels[channel].start_queue(queue, behind) {
                Ok(id) => {
                    stats.add(QueueCounter::Moves, u64::from(channel == to));
                    return Some(Running { channel, id, what });
                }
                Err(refused) => {
                    let what = format!(
                        "uplink {}: a descriptor cannot be on channel {channel}: {}",
                        self.name, refused.what
                    );
                    let help = "free memory, or run another data plane";
                    *moved = Err(failure(FailureCode::System, what, help));
                    queue = *refused.queue;
                }
            }
        }
        None
    }

    /// Hears of the carrier of each, as long as they are there.
    fn watch(self: &Arc<Lines>) -> io::Result<()> {
        for (number, member) in (0..).zip(&self.members) {
            let lines = Arc::downgrade(self);
            let told = move |carrier| {
                if let Some(lines) = lines.upgrade() {
                    lines.heard(number, carrier);
                }
            };
            let watch = self.context.carriers.watch(Interface::of(member), told)?;
            locked(&self.watches).push(watch);
        }
        Ok(())
    }

    /// How the interface of a member is.
    fn heard(self: &Arc<Lines>, member: u16, carrier: Carrier) {
        let is_there = {
            let all = locked(&self.all);
            if all.ended {
                return;
            }
            !all.lines[usize::from(member)].running.is_empty()
        };
        // Another one of its name may be there already.
        let carrier = if self.port.lost(member) { Carrier::Gone } else { carrier };
        let kind = self.members[usize::from(member)].kind;
        match carrier {
            Carrier::Up if is_there => {
                self.note(member, Some(true), None);
                self.port.say_again(member);
            }
            Carrier::Up => self.come_back(member, true),
            Carrier::Down => {
                self.note(member, Some(false), Some("it has no carrier"));
                // A TAP has one when somebody has it open.
                if !is_there && kind == UplinkKind::Tap {
                    self.come_back(member, false);
                }
            }
            Carrier::Gone => {
                self.note(member, Some(false), Some("its interface is not there"));
                let line = &mut locked(&self.all).lines[usize::from(member)];
                self.stop(line, self.port.descriptors_of(member).start);
                // What was seen of it is known.
                let _ = self.port.lost(member);
            }
        }
    }

    /// An interface is there that has no descriptors: a thread opens them, since that could hang.
    fn come_back(self: &Arc<Lines>, member: u16, up: bool) {
        let opening = |opening| {
            let line = &mut locked(&self.all).lines[usize::from(member)];
            std::mem::replace(&mut line.opening, opening)
        };
        if opening(true) {
            return;
        }
        let lines = Arc::clone(self);
        let opens = move || {
            if !lines.opened(member, up) {
                std::thread::sleep(RETRY);
            }
            locked(&lines.all).lines[usize::from(member)].opening = false;
            // Who takes over says so again, and what could not be opened is tried again.
            lines.context.carriers.again();
        };
        if std::thread::Builder::new().name("link".into()).spawn(opens).is_err() {
            opening(false);
            self.note_trouble(member, "the system has no thread to open it");
        }
    }

    /// Whether a member that is to be opened has its descriptors, or is not wanted any more.
    fn opened(&self, member: u16, up: bool) -> bool {
        let opened = open(&self.context, &self.members[usize::from(member)]);
        let mut all = locked(&self.all);
        if all.ended {
            return true;
        }
        match opened.and_then(|opened| self.connect(&mut all, member, opened, up)) {
            // Whether it is up is heard, where it was not before.
            Ok(()) if !up => true,
            Ok(()) => {
                self.note(member, None, None);
                true
            }
            Err(failure) => {
                self.note_trouble(member, &failure.message);
                false
            }
        }
    }

    fn note_trouble(&self, member: u16, trouble: &str) {
        self.note(member, None, Some(trouble));
    }

    /// What is wrong with a member, and whether it is up where that is known: who is told sees both.
    fn note(&self, member: u16, up: Option<bool>, trouble: Option<&str>) {
        let shown = &mut locked(&self.shown)[usize::from(member)];
        up.inspect(|up| self.port.set_up(member, *up));
        if shown.trouble.as_deref() != trouble {
            let (name, uplink) = (&self.members[usize::from(member)].name, &self.name);
            match trouble {
                Some(trouble) => tracing::warn!("uplink {uplink}: {name} is down: {trouble}"),
                None => tracing::info!("uplink {uplink}: {name} is up"),
            }
            shown.trouble = trouble.map(str::to_owned);
        }
    }

    /// Channel of each descriptor.
    pub(super) fn channels(&self) -> Vec<u32> {
        locked(&self.shown).iter().flat_map(|shown| shown.channels.iter().copied()).collect()
    }

    /// Of the first one.
    pub(super) fn way(&self) -> Option<String> {
        locked(&self.shown).first().and_then(|shown| shown.way.clone())
    }

    /// How all are.
    pub(super) fn members(&self) -> Vec<MemberStatus> {
        let shown = locked(&self.shown);
        let member = |((number, member), shown): ((u16, &UplinkSpec), &Shown)| {
            let state = match self.port.passes_by(number) {
                Some(true) => MemberState::Active,
                Some(false) => MemberState::Backup,
                None => MemberState::Down,
            };
            // What it was told to be since is no trouble any more.
            let reason = shown.trouble.clone().filter(|_| state == MemberState::Down);
            MemberStatus { name: member.name.clone(), state, reason, way: shown.way.clone() }
        };
        (0..).zip(&self.members).zip(&*shown).map(member).collect()
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
