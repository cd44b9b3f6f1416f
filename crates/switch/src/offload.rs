//! What a sender left to be done: the virtio-net header (virtio 1.3 clause 5.1.6), and what remains of it once judged.

use crate::packet::{Fragment, Ip, Packet, protocol};
use crate::reason::Reason;
use crate::view::View;

/// The frame's checksum is to be filled in.
const NEEDS_CSUM: u8 = 1;
/// The frame's checksum was found right.
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// A frame with smaller segments is cut into at most so many; nobody sends 64 KiB in pieces of less than 64 bytes.
pub const SEGMENTS_MAX: usize = 1024;

/// The header before each frame in a virtqueue, a TAP or a packet socket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetHeader {
    /// Bits: checksum to be filled in (1), checksum found right (2).
    pub flags: u8,
    /// How to cut the frame: 0 not, 1 TCPv4, 4 TCPv6, 5 UDP; with 0x80 a TCP frame that has CWR set.
    pub gso_type: u8,
    /// Length of all headers; a hint that is written and never read.
    pub hdr_len: u16,
    /// Payload of each segment, in bytes.
    pub gso_size: u16,
    /// Where in the frame the bytes begin that the checksum is of.
    pub csum_start: u16,
    /// Where after that it is to be stored.
    pub csum_offset: u16,
    /// Buffers that the frame lies in: the receiving queue's matter.
    pub num_buffers: u16,
}

impl NetHeader {
    /// Bytes with `num_buffers`; legacy headers are two shorter.
    pub const BYTES: usize = 12;

    /// Reads a header of VIRTIO_F_VERSION_1 (little-endian).
    #[must_use]
    pub fn read(bytes: &[u8; NetHeader::BYTES]) -> NetHeader {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        NetHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
            num_buffers: word(10),
        }
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub fn write(&self) -> [u8; NetHeader::BYTES] {
        let mut bytes = [0; NetHeader::BYTES];
        (bytes[0], bytes[1]) = (self.flags, self.gso_type);
        let words =
            [self.hdr_len, self.gso_size, self.csum_start, self.csum_offset, self.num_buffers];
        for (two, word) in bytes[2..].as_chunks_mut().0.iter_mut().zip(words) {
            *two = word.to_le_bytes();
        }
        bytes
    }
}

/// A set of things that one side may leave to the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offloads(u8);

impl Offloads {
    /// Nothing: frames are as they go over a wire.
    pub const NONE: Offloads = Offloads(0);
    /// Checksums of TCP and UDP are to be filled in.
    pub const CSUM: Offloads = Offloads(1);
    /// TCP over IPv4 is to be segmented.
    pub const TSO4: Offloads = Offloads(2);
    /// TCP over IPv6 is to be segmented.
    pub const TSO6: Offloads = Offloads(4);
    /// So are TCP frames with CWR set.
    pub const ECN: Offloads = Offloads(8);
    /// UDP over IPv4 is to be segmented.
    pub const USO4: Offloads = Offloads(16);
    /// UDP over IPv6 is to be segmented.
    pub const USO6: Offloads = Offloads(32);
    /// All.
    pub const ALL: Offloads = Offloads(63);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Offloads) -> Offloads {
        Offloads(self.0 | other.0)
    }

    /// Whether all of `other` are in it.
    #[must_use]
    pub const fn has(self, other: Offloads) -> bool {
        self.0 & other.0 == other.0
    }

    /// What remains if nothing stands without what it needs: segmentation needs the checksum, ECN needs TSO (virtio 1.3 clause 5.1.3.1).
    #[must_use]
    pub const fn consistent(self) -> Offloads {
        if !self.has(Offloads::CSUM) {
            return Offloads::NONE;
        }
        let tso = self.0 & (Offloads::TSO4.0 | Offloads::TSO6.0) != 0;
        Offloads(if tso { self.0 } else { self.0 & !Offloads::ECN.0 })
    }
}

/// A checksum to be filled in: one over everything from `start`, stored at `field`. Both are counted from the frame's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partial {
    // Small, for every frame is handed on with its offload. Both are in what is known of the frame.
    start: u16,
    field: u16,
    /// 0 would be read as "no checksum".
    pub(crate) udp: bool,
}

