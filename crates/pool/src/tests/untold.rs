//! A client who never flushes: what it wrote is flushed unasked when it is much, so that the pool does not have to keep in memory what is written of each chunk.

use super::*;

/// The chunks of PVs of which the pool keeps what is written.
fn kept(world: &World) -> usize {
    world.shadow().chunks.len()
}

fn checkpoint(world: &mut World) {
    ask(world, Step::Ask(Request::Checkpoint));
}

#[test]
fn a_client_who_never_flushes_takes_no_memory_for_all_that_it_wrote_to() {
    for (untold, left) in [(1, 0), (2, 2), (2048, 2)] {
        let mut world = world("empty");
        world.pool.policy.untold = untold;
        for at in [0, CHUNK_BYTES] {
            ask(&mut world, write(A, at, 4 * KIB));
        }
        assert_eq!(kept(&world), 2);
        // One says it, and the next one has it.
        checkpoint(&mut world);
        checkpoint(&mut world);
        assert_eq!(kept(&world), left, "{untold}");
        for at in [0, CHUNK_BYTES] {
            ask(&mut world, Step::Ask(Request::Read(part(A, at, 128 * KIB))));
        }
        world.judge_now().unwrap();
    }
}

/// A flush that fails is tried again by the next checkpoint, and nobody is told.
#[test]
fn what_could_not_be_flushed_unasked_is_tried_again() {
    let mut world = world("empty");
    world.pool.policy.untold = 0;
    ask(&mut world, write(A, 0, 4 * KIB));
    let pv = world.shadow().chunks[0].0.pv;
    let tag = world.submit(Request::Checkpoint);
    let mut held = None;
    while held.is_none() && world.step() {
        // The last flush of that PV, behind those of the checkpoint itself.
        held = if world.oracle.is_open(tag) { None } else { world.hold_flush(pv) };
    }
    world.fail(held.unwrap());
    world.rest();
    assert_eq!((kept(&world), world.faults.len()), (1, 0));
    checkpoint(&mut world);
    checkpoint(&mut world);
    assert_eq!(kept(&world), 0);
}

/// What clients do who never flush.
fn without_flushes() -> Vec<Step> {
    let flushes = |step: &Step| {
        matches!(
            step,
            Step::Ask(
                Request::Flush { .. } | Request::Write { durable: true, .. } | Request::Move { .. }
            )
        )
    };
    let mut steps = alphabet();
    steps.retain(|step| !flushes(step));
    // Often, or there is nothing to see.
    steps.extend([Step::Ask(Request::Checkpoint); 6]);
    steps
}

fn unasked(explorer: &mut Explorer) -> Result<(), String> {
    explorer.untold = 0;
    explorer.explore(&setups(), &without_flushes(), 4)
}

#[test]
fn no_crash_loses_anything_while_all_is_flushed_unasked() {
    assert_keeps(images_max(), unasked);
}

#[test]
fn what_is_said_unasked_is_durable_before() {
    assert_found(&[Rule::BitsAfterData], 60_000, unasked);
}
