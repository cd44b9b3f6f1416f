//! The tiers of a storage pool: what each has, and whether it is nearly full.

use super::alerts::HELP;
use protocol::message::{PoolStatus, PvStatus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// A tier: PVs of one kind, in which LUs are. Where the pool is mirrored, each byte is there twice and counted once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TierView {
    /// Its name.
    pub name: String,
    /// What its PVs have for LUs.
    pub size_bytes: u64,
    /// What its LUs have taken.
    pub used_bytes: u64,
    /// What its LUs have in all.
    pub allocated_bytes: u64,
    /// What is neither used nor set aside for LUs.
    pub free_bytes: u64,
    /// Seconds until it is full, at the pace of the last day or of the last week, whichever is faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_in_s: Option<u64>,
    /// Writes that wait for space in it.
    pub paused: u64,
    /// Writes that wait because it is nearly full and gives out space slowly (`throttle_percent`).
    pub slowed: u64,
    /// Within the last minute some did.
    pub slows: bool,
    /// How many PVs it has.
    pub pvs: u32,
    /// How many LUs are in it.
    pub lus: u32,
}

/// What PVs of a tier that stay have free: of each failure group, as much as of the one that has less. What is free on a PV that leaves is nobody's to take.
fn free_on_pvs(status: &PoolStatus, tier: u8) -> u64 {
    let stays = |pv: &&PvStatus| pv.leaving.is_none() && pv.tier == tier;
    let free = |group: u8| {
        let of = status.pvs.iter().filter(stays).filter(move |pv| pv.group == group);
        of.map(|pv| pv.free_bytes).sum::<u64>()
    };
    let mirrored = status.pvs.iter().any(|pv| pv.group != 0);
    if mirrored { free(0).min(free(1)) } else { free(0) }
}

/// The tiers of a pool.
pub(super) fn all(status: &PoolStatus, name: impl Fn(u8) -> String) -> Vec<TierView> {
    let numbers = status.pvs.iter().map(|pv| pv.tier).chain([0]);
    let numbers: BTreeSet<u8> = numbers.chain(status.lus.iter().map(|lu| lu.tier)).collect();
    let alone = numbers.len() == 1;
    let tier = |number: u8| {
        let lus = || status.lus.iter().filter(move |lu| lu.tier == number);
        let written = || lus().filter(|lu| lu.origin.is_none());
        let used_bytes = lus().map(|lu| lu.mapped_bytes).sum::<u64>();
        // A data plane of an earlier version says nothing of tiers.
        let told = status.tiers.iter().find(|tier| tier.tier == number);
        let all = |of: u64| if alone { of } else { 0 };
        TierView {
            name: name(number),
            size_bytes: used_bytes + free_on_pvs(status, number),
            used_bytes,
            allocated_bytes: written().map(|lu| lu.bytes).sum(),
            free_bytes: told.map_or(all(status.free_bytes), |tier| tier.free_bytes),
            full_in_s: None,
            paused: told.map_or(all(status.paused), |tier| tier.paused),
            slowed: told.map_or(0, |tier| tier.slowed),
            slows: told.is_some_and(|tier| tier.slows),
            pvs: status.pvs.iter().filter(|pv| pv.tier == number).count() as u32,
            lus: written().count() as u32,
        }
    };
    numbers.into_iter().map(tier).collect()
}

/// How a tier is spoken of.
pub(super) fn named(tiers: &[TierView], tier: &TierView) -> String {
    if tiers.len() == 1 { "it".to_owned() } else { format!("its tier `{}`", tier.name) }
}

/// What there is to say where writes wait for space.
pub(super) fn full(tiers: &[TierView], paused: u64) -> Option<String> {
    let full = tiers.iter().filter(|tier| tier.paused > 0).map(|tier| named(tiers, tier));
    let full: Vec<String> = full.collect();
    let what = if full.is_empty() { "it is".to_owned() } else { full.join(" and ") + " is" };
    (paused > 0).then(|| format!("{what} full, and {paused} writes wait for space: {HELP}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::message::{LuStatus, PvState, TierStatus};

    fn pv(path: &str, tier: u8, group: u8, free_bytes: u64) -> PvStatus {
        let (path, uuid) = (path.into(), path.to_owned());
        let state = PvState::Active;
        PvStatus { path, uuid, bytes: 1000, free_bytes, group, tier, state, ..PvStatus::default() }
    }

    fn lu(number: u32, tier: u8, mapped_bytes: u64, origin: Option<u32>) -> LuStatus {
        let (thick, shares, detaching, astray_bytes) = (false, false, None, 0);
        LuStatus {
            number,
            bytes: 500,
            mapped_bytes,
            thick,
            checksums: false,
            tier,
            astray_bytes,
            origin,
            shares,
            asked: 0,
            detaching,
            ..LuStatus::default()
        }
    }

    #[test]
    fn each_tier_has_its_own_arithmetic() {
        let pvs =
            vec![pv("/a", 0, 0, 900), pv("/b", 0, 1, 800), pv("/c", 2, 0, 40), pv("/d", 2, 1, 50)];
        let lus = vec![lu(1, 0, 100, None), lu(2, 2, 400, None), lu(3, 2, 50, Some(2))];
        let tier = |tier, free_bytes| TierStatus { tier, free_bytes, ..TierStatus::default() };
        let told = vec![tier(0, 800), tier(2, 40)];
        let status = PoolStatus { pvs, lus, tiers: told, ..PoolStatus::default() };
        let name = |number| ["SYSTEM", "", "fast"][usize::from(number)].to_owned();
        let tiers = all(&status, name);
        let seen: Vec<_> = tiers
            .iter()
            .map(|one| {
                (
                    one.name.as_str(),
                    one.size_bytes,
                    one.used_bytes,
                    one.free_bytes,
                    one.pvs,
                    one.lus,
                )
            })
            .collect();
        assert_eq!(seen, [("SYSTEM", 900, 100, 800, 2, 1), ("fast", 490, 450, 40, 2, 1)]);
        assert_eq!(tiers[1].allocated_bytes, 500);
        // Of an earlier data plane, and with one tier.
        let pvs = vec![pv("/a", 0, 0, 100)];
        let status = PoolStatus { pvs, free_bytes: 100, paused: 1, ..PoolStatus::default() };
        let tiers = all(&status, name);
        assert_eq!((tiers.len(), tiers[0].free_bytes, tiers[0].size_bytes), (1, 100, 100));
        assert!(full(&tiers, 1).unwrap().starts_with("it is full, and 1 writes"));
        assert_eq!(full(&tiers, 0), None);
    }
}
