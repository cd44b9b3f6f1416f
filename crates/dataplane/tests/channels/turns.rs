//! How much of others' work lies between a request and its answer, counted turn by turn on a channel without a thread.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use block::{
    Finish, Geometry, Lane, LaneId, Limited, NullVolume, Submit, Volume, VolumeError, Wait,
};
use channel::elements::{Elements, Share};
use channel::single::Single;
use channel::{Adapter, ChannelConfig, Command, QueueId, QueueResources};
use dataplane::devices::{AnyHandler, Behind};
use device_blk::Shape;
use device_scsi::{LunEntry, LunMap, Place, ScsiLimits, ScsiRole, Services, Sizes, Target};
use protocol::message::LimitSpec;
use protocol::stats::{ChannelCounter, QueueCounter, QueueStats, StatsRegion};
use rustix::event::EventfdFlags;
use rustix::time::{ClockId, clock_gettime};
use scsi::{Identity, InitiatorId, LogicalUnit, Lun, Naa, NexusId, UnitSpec};
use uring::{Op, Ring};
use vring::driver::{DriverConfig, DriverMemory, DriverQueue, DriverRange, Segment};
use vring::{GuestAddr, InflightRegion};

const MIB: usize = 1 << 20;
/// A client that asks for much.
const PIECES: usize = 254;
/// Segments of long chains that a queue is served in a turn before it is another one's turn, and one chain more.
const SEGMENTS: u64 = 512 + 256;

/// A channel whose turns are made one by one.
pub(super) struct Stand {
    pub(super) channel: Single<AnyHandler>,
    stats: Arc<StatsRegion>,
}

impl Stand {
    pub(super) fn new() -> Stand {
        let stats = Arc::new(StatsRegion::create(1).unwrap());
        let config = ChannelConfig {
            index: 0,
            cpu: None,
            files_max: 64,
            poll_us_max: Some(0),
            activity: None,
        };
        Stand { channel: Single::new(&config, stats.channel(0)).unwrap(), stats }
    }

    fn client(&mut self, name: &str, behind: Behind) -> Client {
        let mut client = Client::new(self.stats.queue(name, 0).unwrap());
        self.serve(&mut client, name, behind);
        client
    }

    fn serve(&mut self, client: &mut Client, name: &str, behind: Behind) -> QueueId {
        let queue = QueueResources {
            ring: client.ring(),
            number: 0,
            adapter: Arc::new(Adapter::new(name, Box::new(|_, _| ()))),
            kick: client.kick.try_clone().unwrap(),
            call: Some(eventfd()),
            error: None,
            commands: Command::pool(256),
            stats: client.stats,
        };
        self.channel.start_queue(queue, behind).unwrap()
    }

    /// A block device on a volume of its own, of zeroes that the channel writes into its client's memory if they are `filled`.
    pub(super) fn block(&mut self, name: &str, filled: bool) -> Client {
        let volume = NullVolume::new(name, 1 << 30, 512, false, filled);
        let client = self.client(name, block(Arc::new(volume)));
        client.header.buf.write(0, &[0; 16]);
        client
    }
}

fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

fn block(volume: Arc<dyn Volume>) -> Behind {
    let shape = Shape::new(&volume.geometry(), "turns", false, true);
    Behind::Block(device_blk::Behind { shape: Arc::new(shape), volume })
}

pub(super) struct Client {
    memory: Arc<DriverMemory>,
    inflight: InflightRegion,
    driver: DriverQueue,
    header: DriverRange,
    data: DriverRange,
    status: DriverRange,
    stats: QueueStats,
    kick: OwnedFd,
}

impl Client {
    fn new(stats: QueueStats) -> Client {
        let region = [(GuestAddr(1 << 30), 16 * MIB as u64)];
        let memory = Arc::new(DriverMemory::with_regions(&region).unwrap());
        let config =
            DriverConfig { size: 256, event_idx: true, indirect_max: 258, in_order: false };
        let driver = DriverQueue::new(&memory, config).unwrap();
        let header = memory.alloc(64, 64).unwrap();
        let data = memory.alloc(8 * MIB, 4096).unwrap();
        let status = memory.alloc(128, 64).unwrap();
        let inflight = InflightRegion::create(1, 256).unwrap().1;
        // As a session makes it, so that a write is done when the kernel has been asked.
        let kick = eventfd();
        Client { memory, inflight, driver, header, data, status, stats, kick }
    }

