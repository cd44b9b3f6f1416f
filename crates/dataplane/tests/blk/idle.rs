//! Adapters that have no client, by the thousand; and sockets whose files go.

use std::io::Read as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use crate::common::process::Process;
use crate::common::raw::{Front, until};
use crate::common::{Server, null};
use protocol::message::{AdapterSpec, AdapterState, BlockSpec, Reply, Request, SocketRole};
use protocol::socket::Connection;

fn adapter(folder: &Path, index: usize) -> AdapterSpec {
    let name = format!("vhost{index}");
    let socket = folder.join(format!("{name}.sock"));
    AdapterSpec { queues: 1, ..AdapterSpec::new(&name, socket, BlockSpec::on("v")) }
}

/// Whether who connects is hung up at once.
fn is_refused(socket: &Path) -> bool {
    let mut stream = UnixStream::connect(socket).unwrap();
    matches!(stream.read(&mut [0]), Ok(0))
}

/// The threads of a process, without those that come for a moment. Such a one has the name of the thread that made it until it has its own, so of those
/// of messages, which make them, one counts.
fn threads(pid: u32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    let (messages, others): (Vec<_>, Vec<_>) = names.partition(|name| name.trim() == "messages");
    let lasting = |name: &&String| name.trim() != "sockets" && name.trim() != "opening";
    others.iter().filter(lasting).count() + messages.len().min(1)
}

#[test]
fn threads_are_for_those_who_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut plane = Process::start(folder.path(), &[Request::PutVolume(null(16))]);
    let pid = plane.status().pid;
    plane.must(&Request::PutAdapter(adapter(folder.path(), 0)));
    let files = || std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
    let (alone, open) = (threads(pid), files());
    (1..1000).for_each(|index| plane.must(&Request::PutAdapter(adapter(folder.path(), index))));
    assert_eq!(threads(pid), alone, "1,000 adapters without a client");
    assert_eq!(files() - open, 999, "each has its socket and no other descriptor");
    std::thread::scope(|scope| {
        let ready = |index: usize| Front::ready(&adapter(folder.path(), 20 * index).socket);
        let come: Vec<_> = (0..50).map(|index| scope.spawn(move || ready(index))).collect();
        let clients: Vec<_> = come.into_iter().map(|client| client.join().unwrap()).collect();
        clients.iter().for_each(|(_, ring)| ring.works());
        assert_eq!(threads(pid), alone + 50);
        // Each has its own; a second one is refused as ever.
        assert!(is_refused(&adapter(folder.path(), 0).socket));
        // One that is removed takes its client with it, and none of the others.
        plane.must(&Request::RemoveAdapter { name: "vhost0".into() });
        assert!(clients[0].0.hung_up());
        clients[1..].iter().for_each(|(_, ring)| ring.works());
    });
    until("the threads are gone", || threads(pid) == alone);
    Front::ready(&adapter(folder.path(), 20).socket).1.works();
    plane.shut_down();
    let files = std::fs::read_dir(folder.path()).unwrap().flatten().map(|file| file.file_name());
    let left: Vec<_> = files.filter(|name| name.to_string_lossy().ends_with(".sock")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn those_that_connect_need_no_threads_while_they_wait_and_can_be_removed_any_time() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(16)));
    let connecting = |index: usize| AdapterSpec {
        socket_role: SocketRole::Client,
        ..adapter(server.dir.path(), index)
    };
    (0..200).for_each(|index| server.must(Request::PutAdapter(connecting(index))));
    until("all have tried", || {
        server.status().adapters.iter().all(|adapter| adapter.reason.is_some())
    });
    // One gets its client meanwhile, and is removed under it; the others at whatever they are doing.
    let listener = UnixListener::bind(connecting(7).socket).unwrap();
    let (client, _) = listener.accept().unwrap();
    until("its client", || server.adapter_named("vhost7").state == AdapterState::Connected);
    for index in 0..200 {
        server.must(Request::RemoveAdapter { name: format!("vhost{index}") });
    }
    assert!(server.status().adapters.is_empty());
    assert_eq!((&client).read(&mut [0]).unwrap(), 0, "it was left");
    // Nobody calls for an adapter that is gone.
    listener.set_nonblocking(true).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    listener.accept().unwrap_err();
}

