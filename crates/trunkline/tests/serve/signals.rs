//! Signals that end the server.

use super::*;

/// A signal in which a shell or a terminal says that it goes.
fn hang_up(server: &Server) {
    let child = server.child.as_ref().unwrap().id();
    kill_process(Pid::from_raw(child as i32).unwrap(), Signal::HUP).unwrap();
}

#[test]
fn a_terminal_that_goes_ends_the_server_in_order_and_its_data_plane_stays() {
    let mut server = Server::start(&[]);
    let plane = server.plane_pid();
    hang_up(&server);
    let ended = server.child.take().unwrap().wait().unwrap();
    assert!(ended.success(), "{ended:?}");
    assert!(server.log().contains("SIGHUP"), "{}", server.log());
    server.serve(&[]);
    assert_eq!(server.plane_pid(), plane);
}

#[test]
fn who_starts_the_server_with_nohup_keeps_it() {
    let mut server = Server { dir: tempfile::tempdir().unwrap(), child: None };
    let log = std::fs::File::create(server.path("serve.log")).unwrap();
    // What `nohup` does.
    let child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_trunkline")])
        .args(["serve", "--dir"])
        .arg(server.dir.path())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    server.child = Some(child);
    server.until("the server", |server| server.try_status().is_some());
    hang_up(&server);
    server.ok("status");
    server.stop();
    assert!(!server.log().contains("SIGHUP"), "{}", server.log());
}
