//! A SCSI client in user space: real rings, real channels, real volumes.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, channel as pipe};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use block::spec::DelaySpec;
use block::{
    Delayed, Finish, Geometry, Lane, LaneId, OpKind, Outcome, Request as Asked, Submit, Tag,
    Volume, VolumeError,
};
use channel::elements::{Elements, Share};
use channel::mailbox::{Pending, one_shot};
use channel::{Adapter, ChannelConfig, Command, Drain, QueueId, QueueResources};
use device_scsi::event::EVENT_BYTES;
use device_scsi::{
    AbortScope, Behind, Link, LunEntry, LunMap, Message, OffPath, Place, Question, Response,
    ScsiHandler, ScsiLimits, ScsiRole, Services, Sizes, Target,
};
use memory::IoBuf;
use protocol::stats::{QueueCounter, QueueStats, StatsRegion};
use rustix::event::{EventfdFlags, PollFd, PollFlags};
use scsi::{Identity, InitiatorId, LogicalUnit, Lun, Naa, Nexus, NexusId, UnitSpec};
use uring::{Op, Ring};
use vring::driver::{DriverConfig, DriverMemory, DriverQueue, DriverRange, Segment};
use vring::{DirtyLog, GuestAddr, InflightRegion, MemTable, QueueConfig};

/// A channel of SCSI queues.
pub(crate) type Channel = channel::Channel<ScsiHandler>;

/// What is asked of one.
pub(crate) trait Ask {
    fn set_luns(&self, queue: QueueId, luns: Arc<LunMap>) -> Pending<Result<(), String>>;
    fn post_event(&self, queue: QueueId, event: [u8; EVENT_BYTES]);
    fn abort_all(&self, scope: AbortScope) -> Pending<u32>;
    fn query(&self, scope: AbortScope) -> Pending<u32>;
}

impl Ask for Channel {
    fn set_luns(&self, queue: QueueId, luns: Arc<LunMap>) -> Pending<Result<(), String>> {
        let (answer, pending) = one_shot();
        self.tell(queue, Message::SetLuns(luns, answer));
        pending
    }

    fn post_event(&self, queue: QueueId, event: [u8; EVENT_BYTES]) {
        self.tell(queue, Message::Event(event));
    }

    fn abort_all(&self, scope: AbortScope) -> Pending<u32> {
        self.abort(Question::Abort(scope))
    }

    fn query(&self, scope: AbortScope) -> Pending<u32> {
        self.abort(Question::Count(scope))
    }
}

/// Bytes of data that a command has room for, in each direction.
pub(crate) const ROOM: usize = 128 << 10;
const HEADER: usize = 51;
const RESPONSE: usize = 108;

pub(crate) fn lun(number: u16) -> Lun {
    Lun::new(number).unwrap()
}

/// A volume of this many bytes that is kept in memory.
pub(crate) fn ram(bytes: u64) -> Arc<dyn Volume> {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let kind = block::spec::RamSpec::new(dir.path().join("ram"));
    let spec = block::VolumeSpec { bytes: Some(bytes), ..block::VolumeSpec::new("ram", kind) };
    block::open(&spec).unwrap()
}

/// A volume whose requests each take so long, in microseconds, before they are done.
pub(crate) fn delayed(
    inner: Arc<dyn Volume>,
    min_us: u64,
    max_us: u64,
    seed: u64,
) -> Arc<dyn Volume> {
    let delay = DelaySpec { min_us, max_us, seed, ..DelaySpec::default() };
    Arc::new(Delayed::new(inner, &delay, 0))
}

/// So slow that nothing ends by itself during a test.
pub(crate) fn stuck(inner: Arc<dyn Volume>) -> Arc<dyn Volume> {
    delayed(inner, 100_000_000, 100_000_001, 11)
}

/// A volume that has each request for this long before it does it. A delay as a volume is given it comes before the request.
pub(crate) struct Far {
    pub(crate) inner: Arc<dyn Volume>,
    pub(crate) after: Duration,
}

