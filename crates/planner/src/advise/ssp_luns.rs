//! The LUNs of which a shared storage pool is made: how many there are.
//!
//! Every LUN has a queue of its own in each VIOS, so a pool of few LUNs has few queues, whatever their depth. The
//! published advice is a number for small pools and one for each TB of larger ones. Pools grow, and few are built
//! exactly so: the rule speaks where a pool has half of the least number, or a quarter of what its size asks for.

use std::collections::BTreeMap;

use super::disk;
use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Object};
use super::ssp;
use super::thresholds::{LUNS_LEAST_SHARE, LUNS_SIZE_SHARE, own};
use super::view::{View, as_f64, count};
use crate::capture::{PoolLun, PvList, Report};
use crate::facts::id::{SSP_LUNS_MIN, SSP_LUNS_PER_TB, SSP_LUNS_PER_TB_ABOVE};
use crate::trace::{Figure, Origin, Term, number};

const RULE: &str = "ssp-lun-count";

/// The LUNs of one pool, as one VIOS listed them last.
struct Listed<'a> {
    host: usize,
    luns: Vec<&'a PoolLun>,
}

/// A pool whose LUNs are listed.
pub(super) fn applies(view: &View<'_>, pool: &Object<'_>) -> Applicability {
    match pools(view).contains_key(pool.device) {
        true => Applicability::Judged,
        false => Applicability::Lacking {
            why: "its LUNs were not captured".to_owned(),
            capture: format!("pv -list on {}", view.spoken(pool.host)),
        },
    }
}

pub(super) fn judge(view: &View<'_>, pool: &Object<'_>, out: &mut Out) {
    if let Some(listed) = pools(view).get(pool.device) {
        luns(view, pool.device, listed, out);
    }
}

/// The pools whose LUNs are listed, each with the VIOS that listed them.
pub(super) fn names<'a>(view: &View<'a>) -> BTreeMap<&'a str, usize> {
    pools(view).into_iter().map(|(name, listed)| (name, listed.host)).collect()
}

/// The pools by name; every VIOS of a cluster lists the same LUNs.
fn pools<'a>(view: &View<'a>) -> BTreeMap<&'a str, Listed<'a>> {
    let mut pools: BTreeMap<&str, Listed<'_>> = BTreeMap::new();
    for (host, report) in view.reports() {
        let Report::PvList(list) = report else { continue };
        let mut here: BTreeMap<&str, Listed<'_>> = BTreeMap::new();
        for lun in &list.luns {
            let own = lun.pool.as_ref().map(|read| read.value.as_str());
            let Some(name) = own.or_else(|| ssp::only_pool(view)) else { continue };
            here.entry(name).or_insert(Listed { host, luns: Vec::new() }).luns.push(lun);
        }
        pools.extend(here);
    }
    pools
}

/// The LUNs that a VIOS listed last, of all its pools.
pub(super) fn on_host<'a>(view: &View<'a>, host: usize) -> Option<&'a PvList> {
    view.of(host).filter_map(Report::pv_list).filter(|list| !list.luns.is_empty()).last()
}

/// How large the pool is: the sum of its LUNs, where every size was printed.
fn size(luns: &[&PoolLun]) -> Option<Term> {
    let sizes: Option<Vec<_>> = luns.iter().map(|lun| lun.size_mb).collect();
    let sizes = sizes?;
    let last = sizes.last()?;
    let sum: f64 = sizes.iter().map(|read| as_f64(read.value)).sum();
    Some(Term::read("sum of the LUNs", sum, "MB", last.at))
}

/// The pool's size, and the LUNs that it asks for where it is a larger one.
fn asked(view: &View<'_>, luns: &[&PoolLun]) -> Option<(Figure, Figure)> {
    let mebibytes = Term::new("MB in a TB", 1_048_576.0, "MB", Origin::Computed);
    let tb = Figure::new(
        "size of the pool",
        "TB",
        "sum of the LUNs ÷ MB in a TB",
        vec![size(luns)?, mebibytes],
    );
    let above = view.facts.term(SSP_LUNS_PER_TB_ABOVE, "larger pool").low;
    let terms = vec![Term::of(&tb).named("size"), view.facts.term(SSP_LUNS_PER_TB, "LUNs of a TB")];
    let needed =
        Figure::new("LUNs for its size", "LUNs", "round_up(size × LUNs of a TB, 1)", terms);
    (tb.low > above).then_some((tb, needed))
}

