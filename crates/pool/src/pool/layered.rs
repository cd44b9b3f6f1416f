//! Reads and writes of LUs that share what they hold: a request is cut into parts of 32 KiB, a write goes to the slot of its part in the uppermost layer, and a read to whichever layer has a sector first.
//!
//! A layer is a space like that of an LU, whose chunks are containers: they are given out, flushed, moved and mirrored as others are. Where a part is, and which sectors of it are present, is said when an LU
//! is flushed, behind the written bits of the blocks; until then it is in the [`Shadow`].

use super::*;
use crate::layers::{PART_BYTES, SECTOR, sectors};

/// What is known of layers besides the tables.
#[derive(Debug, Default)]
pub(super) struct Layered {
    /// Parts of which the tables do not know, or not all sectors, by layer and number.
    pub(super) live: BTreeMap<(u32, u64), Placed>,
    /// Slots of layers that nobody has.
    pub(super) free: BTreeMap<u32, offers::Free>,
    /// Who takes slots besides the pool.
    pub(super) channels: Option<Box<dyn Channels>>,
    /// A checkpoint has ended since what the tables have of parts was forgotten.
    pub(super) forgets: bool,
    /// Layers and spaces that nobody needs any more, until that is in the tables.
    pub(super) dying: BTreeSet<u32>,
    /// Parts of which something may have changed, by layer and number.
    pub(super) touched: BTreeSet<(u32, u64)>,
    /// Layers that are gone.
    pub(super) gone: BTreeSet<u32>,
    /// LUs of which it may have changed where channels look.
    pub(super) changed: BTreeSet<u32>,
    /// Chunks that were containers, until a root has that block of the journal.
    held: Vec<(u64, Vec<ChunkId>)>,
}

/// The piece of a request that is in one part of an LU.
#[derive(Clone, Debug)]
pub(super) struct Part {
    job: u64,
    tag: u64,
    lu: u32,
    number: u64,
    /// First byte, from the beginning of the part.
    at: u64,
    bytes: u64,
    /// First byte, from the beginning of the request.
    from: u64,
    kind: PieceKind,
}

impl Pool {
    /// Where what is written to an LU goes.
    pub(super) fn space_of(&self, lu: u32) -> u32 {
        match self.tables.lus.get(&lu) {
            Some(known) if known.beneath != 0 => known.beneath,
            _ => lu,
        }
    }

    /// Begins with a request within an LU that shares what it holds.
    pub(super) fn begin_parts(&mut self, tag: u64, extent: Extent, kind: PieceKind) {
        let Extent { lu, at, bytes } = extent;
        // What is beneath would come up: it is left as it is.
        if kind == PieceKind::Discard {
            return self.answer(tag, Ok(Reply::Done));
        }
        let job = self.begin_job(Asker::Tag(tag), lu, parts(at, bytes).count() as u32);
        for (number, from, end) in parts(at, bytes) {
            self.advance_part(Part {
                job,
                tag,
                lu,
                number,
                at: from % PART_BYTES,
                bytes: end - from,
                from: from - at,
                kind,
            });
        }
    }

    /// Goes on with what waited while a snapshot was made: it goes to where is written to now.
    pub(super) fn advance_part(&mut self, part: Part) {
        let over = |fault| Piece {
            job: part.job,
            tag: part.tag,
            key: (part.lu, 0),
            at: 0,
            bytes: part.bytes,
            from: part.from,
            kind: if fault { part.kind } else { PieceKind::Read },
            part: None,
        };
        if !self.serves(part.lu) {
            return self.piece_done(&over(true), Some(Fault::NoSuchLu));
        }
        let chain = self.tables.chain(part.lu);
        // It shared when the request began, and does no more.
        if part.kind != PieceKind::Read && !self.tables.is_layer(chain[0]) {
            let at = part.number * PART_BYTES + part.at;
            return self.advance(Piece {
                job: part.job,
                tag: part.tag,
                key: (chain[0], (at / CHUNK_BYTES) as u32),
                at: at % CHUNK_BYTES,
                bytes: part.bytes,
                from: part.from,
                kind: part.kind,
                part: None,
            });
        }
        if self.is_unread(&chain) {
            return self.piece_done(&over(true), Some(Fault::Medium));
        }
        match part.kind {
            PieceKind::Read => self.read_part(&part, &chain),
            PieceKind::Zeroes if self.is_nothing(&part, &chain) => {}
            _ => return self.write_part(part, chain[0]),
        }
        self.piece_done(&over(false), None);
    }

