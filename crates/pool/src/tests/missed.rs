//! PVs that return get what they missed, and no more than that.

use std::collections::BTreeSet;

use super::layers::{ask_for, flush, pool};
use super::mirror::{checkpoint, state};
use super::oracle::Death;
use super::*;
use crate::format::BLOCK_BYTES;
use crate::pool::ResyncBlocks;

/// Blocks of each chunk with which clients work here.
const BLOCKS: u64 = 12;

/// Two LUs of two chunks, for which there is room: nothing waits.
fn roomy() -> World {
    let mut world = pool([1, 0, 1], 12);
    let create = ask_for(Request::Create { chunks: 2, thick: false, tier: 0, asked: 0 });
    for step in [create, create, write(A, 0, 12 * KIB), write(B, 70 * KIB, 4 * KIB)] {
        assert_eq!(fault(&mut world, step), None);
    }
    for step in [flush(A), flush(B), checkpoint()] {
        assert_eq!(fault(&mut world, step), None);
    }
    world
}

/// Bytes of some blocks of the first chunk.
fn blocks(first: u64, bytes: u64) -> (u32, u64, u64) {
    (A, first * BLOCK_BYTES, bytes)
}

fn write_at((lu, at, bytes): (u32, u64, u64)) -> Step {
    write(lu, at, bytes)
}

/// All that LUs hold, by one leg and by the other: it is the same, byte by byte, and what it should be.
fn compare(world: &mut World) -> Result<(), String> {
    world.rest();
    let lus: Vec<(u32, u32)> = world.pool.lus().collect();
    let bytes = BLOCKS * BLOCK_BYTES;
    for (lu, chunk) in lus.into_iter().flat_map(|(lu, all)| (0..all).map(move |one| (lu, one))) {
        let at = u64::from(chunk) * CHUNK_BYTES;
        let [first, last] = [false, true].map(|last| {
            world.pool.last_leg = last;
            let tag = world.submit(Request::Read(part(lu, at, bytes)));
            world.rest();
            let found = world.found(tag);
            world.oracle.judge(Death::Process, lu, at, &found).map(|()| found)
        });
        world.pool.last_leg = false;
        let (first, last) = (first?, last?);
        if first != last {
            let byte = first.iter().zip(&last).position(|(one, two)| one != two).unwrap_or(0);
            return Err(format!("the legs of LU {lu} differ in chunk {chunk}, byte {byte}"));
        }
    }
    Ok(())
}

/// What a PV may have missed at most, as somebody sees it who knows of requests and flushes alone.
#[derive(Default)]
struct Model {
    /// LU and block: written since it was last flushed.
    cached: BTreeSet<(u32, u64)>,
    missed: BTreeSet<(u32, u64)>,
    /// It is not known.
    any: bool,
}

impl Model {
    fn writes(&mut self, world: &World, request: Request) {
        let Some(extent) = range_of(request) else { return };
        let end = (extent.at + extent.bytes).div_ceil(BLOCK_BYTES);
        let blocks = (extent.at / BLOCK_BYTES..end).map(|block| (extent.lu, block));
        self.cached.extend(blocks.clone());
        if world.lost.is_some() || !is_whole(world) {
            self.missed.extend(blocks);
        }
    }
}

fn range_of(request: Request) -> Option<Extent> {
    match request {
        Request::Write { extent, .. } | Request::Zeroes(extent) | Request::Discard(extent) => {
            Some(extent)
        }
        _ => None,
    }
}

fn meet(one: Extent, other: Extent) -> bool {
    one.lu == other.lu && one.at < other.at + other.bytes && other.at < one.at + one.bytes
}

fn is_whole(world: &World) -> bool {
    (0..3).all(|pv| state(world, pv) == MemberState::In && !world.pool.is_away(pv as u16))
}

