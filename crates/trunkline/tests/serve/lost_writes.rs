//! What the kernel's cache lost is known over the deaths of both processes, one at a time.

use super::Server;
use rustix::io::Errno;
use rustix::process::{Signal, kill_process};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use testkit::{Disk, Kind, Options, is_root};

fn disk() -> Disk {
    Disk::with(Options { bytes: 1 << 20, write_back: true })
}

/// Something of the file is lost, and who is told of that is neither of the two processes.
fn lose(disk: &Disk) {
    let mut other = File::options().write(true).open(disk.path()).unwrap();
    disk.fail(Kind::Write, Some(Errno::IO.raw_os_error()));
    other.write_all(&[7; 4096]).unwrap();
    other.sync_data().unwrap_err();
    disk.fail(Kind::Write, None);
}

/// How often the control plane has a file open.
fn held(server: &Server, path: &Path) -> usize {
    let folder = format!("/proc/{}/fd", server.child.as_ref().unwrap().id());
    let open = std::fs::read_dir(folder).unwrap().flatten();
    open.filter(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == path)).count()
}

/// Kills the data plane, and waits until the next one has the volume; whether that knows of a loss.
fn lost_after_a_death(server: &Server) -> bool {
    let before = server.plane_pid();
    kill_process(before, Signal::KILL).unwrap();
    lost_with_another(server, before)
}

fn lost_with_another(server: &Server, before: rustix::process::Pid) -> bool {
    let volume = |server: &Server| server.try_status().unwrap()["volumes"][0].clone();
    server.until("the next one", |server| {
        let plane = server.plane();
        let (running, pid) = (plane["state"] == "running", plane["pid"].as_i64());
        running
            && pid.is_some_and(|pid| pid != i64::from(before.as_raw_nonzero().get()))
            && volume(server)["bytes"].as_u64().is_some()
            && volume(server)["state"] != "opening"
    });
    volume(server)["reason"].as_str().is_some_and(|why| why.contains("a write was lost"))
}

#[test]
fn a_loss_is_known_over_deaths_until_a_restart_that_was_asked_for() {
    if !is_root("write-backs that fail while processes die") {
        return;
    }
    let disk = disk();
    let mut server = Server::start(&[]);
    let path = disk.path();
    server.ok(&format!("volume create v --kind file --cache buffered --path {}", path.display()));
    assert_eq!(held(&server, &path), 1);
    assert!(!lost_after_a_death(&server));
    lose(&disk);
    assert!(lost_after_a_death(&server));
    assert!(lost_after_a_death(&server), "the one before may have told nobody");
    // The control plane's own death.
    server.kill();
    server.serve(&[]);
    server.until("the witness", |server| held(server, &path) == 1);
    assert!(lost_after_a_death(&server));
    let before = server.plane_pid();
    server.ok("dataplane restart main");
    assert!(!lost_with_another(&server, before), "it has told its clients");
    // While there is no control plane; and what nobody has told is not over with a restart.
    server.kill();
    lose(&disk);
    server.serve(&[]);
    server.until("the witness", |server| held(server, &path) == 1);
    let before = server.plane_pid();
    server.ok("dataplane restart main");
    assert!(lost_with_another(&server, before));
    assert_eq!(held(&server, &path), 1);
}

#[test]
fn a_witness_goes_with_its_volume_and_with_its_file() {
    if !is_root("disks below the kernel") {
        return;
    }
    let (first, second) = (disk(), disk());
    let server = Server::start(&[]);
    let held = |disk: &Disk| held(&server, &disk.path());
    let create = |name: &str, disk: &Disk| {
        let path = disk.path();
        server.ok(&format!(
            "volume create {name} --kind file --cache buffered --path {}",
            path.display()
        ));
    };
    create("v", &first);
    assert_eq!((held(&first), held(&second)), (1, 0));
    server.ok("volume remove v");
    server.until("the first one is closed", |_| held(&first) == 0);
    create("v", &second);
    assert_eq!(held(&second), 1);
    lose(&second);
    // Another volume knows nothing of it.
    server.ok("volume remove v");
    server.until("the second one is closed", |_| held(&second) == 0);
    create("w", &second);
    assert!(!lost_after_a_death(&server));
    server.ok("volume set w --read-only");
    server.until("what is only read has none", |_| held(&second) == 0);
}

#[test]
fn a_loss_is_known_to_the_data_plane_that_a_volume_moves_to() {
    if !is_root("disks below the kernel") {
        return;
    }
    let disk = disk();
    let server = Server::start(&[]);
    let path = disk.path();
    let volume = || server.try_status().unwrap()["volumes"][0].clone();
    // A volume is where its adapter is, and without one in the first data plane.
    let moved = |order: &str, to: &str| {
        server.ok(order);
        server.until("it is there", |_| {
            let volume = volume();
            let open = volume["bytes"].as_u64().is_some() && volume["state"] != "opening";
            volume["dataplane"] == to && open
        });
        volume()["reason"].as_str().is_some_and(|why| why.contains("a write was lost"))
    };
    let to_x = "adapter create vhost0 --volume v --dataplane x";
    let to_main = "adapter remove vhost0";
    server.ok("dataplane create x");
    server.ok(&format!("volume create v --kind file --cache buffered --path {}", path.display()));
    assert!(!moved(to_x, "x"));
    lose(&disk);
    assert!(moved(to_main, "main"));
    assert!(moved(to_x, "x"), "and on, for who may not have been told");
    assert_eq!(held(&server, &path), 1);
    server.ok("dataplane restart x");
    assert!(!moved(to_main, "main"), "they were");
    server.ok("volume remove v");
    server.until("it is closed", |server| held(server, &path) == 0);
}
