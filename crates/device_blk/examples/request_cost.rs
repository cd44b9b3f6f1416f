//! Counts what one request costs between the ring and the volume and back.
//!
//! One measured call serves a batch of 32 reads of three descriptors (header, 4 KiB of data, status): look, pop, follow the chain, parse,
//! write the status, put, publish. The driver's part is outside of it. `cargo xtask test --only cost` runs it under callgrind.
//!
//! Arguments: batches, then any of `event-idx`, `inflight`.

use std::sync::Arc;

use block::Geometry;
use device_blk::{self as blk, Action, Shape, Status, parse};
use memory::IoBuf;
use vring::driver::{DriverConfig, DriverMemory, DriverQueue};
use vring::{Chain, GuestAddr, InflightRegion, Queue, QueueConfig};

const BATCH: u16 = 32;

/// The measured function: one turn of a device whose volume answers at once.
#[inline(never)]
fn serve_batch(queue: &mut Queue, shape: &Shape) -> (u64, bool) {
    let mut bytes = 0;
    let count = queue.pending().expect("a sane driver").min(BATCH);
    for _ in 0..count {
        let Some(head) = queue.pop().expect("a sane driver") else { break };
        let mut bufs = [IoBuf::EMPTY; 4];
        let mut chain = Chain::new(&mut bufs);
        queue.chain(head, &mut chain).expect("a sane driver");
        let (readable, total) = (chain.readable, chain.total);
        let (readable_bytes, writable_bytes) = (chain.readable_bytes, chain.writable_bytes);
        let bufs = &mut bufs[..total];
        let mut chain = blk::Chain { bufs, readable, readable_bytes, writable_bytes };
        let parsed = parse(shape, &mut chain);
        let Action::Submit { len, .. } = parsed.action else { panic!("a sane request") };
        bytes += len;
        parsed.status.write(0, &[Status::Ok as u8]);
        queue.put_used(head, u32::try_from(len + 1).unwrap_or(u32::MAX));
    }
    (bytes, queue.publish())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let batches: u64 = arguments.first().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    let memory =
        Arc::new(DriverMemory::with_regions(&[(GuestAddr(1 << 30), 4 << 20)]).expect("memory"));
    let driver =
        DriverConfig { size: 128, event_idx: has("event-idx"), indirect_max: 0, in_order: false };
    let mut driver = DriverQueue::new(&memory, driver).expect("a queue");
    let region = has("inflight").then(|| InflightRegion::create(1, 128).expect("a region").1);
    let config = QueueConfig {
        inflight: region.and_then(|region| region.queue(0)),
        ..driver.device_config()
    };
    let table = Arc::new(memory.table().expect("the same memory"));
    let mut queue = config.start(table).map_err(|(_, error)| error).expect("a sound ring");
    let geometry = Geometry {
        bytes: 1 << 30,
        block_size: 512,
        physical_block_size: 512,
        optimal_io_size: 0,
        discard: true,
        write_zeroes: true,
        read_only: false,
        write_cache: true,
    };
    let shape = Shape::new(&geometry, "cost", false, true);

    // Zeroed memory is a header already: type 0 (IN), sector 0.
    let requests: Vec<_> = (0..BATCH)
        .map(|_| {
            let header = memory.alloc(16, 16).expect("room").guest;
            let data = memory.alloc(4096, 4096).expect("room").guest;
            (header, data, memory.alloc(1, 1).expect("room").guest)
        })
        .collect();
    let mut bytes = 0;
    for _ in 0..batches {
        for (token, &(header, data, status)) in (0..).zip(&requests) {
            driver.add(&[(header, 16)], &[(data, 4096), (status, 1)], token, false).expect("room");
        }
        driver.publish();
        bytes += serve_batch(&mut queue, &shape).0;
        while let Some(done) = driver.poll().expect("a sane device") {
            assert_eq!(done.written, 4097);
        }
        driver.enable_interrupts();
    }
    assert_eq!(bytes, batches * u64::from(BATCH) * 4096);
}
