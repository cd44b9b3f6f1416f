//! What a logical unit tells of itself, its modes, and unit attentions.

use super::Bench;
use super::bench::Answer;
use crate::management::Function;
use crate::wire::{be16, be32, be64};
use crate::{AccessState, Attention, Nexus, PortGroup, Residual, Sense, SenseKey, Status, code};

pub(super) const TESTS: &[fn(&mut Bench)] = &[
    inquiry,
    pages,
    capacities,
    luns,
    opcodes,
    mode_pages,
    mode_select,
    attentions,
    resets,
    unknown_commands,
    medium,
    port_groups,
    access_states,
    logs,
    defects,
];

/// A CDB with an allocation length of 255 in the right place.
fn inquire(bench: &mut Bench, client: &Nexus, page: Option<u8>, len: u16) -> Answer {
    let [high, low] = len.to_be_bytes();
    let cdb = [0x12, u8::from(page.is_some()), page.unwrap_or(0), high, low, 0];
    bench.command(client, &cdb, &[], 4096)
}

fn inquiry(bench: &mut Bench) {
    let client = bench.client(1);
    let whole = inquire(bench, &client, None, 511).good();
    assert_eq!(whole.len(), usize::from(whole[4]) + 5);
    assert_eq!((whole[0], whole[2], whole[3] & 0x0f), (0, 6, 2), "a disk of SPC-4");
    assert!(whole[8..36].iter().all(|c| (0x20..=0x7e).contains(c)));
    let standards: Vec<u16> = (58..74).step_by(2).map(|at| be16(&whole, at)).collect();
    assert!([0x0460, 0x04c0].iter().all(|standard| standards.contains(standard)));
    for len in 0..300_u16 {
        let cut = inquire(bench, &client, None, len).good();
        assert_eq!(cut, whole[..whole.len().min(usize::from(len))]);
    }
    let answer = bench.command(&client, &[0x12, 0, 1, 1, 0, 0], &[], 255);
    assert_eq!(answer.sense, Some(Sense::cdb(2)), "a page without EVPD");
    // More asked for than there is room: cut, and the transport is told.
    let answer = bench.command(&client, &[0x12, 0, 0, 0, 96, 0], &[], 10);
    assert_eq!((answer.residual, answer.data.len()), (Residual::Over(86), 10));
    let answer = bench.command(&client, &[0x12, 0, 0, 0, 5, 0], &[], 10);
    assert_eq!(answer.residual, Residual::Under(5));
}

fn pages(bench: &mut Bench) {
    let client = bench.client(1);
    let list = inquire(bench, &client, Some(0), 255).good();
    let pages = &list[4..];
    assert!(pages.windows(2).all(|pair| pair[0] < pair[1]), "ascending: {pages:x?}");
    for wanted in [0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2] {
        assert!(pages.contains(&wanted));
    }
    for page in 0..=255 {
        let answer = inquire(bench, &client, Some(page), 1024);
        if pages.contains(&page) {
            let data = answer.good();
            assert_eq!(data[1], page);
            assert_eq!(usize::from(be16(&data, 2)) + 4, data.len());
        } else {
            assert_eq!(answer.sense, Some(Sense::cdb(2)), "page {page:x}");
        }
    }
    assert_eq!(inquire(bench, &client, Some(0x80), 255).good()[4..], *b"0123456789");
    let limits = inquire(bench, &client, Some(0xb0), 255).good();
    assert_eq!(limits.len(), 64);
    assert!(limits[5] > 0, "COMPARE AND WRITE");
    let thin = inquire(bench, &client, Some(0xb2), 255).good()[5] & 0x80 != 0;
    assert_eq!(be32(&limits, 20) > 0, thin);
    assert_eq!(be32(&limits, 24) > 0, thin);
    let names = inquire(bench, &client, Some(0x83), 255).good();
    let mut kinds = Vec::new();
    let mut at = 4;
    while at < names.len() {
        kinds.push((names[at + 1] >> 4 & 3, names[at + 1] & 0x0f));
        at += 4 + usize::from(names[at + 3]);
    }
    assert_eq!(at, names.len(), "designators fill the page");
    assert_eq!(kinds, [(0, 3), (0, 1), (1, 3), (1, 4), (1, 5)]);
}

