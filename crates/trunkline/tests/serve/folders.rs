//! Who has the folders, and what a start does while somebody else has.

use super::Server;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Holds the locks of a server for as long as a process takes to die.
fn dying(server: &Server) -> std::thread::JoinHandle<()> {
    let locks = ["control.redb", "trunkline.lock"].map(|name| {
        let file = std::fs::File::open(server.path(name)).unwrap();
        file.lock().unwrap();
        file
    });
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        drop(locks);
    })
}

#[test]
fn a_start_waits_for_a_server_that_is_dying() {
    let mut server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1GiB");
    server.kill();
    let dying = dying(&server);
    server.serve(&[]);
    assert!(dying.is_finished(), "it had them");
    assert_eq!(server.ok("volume list -o name"), "v\n");
}

#[test]
fn a_second_server_takes_nothing_from_the_first() {
    let server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1GiB");
    let pid = server.child.as_ref().unwrap().id();
    for line in ["serve", "serve --restore"] {
        let refused = server.run(line);
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success(), "{line}");
        let who = format!("in use by another `trunkline serve`, process {pid}");
        assert!(text.contains(&who), "{line}: {text}");
    }
    let mut server = server;
    // What it commits is in its store, which is where it was.
    server.ok("volume create w --kind null --size 1GiB");
    server.kill();
    server.serve(&[]);
    assert_eq!(server.ok("volume list -o name"), "v\nw\n");
    let aside = std::fs::read_dir(server.dir.path()).unwrap().flatten();
    let aside = aside.filter(|entry| entry.file_name().to_string_lossy().contains("damaged"));
    assert_eq!(aside.count(), 0);
}

#[test]
fn a_start_from_the_last_good_copy_that_is_cut_short_can_be_begun_again() {
    let mut server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1GiB");
    server.ok("stop --with-dataplanes");
    server.child.take().unwrap().wait().unwrap();
    std::fs::write(server.path("control.redb"), b"no store").unwrap();
    // The kernel ends whoever writes a longer file: in the midst of the new store.
    let cut = "ulimit -f 64; exec \"$0\" serve --restore";
    let mut command = Command::new("sh");
    command.args(["-c", cut, env!("CARGO_BIN_EXE_trunkline")]);
    command.env("TRUNKLINE_DIR", server.dir.path()).stdin(Stdio::null()).stderr(Stdio::null());
    assert!(!command.status().unwrap().success());
    let refused = server.run("serve");
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("serve --restore"), "no state without objects: {text}");
    server.serve(&["--restore"]);
    assert_eq!(server.ok("volume list -o name"), "v\n");
}

#[test]
fn a_server_that_is_stopped_is_named_and_what_was_to_be_changed_is() {
    let server = Server::start(&[]);
    let pid = server.child.as_ref().unwrap().id();
    let process = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    let mut change = server.command();
    let change = change.args(["volume", "create", "v", "--kind", "null", "--size", "4096"]);
    let change = change.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Data planes are not ended behind its back, either.
    for line in ["status", "stop --with-dataplanes"] {
        let status = server.run(line);
        let said = String::from_utf8(status.stderr).unwrap();
        assert_eq!(status.status.code(), Some(4), "{line}: {said}");
        let who = format!("(process {pid}) does not answer");
        assert!(said.contains(&who) && said.contains(&format!("kill -CONT {pid}")), "{said}");
    }
    kill_process(process, Signal::CONT).unwrap();
    let change = change.wait_with_output().unwrap();
    let said = String::from_utf8(change.stderr).unwrap();
    assert!(
        change.status.success() && said.contains("does not answer; the change waits"),
        "{said}"
    );
    assert_eq!(server.ok("volume list -o name"), "v\n");
}
