//! A SCSI adapter's queues in their channel: commands, addresses, control, events, restarts.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::common::*;
use channel::Drain;
use device_scsi::{OffPath, ScsiRole};
use device_scsi::{Response, Sizes, event};
use protocol::stats::QueueCounter;
use scsi::{Attention, Lun, management::Function};

/// A client with one disk of 1 MiB as LUN 0 of target 0, and its request queue.
fn disk() -> (Client, Rig) {
    let client = Client::new(1);
    let one = entry(&ram(1 << 20));
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &one)])), 0);
    assert_eq!(rig.ask(&Request::new(0, 0, &[0; 6])).check(), POWER_ON);
    (client, rig)
}

#[test]
fn data_is_written_and_read() {
    let (_client, mut rig) = disk();
    let data = pattern(7, 32 << 10);
    let answer = rig.ask(&Request::write(0, 0, 100, data.clone()));
    assert_eq!((answer.written, answer.residual), (108, 0));
    answer.good();
    let answer = rig.ask(&Request::read(0, 0, 100, 64));
    assert_eq!(answer.written, 108 + (32 << 10));
    assert_eq!(answer.good(), data);
    assert_eq!((rig.count(QueueCounter::Reads), rig.count(QueueCounter::Writes)), (1, 1));
    assert_eq!(rig.count(QueueCounter::ReadBytes), 32 << 10);
    assert_eq!(rig.count(QueueCounter::UnitAttentions), 1);
    assert_eq!(rig.count(QueueCounter::CheckConditions), 1);
}

#[test]
fn any_framing_gives_the_same_answer() {
    let (_client, mut rig) = disk();
    let data = pattern(3, 8192);
    let cuts: [(&[usize], &[usize]); 5] = [
        (&[], &[]),
        (&[1, 7, 50, 52], &[1, 5, 11, 12, 107, 109]),
        (&[51, 563, 1075], &[108, 620, 1132]),
        (&[51, 52, 53, 54, 55, 56, 57], &[108, 109, 110, 111, 112, 4000]),
        (&[60], &[50]),
    ];
    for (out, inward) in cuts {
        let cuts = Some((out.to_vec(), inward.to_vec()));
        rig.ask(&Request { cuts: cuts.clone(), ..Request::write(0, 0, 8, data.clone()) }).good();
        let answer = rig.ask(&Request { cuts: cuts.clone(), ..Request::read(0, 0, 8, 16) });
        assert_eq!(answer.good(), data);
        let beyond = rig.ask(&Request { cuts, ..Request::read(0, 0, 4096, 16) });
        assert_eq!(beyond.check(), (5, 0x2100));
    }
    assert_eq!(rig.count(QueueCounter::GlobalBuffers), 0, "none has more than ten data segments");
}

#[test]
fn lists_that_are_too_short_or_too_few_come_from_the_channel() {
    let data = pattern(5, 8192);
    // Five cuts make six readable segments; with the response, seven.
    let cuts = || Some((vec![51, 600, 1200, 1800, 2400], vec![]));
    for (buffers, shared) in [(1, 2), (4, 2), (5, 0), (10, 0)] {
        let client = Client::new(1);
        let mut setup = Setup::new(&map(&[(0, 0, &entry(&ram(1 << 20)))]));
        (setup.limits.buffers, setup.limits.local) = (buffers, 1);
        let mut rig = client.queue(ScsiRole::Request, &setup, 0);
        rig.ready(0, 0);
        for _ in 0..2 {
            rig.ask(&Request { cuts: cuts(), ..Request::write(0, 0, 8, data.clone()) }).good();
        }
        assert_eq!(rig.ask(&Request::read(0, 0, 8, 16)).good(), data);
        assert_eq!(rig.count(QueueCounter::GlobalBuffers), shared, "{buffers}");
        rig.stop(Drain::Ordinary);
    }
}

