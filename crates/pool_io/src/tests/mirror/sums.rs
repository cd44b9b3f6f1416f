//! LUs whose data has checksums, and that somebody has changed behind the pool's back.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use pool::{Finding, FindingKind};

use super::checks::{PAGE, page, places, scrub, sorted};
use super::*;

const PAGES: u64 = 512;

fn summed(pool: &PoolHandle) -> Result<Opened, block::VolumeError> {
    let (spec, lu) = lu_spec(2 * CHUNK_BYTES, false);
    pool.open_lu(&spec, &LuSpec { checksums: true, ..lu })
}

fn is_quiet(pool: &PoolHandle) -> bool {
    // What is told after an answer is not older.
    pool.snapshots_made(&[1], 1).unwrap_or_else(|error| panic!("{error}"));
    pool.view().active == 0
}

/// Turns a bit of each of 64 blocks on a PV, and says of which.
fn turn(path: &Path, random: &mut Random) -> BTreeSet<u64> {
    let places = places(&std::fs::read(path).unwrap(), PAGES);
    let mut changed = BTreeSet::new();
    while changed.len() < 64 {
        changed.insert(random.below(PAGES));
    }
    let disk = File::options().read(true).write(true).open(path).unwrap();
    for number in &changed {
        let byte = places[*number as usize] + random.below(PAGE);
        let mut one = [0];
        disk.read_exact_at(&mut one, byte).unwrap();
        disk.write_all_at(&[one[0] ^ 1], byte).unwrap();
    }
    disk.sync_all().unwrap();
    changed
}

#[test]
fn of_64_blocks_that_were_changed_a_client_sees_none_and_a_scrub_mends_all() {
    let mut place = Place::new(false, &[12, 12]);
    place.spec.mirror = place.spec.pvs[1..].to_vec();
    let at = |number: u64| number * PAGE + if number < 250 { 0 } else { CHUNK_BYTES };
    let mut random = Random::new(41);
    let mut identity = None;
    for leg in [0, 1] {
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        place.spec.fresh = false;
        let lu = match &identity {
            Some(known) => old_lu(&pool, 2 * CHUNK_BYTES, known),
            None => {
                let (lu, known) = summed(&pool).unwrap_or_else(|error| panic!("{error}"));
                identity = Some(known);
                lu
            }
        };
        let known = number(identity.as_ref().unwrap());
        assert!(pool.view().lus.iter().all(|lu| lu.sums));
        let mut bench = TestBench::new(&*lu, MEMORY);
        (0..PAGES).for_each(|number| bench.write(at(number), &page(number)).unwrap());
        bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
        wait_for("it is quiet", || is_quiet(&pool));
        let before = pool.view().checks;
        // A scrub finds what nobody reads.
        let path = &place.spec.pvs[leg];
        let told = |changed: &BTreeSet<u64>| -> Vec<Finding> {
            let pvs = [Some(leg as u16), None];
            let kind = FindingKind::Repaired;
            changed.iter().map(|one| Finding { kind, lu: known, at: at(*one), pvs }).collect()
        };
        let changed = turn(path, &mut random);
        assert_eq!(sorted(&scrub(&pool, 1).found), told(&changed));
        assert_eq!(scrub(&pool, 2).found.count(), 0);
        // And no client sees any, whichever leg it reads.
        turn(path, &mut random);
        for _ in 0..4 {
            for number in 0..PAGES {
                assert!(bench.read(at(number), PAGE as usize).unwrap() == page(number), "{number}");
            }
        }
        scrub(&pool, 3);
        let after = pool.view().checks;
        assert_eq!(after.repaired - before.repaired, 128);
        assert_eq!((after.differs, after.unreadable, after.lost), (0, 0, 0));
        assert_eq!(scrub(&pool, 4).found.count(), 0);
        bench.close();
        drop(lu);
        pool.close();
    }
}

#[test]
fn what_both_legs_have_changed_is_an_error_and_nothing_else() {
    let mut place = Place::new(false, &[12, 12]);
    place.spec.mirror = place.spec.pvs[1..].to_vec();
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, _) = summed(&pool).unwrap_or_else(|error| panic!("{error}"));
    let mut bench = TestBench::new(&*lu, MEMORY);
    (0..PAGES).for_each(|number| bench.write(number * PAGE, &page(number)).unwrap());
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    wait_for("it is quiet", || is_quiet(&pool));
    for path in &place.spec.pvs {
        let places = places(&std::fs::read(path).unwrap(), PAGES);
        let disk = File::options().write(true).open(path).unwrap();
        disk.write_all_at(&page(7 * PAGES), places[100]).unwrap();
    }
    for number in 0..PAGES {
        let read = bench.read(number * PAGE, PAGE as usize);
        match number {
            100 => assert!(read.is_err(), "no leg has it"),
            _ => assert!(read.unwrap() == page(number), "{number}"),
        }
    }
    let lost = pool.view().checks;
    assert_eq!((lost.lost, lost.count()), (1, 1));
    // What is written anew is there.
    bench.write(100 * PAGE, &page(100)).unwrap();
    assert!(bench.read(100 * PAGE, PAGE as usize).unwrap() == page(100));
    bench.close();
    drop(lu);
    pool.close();
}

#[test]
fn only_what_is_mirrored_has_checksums() {
    let place = Place::new(false, &[12, 12]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let refused = summed(&pool).err().expect("it is refused").to_string();
    assert!(refused.contains("only where the pool has two failure groups"), "{refused}");
    pool.close();
}
