//! Reading, writing and everything else that goes to the medium.

use super::Bench;
use super::bench::Answer;
use crate::{Nexus, Residual, Sense, SenseKey, Status, code};

pub(super) const TESTS: &[fn(&mut Bench)] = &[
    transfers,
    ends,
    protection_and_flags,
    residuals,
    verification,
    write_and_verify,
    same,
    same_refused,
    unmap,
    unmap_refused,
    compare_and_write,
    caches,
    protected,
];

/// A CDB of any length for a range.
pub(super) fn cdb(opcode: u8, flags: u8, lba: u64, blocks: u32) -> Vec<u8> {
    let low = (lba as u32).to_be_bytes();
    let length = blocks.to_be_bytes();
    match opcode >> 5 {
        0 => vec![opcode, low[1] & 0x1f, low[2], low[3], length[3], 0],
        1 | 2 => [&[opcode, flags], &low[..], &[0, length[2], length[3], 0]].concat(),
        5 => [&[opcode, flags], &low[..], &length, &[0, 0]].concat(),
        _ => [&[opcode, flags], &lba.to_be_bytes()[..], &length, &[0, 0]].concat(),
    }
}

/// COMPARE AND WRITE has its length elsewhere.
pub(super) fn compare_cdb(flags: u8, lba: u64, blocks: u8) -> Vec<u8> {
    [&[0x89, flags], &lba.to_be_bytes()[..], &[0, 0, 0, blocks, 0, 0]].concat()
}

const READS: [u8; 4] = [0x08, 0x28, 0xa8, 0x88];
const WRITES: [u8; 4] = [0x0a, 0x2a, 0xaa, 0x8a];
const VERIFIES: [u8; 3] = [0x2f, 0xaf, 0x8f];
const WRITES_AND_VERIFIES: [u8; 3] = [0x2e, 0xae, 0x8e];

/// Bytes that differ from block to block and from seed to seed.
pub(super) fn pattern(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at * 7 + at / 512 * 13 + seed * 31) as u8).collect()
}

fn size(bench: &Bench) -> usize {
    bench.unit().block_size() as usize
}

/// Whether the disk takes writes at all.
fn writable(bench: &Bench) -> bool {
    !bench.unit().read_only
}

pub(super) fn read(bench: &mut Bench, client: &Nexus, lba: u64, blocks: u32) -> Vec<u8> {
    let len = blocks as usize * size(bench);
    bench.command(client, &cdb(0x88, 0, lba, blocks), &[], len).good()
}

fn write(bench: &mut Bench, client: &Nexus, lba: u64, bytes: &[u8]) -> Answer {
    let blocks = u32::try_from(bytes.len() / size(bench)).expect("small");
    bench.command(client, &cdb(0x8a, 0, lba, blocks), bytes, 0)
}

fn transfers(bench: &mut Bench) {
    if !writable(bench) {
        return;
    }
    let client = bench.client(1);
    let (size, end) = (size(bench), bench.unit().blocks());
    for (round, piece) in [(0, 1 << 20), (1, 4096), (2, 1000), (3, 100)] {
        bench.piece = piece;
        for opcode in 0..4 {
            for blocks in [1_u32, 2, 7, 255, 256] {
                let seed = u64::from(blocks) + 10 * opcode as u64 + 100 * round;
                let bytes = pattern(seed, blocks as usize * size);
                for lba in [0, end - u64::from(blocks)] {
                    let put = cdb(WRITES[opcode], 0, lba, blocks);
                    let answer = bench.command(&client, &put, &bytes, 0);
                    assert_eq!((answer.status, answer.residual), (Status::Good, Residual::Exact));
                    let get = cdb(READS[3 - opcode], 0, lba, blocks);
                    let answer = bench.command(&client, &get, &[], bytes.len());
                    assert_eq!(answer.residual, Residual::Exact);
                    assert!(answer.good() == bytes, "{blocks} blocks in pieces of {piece}");
                }
            }
        }
    }
    bench.piece = usize::MAX;
}