fn capacities(bench: &mut Bench) {
    let client = bench.client(1);
    let (last, size) = (bench.unit().blocks() - 1, bench.unit().block_size());
    let ten = bench.command(&client, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[], 8).good();
    assert_eq!((u64::from(be32(&ten, 0)), be32(&ten, 4)), (last, size));
    let answer = bench.command(&client, &[0x25, 0, 0, 0, 0, 1, 0, 0, 0, 0], &[], 8);
    assert_eq!(answer.sense, Some(Sense::cdb(2)), "an LBA without PMI");
    for len in 0..=40 {
        let cdb = [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, len, 0, 0];
        let data = bench.command(&client, &cdb, &[], 64).good();
        assert_eq!(data.len(), usize::from(len).min(32));
        if len >= 12 {
            assert_eq!((be64(&data, 0), be32(&data, 8)), (last, size));
        }
    }
    let status = |lba: u64| {
        let mut cdb = [0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0];
        cdb[2..10].copy_from_slice(&lba.to_be_bytes());
        cdb
    };
    for lba in [0, 1, last] {
        let data = bench.command(&client, &status(lba), &[], 24).good();
        assert_eq!((be32(&data, 0), be64(&data, 8)), (20, lba));
        assert_eq!(u64::from(be32(&data, 16)), last + 1 - lba);
    }
    for lba in [last + 1, last + 2, 1 << 63, u64::MAX] {
        let answer = bench.command(&client, &status(lba), &[], 24);
        assert_eq!(answer.code(), code::LBA_OUT_OF_RANGE);
    }
    bench.unit().set_bytes(bench.unit().bytes());
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).status, Status::Good, "nothing changed");
}

fn luns(bench: &mut Bench) {
    let client = bench.client(1);
    let list = |bench: &mut Bench, select| {
        bench.command(&client, &[0xa0, 0, select, 0, 0, 0, 0, 0, 1, 0, 0, 0], &[], 256)
    };
    let units = [0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let far = [0x41, 44, 0, 0, 0, 0, 0, 0];
    let well_known = [0xc1, 1, 0, 0, 0, 0, 0, 0];
    let expected = [&units[..], &far].concat();
    assert_eq!(list(bench, 0).good(), expected);
    assert_eq!(list(bench, 1).good(), [&[0, 0, 0, 8, 0, 0, 0, 0], &well_known[..]].concat());
    assert_eq!(list(bench, 2).good()[32..], well_known);
    assert_eq!(list(bench, 3).sense, Some(Sense::cdb(2)));
    // It tells what this unit attention would have told.
    client.tell(Attention::LunsChanged);
    client.tell(Attention::ModeChanged);
    assert_eq!(list(bench, 0).status, Status::Good);
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).code(), code::MODE_CHANGED);
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).status, Status::Good);
}

