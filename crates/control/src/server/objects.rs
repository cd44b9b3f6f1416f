//! What the API shows of objects that exist in the control plane only.

use super::Server;
use super::links::LinkView;
use super::pools::PoolView;
use super::snapshots::SnapshotView;
use crate::model::resolve::network::sea_of;
use crate::model::san::max_adapters;
use crate::model::seas::{self, Now};
use crate::model::{Desired, Users, allocations};
use crate::trail::Links;
use fabric::attribute::{Attributes, Object, Value, attr};
use fabric::san::Wwpn;
use fabric::sea::{BridgeMode, Finding, State};
use protocol::message::{MemberState, MemberStatus, UplinkStatus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// An object that needs no view of its own.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ObjectView {
    /// Its name.
    pub name: String,
    /// The objects that name it, such as the adapters that are mapped to a port: noun and name.
    pub used_by: Vec<String>,
    /// The name of a port, made of the prefix of its data plane and its own name: it logs in nowhere itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwpn: Option<String>,
    /// Of an uplink: `connected`, `failed`, `pending` while the data plane does not answer, or `unused` where it connects nothing; of a member of one, while that is connected, `active`, `backup` or `down`. Of a storage pool: `open`,
    /// `degraded` where a PV is away or has not got what it missed, `failed` or `pending`. Of a snapshot: `made` or `pending`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Why an uplink is not connected, or its members are down; what is wrong with a storage pool, or will be soon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The channel of each descriptor of an uplink.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<u32>,
    /// How frames pass between an uplink of the kind `xdp` and its interface, while it is connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
    /// The members of an aggregated uplink, while it is connected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberView>,
    /// Of a shared Ethernet adapter that has a control file, and of its uplink: what it is to its partner. Nothing while it is not connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failover: Option<FailoverView>,
    /// How a storage pool stands, when its data plane says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<PoolView>,
    /// What a snapshot has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotView>,
    /// The link of a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkView>,
    /// Attributes that were set.
    #[schema(value_type = Object)]
    pub attributes: Attributes,
    /// Attributes as they hold, defaults and inheritance included.
    #[schema(value_type = Object)]
    pub effective: Attributes,
    /// Where each effective value comes from: `set`, `default`, or the object that it is inherited from.
    pub sources: BTreeMap<String, String>,
}

/// A member of an aggregated uplink.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MemberView {
    /// Its name.
    pub name: String,
    /// `active`; `backup` while another one is; `down`.
    pub state: String,
    /// Why it is down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl MemberView {
    pub(super) fn of(status: &MemberStatus) -> MemberView {
        let state = match status.state {
            MemberState::Active => "active",
            MemberState::Backup => "backup",
            MemberState::Down => "down",
        };
        let MemberStatus { name, reason, .. } = status.clone();
        MemberView { name, state: state.to_owned(), reason }
    }

    /// What is to be said of those that are down.
    pub(super) fn trouble(members: &[MemberStatus]) -> Option<String> {
        let down = members.iter().filter(|member| member.state == MemberState::Down);
        let what = down.map(|MemberStatus { name, reason, .. }| {
            format!("{name} is down: {}", reason.as_deref().unwrap_or("it was not looked at yet"))
        });
        let what: Vec<String> = what.collect();
        (!what.is_empty()).then(|| what.join("; "))
    }
}

/// What a shared Ethernet adapter is to its partner.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FailoverView {
    /// The shared adapter.
    pub sea: String,
    /// `PRIMARY`, `BACKUP`, `STANDBY`, `PRIMARY_SH`, `BACKUP_SH` or `LIMBO`.
    pub state: String,
    /// Why.
    pub reason: String,
    /// How much of its VLANs it bridges: `All`, `Partial` or `None`.
    pub bridge_mode: String,
    /// The VLANs that it bridges.
    pub vlans: Vec<u16>,
    /// `ha_mode` and priority of the partner that is heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partner: Option<String>,
    /// Times that it began to bridge since its uplink was connected.
    pub takeovers: u64,
    /// Since when it is in this state, in milliseconds since 1970.
    pub since_ms: u64,
    /// Whether `netaddr` answers, if one is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<bool>,
}

impl FailoverView {
    /// As the rules on shared adapters see it.
    fn now(&self) -> Now {
        let state = match self.state.as_str() {
            "PRIMARY" => Some(State::Primary),
            "BACKUP" => Some(State::Backup),
            "STANDBY" => Some(State::Standby),
            "PRIMARY_SH" => Some(State::PrimarySharing),
            "BACKUP_SH" => Some(State::BackupSharing),
            _ => None,
        };
        let bridge_mode = match self.bridge_mode.as_str() {
            "All" => BridgeMode::All,
            "None" => BridgeMode::None,
            _ => BridgeMode::Partial,
        };
        Now { state, bridge_mode: Some(bridge_mode), down: None }
    }

    pub(super) fn of(status: &UplinkStatus) -> Option<FailoverView> {
        let now = status.failover.clone()?;
        let mut all: Vec<u16> =
            status.spec.vids.iter().chain([&status.spec.pvid]).copied().collect();
        all.sort_unstable();
        all.dedup();
        let bridge_mode = match now.bridges.len() {
            0 => "None",
            some if some == all.len() => "All",
            _ => "Partial",
        };
        Some(FailoverView {
            sea: status.spec.failover.as_ref()?.sea.clone(),
            state: now.state,
            reason: now.reason,
            bridge_mode: bridge_mode.to_owned(),
            vlans: now.bridges,
            partner: now.partner,
            takeovers: now.takeovers,
            since_ms: now.since_ms,
            answers: now.answers,
        })
    }
}

impl Server {
    /// Everything that is wrong with shared Ethernet adapters, as they are set and as they are now, worst first.
    pub async fn check_seas(&self) -> Vec<Finding> {
        let statuses = self.statuses().await;
        let uplinks = statuses.values().flat_map(|status| &status.uplinks);
        let desired = self.desired();
        let now = uplinks.filter_map(|uplink| {
            let (sea, _) = sea_of(&desired, &uplink.spec.name)?;
            let now = FailoverView::of(uplink).map(|view| view.now()).unwrap_or_default();
            Some((sea.to_owned(), Now { down: MemberView::trouble(&uplink.members), ..now }))
        });
        seas::findings(&desired, &now.collect())
    }
}

impl ObjectView {
    pub(super) fn of(
        desired: &Desired,
        (users, links): (&Users<'_>, &Links),
        object: Object,
        name: &str,
        set: &Attributes,
    ) -> ObjectView {
        let mut effective = desired.effective_all(object, set);
        if object == Object::Port {
            let limit = Value::Number(max_adapters(desired, name));
            effective.insert(attr::port::MAX_ADAPTERS.name.to_owned(), limit);
        }
        let users = users.of(object, name);
        let with_value = object.attributes().filter(|a| effective.contains_key(a.name));
        ObjectView {
            name: name.to_owned(),
            wwpn: (object == Object::Port)
                .then(|| Wwpn::of_port(allocations::of_system(desired), name).to_string()),
            state: None,
            reason: None,
            channels: Vec::new(),
            way: None,
            members: Vec::new(),
            failover: None,
            space: None,
            snapshot: None,
            link: LinkView::of(desired, links, (object, name, set)),
            used_by: users.iter().map(|(object, name)| format!("{object} {name}")).collect(),
            sources: with_value.map(|a| (a.name.to_owned(), desired.source(a, set))).collect(),
            effective,
            attributes: set.clone(),
        }
    }
}
