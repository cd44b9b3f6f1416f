//! The suite.

use std::sync::Arc;

use memory::IoBuf;

use super::TestBench;
use crate::{IoError, LaneId, OpKind, Volume};
use memory::random::Random;

/// What the suite should know about the volumes it runs over.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Determines all random choices; it stands in every message.
    pub seed: u64,
    /// How many random operations.
    pub operations: u32,
    /// The volume keeps what is written. False for a null volume.
    pub keeps_data: bool,
    /// A larger size that the volume can be given.
    pub grow_to: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options { seed: 1, operations: 300, keeps_data: true, grow_to: None }
    }
}

const WRITE: OpKind = OpKind::Write { fua: false };
/// Bytes of the volume that the random operations use at most, and that the bench's buffers need twice.
const AREA: u64 = 1 << 20;
/// Memory of a bench: the area, room to misalign it, and scattered pieces with gaps.
const MEMORY: usize = 4 << 20;

/// Runs everything over volumes that `make` gives, a fresh one for each part. A fresh volume may have any content.
///
/// # Panics
///
/// When a volume does not do what the contract says.
pub fn run(make: &dyn Fn() -> Arc<dyn Volume>, options: &Options) {
    let geometry = make().geometry();
    assert!(matches!(geometry.block_size, 512 | 4096), "{geometry:?}");
    assert!(geometry.bytes > 0 && geometry.bytes.is_multiple_of(u64::from(geometry.block_size)));
    assert!(geometry.bytes >= 64 * 1024, "the suite needs 64 KiB, not {}", geometry.bytes);
    assert!(geometry.physical_block_size >= geometry.block_size, "{geometry:?}");
    boundaries(&*make());
    if geometry.read_only {
        refuses_writes(&*make());
        return;
    }
    random_operations(&*make(), options);
    scattered(&*make(), options);
    many_at_once(&*make(), options);
    two_lanes(&make(), options);
    zeroes_and_discards(&*make(), options);
    if let Some(bytes) = options.grow_to {
        resize(&*make(), bytes, options);
    }
    detaches_at_once(&*make());
}

fn boundaries(volume: &dyn Volume) {
    let geometry = volume.geometry();
    let (bytes, block) = (geometry.bytes, u64::from(geometry.block_size));
    let mut bench = TestBench::new(volume, MEMORY);
    let buf = bench.buf(0, 2 * block as usize);
    let one = [buf.slice(0, block as usize)];
    assert_eq!(bench.run(OpKind::Read, 0, block, &one), Ok(()), "the first block");
    assert_eq!(bench.run(OpKind::Read, bytes - block, block, &one), Ok(()), "the last block");
    assert_eq!(bench.run(OpKind::Read, bytes, 0, &[]), Ok(()), "nothing, at the end");
    assert_eq!(bench.run(OpKind::Flush, 0, 0, &[]), Ok(()), "a flush with nothing to do");
    let beyond = Err(IoError::OutOfRange);
    assert_eq!(bench.run(OpKind::Read, bytes, block, &one), beyond);
    assert_eq!(bench.run(OpKind::Read, bytes - block, 2 * block, &[buf]), beyond);
    assert_eq!(bench.run(OpKind::Read, u64::MAX - block + 1, block, &one), beyond, "wraps");
    assert_eq!(bench.run(OpKind::Read, u64::MAX, u64::MAX, &one), beyond, "wraps");
    let writes = [WRITE, OpKind::Discard, OpKind::WriteZeroes { unmap: true, fua: false }];
    for op in writes {
        let answer = bench.run(op, bytes, block, &one);
        let expected = if geometry.read_only { Err(IoError::ReadOnly) } else { beyond };
        assert_eq!(answer, expected, "{op:?}");
    }
    // Memory that is not what the request says: any answer will do, but it must be one.
    for bufs in [&[][..], &[buf][..], &[IoBuf::EMPTY][..], &[buf.slice(0, 1)][..]] {
        let _ = bench.run(OpKind::Read, 0, block, bufs);
    }
    // Not whole blocks: an error, whichever.
    assert!(bench.run(OpKind::Read, 1, block, &one).is_err());
    assert!(bench.run(OpKind::Read, 0, block - 1, &[buf.slice(0, block as usize - 1)]).is_err());
    bench.close();
}

