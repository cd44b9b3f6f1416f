//! LUs with two legs while PVs are lost and return, and between crashes.

use super::layers::{C, S, ask_for, delete, flush, pool, setup, snapshot};
use super::world::{POLICY, SERVER};
use super::*;
use crate::choose::NotChosen;
use crate::pool::{Fault, Lookup, NotOpened, Outcome, Pool, Resync};

pub(super) fn checkpoint() -> Step {
    ask_for(Request::Checkpoint)
}

pub(super) fn durable() -> Step {
    ask_for(Request::Write { extent: part(A, 4 * KIB, 4 * KIB), durable: true })
}

fn discard() -> Step {
    ask_for(Request::Discard(part(A, 0, CHUNK_BYTES)))
}

/// Two PVs, and three of which two are in one failure group.
pub(super) fn setups() -> Vec<Setup> {
    let create = ask_for(Request::Create { chunks: 2, thick: false, tier: 0, asked: 0 });
    let begin = [create, create, write(A, 0, 12 * KIB), write(B, 70 * KIB, 4 * KIB), flush(A)];
    let more = [flush(B), checkpoint()];
    let pv = |number: u8| NewPv { pv: Uuid([number; 16]), chunks: 8, tier: 0, group: number % 2 };
    let mut two = fresh(&[1, 2].map(pv));
    let mut three = pool([0, 1, 1], 8);
    let mut quiet = pool([1, 0, 1], 8);
    let mut all = vec![
        setup(&mut two, "two", &[&begin[..], &more].concat()),
        setup(&mut three, "three", &begin),
        setup(&mut three, "checkpointed", &more),
        setup(&mut quiet, "", &[&begin[..], &more].concat()),
    ];
    // Opened again and at rest, what was active is so no longer.
    quiet.kill().unwrap();
    quiet.rest();
    all.push(setup(&mut quiet, "quiet", &[checkpoint()]));
    all
}

pub(super) fn alphabet() -> Vec<Step> {
    vec![
        write(A, 0, 4 * KIB),
        write(A, 62 * KIB, 4 * KIB),
        write(A, CHUNK_BYTES, 4 * KIB),
        write(B, 70 * KIB, 4 * KIB),
        durable(),
        ask_for(Request::Zeroes(part(A, 2 * KIB, 64 * KIB))),
        discard(),
        flush(A),
        flush(B),
        ask_for(Request::Create { chunks: 1, thick: false, tier: 0, asked: 0 }),
        delete(A),
        resize(A, 1),
        resize(A, 3),
        move_to(1),
        move_to(2),
        checkpoint(),
        checkpoint(),
        ask_for(Request::Scrub),
        Step::Lose(0),
        Step::Lose(1),
        Step::Lose(2),
        Step::Return,
        Step::Return,
        remove_pv(0),
        remove_pv(1),
        remove_pv(2),
        add_to(0),
        add_to(1),
        Step::Kill,
    ]
}

/// A fourth PV, in that failure group.
pub(super) fn add_to(group: u8) -> Step {
    ask_for(Request::AddPv(NewPv { pv: Uuid([4; 16]), chunks: 8, tier: 0, group }))
}

