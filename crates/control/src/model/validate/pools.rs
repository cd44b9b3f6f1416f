//! The rules of storage pools.

use super::super::{Desired, home, pools};
use crate::error::ApiError;
use crate::model::resolve;
use crate::paths::Paths;
use fabric::attribute::{Object, attr, check_name};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// LUs of one snapshot at most, which are parted at one moment.
const SNAPSHOT_MAX: usize = 16;

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
    snapshots(desired)?;
    one_dataplane(desired)
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
