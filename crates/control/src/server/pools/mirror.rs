//! The failure groups of a storage pool: how they stand, what is wrong with their PVs since when, and what to do about it.

use super::{LuLayoutView, LuWaitsView, MovesView, PoolView, PvView};
use crate::error::{ApiError, Code};
use crate::model::home;
use crate::model::pools::{groups, pool_of};
use crate::reconcile::Subject;
use crate::server::shared::Server;
use crate::server::views::AnyView;
use fabric::attribute::{Attributes, Object, attr};
use fabric::units::format_size;
use protocol::message::{PoolStatus, PvState, PvStatus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Since when PVs of a pool are away, by path, in milliseconds since 1970.
pub(in crate::server) type Lost = BTreeMap<String, u64>;

/// A failure group: of each chunk of an LU one copy is on a PV of each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailgrpView {
    /// Its name.
    pub name: String,
    /// `online`; `degraded` where some of its PVs are away, `away` where all are; `resyncing` while some get what they missed.
    pub state: String,
    /// What its PVs have.
    pub size_bytes: u64,
    /// What of it is nobody's.
    pub free_bytes: u64,
    /// How many PVs it has.
    pub pvs: u32,
}

/// What is wrong with a pool, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolFinding {
    /// What is wrong.
    pub what: String,
    /// The PV that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pv: Option<String>,
    /// Since when, in milliseconds since 1970, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// What it means for clients.
    pub effect: String,
    /// What mends it.
    pub remedy: String,
}

/// Why a pool, or an LU of it, is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolExplanation {
    /// The pool.
    pub pool: String,
    /// The LU that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lu: Option<String>,
    /// `open`, `degraded`, `failed` or `pending`, as `pool show` has it.
    pub state: String,
    /// How many copies there are of what is written while nothing is away.
    pub copies: u32,
    /// Its failure groups, where the pool is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failgrps: Vec<FailgrpView>,
    /// What is wrong, the gravest first; empty if nothing is.
    pub findings: Vec<PoolFinding>,
    /// How the LU that was asked for lies on the PVs, where its data plane says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<LuLayoutView>,
    /// What the adapters that have that LU have waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<LuWaitsView>,
}

/// How a PV stands, in one word.
pub(super) fn state_of(pv: &PvStatus) -> &'static str {
    match pv.state {
        PvState::Away => "away",
        PvState::Resyncing => "resyncing",
        PvState::Active if pv.leaving.is_some() => "leaving",
        PvState::Active => "in",
    }
}

/// The name of a failure group by its number.
pub(super) fn group_name(set: &Attributes, group: u8) -> String {
    groups(set)[usize::from(group != 0)].to_owned()
}

/// The failure groups of a pool; of one that is not mirrored there is one.
pub(super) fn all_groups(set: &Attributes, status: &PoolStatus) -> Vec<FailgrpView> {
    let group = |group: u8| {
        let pvs = || status.pvs.iter().filter(move |pv| pv.group == group);
        let count = |state: PvState| pvs().filter(|pv| pv.state == state).count();
        let (all, away) = (pvs().count(), count(PvState::Away));
        let state = match (away, count(PvState::Resyncing)) {
            (0, 0) => "online",
            (0, _) => "resyncing",
            (some, _) if some == all => "away",
            _ => "degraded",
        };
        (all > 0).then(|| FailgrpView {
            name: group_name(set, group),
            state: state.to_owned(),
            size_bytes: pvs().map(|pv| pv.bytes).sum(),
            free_bytes: pvs().map(|pv| pv.free_bytes).sum(),
            pvs: all as u32,
        })
    };
    [0, 1].into_iter().filter_map(group).collect()
}

impl PoolView {
    /// What is worth knowing of the failure groups, and is no fault.
    pub(super) fn note_of_groups(groups: &[FailgrpView]) -> Option<String> {
        let [one, other] = groups else { return None };
        let (less, more) =
            if one.size_bytes < other.size_bytes { (one, other) } else { (other, one) };
        (less.size_bytes != more.size_bytes).then(|| {
            format!(
                "failure group `{}` has {}, and `{}` {}: each copy needs its place, so what the lesser one has can be used",
                less.name,
                format_size(less.size_bytes),
                more.name,
                format_size(more.size_bytes),
            )
        })
    }

