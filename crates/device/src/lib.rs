//! virtio devices: from a descriptor chain to a [`block::Request`] and back.
//!
//! A device judges what its client asked and says what is to be done; it does no I/O, keeps no thread and owns no ring. It
//! sees the client's memory only as [`memory::IoBuf`]s that `vring` has already checked against the guest memory table, and copies every
//! structure out of them before it looks at a field.
//!
//! - [`blk`]: the block device (virtio 1.3, clause 5.2);
//! - [`scsi`]: the SCSI host device (clause 5.6), whose commands the `scsi` crate carries out.
#![deny(unsafe_code)]

pub mod blk;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
pub mod scsi;
