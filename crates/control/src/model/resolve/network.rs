//! Virtual Ethernet adapters: MAC addresses and VLANs as they are written, and what a data plane gets.

use super::super::{Desired, home, seas};
use super::narrow16;
use super::parts::burst;
use fabric::attribute::words::{self, Aggregation, UplinkKind as Kind};
use fabric::attribute::{Attributes, Object, attr};
use fabric::sea::HaMode;
use spec::{
    AggregateMode, AggregateSpec, EthernetSpec, Failback, FailoverMode, FailoverSpec, GuardSpec,
    MemberSpec, PrefixSpec, RateSpec, StormSpec, Tagging, UplinkKind, UplinkSpec,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

/// A MAC address, as `02:00:5e:00:00:01`; of a station, not of a group.
pub fn mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let is_byte = |part: &&str| part.len() == 2 && part.bytes().all(|c| c.is_ascii_hexdigit());
        let part = parts.next().filter(is_byte)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    let is_station = mac[0] & 1 == 0 && mac != [0; 6];
    (parts.next().is_none() && is_station).then_some(mac)
}

/// As it is written.
pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// VLANs, as `10,20-29`; in order, each once.
pub fn vlans(text: &str) -> Option<Vec<u16>> {
    let mut vlans = Vec::new();
    for part in text.split(',').map(str::trim).filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse().ok().filter(|vid| (1..=4094).contains(vid));
        let (first, last): (u16, u16) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        vlans.extend(first..=last);
    }
    vlans.sort_unstable();
    vlans.dedup();
    Some(vlans)
}

