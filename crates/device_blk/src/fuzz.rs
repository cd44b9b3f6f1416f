//! A structured target for fuzzing: mostly valid requests, framed at random, then spoilt.

use block::Geometry;
use memory::{IoBuf, Lasting};

use crate::{Action, Chain, Parsed, Shape, kind, parse};

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
    let memory = Lasting::new(1 << 16).expect("anonymous memory");
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

fn inside(piece: IoBuf, bufs: &[IoBuf]) -> bool {
    let (start, len) = (piece.as_ptr() as usize, piece.len());
    piece.is_empty()
        || bufs.iter().any(|buf| {
            let from = buf.as_ptr() as usize;
            start >= from && start + len <= from + buf.len()
        })
}

fn check(shape: &Shape, before: &[IoBuf], after: &[IoBuf], parsed: &Parsed) {
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
