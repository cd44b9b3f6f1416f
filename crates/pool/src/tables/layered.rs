//! Layers: what is beneath an LU, and which layers and spaces nobody needs any more. How often something is needed is counted and never stored.

use super::*;
use crate::layers::{containers, part_of};

impl Role {
    pub(super) fn flag(self) -> u8 {
        match self {
            Role::Lu => 0,
            Role::Layer => 2,
            Role::Snapshot => 4,
            Role::Space => 8,
            Role::Sums => 16,
        }
    }

    pub(super) fn of(flags: u8) -> Option<Role> {
        let roles = [Role::Lu, Role::Layer, Role::Snapshot, Role::Space, Role::Sums];
        roles.into_iter().find(|role| role.flag() == flags & !1)
    }
}

impl Lu {
    /// Whether clients may have it.
    pub(crate) fn is_lu(&self) -> bool {
        matches!(self.role, Role::Lu | Role::Snapshot)
    }
}

impl Tables {
    pub(crate) fn is_layer(&self, number: u32) -> bool {
        self.lus.get(&number).is_some_and(|lu| lu.role == Role::Layer)
    }

    /// Where what an LU holds begins, and what is beneath that, down to the space of an LU.
    pub(crate) fn chain(&self, lu: u32) -> Vec<u32> {
        let first = match self.lus.get(&lu) {
            Some(known) if known.beneath != 0 => known.beneath,
            _ => lu,
        };
        let over = |number: &u32| {
            let known = self.lus.get(number)?;
            (known.role == Role::Layer).then_some(known.beneath)
        };
        std::iter::successors(Some(first), over).collect()
    }

    /// The layers and spaces that no LU needs if some are gone, and what others hold begins elsewhere.
    pub(crate) fn unneeded(
        &self,
        gone: &BTreeSet<u32>,
        elsewhere: &BTreeMap<u32, u32>,
    ) -> Vec<u32> {
        let mut needed = BTreeSet::new();
        for (number, _) in self.lus.iter().filter(|(_, lu)| lu.is_lu()) {
            if gone.contains(number) {
                continue;
            }
            needed.extend(self.sums.get(number));
            match elsewhere.get(number) {
                Some(begins) => needed.extend(self.chain_from(*begins)),
                None => needed.extend(self.chain(*number)),
            }
        }
        let spaces = self.lus.iter();
        let spaces = spaces.filter(|(number, lu)| gone.contains(number) || !lu.is_lu());
        spaces.map(|(number, _)| *number).filter(|number| !needed.contains(number)).collect()
    }

    /// As [`Tables::chain`], from a layer or a space on.
    fn chain_from(&self, number: u32) -> Vec<u32> {
        if self.is_layer(number) {
            let beneath = self.lus.get(&number).map_or(0, |lu| lu.beneath);
            [vec![number], self.chain_from(beneath)].concat()
        } else {
            vec![number]
        }
    }

    /// Whether everything is there that LUs and layers begin with.
    pub(crate) fn judge_layers(&self) -> Result<(), Contradiction> {
        for (number, lu) in &self.lus {
            let there = |number: &u32| self.lus.contains_key(number);
            if !self.chain(*number).iter().all(there) {
                let record = lu.record(*number);
                return Err(Contradiction { what: "a layer that is not there", record });
            }
        }
        Ok(())
    }

    pub(super) fn delete_lu(&mut self, record: &Record) -> Result<(), Contradiction> {
        let wrong = |what| Err(Contradiction { what, record: *record });
        let Some(lu) = self.lus.get_mut(&record.lu).filter(|lu| lu.is_lu()) else {
            return wrong("no such LU");
        };
        (lu.role, lu.thick, lu.beneath) = (Role::Space, false, 0);
        (lu.origin, lu.asked) = (0, 0);
        self.changed.lus.insert(record.lu / PAGE_RECORDS as u32);
        self.collect();
        Ok(())
    }

    pub(super) fn set_head(&mut self, record: &Record) -> Result<(), Contradiction> {
        let wrong = |what| Err(Contradiction { what, record: *record });
        let there = self.lus.contains_key(&record.chunk);
        let Some(lu) = self.lus.get_mut(&record.lu) else {
            return wrong("no such LU or layer");
        };
        let fits = match (lu.role, record.chunk) {
            (Role::Lu, 0) => true,
            // What is beneath a layer was there before it.
            (Role::Layer, chunk) => there && (1..record.lu).contains(&chunk),
            (Role::Lu | Role::Snapshot, _) => there,
            (Role::Space | Role::Sums, _) => false,
        };
        if !fits {
            return wrong("it lies over nothing");
        }
        lu.beneath = record.chunk;
        self.changed.lus.insert(record.lu / PAGE_RECORDS as u32);
        self.collect();
        Ok(())
    }

    /// All in which an LU has something: its [chain](Tables::chain), and itself, since while it is detached it has a space of its own besides.
    pub(crate) fn all_of(&self, lu: u32) -> impl Iterator<Item = u32> + use<> {
        self.chain(lu).into_iter().chain([lu])
    }

