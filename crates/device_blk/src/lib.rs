//! The virtio block device (virtio 1.3, clause 5.2).
//!
//! - [`config`]: features offered and the configuration space;
//! - [`parse()`]: a descriptor chain to an [`Action`]; no I/O, no thread;
//! - [`BlkHandler`]: what a channel has for one of its queues; [`BlkDevice`]: what a session has.
//!
//! Every structure is copied out of the client's memory before a field of it is looked at. One [`Shape`] is shared by all queues of an
//! adapter: what can change while the client runs (capacity after a resize, the write cache mode) is in atomics that are written rarely
//! and read per request.
#![deny(unsafe_code)]

pub mod config;
mod device;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
mod handler;
mod parse;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use block::Geometry;

pub use device::BlkDevice;
pub use handler::{Behind, BlkHandler};
pub use parse::{Action, Chain, Parsed, Reject, parse};

/// Bytes of a sector, the unit of the protocol whatever the block size (clause 5.2.4).
pub const SECTOR: u64 = 512;
/// Bytes of the serial number (clause 5.2.6).
pub const ID_BYTES: usize = 20;
/// Most sectors in one DISCARD or WRITE_ZEROES: 1 GiB, so that one of them cannot occupy a back end for minutes.
pub const RANGE_SECTORS_MAX: u32 = (1 << 30) / 512;

/// Request types (clause 5.2.6).
pub mod kind {
    /// Read.
    pub const IN: u32 = 0;
    /// Write.
    pub const OUT: u32 = 1;
    /// Flush.
    pub const FLUSH: u32 = 4;
    /// Serial number.
    pub const GET_ID: u32 = 8;
    /// Discard.
    pub const DISCARD: u32 = 11;
    /// Write zeroes.
    pub const WRITE_ZEROES: u32 = 13;
}

/// The last byte of a request (clause 5.2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// Device or driver error.
    IoErr = 1,
    /// Request not supported.
    Unsupported = 2,
}

/// What all queues of an adapter know about its disk.
#[derive(Debug)]
pub struct Shape {
    bytes: AtomicU64,
    write_through: AtomicBool,
    block_size: u32,
    read_only: bool,
    discard: bool,
    write_zeroes: bool,
    serial: [u8; ID_BYTES],
}

impl Shape {
    /// The disk that a volume of this geometry makes. `read_only` and `discard` can only take away; a serial longer than
    /// [`ID_BYTES`] is cut.
    #[must_use]
    pub fn new(geometry: &Geometry, serial: &str, read_only: bool, discard: bool) -> Shape {
        let mut id = [0; ID_BYTES];
        let length = serial.len().min(ID_BYTES);
        id[..length].copy_from_slice(&serial.as_bytes()[..length]);
        let read_only = read_only || geometry.read_only;
        Shape {
            bytes: AtomicU64::new(geometry.bytes),
            write_through: AtomicBool::new(false),
            block_size: geometry.block_size,
            read_only,
            discard: discard && geometry.discard && !read_only,
            write_zeroes: geometry.write_zeroes && !read_only,
            serial: id,
        }
    }

    /// Capacity in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Takes over a new capacity; requests that are judged from now on see it.
    pub fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Relaxed);
    }

    /// Whether writes must be durable before they are answered (write cache off, clause 5.2.6.2).
    #[inline]
    #[must_use]
    pub fn write_through(&self) -> bool {
        self.write_through.load(Relaxed)
    }

    /// Switches the write cache off (`true`) or on.
    pub fn set_write_through(&self, on: bool) {
        self.write_through.store(on, Relaxed);
    }

    /// Smallest unit of a request in bytes.
    #[must_use]
    pub fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Whether writes are refused.
    #[must_use]
    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// The answer to GET_ID.
    #[must_use]
    pub fn serial(&self) -> &[u8; ID_BYTES] {
        &self.serial
    }
}
