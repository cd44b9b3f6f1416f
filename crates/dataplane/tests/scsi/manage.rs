//! Task management on a slow disk: what was aborted happened or did not, and nothing of it happens later.

use std::time::Duration;

use crate::common::scsi::{Client, NONE, on, target};
use crate::common::{Server, short_load, slow};
use partition::load::{LoadOptions, run};
use partition::scsi::control::Function;
use partition::scsi::{Command, Slot, address, cdb, response, status};
use protocol::message::VolumeSpec;

const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];

impl Client {
    /// Begins writes of one block each, to blocks from 0, with tags from 100.
    #[track_caller]
    fn begin_writes(&mut self, lun: [u8; 8], count: u32, byte: u8) -> Vec<Slot> {
        let queue = &mut self.requests[1];
        let begin = |lba| {
            let slot = queue.take().unwrap();
            queue.data(slot).write(0, &[byte; 512]);
            let (tag, cdb) = (100 + u64::from(lba), &cdb::durable_write(lba, 1));
            queue.submit(slot, &Command { lun, tag, cdb, data_out: 512, data_in: 0 }).unwrap();
            slot
        };
        let slots = (0..count).map(begin).collect();
        queue.publish().unwrap();
        slots
    }

    /// Takes what has ended by now: response and status of each.
    #[track_caller]
    fn take_ends(&mut self, slots: &[Slot], ends: &mut [Option<(u8, u8)>]) {
        let queue = &mut self.requests[1];
        while let Some(slot) = queue.poll().unwrap() {
            let reply = queue.reply(slot);
            let index = slots.iter().position(|each| *each == slot).unwrap();
            assert_eq!(ends[index].replace((reply.response, reply.status)), None);
            queue.give_back(slot);
        }
    }

    /// Waits for all of them. Those that `ended` says have ended already: their ends are to be seen before the answer to what ended
    /// them.
    #[track_caller]
    fn ends(&mut self, slots: &[Slot], ended: impl Fn(usize) -> bool) -> Vec<(u8, u8)> {
        let mut ends = vec![None; slots.len()];
        self.take_ends(slots, &mut ends);
        for (index, end) in ends.iter().enumerate() {
            assert!(end.is_some() || !ended(index), "{index} has not ended: {ends:?}");
        }
        crate::common::raw::until("the end of every command", || {
            self.take_ends(slots, &mut ends);
            ends.iter().all(Option::is_some)
        });
        ends.into_iter().flatten().collect()
    }
}

const DONE: (u8, u8) = (response::OK, status::GOOD);

fn all(_: usize) -> bool {
    true
}

fn none(_: usize) -> bool {
    false
}

#[test]
fn an_aborted_command_has_happened_or_has_not_and_never_happens_later() {
    aborted_on(slow);
    // What is out at the disk, durable before it is answered, is waited for.
    aborted_on(|spec| spec);
}

fn aborted_on(volume: fn(VolumeSpec) -> VolumeSpec) {
    let server = Server::new(2);
    server.units(1, 16, volume);
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0")])]);
    let mut client = Client::connect(&socket);
    client.attentions(LUN);
    for round in 1..40_u8 {
        let slots = client.begin_writes(LUN, 8, round);
        let function = if round % 2 == 0 { Function::AbortTask } else { Function::AbortTaskSet };
        assert_eq!(client.manage(function, LUN, 103), response::OK);
        let after = server.in_file(0);
        let ends = client.ends(&slots, |index| function == Function::AbortTaskSet || index == 3);
        for (index, (end, byte)) in ends.iter().zip(&after).enumerate() {
            let concerned = function == Function::AbortTaskSet || index == 3;
            match *end {
                DONE => assert!(*byte == round || !concerned, "{end:?} {after:?}"),
                (response::ABORTED, _) => assert!(concerned, "{index} was not to be aborted"),
                other => panic!("{other:?}"),
            }
        }
        let last = server.in_file(0);
        let ended: Vec<_> = if round % 2 == 0 { vec![3] } else { (0..8).collect() };
        for index in ended {
            assert_eq!(last[index], after[index], "round {round}: {index} was written later");
        }
    }
    assert_eq!(client.manage(Function::AbortTask, LUN, 9999), response::OK, "nothing to abort");
}

#[test]
fn queries_say_what_there_is() {
    let server = Server::new(2);
    server.units(1, 16, |spec| {
        let delay = protocol::message::DelaySpec {
            min_us: 300_000,
            max_us: 400_000,
            seed: 1,
            ..Default::default()
        };
        protocol::message::VolumeSpec { delay: Some(delay), ..spec }
    });
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0")])]);
    let mut client = Client::connect(&socket);
    client.attentions(LUN);
    assert_eq!(client.manage(Function::QueryTaskSet, LUN, 0), response::OK);
    let slots = client.begin_writes(LUN, 2, 1);
    assert_eq!(client.manage(Function::QueryTask, LUN, 101), response::FUNCTION_SUCCEEDED);
    assert_eq!(client.manage(Function::QueryTaskSet, LUN, 0), response::FUNCTION_SUCCEEDED);
    assert_eq!(client.manage(Function::QueryTask, LUN, 7), response::OK);
    assert_eq!(client.ends(&slots, none), [DONE, DONE]);
    assert_eq!(client.manage(Function::QueryTask, LUN, 101), response::OK);
    assert_eq!(client.manage(Function::QueryTask, address(0, 5), 101), response::INCORRECT_LUN);
    assert_eq!(client.manage(Function::QueryTask, address(5, 0), 101), response::BAD_TARGET);
    assert_eq!(client.manage(Function::ClearAca, LUN, 0), response::FUNCTION_REJECTED);
}

