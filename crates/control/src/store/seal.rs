//! What a state must add up to: so that a bit that flipped on the disk is noticed, and does not become another state.
//!
//! Each record carries a sum over its kind, its name and its attributes, which says whose record is damaged. One sum over the whole
//! state says that no record is missing and none too many. Sums are over contents, not over bytes ([`crate::sum`]).

use crate::model::Desired;
use crate::model::allocations::Allocations;
use crate::sum::sum;
use fabric::attribute::{Attributes, Object};
use serde::{Deserialize, Serialize};

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

/// The seal of a state.
pub(super) fn of_state(desired: &Desired) -> Seal {
    let mut bytes = Vec::new();
    let mut objects = 0;
    for object in Object::ALL {
        for (name, set) in &desired[object] {
            bytes.extend(of_object(object.noun(), name, set).to_le_bytes());
            objects += 1;
        }
    }
    Seal { objects, sum: sum(&[&bytes, &json(&desired.allocations)]) }
}

/// Plain values, whose maps are in order: the same value is the same text.
fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain values are JSON")
}

/// A state in one file of its own: the last one that was known to be good.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Copy {
    version: u32,
    desired: Desired,
    seal: Seal,
}

impl Copy {
    /// Of a state.
    pub(super) fn of(desired: &Desired) -> Vec<u8> {
        let copy = Copy {
            version: super::RECORD_VERSION,
            desired: desired.clone(),
            seal: of_state(desired),
        };
        json(&copy)
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
