//! PVs whose devices become larger, under a client with lanes and over processes that die.

use super::*;

fn enlarge(path: &Path, chunks: u64) {
    let file = std::fs::File::options().write(true).open(path).expect("it is there");
    file.set_len(chunks * CHUNK_BYTES).expect("its size");
}

fn chunks(pool: &PoolHandle) -> Vec<u32> {
    pool.view().pvs.iter().map(|pv| pv.space.chunks).collect()
}

#[test]
fn what_waits_for_space_goes_on_when_pvs_are_made_larger() {
    for mirrors in [false, true] {
        let mut place = Place::new(false, &[8, 8]);
        place.spec.fresh = true;
        match mirrors {
            true => place.spec.mirror = vec![place.spec.pvs[1].clone()],
            false => place.spec.pvs.truncate(1),
        }
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        // Three chunks are left of eight.
        let (lu, _) = new_lu(&pool, 6 * CHUNK_BYTES);
        let mut bench = TestBench::new(&*lu, MEMORY);
        (0..3).for_each(|chunk| bench.write(chunk * CHUNK_BYTES, &[1; 4096]).unwrap());
        let buf = bench.buf(0, 4096);
        buf.fill(2);
        let waits = bench.start(WRITE, 3 * CHUNK_BYTES, 4096, &[buf]);
        comes(1, || pool.view().paused);
        pool.grow_pvs().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(pool.view().paused, 1, "none is larger");
        place.spec.pvs.iter().for_each(|path| enlarge(path, 11));
        pool.grow_pvs().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(bench.finished(), Some((waits, Ok(()))));
        assert!(chunks(&pool).iter().all(|chunks| *chunks == 11), "{:?}", pool.view());
        assert_eq!((pool.view().free, pool.view().trouble), (2, None));
        // By itself, where a chunk is known, also behind the old end.
        bench.write(3 * CHUNK_BYTES, &[3; 65536]).unwrap();
        assert_eq!(bench.read(3 * CHUNK_BYTES, 65536).unwrap(), [3; 65536]);
        bench.close();
        drop(lu);
        pool.close();
    }
}

/// It is made larger while the pool is open, and while it is not; what nobody flushed is there as well, on this PV and on the one behind it.
#[test]
fn what_is_behind_the_old_end_survives_the_process() {
    let mut place = Place::new(false, &[8, 20]);
    let size = 20 * CHUNK_BYTES;
    let mut identity = None;
    let mut written = 0;
    for (before, chunk) in [(8, 8), (24, 24), (24, 40)] {
        enlarge(&place.spec.pvs[0], before);
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        assert_eq!(chunks(&pool), [before as u32, 20], "as large as it was found");
        let lu = match &identity {
            Some(known) => old_lu(&pool, size, known),
            None => {
                let (lu, known) = new_lu(&pool, size);
                identity = Some(known);
                lu
            }
        };
        let mut bench = TestBench::new(&*lu, MEMORY);
        let judge = |bench: &mut TestBench, written: u64| {
            for vchunk in 0..written {
                let value = 1 + vchunk as u8;
                assert_eq!(bench.read(vchunk * CHUNK_BYTES, 4096).unwrap(), [value; 4096]);
            }
        };
        judge(&mut bench, written);
        enlarge(&place.spec.pvs[0], chunk);
        pool.grow_pvs().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(chunks(&pool), [chunk as u32, 20]);
        for vchunk in written..written + 6 {
            bench.write(vchunk * CHUNK_BYTES, &[1 + vchunk as u8; 4096]).unwrap();
        }
        written += 6;
        judge(&mut bench, written);
        // It dies.
        bench.close();
        drop((lu, pool));
        pools.stop();
        place.spec.fresh = false;
    }
}
