//! LUs that come from files and go into them.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::Instant;

use super::*;
use crate::{CopyEnd, CopyJob, CopyView, CopyWay};

const SIZE: u64 = 3 * CHUNK_BYTES + (128 << 10);

/// A file with some data far apart, no multiple of a sector long; and what it holds, whole.
fn source(place: &Place, seed: u64) -> (PathBuf, Vec<u8>) {
    let path = place.folder.path().join(format!("source{seed}"));
    let mut whole = vec![0; SIZE as usize - 100];
    let mut random = Random::new(seed);
    let file = File::create(&path).expect("a file");
    file.set_len(whole.len() as u64).expect("its size");
    let places = [0, 5 * BLOCK_BYTES + 7, CHUNK_BYTES - 3000, 2 * CHUNK_BYTES + (1 << 20) + 512];
    for at in places.into_iter().chain([SIZE - 5100]) {
        let data: Vec<u8> = (0..5000).map(|_| 1 + random.below(255) as u8).collect();
        file.write_all_at(&data, at).expect("data");
        whole[at as usize..at as usize + data.len()].copy_from_slice(&data);
    }
    (path, whole)
}

fn import(pool: &PoolHandle, id: u64, lu: u32, from: &Path) -> Result<CopyView, crate::PoolError> {
    let job = CopyJob { id, lu, way: CopyWay::Import, under_clients: false };
    pool.begin_copy(job, File::open(from).expect("a file"))
}

fn export(pool: &PoolHandle, id: u64, lu: u32, to: &Path) -> Result<CopyView, crate::PoolError> {
    let job = CopyJob { id, lu, way: CopyWay::Export { bytes: SIZE }, under_clients: false };
    pool.begin_copy(job, File::create(to).expect("a file"))
}

fn over(pool: &PoolHandle, id: u64) -> Result<(), CopyEnd> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let view = pool.copy(id).expect("it is known");
        assert!(view.done <= view.planned, "{view:?}");
        if let Some(end) = view.end.clone() {
            assert!(end.is_err() || view.done == view.planned, "{view:?}");
            return end;
        }
        assert!(Instant::now() < until, "{view:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn whole(pool: &PoolHandle, id: u64, result: Result<CopyView, crate::PoolError>) {
    result.unwrap_or_else(|error| panic!("{error}"));
    over(pool, id).unwrap_or_else(|end| panic!("{end:?}"));
}

/// What a file holds, padded to the size of the LU.
fn padded(mut whole: Vec<u8>) -> Vec<u8> {
    whole.resize(SIZE as usize, 0);
    whole
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("a file")
}

fn allocated(pool: &PoolHandle, lu: u32) -> u32 {
    let view = pool.view();
    view.lus.iter().find(|one| one.lu == lu).expect("it is there").allocated
}

#[test]
fn what_comes_from_a_file_goes_into_a_file_and_both_are_sparse() {
    for mirrored in [false, true] {
        let mut place = Place::new(false, &[16, 16]);
        if mirrored {
            place.spec.mirror = place.spec.pvs[1..].to_vec();
        }
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        for thick in [false, true] {
            let (spec, lu) = lu_spec(SIZE, thick);
            let (_volume, known) = pool.open_lu(&spec, &lu).unwrap_or_else(|e| panic!("{e}"));
            let (lu, to) = (number(&known), place.folder.path().join("to"));
            let id = if thick { 10 } else { 1 };
            let (from, held) = source(&place, id);
            whole(&pool, id, import(&pool, id, lu, &from));
            // Whoever asks again is told what became of it.
            assert!(matches!(import(&pool, id, lu, &from).unwrap().end, Some(Ok(()))));
            if !thick {
                comes(4, || allocated(&pool, lu));
            }
            whole(&pool, id + 1, export(&pool, id + 1, lu, &to));
            assert!(read(&to) == padded(held.clone()), "mirrored {mirrored}, thick {thick}");
            let blocks = to.metadata().unwrap().blocks() * 512;
            assert!(blocks < 2 << 20, "{blocks} bytes for some sectors");
            // What was there before is gone, and so is its space.
            let (other, held) = source(&place, id + 2);
            let file = File::options().write(true).open(&other).unwrap();
            file.set_len(CHUNK_BYTES + 512).unwrap();
            whole(&pool, id + 3, import(&pool, id + 3, lu, &other));
            whole(&pool, id + 4, export(&pool, id + 4, lu, &to));
            let held = padded(held[..CHUNK_BYTES as usize + 512].to_vec());
            assert!(read(&to) == held, "mirrored {mirrored}, thick {thick}");
            if !thick {
                comes(2, || allocated(&pool, lu));
            }
        }
        pool.close();
    }
}