    fn of_state<'a>(&'a self, state: &'a str) -> impl Iterator<Item = &'a PvView> {
        self.pvs.iter().filter(move |pv| pv.state == state)
    }

    /// Whether something that it has two copies of has one now, and why.
    #[must_use]
    pub fn degraded(&self) -> Option<String> {
        let list = |state| {
            let name = |pv: &PvView| {
                let why = pv.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                format!("PV {} of failure group `{}`{why}", pv.path, pv.failgrp)
            };
            let all: Vec<String> = self.of_state(state).map(name).collect();
            let many = all.len() > 1;
            (!all.is_empty()).then(|| (all.join("; "), many))
        };
        if let Some((away, many)) = list("away") {
            let they = if many { "they get" } else { "it gets" };
            if self.of_state("away").all(|pv| pv.leaving.is_some()) {
                return Some(format!(
                    "away, and leaving: {away}. What was there gets its other copy on the other PVs of its failure group"
                ));
            }
            return Some(format!(
                "away: {away}. What is written has one copy there; bring disk or file back, and {they} what was missed"
            ));
        }
        let (back, many) = list("resyncing")?;
        let gets = if many { "get" } else { "gets" };
        let far = self.resync.as_ref().map(|moves| format!(": {}", moves.text()));
        Some(format!("{back} {gets} what was missed{}", far.unwrap_or_default()))
    }

    /// What is wrong with its PVs.
    fn findings(&self, pool: &str) -> Vec<PoolFinding> {
        let mirrored = self.failgrps.len() > 1;
        let parts = self.of_state("away").filter_map(|pv| self.parting(pool, pv));
        let away = self.of_state("away").filter(|pv| pv.leaving.is_none());
        let away = away.map(|pv| PoolFinding {
            what: format!(
                "PV {} of failure group `{}` is away{}",
                pv.path,
                pv.failgrp,
                pv.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
            ),
            pv: Some(pv.path.clone()),
            since_ms: pv.since_ms,
            effect: "Clients go on: the other failure group has all that they were answered. What was on this PV has one copy until it is back: where that fails too, clients see errors."
                .to_owned(),
            remedy: format!(
                "Look at the disk or file behind {path}: power, path, cable, the file system that it is on. When it answers again it is found by itself, within a minute, and gets what it missed; nothing has to be said to the pool. Do not write to it meanwhile. If it is away for good, put another in its place: `trunkline pv replace {pool} {path} NEW`, or `trunkline pv remove {pool} {path}` where the others of its failure group have room.",
                path = pv.path
            ),
        });
        let resync = self.resync.as_ref();
        let back = self.of_state("resyncing").map(|pv| PoolFinding {
            what: format!("PV {} of failure group `{}` gets what it missed{}", pv.path, pv.failgrp, far(resync)),
            pv: Some(pv.path.clone()),
            since_ms: pv.since_ms,
            effect: "Clients go on. Until it is over, the PVs of the other failure group are needed: what fails on them is told to clients.".to_owned(),
            remedy: "Wait; it goes on by itself, also over the death of a process.".to_owned(),
        });
        let all_in =
            mirrored && self.pvs.iter().all(|pv| matches!(pv.state.as_str(), "in" | "leaving"));
        let alike = resync.filter(|_| all_in).map(|_| PoolFinding {
            what: format!("what was being written when the pool was last open is made the same in both failure groups{}", far(resync)),
            pv: None,
            since_ms: None,
            effect: "Clients go on; who reads a block that was not compared yet waits for that block.".to_owned(),
            remedy: "Wait; it goes on by itself.".to_owned(),
        });
        let leaving = self.pvs.iter().filter_map(|pv| {
            let moves = pv.leaving.as_ref().filter(|moves| moves.failed_bytes > 0)?;
            (pv.state != "away").then(|| PoolFinding {
                what: format!(
                    "PV {} cannot leave: {} of it cannot be read",
                    pv.path,
                    format_size(moves.failed_bytes)
                ),
                pv: Some(pv.path.clone()),
                since_ms: None,
                effect: "The rest has moved, or does. Reads of what cannot be read fail."
                    .to_owned(),
                remedy: format!(
                    "It is tried again by itself; at once with `trunkline pv remove {pool} {}`.",
                    pv.path
                ),
            })
        });
        let full = (self.paused > 0).then(|| PoolFinding {
            what: format!("the pool is full, and {} writes wait for space", self.paused),
            pv: None,
            since_ms: None,
            effect: "What needs space waits, and nothing else does; it goes on when there is some.".to_owned(),
            remedy: match mirrored {
                true => format!("Add a PV to each failure group (`trunkline pv add {pool} PATH --failgrp NAME`), remove LUs, or discard what clients no longer need (fstrim)."),
                false => format!("Add a PV (`trunkline pv add {pool} PATH`), remove LUs, or discard what clients no longer need (fstrim)."),
            },
        });
        let slow = self.tiers.iter().find(|tier| tier.slows || tier.slowed > 0);
        let slow = slow.map(|tier| PoolFinding {
            what: format!(
                "{} is nearly full and gives out space slowly, and {} writes wait for that",
                super::tiers::named(&self.tiers, tier),
                tier.slowed
            ),
            pv: None,
            since_ms: None,
            effect: "What needs space is slowed, and nothing else is.".to_owned(),
            remedy: format!("Add a PV (`trunkline pv add`), remove LUs, or let space be given out at full speed until there is none (`trunkline pool set {pool} --throttle-percent 100`)."),
        });
        away.chain(parts).chain(full).chain(slow).chain(back).chain(leaving).chain(alike).collect()
    }

