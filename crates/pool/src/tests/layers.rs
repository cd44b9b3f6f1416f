//! Snapshots, clones and rollbacks, while others work and between crashes.

use super::*;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::disk::SECTOR;
use super::oracle::stamp;
use super::world::{POLICY, SERVER, read_all};
use crate::choose::NotChosen;
use crate::pool::{Fault, Group, Lookup, NotOpened, Policy, Pool};

/// The snapshot of the first LU in the setup "shared".
pub(super) const S: u32 = 3;
/// The clone of it.
pub(super) const C: u32 = 6;

pub(super) fn ask_for(request: Request) -> Step {
    Step::Ask(request)
}

pub(super) fn snapshot(lus: &[u32]) -> Step {
    ask_for(Request::Snapshot { lus: Group::of(lus), asked: 0 })
}

pub(super) fn rollback(lu: u32, snapshot: u32) -> Step {
    roll_back(&[(lu, snapshot)])
}

pub(super) fn roll_back(pairs: &[(u32, u32)]) -> Step {
    let (lus, snapshots): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
    ask_for(Request::Rollback { lus: Group::of(&lus), snapshots: Group::of(&snapshots) })
}

/// The container of the first LU's layer goes to another PV.
pub(super) fn move_layer(pv: u16) -> Step {
    ask_for(Request::Move { lu: 4, vchunk: 0, leg: 0, pv })
}

pub(super) fn delete(lu: u32) -> Step {
    ask_for(Request::Delete { lu })
}

pub(super) fn flush(lu: u32) -> Step {
    ask_for(Request::Flush { lu })
}

/// A pool of three PVs in these failure groups.
pub(super) fn pool(groups: [u8; 3], chunks: u32) -> World {
    let pv = |number: u8| NewPv {
        pv: Uuid([number; 16]),
        chunks,
        tier: 0,
        group: groups[usize::from(number) - 1],
    };
    fresh(&[1, 2, 3].map(pv))
}

/// Carries out steps, and is a setup then.
pub(super) fn setup(world: &mut World, name: &'static str, steps: &[Step]) -> Setup {
    for step in steps {
        let Step::Ask(request) = step else { panic!("a request") };
        let tag = world.submit(*request);
        world.rest();
        assert_eq!((world.oracle.is_open(tag), world.faults.get(&tag)), (false, None), "{step:?}");
    }
    for pv in 0..3 {
        let mark = world.disks.mark();
        world.disks.flush(pv, mark);
    }
    Setup { name, pages: world.disks.now().clone(), oracle: world.oracle.clone() }
}

pub(super) fn setups() -> Vec<Setup> {
    let create = ask_for(Request::Create { chunks: 1, thick: false, tier: 0, asked: 0 });
    let alone = [create, create, write(A, 0, 12 * KIB), flush(A)];
    let shared = [snapshot(&[A]), ask_for(Request::Clone { snapshot: S, asked: 0 })];
    let above = [write(A, 2 * KIB, 4 * KIB), write(C, 0, 512), flush(A), flush(C)];
    let checkpointed = [ask_for(Request::Checkpoint), write(A, 64 * KIB, 4 * KIB)];
    let big = ask_for(Request::Create { chunks: 12, thick: false, tier: 0, asked: 0 });
    let fill = (0..8).map(|chunk| write(7, chunk * CHUNK_BYTES, 512));
    let mut world = pool([0; 3], 9);
    let mut mirrored = pool([0, 1, 1], 9);
    vec![
        setup(&mut world, "alone", &alone),
        setup(&mut world, "shared", &shared),
        setup(&mut world, "above", &above),
        setup(&mut world, "checkpointed", &checkpointed),
        // Of twelve chunks for LUs all but one have an owner.
        setup(&mut world, "almost full", &[vec![big], fill.collect()].concat()),
        setup(&mut world, "full", &[write(7, 8 * CHUNK_BYTES, 512), flush(7)]),
        setup(&mut mirrored, "mirrored", &[&alone[..], &shared, &above, &checkpointed].concat()),
    ]
}