/// Sequences in which a rule matters and that chance finds late.
fn known() -> Known {
    let [one, other] = [Step::Lose(0), Step::Lose(1)];
    let again = [Step::Return, flush(A), checkpoint()];
    let mut all = vec![
        ("quiet", vec![one, write(A, 0, 4 * KIB), flush(A)]),
        ("quiet", vec![other, write(A, 0, 4 * KIB), flush(A), checkpoint(), Step::Kill]),
        ("quiet", vec![write(A, 0, 4 * KIB), one, flush(A), checkpoint()]),
        ("quiet", vec![write(A, 0, 4 * KIB), flush(A), other, durable(), Step::Return]),
        ("quiet", vec![one, discard(), flush(A), write(A, 8 * KIB, 4 * KIB), Step::Return]),
        ("quiet", vec![write(A, 0, 4 * KIB), Step::Kill, write(A, 0, 4 * KIB), flush(A)]),
        ("quiet", vec![write(A, 0, 4 * KIB), Step::Kill, checkpoint(), flush(A), checkpoint()]),
        (
            "quiet",
            vec![durable(), write(B, 70 * KIB, 4 * KIB), Step::Kill, checkpoint(), checkpoint()],
        ),
        ("two", vec![one, write(A, 0, 4 * KIB), write(A, CHUNK_BYTES, 4 * KIB), flush(A)]),
        ("two", vec![write(A, 0, 4 * KIB), checkpoint(), other, flush(A), Step::Return]),
        ("checkpointed", vec![move_to(2), move_to(1), one, write(A, 0, 4 * KIB), Step::Return]),
        ("checkpointed", vec![Step::Kill, checkpoint(), write(A, 0, 4 * KIB), other, flush(A)]),
    ];
    // One that is away for good goes, alone or when another has come in its place.
    let (joins, leaves) = (add_to(1), [remove_pv(0), remove_pv(1)]);
    all.push(("two", vec![write(A, 0, 4 * KIB), one, joins, leaves[0], durable(), flush(A)]));
    all.push(("two", vec![one, joins, write(A, CHUNK_BYTES, 4 * KIB), leaves[0], Step::Kill]));
    all.push(("two", vec![other, add_to(0), leaves[1], Step::Lose(2), flush(A), Step::Return]));
    all.push(("three", vec![other, leaves[1], write(A, 0, 4 * KIB), checkpoint(), Step::Return]));
    all.push(("three", vec![other, leaves[1], Step::Kill, write(B, 70 * KIB, 4 * KIB), flush(B)]));
    all.push(("quiet", vec![one, write(A, 0, 4 * KIB), leaves[0], discard(), flush(A)]));
    all.push(("quiet", vec![leaves[0], one, write(A, 0, 4 * KIB), flush(A), checkpoint()]));
    all.push(("quiet", vec![one, leaves[0], write(A, 0, 4 * KIB), flush(A), checkpoint(), one]));
    for (setup, lost) in [("two", one), ("two", other), ("quiet", one), ("quiet", other)] {
        let steps = [lost, write(A, 0, 4 * KIB), checkpoint()];
        all.push((setup, [&steps[..], &again, &[write(A, 0, 4 * KIB), flush(A)]].concat()));
        let steps = [checkpoint(), lost, delete(A), write(B, CHUNK_BYTES, 4 * KIB), flush(B)];
        all.push((setup, [&steps[..], &again].concat()));
    }
    all
}

fn explore(explorer: &mut Explorer, setups: &[Setup]) -> Result<(), String> {
    explorer.all(setups, (known(), 4, &[0, u32::MAX]), (&alphabet(), 4))
}

#[test]
fn no_crash_loses_what_is_on_two_legs() {
    let setups = setups();
    let count = assert_keeps(images_max(), |explorer| explore(explorer, &setups));
    assert!(count.without > count.images / 20, "{count:?}");
}

/// Runs a sequence that chance has found in a way that it has found, and looks at each point of it a few times.
fn found(setups: &[Setup], (name, steps): (&str, &[Step]), run: Run) -> Result<(), String> {
    let setup = setups.iter().find(|setup| setup.name == name).unwrap();
    (0..8).try_for_each(|chance| {
        let mut explorer = Explorer::new(None, u64::MAX);
        explorer.random = Random(chance);
        explorer.run(setup, steps, run)
    })
}

/// A PV loses what it had in its cache, is there again, and the process dies before a superblock says any of that.
#[test]
fn a_successor_knows_which_pv_was_lost() {
    let run = Run { schedule: Schedule::Any, overlap: 10, seed: 16_484_208_545_523_172_429 };
    let steps = [write(A, 62 * KIB, 4 * KIB), flush(A), Step::Lose(1), Step::Return];
    found(&setups(), ("three", &steps), run).unwrap();
}

