//! Pools on files, with lanes as channels have them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use block::conformance::{Options, TestBench, run};
use block::{Here, IoError, OpKind, Volume, VolumeSpec, Wait};
use memory::random::Random;
use pool::format::{BLOCK_BYTES, CHUNK_BYTES};
use spec::{FileIdentity, FullLuSpec, FullSpec, LuSpec, PoolSpec};

use crate::{PoolHandle, Pools};

mod coalesce;
mod copies;
mod counted;
mod fenced;
mod full;
mod groups;
mod grows;
mod hangs;
mod layers;
mod mirror;
mod pvs;
mod rescue;
mod seen;
mod taking;
mod tiers;

const MEMORY: usize = 4 << 20;
const WRITE: OpKind = OpKind::Write { fua: false };
const ZEROES: OpKind = OpKind::WriteZeroes { unmap: true, fua: false };

/// A folder with PVs, and what a server knows of its pool.
struct Place {
    folder: tempfile::TempDir,
    memory: tempfile::TempDir,
    spec: PoolSpec,
}

fn file(path: &Path, chunks: u64) {
    let file = std::fs::File::create(path).expect("a file");
    file.set_len(chunks * CHUNK_BYTES).expect("its size");
}

impl Place {
    /// PVs of so many chunks each, in a tmpfs or not.
    fn new(in_memory: bool, chunks: &[u64]) -> Place {
        let memory = tempfile::tempdir_in("/dev/shm").expect("a folder in /dev/shm");
        let folder = match in_memory {
            true => tempfile::tempdir_in("/dev/shm"),
            false => tempfile::tempdir(),
        };
        let folder = folder.expect("a folder");
        let path = |number: usize| folder.path().join(format!("pv{number}"));
        let pvs: Vec<PathBuf> = (0..chunks.len()).map(path).collect();
        pvs.iter().zip(chunks).for_each(|(path, chunks)| file(path, *chunks));
        let spec = PoolSpec {
            name: "p0".to_owned(),
            uuid: "0123456789abcdef0123456789abcdef".to_owned(),
            server: "5e".repeat(16),
            pvs,
            shadow: memory.path().join("shadow"),
            fresh: true,
            ..PoolSpec::default()
        };
        Place { folder, memory, spec }
    }

    fn open(&self, pools: &Pools) -> PoolHandle {
        let opened = pools.open(&Here, None, &self.spec, &mut |_| ());
        opened.unwrap_or_else(|error| panic!("{error}"))
    }

    fn refused(&self) -> String {
        let pools = Pools::start().expect("a thread");
        let opened = pools.open(&Here, None, &self.spec, &mut |_| ());
        opened.err().expect("it is refused").to_string()
    }
}

fn lu_spec(bytes: u64, thick: bool) -> (VolumeSpec, LuSpec) {
    let lu = LuSpec { thick, fresh: true, ..LuSpec::of("p0") };
    let mut spec = VolumeSpec::new("lu", lu.clone());
    spec.bytes = Some(bytes);
    (spec, lu)
}

type Opened = (Arc<dyn Volume>, FileIdentity);

fn new_lu(pool: &PoolHandle, bytes: u64) -> Opened {
    let (spec, lu) = lu_spec(bytes, false);
    pool.open_lu(&spec, &lu).unwrap_or_else(|error| panic!("{error}"))
}

fn old_lu(pool: &PoolHandle, bytes: u64, identity: &FileIdentity) -> Arc<dyn Volume> {
    let (spec, lu) = lu_spec(bytes, false);
    let lu = LuSpec { fresh: false, identity: Some(identity.clone()), ..lu };
    pool.open_lu(&spec, &lu).unwrap_or_else(|error| panic!("{error}")).0
}

fn number(identity: &FileIdentity) -> u32 {
    let FileIdentity::Lu { number, .. } = identity else { panic!("{identity:?}") };
    *number
}

#[test]
fn an_lu_does_what_every_volume_does() {
    for in_memory in [false, true] {
        let place = Place::new(in_memory, &[20, 30, 20]);
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        for (seed, block_size) in [(1, 512), (2, 4096)] {
            let make = || {
                let (spec, lu) = lu_spec(3 * CHUNK_BYTES, false);
                let spec = VolumeSpec { block_size, ..spec };
                pool.open_lu(&spec, &lu).unwrap_or_else(|error| panic!("{error}")).0
            };
            let grow_to = Some(9 * CHUNK_BYTES + 8192);
            run(&make, &Options { seed, grow_to, ..Options::default() });
        }
        pool.close();
    }
}

