//! The bytes are those of the page and of earlier versions, and nothing else is taken for them.

use super::*;
use proptest::prelude::*;

const POOL: Uuid = Uuid(*b"the pool, for me");
const PV: Uuid = Uuid(*b"pv number three.");

fn map(generation: u16) -> Record {
    Record { lu: 7, vchunk: 9, pv: 3, chunk: 77, generation, epoch: 5, ..Record::of(Kind::Map) }
}

fn superblock() -> Superblock {
    let member = |index: u8| Member {
        pv: if index == 3 { PV } else { Uuid([index; 16]) },
        chunks: 4096,
        tier: 1,
        group: index % 2,
        state: MemberState::In,
        sync_until: 4,
        had: 0,
        seen: 6,
    };
    let mut owners = [Owner::default(); OWNERS];
    owners[0] = Owner { server: Uuid([0xaa; 16]), epoch: 3 };
    Superblock {
        pool: POOL,
        sequence: 11,
        epoch: 6,
        parent: [0x55; 16],
        features: [0, 0, 1],
        root: Root { sequence: 1000, checksum: [0x66; 16] },
        owners,
        members: (0..5).map(member).collect(),
        extents: vec![
            Extent { kind: SystemKind::Journal, slot: 0, pv: 3, chunk: 1, count: 1 },
            Extent { kind: SystemKind::Homes, slot: 0, pv: 3, chunk: 2, count: 2 },
        ],
    }
}

fn journal() -> JournalBlock {
    JournalBlock {
        pool: POOL,
        slot: 5,
        sequence: 1001,
        epoch: 6,
        owner_epoch: 3,
        previous: [0x66; 16],
        more: true,
        records: vec![map(1), Record { kind: Kind::Free, ..map(1) }],
    }
}

fn page() -> Page {
    Page {
        pool: POOL,
        kind: PageKind::Map,
        pv: 3,
        number: 2,
        copy: 1,
        sequence: 1000,
        epoch: 6,
        records: vec![Record::of(Kind::System), map(2), Record::of(Kind::None)],
    }
}

/// What a snapshot of an LU and a write after it say: feature 1 of `REFUSE`.
fn layers() -> JournalBlock {
    let create = |lu, flags, vchunk, chunk, aux| Record {
        lu,
        flags,
        vchunk,
        chunk,
        aux,
        leg: 1,
        ..Record::of(Kind::LuCreate)
    };
    let snapshot = create(8, 4, 9, 7, 7 << 8 | 1);
    let layer = create(9, 2, 10, 7, 1);
    let head = Record { lu: 7, chunk: 9, ..Record::of(Kind::Head) };
    JournalBlock { records: vec![snapshot, layer, head, slots().records[1]], ..journal() }
}

fn slots() -> Page {
    let part = Record {
        lu: 9,
        vchunk: 4,
        generation: 2047,
        chunk: 2001,
        epoch: 0xff << 8,
        ..Record::of(Kind::Part)
    };
    let records = vec![Record::of(Kind::None), part];
    Page { kind: PageKind::Slots, number: 77, records, ..page() }
}

/// An LU whose data has checksums, and the space for those: feature 4 of `REFUSE`.
fn summed() -> JournalBlock {
    let lu = Record { lu: 7, vchunk: 600, leg: 2, aux: 1, ..Record::of(Kind::LuCreate) };
    let space = Record { lu: 8, vchunk: 2, flags: 16, aux: 7 << 8 | 1, ..lu };
    JournalBlock { records: vec![lu, space], ..journal() }
}

fn sums() -> Vec<u32> {
    (0..SUMS_OF_CHUNK as u32).map(|at| at.wrapping_mul(0x9e37_79b9)).collect()
}

fn home() -> Home {
    Home {
        pool: POOL,
        pv: 3,
        chunk: 77,
        copy: 1,
        sequence: 1000,
        epoch: 6,
        generation: 2,
        state: HomeState::Mapped,
        lu: 7,
        vchunk: 9,
        leg: 0,
        owner: 0,
        lu_epoch: 5,
        activity: 0,
        written: std::array::from_fn(|index| 0x0101_0101 << (index % 8)),
    }
}

