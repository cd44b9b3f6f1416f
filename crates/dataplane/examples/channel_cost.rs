//! Counts what one command of 4 KiB costs from the ring to a null volume and back, through the whole channel.
//!
//! One measured call serves what the client has put into all rings, 32 unless said otherwise: turns that take a batch from each ring, have the volume
//! serve them, and publish. Arguments: rounds, then `block` or `scsi`, `write` for writes, `queues=N` on the one channel, and `depth=N` requests in
//! each of them. `cargo xtask test --only cost` can run it under callgrind.

use std::sync::Arc;

use block::{NullVolume, Volume};
use channel::elements::{Elements, Share};
use channel::single::Single;
use channel::{Adapter, ChannelConfig, Command, QueueResources};
use dataplane::devices::{AnyHandler, Behind};
use device_blk::Shape;
use device_scsi::{LunEntry, LunMap, Place, ScsiLimits, ScsiRole, Services, Sizes, Target};
use protocol::stats::{QueueCounter, QueueStats, StatsRegion};
use rustix::event::EventfdFlags;
use scsi::{Identity, InitiatorId, LogicalUnit, Lun, Naa, NexusId, UnitSpec};
use vring::GuestAddr;
use vring::driver::{DriverConfig, DriverMemory, DriverQueue, Segment};

/// A turn takes as many from a ring.
const BATCH: u64 = 32;
const BYTES: u32 = 4096;

fn block_device(volume: &Arc<dyn Volume>) -> Behind {
    let shape = Shape::new(&volume.geometry(), "cost", false, true);
    Behind::Block(device_blk::Behind { shape: Arc::new(shape), volume: Arc::clone(volume) })
}

/// The queues of one adapter.
fn scsi_devices(volume: &Arc<dyn Volume>, stats: &Arc<StatsRegion>, queues: u16) -> Vec<Behind> {
    let unit =
        LogicalUnit::new(UnitSpec::new(Identity::new("cost", Naa::local(1)), volume.geometry()));
    let id = NexusId { initiator: InitiatorId::Fc(1), port: 1 };
    let nexus = Arc::new(unit.attach(id, None));
    let lun = Lun::new(0).expect("in range");
    let luns = vec![(lun, LunEntry { nexus, volume: Some(Arc::clone(volume)) })];
    let map = LunMap::new(vec![Target { id: 0, luns }]).expect("one of each");
    let services = Services { off_path: Box::new(|_| ()), region: Some(Arc::clone(stats)) };
    let elements = Elements::alone(Share { elements: 2048, weight: 1 }, queues);
    let (map, services, link) = (Arc::new(map), Arc::new(services), device_scsi::Link::alone());
    let limits = ScsiLimits {
        local: 256,
        buffers: 10,
        functions: 512,
        inout: true,
        sizes: Sizes::default(),
    };
    let queue = |place| {
        Behind::Scsi(device_scsi::Behind {
            role: ScsiRole::Request,
            luns: Arc::clone(&map),
            elements: Arc::clone(&elements),
            place,
            limits,
            link: Arc::clone(&link),
            services: Arc::clone(&services),
            owed: Vec::new(),
        })
    };
    (0..queues).map(queue).collect()
}

/// The parts of a request in the client's memory, header first.
fn request(memory: &DriverMemory, scsi: bool, write: bool, block: u8) -> [Segment; 3] {
    let (header_bytes, status_bytes) = if scsi { (51, 108) } else { (16, 1) };
    let header = memory.alloc(header_bytes, 64).expect("room");
    let data = memory.alloc(BYTES as usize, 4096).expect("room");
    let status = memory.alloc(status_bytes, 64).expect("room");
    if scsi {
        header.buf.write(0, &Place::encode(0, Lun::new(0).expect("in range")));
        header.buf.write(19, &[if write { 0x2a } else { 0x28 }, 0, 0, 0, 0, block, 0, 0, 8, 0]);
    } else {
        header.buf.write(0, &[u8::from(write)]);
        header.buf.write(8, &[block]);
    }
    let status_bytes = u32::try_from(status_bytes).expect("small");
    let header_bytes = u32::try_from(header_bytes).expect("small");
    [(header.guest, header_bytes), (data.guest, BYTES), (status.guest, status_bytes)]
}

