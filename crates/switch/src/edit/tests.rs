use etherparse::{
    NetSlice, PacketBuilder, SlicedPacket, TcpOptionElement, TransportSlice, UdpHeader,
};

use super::*;
use crate::address::{CUSTOMER_TPID, SERVICE_TPID};

/// Every set that a side can have negotiated.
fn sets() -> Vec<Offloads> {
    let one = [
        Offloads::CSUM,
        Offloads::TSO4,
        Offloads::TSO6,
        Offloads::ECN,
        Offloads::USO4,
        Offloads::USO6,
    ];
    let all = (0..64).map(|bits: usize| {
        let chosen = one.iter().enumerate().filter(|(at, _)| bits >> at & 1 != 0);
        chosen.fold(Offloads::NONE, |set, (_, one)| set.with(*one))
    });
    all.filter(|set| set.consistent() == *set).collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Kind {
    v4: bool,
    tcp: bool,
    cwr: bool,
}

const KINDS: [Kind; 6] = [
    Kind { v4: true, tcp: true, cwr: false },
    Kind { v4: true, tcp: true, cwr: true },
    Kind { v4: false, tcp: true, cwr: false },
    Kind { v4: false, tcp: true, cwr: true },
    Kind { v4: true, tcp: false, cwr: false },
    Kind { v4: false, tcp: false, cwr: false },
];

fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 256) as u8).collect()
}

/// A whole and right frame, made by etherparse; tags are put before it.
fn frame(kind: Kind, tags: &[Tag], bytes: usize) -> Vec<u8> {
    let link = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let ip = if kind.v4 {
        link.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
    } else {
        link.ipv6([0x20; 16], [0x21; 16], 64)
    };
    let mut out = Vec::new();
    let body = payload(bytes);
    if kind.tcp {
        let mut tcp = ip.tcp(1000, 2000, u32::MAX - 5, 500).ack(77).psh().fin();
        if kind.cwr {
            tcp = tcp.cwr();
        }
        let tcp = tcp.options(&[TcpOptionElement::Timestamp(1, 2)]).unwrap();
        tcp.write(&mut out, &body).unwrap();
    } else {
        ip.udp(1000, 2000).write(&mut out, &body).unwrap();
    }
    tags.iter().rev().for_each(|tag| drop(out.splice(12..12, tag.bytes())));
    out
}

fn kind_of_gso(kind: Kind) -> Offloads {
    let segment = match (kind.tcp, kind.v4) {
        (true, true) => Offloads::TSO4,
        (true, false) => Offloads::TSO6,
        (false, true) => Offloads::USO4,
        (false, false) => Offloads::USO6,
    };
    segment.with(if kind.cwr { Offloads::ECN } else { Offloads::NONE })
}

/// What a sender that may leave `may` to us hands in: as much as it may.
fn send(kind: Kind, tags: &[Tag], bytes: usize, size: u16, may: Offloads) -> (NetHeader, Vec<u8>) {
    let mut frame = frame(kind, tags, bytes);
    let l4 = 14 + 4 * tags.len() + if kind.v4 { 20 } else { 40 };
    let offset = if kind.tcp { 16 } else { 6 };
    if !may.has(Offloads::CSUM) {
        return (NetHeader::default(), frame);
    }
    // As Linux does: the pseudo header's sum, of the whole frame.
    let (l3, upper) = (l4 - if kind.v4 { 20 } else { 40 }, frame.len() - l4);
    let addresses = if kind.v4 { l3 + 12..l3 + 20 } else { l3 + 8..l3 + 40 };
    let sum = ones(
        &[&frame[addresses], &[0, if kind.tcp { 6 } else { 17 }], &(upper as u16).to_be_bytes()]
            .concat(),
    );
    frame[l4 + offset..l4 + offset + 2].copy_from_slice(&sum.to_be_bytes());
    let mut header = NetHeader {
        flags: 1,
        csum_start: l4 as u16,
        csum_offset: offset as u16,
        ..NetHeader::default()
    };
    if may.has(kind_of_gso(kind)) {
        header.gso_type = match (kind.tcp, kind.v4) {
            (true, true) => 1,
            (true, false) => 4,
            _ => 5,
        } | if kind.cwr { 0x80 } else { 0 };
        header.gso_size = size;
    }
    (header, frame)
}

