//! LUs whose data has checksums: what is read of what is quiet is what was written, whatever a leg has there.

mod between;

use super::disk::SECTOR;
use super::layers::{ask_for, delete, flush, pool, setup, snapshot};
use super::mirror::{add_to, alphabet, checkpoint};
use super::oracle::stamp;
use super::*;
use crate::choose::SUMS;
use crate::pool::{Finding, FindingKind};

const PAGE: u64 = 4096;
/// What has the checksums of the first LU.
const SPACE: u32 = 2;
/// Another LU with checksums.
const OTHER: u32 = 3;

fn create(chunks: u32) -> Step {
    ask_for(Request::CreateSummed { chunks, thick: false, tier: 0, asked: 0 })
}

/// Time goes by, and what that leads to is done; more than once, since what has checksums is read first.
fn look(world: &mut World) {
    for _ in 0..3 {
        world.look(true);
        world.rest();
    }
}

/// Two LUs on three PVs, of which some was written, and is quiet or not.
pub(super) fn setups() -> Vec<Setup> {
    let begin = [create(3), create(2), write(A, 0, 12 * KIB), write(A, 70 * KIB, 4 * KIB)];
    let more = [third(), write(OTHER, 0, 4 * KIB), flush(A), flush(OTHER)];
    let mut world = pool([0, 1, 1], 12);
    let first = setup(&mut world, "active", &[&begin[..], &more].concat());
    look(&mut world);
    assert_eq!(world.pool.active_chunks(), 0);
    vec![first, setup(&mut world, "quiet", &[checkpoint()])]
}

fn world_of(name: &str) -> World {
    at_rest(setups(), name)
}

/// What is done with LUs that have checksums.
fn steps() -> Vec<Step> {
    let other = |step: Step| match step {
        Step::Ask(Request::Write { extent, durable }) if extent.lu == B => {
            Step::Ask(Request::Write { extent: Extent { lu: OTHER, ..extent }, durable })
        }
        Step::Ask(Request::Flush { lu: B }) => flush(OTHER),
        Step::Ask(Request::Create { .. }) => create(1),
        step => step,
    };
    let looks = [Step::Look; 12];
    let scrub = ask_for(Request::Scrub);
    let more = [scrub, write(A, 70 * KIB, 4 * KIB), zeroes(), move_sums(1), move_sums(2)];
    alphabet().into_iter().map(other).chain(looks).chain(more).collect()
}

fn third() -> Step {
    write(A, 2 * CHUNK_BYTES, 4 * KIB)
}

fn zeroes() -> Step {
    ask_for(Request::Zeroes(part(A, 0, 64 * KIB)))
}

fn move_sums(pv: u16) -> Step {
    ask_for(Request::Move { lu: SPACE, vchunk: 0, leg: 0, pv })
}

/// Sequences in which a chunk is quiet, changed, and quiet again, while others do something to it.
fn known() -> Known {
    let [one, other] = [Step::Lose(0), Step::Lose(1)];
    let (write, look) = (write(A, 0, 4 * KIB), Step::Look);
    let mut all = Vec::new();
    for setup in ["active", "quiet"] {
        all.push((setup, vec![look, look, look, checkpoint()]));
        all.push((setup, vec![write, flush(A), look, checkpoint()]));
        // Both have their checksums in one chunk, which is on another PV than they are.
        all.push((setup, vec![write, third(), look, look, flush(A)]));
        all.push((setup, vec![write, third(), flush(A), look, look, write, look]));
        all.push((setup, vec![write, look, look, look]));
        all.push((setup, vec![write, look, write, look, look, flush(A)]));
        all.push((setup, vec![look, write, look, Step::Kill, look, look]));
        all.push((setup, vec![look, look, move_to(2), look, move_to(1), look]));
        all.push((setup, vec![look, move_sums(2), write, look, look, look]));
        all.push((setup, vec![look, look, one, write, Step::Return, look, look]));
        all.push((setup, vec![look, look, other, flush(A), Step::Return, look, look]));
        all.push((setup, vec![zeroes(), look, look, write, look, look]));
        all.push((setup, vec![look, look, resize(A, 1), resize(A, 3), look, look]));
        all.push((setup, vec![look, delete(A), create(1), look, look]));
        all.push((setup, vec![look, look, one, add_to(0), remove_pv(0), look, look, look]));
    }
    all
}

