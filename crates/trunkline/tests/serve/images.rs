//! LUs that come from files and go into them, with both processes, over deaths of either; and qcow2 with `qemu-img` itself.

use super::super::Server;
use super::super::pools::{CHUNK, json, kill_plane, pool, pool_of_two};
use super::{BLOCKS, Client, refused, with};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const SIZE: u64 = 2 * CHUNK + (2 << 20);

/// A sparse file with this in every chunk, and at its end.
fn image(server: &Server, name: &str, value: u8, bytes: u64) -> PathBuf {
    let path = server.path(name);
    let file = File::create(&path).unwrap();
    file.set_len(bytes).unwrap();
    for at in (0..bytes).step_by(CHUNK as usize).chain([bytes - 3000]) {
        file.write_all_at(&[value; 3000], at).unwrap();
    }
    path
}

fn same(one: &Path, other: &Path) {
    assert!(std::fs::read(one).unwrap() == std::fs::read(other).unwrap(), "{one:?} {other:?}");
}

fn qemu_img(args: &[&str], files: &[&Path]) {
    let run = Command::new("qemu-img").args(args).args(files).output();
    let run = run.expect("qemu-img, of the table in tests/tools");
    assert!(run.status.success(), "{args:?} {files:?}: {run:?}");
}

/// What nobody has finished.
fn parts(server: &Server) -> Vec<String> {
    let names = std::fs::read_dir(server.dir.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.contains(".trunkline-")).collect()
}

#[test]
fn an_lu_and_its_snapshots_go_through_files() {
    let server = Server::start(&[]);
    pool_of_two(&server);
    let from = image(&server, "from", 7, SIZE);
    let path = |name: &str| server.path(name).display().to_string();
    server.ok(&format!("lu import lu0 {} --pool p0", from.display()));
    assert_eq!(json(&server, "volume show lu0 -o json")["bytes"], SIZE);
    assert_eq!(pool(&server)["space"]["lus"][0]["used_bytes"], 3 * CHUNK);
    server.ok(&format!("lu export lu0 {}", path("to")));
    same(&from, &server.path("to"));
    assert!(std::fs::metadata(server.path("to")).unwrap().blocks() * 512 < 1 << 20);
    assert_eq!(std::fs::metadata(server.path("to")).unwrap().mode() & 0o777, 0o600);
    refused(&server, &format!("lu export lu0 {}", path("to")), "is there already");
    // A client goes on while what was is exported.
    server.ok("adapter create a0 --volume lu0");
    server.ok("snapshot create s0 --volumes lu0");
    let mut client = Client::of(&server, "a0");
    client.write(&with([1, 2, 3, 4, 5]), false);
    refused(&server, &format!("lu export lu0 {}", path("live")), "export a snapshot of it");
    refused(&server, &format!("lu import lu0 {}", from.display()), "--force");
    assert!(!server.path("live").exists() && parts(&server).is_empty());
    server.ok(&format!("lu export lu0 {} --snapshot s0", path("s0")));
    same(&from, &server.path("s0"));
    assert_eq!(client.read(&BLOCKS), [1, 2, 3, 4, 5]);
    server.ok(&format!("lu export lu0 {} --force", path("live")));
    let mut block = [0; 4096];
    File::open(server.path("live")).unwrap().read_exact_at(&mut block, CHUNK + 3 * 4096).unwrap();
    assert_eq!(block, [5; 4096]);
    drop(client);
    // Nothing of what was is left behind a shorter file.
    let short = image(&server, "short", 9, CHUNK + 1000);
    server.until("the client has gone", |server| {
        server.run(&format!("lu import lu0 {}", short.display())).status.success()
    });
    server.ok(&format!("lu export lu0 {}", path("padded")));
    File::options().write(true).open(&short).unwrap().set_len(SIZE).unwrap();
    same(&short, &server.path("padded"));
    let long = image(&server, "long", 1, SIZE + 512);
    refused(&server, &format!("lu import lu0 {}", long.display()), "make it as large");
    refused(&server, &format!("lu import lu0 {}", path("pv0")), "is a PV of pool `p0`");
    let trail = server.ok("events --of lu0");
    assert!(trail.contains("content=file"), "{trail}");
}

#[test]
fn qcow2_is_converted_and_one_that_names_other_files_is_refused() {
    let server = Server::start(&[]);
    pool_of_two(&server);
    let from = image(&server, "from", 7, SIZE);
    let [qcow2, to, backed] = ["from.qcow2", "to.qcow2", "backed.qcow2"].map(|it| server.path(it));
    qemu_img(&["convert", "-f", "raw", "-O", "qcow2"], &[&from, &qcow2]);
    let lines = [
        format!("lu import lu0 {} --pool p0 --thick", qcow2.display()),
        format!("lu export lu0 {} --format qcow2", to.display()),
    ];
    lines.iter().for_each(|line| drop(server.ok(line)));
    qemu_img(&["compare", "-f", "raw", "-F", "qcow2"], &[&from, &to]);
    assert_eq!(std::fs::metadata(&to).unwrap().mode() & 0o777, 0o600);
    qemu_img(&["create", "-f", "qcow2", "-F", "raw", "-b"], &[&from, &backed]);
    refused(&server, &format!("lu import lu0 {}", backed.display()), "a backing file");
    // What qemu-img says of one that is damaged is said.
    let file = File::options().write(true).open(&qcow2).unwrap();
    file.write_all_at(&[0xff; 8], 40).unwrap();
    refused(&server, &format!("lu import lu0 {}", qcow2.display()), "could not be converted");
    assert!(parts(&server).is_empty(), "{:?}", parts(&server));
}

/// An import that waits for space in a full pool: both processes die, and it is there still; it is cancelled, and goes with its LU.
#[test]
fn a_copy_goes_on_over_deaths_and_ends_with_its_lu() {
    let mut server = Server::start(&[]);
    pool_of_two(&server);
    let from = image(&server, "from", 7, 40 * CHUNK);
    let import = format!("lu import lu0 {} --no-wait -o json", from.display());
    server.ok("lu create lu0 --pool p0 --size 2560MiB");
    let waits = |server: &Server| {
        server.until("it waits for space", |server| {
            pool(server)["space"]["paused"].as_u64() > Some(0)
        });
    };
    let begin = |server: &Server| {
        let id = json(server, &import)["operation"].as_u64().unwrap();
        waits(server);
        id
    };
    let shown = |server: &Server, id: u64| json(server, &format!("operation show {id} -o json"));
    let id = begin(&server);
    assert_eq!(shown(&server, id)["step"], "importing");
    assert_eq!(shown(&server, id)["progress"]["total"], 40 * CHUNK);
    kill_plane(&server);
    waits(&server);
    // One that ends in good order ends its copies first.
    server.ok("dataplane restart main");
    waits(&server);
    server.kill();
    server.serve(&[]);
    waits(&server);
    assert_eq!(shown(&server, id)["step"], "importing");
    server.ok(&format!("operation cancel {id}"));
    server.until("it is cancelled", |server| shown(server, id)["step"] == "undone");
    assert!(shown(&server, id).to_string().contains("holds a part"));
    server.until("nothing waits", |server| pool(server)["space"]["paused"] == 0);
    let id = begin(&server);
    server.ok("lu remove lu0");
    server.until("it has ended", |server| shown(server, id)["step"] == "undone");
    server.until("its space", |server| pool(server)["space"]["used_bytes"] == 0);
    assert!(parts(&server).is_empty());
}
