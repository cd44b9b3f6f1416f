//! What a SCSI disk, and an optical drive, must do, as suites over any volume, and a little transport that carries commands to it.
//!
//! For tests, of this crate and of others: everything here panics with what it found. [`Bench`] does what a device and its channel do,
//! one command at a time, and holds the core to its contract while it does it: requests lie on the volume and on its blocks,
//! their memory is there, a task ends idle.
//!
//! The suite checks what libiscsi's test tool checks of a disk, and what it does not: field pointers, order of unit
//! attentions, the table of reservations.

mod bench;
mod disk;
mod optical;
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

/// Runs the suite of optical drives. `make` gives fresh volumes of at least 200 blocks of 2048 bytes that can be written, with blocks
/// of at most 2048 bytes.
///
/// # Panics
///
/// When the drive does not behave.
pub fn run_optical(make: &dyn Fn() -> std::sync::Arc<dyn Volume>) {
    for test in optical::TESTS {
        let volume = make();
        let mut bench = Bench::new(volume.as_ref(), &|spec| {
            let identity = crate::Identity::optical("0123456789", spec.identity.naa);
            *spec = UnitSpec::optical(identity, Some(spec.geometry.bytes));
        });
        bench.fill_volume();
        test(&mut bench);
    }
}

#[cfg(test)]
mod tests;
