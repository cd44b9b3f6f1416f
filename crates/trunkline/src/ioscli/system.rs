//! The server as the commands see it: what the API answers, and the reports made of it.

use super::baseline::{Baseline, Baselines, Reading, counts, reading};
use super::devices::Device;
use super::fcstat::FcReport;
use super::maps::{ScsiMap, Vtd};
use super::queues::{AdapterReport, MORE};
use super::text::number_of;
use super::{Context, VFC_CLIENT};
use crate::exit::Failure;
use control::refusal::{Code, Refusal};
use control::server::{AdapterView, DataPlaneView, StatusView, VolumeView};
use control::statistics::{Counters, StatsView};
use fabric::attribute::{Attribute, Attributes, Object, Value};
use std::collections::BTreeMap;

/// The name under which the original has the attributes of NPIV that all its adapters share.
pub(super) const NPIV: &str = "viosnpiv0";
/// The data plane that it stands for.
const NPIV_DATAPLANE: &str = "main";

/// The server at one moment.
pub(super) struct System {
    pub(super) status: StatusView,
    pub(super) reading: Reading,
}

/// An object with attributes, by the name of a device.
#[derive(Clone, Copy)]
pub(super) struct Thing<'a> {
    pub(super) object: Object,
    /// Its name in the API.
    pub(super) name: &'a str,
    pub(super) effective: &'a Attributes,
    /// Whether a client, or the process itself, uses it now.
    pub(super) in_use: bool,
}

impl Thing<'_> {
    /// An attribute of it.
    pub(super) fn attribute(&self, name: &str) -> Result<&'static Attribute, Failure> {
        let found = self.object.attribute(name).filter(|attribute| !attribute.hidden);
        found.ok_or_else(|| {
            let error = fabric::attribute::AttributeError::unknown(self.object, name);
            Refusal::attribute(self.name, error).into()
        })
    }
}

impl System {
    /// Asks the server.
    pub(super) fn load(context: &Context<'_>) -> Result<System, Failure> {
        let stats: StatsView = context.client.get("/v1/stats")?;
        Ok(System { status: context.client.get("/v1/status")?, reading: reading(&stats) })
    }

