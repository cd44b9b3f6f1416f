//! Multicast snooping (RFC 4541): which ports want which groups, learned from IGMP (RFC 3376) and MLD (RFC 3810).
//!
//! Nothing that somebody may want is withheld. All goes to everybody while nobody asks for memberships, which keeps them alive, and until all have had the time to
//! answer the first question; link-local groups always do. A port of which something is not known gets everything in its VLANs for as long as a membership
//! lasts: one that is new or was changed, and one that says more than can be kept or told.
//!
//! Each channel hears a part of the frames, and tells the others what it hears ([`Heard`]): at first and again before they would forget it, so all tables keep what
//! they know for [`AGAIN_S`] longer than its sender may count on. A port has so much told in a second and no more; beyond, it is told to be one that gets everything.
//! A channel that [missed](Groups::miss) something takes all ports for such.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::VecDeque;

use crate::address::Vid;
use crate::news::{Heard, Route, What};
use crate::packet::{Ip, protocol};
use crate::port::PortId;
use crate::view::{View, be16};

/// A membership lasts so long after a report: two query intervals and a response (RFC 3376 clause 8.4).
const MEMBER_S: u32 = 260;
/// A querier is believed alive so long after a query (clause 8.5), and a router to be there.
const QUERIER_S: u32 = 255;
/// What is heard again is told again if others heard it longer ago than that.
const AGAIN_S: u32 = 65;
/// After the first question so long for everybody to answer: IGMP version 2 says no more than 25.5 seconds (RFC 2236 clause 2.2), and 10 are usual.
const SETTLES_S: u32 = 26;
/// After a leave, so long for others behind the port to object: two last-member queries (clause 8.8).
const LEAVE_S: u32 = 2;
/// More ports than routers are likely to be behind; beyond, the least recent one of the port that has most goes.
const ROUTERS_MAX: usize = 256;
/// Most that a port has told in a second, if it may have as many groups.
const TOLD_MAX: usize = 256;
/// Most that is told of one frame: it has no more records in what is looked at.
const AT_ONCE: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    vid: Vid,
    group: IpAddr,
    port: PortId,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    key: Key,
    until_s: u32,
    /// Until when the other channels keep it.
    others_s: u32,
}

#[derive(Debug, Clone, Copy)]
struct Router {
    port: PortId,
    route: Route,
    /// Since when it is known without a gap.
    since_s: u32,
    heard_s: u32,
    /// When the other channels were told last.
    told_s: Option<u32>,
}

impl Router {
    fn is_there(&self, now_s: u32) -> bool {
        now_s < self.heard_s + QUERIER_S + AGAIN_S
    }

    /// Whether all have been asked, and have had the time to answer. Never longer than their answers are kept.
    fn has_asked(&self, now_s: u32) -> bool {
        let settled = now_s >= self.since_s + SETTLES_S;
        self.route.asks && settled && now_s < self.heard_s + QUERIER_S
    }
}

/// What is known of a port.
#[derive(Debug, Clone, Copy, Default)]
struct Its {
    /// It gets everything, from the next moment on that is known.
    is_fresh: bool,
    /// It gets everything until then.
    greedy_s: u32,
    /// So do the other channels believe, because they were told.
    others_s: u32,
    /// So much was told in that second.
    told: (u32, usize),
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
    members: Vec<Member>,
    members_max: usize,
    routers: Vec<Router>,
    ports: Vec<Its>,
    /// One of them is fresh.
    has_fresh: bool,
    /// What is to be told of the last frame.
    told: VecDeque<Heard>,
}

impl Groups {
    pub(crate) fn new(members_max: usize) -> Groups {
        Groups {
            members: Vec::with_capacity(members_max),
            members_max,
            routers: Vec::with_capacity(ROUTERS_MAX),
            ports: Vec::new(),
            has_fresh: false,
            told: VecDeque::with_capacity(AT_ONCE),
        }
    }

    /// Makes room for what is known of a port.
    pub(crate) fn add_port(&mut self, port: PortId) {
        let wanted = usize::from(port.0) + 1;
        if self.ports.len() < wanted {
            self.ports.resize(wanted, Its::default());
        }
    }

