//! What one channel's tables learned, to be told to those of the others.

use core::net::IpAddr;

use crate::address::{Mac, Vid};
use crate::claim::Claim;
use crate::port::PortId;

/// Something that the other channels' switches [learn](crate::Switch::learn).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// Where a station is. Who misses it learns it from a frame.
    Station(Sighting),
    /// Of multicast groups. Who [misses](crate::Switch::miss) it has to know that.
    Group(Heard),
}

/// A station was seen behind a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// Its address.
    pub mac: Mac,
    /// In that VLAN.
    pub vid: Vid,
    /// Behind that port.
    pub port: PortId,
    /// With an address that it said to be its own.
    pub claim: Option<Claim>,
}

/// What was heard of multicast groups by a port, and in which second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    pub(crate) port: PortId,
    pub(crate) at_s: u32,
    pub(crate) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Somebody wants a group.
    Joined(Vid, IpAddr),
    /// Somebody wants it no more.
    Left(Vid, IpAddr),
    /// A router is there.
    Routes(Route),
    /// More was said than is kept or told.
    Greedy,
}

/// Where a router is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) vid: Vid,
    pub(crate) v6: bool,
    /// It asks all for all their groups, time and again: a querier.
    pub(crate) asks: bool,
}
