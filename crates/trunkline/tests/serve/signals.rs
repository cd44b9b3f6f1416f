//! Signals that end the server.

use super::*;

impl Server {
    /// A server that another program has become, which sets what it begins with.
    pub(super) fn started_by(launcher: &str, args: &[&str]) -> Server {
        let mut server = Server { dir: tempfile::tempdir().unwrap(), child: None };
        let log = std::fs::File::create(server.path("serve.log")).unwrap();
        let child = Command::new(launcher)
            .args(args)
            .args([env!("CARGO_BIN_EXE_trunkline"), "serve", "--dir"])
            .arg(server.dir.path())
            .env_remove("JOURNAL_STREAM")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        server.child = Some(child);
        server.until("the server", |server| {
            server.try_status().is_some_and(|status| status["dataplanes"][0]["state"] == "running")
        });
        server
    }
}

/// A server that was started with SIGHUP as its disposition says, whatever the tests were started with.
fn started(disposition: &str) -> Server {
    Server::started_by("env", &[disposition])
}

/// What a shell or a terminal says when it goes.
fn hang_up(server: &Server) {
    let child = server.child.as_ref().unwrap().id();
    kill_process(Pid::from_raw(child as i32).unwrap(), Signal::HUP).unwrap();
}

#[test]
fn a_terminal_that_goes_ends_the_server_in_order_and_its_data_plane_stays() {
    let mut server = started("--default-signal=HUP");
    let plane = server.plane_pid();
    hang_up(&server);
    server.until("its end", |server| server.try_status().is_none());
    let ended = server.child.take().unwrap().wait().unwrap();
    assert!(ended.success(), "{ended:?}");
    assert!(server.log().contains("SIGHUP"), "{}", server.log());
    server.serve(&[]);
    assert_eq!(server.plane_pid(), plane);
}

/// What `nohup` does.
#[test]
fn who_starts_the_server_with_the_signal_ignored_keeps_it() {
    let mut server = started("--ignore-signal=HUP");
    hang_up(&server);
    server.ok("status");
    server.stop();
    assert!(!server.log().contains("SIGHUP"), "{}", server.log());
}
