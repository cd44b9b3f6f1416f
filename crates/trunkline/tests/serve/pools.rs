//! Storage pools, with both processes: made, written through clients, over deaths of the data plane, and with PVs that are missing.

use super::Server;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

const CHUNK: u64 = 64 << 20;

fn pv(server: &Server, name: &str, chunks: u64) -> PathBuf {
    let path = server.path(name);
    std::fs::File::create(&path).unwrap().set_len(chunks * CHUNK).unwrap();
    path
}

fn json(server: &Server, line: &str) -> Value {
    serde_json::from_str(&server.ok(line)).unwrap()
}

fn pool(server: &Server) -> Value {
    json(server, "pool show p0 -o json")
}

/// Loads an adapter's disk, compares what it reads with what it wrote, and comes back when the server died.
fn load(server: &Server, adapter: &str) -> Child {
    let socket = server.path(&format!("{adapter}.sock"));
    let line =
        "--mix 50 --queues 2 --depth 8 --length 96MiB --verify --reconnect 60s --time 4s -o json";
    let mut command = server.command();
    command.args(["bench", "run"]).arg(socket).args(line.split_whitespace());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn judge(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verify = &report["verify"];
    assert!(verify["blocks_checked"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(verify["blocks_corrupt"], 0, "{report}");
}

fn pool_of_two(server: &Server) -> [PathBuf; 2] {
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
        let before = server.plane_pid();
        kill_process(before, Signal::KILL).unwrap();
        server.until("another data plane", |server| {
            let plane = server.plane();
            plane["state"] == "running"
                && plane["pid"].as_i64() != Some(i64::from(before.as_raw_nonzero().get()))
        });
        server.until("its pool", |server| pool(server)["state"] == "open");
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
    judge(load(&server, "a0"));
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
    judge(load(&server, "a0"));
}
