//! A disk that is an LU of a pool, with the pools' thread among those that have turns (`--part pool`).

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::{Finish, LaneId, OpKind, Outcome, Request, Submit, Tag, Volume};
use memory::random::{Random, mix};
use memory::{Lasting, sim};
use pool_io::{PoolHandle, Pools};
use spec::{FileIdentity, LuSpec, PoolSpec, VolumeSpec};
use uring::sim::{self as kernel, Faults};
use uring::{Ring, RingConfig};

use crate::client::{SECTOR, stamps};
use crate::drawn::Drawn;
use crate::files::Keeper;
use crate::oracle::Stamp;
use crate::world::Scene;

/// Chunks of a PV: five of the pool's own, and some for data.
const CHUNKS: u64 = 16;

const CHUNK_BYTES: u64 = 64 << 20;

/// What a seed drew of its pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pooled {
    /// PVs in each failure group.
    pvs: usize,
    /// There are two failure groups.
    pub mirrored: bool,
    /// Its LU's data has checksums.
    checksums: bool,
    /// Space for all of it is set aside.
    thick: bool,
    /// The failure group whose PVs fail, where there are two.
    sick: usize,
    /// A snapshot is made or removed once in so many steps.
    snapshots_every: u64,
}

impl Pooled {
    fn draw(seed: u64) -> (Pooled, u64) {
        let mut random = Random::new(mix(seed ^ 0x9001));
        let mut below = |count: u64| random.below(count);
        let mirrored = below(2) == 0;
        let pooled = Pooled {
            pvs: 1 + below(2) as usize,
            mirrored,
            checksums: below(4) == 0 && mirrored,
            thick: below(4) == 0,
            sick: below(2) as usize,
            snapshots_every: [0, 300, 1_000][below(3) as usize],
        };
        // There are none of what has checksums.
        let snapshots_every = if pooled.checksums { 0 } else { pooled.snapshots_every };
        let pooled = Pooled { snapshots_every, ..pooled };
        // Several blocks of 64 KiB, of which each is written for the first time in some way.
        (pooled, 64 << below(5))
    }

    /// Where its PVs are, those of the second failure group last.
    fn paths(self, folder: &Path) -> Vec<PathBuf> {
        let count = self.pvs * if self.mirrored { 2 } else { 1 };
        (0..count).map(|number| folder.join(format!("pv{number}"))).collect()
    }
}

impl Drawn {
    /// The disk is an LU.
    pub(crate) fn put_into_pool(&mut self, seed: u64) {
        let (pooled, sectors) = Pooled::draw(seed);
        (self.pool, self.sectors) = (Some(pooled), sectors);
        if self.spec.read_only {
            (self.spec.read_only, self.death_every) = (false, 150);
        }
        if !pooled.mirrored && self.death_every > 0 {
            // A PV that has lost something is written to no more, by nobody who opens it: the pool does not open without it.
            (self.faults.write_error, self.faults.sync_error) = (0, 0);
        }
        if pooled.mirrored && pooled.pvs > 1 {
            // Of three copies of the journal two are in one failure group: without them it stops.
            (self.faults.read_error, self.faults.write_error, self.faults.sync_error) = (0, 0, 0);
        }
        // Sizes of LUs are the conformance suite's matter.
        self.changes.retain(|changed| *changed != crate::drawn::Changed::Size);
    }
}

/// What is known of the pool outside of the process: what a control plane keeps.
#[derive(Default)]
pub(crate) struct Known {
    pool_made: Cell<bool>,
    lu: RefCell<Option<FileIdentity>>,
    snapshots: RefCell<Vec<Snapshot>>,
    /// Snapshots and clones that were asked for.
    asked: Cell<u64>,
}

/// A snapshot of the LU.
struct Snapshot {
    number: u32,
    /// What it had when it was made, if that could be read.
    bytes: Option<Vec<u8>>,
}

/// Snapshots at once, and how many may be asked for with their clones.
const SNAPSHOTS: (usize, u64) = (3, 12);

