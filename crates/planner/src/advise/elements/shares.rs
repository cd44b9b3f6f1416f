//! Which client of a port meets most of its waits for elements, by `fcstat -client`.

use std::collections::BTreeMap;

use super::Usage;
use crate::advise::view::{View, as_f64};
use crate::capture::{At, Report};
use crate::trace::number;

/// The client that has more of them than all others of the port together, in words, with its line.
pub(super) fn most(view: &View<'_>, usage: &Usage<'_>) -> Option<(String, At)> {
    let on_port = |client: usize, adapter: &str| {
        view.npiv().iter().any(|map| {
            map.vios == usage.host
                && map.client == Some(client)
                && map.client_adapter() == Some(adapter)
                && map.port() == Some(usage.device)
        })
    };
    let reports = view.of(usage.host).filter_map(|report| match report {
        Report::FcstatClient(report) => Some(report),
        _ => None,
    });
    let mut of: BTreeMap<usize, (u64, At)> = BTreeMap::new();
    for (own, row) in reports.last()?.owned() {
        let client = view.model.named_at(row.at).filter(|_| !own);
        let Some(client) = client.filter(|client| on_port(*client, &row.device)) else { continue };
        let known = of.entry(client).or_insert((0, row.at));
        known.0 = known.0.saturating_add(row.no_elements.unwrap_or(0));
    }
    let all = of.values().map(|(waits, _)| *waits).fold(0, u64::saturating_add);
    let (client, (waits, at)) = of.iter().max_by_key(|(_, (waits, _))| *waits)?;
    (of.len() > 1 && *waits > all - waits).then(|| {
        let (waits, all) = (number(as_f64(*waits)), number(as_f64(all)));
        let who = view.spoken(*client);
        (format!("By fcstat -client {who} met {waits} of the {all} waits of this port's clients: look at what it sends, too."), *at)
    })
}
