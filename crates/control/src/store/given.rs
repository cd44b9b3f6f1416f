//! What was given out, as records: one for each name of what grows with the number of objects, one for the rest.

use super::seal::json;
use crate::model::Desired;
use crate::model::allocations::Allocations;
use crate::model::map::{Difference, SharedMap};
use serde::{Deserialize, Serialize};

/// The version of the record of the rest. Up to 2 it had everything.
pub(super) const VERSION: u32 = 3;

/// What stands before the name of a volume whose file is known, and of a client's maximum.
const FILE: &str = "file/";
const MAXIMUM: &str = "maximum/";
/// … and of a storage pool.
const POOL: &str = "pool/";

/// The record of the rest.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rest {
    pub(super) version: u32,
    pub(super) allocations: Allocations,
}

/// What does not grow with the number of objects.
pub(super) fn rest(all: &Allocations) -> Allocations {
    Allocations {
        system: all.system,
        wwpns: all.wwpns.clone(),
        vports: all.vports.clone(),
        maxima: SharedMap::default(),
        files: SharedMap::default(),
        pools: SharedMap::default(),
        macs: all.macs,
    }
}

/// A record that differs: its key, and what it is in both.
pub(super) type Differing = (String, Option<Vec<u8>>, Option<Vec<u8>>);

/// The records in which two states differ.
pub(super) fn differences(now: &Desired, next: &Desired) -> Vec<Differing> {
    fn of<V: Serialize>(prefix: &str, differences: Vec<Difference<V>>) -> Vec<Differing> {
        let record = |one: Difference<V>| {
            let key = format!("{prefix}{}", one.name());
            let [before, after] =
                [one.before, one.after].map(|entry| entry.map(|entry| json(&entry.1)));
            (key, before, after)
        };
        differences.into_iter().map(record).collect()
    }
    let (now, next) = (&now.allocations, &next.allocations);
    let mut all = of(FILE, now.files.differences(&next.files));
    all.extend(of(MAXIMUM, now.maxima.differences(&next.maxima)));
    all.extend(of(POOL, now.pools.differences(&next.pools)));
    all
}

/// Adds a record to what was given out, or takes it out; whether there are such records.
pub(super) fn put(
    to: &mut Allocations,
    key: &str,
    bytes: Option<&[u8]>,
) -> Result<bool, serde_json::Error> {
    fn into<V: Clone + serde::de::DeserializeOwned>(
        map: &mut SharedMap<V>,
        name: &str,
        bytes: Option<&[u8]>,
    ) -> Result<bool, serde_json::Error> {
        match bytes {
            Some(bytes) => drop(map.insert(name.to_owned(), serde_json::from_slice(bytes)?)),
            None => drop(map.remove(name)),
        }
        Ok(true)
    }
    if let Some(name) = key.strip_prefix(FILE) {
        return into(&mut to.files, name, bytes);
    }
    if let Some(name) = key.strip_prefix(MAXIMUM) {
        return into(&mut to.maxima, name, bytes);
    }
    if let Some(name) = key.strip_prefix(POOL) {
        return into(&mut to.pools, name, bytes);
    }
    Ok(false)
}
