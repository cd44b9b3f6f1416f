//! What an optical drive must do, as Linux (sr, cdrom) and Windows (cdrom.sys) ask for it.

use super::Bench;
use crate::management::Function;
use crate::wire::{be16, be32};
use crate::{Medium, Nexus, RemovalPrevented, Residual, Sense, SenseKey, Status, code};

pub(super) const TESTS: &[fn(&mut Bench)] = &[
    inquiry,
    reads,
    writes_do_not_exist,
    contents,
    configuration,
    events,
    ejecting,
    empty,
    another_medium,
    mode_pages,
    small_answers,
    read_cd,
    no_port_groups,
];

const READY: [u8; 6] = [0; 6];
const EJECT: [u8; 6] = [0x1b, 0, 0, 0, 2, 0];
const LOAD: [u8; 6] = [0x1b, 0, 0, 0, 3, 0];
const LOCK: [u8; 6] = [0x1e, 0, 0, 0, 1, 0];
const UNLOCK: [u8; 6] = [0x1e, 0, 0, 0, 0, 0];

fn ask(bench: &mut Bench, client: &Nexus, cdb: &[u8]) -> Vec<u8> {
    bench.command(client, cdb, &[], 4096).good()
}

fn inquiry(bench: &mut Bench) {
    let client = bench.client(1);
    let data = ask(bench, &client, &[0x12, 0, 0, 0, 96, 0]);
    assert_eq!((data[0], data[1], data[5] & 0x30), (5, 0x80, 0), "type 5, removable, no groups");
    assert!((58..74).step_by(2).any(|at| be16(&data, at) == 0x04e0), "MMC-6");
    let pages = ask(bench, &client, &[0x12, 1, 0, 0, 96, 0]);
    assert_eq!(pages, [5, 0, 0, 4, 0x00, 0x80, 0x83, 0x86]);
    for page in [0x80, 0x83, 0x86] {
        assert_eq!(ask(bench, &client, &[0x12, 1, page, 0, 96, 0])[..2], [5, page]);
    }
    let refused = bench.command(&client, &[0x12, 1, 0xb0, 0, 96, 0], &[], 96);
    assert_eq!(refused.sense, Some(Sense::cdb(2)));
    let capacity = ask(bench, &client, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(u64::from(be32(&capacity, 0)), bench.unit().blocks() - 1);
    assert_eq!(be32(&capacity, 4), 2048);
}

fn reads(bench: &mut Bench) {
    let client = bench.client(1);
    let end = u32::try_from(bench.unit().blocks()).expect("small");
    for (lba, blocks) in [(0, 1), (1, 3), (end - 2, 2), (0, 200_u32)] {
        let whole = bench.volume_bytes(u64::from(lba) * 2048, blocks as usize * 2048);
        assert!(whole.iter().any(|byte| *byte != 0), "something to read");
        let (at, count) = (lba.to_be_bytes(), blocks.to_be_bytes());
        let six = [0x08, at[1], at[2], at[3], count[3], 0];
        let ten = [&[0x28, 0], &at[..], &[0, count[2], count[3], 0]].concat();
        let twelve = [&[0xa8, 0], &at[..], &count, &[0, 0]].concat();
        for cdb in [&six[..], &ten, &twelve] {
            let answer = bench.command(&client, cdb, &[], whole.len());
            assert_eq!(answer.residual, Residual::Exact);
            assert!(answer.good() == whole, "{cdb:x?}");
        }
        let part = bench.command(&client, &ten, &[], 1000).good();
        assert!(part == whole[..1000], "a part of a block");
    }
    let far = [&[0x28, 0], &end.to_be_bytes()[..], &[0, 0, 1, 0]].concat();
    assert_eq!(bench.command(&client, &far, &[], 2048).code(), code::LBA_OUT_OF_RANGE);
}

fn writes_do_not_exist(bench: &mut Bench) {
    let client = bench.client(1);
    let before = bench.requests();
    for opcode in [
        0x0a, 0x2a, 0x2e, 0x35, 0x37, 0x41, 0x42, 0x88, 0x89, 0x8a, 0x8e, 0x91, 0x93, 0x9e, 0xaa,
        0xae, 0xa4, 0xb7,
    ] {
        for action in [0, 0x10, 0x1f] {
            let mut cdb = [0; 16];
            (cdb[0], cdb[1]) = (opcode, action);
            let answer = bench.command(&client, &cdb, &[0; 2048], 0);
            assert_eq!(answer.sense, Some(Sense::illegal(code::INVALID_OPCODE)), "{opcode:x}");
        }
    }
    assert_eq!(bench.requests(), before);
    let list = ask(bench, &client, &[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0]);
    let known: Vec<u8> = list[4..].chunks(8).map(|row| row[0]).collect();
    for opcode in [0x08, 0x28, 0xa8, 0x43, 0x46, 0x4a, 0x51, 0x52, 0xad, 0xbd, 0xbe] {
        assert!(known.contains(&opcode), "{opcode:x}");
    }
    assert!(!known.contains(&0x2a) && !known.contains(&0x9e));
}

/// READ TOC, READ DISC INFORMATION, READ TRACK INFORMATION, READ DVD STRUCTURE.
fn contents(bench: &mut Bench) {
    let client = bench.client(1);
    let end = u32::try_from(bench.unit().blocks()).expect("small");
    let toc = |msf: u8, format: u8, track: u8, control: u8| {
        [0x43, msf, format, 0, 0, 0, track, 0, 96, control]
    };
    let whole = ask(bench, &client, &toc(0, 0, 0, 0));
    assert_eq!(whole[..12], [0, 18, 1, 1, 0, 0x14, 1, 0, 0, 0, 0, 0]);
    assert_eq!((whole[14], be32(&whole, 16)), (0xaa, end));
    assert_eq!(ask(bench, &client, &toc(2, 0, 1, 0))[8..12], [0, 0, 2, 0], "minute, second, frame");
    assert_eq!(ask(bench, &client, &toc(0, 0, 0xaa, 0))[4..], whole[12..]);
    assert_eq!(bench.command(&client, &toc(0, 0, 2, 0), &[], 96).sense, Some(Sense::cdb(6)));
    // The last session, as MMC and as Linux asks for it.
    let sessions = ask(bench, &client, &toc(0, 1, 0, 0));
    assert_eq!(sessions, [0, 10, 1, 1, 0, 0x14, 1, 0, 0, 0, 0, 0]);
    assert_eq!(ask(bench, &client, &toc(0, 0, 0, 0x40)), sessions);
    for format in 3..16 {
        let refused = bench.command(&client, &toc(0, format, 0, 0), &[], 96);
        assert_eq!(refused.sense, Some(Sense::cdb_bit(2, 3)));
    }
    let disc = ask(bench, &client, &[0x51, 0, 0, 0, 0, 0, 0, 0, 255, 0]);
    assert_eq!((disc.len(), be16(&disc, 0), disc[2]), (34, 32, 0x0e), "complete");
    let track =
        |kind: u8, at: u32| [&[0x52, kind], &at.to_be_bytes()[..], &[0, 0, 255, 0]].concat();
    for (kind, at) in [(0, 0), (0, end - 1), (1, 1), (2, 1)] {
        let data = ask(bench, &client, &track(kind, at));
        assert_eq!((data.len(), data[5], be32(&data, 24)), (36, 4, end));
    }
    for (kind, at) in [(0, end), (1, 0), (1, 2), (2, 2)] {
        let refused = bench.command(&client, &track(kind, at), &[], 96);
        assert_eq!(refused.sense, Some(Sense::cdb(2)));
    }
    let dvd = [0xad, 0, 0, 0, 0, 0, 0, 0, 8, 4, 0, 0];
    assert_eq!(bench.command(&client, &dvd, &[], 4096).code(), code::INCOMPATIBLE_FORMAT, "a CD");
    let list = ask(bench, &client, &[0xad, 0, 0, 0, 0, 0, 0, 0xff, 0, 96, 0, 0]);
    assert_eq!(usize::from(be16(&list, 0)) + 2, list.len());
}

fn configuration(bench: &mut Bench) {
    let client = bench.client(1);
    // Nothing is told before INQUIRY and this.
    client.tell(crate::Attention::MediumChanged);
    let get = |kind: u8, from: u16| {
        let [high, low] = from.to_be_bytes();
        [0x46, kind, high, low, 0, 0, 0, 4, 0, 0]
    };
    let all = ask(bench, &client, &get(0, 0));
    assert_eq!(be32(&all, 0) as usize + 4, all.len());
    assert_eq!(be16(&all, 6), 0x0008, "CD-ROM");
    let mut found = Vec::new();
    let mut at = 8;
    while at < all.len() {
        let (code, len) = (be16(&all, at), 4 + usize::from(all[at + 3]));
        assert_eq!(all[at + 3] % 4, 0);
        let descriptor = &all[at..at + len];
        assert_eq!(ask(bench, &client, &get(2, code))[8..], *descriptor);
        assert_eq!(ask(bench, &client, &get(0, code))[8..], all[at..]);
        found.push((code, descriptor[2] & 1 != 0));
        at += len;
    }
    assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0), "ascending");
    let current = ask(bench, &client, &get(1, 0));
    let expected: usize = found.iter().filter(|(_, current)| *current).count();
    let mut count = 0;
    let mut at = 8;
    while at < current.len() {
        assert_eq!(current[at + 2] & 1, 1);
        (count, at) = (count + 1, at + 4 + usize::from(current[at + 3]));
    }
    assert_eq!(count, expected);
    assert_eq!(ask(bench, &client, &get(2, 0x0021)).len(), 8, "a feature that there is not");
    assert_eq!(bench.command(&client, &READY, &[], 0).code(), code::MEDIUM_CHANGED);
    assert_eq!(bench.command(&client, &get(3, 0), &[], 96).sense, Some(Sense::cdb_bit(1, 1)));
    bench.unit().set_medium(Some(4 << 30));
    assert_eq!(be16(&ask(bench, &client, &get(0, 0)), 6), 0x0010, "DVD-ROM");
    bench.unit().set_medium(None);
    assert_eq!(be16(&ask(bench, &client, &get(0, 0)), 6), 0, "none");
}

