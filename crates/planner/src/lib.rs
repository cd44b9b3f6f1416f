//! The planner: an administrator gives it what a system printed and gets an answer with the arithmetic shown.
//!
//! Pure: no I/O, no clock, no threads; it also compiles to WebAssembly. Files are read, and answers written, by `trunkline`.
//!
//! - [`capture`] holds what was read from AIX and VIOS command output; each value keeps the line it stood on.

pub mod capture;