/// A frame that is to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gso {
    l4: u16,
    /// Where the headers end.
    payload: u16,
    size: u16,
    pub(crate) tcp: bool,
    pub(crate) v4: bool,
    pub(crate) cwr: bool,
}

/// What is to be done to a frame before it goes over a wire: a virtio-net header that was found to be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offload {
    /// Nothing. With `valid`, somebody trustworthy found the checksums right.
    None {
        /// Whether checksums need not be verified again.
        valid: bool,
    },
    /// A checksum is to be filled in.
    Checksum(Partial),
    /// It is to be cut into segments, each with its checksum.
    Segment(Gso),
}

impl Offload {
    /// Holds a header against its frame. `may` is what the sender negotiated. A client's word that its checksums are right is not
    /// taken; the kernel's is (`trusted`).
    ///
    /// The checksum's place must not be one that guards look at, since it is filled in behind them: it is the one of the upper
    /// protocol, or within a TCP or UDP payload or an unknown protocol (tunnels).
    #[inline]
    pub fn judge(
        header: &NetHeader,
        view: &View<'_>,
        may: Offloads,
        trusted: bool,
    ) -> Result<Offload, Reason> {
        if header.flags & NEEDS_CSUM == 0 && header.gso_type == GSO_NONE {
            return Ok(Offload::None { valid: trusted && header.flags & DATA_VALID != 0 });
        }
        Offload::judge_work(header, view, may)
    }

    /// The same of a header that leaves something to be done.
    fn judge_work(header: &NetHeader, view: &View<'_>, may: Offloads) -> Result<Offload, Reason> {
        let (needs, kind) = (header.flags & NEEDS_CSUM != 0, header.gso_type & !GSO_ECN);
        if !needs || !may.has(Offloads::CSUM) {
            return Err(Reason::InvalidHwol);
        }
        let packet = Packet::of(view);
        let partial = partial(header, view, &packet).ok_or(Reason::InvalidHwol)?;
        if kind == GSO_NONE && header.gso_type == GSO_NONE {
            return Ok(Offload::Checksum(partial));
        }
        let Packet::Ip(ip) = packet else { return Err(Reason::InvalidHwol) };
        let gso = gso(header, view, &ip).ok_or(Reason::InvalidHwol)?;
        if !may.has(gso.needs()) || partial.start != gso.l4 {
            return Err(Reason::InvalidHwol);
        }
        if (view.len() - gso.payload()).div_ceil(gso.size()) > SEGMENTS_MAX {
            return Err(Reason::SkbGsoSeg);
        }
        Ok(Offload::Segment(gso))
    }
}

/// None where the checksum would be of something else than it must, or would change what was judged.
fn partial(header: &NetHeader, view: &View<'_>, packet: &Packet) -> Option<Partial> {
    let start = usize::from(header.csum_start);
    let offset = usize::from(header.csum_offset);
    let field = start + offset;
    // The field must be known, so that it can be filled in.
    if start < view.l3() || field + 2 > view.head().len() {
        return None;
    }
    let harmless = match packet {
        Packet::Other => view.ethertype() != 0x0806,
        Packet::Arp(_) | Packet::Unclear => return None,
        Packet::Ip(ip) if ip.fragment == Fragment::Later || start < ip.l4 => return None,
        Packet::Ip(ip) => match (ip.protocol, start - ip.l4) {
            (protocol::TCP, 0) => offset == 16,
            (protocol::UDP, 0) => offset == 6,
            (protocol::ICMP | protocol::ICMPV6 | protocol::IGMP, 0) => offset == 2,
            (protocol::TCP, after) => after >= 20,
            (protocol::UDP, after) => after >= 8,
            (protocol::ICMP | protocol::ICMPV6 | protocol::IGMP, _) => false,
            _ => true,
        },
    };
    // In a tunnel it is not known what the field is; 0xffff is right for all.
    let udp = matches!(packet, Packet::Ip(ip) if ip.protocol == protocol::UDP);
    harmless.then(|| Partial::new(start, field, udp))
}

