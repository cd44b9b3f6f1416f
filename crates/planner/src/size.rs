//! How large a Virtual I/O Server has to be for given loads: processors and memory, with every step shown.
//!
//! Shared Ethernet adapters are reckoned by the published tables and formula (cycles per byte or per transaction, measured
//! on a 1.65 GHz processor, scaled by the clock). Virtual SCSI has a published table too. For virtual Fibre Channel
//! nobody published a cost: the assumptions are facts like others, marked as unconfirmed, and give ranges; a user who
//! has measured puts a figure of their own in a data file.
//!
//! [`Workloads`] is a TOML file, or filled in by a caller; [`Workloads::size`] answers with a [`Sizing`].

mod answer;
mod both;
pub mod calibration;
mod captured;
mod given;
mod input;
mod sea;
mod storage;
mod table;
mod total;

pub use both::Both;
pub use captured::{Captured, CapturedSizings, captured};
pub use given::Given;
pub use input::{
    Backing, Direction, Processors, Sea, SizeError, Ssp, Vios, VirtualFc, Vscsi, Workloads,
};
pub use total::{Part, Sizing};
