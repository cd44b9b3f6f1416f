//! Commands that read and write: their beginning, and the stages that they go through.

use block::OpKind;

use super::decode::{
    Compare, Extent, OUT_OF_RANGE, byte_check, durable, fua, unprotected, writable,
};
use super::{Context, Done, Memory, Step, Task};
use crate::optical;
use crate::sense::{Sense, code};
use crate::unit::{LogicalUnit, UNMAP_BLOCKS_MAX, UNMAP_DESCRIPTORS_MAX, WRITE_SAME_BLOCKS_MAX};
use crate::wire::{be16, be32, be64, put};

/// What a task waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing.
    Idle,
    /// Scratch memory; then it goes on with this.
    Scratch(After),
    /// A permit to write; then it goes on with this.
    Enter(After),
    /// A range of its own.
    Claim,
    /// The writes that are in flight in it.
    Alone,
    /// The volume.
    Out(Out),
    /// A place that survives a power loss.
    Store,
    /// The end of the commands of others.
    Aborting,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Write,
    Tail,
    Verify,
    Same,
    /// The block of a WRITE SAME again, of which it was decided that it is written.
    SameAgain,
    Zero,
    Unmap,
    /// The extent of an UNMAP again, which was read and checked.
    UnmapAgain,
    Compare,
}

/// What the volume was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Out {
    FlushBeforeRead,
    Read,
    Tail,
    Write,
    Verify,
    Same,
    Zero,
    Unmap,
    CompareRead,
    CompareWrite,
    Flush,
}

impl Out {
    /// From where a task goes on whose request was set aside, and whether that writes. `None`: it holds nothing meanwhile.
    pub(super) fn set_aside(self) -> Option<(Stage, bool)> {
        let (stage, writes) = match self {
            Out::FlushBeforeRead | Out::Read | Out::Flush => return None,
            Out::Tail => (Stage::Scratch(After::Tail), false),
            Out::Verify => (Stage::Scratch(After::Verify), false),
            Out::Write => (Stage::Enter(After::Write), true),
            Out::Same => (Stage::Scratch(After::SameAgain), true),
            Out::Zero => (Stage::Enter(After::Zero), true),
            Out::Unmap => (Stage::Enter(After::UnmapAgain), true),
            Out::CompareRead => (Stage::Scratch(After::Compare), false),
            Out::CompareWrite => (Stage::Scratch(After::Compare), true),
        };
        Some((stage, writes))
    }
}

impl Stage {
    /// Whether something comes back by itself that must be waited for.
    pub(super) fn is_out(self) -> bool {
        matches!(self, Stage::Out(_) | Stage::Store)
    }
}

/// How far a command is. What the fields mean depends on the command a little; all are bytes unless they say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Job {
    /// First byte of the volume.
    pub(super) at: u64,
    /// Bytes of the volume.
    pub(super) len: u64,
    /// Bytes of the volume that are done.
    pub(super) done: u64,
    /// Descriptors of an UNMAP, and how many of them are done.
    pub(super) extents: u16,
    pub(super) extents_done: u16,
    /// Bytes that the CDB calls for.
    pub(super) wanted: u64,
    /// Bytes that go through the buffers.
    pub(super) moved: u64,
    pub(super) fua: bool,
    pub(super) unmap: bool,
    /// What is verified after a write, or by a verification.
    pub(super) compare: Option<Compare>,
    /// NDOB: zeroes, and no data.
    pub(super) no_data: bool,
}

impl Job {
    pub(super) const NOTHING: Job = Job {
        at: 0,
        len: 0,
        done: 0,
        extents: 0,
        extents_done: 0,
        wanted: 0,
        moved: 0,
        fua: false,
        unmap: false,
        compare: None,
        no_data: false,
    };
}