struct FarLane {
    inner: Box<dyn Lane>,
    after: Duration,
    id: LaneId,
    out: Vec<(OpKind, u64, u64, Vec<IoBuf>, Tag)>,
}

impl Volume for Far {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    fn lane(&self, ring: &mut Ring, id: LaneId) -> Result<Box<dyn Lane>, VolumeError> {
        let inner = self.inner.lane(ring, id)?;
        Ok(Box::new(FarLane { inner, after: self.after, id, out: Vec::new() }))
    }

    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        self.inner.resize(bytes)
    }
}

/// What a volume in memory copies at once.
const PIECE: usize = 16 * 1024;

impl Lane for FarLane {
    fn submit(&mut self, ring: &mut Ring, request: &mut Asked<'_>) -> Submit {
        let Asked { op, offset, len, bufs, tag, .. } = *request;
        let token = self.id.user_data(tag.0.into());
        ring.push(Op::Timeout { after: self.after }, token).unwrap();
        self.out.push((op, offset, len, bufs.to_vec(), tag));
        Submit::Pending
    }

    fn complete(&mut self, ring: &mut Ring, token: u64, _: i32, out: &mut Vec<Finish>) {
        let at = self.out.iter().position(|(.., tag)| u64::from(tag.0) == token).unwrap();
        let (op, offset, len, bufs, tag) = self.out.swap_remove(at);
        let mut ask = |offset, len, bufs: &[IoBuf]| {
            let mut request = Asked { op, offset, len, bufs, tag, done: 0, passed: 0 };
            match self.inner.submit(ring, &mut request) {
                Submit::Done(result) => result,
                _ => panic!("a volume behind it answers at once"),
            }
        };
        // In pieces: what is long waits for its turn.
        let mut result = if bufs.is_empty() { ask(offset, len, &[]) } else { Ok(()) };
        let mut at = offset;
        for buf in &bufs {
            for start in (0..buf.len()).step_by(PIECE) {
                let piece = buf.slice(start, PIECE.min(buf.len() - start));
                result = result.and(ask(at, piece.len() as u64, &[piece]));
                at += piece.len() as u64;
            }
        }
        out.push(Finish { tag, outcome: Outcome::Done(result) });
    }

    fn detach(&mut self, ring: &mut Ring) {
        self.inner.detach(ring);
    }
}

/// The elements of an adapter that is on no port.
pub(crate) fn elements(elements: u32) -> Arc<Elements> {
    Elements::alone(Share { elements, weight: 1 }, 16)
}

pub(crate) fn unit_of(volume: &Arc<dyn Volume>) -> Arc<LogicalUnit> {
    LogicalUnit::new(UnitSpec::new(Identity::new("TL0001", Naa::local(7)), volume.geometry()))
}

pub(crate) fn nexus_id(initiator: u64) -> NexusId {
    NexusId { initiator: InitiatorId::Fc(initiator), port: 1 }
}

pub(crate) fn attach(unit: &Arc<LogicalUnit>, initiator: u64) -> Arc<Nexus> {
    Arc::new(unit.attach(nexus_id(initiator), Some(0x5005_0768_0000_0001)))
}

pub(crate) fn entry(volume: &Arc<dyn Volume>) -> LunEntry {
    LunEntry { nexus: attach(&unit_of(volume), 1), volume: Some(Arc::clone(volume)) }
}

/// A map from what stands in a table.
pub(crate) fn map(entries: &[(u8, u16, &LunEntry)]) -> Arc<LunMap> {
    let mut targets = BTreeMap::new();
    for (target, number, entry) in entries {
        let luns: &mut Vec<_> = targets.entry(*target).or_default();
        luns.push((lun(*number), (*entry).clone()));
    }
    let targets = targets.into_iter().map(|(id, luns)| Target { id, luns }).collect();
    Arc::new(LunMap::new(targets).unwrap())
}

fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

pub(crate) fn start_channel(stats: &StatsRegion, index: u32) -> Channel {
    let config =
        ChannelConfig { index, cpu: None, files_max: 256, poll_us_max: Some(20), activity: None };
    Channel::start(config, stats.channel(index as usize)).unwrap()
}

