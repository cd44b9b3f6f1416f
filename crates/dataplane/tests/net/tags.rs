//! Tags in tags: customers' VLANs inside of those of who carries them.

use crate::common::Server;
use crate::common::net::{Client, How, PLAIN, mac};
use protocol::message::{EthernetSpec, Tagging};
use protocol::stats::QueueCounter;

const ALL: [u8; 6] = [0xff; 6];

/// A frame with tags before its type, the outermost first.
fn tagged(frame: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
    let tags = tags.iter().flat_map(|(kind, tci)| [kind.to_be_bytes(), tci.to_be_bytes()]);
    [&frame[..12], &tags.collect::<Vec<_>>().concat(), &frame[12..]].concat()
}

fn tunnel(pvid: u16) -> impl Fn(&mut EthernetSpec) {
    move |card| (card.tagging, card.pvid) = (Tagging::Tunnel, pvid)
}

fn service(card: &mut EthernetSpec) {
    (card.tagging, card.vids) = (Tagging::Dot1ad, vec![100, 200]);
}

#[track_caller]
fn pass(from: &mut Client, sent: &[u8], to: &mut Client, arrives: &[u8]) {
    from.send(&PLAIN, sent);
    assert_eq!(to.receive().frame, arrives);
}

#[test]
fn customers_keep_their_vlans_inside_of_those_that_carry_them() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), tunnel(100));
        let mut b = server.client(2, How::default(), tunnel(200));
        let mut trunk = server.client(3, How::default(), service);
        let mut near = server.client(4, How::default(), tunnel(100));
        for own in [&[][..], &[(0x8100, 7)], &[(0x8100, 0x6007), (0x8100, 8)], &[(0x88a8, 9)]] {
            let sent = tagged(&a.frame(ALL, 1, 100), own);
            let outside = [&[(0x88a8, 100)], own].concat();
            a.send(&PLAIN, &sent);
            assert_eq!(near.receive().frame, sent);
            assert_eq!(trunk.receive().frame, tagged(&a.frame(ALL, 1, 100), &outside));
            let back = trunk.frame(mac(1), 2, 100);
            pass(&mut trunk, &tagged(&back, &outside), &mut a, &tagged(&back, own));
            let known = tagged(&a.frame(mac(3), 3, 100), own);
            let arrives = tagged(&a.frame(mac(3), 3, 100), &outside);
            pass(&mut a, &known, &mut trunk, &arrives);
        }
        // The longest packet, and what is longer, behind all tags.
        let long = tagged(&a.frame(mac(3), 4, 1514), &[(0x8100, 7)]);
        let arrives = tagged(&a.frame(mac(3), 4, 1514), &[(0x88a8, 100), (0x8100, 7)]);
        pass(&mut a, &long, &mut trunk, &arrives);
        a.send(&PLAIN, &tagged(&a.frame(mac(3), 5, 1515), &[(0x8100, 7)]));
        a.sent();
        // The same station in both, and each is found in its own.
        let frame = trunk.frame(mac(2), 6, 100);
        let with = tagged(&frame, &[(0x88a8, 200), (0x8100, 7)]);
        pass(&mut trunk, &with, &mut b, &tagged(&frame, &[(0x8100, 7)]));
        // A customer's tag is none that names a VLAN there, and there is nobody in the untagged one.
        trunk.send(&PLAIN, &tagged(&frame, &[(0x8100, 100)]));
        trunk.send(&PLAIN, &tagged(&frame, &[(0x88a8, 300)]));
        trunk.sent();
        assert_eq!(server.count_of("ent3", QueueCounter::DropVlanFilter), 1);
        assert_eq!(server.count_of("ent3", QueueCounter::DropNoTxTarget), 1);
        [&mut a, &mut b, &mut near].into_iter().for_each(Client::has_nothing);
        // It changes while all run.
        server.change(3, |card| card.vids = vec![100, 200]);
        let sent = a.frame(ALL, 7, 100);
        pass(&mut a, &sent, &mut trunk, &tagged(&sent, &[(0x8100, 100)]));
    }
}