fn opcodes(bench: &mut Bench) {
    let client = bench.client(1);
    let ask = |bench: &mut Bench, options: u8, opcode: u8, action: u8| {
        let cdb = [0xa3, 0x0c, options, opcode, 0, action, 0, 0, 0xff, 0xff, 0, 0];
        bench.command(&client, &cdb, &[], 0xffff)
    };
    let all = ask(bench, 0, 0, 0).good();
    let timed = ask(bench, 0x80, 0, 0).good();
    assert_eq!(all.len(), be32(&all, 0) as usize + 4);
    let rows: Vec<&[u8]> = all[4..].chunks(8).collect();
    assert_eq!(timed.len() - 4, rows.len() * 20);
    for (index, row) in rows.iter().enumerate() {
        let (opcode, action, actions) = (row[0], row[3], row[5] & 1 != 0);
        assert_eq!(row[5] & 2, 0, "no timeouts were asked for");
        assert!(actions || action == 0);
        let with_time = &timed[4 + 20 * index..];
        assert_eq!((with_time[0], with_time[5] & 2, with_time[9]), (opcode, 2, 0x0a));
        let (right, wrong) = if actions { (2, 1) } else { (1, 2) };
        assert_eq!(ask(bench, wrong, opcode, action).code(), code::INVALID_FIELD_IN_CDB);
        for options in [right, 3] {
            let one = ask(bench, options, opcode, action).good();
            let len = usize::from(be16(&one, 2));
            assert_eq!((one[1] & 7, one[4], one.len()), (3, opcode, 4 + len));
            assert_eq!(len, usize::from(be16(row, 6)));
            assert_eq!(ask(bench, 0x80 | options, opcode, action).good().len(), 4 + len + 12);
        }
    }
    for opcode in 0..=255 {
        if rows.iter().all(|row| row[0] != opcode) {
            assert_eq!(ask(bench, 1, opcode, 0).good()[1] & 7, 1, "{opcode:x} is not supported");
            assert_eq!(bench.command(&client, &[opcode; 32], &[], 0).code(), code::INVALID_OPCODE);
        }
    }
    assert_eq!(ask(bench, 2, 0x5e, 31).good()[1] & 7, 1, "an action that is not supported");
    assert_eq!(ask(bench, 4, 0, 0).code(), code::INVALID_FIELD_IN_CDB);
    let functions =
        bench.command(&client, &[0xa3, 0x0d, 0x80, 0, 0, 0, 0, 0, 0, 16, 0, 0], &[], 16);
    assert_eq!(functions.good()[..4], [0xde, 0x03, 0, 0x0c]);
}

fn mode_pages(bench: &mut Bench) {
    let client = bench.client(1);
    for control in 0..3_u8 {
        let all = bench.command(&client, &[0x1a, 0, control << 6 | 0x3f, 0, 255, 0], &[], 255);
        assert_eq!(all.residual, Residual::Under(255 - all.data.len() as u64));
        let all = all.good();
        assert_eq!((usize::from(all[0]) + 1, all[3]), (all.len(), 8));
        assert_eq!(all[2] & 0x10, 0x10, "DPOFUA");
        let long =
            bench.command(&client, &[0x5a, 0, control << 6 | 0x3f, 0, 0, 0, 0, 1, 0, 0], &[], 256);
        let long = long.good();
        assert_eq!(usize::from(be16(&long, 0)) + 2, long.len());
        assert_eq!(long[8..], all[4..]);
        let mut alone = Vec::new();
        for page in [0x08, 0x0a, 0x1c] {
            let one = bench.command(&client, &[0x1a, 8, control << 6 | page, 0, 255, 0], &[], 255);
            let one = one.good();
            assert_eq!((one[3], one[4]), (0, page));
            alone.extend_from_slice(&one[4..]);
        }
        assert_eq!(alone, all[12..]);
    }
    let wide = bench.command(&client, &[0x5a, 0x10, 0x08, 0, 0, 0, 0, 1, 0, 0], &[], 256).good();
    assert_eq!((wide[4], be16(&wide, 6)), (1, 16));
    assert_eq!(be64(&wide, 8), bench.unit().blocks());
    let refused = |bench: &mut Bench, page, subpage| {
        bench.command(&client, &[0x1a, 0, page, subpage, 255, 0], &[], 255).sense
    };
    assert_eq!(refused(bench, 0xff, 0), Some(Sense::illegal(code::SAVING_NOT_SUPPORTED)));
    assert_eq!(refused(bench, 0x02, 0), Some(Sense::cdb_bit(2, 5)));
    assert_eq!(refused(bench, 0x0a, 1), Some(Sense::cdb(3)));
    let short = bench.command(&client, &[0x1a, 0, 0x3f, 0, 4, 0], &[], 4);
    assert_eq!((short.residual, short.data.len()), (Residual::Exact, 4));
}

