//! Storage pools, with both processes: made, written through clients, resized, with PVs that come and go, over deaths of either process, and with PVs that are missing.

#[path = "grows.rs"]
mod grows;

use super::Server;
use super::snapshots::refused;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

pub(super) const CHUNK: u64 = 64 << 20;

pub(super) fn pv(server: &Server, name: &str, chunks: u64) -> PathBuf {
    let path = server.path(name);
    std::fs::File::create(&path).unwrap().set_len(chunks * CHUNK).unwrap();
    path
}

pub(super) fn json(server: &Server, line: &str) -> Value {
    serde_json::from_str(&server.ok(line)).unwrap()
}

pub(super) fn pool(server: &Server) -> Value {
    json(server, "pool show p0 -o json")
}

/// Loads an adapter's disk, compares what it reads with what it wrote, and comes back when the server died.
fn load(server: &Server, adapter: &str) -> Child {
    load_of(server, adapter, "--length 96MiB --time 4s")
}

/// … just enough that there is something.
fn short_load(server: &Server, adapter: &str) -> Child {
    load_of(server, adapter, "--length 96MiB --time 500ms")
}

pub(super) fn load_of(server: &Server, adapter: &str, how: &str) -> Child {
    let socket = server.path(&format!("{adapter}.sock"));
    let line = format!("--mix 50 --queues 2 --depth 8 --verify --reconnect 60s -o json {how}");
    let mut command = server.command();
    command.args(["bench", "run"]).arg(socket).args(line.split_whitespace());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub(super) fn judge(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verify = &report["verify"];
    assert!(verify["blocks_checked"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(verify["blocks_corrupt"], 0, "{report}");
}

pub(super) fn pool_of_two(server: &Server) -> [PathBuf; 2] {
    let pvs = [pv(server, "pv0", 16), pv(server, "pv1", 16)];
    server.ok(&format!("pool create p0 --pvs {},{}", pvs[0].display(), pvs[1].display()));
    pvs
}

#[test]
fn what_clients_were_answered_survives_deaths_of_the_data_plane() {
    let server = Server::start(&[]);
    pool_of_two(&server);
    server.ok("lu create lu0 --pool p0 --size 512MiB");
    server.ok("lu create lu1 --pool p0 --size 256MiB --thick");
    for (adapter, lu) in [("a0", "lu0"), ("a1", "lu1")] {
        server.ok(&format!("adapter create {adapter} --volume {lu} --queues 4"));
        let map = server.ok(&format!("ioscli lsmap -vadapter {adapter} -field backing -fmt :"));
        assert_eq!(map.trim(), lu);
    }
    let space = pool(&server)["space"].clone();
    assert_eq!(space["allocated_bytes"], 12 * CHUNK, "{space}");
    assert_eq!(space["used_bytes"], 0);
    let (size, free) =
        (space["size_bytes"].as_u64().unwrap(), space["free_bytes"].as_u64().unwrap());
    assert_eq!(size - free, 4 * CHUNK, "what a thick LU has set aside");
    let loads = [load(&server, "a0"), load(&server, "a1")];
    let running = |server: &Server| {
        let status = server.try_status().unwrap();
        let adapters = status["adapters"].as_array().unwrap().clone();
        adapters.iter().all(|adapter| adapter["state"] == "running")
    };
    server.until("clients", running);
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(300));
        kill_plane(&server);
    }
    loads.into_iter().for_each(judge);
    let space = pool(&server)["space"].clone();
    let used = |name: &str| {
        let lus = space["lus"].as_array().unwrap();
        lus.iter().find(|lu| lu["volume"] == name).unwrap()["used_bytes"].as_u64().unwrap()
    };
    // 96 MiB are in two chunks.
    assert_eq!([used("lu0"), used("lu1")], [2 * CHUNK, 2 * CHUNK], "{space}");
}

#[test]
fn an_lu_that_is_removed_gives_its_space_back() {
    let mut server = Server::start(&[]);
    pool_of_two(&server);
    server.ok("lu create lu0 --pool p0 --size 256MiB");
    server.ok("adapter create a0 --volume lu0");
    judge(short_load(&server, "a0"));
    let before = pool(&server)["space"].clone();
    assert_eq!(before["used_bytes"], 2 * CHUNK, "{before}");
    let refused = server.run("lu remove lu0");
    assert!(!refused.status.success(), "an adapter has it");
    server.ok("adapter remove a0");
    server.ok("lu remove lu0");
    server.until("its space", |server| pool(server)["space"]["used_bytes"] == 0);
    server.ok("lu create lu0 --pool p0 --size 256MiB");
    let lus = pool(&server)["space"]["lus"].clone();
    assert_eq!(lus.as_array().unwrap().len(), 1, "{lus}");
    assert!(lus[0]["number"].as_u64() > before["lus"][0]["number"].as_u64(), "another one: {lus}");
    assert_eq!((&lus[0]["used_bytes"], &lus[0]["volume"]), (&Value::from(0), &Value::from("lu0")));
    // A control plane that comes later finds all as it is, and sends nothing.
    server.kill();
    server.serve(&[]);
    assert_eq!(pool(&server)["space"]["lus"], lus);
    assert_eq!(pool(&server)["state"], "open");
    let refused = server.run("pool remove p0");
    assert!(!refused.status.success(), "an LU is in it");
    server.ok("lu remove lu0");
    server.ok("pool remove p0");
    assert_eq!(json(&server, "pool list -o json"), Value::Array(Vec::new()));
}

#[test]
fn what_holds_something_is_refused_by_name_and_no_pool_is_left() {
    let server = Server::start(&[]);
    let [good, bad] = [pv(&server, "good", 16), pv(&server, "bad", 16)];
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(&bad).unwrap();
    file.write_all_at(b"LABELONE", 512).unwrap();
    let create = |paths: [&Path; 2]| {
        server.run(&format!("pool create p0 --pvs {},{}", paths[0].display(), paths[1].display()))
    };
    let output = create([&good, &bad]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && text.contains("bad holds an LVM physical volume"),
        "{text}"
    );
    assert!(text.contains("wipefs"), "{text}");
    assert_eq!(json(&server, "pool list -o json"), Value::Array(Vec::new()));
    let output = create([&good, &good]);
    assert!(!output.status.success(), "one path twice");
    file.write_all_at(&[0; 8], 512).unwrap();
    let output = create([&good, &bad]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_pool_whose_pv_is_missing_has_failed_and_comes_back_with_it() {
    let mut server = Server::start(&[]);
    let pvs = pool_of_two(&server);
    server.ok("lu create lu0 --pool p0 --size 128MiB");
    server.ok("adapter create a0 --volume lu0");
    server.ok("stop --with-dataplanes");
    server.child.take().unwrap().wait().unwrap();
    let away = server.path("away");
    std::fs::rename(&pvs[1], &away).unwrap();
    server.serve(&[]);
    server.until("its failure", |server| pool(server)["state"] == "failed");
    let reason = pool(&server)["reason"].to_string();
    assert!(reason.contains("pv1"), "{reason}");
    // Something else in its place is not taken for it, and nothing is written there.
    pv(&server, "pv1", 16);
    server.until("the same", |server| {
        pool(server)["reason"].to_string().contains("not of this pool: it has no label")
    });
    let volume = json(&server, "volume show lu0 -o json");
    assert_eq!(volume["state"], "failed", "{volume}");
    std::fs::rename(&away, &pvs[1]).unwrap();
    server.until("the pool", |server| pool(server)["state"] == "open");
    server.until("its LU", |server| json(server, "volume show lu0 -o json")["state"] == "open");
    judge(short_load(&server, "a0"));
}

/// Kills the data plane, and waits for another with its pool.
pub(super) fn kill_plane(server: &Server) {
    server.kill_plane();
    server.until("its pool", |server| pool(server)["state"] == "open");
}

/// A change that is stored while the data plane is silent, and carried out when that goes on.
pub(super) fn promised(server: &Server, line: &str) {
    let plane = server.plane_pid();
    kill_process(plane, Signal::STOP).unwrap();
    server.until("silence", |server| server.plane()["state"] == "unresponsive");
    let output = server.run(line);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("stored; data plane `main` is unresponsive"), "{line}: {output:?}");
    kill_process(plane, Signal::CONT).unwrap();
    server.until("an answer", |server| server.plane()["state"] == "running");
    assert_eq!(server.plane_pid(), plane);
}

#[test]
fn a_removal_without_room_that_a_silent_data_plane_was_asked_for_holds_up_nothing_of_its_pool() {
    let mut server = Server::start(&[]);
    let pvs = pool_of_two(&server);
    server.ok("lu create lu0 --pool p0 --size 960MiB --thick");
    let remove = format!("pv remove p0 {}", pvs[0].display());
    let refused = |server: &Server| super::snapshots::refused(server, &remove, "has no room");
    // Whoever asks is told, each time.
    refused(&server);
    refused(&server);
    promised(&server, &remove);
    let waits = |server: &Server| {
        let pool = pool(server);
        pool["reason"].to_string().contains("pv0 cannot be removed so far")
            && !pool["space"]["pvs"][0]["leaving"].is_null()
    };
    server.until("that it waits", waits);
    server.ok("lu create lu1 --pool p0 --size 64MiB");
    server.ok("snapshot create s0 --volumes lu1");
    server.ok("pool set p0 --warn-percent 70");
    // It may stay after all, and who asks then is told again.
    server.ok(&format!("pv add p0 {}", pvs[0].display()));
    server.until("that it stays", |server| pool(server)["reason"].is_null());
    refused(&server);
    promised(&server, &remove);
    server.until("that it waits again", waits);
    // A control plane that comes later finds it so.
    server.kill();
    server.serve(&[]);
    server.until("the same", waits);
    let more = pv(&server, "pv2", 20);
    server.ok(&format!("pv add p0 {}", more.display()));
    server.until("that it leaves with the room that came", |server| {
        let pool = pool(server);
        pool["space"]["pvs"].as_array().is_some_and(|pvs| pvs.len() == 2)
            && pool["reason"].is_null()
    });
}

/// A client writes slowly and compares all the time, while its LU grows, PVs come, chunks spread over them, a PV leaves, and both processes die.
#[test]
fn pvs_come_and_go_and_lus_grow_under_clients_over_deaths_of_both_processes() {
    let mut server = Server::start(&[]);
    let pvs = pool_of_two(&server);
    let more = [pv(&server, "pv2", 12), pv(&server, "pv3", 40)];
    server.ok("lu create lu0 --pool p0 --size 640MiB");
    server.ok("volume set lu0 --limit-iops 1500");
    server.ok("adapter create a0 --volume lu0 --queues 2");
    let load = load_of(&server, "a0", "--length 600MiB --time 9s");
    server.until("a client", |server| {
        server.try_status().unwrap()["adapters"][0]["state"] == "running"
            && pool(server)["space"]["used_bytes"].as_u64() >= Some(8 * CHUNK)
    });
    // Two at once.
    let adding: Vec<Child> = more
        .iter()
        .map(|path| {
            let mut command = server.command();
            command.args(["pv", "add", "p0"]).arg(path).stdout(Stdio::null());
            command.stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in adding {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    server.ok("lu resize lu0 800MiB");
    kill_plane(&server);
    let there = |server: &Server| pool(server)["space"]["pvs"].as_array().unwrap().len();
    assert_eq!(there(&server), 4, "{}", pool(&server));
    server.until("chunks on the new ones, and an end of that", |server| {
        let space = &pool(server)["space"];
        if let Some(percent) = space["balance"]["percent"].as_u64() {
            assert!(percent <= 100, "{space}");
        }
        let all = space["pvs"].as_array().unwrap();
        let large = all.iter().find(|pv| pv["path"].as_str() == more[1].to_str()).unwrap();
        let [size, free] = ["size_bytes", "free_bytes"].map(|what| large[what].as_u64().unwrap());
        space["balance"].is_null() && size - free >= 7 * CHUNK
    });
    server.ok(&format!("pv remove p0 {}", pvs[0].display()));
    kill_plane(&server);
    server.kill();
    server.serve(&[]);
    server.until("the removal", |server| pool(server)["state"] == "open" && there(server) == 3);
    let list = json(&server, "pv list -o json");
    assert!(list.as_array().unwrap().iter().all(|pv| pv["state"] == "in"), "{list}");
    judge(load);
    let volume = json(&server, "volume show lu0 -o json");
    assert_eq!(volume["bytes"], 800 << 20, "{volume}");
    // Nobody has it any more, and nothing of the pool is on it; the client goes on.
    server.until("its release", |server| {
        server.run(&format!("pool create p1 --pvs {}", pvs[0].display())).status.success()
    });
    judge(short_load(&server, "a0"));
    // What cannot be is refused, and the list is what it was.
    let before = pool(&server)["attributes"]["pvs"].clone();
    let refused = |line: String, what: &str| {
        let output = server.run(&line);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(what), "{line}: {text}");
        assert_eq!(pool(&server)["attributes"]["pvs"], before, "{line}");
    };
    let small = pv(&server, "small", 2);
    refused(format!("pv add p0 {}", small.display()), "small is too small");
    refused(format!("pv add p0 {}", pvs[0].display()), "is already of pool `p0`");
    server.ok("lu create large --pool p0 --size 2GiB --thick");
    refused(format!("pv remove p0 {}", more[1].display()), "has no room on the other PVs");
    server.ok("lu remove large");
    refused(format!("pv remove p0 {}", small.display()), "has no PV");
    // Smaller only when that is said, and its space comes back.
    let output = server.run("lu resize lu0 64MiB");
    assert!(!output.status.success(), "it would lose something");
    server.ok("lu resize lu0 64MiB --shrink");
    server.until("its space", |server| pool(server)["space"]["used_bytes"] == CHUNK);
    // One takes the place of another.
    let last = pv(&server, "pv4", 16);
    server.ok(&format!("pv replace p0 {} {}", more[0].display(), last.display()));
    server.until("the replacement", |server| {
        let space = &pool(server)["space"];
        let paths: Vec<&str> =
            space["pvs"].as_array().unwrap().iter().filter_map(|pv| pv["path"].as_str()).collect();
        paths.len() == 3 && !paths.contains(&more[0].to_str().unwrap())
    });
}

/// Another server opens the pool by its UUID, and knows none of its LUs.
#[test]
fn lus_of_a_lost_store_are_nobody_s_and_are_adopted_or_removed_by_number() {
    let mut lost = Server::start(&[]);
    let pvs = pool_of_two(&lost);
    lost.ok("lu create lu0 --pool p0 --size 128MiB --thick");
    lost.ok("lu create kept --pool p0 --size 100MiB");
    lost.ok("adapter create a0 --volume kept");
    judge(load_of(&lost, "a0", "--length 64MiB --time 1s"));
    lost.ok("adapter remove a0");
    let naa = |server: &Server, volume: &str| {
        server.ok("adapter create v0 --kind scsi");
        server.ok(&format!("vtd create d0 --adapter v0 --volume {volume}"));
        let naa = json(server, &format!("volume show {volume} -o json"))["naa"].clone();
        server.ok("vtd remove d0");
        server.ok("adapter remove v0");
        naa.as_str().expect("it is a LUN").to_owned()
    };
    let known_by = naa(&lost, "kept");
    let [before, after] = ["before", "after"].map(|name| lost.path(name));
    lost.ok(&format!("lu export kept {}", before.display()));
    let uuid = pool(&lost)["attributes"]["uuid"].as_str().unwrap().to_owned();
    lost.ok("stop --with-dataplanes");
    lost.child.take().unwrap().wait().unwrap();
    let server = Server::start(&[]);
    let paths = pvs.map(|path| path.display().to_string()).join(",");
    server.ok(&format!("pool create p0 --pvs {paths} --uuid {uuid}"));
    let lus = pool(&server)["space"]["lus"].clone();
    let number = lus[0]["number"].as_u64().unwrap();
    assert!(lus.as_array().unwrap().len() == 2 && lus[0]["volume"].is_null(), "{lus}");
    assert!(server.ok("pool show p0").contains("nobody's"));
    // One is somebody's again, with what is in it.
    refused(&server, "lu adopt p0 77 db", "is not in pool p0 any more");
    server.ok(&format!("lu adopt p0 {} db --size 100MiB", number + 1));
    let db = json(&server, "volume show db -o json");
    assert_eq!(db["state"], "open", "{db}");
    assert_eq!(pool(&server)["space"]["lus"][1]["volume"], "db");
    refused(&server, &format!("lu adopt p0 {} again", number + 1), "is volume `");
    assert_eq!(naa(&server, "db"), known_by);
    server.ok(&format!("lu export db {}", after.display()));
    let [before, after] = [before, after].map(|path| std::fs::read(path).unwrap());
    assert!(before == after && before.iter().any(|byte| *byte != 0));
    server.ok("lu remove db");
    server.ok("lu create lu1 --pool p0 --size 64MiB");
    for (which, what) in [(number + 2, "is volume `lu1`"), (99, "has no LU 99")] {
        let output = server.run(&format!("lu purge p0 {number} {which}"));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(what), "{text}");
    }
    assert_eq!(pool(&server)["space"]["lus"].as_array().unwrap().len(), 2);
    server.ok(&format!("lu purge p0 {number}"));
    let trail = server.ok("events --of p0");
    assert!(trail.contains(&format!("change pool p0 (lus=without {number})")), "{trail}");
    let lus = pool(&server)["space"]["lus"].clone();
    assert!(lus.as_array().unwrap().len() == 1 && lus[0]["volume"] == "lu1", "{lus}");
}

#[test]
fn the_cause_is_told_and_not_what_follows_from_it() {
    let server = Server::start(&[]);
    let file = server.path("state.toml");
    let missing = server.path("missing");
    let state = format!(
        "[pool.p0]\npvs = \"{}\"\n\n[volume.lu0]\nkind = \"lu\"\npool = \"p0\"\nsize = \"256MiB\"\n",
        missing.display()
    );
    std::fs::write(&file, state).unwrap();
    let output = server.run(&format!("apply {}", file.display()));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && told.contains("missing: No such file"), "{told}");
}
