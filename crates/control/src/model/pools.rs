//! Storage pools: what is kept of them, and what data planes get of it.
//!
//! A pool is made once, on PVs that hold nothing; from then on it is opened, and PVs without its label are a failed pool, never an empty one. An LU that goes is noted by its number until
//! its pool goes: the data plane removes it, now or when it can. PVs that a data plane has in the pool are noted by their paths: those that are not listed any more leave it, and those that are listed and
//! were never there join it.

pub mod scrubs;
pub mod tiers;

use super::files::Made;
use super::map::SharedMap;
use super::{Desired, home};
use crate::error::ApiError;
use crate::paths::Paths;
use fabric::attribute::words::{OnFull, VolumeKind};
use fabric::attribute::{Attributes, Object, attr};
use fabric::pvs::Listed;
use protocol::message::{PoolStatus, PvState, PvStatus, SnapshotStatus};
use serde::{Deserialize, Serialize};
use spec::{FileIdentity, FullLuSpec, FullSpec, PoolSpec, SnapshotSpec, TierSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What is kept of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kept {
    /// It was open: it is never made again.
    pub made: bool,
    /// LUs that were removed.
    pub doomed: BTreeSet<u32>,
    /// Where its PVs were when it was last open.
    pub members: BTreeSet<PathBuf>,
    /// Those of them in its second failure group.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub mirror: BTreeSet<PathBuf>,
    /// The tiers of those of them that are not of the first, by number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub of_tier: BTreeMap<PathBuf, u8>,
    /// The numbers of its tiers but the first, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tiers: BTreeMap<String, u8>,
    /// Snapshots.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub snapshots: BTreeMap<String, Frozen>,
    /// Those that were asked for and given up before it was known whether they were made, by number, with their LUs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub given_up: BTreeMap<u64, Vec<u32>>,
    /// How many were ever asked for.
    #[serde(skip_serializing_if = "is_zero")]
    pub asked: u64,
    /// The marks with which LUs are asked for that are not known to be made, by volume.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub making: BTreeMap<String, u64>,
    /// The marks of those whose volumes went before that: whenever such an LU is found, it is doomed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unwanted: BTreeSet<u64>,
    /// Volumes whose NAA identifier is made of the pool's UUID and the number of their LU. Those that came before that was so keep what they have.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub named: BTreeSet<String>,
    /// The last scrub that was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scrub: Option<scrubs::LastScrub>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What is kept of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Frozen {
    /// Its number among those that were ever asked for.
    pub id: u64,
    /// When it was made, in milliseconds since 1970; 0 while it is not known to be.
    #[serde(default)]
    pub made_ms: u64,
    /// What it has, by volume.
    #[serde(default)]
    pub lus: BTreeMap<String, FrozenLu>,
}

/// What a snapshot has of an LU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrozenLu {
    /// Its number, which the pool gives out once.
    pub number: u32,
    /// The size of the LU.
    pub bytes: u64,
}

/// A pool that a data plane has open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Open {
    /// The paths of its PVs.
    pub members: BTreeSet<PathBuf>,
    /// Those of them in its second failure group.
    pub mirror: BTreeSet<PathBuf>,
    /// The tiers of those of them that are not of the first.
    pub tiers: BTreeMap<PathBuf, u8>,
    /// Snapshots that were made of late.
    pub snapshots: Vec<SnapshotStatus>,
    /// Its LUs that were asked for with a mark, by that.
    pub marks: BTreeMap<u64, u32>,
}

impl Open {
    /// As a data plane says.
    pub fn of(status: &PoolStatus) -> Open {
        let members = status.pvs.iter().map(|pv| pv.path.clone()).collect();
        let mirror = status.pvs.iter().filter(|pv| pv.group != 0);
        let mirror = mirror.map(|pv| pv.path.clone()).collect();
        let tiers = status.pvs.iter().filter(|pv| pv.tier != 0);
        let tiers = tiers.map(|pv| (pv.path.clone(), pv.tier)).collect();
        let marked = status.lus.iter().filter(|lu| lu.asked != 0);
        let marks = marked.map(|lu| (lu.asked, lu.number)).collect();
        Open { members, mirror, tiers, snapshots: status.snapshots.clone(), marks }
    }
}

