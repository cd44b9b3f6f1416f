use block::Geometry;
use memory::Lasting;

use super::*;

fn shape(read_only: bool) -> Shape {
    let geometry = Geometry {
        bytes: 1 << 20,
        block_size: 4096,
        physical_block_size: 4096,
        optimal_io_size: 0,
        discard: true,
        write_zeroes: true,
        read_only,
        write_cache: true,
    };
    Shape::new(&geometry, "serial", false, true)
}

/// Lays `bytes` into fresh memory, split into pieces of these lengths.
struct Memory {
    mapping: Lasting,
    used: usize,
}

impl Memory {
    fn new() -> Memory {
        Memory { mapping: Lasting::new(1 << 20).unwrap(), used: 0 }
    }

    fn pieces(&mut self, bytes: &[u8], lengths: &[usize]) -> Vec<IoBuf> {
        let mut at = 0;
        let mut result = Vec::new();
        for length in lengths {
            let buf = self.mapping.buf(self.used, *length).unwrap();
            let known = bytes.len().saturating_sub(at).min(*length);
            buf.write(0, &bytes[at.min(bytes.len())..][..known]);
            at += length;
            self.used += length;
            result.push(buf);
        }
        result
    }
}

fn header(kind: u32, sector: u64) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat()
}

/// Parses a request with the given framing and returns it with the number of data bytes.
fn judge(
    shape: &Shape,
    out: &[u8],
    out_lengths: &[usize],
    in_lengths: &[usize],
) -> (Parsed, usize) {
    let mut memory = Memory::new();
    let mut bufs = memory.pieces(out, out_lengths);
    let readable = bufs.len();
    bufs.extend(memory.pieces(&[], in_lengths));
    let bytes = |bufs: &[IoBuf]| bufs.iter().map(|buf| buf.len() as u64).sum();
    let (readable_bytes, writable_bytes) = (bytes(&bufs[..readable]), bytes(&bufs[readable..]));
    let mut chain = Chain { bufs: &mut bufs, readable, readable_bytes, writable_bytes };
    let parsed = parse(shape, &mut chain);
    let data = bufs[parsed.first..parsed.end].iter().map(|buf| buf.len()).sum();
    std::mem::forget(memory.mapping); // the buffers in `parsed` stay readable
    (parsed, data)
}