    /// Its queue, as a process finds it.
    fn ring(&self) -> vring::Queue {
        let mut config = self.driver.device_config();
        config.inflight = self.inflight.queue(0);
        let ring = config.start(Arc::new(self.memory.table().unwrap()));
        ring.map_err(|(_, error)| error).unwrap()
    }

    /// A process takes all that is in its ring, and dies.
    fn lose(&self) {
        let mut ring = self.ring();
        assert!(ring.pending().unwrap() > 0);
        while ring.pop().unwrap().is_some() {}
    }

    /// A read of `pieces` pieces of `bytes` each; all of them have one memory.
    pub(super) fn read(&mut self, pieces: usize, bytes: usize) {
        let mut inward: Vec<Segment> = vec![(self.data.guest, bytes as u32); pieces];
        inward.push((self.status.guest, 1));
        self.driver.add(&[(self.header.guest, 16)], &inward, 0, true).unwrap();
        self.driver.publish();
    }

    /// Kicks, whether it was asked to or not.
    pub(super) fn kick(&self) {
        rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).unwrap();
    }

    pub(super) fn answers(&mut self) -> u64 {
        std::iter::from_fn(|| self.driver.poll().unwrap()).count() as u64
    }

    pub(super) fn count(&self, counter: QueueCounter) -> u64 {
        self.stats.get(counter)
    }
}

fn sum(clients: &[Client], counter: QueueCounter) -> u64 {
    clients.iter().map(|client| client.count(counter)).sum()
}

#[test]
fn long_chains_are_followed_for_one_client_in_a_turn() {
    let mut stand = Stand::new();
    let mut heavy: Vec<Client> = (0..8).map(|n| stand.block(&format!("heavy{n}"), false)).collect();
    let mut modest = stand.block("modest", false);
    for client in &mut heavy {
        (0..200).for_each(|_| client.read(PIECES, 512));
    }
    // They are not known for what they are before that.
    stand.channel.turn();
    let before: Vec<u64> =
        heavy.iter().map(|client| client.count(QueueCounter::CommandsReceived)).collect();
    for turn in 0..16 {
        let taken = sum(&heavy, QueueCounter::CommandsReceived);
        modest.read(1, 512);
        assert!(stand.channel.turn());
        assert_eq!(modest.answers(), 1, "in turn {turn}");
        let segments = (sum(&heavy, QueueCounter::CommandsReceived) - taken) * PIECES as u64;
        assert!((1..=SEGMENTS).contains(&segments), "{segments} segments in turn {turn}");
    }
    // Each in turn.
    for (client, before) in heavy.iter().zip(before) {
        let taken = client.count(QueueCounter::CommandsReceived) - before;
        assert_eq!(taken * PIECES as u64, 2 * 3 * PIECES as u64);
    }
    // A client with little left is an ordinary one.
    for client in &mut heavy {
        while client.count(QueueCounter::CommandsReceived) < 200 {
            assert!(stand.channel.turn());
        }
        client.answers();
        client.read(1, 512);
    }
    stand.channel.turn();
    assert_eq!(heavy.iter_mut().map(Client::answers).collect::<Vec<_>>(), [1; 8]);
}

#[test]
fn chains_without_an_end_are_followed_for_one_client_in_a_turn() {
    let mut stand = Stand::new();
    let mut endless = stand.block("endless", false);
    let mut modest = stand.block("modest", false);
    for _ in 0..120 {
        let chain = [(endless.header.guest, 16), (endless.data.guest, 512)];
        let head = endless.driver.add(&chain, &[], 0, false).unwrap();
        endless.driver.make_endless(head);
    }
    endless.driver.publish();
    stand.channel.turn();
    for turn in 0..16 {
        let taken = endless.count(QueueCounter::CommandsReceived);
        modest.read(1, 512);
        assert!(stand.channel.turn());
        assert_eq!(modest.answers(), 1, "in turn {turn}");
        // Each is followed through all of the ring.
        let segments = (endless.count(QueueCounter::CommandsReceived) - taken) * 256;
        assert!((1..=SEGMENTS).contains(&segments), "{segments} segments in turn {turn}");
    }
}

