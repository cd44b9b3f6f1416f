//! Snapshots of several LUs at one moment, under clients that write now to one and now to another.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::layers::{clone_of, snapshot};
use super::*;

const SIZE: u64 = 2 * CHUNK_BYTES;
const LUS: usize = 3;
const WRITERS: usize = 4;
const SNAPSHOTS: usize = 12;

/// When something was asked for, and when it was answered: in the order of all that is.
#[derive(Clone, Copy)]
struct Span {
    asked: u64,
    answered: u64,
}

/// What was written to one place, one after the other: the number that is there says how much of it is.
type History = Vec<Span>;

/// A place of a writer on each LU: some share a part of a layer, some do not.
fn place_of(writer: usize) -> u64 {
    [0, 512, CHUNK_BYTES - 512, CHUNK_BYTES + 5 * BLOCK_BYTES][writer]
}

/// Writes the next number to one LU after the other, each when the one before it is answered.
fn write(
    lus: &[Arc<dyn Volume>],
    writer: usize,
    now: &AtomicU64,
    over: &AtomicBool,
) -> Vec<History> {
    let mut bench = TestBench::new(&*lus[0], 4096);
    lus[1..].iter().for_each(|lu| _ = bench.add(&**lu));
    let buf = bench.buf(0, 512);
    let mut histories = vec![History::new(); LUS];
    let mut random = Random::new(writer as u64);
    while !over.load(Relaxed) {
        let lu = random.below(LUS as u64) as usize;
        let number = histories[lu].len() as u64 + 1;
        buf.write(0, &number.to_le_bytes());
        let asked = now.fetch_add(1, SeqCst);
        bench.start_on(lu, WRITE, place_of(writer), 512, &[buf]);
        assert_eq!(bench.finished().map(|(_, result)| result), Some(Ok(())));
        histories[lu].push(Span { asked, answered: now.fetch_add(1, SeqCst) });
    }
    bench.close();
    histories
}

/// Whether a snapshot of all LUs is of one moment: with a write it has all that were answered before that was asked for, and it has all that were answered before itself was asked for.
/// `found`: how much of each history it has.
fn judge(histories: &[History], found: &[usize], taken: Span) -> Result<(), String> {
    let mut newest = taken.asked;
    for (history, found) in histories.iter().zip(found).filter(|(_, found)| **found > 0) {
        let last = history.get(found - 1).ok_or(format!("{found} was never written"))?;
        if last.asked > taken.answered {
            return Err("it has what was written after it was made".to_owned());
        }
        newest = newest.max(last.asked);
    }
    for (place, (history, found)) in histories.iter().zip(found).enumerate() {
        if let Some(next) = history.get(*found)
            && next.answered < newest
        {
            let (writer, lu) = (place / LUS, place % LUS);
            return Err(format!(
                "writer {writer}, LU {lu}: {} is not there, was answered at {}, and something is there that was asked for at {newest}",
                found + 1,
                next.answered
            ));
        }
    }
    Ok(())
}

/// What is wrong with snapshots that are made together, or one after the other.
fn found_wrong(together: bool, mirrored: bool) -> Vec<String> {
    // A snapshot takes a chunk of each group for each LU.
    let mut place = Place::new(false, &[60, 60]);
    if mirrored {
        place.spec.mirror = place.spec.pvs[1..].to_vec();
    }
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lus, identities): (Vec<_>, Vec<_>) = (0..LUS).map(|_| new_lu(&pool, SIZE)).unzip();
    let numbers: Vec<u32> = identities.iter().map(number).collect();
    let (now, over) = (AtomicU64::new(1), AtomicBool::new(false));
    let mut made: Vec<(Span, Vec<u32>)> = Vec::new();
    let histories: Vec<History> = std::thread::scope(|scope| {
        let (lus, now, over) = (&lus, &now, &over);
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write(lus, writer, now, over))).collect();
        for _ in 0..SNAPSHOTS {
            // So that each has something that the one before it has not.
            let asked = now.fetch_add(1, SeqCst);
            while now.load(SeqCst) < asked + 40 {
                if writers.iter().any(|writer| writer.is_finished()) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let asked = now.fetch_add(1, SeqCst);
            let snapshots: Vec<u32> = match together {
                true => snapshot(&pool, &numbers),
                false => numbers.iter().flat_map(|lu| snapshot(&pool, &[*lu])).collect(),
            };
            made.push((Span { asked, answered: now.fetch_add(1, SeqCst) }, snapshots));
        }
        over.store(true, Relaxed);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let mut before = vec![0; WRITERS * LUS];
    let mut wrong = Vec::new();
    for (span, snapshots) in &made {
        let mut found = vec![0; WRITERS * LUS];
        for (lu, snapshot) in snapshots.iter().enumerate() {
            let (clone, _) = clone_of(&pool, *snapshot, SIZE);
            let mut bench = TestBench::new(&*clone, 4096);
            for writer in 0..WRITERS {
                let sector = bench.read(place_of(writer), 512).unwrap();
                let number = u64::from_le_bytes(sector[..8].try_into().unwrap());
                found[writer * LUS + lu] = number as usize;
            }
            bench.close();
        }
        wrong.extend(judge(&histories, &found, *span).err());
        assert_ne!(found, before, "nothing was written meanwhile");
        before = found;
    }
    drop(lus);
    pool.close();
    wrong
}

#[test]
fn snapshots_of_several_lus_are_of_one_moment() {
    for mirrored in [false, true] {
        assert_eq!(found_wrong(true, mirrored), [] as [String; 0], "mirrored {mirrored}");
    }
}

#[test]
fn those_that_are_made_one_after_the_other_are_not_and_that_is_found() {
    assert_ne!(found_wrong(false, false), [] as [String; 0]);
}

/// What is judged above can fail.
#[test]
fn what_is_not_of_one_moment_is_found() {
    let span = |asked: u64| Span { asked: 10 * asked, answered: 10 * asked + 1 };
    // One writer, to the first LU, the second, the first, the third.
    let histories = vec![vec![span(1), span(5)], vec![span(3)], vec![span(7)]];
    let taken = Span { asked: 45, answered: 80 };
    let is_well = |found: [usize; 3]| judge(&histories, &found, taken).is_ok();
    assert!(is_well([1, 1, 0]) && is_well([2, 1, 0]) && is_well([2, 1, 1]));
    assert!(!is_well([1, 1, 1]), "the last, and not what was answered before that");
    assert!(!is_well([1, 0, 0]), "not what was answered before it was asked for");
    assert!(!is_well([3, 1, 0]), "what nobody wrote");
    let early = Span { asked: 0, answered: 20 };
    assert!(judge(&histories, &[1, 1, 0], early).is_err(), "what was written later");
}
