//! The Ethernet switch's core: what a frame is, where it goes, and what is done to it on the way; no I/O, no thread, no clock.
//!
//! ```text
//! first bytes, length ──▶ View ──────▶ Switch::forward ──▶ [Egress] ──┐ for each
//!                          └────┐                                     ▼
//! virtio-net header ────▶ Offload::judge ──▶ Offload ───────▶ Switch::adapt ──▶ Pieces ──▶ copied by the caller
//!                                                                                       └▶ delivered, or lost with a Reason
//! ```
//!
//! - [`View`]: a frame by a private copy of its first [`HEAD_BYTES`], and its length. [`Packet`]: the ARP or IP headers in it.
//! - [`Offload`]: what the sender left to be done, once its [`NetHeader`] was held against the frame.
//! - [`adapt`]: the frames that one destination gets: tag edited, checksum filled in or left, cut into segments or not. The payload stays
//!   where it is until the caller copies it.
//! - [`Switch`]: one channel's ports and tables. [`Switch::forward`] finds the destinations of a frame ([`Egress`], each with its tag edit);
//!   [`Switch::adapt`] makes the frame into what one of them takes. [`PortSpec`]: VLANs, private ports, guards, bounds, mirrors.
//! - [`News`]: what one channel's tables learned, for the others': where stations are ([`Sighting`]), and who wants which groups ([`Heard`]). [`Claim`]: an IP address that a station says is its own. [`Announcement`]: what is said of a
//!   station whose place has changed, to those who do not know it.
//! - [`Aggregation`]: which of several links that are one port a frame takes.
//! - [`failover`]: which of two servers bridges which VLAN.
//! - [`Reason`]: why a frame was not delivered; one list for all who count.
//!
//! # Promises
//!
//! - Nothing in a frame or its header makes this crate panic or read beyond the bytes that it was given.
//! - What was judged is what arrives: a checksum is never filled in over what guards look at.
//! - Nothing is allocated for a frame.
//! - Every frame that came in is counted once at its port, as forwarded or with a reason; and once for each of its destinations, if the caller tells what
//!   came of it.
//! - Time is the caller's: nanoseconds of any clock that does not go back.
//!
//! # Left to others
//!
//! Memory, queues and rings; LACP, LLDP and spanning tree. A port whose queues are on several channels has its
//! quotas on each of them; its rates are [shared](Meter).
#![forbid(unsafe_code)]

mod address;
mod aggregate;
mod announce;
mod checksum;
mod claim;
mod edit;
pub mod failover;
mod forward;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
mod group;
mod guard;
mod limit;
mod news;
mod offload;
#[cfg(any(fuzzing, test))]
mod oracle;
mod packet;
mod port;
mod reach;
mod reason;
mod table;
mod view;

pub use address::{CUSTOMER_TPID, Mac, SERVICE_TPID, Tag, Vid, Vids};
pub use aggregate::{Aggregation, Links};
pub use announce::{ANNOUNCEMENT_BYTES, Announcement};
pub use checksum::Sum;
pub use claim::Claim;
pub use edit::{Piece, Pieces, Scratch, TagEdit, Takes, adapt};
pub use forward::{Egress, Sizes, Switch};
pub use guard::{Guard, Prefix};
pub use limit::{Limit, Meter, Rate};
pub use news::{Heard, News, Sighting};
pub use offload::{Gso, NetHeader, Offload, Offloads, Partial, SEGMENTS_MAX};
pub use packet::{Arp, Fragment, Ip, Packet};
pub use port::{PortId, PortSpec, Storm, Tagging};
pub use reach::{IN_A_ROW, Question, Reach, Said};
pub use reason::{Counters, Reason};
pub use view::{ETHERNET_BYTES, FRAME_BYTES_MAX, HEAD_BYTES, View};