    /// What there is to say of a PV that is away and leaves.
    fn parting(&self, pool: &str, pv: &PvView) -> Option<PoolFinding> {
        let moves = pv.leaving.as_ref()?;
        let waits = self.of_state("away").find(|other| other.leaving.is_none());
        let remedy = match waits {
            Some(other) => format!(
                "Bring {} back, or remove it too: which chunks were on which PV is not known, so it is waited for.",
                other.path
            ),
            None if moves.failed_bytes > 0 => format!(
                "It is tried again by itself. See that the PVs of failure group `{group}` have room, or add one (`trunkline pv add {pool} PATH --failgrp {group}`).",
                group = pv.failgrp
            ),
            None => "Wait; it goes on by itself, also over the death of a process.".to_owned(),
        };
        Some(PoolFinding {
            what: format!(
                "PV {} of failure group `{}` is away and leaves{}",
                pv.path,
                pv.failgrp,
                far(Some(moves))
            ),
            pv: Some(pv.path.clone()),
            since_ms: pv.since_ms,
            effect: "Clients go on. What was on it is copied from the other failure group; until that is over, the PVs there are needed.".to_owned(),
            remedy,
        })
    }
}

fn far(moves: Option<&MovesView>) -> String {
    let text = |moves: &MovesView| {
        let (moved, planned) = (format_size(moves.moved_bytes), format_size(moves.planned_bytes));
        let failed = match moves.failed_bytes {
            0 => String::new(),
            bytes => format!(", {} could not be copied and is tried again", format_size(bytes)),
        };
        format!(": {moved} of {planned}, {}{failed}", moves.text())
    };
    moves.map(text).unwrap_or_default()
}

impl Server {
    /// Says what is wrong with a pool, and what to do.
    ///
    /// # Errors
    ///
    /// There is no such pool.
    pub async fn explain_pool(&self, name: &str) -> Result<PoolExplanation, ApiError> {
        self.explain_pool_of(name, None).await
    }

