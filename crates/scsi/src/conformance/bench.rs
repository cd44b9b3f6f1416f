//! [`Bench`]: a logical unit over a lane of a volume, and clients.

use std::sync::Arc;

use block::conformance::TestBench;
use block::{OpKind, Volume};
use memory::IoBuf;

use crate::{
    BlockRequest, Context, Data, Done, Identity, InitiatorId, Input, LogicalUnit, Lun, Memory, Naa,
    Nexus, NexusId, Persistent, Residual, SCRATCH_BYTES, SENSE_BYTES_MAX, Sense, Status, Step,
    Task, UnitSpec, Writer,
};

/// Bytes of each client buffer.
const ROOM: usize = 4 << 20;

/// A logical unit, a volume under it, and the transport between.
pub struct Bench {
    volume: TestBench,
    unit: Arc<LogicalUnit>,
    writer: Writer,
    luns: Vec<Lun>,
    stored: Option<Persistent>,
    aborted: Vec<NexusId>,
    /// Storing succeeds.
    pub can_store: bool,
    /// Data-out and data-in are cut into pieces of so many bytes.
    pub piece: usize,
    requests: u64,
}

/// What a client gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Status.
    pub status: Status,
    /// What is wrong.
    pub sense: Option<Sense>,
    /// The data-in bytes that were filled.
    pub data: Vec<u8>,
    /// Against the buffer of the command's direction.
    pub residual: Residual,
}

impl Bench {
    /// A disk over a volume, as `change` wants it.
    ///
    /// # Panics
    ///
    /// When there is no lane to be had.
    #[must_use]
    pub fn new(volume: &dyn Volume, change: &dyn Fn(&mut UnitSpec)) -> Bench {
        let identity = Identity::new("0123456789", Naa::local(0x1234_5678));
        let mut spec = UnitSpec::new(identity, volume.geometry());
        change(&mut spec);
        let unit = LogicalUnit::new(spec);
        Bench {
            volume: TestBench::new(volume, SCRATCH_BYTES + 2 * ROOM),
            writer: unit.writer(),
            unit,
            luns: [0, 1, 300].into_iter().filter_map(Lun::new).collect(),
            stored: None,
            aborted: Vec::new(),
            can_store: true,
            piece: ROOM,
            requests: 0,
        }
    }

    /// The logical unit.
    #[must_use]
    pub fn unit(&self) -> &Arc<LogicalUnit> {
        &self.unit
    }

    /// The LUNs that REPORT LUNS names.
    #[must_use]
    pub fn luns(&self) -> &[Lun] {
        &self.luns
    }

    /// What was stored last.
    #[must_use]
    pub fn stored(&self) -> Option<&Persistent> {
        self.stored.as_ref()
    }

    /// Whose commands were to be aborted, since the last call.
    pub fn take_aborted(&mut self) -> Vec<NexusId> {
        std::mem::take(&mut self.aborted)
    }

    /// Writes bytes that differ all over the volume, past the logical unit.
    ///
    /// # Panics
    ///
    /// When the volume does not take them.
    pub fn fill_volume(&mut self) {
        let mut at = 0;
        while at < self.unit.bytes() {
            let len = (self.unit.bytes() - at).min(ROOM as u64);
            let buf = self.volume.buf(SCRATCH_BYTES, usize::try_from(len).expect("small"));
            let bytes: Vec<u8> = (at..at + len).map(|at| (at * 7 + at / 2048 + 1) as u8).collect();
            buf.write(0, &bytes);
            let write = OpKind::Write { fua: false };
            assert_eq!(self.volume.run(write, at, len, &[buf]), Ok(()));
            at += len;
        }
    }

    /// Bytes of the volume, past the logical unit.
    ///
    /// # Panics
    ///
    /// When they cannot be read.
    pub fn volume_bytes(&mut self, at: u64, len: usize) -> Vec<u8> {
        let buf = self.volume.buf(SCRATCH_BYTES, len);
        assert_eq!(self.volume.run(OpKind::Read, at, len as u64, &[buf]), Ok(()));
        self.volume.bytes(SCRATCH_BYTES, len)
    }

    /// How many requests the volume has got.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The name of a client by number, through target port 1.
    #[must_use]
    pub fn name(client: u64) -> NexusId {
        NexusId { initiator: InitiatorId::Fc(0xc050_7600_0000_0000 | client), port: 1 }
    }

    /// A client that was told POWER ON already.
    #[must_use]
    pub fn client(&mut self, client: u64) -> Nexus {
        let nexus = self.unit.attach(Bench::name(client), Some(0x5005_0768_0000_0001));
        let told = self.command(&nexus, &[0; 6], &[], 0);
        assert_eq!(told.sense.map(|sense| sense.code), Some(crate::code::POWER_ON));
        nexus
    }

    /// Pieces of memory from `at` on.
    fn pieces(&self, at: usize, len: usize) -> Vec<IoBuf> {
        let piece = self.piece.max(1);
        let starts = (0..len).step_by(piece);
        starts.map(|from| self.volume.buf(at + from, piece.min(len - from))).collect()
    }

