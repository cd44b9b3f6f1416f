//! What the API shows of storage pools.

mod alerts;
mod check;
mod checks;
mod mirror;
mod seen;
mod tiers;

pub(crate) use alerts::ALERTS;
pub use alerts::PoolAlert;
#[cfg(test)]
pub(crate) use alerts::Told;
pub(super) use alerts::uuid;
pub use checks::ChecksView;
pub(super) use mirror::Lost;
pub use mirror::{FailgrpView, PoolExplanation, PoolFinding};
pub(super) use seen::count_lus;
pub use seen::{LuLayoutView, LuOnPvView, LuTrafficView, LuWaitsView, PvTrafficView};
pub use tiers::TierView;

use super::shared::{Done, Server};
use super::snapshots::{FrozenLuView, until_over};
use super::trace::refusal;
use crate::error::{ApiError, Code};
use crate::model::pools::{lus_in, why_away};
use crate::model::transition::Change;
use crate::model::{Desired, home};
use crate::reconcile::Subject;
use fabric::attribute::{Attributes, Object, attr};
use fabric::units::{format_size, percent};
use protocol::message::{PoolStatus, ProgressStatus, PvState, PvStatus};
use serde::{Deserialize, Serialize};
use spec::FileIdentity;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use utoipa::ToSchema;

/// How a storage pool stands. All sizes are in bytes, in whole chunks of 64 MiB.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PoolView {
    /// Its PVs.
    pub pvs: Vec<PvView>,
    /// Its failure groups: two if it is mirrored.
    #[serde(default)]
    pub failgrps: Vec<FailgrpView>,
    /// Its tiers, the first of them first.
    #[serde(default)]
    pub tiers: Vec<TierView>,
    /// Its LUs.
    pub lus: Vec<LuView>,
    /// What its snapshots have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<FrozenLuView>,
    /// What its PVs have for LUs: all but the pool's own blocks. Where it is mirrored, each byte of it is there twice and counted once, here and below.
    pub size_bytes: u64,
    /// What LUs have taken of it.
    pub used_bytes: u64,
    /// What its LUs have in all: what they could take.
    pub allocated_bytes: u64,
    /// What is neither used nor set aside for LUs.
    pub free_bytes: u64,
    /// What LUs could take beyond what there is.
    pub overcommit_bytes: u64,
    /// Writes that wait for space now.
    pub paused: u64,
    /// Writes that have waited for space since its data plane opened it.
    pub pauses: u64,
    /// Chunks that move to where less is, since PVs have come or gone, or to the tiers of their LUs, while some do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub balance: Option<MovesView>,
    /// PVs that were away get what they missed: how far that is, while some do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resync: Option<MovesView>,
    /// Of a mirrored pool what was changed lately: this would be copied from one failure group to the other if the host died now. A data plane of an earlier version does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_crash_bytes: Option<u64>,
    /// What was found where its PVs were read.
    #[serde(default)]
    pub checks: ChecksView,
    /// Seconds until it, or the first of its tiers, is full: at the pace of the last day or of the last week, whichever is faster. Nothing where it does not grow, or
    /// was not seen for a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_in_s: Option<u64>,
    /// What it is to be warned of and is so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<PoolAlert>,
    /// What will be wrong soon, or is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// What is worth knowing, and is no fault.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// How far something is that moves chunks.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MovesView {
    /// What is to move.
    pub planned_bytes: u64,
    /// What has; never more.
    pub moved_bytes: u64,
    /// What could not be copied.
    pub failed_bytes: u64,
    /// Of what is to move, what has.
    pub percent: u64,
    /// Seconds until it is over, at the pace that it has had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_s: Option<u64>,
}

impl MovesView {
    fn of(progress: &ProgressStatus) -> MovesView {
        let ProgressStatus { planned_bytes, moved_bytes, failed_bytes, left_s } = *progress;
        let percent = percent(moved_bytes, planned_bytes);
        MovesView { planned_bytes, moved_bytes, failed_bytes, percent, left_s }
    }

    /// Such as `40 %, 2m`.
    #[must_use]
    pub fn text(&self) -> String {
        let left = self.left_s.map(|left| format!(", {} left", format_left(left)));
        format!("{} %{}", self.percent, left.unwrap_or_default())
    }
}

