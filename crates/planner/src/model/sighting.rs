//! What reports say of the systems that printed them, and of others.

use smol_str::{SmolStr, StrExt, format_smolstr};

use super::Role;
use crate::capture::is_masked;
use crate::capture::{
    About, At, Attribute, Entstat, Fcstat, FcstatClient, HmcList, Lscfg, Report, System, Wwn,
};
use crate::report::clean::{is_host_name, is_partition_name};

/// Something of which a system has one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// Its host name.
    Host,
    /// The whole of its name, with the domain.
    Domain,
    /// Its name on the HMC.
    Partition,
    /// The serial number of its machine.
    Serial,
    /// Its number on the machine.
    PartitionId,
    /// The WWPN of a port.
    Wwpn(SmolStr),
    /// The MAC address of an adapter.
    Mac(SmolStr),
    /// Where a port is.
    Location(SmolStr),
}

impl Mark {
    /// Every mark counts.
    pub(super) fn is_any(&self) -> bool {
        true
    }

    /// Every mark but the addresses of Ethernet, which change with a failover or by hand while a session goes on.
    pub(super) fn lasts(&self) -> bool {
        !matches!(self, Self::Mac(_))
    }

    /// Whether it is of the system itself and not of an adapter, which can be exchanged.
    pub(super) fn is_of_system(&self) -> bool {
        matches!(
            self,
            Self::Host | Self::Domain | Self::Partition | Self::Serial | Self::PartitionId
        )
    }
}

/// What a sighting says of each mark. Most have one or two, and there is a sighting for each report.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks(Vec<(Mark, SmolStr)>);

impl Marks {
    fn place(&self, mark: &Mark) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.cmp(mark))
    }

    pub(super) fn get(&self, mark: &Mark) -> Option<&str> {
        Some(self.0.get(self.place(mark).ok()?)?.1.as_str())
    }

    /// In the order of the marks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Mark, &str)> {
        self.0.iter().map(|(mark, value)| (mark, value.as_str()))
    }

    /// What was said first stays.
    fn say(&mut self, mark: Mark, value: &str) {
        if let Err(place) = self.place(&mark) {
            if self.0.len() == self.0.capacity() {
                self.0.reserve_exact(self.0.len().max(1));
            }
            self.0.insert(place, (mark, value.into()));
        }
    }
}

/// What one report, or one line of another system's report, says of a system.
#[derive(Debug, Clone, Default)]
pub(super) struct Sighting {
    pub(super) file: u32,
    /// The report that the system printed itself, by its place.
    pub(super) report: Option<usize>,
    /// The line that names it, in another system's report.
    pub(super) at: Option<At>,
    pub(super) marks: Marks,
    /// Names by which it can be found, without domain and in lower case.
    pub(super) names: Vec<SmolStr>,
    /// A name that contradicts nothing: what another system calls it.
    pub(super) alias: Option<SmolStr>,
    /// What identifies it by itself.
    pub(super) keys: Vec<SmolStr>,
    /// Type and model of the machine, before its serial number.
    pub(super) machine_type: Option<SmolStr>,
    /// The host name as it was printed.
    pub(super) shown: Option<SmolStr>,
    pub(super) role: Option<Role>,
    /// What its file is called by, where nothing in that names a system; and whether that looks like a host's name.
    pub(super) filed: Option<(SmolStr, bool)>,
    /// The managed system that it is a list of: an HMC printed it, and no partition that is in the same file.
    pub(super) managed: Option<SmolStr>,
}

impl Sighting {
    fn mark(&mut self, mark: Mark, value: &str) {
        self.marks.say(mark, value);
    }

    fn called(&mut self, name: &str) {
        let short = short(name);
        if is_partition_name(name)
            && !short.is_empty()
            && short != "localhost"
            && !self.names.contains(&short)
        {
            self.names.push(short);
        }
    }

    fn host(&mut self, name: &str) {
        let short = short(name);
        if is_host_name(name) && short != "localhost" {
            let whole = name.trim().to_ascii_lowercase();
            if whole != short {
                self.mark(Mark::Domain, &whole);
            }
            self.mark(Mark::Host, &short);
            self.shown.get_or_insert_with(|| name.into());
            self.called(name);
        }
    }

