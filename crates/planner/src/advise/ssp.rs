//! Shared storage pools: space, promises, LUNs and their depth.

use std::collections::BTreeMap;

use super::change::Change;
use super::finding::{Draft, Severity};
use super::measure::seconds_between;
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::ssp_luns;
use super::thresholds::{
    DAYS_CRITICAL, DAYS_WARNING, FREE_CRITICAL, FREE_WARNING, OVERCOMMIT, OVERCOMMIT_TIGHT, fact,
    own,
};
use super::view::{Role, Value, View, as_f64, count};
use crate::capture::{At, Head, LogicalUnit, Pool, Read, Report};
use crate::facts::id::SSP_LUN_DEPTH_MIN;
use crate::trace::{Figure, Term, number};

const SPACE: &str = "lssp -clustername CLUSTER, twice, a day or more apart";

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "ssp-lun-count",
        about: "a pool of too few LUNs",
        on: Kind::Pool,
        evidence: "pv -list on the VIOS",
        weight: 1.1,
        applies: ssp_luns::applies,
        judge: ssp_luns::judge,
    },
    Rule {
        name: "ssp-depth",
        about: "the pool's LUNs take fewer commands than the clients send",
        on: Kind::System,
        evidence: "lssp -clustername CLUSTER, lu -list, queue_depth of the pool's LUNs on the VIOS and of the LUs on the clients",
        weight: 1.1,
        applies: |view, vios| {
            let pool = view.role(vios.host) != Role::Client && lus(view, vios.host).is_some();
            Applicability::where_that(pool)
        },
        judge: |view, vios, out| depth(view, vios.host, out),
    },
    Rule {
        name: "ssp-overcommit",
        about: "thin LUs promise far more than the pool has",
        on: Kind::Pool,
        evidence: SPACE,
        weight: 1.1,
        applies: of_space,
        judge: |view, pool, out| {
            if let Some(seen) = pools(view).get(pool.device) {
                overcommit(view, seen, out);
            }
        },
    },
    Rule {
        name: "ssp-full",
        about: "the pool is full, or will be soon",
        on: Kind::Pool,
        evidence: SPACE,
        weight: 1.1,
        applies: of_space,
        judge: |view, pool, out| {
            if let Some(seen) = pools(view).get(pool.device) {
                space(view, seen, out);
            }
        },
    },
];

/// A pool whose space is shown.
fn of_space(view: &View<'_>, pool: &Object<'_>) -> Applicability {
    match pools(view).contains_key(pool.device) {
        true => Applicability::Judged,
        false => Applicability::Lacking {
            why: "its space was not captured".to_owned(),
            capture: format!("lssp -clustername CLUSTER on {}", view.spoken(pool.host)),
        },
    }
}

/// Every pool, with a VIOS that shows it.
pub(super) fn names<'a>(view: &View<'a>) -> BTreeMap<&'a str, usize> {
    let mut names = ssp_luns::names(view);
    names.extend(pools(view).into_iter().map(|(name, seen)| (name, seen.host)));
    names
}

/// Whether it is a pool of a cluster and not a local one.
pub(super) fn is_shared(pool: &Pool) -> bool {
    match &pool.kind {
        Some(kind) => kind.value == "CLPOOL",
        None => pool.lu_total_mb.is_some() || pool.overcommit_mb.is_some(),
    }
}

/// The shared pool's name, where only one was captured.
pub(super) fn only_pool<'a>(view: &View<'a>) -> Option<&'a str> {
    let pools = pools(view);
    (pools.len() == 1).then(|| pools.into_keys().next()).flatten()
}

/// One pool over time.
struct Seen<'a> {
    host: usize,
    /// In the order of time.
    states: Vec<(&'a Head, &'a Pool)>,
}

impl<'a> Seen<'a> {
    fn last(&self) -> Option<&'a Pool> {
        self.states.last().map(|(_, pool)| *pool)
    }
}

/// The pools; every VIOS of a cluster shows the same one.
fn pools<'a>(view: &View<'a>) -> BTreeMap<&'a str, Seen<'a>> {
    let mut pools: BTreeMap<&str, Seen<'_>> = BTreeMap::new();
    for (host, report) in view.reports() {
        let Report::Lssp(lssp) = report else { continue };
        for pool in lssp.pools.iter().filter(|pool| is_shared(pool)) {
            let seen = pools.entry(&pool.name).or_insert(Seen { host, states: Vec::new() });
            seen.states.push((&lssp.head, pool));
        }
    }
    pools
}

fn term(name: &str, read: Read<u64>) -> Term {
    Term::read(name, as_f64(read.value), "MB", read.at)
}

