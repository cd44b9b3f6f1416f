//! Storage pools: opened, told of LUs that go and PVs that come and go, closed; and their LUs as volumes.

mod checks;
mod copies;
mod seen;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use block::{Files as _, OpenEvent, VolumeError};
use pool::format::MemberState;
use pool_io::{At, PoolError, PoolHandle, Pools, Progress};
use protocol::message::{
    DetachSpec, Failure, FailureCode, FrozenStatus, LayoutSpec, LuStatus, PoolStatus,
    ProgressStatus, PvState, PvStatus, Reply, Request, RollbackSpec, ScrubSpec, SnapshotStatus,
    TierStatus,
};
use spec::{FullSpec, LuSpec, PlacedLu, PoolSpec, SnapshotSpec, VolumeKind, VolumeSpec};

use super::going::{self, Subject};
use super::{Plane, State, failure, in_use, not_found};
use crate::lock::locked;
use crate::outside::Outside;
use crate::storage::OpenVolume;

/// Bytes of a chunk.
const CHUNK: u64 = pool::format::CHUNK_BYTES;

/// After which time it is looked for a PV that is away; twice as long each time, up to the last.
const LOOK: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// So long it is said of a tier that it slows writes, after the last that was.
const SLOWS: Duration = Duration::from_secs(60);

/// A pool that is open.
#[derive(Clone)]
pub(crate) struct OpenPool {
    /// What was carried out of what was told.
    spec: PoolSpec,
    handle: PoolHandle,
    /// PVs that were gone when channels last let go of such.
    let_go: u64,
    /// Snapshots that were made and are not known to who wants them, by [`SnapshotSpec::id`].
    made: BTreeMap<u64, SnapshotStatus>,
    /// LUs that do not go to the tiers in which they are to be, with why: whoever asked was told.
    hindered: BTreeMap<u32, (u8, String)>,
    /// LUs that have less set aside than they are to have, with what that is: whoever asked was told.
    short: BTreeMap<u32, u64>,
    /// It is there until it is closed, and for nobody any more.
    closes: bool,
}

/// What a change of a pool needs, on its own thread.
struct Kit {
    state: Arc<Mutex<State>>,
    outside: Arc<Outside>,
    owner: Option<String>,
    pools: Option<Arc<Pools>>,
}

impl Plane {
    /// Opens a pool, or changes one: that waits for its PVs, and nobody else does.
    pub(super) fn put_pool(&self, spec: PoolSpec) -> Result<Reply, Failure> {
        let changing = locked(&self.changes);
        let mut state = self.state();
        let about = Subject::Pool(spec.name.clone());
        let asked = Request::PutPool(spec.clone());
        if let Some(told) = state.told(&about, &asked) {
            return told;
        }
        let what = match state.pools.contains_key(&spec.name) {
            true => "changing, waits for its PVs",
            false => "opening, waits for its PVs",
        };
        let kit = self.kit();
        let change = going::Change { about, asked, what, holds: Vec::new() };
        self.go_on(changing, state, change, move |_| kit.put(spec))
    }

    fn kit(&self) -> Kit {
        Kit {
            state: Arc::clone(&self.state),
            outside: Arc::clone(&self.context.outside),
            owner: self.owner(),
            pools: self.context.pools.clone(),
        }
    }

    /// Uses all that is on PVs of a pool that have become larger, which waits for its PVs.
    pub(super) fn grow_pvs(&self, pool: String) -> Result<Reply, Failure> {
        let changing = locked(&self.changes);
        let mut state = self.state();
        let about = Subject::Pool(pool.clone());
        let asked = Request::GrowPvs { pool: pool.clone() };
        if let Some(told) = state.told(&about, &asked) {
            return told;
        }
        let open = state.open_pool(&pool)?;
        let what = "using what was added to its PVs, waits for them";
        let change = going::Change { about, asked, what, holds: Vec::new() };
        self.go_on(changing, state, change, move |_| {
            open.handle.grow_pvs().map_err(|error| pool_failure(&pool, &error))
        })
    }

