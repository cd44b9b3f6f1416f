//! Masks change while clients are at work: what stays is not disturbed, what goes is gone, and each client is told of its own changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::scsi::{Client, NONE, PATIENCE, adapter, file, in_event, on, target, unit};
use crate::common::{Ends, Server, load, short_load, slow, slow_by};
use partition::load::{LoadOptions, run};
use partition::scsi::control::event;
use partition::scsi::{address, cdb, feature, response};
use protocol::message::{Reply, Request, TargetSpec, UnitSpec};
use protocol::stats::QueueCounter;

impl Server {
    #[track_caller]
    fn show(&self, number: u64, targets: Vec<TargetSpec>) {
        self.must(Request::PutAdapter(adapter(self.dir.path(), number, targets)));
    }
}

#[test]
fn what_comes_and_goes_is_told_by_events_and_by_attentions() {
    let server = Server::new(2);
    server.units(3, 16, |spec| spec);
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0"), (1, "lu1")])]);
    let other = server.put_scsi(1, vec![target(0, &[(0, "lu0"), (1, "lu1")])]);
    let (mut client, mut bystander) = (Client::connect(&socket), Client::connect(&other));
    let (lun0, lun1, lun2) = (address(0, 0), address(0, 1), address(0, 2));
    for lun in [lun0, lun1] {
        client.attentions(lun);
        bystander.attentions(lun);
    }
    // LUN 2 comes.
    server.show(0, vec![target(0, &[(0, "lu0"), (1, "lu1"), (2, "lu2")])]);
    let told = client.events.next_within(PATIENCE).unwrap();
    assert_eq!(
        (told.event, told.lun, told.reason),
        (event::TRANSPORT_RESET, in_event(0, 2), event::RESCAN)
    );
    assert_eq!(client.attentions(lun0), [0x3f0e]);
    assert_eq!(client.attentions(lun2), [0x2900]);
    assert_eq!(client.report_luns(0), [0, 1, 2]);
    // LUN 1 goes, and at another target there is one.
    server.show(0, vec![target(0, &[(0, "lu0"), (2, "lu2")]), target(7, &[(0, "lu1")])]);
    let gone = client.events.next_within(PATIENCE).unwrap();
    assert_eq!(
        (gone.event, gone.lun, gone.reason),
        (event::TRANSPORT_RESET, in_event(0, 1), event::REMOVED)
    );
    let come = client.events.next_within(PATIENCE).unwrap();
    assert_eq!((come.lun, come.reason), (in_event(7, 0), event::RESCAN));
    let reply = client.past_attentions(lun1, &cdb::TEST_UNIT_READY, &[], 0);
    assert_eq!(reply.sense_code(), Some((5, 0x2500)), "LOGICAL UNIT NOT SUPPORTED");
    assert_eq!(client.report_luns(7), [0]);
    // Another unit behind a number is another LUN.
    server.show(0, vec![target(0, &[(0, "lu0"), (2, "lu1")])]);
    let events: Vec<_> = (0..3).map(|_| client.events.next_within(PATIENCE).unwrap()).collect();
    let reasons: Vec<_> = events.iter().map(|event| (event.lun, event.reason)).collect();
    let (removed, rescan) = (event::REMOVED, event::RESCAN);
    let (second, far) = (in_event(0, 2), in_event(7, 0));
    assert_eq!(reasons, [(second, removed), (far, removed), (second, rescan)]);
    let serial = client.must(lun2, &cdb::inquiry(Some(0x80), 255), &[], 255);
    assert_eq!(&serial[4..4 + usize::from(serial[3])], b"serial of lu1");
    // The other client saw nothing of all this.
    assert_eq!((bystander.attentions(lun0), bystander.attentions(lun1)), (vec![], vec![]));
    assert_eq!(bystander.events.poll().unwrap(), None);
    // Now the unit that nobody sees can go.
    server.must(Request::RemoveUnit { name: "lu2".into() });
}

