//! What a shell shows to channels, keeps for a successor, and tells people.
//!
//! After each [`Pool::submit`] and [`Pool::done`], and before it carries out the effects that came of them, the shell takes the chunks that may have changed ([`Pool::touched`]) and shows what holds of each
//! now ([`Pool::shown`]). So a chunk is never given out again, a copy never begun, and nobody answered, while channels see what was before.

use super::*;
use crate::format::BLOCKS;
use crate::layers::PARTS;

/// The written bits of a chunk, as words.
pub type Words = [u32; BLOCKS / 32];

/// A chunk of a PV as a successor has to know it: how often it was given out, and what is written.
pub type Kept = (ChunkId, u16, Words);

/// A part of a layer as a successor has to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeptPart {
    /// The layer.
    pub layer: u32,
    /// Number of the part among those of 32 KiB of the LUs above the layer.
    pub part: u64,
    /// Number of its slot in the layer.
    pub slot: u32,
    /// The sectors that are there, a bit each.
    pub present: u64,
}

/// What survives the process and not the host: for each chunk that somebody works with, which blocks are written. In memory that a successor maps.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Shadow {
    pub(super) server: Uuid,
    /// The epoch of the pool in which it was left ([`Shadow::is_of`]).
    pub(super) epoch: u64,
    pub(crate) chunks: Vec<(ChunkId, u16, Bits)>,
    /// Parts of layers that are not in the journal yet: layer, number of the part, where it is.
    pub(super) parts: Vec<(u32, u64, Placed)>,
    /// PVs that were lost of which no superblock says so yet. They may be there again, without what was in their caches.
    pub(super) lost: BTreeSet<u16>,
}

/// What holds of a chunk of an LU now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// What channels may do with it by themselves.
    pub way: Way,
    /// … with it as a chunk of a layer, or of the space beneath layers ([`Pool::beneath`]).
    pub beneath: Way,
    /// What a successor has to know.
    pub kept: Vec<Kept>,
    /// It changes when the journal has got further: to be asked for again then.
    pub unsettled: bool,
}

/// What channels may do with a chunk of an LU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing: the pool has to be asked.
    Ask,
    /// It reads as zeros.
    Zeros,
    /// Blocks that are written may be read and written there.
    There(ChunkId),
}

impl Shadow {
    /// What a process left: which server it was, the epoch of the pool for which it holds, the chunks, the parts of layers, and the PVs that it had lost ([`Pool::unsaid_losses`]).
    pub fn of(
        server: Uuid,
        epoch: u64,
        chunks: impl IntoIterator<Item = Kept>,
        parts: impl IntoIterator<Item = KeptPart>,
        lost: impl IntoIterator<Item = u16>,
    ) -> Shadow {
        let chunks = chunks.into_iter().map(|(id, generation, bits)| (id, generation, Bits(bits)));
        let place = |kept: KeptPart| {
            (kept.layer, kept.part, Placed { slot: kept.slot, present: kept.present })
        };
        let parts = parts.into_iter().map(place).collect();
        let chunks = chunks.collect();
        let lost = lost.into_iter().collect();
        Shadow { server, epoch, chunks, parts, lost }
    }

    /// Whether what was left in an epoch holds in another. The superblock by which a pool is opened or a PV comes and goes raises it, and each PV that is lost on the way to
    /// that superblock does once more; then whoever dies has not said which one it had become.
    #[must_use]
    pub fn is_of(left: u64, epoch: u64) -> bool {
        const RAISED: u64 = 8;
        (left..=left.saturating_add(RAISED)).contains(&epoch)
    }

    /// Whether it holds for a pool as a superblock has it, whose owner of that slot it was.
    pub(super) fn holds_for(&self, superblock: &Superblock, slot: u8) -> bool {
        let same = superblock.owners[usize::from(slot)].server == self.server;
        same && Shadow::is_of(self.epoch, superblock.epoch)
    }

    /// PVs that were lost and of which the superblock does not say so.
    pub(super) fn lost_of(&self, superblock: &Superblock, slot: u8) -> BTreeSet<u16> {
        let there = |pv: &u16| {
            let member = superblock.members.get(usize::from(*pv));
            member.is_some_and(|it| it.state.is_there())
        };
        let holds = self.holds_for(superblock, slot);
        self.lost.iter().copied().filter(|pv| holds && there(pv)).collect()
    }

