//! The virtio SCSI host device (virtio 1.3, clause 5.6): how commands, task management and events lie in a descriptor chain, and what a
//! channel has for each of the device's queues. What a command means is the `scsi` crate's business.
//!
//! - [`config`]: features offered and the configuration space;
//! - [`parse()`]: the chain of a request queue to a [`Header`] and the places of data and response;
//! - [`control`]: the control queue;
//! - [`event`]: what the event queue tells;
//! - [`ScsiHandler`]: a queue inside its channel; [`LunMap`]: what one client sees;
//! - [`OffPath`]: what a channel may not do itself; [`TaskManager`]: who does it;
//! - [`ScsiDevice`]: what a session has; [`Unit`]: a logical unit, whoever sees it.
//!
//! Not offered: protection information (T10_PI). All task attributes are treated as SIMPLE, as clause 5.6.6.1 allows.
#![deny(unsafe_code)]

pub mod config;
pub mod control;
mod counted;
mod device;
pub mod event;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
mod handler;
mod keep;
mod limits;
mod link;
mod luns;
mod off_path;
mod parse;
mod requests;
mod scratch;
mod task_manager;
mod units;
mod view;

use memory::IoBuf;
use scsi::{Address, Done, Lun, Status};

pub use device::{OfDataPlane, ScsiDevice};
pub use handler::{Behind, Message, ScsiHandler, Shared};
pub use limits::{ScsiLimits, ScsiRole};
pub use link::Link;
pub use luns::{LunEntry, LunMap, LunMapError, Target};
pub use off_path::{AbortReason, AbortScope, AbortTarget, OffPath, Question, Services};
pub use parse::{CDB_BYTES_MAX, Chain, Header, ParseError, Parsed, Range, parse};
pub use task_manager::TaskManager;
pub use units::{Medium, Unit};
pub use view::Units;

/// Bytes of a response without the sense data.
pub const RESPONSE_BYTES: usize = 12;

/// How a request ended, for the transport (clauses 5.6.6.1 and 5.6.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Response {
    /// The command has a status; the function is complete.
    Ok = 0,
    /// The CDB asked for more data than the buffers hold.
    Overrun = 1,
    /// Ended by ABORT TASK or ABORT TASK SET.
    Aborted = 2,
    /// There is no such target.
    BadTarget = 3,
    /// Ended by a reset.
    Reset = 4,
    /// Try again.
    Busy = 5,
    /// The way to the target is gone.
    TransportFailure = 6,
    /// The target failed; other ways will not help.
    TargetFailure = 7,
    /// The I_T nexus failed; another one may help.
    NexusFailure = 8,
    /// Anything else: a request that breaks the rules.
    Failure = 9,
    /// The task is there (QUERY TASK, QUERY TASK SET).
    FunctionSucceeded = 10,
    /// The function is not known.
    FunctionRejected = 11,
    /// There is no such logical unit.
    IncorrectLun = 12,
}

/// Sizes that the driver may set in the configuration space (clause 5.6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sizes {
    cdb: u16,
    sense: u16,
}

impl Default for Sizes {
    /// 32 bytes of CDB, 96 of sense data.
    fn default() -> Sizes {
        Sizes { cdb: 32, sense: 96 }
    }
}

impl Sizes {
    /// `cdb_size` and `sense_size`; `None` for more than 255 or 65535 bytes, which no command needs.
    #[must_use]
    pub fn new(cdb: u32, sense: u32) -> Option<Sizes> {
        let cdb = u16::try_from(cdb).ok().filter(|cdb| *cdb <= 255)?;
        Some(Sizes { cdb, sense: u16::try_from(sense).ok()? })
    }

    /// Bytes of a CDB.
    #[must_use]
    pub fn cdb(&self) -> u16 {
        self.cdb
    }

    /// Bytes for sense data.
    #[must_use]
    pub fn sense(&self) -> u16 {
        self.sense
    }

    /// Bytes before data-out.
    #[inline]
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        19 + usize::from(self.cdb)
    }

    /// Bytes before data-in.
    #[inline]
    #[must_use]
    pub fn response_bytes(&self) -> usize {
        RESPONSE_BYTES + usize::from(self.sense)
    }
}

/// What the eight bytes of `lun` address (clause 5.6.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A logical unit number of a target.
    Unit {
        /// The target.
        target: u8,
        /// The number there; whether there is a logical unit is another question.
        lun: Lun,
    },
    /// The well-known logical unit for REPORT LUNS, of a target or of the whole device.
    ReportLuns {
        /// Of which target.
        target: Option<u8>,
    },
    /// A form of address that no logical unit of the target has.
    Nothing {
        /// The target.
        target: u8,
    },
    /// No target at all.
    Nowhere,
}

impl Place {
    /// Of the bytes of a request.
    #[must_use]
    pub fn decode(address: [u8; 8]) -> Place {
        if address == scsi::REPORT_LUNS_LUN {
            return Place::ReportLuns { target: None };
        }
        let [1, target, lun @ ..] = address else { return Place::Nowhere };
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&lun);
        match Lun::decode(bytes) {
            Address::Lun(lun) => Place::Unit { target, lun },
            Address::ReportLuns => Place::ReportLuns { target: Some(target) },
            Address::Other => Place::Nothing { target },
        }
    }

    /// The bytes for a logical unit of a target.
    #[must_use]
    pub fn encode(target: u8, lun: Lun) -> [u8; 8] {
        let [high, low, ..] = lun.encode();
        [1, target, high, low, 0, 0, 0, 0]
    }
}

/// Response and residual of a command that has a status. `buffers`: bytes of data-out and data-in together.
///
/// Clause 5.6.6.1 counts the residual over both directions. A command that called for more than its buffers hold has moved what they
/// hold, as far as it is whole blocks, and is an overrun.
#[inline]
#[must_use]
pub fn outcome(done: &Done, buffers: u64) -> (Response, u32) {
    let short = done.status == Status::Good && done.wanted > done.moved;
    let response = if short { Response::Overrun } else { Response::Ok };
    // More than 4 GiB cannot be in one chain; the largest number stands for them.
    let residual = u32::try_from(buffers.saturating_sub(done.moved)).unwrap_or(u32::MAX);
    (response, residual)
}

/// The fixed part of a response.
#[inline]
#[must_use]
pub fn response(
    response: Response,
    status: Status,
    residual: u32,
    sense_len: u32,
) -> [u8; RESPONSE_BYTES] {
    let mut bytes = [0; RESPONSE_BYTES];
    bytes[..4].copy_from_slice(&sense_len.to_le_bytes());
    bytes[4..8].copy_from_slice(&residual.to_le_bytes());
    (bytes[10], bytes[11]) = (status as u8, response as u8);
    bytes
}

/// Copies `bytes` into buffers, as far as there is room; how many.
pub fn scatter(bytes: &[u8], bufs: &[IoBuf]) -> usize {
    let mut left = bytes;
    for buf in bufs {
        let (now, later) = left.split_at(buf.len().min(left.len()));
        buf.write(0, now);
        left = later;
    }
    bytes.len() - left.len()
}

#[cfg(test)]
mod tests;