    /// Rolls LUs back, which waits for what their pool has under way.
    pub(super) fn rollback(&self, spec: RollbackSpec) -> Result<Reply, Failure> {
        let changing = locked(&self.changes);
        let mut state = self.state();
        let about = Subject::Pool(spec.pool.clone());
        let asked = Request::Rollback(spec.clone());
        if let Some(told) = state.told(&about, &asked) {
            return told;
        }
        let open = state.open_pool(&spec.pool)?;
        let what = "rolling LUs back, waits for its PVs";
        let change = going::Change { about, asked, what, holds: Vec::new() };
        self.go_on(changing, state, change, move |_| {
            let lus = [&[(spec.lu, spec.snapshot)][..], &spec.also].concat();
            let done = open.handle.rollback(&lus, spec.force);
            done.map_err(|error| pool_failure(&spec.pool, &error))
        })
    }

    /// Begins to detach an LU, or to stop that; says how far it is. It waits for no disk.
    pub(super) fn detach(&self, spec: &DetachSpec) -> Result<Reply, Failure> {
        let open = self.state().open_pool(&spec.pool)?;
        let now = match spec.stop {
            true => open.handle.stop_detach(spec.lu),
            false => open.handle.detach(spec.lu, spec.id),
        };
        let now = now.map_err(|error| pool_failure(&spec.pool, &error))?;
        Ok(now.map_or(Reply::Done, |now| Reply::Progress(progress(now))))
    }

    /// Begins a scrub, or ends it; says how far it is. It waits for no disk.
    pub(super) fn scrub(&self, spec: &ScrubSpec) -> Result<Reply, Failure> {
        let open = self.state().open_pool(&spec.pool)?;
        let scrub = checks::scrub(&open.handle, spec);
        let now = scrub.map_err(|error| pool_failure(&spec.pool, &error))?;
        Ok(Reply::Scrub(Box::new(now)))
    }

    /// How an LU lies on the PVs. It waits for no disk.
    pub(super) fn layout(&self, spec: &LayoutSpec) -> Result<Reply, Failure> {
        let open = self.state().open_pool(&spec.pool)?;
        let layout = seen::layout(&open.handle, spec.lu);
        let layout = layout.map_err(|error| pool_failure(&spec.pool, &error))?;
        let layout = layout.ok_or_else(|| not_found("LU", &spec.lu.to_string()))?;
        Ok(Reply::Layout(Box::new(layout)))
    }

    /// Closes a pool. It is there until that is over, and nobody opens an LU of it any more.
    pub(super) fn remove_pool(&self, name: &str) -> Result<Reply, Failure> {
        let changing = locked(&self.changes);
        let mut state = self.state();
        let about = Subject::Pool(name.to_owned());
        let asked = Request::RemovePool { name: name.to_owned() };
        if let Some(told) = state.told(&about, &asked) {
            return told;
        }
        if let Some((_, volume)) = state.lus_of(name).first() {
            let user = format!("volume {volume}");
            return Err(in_use(format!("pool {name}"), &user, "remove its volumes first"));
        }
        // Its LU would be there without it.
        if let Some(volume) = state.opens_lu_of(name) {
            let user = format!("volume {volume}, which is being opened");
            return Err(in_use(format!("pool {name}"), &user, "remove its volumes first"));
        }
        let open = state.pools.get_mut(name).ok_or_else(|| not_found("pool", name))?;
        open.closes = true;
        let open = open.clone();
        let (kit, name) = (self.kit(), name.to_owned());
        let what = "closing, waits for its PVs";
        let change = going::Change { about, asked, what, holds: Vec::new() };
        self.go_on(changing, state, change, move |all| {
            open.handle.close();
            // All of it is on the PVs now.
            let _ = kit.outside.remove(&open.spec.shadow);
            locked(all).pools.remove(&name);
            Ok(())
        })
    }
}

