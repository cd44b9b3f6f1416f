//! What the host's HBAs show: the virtual ports that adapters have there, and the disks behind them.
//!
//! A port with the attribute `host` stands for an HBA. It is looked up, not wanted: no configuration has it, and it is not kept.

use super::naa::local_naa;
use super::{Desired, san};
use crate::error::ApiError;
use crate::hba::Disk;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attributes, Object, attr};
use fabric::san::{Visible, Wwpn};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What stands before the identifier of a disk where it is the name of a volume, and of a unit. No object's name has a dot.
pub(crate) const HBA_UNIT: &str = "hba.";

/// A virtual port on an HBA.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Vport {
    /// The HBA, `hostN`.
    pub host: String,
    /// With which it logs in.
    pub wwpn: Wwpn,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Discovered {
    /// By adapter that has a virtual port: the disks behind it.
    pub seen: BTreeMap<String, Vec<Disk>>,
    /// By adapter: why it has no virtual port, or lacks a disk.
    pub troubles: BTreeMap<String, ApiError>,
}

/// The virtual port that each adapter shall have which is mapped to a port that stands for an HBA.
pub fn vports(desired: &Desired) -> BTreeMap<String, Vport> {
    // There are few ports, and many adapters.
    if !desired[Object::Port].values().any(|set| attr::port::HOST.is_set(set)) {
        return BTreeMap::new();
    }
    let fc = desired[Object::Adapter]
        .iter()
        .filter(|(_, set)| attr::adapter::KIND.value(set) == AdapterKind::Fc);
    let vports = fc.filter_map(|(name, set)| {
        let host = attr::port::HOST.of(desired[Object::Port].get(attr::adapter::PORT.of(set)?)?)?;
        Some((name.clone(), Vport { host: host.to_owned(), wwpn: san::wwpns(set)?[0] }))
    });
    vports.collect()
}

/// The identifier of a disk that is a unit of this name.
pub fn naa_of_unit(name: &str) -> Option<u64> {
    u64::from_str_radix(name.strip_prefix(HBA_UNIT)?, 16).ok()
}

/// The identifier under which clients know a disk. All paths to one disk have the same, on every server.
fn naa(disk: &Disk) -> u64 {
    let own = disk
        .wwid
        .strip_prefix("naa.")
        .filter(|digits| digits.len() == 16 && digits.starts_with(['2', '3', '5']));
    let own = own.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    own.unwrap_or_else(|| local_naa(0, &disk.wwid))
}

/// The unit of a disk, and its volume.
pub fn unit(disk: &Disk) -> String {
    format!("{HBA_UNIT}{:016x}", naa(disk))
}

impl Discovered {
    /// What each adapter sees, by the number of the target.
    pub fn visible(&self) -> BTreeMap<String, BTreeMap<u8, Visible>> {
        let all = self.seen.iter().map(|(adapter, disks)| {
            let mut targets: BTreeMap<u8, Visible> = BTreeMap::new();
            for disk in disks {
                let target = targets.entry(disk.id).or_insert_with(|| Visible {
                    target: disk.target.to_string(),
                    wwpn: disk.target,
                    luns: BTreeMap::new(),
                });
                target.luns.insert(disk.lun, unit(disk));
            }
            (adapter.clone(), targets)
        });
        all.collect()
    }

    /// The disks that the adapters of a data plane see, by unit. Of several paths to one the oldest is taken, so that a new one
    /// changes nothing.
    pub fn units(&self, desired: &Desired, dataplane: &str) -> BTreeMap<String, &Disk> {
        let seen = self.seen.iter();
        let own = seen.filter(|(name, _)| desired.dataplane_of_adapter(name) == dataplane);
        let mut units: BTreeMap<String, &Disk> = BTreeMap::new();
        for disk in own.flat_map(|(_, disks)| disks) {
            let first = units.entry(unit(disk)).or_insert(disk);
            *first = disk.min(first);
        }
        units
    }

    /// The ports through whose HBAs a unit is seen.
    pub fn ports_to<'a>(
        &'a self,
        desired: &'a Desired,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Attributes> {
        let seers =
            self.seen.iter().filter(move |(_, disks)| disks.iter().any(|disk| unit(disk) == name));
        seers.filter_map(|(adapter, _)| {
            desired[Object::Port]
                .get(attr::adapter::PORT.of(desired[Object::Adapter].get(adapter)?)?)
        })
    }

    /// The adapters that have no virtual port, and why.
    pub fn failures(&self) -> impl Iterator<Item = (String, ApiError)> {
        let failed = self.troubles.iter().filter(|(name, _)| !self.seen.contains_key(*name));
        failed.map(|(name, why)| (name.clone(), why.clone()))
    }
}

#[cfg(test)]
mod tests;
