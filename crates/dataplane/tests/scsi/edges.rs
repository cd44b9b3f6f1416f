//! What else could go wrong: old front ends, very many LUNs, adapters that go in the middle, a LUN that is gone after a restart.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::process::Process;
use crate::common::raw::{Front, PROTOCOL_FEATURES, VERSION_1, code};
use crate::common::scsi::{Client, PATIENCE, adapter, file, on, target, unit};
use crate::common::{Ends, Server, load, null, short_load, slow};
use partition::config::feature;
use partition::load::LoadOptions;
use partition::scsi::control::Function;
use partition::scsi::{Command, address, cdb, response};
use protocol::message::{
    AdapterSpec, AdapterState, DeviceSpec, LimitSpec, Request, SocketRole, UnitSpec, VolumeSpec,
    WaitMode,
};
use protocol::stats::QueueCounter;

const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];

/// A status (SAM-5, 5.3.1).
const BUSY: u8 = 0x08;

/// A front end that negotiates no protocol features, as QEMU's before 8: no queue is enabled by a message.
#[test]
fn a_front_end_without_protocol_features_is_served() {
    let server = Server::new(1);
    let socket = server.with_units(1, 16);
    let bare = |options: &mut partition::session::SessionOptions| {
        options.mask_features = feature::PROTOCOL_FEATURES;
    };
    let mut client = Client::with(&socket, 1, 8, bare);
    assert!(client.session.offer().scsi.is_none());
    client.attentions(LUN);
    assert!(client.write(LUN, 3, 5).good());
    assert_eq!(client.read(LUN, 3), [5; 512]);
    assert_eq!(client.manage(Function::LogicalUnitReset, LUN, 0), response::OK);
}

#[test]
fn every_wait_mode_and_both_roles_of_the_socket_serve() {
    for (wait, role) in [
        (WaitMode::Poll, SocketRole::Server),
        (WaitMode::Interrupt, SocketRole::Server),
        (WaitMode::Adaptive, SocketRole::Client),
    ] {
        let server = Server::new(2);
        server.units(1, 16, |spec| spec);
        let spec = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0")])]);
        let spec = AdapterSpec { wait, socket_role: role, ..spec };
        let socket = spec.socket.clone();
        server.must(Request::PutAdapter(spec));
        let mut options = LoadOptions { queues: 2, ..short_load() };
        options.session.listen = (role == SocketRole::Client).then_some(PATIENCE);
        load(&socket, &on(0, 0, options));
    }
}

#[test]
fn bounds_and_limits_of_a_client_change_under_its_load() {
    let server = Server::new(2);
    server.units(1, 16, slow);
    let spec = |elems, iops| {
        let mut spec = adapter(server.dir.path(), 0, vec![target(0, &[(0, "lu0")])]);
        let DeviceSpec::Scsi(scsi) = &mut spec.device else { unreachable!() };
        scsi.commands.num_cmd_elems = elems;
        scsi.limit = Some(LimitSpec { iops, iops_burst: 10, ..LimitSpec::default() });
        spec
    };
    let socket = spec(0, 0).socket;
    server.must(Request::PutAdapter(spec(1024, 0)));
    let options = || on(0, 0, LoadOptions { queues: 2, depth: 16, ..short_load() });
    let waits = || {
        let kinds = [QueueCounter::WaitNoCommand, QueueCounter::WaitThrottled];
        kinds.map(|counter| server.count(counter))
    };
    load(&socket, &options());
    assert_eq!(waits(), [0, 0]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            load(&socket, &options());
            over.store(true, Ordering::Relaxed);
        });
        while !over.load(Ordering::Relaxed) {
            for (elems, iops) in [(4, 0), (1024, 1000), (8, 5000)] {
                server.must(Request::PutAdapter(spec(elems, iops)));
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        client.join().unwrap();
    });
    let [held, throttled] = waits();
    assert!(held > 0 && throttled > 0, "{held} and {throttled}");
    server.must(Request::PutAdapter(spec(1024, 0)));
    assert_eq!(*server.adapter_status().spec, spec(1024, 0));
    load(&socket, &options());
    assert_eq!(waits(), [held, throttled]);
}

#[test]
fn thousands_of_luns_are_reported_served_and_changed() {
    const LUNS: u16 = 3000;
    let server = Server::new(2);
    let names: Vec<String> = (0..LUNS).map(|number| format!("lu{number}")).collect();
    for name in &names {
        server.must(Request::PutVolume(VolumeSpec { name: name.clone(), ..null(64) }));
        server.must(Request::PutUnit(unit(name, name)));
    }
    let some = |step: usize| {
        let luns: Vec<(u16, &str)> =
            (0..).zip(names.iter().map(String::as_str)).step_by(step).collect();
        vec![target(0, &luns)]
    };
    let socket = server.put_scsi(0, some(1));
    let mut client = Client::connect(&socket);
    let report = client.must(LUN, &cdb::report_luns(65536), &[], 65536);
    assert_eq!(u32::from_be_bytes(report[..4].try_into().unwrap()), 8 * u32::from(LUNS));
    for lun in [0, 1, 255, 256, 1023, LUNS - 1] {
        client.attentions(address(0, lun));
        assert!(client.write(address(0, lun), 0, 1).good());
    }
    for step in [2, 3, 1, 7] {
        server.must(Request::PutAdapter(adapter(server.dir.path(), 0, some(step))));
    }
    assert!(client.write(address(0, 7), 0, 1).good());
    let gone = client.past_attentions(address(0, 8), &cdb::TEST_UNIT_READY, &[], 0);
    assert_eq!(gone.sense_code(), Some((5, 0x2500)));
    assert_eq!(server.adapter_status().state, AdapterState::Running);
}