fn rejected(parsed: &Parsed) -> Reject {
    match parsed.action {
        Action::Reject(reject) => reject,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn clause_2_7_4_framing_makes_no_difference() {
    let read = Action::Submit { op: OpKind::Read, offset: 4096, len: 8192 };
    let framings: [(&[usize], &[usize]); 6] = [
        (&[16], &[8192, 1]),
        (&[16], &[8193]),
        (&[1, 7, 8], &[4096, 4096, 1]),
        (&[16], &[1, 8191, 1]),
        (&[4, 12], &[8192, 1, 0]),
        (&[0, 16, 0], &[0, 8192, 0, 1]),
    ];
    for (out, inward) in framings {
        let (parsed, data) = judge(&shape(false), &header(kind::IN, 8), out, inward);
        assert_eq!(
            (parsed.action, data, parsed.status.len()),
            (read, 8192, 1),
            "{out:?} {inward:?}"
        );
    }
    let write = Action::Submit { op: OpKind::Write { fua: false }, offset: 0, len: 4096 };
    let framings: [(&[usize], &[usize]); 4] = [
        (&[16, 4096], &[1]),
        (&[4112], &[1]),
        (&[10, 3000, 1102], &[1]),
        (&[15, 1, 4096], &[0, 1]),
    ];
    for (out, inward) in framings {
        let (parsed, data) = judge(&shape(false), &header(kind::OUT, 0), out, inward);
        assert_eq!((parsed.action, data), (write, 4096), "{out:?} {inward:?}");
    }
}

#[test]
fn a_chain_without_header_or_status_is_bad() {
    let cases: [(&[usize], &[usize], usize); 6] = [
        (&[15], &[1], 1),
        (&[], &[4096, 1], 1),
        (&[16], &[], 0),
        (&[16, 4096], &[0, 0], 0),
        (&[], &[], 0),
        (&[7, 8], &[9], 1),
    ];
    for (out, inward, status) in cases {
        let (parsed, _) = judge(&shape(false), &header(kind::IN, 0), out, inward);
        assert_eq!(
            (rejected(&parsed), parsed.status.len()),
            (Reject::BadChain, status),
            "{out:?} {inward:?}"
        );
    }
}

#[test]
fn data_in_the_wrong_direction_is_bad() {
    let (parsed, _) = judge(&shape(false), &header(kind::IN, 0), &[16, 4096], &[4096, 1]);
    assert_eq!(rejected(&parsed), Reject::BadChain);
    let (parsed, _) = judge(&shape(false), &header(kind::OUT, 0), &[16, 4096], &[4096, 1]);
    assert_eq!(rejected(&parsed), Reject::BadChain);
}

#[test]
fn ranges_are_whole_blocks_inside_the_disk() {
    // 1 MiB is 2048 sectors; a block is 8.
    let cases = [
        (2040, 4096, true),
        (2048, 0, true),
        (2048, 4096, false),
        (2040, 8192, false),
        (4, 4096, false),
        (0, 512, false),
        (0, 4095, false),
        (u64::MAX, 4096, false),
        (u64::MAX / 512, 4096, false),
    ];
    for (sector, len, good) in cases {
        let (parsed, _) = judge(&shape(false), &header(kind::IN, sector), &[16], &[len, 1]);
        assert_eq!(matches!(parsed.action, Action::Submit { .. }), good, "{sector} {len}");
        if !good {
            assert_eq!(rejected(&parsed), Reject::OutOfRange);
        }
    }
}

#[test]
fn clause_5_2_6_2_a_read_only_disk_refuses_writes() {
    let range = [&header(kind::DISCARD, 0)[..], &[0; 16]].concat();
    let zeroes = [&header(kind::WRITE_ZEROES, 0)[..], &[0; 16]].concat();
    for (out, lengths) in
        [(header(kind::OUT, 0), [16, 4096]), (range, [16, 16]), (zeroes, [16, 16])]
    {
        let (parsed, _) = judge(&shape(true), &out, &lengths, &[1]);
        assert_eq!(rejected(&parsed), Reject::ReadOnly);
        assert_eq!(rejected(&parsed).status(), Status::IoErr);
    }
}

fn ranged(kind: u32, sector: u64, sectors: u32, flags: u32) -> Parsed {
    let out =
        [&header(kind, 0)[..], &sector.to_le_bytes(), &sectors.to_le_bytes(), &flags.to_le_bytes()]
            .concat();
    judge(&shape(false), &out, &[16, 16], &[1]).0
}

#[test]
fn clause_5_2_6_2_flags_of_discard_and_write_zeroes() {
    let submit = |op| Action::Submit { op, offset: 4096, len: 8192 };
    assert_eq!(ranged(kind::DISCARD, 8, 16, 0).action, submit(OpKind::Discard));
    assert_eq!(
        ranged(kind::WRITE_ZEROES, 8, 16, 0).action,
        submit(OpKind::WriteZeroes { unmap: false, fua: false })
    );
    assert_eq!(
        ranged(kind::WRITE_ZEROES, 8, 16, 1).action,
        submit(OpKind::WriteZeroes { unmap: true, fua: false })
    );
    for (kind, flags) in [
        (kind::DISCARD, 1),
        (kind::DISCARD, 2),
        (kind::WRITE_ZEROES, 2),
        (kind::WRITE_ZEROES, 1 << 31),
    ] {
        let parsed = ranged(kind, 8, 16, flags);
        assert_eq!(rejected(&parsed), Reject::Unsupported);
        assert_eq!(rejected(&parsed).status(), Status::Unsupported);
    }
    assert_eq!(rejected(&ranged(kind::DISCARD, 8, RANGE_SECTORS_MAX + 8, 0)), Reject::OutOfRange);
    assert_eq!(rejected(&ranged(kind::DISCARD, 2048, 8, 0)), Reject::OutOfRange);
}

#[test]
fn more_than_one_range_is_unsupported_and_half_a_range_is_bad() {
    let out = [&header(kind::DISCARD, 0)[..], &[0; 48]].concat();
    for (len, expected) in [
        (32, Reject::Unsupported),
        (8, Reject::BadChain),
        (0, Reject::BadChain),
        (24, Reject::BadChain),
    ] {
        let (parsed, _) = judge(&shape(false), &out, &[16, len], &[1]);
        assert_eq!(rejected(&parsed), expected, "{len}");
    }
    let (parsed, _) = judge(&shape(false), &out, &[16, 3, 13], &[1]);
    assert!(matches!(parsed.action, Action::Submit { op: OpKind::Discard, .. }));
}

#[test]
fn other_types() {
    let shape = shape(false);
    let (parsed, _) = judge(&shape, &header(kind::FLUSH, 0), &[16], &[1]);
    assert_eq!(parsed.action, Action::Submit { op: OpKind::Flush, offset: 0, len: 0 });
    let (parsed, data) = judge(&shape, &header(kind::GET_ID, 0), &[16], &[20, 1]);
    assert_eq!((parsed.action, data), (Action::GetId, 20));
    let (parsed, _) = judge(&shape, &header(kind::GET_ID, 0), &[16], &[19, 1]);
    assert_eq!(rejected(&parsed), Reject::BadChain);
    for unknown in [2, 3, 5, 14, u32::MAX] {
        let (parsed, _) = judge(&shape, &header(unknown, 0), &[16], &[1]);
        assert_eq!(rejected(&parsed), Reject::Unsupported);
    }
    shape.set_write_through(true);
    let (parsed, _) = judge(&shape, &header(kind::OUT, 0), &[16, 4096], &[1]);
    assert_eq!(
        parsed.action,
        Action::Submit { op: OpKind::Write { fua: true }, offset: 0, len: 4096 }
    );
}

#[test]
fn random_requests_keep_the_contract() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..64)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        crate::fuzz::fuzz_request(&bytes);
    }
}