/// A MODE SELECT(6) of a control page.
fn select(bench: &mut Bench, client: &Nexus, page: &[u8]) -> Answer {
    let list = [&[0, 0, 0, 0], page].concat();
    // Shorter than 255.
    bench.command(client, &[0x15, 0x10, 0, 0, list.len() as u8, 0], &list, 0)
}

fn mode_select(bench: &mut Bench) {
    let (client, other) = (bench.client(1), bench.client(2));
    let size = bench.unit().block_size() as usize;
    let page = bench.command(&client, &[0x1a, 8, 0x0a, 0, 255, 0], &[], 255).good()[4..].to_vec();
    let block = vec![7; size];
    let write = [0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    let writable = bench.command(&client, &write, &block, 0).status == Status::Good;
    let mut protected = page.clone();
    protected[4] |= 0x08;
    assert_eq!(select(bench, &client, &protected).status, Status::Good);
    let told = bench.command(&other, &[0; 6], &[], 0);
    assert_eq!(told.code(), code::MODE_CHANGED, "the others are told");
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).status, Status::Good);
    let refused = bench.command(&other, &write, &block, 0).sense.expect("protected");
    assert_eq!(refused.key, SenseKey::DataProtect);
    assert!(!writable || refused.code == code::SOFTWARE_WRITE_PROTECTED);
    let read = bench.command(&client, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0], &[], size);
    assert_eq!(read.status, Status::Good);
    assert_eq!(
        bench.command(&client, &[0x1a, 8, 0x0a, 0, 255, 0], &[], 255).good()[2] & 0x80,
        0x80
    );
    assert_eq!(select(bench, &client, &page).status, Status::Good);
    assert_eq!(bench.command(&other, &[0; 6], &[], 0).code(), code::MODE_CHANGED);
    assert_eq!(bench.command(&other, &write, &block, 0).status == Status::Good, writable);
    // The same again changes nothing and tells nobody.
    assert_eq!(select(bench, &client, &page).status, Status::Good);
    assert_eq!(bench.command(&other, &[0; 6], &[], 0).status, Status::Good);
    // Descriptor format sense.
    let mut descriptors = page.clone();
    descriptors[2] |= 0x04;
    assert_eq!(select(bench, &client, &descriptors).status, Status::Good);
    assert!(client.descriptor_sense() && other.descriptor_sense());
    assert_eq!(select(bench, &client, &page).status, Status::Good);
    bench.command(&other, &[0; 6], &[], 0);
    wrong_lists(bench, &client, &page);
    assert_eq!(bench.command(&other, &[0; 6], &[], 0).status, Status::Good, "nothing changed");
}

fn wrong_lists(bench: &mut Bench, client: &Nexus, page: &[u8]) {
    let list = [&[0, 0, 0, 0], page].concat();
    for len in 1..list.len() {
        let cut = bench.command(client, &[0x15, 0x10, 0, 0, len as u8, 0], &list[..len], 0);
        let expected = if len == 4 { None } else { Some(code::PARAMETER_LIST_LENGTH) };
        assert_eq!(cut.sense.map(|sense| sense.code), expected, "{len} bytes");
    }
    let less = bench.command(client, &[0x15, 0x10, 0, 0, 16, 0], &list[..15], 0);
    assert_eq!(less.code(), code::PARAMETER_LIST_LENGTH, "less data than announced");
    assert_eq!(bench.command(client, &[0x15, 0x10, 0, 0, 0, 0], &[], 0).status, Status::Good);
    let saving = bench.command(client, &[0x15, 0x11, 0, 0, 16, 0], &list, 0);
    assert_eq!(saving.sense, Some(Sense::cdb_bit(1, 0)));
    for byte in 0..page.len() {
        let mut changed = page.to_vec();
        changed[byte] ^= 0x40;
        let sense = select(bench, client, &changed).sense.expect("refused");
        assert!(matches!(sense.code, code::INVALID_FIELD_IN_PARAMETERS));
        assert_eq!(sense.field.map(|field| usize::from(field.byte)), Some(4 + byte));
    }
}

