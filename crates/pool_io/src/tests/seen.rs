//! What is shown of PVs and LUs: what goes on at each PV, and how an LU lies on them.

use super::mirror::{returns, wait_for};
use super::*;
use spec::Traffic;

const MIB: u64 = 1 << 20;

fn traffic(pool: &PoolHandle) -> Vec<Traffic> {
    pool.view().pvs.iter().map(|pv| pv.traffic).collect()
}

/// What channels do by themselves is counted as what the pools' thread does for them, each on the PV where it was.
#[test]
fn what_goes_on_at_each_pv_is_counted() {
    let place = Place::new(false, &[10, 10]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, _) = new_lu(&pool, 2 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    // A chunk of it is on each.
    for chunk in 0..2 {
        bench.write(chunk * CHUNK_BYTES, &[7; BLOCK_BYTES as usize]).unwrap();
    }
    let before = traffic(&pool);
    assert!(before.iter().all(|pv| pv.writes > 0 && pv.written_bytes >= BLOCK_BYTES), "{before:?}");
    assert!(before.iter().all(|pv| pv.took_ns > 0), "the thread looks at the clock: {before:?}");
    for round in 0..10 {
        assert_eq!(bench.read(CHUNK_BYTES + round * 4096, 4096).unwrap(), [7; 4096]);
    }
    for round in 0..5 {
        bench.write(round * 8192, &[8; 8192]).unwrap();
    }
    // None of these took the pool.
    let after = traffic(&pool);
    let since = |pv: usize| {
        let (now, was) = (after[pv], before[pv]);
        let counts = (now.reads - was.reads, now.writes - was.writes);
        (counts, now.read_bytes - was.read_bytes, now.written_bytes - was.written_bytes)
    };
    let mut both = [since(0), since(1)];
    both.sort_unstable();
    assert_eq!(both, [((0, 5), 0, 5 * 8192), ((10, 0), 10 * 4096, 0)]);
    assert!(after.iter().all(|pv| (pv.in_flight, pv.errors) == (0, 0)), "{after:?}");
    bench.close();
    pool.close();
}

#[test]
fn the_layout_of_an_lu_says_where_its_chunks_are() {
    let place = Place::new(false, &[10, 20]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, 6 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    for chunk in 0..4 {
        bench.write(chunk * CHUNK_BYTES, &[7; 4096]).unwrap();
    }
    let layout = || pool.layout(number(&identity)).unwrap().unwrap();
    wait_for("it is known", || layout().mapped == 4);
    let told = layout();
    assert_eq!((told.legs, told.whole, told.half, told.paused), (1, 4, 0, 0), "{told:?}");
    assert_eq!(told.pvs.values().sum::<u32>(), 4, "{told:?}");
    assert_eq!(pool.layout(99).unwrap(), None);
    bench.close();
    pool.close();
}

/// A PV is not there when the pool is opened again: what was on it has one leg, and so may have what comes; when it is back all is there twice.
#[test]
fn the_layout_of_a_mirrored_lu_says_what_lacks_a_leg() {
    let mut place = Place::new(false, &[20; 4]);
    place.spec.mirror = place.spec.pvs[2..].to_vec();
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, 8 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    (0..6).for_each(|chunk| bench.write(chunk * CHUNK_BYTES, &[7; MIB as usize]).unwrap());
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    let told = pool.layout(number(&identity)).unwrap().unwrap();
    assert_eq!((told.legs, told.mapped, told.whole, told.half), (2, 6, 6, 0), "{told:?}");
    assert_eq!(told.pvs.values().copied().collect::<Vec<_>>(), [3; 4], "{told:?}");
    bench.close();
    drop(lu);
    pool.close();
    pools.stop();
    let (aside, there) = (place.folder.path().join("aside"), place.spec.pvs[3].clone());
    std::fs::rename(&there, &aside).unwrap();
    place.spec.fresh = false;
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let layout = || pool.layout(number(&identity)).unwrap().unwrap();
    let told = layout();
    assert_eq!((told.legs, told.mapped, told.whole, told.half), (2, 6, 3, 3), "{told:?}");
    assert!(!told.pvs.contains_key(&3), "of what is away nothing is known: {told:?}");
    let lu = old_lu(&pool, 8 * CHUNK_BYTES, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(6 * CHUNK_BYTES, &[8; 4096]).unwrap();
    assert_eq!(layout().mapped, 7);
    std::fs::rename(&aside, &there).unwrap();
    returns(&pool);
    wait_for("all is there twice", || layout().half == 0);
    let told = layout();
    assert_eq!((told.mapped, told.whole, told.mending, told.differ), (7, 7, 0, 0), "{told:?}");
    assert_eq!(told.pvs.values().sum::<u32>(), 14, "{told:?}");
    bench.close();
    pool.close();
}
