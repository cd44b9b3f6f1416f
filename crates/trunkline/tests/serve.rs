//! `trunkline serve` as a process, with data planes that are processes.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

#[path = "serve/detach.rs"]
mod detach;
#[path = "serve/folders.rs"]
mod folders;
#[path = "serve/full.rs"]
mod full;
#[path = "serve/links.rs"]
mod links;
#[path = "serve/lost_writes.rs"]
mod lost_writes;
#[path = "serve/mirrors.rs"]
mod mirrors;
#[path = "serve/names.rs"]
mod names;
#[path = "serve/networks.rs"]
mod networks;
#[path = "serve/pools.rs"]
mod pools;
#[path = "serve/reach.rs"]
mod reach;
#[path = "serve/scrub.rs"]
mod scrub;
#[path = "serve/signals.rs"]
mod signals;
#[path = "serve/sizes.rs"]
mod sizes;
#[path = "serve/snapshots.rs"]
mod snapshots;
#[path = "serve/tiers.rs"]
mod tiers;
#[path = "serve/tokens.rs"]
mod tokens;
#[path = "serve/uplinks.rs"]
mod uplinks;
#[path = "serve/visits.rs"]
mod visits;

/// A server in a folder of its own.
struct Server {
    dir: tempfile::TempDir,
    child: Option<Child>,
}

impl Server {
    fn start(args: &[&str]) -> Server {
        let mut server = Server { dir: tempfile::tempdir().unwrap(), child: None };
        server.serve(args);
        server
    }

    /// Starts the control plane, and waits until it answers.
    fn serve(&mut self, args: &[&str]) {
        let log = std::fs::File::options().create(true).append(true).open(self.path("serve.log"));
        let child = self.command().arg("serve").args(args).stderr(log.unwrap()).spawn().unwrap();
        self.child = Some(child);
        self.until("the server", |server| {
            server.try_status().is_some_and(|status| status["starting"].is_null())
        });
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn log(&self) -> String {
        // One that has no end is no log.
        let log = std::fs::File::open(self.path("serve.log")).unwrap().take(16 << 20);
        std::io::read_to_string(log).unwrap()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.env("TRUNKLINE_DIR", self.dir.path()).env_remove("JOURNAL_STREAM");
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command().args(line.split_whitespace()).output().unwrap()
    }

    fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {output:?}\n{}", self.log());
        String::from_utf8(output.stdout).unwrap()
    }

    fn try_status(&self) -> Option<Value> {
        let output = self.run("status -o json");
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    /// What the status says of the data plane `main`.
    fn plane(&self) -> Value {
        self.try_status().unwrap()["dataplanes"][0].clone()
    }

    fn plane_pid(&self) -> Pid {
        let pid = self.plane()["pid"].as_i64().unwrap();
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }

    /// Kills the data plane, and waits for another.
    fn kill_plane(&self) {
        let dead = self.plane_pid();
        kill_process(dead, Signal::KILL).unwrap();
        self.until("another data plane", |server| {
            let plane = server.plane();
            plane["state"] == "running"
                && plane["pid"].as_i64() != Some(i64::from(dead.as_raw_nonzero().get()))
        });
    }

    fn until(&self, what: &str, happened: impl Fn(&Server) -> bool) {
        for _ in 0..3000 {
            if happened(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{what} did not come\n{}", self.log());
    }

    /// Ends the control plane alone.
    fn stop(&mut self) {
        self.ok("stop");
        self.child.take().unwrap().wait().unwrap();
    }

    /// Kills the control plane alone.
    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.run("stop --with-dataplanes");
        }
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        // What a failed test leaves running.
        let socket = self.path("dataplane-main.sock");
        if let Ok(mut link) = control::link::SocketLink::connect(&socket) {
            use control::link::Link;
            let _ = link.call(&protocol::message::Request::Shutdown, &[]);
        }
    }
}

#[track_caller]
fn ip(words: &str) {
    let run = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(run.status.success(), "ip {words}: {run:?}");
}

#[test]
fn a_server_that_refuses_its_configuration_leaves_no_data_plane_behind() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("t.toml");
    std::fs::write(&config, "[volume.v]\nsize = \"1MiB\"\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_trunkline"))
        .arg("serve")
        .arg("--dir")
        .arg(dir.path())
        .arg("--config")
        .arg(&config)
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("attribute `kind`: it must be set"), "{text}");
    assert!(UnixStream::connect(dir.path().join("dataplane-main.sock")).is_err());
}

