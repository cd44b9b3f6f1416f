//! Pools that are full, or nearly so.

use super::*;

#[test]
fn a_full_pool_lets_writers_wait_and_all_else_go_on() {
    let place = Place::new(false, &[8]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    // Three chunks are left of eight.
    let (lu, _) = new_lu(&pool, 6 * CHUNK_BYTES);
    let (other, identity) = new_lu(&pool, CHUNK_BYTES);
    let mut of_other = TestBench::new(&*other, MEMORY);
    of_other.write(0, &[1; 512]).unwrap();
    of_other.close();
    drop(other);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[2; 4096]).unwrap();
    bench.write(CHUNK_BYTES, &[3; 4096]).unwrap();
    comes(0, || pool.view().free);
    let buf = bench.buf(1 << 20, 4096);
    buf.fill(4);
    let waits = bench.start(WRITE, 2 * CHUNK_BYTES, 4096, &[buf]);
    let ends = |bench: &mut TestBench, op, at| {
        let buf = bench.buf(2 << 20, 4096);
        let len = if op == OpKind::Flush { 0 } else { 4096 };
        let bufs: &[memory::IoBuf] = if len == 0 { &[] } else { &[buf] };
        let tag = bench.start(op, at, len, bufs);
        assert_eq!(bench.finished(), Some((tag, Ok(()))), "{op:?} at {at}");
    };
    ends(&mut bench, OpKind::Read, 0);
    ends(&mut bench, OpKind::Read, 2 * CHUNK_BYTES);
    ends(&mut bench, WRITE, CHUNK_BYTES);
    ends(&mut bench, OpKind::Flush, 0);
    let view = pool.view();
    assert_eq!((view.paused, view.pauses), (1, 1), "{view:?}");
    let second = bench.start(WRITE, 3 * CHUNK_BYTES, 4096, &[buf]);
    assert_eq!(bench.parks(Wait::PoolFull), 1, "the second is known to wait for space");
    // One chunk comes free, and another when something is zeros altogether.
    pool.remove_lus(&[number(&identity)]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(bench.finished(), Some((waits, Ok(()))));
    let zeroes = bench.start(ZEROES, 0, CHUNK_BYTES, &[]);
    let mut ended = [bench.finished().unwrap(), bench.finished().unwrap()];
    ended.sort_by_key(|(tag, _)| *tag);
    assert_eq!(ended, [(second, Ok(())), (zeroes, Ok(()))]);
    assert_eq!(bench.read(3 * CHUNK_BYTES, 4096).unwrap(), [4; 4096]);
    bench.close();
    comes(0, || pool.view().paused);
}

pub(super) fn full_of(lus: &[(u32, u64, Option<u32>)]) -> FullSpec {
    let of = |(lu, reserve_bytes, pause_s): &(u32, u64, Option<u32>)| FullLuSpec {
        lu: *lu,
        reserve_bytes: *reserve_bytes,
        pause_s: *pause_s,
    };
    FullSpec { throttle_percent: None, lus: lus.iter().map(of).collect() }
}

#[test]
fn what_is_set_aside_for_an_lu_is_refused_where_there_is_no_room_unless_it_had_it() {
    let place = Place::new(false, &[8]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, 4 * CHUNK_BYTES);
    let (other, _) = new_lu(&pool, 4 * CHUNK_BYTES);
    let reserve = |bytes| full_of(&[(number(&identity), bytes, None)]);
    // Three chunks are left of eight.
    assert_eq!(pool.when_full(&reserve(4 * CHUNK_BYTES), true).unwrap(), [1]);
    assert_eq!(pool.view().free, 3);
    pool.when_full(&reserve(CHUNK_BYTES + 1), true).unwrap();
    assert_eq!(pool.view().free, 1, "in whole chunks");
    pool.when_full(&reserve(4 * CHUNK_BYTES), false).unwrap();
    comes(0, || pool.view().free);
    let (mut lu, mut other) = (TestBench::new(&*lu, MEMORY), TestBench::new(&*other, MEMORY));
    let buf = other.buf(0, 4096);
    let waits = other.start(WRITE, 0, 4096, &[buf]);
    comes(1, || pool.view().paused);
    lu.write(0, &[1; 4096]).unwrap();
    pool.when_full(&FullSpec::default(), true).unwrap();
    assert_eq!(other.finished(), Some((waits, Ok(()))));
}

/// Sixty chunks at once, and then one each second, although there are more; what needs none does not wait.
#[test]
fn a_pool_that_is_nearly_full_slows_writes_that_need_space() {
    let place = Place::new(false, &[90]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, _) = new_lu(&pool, 70 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 4096]).unwrap();
    let limit = |throttle_percent| FullSpec { throttle_percent, lus: Vec::new() };
    pool.when_full(&limit(Some(1)), true).unwrap();
    for vchunk in 1..61 {
        bench.write(vchunk * CHUNK_BYTES, &[2; 4096]).unwrap();
    }
    let buf = bench.buf(0, 4096);
    let slowed: Vec<_> =
        (61..64).map(|vchunk| bench.start(WRITE, vchunk * CHUNK_BYTES, 4096, &[buf])).collect();
    let tier = || pool.view().tiers[0];
    while tier().slowed == 0 {
        std::thread::yield_now();
    }
    assert_eq!((tier().paused, pool.view().paused), (0, 0));
    assert!(tier().free > 0 && tier().slowed_at.is_some());
    let overwrites = bench.start(WRITE, 0, 4096, &[buf]);
    let mut ended = Vec::new();
    while !ended.contains(&overwrites) {
        let (tag, result) = bench.finished().unwrap();
        assert_eq!(result, Ok(()));
        ended.push(tag);
    }
    assert!(ended.len() <= slowed.len(), "it came last and did not wait for all");
    pool.when_full(&limit(Some(100)), true).unwrap();
    while ended.len() < slowed.len() + 1 {
        ended.push(bench.finished().unwrap().0);
    }
    assert_eq!((tier().slowed, tier().slowed_at), (0, None));
}

