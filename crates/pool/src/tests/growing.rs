//! LUs that share what they hold grow.

use super::coalesce::COALESCE;
use super::layers::{
    C, S, alphabet, ask_for, assert_keeps, delete, flush, pool, rollback, setup, snapshot, world_of,
};
use super::world::read_all;
use super::*;
use crate::choose::{GROWN, LAYERS};
use crate::pool::Fault;

const DETACH_C: Step = Step::Ask(Request::Detach { lu: C });
/// Behind the end that all have in the setups.
const BEYOND: u64 = CHUNK_BYTES + 62 * KIB;

fn known() -> Known {
    let checkpoint = ask_for(Request::Checkpoint);
    let (beyond_a, beyond_c) = (write(A, BEYOND, 4 * KIB), write(C, BEYOND, 4 * KIB));
    vec![
        ("shared", vec![resize(A, 2), beyond_a, flush(A), checkpoint]),
        ("above", vec![resize(A, 2), beyond_a, rollback(A, S), beyond_a, flush(A)]),
        ("above", vec![resize(C, 2), beyond_c, flush(C), Step::Kill, resize(C, 3)]),
        // A snapshot of what has grown, and one of before.
        ("above", vec![resize(A, 2), beyond_a, snapshot(&[A, C]), beyond_a, rollback(A, S)]),
        ("above", vec![resize(A, 2), snapshot(&[A]), beyond_a, delete(S), delete(C), COALESCE]),
        ("above", vec![snapshot(&[A]), resize(A, 2), beyond_a, flush(A), delete(S), COALESCE]),
        // While it is detached, and coalesced.
        ("above", vec![DETACH_C, resize(C, 2), beyond_c, flush(C), Step::Kill]),
        ("above", vec![resize(C, 2), beyond_c, DETACH_C, flush(C), checkpoint]),
        ("above", vec![delete(C), delete(S), COALESCE, resize(A, 2), beyond_a, flush(A)]),
        ("above", vec![resize(A, 2), delete(C), delete(S), beyond_a, COALESCE, flush(A)]),
        // What lies beneath a clone has the size of an LU that is gone.
        ("above", vec![delete(A), resize(C, 2), beyond_c, delete(S), COALESCE, flush(C)]),
        ("full", vec![delete(C), resize(A, 2), beyond_a, flush(A), resize(A, 3)]),
        ("mirrored", vec![resize(A, 2), beyond_a, snapshot(&[A]), beyond_a, flush(A), checkpoint]),
    ]
}

#[test]
fn no_crash_loses_what_grows_above_snapshots() {
    let own = [resize(A, 2), resize(C, 2), resize(C, 3), COALESCE, DETACH_C];
    let beyond = [write(A, BEYOND, 4 * KIB), write(C, BEYOND, 4 * KIB), write(A, BEYOND, 512)];
    assert_keeps(known(), &[&own[..], &beyond, &alphabet()].concat(), 4);
}

/// What an LU holds in its first bytes and behind its old end.
fn holds(world: &World, lu: u32) -> [bool; 2] {
    let (_, found) = read_all(Image::new(world.disks.now()), None, None).unwrap();
    [0, CHUNK_BYTES].map(|chunk| {
        let there = |at: u64| (chunk..chunk + CHUNK_BYTES).contains(&at);
        let mut runs = found.iter().filter(|(of, at, _)| *of == lu && there(*at));
        runs.any(|(.., bytes)| bytes.iter().any(|byte| *byte != 0))
    })
}

