//! A client and where it is now, out of captures: what a plan needs to know of both, so that only the place to which it
//! moves has to be written down.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Client, LpmError, Plan, Server, Step, System};
use crate::capture::{At, Attribute, Captures, NpivMap, Read, Report, System as Printed};
use crate::model::Model;
use crate::report::inputs::{Input, Missing};

/// One virtual Fibre Channel adapter of a client, with the server behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedPath {
    /// How the client is called.
    pub client: String,
    /// Its adapter, where it is known.
    pub adapter: Option<String>,
    /// The VIOS and its adapter: `vfchost0 on vios1`.
    pub server: String,
    /// What captures told, with the lines.
    pub inputs: Vec<Input>,
    /// What they did not tell.
    pub missing: Vec<Missing>,
    plan: Plan,
}

impl CapturedPath {
    /// Takes what was said of the server where the client is instead of what captures tell.
    ///
    /// # Errors
    /// A key that a server does not have, or a value of the wrong type.
    pub fn take(&mut self, said: &toml::Table) -> Result<(), LpmError> {
        let here = self.plan.client.at.clone();
        self.plan.take_here(said)?;
        self.inputs.retain(|input| input.of != here || !said.contains_key(&input.name));
        self.missing.retain(|missing| missing.of != here || !said.contains_key(&missing.what));
        Ok(())
    }

    /// The plan of a move to these servers, in this order. One that has the name of the server where the client is
    /// gets another one.
    #[must_use]
    pub fn moves(&self, to: &[(String, Server)]) -> Plan {
        let mut plan = self.plan.clone();
        for (name, server) in to {
            let mut name = name.clone();
            while plan.server.contains_key(&name) {
                name.push('\'');
            }
            plan.server.insert(name.clone(), server.clone());
            plan.steps.push(Step::Move(name));
        }
        plan
    }
}

/// What the captures' mappings name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedPaths {
    /// Every path of every client, by client and adapter.
    pub paths: Vec<CapturedPath>,
    /// The server's adapters that no path leads through, since no port is behind them.
    pub unmapped: Vec<Unmapped>,
}

/// A server's adapter without a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Unmapped {
    /// How its client is called, where it has one.
    pub client: Option<String>,
    /// `vfchost3 on vios1`.
    pub server: String,
    /// Its line.
    pub at: At,
}

/// Whether a port is behind the adapter: where the report ends before it says so, its state does.
fn is_mapped(map: &NpivMap) -> bool {
    match map.status.as_ref().map(|read| read.value.as_str()) {
        Some("NOT_MAPPED") => false,
        Some("LOGGED_IN") => true,
        _ => map.port.is_some(),
    }
}

/// The paths of clients, as they were mapped last.
#[must_use]
pub fn captured_paths(captures: &Captures) -> CapturedPaths {
    let model = Model::of(captures);
    let reports: Vec<Vec<&Report>> =
        (0..model.systems.len()).map(|system| model.reports(captures, system)).collect();
    let (mut paths, mut unmapped) = (Vec::new(), Vec::new());
    for (vios, own) in reports.iter().enumerate() {
        let mut latest: BTreeMap<&str, &NpivMap> = BTreeMap::new();
        for lsmap in own.iter().filter_map(|report| report.lsmap_npiv()) {
            latest.extend(lsmap.adapters.iter().map(|map| (map.name.as_str(), map)));
        }
        let all: Vec<&NpivMap> = latest.values().copied().collect();
        for map in latest.values() {
            let client = model.named_at(map.at);
            let server = format!("{} on {}", map.name, model.spoken(vios));
            if !is_mapped(map) {
                let client = client.map(|client| model.spoken(client).to_owned());
                unmapped.push(Unmapped { client, server, at: map.at });
                continue;
            }
            let Some(client) = client else { continue };
            let of_client = reports.get(client).map_or(&[][..], Vec::as_slice);
            let names = [model.spoken(client), model.spoken(vios)];
            let mut found = Found::new(names, map);
            let plan = found.plan(of_client, own, &all, model.systems.get(vios));
            paths.push(CapturedPath {
                client: names[0].to_owned(),
                adapter: map.client_adapter.as_ref().map(|read| read.value.clone()),
                server,
                inputs: found.inputs,
                missing: found.missing,
                plan,
            });
        }
    }
    paths.sort_by(|one, two| {
        (&one.client, &one.adapter, &one.server).cmp(&(&two.client, &two.adapter, &two.server))
    });
    unmapped.sort();
    CapturedPaths { paths, unmapped }
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

fn number(reports: &[&Report], device: &str, name: &str) -> Option<Read<u32>> {
    let attribute = attribute(reports, device, name)?;
    Some(Read { value: u32::try_from(attribute.number()?).ok()?, at: attribute.at })
}

fn level(reports: &[&Report], of: Printed) -> Option<Read<String>> {
    let mut levels = reports.iter().rev().filter_map(|report| report.level());
    levels.find(|level| level.system == of).map(|level| level.level.clone())
}

/// The plan of one path while it is gathered.
struct Found<'a> {
    client: &'a str,
    vios: &'a str,
    map: &'a NpivMap,
    inputs: Vec<Input>,
    missing: Vec<Missing>,
    /// The lines of the values, by their keys in a plan.
    lines: BTreeMap<String, At>,
}

