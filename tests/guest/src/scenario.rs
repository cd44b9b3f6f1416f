//! What is tested, one function per scenario.

mod peer;

use std::path::PathBuf;

use crate::failure::Result;
use crate::kit::Kit;

/// What every scenario needs.
pub(crate) struct World {
    /// Kernel and initramfs.
    pub(crate) kit: Kit,
    /// The server's binary.
    pub(crate) server: PathBuf,
}

/// One test.
pub(crate) struct Scenario {
    /// Short name, unique.
    pub(crate) name: &'static str,
    /// What it shows, as a sentence.
    pub(crate) about: &'static str,
    /// The test.
    pub(crate) run: fn(&World) -> Result<()>,
}

/// Every scenario, cheapest first.
pub(crate) const ALL: &[Scenario] = &[Scenario {
    name: "peer",
    about: "the test machine itself: a guest on QEMU's own server makes a filesystem and verifies data",
    run: peer::filesystem,
}];
