//! Mirrored storage pools, with both processes: failure groups that go and return under a client, and what is told of them.

use super::Server;
use super::pools::{json, judge, kill_plane, load_of, pool, pv};
use super::snapshots::refused;
use serde_json::Value;
use std::path::PathBuf;

/// A pool `p0` of four files, the last two of which are its second failure group.
fn mirrored_pool(server: &Server) -> [PathBuf; 4] {
    let pvs = ["a", "b", "c", "d"].map(|name| pv(server, name, 12));
    let list = |pvs: &[PathBuf]| format!("{},{}", pvs[0].display(), pvs[1].display());
    let (first, second) = (list(&pvs[..2]), list(&pvs[2..]));
    server.ok(&format!("pool create p0 --pvs {first} --mirror {second}"));
    pvs
}

/// What `pool list` says of it.
fn state(server: &Server) -> String {
    pool(server)["state"].as_str().unwrap_or_default().to_owned()
}

fn away(pvs: &[PathBuf]) {
    for path in pvs {
        std::fs::rename(path, path.with_extension("away")).unwrap();
    }
}

fn back(pvs: &[PathBuf]) {
    for path in pvs {
        std::fs::rename(path.with_extension("away"), path).unwrap();
    }
}

fn states_of_pvs(server: &Server) -> Vec<(String, String)> {
    let list = json(server, "pv list -o json");
    let text = |pv: &Value, key: &str| pv[key].as_str().unwrap_or_default().to_owned();
    let list = list.as_array().unwrap().clone();
    list.iter().map(|pv| (text(pv, "failgrp"), text(pv, "state"))).collect()
}

/// What is told of failure groups, in order.
fn kinds(server: &Server) -> Vec<String> {
    let events = server.ok("events --of p0");
    let kinds = events
        .split_whitespace()
        .filter(|word| ["pv_lost", "pv_returned", "resync_started", "resync_ended"].contains(word));
    kinds.map(str::to_owned).collect()
}

#[test]
fn a_pv_that_is_away_takes_nothing_from_clients_and_gets_what_it_missed() {
    let mut server = Server::start(&[]);
    let pvs = mirrored_pool(&server);
    server.ok("lu create lu0 --pool p0 --size 320MiB");
    server.ok("volume set lu0 --limit-iops 1000");
    server.ok("adapter create a0 --volume lu0 --queues 2");
    let groups = json(&server, "failgrp list -o json");
    let names: Vec<&str> =
        groups.as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["Default", "Mirror"], "{groups}");
    let load = load_of(&server, "a0", "--length 300MiB --time 12s");
    server.until("a client that has written", |server| {
        pool(server)["space"]["used_bytes"].as_u64() >= Some(2 * super::pools::CHUNK)
    });
    // It is not there when the pool is opened.
    away(&pvs[2..3]);
    server.kill_plane();
    server.until("its pool without a PV", |server| state(server) == "degraded");
    let all = states_of_pvs(&server).into_iter();
    let away = all.filter(|(group, state)| group == "Mirror" && state.starts_with("away since 20"));
    assert_eq!(away.count(), 1);
    let explained = server.ok("lu explain lu0");
    assert!(explained.contains("of failure group `Mirror` is away"), "{explained}");
    let status = server.run("status --exit-code");
    let text = String::from_utf8(status.stdout).unwrap();
    assert!(!status.status.success() && text.contains("bring disk or file back"), "{text}");
    // Both processes die meanwhile; it is not told twice.
    kill_plane_of_degraded(&server);
    server.kill();
    server.serve(&[]);
    server.until("the same", |server| state(server) == "degraded");
    back(&pvs[2..3]);
    server.until("both groups", |server| state(server) == "open");
    let told = kinds(&server);
    let count = |kind: &str| told.iter().filter(|one| *one == kind).count();
    assert_eq!((count("pv_lost"), count("pv_returned")), (1, 1), "{told:?}");
    judge(load);
    server.until("the end of it", |server| {
        server.ok("pool explain p0").contains("nothing is wrong with it")
    });
}

/// Of a pool that was closed with both its groups one is gone for good. Nobody but the administrator knows that it does not go on elsewhere.
#[test]
fn one_failure_group_is_opened_when_the_administrator_says_so() {
    let server = Server::start(&[]);
    let pvs = mirrored_pool(&server);
    server.ok("lu create lu0 --pool p0 --size 128MiB");
    let image = server.path("image");
    std::fs::write(&image, vec![7; 1 << 20]).unwrap();
    server.ok(&format!("lu import lu0 {}", image.display()));
    server.ok("pool open p0");
    away(&pvs[..2]);
    server.kill_plane();
    server.until("its pool to be refused", |server| state(server) == "failed");
    let explained = server.ok("pool explain p0");
    assert!(explained.contains("trunkline pool open p0 --force"), "{explained}");
    refused(&server, "pool open p0", "may have gone on without");
    server.ok("pool open p0 --force --dry-run");
    assert_eq!(state(&server), "failed");
    server.ok("pool open p0 --force");
    assert_eq!(state(&server), "degraded");
    server.until("its LU", |server| json(server, "lu show lu0 -o json")["state"] == "open");
    server.ok(&format!("lu export lu0 {}", image.with_extension("out").display()));
    assert!(std::fs::read(image.with_extension("out")).unwrap()[..1 << 20] == [7; 1 << 20]);
    // Nobody has to say it again, and whoever was away returns.
    server.kill_plane();
    server.until("the same", |server| state(server) == "degraded");
    back(&pvs[..2]);
    server.until("both groups", |server| state(server) == "open");
    server.ok(&format!("pool create p1 --pvs {}", pv(&server, "e", 12).display()));
    refused(&server, "pool open p1 --force", "has one failure group");
    refused(&server, "pool open p2 --force", "p2");
}