#[test]
fn long_copies_go_on_for_one_volume_in_a_turn() {
    let mut stand = Stand::new();
    let mut heavy: Vec<Client> = (0..8).map(|n| stand.block(&format!("heavy{n}"), true)).collect();
    let mut modest = stand.block("modest", true);
    heavy.iter_mut().for_each(|client| client.read(8, MIB));
    stand.channel.turn();
    let (mut turns, mut most) = (0, 0);
    let mut answered = 0;
    while answered < 8 {
        let rounds = sum(&heavy, QueueCounter::Rounds);
        modest.read(1, 4096);
        assert!(stand.channel.turn());
        assert_eq!(modest.answers(), 1, "in turn {turns}");
        most = most.max(sum(&heavy, QueueCounter::Rounds) - rounds);
        answered += heavy.iter_mut().map(Client::answers).sum::<u64>();
        turns += 1;
    }
    // Of eight that copy at most a MiB in a round.
    assert!(turns >= 8 * 8 - 8, "{turns} turns");
    assert_eq!(most, 1);
}

/// Also in turns that answer nothing.
#[test]
fn time_that_goes_into_copies_is_busy_time() {
    let mut stand = Stand::new();
    let mut client = stand.block("long", true);
    let reads = 16;
    (0..reads).for_each(|_| client.read(8, MIB));
    let begun = cpu_ns();
    let mut answered = 0;
    while answered < reads {
        stand.channel.accounted_turn();
        answered += client.answers();
    }
    let (took, busy) = (cpu_ns() - begun, stand.stats.channel(0).get(ChannelCounter::Busy));
    assert!(busy > took / 2, "{busy} ns busy, {took} ns of this thread's time");
}

/// What this thread has had of a CPU: others on the machine do not count.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A volume that says when it copies.
struct Watched {
    volume: NullVolume,
    watch: Arc<dyn Fn() + Send + Sync>,
}

impl Volume for Watched {
    fn geometry(&self) -> Geometry {
        self.volume.geometry()
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    fn lane(&self, ring: &mut Ring, id: LaneId) -> Result<Box<dyn Lane>, VolumeError> {
        let lane = self.volume.lane(ring, id)?;
        Ok(Box::new(WatchedLane { lane, watch: Arc::clone(&self.watch) }))
    }

    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        self.volume.resize(bytes)
    }
}

struct WatchedLane {
    lane: Box<dyn Lane>,
    watch: Arc<dyn Fn() + Send + Sync>,
}

impl Lane for WatchedLane {
    fn submit(&mut self, ring: &mut Ring, request: &mut block::Request<'_>) -> Submit {
        self.lane.submit(ring, request)
    }

    fn complete(&mut self, ring: &mut Ring, token: u64, result: i32, out: &mut Vec<Finish>) {
        (self.watch)();
        self.lane.complete(ring, token, result, out);
    }

    fn detach(&mut self, ring: &mut Ring) {
        self.lane.detach(ring);
    }
}

/// A client does not wait for a copy that begins when its request is done.
#[test]
fn what_is_done_is_published_before_anybody_copies() {
    let mut stand = Stand::new();
    let modest = Arc::new(Mutex::new(stand.block("modest", true)));
    let (rounds, published) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let watch = {
        let (modest, rounds, published) = (modest.clone(), rounds.clone(), published.clone());
        move || {
            rounds.fetch_add(1, Relaxed);
            published.fetch_add(modest.lock().unwrap().answers(), Relaxed);
        }
    };
    let volume = NullVolume::new("heavy", 1 << 30, 512, false, true);
    let volume = Watched { volume, watch: Arc::new(watch) };
    let mut heavy = stand.client("heavy", block(Arc::new(volume)));
    heavy.header.buf.write(0, &[0; 16]);
    heavy.read(8, MIB);
    stand.channel.turn();
    let mut asked = 0;
    while heavy.answers() == 0 {
        modest.lock().unwrap().read(1, 4096);
        asked += 1;
        let before = rounds.load(Relaxed);
        assert!(stand.channel.turn());
        assert!(rounds.load(Relaxed) <= before + 1, "one round in a turn");
        if rounds.load(Relaxed) == before {
            // What was done in a turn without a round has been published by now, too.
            published.fetch_add(modest.lock().unwrap().answers(), Relaxed);
        }
        assert_eq!(published.load(Relaxed), asked, "a round came first");
    }
    assert!(rounds.load(Relaxed) >= 8);
}