#[test]
fn clause_5_6_6_1_residual_and_overrun() {
    let (_client, mut rig) = disk();
    let inquiry = Request { room: 255, ..Request::new(0, 0, &[0x12, 0, 0, 0, 255, 0]) };
    let answer = rig.ask(&inquiry);
    let len = usize::from(answer.data[4]) + 5;
    assert_eq!((answer.residual as usize, answer.written as usize), (255 - len, 108 + len));
    answer.good();
    // More room than the command asks for, and less; with a tail of less than a block.
    let answer = rig.ask(&Request { room: 8192 + 100, ..Request::read(0, 0, 0, 16) });
    assert_eq!((answer.response, answer.residual), (0, 100));
    assert_eq!(answer.data[8191..], [[0].as_slice(), &[0xee; 100]].concat());
    let data = pattern(9, 8192);
    rig.ask(&Request::write(0, 0, 0, data.clone())).good();
    let answer = rig.ask(&Request { room: 4096 + 100, ..Request::read(0, 0, 0, 16) });
    assert_eq!((answer.response, answer.status, answer.residual), (Response::Overrun as u8, 0, 0));
    assert_eq!(answer.data, data[..4196]);
    let answer = rig.ask(&Request { out: vec![1; 700], ..Request::new(0, 0, &cdb10(0x2a, 0, 2)) });
    assert_eq!((answer.response, answer.residual), (Response::Overrun as u8, 188));
    let more = Request { out: vec![2; 700], ..Request::new(0, 0, &cdb10(0x2a, 0, 1)) };
    assert_eq!(rig.ask(&more).residual, 188);
    // Data in the wrong direction.
    let answer = rig.ask(&Request { out: vec![1; 512], ..Request::new(0, 0, &cdb10(0x28, 0, 1)) });
    assert_eq!((answer.response, answer.residual), (Response::Overrun as u8, 512));
}

#[test]
fn clause_5_6_6_1_both_directions() {
    let (client, mut rig) = disk();
    let data = pattern(5, 512);
    let both = Request { room: 100, ..Request::write(0, 0, 3, data.clone()) };
    let answer = rig.ask(&both);
    assert_eq!((answer.response, answer.status, answer.residual), (0, 0, 100));
    let answer = rig.ask(&Request { out: vec![0; 30], ..Request::read(0, 0, 3, 1) });
    assert_eq!(answer.residual, 30);
    assert_eq!(answer.good(), data);
    let mut setup = rig.setup.clone();
    setup.limits.inout = false;
    let mut other = client.queue(ScsiRole::Request, &setup, 0);
    assert_eq!(other.ask(&both).response, Response::Failure as u8);
}

#[test]
fn addresses_without_a_logical_unit() {
    let client = Client::new(1);
    let one = entry(&ram(1 << 20));
    let luns = map(&[(3, 1, &one), (3, 300, &one)]);
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&luns), 0);
    let bad = |rig: &mut Rig, request: &Request| rig.ask(request).response;
    let read = Request::read(2, 1, 0, 1);
    assert_eq!(bad(&mut rig, &read), Response::BadTarget as u8);
    assert_eq!(bad(&mut rig, &Request { address: [0; 8], ..read.clone() }), 3);
    let count = |counter| rig.count(counter);
    let counts = (count(QueueCounter::Errors), count(QueueCounter::ControlRequests));
    assert_eq!(counts, (0, 2), "a client that looks for targets makes no errors");
    assert_eq!(rig.ask(&Request::read(3, 2, 0, 1)).check(), LUN_NOT_SUPPORTED);
    let odd = Request { address: [1, 3, 0x80, 0, 0, 0, 0, 0], ..Request::read(3, 0, 0, 1) };
    assert_eq!(rig.ask(&odd).check(), LUN_NOT_SUPPORTED);
    // INQUIRY and REPORT LUNS have to work for LUN 0, which is not there.
    let inquiry = Request { room: 36, ..Request::new(3, 0, &[0x12, 0, 0, 0, 36, 0]) };
    assert_eq!(rig.ask(&inquiry).good()[0], 0x7f);
    let report = [0xa0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0];
    let expected =
        [[0, 0, 0, 16, 0, 0, 0, 0].as_slice(), &lun(1).encode(), &lun(300).encode()].concat();
    let nothing = Request { room: 64, ..Request::new(3, 0, &report) };
    assert_eq!(rig.ask(&nothing).good()[..24], expected);
    for address in [[0xc1, 1, 0, 0, 0, 0, 0, 0], [1, 3, 0xc1, 1, 0, 0, 0, 0]] {
        let well_known = Request { address, ..nothing.clone() };
        assert_eq!(rig.ask(&well_known).good()[..24], expected);
    }
    // All of that has told nobody's unit attention.
    assert_eq!(rig.ask(&Request::new(3, 1, &[0; 6])).check(), POWER_ON);
    assert_eq!(
        rig.ask(&Request { room: 64, ..Request::new(3, 1, &report) }).good()[..24],
        expected
    );
}

