//! What is warned of before writes wait for space: a threshold, days to full, overcommitment. Looked at once in a minute, and told when it begins and when it
//! is over.

use super::{PoolView, TierView};
use crate::server::shared::Server;
use crate::server::views::AnyView;
use crate::trail::Kind;
use crate::turns;
use fabric::attribute::{Attributes, Object, attr};
use fabric::units::{format_days, format_size, percent};
use protocol::now_ms;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;
use utoipa::ToSchema;

/// How often pools are looked at.
const EVERY: Duration = Duration::from_secs(60);
/// So many looks without an alert until it is over: a pool about a limit is no news each minute.
const QUIET: u32 = 10;

/// What mends them.
pub(super) const HELP: &str =
    "add a PV (`trunkline pv add`), remove LUs, or discard what clients no longer need (fstrim)";

/// The words of all there are.
pub(crate) const ALERTS: [&str; 4] = [THRESHOLD, THROTTLE, DAYS, OVERCOMMIT];
const THRESHOLD: &str = "threshold";
const THROTTLE: &str = "throttle";
const DAYS: &str = "days";
const OVERCOMMIT: &str = "overcommit";

/// Something that is warned of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolAlert {
    /// `threshold`: it is filled to `warn_percent`; `throttle`: it is filled to `throttle_percent`, and writes are slowed by that; `days`: at its pace it is full within `warn_days`; `overcommit`: its LUs could take
    /// `warn_overcommit_percent` beyond what there is.
    pub alert: String,
    /// What, in words.
    pub message: String,
}

impl PoolAlert {
    fn new(alert: &str, message: String) -> PoolAlert {
        PoolAlert { alert: alert.to_owned(), message }
    }
}

/// What of a tier is taken, in bytes.
fn taken(tier: &TierView) -> u64 {
    tier.size_bytes.saturating_sub(tier.free_bytes)
}

impl PoolView {
    /// When it and its tiers are full, at the pace that they had, and what is to be warned of.
    pub(in crate::server) fn judge(
        &mut self,
        set: &Attributes,
        left: impl Fn(&str, (u64, u64)) -> Option<u64>,
    ) {
        for tier in &mut self.tiers {
            tier.full_in_s = left(&tier.name, (taken(tier), tier.free_bytes));
        }
        self.full_in_s = self.tiers.iter().filter_map(|tier| tier.full_in_s).min();
        self.alerts = self.alerts_of(set);
        let full = super::tiers::full(&self.tiers, self.paused);
        self.warning = full.or_else(|| self.alerts.first().map(|alert| alert.message.clone()));
    }

    fn alerts_of(&self, set: &Attributes) -> Vec<PoolAlert> {
        let of = |tier: &TierView| super::tiers::named(&self.tiers, tier);
        let mut all = Vec::new();
        let filled = |tier: &&TierView| percent(taken(tier), tier.size_bytes);
        if let Some(tier) = self.tiers.iter().max_by_key(filled)
            && filled(&tier) >= attr::pool::WARN_PERCENT.value(set)
        {
            let (percent, free) = (filled(&tier), format_size(tier.free_bytes));
            let what = format!("{percent} % of {} is used or set aside, {free} are free", of(tier));
            all.push(PoolAlert::new(THRESHOLD, format!("{what}: {HELP}")));
        }
        if let Some(tier) = self.tiers.iter().find(|tier| tier.slows || tier.slowed > 0) {
            let (percent, slowed) = (filled(&tier), tier.slowed);
            let what = format!(
                "{percent} % of {} is used or set aside, and it gives out space slowly: {slowed} writes wait for that",
                of(tier)
            );
            all.push(PoolAlert::new(THROTTLE, format!("{what}: {HELP}")));
        }
        let first = self.tiers.iter().filter_map(|tier| Some((tier.full_in_s?, tier)));
        if let Some((left, tier)) = first.min_by_key(|(left, _)| *left)
            && left < attr::pool::WARN_DAYS.value(set) * 86_400
        {
            let left = format_days(left);
            let what = format!("at its pace {} is full in {left}", of(tier));
            all.push(PoolAlert::new(DAYS, format!("{what}: {HELP}")));
        }
        let limit = attr::pool::WARN_OVERCOMMIT_PERCENT.value(set);
        let beyond = percent(self.overcommit_bytes, self.size_bytes);
        if limit > 0 && beyond >= limit {
            let what = format!(
                "its LUs could take {} beyond what there is, {beyond} % of it",
                format_size(self.overcommit_bytes)
            );
            let help = "add a PV (`trunkline pv add`), or remove LUs";
            all.push(PoolAlert::new(OVERCOMMIT, format!("{what}: {help}")));
        }
        all
    }
}

