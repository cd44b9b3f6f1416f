//! PVs that hang below the kernel: whoever needs them waits, and nobody else.

use testkit::{Disk, Kind, is_root};

use super::*;

const MIB: u64 = 1 << 20;

/// A pool on disks that the test can stop.
fn place_on(disks: &[&Disk], uuid: &str) -> Place {
    let mut place = Place::new(false, &[]);
    place.spec.pvs = disks.iter().map(|disk| disk.path()).collect();
    place.spec.uuid = uuid.repeat(16);
    place
}

/// Of a pool on one PV that takes no writes any more, clients have so many first writes out that all buffers of their PV are used; meanwhile another pool works, is closed and opened, and
/// grows by a PV.
#[test]
fn a_pv_that_takes_no_writes_delays_no_other_pool() {
    if !is_root("a disk that hangs below a pool") {
        return;
    }
    let pools = Pools::start().expect("a thread");
    let disk = Disk::new(9 * CHUNK_BYTES);
    let hangs = place_on(&[&disk], "aa");
    let hung = hangs.open(&pools);
    let (lu, _) = new_lu(&hung, 3 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 512]).unwrap();
    disk.hold(Kind::Write);
    let large = bench.buf(0, 1 << 20);
    let small = bench.buf(1 << 20, 4096);
    large.fill(2);
    small.fill(3);
    let large = (1..41).map(|at| bench.start(WRITE, at * MIB, MIB, &[large])).collect::<Vec<_>>();
    let places = (0..200).map(|at| CHUNK_BYTES + at * BLOCK_BYTES);
    let small: Vec<_> = places.map(|at| bench.start(WRITE, at, 4096, &[small])).collect();
    disk.wait_held(Kind::Write, 1);
    let mut place = Place::new(false, &[10]);
    let other = place.open(&pools);
    let (free, identity) = new_lu(&other, 2 * CHUNK_BYTES);
    let mut of_free = TestBench::new(&*free, MEMORY);
    for at in 0..40 {
        of_free.write(at * MIB, &vec![at as u8; MIB as usize]).unwrap();
        of_free.write(at * MIB + CHUNK_BYTES, &[at as u8; 4096]).unwrap();
    }
    of_free.run(OpKind::Flush, 0, 0, &[]).unwrap();
    of_free.close();
    drop(free);
    let more = place.folder.path().join("more");
    file(&more, 10);
    other.add_pvs(&Here, None, &[(more.clone(), 0)], &mut |_| ()).unwrap();
    other.close();
    place.spec.fresh = false;
    place.spec.pvs.push(more);
    let other = place.open(&pools);
    let free = old_lu(&other, 2 * CHUNK_BYTES, &identity);
    let mut of_free = TestBench::new(&*free, MEMORY);
    assert_eq!(of_free.read(39 * MIB, 4096).unwrap(), [39; 4096]);
    of_free.close();
    // It had all of them, and goes on with each.
    assert_eq!(bench.in_flight(), large.len() + small.len());
    disk.release(Kind::Write);
    while let Some((_, result)) = bench.finished() {
        assert_eq!(result, Ok(()));
    }
    assert_eq!(bench.read(40 * MIB, 4096).unwrap(), [2; 4096]);
    bench.close();
}