const NEXT: &str = "Add LUNs to the pool (pv -add), or remove LUs that nobody uses; freed blocks inside a LU come back only when the LU is removed. Set an alert for it: alert -set -type threshold -value 20.";

/// `ssp-full`: little space left, or soon.
fn space(view: &View<'_>, seen: &Seen<'_>, out: &mut Out) {
    const RULE: &str = "ssp-full";
    let Some(pool) = seen.last() else { return };
    let (Some(size), Some(free)) = (pool.size_mb.filter(|read| read.value > 0), pool.free_mb)
    else {
        return;
    };
    let percent =
        Figure::new("free", "%", "free × 100 ÷ size", vec![term("free", free), term("size", size)]);
    let days = days_to_full(seen);
    let left = days.as_ref().map_or(f64::INFINITY, |figure| figure.low);
    let severity = match percent.low {
        free if free <= FREE_CRITICAL || left <= DAYS_CRITICAL => Severity::Critical,
        free if free <= FREE_WARNING || left <= DAYS_WARNING => Severity::Warning,
        _ => {
            if days.is_none() {
                out.hint(
                    "the days to full",
                    "lssp -clustername CLUSTER a second time, a day or more later, with its date",
                );
            }
            return;
        }
    };
    let title = if percent.low <= FREE_WARNING {
        format!("{} % of the pool is free", number(percent.low))
    } else {
        format!("the pool is full in {} days", number(left.floor()))
    };
    let mut draft = Draft::new(RULE, seen.host, format!("pool {}", pool.name), severity, title)
        .see([pool.at, free.at, size.at])
        .because("A pool that is full fails the writes of every client that needs a new block, not only of the one that filled it; all VIOS of the cluster are concerned.")
        .figure(percent)
        .figure(Figure::plain(own("percent free from which this rule speaks", FREE_WARNING, "%")))
        .effect(NEXT)
        .harm("Adding a LUN is done while the pool is in use; the data is spread over it in the background.")
        .weigh(0.95, 1.05);
    if let Some(days) = days {
        let lines =
            seen.states.first().into_iter().flat_map(|(_, pool)| pool.free_mb.map(|read| read.at));
        draft = draft.see(lines).because("At the pace between the captures it is full at the end of those days; growth is seldom even, so take it as an order of magnitude.").figure(days);
    }
    out.push(draft.because(format!("It was captured on {}.", view.spoken(seen.host))));
}

/// Days until nothing is free, at the pace between the first and the last capture.
fn days_to_full(seen: &Seen<'_>) -> Option<Figure> {
    let (Some((earlier, before)), Some((later, after))) = (seen.states.first(), seen.states.last())
    else {
        return None;
    };
    let seconds = seconds_between(earlier, later)?;
    let (one, two) = (before.free_mb?, after.free_mb?);
    // A pool that was extended meanwhile says nothing about its pace.
    let same_size = before.size_mb.map(|read| read.value) == after.size_mb.map(|read| read.value);
    if !same_size || one.value <= two.value {
        return None;
    }
    let terms = vec![
        term("free before", one),
        term("free now", two),
        Term::read("days between", seconds / 86_400.0, "days", later.first),
    ];
    Some(Figure::new(
        "days to full",
        "days",
        "free now × days between ÷ (free before − free now)",
        terms,
    ))
}

/// `ssp-overcommit`: thin LUs that promise far more than there is.
fn overcommit(view: &View<'_>, seen: &Seen<'_>, out: &mut Out) {
    const RULE: &str = "ssp-overcommit";
    let Some(pool) = seen.last() else { return };
    let (Some(size), Some(free)) = (pool.size_mb.filter(|read| read.value > 0), pool.free_mb)
    else {
        return;
    };
    let promised = match (pool.lu_total_mb, pool.overcommit_mb) {
        (Some(total), _) => Figure::plain(term("LUs in all", total)),
        (None, Some(over)) => Figure::new(
            "LUs in all",
            "MB",
            "size + overcommit",
            vec![term("size", size), term("overcommit", over)],
        ),
        (None, None) => match of_list(view, seen.host, &pool.name) {
            Some(figure) => figure,
            None => {
                return out.lack("", "lu -list, or lssp -clustername CLUSTER with its overcommit");
            }
        },
    };
    let ratio = Figure::new(
        "promised over size",
        "times",
        "LUs in all ÷ size",
        vec![Term::of(&promised).named("LUs in all"), term("size", size)],
    );
    let share =
        Figure::new("free", "%", "free × 100 ÷ size", vec![term("free", free), term("size", size)]);
    let loud = (ratio.low >= OVERCOMMIT && share.low < 50.0)
        || (ratio.low >= OVERCOMMIT_TIGHT && share.low < 25.0);
    if !loud {
        return;
    }
    out.push(
        Draft::new(RULE, seen.host, format!("pool {}", pool.name), Severity::Warning, format!("thin LUs promise {} times what the pool has", number(ratio.low)))
            .see([pool.at])
            .see([pool.lu_total_mb, pool.overcommit_mb].into_iter().flatten().map(|read| read.at))
            .see([size.at, free.at])
            .because("Thin LUs take space when they are written. Promising more than there is is what they are for; that much more, with that little left, lets a few clients that fill their disks stop all of them.")
            .figure(promised)
            .figure(ratio)
            .figure(share)
            .effect(format!("{NEXT} alert -set -type overcommit reports further growth."))
            .harm("None by itself; a limit on new LUs may surprise those who create them.")
            .weigh(0.85, 0.95),
    );
}

