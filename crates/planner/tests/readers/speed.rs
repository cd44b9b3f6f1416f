//! How much processor time 100 MB take. Run by hand, with optimised code:
//! `cargo test --release -p planner --test readers -- --ignored --nocapture a_hundred_megabytes`

use planner::capture::Captures;

use super::{fixture, fixtures};

/// What this thread has used of a processor: other work on the machine does not count.
fn used_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds: f64 = text.split(' ').next().unwrap().parse().unwrap();
    nanoseconds / 1e9
}

fn measure(name: &str, unit: &[u8]) -> f64 {
    let bytes = unit.repeat(100_000_000 / unit.len() + 1);
    let started = used_seconds();
    let mut captures = Captures::new();
    captures.read("large", &bytes, None);
    let seconds = used_seconds() - started;
    println!("{seconds:6.3} s  {name}: {} reports of {} bytes", captures.reports.len(), unit.len());
    seconds
}

#[test]
#[ignore = "a measurement, to be run with --release"]
fn a_hundred_megabytes() {
    let mut all: Vec<u8> = Vec::new();
    let mut slowest = (0.0, String::new());
    for name in fixtures() {
        let unit = fixture(&name);
        let seconds = measure(&name, &unit);
        all.extend(unit);
        if seconds > slowest.0 {
            slowest = (seconds, name);
        }
    }
    measure("all of them together", &all);
    measure(
        "text that nobody knows",
        b"nothing that anybody knows stands in this line of text, number 4711\n",
    );
    println!("slowest: {slowest:?}");
}
