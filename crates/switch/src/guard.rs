//! What a client may say of itself: MAC and IP addresses, ARP, neighbour discovery, DHCP server, router.

use core::net::{IpAddr, Ipv6Addr};

use crate::address::Mac;
use crate::packet::{Arp, Fragment, Ip, Packet, protocol};
use crate::reason::Reason;
use crate::view::View;

/// An address with the number of leading bits that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// The address.
    pub address: IpAddr,
    /// How many of its bits must agree: 32 or 128 for one address.
    pub bits: u8,
}

impl Prefix {
    fn has(&self, address: IpAddr) -> bool {
        let apart = match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                (ours.to_bits() ^ theirs.to_bits()).leading_zeros()
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                (ours.to_bits() ^ theirs.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        apart >= u32::from(self.bits)
    }
}

/// What a port may send. The default is everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Its MAC addresses; any if there are none here. No other port may use them.
    pub macs: Vec<Mac>,
    /// Its IP addresses; any if there are none here. Link-local IPv6 addresses are free unless one stands here.
    pub addresses: Vec<Prefix>,
    /// Whether it may answer as a DHCP server.
    pub dhcp_server: bool,
    /// Whether it may advertise itself as a router, send redirects, and ask for group memberships.
    pub router: bool,
}

impl Default for Guard {
    fn default() -> Guard {
        Guard { macs: Vec::new(), addresses: Vec::new(), dhcp_server: true, router: true }
    }
}

mod icmpv6 {
    pub(super) const ROUTER_SOLICITATION: u8 = 133;
    pub(super) const ROUTER_ADVERTISEMENT: u8 = 134;
    pub(super) const NEIGHBOUR_SOLICITATION: u8 = 135;
    pub(super) const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
    pub(super) const REDIRECT: u8 = 137;
}

/// Whether what is in a frame with a length for a type may be taken for a packet: a SNAP header, whatever the length says.
fn is_wrapped(view: &View<'_>) -> bool {
    const SNAP: u8 = 0xaa;
    view.ethertype() < 1536 && view.head().get(view.l3()).is_none_or(|dsap| dsap & 0xfe == SNAP)
}

impl Guard {
    /// Judges a frame that the port sent. Headers that cannot be followed are refused from a port with any guard, or a server or a router
    /// would hide behind them (RFC 7113), and so are packets in LLC and SNAP, which some stations read as if they were not (CVE-2021-27854).
    pub(crate) fn check(&self, view: &View<'_>) -> Result<(), Reason> {
        if !self.may_be(view.source()) {
            return Err(Reason::SpoofMac);
        }
        if self.is_open() {
            return Ok(());
        }
        match Packet::of(view) {
            Packet::Unclear => Err(Reason::HeaderChain),
            Packet::Other if view.ethertype() == 0x0806 => Err(Reason::SpoofArp),
            Packet::Other if is_wrapped(view) => Err(Reason::HeaderChain),
            Packet::Other => Ok(()),
            Packet::Arp(arp) => self.arp(&arp),
            Packet::Ip(ip) => self.source(view, &ip).and_then(|()| self.upper(view, &ip)),
        }
    }

    /// Whether the port may send everything.
    pub(crate) fn is_open(&self) -> bool {
        let Guard { macs, addresses, dhcp_server, router } = self;
        macs.is_empty() && addresses.is_empty() && *dhcp_server && *router
    }

    fn may_be(&self, mac: Mac) -> bool {
        self.macs.is_empty() || self.macs.contains(&mac)
    }

    pub(crate) fn may_have(&self, address: IpAddr) -> bool {
        let is_local =
            |address: IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let listed = |address| self.addresses.iter().any(|prefix| prefix.has(address));
        let free =
            is_local(address) && !self.addresses.iter().any(|prefix| is_local(prefix.address));
        self.addresses.is_empty() || listed(address) || free
    }

    fn arp(&self, arp: &Arp) -> Result<(), Reason> {
        let (mac, address) = arp.sender;
        // A probe asks who has an address before it is used (RFC 5227).
        let probe = address.is_unspecified() && arp.operation == 1;
        let right = self.may_be(mac) && (probe || self.may_have(address.into()));
        right.then_some(()).ok_or(Reason::SpoofArp)
    }

