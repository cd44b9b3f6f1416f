//! Pools that another server takes over: their PVs refuse this one, as for a reservation, or for a host on Ceph's blocklist.

use pool::format::MemberState;
use rustix::io::Errno;
use testkit::{Disk, Kind, is_root};

use super::*;

const MIB: u64 = 1 << 20;

/// A pool on disks, every other one in the second failure group, or without such.
fn place_on(disks: &[Disk], mirrored: bool) -> Place {
    let mut place = Place::new(false, &[]);
    place.spec.pvs = disks.iter().map(Disk::path).collect();
    if mirrored {
        place.spec.mirror = vec![disks[1].path(), disks[3].path()];
    }
    place
}

fn all_in(pool: &PoolHandle) -> bool {
    pool.view().pvs.iter().all(|pv| pv.space.state == MemberState::In)
}

fn taken_over(pool: &PoolHandle) -> bool {
    let trouble = pool.view().trouble;
    trouble.is_some_and(|trouble| trouble.starts_with("another server has taken it over"))
}

/// `fenced`: the disks that refuse.
fn is_held(mirrored: bool, fenced: &[usize], kinds: &[Kind], errno: Errno) {
    let case = format!("{mirrored} {fenced:?} {kinds:?} {errno}");
    let disks: Vec<Disk> =
        (0..if mirrored { 4 } else { 2 }).map(|_| Disk::new(12 * CHUNK_BYTES)).collect();
    let written = || disks.iter().map(Disk::written).sum::<u64>();
    let refuse = |errno: Option<i32>| {
        fenced
            .iter()
            .for_each(|disk| kinds.iter().for_each(|kind| disks[*disk].fail(*kind, errno)));
    };
    let mut place = place_on(&disks, mirrored);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let size = 4 * CHUNK_BYTES;
    let (lu, identity) = new_lu(&pool, size);
    let (other, _) = new_lu(&pool, size);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let beside = bench.add(&*other);
    bench.write(0, &[1; 8192]).unwrap();
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    bench.write(CHUNK_BYTES, &[2; 8192]).unwrap();
    let buf = bench.buf(1 << 20, 4096);
    bench.start_on(beside, WRITE, 0, 4096, &[buf]);
    assert_eq!(bench.finished().map(|(_, result)| result), Some(Ok(())));
    refuse(Some(errno.raw_os_error()));
    // Over what is there, which channels do, and where nothing is.
    bench.buf(0, 4096).fill(3);
    let [first, data] = [bench.buf(0, 4096), bench.buf(2 << 20, 4096)];
    let places = [0, CHUNK_BYTES, 2 * CHUNK_BYTES, 3 * CHUNK_BYTES];
    let tags = places.map(|at| bench.start(WRITE, at, 4096, &[first]));
    bench.start(OpKind::Flush, 0, 0, &[]);
    for _ in 0..6000 {
        bench.look();
        if taken_over(&pool) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(taken_over(&pool), "{case}: {:?}", pool.view());
    let held = bench.in_flight();
    // On others it may have been, before that was known.
    let all_refuse = fenced.len() > 1;
    assert!(held == 5 || held > 0 && !all_refuse, "{case}: {held}");
    let told: Vec<_> = (held..5).filter_map(|_| bench.finished()).collect();
    assert!(told.iter().all(|(_, result)| result.is_ok()), "{case}: {told:?}");
    // Nor is anything else, on either LU.
    let before = written();
    for lane in [0, beside] {
        bench.start_on(lane, OpKind::Read, 0, 4096, &[data]);
        bench.start_on(lane, WRITE, 8192, 4096, &[first]);
        bench.start_on(lane, WRITE, 3 * CHUNK_BYTES + MIB, 4096, &[first]);
        bench.start_on(lane, ZEROES, 0, BLOCK_BYTES, &[]);
        bench.start_on(lane, OpKind::Flush, 0, 0, &[]);
    }
    let (spec, new) = lu_spec(CHUNK_BYTES, false);
    // It is asked behind all of these.
    let refused = pool.open_lu(&spec, &new).err().expect("it is refused").to_string();
    assert!(refused.contains("another server has taken the pool over"), "{refused}");
    bench.look();
    assert_eq!(bench.in_flight(), held + 10, "{case}: one was answered");
    assert_eq!(written(), before, "{case}");
    assert!(all_in(&pool), "{case}: {:?}", pool.view());
    // Nobody waits for what is held.
    pool.close();
    drop((bench, lu, other));
    place.spec.fresh = false;
    let refused = place.refused();
    assert!(refused.contains("another server has taken the pool over"), "{case}: {refused}");
    refuse(None);
    let pool = place.open(&pools);
    assert!(all_in(&pool) && pool.view().trouble.is_none(), "{case}: {:?}", pool.view());
    let lu = old_lu(&pool, size, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    for ((at, tag), was) in places.into_iter().zip(tags).zip([1, 2, 0, 0]) {
        let found = bench.read(at, 8192).unwrap();
        assert_eq!(found[4096..], [was; 4096], "{case}: at {at}");
        // What was not answered is there or not.
        let answered = told.iter().any(|(other, _)| *other == tag);
        let is_there = found[..4096] == [3; 4096];
        assert!(is_there || !answered && found[..4096] == [was; 4096], "{case}: at {at}");
        bench.write(at, &[4; 4096]).unwrap();
        assert_eq!(bench.read(at, 4096).unwrap(), [4; 4096], "{case}: at {at}");
    }
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    bench.close();
    drop(lu);
    pool.close();
}

#[test]
fn what_clients_ask_of_a_pool_that_another_server_has_is_held_and_no_leg_is_away() {
    if !is_root("disks that refuse a pool") {
        return;
    }
    for errno in [Errno::BADE, Errno::SHUTDOWN] {
        for fenced in [&[1][..], &[0, 2], &[1, 3], &[0, 1, 2, 3]] {
            is_held(true, fenced, &[Kind::Write], errno);
            is_held(true, fenced, &[Kind::Read, Kind::Write, Kind::Flush], errno);
        }
    }
}

#[test]
fn so_it_is_where_channels_write_by_themselves() {
    if !is_root("disks that refuse a pool") {
        return;
    }
    for errno in [Errno::BADE, Errno::SHUTDOWN] {
        is_held(false, &[0, 1], &[Kind::Write], errno);
        is_held(false, &[0, 1], &[Kind::Read, Kind::Write, Kind::Flush], errno);
    }
}

/// It may be somebody else's.
#[test]
fn a_pv_that_is_refused_before_it_is_the_pool_s_is_not_added_and_the_pool_goes_on() {
    if !is_root("disks that refuse a pool") {
        return;
    }
    let pools = Pools::start().expect("a thread");
    let place = Place::new(false, &[10]);
    let pool = place.open(&pools);
    let new = Disk::new(12 * CHUNK_BYTES);
    for kind in [Kind::Write, Kind::Read] {
        new.fail(kind, Some(Errno::BADE.raw_os_error()));
        pool.add_pvs(&Here, None, &[(new.path(), 0)], &mut |_| ()).unwrap_err();
    }
    assert_eq!(pool.view().trouble, None);
    let (lu, _) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 4096]).unwrap();
    bench.close();
}