/// How a queue of the client is made.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) size: u16,
    pub(crate) luns: Arc<LunMap>,
    pub(crate) limits: ScsiLimits,
    /// None: elements of its own, more than it has commands.
    pub(crate) elements: Option<Arc<Elements>>,
    pub(crate) place: u16,
    pub(crate) inflight: bool,
    pub(crate) log: bool,
}

impl Setup {
    pub(crate) fn new(luns: &Arc<LunMap>) -> Setup {
        let sizes = Sizes::default();
        Setup {
            size: 128,
            luns: Arc::clone(luns),
            limits: ScsiLimits { local: 1024, buffers: 10, functions: 512, inout: true, sizes },
            elements: None,
            place: 0,
            inflight: false,
            log: false,
        }
    }
}

/// A client with its adapter and the server's channels.
pub(crate) struct Client {
    pub(crate) memory: Arc<DriverMemory>,
    pub(crate) stats: Arc<StatsRegion>,
    pub(crate) channels: Arc<Vec<Channel>>,
    pub(crate) adapter: Arc<Adapter>,
    pub(crate) services: Arc<Services>,
    pub(crate) off_path: Mutex<Receiver<OffPath>>,
}

impl Client {
    pub(crate) fn new(channels: u32) -> Client {
        let stats = Arc::new(StatsRegion::create(channels as usize).unwrap());
        let running = (0..channels).map(|index| start_channel(&stats, index)).collect();
        Client::on(&stats, &Arc::new(running))
    }

    /// Another client of the same server.
    pub(crate) fn on(stats: &Arc<StatsRegion>, channels: &Arc<Vec<Channel>>) -> Client {
        let (sender, off_path) = pipe();
        let services = Services {
            off_path: Box::new(move |request| sender.send(request).unwrap()),
            region: Some(Arc::clone(stats)),
        };
        Client {
            memory: Arc::new(DriverMemory::new(96 << 20).unwrap()),
            stats: Arc::clone(stats),
            channels: Arc::clone(channels),
            adapter: Arc::new(Adapter::new("scsi0", Box::new(|_, _| {}))),
            services: Arc::new(services),
            off_path: Mutex::new(off_path),
        }
    }

    /// The next off-path request of a command.
    pub(crate) fn off_path(&self) -> OffPath {
        self.off_path.lock().unwrap().recv_timeout(Duration::from_secs(20)).unwrap()
    }

    /// The next task management function that is asked for, by its number, and where its answer goes.
    pub(crate) fn function(&self) -> (u64, channel::Answer<Response>) {
        let OffPath::Manage { request, answer } = self.off_path() else { panic!("no TMF") };
        (request.id, answer)
    }

    pub(crate) fn queue(&self, role: ScsiRole, setup: &Setup, channel: usize) -> Rig {
        let elements = setup.elements.clone().unwrap_or_else(|| elements(1024));
        let config =
            DriverConfig { size: setup.size, event_idx: true, indirect_max: 128, in_order: false };
        let driver = DriverQueue::new(&self.memory, config).unwrap();
        let number = match role {
            ScsiRole::Control => 0,
            ScsiRole::Event => 1,
            ScsiRole::Request => 2,
        };
        let table = Arc::new(self.memory.table().unwrap());
        let slot = |_| {
            let alloc = |len| self.memory.alloc(len, 4096).unwrap();
            (alloc(HEADER + ROOM), alloc(RESPONSE + ROOM))
        };
        let used = if role == ScsiRole::Request { setup.size.min(128) } else { 16 };
        let region = setup.inflight.then(|| InflightRegion::create(1, setup.size).unwrap().1);
        let log = setup.log.then(|| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(64 << 10).unwrap();
            Arc::new(DirtyLog::open(&file, 0, 64 << 10).unwrap())
        });
        let mut rig = Rig {
            driver,
            role,
            number,
            table,
            setup: setup.clone(),
            elements,
            channels: Arc::clone(&self.channels),
            adapter: Arc::clone(&self.adapter),
            services: Arc::clone(&self.services),
            stats: self.stats.queue("scsi0", number).unwrap(),
            base: 0,
            kick: Some(eventfd()),
            call: Some(eventfd()),
            call_copy: eventfd(),
            running: None,
            places: (0..used).map(slot).collect(),
            free: (0..used).rev().collect(),
            sent: BTreeMap::new(),
            region,
            log,
        };
        rig.call_copy = rig.call.as_ref().unwrap().try_clone().unwrap();
        rig.start(channel);
        rig
    }
}

