//! Chunks of LUs that somebody works with: reads, writes, zeros, first touches, allocation.

use super::moves::Moving;
use super::*;

/// A leg of a slot.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    /// Which leg of the chunk it is.
    pub(super) number: u8,
    pub(super) id: ChunkId,
    pub(super) generation: u16,
    /// The written bits that the log was told of.
    pub(super) told: Bits,
    /// They are not known.
    pub(super) unread: bool,
}

impl Leg {
    /// One on a chunk that was just given out.
    pub(super) fn new(number: u8, id: ChunkId, generation: u16) -> Leg {
        Leg { number, id, generation, told: Bits::NONE, unread: false }
    }

    /// The records that say which blocks are written, of those of which the log was told otherwise.
    pub(super) fn say(&mut self, written: Bits, owner: u8) -> Vec<Record> {
        let (set, clear) = (written.without(self.told), self.told.without(written));
        self.told = written;
        let about = Record {
            pv: self.id.pv,
            chunk: self.id.chunk,
            generation: self.generation,
            owner,
            ..Record::of(Kind::Written)
        };
        let of = |kind| move |(flags, aux)| Record { kind, flags, aux, ..about };
        set.words().map(of(Kind::Written)).chain(clear.words().map(of(Kind::Cleared))).collect()
    }
}

/// A chunk of an LU that somebody works with.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// None: it is not mapped, and zeros. Of two legs one may be away.
    pub(super) legs: Vec<Leg>,
    /// It has two legs, or should have.
    pub(super) pair: bool,
    /// The transaction since which its legs may differ; none if they are the same.
    pub(super) activity: Option<u64>,
    /// How many looks had begun when it was changed last ([`super::activity`]).
    pub(super) looks: u32,
    /// The written bits are known.
    pub(super) known: bool,
    /// … to the process before this one, better than what is said of the legs.
    taken_over: bool,
    loading: u32,
    /// Blocks that are written.
    pub(super) live: Bits,
    /// Blocks that are being written for the first time.
    pub(super) busy: Bits,
    /// The transaction with which its mapping is durable.
    pub(super) settled: u64,
    /// The last transaction that tells of its bits.
    pub(super) said: u64,
    /// The chunks that it had, until it is settled.
    pub(super) left: Vec<(ChunkId, u16)>,
    /// A leg that is on its way to another PV.
    pub(super) moving: Option<Box<Moving>>,
    /// Blocks that are still being copied to a leg for a move that was given up.
    pub(super) orphans: Vec<(ChunkId, usize)>,
    /// Where a leg was before it moved, until that is durable.
    pub(super) also: Vec<Leg>,
    waiting: Vec<Piece>,
}

impl Slot {
    /// The chunks of its legs.
    pub(super) fn ids(&self) -> Vec<ChunkId> {
        self.legs.iter().map(|leg| leg.id).collect()
    }

    /// How many legs it has.
    pub(super) fn count(&self) -> usize {
        self.legs.len()
    }

    /// The chunks that a write goes to: its legs, and where one is going or was.
    pub(super) fn targets(&self) -> Vec<ChunkId> {
        let target = self.moving.as_deref().and_then(Moving::elsewhere);
        self.legs.iter().chain(&self.also).chain(target).map(|leg| leg.id).collect()
    }

    /// The PVs on which a flush has to make durable what was written to it.
    pub(super) fn pvs(&self) -> impl Iterator<Item = u16> {
        self.targets().into_iter().map(|id| id.pv)
    }

    /// Whether somebody waits to read or write.
    pub(super) fn is_waited_for(&self) -> bool {
        let moves = |kind: PieceKind| kind.is_own();
        self.waiting.iter().any(|piece| !moves(piece.kind))
    }

    /// Whether blocks are not the same on both legs yet; if so they are copied next.
    pub(super) fn wants(&mut self, blocks: Bits) -> bool {
        let wanted = blocks.and(self.live);
        !wanted.is_empty() && self.moving.as_mut().is_none_or(|moving| moving.wants(wanted))
    }

    /// A piece goes on when something of the slot has changed.
    pub(super) fn wait(&mut self, piece: Piece) {
        self.waiting.push(piece);
    }

