//! The link of an adapter goes down and comes back: what waits is neither lost nor done twice, and what fails says that the way is gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::process::Process;
use crate::common::scsi::{
    Client, NONE, PATIENCE, adapter, file, in_event, linked, on, target, unit,
};
use crate::common::{Ends, Server, load, short_load, slow};
use partition::load::{LoadOptions, Report};
use partition::scsi::control::{Function, event};
use partition::scsi::{Command, Slot, address, cdb, response};
use protocol::message::{AdapterSpec, DeviceSpec, LinkSpec, Request};
use protocol::stats::QueueCounter;

/// Nobody waits so long in a test.
const LONG: LinkSpec = LinkSpec::Down { hold_ms: 300_000 };
/// It is over at once.
const SHORT: LinkSpec = LinkSpec::Down { hold_ms: 0 };

impl Server {
    #[track_caller]
    fn link(&self, port: Option<&str>, link: LinkSpec) {
        self.must(Request::PutAdapter(linked(self.dir.path(), port, link)));
    }

    fn linked(&self) -> std::path::PathBuf {
        self.units(1, 16, |spec| spec);
        self.link(Some("fcs0"), LinkSpec::Up);
        linked(self.dir.path(), None, LONG).socket
    }
}

impl Client {
    #[track_caller]
    fn begin_write(&mut self, lba: u32, byte: u8) -> Slot {
        let queue = &mut self.requests[0];
        let slot = queue.take().unwrap();
        queue.data(slot).write(0, &[byte; 512]);
        let (tag, cdb) = (100 + u64::from(lba), &cdb::durable_write(lba, 1));
        let lun = address(0, 0);
        queue.submit(slot, &Command { lun, tag, cdb, data_out: 512, data_in: 0 }).unwrap();
        queue.publish().unwrap();
        slot
    }

    /// Its end, when it is there: the response.
    #[track_caller]
    fn end_of(&mut self, slot: Slot) -> u8 {
        let (ended, response) = self.next_end();
        assert_eq!(ended, slot);
        response
    }

    #[track_caller]
    fn next_end(&mut self) -> (Slot, u8) {
        let queue = &mut self.requests[0];
        let mut ended = None;
        crate::common::raw::until("the end of the command", || {
            ended = queue.poll().unwrap();
            ended.is_some()
        });
        let slot = ended.unwrap();
        let response = queue.reply(slot).response;
        queue.give_back(slot);
        (slot, response)
    }

    #[track_caller]
    fn assert_waits(&mut self) {
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(self.requests[0].poll().unwrap(), None, "it was to wait for the link");
    }
}

/// A load whose every command has to succeed, while `changing` changes the link.
#[track_caller]
fn under_load(
    socket: &std::path::Path,
    options: LoadOptions,
    changing: impl FnOnce(&AtomicBool) + Send,
) -> Report {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let changes = scope.spawn(|| changing(&ended));
        let ends = Ends(&ended);
        let report = load(socket, &on(0, 0, options));
        drop(ends);
        changes.join().unwrap();
        report
    })
}

#[test]
fn a_client_does_not_notice_short_interruptions_and_no_write_is_lost_or_doubled() {
    let server = Server::new(2);
    let socket = server.linked();
    let mut changes = 0;
    let options = LoadOptions { depth: 8, ..short_load() };
    let report = under_load(&socket, options, |ended| {
        while !ended.load(Ordering::Relaxed) {
            for (port, link) in [(None, LONG), (Some("fcs0"), LONG), (Some("fcs1"), LinkSpec::Up)] {
                server.link(port, link);
                std::thread::sleep(Duration::from_millis(7));
            }
            // Mapped elsewhere at once.
            server.link(Some("fcs0"), LinkSpec::Up);
            changes += 4;
        }
        server.link(Some("fcs0"), LinkSpec::Up);
    });
    assert!(changes >= 8, "{changes}: {report:?}");
    let mut client = Client::connect(&socket);
    client.attentions(address(0, 0));
    assert_eq!(client.events.poll().unwrap(), None);
}