/// A snapshot is of one moment, and stays what it is while its LU is written by a client and by an import.
#[test]
fn a_snapshot_goes_into_a_file_and_an_lu_above_one_comes_from_a_file() {
    let place = Place::new(false, &[24]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (volume, known) = new_lu(&pool, SIZE);
    let (lu, to) = (number(&known), place.folder.path().join("to"));
    let ((first, held), (second, other)) = (source(&place, 1), source(&place, 2));
    whole(&pool, 1, import(&pool, 1, lu, &first));
    let snapshot = layers::snapshot(&pool, &[lu])[0];
    let mut bench = TestBench::new(&*volume, MEMORY);
    bench.write(0, &[7; 4096]).unwrap();
    bench.write(CHUNK_BYTES + 4096, &[8; 8192]).unwrap();
    // With a client there, what is of one moment is the snapshot alone.
    let refused = export(&pool, 2, lu, &to).unwrap_err().to_string();
    assert!(refused.contains("in use") && refused.contains("--snapshot"), "{refused}");
    assert!(import(&pool, 3, lu, &second).unwrap_err().to_string().contains("--force"));
    whole(&pool, 4, export(&pool, 4, snapshot, &to));
    assert!(read(&to) == padded(held.clone()));
    let job = CopyJob { id: 5, lu, way: CopyWay::Export { bytes: SIZE }, under_clients: true };
    whole(&pool, 5, pool.begin_copy(job, File::create(&to).unwrap()));
    let mut written = padded(held.clone());
    written[..4096].fill(7);
    written[CHUNK_BYTES as usize + 4096..][..8192].fill(8);
    assert!(read(&to) == written);
    bench.close();
    whole(&pool, 6, import(&pool, 6, lu, &second));
    whole(&pool, 7, export(&pool, 7, lu, &to));
    assert!(read(&to) == padded(other));
    whole(&pool, 8, export(&pool, 8, snapshot, &to));
    assert!(read(&to) == padded(held));
    // Nobody writes to a snapshot.
    assert!(import(&pool, 9, snapshot, &second).is_err() || over(&pool, 9).is_err());
    drop(volume);
    pool.close();
}

#[test]
fn a_file_that_is_too_long_is_refused_and_nothing_is_changed() {
    let place = Place::new(false, &[10]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (volume, known) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*volume, MEMORY);
    bench.write(0, &[7; 4096]).unwrap();
    bench.close();
    let (from, _) = source(&place, 1);
    import(&pool, 1, number(&known), &from).unwrap();
    let CopyEnd::Failed(error) = over(&pool, 1).unwrap_err() else { panic!("nobody stopped it") };
    assert!(error.to_string().contains("as large first"), "{error}");
    let mut bench = TestBench::new(&*volume, MEMORY);
    assert_eq!(bench.read(0, 4096).unwrap(), [7; 4096]);
    bench.close();
    assert!(import(&pool, 2, 77, &from).is_err());
    assert!(pool.copy(2).is_none() && pool.stop_copy(3).is_none());
}

/// A full pool: it waits, and whoever wants it to end does not; nor does the end of the LU or of the pool.
#[test]
fn one_that_waits_for_space_is_ended_at_once() {
    let place = Place::new(false, &[10]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let bytes = 20 * CHUNK_BYTES;
    let from = place.folder.path().join("long");
    let file = File::create(&from).unwrap();
    file.set_len(bytes).unwrap();
    for chunk in 0..20 {
        file.write_all_at(&[5; 4096], chunk * CHUNK_BYTES).unwrap();
    }
    let waits = |id: u64| {
        comes(true, || pool.copy(id).unwrap().waits);
    };
    let begin = |id: u64| {
        let (volume, known) = new_lu(&pool, bytes);
        import(&pool, id, number(&known), &from).unwrap();
        waits(id);
        (volume, number(&known))
    };
    let (_stopped, first) = begin(1);
    assert!(import(&pool, 2, first, &from).unwrap_err().to_string().contains("being copied"));
    assert!(pool.stop_copy(1).unwrap().end.is_none());
    assert!(matches!(over(&pool, 1), Err(CopyEnd::Stopped)));
    comes(0, || pool.view().paused);
    // Where its writes fail, it does, too.
    pool.when_full(&full_of(&[(first, 0, Some(0))]), true).unwrap();
    import(&pool, 3, first, &from).unwrap();
    let CopyEnd::Failed(error) = over(&pool, 3).unwrap_err() else { panic!("nobody stopped it") };
    assert!(error.to_string().contains("no space left"), "{error}");
    pool.when_full(&FullSpec::default(), true).unwrap();
    // The LU goes.
    import(&pool, 4, first, &from).unwrap();
    waits(4);
    pool.end_copies(|lu| lu == first);
    assert!(matches!(over(&pool, 4), Err(CopyEnd::Stopped)));
    drop(_stopped);
    pool.remove_lus(&[first]).unwrap();
    // The pool is closed.
    let (volume, _) = begin(5);
    drop(volume);
    let handle = pool.clone();
    pool.clone().close();
    assert!(matches!(over(&handle, 5), Err(CopyEnd::Stopped)));
}

/// The thread ends without a word: what it was asked is never answered.
#[test]
fn one_whose_pool_is_not_served_any_more_ends() {
    let place = Place::new(false, &[10]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (_volume, known) = new_lu(&pool, 20 * CHUNK_BYTES);
    let from = place.folder.path().join("long");
    let file = File::create(&from).unwrap();
    for chunk in 0..20 {
        file.write_all_at(&[5; 4096], chunk * CHUNK_BYTES).unwrap();
    }
    import(&pool, 1, number(&known), &from).unwrap();
    comes(true, || pool.copy(1).unwrap().waits);
    pools.stop();
    let CopyEnd::Failed(error) = over(&pool, 1).unwrap_err() else { panic!("nobody stopped it") };
    assert!(error.to_string().contains("closed"), "{error}");
}

/// What is skipped unread is what is nowhere, in the LU and in each layer above it.
#[test]
fn what_lies_in_one_layer_alone_is_not_skipped() {
    let place = Place::new(false, &[24]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (volume, known) = new_lu(&pool, SIZE);
    let lu = number(&known);
    let mut bench = TestBench::new(&*volume, MEMORY);
    let mut expected = vec![vec![0; SIZE as usize]];
    let mut numbers = Vec::new();
    for (chunk, value) in [(1, 1), (2, 2), (0, 3), (3, 4)] {
        let at = chunk * CHUNK_BYTES + 8192;
        bench.write(at, &[value; 4096]).unwrap();
        let mut whole = expected.last().unwrap().clone();
        whole[at as usize..][..4096].fill(value);
        expected.push(whole);
        numbers.extend(layers::snapshot(&pool, &[lu]));
    }
    bench.close();
    let to = place.folder.path().join("to");
    for (number, expected) in numbers.iter().zip(&expected[1..]) {
        whole(&pool, u64::from(*number), export(&pool, u64::from(*number), *number, &to));
        assert!(read(&to) == *expected, "snapshot {number}");
    }
    whole(&pool, 100, export(&pool, 100, lu, &to));
    assert!(read(&to) == expected[4]);
    // An empty file lets the LU be zeros, and takes no more than that needs.
    let before = allocated(&pool, lu);
    let empty = place.folder.path().join("empty");
    File::create(&empty).unwrap().set_len(SIZE).unwrap();
    whole(&pool, 101, import(&pool, 101, lu, &empty));
    whole(&pool, 102, export(&pool, 102, lu, &to));
    assert!(read(&to) == expected[0]);
    assert!(allocated(&pool, lu) <= before + 4, "{} after {before}", allocated(&pool, lu));
}
