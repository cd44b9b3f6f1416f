//! Uplinks: what connects a network to the world outside.

use serde::{Deserialize, Serialize};

/// An uplink: a port of a network, behind which is an interface of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UplinkSpec {
    /// Its name.
    pub name: String,
    /// The virtual switch that it is connected to.
    pub network: String,
    /// The TAP interface.
    pub interface: String,
    /// Longest packet behind the Ethernet header, in bytes.
    pub mtu: u16,
    /// VLAN of its frames without a tag.
    pub pvid: u16,
    /// VLANs of its frames with a tag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vids: Vec<u16>,
}

impl UplinkSpec {
    /// An uplink of a network, by an interface of its name, with what nobody set.
    #[must_use]
    pub fn on(network: &str, name: &str) -> UplinkSpec {
        let (name, network) = (name.to_owned(), network.to_owned());
        UplinkSpec { interface: name.clone(), name, network, mtu: 1500, pvid: 1, vids: Vec::new() }
    }
}
