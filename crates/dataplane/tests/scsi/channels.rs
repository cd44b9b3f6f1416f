//! Queues of SCSI adapters on their channels: they move under load, share what an adapter has, and stop with a change of memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::raw::GUARD;
use crate::common::scsi::{Client, adapter, on, target, unit};
use crate::common::{Ends, Server, load, short_load};
use partition::load::{LoadOptions, run};
use partition::scsi::control::Function;
use partition::scsi::{Command, cdb, response};
use protocol::message::{DeviceSpec, Placement, PortShare, Request, VolumeSpec};
use protocol::stats::QueueCounter;

const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];

#[test]
fn queues_move_between_channels_under_a_verified_load() {
    let server = Server::new(2);
    server.units(2, 32, |spec| spec);
    let luns = [(0, "lu0"), (1, "lu1")];
    let spec = |placement, channels| {
        let spec = adapter(server.dir.path(), 0, vec![target(0, &luns)]);
        protocol::message::AdapterSpec { placement, channels, ..spec }
    };
    let socket = spec(Placement::Spread, 0).socket;
    server.must(Request::PutAdapter(spec(Placement::Spread, 0)));
    let moves_before = server.count(QueueCounter::Moves);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut channels = 0;
            while !ended.load(Ordering::Acquire) {
                channels = 1 - channels;
                server.must(Request::PutAdapter(spec(Placement::Spread, channels)));
            }
        });
        let options = LoadOptions {
            queues: 4,
            duration: Duration::from_secs(2),
            flush_every: Some(20),
            ..short_load()
        };
        let ends = Ends(&ended);
        let report = run(&socket, &on(0, 1, options), &mut |_| ()).unwrap();
        drop(ends);
        assert_eq!(report.failures, []);
    });
    assert!(server.count(QueueCounter::Moves) > moves_before + 10, "nothing moved");
    // What LUNs have counted goes along.
    let of_luns =
        |counter| -> u64 { server.stats().luns.iter().map(|lun| lun.counted.get(counter)).sum() };
    for counter in [
        QueueCounter::Reads,
        QueueCounter::ReadBytes,
        QueueCounter::Writes,
        QueueCounter::WrittenBytes,
        QueueCounter::Flushes,
    ] {
        assert_eq!(of_luns(counter), server.count(counter), "{counter:?}");
    }
    assert!(of_luns(QueueCounter::Reads) > 0);
    server.must(Request::RemoveAdapter { name: "vfchost0".to_owned() });
    assert_eq!(server.stats().luns, []);
}

/// How many channels the client's queues for I/O are on.
fn used(server: &Server) -> usize {
    let mut channels = server.adapter_status().channel_of_queue;
    channels.sort_unstable();
    channels.dedup();
    channels.len()
}

/// Reads of a disk in memory, as large as a slot: the server copies, the client does next to nothing. `full`: all slots, all the time.
fn read_on(client: &mut Client, full: bool) {
    for queue in &mut client.requests {
        while let Some(slot) = queue.poll().unwrap() {
            assert!(queue.good(slot), "{:?}", queue.reply(slot));
            queue.give_back(slot);
        }
        while (full || queue.busy() == 0)
            && let Some(slot) = queue.take()
        {
            let read = cdb::Transfer::new(false, u64::from(slot.0) * 128, 128);
            let command =
                Command { lun: LUN, tag: 1, cdb: read.cdb(), data_out: 0, data_in: 65536 };
            queue.submit(slot, &command).unwrap();
        }
        queue.publish().unwrap();
    }
    std::thread::sleep(Duration::from_micros(if full { 50 } else { 20_000 }));
}

#[test]
fn adaptive_queues_spread_under_load_and_fold_when_it_has_gone() {
    let server = Server::new(2);
    server.must(Request::PutVolume(VolumeSpec { name: "v0".into(), ..server.ram(32) }));
    server.must(Request::PutUnit(unit("lu0", "v0")));
    let mut spec = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0")])]);
    spec.placement = Placement::Adaptive;
    let socket = spec.socket.clone();
    server.must(Request::PutAdapter(spec));
    let mut client = Client::with(&socket, 2, 64, |_| ());
    client.attentions(LUN);
    assert_eq!(used(&server), 1, "they begin together");
    for (full, channels) in [(true, 2), (false, 1), (true, 2), (false, 1)] {
        let end = Instant::now() + 3 * GUARD;
        while used(&server) != channels {
            (0..10).for_each(|_| read_on(&mut client, full));
            assert!(
                Instant::now() < end,
                "not on {channels} channels: {:?}",
                server.stats().channels
            );
        }
    }
    assert!(server.count(QueueCounter::Moves) >= 4);
}