/// What is wrong with an open pool beside PVs that are away, which are told by their states.
pub fn trouble_beside(status: &PoolStatus) -> Option<&String> {
    let away = |trouble: &String| status.pvs.iter().any(|pv| is_of_away(trouble, pv).is_some());
    status.trouble.as_ref().filter(|trouble| !away(trouble))
}

/// Why a PV is away, where its data plane says so: in brackets behind that it is.
pub fn why_away<'a>(status: &'a PoolStatus, pv: &PvStatus) -> Option<&'a str> {
    let rest = is_of_away(status.trouble.as_ref()?, pv)?;
    rest.strip_prefix(" (")?.split_once("): ").map(|(why, _)| why)
}

/// What follows where the trouble is that this PV is away.
fn is_of_away<'a>(trouble: &'a str, pv: &PvStatus) -> Option<&'a str> {
    let begin = format!("PV {} is away", pv.path.display());
    trouble.strip_prefix(&begin).filter(|_| pv.state == PvState::Away)
}

/// Pools that data planes have open.
pub type Opened = BTreeMap<String, Open>;

/// Notes which are open. Whether there was something new.
pub fn learn(desired: &mut Desired, opened: &Opened, paths: &Paths) -> bool {
    let mut learned = false;
    for (name, open) in opened {
        let Open { members, mirror, snapshots, .. } = open;
        let Some(set) = desired[Object::Pool].get(name) else { continue };
        let kept = desired.allocations.pools.get(name).cloned().unwrap_or_default();
        let mut now = kept.clone();
        note_made(desired, name, &mut now, snapshots);
        note_lus(desired, &mut now, open);
        // A data plane that says nothing of its PVs has not lost them.
        let known =
            if members.is_empty() { (&kept.members, &kept.mirror) } else { (members, mirror) };
        now = Kept { made: true, members: known.0.clone(), mirror: known.1.clone(), ..now };
        if !members.is_empty() {
            tiers::learn(&mut now, open, set, paths);
        }
        if kept != now {
            desired.allocations.pools.insert(name.clone(), now);
            learned = true;
        }
    }
    learned
}

/// Forgets the marks of LUs that are known by their numbers, and dooms those that nobody wants.
fn note_lus(desired: &Desired, kept: &mut Kept, open: &Open) {
    kept.making.retain(|volume, _| desired.lu_number(volume).is_none());
    let unwanted = open.marks.iter().filter(|(mark, _)| kept.unwanted.contains(*mark));
    kept.doomed.extend(unwanted.map(|(_, number)| *number));
}

/// Notes snapshots that were made. One that nobody wants any more is doomed.
fn note_made(desired: &Desired, pool: &str, kept: &mut Kept, made: &[SnapshotStatus]) {
    for SnapshotStatus { id, made_ms, lus } in made {
        let asked = kept.snapshots.iter_mut().find(|(_, frozen)| frozen.id == *id);
        let Some((_, frozen)) = asked else {
            kept.given_up.remove(id);
            kept.doomed.extend(lus.iter().map(|lu| lu.number));
            continue;
        };
        if frozen.made_ms != 0 {
            continue;
        }
        frozen.made_ms = *made_ms;
        let named = |number: u32| {
            let files = desired.allocations.files.iter();
            let mut lus = files.filter(|(_, made)| number_of(made) == Some(number));
            // Those of other pools have numbers of their own.
            let is_here = |set: &Attributes| pool_of(set) == Some(pool);
            lus.find(|(name, _)| desired[Object::Volume].get(name).is_some_and(is_here))
        };
        let of = |lu: &protocol::message::FrozenStatus| {
            let (volume, _) = named(lu.lu)?;
            Some((volume.clone(), FrozenLu { number: lu.number, bytes: lu.bytes }))
        };
        frozen.lus = lus.iter().filter_map(of).collect();
    }
}

/// The number of an LU that was made.
fn number_of(made: &Made) -> Option<u32> {
    match made {
        Made::Is(FileIdentity::Lu { number, .. }) => Some(*number),
        _ => None,
    }
}

/// The volumes of a snapshot.
pub fn volumes_of(set: &Attributes) -> Vec<String> {
    listed(attr::snapshot::VOLUMES.of(set)).map(str::to_owned).collect()
}

/// What stands in a list, between commas.
fn listed(text: Option<&str>) -> impl Iterator<Item = &str> {
    let all = text.unwrap_or_default().split(',').map(str::trim);
    all.filter(|one| !one.is_empty())
}

