//! Two channels, whose turns come in any order: a frame for a channel that has no turn waits with its sender, and none is lost or doubled.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use channel::device::{Device, Making, Presence};
use channel::single::Single;
use channel::{Adapter, ChannelConfig, Command, QueueResources};
use proptest::prelude::*;
use protocol::message::{AdapterSpec, DeviceSpec};
use protocol::stats::{QueueCounter, QueueStats, StatsRegion};
use rustix::event::EventfdFlags;
use spec::EthernetSpec;
use vring::GuestAddr;
use vring::driver::{DriverConfig, DriverMemory, DriverQueue, Segment};

use crate::config::feature;
use crate::network::Network;
use crate::patience::PATIENCE_NS;
use crate::{INBOX_FRAMES, NetDevice, NetHandler, Networks};

/// VIRTIO_F_VERSION_1 and VIRTIO_F_IN_ORDER.
pub(super) const FEATURES: u64 = 1 << 32 | 1 << 35 | feature::MRG_RXBUF;
const RING: u16 = 256;
pub(super) const HEADER_BYTES: usize = 12;
const FRAME_BYTES: usize = 64;
/// Where a frame has its number.
const NUMBER_AT: usize = 14;
/// Longer than any test takes.
const HOUR_NS: u64 = 3_600_000_000_000;

pub(super) fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

/// A queue's other end, with a buffer for each descriptor.
pub(super) struct Client {
    pub(super) driver: DriverQueue,
    pub(super) buffers: Vec<(Segment, memory::IoBuf)>,
    /// Those that the device has not.
    idle: VecDeque<u64>,
    kick: File,
    pub(super) stats: QueueStats,
    _memory: Arc<DriverMemory>,
}

impl Client {
    pub(super) fn publish(&mut self) {
        if self.driver.publish() {
            self.kick.write_all(&1_u64.to_ne_bytes()).unwrap();
        }
    }

    /// Posts so many buffers, or as many as it has.
    fn post(&mut self, most: usize) {
        for _ in 0..most {
            let Some(token) = self.idle.pop_front() else { break };
            let segment = self.buffers[token as usize].0;
            self.driver.add(&[], &[segment], token, false).unwrap();
        }
        self.publish();
    }

    /// The numbers of what has come.
    fn receive(&mut self) -> Vec<u32> {
        let mut numbers = Vec::new();
        while let Some(done) = self.driver.poll().unwrap() {
            let mut bytes = [0; 4];
            self.buffers[done.token as usize].1.read(HEADER_BYTES + NUMBER_AT, &mut bytes);
            numbers.push(u32::from_ne_bytes(bytes));
            self.idle.push_back(done.token);
        }
        numbers
    }

    /// Takes back what was sent.
    fn reap(&mut self) {
        while let Some(done) = self.driver.poll().unwrap() {
            self.idle.push_back(done.token);
        }
    }

    /// Sends a frame with that number, if its ring has room for one.
    fn send(&mut self, from: u8, to: u8, number: u32) -> bool {
        self.reap();
        let Some(token) = self.idle.pop_front() else { return false };
        let (segment, buf) = self.buffers[token as usize];
        let mut frame = [&mac(to)[..], &mac(from), &[0x88, 0xb5]].concat();
        frame.extend(number.to_ne_bytes());
        frame.resize(FRAME_BYTES, 0);
        buf.fill(0);
        buf.write(HEADER_BYTES, &frame);
        self.driver.add(&[segment], &[], token, false).unwrap();
        self.publish();
        true
    }
}

/// Card 1 sends, on channel 0, to card 2 on channel 1, and to card 3 on its own.
struct Rig {
    channels: [Single<NetHandler>; 2],
    sender: Client,
    receivers: [Client; 2],
    network: Arc<Network>,
    sent: [Vec<u32>; 2],
    got: [Vec<u32>; 2],
    next: u32,
    devices: Vec<Arc<NetDevice>>,
    _service: Networks,
}