    /// … for an LU of it, of which alone it is said where something was found.
    async fn explain_pool_of(
        &self,
        name: &str,
        lu: Option<&str>,
    ) -> Result<PoolExplanation, ApiError> {
        let AnyView::Object(view) = self.object(Object::Pool, name).await? else {
            return Err(self.not_found(Object::Pool, name));
        };
        let state = view.state.clone().unwrap_or_default();
        let mut findings =
            view.space.as_ref().map(|space| space.findings(name)).unwrap_or_default();
        // What is wrong beside its PVs, such as that it is not open at all.
        let known =
            view.space.as_ref().and_then(|space| space.degraded().or(space.warning.clone()));
        if let Some(reason) = view.reason.clone().filter(|reason| known.as_ref() != Some(reason)) {
            let (effect, remedy) = if view.space.is_some() {
                let remedy = format!("See what came before it: `trunkline events --of {name}`.");
                ("Its LUs may not answer.", remedy)
            } else {
                let help = self.help_for(name).map(|help| format!("{help}. "));
                let remedy = format!("{}It is tried again by itself.", help.unwrap_or_default());
                ("Its LUs wait, and so do their clients.", remedy)
            };
            let (effect, what) = (effect.to_owned(), reason);
            findings.insert(0, PoolFinding { what, pv: None, since_ms: None, effect, remedy });
        }
        findings.extend(view.space.iter().flat_map(|space| space.found(name, lu)));
        let failgrps = view.space.map(|space| space.failgrps).unwrap_or_default();
        let desired = self.desired();
        let mirrored =
            desired[Object::Pool].get(name).is_some_and(|set| attr::pool::MIRROR.is_set(set));
        let copies = 1 + u32::from(mirrored);
        let (pool, layout, waits) = (name.to_owned(), None, Vec::new());
        Ok(PoolExplanation { pool, lu: None, state, copies, failgrps, findings, layout, waits })
    }

    /// What mends that a pool is not open.
    fn help_for(&self, pool: &str) -> Option<String> {
        let desired = self.desired();
        let view = self.supervisors().get(home(desired[Object::Pool].get(pool)?))?.view();
        view.failures.get(&Subject::Pool(pool.to_owned()))?.help.clone()
    }

