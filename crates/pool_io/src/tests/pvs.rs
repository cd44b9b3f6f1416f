//! PVs come and go, under a client with lanes and over processes that die.

use super::*;

/// Blocks of 4 KiB that a client has written, by number, and what in each.
#[derive(Default)]
struct Written(std::collections::BTreeMap<u64, u8>);

impl Written {
    /// Writes some, and reads some others.
    fn go_on(&mut self, bench: &mut TestBench, random: &mut Random, bytes: u64) {
        for _ in 0..8 {
            let block = random.below(bytes / 4096 / 16) * 16;
            let value = 1 + random.below(255) as u8;
            bench.write(block * 4096, &[value; 4096]).unwrap();
            self.0.insert(block, value);
            let (block, value) =
                self.0.range(random.below(bytes / 4096)..).next().unwrap_or((&block, &value));
            let found = bench.read(block * 4096, 4096).unwrap();
            assert!(found == [*value; 4096], "block {block}: {} and not {value}", found[0]);
        }
    }

    fn judge(&self, bench: &mut TestBench) {
        for (block, value) in &self.0 {
            let found = bench.read(block * 4096, 4096).unwrap();
            assert!(found == [*value; 4096], "block {block}: {} and not {value}", found[0]);
        }
    }
}

fn add(pool: &PoolHandle, paths: &[&PathBuf]) -> Result<(), String> {
    let paths: Vec<(PathBuf, u8)> = paths.iter().map(|path| ((*path).clone(), 0)).collect();
    pool.add_pvs(&Here, None, &paths, &mut |_| ()).map_err(|error| error.to_string())
}

