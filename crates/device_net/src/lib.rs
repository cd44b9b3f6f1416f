//! The virtio network device (virtio 1.3, clause 5.1): frames between virtqueues and the switch.
//!
//! ```text
//!   TX queue                       network                          RX queues
//! ┌───────────────┐   Replica   ┌───────────────────────────┐   ┌───────────────────┐
//! │ begin: keeps  │ ──────────► │ judged, forwarded, adapted │ ─►│ on this channel:  │ copied once, memory to memory
//! │   the head    │             │ by the channel's own       │   │   a peer          │
//! │ relay: sends  │             │ switch                     │   ├───────────────────┤
//! └───────────────┘             └───────────────────────────┘ ─►│ elsewhere: its    │ copied into a parcel, and out of it
//!                                                                │   inbox           │
//!                                                                └───────────────────┘
//! ```
//!
//! - [`config`]: features and the configuration space;
//! - [`Networks`], [`Network`]: virtual switches by name, with their ports; off the path of a frame;
//! - [`NetHandler`]: what a channel has for a queue; [`NetDevice`]: what a session has.
//!
//! # Sending
//!
//! A TX queue's heads are taken as any. Each stays under way until the turn's relay ([`channel::Handler::relay`]), where all other queues of the
//! channel are at hand: the frame's first bytes are copied and judged, the switch names the ports that get it, and for each a queue is chosen. One
//! that runs on the same channel is written to directly. Then the head is given back; nobody borrows the sender's memory any longer than that, so a
//! TX queue stops as any other.
//!
//! # Receiving
//!
//! Heads of an RX queue are buffers and no requests. They stay in the ring until a frame needs them ([`channel::Opened::pulls`]), and are given back
//! by the same call that takes them. So nothing of an RX queue is ever in flight when somebody else looks, it costs nothing while idle, and its used
//! index is where a server goes on that takes over after a death.
//!
//! A frame that finds no buffers, or comes from another channel, goes into the queue's *inbox*: [`INBOX_FRAMES`] *parcels* that belong to that
//! queue. Who never posts buffers holds up its own inbox and nothing else; a frame for a full one is dropped and counted, unless it is full only since its channel had no turn: then the sender waits for it, a
//! millisecond at most (`patience`).
//!
//! # Order
//!
//! Both kinds of queues give heads back in the order of the ring: senders' in the order in which they were taken, receivers' at once. A frame never
//! overtakes one that waits in the inbox of its destination.
//!
//! # Counting
//!
//! Every frame is delivered, or counted with a [`switch::Reason`], once for each port that it was for: by the queue that received it if it came so
//! far, and else by the port that sent it. What waits for a client that goes away is counted by those who sent it, as [`switch::Reason::PortDown`].
#![deny(unsafe_code)]

mod bounds;
pub mod config;
mod copy;
mod device;
mod handler;
mod held;
mod line;
mod network;
mod patience;
mod receive;
mod replica;
mod talks;
mod trace;
mod transmit;
mod uplink;
mod waiting;
mod xdp;

use protocol::stats::QueueCounter;
use switch::Reason;

pub use device::NetDevice;
pub use handler::{Behind, Descriptor, NetHandler};
pub use network::{Network, Networks};
pub use replica::Shared;
pub use trace::TraceError;
pub use uplink::UplinkPort;
pub use xdp::XdpSocket;

/// Frames that wait for an RX queue at most.
pub const INBOX_FRAMES: usize = 64;

/// What counts frames that were lost for a reason.
#[must_use]
pub fn counter_of(reason: Reason) -> QueueCounter {
    QueueCounter::ALL[QueueCounter::DropPktTooSmall as usize + reason as usize]
}

#[cfg(test)]
mod tests;
