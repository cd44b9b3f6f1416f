//! A frame that says where a station is: switches learn it, and stations do not answer.

use crate::address::Mac;

/// Bytes of an announcement: the shortest frame, without its checksum.
pub const ANNOUNCEMENT_BYTES: usize = 60;

/// A reverse ARP request (RFC 903) of a station for itself, to everybody: what QEMU sends for its guests after a migration.
#[must_use]
pub fn announcement(station: Mac) -> [u8; ANNOUNCEMENT_BYTES] {
    let mut frame = [0; ANNOUNCEMENT_BYTES];
    let nobody = [0; 4];
    let parts: [&[u8]; 7] = [
        &Mac::BROADCAST.0,
        &station.0,
        // RARP; Ethernet, IPv4, lengths of their addresses; request reverse.
        &[0x80, 0x35, 0, 1, 0x08, 0x00, 6, 4, 0, 3],
        &station.0,
        &nobody,
        &station.0,
        &nobody,
    ];
    let mut at = 0;
    for part in parts {
        frame[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_reverse_arp_request_to_everybody() {
        let station = [2, 0, 0, 0, 0, 7];
        let frame = announcement(Mac(station));
        let read = etherparse::SlicedPacket::from_ethernet(&frame).expect("a frame");
        let Some(etherparse::LinkSlice::Ethernet2(link)) = read.link else { panic!("{read:?}") };
        assert_eq!((link.destination(), link.source()), ([0xff; 6], station));
        assert_eq!(link.ether_type().0, 0x8035);
        assert_eq!(frame[14..22], [0, 1, 8, 0, 6, 4, 0, 3]);
        assert_eq!((&frame[22..28], &frame[32..38]), (&station[..], &station[..]));
        assert_eq!(frame[42..], [0; 18]);
    }
}
