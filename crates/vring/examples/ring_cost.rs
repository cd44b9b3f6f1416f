//! Counts what the device side of a ring costs per request.
//!
//! One measured call serves a batch of 32 requests of three descriptors (16 bytes header, 4 KiB of
//! data, one byte of status): look, pop, follow the chain, put, publish. The driver's part is
//! outside of it. Run it under callgrind, which counts the instructions of that function and of all
//! it calls, or alone for a time:
//!
//! ```text
//! cargo build --release -p vring --example ring_cost
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     --toggle-collect='ring_cost::serve_batch' target/release/examples/ring_cost 100 direct
//! ```
//!
//! Instructions per request = `Collected` / (batches × 32). Arguments: batches, then any of
//! `indirect`, `inflight`, `in-order`, `event-idx`, `four-regions`.

use std::sync::Arc;
use std::time::Instant;

use memory::IoBuf;
use vring::driver::{DriverConfig, DriverMemory, DriverQueue};
use vring::{Chain, GuestAddr, InflightRegion, Queue, QueueConfig};

const BATCH: u64 = 32;

/// The measured function: one turn of a device that does nothing with its requests.
#[inline(never)]
fn serve_batch(queue: &mut Queue, bufs: &mut [[IoBuf; 8]; 32]) -> (u64, bool) {
    let mut bytes = 0;
    let count = queue.pending().expect("a sane driver").min(32);
    for slot in bufs.iter_mut().take(usize::from(count)) {
        let Some(head) = queue.pop().expect("a sane driver") else { break };
        let mut chain = Chain::new(slot);
        queue.chain(head, &mut chain).expect("a sane driver");
        bytes += chain.readable_bytes + chain.writable_bytes;
        let written = u32::try_from(chain.writable_bytes).unwrap_or(u32::MAX);
        queue.put_used(head, written);
    }
    (bytes, queue.publish())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let batches: u64 = arguments.first().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let regions: Vec<_> = (1..=if has("four-regions") { 4 } else { 1 })
        .map(|n| (GuestAddr(n << 30), 4 << 20))
        .collect();
    let memory = Arc::new(DriverMemory::with_regions(&regions).expect("memory"));
    let config = DriverConfig {
        size: 128,
        event_idx: has("event-idx"),
        indirect_max: if has("indirect") { 4 } else { 0 },
        in_order: has("in-order"),
    };
    let mut driver = DriverQueue::new(&memory, config).expect("a queue");
    let region = has("inflight").then(|| InflightRegion::create(1, 128).expect("a region").1);
    let config = QueueConfig {
        inflight: region.and_then(|region| region.queue(0)),
        ..driver.device_config()
    };
    let table = Arc::new(memory.table().expect("the same memory"));
    let mut queue = config.start(table).map_err(|(_, error)| error).expect("a sound ring");

    // The data of each request in another region than its header and status, if there are several.
    let buffers: Vec<_> = (0..BATCH)
        .map(|i| {
            let data = regions[i as usize % regions.len()].0.0 + (1 << 20) + i * 4096;
            let small = memory.alloc(32, 32).expect("room").guest;
            (small, GuestAddr(data), GuestAddr(small.0 + 16))
        })
        .collect();
    let mut bufs = [[IoBuf::EMPTY; 8]; 32];
    let (mut bytes, mut interrupts, mut nanoseconds) = (0, 0u64, 0);
    for _ in 0..batches {
        for (token, &(header, data, status)) in (0..).zip(&buffers) {
            let writable = [(data, 4096), (status, 1)];
            driver.add(&[(header, 16)], &writable, token, has("indirect")).expect("room");
        }
        driver.publish();
        let start = Instant::now();
        let (more, interrupt) = serve_batch(&mut queue, &mut bufs);
        nanoseconds += start.elapsed().as_nanos();
        bytes += more;
        interrupts += u64::from(interrupt);
        while let Some(done) = driver.poll().expect("a sane device") {
            assert_eq!(done.written, 4097);
        }
        driver.enable_interrupts();
    }
    assert_eq!(bytes, batches * BATCH * 4113);
    let requests = batches * BATCH;
    println!(
        "{requests} requests, {interrupts} interrupts, {:.1} ns per request",
        nanoseconds as f64 / requests as f64
    );
}