fn refuses_writes(volume: &dyn Volume) {
    let block = u64::from(volume.geometry().block_size);
    let mut bench = TestBench::new(volume, MEMORY);
    let before = bench.read(0, 4096).expect("read");
    let buf = bench.buf(8192, block as usize);
    buf.fill(0xee);
    for op in [
        WRITE,
        OpKind::Write { fua: true },
        OpKind::Discard,
        OpKind::WriteZeroes { unmap: false, fua: false },
        OpKind::WriteZeroes { unmap: true, fua: false },
    ] {
        assert_eq!(bench.run(op, 0, block, &[buf]), Err(IoError::ReadOnly), "{op:?}");
    }
    assert_eq!(bench.run(OpKind::Flush, 0, 0, &[]), Ok(()));
    assert_eq!(bench.read(0, 4096).expect("read"), before);
    bench.close();
}

/// The naive model of a volume's first bytes.
struct Oracle {
    bytes: Vec<u8>,
    /// Blocks that were discarded: anything may be in them.
    undefined: Vec<bool>,
    block: usize,
}

impl Oracle {
    fn new(bench: &mut TestBench, area: u64, block: u64) -> Oracle {
        let bytes = bench.read(0, area as usize).expect("read");
        let undefined = vec![false; (area / block) as usize];
        Oracle { bytes, undefined, block: block as usize }
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        let offset = offset as usize;
        self.bytes[offset..offset + data.len()].copy_from_slice(data);
        self.undefined[offset / self.block..(offset + data.len()) / self.block].fill(false);
    }

    fn discard(&mut self, offset: u64, len: u64) {
        let first = offset as usize / self.block;
        self.undefined[first..first + len as usize / self.block].fill(true);
    }

    fn check(&self, offset: u64, found: &[u8], context: &str) {
        for (index, block) in found.chunks(self.block).enumerate() {
            let at = offset as usize + index * self.block;
            let expected = &self.bytes[at..at + block.len()];
            assert!(
                self.undefined[at / self.block] || expected == block,
                "{context}: the block at {at} has {:?}…, not {:?}…",
                &block[..8],
                &expected[..8]
            );
        }
    }
}

/// Random requests one after the other against the oracle: every kind, odd memory, one piece or several.
fn random_operations(volume: &dyn Volume, options: &Options) {
    let geometry = volume.geometry();
    let block = u64::from(geometry.block_size);
    let area = geometry.bytes.min(AREA);
    let mut bench = TestBench::new(volume, MEMORY);
    let mut oracle = Oracle::new(&mut bench, area, block);
    let mut random = Random::new(options.seed);
    for step in 0..options.operations {
        let largest = if random.below(8) == 0 { area } else { area.min(64 * 1024) };
        let len = (random.below(largest / block) + 1) * block;
        let offset = random.below((area - len) / block + 1) * block;
        // Any place in memory, mostly one that direct I/O does not like.
        let place = random.below(8192) as usize;
        let buf = bench.buf(place, len as usize);
        let bufs = cut(buf, 1 + random.below(5), &mut random);
        let context = format!("seed {} step {step} at {offset} for {len}", options.seed);
        match random.below(100) {
            0..40 => {
                let data = noise(&mut random, len);
                buf.write(0, &data);
                let op = OpKind::Write { fua: random.below(4) == 0 };
                assert_eq!(bench.run(op, offset, len, &bufs), Ok(()), "{op:?} {context}");
                oracle.write(offset, &data);
            }
            40..80 => {
                assert_eq!(bench.run(OpKind::Read, offset, len, &bufs), Ok(()), "read {context}");
                if options.keeps_data {
                    oracle.check(offset, &bench.bytes(place, len as usize), &context);
                }
            }
            80..85 => assert_eq!(bench.run(OpKind::Flush, 0, 0, &[]), Ok(()), "flush {context}"),
            85..90 if geometry.discard => {
                assert_eq!(bench.run(OpKind::Discard, offset, len, &[]), Ok(()), "{context}");
                oracle.discard(offset, len);
            }
            _ => {
                let unmap = random.below(2) == 0;
                let op = OpKind::WriteZeroes { unmap, fua: unmap };
                assert_eq!(bench.run(op, offset, len, &[]), Ok(()), "{op:?} {context}");
                oracle.write(offset, &vec![0; len as usize]);
            }
        }
    }
    if options.keeps_data {
        let all = bench.read(0, area as usize).expect("read");
        oracle.check(0, &all, "at the end");
        let mut other = TestBench::with_id(volume, MEMORY, LaneId(8));
        let all = other.read(0, area as usize).expect("read");
        oracle.check(0, &all, "at the end, by another lane");
        other.close();
    }
    bench.close();
}

fn noise(random: &mut Random, len: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len as usize + 8);
    while (bytes.len() as u64) < len {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(len as usize);
    bytes
}

