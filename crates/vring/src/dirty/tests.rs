//! Which bits are set.

use super::*;

fn log(offset: u64, size: u64, file_len: u64) -> (File, DirtyLog) {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file = File::from(rustix::fs::memfd_create("log", flags).unwrap());
    file.set_len(file_len).unwrap();
    let log = DirtyLog::open(&file, offset, size).unwrap();
    (file, log)
}

#[test]
fn marks_are_one_bit_per_page() {
    // Against the naive way, over ranges around the borders of bytes.
    for first in 0..20u64 {
        for pages in 0..20u64 {
            let (_file, log) = log(0, 4, 4096);
            log.mark(GuestAddr(first * 4096 + 4095), (pages * 4096) as usize);
            for page in 0..32 {
                let expected = pages > 0 && (first..=first + pages).contains(&page);
                let marked = log.is_marked(GuestAddr(page * 4096 + 17));
                assert_eq!(marked, expected, "page {page} of {pages} from {first}");
            }
        }
    }
}

#[test]
fn bits_are_where_the_front_end_looks() {
    let (file, log) = log(4096 + 24, 8, 8192);
    log.mark(GuestAddr(9 * 4096), 1);
    let other = Mapping::file(&file, 0, 8192, Access::ReadWrite).unwrap();
    let mut bytes = [0; 10];
    other.view(4096 + 23, 10).unwrap().read(0, &mut bytes);
    assert_eq!(bytes, [0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn pages_beyond_the_log_are_left_out() {
    let (file, log) = log(0, 2, 4096);
    log.mark(GuestAddr(15 * 4096), 100 * 4096);
    log.mark(GuestAddr(u64::MAX), usize::MAX);
    assert!(log.is_marked(GuestAddr(15 * 4096)) && !log.is_marked(GuestAddr(16 * 4096)));
    let other = Mapping::file(&file, 0, 4096, Access::ReadWrite).unwrap();
    let mut bytes = [0; 4];
    other.view(0, 4).unwrap().read(0, &mut bytes);
    assert_eq!(bytes, [0, 0x80, 0, 0]);
}

#[test]
fn sizes_that_make_no_sense_are_refused() {
    let (file, _log) = log(0, 1, 4096);
    assert!(matches!(DirtyLog::open(&file, 0, 0), Err(DirtyLogError::Size(0))));
    assert!(matches!(DirtyLog::open(&file, 1, u64::MAX), Err(DirtyLogError::Size(_))));
    assert!(matches!(DirtyLog::open(&file, 0, 1 << 20), Err(DirtyLogError::Map(_))));
}