/// Alerts that were told, by UUID of the pool and word, with the looks since they were there. Nothing before the first look of a server.
#[derive(Debug, Default)]
pub(crate) struct Told(Option<BTreeMap<String, BTreeMap<String, u32>>>);

/// What is to be told now of a pool of which that is known.
fn news(known: &mut BTreeMap<String, u32>, alerts: &[PoolAlert]) -> Vec<(Kind, PoolAlert)> {
    let mut news = Vec::new();
    for alert in alerts {
        if known.insert(alert.alert.clone(), 0).is_none() {
            news.push((Kind::PoolAlert, alert.clone()));
        }
    }
    known.retain(|word, looks| {
        *looks += u32::from(!alerts.iter().any(|alert| alert.alert == *word));
        let stays = *looks < QUIET;
        if !stays {
            let over = format!("over: nothing to warn of any more ({word})");
            news.push((Kind::PoolAlertOver, PoolAlert::new(word, over)));
        }
        stays
    });
    news
}

impl Server {
    /// Begins to look at pools.
    pub(in crate::server) fn watch_pools(&self) {
        let (server, ended) = (Weak::clone(&self.myself), Arc::clone(&self.ended));
        tokio::spawn(async move {
            let mut told = Told::default();
            loop {
                tokio::time::sleep(EVERY).await;
                let Some(server) = server.upgrade() else { return };
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                server.look_at_pools(&mut told, now_ms()).await;
            }
        });
    }

    pub(crate) async fn look_at_pools(&self, told: &mut Told, at_ms: u64) {
        let names = self.desired()[Object::Pool].len();
        let pools = if names > 0 { self.objects(Object::Pool).await } else { Vec::new() };
        let views = || {
            pools.iter().filter_map(|view| match view {
                AnyView::Object(view) => Some((uuid(&view.name, &view.attributes), view)),
                _ => None,
            })
        };
        // What a server before this one has told is known by name. Another pool of a name has another UUID.
        let told = told.0.get_or_insert_with(|| {
            let of =
                |name: &str| self.trail.alerts(name).into_iter().map(|alert| (alert, 0)).collect();
            views().map(|(uuid, view)| (uuid.to_owned(), of(&view.name))).collect()
        });
        let mut filled = BTreeMap::new();
        for (uuid, view) in views() {
            // Of one that is not open nothing is known, and nothing is over.
            let taken = view.space.as_ref().map(|space| {
                let known = told.entry(uuid.to_owned()).or_default();
                for (kind, PoolAlert { alert, message }) in news(known, &space.alerts) {
                    self.trail.of_pool(kind, &view.name, Some(alert), message);
                }
                space.tiers.iter().map(|tier| (tier.name.clone(), taken(tier))).collect()
            });
            filled.insert(uuid.to_owned(), taken);
        }
        told.retain(|uuid, _| filled.contains_key(uuid));
        turns::blocking(|| self.trail.filled(at_ms, filled));
    }
}

