//! What became of open storage pools from one account of a data plane to the next.

use crate::model::pools::{trouble_beside, why_away};
use crate::trail::Kind;
use fabric::units::format_size;
use protocol::message::{
    FoundBlock, FoundKind, FoundStatus, PoolStatus, PvState, PvStatus, Status,
};
use std::collections::BTreeMap;

/// How many places of those that were found at once are told.
const FOUND_AT_ONCE: usize = 16;

/// Something that became of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) kind: Kind,
    pub(super) pool: String,
    /// The path of the PV that it is about.
    pub(super) pv: Option<String>,
    pub(super) message: String,
}

/// What is wrong with one, writes that wait for space and none any more, PVs that are away and come back, and what they missed. `lost`: since when PVs of a pool
/// are away, as far as that was told before; so it is told once, whichever process dies meanwhile. `first`: nothing of what was known before was told by this process.
pub(super) fn between(
    before: &Status,
    now: &Status,
    first: bool,
    lost: impl Fn(&str) -> BTreeMap<String, u64>,
) -> Vec<Told> {
    let mut all = Vec::new();
    let known = before.pid != 0;
    for pool in &now.pools {
        let mut earlier = before.pools.iter().filter(|_| before.pid == now.pid);
        let earlier = earlier.find(|it| it.spec.name == pool.spec.name);
        let name = pool.spec.name.clone();
        let mut note = |kind, message| {
            all.push(Told { kind, pool: name.clone(), pv: None, message });
        };
        // Of these it is not kept what was told already.
        if known {
            fullness(earlier, pool, &mut note);
        }
        all.extend(pvs(earlier.filter(|_| !first), pool, || lost(&name)));
        if known {
            all.extend(resync(earlier, pool));
            all.extend(found(earlier, pool, now));
        }
    }
    all
}

fn fullness(earlier: Option<&PoolStatus>, pool: &PoolStatus, note: &mut dyn FnMut(Kind, String)) {
    let known = earlier.and_then(trouble_beside);
    if let Some(trouble) = trouble_beside(pool).filter(|trouble| known != Some(*trouble)) {
        note(Kind::PoolError, trouble.clone());
    }
    match (earlier.map_or(0, |it| it.paused), pool.paused) {
        (0, 1) => note(Kind::PoolFull, "it is full: a write waits for space".to_owned()),
        (0, waiting @ 2..) => {
            note(Kind::PoolFull, format!("it is full: {waiting} writes wait for space"));
        }
        (1.., 0) => note(Kind::PoolSpace, "no write waits for space any more".to_owned()),
        _ => {}
    }
}

/// What was found where legs were read; of many at once the first are told one by one.
fn found(earlier: Option<&PoolStatus>, pool: &PoolStatus, now: &Status) -> Vec<Told> {
    let none = FoundStatus::default();
    let before = earlier.map_or(&none, |pool| &pool.found);
    let count = pool.found.count().saturating_sub(before.count());
    let kept = pool.found.last.len();
    let new = kept.saturating_sub(usize::try_from(count).unwrap_or(kept));
    let of_lu = |number: u32| {
        let volume = now.volumes.iter().find(|volume| {
            volume.identity.as_ref().is_some_and(|it| it.is_lu(&pool.spec.uuid, number))
        });
        volume.map_or_else(|| format!("LU {number}"), |volume| volume.spec.name.clone())
    };
    let told = |block: &FoundBlock| {
        let pvs: Vec<String> = block.pvs.iter().map(|pv| pv.display().to_string()).collect();
        let (pvs, place) =
            (pvs.join(", "), format!("4 KiB of {} at byte {}", of_lu(block.lu), block.at));
        let (kind, message) = match block.kind {
            FoundKind::Differs => (
                Kind::LegsDiffer,
                format!(
                    "{place} differ between the PVs {pvs}; which is right is not known, and nothing was changed"
                ),
            ),
            FoundKind::Repaired => (
                Kind::PvRepaired,
                format!(
                    "{place} could not be read on PV {pvs}, or were not what was written, and were written there again from the other failure group"
                ),
            ),
            FoundKind::Unreadable => (
                Kind::PvUnreadable,
                format!(
                    "{place} cannot be read on PV {pvs}, also after they were written there again; the other failure group has them"
                ),
            ),
            FoundKind::Lost => (
                Kind::BlockLost,
                format!("{place} cannot be read on any PV, or are not what was written ({pvs})"),
            ),
        };
        let pv = block.pvs.first().map(|pv| pv.display().to_string());
        Told { kind, pool: pool.spec.name.clone(), pv, message }
    };
    let new: Vec<&FoundBlock> = pool.found.last.iter().skip(new).collect();
    let mut all: Vec<Told> = new.iter().take(FOUND_AT_ONCE).map(|block| told(block)).collect();
    let left = count.saturating_sub(all.len() as u64);
    if let Some(last) = all.last_mut().filter(|_| left > 0) {
        last.message += &format!("; and {left} more of these or others were found meanwhile");
    }
    all
}