/// The sizes of the LUs of a pool, from their list.
fn of_list(view: &View<'_>, host: usize, pool: &str) -> Option<Figure> {
    let fits = |lu: &&LogicalUnit| lu.pool.as_ref().is_none_or(|read| read.value == pool);
    let list = view.of(host).filter_map(Report::lu_list).last()?;
    let sizes: Vec<Read<u64>> = list.lus.iter().filter(fits).filter_map(|lu| lu.size_mb).collect();
    let last = sizes.last()?;
    let sum: f64 = sizes.iter().map(|read| as_f64(read.value)).sum();
    Some(Figure::plain(Term::read("LUs in all", sum, "MB", last.at)))
}

/// `ssp-depth`: the depth of the pool's LUNs against what the clients send.
fn depth(view: &View<'_>, host: usize, out: &mut Out) {
    let Some((lus, lu_at)) = lus(view, host) else { return };
    let list = ssp_luns::on_host(view, host);
    // Without a list, what is given to no client is taken to be the pool's.
    let of_pool = |name: &&str| match list {
        Some(list) => list.luns.iter().any(|lun| lun.name == *name),
        None => !view.backs(host, name),
    };
    let candidates = view.devices(host, "hdisk").into_iter().filter(of_pool);
    let depths: Vec<(&str, f64, At)> = candidates
        .filter_map(|name| {
            view.number(host, name, "queue_depth").map(|(depth, at)| (name, depth, at))
        })
        .collect();
    if depths.is_empty() {
        out.lack(
            "the pool's LUNs",
            format!(
                "lsdev -dev {} -attr queue_depth on {}",
                list.and_then(|list| list.luns.first()).map_or("hdiskN", |lun| &lun.name),
                view.spoken(host)
            ),
        );
        return;
    }
    let listed = list.and_then(|list| Some((count(list.luns.len()), list.luns.first()?.at)));
    judge_depth(view, host, (lus, lu_at), listed, &depths, out);
}

/// How many LUs the pool of a VIOS has, and a line that shows it.
pub(super) fn lus(view: &View<'_>, host: usize) -> Option<Value> {
    let listed = view
        .of(host)
        .filter_map(Report::lu_list)
        .filter_map(|list| Some((count(list.lus.len()), list.lus.first()?.at)))
        .last();
    let pool = view
        .of(host)
        .filter_map(Report::lssp)
        .flat_map(|lssp| &lssp.pools)
        .filter(|pool| is_shared(pool))
        .last();
    let mapped = view
        .of(host)
        .filter_map(Report::lsmap_scsi)
        .flat_map(|lsmap| &lsmap.adapters)
        .flat_map(|adapter| &adapter.devices);
    let mapped: Vec<At> = mapped
        .filter(|device| device.backing.as_ref().is_some_and(|read| is_lu(&read.value)))
        .map(|device| device.at)
        .collect();
    let of_pool = pool.map(|pool| {
        (pool.lus.map_or(0.0, |read| as_f64(read.value)), pool.lus.map_or(pool.at, |read| read.at))
    });
    listed.or(of_pool).or_else(|| Some((count(mapped.len()), *mapped.first()?)))
}

/// Whether a backing device is a LU: `LU.UDID`; a disk, a volume or a file has no such id.
pub(super) fn is_lu(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, id)| id.len() >= 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The size of the shared pool of a VIOS in TB, where it shows one.
pub(super) fn size(view: &View<'_>, host: usize) -> Option<Figure> {
    let pools = view.of(host).filter_map(Report::lssp).flat_map(|lssp| &lssp.pools);
    let size = pools.filter(|pool| is_shared(pool)).filter_map(|pool| pool.size_mb).last()?;
    let terms = vec![Term::read("MB", as_f64(size.value), "MB", size.at)];
    Some(Figure::new("pool TB", "TB", "MB ÷ 1024 ÷ 1024", terms))
}

