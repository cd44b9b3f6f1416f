//! A host's Fibre Channel HBA with NPIV, through sysfs: virtual ports, and the disks that appear under them.
//!
//! Nothing uses it yet: ports of the desired state stand for local targets. It is the system's side of a port that stands for an HBA.

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
    /// The target port behind which it is.
    pub target: Wwpn,
    /// Its LUN there.
    pub lun: u16,
    /// Its block device, such as `/dev/sdc`.
    pub device: PathBuf,
}

impl Sysfs {
    /// A sysfs at a folder; the system's is `/sys`.
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
            let [number, bus, target, lun] = parts[..] else { continue };
            if host.strip_prefix("host") != Some(number) {
                continue;
            }
            let lun = lun.parse::<u16>().ok().filter(|lun| *lun <= LUN_MAX);
            let name = format!("class/fc_transport/target{number}:{bus}:{target}/port_name");
            let target = self.name(&self.root.join(name));
            let block = self.entries(&folder.join("device/block"))?;
            // What is no disk has no block device; what is just going away has no target any more.
            if let (Some(target), Some(lun), Some((block, _))) = (target, lun, block.first()) {
                disks.push(Disk { target, lun, device: Path::new("/dev").join(block) });
            }
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
        // A name that leads elsewhere is nobody's HBA.
        let plain = host.strip_prefix("host").is_some_and(|n| n.parse::<u32>().is_ok());
        let node = self.name(&folder.join("node_name")).filter(|_| plain && path.exists());
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
        fs::read_to_string(path).ok()?.trim().parse().ok()
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

#[cfg(test)]
mod tests;
