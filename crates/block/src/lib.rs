//! The narrow waist between devices and storage.
//!
//! A device turns what its client asked into a [`Request`]; a [`Volume`] is anything that can serve requests: a file, a
//! block device, RAM, nothing at all, or a wrapper that limits, delays or spoils another volume. Neither side knows the other.
//!
//! # The contract
//!
//! - A [`Volume`] is shared by all threads and is asked rarely (geometry, resize). A [`Lane`] is one channel's way to it: made on the
//!   channel's thread, used on that thread alone, with the channel's own io_uring. Lanes of one volume share no cache line that
//!   is written per request.
//! - The caller guarantees that `offset` and `len` are multiples of the volume's block size and lie inside it, that the buffers of a
//!   read or write hold exactly `len` bytes, that they stay mapped until the request is finished, and that a [`Tag`] is
//!   not used again before that. A lane must not panic for any value all the same.
//! - A lane answers [`Submit::Done`] (served at once), [`Submit::Pending`] or [`Submit::Held`] (a [`Finish`] with this tag comes out of
//!   [`Lane::complete`]), or [`Submit::Park`] (nothing was begun; the caller submits the same request again later). So a request
//!   waits in one place only, the channel, which counts each reason.
//! - Nothing is allocated after the lane was made.
//! - A write is durable when a flush that was submitted after its completion is done, or when it was sent with `fua`.
//!   Requests in flight together have no order.

//!
//! # Volumes
//!
//! [`spec::VolumeSpec`] describes a volume and [`open`] makes it from the list in `kinds`: [`FileVolume`] (a regular file or a block device),
//! [`RamVolume`], [`NullVolume`], and around them [`Faulty`], [`Delayed`] and [`Limited`], from the inside out.
//! [`conformance`] is the suite that all of them pass, for the tests of every crate that makes a volume.
#![forbid(unsafe_code)]

pub mod conformance;
mod delayed;
mod fail;
mod faulty;
mod file;
mod files;
mod kinds;
pub mod limit;
mod limited;
mod null;
mod ram;
mod request;
pub mod slab;
pub mod spindle;
mod turns;

pub use delayed::Delayed;
pub use faulty::Faulty;
pub use file::FileVolume;
pub use files::{Files, Here, Testimony};
pub use kinds::{DEPTH_CLIENT, OpenEvent, open, open_for, open_part, open_with, wrapped};
pub use limited::{Limited, Limiter};
pub use null::NullVolume;
pub use ram::RamVolume;
pub use spec::{self, VolumeSpec};

pub use request::{
    Finish, Geometry, IoError, Lane, LaneId, OpKind, Outcome, Request, Seat, Submit, Tag, Volume,
    VolumeError, Wait,
};
