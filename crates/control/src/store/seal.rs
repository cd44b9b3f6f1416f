//! What a state must add up to: so that a bit that flipped on the disk is noticed, and does not become another state.
//!
//! Each record carries a sum over its kind, its name and its attributes, which says whose record is damaged. One sum over the whole
//! state says that no record is missing and none too many. Sums are over contents, not over bytes ([`crate::sum`]).

use super::given;
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

/// The sums of all records of a state added up, so that the next state costs what differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sums {
    objects: u64,
    sum: u64,
}

impl Sums {
    /// Of a state.
    pub(super) fn of(desired: &Desired) -> Sums {
        let mut sums = Sums::default();
        sums.follow(&Desired::default(), desired);
        sums
    }

    /// They are of `now`, and become those of `next`.
    pub(super) fn follow(&mut self, now: &Desired, next: &Desired) {
        for object in Object::ALL {
            for difference in now.differences(object, next) {
                let of = |set| of_object(object.noun(), difference.name(), set);
                let [before, after] = [&difference.before, &difference.after]
                    .map(|entry| entry.as_ref().map(|entry| of(&entry.1)));
                self.exchange(before, after);
                self.objects = self.objects.wrapping_add(u64::from(after.is_some()));
                self.objects = self.objects.wrapping_sub(u64::from(before.is_some()));
            }
        }
        for (key, before, after) in given::differences(now, next) {
            let of = |bytes: Vec<u8>| sum(&[key.as_bytes(), &bytes]);
            self.exchange(before.map(of), after.map(of));
        }
    }

    fn exchange(&mut self, before: Option<u64>, after: Option<u64>) {
        self.sum = self.sum.wrapping_sub(before.unwrap_or(0)).wrapping_add(after.unwrap_or(0));
    }

    /// The seal of their state.
    pub(super) fn seal(&self, allocations: &Allocations) -> Seal {
        let rest = sum(&[&json(&given::rest(allocations))]);
        Seal { objects: self.objects, sum: self.sum.wrapping_add(rest) }
    }
}

/// The seal of a state.
pub(super) fn of_state(desired: &Desired) -> Seal {
    Sums::of(desired).seal(&desired.allocations)
}

/// The seal that version 2 made: one sum over all sums.
pub(super) fn of_state_2(desired: &Desired) -> Seal {
    let sums = Object::ALL.into_iter().flat_map(|object| {
        desired[object].iter().map(move |(name, set)| of_object(object.noun(), name, set))
    });
    let sums: Vec<u64> = sums.collect();
    let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    Seal { objects: sums.len() as u64, sum: sum(&[&bytes, &json(&desired.allocations)]) }
}

/// Plain values, whose maps are in order: the same value is the same text.
pub(super) fn json<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain values are JSON")
}