/// A block of each kind, with what reads it where it belongs.
type Reader = fn(&[u8]) -> Result<(), Refused>;
fn blocks() -> [(&'static str, [u8; 8], Vec<u8>, Reader); 8] {
    let label = Label { pool: POOL, pv: PV };
    let place = Place { member: 3, pv: PV, copy: 2 };
    [
        ("label", *b"TLPOOLPV", label.encode(), |block| {
            Label::decode(block).map(|found| assert_eq!(found, Label { pool: POOL, pv: PV }))
        }),
        ("superblock", *b"TLPOOLSB", superblock().encode(place), |block| {
            let read = Superblock::decode(block, 2);
            read.map(|found| {
                assert_eq!(found, (superblock(), Place { member: 3, pv: PV, copy: 2 }))
            })
        }),
        ("journal", *b"TLPOOLJB", journal().encode(), |block| {
            JournalBlock::decode(block, POOL, 5, 1001).map(|found| assert_eq!(found, journal()))
        }),
        ("page", *b"TLPOOLPG", page().encode(), |block| {
            Page::decode(block, POOL, PageKind::Map, 3, 2, 1).map(|found| assert_eq!(found, page()))
        }),
        ("home", *b"TLPOOLHR", home().encode(), |block| {
            Home::decode(block, POOL, 3, 77, 1).map(|found| assert_eq!(found, home()))
        }),
        ("layers", *b"TLPOOLJB", layers().encode(), |block| {
            JournalBlock::decode(block, POOL, 5, 1001).map(|found| assert_eq!(found, layers()))
        }),
        ("slots", *b"TLPOOLPG", slots().encode(), |block| {
            let read = Page::decode(block, POOL, PageKind::Slots, 3, 77, 1);
            read.map(|found| assert_eq!(found, slots()))
        }),
        ("summed", *b"TLPOOLJB", summed().encode(), |block| {
            JournalBlock::decode(block, POOL, 5, 1001).map(|found| assert_eq!(found, summed()))
        }),
    ]
}

#[test]
fn what_is_written_is_read() {
    for (name, _, block, read) in blocks() {
        assert_eq!(read(&block), Ok(()), "{name}");
    }
}

/// Version 1 of each block: the bytes in use, in `golden.txt`. They never change; another version has lines of its own.
#[test]
fn the_images_are_those_of_version_1() {
    let golden = include_str!("golden.txt");
    let mut changed = String::new();
    for (name, _, block, read) in blocks() {
        let used = get(&block, LENGTH) as usize;
        let hex: String = block[..used].iter().map(|byte| format!("{byte:02x}")).collect();
        let line = golden.lines().find_map(|line| line.strip_prefix(&format!("1 {name} ")));
        if line != Some(&*hex) {
            changed += &format!("1 {name} {hex}\n");
            continue;
        }
        let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let mut old: Vec<u8> = (0..hex.len()).step_by(2).map(digit).collect();
        old.resize(block.len(), 0);
        assert_eq!(read(&old), Ok(()), "{name} of version 1");
    }
    assert_eq!(changed, "", "not what version 1 wrote");
}

/// Too long for `golden.txt`, which has what it begins with: its checksum is there, and so all of it is.
#[test]
fn the_record_of_checksums_is_that_of_version_1() {
    let key = (7, 9);
    let mut block = encode_sums(POOL, key, &sums());
    assert_eq!((block.len(), decode_sums(&block, POOL, key)), (SUMS_BYTES, Ok(sums())));
    let hex: String = block[..72].iter().map(|byte| format!("{byte:02x}")).collect();
    let golden = include_str!("golden.txt");
    let line = golden.lines().find_map(|line| line.strip_prefix("1 sums "));
    assert_eq!(line, Some(&*hex), "not what version 1 wrote");
    for bit in (0..8 * 64).chain((8 * 64..8 * block.len()).step_by(997)) {
        block[bit / 8] ^= 1 << (bit % 8);
        assert!(decode_sums(&block, POOL, key).is_err(), "bit {bit} changed without notice");
        block[bit / 8] ^= 1 << (bit % 8);
    }
    for other in [(7, 8), (8, 9)] {
        let refused = decode_sums(&block, POOL, other);
        assert!(matches!(refused, Err(Refused::Misplaced { .. })), "{refused:?}");
    }
    assert!(decode_sums(&block, PV, key).is_err());
}

#[test]
fn every_flipped_bit_is_refused() {
    for (name, _, block, read) in blocks() {
        let mut block = block;
        let used = get(&block, LENGTH) as usize;
        // Of what is in use every bit; of the zeros after it one in each byte.
        let bits = (0..8 * used).chain((used..block.len()).map(|byte| 8 * byte + byte % 8));
        for bit in bits {
            block[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&block).is_err(), "{name}: bit {bit} changed without notice");
            block[bit / 8] ^= 1 << (bit % 8);
        }
        assert_eq!(read(&block), Ok(()));
    }
}

