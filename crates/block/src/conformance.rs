//! What every volume must do, as a suite that runs over any of them, and a little driver for it.
//!
//! For tests, of this crate and of others: everything here panics with what it found. [`TestBench`] is one lane of a volume with
//! its own ring and memory; it does what a channel does, and checks the contract while it does it: a tag finishes once, progress
//! grows with every round, what is parked for a time is not touched before, what is parked without a time has something in flight to wait for.

mod bench;
mod suite;

pub use bench::TestBench;
pub use suite::{Options, run};

/// Says what a test leaves out, past the test runner, which shows the output of failing tests only.
#[cfg(test)]
pub(crate) fn not_tested(what: &str) {
    use std::io::Write as _;
    writeln!(std::io::stderr(), "NOT TESTED: {what}").expect("stderr");
}

#[cfg(test)]
mod tests;
