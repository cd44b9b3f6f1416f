//! LUN maps that change under I/O: a logical unit that is not in the map does not answer, and those that stay are not disturbed.

use memory::random::Random;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::common::*;
use block::Volume;
use channel::mailbox::Pending;
use device_scsi::{LunEntry, LunMap, ScsiRole};
use scsi::Attention;

/// Logical units that come and go; each knows its number by its content.
const UNITS: usize = 12;
const CHANGES: u64 = 100_000;
/// Changes that are asked for before the answers to them are waited for.
const AT_ONCE: u64 = 50;

fn slow(inner: Arc<dyn Volume>) -> Arc<dyn Volume> {
    delayed(inner, 20, 300, 5)
}

/// Every third unit is slow, so that commands are under way when it goes.
fn units(client: &Client) -> Vec<LunEntry> {
    let units: Vec<LunEntry> = (0..UNITS)
        .map(|number| {
            let volume = ram(64 << 10);
            entry(&if number % 3 == 0 { slow(volume) } else { volume })
        })
        .collect();
    let all: Vec<_> = units.iter().enumerate().map(|(at, each)| (0, at as u16, each)).collect();
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&map(&all)), 0);
    for number in 0..UNITS as u16 {
        rig.ready(0, number);
        rig.ask(&Request::write(0, number, 0, vec![number as u8 + 1; 512])).good();
    }
    units
}

/// Where each unit is in a map: target and logical unit number, by unit.
type Places = BTreeMap<(u8, u16), usize>;

/// A map with some of the units, each at one of a few addresses.
fn random_map(random: &mut Random, units: &[LunEntry]) -> (Places, Arc<LunMap>) {
    let mut places = Places::new();
    for unit in 0..units.len() {
        if random.below(3) > 0 {
            // A unit is at one place at a time; a place may be another unit's in the next map.
            let address = (random.below(2) as u8, [0, 1, 7, 300][random.below(4) as usize]);
            places.entry(address).or_insert(unit);
        }
    }
    let entries: Vec<_> = places.iter().map(|(at, unit)| (at.0, at.1, &units[*unit])).collect();
    let map = map(&entries);
    (places, map)
}

/// Maps that were asked for, in order, of which the first `settled` are answered.
struct History {
    maps: VecDeque<Places>,
    /// Number of the first one in `maps`.
    first: u64,
    settled: u64,
}

impl History {
    fn last(&self) -> u64 {
        self.first + self.maps.len() as u64 - 1
    }

    /// Units that an address may have led to while the maps from `from` on were in force.
    fn may_be(&self, from: u64, address: (u8, u16)) -> Vec<Option<usize>> {
        let skip = (from - self.first) as usize;
        self.maps.iter().skip(skip).map(|map| map.get(&address).copied()).collect()
    }
}

/// Checks an answer against all that may have been true between the request and now.
fn check(history: &History, from: u64, address: (u8, u16), answer: &Answer) {
    let may_be = history.may_be(from, address);
    let targets: Vec<bool> = {
        let skip = (from - history.first) as usize;
        let has = |map: &Places| map.keys().any(|at| at.0 == address.0);
        history.maps.iter().skip(skip).map(has).collect()
    };
    match (answer.response, answer.status) {
        (0, 0) => {
            let unit = usize::from(answer.data[0]) - 1;
            assert!(answer.data.iter().all(|byte| *byte == answer.data[0]));
            assert!(
                may_be.contains(&Some(unit)),
                "unit {unit} answered at {address:?}: {may_be:?}"
            );
        }
        // TASK ABORTED: it was there and went.
        (0, 0x40) => assert!(may_be.iter().any(Option::is_some), "{address:?}: {may_be:?}"),
        (0, 2) if answer.check().0 == 6 => {
            assert!(may_be.iter().any(Option::is_some), "{address:?}: {may_be:?}");
        }
        (0, 2) => {
            assert_eq!(answer.check(), LUN_NOT_SUPPORTED);
            assert!(may_be.contains(&None), "{address:?}: {may_be:?}");
        }
        (3, _) => assert!(targets.contains(&false), "{address:?}: BAD TARGET"),
        other => panic!("{other:?}: {answer:?}"),
    }
}

