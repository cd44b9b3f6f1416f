//! Regions, generations and addresses.

use super::*;
use memory::{Access, Mapping};
use rustix::fs::MemfdFlags;

const MIB: u64 = 1 << 20;

fn file(len: u64) -> File {
    let file = File::from(rustix::fs::memfd_create("mem", MemfdFlags::CLOEXEC).unwrap());
    file.set_len(len).unwrap();
    file
}

fn spec(guest: u64, user: u64, size: u64) -> RegionSpec {
    let (guest, user) = (GuestAddr(guest), UserAddr(user));
    RegionSpec { guest, user, size, offset: 0, file: file(size) }
}

fn pieces(table: &MemTable, addr: u64, len: u32) -> Result<Vec<(u64, usize)>, BadAddress> {
    let mut out = Vec::new();
    let mut push = |buf: IoBuf| out.push((table.guest_of(buf).unwrap().0, buf.len()));
    table.resolve(GuestAddr(addr), len, &mut push)?;
    Ok(out)
}

#[test]
fn ranges_are_found_and_split_at_borders() {
    let specs = vec![spec(4 * MIB, 100 * MIB, MIB), spec(0, 0, MIB), spec(MIB, 50 * MIB, MIB)];
    let table = MemTable::new(specs).unwrap();
    let infos: Vec<u64> = table.regions().map(|r| r.guest.0).collect();
    assert_eq!(infos, [0, MIB, 4 * MIB], "sorted");
    assert_eq!(pieces(&table, 5, 10), Ok(vec![(5, 10)]));
    assert_eq!(pieces(&table, MIB - 1, 3), Ok(vec![(MIB - 1, 1), (MIB, 2)]));
    assert_eq!(pieces(&table, MIB - 1, 1), Ok(vec![(MIB - 1, 1)]));
    assert_eq!(pieces(&table, 77 * MIB, 0), Ok(vec![]), "no bytes are nowhere");
    for (addr, len) in [(2 * MIB - 1, 2), (2 * MIB, 1), (u64::MAX, 1), (u64::MAX, 2), (5 * MIB, 1)]
    {
        let bad = BadAddress { addr: GuestAddr(addr), len };
        assert_eq!(pieces(&table, addr, len), Err(bad));
        assert!(table.resolve_one(GuestAddr(addr), len).is_none());
    }
    assert!(table.resolve_one(GuestAddr(MIB - 1), 2).is_none(), "not one");
    assert_eq!(pieces(&table, 4 * MIB, 1 << 20), Ok(vec![(4 * MIB, 1 << 20)]));
    let buf = table.user(UserAddr(50 * MIB + 7), 2).unwrap();
    assert_eq!(table.guest_of(buf), Some(GuestAddr(MIB + 7)));
    assert!(table.user(UserAddr(51 * MIB - 1), 2).is_none());
    assert!(table.guest_of(IoBuf::EMPTY).is_none());
}

#[test]
fn regions_that_make_no_sense_are_refused() {
    let table = MemTable::new(vec![spec(MIB, MIB, MIB)]).unwrap();
    let error = |spec| table.with_region(spec).unwrap_err().to_string();
    let mut nothing = spec(5 * MIB, 5 * MIB, MIB);
    nothing.size = 0;
    assert!(error(nothing).contains("no bytes"));
    assert!(error(spec(u64::MAX - MIB + 1, 0, MIB)).contains("address space"));
    assert!(error(spec(9 * MIB, u64::MAX - 5, MIB)).contains("address space"));
    assert!(error(spec(2 * MIB - 4096, 9 * MIB, MIB)).contains("overlaps"));
    assert!(error(spec(9 * MIB, MIB + 4096, MIB)).contains("overlaps"));
    let mut short = spec(5 * MIB, 5 * MIB, MIB);
    short.file = file(MIB - 4096);
    assert!(error(short).contains("cannot map"));
    let mut wraps = spec(5 * MIB, 5 * MIB, MIB);
    wraps.offset = u64::MAX - 100;
    assert!(error(wraps).contains("address space"));
}

