//! What is copied: each block from the uppermost of the sources that have its sectors.

use super::*;
use crate::layers::{PART_BYTES, SECTOR};

const BLOCKS: u64 = CHUNK_BYTES / BLOCK_BYTES;

/// Sectors that lie together in a source and in a block.
pub(super) struct Run {
    from: (u32, u32),
    at: u64,
    /// The part of the LU in which they are, and their first byte in the block.
    part: u64,
    to: u64,
    bytes: u64,
}

/// How the copying of a block went.
pub(super) enum Begun {
    /// It needs something that is under way.
    Waits,
    Nothing,
    Something,
}

impl Pool {
    pub(super) fn copy_from(&mut self, sources: Vec<u32>, head: u32) {
        let mut todo = BTreeSet::new();
        let into = self.merges.target().unwrap_or_default();
        let most = match self.tables.lus.get(&into) {
            Some(known) if known.role != Role::Layer => known.chunks,
            _ => u32::MAX,
        };
        for source in &sources {
            match self.tables.lus.get(source) {
                Some(known) if known.role == Role::Layer => {
                    let said = self.tables.parts.range((*source, 0)..(*source + 1, 0));
                    todo.extend(said.map(|((_, part), _)| (part / PARTS) as u32));
                }
                Some(known) => {
                    let mapped = |vchunk: &u32| {
                        known.legs_of(*vchunk).iter().any(|leg| leg.chunk().is_some())
                    };
                    todo.extend((0..known.chunks).filter(mapped));
                }
                None => {}
            }
        }
        // What was cut off it does not have.
        todo.retain(|vchunk| *vchunk < most);
        let Some(now) = &mut self.merges.now else { return };
        if now.planned == 0 {
            now.planned = todo.len() as u32;
        }
        (now.sources, now.head, now.todo, now.block) = (sources, head, todo, 0);
        now.stage = Stage::Copying;
    }

    /// Begins with the next block in which there is something.
    pub(super) fn copy_next(&mut self) -> Begun {
        loop {
            let Some(now) = &self.merges.now else { return Begun::Nothing };
            let Some(vchunk) = now.todo.first().copied() else { return Begun::Nothing };
            let block = now.block;
            if block == BLOCKS {
                // It counts when it is there.
                if now.flying > 0 {
                    return Begun::Waits;
                }
                if let Some(now) = &mut self.merges.now {
                    now.todo.pop_first();
                    now.block = 0;
                }
                continue;
            }
            match self.copy_block(vchunk, block) {
                Begun::Waits => return Begun::Waits,
                begun => {
                    if let Some(now) = &mut self.merges.now {
                        now.block += 1;
                    }
                    if matches!(begun, Begun::Something) {
                        return begun;
                    }
                }
            }
        }
    }

    fn copy_block(&mut self, vchunk: u32, block: u64) -> Begun {
        let into = self.merges.target().unwrap_or_default();
        let runs = match self.runs(vchunk, block) {
            Ok(runs) => runs,
            Err(unknown) => return self.probe(unknown),
        };
        if runs.is_empty() {
            return Begun::Nothing;
        }
        let whole = runs.len() == 1 && runs[0].bytes == BLOCK_BYTES;
        if !self.tables.is_layer(into) && !whole {
            let key = (into, vchunk);
            match self.slot(key) {
                Some(slot) if !slot.known => return self.probe(key),
                // What it does not have is zeros, and has to be so where a part of it is written.
                Some(slot) if !slot.live.has(block as usize) => {
                    self.count_flying();
                    let step = Step::Blank(vchunk, block);
                    let job = self.begin_job(Asker::Merge(step), into, 1);
                    self.advance(Piece {
                        job,
                        tag: 0,
                        key,
                        at: block * BLOCK_BYTES,
                        bytes: BLOCK_BYTES,
                        from: 0,
                        kind: PieceKind::Blank,
                        part: None,
                    });
                    return Begun::Something;
                }
                _ => {}
            }
        }
        self.count_flying();
        self.copy_runs(vchunk, block, &runs);
        Begun::Something
    }

    fn count_flying(&mut self) {
        if let Some(now) = &mut self.merges.now {
            now.flying += 1;
        }
    }

