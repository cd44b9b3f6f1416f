//! Pools with two failure groups: PVs that fail, hang, are gone and return, while clients see nothing of it.

use std::time::Duration;

use pool::format::MemberState;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use testkit::{Disk, Kind, is_root};

use super::*;

mod checks;
mod devices;
mod lost;
mod pace;
mod parting;
mod quiet;
mod reads;
mod sums;

const EIO: Option<i32> = Some(Errno::IO.raw_os_error());
const STEP: u64 = 16 << 10;
/// Map pages and blocks of the journal are there.
const BEHIND_SUPERBLOCKS: u64 = 34 << 20;

/// Disks of the first and of the second failure group, with their pool.
struct Mirror {
    groups: [Vec<Disk>; 2],
    place: Place,
}

impl Mirror {
    fn new(first: usize, second: usize) -> Mirror {
        let disks = |count| (0..count).map(|_| Disk::new(10 * CHUNK_BYTES)).collect::<Vec<_>>();
        let groups = [disks(first), disks(second)];
        let mut place = Place::new(false, &[]);
        place.spec.pvs = groups.iter().flatten().map(Disk::path).collect();
        place.spec.mirror = groups[1].iter().map(Disk::path).collect();
        Mirror { groups, place }
    }

    /// What an LU holds by one failure group alone.
    fn seen_by(&self, group: usize, bench: &mut TestBench, bytes: u64) -> Vec<u8> {
        self.groups[1 - group].iter().for_each(|disk| disk.fail(Kind::Read, EIO));
        let parts = (0..bytes / STEP).map(|at| bench.read(at * STEP, STEP as usize).unwrap());
        let all = parts.collect::<Vec<_>>().concat();
        self.groups[1 - group].iter().for_each(|disk| disk.fail(Kind::Read, None));
        all
    }

    #[track_caller]
    fn judge(&self, bench: &mut TestBench, told: &Told) {
        for group in [0, 1] {
            told.judge(&self.seen_by(group, bench, told.0.len() as u64), group);
        }
    }
}

/// What a client was told of, by byte.
struct Told(Vec<u8>);

impl Told {
    fn new(bytes: u64) -> Told {
        Told(vec![0; bytes as usize])
    }

    fn write(&mut self, bench: &mut TestBench, random: &mut Random) {
        let sectors = self.0.len() as u64 / 512;
        let at = random.below(sectors - 64);
        let bytes = (1 + random.below(63)) * 512;
        let data: Vec<u8> = (0..bytes).map(|_| 1 + random.below(255) as u8).collect();
        bench.write(at * 512, &data).unwrap_or_else(|error| panic!("at {at}: {error:?}"));
        let at = at as usize * 512;
        self.0[at..at + data.len()].copy_from_slice(&data);
        if random.below(9) == 0 {
            bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
        }
    }

    #[track_caller]
    fn judge(&self, found: &[u8], group: usize) {
        let other = self.0.iter().zip(found).position(|(told, found)| told != found);
        if let Some(at) = other {
            panic!("group {group} has {} and not {} at byte {at}", found[at], self.0[at]);
        }
    }
}

fn states(pool: &PoolHandle) -> Vec<MemberState> {
    pool.view().pvs.iter().map(|pv| pv.space.state).collect()
}

