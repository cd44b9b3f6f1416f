//! Channels with the devices, without sessions.

mod layout;
mod turns;
