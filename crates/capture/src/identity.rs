//! What identifies the things that reports are about.
//!
//! A name of a device (`fcs0`) identifies nothing beyond its partition, and a partition's name only within its machine.
//! What does: port names, serial numbers, MAC addresses, location codes, which have the machine's type and serial number
//! in them, and the pair of a machine and a partition's number. [`Report::identifiers`] gives all that a report says,
//! each with its line; what was made unreadable is marked and identifies nothing.

use serde::Serialize;

use super::{At, Head, Info, Read, Report};

/// What an identifier is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identifies {
    /// A World Wide Port Name, in sixteen small hexadecimal digits.
    Wwpn,
    /// A serial number of an adapter or a disk.
    Serial,
    /// A MAC address, in twelve small hexadecimal digits.
    Mac,
    /// A physical location code.
    Location,
    /// A partition by its name on the machine.
    PartitionName,
    /// A partition by its number on the machine.
    PartitionId,
    /// The machine's serial number.
    MachineSerial,
    /// The machine by `uname -m`.
    MachineId,
    /// A host by its name.
    HostName,
}

/// One value that identifies something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identifier {
    /// What it is.
    pub what: Identifies,
    /// The value, spelt so that equal ones are equal.
    pub value: String,
    /// The device that it is of; `None` is the partition or the machine.
    pub device: Option<String>,
    /// The partition that it is of, where the report is about several.
    pub partition: Option<String>,
    /// Its line.
    pub at: At,
    /// It was made unreadable: nothing is equal to it.
    pub masked: bool,
}

/// Puts identifiers together.
struct Found {
    list: Vec<Identifier>,
}

impl Found {
    fn add(&mut self, what: Identifies, value: &str, device: Option<&str>, at: At) -> &mut Self {
        let value = spelt(what, value);
        if !value.is_empty() && value != "UNKNOWN" {
            let masked = super::text::is_masked(&value);
            let device = device.map(str::to_owned);
            self.list.push(Identifier { what, value, device, partition: None, at, masked });
        }
        self
    }

    fn read(&mut self, what: Identifies, read: Option<&Read<String>>, device: Option<&str>) {
        if let Some(read) = read {
            self.add(what, &read.value, device, read.at);
        }
    }

    /// A location of a virtual slot: `U9009.42A.78A1B2C-V5-C20` is partition 5 of the machine 78A1B2C.
    fn location(&mut self, read: Option<&Read<String>>, device: Option<&str>) {
        self.read(Identifies::Location, read, device);
    }

    fn of(&mut self, partition: Option<&str>, from: usize) {
        for identifier in self.list.iter_mut().skip(from) {
            identifier.partition = partition.map(str::to_owned);
        }
    }
}

/// One spelling for each kind.
fn spelt(what: Identifies, value: &str) -> String {
    let value = value.trim();
    match what {
        Identifies::Wwpn => {
            value.trim_start_matches("0x").replace([':', '-', '.'], "").to_ascii_lowercase()
        }
        Identifies::Mac => value.replace([':', '-', '.'], "").to_ascii_lowercase(),
        Identifies::MachineSerial => value.trim_start_matches("IBM,").to_owned(),
        _ => value.to_owned(),
    }
}

impl Report {
    /// Everything in it that identifies something, in the order of its fields.
    pub fn identifiers(&self) -> Vec<Identifier> {
        let mut found = Found { list: Vec::new() };
        let head = self.head();
        found.read(Identifies::HostName, head.partition.as_ref(), None);
        let device = head.device.as_ref().map(|read| read.value.as_str());
        self.of_fibre_channel(&mut found, device);
        self.of_ethernet(&mut found);
        self.of_partition(&mut found);
        self.of_disks(&mut found);
        masked(&mut found, head, device);
        found.list
    }

    fn of_fibre_channel(&self, found: &mut Found, device: Option<&str>) {
        match self {
            Report::Fcstat(report) => {
                if let Some(wwpn) = report.wwpn {
                    found.add(Identifies::Wwpn, &format!("{:016x}", wwpn.value.0), device, wwpn.at);
                }
                found.read(Identifies::Serial, report.serial_number.as_ref(), device);
            }
            Report::FcstatClient(report) => {
                for row in &report.rows {
                    let from = found.list.len();
                    if let Some(wwpn) = row.wwpn {
                        let text = format!("{:016x}", wwpn.0);
                        found.add(Identifies::Wwpn, &text, Some(&row.device), row.at);
                    }
                    found.of(
                        Some(&row.hostname).filter(|name| !name.is_empty()).map(|n| n.as_str()),
                        from,
                    );
                }
            }
            Report::Lsnportlogin(report) => {
                for row in &report.wwpns {
                    let from = found.list.len();
                    if let Some(wwpn) = row.wwpn {
                        found.add(Identifies::Wwpn, &format!("{:016x}", wwpn.0), None, row.at);
                    }
                    found.of(row.partition.as_ref().map(|read| read.value.as_str()), from);
                }
            }
            Report::LsmapNpiv(report) => {
                for map in &report.adapters {
                    found.location(map.physloc.as_ref(), Some(&map.name));
                    let port = map.port.as_ref().map(|read| read.value.as_str());
                    found.location(map.port_physloc.as_ref(), port);
                    let from = found.list.len();
                    let client = map.client_adapter.as_ref().map(|read| read.value.as_str());
                    found.location(map.client_drc.as_ref(), client);
                    found.of(map.client_name.as_ref().map(|read| read.value.as_str()), from);
                }
            }
            Report::Lsnports(report) => {
                for port in &report.ports {
                    found.add(Identifies::Location, &port.physloc, Some(&port.name), port.at);
                }
            }
            _ => {}
        }
    }