#[track_caller]
pub(super) fn wait_for(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

pub(super) fn all_in(pool: &PoolHandle) -> bool {
    states(pool).iter().all(|state| *state == MemberState::In) && pool.view().resync.is_none()
}

pub(super) fn returns(pool: &PoolHandle) {
    wait_for("it returns", || pool.look_for_away(&Here, None, &mut |_| ()) == 0);
    wait_for(&format!("all is there twice: {:?}", pool.view()), || all_in(pool));
}

#[test]
fn an_lu_with_two_legs_does_what_every_volume_does() {
    let mut place = Place::new(false, &[20, 20, 30]);
    place.spec.mirror = vec![place.spec.pvs[2].clone()];
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    assert_eq!(pool.view().pvs.iter().map(|pv| pv.space.group).collect::<Vec<_>>(), [0, 0, 1]);
    let free = pool.view().free;
    let make = || {
        let (spec, lu) = lu_spec(3 * CHUNK_BYTES, false);
        pool.open_lu(&spec, &lu).unwrap_or_else(|error| panic!("{error}")).0
    };
    let grow_to = Some(9 * CHUNK_BYTES + 8192);
    run(&make, &Options { seed: 5, grow_to, ..Options::default() });
    let used = pool.view().lus.iter().map(|lu| u64::from(lu.allocated)).sum::<u64>();
    assert!(used > 0);
    wait_for("what was given back is free", || pool.view().free + used == free);
    assert!(free <= 27 && all_in(&pool), "{free}: each chunk takes one of both groups");
    pool.close();
}

#[test]
fn a_leg_that_fails_in_the_middle_is_seen_by_nobody_and_gets_what_it_missed() {
    if !is_root("disks that fail below a pool") {
        return;
    }
    let mirror = Mirror::new(2, 1);
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let bytes = 2 * CHUNK_BYTES;
    let (lu, _) = new_lu(&pool, bytes);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let mut told = Told::new(1 << 20);
    let mut random = Random::new(7);
    for (group, errno) in [(1, Errno::IO), (0, Errno::NODEV), (1, Errno::NOSPC)] {
        (0..40).for_each(|_| told.write(&mut bench, &mut random));
        assert!(all_in(&pool));
        let disks = &mirror.groups[group];
        disks.iter().for_each(|disk| disk.fail(Kind::Write, Some(errno.raw_os_error())));
        (0..40).for_each(|_| told.write(&mut bench, &mut random));
        let away = |pv: &crate::PvView| pv.space.state == MemberState::Stale;
        let away: Vec<_> = pool.view().pvs.into_iter().filter(away).collect();
        assert!(!away.is_empty() && away.iter().all(|pv| usize::from(pv.space.group) == group));
        let trouble = pool.view().trouble.expect("it is told");
        assert!(trouble.contains("is away") && trouble.contains("is used again"), "{trouble}");
        // It is in order again only when somebody has looked.
        assert!(pool.look_for_away(&Here, None, &mut |_| ()) > 0, "it fails still");
        disks.iter().for_each(|disk| disk.fail(Kind::Write, None));
        told.judge(&mirror.seen_by(1 - group, &mut bench, 1 << 20), 1 - group);
        returns(&pool);
        assert_eq!(pool.view().trouble, None);
        mirror.judge(&mut bench, &told);
    }
    bench.close();
    drop(lu);
    pool.close();
}

/// The process dies while PVs are away, and finds them there again, or not; what was answered is there by either group.
#[test]
fn processes_die_while_pvs_are_away_and_return() {
    if !is_root("disks that fail below a pool") {
        return;
    }
    let mut mirror = Mirror::new(2, 2);
    let mut told = Told::new(1 << 20);
    let mut random = Random::new(11);
    let mut identity = None;
    for round in 0..8 {
        let pools = Pools::start().expect("a thread");
        let pool = mirror.place.open(&pools);
        let lu = match &identity {
            Some(known) => old_lu(&pool, CHUNK_BYTES, known),
            None => {
                let (lu, known) = new_lu(&pool, CHUNK_BYTES);
                identity = Some(known);
                lu
            }
        };
        let mut bench = TestBench::new(&*lu, MEMORY);
        let found = bench.read(0, 1 << 20).unwrap();
        told.judge(&found, 9);
        let disks = &mirror.groups[round % 2];
        (0..10).for_each(|_| told.write(&mut bench, &mut random));
        if round % 4 == 3 {
            disks.iter().for_each(|disk| disk.fail(Kind::Write, None));
            returns(&pool);
            mirror.judge(&mut bench, &told);
        } else {
            returns(&pool);
            disks.iter().for_each(|disk| disk.fail(Kind::Write, EIO));
            (0..10).for_each(|_| told.write(&mut bench, &mut random));
            assert!(states(&pool).contains(&MemberState::Stale));
            // They are in order when the next process comes.
            disks.iter().for_each(|disk| disk.fail(Kind::Write, None));
        }
        // It dies.
        bench.close();
        drop((lu, pool));
        pools.stop();
        mirror.place.spec.fresh = false;
    }
}

#[test]
fn a_pool_opens_without_a_pv_that_is_not_there_and_takes_it_back() {
    let mut place = Place::new(false, &[10, 10, 10, 10]);
    place.spec.mirror = place.spec.pvs[2..].to_vec();
    let aside = place.folder.path().join("aside");
    let mut told = Told::new(1 << 20);
    let mut random = Random::new(13);
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let (lu, identity) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    (0..30).for_each(|_| told.write(&mut bench, &mut random));
    bench.close();
    drop(lu);
    pool.close();
    drop(pools);
    place.spec.fresh = false;
    for gone in [2, 0, 1] {
        let path = place.spec.pvs[gone].clone();
        std::fs::rename(&path, &aside).unwrap();
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        let pv = pool.view().pvs.swap_remove(gone);
        assert_eq!((pv.path.as_path(), pv.space.state), (path.as_path(), MemberState::Stale));
        let trouble = pool.view().trouble.expect("it is told");
        assert!(trouble.contains("is away") && trouble.contains("No such file"), "{trouble}");
        let lu = old_lu(&pool, CHUNK_BYTES, &identity);
        let mut bench = TestBench::new(&*lu, MEMORY);
        told.judge(&bench.read(0, 1 << 20).unwrap(), 9);
        (0..30).for_each(|_| told.write(&mut bench, &mut random));
        assert_eq!(pool.look_for_away(&Here, None, &mut |_| ()), 1);
        // Another stands in its place.
        file(&path, 10);
        assert_eq!(pool.look_for_away(&Here, None, &mut |_| ()), 1);
        let trouble = pool.view().trouble.expect("it is told");
        assert!(trouble.contains("not the PV of the pool"), "{trouble}");
        // Whoever it belongs to can have it.
        let other = std::fs::File::open(&path).unwrap();
        flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
        drop(other);
        std::fs::rename(&aside, &path).unwrap();
        returns(&pool);
        assert_eq!(pool.view().trouble, None);
        told.judge(&bench.read(0, 1 << 20).unwrap(), 9);
        bench.close();
        drop(lu);
        pool.close();
    }
    // One group as a whole may have gone on alone; and of the other no one may be left who knows.
    for gone in [&[2, 3][..], &[1, 2, 3]] {
        let paths = || gone.iter().map(|pv| &place.spec.pvs[*pv]);
        paths().for_each(|path| std::fs::rename(path, path.with_extension("aside")).unwrap());
        assert!(place.refused().contains("No such file"), "{}", place.refused());
        paths().for_each(|path| std::fs::rename(path.with_extension("aside"), path).unwrap());
    }
    place.open(&Pools::start().expect("a thread")).close();
    // Unless somebody says that it did not; and where it did after all, both sides are named.
    let mut goes_on_without = |gone: [usize; 2], says: bool| {
        let paths = gone.map(|pv| place.spec.pvs[pv].clone());
        for path in &paths {
            std::fs::rename(path, path.with_extension("aside")).unwrap();
        }
        if says {
            assert!(place.refused().contains("pool open p0 --force"), "{}", place.refused());
        }
        place.spec.alone = says;
        let pools = Pools::start().expect("a thread");
        let pool = place.open(&pools);
        let lu = old_lu(&pool, CHUNK_BYTES, &identity);
        let mut bench = TestBench::new(&*lu, MEMORY);
        told.judge(&bench.read(0, 1 << 20).unwrap(), 9);
        bench.close();
        drop(lu);
        pool.close();
        place.spec.alone = false;
        for path in &paths {
            std::fs::rename(path.with_extension("aside"), path).unwrap();
        }
    };
    goes_on_without([2, 3], true);
    goes_on_without([2, 3], false);
    goes_on_without([0, 1], true);
    let refused = place.refused();
    let [one, other, third, last] = [0, 1, 2, 3].map(|pv| place.spec.pvs[pv].display().to_string());
    assert!(refused.contains(&format!("by {one}, {other} and by {third}, {last}")), "{refused}");
}

#[test]
fn a_pv_that_hangs_is_away_and_what_hung_there_goes_on_with_the_other_leg() {
    if !is_root("disks that hang below a pool") {
        return;
    }
    let mirror = Mirror::new(2, 1);
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let (lu, _) = new_lu(&pool, 2 * CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    let mut told = Told::new(1 << 20);
    let mut random = Random::new(17);
    (0..30).for_each(|_| told.write(&mut bench, &mut random));
    let hangs = &mirror.groups[1][0];
    for kind in [Kind::Write, Kind::Read] {
        hangs.hold(kind);
        // More than there are buffers for.
        let small = bench.buf(0, 4096);
        let at = |at: u64| CHUNK_BYTES + at * BLOCK_BYTES;
        let tags: Vec<_> = match kind {
            Kind::Write => (0..100).map(|n| bench.start(WRITE, at(n), 4096, &[small])).collect(),
            // Whichever leg they would be read from.
            _ => {
                mirror.groups[0].iter().for_each(|disk| disk.fail(Kind::Read, EIO));
                let tags = (0..100).map(|n| bench.start(OpKind::Read, at(n), 4096, &[small]));
                let tags = tags.collect();
                hangs.wait_held(kind, 1);
                mirror.groups[0].iter().for_each(|disk| disk.fail(Kind::Read, None));
                tags
            }
        };
        hangs.wait_held(kind, 1);
        for _ in &tags {
            let (_, result) = bench.finished().expect("it is answered");
            assert!(result.is_ok() || kind == Kind::Read, "{result:?}");
        }
        assert!(states(&pool).contains(&MemberState::Stale), "{kind:?}");
        (0..30).for_each(|_| told.write(&mut bench, &mut random));
        assert_eq!(pool.look_for_away(&Here, None, &mut |_| ()), 1, "it holds memory of ours");
        hangs.release(kind);
        returns(&pool);
        mirror.judge(&mut bench, &told);
    }
    // It closes, whatever hangs.
    hangs.hold(Kind::Write);
    let buf = bench.buf(0, 4096);
    let tag = bench.start(WRITE, 0, 4096, &[buf]);
    assert_eq!(bench.finished(), Some((tag, Ok(()))));
    bench.close();
    drop(lu);
    pool.close();
    hangs.release(Kind::Write);
}

/// Writes to the same blocks at once, from memory that changes meanwhile: whatever comes of it, both legs have the same.
#[test]
fn legs_are_the_same_whatever_clients_write_at_once() {
    if !is_root("disks that are slow below a pool") {
        return;
    }
    let mirror = Mirror::new(1, 1);
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let (lu, _) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &vec![9; 1 << 20]).unwrap();
    let (short, long) = (Duration::from_micros(50), Duration::from_millis(4));
    mirror.groups.iter().flatten().for_each(|disk| disk.slow(short, long));
    let other = bench.add(&*lu);
    let mut random = Random::new(19);
    for round in 0..200 {
        let op = if random.below(8) == 0 { ZEROES } else { WRITE };
        let (at, bytes) = (random.below(24) * 512, (1 + random.below(40)) * 512);
        let from = (round % 16) * (64 << 10);
        let buf = bench.buf(from, bytes as usize);
        buf.fill(round as u8);
        bench.start_on(if random.below(2) == 0 { 0 } else { other }, op, at, bytes, &[buf]);
        while bench.in_flight() > 12 {
            bench.finished().unwrap().1.unwrap();
            bench.buf(((round + 3) % 16) * (64 << 10), 32 << 10).fill(round as u8 ^ 0x55);
        }
    }
    while let Some((_, result)) = bench.finished() {
        result.unwrap();
    }
    let [first, second] = [0, 1].map(|group| mirror.seen_by(group, &mut bench, 64 << 10));
    let other = first.iter().zip(&second).position(|(one, two)| one != two);
    assert_eq!(other, None, "at that byte the legs differ");
    bench.close();
    drop(lu);
    pool.close();
}

#[test]
fn pvs_join_a_failure_group_that_there_is() {
    let mut place = Place::new(false, &[10, 10]);
    place.spec.mirror = vec![place.spec.pvs[1].clone()];
    let pools = Pools::start().expect("a thread");
    let pool = place.open(&pools);
    let more: Vec<PathBuf> = (0..3).map(|n| place.folder.path().join(format!("more{n}"))).collect();
    more.iter().for_each(|path| file(path, 10));
    let add = |pool: &PoolHandle, path: &PathBuf, group| {
        pool.add_pvs(&Here, None, &[(path.clone(), group)], &mut |_| ())
    };
    let free = pool.view().free;
    add(&pool, &more[0], 1).unwrap();
    assert_eq!(pool.view().free, free, "there is no more room in the first group");
    add(&pool, &more[1], 0).unwrap();
    assert!(pool.view().free > free);
    let groups: Vec<u8> = pool.view().pvs.iter().map(|pv| pv.space.group).collect();
    assert_eq!(groups, [0, 1, 1, 0]);
    pool.close();
    let plain = Place::new(false, &[10]);
    let mut spec = plain.spec.clone();
    spec.uuid = "ee".repeat(16);
    let pool =
        pools.open(&Here, None, &spec, &mut |_| ()).unwrap_or_else(|error| panic!("{error}"));
    let refused = add(&pool, &more[2], 1).unwrap_err().to_string();
    assert!(refused.contains("cannot begin another failure group"), "{refused}");
    pool.close();
    let mut alone = Place::new(false, &[10]);
    alone.spec.mirror = alone.spec.pvs.clone();
    assert!(alone.refused().contains("second failure group"), "{}", alone.refused());
}

/// A PV loses what was in its cache and fails, and the process dies before any superblock can say so: the next one does without it, although it is in order again.
#[test]
fn a_pv_that_was_lost_just_before_the_process_died_is_not_trusted() {
    if !is_root("disks that fail below a pool") {
        return;
    }
    let mut mirror = Mirror::new(1, 1);
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    let (lu, identity) = new_lu(&pool, CHUNK_BYTES);
    let mut bench = TestBench::new(&*lu, MEMORY);
    bench.write(0, &[0xa5; 4096]).unwrap();
    bench.run(OpKind::Flush, 0, 0, &[]).unwrap();
    bench.write(0, &[0x5a; 4096]).unwrap();
    let [first, second] = [0, 1].map(|group| &mirror.groups[group][0]);
    let place = (0..10).map(|chunk| chunk * CHUNK_BYTES);
    let place = place.clone().find(|at| first.content(*at, 4096) == [0x5a; 4096]);
    let place = place.expect("it is there");
    // Not one byte more gets to the other, and so nothing is answered.
    second.hold(Kind::Write);
    first.fail(Kind::Write, EIO);
    let buf = bench.buf(0, 4096);
    bench.start(WRITE, BLOCK_BYTES, 4096, &[buf]);
    second.wait_held(Kind::Write, 2);
    drop((bench, lu));
    drop(pool);
    pools.stop();
    second.fail(Kind::Write, EIO);
    second.release(Kind::Write);
    [first, second].iter().for_each(|disk| disk.fail(Kind::Write, None));
    first.fill(place, &[0xa5; 4096]);
    mirror.place.spec.fresh = false;
    let pools = Pools::start().expect("a thread");
    let pool = mirror.place.open(&pools);
    assert_eq!(states(&pool), [MemberState::Stale, MemberState::In]);
    let lu = old_lu(&pool, CHUNK_BYTES, &identity);
    let mut bench = TestBench::new(&*lu, MEMORY);
    assert_eq!(bench.read(0, 4096).unwrap(), [0x5a; 4096], "what was answered");
    returns(&pool);
    for group in [0, 1] {
        assert_eq!(mirror.seen_by(group, &mut bench, 4096 * 4)[..4096], [0x5a; 4096]);
    }
    bench.close();
    drop(lu);
    pool.close();
}

#[test]
fn a_pool_opens_without_a_pv_that_fails_or_hangs_meanwhile() {
    if !is_root("disks that fail and hang below a pool") {
        return;
    }
    for first in [2, 1] {
        let mut mirror = Mirror::new(first, 1);
        let bad = mirror.groups[1].pop().expect("one");
        let mut told = Told::new(1 << 20);
        let mut random = Random::new(23);
        let mut identity = None;
        for round in 0..5 {
            match round {
                1 => bad.fail(Kind::Write, EIO),
                2 => bad.fail(Kind::Read, EIO),
                3 => bad.hold(Kind::Flush),
                4 => bad.hold_from(Kind::Read, BEHIND_SUPERBLOCKS),
                _ => {}
            }
            if round == 2 {
                // It may have gone on alone, for all that is known.
                let refused = mirror.place.refused();
                assert!(refused.contains("cannot be read"), "{refused}");
                bad.fail(Kind::Read, None);
            }
            let pools = Pools::start().expect("a thread");
            let pool = mirror.place.open(&pools);
            mirror.place.spec.fresh = false;
            let without = ![0, 2].contains(&round);
            assert_eq!(states(&pool)[first] == MemberState::Stale, without, "{round}");
            let lu = match &identity {
                Some(known) => old_lu(&pool, CHUNK_BYTES, known),
                None => {
                    let (lu, known) = new_lu(&pool, CHUNK_BYTES);
                    identity = Some(known);
                    lu
                }
            };
            let mut bench = TestBench::new(&*lu, MEMORY);
            told.judge(&bench.read(0, 1 << 20).unwrap(), 9);
            (0..20).for_each(|_| told.write(&mut bench, &mut random));
            for kind in [Kind::Write, Kind::Read, Kind::Flush] {
                bad.fail(kind, None);
                bad.release(kind);
            }
            returns(&pool);
            bench.close();
            drop(lu);
            pool.close();
        }
    }
}