fn attentions(bench: &mut Bench) {
    let client = bench.unit().attach(Bench::name(1), None);
    client.tell(Attention::CapacityChanged);
    // These are answered and clear nothing.
    assert_eq!(inquire(bench, &client, None, 36).status, Status::Good);
    let first = bench.command(&client, &[0x12, 0, 0, 0, 36, 0], &[], 36);
    assert_eq!(first.status, Status::Good);
    let sense = bench.command(&client, &[0x03, 0, 0, 0, 18, 0], &[], 18).good();
    assert_eq!((sense[2], be16(&sense, 12)), (6, code::POWER_ON), "told and cleared");
    let unknown = bench.command(&client, &[0xff; 16], &[], 0);
    assert_eq!(unknown.code(), code::CAPACITY_CHANGED, "before the command is looked at");
    let sense = bench.command(&client, &[0x03, 1, 0, 0, 18, 0], &[], 18).good();
    assert_eq!(sense, [0x72, 0, 0, 0, 0, 0, 0, 0]);
    for attention in Attention::ALL {
        client.tell(attention);
        let answer = bench.command(&client, &[0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[], 0);
        assert_eq!(answer.sense, Some(attention.sense()));
    }
    let other = bench.client(2);
    bench.unit().set_bytes(bench.unit().bytes() - u64::from(bench.unit().block_size()));
    for nexus in [&client, &other] {
        assert_eq!(bench.command(nexus, &[0; 6], &[], 0).code(), code::CAPACITY_CHANGED);
        assert_eq!(bench.command(nexus, &[0; 6], &[], 0).status, Status::Good);
    }
}

fn resets(bench: &mut Bench) {
    let (client, other) = (bench.client(1), bench.client(2));
    let page = bench.command(&client, &[0x1a, 8, 0x0a, 0, 255, 0], &[], 255).good()[4..].to_vec();
    for (function, told) in
        [(Function::LogicalUnitReset, code::DEVICE_RESET), (Function::TargetReset, code::BUS_RESET)]
    {
        let mut protected = page.clone();
        protected[4] |= 0x08;
        assert_eq!(select(bench, &client, &protected).status, Status::Good);
        bench.command(&other, &[0; 6], &[], 0);
        assert_eq!(bench.command(&client, &[0x16, 0, 0, 0, 0, 0], &[], 0).status, Status::Good);
        let conflict = bench.command(&other, &[0; 6], &[], 0).status;
        assert_eq!(conflict, Status::ReservationConflict);
        function.finish(&other);
        for nexus in [&client, &other] {
            assert_eq!(bench.command(nexus, &[0; 6], &[], 0).code(), told);
            assert_eq!(bench.command(nexus, &[0; 6], &[], 0).status, Status::Good);
        }
        let now = bench.command(&client, &[0x1a, 8, 0x0a, 0, 255, 0], &[], 255).good();
        assert_eq!(now[4..], page, "modes are the defaults again");
    }
    bench.command(&client, &[0x16, 0, 0, 0, 0, 0], &[], 0);
    Function::NexusReset.finish(&client);
    assert_eq!(bench.command(&other, &[0; 6], &[], 0).status, Status::Good, "RESERVE is gone");
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).code(), code::NEXUS_LOSS);
    // TAS is 1: what was cleared ended with TASK ABORTED, and nothing more is said of it.
    Function::ClearTaskSet.finish(&client);
    assert_eq!(bench.command(&other, &[0; 6], &[], 0).status, Status::Good);
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).status, Status::Good);
}

