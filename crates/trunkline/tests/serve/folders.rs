//! Who has the folders, and what a start does while somebody else has.

use super::Server;
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
