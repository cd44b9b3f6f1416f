//! What is wrong with a storage pool as it was laid out: rules over a plain description of it, each with the arithmetic behind it.
//!
//! The numbers for PVs and depths are those that were published for shared storage pools of PowerVM, which the planner's facts have with their sources; the others
//! follow from how a pool works. What is not known (`None`) breaks no rule.

use crate::finding::rules;
use crate::units::{format_size, percent};
use std::collections::{BTreeMap, BTreeSet};

/// PVs that a pool has at least.
pub const PVS_MIN: u64 = 16;
/// PVs for each TiB of a larger pool …
pub const PVS_PER_TIB: u64 = 8;
/// … of more TiB than this.
pub const PVS_PER_TIB_ABOVE: u64 = 2;
/// Requests that a PV takes at a time, at least.
pub const PV_DEPTH_MIN: u64 = 16;
/// Requests that a client has at an LU at a time, as the original's clients are set.
pub const LU_DEPTH: u64 = 8;

/// A rule speaks where a pool has this share of `PVS_MIN`, in percent, or less …
const PVS_MIN_SHARE: u64 = 50;
/// … or less than this share of what its size asks for.
const PVS_SIZE_SHARE: u64 = 25;
/// PVs are of one size where the smallest has this share of the largest, in percent.
const EQUAL: u64 = 90;
/// LUs may take so much of what there is, in percent, where less than half of it is free …
const OVERCOMMIT: u64 = 200;
/// … and where less than a quarter is.
const OVERCOMMIT_TIGHT: u64 = 150;

const TIB: u64 = 1 << 40;

rules! {
    NotOpen "not-open" Fault "The pool is not open: its LUs and their clients wait.",
        "Look at what it says: `trunkline pool explain`.";
    PvAway "pv-away" Fault "A PV is away: what was on it has one copy.",
        "Bring its disk or file back; it is found by itself (`trunkline pv explain`).";
    OneDisk "one-disk" Fault "PVs of both failure groups lie on one disk, which takes both copies with it when it fails.",
        "Give each failure group disks of its own: `trunkline pv replace`.";
    Full "full" Fault "The pool is as good as full; writes that need space wait when it is.",
        "Add a PV (`trunkline pv add`), remove LUs and snapshots, or discard what clients no longer need (fstrim).";
    FilesWithoutSpace "files-without-space" Fault "PVs are sparse files on a file system that has less space than they can take: writes fail when it is used up.",
        "Make room there, or set the space aside: `fallocate -l SIZE FILE`, which leaves what is in the file as it is.";
    OnePvOfGroup "one-pv-of-group" Advice "A failure group has one PV: a pool that was closed is opened only if of each group one is there, so it needs that one.",
        "Add a second PV to it: `trunkline pv add POOL PATH --failgrp GROUP`.";
    UnequalGroups "unequal-groups" Advice "The failure groups have not the same size: what the larger one has more is not used.",
        "Add PVs to the smaller one: `trunkline pv add POOL PATH --failgrp GROUP`.";
    OnePv "one-pv" Advice "The pool has one PV: nothing is spread, and its LUs have one queue.",
        "Add PVs of the same size; what is in the pool spreads by itself.";
    FewPvs "few-pvs" Advice "The pool has few PVs for its LUs, which meet in their queues.",
        "Add PVs of the same size; what is in the pool spreads by itself.";
    UnequalPvs "unequal-pvs" Advice "The PVs of a failure group have not the same size: the larger ones have more of the LUs, and of the work.",
        "Replace the odd ones by PVs of the others' size: `trunkline pv replace`.";
    ShallowPv "shallow-pv" Advice "A PV takes few requests at a time, however fast it is.",
        "Raise the depth of its queue: /sys/block/DEVICE/device/queue_depth, if the device allows it.";
    FewRequests "few-requests" Advice "Clients may send more requests at a time than the PVs take; the others wait in the server.",
        "Add PVs, or raise the depth of their queues.";
    Overcommit "overcommit" Advice "Thin LUs promise far more than the pool has, and little of it is free: a few clients that fill their disks have all others wait.",
        "Add PVs before that. `pool show` says when it will be full at its pace, and `warn_days`, `warn_percent` and `warn_overcommit_percent` when `status` warns.";
}

