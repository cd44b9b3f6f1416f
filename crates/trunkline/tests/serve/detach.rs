//! LUs that are detached, and LUs whose snapshots are gone, with both processes and clients, over deaths of either process.

use super::Server;
use super::pools::{json, kill_plane, pool, pool_of_two};
use super::snapshots::{BLOCKS, Client, refused, with};

fn shares(server: &Server, name: &str) -> bool {
    let pool = pool(server);
    let mut lus = pool["space"]["lus"].as_array().unwrap().iter();
    lus.find(|lu| lu["volume"] == *name).unwrap()["shares"].as_bool().unwrap()
}

/// An LU with a snapshot, and a clone of it, each with an adapter.
fn lu_and_clone(server: &Server) {
    pool_of_two(server);
    server.ok("lu create lu0 --pool p0 --size 130MiB");
    server.ok("adapter create a0 --volume lu0");
    Client::of(server, "a0").write(&with([1, 2, 3, 4, 5]), false);
    server.ok("snapshot create s0 --volumes lu0");
    server.ok("lu clone c0 s0");
    server.ok("adapter create ac --volume c0");
    Client::of(server, "ac").write(&with([91, 0, 0, 94, 0]), false);
}

#[test]
fn a_clone_is_detached_and_an_lu_without_snapshots_is_what_it_was() {
    let server = Server::start(&[]);
    lu_and_clone(&server);
    server.ok("volume create ram0 --kind ram --size 1MiB");
    refused(&server, "lu detach ram0", "is no LU");
    refused(&server, "lu detach nobody", "no volume `nobody`");
    refused(&server, "lu detach lu0", "snapshots or clones need");
    let told = server.ok("lu detach c0 --dry-run");
    assert!(told.contains("shares = on -> off") && shares(&server, "c0"), "{told}");
    let mut client = Client::of(&server, "ac");
    server.ok("lu detach c0");
    assert_eq!(client.read(&BLOCKS), [91, 2, 3, 94, 5]);
    client.write(&with([0, 92, 0, 0, 0]), false);
    assert_eq!([shares(&server, "c0"), shares(&server, "lu0")], [false, true]);
    let trail = server.ok("events --of c0");
    assert!(trail.contains("change volume c0 (shares=off)"), "{trail}");
    server.ok("lu detach c0");
    drop(client);
    kill_plane(&server);
    assert_eq!(Client::of(&server, "ac").read(&BLOCKS), [91, 92, 3, 94, 5]);
    server.ok("lu resize c0 192MiB");
    // One that shares grows while its clients work, and keeps its size when it goes back.
    let mut client = Client::of(&server, "a0");
    server.ok("lu resize lu0 192MiB");
    refused(&server, "lu resize lu0 130MiB --shrink", "shares what it holds");
    assert_eq!(client.read(&BLOCKS), [1, 2, 3, 4, 5]);
    drop(client);
    server.ok("snapshot rollback s0");
    let size = |name| json(&server, &format!("volume show {name} -o json"))["bytes"].clone();
    assert_eq!(["lu0", "c0"].map(size), [192 << 20; 2].map(serde_json::Value::from));
    // A clone is as large as its snapshot, or larger.
    server.ok("snapshot create s2 --volumes lu0");
    refused(&server, "lu clone c2 s2 --size 130MiB", "is 201326592 bytes large");
    refused(&server, "lu clone c2 s2 --size 1EiB", "larger than its snapshot");
    refused(&server, "volume show c2", "no volume `c2`");
    server.ok("lu clone c2 s2 --size 256MiB");
    assert_eq!(size("c2"), serde_json::Value::from(256 << 20));
    server.ok("lu clone c3 s2");
    server.ok("lu resize c3 320MiB");
    server.ok("volume remove c2 --force");
    server.ok("volume remove c3 --force");
    server.ok("snapshot remove s2");
    // Nobody needs what the LU was written above any more.
    let mut client = Client::of(&server, "a0");
    client.write(&with([0, 22, 0, 0, 0]), false);
    server.ok("snapshot remove s0");
    server.until("its layers are gone", |server| !shares(server, "lu0"));
    client.write(&with([0, 0, 33, 0, 0]), false);
    assert_eq!(client.read(&BLOCKS), [1, 22, 33, 4, 5]);
    drop(client);
    server.ok("lu resize lu0 256MiB");
    kill_plane(&server);
    assert_eq!(Client::of(&server, "a0").read(&BLOCKS), [1, 22, 33, 4, 5]);
    assert_eq!(Client::of(&server, "ac").read(&BLOCKS), [91, 92, 3, 94, 5]);
    // And it has snapshots as before.
    server.ok("snapshot create s1 --volumes lu0,c0");
    refused(&server, "lu detach c0", "snapshots or clones need");
}

#[test]
fn detaching_is_an_operation_that_outlives_processes_and_can_be_cancelled() {
    let mut server = Server::start(&[]);
    lu_and_clone(&server);
    // Enough that it takes a while.
    let mut client = Client::of(&server, "a0");
    let blocks: Vec<(u64, u8)> = (4096..16384).step_by(16).map(|block| (block, 7)).collect();
    client.write(&blocks, false);
    server.ok("snapshot create s1 --volumes lu0");
    drop(client);
    for (turn, name) in (0..).zip(["d0", "d1", "d2", "d3"]) {
        server.ok(&format!("lu clone {name} s1"));
        let begun = json(&server, &format!("lu detach {name} --no-wait -o json"));
        let id = begun["operation"].as_u64().expect("its number");
        match turn {
            0 => kill_plane(&server),
            1 => {
                server.kill();
                server.serve(&[]);
            }
            2 => {
                let cancelled = server.run(&format!("operation cancel {id}")).status.success();
                server.run(&format!("operation wait {id}"));
                let shown = json(&server, &format!("operation show {id} -o json"));
                let undone = shown["step"] == "undone";
                assert!(undone || !cancelled, "{shown}");
                assert_eq!(shares(&server, name), undone, "{shown}");
                // Another one begins anew, and has all of it.
                server.ok(&format!("lu detach {name}"));
                assert!(!shares(&server, name));
                continue;
            }
            _ => {}
        }
        server.ok(&format!("operation wait {id}"));
        let shown = json(&server, &format!("operation show {id} -o json"));
        assert_eq!((&shown["kind"], &shown["step"]), (&"detach".into(), &"done".into()));
        server.until("it shares nothing", |server| !shares(server, name));
        server.ok(&format!("adapter create a{name} --volume {name}"));
        let found = Client::of(&server, &format!("a{name}")).read(&[0, 1, 4096, 4112, 16368]);
        assert_eq!(found, [1, 2, 7, 7, 7], "{name}");
    }
}
