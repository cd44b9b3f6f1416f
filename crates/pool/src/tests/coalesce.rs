//! Layers that are coalesced and LUs that are detached, while others work and between crashes.

use super::layers::{
    C, S, alphabet, ask_for, assert_found, assert_keeps, delete, flush, move_layer, pool, rollback,
    setup, snapshot, used, world_of,
};
use super::world::read_all;
use super::*;
use crate::pool::{Coalescing, Fault};

pub(super) const COALESCE: Step = Step::Ask(Request::Coalesce);

fn detach(lu: u32) -> Step {
    ask_for(Request::Detach { lu })
}

fn stop(lu: u32) -> Step {
    ask_for(Request::StopDetach { lu })
}

fn all_steps() -> Vec<Step> {
    let own = [detach(C), detach(C), detach(A), stop(C), COALESCE, COALESCE, delete(S), delete(A)];
    [&own[..], &alphabet()].concat()
}

fn known() -> Known {
    let checkpoint = ask_for(Request::Checkpoint);
    let clone = ask_for(Request::Clone { snapshot: S, asked: 0 });
    vec![
        ("shared", vec![detach(C), write(C, 0, 4 * KIB), flush(C)]),
        ("above", vec![detach(C), write(C, 2 * KIB, 4 * KIB), flush(C), Step::Kill]),
        ("above", vec![detach(C), write(C, 62 * KIB, 4 * KIB), snapshot(&[C]), flush(C)]),
        ("above", vec![detach(C), checkpoint, write(B, 0, 4 * KIB), flush(B)]),
        ("above", vec![write(C, 0, 512), write(C, 0, 512), detach(C), write(C, 0, 512), flush(C)]),
        ("checkpointed", vec![detach(C), delete(A), delete(S), write(C, 0, 512), flush(C)]),
        ("checkpointed", vec![delete(S), COALESCE, write(A, 0, 4 * KIB), flush(A), Step::Kill]),
        ("checkpointed", vec![delete(C), delete(S), COALESCE, write(A, 512, 512), flush(A)]),
        ("above", vec![delete(C), delete(S), COALESCE, write(A, 3 * KIB, 512), flush(A)]),
        ("above", vec![delete(C), delete(S), write(A, 3 * KIB, 512), COALESCE, checkpoint]),
        (
            "above",
            vec![delete(C), delete(S), write(A, 3 * KIB, 512), write(A, 2 * KIB, KIB), COALESCE],
        ),
        ("above", vec![delete(C), delete(S), COALESCE, snapshot(&[A]), write(A, 0, 4 * KIB)]),
        ("above", vec![delete(C), delete(S), COALESCE, move_to(1), flush(A), checkpoint]),
        ("above", vec![delete(C), delete(S), COALESCE, move_layer(1), write(A, 0, 512)]),
        ("above", vec![detach(C), stop(C), write(C, 0, 512), flush(C), COALESCE]),
        ("above", vec![detach(C), rollback(A, S), delete(A), flush(C)]),
        ("above", vec![rollback(A, S), rollback(A, S), write(A, 0, 512), flush(A)]),
        // A write that comes while a rollback waits for the pool to be opened may come before it.
        ("full", vec![Step::Kill, rollback(A, S), write(A, 0, 4 * KIB), flush(A)]),
        ("above", vec![detach(C), Step::Kill, COALESCE, flush(C), Step::Kill]),
        // A layer beneath others: of the first snapshot nobody wants anything.
        ("above", vec![snapshot(&[A]), write(A, 0, KIB), delete(C), delete(S), COALESCE]),
        (
            "above",
            vec![
                snapshot(&[A]),
                delete(S),
                delete(C),
                snapshot(&[A]),
                write(A, 62 * KIB, 4 * KIB),
                delete(7),
                COALESCE,
                flush(A),
            ],
        ),
        ("above", vec![snapshot(&[C]), clone, detach(C), delete(C), COALESCE, flush(A)]),
        // What was a container is what somebody else waits for.
        ("full", vec![delete(C), delete(S), write(B, 0, 4 * KIB), COALESCE, checkpoint, flush(B)]),
        ("full", vec![detach(C), write(B, 0, 4 * KIB), delete(7), flush(B)]),
        ("almost full", vec![detach(C), checkpoint, write(B, 0, 4 * KIB), flush(B)]),
        ("mirrored", vec![detach(C), write(C, 0, 4 * KIB), flush(C), checkpoint]),
        ("mirrored", vec![delete(C), delete(S), COALESCE, write(A, 0, 512), flush(A)]),
    ]
}