    fn partition(&mut self, name: &str) {
        if !is_partition_name(name) {
            return;
        }
        self.mark(Mark::Partition, name);
        self.called(name);
    }

    fn wwpn(&mut self, device: Option<&str>, wwpn: Wwn) {
        // All zeroes or all ones are what an adapter without a name prints.
        if wwpn.0 == 0 || wwpn.0 == u64::MAX {
            return;
        }
        if let Some(device) = device {
            self.mark(Mark::Wwpn(device.into()), &wwpn.to_string());
        }
        self.keys.push(format_smolstr!("wwpn {wwpn}"));
    }

    fn location(&mut self, device: &str, code: &str) {
        if code.starts_with('U') && code.contains('-') {
            self.mark(Mark::Location(device.into()), code);
            self.keys.push(format_smolstr!("location {code}"));
        }
    }

    /// A number on the machine; with the machine it identifies.
    fn on_machine(&mut self, machine: Option<&Slot>, id: Option<u32>) {
        if let Some(slot) = machine {
            self.mark(Mark::Serial, &slot.serial);
            self.machine_type = Some(slot.machine_type.clone());
        }
        let Some(id) = id.filter(|id| *id != 0) else { return };
        self.mark(Mark::PartitionId, &id.to_string());
        if let Some(slot) = machine {
            self.keys.push(format_smolstr!("partition {id} of {}", slot.serial));
        }
    }
}

/// A name without its domain, in lower case.
pub(super) fn short(name: &str) -> SmolStr {
    let numeric = name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let host = if numeric { name } else { name.split('.').next().unwrap_or_default() };
    host.trim().to_ascii_lowercase_smolstr()
}

/// A virtual slot by its location code: `U9009.42A.78A1B2C-V1-C20`.
pub(super) struct Slot {
    /// `9009-42A`.
    machine_type: SmolStr,
    serial: SmolStr,
    partition: u32,
}

impl Slot {
    fn of(code: &str) -> Option<Self> {
        let mut parts = code.strip_prefix('U')?.split('-');
        let mut unit = parts.next()?.splitn(3, '.');
        let (kind, model, serial) = (unit.next()?, unit.next()?, unit.next()?);
        let partition = parts.next()?.strip_prefix('V')?.parse().ok()?;
        let word =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        // A serial number that somebody made unreadable is that of many machines.
        let hidden = is_masked(serial) || serial.bytes().all(|byte| byte == b'0');
        ([kind, model, serial].into_iter().all(word) && !hidden).then(|| Self {
            machine_type: format_smolstr!("{kind}-{model}"),
            serial: serial.into(),
            partition,
        })
    }
}

fn slot(code: Option<&crate::capture::Read<String>>) -> Option<Slot> {
    Slot::of(&code?.value)
}

