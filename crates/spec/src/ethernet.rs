//! Network cards, and what is asked of their clients.

use core::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::is_default;

/// A network card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EthernetSpec {
    /// The virtual switch that it is connected to, by name: adapters of one data plane with the same reach each other.
    pub network: String,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Whether the client may send from other MAC addresses.
    pub any_mac: bool,
    /// Longest packet behind the Ethernet header, in bytes.
    pub mtu: u16,
    /// VLAN of its frames without a tag.
    pub pvid: u16,
    /// VLANs of its frames with a tag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vids: Vec<u16>,
    /// Whether checksums and segmentation of frames for it may be left to the client, as far as it has negotiated that.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub guest_offloads: bool,
    /// What the client may say of itself, beside its MAC address.
    #[serde(default, skip_serializing_if = "is_default")]
    pub guard: GuardSpec,
    /// How much it may send.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limit_tx: RateSpec,
    /// How much it gets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limit_rx: RateSpec,
    /// How much it may send to many.
    #[serde(default, skip_serializing_if = "is_default")]
    pub storm: StormSpec,
    /// It exchanges frames with others that are not private, and with uplinks.
    #[serde(default, skip_serializing_if = "is_default")]
    pub private: bool,
    /// The card of its network, by name, that gets a copy of all that it sends and gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<String>,
    /// It gets copies of others' frames, and has no other part in its network.
    #[serde(default, skip_serializing_if = "is_default")]
    pub monitor: bool,
    /// Which tags say the VLAN of its frames.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tagging: Tagging,
}

fn yes() -> bool {
    true
}

impl EthernetSpec {
    /// A card of a network, with what nobody set.
    #[must_use]
    pub fn on(network: &str, mac: [u8; 6]) -> EthernetSpec {
        EthernetSpec {
            network: network.to_owned(),
            mac,
            any_mac: true,
            mtu: 1500,
            pvid: 1,
            vids: Vec::new(),
            guest_offloads: true,
            guard: GuardSpec::default(),
            limit_tx: RateSpec::default(),
            limit_rx: RateSpec::default(),
            storm: StormSpec::default(),
            private: false,
            mirror: None,
            monitor: false,
            tagging: Tagging::Dot1q,
        }
    }

    /// Whether it asks for no more than the first data planes knew that had network cards. These would pass over the rest, and let through what it keeps away.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let EthernetSpec { network, mac, any_mac, mtu, pvid, vids, guest_offloads, .. } =
            self.clone();
        let plain = EthernetSpec::on(&network, mac);
        *self == EthernetSpec { any_mac, mtu, pvid, vids, guest_offloads, ..plain }
    }
}

/// What a client may say of itself. The default is everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardSpec {
    /// The IP addresses that it may use; none: any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<PrefixSpec>,
    /// Whether it may answer as a DHCP server.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub dhcp_server: bool,
    /// Whether it may advertise itself as a router, and ask for group memberships.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub router: bool,
}

impl Default for GuardSpec {
    fn default() -> GuardSpec {
        GuardSpec { addresses: Vec::new(), dhcp_server: true, router: true }
    }
}

/// Which tags of a port's frames say their VLAN. A frame without one is the `pvid`'s, whatever else it carries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tagging {
    /// Those of 802.1Q, customers' tags.
    #[default]
    Dot1q,
    /// Those of 802.1ad, service tags; customers' pass behind them.
    Dot1ad,
    /// None: all is the `pvid`'s, and passes with the tags that it has.
    Tunnel,
}

/// Most frames and bytes in a second, in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RateSpec {
    /// Frames; 0: any number.
    pub frames_per_s: u64,
    /// So many at once after a pause.
    pub frames_burst: u64,
    /// Bytes from the destination address to the end of the payload; 0: any number.
    pub bytes_per_s: u64,
    /// So many at once after a pause.
    pub bytes_burst: u64,
}

/// Most frames in a second that go to many, by why they do; 0: any number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StormSpec {
    /// Broadcasts.
    pub broadcast: u64,
    /// To other groups.
    pub multicast: u64,
    /// To stations that nobody has seen.
    pub unknown: u64,
}

/// IP addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PrefixSpec {
    /// One of them.
    pub address: IpAddr,
    /// How many bits: 32 or 128 for one address.
    pub bits: u8,
}

impl PrefixSpec {
    /// Whether all of another one's addresses are among these.
    #[must_use]
    pub fn covers(&self, other: &PrefixSpec) -> bool {
        let same = match (self.address, other.address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                (ours.to_bits() ^ theirs.to_bits()).leading_zeros()
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                (ours.to_bits() ^ theirs.to_bits()).leading_zeros()
            }
            _ => return false,
        };
        self.bits <= other.bits && same >= u32::from(self.bits)
    }
}