/// Reads and writes of each LUN are timed apart, and its shortest and longest times begin again with the adapter's marks.
#[test]
fn luns_are_timed_apart() {
    use QueueCounter::{ReadDevice, ReadLongest, ReadServer, ReadShortest, Reads, TimedReads};
    use QueueCounter::{
        TimedWrites, WriteDevice, WriteLongest, WriteServer, WriteShortest, Writes,
    };
    let server = Server::new(2);
    let us = |name: &str| if name == "v0" { 1_000 } else { 15_000 };
    server.units(2, 16, |spec| slow_by(spec.clone(), us(&spec.name)));
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0"), (1, "lu1")])]);
    for lun in [0, 1] {
        load(&socket, &on(0, lun, short_load()));
    }
    let of_lun = |lun: u16, counter: QueueCounter| {
        let stats = server.stats();
        let slots = stats.luns.iter().filter(|one| one.lun == lun);
        slots.map(|one| one.counted.get(counter)).sum::<u64>()
    };
    for (lun, us) in [(0, us("v0")), (1, us("v1"))] {
        for (all, timed, parts, marks) in [
            (Reads, TimedReads, [ReadServer, ReadDevice], [ReadShortest, ReadLongest]),
            (Writes, TimedWrites, [WriteServer, WriteDevice], [WriteShortest, WriteLongest]),
        ] {
            let count = of_lun(lun, timed);
            assert!(count > 0 && count == of_lun(lun, all), "{count} of LUN {lun}");
            let ns = parts.map(|part| of_lun(lun, part)).iter().sum::<u64>();
            assert!(ns >= count * us * 1000, "{ns} ns for {count} of LUN {lun}");
            assert!(marks.iter().all(|mark| of_lun(lun, *mark) > 0), "LUN {lun}");
        }
    }
    // A LUN's times are its own: both together are the adapter's.
    for counter in [TimedReads, ReadServer, ReadDevice, TimedWrites, WriteServer, WriteDevice] {
        assert_eq!(of_lun(0, counter) + of_lun(1, counter), server.count(counter), "{counter:?}");
    }
    let marks = [ReadShortest, ReadLongest, WriteShortest, WriteLongest];
    let none = || [0, 1].iter().all(|lun| marks.iter().all(|mark| of_lun(*lun, *mark) == 0));
    // Nobody serves them now.
    server.settled();
    server.reset_marks("vfchost0");
    assert!(none());
    // A channel does.
    let mut client = Client::connect(&socket);
    for lun in [0, 1] {
        assert!(client.write(address(0, lun), 0, 1).good());
        assert!(of_lun(lun, WriteLongest) > 0);
    }
    let counted = of_lun(1, TimedWrites);
    server.reset_marks("vfchost0");
    crate::common::raw::until("the channels to reset their marks", none);
    assert_eq!(of_lun(1, TimedWrites), counted);
}

#[test]
fn a_client_without_hotplug_gets_no_events_and_one_without_buffers_learns_that_it_missed_some() {
    let server = Server::new(1);
    server.units(2, 16, |spec| spec);
    let (few, more) = (vec![target(0, &[(0, "lu0")])], vec![target(0, &[(0, "lu0"), (1, "lu1")])]);
    let socket = server.put_scsi(0, few.clone());
    let mask = |options: &mut partition::session::SessionOptions| {
        options.mask_features = feature::HOTPLUG;
    };
    let mut client = Client::with(&socket, 1, 4, mask);
    client.attentions(address(0, 0));
    server.show(0, more.clone());
    assert_eq!(client.attentions(address(0, 0)), [0x3f0e]);
    assert_eq!(client.events.poll().unwrap(), None);
    drop(client);
    server.settled();
    // Eight buffers, and eighteen events.
    let mut client = Client::connect(&socket);
    for _ in 0..9 {
        server.show(0, few.clone());
        server.show(0, more.clone());
    }
    let mut seen = Vec::new();
    crate::common::raw::until("eight events", || {
        seen.extend(client.events.poll().unwrap());
        seen.len() == 8
    });
    assert!(seen.iter().all(|event| event.event & event::MISSED == 0), "{seen:?}");
    client.events.offer(2).unwrap();
    server.show(0, few);
    let next = client.events.next_within(PATIENCE).unwrap();
    assert_ne!(next.event & event::MISSED, 0, "{next:?}");
}

#[test]
fn masks_change_thousands_of_times_under_load() {
    let server = Server::new(2);
    server.units(4, 32, |spec| spec);
    let stays = (0, "lu0");
    let tables = [
        vec![target(0, &[stays])],
        vec![target(0, &[stays, (1, "lu1")])],
        vec![target(0, &[stays, (1, "lu2"), (9, "lu1")]), target(2, &[(0, "lu3")])],
        vec![target(0, &[stays, (1, "lu2")]), target(2, &[(0, "lu3"), (300, "lu1")])],
    ];
    let socket = server.put_scsi(0, tables[0].clone());
    let ended = AtomicBool::new(false);
    let changes = std::thread::scope(|scope| {
        let changing = scope.spawn(|| {
            let mut changes = 0;
            while !ended.load(Ordering::Acquire) {
                server.show(0, tables[changes * 7 % 4].clone());
                changes += 1;
            }
            changes
        });
        let options = LoadOptions { duration: Duration::from_secs(3), queues: 4, ..short_load() };
        let ends = Ends(&ended);
        let report = run(&socket, &on(0, 0, options), &mut |_| ()).unwrap();
        drop(ends);
        assert_eq!(report.failures, []);
        assert!(report.operations > 1000);
        changing.join().unwrap()
    });
    assert!(changes > 500, "{changes} changes");
    server.show(0, tables[1].clone());
    load(&socket, &on(0, 1, short_load()));
}

