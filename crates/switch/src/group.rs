//! Multicast snooping (RFC 4541): which ports want which groups, learned from IGMP (RFC 3376) and MLD (RFC 3810).
//!
//! Nothing that somebody may want is withheld: without a querier, whose questions keep memberships alive, everything is flooded, as are link-local
//! groups, and a port that says more than can be kept gets everything in its VLANs for a while.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::Vid;
use crate::packet::{Ip, protocol};
use crate::port::PortId;
use crate::view::{View, be16};

/// A membership lasts so long after a report: two query intervals and a response (RFC 3376 clause 8.4).
const MEMBER_S: u32 = 260;
/// A querier is believed alive so long after a query (clause 8.5).
const QUERIER_S: u32 = 255;
/// After a leave, so long for others behind the port to object: two last-member queries (clause 8.8).
const LEAVE_S: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    vid: Vid,
    group: IpAddr,
    port: PortId,
}

#[derive(Debug, Clone, Copy)]
struct Router {
    vid: Vid,
    v6: bool,
    port: PortId,
    until_s: u32,
}

/// Who gets a multicast frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Everybody,
    /// Router ports alone: a report that other hosts must not hear, or they would keep quiet.
    Routers(bool),
    /// Members and router ports.
    Members(IpAddr),
}

#[derive(Debug)]
pub(crate) struct Groups {
    /// Sorted; with room for all from the start.
    members: Vec<(Key, u32)>,
    members_max: usize,
    routers: Vec<Router>,
    /// Ports that get everything, and until when.
    greedy: Vec<(PortId, u32)>,
}

/// More ports than routers are likely to be behind; beyond, the least recent goes.
const ROUTERS_MAX: usize = 256;

impl Groups {
    pub(crate) fn new(members_max: usize) -> Groups {
        let (members, routers) = (Vec::with_capacity(members_max), Vec::with_capacity(ROUTERS_MAX));
        Groups { members, members_max, routers, greedy: Vec::new() }
    }

    /// Reads a multicast IP packet that came from a port. `quota` bounds the port's memberships; `router` says whether it may be one.
    pub(crate) fn hear(
        &mut self,
        now_s: u32,
        from: (PortId, Vid),
        view: &View<'_>,
        ip: &Ip,
        (quota, router): (usize, bool),
    ) -> Audience {
        let (port, vid) = from;
        let v6 = ip.source.is_ipv6();
        let known = ip.upper(view);
        let cut = known.len() < ip.end.saturating_sub(ip.l4);
        let kind = known.first().copied().unwrap_or(0);
        let query = match (ip.protocol, kind) {
            (protocol::IGMP, 0x11) if !v6 => true,
            (protocol::ICMPV6, 130) if v6 => true,
            (protocol::IGMP, 0x12 | 0x16 | 0x17 | 0x22) if !v6 => false,
            (protocol::ICMPV6, 131 | 132 | 143) if v6 => false,
            (protocol::PIM, _) if router => {
                self.router(now_s, Router { vid, v6, port, until_s: now_s + QUERIER_S });
                return Audience::Everybody;
            }
            _ => return self.audience(now_s, vid, ip.destination),
        };
        if query {
            // One without an address asks for a proxy and leads nowhere (RFC 4541 clause 2.1.1).
            if router && !ip.source.is_unspecified() {
                self.router(now_s, Router { vid, v6, port, until_s: now_s + QUERIER_S });
            }
            return Audience::Everybody;
        }
        let whole = !cut && self.report(now_s, from, known, v6, quota).is_some();
        if !whole {
            self.greedy(now_s, port);
        }
        if self.has_querier(now_s, vid, v6) { Audience::Routers(v6) } else { Audience::Everybody }
    }

    /// Whether a port is of an audience.
    pub(crate) fn is_of(&self, now_s: u32, vid: Vid, port: PortId, audience: Audience) -> bool {
        let routes = |v6| {
            let mut routers = self.routers.iter();
            routers.any(|one| (one.vid, one.v6, one.port) == (vid, v6, port) && one.until_s > now_s)
        };
        match audience {
            Audience::Everybody => true,
            Audience::Routers(v6) => routes(v6),
            Audience::Members(group) => {
                let key = Key { vid, group, port };
                let member = self.place(key).is_ok_and(|at| self.members[at].1 > now_s);
                let greedy = self.greedy.iter().any(|(one, until)| *one == port && *until > now_s);
                member || greedy || routes(group.is_ipv6())
            }
        }
    }

