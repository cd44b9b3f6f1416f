//! The rules of storage pools.

use super::super::pools::{self, tiers};
use super::super::{Desired, home};
use crate::error::ApiError;
use crate::model::resolve;
use crate::paths::Paths;
use fabric::attribute::{Attributes, Object, attr, check_name};
use fabric::units::format_size;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// LUs of one snapshot at most, which are parted at one moment.
const SNAPSHOT_MAX: usize = 16;
/// Bytes of the name of a tier at most.
const TIER_NAME_MAX: usize = 63;

pub(super) fn check(desired: &Desired, paths: &Paths) -> Result<(), ApiError> {
    let mut owners: BTreeMap<PathBuf, String> = BTreeMap::new();
    for (name, set) in desired[Object::Volume].iter().filter(|_| !desired[Object::Pool].is_empty())
    {
        let path = resolve::volume_path(name, set, paths);
        owners.extend(path.map(|path| (path, format!("volume `{name}`"))));
    }
    for (name, set) in &desired[Object::Pool] {
        let refuse = |attribute: &str, problem: String, help: &str| {
            Err(ApiError::invalid(format!("pool `{name}`: {problem}")).on(attribute).help(help))
        };
        let groups = pools::groups(set);
        let (all, mirror) = (pools::pvs(set, paths), pools::mirror(set, paths));
        if all.is_empty() {
            return refuse("pvs", "it has no PV".to_owned(), "name block devices or files");
        }
        let (first, second) = all.split_at(all.len() - mirror.len());
        if first.is_empty() {
            let problem = format!("its failure group `{}` has no PV", groups[0]);
            return refuse("pvs", problem, "leave one in it, or make `mirror` empty");
        }
        if let Some(path) = first.iter().find(|path| second.contains(path)) {
            let problem = format!("{} is in both of its failure groups", path.display());
            let help = "both copies would be lost with it: give each group PVs of its own";
            return refuse("mirror", problem, help);
        }
        tiers_of(set).or_else(|problem| refuse(problem.0, problem.1, problem.2))?;
        for path in all {
            let other = owners.insert(path.clone(), format!("pool `{name}`"));
            if let Some(other) = other {
                let problem = format!("{} is already of {other}", path.display());
                return refuse("pvs", problem, "give each pool its own PVs, each of them once");
            }
        }
        for (attribute, group) in
            [attr::pool::FAILGRP.name, attr::pool::MIRROR_FAILGRP.name].into_iter().zip(groups)
        {
            if let Err(problem) = check_name(group) {
                let help = "a failure group has a name as objects have one";
                return refuse(attribute, problem, help);
            }
        }
        if groups[0] == groups[1] {
            let problem = format!("both of its failure groups are called `{}`", groups[0]);
            let help = "give them different names";
            return refuse(attr::pool::MIRROR_FAILGRP.name, problem, help);
        }
        let uuid = attr::pool::UUID.of(set).unwrap_or_default();
        let digits = uuid.bytes().filter(|byte| *byte != b'-');
        if !uuid.is_empty()
            && (digits.clone().count() != 32
                || !digits.clone().all(|byte| byte.is_ascii_hexdigit()))
        {
            let help = "it has 32 hexadecimal digits; leave it out for a new pool";
            return refuse("uuid", format!("`{uuid}` is no UUID"), help);
        }
    }
    reserves(desired)?;
    adopted(desired)?;
    for (name, set) in &desired[Object::Volume] {
        let (Some(pool), Some(tier)) = (pools::pool_of(set), attr::volume::TIER.of(set)) else {
            continue;
        };
        // A pool that it names has to be there, which others say.
        let Some(of) = desired[Object::Pool].get(pool) else { continue };
        let names = tiers::names(of);
        if !names.contains(&tier) {
            let problem =
                format!("volume `{name}` is in tier `{tier}`, which pool `{pool}` does not have");
            let help = format!("it has {}", listed(&names));
            return Err(ApiError::invalid(problem).on(attr::volume::TIER.name).help(help));
        }
    }
    checksums(desired, paths)?;
    snapshots(desired)?;
    clones(desired)?;
    one_dataplane(desired)
}