/// What was taken before the link went down has begun, though it waits for an element: neither another port, nor a move of its queue, nor other
/// bounds fail it.
#[test]
fn what_waits_for_an_element_ends_as_what_has_begun() {
    let server = Server::new(2);
    server.units(1, 1024, |spec| crate::common::slow_by(spec, 1_000));
    let put = |port, link, channels, num_local_cmds| {
        let mut spec = AdapterSpec { channels, ..linked(server.dir.path(), port, link) };
        let DeviceSpec::Scsi(scsi) = &mut spec.device else { panic!("it is a SCSI adapter") };
        scsi.commands.num_cmd_elems = 20;
        scsi.commands.num_local_cmds = num_local_cmds;
        server.must(Request::PutAdapter(spec));
    };
    put(Some("fcs0"), LinkSpec::Up, 0, 5);
    let socket = linked(server.dir.path(), None, LONG).socket;
    let options = LoadOptions { depth: 64, queues: 2, ..short_load() };
    let mut changes = 0;
    let report = under_load(&socket, options, |ended| {
        while !ended.load(Ordering::Relaxed) {
            for (port, link, channels, local) in [
                // Down and moved, then elsewhere.
                (Some("fcs0"), LONG, 0, 5),
                (Some("fcs0"), LONG, 1, 5),
                (Some("fcs0"), LONG, 2, 5),
                (Some("fcs1"), LinkSpec::Up, 0, 5),
                // Elsewhere at once.
                (Some("fcs0"), LinkSpec::Up, 0, 5),
                // Down, and other bounds.
                (Some("fcs0"), LONG, 0, 5),
                (Some("fcs0"), LONG, 0, 6),
                (Some("fcs0"), LinkSpec::Up, 0, 5),
                // Nowhere.
                (None, LONG, 0, 5),
                (Some("fcs0"), LinkSpec::Up, 0, 5),
            ] {
                put(port, link, channels, local);
                let pause = if link == LinkSpec::Up { 20 } else { 1 };
                std::thread::sleep(Duration::from_millis(pause));
                changes += 1;
            }
        }
        put(Some("fcs0"), LinkSpec::Up, 0, 5);
    });
    assert!(changes >= 10, "{changes}: {report:?}");
    assert!(server.count(QueueCounter::WaitNoCommand) > 0, "{report:?}");
}

#[test]
fn what_waits_is_done_when_the_link_is_back_and_what_had_begun_ends_without_it() {
    let server = Server::new(1);
    server.units(1, 16, slow);
    server.link(Some("fcs0"), LinkSpec::Up);
    let mut client = Client::connect(&linked(server.dir.path(), None, LONG).socket);
    client.attentions(address(0, 0));
    for port in [Some("fcs0"), None] {
        let received = server.count(QueueCounter::CommandsReceived);
        let begun = client.begin_write(0, 1);
        crate::common::raw::until("the write to begin", || {
            server.count(QueueCounter::CommandsReceived) > received
        });
        server.link(port, LONG);
        assert_eq!(client.end_of(begun), response::OK, "what has begun ends");
        let waits = client.begin_write(1, 7);
        client.assert_waits();
        assert_eq!(server.in_file(0)[..2], [1, 0]);
        server.link(Some("fcs0"), LinkSpec::Up);
        assert_eq!(client.end_of(waits), response::OK);
        assert_eq!(server.in_file(0)[1], 7);
        assert!(client.write(address(0, 0), 1, 0).good());
        assert_eq!(client.attentions(address(0, 0)), NONE, "it is the same login");
        assert_eq!(client.events.poll().unwrap(), None, "and the same LUN");
    }
}

#[test]
fn after_the_time_commands_fail_at_once_until_the_link_is_back() {
    let server = Server::new(1);
    let socket = server.linked();
    let mut client = Client::connect(&socket);
    let lun = address(0, 0);
    client.attentions(lun);
    server.link(None, LinkSpec::Down { hold_ms: 100 });
    let slot = client.begin_write(0, 1);
    assert_eq!(client.end_of(slot), response::TRANSPORT_FAILURE);
    assert_eq!(server.in_file(0)[0], 0);
    for elsewhere in [lun, address(0, 9), address(9, 0)] {
        let reply = client.send(elsewhere, &cdb::TEST_UNIT_READY, &[], 0);
        assert_eq!(reply.response, response::TRANSPORT_FAILURE);
    }
    server.link(Some("fcs0"), LinkSpec::Up);
    assert!(client.write(lun, 0, 3).good());
    assert_eq!(server.in_file(0)[0], 3);
    let told = client.events.next_within(PATIENCE).unwrap();
    assert_eq!((told.lun, told.reason), (in_event(0, 0), event::RESCAN), "it may look again");
    // Without any time.
    server.link(Some("fcs0"), SHORT);
    assert_eq!(
        client.send(lun, &cdb::TEST_UNIT_READY, &[], 0).response,
        response::TRANSPORT_FAILURE
    );
}