/// What a client sends.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) address: [u8; 8],
    pub(crate) id: u64,
    pub(crate) cdb: Vec<u8>,
    pub(crate) out: Vec<u8>,
    pub(crate) room: usize,
    /// Where the readable and the writable part are divided; `None`: as drivers do it.
    pub(crate) cuts: Option<(Vec<usize>, Vec<usize>)>,
}

impl Request {
    pub(crate) fn new(target: u8, number: u16, cdb: &[u8]) -> Request {
        Request {
            address: Place::encode(target, lun(number)),
            id: 0,
            cdb: cdb.to_vec(),
            out: Vec::new(),
            room: 0,
            cuts: None,
        }
    }

    pub(crate) fn read(target: u8, number: u16, lba: u32, blocks: u16) -> Request {
        let room = usize::from(blocks) * 512;
        Request { room, ..Request::new(target, number, &cdb10(0x28, lba, blocks)) }
    }

    pub(crate) fn write(target: u8, number: u16, lba: u32, data: Vec<u8>) -> Request {
        let blocks = (data.len() / 512) as u16;
        Request { out: data, ..Request::new(target, number, &cdb10(0x2a, lba, blocks)) }
    }

    pub(crate) fn with_id(self, id: u64) -> Request {
        Request { id, ..self }
    }
}

pub(crate) fn cdb10(opcode: u8, lba: u32, blocks: u16) -> Vec<u8> {
    let ([a, b, c, d], [high, low]) = (lba.to_be_bytes(), blocks.to_be_bytes());
    vec![opcode, 0, a, b, c, d, 0, high, low, 0]
}

/// What it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) id: u64,
    pub(crate) response: u8,
    pub(crate) status: u8,
    pub(crate) residual: u32,
    pub(crate) sense: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) written: u32,
}

impl Answer {
    #[track_caller]
    pub(crate) fn good(self) -> Vec<u8> {
        assert_eq!((self.response, self.status), (0, 0), "{:x?}", self.sense);
        self.data
    }

    /// Sense key and code of a CHECK CONDITION in the fixed format.
    #[track_caller]
    pub(crate) fn check(&self) -> (u8, u16) {
        assert_eq!((self.response, self.status), (0, 2), "{self:x?}");
        assert_eq!(self.sense[0] & 0x7e, 0x70, "{:x?}", self.sense);
        (self.sense[2] & 0x0f, u16::from_be_bytes([self.sense[12], self.sense[13]]))
    }
}

pub(crate) const LUN_NOT_SUPPORTED: (u8, u16) = (5, 0x2500);
pub(crate) const POWER_ON: (u8, u16) = (6, 0x2900);

/// A queue of the client.
pub(crate) struct Rig {
    pub(crate) driver: DriverQueue,
    role: ScsiRole,
    number: u16,
    table: Arc<MemTable>,
    pub(crate) setup: Setup,
    elements: Arc<Elements>,
    channels: Arc<Vec<Channel>>,
    adapter: Arc<Adapter>,
    services: Arc<Services>,
    pub(crate) stats: QueueStats,
    base: u16,
    kick: Option<OwnedFd>,
    call: Option<OwnedFd>,
    call_copy: OwnedFd,
    running: Option<(usize, QueueId, OwnedFd)>,
    places: Vec<(DriverRange, DriverRange)>,
    free: Vec<u16>,
    sent: BTreeMap<u64, (u64, usize)>,
    region: Option<InflightRegion>,
    pub(crate) log: Option<Arc<DirtyLog>>,
}

