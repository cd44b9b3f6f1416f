use vring::driver::DriverConfig;
use vring::{Chain, Head};

use super::*;
use crate::session::StartPlan;

/// A queue and the device's view of the same ring.
fn pair(data_segments: u16) -> (Queue, vring::Queue) {
    let slots = SlotPlan { slots: 4, data_bytes: 8192, data_segments, indirect: false };
    let plan = StartPlan { queues: 1, queue_size: 64, threads: 1, slots };
    let memory = Arc::new(DriverMemory::new(plan.memory_bytes()).expect("memory"));
    let config = DriverConfig { size: 64, event_idx: true, indirect_max: 0, in_order: false };
    let ring = DriverQueue::new(&memory, config).expect("a ring");
    let device = ring.device_config();
    let table = memory.table().expect("a table");
    let device = device.start(Arc::new(table)).map_err(|(_, error)| error).expect("started");
    let kick = Arc::new(EventFd::new(0).expect("an eventfd"));
    (Queue::new(ring, &memory, kick, &plan.slots).expect("slots"), device)
}

/// Takes a command at the device: its head, readable and writable buffers.
fn taken(device: &mut vring::Queue) -> (Head, Vec<IoBuf>, Vec<IoBuf>) {
    assert_eq!(device.pending().expect("honest"), 1);
    let head = device.pop().expect("honest").expect("one");
    let mut bufs = [IoBuf::EMPTY; 32];
    let mut chain = Chain::new(&mut bufs);
    device.chain(head, &mut chain).expect("a good chain");
    let (readable, total) = (chain.readable, chain.total);
    (head, bufs[..readable].to_vec(), bufs[readable..total].to_vec())
}

fn lens(bufs: &[IoBuf]) -> Vec<usize> {
    bufs.iter().map(|buf| buf.len()).collect()
}

#[test]
fn requests_have_the_shape_that_virtio_asks_for_5_6_6_1() {
    let (mut queue, mut device) = pair(2);
    let slot = queue.take().expect("free");
    let cdb = [0x28, 1, 2, 3];
    let lun = address(7, 300);
    assert_eq!(lun, [1, 7, 0x41, 0x2c, 0, 0, 0, 0]);
    let command =
        Command { lun, tag: 0x0102_0304_0506_0708, cdb: &cdb, data_out: 512, data_in: 8192 };
    queue.submit(slot, &command).expect("room");
    queue.publish().expect("kick");
    let (head, readable, writable) = taken(&mut device);
    assert_eq!((lens(&readable), lens(&writable)), (vec![51, 512], vec![108, 4096, 4096]));
    let mut request = [0; 51];
    readable[0].read(0, &mut request);
    assert_eq!(request[..8], lun);
    assert_eq!(request[8..16], [8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(request[16..23], [0, 0, 0, 0x28, 1, 2, 3]);
    // CHECK CONDITION with a unit attention, and half of the data.
    let mut response = [0; 108];
    (response[0], response[5], response[10]) = (18, 0x10, status::CHECK_CONDITION);
    response[12..30]
        .copy_from_slice(&[0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 1, 0, 0, 0, 0]);
    writable[0].write(0, &response);
    device.put_used(head, 108);
    device.publish();
    assert_eq!(queue.poll().expect("honest"), Some(slot));
    assert!(!queue.good(slot));
    let reply = queue.reply(slot);
    assert_eq!((reply.sense.len(), reply.residual), (18, 4096));
    assert_eq!(reply.sense_code(), Some((6, 0x2901)));
    assert!(reply.try_again() && !reply.good());
}

#[test]
fn a_response_that_the_server_did_not_write_is_not_success() {
    let (mut queue, mut device) = pair(1);
    let slot = queue.take().expect("free");
    let command = Command { lun: address(0, 0), tag: 1, cdb: &[0; 6], data_out: 0, data_in: 0 };
    queue.submit(slot, &command).expect("room");
    queue.publish().expect("kick");
    let (head, ..) = taken(&mut device);
    device.put_used(head, 0);
    device.publish();
    assert_eq!(queue.poll().expect("honest"), Some(slot));
    assert!(!queue.good(slot) && !queue.reply(slot).try_again());
}

#[test]
fn who_may_send_a_command_again() {
    let reply = |response, status, key| Reply {
        response,
        status,
        sense: vec![0x72, key, 0, 0],
        residual: 0,
        data: Vec::new(),
    };
    use super::response as r;
    use super::status as s;
    assert!(reply(r::OK, s::CHECK_CONDITION, 6).try_again());
    let not_ready = |code: u16| Reply {
        sense: [&[0x72, 2][..], &code.to_be_bytes()].concat(),
        ..reply(r::OK, s::CHECK_CONDITION, 2)
    };
    assert!(not_ready(0x0401).try_again() && not_ready(0x0401).becoming_ready());
    assert!(!not_ready(0x0403).try_again() && !not_ready(0x0403).becoming_ready());
    assert!(reply(r::OK, s::TASK_ABORTED, 0).try_again());
    assert!(reply(r::RESET, 0, 0).try_again());
    assert!(!reply(r::OK, s::RESERVATION_CONFLICT, 0).try_again());
    assert!(!reply(r::OK, s::CHECK_CONDITION, 5).try_again());
    assert!(!reply(r::BAD_TARGET, 0, 0).try_again());
}

#[test]
fn the_configuration_space_is_read_as_5_6_4_says() {
    let mut bytes = [0; CONFIG_BYTES];
    (bytes[0], bytes[4], bytes[24], bytes[30], bytes[33]) = (4, 254, 32, 255, 0x3f);
    let config = ScsiConfig::parse(&bytes);
    assert_eq!((config.num_queues, config.seg_max, config.cdb_size), (4, 254, 32));
    assert_eq!((config.max_target, config.max_lun), (255, 0x3f00));
    assert_eq!(ScsiConfig::parse(&[]).num_queues, 0);
}
