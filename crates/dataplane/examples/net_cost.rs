//! Counts what one frame costs from one client's ring through the switch into the ring of another on the same channel.
//!
//! One measured call serves what the sender has put into its ring: a turn that takes the batch, judges and forwards each frame, copies it into
//! the receiver's buffers, and publishes both. Arguments: rounds, then `frame=N` bytes of a frame. `cargo xtask test --only cost` runs it under
//! callgrind.
//!
//! With `apart` the clients are on a thread of their own, so that what they write and read has to come from another CPU as it does in earnest, and the time of
//! a frame is printed: the median of all batches, and of the best quarter. Callgrind counts no misses of caches; this shows whether fewer are waited for.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

use channel::device::{Device, Making, Presence};
use channel::single::Single;
use channel::{Adapter, ChannelConfig, Command, QueueResources};
use dataplane::devices::{AnyHandler, Behind};
use device_net::{NetDevice, config::feature};
use memory::{IoBuf, clock};
use protocol::message::{AdapterSpec, DeviceSpec};
use protocol::stats::{QueueCounter, QueueStats, StatsRegion};
use rustix::event::EventfdFlags;
use spec::EthernetSpec;
use vring::GuestAddr;
use vring::driver::{DriverConfig, DriverMemory, DriverQueue, Segment};

/// A turn takes as many from a ring.
const BATCH: u64 = 32;
/// In front of a frame (virtio 1.3, clause 5.1.6).
const HEADER_BYTES: usize = 12;
/// VIRTIO_F_VERSION_1, VIRTIO_F_IN_ORDER, VIRTIO_RING_F_EVENT_IDX.
const FEATURES: u64 = 1 << 32 | 1 << 35 | 1 << 29 | feature::MRG_RXBUF;

/// A queue and its other end.
struct Client {
    driver: DriverQueue,
    /// One for each frame of a batch.
    buffers: Vec<Segment>,
    /// The same as the client sees them.
    parts: Vec<IoBuf>,
    counters: QueueStats,
    _memory: Arc<DriverMemory>,
}

impl Client {
    /// Gives the device all buffers, which it has none of.
    fn add(&mut self, out: bool) {
        while self.driver.poll().expect("a sane device").is_some() {}
        for (token, buffer) in (0..).zip(&self.buffers) {
            let both = if out { (&[*buffer][..], &[][..]) } else { (&[][..], &[*buffer][..]) };
            self.driver.add(both.0, both.1, token, false).expect("room");
        }
        self.driver.publish();
    }

    /// Does what a driver does with frames: it reads the headers of those that came, and writes those of the ones that it sends.
    fn touch(&self, out: bool) {
        let mut header = [0; HEADER_BYTES];
        for part in &self.parts {
            match out {
                true => part.write(0, &header),
                false => part.read(0, &mut header),
            }
            std::hint::black_box(&mut header);
        }
    }
}

/// The times of batches, each served after the clients on another thread had their turn.
fn apart(
    channel: &mut Single<AnyHandler>,
    [mut sender, mut receiver]: [Client; 2],
    rounds: u64,
) -> Vec<u64> {
    let (turn, mut times) = (&AtomicU64::new(0), Vec::new());
    let wait_for = |wanted| {
        while turn.load(Acquire) != wanted {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        let clients = move || {
            for round in 0..rounds {
                wait_for(2 * round);
                receiver.touch(false);
                receiver.add(false);
                sender.touch(true);
                sender.add(true);
                turn.store(2 * round + 1, Release);
            }
        };
        scope.spawn(clients);
        for round in 0..rounds {
            wait_for(2 * round + 1);
            let begun = clock::ticks();
            serve_batch(channel);
            times.push(clock::to_ns(clock::ticks() - begun));
            turn.store(2 * round + 2, Release);
        }
    });
    times
}

/// The measured function: a turn of a channel that has a batch to send.
#[inline(never)]
fn serve_batch(channel: &mut Single<AnyHandler>) {
    assert!(channel.turn());
}