fn gso(header: &NetHeader, view: &View<'_>, ip: &Ip) -> Option<Gso> {
    let (v4, l4) = (ip.source.is_ipv4(), ip.l4);
    let tcp = ip.protocol == protocol::TCP;
    let known = match header.gso_type & !GSO_ECN {
        GSO_TCPV4 => tcp && v4,
        GSO_TCPV6 => tcp && !v4,
        GSO_UDP_L4 => ip.protocol == protocol::UDP && header.gso_type & GSO_ECN == 0,
        _ => false,
    };
    let upper = view.head().get(l4..)?;
    let length = if tcp { usize::from(*upper.get(12)? >> 4) * 4 } else { 8 };
    let least = if tcp { 20 } else { 8 };
    let payload = l4 + length;
    let whole = ip.fragment == Fragment::Whole && view.len() - view.l3() <= 65535;
    let fits = length >= least && upper.len() >= length && payload < view.len();
    let cwr = header.gso_type & GSO_ECN != 0;
    let (size, sound) = (header.gso_size, known && whole && fits && header.gso_size > 0);
    // Both are in what is known of the frame.
    sound.then_some(Gso { l4: l4 as u16, payload: payload as u16, size, tcp, v4, cwr })
}

impl Gso {
    /// What a receiver must be able to do, to get it uncut.
    pub(crate) fn needs(&self) -> Offloads {
        let kind = match (self.tcp, self.v4) {
            (true, true) => Offloads::TSO4,
            (true, false) => Offloads::TSO6,
            (false, true) => Offloads::USO4,
            (false, false) => Offloads::USO6,
        };
        let ecn = if self.cwr { Offloads::ECN } else { Offloads::NONE };
        kind.with(ecn).with(Offloads::CSUM)
    }

    /// The header of a frame that stays uncut, `moved` bytes longer before its IP header.
    pub(crate) fn header(&self, moved: isize) -> NetHeader {
        let place = |at: usize| at.wrapping_add_signed(moved) as u16;
        let kind = match (self.tcp, self.v4) {
            (true, true) => GSO_TCPV4,
            (true, false) => GSO_TCPV6,
            (false, _) => GSO_UDP_L4,
        };
        NetHeader {
            flags: NEEDS_CSUM,
            gso_type: kind | if self.cwr { GSO_ECN } else { 0 },
            hdr_len: place(self.payload()),
            gso_size: self.size,
            csum_start: place(self.l4()),
            csum_offset: self.csum_offset() as u16,
            num_buffers: 1,
        }
    }

    pub(crate) fn csum_offset(&self) -> usize {
        if self.tcp { 16 } else { 6 }
    }

    /// Where the upper header begins.
    pub(crate) fn l4(&self) -> usize {
        usize::from(self.l4)
    }

    /// Where the headers end.
    pub(crate) fn payload(&self) -> usize {
        usize::from(self.payload)
    }

    /// Payload of each segment.
    pub(crate) fn size(&self) -> usize {
        usize::from(self.size)
    }
}

impl Partial {
    /// Of places in what is known of the frame.
    pub(crate) fn new(start: usize, field: usize, udp: bool) -> Partial {
        Partial { start: start as u16, field: field as u16, udp }
    }

    pub(crate) fn start(&self) -> usize {
        usize::from(self.start)
    }

    pub(crate) fn field(&self) -> usize {
        usize::from(self.field)
    }

    /// The header of a frame whose checksum is left to the receiver.
    pub(crate) fn header(&self, moved: isize) -> NetHeader {
        let start = self.start().wrapping_add_signed(moved);
        let field = self.field().wrapping_add_signed(moved);
        NetHeader {
            flags: NEEDS_CSUM,
            hdr_len: (field + 2) as u16,
            csum_start: start as u16,
            csum_offset: (field - start) as u16,
            num_buffers: 1,
            ..NetHeader::default()
        }
    }
}

/// The header of a frame with nothing left to be done.
pub(crate) fn plain(valid: bool) -> NetHeader {
    let flags = if valid { DATA_VALID } else { 0 };
    NetHeader { flags, num_buffers: 1, ..NetHeader::default() }
}
