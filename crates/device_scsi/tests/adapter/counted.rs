//! What is counted for each LUN: what its client asked for, by every queue and channel, and nothing once it is gone.

use memory::random::Random;
use std::collections::BTreeMap;

use crate::common::*;
use channel::Drain;
use device_scsi::{LunMap, ScsiRole};
use protocol::stats::{Latency, QueueCounter, StatsReader};
use std::sync::Arc;

fn reader(client: &Client) -> StatsReader {
    StatsReader::open(client.stats.file()).unwrap()
}

/// Reads, bytes read, writes, bytes written, others, times in the server; by target and LUN, all channels together.
type Counts = BTreeMap<(u8, u16), [u64; 6]>;

fn counted(reader: &StatsReader) -> Counts {
    let mut all = Counts::new();
    for lun in reader.snapshot().luns {
        let get = |counter| lun.counted.get(counter);
        let now = [
            get(QueueCounter::Reads),
            get(QueueCounter::ReadBytes),
            get(QueueCounter::Writes),
            get(QueueCounter::WrittenBytes),
            get(QueueCounter::ControlRequests),
            lun.counted.latency(Latency::Server).count(),
        ];
        let sum = all.entry((lun.target, lun.lun)).or_default();
        sum.iter_mut().zip(now).for_each(|(sum, now)| *sum += now);
    }
    all
}

/// The snapshot once the channels have accounted for what was answered: they publish first.
fn settled(reader: &StatsReader, commands: u64) -> Counts {
    loop {
        let now = counted(reader);
        if now.values().map(|counts| counts[5]).sum::<u64>() >= commands {
            return now;
        }
        std::thread::yield_now();
    }
}

fn two_luns() -> Arc<LunMap> {
    map(&[(0, 0, &entry(&ram(1 << 20))), (3, 300, &entry(&ram(1 << 20)))])
}

const PLACES: [(u8, u16); 2] = [(0, 0), (3, 300)];

#[test]
fn two_queues_and_two_luns_are_counted_as_they_were_asked() {
    for channels in [1, 2] {
        let client = Client::new(channels);
        let setup = Setup::new(&two_luns());
        let last = channels as usize - 1;
        let mut rigs = [0, last].map(|channel| client.queue(ScsiRole::Request, &setup, channel));
        let reader = reader(&client);
        for (target, number) in PLACES {
            rigs[0].ready(target, number);
        }
        // One unit attention and one TEST UNIT READY each.
        let mut asked: Counts = PLACES.iter().map(|place| (*place, [0, 0, 0, 0, 1, 2])).collect();
        let mut random = Random::new(91);
        for _ in 0..2000 {
            let rig = &mut rigs[random.below(2) as usize];
            let place = PLACES[random.below(2) as usize];
            let blocks = 1 + random.below(8);
            let now = asked.get_mut(&place).unwrap();
            now[5] += 1;
            match random.below(3) {
                0 => {
                    rig.ask(&Request::read(place.0, place.1, 0, blocks as u16)).good();
                    (now[0], now[1]) = (now[0] + 1, now[1] + blocks * 512);
                }
                1 => {
                    let data = vec![7; blocks as usize * 512];
                    rig.ask(&Request::write(place.0, place.1, 8, data)).good();
                    (now[2], now[3]) = (now[2] + 1, now[3] + blocks * 512);
                }
                _ => {
                    rig.ask(&Request::new(place.0, place.1, &cdb10(0x35, 0, 0))).good();
                    now[4] += 1;
                }
            }
        }
        let commands = asked.values().map(|counts| counts[5]).sum();
        assert_eq!(settled(&reader, commands), asked);
        let slots = reader.snapshot().luns;
        assert_eq!(slots.len(), 2 * channels as usize, "one for each channel");
        // What is for no LUN counts for none, also after a command of the same head that was.
        assert_ne!(rigs[0].ask(&Request::read(3, 301, 0, 1)).status, 0);
        assert_ne!(rigs[0].ask(&Request::read(9, 0, 0, 1)).response, 0);
        rigs[0].add_raw(&[0; 3], 108);
        rigs[0].kick();
        rigs[0].wait_raw();
        rigs[0].stop(Drain::SkipWaits);
        assert_eq!(counted(&reader), asked);
    }
}

#[test]
fn errors_count_for_the_lun_that_had_them() {
    let client = Client::new(1);
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&two_luns()), 0);
    rig.ready(0, 0);
    rig.ready(3, 300);
    rig.ask(&Request::read(3, 300, 1 << 20, 1)).check();
    rig.stop(Drain::SkipWaits);
    let luns = reader(&client).snapshot().luns;
    let checks: Vec<_> = luns
        .iter()
        .map(|lun| (lun.target, lun.counted.get(QueueCounter::CheckConditions)))
        .collect();
    assert_eq!(checks, [(0, 1), (3, 2)]);
    assert!(luns.iter().all(|lun| lun.counted.get(QueueCounter::UnitAttentions) == 1));
}

#[test]
fn a_lun_that_goes_gives_its_slot_back() {
    let client = Client::new(1);
    let stays = entry(&ram(1 << 20));
    let both = map(&[(0, 0, &stays), (0, 1, &entry(&ram(1 << 20)))]);
    let mut rigs = [(); 2].map(|()| client.queue(ScsiRole::Request, &Setup::new(&both), 0));
    let reader = reader(&client);
    rigs[0].ready(0, 0);
    let luns = || -> Vec<u16> { reader.snapshot().luns.iter().map(|lun| lun.lun).collect() };
    assert_eq!(luns(), [0, 1]);
    let one = map(&[(0, 0, &stays)]);
    for (rig, left) in rigs.iter().zip([2, 1]) {
        rig.channel().set_luns(rig.id(), Arc::clone(&one)).wait().unwrap().unwrap();
        assert_eq!(luns().len(), left, "the last queue gives it back");
    }
    assert_eq!(luns(), [0]);
    // What was counted stays when the client goes, and goes on when it is back.
    for rig in &mut rigs {
        rig.setup.luns = Arc::clone(&one);
        rig.stop(Drain::SkipWaits);
    }
    let before = counted(&reader);
    assert_eq!(before[&(0, 0)][4], 1);
    rigs[0].start(0);
    rigs[0].ask(&Request::new(0, 0, &[0; 6])).good();
    rigs[0].stop(Drain::SkipWaits);
    assert_eq!(counted(&reader)[&(0, 0)][4], 2);
    assert_eq!(luns(), [0]);
}

#[test]
fn a_lun_without_a_slot_is_served_all_the_same() {
    let client = Client::new(1);
    let taken = (0..).take_while(|lun| client.stats.lun("other", 0, *lun, 0).is_some()).count();
    assert_eq!(taken, protocol::stats::LUN_SLOTS_MAX);
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&two_luns()), 0);
    rig.ready(3, 300);
    rig.ask(&Request::read(3, 300, 0, 1)).good();
    assert!(reader(&client).snapshot().luns.iter().all(|lun| lun.counted.adapter == "other"));
}
