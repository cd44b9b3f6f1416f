//! PVs that are away for good are removed and replaced.

use std::os::unix::fs::FileExt;

use super::*;

struct Bench {
    place: Place,
    told: Told,
    random: Random,
    identity: FileIdentity,
}

const LU: u64 = 3 * CHUNK_BYTES;

impl Bench {
    /// A pool of so many files in each failure group, with an LU that was written to, closed.
    fn new(groups: [usize; 2]) -> Bench {
        let mut place = Place::new(false, &vec![12; groups[0] + groups[1]]);
        place.spec.mirror = place.spec.pvs[groups[0]..].to_vec();
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        let (lu, identity) = new_lu(&pool, LU);
        let mut bench = TestBench::new(&*lu, MEMORY);
        let (mut told, mut random) = (Told::new(1 << 20), Random::new(29));
        (0..30).for_each(|_| told.write(&mut bench, &mut random));
        for chunk in 1..3 {
            bench.write(chunk * CHUNK_BYTES, &[7; 8192]).unwrap();
        }
        bench.close();
        drop(lu);
        pool.close();
        place.spec.fresh = false;
        Bench { place, told, random, identity }
    }

    /// A client writes, and finds all that it has written.
    fn go_on(&mut self, pool: &PoolHandle) {
        let lu = old_lu(pool, LU, &self.identity);
        let mut bench = TestBench::new(&*lu, MEMORY);
        (0..10).for_each(|_| self.told.write(&mut bench, &mut self.random));
        self.told.judge(&bench.read(0, 1 << 20).unwrap(), 9);
        for chunk in 1..3 {
            assert_eq!(bench.read(chunk * CHUNK_BYTES, 8192).unwrap(), [7; 8192]);
        }
        bench.close();
    }

    /// It is wanted no longer.
    fn leaves(&mut self, path: &Path) {
        self.place.spec.pvs.retain(|pv| pv != path);
        self.place.spec.mirror.retain(|pv| pv != path);
        self.place.spec.leaving = vec![path.to_owned()];
    }
}

/// What a file holds, as a sum.
fn content(path: &Path) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let (mut sum, mut part) = (DefaultHasher::new(), vec![0; 1 << 20]);
    let file = std::fs::File::open(path).unwrap();
    for at in 0..file.metadata().unwrap().len() / part.len() as u64 {
        file.read_exact_at(&mut part, at << 20).unwrap();
        // Mostly zeros.
        if let Some(first) = part.iter().position(|byte| *byte != 0) {
            (at, &part[first..]).hash(&mut sum);
        }
    }
    sum.finish()
}

fn find(pool: &PoolHandle, path: &Path) -> Option<crate::PvView> {
    pool.view().pvs.into_iter().find(|pv| pv.path == path)
}

#[track_caller]
fn is_gone(pool: &PoolHandle, path: &Path) {
    wait_for("it has left", || find(pool, path).is_none() && all_in(pool));
}

#[test]
fn a_pv_that_is_away_for_good_is_removed_and_a_stranger_afterwards() {
    let mut bench = Bench::new([1, 2]);
    let [gone, stays] = [1, 2].map(|pv| bench.place.spec.pvs[pv].clone());
    let aside = bench.place.folder.path().join("aside");
    std::fs::rename(&gone, &aside).unwrap();
    let had = content(&aside);
    let pools = Pools::start().expect("a thread");
    let pool = bench.place.open(&pools);
    bench.go_on(&pool);
    let away = find(&pool, &gone).expect("it is a member");
    assert_eq!(away.space.state, MemberState::Stale);
    pool.remove_pv(&away).unwrap();
    is_gone(&pool, &gone);
    assert_eq!(pool.view().trouble, None);
    bench.go_on(&pool);
    // It shows up where it was.
    std::fs::rename(&aside, &gone).unwrap();
    assert_eq!(pool.look_for_away(&Here, None, &mut |_| ()), 0, "nobody looks for it");
    let add = |pool: &PoolHandle| pool.add_pvs(&Here, None, &[(gone.clone(), 1)], &mut |_| ());
    let refused = add(&pool).unwrap_err().to_string();
    assert!(refused.contains("was removed from this pool while it was away"), "{refused}");
    pool.close();
    bench.leaves(&gone);
    let pool = bench.place.open(&pools);
    bench.go_on(&pool);
    assert_eq!(states(&pool), [MemberState::In, MemberState::In]);
    pool.close();
    assert_eq!(content(&gone), had, "not a byte was written to it");
    // Named as a member it keeps the pool from being opened, and is not touched either.
    bench.place.spec.pvs.push(gone.clone());
    let refused = bench.place.refused();
    assert!(refused.contains("is no member of the pool"), "{refused}");
    bench.place.spec.pvs.pop();
    assert_eq!(content(&gone), had);
    // Whoever needs nothing of it adds it as a new one.
    let pool = bench.place.open(&pools);
    let file = std::fs::File::options().write(true).open(&gone).unwrap();
    file.write_all_at(&[0; 4096], 0).unwrap();
    add(&pool).unwrap();
    bench.go_on(&pool);
    wait_for("all is in", || all_in(&pool) && pool.view().balance.is_none());
    assert_eq!(find(&pool, &stays).map(|pv| pv.space.state), Some(MemberState::In));
    pool.close();
}