#[test]
fn adapters_go_while_their_commands_wait_for_everything() {
    let server = Server::new(2);
    server.units(1, 16, slow);
    let stays = server.put_scsi(9, vec![target(0, &[(0, "lu0")])]);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = Client::connect(&stays);
            while !ended.load(Ordering::Acquire) {
                client.manage(Function::ClearTaskSet, LUN, 0);
                let reply = client.reserve(LUN, 6, 0, (0, 7), true);
                // While another client's change is being stored it has to be sent again.
                assert!(reply.good() || reply.status == BUSY, "{reply:?}");
            }
        });
        let _ends = Ends(&ended);
        for _ in 0..20 {
            let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0")])]);
            let mut client = Client::connect(&socket);
            client.attentions(LUN);
            for queue in &mut client.requests {
                while let Some(slot) = queue.take() {
                    let write = cdb::Transfer::new(true, 0, 1);
                    let (cdb, data_out) = match slot.0 % 2 {
                        0 => (write.cdb().to_vec(), 512),
                        _ => (cdb::reserve_out(6, 0).to_vec(), 24),
                    };
                    queue.data(slot).write(0, &cdb::reserve_list(0, 5, true));
                    let command = Command { lun: LUN, tag: 1, cdb: &cdb, data_out, data_in: 0 };
                    queue.submit(slot, &command).unwrap();
                }
                queue.publish().unwrap();
            }
            client.control.begin(Function::LogicalUnitReset, LUN, 0).unwrap();
            server.must(Request::RemoveAdapter { name: "vfchost0".into() });
        }
    });
    assert_eq!(server.count_of("vfchost9", QueueCounter::Errors), 0);
}

/// The driver sets other sizes for CDB and sense data; the next client begins with the usual ones.
#[test]
fn a_driver_sets_the_sizes_that_it_may() {
    let server = Server::new(1);
    let socket = server.with_units(1, 16);
    let front = Front::with_features(&socket, VERSION_1 | PROTOCOL_FEATURES);
    let word = |value: u32| value.to_le_bytes();
    assert_eq!(front.config(20, 8), [word(96), word(32)].concat());
    assert!(front.set_config(24, &word(16)) && front.set_config(20, &word(18)));
    assert_eq!(front.config(20, 8), [word(18), word(16)].concat());
    // A reset of the device sets them back, and ends what the driver held.
    assert!(front.accepted(code::RESET_DEVICE, &[], &[]));
    assert_eq!(front.config(20, 8), [word(96), word(32)].concat());
    assert!(front.set_config(24, &word(16)));
    drop(front);
    server.settled();
    for (offset, bytes) in
        [(0, &word(1)[..]), (24, &word(256)), (20, &word(1 << 20)), (25, &[1]), (20, &[1, 2])]
    {
        let front = Front::with_features(&socket, VERSION_1 | PROTOCOL_FEATURES);
        assert_eq!(front.config(20, 8), [word(96), word(32)].concat(), "the last client's");
        assert!(!front.set_config(offset, bytes), "{bytes:?} at {offset}");
        drop(front);
        server.settled();
    }
}

/// Requests to a LUN that the next data plane does not have any more are all answered.
#[test]
fn a_lun_that_is_gone_after_a_death_loses_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let setup = |both: bool| {
        let mut requests = Vec::new();
        for number in 0..2 {
            let (volume, name) = (format!("v{number}"), format!("lu{number}"));
            requests.push(Request::PutVolume(slow(file(folder.path(), &volume, 16))));
            let keep = Some(folder.path().join(format!("{name}.pr")));
            requests.push(Request::PutUnit(UnitSpec { keep, ..unit(&name, &volume) }));
        }
        let luns: &[(u16, &str)] = if both { &[(0, "lu0"), (1, "lu1")] } else { &[(0, "lu0")] };
        requests.push(Request::PutAdapter(adapter(folder.path(), 0, vec![target(0, luns)])));
        requests
    };
    let process = Process::start(folder.path(), &setup(true));
    let mut client = Client::connect(&folder.path().join("vfchost0.sock"));
    for lun in [LUN, address(0, 1)] {
        client.attentions(lun);
    }
    let mut outstanding = 0;
    for queue in &mut client.requests {
        while let Some(slot) = queue.take() {
            let write = cdb::Transfer::new(true, u64::from(slot.0), 1);
            let lun = address(0, slot.0 % 2);
            let command = Command { lun, tag: 1, cdb: write.cdb(), data_out: 512, data_in: 0 };
            queue.submit(slot, &command).unwrap();
            outstanding += 1;
        }
        queue.publish().unwrap();
    }
    process.kill();
    let process = Process::start(folder.path(), &setup(false));
    client.session.reconnect(PATIENCE).unwrap();
    let mut missing = 0;
    crate::common::raw::until("every request has ended", || {
        for queue in &mut client.requests {
            while let Some(slot) = queue.poll().unwrap() {
                let reply = queue.reply(slot);
                let gone = matches!(reply.sense_code(), Some((5, 0x2500)));
                assert!(
                    reply.good() || gone || matches!(reply.sense_code(), Some((6, _))),
                    "{reply:?}"
                );
                missing += u32::from(gone);
                queue.give_back(slot);
                outstanding -= 1;
            }
        }
        outstanding == 0
    });
    assert!(missing > 0);
    process.shut_down();
}
