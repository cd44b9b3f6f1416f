use vring::driver::{DriverConfig, DriverMemory};
use vring::{Chain, MemTable, QueueConfig};

use super::*;

fn plan(data_segments: u16, indirect: bool) -> StartPlan {
    let slots = SlotPlan { slots: 16, data_bytes: 8192, data_segments, indirect };
    StartPlan { queues: 3, queue_size: 256, threads: 1, slots }
}

/// A queue and the device's view of the same ring.
fn pair(plan: &StartPlan) -> (Queue, vring::Queue) {
    let memory = Arc::new(DriverMemory::new(plan.memory_bytes()).expect("memory"));
    let config = DriverConfig {
        size: plan.queue_size,
        event_idx: true,
        indirect_max: plan.slots.table_entries(),
        in_order: false,
    };
    let ring = DriverQueue::new(&memory, config).expect("a ring");
    let table: MemTable = memory.table().expect("a table");
    let device = QueueConfig { indirect: true, ..ring.device_config() };
    let device = device.start(Arc::new(table)).map_err(|(_, error)| error).expect("started");
    let kick = Arc::new(EventFd::new(0).expect("an eventfd"));
    (Queue::new(ring, &memory, kick, &plan.slots).expect("slots"), device)
}

/// Sizes of the readable and the writable buffers that the device sees, and the header's type and sector.
fn seen(device: &mut vring::Queue) -> (Vec<usize>, Vec<usize>, u32, u64) {
    assert_eq!(device.pending().expect("honest"), 1);
    let head = device.pop().expect("honest").expect("one");
    let mut bufs = [IoBuf::EMPTY; 32];
    let mut chain = Chain::new(&mut bufs);
    device.chain(head, &mut chain).expect("a good chain");
    let (readable, total) = (chain.readable, chain.total);
    let mut header = [0; 16];
    bufs[0].read(0, &mut header);
    bufs[total - 1].write(0, &[0]);
    let lens = |bufs: &[IoBuf]| bufs.iter().map(|buf| buf.len()).collect::<Vec<_>>();
    let result = (
        lens(&bufs[..readable]),
        lens(&bufs[readable..total]),
        u32::from_le_bytes(header[..4].try_into().expect("four")),
        u64::from_le_bytes(header[8..].try_into().expect("eight")),
    );
    device.put_used(head, 1);
    device.publish();
    result
}

fn round_trip(
    queue: &mut Queue,
    device: &mut vring::Queue,
    request: Request,
) -> (Vec<usize>, Vec<usize>, u32, u64) {
    let slot = queue.take().expect("free");
    queue.submit(slot, request).expect("room");
    queue.publish().expect("kick");
    let result = seen(device);
    let done = queue.poll().expect("honest").expect("back");
    assert_eq!((done.slot, done.status), (slot, Status::Ok));
    queue.give_back(slot);
    result
}

#[test]
fn chains_have_the_shape_that_virtio_asks_for() {
    for (segments, indirect) in [(1, false), (2, false), (2, true)] {
        let (mut queue, mut device) = pair(&plan(segments, indirect));
        let data = vec![8192 / usize::from(segments); usize::from(segments)];
        let with = |first: usize, rest: &[usize]| [&[first], rest].concat();
        let mut trip = |request| round_trip(&mut queue, &mut device, request);
        let (offset, bytes) = (512 * 7, 8192);
        assert_eq!(
            trip(Request::Read { offset, bytes }),
            (vec![16], [&data[..], &[1]].concat(), 0, 7)
        );
        assert_eq!(trip(Request::Write { offset, bytes }), (with(16, &data), vec![1], 1, 7));
        assert_eq!(trip(Request::Flush), (vec![16], vec![1], 4, 0));
        assert_eq!(trip(Request::GetId), (vec![16], vec![20, 1], 8, 0));
        let range = Request::WriteZeroes { offset, bytes: 4096, unmap: true };
        assert_eq!(trip(range), (vec![16, 16], vec![1], 13, 0));
        assert_eq!(trip(Request::Discard { offset, bytes: 4096 }), (vec![16, 16], vec![1], 11, 0));
        assert_eq!(trip(Request::Read { offset, bytes: 512 }), (vec![16], vec![512, 1], 0, 7));
    }
}

#[test]
fn every_slot_can_be_outstanding_and_none_is_given_twice() {
    let (mut queue, mut device) = pair(&plan(2, false));
    let mut slots = Vec::new();
    while let Some(slot) = queue.take() {
        assert!(!slots.contains(&slot));
        queue.submit(slot, Request::Write { offset: 0, bytes: 8192 }).expect("room for all");
        slots.push(slot);
    }
    queue.publish().expect("kick");
    assert_eq!((slots.len(), queue.busy(), device.pending().expect("honest")), (16, 16, 16));
    assert_eq!(queue.kicks(), 1);
}

#[test]
fn a_status_that_the_server_did_not_write_is_not_success() {
    let (mut queue, mut device) = pair(&plan(1, false));
    let slot = queue.take().expect("free");
    queue.submit(slot, Request::Flush).expect("room");
    queue.publish().expect("kick");
    device.pending().expect("honest");
    let head = device.pop().expect("honest").expect("one");
    device.put_used(head, 0);
    device.publish();
    let done = queue.poll().expect("honest").expect("back");
    assert_eq!(done.status, Status::Invalid(0xff));
}

#[test]
fn the_memory_of_a_plan_is_enough_for_all_its_queues() {
    for (segments, indirect, data_bytes) in [(1, false, 512), (16, true, 1 << 20), (1, true, 4608)]
    {
        let slots = SlotPlan { slots: 64, data_bytes, data_segments: segments, indirect };
        let plan = StartPlan { queues: 5, queue_size: 1024, threads: 1, slots };
        let memory = Arc::new(DriverMemory::new(plan.memory_bytes()).expect("memory"));
        for _ in 0..plan.queues {
            let config = DriverConfig {
                size: plan.queue_size,
                event_idx: false,
                indirect_max: plan.slots.table_entries(),
                in_order: false,
            };
            let ring = DriverQueue::new(&memory, config).expect("room for the ring");
            let kick = Arc::new(EventFd::new(0).expect("an eventfd"));
            Queue::new(ring, &memory, kick, &plan.slots).expect("room for the slots");
        }
    }
}