#[test]
fn a_reset_ends_everybodys_commands_and_everybody_is_told() {
    let server = Server::new(2);
    server.units(2, 16, slow);
    let luns = [(0, "lu0"), (1, "lu1")];
    let sockets = [0, 1].map(|number| server.put_scsi(number, vec![target(0, &luns)]));
    let [mut one, mut two] = sockets.map(|socket| Client::connect(&socket));
    for lun in [LUN, address(0, 1)] {
        one.attentions(lun);
        two.attentions(lun);
    }
    let (mine, theirs) = (one.begin_writes(LUN, 6, 1), two.begin_writes(LUN, 6, 2));
    let elsewhere = two.begin_writes(address(0, 1), 6, 3);
    assert_eq!(one.manage(Function::LogicalUnitReset, LUN, 0), response::OK);
    let both: Vec<Slot> = theirs.iter().chain(&elsewhere).copied().collect();
    let ends = two.ends(&both, |index| index < 6);
    assert!(ends[..6].iter().all(|end| *end == DONE || end.0 == response::RESET), "{ends:?}");
    assert!(ends[6..].iter().all(|end| *end == DONE), "another unit: {ends:?}");
    let ends = one.ends(&mine, all);
    assert!(ends.iter().all(|end| *end == DONE || end.0 == response::RESET), "{ends:?}");
    assert_eq!((one.attentions(LUN), two.attentions(LUN)), (vec![0x2903], vec![0x2903]));
    assert_eq!(two.attentions(address(0, 1)), NONE);
}

#[test]
fn a_cleared_task_set_is_told_to_those_who_lost_commands() {
    let server = Server::new(2);
    server.units(1, 16, slow);
    let sockets = [0, 1, 2].map(|number| server.put_scsi(number, vec![target(0, &[(0, "lu0")])]));
    let [mut one, mut two, mut idle] = sockets.map(|socket| Client::connect(&socket));
    for client in [&mut one, &mut two, &mut idle] {
        client.attentions(LUN);
    }
    let (mine, theirs) = (one.begin_writes(LUN, 4, 1), two.begin_writes(LUN, 8, 2));
    assert_eq!(one.manage(Function::ClearTaskSet, LUN, 0), response::OK);
    let ends = two.ends(&theirs, all);
    let aborted = ends.iter().filter(|end| **end == (response::OK, status::TASK_ABORTED)).count();
    assert_eq!(ends.iter().filter(|end| **end == DONE).count() + aborted, 8, "{ends:?}");
    assert!(aborted > 0, "nothing was cleared: {ends:?}");
    assert_eq!(two.attentions(LUN), NONE, "TASK ABORTED has said it");
    assert_eq!((one.attentions(LUN), idle.attentions(LUN)), (vec![], vec![]));
    assert!(one.ends(&mine, all).iter().all(|end| *end == DONE || end.0 == response::ABORTED));
}

#[test]
fn an_i_t_nexus_reset_ends_one_clients_commands_at_every_unit() {
    let server = Server::new(2);
    server.units(2, 16, slow);
    let luns = [(0, "lu0"), (1, "lu1")];
    let sockets = [0, 1].map(|number| server.put_scsi(number, vec![target(0, &luns)]));
    let [mut one, mut two] = sockets.map(|socket| Client::connect(&socket));
    for lun in [LUN, address(0, 1)] {
        one.attentions(lun);
        two.attentions(lun);
    }
    let first = one.begin_writes(LUN, 4, 1);
    let second = one.begin_writes(address(0, 1), 4, 1);
    let theirs = two.begin_writes(LUN, 4, 2);
    assert_eq!(one.manage(Function::NexusReset, LUN, 0), response::OK);
    let both: Vec<Slot> = first.iter().chain(&second).copied().collect();
    let ends = one.ends(&both, all);
    assert!(ends.iter().all(|end| *end == DONE || end.0 == response::RESET), "{ends:?}");
    assert_eq!((one.attentions(LUN), one.attentions(address(0, 1))), (vec![0x2907], vec![0x2907]));
    assert!(two.ends(&theirs, none).iter().all(|end| *end == DONE));
    assert_eq!(two.attentions(LUN), NONE);
}

#[test]
fn resets_under_a_verified_load_lose_nothing() {
    let server = Server::new(2);
    server.units(1, 32, slow);
    let sockets = [0, 1].map(|number| server.put_scsi(number, vec![target(0, &[(0, "lu0")])]));
    let mut other = Client::connect(&sockets[1]);
    let mut resets = 0;
    let options = LoadOptions { duration: Duration::from_secs(3), queues: 4, ..short_load() };
    let report = run(&sockets[0], &on(0, 0, options), &mut |_| {
        let function = match resets % 2 {
            0 => Function::LogicalUnitReset,
            _ => Function::ClearTaskSet,
        };
        assert_eq!(other.manage(function, LUN, 0), response::OK);
        resets += 1;
    })
    .unwrap();
    assert_eq!(report.failures, []);
    assert!(resets >= 5 && report.client.sent_again > 0, "{resets} resets, {:?}", report.client);
}
