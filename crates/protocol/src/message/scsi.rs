//! What exists of SCSI.

use serde::{Deserialize, Serialize};

use super::{Initiator, UnitSpec};

/// A logical unit that exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitStatus {
    /// Its specification.
    pub spec: UnitSpec,
    /// Capacity in bytes; 0 without a medium.
    pub bytes: u64,
    /// Whether a medium is loaded; a client may have ejected it.
    pub medium: bool,
    /// Who is registered for persistent reservations.
    #[serde(default)]
    pub registrations: Vec<RegistrationStatus>,
    /// The persistent reservation, if there is one.
    #[serde(default)]
    pub reservation: Option<ReservationStatus>,
}

/// A registered I_T nexus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistrationStatus {
    /// The initiator port.
    pub initiator: Initiator,
    /// The target port's relative identifier.
    pub port: u16,
    /// Its reservation key.
    pub key: u64,
}

/// A persistent reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationStatus {
    /// Its type as SPC-4, table 64, names it.
    pub kind: String,
    /// The initiator port that holds it; none with the types that all registrants hold.
    #[serde(default)]
    pub holder: Option<Initiator>,
    /// Whether it survives a loss of power (APTPL).
    pub aptpl: bool,
}