/// What a report says of the system that printed it.
pub(super) fn own(at: usize, report: &Report) -> Sighting {
    let head = report.head();
    let mut sighting = Sighting {
        file: head.first.file,
        report: Some(at),
        role: role(report),
        ..Sighting::default()
    };
    if let Some(partition) = &head.partition {
        sighting.host(&partition.value);
    }
    let s = &mut sighting;
    match report {
        Report::Fcstat(fcstat) => of_fcstat(s, fcstat),
        Report::FcstatClient(rows) => of_client_rows(s, rows),
        Report::Entstat(entstat) => of_entstat(s, entstat),
        Report::Interfaces(list) => {
            let macs = list.interfaces.iter().filter_map(|one| Some(&one.mac.as_ref()?.value));
            let own = macs.filter(|mac| mac.bytes().any(|byte| !matches!(byte, b'0' | b':')));
            s.keys.extend(own.map(|mac| format_smolstr!("mac {mac}")));
        }
        Report::LsmapNpiv(lsmap) => {
            for map in &lsmap.adapters {
                of_slot(s, slot(map.physloc.as_ref()));
                if let (Some(port), Some(code)) = (&map.port, &map.port_physloc) {
                    s.location(&port.value, &code.value);
                }
            }
        }
        Report::LsmapScsi(lsmap) => {
            for map in &lsmap.adapters {
                of_slot(s, slot(map.physloc.as_ref()));
            }
        }
        Report::LsmapNet(lsmap) => {
            for map in &lsmap.adapters {
                of_slot(s, slot(map.physloc.as_ref()));
            }
        }
        Report::Lsnports(ports) => {
            for port in &ports.ports {
                s.location(&port.name, &port.physloc);
            }
        }
        Report::Lparstat(lparstat) => {
            if let Some(name) = &lparstat.partition_name {
                s.partition(&name.value);
            }
            let id = lparstat.partition_number.and_then(|read| u32::try_from(read.value).ok());
            s.on_machine(None, id);
        }
        Report::LsmapVnic(lsmap) => {
            for map in &lsmap.adapters {
                of_slot(s, slot(map.physloc.as_ref()));
            }
        }
        Report::Host(host) => of_host(s, &host.about),
        Report::Lscfg(list) => of_devices(s, list),
        Report::HmcList(list) => of_managed(s, list),
        Report::Lsattr(list) => of_system(s, head, &list.attributes),
        Report::LsdevAttr(list) => of_system(s, head, &list.attributes),
        _ => {}
    }
    sighting
}

fn of_slot(sighting: &mut Sighting, slot: Option<Slot>) {
    if let Some(slot) = slot {
        sighting.on_machine(Some(&slot), Some(slot.partition));
    }
}

fn of_fcstat(sighting: &mut Sighting, fcstat: &Fcstat) {
    if let Some(wwpn) = fcstat.wwpn {
        sighting.wwpn(fcstat.head.device.as_ref().map(|read| read.value.as_str()), wwpn.value);
    }
}

/// The rows of the VIOS itself: those with the name of the first one.
fn of_client_rows(sighting: &mut Sighting, rows: &FcstatClient) {
    for (_, row) in rows.owned().filter(|(own, _)| *own) {
        sighting.host(&row.hostname);
        if let Some(wwpn) = row.wwpn {
            sighting.wwpn(Some(&row.device), wwpn);
        }
    }
}

fn of_entstat(sighting: &mut Sighting, entstat: &Entstat) {
    for adapter in &entstat.adapters {
        let Some(mac) = &adapter.mac else { continue };
        let mac = mac.value.to_ascii_lowercase();
        if mac.bytes().any(|byte| byte.is_ascii_hexdigit() && byte != b'0') {
            sighting.mark(Mark::Mac(adapter.name.value.as_str().into()), &mac);
            sighting.keys.push(format_smolstr!("mac {mac}"));
        }
    }
}

/// `hostname`, `uname`, `prtconf`.
fn of_host(sighting: &mut Sighting, about: &About) {
    if let Some(name) = &about.hostname {
        sighting.host(&name.value);
    }
    if let Some(name) = &about.partition_name {
        sighting.partition(&name.value);
    }
    let serial = about.machine_serial.as_ref().map(|read| read.value.as_str());
    let kind = about.machine_model.as_ref().map(|read| read.value.as_str());
    let id = about.partition_id.map(|read| read.value);
    match (serial, kind) {
        (Some(serial), Some(kind)) => {
            let machine = Slot {
                machine_type: kind.trim_start_matches("IBM,").into(),
                serial: serial.into(),
                partition: 0,
            };
            sighting.on_machine(Some(&machine), id);
        }
        (Some(serial), None) => {
            sighting.mark(Mark::Serial, serial);
            sighting.on_machine(None, id);
        }
        _ => sighting.on_machine(None, id),
    }
}

/// Devices by their location codes: that of a virtual one names the machine and the partition.
fn of_devices(sighting: &mut Sighting, list: &Lscfg) {
    for device in &list.devices {
        let Some(code) = &device.location else { continue };
        match Slot::of(code) {
            Some(slot) => of_slot(sighting, Some(slot)),
            None if device.name.starts_with("fcs") => sighting.location(&device.name, code),
            None => {}
        }
        let wwpn = device.field("Network Address").filter(|_| device.name.starts_with("fcs"));
        if let Some(wwpn) = wwpn.and_then(|field| u64::from_str_radix(&field.value, 16).ok()) {
            sighting.wwpn(Some(&device.name), Wwn(wwpn));
        }
    }
}

