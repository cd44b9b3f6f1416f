//! Isolation of networks as a figure: two clients that exchange frames, beside one that does not behave, all on one channel.
//!
//! One thread plays all clients and looks at their rings in turn. The two send frames of 64 bytes to each other as fast as they are served. So does the third: it offers what it
//! has as often as it gets its buffers back, which is what a flood is. A channel serves its clients in fair turns, so anybody who floods has a part of it; what is to be seen is
//! whether one who breaks rules has more than one who keeps them. So `beside` is held against `good`: a third client that offers frames as often, of the same length or, of those
//! that no card may send, the longest that it may. Who is not held to what the server gives back, since it sends nothing, is held against one that costs this side as much.
//! `quiet`, where the third client only listens, shows what any flood takes, and is not judged.

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use memory::random::Random;
use partition::blk::SlotPlan;
use partition::net::{HEADER_BYTES, Pair, feature};
use partition::session::{Device, Session, SessionOptions, StartPlan};
use protocol::message::{AdapterSpec, Request};
use rustix::event::EventfdFlags;
use spec::EthernetSpec;

use crate::figure::{Figure, Round, Series};
use crate::net::{mac, socket};
use crate::ours::{DataPlane, Plan};
use crate::process;
use crate::stage::{self, Settled};
use anyhow::{Context as _, Result};

/// Descriptors of each ring.
pub(crate) const RING: u16 = 1024;
/// Buffers that a client has posted, and their bytes: more than all others can send between two looks.
const POSTED: u16 = 240;
const BUFFER_BYTES: u32 = 2048;
const SMALL: (u16, u32) = (POSTED, BUFFER_BYTES);
/// Frames that each of the two has on their way, and the third.
const OUT: usize = 96;
const OUT_OTHER: usize = 64;
/// Bytes of the frames that are counted, and of others: that is how they are told apart.
const COUNTED: u32 = 64;
const OTHER: u32 = 72;
/// The longest that a card with an MTU of 1500 may send.
const LONGEST: u32 = 1514;
/// One that is longer, with its header in a buffer of the third client's.
const GIANT: u32 = 65_000;
const SLOT_BYTES: u32 = 66_048;
/// VLANs that all cards are in beside their own.
const VIDS: std::ops::RangeInclusive<u16> = 2..=200;
/// Looks at all rings between two at the clock.
const LOOKS: u32 = 64;
const ALL: [u8; 6] = [0xff; 6];
/// A client that sends to this one, or is it.
const CONFEDERATE: u8 = 3;

/// What the third client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bad {
    /// Posts no buffers, while a quarter of what the two send is for all.
    NoBuffers,
    /// A source of its own for each frame.
    Macs,
    /// Destinations that nobody knows.
    Strangers,
    /// Any VLAN, and a source of its own for each frame.
    Vlans,
    /// Less than a frame, and less than a header.
    Runts,
    /// Longer than the MTU, and not to be cut.
    Giants,
    /// Headers that are not true.
    Headers,
    /// To be cut into as many segments as it may.
    Segments,
    /// Chains that go round.
    Endless,
    /// The same of its buffers, while a quarter of what the two send is for all.
    EndlessBuffers,
    /// Frames in pieces of two bytes.
    Pieces,
    /// Kicks for nothing.
    Kicks,
}

impl Bad {
    const ALL: [(Bad, &'static str, &'static str); 12] = [
        (Bad::NoBuffers, "no-buffers", "posts no buffers, and gets what is for all"),
        (Bad::Macs, "macs", "has a new MAC address in each frame"),
        (Bad::Strangers, "strangers", "sends to MAC addresses that nobody has"),
        (Bad::Vlans, "vlans", "has any VLAN tag, and a new MAC address, in each frame"),
        (Bad::Runts, "runts", "sends less than a frame"),
        (Bad::Giants, "giants", "sends frames of 65,000 bytes on an MTU of 1500"),
        (Bad::Headers, "headers", "lies in the header before each frame"),
        (Bad::Segments, "segments", "has each frame cut into 1,000 segments"),
        (Bad::Endless, "endless", "sends chains that have no end"),
        (Bad::EndlessBuffers, "endless-buffers", "posts buffers that have no end"),
        (Bad::Pieces, "pieces", "sends frames in 756 pieces"),
        (Bad::Kicks, "kicks", "kicks without end"),
    ];
}