#[test]
fn no_crash_loses_what_is_coalesced() {
    assert_keeps(known(), &all_steps(), 4);
}

#[test]
fn each_broken_rule_of_coalescing_is_found() {
    let rules = [Rule::CoalesceAfterSync, Rule::CoalescePresent, Rule::CoalesceHeld];
    assert_found(&rules, known, &all_steps(), 4);
}

/// Whenever it is rolled back while it is detached, and after: what was copied before does not come up.
#[test]
fn nothing_comes_up_of_what_was_copied_before_a_rollback() {
    for steps in (0..).step_by(2) {
        let mut world = world_of("above");
        ask(&mut world, snapshot(&[C]));
        let made = world.pool.snapshots().last().unwrap().snapshot;
        ask(&mut world, write(C, 64 * KIB, 4 * KIB));
        let detaches = world.submit(Request::Detach { lu: C });
        (0..steps).for_each(|_| _ = world.step());
        let over = !world.oracle.is_open(detaches);
        assert_eq!(fault(&mut world, rollback(C, made)), None);
        assert_eq!(world.faults.get(&detaches), None);
        let same = |world: &World| {
            let bytes = |lu| of(held(world), &[lu]).into_iter().map(|(.., bytes)| bytes);
            assert!(bytes(C).eq(bytes(made)), "after {steps} steps");
        };
        same(&world);
        assert_eq!(fault(&mut world, detach(C)), None);
        same(&world);
        assert!(!world.pool.shares(C), "after {steps} steps");
        if over {
            break;
        }
    }
}

/// A clone, a snapshot or a rollback that is asked for while it is being said that layers beneath a snapshot are one: whatever it lies over, it has what that snapshot has. A PV
/// joins meanwhile, so that the journal stands still and what is to be said waits.
#[test]
fn what_is_made_of_a_snapshot_that_is_coalesced_has_what_it_has() {
    for (what, busy) in (0..3).flat_map(|what| (0..12).map(move |busy| (what, busy))) {
        for steps in busy..busy + 40 {
            let mut world = world_of("above");
            ask(&mut world, snapshot(&[A]));
            let made = world.pool.snapshots().last().unwrap().snapshot;
            ask(&mut world, write(A, 64 * KIB, 4 * KIB));
            ask(&mut world, delete(C));
            ask(&mut world, delete(S));
            world.submit(Request::Coalesce);
            (0..busy).for_each(|_| _ = world.step());
            let Step::Ask(joins) = add_pv() else { unreachable!() };
            world.submit(joins);
            (busy..steps).for_each(|_| _ = world.step());
            let asked = match what {
                0 => ask_for(Request::Clone { snapshot: made, asked: 0 }),
                1 => rollback(A, made),
                _ => snapshot(&[A]),
            };
            let newest = |world: &World| world.pool.lus().map(|(lu, _)| lu).max();
            assert_eq!(fault(&mut world, asked), None);
            let (one, other) = match what {
                0 => (newest(&world).unwrap(), made),
                1 => (A, made),
                _ => (world.pool.snapshots().last().unwrap().snapshot, A),
            };
            for _ in 0..2 {
                let found = held(&world);
                let bytes = |of: u32| {
                    found.iter().filter(move |(lu, ..)| *lu == of).map(|(.., bytes)| bytes)
                };
                assert!(bytes(other).next().is_some());
                assert!(bytes(one).eq(bytes(other)), "{asked:?} after {busy} and {steps} steps");
                world.kill().unwrap();
                world.rest();
            }
        }
    }
}

/// A part that a flush has told of is in the journal when that is durable, and until then a successor has to know it, also when a checkpoint ends meanwhile.
#[test]
fn what_is_said_of_a_part_is_kept_until_it_is_durable() {
    for steps in 0..40 {
        let mut world = world_of("mirrored");
        ask(&mut world, write(A, 0, 4 * KIB));
        world.submit(Request::Checkpoint);
        (0..steps).for_each(|_| _ = world.step());
        world.submit(Request::Flush { lu: A });
        for schedule in [Schedule::First, Schedule::Last].into_iter().cycle() {
            let shadow = world.shadow();
            let judged = judge(Image::new(world.disks.now()), Some(&shadow), &world.oracle, None);
            judged.unwrap_or_else(|wrong| panic!("after {steps} steps: {wrong}"));
            world.schedule = schedule;
            if !world.step() {
                break;
            }
        }
    }
}