#[test]
fn changed_luns_are_told_once_for_a_target() {
    let client = Client::new(1);
    let (one, two, far) = (entry(&ram(1 << 20)), entry(&ram(1 << 20)), entry(&ram(1 << 20)));
    let luns = map(&[(0, 0, &one), (0, 1, &two), (1, 0, &far)]);
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&luns), 0);
    [(0, 0), (0, 1), (1, 0)].into_iter().for_each(|(target, lun)| rig.ready(target, lun));
    for each in [&one, &two, &far] {
        each.nexus.tell(Attention::LunsChanged);
    }
    let report =
        Request { room: 64, ..Request::new(0, 1, &[0xa0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0]) };
    rig.ask(&report).good();
    rig.ask(&Request::read(0, 0, 0, 1)).good();
    rig.ask(&Request::read(0, 1, 0, 1)).good();
    assert_eq!(rig.ask(&Request::read(1, 0, 0, 1)).check(), (6, 0x3f0e));
}

#[test]
fn sense_data_follows_format_and_size() {
    let (client, mut rig) = disk();
    let beyond = Request::read(0, 0, 1 << 20, 1);
    assert_eq!(rig.ask(&beyond).check(), (5, 0x2100));
    let mut setup = rig.setup.clone();
    setup.limits.sizes = Sizes::new(32, 96).unwrap();
    // MODE SELECT(6) of the control page with D_SENSE.
    let sense = Request { room: 64, ..Request::new(0, 0, &[0x1a, 8, 0x0a, 0, 64, 0]) };
    let mut page = rig.ask(&sense).good();
    page.truncate(usize::from(page[0]) + 1);
    page[0] = 0;
    page[2] = 0;
    page[4] &= 0x7f;
    page[6] |= 4;
    let select = Request::new(0, 0, &[0x15, 0x10, 0, 0, page.len() as u8, 0]);
    rig.ask(&Request { out: page, ..select }).good();
    let answer = rig.ask(&beyond);
    assert_eq!((answer.status, answer.sense[0], answer.sense[1]), (2, 0x72, 5));
    assert_eq!(answer.residual, 512);
    drop(client);
}

#[test]
fn chains_that_are_no_requests() {
    let (_client, mut rig) = disk();
    for (bytes, room, answered) in
        [(51, 107, true), (50, 108, true), (51, 11, false), (51, 0, false)]
    {
        rig.add_raw(&vec![1; bytes], room);
        rig.kick();
        let (bytes, written) = rig.wait_raw();
        assert_eq!(written, if answered { 12 } else { 0 });
        if answered {
            assert_eq!((bytes[10], bytes[11]), (0, Response::Failure as u8));
        }
    }
    rig.add_raw(&[], 108);
    rig.kick();
    assert_eq!(rig.wait_raw().1, 12);
    assert_eq!(rig.count(QueueCounter::BadChains), 5);
    rig.ask(&Request::read(0, 0, 0, 1)).good();
}

fn tmf(subtype: u32, target: u8, number: u16, id: u64) -> Vec<u8> {
    let address = device_scsi::Place::encode(target, lun(number));
    [&[0; 4], &subtype.to_le_bytes()[..], &address, &id.to_le_bytes()].concat()
}