#[test]
fn an_lu_with_snapshots_grows_and_what_they_have_does_not() {
    let mut world = world_of("above");
    assert_eq!(world.pool.superblock().features[0], LAYERS);
    let fault = |world: &mut World, step| {
        let tag = ask(world, step);
        world.faults.remove(&tag)
    };
    for lu in [A, C] {
        assert_eq!(fault(&mut world, write(lu, BEYOND, 4 * KIB)), Some(Fault::Range));
        assert_eq!(fault(&mut world, resize(lu, 2)), None);
        assert_eq!(fault(&mut world, write(lu, BEYOND, 4 * KIB)), None);
        assert_eq!(fault(&mut world, flush(lu)), None);
        assert_eq!(holds(&world, lu), [true; 2]);
    }
    assert_eq!(world.pool.superblock().features[0], LAYERS | GROWN);
    assert_eq!([A, C, S].map(|lu| world.pool.chunks_in(lu)), [2, 2, 1]);
    // It goes back to what it held, and not to its size: no client's disk gets smaller.
    assert_eq!(fault(&mut world, rollback(A, S)), None);
    assert_eq!(world.pool.chunks_in(A), 2);
    assert_eq!(holds(&world, A), [true, false]);
    assert_eq!(fault(&mut world, resize(A, 1)), Some(Fault::Shares));
    assert_eq!(fault(&mut world, resize(A, 2)), None);
    // And in the end, all of it is in their own spaces.
    for step in [write(A, BEYOND, 4 * KIB), DETACH_C, delete(S), COALESCE] {
        assert_eq!(fault(&mut world, step), None, "{step:?}");
    }
    assert!(!world.pool.shares(A) && !world.pool.shares(C));
    assert_eq!([A, C].map(|lu| holds(&world, lu)), [[true; 2]; 2]);
}

/// What a snapshot has beyond the end of its LU would come up if that grew.
#[test]
fn an_lu_that_became_smaller_grows_before_it_goes_back() {
    let mut world = world_of("above");
    for step in [resize(C, 2), write(C, BEYOND, 4 * KIB), snapshot(&[C]), DETACH_C, resize(C, 1)] {
        let tag = ask(&mut world, step);
        assert_eq!(world.faults.get(&tag), None, "{step:?}");
    }
    let made = world.pool.snapshots().last().unwrap().snapshot;
    let refused = ask(&mut world, rollback(C, made));
    assert_eq!(world.faults.get(&refused), Some(&Fault::Smaller));
    ask(&mut world, resize(C, 2));
    assert_eq!(holds(&world, C), [true, false], "what was cut off");
    let back = ask(&mut world, rollback(C, made));
    assert_eq!(world.faults.get(&back), None);
    assert_eq!(holds(&world, C), [true; 2]);
}

/// What a thick LU may still be given is set aside wherever it is written to, or it does not grow.
#[test]
fn a_thick_lu_above_a_snapshot_grows_where_there_is_room_for_all_of_it() {
    let mut world = pool([0; 3], 7);
    let create = ask_for(Request::Create { chunks: 1, thick: true, tier: 0, asked: 0 });
    setup(&mut world, "", &[create, write(A, 0, 4 * KIB), snapshot(&[A])]);
    let tier = |world: &World| world.pool.tiers()[0];
    let before = tier(&world);
    let tag = ask(&mut world, resize(A, 2));
    assert_eq!(world.faults.get(&tag), None);
    // 4,096 parts and 2,000 slots in a container: three, where there were two.
    assert_eq!(tier(&world).set_aside, before.set_aside + 1);
    let tag = ask(&mut world, resize(A, 9));
    assert_eq!(world.faults.get(&tag), Some(&Fault::NoSpace));
    let parts = (0..2 * CHUNK_BYTES).step_by(crate::PART_BYTES as usize);
    let extents = parts.map(|at| part(A, at, 512));
    for extent in extents {
        world.submit(Request::Write { extent, durable: false });
    }
    world.rest();
    assert_eq!(
        (world.faults.len(), world.pool.paused()),
        (1, 0),
        "but for the one that is refused"
    );
}

/// Whenever it grows beside a snapshot, one waits for the other.
#[test]
fn a_snapshot_and_growth_wait_for_each_other() {
    for steps in 0..60 {
        let mut world = world_of("above");
        let grows = world.submit(Request::Resize { lu: A, chunks: 2 });
        (0..steps).for_each(|_| _ = world.step());
        let Step::Ask(request) = snapshot(&[A, C]) else { panic!("a request") };
        let snapshots = world.submit(request);
        world.rest();
        let faults = [grows, snapshots].map(|tag| world.faults.get(&tag).copied());
        assert_eq!(faults, [None; 2], "after {steps} steps");
        ask(&mut world, write(A, BEYOND, 4 * KIB));
        assert_eq!(world.faults.len(), 0);
    }
}
