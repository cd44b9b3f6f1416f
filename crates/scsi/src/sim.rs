//! A disk of bytes and a client's memory, for tests that need no real volume: requests are carried out when the test says so.

use block::{Geometry, IoError, OpKind};
use memory::{IoBuf, Lasting};

use crate::{
    BlockRequest, Context, Data, Done, Identity, Input, LogicalUnit, Lun, Memory, Naa, Nexus,
    SCRATCH_BYTES, Step, Task, UnitSpec, Writer,
};

/// Bytes of each of a client's two buffers.
pub(crate) const ROOM: usize = 64 * 1024;

/// The bytes of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) bytes: Vec<u8>,
    pub(crate) block: u64,
}

impl Disk {
    pub(crate) fn new(blocks: usize, block: u32) -> Disk {
        Disk { bytes: vec![0; blocks * block as usize], block: block.into() }
    }

    pub(crate) fn geometry(&self) -> Geometry {
        Geometry {
            bytes: self.bytes.len() as u64,
            block_size: u32::try_from(self.block).expect("small"),
            physical_block_size: 4096,
            optimal_io_size: 0,
            discard: true,
            write_zeroes: true,
            read_only: false,
            write_cache: true,
        }
    }

    pub(crate) fn spec(&self) -> UnitSpec {
        UnitSpec::new(Identity::new("sim", Naa::local(7)), self.geometry())
    }

    /// Carries a request out, and checks that it is one that a volume may get.
    pub(crate) fn carry_out(
        &mut self,
        request: &BlockRequest,
        slot: &Slot,
        scratch: IoBuf,
    ) -> Result<(), IoError> {
        let BlockRequest { op, offset, len, memory, .. } = *request;
        assert_eq!((offset | len) % self.block, 0, "{request:?}");
        let end = offset.checked_add(len).expect("no overflow");
        assert!(end <= self.bytes.len() as u64, "{request:?}");
        let range = offset as usize..end as usize;
        let mut bufs = Vec::new();
        let whole = match memory {
            Memory::None => !matches!(op, OpKind::Read | OpKind::Write { .. }),
            Memory::DataOut(skip) => slot.data_out().slice(skip, len, &mut bufs),
            Memory::DataIn(skip) => slot.data_in().slice(skip, len, &mut bufs),
            Memory::Scratch => {
                bufs.push(scratch.slice(0, len as usize));
                true
            }
        };
        assert!(whole, "{request:?} without its memory");
        let part = &mut self.bytes[range];
        let data = Data::new(&bufs);
        match op {
            OpKind::Read => {
                assert!(!matches!(memory, Memory::DataOut(_)));
                assert_eq!(data.write(0, part), part.len());
            }
            OpKind::Write { .. } => {
                assert!(!matches!(memory, Memory::DataIn(_)));
                assert_eq!(data.read(0, part), part.len());
            }
            OpKind::Flush => {}
            OpKind::Discard | OpKind::WriteZeroes { .. } => part.fill(0),
        }
        Ok(())
    }
}

/// A client's buffers and a task.
pub(crate) struct Slot {
    memory: Lasting,
    out: Vec<IoBuf>,
    input: Vec<IoBuf>,
    pub(crate) task: Task,
    has_scratch: bool,
}

impl Slot {
    pub(crate) fn new() -> Slot {
        let memory = Lasting::new(SCRATCH_BYTES + 2 * ROOM).expect("memory");
        Slot { memory, out: Vec::new(), input: Vec::new(), task: Task::new(), has_scratch: false }
    }

    /// Fills the data-out buffer and makes room for data-in, in pieces.
    pub(crate) fn prepare(&mut self, out: &[u8], room: usize, piece: usize) {
        let cut = |from: usize, len: usize| {
            let starts = (0..len).step_by(piece.max(1));
            let buf = |at| self.memory.buf(from + at, piece.max(1).min(len - at)).expect("inside");
            starts.map(buf).collect()
        };
        (self.out, self.input) = (cut(SCRATCH_BYTES, out.len()), cut(SCRATCH_BYTES + ROOM, room));
        if !out.is_empty() {
            let all = self.memory.buf(SCRATCH_BYTES, out.len()).expect("inside");
            all.write(0, out);
        }
        self.has_scratch = false;
    }

    pub(crate) fn data_out(&self) -> Data<'_> {
        Data::new(&self.out)
    }

    pub(crate) fn data_in(&self) -> Data<'_> {
        Data::new(&self.input)
    }

    #[cfg(test)]
    pub(crate) fn read(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        assert_eq!(self.data_in().read(0, &mut bytes), len);
        bytes
    }

    pub(crate) fn scratch(&self) -> IoBuf {
        if self.has_scratch {
            self.memory.buf(0, SCRATCH_BYTES).expect("inside")
        } else {
            IoBuf::EMPTY
        }
    }

    fn with<T>(
        &mut self,
        nexus: &Nexus,
        writer: &Writer,
        luns: &[Lun],
        call: impl FnOnce(&mut Task, &Context<'_>) -> T,
    ) -> T {
        let mut task = std::mem::take(&mut self.task);
        let cx = Context {
            nexus,
            writer,
            luns,
            data_out: self.data_out(),
            data_in: self.data_in(),
            scratch: self.scratch(),
        };
        let result = call(&mut task, &cx);
        self.task = task;
        result
    }

    pub(crate) fn begin(&mut self, nexus: &Nexus, writer: &Writer, cdb: &[u8]) -> Step {
        let luns = [0, 5].map(|number| Lun::new(number).expect("small"));
        self.with(nexus, writer, &luns, |task, cx| task.begin(cx, cdb))
    }

    /// [`Input::Ready`] after [`Step::Scratch`] comes with memory.
    pub(crate) fn resume(
        &mut self,
        nexus: &Nexus,
        writer: &Writer,
        after: &Step,
        input: Input,
    ) -> Step {
        self.has_scratch |= *after == Step::Scratch;
        self.with(nexus, writer, &[], |task, cx| task.resume(cx, input))
    }

    #[cfg(test)]
    pub(crate) fn abort(&mut self, nexus: &Nexus, writer: &Writer) -> crate::Aborted {
        self.with(nexus, writer, &[], |task, cx| task.abort(cx))
    }

    #[cfg(test)]
    pub(crate) fn set_aside(&mut self, nexus: &Nexus, writer: &Writer, passed: u8) -> bool {
        let gave = self.with(nexus, writer, &[], |task, cx| task.set_aside(cx, passed));
        self.has_scratch &= !gave;
        gave
    }

    /// A command from beginning to end with nothing else under way.
    pub(crate) fn run(
        &mut self,
        disk: &mut Disk,
        nexus: &Nexus,
        writer: &Writer,
        cdb: &[u8],
    ) -> Done {
        let mut step = self.begin(nexus, writer, cdb);
        for _ in 0..100_000 {
            let input = match &step {
                Step::Done(done) => return *done,
                Step::Submit(request) => {
                    let request = *request;
                    Input::Block(disk.carry_out(&request, self, self.scratch()))
                }
                Step::Store(_) => Input::Stored(true),
                Step::Scratch | Step::Abort(_) => Input::Ready,
                Step::Wait => panic!("nobody is in the way of {cdb:x?}"),
            };
            step = self.resume(nexus, writer, &step, input);
        }
        panic!("{cdb:x?} never ends")
    }
}

/// A logical unit over a disk, as `change` wants it.
pub(crate) fn unit(disk: &Disk, change: impl FnOnce(&mut UnitSpec)) -> std::sync::Arc<LogicalUnit> {
    let mut spec = disk.spec();
    change(&mut spec);
    LogicalUnit::new(spec)
}