/// A disk of SCSI whose client may have one command active.
fn scsi_of_one(volume: Arc<dyn Volume>, stats: &Arc<StatsRegion>) -> Behind {
    let unit =
        LogicalUnit::new(UnitSpec::new(Identity::new("disk", Naa::local(1)), volume.geometry()));
    let id = NexusId { initiator: InitiatorId::Fc(1), port: 1 };
    let nexus = Arc::new(unit.attach(id, None));
    let luns = vec![(Lun::new(0).unwrap(), LunEntry { nexus, volume: Some(volume) })];
    let services = Services { off_path: Box::new(|_| ()), region: Some(Arc::clone(stats)) };
    Behind::Scsi(device_scsi::Behind {
        role: ScsiRole::Request,
        luns: Arc::new(LunMap::new(vec![Target { id: 0, luns }]).unwrap()),
        elements: Elements::alone(Share { elements: 1, weight: 1 }, 1),
        place: 0,
        limits: ScsiLimits {
            local: 1,
            buffers: 10,
            functions: 512,
            inout: true,
            sizes: Sizes::default(),
        },
        link: device_scsi::Link::alone(),
        services: Arc::new(services),
        owed: Vec::new(),
    })
}

/// Behind one command that takes long, many that are answered at once.
#[test]
fn commands_that_are_held_are_taken_up_some_in_a_turn() {
    let mut stand = Stand::new();
    let stats = Arc::clone(&stand.stats);
    let volume = NullVolume::new("disk", 1 << 30, 512, false, true);
    let mut client = stand.client("scsi", scsi_of_one(Arc::new(volume), &stats));
    let read = |client: &mut Client, blocks: u16| {
        let header = client.header.buf;
        header.write(0, &Place::encode(0, Lun::new(0).unwrap()));
        let [high, low] = blocks.to_be_bytes();
        header.write(19, &[0x28, 0, 0, 0, 0, 0, 0, high, low, 0]);
        let inward = [(client.status.guest, 108), (client.data.guest, u32::from(blocks) * 512)];
        client.driver.add(&[(client.header.guest, 51)], &inward, 0, true).unwrap();
        client.driver.publish();
    };
    // The first command is told POWER ON.
    read(&mut client, 8);
    while client.answers() == 0 {
        stand.channel.turn();
    }
    read(&mut client, 8 * 2048);
    stand.channel.turn();
    for _ in 0..200 {
        read(&mut client, 8);
    }
    let (mut answers, mut turns) = (0, 0);
    while answers < 201 {
        stand.channel.turn();
        turns += 1;
        assert!(turns < 100_000, "{answers} answers");
        let now = client.answers();
        // Once before a round, and once after it.
        assert!(now <= 1 + 2 * u64::from(channel::BATCH), "{now} in a turn");
        answers += now;
    }
}