fn held(world: &World) -> world::Found {
    read_all(Image::new(world.disks.now()), Some(&world.shadow()), None).unwrap().1
}

/// What LUs hold, of those that are in both.
fn of(found: world::Found, lus: &[u32]) -> world::Found {
    found.into_iter().filter(|(lu, ..)| lus.contains(lu)).collect()
}

fn fault(world: &mut World, step: Step) -> Option<Fault> {
    let tag = ask(world, step);
    assert!(!world.oracle.is_open(tag), "{step:?} waits");
    world.faults.remove(&tag)
}

#[test]
fn a_detached_clone_shares_nothing_and_all_hold_what_they_held() {
    for name in ["above", "checkpointed", "mirrored"] {
        let mut world = world_of(name);
        let before = held(&world);
        assert_eq!(fault(&mut world, detach(C)), None);
        assert_eq!(held(&world), before, "{name}");
        let spaces: Vec<_> = world.pool.lu_spaces().collect();
        let shares = |lu| spaces.iter().any(|space| space.lu == lu && space.shares);
        assert_eq!([A, C, S].map(shares), [true, false, true]);
        assert_eq!((world.pool.coalescing(), fault(&mut world, detach(C))), (Vec::new(), None));
        // It is as one that was never anything else: it has its size, and gives back what is discarded.
        assert_eq!(fault(&mut world, resize(C, 2)), None);
        ask(&mut world, delete(A));
        ask(&mut world, delete(S));
        ask(&mut world, ask_for(Request::Checkpoint));
        assert_eq!(of(held(&world), &[C])[..3], of(before, &[C])[..], "{name}");
        let legs = if name == "mirrored" { 2 } else { 1 };
        assert_eq!(used(&world), legs, "its own space alone");
        ask(&mut world, ask_for(Request::Discard(part(C, 0, CHUNK_BYTES))));
        assert_eq!(used(&world), 0);
        world.kill().unwrap();
        world.rest();
        assert_eq!(used(&world), 0);
    }
}

#[test]
fn an_lu_without_snapshots_becomes_what_it_was() {
    let mut world = world_of("checkpointed");
    assert_eq!(fault(&mut world, detach(A)), Some(Fault::Needed));
    assert_eq!(fault(&mut world, detach(S)), Some(Fault::Frozen));
    assert_eq!(fault(&mut world, detach(99)), Some(Fault::NoSuchLu));
    assert_eq!(fault(&mut world, COALESCE), None);
    assert!(world.pool.shares(A) && world.pool.shares(C), "all of it is needed");
    ask(&mut world, delete(C));
    ask(&mut world, delete(S));
    let before = held(&world);
    assert_eq!(fault(&mut world, COALESCE), None);
    ask(&mut world, ask_for(Request::Checkpoint));
    assert_eq!((held(&world), world.pool.shares(A)), (before, false));
    assert_eq!(used(&world), 1);
    assert_eq!(world.pool.containers(), []);
    assert_eq!(fault(&mut world, resize(A, 3)), None);
    assert_eq!(fault(&mut world, detach(B)), None, "it shares nothing");
}

