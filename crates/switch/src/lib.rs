//! The Ethernet switch's core: what a frame is, where it goes, and what is done to it on the way; no I/O, no thread, no clock.
//!
//! ```text
//! first bytes, length ──▶ View ─────────────┐
//! virtio-net header ────▶ Offload::judge ───┴▶ adapt(view, offload, tag edit, what the destination takes) ──▶ Pieces
//! ```
//!
//! - [`View`]: a frame by a private copy of its first [`HEAD_BYTES`], and its length. [`Packet`]: the ARP or IP headers in it.
//! - [`Offload`]: what the sender left to be done, once its [`NetHeader`] was held against the frame.
//! - [`adapt`]: the frames that one destination gets: tag edited, checksum filled in or left, cut into segments or not. The payload stays
//!   where it is until the caller copies it.
//! - [`Reason`]: why a frame was not delivered; one list for all who count.
//!
//! # Promises
//!
//! - Nothing in a frame or its header makes this crate panic or read beyond the bytes that it was given.
//! - What was judged is what arrives: a checksum is never filled in over what guards look at.
//! - Nothing is allocated for a frame.
#![forbid(unsafe_code)]

mod address;
mod checksum;
mod edit;
mod offload;
mod packet;
mod reason;
mod view;

pub use address::{CUSTOMER_TPID, Mac, SERVICE_TPID, Tag, Vid, Vids};
pub use checksum::Sum;
pub use edit::{Piece, Pieces, Scratch, TagEdit, Takes, adapt};
pub use offload::{Gso, NetHeader, Offload, Offloads, Partial, SEGMENTS_MAX};
pub use packet::{Arp, Fragment, Ip, Packet};
pub use reason::Reason;
pub use view::{ETHERNET_BYTES, FRAME_BYTES_MAX, HEAD_BYTES, View};
