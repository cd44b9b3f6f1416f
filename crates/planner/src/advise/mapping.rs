//! Which client adapter goes through which physical port, from `lsmap -all -npiv`.

use crate::report::clean::is_partition_name;
use std::collections::{BTreeMap, BTreeSet};

use super::view::View;
use crate::capture::{NpivMap, Report};

/// One virtual Fibre Channel server adapter, as it was mapped last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Npiv<'a> {
    pub(super) vios: usize,
    pub(super) map: &'a NpivMap,
    /// The client's system, where anything names it.
    pub(super) client: Option<usize>,
}

impl<'a> Npiv<'a> {
    /// The physical port.
    pub(super) fn port(&self) -> Option<&'a str> {
        self.map.port.as_ref().map(|read| read.value.as_str())
    }

    /// The client's adapter.
    pub(super) fn client_adapter(&self) -> Option<&'a str> {
        self.map.client_adapter.as_ref().map(|read| read.value.as_str())
    }

    /// The protocol device of the client's adapter, over which its paths lead.
    pub(super) fn client_protocol(&self) -> Option<String> {
        self.client_adapter().map(protocol_device)
    }

    pub(super) fn logged_in(&self) -> bool {
        self.map.status.as_ref().is_some_and(|read| read.value == "LOGGED_IN")
    }

    /// What tells two clients apart: the partition id, else the name.
    pub(super) fn client_key(&self) -> Option<(u32, &'a str)> {
        let id = self.map.client_id.map_or(0, |read| read.value);
        let name = self.map.client_name.as_ref().map_or("", |read| read.value.as_str());
        (id != 0 || !name.is_empty()).then_some((id, if id == 0 { name } else { "" }))
    }

    /// The client as a user reads it.
    pub(super) fn client_spoken(&self) -> String {
        let name = self.map.client_name.as_ref().filter(|name| is_partition_name(&name.value));
        match (name, self.map.client_id) {
            (Some(name), _) => name.value.clone(),
            (None, Some(id)) => format!("partition {}", id.value),
            (None, None) => "an unknown client".to_owned(),
        }
    }
}

/// Every mapping of every VIOS.
pub(super) fn npiv<'a>(view: &View<'a>) -> Vec<Npiv<'a>> {
    let mut latest: BTreeMap<(usize, &str), &NpivMap> = BTreeMap::new();
    for (host, report) in view.reports() {
        if let Report::LsmapNpiv(lsmap) = report {
            latest.extend(lsmap.adapters.iter().map(|map| ((host, map.name.as_str()), map)));
        }
    }
    let client = |map: &NpivMap| view.model.named_at(map.at);
    latest.into_iter().map(|((vios, _), map)| Npiv { vios, map, client: client(map) }).collect()
}

/// How many clients a port carries that are logged in or could be; `None` when no mapping was captured.
pub(super) fn clients_on<'a>(
    maps: &[Npiv<'a>],
    vios: usize,
    port: &str,
) -> Option<BTreeSet<(u32, &'a str)>> {
    let here: Vec<&Npiv<'_>> = maps.iter().filter(|map| map.vios == vios).collect();
    if here.is_empty() {
        return None;
    }
    let on_port = here.into_iter().filter(|map| map.port() == Some(port) && map.logged_in());
    Some(on_port.filter_map(Npiv::client_key).collect())
}

/// `fscsi0` of `fcs0`.
pub(super) fn protocol_device(adapter: &str) -> String {
    adapter.replacen("fcs", "fscsi", 1)
}
