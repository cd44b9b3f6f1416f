//! The server as the commands see it: what the API answers, and the reports made of it.

use super::baseline::{Baseline, Baselines, Reading, counts, marks, on_port, reading};
use super::devices::Device;
use super::fcstat::{Counts, FcReport};
use super::maps::{ScsiMap, Vtd};
use super::san::adapter_wwpn;
use super::text::number_of;
use super::{Context, VFC_CLIENT};
use crate::exit::Failure;
use control::api::ItemList;
use control::error::{ApiError, Code};
use control::model::validate::queues_max;
use control::server::{
    AdapterView, DataPlaneView, LinkView, LoginView, ObjectView, StatusView, VolumeView,
};
use control::statistics::{AdapterFile, Counters, StatsView};
use fabric::attribute::words::VolumeKind;
use fabric::attribute::{Attribute, Attributes, Kind, Object, Value, attr};
use protocol::stats::QueueCounter;
use std::collections::BTreeMap;

/// The name under which the original has the attributes of NPIV that all its adapters share.
pub(super) const NPIV: &str = "viosnpiv0";
/// The data plane that it stands for.
const NPIV_DATAPLANE: &str = "main";

/// Times that a link went down, since a reset if there was one.
pub(super) fn link_failures(link: Option<&LinkView>, base: Option<&Baseline>) -> u64 {
    let failures = link.map_or(0, |link| link.counts.failures);
    base.map_or(failures, |base| base.failures_since(failures))
}

/// The server at one moment.
pub(super) struct System {
    pub(super) status: StatusView,
    reading: Reading,
    /// High-water marks of active, pending and waiting commands that are of all queues at once.
    marks: BTreeMap<String, [u64; 3]>,
    pub(super) ports: Vec<ObjectView>,
    pub(super) targets: Vec<ObjectView>,
    pub(super) vtds: Vec<ObjectView>,
    pub(super) media: Vec<ObjectView>,
    networks: Vec<ObjectView>,
    pub(super) trunks: Vec<ObjectView>,
    pub(super) seas: Vec<ObjectView>,
    pub(super) logins: Vec<LoginView>,
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
    /// The attributes that things of its kind have.
    pub(super) fn attributes(&self) -> impl Iterator<Item = &'static Attribute> {
        let kind = self.object.kind_of(self.effective);
        self.object.attributes().filter(move |one| !one.hidden && one.is_of(kind))
    }

    /// What an attribute of it may be. The queues of most kinds of adapters are fewer than the attribute allows.
    pub(super) fn values_of(&self, attribute: &Attribute) -> Kind {
        match attribute.kind {
            Kind::Number { min, .. }
                if (self.object, attribute.name)
                    == (Object::Adapter, attr::adapter::QUEUES.name) =>
            {
                Kind::Number { min, max: queues_max(attr::adapter::KIND.value(self.effective)) }
            }
            kind => kind,
        }
    }

    /// An attribute of it.
    pub(super) fn attribute(&self, name: &str) -> Result<&'static Attribute, Failure> {
        let found = self.attributes().find(|attribute| attribute.name == name);
        found.ok_or_else(|| {
            let kind = self.object.kind_of(self.effective);
            let error = fabric::attribute::AttributeError::unknown_of(self.object, kind, name);
            ApiError::attribute(self.name, error).into()
        })
    }
}

impl System {
    /// Asks the server.
    pub(super) fn load(context: &Context<'_>) -> Result<System, Failure> {
        let stats: StatsView = context.client.get("/v1/stats")?;
        let objects = |object: Object| -> Result<Vec<ObjectView>, Failure> {
            let list: ItemList<ObjectView> =
                context.client.get(&format!("/v1/{}", object.collection()))?;
            Ok(list.items)
        };
        let logins: ItemList<LoginView> = context.client.get("/v1/logins")?;
        Ok(System {
            status: context.client.get("/v1/status")?,
            reading: reading(&stats),
            marks: marks(&stats),
            ports: objects(Object::Port)?,
            targets: objects(Object::Target)?,
            vtds: objects(Object::Vtd)?,
            media: objects(Object::Medium)?,
            networks: objects(Object::Network)?,
            trunks: objects(Object::Trunk)?,
            seas: objects(Object::Sea)?,
            logins: logins.items,
        })
    }

