//! Channels take slots by themselves.

use std::collections::BTreeSet;

use super::layers::{
    S, ask_for, delete, flush, move_layer, pool, rollback, setup, setups, snapshot, world_of,
};
use super::*;
use crate::layers::{PART_BYTES, SLOTS};

/// By this it is known what is in the container of the head, and that it is there for good.
const FIRST: Step = write(A, 2 * KIB, 512);
/// A part of which there is nothing in the head.
const NEW: u64 = 4 * PART_BYTES;

/// Which of these a channel does their numbers say.
fn writes() -> Vec<Step> {
    let of = |at| [FIRST, write(A, at, 4 * KIB)];
    [512, 60 * KIB, 64 * KIB, NEW].into_iter().flat_map(of).collect()
}

fn known() -> Known {
    let checkpoint = ask_for(Request::Checkpoint);
    let durable = |bytes| ask_for(Request::Write { extent: part(A, NEW, bytes), durable: true });
    let zeroes = ask_for(Request::Zeroes(part(A, NEW, 4 * KIB)));
    let (takes, again) = (write(A, NEW, 4 * KIB), write(A, NEW + 512, 4 * KIB));
    let beside = |steps: &[Step]| [&writes()[..], steps].concat();
    vec![
        // The pool and a channel, in the same part at once.
        ("above", vec![FIRST, takes, durable(8 * KIB), flush(A), Step::Kill]),
        ("above", vec![FIRST, FIRST, takes, durable(512), flush(A), Step::Kill]),
        ("above", vec![FIRST, durable(KIB), takes, zeroes, flush(A)]),
        ("above", vec![FIRST, FIRST, takes, snapshot(&[A]), flush(A)]),
        ("above", vec![FIRST, takes, snapshot(&[A]), again, flush(A)]),
        // Several parts at once, of which one is somebody's.
        ("above", vec![FIRST, write(A, 62 * KIB, 4 * KIB), write(A, 60 * KIB, 12 * KIB), flush(A)]),
        ("above", vec![FIRST, FIRST, write(A, 60 * KIB, 80 * KIB), durable(KIB), flush(A)]),
        ("above", vec![FIRST, write(A, 60 * KIB, 8 * KIB), snapshot(&[A]), flush(A), Step::Kill]),
        // Whatever comes after it.
        ("above", beside(&[flush(A), again, Step::Kill, flush(A), again])),
        ("above", beside(&[snapshot(&[A]), again, flush(A), again])),
        ("above", beside(&[Step::Kill, snapshot(&[A]), again, flush(A)])),
        ("above", beside(&[rollback(A, S), again, flush(A)])),
        ("above", beside(&[move_layer(1), again, flush(A), move_layer(2), again, Step::Kill])),
        ("above", beside(&[checkpoint, again, flush(A), delete(S), checkpoint])),
        ("full", beside(&[again, delete(A), checkpoint, write(B, 0, 4 * KIB), flush(B)])),
        ("checkpointed", beside(&[delete(S), ask_for(Request::Detach { lu: A }), flush(A)])),
    ]
}

fn explore(broken: Option<Rule>) -> Result<(), String> {
    let mut explorer = Explorer::new(broken, images_max());
    explorer.known(&setups(), known(), (10, &[4, 8, 0, 12, u32::MAX]))
}

#[test]
fn no_crash_loses_what_channels_have_taken() {
    explore(None).unwrap();
}

#[test]
fn each_broken_rule_of_taking_is_found() {
    for rule in [Rule::PlaceAfterClose, Rule::CutAfterDrain, Rule::BitsAfterData] {
        // Whoever tells of a part that is in two slots is not believed.
        let found = std::panic::catch_unwind(|| explore(Some(rule)));
        assert!(!matches!(found, Ok(Ok(()))), "{rule:?}");
    }
}