/// A queue of a card, running.
fn client(
    channel: &mut Single<AnyHandler>,
    stats: &Arc<StatsRegion>,
    (adapter, device): &(Arc<Adapter>, Arc<NetDevice>),
    number: u16,
    frame: &[u8],
) -> Client {
    let region = [(GuestAddr(1 << 30), 4 << 20)];
    let memory = Arc::new(DriverMemory::with_regions(&region).expect("memory"));
    let driver = DriverConfig { size: 128, event_idx: true, indirect_max: 0, in_order: true };
    let driver = DriverQueue::new(&memory, driver).expect("a queue");
    let table = Arc::new(memory.table().expect("the same memory"));
    let ring = driver.device_config().start(table);
    let ring = ring.map_err(|(_, error)| error).expect("a sound ring");
    let fd = || rustix::event::eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd");
    let counters = stats.queue(&adapter.name, number).expect("a slot");
    let queue = QueueResources {
        ring,
        number,
        adapter: Arc::clone(adapter),
        kick: fd(),
        call: Some(fd()),
        error: None,
        commands: Command::pool(128),
        stats: counters,
    };
    let behind = device.behind(number, FEATURES).expect("memory");
    channel.start_queue(queue, Behind::Ethernet(behind)).expect("a queue");
    let buffer = |_| {
        let bytes = HEADER_BYTES + frame.len();
        let part = memory.alloc(bytes, 64).expect("room");
        part.buf.write(HEADER_BYTES, frame);
        ((part.guest, u32::try_from(bytes).expect("small")), part.buf)
    };
    let (buffers, parts) = (0..BATCH).map(buffer).unzip();
    Client { driver, buffers, parts, counters, _memory: memory }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds: u64 = arguments.first().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let bytes = arguments.iter().find_map(|it| it.strip_prefix("frame=")?.parse().ok());
    let stats = Arc::new(StatsRegion::create(1).expect("memory"));
    let config =
        ChannelConfig { index: 0, cpu: None, files_max: 64, poll_us_max: Some(0), activity: None };
    let mut channel = Single::new(&config, stats.channel(0)).expect("a channel");
    let service = NetDevice::service(Box::new(|_| Vec::new())).expect("memory");
    let mac = |last| [2, 0, 0, 0, 0, last];
    let card = |last: u8| {
        let name = format!("ent{last}");
        let adapter = Arc::new(Adapter::new(&name, Box::new(|_, _| ())));
        let making = Making { adapter: &adapter, service: &service, stats: &stats };
        let device = DeviceSpec::Ethernet(EthernetSpec::on("cost", mac(last)));
        let spec = AdapterSpec { queues: 2, ..AdapterSpec::new(name, "", device) };
        let device = NetDevice::new(&spec, &(), &making).expect("a card");
        device.negotiated(FEATURES);
        device.presence(0, Presence::Runs);
        (adapter, device)
    };
    let frame = |from, to| {
        let mut frame = [&mac(to)[..], &mac(from), &[0x08, 0x00]].concat();
        frame.resize(bytes.unwrap_or(64), 0);
        frame
    };
    let (one, two) = (card(1), card(2));
    let [mut back, mut sender] =
        [0, 1].map(|number| client(&mut channel, &stats, &one, number, &frame(1, 2)));
    let [mut receiver, mut other] =
        [0, 1].map(|number| client(&mut channel, &stats, &two, number, &frame(2, 1)));
    // Both are known to the switch from what they send, and get nothing before.
    for (from, to) in [(&mut sender, &mut receiver), (&mut other, &mut back)] {
        to.add(false);
        from.add(true);
        channel.turn();
    }
    let counters = receiver.counters;
    let before = counters.get(QueueCounter::RxFrames);
    if arguments.iter().any(|it| it == "apart") {
        let mut times = apart(&mut channel, [sender, receiver], rounds);
        times.sort_unstable();
        let [half, quarter] = [2, 8].map(|part| times[times.len() / part] / BATCH);
        println!("{half} ns a frame, {quarter} in the best quarter");
        assert_eq!(counters.get(QueueCounter::RxFrames) - before, rounds * BATCH);
        return;
    }
    for _ in 0..rounds {
        receiver.add(false);
        sender.add(true);
        serve_batch(&mut channel);
    }
    assert_eq!(counters.get(QueueCounter::RxFrames) - before, rounds * BATCH);
}
