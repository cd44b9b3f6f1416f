//! What a client can make the process keep: measured, so nothing else is done in this process meanwhile.

use std::path::Path;

use block::conformance::TestBench;
use block::{Here, OpKind, Volume, VolumeSpec, Wait};
use memory::IoBuf;
use pool_io::{PoolHandle, Pools};
use spec::{LuSpec, PoolSpec};

const CHUNK: u64 = 64 << 20;
const WRITE: OpKind = OpKind::Write { fua: false };
/// The largest request of which a lane does all at once.
const MOST: u64 = 1 << 20;

fn pool(pools: &Pools, folder: &Path, chunks: u64) -> PoolHandle {
    let pv = folder.join("pv");
    let file = std::fs::File::create(&pv).expect("a file");
    file.set_len(chunks * CHUNK).expect("its size");
    let spec = PoolSpec {
        name: "p0".to_owned(),
        uuid: "0123456789abcdef0123456789abcdef".to_owned(),
        server: "5e".repeat(16),
        pvs: vec![pv],
        shadow: folder.join("shadow"),
        fresh: true,
        ..PoolSpec::default()
    };
    let opened = pools.open(&Here, None, &spec, &mut |_| ());
    opened.unwrap_or_else(|error| panic!("{error}"))
}

fn lu(pool: &PoolHandle, bytes: u64) -> std::sync::Arc<dyn Volume> {
    let lu = LuSpec { fresh: true, ..LuSpec::of("p0") };
    let mut spec = VolumeSpec::new("lu", lu.clone());
    spec.bytes = Some(bytes);
    pool.open_lu(&spec, &lu).unwrap_or_else(|error| panic!("{error}")).0
}

/// What the process has of memory that is nobody else's.
fn own() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("RssAnon");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a figure") << 10
}

/// As many of the largest writes as a lane takes, in one piece, in pages, and small ones in bytes: with a copy of each that would be gigabytes.
#[test]
fn writes_that_wait_for_space_keep_next_to_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let pools = Pools::start().expect("a thread");
    // Three chunks are left of eight.
    let pool = pool(&pools, folder.path(), 8);
    let volume = lu(&pool, 4200 * CHUNK);
    let mut bench = TestBench::new(&*volume, 8 << 20);
    for chunk in 0..3 {
        bench.write(chunk * CHUNK, &[1; 4096]).unwrap();
    }
    let whole = bench.buf(0, MOST as usize);
    let pages: Vec<IoBuf> = (0..256).map(|page| bench.buf(page * 8192, 4096)).collect();
    let crumbs: Vec<IoBuf> = (0..4096).rev().map(|byte| bench.buf(byte * 2, 1)).collect();
    bench.write(3 * CHUNK - 4096, &[1; 4096]).unwrap();
    let before = own();
    // The bench keeps each request's list.
    let mut lists = 0;
    for chunk in 3..4099 {
        let (len, bufs) = match chunk % 3 {
            0 => (MOST, std::slice::from_ref(&whole)),
            1 => (MOST, &pages[..]),
            _ => (4096, &crumbs[..]),
        };
        bench.start(WRITE, chunk * CHUNK, len, bufs);
        lists += size_of_val(bufs) as u64;
    }
    let waits = bench.parks(Wait::Pool) + bench.parks(Wait::PoolFull);
    assert!(waits > 2000, "{waits} of them wait for the pool");
    let view = loop {
        let view = pool.view();
        if view.paused > 2000 {
            break view;
        }
    };
    let kept = own().saturating_sub(before + lists);
    println!("{} writes wait, and {} KiB are kept for them", view.paused, kept >> 10);
    assert!(kept < 16 << 20, "{} MiB for {} writes", kept >> 20, view.paused);
    // The bench is not closed: it would wait for them.
    std::mem::forget(bench);
    std::mem::forget(volume);
}
