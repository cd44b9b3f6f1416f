//! Legs that cannot be read somewhere, or that somebody has changed behind the pool's back.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use pool::{Fault, Finding, FindingKind};

use super::*;
use crate::{ChecksView, ScrubView};

pub(super) const PAGE: u64 = 4096;

/// 4 KiB that are nowhere else.
pub(super) fn page(number: u64) -> Vec<u8> {
    (number + 1).to_le_bytes().repeat(512)
}

/// Where these pages are in what a PV has.
pub(super) fn places(content: &[u8], pages: u64) -> Vec<u64> {
    let mut places = vec![None; pages as usize];
    for (at, found) in (0..).step_by(PAGE as usize).zip(content.chunks(PAGE as usize)) {
        let number = u64::from_le_bytes(found[..8].try_into().unwrap());
        if (1..=pages).contains(&number) && found == page(number - 1) {
            places[number as usize - 1] = Some(at);
        }
    }
    places.into_iter().map(|place| place.expect("it is there")).collect()
}

#[track_caller]
pub(super) fn scrub(pool: &PoolHandle, id: u64) -> ScrubView {
    let mut now = pool.scrub(id).unwrap();
    wait_for("the scrub is over", || {
        now = pool.scrub(id).unwrap();
        let done = now.progress;
        assert!(done.moved + done.failed <= done.planned, "{done:?}");
        now.end.is_some()
    });
    now
}

pub(super) fn sorted(found: &ChecksView) -> Vec<Finding> {
    let mut all: Vec<Finding> = found.last.iter().copied().collect();
    all.sort();
    all
}

#[test]
fn a_scrub_finds_the_64_blocks_that_were_changed_and_where() {
    const PAGES: u64 = 512;
    let mut place = Place::new(false, &[10, 10]);
    place.spec.mirror = place.spec.pvs[1..].to_vec();
    let mut identity = None;
    for leg in [0, 1] {
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        let lu = match &identity {
            Some(known) => old_lu(&pool, 2 * CHUNK_BYTES, known),
            None => {
                let (lu, known) = new_lu(&pool, 2 * CHUNK_BYTES);
                identity = Some(known);
                lu
            }
        };
        let known = number(identity.as_ref().unwrap());
        let mut bench = TestBench::new(&*lu, MEMORY);
        // Some of it in the second chunk.
        let at = |number: u64| number * PAGE + if number < 250 { 0 } else { CHUNK_BYTES };
        (0..PAGES).for_each(|number| bench.write(at(number), &page(number)).unwrap());
        bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
        let clean = scrub(&pool, 1);
        assert_eq!((clean.end, clean.found.count()), (Some(Ok(())), 0));
        let chunks = 2 * CHUNK_BYTES / pool::format::BLOCK_BYTES;
        assert_eq!((clean.progress.planned, clean.progress.moved), (chunks, chunks));
        let path = &place.spec.pvs[leg];
        let places = places(&std::fs::read(path).unwrap(), PAGES);
        let mut random = Random::new(29);
        let mut changed = std::collections::BTreeSet::new();
        while changed.len() < 64 {
            changed.insert(random.below(PAGES / 2) * 2);
        }
        let disk = File::options().read(true).write(true).open(path).unwrap();
        for number in &changed {
            let byte = places[*number as usize] + random.below(PAGE);
            let mut one = [0];
            disk.read_exact_at(&mut one, byte).unwrap();
            disk.write_all_at(&[one[0] ^ 1], byte).unwrap();
        }
        disk.sync_all().unwrap();
        let pvs = [Some(0), Some(1)];
        let told: Vec<Finding> = changed
            .iter()
            .map(|number| Finding { kind: FindingKind::Differs, lu: known, at: at(*number), pvs })
            .collect();
        assert_eq!(sorted(&scrub(&pool, 2).found), told);
        // And beside a client.
        let began = pool.scrub(3).unwrap();
        assert_eq!(pool.scrub(4).unwrap_err().what, "it is being scrubbed");
        let mut now = began;
        while now.end.is_none() {
            let number = random.below(PAGES / 2) * 2 + 1;
            bench.write(at(number), &page(number)).unwrap();
            now = pool.scrub(3).unwrap();
        }
        assert_eq!((sorted(&now.found), now.end), (told, Some(Ok(()))));
        let known = pool.view().checks;
        assert_eq!((known.differs, known.count(), known.last.len()), (128, 128, 64));
        // What is written anew is the same again.
        (0..PAGES).for_each(|number| bench.write(at(number), &page(number)).unwrap());
        assert_eq!(scrub(&pool, 5).found.count(), 0);
        bench.close();
        drop(lu);
        pool.close();
        place.spec.fresh = false;
    }
}