/// Others go on waiting, and whoever waits when that is said is told as well.
#[test]
fn writes_of_an_lu_that_is_to_refuse_fail_where_its_pool_is_full() {
    let place = Place::new(false, &[8]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, _) = new_lu(&pool, 4 * CHUNK_BYTES);
    let (other, identity) = new_lu(&pool, 4 * CHUNK_BYTES);
    let mut patient = TestBench::new(&*lu, MEMORY);
    let mut hasty = TestBench::new(&*other, MEMORY);
    // Three chunks are left of eight.
    hasty.write(0, &[1; 4096]).unwrap();
    patient.write(0, &[2; 4096]).unwrap();
    patient.write(CHUNK_BYTES, &[2; 4096]).unwrap();
    let start = |bench: &mut TestBench, at| {
        let buf = bench.buf(1 << 20, 4096);
        buf.fill(4);
        bench.start(WRITE, at, 4096, &[buf])
    };
    let waits = start(&mut patient, 2 * CHUNK_BYTES);
    let told = start(&mut hasty, CHUNK_BYTES);
    comes(2, || pool.view().paused);
    let error = |pause_s| full_of(&[(number(&identity), 0, pause_s)]);
    pool.when_full(&error(Some(0)), true).unwrap();
    assert_eq!(hasty.finished(), Some((told, Err(IoError::NoSpace))));
    let again = start(&mut hasty, 2 * CHUNK_BYTES);
    assert_eq!(hasty.finished(), Some((again, Err(IoError::NoSpace))));
    hasty.write(4096, &[5; 4096]).unwrap();
    assert_eq!(hasty.read(CHUNK_BYTES, 4096).unwrap(), [0; 4096]);
    comes(1, || pool.view().paused);
    // It is to wait a second, and then for ever.
    pool.when_full(&error(Some(1)), true).unwrap();
    let again = start(&mut hasty, 2 * CHUNK_BYTES);
    comes(2, || pool.view().paused);
    assert_eq!(hasty.finished(), Some((again, Err(IoError::NoSpace))));
    pool.when_full(&FullSpec::default(), true).unwrap();
    let second = start(&mut hasty, CHUNK_BYTES);
    comes(2, || pool.view().paused);
    let zeroes = patient.start(ZEROES, CHUNK_BYTES, CHUNK_BYTES, &[]);
    let mut ended = [patient.finished().unwrap(), patient.finished().unwrap()];
    ended.sort_by_key(|(tag, _)| *tag);
    assert_eq!(ended, [(waits, Ok(())), (zeroes, Ok(()))]);
    let zeroes = patient.start(ZEROES, 0, CHUNK_BYTES, &[]);
    assert_eq!(patient.finished(), Some((zeroes, Ok(()))));
    assert_eq!(hasty.finished(), Some((second, Ok(()))));
    assert_eq!(hasty.read(CHUNK_BYTES, 4096).unwrap(), [4; 4096]);
}