/// Another comes, and the one that is gone leaves, however often the process dies meanwhile.
#[test]
fn a_pv_that_is_gone_is_replaced_whatever_dies() {
    let mut bench = Bench::new([1, 1]);
    let gone = bench.place.spec.pvs[1].clone();
    let pools = Pools::start().expect("a thread");
    let pool = bench.place.open(&pools);
    let more: Vec<PathBuf> =
        (0..2).map(|n| bench.place.folder.path().join(format!("more{n}"))).collect();
    more.iter().for_each(|path| file(path, 12));
    // Without this one the pool would not open any more.
    pool.add_pvs(&Here, None, &[(more[1].clone(), 1)], &mut |_| ()).unwrap();
    wait_for("it is in", || all_in(&pool) && pool.view().balance.is_none());
    pool.close();
    bench.place.spec.pvs.push(more[1].clone());
    bench.place.spec.mirror.push(more[1].clone());
    std::fs::remove_file(&gone).unwrap();
    let pool = bench.place.open(&pools);
    pool.add_pvs(&Here, None, &[(more[0].clone(), 1)], &mut |_| ()).unwrap();
    bench.place.spec.pvs.push(more[0].clone());
    bench.place.spec.mirror.push(more[0].clone());
    bench.go_on(&pool);
    pool.remove_pv(&find(&pool, &gone).expect("it is a member")).unwrap();
    bench.leaves(&gone);
    drop(pool);
    pools.stop();
    for round in 0..20 {
        let pools = Pools::start().expect("a thread");
        let pool = bench.place.open(&pools);
        let Some(pv) = find(&pool, &gone) else {
            assert_eq!(pool.view().pvs.len(), 3, "{round}: {:?}", pool.view().pvs);
            bench.go_on(&pool);
            is_gone(&pool, &gone);
            pool.close();
            return;
        };
        // As the data plane does that does not find it leaving.
        if pv.leaving.is_none() {
            pool.remove_pv(&pv).unwrap();
        }
        if round % 2 == 0 {
            bench.go_on(&pool);
        }
        // It dies a little later each time.
        for _ in 0..10 * round {
            if find(&pool, &gone).is_none() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(pool);
        pools.stop();
    }
    panic!("it never leaves");
}

/// Where the others have no room it is refused, and by name.
#[test]
fn what_has_no_room_elsewhere_is_not_removed() {
    let mut bench = Bench::new([1, 1]);
    let path = bench.place.spec.pvs[1].clone();
    let small = bench.place.folder.path().join("small");
    file(&small, 7);
    let pools = Pools::start().expect("a thread");
    let pool = bench.place.open(&pools);
    pool.add_pvs(&Here, None, &[(small.clone(), 1)], &mut |_| ()).unwrap();
    wait_for("it is in", || pool.view().balance.is_none());
    pool.close();
    bench.place.spec.pvs.push(small.clone());
    bench.place.spec.mirror.push(small);
    let aside = path.with_extension("aside");
    std::fs::rename(&path, &aside).unwrap();
    let pool = bench.place.open(&pools);
    let refused = pool.remove_pv(&find(&pool, &path).unwrap()).unwrap_err().to_string();
    let named = refused.contains(&path.display().to_string());
    assert!(named && refused.contains("has no room on the other PVs"), "{refused}");
    bench.go_on(&pool);
    std::fs::rename(&aside, &path).unwrap();
    returns(&pool);
    pool.close();
}

/// Two of a failure group are not there, and nobody knows which is where: each is looked for where the other is, until it is seen by its label.
#[test]
fn two_that_are_looked_for_by_each_others_path_return() {
    let mut bench = Bench::new([3, 3]);
    let gone = [4, 5].map(|pv| bench.place.spec.pvs[pv].clone());
    bench.place.spec.pvs.reverse();
    gone.iter().for_each(|path| std::fs::rename(path, path.with_extension("aside")).unwrap());
    let pools = Pools::start().expect("a thread");
    let pool = bench.place.open(&pools);
    bench.go_on(&pool);
    gone.iter().for_each(|path| std::fs::rename(path.with_extension("aside"), path).unwrap());
    returns(&pool);
    bench.go_on(&pool);
    let paths: Vec<PathBuf> = pool.view().pvs.into_iter().map(|pv| pv.path).collect();
    assert_eq!(paths[4..], gone);
    pool.close();
}

/// A PV hangs while another is added: it is away as at any other time, and the other is added. One that hangs while it is added itself is not.
#[test]
fn a_pv_that_hangs_while_another_comes_keeps_nobody_waiting() {
    if !is_root("disks that hang below a pool") {
        return;
    }
    let mirror = Mirror::new(1, 2);
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let (lu, _) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let (mut told, mut random) = (Told::new(1 << 20), Random::new(31));
    (0..20).for_each(|_| told.write(&mut bench, &mut random));
    let more = mirror.place.folder.path().join("more");
    file(&more, 10);
    let add = |path: PathBuf| pool.add_pvs(&Here, None, &[(path, 1)], &mut |_| ());
    let hangs = &mirror.groups[1][1];
    hangs.hold(Kind::Write);
    add(more).unwrap_or_else(|error| panic!("{error}"));
    let [one, other] = [MemberState::In, MemberState::Stale];
    assert_eq!(states(&pool), [one, one, other, one]);
    (0..20).for_each(|_| told.write(&mut bench, &mut random));
    hangs.release(Kind::Write);
    returns(&pool);
    let bad = Disk::new(10 * CHUNK_BYTES);
    bad.hold(Kind::Write);
    let refused = add(bad.path()).unwrap_err().to_string();
    assert!(refused.contains("cannot be written"), "{refused}");
    (0..20).for_each(|_| told.write(&mut bench, &mut random));
    bad.release(Kind::Write);
    assert_eq!((states(&pool), pool.view().trouble), (vec![one; 4], None));
    told.judge(&bench.read(0, 1 << 20).unwrap(), 9);
    bench.close();
    drop(lu);
    pool.close();
}