/// `systemid` of `sys0`: `IBM,0278A1B2C`; `hostname` of `inet0`.
fn of_system(sighting: &mut Sighting, head: &crate::capture::Head, list: &[Attribute]) {
    let is = |name: &str| head.device.as_ref().is_some_and(|device| device.value == name);
    if let Some(name) = list.iter().find(|one| one.name == "hostname").filter(|_| is("inet0")) {
        sighting.host(&name.value);
    }
    let sys0 = is("sys0");
    let id = list.iter().find(|attribute| sys0 && attribute.name == "systemid");
    let serial = id.and_then(|id| id.value.strip_prefix("IBM,02"));
    if let Some(serial) = serial.filter(|serial| serial.len() == 7) {
        sighting.mark(Mark::Serial, serial);
    }
}

/// The machine that an HMC's list is about, by the name that the HMC gives it at first (`Server-9009-42A-SN78A1B2C`), by
/// type and serial number in its place (`9009-42A*78A1B2C`), or by the location codes of its virtual slots.
fn machine(list: &HmcList) -> Option<Slot> {
    let is_serial =
        |text: &str| text.len() == 7 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let named = || {
        let name = &list.system.as_ref()?.value;
        let (kind, serial) = name.split_once('*').or_else(|| {
            let (kind, serial) = name.rsplit_once("-SN")?;
            Some((kind.strip_prefix("Server-").unwrap_or(kind), serial))
        })?;
        is_serial(serial).then(|| Slot {
            machine_type: kind.into(),
            serial: serial.into(),
            partition: 0,
        })
    };
    named().or_else(|| list.rows.iter().find_map(|row| Slot::of(row.field("drc_name")?)))
}

fn of_managed(sighting: &mut Sighting, list: &HmcList) {
    if let Some(machine) = machine(list) {
        sighting.keys.push(format_smolstr!("managed system {}", machine.serial));
        sighting.on_machine(Some(&machine), None);
    }
    if let Some(name) = &list.system {
        sighting.keys.push(format_smolstr!("managed system {}", name.value));
        sighting.alias = alias(&name.value);
        sighting.managed = Some(name.value.as_str().into());
    }
}

/// What another system calls it, if that can be a name.
fn alias(name: &str) -> Option<SmolStr> {
    is_partition_name(name).then(|| name.into())
}

/// The others that a report names, with the line of each.
pub(super) fn others(report: &Report) -> Vec<Sighting> {
    let file = report.head().first.file;
    let new =
        |at: At| Sighting { file, at: Some(at), role: Some(Role::Client), ..Sighting::default() };
    let mut all = Vec::new();
    match report {
        Report::LsmapNpiv(lsmap) => {
            for map in &lsmap.adapters {
                let mut client = new(map.at);
                if let Some(name) = map.client_name.as_ref().filter(|name| !name.value.is_empty()) {
                    client.called(&name.value);
                    client.alias = alias(&name.value);
                }
                let machine = slot(map.client_drc.as_ref()).or_else(|| slot(map.physloc.as_ref()));
                client.on_machine(machine.as_ref(), map.client_id.map(|read| read.value));
                all.push(client);
            }
        }
        Report::LsmapScsi(lsmap) => {
            for map in &lsmap.adapters {
                let mut client = new(map.at);
                let id = map.client_partition.map(|read| read.value);
                client.on_machine(slot(map.physloc.as_ref()).as_ref(), id);
                all.push(client);
            }
        }
        Report::FcstatClient(rows) => {
            for (_, row) in rows.owned().filter(|(own, _)| !own) {
                let mut client = new(row.at);
                client.called(&row.hostname);
                client.alias = alias(&row.hostname);
                if let Some(wwpn) = row.wwpn {
                    client.wwpn(Some(&row.device), wwpn);
                }
                all.push(client);
            }
        }
        Report::Lsnportlogin(list) => {
            for login in &list.wwpns {
                let mut client = new(login.at);
                if let Some(name) = &login.partition {
                    client.called(&name.value);
                    client.alias = alias(&name.value);
                }
                client.on_machine(None, login.partition_id.as_ref().map(|read| read.value));
                if let Some(wwpn) = login.wwpn {
                    client.wwpn(None, wwpn);
                }
                all.push(client);
            }
        }
        Report::HmcList(list) => {
            let machine = machine(list);
            for row in &list.rows {
                let id = row.field("lpar_id");
                // `lssyscfg -r lpar` calls it `name`, as `-r prof` does a profile beside its partition.
                let own_name = row.field("name").filter(|_| id.is_some());
                let name = row.field("lpar_name").or(own_name);
                let mut client = Sighting { role: None, ..new(row.at) };
                if let Some(name) = name {
                    client.called(name);
                    client.alias = alias(name);
                }
                client.on_machine(machine.as_ref(), id.and_then(|id| id.parse().ok()));
                all.push(client);
            }
        }
        _ => {}
    }
    // Somebody of whom nothing is known is nobody.
    all.retain(|client| !client.names.is_empty() || !client.keys.is_empty());
    all
}

