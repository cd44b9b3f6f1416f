//! What commands printed, as it was read.

/// Where a value stood: every number of an answer can be traced to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct At {
    /// The file, by its order among those that were read; from 0.
    pub file: u32,
    /// The line in it; from 1.
    pub line: u32,
}