    /// Forgets a port.
    pub(crate) fn flush(&mut self, port: PortId) {
        self.members.retain(|(key, _)| key.port != port);
        self.routers.retain(|router| router.port != port);
        self.greedy.retain(|(one, _)| *one != port);
    }

    /// Frees what is too old.
    pub(crate) fn age(&mut self, now_s: u32) {
        self.members.retain(|(_, until)| *until > now_s);
        self.routers.retain(|router| router.until_s > now_s);
        self.greedy.retain(|(_, until)| *until > now_s);
    }

    fn audience(&self, now_s: u32, vid: Vid, group: IpAddr) -> Audience {
        let near = match group {
            IpAddr::V4(group) => group.octets()[..3] == [224, 0, 0],
            // Scope of the interface or the link (RFC 4291 clause 2.7).
            IpAddr::V6(group) => group.octets()[1] & 15 <= 2,
        };
        if near || !group.is_multicast() || !self.has_querier(now_s, vid, group.is_ipv6()) {
            return Audience::Everybody;
        }
        Audience::Members(group)
    }

    fn has_querier(&self, now_s: u32, vid: Vid, v6: bool) -> bool {
        self.routers.iter().any(|one| one.vid == vid && one.v6 == v6 && one.until_s > now_s)
    }

    fn router(&mut self, now_s: u32, router: Router) {
        let same =
            |one: &Router| (one.vid, one.v6, one.port) == (router.vid, router.v6, router.port);
        self.routers.retain(|one| !same(one) && one.until_s > now_s);
        if self.routers.len() == ROUTERS_MAX {
            self.routers.remove(0);
        }
        self.routers.push(router);
    }

    fn greedy(&mut self, now_s: u32, port: PortId) {
        self.greedy.retain(|(one, _)| *one != port);
        self.greedy.push((port, now_s + MEMBER_S));
    }

    /// None if something was not understood or not kept.
    fn report(
        &mut self,
        now_s: u32,
        (port, vid): (PortId, Vid),
        bytes: &[u8],
        v6: bool,
        quota: usize,
    ) -> Option<()> {
        let group = |at: usize| -> Option<IpAddr> {
            let bytes = bytes.get(at..)?;
            Some(if v6 {
                Ipv6Addr::from(*bytes.first_chunk::<16>()?).into()
            } else {
                Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()
            })
        };
        let address = if v6 { 16 } else { 4 };
        match bytes.first()? {
            0x12 | 0x16 | 131 => {
                let key = Key { vid, group: group(if v6 { 8 } else { 4 })?, port };
                self.join(now_s, key, quota)
            }
            0x17 | 132 => {
                self.leave(now_s, Key { vid, group: group(if v6 { 8 } else { 4 })?, port });
                Some(())
            }
            _ => {
                let mut at = 8;
                for _ in 0..be16(bytes, 6)? {
                    let (kind, extra) = (*bytes.get(at)?, usize::from(*bytes.get(at + 1)?) * 4);
                    let sources = usize::from(be16(bytes, at + 2)?);
                    let key = Key { vid, group: group(at + 4)?, port };
                    match (kind, sources) {
                        // Include nothing is to leave; blocking some sources is not.
                        (1 | 3, 0) => self.leave(now_s, key),
                        (6, _) => {}
                        _ => self.join(now_s, key, quota)?,
                    }
                    at += 4 + address + sources * address + extra;
                }
                Some(())
            }
        }
    }

    fn place(&self, key: Key) -> Result<usize, usize> {
        self.members.binary_search_by_key(&key, |(key, _)| *key)
    }

    fn join(&mut self, now_s: u32, key: Key, quota: usize) -> Option<()> {
        if !key.group.is_multicast() {
            return Some(());
        }
        match self.place(key) {
            Ok(at) => self.members[at].1 = now_s + MEMBER_S,
            Err(at) => {
                let has = self.members.iter().filter(|(one, _)| one.port == key.port).count();
                if has >= quota || self.members.len() >= self.members_max {
                    return None;
                }
                self.members.insert(at, (key, now_s + MEMBER_S));
            }
        }
        Some(())
    }

    fn leave(&mut self, now_s: u32, key: Key) {
        if let Ok(at) = self.place(key) {
            let until = &mut self.members[at].1;
            *until = (*until).min(now_s + LEAVE_S);
        }
    }
}
