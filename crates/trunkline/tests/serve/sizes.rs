//! Sizes that change while nobody is there to change them.

use super::*;

#[test]
fn a_volume_that_was_resized_while_its_data_plane_was_away_comes_back_with_the_new_size() {
    let server = Server::start(&[]);
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let (file, ram) = (server.path("v.img"), memory.path().join("w"));
    server
        .ok(&format!("volume create v --kind file --create --size 4MiB --path {}", file.display()));
    server.ok(&format!("volume create w --kind ram --size 4MiB --path {}", ram.display()));
    server.ok("adapter create a --volume v");
    server.ok("adapter create b --volume w");
    let pid = server.plane_pid();
    kill_process(pid, Signal::STOP).unwrap();
    server.until("silence", |server| server.plane()["state"] == "unresponsive");
    server.ok("volume resize v 2MiB --shrink --no-wait");
    server.ok("volume resize w 8MiB --no-wait");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 4 << 20, "nobody has done it");
    kill_process(pid, Signal::KILL).unwrap();
    server.until("the new sizes", |server| {
        let status = server.try_status().unwrap();
        let is = |at: usize, bytes: u64| {
            let volume = &status["volumes"][at];
            volume["state"] == "open" && volume["bytes"].as_u64() == Some(bytes)
        };
        is(0, 2 << 20) && is(1, 8 << 20) && status["adapters"][0]["state"] == "listening"
    });
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 2 << 20);
    assert_eq!(std::fs::metadata(&ram).unwrap().len(), 8 << 20);
    let status = server.ok("status");
    assert!(!status.contains("but size says"), "{status}");
}

#[test]
fn a_volume_that_cannot_get_the_size_that_it_was_given_is_there_with_the_old_one() {
    let server = Server::start(&[]);
    for name in ["v", "w"] {
        let path = server.path(&format!("{name}.img"));
        let create = "--kind file --create --size 4MiB --path";
        server.ok(&format!("volume create {name} {create} {}", path.display()));
    }
    server.ok("adapter create a --volume v");
    server.ok("adapter create s --kind scsi");
    server.ok("vtd create d --adapter s --volume w");
    let pid = server.plane_pid();
    kill_process(pid, Signal::STOP).unwrap();
    server.until("silence", |server| server.plane()["state"] == "unresponsive");
    // More than a file of ext4 can have.
    server.ok("volume resize v 512PiB --no-wait");
    server.ok("volume resize w 512PiB --no-wait");
    kill_process(pid, Signal::KILL).unwrap();
    server.until("the adapters", |server| {
        let adapters = &server.try_status().unwrap()["adapters"];
        [0, 1].iter().all(|at| adapters[at]["state"] == "listening")
    });
    server.until("the LUN", |server| {
        let map = server.ok("ioscli lsmap -vadapter s");
        map.lines().any(|line| line.starts_with("Status") && line.ends_with("Available"))
    });
    let size = serde_json::Value::from(4 << 20);
    let volumes = &server.try_status().unwrap()["volumes"];
    assert_eq!((&volumes[0]["bytes"], &volumes[1]["bytes"]), (&size, &size));
    let status = server.ok("status");
    assert!(status.contains("File too large"), "{status}");
}
