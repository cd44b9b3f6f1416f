use memory::Lasting;

use super::*;

/// What a parsed chain says, as bytes.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    data_out: Vec<u8>,
    data_in: Vec<usize>,
    response: Vec<usize>,
    header: Header,
}

/// Bytes at places of the memory that tell them apart.
struct Bench {
    memory: Lasting,
}

const WRITABLE: usize = 1 << 15;

impl Bench {
    fn new() -> Bench {
        let memory = Lasting::new(1 << 16).unwrap();
        let space = memory.buf(0, WRITABLE).unwrap();
        for at in 0..WRITABLE {
            space.write(at, &[(at % 251) as u8]);
        }
        Bench { memory }
    }

    /// Buffers of these lengths, one behind the other.
    fn pieces(&self, from: usize, lengths: &[usize]) -> Vec<IoBuf> {
        let mut at = from;
        let piece = |length: &usize| {
            let buf = self.memory.buf(at, *length).unwrap();
            at += length;
            buf
        };
        lengths.iter().map(piece).collect()
    }

    /// Addresses of the bytes of buffers, from the start of the writable part.
    fn places(&self, bufs: &[IoBuf]) -> Vec<usize> {
        let base = self.memory.buf(0, 1).unwrap().as_ptr().addr() + WRITABLE;
        let all = bufs.iter().map(|buf| buf.as_ptr().addr() - base..);
        all.zip(bufs).flat_map(|(from, buf)| from.take(buf.len())).collect()
    }

    fn parse(
        &self,
        sizes: &Sizes,
        outward: &[usize],
        inward: &[usize],
        spare: usize,
    ) -> Result<(Seen, Parsed), ParseError> {
        let mut bufs = self.pieces(0, outward);
        bufs.extend(self.pieces(WRITABLE, inward));
        let total = bufs.len();
        bufs.extend(vec![IoBuf::EMPTY; spare]);
        let sum = |lengths: &[usize]| lengths.iter().sum::<usize>() as u64;
        let mut chain = Chain {
            bufs: &mut bufs,
            total,
            readable: outward.len(),
            readable_bytes: sum(outward),
            writable_bytes: sum(inward),
        };
        let mut header = Header::EMPTY;
        let parsed = parse(sizes, &mut chain, &mut header)?;
        let mut data_out = Vec::new();
        for buf in parsed.data_out.of_bufs(&bufs) {
            let mut bytes = vec![0; buf.len()];
            buf.read(0, &mut bytes);
            data_out.extend(bytes);
        }
        assert_eq!(data_out.len() as u64, parsed.out_bytes);
        let data_in = self.places(parsed.data_in.of_bufs(&bufs));
        assert_eq!(data_in.len() as u64, parsed.in_bytes);
        let response = self.places(parsed.response.of_bufs(&bufs));
        Ok((Seen { data_out, data_in, response, header }, parsed))
    }
}

#[test]
fn clause_2_7_4_framing_makes_no_difference() {
    let bench = Bench::new();
    let sizes = Sizes::default();
    let (usual, parsed) = bench.parse(&sizes, &[51, 512], &[108, 4096], 0).unwrap();
    assert_eq!(parsed.data_out, Range { first: 1, end: 2 });
    assert_eq!(parsed.response, Range { first: 2, end: 3 });
    assert_eq!(parsed.data_in, Range { first: 3, end: 4 });
    assert_eq!(usual.data_out[0], 51);
    assert_eq!(usual.response, (0..108).collect::<Vec<_>>());
    assert_eq!(usual.data_in, (108..4204).collect::<Vec<_>>());
    assert_eq!(usual.header.cdb().len(), 32);
    assert_eq!((usual.header.opcode(), usual.header.address()[1]), (19, 1));
    let framings: [(&[usize], &[usize]); 7] = [
        (&[563], &[4204]),
        (&[1; 563], &[1; 4204]),
        (&[51, 512], &[107, 1, 4096]),
        (&[50, 513], &[109, 4095]),
        (&[52, 511], &[12, 96, 4096]),
        (&[8, 8, 3, 32, 512], &[4, 4, 2, 1, 1, 96 + 4096]),
        (&[51, 100, 412], &[108, 1, 4095]),
    ];
    for (outward, inward) in framings {
        let (seen, _) = bench.parse(&sizes, outward, inward, 1).unwrap();
        assert_eq!(seen, usual, "{outward:?} {inward:?}");
    }
}

#[test]
fn a_divided_buffer_needs_a_place() {
    let bench = Bench::new();
    let sizes = Sizes::default();
    assert_eq!(bench.parse(&sizes, &[51], &[109], 0).unwrap_err(), ParseError::NoRoom);
    assert!(bench.parse(&sizes, &[51], &[109], 1).is_ok());
    // Header and data-out share a buffer without one.
    assert!(bench.parse(&sizes, &[52], &[108], 0).is_ok());
}

#[test]
fn clause_5_6_4_other_sizes() {
    let bench = Bench::new();
    for (cdb, sense) in [(0, 0), (6, 18), (16, 252), (32, 96), (255, 65), (33, 1000)] {
        let sizes = Sizes::new(cdb, sense).unwrap();
        let (header, response) = (sizes.header_bytes(), sizes.response_bytes());
        let framings: [(&[usize], &[usize]); 2] =
            [(&[header, 10], &[response, 20]), (&[header + 10], &[response + 20])];
        for (outward, inward) in framings {
            let (seen, parsed) = bench.parse(&sizes, outward, inward, 1).unwrap();
            assert_eq!((parsed.out_bytes, parsed.in_bytes), (10, 20));
            assert_eq!(seen.header.cdb().len(), (cdb as usize).min(32));
            assert_eq!(usize::from(seen.data_out[0]), header % 251);
            assert_eq!(seen.response.len(), response);
        }
    }
}

#[test]
fn chains_that_are_too_short() {
    let bench = Bench::new();
    let sizes = Sizes::default();
    let short: [(&[usize], &[usize]); 6] = [
        (&[50], &[108]),
        (&[51], &[107]),
        (&[51], &[]),
        (&[], &[108]),
        (&[25, 25], &[108]),
        (&[51], &[12]),
    ];
    for (outward, inward) in short {
        let fault = bench.parse(&sizes, outward, inward, 1).unwrap_err();
        assert_eq!(fault, ParseError::TooShort, "{outward:?} {inward:?}");
    }
}

#[test]
fn a_header_can_be_looked_at_without_cutting() {
    let bench = Bench::new();
    let sizes = Sizes::default();
    let (usual, _) = bench.parse(&sizes, &[51], &[108], 0).unwrap();
    let mut header = Header::EMPTY;
    assert!(header.peek(&sizes, &bench.pieces(0, &[20, 40])));
    assert_eq!(header, usual.header);
    assert!(!header.peek(&sizes, &bench.pieces(0, &[20, 30])));
}

#[test]
fn random_requests_keep_the_contract() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        let mut byte = || {
            state =
                state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            (state >> 56) as u8
        };
        let bytes: Vec<u8> = (0..128).map(|_| byte()).collect();
        crate::fuzz::fuzz_request(&bytes);
    }
}
