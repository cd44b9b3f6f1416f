//! How a command goes on: from each stage to the next.

use block::{IoError, OpKind};
use memory::IoBuf;

use super::decode::Compare;
use super::medium::{After, Out, Stage};
use super::{BlockRequest, Context, Done, Input, Memory, SCRATCH_BYTES, Step, Task};
use crate::data::is_zero;
use crate::sense::{Sense, SenseKey, code};

impl Task {
    /// Goes on from the stage that the task is in.
    #[inline]
    pub(super) fn proceed(&mut self, cx: &Context<'_>, input: Input) -> Step {
        match (self.stage, input) {
            (Stage::Out(out), Input::Block(Ok(()))) => self.came_back(cx, out),
            (_, input) => self.proceed_otherwise(cx, input),
        }
    }

    #[cold]
    fn proceed_otherwise(&mut self, cx: &Context<'_>, input: Input) -> Step {
        match (self.stage, input) {
            (Stage::Out(out), Input::Block(Err(error))) => self.fail(cx, io_sense(out, error)),
            (Stage::Scratch(after), Input::Ready) => {
                let step = self.with_scratch(cx, after);
                self.again(step)
            }
            (Stage::Enter(after), Input::Ready) => {
                let step = self.enter(cx, after);
                self.again(step)
            }
            (Stage::Claim, Input::Ready) => self.claim(cx),
            (Stage::Alone, Input::Ready) => self.alone(cx),
            (Stage::Store, Input::Stored(stored)) => self.stored(cx, stored),
            (Stage::Aborting, Input::Ready) => self.good(cx),
            (stage, input) => panic!("{input:?} is no answer to {stage:?}"),
        }
    }

    #[inline]
    pub(super) fn submit(
        &mut self,
        out: Out,
        op: OpKind,
        offset: u64,
        len: u64,
        memory: Memory,
    ) -> Step {
        self.stage = Stage::Out(out);
        Step::Submit(BlockRequest { op, offset, len, memory, passed: 0 })
    }

    /// A request that may be the one that was set aside: those that have let it through do so again. COMPARE AND WRITE keeps the marks, since
    /// it may have to begin anew more than once.
    fn again(&mut self, mut step: Step) -> Step {
        if let (Step::Submit(request), Stage::Out(out)) = (&mut step, self.stage)
            && out != Out::CompareRead
        {
            request.passed = std::mem::take(&mut self.passed[usize::from(request.op.writes())]);
        }
        step
    }

    /// Asks for scratch memory, if there is none yet, and goes on.
    pub(super) fn with_scratch(&mut self, cx: &Context<'_>, after: After) -> Step {
        if cx.scratch.is_empty() {
            self.stage = Stage::Scratch(after);
            return Step::Scratch;
        }
        assert!(cx.scratch.len() >= SCRATCH_BYTES, "scratch memory is too small");
        match after {
            After::Tail => {
                let block = u64::from(cx.nexus.unit().block_size());
                let whole = self.job.moved & !(block - 1);
                let at = self.job.at + whole;
                self.submit(Out::Tail, OpKind::Read, at, block, Memory::Scratch)
            }
            After::Verify => self.verify_next(),
            After::Same => self.same(cx),
            After::SameAgain => {
                self.repeat(cx);
                self.enter(cx, After::Same)
            }
            After::Compare => self.claim(cx),
            After::Write | After::Zero | After::Unmap | After::UnmapAgain => self.enter(cx, after),
        }
    }

    /// Asks for the permit to write, and goes on.
    #[inline]
    pub(super) fn enter(&mut self, cx: &Context<'_>, after: After) -> Step {
        let (at, len) = match after {
            After::Unmap => match self.unmap_extent(cx) {
                Ok(extent) => {
                    (self.job.at, self.job.len) = extent.bytes(cx.nexus.unit());
                    (self.job.at, self.job.len)
                }
                Err(sense) => return self.fail(cx, sense),
            },
            _ => (self.job.at, self.job.len),
        };
        if len == 0 {
            return self.good(cx);
        }
        let Some(permit) = cx.writer.enter(at..at + len) else {
            self.stage = Stage::Enter(match after {
                After::Unmap => After::UnmapAgain,
                after => after,
            });
            return Step::Wait;
        };
        self.permit = Some(permit);
        let fua = self.job.fua;
        match after {
            After::Write => {
                let op = OpKind::Write { fua };
                self.submit(Out::Write, op, at, len, Memory::DataOut(0))
            }
            After::Same => self.same_next(),
            After::Zero => {
                let op = OpKind::WriteZeroes { unmap: self.job.unmap, fua };
                self.submit(Out::Zero, op, at, len, Memory::None)
            }
            _ => {
                let zeroes = cx.nexus.unit().unmapped_is_zero;
                let zero = OpKind::WriteZeroes { unmap: true, fua: false };
                let op = if zeroes { zero } else { OpKind::Discard };
                self.submit(Out::Unmap, op, at, len, Memory::None)
            }
        }
    }

