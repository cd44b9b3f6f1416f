//! Chunks that nobody writes to are active no longer, in time or when the pool closes, and are not copied after a death.

use super::*;

fn mirrored() -> Place {
    let mut place = Place::new(false, &[20, 20]);
    place.spec.mirror = vec![place.spec.pvs[1].clone()];
    place
}

fn quiet(pool: &PoolHandle) -> bool {
    // What is told after an answer is not older.
    pool.snapshots_made(&[1], 1).unwrap_or_else(|error| panic!("{error}"));
    pool.view().active == 0
}

#[test]
fn what_nobody_writes_to_is_active_no_longer() {
    let mut place = mirrored();
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, 3 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let mut random = Random::new(29);
    let mut told = Told::new(1 << 20);
    for _ in 0..5 {
        (0..40).for_each(|_| told.write(&mut bench, &mut random));
        wait_for("it is quiet", || quiet(&pool));
    }
    bench.close();
    drop(lu);
    // The thread ends, as in a death.
    drop(pool);
    drop(pools);
    place.spec.fresh = false;
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    assert_eq!((pool.view().active, pool.view().resync), (0, None));
    let lu = old_lu(&pool, 3 * CHUNK_BYTES, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let parts = (0..(1 << 20) / STEP).map(|at| bench.read(at * STEP, STEP as usize).unwrap());
    told.judge(&parts.collect::<Vec<_>>().concat(), 0);
    bench.close();
    drop(lu);
    pool.close();
}

#[test]
fn a_pool_that_was_closed_copies_nothing() {
    let mut place = mirrored();
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, _) = new_lu(&pool, 3 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let mut random = Random::new(31);
    let mut told = Told::new(1 << 20);
    (0..40).for_each(|_| told.write(&mut bench, &mut random));
    bench.close();
    drop(lu);
    pool.close();
    place.spec.fresh = false;
    let pool = place.open(&pools);
    assert_eq!((pool.view().active, pool.view().resync), (0, None));
    pool.close();
}
