//! The whole life of a SCSI adapter: what its client is told, reads and writes, resize, another form of a volume, and its end.

use std::time::Duration;

use crate::common::scsi::{Client, NONE, PATIENCE, adapter, file, in_event, on, target, unit};
use crate::common::{Server, load, null, short_load, slow};
use partition::load::{LoadOptions, run};
use partition::scsi::control::event;
use partition::scsi::{address, cdb, response};
use protocol::message::{
    AdapterState, DelaySpec, DeviceSpec, FailureCode, LimitSpec, Reply, Request, UnitKind,
    UnitSpec, VolumeSpec,
};

const LUN0: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];

#[test]
fn a_client_learns_what_there_is() {
    let server = Server::new(2);
    let socket = server.with_units(2, 16);
    let mut client = Client::connect(&socket);
    let config = client.session.offer().scsi.unwrap();
    assert_eq!((config.num_queues, config.seg_max, config.cmd_per_lun), (4, 254, 64));
    assert_eq!((config.max_target, config.max_lun, config.max_sectors), (255, 16383, 8192));
    assert_eq!((config.cdb_size, config.sense_size, config.event_info_size), (32, 96, 16));
    assert_eq!(client.attentions(LUN0), [0x2900], "POWER ON comes first");
    assert_eq!(client.report_luns(0), [0, 1]);
    let inquiry = client.must(address(0, 1), &cdb::inquiry(None, 96), &[], 96);
    assert_eq!(
        (inquiry[0], &inquiry[8..16], &inquiry[16..28]),
        (0, &b"TRUNKLIN"[..], &b"VIRTUAL DISK"[..])
    );
    let serial = client.must(address(0, 1), &cdb::inquiry(Some(0x80), 255), &[], 255);
    assert_eq!(&serial[4..4 + usize::from(serial[3])], b"serial of lu1");
    assert_eq!(client.blocks(LUN0), 16 << 11);
    // What is not in the map does not exist.
    let nothing = client.send(address(0, 7), &cdb::inquiry(None, 96), &[], 96);
    assert_eq!((nothing.response, nothing.data[0]), (response::OK, 0x7f));
    let absent = client.send(address(9, 0), &cdb::inquiry(None, 96), &[], 96);
    assert_eq!(absent.response, response::BAD_TARGET);
    let status = server.adapter_status();
    assert_eq!((status.state, status.client_queues), (AdapterState::Running, 2));
    for name in ["inflight", "hotplug", "change"] {
        assert!(status.features.iter().any(|feature| feature == name), "{status:?}");
    }
    drop(client);
    let status = server.settled();
    assert_eq!((status.reason, status.features.contains(&"hotplug".to_owned())), (None, false));
}

#[test]
fn verified_loads_on_two_luns_over_one_and_four_queues() {
    let server = Server::new(2);
    let socket = server.with_units(2, 32);
    for (lun, queues) in [(0, 1), (1, 4), (1, 1), (0, 4)] {
        let options = LoadOptions { queues, flush_every: Some(40), ..short_load() };
        let report = load(&socket, &on(0, lun, options));
        assert!(report.operations > 100, "{report:?}");
        assert!(report.verify.unwrap().blocks_read_back > 10);
    }
    for change in [
        LoadOptions { block_bytes: 65536, depth: 8, ..short_load() },
        LoadOptions { data_segments: 8, ..short_load() },
        LoadOptions { indirect: true, data_segments: 4, block_bytes: 16384, ..short_load() },
    ] {
        load(&socket, &on(0, 0, LoadOptions { queues: 2, ..change }));
    }
}

#[test]
fn two_clients_load_the_same_units_at_the_same_time() {
    let server = Server::new(2);
    let first = server.with_units(2, 32);
    let second = server.put_scsi(1, vec![target(3, &[(5, "lu0"), (300, "lu1")])]);
    let half = 16 << 20;
    let part = |offset| LoadOptions { offset, length: Some(half), queues: 2, ..short_load() };
    std::thread::scope(|scope| {
        scope.spawn(|| load(&first, &on(0, 0, part(0))));
        scope.spawn(|| load(&second, &on(3, 5, part(half))));
    });
    load(&second, &on(3, 300, part(0)));
}

#[test]
fn what_was_unmapped_reads_as_zeroes() {
    let server = Server::new(1);
    let socket = server.with_units(1, 16);
    let mut client = Client::connect(&socket);
    for lba in 0..16 {
        assert!(client.write(LUN0, lba, 0xaa).good());
    }
    client.must(LUN0, &cdb::SYNCHRONIZE_CACHE, &[], 0);
    client.must(LUN0, &cdb::unmap(24), &cdb::unmap_list(0, 8), 0);
    assert_eq!(client.read(LUN0, 0), [0; 512]);
    assert_eq!(client.read(LUN0, 8), [0xaa; 512]);
}

