//! A host's Fibre Channel HBA with NPIV, through sysfs: virtual ports, and the disks that appear under them.
//!
//! It is the system's side of a port that stands for an HBA; what of it clients see is in `model::discovered`.

use fabric::san::{LUN_MAX, Wwpn};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The sysfs of a host; tests build one of their own.
#[derive(Debug, Clone)]
pub struct Sysfs {
    root: PathBuf,
}

/// Why something could not be done with an HBA.
#[derive(Debug, thiserror::Error)]
pub enum HbaError {
    /// The host has no such HBA, or it cannot make virtual ports.
    #[error("{host} is no Fibre Channel HBA with NPIV: {path} is missing")]
    NoNpiv {
        /// The HBA's name, `hostN`.
        host: String,
        /// What is missing.
        path: String,
    },
    /// The kernel refused.
    #[error("{path}: {error}")]
    System {
        /// The file.
        path: String,
        /// What it said.
        error: io::Error,
    },
}

/// A disk behind a virtual port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Disk {
    /// The SCSI host that the virtual port is; later ones have higher numbers.
    pub host: u32,
    /// The number that the kernel gave the target port.
    pub id: u8,
    /// The target port behind which it is.
    pub target: Wwpn,
    /// Its LUN there.
    pub lun: u16,
    /// Its block device, such as `/dev/sdc`.
    pub device: PathBuf,
    /// Its logical blocks, in bytes.
    pub block_size: u32,
    /// What names it wherever it appears, such as `naa.6005076…`; where the kernel knows none, its place.
    pub wwid: String,
}

/// Whether this is how the kernel names a SCSI host: `host3`. A name that leads elsewhere is nobody's HBA.
pub fn is_host(name: &str) -> bool {
    let digits = name.strip_prefix("host").unwrap_or_default();
    digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u32>().is_ok()
}

/// Whether the host has a file system, a device mapping or the like on a disk, or on a partition of it.
pub fn is_held(device: &Path) -> bool {
    use rustix::fs::{Mode, OFlags, open};
    // The kernel gives exclusive access to one at a time, and never waits. Without O_CREAT the flag means nothing for files.
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::NONBLOCK | OFlags::CLOEXEC;
    open(device, flags, Mode::empty()).is_err_and(|error| error == rustix::io::Errno::BUSY)
}

impl Sysfs {
    /// A sysfs at a folder, with the devices in `dev` beside it; the system's is `/sys`.
    pub fn at(root: impl Into<PathBuf>) -> Sysfs {
        Sysfs { root: root.into() }
    }

    /// Makes a virtual port on an HBA (`hostN`) that logs in with this WWPN and the HBA's node name. One that is there is left
    /// alone. The disks appear later, as the fabric answers.
    pub fn create(&self, host: &str, wwpn: Wwpn) -> Result<(), HbaError> {
        if self.host_of(wwpn)?.is_some() {
            return Ok(());
        }
        self.order(host, "vport_create", wwpn)
    }

    /// Removes the virtual port; one that is not there is removed already.
    pub fn delete(&self, host: &str, wwpn: Wwpn) -> Result<(), HbaError> {
        if self.host_of(wwpn)?.is_none() {
            return Ok(());
        }
        self.order(host, "vport_delete", wwpn)
    }

    /// The disks that appeared under a virtual port, by target and LUN.
    pub fn disks(&self, wwpn: Wwpn) -> Result<Vec<Disk>, HbaError> {
        let Some(host) = self.host_of(wwpn)? else { return Ok(Vec::new()) };
        let mut disks = Vec::new();
        for (address, folder) in self.entries(&self.root.join("class/scsi_device"))? {
            // host:bus:target:lun
            let parts: Vec<&str> = address.split(':').collect();
            let [number, bus, id, lun] = parts[..] else { continue };
            // Fibre Channel has one bus.
            if host.strip_prefix("host") != Some(number) || bus != "0" {
                continue;
            }
            let name = format!("class/fc_transport/target{number}:{bus}:{id}/port_name");
            let target = self.name(&self.root.join(name));
            let lun = lun.parse::<u16>().ok().filter(|lun| *lun <= LUN_MAX);
            let block = self.entries(&folder.join("device/block"))?.into_iter().next();
            // What is no disk has no block device; what is just going away has no target any more.
            let (Ok(host), Ok(id), Some(target), Some(lun), Some((block, folder_of_block))) =
                (number.parse(), id.parse(), target, lun, block)
            else {
                continue;
            };
            let block_size = text(&folder_of_block.join("queue/logical_block_size"));
            let block_size = block_size.and_then(|size| size.parse().ok()).unwrap_or(512);
            // What is behind a place depends on who looks: disk systems give each initiator its own LUNs.
            let place = || format!("{wwpn}.{target}.{lun}");
            let wwid = text(&folder.join("device/wwid")).unwrap_or_else(place);
            let device = self.root.parent().unwrap_or(&self.root).join("dev").join(block);
            disks.push(Disk { host, id, target, lun, device, block_size, wwid });
        }
        disks.sort();
        Ok(disks)
    }

    /// The SCSI host that logged in with this WWPN.
    fn host_of(&self, wwpn: Wwpn) -> Result<Option<String>, HbaError> {
        let hosts = self.entries(&self.root.join("class/fc_host"))?;
        let own = |folder: &Path| self.name(&folder.join("port_name")) == Some(wwpn);
        Ok(hosts.into_iter().find(|(_, folder)| own(folder)).map(|(name, _)| name))
    }

    fn order(&self, host: &str, order: &str, wwpn: Wwpn) -> Result<(), HbaError> {
        let folder = self.root.join("class/fc_host").join(host);
        let path = folder.join(order);
        let node = self.name(&folder.join("node_name")).filter(|_| is_host(host) && path.exists());
        let Some(node) = node else {
            return Err(HbaError::NoNpiv {
                host: host.to_owned(),
                path: path.display().to_string(),
            });
        };
        fs::write(&path, format!("{:016x}:{:016x}", wwpn.0, node.0))
            .map_err(|error| HbaError::System { path: path.display().to_string(), error })
    }

    /// A file with a world-wide name; nothing where there is none.
    fn name(&self, path: &Path) -> Option<Wwpn> {
        text(path)?.parse().ok()
    }

    /// Names and paths in a folder, sorted; nothing where there is none.
    fn entries(&self, folder: &Path) -> Result<Vec<(String, PathBuf)>, HbaError> {
        let fail = |error| HbaError::System { path: folder.display().to_string(), error };
        let listed = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(fail)?,
        };
        let mut all = Vec::new();
        for entry in listed {
            let entry = entry.map_err(fail)?;
            if let Ok(name) = entry.file_name().into_string() {
                all.push((name, entry.path()));
            }
        }
        all.sort();
        Ok(all)
    }
}

/// What a file says; nothing where there is none, or nothing in it.
fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