    /// Nobody works with it, and all that was said of it is durable.
    pub(super) fn is_at_rest(&self, durable: u64) -> bool {
        let said = self.settled.max(self.said).max(self.activity.unwrap_or(0));
        self.known
            && said <= durable
            && self.waiting.is_empty()
            && self.busy.is_empty()
            && self.moving.is_none()
            && self.also.is_empty()
            && self.legs.iter().all(|leg| leg.told == self.live)
    }

    /// What was being read of it is read again, of the legs that are there.
    pub(super) fn load_again(&mut self) {
        self.loading = 0;
    }

    /// Those that wait for it, which wait no longer.
    pub(super) fn give_up(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.waiting)
    }

    /// A slot whose bits a process before this one knew better than the tables.
    pub(super) fn take_over(&mut self, live: Bits) {
        (self.live, self.taken_over) = (live, true);
    }

    /// Blocks that are written by what is said of each leg of which that is known. Those that are said of one alone were cleared when the other came to where it is, which has there what others have left;
    /// whatever was flushed is said of all. `either`: also those.
    fn said_of_all(&self, either: bool) -> Bits {
        let known = self.legs.iter().filter(|leg| !leg.unread).map(|leg| leg.told);
        known
            .reduce(|all, told| if either { all.or(told) } else { all.and(told) })
            .unwrap_or_default()
    }
}

/// The part of a request that is in one chunk.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) job: u64,
    pub(super) tag: u64,
    /// LU and its chunk.
    pub(super) key: (u32, u32),
    /// First byte, from the beginning of the chunk.
    pub(super) at: u64,
    pub(super) bytes: u64,
    /// First byte, from the beginning of the request.
    pub(super) from: u64,
    pub(super) kind: PieceKind,
    /// The part of an LU that is in this slot of a layer.
    pub(super) part: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    Read,
    Write {
        durable: bool,
    },
    Zeroes,
    Discard,
    /// Zeros are written.
    Blank,
    /// What is written is in that chunk of that space, from this byte of it on.
    Copy {
        from: (u32, u32),
        at: u64,
    },
    /// Nothing, when the written bits are known.
    Probe,
    Move {
        leg: u8,
        pv: u16,
    },
    /// Both legs are made the same, or the one that is missing is added.
    Mend,
    /// Both legs are read, and checksums are made.
    MakeSums,
    /// Those of that chunk are written, or read.
    WriteSums {
        of: (u32, u32),
    },
    ReadSums {
        of: (u32, u32),
    },
    /// All legs are read, and what cannot be read on one is written there again; only of blocks that a client could not read, or of all.
    Check {
        repairs: bool,
    },
}

impl PieceKind {
    /// Whether it is done with chunks as they are, and changes nothing of what they hold.
    fn is_own(self) -> bool {
        matches!(
            self,
            PieceKind::Move { .. }
                | PieceKind::Mend
                | PieceKind::MakeSums
                | PieceKind::Check { .. }
        )
    }
}

/// A piece that is being written to all legs.
#[derive(Debug)]
pub(super) struct Writing {
    piece: Piece,
    /// Blocks that it touches for the first time.
    touched: Bits,
    /// Blocks that are busy because of it.
    locked: Bits,
    /// Where the leg goes that was moving when it began.
    target: Option<ChunkId>,
    left: u32,
    fault: Option<Fault>,
}

impl Writing {
    /// Where it is written.
    pub(super) fn space(&self) -> u32 {
        self.piece.key.0
    }

    /// The chunk, and the blocks of it.
    pub(super) fn place(&self) -> ((u32, u32), Bits) {
        (self.piece.key, self.piece.blocks().0)
    }
}

impl Piece {
    /// The blocks that it is in, and those that it has altogether.
    pub(super) fn blocks(&self) -> (Bits, Bits) {
        let (at, end) = (self.at, self.at + self.bytes);
        let whole = (at.div_ceil(BLOCK_BYTES) as usize, (end / BLOCK_BYTES) as usize);
        (
            Bits::range((at / BLOCK_BYTES) as usize, end.div_ceil(BLOCK_BYTES) as usize),
            Bits::range(whole.0, whole.1.max(whole.0)),
        )
    }
}

pub(super) fn byte_of(id: ChunkId, at: u64) -> u64 {
    u64::from(id.chunk) * CHUNK_BYTES + at
}

