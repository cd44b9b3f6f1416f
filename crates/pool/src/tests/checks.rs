//! Legs that cannot be read somewhere, and legs that differ: what clients see, what is mended, what a scrub finds.

use std::rc::Rc;

use super::disk::SECTOR;
use super::layers::{C, S, ask_for, delete, flush, snapshot};
use super::mirror::{checkpoint, read_first, shared, state, world_of};
use super::*;
use crate::format::BLOCK_BYTES;
use crate::pool::{Finding, FindingKind, Lookup, Source};

const PAGE: u64 = 4096;

/// Where 4 KiB of an LU are: PV and byte, of both legs.
fn legs(world: &World, lu: u32, at: u64) -> [(u16, u64); 2] {
    let Lookup::There { legs, count: 2 } = world.pool.lookup(part(lu, at, PAGE)) else {
        panic!("it is there twice")
    };
    legs
}

fn there(world: &World, (pv, at): (u16, u64)) -> Vec<u8> {
    Image::new(world.disks.now()).read(pv, at, PAGE as usize).unwrap()
}

fn found(kind: FindingKind, at: u64, pvs: &[u16]) -> Finding {
    Finding { kind, lu: A, at, pvs: [pvs.first().copied(), pvs.get(1).copied()] }
}

/// What a scrub finds from its beginning to its end.
fn scrub(world: &mut World) -> Vec<Finding> {
    world.pool.findings();
    let tag = ask(world, ask_for(Request::Scrub));
    assert_eq!((world.oracle.is_open(tag), world.faults.get(&tag)), (false, None));
    assert_eq!(world.pool.scrubbing(), None);
    let mut found = world.pool.findings();
    found.sort();
    found
}

/// A leg of the first 4 KiB of the first LU cannot be read.
fn with_a_bad_page(leg: usize) -> (World, [(u16, u64); 2]) {
    let mut world = world_of("three");
    ask(&mut world, write(A, 0, 12 * KIB));
    let legs = legs(&world, A, 0);
    world.pool.last_leg = leg == 1;
    world.bad = [(legs[leg].0, legs[leg].1 / PAGE)].into();
    (world, legs)
}

#[test]
fn what_a_client_cannot_read_on_one_leg_is_written_there_again() {
    for leg in [0, 1] {
        let (mut world, legs) = with_a_bad_page(leg);
        read_first(&mut world);
        world.rest();
        assert_eq!(world.bad.len(), 0, "it was written again");
        assert!(there(&world, legs[0]) == there(&world, legs[1]));
        assert_eq!(world.pool.findings(), [found(FindingKind::Repaired, 0, &[legs[leg].0])]);
        world.judge_now().unwrap();
        assert_eq!(world.pool.findings(), []);
    }
}

#[test]
fn each_leg_may_be_bad_in_another_place() {
    let (mut world, legs) = with_a_bad_page(0);
    world.bad.insert((legs[1].0, legs[1].1 / PAGE + 2));
    let tag = world.submit(Request::Read(part(A, 0, 12 * KIB)));
    world.rest();
    assert_eq!((world.oracle.is_open(tag), world.faults.get(&tag)), (false, None));
    assert_eq!(world.bad.len(), 0);
    let mut all = world.pool.findings();
    all.sort();
    let one = found(FindingKind::Repaired, 0, &[legs[0].0]);
    assert_eq!(all, [one, found(FindingKind::Repaired, 2 * PAGE, &[legs[1].0])]);
    world.judge_now().unwrap();
    // In the same place nobody has it.
    world.bad = legs.map(|(pv, at)| (pv, at / PAGE)).into();
    let tag = world.submit(Request::Read(part(A, 0, 12 * KIB)));
    world.rest();
    assert_eq!(world.faults.get(&tag), Some(&Fault::Medium));
    let mut pvs = legs.map(|(pv, _)| pv);
    pvs.sort();
    assert_eq!(scrub(&mut world), [found(FindingKind::Lost, 0, &pvs)]);
    ask(&mut world, write(A, 0, 4 * KIB));
    assert_eq!(scrub(&mut world), []);
}