pub(super) fn alphabet() -> Vec<Step> {
    let checkpoint = ask_for(Request::Checkpoint);
    vec![
        write(A, 0, 4 * KIB),
        write(A, 512, 512),
        write(A, 62 * KIB, 4 * KIB),
        write(A, 10 * KIB, 24 * KIB),
        write(C, 0, 4 * KIB),
        write(C, 62 * KIB, 4 * KIB),
        write(S, 0, 4 * KIB),
        write(B, 0, 4 * KIB),
        ask_for(Request::Write { extent: part(A, 4 * KIB, 4 * KIB), durable: true }),
        ask_for(Request::Zeroes(part(A, 2 * KIB, 64 * KIB))),
        ask_for(Request::Discard(part(A, 0, CHUNK_BYTES))),
        flush(A),
        flush(A),
        flush(C),
        snapshot(&[A]),
        snapshot(&[A, B]),
        snapshot(&[A, C]),
        ask_for(Request::Clone { snapshot: S, asked: 0 }),
        rollback(A, S),
        delete(A),
        delete(S),
        delete(C),
        resize(A, 2),
        move_to(1),
        move_to(2),
        move_layer(1),
        move_layer(2),
        remove_pv(0),
        add_pv(),
        checkpoint,
        checkpoint,
        Step::Cancel,
        Step::Kill,
    ]
}

/// Sequences in which a rule matters and that chance finds late.
fn known() -> Known {
    let checkpoint = ask_for(Request::Checkpoint);
    let durable = ask_for(Request::Write { extent: part(A, 4 * KIB, 4 * KIB), durable: true });
    // After that channels know where it is.
    let own = write(A, 2 * KIB, 512);
    vec![
        // Writes are under way when a snapshot is made, for which nobody flushes afterwards but who wrote.
        ("alone", vec![write(A, 64 * KIB, 4 * KIB), snapshot(&[A]), flush(A), flush(A)]),
        ("alone", vec![write(A, 64 * KIB, 4 * KIB), snapshot(&[A]), write(B, 0, 512), flush(A)]),
        (
            "alone",
            vec![write(A, 0, 512), write(A, 2 * KIB, 4 * KIB), snapshot(&[A]), flush(A), flush(A)],
        ),
        // … what was under way goes on when somebody waits for it, and its LU is flushed then.
        (
            "above",
            vec![
                write(A, 62 * KIB, 4 * KIB),
                write(A, 66 * KIB, 2 * KIB),
                snapshot(&[A]),
                move_to(1),
                move_to(2),
                flush(A),
            ],
        ),
        (
            "above",
            vec![
                write(A, 62 * KIB, 4 * KIB),
                write(A, 66 * KIB, KIB),
                snapshot(&[A, C]),
                move_to(2),
                move_to(1),
                flush(A),
                flush(A),
            ],
        ),
        // A channel writes where a snapshot is about to be made.
        ("alone", vec![write(A, 0, 4 * KIB), snapshot(&[A]), flush(A)]),
        ("alone", vec![write(A, 70 * KIB, 4 * KIB), snapshot(&[A, B]), write(A, 0, 4 * KIB)]),
        ("alone", vec![write(A, 0, 512), flush(A), snapshot(&[A]), write(A, 512, 512), Step::Kill]),
        // … or goes back, above another: what it overwrites is its own.
        ("above", vec![own, write(A, 2 * KIB, 4 * KIB), snapshot(&[A]), flush(A)]),
        ("above", vec![own, write(A, 3 * KIB, 512), snapshot(&[A, C]), own, flush(A)]),
        ("above", vec![own, write(A, 3 * KIB, KIB), rollback(A, S), flush(A), Step::Kill]),
        ("above", vec![own, write(A, 3 * KIB, 512), flush(A), own, flush(A)]),
        ("above", vec![own, write(A, 3 * KIB, 512), move_layer(1), own, flush(A)]),
        // Above, beneath and beside each other, over checkpoints and deaths.
        (
            "shared",
            vec![write(A, 2 * KIB, 4 * KIB), flush(A), checkpoint, write(A, 0, 512), flush(A)],
        ),
        ("shared", vec![write(A, 62 * KIB, 4 * KIB), Step::Kill, flush(A), checkpoint, Step::Kill]),
        (
            "above",
            vec![write(A, 2 * KIB, 8 * KIB), snapshot(&[A, C]), write(A, 0, 4 * KIB), flush(A)],
        ),
        ("above", vec![durable, snapshot(&[A]), durable, Step::Kill]),
        ("above", vec![rollback(A, S), write(A, 512, 512), flush(A), checkpoint]),
        ("above", vec![write(A, 0, 4 * KIB), rollback(A, S), flush(A), Step::Kill]),
        ("checkpointed", vec![rollback(A, S), write(B, 0, 4 * KIB), flush(B), checkpoint]),
        ("checkpointed", vec![delete(A), delete(S), write(C, 0, 4 * KIB), flush(C), delete(C)]),
        ("checkpointed", vec![remove_pv(0), write(A, 0, 4 * KIB), flush(A), checkpoint]),
        ("checkpointed", vec![remove_pv(1), remove_pv(2), checkpoint, flush(A)]),
        // A container moves, and where it was is what somebody else waits for.
        ("almost full", vec![move_layer(0), write(B, 0, 128 * KIB), flush(B)]),
        ("almost full", vec![move_layer(1), write(B, 0, 128 * KIB), flush(B)]),
        ("almost full", vec![move_layer(2), write(B, 0, 128 * KIB), flush(B)]),
        // Each part is in two places.
        (
            "mirrored",
            vec![write(A, 2 * KIB, 4 * KIB), flush(A), checkpoint, write(A, 0, 512), flush(A)],
        ),
        ("mirrored", vec![write(A, 62 * KIB, 4 * KIB), snapshot(&[A]), durable, Step::Kill]),
        // What was a container is what somebody else waits for.
        ("full", vec![delete(C), write(B, 0, 4 * KIB), flush(B)]),
        ("full", vec![rollback(A, S), write(B, 0, 12 * KIB), flush(B)]),
        ("full", vec![write(B, 0, 4 * KIB), snapshot(&[B]), delete(C), flush(B)]),
        (
            "full",
            vec![delete(7), checkpoint, snapshot(&[B]), write(B, 0, 512), flush(B), checkpoint],
        ),
        // … and a channel still writes to it.
        (
            "full",
            vec![
                write(A, 2 * KIB, 512),
                write(A, 2 * KIB, 4 * KIB),
                delete(A),
                checkpoint,
                write(B, 128 * KIB, 8 * KIB),
                flush(B),
            ],
        ),
        (
            "full",
            vec![
                write(C, 0, 512),
                write(C, 0, 512),
                delete(C),
                checkpoint,
                write(B, 128 * KIB, KIB),
                flush(B),
            ],
        ),
        // A chunk that was a container is one again, of another layer.
        (
            "full",
            vec![
                delete(C),
                checkpoint,
                snapshot(&[B]),
                write(B, 0, 512),
                flush(B),
                checkpoint,
                flush(B),
            ],
        ),
    ]
}

