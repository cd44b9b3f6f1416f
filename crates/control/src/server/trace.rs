//! Frames of a network that somebody watches.

use super::shared::Server;
use crate::error::{ApiError, Code};
use crate::model::resolve::network::mac;
use fabric::attribute::{Object, attr};
use protocol::message::{Failure, FailureCode, TraceReport, TraceSpec};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is watched. All that is set must fit.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TraceQuery {
    /// A number that nobody else has. One watches a network at a time, and goes on by it; it ends when nobody asks for ten seconds.
    pub id: u64,
    /// Frames from or to this address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Frames that came by this adapter, uplink or shared adapter, or go there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Frames of this VLAN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Lost frames alone.
    pub lost: bool,
    /// It is the last time.
    pub stop: bool,
}

/// What became of a frame at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TraceEvent {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The same in all that is told of one frame; 0 where that is not known.
    pub frame: u64,
    /// The adapter or uplink that it came by.
    pub from: String,
    /// Where it was to go; nothing of a frame that came in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Its VLAN, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Its length.
    pub bytes: u64,
    /// `sent`, `waits`, `delivered` or `lost`.
    pub decision: String,
    /// Of one that is sent: to how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<u32>,
    /// Why it is lost: the counter is `drop_` and this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its first bytes as it came, in hexadecimal digits.
    pub head: String,
}

/// What has happened since it was asked for last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TraceView {
    /// Oldest first; not all that there is, if there is much.
    pub events: Vec<TraceEvent>,
    /// Events that found no room since then.
    pub missed: u64,
}

impl From<TraceReport> for TraceView {
    fn from(TraceReport { records, missed }: TraceReport) -> TraceView {
        let events = records.into_iter().map(|one| TraceEvent {
            copies: (one.decision == "sent").then_some(one.copies),
            at_ns: one.at_ns,
            frame: one.frame,
            from: one.from,
            to: one.to,
            vlan: one.vlan,
            bytes: one.bytes,
            decision: one.decision,
            reason: one.reason,
            head: one.head,
        });
        TraceView { events: events.collect(), missed }
    }
}

/// What a data plane says that does not do what somebody asked for.
pub(super) fn refusal(failure: Failure) -> ApiError {
    let code = match failure.code {
        FailureCode::NotFound => Code::NotFound,
        FailureCode::InUse => Code::InUse,
        FailureCode::Invalid => Code::Invalid,
        _ => Code::Failed,
    };
    let refusal = ApiError::new(code, failure.message);
    failure.help.into_iter().fold(refusal, ApiError::help)
}

impl Server {
    /// Begins to watch frames of a network, or goes on.
    pub async fn trace(&self, name: &str, query: TraceQuery) -> Result<TraceView, ApiError> {
        let desired = self.desired();
        let network = desired[Object::Network]
            .get(name)
            .ok_or_else(|| self.not_found(Object::Network, name))?;
        let address = query.mac.as_deref().map(|text| {
            let wrong = || ApiError::invalid(format!("`{text}` is no MAC address"));
            mac(text).ok_or_else(|| wrong().help("write it as 02:00:00:00:00:01"))
        });
        if query.vlan.is_some_and(|vlan| !(1..=4094).contains(&vlan)) {
            return Err(ApiError::invalid("a VLAN has a number from 1 to 4094"));
        }
        // A shared adapter's frames pass its uplink.
        let port = query.port.map(|port| {
            let sea = desired[Object::Sea].get(&port);
            let uplink = sea.and_then(|sea| attr::sea::REAL_ADAPTER.of(sea));
            uplink.map_or(port.clone(), str::to_owned)
        });
        let spec = TraceSpec {
            network: name.to_owned(),
            id: query.id,
            mac: address.transpose()?,
            port,
            vlan: query.vlan,
            lost: query.lost,
            stop: query.stop,
        };
        let home = attr::network::DATAPLANE.value(network);
        let supervisors = self.supervisors();
        let supervisor =
            supervisors.get(home).ok_or_else(|| self.not_found(Object::DataPlane, home))?;
        supervisor.trace(spec).await?.map(TraceView::from).map_err(refusal)
    }
}
