//! All short sequences of ten kinds of steps, on LUs with two legs of which one has a snapshot and a clone: nothing is left to chance but the order in which the disks
//! answer, and at which 512 bytes a write is torn.

use super::layers::{ask_for, delete, flush, snapshot};
use super::mirror::{checkpoint, durable, shared};
use super::*;

/// What the first LU has of its own, above its snapshot.
const LAYER: u32 = 4;

/// Write, flush, FUA, discard, snapshot, delete, a step of a move, the loss of a leg, its return, checkpoint.
fn kinds(pv: u16) -> [Step; 10] {
    [
        write(A, 2 * KIB, 4 * KIB),
        flush(A),
        durable(),
        ask_for(Request::Discard(part(A, 0, CHUNK_BYTES))),
        snapshot(&[A]),
        delete(A),
        ask_for(Request::Move { lu: LAYER, vchunk: 0, leg: 1, pv }),
        Step::Lose(0),
        Step::Return,
        checkpoint(),
    ]
}

/// One of the sequences up to so long, the shortest first.
fn sequence(mut number: usize, kinds: &[Step], longest: usize) -> Option<Vec<Step>> {
    for length in 1..=longest as u32 {
        let all = kinds.len().pow(length);
        if number < all {
            let digit = |place| kinds[number / kinds.len().pow(place) % kinds.len()];
            return Some((0..length).map(digit).collect());
        }
        number -= all;
    }
    None
}

/// As many steps as `POOL_CRASH_STEPS` says, else two; `POOL_CRASH_PART` has one of how many parts of all sequences, as `0/1`. With three steps everything is tried
/// that up to eight writes can leave, else what three can.
#[test]
fn no_crash_in_any_short_sequence_loses_anything() {
    let longest = told("POOL_CRASH_STEPS", 2) as usize;
    let share = std::env::var("POOL_CRASH_PART").unwrap_or_else(|_| "0/1".to_owned());
    let (share, of) = share.split_once('/').expect("one of how many");
    let [share, of] = [share, of].map(|number| number.parse::<usize>().expect("a number"));
    let setups = shared();
    for setup in &setups {
        let kinds = kinds(elsewhere(setup));
        let all = (0..).map_while(|number| sequence(number, &kinds, longest));
        let count = assert_keeps(u64::MAX, |explorer| {
            (explorer.subsets_max, explorer.points_every) =
                if longest > 2 { (8, 1) } else { (3, 4) };
            for (number, steps) in
                all.clone().enumerate().filter(|(number, _)| number % of == share)
            {
                for (schedule, overlap) in [(Schedule::First, 0), (Schedule::Any, u32::MAX)] {
                    explorer.run(setup, &steps, Run { schedule, overlap, seed: number as u64 })?;
                }
            }
            Ok(())
        });
        assert!(count.second > 0 && count.without > 0, "{count:?}");
    }
}

/// The PV to which the second leg of the layer can move.
fn elsewhere(setup: &Setup) -> u16 {
    let can = |pv: &u16| {
        let mut world = World::open(setup.pages.clone(), setup.oracle.clone(), None).unwrap();
        world.rest();
        fault(&mut world, kinds(*pv)[6]).is_none()
    };
    (0..3).find(can).expect("another PV of its failure group")
}

#[test]
fn sequences_are_all_that_there_are() {
    let kinds = kinds(2);
    let all: Vec<Vec<Step>> = (0..).map_while(|number| sequence(number, &kinds, 3)).collect();
    assert_eq!(all.len(), 1110);
    assert!((1..all.len()).all(|number| !all[..number].contains(&all[number])));
}