#[test]
fn a_data_plane_comes_back_where_nothing_can_be_written_beside_it() {
    let server = Server::start(&[]);
    // As on a file system that became full or read-only: neither its log nor a note of it can be made.
    for name in ["dataplane-main.log", "dataplane-main.json"] {
        std::fs::remove_file(server.path(name)).unwrap();
        std::fs::create_dir(server.path(name)).unwrap();
    }
    server.kill_plane();
    let log = server.log();
    for told in ["no log of the data plane", "it is not noted how"] {
        assert!(log.contains(told), "{log}");
    }
}

/// Every thread of a process.
fn threads(pid: u64) -> impl Iterator<Item = String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).unwrap())
}

#[test]
fn both_processes_are_confined_and_what_is_to_be_opened_is_opened_over_restarts() {
    let mut server = Server::start(&[]);
    server.ok("volume create a --kind null --size 1GiB");
    server.ok("adapter create a --volume a");
    let plane = server.try_status().unwrap()["dataplanes"][0].clone();
    assert_eq!(plane["confinement"], "Landlock, seccomp", "{}", server.log());
    let pid = plane["pid"].as_u64().unwrap();
    let own = u64::from(server.child.as_ref().unwrap().id());
    for status in threads(pid).chain(threads(own)) {
        assert!(status.contains("NoNewPrivs:\t1") && status.contains("Seccomp:\t2"), "{status}");
    }
    // Another control plane lends to the data plane that is there.
    server.kill();
    server.serve(&[]);
    assert_eq!(server.try_status().unwrap()["dataplanes"][0]["pid"].as_u64(), Some(pid));
    let image = server.path("b.img");
    server.ok(&format!(
        "volume create b --kind file --create --size 4MiB --path {}",
        image.display()
    ));
    server.ok("adapter create b --volume b");
    let socket =
        server.try_status().unwrap()["adapters"][1]["socket"].as_str().map(PathBuf::from).unwrap();
    UnixStream::connect(&socket).unwrap();
    server.ok("adapter remove b");
    assert!(!socket.exists(), "its socket is removed");
    server.ok("dataplane restart main");
    let status = server.try_status().unwrap();
    assert_eq!(status["volumes"][1]["state"], "open", "{status}");
    assert_ne!(status["dataplanes"][0]["pid"].as_u64(), Some(pid));
}

#[test]
fn a_stopped_data_plane_is_shown_and_neither_replaced_nor_cut_off() {
    let mut server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1GiB");
    server.ok("adapter create a --volume v");
    let pid = server.plane_pid();
    kill_process(pid, Signal::STOP).unwrap();
    server.until("silence", |server| server.plane()["state"] == "unresponsive");
    let page = server.ok("status");
    assert!(page.contains("data plane `main` is unresponsive: process"), "{page}");
    assert!(page.contains("listening"), "what was known is shown: {page}");
    server.ok("adapter show a");
    // Nor does a new control plane start a second one.
    server.stop();
    server.serve(&[]);
    assert_eq!(server.plane()["state"], "unresponsive", "{}", server.log());
    assert_eq!(server.plane_pid(), pid);
    kill_process(pid, Signal::CONT).unwrap();
    server.until("an answer", |server| server.plane()["state"] == "running");
    assert_eq!(server.plane_pid(), pid);
    server.until("the adapter", |server| {
        server.try_status().unwrap()["adapters"][0]["state"] == "listening"
    });
    UnixStream::connect(server.path("a.sock")).unwrap();
    assert_eq!(server.plane()["restarts"], 0);
}

#[test]
fn a_stopped_data_plane_is_killed_when_its_restart_is_asked_for() {
    let server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1GiB");
    let pid = server.plane_pid();
    kill_process(pid, Signal::STOP).unwrap();
    server.ok("dataplane restart main");
    assert_ne!(server.plane_pid(), pid);
    server.until("the volume", |server| {
        server.try_status().unwrap()["volumes"][0]["state"] == "open"
    });
}

#[test]
fn sockets_whose_files_were_removed_are_made_again_while_the_server_runs() {
    let server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1GiB");
    server.ok("adapter create a --volume v");
    let sockets = ["a.sock", "dataplane-main.sock", "trunkline.sock"];
    for socket in sockets {
        std::fs::remove_file(server.path(socket)).unwrap();
    }
    server.until("they are there again", |server| {
        let _ = server.try_status();
        sockets.iter().all(|socket| server.path(socket).exists())
    });
    drop(UnixStream::connect(server.path("a.sock")).unwrap());
    assert_eq!(server.plane()["state"], "running");
}

