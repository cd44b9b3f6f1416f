//! Reservations of a logical unit: persistent ones (SPC-4, 5.13) and RESERVE/RELEASE (SPC-2, 5.5.1). Pure.
//!
//! [`Reservations`] is a value. A service action of PERSISTENT RESERVE OUT makes a [`Change`] from it: the value that follows,
//! who is to be told what, and whose commands are to be aborted. The caller stores the new value if it has to survive a
//! power loss, and then puts it in place.

mod out;
mod persist;
mod report;

pub(crate) use out::{Order, Refusal, parse};
pub use persist::{Persistent, PersistentError};

use crate::attention::{Attention, Level};
use crate::nexus::NexusId;

/// Registrations of one logical unit. More clients than an adapter limit of any port allows.
pub const REGISTRATIONS_MAX: usize = 512;

/// Types of a persistent reservation (SPC-4, table 68).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ReservationType {
    /// One may write, all may read.
    WriteExclusive = 0x1,
    /// One may access.
    ExclusiveAccess = 0x3,
    /// The registered may write, all may read; one holds it.
    WriteExclusiveRegistrantsOnly = 0x5,
    /// The registered may access; one holds it.
    ExclusiveAccessRegistrantsOnly = 0x6,
    /// The registered may write, all may read; each of them holds it.
    WriteExclusiveAllRegistrants = 0x7,
    /// The registered may access; each of them holds it.
    ExclusiveAccessAllRegistrants = 0x8,
}

impl ReservationType {
    /// All six.
    pub const ALL: [ReservationType; 6] = [
        ReservationType::WriteExclusive,
        ReservationType::ExclusiveAccess,
        ReservationType::WriteExclusiveRegistrantsOnly,
        ReservationType::ExclusiveAccessRegistrantsOnly,
        ReservationType::WriteExclusiveAllRegistrants,
        ReservationType::ExclusiveAccessAllRegistrants,
    ];

    /// From the TYPE field.
    #[must_use]
    pub fn decode(value: u8) -> Option<ReservationType> {
        ReservationType::ALL.into_iter().find(|each| *each as u8 == value)
    }

    /// Whether every registrant is a holder.
    #[must_use]
    pub fn all_registrants(self) -> bool {
        use ReservationType as T;
        matches!(self, T::WriteExclusiveAllRegistrants | T::ExclusiveAccessAllRegistrants)
    }

    /// Whether every registrant has the holder's access.
    #[must_use]
    pub fn registrants(self) -> bool {
        !matches!(self, ReservationType::WriteExclusive | ReservationType::ExclusiveAccess)
    }

    /// Whether everybody may read.
    #[must_use]
    pub fn write_exclusive(self) -> bool {
        use ReservationType as T;
        matches!(
            self,
            T::WriteExclusive | T::WriteExclusiveRegistrantsOnly | T::WriteExclusiveAllRegistrants
        )
    }
}

/// A reservation key that somebody registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registration {
    /// Who.
    pub nexus: NexusId,
    /// The key, which is not 0.
    pub key: u64,
    /// It is one for all target ports (ALL_TG_PT), those that come later among them. Then the initiator port is registered with this key through
    /// every target port that there is.
    pub all_ports: bool,
}

/// The persistent reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// Its type.
    pub kind: ReservationType,
    /// Who made it. With an all-registrants type every registrant is a holder, and this is only one of them.
    pub holder: NexusId,
}

/// The state of a logical unit's reservations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reservations {
    /// PRGENERATION.
    pub(crate) generation: u32,
    /// In the order in which they were made.
    pub(crate) registrations: Vec<Registration>,
    pub(crate) reservation: Option<Reservation>,
    /// What the last registration said: all of this survives a power loss.
    pub(crate) aptpl: bool,
    /// Who holds a RESERVE.
    pub(crate) reserve: Option<NexusId>,
}

/// What follows from a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) next: Reservations,
    /// Who is told what.
    pub(crate) tell: Vec<(NexusId, Attention)>,
    /// Whose commands are to be aborted before the answer.
    pub(crate) abort: Vec<NexusId>,
}

impl Change {
    fn to(next: Reservations) -> Change {
        Change { next, tell: Vec::new(), abort: Vec::new() }
    }
}

impl Reservations {
    pub(crate) fn key(&self, nexus: NexusId) -> Option<u64> {
        self.registrations.iter().find(|each| each.nexus == nexus).map(|each| each.key)
    }

    /// Whether a nexus holds the persistent reservation.
    pub(crate) fn holds(&self, nexus: NexusId) -> bool {
        self.reservation.is_some_and(|reservation| {
            if reservation.kind.all_registrants() {
                self.key(nexus).is_some()
            } else {
                reservation.holder == nexus
            }
        })
    }

    /// What is left to a nexus.
    pub(crate) fn level(&self, nexus: NexusId) -> Level {
        if self.reserve.is_some_and(|holder| holder != nexus) {
            return Level::Reserved;
        }
        let Some(reservation) = self.reservation else {
            return Level::Full;
        };
        let registered = reservation.kind.registrants() && self.key(nexus).is_some();
        match reservation.kind.write_exclusive() {
            _ if registered || self.holds(nexus) => Level::Full,
            true => Level::Read,
            false => Level::Nothing,
        }
    }

    /// RESERVE(6) and RESERVE(10). `Err`: reservation conflict. A registered I_T nexus that has full access gets its way and nothing
    /// happens (SPC-3, 5.6.3, the exceptions that CRH announces).
    pub(crate) fn reserve(&mut self, nexus: NexusId) -> Result<(), Conflict> {
        if !self.registrations.is_empty() {
            let allowed = self.reservation.is_some() && self.level(nexus) == Level::Full;
            return if allowed { Ok(()) } else { Err(Conflict) };
        }
        if self.reserve.is_some_and(|holder| holder != nexus) {
            return Err(Conflict);
        }
        self.reserve = Some(nexus);
        Ok(())
    }

    /// RELEASE(6) and RELEASE(10). Somebody else's reservation stays.
    pub(crate) fn release(&mut self, nexus: NexusId) -> Result<(), Conflict> {
        if !self.registrations.is_empty() {
            let allowed = self.reservation.is_some() && self.level(nexus) == Level::Full;
            return if allowed { Ok(()) } else { Err(Conflict) };
        }
        if self.reserve == Some(nexus) {
            self.reserve = None;
        }
        Ok(())
    }

    /// Somebody comes. ALL_TG_PT is as if the registration had been sent through each target port (SPC-4, 5.13.7): also through
    /// one that his initiator port has not come by before.
    pub(crate) fn arrive(&mut self, nexus: NexusId) {
        let sibling =
            |each: &&Registration| each.all_ports && each.nexus.initiator == nexus.initiator;
        if self.key(nexus).is_some() || self.registrations.len() >= REGISTRATIONS_MAX {
            return;
        }
        if let Some(sibling) = self.registrations.iter().find(sibling).copied() {
            self.registrations.push(Registration { nexus, ..sibling });
        }
    }

    fn others(&self, nexus: NexusId) -> impl Iterator<Item = NexusId> {
        self.registrations.iter().map(|each| each.nexus).filter(move |each| *each != nexus)
    }
}

/// RESERVATION CONFLICT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conflict;

#[cfg(test)]
mod tests;
