//! Virtual SCSI and virtual Fibre Channel adapters.

#[path = "../common/mod.rs"]
mod common;

mod absent;
mod channels;
mod crash;
mod edges;
mod failover;
mod fences;
mod hostile;
mod life;
mod link;
mod luns;
mod manage;
mod reserve;