impl Kit {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    fn put(&self, mut spec: PoolSpec) -> Result<(), Failure> {
        let alone = std::mem::take(&mut spec.alone);
        let open = self.state().pools.get(&spec.name).cloned();
        let was_open = open.is_some();
        let mut open = match open {
            Some(open) => {
                let PoolSpec { fresh, pvs, mirror, tiers, joining, leaving, .. } =
                    open.spec.clone();
                let PoolSpec { placed, full, doomed, snapshots, .. } = open.spec.clone();
                let there = PoolSpec { fresh, pvs, mirror, tiers, joining, ..spec.clone() };
                let there = PoolSpec { placed, full, leaving, doomed, snapshots, ..there };
                if there != open.spec {
                    let what = "what it was made with";
                    let pool = format!("pool {}", spec.name);
                    return Err(in_use(pool, what, "remove the pool first"));
                }
                open
            }
            None => {
                let handle = self.open_pool(&PoolSpec { alone, ..spec.clone() })?;
                // Those that are to leave were to before.
                let pvs = handle.view().pvs.into_iter().map(|pv| pv.path);
                let pvs = pvs.filter(|path| !spec.leaving.contains(path)).collect();
                let (doomed, snapshots, placed) = (Vec::new(), Vec::new(), Vec::new());
                let spec = PoolSpec { placed, doomed, snapshots, pvs, ..spec.clone() };
                let (made, hindered, short) = Default::default();
                OpenPool { spec, handle, let_go: 0, made, hindered, short, closes: false }
            }
        };
        let full = open.set_full(&mut spec.full, was_open);
        // It is there, whatever becomes of its LUs and PVs.
        if !self.keep(&open) {
            open.handle.close();
            return Ok(());
        }
        open.handle.end_copies(|lu| spec.doomed.contains(&lu));
        let used = self.state().lus_of(&spec.name);
        if let Some((number, volume)) = used.iter().find(|(number, _)| spec.doomed.contains(number))
        {
            let what = format!("LU {number} of pool {}", spec.name);
            return Err(in_use(what, &format!("volume {volume}"), "remove the volume first"));
        }
        let removed = open.handle.remove_lus(&spec.doomed);
        removed.map_err(|error| pool_failure(&spec.name, &error))?;
        self.snapshots(&mut open, &spec.snapshots)?;
        self.let_go(&mut open)?;
        self.change_pvs(&mut open, &spec).map_err(|error| pool_failure(&spec.name, &error))?;
        let placed = open.place(&mut spec.placed, was_open);
        let placed = placed.map_err(|error| pool_failure(&spec.name, &error));
        open.spec = spec;
        self.keep(&open);
        placed.and(full)
    }

    /// Notes how a pool is now, unless the data plane has ended meanwhile: false.
    fn keep(&self, open: &OpenPool) -> bool {
        let mut state = self.state();
        if !state.ended {
            state.pools.insert(open.spec.name.clone(), open.clone());
        }
        !state.ended
    }

    /// Makes the snapshots that are wanted, each once, and says what became of those that are not wanted any more.
    fn snapshots(&self, open: &mut OpenPool, wanted: &[SnapshotSpec]) -> Result<(), Failure> {
        open.made.retain(|id, _| wanted.iter().any(|one| one.id == *id));
        for SnapshotSpec { id, lus, given_up } in wanted {
            if open.made.contains_key(id) {
                continue;
            }
            let made = if *given_up {
                open.handle.snapshots_made(lus, *id)
            } else {
                let made = open.handle.snapshot(lus, *id);
                made.map(|made| lus.iter().copied().zip(made).collect())
            };
            let made = made.map_err(|error| pool_failure(&open.spec.name, &error))?;
            let made_ms = protocol::now_ms();
            let of = |(lu, number): (u32, u32)| FrozenStatus {
                lu,
                number,
                bytes: open.handle.bytes(lu).unwrap_or_default(),
            };
            let lus = made.into_iter().map(of).collect();
            open.made.insert(*id, SnapshotStatus { id: *id, made_ms, lus });
            self.keep(open);
        }
        Ok(())
    }