#[test]
fn a_block_is_refused_in_another_place() {
    let block = journal().encode();
    let misplaced =
        |result: Result<JournalBlock, Refused>| matches!(result, Err(Refused::Misplaced { .. }));
    assert!(misplaced(JournalBlock::decode(&block, POOL, 5, 1000)));
    assert!(misplaced(JournalBlock::decode(&block, POOL, 4, 1001)));
    let other = Uuid(*b"another pool now");
    assert_eq!(
        JournalBlock::decode(&block, other, 5, 1001),
        Err(Refused::Pool { what: "journal block", found: POOL })
    );
    let block = page().encode();
    for (kind, pv, number, copy) in [
        (PageKind::Lus, 3, 2, 1),
        (PageKind::Map, 2, 2, 1),
        (PageKind::Map, 3, 1, 1),
        (PageKind::Map, 3, 2, 0),
    ] {
        let read = Page::decode(&block, POOL, kind, pv, number, copy);
        assert!(matches!(read, Err(Refused::Misplaced { .. })), "{kind:?} {pv} {number} {copy}");
    }
    let block = home().encode();
    for (pv, chunk, copy) in [(2, 77, 1), (3, 76, 1), (3, 77, 0)] {
        let read = Home::decode(&block, POOL, pv, chunk, copy);
        assert!(matches!(read, Err(Refused::Misplaced { .. })), "{pv} {chunk} {copy}");
    }
    let block = superblock().encode(Place { member: 3, pv: PV, copy: 2 });
    assert!(matches!(Superblock::decode(&block, 1), Err(Refused::Misplaced { .. })));
}

#[test]
fn copies_of_a_superblock_have_one_fingerprint() {
    let block = superblock();
    let [first, second] = [0, 3].map(|copy| {
        let member = u16::from(copy);
        let place = Place { member, pv: block.members[usize::from(copy)].pv, copy };
        Superblock::decode(&block.encode(place), copy).unwrap().0
    });
    assert_eq!(first.fingerprint(), second.fingerprint());
    let later = Superblock { sequence: 12, ..superblock() };
    assert_ne!(first.fingerprint(), later.fingerprint());
}

/// It stands where nothing was before.
#[test]
fn what_a_stale_member_had_is_kept() {
    let mut superblock = superblock();
    let pv = superblock.members[1].pv;
    superblock.members[1].had = 1 << 40;
    let place = Place { member: 1, pv, copy: 2 };
    let decoded = Superblock::decode(&superblock.encode(place), 2);
    assert_eq!(decoded, Ok((superblock, place)));
}

#[test]
fn a_superblock_has_room_for_all_members() {
    let member = superblock().members[0];
    let extent = superblock().extents[0];
    let extents =
        (0..2048).map(|index| Extent { pv: index / 2, chunk: 1 + u32::from(index % 2), ..extent });
    let mut block = superblock();
    block.members = vec![member; MEMBERS_MAX];
    block.extents = extents.collect();
    let bytes = block.encode(Place { member: 1, pv: member.pv, copy: 0 });
    assert!(bytes.len() <= SUPERBLOCK_BYTES_MAX);
    assert_eq!(Superblock::extent_of(&bytes[..SECTOR_BYTES]), Some(bytes.len()));
    assert_eq!(Superblock::decode(&bytes, 0).unwrap().0, block);
    block.extents[1].chunk = 1;
    let overlap = Superblock::decode(&block.encode(Place { member: 1, pv: member.pv, copy: 0 }), 0);
    assert!(matches!(overlap, Err(Refused::Value { field: "EXTENT_CHUNK", .. })));
}

