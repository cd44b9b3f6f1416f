//! What is kept of a file takes memory in proportion to it, whatever stands there: its highest mark is asked of the
//! kernel, so this is one test in a process of its own.

use planner::capture::{Captures, limits};

/// The highest mark of this process's memory so far, in bytes.
fn most_used() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).expect("Linux tells it");
    line.split_whitespace().nth(1).and_then(|number| number.parse::<usize>().ok()).unwrap() * 1024
}

/// Forgets the mark.
fn reset() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

#[test]
fn a_flood_of_tiny_tables_is_cut_and_said() {
    // What is read, how much of it, how many bytes a byte of it may take, and whether it is cut.
    for (what, unit, megabytes, times_max, cut) in [
        ("levels", "7200-05-03-2148\n", 50, 8, true),
        ("lists of one attribute", "a 1 b True\na 1 b True\n", 50, 8, true),
        ("reports apart", "20...2048 (+1)\n\nx\n", 10, 40, true),
        ("rows of one report", "LABEL: A\nx\n", 10, 24, false),
    ] {
        let bytes = unit.repeat(megabytes * 1_000_000 / unit.len());
        reset();
        let before = most_used();
        let mut captures = Captures::new();
        captures.read("flood.txt", bytes.as_bytes(), None);
        let kept = captures.reports.len() + captures.unread.len() + captures.refused.len();
        assert!(kept <= limits::entries_of(bytes.len()), "{what}: {kept}");
        let used = most_used() - before;
        assert!(used <= times_max * bytes.len(), "{what}: {used}");
        let said = captures.files[0].notes.iter().any(|note| note.contains("nothing is read from"));
        assert_eq!(said, cut, "{what}: {:?}", captures.files[0].notes);
        // What comes after is read as ever.
        captures.read("next.txt", b"7200-05-03-2148\n", None);
        let last = captures.reports.last().expect("a report");
        assert_eq!(last.head().first.file, 1, "{what}");
    }
}