fn ends(bench: &mut Bench) {
    let client = bench.client(1);
    let end = bench.unit().blocks();
    let before = bench.requests();
    let all = [&READS[..], &WRITES, &VERIFIES, &WRITES_AND_VERIFIES, &[0x34, 0x90, 0x35, 0x91]];
    for opcode in all.concat() {
        let six = opcode < 0x20;
        let writes = [&WRITES[..], &WRITES_AND_VERIFIES].concat().contains(&opcode);
        if writes && !writable(bench) {
            continue;
        }
        let far = match opcode >> 5 {
            0 => 0x1f_ffff,
            4 => u64::MAX,
            _ => u64::from(u32::MAX),
        };
        for (lba, blocks) in [(end, 1), (end - 1, 2), (end - 255, 256), (far, 1), (far, 256)] {
            let answer = bench.command(&client, &cdb(opcode, 0, lba, blocks), &[0; 512], 0);
            assert_eq!(answer.sense, Some(Sense::illegal(code::LBA_OUT_OF_RANGE)), "{opcode:x}");
        }
        if six {
            continue;
        }
        for lba in [0, end - 1, end] {
            let answer = bench.command(&client, &cdb(opcode, 0, lba, 0), &[], 0);
            assert_eq!(answer.status, Status::Good, "nothing, {opcode:x} at {lba}");
        }
        for lba in [end + 1, far] {
            let answer = bench.command(&client, &cdb(opcode, 0, lba, 0), &[], 0);
            assert_eq!(answer.code(), code::LBA_OUT_OF_RANGE, "nothing, {opcode:x} at {lba}");
        }
    }
    let flushes = 2 * 3;
    assert!(bench.requests() - before <= flushes, "nothing but flushes reached the volume");
}

fn protection_and_flags(bench: &mut Bench) {
    let client = bench.client(1);
    let block = vec![0; size(bench)];
    let before = bench.requests();
    let all = [&READS[1..], &WRITES[1..], &VERIFIES, &WRITES_AND_VERIFIES, &[0x41, 0x93]].concat();
    for opcode in all {
        for protect in 1..8 {
            let answer = bench.command(&client, &cdb(opcode, protect << 5, 0, 1), &block, 0);
            assert_eq!(answer.sense, Some(Sense::cdb_bit(1, 7)), "{opcode:x}");
        }
    }
    for protect in 1..8 {
        let both = [block.clone(), block.clone()].concat();
        let answer = bench.command(&client, &compare_cdb(protect << 5, 0, 1), &both, 0);
        assert_eq!(answer.sense, Some(Sense::cdb_bit(1, 7)));
    }
    assert_eq!(bench.requests(), before);
    for flags in [0x10, 0x08, 0x18] {
        for opcode in &READS[1..] {
            let answer = bench.command(&client, &cdb(*opcode, flags, 0, 1), &[], block.len());
            assert_eq!(answer.status, Status::Good);
        }
        if writable(bench) {
            for opcode in &WRITES[1..] {
                let answer = bench.command(&client, &cdb(*opcode, flags, 0, 1), &block, 0);
                assert_eq!(answer.status, Status::Good);
            }
        }
    }
    let most = bench.unit().transfer_blocks_max;
    if bench.unit().blocks() > u64::from(most) {
        let answer = bench.command(&client, &cdb(0x88, 0, 0, most + 1), &[], 0);
        assert_eq!(answer.sense, Some(Sense::cdb(10)));
    }
}

fn residuals(bench: &mut Bench) {
    let client = bench.client(1);
    let size = size(bench);
    if writable(bench) {
        let three = pattern(9, 3 * size);
        assert_eq!(write(bench, &client, 0, &three).status, Status::Good);
    }
    let whole = read(bench, &client, 0, 3);
    for room in
        [0, 1, 200, size - 1, size, size + 1, 2 * size + 77, 3 * size, 3 * size + 5, 10_000 * 2]
    {
        let answer = bench.command(&client, &cdb(0x28, 0, 0, 3), &[], room);
        let (wanted, room) = (3 * size as u64, room as u64);
        let expected = match wanted.cmp(&room) {
            std::cmp::Ordering::Less => Residual::Under(room - wanted),
            std::cmp::Ordering::Equal => Residual::Exact,
            std::cmp::Ordering::Greater => Residual::Over(wanted - room),
        };
        assert_eq!(answer.residual, expected);
        let data = answer.good();
        assert!(data == whole[..data.len()] && data.len() as u64 == wanted.min(room));
    }
    if !writable(bench) {
        return;
    }
    let (old, new) = (vec![0xaa; 3 * size], vec![0xbb; 3 * size]);
    for (given, written, residual) in [
        (0, 0, Residual::Over(2 * size as u64)),
        (200, 0, Residual::Over(2 * size as u64 - 200)),
        (size, size, Residual::Over(size as u64)),
        (size + 100, size, Residual::Over(size as u64 - 100)),
        (3 * size, 2 * size, Residual::Under(size as u64)),
    ] {
        for opcode in [0x2a, 0x2e] {
            assert_eq!(write(bench, &client, 0, &old).status, Status::Good);
            let answer = bench.command(&client, &cdb(opcode, 0, 0, 2), &new[..given], 0);
            assert_eq!((answer.status, answer.residual), (Status::Good, residual));
            let found = read(bench, &client, 0, 3);
            assert!(found[..written] == new[..written] && found[written..] == old[written..]);
        }
    }
}

