//! What goes on in a storage pool: at each of its PVs, in each of its LUs, and how an LU lies on the PVs and what its clients wait for.

use super::mirror::group_name;
use super::{LuView, PvView};
use crate::model::home;
use crate::server::shared::Server;
use fabric::attribute::{Attributes, Object};
use protocol::message::{LayoutSpec, LayoutStatus, Status, Traffic};
use protocol::stats::{Latency, QueueCounter, QueueSnapshot, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What was done on a PV since its data plane opened it, by clients' channels and by the pool itself. Two of these give rates, and the mean latency between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PvTrafficView {
    /// Operations that are under way now: its queue depth.
    pub in_flight: u64,
    /// Reads that are over, well or not.
    pub reads: u64,
    /// Writes that are.
    pub writes: u64,
    /// Flushes, and whatever else is.
    pub others: u64,
    /// Bytes that these reads were to read.
    pub read_bytes: u64,
    /// Bytes that these writes were to write.
    pub written_bytes: u64,
    /// How long all of these took together, in nanoseconds.
    pub took_ns: u64,
    /// Those of them that failed.
    pub errors: u64,
}

impl PvTrafficView {
    pub(super) fn of(status: &Traffic) -> PvTrafficView {
        let Traffic { in_flight, reads, writes, others, read_bytes, written_bytes, .. } = *status;
        let Traffic { took_ns, errors, .. } = *status;
        PvTrafficView {
            in_flight,
            reads,
            writes,
            others,
            read_bytes,
            written_bytes,
            took_ns,
            errors,
        }
    }

    /// Operations that are over.
    #[must_use]
    pub fn over(&self) -> u64 {
        self.reads + self.writes + self.others
    }
}

/// What clients did with an LU, of all adapters that have it, since these began to count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LuTrafficView {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Commands of which it was measured how long the LU had them.
    pub timed: u64,
    /// How long it had all of these together, in nanoseconds.
    pub took_ns: u64,
}

impl LuTrafficView {
    fn add(&mut self, counted: &QueueSnapshot) {
        self.reads += counted.get(QueueCounter::Reads);
        self.writes += counted.get(QueueCounter::Writes);
        self.read_bytes += counted.get(QueueCounter::ReadBytes);
        self.written_bytes += counted.get(QueueCounter::WrittenBytes);
        let device = counted.latency(Latency::Device);
        self.timed += device.count();
        self.took_ns += device.sum_ns;
    }
}

/// How an LU lies on the PVs of its pool. Counts are of chunks, where nothing else is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LuLayoutView {
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// How many copies there are to be of each.
    pub copies: u32,
    /// Those that have space: its own, and those that it shares with snapshots or clones. The others read as zeros.
    pub mapped: u64,
    /// How many copies of them each PV has that is there.
    pub pvs: Vec<LuOnPvView>,
    /// How many each failure group has.
    pub failgrps: BTreeMap<String, u64>,
    /// Those that have all their copies.
    pub whole: u64,
    /// Those of which a copy is missing: its PV is away, or has not got what it missed.
    pub half: u64,
    /// Of those that have all their copies, those of which the second may lack what the first has, since the host died.
    pub differ: u64,
    /// Those that are being copied to a PV that lacks them, or are to be.
    pub mending: u64,
    /// Those that are on their way to another PV now.
    pub moving: u64,
    /// Copies that are in other tiers than its own, and move there.
    pub astray: u64,
    /// Those that were changed lately, and would be copied from one failure group to the other after a crash.
    pub active: u64,
    /// Its requests that wait for space now.
    pub paused: u64,
}

/// How much of an LU is on a PV.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LuOnPvView {
    /// Where the PV is.
    pub pv: String,
    /// Its failure group.
    pub failgrp: String,
    /// Chunks of the LU that are there.
    pub chunks: u64,
}

impl LuLayoutView {
    fn of(set: &Attributes, status: &LayoutStatus) -> LuLayoutView {
        let mut failgrps = BTreeMap::new();
        for on in &status.pvs {
            *failgrps.entry(group_name(set, on.group)).or_default() += on.chunks;
        }
        let pv = |on: &protocol::message::OnPv| LuOnPvView {
            pv: on.path.display().to_string(),
            failgrp: group_name(set, on.group),
            chunks: on.chunks,
        };
        LuLayoutView {
            chunk_bytes: status.chunk_bytes,
            copies: status.legs.into(),
            mapped: status.mapped,
            pvs: status.pvs.iter().map(pv).collect(),
            failgrps,
            whole: status.whole,
            half: status.half,
            differ: status.differ,
            mending: status.mending,
            moving: status.moving,
            astray: status.astray,
            active: status.active,
            paused: status.paused,
        }
    }
}