/// IP addresses and networks, as `10.0.0.5,fd00::/64`; in order, each once.
///
/// # Errors
///
/// What is wrong with one of them.
pub fn addresses(text: &str) -> Result<Vec<PrefixSpec>, String> {
    let parts = text.split(',').map(str::trim).filter(|_| !text.is_empty());
    let mut all = parts.map(prefix).collect::<Result<Vec<PrefixSpec>, String>>()?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn prefix(text: &str) -> Result<PrefixSpec, String> {
    let (address, bits) = text.split_once('/').unwrap_or((text, ""));
    let address: IpAddr =
        address.parse().map_err(|_| format!("`{text}` is no IP address and no network"))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let is_number = text.contains('/');
    let bits: u8 = match bits.parse() {
        Ok(bits) if bits <= most => bits,
        _ if is_number => {
            return Err(format!("`{text}` is no network: it has 0 to {most} bits behind the `/`"));
        }
        _ => most,
    };
    if address.is_multicast() {
        return Err(format!("`{text}` is a group, which nobody has for an address"));
    }
    // Who writes an interface's address with its mask may mean the one or the other.
    let rest = match address {
        IpAddr::V4(v4) => v4.to_bits().checked_shl(bits.into()).unwrap_or(0) != 0,
        IpAddr::V6(v6) => v6.to_bits().checked_shl(bits.into()).unwrap_or(0) != 0,
    };
    if rest {
        return Err(format!(
            "`{text}` may be the one address or the network: leave `/{bits}` out, or let the rest of it be 0"
        ));
    }
    Ok(PrefixSpec { address, bits })
}

/// Each is what passes in a second, and the burst if one is set.
fn rate(frames: (u64, Option<u64>), bytes: (u64, Option<u64>)) -> RateSpec {
    RateSpec {
        frames_per_s: frames.0,
        frames_burst: burst(frames.1, frames.0),
        bytes_per_s: bytes.0,
        bytes_burst: burst(bytes.1, bytes.0),
    }
}

/// What a client sees of its network.
pub(super) fn card(desired: &Desired, set: &Attributes) -> EthernetSpec {
    use attr::adapter as a;
    let name = a::NETWORK.of(set).unwrap_or_default();
    let network = desired[Object::Network].get(name).cloned().unwrap_or_default();
    // What cannot be read was refused before.
    let mac = a::MAC.of(set).and_then(mac).unwrap_or([2, 0, 0, 0, 0, 0]);
    EthernetSpec {
        any_mac: a::ANY_MAC.value(set),
        guest_offloads: a::GUEST_OFFLOADS.value(set),
        mtu: narrow16(attr::network::MTU.value(&network)),
        pvid: narrow16(a::PVID.value(set)),
        vids: vlans(a::VLANS.value(set)).unwrap_or_default(),
        guard: GuardSpec {
            addresses: addresses(a::ADDRESSES.value(set)).unwrap_or_default(),
            dhcp_server: a::DHCP_SERVER.value(set),
            router: a::ROUTER.value(set),
        },
        limit_tx: rate(
            (a::LIMIT_TX_FRAMES_PER_S.value(set), a::LIMIT_TX_FRAMES_BURST.of(set)),
            (a::LIMIT_TX_BYTES_PER_S.value(set), a::LIMIT_TX_BYTES_BURST.of(set)),
        ),
        limit_rx: rate(
            (a::LIMIT_RX_FRAMES_PER_S.value(set), a::LIMIT_RX_FRAMES_BURST.of(set)),
            (a::LIMIT_RX_BYTES_PER_S.value(set), a::LIMIT_RX_BYTES_BURST.of(set)),
        ),
        storm: StormSpec {
            broadcast: a::STORM_BROADCAST.value(set),
            multicast: a::STORM_MULTICAST.value(set),
            unknown: a::STORM_UNKNOWN.value(set),
        },
        private: a::PRIVATE.value(set),
        mirror: a::MIRROR.of(set).map(str::to_owned),
        monitor: a::MONITOR.value(set),
        tagging: tagging(a::TAGGING.value(set)),
        ..EthernetSpec::on(name, mac)
    }
}

fn tagging(word: words::Tagging) -> Tagging {
    match word {
        words::Tagging::Dot1q => Tagging::Dot1q,
        words::Tagging::Dot1ad => Tagging::Dot1ad,
        words::Tagging::Tunnel => Tagging::Tunnel,
    }
}

/// The uplinks of a data plane: those of its networks.
pub fn uplinks(desired: &Desired, dataplane: &str) -> BTreeMap<String, UplinkSpec> {
    let spec = |(name, set): (&String, &Attributes)| {
        let Connection { network: whose, pvid, vids } = connection(desired, name, set)?;
        let network = desired[Object::Network].get(whose)?;
        let aggregate = aggregate(desired, set);
        let first = aggregate.as_ref().and_then(|aggregate| aggregate.members.first().cloned());
        let link = if first.is_some() { "" } else { interface(name, set) };
        let failover = failover(desired, name, link);
        let MemberSpec { kind, interface, netns, .. } = first.unwrap_or_else(|| member(name, set));
        let spec = UplinkSpec {
            failover,
            kind,
            interface,
            netns,
            aggregate,
            mtu: narrow16(attr::network::MTU.value(network)),
            pvid,
            vids,
            tagging: tagging(attr::uplink::TAGGING.value(set)),
            mirror: attr::uplink::MIRROR.of(set).map(str::to_owned),
            storm: StormSpec {
                broadcast: attr::uplink::STORM_BROADCAST.value(set),
                multicast: attr::uplink::STORM_MULTICAST.value(set),
                unknown: attr::uplink::STORM_UNKNOWN.value(set),
            },
            thread: sea_of(desired, name).is_some_and(|(_, sea)| attr::sea::THREAD.value(sea) == 1),
            accounting: sea_of(desired, name).is_some_and(|(_, sea)| is_counted(sea)),
            ..UplinkSpec::on(whose, name)
        };
        (home(network) == dataplane).then(|| (name.clone(), spec))
    };
    desired[Object::Uplink].iter().filter_map(spec).collect()
}

/// The VLANs that a trunk adapter brings to its shared adapter: those with a tag, and of the `pvid_adapter` that of frames without one.
pub fn vlans_by(sea: &Attributes, name: &str, trunk: &Attributes) -> impl Iterator<Item = u16> {
    let is_default = attr::sea::PVID_ADAPTER.of(sea) == Some(name);
    let untagged = attr::sea::PVID.of(sea).filter(|_| is_default);
    let tagged = vlans(attr::trunk::VLANS.value(trunk)).unwrap_or_default();
    tagged.into_iter().chain(untagged.map(narrow16))
}

/// Whether what passes a shared adapter is counted by client.
pub fn is_counted(sea: &Attributes) -> bool {
    attr::sea::ACCOUNTING.value(sea) == words::Accounting::Enabled
}

/// The interface of an uplink.
fn member(name: &str, set: &Attributes) -> MemberSpec {
    MemberSpec {
        name: name.to_owned(),
        kind: match attr::uplink::KIND.value(set) {
            Kind::Tap => UplinkKind::Tap,
            Kind::Packet => UplinkKind::Packet,
            Kind::Xdp => UplinkKind::Xdp,
        },
        interface: interface(name, set).to_owned(),
        netns: netns(set),
    }
}

/// What an uplink is made of that has members.
fn aggregate(desired: &Desired, set: &Attributes) -> Option<AggregateSpec> {
    let its =
        members(set).filter_map(|name| Some(member(name, desired[Object::Uplink].get(name)?)));
    let members: Vec<MemberSpec> = its.collect();
    let mode = match attr::uplink::MODE.value(set) {
        Aggregation::ActiveBackup => AggregateMode::ActiveBackup,
        Aggregation::Hash => AggregateMode::Hash,
    };
    (!members.is_empty()).then_some(AggregateSpec { mode, members })
}

/// How the shared adapter of an uplink takes part in failover, whose link is that interface unless it names one.
fn failover(desired: &Desired, uplink: &str, interface: &str) -> Option<FailoverSpec> {
    use attr::sea as s;
    let (sea, set) = sea_of(desired, uplink)?;
    let control = PathBuf::from(seas::control_of(set)?);
    let mode = match s::HA_MODE.value(set) {
        HaMode::Disabled => FailoverMode::Disabled,
        HaMode::Auto => FailoverMode::Auto,
        HaMode::Standby => FailoverMode::Standby,
        HaMode::Sharing => FailoverMode::Sharing,
    };
    let odd = trunks(desired, set).skip(1).step_by(2);
    let leaves = odd.flat_map(|(name, trunk)| vlans_by(set, name, trunk));
    Some(FailoverSpec {
        sea: sea.to_owned(),
        mode,
        priority: u8::try_from(s::PRIORITY.value(set)).unwrap_or(u8::MAX),
        control,
        link: s::LINK.of(set).unwrap_or(interface).to_owned(),
        leaves: leaves.collect(),
        netaddr: netaddr(s::NETADDR.of(set).unwrap_or("0")).unwrap_or_default(),
        failback: match (s::NOAUTO_FAILBACK.value(set), s::FB_DELAY.value(set)) {
            (true, _) => Failback::Never,
            (false, 0) => Failback::AtOnce,
            (false, seconds) => Failback::After(u16::try_from(seconds).unwrap_or(u16::MAX)),
        },
    })
}

/// An address that is asked for: 0 is none.
///
/// # Errors
///
/// What is wrong with it.
pub fn netaddr(text: &str) -> Result<Option<Ipv4Addr>, &'static str> {
    if text == "0" {
        return Ok(None);
    }
    let address: Ipv4Addr = text.parse().map_err(|_| "is no IPv4 address")?;
    let of_a_host = !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !address.is_broadcast();
    if of_a_host { Ok(Some(address)) } else { Err("is not the address of a host") }
}

