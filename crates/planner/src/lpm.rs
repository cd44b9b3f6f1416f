//! What becomes of a client's queues when it moves: how many there are afterwards, why, and what brings them back.
//!
//! The count comes from the same pure function that the server negotiates with ([`fabric::negotiate`]); this module
//! finds out what it is given: from levels, adapters and attributes, and from the history of the moves before. It
//! reproduces the table of the NPIV multi-queue article row by row (`tests/lpm.rs`).
//!
//! What is not known is not guessed: an unknown level opens both possibilities, all of them are followed to the end,
//! and the answer names every count that can come out and on what it depends. What contradicts an observation (a client
//! that has eight queues has a server with multi-queue) is left out.
//!
//! A [`Plan`] is a TOML file, or is filled in by a caller that read captures.

mod answer;
mod captured;
mod check;
mod outcome;
mod plan;
mod several;
mod unknown;
mod words;

pub use captured::{CapturedPath, CapturedPaths, Unmapped, captured_paths};
pub use check::{Check, Judgement};
pub use outcome::{Case, Outcome, Stage};
pub use plan::{Client, LpmError, Plan, Server, Step, System};
pub use several::Outcomes;