    fn of_ethernet(&self, found: &mut Found) {
        match self {
            Report::Entstat(report) => {
                for adapter in &report.adapters {
                    found.read(Identifies::Mac, adapter.mac.as_ref(), Some(&adapter.name.value));
                }
            }
            Report::Seastat(report) => {
                for client in &report.clients {
                    let from = found.list.len();
                    found.add(Identifies::Mac, &client.mac, None, client.at);
                    found.of(client.hostname.as_ref().map(|read| read.value.as_str()), from);
                }
            }
            Report::LsmapNet(report) => {
                for map in &report.adapters {
                    found.location(map.physloc.as_ref(), Some(&map.name));
                    let backing = map.backing.as_ref().map(|read| read.value.as_str());
                    found.location(map.backing_physloc.as_ref(), backing);
                }
            }
            Report::LsmapVnic(report) => {
                for map in &report.adapters {
                    found.location(map.physloc.as_ref(), Some(&map.name));
                    let backing = map.backing.as_ref().map(|read| read.value.as_str());
                    found.location(map.backing_physloc.as_ref(), backing);
                    let from = found.list.len();
                    let client = map.client_device.as_ref().map(|read| read.value.as_str());
                    found.location(map.client_physloc.as_ref(), client);
                    found.of(map.client_name.as_ref().map(|read| read.value.as_str()), from);
                }
            }
            _ => {}
        }
    }

    fn of_partition(&self, found: &mut Found) {
        match self {
            Report::Lparstat(report) => {
                found.read(Identifies::PartitionName, report.partition_name.as_ref(), None);
                if let Some(id) = report.partition_number {
                    found.add(Identifies::PartitionId, &id.value.to_string(), None, id.at);
                }
            }
            Report::Host(report) => {
                let about = &report.about;
                found.read(Identifies::HostName, about.hostname.as_ref(), None);
                found.read(Identifies::PartitionName, about.partition_name.as_ref(), None);
                if let Some(id) = about.partition_id {
                    found.add(Identifies::PartitionId, &id.value.to_string(), None, id.at);
                }
                found.read(Identifies::MachineSerial, about.machine_serial.as_ref(), None);
                found.read(Identifies::MachineId, about.machine_id.as_ref(), None);
            }
            Report::Nmon(report) => {
                found.read(Identifies::PartitionName, report.partition_name.as_ref(), None);
                if let Some(id) = report.partition_id {
                    found.add(Identifies::PartitionId, &id.value.to_string(), None, id.at);
                }
                found.read(Identifies::MachineSerial, report.machine_serial.as_ref(), None);
            }
            Report::Errpt(report) => {
                found.read(Identifies::HostName, report.node.as_ref(), None);
                found.read(Identifies::MachineId, report.machine_id.as_ref(), None);
            }
            Report::HmcList(report) => {
                for row in &report.rows {
                    let from = found.list.len();
                    let name = row.field("lpar_name").or_else(|| row.field("name"));
                    for (field, what) in [
                        ("lpar_name", Identifies::PartitionName),
                        ("name", Identifies::PartitionName),
                        ("lpar_id", Identifies::PartitionId),
                        ("serial_num", Identifies::MachineSerial),
                        ("mac_addr", Identifies::Mac),
                        ("wwpn", Identifies::Wwpn),
                        ("drc_name", Identifies::Location),
                        ("location_code", Identifies::Location),
                    ] {
                        if let Some(value) = row.field(field) {
                            found.add(what, value, None, row.at);
                        }
                    }
                    found.of(name, from);
                }
            }
            _ => {}
        }
    }

    fn of_disks(&self, found: &mut Found) {
        match self {
            Report::LsmapScsi(report) => {
                for map in &report.adapters {
                    found.location(map.physloc.as_ref(), Some(&map.name));
                }
            }
            Report::DiskPaths(report) => {
                for path in &report.paths {
                    if let Some(serial) = &path.serial {
                        found.add(Identifies::Serial, serial, Some(&path.disk), path.at);
                    }
                }
            }
            Report::PvList(report) => {
                for lun in &report.luns {
                    found.read(Identifies::Serial, lun.udid.as_ref(), Some(&lun.name));
                }
            }
            Report::Lscfg(report) => {
                for device in &report.devices {
                    let name = Some(device.name.as_str());
                    if let Some(location) = &device.location {
                        found.add(Identifies::Location, location, name, device.at);
                    }
                    let mut field = |key: &str, what: Identifies| {
                        if let Some(Info { value, at, .. }) = device.field(key) {
                            found.add(what, value, name, *at);
                        }
                    };
                    field("Serial Number", Identifies::Serial);
                    let ethernet = device.name.starts_with("ent");
                    field(
                        "Network Address",
                        if ethernet { Identifies::Mac } else { Identifies::Wwpn },
                    );
                }
            }
            _ => {}
        }
    }
}

/// Values that were made unreadable.
fn masked(found: &mut Found, head: &Head, device: Option<&str>) {
    for masked in &head.masked {
        let field = masked.field.to_ascii_lowercase();
        let what = match field.as_str() {
            _ if field.contains("port name") || field.contains("wwpn") => Identifies::Wwpn,
            _ if field.contains("machine") => Identifies::MachineSerial,
            _ if field.contains("serial") => Identifies::Serial,
            _ if field.contains("address") => Identifies::Mac,
            _ => continue,
        };
        let known = found.list.iter().any(|known| known.at == masked.at && known.masked);
        if !known {
            found.add(what, &masked.text, device, masked.at);
        }
    }
}