#[test]
fn what_cannot_be_read_on_one_leg_is_mended_by_a_read_or_a_scrub() {
    if !is_root("disks with bad blocks below a pool") {
        return;
    }
    const PAGES: u64 = 64;
    let mirror = Mirror::new(1, 1);
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let (lu, identity) = new_lu(&pool, CHUNK_BYTES);
    let lu_number = number(&identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    (0..PAGES).for_each(|number| bench.write(number * PAGE, &page(number)).unwrap());
    let all = (0..PAGES).flat_map(page).collect::<Vec<_>>();
    let disks = [0, 1].map(|group| &mirror.groups[group][0]);
    let places = disks.map(|disk| places(&disk.content(0, disk.bytes() as usize), PAGES));
    let found = |kind, pv: u16, number: u64| Finding {
        kind,
        lu: lu_number,
        at: number * PAGE,
        pvs: [Some(pv), None],
    };
    // Each leg has another page that cannot be read, of one block.
    for (scrubs, numbers) in [(false, [3, 5]), (true, [17, 30])] {
        let before = pool.view().checks.count();
        (0..2).for_each(|leg| disks[leg].bad(places[leg][numbers[leg] as usize]));
        if scrubs {
            assert_eq!(scrub(&pool, 1).found.repaired, 2);
        } else {
            assert!(bench.read(0, all.len()).unwrap() == all);
        }
        wait_for("both can be read", || disks.iter().all(|disk| disk.all_bad() == 0));
        wait_for("it is told", || pool.view().checks.count() == before + 2);
        let told = pool.view().checks;
        let last: Vec<Finding> = told.last.iter().skip(before as usize).copied().collect();
        let two = [0, 1].map(|leg| found(FindingKind::Repaired, leg, numbers[usize::from(leg)]));
        assert!(last.contains(&two[0]) && last.contains(&two[1]), "{last:?}");
        (0..2).for_each(|leg| {
            let at = places[leg][numbers[leg] as usize];
            assert!(disks[leg].content(at, PAGE as usize) == page(numbers[leg]));
        });
        assert!(bench.read(0, all.len()).unwrap() == all);
    }
    // What no leg has is an error, and told by a scrub; the rest of the block is there.
    (0..2).for_each(|leg| disks[leg].bad(places[leg][40]));
    assert!(bench.read(40 * PAGE, PAGE as usize).is_err());
    let rest = bench.read(41 * PAGE, PAGE as usize).unwrap();
    assert!(rest == page(41));
    let lost = scrub(&pool, 2).found;
    assert_eq!((lost.lost, lost.count()), (1, 1));
    assert!(states(&pool).iter().all(|state| *state == MemberState::In));
    // A leg that cannot be written again either is lost.
    disks[0].bad(places[0][7]);
    disks[0].fail(Kind::Write, EIO);
    assert_eq!(scrub(&pool, 3).end, Some(Ok(())));
    wait_for("it is away", || states(&pool)[0] == MemberState::Stale);
    assert!(bench.read(7 * PAGE, PAGE as usize).unwrap() == page(7));
    bench.close();
    drop(lu);
    pool.close();
}

#[test]
fn a_scrub_of_one_leg_reads_all_of_it_and_can_be_stopped() {
    if !is_root("a disk with bad blocks below a pool") {
        return;
    }
    let disk = Disk::new(10 * CHUNK_BYTES);
    let mut place = Place::new(false, &[]);
    place.spec.pvs = vec![disk.path()];
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, 2 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    (0..32).for_each(|number| bench.write(number * PAGE, &page(number)).unwrap());
    bench.write(CHUNK_BYTES, &page(32)).unwrap();
    let places = places(&disk.content(0, disk.bytes() as usize), 33);
    disk.bad(places[20]);
    let found = scrub(&pool, 1).found;
    let (kind, lu_number, at) = (FindingKind::Lost, number(&identity), 20 * PAGE);
    assert_eq!(sorted(&found), [Finding { kind, lu: lu_number, at, pvs: [Some(0), None] }]);
    // One that waits for its disk ends when that answers.
    disk.hold(Kind::Read);
    pool.scrub(2).unwrap();
    disk.wait_held(Kind::Read, 1);
    assert_eq!(pool.stop_scrub(2).unwrap().end, None);
    disk.release(Kind::Read);
    let stopped = scrub(&pool, 2);
    assert_eq!(stopped.end, Some(Err(Fault::Cancelled)));
    assert_eq!(pool.stop_scrub(2).unwrap(), stopped);
    assert!(pool.stop_scrub(9).is_err());
    assert_eq!(scrub(&pool, 3).found.lost, 1);
    bench.close();
    drop(lu);
    pool.close();
}