impl Rig {
    fn new() -> Rig {
        let stats = Arc::new(StatsRegion::create(2).unwrap());
        let service = NetDevice::service(Box::new(|_| Vec::new())).unwrap();
        let mut channels = [0, 1].map(|index| channel(index, &stats));
        let mut devices = Vec::new();
        let mut client = |card: u8, queue: u16, channel: usize| {
            let how = (FEATURES, FRAME_BYTES);
            let (client, device) =
                start(&mut channels[channel], &stats, &service, (card, queue), how);
            devices.push(device);
            client
        };
        let (sender, other, near) = (client(1, 1, 0), client(2, 0, 1), client(3, 0, 0));
        let network = service.named("net");
        network.patience_ns.store(HOUR_NS, Relaxed);
        let mut rig = Rig {
            channels,
            sender,
            receivers: [other, near],
            network,
            sent: Default::default(),
            got: Default::default(),
            next: 0,
            devices,
            _service: service,
        };
        // All know where they are.
        for (number, device) in (1..).zip(&rig.devices) {
            device.announce(mac(number)).unwrap();
        }
        rig.receivers.iter_mut().for_each(|client| client.post(4));
        rig.rest();
        assert!(rig.got.iter().all(|got| !got.is_empty()));
        rig.got = Default::default();
        rig
    }

    /// Sends so many frames, as far as the ring has room.
    fn send(&mut self, to: usize, frames: usize) {
        for _ in 0..frames {
            if !self.sender.send(1, to as u8 + 2, self.next) {
                break;
            }
            self.sent[to].push(self.next);
            self.next += 1;
        }
    }

    fn turn(&mut self, channel: usize) -> bool {
        let worked = self.channels[channel].turn();
        for (client, got) in self.receivers.iter_mut().zip(&mut self.got) {
            got.extend(client.receive());
        }
        worked
    }

    /// The sender's channel alone has turns.
    fn turns_of_one(&mut self, turns: usize) {
        for _ in 0..turns {
            self.turn(0);
        }
    }

    /// Turns of both until nothing happens any more.
    fn rest(&mut self) {
        let mut quiet = 0;
        while quiet < 4 {
            let worked = [0, 1].map(|channel| self.turn(channel));
            quiet = if worked == [false; 2] { quiet + 1 } else { 0 };
        }
    }

    fn count(&self, counter: QueueCounter) -> u64 {
        let all = self.receivers.iter().map(|client| client.stats.get(counter)).sum::<u64>();
        all + self.sender.stats.get(counter)
    }

    /// Frames of which the sender has yet to hear that they are sent.
    fn out(&mut self) -> usize {
        self.sender.reap();
        usize::from(RING) - self.sender.idle.len()
    }
}

pub(super) fn channel(index: u32, stats: &StatsRegion) -> Single<NetHandler> {
    let config =
        ChannelConfig { index, cpu: None, files_max: 64, poll_us_max: Some(0), activity: None };
    Single::new(&config, stats.channel(index as usize)).unwrap()
}