#[test]
fn no_crash_loses_what_snapshots_promise() {
    assert_keeps(known(), &alphabet(), 3);
}

/// Whatever of these steps are taken, and wherever a crash is, nothing is lost.
pub(super) fn assert_keeps(known: Known, steps: &[Step], depth: usize) {
    let setups = setups();
    super::assert_keeps(images_max(), |explorer| {
        explorer.all(&setups, (known.clone(), 10, &[0, 2, u32::MAX]), (steps, depth))
    });
}

/// Each of these rules is broken alone, and that is found.
pub(super) fn assert_found(rules: &[Rule], known: fn() -> Known, steps: &[Step], depth: usize) {
    let setups = setups();
    super::assert_found(rules, 60_000, |explorer| {
        explorer.all(&setups, (known(), 10, &[0, 2, u32::MAX]), (steps, depth))
    });
}

#[test]
fn each_broken_rule_of_layers_is_found() {
    let rules = [
        Rule::AnswerAfterLive,
        Rule::BitsAfterData,
        Rule::FlushAfterBits,
        Rule::PresentOnly,
        Rule::CutAfterDrain,
        Rule::CutAfterFlush,
        Rule::ContainersUntilRoot,
        Rule::RootAfterPages,
        Rule::ReuseAfterDrain,
    ];
    assert_found(&rules, known, &alphabet(), 3);
}

/// What a channel overwrites in a layer it has begun by itself: a snapshot that does not wait for it has what came after it.
#[test]
fn a_snapshot_above_another_that_waits_for_no_channel_is_found() {
    let steps = vec![write(A, 2 * KIB, 512), write(A, 2 * KIB, 4 * KIB), snapshot(&[A]), flush(A)];
    for (broken, found) in [(None, false), (Some(Rule::CutAfterDrain), true)] {
        let mut explorer = Explorer::new(broken, images_max());
        let known = explorer.known(&setups(), vec![("above", steps.clone())], (1, &[2, 3, 7]));
        assert_eq!(known.is_err(), found, "{broken:?}: {known:?}");
    }
}

