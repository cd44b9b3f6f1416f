//! What was done on ports, by all adapters and by each.

use super::{Measures, measures, sum};
use protocol::stats::{PortTotal, Snapshot};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One port. Its counters only grow while its data plane runs, whichever adapters are on it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PortStatsView {
    /// Its name.
    pub port: String,
    /// Its data plane.
    pub dataplane: String,
    /// All adapters that were ever on it. Gauges are of those that are on it now. High-water marks of active, pending and waiting commands are of all of
    /// them at once.
    #[serde(flatten)]
    pub total: Measures,
    /// When that of active commands was reached, or when it began, in milliseconds since 1970. Absent: the data plane is of an earlier version, and
    /// the mark a sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_max_at_ms: Option<u64>,
    /// What each adapter did on it.
    pub adapters: Vec<PortPartView>,
}

/// What an adapter did on a port.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PortPartView {
    /// The adapter.
    pub adapter: String,
    /// Whether it is on the port now.
    pub here: bool,
    /// What was counted.
    #[serde(flatten)]
    pub measures: Measures,
}

impl PortStatsView {
    /// With the part of one adapter only, or of all; with whole histograms when `whole` is true.
    pub(super) fn of(
        port: &PortTotal,
        dataplane: &str,
        only: Option<&str>,
        whole: bool,
    ) -> PortStatsView {
        let wanted = |name: &str| only.is_none_or(|only| only == name);
        let parts = port.adapters.iter().filter(|part| wanted(&part.counted.adapter));
        let parts = parts.map(|part| PortPartView {
            adapter: part.counted.adapter.clone(),
            here: part.here,
            measures: measures(&sum([&part.counted]), whole),
        });
        PortStatsView {
            port: port.total.adapter.clone(),
            dataplane: dataplane.to_owned(),
            total: measures(&sum([&port.total]), whole),
            active_max_at_ms: port.active_max_at_ms,
            adapters: parts.collect(),
        }
    }
}

/// All ports on which adapters were.
pub(crate) fn totals(snapshot: &Snapshot) -> Vec<PortTotal> {
    snapshot.ports.iter().filter_map(|port| snapshot.port(&port.port)).collect()
}
