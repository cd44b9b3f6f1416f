//! Snapshots, clones and rollbacks of LUs, with both processes and clients, over deaths of either process.

#[path = "images.rs"]
mod images;

use super::Server;
use super::pools::{json, judge, kill_plane, load_of, pool, pool_of_two};
use partition::blk::{Queue, Request, SlotPlan, Status};
use partition::session::{Session, SessionOptions, StartPlan};
use serde_json::Value;
use std::time::Instant;

const CHUNK: u64 = 64 << 20;
const BLOCK: u32 = 4096;

/// A client of an adapter, with one request at a time.
pub(super) struct Client {
    _session: Session,
    queue: Queue,
}

impl Client {
    pub(super) fn of(server: &Server, adapter: &str) -> Client {
        let path = server.path(&format!("{adapter}.sock"));
        let slots = SlotPlan { slots: 4, data_bytes: BLOCK, data_segments: 1, indirect: false };
        let plan = StartPlan { queues: 1, queue_size: 64, threads: 1, slots };
        // A data plane that was just started listens when its volume is open.
        let began = Instant::now();
        let mut session = loop {
            match Session::connect(&path, &SessionOptions::default()) {
                Ok(session) => break session,
                Err(error) => assert!(began.elapsed().as_secs() < 60, "{adapter}: {error}"),
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        };
        let queue = session.start(&plan).unwrap().remove(0);
        Client { _session: session, queue }
    }

    fn ask(&mut self, request: Request, fill: Option<u8>) -> u8 {
        let slot = self.queue.take().unwrap();
        let data = self.queue.data(slot);
        fill.into_iter().for_each(|byte| data.fill(byte));
        self.queue.submit(slot, request).unwrap();
        self.queue.publish().unwrap();
        let began = Instant::now();
        let done = loop {
            if let Some(done) = self.queue.poll().unwrap() {
                break done;
            }
            assert!(began.elapsed().as_secs() < 60, "{request:?} is not answered");
            std::thread::sleep(std::time::Duration::from_micros(100));
        };
        assert_eq!(done.status, Status::Ok, "{request:?}");
        let mut bytes = vec![0; BLOCK as usize];
        data.read(0, &mut bytes);
        self.queue.give_back(slot);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "{request:?}: several values");
        bytes[0]
    }

    /// Writes these blocks of 4 KiB, each with its value, and flushes if that is wanted.
    pub(super) fn write(&mut self, blocks: &[(u64, u8)], flushes: bool) {
        for (block, value) in blocks {
            let offset = block * u64::from(BLOCK);
            self.ask(Request::Write { offset, bytes: BLOCK }, Some(*value));
        }
        if flushes {
            self.ask(Request::Flush, None);
        }
    }

    pub(super) fn read(&mut self, blocks: &[u64]) -> Vec<u8> {
        let read = |block: &u64| {
            let offset = block * u64::from(BLOCK);
            self.ask(Request::Read { offset, bytes: BLOCK }, None)
        };
        blocks.iter().map(read).collect()
    }
}

/// Blocks that share a part of 32 KiB, a block of 64 KiB, a chunk, or nothing.
pub(super) const BLOCKS: [u64; 5] = [0, 1, 9, 200, CHUNK / 4096 + 3];

pub(super) fn with(values: [u8; 5]) -> Vec<(u64, u8)> {
    BLOCKS.into_iter().zip(values).filter(|(_, value)| *value != 0).collect()
}

pub(super) fn refused(server: &Server, line: &str, what: &str) {
    let output = server.run(line);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && text.contains(what), "{line}: {text}");
}

fn snapshot(server: &Server, name: &str) -> Value {
    json(server, &format!("snapshot show {name} -o json"))
}