/// Event code and status of the media class.
fn event(bench: &mut Bench, client: &Nexus) -> (u8, u8) {
    let data = ask(bench, client, &[0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8, 0]);
    assert_eq!((be16(&data, 0), data[2], data.len()), (6, 4, 8));
    (data[4], data[5])
}

fn events(bench: &mut Bench) {
    let (client, other) = (bench.client(1), bench.client(2));
    assert_eq!(event(bench, &client), (0, 2), "nothing happened, a medium is there");
    let bytes = bench.unit().bytes();
    bench.unit().set_medium(None);
    bench.unit().set_medium(Some(bytes));
    // A look at the header only, or at another class, tells no event; what superseded it does not come later.
    ask(bench, &client, &[0x4a, 1, 0, 0, 0x10, 0, 0, 0, 4, 0]);
    let busy = ask(bench, &client, &[0x4a, 1, 0, 0, 0x40, 0, 0, 0, 8, 0]);
    assert_eq!(busy, [0, 6, 6, 0x56, 0, 0, 0, 0]);
    assert_eq!(event(bench, &client), (2, 2), "a new medium, before the unit attention is told");
    assert_eq!(event(bench, &client), (0, 2));
    assert_eq!(bench.command(&client, &READY, &[], 0).code(), code::MEDIUM_CHANGED);
    assert_eq!(event(bench, &other), (2, 2), "each is told");
    bench.command(&other, &READY, &[], 0);
    assert_eq!(bench.command(&client, &EJECT, &[], 0).status, Status::Good);
    assert_eq!(event(bench, &client), (3, 1), "gone, and the tray is open");
    assert_eq!(bench.command(&client, &LOAD, &[], 0).status, Status::Good);
    assert_eq!(event(bench, &client), (2, 2));
    // The medium is wanted, and a client has locked it.
    assert_eq!(bench.command(&client, &LOCK, &[], 0).status, Status::Good);
    assert_eq!(bench.unit().remove_medium(), Err(RemovalPrevented));
    assert_eq!(event(bench, &client), (1, 2), "an eject request");
    assert_eq!(event(bench, &client), (0, 2));
    let classes = ask(bench, &client, &[0x4a, 1, 0, 0, 0x08, 0, 0, 0, 8, 0]);
    assert_eq!(classes, [0, 2, 0x80, 0x56], "a class that there is not");
    let waiting = bench.command(&client, &[0x4a, 0, 0, 0, 0x10, 0, 0, 0, 8, 0], &[], 8);
    assert_eq!(waiting.sense, Some(Sense::cdb_bit(1, 0)));
}

