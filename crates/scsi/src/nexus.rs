//! Who speaks: names of initiator ports, target ports and logical units.

use std::fmt;

/// An initiator port, as a TransportID (SPC-4, 7.6.4). It is what persistent reservations remember.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InitiatorId {
    /// Fibre Channel: the WWPN.
    Fc(u64),
    /// SRP, the protocol of virtual SCSI: the initiator port identifier.
    Srp([u8; 16]),
}

/// Bytes of a TransportID of either kind.
pub(crate) const TRANSPORT_ID_BYTES: usize = 24;

impl InitiatorId {
    /// As a TransportID.
    #[must_use]
    pub fn encode(&self) -> [u8; TRANSPORT_ID_BYTES] {
        let mut id = [0; TRANSPORT_ID_BYTES];
        match self {
            InitiatorId::Fc(name) => id[8..16].copy_from_slice(&name.to_be_bytes()),
            InitiatorId::Srp(name) => {
                id[0] = 0x04;
                id[8..24].copy_from_slice(name);
            }
        }
        id
    }

    /// From a TransportID; `None` for other protocols and formats.
    #[must_use]
    pub fn decode(id: &[u8; TRANSPORT_ID_BYTES]) -> Option<InitiatorId> {
        let name: [u8; 16] = id[8..24].try_into().ok()?;
        match id[0] {
            0x00 => {
                let (name, _) = name.split_first_chunk::<8>()?;
                Some(InitiatorId::Fc(u64::from_be_bytes(*name)))
            }
            0x04 => Some(InitiatorId::Srp(name)),
            _ => None,
        }
    }
}

/// An I_T nexus: an initiator port that is logged in to a target port, named by its relative port identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NexusId {
    /// The initiator port.
    pub initiator: InitiatorId,
    /// The target port, from 1.
    pub port: u16,
}

/// A logical unit number of a single level (SAM-5, 4.7): below 256 written with peripheral device addressing, above with flat space
/// addressing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lun(u16);

/// The address of the REPORT LUNS well-known logical unit (SAM-5, 4.7.7.5.1).
pub const REPORT_LUNS_LUN: [u8; 8] = [0xc1, 0x01, 0, 0, 0, 0, 0, 0];

/// What eight bytes of address name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Address {
    /// A logical unit number.
    Lun(Lun),
    /// The well-known logical unit for REPORT LUNS.
    ReportLuns,
    /// Nothing that can exist here.
    Other,
}

impl Lun {
    /// The largest.
    pub const MAX: u16 = 0x3fff;

    /// A number up to [`Lun::MAX`].
    #[must_use]
    pub fn new(number: u16) -> Option<Lun> {
        (number <= Lun::MAX).then_some(Lun(number))
    }

    /// The number.
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// As an address.
    #[must_use]
    pub fn encode(self) -> [u8; 8] {
        let [high, low] = self.0.to_be_bytes();
        let method = if high == 0 { 0 } else { 0x40 };
        [method | high, low, 0, 0, 0, 0, 0, 0]
    }

    /// What an address names. Small numbers may come with either method, since virtio's drivers write them flat (virtio 1.3,
    /// 5.6.6.1).
    #[must_use]
    pub fn decode(address: [u8; 8]) -> Address {
        if address == REPORT_LUNS_LUN {
            return Address::ReportLuns;
        }
        let [high, low, rest @ ..] = address;
        match (high >> 6, rest) {
            (0, [0, 0, 0, 0, 0, 0]) if high == 0 => Address::Lun(Lun(u16::from(low))),
            (1, [0, 0, 0, 0, 0, 0]) => Address::Lun(Lun(u16::from_be_bytes([high & 0x3f, low]))),
            _ => Address::Other,
        }
    }
}

impl fmt::Debug for Lun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lun({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn luns_go_there_and_back() {
        for number in 0..=Lun::MAX {
            let lun = Lun::new(number).expect("in range");
            assert_eq!(Lun::decode(lun.encode()), Address::Lun(lun));
            let [high, low] = number.to_be_bytes();
            assert_eq!(Lun::decode([0x40 | high, low, 0, 0, 0, 0, 0, 0]), Address::Lun(lun));
        }
        assert_eq!(Lun::new(Lun::MAX + 1), None);
        assert_eq!(Lun::decode(REPORT_LUNS_LUN), Address::ReportLuns);
        let others = [[0, 1, 0, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0], [0x80; 8], [0xc1; 8]];
        assert!(others.iter().all(|other| Lun::decode(*other) == Address::Other));
    }

    #[test]
    fn transport_ids_go_there_and_back() {
        let ids = [InitiatorId::Fc(0xc050_7600_1234_0002), InitiatorId::Srp(*b"0123456789abcdef")];
        for id in ids {
            assert_eq!(InitiatorId::decode(&id.encode()), Some(id));
        }
        assert_eq!(
            ids[0].encode()[..16],
            [0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0x50, 0x76, 0, 0x12, 0x34, 0, 2]
        );
        assert_eq!(ids[1].encode()[..9], [4, 0, 0, 0, 0, 0, 0, 0, b'0']);
        let mut other = ids[0].encode();
        other[0] = 0x05;
        assert_eq!(InitiatorId::decode(&other), None);
    }
}