#[test]
fn a_resize_is_an_attention_an_event_and_a_capacity() {
    let server = Server::new(2);
    let first = server.with_units(2, 16);
    let second = server.put_scsi(1, vec![target(0, &[(4, "lu0")])]);
    let (mut one, mut other) = (Client::connect(&first), Client::connect(&second));
    let far = address(0, 4);
    one.attentions(LUN0);
    one.attentions(address(0, 1));
    other.attentions(far);
    server.must(Request::ResizeVolume { name: "v0".into(), bytes: 32 << 20, shrink: false });
    for (client, lun, number) in [(&mut one, LUN0, 0), (&mut other, far, 4)] {
        let told = client.events.next_within(PATIENCE).unwrap();
        let place = in_event(0, number);
        assert_eq!((told.event, told.lun, told.reason), (event::PARAM_CHANGE, place, 0x092a));
        assert_eq!(client.attentions(lun), [0x2a09]);
        assert_eq!(client.blocks(lun), 32 << 11);
    }
    assert_eq!(one.attentions(address(0, 1)), NONE, "the other unit has not changed");
    assert!(one.write(LUN0, (32 << 11) - 1, 1).good());
}

#[test]
fn a_volume_gets_a_delay_and_loses_it_under_load() {
    let server = Server::new(2);
    let socket = server.with_units(2, 32);
    let plain = server.status().volumes.remove(0).spec;
    let delay = Some(DelaySpec { min_us: 100, max_us: 2_000, seed: 3, ..Default::default() });
    let mut changes = 0;
    let options = LoadOptions { duration: Duration::from_secs(2), queues: 4, ..short_load() };
    let report = run(&socket, &on(0, 0, options), &mut |_| {
        changes += 1;
        let delay = if changes % 2 == 1 { delay } else { None };
        server.must(Request::PutVolume(VolumeSpec { delay, ..plain.clone() }));
    })
    .unwrap();
    assert_eq!(report.failures, []);
    assert!(changes >= 3, "{changes} changes");
}

#[test]
fn a_client_has_one_limit_for_all_its_units() {
    let server = Server::new(2);
    server.with_units(2, 16);
    let mut spec = adapter(server.dir.path(), 1, vec![target(0, &[(0, "lu0"), (1, "lu1")])]);
    let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
    scsi.limit = Some(LimitSpec { iops: 1_000, iops_burst: 10, ..LimitSpec::default() });
    let socket = spec.socket.clone();
    server.must(Request::PutAdapter(spec));
    let mut client = Client::with(&socket, 2, 64, |_| ());
    client.attentions(address(0, 0));
    client.attentions(address(0, 1));
    let begin = std::time::Instant::now();
    // 300 reads of each unit, one queue for each.
    let [first, second] = &mut client.requests[..] else { unreachable!() };
    std::thread::scope(|scope| {
        for (queue, lun) in [(first, address(0, 0)), (second, address(0, 1))] {
            scope.spawn(move || {
                for lba in 0..300 {
                    let read = cdb::Transfer::new(false, lba, 1);
                    assert!(queue.execute(lun, read.cdb(), &[], 512, PATIENCE).unwrap().good());
                }
            });
        }
    });
    // 600 reads at 1000 a second, of which a burst is free; each alone would have had half a second less.
    assert!(begin.elapsed() >= Duration::from_millis(550), "{:?}", begin.elapsed());
}

#[test]
fn units_and_their_volumes_are_kept_from_those_who_would_pull_them_away() {
    let server = Server::new(1);
    server.with_units(1, 16);
    let refused = |request: Request, code: FailureCode, words: &str| {
        let Reply::Error(failure) = server.ask(request) else { panic!("{words} was let pass") };
        assert_eq!(failure.code, code, "{failure:?}");
        assert!(failure.message.contains(words) && failure.help.is_some(), "{failure:?}");
    };
    let lu0 = || server.status().units.remove(0).spec;
    use FailureCode::{InUse, Invalid, NotFound, System};
    refused(Request::RemoveUnit { name: "lu0".into() }, InUse, "adapter vfchost0");
    refused(Request::RemoveVolume { name: "v0".into(), forget: false }, InUse, "unit lu0");
    refused(Request::PutUnit(UnitSpec { thin: false, ..lu0() }), InUse, "adapter vfchost0");
    refused(Request::PutUnit(unit("lu1", "v7")), NotFound, "volume v7");
    refused(Request::RemoveUnit { name: "lu7".into() }, NotFound, "unit lu7");
    let absent = adapter(server.dir.path(), 1, vec![target(0, &[(0, "lu7")])]);
    refused(Request::PutAdapter(absent), NotFound, "unit lu7");
    let twice = adapter(server.dir.path(), 1, vec![target(0, &[]), target(0, &[])]);
    refused(Request::PutAdapter(twice), Invalid, "target 0");
    let high = adapter(server.dir.path(), 1, vec![target(0, &[(16384, "lu0")])]);
    refused(Request::PutAdapter(high), Invalid, "LUN 16384");
    let mut many = adapter(server.dir.path(), 1, vec![]);
    many.queues = 255;
    refused(Request::PutAdapter(many), Invalid, "queues is 255");
    let keep = server.path("damaged.pr");
    std::fs::write(&keep, b"no reservations at all").unwrap();
    server.must(Request::PutVolume(file(server.dir.path(), "v1", 16)));
    let damaged = UnitSpec { keep: Some(keep), ..unit("lu2", "v1") };
    refused(Request::PutUnit(damaged), System, "no reservation state");
    // The same again is left alone, and in the right order everything goes.
    server.must(Request::PutUnit(lu0()));
    server.must(Request::RemoveAdapter { name: "vfchost0".into() });
    server.must(Request::PutUnit(UnitSpec { thin: false, ..lu0() }));
    server.must(Request::RemoveUnit { name: "lu0".into() });
    for name in ["v0", "v1"] {
        server.must(Request::RemoveVolume { name: name.into(), forget: true });
    }
    let status = server.status();
    assert!(status.units.is_empty() && status.volumes.is_empty() && status.adapters.is_empty());
}

