//! Virtual block adapters, and what all adapters have in common.

#[path = "../common/mod.rs"]
mod common;

mod bad_volumes;
mod clients;
mod crash;
mod door;
mod fairness;
mod full;
mod hostile_ring;
mod hostile_session;
mod idle;
mod kernel_disks;
mod lost_writes;
mod many;
mod memory_under_load;
mod migration;
mod mirror;
mod placement;
mod power;
mod waiting;
mod write_cache;
