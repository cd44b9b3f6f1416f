use etherparse::{NetSlice, PacketBuilder, SlicedPacket};
use proptest::prelude::*;

use super::*;
use crate::offload::{NetHeader, Offload, Offloads};
use crate::{Scratch, TagEdit, Takes, adapt};

/// A frame made of parts that are mostly right.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let tags = prop::collection::vec((prop::bool::ANY, any::<u16>()), 0..6);
    let kind = 0..6u8;
    let body = prop::collection::vec(any::<u8>(), 0..400);
    let spoilt = prop::collection::vec((0..120usize, any::<u8>()), 0..4);
    (tags, kind, body, spoilt, 0..500usize).prop_map(|(tags, kind, body, spoilt, length)| {
        let link = PacketBuilder::ethernet2([2; 6], [3; 6]);
        let mut out = Vec::new();
        let v4 = || PacketBuilder::ethernet2([2; 6], [3; 6]).ipv4([1; 4], [2; 4], 9);
        let v6 = || PacketBuilder::ethernet2([2; 6], [3; 6]).ipv6([1; 16], [2; 16], 9);
        match kind {
            0 => v4().tcp(1, 2, 3, 4).write(&mut out, &body).unwrap(),
            1 => v6().udp(1, 2).write(&mut out, &body).unwrap(),
            2 => v6().icmpv6_echo_request(1, 2).write(&mut out, &body).unwrap(),
            3 => v4().icmpv4_echo_request(1, 2).write(&mut out, &body).unwrap(),
            4 => link.ipv6([1; 16], [2; 16], 9).write(&mut out, 99.into(), &body).unwrap(),
            _ => out.extend([&[2; 12][..], &[8, 6, 0, 1, 8, 0, 6, 4], &body].concat()),
        }
        for (service, tci) in tags {
            let tpid = if service { SERVICE_TPID } else { CUSTOMER_TPID };
            out.splice(12..12, crate::Tag { tpid, tci }.bytes());
        }
        for (at, byte) in spoilt {
            if let Some(place) = out.get_mut(at) {
                *place = byte;
            }
        }
        if length > 100 {
            out.truncate(length);
        }
        out
    })
}

/// The last tag's TPID of etherparse's list is not of interest: it knows 0x9100, too, and looks behind three.
fn understood(frame: &[u8], view: &View<'_>) -> bool {
    let plain = view.l3() <= 14 + 12;
    plain && frame.windows(2).skip(12).step_by(4).take(3).all(|two| two != [0x91, 0])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever it is, with whatever header: nothing panics, and what comes out has the bytes that it says.
    #[test]
    fn no_frame_panics(
        frame in frames(),
        header in any::<[u8; 12]>(),
        honest in prop::bool::ANY,
        takes in 0..3usize,
        known in 0..400usize,
    ) {
        let head = &frame[..frame.len().min(known)];
        let Ok(view) = View::new(head, frame.len()) else { return Ok(()) };
        let packet = Packet::of(&view);
        let mut header = NetHeader::read(&header);
        prop_assert_eq!(NetHeader::read(&header.write()), header);
        if let (Packet::Ip(ip), true) = (packet, honest) {
            prop_assert!(ip.upper(&view).len() <= head.len());
            (header.flags, header.gso_type, header.csum_start) = (1, [0, 1, 4, 5, 0x81][known % 5], ip.l4 as u16);
            header.csum_offset = if ip.protocol == protocol::TCP { 16 } else { 6 };
        }
        let Ok(offload) = Offload::judge(&header, &view, Offloads::ALL, false) else { return Ok(()) };
        let offloads = [Offloads::NONE, Offloads::CSUM, Offloads::ALL][takes];
        let edit = if view.tag().is_some() { TagEdit::Strip } else { TagEdit::Keep };
        let mut scratch = Scratch::default();
        let mut pieces = adapt(view, offload, edit, Takes { offloads, mtu: 65535 }, &mut scratch).unwrap();
        let mut end = None;
        while let Some(mut piece) = pieces.next() {
            prop_assert!(piece.len() >= 14 && piece.rest.end <= frame.len());
            prop_assert!(end.is_none_or(|end| end == piece.rest.start));
            end = Some(piece.rest.end);
            piece.fill(|_| ());
        }
        prop_assert_eq!(end, Some(frame.len()));
    }

    /// Where etherparse understands a frame, both say the same.
    #[test]
    fn etherparse_reads_the_same(frame in frames()) {
        let Ok(view) = View::new(&frame, frame.len()) else { return Ok(()) };
        let Ok(sliced) = SlicedPacket::from_ethernet(&frame) else { return Ok(()) };
        if !understood(&frame, &view) {
            return Ok(());
        }
        match (sliced.net, Packet::of(&view)) {
            (Some(NetSlice::Ipv4(theirs)), Packet::Ip(ours)) => {
                let header = theirs.header();
                prop_assert_eq!(ours.source, IpAddr::V4(header.source_addr()));
                prop_assert_eq!(ours.destination, IpAddr::V4(header.destination_addr()));
                prop_assert_eq!(ours.fragment == Fragment::Whole, !header.is_fragmenting_payload());
                prop_assert_eq!(ours.l4, view.l3() + header.slice().len());
                prop_assert_eq!(ours.protocol, header.protocol().0);
            }
            (Some(NetSlice::Ipv6(theirs)), Packet::Ip(ours)) => {
                prop_assert_eq!(ours.source, IpAddr::V6(theirs.header().source_addr()));
                if ours.fragment != Fragment::Later {
                    prop_assert_eq!(ours.end - ours.l4 <= theirs.payload().payload.len(), true);
                }
            }
            (Some(NetSlice::Arp(theirs)), Packet::Arp(ours)) => {
                prop_assert_eq!(ours.operation, theirs.operation().0);
                prop_assert_eq!(&ours.sender.0.0, theirs.sender_hw_addr());
                prop_assert_eq!(&ours.target.1.octets(), theirs.target_protocol_addr());
            }
            (Some(NetSlice::Arp(_)), Packet::Other) | (None, _) => {}
            // Its chains may be longer than what is known of a frame here.
            (Some(NetSlice::Ipv6(_)), Packet::Unclear) => {}
            (theirs, ours) => prop_assert!(false, "{theirs:?} is {ours:?}"),
        }
    }
}