#[test]
fn clause_5_6_6_2_task_management() {
    let client = Client::new(1);
    let one = entry(&ram(1 << 20));
    let setup = Setup::new(&map(&[(2, 5, &one)]));
    let mut control = client.queue(ScsiRole::Control, &setup, 0);
    let mut ask = |bytes: &[u8], room| {
        control.add_raw(bytes, room);
        control.kick();
        let (bytes, written) = control.wait_raw();
        (bytes[..written as usize].to_vec(), written)
    };
    assert_eq!(ask(&tmf(5, 1, 5, 0), 1).0, [Response::BadTarget as u8]);
    assert_eq!(ask(&tmf(5, 2, 6, 0), 1).0, [Response::IncorrectLun as u8]);
    assert_eq!(ask(&tmf(2, 2, 5, 0), 1).0, [Response::FunctionRejected as u8]);
    assert_eq!(ask(&tmf(77, 2, 5, 0), 1).0, [Response::FunctionRejected as u8]);
    assert_eq!(ask(&[9, 0, 0, 0, 1, 2], 3).0[2], Response::Failure as u8);
    assert_eq!(ask(&tmf(5, 2, 5, 0)[..20], 1).0, [Response::Failure as u8]);
    assert_eq!(ask(&tmf(5, 2, 5, 0), 0).1, 0);
    let query = [&1_u32.to_le_bytes()[..], &[1, 2, 0, 5, 0, 0, 0, 0], &[255; 4]].concat();
    assert_eq!(ask(&query, 5).0, [0; 5]);
    assert_eq!(ask(&query, 4).1, 0);
    let nobody = [&2_u32.to_le_bytes()[..], &[1, 9, 0, 5, 0, 0, 0, 0], &[255; 4]].concat();
    assert_eq!(ask(&nobody, 5).0[4], Response::BadTarget as u8);
    // What has to be done is an off-path request.
    control.add_raw(&tmf(5, 2, 5, 0), 1);
    control.add_raw(&tmf(4, 2, 99, 0), 1);
    control.add_raw(&tmf(0, 2, 5, 0x1234), 1);
    control.kick();
    let mut found = Vec::new();
    for response in [Response::Ok, Response::FunctionSucceeded, Response::Failure] {
        let OffPath::Manage { request, answer } = client.off_path() else { panic!("no TMF") };
        found.push((request.function, request.target, request.lun.map(Lun::number), request.id));
        // An off-path request that nobody does is answered too.
        if response == Response::Failure { drop(answer) } else { answer.send(response) }
    }
    assert_eq!(found[0], (Function::LogicalUnitReset, 2, Some(5), 0));
    assert_eq!(found[1], (Function::NexusReset, 2, None, 0));
    assert_eq!(found[2], (Function::AbortTask, 2, Some(5), 0x1234));
    let mut answers: Vec<u8> = (0..3).map(|_| control.wait_raw().0[0]).collect();
    answers.sort_unstable();
    assert_eq!(answers, [0, 9, 10]);
}

#[test]
fn functions_beyond_the_bound_wait_in_order() {
    let client = Client::new(1);
    let one = entry(&ram(1 << 20));
    let mut setup = Setup::new(&map(&[(0, 0, &one)]));
    setup.limits.functions = 2;
    let mut control = client.queue(ScsiRole::Control, &setup, 0);
    (0..6).for_each(|id| control.add_raw(&tmf(0, 0, 0, id), 1));
    // Even what needs no off-path request does not overtake.
    control.add_raw(&tmf(5, 9, 0, 0), 1);
    control.kick();
    let mut under_way: VecDeque<_> = (0..2).map(|_| client.function()).collect();
    for (answered, held) in (0..6).zip([5, 4, 3, 2, 1, 0]) {
        client.channels[0].run(|| ());
        assert!(client.off_path.lock().unwrap().try_recv().is_err(), "more than two are under way");
        assert_eq!(control.count(QueueCounter::Pending), held);
        let (id, answer) = under_way.pop_front().unwrap();
        assert_eq!(id, answered);
        answer.send(Response::Ok);
        assert_eq!(control.wait_raw().0[0], Response::Ok as u8);
        if answered < 4 {
            under_way.push_back(client.function());
        }
        if answered == 4 {
            assert_eq!(control.wait_raw().0[0], Response::BadTarget as u8);
        }
    }
    assert_eq!(control.count(QueueCounter::WaitNoCommand), 5);
    assert_eq!(control.count(QueueCounter::PendingMax), 5);
}

