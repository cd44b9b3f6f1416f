//! Pools under a running data plane: what is told of them, PVs that are looked for, and those that cannot leave yet.

use std::path::PathBuf;

use crate::common::raw::until;
use crate::common::{Server, load, short_load};
use protocol::message::{PoolSpec, PoolStatus, PvState, Request};
use spec::{LuSpec, VolumeSpec};
use testkit::{Disk, Kind, is_root};

const CHUNK: u64 = 64 << 20;

/// A new pool of one failure group.
pub(super) fn pool_of(pvs: &[PathBuf], shadow: PathBuf) -> PoolSpec {
    PoolSpec {
        name: "p0".to_owned(),
        uuid: "a1".repeat(16),
        server: "b2".repeat(16),
        pvs: pvs.to_vec(),
        shadow,
        fresh: true,
        ..PoolSpec::default()
    }
}

fn states(pool: &PoolStatus) -> Vec<(u8, PvState)> {
    pool.pvs.iter().map(|pv| (pv.group, pv.state)).collect()
}

#[test]
fn a_pv_that_failed_is_looked_for_and_used_again_while_a_client_works() {
    if !is_root("disks that fail below a data plane") {
        return;
    }
    let server = Server::new(2);
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let disks = [(); 4].map(|()| Disk::new(10 * CHUNK));
    let paths = disks.each_ref().map(Disk::path);
    let shadow = memory.path().join("shadow");
    let mut spec = PoolSpec { mirror: vec![paths[2].clone()], ..pool_of(&paths[..3], shadow) };
    server.must(Request::PutPool(spec.clone()));
    let mut volume = VolumeSpec::new("v", LuSpec { fresh: true, ..LuSpec::of("p0") });
    volume.bytes = Some(2 * CHUNK);
    server.must(Request::PutVolume(volume));
    let socket = server.put_adapter(|_| ());
    let pool = || server.status().pools.remove(0);
    assert_eq!(states(&pool()), [(0, PvState::Active), (0, PvState::Active), (1, PvState::Active)]);
    load(&socket, &short_load());
    disks[2].fail(Kind::Write, Some(rustix::io::Errno::IO.raw_os_error()));
    load(&socket, &short_load());
    assert_eq!(states(&pool())[2], (1, PvState::Away));
    let trouble = pool().trouble.expect("it is told");
    assert!(trouble.contains(&format!("PV {} is away", paths[2].display())), "{trouble}");
    disks[2].fail(Kind::Write, None);
    until("it is used again", || {
        load(&socket, &short_load());
        states(&pool())[2].1 != PvState::Away
    });
    // What is copied gives way to clients, down to a speed that may take minutes here.
    until("all is there twice", || {
        states(&pool())[2].1 == PvState::Active && pool().resync.is_none()
    });
    assert_eq!(pool().trouble, None);
    // Another one for the second group, while the pool is open.
    let free = pool().free_bytes;
    (spec.fresh, spec.joining) = (false, vec![paths[3].clone()]);
    spec.pvs.push(paths[3].clone());
    spec.mirror.push(paths[3].clone());
    server.must(Request::PutPool(spec));
    assert_eq!(states(&pool())[3], (1, PvState::Active));
    assert!(pool().free_bytes > free, "the second group was the smaller one");
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    server.must(Request::RemoveVolume { name: "v".into(), forget: false });
    server.must(Request::RemovePool { name: "p0".into() });
}

#[test]
fn a_removal_without_room_that_was_stored_holds_up_nothing_of_its_pool() {
    let server = Server::new(1);
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
    for path in &paths {
        std::fs::File::create_new(path).unwrap().set_len(10 * CHUNK).unwrap();
    }
    let mut spec = pool_of(&paths[..2], memory.path().join("shadow"));
    server.must(Request::PutPool(spec.clone()));
    let lu = LuSpec { fresh: true, thick: true, ..LuSpec::of("p0") };
    let mut volume = VolumeSpec::new("v", lu);
    volume.bytes = Some(9 * CHUNK);
    server.must(Request::PutVolume(volume.clone()));
    server.must(Request::RemoveVolume { name: "v".into(), forget: false });
    let pool = || server.status().pools.remove(0);
    // Who asks now is refused.
    let mut leaves = PoolSpec { fresh: false, leaving: vec![paths[0].clone()], ..spec.clone() };
    leaves.pvs.remove(0);
    let refused = format!("{:?}", server.ask(Request::PutPool(leaves.clone())));
    assert!(refused.contains("no room"), "{refused}");
    server.must(Request::RemovePool { name: "p0".into() });
    // What is told at the opening was promised before. What else is wanted is done.
    server.must(Request::PutPool(leaves.clone()));
    let trouble = pool().trouble.expect("it is told");
    assert!(trouble.contains("cannot be removed so far"), "{trouble}");
    assert!(pool().pvs[0].leaving.is_some_and(|now| now.moved_bytes == 0));
    server.must(Request::PutPool(leaves.clone()));
    spec = leaves;
    spec.pvs.push(paths[2].clone());
    spec.joining = vec![paths[2].clone()];
    server.must(Request::PutPool(spec));
    until("it leaves with the room that came", || {
        pool().pvs.len() == 2 && pool().trouble.is_none()
    });
    server.must(Request::RemovePool { name: "p0".into() });
}