/// A PV.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pv {
    /// Where it is.
    pub path: String,
    /// Its failure group.
    pub group: String,
    /// What it has, in bytes.
    pub bytes: u64,
    /// It failed, or was not found.
    pub away: bool,
    /// Requests that its device takes at a time.
    pub depth: Option<u64>,
}

/// A file system on which PVs are files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// The first of them.
    pub path: String,
    /// What they can still take of it, in bytes.
    pub missing: u64,
    /// What it has, in bytes.
    pub free: u64,
}

/// A pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Why it is not open, if it is not.
    pub closed: Option<String>,
    /// PVs that stay, in order.
    pub pvs: Vec<Pv>,
    /// What can be used, in bytes; of a mirrored pool each byte once, here and below.
    pub size: u64,
    /// What is neither used nor set aside.
    pub free: u64,
    /// What LUs have in all.
    pub allocated: u64,
    /// From so much of it in use on it warns, in percent.
    pub warn_percent: u64,
    /// LUs that clients can reach.
    pub lus: u64,
    /// Two PVs of different groups on one disk.
    pub one_disk: Option<(String, String)>,
    /// File systems of its PVs.
    pub files: Vec<Files>,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What.
    pub rule: Rule,
    /// The pool.
    pub place: String,
    /// About what: PVs or failure groups; may be empty.
    pub about: String,
    /// The numbers that it follows from; may be empty.
    pub arithmetic: String,
}

/// Everything that is wrong with pools, worst first.
#[must_use]
pub fn check(pools: &[Pool]) -> Vec<Finding> {
    let mut found = Vec::new();
    for pool in pools {
        let mut say = |rule, about: String, arithmetic: String| {
            found.push(Finding { rule, place: pool.name.clone(), about, arithmetic });
        };
        if let Some(why) = &pool.closed {
            say(Rule::NotOpen, why.clone(), String::new());
            continue;
        }
        if let Some((one, other)) = &pool.one_disk {
            say(Rule::OneDisk, format!("{one} and {other}"), String::new());
        }
        space(pool, &mut say);
        let groups = pool.groups();
        for pv in pool.pvs.iter().filter(|pv| pv.away) {
            say(Rule::PvAway, format!("{} of {}", pv.path, pv.group), String::new());
        }
        between(&groups, &mut say);
        count(pool, &groups, &mut say);
        depth(pool, &mut say);
    }
    found.sort_by(|one, other| (one.rule.severity(), one).cmp(&(other.rule.severity(), other)));
    found
}

/// The PVs of each failure group.
type Groups<'a> = BTreeMap<&'a str, Vec<&'a Pv>>;

impl Pool {
    fn groups(&self) -> Groups<'_> {
        let mut groups = Groups::new();
        for pv in &self.pvs {
            groups.entry(pv.group.as_str()).or_default().push(pv);
        }
        groups
    }
}

fn sum(pvs: &[&Pv]) -> u64 {
    pvs.iter().map(|pv| pv.bytes).sum()
}

/// What it has, and what it promises.
fn space(pool: &Pool, say: &mut impl FnMut(Rule, String, String)) {
    let (size, free) = (format_size(pool.size), format_size(pool.free));
    let taken = percent(pool.size.saturating_sub(pool.free), pool.size);
    if taken >= pool.warn_percent {
        let limit = pool.warn_percent;
        let sum = format!("({size} - {free} free) / {size} = {taken} %, warn_percent is {limit} %");
        say(Rule::Full, String::new(), sum);
    }
    let promised = percent(pool.allocated, pool.size);
    let left = percent(pool.free, pool.size);
    let limit = if left < 25 { OVERCOMMIT_TIGHT } else { OVERCOMMIT };
    if left < 50 && promised >= limit {
        let all = format_size(pool.allocated);
        let sum = format!(
            "LUs of {all} / {size} = {promised} %, {free} free of {size} = {left} %: at most {limit} % then"
        );
        say(Rule::Overcommit, String::new(), sum);
    }
    for files in pool.files.iter().filter(|files| files.missing > files.free) {
        let [missing, free] = [files.missing, files.free].map(format_size);
        let sum = format!("{missing} are not written yet, {free} are free");
        say(Rule::FilesWithoutSpace, format!("the file system of {}", files.path), sum);
    }
}