/// PVs that went away, and those that came back.
fn pvs(
    earlier: Option<&PoolStatus>,
    pool: &PoolStatus,
    lost: impl FnOnce() -> BTreeMap<String, u64>,
) -> Vec<Told> {
    let before = |pv: &PvStatus| {
        let known = earlier.into_iter().flat_map(|pool| &pool.pvs);
        known.into_iter().find(|one| one.path == pv.path).map(|one| one.state == PvState::Away)
    };
    let unknown = pool.pvs.iter().any(|pv| before(pv).is_none());
    let lost = if unknown { lost() } else { BTreeMap::new() };
    let told = |pv: &PvStatus| {
        let path = pv.path.display().to_string();
        let was_away = before(pv).unwrap_or_else(|| lost.contains_key(&path));
        let (kind, message) = match (was_away, pv.state) {
            (false, PvState::Away) => {
                let why = why_away(pool, pv).map(|why| format!(" ({why})")).unwrap_or_default();
                let what = "clients go on with the other failure group, where what is written has its only copy";
                (Kind::PvLost, format!("PV {path} is away{why}: {what}"))
            }
            (true, PvState::Active) => (Kind::PvReturned, format!("PV {path} is there again")),
            (true, PvState::Resyncing) => {
                (Kind::PvReturned, format!("PV {path} is there again, and gets what it missed"))
            }
            _ => return None,
        };
        Some(Told { kind, pool: pool.spec.name.clone(), pv: Some(path), message })
    };
    pool.pvs.iter().filter_map(told).collect()
}