fn unknown_commands(bench: &mut Bench) {
    let client = bench.client(1);
    let before = bench.requests();
    // FORMAT UNIT, WRITE LONG, SANITIZE, EXTENDED COPY, RECEIVE COPY RESULTS, ORWRITE, WRITE ATOMIC, a long CDB.
    for opcode in [0x04, 0x3f, 0x48, 0x83, 0x84, 0x8b, 0x9c, 0x7f] {
        let answer =
            bench.command(&client, &[opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[], 0);
        assert_eq!(answer.sense, Some(Sense::illegal(code::INVALID_OPCODE)));
    }
    for opcode in [0x5e, 0x5f, 0x9e, 0xa3] {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1]) = (opcode, 0x1f);
        let answer = bench.command(&client, &cdb, &[], 0);
        assert_eq!(answer.sense, Some(Sense::cdb_bit(1, 4)), "{opcode:x}");
    }
    // NACA, in the control byte of each length.
    for (opcode, control) in [(0x00, 5), (0x28, 9), (0xa8, 11), (0x88, 15)] {
        let mut cdb = [0; 16];
        (cdb[0], cdb[control]) = (opcode, 0x04);
        let answer = bench.command(&client, &cdb, &[], 0);
        assert_eq!(answer.sense, Some(Sense::cdb_bit(control as u16, 2)));
    }
    assert_eq!(bench.requests(), before);
}

fn medium(bench: &mut Bench) {
    let (client, other) = (bench.client(1), bench.client(2));
    let (eject, load) = ([0x1b, 0, 0, 0, 2, 0], [0x1b, 1, 0, 0, 3, 0]);
    for flags in 0..8 {
        if flags & 2 == 0 {
            let cdb = [0x1b, 0, 0, 0, flags, 0];
            assert_eq!(bench.command(&client, &cdb, &[], 0).status, Status::Good);
            assert_eq!(bench.command(&client, &[0; 6], &[], 0).status, Status::Good);
        }
    }
    if !bench.unit().removable {
        assert_eq!(bench.command(&client, &eject, &[], 0).sense, Some(Sense::cdb_bit(4, 1)));
        let prevent = bench.command(&client, &[0x1e, 0, 0, 0, 1, 0], &[], 0);
        assert_eq!(prevent.code(), code::INVALID_OPCODE);
        return;
    }
    for power in 1..16 {
        let cdb = [0x1b, 1, 0, 0, power << 4 | 2, 0];
        assert_eq!(bench.command(&client, &cdb, &[], 0).status, Status::Good);
        assert_eq!(bench.command(&client, &[0; 6], &[], 0).status, Status::Good);
    }
    let prevent = |bench: &mut Bench, client: &Nexus, how: u8| {
        assert_eq!(bench.command(client, &[0x1e, 0, 0, 0, how, 0], &[], 0).status, Status::Good);
    };
    prevent(bench, &client, 1);
    for nexus in [&client, &other] {
        assert_eq!(bench.command(nexus, &eject, &[], 0).code(), code::REMOVAL_PREVENTED);
    }
    prevent(bench, &client, 0);
    assert_eq!(bench.command(&other, &eject, &[], 0).status, Status::Good);
    no_medium(bench, &client);
    prevent(bench, &client, 1);
    assert_eq!(bench.command(&client, &load, &[], 0).code(), code::REMOVAL_PREVENTED);
    Function::NexusReset.finish(&client);
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).code(), code::NEXUS_LOSS);
    assert_eq!(bench.command(&client, &load, &[], 0).status, Status::Good);
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).status, Status::Good);
    let bytes = bench.unit().bytes();
    bench.unit().set_medium(None);
    bench.unit().set_medium(Some(bytes));
    assert_eq!(bench.command(&other, &[0; 6], &[], 0).code(), code::MEDIUM_CHANGED);
}