#[test]
fn a_client_comes_while_its_adapter_goes() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(16)));
    for round in 0..200 {
        let socket = server.put_adapter(|spec| spec.queues = 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..round % 5).for_each(|_| drop(UnixStream::connect(&socket)));
            });
            server.must(Request::RemoveAdapter { name: "vhost0".into() });
        });
        assert!(!socket.exists());
    }
    let socket = server.put_adapter(|_| ());
    Front::ready(&socket).1.works();
}

#[test]
fn a_socket_that_was_passed_in_is_waited_at_and_left() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(16)));
    let (spec, path) = (server.adapter("vhost0"), server.path("passed.sock"));
    let listener = UnixListener::bind(&path).unwrap();
    let ours = listener.try_clone().unwrap();
    assert_eq!(
        server.plane.handle(Request::PutAdapter(spec), vec![listener.into()]).0,
        Reply::Done
    );
    for _ in 0..2 {
        Front::ready(&path).1.works();
        server.settled();
    }
    // It is not the adapter's to make again, nor to remove.
    std::fs::remove_file(&path).unwrap();
    server.status();
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    drop(ours);
    assert!(!path.exists());
}

#[test]
fn a_socket_whose_file_was_removed_is_made_again() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(16)));
    let (empty, used) = (server.put_adapter(|_| ()), server.path("vhost1.sock"));
    server.must(Request::PutAdapter(server.adapter("vhost1")));
    let (front, ring) = Front::ready(&used);
    for _ in 0..2 {
        [&empty, &used].iter().for_each(|socket| std::fs::remove_file(socket).unwrap());
        until("they are there again", || {
            server.status();
            empty.exists() && used.exists()
        });
        // Who is connected does not notice; who comes is served, or refused.
        ring.works();
        assert!(is_refused(&used));
        Front::ready(&empty).1.works();
    }
    drop((front, ring));
    server.settled_named("vhost1");
    Front::ready(&used).1.works();
    // What somebody else has put there is left alone, and it is said.
    server.settled_named("vhost0");
    std::fs::remove_file(&empty).unwrap();
    std::fs::write(&empty, "somebody's file").unwrap();
    until("it is said", || {
        let hidden = server.adapter_named("vhost0").hidden.unwrap_or_default();
        hidden.contains("was removed") && hidden.contains("no socket")
    });
    std::fs::remove_file(&empty).unwrap();
    until("the socket is back", || {
        server.adapter_named("vhost0").hidden.is_none() && empty.exists()
    });
    Front::ready(&empty).1.works();
    for name in ["vhost0", "vhost1"] {
        server.must(Request::RemoveAdapter { name: name.into() });
    }
    assert!(!empty.exists() && !used.exists());
}

#[test]
fn a_confined_data_plane_has_its_own_socket_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut plane = Process::start(folder.path(), &[Request::PutVolume(null(16))]);
    plane.must(&Request::PutAdapter(adapter(folder.path(), 0)));
    let socket = folder.path().join("plane.sock");
    [&socket, &adapter(folder.path(), 0).socket]
        .iter()
        .for_each(|path| std::fs::remove_file(path).unwrap());
    until("both are there again", || {
        plane.status();
        socket.exists() && adapter(folder.path(), 0).socket.exists()
    });
    // The next control plane finds it.
    let mut connection = Connection::new(UnixStream::connect(&socket).unwrap());
    connection.send(&Request::Status, &[]).unwrap();
    assert!(matches!(connection.receive::<Reply>().unwrap().0, Reply::Status(_)));
    Front::ready(&adapter(folder.path(), 0).socket).1.works();
    plane.shut_down();
    assert!(!socket.exists());
}