/// The depth of a client's LU: as captured on a client of the VIOS, else the default of the data files.
fn lu_depth(view: &View<'_>, vios: usize) -> Option<(f64, Option<At>)> {
    let depths = view.clients_of(vios).into_iter().flat_map(|host| {
        view.devices(host, "hdisk")
            .into_iter()
            .filter_map(move |disk| view.number(host, disk, "queue_depth"))
    });
    let deepest =
        depths.max_by(|one, two| one.0.total_cmp(&two.0)).map(|(depth, at)| (depth, Some(at)));
    deepest.or_else(|| {
        let default =
            view.facts.attribute("hdisk-lu", "queue_depth")?.default.as_ref()?.as_number()?;
        Some((as_f64(u64::try_from(default).ok()?), None))
    })
}

/// What the LUNs take at a time, and what the clients may send.
fn depth_figures(luns: Term, of_lun: Term, lus: Term, of_lu: Term) -> (Figure, Figure) {
    let taken = "LUNs × depth of a LUN";
    let asked = "LUs × depth of a LU";
    (
        Figure::new("commands that the LUNs take", "commands", taken, vec![luns, of_lun]),
        Figure::new("commands that the clients may send", "commands", asked, vec![lus, of_lu]),
    )
}

fn judge_depth(
    view: &View<'_>,
    host: usize,
    (lus, lu_at): (f64, At),
    listed: Option<Value>,
    depths: &[(&str, f64, At)],
    out: &mut Out,
) {
    let least = fact(view.facts, SSP_LUN_DEPTH_MIN);
    let mut shallow: Vec<&(&str, f64, At)> =
        depths.iter().filter(|(_, depth, _)| *depth < least / 2.0).collect();
    // One disk among many deep ones is something else: rootvg, or the repository.
    if shallow.len() * 2 < depths.len() {
        return;
    }
    shallow.sort_by(|one, two| one.1.total_cmp(&two.1));
    let Some((name, depth, at)) = shallow.first().copied().copied() else { return };
    let Some((lu_depth, lu_depth_at)) = lu_depth(view, host) else { return };
    let of_lu = match lu_depth_at {
        Some(at) => Term::read("depth of a LU", lu_depth, "commands", at),
        None => Term::new("depth of a LU", lu_depth, "commands", default_origin(view)),
    };
    let lus = Term::read("LUs", lus.max(1.0), "LUs", lu_at);
    let (luns, luns_at) = listed.unwrap_or((count(shallow.len()), at));
    let luns = Term::read("LUNs", luns, "LUNs", luns_at);
    let of_lun = Term::read("depth of a LUN", depth, "commands", at);
    let (physical, asked) = depth_figures(luns, of_lun, lus, of_lu);
    if asked.low <= physical.low && (listed.is_some() || shallow.len() > 1) {
        return;
    }
    let single = depths.len() == 1 && listed.is_none();
    let target =
        view.allowed(host, name, &["hdisk-pool", "hdisk"], "queue_depth").fit_or_max(least);
    let mut draft = Draft::new("ssp-depth", host, view.object(host, name), Severity::Warning, format!("the pool's LUNs take {} commands each", number(depth)))
        .see(shallow.iter().map(|(_, _, at)| *at))
        .see([lu_at])
        .see(lu_depth_at)
        .because("All clients' I/O meets on the pool's LUNs. With so small a depth there the commands of the clients queue in the VIOS, however fast the storage is.")
        .because("The published measurement used 16 and more on both ends, and calls the default of the pool's LUNs far too small.")
        .figure(physical)
        .figure(asked)
        .figure(Figure::plain(view.facts.term(SSP_LUN_DEPTH_MIN, "depth that the measurement used")))
        .harm("More commands reach the storage at a time; look at its service times afterwards. Every VIOS of the cluster has its own setting.")
        .weigh(if single { 0.7 } else { 0.88 }, 1.0);
    if let Some(target) = target.filter(|target| as_f64(*target) > depth) {
        let change = Change::new(view, host, name).set("queue_depth", target.to_string());
        draft = draft.change(&change).effect("Run it for every LUN of the pool, on every VIOS of the cluster, one VIOS at a time. It takes effect when the disk is configured again or the VIOS is restarted.");
    }
    out.push(draft);
}

fn default_origin(view: &View<'_>) -> crate::trace::Origin {
    let fact = view.facts.attribute("hdisk-lu", "queue_depth");
    fact.map_or(crate::trace::Origin::Given, |fact| crate::trace::Origin::Fact(fact.source.clone()))
}