/// The pool of a process, and its LU.
pub(crate) struct Pool {
    // Its lanes are gone before the thread is.
    pub volume: Arc<dyn Volume>,
    handle: PoolHandle,
    pools: Pools,
    pub snapshots_every: u64,
}

/// What opens it.
pub(crate) struct Opener<'a> {
    pub known: &'a Known,
    pub keeper: &'a RefCell<Keeper>,
    pub folder: &'a Path,
    pub drawn: &'a Drawn,
}

/// Until it is dropped, by a death too, something else goes wrong than this.
struct Until(Faults);

impl Drop for Until {
    fn drop(&mut self) {
        kernel::set_faults(self.0);
    }
}

impl Opener<'_> {
    /// Opens it, or makes it first, on PVs that are in order. What fails because a PV of it does is tried again when that is in order.
    pub(crate) fn open(&self, pooled: Pooled) -> Result<Pool, String> {
        let before = kernel::errors();
        let opened = match self.known.pool_made.get() {
            true => self.try_to_open(pooled),
            false => self.open_in_order(pooled),
        };
        let opened = match opened {
            // A PV of which not even the superblocks can be read may have gone on alone. Everything else can be done without one of two legs.
            Err(error) if kernel::errors().reads > before.reads => {
                sim::tell(|| format!("{error}; somebody looks after that"));
                self.open_in_order(pooled)
            }
            opened => opened,
        };
        opened.map_err(|error| format!("the pool is not opened: {error}"))
    }

    fn open_in_order(&self, pooled: Pooled) -> Result<Pool, String> {
        let (read_error, write_error, sync_error) = (0, 0, 0);
        let in_order = Faults { read_error, write_error, sync_error, ..self.drawn.faults };
        let _until = Until(kernel::set_faults(in_order));
        self.try_to_open(pooled)
    }

    fn try_to_open(&self, pooled: Pooled) -> Result<Pool, String> {
        let pvs = pooled.paths(self.folder);
        for path in &pvs {
            let file = File::options().write(true).create(true).truncate(false).open(path);
            let sized = file.and_then(|file| file.set_len(CHUNKS * CHUNK_BYTES));
            sized.map_err(|error| error.to_string())?;
        }
        if pooled.mirrored {
            let sick = pvs[pooled.pvs * pooled.sick..][..pooled.pvs].iter().map(File::open);
            let sick: Vec<File> =
                sick.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
            kernel::only_on(&sick.iter().map(AsFd::as_fd).collect::<Vec<_>>());
        }
        let mirror = if pooled.mirrored { pvs[pooled.pvs..].to_vec() } else { Vec::new() };
        let spec = PoolSpec {
            name: "p0".to_owned(),
            uuid: "0123456789abcdef0123456789abcdef".to_owned(),
            server: "5e".repeat(16),
            pvs,
            mirror,
            shadow: shadow(self.folder),
            fresh: !self.known.pool_made.get(),
            ..PoolSpec::default()
        };
        let pools = Pools::start().map_err(|error| error.to_string())?;
        let keeper = self.keeper.borrow();
        let opened = pools.open(&*keeper, Some("sim"), &spec, &mut |_| {});
        let handle = opened.map_err(|error| error.to_string())?;
        self.known.pool_made.set(true);
        let identity = self.known.lu.borrow().clone();
        let lu = LuSpec {
            thick: pooled.thick,
            checksums: pooled.checksums,
            fresh: identity.is_none(),
            asked: u64::MAX,
            identity,
            ..LuSpec::of("p0")
        };
        let bytes = Some(self.drawn.sectors * SECTOR);
        let VolumeSpec { limit, delay, write_through, .. } = self.drawn.spec.clone();
        let spec = VolumeSpec {
            bytes,
            limit,
            delay,
            write_through,
            ..VolumeSpec::new("disk", lu.clone())
        };
        let (volume, identity) = handle.open_lu(&spec, &lu).map_err(|error| error.to_string())?;
        self.remove_rest(&handle, &identity)?;
        self.known.lu.replace(Some(identity));
        Ok(Pool { volume, handle, pools, snapshots_every: pooled.snapshots_every })
    }
}

