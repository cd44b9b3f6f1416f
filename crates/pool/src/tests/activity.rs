//! Chunks that nobody changes are active no longer, and their legs are the same after any crash.

use super::layers::{ask_for, flush, pool};
use super::mirror::{checkpoint, durable, setups, shared, world_of};
use super::*;

fn zeroes() -> Step {
    ask_for(Request::Zeroes(part(A, 0, 64 * KIB)))
}

/// What may be done, with looks between.
fn alphabet() -> Vec<Step> {
    let looks = [Step::Look; 9];
    [&super::mirror::alphabet()[..], &looks].concat()
}

/// Sequences in which a chunk becomes quiet, and others do something to it.
fn known() -> Known {
    let [one, other] = [Step::Lose(0), Step::Lose(1)];
    let (write, look) = (write(A, 0, 4 * KIB), Step::Look);
    let discard = ask_for(Request::Discard(part(A, 0, CHUNK_BYTES)));
    let mut all = Vec::new();
    for setup in ["two", "quiet"] {
        all.push((setup, vec![write, look]));
        all.push((setup, vec![write, look, checkpoint()]));
        all.push((setup, vec![write, flush(A), look, write, look, flush(A)]));
        all.push((setup, vec![write, look, one, write, flush(A), Step::Return]));
        all.push((setup, vec![write, other, look, flush(A), Step::Return, look]));
        all.push((setup, vec![zeroes(), look, durable(), look, Step::Kill]));
        all.push((setup, vec![discard, look, write, look, one, Step::Return, look]));
    }
    all.push(("three", vec![write, look, move_to(2), look, move_to(1), look]));
    all.push(("three", vec![write, move_to(2), look, write, look, other, flush(A)]));
    all.push(("checkpointed", vec![write, look, remove_pv(1), look, write]));
    all.push(("checkpointed", vec![write, look, Step::Kill, look, write, one, Step::Return]));
    all
}

fn of_members_that_stay(step: &Step) -> bool {
    !matches!(step, Step::Ask(Request::AddPv(_) | Request::RemovePv { .. }))
}

fn explore(explorer: &mut Explorer, setups: &[Setup]) -> Result<(), String> {
    explorer.all(setups, (known(), 4, &[0, u32::MAX]), (&alphabet(), 4))
}

#[test]
fn no_crash_leaves_legs_that_differ_of_what_is_quiet() {
    let setups = setups();
    let count = assert_keeps(images_max(), |explorer| explore(explorer, &setups));
    assert!(count.without > count.images / 20, "{count:?}");
}

/// Longer sequences, in which all PVs stay.
#[test]
fn no_crash_leaves_legs_that_differ_of_what_is_quiet_for_longer() {
    let setups = setups();
    let mut alphabet = alphabet();
    alphabet.retain(of_members_that_stay);
    assert_keeps(images_max(), |explorer| explorer.explore(&setups, &alphabet, 6));
}

/// Of layers as well.
#[test]
fn no_crash_leaves_legs_that_differ_of_quiet_layers() {
    let setups = shared();
    let lost = [Step::Lose(0), Step::Lose(1), Step::Lose(2), Step::Return, Step::Return];
    let looks = [Step::Look; 9];
    let more = [ask_for(Request::Coalesce), ask_for(Request::Detach { lu: super::layers::C })];
    let mut alphabet = [&super::layers::alphabet()[..], &lost, &lost, &looks, &more].concat();
    // The PV that comes there is too small for what another leaves.
    alphabet.retain(of_members_that_stay);
    assert_keeps(images_max(), |explorer| explorer.explore(&setups, &alphabet, 5));
}

/// Each rule is broken once on purpose, and found.
#[test]
fn each_broken_rule_of_activity_is_found() {
    let setups = setups();
    let rules =
        [Rule::QuietAtRest, Rule::QuietAfterFlush, Rule::ActiveBeforeWrite, Rule::AnswerAfterStale];
    assert_found(&rules, 60_000, |explorer| explore(explorer, &setups));
}

/// Time goes by, and what that leads to is done.
fn look(world: &mut World, idle: bool) {
    world.look(idle);
    world.rest();
}

/// As if it were opened after a crash of the host: so many blocks are copied.
fn copied_after_a_crash(world: &World) -> u64 {
    let mut world = World::open(world.disks.stable().clone(), world.oracle.clone(), None).unwrap();
    world.rest();
    world.judge_now().unwrap();
    world.copied.values().sum()
}

