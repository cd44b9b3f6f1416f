//! What is left behind goes, and what belongs to somebody stays.

use super::*;
use crate::config::read;
use crate::fake::FakeDataPlane;
use protocol::message::AdapterState;

const DISK: &str = "[volume.r]\nkind=\"ram\"\nsize=4096\n[adapter.a]\nvolume=\"r\"\n";

fn folder() -> (tempfile::TempDir, Paths) {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths::in_one(dir.path().canonicalize().unwrap());
    (dir, paths)
}

fn touch(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "somebody's").unwrap();
}

#[test]
fn memory_reservations_and_half_copies_of_nobody_go() {
    let (_dir, paths) = folder();
    let uuid = "0123456789abcdef0123456789abcdef";
    let pool = format!("[pool.p]\npvs=\"/a\"\nuuid=\"{uuid}\"\n");
    let desired = read(&format!("{DISK}{pool}")).unwrap();
    let kept = [
        paths.ram("r"),
        // What is not on the PVs of a pool yet.
        paths.ram(&format!("pool-{uuid}")),
        paths.reservations("r"),
        paths.state.join("media/by-hand.iso"),
        paths.state.join("disk.img"),
    ];
    let gone = [paths.ram("old"), paths.reservations("old"), paths.state.join("media/m.part")];
    kept.iter().chain(&gone).for_each(|path| touch(path));
    // Its state is gone, and a data plane that lives has it open.
    let open = paths.ram("open");
    touch(&open);
    let file = std::fs::File::open(&open).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    sweep(&paths, &desired);
    assert!(open.exists());
    assert!(kept.iter().all(|path| path.exists()), "{kept:?}");
    assert!(!gone.iter().any(|path| path.exists()), "{gone:?}");
    std::fs::remove_dir_all(paths.ram("r").parent().unwrap()).unwrap();
}

#[test]
fn memory_of_another_server_is_not_in_the_way() {
    let ram = |run: &str| Paths::in_one(run).ram("x");
    let folders = ["/home/a-b", "/home/a/b", "/home/a"].map(ram);
    assert_ne!(folders[0], folders[1]);
    assert!(folders.iter().all(|path| path.parent() != Some(Path::new("/dev/shm"))));
}

#[test]
fn two_servers_do_not_share_a_folder_of_sockets() {
    let (_dir, paths) = folder();
    let other = Paths { state: paths.run.join("other"), ..paths.clone() };
    let first = claim(&paths).unwrap();
    let problem = claim(&other).unwrap_err().to_string();
    let it = format!("in use by another `trunkline serve`, process {}", std::process::id());
    assert!(problem.contains(&it), "{problem}");
    drop(first);
    // One after the other neither, while the first one's data plane is there.
    let fake = FakeDataPlane::start(&paths.dataplane("main")).unwrap();
    let problem = claim(&other).unwrap_err().to_string();
    assert!(problem.contains("belongs to the state in"), "{problem}");
    drop(claim(&paths).unwrap());
    fake.kill();
    claim(&other).unwrap();
}

#[test]
fn a_state_is_not_taken_to_other_sockets_while_its_data_planes_are_at_the_first() {
    let (_dir, paths) = folder();
    let elsewhere = Paths { run: paths.run.join("other"), ..paths.clone() };
    std::fs::create_dir(&elsewhere.run).unwrap();
    drop(claim(&paths).unwrap());
    let fake = FakeDataPlane::start(&paths.dataplane("main")).unwrap();
    let problem = claim(&elsewhere).unwrap_err().to_string();
    assert!(problem.contains("is still there in"), "{problem}");
    drop(claim(&paths).unwrap());
    fake.kill();
    drop(claim(&elsewhere).unwrap());
    // What it has there now counts, and what another state has in the first does not.
    let _fake = FakeDataPlane::start(&elsewhere.dataplane("main")).unwrap();
    assert!(claim(&paths).is_err());
    drop(claim(&elsewhere).unwrap());
}

#[test]
fn an_empty_state_does_not_take_what_a_data_plane_serves() {
    let (_dir, paths) = folder();
    let fake = FakeDataPlane::start(&paths.dataplane("main")).unwrap();
    belong(&paths, &Desired::default()).unwrap();
    let volume = crate::model::resolve::wanted(&read(DISK).unwrap(), "main", &paths).volumes;
    for spec in volume.values().cloned() {
        fake.books().handle(&Request::PutVolume(spec));
    }
    let problem = belong(&paths, &Desired::default()).unwrap_err().to_string();
    assert!(problem.contains("serves 1 volumes") && problem.contains("--restore"), "{problem}");
    belong(&paths, &read(DISK).unwrap()).unwrap();
}

#[test]
fn a_data_plane_that_was_being_removed_is_ended_and_one_with_a_client_is_not() {
    let (_dir, paths) = folder();
    let program = Path::new("/bin/false");
    let desired = read("[dataplane.wanted]\n").unwrap();
    let planes = ["main", "wanted", "gone", "busy"];
    let fakes = planes.map(|name| FakeDataPlane::start(&paths.dataplane(name)).unwrap());
    let wanted = crate::model::resolve::wanted(&read(DISK).unwrap(), "main", &paths);
    let mut books = fakes[3].books();
    wanted.volumes.values().cloned().for_each(|spec| drop(books.handle(&Request::PutVolume(spec))));
    wanted
        .adapters
        .values()
        .cloned()
        .for_each(|spec| drop(books.handle(&Request::PutAdapter(spec))));
    books.status.adapters[0].state = AdapterState::Running;
    drop(books);
    assert!(!end_data_planes(&paths, &desired, program), "one is left");
    assert_eq!(data_planes(&paths), ["busy", "main", "wanted"].map(str::to_owned).into());
    fakes[3].books().status.adapters[0].state = AdapterState::Listening;
    assert!(end_data_planes(&paths, &desired, program));
    assert_eq!(data_planes(&paths), ["main", "wanted"].map(str::to_owned).into());
}