/// The shared adapter that has an uplink.
pub fn sea_of<'a>(desired: &'a Desired, uplink: &str) -> Option<(&'a str, &'a Attributes)> {
    let has_it = |sea: &Attributes| attr::sea::REAL_ADAPTER.of(sea) == Some(uplink);
    let mut seas = desired[Object::Sea].iter();
    seas.find(|(_, sea)| has_it(sea)).map(|(name, sea)| (name.as_str(), sea))
}

/// The uplinks that an aggregated one is made of.
pub fn members(set: &Attributes) -> impl Iterator<Item = &str> {
    fabric::san::words(attr::uplink::MEMBERS.of(set).unwrap_or_default())
}

/// The aggregated uplink that has a member.
pub fn aggregate_of<'a>(desired: &'a Desired, member: &str) -> Option<&'a str> {
    let has_it = |set: &Attributes| members(set).any(|name| name == member);
    let mut uplinks = desired[Object::Uplink].iter();
    uplinks.find(|(_, set)| has_it(set)).map(|(name, _)| name.as_str())
}

/// How an uplink is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection<'a> {
    /// To this network.
    pub network: &'a str,
    /// VLAN of frames without a tag.
    pub pvid: u16,
    /// VLANs of frames with a tag.
    pub vids: Vec<u16>,
}

/// The connection of an uplink: its own, or that of the shared Ethernet adapter that has it. None: it connects nothing.
pub fn connection<'a>(
    desired: &'a Desired,
    name: &str,
    set: &'a Attributes,
) -> Option<Connection<'a>> {
    if let Some(network) = attr::uplink::NETWORK.of(set) {
        let vids = vlans(attr::uplink::VLANS.value(set)).unwrap_or_default();
        return Some(Connection { network, pvid: narrow16(attr::uplink::PVID.value(set)), vids });
    }
    let (_, sea) = sea_of(desired, name)?;
    let (_, first) = trunks(desired, sea).next()?;
    let vids = trunks(desired, sea).filter_map(|(_, set)| vlans(attr::trunk::VLANS.value(set)));
    let mut vids: Vec<u16> = vids.flatten().collect();
    vids.sort_unstable();
    vids.dedup();
    let pvid = narrow16(attr::sea::PVID.of(sea)?);
    Some(Connection { network: attr::trunk::NETWORK.of(first)?, pvid, vids })
}

