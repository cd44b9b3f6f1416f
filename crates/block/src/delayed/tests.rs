//! The delay on a real volume.

use super::*;
use crate::conformance::TestBench;

use crate::{NullVolume, OpKind};

fn volume(min_ms: u64, max_ms: u64, depth: u32) -> Delayed<NullVolume> {
    let (min_us, max_us) = (min_ms * 1000, max_ms * 1000);
    let spec = DelaySpec { min_us, max_us, depth, seed: 11, ..DelaySpec::default() };
    Delayed::new(Arc::new(NullVolume::new("null", 1 << 20, 512, false, false)), &spec, 1)
}

#[test]
fn requests_complete_out_of_order_and_not_too_early() {
    let volume = volume(1, 30, 0);
    let mut bench = TestBench::new(&volume, 4096);
    let buf = bench.buf(0, 512);
    let begin = Instant::now();
    let started: Vec<_> =
        (0..32).map(|i| bench.start(OpKind::Read, i * 512, 512, &[buf])).collect();
    let mut finished = Vec::new();
    while let Some((tag, result)) = bench.finished() {
        assert_eq!(result, Ok(()));
        assert!(begin.elapsed() >= Duration::from_millis(1));
        finished.push(tag);
    }
    assert_ne!(finished, started, "32 requests between 1 and 30 ms, all in order");
    finished.sort_unstable();
    assert_eq!(finished, started);
    assert_eq!((bench.parks(Wait::Delay), bench.parks(Wait::BackEndFull)), (32, 0));
    bench.close();
}

#[test]
fn a_depth_of_one_serves_one_after_the_other() {
    let volume = volume(2, 2, 1);
    let mut bench = TestBench::new(&volume, 4096);
    let begin = Instant::now();
    let started: Vec<_> = (0..10).map(|_| bench.start(OpKind::Flush, 0, 0, &[])).collect();
    let finished: Vec<_> = std::iter::from_fn(|| bench.finished()).map(|(tag, _)| tag).collect();
    assert_eq!(finished, started);
    assert!(begin.elapsed() >= Duration::from_millis(20));
    assert_eq!((bench.parks(Wait::Delay), bench.parks(Wait::BackEndFull)), (1, 9));
    bench.close();
}
