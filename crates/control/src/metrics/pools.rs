//! Storage pools: how full they are, what waits, what moves.

use super::{Scrape, seconds};
use crate::server::{ALERTS, ChecksView, LuView, PoolView, PvTrafficView, PvView, TierView};
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use std::fmt;

/// Name, help and value of something that is counted of pools, of their tiers, of their PVs, of their LUs.
type OfPool = (&'static str, &'static str, fn(&PoolView) -> u64);
type OfTier = (&'static str, &'static str, fn(&TierView) -> u64);
type OfPv = (&'static str, &'static str, fn(&PvView) -> u64);
type OfLu = (&'static str, &'static str, fn(&LuView) -> u64);

const BYTES: [OfPool; 8] = [
    ("pool_size", "What the PVs of the pool have for LUs", |pool| pool.size_bytes),
    ("pool_used", "What LUs have taken of the pool", |pool| pool.used_bytes),
    ("pool_free", "What is neither used nor set aside for LUs", |pool| pool.free_bytes),
    ("pool_allocated", "What the LUs of the pool have in all", |pool| pool.allocated_bytes),
    ("pool_overcommit", "What LUs could take beyond what there is", |pool| pool.overcommit_bytes),
    ("pool_to_move", "What is still to move between PVs that come, stay or leave", |pool| {
        moves(pool).map(|one| one.planned_bytes.saturating_sub(one.moved_bytes)).sum()
    }),
    ("pool_not_moved", "What of it could not be copied and is tried again", |pool| {
        moves(pool).map(|one| one.failed_bytes).sum()
    }),
    ("pool_to_resync", "What failure groups are still to get that they missed", |pool| {
        let moves = pool.resync.as_ref();
        moves.map_or(0, |one| one.planned_bytes.saturating_sub(one.moved_bytes))
    }),
];

const TIER_BYTES: [OfTier; 4] = [
    ("tier_size", "What the PVs of the tier have for LUs", |tier| tier.size_bytes),
    ("tier_used", "What LUs have taken of the tier", |tier| tier.used_bytes),
    ("tier_free", "What of the tier is neither used nor set aside for a thick LU", |tier| {
        tier.free_bytes
    }),
    ("tier_allocated", "What the LUs of the tier have in all", |tier| tier.allocated_bytes),
];

const PV_BYTES: [OfPv; 2] = [
    ("pv_size", "What the PV has", |pv| pv.size_bytes),
    ("pv_free", "What of the PV is nobody's", |pv| pv.free_bytes),
];

const LU_BYTES: [OfLu; 3] = [
    ("lu_size", "What the LU has", |lu| lu.size_bytes),
    ("lu_used", "What of the LU has been written", |lu| lu.used_bytes),
    ("lu_astray", "What of the LU is on PVs of other tiers, and moves to its own", |lu| {
        lu.astray_bytes
    }),
];

fn moves(pool: &PoolView) -> impl Iterator<Item = &crate::server::MovesView> {
    pool.pvs.iter().filter_map(|pv| pv.leaving.as_ref()).chain(&pool.balance)
}

/// Name, help, unit and value of something that is counted of what goes on at a PV.
type OfTraffic = (&'static str, &'static str, Option<Unit>, fn(&PvTrafficView) -> u64);

const TRAFFIC: [OfTraffic; 6] = [
    ("pv_reads", "Reads of the PV that are over", None, |of| of.reads),
    ("pv_writes", "Writes to the PV that are over", None, |of| of.writes),
    ("pv_others", "Flushes of the PV, and whatever else, that are over", None, |of| of.others),
    ("pv_errors", "Operations on the PV that have failed", None, |of| of.errors),
    ("pv_read", "What these reads were to read", Some(Unit::Bytes), |of| of.read_bytes),
    ("pv_written", "What these writes were to write", Some(Unit::Bytes), |of| of.written_bytes),
];

/// The labels of a PV, and what goes on there.
type AtPv<'a> = ([(&'static str, &'a str); 2], PvTrafficView);