    /// Reads a multicast IP packet that came from a port. `quota` bounds the port's memberships; `router` says whether it may be one, and `asks` whether its
    /// questions reach everybody. What others are to hear is then to be [taken](Groups::take_told).
    pub(crate) fn hear(
        &mut self,
        now_s: u32,
        from: (PortId, Vid),
        view: &View<'_>,
        ip: &Ip,
        (quota, router, asks): (usize, bool, bool),
    ) -> Audience {
        self.told.clear();
        self.stamp(now_s);
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
                self.router(now_s, port, Route { vid, v6, asks: false }, quota);
                return Audience::Everybody;
            }
            _ => return self.audience(now_s, vid, ip.destination),
        };
        if query {
            // One without an address asks for a proxy and leads nowhere (RFC 4541 clause 2.1.1).
            if router && !ip.source.is_unspecified() {
                let asks = asks && asks_all(known, ip.destination);
                self.router(now_s, port, Route { vid, v6, asks }, quota);
            }
            return Audience::Everybody;
        }
        let whole = !cut && self.report(now_s, from, known, v6, quota).is_some();
        if !whole {
            self.greedy(now_s, port);
        }
        let mut routers = self.routers_of(now_s, vid, v6);
        if routers.next().is_some() { Audience::Routers(v6) } else { Audience::Everybody }
    }

    /// The next of what others are to hear of the last frame, in this order.
    pub(crate) fn take_told(&mut self) -> Option<Heard> {
        self.told.pop_front()
    }

    /// Another channel heard something. `quota` as above.
    pub(crate) fn learn(&mut self, Heard { port, at_s, what }: Heard, quota: usize) {
        match what {
            What::Joined(vid, group) => match self.enter(at_s, Key { vid, group, port }, quota) {
                Some(at) => {
                    let member = &mut self.members[at];
                    member.others_s = member.others_s.max(at_s + MEMBER_S + AGAIN_S);
                }
                None => self.greedy_here(at_s, port),
            },
            What::Left(vid, group) => {
                if let Ok(at) = self.place(Key { vid, group, port }) {
                    self.members[at].leave(at_s);
                }
            }
            What::Routes(route) => {
                let at = self.enter_router(at_s, port, route);
                let told_s = &mut self.routers[at].told_s;
                *told_s = (*told_s).max(Some(at_s));
            }
            What::Greedy => {
                self.greedy_here(at_s, port);
                let its = &mut self.ports[usize::from(port.0)];
                its.others_s = its.others_s.max(at_s + MEMBER_S + AGAIN_S);
            }
        }
    }

    /// Something that another channel heard was lost.
    pub(crate) fn miss(&mut self) {
        self.ports.iter_mut().for_each(|its| its.is_fresh = true);
        self.has_fresh = true;
    }

    /// Whether a port is of an audience.
    pub(crate) fn is_of(&self, now_s: u32, vid: Vid, port: PortId, audience: Audience) -> bool {
        let routes = |v6| self.routers_of(now_s, vid, v6).any(|one| one.port == port);
        match audience {
            Audience::Everybody => true,
            Audience::Routers(v6) => routes(v6),
            Audience::Members(group) => {
                let key = Key { vid, group, port };
                let member = || self.place(key).is_ok_and(|at| self.members[at].until_s > now_s);
                let its = self.ports[usize::from(port.0)];
                its.is_fresh || its.greedy_s > now_s || member() || routes(group.is_ipv6())
            }
        }
    }

    /// Forgets what was said by a port, which gets everything until it is said again.
    pub(crate) fn flush(&mut self, port: PortId) {
        self.members.retain(|member| member.key.port != port);
        self.routers.retain(|router| router.port != port);
        self.ports[usize::from(port.0)].is_fresh = true;
        self.has_fresh = true;
    }

    /// Frees what is too old.
    pub(crate) fn age(&mut self, now_s: u32) {
        self.stamp(now_s);
        self.members.retain(|member| member.until_s > now_s);
        self.routers.retain(|router| router.is_there(now_s));
    }

    /// Those that are fresh get everything from now on.
    fn stamp(&mut self, now_s: u32) {
        if !self.has_fresh {
            return;
        }
        for its in self.ports.iter_mut().filter(|its| its.is_fresh) {
            (its.is_fresh, its.greedy_s) = (false, now_s + MEMBER_S + AGAIN_S);
        }
        self.has_fresh = false;
    }

    fn audience(&self, now_s: u32, vid: Vid, group: IpAddr) -> Audience {
        let near = match group {
            IpAddr::V4(group) => group.octets()[..3] == [224, 0, 0],
            // Scope of the interface or the link (RFC 4291 clause 2.7).
            IpAddr::V6(group) => group.octets()[1] & 15 <= 2,
        };
        let has_querier =
            || self.routers_of(now_s, vid, group.is_ipv6()).any(|one| one.has_asked(now_s));
        if near || !group.is_multicast() || !has_querier() {
            return Audience::Everybody;
        }
        Audience::Members(group)
    }

    fn routers_of(&self, now_s: u32, vid: Vid, v6: bool) -> impl Iterator<Item = &Router> {
        let is_one = move |one: &&Router| one.route.vid == vid && one.route.v6 == v6;
        self.routers.iter().filter(is_one).filter(move |one| one.is_there(now_s))
    }

    fn router(&mut self, now_s: u32, port: PortId, route: Route, quota: usize) {
        let at = self.enter_router(now_s, port, route);
        if self.routers[at].told_s.is_some_and(|told_s| now_s < told_s + AGAIN_S) {
            return;
        }
        match self.tell(now_s, port, What::Routes(route), quota) {
            Some(()) => self.routers[at].told_s = Some(now_s),
            None => self.greedy(now_s, port),
        }
    }

    fn enter_router(&mut self, now_s: u32, port: PortId, route: Route) -> usize {
        let known = self.routers.iter().position(|one| (one.port, one.route) == (port, route));
        if let Some(at) = known {
            let one = &mut self.routers[at];
            if now_s >= one.heard_s + QUERIER_S {
                one.since_s = now_s;
            }
            one.heard_s = one.heard_s.max(now_s);
            return at;
        }
        self.routers.retain(|one| one.is_there(now_s));
        if self.routers.len() == ROUTERS_MAX {
            self.forget_router(now_s);
        }
        let new = Router { port, route, since_s: now_s, heard_s: now_s, told_s: None };
        self.routers.push(new);
        self.routers.len() - 1
    }

    /// Makes room: of the port that takes most of it, which still gets everything.
    fn forget_router(&mut self, now_s: u32) {
        let of = |port| self.routers.iter().filter(move |one| one.port == port).count();
        let most = self.routers.iter().map(|one| one.port).max_by_key(|port| of(*port));
        let its = self.routers.iter().enumerate().filter(|(_, one)| Some(one.port) == most);
        if let Some((at, one)) = its.min_by_key(|(_, one)| one.heard_s) {
            let port = one.port;
            self.routers.swap_remove(at);
            self.greedy_here(now_s, port);
        }
    }

    /// A port gets everything for a while.
    fn greedy_here(&mut self, now_s: u32, port: PortId) {
        let its = &mut self.ports[usize::from(port.0)];
        its.greedy_s = its.greedy_s.max(now_s + MEMBER_S + AGAIN_S);
    }

    /// The same on all channels.
    fn greedy(&mut self, now_s: u32, port: PortId) {
        self.greedy_here(now_s, port);
        let its = &mut self.ports[usize::from(port.0)];
        if its.others_s < now_s + MEMBER_S {
            its.others_s = now_s + MEMBER_S + AGAIN_S;
            self.told.push_back(Heard { port, at_s: now_s, what: What::Greedy });
        }
    }

    /// Tells the other channels. None: the port has had so much told that it is too much.
    fn tell(&mut self, now_s: u32, port: PortId, what: What, quota: usize) -> Option<()> {
        let (second, told) = &mut self.ports[usize::from(port.0)].told;
        if *second != now_s {
            (*second, *told) = (now_s, 0);
        }
        // With room for one more, which says so.
        if *told >= quota.min(TOLD_MAX) || self.told.len() + 1 >= AT_ONCE {
            return None;
        }
        *told += 1;
        self.told.push_back(Heard { port, at_s: now_s, what });
        Some(())
    }

    /// None if something was not understood, not kept or not told.
    fn report(
        &mut self,
        now_s: u32,
        (port, vid): (PortId, Vid),
        bytes: &[u8],
        v6: bool,
        quota: usize,
    ) -> Option<()> {
        let key = |at: usize| Some(Key { vid, group: group(bytes, at, v6)?, port });
        let address = if v6 { 16 } else { 4 };
        match bytes.first()? {
            0x12 | 0x16 | 131 => self.join(now_s, key(if v6 { 8 } else { 4 })?, quota),
            0x17 | 132 => {
                self.leave(now_s, key(if v6 { 8 } else { 4 })?, quota);
                Some(())
            }
            _ => {
                let mut at = 8;
                for _ in 0..be16(bytes, 6)? {
                    let (kind, extra) = (*bytes.get(at)?, usize::from(*bytes.get(at + 1)?) * 4);
                    let sources = usize::from(be16(bytes, at + 2)?);
                    let key = key(at + 4)?;
                    match (kind, sources) {
                        // Include nothing is to leave; blocking some sources is not.
                        (1 | 3, 0) => self.leave(now_s, key, quota),
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
        self.members.binary_search_by_key(&key, |member| member.key)
    }

    fn join(&mut self, now_s: u32, key: Key, quota: usize) -> Option<()> {
        if !key.group.is_multicast() {
            return Some(());
        }
        let at = self.enter(now_s, key, quota)?;
        if self.members[at].others_s < now_s + MEMBER_S {
            self.tell(now_s, key.port, What::Joined(key.vid, key.group), quota)?;
            self.members[at].others_s = now_s + MEMBER_S + AGAIN_S;
        }
        Some(())
    }

    /// Keeps a membership from that second on; none if there is no room.
    fn enter(&mut self, at_s: u32, key: Key, quota: usize) -> Option<usize> {
        let until_s = at_s + MEMBER_S + AGAIN_S;
        match self.place(key) {
            Ok(at) => {
                let member = &mut self.members[at];
                member.until_s = member.until_s.max(until_s);
                Some(at)
            }
            Err(at) => {
                let has = self.members.iter().filter(|one| one.key.port == key.port).count();
                if has >= quota || self.members.len() >= self.members_max {
                    return None;
                }
                self.members.insert(at, Member { key, until_s, others_s: 0 });
                Some(at)
            }
        }
    }

    /// Of which others cannot be told goes on everywhere.
    fn leave(&mut self, now_s: u32, key: Key, quota: usize) {
        let Ok(at) = self.place(key) else { return };
        let is_known = self.members[at].others_s > now_s + LEAVE_S;
        let what = What::Left(key.vid, key.group);
        if !is_known || self.tell(now_s, key.port, what, quota).is_some() {
            self.members[at].leave(now_s);
        }
    }
}

impl Member {
    fn leave(&mut self, at_s: u32) {
        self.until_s = self.until_s.min(at_s + LEAVE_S);
        self.others_s = self.others_s.min(at_s + LEAVE_S);
    }
}

/// The group at that place.
fn group(bytes: &[u8], at: usize, v6: bool) -> Option<IpAddr> {
    let bytes = bytes.get(at..)?;
    Some(if v6 {
        Ipv6Addr::from(*bytes.first_chunk::<16>()?).into()
    } else {
        Ipv4Addr::from(*bytes.first_chunk::<4>()?).into()
    })
}

/// Whether a query is for all groups and to all, so that it keeps all memberships alive.
fn asks_all(query: &[u8], to: IpAddr) -> bool {
    let (at, all): (usize, IpAddr) = match to {
        IpAddr::V4(_) => (4, Ipv4Addr::new(224, 0, 0, 1).into()),
        IpAddr::V6(_) => (8, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into()),
    };
    to == all && group(query, at, to.is_ipv6()).is_some_and(|group| group.is_unspecified())
}