fn format_left(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// A PV.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PvView {
    /// Where it is.
    pub path: String,
    /// Its UUID.
    pub uuid: String,
    /// Its failure group.
    #[serde(default)]
    pub failgrp: String,
    /// Its tier.
    #[serde(default)]
    pub tier: String,
    /// `in`; `leaving`; `away` where it failed or was not found; `resyncing` while it gets what it missed.
    #[serde(default)]
    pub state: String,
    /// Since when it is away, in milliseconds since 1970, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// Why it is away, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it has.
    pub size_bytes: u64,
    /// What of it is nobody's.
    pub free_bytes: u64,
    /// It leaves the pool: how far what is on it has moved to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaving: Option<MovesView>,
    /// What goes on there. A data plane of an earlier version does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<PvTrafficView>,
}

/// An LU.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LuView {
    /// Its number, which is never given out again.
    pub number: u32,
    /// The volume that it is. Without one it is nobody's, or its number is just about to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// What it has.
    pub size_bytes: u64,
    /// What of it has been written.
    pub used_bytes: u64,
    /// All of it is set aside.
    pub thick: bool,
    /// What it holds has checksums.
    #[serde(default)]
    pub checksums: bool,
    /// Its tier.
    #[serde(default)]
    pub tier: String,
    /// What of it is on PVs of other tiers, and moves to its own.
    #[serde(default)]
    pub astray_bytes: u64,
    /// It shares what it holds with snapshots or clones, or has not yet got rid of what it shared.
    #[serde(default)]
    pub shares: bool,
    /// What it shares is copied into its own space: how far that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detaching: Option<MovesView>,
    /// Its requests that wait for space now.
    #[serde(default)]
    pub paused: u64,
    /// What its clients did with it: said where one pool is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<LuTrafficView>,
}

impl Server {
    /// Opens a pool now, or says why that cannot be done; with `force` also by one failure group alone, where nobody knows whether the other went on. It waits for the PVs.
    ///
    /// # Errors
    ///
    /// There is no such pool, it has one failure group, or it cannot be opened.
    pub async fn open_pool(
        &self,
        name: &str,
        force: bool,
        dry_run: bool,
    ) -> Result<Done, ApiError> {
        let desired = self.desired();
        let set = desired[Object::Pool].get(name);
        let set = set.ok_or_else(|| self.not_found(Object::Pool, name))?;
        if force && !attr::pool::MIRROR.is_set(set) {
            let what = format!("pool `{name}` has one failure group, all of which it needs");
            return Err(ApiError::invalid(what).help("bring its PVs back: it is opened then"));
        }
        let home = home(set);
        let supervisor = self.supervisor_of(home)?;
        if supervisor.view().pools.contains_key(name) {
            return Ok(Done::default());
        }
        let opened = Change::live(
            Object::Pool,
            name,
            "state",
            Some("not open".to_owned()),
            "open".to_owned(),
        );
        let done = Done { changes: vec![opened], ..Done::default() };
        if !dry_run {
            until_over(|| supervisor.open_pool(name, force)).await?.map_err(refusal)?;
        }
        Ok(done)
    }

    /// Has all used that is on the PVs of a pool whose devices have become larger, and says which those are. It waits for the PVs.
    ///
    /// # Errors
    ///
    /// There is no such pool, it is not open, or a PV is not used as far as it goes.
    pub async fn grow_pvs(&self, name: &str, dry_run: bool) -> Result<Done, ApiError> {
        let desired = self.desired();
        let set = desired[Object::Pool].get(name);
        let home = home(set.ok_or_else(|| self.not_found(Object::Pool, name))?);
        let supervisor = self.supervisor_of(home)?;
        let before = self.sizes_of_pvs(home, name).await?;
        if dry_run {
            // How large they are by now is known where they are open.
            let what = "how far PVs would grow is known when they do".to_owned();
            return Ok(Done { warnings: vec![what], ..Done::default() });
        }
        until_over(|| supervisor.grow_pvs(name.to_owned())).await?.map_err(refusal)?;
        let after = self.sizes_of_pvs(home, name).await?;
        let grown = after.into_iter().filter_map(|(pv, after)| {
            let before = *before.get(&pv)?;
            let [from, to] = [before, after].map(format_size);
            let pv = pv.display().to_string();
            (after > before).then(|| Change::live(Object::Pool, name, &pv, Some(from), to))
        });
        Ok(Done { changes: grown.collect(), ..Done::default() })
    }