/// A card with these features on network `net`, and one queue of it, with room for a frame of so many bytes in each buffer.
pub(super) fn start(
    channel: &mut Single<NetHandler>,
    stats: &Arc<StatsRegion>,
    service: &Networks,
    (card, number): (u8, u16),
    (features, frame_bytes): (u64, usize),
) -> (Client, Arc<NetDevice>) {
    let name = format!("ent{card}");
    let adapter = Arc::new(Adapter::new(&name, Box::new(|_, _| ())));
    let making = Making { adapter: &adapter, service, stats };
    let device = DeviceSpec::Ethernet(EthernetSpec::on("net", mac(card)));
    let spec = AdapterSpec { queues: 2, ..AdapterSpec::new(name, "", device) };
    let device = NetDevice::new(&spec, &(), &making).unwrap();
    device.negotiated(features);
    device.presence(0, Presence::Runs);
    let memory = Arc::new(DriverMemory::with_regions(&[(GuestAddr(1 << 30), 4 << 20)]).unwrap());
    let config = DriverConfig { size: RING, event_idx: false, indirect_max: 0, in_order: true };
    let driver = DriverQueue::new(&memory, config).unwrap();
    let table = Arc::new(memory.table().unwrap());
    let ring = driver.device_config().start(table).map_err(|(_, error)| error).unwrap();
    let kick: OwnedFd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let ours = File::from(kick.try_clone().unwrap());
    let slot = stats.queue(&adapter.name, number).unwrap();
    let queue = QueueResources {
        ring,
        number,
        adapter,
        kick,
        call: None,
        error: None,
        commands: Command::pool(RING),
        stats: slot,
    };
    let behind = device.behind(number, features).unwrap();
    channel.start_queue(queue, behind).unwrap();
    let buffer = |_| {
        let bytes = HEADER_BYTES + frame_bytes;
        let part = memory.alloc(bytes, 64).unwrap();
        ((part.guest, bytes as u32), part.buf)
    };
    let buffers = (0..RING).map(buffer).collect();
    let idle = (0..u64::from(RING)).collect();
    (Client { driver, buffers, idle, kick: ours, stats: slot, _memory: memory }, device)
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Send { to: usize, frames: usize },
    Turn { channel: usize },
    Post { to: usize, buffers: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..2_usize, 1..100_usize).prop_map(|(to, frames)| Step::Send { to, frames }),
        4 => (0..2_usize).prop_map(|channel| Step::Turn { channel }),
        1 => (0..2_usize, 1..80_usize).prop_map(|(to, buffers)| Step::Post { to, buffers }),
    ];
    prop::collection::vec(step, 1..60)
}

fn is_in_order(numbers: &[u32]) -> bool {
    numbers.windows(2).all(|pair| pair[0] < pair[1])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With buffers all that was sent arrives, in its order, whichever channel has its turns when. Without, each frame arrives or is counted.
    #[test]
    fn what_a_channel_without_a_turn_gets_waits_and_arrives(
        steps in steps(),
        has_buffers in any::<bool>(),
    ) {
        let mut rig = Rig::new();
        if has_buffers {
            rig.receivers.iter_mut().for_each(|client| client.post(usize::MAX));
        }
        for step in steps {
            match step {
                Step::Send { to, frames } => rig.send(to, frames),
                Step::Turn { channel } => {
                    rig.turn(channel);
                }
                Step::Post { to, buffers } => rig.receivers[to].post(buffers),
            }
            if has_buffers {
                // Each has more than are on their way.
                rig.receivers.iter_mut().for_each(|client| client.post(usize::MAX));
            }
        }
        rig.rest();
        rig.receivers.iter_mut().for_each(|client| client.post(usize::MAX));
        rig.rest();
        prop_assert_eq!(rig.count(QueueCounter::DropFullRing), 0);
        let lost = rig.count(QueueCounter::DropRxNoBuffer);
        prop_assert!(!has_buffers || lost == 0, "{} were lost", lost);
        let sent: usize = rig.sent.iter().map(Vec::len).sum();
        let got: usize = rig.got.iter().map(Vec::len).sum();
        prop_assert_eq!(got as u64 + lost, sent as u64);
        for (got, sent) in rig.got.iter().zip(&rig.sent) {
            prop_assert!(is_in_order(got));
            prop_assert!(got.iter().all(|number| sent.contains(number)));
            prop_assert!(!has_buffers || got == sent);
        }
    }
}

/// So many heads of a batch are left with their sender while one waits, and the others in the ring.
#[test]
fn a_sender_waits_for_a_channel_without_a_turn_and_goes_on_when_that_has_looked() {
    let mut rig = Rig::new();
    rig.receivers.iter_mut().for_each(|client| client.post(usize::MAX));
    rig.send(0, 100);
    rig.send(1, 10);
    rig.turns_of_one(10);
    assert_eq!(rig.out(), 110 - INBOX_FRAMES);
    assert_eq!((rig.got[0].len(), rig.got[1].len()), (0, 0), "those behind it wait as well");
    assert_eq!(rig.sender.stats.get(QueueCounter::WaitBackEndFull), 1);
    rig.rest();
    assert_eq!((rig.out(), &rig.got), (0, &rig.sent));
    assert_eq!(rig.count(QueueCounter::DropFullRing), 0);
}