    /// An LU with all that belongs to it: the LUs and snapshots that need something that it needs, and the layers and spaces of all of them.
    pub(crate) fn kin(&self, lu: u32) -> BTreeSet<u32> {
        let lus = self.lus.iter().filter(|(_, lu)| lu.is_lu());
        let mut others: Vec<Vec<u32>> =
            lus.map(|(number, _)| self.all_of(*number).collect()).collect();
        let mut kin = BTreeSet::from([lu]);
        loop {
            let needs = |spaces: &mut Vec<u32>| spaces.iter().any(|space| kin.contains(space));
            let more: Vec<Vec<u32>> = others.extract_if(.., needs).collect();
            if more.is_empty() {
                return kin;
            }
            kin.extend(more.into_iter().flatten());
        }
    }

    /// An LU is in a tier from now on, with all that belongs to it. The legs that they have elsewhere move there.
    pub(super) fn gather(&mut self, lu: u32, tier: u8) {
        for number in self.kin(lu) {
            if let Some(space) = self.lus.get_mut(&number) {
                space.tier = tier;
                self.changed.lus.insert(number / PAGE_RECORDS as u32);
            }
        }
    }

    /// What lies beneath an LU that has grown has room for all that it can get of it. What it does not have of the LU is zeros.
    pub(super) fn grow_layers(&mut self, lu: u32, chunks: u32) {
        let needed = containers(chunks);
        for number in self.chain(lu) {
            let layer = self.lus.get_mut(&number).filter(|lu| lu.role == Role::Layer);
            if let Some(layer) = layer.filter(|layer| layer.chunks < needed) {
                layer.resize(needed);
                self.changed.lus.insert(number / PAGE_RECORDS as u32);
            }
        }
    }

    /// By layer and space: everything of which what it holds begins there, or that lies over it.
    pub(crate) fn above(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut above: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, lu) in self.lus.iter().filter(|(_, lu)| lu.beneath != 0) {
            above.entry(lu.beneath).or_default().push(*number);
        }
        above
    }

    /// What nobody needs is gone.
    fn collect(&mut self) {
        for number in self.unneeded(&BTreeSet::new(), &BTreeMap::new()) {
            let Some(gone) = self.lus.remove(&number) else { continue };
            self.changed.lus.insert(number / PAGE_RECORDS as u32);
            let container = gone.role == Role::Layer;
            self.sums.retain(|_, space| *space != number);
            self.active.retain(|(lu, _)| *lu != number);
            for leg in gone.map {
                self.set_free(leg, container);
            }
            if container {
                self.parts.remove(number);
                self.changed.slots.retain(|(layer, _)| *layer != number);
                self.unread.retain(|(layer, _)| *layer != number);
            }
        }
    }

    pub(super) fn put_part(&mut self, record: &Record) -> Result<(), Contradiction> {
        let wrong = |what| Err(Contradiction { what, record: *record });
        let (part, placed) = part_of(record);
        let container = placed.container();
        let layer = self.lus.get(&record.lu).filter(|lu| lu.role == Role::Layer);
        let mapped = layer
            .filter(|lu| container < lu.chunks)
            .is_some_and(|lu| lu.legs_of(container).iter().any(|entry| entry.chunk().is_some()));
        if !mapped {
            return wrong("a slot of a container that is not there");
        }
        if !self.parts.put(record.lu, part, placed) {
            return wrong("a slot with two parts, or a part in two slots");
        }
        self.changed.slots.insert((record.lu, container));
        Ok(())
    }

    /// Containers of layers, with the chunks of their legs.
    pub(crate) fn containers(&self) -> Vec<(u32, u32, Vec<ChunkId>)> {
        let layers = self.lus.iter().filter(|(_, lu)| lu.role == Role::Layer);
        let all = layers.flat_map(|(number, lu)| {
            (0..lu.chunks).map(move |container| {
                let legs = lu.legs_of(container).iter().filter_map(|entry| entry.chunk());
                (*number, container, legs.collect::<Vec<_>>())
            })
        });
        all.filter(|(.., legs)| !legs.is_empty()).collect()
    }

    /// Takes up what the page of a container says; false if that is of something else.
    pub(crate) fn load_slots(&mut self, layer: u32, container: u32, page: &Page) -> bool {
        let first = container * crate::layers::SLOTS;
        let records = (first..).zip(&page.records);
        let records = records.filter(|(_, record)| record.kind != Kind::None);
        let mut all = true;
        for (slot, record) in records {
            let (part, placed) = part_of(record);
            let fits = record.kind == Kind::Part && record.lu == layer && placed.slot == slot;
            all &= fits && self.parts.put(layer, part, placed);
        }
        all
    }

    /// The layer and container that a chunk is.
    pub(crate) fn container_of(&self, id: ChunkId) -> Option<(u32, u32)> {
        let pv = self.pvs.get(usize::from(id.pv))?;
        let (lu, vchunk) = *pv.whose.get(id.chunk as usize)?;
        self.is_layer(lu).then_some((lu, vchunk & !LEG_BIT))
    }
}
