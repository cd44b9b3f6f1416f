//! VLANs that a client is taken off, and ways out of the host that go. A client with another card that has the same way keeps it.

use super::{Between, of};
use crate::model::resolve::Wanted;
use crate::model::resolve::network::mac_text;
use protocol::message::{AdapterSpec, DeviceSpec, EthernetSpec, GuardSpec, PrefixSpec};
use std::collections::{BTreeMap, BTreeSet};

fn card(spec: &AdapterSpec) -> Option<&EthernetSpec> {
    match &spec.device {
        DeviceSpec::Ethernet(card) => Some(card),
        DeviceSpec::Block(_) | DeviceSpec::Scsi(_) => None,
    }
}

fn vlans(pvid: u16, vids: &[u16]) -> BTreeSet<u16> {
    vids.iter().copied().chain([pvid]).collect()
}

fn listed(vlans: &BTreeSet<u16>) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = vlans.iter().take(SHOWN).map(u16::to_string).collect();
    let more = if vlans.len() > SHOWN { ", …" } else { "" };
    let noun = if vlans.len() == 1 { "VLAN" } else { "VLANs" };
    format!("{noun} {}{more}", shown.join(", "))
}

/// What a change of the adapter itself takes.
pub(super) fn lost(before: &AdapterSpec, after: &AdapterSpec) -> Option<String> {
    let (before, after) = (card(before)?, card(after)?);
    if before.pvid != after.pvid {
        let (from, to) = (before.pvid, after.pvid);
        return Some(format!("VLAN {from}: its frames without a tag would be of VLAN {to}"));
    }
    if !before.monitor && after.monitor {
        return Some(format!(
            "its network `{}`: it would get copies of others' frames",
            after.network
        ));
    }
    if before.tagging != after.tagging {
        return Some("its VLANs: other tags would say them".to_owned());
    }
    let (then, left) = (vlans(before.pvid, &before.vids), vlans(after.pvid, &after.vids));
    let gone: BTreeSet<u16> = then.difference(&left).copied().collect();
    if !gone.is_empty() {
        return Some(listed(&gone));
    }
    if (before.any_mac, before.mac) != (after.any_mac, after.mac) && !after.any_mac {
        let mac = mac_text(after.mac);
        return Some(format!("what it sends from other MAC addresses than {mac}"));
    }
    if let Some(what) = held_to(&before.guard, &after.guard) {
        return Some(what.to_owned());
    }
    if !before.private && after.private {
        return Some("what it exchanges with other private adapters of its network".to_owned());
    }
    (after.mtu < before.mtu).then(|| {
        let mtu = after.mtu;
        format!(
            "packets of more than {mtu} bytes when it connects again: it was told {}",
            before.mtu
        )
    })
}

/// What a client may no longer say of itself.
fn held_to(before: &GuardSpec, after: &GuardSpec) -> Option<&'static str> {
    let kept = |it: &PrefixSpec| after.addresses.iter().any(|other| other.covers(it));
    let all = !before.addresses.is_empty() && before.addresses.iter().all(kept);
    if !after.addresses.is_empty() && !all {
        return Some("what it sends from IP addresses that are not in `addresses`");
    }
    if before.dhcp_server && !after.dhcp_server {
        return Some("what it answers as a DHCP server");
    }
    (before.router && !after.router).then_some("what it says as a router")
}

/// By data plane and network: the VLANs that uplinks connect to the outside.
type Outside<'a> = BTreeMap<(&'a str, &'a str), BTreeSet<u16>>;

fn outside(all: &BTreeMap<String, Wanted>) -> Outside<'_> {
    let mut outside = Outside::new();
    for (plane, wanted) in all {
        for (_, uplink) in &wanted.uplinks {
            let network = outside.entry((plane.as_str(), uplink.network.as_str())).or_default();
            network.extend(vlans(uplink.pvid, &uplink.vids));
        }
    }
    outside
}

/// Ways out of the host, before a change and after it.
pub(super) struct Ways<'a> {
    between: &'a Between<'a>,
    /// Nothing where no uplink is changed.
    outside: Option<[Outside<'a>; 2]>,
}

impl<'a> Ways<'a> {
    pub(super) fn between(between: &'a Between<'a>) -> Ways<'a> {
        let Between { now, next, .. } = between;
        let uplinks = |wanted: Option<&'a Wanted>| wanted.map(|wanted| &wanted.uplinks);
        let differ = now.iter().any(|(plane, wanted)| {
            uplinks(next.get(plane)).is_none_or(|next| *next != wanted.uplinks)
        });
        Ways { between, outside: differ.then(|| [outside(now), outside(next)]) }
    }

    /// The VLANs in which an adapter gets out.
    fn of(
        outside: &Outside<'_>,
        all: &BTreeMap<String, Wanted>,
        spec: &AdapterSpec,
    ) -> BTreeSet<u16> {
        let home = all.iter().find(|(_, wanted)| wanted.adapters.contains_key(&spec.name));
        let Some((home, card)) = home.map(|(home, _)| home).zip(card(spec)) else {
            return BTreeSet::new();
        };
        let own = vlans(card.pvid, &card.vids);
        let out = outside.get(&(home.as_str(), card.network.as_str()));
        out.map(|out| own.intersection(out).copied().collect()).unwrap_or_default()
    }

    /// What a change of uplinks, trunk adapters and shared adapters takes from a client.
    pub(super) fn lost(&self, before: &AdapterSpec) -> Option<String> {
        let [then, left] = self.outside.as_ref()?;
        let Between { now, next, .. } = self.between;
        let mut gone = Ways::of(then, now, before);
        let own = of(next, &before.name).into_iter();
        for kept in own.chain(self.between.others(&before.name)) {
            let kept = Ways::of(left, next, kept);
            gone.retain(|vlan| !kept.contains(vlan));
        }
        (!gone.is_empty()).then(|| format!("its way out of the host in {}", listed(&gone)))
    }
}
