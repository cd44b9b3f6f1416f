//! A client that does not keep to the rules: its requests are answered or its adapter breaks, and nobody else notices.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::scsi::{Client, PATIENCE, on, target};
use crate::common::{Ends, Server, load, short_load};
use memory::random::Random;
use partition::load::LoadOptions;
use partition::scsi::control::Function;
use partition::scsi::{Command, address, cdb, response};
use protocol::message::AdapterState;

const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];

#[test]
fn addresses_that_are_none_have_no_target() {
    let server = Server::new(1);
    let socket = server.with_units(1, 16);
    let mut client = Client::connect(&socket);
    client.attentions(LUN);
    for bad in [[0; 8], [2, 0, 0x40, 0, 0, 0, 0, 0], [1, 0, 0xc0, 0, 0, 0, 0, 0], [0xff; 8]] {
        let reply = client.send(bad, &cdb::TEST_UNIT_READY, &[], 0);
        assert!(!reply.good() && reply.response != response::FAILURE, "{bad:x?}: {reply:?}");
    }
    let well_known = client.send([0xc1, 1, 0, 0, 0, 0, 0, 0], &cdb::report_luns(64), &[], 64);
    assert_ne!(well_known.response, response::FAILURE, "{well_known:?}");
    assert!(client.past_attentions(LUN, &cdb::TEST_UNIT_READY, &[], 0).good());
}

#[test]
fn random_commands_are_all_answered() {
    let server = Server::new(2);
    let socket = server.with_units(2, 16);
    let witness = server.put_scsi(1, vec![target(0, &[(0, "lu0"), (1, "lu1")])]);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // What the other does to the unit (write, reserve, reset) may fail its commands, and never lose one.
            let mut client = Client::connect(&witness);
            while !ended.load(Ordering::Acquire) {
                client.send(LUN, cdb::Transfer::new(false, 5, 1).cdb(), &[], 512);
            }
        });
        let _ends = Ends(&ended);
        let mut client = Client::with(&socket, 2, 32, |_| ());
        let mut rng = Random::new(5);
        for _ in 0..20_000 {
            let mut cdb = [0; 32];
            cdb.iter_mut().for_each(|byte| *byte = rng.next() as u8);
            if rng.below(2) == 0 {
                // Small numbers get further.
                cdb[1..].iter_mut().for_each(|byte| *byte &= 1 << (*byte % 8));
            }
            let known = [
                0x00, 0x12, 0x28, 0x2a, 0x35, 0x41, 0x42, 0x5e, 0x5f, 0x88, 0x89, 0x8a, 0x93, 0x9e,
                0xa0, 0xa3,
            ];
            cdb[0] = known[rng.below(known.len() as u64) as usize];
            let lun = address(0, rng.below(3) as u16);
            let (out, data_in) = (rng.below(4096) as u32, rng.below(4096) as u32);
            let queue = &mut client.requests[rng.below(2) as usize];
            if let Some(slot) = queue.take() {
                let command = Command { lun, tag: rng.below(8), cdb: &cdb, data_out: out, data_in };
                queue.submit(slot, &command).unwrap();
                queue.publish().unwrap();
            }
            if rng.below(64) == 0 {
                let function = if rng.below(2) == 0 {
                    Function::AbortTask
                } else {
                    Function::LogicalUnitReset
                };
                client.manage(function, lun, rng.below(8));
            }
            for queue in &mut client.requests {
                while let Some(slot) = queue.poll().unwrap() {
                    queue.give_back(slot);
                }
            }
        }
        crate::common::raw::until("all is answered", || {
            client.requests.iter_mut().all(|queue| {
                while let Some(slot) = queue.poll().unwrap() {
                    queue.give_back(slot);
                }
                queue.busy() == 0
            })
        });
    });
    assert_eq!(server.adapter_named("vfchost1").reason, None);
}

#[test]
fn control_requests_of_any_form_are_answered_or_break_their_own_adapter_only() {
    let server = Server::new(2);
    let socket = server.with_units(1, 16);
    let other = server.put_scsi(1, vec![target(0, &[(0, "lu0")])]);
    let mut rng = Random::new(9);
    let mut broken = 0;
    for round in 0..60 {
        let mut client = Client::connect(&socket);
        client.attentions(LUN);
        let (len, room) = (rng.below(65) as usize, rng.below(65) as u32);
        let bytes: Vec<u8> = (0..len).map(|_| (rng.next() as u8) & 7).collect();
        if bytes.is_empty() && room == 0 {
            continue;
        }
        client.control.submit(&bytes, room).unwrap();
        crate::common::raw::until("an answer, or the end of the adapter", || {
            let answered = client.control.poll().unwrap().is_some();
            let over = server.adapter_named("vfchost0").state == AdapterState::Broken;
            broken += u32::from(over && !answered);
            answered || over
        });
        if round % 20 == 0 {
            load(
                &other,
                &on(0, 0, LoadOptions { duration: Duration::from_millis(100), ..short_load() }),
            );
        }
        drop(client);
        server.settled_named("vfchost0");
    }
    assert_eq!(server.adapter_named("vfchost1").reason, None, "{broken} broke");
}

#[test]
fn a_client_that_leaves_with_everything_under_way_leaves_nothing_behind() {
    let server = Server::new(2);
    server.units(1, 16, crate::common::slow);
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0")])]);
    for round in 0..10 {
        let mut client = Client::connect(&socket);
        client.attentions(LUN);
        for (queue, lba) in [(0, 0), (1, 64)] {
            let queue = &mut client.requests[queue];
            while let Some(slot) = queue.take() {
                let (cdb, data_out) = match slot.0 % 3 {
                    0 => (cdb::compare_and_write(lba, 1).to_vec(), 1024),
                    1 => (cdb::Transfer::new(true, lba, 8).cdb().to_vec(), 4096),
                    _ => (cdb::reserve_out(6, 0).to_vec(), 24),
                };
                let command = Command { lun: LUN, tag: 1, cdb: &cdb, data_out, data_in: 0 };
                queue.submit(slot, &command).unwrap();
            }
            queue.publish().unwrap();
        }
        client.control.begin(Function::LogicalUnitReset, LUN, 0).unwrap();
        client.control.begin(Function::AbortTask, LUN, 1).unwrap();
        if round % 2 == 0 {
            client.session.stop().unwrap();
        }
        drop(client);
        server.settled();
    }
    let mut client = Client::connect(&socket);
    client.attentions(LUN);
    assert!(client.write(LUN, 0, 1).good());
    assert_eq!(client.manage(Function::QueryTaskSet, LUN, 0), response::OK);
    let event = client.events.next_within(Duration::from_millis(50));
    assert!(event.is_err(), "{event:?} within {PATIENCE:?}");
}