/// An LU with a snapshot and a clone, and others.
pub(super) fn shared() -> Vec<Setup> {
    let create = ask_for(Request::Create { chunks: 1, thick: false, tier: 0, asked: 0 });
    let alone = [create, create, write(A, 0, 12 * KIB), flush(A)];
    let shared = [snapshot(&[A]), ask_for(Request::Clone { snapshot: S, asked: 0 })];
    let above = [write(A, 2 * KIB, 4 * KIB), write(C, 0, 512), flush(A), flush(C), checkpoint()];
    let mut world = pool([0, 1, 1], 9);
    let mut first = setup(&mut world, "shared", &[&alone[..], &shared, &above].concat());
    world.kill().unwrap();
    world.rest();
    let second = setup(&mut world, "quiet", &[checkpoint()]);
    first.name = "shared";
    vec![first, second]
}

/// Layers are on two legs as well.
#[test]
fn no_crash_loses_snapshots_on_two_legs() {
    let lost = [Step::Lose(0), Step::Lose(1), Step::Lose(2), Step::Return, Step::Return];
    let more =
        [ask_for(Request::Coalesce), ask_for(Request::Detach { lu: C }), ask_for(Request::Scrub)];
    let alphabet = [&super::layers::alphabet()[..], &lost, &lost, &more].concat();
    let setups = shared();
    let mut known: Known = Vec::new();
    for lose in [Step::Lose(0), Step::Lose(1)] {
        let begin = [write(A, 512, 512), lose, write(A, 66 * KIB, 4 * KIB), flush(A)];
        let end = [Step::Return, write(A, 0, 512), flush(A)];
        known.push(("quiet", [&begin[..], &[snapshot(&[A])], &end].concat()));
        known.push(("quiet", [&begin[..], &[checkpoint(), Step::Kill], &end].concat()));
        known.push(("shared", [&begin[..], &[delete(S), delete(C)], &end].concat()));
    }
    assert_keeps(images_max(), |explorer| {
        explorer.all(&setups, (known.clone(), 6, &[0, u32::MAX]), (&alphabet, 4))
    });
}