    /// The object behind a device.
    pub(super) fn thing(&self, device: &str) -> Result<Thing<'_>, Failure> {
        let status = &self.status;
        if let Some(adapter) = status.adapters.iter().find(|adapter| adapter.name == device) {
            return Ok(Thing {
                object: Object::Adapter,
                name: &adapter.name,
                effective: &adapter.effective,
                in_use: has_client(adapter),
            });
        }
        if let Some(volume) = status.volumes.iter().find(|volume| volume.name == device) {
            return Ok(Thing {
                object: Object::Volume,
                name: &volume.name,
                effective: &volume.effective,
                in_use: !volume.adapters.is_empty(),
            });
        }
        let name = if device == NPIV { NPIV_DATAPLANE } else { device };
        let dataplane = status.dataplanes.iter().find(|dataplane| dataplane.name == name);
        let dataplane = dataplane.ok_or_else(|| not_found(device))?;
        Ok(Thing {
            object: Object::DataPlane,
            name: &dataplane.name,
            effective: &dataplane.effective,
            in_use: dataplane.state == "running",
        })
    }

    /// An adapter by its name.
    pub(super) fn adapter(&self, name: &str) -> Option<&AdapterView> {
        self.status.adapters.iter().find(|adapter| adapter.name == name)
    }

    fn dataplane(&self, name: &str) -> Option<&DataPlaneView> {
        self.status.dataplanes.iter().find(|dataplane| dataplane.name == name)
    }

    /// The devices, adapters first.
    pub(super) fn devices(&self) -> Vec<(Object, Device)> {
        let device = |object, name: &str, available, description: String| {
            (object, Device { name: name.to_owned(), available, description })
        };
        let status = &self.status;
        let adapters = status.adapters.iter().map(|adapter| {
            let up = !matches!(adapter.state.as_str(), "failed" | "pending");
            device(Object::Adapter, &adapter.name, up, adapter_description(adapter).to_owned())
        });
        let volumes = status.volumes.iter().map(|volume| {
            device(Object::Volume, &volume.name, volume.state == "open", volume_description(volume))
        });
        let dataplanes = status.dataplanes.iter().map(|dataplane| {
            let up = dataplane.state == "running";
            device(Object::DataPlane, &dataplane.name, up, "Data plane".to_owned())
        });
        adapters.chain(volumes).chain(dataplanes).collect()
    }

    /// `fcstat` of an adapter.
    pub(super) fn adapter_report(
        &self,
        adapter: &AdapterView,
        base: Option<&Baseline>,
    ) -> FcReport {
        let dataplane = self.dataplane(&adapter.dataplane);
        let pid = dataplane.and_then(|dataplane| dataplane.pid);
        let queues = self.queues(&adapter.name);
        let queues =
            base.map_or_else(|| queues.clone(), |base| base.since(&adapter.name, &queues, pid));
        let up = dataplane.and_then(|dataplane| dataplane.uptime_s).unwrap_or(0);
        let device_type = match kind(adapter) {
            "fc" => VFC_CLIENT,
            "scsi" => "Virtual SCSI Server Adapter (trunkline/adapter/scsi)",
            _ => "Virtual block adapter (trunkline/adapter/block)",
        };
        FcReport {
            device: adapter.name.clone(),
            device_type: device_type.to_owned(),
            wwpn: None,
            link_gbit: None,
            link_up: has_client(adapter),
            seconds: base.and_then(|base| base.age_s(pid)).unwrap_or(up),
            counts: counts(queues.values()),
            max_transfer: number(&adapter.effective, "max_xfer_size"),
        }
    }

    /// A baseline of these adapters, which are of one data plane.
    pub(super) fn baseline(&self, adapters: &[&AdapterView]) -> Baseline {
        let reading =
            adapters.iter().map(|adapter| (adapter.name.clone(), self.queues(&adapter.name)));
        let home = adapters.first().and_then(|adapter| self.dataplane(&adapter.dataplane));
        Baseline::of(reading.collect(), home.and_then(|dataplane| dataplane.pid))
    }

    /// The counters of an adapter's queues.
    fn queues(&self, adapter: &str) -> BTreeMap<u32, Counters> {
        self.reading.get(adapter).cloned().unwrap_or_default()
    }

    /// The statistics file of an adapter.
    pub(super) fn file(&self, adapter: &AdapterView) -> AdapterReport {
        let queues = self.queues(&adapter.name);
        let received = |queue: &Counters| queue.get("commands_received").copied().unwrap_or(0);
        // Control and event queue come first, where there are any.
        let (own, channels): (Vec<_>, Vec<_>) = match kind(adapter) {
            "block" => (Vec::new(), queues.values().collect()),
            _ => queues.iter().fold(
                Default::default(),
                |(mut own, mut channels), (number, queue)| {
                    if *number < 2 {
                        own.push(queue)
                    } else {
                        channels.push(queue)
                    };
                    (own, channels)
                },
            ),
        };
        let total = |name: &str| {
            queues
                .values()
                .filter_map(|queue| queue.get(name))
                .fold(0_u64, |sum, n| sum.saturating_add(*n))
        };
        AdapterReport {
            command_queues: match kind(adapter) {
                "block" => Vec::new(),
                _ => vec![own.into_iter().map(received).sum()],
            },
            channels: channels.into_iter().map(received).collect(),
            more: MORE.iter().map(|(name, shown)| (*shown, total(name))).collect(),
        }
    }

    /// `lsmap` of an adapter that gives volumes.
    pub(super) fn scsi_map(&self, adapter: &AdapterView) -> ScsiMap {
        let volume = text(&adapter.effective, "volume");
        let device = self.status.volumes.iter().find(|other| Some(other.name.as_str()) == volume);
        let devices = device.map(|volume| Vtd {
            name: volume.name.clone(),
            available: volume.state == "open",
            lun: 0,
            backing: text(&volume.effective, "path")
                .or_else(|| text(&volume.effective, "kind"))
                .unwrap_or_default()
                .to_owned(),
            physloc: String::new(),
        });
        ScsiMap {
            name: adapter.name.clone(),
            physloc: adapter_place(adapter),
            client_id: if has_client(adapter) { client_id(adapter) } else { 0 },
            devices: devices.into_iter().collect(),
        }
    }
}

/// The baselines, from the state folder.
pub(super) fn baselines(context: &Context<'_>) -> Result<Baselines, Failure> {
    Baselines::open(&context.global.paths().state)
}

/// That there is no such device.
pub(super) fn not_found(device: &str) -> Failure {
    Refusal::new(Code::NotFound, format!("there is no device {device}"))
        .help("`trunkline ioscli lsdev` lists the devices")
        .into()
}

/// What an adapter is.
pub(super) fn kind(adapter: &AdapterView) -> &str {
    text(&adapter.effective, "kind").unwrap_or("block")
}

fn text<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    attributes.get(name).and_then(Value::as_text)
}

fn number(attributes: &Attributes, name: &str) -> Option<u64> {
    attributes.get(name).and_then(Value::as_number)
}

/// Whether a client is connected.
pub(super) fn has_client(adapter: &AdapterView) -> bool {
    matches!(adapter.state.as_str(), "connected" | "running" | "broken")
}

/// A location code, which the original has for every adapter.
fn adapter_place(adapter: &AdapterView) -> String {
    let slot = number_of(&adapter.name).map_or_else(|| adapter.name.clone(), |n| format!("C{n}"));
    format!("UTRUNKLINE-{}-V1-{slot}", adapter.dataplane)
}

/// A number for the client, which does not say who it is.
fn client_id(adapter: &AdapterView) -> u32 {
    number_of(&adapter.name).map_or(1, |number| number.saturating_add(1))
}

fn adapter_description(adapter: &AdapterView) -> &'static str {
    match kind(adapter) {
        "fc" => "Virtual FC Server Adapter",
        "scsi" => "Virtual SCSI Server Adapter",
        _ => "Virtual block adapter",
    }
}

fn volume_description(volume: &VolumeView) -> String {
    let kind = text(&volume.effective, "kind").unwrap_or("volume");
    match volume.bytes {
        Some(bytes) => format!("Volume ({kind}, {})", crate::output::bytes(bytes)),
        None => format!("Volume ({kind})"),
    }
}
