//! The one error of this crate: a sentence for whoever reads the test's output.

use std::fmt::Display;

/// Why a scenario did not pass, with everything needed to understand it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(pub(crate) String);

/// Shorthand used everywhere here.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Adds what was being done to any error.
pub(crate) trait Context<T> {
    /// `what` reads as the beginning of a sentence: "cannot start qemu".
    fn context(self, what: impl Display) -> Result<T>;
}

impl<T, E: Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}

/// Fails the scenario with a sentence unless the condition holds.
macro_rules! check {
    ($condition:expr, $($what:tt)*) => {
        if !$condition {
            return Err($crate::failure::Failure(format!($($what)*)));
        }
    };
}
pub(crate) use check;
