//! Adapters that connect to their clients, and clients that make that hard.

use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use crate::common::raw::until;
use crate::common::{Server, load, null, short_load};
use partition::load::LoadOptions;
use protocol::message::{AdapterState, FailureCode, Reply, Request, SocketRole};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// A data plane whose adapter connects.
fn connecting() -> (Server, std::path::PathBuf) {
    let server = Server::new(2);
    server.must(Request::PutVolume(null(8)));
    let socket = server.put_adapter(|spec| spec.socket_role = SocketRole::Client);
    (server, socket)
}

#[test]
fn it_is_said_why_there_is_no_client_and_one_that_comes_is_served_again_and_again() {
    let (server, socket) = connecting();
    until("the first attempt", || server.adapter_status().reason.is_some());
    let status = server.adapter_status();
    assert_eq!(status.state, AdapterState::Connecting);
    let reason = status.reason.unwrap();
    assert!(reason.contains("No such file") && reason.contains("has to listen"), "{reason}");
    for connections in 1..=2 {
        let mut options = LoadOptions { queues: 2, verify: false, ..short_load() };
        options.session.listen = Some(Duration::from_secs(60));
        load(&socket, &options);
        assert!(!socket.exists(), "the client's socket goes with it");
        until("the end of the session", || {
            server.adapter_status().state == AdapterState::Connecting
        });
        assert_eq!(server.adapter_status().connections, connections);
    }
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
}

#[test]
fn a_client_that_hangs_up_is_called_again_and_not_forgotten() {
    let (server, socket) = connecting();
    let listener = UnixListener::bind(&socket).unwrap();
    for _ in 0..3 {
        drop(listener.accept().unwrap());
    }
    until("three short sessions", || server.adapter_status().connections >= 3);
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
}

#[test]
fn a_full_backlog_holds_nothing_up() {
    let (server, socket) = connecting();
    let address = SocketAddrUnix::new(&socket).unwrap();
    let flags = SocketFlags::CLOEXEC;
    let listener =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
    rustix::net::bind(&listener, &address).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    // The backlog of 0 takes one. Whoever comes later waits, or is told to try again.
    let _first = UnixStream::connect(&socket);
    until("an attempt that is turned away", || {
        let reason = server.adapter_status().reason.unwrap_or_default();
        reason.contains("temporarily unavailable") || server.adapter_status().connections > 0
    });
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    assert!(socket.exists(), "it is the client's");
}

#[test]
fn a_listening_socket_is_not_for_an_adapter_that_connects() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(8)));
    let spec = server.adapter("vhost0");
    let listener = UnixListener::bind(server.path("passed.sock")).unwrap();
    let spec = protocol::message::AdapterSpec { socket_role: SocketRole::Client, ..spec };
    let (reply, _) = server.plane.handle(Request::PutAdapter(spec), vec![listener.into()]);
    let Reply::Error(failure) = reply else { panic!("{reply:?}") };
    assert_eq!(failure.code, FailureCode::System);
    assert!(failure.message.contains("passed in"), "{}", failure.message);
}

#[test]
fn what_lies_where_a_socket_is_to_be_is_left_alone() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(8)));
    let disk = server.path("disk.img");
    std::fs::write(&disk, "somebody's disk").unwrap();
    let spec = protocol::message::AdapterSpec { socket: disk.clone(), ..server.adapter("vhost0") };
    match server.ask(Request::PutAdapter(spec)) {
        Reply::Error(failure) => assert!(failure.message.contains("no socket"), "{failure:?}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(std::fs::read(&disk).unwrap(), b"somebody's disk");
    // An adapter that goes takes its own socket with it and nothing else.
    let socket = server.put_adapter(|_| {});
    std::fs::remove_file(&socket).unwrap();
    std::fs::write(&socket, "somebody's file").unwrap();
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    assert_eq!(std::fs::read(&socket).unwrap(), b"somebody's file");
}
