//! Captures that an administrator hands to the planner, and the rates between the reports in them.
#![no_main]

use planner::capture::{Captures, rates};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut captures = Captures::new();
    captures.read("fuzz", data, None);
    let lines = captures.files[0].lines;
    for report in &captures.reports {
        let head = report.head();
        assert!(head.first.line <= head.last && head.last <= lines);
    }
    for pair in captures.reports.windows(2) {
        let _ = rates(&pair[0], &pair[1]);
    }
});