#[test]
fn an_lu_is_written_snapshotted_overwritten_rolled_back_and_cloned_over_deaths_of_both_processes() {
    let mut server = Server::start(&[]);
    pool_of_two(&server);
    for number in 0..2 {
        server.ok(&format!("lu create lu{number} --pool p0 --size 130MiB"));
        server.ok(&format!("adapter create a{number} --volume lu{number}"));
    }
    Client::of(&server, "a0").write(&with([1, 2, 3, 0, 5]), false);
    Client::of(&server, "a1").write(&with([11, 0, 0, 14, 0]), false);
    // Of both at one moment.
    server.ok("snapshot create s0 --volumes lu0,lu1");
    let shown = snapshot(&server, "s0");
    assert_eq!((&shown["state"], &shown["snapshot"]["pool"]), (&"made".into(), &"p0".into()));
    assert_eq!(shown["snapshot"]["lus"].as_array().unwrap().len(), 2, "{shown}");
    Client::of(&server, "a0").write(&with([0, 22, 0, 24, 0]), true);
    Client::of(&server, "a0").write(&with([0, 0, 33, 0, 0]), false);
    kill_plane(&server);
    assert_eq!(Client::of(&server, "a0").read(&BLOCKS), [1, 22, 33, 24, 5]);
    assert_eq!(Client::of(&server, "a1").read(&BLOCKS), [11, 0, 0, 14, 0]);
    // A clone begins with what the snapshot holds, and is written for itself.
    refused(&server, "lu clone c0 s0", "is of several LUs");
    server.ok("lu clone c0 s0:lu0");
    server.ok("adapter create ac --volume c0");
    assert_eq!(json(&server, "volume show c0 -o json")["bytes"], 130 << 20);
    assert_eq!(Client::of(&server, "ac").read(&BLOCKS), [1, 2, 3, 0, 5]);
    Client::of(&server, "ac").write(&with([91, 0, 0, 94, 0]), false);
    server.kill();
    kill_orphan(&mut server);
    assert_eq!(Client::of(&server, "ac").read(&BLOCKS), [91, 2, 3, 94, 5]);
    assert_eq!(Client::of(&server, "a0").read(&BLOCKS), [1, 22, 33, 24, 5]);
    // What was written since is gone with a rollback, of one LU or of all; under a client it takes a word.
    let client = Client::of(&server, "a0");
    refused(&server, "snapshot rollback s0 lu0", "it is in use");
    drop(client);
    server.until("its client's end", |server| {
        server.run("snapshot rollback s0 lu0").status.success()
    });
    let trail = server.ok("events --of lu0");
    assert!(trail.contains("change volume lu0 (content=snapshot s0)"), "{trail}");
    assert_eq!(Client::of(&server, "a0").read(&BLOCKS), [1, 2, 3, 0, 5]);
    kill_plane(&server);
    assert_eq!(Client::of(&server, "a0").read(&BLOCKS), [1, 2, 3, 0, 5]);
    assert_eq!(Client::of(&server, "ac").read(&BLOCKS), [91, 2, 3, 94, 5]);
    // Of both, or of none.
    Client::of(&server, "a0").write(&with([0, 42, 0, 44, 0]), false);
    let mut client = Client::of(&server, "a1");
    client.write(&with([51, 0, 53, 0, 0]), false);
    refused(&server, "snapshot rollback s0", "is in use");
    assert_eq!(Client::of(&server, "a0").read(&BLOCKS), [1, 42, 3, 44, 5]);
    drop(client);
    server.until("its client's end", |server| server.run("snapshot rollback s0").status.success());
    assert_eq!(Client::of(&server, "a0").read(&BLOCKS), [1, 2, 3, 0, 5]);
    assert_eq!(Client::of(&server, "a1").read(&BLOCKS), [11, 0, 0, 14, 0]);
    // What shares grows, and keeps what it holds.
    server.ok("lu resize lu0 192MiB");
    refused(&server, "lu resize lu0 64MiB --shrink", "shares what it holds");
    assert_eq!(Client::of(&server, "a0").read(&BLOCKS), [1, 2, 3, 0, 5]);
    // Its client is gone, and that is heard a little later.
    server.until("a0 is free", |it| it.run("adapter remove a0").status.success());
    refused(&server, "lu remove lu0", "s0");
    // A snapshot is removed, and its clone keeps what it holds.
    server.ok("snapshot remove s0");
    server.ok("lu remove lu0");
    assert_eq!(Client::of(&server, "ac").read(&BLOCKS), [91, 2, 3, 94, 5]);
    // Its client is gone, and that is heard a little later.
    server.until("ac is free", |it| it.run("adapter remove ac").status.success());
    server.ok("lu remove c0");
    server.until("their space", |server| {
        // Of the other LU there are chunk 0, and the layer above its snapshot, to which nothing was written.
        pool(server)["space"]["used_bytes"] == CHUNK
    });
    assert_eq!(Client::of(&server, "a1").read(&BLOCKS), [11, 0, 0, 14, 0]);
    let lus = pool(&server)["space"]["lus"].clone();
    assert_eq!(lus.as_array().unwrap().len(), 1, "{lus}");
}

/// The data plane of a control plane that was killed is adopted by the next, and then killed.
fn kill_orphan(server: &mut Server) {
    server.serve(&[]);
    kill_plane(server);
}