fn ejecting(bench: &mut Bench) {
    let (client, other) = (bench.client(1), bench.client(2));
    assert!(bench.unit().medium_loaded());
    assert_eq!(bench.command(&client, &LOCK, &[], 0).status, Status::Good);
    for nexus in [&client, &other] {
        let refused = bench.command(nexus, &EJECT, &[], 0).sense;
        assert_eq!(refused, Some(Sense::illegal(code::REMOVAL_PREVENTED)));
    }
    assert_eq!(bench.command(&client, &UNLOCK, &[], 0).status, Status::Good);
    assert_eq!(bench.command(&client, &EJECT, &[], 0).status, Status::Good);
    assert_eq!(bench.unit().medium(), Medium::Ejected, "the server learns of it");
    let sense = bench.command(&other, &READY, &[], 0).sense.expect("no medium");
    assert_eq!((sense.key, sense.code), (SenseKey::NotReady, code::NO_MEDIUM_TRAY_OPEN));
    let mechanism = ask(bench, &client, &[0xbd, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0]);
    assert_eq!(mechanism[1], 0x10, "the door is open");
    Function::LogicalUnitReset.finish(&client);
    assert_eq!(bench.unit().medium(), Medium::Ejected, "a reset closes no tray");
    bench.command(&client, &READY, &[], 0);
    bench.command(&other, &READY, &[], 0);
    assert_eq!(bench.command(&client, &LOAD, &[], 0).status, Status::Good);
    assert_eq!(bench.command(&client, &READY, &[], 0).status, Status::Good);
    assert_eq!(bench.command(&other, &READY, &[], 0).code(), code::MEDIUM_CHANGED);
    // The server takes it all the same.
    assert_eq!(bench.command(&client, &LOCK, &[], 0).status, Status::Good);
    assert!(bench.unit().removal_prevented());
    bench.unit().set_medium(None);
    assert_eq!(bench.unit().medium(), Medium::Empty);
    assert_eq!(bench.command(&client, &READY, &[], 0).code(), code::NO_MEDIUM_TRAY_CLOSED);
    assert_eq!(bench.command(&client, &UNLOCK, &[], 0).status, Status::Good);
    let layers = bench.command(&client, &[0x1b, 0, 0, 0, 4, 0], &[], 0);
    assert_eq!(layers.sense, Some(Sense::cdb_bit(4, 2)));
}