impl Desired {
    /// The pool of a snapshot.
    pub fn pool_of_snapshot(&self, name: &str) -> Option<&str> {
        let set = self[Object::Snapshot].get(name)?;
        let first = volumes_of(set).into_iter().next()?;
        pool_of(self[Object::Volume].get(&first)?)
    }

    /// What is kept of a snapshot.
    pub fn frozen(&self, name: &str) -> Option<&Frozen> {
        self.allocations.pools.get(self.pool_of_snapshot(name)?)?.snapshots.get(name)
    }

    /// Whether the NAA identifier of a volume is that of its LU.
    pub fn lu_names_unit(&self, volume: &str) -> bool {
        let pool = self[Object::Volume].get(volume).and_then(pool_of);
        let kept = pool.and_then(|pool| self.allocations.pools.get(pool));
        kept.is_some_and(|kept| kept.named.contains(volume))
    }

    /// The number of the LU that a volume is, once it was made.
    pub fn lu_number(&self, volume: &str) -> Option<u32> {
        number_of(self.allocations.files.get(volume)?)
    }

    /// How large the LU of a volume is, or is to be.
    pub fn lu_bytes(&self, volume: &str) -> Option<u64> {
        let size = attr::volume::SIZE.of(self[Object::Volume].get(volume)?);
        size.or_else(|| self.bytes_of_file(volume))
    }

    /// The volume for which an LU of a pool is being made, by the mark with which it was asked for; or the snapshot, by the LU of which that is.
    pub fn being_made(&self, pool: &str, mark: u64, origin: Option<u32>) -> Option<(Object, &str)> {
        let kept = self.allocations.pools.get(pool)?;
        let Some(origin) = origin else {
            let volume = kept.making.iter().find(|(_, of)| **of == mark && mark != 0);
            return volume.map(|(volume, _)| (Object::Volume, volume.as_str()));
        };
        let wanted = |(name, frozen): &(&String, &Frozen)| {
            frozen.made_ms == 0 && lus_of(self, name).is_some_and(|lus| lus.contains(&origin))
        };
        let snapshot = kept.snapshots.iter().find(wanted);
        snapshot.map(|(name, _)| (Object::Snapshot, name.as_str()))
    }

    /// What a snapshot in a pool holds of an LU, by `NAME` or `NAME:VOLUME`, once it was made.
    pub fn origin(&self, pool: &str, text: &str) -> Option<FrozenLu> {
        let (name, volume) = text.split_once(':').unwrap_or((text, ""));
        let lus = &self.allocations.pools.get(pool)?.snapshots.get(name)?.lus;
        let only = || lus.values().next().filter(|_| lus.len() == 1);
        let lu = if volume.is_empty() { only() } else { lus.get(volume) };
        lu.copied()
    }
}

/// Snapshots that are new are asked for, and the LUs of those that are gone are doomed.
fn settle_snapshots(now: &Desired, next: &Desired, pools: &mut SharedMap<Kept>) {
    for difference in now.differences(Object::Snapshot, next) {
        let name = difference.name().to_owned();
        let state = if difference.after.is_some() { next } else { now };
        let Some(pool) = state.pool_of_snapshot(&name) else { continue };
        let mut kept = pools.get(pool).cloned().unwrap_or_default();
        match (difference.before.is_some(), difference.after.is_some()) {
            (false, true) => {
                kept.asked += 1;
                kept.snapshots.insert(name, Frozen { id: kept.asked, ..Frozen::default() });
            }
            (_, false) => {
                let gone = kept.snapshots.remove(&name).unwrap_or_default();
                if let Some(lus) = lus_of(now, &name).filter(|_| gone.made_ms == 0) {
                    kept.given_up.insert(gone.id, lus);
                }
                kept.doomed.extend(gone.lus.values().map(|lu| lu.number));
            }
            (true, true) => continue,
        }
        pools.insert(pool.to_owned(), kept);
    }
}

