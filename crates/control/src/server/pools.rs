//! What the API shows of storage pools.

use crate::model::Desired;
use crate::model::pools::pool_of;
use fabric::attribute::{Attributes, Object, attr};
use fabric::units;
use protocol::message::PoolStatus;
use serde::{Deserialize, Serialize};
use spec::FileIdentity;
use utoipa::ToSchema;

/// How a storage pool stands. All sizes are in bytes, in whole chunks of 64 MiB.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PoolView {
    /// Its PVs.
    pub pvs: Vec<PvView>,
    /// Its LUs.
    pub lus: Vec<LuView>,
    /// What its PVs have for LUs: all but the pool's own blocks.
    pub size_bytes: u64,
    /// What LUs have taken of it.
    pub used_bytes: u64,
    /// What its LUs have in all: what they could take.
    pub allocated_bytes: u64,
    /// What is neither used nor set aside for a thick LU.
    pub free_bytes: u64,
    /// What LUs could take beyond what there is.
    pub overcommit_bytes: u64,
    /// Writes that wait for space now.
    pub paused: u64,
    /// Writes that have waited for space since its data plane opened it.
    pub pauses: u64,
    /// What will be wrong soon, or is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A PV.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PvView {
    /// Where it is.
    pub path: String,
    /// Its UUID.
    pub uuid: String,
    /// What it has.
    pub size_bytes: u64,
    /// What of it is nobody's.
    pub free_bytes: u64,
}

/// An LU.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LuView {
    /// Its number, which is never given out again.
    pub number: u32,
    /// The volume that it is. Without one it is nobody's: it was made, and its data plane died before that was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// What it has.
    pub size_bytes: u64,
    /// What of it has been written.
    pub used_bytes: u64,
    /// All of it is set aside.
    pub thick: bool,
}

impl PoolView {
    pub(super) fn of(desired: &Desired, set: &Attributes, status: &PoolStatus) -> PoolView {
        let name = &status.spec.name;
        let volumes: Vec<(u32, &String)> = desired[Object::Volume]
            .iter()
            .filter(|(_, set)| pool_of(set) == Some(name.as_str()))
            .filter_map(|(volume, _)| {
                let made = desired.allocations.files.get(volume)?;
                let crate::model::files::Made::Is(FileIdentity::Lu { number, .. }) = made else {
                    return None;
                };
                Some((*number, volume))
            })
            .collect();
        let lu = |lu: &protocol::message::LuStatus| LuView {
            number: lu.number,
            volume: volumes
                .iter()
                .find(|(number, _)| *number == lu.number)
                .map(|(_, name)| (*name).clone()),
            size_bytes: lu.bytes,
            used_bytes: lu.mapped_bytes,
            thick: lu.thick,
        };
        let pv = |pv: &protocol::message::PvStatus| PvView {
            path: pv.path.display().to_string(),
            uuid: pv.uuid.clone(),
            size_bytes: pv.bytes,
            free_bytes: pv.free_bytes,
        };
        let used: u64 = status.lus.iter().map(|lu| lu.mapped_bytes).sum();
        let size = used + status.pvs.iter().map(|pv| pv.free_bytes).sum::<u64>();
        let allocated: u64 = status.lus.iter().map(|lu| lu.bytes).sum();
        PoolView {
            pvs: status.pvs.iter().map(pv).collect(),
            lus: status.lus.iter().map(lu).collect(),
            size_bytes: size,
            used_bytes: used,
            allocated_bytes: allocated,
            free_bytes: status.free_bytes,
            overcommit_bytes: allocated.saturating_sub(size),
            paused: status.paused,
            pauses: status.pauses,
            warning: warning(set, size, status),
        }
    }
}

/// The gravest of what there is to say of its space.
fn warning(set: &Attributes, size: u64, status: &PoolStatus) -> Option<String> {
    let help = "remove LUs, or discard what clients no longer need (fstrim)";
    if status.paused > 0 {
        return Some(format!("it is full, and {} writes wait for space: {help}", status.paused));
    }
    let taken = size.saturating_sub(status.free_bytes);
    let limit = attr::pool::WARN_PERCENT.value(set);
    // Percent of sizes below 2^62.
    let percent = u128::from(taken) * 100 / u128::from(size.max(1));
    (percent >= u128::from(limit)).then(|| {
        let free = units::format_size(status.free_bytes);
        format!("{percent} % of it is used or set aside, {free} are free: {help}")
    })
}