    /// Of some container it is not known what is in it.
    pub(super) fn is_unread(&self, chain: &[u32]) -> bool {
        let unread = &self.tables.unread;
        chain.iter().any(|layer| unread.range((*layer, 0)..=(*layer, u32::MAX)).next().is_some())
    }

    /// Where in its head a part of an LU is, all of it: what a channel finds there it may write.
    pub(super) fn in_head(&self, lu: u32, (at, bytes): (u64, u64)) -> Option<((u32, u32), u64)> {
        let chain = self.beneath(lu)?;
        let (number, within) = (at / PART_BYTES, at % PART_BYTES);
        if bytes == 0 || within + bytes > PART_BYTES {
            return None;
        }
        let wanted = sectors(within, bytes);
        let placed = self.placed(chain[0], number)?;
        let there = placed.present & wanted == wanted;
        there.then(|| ((chain[0], placed.container()), placed.at() + within))
    }

    /// Nothing was ever written there.
    fn is_nothing(&self, part: &Part, chain: &[u32]) -> bool {
        chain.iter().all(|space| match self.tables.lus.get(space) {
            Some(lu) if lu.role == Role::Layer => self.placed(*space, part.number).is_none(),
            Some(lu) => {
                let vchunk = (part.number * PART_BYTES / CHUNK_BYTES) as u32;
                vchunk >= lu.chunks
                    || lu.legs_of(vchunk).iter().all(|entry| entry.chunk().is_none())
            }
            None => true,
        })
    }

    /// Where a part is in a layer.
    pub(super) fn placed(&self, layer: u32, part: u64) -> Option<Placed> {
        let live = self.layered.live.get(&(layer, part)).copied();
        live.or_else(|| self.tables.parts.get(layer, part))
    }

    fn read_part(&mut self, part: &Part, chain: &[u32]) {
        let trusts = self.keeps(Rule::PresentOnly);
        let place = |at: u64| {
            chain.iter().find_map(|space| {
                let lu = self.tables.lus.get(space)?;
                if lu.role == Role::Layer {
                    let placed = self.placed(*space, part.number)?;
                    let there = placed.present & sectors(at, SECTOR) != 0 || !trusts;
                    return there.then(|| ((*space, placed.container()), placed.at() + at));
                }
                let byte = part.number * PART_BYTES + at;
                let vchunk = (byte / CHUNK_BYTES) as u32;
                (vchunk < lu.chunks).then_some(((*space, vchunk), byte % CHUNK_BYTES))
            })
        };
        type Place = Option<((u32, u32), u64)>;
        let mut runs: Vec<(Place, u64, u64)> = Vec::new();
        for at in (part.at..part.at + part.bytes).step_by(SECTOR as usize) {
            let found = place(at);
            match runs.last_mut() {
                Some((same, _, end)) if same.map(|it| it.0) == found.map(|it| it.0) => {
                    *end = at + SECTOR;
                }
                _ => runs.push((found, at, at + SECTOR)),
            }
        }
        let reads = runs.iter().filter(|(found, ..)| found.is_some()).count() as u32;
        if let Some(job) = self.jobs.get_mut(&part.job) {
            job.left += reads;
        }
        let (job, tag, kind) = (part.job, part.tag, PieceKind::Read);
        for (found, at, end) in runs {
            let (from, bytes) = (part.from + at - part.at, end - at);
            match found {
                None => self.effects.push(Effect::Zero { tag, from, bytes }),
                Some((key, at)) => {
                    let part = self.tables.is_layer(key.0).then_some(part.number);
                    self.advance(Piece { job, tag, key, at, bytes, from, kind, part });
                }
            }
        }
    }