fn any_request(random: &mut Random) -> Request {
    let lu = [A, A, B][random.below(3)];
    let chunk = random.below(2) as u64 * CHUNK_BYTES;
    let at = chunk + random.below(BLOCKS as usize - 2) as u64 * BLOCK_BYTES;
    let within = random.below(128) as u64 * 512;
    let extent = part(lu, at + within, (1 + random.below(128) as u64) * 512);
    match random.below(12) {
        0 => Request::Zeroes(extent),
        1 => Request::Zeroes(part(lu, at, 2 * BLOCK_BYTES)),
        2 => Request::Discard(part(lu, at, 2 * BLOCK_BYTES)),
        3 => Request::Discard(part(lu, chunk, CHUNK_BYTES)),
        4 => Request::Write { extent, durable: true },
        _ => Request::Write { extent, durable: false },
    }
}

/// All PVs are there, and those that are away return.
fn bring_all_back(world: &mut World) {
    world.bring_back();
    world.rest();
    // It stops where it cannot do without what it lost.
    if world.pool.stopped().is_some() {
        world.kill().unwrap();
        world.rest();
    }
    // One that had to be there for the pool to open is no longer lost, and may be away.
    for pv in (0..3).filter(|pv| world.pool.is_away(*pv)).collect::<Vec<_>>() {
        ask(world, Step::Ask(Request::ReturnPv { pv }));
    }
}

/// What happened in sequences, so that it is seen that it happened.
#[derive(Default)]
struct Seen {
    /// It is looked now and then which chunks are quiet.
    looks: bool,
    bounded: u32,
    again: u32,
}

/// A sequence: writes, zeroes, discards, flushes, checkpoints, moves, deaths, and PVs that are lost with what is in their caches, return, and are lost again before they have what they missed.
fn sequence(seed: u64, broken: Option<Rule>, seen: &mut Seen) -> Result<(), String> {
    let mut random = Random(seed);
    for _ in 0..3 {
        random.below(2);
    }
    let mut world = roomy();
    // All that miss something get it at once, or some of them.
    world.pool.policy.mends = [2, 1024][seed as usize % 2];
    (world.pool.broken, world.random, world.schedule) = (broken, random, Schedule::Any);
    let mut model = Model { any: true, ..Model::default() };
    let mut open: Vec<(u64, Extent)> = Vec::new();
    for step in 0..60 {
        if seen.looks && step % 3 == 0 {
            world.look(step % 2 == 0);
        }
        match random.below(24) {
            0..12 => {
                let request = any_request(&mut random);
                let range = range_of(request).unwrap();
                open.retain(|(tag, _)| world.oracle.is_open(*tag));
                // Of what overlaps, the shell lets one begin after the other.
                if open.iter().any(|(_, other)| meet(*other, range)) {
                    world.rest();
                }
                model.writes(&world, request);
                open.push((world.submit(request), range));
            }
            12..15 => {
                world.rest();
                let lu = [A, B][random.below(2)];
                if fault(&mut world, flush(lu)).is_none() {
                    model.cached.retain(|(of, _)| *of != lu);
                }
            }
            15 => _ = ask(&mut world, checkpoint()),
            16..19 if world.lost.is_none() => {
                seen.again += u32::from(!is_whole(&world));
                world.lose(random.below(3) as u16);
                model.missed.extend(&model.cached);
            }
            16..22 => {
                if let Some(pv) = world.lost {
                    // It is seen that it is away, or it is as if it had never been.
                    ask(&mut world, checkpoint());
                    world.copied.remove(&pv);
                    world.bring_back();
                } else {
                    bring_all_back(&mut world);
                }
            }
            22 if random.below(8) == 0 => {
                world.kill().map_err(|error| error.to_string())?;
                model.any = true;
            }
            22 if random.below(4) == 0 => {
                ask(&mut world, move_to(random.below(3) as u16));
                model.any = true;
            }
            _ => (0..random.below(30)).for_each(|_| _ = world.step()),
        }
        if random.below(3) == 0 {
            world.rest();
        }
        if world.pool.stopped().is_some() {
            model.any = true;
            bring_all_back(&mut world);
        }
        // A leg that fails and cannot be done without may differ from the other.
        model.any |= world.faults.values().any(|fault| *fault == Fault::Medium);
        if world.lost.is_none() && is_whole(&world) && world.pool.resync().failed == 0 {
            world.rest();
            let copied: u64 = world.copied.values().sum();
            if copied > model.missed.len() as u64 && !model.any {
                let all = model.missed.len();
                return Err(format!("{copied} blocks were copied, of {all} that were missed"));
            }
            seen.bounded += u32::from(copied > 0 && !model.any);
            compare(&mut world)?;
            world.copied.clear();
            model.missed.clear();
            world.faults.clear();
            for lu in [A, B] {
                ask(&mut world, flush(lu));
            }
            if is_whole(&world) {
                model = Model::default();
            }
        }
    }
    for _ in 0..20 {
        bring_all_back(&mut world);
        world.move_again();
        world.rest();
        if is_whole(&world) {
            return compare(&mut world);
        }
        ask(&mut world, checkpoint());
    }
    Err(format!("not whole again: {:?}", world.pool.resync()))
}

