//! What a SCSI disk must do, as a suite over any volume, and a little transport that carries commands to it.
//!
//! For tests, of this crate and of others: everything here panics with what it found. [`Bench`] does what a device and its channel do,
//! one command at a time, and holds the core to its contract while it does it: requests lie on the volume and on its blocks,
//! their memory is there, a task ends idle.
//!
//! The suite checks what libiscsi's test tool checks of a disk, and what it does not: field pointers, order of unit
//! attentions, the table of reservations.

mod bench;
mod disk;
mod reserve;
mod state;

pub use bench::{Answer, Bench};

use block::Volume;

use crate::UnitSpec;

/// Runs the whole suite. `make` gives fresh volumes that keep what is written.
///
/// # Panics
///
/// When the disk does not behave.
pub fn run(make: &dyn Fn() -> std::sync::Arc<dyn Volume>, change: &dyn Fn(&mut UnitSpec)) {
    let with = |test: fn(&mut Bench)| test(&mut Bench::new(make().as_ref(), change));
    for test in state::TESTS.iter().chain(disk::TESTS).chain(reserve::TESTS) {
        with(*test);
    }
}

#[cfg(test)]
mod tests;