impl Rig {
    fn config(&self) -> QueueConfig {
        QueueConfig {
            base: self.base,
            used_log: Some(self.driver.addresses().used_guest),
            log: self.log.clone(),
            inflight: self.region.as_ref().and_then(|region| region.queue(0)),
            ..self.driver.device_config()
        }
    }

    pub(crate) fn start(&mut self, channel: usize) {
        let ring = self.config().start(Arc::clone(&self.table)).map_err(|(_, e)| e).unwrap();
        let kick = self.kick.take().unwrap();
        let copy = kick.try_clone().unwrap();
        let behind = Behind {
            role: self.role,
            luns: Arc::clone(&self.setup.luns),
            elements: Arc::clone(&self.elements),
            place: self.setup.place,
            limits: self.setup.limits,
            services: Arc::clone(&self.services),
            owed: Vec::new(),
            link: Link::alone(),
        };
        let resources = QueueResources {
            ring,
            number: self.number,
            adapter: Arc::clone(&self.adapter),
            kick,
            call: self.call.take(),
            error: None,
            commands: Command::pool(self.setup.size),
            stats: self.stats,
        };
        let id = self.channels[channel].start_queue(resources, behind).unwrap();
        self.running = Some((channel, id, copy));
    }

    pub(crate) fn id(&self) -> QueueId {
        self.running.as_ref().unwrap().1
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.channels[self.running.as_ref().unwrap().0]
    }

    /// A process takes everything that is available, and is gone. The queue does not run.
    pub(crate) fn take_and_die(&mut self) {
        let mut queue = self.config().start(Arc::clone(&self.table)).map_err(|(_, e)| e).unwrap();
        while queue.resubmit_next().is_some() {}
        queue.pending().unwrap();
        while queue.pop().unwrap().is_some() {}
        drop(queue);
    }

    /// Stops the queue; nothing is in flight then.
    pub(crate) fn stop(&mut self, drain: Drain) {
        let (channel, id, _) = self.running.take().unwrap();
        let resources = self.channels[channel].stop_queue(id, drain).wait().unwrap();
        self.base = resources.ring.stop().base;
        self.kick = Some(resources.kick);
        self.call = resources.call;
    }

    pub(crate) fn count(&self, counter: QueueCounter) -> u64 {
        self.stats.get(counter)
    }

    pub(crate) fn room(&self) -> usize {
        self.free.len().min(self.driver.free())
    }

    /// Adds a request; [`Rig::kick`] shows it to the server.
    pub(crate) fn add(&mut self, request: &Request) {
        let place = self.free.pop().expect("a free place");
        let (readable, writable) = self.places[usize::from(place)];
        let mut header = vec![0; HEADER];
        header[..8].copy_from_slice(&request.address);
        header[8..16].copy_from_slice(&request.id.to_le_bytes());
        header[19..19 + request.cdb.len()].copy_from_slice(&request.cdb);
        readable.buf.write(0, &header);
        readable.buf.write(HEADER, &request.out);
        // Bytes that no answer has.
        writable.buf.slice(0, RESPONSE + request.room).fill(0xee);
        let usual = (vec![HEADER], vec![RESPONSE]);
        let (out_cuts, in_cuts) = request.cuts.as_ref().unwrap_or(&usual);
        let out = segments(readable.guest, HEADER + request.out.len(), out_cuts);
        let inward = segments(writable.guest, RESPONSE + request.room, in_cuts);
        self.driver.add(&out, &inward, u64::from(place), true).unwrap();
        self.sent.insert(u64::from(place), (request.id, request.room));
    }

    /// Adds bytes as they are: one readable buffer, one writable one.
    pub(crate) fn add_raw(&mut self, bytes: &[u8], room: usize) {
        let place = self.free.pop().expect("a free place");
        let (readable, writable) = self.places[usize::from(place)];
        readable.buf.write(0, bytes);
        writable.buf.slice(0, RESPONSE.max(room)).fill(0xee);
        let segment = |guest, len: usize| if len > 0 { vec![(guest, len as u32)] } else { vec![] };
        let out = segment(readable.guest, bytes.len());
        self.driver.add(&out, &segment(writable.guest, room), u64::from(place), false).unwrap();
        self.sent.insert(u64::from(place), (0, 0));
    }

