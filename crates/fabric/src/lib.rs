//! The facts that server, command line and planners share: which attributes exist, and how many
//! channels and commands an adapter has.
//!
//! Everything here is pure: no I/O, no clock, no threads. `control` validates and resolves with it,
//! `trunkline` makes its help and the reference page from it.
//!
//! - [`attribute`] is the one table of attributes with their ranges, defaults, inheritance and the
//!   moment a change takes effect.
//! - [`negotiate`] is the queue contract: the number of channels behind a client's queues and the
//!   term that limits it.
//! - [`elements`] divides a port's command elements over its adapters.
//! - [`units`] reads and writes sizes (`64MiB`), CPU lists (`2-5,8`) and socket modes (`0660`).
//! - [`pvs`] reads the lists of a storage pool's PVs, with their tiers.
//! - [`san`] is the fabric of virtual Fibre Channel: WWPNs, ports, targets, zones, masks, and who sees which LUN.
//! - [`pool`] says what is wrong with a storage pool as it was laid out, with the arithmetic.
//! - [`sea`] says what is wrong with a set of shared Ethernet adapters, before it loops.
//! - [`suggest`] finds the known word nearest to a mistyped one.

pub mod attribute;
pub mod elements;
pub mod finding;
pub mod negotiate;
pub mod pool;
pub mod pvs;
pub mod san;
pub mod sea;
pub mod suggest;
pub mod units;