#[test]
fn a_masked_lun_never_answers() {
    let client = Client::new(1);
    let units = units(&client);
    let mut random = Random::new(0x1234_5678_9abc_def1);
    let mut setup = Setup::new(&map(&[]));
    setup.elements = Some(elements(40));
    setup.limits.local = 40;
    let mut rig = client.queue(ScsiRole::Request, &setup, 0);
    let mut history = History { maps: VecDeque::from([Places::new()]), first: 0, settled: 0 };
    let mut sent: BTreeMap<u64, (u64, (u8, u16))> = BTreeMap::new();
    let (mut next, mut good, mut masked, mut aborted) = (0, 0_u64, 0_u64, 0_u64);
    let mut pending: VecDeque<Pending<Result<(), String>>> = VecDeque::new();
    for _ in 0..CHANGES / AT_ONCE {
        for change in 0..AT_ONCE {
            let (places, map) = random_map(&mut random, &units);
            history.maps.push_back(places);
            pending.push_back(rig.channel().set_luns(rig.id(), map));
            if change % 5 == 0 {
                for _ in 0..random.below(8).min(rig.room() as u64) {
                    let number = [0, 1, 7, 300][random.below(4) as usize];
                    let address = (random.below(3) as u8, number);
                    next += 1;
                    rig.add(&Request::read(address.0, address.1, 0, 1).with_id(next));
                    sent.insert(next, (history.settled, address));
                }
                rig.kick();
            }
            while let Some(answer) = rig.poll() {
                let (from, address) = sent.remove(&answer.id).unwrap();
                check(&history, from, address, &answer);
                good += u64::from(answer.response == 0 && answer.status == 0);
                masked += u64::from(answer.status == 2 || answer.response == 3);
                aborted += u64::from(answer.status == 0x40);
            }
        }
        for answer in pending.drain(..) {
            answer.wait().unwrap().unwrap();
            history.settled += 1;
        }
        // What is under way may be older than the last map; what is asked from now on is not.
        let oldest = sent.values().map(|(from, _)| *from).min().unwrap_or(history.settled);
        while history.first < oldest {
            history.maps.pop_front();
            history.first += 1;
        }
        assert_eq!(history.last(), history.settled);
    }
    while !sent.is_empty() {
        let answer = rig.wait();
        let (from, address) = sent.remove(&answer.id).unwrap();
        check(&history, from, address, &answer);
    }
    assert!(good > 1000 && masked > 1000 && aborted > 10, "{good} {masked} {aborted}");
    // Nobody holds on to a unit that no map has.
    rig.channel().set_luns(rig.id(), map(&[])).wait().unwrap().unwrap();
    drop(rig);
    for unit in units {
        assert_eq!(Arc::strong_count(&unit.nexus), 1);
        assert_eq!(Arc::strong_count(unit.volume.as_ref().unwrap()), 1);
    }
}

#[test]
fn an_entry_that_stays_is_not_disturbed() {
    let client = Client::new(1);
    let (stays, goes) = (entry(&slow(ram(64 << 10))), entry(&slow(ram(64 << 10))));
    let both = map(&[(0, 0, &stays), (0, 1, &goes)]);
    let one = map(&[(0, 0, &stays)]);
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&both), 0);
    (0..2).for_each(|number| rig.ready(0, number));
    for _ in 0..50 {
        for id in 0..16 {
            rig.add(&Request::read(0, (id % 2) as u16, 0, 1).with_id(id));
        }
        rig.kick();
        rig.channel().set_luns(rig.id(), Arc::clone(&one)).wait().unwrap().unwrap();
        for _ in 0..16 {
            let answer = rig.wait();
            match (answer.id % 2, answer.response, answer.status) {
                (0, 0, 0) | (1, 0, 0 | 0x40) => {}
                (1, 0, 2) => assert_eq!(answer.check(), LUN_NOT_SUPPORTED),
                _ => panic!("{answer:?}"),
            }
        }
        rig.channel().set_luns(rig.id(), Arc::clone(&both)).wait().unwrap().unwrap();
        // The I_T nexus is the same: nothing to tell.
        rig.ask(&Request::read(0, 1, 0, 1)).good();
    }
}

#[test]
fn another_volume_behind_a_unit_is_another_entry() {
    let client = Client::new(1);
    let old = entry(&ram(64 << 10));
    let new = LunEntry { volume: Some(ram(64 << 10)), nexus: Arc::clone(&old.nexus) };
    let none = LunEntry { volume: None, nexus: Arc::clone(&old.nexus) };
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &old)])), 0);
    rig.ready(0, 0);
    rig.ask(&Request::write(0, 0, 0, vec![1; 512])).good();
    let set = |rig: &Rig, entry| {
        rig.channel().set_luns(rig.id(), map(&[(0, 0, entry)])).wait().unwrap().unwrap();
    };
    set(&rig, &new);
    old.nexus.tell(Attention::MediumChanged);
    assert_eq!(rig.ask(&Request::read(0, 0, 0, 1)).check(), (6, 0x2800));
    assert_eq!(rig.ask(&Request::read(0, 0, 0, 1)).good(), vec![0; 512]);
    set(&rig, &none);
    assert_eq!(rig.ask(&Request::read(0, 0, 0, 1)).check().0, 2, "NOT READY");
    set(&rig, &old);
    assert_eq!(rig.ask(&Request::read(0, 0, 0, 1)).good(), vec![1; 512]);
}