/// Of a pool with several PVs one hangs, and it is none of those that have its journal: what is on the others goes on.
#[test]
fn a_pv_that_hangs_delays_nothing_on_others_of_its_pool() {
    if !is_root("a disk that hangs below a pool") {
        return;
    }
    let pools = Pools::start().expect("a thread");
    let mut place = Place::new(false, &[10, 10, 10]);
    let disk = Disk::new(12 * CHUNK_BYTES);
    place.spec.pvs.push(disk.path());
    let pool = place.open(&pools);
    let (lu, _) = new_lu(&pool, 8 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    // Where most is free is that one: its chunks are known by what they take.
    let used = |pool: &PoolHandle| {
        let pvs = pool.view().pvs.into_iter();
        pvs.map(|pv| pv.space.used).collect::<Vec<_>>()
    };
    let mut on_it = Vec::new();
    for chunk in 0..8 {
        let before = used(&pool)[3];
        bench.write(chunk * CHUNK_BYTES, &[1; 512]).unwrap();
        comes(chunk + 1, || used(&pool).into_iter().map(u64::from).sum());
        if used(&pool)[3] > before {
            on_it.push(chunk);
        }
    }
    assert!(on_it.len() >= 2 && on_it.len() < 8, "{on_it:?}");
    disk.hold(Kind::Write);
    let buf = bench.buf(1 << 20, 1 << 20);
    buf.fill(2);
    let hung: Vec<_> = (1..33)
        .map(|at| bench.start(WRITE, on_it[0] * CHUNK_BYTES + at * MIB, MIB, &[buf]))
        .collect();
    disk.wait_held(Kind::Write, 1);
    let chunks: Vec<u64> = (0..8).filter(|chunk| !on_it.contains(chunk)).collect();
    let mut tags: Vec<_> = chunks
        .iter()
        .flat_map(|chunk| (1..9).map(move |at| chunk * CHUNK_BYTES + at * MIB))
        .map(|at| bench.start(WRITE, at, MIB, &[buf]))
        .collect();
    while !tags.is_empty() {
        let (tag, result) = bench.finished().unwrap();
        assert_eq!(result, Ok(()));
        assert!(!hung.contains(&tag), "it cannot have been written");
        tags.retain(|other| *other != tag);
    }
    disk.release(Kind::Write);
    while let Some((_, result)) = bench.finished() {
        assert_eq!(result, Ok(()));
    }
    bench.close();
}

/// A chunk counts once its record is in a block of the journal, and that may be long after it was written to.
#[test]
fn what_is_allocated_is_told_also_where_the_journal_is_slower_than_the_data() {
    if !is_root("a disk that hangs below a pool") {
        return;
    }
    let pools = Pools::start().expect("a thread");
    // Its journal is on both, and every other chunk of the LU is on the first.
    let mut place = Place::new(false, &[30]);
    let disk = Disk::new(9 * CHUNK_BYTES);
    place.spec.pvs.push(disk.path());
    let pool = place.open(&pools);
    let (lu, _) = new_lu(&pool, 8 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    disk.hold(Kind::Write);
    let buf = bench.buf(0, 512);
    bench.start(WRITE, 0, 512, &[buf]);
    disk.wait_held(Kind::Write, 1);
    bench.start(WRITE, 2 * CHUNK_BYTES, 512, &[buf]);
    // What is told is made anew within this time of a change, and that is too early here.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(pool.view().lus[0].allocated, 1);
    disk.release(Kind::Write);
    while let Some((_, result)) = bench.finished() {
        assert_eq!(result, Ok(()));
    }
    comes(2, || pool.view().lus[0].allocated);
    bench.close();
}

/// At the first read, in the middle of what is read, and while the pool takes itself up: other pools are served meanwhile, and open.
#[test]
fn a_pv_that_hangs_while_its_pool_is_opened_delays_no_other_pool() {
    if !is_root("a disk that hangs below a pool") {
        return;
    }
    let pools = Pools::start().expect("a thread");
    let disk = Disk::new(9 * CHUNK_BYTES);
    let mut hangs = place_on(&[&disk], "aa");
    let pool = hangs.open(&pools);
    let (lu, identity) = new_lu(&pool, 3 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 512]).unwrap();
    bench.close();
    drop(lu);
    pool.close();
    hangs.spec.fresh = false;
    let place = Place::new(false, &[10]);
    let other = place.open(&pools);
    let (free, _) = new_lu(&other, 4 * CHUNK_BYTES);
    let mut of_free = TestBench::new(&*free, MEMORY);
    for (round, (kind, from)) in
        [(Kind::Read, 0), (Kind::Read, 2 * MIB), (Kind::Write, 0), (Kind::Flush, 0)]
            .into_iter()
            .enumerate()
    {
        disk.hold_from(kind, from);
        let pool = std::thread::scope(|scope| {
            let opens = scope.spawn(|| hangs.open(&pools));
            disk.wait_held(kind, 1);
            of_free.write(round as u64 * CHUNK_BYTES + MIB, &[7; 4096]).unwrap();
            of_free.run(OpKind::Flush, 0, 0, &[]).unwrap();
            let mut third = Place::new(false, &[10]);
            third.spec.uuid = "bb".repeat(16);
            third.open(&pools).close();
            assert!(!opens.is_finished(), "{kind:?} from {from}");
            disk.release(kind);
            opens.join().unwrap()
        });
        let lu = old_lu(&pool, 3 * CHUNK_BYTES, &identity);
        let mut bench = TestBench::new(&*lu, MEMORY);
        assert_eq!(bench.read(0, 512).unwrap(), [1; 512]);
        bench.close();
        drop(lu);
        pool.close();
    }
    // One that is looked at before it is added.
    let new = Disk::new(9 * CHUNK_BYTES);
    new.hold(Kind::Read);
    let pool = hangs.open(&pools);
    std::thread::scope(|scope| {
        let adds = scope.spawn(|| pool.add_pvs(&Here, None, &[(new.path(), 0)], &mut |_| ()));
        new.wait_held(Kind::Read, 1);
        of_free.write(2 * MIB, &[7; 4096]).unwrap();
        new.release(Kind::Read);
        adds.join().unwrap().unwrap();
    });
    assert_eq!(pool.view().pvs.len(), 2);
    of_free.close();
}

/// A PV that was added cannot be written for a while, so that no chunk gets there: that is told, and they go by themselves when it can.
#[test]
fn chunks_that_could_not_be_copied_go_when_their_pv_is_in_order() {
    if !is_root("a disk that fails below a pool") {
        return;
    }
    let pools = Pools::start().expect("a thread");
    let place = Place::new(false, &[12, 12, 12]);
    let pool = place.open(&pools);
    let (lu, _) = new_lu(&pool, 15 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    for at in (0..15 * CHUNK_BYTES).step_by(4 << 20) {
        bench.write(at, &[1 + (at >> 26) as u8; 4096]).unwrap();
    }
    let disk = Disk::new(40 * CHUNK_BYTES);
    pool.add_pvs(&Here, None, &[(disk.path(), 0)], &mut |_| ()).unwrap();
    // The pool itself writes there only when its members change.
    disk.fail(Kind::Write, Some(5));
    let failed = || pool.view().balance.is_some_and(|moves| moves.failed > 0);
    while !failed() {
        assert_eq!(pool.view().trouble, None);
        std::thread::yield_now();
    }
    disk.fail(Kind::Write, None);
    // Nobody says or does anything.
    let even = || pool.view().balance.is_none() && pool.view().pvs[3].space.used >= 5;
    while !even() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    for chunk in 0..15 {
        let found = bench.read(chunk * CHUNK_BYTES + (8 << 20), 4096).unwrap();
        assert_eq!(found, [1 + chunk as u8; 4096]);
    }
    bench.close();
}
