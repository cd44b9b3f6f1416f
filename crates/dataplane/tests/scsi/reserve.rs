//! Persistent reservations over two adapters: a fence holds for what comes and for what is under way.

use crate::common::scsi::{Client, WRITE_EXCLUSIVE, action, conflicts, target};
use crate::common::{Server, slow};
use partition::scsi::{Command, address, cdb, response, status};
use protocol::message::{Initiator, VolumeSpec};

const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];

fn pair(server: &Server) -> (Client, Client) {
    let sockets = [0, 1].map(|number| server.put_scsi(number, vec![target(0, &[(0, "lu0")])]));
    let [mut one, mut two] = sockets.map(|socket| Client::connect(&socket));
    one.attentions(LUN);
    two.attentions(LUN);
    (one, two)
}

#[test]
fn the_fenced_one_is_refused_until_the_fence_falls() {
    let server = Server::new(2);
    server.units(1, 16, |spec| spec);
    let (mut one, mut two) = pair(&server);
    one.register(LUN, 0x11, true);
    let reply = one.reserve(LUN, action::RESERVE, WRITE_EXCLUSIVE, (0x11, 0), true);
    assert!(reply.good(), "{reply:?}");
    assert!(conflicts(&two.write(LUN, 0, 2)));
    assert!(one.write(LUN, 0, 1).good());
    assert_eq!(two.read(LUN, 0), [1; 512], "reading is allowed to all");
    let status = server.status().units.remove(0);
    assert_eq!(status.registrations.len(), 1);
    assert_eq!((status.registrations[0].key, status.registrations[0].port), (0x11, 1));
    let held = status.reservation.unwrap();
    assert_eq!(held.kind, "Write Exclusive - Registrants Only");
    assert_eq!(held.holder, Some(Initiator::Fc { wwpn: 0xc050_7600_0000_0000 }));
    assert!(held.aptpl);
    // The other registers and takes over; now the first is out, and is told why.
    two.register(LUN, 0x22, false);
    let reply = two.reserve(LUN, action::PREEMPT, WRITE_EXCLUSIVE, (0x22, 0x11), false);
    assert!(reply.good(), "{reply:?}");
    assert_eq!(one.attentions(LUN), [0x2a05], "REGISTRATIONS PREEMPTED");
    assert!(conflicts(&one.write(LUN, 0, 1)));
    assert!(two.write(LUN, 0, 2).good());
    let reply = two.reserve(LUN, action::RELEASE, WRITE_EXCLUSIVE, (0x22, 0), false);
    assert!(reply.good(), "{reply:?}");
    assert!(one.write(LUN, 0, 3).good());
}

#[test]
fn a_fence_holds_when_the_client_is_gone_and_when_its_adapter_is() {
    use protocol::message::Request;
    let server = Server::new(2);
    server.units(1, 16, |spec| spec);
    let (mut one, mut two) = pair(&server);
    one.register(LUN, 0x11, false);
    assert!(one.reserve(LUN, action::RESERVE, WRITE_EXCLUSIVE, (0x11, 0), false).good());
    drop(one);
    server.settled_named("vfchost0");
    assert!(conflicts(&two.write(LUN, 0, 2)));
    server.must(Request::RemoveAdapter { name: "vfchost0".into() });
    assert!(conflicts(&two.write(LUN, 0, 2)));
    // Back again, it is the one that holds the reservation.
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0")])]);
    let mut one = Client::connect(&socket);
    assert!(one.write(LUN, 0, 1).good());
}

#[test]
fn what_cannot_be_kept_is_not_promised() {
    let server = Server::new(1);
    server.units(1, 16, |spec| spec);
    let (mut one, mut two) = pair(&server);
    // The draft's place is taken, so that nothing can be stored.
    std::fs::create_dir(server.path("lu0.pr~new")).unwrap();
    let reply = one.reserve(LUN, action::REGISTER_AND_IGNORE, 0, (0, 0x11), true);
    assert!(!reply.good(), "{reply:?}");
    assert!(server.status().units[0].registrations.is_empty());
    std::fs::remove_dir(server.path("lu0.pr~new")).unwrap();
    one.register(LUN, 0x11, true);
    assert!(std::fs::read(server.path("lu0.pr")).unwrap().len() > 24);
    assert!(two.write(LUN, 0, 1).good());
}

/// PREEMPT AND ABORT is answered when nothing of the victim can happen any more.
#[test]
fn preempt_and_abort_ends_the_victims_writes_for_good() {
    preempted_on(slow);
    // What is out at the disk, durable before it is answered, is waited for.
    preempted_on(|spec| spec);
}