    /// The volume has done what it was asked for.
    #[inline]
    fn came_back(&mut self, cx: &Context<'_>, out: Out) -> Step {
        match out {
            Out::Write if self.job.compare.is_none() => self.good(cx),
            Out::Zero | Out::CompareWrite | Out::Flush => self.good(cx),
            Out::Read => self.read_tail(cx),
            _ => self.came_back_with_more(cx, out),
        }
    }

    #[cold]
    fn came_back_with_more(&mut self, cx: &Context<'_>, out: Out) -> Step {
        match out {
            Out::FlushBeforeRead => self.read_whole(cx),
            Out::Tail => {
                let block = u64::from(cx.nexus.unit().block_size());
                let whole = self.job.moved & !(block - 1);
                // Less than a block.
                let rest = (self.job.moved - whole) as usize;
                cx.data_in.write_buf(whole, cx.scratch.slice(0, rest));
                self.good(cx)
            }
            Out::Write => {
                self.release(cx);
                self.with_scratch(cx, After::Verify)
            }
            Out::Verify => self.verified(cx),
            Out::Same => {
                self.job.done += self.piece();
                if self.job.done == self.job.len { self.good(cx) } else { self.same_next() }
            }
            Out::Unmap => {
                self.release(cx);
                self.job.extents_done += 1;
                self.next_unmap(cx)
            }
            Out::CompareRead => self.compared(cx),
            _ => self.good(cx),
        }
    }

    /// Bytes of the next round through the scratch memory.
    fn piece(&self) -> u64 {
        (self.job.len - self.job.done).min(SCRATCH_BYTES as u64)
    }

    /// Reads the next piece.
    fn verify_next(&mut self) -> Step {
        let (at, len) = (self.job.at + self.job.done, self.piece());
        self.submit(Out::Verify, OpKind::Read, at, len, Memory::Scratch)
    }

    /// A piece of the medium is in the scratch memory.
    fn verified(&mut self, cx: &Context<'_>) -> Step {
        // At most the scratch memory's length.
        let read = cx.scratch.slice(0, self.piece() as usize);
        let difference = match self.job.compare {
            Some(Compare::All) => {
                let found = cx.data_out.differs(self.job.done, read);
                found.map(|at| self.job.done + at as u64)
            }
            Some(Compare::OneBlock) => {
                let block = cx.nexus.unit().block_size() as usize;
                let mut blocks = (0..read.len()).step_by(block).map(|at| read.slice(at, block));
                blocks.find_map(|each| cx.data_out.differs(0, each)).map(|at| at as u64)
            }
            Some(Compare::Nothing) | None => None,
        };
        if let Some(at) = difference {
            return self.fail(cx, miscompare(at));
        }
        self.job.done += read.len() as u64;
        if self.job.done == self.job.len { self.good(cx) } else { self.verify_next() }
    }

    /// The block of a WRITE SAME: zeroes are the volume's business, anything else is repeated in the scratch memory.
    fn same(&mut self, cx: &Context<'_>) -> Step {
        let first = self.repeat(cx);
        if cx.nexus.unit().write_zeroes && is_zero(first) {
            return self.enter(cx, After::Zero);
        }
        self.enter(cx, After::Same)
    }

    /// Fills the scratch memory with the block of a WRITE SAME.
    fn repeat(&self, cx: &Context<'_>) -> IoBuf {
        let block = cx.nexus.unit().block_size() as usize;
        let first = cx.scratch.slice(0, block);
        first.fill(0);
        if !self.job.no_data {
            cx.data_out.read_buf(0, first);
        }
        // At most the scratch memory's length.
        let len = self.piece() as usize;
        for at in (block..len).step_by(block) {
            cx.scratch.slice(at, block).copy_from(first);
        }
        first
    }

