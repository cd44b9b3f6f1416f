//! What comes in between, while something of a quiet chunk is read.

use super::*;
use crate::format::SUMS_APART;

/// A record of checksums that is damaged on each leg, and nothing is known of it.
fn damaged() -> World {
    let mut world = quiet();
    ask(&mut world, move_sums(2));
    ask(&mut world, move_sums(1));
    for at in [100, 100 + 2 * SUMS_APART] {
        for (pv, byte) in legs(&world, SPACE, at) {
            world.disks.turn_bit(pv, byte, 0);
        }
    }
    world.kill().unwrap();
    world.rest();
    world
}

/// The LU goes, or that part of it, while its checksums are read, and they are damaged.
#[test]
fn an_lu_that_goes_while_its_checksums_are_read_is_not_said_to_change() {
    for (gone, at) in [(delete(A), 0), (resize(A, 1), 2 * CHUNK_BYTES)] {
        for seed in 0..200 {
            let mut world = damaged();
            (world.schedule, world.random) = (Schedule::Any, Random(seed));
            let read = world.submit(Request::Read(part(A, at, 4 * KIB)));
            for _ in 0..seed % 8 {
                world.step();
            }
            // Its record waits for a block of the journal that is being written.
            world.submit(Request::Zeroes(part(OTHER, 0, CHUNK_BYTES)));
            assert_eq!(fault(&mut world, gone), None, "{gone:?}, {seed}");
            assert!(!world.oracle.is_open(read) && world.pool.is_serving(), "{gone:?}, {seed}");
            look(&mut world);
            world.judge_now().unwrap();
        }
    }
}

/// A checkpoint forgets a chunk with which nobody works, while a client reads it.
#[test]
fn a_checkpoint_while_a_client_reads_lets_no_wrong_data_through() {
    for leg in [0, 1] {
        let mut world = quiet();
        let (pv, byte) = legs(&world, A, 0)[leg];
        world.disks.turn_bit(pv, byte, 0);
        world.pool.last_leg = leg == 1;
        let tag = world.submit(Request::Read(part(A, 0, 4 * KIB)));
        let held = world.hold_reads();
        assert!(!held.is_empty());
        ask(&mut world, checkpoint());
        world.let_go(held);
        world.rest();
        let found = world.found(tag);
        world.oracle.judge(super::super::oracle::Death::Process, A, 0, &found).unwrap();
        assert_eq!(world.pool.findings().len(), 1, "it is written again");
    }
}

/// A record of checksums differs on its legs: a scrub finds which one is damaged, writes it again, and says nothing of data.
#[test]
fn a_scrub_mends_checksums() {
    for (leg, byte) in [0, 1].into_iter().flat_map(|leg| [0, 100, 65_599].map(|at| (leg, at))) {
        let mut world = quiet();
        ask(&mut world, move_sums(2));
        ask(&mut world, move_sums(1));
        let at = byte + 2 * SUMS_APART;
        let (pv, place) = legs(&world, SPACE, at)[leg];
        world.disks.turn_bit(pv, place, 0);
        world.kill().unwrap();
        world.rest();
        scrub(&mut world);
        assert_eq!(scrub(&mut world), [], "it is the same now");
        // It holds: what is changed is found.
        read(&mut world, 2 * CHUNK_BYTES, 4 * KIB).unwrap();
        world.judge_now().unwrap();
    }
    // Nobody has changed any for a while, and it is not made the same when the pool is opened.
    for leg in [0, 1] {
        let mut world = quiet();
        let (pv, place) = sums_at_rest(&mut world)[leg];
        world.disks.turn_bit(pv, place + 100, 0);
        let (lu, pvs) = (A, [Some(pv), None]);
        let repaired = Finding { kind: FindingKind::Repaired, lu, at: 0, pvs };
        assert_eq!(scrub(&mut world), [repaired]);
        assert_eq!(scrub(&mut world), []);
        reads_are_right(&mut world);
    }
    // On both: they are made anew.
    let mut world = quiet();
    for (bit, (pv, place)) in sums_at_rest(&mut world).into_iter().enumerate() {
        world.disks.turn_bit(pv, place + 100, bit as u8);
    }
    assert_eq!(scrub(&mut world), []);
    assert!(world.pool.active_chunks() > 0);
    look(&mut world);
    look(&mut world);
    assert_eq!((scrub(&mut world), world.pool.active_chunks()), (vec![], 0));
    reads_are_right(&mut world);
}

/// Where the checksums of the first chunk are, which nobody works with.
fn sums_at_rest(world: &mut World) -> Vec<(u16, u64)> {
    ask(world, move_sums(2));
    ask(world, move_sums(1));
    let places = legs(world, SPACE, 0);
    look(world);
    assert_eq!((places.len(), world.pool.active_chunks()), (2, 0));
    places
}

/// What could not be read while checksums were made, and can be again, has some later.
#[test]
fn what_is_mended_while_checksums_are_made_gets_some() {
    for stays in [false, true] {
        let mut world = quiet();
        ask(&mut world, write(A, 0, 4 * KIB));
        let (pv, byte) = legs(&world, A, 4 * KIB)[1];
        world.bad.insert((pv, byte / PAGE));
        world.stays_bad = stays;
        look(&mut world);
        look(&mut world);
        let kind = if stays { FindingKind::Unreadable } else { FindingKind::Repaired };
        let found = world.pool.findings();
        assert_eq!(found.iter().map(|it| it.kind).collect::<Vec<_>>(), [kind], "told once");
        assert_eq!(world.pool.active_chunks(), usize::from(stays));
    }
}

/// What cannot be made leaves a pool as it is.
#[test]
fn what_is_refused_leaves_older_programs_a_pool() {
    let mut world = at_rest(super::super::setups(), "empty");
    assert_eq!(fault(&mut world, create(1)), Some(Fault::NoLegs));
    assert_eq!(world.pool.superblock().features[0] & SUMS, 0);
    let mut world = pool([0, 1, 1], 9);
    let thick = Request::CreateSummed { chunks: 1000, thick: true, tier: 0, asked: 0 };
    for request in [thick, Request::CreateSummed { chunks: 0, thick: false, tier: 0, asked: 0 }] {
        assert_eq!(fault(&mut world, ask_for(request)), Some(Fault::NoSpace));
        assert_eq!(world.pool.superblock().features[0] & SUMS, 0);
    }
}

/// A place that no leg had, and that was written anew, is watched as any other.
#[test]
fn what_was_lost_and_is_written_anew_is_mended_again() {
    let mut world = quiet();
    for (bit, (pv, byte)) in legs(&world, A, 0).into_iter().enumerate() {
        world.disks.turn_bit(pv, byte, bit as u8);
    }
    assert_eq!(read(&mut world, 0, 4 * KIB), Err(Fault::Medium));
    assert_eq!(world.pool.findings()[0].kind, FindingKind::Lost);
    ask(&mut world, write(A, 0, 4 * KIB));
    look(&mut world);
    look(&mut world);
    assert_eq!(world.pool.active_chunks(), 0);
    read(&mut world, 0, 4 * KIB).unwrap();
    let (pv, byte) = legs(&world, A, 0)[0];
    world.disks.turn_bit(pv, byte, 3);
    reads_are_right(&mut world);
    let pvs = [Some(pv), None];
    let repaired = Finding { kind: FindingKind::Repaired, lu: A, at: 0, pvs };
    assert_eq!(world.pool.findings(), [repaired]);
}