/// Failure groups beside each other, and PVs beside others of their group.
fn between(groups: &Groups<'_>, say: &mut impl FnMut(Rule, String, String)) {
    for (group, pvs) in groups {
        if groups.len() > 1 && pvs.len() == 1 {
            say(Rule::OnePvOfGroup, (*group).to_owned(), "1 PV".to_owned());
        }
        let (Some(least), Some(most)) =
            (pvs.iter().min_by_key(|pv| pv.bytes), pvs.iter().max_by_key(|pv| pv.bytes))
        else {
            continue;
        };
        let share = percent(least.bytes, most.bytes);
        if share < EQUAL {
            let [small, large] = [least.bytes, most.bytes].map(format_size);
            let sum = format!("{small} / {large} = {share} %, at least {EQUAL} % is equal");
            say(Rule::UnequalPvs, format!("{} and {} of {group}", least.path, most.path), sum);
        }
    }
    let mut sizes: Vec<(&str, u64)> = groups.iter().map(|(name, pvs)| (*name, sum(pvs))).collect();
    sizes.sort_by_key(|(_, bytes)| *bytes);
    if let [(small, less), .., (large, more)] = sizes[..]
        && less != more
    {
        let [unused, less, more] = [more - less, less, more].map(format_size);
        let sum = format!("{more} - {less} = {unused} that nothing can use");
        say(Rule::UnequalGroups, format!("{large} and {small}"), sum);
    }
}

/// How many PVs there are, of the failure group that has the fewest.
fn count(pool: &Pool, groups: &Groups<'_>, say: &mut impl FnMut(Rule, String, String)) {
    let Some((group, pvs)) = groups.iter().min_by_key(|(_, pvs)| pvs.len()) else { return };
    let there = pvs.len() as u64;
    let about = if groups.len() > 1 { (*group).to_owned() } else { String::new() };
    if there == 1 && groups.len() == 1 {
        return say(Rule::OnePv, about, format!("1 PV; {PVS_MIN} are advised"));
    }
    // As few LUs as PVs do not meet in one queue.
    if pool.lus <= there {
        return;
    }
    let size = sum(pvs);
    let for_size = size.saturating_mul(PVS_PER_TIB).div_ceil(TIB);
    let is_large = size > PVS_PER_TIB_ABOVE * TIB;
    let few_for_size = is_large && there * 100 < for_size * PVS_SIZE_SHARE;
    if percent(there, PVS_MIN) > PVS_MIN_SHARE && !few_for_size {
        return;
    }
    let wanted = if is_large { for_size.max(PVS_MIN) } else { PVS_MIN };
    let mut sum = format!("{there} PVs for {} LUs; {wanted} are advised", pool.lus);
    if is_large {
        sum += &format!(": {} x {PVS_PER_TIB} for each TiB, {PVS_MIN} at least", format_size(size));
    }
    say(Rule::FewPvs, about, sum);
}

/// What PVs take at a time, and what clients may send.
fn depth(pool: &Pool, say: &mut impl FnMut(Rule, String, String)) {
    for pv in &pool.pvs {
        if let Some(depth) = pv.depth.filter(|depth| *depth < PV_DEPTH_MIN) {
            let sum = format!("it takes {depth} at a time; {PV_DEPTH_MIN} or more are advised");
            say(Rule::ShallowPv, pv.path.clone(), sum);
        }
    }
    let depths: Option<Vec<u64>> = pool.pvs.iter().map(|pv| pv.depth).collect();
    let Some(depths) = depths.filter(|depths| !depths.is_empty()) else { return };
    let taken: u64 = depths.iter().sum();
    let sent = pool.lus.saturating_mul(LU_DEPTH);
    if sent <= taken {
        return;
    }
    let each: BTreeSet<u64> = depths.iter().copied().collect();
    let each = match each.first().filter(|_| each.len() == 1) {
        Some(depth) => format!("{} PVs x {depth} = {taken}", depths.len()),
        None => format!("{} PVs take {taken} together", depths.len()),
    };
    let lus = pool.lus;
    let sum = format!("{lus} LUs with clients x {LU_DEPTH} = {sent}; {each}");
    say(Rule::FewRequests, String::new(), sum);
}

#[cfg(test)]
mod tests;