    /// Writes the next piece.
    fn same_next(&mut self) -> Step {
        let (at, len) = (self.job.at + self.job.done, self.piece());
        let op = OpKind::Write { fua: self.job.fua };
        self.submit(Out::Same, op, at, len, Memory::Scratch)
    }

    /// COMPARE AND WRITE: first nobody else may write there.
    fn claim(&mut self, cx: &Context<'_>) -> Step {
        let Some(claim) = cx.writer.claim(self.job.at..self.job.at + self.job.len) else {
            self.stage = Stage::Claim;
            return Step::Wait;
        };
        self.claim = Some(claim);
        self.alone(cx)
    }

    /// Then those who already do must have finished; then it reads.
    fn alone(&mut self, cx: &Context<'_>) -> Step {
        if !self.claim.is_some_and(|claim| cx.writer.is_exclusive(claim)) {
            self.stage = Stage::Alone;
            return Step::Wait;
        }
        let (at, len) = (self.job.at, self.job.len);
        let step = self.submit(Out::CompareRead, OpKind::Read, at, len, Memory::Scratch);
        with_marks(step, self.passed[0])
    }

    /// Then it compares with the first half of the data, and writes the second half.
    fn compared(&mut self, cx: &Context<'_>) -> Step {
        let len = self.job.len;
        // At most the scratch memory's length: it was checked.
        let read = cx.scratch.slice(0, len as usize);
        if let Some(at) = cx.data_out.differs(0, read) {
            return self.fail(cx, miscompare(at as u64));
        }
        let op = OpKind::Write { fua: self.job.fua };
        let step = self.submit(Out::CompareWrite, op, self.job.at, len, Memory::DataOut(len));
        with_marks(step, self.passed[1])
    }

    /// The reservations are stored, or could not be.
    fn stored(&mut self, cx: &Context<'_>, stored: bool) -> Step {
        let abort = cx.nexus.stored(stored);
        if !stored {
            return self.fail(cx, Sense::new(SenseKey::HardwareError, code::INTERNAL_FAILURE));
        }
        self.abort_others(cx, abort)
    }

    pub(super) fn abort_others(
        &mut self,
        cx: &Context<'_>,
        whose: Vec<crate::nexus::NexusId>,
    ) -> Step {
        if whose.is_empty() || memory::planted("preempt-leaves") {
            let moved = self.job.moved;
            return self.done(cx, Done::good(self.job.wanted, moved));
        }
        self.stage = Stage::Aborting;
        Step::Abort(whose)
    }
}

fn with_marks(step: Step, passed: u8) -> Step {
    match step {
        Step::Submit(request) => Step::Submit(BlockRequest { passed, ..request }),
        step => step,
    }
}

/// INFORMATION is the offset of the first byte that differs (SBC-3, 5.2 and 5.25).
fn miscompare(at: u64) -> Sense {
    Sense::new(SenseKey::Miscompare, code::MISCOMPARE).with_information(at)
}

/// What the client is told of an error of the volume.
#[cold]
fn io_sense(out: Out, error: IoError) -> Sense {
    let reading = matches!(out, Out::Read | Out::Tail | Out::Verify | Out::CompareRead);
    let (key, code) = match error {
        IoError::Io | IoError::Fenced if reading => (SenseKey::MediumError, code::READ_ERROR),
        IoError::Io | IoError::Fenced => (SenseKey::MediumError, code::WRITE_ERROR),
        IoError::NoSpace => (SenseKey::DataProtect, code::SPACE_ALLOCATION_FAILED),
        IoError::Unsupported => (SenseKey::IllegalRequest, code::INVALID_OPCODE),
        IoError::OutOfRange => (SenseKey::IllegalRequest, code::LBA_OUT_OF_RANGE),
        IoError::ReadOnly => (SenseKey::DataProtect, code::WRITE_PROTECTED),
        IoError::Gone => (SenseKey::NotReady, code::MANUAL_INTERVENTION),
    };
    Sense::new(key, code)
}