/// Pools that are new get a UUID; of those that are gone nothing is kept. LUs that are gone are doomed.
pub(super) fn settle(now: &Desired, next: &mut Desired, fresh: u64) {
    let names: Vec<String> = next[Object::Pool].keys().cloned().collect();
    for name in names {
        let before = now[Object::Pool].get(&name);
        let given = before.and_then(|set| attr::pool::UUID.of(set)).map(str::to_owned);
        let set = next[Object::Pool].get(&name);
        if set.is_some_and(|set| attr::pool::UUID.of(set).is_some()) {
            continue;
        }
        let mut set = set.cloned().unwrap_or_default();
        attr::pool::UUID.put(&mut set, &given.unwrap_or_else(|| uuid(&name, fresh)));
        next[Object::Pool].insert(name, set);
    }
    let mut pools = std::mem::take(&mut next.allocations.pools);
    let there = |name: &String| next[Object::Pool].contains_key(name);
    let same = |name: &String| {
        let uuid = |state: &Desired| {
            state[Object::Pool]
                .get(name)
                .and_then(|set| attr::pool::UUID.of(set))
                .map(str::to_owned)
        };
        uuid(now) == uuid(next)
    };
    let gone: Vec<String> = pools
        .iter()
        .map(|(name, _)| name)
        .filter(|name| !there(name) || !same(name))
        .cloned()
        .collect();
    gone.iter().for_each(|name| drop(pools.remove(name)));
    for difference in now.differences(Object::Volume, next) {
        let name = difference.name();
        let state = if difference.after.is_some() { next as &Desired } else { now };
        let pool = state[Object::Volume].get(name).and_then(pool_of);
        let Some(pool) = pool.map(str::to_owned).filter(there) else { continue };
        let mut kept = pools.get(&pool).cloned().unwrap_or_default();
        match (difference.before.is_some(), difference.after.is_some()) {
            (false, true) => {
                kept.making.insert(name.to_owned(), mark(name, fresh));
                kept.named.insert(name.to_owned());
            }
            (true, false) => {
                kept.named.remove(name);
                kept.doomed.extend(now.lu_number(name));
                let mark = kept.making.remove(name);
                kept.unwanted.extend(mark.filter(|_| now.lu_number(name).is_none()));
            }
            _ => continue,
        }
        pools.insert(pool, kept);
    }
    settle_snapshots(now, next, &mut pools);
    let names: Vec<String> = next[Object::Pool].keys().cloned().collect();
    for name in names {
        let (before, after) = (now[Object::Pool].get(&name), next[Object::Pool].get(&name));
        let Some(after) = after.filter(|after| before != Some(*after)) else { continue };
        let mut kept = pools.get(&name).cloned().unwrap_or_default();
        let renamed = tiers::settle(&mut kept, (before, after));
        if pools.get(&name).map_or(&Kept::default(), |was| was) != &kept {
            pools.insert(name.clone(), kept);
        }
        tiers::rename_of_lus(next, &name, &renamed);
    }
    next.allocations.pools = pools;
}

/// A mark that no other LU has: of a number that was just drawn, and the name. It is not 0.
fn mark(name: &str, fresh: u64) -> u64 {
    named(name, fresh.rotate_left(16)).max(1)
}

/// The pool of a volume, if it is an LU.
pub fn pool_of(set: &Attributes) -> Option<&str> {
    let is_lu = attr::volume::KIND.of(set) == Some(VolumeKind::Lu);
    attr::volume::POOL.of(set).filter(|_| is_lu)
}

/// The paths of a pool's PVs, those of its second failure group last.
pub fn pvs(set: &Attributes, paths: &Paths) -> Vec<PathBuf> {
    let first = paths_of(attr::pool::PVS.of(set), paths);
    first.into_iter().chain(mirror(set, paths)).collect()
}

/// Those of its second failure group; none if it is not mirrored.
pub fn mirror(set: &Attributes, paths: &Paths) -> Vec<PathBuf> {
    paths_of(attr::pool::MIRROR.of(set), paths)
}

/// The paths of a list of PVs.
fn paths_of(list: Option<&str>, paths: &Paths) -> Vec<PathBuf> {
    Listed::all(list.unwrap_or_default()).map(|one| paths.absolute(one.path)).collect()
}

/// The names of its failure groups; of one that is not mirrored, the first is there alone.
pub fn groups(set: &Attributes) -> [&str; 2] {
    [attr::pool::FAILGRP.value(set), attr::pool::MIRROR_FAILGRP.value(set)]
}