/// One's complement sum, by the book.
fn ones(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for two in bytes.chunks(2) {
        sum += u32::from(two[0]) << 8 | u32::from(two.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Runs a frame through, copying as a caller would. The destination finishes a checksum that is left to it as virtio says.
fn receive(
    header: &NetHeader,
    frame: &[u8],
    may: Offloads,
    edit: TagEdit,
    takes: Takes,
) -> Result<Vec<(NetHeader, Vec<u8>)>, Reason> {
    let view = View::new(frame, frame.len())?;
    let offload = Offload::judge(header, &view, may, false)?;
    let mut scratch = Scratch::default();
    let mut pieces = adapt(view, offload, edit, takes, &mut scratch)?;
    let mut out = Vec::new();
    while let Some(mut piece) = pieces.next() {
        let rest = &frame[piece.rest.clone()];
        if piece.wants_sum() {
            // In odd parts, as buffers of a queue may be.
            piece.fill(|sum| rest.chunks(37).for_each(|part| sum.add(part)));
        }
        let mut bytes = [piece.head(), rest].concat();
        assert_eq!(bytes.len(), piece.len());
        if piece.header.flags & 1 != 0 {
            let start = usize::from(piece.header.csum_start);
            let field = start + usize::from(piece.header.csum_offset);
            let sum = !ones(&bytes[start..]);
            bytes[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        }
        out.push((piece.header, bytes));
    }
    Ok(out)
}

/// What etherparse says of a frame: lengths and checksums are right. Returns the sequence number, (FIN, PSH, CWR), the payload and the IPv4 identification.
fn right(frame: &[u8]) -> (u32, [bool; 3], Vec<u8>, u16) {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let mut identification = 0;
    let (v4, v6) = match sliced.net.as_ref().unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            identification = header.identification;
            (Some(header), None)
        }
        NetSlice::Ipv6(ip) => (None, Some(ip.header().to_header())),
        NetSlice::Arp(_) => unreachable!(),
    };
    let l3 = frame.len() - (14 + 4 * sliced.link_exts.len());
    match (&v4, &v6) {
        (Some(v4), _) => assert_eq!(usize::from(v4.total_len), l3),
        (_, v6) => assert_eq!(usize::from(v6.as_ref().unwrap().payload_length), l3 - 40),
    }
    match sliced.transport.unwrap() {
        TransportSlice::Tcp(tcp) => {
            let sum = match (&v4, &v6) {
                (Some(v4), _) => tcp.calc_checksum_ipv4(v4.source, v4.destination),
                (_, v6) => {
                    let v6 = v6.as_ref().unwrap();
                    tcp.calc_checksum_ipv6(v6.source, v6.destination)
                }
            };
            assert_eq!(tcp.checksum(), sum.unwrap());
            let flags = [tcp.fin(), tcp.psh(), tcp.cwr()];
            (tcp.sequence_number(), flags, tcp.payload().to_vec(), identification)
        }
        TransportSlice::Udp(udp) => {
            let body = udp.payload();
            let header: UdpHeader = udp.to_header();
            let sum = match (&v4, &v6) {
                (Some(v4), _) => header.calc_checksum_ipv4(v4, body),
                (_, v6) => header.calc_checksum_ipv6(v6.as_ref().unwrap(), body),
            };
            assert_eq!(header.checksum, sum.unwrap());
            assert_eq!(usize::from(header.length), 8 + body.len());
            (0, [false; 3], body.to_vec(), identification)
        }
        other => unreachable!("{other:?}"),
    }
}

const OUTER: Tag = Tag { tpid: SERVICE_TPID, tci: 0x6000 | 200 };
const INNER: Tag = Tag { tpid: CUSTOMER_TPID, tci: 100 };
const NEW: Tag = Tag { tpid: CUSTOMER_TPID, tci: 0x2000 | 300 };

#[test]
fn every_pair_of_offload_sets_delivers_what_etherparse_finds_right() {
    let (bytes, size) = (2500, 1000);
    for (may, takes) in sets().iter().flat_map(|may| sets().into_iter().map(move |to| (*may, to))) {
        for kind in KINDS {
            for tags in [&[][..], &[INNER], &[OUTER, INNER]] {
                let (header, sent) = send(kind, tags, bytes, size, may);
                let mut edits = vec![(TagEdit::Keep, tags.to_vec())];
                edits.push((TagEdit::Insert(NEW), [&[NEW], tags].concat()));
                if let [_, rest @ ..] = tags {
                    edits.push((TagEdit::Strip, rest.to_vec()));
                    edits.push((TagEdit::Replace(NEW), [&[NEW], rest].concat()));
                }
                for (edit, expected) in edits {
                    let to = Takes { offloads: takes, mtu: 9000 };
                    let got = receive(&header, &sent, may, edit, to).unwrap();
                    let cut = header.gso_type != 0 && !takes.has(kind_of_gso(kind));
                    check(kind, &expected, &got, takes, bytes, cut.then_some(usize::from(size)));
                    if header.gso_type == 0 && takes == Offloads::NONE {
                        assert_eq!(got[0].1, frame(kind, &expected, bytes));
                    }
                }
            }
        }
    }
}

fn check(
    kind: Kind,
    tags: &[Tag],
    got: &[(NetHeader, Vec<u8>)],
    takes: Offloads,
    bytes: usize,
    cut: Option<usize>,
) {
    assert_eq!(got.len(), cut.map_or(1, |size| bytes.div_ceil(size)));
    let mut whole = Vec::new();
    for (index, (header, frame)) in got.iter().enumerate() {
        let last = index + 1 == got.len();
        for (at, tag) in tags.iter().enumerate() {
            assert_eq!(frame[12 + 4 * at..][..4], tag.bytes());
        }
        if header.flags & 1 != 0 {
            assert!(takes.has(Offloads::CSUM));
        }
        if header.gso_type != 0 {
            assert!(header.flags & 1 != 0 && takes.has(kind_of_gso(kind)));
            let headers = frame.len() - bytes;
            assert_eq!((usize::from(header.hdr_len), header.gso_size), (headers, 1000));
        }
        let (sequence, flags, body, identification) = right(frame);
        if kind.tcp {
            assert_eq!(sequence, (u32::MAX - 5).wrapping_add(whole.len() as u32));
            assert_eq!(flags, [last, last, kind.cwr && index == 0]);
        }
        assert_eq!(identification, if kind.v4 { index as u16 } else { 0 });
        whole.extend(body);
    }
    assert_eq!(whole, payload(bytes));
}

#[test]
fn a_frame_that_is_cut_may_have_wrong_lengths_and_checksums_before() {
    // Windows leaves the IPv4 length and checksum of such frames 0 (NDIS large send offload); a TAP drops them without a word.
    let kind = KINDS[0];
    for takes in [Offloads::NONE, Offloads::CSUM, Offloads::ALL] {
        let (header, mut sent) = send(kind, &[], 5000, 1448, Offloads::ALL);
        sent[16..18].fill(0);
        sent[24..26].fill(0);
        sent[50..52].fill(0x55);
        let to = Takes { offloads: takes, mtu: 1500 };
        let got = receive(&header, &sent, Offloads::ALL, TagEdit::Keep, to).unwrap();
        let whole: Vec<u8> = got.iter().flat_map(|(_, frame)| right(frame).2).collect();
        assert_eq!(whole, payload(5000));
    }
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_its_other_form() {
    let kind = KINDS[4];
    // The two bytes that make the sum come out as zero are found by trying.
    let zero = (0..=u16::MAX).find(|word| {
        let mut bytes = frame(kind, &[], 4);
        bytes[42..44].copy_from_slice(&word.to_be_bytes());
        bytes[40..42].fill(0);
        let pseudo = [&bytes[26..34], &[0, 17, 0, 12], &bytes[34..]].concat();
        ones(&pseudo) == 0xffff
    });
    let (header, mut sent) = send(kind, &[], 4, 0, Offloads::CSUM);
    sent[42..44].copy_from_slice(&zero.expect("one of all words").to_be_bytes());
    let to = Takes { offloads: Offloads::NONE, mtu: 1500 };
    let got = receive(&header, &sent, Offloads::CSUM, TagEdit::Keep, to).unwrap();
    assert_eq!(got[0].1[40..42], [0xff, 0xff]);
}

#[test]
fn what_is_longer_than_the_mtu_is_refused_and_a_segment_counts_as_itself() {
    let kind = KINDS[0];
    let to = |mtu| Takes { offloads: Offloads::ALL, mtu };
    let plain = send(kind, &[INNER], 1448, 0, Offloads::NONE);
    let pass = |sent: &(NetHeader, Vec<u8>), may, mtu| {
        receive(&sent.0, &sent.1, may, TagEdit::Strip, to(mtu)).map(|got| got.len())
    };
    assert_eq!(pass(&plain, Offloads::NONE, 1500), Ok(1));
    assert_eq!(pass(&plain, Offloads::NONE, 1499), Err(Reason::MtuExceeded));
    let large = send(kind, &[INNER], 60000, 1448, Offloads::ALL);
    assert_eq!(pass(&large, Offloads::ALL, 1500), Ok(1));
    assert_eq!(pass(&large, Offloads::ALL, 1499), Err(Reason::MtuExceeded));
}

#[test]
fn headers_that_lie_are_refused() {
    let (true_header, sent) = send(KINDS[0], &[INNER], 3000, 1000, Offloads::ALL);
    let view = View::new(&sent, sent.len()).unwrap();
    let judge = |may, change: &dyn Fn(&mut NetHeader)| {
        let mut header = true_header;
        change(&mut header);
        Offload::judge(&header, &view, may, false)
    };
    let all = Offloads::ALL;
    assert!(matches!(judge(all, &|_| ()), Ok(Offload::Segment(_))));
    assert!(matches!(judge(all, &|header| header.hdr_len = 9), Ok(Offload::Segment(_))));
    let lies: [&dyn Fn(&mut NetHeader); 12] = [
        &|header| header.flags = 0,
        &|header| header.gso_size = 0,
        &|header| header.gso_type = 4,
        &|header| header.gso_type = 5,
        &|header| header.gso_type = 3,
        &|header| header.gso_type = 0x80,
        &|header| header.csum_start = 17,
        &|header| header.csum_start += 1,
        &|header| header.csum_start = u16::MAX,
        &|header| header.csum_offset = u16::MAX,
        // The source address, which was judged.
        &|header| (header.gso_type, header.csum_start, header.csum_offset) = (0, 18, 12),
        // The port, which was judged.
        &|header| (header.gso_type, header.csum_offset) = (0, 0),
    ];
    for (index, lie) in lies.iter().enumerate() {
        assert_eq!(judge(all, lie), Err(Reason::InvalidHwol), "lie {index}");
    }
    assert_eq!(judge(all, &|header| header.gso_size = 2), Err(Reason::SkbGsoSeg));
    let without = Offloads::CSUM.with(Offloads::TSO6);
    assert_eq!(judge(without, &|_| ()), Err(Reason::InvalidHwol));
    assert_eq!(judge(Offloads::NONE, &|header| header.gso_type = 0), Err(Reason::InvalidHwol));
    let no_ecn = Offloads::CSUM.with(Offloads::TSO4);
    assert_eq!(judge(no_ecn, &|header| header.gso_type = 0x81), Err(Reason::InvalidHwol));
}

#[test]
fn a_word_that_checksums_are_right_is_taken_from_the_trusted_only() {
    let sent = frame(KINDS[0], &[], 10);
    let view = View::new(&sent, sent.len()).unwrap();
    let header = NetHeader { flags: 2, ..NetHeader::default() };
    for trusted in [false, true] {
        let judged = Offload::judge(&header, &view, Offloads::NONE, trusted);
        assert_eq!(judged, Ok(Offload::None { valid: trusted }));
        for (offloads, told) in [(Offloads::NONE, false), (Offloads::CSUM, trusted)] {
            let mut scratch = Scratch::default();
            let to = Takes { offloads, mtu: 1500 };
            let mut pieces = adapt(view, judged.unwrap(), TagEdit::Keep, to, &mut scratch).unwrap();
            assert_eq!(pieces.next().unwrap().header.flags, if told { 2 } else { 0 });
        }
    }
}

#[test]
fn pieces_that_are_skipped_are_those_that_would_have_come() {
    let (many, none) = (Offloads::ALL, Takes { offloads: Offloads::NONE, mtu: 9000 });
    for kind in KINDS {
        for (bytes, size) in [(5000, 512), (5120, 512), (100, 512)] {
            let (header, frame) = send(kind, &[], bytes, size, many);
            let view = View::new(&frame[..frame.len().min(HEAD_BYTES)], frame.len()).unwrap();
            let offload = Offload::judge(&header, &view, many, false).unwrap();
            let pieces = |skip: usize| {
                let mut scratch = Scratch::default();
                let mut pieces = adapt(view, offload, TagEdit::Keep, none, &mut scratch).unwrap();
                pieces.skip(skip);
                let mut found = Vec::new();
                while let Some(piece) = pieces.next() {
                    found.push((piece.head().to_vec(), piece.rest.clone()));
                }
                found
            };
            let all = pieces(0);
            for skip in 0..=all.len() + 1 {
                assert_eq!(pieces(skip), all[skip.min(all.len())..], "{kind:?} {skip}");
            }
        }
    }
}