/// What is reckoned with where a level is not known.
const BOTH: &str = "every possibility is followed";
/// What is reckoned with where an attribute is not known.
const DEFAULT: &str = "the default";

impl<'a> Found<'a> {
    fn new([client, vios]: [&'a str; 2], map: &'a NpivMap) -> Self {
        let (inputs, missing, lines) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { client, vios, map, inputs, missing, lines }
    }

    /// Notes a value of the client with its line, or what would tell it.
    fn of_client<T: ToString>(
        &mut self,
        name: &str,
        read: Option<Read<T>>,
        (instead, capture): (&str, String),
    ) -> Option<T> {
        let (of, key) = (self.client, format!("client.{name}"));
        self.note((of, name, key), read, (instead, capture))
    }

    /// The same of the server where it is.
    fn of_server<T: ToString>(
        &mut self,
        name: &str,
        read: Option<Read<T>>,
        (instead, capture): (&str, &str),
    ) -> Option<T> {
        let (of, key) = (self.vios, format!("server.{}.{name}", self.vios));
        self.note((of, name, key), read, (instead, format!("{capture} on {of}")))
    }

    fn note<T: ToString>(
        &mut self,
        (of, name, key): (&str, &str, String),
        read: Option<Read<T>>,
        (instead, capture): (&str, String),
    ) -> Option<T> {
        match read {
            Some(read) => {
                self.inputs.push(Input::read(of, name, read.value.to_string(), read.at));
                self.lines.insert(key, read.at);
                Some(read.value)
            }
            None => {
                self.missing.push(Missing::new(of, name, instead, capture));
                None
            }
        }
    }

    fn plan(
        &mut self,
        of_client: &[&Report],
        own: &[&Report],
        all: &[&NpivMap],
        system: Option<&crate::model::System>,
    ) -> Plan {
        let client = self.the_client(of_client, own);
        let here = self.the_server(own, all, system);
        Plan {
            client,
            server: BTreeMap::from([(self.vios.to_owned(), here)]),
            steps: Vec::new(),
            lines: std::mem::take(&mut self.lines),
        }
    }

    fn the_client(&mut self, own: &[&Report], vios: &[&Report]) -> Client {
        let (map, on) = (self.map, self.client);
        let os = map.client_os.as_ref().map_or("", |read| read.value.as_str());
        let system = match os {
            "IBM i" | "OS400" => System::Ibmi,
            "Linux" => System::Linux,
            _ => System::Aix,
        };
        let read = level(own, Printed::Aix).filter(|_| system == System::Aix);
        let command = match system {
            System::Aix => format!("oslevel -s on {on}"),
            System::Ibmi => format!("DSPPTF LICPGM(5770SS1) on {on}; say it in a plan of your own"),
            _ => format!("uname -r on {on}; say it in a plan of your own"),
        };
        let level = self.of_client("level", read, (BOTH, command));
        let statistics = vios.iter().rev().find_map(|report| {
            let stats = report.vfc_stats()?;
            stats.head.device.as_ref().filter(|read| read.value == map.name)?;
            // A client with a single queue has no channel beside the main queue.
            let channels = stats.channels?;
            Some(Read { value: u32::try_from(channels.value).ok()?.max(1), at: channels.at })
        });
        let command =
            format!("cat /proc/sys/adapter/vfc/{}/stats on {}, as root", map.name, self.vios);
        let instead = "as many as it gets where it is";
        let queues = self.of_client("queues", statistics, (instead, command));
        let adapter = map.client_adapter.as_ref().map(|read| read.value.as_str());
        let asked = adapter.and_then(|adapter| number(own, adapter, "num_io_queues"));
        let command = format!("lsattr -El {} on {on}", adapter.unwrap_or("fcsN"));
        let num_io_queues = self.of_client("num_io_queues", asked, (DEFAULT, command));
        Client { system, level, at: self.vios.to_owned(), queues, num_io_queues, policy: None }
    }

    fn the_server(
        &mut self,
        own: &[&Report],
        all: &[&NpivMap],
        system: Option<&crate::model::System>,
    ) -> Server {
        let map = self.map;
        let port = map.port.as_ref().map(|read| read.value.as_str());
        let machine = system
            .and_then(|system| system.machine.as_deref())
            .and_then(|machine| machine.split_once('*'))
            .map(|(kind, _)| kind.to_owned());
        // The location code of its slot names the machine; where another report does, the line is not known.
        let told = machine
            .clone()
            .map(|value| Read { value, at: map.physloc.as_ref().map_or(map.at, |read| read.at) });
        let machine = self.of_server("machine", told, (BOTH, "lsattr -El sys0 -a modelname"));
        let firmware = own.iter().rev().find_map(|report| report.host()?.about.firmware.clone());
        let firmware = self.of_server("firmware", firmware, (BOTH, "prtconf"));
        let vios = self.of_server("vios", level(own, Printed::Vios), (BOTH, "ioslevel"));
        let others = all.iter().filter(|other| {
            let active = other.status.as_ref().is_some_and(|read| read.value == "LOGGED_IN");
            active
                && other.name != map.name
                && port.is_some()
                && other.port.as_ref().map(|read| read.value.as_str()) == port
        });
        let others = u32::try_from(others.count()).ok().zip(map.port.as_ref());
        let others = others.map(|(value, port)| Read { value, at: port.at });
        let port_adapters = self.of_server("port_adapters", others, ("none", "lsmap -all -npiv"));
        let named = port.unwrap_or("fcsN");
        let num_io_queues = self.of_server(
            "num_io_queues",
            port.and_then(|port| number(own, port, "num_io_queues")),
            (DEFAULT, &format!("lsdev -dev {named} -attr")),
        );
        let of_adapter = format!("lsdev -dev {} -attr", map.name);
        let num_per_range = self.of_server(
            "num_per_range",
            number(own, &map.name, "num_per_range"),
            (DEFAULT, &of_adapter),
        );
        let limit_intr = attribute(own, &map.name, "limit_intr").and_then(|attribute| {
            let value = attribute.value.to_ascii_lowercase().parse().ok()?;
            Some(Read { value, at: attribute.at })
        });
        let limit_intr = self.of_server("limit_intr", limit_intr, (DEFAULT, &of_adapter));
        let viosnpiv0_num_per_range = self.of_server(
            "viosnpiv0_num_per_range",
            number(own, "viosnpiv0", "num_per_range"),
            (DEFAULT, "lsdev -dev viosnpiv0 -attr"),
        );
        // A report names the card, not the feature code under which the data have it.
        let instead = "whether it has multi-queue follows from the queues in use, or is left open";
        let capture =
            format!("lscfg -vpl {named} on {}, and --from adapter=FEATURECODE", self.vios);
        self.missing.push(Missing::new(self.vios, "adapter", instead, capture));
        Server {
            machine,
            firmware,
            vios,
            num_io_queues,
            num_per_range,
            viosnpiv0_num_per_range,
            limit_intr,
            port_adapters,
            ..Server::default()
        }
    }
}