    /// The devices that are neither adapter nor volume.
    fn objects(&self) -> [(Object, &[ObjectView]); 7] {
        [
            (Object::Uplink, &self.status.uplinks),
            (Object::Trunk, &self.trunks),
            (Object::Sea, &self.seas),
            (Object::Port, &self.ports),
            (Object::Target, &self.targets),
            (Object::Vtd, &self.vtds),
            (Object::Medium, &self.media),
        ]
    }

    /// The object behind a device.
    pub(super) fn thing(&self, device: &str) -> Result<Thing<'_>, Failure> {
        let status = &self.status;
        if let Some(adapter) = status.adapters.iter().find(|adapter| adapter.name == device) {
            return Ok(Thing {
                object: Object::Adapter,
                name: &adapter.name,
                effective: &adapter.effective,
                in_use: adapter.has_client(),
            });
        }
        if let Some(volume) = status.volumes.iter().find(|volume| volume.name == device) {
            return Ok(Thing {
                object: Object::Volume,
                name: &volume.name,
                effective: &volume.effective,
                in_use: !volume.adapters.is_empty() || !volume.luns.is_empty(),
            });
        }
        for (object, all) in self.objects() {
            if let Some(found) = all.iter().find(|one| one.name == device) {
                return Ok(Thing {
                    object,
                    name: &found.name,
                    effective: &found.effective,
                    in_use: !found.used_by.is_empty(),
                });
            }
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

    /// The virtual target devices of an adapter.
    pub(super) fn vtds_of(&self, adapter: &str) -> Vec<&str> {
        let mine = |vtd: &&ObjectView| text(&vtd.effective, "adapter") == Some(adapter);
        self.vtds.iter().filter(mine).map(|vtd| vtd.name.as_str()).collect()
    }

    /// The virtual target devices on a volume.
    pub(super) fn vtds_on(&self, volume: &str) -> impl Iterator<Item = &ObjectView> {
        self.vtds.iter().filter(move |vtd| text(&vtd.effective, "volume") == Some(volume))
    }

    /// The location code of a device that has one.
    pub(super) fn place(&self, name: &str) -> Option<String> {
        let adapter = self.adapter(name).map(|adapter| self.adapter_place(adapter));
        adapter.or_else(|| self.port(name).map(|port| self.port_place(port)))
    }

    /// A location code, which the original has for every adapter.
    pub(super) fn adapter_place(&self, adapter: &AdapterView) -> String {
        let slots = [("vfchost", 0), ("vhost", SLOTS)];
        let slot = slots.into_iter().find_map(|(prefix, first)| {
            let number = numbered(&adapter.name, prefix)?;
            (number < SLOTS).then(|| format!("C{}", first + number))
        });
        let slot = slot.unwrap_or_else(|| format!("C-{}", adapter.name));
        self.place_at(&adapter.dataplane, &format!("V1-{slot}"))
    }

    /// The location code of a place in a data plane: with the server's own number, as those of the original have the machine's.
    pub(super) fn place_at(&self, dataplane: &str, place: &str) -> String {
        let number = self.status.server_number.as_deref().unwrap_or("000000");
        format!("UTRUNKLINE.{}-{dataplane}-{place}", number.to_uppercase())
    }

    /// An adapter by its name.
    pub(super) fn adapter(&self, name: &str) -> Option<&AdapterView> {
        self.status.adapters.iter().find(|adapter| adapter.name == name)
    }

    pub(super) fn network(&self, name: &str) -> Option<&ObjectView> {
        self.networks.iter().find(|network| network.name == name)
    }

    /// The data plane of a network.
    pub(super) fn home_of_network(&self, network: &str) -> &str {
        let network = self.network(network);
        network.and_then(|network| text(&network.effective, "dataplane")).unwrap_or_default()
    }

    pub(super) fn dataplane(&self, name: &str) -> Option<&DataPlaneView> {
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
        let objects = self
            .objects()
            .into_iter()
            .flat_map(|(object, all)| all.iter().map(move |one| (object, one)));
        let objects = objects.map(|(object, one)| {
            let up =
                one.state.as_deref().is_none_or(|state| state != "failed" && state != "pending");
            device(object, &one.name, up, object_description(object, one))
        });
        let npiv = device(Object::DataPlane, NPIV, true, "NPIV attributes of main".to_owned());
        adapters.chain(objects).chain(volumes).chain(dataplanes).chain([npiv]).collect()
    }

    /// Seconds since the counters of a data plane began, or since a reset.
    pub(super) fn seconds(&self, dataplane: &str, base: Option<&Baseline>) -> u64 {
        let dataplane = self.dataplane(dataplane);
        let pid = dataplane.and_then(|dataplane| dataplane.pid);
        let up = dataplane.and_then(|dataplane| dataplane.uptime_s).unwrap_or(0);
        base.and_then(|base| base.age_s(pid)).map_or(up, |age| age.min(up))
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
        let device_type = match adapter.kind.as_str() {
            "fc" => VFC_CLIENT,
            "scsi" => "Virtual SCSI Server Adapter (trunkline/adapter/scsi)",
            _ => "Virtual block adapter (trunkline/adapter/block)",
        };
        FcReport {
            device: adapter.name.clone(),
            device_type: device_type.to_owned(),
            wwpn: adapter_wwpn(adapter),
            link_gbit: adapter
                .port
                .as_deref()
                .and_then(|port| number(&self.port(port)?.effective, "link_speed")),
            link_up: adapter.has_client() && adapter.link.as_ref().is_none_or(LinkView::is_up),
            link_failures: link_failures(adapter.link.as_ref(), base),
            seconds: self.seconds(&adapter.dataplane, base),
            counts: self.with_mark(&adapter.name, counts(queues.values())),
            max_transfer: number(&adapter.effective, "max_xfer_size"),
        }
    }

    /// A baseline of an adapter.
    pub(super) fn baseline(&self, adapter: &AdapterView) -> Baseline {
        let reading = Reading::from([(adapter.name.clone(), self.queues(&adapter.name))]);
        let home = self.dataplane(&adapter.dataplane);
        let pid = home.and_then(|dataplane| dataplane.pid);
        Baseline::of(reading, pid, link_failures(adapter.link.as_ref(), None))
    }

    /// A baseline of a port, and of what each adapter did on it.
    pub(super) fn port_baseline(&self, port: &ObjectView) -> Baseline {
        let known = on_port(&port.name, "");
        let reading = self.reading.iter().filter(|(name, _)| name.starts_with(&known));
        let reading = reading.map(|(name, queues)| (name.clone(), queues.clone()));
        let home = text(&port.effective, "dataplane").and_then(|home| self.dataplane(home));
        let pid = home.and_then(|dataplane| dataplane.pid);
        Baseline::of(reading.collect(), pid, link_failures(port.link.as_ref(), None))
    }

    /// Counts of an adapter, with its own high-water marks where it has some.
    fn with_mark(&self, adapter: &str, counts: Counts) -> Counts {
        let sums = [counts.active_max, counts.pending_max, counts.waiting_max];
        let marks = self.marks.get(adapter).copied().unwrap_or(sums);
        let [active_max, pending_max, waiting_max] = marks;
        Counts { active_max, pending_max, waiting_max, ..counts }
    }

    /// The counters of an adapter's queues.
    pub(super) fn queues(&self, adapter: &str) -> BTreeMap<u32, Counters> {
        self.reading.get(adapter).cloned().unwrap_or_default()
    }

    /// The statistics file of an adapter.
    pub(super) fn file(&self, adapter: &AdapterView) -> AdapterFile {
        let queues = self.queues(&adapter.name);
        let value =
            |queue: &Counters, counter: QueueCounter| queue.get(counter.info().name).copied();
        let received = queues.iter().map(|(number, queue)| {
            (*number, value(queue, QueueCounter::CommandsReceived).unwrap_or(0))
        });
        let counted = |counter: QueueCounter| match self.marks.get(&adapter.name) {
            Some([active, ..]) if counter == QueueCounter::ActiveMax => *active,
            Some([_, pending, _]) if counter == QueueCounter::PendingMax => *pending,
            _ => queues
                .values()
                .filter_map(|queue| value(queue, counter))
                .fold(0_u64, u64::saturating_add),
        };
        AdapterFile::of(adapter, &received.collect(), counted)
    }

    /// `lsmap` of an adapter that gives volumes: the one of a block adapter, or virtual target devices.
    pub(super) fn scsi_map(&self, adapter: &AdapterView) -> ScsiMap {
        let devices = match adapter.kind.as_str() {
            "block" => self.backing(&adapter.volume).map(|(available, backing)| Vtd {
                name: adapter.volume.clone(),
                available,
                lun: 0,
                backing,
                physloc: String::new(),
            }),
            _ => None,
        };
        let mine = self.vtds.iter().filter(|vtd| adapter.vtds.contains(&vtd.name));
        let mut devices: Vec<Vtd> =
            devices.into_iter().chain(mine.map(|vtd| self.vtd(vtd))).collect();
        devices.sort_by_key(|device| device.lun);
        ScsiMap {
            name: adapter.name.clone(),
            physloc: self.adapter_place(adapter),
            client_id: if adapter.has_client() { client_id(adapter) } else { 0 },
            devices,
        }
    }

    fn vtd(&self, vtd: &ObjectView) -> Vtd {
        let volume = text(&vtd.effective, "volume").and_then(|volume| self.backing(volume));
        let medium = text(&vtd.effective, "medium").unwrap_or_default();
        let (available, backing) = volume.unwrap_or_else(|| (true, medium.to_owned()));
        let lun = number(&vtd.effective, "lun").unwrap_or(0);
        Vtd {
            name: vtd.name.clone(),
            available,
            lun: u16::try_from(lun).unwrap_or(u16::MAX),
            backing,
            physloc: String::new(),
        }
    }

    /// Whether a volume is open, and what is behind it.
    fn backing(&self, volume: &str) -> Option<(bool, String)> {
        let volume = self.status.volumes.iter().find(|other| other.name == volume)?;
        let kind = text(&volume.effective, "kind").unwrap_or_default();
        // An LU is known by its name.
        let other = if kind == VolumeKind::Lu.word() { &volume.name } else { kind };
        let backing = text(&volume.effective, "path").unwrap_or(other);
        Some((volume.state == "open", backing.to_owned()))
    }
}

/// The baselines, from the state folder.
pub(super) fn baselines(context: &Context<'_>) -> Result<Baselines, Failure> {
    Baselines::open(&context.global.paths().state)
}

/// That there is no such device.
pub(super) fn not_found(device: &str) -> Failure {
    ApiError::new(Code::NotFound, format!("there is no device {device}"))
        .help("`trunkline ioscli lsdev` lists the devices")
        .into()
}

pub(super) fn text<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    attributes.get(name).and_then(Value::as_text)
}

