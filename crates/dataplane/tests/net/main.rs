//! Virtual Ethernet adapters and the switch between them.

#[path = "../common/mod.rs"]
mod common;

mod cards;
mod counted;
mod guard;
mod hostile;
mod limits;
mod migration;
mod mirror;
mod offloads;
mod storm;
mod tags;
mod talk;
mod testpmd;
mod traffic;
