//! The rules of storage pools.

use super::super::{Desired, home, pools};
use crate::error::ApiError;
use crate::model::resolve;
use crate::paths::Paths;
use fabric::attribute::{Object, attr};
use std::collections::BTreeMap;
use std::path::PathBuf;

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
        let pvs = pools::pvs(set, paths);
        if pvs.is_empty() {
            return refuse("pvs", "it has no PV".to_owned(), "name block devices or files");
        }
        for path in pvs {
            let other = owners.insert(path.clone(), format!("pool `{name}`"));
            if let Some(other) = other {
                let problem = format!("{} is already of {other}", path.display());
                return refuse("pvs", problem, "give each pool its own PVs, each of them once");
            }
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
    one_dataplane(desired)
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
