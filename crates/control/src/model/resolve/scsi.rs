//! Logical units, and what SCSI clients see of them.

use super::commands::{commands, port_share};
use super::parts::{limit, narrow16, narrow32, volume_path};
use crate::model::discovered::naa_of_unit;
use crate::model::naa::{local_naa, naa_of_lu};
use crate::model::{Desired, NOTHING, allocations, home, san};
use crate::paths::Paths;
use fabric::attribute::words::{self, VolumeKind};
use fabric::attribute::{Attributes, Object, attr};
use fabric::san::Expanded;
use spec::{
    FileIdentity, FileSpec, Initiator, LinkSpec, Reservations, ScsiSpec, TargetSpec, UnitSpec,
    VolumeSpec,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What stands before the name of a medium, or of an optical drive, where it is the name of a volume, or of a unit. No object's name
/// has a dot.
pub const MEDIUM_UNIT: &str = "optical.";

/// The unit of a virtual target device: an optical drive of its own, or its volume's.
pub fn unit_of_vtd(name: &str, set: &Attributes) -> String {
    match attr::vtd::VOLUME.of(set) {
        Some(volume) => volume.to_owned(),
        None => format!("{MEDIUM_UNIT}{name}"),
    }
}

/// The units of a data plane.
pub(super) fn units(
    desired: &Desired,
    dataplane: &str,
    paths: &Paths,
) -> BTreeMap<String, UnitSpec> {
    let targets = desired[Object::Target].values().filter(|set| home(set) == dataplane);
    let mut volumes: BTreeSet<String> =
        targets.flat_map(|set| san::luns(set).into_values()).collect();
    let mut units = BTreeMap::new();
    for (name, set) in vtds(desired, dataplane) {
        match attr::vtd::VOLUME.of(set) {
            Some(volume) => volumes.extend([volume.to_owned()]),
            None => {
                let unit = optical(desired, name, set);
                units.insert(unit.name.clone(), unit);
            }
        }
    }
    volumes.extend(desired.discovered.units(desired, dataplane).into_keys());
    units.extend(volumes.into_iter().map(|name| (name.clone(), disk(desired, &name, paths))));
    units
}

fn vtds<'a>(
    desired: &'a Desired,
    dataplane: &'a str,
) -> impl Iterator<Item = (&'a String, &'a Attributes)> {
    desired[Object::Vtd].iter().filter(move |(name, _)| desired.dataplane_of_vtd(name) == dataplane)
}

/// The volumes of the media that are in the drives of a data plane.
pub(super) fn media(
    desired: &Desired,
    dataplane: &str,
    paths: &Paths,
) -> impl Iterator<Item = (String, VolumeSpec)> {
    let loaded: BTreeSet<&str> =
        vtds(desired, dataplane).filter_map(|(_, set)| attr::vtd::MEDIUM.of(set)).collect();
    loaded
        .into_iter()
        .filter_map(|name| {
            let path = paths.medium(name, desired[Object::Medium].get(name)?);
            let name = format!("{MEDIUM_UNIT}{name}");
            Some((name.clone(), plain(name, path, 512, true)))
        })
        .collect::<Vec<_>>()
        .into_iter()
}

/// The volumes of the disks that adapters of a data plane see through HBAs of the host.
pub(super) fn found(
    desired: &Desired,
    dataplane: &str,
) -> impl Iterator<Item = (String, VolumeSpec)> {
    let disks = desired.discovered.units(desired, dataplane).into_iter();
    disks.map(|(name, disk)| {
        (name.clone(), plain(name, disk.device.clone(), disk.block_size, false))
    })
}

/// A volume on something that is there.
fn plain(name: String, path: PathBuf, block_size: u32, read_only: bool) -> VolumeSpec {
    VolumeSpec { block_size, read_only, ..VolumeSpec::new(name, FileSpec::new(path)) }
}

fn disk(desired: &Desired, volume: &str, paths: &Paths) -> UnitSpec {
    let set = desired[Object::Volume].get(volume).unwrap_or(&NOTHING);
    let naa = naa(desired, volume, set);
    UnitSpec {
        serial: attr::volume::UNIT_SERIAL
            .of(set)
            .or(naa.map(serial).as_deref())
            .unwrap_or_default()
            .to_owned(),
        read_only: attr::volume::READ_ONLY.value(set),
        keep: Some(paths.reservations(volume)),
        reservations: reservations(desired, volume, set, paths),
        ..UnitSpec::disk(volume, naa.unwrap_or(NOT_KNOWN))
    }
}

/// In place of the NAA identifier of an LU that is not known to be made. No data plane gets such a unit.
pub const NOT_KNOWN: u64 = 0;

/// The volume of a unit is open. It is known now what an LU is that was being made.
pub(super) fn name_unit(unit: &mut UnitSpec, identity: Option<&FileIdentity>) {
    let naa = identity.and_then(naa_of_lu).filter(|_| unit.naa == NOT_KNOWN);
    let Some(naa) = naa else { return };
    unit.naa = naa;
    if unit.serial.is_empty() {
        unit.serial = serial(naa);
    }
}