#[test]
fn commands_beyond_the_adapters_elements_wait_and_are_counted() {
    let server = Server::new(1);
    server.units(1, 32, crate::common::slow);
    let mut spec = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0")])]);
    let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
    (scsi.commands.num_cmd_elems, scsi.commands.num_local_cmds) = (16, 2);
    spec.queues = 2;
    let socket = spec.socket.clone();
    server.must(Request::PutAdapter(spec));
    let options = LoadOptions { queues: 2, depth: 32, ..short_load() };
    load(&socket, &on(0, 0, options));
    assert!(server.count(QueueCounter::WaitNoCommand) > 0);
}

/// Keeps all slots of a client busy with reads of a block, and counts by queue those that have ended.
fn read_in_all_slots(client: &mut Client, ended: &mut [u32]) {
    let read = cdb::Transfer::new(false, 0, 1);
    let command = Command { lun: LUN, tag: 1, cdb: read.cdb(), data_out: 0, data_in: 512 };
    for (queue, ended) in client.requests.iter_mut().zip(ended) {
        while let Some(slot) = queue.poll().unwrap() {
            assert!(queue.good(slot), "{:?}", queue.reply(slot));
            queue.give_back(slot);
            *ended += 1;
        }
        while let Some(slot) = queue.take() {
            queue.submit(slot, &command).unwrap();
        }
        queue.publish().unwrap();
    }
}

/// More queues have commands than there are elements: all of them are served, in turn.
#[test]
fn queues_beyond_the_elements_are_served_in_turn() {
    const QUEUES: u16 = 40;
    let server = Server::new(2);
    server.units(1, 32, |spec| crate::common::slow_by(spec, 1_000));
    let mut spec = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0")])]);
    let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
    scsi.commands.num_cmd_elems = 20;
    spec.queues = QUEUES;
    let socket = spec.socket.clone();
    server.must(Request::PutAdapter(spec));
    let mut client = Client::with(&socket, QUEUES, 4, |_| ());
    client.attentions(LUN);
    let mut ended = vec![0; usize::from(QUEUES)];
    while ended.iter().sum::<u32>() < 50 * u32::from(QUEUES) {
        read_in_all_slots(&mut client, &mut ended);
        std::thread::sleep(Duration::from_micros(100));
    }
    assert!(ended.iter().all(|count| *count >= 10), "{ended:?}");
    assert!(server.count(QueueCounter::WaitNoCommand) > 0);
}

/// One queue of a client that was offered 64: nothing is put aside for the others.
#[test]
fn one_queue_has_all_elements_of_its_adapter() {
    let server = Server::new(2);
    server.units(1, 32, crate::common::slow);
    let mut spec = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0")])]);
    let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
    (scsi.commands.num_cmd_elems, scsi.commands.num_local_cmds) = (64, 5);
    spec.queues = 64;
    let socket = spec.socket.clone();
    server.must(Request::PutAdapter(spec));
    load(&socket, &on(0, 0, LoadOptions { queues: 1, depth: 64, ..short_load() }));
    assert_eq!(server.count(QueueCounter::WaitNoCommand), 0);
}