    fn write_part(&mut self, part: Part, layer: u32) {
        let placed = self.place(layer, part.number);
        let kind = if part.kind == PieceKind::Zeroes { PieceKind::Blank } else { part.kind };
        self.advance(Piece {
            job: part.job,
            tag: part.tag,
            key: (layer, placed.container()),
            at: placed.at() + part.at,
            bytes: part.bytes,
            from: part.from,
            kind,
            part: Some(part.number),
        });
    }

    /// Where channels look may have changed for every LU.
    pub(super) fn change_chains(&mut self) {
        let lus = self.tables.lus.iter().filter(|(_, lu)| lu.is_lu());
        self.layered.changed.extend(lus.map(|(lu, _)| *lu));
    }

    /// Whether a piece is of an LU that holds the same elsewhere, since what it was for was coalesced.
    pub(super) fn has_moved_on(&self, piece: &Piece) -> bool {
        let lu = self.jobs.get(&piece.job).map_or(0, |job| job.lu);
        let moves = matches!(piece.kind, PieceKind::Move { .. } | PieceKind::Copy { .. });
        !self.tables.lus.contains_key(&piece.key.0) && self.serves(lu) && !moves
    }

    /// A piece was written to all legs: it is present.
    pub(super) fn part_written(&mut self, piece: &Piece) {
        let Some(part) = piece.part else { return };
        let Some(placed) = self.placed(piece.key.0, part) else { return };
        let present = placed.present | sectors(piece.at % PART_BYTES, piece.bytes);
        self.layered.live.insert((piece.key.0, part), Placed { present, ..placed });
        self.layered.touched.insert((piece.key.0, part));
    }

    /// The parts of a layer of which a flush that begins now has to tell.
    pub(super) fn parts_to_say(
        &self,
        layer: u32,
        scope: Option<&BTreeSet<u32>>,
    ) -> BTreeMap<u64, Placed> {
        let live = self.layered.live.range((layer, 0)..=(layer, u64::MAX));
        let live = live.map(|((_, part), placed)| (*part, *placed));
        live.filter(|(part, placed)| {
            placed.present != 0
                && scope.is_none_or(|scope| scope.contains(&placed.container()))
                && self.tables.parts.get(layer, *part) != Some(*placed)
        })
        .collect()
    }

    /// What a successor has to know.
    pub(super) fn parts_to_keep(&self) -> Vec<(u32, u64, Placed)> {
        if !self.keeps(Rule::AnswerAfterLive) {
            return Vec::new();
        }
        let live = self.layered.live.iter().filter(|(_, placed)| placed.present != 0);
        live.map(|((layer, part), placed)| (*layer, *part, *placed)).collect()
    }

    /// Takes up what a process before this one knew, of containers that are there: what was written to others was not answered.
    pub(super) fn take_over_parts(&mut self, shadow: &Shadow) {
        for (layer, part, placed) in &shadow.parts {
            let known = self.tables.lus.get(layer).filter(|lu| lu.role == Role::Layer);
            let container = placed.container();
            let mapped = known.filter(|lu| container < lu.chunks).is_some_and(|lu| {
                lu.legs_of(container).iter().any(|entry| entry.chunk().is_some())
            });
            let same = self.tables.parts.get(*layer, *part);
            if mapped && same.is_none_or(|same| same.slot == placed.slot) {
                // It may know of what a channel has added, and of no more.
                let present = placed.present | same.map_or(0, |same| same.present);
                self.layered.live.insert((*layer, *part), Placed { present, ..*placed });
            }
        }
    }

    /// What waits for space goes back to what it was before it was known where it goes.
    pub(super) fn back_to_parts(&mut self, piece: &Piece) -> Vec<Part> {
        let Some(job) = self.jobs.get_mut(&piece.job) else { return Vec::new() };
        let (lu, kind) = (job.lu, piece.kind);
        let first = match piece.part {
            Some(part) => part * PART_BYTES + piece.at % PART_BYTES,
            None => u64::from(piece.key.1) * CHUNK_BYTES + piece.at,
        };
        let kind = if kind == PieceKind::Blank { PieceKind::Zeroes } else { kind };
        let of = |(number, from, end): (u64, u64, u64)| Part {
            job: piece.job,
            tag: piece.tag,
            lu,
            number,
            at: from % PART_BYTES,
            bytes: end - from,
            from: piece.from + from - first,
            kind,
        };
        let parts: Vec<Part> = parts(first, piece.bytes).map(of).collect();
        job.left += parts.len() as u32 - 1;
        parts
    }

