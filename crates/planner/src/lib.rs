//! The planner: an administrator gives it what a system printed and gets an answer with the arithmetic shown.
//!
//! Pure: no I/O, no clock, no threads; it also compiles to WebAssembly. Files are read, and answers written, by `trunkline`.
//!
//! - [`trace`] is what every number of an answer carries: its formula, the values put in, the source of each.
//! - [`facts`] is what is known about PowerVM, from data files that a user can correct.
//! - [`capture`] holds what was read from AIX and VIOS command output; each value keeps the line it stood on.
//! - [`model`] says which report belongs to which system.
//! - [`lpm`] foretells what becomes of a client's queues when it moves.
//! - [`advise`] says what should be changed, why, how, and how to take it back.
//! - [`size`] works out processors and memory of a Virtual I/O Server.
//! - [`report`] shows answers: as text, as JSON, and as one HTML file.

pub mod advise;
pub mod facts;
pub mod lpm;
pub mod model;
pub mod report;
pub mod size;
pub mod trace;

pub use capture;
