//! Random commands, in random framings, against a plain model of a disk; and what a restart does with commands that were under way.

use memory::random::Random;
use std::collections::VecDeque;

use crate::common::*;
use channel::Drain;
use device_scsi::Response;
use device_scsi::ScsiRole;
use protocol::stats::QueueCounter;

const BLOCKS: u64 = 512;

/// What a disk says to a command: status, data, residual, and whether it was an overrun.
#[derive(Debug, PartialEq)]
struct Expected {
    status: u8,
    response: u8,
    data: Vec<u8>,
    residual: usize,
}

struct Disk(Vec<u8>);

impl Disk {
    fn good(data: Vec<u8>, residual: usize, over: bool) -> Expected {
        Expected { status: 0, response: u8::from(over), data, residual }
    }

    fn bytes(&mut self, lba: u64, len: usize) -> &mut [u8] {
        &mut self.0[lba as usize * 512..][..len]
    }

    fn ask(&mut self, op: u8, lba: u64, blocks: u64, out: &[u8], room: usize) -> Expected {
        let total = out.len() + room;
        let check = Expected { status: 2, response: 0, data: Vec::new(), residual: total };
        if op != 0 && lba + blocks > BLOCKS {
            return check;
        }
        let len = blocks as usize * 512;
        match op {
            0x28 => {
                let moved = len.min(room);
                let data = self.bytes(lba, moved).to_vec();
                Disk::good(data, total - moved, len > room)
            }
            0x2a => {
                let moved = len.min(out.len()) & !511;
                self.bytes(lba, moved).copy_from_slice(&out[..moved]);
                Disk::good(Vec::new(), total - moved, len > out.len())
            }
            // VERIFY with all the data.
            0x2f => {
                let moved = len.min(out.len()) & !511;
                if self.bytes(lba, moved) != &out[..moved] {
                    return check;
                }
                Disk::good(Vec::new(), total - moved, len > out.len())
            }
            // WRITE SAME; no blocks are all up to the end.
            0x41 => {
                if out.len() != 512 {
                    return check;
                }
                let blocks = if blocks == 0 { BLOCKS - lba } else { blocks };
                for block in self.bytes(lba, blocks as usize * 512).chunks_mut(512) {
                    block.copy_from_slice(out);
                }
                Disk::good(Vec::new(), total - 512, false)
            }
            _ => Disk::good(Vec::new(), total, false),
        }
    }
}

fn random_cuts(random: &mut Random) -> Option<(Vec<usize>, Vec<usize>)> {
    if random.below(3) == 0 {
        return None;
    }
    let mut cuts = || (0..random.below(20)).map(|_| random.below(3000) as usize).collect();
    Some((cuts(), cuts()))
}

#[test]
fn random_commands_as_a_plain_disk_answers_them() {
    let client = Client::new(1);
    let one = entry(&ram(BLOCKS * 512));
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &one)])), 0);
    rig.ready(0, 0);
    let mut disk = Disk(vec![0; BLOCKS as usize * 512]);
    let mut random = Random::new(0xfeed_0123_4567_89ab);
    for _ in 0..20_000 {
        let op = [0x28, 0x28, 0x2a, 0x2a, 0x2f, 0x41, 0x00, 0x35][random.below(8) as usize];
        let (lba, blocks) = (random.below(BLOCKS + 4), random.below(24));
        let full = blocks as usize * 512;
        let odd = [0, 1, 100, 512, 700][random.below(5) as usize];
        let len = match random.below(4) {
            0 => full + odd,
            1 => full.saturating_sub(odd),
            _ if op == 0x41 => 512,
            _ => full,
        };
        let other = if random.below(8) == 0 { random.below(600) as usize } else { 0 };
        let reads = op == 0x28;
        let (out_len, room) = if reads { (other, len) } else { (len, other) };
        let out = match op {
            0x2f if lba + blocks <= BLOCKS && random.below(2) == 0 => {
                let end = (lba as usize * 512 + out_len).min(disk.0.len());
                let mut same = disk.0[lba as usize * 512..end].to_vec();
                same.resize(out_len, 0);
                same
            }
            _ => pattern(random.next(), out_len),
        };
        let mut cdb = cdb10(op, lba as u32, blocks as u16);
        match op {
            0x2f => cdb[1] = 2,
            0x00 => cdb = vec![0; 6],
            _ => {}
        }
        let expected = disk.ask(op, lba, blocks, &out, room);
        let cuts = random_cuts(&mut random);
        let answer = rig.ask(&Request { out, room, cuts, ..Request::new(0, 0, &cdb) });
        let moved = expected.data.len();
        let found = Expected {
            status: answer.status,
            response: answer.response,
            data: answer.data[..moved].to_vec(),
            residual: answer.residual as usize,
        };
        assert_eq!(found, expected, "{cdb:x?}, {out_len} out, {room} in: {answer:x?}");
        assert!(answer.data[moved..].iter().all(|byte| *byte == 0xee), "beyond what was moved");
    }
    assert_eq!(rig.count(QueueCounter::Pending), 0);
}