/// More outstanding than there are elements: what has one is active, what has none is pending, and the adapter's mark is of all queues.
#[test]
fn active_and_pending_commands_are_told_apart() {
    let server = Server::new(2);
    server.units(1, 32, crate::common::slow);
    let mut spec = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0")])]);
    let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
    scsi.commands.num_cmd_elems = 20;
    let socket = spec.socket.clone();
    server.must(Request::PutAdapter(spec));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ends = Ends(&ended);
            load(&socket, &on(0, 0, LoadOptions { queues: 4, depth: 32, ..short_load() }));
        });
        while !ended.load(Ordering::Acquire) {
            for queue in server.stats().queues {
                assert!(queue.get(QueueCounter::Active) <= 20, "{queue:?}");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let stats = server.stats();
    let mark = stats.adapters.iter().find(|adapter| adapter.adapter == "vfchost0").unwrap();
    assert_eq!(mark.active_max, 20);
    assert!(mark.active_max_at_ms > 0);
    let most = |counter| stats.queues.iter().map(|queue| queue.get(counter)).max().unwrap();
    assert!(most(QueueCounter::ActiveMax) <= 20);
    assert!(most(QueueCounter::PendingMax) >= 12);
    let waited = mark.pending_max;
    assert!(waited >= most(QueueCounter::PendingMax) && waited <= 4 * 32, "{mark:?}");
    // Nothing is active, so all marks begin at nothing; counters go on.
    let before = server.count(QueueCounter::CommandsReceived);
    server.reset_marks("vfchost0");
    let stats = server.stats();
    assert_eq!((stats.adapters[0].active_max, stats.adapters[0].pending_max), (0, 0));
    for mark in [QueueCounter::ActiveMax, QueueCounter::PendingMax, QueueCounter::WaitingMax] {
        assert!(stats.queues.iter().all(|queue| queue.get(mark) == 0), "{mark:?}");
    }
    assert_eq!(server.count(QueueCounter::CommandsReceived), before);
}

#[test]
fn reads_and_writes_are_timed_apart() {
    let server = Server::new(2);
    server.units(1, 32, crate::common::slow);
    let spec = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0")])]);
    let socket = spec.socket.clone();
    server.must(Request::PutAdapter(spec));
    let times = || {
        use QueueCounter::{
            ReadDevice, ReadServer, TimedReads, TimedWrites, WriteDevice, WriteServer,
        };
        let of = |server_ns, device_ns| server.count(server_ns) + server.count(device_ns);
        let reads = (server.count(TimedReads), of(ReadServer, ReadDevice));
        (reads, (server.count(TimedWrites), of(WriteServer, WriteDevice)))
    };
    load_of(&socket, short_load());
    let (reads, writes) = times();
    assert_eq!(reads.0, server.count(QueueCounter::Reads));
    assert_eq!(writes.0, server.count(QueueCounter::Writes));
    // None took less than the volume's 1 ms.
    for (count, ns) in [reads, writes] {
        assert!(count > 0 && ns >= count * 1_000_000, "{ns} ns of {count}");
    }
    let extremes = |which: [QueueCounter; 2]| {
        let stats = server.stats();
        let values = |which| stats.queues.iter().map(move |queue| queue.get(which));
        (values(which[0]).filter(|ns| *ns > 0).min().unwrap(), values(which[1]).max().unwrap())
    };
    use QueueCounter::{ReadLongest, ReadShortest, WriteLongest, WriteShortest};
    let read = extremes([ReadShortest, ReadLongest]);
    let written = extremes([WriteShortest, WriteLongest]);
    for ((least, most), (count, ns)) in [(read, reads), (written, writes)] {
        // The mean with the volume is between them, and all of it was spent there.
        assert!(least > 0 && least <= ns / count && most >= least && most <= ns, "{least} {most}");
    }
    load_of(&socket, LoadOptions { read_percent: 0, verify: false, ..short_load() });
    let (reads_after, writes_after) = times();
    assert_eq!(reads_after.1, reads.1);
    assert!(writes_after.1 > writes.1);
    assert_eq!(extremes([ReadShortest, ReadLongest]), read);
    server.reset_marks("vfchost0");
    let none = |which| server.stats().queues.iter().all(|queue| queue.get(which) == 0);
    assert!([ReadShortest, ReadLongest, WriteShortest, WriteLongest].into_iter().all(none));
}

/// The marks of queues that run are their channels' to reset.
#[test]
fn marks_begin_again_under_load() {
    let server = Server::new(2);
    server.units(1, 32, crate::common::slow);
    let spec = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0")])]);
    let socket = spec.socket.clone();
    server.must(Request::PutAdapter(spec));
    let mark = |server: &Server| server.stats().adapters[0].active_max;
    let of_queues = |server: &Server| {
        let stats = server.stats();
        stats.queues.iter().map(|queue| queue.get(QueueCounter::ActiveMax)).max().unwrap()
    };
    let socket = &socket;
    std::thread::scope(|scope| {
        let load = |depth| LoadOptions { queues: 2, depth, ..short_load() };
        let deep = scope.spawn(move || load_of(socket, load(32)));
        deep.join().unwrap();
        assert_eq!(mark(&server), 64);
        let flat = scope.spawn(move || load_of(socket, load(2)));
        // The queues run, and have had at most what the deep load had.
        while server.count(QueueCounter::Active) == 0 && !flat.is_finished() {
            std::thread::yield_now();
        }
        server.reset_marks("vfchost0");
        flat.join().unwrap();
        assert!((1..=4).contains(&mark(&server)), "{}", mark(&server));
        assert!((1..=2).contains(&of_queues(&server)), "{}", of_queues(&server));
    });
}

/// Two adapters of a port, one after the other and together: what was active at once on both, and no sum of what each had at most.
#[test]
fn the_mark_of_a_port_is_of_its_adapters_at_once_and_begins_again() {
    let server = Server::new(2);
    server.units(1, 32, crate::common::slow);
    let put = |number| {
        let mut spec = adapter(server.dir.path(), number, vec![target(0, &[(0, "lu0")])]);
        let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
        scsi.port = Some(PortShare { name: "fcs0".into(), num_cmd_elems: 200, share: 100 });
        let socket = spec.socket.clone();
        server.must(Request::PutAdapter(spec));
        socket
    };
    let sockets = [put(0), put(1)];
    let mark = || server.stats().port("fcs0").unwrap().total.get(QueueCounter::ActiveMax);
    for socket in &sockets {
        load_of(socket, LoadOptions { queues: 2, depth: 8, ..short_load() });
    }
    let stats = server.stats();
    assert_eq!(stats.adapters.iter().map(|one| one.active_max).collect::<Vec<_>>(), [16, 16]);
    assert!((16..32).contains(&mark()), "{}", mark());
    assert!(stats.port("fcs0").unwrap().active_max_at_ms.is_some());
    // That touches no counter and no other mark.
    let before = server.count(QueueCounter::CommandsReceived);
    server.must(Request::ResetPortMarks { name: "fcs0".into() });
    assert_eq!((mark(), server.count(QueueCounter::CommandsReceived)), (0, before));
    assert_eq!(server.stats().adapters[0].active_max, 16);
    load_of(&sockets[0], LoadOptions { queues: 1, depth: 4, ..short_load() });
    assert_eq!(mark(), 4);
    // Both write to one disk, so what is there is nobody's to judge.
    let options = || LoadOptions { queues: 2, depth: 8, verify: false, ..short_load() };
    std::thread::scope(|scope| {
        for socket in &sockets {
            scope.spawn(move || load_of(socket, options()));
        }
    });
    assert!((16..=32).contains(&mark()), "{}", mark());
    // Without adapters it keeps its mark, until it begins again.
    for name in ["vfchost0", "vfchost1"] {
        server.must(Request::RemoveAdapter { name: name.to_owned() });
    }
    assert!(mark() >= 16);
    server.must(Request::ResetPortMarks { name: "fcs0".into() });
    assert_eq!(mark(), 0);
    server.must(Request::ResetPortMarks { name: "nobody was there".into() });
}

fn load_of(socket: &std::path::Path, options: LoadOptions) {
    load(socket, &on(0, 0, options));
}

/// Two adapters of a port that has fewer elements than either of them wants: what waits is woken by what ends at the other one, and it is
/// the port that is short.
#[test]
fn adapters_of_a_port_wait_for_each_other() {
    let server = Server::new(2);
    server.units(1, 32, crate::common::slow);
    let put = |number| {
        let mut spec = adapter(server.dir.path(), number, vec![target(0, &[(0, "lu0")])]);
        let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
        let port = PortShare { name: "fcs0".into(), num_cmd_elems: 4, share: 100 };
        scsi.port = Some(port);
        let socket = spec.socket.clone();
        server.must(Request::PutAdapter(spec));
        socket
    };
    let sockets = [put(0), put(1)];
    let options = || LoadOptions { queues: 2, depth: 16, ..short_load() };
    std::thread::scope(|scope| {
        for socket in &sockets {
            scope.spawn(move || load(socket, &on(0, 0, options())));
        }
    });
    for name in ["vfchost0", "vfchost1"] {
        assert!(server.count_of(name, QueueCounter::WaitNoElement) > 0, "{name}");
        assert_eq!(server.count_of(name, QueueCounter::WaitNoCommand), 0, "{name}");
        assert_eq!(server.count_of(name, QueueCounter::Errors), 0, "{name}");
    }
    let stats = server.stats();
    let port = stats.port("fcs0").unwrap();
    let waits = |one: &protocol::stats::PortPart| one.counted.get(QueueCounter::WaitNoElement);
    let of_adapters: u64 = port.adapters.iter().map(waits).sum();
    assert_eq!(port.total.get(QueueCounter::WaitNoElement), of_adapters);
    assert!(stats.adapters.iter().all(|one| one.short.0 > 0), "{:?}", stats.adapters);
}

/// Both have more commands than their part of the port, one of them on many more queues and first.
#[test]
fn adapters_of_a_port_that_is_short_share_it() {
    let server = Server::new(2);
    server.units(1, 32, crate::common::slow);
    let put = |number, queues: u16| {
        let mut spec = adapter(server.dir.path(), number, vec![target(0, &[(0, "lu0")])]);
        let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
        scsi.port = Some(PortShare { name: "fcs0".into(), num_cmd_elems: 64, share: 100 });
        let socket = spec.socket.clone();
        server.must(Request::PutAdapter(spec));
        let mut client = Client::with(&socket, queues, 64, |_| ());
        client.attentions(LUN);
        (client, vec![0; usize::from(queues)])
    };
    let mut clients = [put(0, 4), put(1, 1)];
    let sum = |of: &(Client, Vec<u32>)| of.1.iter().sum::<u32>();
    while clients.iter().map(sum).sum::<u32>() < 2_000 {
        clients.iter_mut().for_each(|(client, ended)| read_in_all_slots(client, ended));
        std::thread::sleep(Duration::from_micros(100));
    }
    let [one, two] = clients.each_ref().map(sum);
    assert!(two > 700, "{one} and {two}: a half each was theirs");
}

/// A remap under a verified load, and the end of the adapter: what was done on a port stays with it.
#[test]
fn a_ports_counters_never_go_back() {
    let server = Server::new(2);
    server.units(1, 32, |spec| spec);
    let put = |port: &str| {
        let mut spec = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0")])]);
        let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
        scsi.port = Some(PortShare { name: port.into(), num_cmd_elems: 200, share: 100 });
        let socket = spec.socket.clone();
        server.must(Request::PutAdapter(spec));
        socket
    };
    let socket = put("fcs0");
    let reads = || {
        let stats = server.stats();
        let of = |port| stats.port(port).map_or(0, |port| port.total.get(QueueCounter::Reads));
        [of("fcs0"), of("fcs1")]
    };
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut on = 0;
            while !ended.load(Ordering::Acquire) {
                on = 1 - on;
                put(["fcs0", "fcs1"][on]);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        scope.spawn(|| {
            let mut before = [0; 2];
            while !ended.load(Ordering::Acquire) {
                let now = reads();
                assert!(now[0] >= before[0] && now[1] >= before[1], "{now:?} after {before:?}");
                before = now;
            }
        });
        let options = LoadOptions { queues: 4, duration: Duration::from_secs(1), ..short_load() };
        let ends = Ends(&ended);
        let report = run(&socket, &on(0, 0, options), &mut |_| ());
        drop(ends);
        assert_eq!(report.unwrap().failures, []);
    });
    let [first, second] = reads();
    assert!(first > 0 && second > 0);
    assert_eq!(first + second, server.count(QueueCounter::Reads));
    server.must(Request::RemoveAdapter { name: "vfchost0".to_owned() });
    assert_eq!(reads(), [first, second]);
    put("fcs1");
    assert_eq!(reads(), [first, second], "another one of its name");
}

#[test]
fn task_management_reaches_commands_on_every_channel_and_of_every_move() {
    let server = Server::new(2);
    server.units(1, 32, crate::common::slow);
    let spec = |channels| {
        let spec = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0")])]);
        protocol::message::AdapterSpec { channels, ..spec }
    };
    let socket = spec(0).socket;
    server.must(Request::PutAdapter(spec(0)));
    let second = server.put_scsi(1, vec![target(0, &[(0, "lu0")])]);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut channels = 0;
            while !ended.load(Ordering::Acquire) {
                channels = 1 - channels;
                server.must(Request::PutAdapter(spec(channels)));
            }
        });
        scope.spawn(|| {
            let mut client = Client::connect(&second);
            while !ended.load(Ordering::Acquire) {
                assert_eq!(client.manage(Function::ClearTaskSet, LUN, 0), response::OK);
                // The slowest command takes 30 ms: without a pause none of those would ever end.
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let options = LoadOptions { queues: 4, duration: Duration::from_secs(2), ..short_load() };
        let ends = Ends(&ended);
        let report = run(&socket, &on(0, 0, options), &mut |_| ()).unwrap();
        drop(ends);
        assert_eq!(report.failures, []);
    });
}