/// What kind of system prints such a report.
fn role(report: &Report) -> Option<Role> {
    match report {
        Report::LsmapScsi(_) | Report::LsmapNpiv(_) | Report::LsmapNet(_) | Report::Lsnports(_) => {
            Some(Role::Vios)
        }
        Report::FcstatClient(_) | Report::VfcStats(_) | Report::Seastat(_) => Some(Role::Vios),
        // With a time in the VIOS it is a client's.
        Report::FcLatency(report) => report
            .rows
            .iter()
            .any(|row| row.vios.is_some() || row.hypervisor.is_some())
            .then_some(Role::Client),
        Report::Lssp(_) | Report::LuList(_) | Report::PvList(_) | Report::LsdevAttr(_) => {
            Some(Role::Vios)
        }
        Report::FailureGroupList(_) | Report::TierList(_) | Report::AlertList(_) => {
            Some(Role::Vios)
        }
        Report::Entstat(entstat) => entstat.sea.is_some().then_some(Role::Vios),
        Report::Fcstat(fcstat) => fcstat.is_virtual.filter(|read| read.value).map(|_| Role::Client),
        Report::Lsattr(list) => role_of_attributes(&list.attributes),
        Report::LsattrRange(range) => {
            let command = range.head.command.as_ref()?;
            command.value.contains("lsdev").then_some(Role::Vios)
        }
        Report::Level(level) => Some(match level.system {
            System::Vios => Role::Vios,
            System::Aix => Role::Client,
        }),
        Report::LsmapVnic(_) => Some(Role::Vios),
        Report::Chdev(change) => role_of_attributes(&change.attributes),
        Report::IostatD(_) | Report::Lparstat(_) | Report::Lsnportlogin(_) => None,
        Report::DiskPaths(_) | Report::Errpt(_) | Report::Lscfg(_) | Report::Host(_) => None,
        Report::Vmstat(_) | Report::Svmon(_) | Report::Lsps(_) | Report::HmcList(_) => None,
        Report::Part(_) | Report::ClusterStatus(_) => Some(Role::Vios),
        Report::Lsvg(_) | Report::Df(_) | Report::Interfaces(_) => None,
        Report::HmcMessages(_) => None,
        Report::Nmon(_) => None,
        Report::Server(_) => Some(Role::Trunkline),
    }
}

fn role_of_attributes(list: &[Attribute]) -> Option<Role> {
    let has =
        |names: &[&str]| list.iter().any(|attribute| names.contains(&attribute.name.as_str()));
    if has(&["pvid_adapter", "virt_adapters", "limit_intr", "num_per_range", "bufs_per_cmd"]) {
        return Some(Role::Vios);
    }
    has(&["num_sp_cmd_elem"]).then_some(Role::Client)
}
