//! Clients read the leg that likely answers first.

use super::*;

/// Whichever has less to do.
#[test]
fn reads_go_to_both_legs() {
    if !is_root("disks that count what they are asked") {
        return;
    }
    for group in [0, 1] {
        let mirror = Mirror::new(1, 1);
        let pools = Pools::start().expect("a thread");
        let pool = mirror.place.open(&pools);
        let (lu, _) = new_lu(&pool, CHUNK_BYTES);
        let mut bench = TestBench::new(&*lu, MEMORY);
        bench.write(0, &vec![1; 1 << 20]).unwrap();
        let disks = [0, 1].map(|group| &mirror.groups[group][0]);
        let before = disks.map(|disk| disk.served(Kind::Read));
        // One that waits for the other leg would wait for ever.
        disks[group].hold(Kind::Read);
        let buf = bench.buf(0, 4096);
        let tags: Vec<_> =
            (0..8).map(|at| bench.start(OpKind::Read, at * 4096, 4096, &[buf])).collect();
        disks[group].wait_held(Kind::Read, 1);
        for _ in 0..3 {
            assert_eq!(bench.finished().map(|(_, result)| result), Some(Ok(())), "group {group}");
        }
        disks[group].release(Kind::Read);
        for _ in 3..tags.len() {
            assert_eq!(bench.finished().map(|(_, result)| result), Some(Ok(())), "group {group}");
        }
        let after = disks.map(|disk| disk.served(Kind::Read));
        for (disk, least) in [(group, 1), (1 - group, 3)] {
            assert!(after[disk] >= before[disk] + least, "{before:?} {after:?}");
        }
        bench.close();
        drop(lu);
        pool.close();
    }
}

/// What each disk was asked of so many reads, eight of them under way at once.
fn read(bench: &mut TestBench, disks: [&Disk; 2], reads: u64) -> [u64; 2] {
    let before = disks.map(|disk| disk.served(Kind::Read));
    let buf = bench.buf(0, 4096);
    for number in 0..reads {
        bench.start(OpKind::Read, number % 256 * 4096, 4096, &[buf]);
        if bench.in_flight() == 8 {
            bench.finished().unwrap().1.unwrap();
        }
    }
    while let Some((_, result)) = bench.finished() {
        result.unwrap();
    }
    [0, 1].map(|group| disks[group].served(Kind::Read) - before[group])
}

#[test]
fn most_reads_go_to_the_disk_that_is_quick_now() {
    if !is_root("disks that are slow below a pool") {
        return;
    }
    let mirror = Mirror::new(1, 1);
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let (lu, _) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &vec![1; 1 << 20]).unwrap();
    let disks = [0, 1].map(|group| &mirror.groups[group][0]);
    let slow = |disk: usize, ms| {
        let takes = Duration::from_millis(ms);
        disks[disk].slow(takes, takes);
    };
    slow(0, 1);
    slow(1, 1);
    let had = read(&mut bench, disks, 400);
    assert!(had.iter().all(|had| *had >= 80), "both are as quick: {had:?}");
    for quick in [0, 1, 0] {
        slow(quick, 1);
        slow(1 - quick, 100);
        // It has to be found first.
        read(&mut bench, disks, 600);
        let had = read(&mut bench, disks, 400);
        assert!(had[quick] > 2 * had[1 - quick], "disk {quick} is the quick one: {had:?}");
    }
    bench.close();
    drop(lu);
    pool.close();
}