    /// Adds PVs, begins to remove some, and lets others stay.
    fn change_pvs(&self, open: &mut OpenPool, spec: &PoolSpec) -> Result<(), PoolError> {
        let pool = open.handle.clone();
        let there = pool.view().pvs;
        let new = spec.pvs.iter().filter(|path| there.iter().all(|pv| pv.path != **path));
        let at = |path: &PathBuf| At { tier: spec.tier_of(path), group: spec.group_of(path) };
        let new: Vec<(PathBuf, At)> = new.map(|path| (path.clone(), at(path))).collect();
        // First those that come: where others leave, there has to be room for what they have.
        if !new.is_empty() {
            let mut event = waits(&spec.name);
            pool.add_pvs(&*self.outside, self.owner.as_deref(), &new, &mut event)?;
        }
        for pv in &there {
            let (stays, leaves) = (spec.pvs.contains(&pv.path), pv.leaving.is_some());
            if stays && leaves {
                pool.keep_pv(pv)?;
            } else if !stays && !leaves && spec.leaving.contains(&pv.path) {
                if !open.spec.pvs.contains(&pv.path) {
                    pool.remove_promised_pv(pv)?;
                } else if let Err(refused) = pool.remove_pv(pv) {
                    // Only who asks first is told. It is noted as one that may go: who takes that back says so, and who wants it all the same has promised it.
                    open.spec.pvs.retain(|path| *path != pv.path);
                    self.keep(open);
                    return Err(refused);
                }
            }
        }
        Ok(())
    }

    /// Channels let go of PVs that are gone: the lanes of the pool's LUs are made anew. Where writes wait for space this has to wait, too.
    fn let_go(&self, open: &mut OpenPool) -> Result<(), Failure> {
        let gone = open.handle.gone();
        if gone == open.let_go || open.handle.view().paused > 0 {
            return Ok(());
        }
        let volumes = self.state().lus_of(&open.spec.name);
        for (_, volume) in volumes {
            let renewal = self.state().renewal_of_those_who_stay(&volume);
            renewal.carry_out(&self.state)?;
        }
        open.let_go = gone;
        self.keep(open);
        Ok(())
    }

    fn open_pool(&self, spec: &PoolSpec) -> Result<PoolHandle, Failure> {
        let Some(pools) = &self.pools else {
            let what = format!("pool {}: this data plane serves none", spec.name);
            return Err(failure(FailureCode::System, what, "see its log, and restart it"));
        };
        let mut event = waits(&spec.name);
        let opened = pools.open(&*self.outside, self.owner.as_deref(), spec, &mut event);
        let opened = opened.map_err(|error| pool_failure(&spec.name, &error))?;
        if opened.mirrors() {
            self.look_for_pvs(&spec.name, opened.clone()).map_err(|error| {
                opened.clone().close();
                let what = format!("pool {}: no thread to look for PVs: {error}", spec.name);
                failure(FailureCode::System, what, "raise the limit of threads (TasksMax)")
            })?;
        }
        Ok(opened)
    }

    /// Looks, as long as the pool is open, for those of its PVs that are away, now and then: they are used again by themselves.
    fn look_for_pvs(&self, name: &str, pool: PoolHandle) -> std::io::Result<()> {
        let (outside, owner) = (Arc::clone(&self.outside), self.owner.clone());
        let name = name.to_owned();
        let look = move || {
            let mut pause = LOOK.0;
            while pool.wait_for_away(pause) {
                let mut event = waits(&name);
                let left = pool.look_for_away(&*outside, owner.as_deref(), &mut event);
                pause = if left == 0 { LOOK.0 } else { (2 * pause).min(LOOK.1) };
            }
        };
        std::thread::Builder::new().name("look".into()).spawn(look).map(drop)
    }
}

impl State {
    /// A pool that is open, and not about to be closed.
    fn open_pool(&self, name: &str) -> Result<OpenPool, Failure> {
        let open = self.pools.get(name).filter(|open| !open.closes);
        open.cloned().ok_or_else(|| not_found("pool", name))
    }