#[test]
fn a_later_version_is_named() {
    let mut block = journal().encode();
    put(&mut block, FORMAT, 2);
    let sum = Form { magic: *b"TLPOOLJB", what: "" }.sum(POOL, &block[super::POOL.at..160]);
    put_bytes(&mut block, CHECKSUM, &sum);
    assert_eq!(
        JournalBlock::decode(&block, POOL, 5, 1001),
        Err(Refused::Version { what: "journal block", found: 2 })
    );
}

proptest! {
    /// Bytes of any kind are read or refused, also if their checksum holds: somebody may have made it.
    #[test]
    fn nothing_panics(
        which in 0..5_usize,
        changes in prop::collection::vec((0..5000_usize, any::<u8>()), 0..12),
        length in prop::option::of(0..70_000_usize),
        cut in prop::option::of(0..5000_usize),
    ) {
        let (_, magic, mut block, _) = blocks()[which].clone();
        for (at, byte) in changes {
            let at = at % block.len();
            block[at] = byte;
        }
        let length = length.unwrap_or(get(&block, LENGTH) as usize);
        if (ENVELOPE_BYTES..=block.len()).contains(&length) {
            block[length..].fill(0);
            Form { magic, what: "" }.seal(&mut block, POOL, length);
        }
        if let Some(cut) = cut {
            block.truncate(cut);
        }
        let read_again = match which {
            0 => Label::decode(&block).map(|found| found.encode()),
            1 => Superblock::decode(&block, 2).map(|(found, place)| found.encode(place)),
            2 => JournalBlock::decode(&block, POOL, 5, 1001).map(|found| found.encode()),
            3 => Page::decode(&block, POOL, PageKind::Map, 3, 2, 1).map(|found| found.encode()),
            _ => Home::decode(&block, POOL, 3, 77, 1).map(|found| found.encode()),
        };
        // What was understood is written as long as it was.
        prop_assert!(read_again.is_err() || read_again.unwrap().len() == block.len());
    }
}

#[test]
fn every_byte_of_a_layout_has_one_field() {
    for (name, fields) in LAYOUTS {
        let first = if ["Envelope", "Record", "Owner", "Member", "Extent"].contains(name) {
            0
        } else {
            ENVELOPE_BYTES
        };
        let mut end = first;
        for field in *fields {
            assert_eq!(field.at, end, "{name}: {}", field.name);
            end += if field.name == "SUPERBLOCKS" { 32 } else { field.size };
        }
        let whole = match *name {
            "Envelope" => ENVELOPE_BYTES,
            "Label" => 104,
            "Superblock" => 256,
            "Owner" | "Record" => 32,
            "Member" => 48,
            "Extent" => 16,
            "Journal block" => 96,
            "Page" => 1536,
            "Home record" => 224,
            "Checksums" => 68,
            other => panic!("{other} has no size here"),
        };
        assert_eq!(end, whole, "{name}");
    }
}

/// The tables of the page, between its marks; written with `UPDATE_DOCS=1`.
#[test]
fn the_page_has_every_byte() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/pool.md");
    let page = std::fs::read_to_string(path).unwrap();
    let mut now = page.clone();
    let table = |fields: &[Field]| {
        let row = |field: &Field| {
            format!("| {} | {} | `{}` | {} |\n", field.at, field.size, field.name, field.what)
        };
        let rows: String = fields.iter().map(row).collect();
        format!("| at | bytes | name | what |\n|---|---|---|---|\n{rows}")
    };
    let kinds: String = Kind::ALL
        .iter()
        .map(|(kind, what)| format!("| {} | `{kind:?}` | {what} |\n", *kind as u8))
        .collect();
    let kinds = format!("| number | kind | what |\n|---|---|---|\n{kinds}");
    let tables = LAYOUTS.iter().map(|(name, fields)| (*name, table(fields)));
    for (name, table) in tables.chain([("Kinds", kinds)]) {
        let mark = format!("<!-- {name} -->\n");
        let at = now.find(&mark).unwrap_or_else(|| panic!("the page has no {mark}")) + mark.len();
        let end = at + now[at..].find("<!-- end -->").unwrap();
        now.replace_range(at..end, &table);
    }
    if now != page && std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &now).unwrap();
    } else {
        assert!(now == page, "docs/formats/pool.md is stale: run this test with UPDATE_DOCS=1");
    }
}