fn empty(bench: &mut Bench) {
    let client = bench.client(1);
    bench.unit().set_medium(None);
    let before = bench.requests();
    for opcode in [0x00, 0x08, 0x25, 0x28, 0x2f, 0x43, 0x51, 0x52, 0xa8, 0xad, 0xbe] {
        let mut cdb = [0; 16];
        cdb[0] = opcode;
        let sense = bench.command(&client, &cdb, &[], 2048).sense.expect("no medium");
        assert_eq!((sense.key, sense.code >> 8), (SenseKey::NotReady, 0x3a), "{opcode:x}");
    }
    assert_eq!(bench.requests(), before);
    assert_eq!(event(bench, &client), (3, 0));
    let start = bench.command(&client, &[0x1b, 0, 0, 0, 1, 0], &[], 0);
    assert_eq!(start.code(), code::NO_MEDIUM_TRAY_CLOSED);
    // Out with the empty tray and in again: nothing came of it.
    for (cdb, medium) in [(EJECT, code::NO_MEDIUM_TRAY_OPEN), (LOAD, code::NO_MEDIUM_TRAY_CLOSED)] {
        assert_eq!(bench.command(&client, &cdb, &[], 0).status, Status::Good);
        assert_eq!(bench.command(&client, &READY, &[], 0).code(), medium);
        assert_eq!(bench.unit().medium(), Medium::Empty);
    }
    assert_eq!(event(bench, &client), (0, 0));
    assert_eq!(ask(bench, &client, &[0x12, 0, 0, 0, 36, 0])[0], 5);
    assert_eq!(bench.unit().remove_medium(), Ok(()), "nothing to take away");
}

