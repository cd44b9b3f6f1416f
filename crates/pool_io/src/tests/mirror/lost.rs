//! PVs that say of themselves that they have lost something: what a failed flush leaves.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use block::{Files, Testimony};
use memory::cache;
use rustix::fs::OFlags;

use super::*;

/// Files as a control plane gives them, which remembers what each has lost.
#[derive(Debug, Default)]
struct Remembers(Mutex<BTreeMap<PathBuf, (Arc<OwnedFd>, bool)>>);

impl Remembers {
    fn losses(&self) -> usize {
        let all = self.0.lock().unwrap();
        let lost = |(file, lost): &&(Arc<OwnedFd>, bool)| {
            *lost || cache::is_loss_noted(file.as_fd()).unwrap()
        };
        all.values().filter(lost).count()
    }
}

impl Files for Remembers {
    fn open(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        Here.open(path, flags)
    }

    fn again(&self, file: &File) -> io::Result<File> {
        Here.again(file)
    }

    fn text(&self, path: &Path) -> io::Result<String> {
        Here.text(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Here.remove(path)
    }

    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        Here.sync_folder_of(path)
    }

    fn testimony(&self, path: &Path, _: &File) -> io::Result<Testimony> {
        let mut all = self.0.lock().unwrap();
        if !all.contains_key(path) {
            all.insert(path.to_owned(), (Arc::new(File::open(path)?.into()), false));
        }
        let (file, lost) = all.get_mut(path).unwrap();
        *lost |= cache::has_lost(file.as_fd())? || cache::is_loss_noted(file.as_fd())?;
        Ok(Testimony { lost: *lost, witness: Some(Arc::clone(file)) })
    }

    fn made_up_for(&self, path: &Path) -> io::Result<()> {
        let mut all = self.0.lock().unwrap();
        let (file, lost) = all.get_mut(path).unwrap();
        *lost = false;
        cache::note_loss(file.as_fd(), false)
    }
}

/// What it has lost the pool knows, and writes again: nobody has to restart a data plane for that. A successor of one that died before it could say so opens the pool without that PV, which then returns.
#[test]
fn a_pv_whose_flush_failed_returns_as_any_other() {
    if !is_root("disks that fail below a pool") {
        return;
    }
    let files = Remembers::default();
    let mirror = Mirror::new(1, 1);
    let open = |pools: &Pools| {
        let opened = pools.open(&files, None, &mirror.place.spec, &mut |_| ());
        opened.unwrap_or_else(|error| panic!("{error}"))
    };
    let returns = |pool: &PoolHandle| {
        wait_for("it returns", || pool.look_for_away(&files, None, &mut |_| ()) == 0);
        wait_for("all is there twice", || all_in(pool));
    };
    let pools = Pools::start().expect("a thread");
    let pool = open(&pools);
    let (lu, _) = new_lu(&pool, 2 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let (mut told, mut random) = (Told::new(4 << 20), Random::new(5));
    let disk = &mirror.groups[1][0];
    for _ in 0..3 {
        (0..10).for_each(|_| told.write(&mut bench, &mut random));
        disk.fail(Kind::Flush, EIO);
        bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
        wait_for("it is away", || states(&pool) == [MemberState::In, MemberState::Stale]);
        assert_eq!(files.losses(), 1);
        (0..10).for_each(|_| told.write(&mut bench, &mut random));
        disk.fail(Kind::Flush, None);
        returns(&pool);
        assert_eq!(files.losses(), 0);
    }
    mirror.judge(&mut bench, &told);
    disk.fail(Kind::Flush, EIO);
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    wait_for("it is away", || states(&pool) == [MemberState::In, MemberState::Stale]);
    disk.fail(Kind::Flush, None);
    bench.close();
    drop(lu);
    pool.close();
    assert_eq!(files.losses(), 1);
    let pool = open(&pools);
    assert_eq!(states(&pool), [MemberState::In, MemberState::Stale]);
    returns(&pool);
    assert_eq!(files.losses(), 0);
    pool.close();
}