impl Pool {
    /// The slot of a chunk, as it is or as the tables have it.
    pub(super) fn slot(&mut self, key: (u32, u32)) -> Option<&mut Slot> {
        let lu = self.tables.lus.get(&key.0).filter(|lu| key.1 < lu.chunks)?;
        self.touched.insert(key);
        let either = !self.keeps(Rule::WrittenOnAll);
        let tables = &self.tables;
        Some(self.slots.entry(key).or_insert_with(|| {
            let entries = (0..).zip(lu.legs_of(key.1));
            let mapped = entries
                .filter_map(|(number, entry)| Some((number, entry.chunk()?, entry.generation())));
            let activity = tables.active.contains(&key).then_some(0);
            let pair = lu.legs > 1;
            let legs = Vec::with_capacity(lu.legs.into());
            let mut slot = Slot { known: true, pair, activity, legs, ..Slot::default() };
            for (number, id, generation) in mapped {
                let told = tables.bits.get(&id).copied();
                let unread = told.is_none();
                slot.known &= !unread;
                let told = told.unwrap_or_default();
                slot.legs.push(Leg { number, id, generation, told, unread });
            }
            slot.live = slot.said_of_all(either);
            slot
        }))
    }

    /// Goes on with a piece as far as it can; where it cannot it is left with what it waits for.
    pub(super) fn advance(&mut self, piece: Piece) {
        if !self.has_space(piece.key.0) {
            if self.has_moved_on(&piece) {
                return self
                    .back_to_parts(&piece)
                    .into_iter()
                    .for_each(|part| self.advance_part(part));
            }
            return self.piece_done(&piece, Some(Fault::NoSuchLu));
        }
        let moves = piece.kind.is_own();
        if moves && self.merges.is_going(piece.key.0) {
            return self.piece_done(&piece, Some(Fault::NoSuchLu));
        }
        if piece.key.1 >= self.chunks_of(piece.key.0) {
            return self.piece_done(&piece, Some(Fault::Range));
        }
        let Some(slot) = self.slot(piece.key) else {
            return self.piece_done(&piece, Some(Fault::NoSuchLu));
        };
        if slot.legs.is_empty() {
            match piece.kind {
                PieceKind::Read => return self.read_zeros(&piece),
                PieceKind::ReadSums { .. } => {
                    return self.piece_done(&piece, Some(Fault::Medium));
                }
                PieceKind::Zeroes
                | PieceKind::Discard
                | PieceKind::Probe
                | PieceKind::Mend
                | PieceKind::MakeSums
                | PieceKind::Check { .. }
                | PieceKind::Move { .. } => {
                    return self.piece_done(&piece, None);
                }
                _ if !self.allocate(piece.key, self.is_client_s(&piece)) => {
                    // Clients that wait for space come first.
                    return match self.is_client_s(&piece) {
                        true => self.wait_for_space(piece),
                        false => self.piece_done(&piece, Some(Fault::NoSpace)),
                    };
                }
                PieceKind::Write { .. }
                | PieceKind::Blank
                | PieceKind::WriteSums { .. }
                | PieceKind::Copy { .. } => {}
            }
        }
        let Some(slot) = self.slot(piece.key) else { return };
        if !slot.known {
            slot.waiting.push(piece.clone());
            return self.load(piece.key);
        }
        // A read of what is being touched for the first time sees the zeros that were there before.
        let (blocks, whole) = piece.blocks();
        let busy = !slot.busy.and(blocks).is_empty();
        let changes = !moves
            && !matches!(
                piece.kind,
                PieceKind::Read | PieceKind::Probe | PieceKind::ReadSums { .. }
            );
        if changes && self.waits_for_activity(&piece) {
            return;
        }
        let Some(slot) = self.slots.get_mut(&piece.key) else { return };
        match piece.kind {
            PieceKind::Read => self.read(&piece),
            PieceKind::Probe => self.piece_done(&piece, None),
            PieceKind::Move { leg, pv } => self.begin_move(piece, leg, pv),
            PieceKind::Mend => self.begin_mend(piece),
            PieceKind::Check { repairs } => self.begin_check(piece, repairs),
            PieceKind::MakeSums => self.begin_sums(piece),
            PieceKind::ReadSums { .. } => self.read_sums(piece, 0),
            _ if busy => slot.waiting.push(piece),
            PieceKind::Write { durable } => self.write(piece, durable),
            PieceKind::Blank | PieceKind::WriteSums { .. } | PieceKind::Copy { .. } => {
                self.write(piece, false);
            }
            PieceKind::Discard | PieceKind::Zeroes => self.clear(&piece, blocks, whole),
        }
    }