    /// Has the written bits of a chunk looked for, alone.
    fn probe(&mut self, key: (u32, u32)) -> Begun {
        if self.merges.now.as_ref().is_some_and(|now| now.flying > 0) {
            return Begun::Waits;
        }
        self.count_flying();
        let job = self.begin_job(Asker::Merge(Step::Block), key.0, 1);
        let (at, bytes, kind) = (0, CHUNK_BYTES, PieceKind::Probe);
        self.advance(Piece { job, tag: 0, key, at, bytes, from: 0, kind, part: None });
        Begun::Waits
    }

    /// What the sources have of a block, each sector from the uppermost that has it; or the chunk of which it is not known what is written.
    pub(super) fn runs(&mut self, vchunk: u32, block: u64) -> Result<Vec<Run>, (u32, u32)> {
        let Some(now) = &self.merges.now else { return Ok(Vec::new()) };
        let (sources, into) = (now.sources.clone(), now.into);
        let joins = !self.tables.is_layer(into);
        let trusts = self.keeps(Rule::CoalescePresent);
        let mut runs: Vec<Run> = Vec::new();
        for half in 0..BLOCK_BYTES / PART_BYTES {
            let within = half * PART_BYTES;
            let part = u64::from(vchunk) * PARTS + (block * BLOCK_BYTES + within) / PART_BYTES;
            let mut left = u64::MAX;
            let mut found: Vec<((u32, u32), u64, u64)> = Vec::new();
            for source in &sources {
                let Some(known) = self.tables.lus.get(source) else { continue };
                if known.role == Role::Layer {
                    let Some(placed) = self.placed(*source, part) else { continue };
                    let present = if trusts { placed.present } else { u64::MAX };
                    found.push(((*source, placed.container()), placed.at(), present & left));
                    left &= !present;
                } else if vchunk < known.chunks {
                    let key = (*source, vchunk);
                    let Some(slot) = self.slot(key) else { continue };
                    if !slot.known {
                        return Err(key);
                    }
                    if !slot.legs.is_empty() && slot.live.has(block as usize) {
                        found.push((key, block * BLOCK_BYTES + within, left));
                        left = 0;
                    }
                }
            }
            for (from, base, mut mask) in found {
                while mask != 0 {
                    let first = u64::from(mask.trailing_zeros());
                    let count = u64::from((mask >> first).trailing_ones());
                    mask &= !(u64::MAX >> (64 - count) << first);
                    let (at, to) = (base + first * SECTOR, within + first * SECTOR);
                    let bytes = count * SECTOR;
                    match runs.last_mut() {
                        Some(last)
                            if joins
                                && (last.from, last.at + last.bytes, last.to + last.bytes)
                                    == (from, at, to) =>
                        {
                            last.bytes += bytes;
                        }
                        _ => runs.push(Run { from, at, part, to, bytes }),
                    }
                }
            }
        }
        Ok(runs)
    }

    pub(super) fn copy_runs(&mut self, vchunk: u32, block: u64, runs: &[Run]) {
        let into = self.merges.target().unwrap_or_default();
        let layered = self.tables.is_layer(into);
        let job = self.begin_job(Asker::Merge(Step::Block), into, 1 + runs.len() as u32);
        let mut last = None;
        for Run { from, at, part, to, bytes } in runs {
            let kind = PieceKind::Copy { from: *from, at: *at };
            let (key, at, part) = if layered {
                let placed = self.place(into, *part);
                ((into, placed.container()), placed.at() + to % PART_BYTES, Some(*part))
            } else {
                ((into, vchunk), block * BLOCK_BYTES + to, None)
            };
            let piece = Piece { job, tag: 0, key, at, bytes: *bytes, from: 0, kind, part };
            last = Some(Piece { kind: PieceKind::Probe, ..piece.clone() });
            self.advance(piece);
        }
        if let Some(piece) = last {
            self.piece_done(&piece, None);
        }
    }

    /// What was copied is made durable, and said.
    pub(super) fn say_merge(&mut self) {
        let Some(now) = &mut self.merges.now else { return };
        now.stage = Stage::Saying;
        let into = now.into;
        if !self.keeps(Rule::CoalesceAfterSync) {
            return self.set_stage(Stage::Said);
        }
        let job = self.begin_job(Asker::Merge(Step::Said), into, 0);
        self.begin_sync(job, into, None);
    }
}