/// Of ten snapshots every other is removed: there are as many layers as are needed, and all hold what they held.
#[test]
fn what_lies_between_two_snapshots_is_coalesced_with_what_is_beneath() {
    for groups in [[0; 3], [0, 1, 1]] {
        let mut world = pool(groups, 60);
        let create = ask_for(Request::Create { chunks: 2, thick: false, tier: 0, asked: 0 });
        setup(&mut world, "", &[create, write(A, 0, 12 * KIB)]);
        let mut made = Vec::new();
        for turn in 0..10 {
            ask(&mut world, snapshot(&[A]));
            made.extend(world.pool.snapshots().map(|made| made.snapshot).last());
            ask(&mut world, write(A, turn * KIB, KIB));
            ask(&mut world, write(A, CHUNK_BYTES + 60 * KIB + turn * 512, 2 * KIB));
        }
        let clone = ask(&mut world, ask_for(Request::Clone { snapshot: made[3], asked: 0 }));
        assert_eq!(world.faults.get(&clone), None);
        for snapshot in made.iter().step_by(2) {
            ask(&mut world, delete(*snapshot));
        }
        let (before, layers) = (held(&world), world.pool.containers().len());
        assert_eq!(fault(&mut world, COALESCE), None);
        assert_eq!(held(&world), before);
        let legs = 1 + usize::from(groups[1]);
        assert_eq!(world.pool.containers().len(), layers - 5 * legs);
        world.kill().unwrap();
        world.rest();
        ask(&mut world, ask_for(Request::Checkpoint));
        assert_eq!(held(&world), before);
        for snapshot in made.iter().skip(1).step_by(2) {
            ask(&mut world, delete(*snapshot));
        }
        let lus: Vec<u32> = world.pool.lus().map(|(lu, _)| lu).collect();
        let before = held(&world);
        assert_eq!(fault(&mut world, COALESCE), None);
        assert_eq!(held(&world), before);
        let clone = *lus.last().unwrap();
        assert_eq!(fault(&mut world, detach(clone)), None);
        assert_eq!(fault(&mut world, COALESCE), None);
        ask(&mut world, ask_for(Request::Checkpoint));
        assert_eq!((held(&world), world.pool.containers().len()), (before, 0));
        assert_eq!(lus.map_shares(&world), [false, false]);
    }
}

trait MapShares {
    fn map_shares(&self, world: &World) -> Vec<bool>;
}

impl MapShares for Vec<u32> {
    fn map_shares(&self, world: &World) -> Vec<bool> {
        self.iter().map(|lu| world.pool.shares(*lu)).collect()
    }
}

/// Whoever is at it dies, or is told to stop, or finds no space: it shares as before, and nothing is lost or left over.
#[test]
fn detaching_that_ends_early_leaves_nothing() {
    let mut ends = [0; 3];
    for steps in (0..).step_by(2) {
        let mut world = world_of("checkpointed");
        let (before, chunks) = (held(&world), used(&world));
        let detaches = world.submit(Request::Detach { lu: C });
        (0..steps).for_each(|_| _ = world.step());
        let over = !world.oracle.is_open(detaches);
        if !over {
            let all = world.pool.coalescing();
            let [Coalescing { lu, planned, over, asked }] = all[..] else { panic!("{all:?}") };
            assert!(lu == Some(C) && asked && over <= planned, "{all:?}");
        }
        let stops = ask(&mut world, stop(C));
        assert!(!world.oracle.is_open(stops) && !world.faults.contains_key(&stops));
        ask(&mut world, ask_for(Request::Checkpoint));
        assert_eq!(held(&world), before, "after {steps} steps");
        match world.faults.get(&detaches) {
            Some(Fault::Cancelled) => {
                ends[0] += 1;
                // Its head may be a new one by then, and its own space what lies beneath.
                assert!(world.pool.shares(C) && used(&world) <= chunks + 1);
            }
            None => {
                ends[1] += 1;
                assert!(!world.pool.shares(C));
            }
            other => panic!("{other:?}"),
        }
        // Who died at it goes on, when he is asked to.
        let mut world = world_of("checkpointed");
        world.submit(Request::Detach { lu: C });
        (0..steps).for_each(|_| _ = world.step());
        world.kill().unwrap();
        world.rest();
        let begun = world.pool.lu_spaces().any(|space| space.lu == C && space.allocated > 1);
        assert_eq!(held(&world), before);
        assert_eq!(fault(&mut world, COALESCE), None);
        assert_eq!(held(&world), before);
        if begun {
            ends[2] += 1;
            assert!(!world.pool.shares(C), "after {steps} steps");
        }
        if over {
            break;
        }
    }
    assert!(ends.iter().all(|count| *count > 0), "{ends:?}");
    let mut world = world_of("full");
    let before = held(&world);
    assert_eq!(fault(&mut world, detach(C)), Some(Fault::NoSpace));
    assert_eq!((held(&world), world.pool.paused()), (before, 0));
    ask(&mut world, delete(7));
    ask(&mut world, ask_for(Request::Checkpoint));
    assert_eq!(fault(&mut world, detach(C)), None);
}