    /// How large the PVs of a pool are that is open.
    async fn sizes_of_pvs(
        &self,
        home: &str,
        pool: &str,
    ) -> Result<BTreeMap<PathBuf, u64>, ApiError> {
        let statuses = self.statuses().await;
        let mut pools = statuses.get(home).into_iter().flat_map(|status| &status.pools);
        let pvs = pools.find(|one| one.spec.name == pool).map(|one| &one.pvs);
        let sizes =
            |pvs: &Vec<PvStatus>| pvs.iter().map(|pv| (pv.path.clone(), pv.bytes)).collect();
        pvs.map(sizes).ok_or_else(|| {
            let what = format!("pool `{pool}` is not open");
            let help = format!("see `trunkline pool show {pool}`");
            ApiError::new(Code::Unavailable, what).help(help)
        })
    }

    /// Removes LUs of a pool that are nobody's, by their numbers.
    ///
    /// # Errors
    ///
    /// Names one that is not there, or somebody's; the pool has to be open.
    pub async fn purge_lus(
        &self,
        pool: String,
        numbers: BTreeSet<u32>,
        dry_run: bool,
    ) -> Result<Done, ApiError> {
        let work = move |server: Arc<Server>, _| async move {
            server.purge_lus_now(&pool, &numbers, dry_run).await
        };
        self.to_the_end(dry_run, true, work).await
    }

    async fn purge_lus_now(
        &self,
        pool: &str,
        numbers: &BTreeSet<u32>,
        dry_run: bool,
    ) -> Result<Done, ApiError> {
        let statuses = self.statuses().await;
        let mut ledger = self.change.lock().await;
        let mut next = self.desired();
        // What was made just now is somebody's.
        self.learn_files(&mut next);
        let set = next[Object::Pool].get(pool).ok_or_else(|| self.not_found(Object::Pool, pool))?;
        let there = statuses.get(home(set)).and_then(|status| {
            Some((status, status.pools.iter().find(|one| one.spec.name == pool)?))
        });
        let Some((status, of_pool)) = there else {
            let what = format!("pool `{pool}` is not open");
            let help = format!("see `trunkline pool show {pool}`");
            return Err(ApiError::new(Code::Unavailable, what).help(help));
        };
        let used = |number: u32| {
            let open = status.volumes.iter().find(|volume| {
                volume.identity.as_ref().is_some_and(|it| it.is_lu(&of_pool.spec.uuid, number))
            });
            open.map(|volume| volume.spec.name.clone())
        };
        let space = PoolView::of(&next, set, of_pool, &Lost::new());
        let making = |number: u32| {
            let lu = of_pool.lus.iter().find(|lu| lu.number == number)?;
            next.being_made(pool, lu.asked, lu.origin)
        };
        for number in numbers {
            let Some(lu) = space.lus.iter().find(|lu| lu.number == *number) else {
                let what = format!("pool `{pool}` has no LU {number}");
                let help = format!("`trunkline pool show {pool}` has the list");
                return Err(ApiError::new(Code::NotFound, what).help(help));
            };
            if let Some(volume) = lu.volume.clone().or_else(|| used(*number)) {
                let what = format!("LU {number} of pool `{pool}` is volume `{volume}`");
                let help = format!("remove the volume: `trunkline lu remove {volume}`");
                return Err(ApiError::new(Code::InUse, what).help(help));
            }
            // Who makes it will tell its number; what goes before that would be missing for good.
            if let Some((object, name)) = making(*number) {
                let what =
                    format!("LU {number} of pool `{pool}` is being made for {object} `{name}`");
                let help = format!("wait for that, or remove the {object}");
                return Err(ApiError::new(Code::InUse, what).help(help));
            }
        }
        let list: Vec<String> = numbers.iter().map(u32::to_string).collect();
        let left = format!("without {}", list.join(","));
        let change = Change::live(Object::Pool, pool, "lus", None, left);
        let done = Done { changes: vec![change], ..Done::default() };
        if dry_run {
            return Ok(done);
        }
        let home = BTreeSet::from([home(set).to_owned()]);
        let mut kept = next.allocations.pools.get(pool).cloned().unwrap_or_default();
        kept.doomed.extend(numbers);
        next.allocations.pools.insert(pool.to_owned(), kept);
        self.commit(&mut ledger, &next)?;
        drop(ledger);
        let told = self.tell_dataplanes(Some(&home)).await;
        let of_pool = Subject::Pool(pool.to_owned());
        let failures = told.failures.into_iter().filter(|(subject, _)| *subject == of_pool);
        Ok(Done { failures: failures.map(|(_, failure)| failure).collect(), ..done })
    }
}

