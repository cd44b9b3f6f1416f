//! Channels that take slots above snapshots by themselves.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use block::{LaneId, Outcome, Request, Submit, Tag};
use uring::{Ring, RingConfig};

use super::layers::{clone_of, snapshot};
use super::*;

const PART: u64 = pool::PART_BYTES;
/// Where requests of several parts go.
const LARGE: u64 = 1_000 * PART + 512;

/// Whatever was written above a snapshot is asked for only until the pool has offered slots, and is there after a death that no flush came before.
#[test]
fn what_is_written_above_a_snapshot_for_the_first_time_is_the_channels() {
    let mut place = Place::new(false, &[20, 20]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    place.spec.fresh = false;
    let (lu, identity) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 256 << 10]).unwrap();
    let made = snapshot(&pool, &[number(&identity)])[0];
    // A container, which is there for good, a block of what is where, and the first slots.
    (0..3).for_each(|part| bench.write(part * PART, &[2; 512]).unwrap());
    let before = bench.parks(Wait::Pool);
    let parts = 600;
    for part in 3..parts {
        let value = 3 + (part % 250) as u8;
        bench.write(part * PART + 512, &[value; 4096]).unwrap();
        // … and what is beside it in its slot.
        bench.write(part * PART + 8192, &[value ^ 1; 1024]).unwrap();
    }
    assert_eq!(bench.parks(Wait::Pool) - before, 0, "the pool was asked");
    // Several parts that have slots one behind the other, or none; the pool writes where one has.
    bench.write(4 * PART + 512, &[7; PART as usize]).unwrap();
    assert_eq!(bench.parks(Wait::Pool) - before, 0, "the pool was asked");
    bench.write((parts - 1) * PART + 9216, &[8; PART as usize]).unwrap();
    assert_eq!(bench.parks(Wait::Pool) - before, 1);
    for (number, value) in (0..20).zip(100..) {
        bench.write(LARGE + number * 5 * PART, &[value; 5 * PART as usize - 1024]).unwrap();
    }
    assert_eq!(bench.parks(Wait::Pool) - before, 1, "the pool was asked");
    let check = |bench: &mut TestBench| {
        for part in 6..parts {
            let value = 3 + (part % 250) as u8;
            let found = bench.read(part * PART, 9216).unwrap();
            let beneath = u8::from(part * PART < 256 << 10);
            assert!(found[..512] == [beneath; 512], "part {part}: {}", found[0]);
            assert!(found[512..4608] == [value; 4096], "part {part}: {}", found[512]);
            assert!(found[4608..8192] == [beneath; 3584], "part {part}: {}", found[4608]);
            assert!(found[8192..] == [value ^ 1; 1024], "part {part}: {}", found[8192]);
        }
        for (number, value) in (0..20).zip(100..) {
            let found = bench.read(LARGE + number * 5 * PART, 5 * PART as usize).unwrap();
            let (written, beside) = found.split_at(5 * PART as usize - 1024);
            assert!(written.iter().all(|byte| *byte == value) && beside == [0; 1024], "{number}");
        }
        for (at, value) in [(4 * PART + 512, 7), ((parts - 1) * PART + 9216, 8)] {
            assert!(bench.read(at, PART as usize).unwrap() == [value; PART as usize], "{value}");
        }
    };
    check(&mut bench);
    // It dies: nobody has said any of it.
    bench.close();
    drop((lu, pool));
    pools.stop();
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let lu = old_lu(&pool, CHUNK_BYTES, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    check(&mut bench);
    // A snapshot has all of it, and it is nobody's to write.
    let second = snapshot(&pool, &[number(&identity)])[0];
    (6..parts).for_each(|part| bench.write(part * PART + 512, &[9; 512]).unwrap());
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    for (snapshot, value) in [(made, 1), (second, 7)] {
        let (clone, _) = clone_of(&pool, snapshot, CHUNK_BYTES);
        let mut bench = TestBench::new(&*clone, MEMORY);
        if value == 7 {
            check(&mut bench);
        }
        assert!(bench.read(4 * PART + 512, 512).unwrap() == [value; 512]);
        bench.close();
    }
    bench.close();
}

