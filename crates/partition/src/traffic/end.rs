//! One of the two clients: what it has to send, and what it makes of what comes.

use super::wire::Wire;
use super::{ETHERNET, HEADERS, Place, Requests, Stream, Tally, TrafficError, TrafficOptions};
use crate::net::HEADER_BYTES;

/// Bytes of a frame's head: Ethernet, IPv4, TCP with time stamps.
const HEAD: usize = (ETHERNET + HEADERS) as usize;

/// TCP frames of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What stands before each ([`crate::net::HEADER_BYTES`]).
    pub header: [u8; HEADER_BYTES],
    /// How each begins.
    pub head: [u8; HEAD],
    /// How long each is.
    pub bytes: u32,
}

/// A client.
pub(super) struct End {
    wire: Wire,
    data: Option<Kind>,
    ack: Kind,
    request: Option<Kind>,
    /// Whether it asks or answers.
    asks: bool,
    /// Packets of its stream in each burst, and requests without a response.
    windows: (u16, u16),
    /// Requests without a response.
    asked: u16,
    /// Frames that it has sent, and that have come to it.
    sent: u64,
    arrived: u64,
    /// What it has to answer with: acknowledgements and responses.
    owed: (u16, u16),
    /// A packet that came, and the next of which is acknowledged with it.
    half: bool,
    /// Whether anything has come from the other one.
    heard: bool,
}

impl End {
    pub(super) fn new(
        place: Place<'_>,
        options: &TrafficOptions,
        index: usize,
    ) -> Result<End, TrafficError> {
        let wire = Wire::new(place, options.longest() + HEADER_BYTES as u32)?;
        let kind = |packet: u32, mtu: u32| Kind::new(options.macs, index, packet, mtu);
        let sends = |stream: &Stream| index == 0 || stream.duplex;
        let stream = options.stream.filter(sends);
        let request = |requests: Requests| kind(requests.bytes + HEADERS, u32::MAX);
        let requests = options.requests.filter(|_| index == 0);
        Ok(End {
            wire,
            data: options.stream.map(|stream| kind(stream.packet, stream.mtu)),
            ack: kind(HEADERS, u32::MAX),
            request: options.requests.map(request),
            asks: index == 0,
            windows: (stream.map_or(0, |s| s.window), requests.map_or(0, |r| r.window)),
            asked: 0,
            sent: 0,
            arrived: 0,
            owed: (0, 0),
            half: false,
            heard: false,
        })
    }

    /// Sends no more of its stream in a burst than the other one's socket has room for.
    pub(super) fn leave_room(&mut self, to: &End) {
        if let (Some(room), Some(data)) = (to.wire.room(), &self.data) {
            // The kernel counts what a frame takes of its memory; the other half is for what is no stream.
            let each = 2 * data.bytes as usize + 1024;
            let most = u16::try_from(room / 2 / each).unwrap_or(u16::MAX).max(2);
            self.windows.0 = self.windows.0.min(most);
        }
    }

    /// Frames that it sent and that have not come to the other one.
    pub(super) fn on_their_way(&self, to: &End) -> u64 {
        self.sent.saturating_sub(to.arrived)
    }

    /// Says that it is there; whether the other one was heard.
    pub(super) fn greet(&mut self) -> Result<bool, TrafficError> {
        let mut came = false;
        while let Some(bytes) = self.wire.next()? {
            came = true;
            self.heard |= bytes == self.ack.bytes;
        }
        self.wire.settle(came)?;
        self.wire.add(&self.ack.header, &self.ack.head, self.ack.bytes)?;
        self.wire.publish()?;
        Ok(self.heard)
    }

    /// What comes now belongs to greetings; whether anything did.
    pub(super) fn forget(&mut self) -> Result<bool, TrafficError> {
        let mut came = false;
        while self.wire.next()?.is_some() {
            came = true;
        }
        self.wire.settle(came)?;
        Ok(came)
    }

    /// Takes what has come.
    pub(super) fn receive(&mut self, tally: &mut Tally) -> Result<(), TrafficError> {
        let mut came = false;
        while let Some(bytes) = self.wire.next()? {
            came = true;
            self.came(bytes, tally);
        }
        if came {
            self.wire.settle(true)?;
        }
        Ok(())
    }

