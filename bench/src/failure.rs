//! Why a benchmark could not be run, as text for the terminal.

use std::fmt::{self, Display};

/// A failure.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Shorthand used everywhere here.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

/// Adds what was being done to any error.
pub(crate) trait Because<T> {
    /// `what` reads as the beginning of a sentence: "cannot read bars.toml".
    fn because(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> Because<T> for std::result::Result<T, E> {
    fn because(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}