#[test]
fn names_that_other_systems_give_serve_and_are_counted_over_a_restart() {
    let mut server = Server::start(&[]);
    let volume = "pvc-0b7f1c5e-92a4-4c1c-a2ff-1d5a0a9b2a11";
    let adapter = format!("2f6b.{}", "x".repeat(248));
    server.ok(&format!("volume create {volume} --kind ram --size 1MiB"));
    server.ok(&format!("adapter create {adapter} --volume {volume}"));
    let view = |server: &Server| -> Value {
        serde_json::from_str(&server.ok(&format!("adapter show {adapter} -o json"))).unwrap()
    };
    let socket = view(&server)["socket"].as_str().unwrap().to_owned();
    assert_eq!(socket.len(), 107, "{socket}");
    let client = UnixStream::connect(&socket).unwrap();
    server.until("the client", |server| view(server)["state"] == "connected");
    let text = server.ok("export");
    assert!(text.contains(&format!("[adapter.\"{adapter}\"]")), "{text}");
    std::fs::write(server.path("t.toml"), text).unwrap();
    assert_eq!(server.ok(&format!("apply {}", server.path("t.toml").display())), "nothing to do\n");
    let pid = server.plane_pid();
    server.stop();
    server.serve(&[]);
    assert_eq!(server.plane_pid(), pid, "it was adopted");
    assert_eq!(view(&server)["state"], "connected");
    drop(client);
    server.ok(&format!("adapter remove --force {adapter}"));
    let refused = server.run("volume create optical.x --kind ram --size 1MiB");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let refused = server.run("volume create 2000000000000001 --kind ram --size 1MiB");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is a WWPN"), "{refused:?}");
}

#[test]
fn data_planes_without_a_server_are_ended_when_that_is_asked_for() {
    let mut server = Server::start(&[]);
    server.ok("dataplane create d");
    let socket = server.path("dataplane-main.sock");
    let pid = server.plane_pid();
    assert!(socket.exists());
    server.kill();
    let refused = server.run("stop");
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    let done = server.run("stop --with-dataplanes");
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && text.contains("d, main"), "{text}");
    // Nobody may have waited for it yet.
    let status = format!("/proc/{}/status", pid.as_raw_nonzero());
    let status = std::fs::read_to_string(status).unwrap_or_default();
    assert!(status.is_empty() || status.contains("State:\tZ"), "it lives: {status}");
    assert!(!socket.exists());
    assert_eq!(server.run("stop --with-dataplanes").status.code(), Some(4), "there is none left");
}

#[test]
fn ioscli_takes_a_disk_from_a_client_with_force_only() {
    let server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1GiB");
    server.ok("adapter create a --kind scsi");
    server.ok("ioscli mkvdev -vdev v -vadapter a -dev t");
    let _client = UnixStream::connect(server.path("a.sock")).unwrap();
    server.until("the client", |server| {
        server.try_status().unwrap()["adapters"][0]["state"] == "connected"
    });
    let refused = server.run("ioscli rmvdev -vtd t");
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--force"), "{refused:?}");
    assert_eq!(server.ok("ioscli rmvdev --force -vtd t"), "t deleted\n");
}

#[test]
fn eight_who_change_a_zone_and_a_target_at_once_lose_nothing() {
    let server = Server::start(&[]);
    server.ok("zone create z");
    server.ok("target create t");
    for n in 0..8 {
        server.ok(&format!("volume create v{n} --kind null --size 1MiB"));
    }
    std::thread::scope(|scope| {
        for n in 0..8 {
            let server = &server;
            scope.spawn(move || {
                server.ok(&format!("zone add-member z c0:50:76:00:00:00:00:{n:02x}"));
                server.ok(&format!("target add-lun t {n}=v{n}"));
            });
        }
    });
    let listed = |line: &str, attribute: &str| {
        let shown: Value = serde_json::from_str(&server.ok(line)).unwrap();
        shown["effective"][attribute].as_str().unwrap().to_owned()
    };
    assert_eq!(listed("zone show z -o json", "members").split(',').count(), 8);
    assert_eq!(listed("target show t -o json", "luns"), "0=v0,1=v1,2=v2,3=v3,4=v4,5=v5,6=v6,7=v7");
    assert!(server.ok("zone ls").contains("z "), "the short names of `list` and `remove`");
    server.ok("zone rm z");
    server.ok("target remove-lun t 1 2 3 4 5 6 7");
    assert_eq!(listed("target show t -o json", "luns"), "0=v0");
    let refused = server.run("target remove-lun t 7");
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
}

