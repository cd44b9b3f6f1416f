//! LUs that are detached under their clients, and layers that go when nobody needs them any more.

use std::time::Duration;

use super::layers::{clone_of, rollback, snapshot};
use super::*;

const SIZE: u64 = 3 * CHUNK_BYTES;

/// Writes as long as something goes on, all of it in places of its own; the number of writes.
fn write_while(bench: &mut TestBench, from: u64, mut goes_on: impl FnMut() -> bool) -> u64 {
    let mut turn = 0;
    while goes_on() {
        bench.write(from + turn % 64 * 4096, &[9; 4096]).unwrap();
        turn += 1;
    }
    turn
}

fn shares(pool: &PoolHandle, lu: u32) -> bool {
    pool.view().lus.iter().any(|known| known.lu == lu && known.shares)
}

fn while_shares(pool: &PoolHandle, lu: u32) {
    while shares(pool, lu) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn allocated(pool: &PoolHandle) -> u32 {
    pool.view().lus.iter().map(|lu| lu.allocated).sum()
}

#[test]
fn a_clone_is_detached_under_its_client() {
    let place = Place::new(false, &[30, 30]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, SIZE);
    let mut original = TestBench::new(&*lu, MEMORY);
    original.write(0, &[1; 1 << 20]).unwrap();
    original.write(2 * CHUNK_BYTES - 4096, &[2; 8192]).unwrap();
    let made = snapshot(&pool, &[number(&identity)])[0];
    let (clone, clone_identity) = clone_of(&pool, made, SIZE);
    let its = number(&clone_identity);
    let mut bench = TestBench::new(&*clone, MEMORY);
    bench.write(512, &[3; 512]).unwrap();
    let refused = pool.detach(number(&identity), 1).unwrap_err().to_string();
    assert!(refused.contains("snapshots or clones need"), "{refused}");
    let goes_on = |pool: &PoolHandle| pool.detach(its, 7).unwrap_or_else(|why| panic!("{why}"));
    let first = goes_on(&pool).expect("it shares");
    assert_eq!((first.moved, first.failed), (0, 0));
    let written = write_while(&mut bench, CHUNK_BYTES, || match goes_on(&pool) {
        Some(now) => {
            assert!(now.moved <= now.planned);
            true
        }
        None => false,
    });
    assert!(written > 0 && !shares(&pool, its) && shares(&pool, number(&identity)));
    assert_eq!(pool.detach(its, 8).unwrap(), None, "and again");
    let mut expected = vec![1; 1 << 20];
    expected[512..1024].fill(3);
    assert!(bench.read(0, 1 << 20).unwrap() == expected);
    assert_eq!(bench.read(2 * CHUNK_BYTES - 4096, 8192).unwrap(), [2; 8192]);
    assert!(bench.read(CHUNK_BYTES, 4096).unwrap() == [9; 4096]);
    assert!(original.read(0, 1 << 20).unwrap() == vec![1; 1 << 20]);
    // Channels find by themselves what is there, as in any LU.
    bench.write(0, &[4; 4096]).unwrap();
    let before = bench.parks(Wait::Pool);
    bench.write(0, &[5; 4096]).unwrap();
    bench.read(2 * CHUNK_BYTES - 4096, 8192).unwrap();
    assert_eq!(bench.parks(Wait::Pool), before);
    original.close();
    drop(lu);
    pool.remove_lus(&[made, number(&identity)]).unwrap();
    assert!(clone.resize(4 * CHUNK_BYTES).is_ok(), "its size is its own");
    bench.run(ZEROES, 0, SIZE, &[]).unwrap();
    assert_eq!(bench.read(0, 4096).unwrap(), [0; 4096]);
    bench.write(SIZE, &[6; 4096]).unwrap();
    // And it is a source of snapshots as before.
    let again = snapshot(&pool, &[its])[0];
    bench.write(SIZE, &[7; 4096]).unwrap();
    bench.close();
    rollback(&pool, its, again);
    let mut bench = TestBench::new(&*clone, MEMORY);
    assert_eq!(bench.read(SIZE, 4096).unwrap(), [6; 4096]);
    bench.close();
    drop(clone);
    pool.close();
}

#[test]
fn an_lu_loses_its_layers_when_its_last_snapshot_goes() {
    let mut place = Place::new(false, &[30, 30]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    place.spec.fresh = false;
    let (lu, identity) = new_lu(&pool, SIZE);
    let its = number(&identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 256 << 10]).unwrap();
    let mut made = Vec::new();
    for value in 2..6 {
        made.extend(snapshot(&pool, &[its]));
        bench.write(u64::from(value) * 4096, &[value; 4096]).unwrap();
    }
    let mut expected = vec![1; 256 << 10];
    for value in 2..6 {
        expected[usize::from(value) * 4096..][..4096].fill(value);
    }
    // What is between two of them goes when one does.
    let before = allocated(&pool);
    pool.remove_lus(&[made[1]]).unwrap();
    write_while(&mut bench, CHUNK_BYTES, || allocated(&pool) >= before);
    assert!(bench.read(0, 256 << 10).unwrap() == expected);
    pool.remove_lus(&made).unwrap();
    write_while(&mut bench, CHUNK_BYTES, || shares(&pool, its));
    assert!(bench.read(0, 256 << 10).unwrap() == expected);
    assert_eq!(allocated(&pool), 2, "its own, and nothing beside it");
    bench.close();
    drop((lu, pool));
    pools.stop();
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let lu = old_lu(&pool, SIZE, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    assert!(bench.read(0, 256 << 10).unwrap() == expected);
    assert!(!shares(&pool, its));
    bench.close();
}

/// Whoever detaches an LU dies, but for the last: the next one goes on with it, unless nothing was begun.
#[test]
fn a_successor_goes_on_with_what_was_begun() {
    let mut place = Place::new(false, &[30, 30]);
    const LAST: u32 = 10;
    let (mut ended, mut identity) = (false, None);
    for life in 0..=LAST {
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        place.spec.fresh = false;
        let identity = identity.get_or_insert_with(|| {
            let (lu, original) = new_lu(&pool, SIZE);
            let mut bench = TestBench::new(&*lu, MEMORY);
            (0..4).for_each(|part| _ = bench.write(part << 20, &[1; 1 << 20]));
            bench.write(2 * CHUNK_BYTES, &[2; 64 << 10]).unwrap();
            bench.close();
            let made = snapshot(&pool, &[number(&original)])[0];
            clone_of(&pool, made, SIZE).1
        });
        let its = number(identity);
        if life == 0 {
            pool.detach(its, 1).unwrap();
        }
        match life {
            // However slow the machine is.
            LAST => while_shares(&pool, its),
            _ => std::thread::sleep(Duration::from_millis(4 << life)),
        }
        let lu = old_lu(&pool, SIZE, identity);
        let mut bench = TestBench::new(&*lu, MEMORY);
        assert!(bench.read(0, 4 << 20).unwrap() == vec![1; 4 << 20], "life {life}");
        assert!(bench.read(2 * CHUNK_BYTES, 64 << 10).unwrap() == vec![2; 64 << 10]);
        bench.close();
        ended = !shares(&pool, its);
        drop(lu);
        pools.stop();
        if ended {
            break;
        }
    }
    assert!(ended);
}

#[test]
fn an_lu_that_cannot_be_detached_says_why_to_who_asked() {
    let place = Place::new(false, &[12]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, 8 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    (0..5).for_each(|chunk| _ = bench.write(chunk * CHUNK_BYTES, &[1; 4096]));
    let made = snapshot(&pool, &[number(&identity)])[0];
    let its = number(&clone_of(&pool, made, 8 * CHUNK_BYTES).1);
    let refused = loop {
        match pool.detach(its, 5) {
            Ok(now) => assert!(now.is_some(), "there is no space for it"),
            Err(why) => break why.to_string(),
        }
    };
    assert!(refused.contains("there is no space"), "{refused}");
    assert!(pool.detach(its, 5).is_err(), "it is told again to who asked");
    assert!(pool.detach(its, 6).unwrap().is_some(), "another one tries");
    assert!(pool.detach(99, 1).is_err());
    while pool.stop_detach(its).unwrap().is_some() {}
    assert!(shares(&pool, its));
    bench.close();
    drop(lu);
    pool.close();
}
