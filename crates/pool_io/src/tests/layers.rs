//! Snapshots, clones and rollbacks under clients, over deaths of the process.

use std::collections::BTreeMap;

use super::*;

const PART: u64 = pool::PART_BYTES;

pub(super) fn snapshot(pool: &PoolHandle, lus: &[u32]) -> Vec<u32> {
    pool.snapshot(lus, 0).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn clone_of(pool: &PoolHandle, snapshot: u32, bytes: u64) -> Opened {
    let (spec, lu) = lu_spec(bytes, false);
    let lu = LuSpec { snapshot: Some(snapshot), ..lu };
    pool.open_lu(&spec, &lu).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn rollback(pool: &PoolHandle, lu: u32, snapshot: u32) {
    pool.rollback(&[(lu, snapshot)], false).unwrap_or_else(|error| panic!("{error}"));
}

fn rollback_under_clients(pool: &PoolHandle, lu: u32, snapshot: u32) {
    pool.rollback(&[(lu, snapshot)], true).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn an_lu_above_a_snapshot_does_what_every_volume_does() {
    for block_size in [512, 4096] {
        let place = Place::new(block_size == 512, &[20, 30, 20]);
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        let make = |clone: bool| {
            let (spec, lu) = lu_spec(3 * CHUNK_BYTES, false);
            let spec = VolumeSpec { block_size, ..spec };
            let (volume, identity) =
                pool.open_lu(&spec, &lu).unwrap_or_else(|error| panic!("{error}"));
            let snapshot = snapshot(&pool, &[number(&identity)])[0];
            if !clone {
                return volume;
            }
            let lu = LuSpec { snapshot: Some(snapshot), ..lu };
            pool.open_lu(&spec, &lu).unwrap_or_else(|error| panic!("{error}")).0
        };
        for clone in [false, true] {
            run(&|| make(clone), &Options { seed: 7, ..Options::default() });
        }
        pool.close();
    }
}

/// A whole LU as it has to be, by 512 bytes, 0 where nothing was written.
type Whole = BTreeMap<u64, u8>;

/// What there is in a pool, and what it holds.
#[derive(Default)]
struct Oracle {
    lus: Vec<(FileIdentity, Whole)>,
    /// Numbers, the LUs of which they are, by place, and what these held.
    snapshots: Vec<(u32, usize, Whole)>,
}

const SIZE: u64 = 2 * CHUNK_BYTES;

/// Sectors that are written and read: some that share a part, some that share a block of 64 KiB, some far away.
fn sector(random: &mut Random) -> u64 {
    let base = [0, CHUNK_BYTES - PART, CHUNK_BYTES, 5 * BLOCK_BYTES][random.below(4) as usize];
    base + random.below(PART / 256) * 512
}

#[test]
fn what_was_answered_is_there_above_beneath_and_beside_over_deaths_of_the_process() {
    for seed in 0..3 {
        let mut place = Place::new(false, &[40, 40]);
        let mut random = Random::new(seed);
        let mut oracle = Oracle::default();
        for life in 0..6_u8 {
            let pools = Pools::start().expect("a thread");
            let pool = place.open(&pools);
            place.spec.fresh = false;
            if oracle.lus.is_empty() {
                for _ in 0..2 {
                    oracle.lus.push((new_lu(&pool, SIZE).1, Whole::new()));
                }
            }
            let open = |identity: &FileIdentity| old_lu(&pool, SIZE, identity);
            let mut volumes: Vec<_> = oracle.lus.iter().map(|(it, _)| open(it)).collect();
            let mut benches: Vec<_> =
                volumes.iter().map(|it| TestBench::new(&**it, MEMORY)).collect();
            for step in 0..60_u8 {
                let which = random.below(benches.len() as u64) as usize;
                match random.below(24) {
                    0 if oracle.snapshots.len() < 12 => {
                        let group: Vec<usize> =
                            if random.below(2) == 0 { vec![which] } else { vec![0, 1] };
                        let numbers: Vec<u32> =
                            group.iter().map(|it| number(&oracle.lus[*it].0)).collect();
                        let made = snapshot(&pool, &numbers);
                        for (made, lu) in made.into_iter().zip(group) {
                            oracle.snapshots.push((made, lu, oracle.lus[lu].1.clone()));
                        }
                    }
                    1 if !oracle.snapshots.is_empty() && benches.len() < 5 => {
                        let of = random.below(oracle.snapshots.len() as u64) as usize;
                        let (snapshot, _, held) = &oracle.snapshots[of];
                        let (volume, identity) = clone_of(&pool, *snapshot, SIZE);
                        benches.push(TestBench::new(&*volume, MEMORY));
                        volumes.push(volume);
                        oracle.lus.push((identity, held.clone()));
                    }
                    2 if !oracle.snapshots.is_empty() => {
                        let of = random.below(oracle.snapshots.len() as u64) as usize;
                        let (snapshot, lu, held) = &oracle.snapshots[of];
                        let pair = (number(&oracle.lus[*lu].0), *snapshot);
                        let refused = pool.rollback(&[pair], false);
                        assert!(refused.unwrap_err().to_string().contains("it is in use"));
                        let done = pool.rollback(&[pair], true);
                        done.unwrap_or_else(|error| panic!("{error}"));
                        oracle.lus[*lu].1 = held.clone();
                    }
                    3 if oracle.snapshots.len() > 6 => {
                        let of = random.below(oracle.snapshots.len() as u64) as usize;
                        let (snapshot, ..) = oracle.snapshots.remove(of);
                        pool.remove_lus(&[snapshot]).unwrap_or_else(|error| panic!("{error}"));
                    }
                    4 => {
                        let at = sector(&mut random) / BLOCK_BYTES * BLOCK_BYTES;
                        benches[which].run(ZEROES, at, BLOCK_BYTES, &[]).unwrap();
                        let end = at + BLOCK_BYTES;
                        oracle.lus[which].1.retain(|sector, _| *sector < at || *sector >= end);
                    }
                    5 | 6 => {
                        benches[which].run(OpKind::Flush, 0, 0, &[]).unwrap();
                    }
                    // It may be on its way when something else comes, or have snapshots of its own.
                    7 | 8 => {
                        let refused = pool.detach(number(&oracle.lus[which].0), random.below(9));
                        let refused = refused.err().map(|error| error.to_string());
                        let why = refused.as_deref().unwrap_or("snapshots or clones need");
                        assert!(why.contains("snapshots or clones need"), "{why}");
                    }
                    9 if random.below(4) == 0 => {
                        pool.stop_detach(number(&oracle.lus[which].0)).unwrap();
                    }
                    _ => {
                        let (at, value) = (sector(&mut random), 1 + life * 40 + step % 40);
                        let sectors = 1 + random.below(9);
                        let data = vec![value; 512 * sectors as usize];
                        benches[which].write(at, &data).unwrap();
                        let all = (0..sectors).map(|sector| (at + 512 * sector, value));
                        oracle.lus[which].1.extend(all);
                    }
                }
                let which = random.below(benches.len() as u64) as usize;
                let at = sector(&mut random) / 4096 * 4096;
                check(&mut benches[which], at, 16 << 10, &oracle.lus[which].1, (life, step));
            }
            benches.into_iter().for_each(TestBench::close);
            drop(volumes);
            // The thread ends where it is; nothing is written that was not.
            pools.stop();
        }
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        let mut all: Vec<(FileIdentity, Whole)> = std::mem::take(&mut oracle.lus);
        for (snapshot, _, held) in &oracle.snapshots {
            all.push((clone_of(&pool, *snapshot, SIZE).1, held.clone()));
        }
        for (identity, whole) in &all {
            let volume = old_lu(&pool, SIZE, identity);
            let mut bench = TestBench::new(&*volume, MEMORY);
            for at in [0, CHUNK_BYTES - PART, CHUNK_BYTES, 5 * BLOCK_BYTES] {
                check(&mut bench, at, 2 * PART, whole, (99, 0));
            }
            bench.close();
        }
        pool.close();
    }
}

fn check(bench: &mut TestBench, at: u64, bytes: u64, whole: &Whole, when: (u8, u8)) {
    let found = bench.read(at, bytes as usize).unwrap();
    for (sector, found) in (at..).step_by(512).zip(found.chunks(512)) {
        let expected = whole.get(&sector).copied().unwrap_or(0);
        assert!(
            found.iter().all(|byte| *byte == expected),
            "{when:?}, at {sector}: {} is not {expected}",
            found[0]
        );
    }
}

/// A pool with a snapshot, above which something was written that was not flushed: the LU, its snapshot.
fn written_above(place: &mut Place) -> (FileIdentity, u32) {
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    place.spec.fresh = false;
    let (lu, identity) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 8192]).unwrap();
    let snapshot = snapshot(&pool, &[number(&identity)])[0];
    bench.write(0, &[2; 512]).unwrap();
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    bench.write(4096, &[3; 512]).unwrap();
    bench.close();
    drop(lu);
    pools.stop();
    (identity, snapshot)
}

fn sectors_of(place: &Place, identity: &FileIdentity) -> [u8; 2] {
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let lu = old_lu(&pool, CHUNK_BYTES, identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let found = [0, 4096].map(|at| bench.read(at, 512).unwrap()[0]);
    bench.close();
    drop(lu);
    pools.stop();
    found
}

/// So it is known that the test above looks: what was not flushed is nowhere else.
#[test]
fn without_the_shadow_what_was_written_above_a_snapshot_would_be_missing() {
    let mut place = Place::new(false, &[12]);
    let (identity, _) = written_above(&mut place);
    assert_eq!(sectors_of(&place, &identity), [2, 3]);
    place.spec.shadow = place.memory.path().join("another");
    assert_eq!(sectors_of(&place, &identity), [2, 1]);
}

/// What a process knew of parts holds no more when another server has had the pool since.
#[test]
fn parts_of_before_another_server_came_are_not_taken_over() {
    let mut place = Place::new(false, &[12]);
    let (identity, _) = written_above(&mut place);
    let theirs = PoolSpec {
        server: "77".repeat(16),
        shadow: place.memory.path().join("theirs"),
        ..place.spec.clone()
    };
    let ours = std::mem::replace(&mut place.spec, theirs);
    assert_eq!(sectors_of(&place, &identity), [2, 1], "it was not flushed");
    place.spec = ours;
    assert_eq!(sectors_of(&place, &identity), [2, 1], "and does not come back");
}

#[test]
fn an_lu_that_shares_grows_and_keeps_all_it_holds() {
    let place = Place::new(false, &[12]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, 2 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(CHUNK_BYTES - 4096, &[1; 8192]).unwrap();
    bench.close();
    let snapshot = snapshot(&pool, &[number(&identity)])[0];
    let (clone, _) = clone_of(&pool, snapshot, 2 * CHUNK_BYTES);
    let mut other = TestBench::new(&*clone, MEMORY);
    assert_eq!(other.read(CHUNK_BYTES - 4096, 8192).unwrap(), [1; 8192]);
    for lu in [&lu, &clone] {
        let refused = lu.resize(CHUNK_BYTES - 4096).unwrap_err().to_string();
        assert!(refused.contains("shares what it holds"), "{refused}");
        let mut bench = TestBench::new(&**lu, MEMORY);
        bench.write(2 * CHUNK_BYTES - 4096, &[2; 4096]).unwrap();
        // Somewhere in a chunk that it has, in one that it has not, and once more: while clients work.
        let mut end = 2 * CHUNK_BYTES;
        for more in [CHUNK_BYTES / 2, CHUNK_BYTES / 4, 2 * CHUNK_BYTES] {
            lu.resize(end + more).unwrap();
            assert_eq!(lu.geometry().bytes, end + more);
            assert_eq!(bench.read(end - 4096, 8192).unwrap(), [[2; 4096], [0; 4096]].concat());
            end += more;
            bench.write(end - 4096, &[2; 4096]).unwrap();
            // By the channel alone, once it is known what is in that chunk.
            (0..2).for_each(|_| assert_eq!(bench.read(end - 4096, 4096).unwrap(), [2; 4096]));
            let asked = bench.parks(Wait::Pool);
            bench.write(end - 4096, &[2; 4096]).unwrap();
            assert_eq!(bench.read(end - 8192, 8192).unwrap(), [[0; 4096], [2; 4096]].concat());
            assert_eq!(bench.parks(Wait::Pool), asked, "{end}");
        }
        assert_eq!(bench.read(CHUNK_BYTES - 4096, 8192).unwrap(), [1; 8192]);
        bench.close();
        // What the other has of layers that grew with it.
        assert_eq!(other.read(CHUNK_BYTES - 4096, 8192).unwrap(), [1; 8192]);
    }
    other.close();
}

/// Nobody sees it with another size first.
#[test]
fn a_clone_that_is_to_be_larger_than_its_snapshot_is_so_when_it_is_there() {
    let place = Place::new(false, &[12]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(CHUNK_BYTES - 4096, &[1; 4096]).unwrap();
    bench.close();
    let snapshot = snapshot(&pool, &[number(&identity)])[0];
    for wanted in [CHUNK_BYTES + 4096, 3 * CHUNK_BYTES] {
        let (clone, identity) = clone_of(&pool, snapshot, wanted);
        assert_eq!([clone.geometry().bytes, identity.bytes()], [wanted; 2]);
        let mut bench = TestBench::new(&*clone, MEMORY);
        let end = bench.read(CHUNK_BYTES - 4096, 8192).unwrap();
        assert_eq!(end, [[1; 4096], [0; 4096]].concat());
        bench.write(wanted - 4096, &[2; 4096]).unwrap();
        assert_eq!(bench.read(wanted - 4096, 4096).unwrap(), [2; 4096]);
        bench.close();
    }
    // One that cannot become as large leaves nothing.
    let lus = |pool: &PoolHandle| pool.view().lus.iter().map(|lu| lu.lu).collect::<Vec<_>>();
    let there = lus(&pool);
    let (spec, lu) = lu_spec(1 << 60, false);
    let refused = pool.open_lu(&spec, &LuSpec { snapshot: Some(snapshot), ..lu });
    let refused = refused.map(drop).unwrap_err().to_string();
    assert!(refused.contains("larger than its snapshot"), "{refused}");
    assert_eq!(lus(&pool), there);
}

/// Who reads or overwrites what is there needs the pool's thread only once for each chunk, and for what it writes first.
#[test]
fn channels_read_and_overwrite_above_snapshots_by_themselves() {
    let mut place = Place::new(false, &[16]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    place.spec.fresh = false;
    let (lu, identity) = new_lu(&pool, 3 * CHUNK_BYTES);
    let lu_number = number(&identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 256 << 10]).unwrap();
    let mut made = Vec::new();
    for value in 2..5 {
        made.extend(snapshot(&pool, &[lu_number]));
        bench.write(u64::from(value) * 4096, &[value; 4096]).unwrap();
    }
    let asked = |bench: &TestBench| bench.parks(Wait::Pool);
    let mut expected = vec![1; 256 << 10];
    for value in 2..5 {
        expected[usize::from(value) * 4096..][..4096].fill(value);
    }
    // The first look makes known what is in each chunk.
    let look = |bench: &mut TestBench, expected: &[u8]| {
        for _ in 0..2 {
            bench.read(0, 4096).unwrap();
            bench.read(CHUNK_BYTES, 4096).unwrap();
        }
        let before = asked(bench);
        for at in (0..256 << 10).step_by(4096) {
            let found = bench.read(at as u64, 4096).unwrap();
            assert!(found == expected[at..][..4096], "{at}: {}", found[0]);
            assert_eq!(asked(bench), before, "{at} was asked for");
        }
        let found = bench.read(4 << 10, 8 << 10).unwrap();
        assert!(found == expected[4 << 10..][..8 << 10], "in two places");
        let found = bench.read(32 << 10, 224 << 10).unwrap();
        assert!(found == expected[32 << 10..], "over parts");
        assert_eq!(bench.read(CHUNK_BYTES, 64 << 10).unwrap(), vec![0; 64 << 10]);
        assert_eq!(asked(bench), before, "nothing of it was asked for");
        let found = bench.read(0, 24 << 10).unwrap();
        assert!(found == expected[..24 << 10], "in five places and more");
        assert_eq!(asked(bench), before + 1, "all of it at once");
    };
    look(&mut bench, &expected);
    let before = asked(&bench);
    bench.write(4 * 4096, &[9; 4096]).unwrap();
    bench.write(4 * 4096 + 512, &[10; 512]).unwrap();
    expected[4 * 4096..][..4096].fill(9);
    expected[4 * 4096 + 512..][..512].fill(10);
    assert_eq!(asked(&bench), before, "it is its own");
    for at in [3 * 4096, 5 * 4096 - 512] {
        bench.write(at as u64, &[11; 1024]).unwrap();
        expected[at..][..1024].fill(11);
    }
    assert_eq!(asked(&bench), before, "there is room for it in its slot");
    look(&mut bench, &expected);
    // Another layer begins: nothing is the LU's own any more.
    made.extend(snapshot(&pool, &[lu_number]));
    let before = asked(&bench);
    bench.write(4 * 4096, &[12; 4096]).unwrap();
    assert_eq!(asked(&bench), before + 1);
    rollback_under_clients(&pool, lu_number, made[3]);
    look(&mut bench, &expected);
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    bench.close();
    drop(lu);
    pool.close();
    pools.stop();
    // Also where nothing is known but what is on the PVs.
    place.spec.shadow = place.memory.path().join("another");
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let lu = old_lu(&pool, 3 * CHUNK_BYTES, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.read(0, 256 << 10).unwrap();
    look(&mut bench, &expected);
    bench.close();
    // What the snapshots have is as it was.
    for (value, snapshot) in (2..).zip(&made[..3]) {
        let (clone, _) = clone_of(&pool, *snapshot, 3 * CHUNK_BYTES);
        let mut bench = TestBench::new(&*clone, MEMORY);
        let found = bench.read(0, 24 << 10).unwrap();
        for (block, found) in (0..6_u8).zip(found.chunks(4096)) {
            let expected = if (2..value).contains(&block) { block } else { 1 };
            assert!(found == [expected; 4096], "snapshot {value}, block {block}: {}", found[0]);
        }
        bench.close();
    }
}

/// A process that dies before anybody knew of a snapshot that it made: the next one knows what was asked for.
#[test]
fn a_snapshot_that_is_asked_for_again_after_a_death_is_there_already() {
    let mut place = Place::new(false, &[16]);
    let (mut lu, mut first) = (0, Vec::new());
    for life in 0..3 {
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        if life == 0 {
            place.spec.fresh = false;
            lu = number(&new_lu(&pool, CHUNK_BYTES).1);
            first = snapshot(&pool, &[lu]);
        }
        let asked = |number| pool.snapshot(&[lu], number).unwrap_or_else(|error| panic!("{error}"));
        let again = asked(5);
        match life {
            0 => assert_ne!(std::mem::replace(&mut first, again.clone()), again),
            1 => assert_eq!(again, first),
            // Another server that counts from 1, as one does that has lost what it knew.
            _ => assert_ne!(again, first),
        }
        assert_eq!(asked(5), again, "by the same process");
        let other = asked(6);
        assert_ne!(other, again);
        // One that is gone is made anew.
        pool.remove_lus(&other).unwrap_or_else(|error| panic!("{error}"));
        assert_ne!(asked(6), other);
        pools.stop();
        if life == 1 {
            place.spec.server = "77".repeat(16);
        }
    }
}

/// Memory that somebody took away says of nothing that it is not there.
#[test]
fn what_was_known_of_parts_and_is_taken_away_is_no_ground_to_read_beneath() {
    let mut place = Place::new(false, &[12]);
    let (identity, _) = written_above(&mut place);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let lu = old_lu(&pool, CHUNK_BYTES, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let mut sectors = |which: &str| {
        let found = [0, 4096].map(|at| bench.read(at, 512).map(|found| found[0]));
        assert!(
            found.iter().zip([2, 3]).all(|(found, value)| match found {
                Ok(found) => *found == value,
                Err(_) => which == "after",
            }),
            "{which}: {found:?}"
        );
    };
    (0..3).for_each(|_| sectors("before"));
    let file = std::fs::OpenOptions::new().write(true).open(&place.spec.shadow).unwrap();
    file.set_len(1 << 44).unwrap();
    (0..3).for_each(|_| sectors("after"));
    std::mem::forget(bench);
}

#[test]
fn what_nobody_needs_any_more_is_given_back() {
    let place = Place::new(false, &[16]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let free = pool.view().free;
    let (lu, identity) = new_lu(&pool, 2 * CHUNK_BYTES);
    let lu_number = number(&identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 4096]).unwrap();
    bench.write(CHUNK_BYTES, &[1; 4096]).unwrap();
    let made = snapshot(&pool, &[lu_number])[0];
    bench.write(0, &[2; 4096]).unwrap();
    bench.close();
    let (clone, of_clone) = clone_of(&pool, made, 2 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*clone, MEMORY);
    bench.write(0, &[3; 4096]).unwrap();
    bench.close();
    drop(clone);
    let spaces = |pool: &PoolHandle| {
        let lus = pool.view().lus.into_iter();
        lus.map(|lu| (lu.lu, lu.origin, lu.allocated)).collect::<Vec<_>>()
    };
    let clone_number = number(&of_clone);
    let expected = [(lu_number, None, 3), (made, Some(lu_number), 0), (clone_number, None, 1)];
    comes(expected.to_vec(), || spaces(&pool));
    comes(free - 4, || pool.view().free);
    // What was written since is gone with a rollback.
    rollback(&pool, lu_number, made);
    assert_eq!(spaces(&pool)[0], (lu_number, None, 2));
    pool.remove_lus(&[clone_number]).unwrap_or_else(|error| panic!("{error}"));
    drop(lu);
    // The snapshot holds what its LU held.
    pool.remove_lus(&[lu_number]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(spaces(&pool), [(made, Some(lu_number), 2)]);
    pool.remove_lus(&[made]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(pool.view().lus, []);
    // Chunks that were containers come free with the next root.
    while pool.view().free < free {
        std::thread::yield_now();
    }
}

/// However much is to be zeros, the pool has a part of it at a time.
#[test]
fn zeros_above_a_snapshot_are_written_in_rounds() {
    let place = Place::new(true, &[16]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, 2 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(CHUNK_BYTES - 4096, &[1; 8192]).unwrap();
    let before = bench.parks(Wait::Pool);
    bench.run(ZEROES, 0, 4096, &[]).unwrap();
    assert_eq!(bench.parks(Wait::Pool), before + 1);
    snapshot(&pool, &[number(&identity)]);
    let before = bench.parks(Wait::Pool);
    bench.run(ZEROES, CHUNK_BYTES - (4 << 20), 8 << 20, &[]).unwrap();
    assert_eq!(bench.parks(Wait::Pool), before + 8, "each of 1 MiB");
    assert_eq!(bench.read(CHUNK_BYTES - 4096, 8192).unwrap(), [0; 8192]);
    bench.close();
}

#[test]
fn what_is_no_snapshot_of_an_lu_is_refused() {
    let place = Place::new(false, &[16]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let [one, two] = [(); 2].map(|()| number(&new_lu(&pool, CHUNK_BYTES).1));
    let made = snapshot(&pool, &[one, two]);
    let say = |error: Result<(), crate::PoolError>| error.unwrap_err().to_string();
    assert!(say(pool.rollback(&[(one, made[1])], false)).contains("no snapshot of an LU"));
    assert!(say(pool.rollback(&[(one, two)], false)).contains("no snapshot of an LU"));
    assert!(say(pool.rollback(&[(99, made[0])], false)).contains("no such LU"));
    assert!(say(pool.rollback(&[(one, made[0]); 17], false)).contains("16 at most"));
    pool.rollback(&[(one, made[0]), (two, made[1])], false)
        .unwrap_or_else(|error| panic!("{error}"));
    for (lus, what) in
        [(vec![99], "no such LU"), (vec![made[0]], "make a clone"), (vec![one; 17], "16 at most")]
    {
        let refused = pool.snapshot(&lus, 0).unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
    }
    let (spec, lu) = lu_spec(CHUNK_BYTES, false);
    let lu = LuSpec { snapshot: Some(one), ..lu };
    let refused = pool.open_lu(&spec, &lu).err().expect("it is refused").to_string();
    assert!(refused.contains("the snapshot of which it is to be made is not there"), "{refused}");
}