impl Task {
    /// READ (SBC-3, 5.8 to 5.11).
    #[inline]
    pub(super) fn begin_read(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Step {
        let unit = cx.nexus.unit();
        let extent = Extent::of(cdb);
        if !extent.is_plain(unit, cdb) {
            return refuse(unit, cdb, extent);
        }
        let (at, len) = extent.bytes(unit);
        let moved = len.min(cx.data_in.len);
        self.job = Job { at, len, wanted: len, moved, ..Job::NOTHING };
        if fua(cdb) && unit.volatile_cache && len != 0 {
            // What is read must be what is on the medium: what the cache has newer goes there first (SBC-3, 4.15).
            return self.submit(Out::FlushBeforeRead, OpKind::Flush, 0, 0, Memory::None);
        }
        self.read_whole(cx)
    }

    /// READ CD (MMC-6, 6.16): the user data of a data track, and nothing that lies around it on a disc.
    pub(super) fn begin_read_cd(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Step {
        let mut read = [0; 16];
        match optical::read_cd(cx.nexus.unit(), cdb) {
            Ok((lba, blocks)) => {
                // As READ(12), whose length is in the same place.
                read[0] = 0xa8;
                put(&mut read, 2, &lba.to_be_bytes());
                put(&mut read, 6, &blocks.to_be_bytes());
                self.begin_read(cx, &read)
            }
            Err(sense) => Step::Done(Done::check(sense)),
        }
    }

    /// All whole blocks that there is room for.
    #[inline]
    pub(super) fn read_whole(&mut self, cx: &Context<'_>) -> Step {
        let block = u64::from(cx.nexus.unit().block_size());
        let whole = self.job.moved & !(block - 1);
        if whole == 0 {
            return self.read_tail(cx);
        }
        self.submit(Out::Read, OpKind::Read, self.job.at, whole, Memory::DataIn(0))
    }

    /// The part of a block that a short buffer has room for.
    #[inline]
    pub(super) fn read_tail(&mut self, cx: &Context<'_>) -> Step {
        let block = u64::from(cx.nexus.unit().block_size());
        if self.job.moved & (block - 1) == 0 {
            return self.good(cx);
        }
        self.with_scratch(cx, After::Tail)
    }

    /// WRITE (SBC-3, 5.30 to 5.33).
    #[inline]
    pub(super) fn begin_write(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Step {
        let unit = cx.nexus.unit();
        let extent = Extent::of(cdb);
        if writable(unit).is_err() || !extent.is_plain(unit, cdb) {
            return refuse_write(unit, cdb, extent);
        }
        self.note_write(cx, cdb, extent);
        self.enter(cx, After::Write)
    }

    /// Notes a write. A buffer that is too short gives the whole blocks that it has.
    #[inline]
    fn note_write(&mut self, cx: &Context<'_>, cdb: &[u8; 16], extent: Extent) {
        let unit = cx.nexus.unit();
        let (at, wanted) = extent.bytes(unit);
        let moved = wanted.min(cx.data_out.len) & !(u64::from(unit.block_size()) - 1);
        let fua = durable(unit, cdb);
        self.job = Job { at, len: moved, wanted, moved, fua, ..Job::NOTHING };
    }

    /// WRITE AND VERIFY (SBC-3, 5.34 to 5.36).
    pub(super) fn begin_write_and_verify(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Step {
        let unit = cx.nexus.unit();
        let extent = Extent::of(cdb);
        let checked = byte_check(cdb, false)
            .and_then(|compare| check_write(unit, cdb, extent).map(|()| compare));
        match checked {
            Ok(compare) => {
                self.note_write(cx, cdb, extent);
                (self.job.compare, self.job.fua) = (Some(compare), true);
                self.enter(cx, After::Write)
            }
            Err(sense) => Step::Done(Done::check(sense)),
        }
    }

    /// VERIFY (SBC-3, 5.25 to 5.27).
    pub(super) fn begin_verify(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Step {
        match self.prepare_verify(cx, cdb) {
            Ok(()) if self.job.len == 0 => self.good(cx),
            Ok(()) => self.with_scratch(cx, After::Verify),
            Err(sense) => Step::Done(Done::check(sense)),
        }
    }

    fn prepare_verify(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Result<(), Sense> {
        let unit = cx.nexus.unit();
        unprotected(cdb)?;
        let compare = byte_check(cdb, true)?;
        let extent = Extent::of(cdb).inside(unit)?.transferable(unit)?;
        let (at, len) = extent.bytes(unit);
        let block = u64::from(unit.block_size());
        let wanted = match compare {
            Compare::Nothing => 0,
            Compare::All => len,
            Compare::OneBlock => block.min(len),
        };
        let moved = wanted.min(cx.data_out.len) & !(block - 1);
        let len = match compare {
            Compare::Nothing => len,
            Compare::All => moved,
            Compare::OneBlock if moved == wanted => len,
            Compare::OneBlock => 0,
        };
        let compare = Some(compare);
        self.job = Job { at, len, wanted, moved, compare, ..Job::NOTHING };
        Ok(())
    }

    /// WRITE SAME (SBC-3, 5.43 and 5.44).
    pub(super) fn begin_write_same(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Step {
        match self.prepare_same(cx, cdb) {
            Ok(()) if self.job.len == 0 => self.good(cx),
            Ok(()) if self.job.no_data && cx.nexus.unit().write_zeroes => {
                self.enter(cx, After::Zero)
            }
            Ok(()) => self.with_scratch(cx, After::Same),
            Err(sense) => Step::Done(Done::check(sense)),
        }
    }

    fn prepare_same(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Result<(), Sense> {
        let unit = cx.nexus.unit();
        let (anchor, unmap) = (cdb[1] & 0x10 != 0, cdb[1] & 0x08 != 0);
        let no_data = cdb[0] == 0x93 && cdb[1] & 0x01 != 0;
        unprotected(cdb)?;
        // First: a client that may not write at all is told so whatever it wanted.
        writable(unit)?;
        if anchor {
            // Nothing can be anchored (ANC_SUP 0), and without UNMAP it would mean nothing.
            return Err(Sense::cdb_bit(1, 4));
        }
        if unmap && !unit.thin {
            return Err(Sense::cdb_bit(1, 3));
        }
        if cdb[1] & 0x06 != 0 {
            // PBDATA and LBDATA of SBC-2 change the data; whoever still means them must not be ignored.
            return Err(Sense::cdb_bit(1, 2));
        }
        let extent = Extent::of(cdb).to_the_end(unit)?.at_most(WRITE_SAME_BLOCKS_MAX)?;
        let block = u64::from(unit.block_size());
        let wanted = if no_data { 0 } else { block };
        if !no_data && cx.data_out.len != block {
            // More or fewer bytes than one block: the client means something else.
            return Err(Sense::illegal(code::INVALID_FIELD_IN_CDB));
        }
        let (at, len) = extent.bytes(unit);
        let fua = durable(unit, &[0; 16]);
        self.job = Job { at, len, wanted, moved: wanted, fua, unmap, no_data, ..Job::NOTHING };
        Ok(())
    }

    /// COMPARE AND WRITE (SBC-3, 5.2).
    pub(super) fn begin_compare_and_write(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Step {
        match self.prepare_compare(cx, cdb) {
            Ok(()) if self.job.len == 0 => self.good(cx),
            Ok(()) => self.with_scratch(cx, After::Compare),
            Err(sense) => Step::Done(Done::check(sense)),
        }
    }

    fn prepare_compare(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Result<(), Sense> {
        let unit = cx.nexus.unit();
        unprotected(cdb)?;
        writable(unit)?;
        let extent = Extent { lba: be64(cdb, 2), blocks: u64::from(cdb[13]), length_at: 13 };
        let extent = extent.at_most(unit.compare_blocks_max().into())?.inside(unit)?;
        let (at, len) = extent.bytes(unit);
        let wanted = 2 * len;
        if cx.data_out.len != wanted {
            return Err(Sense::cdb(13));
        }
        let fua = durable(unit, cdb);
        self.job = Job { at, len, wanted, moved: wanted, fua, ..Job::NOTHING };
        Ok(())
    }

    /// SYNCHRONIZE CACHE (SBC-3, 5.22 and 5.23). All of the cache, whatever the range; IMMED is answered when it is done.
    pub(super) fn begin_synchronize(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Step {
        let unit = cx.nexus.unit();
        if let Err(sense) = Extent::of(cdb).inside(unit) {
            return Step::Done(Done::check(sense));
        }
        self.job = Job::NOTHING;
        self.flush()
    }

    /// Also of a volume that keeps nothing back: of a write that failed something may lie before the medium, where reads find it.
    pub(super) fn flush(&mut self) -> Step {
        self.submit(Out::Flush, OpKind::Flush, 0, 0, Memory::None)
    }

    /// UNMAP (SBC-3, 5.24). All descriptors are checked before the first is obeyed, and each again when its turn comes, since
    /// the client may have changed it.
    pub(super) fn begin_unmap(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Step {
        match self.prepare_unmap(cx, cdb) {
            Ok(()) => self.next_unmap(cx),
            Err(sense) => Step::Done(Done::check(sense)),
        }
    }

    fn prepare_unmap(&mut self, cx: &Context<'_>, cdb: &[u8; 16]) -> Result<(), Sense> {
        let unit = cx.nexus.unit();
        if cdb[1] & 1 != 0 {
            return Err(Sense::cdb_bit(1, 0));
        }
        writable(unit)?;
        let wanted = u64::from(be16(cdb, 7));
        let moved = wanted.min(cx.data_out.len);
        self.job = Job { wanted, moved, ..Job::NOTHING };
        if wanted == 0 {
            return Ok(());
        }
        let mut header = [0; 8];
        let too_short = Sense::illegal(code::PARAMETER_LIST_LENGTH);
        if moved < 8 || cx.data_out.read(0, &mut header) < 8 {
            return Err(too_short);
        }
        let bytes = u64::from(be16(&header, 2));
        if bytes + 8 > moved {
            return Err(too_short);
        }
        let count = bytes / 16;
        if count > u64::from(UNMAP_DESCRIPTORS_MAX) {
            return Err(Sense::parameter(2));
        }
        let mut sum = 0;
        for index in 0..count {
            let extent = unmap_descriptor(cx, index).ok_or(too_short)?.inside(unit)?;
            sum += extent.blocks;
            if sum > u64::from(UNMAP_BLOCKS_MAX) {
                // At most 256 descriptors: the offset is small.
                return Err(Sense::parameter((8 + 16 * index + 8) as u16));
            }
        }
        // At most UNMAP_DESCRIPTORS_MAX.
        self.job.extents = count as u16;
        Ok(())
    }

    /// The next descriptor with blocks, or the end.
    pub(super) fn next_unmap(&mut self, cx: &Context<'_>) -> Step {
        while self.job.extents_done < self.job.extents {
            match self.unmap_extent(cx) {
                Ok(extent) if extent.blocks == 0 => self.job.extents_done += 1,
                Ok(_) => return self.enter(cx, After::Unmap),
                Err(sense) => return self.fail(cx, sense),
            }
        }
        self.good(cx)
    }

    /// The descriptor whose turn it is, checked.
    pub(super) fn unmap_extent(&self, cx: &Context<'_>) -> Result<Extent, Sense> {
        let extent = unmap_descriptor(cx, self.job.extents_done.into());
        extent.ok_or(Sense::illegal(code::PARAMETER_LIST_LENGTH))?.inside(cx.nexus.unit())
    }

    #[inline]
    pub(super) fn good(&mut self, cx: &Context<'_>) -> Step {
        let Job { wanted, moved, .. } = self.job;
        self.done(cx, Done::good(wanted, moved))
    }
}

/// A descriptor of an UNMAP, read once.
fn unmap_descriptor(cx: &Context<'_>, index: u64) -> Option<Extent> {
    let mut bytes = [0; 16];
    let whole = cx.data_out.read(8 + 16 * index, &mut bytes) == 16;
    let (lba, blocks) = (be64(&bytes, 0), u64::from(be32(&bytes, 8)));
    whole.then_some(Extent { lba, blocks, length_at: 8 })
}

/// What a read may not be: the reason is looked for only when there is one.
fn check(unit: &LogicalUnit, cdb: &[u8; 16], extent: Extent) -> Result<(), Sense> {
    unprotected(cdb)?;
    extent.inside(unit)?.transferable(unit)?;
    Ok(())
}

fn check_write(unit: &LogicalUnit, cdb: &[u8; 16], extent: Extent) -> Result<(), Sense> {
    unprotected(cdb)?;
    writable(unit)?;
    check(unit, cdb, extent)
}

#[cold]
fn refuse(unit: &LogicalUnit, cdb: &[u8; 16], extent: Extent) -> Step {
    // The capacity may have grown since; then the command is only too early.
    let sense = check(unit, cdb, extent).err().unwrap_or(OUT_OF_RANGE);
    Step::Done(Done::check(sense))
}

#[cold]
fn refuse_write(unit: &LogicalUnit, cdb: &[u8; 16], extent: Extent) -> Step {
    let sense = check_write(unit, cdb, extent).err().unwrap_or(OUT_OF_RANGE);
    Step::Done(Done::check(sense))
}
