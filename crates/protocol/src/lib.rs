//! What the control plane and the data plane say to each other.
//!
//! The data path and the control path meet here and nowhere else:
//!
//! - [`message`]: requests, replies, and the specifications of volumes and adapters that they carry;
//! - [`socket`]: their frames on a Unix stream socket, with descriptors passed along;
//! - [`opener`]: what the control plane opens for a data plane that can open nothing by itself;
//! - [`place`]: where sockets listen, and who is reached there;
//! - [`stats`]: the layout of the shared memory in which the data plane counts and from which anybody reads.
//!
//! Messages are CBOR maps with named fields: a field that a peer does not know is ignored and one that it lacks takes its
//! default, so a newer control plane can adopt an older data plane. What cannot be understood that way raises
//! [`message::VERSION`].

#[cfg(any(fuzzing, test))]
pub mod fuzz;
pub mod message;
pub mod opener;
pub mod place;
pub mod socket;
pub mod stats;

pub use memory::inherited;
/// For the control process, which has nothing else to do with that crate.
pub use memory::planted;
#[cfg(feature = "sim")]
pub use memory::sim;

/// Now, as messages, statistics and events say when something was: in milliseconds since 1970, by the host's clock, which may be set back.
pub fn now_ms() -> u64 {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
