use super::*;
use crate::Lasting;

fn memfd(len: u64) -> File {
    let fd = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(fd);
    file.set_len(len).unwrap();
    file
}

#[test]
fn two_mappings_of_one_file_show_the_same_bytes() {
    let file = memfd(8192);
    let a = Mapping::file(&file, 0, 8192, Access::ReadWrite).unwrap();
    let b = Mapping::file(&file, 4096, 4096, Access::ReadOnly).unwrap();
    a.view(4096, 5).unwrap().write(0, b"hello");
    let mut got = [0; 5];
    b.view(0, 5).unwrap().read(0, &mut got);
    assert_eq!(&got, b"hello");
}

#[test]
fn a_range_beyond_the_file_is_refused() {
    let file = memfd(4096);
    for (offset, len) in [(0, 4097), (4096, 1), (0, 0), (u64::MAX, 2)] {
        let error = Mapping::file(&file, offset, len, Access::ReadWrite).unwrap_err();
        assert!(matches!(error, MapError::OutOfFile { .. }), "{error}");
    }
}

#[test]
fn a_view_checks_its_bounds() {
    let mapping = Mapping::file(&memfd(4096), 0, 4096, Access::ReadWrite).unwrap();
    assert!(mapping.view(0, 4096).is_some());
    assert!(mapping.view(4096, 0).is_some());
    assert!(mapping.view(1, 4096).is_none());
    assert!(mapping.view(usize::MAX, 2).is_none());
}

#[test]
fn a_truncated_file_damages_its_own_mapping_only() {
    let (file, other) = (memfd(65536), memfd(65536));
    let mapping = Mapping::file(&file, 0, 65536, Access::ReadWrite).unwrap();
    let innocent = Mapping::file(&other, 0, 65536, Access::ReadWrite).unwrap();
    innocent.view(0, 65536).unwrap().fill(7);
    mapping.view(0, 65536).unwrap().fill(9);
    assert!(!mapping.damaged());

    file.set_len(4096).unwrap();
    let mut byte = [1];
    mapping.view(60000, 1).unwrap().read(0, &mut byte);
    assert_eq!(byte, [0], "the missing page reads as zero");
    assert!(mapping.damaged());
    mapping.view(0, 65536).unwrap().fill(1); // still writable, seen by nobody

    innocent.view(65535, 1).unwrap().read(0, &mut byte);
    assert_eq!(byte, [7]);
    assert!(!innocent.damaged());
}

#[test]
fn slots_are_given_back() {
    let file = memfd(4096);
    for _ in 0..3 * guard::SLOTS {
        drop(Mapping::file(&file, 0, 4096, Access::ReadOnly).unwrap());
    }
}

#[test]
fn iobuf_copies_and_slices() {
    let mapping = Lasting::new(4096).unwrap();
    let buf = mapping.buf(0, 16).unwrap();
    buf.write(0, &[1, 2, 3, 4]);
    buf.slice(8, 4).copy_from(buf.slice(0, 4));
    let mut got = [0; 6];
    buf.read(6, &mut got);
    assert_eq!(got, [0, 0, 1, 2, 3, 4]);
    assert!(std::panic::catch_unwind(|| buf.slice(9, 8)).is_err());
}