    /// Says the same for an LU.
    ///
    /// # Errors
    ///
    /// There is no such volume, or it is no LU.
    pub async fn explain_lu(&self, name: &str) -> Result<PoolExplanation, ApiError> {
        let desired = self.desired();
        let set = desired[Object::Volume].get(name);
        let set = set.ok_or_else(|| self.not_found(Object::Volume, name))?;
        let Some(pool) = pool_of(set) else {
            let what = format!("volume `{name}` is no LU: it is in no storage pool");
            let help = format!("`trunkline volume show {name}` has its state, and why");
            return Err(ApiError::new(Code::Invalid, what).help(help));
        };
        let mut told = self.explain_pool_of(pool, Some(name)).await?;
        if let AnyView::Volume(volume) = self.object(Object::Volume, name).await?
            && volume.state != "open"
        {
            let reason = volume.reason.clone().map(|reason| format!(": {reason}"));
            let finding = PoolFinding {
                what: format!("LU `{name}` is {}{}", volume.state, reason.unwrap_or_default()),
                pv: None,
                since_ms: None,
                effect: "Its clients do not get what they ask for.".to_owned(),
                remedy: format!("See `trunkline volume show {name}`."),
            };
            told.findings.insert(0, finding);
        }
        let layout = self.layout_of(name, pool).await;
        let waits = self.waits_of(name, pool).await;
        Ok(PoolExplanation { lu: Some(name.to_owned()), layout, waits, ..told })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::model::Desired;
    use protocol::message::{PoolSpec, ProgressStatus};

    fn pv(path: &str, group: u8, state: PvState, bytes: u64) -> PvStatus {
        let (uuid, free_bytes) = (path.to_owned(), bytes / 2);
        let path = path.into();
        PvStatus { path, uuid, bytes, free_bytes, group, state, ..PvStatus::default() }
    }

    fn view(pvs: Vec<PvStatus>, resync: Option<ProgressStatus>, paused: u64) -> PoolView {
        let desired: Desired =
            config::read("[pool.p]\npvs=\"/a,/b\"\nmirror=\"/c,/d\"\nfailgrp=\"north\"\n").unwrap();
        let spec = PoolSpec { name: "p".to_owned(), ..PoolSpec::default() };
        let free_bytes = 100;
        let status = PoolStatus { spec, pvs, free_bytes, paused, resync, ..PoolStatus::default() };
        let lost = Lost::from([("/c".to_owned(), 7000)]);
        PoolView::of(&desired, &desired[Object::Pool]["p"], &status, &lost)
    }

    #[test]
    fn what_is_away_makes_a_pool_degraded_until_it_has_what_it_missed() {
        use PvState::{Active, Away, Resyncing};
        let pool = view(vec![pv("/a", 0, Active, 400), pv("/c", 1, Active, 300)], None, 0);
        let states = |pool: &PoolView| -> Vec<String> {
            pool.failgrps.iter().map(|one| format!("{} {}", one.name, one.state)).collect()
        };
        assert_eq!(states(&pool), ["north online", "Mirror online"]);
        assert_eq!((pool.degraded(), pool.findings("p")), (None, Vec::new()));
        assert_eq!(pool.size_bytes, 150, "as much as the lesser group has");
        let note = pool.notes.first().unwrap();
        assert!(note.starts_with("failure group `Mirror` has 300, and `north` 400"), "{note}");

        let away = vec![pv("/a", 0, Active, 400), pv("/c", 1, Away, 200), pv("/d", 1, Active, 200)];
        let pool = view(away, None, 3);
        assert_eq!(states(&pool), ["north online", "Mirror degraded"]);
        assert!(pool.degraded().unwrap().starts_with("away: PV /c of failure group `Mirror`. "));
        assert_eq!((pool.pvs[1].state.as_str(), pool.pvs[1].since_ms), ("away", Some(7000)));
        assert!(pool.notes.is_empty(), "{:?}", pool.notes);
        let found = pool.findings("p");
        assert_eq!((found.len(), found[0].since_ms), (2, Some(7000)));
        assert_eq!(found[0].pv.as_deref(), Some("/c"));
        assert!(found[1].remedy.contains("--failgrp"), "{:?}", found[1]);
        let both = vec![pv("/a", 0, Active, 400), pv("/c", 1, Away, 200), pv("/d", 1, Away, 200)];
        assert_eq!(states(&view(both, None, 0)), ["north online", "Mirror away"]);

        let progress = ProgressStatus {
            planned_bytes: 200,
            moved_bytes: 80,
            failed_bytes: 0,
            left_s: Some(90),
        };
        let back = vec![pv("/a", 0, Active, 400), pv("/c", 1, Resyncing, 400)];
        let pool = view(back, Some(progress), 0);
        assert_eq!(states(&pool), ["north online", "Mirror resyncing"]);
        assert!(pool.degraded().unwrap().ends_with("gets what was missed: 40 %, 2 min left"));
        assert!(pool.findings("p")[0].what.ends_with(": 80 of 200, 40 %, 2 min left"));
        // After a power cut nothing is away.
        let pool =
            view(vec![pv("/a", 0, Active, 400), pv("/c", 1, Active, 400)], Some(progress), 0);
        assert_eq!((pool.degraded(), pool.findings("p").len()), (None, 1));
    }

    #[test]
    fn a_pool_of_one_group_is_as_it_was() {
        let pvs = vec![pv("/a", 0, PvState::Active, 400), pv("/b", 0, PvState::Active, 300)];
        let pool = view(pvs, None, 0);
        assert_eq!((pool.failgrps.len(), pool.size_bytes), (1, 350));
        assert_eq!(
            (pool.notes.as_slice(), pool.degraded()),
            ([""; 0].map(String::from).as_slice(), None)
        );
    }
}