#[test]
fn what_nobody_changes_is_active_no_longer() {
    for flushes in [true, false] {
        let mut world = world_of("two");
        ask(&mut world, write(A, 70 * KIB, 4 * KIB));
        if flushes {
            ask(&mut world, flush(A));
        }
        assert!(world.pool.active_chunks() > 0 && world.pool.wants_look());
        look(&mut world, true);
        assert_eq!((world.pool.active_chunks(), world.pool.wants_look()), (0, false));
        assert_eq!(copied_after_a_crash(&world), 0);
        // It is again before it is changed.
        ask(&mut world, write(A, 70 * KIB, 4 * KIB));
        assert_eq!(world.pool.active_chunks(), 1);
        ask(&mut world, flush(A));
        assert_eq!(copied_after_a_crash(&world), 2);
    }
}

/// What was made the same after a crash is quiet as well, and another crash copies none of it.
#[test]
fn what_was_made_the_same_is_not_copied_again() {
    let mut world = world_of("three");
    ask(&mut world, write(A, 0, 4 * KIB));
    ask(&mut world, flush(A));
    world.kill().unwrap();
    world.rest();
    let copied = world.copied.values().sum::<u64>();
    assert!(copied > 0 && world.pool.wants_look());
    look(&mut world, true);
    assert_eq!((world.pool.active_chunks(), world.pool.wants_look()), (0, false));
    world.kill().unwrap();
    world.rest();
    assert_eq!(world.copied.values().sum::<u64>(), copied);
}

/// While a PV is away nothing ends, and nobody looks for ever.
#[test]
fn nothing_ends_while_a_pv_is_away() {
    let mut world = world_of("quiet");
    ask(&mut world, write(A, 0, 4 * KIB));
    world.lose(1);
    ask(&mut world, flush(A));
    assert!(world.pool.is_away(1));
    let mut looks = 0;
    while world.pool.wants_look() {
        look(&mut world, true);
        looks += 1;
        assert!(looks < 4);
    }
    assert_eq!(world.pool.active_chunks(), 1);
    world.bring_back();
    world.rest();
    assert!(world.pool.wants_look());
    look(&mut world, true);
    assert_eq!((world.pool.active_chunks(), world.pool.wants_look()), (0, false));
    world.judge_now().unwrap();
}

/// A write that hangs holds up its chunk, and no other.
#[test]
fn a_chunk_that_is_written_to_is_active() {
    let mut world = world_of("quiet");
    ask(&mut world, write(A, 0, 4 * KIB));
    ask(&mut world, write(B, 70 * KIB, 4 * KIB));
    let hangs = world.submit(Request::Write { extent: part(A, 0, 4 * KIB), durable: false });
    let held = world.hold_writes();
    look(&mut world, true);
    assert_eq!((world.oracle.is_open(hangs), world.pool.active_chunks()), (true, 1));
    world.let_go(held);
    world.rest();
    assert!(!world.oracle.is_open(hangs) && world.pool.wants_look());
    look(&mut world, true);
    assert_eq!(world.pool.active_chunks(), 0);
}

/// While there is work a chunk has to be unchanged from one look to the next but one; one that is changed now and then is active after a while whenever it is changed.
#[test]
fn what_is_changed_now_and_then_stays_active() {
    let mut world = world_of("quiet");
    let mut waited = Vec::new();
    for _ in 0..12 {
        waited.push(world.pool.active_chunks() == 0);
        ask(&mut world, write(A, 0, 4 * KIB));
        for _ in 0..5 {
            look(&mut world, false);
        }
    }
    // Its patience was for 1, 2 and 4 looks.
    let (first, later) = waited.split_at(4);
    assert!(first.iter().all(|waited| *waited) && later.iter().all(|waited| !waited), "{waited:?}");
    // When nobody changes anything, all of it ends.
    look(&mut world, true);
    assert_eq!((world.pool.active_chunks(), world.pool.wants_look()), (0, false));
}