/// What the commands of an adapter that has an LU have waited for, since it began to count. An adapter counts that for all its disks together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LuWaitsView {
    /// The adapter.
    pub adapter: String,
    /// Its commands that read, write, flush or discard.
    pub commands: u64,
    /// Times that one waited for its pool: a first write, zeroes, a discard, a flush; of a mirrored pool each command.
    pub wait_pool: u64,
    /// Times that one came that needs space when its pool had none.
    pub wait_pool_full: u64,
}

impl LuWaitsView {
    fn of<'a>(adapter: &str, queues: impl Iterator<Item = &'a QueueSnapshot>) -> LuWaitsView {
        let adapter = adapter.to_owned();
        let waits = LuWaitsView { adapter, commands: 0, wait_pool: 0, wait_pool_full: 0 };
        queues.fold(waits, |mut waits, queue| {
            let kinds = [
                QueueCounter::Reads,
                QueueCounter::Writes,
                QueueCounter::Flushes,
                QueueCounter::Discards,
                QueueCounter::WriteZeroes,
            ];
            waits.commands += kinds.map(|kind| queue.get(kind)).into_iter().sum::<u64>();
            waits.wait_pool += queue.get(QueueCounter::WaitPool);
            waits.wait_pool_full += queue.get(QueueCounter::WaitPoolFull);
            waits
        })
    }
}

/// Adapters that have a volume, with target and LUN where they have several.
fn users<'a>(status: &'a Status, volume: &str) -> Vec<(&'a str, Option<(u8, u16)>)> {
    let units = status.units.iter().filter(|unit| unit.spec.volume.as_deref() == Some(volume));
    let units: Vec<&str> = units.map(|unit| unit.spec.name.as_str()).collect();
    let mut all = Vec::new();
    for adapter in &status.adapters {
        let name = adapter.spec.name.as_str();
        if adapter.spec.block().is_some_and(|block| block.volume == volume) {
            all.push((name, None));
        }
        for target in adapter.spec.scsi().into_iter().flat_map(|scsi| &scsi.targets) {
            let luns = target.luns.iter().filter(|(_, unit)| units.contains(&unit.as_str()));
            all.extend(luns.map(|(lun, _)| (name, Some((target.id, *lun)))));
        }
    }
    all
}

/// Says of each LU what its clients did with it.
pub(in crate::server) fn count_lus(lus: &mut [LuView], status: &Status, snapshot: &Snapshot) {
    for lu in lus {
        let Some(volume) = &lu.volume else { continue };
        let mut traffic = LuTrafficView::default();
        for (adapter, place) in users(status, volume) {
            match place {
                None => {
                    let queues = snapshot.queues.iter().filter(|queue| queue.adapter == adapter);
                    queues.for_each(|queue| traffic.add(queue));
                }
                Some(place) => {
                    let is_it = |lun: &&protocol::stats::LunSnapshot| {
                        lun.counted.adapter == adapter && (lun.target, lun.lun) == place
                    };
                    let luns = snapshot.luns.iter().filter(is_it);
                    luns.for_each(|lun| traffic.add(&lun.counted));
                }
            }
        }
        lu.traffic = Some(traffic);
    }
}

impl Server {
    /// How an LU lies on the PVs of its pool; nothing where that is not known: it was not made, its data plane does not run or is of an earlier version.
    pub(super) async fn layout_of(&self, volume: &str, pool: &str) -> Option<LuLayoutView> {
        let desired = self.desired();
        let set = desired[Object::Pool].get(pool)?;
        let lu = desired.lu_number(volume)?;
        let supervisor = self.supervisors().get(home(set)).cloned()?;
        let asked = supervisor.layout(LayoutSpec { pool: pool.to_owned(), lu }).await;
        Some(LuLayoutView::of(set, &asked.ok()?.ok()?))
    }

    /// What the adapters that have a volume have waited for.
    pub(super) async fn waits_of(&self, volume: &str, pool: &str) -> Vec<LuWaitsView> {
        let desired = self.desired();
        let Some(set) = desired[Object::Pool].get(pool) else { return Vec::new() };
        let (statuses, snapshots) = (self.statuses().await, self.snapshots());
        let Some((status, snapshot)) = statuses.get(home(set)).zip(snapshots.get(home(set))) else {
            return Vec::new();
        };
        let mut adapters: Vec<&str> =
            users(status, volume).into_iter().map(|(name, _)| name).collect();
        adapters.dedup();
        let waits = adapters.into_iter().map(|adapter| {
            let queues = snapshot.queues.iter().filter(|queue| queue.adapter == adapter);
            LuWaitsView::of(adapter, queues)
        });
        waits.collect()
    }
}

impl PvView {
    /// What of it LUs have.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.size_bytes.saturating_sub(self.free_bytes)
    }
}