#[test]
fn an_lu_that_is_written_through_or_read_only_does_too() {
    let place = Place::new(false, &[40]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let make = || {
        let (spec, lu) = lu_spec(CHUNK_BYTES, false);
        let spec = VolumeSpec { write_through: true, ..spec };
        pool.open_lu(&spec, &lu).unwrap_or_else(|error| panic!("{error}")).0
    };
    assert!(!make().geometry().write_cache);
    run(&make, &Options { operations: 100, ..Options::default() });
    let make = || {
        let (spec, lu) = lu_spec(CHUNK_BYTES, false);
        let spec = VolumeSpec { read_only: true, ..spec };
        pool.open_lu(&spec, &lu).unwrap_or_else(|error| panic!("{error}")).0
    };
    run(&make, &Options::default());
}

/// Where the chunks meet, a request is served in rounds.
#[test]
fn a_request_over_chunks_is_whole() {
    let place = Place::new(false, &[10, 10]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, _) = new_lu(&pool, 4 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let mut random = Random::new(3);
    for round in 0..6 {
        let data: Vec<u8> = (0..1 << 20).map(|_| random.below(256) as u8).collect();
        // The first time none of it is written, then a part, then all.
        let at = 2 * CHUNK_BYTES - (512 << (round % 3)) - round * 512;
        bench.write(at, &data).unwrap();
        assert!(bench.read(at, data.len()).unwrap() == data, "round {round}");
        assert!(bench.read(at - 512, 512).unwrap().len() == 512);
    }
    assert_eq!(bench.run(OpKind::Flush, 0, 0, &[]), Ok(()));
    bench.close();
}

#[test]
fn only_first_writes_and_the_like_take_the_pool() {
    let place = Place::new(false, &[10]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, _) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    assert_eq!(bench.read(0, 4096).unwrap(), [0; 4096], "what nobody wrote");
    assert_eq!(bench.parks(Wait::Pool), 0);
    bench.write(0, &[7; 4096]).unwrap();
    assert_eq!(bench.parks(Wait::Pool), 1, "a first write");
    for at in (0..BLOCK_BYTES).step_by(4096) {
        bench.write(at, &[8; 4096]).unwrap();
        assert_eq!(bench.read(at, 4096).unwrap(), [8; 4096]);
    }
    assert_eq!(bench.parks(Wait::Pool), 1, "the rest of its block");
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    bench.run(ZEROES, 0, BLOCK_BYTES, &[]).unwrap();
    assert_eq!(bench.parks(Wait::Pool), 3);
    assert_eq!(bench.read(0, 4096).unwrap(), [0; 4096]);
    assert_eq!(bench.parks(Wait::Pool), 3, "it is zeros again");
    bench.close();
}

#[test]
fn an_lu_grows_and_shrinks_and_what_was_cut_off_does_not_come_back() {
    let mut place = Place::new(false, &[10, 8]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, mut identity) = new_lu(&pool, 2 * CHUNK_BYTES + (128 << 10));
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(CHUNK_BYTES, &[1; 8192]).unwrap();
    bench.write(2 * CHUNK_BYTES + (124 << 10), &[2; 4096]).unwrap();
    // Under a client it becomes larger, and not smaller.
    let refused = lu.resize(CHUNK_BYTES).unwrap_err().to_string();
    assert!(refused.contains("in use by 1 channels"), "{refused}");
    lu.resize(5 * CHUNK_BYTES).unwrap();
    assert_eq!(bench.read(2 * CHUNK_BYTES + (128 << 10), 4096).unwrap(), [0; 4096]);
    bench.write(5 * CHUNK_BYTES - 4096, &[3; 4096]).unwrap();
    assert_eq!(bench.read(5 * CHUNK_BYTES - 4096, 4096).unwrap(), [3; 4096]);
    bench.close();
    let space = |pool: &PoolHandle| (pool.view().lus[0].chunks, pool.view().lus[0].allocated);
    comes((5, 3), || space(&pool));
    lu.resize(CHUNK_BYTES + 4096).unwrap();
    assert_eq!((space(&pool), lu.geometry().bytes), ((2, 1), CHUNK_BYTES + 4096));
    lu.resize(4 * CHUNK_BYTES).unwrap();
    drop((lu, pool));
    pools.stop();
    // The server did not hear of it: it has the size that it wanted, and what it knew is too little.
    place.spec.fresh = false;
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let opened = |identity: &FileIdentity, chunks| {
        let lu = old_lu(&pool, chunks * CHUNK_BYTES, identity);
        (lu.geometry().bytes, space(&pool).0)
    };
    assert_eq!(opened(&identity, 1), (CHUNK_BYTES, 4), "longer than anybody knows: it is not cut");
    assert_eq!(opened(&identity, 9), (4 * CHUNK_BYTES, 4), "it grows when it is told to");
    identity.set_bytes(4 * CHUNK_BYTES);
    assert_eq!(opened(&identity, 1), (4 * CHUNK_BYTES, 4), "it is cut when it is told to");
    let lu = old_lu(&pool, 4 * CHUNK_BYTES, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    assert_eq!(bench.read(CHUNK_BYTES, 4096).unwrap(), [1; 4096]);
    for at in [CHUNK_BYTES + 4096, 2 * CHUNK_BYTES + (124 << 10), 4 * CHUNK_BYTES - 4096] {
        assert_eq!(bench.read(at, 4096).unwrap(), [0; 4096], "at {at}");
    }
    bench.close();
    for bytes in [0, CHUNK_BYTES + 100] {
        assert!(lu.resize(bytes).unwrap_err().to_string().contains("block_size, 512"));
    }
    // A thick one grows only where there is space for it.
    let (spec, thick) = lu_spec(CHUNK_BYTES, true);
    let thick = pool.open_lu(&spec, &thick).unwrap_or_else(|error| panic!("{error}")).0;
    let refused = thick.resize(100 * CHUNK_BYTES).unwrap_err().to_string();
    assert!(refused.contains("no space") && refused.contains("add a PV"), "{refused}");
    assert_eq!(thick.geometry().bytes, CHUNK_BYTES);
    thick.resize(2 * CHUNK_BYTES).unwrap();
}

/// What is dropped without a word is as a process that is killed, but for the descriptors' locks.
#[test]
fn what_was_answered_survives_the_process_flushed_or_not() {
    for flushes in [false, true] {
        let mut place = Place::new(false, &[10, 12]);
        let size = 3 * CHUNK_BYTES;
        let blocks = size / BLOCK_BYTES;
        let mut random = Random::new(11);
        let mut oracle = std::collections::BTreeMap::new();
        let mut identity = None;
        for life in 0..6_u8 {
            let pools = Pools::start().expect("a thread");
            let pool = place.open(&pools);
            place.spec.fresh = false;
            let lu = match &identity {
                None => {
                    let (lu, known) = new_lu(&pool, size);
                    identity = Some(known);
                    lu
                }
                Some(known) => old_lu(&pool, size, known),
            };
            let mut bench = TestBench::new(&*lu, MEMORY);
            for (block, expected) in &oracle {
                let found = bench.read(block * BLOCK_BYTES + 4096, 512).unwrap();
                assert!(found == [*expected; 512], "life {life}, block {block}: {}", found[0]);
            }
            for step in 0..120 {
                let block = random.below(blocks / 8) * 8;
                let value = 1 + life * 40 + step % 40;
                if random.below(6) == 0 {
                    bench.run(ZEROES, block * BLOCK_BYTES, BLOCK_BYTES, &[]).unwrap();
                    oracle.insert(block, 0);
                } else {
                    bench.write(block * BLOCK_BYTES + 4096, &[value; 512]).unwrap();
                    oracle.insert(block, value);
                }
                if flushes && random.below(20) == 0 {
                    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
                }
            }
            bench.close();
            drop(lu);
            // The thread ends where it is; nothing is written that was not.
            pools.stop();
        }
    }
}

/// Breaks the promise that the file of the shadow keeps, so that the test above is known to look.
#[test]
fn without_the_shadow_something_would_be_missing() {
    let mut place = Place::new(false, &[10]);
    let (identity, pools) = {
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        let (lu, identity) = new_lu(&pool, CHUNK_BYTES);
        let mut bench = TestBench::new(&*lu, MEMORY);
        bench.write(0, &[7; 512]).unwrap();
        bench.close();
        (identity, pools)
    };
    pools.stop();
    drop(pools);
    place.spec.fresh = false;
    place.spec.shadow = place.memory.path().join("another");
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let lu = old_lu(&pool, CHUNK_BYTES, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    assert_eq!(bench.read(0, 512).unwrap(), [0; 512], "its bit was in the shadow alone");
    bench.close();
}

#[test]
fn two_lus_never_see_each_other_and_a_new_one_is_empty() {
    let place = Place::new(false, &[12]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let size = 3 * CHUNK_BYTES;
    let whole = |bench: &mut TestBench, byte: u8| {
        for at in (0..size).step_by(8 << 20) {
            bench.write(at, &vec![byte; 512 << 10]).unwrap();
        }
    };
    let holds = |bench: &mut TestBench, byte: u8, what: &str| {
        for at in (0..size).step_by(8 << 20) {
            let found = bench.read(at, 1 << 20).unwrap();
            assert!(found[..512 << 10].iter().all(|found| *found == byte), "{what}, at {at}");
            assert!(found[512 << 10..].iter().all(|found| *found == 0), "{what}, behind {at}");
        }
    };
    let (kept, _) = new_lu(&pool, size);
    let mut other = TestBench::new(&*kept, MEMORY);
    whole(&mut other, 0xaa);
    // Of 12 chunks the pool has 5, the one LU 3, and the other 3 each time.
    for round in 1..6_u8 {
        let (lu, identity) = new_lu(&pool, size);
        let mut bench = TestBench::new(&*lu, MEMORY);
        holds(&mut bench, 0, "a new one");
        whole(&mut bench, round);
        holds(&mut bench, round, "its own");
        holds(&mut other, 0xaa, "the other's");
        bench.close();
        drop(lu);
        pool.remove_lus(&[number(&identity)]).unwrap_or_else(|error| panic!("{error}"));
    }
    other.close();
}

/// Waits until the pool tells that of itself: it does so some time after it was so.
#[track_caller]
fn comes<T: PartialEq + std::fmt::Debug>(expected: T, told: impl Fn() -> T) {
    for _ in 0..6000 {
        if told() == expected {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(told(), expected, "for a minute");
}

/// No copy is made of what waits: what is there when it goes on is what is written. A request of many pieces goes on in rounds.
#[test]
fn a_write_that_waits_for_space_is_the_client_s_memory_until_then() {
    let place = Place::new(false, &[8]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, _) = new_lu(&pool, 4 * CHUNK_BYTES);
    let (other, identity) = new_lu(&pool, 3 * CHUNK_BYTES);
    let mut of_other = TestBench::new(&*other, MEMORY);
    for chunk in 0..3 {
        of_other.write(chunk * CHUNK_BYTES, &[1; 512]).unwrap();
    }
    of_other.close();
    drop(other);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let mut random = Random::new(5);
    // As a guest has its memory: pages that do not lie side by side. And crumbs, of which a block has more pieces than a round may have.
    let pages: Vec<_> = (0..200).map(|page| bench.buf(page * 8192, 4096)).collect();
    let crumbs: Vec<_> = (0..4096).map(|byte| bench.buf((2 << 20) + byte * 2, 1)).collect();
    let requests = [(0, pages), (CHUNK_BYTES + 512, crumbs)];
    let started = requests.each_ref().map(|(at, bufs)| {
        bufs.iter().for_each(|buf| buf.fill(0xee));
        let len = bufs.iter().map(|buf| buf.len() as u64).sum();
        bench.start(WRITE, *at, len, bufs)
    });
    while pool.view().paused < 2 {
        std::thread::yield_now();
    }
    let mut expected = Vec::new();
    for (_, bufs) in &requests {
        let bytes: Vec<Vec<u8>> = bufs
            .iter()
            .map(|buf| (0..buf.len()).map(|_| random.below(256) as u8).collect())
            .collect();
        bufs.iter().zip(&bytes).for_each(|(buf, bytes)| buf.write(0, bytes));
        expected.push(bytes.concat());
    }
    pool.remove_lus(&[number(&identity)]).unwrap_or_else(|error| panic!("{error}"));
    let mut ended = [bench.finished().unwrap(), bench.finished().unwrap()];
    ended.sort_by_key(|(tag, _)| *tag);
    assert_eq!(ended, started.map(|tag| (tag, Ok(()))));
    for ((at, bufs), expected) in requests.iter().zip(expected) {
        assert!(bench.read(*at, expected.len()).unwrap() == expected, "at {at}");
        // Read through the pool, and into the same pieces: what is around was never written.
        bench.run(ZEROES, at + (2 << 20), BLOCK_BYTES, &[]).unwrap();
        bufs.iter().for_each(|buf| buf.fill(0));
        let len = expected.len() as u64;
        let tag = bench.start(OpKind::Read, *at, len, bufs);
        assert_eq!(bench.finished(), Some((tag, Ok(()))));
        let mut found = vec![0; expected.len()];
        let mut from = 0;
        for buf in bufs {
            buf.read(0, &mut found[from..from + buf.len()]);
            from += buf.len();
        }
        assert!(found == expected, "in pieces, at {at}");
    }
    bench.close();
}

#[test]
fn a_thick_lu_has_its_space_set_aside() {
    let place = Place::new(false, &[12]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (spec, lu) = lu_spec(5 * CHUNK_BYTES, true);
    drop(pool.open_lu(&spec, &lu).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(pool.view().free, 2);
    let (spec, lu) = lu_spec(3 * CHUNK_BYTES, true);
    let refused = pool.open_lu(&spec, &lu).err().expect("it is refused").to_string();
    assert!(refused.contains("no space"), "{refused}");
    drop(new_lu(&pool, 100 * CHUNK_BYTES));
    assert_eq!(pool.view().lus.len(), 2);
}

#[test]
fn what_holds_something_is_no_pv() {
    let place = Place::new(false, &[10]);
    let path = &place.spec.pvs[0];
    let write = |at: u64, bytes: &[u8]| {
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(bytes, at).unwrap();
    };
    write(1080, &[0x53, 0xef]);
    let refused = place.refused();
    assert!(refused.contains("pv0 holds an ext file system; name another device"), "{refused}");
    file(path, 10);
    write(510, &[0x55, 0xaa]);
    assert!(place.refused().contains("boot sector"));
    file(path, 4);
    let refused = place.refused();
    assert!(refused.contains("pv0 is too small") && refused.contains("larger"), "{refused}");
    file(path, 10);
    // Of another pool.
    let mut other = Place::new(false, &[10]);
    other.spec.uuid = "ff".repeat(16);
    other.spec.pvs = place.spec.pvs.clone();
    let pools = Pools::start().expect("a thread");
    other.open(&pools).close();
    let refused = place.refused();
    assert!(refused.contains("belongs to another pool, ffffffff-"), "{refused}");
    std::fs::remove_file(path).unwrap();
    assert!(place.refused().contains("No such file"));
}

#[test]
fn a_pool_without_one_of_its_pvs_does_not_open_and_loses_nothing() {
    let mut place = Place::new(false, &[10, 10]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, 2 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 512]).unwrap();
    bench.write(CHUNK_BYTES, &[2; 512]).unwrap();
    bench.close();
    drop(lu);
    pool.close();
    let all = place.spec.pvs.clone();
    // Also with fresh, as a pool that was made and not recorded.
    place.spec.pvs.truncate(1);
    assert!(place.refused().contains("is missing"), "{}", place.refused());
    place.spec.fresh = false;
    assert!(place.refused().contains("is missing"));
    // Something else is there.
    let blank = place.folder.path().join("blank");
    file(&blank, 10);
    place.spec.pvs.push(blank);
    let refused = place.refused();
    assert!(refused.contains("blank is not of this pool: it has no label"), "{refused}");
    // In another order they are the same.
    place.spec.pvs = all.into_iter().rev().collect();
    let pool = place.open(&pools);
    let lu = old_lu(&pool, 2 * CHUNK_BYTES, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    assert_eq!(bench.read(0, 512).unwrap(), [1; 512]);
    assert_eq!(bench.read(CHUNK_BYTES, 512).unwrap(), [2; 512]);
    bench.close();
}

#[test]
fn another_server_s_shadow_is_not_taken_over() {
    let mut place = Place::new(false, &[10]);
    let other = tempfile::tempdir_in("/dev/shm").unwrap();
    let ours = place.spec.clone();
    let theirs = PoolSpec {
        server: "77".repeat(16),
        shadow: other.path().join("shadow"),
        fresh: false,
        ..ours.clone()
    };
    let life = |spec: &PoolSpec, known: Option<&FileIdentity>, byte: u8| {
        let pools = Pools::start().expect("a thread");
        let pool = pools.open(&Here, None, spec, &mut |_| ());
        let pool = pool.unwrap_or_else(|error| panic!("{error}"));
        let (lu, identity) = match known {
            None => new_lu(&pool, CHUNK_BYTES),
            Some(known) => (old_lu(&pool, CHUNK_BYTES, known), known.clone()),
        };
        let mut bench = TestBench::new(&*lu, MEMORY);
        let found = bench.read(0, 512).unwrap()[0];
        bench.write(0, &[byte; 512]).unwrap();
        bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
        bench.run(ZEROES, 0, BLOCK_BYTES, &[]).unwrap();
        bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
        if byte > 1 {
            bench.write(0, &[byte; 512]).unwrap();
            bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
        }
        bench.close();
        drop(lu);
        pools.stop();
        (found, identity)
    };
    // Ours leaves zeros, theirs writes, and ours finds that and not what its own shadow says.
    let (_, identity) = life(&ours, None, 1);
    assert_eq!(life(&theirs, Some(&identity), 2).0, 0);
    place.spec.fresh = false;
    assert_eq!(life(&place.spec, Some(&identity), 3).0, 2);
}
