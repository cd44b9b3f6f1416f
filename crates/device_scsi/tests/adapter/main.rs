//! SCSI adapters in their channels, by a client in user space. One program: each would have the client built once more.

mod abort;
mod commands;
mod common;
mod counted;
mod fences;
mod luns;
mod random;
mod waiting;