fn all(first: u64, end: u64, broken: Option<Rule>, seen: &mut Seen) -> Result<(), String> {
    (first..end).try_for_each(|seed| {
        sequence(seed, broken, seen).map_err(|wrong| format!("{wrong}\n  seed {seed}"))
    })
}

#[test]
fn legs_are_the_same_after_each_return_and_get_no_more_than_they_missed() {
    let count = std::env::var("POOL_MISSED_SEQUENCES").ok();
    let count: u64 = count.map_or(100, |count| count.parse().unwrap());
    let mut seen = Seen::default();
    all(1, 1 + count, None, &mut seen).unwrap();
    println!("{} returns, {} again", seen.bounded, seen.again);
    assert!(seen.bounded > 80 && seen.again > 25, "{} {}", seen.bounded, seen.again);
}

/// Also while the activity of chunks ends now and then.
#[test]
fn legs_are_the_same_after_each_return_of_what_was_quiet_as_well() {
    let mut seen = Seen { looks: true, ..Seen::default() };
    all(1, 101, None, &mut seen).unwrap();
    println!("{} returns, {} again", seen.bounded, seen.again);
    assert!(seen.bounded > 60 && seen.again > 20, "{} {}", seen.bounded, seen.again);
}

#[test]
fn each_broken_rule_of_what_is_missed_is_found() {
    // The first is found by few.
    let rules = [(300, Rule::MissedCached), (1, Rule::MissedUnderWay), (1, Rule::MissedSince)];
    for (first, rule) in rules {
        let found = all(first, 3000, Some(rule), &mut Seen::default());
        println!("{rule:?}: {found:?}");
        assert!(found.is_err(), "{rule:?} is broken, and nothing is seen of it");
    }
}

/// A pool at rest, with so many blocks of the first chunk written and flushed.
fn world_with(count: u64) -> World {
    let mut world = roomy();
    // What was changed before is not active any more.
    world.kill().unwrap();
    world.rest();
    ask(&mut world, checkpoint());
    for first in 0..count {
        ask(&mut world, write_at(blocks(first, BLOCK_BYTES)));
    }
    ask(&mut world, flush(A));
    world.copied.clear();
    world
}

#[track_caller]
fn returns(world: &mut World) -> u64 {
    world.copied.clear();
    world.bring_back();
    world.rest();
    assert!(is_whole(world));
    world.judge_now().unwrap();
    world.copied.values().sum()
}