/// A volume that is an LU by its number is the only one, and says nothing of how it is made.
fn adopted(desired: &Desired) -> Result<(), ApiError> {
    let mut known: BTreeMap<(&str, u32), &String> = BTreeMap::new();
    for (name, set) in &desired[Object::Volume] {
        let said = attr::volume::NUMBER.of(set).and_then(|number| u32::try_from(number).ok());
        let of = pools::pool_of(set).zip(said.or_else(|| desired.lu_number(name)));
        let refuse = |problem: String, help: &str| {
            let refusal = ApiError::invalid(format!("volume `{name}`: {problem}"));
            Err(refusal.on(attr::volume::NUMBER.name).help(help))
        };
        if let Some((pool, number)) = of
            && let Some(other) = known.insert((pool, number), name)
        {
            let problem = format!("LU {number} of pool `{pool}` is volume `{other}` already");
            return refuse(problem, "one that is nobody's has no volume in `trunkline pool show`");
        }
        if !attr::volume::NUMBER.is_set(set) {
            continue;
        }
        let making = [
            (attr::volume::THICK.name, attr::volume::THICK.value(set)),
            (attr::volume::CHECKSUMS.name, attr::volume::CHECKSUMS.value(set)),
            (attr::volume::SNAPSHOT.name, attr::volume::SNAPSHOT.is_set(set)),
        ];
        if let Some((attribute, _)) = making.iter().find(|(_, says)| *says) {
            let problem = format!("`{attribute}` says how an LU is made, and it is there");
            return refuse(problem, &format!("leave `{attribute}` out"));
        }
        let goes = |(pool, number): &(&str, u32)| {
            let kept = desired.allocations.pools.get(pool);
            kept.is_some_and(|kept| kept.doomed.contains(number))
        };
        if let Some((pool, number)) = of.filter(goes) {
            let problem = format!("LU {number} of pool `{pool}` is being removed");
            return refuse(problem, "take another one");
        }
    }
    Ok(())
}

/// What is set aside for an LU is some of its size.
fn reserves(desired: &Desired) -> Result<(), ApiError> {
    for (name, set) in &desired[Object::Volume] {
        let reserve = attr::volume::RESERVE.value(set);
        let refuse = |problem: String, help: &str| {
            let refusal = ApiError::invalid(format!("volume `{name}`: {problem}"));
            Err(refusal.on(attr::volume::RESERVE.name).help(help))
        };
        if reserve > 0 && attr::volume::THICK.value(set) {
            let problem = "it is thick, and all of its space is set aside".to_owned();
            return refuse(problem, "leave `reserve` out");
        }
        if let Some(size) = attr::volume::SIZE.of(set).filter(|size| reserve > *size) {
            let (reserve, size) = (format_size(reserve), format_size(size));
            let problem = format!("its reserve of {reserve} is more than its size, {size}");
            return refuse(problem, "set less aside, or make it larger");
        }
    }
    Ok(())
}

/// There are checksums where there are two copies.
fn checksums(desired: &Desired, paths: &Paths) -> Result<(), ApiError> {
    let lus = desired[Object::Volume].iter();
    for (name, set) in lus.filter(|(_, set)| attr::volume::CHECKSUMS.value(set)) {
        let refuse = |problem: &str, help: &str| {
            let refusal = ApiError::invalid(format!("volume `{name}`: {problem}"));
            Err(refusal.on(attr::volume::CHECKSUMS.name).help(help))
        };
        if attr::volume::SNAPSHOT.is_set(set) {
            let problem = "a clone has no checksums, since it shares what it holds";
            return refuse(problem, "leave `checksums` out");
        }
        let pool = pools::pool_of(set).and_then(|pool| desired[Object::Pool].get(pool));
        if pool.is_some_and(|pool| pools::mirror(pool, paths).is_empty()) {
            let problem = "there are checksums only in a pool with two failure groups";
            return refuse(problem, "take a pool with `mirror`, or leave `checksums` out");
        }
    }
    Ok(())
}