/// The trunk adapters of a shared one that are there.
pub fn trunks<'a>(
    desired: &'a Desired,
    sea: &'a Attributes,
) -> impl Iterator<Item = (&'a str, &'a Attributes)> {
    let names = fabric::san::words(attr::sea::VIRT_ADAPTERS.of(sea).unwrap_or_default());
    names.filter_map(|name| Some((name, desired[Object::Trunk].get(name)?)))
}

/// The file of the network namespace of an uplink's interface.
pub fn netns(set: &Attributes) -> Option<PathBuf> {
    // Of a whole path nothing is left of the folder.
    attr::uplink::NETNS.of(set).map(|named| Path::new("/run/netns").join(named))
}

/// The interface of an uplink.
pub fn interface<'a>(name: &'a str, set: &'a Attributes) -> &'a str {
    attr::uplink::INTERFACE.of(set).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macs_and_vlans_are_read_as_they_are_written() {
        assert_eq!(mac("02:00:5e:0A:00:ff"), Some([2, 0, 0x5e, 10, 0, 255]));
        assert_eq!(mac_text([2, 0, 0x5e, 10, 0, 255]), "02:00:5e:0a:00:ff");
        for bad in [
            "",
            "02:00:5e:0a:00",
            "02:00:5e:0a:00:ff:01",
            "2:0:0:0:0:1",
            "01:00:5e:00:00:01",
            "00:00:00:00:00:00",
            "02-00-5e-00-00-01",
            "+2:00:00:00:00:01",
        ] {
            assert_eq!(mac(bad), None, "{bad}");
        }
        assert_eq!(vlans(""), Some(vec![]));
        assert_eq!(vlans("20-22, 10,21"), Some(vec![10, 20, 21, 22]));
        for bad in ["0", "4095", "5-3", "a", "1,", "1-2-3"] {
            assert_eq!(vlans(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_shared_is_all_that_every_second_trunk_adapter_has() {
        let leaves = |pvid_adapter: &str, pvid: u16| {
            let text = format!(
                "[network.n]\n[uplink.u]\n[trunk.a]\nnetwork=\"n\"\npvid=1\nvlans=\"10-11\"\n\
                 [trunk.b]\nnetwork=\"n\"\npvid=2\nvlans=\"20\"\n[trunk.c]\nnetwork=\"n\"\npvid=3\nvlans=\"30\"\n\
                 [sea.s]\nreal_adapter=\"u\"\nvirt_adapters=\"a,b,c\"\npvid_adapter=\"{pvid_adapter}\"\npvid={pvid}\n\
                 ha_mode=\"sharing\"\nctl_chan=\"/run/c\"\n"
            );
            let desired = crate::config::read(&text).unwrap();
            let uplink = uplinks(&desired, "main").remove("u").unwrap();
            assert_eq!((uplink.pvid, &uplink.vids[..]), (pvid, &[10, 11, 20, 30][..]));
            uplink.failover.unwrap().leaves
        };
        assert_eq!(leaves("a", 1), [20]);
        assert_eq!(leaves("b", 2), [20, 2]);
        assert_eq!(leaves("c", 3), [20]);
    }

    #[test]
    fn addresses_are_read_as_they_are_written() {
        let read = |text| {
            addresses(text)
                .map(|all| all.iter().map(|it| format!("{}/{}", it.address, it.bits)).collect())
        };
        assert_eq!(read(""), Ok(Vec::new()));
        let some = read("fd00::5, 10.1.0.0/16,10.0.0.5,10.0.0.5, 0.0.0.0/0,::/0").unwrap();
        assert_eq!(some, ["0.0.0.0/0", "10.0.0.5/32", "10.1.0.0/16", "::/0", "fd00::5/128"]);
        for (bad, why) in [
            ("10.0.0", "is no IP address"),
            ("10.0.0.5,", "is no IP address"),
            ("10.0.0.0/33", "it has 0 to 32 bits"),
            ("10.0.0.0/", "it has 0 to 32 bits"),
            ("10.0.0.0/x", "it has 0 to 32 bits"),
            ("fd00::/129", "it has 0 to 128 bits"),
            ("10.0.0.5/24", "may be the one address or the network"),
            ("10.0.0.5/0", "may be the one address or the network"),
            ("fd00::1/127", "may be the one address or the network"),
            ("224.0.0.0/4", "is a group"),
            ("ff02::1", "is a group"),
        ] {
            let refused = read(bad).unwrap_err();
            assert!(refused.contains(why), "{bad}: {refused}");
        }
    }
}
