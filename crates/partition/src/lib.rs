//! A client in user space: vhost-user front end, virtio-blk, virtio-scsi and virtio-net drivers and load generator.
//!
//! What a virtual machine does to a vhost-user-blk or vhost-user-scsi server, without the virtual machine. Serves `trunkline bench` and
//! `trunkline demo`, and tests; works with any server, not only ours.
//!
//! | module | what |
//! |---|---|
//! | [`session`] | the socket: negotiation, memory, rings, in-flight region, stop, reconnect |
//! | [`config`] | feature bits and configuration space of virtio-blk |
//! | [`blk`] | virtio-blk requests on one queue |
//! | [`scsi`] | virtio-scsi commands on one queue; task management and events |
//! | [`net`] | frames on a pair of queues of virtio-net |
//! | [`load`] | the load generator, with verification and measurement |
//! | [`traffic`] | streams and transactions between two network cards |
//! | [`pattern`] | what verified blocks hold |
//! | [`hist`] | latency histograms |
//!
//! Promises: what a server writes into the rings is judged before it is used, and nothing that it does makes this crate panic.
//! Leaves to others: the ring itself ([`vring::driver`]), printing and exit codes (the `trunkline` command).
//!
//! Threads: a [`session::Session`] stays with the thread that made it; each [`blk::Queue`] or [`scsi::Queue`] belongs to one thread at a time.

pub mod blk;
pub mod config;
mod cpu;
pub mod hist;
pub mod load;
pub mod net;
pub mod pattern;
mod ring;
pub mod scsi;
pub mod session;
pub mod traffic;