/// A clone that is not made yet has all that its snapshot holds.
fn clones(desired: &Desired) -> Result<(), ApiError> {
    for (name, set) in &desired[Object::Volume] {
        let of = attr::volume::SNAPSHOT.of(set).zip(attr::volume::SIZE.of(set));
        let Some((snapshot, size)) = of.filter(|_| desired.lu_number(name).is_none()) else {
            continue;
        };
        let origin = pools::pool_of(set).and_then(|pool| desired.origin(pool, snapshot));
        if let Some(origin) = origin.filter(|origin| origin.bytes > size) {
            let problem = format!(
                "volume `{name}`: what its snapshot holds is {} bytes large, and its size {size}",
                origin.bytes
            );
            let help = "leave `size` out, or make it larger";
            return Err(ApiError::invalid(problem).on(attr::volume::SIZE.name).help(help));
        }
    }
    Ok(())
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// What is wrong with the tiers of a pool: the attribute, what, and what mends it.
fn tiers_of(set: &Attributes) -> Result<(), (&'static str, String, &'static str)> {
    let names = tiers::names(set);
    if names.len() > tiers::TIERS_MAX {
        let problem = format!("it has {} tiers", names.len());
        return Err((attr::pool::PVS.name, problem, "a pool has ten at most, with its first"));
    }
    for name in &names {
        if let Err(problem) = check_name(name) {
            let first = *name == tiers::first(set);
            let attribute = if first { attr::pool::TIER.name } else { attr::pool::PVS.name };
            return Err((attribute, problem, "a tier has a name as objects have one"));
        }
        if name.len() > TIER_NAME_MAX {
            let problem = format!("the name of its tier `{name}` is too long");
            return Err((attr::pool::PVS.name, problem, "63 bytes at most"));
        }
    }
    let default = tiers::default(set);
    if !names.contains(&default) {
        let problem = format!("its default tier `{default}` has no PV");
        return Err((attr::pool::DEFAULT_TIER.name, problem, "name a tier that it has"));
    }
    let groups = tiers::by_group(set);
    let of_first = |(tier, _): &(&str, &str)| *tier == tiers::first(set);
    if !groups.iter().flatten().any(of_first) {
        let problem = format!("its first tier `{}` has no PV", tiers::first(set));
        return Err((attr::pool::PVS.name, problem, "list some without a tier"));
    }
    for (name, group) in names.iter().flat_map(|name| [(name, 0), (name, 1)]) {
        let has = |group: usize| groups[group].iter().any(|(tier, _)| tier == name);
        if !groups[group].is_empty() && !has(group) {
            let problem = format!(
                "its tier `{name}` has no PV in failure group `{}`",
                pools::groups(set)[group]
            );
            let attribute = [attr::pool::PVS.name, attr::pool::MIRROR.name][group];
            return Err((attribute, problem, "give each tier PVs of each failure group"));
        }
    }
    Ok(())
}

/// A snapshot is of LUs of one pool.
fn snapshots(desired: &Desired) -> Result<(), ApiError> {
    for (name, set) in &desired[Object::Snapshot] {
        let refuse = |problem: String, help: &str| {
            let refusal = ApiError::invalid(format!("snapshot `{name}`: {problem}"));
            Err(refusal.on("volumes").help(help))
        };
        let volumes = pools::volumes_of(set);
        if volumes.is_empty() || volumes.len() > SNAPSHOT_MAX {
            let problem = format!("it is of {} LUs", volumes.len());
            return refuse(problem, &format!("name one LU, and {SNAPSHOT_MAX} at most"));
        }
        let mut pools: BTreeMap<&str, &String> = BTreeMap::new();
        for volume in &volumes {
            // What it names has to be there, which others say.
            let Some(of) = desired[Object::Volume].get(volume) else { continue };
            let Some(pool) = pools::pool_of(of) else {
                let problem = format!("volume `{volume}` is no LU");
                return refuse(problem, "only LUs of storage pools have snapshots");
            };
            if attr::volume::CHECKSUMS.value(of) {
                let problem = format!("LU `{volume}` has checksums, and no snapshots");
                return refuse(problem, "make a copy of it in the guest");
            }
            pools.insert(pool, volume);
        }
        if pools.len() > 1 {
            return refuse("its LUs are of several pools".to_owned(), "make one for each pool");
        }
    }
    Ok(())
}

/// An LU is open where its pool is.
fn one_dataplane(desired: &Desired) -> Result<(), ApiError> {
    if desired[Object::Pool].is_empty() {
        return Ok(());
    }
    for (volume, homes) in desired.homes() {
        let set = desired[Object::Volume].get(&volume);
        let Some(pool) = set.and_then(pools::pool_of) else { continue };
        let Some(there) = desired[Object::Pool].get(pool).map(home) else { continue };
        if let Some((object, name, other)) = homes.iter().find(|(_, _, other)| *other != there) {
            let problem = format!(
                "{object} `{name}` is in data plane `{other}`, and the pool `{pool}` of its volume `{volume}` in `{there}`"
            );
            return Err(ApiError::invalid(problem)
                .on("dataplane")
                .help(format!("set `dataplane = \"{there}\"` on it")));
        }
    }
    Ok(())
}