fn another_medium(bench: &mut Bench) {
    let (client, other) = (bench.client(1), bench.client(2));
    let bytes = bench.unit().bytes();
    // Not a whole number of blocks: the rest cannot be read.
    bench.unit().set_medium(Some(bytes / 2 + 512));
    for nexus in [&client, &other] {
        let sense = bench.command(nexus, &READY, &[], 0).sense;
        assert_eq!(sense, Some(crate::Attention::MediumChanged.sense()));
        let capacity = ask(bench, nexus, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(u64::from(be32(&capacity, 0)), bytes / 2 / 2048 - 1);
    }
    // The tray is open; a new medium closes it.
    assert_eq!(bench.command(&client, &EJECT, &[], 0).status, Status::Good);
    bench.unit().set_medium(Some(bytes));
    assert_eq!(bench.unit().medium(), Medium::Loaded);
    assert_eq!(bench.command(&client, &READY, &[], 0).code(), code::MEDIUM_CHANGED);
    assert_eq!(bench.command(&client, &READY, &[], 0).status, Status::Good);
    assert_eq!(bench.unit().remove_medium(), Ok(()));
    assert_eq!(bench.unit().medium(), Medium::Empty);
}

fn mode_pages(bench: &mut Bench) {
    let client = bench.client(1);
    // As sr asks: ten bytes, and 128 bytes of room.
    let data = ask(bench, &client, &[0x5a, 0, 0x2a, 0, 0, 0, 0, 0, 128, 0]);
    assert_eq!((usize::from(be16(&data, 0)) + 2, be16(&data, 6)), (data.len(), 0));
    let page = &data[8..];
    assert_eq!((page[0], usize::from(page[1]) + 2), (0x2a, page.len()));
    assert_eq!((page[2] & 0x08, page[3], page[6] >> 5), (0x08, 0, 1), "DVD, no writes, a tray");
    assert_eq!(page[6] & 0x0b, 0x09, "ejects, can be locked, is not");
    assert!(be16(page, 8) > 0);
    bench.command(&client, &LOCK, &[], 0);
    assert_eq!(ask(bench, &client, &[0x5a, 0, 0x2a, 0, 0, 0, 0, 0, 128, 0])[14] & 0x02, 0x02);
    for control in 0..3_u8 {
        let all = ask(bench, &client, &[0x5a, 0, control << 6 | 0x3f, 0, 0, 0, 0, 1, 0, 0]);
        let short = ask(bench, &client, &[0x1a, 0, control << 6 | 0x3f, 0, 255, 0]);
        assert_eq!((&all[8..], short[3]), (&short[4..], 0));
        let mut alone = Vec::new();
        for page in [0x01, 0x0e, 0x1a, 0x1d, 0x2a] {
            let one = ask(bench, &client, &[0x1a, 0, control << 6 | page, 0, 255, 0]);
            alone.extend_from_slice(&one[4..]);
        }
        assert_eq!(alone, all[8..]);
    }
    for page in [0x05, 0x08, 0x0a, 0x1c] {
        let refused = bench.command(&client, &[0x5a, 0, page, 0, 0, 0, 0, 0, 128, 0], &[], 128);
        assert_eq!(refused.sense, Some(Sense::cdb_bit(2, 5)));
    }
    // sr sets the length of blocks to what it is.
    let list = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 8, 0];
    let set = bench.command(&client, &[0x15, 0x10, 0, 0, 12, 0], &list, 0);
    assert_eq!(set.status, Status::Good);
    let mut other = list;
    other[10] = 9;
    let set = bench.command(&client, &[0x15, 0x10, 0, 0, 12, 0], &other, 0);
    assert_eq!(set.sense, Some(Sense::parameter(4)));
    let speed = [0xbb, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0];
    assert_eq!(bench.command(&client, &speed, &[], 0).status, Status::Good);
}

