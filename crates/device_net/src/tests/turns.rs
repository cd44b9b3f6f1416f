//! What clients of a network can make of little: how much of it a turn has.

use std::sync::Arc;

use channel::device::Device;
use channel::single::Single;
use protocol::stats::{QueueCounter, StatsRegion};

use super::pressure::{Client, FEATURES, HEADER_BYTES, channel, mac, start};
use crate::config::feature;
use crate::{NetDevice, NetHandler};

const FRAME_BYTES: usize = 4014;
/// Payload of a segment, and in how many the 3,960 bytes of a frame are cut.
const SEGMENT: u16 = 8;
const PIECES: u64 = 495;
/// Behind Ethernet, IPv4 and TCP.
const HEADERS: usize = 54;

/// Clients of a network with one channel.
struct Rig {
    channel: Single<NetHandler>,
    sender: Client,
    receiver: Client,
    _devices: [Arc<NetDevice>; 2],
}

impl Rig {
    /// Card 1 sends, with these features beside the usual ones; card 2 receives.
    fn new(sends: u64) -> Rig {
        let stats = Arc::new(StatsRegion::create(1).unwrap());
        let service = NetDevice::service(Box::new(|_| Vec::new())).unwrap();
        let mut channel = channel(0, &stats);
        let mut client = |card: u8, queue: u16, features: u64| {
            start(&mut channel, &stats, &service, (card, queue), (features, FRAME_BYTES))
        };
        let (sender, one) = client(1, 1, FEATURES | sends);
        let (receiver, other) = client(2, 0, FEATURES);
        for (number, device) in [(1, &one), (2, &other)] {
            device.announce(mac(number)).unwrap();
        }
        Rig { channel, sender, receiver, _devices: [one, other] }
    }

    /// Frames of so many bytes that begin with this.
    fn send(&mut self, frames: usize, begin: &[u8], bytes: usize) {
        for token in 0..frames {
            let ((guest, _), buf) = self.sender.buffers[token];
            buf.write(0, begin);
            let segment = (guest, (HEADER_BYTES + bytes) as u32);
            self.sender.driver.add(&[segment], &[], token as u64, false).unwrap();
        }
        self.sender.publish();
    }

    fn taken(&self) -> u64 {
        self.sender.stats.get(QueueCounter::CommandsReceived)
    }
}

#[test]
fn frames_that_are_cut_into_many_pieces_leave_others_their_turn() {
    // Who sends may leave the cutting; who gets it takes none uncut.
    let mut rig = Rig::new(feature::CSUM | feature::HOST_TSO4);
    let mut header = [0; HEADER_BYTES];
    // The checksum from the start of TCP, 16 bytes behind that; TCP over IPv4.
    (header[0], header[1]) = (1, 1);
    header[4..6].copy_from_slice(&SEGMENT.to_le_bytes());
    header[6..8].copy_from_slice(&34_u16.to_le_bytes());
    header[8..10].copy_from_slice(&16_u16.to_le_bytes());
    let mut packet = [&mac(2)[..], &mac(1), &[8, 0, 0x45, 0]].concat();
    packet.extend((FRAME_BYTES as u16 - 14).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2]);
    packet.resize(HEADERS, 0);
    packet[46] = 0x50;
    rig.send(200, &[&header[..], &packet].concat(), FRAME_BYTES);
    // Nobody knows what is in them before the first have been sent.
    while rig.taken() == 0 {
        rig.channel.turn();
    }
    for turn in 0..50 {
        let before = rig.taken();
        rig.channel.turn();
        let pieces = (rig.taken() - before) * PIECES;
        assert!((1..=512 + PIECES).contains(&pieces), "{pieces} pieces in turn {turn}");
    }
}

#[test]
fn buffers_without_an_end_are_followed_once_in_a_turn() {
    let mut rig = Rig::new(0);
    let buffers = rig.receiver.buffers[..200].to_vec();
    for (token, (segment, _)) in (0..).zip(buffers) {
        let head = rig.receiver.driver.add(&[], &[segment], token, false).unwrap();
        rig.receiver.driver.make_endless(head);
    }
    rig.receiver.publish();
    let frame = [&[0; HEADER_BYTES][..], &mac(2), &mac(1), &[0x88, 0xb5]].concat();
    rig.send(200, &frame, 64);
    let lost = |rig: &Rig| rig.receiver.stats.get(QueueCounter::DropGuestMemory);
    let (mut turns, mut bad) = (0, 0);
    while rig.taken() < 200 || lost(&rig) < 200 {
        rig.channel.turn();
        turns += 1;
        let now = rig.receiver.stats.get(QueueCounter::BadChains);
        assert!(now - bad <= 2, "{} chains in turn {turns}", now - bad);
        bad = now;
        assert!(turns < 100, "{} frames are lost", lost(&rig));
    }
    // Each is counted, beside the cards' own announcements, and what it lacked was looked at.
    assert!(bad > 0 && (200..=202).contains(&lost(&rig)), "{bad} chains, {} frames", lost(&rig));
}