pub(super) fn number(attributes: &Attributes, name: &str) -> Option<u64> {
    attributes.get(name).and_then(Value::as_number)
}

/// The slots of virtual Fibre Channel adapters come first; those of the others begin here.
const SLOTS: u32 = 10_000;

/// The number behind a prefix, in a name that is nothing else: no two names have the same.
pub(super) fn numbered(name: &str, prefix: &str) -> Option<u32> {
    let number = name.strip_prefix(prefix)?.parse().ok()?;
    (name == format!("{prefix}{number}")).then_some(number)
}

/// The name of the partition behind an adapter, as far as somebody has said it.
pub(super) fn client_name(adapter: &AdapterView) -> Option<&str> {
    text(&adapter.effective, "client_name").filter(|name| !name.is_empty())
}

/// A number for the client, which does not say who it is.
pub(super) fn client_id(adapter: &AdapterView) -> u32 {
    number_of(&adapter.name).map_or(1, |number| number.saturating_add(1))
}

fn adapter_description(adapter: &AdapterView) -> &'static str {
    match adapter.kind.as_str() {
        "fc" => "Virtual FC Server Adapter",
        "scsi" => "Virtual SCSI Server Adapter",
        "ethernet" => super::entstat::VIRTUAL,
        _ => "Virtual block adapter",
    }
}

fn object_description(object: Object, view: &ObjectView) -> String {
    let effective = &view.effective;
    match (object, text(effective, "kind")) {
        (Object::Port, _) => {
            let speed = number(effective, "link_speed").unwrap_or(0);
            format!("NPIV port ({speed} Gb)")
        }
        (Object::Target, _) => "Target port".to_owned(),
        (Object::Uplink, _) => super::sea::device_type(effective).to_owned(),
        (Object::Trunk, _) => super::entstat::VIRTUAL.to_owned(),
        (Object::Sea, _) => super::entstat::SHARED.to_owned(),
        (Object::Vtd, Some("optical")) => "Virtual Target Device - File-backed Optical".to_owned(),
        (Object::Vtd, _) => "Virtual Target Device - Disk".to_owned(),
        _ => "Optical medium".to_owned(),
    }
}

fn volume_description(volume: &VolumeView) -> String {
    let kind = text(&volume.effective, "kind").unwrap_or("volume");
    match volume.bytes {
        Some(bytes) => format!("Volume ({kind}, {})", crate::output::bytes(bytes)),
        None => format!("Volume ({kind})"),
    }
}