#[test]
fn a_channel_finds_what_is_in_the_head_and_nothing_while_that_may_change() {
    let mut world = world_of("above");
    // So the bits of both containers are known, and that they are there for good.
    ask(&mut world, write(A, 2 * KIB, 512));
    ask(&mut world, write(C, 0, 512));
    let there = |world: &World, lu, at, bytes| {
        matches!(world.pool.lookup(part(lu, at, bytes)), Lookup::There { .. })
    };
    assert!(there(&world, A, 2 * KIB, 4 * KIB) && there(&world, C, 0, 512));
    assert!(!there(&world, A, 2 * KIB - 512, 512), "it is beneath");
    assert!(!there(&world, A, 4 * KIB, 4 * KIB), "a part of it is");
    assert!(!there(&world, C, 512, 512) && !there(&world, S, 0, 512));
    assert_eq!(world.pool.beneath(S), None, "nobody writes there");
    assert_eq!(world.pool.beneath(A).unwrap().last(), Some(&A));
    // From when it is asked for on, until it is done.
    let Step::Ask(snapshot) = snapshot(&[A]) else { panic!("a request") };
    let tag = world.submit(snapshot);
    while world.oracle.is_open(tag) {
        assert!(!there(&world, A, 2 * KIB, 4 * KIB) && there(&world, C, 0, 512));
        assert_eq!(world.pool.beneath(A), None);
        assert!(world.step());
    }
    assert!(world.pool.touched_lus().contains(&A));
    assert!(!there(&world, A, 2 * KIB, 4 * KIB), "it is the snapshot's now");
    assert_eq!(world.pool.beneath(A).unwrap().len(), 3);
    ask(&mut world, write(A, 2 * KIB, 4 * KIB));
    assert!(there(&world, A, 2 * KIB, 4 * KIB));
    ask(&mut world, move_layer(1));
    let layer = world.pool.beneath(A).unwrap()[0];
    let Step::Ask(moves) = ask_for(Request::Move { lu: layer, vchunk: 0, leg: 0, pv: 0 }) else {
        panic!("a request")
    };
    let tag = world.submit(moves);
    assert!(!there(&world, A, 2 * KIB, 4 * KIB) || !world.oracle.is_open(tag));
    world.rest();
    assert!(there(&world, A, 2 * KIB, 4 * KIB));
    let tag = world.submit(Request::Delete { lu: A });
    assert!(world.oracle.is_open(tag) && !there(&world, A, 2 * KIB, 4 * KIB));
}

pub(super) fn world_of(name: &str) -> World {
    let setup = setups().into_iter().find(|setup| setup.name == name).unwrap();
    let mut world = World::open(setup.pages, setup.oracle, None).unwrap();
    world.rest();
    world
}

/// Chunks of PVs that are used.
pub(super) fn used(world: &World) -> u32 {
    world.pool.pvs().map(|pv| pv.used).sum()
}

#[test]
fn a_write_above_a_snapshot_takes_a_slot_and_not_a_chunk() {
    let mut world = world_of("shared");
    let before = used(&world);
    for part in 0..40 {
        ask(&mut world, write(A, part * 64 * KIB, 4 * KIB));
    }
    ask(&mut world, flush(A));
    assert_eq!(used(&world), before + 1, "one container");
}

#[test]
fn deletion_gives_back_what_nobody_else_needs() {
    let mut world = world_of("above");
    // The space of the first LU, its layer, that of the clone.
    assert_eq!(used(&world), 3);
    ask(&mut world, delete(A));
    ask(&mut world, ask_for(Request::Checkpoint));
    assert_eq!(used(&world), 2);
    ask(&mut world, delete(S));
    assert_eq!(used(&world), 2, "the clone needs what is beneath it");
    ask(&mut world, delete(C));
    ask(&mut world, ask_for(Request::Checkpoint));
    assert_eq!((used(&world), world.pool.snapshots().count()), (0, 0));
    let free: u32 = world.pool.pvs().map(|pv| pv.free + pv.own).sum();
    assert_eq!(free, 27, "all of it can be given out");
}