    /// LUs of a pool that are open, with their volumes.
    fn lus_of(&self, pool: &str) -> Vec<(u32, String)> {
        let number = |open: &OpenVolume| {
            let VolumeKind::Lu(LuSpec { pool: of, .. }) = &open.spec.kind else { return None };
            let Some(spec::FileIdentity::Lu { number, .. }) = open.known else { return None };
            (of == pool).then(|| (number, open.spec.name.clone()))
        };
        self.storage.volumes.values().filter_map(number).collect()
    }

    /// The pool of an LU.
    pub(super) fn pool_of(
        &self,
        spec: &VolumeSpec,
        lu: &LuSpec,
    ) -> Result<PoolHandle, VolumeError> {
        let open = self.pools.get(&lu.pool).filter(|open| !open.closes);
        let open = open.map(|open| open.handle.clone());
        let fails = |what: String| VolumeError {
            volume: spec.name.clone(),
            what,
            help: Some(format!("see `trunkline pool show {}`", lu.pool)),
            source: None,
        };
        if let Some(spec::FileIdentity::Lu { number, .. }) = &lu.identity
            && let Some((_, other)) =
                self.lus_of(&lu.pool).iter().find(|(of, name)| of == number && *name != spec.name)
        {
            return Err(fails(format!("LU {number} of pool {} is volume {other}", lu.pool)));
        }
        open.ok_or_else(|| fails(format!("its pool {} is not open", lu.pool)))
    }
}

impl OpenPool {
    /// Lets LUs go to the tiers in which they are to be. Whoever asks first is told of one that does not; if that is not taken back, or was promised before the pool was open, it is a
    /// trouble, and tried each time that it is asked again. Such are noted as in no tier, which is neither what was asked for nor what was before.
    fn place(&mut self, placed: &mut [PlacedLu], asks: bool) -> Result<(), PoolError> {
        let otherwise = placed_otherwise(&self.handle, placed);
        self.hindered
            .retain(|lu, (tier, _)| otherwise.contains(&PlacedLu { lu: *lu, tier: *tier }));
        let mut first = Ok(());
        // What hinders an LU hinders no other.
        for PlacedLu { lu, tier } in otherwise {
            let Err(refused) = self.handle.set_tier(lu, tier) else {
                self.hindered.remove(&lu);
                continue;
            };
            if self.hindered.insert(lu, (tier, refused.what.clone())).is_none() && asks {
                first = first.and(Err(refused));
            }
        }
        for one in placed.iter_mut().filter(|one| self.hindered.contains_key(&one.lu)) {
            one.tier = PlacedLu::NONE;
        }
        first
    }

    /// What holds where it is full. Whoever asks first is told of a reserve for which there is no room; such an LU is noted with what it has, and it is tried again as for a tier. What was asked for
    /// before it was open holds as far as it can.
    fn set_full(&mut self, full: &mut FullSpec, asks: bool) -> Result<(), Failure> {
        let name = &self.spec.name;
        let refused = self.handle.when_full(full, asks);
        let refused = refused.map_err(|error| pool_failure(name, &error))?;
        let before = std::mem::take(&mut self.short);
        let mut first = Ok(());
        for of in full.lus.iter_mut().filter(|of| refused.contains(&of.lu)) {
            if before.get(&of.lu) != Some(&of.reserve_bytes) {
                let what = format!("pool {name}: {}", no_room_for(of.lu, of.reserve_bytes));
                let help = "set less aside, add a PV, or remove LUs";
                first = first.and(Err(failure(FailureCode::System, what, help)));
            }
            self.short.insert(of.lu, of.reserve_bytes);
            let had = self.spec.full.lus.iter().find(|had| had.lu == of.lu);
            of.reserve_bytes = had.map_or(0, |had| had.reserve_bytes.min(of.reserve_bytes));
        }
        first
    }

    /// What is wrong with it.
    fn trouble(&self, of_pool: Option<String>) -> Option<String> {
        let hindered = || {
            let hindered = self.hindered.values().next().map(|(_, why)| why.clone());
            let short = || self.short.iter().next().map(|(lu, bytes)| no_room_for(*lu, *bytes));
            let why = hindered.or_else(short)?;
            Some(format!("{why}; it is tried again by itself"))
        };
        of_pool.or_else(hindered)
    }