    fn source(&self, view: &View<'_>, ip: &Ip) -> Result<(), Reason> {
        // Who has no address yet asks for one, tells its groups, or finds out whether an address is free.
        let without = match ip.protocol {
            protocol::UDP => ip.source.is_ipv4() && ip.ports(view).is_some_and(|(_, to)| to == 67),
            protocol::IGMP => ip.source.is_ipv4(),
            protocol::ICMPV6 => ip.source.is_ipv6(),
            _ => false,
        };
        let right = self.may_have(ip.source) || (ip.source.is_unspecified() && without);
        right.then_some(()).ok_or(Reason::SpoofIp)
    }

    fn upper(&self, view: &View<'_>, ip: &Ip) -> Result<(), Reason> {
        if ip.fragment == Fragment::Later {
            return Ok(());
        }
        match ip.protocol {
            protocol::UDP => {
                let (from, to) = ip.ports(view).ok_or(Reason::HeaderChain)?;
                // Clients read what comes to their port, whichever it comes from.
                let (server, client) = if ip.source.is_ipv4() { (67, 68) } else { (547, 546) };
                let serves = from == server || to == client;
                if serves && !self.dhcp_server { Err(Reason::DhcpServer) } else { Ok(()) }
            }
            protocol::ICMP if ip.source.is_ipv4() && !self.router => {
                // A redirect, and a router's advertisement (RFC 1256).
                match ip.upper(view).first().ok_or(Reason::HeaderChain)? {
                    5 | 9 => Err(Reason::RouterAdvert),
                    _ => Ok(()),
                }
            }
            protocol::ICMPV6 if ip.source.is_ipv6() => self.neighbour(view, ip),
            _ => Ok(()),
        }
    }

    /// Router and neighbour discovery (RFC 4861 clause 4), which no fragments may carry (RFC 6980).
    fn neighbour(&self, view: &View<'_>, ip: &Ip) -> Result<(), Reason> {
        let bytes = ip.upper(view);
        let kind = *bytes.first().ok_or(Reason::HeaderChain)?;
        if !(icmpv6::ROUTER_SOLICITATION..=icmpv6::REDIRECT).contains(&kind) {
            return Ok(());
        }
        if ip.fragment != Fragment::Whole || bytes.len() < ip.end - ip.l4 {
            return Err(Reason::HeaderChain);
        }
        if matches!(kind, icmpv6::ROUTER_ADVERTISEMENT | icmpv6::REDIRECT) && !self.router {
            return Err(Reason::RouterAdvert);
        }
        let (target, mut options) = match kind {
            icmpv6::ROUTER_SOLICITATION => (None, bytes.get(8..)),
            icmpv6::ROUTER_ADVERTISEMENT => (None, bytes.get(16..)),
            icmpv6::REDIRECT => (None, bytes.get(40..)),
            _ => (bytes.get(8..).and_then(|rest| rest.first_chunk::<16>()), bytes.get(24..)),
        };
        let claims = kind == icmpv6::NEIGHBOUR_ADVERTISEMENT
            || (kind == icmpv6::NEIGHBOUR_SOLICITATION && ip.source.is_unspecified());
        if claims {
            let target = Ipv6Addr::from(*target.ok_or(Reason::HeaderChain)?);
            if !self.may_have(target.into()) {
                return Err(Reason::SpoofNd);
            }
        }
        while let Some([option, length, rest @ ..]) = options {
            let bytes = usize::from(*length) * 8;
            let body = (bytes >= 8).then(|| rest.get(..bytes - 2)).flatten();
            let body = body.ok_or(Reason::HeaderChain)?;
            let link = body.first_chunk().map(|mac| Mac(*mac));
            // The redirect's second option is of another station.
            let own = *option == 1 || (*option == 2 && kind != icmpv6::REDIRECT);
            if own && !link.is_some_and(|mac| self.may_be(mac)) {
                return Err(Reason::SpoofNd);
            }
            options = rest.get(bytes - 2..);
        }
        Ok(())
    }
}