fn no_medium(bench: &mut Bench, client: &Nexus) {
    let block = vec![0; bench.unit().block_size() as usize];
    let before = bench.requests();
    for opcode in [
        0x00, 0x08, 0x0a, 0x25, 0x28, 0x2a, 0x2e, 0x2f, 0x34, 0x35, 0x41, 0x88, 0x89, 0x8a, 0x8e,
        0x8f, 0x90, 0x91, 0x93, 0xa8, 0xaa, 0xae, 0xaf,
    ] {
        let mut cdb = [0; 16];
        cdb[0] = opcode;
        let sense = bench.command(client, &cdb, &block, 0).sense.expect("no medium");
        assert_eq!((sense.key, sense.code >> 8), (SenseKey::NotReady, 0x3a), "{opcode:x}");
    }
    assert_eq!(bench.requests(), before);
    let sense = bench.command(client, &[0x03, 0, 0, 0, 18, 0], &[], 18).good();
    assert_eq!((sense[2], sense[12]), (2, 0x3a));
    assert_eq!(inquire(bench, client, None, 36).status, Status::Good);
}

fn port_groups(bench: &mut Bench) {
    let client = bench.client(1);
    let ask = |bench: &mut Bench, len: u8| {
        bench.command(&client, &[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, len, 0, 0], &[], 64)
    };
    let whole = ask(bench, 64).good();
    assert_eq!(whole.len(), be32(&whole, 0) as usize + 4);
    assert_eq!((whole[4] & 0x0f, whole[11]), (0, 1), "active, with one port");
    for len in 0..16 {
        assert_eq!(ask(bench, len).good(), whole[..whole.len().min(usize::from(len))]);
    }
    let group = crate::PortGroup {
        id: 9,
        state: crate::AccessState::ActiveNonOptimized,
        preferred: false,
        ports: vec![1, 2],
    };
    bench.unit().set_port_groups(vec![group.clone()]);
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).code(), code::ACCESS_STATE_CHANGED);
    assert_eq!(ask(bench, 64).good()[4..12], [1, 0xcf, 0, 9, 0, 2, 0, 2]);
    bench.unit().set_port_groups(vec![group]);
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).status, Status::Good, "the same again");
    let wrong = bench.command(&client, &[0xa3, 0x4a, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0], &[], 64);
    assert_eq!(wrong.sense, Some(Sense::cdb_bit(1, 7)));
}

fn set_state(bench: &Bench, state: AccessState) {
    let group = PortGroup { id: 1, state, preferred: false, ports: vec![1] };
    let other =
        PortGroup { id: 2, state: AccessState::ActiveOptimized, preferred: true, ports: vec![2] };
    bench.unit().set_port_groups(vec![group, other]);
}

/// SPC-4, 5.15.2.4: what comes through in which state, and what everything else is told.
fn access_states(bench: &mut Bench) {
    let always: [&[u8]; 4] = [
        &[0x12, 0, 0, 0, 36, 0],
        &[0x03, 0, 0, 0, 18, 0],
        &[0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
        &[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0],
    ];
    let standby: [&[u8]; 6] = [
        &[0x1a, 0, 0x3f, 0, 255, 0],
        &[0x5a, 0, 0x3f, 0, 0, 0, 0, 0, 255, 0],
        &[0x15, 0x10, 0, 0, 0, 0],
        &[0x4d, 0, 0, 0, 0, 0, 0, 0, 64, 0],
        &[0x5e, 0, 0, 0, 0, 0, 0, 0, 64, 0],
        &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    let never: [&[u8]; 5] = [
        &[0, 0, 0, 0, 0, 0],
        &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0],
        &[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0],
        &[0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0x16, 0, 0, 0, 0, 0],
    ];
    let client = bench.client(1);
    let through_two = bench.unit().attach(crate::NexusId { port: 2, ..Bench::name(1) }, None);
    let before = bench.requests();
    for (state, code) in [
        (AccessState::Standby, code::PORT_STANDBY),
        (AccessState::Unavailable, code::PORT_UNAVAILABLE),
        (AccessState::Offline, code::OFFLINE),
        (AccessState::Transitioning, code::ACCESS_STATE_TRANSITION),
    ] {
        set_state(bench, state);
        assert_eq!(bench.command(&client, &[0; 6], &[], 0).code(), code::ACCESS_STATE_CHANGED);
        let refused = Some(Sense::new(SenseKey::NotReady, code));
        for cdb in always {
            assert_eq!(bench.command(&client, cdb, &[], 512).status, Status::Good, "{cdb:x?}");
        }
        for cdb in standby {
            let sense = bench.command(&client, cdb, &[], 512).sense;
            let expected = if state == AccessState::Standby { None } else { refused };
            assert_eq!(sense, expected, "{state:?}, {cdb:x?}");
        }
        for cdb in never {
            assert_eq!(bench.command(&client, cdb, &[0; 512], 0).sense, refused, "{cdb:x?}");
        }
        // A path that is opened now finds the same.
        let late = bench.unit().attach(Bench::name(9), None);
        assert_eq!(bench.command(&late, &[0; 6], &[], 0).code(), code::POWER_ON);
        assert_eq!(bench.command(&late, &[0; 6], &[], 0).sense, refused);
        // The other port goes on.
        while bench.command(&through_two, &[0; 6], &[], 0).status != Status::Good {}
    }
    assert_eq!(bench.requests(), before);
    set_state(bench, AccessState::ActiveNonOptimized);
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).code(), code::ACCESS_STATE_CHANGED);
    assert_eq!(bench.command(&client, &[0; 6], &[], 0).status, Status::Good);
}