#[test]
fn what_stays_bad_is_written_again_once() {
    let (mut world, legs) = with_a_bad_page(0);
    world.stays_bad = true;
    for turn in 0..3 {
        read_first(&mut world);
        world.rest();
        let told = found(FindingKind::Unreadable, 0, &[legs[0].0]);
        assert_eq!(world.pool.findings(), Vec::from_iter((turn == 0).then_some(told)));
    }
    assert_eq!(scrub(&mut world), [found(FindingKind::Unreadable, 0, &[legs[0].0])]);
    assert_eq!(state(&world, usize::from(legs[0].0)), MemberState::In);
}

/// A PV that cannot write what it cannot read is away, and what is answered meanwhile is not lost with it.
#[test]
fn a_leg_that_cannot_be_written_again_is_lost() {
    let (mut world, legs) = with_a_bad_page(0);
    read_first(&mut world);
    while !world.fail_rewrite(legs[0].0) {
        assert!(world.step());
    }
    world.rest();
    assert_eq!(state(&world, usize::from(legs[0].0)), MemberState::Stale);
    ask(&mut world, write(A, 0, 4 * KIB));
    world.judge_now().unwrap();
}

/// At each point of a repair a client writes the same block, or another part of it, and the process or the host dies: what was answered is there on both legs.
#[test]
fn no_write_is_lost_to_a_repair() {
    let mut waited = 0;
    for leg in [0, 1] {
        for point in 0..60 {
            for (at, kills) in [(0, false), (4 * KIB, false), (0, true)] {
                let (mut world, legs) = with_a_bad_page(leg);
                world.schedule = Schedule::Any;
                world.random = Random(point);
                let read = world.submit(Request::Read(part(A, 0, 4 * KIB)));
                (0..point).for_each(|_| _ = world.step());
                let tag =
                    world.submit(Request::Write { extent: part(A, at, 4 * KIB), durable: false });
                if kills {
                    (0..point % 7).for_each(|_| _ = world.step());
                    world.kill().unwrap();
                    world.rest();
                } else {
                    world.step();
                    waited += u32::from(world.oracle.is_open(tag) && !world.oracle.is_open(read));
                    world.rest();
                    assert!(!world.oracle.is_open(tag) && !world.oracle.is_open(read));
                    assert!(there(&world, legs[0]) == there(&world, legs[1]), "{point} {at}");
                }
                world.judge_now().unwrap();
            }
        }
    }
    assert!(waited > 10, "{waited}");
}

#[test]
fn a_scrub_finds_what_was_changed_on_a_leg_and_changes_nothing() {
    let mut random = Random(7);
    for leg in [0, 1] {
        let mut world = world_of("three");
        for at in [0, 200 * KIB, CHUNK_BYTES] {
            ask(&mut world, write(A, at, 64 * KIB));
        }
        assert_eq!(scrub(&mut world), []);
        let places: Vec<u64> = (0..3 * BLOCK_BYTES / PAGE)
            .map(|page| match page / 16 {
                0 => page * PAGE,
                1 => 200 * KIB + page % 16 * PAGE,
                _ => CHUNK_BYTES + page % 16 * PAGE,
            })
            .filter(|_| random.below(3) == 0)
            .collect();
        let mut told = Vec::new();
        for at in &places {
            let legs = legs(&world, A, *at);
            let (pv, byte) = legs[leg];
            // One sector of it.
            let sector = random.below(8) * SECTOR;
            let bytes = Rc::new(vec![0x5a; SECTOR]);
            world.disks.write(Write { pv, at: byte + sector as u64, bytes }, true);
            let mut pvs = legs.map(|(pv, _)| pv);
            pvs.sort();
            told.push(found(FindingKind::Differs, *at, &pvs));
        }
        let before = world.disks.now().clone();
        assert_eq!(scrub(&mut world), told);
        let differs = legs(&world, A, places[0]).map(|place| there(&world, place));
        assert!(differs[0] != differs[1], "nobody knows which one is right");
        assert!(world.disks.now().iter().all(|(page, bytes)| {
            before.get(page) == Some(bytes) || page.1 * PAGE < CHUNK_BYTES * 8
        }));
    }
}

