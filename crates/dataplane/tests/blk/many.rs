//! Two and more of everything.

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::raw::{Front, until};
use crate::common::{Server, load, null, short_load};
use partition::load::LoadOptions;
use protocol::message::{
    AdapterSpec, AdapterState, BlockSpec, DeviceSpec, FailureCode, Reply, Request, VolumeKind,
    VolumeSpec,
};
use protocol::stats::QueueCounter;

#[test]
fn a_file_is_served_by_one_data_plane_and_the_other_is_told_by_which() {
    let (first, second) = (Server::new(1), Server::new(1));
    first.must(Request::PutVolume(first.file(16)));
    // The second one waits for a while, in case that the first is about to end; it answers everything else meanwhile.
    let waiting = AtomicBool::new(true);
    let failure = std::thread::scope(|scope| {
        let put = scope.spawn(|| {
            let reply = second.ask(Request::PutVolume(first.file(16)));
            waiting.store(false, Ordering::Relaxed);
            reply
        });
        second.must(Request::PutVolume(VolumeSpec { name: "w".into(), ..null(16) }));
        assert_eq!(second.status().volumes.len(), 1);
        second.must(Request::RemoveVolume { name: "w".into(), forget: false });
        assert!(waiting.load(Ordering::Relaxed), "everything else had to wait");
        let Reply::Error(failure) = put.join().unwrap() else {
            panic!("two data planes have one file");
        };
        failure
    });
    let pid = std::process::id();
    assert!(failure.message.contains(&format!("process {pid} (")), "{failure:?}");
    assert!(failure.help.is_some());
    assert!(second.status().volumes.is_empty());
    // Nor two volumes of one data plane; that is known at once.
    let again = VolumeSpec { name: "again".into(), ..first.file(16) };
    let Reply::Error(failure) = first.ask(Request::PutVolume(again)) else {
        panic!("two volumes have one file");
    };
    assert_eq!(failure.code, FailureCode::InUse);
    assert!(failure.message.contains("volume v"), "{failure:?}");
    let socket = first.put_adapter(|_| ());
    load(&socket, &short_load());
    first.must(Request::RemoveAdapter { name: "vhost0".into() });
    first.must(Request::RemoveVolume { name: "v".into(), forget: false });
    second.must(Request::PutVolume(first.file(16)));
}

#[test]
fn a_socket_is_served_by_one_adapter() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(16)));
    let socket = server.put_adapter(|_| ());
    let twin = AdapterSpec { socket: socket.clone(), ..server.adapter("vhost1") };
    let Reply::Error(failure) = server.ask(Request::PutAdapter(twin)) else {
        panic!("two adapters have one socket");
    };
    assert!(failure.message.contains("vhost0.sock"), "{failure:?}");
    // Neither is it taken away from the one that has it.
    let (_front, ring) = Front::ready(&socket);
    ring.works();
    // What a dead process left behind is no obstacle.
    let left = server.path("vhost2.sock");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    server.put_adapter(|spec| *spec = server.adapter("vhost2"));
    Front::ready(&left).1.works();
}

#[test]
fn who_may_use_a_socket_changes_under_its_client() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(16)));
    let is_root = rustix::process::geteuid().is_root();
    // Only root gives files away; to oneself anybody does.
    let number = |id: u32| Some(if is_root { 7 } else { id }.to_string());
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let first = |spec: &mut AdapterSpec| {
        spec.socket_mode = 0o600;
        (spec.socket_owner, spec.socket_group) = (number(own.0), number(own.1));
    };
    let socket = server.put_adapter(first);
    let of = || {
        let file = std::fs::metadata(&socket).unwrap();
        (file.uid(), file.gid(), file.mode() & 0o777)
    };
    assert_eq!(of(), if is_root { (7, 7, 0o600) } else { (own.0, own.1, 0o600) });
    let (_front, ring) = Front::ready(&socket);
    server.put_adapter(|spec| spec.socket_mode = 0o666);
    assert_eq!(of(), (own.0, own.1, 0o666));
    ring.works();
    let status = server.adapter_named("vhost0");
    assert_eq!((status.connections, status.spec.socket_mode), (1, 0o666));
    // Made again, it is for the same as before.
    std::fs::remove_file(&socket).unwrap();
    until("the socket is there again", || server.status().adapters.len() == 1 && socket.exists());
    assert_eq!(of(), (own.0, own.1, 0o666));
    // Nothing changes when that is for somebody who is not known.
    let unknown =
        AdapterSpec { socket_owner: Some("no-such-one".into()), ..server.adapter("vhost0") };
    let Reply::Error(failure) = server.ask(Request::PutAdapter(unknown)) else {
        panic!("a socket was given to nobody");
    };
    assert!(failure.message.contains("no user `no-such-one`"), "{failure:?}");
    assert_eq!(of(), (own.0, own.1, 0o666));
    assert_eq!(server.adapter_named("vhost0").spec.socket_owner, None);
}