/// What a pool is known by, whatever else is called as it was.
pub(in crate::server) fn uuid<'a>(name: &'a str, set: &'a Attributes) -> &'a str {
    attr::pool::UUID.of(set).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::super::Lost;
    use super::*;
    use crate::model::Desired;
    use crate::model::pools::Kept;
    use protocol::message::{LuStatus, PoolSpec, PoolStatus, PvState, PvStatus, TierStatus};

    #[test]
    fn the_fullest_tier_the_first_that_is_full_and_what_is_promised_are_warned_of() {
        let pv = |path: &str, tier, free_bytes| PvStatus {
            path: path.into(),
            uuid: path.to_owned(),
            bytes: 1000,
            free_bytes,
            group: 0,
            tier,
            state: PvState::Active,
            ..PvStatus::default()
        };
        let lu = |number, tier, bytes, mapped_bytes| LuStatus {
            number,
            bytes,
            mapped_bytes,
            thick: false,
            checksums: false,
            tier,
            astray_bytes: 0,
            origin: None,
            shares: false,
            asked: 0,
            detaching: None,
            ..LuStatus::default()
        };
        let tier = |tier, free_bytes, paused| TierStatus {
            tier,
            free_bytes,
            paused,
            ..TierStatus::default()
        };
        let status = |free, paused| PoolStatus {
            spec: PoolSpec { name: "p".to_owned(), ..PoolSpec::default() },
            pvs: vec![pv("/a", 0, 900), pv("/b", 2, free)],
            lus: vec![lu(1, 0, 1500, 100), lu(2, 2, 500, 450)],
            tiers: vec![tier(0, 900, 0), tier(2, free, paused)],
            paused,
            ..PoolStatus::default()
        };
        let kept = Kept { tiers: [("fast".to_owned(), 2)].into(), ..Kept::default() };
        let mut desired = Desired::default();
        desired.allocations.pools.insert("p".to_owned(), kept);
        let judge = |text: &str, status: &PoolStatus, left: Option<u64>| {
            let text = format!("[pool.p]\npvs=\"/a,fast:/b\"\n{text}");
            let all = crate::config::read(&text).unwrap();
            let mut view = PoolView::of(&desired, &all[Object::Pool]["p"], status, &Lost::new());
            view.judge(&all[Object::Pool]["p"], |tier, (taken, free)| {
                assert_eq!((taken, free), if tier == "fast" { (450, 40) } else { (100, 900) });
                left.filter(|_| tier == "fast")
            });
            view
        };
        let words = |view: &PoolView| -> Vec<String> {
            view.alerts.iter().map(|alert| alert.alert.clone()).collect()
        };
        let quiet = judge("warn_percent=92", &status(40, 0), None);
        assert_eq!((words(&quiet), quiet.warning, quiet.full_in_s), (Vec::new(), None, None));
        let more = "warn_overcommit_percent=30";
        let all = judge(more, &status(40, 0), Some(5 * 86_400));
        assert_eq!(words(&all), ["threshold", "days", "overcommit"]);
        assert_eq!((all.full_in_s, all.tiers[0].full_in_s), (Some(5 * 86_400), None));
        let starts = [
            "91 % of its tier `fast` is used or set aside, 40 are free: add a PV",
            "at its pace its tier `fast` is full in 5 days: add a PV",
            "its LUs could take 510 beyond what there is, 34 % of it: add a PV",
        ];
        for (alert, start) in all.alerts.iter().zip(starts) {
            assert!(alert.message.starts_with(start), "{}", alert.message);
        }
        assert_eq!(all.warning.as_ref(), Some(&all.alerts[0].message));
        let later = judge("warn_percent=92", &status(40, 0), Some(7 * 86_400));
        assert_eq!((words(&later), later.full_in_s), (Vec::new(), Some(7 * 86_400)));
        let never = judge("warn_percent=92\nwarn_days=0", &status(40, 0), Some(0));
        assert_eq!(words(&never), [""; 0]);
        let slow = |slowed, slows| {
            let mut status = status(40, 0);
            status.tiers[1] = TierStatus { slowed, slows, ..status.tiers[1] };
            judge("warn_percent=92", &status, None).alerts
        };
        for (slowed, slows) in [(2, true), (0, true), (2, false)] {
            let alerts = slow(slowed, slows);
            assert_eq!((alerts.len(), alerts[0].alert.as_str()), (1, "throttle"));
            let start = format!(
                "91 % of its tier `fast` is used or set aside, and it gives out space slowly: {slowed} writes"
            );
            assert!(alerts[0].message.starts_with(&start), "{}", alerts[0].message);
        }
        assert_eq!(slow(0, false), []);
        let waits = judge("", &status(40, 3), None).warning.unwrap();
        assert!(waits.starts_with("its tier `fast` is full, and 3 writes wait"), "{waits}");
    }

    fn alert(word: &str) -> PoolAlert {
        PoolAlert::new(word, format!("{word} is there"))
    }

    #[test]
    fn an_alert_is_told_when_it_begins_and_when_it_is_over_for_good() {
        // A server before this one has told of the days.
        let mut known = BTreeMap::from([("days".to_owned(), 0)]);
        let mut look = |alerts: &[PoolAlert]| -> Vec<(Kind, String)> {
            let all = news(&mut known, alerts).into_iter();
            all.map(|(kind, alert)| (kind, alert.alert)).collect()
        };
        let [days, threshold] = ["days", "threshold"].map(alert);
        let both = [days, threshold.clone()];
        assert_eq!(look(&both), [(Kind::PoolAlert, "threshold".to_owned())]);
        assert_eq!(look(&both), []);
        for _ in 1..QUIET {
            assert_eq!(look(std::slice::from_ref(&threshold)), []);
        }
        assert_eq!(
            look(std::slice::from_ref(&threshold)),
            [(Kind::PoolAlertOver, "days".to_owned())]
        );
        // About a limit.
        for _ in 0..30 {
            assert_eq!(look(&[]), []);
            assert_eq!(look(std::slice::from_ref(&threshold)), []);
        }
    }
}