impl Bad {
    /// It is what the third client does when it is sent to.
    fn is_about_buffers(self) -> bool {
        matches!(self, Bad::NoBuffers | Bad::EndlessBuffers)
    }
}

/// What the third client is in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Third {
    Quiet,
    Good,
    Bad,
}

/// Names and titles of the cases.
pub(crate) fn cases() -> Vec<(String, String, Bad)> {
    let case = |(bad, word, what)| {
        let title = format!("two clients that exchange frames, beside one that {what}");
        (format!("net-neighbours-{word}"), title, bad)
    };
    Bad::ALL.map(case).into()
}

/// Plays all three in turn, on one data plane.
pub(crate) fn run(settled: &Settled, bad: Bad) -> Result<Vec<Series>> {
    let folder = stage::folder()?;
    let cpus = [settled.server_cpu];
    let mut plane = DataPlane::start(&settled.server, folder.path(), &cpus, &Plan::null())?;
    for port in 0..=CONFEDERATE {
        let mut device = EthernetSpec::on("net", mac(port));
        if bad == Bad::Vlans {
            device.vids = VIDS.collect();
        }
        let adapter = AdapterSpec {
            socket_mode: 0o600,
            queues: 2,
            queue_size: RING,
            ..AdapterSpec::new(format!("ent{port}"), socket(folder.path(), port), device)
        };
        plane.done(&Request::PutAdapter(adapter))?;
    }
    let mut series = [
        (Third::Quiet, Series::new("quiet", "the third client listens")),
        (Third::Good, Series::new("good", "it offers as much, and keeps all rules")),
        (Third::Bad, Series::new("beside", "it does not behave")),
    ];
    for _ in 0..settled.rounds {
        for (third, series) in &mut series {
            let round = measure(settled, folder.path(), plane.pid(), bad, *third);
            series.rounds.push(round.with_context(|| series.label.clone())?);
        }
    }
    Ok(series.map(|(_, series)| series).into())
}

/// One round.
fn measure(
    settled: &Settled,
    folder: &std::path::Path,
    server: u32,
    bad: Bad,
    third: Third,
) -> Result<Round> {
    let mut play = Play::new(folder, bad, third)?;
    play.go_on(settled.warm_up)?;
    let (before, used) = (play.tally, process::usage(server)?);
    let passed = play.go_on(settled.duration)?.as_secs_f64();
    let cpu_ns = process::usage(server)?.cpu_ns - used.cpu_ns;
    let frames = (play.tally.frames - before.frames) as f64;
    let others = (play.tally.others - before.others) as f64;
    Ok(Round::from([
        (Figure::FramesPerS, frames / passed),
        (Figure::ServerCpuUs, cpu_ns as f64 / 1000.0 / frames),
        (Figure::CpuPercent, cpu_ns as f64 / 1e9 / passed * 100.0),
        (Figure::OthersPerS, others / passed),
    ]))
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    /// That the two got from each other.
    frames: u64,
    /// What the third did: frames that it got back, or kicks.
    others: u64,
}

/// A client.
pub(crate) struct Party {
    /// Ends when this is dropped.
    _session: Session,
    pub(crate) pair: Pair,
}

impl Party {
    /// With so many buffers of so many bytes each way, and without these features.
    pub(crate) fn new(
        folder: &std::path::Path,
        port: u8,
        (slots, slot_bytes): (u16, u32),
        without: u64,
    ) -> Result<Party> {
        let options = SessionOptions {
            device: Device::Net,
            mask_features: without,
            ..SessionOptions::default()
        };
        let mut session = Session::connect(&socket(folder, port), &options)?;
        let slots = SlotPlan { slots, data_bytes: slot_bytes, data_segments: 1, indirect: false };
        let plan = StartPlan { queues: 2, queue_size: RING, threads: 1, slots };
        let pair = session.start_net(&plan)?.into_iter().next().context("no pair of queues")?;
        Ok(Party { _session: session, pair })
    }