/// Who overwrites one chunk after the other waits for the first two.
#[test]
fn who_writes_one_chunk_after_the_other_does_not_wait_for_each() {
    let mut world = pool([0, 1, 1], 12);
    let create = ask_for(Request::Create { chunks: 6, thick: false, tier: 0, asked: 0 });
    assert_eq!(fault(&mut world, create), None);
    let all = |chunk: u64| write(A, chunk * CHUNK_BYTES, 64 * KIB);
    (0..6).for_each(|chunk| _ = ask(&mut world, all(chunk)));
    ask(&mut world, flush(A));
    look(&mut world, true);
    assert_eq!(world.pool.active_chunks(), 0);
    let mut waited = Vec::new();
    for chunk in 0..6 {
        let Step::Ask(request) = all(chunk) else { unreachable!() };
        world.submit(request);
        let begun = world.hold_writes();
        waited.push(begun.is_empty());
        world.let_go(begun);
        world.rest();
    }
    assert_eq!(waited, [true, true, false, false, false, false]);
    look(&mut world, true);
    assert_eq!(world.pool.active_chunks(), 0);
}

/// A flush fails on a PV that cannot be done without, and what it should have made durable is gone. Nobody says that the legs are the same.
fn a_flush_that_fails(broken: Option<Rule>, late: bool) -> Result<(), String> {
    let mut world = world_of("two");
    world.pool.broken = broken;
    ask(&mut world, checkpoint());
    look(&mut world, true);
    // The other PV returns, and cannot get what it missed so far.
    world.lose(1);
    ask(&mut world, write(B, 70 * KIB, 4 * KIB));
    ask(&mut world, flush(B));
    world.unreadable = Some(0);
    world.bring_back();
    world.rest();
    assert_eq!(super::mirror::state(&world, 1), MemberState::Returning);
    ask(&mut world, write(A, 0, 4 * KIB));
    if late {
        // The flush was given out before the one of the root.
        world.submit(Request::Flush { lu: A });
        let held = world.hold_flush(0).unwrap();
        world.look(true);
        while world.pool.active_chunks() > 1 && world.step() {}
        world.disks.lose_cache(0, || false);
        world.fail(held);
    } else {
        world.submit(Request::Flush { lu: A });
        let held = world.hold_flush(0).unwrap();
        world.disks.lose_cache(0, || false);
        world.fail(held);
        world.rest();
        look(&mut world, true);
    }
    world.rest();
    assert_eq!(world.faults.values().collect::<Vec<_>>(), [&Fault::Medium]);
    world.unreadable = None;
    let mark = world.disks.mark();
    (0..2).for_each(|pv| world.disks.flush(pv, mark));
    judge(Image::new(world.disks.stable()), None, &world.oracle, None)
}

#[test]
fn a_chunk_of_which_a_flush_has_failed_stays_active() {
    for late in [false, true] {
        a_flush_that_fails(None, late).unwrap_or_else(|wrong| panic!("{wrong}, {late}"));
        let found = a_flush_that_fails(Some(Rule::QuietUnsure), late);
        assert!(found.is_err(), "that is what the rule is for, {late}");
    }
}

/// A write is under way while a checkpoint ends, after which what rests is forgotten. That it is in a cache is known then.
fn a_write_behind_a_root(broken: Option<Rule>) -> Result<(), String> {
    let mut world = world_of("quiet");
    world.pool.broken = broken;
    ask(&mut world, write(A, 0, 4 * KIB));
    ask(&mut world, flush(A));
    world.submit(Request::Write { extent: part(A, 0, 4 * KIB), durable: false });
    let held = world.hold_writes();
    ask(&mut world, checkpoint());
    world.let_go(held);
    world.rest();
    world.lose(1);
    ask(&mut world, write(B, 70 * KIB, 4 * KIB));
    assert!(world.pool.is_away(1));
    world.disks.lose_cache(1, || false);
    world.bring_back();
    world.judge_now()
}

#[test]
fn what_was_under_way_while_a_root_was_written_is_missed() {
    a_write_behind_a_root(None).unwrap();
    let found = a_write_behind_a_root(Some(Rule::ForgetAtRest));
    assert!(found.is_err(), "that is what the rule is for");
}

/// Its record in the journal says that legs may differ: that ends as well, without a client.
#[test]
fn a_chunk_that_moved_is_quiet_again() {
    let mut world = world_of("quiet");
    look(&mut world, true);
    assert_eq!((world.pool.active_chunks(), world.pool.wants_look()), (0, false));
    let to = [0, 2].map(|pv| ask(&mut world, move_to(pv)));
    assert!(to.iter().any(|tag| !world.faults.contains_key(tag)));
    assert_eq!((world.pool.active_chunks(), world.pool.wants_look()), (1, true));
    look(&mut world, true);
    assert_eq!((world.pool.active_chunks(), world.pool.wants_look()), (0, false));
    assert_eq!(copied_after_a_crash(&world), 0);
}
