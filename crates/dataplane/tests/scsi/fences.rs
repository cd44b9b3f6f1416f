//! A fence stands whatever happens to what it stands on: paths that change, units made anew, LUNs that leave, a second way in.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::Server;
use crate::common::scsi::{
    Client, NONE, WRITE_EXCLUSIVE, action, adapter, conflicts, file, scsi, target, unit,
};
use partition::scsi::{address, cdb, response, status};
use protocol::message::{
    AdapterSpec, DeviceSpec, FailureCode, Initiator, Reply, Request, TargetSpec, UnitKind, UnitSpec,
};
use rustix::fs::{FlockOperation, flock};

const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];

fn one_lun() -> Vec<TargetSpec> {
    vec![target(0, &[(0, "lu0")])]
}

impl Server {
    /// Clients of `vfchost0` and `vfchost1`: the first holds Write Exclusive, Registrants Only without APTPL; the second is not registered.
    #[track_caller]
    fn fenced(&self) -> [Client; 2] {
        let sockets = [0, 1].map(|number| self.put_scsi(number, one_lun()));
        let [mut holder, mut fenced] = sockets.map(|socket| Client::connect(&socket));
        fenced.attentions(LUN);
        holder.register(LUN, 0x11, false);
        let reply = holder.reserve(LUN, action::RESERVE, WRITE_EXCLUSIVE, (0x11, 0), false);
        assert!(reply.good(), "{reply:?}");
        assert!(conflicts(&fenced.write(LUN, 0, 9)));
        [holder, fenced]
    }

    /// Volume `v0` on another file: another path, to this test.
    fn other_path(&self) -> Request {
        Request::PutVolume(protocol::message::VolumeSpec {
            name: "v0".into(),
            ..file(self.dir.path(), "other", 16)
        })
    }

    #[track_caller]
    fn refuses(&self, request: Request, words: &str) {
        let Reply::Error(failure) = self.ask(request) else { panic!("{words} was let pass") };
        assert_eq!(failure.code, FailureCode::InUse, "{failure:?}");
        assert!(failure.message.contains(words) && failure.help.is_some(), "{failure:?}");
    }
}

/// Of somebody who writes as fast as he can until the end.
#[derive(Default)]
struct Pace {
    ended: AtomicBool,
    written: AtomicU64,
}

/// Ends the writing, also when the test fails.
struct Ends<'a>(&'a [Pace]);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|pace| pace.ended.store(true, Ordering::Release));
    }
}

impl Pace {
    /// What the replies were, without unit attentions.
    fn hammer(&self, client: &mut Client) -> Vec<partition::scsi::Reply> {
        let mut replies = Vec::new();
        while !self.ended.load(Ordering::Acquire) {
            replies.push(client.write(LUN, 1, 0xbd));
            self.written.fetch_add(1, Ordering::Release);
        }
        replies
    }

    /// Some more were written.
    fn go_on(&self) {
        let before = self.written.load(Ordering::Acquire);
        crate::common::raw::until("some more writes", || {
            self.written.load(Ordering::Acquire) > before + 3
        });
    }
}

/// What control sends when a volume must be opened anew: LUNs are taken, unit and volume go and come, LUNs are given.
#[test]
fn who_was_shut_out_of_a_unit_stays_so_when_it_is_made_anew() {
    let server = Server::new(2);
    server.units(1, 16, |spec| spec);
    let [mut holder, mut fenced] = server.fenced();
    let paces = [Pace::default()];
    let spec = server.status().units.remove(0).spec;
    let replies = std::thread::scope(|scope| {
        let fenced = &mut fenced;
        let writing = scope.spawn(|| paces[0].hammer(fenced));
        let end = Ends(&paces);
        for round in 0..20 {
            paces[0].go_on();
            for number in [0, 1] {
                let nothing = vec![target(0, &[])];
                server.must(Request::PutAdapter(adapter(server.dir.path(), number, nothing)));
            }
            server.must(Request::RemoveUnit { name: "lu0".into() });
            server.must(Request::RemoveVolume { name: "v0".into(), forget: false });
            server.must(match round % 2 {
                0 => server.other_path(),
                _ => Request::PutVolume(file(server.dir.path(), "v0", 16)),
            });
            server.must(Request::PutUnit(spec.clone()));
            // Another specification alone makes it anew as well.
            server.must(Request::PutUnit(UnitSpec { thin: false, ..spec.clone() }));
            for number in [1, 0] {
                server.put_scsi(number, one_lun());
            }
            paces[0].go_on();
        }
        drop(end);
        writing.join().unwrap()
    });
    let let_in = replies.iter().filter(|reply| reply.good()).count();
    assert_eq!(let_in, 0, "writes behind the fence, of {}", replies.len());
    assert!(conflicts(&fenced.write(LUN, 0, 9)));
    assert!(holder.write(LUN, 0, 1).good());
    let status = server.status().units.remove(0);
    assert_eq!(status.registrations.len(), 1);
    assert_eq!(status.registrations[0].key, 0x11);
    assert!(!status.reservation.unwrap().aptpl);
}