/// What an earlier process took goes first, and as much of it in a turn as of what is new.
#[test]
fn what_is_done_again_is_done_in_turns() {
    let mut stand = Stand::new();
    let mut modest = stand.block("modest", false);
    let mut heavy: Vec<Client> = (0..4)
        .map(|n| {
            let mut client = Client::new(stand.stats.queue(&format!("heavy{n}"), 0).unwrap());
            client.header.buf.write(0, &[0; 16]);
            (0..200).for_each(|_| client.read(PIECES, 512));
            client.lose();
            (0..8).for_each(|_| client.read(1, 512));
            client
        })
        .collect();
    for (n, client) in heavy.iter_mut().enumerate() {
        let volume = NullVolume::new("heavy", 1 << 30, 512, false, false);
        stand.serve(client, &format!("heavy{n}"), block(Arc::new(volume)));
    }
    let (mut turns, mut answers) = (0, 0);
    while sum(&heavy, QueueCounter::Resubmitted) < 4 * 200 {
        let again = sum(&heavy, QueueCounter::Resubmitted);
        modest.read(1, 512);
        assert!(stand.channel.turn());
        assert_eq!(modest.answers(), 1, "in turn {turns}");
        let segments = (sum(&heavy, QueueCounter::Resubmitted) - again) * PIECES as u64;
        // In the first turn nobody is known for what it is.
        let most = if turns == 0 { 4 * SEGMENTS } else { SEGMENTS };
        assert!((1..=most).contains(&segments), "{segments} segments in turn {turns}");
        for client in &mut heavy {
            answers += client.answers();
            let (taken, again) = [QueueCounter::CommandsReceived, QueueCounter::Resubmitted]
                .map(|it| client.count(it))
                .into();
            assert!(taken == again || again == 200, "{taken} taken, {again} again");
        }
        turns += 1;
    }
    while answers < 4 * 208 {
        assert!(stand.channel.turn(), "{answers} answers");
        answers += heavy.iter_mut().map(Client::answers).sum::<u64>();
    }
}

/// A volume that has room for one request, which is done when the kernel has been asked.
struct Narrow {
    volume: NullVolume,
    busy: Arc<AtomicBool>,
}

impl Volume for Narrow {
    fn geometry(&self) -> Geometry {
        self.volume.geometry()
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    fn lane(&self, _: &mut Ring, id: LaneId) -> Result<Box<dyn Lane>, VolumeError> {
        Ok(Box::new(NarrowLane { id, busy: Arc::clone(&self.busy) }))
    }

    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        self.volume.resize(bytes)
    }
}

struct NarrowLane {
    id: LaneId,
    busy: Arc<AtomicBool>,
}

impl Lane for NarrowLane {
    fn submit(&mut self, ring: &mut Ring, request: &mut block::Request<'_>) -> Submit {
        if self.busy.swap(true, Relaxed) {
            return Submit::Park { reason: Wait::BackEndFull, until: None };
        }
        ring.push(Op::Nop, self.id.user_data(u64::from(request.tag.0))).unwrap();
        Submit::Pending
    }

    fn complete(&mut self, _: &mut Ring, token: u64, _: i32, out: &mut Vec<Finish>) {
        self.busy.store(false, Relaxed);
        let tag = block::Tag(u32::try_from(token).unwrap());
        out.push(Finish { tag, outcome: block::Outcome::Done(Ok(())) });
    }

    fn detach(&mut self, _: &mut Ring) {}
}

/// The last request of a queue makes room for another queue's, and the queue is gone before anybody has looked for those that wait.
#[test]
fn a_queue_that_goes_leaves_its_room_to_those_that_wait() {
    // Which turn the queue goes in decides; of these, one is that of its last request's end.
    for turns in 1..4 {
        let mut stand = Stand::new();
        let volume = NullVolume::new("narrow", 1 << 30, 512, false, false);
        let narrow: Arc<dyn Volume> = Arc::new(Narrow { volume, busy: Arc::default() });
        let mut clients = Vec::new();
        for name in ["first", "goes", "waits"] {
            let mut client = Client::new(stand.stats.queue(name, 0).unwrap());
            let id = stand.serve(&mut client, name, block(Arc::clone(&narrow)));
            client.header.buf.write(0, &[0; 16]);
            client.read(1, 4096);
            clients.push((client, id));
        }
        (0..turns).for_each(|_| {
            stand.channel.turn();
        });
        let gone = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&gone);
        stand.channel.stop_queue(clients[1].1).then(move |queue| {
            told.store(queue.is_some(), Relaxed);
        });
        (0..100).for_each(|_| {
            stand.channel.turn();
        });
        let answers = clients.iter_mut().map(|(client, _)| client.answers());
        let answers = answers.collect::<Vec<_>>();
        let told = (gone.load(Relaxed), answers);
        assert_eq!(told, (true, vec![1, 1, 1]), "stopped after {turns} turns");
    }
}

