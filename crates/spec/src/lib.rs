//! What a data plane is told to make: volumes, SCSI logical units, adapters, as plain data.
//!
//! The data stands here once. `block` opens a [`VolumeSpec`], `protocol` carries all of them in its messages, `dataplane` makes them and
//! `control` works out which there shall be. [`change`] says what it means to go from one to another, and all of them ask it.
//!
//! A field that is added has a default (`serde(default)`), and is left out of a message where it has it, so that processes of
//! different versions understand each other. Tests and tools build on a `new` or `default()`, so that they need not know it.
#![forbid(unsafe_code)]

mod adapter;
pub mod change;
mod ethernet;
mod identity;
mod kinds;
mod pool;
mod scsi;
mod uplink;
mod volume;

pub use adapter::{AdapterSpec, BlockSpec, DeviceSpec, Placement, SocketRole, WaitMode};
pub use change::Change;
pub use ethernet::{EthernetSpec, GuardSpec, PrefixSpec, RateSpec, StormSpec, Tagging};
pub use identity::FileIdentity;
pub use kinds::*;
pub use pool::{FullLuSpec, FullSpec, PlacedLu, PoolSpec, SnapshotSpec, TierSpec, Traffic};
pub use scsi::{
    CommandSpec, Initiator, LinkSpec, PortShare, Reservations, ScsiSpec, TargetSpec, UnitKind,
    UnitSpec,
};
pub use uplink::{
    AggregateMode, AggregateSpec, Failback, FailoverMode, FailoverSpec, MemberSpec, UplinkKind,
    UplinkSpec,
};
pub use volume::{DelaySpec, FaultSpec, Jitter, LimitSpec, VolumeSpec};

/// Whether a field has its default, and can be left out of a message.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