    pub(crate) fn kick(&mut self) {
        if self.driver.publish() {
            let kick = &self.running.as_ref().unwrap().2;
            rustix::io::write(kick, &1_u64.to_ne_bytes()).unwrap();
        }
    }

    /// An answer that is there already.
    pub(crate) fn poll(&mut self) -> Option<Answer> {
        let (bytes, written, id, room) = self.poll_raw()?;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let sense = (word(0) as usize).min(96);
        Some(Answer {
            id,
            response: bytes[11],
            status: bytes[10],
            residual: word(4),
            sense: bytes[12..12 + sense].to_vec(),
            data: bytes[RESPONSE..RESPONSE + room].to_vec(),
            written,
        })
    }

    fn poll_raw(&mut self) -> Option<(Vec<u8>, u32, u64, usize)> {
        let done = self.driver.poll().unwrap()?;
        let (id, room) = self.sent.remove(&done.token).unwrap();
        let mut bytes = vec![0; RESPONSE + room];
        self.places[done.token as usize].1.buf.read(0, &mut bytes);
        self.free.push(done.token as u16);
        Some((bytes, done.written, id, room))
    }

    fn wait_for<T>(&mut self, mut poll: impl FnMut(&mut Rig) -> Option<T>) -> T {
        loop {
            if let Some(found) = poll(self) {
                return found;
            }
            if self.driver.enable_interrupts() {
                continue;
            }
            let mut fds = [PollFd::new(&self.call_copy, PollFlags::IN)];
            let timeout = rustix::time::Timespec { tv_sec: 20, tv_nsec: 0 };
            let ready = rustix::event::poll(&mut fds, Some(&timeout)).unwrap();
            assert_eq!(ready, 1, "no answer for 20 seconds");
            let _ = rustix::io::read(self.call_copy.as_fd(), &mut [0; 8]);
        }
    }

    #[track_caller]
    pub(crate) fn wait(&mut self) -> Answer {
        self.wait_for(Rig::poll)
    }

    /// Bytes of the writable part, and how many of them the server says it wrote.
    pub(crate) fn wait_raw(&mut self) -> (Vec<u8>, u32) {
        let (bytes, written, ..) = self.wait_for(Rig::poll_raw);
        (bytes, written)
    }

    /// One request from beginning to end.
    #[track_caller]
    pub(crate) fn ask(&mut self, request: &Request) -> Answer {
        self.add(request);
        self.kick();
        self.wait()
    }

    /// A request whose unit attention, if one is pending, was told before.
    #[track_caller]
    pub(crate) fn ready(&mut self, target: u8, number: u16) {
        while self.ask(&Request::new(target, number, &[0; 6])).status != 0 {}
    }

    /// Pages of the writable part of the request that is added next.
    pub(crate) fn next_pages(&self, len: usize) -> Vec<GuestAddr> {
        let place = usize::from(*self.free.last().unwrap());
        let at = self.places[place].1.guest.0;
        (at..at + len as u64).step_by(4096).map(GuestAddr).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if self.running.is_some() && !std::thread::panicking() {
            self.stop(Drain::SkipWaits);
        }
    }
}

/// A range of memory as segments, divided at these offsets.
fn segments(guest: GuestAddr, len: usize, cuts: &[usize]) -> Vec<Segment> {
    let inner = cuts.iter().copied().filter(|cut| *cut > 0 && *cut < len);
    let mut borders: Vec<usize> = inner.chain([0, len]).collect();
    borders.sort_unstable();
    borders.dedup();
    let piece = |pair: &[usize]| (GuestAddr(guest.0 + pair[0] as u64), (pair[1] - pair[0]) as u32);
    borders.windows(2).map(piece).collect()
}

/// Fills a buffer.
pub(crate) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| ((at / 8).wrapping_mul(seed | 1) >> 3) as u8 ^ seed as u8).collect()
}