impl PoolView {
    pub(super) fn of(
        desired: &Desired,
        set: &Attributes,
        status: &PoolStatus,
        lost: &Lost,
    ) -> PoolView {
        let name = &status.spec.name;
        let volumes: Vec<(u32, &String)> = lus_in(desired, name)
            .filter_map(|(volume, _)| {
                let made = desired.allocations.files.get(volume)?;
                let crate::model::files::Made::Is(FileIdentity::Lu { number, .. }) = made else {
                    return None;
                };
                Some((*number, volume))
            })
            .collect();
        let kept = desired.allocations.pools.get(name).cloned().unwrap_or_default();
        let tier_name = |number: u8| crate::model::pools::tiers::name(&kept, set, number);
        let lu = |lu: &protocol::message::LuStatus| LuView {
            number: lu.number,
            volume: volumes
                .iter()
                .find(|(number, _)| *number == lu.number)
                .map(|(_, name)| (*name).clone()),
            size_bytes: lu.bytes,
            used_bytes: lu.mapped_bytes,
            thick: lu.thick,
            checksums: lu.checksums,
            tier: tier_name(lu.tier),
            astray_bytes: lu.astray_bytes,
            shares: lu.shares,
            detaching: lu.detaching.as_ref().map(MovesView::of),
            paused: lu.paused,
            traffic: None,
        };
        let snapshots = FrozenLuView::all(desired, status);
        let frozen: BTreeSet<u32> = snapshots.iter().map(|it| it.number).collect();
        let pv = |pv: &protocol::message::PvStatus| PvView {
            path: pv.path.display().to_string(),
            uuid: pv.uuid.clone(),
            failgrp: mirror::group_name(set, pv.group),
            tier: tier_name(pv.tier),
            state: mirror::state_of(pv).to_owned(),
            since_ms: (pv.state == PvState::Away)
                .then(|| lost.get(&pv.path.display().to_string()).copied())
                .flatten(),
            reason: why_away(status, pv).map(str::to_owned),
            size_bytes: pv.bytes,
            free_bytes: pv.free_bytes,
            leaving: pv.leaving.as_ref().map(MovesView::of),
            traffic: pv.traffic.as_ref().map(PvTrafficView::of),
        };
        let used: u64 = status.lus.iter().map(|lu| lu.mapped_bytes).sum();
        let tiers = tiers::all(status, tier_name);
        let size = tiers.iter().map(|tier| tier.size_bytes).sum();
        let failgrps = mirror::all_groups(set, status);
        let written = status.lus.iter().filter(|lu| lu.origin.is_none());
        let allocated: u64 = written.map(|lu| lu.bytes).sum();
        PoolView {
            pvs: status.pvs.iter().map(pv).collect(),
            lus: status.lus.iter().filter(|lu| !frozen.contains(&lu.number)).map(lu).collect(),
            snapshots,
            size_bytes: size,
            used_bytes: used,
            allocated_bytes: allocated,
            free_bytes: status.free_bytes,
            overcommit_bytes: allocated.saturating_sub(size),
            paused: status.paused,
            pauses: status.pauses,
            balance: status.balance.as_ref().map(MovesView::of),
            resync: status.resync.as_ref().map(MovesView::of),
            after_crash_bytes: status.after_crash_bytes,
            checks: ChecksView::of(status, &kept),
            full_in_s: None,
            alerts: Vec::new(),
            warning: None,
            notes: PoolView::note_of_groups(&failgrps).into_iter().collect(),
            failgrps,
            tiers,
        }
    }
}