    fn came(&mut self, bytes: u32, tally: &mut Tally) {
        let is = |kind: &Option<Kind>| kind.as_ref().is_some_and(|kind| kind.bytes == bytes);
        if is(&self.data) {
            tally.stream_bytes += u64::from(bytes - HEAD as u32);
            self.owed.0 += u16::from(self.half);
            self.half = !self.half;
        } else if is(&self.request) && self.asks {
            tally.transactions += 1;
            self.asked = self.asked.saturating_sub(1);
        } else if is(&self.request) {
            self.owed.1 += 1;
        } else if bytes != self.ack.bytes {
            // The host's own, behind a TAP.
            return;
        }
        self.arrived += 1;
        tally.frames += 1;
    }

    /// Sends what it owes, the requests that it may, and a burst of its stream.
    pub(super) fn send(&mut self) -> Result<(), TrafficError> {
        let End { wire, data, ack, request, windows, asked, sent, owed, .. } = self;
        wire.settle(false)?;
        let before = *sent;
        let mut add = |kind: &Kind| -> Result<bool, TrafficError> {
            let is_added = wire.add(&kind.header, &kind.head, kind.bytes)?;
            *sent += u64::from(is_added);
            Ok(is_added)
        };
        if let Some(request) = request {
            while owed.1 > 0 && add(request)? {
                owed.1 -= 1;
            }
            // Half of them, so that requests and responses are on their way in every burst.
            let mut left = windows.1.div_ceil(2);
            while left > 0 && *asked < windows.1 && add(request)? {
                *asked += 1;
                left -= 1;
            }
        }
        while owed.0 > 0 && add(ack)? {
            owed.0 -= 1;
        }
        if let Some(data) = data {
            let mut left = windows.0;
            while left > 0 && add(data)? {
                left -= 1;
            }
        }
        if *sent > before {
            wire.publish()?;
        }
        Ok(())
    }
}

impl Kind {
    /// Sent by the card of this number to the other one. Checksums are left to the server, and cutting, where the packet is longer than the MTU.
    #[must_use]
    pub fn new(macs: [[u8; 6]; 2], from: usize, packet: u32, mtu: u32) -> Kind {
        let mut header = [0; HEADER_BYTES];
        // VIRTIO_NET_HDR_F_NEEDS_CSUM: from the start of TCP, to 16 bytes behind that.
        header[0] = 1;
        header[6..8].copy_from_slice(&34u16.to_le_bytes());
        header[8..10].copy_from_slice(&16u16.to_le_bytes());
        if packet > mtu {
            // VIRTIO_NET_HDR_GSO_TCPV4.
            header[1] = 1;
            header[2..4].copy_from_slice(&(HEAD as u16).to_le_bytes());
            let segment = u16::try_from(mtu - HEADERS).unwrap_or(u16::MAX);
            header[4..6].copy_from_slice(&segment.to_le_bytes());
        }
        let mut head = [0; HEAD];
        head[..6].copy_from_slice(&macs[1 - from]);
        head[6..12].copy_from_slice(&macs[from]);
        head[12..14].copy_from_slice(&[8, 0]);
        let ip = &mut head[14..34];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&u16::try_from(packet).unwrap_or(u16::MAX).to_be_bytes());
        ip[6] = 0x40;
        ip[8] = 64;
        ip[9] = 6;
        let address = |number: usize| [192, 0, 2, 1 + number as u8];
        ip[12..16].copy_from_slice(&address(from));
        ip[16..20].copy_from_slice(&address(1 - from));
        let sum = checksum(ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        let tcp = &mut head[34..];
        tcp[..4].copy_from_slice(&[0x30, 0x39, 0x30, 0x39]);
        // 32 bytes; ACK.
        tcp[12..14].copy_from_slice(&[0x80, 0x10]);
        tcp[14..16].copy_from_slice(&[0xff, 0xff]);
        // Two of nothing, then time stamps.
        tcp[20..24].copy_from_slice(&[1, 1, 8, 10]);
        Kind { header, head, bytes: packet + ETHERNET }
    }
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_header_with_its_checksum_is_nothing() {
        let kind = Kind::new([[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]], 0, 1500, 1500);
        assert_eq!(checksum(&kind.head[14..34]), 0);
        assert_eq!((kind.bytes, kind.header[1]), (1514, 0));
    }

    #[test]
    fn a_packet_beyond_the_mtu_says_how_it_is_to_be_cut() {
        let kind = Kind::new([[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]], 1, 65212, 1500);
        assert_eq!(kind.header[1], 1);
        assert_eq!(u16::from_le_bytes([kind.header[4], kind.header[5]]), 1448);
        assert_eq!(kind.head[..12], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    }
}