/// Commands to a LUN that goes away end, each once, and what they wrote they wrote before the change was answered.
#[test]
fn commands_to_a_lun_that_goes_are_ended_and_never_write_later() {
    let server = Server::new(2);
    server.units(2, 16, slow);
    let (with, without) =
        (vec![target(0, &[(0, "lu0"), (1, "lu1")])], vec![target(0, &[(0, "lu0")])]);
    let socket = server.put_scsi(0, with.clone());
    for round in 1..20_u8 {
        let mut client = Client::connect(&socket);
        let lun = address(0, 1);
        client.attentions(lun);
        let queue = &mut client.requests[0];
        let mut outstanding = 0;
        for lba in 0..8 {
            let slot = queue.take().unwrap();
            queue.data(slot).write(0, &[round; 512]);
            let write = cdb::Transfer::new(true, lba, 1);
            let command = partition::scsi::Command {
                lun,
                tag: lba,
                cdb: write.cdb(),
                data_out: 512,
                data_in: 0,
            };
            queue.submit(slot, &command).unwrap();
            outstanding += 1;
        }
        queue.publish().unwrap();
        server.show(0, without.clone());
        let before = server.in_file(1);
        crate::common::raw::until("every command has ended", || {
            while let Some(slot) = queue.poll().unwrap() {
                let reply = queue.reply(slot);
                let written = before.contains(&round);
                assert!(!reply.good() || written, "{reply:?} and {before:?}");
                assert_ne!(reply.response, response::FAILURE, "{reply:?}");
                queue.give_back(slot);
                outstanding -= 1;
            }
            outstanding == 0
        });
        assert_eq!(server.in_file(1), before, "round {round}: a write came later");
        drop(client);
        server.show(0, with.clone());
    }
}

#[test]
fn a_change_that_cannot_be_made_changes_nothing() {
    let server = Server::new(1);
    server.units(1, 16, |spec| spec);
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0")])]);
    let mut client = Client::connect(&socket);
    client.attentions(address(0, 0));
    let absent = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0"), (1, "lu9")])]);
    assert!(matches!(server.ask(Request::PutAdapter(absent)), Reply::Error(_)));
    assert_eq!(client.attentions(address(0, 0)), NONE);
    assert_eq!(client.report_luns(0), [0]);
    assert_eq!(server.adapter_status().spec.scsi().unwrap().targets.len(), 1);
}

/// What a client has sent to a disk whose volume is not open yet it sends again until it is. Reservations that were kept are there then.
#[test]
fn a_disk_is_becoming_ready_until_its_volume_is_there() {
    let server = Server::new(2);
    server.units(2, 16, |spec| spec);
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0"), (1, "lu1")])]);
    let (lun, beside) = (address(0, 0), address(0, 1));
    let mut client = Client::connect(&socket);
    client.attentions(lun);
    client.register(lun, 7, true);
    drop(client);
    // As after a death, but for the second one, which is there.
    server.must(Request::RemoveAdapter { name: "vfchost0".into() });
    server.must(Request::RemoveUnit { name: "lu0".into() });
    server.must(Request::RemoveVolume { name: "v0".into(), forget: true });
    let ready = unit("lu0", "v0");
    let ready = UnitSpec { keep: Some(server.path("lu0.pr")), ..ready };
    server.must(Request::PutUnit(UnitSpec { volume: None, ..ready.clone() }));
    let status = server.status();
    let awaited = status.units.iter().find(|unit| unit.spec.name == "lu0").unwrap();
    assert_eq!((awaited.medium, awaited.bytes), (false, 0));
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0"), (1, "lu1")])]);
    let mut client = Client::connect(&socket);
    assert_eq!(client.report_luns(0), [0, 1]);
    let serial = client.must(lun, &cdb::inquiry(Some(0x80), 255), &[], 255);
    assert_eq!(&serial[4..4 + usize::from(serial[3])], b"serial of lu0");
    client.attentions(beside);
    assert!(client.write(beside, 0, 1).good());
    for reply in
        [client.past_attentions(lun, &cdb::TEST_UNIT_READY, &[], 0), client.write(lun, 0, 9)]
    {
        assert!(reply.becoming_ready(), "{reply:?}");
    }
    // The volume is there, and then the disk.
    server.must(Request::PutVolume(file(server.dir.path(), "v0", 16)));
    assert!(client.write(lun, 0, 9).becoming_ready());
    server.must(Request::PutUnit(ready));
    let told = client.events.next_within(PATIENCE).unwrap();
    assert_eq!((told.event, told.lun), (event::PARAM_CHANGE, in_event(0, 0)));
    assert_eq!(client.events.poll().unwrap(), None, "it has neither gone nor come");
    assert_eq!(client.attentions(lun), [0x2900]);
    assert_eq!(client.attentions(beside), NONE);
    assert_eq!(client.blocks(lun), 16 << 11);
    assert!(client.write(lun, 0, 9).good());
    assert_eq!(server.in_file(0)[0], 9);
    let registrations = &server.status().units[0].registrations;
    assert_eq!(registrations.iter().map(|one| one.key).collect::<Vec<_>>(), [7]);
}
