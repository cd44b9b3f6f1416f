//! What becomes of devices of PVs that are away, and of what is under way there.

use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

const MIB: u64 = 1 << 20;

/// Writes that go to both legs wait for buffers of the second PV when the first fails and another device has its path: that gets nothing of them.
#[test]
fn a_device_that_nobody_has_judged_gets_nothing_of_what_waited_for_its_pv() {
    if !is_root("disks that fail and hang below a pool") {
        return;
    }
    let mut mirror = Mirror::new(1, 1);
    let [first, second] = [0, 1].map(|group| &mirror.groups[group][0]);
    let folder = mirror.place.folder.path();
    let (path, other) = (folder.join("path"), folder.join("other"));
    symlink(first.path(), &path).unwrap();
    file(&other, 10);
    mirror.place.spec.pvs[0] = path.clone();
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let (lu, _) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 512]).unwrap();
    second.hold(Kind::Write);
    let buf = bench.buf(0, MIB as usize);
    buf.fill(2);
    for at in 1..30 {
        bench.start(WRITE, at * MIB, MIB, &[buf]);
    }
    second.wait_held(Kind::Write, 8);
    first.fail(Kind::Flush, EIO);
    bench.start(OpKind::Flush, 0, 0, &[]);
    wait_for("it is away", || states(&pool)[0] == MemberState::Stale);
    std::fs::remove_file(&path).unwrap();
    symlink(&other, &path).unwrap();
    assert_eq!(pool.look_for_away(&Here, None, &mut |_| ()), 1);
    let trouble = pool.view().trouble.expect("it is told");
    assert!(trouble.contains("have not come back"), "{trouble}");
    second.release(Kind::Write);
    while let Some((_, result)) = bench.finished() {
        result.unwrap();
    }
    assert_eq!(std::fs::metadata(&other).unwrap().blocks(), 0, "it was written to");
    std::fs::remove_file(&path).unwrap();
    symlink(first.path(), &path).unwrap();
    first.fail(Kind::Flush, None);
    returns(&pool);
    bench.close();
    drop(lu);
    pool.close();
}

/// Both hang, and whichever comes back first serves.
#[test]
fn where_both_legs_hang_neither_is_given_up() {
    if !is_root("disks that hang below a pool") {
        return;
    }
    let mirror = Mirror::new(1, 1);
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let (lu, _) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 512]).unwrap();
    let disks = [0, 1].map(|group| &mirror.groups[group][0]);
    disks.iter().for_each(|disk| disk.hold(Kind::Write));
    let buf = bench.buf(0, 4096);
    let tag = bench.start(WRITE, 0, 4096, &[buf]);
    disks.iter().for_each(|disk| disk.wait_held(Kind::Write, 1));
    std::thread::sleep(crate::work::DEADLINE + Duration::from_secs(3));
    assert_eq!(states(&pool), [MemberState::In, MemberState::In]);
    disks[0].release(Kind::Write);
    assert_eq!(bench.finished(), Some((tag, Ok(()))));
    assert_eq!(states(&pool), [MemberState::In, MemberState::Stale]);
    disks[1].release(Kind::Write);
    returns(&pool);
    bench.close();
    drop(lu);
    pool.close();
}

/// The last PV fails so that nothing can be made durable any more, while writes wait for its buffers: these places have what they had, or what was to be written.
#[test]
fn writes_of_which_nobody_knows_the_bytes_any_more_are_not_done() {
    if !is_root("disks that fail and hang below a pool") {
        return;
    }
    const COUNT: u64 = 30;
    let mirror = Mirror::new(1, 1);
    let [first, second] = [0, 1].map(|group| &mirror.groups[group][0]);
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let (lu, _) = new_lu(&pool, CHUNK_BYTES);
    let (other, known) = new_lu(&pool, CHUNK_BYTES);
    let FileIdentity::Lu { number, .. } = known else { panic!("{known:?}") };
    let mut bench = TestBench::new(&*lu, MEMORY);
    second.fail(Kind::Write, EIO);
    for at in 0..COUNT {
        bench.write(at * MIB, &vec![0xab; MIB as usize]).unwrap();
    }
    assert_eq!(states(&pool)[1], MemberState::Stale);
    let mut places = (0..10).map(|chunk| chunk * CHUNK_BYTES);
    let place = places.find(|at| first.content(*at, 4096) == [0xab; 4096]).expect("it is there");
    first.hold(Kind::Write);
    let buf = bench.buf(0, MIB as usize);
    buf.fill(0xcd);
    std::thread::scope(|scope| {
        let makes = scope.spawn(|| pool.snapshot(&[number], 0).is_ok());
        // A page of a checkpoint: a failure of what is to be durable at once would have the file refuse all that follows.
        first.wait_held(Kind::Write, 1);
        for at in 0..COUNT {
            bench.start(WRITE, at * MIB, MIB, &[buf]);
        }
        first.wait_held(Kind::Write, 9);
        // What is under way fails, and what comes then is done.
        first.slow(Duration::from_millis(100), Duration::from_millis(100));
        first.fail(Kind::Write, EIO);
        first.release(Kind::Write);
        first.fail(Kind::Write, None);
        assert!(!makes.join().unwrap());
    });
    while bench.finished().is_some() {}
    bench.close();
    drop((lu, other));
    pool.close();
    for at in 0..COUNT {
        let found = first.content(place + at * MIB, MIB as usize);
        let kept = found.iter().all(|byte| matches!(byte, 0xab | 0xcd));
        assert!(kept, "there are zeros in MiB {at}");
    }
}
