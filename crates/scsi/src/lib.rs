//! The SCSI target's core: what a disk or an optical drive answers to a command, without transport and without I/O.
//!
//! A transport (virtio-scsi, for one) brings a CDB with data buffers and an I_T nexus; this crate says what the volume is to be asked for,
//! in which order, and what the client is told. It knows no ring, no descriptor and no thread. Standards: SAM-5, SPC-4, SBC-3, MMC-6 (each
//! place says which clause), and of SPC-2 the RESERVE and RELEASE that older clients use.
//!
//! - [`LogicalUnit`]: a disk or an optical drive ([`UnitKind`]), shared by all channels and all I_T nexuses. [`Nexus`]: one I_T
//!   nexus's view of it. What of them is shared, and why it costs an I/O next to nothing, is told in `unit.rs` and in `docs/adr/0009-scsi-state-between-channels.md`.
//! - [`Task`]: one command, a state machine in the command's slot that asks for one thing at a time ([`Step`]) until it is
//!   [`Done`].
//! - [`Writer`]: a channel's way to write to a logical unit; it keeps writes and COMPARE AND WRITE apart.
//! - [`management`]: task management functions. [`unattached`]: addresses without a logical unit.
//! - [`Persistent`]: reservations that survive a power loss, handed to the caller to be stored.
//! - [`Sense`]: what went wrong, as a value and as bytes.
//! - [`conformance`]: the suite that a SCSI disk over any volume has to pass.
//!
//! # Promises
//!
//! - Nothing that a client sends makes it panic: CDBs and parameter lists are copied and then judged, lengths in them are
//!   held against what there is, and what cannot be served gets the sense data that the standard names, with a field pointer
//!   where there is a field.
//! - The answer is a function of the command, the state, and the volume: no time, no chance.
//! - Reads and writes allocate nothing, take no lock and write no cache line that another channel writes.
//!
//! # Left to others
//!
//! Whether a LUN is visible at all (the fabric), how commands queue, the notice of changes by the transport's events, the storage of
//! [`Persistent`], EXTENDED COPY, and the mirror of reservations on another server.
#![forbid(unsafe_code)]

mod attention;
pub mod conformance;
mod data;
mod exclusion;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
mod identity;
mod inquiry;
mod log;
pub mod management;
mod mode;
mod nexus;
mod optical;
mod ports;
mod report;
mod reservation;
mod sense;
#[cfg(any(fuzzing, test))]
mod sim;
mod table;
mod task;
mod unit;
mod wire;

pub use attention::Attention;
pub use data::Data;
pub use exclusion::Writer;
pub use identity::{Identity, Naa};
pub use nexus::{Address, InitiatorId, Lun, NexusId, REPORT_LUNS_LUN};
pub use ports::{AccessState, PortGroup};
pub use reservation::{
    Persistent, PersistentError, REGISTRATIONS_MAX, Registration, Reservation, ReservationType,
};
pub use sense::{FIXED_BYTES, FieldPointer, SENSE_BYTES_MAX, Sense, SenseKey, Status, code};
pub use table::Class;
pub use task::{
    Aborted, BlockRequest, Context, Done, Input, Memory, Plain, Residual, SCRATCH_BYTES, Step,
    Task, unattached,
};
pub use unit::{LogicalUnit, Medium, Nexus, RemovalPrevented, Reserving, UnitKind, UnitSpec};