/// The beginning and the end of what PVs get that they missed.
fn resync(earlier: Option<&PoolStatus>, pool: &PoolStatus) -> Option<Told> {
    let was = earlier.is_some_and(|pool| pool.resync.is_some());
    let in_state = |state| pool.pvs.iter().any(|pv| pv.state == state);
    let was_away = earlier.is_some_and(|pool| pool.pvs.iter().any(|pv| pv.state == PvState::Away));
    let (kind, message) = match (was, &pool.resync) {
        (false, Some(progress)) => {
            let bytes = format_size(progress.planned_bytes);
            let message = match in_state(PvState::Resyncing) {
                true => format!("{bytes} that were missed are copied"),
                false => format!("{bytes} that may differ between the failure groups are copied"),
            };
            (Kind::ResyncStarted, message)
        }
        // One that is lost just now was told to be.
        (true, None) if was_away || !in_state(PvState::Away) => {
            let message = match in_state(PvState::Away) {
                true => "what could be copied is: a PV is away",
                false => "both failure groups have all of it",
            };
            (Kind::ResyncEnded, message.to_owned())
        }
        _ => return None,
    };
    Some(Told { kind, pool: pool.spec.name.clone(), pv: None, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::message::{PoolSpec, ProgressStatus};

    fn with(pid: u32, of: PoolStatus) -> Status {
        Status { pid, pools: vec![of], ..Status::default() }
    }

    fn pool(paused: u64, trouble: Option<&str>) -> PoolStatus {
        let spec = PoolSpec { name: "p".to_owned(), ..PoolSpec::default() };
        let trouble = trouble.map(str::to_owned);
        PoolStatus { spec, paused, pauses: paused, trouble, ..PoolStatus::default() }
    }

    fn nothing(_: &str) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    #[test]
    fn a_pool_that_is_full_is_told_when_writes_begin_to_wait_and_when_none_does() {
        let (stopped, hangs) = (Some("it has stopped"), Some("it hangs"));
        let full = |text| Some((Kind::PoolFull, text));
        for (before, now, told) in [
            ((1, 0, None), (1, 0, None), None),
            ((1, 0, None), (1, 1, None), full("it is full: a write waits for space")),
            ((1, 0, None), (1, 7, None), full("it is full: 7 writes wait for space")),
            ((1, 7, None), (1, 2, None), None),
            (
                (1, 2, None),
                (1, 0, None),
                Some((Kind::PoolSpace, "no write waits for space any more")),
            ),
            // Another process knows nothing of those that waited.
            ((1, 2, None), (2, 0, None), None),
            ((1, 2, None), (2, 2, None), full("it is full: 2 writes wait for space")),
            ((1, 0, None), (1, 0, stopped), Some((Kind::PoolError, "it has stopped"))),
            ((1, 0, stopped), (1, 0, stopped), None),
            ((1, 0, stopped), (1, 0, hangs), Some((Kind::PoolError, "it hangs"))),
            ((1, 0, hangs), (1, 0, None), None),
        ] {
            let of = |(pid, paused, trouble)| with(pid, pool(paused, trouble));
            let told = told.map(|(kind, text)| Told {
                kind,
                pool: "p".to_owned(),
                pv: None,
                message: text.to_owned(),
            });
            let found = between(&of(before), &of(now), false, nothing);
            assert_eq!(found, Vec::from_iter(told), "{before:?} to {now:?}");
        }
        // One that was opened since.
        let empty = Status { pid: 1, ..Status::default() };
        assert_eq!(between(&empty, &with(1, pool(3, None)), false, nothing).len(), 1);
    }

    #[test]
    fn what_is_found_is_told_once_and_of_much_at_once_how_much_it_is() {
        let block = |number: u64| FoundBlock {
            kind: if number == 0 { FoundKind::Repaired } else { FoundKind::Differs },
            lu: 3,
            at: number * 4096,
            pvs: vec!["/a".into(), "/b".into()],
        };
        let of = |pid, count: u64| {
            let last = (count.saturating_sub(64)..count).map(block).collect();
            let (repaired, differs) = (count.min(1), count.saturating_sub(1));
            let found = FoundStatus { repaired, differs, last, ..FoundStatus::default() };
            with(pid, PoolStatus { found, ..pool(0, None) })
        };
        let told = |before: &Status, now: &Status| -> Vec<String> {
            let all = between(before, now, false, nothing);
            all.into_iter().map(|one| format!("{} {}", one.kind.as_str(), one.message)).collect()
        };
        let first = told(&of(1, 0), &of(1, 2));
        assert_eq!(first.len(), 2, "{first:?}");
        assert!(first[0].starts_with("pv_repaired 4 KiB of LU 3 at byte 0 could not be read"));
        assert!(first[1].starts_with("legs_differ 4 KiB of LU 3 at byte 4096 differ"), "{first:?}");
        assert_eq!(told(&of(1, 2), &of(1, 2)), [""; 0]);
        assert_eq!(told(&of(1, 64), &of(1, 65)).len(), 1);
        for (before, now, left) in [(1, 81, 64), (70, 87, 1), (5, 1000, 979)] {
            let many = told(&of(1, before), &of(1, now));
            assert_eq!(many.len(), FOUND_AT_ONCE);
            let more = format!("; and {left} more of these or others were found meanwhile");
            assert!(many[15].ends_with(&more), "{}", many[15]);
        }
        // Another process counts from its own beginning.
        assert_eq!(told(&of(1, 9), &of(2, 1)).len(), 1);
        assert_eq!(told(&of(1, 9), &of(2, 0)), [""; 0]);
    }

    #[test]
    fn a_pv_that_goes_and_returns_is_told_once_whichever_process_dies() {
        use PvState::{Active, Away, Resyncing};
        let of = |pid, state, resync: Option<u64>| {
            let pv = |path: &str, group, state| PvStatus {
                path: path.into(),
                uuid: path.to_owned(),
                bytes: 64,
                free_bytes: 0,
                group,
                tier: 0,
                state,
                ..PvStatus::default()
            };
            let progress = |planned_bytes| ProgressStatus {
                planned_bytes,
                moved_bytes: 0,
                failed_bytes: 0,
                left_s: None,
            };
            let pvs = vec![pv("/a", 0, Active), pv("/c", 1, state)];
            with(pid, PoolStatus { pvs, resync: resync.map(progress), ..pool(0, None) })
        };
        let known = |_: &str| BTreeMap::from([("/c".to_owned(), 5)]);
        let kinds = |before: &Status, now: &Status, lost: bool| -> Vec<Kind> {
            let first = before.pid == 0;
            let told = match lost {
                true => between(before, now, first, known),
                false => between(before, now, first, nothing),
            };
            told.into_iter().map(|told| told.kind).collect()
        };
        let (started, ended) = (Kind::ResyncStarted, Kind::ResyncEnded);
        let none = Status::default();
        for (before, now, lost, told) in [
            (of(1, Active, None), of(1, Active, None), false, vec![]),
            (of(1, Active, None), of(1, Away, None), false, vec![Kind::PvLost]),
            (of(1, Away, None), of(1, Away, None), true, vec![]),
            (of(1, Away, None), of(1, Resyncing, Some(9)), true, vec![Kind::PvReturned, started]),
            (of(1, Resyncing, Some(9)), of(1, Resyncing, Some(9)), false, vec![]),
            (of(1, Resyncing, Some(9)), of(1, Active, None), false, vec![ended]),
            // It failed again.
            (of(1, Resyncing, Some(9)), of(1, Away, None), false, vec![Kind::PvLost]),
            // What is copied while one is away is what a crash may have made differ.
            (of(1, Away, Some(9)), of(1, Away, None), true, vec![ended]),
            // The data plane died meanwhile.
            (of(1, Active, None), of(2, Away, None), false, vec![Kind::PvLost]),
            (of(1, Away, None), of(2, Away, None), true, vec![]),
            (of(1, Away, None), of(2, Active, None), true, vec![Kind::PvReturned]),
            // The control plane died: the trail says what was told.
            (none.clone(), of(2, Away, None), true, vec![]),
            (none.clone(), of(2, Away, None), false, vec![Kind::PvLost]),
            (none.clone(), of(2, Resyncing, Some(9)), true, vec![Kind::PvReturned]),
            (none.clone(), of(2, Active, None), false, vec![]),
            // After a power cut.
            (of(1, Active, None), of(2, Active, Some(9)), false, vec![started]),
        ] {
            assert_eq!(kinds(&before, &now, lost), told, "{before:?} to {now:?}");
        }
        // What others of this server have heard was told by nobody.
        let heard = of(2, Away, None);
        assert_eq!(between(&heard, &heard, true, nothing)[0].kind, Kind::PvLost);
        assert_eq!(between(&heard, &heard, true, known), []);
        let told = between(&of(1, Active, None), &of(1, Away, None), false, nothing);
        assert_eq!((told[0].pool.as_str(), told[0].pv.as_deref()), ("p", Some("/c")));
        // Its data plane says why, as a trouble of the pool: that is told of the PV, and no trouble beside it.
        let mut why = of(1, Away, None);
        why.pools[0].trouble =
            Some("PV /c is away (opening /c: gone (5)): it is looked for".to_owned());
        let told = between(&of(1, Active, None), &why, false, nothing);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].message.starts_with("PV /c is away (opening /c: gone (5)): clients go on"));
        why.pools[0].trouble = Some("it has stopped".to_owned());
        let told = between(&of(1, Active, None), &why, false, nothing);
        assert_eq!((told.len(), told[0].kind), (2, Kind::PoolError), "{told:?}");
        let told = between(&of(1, Active, None), &of(1, Active, Some(4096)), false, nothing);
        assert!(told[0].message.starts_with("4KiB that may differ"), "{told:?}");
    }
}
