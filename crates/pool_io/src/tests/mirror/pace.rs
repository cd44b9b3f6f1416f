//! What a PV missed is copied while clients write, on disks that do one thing at a time.

use super::*;

#[test]
fn a_leg_is_made_whole_beside_clients_that_never_rest() {
    if !is_root("disks that are slow below a pool") {
        return;
    }
    let mirror = Mirror::new(1, 1);
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let (lu, _) = new_lu(&pool, 2 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let mut told = Told::new(4 << 20);
    let mut random = Random::new(23);
    // So much that it takes some hundred copies.
    for at in 0..64 {
        let data = [at as u8 + 1; 512];
        bench.write(at * BLOCK_BYTES, &data).unwrap();
        let at = (at * BLOCK_BYTES) as usize;
        told.0[at..at + 512].copy_from_slice(&data);
        bench.write(CHUNK_BYTES + at as u64, &data).unwrap();
    }
    let disk = &mirror.groups[1][0];
    disk.fail(Kind::Write, EIO);
    told.write(&mut bench, &mut random);
    bench.write(CHUNK_BYTES, &[9; 512]).unwrap();
    assert_eq!(states(&pool), [MemberState::In, MemberState::Stale]);
    disk.fail(Kind::Write, None);
    let slow = |ms| {
        for disk in mirror.groups.iter().flatten() {
            disk.depth(1);
            disk.slow(Duration::from_millis(ms), Duration::from_millis(ms));
        }
    };
    // So slow that it cannot be over before it is looked at.
    slow(20);
    wait_for("it returns", || pool.look_for_away(&Here, None, &mut |_| ()) == 0);
    let mut last = 0;
    for turn in 0.. {
        if all_in(&pool) {
            break;
        }
        assert!(turn < 60_000, "never whole: {:?}", pool.view());
        told.write(&mut bench, &mut random);
        let Some(now) = pool.view().resync else { continue };
        let done = now.moved;
        assert!(done <= now.planned, "{now:?}");
        if last == 0 && done > 0 {
            slow(1);
        }
        last = last.max(done);
    }
    assert!(last > 0, "how far it is was never told");
    slow(0);
    mirror.judge(&mut bench, &told);
    bench.close();
    drop(lu);
    pool.close();
}

/// Copies wait in line for buffers with the client's requests, of which there are always some: one copy does, and has its turn.
#[test]
fn a_leg_is_made_whole_beside_a_client_with_more_requests_than_there_are_buffers() {
    if !is_root("disks that are slow below a pool") {
        return;
    }
    let mirror = Mirror::new(1, 1);
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let (lu, _) = new_lu(&pool, 2 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let blocks = |bench: &mut TestBench, value| {
        (0..40).for_each(|at| bench.write(at * BLOCK_BYTES, &[value; 512]).unwrap());
        bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    };
    blocks(&mut bench, 1);
    let disk = &mirror.groups[1][0];
    disk.fail(Kind::Write, EIO);
    blocks(&mut bench, 2);
    assert_eq!(states(&pool), [MemberState::In, MemberState::Stale]);
    disk.fail(Kind::Write, None);
    for disk in mirror.groups.iter().flatten() {
        disk.depth(4);
        disk.slow(Duration::from_millis(1), Duration::from_millis(1));
    }
    let buf = bench.buf(0, 4096);
    buf.fill(3);
    let ask = |bench: &mut TestBench, number: u64| {
        bench.start(WRITE, CHUNK_BYTES + number % 2000 * 4096, 4096, &[buf]);
    };
    (0..400).for_each(|number| ask(&mut bench, number));
    wait_for("it returns", || pool.look_for_away(&Here, None, &mut |_| ()) == 0);
    for number in 400.. {
        if all_in(&pool) {
            break;
        }
        assert!(number < 100_000, "never whole: {:?}", pool.view());
        bench.finished().expect("400 are under way").1.unwrap();
        ask(&mut bench, number);
    }
    while let Some((_, result)) = bench.finished() {
        result.unwrap();
    }
    bench.close();
    drop(lu);
    pool.close();
}