    /// The same with what is known of these parts.
    #[cfg(test)]
    pub(crate) fn with_parts(mut self, parts: impl IntoIterator<Item = KeptPart>) -> Shadow {
        let of = |(layer, part, placed): &(u32, u64, Placed)| ((*layer, *part), *placed);
        let mut all: BTreeMap<(u32, u64), Placed> = self.parts.iter().map(of).collect();
        for KeptPart { layer, part, slot, present } in parts {
            let placed = all.entry((layer, part)).or_insert(Placed { slot, present });
            assert_eq!(placed.slot, slot, "part {part} of layer {layer} is in two slots");
            placed.present |= present;
        }
        self.parts = all.into_iter().map(|((layer, part), placed)| (layer, part, placed)).collect();
        self
    }

    /// The same without PVs that were lost.
    pub(super) fn with_all(&self) -> Shadow {
        Shadow { lost: BTreeSet::new(), ..self.clone() }
    }
}

impl Pool {
    /// What a successor of this process has to know.
    pub fn shadow(&self) -> Shadow {
        let mut chunks = Vec::new();
        for slot in self.slots.values().filter(|slot| slot.known) {
            let live = |told| if self.keeps(Rule::AnswerAfterLive) { slot.live } else { told };
            let legs = slot.legs.iter().chain(&slot.also);
            chunks.extend(legs.map(|leg| (leg.id, leg.generation, live(leg.told))));
        }
        // Those that are not mapped any more, when that is not durable yet.
        chunks.extend(self.slots.values().flat_map(|slot| {
            slot.left.iter().map(|(id, generation)| (*id, *generation, Bits::NONE))
        }));
        let epoch = self.chosen.superblock.epoch;
        let parts = self.parts_to_keep();
        let lost = self.losses.unsaid();
        Shadow { server: self.server, epoch, chunks, parts, lost }
    }

    /// The chunks of LUs of which something may have changed since this was last asked.
    pub fn touched(&mut self) -> BTreeSet<(u32, u32)> {
        std::mem::take(&mut self.touched)
    }

    /// The parts of layers, by layer and number, of which something may have changed since this was last asked ([`Pool::kept_part`]).
    pub fn touched_parts(&mut self) -> BTreeSet<(u32, u64)> {
        std::mem::take(&mut self.layered.touched)
    }

    /// What a successor has to know of a part of a layer; nothing while nothing was written there.
    pub fn kept_part(&self, layer: u32, part: u64) -> Option<KeptPart> {
        self.known_part(layer, part).filter(|kept| kept.present != 0)
    }

    fn known_part(&self, layer: u32, part: u64) -> Option<KeptPart> {
        let Placed { slot, present } = self.placed(layer, part)?;
        Some(KeptPart { layer, part, slot, present })
    }

    /// Whether there is a layer of that number.
    pub fn is_layer(&self, number: u32) -> bool {
        self.tables.is_layer(number)
    }

