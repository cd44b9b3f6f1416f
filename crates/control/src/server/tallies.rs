//! What has passed shared Ethernet adapters, by client and by trunk adapter.

use super::shared::Server;
use super::trace::refusal;
use crate::caller;
use crate::error::ApiError;
use crate::model::resolve::network::{is_counted, mac_text, trunks, vlans_by};
use crate::model::{MAIN, home};
use fabric::attribute::{Attributes, Object, attr};
use protocol::message::{Passed, Tally, TallySpec};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use utoipa::ToSchema;

/// What has passed a shared adapter since its `accounting` was enabled, or it was cleared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeaClientsView {
    /// By VLAN, and then by MAC address.
    pub clients: Vec<SeaClientView>,
    /// In the order of `virt_adapters`; with what is sent to groups, and what came for stations that nobody has seen.
    pub trunks: Vec<SeaTrunkView>,
}

/// A station behind a shared adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeaClientView {
    /// Its MAC address.
    pub mac: String,
    /// Its VLAN.
    pub vlan: u16,
    /// Its frames have no tag in the world outside.
    pub untagged: bool,
    /// The priority of its last frame with a tag.
    pub priority: u8,
    /// An IP address that it said to be its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
    /// What it sent to the world outside, and got from there.
    #[serde(flatten)]
    pub passed: PassedView,
}

/// A trunk adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeaTrunkView {
    /// Its name.
    pub trunk: String,
    /// What its VLANs sent to the world outside, and got from there.
    #[serde(flatten)]
    pub passed: PassedView,
}

/// Frames and their bytes; one that is cut into segments on its way counts as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PassedView {
    /// To the world outside.
    pub sent_frames: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// From the world outside.
    pub received_frames: u64,
    /// Bytes of them.
    pub received_bytes: u64,
}

impl PassedView {
    fn of(sent: Passed, received: Passed) -> PassedView {
        PassedView {
            sent_frames: sent.frames,
            sent_bytes: sent.bytes,
            received_frames: received.frames,
            received_bytes: received.bytes,
        }
    }
}

impl Server {
    /// What has passed a shared adapter; with `clear` it is forgotten after that.
    pub async fn sea_clients(&self, name: &str, clear: bool) -> Result<SeaClientsView, ApiError> {
        let desired = self.desired();
        let sea =
            desired[Object::Sea].get(name).ok_or_else(|| self.not_found(Object::Sea, name))?;
        if !is_counted(sea) {
            let problem = format!("sea `{name}`: nothing is counted by client");
            let help =
                format!("`trunkline sea set {name} --accounting enabled` counts from now on");
            return Err(ApiError::invalid(problem).on(attr::sea::ACCOUNTING.name).help(help));
        }
        let trunks: Vec<_> = trunks(&desired, sea).collect();
        let network = trunks.first().and_then(|(_, set)| attr::trunk::NETWORK.of(set));
        let network = network.and_then(|network| desired[Object::Network].get(network));
        let home = network.map_or(MAIN, home);
        let supervisors = self.supervisors();
        let supervisor =
            supervisors.get(home).ok_or_else(|| self.not_found(Object::DataPlane, home))?;
        let uplink = attr::sea::REAL_ADAPTER.of(sea).unwrap_or_default().to_owned();
        let asked = supervisor.tallies(TallySpec { uplink, clear }).await;
        let report = asked.and_then(|report| report.map_err(refusal));
        if clear {
            let result = if report.is_ok() { "done" } else { "failed" };
            let what = format!("clear what was counted by client of sea {name}");
            self.trail.changed(caller::present(), result, vec![name.to_owned()], what);
        }
        let report = report?;
        let pvid = attr::sea::PVID.of(sea).unwrap_or_default();
        let client = |one: &Tally| {
            Some(SeaClientView {
                mac: mac_text(one.station?),
                vlan: one.vlan,
                untagged: u64::from(one.vlan) == pvid,
                priority: one.priority,
                ip: one.address.as_ref().map(IpAddr::to_string),
                passed: PassedView::of(one.sent, one.received),
            })
        };
        let trunk = |(name, set): &(&str, &Attributes)| {
            let vlans: Vec<u16> = vlans_by(sea, name, set).collect();
            let (mut sent, mut received) = (Passed::default(), Passed::default());
            let whole = report.tallies.iter().filter(|one| one.station.is_none());
            for one in whole.filter(|one| vlans.contains(&one.vlan)) {
                sent += one.sent;
                received += one.received;
            }
            SeaTrunkView { trunk: (*name).to_owned(), passed: PassedView::of(sent, received) }
        };
        Ok(SeaClientsView {
            clients: report.tallies.iter().filter_map(client).collect(),
            trunks: trunks.iter().map(trunk).collect(),
        })
    }
}