    /// Reads what is written of a chunk, if that is not known.
    pub(super) fn load(&mut self, key: (u32, u32)) {
        let Some(slot) = self.slots.get_mut(&key).filter(|slot| !slot.known) else { return };
        if slot.loading == 0 {
            let ids = slot.ids();
            slot.loading = ids.len() as u32;
            ids.into_iter().for_each(|id| self.give_home_read(id, Some(key)));
        }
    }

    fn write(&mut self, piece: Piece, durable: bool) {
        // What is not present in a slot is never read.
        let around = self.keeps(Rule::ZerosAround) && piece.part.is_none();
        let Some(slot) = self.slots.get_mut(&piece.key) else { return };
        let (blocks, _) = piece.blocks();
        let touched = blocks.without(slot.live);
        let end = piece.at + piece.bytes;
        let first = touched.has((piece.at / BLOCK_BYTES) as usize) && around;
        let last = touched.has(((end - 1) / BLOCK_BYTES) as usize) && around;
        let before = if first { piece.at % BLOCK_BYTES } else { 0 };
        let after = if last { end.next_multiple_of(BLOCK_BYTES) - end } else { 0 };
        // Where every bit is said, and no flush under way can take one back that it saw cleared, the write alone is what has to be durable.
        let said = touched.is_empty()
            && piece.part.is_none()
            && !self.syncs.contains_key(&piece.key.0)
            && slot.legs.iter().all(|leg| blocks.without(leg.told).is_empty());
        let txn = self.log.appended;
        if durable && let Some(job) = self.jobs.get_mut(&piece.job) {
            if said {
                job.txn = job.txn.max(txn);
            } else {
                job.then_sync.push(piece.key);
            }
        }
        let Piece { tag, from, bytes, at, .. } = piece;
        let what = match piece.kind {
            PieceKind::Blank => Payload::Zeros(before + bytes + after),
            // They begin with a block.
            PieceKind::WriteSums { of } => self.sums_to_write(of, after),
            _ => Payload::Client { tag, from, bytes, before, after },
        };
        self.write_legs(piece, (blocks, touched), at - before, &what, durable && said);
    }

    /// Writes to all legs. While one moves nobody else may work with these blocks; otherwise with those that are touched for the first time.
    fn write_legs(
        &mut self,
        piece: Piece,
        (blocks, touched): (Bits, Bits),
        at: u64,
        what: &Payload,
        durable: bool,
    ) {
        // Where it is now: what waited may have been moved meanwhile.
        let source = match piece.kind {
            PieceKind::Copy { from, at } => {
                let leg = self.slot(from).and_then(|slot| slot.legs.first().cloned());
                let Some(leg) = leg else {
                    return self.piece_done(&piece, Some(Fault::NoSuchLu));
                };
                Some((leg.id.pv, byte_of(leg.id, at)))
            }
            _ => None,
        };
        let write = self.number();
        let bytes = piece.bytes;
        let misses = self.keeps(Rule::MissedSince);
        let Some(slot) = self.slots.get_mut(&piece.key) else { return };
        let target = slot.moving.as_ref().map(|moving| moving.target.id);
        let locked = if target.is_some() { blocks } else { touched };
        if misses {
            self.missed.is_written(piece.key, blocks);
        }
        slot.busy = slot.busy.or(locked);
        let legs = slot.targets();
        let left = legs.len() as u32;
        let writing = Writing { piece, touched, locked, target, left, fault: None };
        self.writes.insert(write, writing);
        for id in legs {
            let (op, to) = (Op::Data { write }, (id.pv, byte_of(id, at)));
            match source {
                None => self.give_write(op, to.0, to.1, what.clone(), durable),
                Some(from) => self.give(op, |op| Effect::Copy { op, from, to, bytes }),
            }
        }
    }

