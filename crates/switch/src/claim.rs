//! Which IP addresses stations say are theirs: with these they are announced when the way to them changes.
//!
//! Heard of ARP and of neighbour advertisements alone, in which a station speaks for itself; whose packets somebody only forwards is nobody's concern here. An
//! address belongs to whoever claimed it last. All memory is taken at the start, and a port's claims fill no more than the port's quota: beyond it
//! the oldest gives way, if it was not heard of for a while, so that a flood of claims changes little and tells the other channels little.

use core::net::{IpAddr, Ipv6Addr};

use crate::address::{Mac, Vid};
use crate::news::Sighting;
use crate::packet::{Fragment, Packet, protocol};
use crate::port::PortId;
use crate::view::View;

/// An address that was heard of within so many seconds gives way to no other one.
const KEPT_S: u32 = 30;

/// An IP address that a station said to be its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// The address.
    pub address: IpAddr,
    /// Of an IPv6 address: the station says that it is a router. Who heard otherwise would no longer use it as one (RFC 4861 clause 7.2.5).
    pub router: bool,
}

impl Claim {
    /// Whether a frame may have one: cheap, for every frame.
    #[inline]
    #[must_use]
    pub fn may_be_in(view: &View<'_>) -> bool {
        match view.ethertype() {
            0x0806 => true,
            0x86dd => view.head().get(view.l3() + 6) == Some(&protocol::ICMPV6),
            _ => false,
        }
    }

    /// What the sender of a frame says of itself. Nothing of proxies and of addresses that several stations have: what they say is not to be repeated
    /// in their name with the weight that an announcement has.
    #[must_use]
    pub fn of(view: &View<'_>) -> Option<Claim> {
        match Packet::of(view) {
            Packet::Arp(arp) => {
                let (mac, address) = arp.sender;
                let is_host = !address.is_unspecified()
                    && !address.is_multicast()
                    && !address.is_broadcast()
                    && !address.is_loopback();
                let claim = Claim { address: address.into(), router: false };
                (mac == view.source() && is_host).then_some(claim)
            }
            Packet::Ip(ip) if ip.protocol == protocol::ICMPV6 && ip.source.is_ipv6() => {
                let bytes = ip.upper(view);
                let whole = ip.fragment == Fragment::Whole && bytes.len() >= ip.end - ip.l4;
                // From a neighbour, and to override what was known (RFC 4861 clause 4.4).
                let near = view.head().get(view.l3() + 7) == Some(&255);
                if !whole || !near || bytes.first_chunk() != Some(&[136, 0]) {
                    return None;
                }
                let flags = *bytes.get(4)?;
                let address = Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?);
                let is_host =
                    !address.is_unspecified() && !address.is_multicast() && !address.is_loopback();
                let own = links(bytes.get(24..)?)?.all(|mac| mac == view.source());
                let claim = Claim { address: address.into(), router: flags & 0x80 != 0 };
                (flags & 0x20 != 0 && is_host && own).then_some(claim)
            }
            _ => None,
        }
    }
}

/// The link-layer addresses of targets among the options of a neighbour advertisement; none if these are broken.
fn links(options: &[u8]) -> Option<impl Iterator<Item = Mac>> {
    let mut found = [None; 4];
    let (mut left, mut number) = (options, 0);
    while let [kind, length, ..] = *left {
        let bytes = usize::from(length) * 8;
        let body = (bytes >= 8).then(|| left.get(2..bytes)).flatten()?;
        if kind == 2 {
            *found.get_mut(number)? = body.first_chunk().map(|mac| Mac(*mac));
            number += 1;
        }
        left = &left[bytes..];
    }
    left.is_empty().then(|| found.into_iter().flatten())
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: (Vid, IpAddr),
    router: bool,
    mac: Mac,
    /// By which it was heard.
    port: PortId,
    heard_s: u32,
    told_s: u32,
}

/// Claims of all ports, in the order of their keys.
#[derive(Debug)]
pub(crate) struct Claims {
    entries: Vec<Entry>,
    max: usize,
    /// Claims that were heard before are told again after so many seconds.
    again_s: u32,
    sweep: usize,
}

impl Claims {
    pub(crate) fn new(max: usize, again_s: u32) -> Claims {
        Claims { entries: Vec::with_capacity(max), max, again_s, sweep: 0 }
    }

    /// A station claimed an address; whether the other channels need to hear it.
    pub(crate) fn hear(&mut self, now_s: u32, seen: Sighting, claim: Claim, quota: usize) -> bool {
        let Sighting { mac, vid, port, .. } = seen;
        let key = (vid, claim.address);
        let mut gone = false;
        if let Ok(at) = self.place(key) {
            let entry = &mut self.entries[at];
            if (entry.mac, entry.port) == (mac, port) {
                let same = entry.router == claim.router;
                (entry.heard_s, entry.router) = (now_s, claim.router);
                if same && now_s.wrapping_sub(entry.told_s) < self.again_s {
                    return false;
                }
                entry.told_s = now_s;
                return true;
            }
            self.entries.remove(at);
            gone = true;
        }
        if !self.make_room(now_s, port, quota) {
            return gone;
        }
        let at = self.place(key).expect_err("it was removed");
        let router = claim.router;
        self.entries.insert(at, Entry { key, router, mac, port, heard_s: now_s, told_s: now_s });
        true
    }

    /// Whether there is room for one more of a port.
    fn make_room(&mut self, now_s: u32, port: PortId, quota: usize) -> bool {
        let own = || self.entries.iter().enumerate().filter(|(_, entry)| entry.port == port);
        if self.entries.len() < self.max && own().count() < quota {
            return true;
        }
        let oldest = own().max_by_key(|(_, entry)| now_s.wrapping_sub(entry.heard_s));
        let old = oldest.filter(|(_, entry)| now_s.wrapping_sub(entry.heard_s) >= KEPT_S);
        let Some((at, _)) = old.filter(|_| quota > 0) else { return false };
        self.entries.remove(at);
        true
    }

    fn place(&self, key: (Vid, IpAddr)) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&key, |entry| entry.key)
    }

    /// Forgets what was heard by a port.
    pub(crate) fn flush(&mut self, port: PortId) {
        self.entries.retain(|entry| entry.port != port);
    }

    /// Forgets some of those whose station is not known any more; eight calls go through all.
    pub(crate) fn age(&mut self, is_known: impl Fn(Mac, Vid) -> bool) {
        for _ in 0..self.entries.len().div_ceil(8) {
            let Some(entry) = self.entries.get(self.sweep) else {
                self.sweep = 0;
                return;
            };
            if is_known(entry.mac, entry.key.0) {
                self.sweep += 1;
            } else {
                self.entries.remove(self.sweep);
            }
        }
    }

    /// All of them: of which station, in which VLAN.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Mac, Vid, Claim)> {
        self.entries.iter().map(|entry| {
            let Entry { key: (vid, address), router, mac, .. } = *entry;
            (mac, vid, Claim { address, router })
        })
    }
}

#[cfg(test)]
mod tests;
