//! PVs of storage pools that are made larger, with both processes and a client.

use super::super::Server;
use super::super::snapshots::refused;
use super::{CHUNK, json, judge, load_of, pool, pv};
use std::path::{Path, PathBuf};

fn enlarge(path: &Path, chunks: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_len(chunks * CHUNK).unwrap();
}

fn sizes(server: &Server) -> Vec<u64> {
    let list = json(server, "pv list -o json");
    let pvs = list.as_array().unwrap();
    pvs.iter().map(|pv| pv["size_bytes"].as_u64().unwrap() / CHUNK).collect()
}

/// A mirrored pool is full under a client; its PVs are made larger, and the client goes on.
#[test]
fn a_full_pool_goes_on_when_its_pvs_are_made_larger() {
    let server = Server::start(&[]);
    let pvs: [PathBuf; 2] = ["a", "b"].map(|name| pv(&server, name, 8));
    let [first, second] = pvs.each_ref().map(|pv| pv.display().to_string());
    server.ok(&format!("pool create p0 --pvs {first} --mirror {second}"));
    server.ok("lu create lu0 --pool p0 --size 320MiB");
    server.ok("adapter create a0 --volume lu0 --queues 2");
    refused(&server, "pv grow p1", "p1");
    // Three chunks of 64 MiB are left of eight.
    let load = load_of(&server, "a0", "--length 320MiB --time 8s");
    let waits = |server: &Server| pool(server)["space"]["paused"].as_u64() > Some(0);
    server.until("writes that wait for space", waits);
    assert!(!server.ok("pv grow p0").contains("MiB"), "none is larger");
    assert!(waits(&server));
    pvs.iter().for_each(|pv| enlarge(pv, 12));
    let told = server.ok("pv grow p0");
    assert!(told.contains(&first) && told.contains(&second), "{told}");
    assert!(told.contains("512") && told.contains("768"), "{told}");
    server.until("nothing that waits", |server| !waits(server));
    assert_eq!(sizes(&server), [12, 12]);
    server.kill_plane();
    judge(load);
    // When it is opened that is done by itself.
    enlarge(&pvs[0], 14);
    server.kill_plane();
    server.until("a larger PV", |server| sizes(server) == [14, 12]);
}
