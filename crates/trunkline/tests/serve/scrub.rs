//! Scrubs of storage pools, with both processes: what is found, told and kept.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::Server;
use super::pools::{json, kill_plane, pool, pv};
use super::snapshots::{Client, refused};

const PAGE: usize = 4096;

/// Changes one byte of each page of a PV that holds nothing but this value; how many there are.
fn change(path: &Path, value: u8) -> usize {
    let content = std::fs::read(path).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    let pages = content.chunks(PAGE).enumerate();
    let its = pages.filter(|(_, page)| page.iter().all(|byte| *byte == value));
    let places: Vec<usize> = its.map(|(page, _)| page * PAGE + 77).collect();
    for place in &places {
        file.write_all_at(&[!value], *place as u64).unwrap();
    }
    file.sync_all().unwrap();
    places.len()
}

#[test]
fn a_scrub_tells_what_differs_and_keeps_what_it_found() {
    let mut server = Server::start(&[]);
    let pvs = ["a", "b"].map(|name| pv(&server, name, 12));
    let [first, second] = pvs.each_ref().map(|path| path.display().to_string());
    server.ok(&format!("pool create p0 --pvs {first} --mirror {second}"));
    server.ok("lu create lu0 --pool p0 --size 130MiB");
    server.ok("adapter create a0 --volume lu0");
    let mut client = Client::of(&server, "a0");
    let blocks: Vec<(u64, u8)> = (0..64).map(|n| (n * 3 + 17_000 * (n % 2), 0xa7)).collect();
    client.write(&blocks, true);
    client.write(&[(1, 0x11), (7, 0x22)], true);
    refused(&server, "pool scrub nobody", "no pool `nobody`");
    let told = server.ok("pool scrub p0 --dry-run");
    assert!(told.contains("all that is written is read"), "{told}");
    assert!(pool(&server)["space"]["checks"]["last_scrub"].is_null());
    let told = server.ok("pool scrub p0");
    assert!(told.contains("nothing is wrong"), "{told}");
    let explained = server.ok("pool explain p0");
    assert!(!explained.contains("scrub"), "{explained}");
    // Behind the pool's back, on one leg.
    assert_eq!(change(&pvs[1], 0xa7), 64);
    let told = server.ok("pool scrub p0");
    assert!(told.contains("64 differ between the failure groups"), "{told}");
    let judge = |server: &Server| {
        let last = pool(server)["space"]["checks"]["last_scrub"].clone();
        assert_eq!(last["differs"], 64, "{last}");
        let places = last["places"].as_array().unwrap();
        let mut found: Vec<u64> = places.iter().map(|it| it["at"].as_u64().unwrap()).collect();
        let mut wanted: Vec<u64> = blocks.iter().map(|(block, _)| block * PAGE as u64).collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted);
        for place in places {
            assert_eq!((&place["what"], &place["volume"]), (&"differs".into(), &"lu0".into()));
            assert_eq!(place["pvs"], serde_json::json!([first, second]));
        }
        for line in ["pool explain p0", "lu explain lu0"] {
            let explained = server.ok(line);
            assert!(explained.contains("found 64 blocks of 4 KiB that differ"), "{explained}");
            assert!(explained.contains("Which of two copies is right"), "{explained}");
        }
        assert!(server.ok("pool show p0").contains("64 differ between"), "it is shown");
    };
    judge(&server);
    server.until("it is told", |server| {
        let events = server.ok("events --of p0");
        events.contains("legs_differ") && events.contains("48 more of these")
    });
    // It outlives the server.
    server.kill();
    server.serve(&[]);
    judge(&server);
    drop(client);
    // An operation that goes on over the death of either, and can be cancelled.
    for turn in 0..3 {
        let begun = json(&server, "pool scrub p0 --no-wait -o json");
        let id = begun["operation"].as_u64().expect("its number");
        match turn {
            0 => {
                server.kill();
                server.serve(&[]);
            }
            1 => _ = server.run(&format!("operation cancel {id}")),
            // What was written since the pool was opened is made the same after that, whatever differs.
            _ => kill_plane(&server),
        }
        server.run(&format!("operation wait {id}"));
        let shown = json(&server, &format!("operation show {id} -o json"));
        let last = pool(&server)["space"]["checks"]["last_scrub"].clone();
        assert_eq!(shown["kind"], "scrub");
        assert!(turn == 2 || last["differs"] == 64, "{last}");
        match shown["step"].as_str().unwrap() {
            "done" => {}
            step => assert!(turn == 1 && step == "undone", "{shown}"),
        }
    }
    // What is written anew is the same.
    Client::of(&server, "a0").write(&blocks, true);
    let told = server.ok("pool scrub p0");
    assert!(told.contains("nothing is wrong"), "{told}");
    assert!(!server.ok("lu explain lu0").contains("differ"));
}

/// Whether a PV has a record of checksums.
fn has_sums(path: &Path) -> bool {
    let content = std::fs::read(path).unwrap();
    content.chunks(PAGE).any(|page| page.starts_with(b"TLPOOLCS"))
}

#[test]
fn what_a_disk_has_changed_of_an_lu_with_checksums_is_seen_by_nobody_and_mended() {
    let server = Server::start(&[]);
    let pvs = ["a", "b"].map(|name| pv(&server, name, 12));
    let [first, second] = pvs.each_ref().map(|path| path.display().to_string());
    server.ok(&format!("pool create p0 --pvs {first} --mirror {second}"));
    server.ok("lu create lu0 --pool p0 --size 60MiB --checksums");
    refused(&server, "snapshot create s --volumes lu0", "has checksums, and no snapshots");
    assert!(server.ok("pool show p0").contains("thin, checksums"));
    server.ok("adapter create a0 --volume lu0");
    let mut client = Client::of(&server, "a0");
    let blocks: Vec<(u64, u8)> = (0..64).map(|n| (n * 3, 0xa7)).collect();
    client.write(&blocks, true);
    let lately = |server: &Server| pool(server)["space"]["after_crash_bytes"].as_u64().unwrap();
    server.until("it is known that it was changed", |server| lately(server) > 0);
    // When nobody has written for half a minute, and a checkpoint has said so.
    while lately(&server) > 0 {
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    assert!(pvs.iter().all(|path| has_sums(path)));
    let mut found = 0;
    for path in &pvs {
        assert_eq!(change(path, 0xa7), 64);
        found += 64;
        let numbers: Vec<u64> = blocks.iter().map(|(block, _)| *block).collect();
        for _ in 0..4 {
            assert!(client.read(&numbers).iter().all(|value| *value == 0xa7));
        }
        server.ok("pool scrub p0");
        let checks = pool(&server)["space"]["checks"].clone();
        assert_eq!((&checks["repaired"], &checks["differs"]), (&found.into(), &0.into()));
        assert!(server.ok("pool scrub p0").contains("nothing is wrong"));
    }
    server.until("it is told", |server| server.ok("events --of p0").contains("pv_repaired"));
}
