//! What a state must add up to: so that a bit that flipped on the disk is noticed, and does not become another state.
//!
//! Each record carries a sum over its kind, its name and its attributes, which says whose record is damaged. One sum over the whole
//! state says that no record is missing and none too many. Sums are over contents, not over bytes ([`crate::sum`]).

use crate::model::Desired;
use crate::model::allocations::Allocations;
use crate::sum::sum;
use fabric::attribute::{Attributes, Object};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sum of an object's record.
pub(super) fn of_object(noun: &str, name: &str, set: &Attributes) -> u64 {
    sum(&[noun.as_bytes(), name.as_bytes(), &json(set)])
}

/// What stands for a whole state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seal {
    /// How many objects there are.
    pub(super) objects: u64,
    /// Over all their sums, and over what was given out.
    pub(super) sum: u64,
}

/// The sums of all objects of a state, so that the next one costs what differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sums([BTreeMap<String, u64>; Object::ALL.len()]);

impl Sums {
    /// Of a state.
    pub(super) fn of(desired: &Desired) -> Sums {
        let mut sums = Sums(Default::default());
        sums.follow(&Desired::default(), desired);
        sums
    }

    /// They are of `now`, and become those of `next`.
    pub(super) fn follow(&mut self, now: &Desired, next: &Desired) {
        for (object, name) in now.touched(next) {
            let sums = &mut self.0[object as usize];
            match next[object].get(&name) {
                Some(set) => sums.insert(name.clone(), of_object(object.noun(), &name, set)),
                None => sums.remove(&name),
            };
        }
    }

    /// The seal of their state.
    pub(super) fn seal(&self, allocations: &Allocations) -> Seal {
        let all = || self.0.iter().flat_map(BTreeMap::values);
        let bytes: Vec<u8> = all().flat_map(|sum| sum.to_le_bytes()).collect();
        Seal { objects: all().count() as u64, sum: sum(&[&bytes, &json(allocations)]) }
    }
}

/// The seal of a state.
pub(super) fn of_state(desired: &Desired) -> Seal {
    Sums::of(desired).seal(&desired.allocations)
}

/// Plain values, whose maps are in order: the same value is the same text.
fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain values are JSON")
}

/// A state in one file of its own: the last one that was known to be good.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Copy {
    version: u32,
    desired: Desired,
    seal: Seal,
}

/// The same, as it is written.
#[derive(Serialize)]
struct CopyOf<'a> {
    version: u32,
    desired: &'a Desired,
    seal: Seal,
}

impl Copy {
    /// Of a state with its seal.
    pub(super) fn of(desired: &Desired, seal: Seal) -> Vec<u8> {
        json(&CopyOf { version: super::RECORD_VERSION, desired, seal })
    }

    /// The state in a copy, or why it cannot be had.
    pub(super) fn read(bytes: &[u8]) -> Result<Desired, String> {
        let copy: Copy = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if copy.version > super::RECORD_VERSION {
            return Err(super::newer(copy.version));
        }
        if of_state(&copy.desired) != copy.seal {
            return Err("its checksum does not fit".to_owned());
        }
        Ok(copy.desired)
    }
}

/// What was given out is sealed with the state; alone it needs no sum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GivenRecord {
    pub(super) version: u32,
    pub(super) allocations: Allocations,
}