/// What control sends when the path to an HBA's disk changes.
#[test]
fn another_path_to_a_disk_is_put_under_its_unit() {
    let server = Server::new(2);
    server.units(1, 16, |spec| spec);
    let [mut holder, mut fenced] = server.fenced();
    let paces = [Pace::default(), Pace::default()];
    let (refused, written) = std::thread::scope(|scope| {
        let [one, other] = [&mut holder, &mut fenced];
        let holding = scope.spawn(|| paces[0].hammer(one));
        let writing = scope.spawn(|| paces[1].hammer(other));
        let end = Ends(&paces);
        for round in 0..20 {
            paces.iter().for_each(Pace::go_on);
            server.must(match round % 2 {
                0 => server.other_path(),
                _ => Request::PutVolume(file(server.dir.path(), "v0", 16)),
            });
        }
        server.must(server.other_path());
        drop(end);
        (writing.join().unwrap(), holding.join().unwrap())
    });
    // Not for a moment was it another LUN, or none.
    assert!(refused.iter().all(conflicts), "{:?}", refused.iter().find(|reply| !conflicts(reply)));
    let again = |reply: &partition::scsi::Reply| {
        (reply.response, reply.status) == (response::OK, status::TASK_ABORTED)
    };
    let odd = written.iter().find(|reply| !reply.good() && !again(reply));
    assert!(odd.is_none(), "{odd:?}");
    assert!(written.iter().any(partition::scsi::Reply::good));
    assert_eq!((holder.attentions(LUN), fenced.attentions(LUN)), (vec![], vec![]));
    assert!(holder.write(LUN, 5, 0x5a).good());
    holder.must(LUN, &cdb::SYNCHRONIZE_CACHE, &[], 0);
    let bytes = std::fs::read(server.path("other.raw")).unwrap();
    assert_eq!(bytes[5 * 512..6 * 512], [0x5a; 512]);
}

#[test]
fn a_path_that_cannot_be_had_changes_nothing() {
    let server = Server::new(1);
    server.units(1, 16, |spec| spec);
    let [mut holder, mut fenced] = server.fenced();
    let before = server.status().volumes;
    let Request::PutVolume(mut spec) = server.other_path() else { unreachable!() };
    if let protocol::message::VolumeKind::File(file) = &mut spec.kind {
        file.create = false;
    }
    let Reply::Error(failure) = server.ask(Request::PutVolume(spec.clone())) else {
        panic!("there is no such file")
    };
    assert_eq!(failure.code, FailureCode::System, "{failure:?}");
    // Nor one that is another volume's, or whose blocks are others.
    server.must(Request::PutVolume(file(server.dir.path(), "v1", 16)));
    let taken =
        protocol::message::VolumeSpec { name: "v0".into(), ..file(server.dir.path(), "v1", 16) };
    server.refuses(Request::PutVolume(taken), "the file of volume v0");
    spec.block_size = 4096;
    server.refuses(Request::PutVolume(spec), "volume v0");
    assert_eq!(server.status().volumes[..1], before[..]);
    assert!(holder.write(LUN, 0, 1).good());
    assert!(conflicts(&fenced.write(LUN, 0, 9)));
    assert_eq!(holder.attentions(LUN), NONE);
}

#[test]
fn a_volume_that_is_gone_for_good_takes_its_reservations_with_it() {
    let server = Server::new(1);
    server.units(1, 16, |spec| spec);
    let [_, mut fenced] = server.fenced();
    for number in [0, 1] {
        let nothing = vec![target(0, &[])];
        server.must(Request::PutAdapter(adapter(server.dir.path(), number, nothing)));
    }
    let spec = server.status().units.remove(0).spec;
    server.must(Request::RemoveUnit { name: "lu0".into() });
    server.must(Request::RemoveVolume { name: "v0".into(), forget: true });
    server.must(Request::PutVolume(file(server.dir.path(), "v0", 16)));
    server.must(Request::PutUnit(spec));
    server.put_scsi(1, one_lun());
    assert!(fenced.write(LUN, 0, 1).good());
}

#[test]
fn there_is_one_way_to_a_volume_and_one_adapter_for_an_initiator_port() {
    let server = Server::new(1);
    server.units(2, 16, |spec| spec);
    let [_, mut fenced] = server.fenced();
    server.refuses(Request::PutUnit(unit("second", "v0")), "unit lu0");
    let drive = UnitSpec { kind: UnitKind::Optical, ..unit("cd0", "v0") };
    server.refuses(Request::PutUnit(drive), "unit lu0");
    // The holder's port once more, by another adapter, through whatever target.
    let holder = Initiator::Fc { wwpn: 0xc050_7600_0000_0000 };
    let twin = |targets: Vec<TargetSpec>| {
        let mut spec: AdapterSpec = adapter(server.dir.path(), 7, targets);
        let Initiator::Fc { wwpn } = holder else { unreachable!() };
        spec.device = DeviceSpec::Scsi(scsi(wwpn, spec.scsi().unwrap().targets.clone()));
        Request::PutAdapter(spec)
    };
    for targets in [one_lun(), vec![target(3, &[(9, "lu0")])]] {
        server.refuses(twin(targets), "adapter vfchost0");
    }
    // It may see something else, and cannot be given the unit later.
    server.must(twin(vec![target(0, &[(0, "lu1")])]));
    server.refuses(twin(vec![target(0, &[(0, "lu1"), (1, "lu0")])]), "adapter vfchost0");
    assert!(conflicts(&fenced.write(LUN, 0, 9)));
}