#[test]
fn a_start_takes_nothing_from_a_client_and_keeps_what_its_file_does_not_name() {
    let mut server = Server::start(&[]);
    for name in ["v", "w", "x"] {
        server.ok(&format!("volume create {name} --kind null --size 1GiB"));
    }
    server.ok("adapter create a --volume v");
    server.ok("adapter create b --volume w");
    let file = server.path("t.toml");
    std::fs::write(&file, "[volume.x]\nkind = \"null\"\nsize = \"2GiB\"\n").unwrap();
    let config = format!("--config={}", file.display());
    server.stop();
    server.serve(&[&config]);
    assert_eq!(server.try_status().unwrap()["adapters"].as_array().unwrap().len(), 2);
    assert!(server.ok("export").contains("size = \"2GiB\""), "what it names is as it says");
    let warned = server.run("volume resize x 3GiB");
    let warning = String::from_utf8(warned.stderr).unwrap();
    assert!(warning.contains("warning: the next start of the server applies"), "{warning}");
    let events = server.ok("events");
    assert!(events.contains("change done: change volume x (size=3GiB) (user "), "{events}");
    // A rule that it breaks, here that volumes do not shrink, keeps no server from its data planes.
    server.stop();
    server.serve(&[&config]);
    assert!(server.log().contains("`x` would shrink from 3GiB to 2GiB"), "{}", server.log());
    std::fs::write(&file, "[volume.x]\nkind = \"null\"\nsize = \"3GiB\"\n").unwrap();
    // Pruning, with a client at one of the adapters.
    let client = UnixStream::connect(server.path("a.sock")).unwrap();
    server.until("the client", |server| {
        server.try_status().unwrap()["adapters"][0]["state"] == "connected"
    });
    server.stop();
    server.serve(&[&config, "--prune"]);
    assert_eq!(server.try_status().unwrap()["adapters"].as_array().unwrap().len(), 2);
    assert!(server.log().contains("the client of adapter `a` loses its disk"), "{}", server.log());
    drop(client);
    server.until("its end", |server| {
        server.try_status().unwrap()["adapters"][0]["state"] == "listening"
    });
    server.stop();
    server.serve(&[&config, "--prune"]);
    assert!(server.try_status().unwrap()["adapters"].as_array().unwrap().is_empty());
    assert!(server.log().contains("the configuration removes adapter `a`"), "{}", server.log());
}

/// A data plane is there before the configuration is read.
#[test]
fn what_a_file_says_of_a_data_plane_holds_from_the_start_unless_a_client_is_there() {
    let mut server = Server { dir: tempfile::tempdir().unwrap(), child: None };
    let file = server.path("t.toml");
    let config = format!("--config={}", file.display());
    let serve = |server: &mut Server, poll_us_max: &str| {
        let rest = "[volume.v]\nkind = \"null\"\nsize = \"1GiB\"\n[adapter.a]\nvolume = \"v\"\n";
        let text = format!("[dataplane.main]\npoll_us_max = {poll_us_max}\n{rest}");
        std::fs::write(&file, text).unwrap();
        server.serve(&[&config]);
        let shown = server.ok("dataplane show main -o json");
        assert!(shown.contains("\"restart_needed\": "), "{shown}");
        shown.contains("\"restart_needed\": true")
    };
    assert!(!serve(&mut server, "\"auto\""), "it begins with it");
    server.stop();
    assert!(!serve(&mut server, "50"), "nobody is there");
    let client = UnixStream::connect(server.path("a.sock")).unwrap();
    server.until("the client", |server| {
        server.try_status().unwrap()["adapters"][0]["state"] == "connected"
    });
    server.stop();
    assert!(serve(&mut server, "60"), "its client stays");
    let warning = "data plane `main` wait for a restart: `trunkline dataplane restart main`";
    assert!(server.log().contains(warning), "{}", server.log());
    drop(client);
}