fn miscompare(at: usize) -> Option<Sense> {
    Some(Sense::new(SenseKey::Miscompare, code::MISCOMPARE).with_information(at as u64))
}

fn verification(bench: &mut Bench) {
    let client = bench.client(1);
    let size = size(bench);
    if writable(bench) {
        let bytes = pattern(3, 256 * size);
        assert_eq!(write(bench, &client, 0, &bytes).status, Status::Good);
    }
    for opcode in VERIFIES {
        for blocks in [1_u32, 2, 100, 256] {
            let mut bytes = read(bench, &client, 0, blocks);
            let check = cdb(opcode, 0x02, 0, blocks);
            assert_eq!(bench.command(&client, &check, &bytes, 0).status, Status::Good);
            for at in [0, 1, size - 1, bytes.len() / 2, bytes.len() - 1] {
                bytes[at] ^= 0x58;
                assert_eq!(bench.command(&client, &check, &bytes, 0).sense, miscompare(at));
                let medium = cdb(opcode, 0x10, 0, blocks);
                assert_eq!(bench.command(&client, &medium, &bytes, 0).status, Status::Good);
                bytes[at] ^= 0x58;
            }
        }
        let reserved = bench.command(&client, &cdb(opcode, 0x04, 0, 1), &[], 0);
        assert_eq!(reserved.sense, Some(Sense::cdb_bit(1, 2)));
        if writable(bench) {
            let block = pattern(5, size);
            let same = block.repeat(200);
            assert_eq!(write(bench, &client, 0, &same).status, Status::Good);
            let one = cdb(opcode, 0x06, 0, 200);
            assert_eq!(bench.command(&client, &one, &block, 0).status, Status::Good);
            let mut changed = same.clone();
            changed[150 * size + 33] ^= 1;
            assert_eq!(write(bench, &client, 0, &changed).status, Status::Good);
            assert_eq!(bench.command(&client, &one, &block, 0).sense, miscompare(33));
        }
    }
}

fn write_and_verify(bench: &mut Bench) {
    if !writable(bench) {
        return;
    }
    let client = bench.client(1);
    let size = size(bench);
    for opcode in WRITES_AND_VERIFIES {
        for (check, blocks) in [(0_u8, 1_u32), (0, 200), (1, 1), (1, 2), (1, 256)] {
            let bytes = pattern(u64::from(opcode) + u64::from(blocks), blocks as usize * size);
            let put = cdb(opcode, 0x10 | check << 1, 3, blocks);
            assert_eq!(bench.command(&client, &put, &bytes, 0).status, Status::Good);
            assert!(read(bench, &client, 3, blocks) == bytes);
        }
        for reserved in [2, 3] {
            let answer = bench.command(&client, &cdb(opcode, reserved << 1, 0, 1), &[], 0);
            assert_eq!(answer.sense, Some(Sense::cdb_bit(1, 2)));
        }
    }
}

