//! How much is written to disks when a leg returns and when PVs come and go: counted by the disks, with all that the pool writes of its own.

use testkit::{Disk, Kind, is_root};

use super::mirror::{all_in, returns, wait_for};
use super::*;

/// Disks of so many chunks, with their pool; of two failure groups with the last one alone in the second.
fn pool_on(disks: &[Disk], two: bool) -> Place {
    let mut place = Place::new(false, &[]);
    place.spec.pvs = disks.iter().map(Disk::path).collect();
    let second = disks.last().filter(|_| two);
    place.spec.mirror = second.into_iter().map(Disk::path).collect();
    place
}

fn disks(count: usize, chunks: u64) -> Vec<Disk> {
    (0..count).map(|_| Disk::new(chunks * CHUNK_BYTES)).collect()
}

fn written(disks: &[Disk]) -> u64 {
    disks.iter().map(Disk::written).sum()
}

/// Writes so many whole blocks of each chunk, at a distance from each other.
fn write_blocks(bench: &mut TestBench, chunks: u64, blocks: u64, value: u8) {
    for (chunk, block) in (0..chunks).flat_map(|chunk| (0..blocks).map(move |one| (chunk, one))) {
        let at = chunk * CHUNK_BYTES + 3 * block * BLOCK_BYTES;
        bench.write(at, &[value; BLOCK_BYTES as usize]).unwrap();
    }
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
}

/// Not more than a tenth besides: pages, home records, the journal, superblocks.
#[track_caller]
fn assert_near(wrote: u64, least: u64) {
    assert!((least..=least + least / 10).contains(&wrote), "{wrote} bytes, {least} have to be");
}

#[test]
fn a_leg_that_returns_is_written_what_it_missed_and_hardly_more() {
    if !is_root("disks that fail below a pool") {
        return;
    }
    let disks = disks(2, 10);
    let pools = Pools::start().expect("a thread");
    let pool = pool_on(&disks, true).open(&pools);
    let (lu, _) = new_lu(&pool, 3 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    write_blocks(&mut bench, 3, 300, 1);
    for (round, blocks) in [(2, 110), (3, 150)] {
        assert!(all_in(&pool));
        disks[1].fail(Kind::Write, Some(5));
        write_blocks(&mut bench, 3, blocks, round);
        disks[1].fail(Kind::Write, None);
        let before = disks[1].written();
        returns(&pool);
        assert_near(disks[1].written() - before, 3 * blocks * BLOCK_BYTES);
    }
    bench.close();
    drop(lu);
    pool.close();
}

#[test]
fn what_moves_when_pvs_come_and_go_is_what_has_to() {
    if !is_root("disks that count below a pool") {
        return;
    }
    let disks = disks(3, 14);
    let pools = Pools::start().expect("a thread");
    let pool = pool_on(&disks[..2], false).open(&pools);
    let (chunks, blocks) = (12, 100);
    let (lu, _) = new_lu(&pool, chunks * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    write_blocks(&mut bench, chunks, blocks, 1);
    let used = || pool.view().pvs.iter().map(|pv| pv.space.used).collect::<Vec<_>>();
    assert_eq!(used(), [6, 6]);
    // Two of each go to the new one: with fewer they would not have their share.
    let before = written(&disks);
    pool.add_pvs(&Here, None, &[(disks[2].path(), 0)], &mut |_| ()).unwrap();
    wait_for("all have their share", || used() == [4, 4, 4] && pool.view().balance.is_none());
    assert_near(written(&disks) - before, 4 * blocks * BLOCK_BYTES);
    // What is on one that leaves, and nothing else.
    let before = written(&disks);
    pool.remove_pv(&pool.view().pvs[0]).unwrap();
    wait_for("it is gone", || pool.view().pvs.len() == 2 && pool.view().balance.is_none());
    // What is nearly even, by two chunks, stays as it is.
    assert!(used().iter().all(|used| (4..=8).contains(used)), "{:?}", used());
    assert_near(written(&disks) - before, 4 * blocks * BLOCK_BYTES);
    let found = bench.read(3 * BLOCK_BYTES, BLOCK_BYTES as usize).unwrap();
    assert!(found == [1; BLOCK_BYTES as usize]);
    bench.close();
    drop(lu);
    pool.close();
}