#[test]
fn a_control_queue_that_stops_carries_out_what_it_holds() {
    let client = Client::new(1);
    let one = entry(&ram(1 << 20));
    let mut setup = Setup::new(&map(&[(0, 0, &one)]));
    setup.limits.functions = 1;
    let mut control = client.queue(ScsiRole::Control, &setup, 0);
    (0..4).for_each(|id| control.add_raw(&tmf(0, 0, 0, id), 1));
    control.kick();
    let (_, answer) = client.function();
    std::thread::scope(|scope| {
        let stopped = scope.spawn(|| {
            control.stop(Drain::SkipWaits);
            control
        });
        answer.send(Response::Ok);
        for expected in 1..4 {
            let (id, answer) = client.function();
            assert_eq!(id, expected);
            answer.send(Response::Ok);
        }
        let mut control = stopped.join().unwrap();
        (0..4).for_each(|_| assert_eq!(control.wait_raw().0[0], 0));
    });
}

#[test]
fn a_control_queue_waits_for_its_requests() {
    let client = Client::new(1);
    let one = entry(&ram(1 << 20));
    let setup = Setup::new(&map(&[(0, 0, &one)]));
    let mut control = client.queue(ScsiRole::Control, &setup, 0);
    control.add_raw(&tmf(5, 0, 0, 0), 1);
    control.kick();
    let (_, answer) = client.function();
    std::thread::scope(|scope| {
        let stopped = scope.spawn(|| {
            control.stop(Drain::SkipWaits);
            control
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!stopped.is_finished());
        answer.send(Response::Ok);
        let mut control = stopped.join().unwrap();
        assert_eq!(control.wait_raw().0[0], 0);
    });
}

#[test]
fn clause_5_6_6_3_events() {
    let client = Client::new(1);
    let setup = Setup::new(&map(&[]));
    let mut events = client.queue(ScsiRole::Event, &setup, 0);
    let one = event::reset(3, lun(7), event::Reset::Rescan);
    for _ in 0..3 {
        events.add_raw(&[], 16);
    }
    events.kick();
    let (channel, id) = (Arc::clone(&client.channels), events.id());
    let post = |event| channel[0].post_event(id, event);
    post(one);
    let (bytes, written) = events.wait_raw();
    assert_eq!((&bytes[..16], written), (&one[..], 16));
    // Three more, and two buffers: the last is lost.
    (0..3).for_each(|_| post(one));
    assert_eq!(events.wait_raw().0[..16], one);
    assert_eq!(events.wait_raw().0[..16], one);
    channel[0].run(|| ());
    assert!(events.driver.poll().unwrap().is_none());
    // The next buffer says so, without another event.
    events.add_raw(&[], 16);
    events.kick();
    assert_eq!(events.wait_raw().0[..16], event::missed(event::none()));
    events.add_raw(&[], 15);
    events.add_raw(&[], 64);
    events.kick();
    post(one);
    assert_eq!(events.wait_raw().1, 0, "too small to be of use");
    assert_eq!(events.wait_raw().0[..16], one);
    events.stop(Drain::Ordinary);
}

#[test]
fn everything_that_is_written_is_in_the_dirty_log() {
    let client = Client::new(1);
    let one = entry(&ram(1 << 20));
    let setup = Setup { log: true, ..Setup::new(&map(&[(0, 0, &one)])) };
    let mut rig = client.queue(ScsiRole::Request, &setup, 0);
    rig.ready(0, 0);
    let log = rig.log.clone().unwrap();
    let request = Request::read(0, 0, 0, 24);
    let pages = rig.next_pages(108 + request.room);
    assert!(!log.is_marked(pages[1]));
    rig.ask(&request).good();
    assert!(pages.iter().all(|at| log.is_marked(*at)));
    let page = rig.next_pages(1)[0];
    rig.ask(&Request { room: 512, ..Request::new(0, 0, &[0x12, 0, 0, 0, 36, 0]) }).good();
    assert!(log.is_marked(page));
}

#[test]
fn a_queue_moves_between_channels() {
    let client = Client::new(2);
    let one = entry(&ram(1 << 20));
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&map(&[(0, 0, &one)])), 0);
    rig.ready(0, 0);
    for turn in 0..20 {
        for lba in 0..16 {
            rig.add(&Request::write(0, 0, lba * 8, pattern(turn, 4096)));
        }
        rig.kick();
        rig.stop(Drain::Ordinary);
        rig.start((turn as usize + 1) % 2);
        (0..16).for_each(|_| drop(rig.wait().good()));
        assert_eq!(rig.ask(&Request::read(0, 0, 8, 8)).good(), pattern(turn, 4096));
    }
}