/// PVs of all sizes, a client with a lane from before, and processes that die in the middle.
#[test]
fn pvs_come_and_go_while_a_client_writes_and_processes_die() {
    let mut place = Place::new(false, &[12, 20]);
    let size = 16 * CHUNK_BYTES;
    let (mut random, mut written) = (Random::new(7), Written::default());
    let [small, large] = ["small", "large"].map(|name| place.folder.path().join(name));
    file(&small, 9);
    file(&large, 60);
    let old = place.spec.pvs[0].clone();
    let mut pools = Pools::start().expect("a thread");
    let mut pool = place.open(&pools);
    let (mut lu, identity) = new_lu(&pool, size);
    let mut bench = TestBench::new(&*lu, MEMORY);
    for _ in 0..30 {
        written.go_on(&mut bench, &mut random, size);
    }
    add(&pool, &[&small]).unwrap();
    add(&pool, &[&large]).unwrap();
    let used =
        |pool: &PoolHandle| pool.view().pvs.iter().map(|pv| pv.space.used).collect::<Vec<_>>();
    assert_eq!(used(&pool).len(), 4);
    // Chunks move there by themselves; that it is half done when the process dies is not made up for.
    for life in 0..3 {
        let balance = |pool: &PoolHandle| pool.view().balance;
        while life == 2 && balance(&pool).is_some() || life < 2 && used(&pool)[3] < 2 + life {
            let view = pool.view();
            assert!(view.balance.is_none_or(|moves| moves.moved <= moves.planned), "{view:?}");
            written.go_on(&mut bench, &mut random, size);
        }
        bench.close();
        drop((lu, pool));
        pools.stop();
        place.spec.fresh = false;
        // It is not known that both are in it.
        place.spec.pvs.truncate(2);
        place.spec.pvs.extend([small.clone(), large.clone()]);
        place.spec.joining =
            if life == 0 { vec![small.clone(), large.clone()] } else { Vec::new() };
        pools = Pools::start().expect("a thread");
        pool = place.open(&pools);
        lu = old_lu(&pool, size, &identity);
        bench = TestBench::new(&*lu, MEMORY);
        written.judge(&mut bench);
    }
    assert!(used(&pool)[3] >= 6, "{:?}", used(&pool));
    // The first, which has a copy of the journal, leaves.
    let leaves = pool.view().pvs[0].clone();
    pool.remove_pv(&leaves).unwrap_or_else(|error| panic!("{error}"));
    place.spec.pvs.remove(0);
    place.spec.leaving = vec![old.clone()];
    for _ in 0..3 {
        written.go_on(&mut bench, &mut random, size);
    }
    bench.close();
    drop((lu, pool));
    pools.stop();
    pools = Pools::start().expect("a thread");
    pool = place.open(&pools);
    lu = old_lu(&pool, size, &identity);
    bench = TestBench::new(&*lu, MEMORY);
    written.judge(&mut bench);
    let there = pool.view().pvs[0].path == old;
    while there && pool.gone() == 0 {
        let leaving = pool.view().pvs[0].leaving;
        assert!(leaving.is_none_or(|moves| moves.moved <= moves.planned), "{leaving:?}");
        written.go_on(&mut bench, &mut random, size);
    }
    written.judge(&mut bench);
    bench.close();
    drop(lu);
    assert!(is_blank(&old), "its label and its superblocks are erased");
    // Nobody has it any more: it may come back, and is another one then.
    let lu = old_lu(&pool, size, &identity);
    add(&pool, &[&old]).unwrap();
    let mut bench = TestBench::new(&*lu, MEMORY);
    written.judge(&mut bench);
    let numbers: Vec<u16> = pool.view().pvs.iter().map(|pv| pv.space.pv).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    bench.close();
    drop(lu);
    pool.close();
    // All of it is on the PVs, also without what was in memory.
    std::fs::remove_file(&place.spec.shadow).unwrap();
    place.spec.pvs.push(old);
    place.spec.leaving.clear();
    let pool = place.open(&pools);
    let lu = old_lu(&pool, size, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    written.judge(&mut bench);
    bench.close();
}

#[test]
fn what_is_no_pv_is_not_added_and_nothing_is_written_to_it() {
    let mut place = Place::new(false, &[8, 9]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let [good, bad, theirs] = ["good", "bad", "theirs"].map(|name| place.folder.path().join(name));
    file(&good, 10);
    file(&bad, 4);
    let refused = |paths: &[&PathBuf]| add(&pool, paths).unwrap_err();
    let small = refused(&[&good, &bad]);
    assert!(small.contains("bad is too small: it has 4 chunks"), "{small}");
    file(&bad, 10);
    let holds = std::fs::OpenOptions::new().write(true).open(&bad).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&holds, b"LABELONE", 512).unwrap();
    file(&theirs, 10);
    let other = PoolSpec {
        uuid: "ff".repeat(16),
        pvs: vec![theirs.clone()],
        shadow: place.memory.path().join("other"),
        ..place.spec.clone()
    };
    pools.open(&Here, None, &other, &mut |_| ()).unwrap_or_else(|error| panic!("{error}")).close();
    for (path, what) in [
        (&bad, "bad holds an LVM physical volume"),
        (&theirs, "theirs belongs to another pool, ffffffff-"),
        (&place.folder.path().join("none"), "No such file"),
        (&place.folder.path().to_owned(), "Is a directory"),
    ] {
        let refused = refused(&[&good, path]);
        assert!(refused.contains(what), "{refused}");
        assert_eq!(pool.view().pvs.len(), 2);
        assert!(is_blank(&good), "it is untouched");
    }
    // What another chunk is on cannot leave when there is no room for it.
    let (lu, _) = new_lu(&pool, 7 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    (0..7).for_each(|chunk| bench.write(chunk * CHUNK_BYTES, &[1; 512]).unwrap());
    let pvs = pool.view().pvs;
    let refused = pool.remove_pv(&pvs[0]).unwrap_err().to_string();
    assert!(refused.contains("pv0: what is on it has no room") && refused.contains("add a PV"));
    // A write that waits for space goes on with a PV that comes.
    let (more, _) = new_lu(&pool, CHUNK_BYTES);
    let mut waiting = TestBench::new(&*more, MEMORY);
    let buf = waiting.buf(0, 4096);
    let waits = waiting.start(WRITE, 0, 4096, &[buf]);
    // One that was about to be added when a process died.
    let label = pool::format::Label { pool: pool_uuid(&place), pv: pool::format::Uuid([7; 16]) };
    file(&good, 10);
    let front = std::fs::OpenOptions::new().write(true).open(&good).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&front, &label.encode(), 0).unwrap();
    add(&pool, &[&good]).unwrap();
    assert_eq!(waiting.finished(), Some((waits, Ok(()))));
    waiting.close();
    bench.close();
    drop((lu, more));
    assert_eq!(pool.view().pvs.len(), 3);
    pool.close();
    // While it is closed something else takes the place of one that is not known to be in the pool.
    place.spec.fresh = false;
    place.spec.pvs.extend([good, bad.clone()]);
    place.spec.joining = vec![bad];
    assert_eq!(place.open(&pools).view().pvs.len(), 3);
}

/// Where a PV says whose it is, with what it says there.
fn marks(path: &Path) -> Vec<(u64, [u8; 4096])> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(path).unwrap();
    let mark = |at| {
        let mut bytes = [0; 4096];
        file.read_exact_at(&mut bytes, at).unwrap();
        (at, bytes)
    };
    [0, 64 << 10, 1 << 20, 8 << 20, 32 << 20].map(mark).to_vec()
}

