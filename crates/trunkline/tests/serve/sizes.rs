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