    /// Takes what has come, and posts its buffers again; how many frames are counted.
    fn receive(&mut self) -> Result<u64> {
        let (mut came, mut counted) = (false, 0);
        while let Some(bytes) = self.pair.rx.skim()? {
            came = true;
            counted += u64::from(bytes == COUNTED);
        }
        if came {
            self.pair.rx.post(usize::MAX, BUFFER_BYTES)?;
        }
        Ok(counted)
    }
}

/// All clients, and what they send.
struct Play {
    two: [Party; 2],
    other: Party,
    confederate: Option<Party>,
    bad: Bad,
    third: Third,
    /// What the two send to each other, and to all.
    frames: [[[u8; 14]; 2]; 2],
    number: u64,
    random: Random,
    /// Kicked where nobody looks.
    own: File,
    tally: Tally,
}

/// An Ethernet header.
fn ethernet(to: [u8; 6], from: [u8; 6]) -> [u8; 14] {
    let mut head = [0; 14];
    head[..6].copy_from_slice(&to);
    head[6..12].copy_from_slice(&from);
    head[12..].copy_from_slice(&[0x88, 0xb5]);
    head
}

impl Play {
    fn new(folder: &std::path::Path, bad: Bad, third: Third) -> Result<Play> {
        let mut two = [Party::new(folder, 0, SMALL, 0)?, Party::new(folder, 1, SMALL, 0)?];
        let mut other = Party::new(folder, 2, (POSTED, SLOT_BYTES), 0)?;
        // One for whom frames are cut.
        let without = feature::GUEST_TSO4 | feature::GUEST_TSO6;
        let mut confederate = match bad == Bad::Segments {
            true => Some(Party::new(folder, CONFEDERATE, SMALL, without)?),
            false => None,
        };
        for party in two.iter_mut().chain(&mut confederate) {
            party.pair.rx.post(usize::MAX, BUFFER_BYTES)?;
        }
        if let Some(confederate) = &mut confederate {
            // It is known, so what is for it goes to nobody else.
            let head = ethernet(mac(2), mac(CONFEDERATE));
            confederate.pair.tx.add_head(&[0; HEADER_BYTES], &head, OTHER)?;
            confederate.pair.tx.publish()?;
        }
        if third != Third::Bad || !bad.is_about_buffers() {
            other.pair.rx.post(usize::MAX, BUFFER_BYTES)?;
        }
        let frames =
            [0, 1].map(|from| [ethernet(mac(1 - from), mac(from)), ethernet(ALL, mac(from))]);
        let own =
            rustix::event::eventfd(0, EventfdFlags::NONBLOCK).context("cannot make an event")?;
        let own = File::from(own);
        let (number, random, tally) = (0, Random::new(1), Tally::default());
        Ok(Play { two, other, confederate, bad, third, frames, number, random, own, tally })
    }

    /// For so long; how long it was.
    fn go_on(&mut self, time: Duration) -> Result<Duration> {
        let begin = Instant::now();
        loop {
            for _ in 0..LOOKS {
                self.look()?;
            }
            let passed = begin.elapsed();
            if passed >= time {
                return Ok(passed);
            }
        }
    }