/// Channels write to the same parts at once, the pool writes for them there as well, and snapshots are made beneath; each channel has its own sectors.
#[test]
fn channels_and_the_pool_share_parts() {
    const CHANNELS: u64 = 4;
    const PARTS: u64 = 900;
    let mut place = Place::new(false, &[60, 60]);
    let mut identity = None;
    // What each sector of a channel has: how often it was written.
    let mut expected = vec![vec![0_u8; (PARTS * 16) as usize]; CHANNELS as usize];
    for life in 0..3 {
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        place.spec.fresh = false;
        let it = identity.get_or_insert_with(|| new_lu(&pool, CHUNK_BYTES).1).clone();
        let lu = old_lu(&pool, CHUNK_BYTES, &it);
        let mut made = vec![snapshot(&pool, &[number(&it)])];
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let run = |(channel, expected): (u64, &mut Vec<u8>)| {
                let mut random = Random::new(100 * life + channel);
                let mut bench = TestBench::new(&*lu, MEMORY);
                for round in 0..2_500 {
                    // Sectors 0 and 1 of each 4 are of channel 0 …, so that they are side by side.
                    let index = random.below(PARTS * 16);
                    let (part, group) = (index / 16, index % 16);
                    let at = part * PART + (group * CHANNELS + channel) * 512;
                    let value = expected[index as usize].wrapping_add(1).max(1);
                    let bytes = vec![value; 512];
                    match random.below(12) {
                        // The pool does what is to be durable.
                        0 => {
                            let buf = bench.buf(0, 512);
                            buf.write(0, &bytes);
                            bench.run(OpKind::Write { fua: true }, at, 512, &[buf]).unwrap();
                        }
                        1 if round % 10 == 0 => {
                            bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
                            continue;
                        }
                        2 => {
                            let found = bench.read(at, 512).unwrap();
                            let has = expected[index as usize];
                            assert!(found == [has; 512], "part {part}: {} for {has}", found[0]);
                            continue;
                        }
                        _ => bench.write(at, &bytes).unwrap(),
                    }
                    expected[index as usize] = value;
                }
                bench.close();
            };
            let channels = (0..).zip(&mut expected);
            let threads: Vec<_> = channels.map(|it| scope.spawn(move || run(it))).collect();
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    std::thread::sleep(Duration::from_millis(15));
                    if made.len() < 8 {
                        made.push(snapshot(&pool, &[number(&it)]));
                    }
                }
            });
            let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            over.store(true, Relaxed);
            ended.into_iter().for_each(|ended| ended.unwrap());
        });
        let mut bench = TestBench::new(&*lu, MEMORY);
        for part in 0..PARTS {
            let found = bench.read(part * PART, PART as usize).unwrap();
            for (sector, found) in (0..).zip(found.chunks(512)) {
                let (channel, group) = (sector % CHANNELS, sector / CHANNELS);
                let value = expected[channel as usize][(part * 16 + group) as usize];
                assert!(found == [value; 512], "life {life}, part {part}, sector {sector}");
            }
        }
        bench.close();
        drop((lu, pool));
        pools.stop();
    }
}

/// A layer has hardly more slots than its LU has parts: none is left over with channels while the pool writes to all of them.
#[test]
fn a_layer_has_room_for_all_that_is_written() {
    // 32 more.
    const CHUNKS: u64 = 41;
    let place = Place::new(true, &[100]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, CHUNKS * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    snapshot(&pool, &[number(&identity)]);
    // Where two parts meet of which one has a slot the pool writes.
    for part in (0..CHUNKS * CHUNK_BYTES / PART).step_by(2) {
        bench.write(part * PART, &[1; 512]).unwrap();
        bench.write((part + 1) * PART - 512, &[1; 1024]).unwrap();
    }
    bench.close();
}

/// What channels add to slots that are there the pool learns before it is much.
#[test]
fn the_pool_learns_in_time() {
    let place = Place::new(true, &[20]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    snapshot(&pool, &[number(&identity)]);
    let parts = 0..800;
    parts.clone().for_each(|part| bench.write(part * PART, &[2; 512]).unwrap());
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    let before = bench.parks(Wait::Pool);
    let mut most = 0;
    for sector in 1..24 {
        for part in parts.clone() {
            bench.write(part * PART + sector * 512, &[2; 512]).unwrap();
            most = most.max(crate::table::locked(&pool.shared.taken).len());
        }
    }
    assert_eq!(bench.parks(Wait::Pool), before, "the pool was asked");
    // It is told at 1,024, and may have learnt by the time that is counted.
    assert!((1023..9_200).contains(&most), "{most} of 18,400 at once");
    bench.close();
}

/// Of a block of which a part was done before a snapshot, all of it is done again in the slot that is taken.
#[test]
fn a_block_that_was_begun_beneath_is_written_whole() {
    let place = Place::new(true, &[20]);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (spec, of) = lu_spec(CHUNK_BYTES, false);
    let spec = VolumeSpec { block_size: 4096, ..spec };
    let (lu, identity) = pool.open_lu(&spec, &of).unwrap_or_else(|error| panic!("{error}"));
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[1; 256 << 10]).unwrap();
    snapshot(&pool, &[number(&identity)]);
    (0..3).for_each(|part| bench.write(part * PART, &[2; 4096]).unwrap());
    let config = RingConfig { entries: 64, cq_entries: 512, fixed_files: 16, restrict: true };
    let mut ring = Ring::new(&config).unwrap();
    let mut lane = lu.lane(&mut ring, LaneId(99)).unwrap();
    let buf = bench.buf(1 << 20, 4096);
    buf.write(0, &[7; 4096]);
    let (bufs, mut out) = ([buf], Vec::new());
    let (offset, len, tag) = (5 * PART, 4096, Tag(1));
    let mut request = Request { op: WRITE, offset, len, bufs: &bufs, tag, done: 512, passed: 0 };
    assert_eq!(lane.submit(&mut ring, &mut request), Submit::Pending);
    while out.is_empty() {
        ring.submit().unwrap();
        while let Some(completion) = ring.next() {
            let (_, token) = LaneId::split(completion.user_data);
            lane.complete(&mut ring, token, completion.result, &mut out);
        }
    }
    assert_eq!(out[0].outcome, Outcome::Done(Ok(())));
    lane.detach(&mut ring);
    let found = bench.read(5 * PART, 8192).unwrap();
    assert!(found[..4096] == [7; 4096] && found[4096..] == [1; 4096], "{}", found[0]);
    bench.close();
}