/// A channel that stands still costs one wait, and what others get goes on.
#[test]
fn nobody_waits_twice_for_a_channel_that_stands_still() {
    let mut rig = Rig::new();
    rig.network.patience_ns.store(0, Relaxed);
    rig.receivers.iter_mut().for_each(|client| client.post(usize::MAX));
    for _ in 0..3 {
        rig.send(0, 50);
        rig.send(1, 10);
        rig.turns_of_one(10);
    }
    assert_eq!(rig.got[1], rig.sent[1]);
    assert_eq!(rig.count(QueueCounter::DropFullRing), 150 - INBOX_FRAMES as u64);
    // It stands still, so that nobody has patience with it, until it has looked.
    rig.network.patience_ns.store(HOUR_NS, Relaxed);
    rig.send(0, 5);
    rig.send(1, 5);
    rig.turns_of_one(10);
    assert_eq!(rig.got[1], rig.sent[1]);
    assert_eq!(rig.count(QueueCounter::DropFullRing), 155 - INBOX_FRAMES as u64);
    assert_eq!(rig.count(QueueCounter::WaitBackEndFull), 0);
    rig.rest();
    let before = rig.got[0].len();
    assert_eq!(before, INBOX_FRAMES);
    rig.send(0, 100);
    rig.turns_of_one(10);
    assert_eq!(rig.count(QueueCounter::WaitBackEndFull), 1);
    rig.receivers[0].post(usize::MAX);
    rig.rest();
    assert_eq!(rig.got[0].len(), before + 100);
}

/// A frame that has waited long enough is lost, and its sender goes on.
#[test]
fn who_has_waited_long_enough_goes_on() {
    let mut rig = Rig::new();
    rig.network.patience_ns.store(PATIENCE_NS, Relaxed);
    rig.receivers.iter_mut().for_each(|client| client.post(usize::MAX));
    rig.send(0, INBOX_FRAMES + 30);
    rig.turns_of_one(3);
    let sender = rig.sender.stats;
    while sender.get(QueueCounter::DropFullRing) < 30 {
        rig.turn(0);
    }
    assert_eq!(sender.get(QueueCounter::WaitBackEndFull), 1);
    assert_eq!(sender.get(QueueCounter::TxFrames), INBOX_FRAMES as u64 + 30);
    rig.rest();
    assert_eq!(rig.got[0].len(), INBOX_FRAMES);
}

/// A frame for several of which one has no room waits for that one, and nobody gets it twice.
#[test]
fn a_frame_for_all_that_has_waited_comes_once() {
    let mut rig = Rig::new();
    rig.receivers.iter_mut().for_each(|client| client.post(usize::MAX));
    for _ in 0..100 {
        assert!(rig.sender.send(1, 0xff, rig.next));
        rig.next += 1;
    }
    rig.turns_of_one(10);
    assert_eq!(rig.out(), 100 - INBOX_FRAMES);
    rig.rest();
    let all: Vec<u32> = (0..100).collect();
    assert_eq!(rig.got, [all.clone(), all]);
    assert_eq!(rig.count(QueueCounter::DropFullRing), 0);
}

/// An uplink whose interface takes no frames looks all the while, for other reasons: nobody waits for it anew.
#[test]
fn who_can_take_nothing_goes_on_standing_still() {
    let network = Networks::default().named("net");
    let port = network.join("uplink", 1);
    let pair = &port.pairs[0];
    pair.make_inbox().unwrap();
    let inbox = pair.inbox().unwrap();
    let mut parcels: Vec<_> = std::iter::from_fn(|| inbox.free.pop()).collect();
    assert_eq!(parcels.len(), INBOX_FRAMES);
    for (took, has_room) in [(false, false), (true, false), (false, true), (true, true)] {
        let room = parcels.pop().filter(|_| has_room);
        room.into_iter().for_each(|parcel| assert!(inbox.free.push(parcel).is_ok()));
        pair.stands_still.store(true, Relaxed);
        pair.goes_on(took);
        assert_eq!(pair.stands_still.load(Relaxed), !took && !has_room, "{took} {has_room}");
        drop(inbox.free.pop());
    }
}
