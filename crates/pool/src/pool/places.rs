//! In which of its two places each thing is that counts. A home record takes two bits, since there is one for each chunk, and all that were ever written since the pool was opened are known.

use super::checkpoint::Thing;
use super::{BTreeMap, ChunkId};

/// Chunks in a byte.
const IN_BYTE: usize = 4;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// All but home records.
    others: BTreeMap<Thing, u8>,
    /// By number of the PV: for each chunk 0 if it is not known, or 1 more than the place.
    homes: Vec<Vec<u8>>,
}

impl Places {
    /// The place of a thing, if it is known.
    pub(super) fn get(&self, thing: &Thing) -> Option<u8> {
        let Thing::Home(ChunkId { pv, chunk }) = thing else {
            return self.others.get(thing).copied();
        };
        let bits = self.homes.get(usize::from(*pv))?.get(*chunk as usize / IN_BYTE)?;
        (bits >> shift(*chunk) & 3).checked_sub(1)
    }

    /// A thing is in this place from now on, 0 or 1.
    pub(super) fn insert(&mut self, thing: Thing, place: u8) {
        let Thing::Home(ChunkId { pv, chunk }) = thing else {
            self.others.insert(thing, place);
            return;
        };
        let (pv, byte) = (usize::from(pv), chunk as usize / IN_BYTE);
        if self.homes.len() <= pv {
            self.homes.resize_with(pv + 1, Vec::new);
        }
        let homes = &mut self.homes[pv];
        if homes.len() <= byte {
            homes.resize(byte + 1, 0);
        }
        homes[byte] = homes[byte] & !(3 << shift(chunk)) | (1 + (place & 1)) << shift(chunk);
    }

    /// As it is found in this place, unless it is known better.
    pub(super) fn learn(&mut self, thing: Thing, place: u8) {
        if self.get(&thing).is_none() {
            self.insert(thing, place);
        }
    }

    /// It is not known any more where what is in the slots of a container is.
    pub(super) fn forget_slots(&mut self, id: ChunkId) {
        self.others.remove(&Thing::Slots(id));
    }

    /// What is on a PV is not known any more.
    pub(super) fn forget_pv(&mut self, gone: u16) {
        self.others.retain(|thing, _| thing.pv() != gone);
        if let Some(homes) = self.homes.get_mut(usize::from(gone)) {
            *homes = Vec::new();
        }
    }
}

fn shift(chunk: u32) -> u32 {
    2 * (chunk % IN_BYTE as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn thing() -> impl Strategy<Value = Thing> {
        let id = (0..3_u16, 0..9_u32);
        (0..4_u8, id).prop_map(|(kind, (pv, number))| match kind {
            0 => Thing::Lus(pv, number),
            1 => Thing::Map(pv, number),
            2 => Thing::Slots(ChunkId { pv, chunk: number }),
            _ => Thing::Home(ChunkId { pv, chunk: number }),
        })
    }

    proptest! {
        /// They are what a map of all things has.
        #[test]
        fn places_are_those_of_a_map(
            steps in prop::collection::vec((0..12_u8, thing(), 0..2_u8), 0..200),
        ) {
            let (mut places, mut map) = (Places::default(), BTreeMap::new());
            for (step, thing, place) in steps {
                match (step, thing) {
                    (0, _) => {
                        places.forget_pv(thing.pv());
                        map.retain(|other: &Thing, _| other.pv() != thing.pv());
                    }
                    (1..4, Thing::Slots(id)) => {
                        places.forget_slots(id);
                        map.remove(&thing);
                    }
                    (1..7, _) => {
                        places.learn(thing, place);
                        map.entry(thing).or_insert(place);
                    }
                    _ => {
                        places.insert(thing, place);
                        map.insert(thing, place);
                    }
                }
                prop_assert_eq!(places.get(&thing), map.get(&thing).copied());
                for (other, place) in &map {
                    prop_assert_eq!(places.get(other), Some(*place));
                }
            }
        }
    }
}
