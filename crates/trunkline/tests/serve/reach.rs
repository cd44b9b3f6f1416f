//! Who is there and hard to reach: behind a socket whose file is gone, or behind a queue of others.

use super::Server;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Pid;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_data_plane_whose_socket_was_removed_before_anybody_asked_how_it_is_is_heard_of_again() {
    let mut server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1GiB");
    server.ok("adapter create a --volume v");
    server.ok("stop --with-dataplanes");
    server.child.take().unwrap().wait().unwrap();
    let ready = |server: &Server| server.log().matches("ready").count();
    let before = ready(&server);
    let log = std::fs::File::options().append(true).open(server.path("serve.log")).unwrap();
    // Its log says when it serves; a command would have it ask.
    server.child = Some(server.command().arg("serve").stderr(log).spawn().unwrap());
    server.until("the server", |server| ready(server) > before);
    server.until("the adapter", |server| server.path("a.sock").exists());
    for socket in ["dataplane-main.sock", "a.sock"] {
        std::fs::remove_file(server.path(socket)).unwrap();
    }
    server.until("the adapter", |server| {
        server.try_status().is_some_and(|status| status["adapters"][0]["state"] == "listening")
    });
    server.until("its socket", |server| server.path("a.sock").exists());
}

#[test]
fn a_server_that_many_others_call_at_once_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trunkline.sock");
    let (unix, stream) = (AddressFamily::UNIX, SocketType::STREAM);
    let listener = net::socket(unix, stream, None).unwrap();
    let address = SocketAddrUnix::new(&path).unwrap();
    net::bind(&listener, &address).unwrap();
    net::listen(&listener, 1).unwrap();
    let mut others = Vec::new();
    loop {
        let flags = SocketFlags::NONBLOCK;
        let other = net::socket_with(unix, stream, flags, None).unwrap();
        if net::connect(&other, &address).is_err() {
            break;
        }
        others.push(other);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(["volume", "show", "v"]).env("TRUNKLINE_DIR", dir.path());
    let mut child = command.spawn().unwrap();
    // It knocks, and must not take a full queue for nobody.
    std::thread::sleep(Duration::from_secs(1));
    if let Some(ended) = child.try_wait().unwrap() {
        panic!("it did not wait: {ended}");
    }
    let listener = UnixListener::from(listener);
    others.iter().for_each(|_| drop(listener.accept().unwrap()));
    let (mut caller, _) = listener.accept().unwrap();
    let mut request = [0; 4096];
    assert!(caller.read(&mut request).unwrap() > 0);
    let body = r#"{"code":"not_found","message":"there is no volume `v`"}"#;
    let length = body.len();
    let head = "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length:";
    write!(caller, "{head} {length}\r\n\r\n{body}").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

/// As `systemd.socket` passes them: numbers in the environment of a process that has that number, and inherited by whatever it starts.
#[test]
fn sockets_that_a_service_manager_passes_in_are_served_and_reach_no_data_plane_that_is_not_meant() {
    let mut server = Server { dir: tempfile::tempdir().unwrap(), child: None };
    let [api, adapter] = ["trunkline.sock", "a.sock"].map(|name| server.path(name));
    let [first, second] =
        [&api, &adapter].map(|path| OwnedFd::from(UnixListener::bind(path).unwrap()));
    let log = std::fs::File::create(server.path("serve.log")).unwrap();
    let mut shell = Command::new("sh");
    shell.env("TRUNKLINE_DIR", server.dir.path()).env_remove("JOURNAL_STREAM");
    let line = r#"exec 3<&0 4<&1 </dev/null >&2; LISTEN_PID=$$ LISTEN_FDS=2 LISTEN_FDNAMES=api:a exec "$0" serve"#;
    shell.args(["-c", line, env!("CARGO_BIN_EXE_trunkline")]);
    shell.stdin(Stdio::from(first)).stdout(Stdio::from(second)).stderr(log);
    server.child = Some(shell.spawn().unwrap());
    drop(shell);
    server.until("the server", |server| server.try_status().is_some());
    server.ok("volume create v --kind ram --size 16MiB");
    server.ok("adapter create a --volume v");
    let load = |server: &Server| {
        let line = "--time 200ms --verify --mix 50 -o json";
        let mut load = server.command();
        load.args(["bench", "run"]).arg(&adapter).args(line.split(' ')).output().unwrap()
    };
    let first = load(&server);
    assert!(first.status.success(), "{first:?}\n{}", server.log());
    let plane = server.plane_pid();
    let mut child = server.child.take().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // Nobody waits there any more: a data plane that had it would let callers wait for ever.
    let refused = UnixStream::connect(&api).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    server.child = Some(server.command().arg("serve").spawn().unwrap());
    server.until("the server", |server| server.try_status().is_some());
    assert_eq!(server.plane_pid(), plane);
    let second = load(&server);
    assert!(second.status.success(), "{second:?}\n{}", server.log());
}

#[test]
fn a_data_plane_whose_socket_was_removed_is_not_replaced_while_it_lives() {
    let mut server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1GiB");
    let pid = server.plane_pid();
    server.stop();
    std::fs::remove_file(server.path("dataplane-main.sock")).unwrap();
    server.serve(&[]);
    let plane = server.plane();
    assert_eq!(plane["state"], "down", "{plane}");
    let reason = plane["reason"].as_str().unwrap();
    let pid_text = pid.as_raw_nonzero().to_string();
    assert!(reason.contains(&format!("process {pid_text} is still there")), "{reason}");
    server.ok("dataplane restart main");
    assert!(!lives(pid));
    server.until("the next one", |server| server.plane()["state"] == "running");
    // Removed, or ended with the server, it ends as well.
    server.ok("dataplane create second");
    let pid_of = |server: &Server, name: &str| {
        let shown: Value =
            serde_json::from_str(&server.ok(&format!("dataplane show {name} -o json"))).unwrap();
        Pid::from_raw(i32::try_from(shown["pid"].as_i64().unwrap()).unwrap()).unwrap()
    };
    let [main, second] = ["main", "second"].map(|name| pid_of(&server, name));
    server.stop();
    for name in ["main", "second"] {
        std::fs::remove_file(server.path(&format!("dataplane-{name}.sock"))).unwrap();
    }
    server.serve(&[]);
    server.run("dataplane remove second");
    server.until("its end", |_| !lives(second));
    assert!(lives(main));
    server.ok("stop --with-dataplanes");
    server.child.take().unwrap().wait().unwrap();
    assert!(!lives(main));
    assert!(!server.path("dataplane-second.lock").exists());
}

/// Whether a process lives; one that nobody has collected yet does not.
fn lives(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| {
        !stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X']))
    })
}