impl Opener<'_> {
    /// Snapshots and clones that nobody knows of go: the process died while they were made or removed.
    fn remove_rest(&self, handle: &PoolHandle, disk: &FileIdentity) -> Result<(), String> {
        let FileIdentity::Lu { number: disk, .. } = disk else { return Ok(()) };
        let snapshots = self.known.snapshots.borrow();
        let known = |lu: &u32| lu == disk || snapshots.iter().any(|known| known.number == *lu);
        let rest = handle.view().lus.into_iter().map(|lu| lu.lu).filter(|lu| !known(lu));
        handle.remove_lus(&rest.collect::<Vec<_>>()).map_err(|error| error.to_string())
    }
}

/// Where the memory is that survives the process, and not the host.
fn shadow(folder: &Path) -> PathBuf {
    folder.join("shadow")
}

/// What the host has in its memory goes with its power.
pub(crate) fn lose_power(folder: &Path) {
    let _ = std::fs::remove_file(shadow(folder));
    sim::boot_again();
}

impl Pool {
    /// PVs that are away are looked for now and then.
    pub(crate) fn look_for_pvs(&self, keeper: &Keeper) {
        if self.handle.mirrors() && sim::once_in(300) {
            let left = self.handle.look_for_away(keeper, Some("sim"), &mut |_| {});
            sim::tell(|| format!("PVs are looked for, and {left} are still away"));
        }
    }

    /// It closes in order, and its thread ends.
    pub(crate) fn close(self) {
        let Pool { volume, handle, pools, .. } = self;
        drop(volume);
        handle.close();
        pools.stop();
    }

    /// A snapshot of the LU is made, or one is removed.
    pub(crate) fn change_snapshots(&self, scene: &Scene) -> Result<(), String> {
        let known = &scene.known;
        let Some(FileIdentity::Lu { number, .. }) = known.lu.borrow().clone() else {
            return Ok(());
        };
        let (before, mirrored) = (kernel::errors(), self.handle.mirrors());
        // One of two legs is enough.
        let fails = |error: String| match mirrored || kernel::errors() == before {
            true if kernel::errors().writes == 0 || mirrored => Err(error),
            _ => Ok(()),
        };
        let count = known.snapshots.borrow().len();
        let (most, ever) = SNAPSHOTS;
        if count < most && known.asked.get() < ever && (count == 0 || sim::once_in(2)) {
            known.asked.set(known.asked.get() + 1);
            sim::met("a snapshot is made");
            sim::tell(|| "a snapshot is made".into());
            let ticket = scene.disk.borrow_mut().flush();
            let number = match self.handle.snapshot(&[number], known.asked.get()) {
                Ok(made) => made[0],
                Err(error) => return fails(error.to_string()),
            };
            let bytes = match self.of_snapshot(number, scene) {
                Ok(bytes) => Some(bytes),
                Err(error) => {
                    fails(error)?;
                    None
                }
            };
            let values = bytes.as_deref().map(stamps).transpose()?;
            let seen = scene.disk.borrow_mut().was_read(ticket, values.as_deref());
            seen.map_err(|wrong| format!("of a snapshot: {wrong}"))?;
            known.snapshots.borrow_mut().push(Snapshot { number, bytes });
        } else if count > 0 {
            sim::met("a snapshot is removed");
            let Snapshot { number, bytes } =
                known.snapshots.borrow_mut().swap_remove(sim::pick(count));
            sim::tell(|| format!("snapshot {number} is removed"));
            match (self.of_snapshot(number, scene), bytes) {
                (Ok(now), Some(before)) if now != before => {
                    return Err(format!(
                        "snapshot {number} has something else than when it was made: {}",
                        differ(&stamps(&before)?, &stamps(&now)?)
                    ));
                }
                (Err(error), _) => fails(error)?,
                _ => {}
            }
            self.handle.remove_lus(&[number]).or_else(|error| fails(error.to_string()))?;
        }
        Ok(())
    }