/// The data plane dies while its pool is degraded, and comes back with it.
fn kill_plane_of_degraded(server: &Server) {
    server.kill_plane();
    server.until("its pool", |server| state(server) == "degraded");
}

#[test]
fn pvs_are_added_and_removed_within_their_failure_groups() {
    let server = Server::start(&[]);
    let pvs = mirrored_pool(&server);
    let more = pv(&server, "e", 12);
    let refused = |line: &str, what: &str| {
        let output = server.run(line);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(what), "{line}: {text}");
    };
    let add = format!("pv add p0 {}", more.display());
    refused(&add, "it is not said in which failure group");
    refused(&format!("{add} --failgrp south"), "has no failure group `south`");
    server.ok("failgrp rename p0 Mirror south");
    server.ok(&format!("{add} --failgrp south"));
    let groups = |server: &Server| {
        let all = states_of_pvs(server);
        ["Default", "south"].map(|name| all.iter().filter(|(group, _)| group == name).count())
    };
    server.until("the new one", |server| groups(server) == [2, 3]);
    server.ok(&format!("pv remove p0 {} {}", pvs[0].display(), pvs[2].display()));
    server.until("their removal", |server| groups(server) == [1, 2]);
    refused(
        &format!("pv remove p0 {}", pvs[1].display()),
        "has no other PV in its failure group `Default`",
    );
    let last = format!("pv remove p0 {} {}", pvs[3].display(), more.display());
    refused(&last, "has no other PV in its failure group `south`");
    refused("failgrp remove p0 south", "cannot be without its second failure group");
    let listed = server.ok("ioscli failgrp -list -fmt :");
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(names, ["Default", "south"], "{listed}");
    assert!(server.ok("ioscli tier -list").contains("SYNCED"));
    server.ok("ioscli failgrp -modify -fg south -attr fg_name=FG2");
    assert!(server.ok("ioscli pv -list").contains("FG_NAME:FG2"));
    // One that is not mirrored stays so.
    let [plain, late] = ["plain", "late"].map(|name| pv(&server, name, 12));
    server.ok(&format!("pool create p1 --pvs {}", plain.display()));
    let late = late.display();
    refused(&format!("failgrp create p1 Mirror {late}"), "is not mirrored, and cannot be");
    refused(&format!("ioscli failgrp -create -sp p1 FG2: {late}"), "is not mirrored");
    kill_plane(&server);
    server.until("both pools", |server| {
        let all = states_of_pvs(server);
        let count = |name: &str| all.iter().filter(|(group, _)| group == name).count();
        [count("Default"), count("FG2")] == [2, 2]
    });
}

/// One is gone for good: another takes its place, whichever process dies meanwhile, and when it shows up it is a stranger.
#[test]
fn a_pv_that_is_away_for_good_is_replaced() {
    let mut server = Server::start(&[]);
    let pvs = mirrored_pool(&server);
    server.ok("lu create lu0 --pool p0 --size 320MiB");
    server.ok("adapter create a0 --volume lu0 --queues 2");
    let load = load_of(&server, "a0", "--length 300MiB --time 8s");
    server.until("a client that has written", |server| {
        pool(server)["space"]["used_bytes"].as_u64() >= Some(2 * super::pools::CHUNK)
    });
    away(&pvs[2..3]);
    server.kill_plane();
    server.until("its pool without a PV", |server| state(server) == "degraded");
    let explained = server.ok("pool explain p0");
    assert!(explained.contains("trunkline pv replace p0"), "{explained}");
    let (old, new) = (pvs[2].display(), pv(&server, "e", 12));
    server.ok(&format!("pv replace p0 {old} {}", new.display()));
    server.kill_plane();
    server.kill();
    server.serve(&[]);
    server.until("the new one in its place", |server| {
        let list = server.ok("pv list");
        state(server) == "open" && !list.contains(&old.to_string())
    });
    assert_eq!(states_of_pvs(&server).len(), 4);
    back(&pvs[2..3]);
    let refused = server.run(&format!("pv add p0 {old} --failgrp Mirror"));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success(), "{text}");
    assert!(text.contains("was removed from this pool while it was away"), "{text}");
    judge(load);
    server.until("the end of it", |server| {
        server.ok("pool explain p0").contains("nothing is wrong with it")
    });
}

#[test]
fn a_layout_is_held_against_rules_with_their_arithmetic() {
    let server = Server::start(&[]);
    server.ok("pool check");
    let pvs = mirrored_pool(&server);
    let rules = |server: &Server| -> Vec<String> {
        let output = server.run("pool check -o json");
        assert_eq!(output.status.code(), Some(8), "{output:?}");
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rules = found.as_array().unwrap().iter();
        rules.map(|one| one["rule"].as_str().unwrap().to_owned()).collect()
    };
    server.until("an open pool", |server| state(server) == "open");
    // All of them are files of one file system, which may or may not have room for them.
    let found = rules(&server);
    assert_eq!(found.first().map(String::as_str), Some("one-disk"), "{found:?}");
    let more = pv(&server, "e", 20);
    server.ok(&format!("pv add p0 {} --failgrp Mirror", more.display()));
    server.until("unequal groups", |server| {
        rules(server).iter().any(|rule| rule == "unequal-groups")
    });
    let text = String::from_utf8(server.run("pool check").stdout).unwrap();
    assert!(text.contains("advice: p0: unequal-groups: "), "{text}");
    assert!(text.contains("2816MiB - 1536MiB = 1280MiB that nothing can use"), "{text}");
    away(&pvs[3..]);
    server.kill_plane();
    server.until("a PV that is away", |server| rules(server).iter().any(|rule| rule == "pv-away"));
}
