//! Uplinks of a server that has confined itself, in a network namespace of the test's own.

use super::*;

#[test]
fn an_uplink_stays_over_the_death_of_a_data_plane() {
    testkit::in_network_namespace("uplinks::in_a_namespace");
}

#[track_caller]
fn ip(words: &str) {
    let run = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(run.status.success(), "ip {words}: {run:?}");
}

fn kill_data_plane(server: &Server) {
    let dead = server.plane()["pid"].clone();
    kill_process(server.plane_pid(), Signal::KILL).unwrap();
    server.until("another data plane", |server| {
        let plane = server.plane();
        plane["state"] == "running" && plane["pid"] != dead
    });
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
    server.ok("uplink wait up0");
    let state = |server: &Server| server.try_status().unwrap()["uplinks"][0]["state"].clone();
    assert_eq!(state(&server), "connected");
    assert!(server.ok("uplink list").contains("connected"));
    server.ok("status --exit-code");
    // Statistics are by name.
    let same = server.run("uplink create ent0 --network net0 --pvid 2");
    assert_eq!(same.status.code(), Some(2), "{same:?}");
    let same = server.run("adapter create up0 --kind ethernet --network net0");
    assert_eq!(same.status.code(), Some(2), "{same:?}");
    // Somebody has it: what could be a loop is refused.
    let second = server.run("uplink create up1 --network net0 --interface up0");
    assert_eq!(second.status.code(), Some(2), "{second:?}");
    let used = server.run("network remove net0");
    let help = String::from_utf8_lossy(&used.stderr).into_owned();
    assert!(help.contains("`trunkline adapter remove ent0`"), "{help}");
    kill_data_plane(&server);
    server.until("its descriptor", connected);
    // One that cannot be connected any more is seen in the status.
    ip("link del up0");
    ip("link add up0 type bridge");
    kill_data_plane(&server);
    server.until("the failure", |server| state(server) == "failed");
    let status = server.run("status --exit-code");
    let page = String::from_utf8(status.stdout).unwrap();
    assert!(!status.status.success() && page.contains("ip tuntap add up0"), "{page}");
    ip("link del up0");
    server.until("another interface", connected);
    server.ok("uplink wait up0");
    server.ok("stats up0");
    server.ok("uplink remove up0");
    server.until("nobody behind the interface", |_| interface().contains("NO-CARRIER"));
}