/// Whether reservations of a disk can hold. They are this data plane's own, so they are no promise where the disk has a name that does not
/// depend on the server: behind an HBA, and where such a name was given to a device.
fn reservations(desired: &Desired, volume: &str, set: &Attributes, paths: &Paths) -> Reservations {
    let said = |word: words::Reservations| match word {
        words::Reservations::Local => Reservations::Local,
        words::Reservations::Refuse => Reservations::Refuse,
    };
    if naa_of_unit(volume).is_some() {
        let ports = desired.discovered.ports_to(desired, volume);
        let word = |port| attr::port::RESERVATIONS.of(port);
        let mut words = ports.map(|port| word(port).map_or(Reservations::Refuse, said));
        // One that knows of other servers is enough.
        return words.find(|word| *word == Reservations::Refuse).unwrap_or_default();
    }
    let device = || {
        let path = volume_path(volume, set, paths)
            .filter(|_| attr::volume::KIND.of(set) == Some(VolumeKind::File));
        path.is_some_and(|path| path.starts_with("/dev") && !path.starts_with("/dev/shm"))
    };
    match attr::volume::RESERVATIONS.of(set) {
        Some(word) => said(word),
        None if attr::volume::NAA.is_set(set) && device() => Reservations::Refuse,
        None => Reservations::Local,
    }
}

fn optical(desired: &Desired, name: &str, set: &Attributes) -> UnitSpec {
    let unit = unit_of_vtd(name, set);
    let naa = local_naa(allocations::system(desired), &unit);
    UnitSpec {
        volume: attr::vtd::MEDIUM.of(set).map(|medium| format!("{MEDIUM_UNIT}{medium}")),
        ..UnitSpec::drive(unit, naa)
    }
}

/// The NAA identifier of a volume: that of the disk behind an HBA, what was set, that of its LU, else one made from the server's number and the name. `None` while an
/// LU is not known to be made.
pub fn naa(desired: &Desired, volume: &str, set: &Attributes) -> Option<u64> {
    let own = attr::volume::NAA.of(set).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    own.or_else(|| naa_of_unit(volume)).or_else(|| match desired.lu_names_unit(volume) {
        true => desired.identity_of(volume).and_then(naa_of_lu),
        false => Some(local_naa(allocations::system(desired), volume)),
    })
}

/// The serial number of a logical unit that was given none.
fn serial(naa: u64) -> String {
    format!("{naa:016x}")
}

/// What the client of a virtual Fibre Channel adapter sees.
pub(super) fn fc(
    desired: &Desired,
    name: &str,
    set: &Attributes,
    fabric: &Expanded<'_>,
) -> ScsiSpec {
    let targets = fabric.visible(name).into_iter().map(|(id, visible)| TargetSpec {
        id,
        wwpn: Some(visible.wwpn.0),
        port: u16::from(id) + 1,
        luns: visible.luns,
    });
    let wwpn = san::wwpns(set).map_or(0, |pair| pair[0].0);
    ScsiSpec {
        initiator: Initiator::Fc { wwpn },
        targets: targets.collect(),
        commands: commands(desired, set),
        limit: limit(set),
        port: port_share(desired, set),
        link: link(desired, set),
    }
}

/// The link of a virtual Fibre Channel adapter: without a port there is none.
fn link(desired: &Desired, set: &Attributes) -> LinkSpec {
    let port = attr::adapter::PORT.of(set).and_then(|name| desired[Object::Port].get(name));
    match port.map(|port| attr::port::LINK.value(port)) {
        Some(words::Link::Up) => LinkSpec::Up,
        Some(words::Link::Down) | None => {
            let hold = attr::adapter::LINK_HOLD.value(set);
            LinkSpec::Down { hold_ms: narrow32(hold.saturating_mul(1000)) }
        }
    }
}

/// By adapter: its virtual target devices.
pub(super) type VtdsOf<'a> = BTreeMap<&'a str, Vec<(&'a str, &'a Attributes)>>;

/// The virtual target devices of all adapters.
pub(super) fn vtds_of(desired: &Desired) -> VtdsOf<'_> {
    let mut vtds = VtdsOf::new();
    for (name, set) in &desired[Object::Vtd] {
        let adapter = attr::vtd::ADAPTER.of(set).unwrap_or_default();
        vtds.entry(adapter).or_default().push((name, set));
    }
    vtds
}

/// What the client of a virtual SCSI adapter sees: one target with all its devices.
pub(super) fn virtual_scsi(
    desired: &Desired,
    name: &str,
    set: &Attributes,
    vtds: &VtdsOf<'_>,
) -> ScsiSpec {
    let own = vtds.get(name).into_iter().flatten();
    let luns = own
        .filter_map(|(vtd, set)| Some((narrow16(attr::vtd::LUN.of(set)?), unit_of_vtd(vtd, set))));
    let mut id = [0; 16];
    id[..8].copy_from_slice(&allocations::system(desired).to_be_bytes());
    id[8..].copy_from_slice(&local_naa(allocations::system(desired), name).to_be_bytes());
    ScsiSpec {
        initiator: Initiator::Srp { id },
        targets: vec![TargetSpec { id: 0, wwpn: None, port: 1, luns: luns.collect() }],
        commands: commands(desired, set),
        limit: limit(set),
        port: None,
        link: LinkSpec::Up,
    }
}

#[cfg(test)]
mod tests;
