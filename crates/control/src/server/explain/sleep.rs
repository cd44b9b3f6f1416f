//! What a sleep of a channel is held to cost, and why.

use crate::model::Desired;
use crate::server::shared::Server;
use fabric::attribute::attr;
use protocol::stats::{ChannelCounter, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// What a sleep of a channel is worth in time of looking for work, and the longest look.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SleepView {
    /// The channel.
    pub channel: u32,
    /// What its sleep is held to cost, in nanoseconds.
    pub sleep_price_ns: u64,
    /// How many timers have measured that.
    pub probes: u64,
    /// How often what they said has moved it.
    pub changes: u64,
    /// Where the price comes from.
    pub source: String,
}

/// With fewer timers a channel stays at what is assumed.
const ENOUGH: u64 = 7;

fn view(snapshot: &Snapshot, channel: u32, told: bool) -> Option<SleepView> {
    let counted = snapshot.channels.iter().find(|counted| counted.index == channel)?;
    let probes = counted.get(ChannelCounter::PriceProbes);
    let source = match probes {
        _ if told => "attribute `poll_us_max`".to_owned(),
        0..ENOUGH => "assumed: it has slept too seldom to measure it".to_owned(),
        _ => format!("measured by {probes} timers"),
    };
    let sleep_price_ns = counted.get(ChannelCounter::SleepPrice);
    let changes = counted.get(ChannelCounter::PriceChanges);
    // A data plane of an earlier program does not say.
    let says = sleep_price_ns > 0;
    says.then_some(SleepView { channel, sleep_price_ns, probes, changes, source })
}

impl Server {
    /// What a sleep of these channels is held to cost.
    pub(super) fn sleeps(
        &self,
        desired: &Desired,
        dataplane: &str,
        channels: &[u32],
    ) -> Vec<SleepView> {
        let told = attr::dataplane::POLL_US_MAX.value(desired.dataplane(dataplane)).is_some();
        let channels: BTreeSet<u32> = channels.iter().copied().collect();
        let snapshots = self.snapshots();
        let Some(snapshot) = snapshots.get(dataplane) else { return Vec::new() };
        channels.into_iter().filter_map(|channel| view(snapshot, channel, told)).collect()
    }
}
