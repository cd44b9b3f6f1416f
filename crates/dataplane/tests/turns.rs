//! How much of others' work lies between a request and its answer, counted turn by turn on a channel without a thread.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use block::{Finish, Geometry, Lane, LaneId, NullVolume, Submit, Volume, VolumeError};
use channel::elements::{Elements, Share};
use channel::single::Single;
use channel::{Adapter, ChannelConfig, Command, QueueResources};
use dataplane::devices::{AnyHandler, Behind};
use device_blk::Shape;
use device_scsi::{LunEntry, LunMap, Place, ScsiLimits, ScsiRole, Services, Sizes, Target};
use protocol::stats::{QueueCounter, QueueStats, StatsRegion};
use rustix::event::EventfdFlags;
use scsi::{Identity, InitiatorId, LogicalUnit, Lun, Naa, NexusId, UnitSpec};
use uring::Ring;
use vring::GuestAddr;
use vring::driver::{DriverConfig, DriverMemory, DriverQueue, DriverRange, Segment};

const MIB: usize = 1 << 20;
/// A client that asks for much.
const PIECES: usize = 254;
/// Segments of long chains that a queue is served in a turn before it is another one's turn, and one chain more.
const SEGMENTS: u64 = 512 + 256;

/// A channel whose turns are made one by one.
struct Stand {
    channel: Single<AnyHandler>,
    stats: Arc<StatsRegion>,
}

impl Stand {
    fn new() -> Stand {
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
        let region = [(GuestAddr(1 << 30), 16 * MIB as u64)];
        let memory = Arc::new(DriverMemory::with_regions(&region).unwrap());
        let config =
            DriverConfig { size: 256, event_idx: true, indirect_max: 258, in_order: false };
        let driver = DriverQueue::new(&memory, config).unwrap();
        let ring = driver.device_config().start(Arc::new(memory.table().unwrap()));
        let ring = ring.map_err(|(_, error)| error).unwrap();
        let fd = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let stats = self.stats.queue(name, 0).unwrap();
        let queue = QueueResources {
            ring,
            number: 0,
            adapter: Arc::new(Adapter::new(name, Box::new(|_, _| ()))),
            kick: fd(),
            call: Some(fd()),
            error: None,
            commands: Command::pool(256),
            stats,
        };
        self.channel.start_queue(queue, behind).unwrap();
        let header = memory.alloc(64, 64).unwrap();
        let data = memory.alloc(8 * MIB, 4096).unwrap();
        let status = memory.alloc(128, 64).unwrap();
        Client { driver, header, data, status, stats }
    }

    /// A block device on a volume of its own, of zeroes that the channel writes into its client's memory if they are `filled`.
    fn block(&mut self, name: &str, filled: bool) -> Client {
        let volume = NullVolume::new(name, 1 << 30, 512, false, filled);
        let client = self.client(name, block(Arc::new(volume)));
        client.header.buf.write(0, &[0; 16]);
        client
    }
}

fn block(volume: Arc<dyn Volume>) -> Behind {
    let shape = Shape::new(&volume.geometry(), "turns", false, true);
    Behind::Block(device_blk::Behind { shape: Arc::new(shape), volume })
}

struct Client {
    driver: DriverQueue,
    header: DriverRange,
    data: DriverRange,
    status: DriverRange,
    stats: QueueStats,
}

impl Client {
    /// A read of `pieces` pieces of `bytes` each; all of them have one memory.
    fn read(&mut self, pieces: usize, bytes: usize) {
        let mut inward: Vec<Segment> = vec![(self.data.guest, bytes as u32); pieces];
        inward.push((self.status.guest, 1));
        self.driver.add(&[(self.header.guest, 16)], &inward, 0, true).unwrap();
        self.driver.publish();
    }

    fn answers(&mut self) -> u64 {
        std::iter::from_fn(|| self.driver.poll().unwrap()).count() as u64
    }

    fn count(&self, counter: QueueCounter) -> u64 {
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
