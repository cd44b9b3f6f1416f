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

/// So many reports and passages that belong to none are kept of one file, however small it is. Each takes memory of its
/// own, up to a kilobyte, however few bytes it was made of.
pub const ENTRIES_PER_FILE: usize = 250_000;

/// Of a longer file one is kept for each so many bytes of its text: few reports are shorter.
pub const BYTES_PER_ENTRY: usize = 100;

/// The most of all files together.
pub const ENTRIES: usize = 1_000_000;

/// So many lines of reports are kept of one file, however small it is: the rows of a list take memory of their own, each
/// some times what it was made of, and one report may have any number of them.
pub const LINES_PER_FILE: usize = 4_000_000;

/// Of a longer file one is kept for each so many bytes of its text: few rows are shorter.
pub const BYTES_PER_LINE: usize = 20;

/// The most of all files together.
pub const LINES: usize = 16_000_000;

/// How many reports, and passages that belong to none, are kept of a file with so many bytes of text.
#[must_use]
pub fn entries_of(bytes: usize) -> usize {
    (bytes / BYTES_PER_ENTRY).clamp(ENTRIES_PER_FILE, ENTRIES)
}

/// How many lines of reports are kept of a file with so many bytes of text.
#[must_use]
pub fn lines_of(bytes: usize) -> usize {
    (bytes / BYTES_PER_LINE).clamp(LINES_PER_FILE, LINES)
}

#[cfg(test)]
mod tests {
    use super::{ENTRIES_PER_FILE, LINES_PER_FILE, entries_of, lines_of};
    use crate::{Captures, session};

    #[test]
    fn a_long_file_has_more_room() {
        assert_eq!((entries_of(0), lines_of(0)), (ENTRIES_PER_FILE, LINES_PER_FILE));
        assert_eq!((entries_of(25_000_000), entries_of(25_000_100)), (250_000, 250_001));
        assert_eq!((entries_of(usize::MAX), lines_of(usize::MAX)), (super::ENTRIES, super::LINES));
        assert_eq!((lines_of(80_000_000), lines_of(80_000_020)), (4_000_000, 4_000_001));
    }

    /// More reports than a small file may have, each longer than [`super::BYTES_PER_ENTRY`].
    #[test]
    fn a_long_file_of_short_reports_is_read_whole() {
        let unit = format!("vios1:/> oslevel -s\n7200-05-03-2148\n{}\n", " ".repeat(70));
        let many = ENTRIES_PER_FILE + 1000;
        let mut captures = Captures::new();
        captures.read("long.txt", unit.repeat(many).as_bytes(), None);
        assert_eq!(captures.reports.len(), many);
        assert_eq!(captures.files[0].notes, Vec::<String>::new());
        assert_eq!(captures.files[0].left_out_from, None);
    }

    /// One list that goes on and on, and the same as many lists.
    #[test]
    fn rows_beyond_the_room_are_left_out_and_that_is_said() {
        let row = "Enabled hdisk0 vscsi0\n";
        for unit in [row.to_owned(), format!("vios1:/> lspath\n{}\n", row.repeat(7))] {
            for (rows, cut) in [(50, false), (5000, true)] {
                let text = unit.repeat(rows.max(7) * row.len() / unit.len() + 1);
                let mut captures = Captures::new();
                session::read_within(&mut captures, "a", text.as_bytes(), None, 1000);
                let kept: usize = captures.disk_paths_all().map(|list| list.paths.len()).sum();
                assert!(kept <= 1000 && (kept > 800) == cut, "{kept} of {rows}");
                let notes = &captures.files[0].notes;
                let said = notes.iter().any(|note| note.contains("lines of reports are kept"));
                assert_eq!(said, cut, "{notes:?}");
                let last = captures.disk_paths_all().last().unwrap();
                let short =
                    last.head.incomplete.as_ref().is_some_and(|why| why.contains("no more lines"));
                assert_eq!(short, cut, "{:?}", last.head.incomplete);
                assert_eq!(captures.files[0].left_out_from.is_some(), cut);
            }
        }
    }
}