#[test]
fn what_cannot_be_is_refused() {
    let mut world = world_of("shared");
    for (step, fault) in [
        (write(S, 0, 512), Fault::Frozen),
        (snapshot(&[S]), Fault::Frozen),
        (snapshot(&[A, 99]), Fault::NoSuchLu),
        (snapshot(&[A, A]), Fault::Busy),
        (snapshot(&[]), Fault::NoSuchLu),
        (rollback(B, S), Fault::NoSnapshot),
        (rollback(A, B), Fault::NoSnapshot),
        (ask_for(Request::Clone { snapshot: A, asked: 0 }), Fault::NoSnapshot),
        (resize(A, 0), Fault::Shares),
        (resize(S, 2), Fault::Shares),
    ] {
        let tag = ask(&mut world, step);
        assert_eq!(world.faults.get(&tag), Some(&fault), "{step:?}");
    }
}

/// Whenever the power fails while a snapshot is made, who asks for it again has it once, of all its LUs.
#[test]
fn a_snapshot_that_is_asked_for_again_is_made_once() {
    let setups = setups();
    let setup = setups.iter().find(|setup| setup.name == "above").unwrap();
    let request = |asked| Request::Snapshot { lus: Group::of(&[A, B]), asked };
    let open = |pages| {
        let mut world = World::open(pages, Oracle::default(), None).unwrap();
        world.rest();
        world
    };
    let count = |world: &World| {
        let of = |lu| world.pool.snapshots().filter(|made| made.lu == lu).count();
        [of(A), of(B)]
    };
    let (mut before, mut after) = (0, 0);
    for asked in [7, 0] {
        for steps in 0.. {
            let mut world = open(setup.pages.clone());
            let tag = world.submit(request(asked));
            (0..steps).for_each(|_| _ = world.step());
            let over = !world.oracle.is_open(tag);
            for pages in [world.disks.stable().clone(), world.disks.now().clone()] {
                let mut world = open(pages);
                let there = count(&world);
                assert!([[1, 0], [2, 1]].contains(&there), "all or none: {there:?}");
                (before, after) = (before + there[1], after + 1 - there[1]);
                ask(&mut world, ask_for(request(asked)));
                let more = if asked == 0 { there[1] } else { 0 };
                assert_eq!(count(&world), [2 + more, 1 + more], "after {steps} steps");
                ask(&mut world, ask_for(Request::Checkpoint));
                let mut world = open(world.disks.now().clone());
                ask(&mut world, ask_for(request(asked)));
                let more = if asked == 0 { more + 1 } else { 0 };
                assert_eq!(count(&world), [2 + more, 1 + more], "and from the pages");
            }
            if over {
                break;
            }
        }
    }
    assert!(before > 0 && after > 0);
}

/// Whenever the power fails while several LUs are rolled back, all of them are or none is.
#[test]
fn lus_go_back_to_one_moment_together() {
    let mut world = pool([0; 3], 20);
    let create = ask_for(Request::Create { chunks: 1, thick: false, tier: 0, asked: 0 });
    // Snapshots 3 and 5, and after them a block of each LU that was zeros.
    let steps = [create, create, snapshot(&[A, B]), write(A, 0, 512), write(B, 0, 512)];
    let setup = setup(&mut world, "", &[&steps[..], &[flush(A), flush(B)]].concat());
    let Step::Ask(request) = roll_back(&[(A, 3), (B, 5)]) else { panic!("a request") };
    let mut seen = [0; 2];
    for steps in 0.. {
        let mut world = World::open(setup.pages.clone(), Oracle::default(), None).unwrap();
        world.rest();
        let tag = world.submit(request);
        (0..steps).for_each(|_| _ = world.step());
        let over = !world.oracle.is_open(tag);
        for pages in [world.disks.stable(), world.disks.now()] {
            let (_, found) = read_all(Image::new(pages), None, None).unwrap();
            let back = |lu| {
                let first = found.iter().find(|(of, at, _)| (*of, *at) == (lu, 0));
                first.is_none_or(|(.., bytes)| bytes[..SECTOR] == [0; SECTOR])
            };
            assert_eq!(back(A), back(B), "after {steps} steps");
            seen[usize::from(back(A))] += 1;
            assert!(!over || back(A));
        }
        if over {
            break;
        }
    }
    assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
    let mut world = world_of("shared");
    for (pairs, fault) in [
        (vec![(A, S), (A, S)], Fault::Busy),
        (vec![(A, S), (B, S)], Fault::NoSnapshot),
        (vec![(A, S), (99, S)], Fault::NoSuchLu),
        (Vec::new(), Fault::NoSnapshot),
    ] {
        let tag = ask(&mut world, roll_back(&pairs));
        assert_eq!(world.faults.get(&tag), Some(&fault), "{pairs:?}");
    }
}