/// The measured function: the turns of a channel whose volume answers at once.
#[inline(never)]
fn serve_batch(channel: &mut Single<AnyHandler>, turns: u64) {
    for _ in 0..turns {
        assert!(channel.turn());
    }
}

/// Adds a batch.
fn add(driver: &mut DriverQueue, requests: &[[Segment; 3]], scsi: bool, write: bool) {
    for (token, [header, data, status]) in (0..).zip(requests) {
        let (out, inward) = match (write, scsi) {
            (true, _) => (vec![*header, *data], vec![*status]),
            // The response comes first here, and last there.
            (false, true) => (vec![*header], vec![*status, *data]),
            (false, false) => (vec![*header], vec![*data, *status]),
        };
        driver.add(&out, &inward, token, false).expect("room");
    }
    driver.publish();
}

/// A running queue's other end.
fn client(
    channel: &mut Single<AnyHandler>,
    (adapter, stats, number): (&Arc<Adapter>, &Arc<StatsRegion>, u16),
    depth: u64,
    behind: Behind,
) -> (Arc<DriverMemory>, DriverQueue, QueueStats) {
    let region = [(GuestAddr(1 << 30), 4 << 20)];
    let memory = Arc::new(DriverMemory::with_regions(&region).expect("memory"));
    let size = u16::try_from((depth * 4).next_power_of_two()).expect("a ring");
    let driver = DriverConfig { size, event_idx: true, indirect_max: 0, in_order: false };
    let driver = DriverQueue::new(&memory, driver).expect("a queue");
    let ring = driver.device_config();
    let table = Arc::new(memory.table().expect("the same memory"));
    let ring = ring.start(table).map_err(|(_, error)| error).expect("a sound ring");
    let fd = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd");
    let counters = stats.queue("cost", number).expect("a slot");
    let queue = QueueResources {
        ring,
        number,
        adapter: Arc::clone(adapter),
        kick: fd(),
        call: Some(fd()),
        error: None,
        commands: Command::pool(size),
        stats: counters,
    };
    channel.start_queue(queue, behind).expect("a queue");
    (memory, driver, counters)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds: u64 = arguments.first().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let number = |name: &str| arguments.iter().find_map(|it| it.strip_prefix(name)?.parse().ok());
    let (scsi, write) = (has("scsi"), has("write"));
    let (queues, depth): (u16, u64) =
        (number("queues=").map_or(1, |n: u64| n as u16), number("depth=").unwrap_or(32));
    let stats = Arc::new(StatsRegion::create(1).expect("memory"));
    let config =
        ChannelConfig { index: 0, cpu: None, files_max: 64, poll_us_max: Some(0), activity: None };
    let mut channel = Single::new(&config, stats.channel(0)).expect("a channel");
    let volume: Arc<dyn Volume> = Arc::new(NullVolume::new("cost", 1 << 30, 512, false, false));
    let mut behind = match scsi {
        true => scsi_devices(&volume, &stats, queues),
        false => (0..queues).map(|_| block_device(&volume)).collect(),
    };
    let adapter = Arc::new(Adapter::new("cost", Box::new(|_, _| ())));
    let mut clients: Vec<_> = behind
        .drain(..)
        .zip(0..)
        .map(|(behind, number)| {
            let (memory, driver, counters) =
                client(&mut channel, (&adapter, &stats, number), depth, behind);
            let requests: Vec<_> =
                (0..depth).map(|at| request(&memory, scsi, write, at as u8 * 8)).collect();
            (driver, requests, counters)
        })
        .collect();
    // The first command is told POWER ON.
    let (driver, requests, _) = &mut clients[0];
    add(driver, &requests[..1], scsi, write);
    channel.turn();
    let turns = depth.div_ceil(BATCH);
    for round in 0..=rounds {
        for (driver, requests, _) in &mut clients {
            while driver.poll().expect("a sane device").is_some() {}
            driver.enable_interrupts();
            if round < rounds {
                add(driver, requests, scsi, write);
            }
        }
        if round < rounds {
            serve_batch(&mut channel, turns);
        }
    }
    let counter = if write { QueueCounter::Writes } else { QueueCounter::Reads };
    for (driver, _, counters) in &clients {
        assert_eq!(driver.in_flight(), 0);
        assert!(counters.get(counter) >= rounds * depth);
    }
}
