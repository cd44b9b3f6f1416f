//! Shared storage pools.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::is_default;

/// A pool, which is opened from its PVs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSpec {
    /// Its name.
    pub name: String,
    /// Its UUID, as 32 hexadecimal digits.
    pub uuid: String,
    /// Which server this is, likewise: what an earlier process of it knew is taken over.
    pub server: String,
    /// Its PVs: regular files or block devices, in any order.
    pub pvs: Vec<PathBuf>,
    /// Those of its PVs that are in the second failure group: each chunk is on a PV of either. Of PVs that are in the pool already it says nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirror: Vec<PathBuf>,
    /// Those of its PVs that are of another tier than the first. Of PVs that are in the pool already it says nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierSpec>,
    /// A file in a tmpfs that holds what is not on the PVs yet while the data plane restarts.
    pub shadow: PathBuf,
    /// It was never open: it is made, on PVs that hold nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fresh: bool,
    /// It is opened also where a failure group is missing that may have gone on alone. It counts while it is opened; of a pool that is open it says nothing.
    #[serde(default, skip_serializing_if = "is_default")]
    pub alone: bool,
    /// Those of its PVs that were never in it, as far as is known: what is not of the pool there is added to it, if it holds nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joining: Vec<PathBuf>,
    /// PVs that are to leave, or were: one that is not there any more is not missed, unless the pool still has something on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<PathBuf>,
    /// Numbers of LUs that are no longer wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doomed: Vec<u32>,
    /// LUs that are to be in a tier, and move there where they are in another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placed: Vec<PlacedLu>,
    /// What holds where it is full, or nearly so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub full: FullSpec,
    /// Snapshots to be made, of which it is not known that they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snapshots: Vec<SnapshotSpec>,
}

/// The PVs of a tier of a pool. The first tier, 0, has those that no other has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierSpec {
    /// Its number, from 1 on.
    pub tier: u8,
    /// Its PVs.
    pub pvs: Vec<PathBuf>,
}

/// An LU, and the tier in which it is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedLu {
    /// Its number.
    pub lu: u32,
    /// The number of the tier.
    pub tier: u8,
}

/// What holds where a pool, or a tier of it, is full or nearly so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullSpec {
    /// How much of a tier is used or set aside when it gives out space slowly; none: [`FullSpec::THROTTLE_PERCENT`], 100: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_percent: Option<u8>,
    /// What its LUs have of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lus: Vec<FullLuSpec>,
}

impl FullSpec {
    /// How full a tier is that gives out space slowly, if nothing else is said.
    pub const THROTTLE_PERCENT: u8 = 95;
}

/// What an LU has where there is no space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullLuSpec {
    /// Its number.
    pub lu: u32,
    /// Bytes of it for which space is set aside.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reserve_bytes: u64,
    /// Seconds that its writes wait for space before they fail; none: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_s: Option<u32>,
}

impl PlacedLu {
    /// The tier that an account has of an LU that cannot go where it is to be: none.
    pub const NONE: u8 = u8::MAX;
}

impl PoolSpec {
    /// The tier of a PV.
    #[must_use]
    pub fn tier_of(&self, pv: &Path) -> u8 {
        let of = self.tiers.iter().find(|tier| tier.pvs.iter().any(|one| one == pv));
        of.map_or(0, |tier| tier.tier)
    }

    /// The failure group of a PV.
    #[must_use]
    pub fn group_of(&self, pv: &Path) -> u8 {
        u8::from(self.mirror.iter().any(|one| one == pv))
    }
}

/// A snapshot to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotSpec {
    /// Its number among those that were ever asked for of the pool: it is made once.
    pub id: u64,
    /// The numbers of its LUs, all of one moment.
    pub lus: Vec<u32>,
    /// Nobody wants it any more: if it was made, that is told, and else it is not made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub given_up: bool,
}

/// What was done on a PV since it was opened: by clients' channels, and by the pool itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// Operations that are under way now.
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