/// Of layers that count which sectors are there.
#[test]
fn a_scrub_looks_at_what_layers_have_and_nothing_else() {
    let setup = shared().into_iter().next().unwrap();
    let mut world = World::open(setup.pages, setup.oracle, None).unwrap();
    world.rest();
    for (lu, at) in [(A, 66 * KIB), (C, 512)] {
        ask(&mut world, write(lu, at, 512));
        ask(&mut world, flush(lu));
    }
    assert_eq!(scrub(&mut world), []);
    let (mut seen, mut silent) = (0, 0);
    for lu in [A, C] {
        let at = if lu == A { 66 * KIB } else { 512 };
        let Lookup::There { legs, count: 2 } = world.pool.lookup(part(lu, at, 512)) else {
            panic!("it is there twice")
        };
        let (pv, byte) = legs[1];
        for (bytes, from) in [(512, 0), (512, 1024)] {
            let before = Image::new(world.disks.now()).read(pv, byte + from, bytes).unwrap();
            let change = |bytes: Vec<u8>| Write { pv, at: byte + from, bytes: Rc::new(bytes) };
            world.disks.write(change(vec![0x5a; bytes]), true);
            let all = scrub(&mut world);
            world.disks.write(change(before), true);
            if from == 0 {
                assert_eq!(all.len(), 1, "{all:?}");
                assert_eq!((all[0].kind, all[0].lu), (FindingKind::Differs, lu));
                assert_eq!(all[0].at, at / PAGE * PAGE);
                seen += 1;
            } else {
                assert_eq!(all, []);
                silent += 1;
            }
        }
    }
    assert_eq!((seen, silent), (2, 2));
}

/// Beside writes that follow each other, moves, snapshots, PVs that are lost and return: legs are never told to differ, and it ends.
#[test]
fn a_scrub_beside_everything_else_finds_nothing_and_ends() {
    let steps = [
        write(A, 0, 4 * KIB),
        write(A, 62 * KIB, 4 * KIB),
        write(A, CHUNK_BYTES, 4 * KIB),
        write(B, 70 * KIB, 4 * KIB),
        ask_for(Request::Zeroes(part(A, 2 * KIB, 64 * KIB))),
        ask_for(Request::Discard(part(A, 0, CHUNK_BYTES))),
        flush(A),
        move_to(1),
        move_to(2),
        checkpoint(),
        snapshot(&[A]),
        delete(S),
        resize(B, 1),
        delete(B),
        Step::Lose(0),
        Step::Lose(1),
        Step::Return,
        ask_for(Request::StopScrub),
        ask_for(Request::Scrub),
    ];
    let mut over = 0;
    for seed in 0..150 {
        let mut world = world_of(["three", "quiet", "two"][seed as usize % 3]);
        world.random = Random(seed);
        world.schedule = Schedule::Any;
        let scrub = world.submit(Request::Scrub);
        for _ in 0..6 {
            let turns = world.random.below(30);
            (0..turns).for_each(|_| _ = world.step());
            let which = world.random.below(steps.len());
            match steps[which] {
                // Writes that race with each other may leave either on each leg here.
                Step::Ask(request) => {
                    let tag = world.submit(request);
                    while request != Request::Scrub && world.oracle.is_open(tag) && world.step() {}
                }
                Step::Lose(pv) => world.lose(pv),
                Step::Return => _ = world.bring_back(),
                _ => unreachable!(),
            }
        }
        world.rest();
        assert_eq!((world.oracle.is_open(scrub), world.pool.scrubbing()), (false, None), "{seed}");
        over += u32::from(!world.faults.contains_key(&scrub));
        assert_eq!(world.pool.findings(), [], "{seed}");
        // What it cannot do without is there again; its own blocks were not written, perhaps.
        if world.lost.is_some_and(|lost| !world.pool.is_away(lost)) {
            world.bring_back();
            world.rest();
        }
        if world.pool.stopped().is_none() {
            world.judge_now().unwrap();
        }
    }
    assert!(over > 70, "{over}");
}

#[test]
fn one_scrub_at_a_time_and_one_that_is_stopped_ends() {
    let mut world = world_of("three");
    ask(&mut world, write(A, 0, 64 * KIB));
    let first = world.submit(Request::Scrub);
    let second = world.submit(Request::Scrub);
    assert_eq!(world.faults.get(&second), Some(&Fault::Busy));
    let planned = world.pool.scrubbing().unwrap().planned;
    assert!(planned > 0);
    while world.pool.scrubbing().unwrap().over == 0 {
        assert!(world.step());
    }
    world.submit(Request::StopScrub);
    world.rest();
    assert_eq!(world.faults.get(&first), Some(&Fault::Cancelled));
    assert_eq!(scrub(&mut world), []);
}