    pub(super) fn status(&self) -> PoolStatus {
        let view = self.handle.view();
        let pv = |pv: &pool_io::PvView| PvStatus {
            path: pv.path.clone(),
            uuid: pv.space.uuid.to_string(),
            bytes: u64::from(pv.space.chunks) * CHUNK,
            free_bytes: u64::from(pv.space.free) * CHUNK,
            leaving: pv.leaving.map(progress),
            group: pv.space.group,
            tier: pv.space.tier,
            state: match pv.space.state {
                MemberState::Stale | MemberState::Dismissed => PvState::Away,
                MemberState::Returning => PvState::Resyncing,
                MemberState::In | MemberState::Leaving | MemberState::Gone => PvState::Active,
            },
            traffic: Some(pv.traffic),
        };
        let lu = |lu: &pool::LuSpace| LuStatus {
            number: lu.lu,
            bytes: u64::from(lu.chunks) * CHUNK,
            mapped_bytes: u64::from(lu.allocated) * CHUNK,
            thick: lu.thick,
            checksums: lu.sums,
            tier: lu.tier,
            astray_bytes: u64::from(lu.astray) * CHUNK,
            origin: lu.origin,
            shares: lu.shares,
            asked: lu.asked,
            detaching: view.detaching.get(&lu.lu).copied().map(progress),
            paused: view.paused_lus.get(&lu.lu).copied().unwrap_or_default(),
        };
        let tier = |tier: &pool_io::TierView| TierStatus {
            tier: tier.tier,
            free_bytes: tier.free * CHUNK,
            paused: tier.paused,
            slowed: tier.slowed,
            slows: tier.slowed_at.is_some_and(|at| at.elapsed() < SLOWS),
        };
        PoolStatus {
            spec: self.spec.clone(),
            pvs: view.pvs.iter().map(pv).collect(),
            lus: view.lus.iter().map(lu).collect(),
            free_bytes: view.free * CHUNK,
            tiers: view.tiers.iter().map(tier).collect(),
            paused: view.paused,
            pauses: view.pauses,
            trouble: self.trouble(view.trouble),
            balance: view.balance.map(progress),
            resync: view.resync.map(progress),
            after_crash_bytes: Some(view.active * CHUNK),
            snapshots: self.made.values().cloned().collect(),
            found: checks::found(&view.checks, &view.pvs),
        }
    }

    /// Closes it at the end of the process's work.
    pub(super) fn close(&self) {
        self.handle.clone().close();
    }
}

fn no_room_for(lu: u32, bytes: u64) -> String {
    format!("there is no room for the {} MiB that LU {lu} is to have set aside", bytes >> 20)
}

/// Those of these LUs that are there and in another tier.
fn placed_otherwise(pool: &PoolHandle, placed: &[PlacedLu]) -> Vec<PlacedLu> {
    if placed.is_empty() {
        return Vec::new();
    }
    let tiers: BTreeMap<u32, u8> = pool.view().lus.iter().map(|lu| (lu.lu, lu.tier)).collect();
    let elsewhere = |it: &&PlacedLu| tiers.get(&it.lu).is_some_and(|tier| *tier != it.tier);
    placed.iter().filter(elsewhere).copied().collect()
}

/// Who has a PV.
fn waits(pool: &str) -> impl FnMut(OpenEvent) {
    move |event| {
        if let OpenEvent::WaitsForLock { holder } = event {
            tracing::warn!(pool, holder, "waits for a PV");
        }
    }
}

fn progress(progress: pool_io::Progress) -> ProgressStatus {
    let Progress { planned, moved, failed, left_s } = progress;
    let [planned_bytes, moved_bytes, failed_bytes] =
        [planned, moved, failed].map(|blocks| blocks * pool::format::BLOCK_BYTES);
    ProgressStatus { planned_bytes, moved_bytes, failed_bytes, left_s }
}

fn pool_failure(name: &str, error: &PoolError) -> Failure {
    let message = format!("pool {name}: {}", error.what);
    Failure { code: FailureCode::System, message, help: error.help.clone() }
}
