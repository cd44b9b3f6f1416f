//! What a chunk of a pool takes in memory, counted: 16 bytes for each leg of one with which nobody works, however it came to be, so that the map of 1 PiB has room in 300 MiB.
//!
//! One test: the allocator is the whole process's.

#![allow(unsafe_code)] // UNSAFE: a global allocator is; it only counts and passes on.

#[path = "../examples/map/filled.rs"]
mod filled;

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use filled::Filled;

/// Bytes that are allocated now, and the most that were since that was last asked.
static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

fn more(bytes: usize) {
    MOST.fetch_max(NOW.fetch_add(bytes, SeqCst) + bytes, SeqCst);
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), SeqCst);
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Chunks of an LU.
const CHUNKS: u32 = 1 << 15;
const LUS: u32 = 3;

/// What is allocated now, and the most that was since this was last asked.
fn allocated() -> (usize, usize) {
    let now = NOW.load(SeqCst);
    (now, MOST.swap(now, SeqCst))
}

/// Bytes that a chunk takes of a pool that was opened, and what the pool takes besides for itself, at most.
fn measure(folder: &Path, two: bool) -> (f64, usize) {
    let mut filled = Filled::make(folder, LUS, CHUNKS, two);
    let legs = if two { 2 } else { 1 };
    let mut before = Vec::new();
    for _ in 0..LUS {
        filled.write_lu(CHUNKS);
        filled.rest();
        before.push(allocated());
    }
    // The PVs' half of it was there from the beginning. Places of home records take 2 bits, and up to twice that while they are as many as this.
    let half = (8.25 * f64::from(legs * CHUNKS)) as usize + legs as usize * (20 << 10);
    for pair in before.windows(2) {
        let [(before, most_before), (now, most)] = pair else { unreachable!() };
        assert!(now - before <= half, "{} bytes more after an LU more", now - before);
        assert!(most - most_before <= half + (256 << 10), "{} at most", most - most_before);
    }
    drop(filled);
    let (before, _) = allocated();
    let filled = Filled::open(folder);
    let (now, most) = allocated();
    let chunks = filled.pool.lu_spaces().map(|lu| lu.allocated).sum::<u32>();
    assert_eq!(chunks, LUS * CHUNKS);
    assert_eq!(filled.pool.active_chunks(), 0);
    let a_chunk = (now - before) as f64 / f64::from(chunks);
    (a_chunk, most - now)
}

#[test]
fn the_map_of_a_pebibyte_has_room_in_300_mebibytes() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pool-memory");
    for two in [false, true] {
        let _ = std::fs::remove_dir_all(&folder);
        let (bytes, besides) = measure(&folder, two);
        std::fs::remove_dir_all(&folder).unwrap();
        // One for each leg of an LU's chunk and one for each chunk of a PV, of 8 bytes; some chunks of PVs are free.
        let legs = if two { 2.0 } else { 1.0 };
        assert!(bytes <= 16.5 * legs, "a chunk takes {bytes} bytes, {two}");
        assert!(besides <= 1 << 20, "{besides} bytes while it is opened");
        if !two {
            let all = bytes * (1_u64 << 24) as f64 + besides as f64;
            assert!(all <= f64::from(300 << 20), "{all} bytes for 1 PiB");
        }
    }
}