    /// The layers that are gone since this was last asked: nothing of them has to be known any more.
    pub fn gone_layers(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.layered.gone)
    }

    /// Whether there is something to be done ([`Pool::effects`]).
    pub fn has_effects(&self) -> bool {
        !self.effects.is_empty()
    }

    /// Why it does nothing any more, if it does not: its own blocks could not be written, or another server has it.
    pub fn stopped(&self) -> Option<Fault> {
        match self.phase {
            Phase::Stopped(why) => Some(why),
            Phase::Opening | Phase::Serving => None,
        }
    }

    /// The last transaction that is durable: what was [`Shown::unsettled`] may have settled when this changes.
    pub fn durable(&self) -> u64 {
        self.log.durable
    }

    /// What holds of a chunk of an LU.
    pub fn shown(&self, lu: u32, vchunk: u32) -> Shown {
        let nothing =
            Shown { way: Way::Ask, beneath: Way::Ask, kept: Vec::new(), unsettled: false };
        // What is being cut off is the pool's alone before that is durable, and for a successor it is what it was.
        let there = vchunk < self.chunks_of(lu);
        let Some(known) = self.tables.lus.get(&lu).filter(|_| there) else {
            return nothing;
        };
        // What is shared has no place that a channel could find by the chunk, and while a snapshot is made nobody writes by himself.
        let serves = self.serves(lu) && known.beneath == 0 && !self.cuts.is_of(lu);
        let is_space = self.has_space(lu);
        let Some(slot) = self.slots.get(&(lu, vchunk)) else {
            let mapped = known.legs_of(vchunk).iter().any(|leg| leg.chunk().is_some());
            let way = |may: bool| if mapped || !may { Way::Ask } else { Way::Zeros };
            return Shown { way: way(serves), beneath: way(is_space), ..nothing };
        };
        let live = slot.live.0;
        let mut kept: Vec<Kept> = Vec::new();
        if slot.known {
            let legs = slot.legs.iter().chain(&slot.also);
            kept.extend(legs.map(|leg| (leg.id, leg.generation, live)));
        }
        // Until somebody else has the chunk, whose it is to keep then.
        let gone = slot.left.iter().filter(|(id, generation)| {
            self.tables.generation(*id) == *generation && slot.legs.iter().all(|leg| leg.id != *id)
        });
        kept.extend(gone.map(|(id, generation)| (*id, *generation, Bits::NONE.0)));
        let unsettled = slot.settled > self.log.durable || slot.moving.is_some();
        let there = slot.known && !unsettled && slot.also.is_empty();
        // Channels write one leg: a chunk with several is the pool's to write.
        let way = |may: bool| match &slot.legs[..] {
            [] if may => Way::Zeros,
            [leg] if may && there && !slot.pair => Way::There(leg.id),
            _ => Way::Ask,
        };
        let (way, beneath) = (way(serves), way(is_space));
        let unsettled = unsettled || !slot.also.is_empty();
        Shown { way, beneath, kept, unsettled }
    }

    /// The LUs of which [`Pool::beneath`] may have changed since this was last asked.
    pub fn touched_lus(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.layered.changed)
    }

    /// Where channels may look by themselves for what an LU holds that shares it: its head, what that lies over, and so on down to the space of an LU. Nothing if the pool has to be asked
    /// for everything.
    ///
    /// What they find written in the head they may write there, and only there. Where all of them have nothing, it is zeros.
    pub fn beneath(&self, lu: u32) -> Option<Vec<u32>> {
        let known = self.tables.lus.get(&lu).filter(|_| self.serves(lu))?;
        if known.role != Role::Lu || known.beneath == 0 || self.cuts.is_of(lu) {
            return None;
        }
        let chain = self.tables.chain(lu);
        (!self.is_unread(&chain)).then_some(chain)
    }

    /// Whether nothing is in a chunk of an LU or a snapshot, as far as that is known without any read: then it reads as zeros.
    pub fn has_nothing(&self, lu: u32, vchunk: u32) -> bool {
        let serves = self.serves(lu) && !self.cuts.is_of(lu);
        let Some(known) = self.tables.lus.get(&lu).filter(|_| serves) else { return false };
        if known.beneath == 0 {
            return self.shown(lu, vchunk).way == Way::Zeros;
        }
        let chain = self.tables.chain(lu);
        let has_nothing = |space: &u32| match self.tables.is_layer(*space) {
            true => self.kept_parts(*space, vchunk).is_empty(),
            // The LU may have grown since there was that space.
            false => {
                vchunk >= self.chunks_in(*space) || self.shown(*space, vchunk).beneath == Way::Zeros
            }
        };
        !self.is_unread(&chain) && chain.iter().all(has_nothing)
    }

    /// Chunks that an LU, a layer, or the space of an LU has.
    pub fn chunks_in(&self, space: u32) -> u32 {
        self.tables.lus.get(&space).map_or(0, |space| space.chunks)
    }

    /// All that a layer has, or is about to have, of a chunk of the LUs above it.
    pub fn kept_parts(&self, layer: u32, vchunk: u32) -> Vec<KeptPart> {
        let first = u64::from(vchunk) * PARTS;
        let range = (layer, first)..(layer, first + PARTS);
        let said = self.tables.parts.range(range.clone()).map(|((_, part), _)| *part);
        let live = self.layered.live.range(range).map(|((_, part), _)| *part);
        let all: BTreeSet<u64> = said.chain(live).collect();
        all.into_iter().filter_map(|part| self.known_part(layer, part)).collect()
    }
}