    /// Ends what waits to work with a layer or a space that nobody needs any more.
    pub(super) fn let_space_go(&mut self, space: u32) {
        self.layered.dying.insert(space);
        self.let_go(space, 0, Fault::NoSuchLu);
    }

    /// Forgets what the tables have of parts, when all that they say is durable: until then a successor has to know it.
    pub(super) fn forget_parts(&mut self) {
        if self.log.flight.is_none() && std::mem::take(&mut self.layered.forgets) {
            let said = &self.tables.parts;
            let live = &mut self.layered.live;
            live.retain(|(layer, part), placed| said.get(*layer, *part) != Some(*placed));
        }
    }

    /// What was let go is not in the tables any more.
    pub(super) fn forget_spaces(&mut self) {
        let lus = &self.tables.lus;
        self.slots.retain(|key, _| lus.contains_key(&key.0));
        self.layered.live.retain(|key, _| lus.contains_key(&key.0));
        self.layered.touched.retain(|key| lus.contains_key(&key.0));
        let gone = self.layered.dying.iter().filter(|space| !lus.contains_key(space));
        self.layered.gone.extend(gone);
        self.layered.free.retain(|layer, _| lus.contains_key(layer));
        self.layered.dying.retain(|space| lus.contains_key(space));
    }

    /// The pages that a checkpoint writes of containers.
    pub(super) fn slot_pages(&self, changed: BTreeSet<(u32, u32)>) -> Vec<checkpoint::Thing> {
        let legs = |(layer, container): (u32, u32)| {
            let lu = self.tables.lus.get(&layer)?;
            let read = !self.tables.unread.contains(&(layer, container));
            let legs = lu.legs_of(container).iter().filter_map(|entry| entry.chunk());
            read.then(|| legs.map(checkpoint::Thing::Slots).collect::<Vec<_>>())
        };
        changed.into_iter().filter_map(legs).flatten().collect()
    }

    /// Chunks that were containers are not given out before a root has that block of the journal: until then it is from their pages that a pool is opened.
    pub(super) fn hold_containers(&mut self, sequence: u64, chunks: Vec<ChunkId>) {
        if !chunks.is_empty() {
            self.taken.extend(&chunks);
            self.layered.held.push((sequence, chunks));
        }
    }

    /// A checkpoint would give space to those who wait for it, or let a PV go that has nothing else.
    pub(super) fn wants_containers(&self) -> bool {
        let mut held = self.layered.held.iter().flat_map(|(_, chunks)| chunks);
        let empties =
            |id: &ChunkId| self.members.waits_for_nothing(id.pv) && self.used_of(id.pv) == 0;
        held.clone().next().is_some() && self.paused() > 0 || held.any(empties)
    }

    /// A root is durable.
    pub(super) fn release_containers(&mut self) {
        let root = self.chosen.superblock.root.sequence;
        let held = std::mem::take(&mut self.layered.held).into_iter();
        let (over, rest): (Vec<_>, Vec<_>) = held.partition(|(sequence, _)| *sequence <= root);
        self.layered.held = rest;
        let freed: Vec<ChunkId> = over.into_iter().flat_map(|(_, chunks)| chunks).collect();
        if !freed.is_empty() {
            if !self.keeps(Rule::ReuseAfterDrain) {
                freed.iter().for_each(|id| self.taken.remove(id));
                return self.retry_full();
            }
            let then = Drained::Free(freed);
            self.give(Op::Drain { then }, |op| Effect::Drain { op });
        }
    }
}

/// The parts of an LU that a range is in: number, first byte and end of each.
fn parts(at: u64, bytes: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let end = at + bytes;
    (at / PART_BYTES..end.div_ceil(PART_BYTES)).map(move |number| {
        let from = at.max(number * PART_BYTES);
        (number, from, end.min((number + 1) * PART_BYTES))
    })
}