    pub(super) fn data_done(&mut self, write: u64, outcome: &Outcome) {
        let Some(writing) = self.writes.get_mut(&write) else { return };
        writing.left -= 1;
        if *outcome == Outcome::Failed {
            writing.fault = Some(Fault::Medium);
            let (key, kind) = (writing.piece.key, writing.piece.kind);
            self.others_may_have_it(key, kind);
        }
        let Some(writing) = self.writes.get(&write) else { return };
        if writing.left > 0 {
            return;
        }
        let Some(writing) = self.writes.remove(&write) else { return };
        let Writing { piece, touched, locked, target, fault, .. } = writing;
        self.touched.insert(piece.key);
        if self.slots.get(&piece.key).is_some_and(|slot| slot.pair) {
            self.activity.stirs();
        }
        if fault.is_none() {
            self.part_written(&piece);
        } else {
            // Where it was written to may be a leg by now.
            self.others_may_have_it(piece.key, piece.kind);
        }
        let cached = self.slots.get(&piece.key).map(Slot::targets).unwrap_or_default();
        let (first, end) = (piece.at / BLOCK_BYTES, (piece.at + piece.bytes).div_ceil(BLOCK_BYTES));
        self.checks.are_written(&cached, first as usize..end as usize);
        self.is_cached(piece.key, cached, piece.blocks().0);
        if let Some(slot) = self.slots.get_mut(&piece.key) {
            slot.busy = slot.busy.without(locked);
            if fault.is_some()
                && let Some(moving) = &mut slot.moving
            {
                moving.lacks(piece.blocks().0);
            }
            if fault.is_none() {
                slot.live = slot.live.or(touched);
                let moving = slot.moving.as_mut();
                if let Some(moving) = moving.filter(|moving| Some(moving.target.id) == target) {
                    moving.touched(touched);
                }
            }
        }
        self.piece_done(&piece, fault);
        self.wake(piece.key);
        self.go_on_moving(piece.key);
    }

    /// A write has failed on a leg.
    fn others_may_have_it(&mut self, key: (u32, u32), kind: PieceKind) {
        let slot = self.slots.get(&key);
        let pair = slot.is_some_and(|slot| slot.pair && slot.legs.len() > 1);
        // Of what is copied nobody sees anything before it is there.
        if matches!(kind, PieceKind::Copy { .. }) {
            if pair {
                self.activity.is_doubtful(key);
            }
        } else if pair {
            self.mends.differs(key);
            self.touched.insert(key);
        }
    }

    pub(super) fn wake(&mut self, key: (u32, u32)) {
        let waiting = self.slots.get_mut(&key).map(|slot| std::mem::take(&mut slot.waiting));
        waiting.unwrap_or_default().into_iter().for_each(|piece| self.advance(piece));
    }

    /// Whole blocks lose their bits. Zeros that are asked for in parts of a block that is written are written.
    fn clear(&mut self, piece: &Piece, blocks: Bits, whole: Bits) {
        let Some(slot) = self.slots.get_mut(&piece.key) else { return };
        slot.live = slot.live.without(whole);
        if let Some(sync) = self.syncs.get_mut(&piece.key.0) {
            sync.cleared(piece.key.1, whole);
        }
        if let Some(moving) = &mut slot.moving {
            moving.cleared(whole);
        }
        let edges = blocks.without(whole).and(slot.live);
        if slot.live.is_empty() && slot.busy.is_empty() {
            self.unmap(piece.key);
        } else if piece.kind == PieceKind::Zeroes && !edges.is_empty() {
            self.write_zeros(piece, edges);
        }
        self.piece_done(piece, None);
    }