/// Whether the failure groups of a pool may change so. A pool has as many as it was made with, since its LUs have as many copies; and what is of one group does not become of the other.
pub(super) fn may_change(
    now: &Desired,
    name: &str,
    (before, after): (&Attributes, &Attributes),
    paths: &Paths,
) -> Result<(), ApiError> {
    let Some(kept) = now.allocations.pools.get(name).filter(|kept| kept.made) else {
        return Ok(());
    };
    let refuse = |attribute: &str, what: String, help: String| {
        Err(ApiError::invalid(format!("pool `{name}` {what}")).on(attribute).help(help))
    };
    let (had, has) = (mirror(before, paths), mirror(after, paths));
    let is_mirrored = !kept.mirror.is_empty();
    let help = "a pool has the failure groups that it was made with: make another pool, give it LUs, and copy what these hold";
    if !is_mirrored && had.is_empty() && !has.is_empty() {
        let what = "is not mirrored, and cannot be any more".to_owned();
        return refuse(attr::pool::MIRROR.name, what, help.to_owned());
    }
    if is_mirrored && has.is_empty() && !had.is_empty() {
        let what = "is mirrored, and cannot be without its second failure group".to_owned();
        return refuse(attr::pool::MIRROR.name, what, help.to_owned());
    }
    let first = |set: &Attributes| -> BTreeSet<PathBuf> {
        paths_of(attr::pool::PVS.of(set), paths).into_iter().collect()
    };
    let (first_had, first_has) = (first(before), first(after));
    let comes_first = first_has.iter().filter(|path| !first_had.contains(*path));
    let comes_second = has.iter().filter(|path| !had.contains(path));
    let second = |path: &&PathBuf| kept.mirror.contains(*path);
    let [one, two] = groups(after);
    let wrong = comes_first.filter(second).map(|path| (path, attr::pool::PVS.name, two, one));
    let member = |path: &&PathBuf| kept.members.contains(*path) && !second(path);
    let wrong_too =
        comes_second.filter(member).map(|path| (path, attr::pool::MIRROR.name, one, two));
    let Some((path, attribute, from, to)) = wrong.chain(wrong_too).next() else {
        return tiers::may_change(kept, name, (before, after), paths);
    };
    let path = path.display();
    let what = format!("has {path} in its failure group `{from}`: it cannot go to `{to}`");
    let help = format!(
        "take it out first (`trunkline pv remove {name} {path}`), and add it when it has left"
    );
    refuse(attribute, what, help)
}

/// The LUs of a snapshot, if all of them are there: before that it is not asked for.
fn lus_of(desired: &Desired, snapshot: &str) -> Option<Vec<u32>> {
    let volumes = volumes_of(desired[Object::Snapshot].get(snapshot)?);
    let lus = volumes.iter().map(|volume| number_of(desired.allocations.files.get(volume)?));
    lus.collect::<Option<Vec<u32>>>().filter(|lus| !lus.is_empty())
}

/// The pools of a data plane.
pub(super) fn wanted(desired: &Desired, dataplane: &str, paths: &Paths) -> SharedMap<PoolSpec> {
    let asked = |(name, frozen): (&String, &Frozen)| {
        let lus = lus_of(desired, name).filter(|_| frozen.made_ms == 0)?;
        Some(SnapshotSpec { id: frozen.id, lus, given_up: false })
    };
    let given_up =
        |(id, lus): (&u64, &Vec<u32>)| SnapshotSpec { id: *id, lus: lus.clone(), given_up: true };
    let here = desired[Object::Pool].iter().filter(|(_, set)| home(set) == dataplane);
    let spec = |(name, set): (&String, &Attributes)| {
        let kept = desired.allocations.pools.get(name);
        let pvs = pvs(set, paths);
        let members = kept.map(|kept| &kept.members).filter(|members| !members.is_empty());
        let new = |path: &&PathBuf| members.is_some_and(|members| !members.contains(*path));
        let unwanted = |path: &&PathBuf| !pvs.contains(path);
        let spec = PoolSpec {
            name: name.clone(),
            uuid: digits(set),
            shadow: shadow(set, paths),
            server: server(desired),
            joining: pvs.iter().filter(new).cloned().collect(),
            leaving: members.into_iter().flatten().filter(unwanted).cloned().collect(),
            pvs,
            mirror: mirror(set, paths),
            tiers: tiers_told(kept, set, paths),
            placed: tiers::placed_lus(desired, name),
            full: full(desired, (name, set)),
            fresh: kept.is_none_or(|kept| !kept.made),
            alone: false,
            doomed: kept.map(|kept| kept.doomed.iter().copied().collect()).unwrap_or_default(),
            snapshots: kept
                .into_iter()
                .flat_map(|kept| {
                    let wanted = kept.snapshots.iter().filter_map(asked);
                    wanted.chain(kept.given_up.iter().map(given_up))
                })
                .collect(),
        };
        (name.clone(), spec)
    };
    here.map(spec).collect()
}

