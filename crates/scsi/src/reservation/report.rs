//! PERSISTENT RESERVE IN (SPC-4, 6.15).

use super::Reservations;
use crate::nexus::TRANSPORT_ID_BYTES;
use crate::wire::len32;

impl Reservations {
    /// The whole answer to a service action, which the table of commands says exists. `kept`: the state can survive a power loss.
    pub(crate) fn report(&self, action: u8, kept: bool) -> Vec<u8> {
        match action {
            0 => self.keys(),
            1 => self.holder(),
            2 => capabilities(self.aptpl, kept).to_vec(),
            _ => self.full_status(),
        }
    }

    fn headed(&self, list: &[u8]) -> Vec<u8> {
        let mut bytes = self.generation.to_be_bytes().to_vec();
        bytes.extend(len32(list.len()).to_be_bytes());
        bytes.extend(list);
        bytes
    }

    /// READ KEYS (6.15.2).
    fn keys(&self) -> Vec<u8> {
        let keys: Vec<u8> =
            self.registrations.iter().flat_map(|each| each.key.to_be_bytes()).collect();
        self.headed(&keys)
    }

    /// READ RESERVATION (6.15.3).
    fn holder(&self) -> Vec<u8> {
        let Some(reservation) = self.reservation else {
            return self.headed(&[]);
        };
        let all = reservation.kind.all_registrants();
        let key = if all { 0 } else { self.key(reservation.holder).unwrap_or(0) };
        let mut list = [0; 16];
        list[..8].copy_from_slice(&key.to_be_bytes());
        // SCOPE 0 is the logical unit.
        list[13] = reservation.kind as u8;
        self.headed(&list)
    }

    /// READ FULL STATUS (6.15.5).
    fn full_status(&self) -> Vec<u8> {
        let mut list = Vec::with_capacity(self.registrations.len() * (24 + TRANSPORT_ID_BYTES));
        for each in &self.registrations {
            let holds = self.holds(each.nexus);
            let kind = self.reservation.filter(|_| holds).map_or(0, |held| held.kind as u8);
            list.extend(each.key.to_be_bytes());
            list.extend([0, 0, 0, 0, u8::from(holds), kind, 0, 0, 0, 0]);
            list.extend(each.nexus.port.to_be_bytes());
            let id = each.nexus.initiator.encode();
            list.extend(len32(id.len()).to_be_bytes());
            list.extend(id);
        }
        self.headed(&list)
    }
}

/// REPORT CAPABILITIES (6.15.4): compatible RESERVE handling, registrations for other initiator and target ports, persistence through power
/// loss where there is something to keep the state in, all six types.
fn capabilities(aptpl: bool, kept: bool) -> [u8; 8] {
    const CRH: u8 = 0x10;
    const SIP_C: u8 = 0x08;
    const ATP_C: u8 = 0x04;
    const TMV: u8 = 0x80;
    let ptpl_c = u8::from(kept);
    [0, 8, CRH | SIP_C | ATP_C | ptpl_c, TMV | u8::from(aptpl), 0xea, 0x01, 0, 0]
}
