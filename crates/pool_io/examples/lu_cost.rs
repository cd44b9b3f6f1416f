//! Counts what a request of 4 KiB costs in the lane of an LU, or of the file alone on which its pool is: from its beginning to the ring, and from the ring to its end.
//!
//! What is measured begins 32 requests, and ends them when the kernel has done them all. Arguments: rounds, then `file`, `lu`, `many` (an LU of 65,536 chunks) or `above` (above a snapshot, where all was written
//! since), and `write` for writes. `cargo xtask test --only cost` can run it under callgrind.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use block::{
    FileVolume, Finish, Here, Lane, LaneId, OpKind, Outcome, Request, Submit, Tag, Volume,
    VolumeSpec, open_part,
};
use memory::{IoBuf, Lasting};
use pool_io::still;
use spec::FileSpec;
use uring::{Completion, Ring, RingConfig};

const BATCH: u32 = 32;
const BYTES: u64 = 4096;
const CHUNK: u64 = 64 << 20;

/// Where a request of a batch goes: each to another chunk, as far as there are so many.
fn place(tag: u32, chunks: u64) -> u64 {
    u64::from(tag) * 2003 % chunks * CHUNK + u64::from(tag) * BYTES
}

/// Begins requests of a batch, from one of them on, as many as the lane takes at once; how many that are.
#[inline(never)]
fn measured_begin(
    lane: &mut dyn Lane,
    ring: &mut Ring,
    (op, chunks): (OpKind, u64),
    (first, bufs): (u32, &[IoBuf]),
) -> u32 {
    for (tag, buf) in (first..BATCH).zip(&bufs[first as usize..]) {
        let offset = place(tag, chunks);
        let bufs = std::slice::from_ref(buf);
        let (number, tag) = (tag, Tag(tag));
        let mut request = Request { op, offset, len: BYTES, bufs, tag, done: 0, passed: 0 };
        match lane.submit(ring, &mut request) {
            Submit::Pending => {}
            Submit::Park { .. } => return number - first,
            other => panic!("{other:?}"),
        }
    }
    BATCH - first
}

/// Ends those that the kernel has done.
#[inline(never)]
fn measured_end(
    lane: &mut dyn Lane,
    ring: &mut Ring,
    completions: &[Completion],
    out: &mut Vec<Finish>,
) {
    for completion in completions {
        let (_, token) = LaneId::split(completion.user_data);
        lane.complete(ring, token, completion.result, out);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds: u64 = arguments.first().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let op = if has("write") { OpKind::Write { fua: false } } else { OpKind::Read };
    let chunks: u32 = if has("many") { 65_536 } else { 16 };
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in /dev/shm");
    let path = folder.path().join("pv");
    let file = File::create(&path).expect("a file");
    file.set_len(u64::from(chunks) * CHUNK).expect("its size");
    let of_lu = if has("above") { pool::chunks_above(chunks) } else { chunks };
    // So that the kernel has all of it at hand.
    for tag in 0..BATCH {
        let at = place(tag, of_lu.into());
        let (container, slot) = pool::slot_place((at / pool::PART_BYTES) as u32);
        let above = u64::from(container) * CHUNK + slot + at % pool::PART_BYTES;
        let at = if has("above") { above } else { at };
        file.write_all_at(&[1; BYTES as usize], at).expect("memory");
    }
    let file = FileSpec::new(&path);
    let spec = VolumeSpec::new("pv", file.clone());
    let pv: FileVolume = open_part(&Here, None, &spec, &file, 0, false, &mut |_| ())
        .unwrap_or_else(|error| panic!("{error}"));
    let volume: Arc<dyn Volume> = if has("file") {
        Arc::new(pv)
    } else {
        let memory = tempfile::tempfile_in("/dev/shm").expect("a file in /dev/shm");
        still(Arc::new(pv), memory, chunks, has("above")).unwrap_or_else(|error| panic!("{error}"))
    };
    let mut ring = Ring::new(&RingConfig::default()).expect("a ring");
    let mut lane = volume.lane(&mut ring, LaneId(1)).unwrap_or_else(|error| panic!("{error}"));
    let memory = Lasting::new(BATCH as usize * BYTES as usize).expect("memory");
    let buf = |index: u32| memory.buf(index as usize * BYTES as usize, BYTES as usize);
    let bufs: Vec<IoBuf> = (0..BATCH).filter_map(buf).collect();
    let (mut completions, mut out) = (Vec::with_capacity(64), Vec::with_capacity(64));
    for _ in 0..rounds {
        let mut next = 0;
        while next < BATCH {
            let what = (op, of_lu.into());
            let begun = measured_begin(&mut *lane, &mut ring, what, (next, &bufs));
            ring.submit().expect("the kernel takes them");
            while completions.len() < begun as usize {
                ring.wait(None).expect("completions");
                completions.extend(std::iter::from_fn(|| ring.next()));
            }
            measured_end(&mut *lane, &mut ring, &completions, &mut out);
            // The first ones may be refused, by which the lane learns how the file wants to be asked.
            let again = |finish: &&Finish| matches!(finish.outcome, Outcome::Again { .. });
            let again = out.iter().filter(again).map(|finish| finish.tag.0).min();
            next = again.unwrap_or(next + begun);
            completions.clear();
            out.clear();
        }
    }
    lane.detach(&mut ring);
}