/// A volume whose requests take their time. It counts those that have come.
struct Slow {
    volume: NullVolume,
    come: Arc<AtomicU64>,
}

impl Volume for Slow {
    fn geometry(&self) -> Geometry {
        self.volume.geometry()
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    fn lane(&self, _: &mut Ring, id: LaneId) -> Result<Box<dyn Lane>, VolumeError> {
        Ok(Box::new(SlowLane { id, come: Arc::clone(&self.come) }))
    }

    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        self.volume.resize(bytes)
    }
}

struct SlowLane {
    id: LaneId,
    come: Arc<AtomicU64>,
}

impl Lane for SlowLane {
    fn submit(&mut self, ring: &mut Ring, request: &mut block::Request<'_>) -> Submit {
        self.come.fetch_add(1, Relaxed);
        let after = Op::Timeout { after: Duration::from_millis(300) };
        ring.push(after, self.id.user_data(u64::from(request.tag.0))).unwrap();
        Submit::Pending
    }

    fn complete(&mut self, _: &mut Ring, token: u64, _: i32, out: &mut Vec<Finish>) {
        let tag = block::Tag(u32::try_from(token).unwrap());
        out.push(Finish { tag, outcome: block::Outcome::Done(Ok(())) });
    }

    fn detach(&mut self, _: &mut Ring) {}
}

/// Who is held back by a limit keeps no segment lists, however many queues it has.
#[test]
fn what_a_limit_holds_back_leaves_all_lists_to_others() {
    let mut stand = Stand::new();
    let limits = LimitSpec { read_iops: 20, read_iops_burst: 1, ..LimitSpec::default() };
    let volume = Arc::new(NullVolume::new("held", 1 << 30, 512, false, false));
    let volume: Arc<dyn Volume> = Arc::new(Limited::new(volume, &limits, 0));
    let mut held: Vec<Client> = (0..12)
        .map(|n| {
            let client = stand.client(&format!("held{n}"), block(Arc::clone(&volume)));
            client.header.buf.write(0, &[0; 16]);
            client
        })
        .collect();
    held.iter_mut().for_each(|client| (0..100).for_each(|_| client.read(8, 512)));
    // All but the first one are told to wait.
    for _ in 0..2000 {
        stand.channel.turn();
    }
    assert_eq!(sum(&held, QueueCounter::CommandsReceived), 12 * 100);
    assert_eq!(sum(&held, QueueCounter::WaitThrottled), 12 * 100 - 1);
    let come = Arc::new(AtomicU64::new(0));
    let volume = NullVolume::new("slow", 1 << 30, 512, false, false);
    let volume = Slow { volume, come: Arc::clone(&come) };
    let mut modest = stand.client("modest", block(Arc::new(volume)));
    modest.header.buf.write(0, &[0; 16]);
    (0..32).for_each(|_| modest.read(8, 512));
    let mut answers = 0;
    while answers == 0 {
        stand.channel.turn();
        answers = modest.answers();
    }
    assert_eq!(come.load(Relaxed), 32, "all at the same time");
    assert_eq!(modest.count(QueueCounter::WaitNoDma), 0);
    // What waits is served when it is its time, and was paid for once.
    let before = sum(&held, QueueCounter::Reads);
    while sum(&held, QueueCounter::Reads) < before + 12 {
        stand.channel.turn();
    }
    assert_eq!(sum(&held, QueueCounter::WaitThrottled), 12 * 100 - 1);
    // Who asks for something else by then pays for that.
    held.iter().for_each(|client| client.header.buf.write(8, &[8]));
    let before = sum(&held, QueueCounter::Reads);
    while sum(&held, QueueCounter::Reads) < before + 12
        && sum(&held, QueueCounter::WaitThrottled) < 12 * 100
    {
        stand.channel.turn();
    }
    assert_eq!(sum(&held, QueueCounter::Reads), before);
}