/// A block adapter knows no reservations.
#[test]
fn a_volume_is_not_at_once_a_lun_and_the_disk_of_a_block_adapter() {
    let server = Server::new(1);
    server.units(1, 16, |spec| spec);
    let block = |name: &str, volume: &str| {
        let mut spec = server.adapter(name);
        spec.device = DeviceSpec::Block(protocol::message::BlockSpec::on(volume));
        Request::PutAdapter(spec)
    };
    server.refuses(block("vhost0", "v0"), "unit lu0");
    server.must(Request::PutVolume(file(server.dir.path(), "v1", 16)));
    server.must(block("vhost0", "v1"));
    let second = UnitSpec { keep: None, ..unit("lu1", "v1") };
    server.refuses(Request::PutUnit(second.clone()), "block adapter");
    // Where nothing is promised, nothing is broken.
    let reservations = spec::Reservations::Refuse;
    server.must(Request::PutUnit(UnitSpec { reservations, ..second.clone() }));
    server.refuses(Request::PutUnit(second), "block adapter");
    server.must(block("vhost1", "v1"));
}

/// A LUN leaves, its client stays: nothing of it is left.
#[test]
fn a_lun_that_is_taken_away_is_let_go_of_entirely() {
    let server = Server::new(2);
    server.units(2, 16, |spec| spec);
    server.must(Request::PutVolume(file(server.dir.path(), "disc", 8)));
    let drive = UnitSpec { kind: UnitKind::Optical, ..unit("cd0", "disc") };
    server.must(Request::PutUnit(drive.clone()));
    let all =
        |number| server.put_scsi(number, vec![target(0, &[(0, "lu0"), (1, "lu1"), (2, "cd0")])]);
    let [first, second] = [all(0), all(1)];
    let (mut one, mut other) = (Client::connect(&first), Client::connect(&second));
    let (disk, cd) = (address(0, 1), address(0, 2));
    for lun in [LUN, disk, cd] {
        one.attentions(lun);
        other.attentions(lun);
    }
    one.must(disk, &[0x16, 0, 0, 0, 0, 0], &[], 0);
    one.must(cd, &[0x1e, 0, 0, 0, 1, 0], &[], 0);
    assert!(conflicts(&other.write(disk, 0, 1)));
    let out = UnitSpec { volume: None, ..drive };
    server.refuses(Request::PutUnit(out.clone()), "cd0");
    // RESERVE and PREVENT go with the nexus.
    server.put_scsi(0, one_lun());
    assert!(other.write(disk, 0, 1).good());
    server.must(Request::PutUnit(out));
    server.must(Request::RemoveVolume { name: "disc".into(), forget: true });
    // And the volume with its lock, when nobody else sees it.
    server.put_scsi(1, one_lun());
    server.must(Request::RemoveUnit { name: "lu1".into() });
    server.must(Request::RemoveVolume { name: "v1".into(), forget: true });
    for name in ["v1.raw", "disc.raw"] {
        let file = std::fs::File::open(server.path(name)).unwrap();
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
        assert_eq!(locked, Ok(()), "{name} is free for another process");
    }
    assert!(one.write(LUN, 0, 1).good(), "the client has not noticed");
}

/// Where clients of other servers could not be held, nothing is promised.
#[test]
fn a_disk_that_others_reach_has_no_reservations() {
    let server = Server::new(1);
    server.units(1, 16, |spec| spec);
    let spec = UnitSpec {
        reservations: spec::Reservations::Refuse,
        ..server.status().units.remove(0).spec
    };
    server.must(Request::PutUnit(spec));
    let socket = server.put_scsi(0, one_lun());
    let mut client = Client::connect(&socket);
    client.attentions(LUN);
    let list = [0; 24];
    for cdb in [
        vec![0x5e, 0, 0, 0, 0, 0, 0, 0, 8, 0],
        vec![0x5e, 2, 0, 0, 0, 0, 0, 0, 8, 0],
        vec![0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0],
        vec![0x16, 0, 0, 0, 0, 0],
        vec![0x17, 0, 0, 0, 0, 0],
        vec![0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let (out, data_in) = if cdb[0] == 0x5f { (&list[..], 0) } else { (&[][..], 8) };
        let reply = client.send(LUN, &cdb, out, data_in);
        assert_eq!(reply.sense_code(), Some((5, 0x2000)), "{cdb:x?}: {reply:?}");
    }
    // REPORT SUPPORTED OPERATION CODES says so, too.
    let report = client.must(LUN, &[0xa3, 0x0c, 1, 0x16, 0, 0, 0, 0, 0, 64, 0, 0], &[], 64);
    assert_eq!(report[1] & 7, 1, "not supported");
    assert!(client.write(LUN, 0, 1).good());
}
