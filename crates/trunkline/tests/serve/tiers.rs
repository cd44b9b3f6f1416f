//! Storage pools of several tiers, with both processes.

#[path = "ssp.rs"]
mod ssp;

use super::Server;
use super::pools::{CHUNK, json, judge, load_of, pool, promised, pv};
use super::snapshots::refused;

/// An LU: its tier, what it has, and what of that is elsewhere, in chunks.
fn lu(server: &Server, volume: &str) -> (String, u64, u64) {
    let pool = pool(server);
    let lus = pool["space"]["lus"].as_array().unwrap();
    let lu = lus.iter().find(|lu| lu["volume"] == volume).unwrap();
    let chunks = |key: &str| lu[key].as_u64().unwrap() / CHUNK;
    (lu["tier"].as_str().unwrap().to_owned(), chunks("used_bytes"), chunks("astray_bytes"))
}

#[test]
fn an_lu_goes_from_tier_to_tier_under_a_client_and_over_deaths() {
    let mut server = Server::start(&[]);
    let [slow, fast] = ["slow", "fast"].map(|name| pv(&server, name, 24));
    server.ok(&format!("pool create p0 --pvs {}", slow.display()));
    server.ok("lu create lu0 --pool p0 --size 320MiB");
    server.ok("volume set lu0 --limit-iops 1000");
    server.ok("adapter create a0 --volume lu0 --queues 2");
    server.ok(&format!("tier create p0 fast {}", fast.display()));
    let tiers = json(&server, "tier list -o json");
    let names: Vec<&str> =
        tiers.as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["SYSTEM", "fast"], "{tiers}");
    let load = load_of(&server, "a0", "--length 300MiB --time 12s");
    server.until("a client that has written", |server| lu(server, "lu0").1 >= 2);
    assert_eq!(lu(&server, "lu0").0, "SYSTEM");
    // What is written from now on is above a snapshot, which goes along.
    server.ok("snapshot create s0 --volumes lu0");
    server.ok("lu move lu0 fast");
    server.until("its new tier", |server| lu(server, "lu0").0 == "fast");
    server.kill_plane();
    server.until("its pool", |server| pool(server)["state"] == "open");
    server.until("all of it there", |server| lu(server, "lu0").2 == 0);
    // It has another name, and both processes die.
    server.ok("tier rename p0 fast nvme");
    assert_eq!(json(&server, "volume show lu0 -o json")["attributes"]["tier"], "nvme");
    server.ok("ioscli lu -move -lu lu0 -dsttier SYSTEM");
    server.kill_plane();
    server.kill();
    server.serve(&[]);
    server.until("its pool", |server| pool(server)["state"] == "open");
    server.until("where it was", |server| {
        let (tier, _, astray) = lu(server, "lu0");
        (tier.as_str(), astray) == ("SYSTEM", 0)
    });
    judge(load);
    assert!(server.ok("ioscli tier -list").contains("nvme"));
    // A tier goes when nothing is in it.
    server.ok("tier remove p0 nvme");
    server.until("one tier", |server| {
        pool(server)["space"]["tiers"].as_array().is_some_and(|tiers| tiers.len() == 1)
    });
}

/// Who asks for a reserve for which there is no room is told, and nothing else is held up.
#[test]
fn a_reserve_without_room_is_refused_and_others_have_theirs() {
    let mut server = Server::start(&[]);
    let path = pv(&server, "pv", 20);
    server.ok(&format!("pool create p0 --pvs {}", path.display()));
    for lu in ["lu0", "lu1"] {
        server.ok(&format!("lu create {lu} --pool p0 --size 640MiB"));
    }
    server.ok("volume set lu0 --reserve 600MiB --pause-max 9");
    let free = |server: &Server| pool(server)["space"]["free_bytes"].as_u64().unwrap() / CHUNK;
    let left = free(&server);
    assert!(left < 10, "{left} chunks are left: the next one needs ten");
    for _ in 0..2 {
        refused(&server, "volume set lu1 --reserve 640MiB", "no room for the 640 MiB that LU 2");
        assert!(json(&server, "volume show lu1 -o json")["attributes"]["reserve"].is_null());
        server.until("a pool without trouble", |server| pool(server)["reason"].is_null());
        assert_eq!(free(&server), left);
    }
    server.ok("pool set p0 --throttle-percent 90");
    // It holds over deaths.
    server.kill_plane();
    server.kill();
    server.serve(&[]);
    server.until("its pool", |server| pool(server)["state"] == "open");
    server.until("what is set aside", |server| free(server) == left);
    server.ok("volume set lu0 --reserve 0");
    server.ok("volume set lu1 --reserve 640MiB");
}

#[test]
fn an_lu_without_room_in_a_tier_is_refused_it_and_one_that_was_promised_waits() {
    let server = Server::start(&[]);
    let [slow, fast, more] =
        [("slow", 20), ("fast", 10), ("more", 20)].map(|(n, c)| pv(&server, n, c));
    server.ok(&format!("pool create p0 --pvs {},fast:{}", slow.display(), fast.display()));
    server.ok("lu create lu0 --pool p0 --size 640MiB --thick");
    // Whoever asks is told, each time, and nothing is left of it.
    for _ in 0..2 {
        refused(&server, "lu move lu0 fast", "LU 1 does not go to another tier: there is no space");
        assert!(json(&server, "volume show lu0 -o json")["attributes"]["tier"].is_null());
        server.until("a pool without trouble", |server| pool(server)["reason"].is_null());
    }
    // What is stored while the data plane is silent holds up no other change.
    promised(&server, "lu move lu0 fast");
    server.until("what is wrong", |server| {
        let reason = pool(server)["reason"].to_string();
        reason.contains("does not go to another tier") && reason.contains("tried again by itself")
    });
    assert_eq!(lu(&server, "lu0").0, "SYSTEM");
    server.ok("lu create lu1 --pool p0 --size 64MiB");
    server.ok("lu move lu1 fast");
    server.until("another LU there", |server| lu(server, "lu1").0 == "fast");
    server.ok("pool set p0 --warn-percent 70");
    // It goes when there is room.
    server.ok(&format!("pv add p0 {} --tier fast", more.display()));
    server.until("it goes", |server| {
        let (tier, _, astray) = lu(server, "lu0");
        tier == "fast" && astray == 0 && pool(server)["reason"].is_null()
    });
}