#[test]
fn an_account_longer_than_a_frame_is_carried_and_its_data_plane_adopted() {
    use std::fmt::Write;
    let mut server = Server::start(&[]);
    // 255 adapters with 2,000 LUNs each, whose names are long: 17 MiB to name them all.
    let name = |lun: usize| format!("v{lun:0>30}");
    let mut text = "[port.p]\nmax_adapters = 255\n".to_owned();
    for lun in 0..2000 {
        let _ = write!(text, "[volume.{}]\nkind = \"null\"\nsize = \"1MiB\"\n", name(lun));
    }
    let map: Vec<String> = (0..2000).map(|lun| format!("{lun}={}", name(lun))).collect();
    let _ = write!(text, "[target.t]\nluns = \"{}\"\n", map.join(","));
    let names: Vec<String> = (0..255).map(|n| format!("f{n}")).collect();
    for name in &names {
        let _ = write!(text, "[adapter.{name}]\nkind = \"fc\"\nport = \"p\"\n");
    }
    let names = names.join(",");
    let _ = write!(text, "[zone.z]\nmembers = \"{names},t\"\n[mask.m]\n");
    let _ = write!(text, "initiators = \"{names}\"\ntargets = \"t\"\n");
    let file = server.path("large.toml");
    std::fs::write(&file, text).unwrap();
    server.ok(&format!("apply {}", file.display()));
    let listening = |server: &Server| {
        let status = server.try_status().unwrap();
        let adapters = status["adapters"].as_array().unwrap();
        adapters.len() == 255 && adapters.iter().all(|adapter| adapter["state"] == "listening")
    };
    server.until("the adapters", listening);
    let pid = server.plane_pid();
    // A change reaches it, and so does the next control plane.
    server.ok("volume create w --kind null --size 1GiB");
    server.stop();
    server.serve(&[]);
    assert_eq!((server.plane_pid(), listening(&server)), (pid, true), "{}", server.log());
    assert_eq!(server.plane()["restarts"], 0);
    server.ok("stop --with-dataplanes");
    server.child.take().unwrap().wait().unwrap();
    assert!(UnixStream::connect(server.path("dataplane-main.sock")).is_err(), "it is gone");
}

#[test]
fn memory_is_the_same_through_a_link_to_the_folder_and_new_memory_is_empty() {
    let mut server = Server::start(&[]);
    server.ok("volume create r --kind ram --size 1MiB");
    let link = server.path("link");
    std::os::unix::fs::symlink(server.dir.path(), &link).unwrap();
    let ram = || {
        let folders = std::fs::read_dir("/dev/shm").unwrap().flatten();
        let name = server_name(&link);
        let ours = folders.filter(|entry| entry.file_name().to_string_lossy().contains(&name));
        ours.map(|entry| entry.path().join("r")).filter(|path| path.exists()).collect::<Vec<_>>()
    };
    let files = ram();
    assert_eq!(files.len(), 1, "{files:?}");
    std::fs::write(&files[0], vec![7; 1 << 20]).unwrap();
    server.stop();
    let dir = format!("--dir={}", link.display());
    server.serve(&[&dir]);
    assert_eq!(ram(), files, "one folder, one memory");
    assert_eq!(std::fs::read(&files[0]).unwrap()[0], 7);
    // What a crash leaves behind is not the next tenant's.
    server.ok("volume remove r");
    std::fs::write(&files[0], vec![7; 1 << 20]).unwrap();
    server.kill();
    server.serve(&[]);
    assert_eq!(ram(), Vec::<PathBuf>::new(), "swept");
    std::fs::write(&files[0], vec![7; 1 << 20]).unwrap();
    server.ok("volume create r --kind ram --size 1MiB");
    assert_eq!(std::fs::read(&files[0]).unwrap()[0], 0);
    server.ok("volume remove r");
}

/// What of a server's folder is in the name of its memory.
fn server_name(link: &std::path::Path) -> String {
    let folder = link.parent().unwrap().canonicalize().unwrap();
    folder.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_damaged_store_is_refused_and_the_last_good_state_comes_back() {
    let mut server = Server::start(&[]);
    server.ok("volume create v --kind null --size 1GiB");
    let pid = server.plane_pid();
    server.stop();
    let store = server.path("control.redb");
    std::fs::write(&store, vec![0; 1 << 20]).unwrap();
    let refused = server.run("serve");
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("damaged") || text.contains("the store"), "{text}");
    assert!(text.contains("serve --restore"), "{text}");
    assert!(server.ok("export --last-good").contains("[volume.v]"));
    server.serve(&["--restore"]);
    assert_eq!(server.plane_pid(), pid, "the data plane went on");
    assert_eq!(server.try_status().unwrap()["volumes"][0]["state"], "open");
    // A state without objects does not take them away either.
    server.stop();
    for name in ["control.redb", "control.good"] {
        std::fs::remove_file(server.path(name)).unwrap();
    }
    let refused = server.run("serve");
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("has no objects, but data plane `main` is there"), "{text}");
    kill_process(pid, Signal::KILL).unwrap();
    server.until("the end", |server| {
        !server.path("dataplane-main.sock").exists() || {
            UnixStream::connect(server.path("dataplane-main.sock")).is_err()
        }
    });
    server.serve(&[]);
}