#[test]
fn what_is_gone_when_the_link_is_back_is_told() {
    let server = Server::new(1);
    let socket = server.linked();
    let mut client = Client::connect(&socket);
    client.attentions(address(0, 0));
    server.link(None, LONG);
    let waits = client.begin_write(0, 1);
    // Nobody has it any more, so that it can go.
    server.must(Request::RemoveUnit { name: "lu0".into() });
    server.must(Request::RemoveVolume { name: "v0".into(), forget: false });
    client.assert_waits();
    assert_eq!(client.events.poll().unwrap(), None);
    server.must(Request::PutAdapter(adapter(server.dir.path(), 0, vec![])));
    assert_eq!(client.end_of(waits), response::BAD_TARGET);
    let gone = client.events.next_within(PATIENCE).unwrap();
    assert_eq!((gone.lun, gone.reason), (in_event(0, 0), event::REMOVED));
}

#[test]
fn what_waits_can_be_aborted_and_the_rest_goes_on_waiting() {
    let server = Server::new(2);
    let socket = server.linked();
    let mut client = Client::connect(&socket);
    let lun = address(0, 0);
    client.attentions(lun);
    for port in [Some("fcs0"), None] {
        server.link(port, LONG);
        let aborted = client.begin_write(0, 9);
        let reset = client.begin_write(1, 9);
        assert_eq!(client.manage(Function::AbortTask, lun, 100), response::OK);
        assert_eq!(client.end_of(aborted), response::ABORTED);
        client.assert_waits();
        assert_eq!(client.manage(Function::LogicalUnitReset, lun, 0), response::OK);
        assert_eq!(client.end_of(reset), response::RESET);
        // One that was looked at with the others, and goes on waiting.
        let later = client.begin_write(2, 5);
        assert_eq!(client.manage(Function::AbortTask, lun, 100), response::OK);
        client.assert_waits();
        server.link(port, LONG);
        client.assert_waits();
        server.link(Some("fcs0"), LinkSpec::Up);
        assert_eq!(client.end_of(later), response::OK);
        assert_eq!(server.in_file(0)[..2], [0, 0]);
        client.attentions(lun);
    }
}

/// To look for a command that is to be aborted, a queue takes all that is in its ring. What it took so has not begun, and waits as the
/// rest does, whatever the queue has to stop for.
#[test]
fn what_a_function_had_taken_goes_on_waiting_when_its_queue_stops() {
    let server = Server::new(2);
    let socket = server.linked();
    let mut client = Client::connect(&socket);
    let lun = address(0, 0);
    client.attentions(lun);
    let put = |port, link, channels, num_local_cmds| {
        let mut spec = AdapterSpec { channels, ..linked(server.dir.path(), port, link) };
        let DeviceSpec::Scsi(scsi) = &mut spec.device else { panic!("it is a SCSI adapter") };
        scsi.commands.num_local_cmds = num_local_cmds;
        server.must(Request::PutAdapter(spec));
    };
    for (round, (port, channels, local)) in (1..).zip([
        // Moved, with other bounds, elsewhere, nowhere.
        (Some("fcs0"), 1, 5),
        (Some("fcs0"), 0, 6),
        (Some("fcs1"), 0, 5),
        (None, 0, 5),
    ]) {
        put(Some("fcs0"), LONG, 0, 5);
        let looked_at = client.begin_write(2, round);
        assert_eq!(client.manage(Function::AbortTask, lun, 100), response::OK);
        let untouched = client.begin_write(3, round);
        put(port, LONG, channels, local);
        client.assert_waits();
        // What came before the stop is found after it, too.
        let aborted = client.begin_write(4, round);
        assert_eq!(client.manage(Function::AbortTask, lun, 104), response::OK);
        assert_eq!(client.end_of(aborted), response::ABORTED);
        put(port, LONG, 2, local);
        client.assert_waits();
        put(Some("fcs0"), LinkSpec::Up, 0, 5);
        // The disk has both at once.
        let mut ends = [client.next_end(), client.next_end()];
        ends.sort_unstable_by_key(|(slot, _)| *slot != looked_at);
        let both = [looked_at, untouched].map(|slot| (slot, response::OK));
        assert_eq!(ends, both, "round {round}");
        assert_eq!(server.in_file(0)[2..5], [round, round, 0]);
    }
}