    /// Looks at all rings once.
    fn look(&mut self) -> Result<()> {
        // What came back was received before: nobody is sent more than it has buffers for.
        for party in &mut self.two {
            party.pair.tx.reap()?;
        }
        self.tally.others += self.other.pair.tx.reap()? as u64;
        for party in &mut self.two {
            self.tally.frames += party.receive()?;
        }
        match (self.third, self.bad) {
            (Third::Bad, Bad::NoBuffers) => {}
            (Third::Bad, Bad::EndlessBuffers) => {
                self.other.pair.rx.skim()?;
                self.other.pair.rx.post_endless(BUFFER_BYTES)?;
            }
            _ => drop(self.other.receive()?),
        }
        if let Some(confederate) = &mut self.confederate {
            confederate.receive()?;
        }
        let to_all = self.bad.is_about_buffers();
        for (party, [to_one, to_many]) in self.two.iter_mut().zip(&self.frames) {
            let tx = &mut party.pair.tx;
            let before = tx.outstanding();
            while tx.outstanding() < OUT {
                self.number += 1;
                let head = if to_all && self.number.is_multiple_of(4) { to_many } else { to_one };
                tx.add_head(&[0; HEADER_BYTES], head, COUNTED)?;
            }
            if before < OUT {
                tx.publish()?;
            }
        }
        match (self.third, self.bad) {
            (Third::Quiet, _) | (_, Bad::NoBuffers | Bad::EndlessBuffers) => {}
            (Third::Good, Bad::Kicks) => {
                self.tally.others += 2;
                for _ in 0..2 {
                    self.own.write_all(&1_u64.to_ne_bytes())?;
                }
            }
            (Third::Bad, Bad::Kicks) => {
                self.tally.others += 2;
                self.other.pair.tx.kick()?;
                self.other.pair.rx.kick()?;
            }
            (third, _) => {
                let before = self.other.pair.tx.outstanding();
                while self.other.pair.tx.outstanding() < OUT_OTHER {
                    if !self.offer(third == Third::Bad)? {
                        break;
                    }
                }
                if self.other.pair.tx.outstanding() > before {
                    self.other.pair.tx.publish()?;
                }
            }
        }
        Ok(())
    }

    /// An address by chance.
    fn any_mac(&mut self) -> [u8; 6] {
        let [a, b, c, d, e, ..] = self.random.next().to_le_bytes();
        [2, a | 1, b, c, d, e]
    }

    /// The third client adds a frame; whether it had room.
    fn offer(&mut self, bad: bool) -> Result<bool> {
        const PLAIN: [u8; HEADER_BYTES] = [0; HEADER_BYTES];
        self.number += 1;
        let number = self.number;
        let to = mac((number % 2) as u8);
        let head = ethernet(to, mac(2));
        let any = self.any_mac();
        let tx = &mut self.other.pair.tx;
        Ok(match (self.bad, bad) {
            (Bad::Macs, true) => tx.add_head(&PLAIN, &ethernet(to, any), OTHER)?,
            (Bad::Strangers, _) => {
                let to = if bad { any } else { ALL };
                tx.add_head(&PLAIN, &ethernet(to, mac(2)), OTHER)?
            }
            (Bad::Vlans, _) => {
                let vid = if bad { 1 + number as u16 % 4095 } else { *VIDS.start() };
                let from = if bad { any } else { mac(2) };
                let mut tagged = [0; 18];
                tagged[..14].copy_from_slice(&ethernet(to, from));
                tagged[12..14].copy_from_slice(&[0x81, 0]);
                tagged[14..16].copy_from_slice(&vid.to_be_bytes());
                tagged[16..].copy_from_slice(&[0x88, 0xb5]);
                tx.add_head(&PLAIN, &tagged, OTHER)?
            }
            (Bad::Runts, true) => match number % 2 {
                0 => tx.add(&PLAIN, &head[..(number / 2 % 14) as usize])?,
                _ => tx.add(&PLAIN[..(1 + number / 2 % 11) as usize], &[])?,
            },
            (Bad::Giants, _) => tx.add_head(&PLAIN, &head, if bad { GIANT } else { LONGEST })?,
            (Bad::Headers, true) => {
                let (header, packet) = lie(number, &head);
                tx.add_head(&header, &packet, OTHER + 54)?
            }
            (Bad::Headers, false) => {
                let (header, packet) = packet(&head, OTHER + 40, 0);
                tx.add_head(&header, &packet, OTHER + 54)?
            }
            (Bad::Segments, _) => {
                let segment = if bad { 65 } else { 1448 };
                let head = ethernet(mac(CONFEDERATE), mac(2));
                let (header, packet) = packet(&head, GIANT, segment);
                tx.add_head(&header, &packet, GIANT + 14)?
            }
            (Bad::Endless, true) => {
                let bytes = [&PLAIN[..], &head, &[0; 58]].concat();
                tx.add_endless(&bytes, 2)?
            }
            (Bad::Pieces, true) => {
                let bytes = [&PLAIN[..], &head, &[0; 1486]].concat();
                tx.add_pieces(&bytes, 756)?
            }
            (Bad::Pieces, false) => tx.add_head(&PLAIN, &head, 1500)?,
            _ => tx.add_head(&PLAIN, &head, OTHER)?,
        })
    }
}

