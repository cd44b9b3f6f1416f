//! A data plane in a process of its own, to be killed.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use partition::load::{LoadOptions, Report, Stage, run};
use protocol::message::{FailureCode, MINOR, Reply, Request, Status, VERSION};
use protocol::opener::{self, Grants, NoTokens, Witnesses};
use protocol::socket::Connection;
use protocol::stats::{Snapshot, StatsReader};
use rustix::process::{Pid, Signal, kill_process};

use super::raw::until;

const SOCKET: &str = "TRUNKLINE_TEST_SOCKET";

/// Not a test: the process, which is this program started again with the variable set.
#[test]
#[ignore = "a process for other tests"]
fn data_plane() {
    let socket = PathBuf::from(std::env::var(SOCKET).unwrap());
    let confine = socket.parent().map(Path::to_owned);
    let options =
        dataplane::Options { socket, cpus: Vec::new(), channels: 2, poll_us_max: None, confine };
    dataplane::run(&options).unwrap();
}

/// A data plane in a process of its own, confined, and what the control plane does for it.
pub struct Process {
    child: Child,
    grants: Arc<Mutex<Grants>>,
    witnesses: Arc<Witnesses>,
    connection: Connection,
}

impl Process {
    #[track_caller]
    pub fn start(folder: &Path, setup: &[Request]) -> Process {
        Process::start_after(folder, setup, &Arc::default())
    }

    /// With the witnesses that earlier ones have left.
    #[track_caller]
    pub fn start_after(folder: &Path, setup: &[Request], witnesses: &Arc<Witnesses>) -> Process {
        let socket = folder.join("plane.sock");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "common::process::data_plane", "--ignored", "--nocapture"])
            .env(SOCKET, &socket)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut stream = None;
        until("the data plane listens", || {
            stream = UnixStream::connect(&socket).ok();
            stream.is_some()
        });
        let connection = Connection::new(stream.unwrap());
        let grants = Arc::new(Mutex::new(Grants::default()));
        grants.lock().unwrap().own_socket(&socket);
        let witnesses = Arc::clone(witnesses);
        let mut process = Process { child, grants, witnesses, connection };
        process.greet(MINOR);
        process.lend();
        setup.iter().for_each(|request| process.must(request));
        process
    }

    fn greet(&mut self, minor: u32) {
        self.connection.send(&Request::Hello { version: VERSION, minor }, &[]).unwrap();
        let (reply, _) = self.connection.receive::<Reply>().unwrap();
        assert!(matches!(reply, Reply::Hello { minor: MINOR, .. }), "{reply:?}");
    }

    /// Another control plane comes, with these witnesses.
    pub fn adopt(&mut self, witnesses: &Arc<Witnesses>) {
        self.adopt_as(witnesses, MINOR);
    }

    /// The same, of another version.
    pub fn adopt_as(&mut self, witnesses: &Arc<Witnesses>, minor: u32) {
        self.witnesses = Arc::clone(witnesses);
        self.greet(minor);
        self.lend();
    }

    /// From now on there is no control plane for it.
    pub fn abandon(&mut self) {
        let (_, theirs) = UnixStream::pair().unwrap();
        self.connection.send(&Request::Opener, &[theirs.as_fd()]).unwrap();
        assert_eq!(self.connection.receive::<Reply>().unwrap().0, Reply::Done);
    }

    /// What it has to open is opened here.
    fn lend(&mut self) {
        let theirs = opener::serve(
            Arc::clone(&self.grants),
            Arc::clone(&self.witnesses),
            Arc::new(NoTokens),
        )
        .unwrap();
        self.connection.send(&Request::Opener, &[theirs.as_fd()]).unwrap();
        assert_eq!(self.connection.receive::<Reply>().unwrap().0, Reply::Done);
    }

    #[track_caller]
    pub fn must(&mut self, request: &Request) {
        assert_eq!(self.ask(request), Reply::Done, "{request:?}");
    }

    pub fn ask(&mut self, request: &Request) -> Reply {
        self.grants.lock().unwrap().request(request);
        loop {
            self.connection.send(request, &[]).unwrap();
            match self.connection.receive::<Reply>().unwrap().0 {
                // The one before still has the file.
                Reply::Error(failure) if failure.code == FailureCode::Opening => {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                reply => return reply,
            }
        }
    }

    /// The names of its threads.
    pub fn threads(&self) -> Vec<String> {
        let all = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap().flatten();
        let name = |it: std::fs::DirEntry| std::fs::read_to_string(it.path().join("comm")).ok();
        all.filter_map(name).map(|name| name.trim_end().to_owned()).collect()
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::KILL).unwrap();
        assert_eq!(self.child.wait().unwrap().signal(), Some(9), "it was still there");
    }

    pub fn shut_down(mut self) {
        self.must(&Request::Shutdown);
        assert!(self.child.wait().unwrap().success());
    }

    pub fn stats(&mut self) -> Snapshot {
        self.connection.send(&Request::Stats, &[]).unwrap();
        let (reply, mut fds) = self.connection.receive::<Reply>().unwrap();
        assert_eq!(reply, Reply::Stats);
        StatsReader::open(&std::fs::File::from(fds.remove(0))).unwrap().snapshot()
    }

    pub fn status(&mut self) -> Status {
        self.connection.send(&Request::Status, &[]).unwrap();
        match self.connection.receive::<Reply>().unwrap().0 {
            Reply::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Of a test that failed: nothing of it stays. Elsewhere it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A load on a socket of the folder over as many deaths as are asked for; how many there were.
pub fn over_deaths(
    folder: &Path,
    setup: &[Request],
    socket: &str,
    options: &LoadOptions,
    deaths: usize,
) -> (Report, usize) {
    let mut process = Some(Process::start(folder, setup));
    let (mut calls, mut died) = (0, 0);
    let report = run(&folder.join(socket), options, &mut |progress| {
        calls += 1;
        if process.is_none() {
            process = Some(Process::start(folder, setup));
        } else if progress.stage == Stage::Measuring && died < deaths && calls % 2 == 0 {
            died += 1;
            process.take().unwrap().kill();
        }
    })
    .unwrap();
    if let Some(process) = process {
        process.shut_down();
    }
    (report, died)
}