/// While clients write and compare, snapshots are made of both LUs, some go, and the data plane dies; what is above them is right all the time.
#[test]
fn snapshots_come_and_go_under_clients_while_the_data_plane_dies() {
    let server = Server::start(&[]);
    pool_of_two(&server);
    for number in 0..2 {
        server.ok(&format!("lu create lu{number} --pool p0 --size 128MiB"));
        server.ok(&format!("volume set lu{number} --limit-iops 1500"));
        server.ok(&format!("adapter create a{number} --volume lu{number} --queues 2"));
    }
    let loads = ["a0", "a1"].map(|adapter| load_of(&server, adapter, "--length 96MiB --time 6s"));
    server.until("clients", |server| {
        let status = server.try_status().unwrap();
        let adapters = status["adapters"].as_array().unwrap().clone();
        adapters.iter().all(|adapter| adapter["state"] == "running")
    });
    for round in 0..4 {
        server.ok(&format!("snapshot create s{round} --volumes lu0,lu1"));
        if round > 1 {
            server.ok(&format!("snapshot remove s{}", round - 2));
        }
        if round % 2 == 1 {
            kill_plane(&server);
        }
    }
    loads.into_iter().for_each(judge);
    assert_eq!(snapshot(&server, "s3")["state"], "made");
    let list = server.ok("ioscli snapshot -list -lu lu0");
    assert!(list.contains("lu0") && list.contains("Snapshot\ns2\ns3\n"), "{list}");
    // What a snapshot holds does not change any more: two clones of it are the same, whatever is written meanwhile.
    server.ok("lu clone c0 s3:lu0");
    server.ok("lu clone c1 s3:lu0");
    server.ok("adapter create c0 --volume c0");
    server.ok("adapter create c1 --volume c1");
    let some: Vec<u64> = (0..96 << 8).step_by(31).collect();
    let mut clients = ["c0", "c1"].map(|name| Client::of(&server, name));
    let same = clients.each_mut().map(|client| client.heads(&some));
    assert_eq!(same[0], same[1]);
    assert!(same[0].iter().any(|head| *head != 0), "something was written");
}

impl Client {
    /// The first bytes of blocks, whatever they hold.
    fn heads(&mut self, blocks: &[u64]) -> Vec<u64> {
        let mut heads = Vec::new();
        for block in blocks {
            let slot = self.queue.take().unwrap();
            let offset = block * u64::from(BLOCK);
            self.queue.submit(slot, Request::Read { offset, bytes: BLOCK }).unwrap();
            self.queue.publish().unwrap();
            while self.queue.poll().unwrap().is_none() {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
            let mut head = [0; 8];
            self.queue.data(slot).read(0, &mut head);
            self.queue.give_back(slot);
            heads.push(u64::from_le_bytes(head));
        }
        heads
    }
}

#[test]
fn what_is_no_snapshot_is_refused_and_nothing_is_left() {
    let server = Server::start(&[]);
    pool_of_two(&server);
    server.ok("lu create lu0 --pool p0 --size 64MiB");
    server.ok("volume create disk --kind ram --size 1MiB");
    refused(&server, "snapshot create s --volumes disk", "is no LU");
    refused(&server, "snapshot create s --volumes lu1", "lu1");
    refused(&server, "lu clone c s", "s");
    refused(&server, "volume create c --kind lu --pool p0 --snapshot s", "is not there");
    assert_eq!(json(&server, "snapshot list -o json"), Value::Array(Vec::new()));
    assert_eq!(pool(&server)["space"]["lus"].as_array().unwrap().len(), 1);
    server.ok("snapshot create s --volumes lu0");
    refused(&server, "snapshot rollback s disk", "is not of `disk`");
    refused(
        &server,
        "volume create c --kind lu --pool p0 --snapshot s --size 32MiB",
        "what its snapshot holds is 67108864 bytes large",
    );
    // By the original's names.
    let name = server.ok("ioscli snapshot -create -lu lu0 -spname p0");
    assert_eq!(name.trim(), "snapshot1");
    let shown = server.ok("ioscli lssp -bd");
    assert!(shown.contains("Snapshot\ns\nsnapshot1\n"), "{shown}");
    server.ok("ioscli snapshot -rollback snapshot1 -lu lu0");
    server.ok("ioscli snapshot -delete snapshot1");
    let names: Vec<Value> = json(&server, "snapshot list -o json").as_array().unwrap().clone();
    assert!(names.len() == 1 && names[0]["name"] == "s", "{names:?}");
    // What a configuration says of them is what there is.
    let config = server.ok("export");
    assert!(config.contains("[snapshot.s]"), "{config}");
    std::fs::write(server.path("again.toml"), config).unwrap();
    let told = server.ok(&format!("apply {} --dry-run", server.path("again.toml").display()));
    assert!(!told.contains("snapshot"), "{told}");
}