/// The same while layers change, which get containers: all of them get their other leg when the PV returns.
#[test]
fn containers_have_room_for_both_legs() {
    let lost = Step::Lose(0);
    let detach = ask_for(Request::Detach { lu: C });
    let begin = write(B, 0, 4 * KIB);
    let any = |overlap, seed| Run { schedule: Schedule::Any, overlap, seed };
    let setups = shared();
    let mut wrong = Vec::new();
    let all = [
        (
            "quiet",
            vec![begin, lost, snapshot(&[A]), write(A, 10 * KIB, 24 * KIB)],
            any(6, 10_188_191_757_807_718_568),
        ),
        ("shared", vec![begin, resize(A, 2), lost, detach], any(9, 15_379_177_770_185_369_527)),
        (
            "shared",
            vec![begin, lost, detach, write(3, 0, 4 * KIB)],
            Run { schedule: Schedule::First, overlap: 2, seed: 10_670_165_667_568_471_531 },
        ),
    ];
    for (name, steps, run) in all {
        wrong.extend(found(&setups, (name, &steps), run).err());
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each rule is broken once on purpose, and found.
#[test]
fn each_broken_rule_of_mirroring_is_found() {
    let setups = setups();
    let rules =
        [Rule::AnswerAfterStale, Rule::ActiveBeforeWrite, Rule::ClaimsOfQuiet, Rule::FollowFailed];
    assert_found(&rules, 100_000, |explorer| explore(explorer, &setups));
}

pub(super) fn world_of(name: &str) -> World {
    at_rest(setups(), name)
}

pub(super) fn open_without(world: &World, gone: u16) -> Result<Pool, NotOpened> {
    Pool::open(&mut Image::new(world.disks.now()).without(Some(gone)), SERVER, None, POLICY)
}

/// Of a PV that is there and cannot be used it is known that it did not go on alone. One that was lost does not stand in for it.
#[test]
fn a_pool_of_two_opens_without_one_that_is_there_and_cannot_be_used() {
    let world = world_of("two");
    let epoch = world.pool.superblock().epoch;
    let open = |without: &[u16], lost: &[u16]| {
        let without = without.iter().copied().collect();
        let shadow = Shadow::of(SERVER, epoch, [], [], lost.iter().copied());
        let mut image = Image::new(world.disks.now());
        Pool::open_without(&mut image, SERVER, Some(&shadow), &without, POLICY)
    };
    for (pv, other) in [(0, 1), (1, 0)] {
        assert!(open_without(&world, pv).is_err());
        assert!(open(&[pv], &[]).is_ok_and(|pool| pool.is_away(pv) && !pool.is_away(other)));
        assert!(open(&[pv], &[pv]).is_ok_and(|pool| pool.is_away(pv) && !pool.is_away(other)));
        assert!(matches!(open(&[pv], &[other]), Err(NotOpened::Missing(_))));
    }
    assert!(matches!(open(&[0, 1], &[]), Err(NotOpened::Missing(both)) if both.len() == 2));
}

pub(super) fn state(world: &World, pv: usize) -> MemberState {
    world.pool.superblock().members[pv].state
}

/// What it missed is one chunk of three: that is copied, and both legs are the same.
#[test]
fn a_pv_that_returns_gets_what_it_missed_and_nothing_else() {
    let mut world = world_of("quiet");
    world.lose(1);
    for step in [write(A, 4 * KIB, 4 * KIB), flush(A), durable(), checkpoint()] {
        assert_eq!(fault(&mut world, step), None, "{step:?}");
    }
    assert_eq!((state(&world, 1), world.pool.resync().planned), (MemberState::Stale, 0));
    world.judge_now().unwrap();
    let returns = world.bring_back().unwrap();
    world.rest();
    assert_eq!(world.faults.get(&returns), None);
    assert_eq!(world.pool.resync(), Resync { planned: 1, over: 1, failed: 0 });
    assert_eq!(state(&world, 1), MemberState::In);
    world.judge_now().unwrap();
    // Twice is once.
    assert_eq!(fault(&mut world, ask_for(Request::ReturnPv { pv: 1 })), None);
    assert_eq!(fault(&mut world, ask_for(Request::ReturnPv { pv: 7 })), Some(Fault::NoSuchPv));
}

/// A chunk that is mapped while one failure group is away has one leg, and gets the other.
#[test]
fn a_new_chunk_has_one_leg_while_there_is_no_place_for_two() {
    let mut world = world_of("two");
    let used = |world: &World| world.pool.pvs().map(|pv| pv.used).collect::<Vec<_>>();
    let before = used(&world);
    world.lose(0);
    assert_eq!(fault(&mut world, write(A, CHUNK_BYTES, 4 * KIB)), None);
    assert_eq!(used(&world)[1], before[1] + 1);
    // It is given back as any other.
    assert_eq!(fault(&mut world, write(B, CHUNK_BYTES, 4 * KIB)), None);
    assert_eq!(
        fault(&mut world, ask_for(Request::Discard(part(B, CHUNK_BYTES, CHUNK_BYTES)))),
        None
    );
    world.bring_back();
    world.rest();
    assert_eq!(used(&world), [before[0] + 1, before[1] + 1]);
    assert_eq!(world.pool.resync().failed, 0);
    world.judge_now().unwrap();
}

/// While a failure group is away no more chunks are given out than have room there for their other leg.
#[test]
fn what_is_written_without_a_failure_group_has_room_there() {
    let mut world = world_of("quiet");
    world.lose(1);
    assert_eq!(fault(&mut world, write(A, CHUNK_BYTES, 4 * KIB)), None);
    // Three chunks have all that the group has; the others have six.
    let waits = ask(&mut world, write(B, CHUNK_BYTES, 4 * KIB));
    assert_eq!((world.pool.is_away(1), world.pool.paused()), (true, 1));
    world.bring_back();
    world.rest();
    assert_eq!((state(&world, 1), world.pool.resync().failed), (MemberState::In, 0));
    assert!(world.oracle.is_open(waits));
    ask(&mut world, discard());
    assert!(!world.oracle.is_open(waits));
    world.judge_now().unwrap();
}

/// Of two PVs neither is enough, unless it has seen the other go.
#[test]
fn a_pool_is_opened_without_a_pv_by_a_majority_alone() {
    let [one, two] = [1, 2].map(|number| Uuid([number; 16]));
    let missing = |world: &World, pv| match open_without(world, pv) {
        Err(NotOpened::Undecided(pvs)) => pvs,
        other => panic!("{:?}", other.map(|_| ())),
    };
    let mut world = world_of("two");
    assert_eq!((missing(&world, 0), missing(&world, 1)), (vec![one], vec![two]));
    world.lose(1);
    assert_eq!(fault(&mut world, write(A, 0, 4 * KIB)), None);
    assert_eq!(missing(&world, 0), [one], "the second knows nothing of what the first did");
    assert!(open_without(&world, 1).is_ok());
    // Of two in one failure group each may be missing. The other group may have gone on alone, though it has fewer copies of the journal.
    let world = world_of("quiet");
    assert!([0, 2].iter().all(|pv| open_without(&world, *pv).is_ok()));
    assert_eq!(missing(&world, 1), [two]);
}

/// A PV that is there again and could not get what it missed: the other failure group is needed.
#[test]
fn the_last_good_leg_is_never_done_without() {
    let mut world = world_of("quiet");
    world.lose(1);
    assert_eq!(fault(&mut world, write(A, 0, 4 * KIB)), None);
    assert_eq!(fault(&mut world, remove_pv(1)), Some(Fault::NoSpace));
    // Another fails as well: who asks is told, and nothing is made up.
    world.lost = Some(0);
    assert_eq!(fault(&mut world, write(A, 0, 4 * KIB)), Some(Fault::Medium));
    assert!(!world.pool.is_away(0) && world.pool.is_serving());
    world.lost = Some(1);
    for pv in [0, 2] {
        world.unreadable = Some(pv);
        world.bring_back();
        world.rest();
        if world.pool.resync().failed > 0 {
            assert_eq!(state(&world, 1), MemberState::Returning);
            assert!(matches!(open_without(&world, pv), Err(NotOpened::Missing(_))));
            assert!(open_without(&world, 1).is_ok());
        }
        world.unreadable = None;
        world.move_again();
        world.rest();
        assert_eq!((state(&world, 1), world.pool.resync().failed), (MemberState::In, 0));
        assert!([0, 2].iter().all(|pv| open_without(&world, *pv).is_ok()));
        world.lose(1);
        assert_eq!(fault(&mut world, write(A, 0, 4 * KIB)), None);
    }
}

/// A read of the first sectors of an LU.
pub(super) fn read_first(world: &mut World) -> Vec<u8> {
    let tag = world.submit(Request::Read(part(A, 0, 4 * KIB)));
    while world.oracle.is_open(tag) {
        assert!(world.step());
    }
    assert_eq!(world.faults.get(&tag), None);
    world.found(tag)
}

/// A crash left a write on the first leg alone. Who has read it reads it again when that leg is lost.
fn what_was_read_stays(broken: Option<Rule>) -> bool {
    let mut world = world_of("three");
    ask(&mut world, write(A, 0, 4 * KIB));
    let Lookup::There { legs: [(first, at), _], .. } = world.pool.lookup(part(A, 0, 4 * KIB))
    else {
        panic!("it is there")
    };
    let mut image = Image::new(world.disks.now());
    let bytes = std::rc::Rc::new(vec![0x5a; 4 << 10]);
    image.apply(&Write { pv: first, at, bytes }, Part::All);
    let mut world = World::open(image.pages(), world.oracle.clone(), broken).unwrap();
    while !world.pool.is_serving() {
        assert!(world.step());
    }
    let found = read_first(&mut world);
    world.lose(first);
    ask(&mut world, Step::Ask(Request::Checkpoint));
    read_first(&mut world) == found
}

#[test]
fn what_was_read_after_a_crash_stays_whichever_leg_is_lost() {
    assert!(what_was_read_stays(None));
    assert!(!what_was_read_stays(Some(Rule::ReadAfterMend)), "that is what the rule is for");
}

/// A block is on its way from one leg to the other when the first is lost: who writes it then waits until the copy has landed.
#[test]
fn a_copy_that_is_late_does_not_land_behind_a_write() {
    let mut world = world_of("three");
    ask(&mut world, write(A, 0, 4 * KIB));
    world.kill().unwrap();
    let (op, from, late) = loop {
        if let Some(begun) = world.begin_copy() {
            break begun;
        }
        assert!(world.step());
    };
    let extent = part(A, 0, 4 * KIB);
    let writes = world.submit(Request::Write { extent, durable: false });
    world.lose(from);
    ask(&mut world, checkpoint());
    assert!(world.pool.is_away(from) && world.oracle.is_open(writes));
    world.disks.write(late, false);
    world.pool.done(op, Outcome::Done);
    ask(&mut world, checkpoint());
    assert!(!world.oracle.is_open(writes));
    world.judge_now().unwrap();
}

/// Blocks are given back and others written for the first time, the pool is opened again, and at each point of the checkpoint that ends the activity a PV is lost.
fn a_checkpoint_that_fails(setup: &Setup, broken: Option<Rule>) -> Result<(), String> {
    for lost in [0, 1] {
        for point in 0..40 {
            let mut world = World::open(setup.pages.clone(), setup.oracle.clone(), broken).unwrap();
            world.rest();
            ask(&mut world, write(A, 70 * KIB, 4 * KIB));
            ask(&mut world, flush(A));
            ask(&mut world, checkpoint());
            ask(&mut world, ask_for(Request::Zeroes(part(A, 0, 64 * KIB))));
            ask(&mut world, write(A, 128 * KIB, 4 * KIB));
            ask(&mut world, flush(A));
            world.kill().unwrap();
            world.rest();
            let asked = world.submit(Request::Checkpoint);
            for _ in 0..point {
                world.step();
            }
            world.lose(lost);
            world.rest();
            if world.oracle.is_open(asked) {
                return Err(format!("the checkpoint does not end, PV {lost} lost at {point}"));
            }
            ask(&mut world, write(B, 0, 4 * KIB));
            ask(&mut world, checkpoint());
            // And it is lost again on its way back.
            for _ in 0..2 {
                world.bring_back();
                for _ in 0..point {
                    world.step();
                }
                world.lose(lost);
                ask(&mut world, flush(B));
            }
            world.bring_back();
            world.rest();
            world.judge_now().map_err(|wrong| format!("{wrong}\n  PV {lost} lost at {point}"))?;
            let faults = world.faults.values().filter(|fault| **fault != Fault::Medium);
            let faults: Vec<_> = faults.collect();
            if !faults.is_empty() || world.pool.resync().failed > 0 {
                return Err(format!("{faults:?}, PV {lost} lost at {point}"));
            }
            judge(Image::new(world.disks.now()), None, &world.oracle, None)?;
        }
    }
    Ok(())
}

#[test]
fn a_checkpoint_that_fails_on_a_pv_is_made_again() {
    let setup = setups().into_iter().find(|setup| setup.name == "checkpointed").unwrap();
    a_checkpoint_that_fails(&setup, None).unwrap();
    let found = a_checkpoint_that_fails(&setup, Some(Rule::ActivityGoesOn));
    assert!(found.is_err(), "that is what the rule is for");
}

/// Two PVs of a failure group are away in turn, and the one that was away first returns first: what it has is older than what the other has.
fn two_that_were_away(broken: Option<Rule>) -> Result<(), String> {
    let mut world = world_of("quiet");
    world.pool.broken = broken;
    // The second PV has no more room than one chunk: so the legs have the same numbers when the first chunk is mapped anew.
    ask(&mut world, write(B, CHUNK_BYTES, 4 * KIB));
    ask(&mut world, flush(B));
    let quieten = |world: &mut World| {
        world.kill().map_err(|error| error.to_string())?;
        world.rest();
        ask(world, checkpoint());
        Ok::<(), String>(())
    };
    quieten(&mut world)?;
    world.lose(0);
    ask(&mut world, ask_for(Request::Discard(part(A, 0, CHUNK_BYTES))));
    ask(&mut world, write(A, 0, 4 * KIB));
    ask(&mut world, flush(A));
    quieten(&mut world)?;
    world.lost = Some(2);
    ask(&mut world, checkpoint());
    if !world.pool.is_away(2) {
        return Err("it was not seen that it is lost".to_string());
    }
    ask(&mut world, Step::Ask(Request::ReturnPv { pv: 0 }));
    world.judge_now()?;
    world.bring_back();
    world.judge_now()?;
    if world.pool.is_away(0) || world.pool.is_away(2) {
        return Err("a PV is away".to_string());
    }
    judge(Image::new(world.disks.now()), None, &world.oracle, None)
}

#[test]
fn a_pv_that_was_away_longer_does_not_bring_back_what_was() {
    two_that_were_away(None).unwrap();
    let found = two_that_were_away(Some(Rule::QuietTogether));
    assert!(found.is_err(), "that is what the rule is for");
}

/// Both PVs went on without the other. Neither is overwritten, whether they are found when the pool is opened or one returns while it is.
#[test]
fn two_legs_that_went_on_apart_are_refused() {
    assert!(are_told_apart(None, 0));
    // One went on by far more.
    assert!(are_told_apart(None, 3));
    assert!(!are_told_apart(Some(Rule::SeenBefore), 3), "that is what the rule is for");
}

/// All that a PV has.
pub(super) fn pages_of(world: &World, pv: u16) -> Pages {
    let pages = world.disks.now().iter().filter(|((of, _), _)| *of == pv);
    pages.map(|(key, page)| (*key, page.clone())).collect()
}

fn are_told_apart(broken: Option<Rule>, kills: u32) -> bool {
    let side = |lost, kills| {
        let mut world = world_of("two");
        world.pool.broken = broken;
        world.lose(lost);
        assert_eq!(fault(&mut world, write(A, 0, 4 * KIB)), None);
        for _ in 0..kills {
            world.kill().unwrap();
            world.rest();
        }
        assert_eq!(fault(&mut world, flush(A)), None);
        world
    };
    let (mut first, second) = (side(1, kills), side(0, 0));
    let mut both = pages_of(&first, 0);
    both.extend(pages_of(&second, 1));
    let Err(NotOpened::NotChosen(NotChosen::Fork { first: one, second: other, .. })) =
        Pool::open(&mut Image::new(&both), SERVER, None, POLICY)
    else {
        return false;
    };
    let mut sides = [one, other];
    sides.sort();
    assert_eq!(sides, [1, 2].map(|number| vec![Uuid([number; 16])]));
    first.disks.replace(1, pages_of(&second, 1));
    let returns = first.bring_back().unwrap();
    first.rest();
    assert_eq!(first.faults.get(&returns), Some(&Fault::Forked));
    // And one that is no PV of the pool.
    first.lost = Some(1);
    first.disks.replace(1, Pages::new());
    let returns = first.bring_back().unwrap();
    first.rest();
    assert_eq!(first.faults.get(&returns), Some(&Fault::OtherPv));
    assert_eq!(state(&first, 1), MemberState::Stale);
    true
}