fn preempted_on(volume: fn(VolumeSpec) -> VolumeSpec) {
    let server = Server::new(2);
    server.units(1, 16, volume);
    let (mut one, mut two) = pair(&server);
    for round in 1..30_u8 {
        one.register(LUN, 0x11, false);
        two.register(LUN, 0x22, false);
        assert!(one.reserve(LUN, action::RESERVE, WRITE_EXCLUSIVE, (0x11, 0), false).good());
        one.attentions(LUN);
        two.attentions(LUN);
        let queue = &mut one.requests[1];
        for lba in 0..8 {
            let slot = queue.take().unwrap();
            queue.data(slot).write(0, &[round; 512]);
            let (tag, cdb) = (100 + u64::from(lba), &cdb::durable_write(lba, 1));
            queue.submit(slot, &Command { lun: LUN, tag, cdb, data_out: 512, data_in: 0 }).unwrap();
        }
        queue.publish().unwrap();
        let reply =
            two.reserve(LUN, action::PREEMPT_AND_ABORT, WRITE_EXCLUSIVE, (0x22, 0x11), false);
        assert!(reply.good(), "{reply:?}");
        let before = server.in_file(0);
        let mut ended = 0;
        while let Some(slot) = queue.poll().unwrap() {
            let reply = queue.reply(slot);
            let fine = match reply.status {
                status::GOOD => before.contains(&round),
                status::TASK_ABORTED | status::RESERVATION_CONFLICT => true,
                _ => matches!(reply.sense_code(), Some((6, _))),
            };
            assert!(fine && reply.response == response::OK, "{reply:?}");
            queue.give_back(slot);
            ended += 1;
        }
        assert_eq!(ended, 8, "the fence was answered before the victim's commands had ended");
        assert_eq!(server.in_file(0), before, "round {round}: a write came after the fence");
        assert!(conflicts(&one.write(LUN, 0, 0)));
        assert!(two.reserve(LUN, action::RELEASE, WRITE_EXCLUSIVE, (0x22, 0), false).good());
    }
}

/// Everybody preempts, stores and aborts everybody at once: nobody waits for ever.
#[test]
fn clients_that_abort_each_other_while_they_store_do_not_deadlock() {
    use partition::scsi::control::Function;
    let server = Server::new(2);
    server.units(1, 16, slow);
    let sockets: Vec<_> =
        (0..3).map(|number| server.put_scsi(number, vec![target(0, &[(0, "lu0")])])).collect();
    std::thread::scope(|scope| {
        for (number, socket) in (1_u64..).zip(&sockets) {
            scope.spawn(move || {
                let mut client = Client::connect(socket);
                for round in 0..60 {
                    let list = cdb::reserve_list(0, number, true);
                    let out = cdb::reserve_out(action::REGISTER_AND_IGNORE, 0);
                    client.send(LUN, &out, &list, 0);
                    let victim = (number + round) % 3 + 1;
                    let list = cdb::reserve_list(number, victim, true);
                    let out = cdb::reserve_out(action::PREEMPT_AND_ABORT, WRITE_EXCLUSIVE);
                    client.send(LUN, &out, &list, 0);
                    client.send(LUN, cdb::Transfer::new(true, number, 1).cdb(), &[1; 512], 0);
                    let function = match round % 4 {
                        0 => Function::LogicalUnitReset,
                        1 => Function::ClearTaskSet,
                        2 => Function::AbortTaskSet,
                        _ => Function::NexusReset,
                    };
                    assert_eq!(client.manage(function, LUN, 0), response::OK);
                }
            });
        }
    });
    let mut last = Client::connect(&sockets[0]);
    last.manage(Function::LogicalUnitReset, address(0, 0), 0);
}

/// A counter that two clients raise with COMPARE AND WRITE counts every one of them.
#[test]
fn compare_and_write_from_two_adapters_is_atomic() {
    const EACH: u64 = 300;
    let server = Server::new(2);
    server.units(1, 16, |spec| spec);
    let sockets: Vec<_> =
        (0..2).map(|number| server.put_scsi(number, vec![target(0, &[(0, "lu0")])])).collect();
    let clients: Vec<_> = sockets.iter().map(|socket| Client::connect(socket)).collect();
    std::thread::scope(|scope| {
        for mut client in clients {
            scope.spawn(move || {
                let mut done = 0;
                while done < EACH {
                    let old = client.read(LUN, 7);
                    let mut new = old.clone();
                    let count = u64::from_be_bytes(old[..8].try_into().unwrap()) + 1;
                    new[..8].copy_from_slice(&count.to_be_bytes());
                    let both = [old, new].concat();
                    let reply =
                        client.past_attentions(LUN, &cdb::compare_and_write(7, 1), &both, 0);
                    match reply.sense_code() {
                        None if reply.good() => done += 1,
                        Some((0xe, 0x1d00)) => {}
                        _ => panic!("{reply:?}"),
                    }
                }
            });
        }
    });
    let mut client = Client::connect(&sockets[0]);
    let count = u64::from_be_bytes(client.read(LUN, 7)[..8].try_into().unwrap());
    assert_eq!(count, 2 * EACH);
}