    /// What a snapshot holds, read from a clone of it.
    fn of_snapshot(&self, snapshot: u32, scene: &Scene) -> Result<Vec<u8>, String> {
        scene.known.asked.set(scene.known.asked.get() + 1);
        let (snapshot, asked) = (Some(snapshot), scene.known.asked.get());
        let lu = LuSpec { snapshot, asked, fresh: true, ..LuSpec::of("p0") };
        let bytes = Some(scene.drawn.sectors * SECTOR);
        let spec = VolumeSpec { bytes, ..VolumeSpec::new("clone", lu.clone()) };
        let (volume, identity) =
            self.handle.open_lu(&spec, &lu).map_err(|error| error.to_string())?;
        let bytes = bytes_of(&*volume);
        drop(volume);
        let FileIdentity::Lu { number, .. } = identity else { return bytes };
        let removed = self.handle.remove_lus(&[number]).map_err(|error| error.to_string());
        bytes.and_then(|bytes| removed.map(|()| bytes))
    }

    /// What the LU has, when nothing is under way.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, String> {
        bytes_of(&*self.volume)
    }
}

/// Where values differ.
fn differ(before: &[Stamp], now: &[Stamp]) -> String {
    let each = (0..).zip(before.iter().zip(now)).filter(|(_, (before, now))| before != now);
    let each =
        each.map(|(at, (before, now)): (u64, _)| format!("sector {at} had {before} and has {now}"));
    each.collect::<Vec<_>>().join(", ")
}

fn bytes_of(volume: &dyn Volume) -> Result<Vec<u8>, String> {
    let say = |error: &dyn std::fmt::Display| error.to_string();
    let config = RingConfig { entries: 64, cq_entries: 256, fixed_files: 16, restrict: true };
    let mut ring = Ring::new(&config).map_err(|error| say(&error))?;
    let mut lane = volume.lane(&mut ring, LaneId(1)).map_err(|error| say(&error))?;
    let len = volume.geometry().bytes;
    let memory = Lasting::new(len as usize).map_err(|error| say(&error))?;
    let bufs = [memory.buf(0, len as usize).ok_or("memory for all of it")?];
    let (mut done, mut passed) = (0, 0);
    let result = 'over: loop {
        let (op, tag) = (OpKind::Read, Tag(1));
        let mut request = Request { op, offset: 0, len, bufs: &bufs, tag, done, passed };
        let answer = lane.submit(&mut ring, &mut request);
        passed = request.passed;
        match answer {
            Submit::Done(result) => break result,
            Submit::Park { .. } => sim::others(),
            Submit::Pending | Submit::Held { .. } => {
                let mut ends: Vec<Finish> = Vec::new();
                while ends.is_empty() {
                    ring.submit().map_err(|error| say(&error))?;
                    sim::others();
                    while let Some(completion) = ring.next() {
                        let (_, token) = LaneId::split(completion.user_data);
                        lane.complete(&mut ring, token, completion.result, &mut ends);
                    }
                }
                match ends[0].outcome {
                    Outcome::Done(result) => break 'over result,
                    Outcome::Again { done: so_far } => done = so_far,
                }
            }
        }
    };
    lane.detach(&mut ring);
    result.map_err(|error| format!("the LU cannot be read at rest: {error}"))?;
    let mut bytes = vec![0; len as usize];
    bufs[0].read(0, &mut bytes);
    Ok(bytes)
}

/// What the LU has when its pool is closed and opened again; nothing where that can be neither.
pub(crate) fn at_rest(pool: Pool, pooled: Pooled, scene: &Scene) -> Result<Vec<u8>, String> {
    if !pooled.mirrored && kernel::errors().writes > 0 {
        pool.close();
        return Ok(Vec::new());
    }
    let before = pool.bytes()?;
    pool.close();
    let pool = scene.opener().open(pooled)?;
    let bytes = pool.bytes()?;
    pool.close();
    match before == bytes {
        true => Ok(bytes),
        false => Err("the LU has something else when its pool is opened again".to_owned()),
    }
}
