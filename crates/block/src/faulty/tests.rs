//! Faults on a real volume: as many as asked for, and torn writes that really are.

use super::*;
use crate::conformance::TestBench;
use crate::{NullVolume, open};
use spec::{FileSpec, VolumeKind, VolumeSpec};

const MIB: u64 = 1 << 20;
const WRITE: OpKind = OpKind::Write { fua: false };

fn null(spec: FaultSpec) -> Faulty<NullVolume> {
    Faulty::new(Arc::new(NullVolume::new("null", MIB, 512, false, false)), &spec, 0)
}

fn failures(volume: &dyn Volume, op: OpKind, count: u32) -> u32 {
    let mut bench = TestBench::new(volume, 4096);
    let data = matches!(op, OpKind::Read | OpKind::Write { .. });
    let bufs = [bench.buf(0, 512)];
    let (len, bufs) = if data { (512, &bufs[..]) } else { (0, &[][..]) };
    let failed = (0..count).filter(|_| match bench.run(op, 0, len, bufs) {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(error, IoError::Io);
            true
        }
    });
    let failed = failed.count() as u32;
    bench.close();
    failed
}

#[test]
fn rates_hold_for_their_kind_and_no_other() {
    let tenth = 100_000;
    let none = FaultSpec { seed: 3, ..FaultSpec::default() };
    let reads = null(FaultSpec { read_error_ppm: tenth, ..none.clone() });
    let writes = null(FaultSpec { write_error_ppm: tenth, ..none.clone() });
    let flushes = null(FaultSpec { flush_error_ppm: tenth, ..none });
    for (volume, bad) in [(reads, OpKind::Read), (writes, WRITE), (flushes, OpKind::Flush)] {
        for op in [OpKind::Read, WRITE, OpKind::Flush] {
            let failed = failures(&volume, op, 2000);
            if op == bad {
                assert!((140..=260).contains(&failed), "{failed} of 2000 {op:?} at a tenth");
            } else {
                assert_eq!(failed, 0, "{op:?}");
            }
        }
    }
}

#[test]
fn the_same_seed_spoils_the_same_requests() {
    let spec = FaultSpec { seed: 42, read_error_ppm: 300_000, ..FaultSpec::default() };
    let pattern = || {
        let volume = null(spec.clone());
        let mut bench = TestBench::new(&volume, 4096);
        let results: Vec<bool> = (0..100).map(|_| bench.read(0, 512).is_err()).collect();
        bench.close();
        results
    };
    assert_eq!(pattern(), pattern());
}

#[test]
fn bad_sectors_fail_whatever_touches_them() {
    let volume = null(FaultSpec { bad_range: Some((4096, 4096)), ..FaultSpec::default() });
    let mut bench = TestBench::new(&volume, 64 * 1024);
    for (offset, len, good) in [
        (0, 4096, true),
        (3584, 1024, false),
        (4096, 512, false),
        (8192, 512, true),
        (0, 65536, false),
        (65536, 512, true),
    ] {
        assert_eq!(bench.read(offset, len).is_ok(), good, "{len} at {offset}");
        assert_eq!(bench.write(offset, &vec![0; len]).is_ok(), good, "{len} at {offset}");
    }
    bench.close();
}

#[test]
fn a_torn_write_leaves_a_part_and_reports_an_error() {
    let folder = tempfile::tempdir().expect("folder");
    let file = FileSpec { create: true, ..FileSpec::new(folder.path().join("disk")) };
    let mut spec = VolumeSpec::new("torn", VolumeKind::File(file));
    spec.bytes = Some(MIB);
    spec.fault = Some(FaultSpec { seed: 9, torn_write_ppm: 1_000_000, ..FaultSpec::default() });
    let volume = open(&spec).expect("open");
    let mut bench = TestBench::new(&*volume, 64 * 1024);
    let mut lengths = std::collections::BTreeSet::new();
    for round in 1..40_u8 {
        let before = bench.read(0, 32768).expect("read");
        assert_eq!(bench.write(0, &[round; 32768]), Err(IoError::Io));
        let after = bench.read(0, 32768).expect("read");
        let written = after.iter().take_while(|byte| **byte == round).count();
        assert!(written.is_multiple_of(512) && written < 32768, "{written}");
        assert_eq!(after[written..], before[written..], "behind the part that was written");
        lengths.insert(written);
    }
    assert!(lengths.len() > 10, "all torn at the same places: {lengths:?}");
    bench.close();
}

#[test]
fn late_requests_are_parked_once() {
    let volume = null(FaultSpec { slow_ppm: 500_000, slow_us: 1000, ..FaultSpec::default() });
    let mut bench = TestBench::new(&volume, 4096);
    for _ in 0..100 {
        bench.read(0, 512).expect("read");
    }
    let parked = bench.parks(Wait::Delay);
    assert!((30..=70).contains(&parked), "{parked} of 100 at a half");
    bench.close();
}