const CHUNK_SECTORS: u64 = CHUNK_BYTES / SECTOR as u64;

/// What each sector of an LU has that is read: by its first chunk's sector, the LU and tag of who wrote it.
type Model = BTreeMap<u32, BTreeMap<u64, (u32, u64)>>;

fn hold_against(model: &Model, world: &World) -> Result<(), TestCaseError> {
    let shadow = world.shadow();
    let (lus, found) = read_all(Image::new(world.disks.now()), Some(&shadow), None).unwrap();
    prop_assert!(lus.keys().eq(model.keys()), "{:?} {:?}", lus, model.keys());
    for (lu, at, bytes) in found {
        for (sector, number) in bytes.chunks(SECTOR).zip(at / SECTOR as u64..) {
            let has = model[&lu].get(&number);
            let expected = has.map_or([0; SECTOR], |(lu, tag)| stamp(*lu, *tag));
            prop_assert!(sector == expected, "LU {lu} sector {number}: not {has:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever is written, frozen, rolled back, copied, made larger and deleted, one after the other, is what a copy of all of it would be.
    #[test]
    fn layers_are_as_whole_copies(
        groups in prop::sample::select(vec![[0; 3], [0, 1, 1]]),
        steps in prop::collection::vec((0..16_u8, 0..6_usize, 0..136_u64, 1..60_u64), 1..40),
    ) {
        let mut world = pool(groups, 40);
        let create = ask_for(Request::Create { chunks: 1, thick: false, tier: 0, asked: 0 });
        setup(&mut world, "", &[create, create, write(A, 0, 12 * KIB), flush(A)]);
        let mut model: Model = BTreeMap::from([(A, BTreeMap::new()), (B, BTreeMap::new())]);
        model.insert(A, (0..24).map(|sector| (sector, (A, 3))).collect());
        let first = read_all(Image::new(world.disks.now()), None, None).unwrap().1;
        let tag = u64::from_le_bytes(first[0].2[..8].try_into().unwrap()) & 0xffff_ffff;
        model.get_mut(&A).unwrap().values_mut().for_each(|has| has.1 = tag);
        let mut snapshots: BTreeMap<u32, u32> = BTreeMap::new();
        for (what, which, at, sectors) in steps {
            let lus: Vec<u32> =
                model.keys().filter(|lu| !snapshots.contains_key(lu)).copied().collect();
            if lus.is_empty() {
                break;
            }
            let lu = lus[which % lus.len()];
            let frozen = snapshots.keys().nth(which % snapshots.len().max(1)).copied();
            let bytes = sectors * SECTOR as u64;
            let at = at + u64::from(which as u32 % world.pool.chunks_in(lu)) * CHUNK_SECTORS;
            let range = at..at + sectors;
            match (what, frozen) {
                (0..5, _) => {
                    let tag = ask(&mut world, write(lu, at * SECTOR as u64, bytes));
                    let lu_has = model.get_mut(&lu).unwrap();
                    lu_has.extend(range.map(|sector| (sector, (lu, tag))));
                }
                (5, _) => {
                    ask(&mut world, ask_for(Request::Zeroes(part(lu, at * SECTOR as u64, bytes))));
                    model.get_mut(&lu).unwrap().retain(|sector, _| !range.contains(sector));
                }
                (6, _) => {
                    ask(&mut world, flush(lu));
                }
                (7, _) => {
                    let before: Vec<u32> = world.pool.lus().map(|(lu, _)| lu).collect();
                    ask(&mut world, snapshot(&[lu]));
                    let made = world.pool.lus().map(|(lu, _)| lu).find(|lu| !before.contains(lu));
                    let made = made.unwrap();
                    snapshots.insert(made, lu);
                    model.insert(made, model[&lu].clone());
                }
                (8, Some(frozen)) if model.len() < 7 => {
                    let before: Vec<u32> = world.pool.lus().map(|(lu, _)| lu).collect();
                    ask(&mut world, ask_for(Request::Clone { snapshot: frozen, asked: 0 }));
                    let made = world.pool.lus().map(|(lu, _)| lu).find(|lu| !before.contains(lu));
                    model.insert(made.unwrap(), model[&frozen].clone());
                }
                (9, Some(frozen)) if model.contains_key(&snapshots[&frozen]) => {
                    ask(&mut world, rollback(snapshots[&frozen], frozen));
                    model.insert(snapshots[&frozen], model[&frozen].clone());
                }
                (10, Some(frozen)) => {
                    ask(&mut world, delete(frozen));
                    snapshots.remove(&frozen);
                    model.remove(&frozen);
                }
                (12, _) => {
                    // One with snapshots of its own cannot be.
                    let tag = ask(&mut world, ask_for(Request::Detach { lu }));
                    let fault = world.faults.remove(&tag);
                    prop_assert!(fault.is_none_or(|fault| fault == Fault::Needed), "{fault:?}");
                }
                (13, _) => _ = ask(&mut world, ask_for(Request::Coalesce)),
                (14, _) => {
                    let chunks = world.pool.chunks_in(lu);
                    ask(&mut world, resize(lu, (chunks + 1).min(3)));
                }
                (11, _) if model.len() > 3 => {
                    ask(&mut world, delete(lu));
                    model.remove(&lu);
                }
                _ => world.kill().unwrap(),
            }
            world.rest();
            prop_assert_eq!(&world.faults, &BTreeMap::new());
            prop_assert_eq!(world.pool.paused(), 0);
        }
        hold_against(&model, &world)?;
        ask(&mut world, ask_for(Request::Checkpoint));
        hold_against(&model, &world)?;
    }
}

/// A pool without snapshots is what it was; one with them is for who knows of them.
#[test]
fn only_a_pool_with_layers_says_so() {
    let open = |setup: &Setup, layers| {
        let policy = Policy { layers, ..POLICY };
        Pool::open(&mut Image::new(&setup.pages), SERVER, None, policy)
    };
    let setups = setups();
    let [alone, shared] =
        ["alone", "shared"].map(|name| setups.iter().find(|setup| setup.name == name).unwrap());
    assert_eq!(open(alone, false).unwrap().superblock().features, [0; 3]);
    assert_eq!(open(shared, true).unwrap().superblock().features, [1, 0, 0]);
    let refused = open(shared, false).map(|_| ());
    assert_eq!(refused, Err(NotOpened::NotChosen(NotChosen::Features { unknown: 1 })));
}

/// Both places of the page of a container are damaged: who needs the layer is told, and nobody else.
#[test]
fn a_container_without_a_page_stops_its_layer_alone() {
    let mut world = world_of("checkpointed");
    let mut pages = world.disks.now().clone();
    // The containers of both layers are there since before the checkpoint.
    let layers = world.pool.containers();
    let (_, _, id) = layers.iter().find(|(layer, ..)| *layer == 4).unwrap();
    let first = u64::from(id.chunk) * CHUNK_BYTES / 4096;
    pages.retain(|(pv, page), _| *pv != id.pv || !(first..first + 32).contains(page));
    world = World::open(pages, Oracle::default(), None).unwrap();
    world.rest();
    let read = |lu| Step::Ask(Request::Read(part(lu, 0, 4 * KIB)));
    let [of_a, of_c, of_s] = [A, C, S].map(|lu| ask(&mut world, read(lu)));
    assert_eq!(world.faults.get(&of_a), Some(&Fault::Medium));
    assert_eq!([of_c, of_s].map(|tag| world.faults.get(&tag)), [None; 2]);
    ask(&mut world, ask_for(Request::Checkpoint));
    let written = ask(&mut world, write(A, 0, 512));
    assert_eq!(world.faults.get(&written), Some(&Fault::Medium), "nothing is made up");
}

/// A process takes over what another knew of both legs of a chunk, and dies before anybody has used it.
#[test]
fn what_was_taken_over_is_kept_for_the_next() {
    let mut world = pool([0, 1, 1], 9);
    let create = ask_for(Request::Create { chunks: 1, thick: false, tier: 0, asked: 0 });
    setup(&mut world, "", &[create, write(A, 0, 4 * KIB), ask_for(Request::Checkpoint)]);
    let before = world.shadow();
    for _ in 0..2 {
        world.kill().unwrap();
        world.rest();
    }
    judge(Image::new(world.disks.now()), Some(&world.shadow()), &world.oracle, None).unwrap();
    assert_ne!(before, world.shadow(), "of another epoch");
}