#[test]
fn a_read_only_unit_on_a_writable_volume_refuses_writes() {
    let server = Server::new(1);
    server.must(Request::PutVolume(file(server.dir.path(), "v0", 16)));
    server.must(Request::PutUnit(UnitSpec { read_only: true, ..unit("lu0", "v0") }));
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0")])]);
    let mut client = Client::connect(&socket);
    let reply = client.write(LUN0, 0, 1);
    assert_eq!(reply.sense_code(), Some((7, 0x2700)), "{reply:?}");
    assert_eq!(client.read(LUN0, 0), [0; 512]);
}

#[test]
fn another_disc_in_a_drive_is_seen_at_once() {
    let server = Server::new(2);
    for (name, mebibytes) in [("a", 8), ("b", 24)] {
        let spec = VolumeSpec { read_only: false, ..file(server.dir.path(), name, mebibytes) };
        server.must(Request::PutVolume(spec));
    }
    let drive = |volume: Option<&str>| UnitSpec {
        kind: UnitKind::Optical,
        volume: volume.map(str::to_owned),
        ..unit("cd0", "")
    };
    server.must(Request::PutUnit(drive(Some("a"))));
    let socket = server.put_scsi(0, vec![target(0, &[(0, "cd0")])]);
    let mut client = Client::connect(&socket);
    client.attentions(LUN0);
    let capacity = |client: &mut Client| {
        let data = client.must(LUN0, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[], 8);
        u64::from(u32::from_be_bytes(data[..4].try_into().unwrap()) + 1) * 2048
    };
    assert_eq!(capacity(&mut client), 8 << 20);
    server.must(Request::PutUnit(drive(Some("b"))));
    assert_eq!(client.attentions(LUN0), [0x2800], "another medium");
    assert_eq!(capacity(&mut client), 24 << 20);
    // The old one can go, the new one cannot.
    server.must(Request::RemoveVolume { name: "a".into(), forget: false });
    let kept = server.ask(Request::RemoveVolume { name: "b".into(), forget: false });
    assert!(matches!(kept, Reply::Error(_)), "{kept:?}");
    server.must(Request::PutUnit(drive(None)));
    let reply = client.past_attentions(LUN0, &cdb::TEST_UNIT_READY, &[], 0);
    assert_eq!(reply.sense_code().map(|(key, code)| (key, code >> 8)), Some((2, 0x3a)));
    assert!(!server.status().units[0].medium);
    server.must(Request::RemoveVolume { name: "b".into(), forget: false });
}

#[test]
fn a_client_that_leaves_in_the_middle_of_slow_writes_harms_nobody() {
    let server = Server::new(2);
    server.units(1, 32, slow);
    let first = server.put_scsi(0, vec![target(0, &[(0, "lu0")])]);
    let second = server.put_scsi(1, vec![target(0, &[(0, "lu0")])]);
    let mut leaving = Client::connect(&first);
    leaving.attentions(LUN0);
    for _ in 0..8 {
        let queue = &mut leaving.requests[1];
        let slot = queue.take().unwrap();
        let write = cdb::Transfer::new(true, 0, 8);
        let command = partition::scsi::Command {
            lun: LUN0,
            tag: 9,
            cdb: write.cdb(),
            data_out: 4096,
            data_in: 0,
        };
        queue.submit(slot, &command).unwrap();
    }
    leaving.requests[1].publish().unwrap();
    drop(leaving);
    load(&second, &on(0, 0, LoadOptions { depth: 8, ..short_load() }));
    server.settled_named("vfchost0");
    let mut again = Client::connect(&first);
    assert_eq!(again.attentions(LUN0), [0x2907], "the I_T nexus was lost");
}

#[test]
fn a_null_volume_serves_too() {
    let server = Server::new(1);
    server.must(Request::PutVolume(VolumeSpec { name: "n".into(), ..null(64) }));
    server.must(Request::PutUnit(unit("lu0", "n")));
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0")])]);
    let options = LoadOptions { verify: false, queues: 2, ..short_load() };
    assert!(load(&socket, &on(0, 0, options)).operations > 1000);
}