/// An allocation length cuts an answer, wherever it stands in the CDB.
fn small_answers(bench: &mut Bench) {
    let client = bench.client(1);
    let asks: [(&[u8], usize); 6] = [
        (&[0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0], 8),
        (&[0x46, 0, 0, 0, 0, 0, 0, 0, 0, 0], 8),
        (&[0x51, 0, 0, 0, 0, 0, 0, 0, 0, 0], 8),
        (&[0x52, 1, 0, 0, 0, 1, 0, 0, 0, 0], 8),
        (&[0xad, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0], 9),
        (&[0xbd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 9),
    ];
    for (cdb, at) in asks {
        let mut cdb = cdb.to_vec();
        let mut cut = |len: u8| {
            cdb[at] = len;
            bench.command(&client, &cdb, &[], 255).good()
        };
        let whole = cut(255);
        for len in 0..=255 {
            assert_eq!(cut(len), whole[..whole.len().min(usize::from(len))]);
        }
    }
}

fn read_cd(bench: &mut Bench) {
    let client = bench.client(1);
    let cdb = |kind: u8, main: u8, sub: u8| [0xbe, kind << 2, 0, 0, 0, 1, 0, 0, 2, main, sub, 0];
    let whole = bench.volume_bytes(2048, 4096);
    for kind in [0, 2] {
        let data = bench.command(&client, &cdb(kind, 0x10, 0), &[], 4096).good();
        assert!(data == whole);
        assert_eq!(bench.command(&client, &cdb(kind, 0, 0), &[], 4096).good(), []);
    }
    for kind in [1, 3, 4, 5] {
        let refused = bench.command(&client, &cdb(kind, 0x10, 0), &[], 4096);
        assert_eq!(refused.code(), code::ILLEGAL_MODE_FOR_TRACK);
    }
    let sense =
        |bench: &mut Bench, main, sub| bench.command(&client, &cdb(0, main, sub), &[], 4096).sense;
    assert_eq!(sense(bench, 0xf8, 0), Some(Sense::cdb(9)), "raw sectors");
    assert_eq!(sense(bench, 0x10, 2), Some(Sense::cdb_bit(10, 2)));
    let mut far = cdb(0, 0x10, 0);
    far[2] = 0xff;
    assert_eq!(bench.command(&client, &far, &[], 4096).code(), code::LBA_OUT_OF_RANGE);
}

fn no_port_groups(bench: &mut Bench) {
    let client = bench.client(1);
    let state = crate::AccessState::Unavailable;
    let group = crate::PortGroup { id: 1, state, preferred: false, ports: vec![1] };
    bench.unit().set_port_groups(vec![group]);
    assert_eq!(bench.command(&client, &READY, &[], 0).status, Status::Good);
    let report = [0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0];
    assert_eq!(bench.command(&client, &report, &[], 64).sense, Some(Sense::cdb_bit(1, 4)));
}