#[test]
fn commands_under_way_at_a_crash_are_done_again_or_refused() {
    let one = entry(&ram(1 << 20));
    let luns = map(&[(0, 0, &one)]);
    let setup = Setup { inflight: true, ..Setup::new(&luns) };
    let client = Client::new(1);
    let mut rig = client.queue(ScsiRole::Request, &setup, 0);
    rig.ready(0, 0);
    rig.stop(Drain::Ordinary);
    let data = pattern(1, 512);
    rig.add(&Request::write(0, 0, 1, data.clone()).with_id(1));
    rig.add(&Request::read(0, 0, 2, 1).with_id(2));
    let mut cdb = [0; 16];
    (cdb[0], cdb[13]) = (0x89, 1);
    rig.add(&Request { out: vec![0; 1024], ..Request::new(0, 0, &cdb) }.with_id(3));
    let reserve = [0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0];
    rig.add(&Request { out: vec![0; 24], ..Request::new(0, 0, &reserve) }.with_id(4));
    rig.add(&Request::new(0, 0, &[0x16, 0, 0, 0, 0, 0]).with_id(5));
    rig.driver.publish();
    // A process takes them all and dies.
    rig.take_and_die();
    rig.start(0);
    let mut answers: VecDeque<(u64, u8, u8)> = VecDeque::new();
    for _ in 0..5 {
        let answer = rig.wait();
        answers.push_back((answer.id, answer.response, answer.status));
    }
    answers.make_contiguous().sort_unstable();
    let reset = Response::Reset as u8;
    assert_eq!(answers, [(1, 0, 0), (2, 0, 0), (3, reset, 0), (4, reset, 0), (5, reset, 0)]);
    assert_eq!(rig.ask(&Request::read(0, 0, 1, 1)).good(), data);
    assert_eq!(rig.count(QueueCounter::Resubmitted), 5);
}

#[test]
fn control_requests_and_events_at_a_crash() {
    let client = Client::new(1);
    let one = entry(&ram(1 << 20));
    let setup = Setup { inflight: true, ..Setup::new(&map(&[(0, 0, &one)])) };
    let mut control = client.queue(ScsiRole::Control, &setup, 0);
    control.stop(Drain::Ordinary);
    let reset = [&[0, 0, 0, 0, 5, 0, 0, 0][..], &[1, 0, 0, 0, 0, 0, 0, 0], &[0; 8]].concat();
    control.add_raw(&reset, 1);
    let query = [&[1, 0, 0, 0][..], &[1, 0, 0, 0, 0, 0, 0, 0], &[0; 4]].concat();
    control.add_raw(&query, 5);
    control.driver.publish();
    control.take_and_die();
    control.start(0);
    let mut answers = [control.wait_raw(), control.wait_raw()]
        .map(|(bytes, written)| bytes[..written as usize].to_vec());
    answers.sort();
    assert_eq!(answers, [vec![0; 5], vec![Response::Reset as u8]]);
    let mut events = client.queue(ScsiRole::Event, &setup, 0);
    events.stop(Drain::Ordinary);
    events.add_raw(&[], 16);
    events.driver.publish();
    events.take_and_die();
    events.start(0);
    let event = device_scsi::event::changed(0, lun(0), 0x2a09);
    client.channels[0].post_event(events.id(), event);
    assert_eq!(events.wait_raw().0[..16], event);
}
