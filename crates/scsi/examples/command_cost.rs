//! Counts what one READ(10) or WRITE(10) costs from its CDB to its status, with the volume left out.
//!
//! One measured call serves a batch of 32 commands: begin, take the request, answer it, take the status. Arguments: batches, then
//! `write` for writes. `cargo xtask test --only cost` can run it under callgrind.

use block::Geometry;
use memory::{IoBuf, Lasting};
use scsi::{
    Context, Data, Identity, InitiatorId, Input, LogicalUnit, Naa, NexusId, Status, Step, Task,
    UnitSpec,
};

const BATCH: u8 = 32;

/// The measured function: what a device does for a batch whose requests the volume serves at once.
#[inline(never)]
fn serve_batch(task: &mut Task, cx: &Context<'_>, opcode: u8) -> u64 {
    let mut bytes = 0;
    for lba in 0..BATCH {
        let mut cdb = [0; 32];
        (cdb[0], cdb[5], cdb[8]) = (opcode, lba, 8);
        let Step::Submit(request) = task.begin(cx, &cdb) else { panic!("a sane command") };
        bytes += request.len;
        let Step::Done(done) = task.resume(cx, Input::Block(Ok(()))) else { panic!("one request") };
        assert_eq!(done.status, Status::Good);
    }
    bytes
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let batches: u64 = arguments.first().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let write = arguments.iter().any(|argument| argument == "write");
    let geometry = Geometry {
        bytes: 1 << 30,
        block_size: 512,
        physical_block_size: 4096,
        optimal_io_size: 0,
        discard: true,
        write_zeroes: true,
        read_only: false,
        write_cache: true,
    };
    let unit = LogicalUnit::new(UnitSpec::new(Identity::new("cost", Naa::local(1)), geometry));
    let id = NexusId { initiator: InitiatorId::Fc(1), port: 1 };
    let nexus = unit.attach(id, None);
    let writer = unit.writer();
    let memory = Lasting::new(4096).expect("memory");
    let bufs = [memory.buf(0, 4096).expect("inside")];
    let (data_out, data_in) =
        if write { (Data::new(&bufs), Data::NONE) } else { (Data::NONE, Data::new(&bufs)) };
    let scratch = IoBuf::EMPTY;
    let cx = Context { nexus: &nexus, writer: &writer, luns: &[], data_out, data_in, scratch };
    let mut task = Task::new();
    // The first command is told POWER ON.
    assert!(matches!(task.begin(&cx, &[0; 6]), Step::Done(_)));
    let opcode = if write { 0x2a } else { 0x28 };
    let bytes: u64 = (0..batches).map(|_| serve_batch(&mut task, &cx, opcode)).sum();
    assert_eq!(bytes, batches * u64::from(BATCH) * 4096);
}