#[test]
fn a_removal_that_was_promised_waits_for_room() {
    let place = Place::new(false, &[10, 10]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, _) = new_lu(&pool, 7 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    (0..7).for_each(|chunk| bench.write(chunk * CHUNK_BYTES, &[chunk as u8; 512]).unwrap());
    let leaves = pool.view().pvs[0].clone();
    assert!(pool.remove_pv(&leaves).is_err(), "who asks now is told");
    let view = pool.view();
    assert!(view.pvs[0].leaving.is_none() && view.trouble.is_none(), "{view:?}");
    for last in [false, true] {
        pool.remove_promised_pv(&leaves).unwrap_or_else(|error| panic!("{error}"));
        let view = pool.view();
        let crate::Progress { planned, moved, .. } = view.pvs[0].leaving.expect("it is to leave");
        assert!(view.pvs[0].waits && planned > 0 && moved == 0, "{view:?}");
        let trouble = view.trouble.unwrap();
        assert!(trouble.contains("pv0 cannot be removed so far"), "{trouble}");
        // It may stay after all.
        if !last {
            pool.keep_pv(&view.pvs[0]).unwrap();
            let view = pool.view();
            assert!(!view.pvs[0].waits && view.pvs[0].leaving.is_none(), "{view:?}");
            assert_eq!(view.trouble, None);
        }
    }
    bench.write(0, &[9; 512]).unwrap();
    // With a PV that comes there is room.
    let more = place.folder.path().join("more");
    file(&more, 10);
    add(&pool, &[&more]).unwrap();
    while pool.gone() == 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(is_blank(&leaves.path));
    for chunk in 0..7 {
        let wanted = if chunk == 0 { 9 } else { chunk as u8 };
        assert!(bench.read(chunk * CHUNK_BYTES, 512).unwrap() == [wanted; 512], "chunk {chunk}");
    }
    bench.close();
}

#[test]
fn a_pv_that_has_left_is_erased_by_the_next_process_if_the_one_before_died_meanwhile() {
    use std::os::unix::fs::FileExt;
    let mut place = Place::new(false, &[12, 20]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let old = place.spec.pvs.remove(0);
    let before = marks(&old);
    pool.remove_pv(&pool.view().pvs[0].clone()).unwrap();
    while pool.gone() == 0 || pool.view().pvs.len() > 1 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(is_blank(&old));
    pool.close();
    (place.spec.fresh, place.spec.leaving) = (false, vec![old.clone()]);
    let put = |marks: &[(u64, [u8; 4096])]| {
        let file = std::fs::File::options().write(true).open(&old).unwrap();
        marks.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
    };
    put(&before);
    place.open(&pools).close();
    assert!(is_blank(&old));
    // What another has begun to use is not touched.
    let theirs: Vec<_> = [(0, [7; 4096])].into_iter().chain(before[1..].iter().copied()).collect();
    put(&theirs);
    place.open(&pools).close();
    assert!(marks(&old) == theirs);
}

fn is_blank(path: &Path) -> bool {
    marks(path).iter().all(|(_, bytes)| *bytes == [0; 4096])
}

fn pool_uuid(place: &Place) -> pool::format::Uuid {
    pool::format::Uuid(u128::from_str_radix(&place.spec.uuid, 16).unwrap().to_be_bytes())
}