fn same(bench: &mut Bench) {
    if !writable(bench) {
        return;
    }
    let client = bench.client(1);
    let (size, end) = (size(bench), bench.unit().blocks());
    let thin = bench.unit().thin;
    for opcode in [0x41, 0x93] {
        for (flags, block) in
            [(0, pattern(1, size)), (0, vec![0; size]), (8, vec![0; size]), (8, pattern(2, size))]
        {
            for blocks in [1_u32, 3, 129, 256] {
                let area = vec![0xcc; (blocks as usize + 2) * size];
                assert_eq!(write(bench, &client, 0, &area).status, Status::Good);
                let answer = bench.command(&client, &cdb(opcode, flags, 1, blocks), &block, 0);
                if flags == 8 && !thin {
                    assert_eq!(answer.sense, Some(Sense::cdb_bit(1, 3)));
                    continue;
                }
                assert_eq!((answer.status, answer.residual), (Status::Good, Residual::Exact));
                let found = read(bench, &client, 0, blocks + 2);
                let inside = block.repeat(blocks as usize);
                assert!(found[size..found.len() - size] == inside, "{opcode:x} {flags:x}");
                assert!(found[..size] == area[..size]);
                assert!(found[found.len() - size..] == area[..size]);
            }
        }
        // A length of 0: up to the end.
        let block = pattern(8, size);
        assert_eq!(
            bench.command(&client, &cdb(opcode, 0, end - 9, 0), &block, 0).status,
            Status::Good
        );
        assert!(read(bench, &client, end - 9, 9) == block.repeat(9));
    }
    let area = vec![0xdd; 4 * size];
    assert_eq!(write(bench, &client, 0, &area).status, Status::Good);
    assert_eq!(bench.command(&client, &cdb(0x93, 1, 1, 2), &[], 0).status, Status::Good, "NDOB");
    let found = read(bench, &client, 0, 4);
    assert!(found[size..3 * size].iter().all(|byte| *byte == 0));
    assert!(found[..size] == area[..size] && found[3 * size..] == area[..size]);
}

fn same_refused(bench: &mut Bench) {
    if !writable(bench) {
        return;
    }
    let client = bench.client(1);
    let (size, end) = (size(bench), bench.unit().blocks());
    let block = vec![0; 2 * size];
    let before = bench.requests();
    for opcode in [0x41, 0x93] {
        for anchor in [0x10, 0x18] {
            let answer = bench.command(&client, &cdb(opcode, anchor, 0, 1), &block[..size], 0);
            assert_eq!(answer.code(), code::INVALID_FIELD_IN_CDB, "ANCHOR");
        }
        for given in [0, size / 2, size - 1, size + 1, 2 * size] {
            let answer = bench.command(&client, &cdb(opcode, 0, 0, 1), &block[..given], 0);
            assert_eq!(answer.code(), code::INVALID_FIELD_IN_CDB, "{given} bytes");
        }
        let obsolete = bench.command(&client, &cdb(opcode, 2, 0, 1), &block[..size], 0);
        assert_eq!(obsolete.code(), code::INVALID_FIELD_IN_CDB, "LBDATA");
        for (lba, blocks) in [(end, 1), (end + 1, 0), (end - 1, 2), (end - 255, 256)] {
            let answer = bench.command(&client, &cdb(opcode, 0, lba, blocks), &block[..size], 0);
            assert_eq!(answer.code(), code::LBA_OUT_OF_RANGE);
        }
    }
    let most = crate::unit::WRITE_SAME_BLOCKS_MAX;
    if end > u64::from(most) {
        for blocks in [0, most + 1] {
            let answer = bench.command(&client, &cdb(0x93, 0, 0, blocks), &block[..size], 0);
            assert_eq!(answer.sense, Some(Sense::cdb(10)));
        }
    }
    assert_eq!(bench.requests(), before);
}

/// The parameter list of an UNMAP.
pub(super) fn descriptors(ranges: &[(u64, u32)]) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    let len = u16::try_from(ranges.len() * 16).expect("small");
    bytes[..2].copy_from_slice(&(len + 6).to_be_bytes());
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    for (lba, blocks) in ranges {
        bytes.extend(lba.to_be_bytes());
        bytes.extend(blocks.to_be_bytes());
        bytes.extend([0; 4]);
    }
    bytes
}

fn send_unmap(bench: &mut Bench, client: &Nexus, list: &[u8]) -> Answer {
    let [high, low] = u16::try_from(list.len()).expect("small").to_be_bytes();
    bench.command(client, &[0x42, 0, 0, 0, 0, 0, 0, high, low, 0], list, 0)
}