fn explore(explorer: &mut Explorer, setups: &[Setup]) -> Result<(), String> {
    explorer.all(setups, (known(), 4, &[0, u32::MAX]), (&steps(), 5))
}

/// Nothing is lost, and nothing that is right is taken for wrong.
#[test]
fn no_crash_leaves_checksums_that_do_not_hold() {
    let setups = setups();
    let count = assert_keeps(images_max(), |explorer| explore(explorer, &setups));
    assert!(count.without > count.images / 20, "{count:?}");
}

/// Each rule is broken once on purpose, and found.
#[test]
fn each_broken_rule_of_checksums_is_found() {
    let setups = setups();
    let rules = [Rule::SumsBeforeRoot, Rule::SumsDurable];
    assert_found(&rules, 60_000, |explorer| explore(explorer, &setups));
}

/// Checksums are made, and the chunk is changed and quiet again before they are written.
fn that_are_late(broken: Option<Rule>) -> Result<(), String> {
    let mut world = quiet();
    world.pool.broken = broken;
    ask(&mut world, write(A, 0, 4 * KIB));
    world.look(true);
    let sums: Vec<(u16, u64)> = legs(&world, SPACE, 0);
    let held = loop {
        if !world.step() {
            return Err("no checksums are written".to_string());
        }
        let held = world.hold_own(&sums);
        if !held.is_empty() {
            break held;
        }
    };
    ask(&mut world, write(A, 4 * KIB, 4 * KIB));
    ask(&mut world, flush(A));
    world.look(true);
    world.rest();
    world.let_go(held);
    while world.step() {
        judge(Image::new(world.disks.stable()), None, &world.oracle, None)?;
    }
    look(&mut world);
    world.judge_now()
}

#[test]
fn checksums_that_are_late_do_not_hold() {
    that_are_late(None).unwrap();
    assert!(that_are_late(Some(Rule::SumsOfUnchanged)).is_err(), "that is what the rule is for");
}

/// Where a byte of the first chunk of an LU is, on each leg.
fn legs(world: &World, lu: u32, at: u64) -> Vec<(u16, u64)> {
    let legs = world.pool.shown(lu, 0).kept.into_iter();
    let legs = legs.map(|(id, ..)| (id.pv, u64::from(id.chunk) * CHUNK_BYTES + at));
    legs.collect()
}

/// What a client reads there, or why it does not.
fn read(world: &mut World, at: u64, bytes: u64) -> Result<Vec<u8>, Fault> {
    let tag = ask(world, ask_for(Request::Read(part(A, at, bytes))));
    assert!(!world.oracle.is_open(tag), "it is answered");
    let found = world.found(tag);
    world.faults.get(&tag).map_or(Ok(found), |fault| Err(*fault))
}

/// The first LU has a slot, so that it is known where it is.
fn quiet() -> World {
    let mut world = world_of("quiet");
    read(&mut world, 0, 4 * KIB).unwrap();
    assert_eq!((world.pool.active_chunks(), legs(&world, A, 0).len()), (0, 2));
    world
}

fn scrub(world: &mut World) -> Vec<Finding> {
    world.pool.findings();
    let tag = ask(world, ask_for(Request::Scrub));
    assert_eq!((world.oracle.is_open(tag), world.faults.get(&tag)), (false, None));
    world.pool.findings()
}

/// Reads at each leg alone, aligned and not.
fn reads_are_right(world: &mut World) {
    for last in [false, true] {
        world.pool.last_leg = last;
        let all = [(0, 12), (1, 1), (3, 6), (60, 16), (64, 12), (71, 1)];
        for (at, bytes) in all.map(|(at, bytes)| (at * KIB, bytes * KIB)) {
            let found = read(world, at, bytes).unwrap();
            world.oracle.judge(super::oracle::Death::Process, A, at, &found).unwrap();
        }
    }
    world.pool.last_leg = false;
}