/// Of 200 blocks it missed 7: those that were written while it was away, whole or in part, and one that it may not have kept.
#[test]
fn a_leg_that_returns_gets_the_blocks_that_it_missed() {
    let mut world = world_with(200);
    ask(&mut world, write_at(blocks(5, 4 * KIB)));
    world.lose(1);
    for first in [7, 50, 51, 120] {
        ask(&mut world, write_at(blocks(first, 512)));
    }
    ask(&mut world, write(A, 131 * BLOCK_BYTES - 512, 1024));
    ask(&mut world, Step::Ask(Request::Zeroes(part(A, 70 * BLOCK_BYTES + 512, 512))));
    // What is zeros is not copied, and what nobody wrote neither.
    ask(&mut world, Step::Ask(Request::Discard(part(A, 120 * BLOCK_BYTES, 3 * BLOCK_BYTES))));
    world.bring_back();
    let mut told = Vec::new();
    while world.step() {
        told.push(world.pool.resync_blocks());
    }
    let last = *told.last().unwrap();
    assert_eq!(last, ResyncBlocks { planned: 7, copied: 7, failed: 0 });
    assert!(told.iter().all(|now| now.copied <= now.planned), "{told:?}");
    // It never goes back: whoever tells from it how long it takes would be far off.
    let back = |two: &[ResyncBlocks]| two[0].planned == 7 && two[1].copied < two[0].copied;
    assert!(!told.windows(2).any(back), "{told:?}");
    assert!(told.iter().any(|now| now.planned == 7 && (1..7).contains(&now.copied)), "{told:?}");
    assert_eq!(world.copied.values().sum::<u64>(), 7);
    world.judge_now().unwrap();
    // And nothing, if it missed nothing.
    ask(&mut world, flush(A));
    world.lose(1);
    ask(&mut world, checkpoint());
    assert_eq!((world.pool.is_away(1), returns(&mut world)), (true, 0));
}

/// Who copies one chunk at a time misses what is written to the others meanwhile, with each chunk that it has to wait for more.
#[test]
fn what_clients_write_while_a_leg_returns_goes_to_both_legs_of_all_chunks() {
    let planned_and_copied = |mends| {
        let mut world = pool([1, 0, 1], 24);
        world.pool.policy.mends = mends;
        let create = Request::Create { chunks: 8, thick: false, tier: 0, asked: 0 };
        assert_eq!(fault(&mut world, ask_for(create)), None);
        let lu = world.pool.lus().find(|(_, chunks)| *chunks == 8).expect("it was created").0;
        let at = |chunk: u64, block: u64| chunk * CHUNK_BYTES + block * BLOCK_BYTES;
        let all = |world: &mut World, block| {
            (0..8).for_each(|chunk| _ = ask(world, write(lu, at(chunk, block), BLOCK_BYTES)));
            assert_eq!(fault(world, flush(lu)), None);
        };
        (0..60).for_each(|block| all(&mut world, block));
        ask(&mut world, checkpoint());
        world.copied.clear();
        world.lose(1);
        all(&mut world, 1);
        assert!(world.pool.is_away(1));
        world.bring_back();
        let (mut planned, mut block) = (0, 2);
        while world.step() {
            planned = planned.max(world.pool.resync_blocks().planned);
            // A write to each chunk for each block that is copied, and none of them to a place where one has been.
            if block < 50 && world.copied.values().sum::<u64>() + 2 > block {
                for chunk in 0..8 {
                    let extent = part(lu, at(chunk, block), BLOCK_BYTES);
                    world.submit(Request::Write { extent, durable: false });
                }
                block += 1;
            }
        }
        assert!(is_whole(&world) && block > 8, "{block}");
        world.judge_now().unwrap();
        (planned, world.copied.values().sum::<u64>())
    };
    let (planned, copied) = planned_and_copied(1024);
    assert!(planned == copied && (8..=16).contains(&copied), "{planned} planned, {copied} copied");
    let (_, one_by_one) = planned_and_copied(1);
    assert!(one_by_one > 2 * copied, "{one_by_one} and {copied}");
}

