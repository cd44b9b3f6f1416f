//! Who has the command elements of a port, who waits for them, and who has more than its part.

use crate::error::ApiError;
use crate::model::{Desired, resolve};
use crate::server::shared::Server;
use crate::statistics::own;
use fabric::attribute::{Attributes, Object, attr};
use fabric::elements::CommandTerm;
use protocol::now_ms;
use protocol::stats::{QueueCounter, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The command elements of a port.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct PortExplanation {
    /// The port.
    pub port: String,
    /// How many it has.
    pub num_cmd_elems: u32,
    /// Commands of all its adapters that are active now.
    pub active: u64,
    /// Times that a command waited since there was none (No Adapter Elements), of all adapters that were ever on the port.
    pub no_adapter_elements: u64,
    /// Since when it is short of them for one of its adapters, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_since_ms: Option<u64>,
    /// While it is short: the adapter that has most beyond its part, if one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_up_by: Option<String>,
    /// What would have to change so that nobody waits for it.
    pub remedy: String,
    /// Its adapters by name.
    pub adapters: Vec<ElementsView>,
}

/// What an adapter has of its port.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ElementsView {
    /// The adapter.
    pub adapter: String,
    /// Its commands that are active: each has one element.
    pub active: u64,
    /// Its part, while all adapters of the port want all that they may have.
    pub part: u32,
    /// Most that it may have, by its own `num_cmd_elems`.
    pub num_cmd_elems: u32,
    /// Its commands that are held until they have one.
    pub pending: u64,
    /// Times that one of its commands waited for an element of this port.
    pub no_adapter_elements: u64,
    /// Since when it waits for one, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_since_ms: Option<u64>,
    /// Times that a command of another adapter found none while this one had most beyond its part.
    pub holds_up: u64,
}

impl ElementsView {
    /// How many it has beyond its part.
    pub fn beyond(&self) -> u64 {
        self.active.saturating_sub(self.part.into())
    }
}

/// A port as it is now. `None`: there is no such port.
pub(super) fn explain(
    desired: &Desired,
    name: &str,
    snapshots: &BTreeMap<String, Snapshot>,
) -> Option<PortExplanation> {
    let port = desired[Object::Port].get(name)?;
    let snapshot = snapshots.get(attr::port::DATAPLANE.value(port));
    let total = snapshot.and_then(|snapshot| snapshot.port(name));
    let view = |(adapter, set): (&String, &Attributes)| {
        let (_, budget, _) = resolve::granted(desired, set).filter(|(on, ..)| *on == name)?;
        let counted = total.as_ref().and_then(|total| {
            let mut parts = total.adapters.iter();
            parts.find(|part| part.here && part.counted.adapter == *adapter)
        });
        let count = |which| counted.map_or(0, |part| part.counted.get(which));
        let own = snapshot.and_then(|snapshot| own(snapshot, adapter));
        Some(ElementsView {
            adapter: adapter.clone(),
            active: count(QueueCounter::Active),
            part: budget.part(resolve::claim(set)),
            num_cmd_elems: resolve::narrow32(attr::adapter::NUM_CMD_ELEMS.value(set)),
            pending: count(QueueCounter::Pending),
            no_adapter_elements: count(QueueCounter::WaitNoElement),
            short_since_ms: own.and_then(|own| own.short_since_ms(now_ms())),
            holds_up: own.map_or(0, |own| own.holds_up),
        })
    };
    let adapters: Vec<ElementsView> = desired[Object::Adapter].iter().filter_map(view).collect();
    let short_since_ms = adapters.iter().filter_map(|adapter| adapter.short_since_ms).min();
    let greedy = adapters.iter().filter(|adapter| adapter.beyond() > 0);
    let greedy = greedy.max_by_key(|adapter| adapter.beyond());
    let greedy = greedy.filter(|_| short_since_ms.is_some());
    Some(PortExplanation {
        port: name.to_owned(),
        num_cmd_elems: resolve::narrow32(attr::port::NUM_CMD_ELEMS.value(port)),
        active: adapters.iter().map(|adapter| adapter.active).sum(),
        no_adapter_elements: total.map_or(0, |port| port.total.get(QueueCounter::WaitNoElement)),
        short_since_ms,
        held_up_by: greedy.map(|adapter| adapter.adapter.clone()),
        remedy: match greedy {
            Some(adapter) => format!(
                "{}; or lower the `share` or `num_cmd_elems` of `{}`",
                CommandTerm::Port.remedy(),
                adapter.adapter
            ),
            None => CommandTerm::PortShare.remedy().to_owned(),
        },
        adapters,
    })
}

impl Server {
    /// Explains one port.
    pub fn explain_port(&self, name: &str) -> Result<PortExplanation, ApiError> {
        explain(&self.desired(), name, &self.snapshots())
            .ok_or_else(|| self.not_found(Object::Port, name))
    }

    /// The port of an adapter, while it is short of elements for it.
    pub(super) fn shortage(&self, desired: &Desired, adapter: &str) -> Option<PortExplanation> {
        let port = attr::adapter::PORT.of(desired[Object::Adapter].get(adapter)?)?;
        let port = explain(desired, port, &self.snapshots())?;
        let own = port.adapters.iter().find(|one| one.adapter == adapter)?;
        own.short_since_ms.is_some().then_some(port)
    }
}