#[test]
fn two_adapters_write_to_two_parts_of_one_volume() {
    let server = Server::new(2);
    server.must(Request::PutVolume(server.file(64)));
    let first = server.put_adapter(|_| ());
    let second = server.put_adapter(|spec| *spec = server.adapter("vhost1"));
    std::thread::scope(|scope| {
        for (part, socket) in [&first, &second].into_iter().enumerate() {
            scope.spawn(move || {
                let options = LoadOptions {
                    offset: (part as u64) * (32 << 20),
                    length: Some(32 << 20),
                    queues: 2,
                    seed: part as u64,
                    flush_every: Some(32),
                    ..short_load()
                };
                load(socket, &options);
            });
        }
    });
    // What one has written the other reads.
    let (_front, ring) = Front::ready(&first);
    let (_other, theirs) = Front::ready(&second);
    ring.data.buf.slice(0, 512).fill(0x5a);
    ring.request(0, 1, 9, (ring.data.guest.0, 512, 0));
    assert_eq!(ring.status_after(0), 0);
    theirs.read(0, 9);
    assert_eq!(theirs.status_after(0), 0);
    let mut byte = [0];
    theirs.data.buf.read(511, &mut byte);
    assert_eq!(byte, [0x5a]);
}

#[test]
fn adapters_come_and_go_beside_a_client_that_verifies() {
    let server = Server::new(2);
    server.must(Request::PutVolume(server.file(64)));
    server.must(Request::PutVolume(VolumeSpec { name: "w".into(), ..null(16) }));
    let socket = server.put_adapter(|_| ());
    let other = || AdapterSpec {
        device: DeviceSpec::Block(BlockSpec::on("w")),
        wait: Default::default(),
        ..server.adapter("vhost1")
    };
    let over = AtomicBool::new(false);
    let mut rounds = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let options =
                LoadOptions { queues: 2, duration: Duration::from_secs(2), ..short_load() };
            load(&socket, &options);
            over.store(true, Ordering::Relaxed);
        });
        while !over.load(Ordering::Relaxed) {
            server.must(Request::PutAdapter(other()));
            let mut client = None;
            if rounds % 3 > 0 {
                // With requests in flight, and with a client that has gone already.
                let (front, ring) = Front::ready(&other().socket);
                ring.read(0, 0);
                ring.offer(&[0]);
                client = Some((front, ring)).filter(|_| rounds % 3 == 2);
            }
            server.must(Request::RemoveAdapter { name: "vhost1".into() });
            if let Some((front, _ring)) = client {
                assert!(front.hung_up());
            }
            rounds += 1;
        }
    });
    assert!(rounds > 10, "{rounds}");
    assert_eq!(server.stats().queues.iter().filter(|queue| queue.adapter == "vhost1").count(), 0);
    assert_eq!(server.adapter_named("vhost0").connections, 1);
}

#[test]
fn fifty_adapters_are_served_by_two_channels() {
    let server = Server::new(2);
    server.must(Request::PutVolume(null(16)));
    let name = |index: usize| format!("vhost{index}");
    let sockets: Vec<_> = (0..50)
        .map(|index| server.put_adapter(|spec| *spec = server.adapter(&name(index))))
        .collect();
    let clients: Vec<_> = sockets.iter().map(|socket| Front::ready(socket)).collect();
    for _ in 0..3 {
        clients.iter().for_each(|(_, ring)| ring.works());
    }
    let status = server.status();
    assert_eq!(status.adapters.len(), 50);
    assert!(status.adapters.iter().all(|adapter| adapter.state == AdapterState::Running));
    let queues: u32 = status.channels.iter().map(|channel| channel.queues).sum();
    assert_eq!(queues, 50);
    assert!(status.channels.iter().all(|channel| channel.queues >= 20), "{:?}", status.channels);
    for index in 0..50 {
        assert_eq!(server.count_of(&name(index), QueueCounter::Reads), 3);
    }
    drop(clients);
    until("all clients are gone", || {
        server.status().adapters.iter().all(|adapter| adapter.state == AdapterState::Listening)
    });
    assert!(server.status().channels.iter().all(|channel| channel.queues == 0));
}

#[test]
fn a_volume_that_needs_no_file_has_no_lock() {
    let (first, second) = (Server::new(1), Server::new(1));
    for server in [&first, &second] {
        server.must(Request::PutVolume(null(16)));
    }
    assert!(matches!(first.status().volumes[0].spec.kind, VolumeKind::Null(_)));
}
