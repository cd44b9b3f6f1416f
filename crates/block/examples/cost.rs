//! What a request costs in this crate, in a loop for callgrind or a clock.
//!
//! ```text
//! cargo build --release -p block --example cost
//! valgrind --tool=callgrind target/release/examples/cost null 100000
//! target/release/examples/cost file:/dev/shm/x 1000000
//! ```
//!
//! Kinds: `null`, `limited` (null behind a limit that never holds), `ram:PATH`, `file:PATH`, `nop` (the ring alone). The difference between
//! two runs of different length, divided by the difference in length, is the cost of one 4 KiB read, in rounds of 32.

use std::process::ExitCode;
use std::time::Instant;

use block::spec::{FileSpec, LimitSpec, NullSpec, RamSpec, VolumeKind, VolumeSpec};
use block::{LaneId, OpKind, Request, Submit, Tag, open};
use memory::{IoBuf, Lasting};
use uring::{Op, Ring, RingConfig};

const BATCH: u64 = 32;
const BYTES: u64 = 64 << 20;

fn spec(kind: &str) -> Option<VolumeSpec> {
    let null = VolumeKind::Null(NullSpec::default());
    let kind = match kind.split_once(':') {
        None if kind == "null" || kind == "limited" => null,
        Some(("ram", path)) => VolumeKind::Ram(RamSpec::new(path)),
        Some(("file", path)) => {
            VolumeKind::File(FileSpec { create: true, preallocate: true, ..FileSpec::new(path) })
        }
        _ => return None,
    };
    Some(VolumeSpec { bytes: Some(BYTES), block_size: 4096, ..VolumeSpec::new("cost", kind) })
}

fn nops(count: u64) {
    let mut ring = Ring::new(&RingConfig::default()).expect("ring");
    for _ in 0..count / BATCH {
        for index in 0..BATCH {
            ring.push(Op::Nop, index).expect("room");
        }
        ring.submit().expect("submit");
        while ring.next().is_some() {}
    }
}

fn reads(spec: &VolumeSpec, count: u64) -> Result<(), block::VolumeError> {
    let volume = open(spec)?;
    let mut ring = Ring::new(&RingConfig::default()).expect("ring");
    let mut lane = volume.lane(&mut ring, LaneId(1))?;
    let memory = Lasting::new(32 * 4096).expect("memory");
    let bufs: Vec<IoBuf> = (0..32).filter_map(|i| memory.buf(i * 4096, 4096)).collect();
    let mut out = Vec::with_capacity(64);
    for round in 0..count / BATCH {
        let mut pending = 0;
        for (index, buf) in bufs.iter().enumerate() {
            let offset = (round * 7919 + index as u64 * 104_729) % (BYTES / 4096) * 4096;
            let bufs = std::slice::from_ref(buf);
            let tag = Tag(u32::try_from(index).expect("small"));
            let op = OpKind::Read;
            let mut request = Request { op, offset, len: 4096, bufs, tag, done: 0, passed: 0 };
            match lane.submit(&mut ring, &mut request) {
                Submit::Done(result) => result.expect("read"),
                Submit::Pending | Submit::Held { .. } => pending += 1,
                Submit::Park { reason, .. } => panic!("parked: {reason:?}"),
            }
        }
        ring.submit().expect("submit");
        while pending > 0 {
            while let Some(completion) = ring.next() {
                let (_, token) = LaneId::split(completion.user_data);
                lane.complete(&mut ring, token, completion.result, &mut out);
            }
            pending -= out.len();
            out.clear();
            if pending > 0 {
                ring.wait(None).expect("wait");
            }
        }
    }
    lane.detach(&mut ring);
    Ok(())
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let count: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let begin = Instant::now();
    if kind == "nop" {
        nops(count);
    } else {
        let Some(mut spec) = spec(&kind).filter(|_| count > 0) else {
            eprintln!("usage: cost null|limited|ram:PATH|file:PATH|nop COUNT");
            return ExitCode::from(2);
        };
        if kind == "limited" {
            spec.limit = Some(LimitSpec { iops: 1_000_000_000, ..LimitSpec::default() });
        }
        if let Err(error) = reads(&spec, count) {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    let ns = begin.elapsed().as_nanos() as f64 / count as f64;
    println!("{kind}: {ns:.1} ns for each of {count}");
    ExitCode::SUCCESS
}
