//! Limits on a real volume: never more than they allow, every request once.

use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::conformance::TestBench;
use crate::{IoError, NullVolume};

const MIB: u64 = 1 << 20;

fn null() -> Arc<NullVolume> {
    Arc::new(NullVolume::new("null", 64 * MIB, 512, false, false))
}

/// Runs `count` requests at depth 16 and returns (seconds, parked).
fn load(volume: &dyn Volume, op: OpKind, len: u64, count: usize) -> (f64, u64) {
    let mut bench = TestBench::new(volume, 2 << 20);
    let data = matches!(op, OpKind::Read | OpKind::Write { .. });
    let bufs = [bench.buf(0, len as usize)];
    let bufs = if data { &bufs[..] } else { &[] };
    let begin = Instant::now();
    let (mut started, mut finished) = (0, 0);
    while finished < count {
        while started < count && bench.in_flight() < 16 {
            bench.start(op, 0, len, bufs);
            started += 1;
        }
        let (_, result) = bench.finished().expect("under way");
        assert_eq!(result, Ok(()));
        finished += 1;
    }
    let answer = (begin.elapsed().as_secs_f64(), bench.parks(Wait::Throttled));
    bench.close();
    answer
}

const WRITE: OpKind = OpKind::Write { fua: false };

#[test]
fn requests_and_bytes_are_counted_as_the_specification_says() {
    let iops = LimitSpec { iops: 5000, iops_burst: 50, ..LimitSpec::default() };
    let reads = LimitSpec { read_iops: 5000, read_iops_burst: 50, ..LimitSpec::default() };
    let bytes =
        LimitSpec { write_bytes_per_s: 50 * MIB, write_bytes_burst: MIB, ..LimitSpec::default() };
    let zeroes = OpKind::WriteZeroes { unmap: false, fua: false };
    // The limit, the load, and the seconds that it takes at least; 0: it is not limited.
    for (limits, op, len, count, least) in [
        (iops, OpKind::Read, 512, 500, 0.09),
        (iops, WRITE, 512, 500, 0.09),
        (iops, OpKind::Discard, MIB, 500, 0.09),
        (iops, OpKind::Flush, 0, 500, 0.09),
        (iops, zeroes, 2 * MIB, 250, 0.09),
        (iops, zeroes, 512, 500, 0.09),
        (reads, OpKind::Flush, 0, 5000, 0.0),
        (reads, OpKind::Read, 512, 500, 0.09),
        (reads, WRITE, 512, 5000, 0.0),
        (bytes, WRITE, 65536, 96, 0.1),
        (bytes, OpKind::Read, 65536, 5000, 0.0),
        (bytes, zeroes, 65536, 96, 0.1),
        (bytes, OpKind::Discard, 65536, 5000, 0.0),
        (bytes, OpKind::Flush, 0, 5000, 0.0),
    ] {
        let volume = Limited::new(null(), &limits, 2);
        let (seconds, parked) = load(&volume, op, len, count);
        let context = format!("{op:?} of {len} under {limits:?}: {seconds} s, {parked} parked");
        assert!(seconds >= least, "{context}");
        assert_eq!(parked > 0, least > 0.0, "{context}");
    }
}

#[test]
fn a_request_is_paid_for_once_although_the_inner_volume_parks_it() {
    use spec::DelaySpec;
    let delay = DelaySpec { min_us: 1000, max_us: 10_000, depth: 2, ..DelaySpec::default() };
    let inner = Arc::new(crate::Delayed::new(null(), &delay, 1));
    // A burst that is just enough for all requests, and no rate worth mentioning: a second payment would take minutes.
    let limits = LimitSpec { iops: 1, iops_burst: 40, ..LimitSpec::default() };
    let (_, throttled) = load(&Limited::new(inner, &limits, 2), OpKind::Read, 512, 40);
    assert_eq!(throttled, 0);
}

#[test]
fn two_lanes_share_one_limit() {
    let limits = LimitSpec { iops: 10_000, iops_burst: 100, ..LimitSpec::default() };
    let volume = Limited::new(null(), &limits, 0);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| load(&volume, OpKind::Read, 512, 600));
        }
    });
    // 1200 requests, of which a burst of 100 comes at once and each lane may hold ten more.
    assert!(begin.elapsed().as_secs_f64() >= 0.105, "{:?}", begin.elapsed());
}

#[test]
fn two_volumes_share_one_limiter() {
    let limits = LimitSpec { iops: 10_000, iops_burst: 100, ..LimitSpec::default() };
    let limiter = Limiter::new(&limits);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let volume = Limited::sharing(null(), &limiter, crate::DEPTH_CLIENT);
            scope.spawn(move || load(&volume, OpKind::Read, 512, 600));
        }
    });
    assert!(begin.elapsed().as_secs_f64() >= 0.105, "{:?}", begin.elapsed());
}

#[test]
fn errors_of_the_inner_volume_pass_through() {
    let limits = LimitSpec { iops: 100_000, iops_burst: 0, ..LimitSpec::default() };
    let volume = Limited::new(null(), &limits, 0);
    let mut bench = TestBench::new(&volume, 4096);
    assert_eq!(bench.read(64 * MIB, 512), Err(IoError::OutOfRange));
    bench.close();
}

#[test]
fn a_detached_lane_gives_back_what_it_borrowed() {
    let limits = LimitSpec { iops: 1_000_000, iops_burst: 4000, ..LimitSpec::default() };
    let volume = Limited::new(null(), &limits, 0);
    let before = volume.gates.gates[0].bucket.take(0, 0).at;
    for _ in 0..100 {
        let mut bench = TestBench::new(&volume, 4096);
        bench.read(0, 512).expect("read");
        bench.close();
    }
    // Each lane borrowed a thousand; had they kept it, the bucket would be 0.1 s in debt by the clock of the bucket.
    let now = u64::try_from(volume.gates.epoch.elapsed().as_nanos()).expect("short");
    assert_eq!(before, 0);
    assert!(volume.gates.gates[0].bucket.take(now, 1000).at == now);
}
