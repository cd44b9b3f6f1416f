//! The VLANs of networks: who is in each, and who bridges it now.

use super::shared::Server;
use super::views::AnyView;
use crate::model::Desired;
use crate::model::resolve::network::{connection, sea_of, trunks, vlans, vlans_by};
use fabric::attribute::words::{AdapterKind, Tagging};
use fabric::attribute::{Attributes, Object, attr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A VLAN of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VlanView {
    /// The network.
    pub network: String,
    /// The VLAN.
    pub vlan: u16,
    /// The virtual Ethernet adapters that are in it.
    pub ports: Vec<VlanPortView>,
    /// Its way to the world outside, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<VlanBridgeView>,
}

/// A virtual Ethernet adapter in a VLAN.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VlanPortView {
    /// Its name.
    pub adapter: String,
    /// Its client has the frames of the VLAN with a tag.
    pub tagged: bool,
}

/// A way from a VLAN to the world outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VlanBridgeView {
    /// The uplink.
    pub uplink: String,
    /// The shared Ethernet adapter that has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sea: Option<String>,
    /// The trunk adapter of that which has the VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trunk: Option<String>,
    /// The priority of the shared adapter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u64>,
    /// Frames of the VLAN have a tag in the world outside.
    pub tagged: bool,
    /// Whether it bridges the VLAN now: `bridges`, `standby` where a partner may; else what the uplink is, `failed` or `pending`.
    pub state: String,
    /// What the shared adapter is to its partner, as `PRIMARY`, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<String>,
}

type Vlans = BTreeMap<(String, u16), (Vec<VlanPortView>, Option<VlanBridgeView>)>;

fn add_ports(desired: &Desired, all: &mut Vlans) {
    use attr::adapter as a;
    for (name, set) in &desired[Object::Adapter] {
        let is_in = a::KIND.value(set) == AdapterKind::Ethernet && !a::MONITOR.value(set);
        let Some(network) = a::NETWORK.of(set).filter(|_| is_in) else { continue };
        let tags = a::TAGGING.value(set) != Tagging::Tunnel;
        let vids = vlans(a::VLANS.value(set)).unwrap_or_default();
        let pvid = u16::try_from(a::PVID.value(set)).unwrap_or_default();
        let tagged = vids.into_iter().filter(|vlan| tags && *vlan != pvid);
        for (vlan, tagged) in tagged.map(|vlan| (vlan, true)).chain([(pvid, false)]) {
            let (ports, _) = all.entry((network.to_owned(), vlan)).or_default();
            ports.push(VlanPortView { adapter: name.clone(), tagged });
        }
    }
}

/// The trunk adapter of a shared one that has a VLAN.
fn trunk_of<'a>(desired: &'a Desired, sea: &'a Attributes, vlan: u16) -> Option<&'a str> {
    let has_it =
        |(name, set): &(&str, &Attributes)| vlans_by(sea, name, set).any(|its| its == vlan);
    trunks(desired, sea).find(has_it).map(|(name, _)| name)
}

impl Server {
    /// All VLANs of all networks, in order.
    pub async fn vlans(&self) -> Vec<VlanView> {
        let uplinks = self.objects(Object::Uplink).await;
        let (desired, mut all) = (self.desired(), Vlans::new());
        add_ports(&desired, &mut all);
        let views = uplinks.into_iter().filter_map(|view| match view {
            AnyView::Object(view) => Some(view),
            _ => None,
        });
        for view in views {
            let Some(set) = desired[Object::Uplink].get(&view.name) else { continue };
            let Some(its) = connection(&desired, &view.name, set) else { continue };
            let sea = sea_of(&desired, &view.name);
            for vlan in its.vids.iter().copied().chain([its.pvid]) {
                let failover = view.failover.as_ref();
                let state = match view.state.as_deref() {
                    Some("connected") if failover.is_none_or(|it| it.vlans.contains(&vlan)) => {
                        "bridges"
                    }
                    Some("connected") => "standby",
                    other => other.unwrap_or_default(),
                };
                let bridge = VlanBridgeView {
                    uplink: view.name.clone(),
                    sea: sea.map(|(name, _)| name.to_owned()),
                    trunk: sea.and_then(|(_, set)| Some(trunk_of(&desired, set, vlan)?.to_owned())),
                    priority: sea.map(|(_, set)| attr::sea::PRIORITY.value(set)),
                    tagged: vlan != its.pvid,
                    state: state.to_owned(),
                    failover: failover.map(|it| it.state.clone()),
                };
                all.entry((its.network.to_owned(), vlan)).or_default().1 = Some(bridge);
            }
        }
        let view = |((network, vlan), (ports, bridge))| VlanView { network, vlan, ports, bridge };
        all.into_iter().map(view).collect()
    }
}