/// What goes on at each PV, where its data plane says so.
fn traffic(encoder: &mut DescriptorEncoder<'_>, pvs: &[AtPv<'_>]) -> Result<(), fmt::Error> {
    let help = "Operations on the PV that are under way now";
    let mut metric = encoder.encode_descriptor("pv_in_flight", help, None, MetricType::Gauge)?;
    for (labels, of) in pvs {
        let in_flight = i64::try_from(of.in_flight).unwrap_or(i64::MAX);
        metric.encode_family(labels)?.encode_gauge(&in_flight)?;
    }
    for (name, help, unit, value) in &TRAFFIC {
        let mut metric =
            encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        for (labels, of) in pvs {
            let mut metric = metric.encode_family(labels)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&value(of), None)?;
        }
    }
    let help = "How long the operations on the PV that are over took, all together";
    let unit = Unit::Seconds;
    let mut metric =
        encoder.encode_descriptor("pv_operation", help, Some(&unit), MetricType::Counter)?;
    for (labels, of) in pvs {
        let mut metric = metric.encode_family(labels)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&seconds(of.took_ns), None)?;
    }
    Ok(())
}

/// A gauge in bytes.
fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    values: impl Iterator<Item = (Vec<(&'static str, String)>, u64)>,
) -> Result<(), fmt::Error> {
    let unit = Unit::Bytes;
    let mut metric = encoder.encode_descriptor(name, help, Some(&unit), MetricType::Gauge)?;
    for (labels, value) in values {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        metric.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

impl Scrape {
    /// Pools that are open.
    pub(super) fn encode_pools(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> Result<(), fmt::Error> {
        let pools = || {
            let pools = self.status.pools.iter();
            pools.filter_map(|pool| Some((pool.name.as_str(), pool.space.as_ref()?)))
        };
        let label = |name: &str| ("pool", name.to_owned());
        for (name, help, value) in BYTES {
            let values = pools().map(|(name, pool)| (vec![label(name)], value(pool)));
            gauge(encoder, (name, help), values)?;
        }
        let help = "What would be copied between failure groups if the host died now";
        let said = pools().filter_map(|(name, pool)| {
            // Data planes of earlier versions do not say it.
            Some((vec![label(name)], pool.after_crash_bytes?))
        });
        gauge(encoder, ("pool_after_crash", help), said)?;
        let tier_labels =
            |pool: &str, tier: &TierView| vec![label(pool), ("tier", tier.name.clone())];
        for (name, help, value) in TIER_BYTES {
            let of = |(name, pool): (_, &PoolView)| {
                let tiers = pool.tiers.iter();
                tiers.map(|tier| (tier_labels(name, tier), value(tier))).collect::<Vec<_>>()
            };
            gauge(encoder, (name, help), pools().flat_map(of))?;
        }
        for (name, help, value) in PV_BYTES {
            let of = |(name, pool): (_, &PoolView)| {
                let labels = |pv: &PvView| vec![label(name), ("pv", pv.path.clone())];
                pool.pvs.iter().map(|pv| (labels(pv), value(pv))).collect::<Vec<_>>()
            };
            gauge(encoder, (name, help), pools().flat_map(of))?;
        }
        let mut busy: Vec<AtPv<'_>> = Vec::new();
        for (name, pool) in pools() {
            let pvs = pool.pvs.iter().filter_map(|pv| Some((pv.path.as_str(), pv.traffic?)));
            busy.extend(pvs.map(|(pv, traffic)| ([("pool", name), ("pv", pv)], traffic)));
        }
        traffic(encoder, &busy)?;
        for (name, help, value) in LU_BYTES {
            let of = |(name, pool): (_, &PoolView)| {
                let labels = |lu: &LuView| {
                    let volume = lu.volume.clone().unwrap_or_default();
                    vec![label(name), ("lu", lu.number.to_string()), ("volume", volume)]
                };
                pool.lus.iter().map(|lu| (labels(lu), value(lu))).collect::<Vec<_>>()
            };
            gauge(encoder, (name, help), pools().flat_map(of))?;
        }
        let help = "PVs of the failure group that are away: what was on them has one copy";
        let mut metric =
            encoder.encode_descriptor("failgrp_away", help, None, MetricType::Gauge)?;
        for (name, pool) in pools() {
            for group in &pool.failgrps {
                let is_away = |pv: &&PvView| pv.failgrp == group.name && pv.state == "away";
                let away = pool.pvs.iter().filter(is_away).count() as i64;
                let labels = [("pool", name), ("failgrp", group.name.as_str())];
                metric.encode_family(&labels)?.encode_gauge(&away)?;
            }
        }
        let help = "Writes that wait for space in the tier now";
        let mut metric = encoder.encode_descriptor("tier_paused", help, None, MetricType::Gauge)?;
        for (name, pool) in pools() {
            for tier in &pool.tiers {
                let paused = i64::try_from(tier.paused).unwrap_or(i64::MAX);
                metric.encode_family(&tier_labels(name, tier))?.encode_gauge(&paused)?;
            }
        }
        let help =
            "When the tier is full, at the pace of the last day or week, whichever is faster";
        let unit = Unit::Seconds;
        let mut metric =
            encoder.encode_descriptor("tier_full_in", help, Some(&unit), MetricType::Gauge)?;
        for (name, pool) in pools() {
            for tier in &pool.tiers {
                // One that does not grow is never full: that is no number.
                let Some(left) = tier.full_in_s else { continue };
                let left = i64::try_from(left).unwrap_or(i64::MAX);
                metric.encode_family(&tier_labels(name, tier))?.encode_gauge(&left)?;
            }
        }
        let help =
            "What is warned of: the pool is filled to a threshold, full in days, overcommitted";
        let mut metric = encoder.encode_descriptor("pool_alert", help, None, MetricType::Gauge)?;
        for (name, pool) in pools() {
            for word in ALERTS {
                let there = i64::from(pool.alerts.iter().any(|alert| alert.alert == word));
                metric.encode_family(&[("pool", name), ("alert", word)])?.encode_gauge(&there)?;
            }
        }
        let help = "Writes that wait for space in the pool now";
        let mut metric = encoder.encode_descriptor("pool_paused", help, None, MetricType::Gauge)?;
        for (name, pool) in pools() {
            let paused = i64::try_from(pool.paused).unwrap_or(i64::MAX);
            metric.encode_family(&[("pool", name)])?.encode_gauge(&paused)?;
        }
        let help = "Writes that have waited for space since the data plane opened the pool";
        let mut metric =
            encoder.encode_descriptor("pool_pauses", help, None, MetricType::Counter)?;
        for (name, pool) in pools() {
            let labels = [("pool", name)];
            let mut metric = metric.encode_family(&labels)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&pool.pauses, None)?;
        }
        let help = "Blocks of 4 KiB that were found to differ between the failure groups, or that could not be read on a PV, since the data plane opened the pool; twice if they were found twice";
        let mut metric =
            encoder.encode_descriptor("pool_found_blocks", help, None, MetricType::Counter)?;
        for (name, pool) in pools() {
            let ChecksView { differs, repaired, unreadable, lost, .. } = &pool.checks;
            for (what, count) in [
                ("differs", differs),
                ("repaired", repaired),
                ("unreadable", unreadable),
                ("lost", lost),
            ] {
                let labels = [("pool", name), ("what", what)];
                let mut metric = metric.encode_family(&labels)?;
                metric.encode_counter::<NoLabelSet, _, u64>(count, None)?;
            }
        }
        let help =
            "When the last scrub of the pool was over, in seconds since 1970; 0 if there was none";
        let unit = Unit::Seconds;
        let mut metric =
            encoder.encode_descriptor("pool_last_scrub", help, Some(&unit), MetricType::Gauge)?;
        for (name, pool) in pools() {
            let at = pool.checks.last_scrub.as_ref().map_or(0, |last| last.ended_ms / 1000);
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            metric.encode_family(&[("pool", name)])?.encode_gauge(&at)?;
        }
        Ok(())
    }
}