fn unmap(bench: &mut Bench) {
    let client = bench.client(1);
    let (size, end) = (size(bench), bench.unit().blocks());
    if !bench.unit().thin {
        let answer = send_unmap(bench, &client, &descriptors(&[]));
        assert_eq!(answer.code(), code::INVALID_OPCODE);
        return;
    }
    let zero = bench.unit().unmapped_is_zero;
    let area = vec![0x61; 300 * size];
    for ranges in [
        vec![(0, 1)],
        vec![(0, 256)],
        vec![(3, 5), (20, 8), (20, 9), (290, 0)],
        (0..256).map(|lba| (lba, 1)).collect(),
        (0..256).map(|lba| (lba / 2, 0)).collect(),
        vec![(end, 0)],
        vec![],
    ] {
        assert_eq!(write(bench, &client, 0, &area).status, Status::Good);
        let answer = send_unmap(bench, &client, &descriptors(&ranges));
        assert_eq!((answer.status, answer.residual), (Status::Good, Residual::Exact));
        let found = read(bench, &client, 0, 300);
        for (lba, block) in found.chunks(size).enumerate() {
            let given = ranges
                .iter()
                .any(|(from, blocks)| (*from..from + u64::from(*blocks)).contains(&(lba as u64)));
            let expected = if given { 0 } else { 0x61 };
            assert!((given && !zero) || block.iter().all(|byte| *byte == expected), "block {lba}");
        }
    }
    assert_eq!(
        bench.command(&client, &[0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[], 0).status,
        Status::Good
    );
}

fn unmap_refused(bench: &mut Bench) {
    if !bench.unit().thin {
        return;
    }
    let client = bench.client(1);
    let end = bench.unit().blocks();
    let area = vec![0x62; 8 * size(bench)];
    assert_eq!(write(bench, &client, 0, &area).status, Status::Good);
    let before = bench.requests();
    let refused = |bench: &mut Bench, list: &[u8], code: u16| {
        assert_eq!(send_unmap(bench, &client, list).code(), code);
    };
    // One wrong descriptor, and none is obeyed.
    for wrong in [(end, 1), (end - 1, 2), (u64::MAX, 1), (u64::MAX, u32::MAX), (end + 1, 0)] {
        refused(bench, &descriptors(&[(0, 1), wrong]), code::LBA_OUT_OF_RANGE);
    }
    let many: Vec<(u64, u32)> = (0..257).map(|_| (0, 1)).collect();
    refused(bench, &descriptors(&many), code::INVALID_FIELD_IN_PARAMETERS);
    for len in 1..8 {
        refused(bench, &descriptors(&[])[..len], code::PARAMETER_LIST_LENGTH);
    }
    // Lengths that lie.
    let mut lies = descriptors(&[(0, 1)]);
    lies[2..4].copy_from_slice(&17_u16.to_be_bytes());
    refused(bench, &lies, code::PARAMETER_LIST_LENGTH);
    lies[2..4].copy_from_slice(&u16::MAX.to_be_bytes());
    refused(bench, &lies, code::PARAMETER_LIST_LENGTH);
    let list = descriptors(&[(0, 1)]);
    let cut = bench.command(&client, &[0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0], &list[..23], 0);
    assert_eq!(cut.code(), code::PARAMETER_LIST_LENGTH, "less data than announced");
    let anchor = bench.command(&client, &[0x42, 1, 0, 0, 0, 0, 0, 0, 24, 0], &list, 0);
    assert_eq!(anchor.sense, Some(Sense::cdb_bit(1, 0)));
    let blocks = crate::unit::UNMAP_BLOCKS_MAX;
    if end > u64::from(blocks) {
        refused(bench, &descriptors(&[(0, blocks), (0, 1)]), code::INVALID_FIELD_IN_PARAMETERS);
    }
    assert_eq!(bench.requests(), before);
    assert!(read(bench, &client, 0, 8) == area);
}

fn compare_and_write(bench: &mut Bench) {
    if !writable(bench) {
        return;
    }
    let client = bench.client(1);
    let (size, end) = (size(bench), bench.unit().blocks());
    let most = bench.unit().compare_blocks_max();
    for blocks in 1..=255_u8 {
        let len = usize::from(blocks) * size;
        let (old, new) = (vec![b'A'; len], vec![b'B'; len]);
        for lba in [0, end - u64::from(blocks)] {
            let both = [old.clone(), new.clone()].concat();
            if blocks > most {
                let answer = bench.command(&client, &compare_cdb(0, lba, blocks), &both, 0);
                assert_eq!(answer.sense, Some(Sense::cdb(13)));
                continue;
            }
            assert_eq!(write(bench, &client, lba, &old).status, Status::Good);
            let mut wrong = both.clone();
            wrong[len - 27] = b'C';
            let answer = bench.command(&client, &compare_cdb(0, lba, blocks), &wrong, 0);
            assert_eq!(answer.sense, miscompare(len - 27));
            assert!(read(bench, &client, lba, blocks.into()) == old, "written in spite of it");
            let answer = bench.command(&client, &compare_cdb(0x18, lba, blocks), &both, 0);
            assert_eq!((answer.status, answer.residual), (Status::Good, Residual::Exact));
            assert!(read(bench, &client, lba, blocks.into()) == new);
        }
    }
    let before = bench.requests();
    let block = vec![0; 4 * size];
    for (given, blocks) in [(4, 1), (4, 3), (0, 1), (1, 1)] {
        let answer = bench.command(&client, &compare_cdb(0, 0, blocks), &block[..given * size], 0);
        assert_eq!(answer.sense, Some(Sense::cdb(13)), "{given} blocks for {blocks}");
    }
    assert_eq!(bench.command(&client, &compare_cdb(0, 0, 0), &[], 0).status, Status::Good);
    for lba in [end, end + 1, u64::MAX] {
        let answer = bench.command(&client, &compare_cdb(0, lba, 1), &block[..2 * size], 0);
        assert_eq!(answer.code(), code::LBA_OUT_OF_RANGE);
    }
    assert_eq!(bench.requests(), before);
}

fn caches(bench: &mut Bench) {
    let client = bench.client(1);
    for opcode in [0x35, 0x91] {
        for flags in [0, 2] {
            let before = bench.requests();
            let answer = bench.command(&client, &cdb(opcode, flags, 0, 8), &[], 0);
            assert_eq!(answer.status, Status::Good);
            assert_eq!(bench.requests(), before + 1, "the volume knows whether anything was lost");
        }
    }
    let page = bench.command(&client, &[0x1a, 8, 0x08, 0, 255, 0], &[], 255).good();
    assert_eq!(page[6] & 4 != 0, bench.unit().volatile_cache, "WCE");
    for (opcode, flags) in [(0x34, 0), (0x34, 2), (0x90, 0), (0x90, 2)] {
        let mut fetch = cdb(opcode, flags, 0, 4);
        let group = if opcode == 0x34 { 6 } else { 14 };
        fetch[group] = 3;
        assert_eq!(bench.command(&client, &fetch, &[], 0).status, Status::Good);
    }
}

fn protected(bench: &mut Bench) {
    if writable(bench) {
        return;
    }
    let client = bench.client(1);
    let size = size(bench);
    let block = vec![1; size];
    let before = bench.requests();
    let commands = [&WRITES[..], &WRITES_AND_VERIFIES, &[0x41, 0x93]].concat();
    let mut answers: Vec<Answer> = Vec::new();
    for opcode in commands {
        answers.push(bench.command(&client, &cdb(opcode, 0, 0, 1), &block, 0));
    }
    answers.push(bench.command(&client, &cdb(0x93, 1, 0, 1), &[], 0));
    for opcode in [0x41, 0x93] {
        answers.push(bench.command(&client, &cdb(opcode, 0x08, 0, 1), &block, 0));
    }
    answers.push(bench.command(&client, &compare_cdb(0, 0, 1), &block.repeat(2), 0));
    for answer in answers {
        assert_eq!(answer.sense, Some(Sense::new(SenseKey::DataProtect, code::WRITE_PROTECTED)));
    }
    assert_eq!(bench.requests(), before);
    let modes = bench.command(&client, &[0x1a, 8, 0x3f, 0, 255, 0], &[], 255).good();
    assert_eq!(modes[2] & 0x80, 0x80, "WP");
}