#[test]
fn a_client_leaves_while_its_commands_wait_and_the_next_one_waits_too() {
    let server = Server::new(2);
    let socket = server.linked();
    let mut client = Client::connect(&socket);
    client.attentions(address(0, 0));
    server.link(None, LONG);
    client.begin_write(0, 9);
    client.assert_waits();
    drop(client);
    server.settled();
    let mut client = Client::connect(&socket);
    let slot = client.begin_write(1, 4);
    client.assert_waits();
    server.link(Some("fcs0"), LinkSpec::Up);
    // A new client has a unit attention at first.
    assert_eq!(client.end_of(slot), response::OK);
    assert!(client.write(address(0, 0), 1, 4).good());
    assert_eq!(
        server.in_file(0)[..2],
        [0, 4],
        "what the first one left in its ring is gone with it"
    );
}

#[test]
fn queues_move_while_their_commands_wait() {
    let server = Server::new(2);
    let socket = server.linked();
    let mut client = Client::connect(&socket);
    client.attentions(address(0, 0));
    server.link(Some("fcs0"), LONG);
    let slot = client.begin_write(0, 6);
    for channels in [1, 2, 1, 0] {
        server.must(Request::PutAdapter(AdapterSpec {
            channels,
            ..linked(server.dir.path(), Some("fcs0"), LONG)
        }));
    }
    client.assert_waits();
    server.link(Some("fcs0"), LinkSpec::Up);
    assert_eq!(client.end_of(slot), response::OK);
    assert_eq!(server.in_file(0)[0], 6);
}

#[test]
fn a_data_plane_dies_while_commands_wait() {
    let folder = tempfile::tempdir().unwrap();
    let units =
        [Request::PutVolume(file(folder.path(), "v0", 16)), Request::PutUnit(unit("lu0", "v0"))];
    let linked = |port: Option<&str>, link| {
        let targets = port.map(|_| target(0, &[(0, "lu0")]));
        let mut spec = adapter(folder.path(), 0, targets.into_iter().collect());
        let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
        scsi.link = link;
        Request::PutAdapter(spec)
    };
    let with = |adapter: Request| [units.to_vec(), vec![adapter]].concat();
    let mut process = Process::start(folder.path(), &with(linked(Some("fcs0"), LinkSpec::Up)));
    let mut client = Client::connect(&folder.path().join("vfchost0.sock"));
    client.attentions(address(0, 0));
    process.must(&linked(None, LONG));
    let held = client.begin_write(0, 8);
    // It has taken one of them, to look at it.
    assert_eq!(client.manage(Function::AbortTask, address(0, 0), 9999), response::OK);
    let in_ring = client.begin_write(1, 8);
    client.assert_waits();
    process.kill();
    let mut process = Process::start(folder.path(), &with(linked(None, LONG)));
    client.session.reconnect(PATIENCE).unwrap();
    client.assert_waits();
    process.must(&linked(Some("fcs0"), LinkSpec::Up));
    let mut ends = Vec::new();
    crate::common::raw::until("both ends", || {
        let queue = &mut client.requests[0];
        while let Some(slot) = queue.poll().unwrap() {
            let reply = queue.reply(slot);
            assert_eq!(reply.response, response::OK, "{reply:?}");
            ends.push(slot);
            queue.give_back(slot);
        }
        ends.len() == 2
    });
    assert!(ends.contains(&held) && ends.contains(&in_ring), "each once: {ends:?}");
    for lba in [0, 1] {
        assert!(client.write(address(0, 0), lba, 8).good());
    }
}
