//! Channels with the devices, without sessions.

mod kicks;
mod layout;
mod turns;