/// A buffer as several pieces of any length, in order.
fn cut(buf: IoBuf, pieces: u64, random: &mut Random) -> Vec<IoBuf> {
    let mut bufs = Vec::new();
    let mut at = 0;
    for _ in 1..pieces {
        let len = random.below((buf.len() - at) as u64 + 1) as usize;
        bufs.push(buf.slice(at, len));
        at += len;
    }
    bufs.push(buf.slice(at, buf.len() - at));
    bufs
}

/// Long lists of pieces: whole blocks, sectors, single bytes, with gaps, up to and beyond what one operation takes.
fn scattered(volume: &dyn Volume, options: &Options) {
    let block = volume.geometry().block_size as usize;
    let room = volume.geometry().bytes.min(AREA) as usize;
    let mut bench = TestBench::new(volume, MEMORY);
    let mut random = Random::new(options.seed ^ 0x5ca7);
    for (count, piece) in [
        (254, block),
        (1024, 512),
        (1024, 1),
        (3000, 512),
        (4096, 1),
        (1500, 3),
        (2, block / 2),
        (600, 700),
    ] {
        // As many pieces as make whole blocks, in memory with a gap of three bytes between them.
        let total = (count * piece).next_multiple_of(block).min(room);
        let data = noise(&mut random, total as u64);
        bench.buf(0, MEMORY).fill(0x3c);
        let mut pieces = Vec::new();
        let (mut left, mut at) = (total, 1);
        while left > 0 {
            let len = piece.min(left);
            let buf = bench.buf(at, len);
            buf.write(0, &data[total - left..total - left + len]);
            pieces.push(buf);
            at += len + 3;
            left -= len;
        }
        let context = format!("{} pieces of {piece}", pieces.len());
        assert_eq!(bench.run(WRITE, 0, total as u64, &pieces), Ok(()), "write, {context}");
        pieces.iter().for_each(|buf| buf.fill(0xa5));
        assert_eq!(bench.run(OpKind::Read, 0, total as u64, &pieces), Ok(()), "read, {context}");
        if !options.keeps_data {
            continue;
        }
        let mut found = vec![0; total];
        let mut done = 0;
        for buf in &pieces {
            buf.read(0, &mut found[done..done + buf.len()]);
            done += buf.len();
        }
        assert!(found == data, "{context}");
        let gaps = pieces.iter().scan(1, |at, buf| {
            *at += buf.len() + 3;
            Some(*at - 3)
        });
        for at in gaps {
            assert_eq!(bench.bytes(at, 3), [0x3c; 3], "{context}: memory between the pieces");
        }
    }
    bench.close();
}

/// More requests than the volume's queue or its bounce buffers take at once, to blocks of their own; flushes among them.
fn many_at_once(volume: &dyn Volume, options: &Options) {
    let geometry = volume.geometry();
    let block = geometry.block_size as usize;
    let count = (geometry.bytes.min(AREA) as usize / block).min(256);
    let mut bench = TestBench::new(volume, MEMORY);
    let place = |index: usize| index * (block + 1);
    for index in 0..count {
        let buf = bench.buf(place(index), block);
        buf.fill(index as u8);
        bench.start(WRITE, (index * block) as u64, block as u64, &[buf]);
        if index % 16 == 0 {
            bench.start(OpKind::Flush, 0, 0, &[]);
        }
    }
    while let Some((tag, result)) = bench.finished() {
        assert_eq!(result, Ok(()), "{tag:?}");
    }
    for index in 0..count {
        let buf = bench.buf(place(index), block);
        buf.fill(0xff);
        bench.start(OpKind::Read, (index * block) as u64, block as u64, &[buf]);
    }
    while let Some((tag, result)) = bench.finished() {
        assert_eq!(result, Ok(()), "{tag:?}");
    }
    for index in 0..count {
        let found = bench.bytes(place(index), block);
        assert!(!options.keeps_data || found.iter().all(|b| *b == index as u8), "block {index}");
    }
    bench.close();
}