#[test]
fn what_a_leg_has_changed_is_never_shown_and_is_written_there_again() {
    for leg in [0, 1] {
        for (bit, at) in [0, 4 * KIB + 511, 12 * KIB - 1, 70 * KIB].into_iter().enumerate() {
            let mut world = quiet();
            let (pv, byte) = legs(&world, A, at)[leg];
            world.disks.turn_bit(pv, byte, bit as u8);
            reads_are_right(&mut world);
            let page = at / PAGE * PAGE;
            let repaired =
                Finding { kind: FindingKind::Repaired, lu: A, at: page, pvs: [Some(pv), None] };
            assert_eq!(world.pool.findings(), [repaired]);
            assert_eq!((scrub(&mut world), world.pool.active_chunks()), (vec![], 0));
            world.judge_now().unwrap();
        }
    }
}

#[test]
fn a_scrub_finds_what_nobody_reads() {
    for leg in [0, 1] {
        let mut world = quiet();
        let turned = [0, 8 * KIB, 70 * KIB].map(|at| (at, legs(&world, A, at)[leg]));
        for (_, (pv, byte)) in turned {
            world.disks.turn_bit(pv, byte, 3);
        }
        // After an opening: checksums are read from where they are.
        world.kill().unwrap();
        world.rest();
        let expected = turned.map(|(at, (pv, _))| {
            let at = at / PAGE * PAGE;
            Finding { kind: FindingKind::Repaired, lu: A, at, pvs: [Some(pv), None] }
        });
        assert_eq!(scrub(&mut world), expected);
        assert_eq!(scrub(&mut world), []);
        world.judge_now().unwrap();
    }
}

#[test]
fn where_both_legs_are_wrong_there_is_an_error_and_no_wrong_data() {
    let mut world = quiet();
    for (leg, (pv, byte)) in legs(&world, A, 5 * KIB).into_iter().enumerate() {
        world.disks.turn_bit(pv, byte, leg as u8);
    }
    for last in [false, true] {
        world.pool.last_leg = last;
        assert_eq!(read(&mut world, 4 * KIB, 512), Err(Fault::Medium));
        assert_eq!(read(&mut world, 0, 12 * KIB), Err(Fault::Medium));
        // What is beside it is there.
        assert!(read(&mut world, 0, 4 * KIB).is_ok() && read(&mut world, 8 * KIB, 4 * KIB).is_ok());
    }
    let lost = world.pool.findings();
    assert!(lost.iter().all(|found| (found.kind, found.at) == (FindingKind::Lost, 4 * KIB)));
    assert_eq!(lost.len(), 1, "it is told once: {lost:?}");
    assert_eq!(scrub(&mut world).len(), 1);
    // Each leg is wrong in another place.
    let mut world = quiet();
    for ((pv, byte), at) in legs(&world, A, 0).into_iter().zip([0, 8 * KIB]) {
        world.disks.turn_bit(pv, byte + at, 7);
    }
    reads_are_right(&mut world);
    assert_eq!(scrub(&mut world), []);
    // One leg is away, and the other is wrong.
    let mut world = quiet();
    let [(one, _), (other, byte)] = legs(&world, A, 0)[..] else { panic!("it is there twice") };
    world.disks.turn_bit(other, byte, 0);
    world.lose(one);
    ask(&mut world, flush(A));
    assert_eq!(read(&mut world, 0, 12 * KIB), Err(Fault::Medium));
    assert!(read(&mut world, 4 * KIB, 8 * KIB).is_ok());
    // It is written anew, and there are others when it is quiet.
    world.bring_back();
    world.rest();
    ask(&mut world, write(A, 0, 4 * KIB));
    look(&mut world);
    assert_eq!(world.pool.active_chunks(), 0);
    reads_are_right(&mut world);
}

/// A leg with a wrong block moves: it is wrong where it goes, and is found there.
#[test]
fn what_is_wrong_stays_known_as_wrong_when_it_moves() {
    for leg in [0, 1] {
        let mut world = quiet();
        let (pv, byte) = legs(&world, A, 0)[leg];
        world.disks.turn_bit(pv, byte, 6);
        assert_eq!(fault(&mut world, add_to(0)), None);
        assert_eq!(fault(&mut world, remove_pv(pv)), None);
        assert!(legs(&world, A, 0).iter().all(|(on, _)| *on != pv));
        reads_are_right(&mut world);
        look(&mut world);
        assert_eq!(world.pool.active_chunks(), 0);
        assert_eq!(scrub(&mut world), []);
        world.kill().unwrap();
        world.rest();
        reads_are_right(&mut world);
    }
}