    fn write_zeros(&mut self, piece: &Piece, edges: Bits) {
        let end = piece.at + piece.bytes;
        let (first, last) = (piece.at / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
        let ends = if first == last { vec![first] } else { vec![first, last] };
        for block in ends.into_iter().filter(|block| edges.has(*block as usize)) {
            let at = piece.at.max(block * BLOCK_BYTES);
            let bytes = end.min((block + 1) * BLOCK_BYTES) - at;
            if let Some(job) = self.jobs.get_mut(&piece.job) {
                job.left += 1;
            }
            let what = Payload::Zeros(bytes);
            let blocks = Bits::range(block as usize, block as usize + 1);
            self.write_legs(piece.clone(), (blocks, Bits::NONE), at, &what, false);
        }
    }

    /// Gives the chunks of a slot back: nothing is written there.
    fn unmap(&mut self, key: (u32, u32)) {
        self.give_up_move(key, None);
        self.mends.is_half(key);
        self.missed.forget(key);
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let legs = std::mem::take(&mut slot.legs);
        slot.left.extend(legs.iter().map(|leg| (leg.id, leg.generation)));
        let free = |leg: &Leg| Record {
            pv: leg.id.pv,
            chunk: leg.id.chunk,
            generation: leg.generation,
            ..Record::of(Kind::Free)
        };
        let txn = self.log.append(legs.iter().map(free).collect());
        slot.settled = txn;
    }

    /// Chunks of which channels and the pool itself have let go are given out again.
    pub(super) fn release(&mut self) {
        if self.drained.is_empty() {
            return;
        }
        let mut data = self.ops.iter();
        let oldest = data.find_map(|(number, (op, _))| {
            matches!(
                op,
                Op::Data { .. }
                    | Op::Fetch { .. }
                    | Op::Sums { .. }
                    | Op::Copy { .. }
                    | Op::Rewrite { .. }
            )
            .then_some(*number)
        });
        let free = |number: u64| oldest.is_none_or(|oldest| oldest > number);
        let (over, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.drained).into_iter().partition(|(number, _)| free(*number));
        self.drained = rest;
        for (_, then) in over {
            match then {
                Drained::Free(chunks) => chunks.iter().for_each(|id| self.taken.remove(id)),
                Drained::Move(key, id) => self.move_drained(key, id),
                Drained::Cut => self.cut_drained(),
                Drained::Return => self.return_drained(),
            }
        }
        self.retry_full();
    }

    /// Takes up what a home record says of the bits.
    pub(super) fn bits_known(&mut self, key: (u32, u32), id: ChunkId, bits: Option<Bits>) {
        let (either, turns) = (!self.keeps(Rule::WrittenOnAll), self.keeps(Rule::KnownFirst));
        let Some(slot) = self.slots.get_mut(&key).filter(|slot| !slot.known) else { return };
        let Some(leg) = slot.legs.iter_mut().find(|leg| leg.id == id) else { return };
        slot.loading = slot.loading.saturating_sub(1);
        if let Some(bits) = bits {
            (leg.told, leg.unread) = (bits, false);
        }
        if slot.loading > 0 {
            return;
        }
        let Some(bits) = slot.legs.iter().find(|leg| !leg.unread).map(|leg| leg.told) else {
            // Neither place can be read: it is not known what is written, and nothing is made up.
            for piece in std::mem::take(&mut slot.waiting) {
                self.piece_done(&piece, Some(Fault::Medium));
            }
            return;
        };
        // What is said of one leg is said of the other. That may be elsewhere since blocks were cleared, and has there what others have left: it is the one that is made the same.
        if turns {
            slot.legs.sort_by_key(|leg| leg.unread);
        }
        for leg in slot.legs.iter_mut().filter(|leg| leg.unread) {
            (leg.told, leg.unread) = (bits, false);
            self.tables.bits.insert(leg.id, bits);
        }
        if !slot.taken_over {
            slot.live = slot.said_of_all(either);
        }
        slot.known = true;
        self.wake(key);
    }

    /// Forgets slots with which nobody works, and bits that the home records have.
    pub(super) fn forget(&mut self) {
        let durable = self.log.durable;
        // What they write is in a cache then, of which nobody would know.
        let writes = self.writes.values().filter(|_| self.keeps(Rule::ForgetAtRest));
        let written: BTreeSet<(u32, u32)> = writes.map(|write| write.piece.key).collect();
        self.slots.retain(|key, slot| {
            if slot.settled <= durable {
                slot.left.clear();
            }
            slot.settled.max(slot.said).max(slot.activity.unwrap_or(0)) > durable
                || written.contains(key)
                || !slot.waiting.is_empty()
                || !slot.busy.is_empty()
                || slot.loading > 0
                || slot.moving.is_some()
                || !slot.also.is_empty()
                || slot.legs.iter().any(|leg| leg.told != slot.live)
        });
        self.layered.forgets = true;
        self.forget_parts();
        let slots = &self.slots;
        let kept: BTreeSet<ChunkId> =
            slots.values().flat_map(|slot| slot.legs.iter().map(|leg| leg.id)).collect();
        let changed = &self.tables.changed.homes;
        self.tables.bits.retain(|id, _| kept.contains(id) || changed.contains(id));
    }
}