fn ipv6(next: u8, rest: &[u8]) -> Vec<u8> {
    let length = (rest.len() as u16).to_be_bytes();
    let fixed = [0x60, 0, 0, 0, length[0], length[1], next, 64];
    [&[2; 12][..], &[0x86, 0xdd], &fixed, &[1; 32], rest].concat()
}

#[test]
fn extension_headers_are_walked_to_the_upper_one() {
    // Hop-by-hop of 16 bytes, destination options of 8, an authentication header of 12 + 4, then UDP.
    let chain = [
        &[60, 1][..],
        &[0; 14],
        &[51, 0],
        &[0; 6],
        &[17, 2],
        &[0; 14],
        &[0, 67, 0, 68, 0, 8, 0, 0],
    ];
    let frame = ipv6(0, &chain.concat());
    let view = View::new(&frame, frame.len()).unwrap();
    let Packet::Ip(ip) = Packet::of(&view) else { panic!("not understood") };
    assert_eq!((ip.protocol, ip.l4, ip.ports(&view)), (17, 54 + 40, Some((67, 68))));
    // A chain that leaves what is known, and one that ends behind the packet.
    for cut in [60, 70, 80] {
        let view = View::new(&frame[..cut], frame.len()).unwrap();
        assert_eq!(Packet::of(&view), Packet::Unclear, "{cut} bytes known");
    }
    let long = ipv6(0, &[&[17, 200][..], &[0; 14]].concat());
    let view = View::new(&long, long.len()).unwrap();
    assert_eq!(Packet::of(&view), Packet::Unclear);
}

#[test]
fn fragments_of_ipv6_are_told_apart() {
    for (place, fragment) in
        [(0, Fragment::Whole), (1, Fragment::First), (8, Fragment::Later), (9, Fragment::Later)]
    {
        let frame = ipv6(44, &[17, 0, 0, place, 0, 0, 0, 1, 0, 53, 0, 54, 0, 8, 0, 0]);
        let view = View::new(&frame, frame.len()).unwrap();
        let Packet::Ip(ip) = Packet::of(&view) else { panic!("not understood") };
        assert_eq!((ip.fragment, ip.protocol), (fragment, 17));
        assert_eq!(ip.ports(&view).is_some(), fragment != Fragment::Later);
    }
}

#[test]
fn tags_runts_and_lengths() {
    for bytes in 0..18 {
        let short = [&[2u8; 12][..], &[0x81, 0, 0, 1, 8, 0]].concat();
        let judged = View::new(&short[..bytes], bytes);
        assert!(judged.is_err(), "{bytes} bytes");
    }
    let llc = [&[2u8; 12][..], &[0, 3, 0x42, 0x42, 3]].concat();
    let view = View::new(&llc, llc.len()).unwrap();
    assert_eq!((view.llc(), Packet::of(&view)), (Some([0x42, 0x42]), Packet::Other));
    assert_eq!(View::new(&llc, 70_000).err(), Some(crate::Reason::PktTooBig));
}