/// A record of checksums is damaged on one leg, and is written again; or on both, and is made anew.
#[test]
fn checksums_that_are_damaged_are_made_anew() {
    for both in [false, true] {
        for bit in [0, 8 * 40, 8 * 64, 8 * 65_599] {
            let mut world = quiet();
            ask(&mut world, move_sums(2));
            ask(&mut world, move_sums(1));
            let places = legs(&world, SPACE, bit / 8);
            assert_eq!(places.len(), 2);
            for (pv, byte) in places.into_iter().take(if both { 2 } else { 1 }) {
                world.disks.turn_bit(pv, byte, (bit % 8) as u8);
            }
            world.kill().unwrap();
            world.rest();
            reads_are_right(&mut world);
            look(&mut world);
            assert_eq!(world.pool.active_chunks(), 0);
            read(&mut world, 0, 4 * KIB).unwrap();
            let (pv, byte) = legs(&world, A, 0)[0];
            world.disks.turn_bit(pv, byte, 0);
            world.kill().unwrap();
            world.rest();
            reads_are_right(&mut world);
            assert_eq!(scrub(&mut world).len(), 0);
        }
    }
}

/// What is read is the rule: without it a turned bit is shown.
#[test]
fn without_the_rule_a_turned_bit_is_shown() {
    let mut world = quiet();
    world.pool.broken = Some(Rule::ReadsVerified);
    let (pv, byte) = legs(&world, A, 0)[0];
    world.disks.turn_bit(pv, byte, 0);
    let found = read(&mut world, 0, 4 * KIB).unwrap();
    assert!(world.oracle.judge(super::oracle::Death::Process, A, 0, &found).is_err());
}

/// What others do not know they do not open.
#[test]
fn a_pool_has_the_feature_when_the_first_is_made() {
    let mut world = pool([0, 1, 1], 9);
    let has = |world: &World| world.pool.superblock().features[0] & SUMS != 0;
    ask(&mut world, ask_for(Request::Create { chunks: 1, thick: false, tier: 0, asked: 0 }));
    assert!(!has(&world));
    assert_eq!(fault(&mut world, create(1)), None);
    assert!(has(&world));
    assert_eq!(world.pool.lus().collect::<Vec<_>>(), [(1, 1), (2, 1)]);
    // One that is asked for again is the one that was made.
    let asked = Request::CreateSummed { chunks: 1, thick: true, tier: 0, asked: 77 };
    for _ in 0..2 {
        world.pool.submit(1 << 40, asked);
    }
    let mut made = Vec::new();
    world.oracle.other(1 << 40);
    for effect in world.pool.effects() {
        made.push(format!("{effect:?}"));
    }
    assert!(!made.is_empty());
}

#[test]
fn what_is_not_offered_is_refused() {
    let mut world = quiet();
    assert_eq!(fault(&mut world, snapshot(&[A])), Some(Fault::HasSums));
    reads_are_right(&mut world);
    let mut world = at_rest(super::setups(), "empty");
    assert_eq!(fault(&mut world, create(1)), Some(Fault::NoLegs));
}

/// A write to a chunk goes its way, and what is read of it meanwhile is one or the other.
#[test]
fn what_is_being_changed_is_read_as_it_is() {
    let mut world = quiet();
    let tag = world.submit(Request::Write { extent: part(A, 0, 4 * KIB), durable: false });
    let held = loop {
        assert!(world.step());
        let held = world.hold_writes();
        if !held.is_empty() {
            break held;
        }
    };
    reads_are_right(&mut world);
    world.let_go(held);
    world.rest();
    assert!(!world.oracle.is_open(tag));
    assert_eq!(read(&mut world, 0, SECTOR as u64), Ok(stamp(A, tag).to_vec()));
    reads_are_right(&mut world);
    assert!(world.pool.active_chunks() > 0);
}
