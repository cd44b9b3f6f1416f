//! Uplinks: what leads out of the host, and who bridges.

#[path = "../common/mod.rs"]
mod common;

mod aggregate;
mod failover;
mod namespaces;
mod packet;
mod pairs;
mod port;
mod tallies;
mod tap;
mod thread;
mod xdp;