fn logs(bench: &mut Bench) {
    let client = bench.client(1);
    let ask = |page: u8, subpage: u8, from: u8| [0x4d, 0, page, subpage, 0, 0, from, 0, 64, 0];
    let list = bench.command(&client, &ask(0x40, 0, 0), &[], 64).good();
    assert_eq!(list, [0, 0, 0, 2, 0x00, 0x2f]);
    for page in &list[4..] {
        let data = bench.command(&client, &ask(*page, 0, 0), &[], 64).good();
        assert_eq!((data[0] & 0x3f, usize::from(be16(&data, 2)) + 4), (*page, data.len()));
        let refused = bench.command(&client, &ask(*page, 1, 0), &[], 64);
        assert_eq!(refused.sense, Some(Sense::cdb(3)));
        let refused = bench.command(&client, &ask(*page, 0, 1), &[], 64);
        assert_eq!(refused.sense, Some(Sense::cdb(5)));
    }
    let subpages = bench.command(&client, &ask(0, 0xff, 0), &[], 64).good();
    assert_eq!(subpages, [0x40, 0xff, 0, 6, 0, 0, 0, 0xff, 0x2f, 0]);
    let health = bench.command(&client, &ask(0x2f, 0, 0), &[], 64).good();
    assert_eq!(health[8..11], [0, 0, 0xff], "no exception, no temperature");
    let unknown = bench.command(&client, &ask(0x0d, 0, 0), &[], 64);
    assert_eq!(unknown.sense, Some(Sense::cdb_bit(2, 5)));
    for (flags, bit) in [(1, 0), (2, 1)] {
        let refused = bench.command(&client, &[0x4d, flags, 0, 0, 0, 0, 0, 0, 64, 0], &[], 64);
        assert_eq!(refused.sense, Some(Sense::cdb_bit(1, bit)));
    }
}

fn defects(bench: &mut Bench) {
    let client = bench.client(1);
    for lists in 0..32 {
        let ten = bench.command(&client, &[0x37, 0, lists, 0, 0, 0, 0, 0, 64, 0], &[], 64);
        let twelve = bench.command(&client, &[0xb7, lists, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0], &[], 64);
        if lists & 7 == 7 {
            assert_eq!(ten.sense, Some(Sense::cdb_bit(2, 2)));
            assert_eq!(twelve.sense, Some(Sense::cdb_bit(1, 2)));
            continue;
        }
        assert_eq!(ten.good(), [0, lists, 0, 0]);
        assert_eq!(twelve.good(), [0, lists, 0, 0, 0, 0, 0, 0]);
    }
}
