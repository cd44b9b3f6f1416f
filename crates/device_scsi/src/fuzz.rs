//! A structured target for fuzzing: mostly valid commands, framed at random, then spoilt.

use memory::{IoBuf, Lasting};

use crate::control::Control;
use crate::{Chain, Header, ParseError, Place, Response, Sizes, parse};

/// Feeds one chain to the parsers of the SCSI host device, and checks what must hold of every answer.
///
/// # Panics
///
/// When the answer breaks the contract of the parsers: that is the defect that fuzzing looks for.
pub fn fuzz_request(data: &[u8]) {
    let mut input = data.iter().copied();
    let mut byte = || input.next().unwrap_or(0);
    let usual = byte() & 3 != 0;
    let (cdb, sense) = if usual { (32, 96) } else { (u32::from(byte()), 4 * u32::from(byte())) };
    let sizes = Sizes::new(cdb, sense).expect("small");
    let memory = Lasting::new(1 << 16).expect("anonymous memory");
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
    if let Some(control) = Control::parse(&before[..readable]) {
        assert!(control.answer(Response::Failure).len <= 5);
    }
    bufs.extend(std::iter::repeat_n(IoBuf::EMPTY, usize::from(byte() & 1)));
    let room = bufs.len() > count;
    let sum = |bufs: &[IoBuf]| bufs.iter().map(|buf| buf.len() as u64).sum::<u64>();
    let (readable_bytes, writable_bytes) = (sum(&before[..readable]), sum(&before[readable..]));
    let mut chain =
        Chain { bufs: &mut bufs, total: count, readable, readable_bytes, writable_bytes };
    let mut header = Header::EMPTY;
    let (head, answer) = (sizes.header_bytes() as u64, sizes.response_bytes() as u64);
    let parsed = match parse(&sizes, &mut chain, &mut header) {
        Ok(parsed) => parsed,
        Err(ParseError::TooShort) => {
            return assert!(readable_bytes < head || writable_bytes < answer);
        }
        Err(ParseError::NoRoom) => return assert!(!room),
    };
    assert_eq!(
        (parsed.out_bytes, parsed.in_bytes),
        (readable_bytes - head, writable_bytes - answer)
    );
    assert_eq!(header.cdb().len(), usize::from(sizes.cdb()).min(crate::CDB_BYTES_MAX));
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
    let _ = Place::decode(header.address());
}
