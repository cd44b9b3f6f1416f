//! How much of one file is read: a small file can unpack to an endless one, and a few bytes can make a report.
//!
//! What is beyond a limit is left out and said in the notes of its file ([`FileInfo::notes`](super::FileInfo::notes));
//! the rest of the file and the other files are read.

/// So many bytes come out of one compressed file at most.
pub const UNPACKED_MAX: usize = 256 << 20;

/// So many times its own size comes out of a compressed file at most, once [`UNPACKED_FREE`] is passed: captures and
/// files of nmon come to 5 to 40.
pub const UNPACKED_TIMES: usize = 100;

/// So many bytes come out of a compressed file however small it is.
pub const UNPACKED_FREE: usize = 16 << 20;

/// So many times a file is unpacked that holds another compressed one, as `x.nmon.gz.gz` does.
pub const LAYERS_MAX: usize = 3;

/// So many reports and passages that belong to none are kept of one file. Each takes memory of its own, up to a
/// kilobyte, however few bytes it was made of.
pub const ENTRIES_PER_FILE: usize = 250_000;

/// The same of all files together.
pub const ENTRIES: usize = 1_000_000;