    /// One command from beginning to end.
    ///
    /// # Panics
    ///
    /// When the core breaks its contract.
    pub fn command(&mut self, nexus: &Nexus, cdb: &[u8], out: &[u8], room: usize) -> Answer {
        const MARK: u8 = 0x5a;
        assert!(out.len() <= ROOM && room <= ROOM, "larger than the bench's buffers");
        if !out.is_empty() {
            self.volume.buf(SCRATCH_BYTES, out.len()).write(0, out);
        }
        let (outs, ins) =
            (self.pieces(SCRATCH_BYTES, out.len()), self.pieces(SCRATCH_BYTES + ROOM, room));
        ins.iter().for_each(|buf| buf.fill(MARK));
        let done = self.drive(nexus, cdb, &Data::new(&outs), &Data::new(&ins));
        let data = self.volume.bytes(SCRATCH_BYTES + ROOM, room);
        let residual = done.residual(if room > 0 { room as u64 } else { out.len() as u64 });
        let filled = if room > 0 { usize::try_from(done.moved).expect("in the buffer") } else { 0 };
        assert!(filled <= room, "{done:?} in {room} bytes");
        let good = done.status == Status::Good;
        assert!(!good || data[filled..].iter().all(|byte| *byte == MARK), "beyond what was moved");
        assert_eq!(done.sense.is_some(), done.status == Status::CheckCondition, "{done:?}");
        if let Some(sense) = done.sense {
            let mut bytes = [0; SENSE_BYTES_MAX];
            assert!(sense.encode(nexus.descriptor_sense(), &mut bytes) >= 8);
        }
        let data = if good { data[..filled].to_vec() } else { Vec::new() };
        Answer { status: done.status, sense: done.sense, data, residual }
    }

    fn drive(&mut self, nexus: &Nexus, cdb: &[u8], out: &Data<'_>, input: &Data<'_>) -> Done {
        let mut task = Task::new();
        let mut scratch = IoBuf::EMPTY;
        let mut step = None;
        for _ in 0..1_000_000 {
            let luns = self.luns.clone();
            let cx = Context {
                nexus,
                writer: &self.writer,
                luns: &luns,
                data_out: *out,
                data_in: *input,
                scratch,
            };
            let answer = match step.take() {
                None => task.begin(&cx, cdb),
                Some(Step::Done(done)) => {
                    assert!(task.is_idle(), "ended and not idle");
                    return done;
                }
                Some(Step::Submit(request)) => {
                    let result = self.submit(&request, out, input, scratch);
                    task.resume(&self.context(nexus, &luns, out, input, scratch), result)
                }
                Some(Step::Scratch) => {
                    scratch = self.volume.buf(0, SCRATCH_BYTES);
                    task.resume(&self.context(nexus, &luns, out, input, scratch), Input::Ready)
                }
                Some(Step::Wait) => panic!("nobody is in the way of {cdb:x?}"),
                Some(Step::Store(state)) => {
                    if self.can_store {
                        let bytes = state.encode();
                        assert_eq!(Persistent::decode(&bytes).as_ref(), Ok(&*state));
                        self.stored = Some(*state);
                    }
                    let stored = Input::Stored(self.can_store);
                    task.resume(&self.context(nexus, &luns, out, input, scratch), stored)
                }
                Some(Step::Abort(whose)) => {
                    self.aborted.extend(whose);
                    task.resume(&cx, Input::Ready)
                }
            };
            step = Some(answer);
        }
        panic!("{cdb:x?} never ends")
    }

    fn context<'a>(
        &'a self,
        nexus: &'a Nexus,
        luns: &'a [Lun],
        data_out: &Data<'a>,
        data_in: &Data<'a>,
        scratch: IoBuf,
    ) -> Context<'a> {
        let (data_out, data_in) = (*data_out, *data_in);
        Context { nexus, writer: &self.writer, luns, data_out, data_in, scratch }
    }

    /// What a device does with a request, and what it relies on.
    fn submit(
        &mut self,
        request: &BlockRequest,
        out: &Data<'_>,
        input: &Data<'_>,
        scratch: IoBuf,
    ) -> Input {
        let BlockRequest { op, offset, len, memory, .. } = *request;
        let block = u64::from(self.unit.block_size());
        assert_eq!((offset | len) % block, 0, "{request:?}");
        assert!(offset + len <= self.unit.bytes(), "{request:?}");
        let moves = matches!(op, OpKind::Read | OpKind::Write { .. });
        assert_eq!(moves, memory != Memory::None, "{request:?}");
        let mut bufs = Vec::new();
        let whole = match memory {
            Memory::None => true,
            Memory::DataOut(skip) => op != OpKind::Read && out.slice(skip, len, &mut bufs),
            Memory::DataIn(skip) => op == OpKind::Read && input.slice(skip, len, &mut bufs),
            Memory::Scratch => {
                let len = usize::try_from(len).expect("small");
                bufs.push(scratch.slice(0, len));
                len > 0
            }
        };
        assert!(whole, "{request:?} without its memory");
        self.requests += 1;
        Input::Block(self.volume.run(op, offset, len, &bufs))
    }
}

impl Answer {
    /// Asserts success and gives the data.
    ///
    /// # Panics
    ///
    /// When the command failed.
    #[must_use]
    pub fn good(self) -> Vec<u8> {
        assert_eq!(self.status, Status::Good, "{:x?}", self.sense);
        self.data
    }

    /// The sense code.
    ///
    /// # Panics
    ///
    /// When there is no sense data.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.sense.unwrap_or_else(|| panic!("{:?} without sense data", self.status)).code
    }
}
