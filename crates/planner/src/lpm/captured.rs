//! A client and where it is now, out of captures: what a plan needs to know of both, so that only the place to which it
//! moves has to be written down.

use std::collections::BTreeMap;

use super::{Client, Plan, Server, Step, System};
use crate::capture::{Attribute, Captures, NpivMap, Report, System as Printed};
use crate::model::Model;

/// The name of the server where the client is.
const HERE: &str = "captured";

/// One virtual Fibre Channel adapter of a client, with the server behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedPath {
    /// How the client is called.
    pub client: String,
    /// Its adapter, where it is known.
    pub adapter: Option<String>,
    /// The VIOS and its adapter: `vfchost0 on vios1`.
    pub server: String,
    plan: (Client, Server),
}

impl CapturedPath {
    /// The plan of a move to these servers, in this order.
    #[must_use]
    pub fn moves(&self, to: &[(String, Server)]) -> Plan {
        let (client, here) = self.plan.clone();
        let mut server = BTreeMap::from([(HERE.to_owned(), here)]);
        server.extend(to.iter().cloned());
        Plan {
            client,
            server,
            steps: to.iter().map(|(name, _)| Step::Move(name.clone())).collect(),
        }
    }
}

/// Every path of every client that the captures' mappings name, by client and adapter.
#[must_use]
pub fn captured_paths(captures: &Captures) -> Vec<CapturedPath> {
    let model = Model::of(captures);
    let reports: Vec<Vec<&Report>> =
        (0..model.systems.len()).map(|system| model.reports(captures, system)).collect();
    let mut paths = Vec::new();
    for (vios, own) in reports.iter().enumerate() {
        let mut latest: BTreeMap<&str, &NpivMap> = BTreeMap::new();
        for lsmap in own.iter().filter_map(|report| report.lsmap_npiv()) {
            latest.extend(lsmap.adapters.iter().map(|map| (map.name.as_str(), map)));
        }
        for map in latest.values() {
            let Some(client) = model.named_at(map.at) else { continue };
            let all: Vec<&NpivMap> = latest.values().copied().collect();
            let of_client = reports.get(client).map_or(&[][..], Vec::as_slice);
            let adapter = map.client_adapter.as_ref().map(|read| read.value.clone());
            paths.push(CapturedPath {
                client: model.spoken(client).to_owned(),
                server: format!("{} on {}", map.name, model.spoken(vios)),
                plan: (
                    the_client(of_client, map, own),
                    the_server(own, map, &all, model.systems.get(vios)),
                ),
                adapter,
            });
        }
    }
    paths.sort_by(|one, two| {
        (&one.client, &one.adapter, &one.server).cmp(&(&two.client, &two.adapter, &two.server))
    });
    paths
}

/// An attribute as it was read last.
fn attribute<'a>(reports: &[&'a Report], device: &str, name: &str) -> Option<&'a Attribute> {
    let of = |report: &&'a Report| {
        let (head, list) = match report {
            Report::Lsattr(list) => (&list.head, &list.attributes),
            Report::LsdevAttr(list) => (&list.head, &list.attributes),
            _ => return None,
        };
        head.device.as_ref().filter(|read| read.value == device)?;
        list.iter().find(|attribute| attribute.name == name)
    };
    reports.iter().rev().find_map(of)
}

fn number(reports: &[&Report], device: &str, name: &str) -> Option<u32> {
    attribute(reports, device, name)?.number().and_then(|number| u32::try_from(number).ok())
}

fn level(reports: &[&Report]) -> Option<(Printed, String)> {
    let last = reports.iter().rev().find_map(|report| report.level())?;
    Some((last.system, last.level.value.clone()))
}

fn the_client(own: &[&Report], map: &NpivMap, vios: &[&Report]) -> Client {
    let os = map.client_os.as_ref().map_or("", |read| read.value.as_str());
    let system = match os {
        "IBM i" | "OS400" => System::Ibmi,
        "Linux" => System::Linux,
        _ => System::Aix,
    };
    let level = level(own).filter(|(printed, _)| *printed == Printed::Aix && system == System::Aix);
    let adapter = map.client_adapter.as_ref().map(|read| read.value.as_str());
    let statistics = vios.iter().rev().find_map(|report| {
        let stats = report.vfc_stats()?;
        stats.head.device.as_ref().filter(|read| read.value == map.name)?;
        stats.channels
    });
    Client {
        system,
        level: level.map(|(_, level)| level),
        at: HERE.to_owned(),
        queues: statistics
            .and_then(|read| u32::try_from(read.value).ok())
            .filter(|queues| *queues > 0),
        num_io_queues: adapter.and_then(|adapter| number(own, adapter, "num_io_queues")),
        policy: None,
    }
}

fn the_server(
    own: &[&Report],
    map: &NpivMap,
    all: &[&NpivMap],
    system: Option<&crate::model::System>,
) -> Server {
    let port = map.port.as_ref().map(|read| read.value.as_str());
    let machine = system.and_then(|system| system.machine.as_deref());
    let firmware = own.iter().rev().find_map(|report| report.host()?.about.firmware.as_ref());
    let vios = level(own).filter(|(printed, _)| *printed == Printed::Vios);
    let others = all.iter().filter(|other| {
        let active = other.status.as_ref().is_some_and(|read| read.value == "LOGGED_IN");
        active
            && other.name != map.name
            && port.is_some()
            && other.port.as_ref().map(|read| read.value.as_str()) == port
    });
    Server {
        machine: machine
            .and_then(|machine| machine.split_once('*'))
            .map(|(kind, _)| kind.to_owned()),
        firmware: firmware.map(|read| read.value.clone()),
        vios: vios.map(|(_, level)| level),
        num_io_queues: port.and_then(|port| number(own, port, "num_io_queues")),
        num_per_range: number(own, &map.name, "num_per_range"),
        viosnpiv0_num_per_range: number(own, "viosnpiv0", "num_per_range"),
        limit_intr: attribute(own, &map.name, "limit_intr")
            .and_then(|attribute| attribute.value.to_ascii_lowercase().parse().ok()),
        port_adapters: u32::try_from(others.count()).ok().filter(|_| port.is_some()),
        ..Server::default()
    }
}
