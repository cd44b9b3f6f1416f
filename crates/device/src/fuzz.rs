//! A structured target for fuzzing: mostly valid requests, framed at random, then spoilt.

use block::Geometry;
use memory::{IoBuf, Mapping};

use crate::blk::{Action, Chain, Shape, kind, parse};
use crate::scsi;

/// Feeds one chain to [`parse`] and checks what must hold of every answer.
///
/// # Panics
///
/// When the answer breaks the contract of [`parse`]: that is the defect that fuzzing looks for.
pub fn fuzz_request(data: &[u8]) {
    let mut input = data.iter().copied();
    let mut byte = || input.next().unwrap_or(0);
    let geometry = Geometry {
        bytes: (1 + u64::from(byte())) << 12,
        block_size: if byte() & 1 == 0 { 512 } else { 4096 },
        physical_block_size: 4096,
        optimal_io_size: 0,
        discard: byte() & 1 == 0,
        write_zeroes: byte() & 1 == 0,
        read_only: byte() & 7 == 0,
        write_cache: true,
    };
    let shape = Shape::new(&geometry, "fuzz", false, true);
    let memory = Mapping::anonymous(1 << 16).expect("anonymous memory");
    let space = memory.buf(0, 1 << 16).expect("inside");
    let kinds =
        [kind::IN, kind::OUT, kind::FLUSH, kind::GET_ID, kind::DISCARD, kind::WRITE_ZEROES, 77];
    let kind = kinds[usize::from(byte()) % kinds.len()];
    space.write(0, &kind.to_le_bytes());
    space.write(8, &u64::from(byte()).to_le_bytes());
    space.write(16, &[byte(), 0, 0, 0, 0, 0, 0, 0, byte(), 0, 0, 0, byte() & 3, 0, 0, 0]);
    // Pieces of memory, readable ones first; by default the usual framing.
    let mut bufs = Vec::new();
    let (count, readable) = (usize::from(byte() % 9), usize::from(byte() % 9));
    let mut at = 0;
    for index in 0..count {
        let usual = [16, 512, 4096, 1][index.min(3)];
        let len = if byte() & 3 == 0 { usize::from(byte()) } else { usual };
        bufs.push(space.slice(at, len));
        at += len;
    }
    let readable = readable.min(bufs.len());
    let before = bufs.clone();
    let bytes = |bufs: &[IoBuf]| bufs.iter().map(|buf| buf.len() as u64).sum();
    let (readable_bytes, writable_bytes) = (bytes(&bufs[..readable]), bytes(&bufs[readable..]));
    let mut chain = Chain { bufs: &mut bufs, readable, readable_bytes, writable_bytes };
    let parsed = parse(&shape, &mut chain);
    check(&shape, &before, &bufs, &parsed);
}

