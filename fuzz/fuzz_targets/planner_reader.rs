//! One reader at a time: the first byte chooses it, the rest is what its command is said to have printed.
#![no_main]

use planner::advise::advise;
use planner::capture::{Captures, readers};
use planner::facts::Facts;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((first, printed)) = data.split_first() else { return };
    let Some(reader) = readers().nth(usize::from(*first) % readers().count()) else { return };
    let mut text = format!("vios1:/home/padmin> {}\n", reader.typed).into_bytes();
    text.extend_from_slice(printed);
    let mut captures = Captures::new();
    captures.read("fuzz", &text, None);
    for report in &captures.reports {
        let head = report.head();
        assert!(head.first.line <= head.last && head.last <= captures.files[0].lines);
    }
    let _ = advise(&captures, &Facts::builtin());
});
