//! [`Persistent`]: what survives a power loss, and its form as bytes.
//!
//! ```text
//! magic "TLPR" · version 1 (1) · type or 0 (1) · holder's index (2) · registrations (2) · reserved (6)
//! each registration: key (8) · relative target port (2) · 1 for all target ports (1) · reserved (5) · TransportID (24)
//! checksum of all before (8)
//! ```
//!
//! Numbers have their most significant byte first. The checksum is FNV-1a over 64 bits: it tells a torn file from a whole one,
//! and protects against nobody. PRGENERATION is not kept: it is 0 after a power loss (SPC-4, 6.15.2).

use super::{REGISTRATIONS_MAX, Registration, Reservation, ReservationType, Reservations};
use crate::nexus::{InitiatorId, NexusId, TRANSPORT_ID_BYTES};
use crate::wire::{be16, be64};

const MAGIC: &[u8; 4] = b"TLPR";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 16 + TRANSPORT_ID_BYTES;
const CHECKSUM_BYTES: usize = 8;

/// Registrations and reservation of a logical unit, to be kept while its server is down. Empty when nobody asked for that
/// (APTPL).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Persistent {
    /// Who is registered, in the order in which they did.
    pub registrations: Vec<Registration>,
    /// The reservation. Its holder is one of the registered.
    pub reservation: Option<Reservation>,
}

/// Why bytes are no [`Persistent`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PersistentError {
    /// Another format, or none.
    #[error("this is no reservation state")]
    Unknown,
    /// Written by a later version.
    #[error("the reservation state has version {0}, and this program knows only {VERSION}")]
    Version(u8),
    /// Cut short or changed.
    #[error("the reservation state is damaged")]
    Damaged,
}

impl Persistent {
    /// Whether there is nothing to keep.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.registrations.is_empty()
    }

    /// As bytes.
    ///
    /// # Panics
    ///
    /// When there are more than [`REGISTRATIONS_MAX`] registrations, which no logical unit hands out.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.registrations.len() <= REGISTRATIONS_MAX, "more registrations than the limit");
        let count = self.registrations.len() as u16;
        let holder = self.reservation.map_or(0, |reservation| {
            self.registrations
                .iter()
                .position(|each| each.nexus == reservation.holder)
                .map_or(u16::MAX, |index| index as u16)
        });
        let kind = self.reservation.map_or(0, |reservation| reservation.kind as u8);
        let mut bytes = MAGIC.to_vec();
        bytes.extend([VERSION, kind]);
        bytes.extend(holder.to_be_bytes());
        bytes.extend(count.to_be_bytes());
        bytes.extend([0; 6]);
        for each in &self.registrations {
            bytes.extend(each.key.to_be_bytes());
            bytes.extend(each.nexus.port.to_be_bytes());
            bytes.extend([u8::from(each.all_ports), 0, 0, 0, 0, 0]);
            bytes.extend(each.nexus.initiator.encode());
        }
        bytes.extend(checksum(&bytes).to_be_bytes());
        bytes
    }

    /// From bytes.
    ///
    /// # Errors
    ///
    /// When they are no whole state of a version that is known here.
    pub fn decode(bytes: &[u8]) -> Result<Persistent, PersistentError> {
        if bytes.len() < HEADER_BYTES + CHECKSUM_BYTES || !bytes.starts_with(MAGIC) {
            return Err(PersistentError::Unknown);
        }
        if bytes[4] != VERSION {
            return Err(PersistentError::Version(bytes[4]));
        }
        let (body, sum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        let count = usize::from(be16(body, 8));
        let whole = body.len() == HEADER_BYTES + count * ENTRY_BYTES;
        if !whole || checksum(body) != be64(sum, 0) || count > REGISTRATIONS_MAX {
            return Err(PersistentError::Damaged);
        }
        let entries = body[HEADER_BYTES..].chunks_exact(ENTRY_BYTES);
        let registrations: Option<Vec<Registration>> = entries.map(entry).collect();
        let registrations = registrations.ok_or(PersistentError::Damaged)?;
        let holder = registrations.get(usize::from(be16(body, 6)));
        let reservation = match (body[5], ReservationType::decode(body[5]), holder) {
            (0, ..) => None,
            (_, Some(kind), Some(holder)) => Some(Reservation { kind, holder: holder.nexus }),
            _ => return Err(PersistentError::Damaged),
        };
        let state = Persistent { registrations, reservation };
        if state.is_sane() { Ok(state) } else { Err(PersistentError::Damaged) }
    }

    /// Nobody is registered twice or with key 0, and the holder is registered.
    pub(crate) fn is_sane(&self) -> bool {
        let all = &self.registrations;
        let once = |each: &Registration| all.iter().filter(|o| o.nexus == each.nexus).count() == 1;
        let holder =
            self.reservation.is_none_or(|held| all.iter().any(|each| each.nexus == held.holder));
        all.len() <= REGISTRATIONS_MAX
            && holder
            && all.iter().all(|each| each.key != 0 && once(each))
    }
}

fn entry(bytes: &[u8]) -> Option<Registration> {
    let (_, id) = bytes.split_last_chunk::<TRANSPORT_ID_BYTES>()?;
    let nexus = NexusId { initiator: InitiatorId::decode(id)?, port: be16(bytes, 8) };
    Some(Registration { nexus, key: be64(bytes, 0), all_ports: bytes[10] & 1 != 0 })
}

fn checksum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

impl Reservations {
    /// What has to be kept of this state.
    pub(crate) fn persistent(&self) -> Persistent {
        if !self.aptpl {
            return Persistent::default();
        }
        Persistent { registrations: self.registrations.clone(), reservation: self.reservation }
    }

    /// The state after a power loss (SPC-4, 5.13.5).
    pub(crate) fn restored(kept: Persistent) -> Reservations {
        let Persistent { registrations, reservation } = kept;
        let aptpl = !registrations.is_empty();
        Reservations { registrations, reservation, aptpl, ..Reservations::default() }
    }
}