fn luns(view: &View<'_>, name: &str, listed: &Listed<'_>, out: &mut Out) {
    let Some(first) = listed.luns.first() else { return };
    let luns = count(listed.luns.len());
    let least = view.facts.term(SSP_LUNS_MIN, "LUNs of a pool, at least");
    let asked = asked(view, &listed.luns);
    let below_least = luns <= least.low * LUNS_LEAST_SHARE;
    let for_size = asked.as_ref().filter(|(_, needed)| luns < needed.low * LUNS_SIZE_SHARE);
    // A few LUs on as many LUNs do not meet in one queue.
    let lus = ssp::lus(view, listed.host);
    let shared = lus.is_none_or(|(lus, _)| lus > luns);
    if !shared || !(below_least || for_size.is_some()) {
        return;
    }
    let wanted = asked.as_ref().map_or(least.low, |(_, needed)| needed.low.max(least.low));
    let title =
        format!("the pool is made of {} LUNs; {} are advised", number(luns), number(wanted));
    let mut draft = Draft::new(RULE, listed.host, format!("pool {name}"), Severity::Warning, title)
        .see(listed.luns.iter().map(|lun| lun.at))
        .see(lus.map(|(_, at)| at))
        .because("Each LUN has one queue in each VIOS. All clients of the pool meet in these few queues, however many LUs they have.")
        .because("Published advice: 16 LUNs at least, and 8 for each TB of a pool above 2 TB.")
        .figure(Figure::plain(Term::read("LUNs of the pool", luns, "LUNs", first.at)))
        .figure(Figure::plain(least));
    if let Some((lus, at)) = lus {
        draft = draft.figure(Figure::plain(Term::read("LUs of the pool", lus, "LUs", at)));
    }
    for figure in asked.into_iter().flat_map(|(tb, needed)| [tb, needed]) {
        draft = draft.figure(figure);
    }
    let share = if below_least { LUNS_LEAST_SHARE } else { LUNS_SIZE_SHARE };
    let draft = match listed.luns.iter().find_map(|lun| disk::waits_at(view, listed.host, &lun.name)) {
        Some(at) => draft
            .see([at])
            .because("Requests wait in front of its LUNs: the queues are short for what is asked of them."),
        None => draft.only_noted("Nothing captured shows that requests wait in front of them; iostat -D under load would."),
    };
    out.push(
        draft
            .figure(Figure::plain(own("share below which this rule speaks", share, "times")))
            .effect("No command makes LUNs: add some of equal size to the pool with pv -add -sp POOL hdiskN …, on one VIOS for the cluster. Where a pool is built anew, give it the advised number from the start.")
            .harm("Taking a LUN out again (pv -remove) has to move its data to the others, which takes space and I/O.")
            .weigh(if lus.is_some() { 0.85 } else { 0.75 }, 0.95),
    );
}

#[cfg(test)]
mod tests {
    use super::super::thresholds::fact;
    use super::*;
    use crate::facts::Facts;
    use crate::facts::id::SSP_LUN_DEPTH_MIN;
    use fabric::pool::{PV_DEPTH_MIN, PVS_MIN, PVS_PER_TIB, PVS_PER_TIB_ABOVE};

    #[test]
    fn pools_of_this_server_are_held_against_the_same_numbers() {
        let facts = Facts::builtin();
        let of_facts = [SSP_LUNS_MIN, SSP_LUNS_PER_TB, SSP_LUNS_PER_TB_ABOVE, SSP_LUN_DEPTH_MIN];
        let of_rules = [PVS_MIN, PVS_PER_TIB, PVS_PER_TIB_ABOVE, PV_DEPTH_MIN];
        assert_eq!(of_facts.map(|id| fact(&facts, id)), of_rules.map(|number| number as f64));
    }
}
