//! Uplinks of a server that has confined itself, in a network namespace of the test's own.

use super::*;

#[test]
fn an_uplink_stays_over_the_death_of_a_data_plane() {
    if !testkit::is_root("uplinks") {
        return;
    }
    let run = Command::new("unshare")
        .arg("--net")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "uplinks::in_a_namespace", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && told.contains("1 passed"), "{told}");
}

/// What `ip` says of an interface; nothing if it is not there.
fn interface() -> String {
    let run = Command::new("ip").args(["-o", "link", "show", "up0"]).output().unwrap();
    String::from_utf8(run.stdout).unwrap()
}

#[test]
#[ignore = "in a namespace"]
fn in_a_namespace() {
    let server = Server::start(&[]);
    server.ok("network create net0 --mtu 9000");
    server.ok("adapter create ent0 --kind ethernet --network net0");
    server.ok("uplink create up0 --network net0");
    let connected = |_: &Server| interface().contains("LOWER_UP");
    server.until("a descriptor of the interface", connected);
    assert!(interface().contains("mtu 9000"), "{}", interface());
    // Somebody has it: what could be a loop is refused.
    let second = server.run("uplink create up1 --network net0 --interface up0");
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    let used = server.run("network remove net0");
    let help = String::from_utf8_lossy(&used.stderr).into_owned();
    assert!(help.contains("`trunkline adapter remove ent0`"), "{help}");
    let dead = server.plane()["pid"].clone();
    kill_process(server.plane_pid(), Signal::KILL).unwrap();
    server.until("another data plane", |server| {
        let plane = server.plane();
        plane["state"] == "running" && plane["pid"] != dead
    });
    server.until("its descriptor", connected);
    server.ok("stats up0");
    server.ok("uplink remove up0");
    server.until("nobody behind the interface", |_| interface().contains("NO-CARRIER"));
}