/// A TCP packet of so many bytes with its checksum left out, to be cut into segments of so many if that is not 0; and its header.
fn packet(head: &[u8; 14], bytes: u32, segment: u16) -> ([u8; HEADER_BYTES], [u8; 54]) {
    let mut header = [0; HEADER_BYTES];
    // VIRTIO_NET_HDR_F_NEEDS_CSUM: from the start of TCP, to 16 bytes behind that.
    header[0] = 1;
    header[6..8].copy_from_slice(&34_u16.to_le_bytes());
    header[8..10].copy_from_slice(&16_u16.to_le_bytes());
    if segment > 0 {
        // VIRTIO_NET_HDR_GSO_TCPV4.
        header[1] = 1;
        header[2..4].copy_from_slice(&54_u16.to_le_bytes());
        header[4..6].copy_from_slice(&segment.to_le_bytes());
    }
    let mut packet = [0; 54];
    packet[..14].copy_from_slice(head);
    packet[12..14].copy_from_slice(&[8, 0]);
    packet[14] = 0x45;
    packet[16..18].copy_from_slice(&u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes());
    packet[20..34].copy_from_slice(&[0x40, 0, 64, 6, 0, 0, 192, 0, 2, 3, 192, 0, 2, 1]);
    let words = packet[14..34].chunks_exact(2);
    let sum: u32 = words.map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
    // 20 bytes of header; ACK.
    packet[46..48].copy_from_slice(&[0x50, 0x10]);
    (header, packet)
}

/// The same with one of several headers that are not true of it.
fn lie(number: u64, head: &[u8; 14]) -> ([u8; HEADER_BYTES], [u8; 54]) {
    let (mut header, packet) = packet(head, OTHER + 40, 20);
    let word = |header: &mut [u8; HEADER_BYTES], at: usize, value: u16| {
        header[at..at + 2].copy_from_slice(&value.to_le_bytes());
    };
    match number / 2 % 7 {
        // The checksum begins beyond the frame.
        0 => word(&mut header, 6, 60_000),
        // It is stored beyond it.
        1 => word(&mut header, 8, 60_000),
        // Segments of nothing.
        2 => word(&mut header, 4, 0),
        // To be cut, and no checksum to be filled in.
        3 => header[0] = 0,
        // No such way to cut.
        4 => header[1] = 0x7f,
        // A way that the packet is none for.
        5 => header[1] = 4,
        // The checksum is to go where guards look.
        _ => {
            header[1] = 0;
            word(&mut header, 6, 14);
            word(&mut header, 8, 10);
        }
    }
    word(&mut header, 10, 60_000);
    (header, packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trouble_is_a_case() {
        let cases = cases();
        assert_eq!(cases.len(), Bad::ALL.len());
        assert_eq!(cases[0].0, "net-neighbours-no-buffers");
    }

    #[test]
    fn frames_that_are_counted_are_as_long_as_no_others() {
        for other in [OTHER, OTHER + 54, LONGEST, GIANT, 1500] {
            assert_ne!(other, COUNTED);
        }
    }

    #[test]
    fn a_lie_is_of_a_packet_whose_own_checksum_is_right() {
        for number in 0..14 {
            let (_, packet) = lie(number, &ethernet(ALL, mac(2)));
            let words = packet[14..34].chunks_exact(2);
            let sum: u32 = words.map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        }
    }
}