/// The volumes that are LUs of a pool.
pub fn lus_in<'a>(
    desired: &'a Desired,
    pool: &str,
) -> impl Iterator<Item = (&'a String, &'a Attributes)> {
    desired[Object::Volume].iter().filter(move |(_, set)| pool_of(set) == Some(pool))
}

/// Whether an LU says what it has where its pool is full.
pub fn says_of_full(set: &Attributes) -> bool {
    attr::volume::ON_FULL.is_set(set)
        || attr::volume::PAUSE_MAX.is_set(set)
        || attr::volume::RESERVE.is_set(set)
}

/// What holds where a pool is full, of its LUs as far as they were made.
fn full(desired: &Desired, (name, set): (&str, &Attributes)) -> FullSpec {
    let percent = attr::pool::THROTTLE_PERCENT.value(set) as u8;
    let of_lu = |(name, set): (&String, &Attributes)| {
        let pause = attr::volume::PAUSE_MAX.value(set);
        let pause = u32::try_from(pause).ok().filter(|pause| *pause > 0);
        let fails = attr::volume::ON_FULL.value(set) == OnFull::Error;
        let of = FullLuSpec {
            lu: desired.lu_number(name)?,
            reserve_bytes: attr::volume::RESERVE.value(set),
            pause_s: if fails { Some(0) } else { pause },
        };
        (of.reserve_bytes > 0 || of.pause_s.is_some()).then_some(of)
    };
    FullSpec {
        throttle_percent: Some(percent).filter(|of| *of != FullSpec::THROTTLE_PERCENT),
        lus: lus_in(desired, name).filter_map(of_lu).collect(),
    }
}

/// The PVs of all tiers but the first.
fn tiers_told(kept: Option<&Kept>, set: &Attributes, paths: &Paths) -> Vec<TierSpec> {
    let mut told: BTreeMap<u8, Vec<PathBuf>> = BTreeMap::new();
    for (path, tier) in tiers::by_pv(set, paths) {
        if let Some(number) = kept.and_then(|kept| kept.tiers.get(tier)) {
            told.entry(*number).or_default().push(path);
        }
    }
    told.into_iter().map(|(tier, pvs)| TierSpec { tier, pvs }).collect()
}

pub(super) fn digits(set: &Attributes) -> String {
    attr::pool::UUID.of(set).unwrap_or_default().replace('-', "")
}

/// Where a data plane keeps what is not on a pool's PVs yet.
pub fn shadow(set: &Attributes, paths: &Paths) -> PathBuf {
    paths.ram(&format!("pool-{}", digits(set)))
}

/// The server's own number, as the pools know their servers.
fn server(desired: &Desired) -> String {
    format!("{:016x}{:016x}", desired.allocations.system.unwrap_or(0), 0x5452_554e_4b4c_494e_u64)
}

/// The finalizer of SplitMix64.
fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// A number of this name.
fn named(name: &str, fresh: u64) -> u64 {
    name.bytes().fold(fresh, |sum, byte| mix(sum ^ u64::from(byte)).wrapping_add(1))
}

/// A UUID that nobody has: of a number that was just drawn, and the name, since several pools may be made at once.
fn uuid(name: &str, fresh: u64) -> String {
    let named = named(name, fresh);
    let (first, second) =
        (mix(named), mix(fresh.rotate_left(32) ^ named.wrapping_add(0x9e37_79b9_7f4a_7c15)));
    // Version 4, as RFC 9562 marks it.
    let (first, second) = (first & !0xf000 | 0x4000, second & !(3 << 62) | 1 << 63);
    let text = format!("{first:016x}{second:016x}");
    hyphened(&text).expect("32 digits")
}

/// A UUID of 32 digits, as it is written.
pub(super) fn hyphened(digits: &str) -> Option<String> {
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| digits.get(part));
    Some(parts.into_iter().collect::<Option<Vec<_>>>()?.join("-"))
}

#[cfg(test)]
mod tests;