#[test]
fn generations_share_what_stays() {
    let one = MemTable::new(vec![spec(0, 0, MIB)]).unwrap();
    let two = one.with_region(spec(MIB, MIB, MIB)).unwrap();
    let ptr = |table: &MemTable, at| table.resolve_one(GuestAddr(at), 1).map(|b| b.as_ptr());
    assert_eq!(ptr(&one, 0), ptr(&two, 0));
    let three = two.without_region(GuestAddr(0), UserAddr(0), MIB).unwrap();
    assert_eq!((ptr(&three, 0), ptr(&three, MIB)), (None, ptr(&two, MIB)));
    for (guest, user, size) in [(MIB, MIB, 4096), (MIB, 0, MIB), (0, MIB, MIB)] {
        let gone = three.without_region(GuestAddr(guest), UserAddr(user), size);
        assert!(matches!(gone, Err(MemError::Unknown { .. })));
    }
    drop((one, two));
    three.resolve_one(GuestAddr(MIB), 1).unwrap().write(0, &[7]);
    assert_eq!(MemTable::empty().regions().count(), 0);
}

#[test]
fn offset_in_the_file_need_not_be_a_page() {
    let file = file(3 * 4096);
    let back = Mapping::file(&file, 0, 3 * 4096, Access::ReadWrite).unwrap();
    back.view(5000, 4).unwrap().write(0, b"here");
    let (guest, user) = (GuestAddr(MIB), UserAddr(MIB));
    let spec = RegionSpec { guest, user, size: 4096, offset: 5000, file };
    let table = MemTable::new(vec![spec]).unwrap();
    let mut bytes = [0; 4];
    table.resolve_one(guest, 4096).unwrap().read(0, &mut bytes);
    assert_eq!(&bytes, b"here");
}

#[test]
fn windows_are_whole_pages_of_the_file() {
    const HUGE: u64 = 2 << 20;
    let window = |offset, size, end| Window::aligned(offset, size, HUGE, end);
    let (a, b) = (window(0, HUGE, 8 * HUGE), window(HUGE / 2, HUGE, 8 * HUGE));
    let (len, block) = (HUGE as usize, HUGE as usize);
    assert_eq!(a, Window { offset: 0, len, before: 0, block });
    assert_eq!(b, Window { offset: 0, len: 2 * len, before: len / 2, block });
    // A file that does not end at a block is no hugetlbfs file; it ends where it ends.
    let c = window(HUGE, 100, HUGE + 100);
    assert_eq!(c, Window { offset: HUGE, len: 100, before: 0, block });
}

#[test]
fn truncated_memory_is_seen_as_damaged() {
    let spec = spec(0, 0, MIB);
    let handle = spec.file.try_clone().unwrap();
    let table = MemTable::new(vec![spec]).unwrap();
    assert!(!table.damaged());
    handle.set_len(0).unwrap();
    let mut byte = [9];
    table.resolve_one(GuestAddr(5000), 1).unwrap().read(0, &mut byte);
    assert_eq!((byte, table.damaged()), ([0], true));
}

/// By type a buffer may be kept longer than the table. Then it leads to nothing, and not to what the program has put there since.
#[test]
fn a_buffer_that_outlives_its_table_leads_to_nothing() {
    let table = MemTable::new(vec![spec(0, 0, 16 * MIB)]).unwrap();
    let buf = table.resolve_one(GuestAddr(5 * MIB), 8).unwrap();
    drop(table);
    let own: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 4 << 20]).collect();
    let at = buf.as_ptr().addr();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let covers = |line: &&str| {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let [start, end] = [start, end].map(|hex| usize::from_str_radix(hex, 16).unwrap());
        (start..end).contains(&at)
    };
    let found = maps.lines().find(covers).expect("its addresses are nobody's to take");
    assert!(found.contains(" ---p 00000000 00:00 "), "{found}");
    drop(own);
}