/// Feeds one chain to the parsers of the SCSI host device, and checks what must hold of every answer.
///
/// # Panics
///
/// When the answer breaks the contract of the parsers: that is the defect that fuzzing looks for.
pub fn fuzz_scsi_request(data: &[u8]) {
    let mut input = data.iter().copied();
    let mut byte = || input.next().unwrap_or(0);
    let usual = byte() & 3 != 0;
    let (cdb, sense) = if usual { (32, 96) } else { (u32::from(byte()), 4 * u32::from(byte())) };
    let sizes = scsi::Sizes::new(cdb, sense).expect("small");
    let memory = Mapping::anonymous(1 << 16).expect("anonymous memory");
    let space = memory.buf(0, 1 << 16).expect("inside");
    for at in 0..64 {
        space.write(at, &[byte()]);
    }
    let (count, readable) = (usize::from(byte() % 12), usize::from(byte() % 12));
    let mut bufs = Vec::new();
    let mut at = 0;
    for index in 0..count {
        let usual = [sizes.header_bytes(), sizes.response_bytes(), 512, 4096][index % 4];
        let len = if byte() & 3 == 0 { usize::from(byte()) } else { usual };
        bufs.push(space.slice(at, len));
        at += len;
    }
    let readable = readable.min(count);
    let before = bufs.clone();
    if let Some(control) = scsi::control::Control::parse(&before[..readable]) {
        assert!(control.answer(scsi::Response::Failure).len <= 5);
    }
    bufs.extend(std::iter::repeat_n(IoBuf::EMPTY, usize::from(byte() & 1)));
    let room = bufs.len() > count;
    let sum = |bufs: &[IoBuf]| bufs.iter().map(|buf| buf.len() as u64).sum::<u64>();
    let (readable_bytes, writable_bytes) = (sum(&before[..readable]), sum(&before[readable..]));
    let mut chain =
        scsi::Chain { bufs: &mut bufs, total: count, readable, readable_bytes, writable_bytes };
    let mut header = scsi::Header::EMPTY;
    let (head, answer) = (sizes.header_bytes() as u64, sizes.response_bytes() as u64);
    let parsed = match scsi::parse(&sizes, &mut chain, &mut header) {
        Ok(parsed) => parsed,
        Err(scsi::Fault::TooShort) => {
            return assert!(readable_bytes < head || writable_bytes < answer);
        }
        Err(scsi::Fault::NoRoom) => return assert!(!room),
    };
    assert_eq!(
        (parsed.out_bytes, parsed.in_bytes),
        (readable_bytes - head, writable_bytes - answer)
    );
    assert_eq!(header.cdb().len(), usize::from(sizes.cdb()).min(scsi::CDB_BYTES_MAX));
    // The parts, one behind the other, are the chain without its header.
    let places = |bufs: &[IoBuf]| -> Vec<usize> {
        let each = |buf: &IoBuf| buf.as_ptr().addr()..buf.as_ptr().addr() + buf.len();
        bufs.iter().flat_map(each).collect()
    };
    let parts = [parsed.data_out, parsed.response, parsed.data_in];
    let found: Vec<usize> = parts.iter().flat_map(|part| places(part.of_bufs(&bufs))).collect();
    assert_eq!(found, places(&before)[sizes.header_bytes()..]);
    assert_eq!(sum(parsed.response.of_bufs(&bufs)), answer);
    assert_eq!(sum(parsed.data_in.of_bufs(&bufs)), parsed.in_bytes);
    let mut bytes = vec![0; sizes.header_bytes().min(64)];
    space.read(0, &mut bytes);
    assert_eq!(header.address(), bytes[..8], "the header is the start of the chain");
    let _ = scsi::Place::decode(header.address());
}

fn inside(piece: IoBuf, bufs: &[IoBuf]) -> bool {
    let (start, len) = (piece.as_ptr() as usize, piece.len());
    piece.is_empty()
        || bufs.iter().any(|buf| {
            let from = buf.as_ptr() as usize;
            start >= from && start + len <= from + buf.len()
        })
}

fn check(shape: &Shape, before: &[IoBuf], after: &[IoBuf], parsed: &crate::blk::Parsed) {
    assert!(parsed.first <= parsed.end && parsed.end <= after.len());
    assert!(parsed.status.len() <= 1 && inside(parsed.status, before));
    let data = &after[parsed.first..parsed.end];
    assert!(data.iter().all(|buf| inside(*buf, before)));
    if let Action::Submit { op, offset, len } = parsed.action {
        assert_eq!(parsed.status.len(), 1, "a request without a status byte was accepted");
        let end = offset.checked_add(len).expect("no overflow");
        assert!(end <= shape.bytes());
        assert_eq!((offset | len) % u64::from(shape.block_size()), 0);
        assert!(!(shape.read_only() && op.writes()));
        if matches!(op, block::OpKind::Read | block::OpKind::Write { .. }) {
            assert_eq!(data.iter().map(|buf| buf.len() as u64).sum::<u64>(), len);
        }
    }
}
