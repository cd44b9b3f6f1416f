//! SCSI logical units: [`Unit`], from its specification to `scsi::LogicalUnit` and to its status.
//!
//! A unit exists once, whoever sees it. Its persistent reservations are in the file `keep`, if it has one, and are read when it
//! is made ([`crate::keep`]).

use std::sync::Arc;

use block::{Geometry, Volume};
use protocol::message::{
    Failure, FailureCode, Initiator, RegistrationStatus, ReservationStatus, UnitKind, UnitSpec,
    UnitStatus,
};
use scsi::{Identity, InitiatorId, LogicalUnit, Naa, ReservationType, Reserving};
use spec::Reservations;

use crate::keep;

/// What stands behind a unit.
#[derive(Clone)]
pub enum Medium {
    /// Nothing: an optical drive without a disc, or a disk whose volume is being opened.
    None,
    /// A volume that is being replaced.
    Awaited,
    /// A volume.
    Volume(Arc<dyn Volume>),
}

impl Medium {
    /// The volume, if it is there.
    #[must_use]
    pub fn volume(&self) -> Option<&Arc<dyn Volume>> {
        match self {
            Medium::Volume(volume) => Some(volume),
            Medium::None | Medium::Awaited => None,
        }
    }
}

/// A logical unit that exists.
#[derive(Clone)]
pub struct Unit {
    /// What it was made from.
    pub spec: UnitSpec,
    /// What clients share of it.
    pub unit: Arc<LogicalUnit>,
    /// What its data is in.
    pub medium: Medium,
}

impl Unit {
    /// Makes it, with the reservations that were kept, or with those of the one in whose place it comes: to clients it is the same one.
    ///
    /// # Errors
    ///
    /// When these cannot be read, or the specification makes no sense.
    pub fn new(
        spec: UnitSpec,
        volume: Option<Arc<dyn Volume>>,
        before: Option<&LogicalUnit>,
    ) -> Result<Unit, Failure> {
        let geometry = volume.as_ref().map(|volume| volume.geometry());
        check(&spec, geometry.as_ref())?;
        let unit = LogicalUnit::new(form(&spec, geometry));
        // Before its volume is there, no client hears of reservations.
        if let Some(path) = spec.keep.as_ref().filter(|_| !unit.is_awaited()) {
            unit.restore(keep::read(&spec.name, path)?);
        }
        if let Some(before) = before {
            unit.succeed(before);
        }
        let medium = volume.map_or(Medium::None, Medium::Volume);
        Ok(Unit { spec, unit, medium })
    }

    /// Its volume has another size.
    pub fn set_bytes(&self, bytes: u64) {
        self.unit.set_bytes(bytes);
    }

    /// Takes the medium out of an optical drive.
    ///
    /// # Errors
    ///
    /// When a client prevents it.
    pub fn take_medium(&self) -> Result<(), String> {
        self.unit.remove_medium().map_err(|error| error.to_string())
    }

    /// Puts one in.
    pub fn load_medium(&self, bytes: u64) {
        self.unit.set_medium(Some(bytes));
    }

    /// What the control plane is told of it.
    #[must_use]
    pub fn status(&self) -> UnitStatus {
        let (registrations, reservation) = self.unit.registrations();
        let registration = |each: &scsi::Registration| RegistrationStatus {
            initiator: initiator(each.nexus.initiator),
            port: each.nexus.port,
            key: each.key,
        };
        let reservation = reservation.map(|held| ReservationStatus {
            kind: kind_name(held.kind).to_owned(),
            holder: (!held.kind.all_registrants()).then(|| initiator(held.holder.initiator)),
            aptpl: self.unit.keeps_reservations(),
        });
        let medium = self.unit.medium_loaded();
        UnitStatus {
            spec: self.spec.clone(),
            bytes: if medium { self.unit.bytes() } else { 0 },
            medium,
            registrations: registrations.iter().map(registration).collect(),
            reservation,
        }
    }
}

fn check(spec: &UnitSpec, geometry: Option<&Geometry>) -> Result<(), Failure> {
    let invalid = |what: String, help: &str| {
        Err(Failure { code: FailureCode::Invalid, message: what, help: Some(help.to_owned()) })
    };
    if spec.kind == UnitKind::Optical && geometry.is_some_and(|found| found.block_size > 2048) {
        let what = format!("unit {}: a disc has blocks of 2048 bytes", spec.name);
        return invalid(what, "use a volume with blocks of 512 bytes");
    }
    let texts = [("vendor", &spec.vendor, 8), ("product", &spec.product, 16)];
    let revision = [("revision", &spec.revision, 4), ("serial", &spec.serial, 252)];
    for (field, text, most) in texts.into_iter().chain(revision) {
        if text.len() > most || !text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
            let what = format!("unit {}: {field} is `{text}`", spec.name);
            return invalid(what, &format!("use at most {most} printable ASCII characters"));
        }
    }
    match &spec.keep {
        Some(path) if !path.parent().is_some_and(|folder| folder.is_dir()) => {
            let what = format!(
                "unit {}: there is no folder for the reservations in {}",
                spec.name,
                path.display()
            );
            invalid(what, "make it, writable for the data plane's user")
        }
        _ => Ok(()),
    }
}

/// What `scsi` makes of a specification.
fn form(spec: &UnitSpec, geometry: Option<Geometry>) -> scsi::UnitSpec {
    let identity = Identity {
        vendor: spec.vendor.clone(),
        product: spec.product.clone(),
        revision: spec.revision.clone(),
        serial: spec.serial.clone(),
        naa: Naa::Short(spec.naa),
    };
    let reserving = match (spec.reservations, &spec.keep) {
        (Reservations::Refuse, _) => Reserving::Refused,
        (Reservations::Local, Some(_)) => Reserving::Kept,
        (Reservations::Local, None) => Reserving::Lost,
    };
    match (spec.kind, geometry) {
        (UnitKind::Disk, Some(geometry)) => scsi::UnitSpec {
            read_only: spec.read_only,
            thin: spec.thin,
            reserving,
            ..scsi::UnitSpec::new(identity, geometry)
        },
        (UnitKind::Disk, None) => scsi::UnitSpec { reserving, ..scsi::UnitSpec::awaited(identity) },
        (UnitKind::Optical, geometry) => {
            scsi::UnitSpec::optical(identity, geometry.map(|found| found.bytes))
        }
    }
}

/// The name of an initiator port as `scsi` writes it.
pub(crate) fn initiator_id(initiator: &Initiator) -> InitiatorId {
    match initiator {
        Initiator::Fc { wwpn } => InitiatorId::Fc(*wwpn),
        Initiator::Srp { id } => InitiatorId::Srp(*id),
    }
}

fn initiator(id: InitiatorId) -> Initiator {
    match id {
        InitiatorId::Fc(wwpn) => Initiator::Fc { wwpn },
        InitiatorId::Srp(id) => Initiator::Srp { id },
    }
}

fn kind_name(kind: ReservationType) -> &'static str {
    match kind {
        ReservationType::WriteExclusive => "Write Exclusive",
        ReservationType::ExclusiveAccess => "Exclusive Access",
        ReservationType::WriteExclusiveRegistrantsOnly => "Write Exclusive - Registrants Only",
        ReservationType::ExclusiveAccessRegistrantsOnly => "Exclusive Access - Registrants Only",
        ReservationType::WriteExclusiveAllRegistrants => "Write Exclusive - All Registrants",
        ReservationType::ExclusiveAccessAllRegistrants => "Exclusive Access - All Registrants",
    }
}

#[cfg(test)]
mod tests;