/// A snapshot has all that channels had written before it, of which the pool is told before it goes on.
#[test]
fn what_was_taken_before_a_snapshot_is_in_it() {
    for is_late in [false, true] {
        let mut world = world_of("above");
        ask(&mut world, FIRST);
        world.taking.is_late = is_late;
        let Step::Ask(made) = snapshot(&[A]) else { panic!("a request") };
        // By a channel, which has not ended when the snapshot begins.
        for at in [NEW, 64 * KIB] {
            world.rest();
            let Step::Ask(wrote) = write(A, at, 4 * KIB) else { panic!("a request") };
            world.submit(wrote);
            if world.is_taking() {
                break;
            }
        }
        assert!(world.is_taking());
        world.submit(made);
        world.rest();
        // Of what is beneath its head it says nothing any more.
        ask(&mut world, flush(A));
        let judged = judge(Image::new(world.disks.stable()), None, &world.oracle, None);
        assert_eq!(judged.is_err(), is_late, "{judged:?}");
    }
}

/// Channels and the pool write to the same parts and others of one layer, and no two parts are in one slot.
#[test]
fn each_part_has_its_own_slot() {
    let mut random = world::Random(7);
    let mut world = world_of("above");
    for number in 0..3_000 {
        let at = random.below(300) as u64 * PART_BYTES + random.below(60) as u64 * 512;
        let sectors = 1 + random.below(if number % 4 == 0 { 150 } else { 8 }) as u64;
        let Step::Ask(request) = write(A, at, sectors * 512) else { panic!("a request") };
        world.submit(request);
        match random.below(40) {
            0 => world.withdraw(),
            1 => _ = ask(&mut world, flush(A)),
            2 if number % 16 == 0 => world.kill().unwrap(),
            3 if number % 16 == 0 => _ = ask(&mut world, snapshot(&[A])),
            4..20 => world.rest(),
            _ => {}
        }
    }
    world.judge_now().unwrap();
    let (taken, written) = (world.taking.taken, world.taking.written);
    assert!(taken > 200 && written > 600, "{taken} {written}");
    for layer in world.pool.beneath(A).unwrap() {
        let parts = world.pool.kept_parts(layer, 0).into_iter();
        let slots: Vec<u32> = parts.map(|kept| kept.slot).collect();
        let alone: BTreeSet<u32> = slots.iter().copied().collect();
        assert_eq!(alone.len(), slots.len(), "layer {layer}");
    }
}

#[test]
fn what_is_offered_is_of_one_container_and_comes_back_before_the_next() {
    let create = ask_for(Request::Create { chunks: 1, thick: false, tier: 0, asked: 0 });
    let mut world = pool([0; 3], 9);
    setup(&mut world, "", &[create, snapshot(&[A]), write(A, 0, 512)]);
    assert_eq!(world.pool.offer(99, 4), None);
    let (layer, slots) = world.pool.offer(A, 4).unwrap();
    assert_eq!((world.pool.chunks_in(layer), slots), (2, 1..5));
    // As far as the container goes, and no further.
    assert_eq!(world.pool.offer(A, u32::MAX), Some((layer, 5..SLOTS)));
    assert_eq!(world.pool.offer(A, 4), None);
    // Two are not taken. What is durable the pool writes.
    world.offered(layer, SLOTS - 2..SLOTS);
    let write =
        |number: u64| Request::Write { extent: part(A, number * PART_BYTES, 512), durable: true };
    (1..5).for_each(|number| _ = ask(&mut world, ask_for(write(number))));
    let slots = |world: &World| -> Vec<u32> {
        world.pool.kept_parts(layer, 0).iter().map(|kept| kept.slot).collect()
    };
    assert_eq!(slots(&world), [0, SLOTS - 2, SLOTS - 1, SLOTS, SLOTS + 1]);
    world.pool.withdraw(layer, 7..8);
    world.pool.withdraw(99, 1..2);
    ask(&mut world, ask_for(write(5)));
    assert_eq!(slots(&world).last(), Some(&7));
    // Nothing while a snapshot is made.
    assert!(world.pool.offer(A, 4).is_some());
    let Step::Ask(request) = snapshot(&[A]) else { panic!("a request") };
    world.submit(request);
    assert_eq!(world.pool.offer(A, 4), None);
}