/// What it missed and has not got when it is lost again is not forgotten, nor what was written meanwhile.
#[test]
fn a_leg_that_is_lost_again_while_it_is_copied_lacks_what_it_lacked() {
    for point in 0..60 {
        let mut world = world_with(40);
        world.lose(1);
        for first in 0..8 {
            ask(&mut world, write_at(blocks(2 * first, 4 * KIB)));
        }
        world.bring_back();
        (0..point).for_each(|_| _ = world.step());
        let late =
            world.submit(Request::Write { extent: part(A, 31 * BLOCK_BYTES, 512), durable: false });
        (0..point % 5).for_each(|_| _ = world.step());
        world.lose(1);
        ask(&mut world, write_at(blocks(33, 512)));
        assert!(world.pool.is_away(1) && !world.oracle.is_open(late));
        let copied = returns(&mut world);
        assert!((2..=10).contains(&copied), "{copied} blocks, lost again at {point}");
    }
}

/// A write is under way when the leg is lost, which did some of it.
#[test]
fn what_was_under_way_is_missed() {
    for seed in 0..20 {
        let mut world = world_with(20);
        world.random = Random(seed);
        let write = Request::Write { extent: part(A, 3 * BLOCK_BYTES, 8 * KIB), durable: false };
        world.submit(write);
        world.lose(1);
        world.rest();
        assert!(world.pool.is_away(1));
        assert_eq!(returns(&mut world), 1);
    }
}

/// Who opens a pool knows of no block, and copies what there is.
#[test]
fn a_leg_that_was_away_when_the_pool_was_opened_gets_all_of_its_chunk() {
    let mut world = world_with(20);
    world.lose(1);
    ask(&mut world, write_at(blocks(3, 512)));
    world.kill().unwrap();
    world.rest();
    assert!(world.pool.is_away(1));
    assert_eq!(returns(&mut world), 20);
}

/// The other leg goes elsewhere meanwhile.
#[test]
fn a_chunk_that_moves_while_a_leg_is_away_is_that_chunk() {
    let mut world = world_with(20);
    world.lose(1);
    ask(&mut world, write_at(blocks(3, 512)));
    for pv in [0, 2] {
        for leg in [0, 1] {
            ask(&mut world, Step::Ask(Request::Move { lu: A, vchunk: 0, leg, pv }));
        }
        ask(&mut world, write_at(blocks(4 + u64::from(pv), 512)));
    }
    assert_eq!(returns(&mut world), 3);
}

/// A chunk that was given back and one in its place that was written anew have nothing of what was there.
#[test]
fn a_chunk_that_is_mapped_anew_is_another() {
    let mut world = world_with(20);
    world.lose(1);
    ask(&mut world, write_at(blocks(3, 512)));
    ask(&mut world, Step::Ask(Request::Discard(part(A, 0, CHUNK_BYTES))));
    ask(&mut world, write_at(blocks(9, 512)));
    assert_eq!(returns(&mut world), 1);
    compare(&mut world).unwrap();
}

/// A write fails on the leg that is left, which cannot be done without, just before there are two: whichever is read then has the same.
#[test]
fn a_write_that_fails_while_the_other_leg_is_made_leaves_no_two_truths() {
    let (mut failed, mut two) = (0, 0);
    for point in 0..40 {
        for seed in 0..20 {
            let mut world = world_with(5);
            let survivor = if world.pool.pvs().any(|pv| pv.pv == 0 && pv.used > 1) { 0 } else { 2 };
            world.lose(1);
            ask(&mut world, write_at(blocks(3, 512)));
            world.bring_back();
            (0..point).for_each(|_| _ = world.step());
            let extent = part(A, 4 * BLOCK_BYTES, 512);
            world.submit(Request::Write { extent, durable: false });
            let fails = [survivor, 2 - survivor].into_iter().any(|pv| world.fail_write(pv));
            failed += u32::from(fails);
            (world.schedule, world.random) = (Schedule::Any, Random(seed));
            world.rest();
            two += u32::from(fails && is_whole(&world));
            bring_all_back(&mut world);
            world.move_again();
            compare(&mut world).unwrap_or_else(|wrong| panic!("{wrong}, {point} {seed}"));
        }
    }
    assert!(failed > 100 && two > 100, "{failed} {two}");
}