/// A medium that takes its time: a file with a hole of this many bytes.
fn disc(server: &Server, bytes: u64) -> PathBuf {
    let path = server.path("disc.iso");
    std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
    path
}

fn copies(server: &Server) -> usize {
    std::fs::read_dir(server.path("media")).map_or(0, Iterator::count)
}

/// The only operation that there is.
fn operation(server: &Server) -> Value {
    let all: Value = serde_json::from_str(&server.ok("operation list -o json")).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    all[0].clone()
}

#[test]
fn a_copy_is_in_nobodys_way_and_one_that_a_killed_server_began_leaves_nothing() {
    let mut server = Server::start(&[]);
    let disc = disc(&server, 256 << 30);
    let create = format!("medium create m --path {} --copy --no-wait", disc.display());
    let begun = server.run(&create);
    assert!(begun.status.success(), "{begun:?}");
    let said = String::from_utf8(begun.stderr).unwrap();
    assert!(said.contains("operation 1 goes on"), "{said}");
    server.until("the copy", |server| copies(server) > 0);
    server.ok("volume create v --kind null --size 4096");
    let going = operation(&server);
    assert_eq!((&going["kind"], &going["step"]), (&"copy".into(), &"copying".into()), "{going}");
    server.kill();
    assert_eq!(copies(&server), 1, "part of a copy");
    server.serve(&[]);
    let waited = server.run("operation wait 1");
    assert_eq!(waited.status.code(), Some(1), "{waited:?}");
    let why = String::from_utf8(waited.stderr).unwrap();
    assert!(why.contains("the server ended while a medium was copied"), "{why}");
    assert_eq!(copies(&server), 0);
    assert_eq!(server.ok("medium list -o json").trim(), "[]");
    // The same, cancelled. Its number is a new one.
    let begun = server.run(&create);
    let said = String::from_utf8(begun.stderr).unwrap();
    let id = said.split(' ').nth(1).unwrap().parse::<u64>().unwrap();
    assert!(id > 1, "{said}");
    server.until("the copy", |server| copies(server) > 0);
    let cancelled = server.ok(&format!("operation cancel {id}"));
    assert!(cancelled.contains("undone"), "{cancelled}");
    assert_eq!(copies(&server), 0);
    assert_eq!(server.ok("medium list -o json").trim(), "[]");
    assert_eq!(server.run(&format!("operation cancel {id}")).status.code(), Some(5));
    assert_eq!(server.run("operation show 99").status.code(), Some(3));
}

#[test]
fn a_restart_in_which_the_server_is_killed_ends_with_one_data_plane() {
    let mut server = Server::start(&[]);
    server.ok("volume create v --kind null --size 4096");
    // At some of its moments.
    for delay_ms in [0, 5, 20, 60] {
        let before = server.plane_pid();
        server.ok("dataplane restart main --no-wait");
        std::thread::sleep(Duration::from_millis(delay_ms));
        server.kill();
        server.serve(&[]);
        let all: Value = serde_json::from_str(&server.ok("operation list -o json")).unwrap();
        let id = all.as_array().unwrap().last().unwrap()["id"].as_u64().unwrap();
        server.run(&format!("operation wait {id}"));
        let ended: Value =
            serde_json::from_str(&server.ok(&format!("operation show {id} -o json"))).unwrap();
        assert!(ended["step"] == "done" || ended["step"] == "undone", "{ended}");
        server.until("the data plane", |server| server.plane()["state"] == "running");
        server.ok(&format!("volume create w{delay_ms} --kind null --size 4096"));
        let after = server.plane_pid();
        // Whoever is nobody's child any more may wait for long to be buried.
        let alive = |pid: Pid| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
            stat.is_ok_and(|stat| !stat.contains(") Z"))
        };
        assert!(ended["step"] == "undone" || after != before, "{ended}");
        assert!(alive(after), "{ended}");
        assert!(after == before || !alive(before), "two data planes: {ended}\n{}", server.log());
    }
}