/// Two lanes on two threads, block by block between each other.
fn two_lanes(volume: &Arc<dyn Volume>, options: &Options) {
    let geometry = volume.geometry();
    let block = geometry.block_size as usize;
    let count = (geometry.bytes.min(AREA) as usize / block).min(128) / 2;
    std::thread::scope(|scope| {
        for side in 0..2_usize {
            let volume = volume.clone();
            scope.spawn(move || {
                let mut bench = TestBench::with_id(&*volume, MEMORY, LaneId(side as u16));
                let pattern =
                    |round: u8, index: usize| round * 80 + (index % 40) as u8 + side as u8 * 40;
                for round in 0..3_u8 {
                    for index in 0..count {
                        let buf = bench.buf(index * block, block);
                        buf.fill(pattern(round, index));
                        let offset = (2 * index + side) * block;
                        bench.start(WRITE, offset as u64, block as u64, &[buf]);
                    }
                    bench.start(OpKind::Flush, 0, 0, &[]);
                    while let Some((_, result)) = bench.finished() {
                        assert_eq!(result, Ok(()));
                    }
                    for index in 0..count {
                        let offset = (2 * index + side) * block;
                        let found = bench.read(offset as u64, block).expect("read");
                        let byte = pattern(round, index);
                        let right = found.iter().all(|b| *b == byte);
                        assert!(!options.keeps_data || right, "side {side} block {index}");
                    }
                }
                bench.close();
            });
        }
    });
}

fn zeroes_and_discards(volume: &dyn Volume, options: &Options) {
    let geometry = volume.geometry();
    let area = geometry.bytes.min(AREA) as usize;
    let block = geometry.block_size as usize;
    let mut bench = TestBench::new(volume, MEMORY);
    for unmap in [false, true] {
        assert!(geometry.write_zeroes, "a writable volume serves write-zeroes");
        bench.write(0, &vec![0xab; area]).expect("write");
        let (from, to) = (block, area - block);
        let op = OpKind::WriteZeroes { unmap, fua: unmap };
        assert_eq!(bench.run(op, from as u64, (to - from) as u64, &[]), Ok(()));
        if options.keeps_data {
            let found = bench.read(0, area).expect("read");
            assert!(found[..from].iter().all(|b| *b == 0xab), "before the range, unmap {unmap}");
            assert!(found[from..to].iter().all(|b| *b == 0), "in the range, unmap {unmap}");
            assert!(found[to..].iter().all(|b| *b == 0xab), "behind the range, unmap {unmap}");
        }
        assert_eq!(bench.run(op, 0, 0, &[]), Ok(()), "nothing");
    }
    bench.write(0, &vec![0xcd; area]).expect("write");
    let answer = bench.run(OpKind::Discard, block as u64, block as u64, &[]);
    assert_eq!(answer, if geometry.discard { Ok(()) } else { Err(IoError::Unsupported) });
    let found = bench.read(0, area).expect("read");
    if options.keeps_data {
        assert!(found[..block].iter().all(|b| *b == 0xcd), "before a discarded block");
        assert!(found[2 * block..].iter().all(|b| *b == 0xcd), "behind a discarded block");
    }
    assert_eq!(bench.read(block as u64, block).expect("read").len(), block);
    bench.close();
}

fn resize(volume: &dyn Volume, bytes: u64, options: &Options) {
    let before = volume.geometry().bytes;
    let block = volume.geometry().block_size as usize;
    assert!(bytes > before);
    let mut bench = TestBench::new(volume, MEMORY);
    bench.write(before - block as u64, &vec![0x77; block]).expect("write");
    assert!(volume.resize(bytes + 1).is_err(), "not whole blocks");
    assert_eq!(volume.geometry().bytes, before);
    volume.resize(bytes).unwrap_or_else(|error| panic!("growing: {error}"));
    assert_eq!(volume.geometry().bytes, bytes);
    // The lane that was there before sees it.
    bench.write(bytes - block as u64, &vec![0x78; block]).expect("the new end");
    let old = bench.read(before - block as u64, block).expect("the old end");
    let new = bench.read(bytes - block as u64, block).expect("the new end");
    let gap = bench.read(before, block).expect("the part between");
    if options.keeps_data {
        assert!(old.iter().all(|b| *b == 0x77) && new.iter().all(|b| *b == 0x78));
        assert!(
            bytes - before < 2 * block as u64 || gap.iter().all(|b| *b == 0),
            "fresh space is zero"
        );
    }
    assert_eq!(bench.read(bytes, block), Err(IoError::OutOfRange));
    bench.close();
}

fn detaches_at_once(volume: &dyn Volume) {
    for _ in 0..20 {
        TestBench::new(volume, 4096).close();
    }
    // More than one ring's table has places: each lane must give its own back.
    let mut ring = uring::Ring::new(&uring::RingConfig::default()).expect("ring");
    for round in 0..600 {
        let mut lane = volume.lane(&mut ring, LaneId(1)).unwrap_or_else(|e| panic!("{round}: {e}"));
        lane.detach(&mut ring);
    }
}
