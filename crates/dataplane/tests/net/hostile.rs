//! One client that does all that is wrong, beside two that exchange frames.

use std::time::Duration;

use crate::common::Server;
use crate::common::net::{BUFFER_BYTES, Client, How, PLAIN, mac, wait};
use memory::random::Random;
use partition::net::HEADER_BYTES;
use protocol::stats::QueueCounter;

const ALL: [u8; 6] = [0xff; 6];

/// A station's address by chance.
fn any_mac(random: &mut Random) -> [u8; 6] {
    let [a, b, c, d, e, ..] = random.next().to_le_bytes();
    [2, a, b, c, d, e]
}

/// Something that no good client sends, and what it was.
fn bad(random: &mut Random) -> (&'static str, [u8; HEADER_BYTES], Vec<u8>) {
    let to = [ALL, mac(2), mac(3), mac(1), [1, 0, 0x5e, 1, 2, 3], [1, 0x80, 0xc2, 0, 0, 0]];
    let to = match random.below(7) {
        6 => any_mac(random),
        known => to[known as usize],
    };
    let from = any_mac(random);
    let mut header = PLAIN;
    let rest = |random: &mut Random, most: u64| {
        let len = random.below(most) as usize;
        (0..len).map(|_| random.next() as u8).collect::<Vec<u8>>()
    };
    match random.below(7) {
        0 => ("another MAC address", header, [&to[..], &from, &[0x88, 0xb5], &[0; 46]].concat()),
        1 => {
            let vid = (random.below(4096) as u16).to_be_bytes();
            let tags = [&[0x81, 0][..], &vid].concat().repeat(1 + random.below(60) as usize);
            ("tags", header, [&to[..], &from, &tags, &[8, 0], &rest(random, 100)].concat())
        }
        2 => ("a runt", header, rest(random, 18)),
        3 => {
            let len = 1500 + random.below(u64::from(BUFFER_BYTES) - 1600) as usize;
            let mut giant = [&to[..], &from, &[8, 0]].concat();
            giant.resize(len, 7);
            ("a giant", header, giant)
        }
        4 => {
            // A true packet, and a header that has nothing to do with it.
            header.iter_mut().for_each(|byte| *byte = random.next() as u8);
            header[0] &= 3;
            header[1] = [0, 1, 3, 4, 5, 0x81, 255][random.below(7) as usize];
            let mut packet =
                [&to[..], &from, &[8, 0, 0x45, 0, 0, 60, 0, 1, 0, 0, 64, 6, 0, 0]].concat();
            packet
                .extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 9, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 16]);
            packet.resize(74, 1);
            ("a header that lies", header, packet)
        }
        5 => ("noise", header, [&to[..], &from, &rest(random, 1400)].concat()),
        _ => {
            let mut source = from;
            source[0] |= 1;
            ("a group for a source", header, [&to[..], &source, &[8, 6], &[0; 46]].concat())
        }
    }
}

/// The next frame from that station, among whatever else comes.
#[track_caller]
fn receive_from(client: &mut Client, station: [u8; 6]) -> Vec<u8> {
    loop {
        let frame = client.receive().frame;
        if frame.len() >= 12 && frame[6..12] == station {
            return frame;
        }
    }
}

#[test]
fn one_client_that_does_all_that_is_wrong_costs_others_no_frame() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        // It posts no buffers.
        let mut bad_one = server.client(1, How { post: (0, 0), ..How::default() }, |_| ());
        let mut b = server.client(2, How::default(), |_| ());
        let mut c = server.client(3, How::default(), |_| ());
        b.send(&PLAIN, &b.frame(ALL, 0, 60));
        receive_from(&mut c, mac(2));
        c.send(&PLAIN, &c.frame(ALL, 0, 60));
        receive_from(&mut b, mac(3));
        let mut random = Random::new(channels.into());
        let mut kinds = std::collections::BTreeSet::new();
        for number in 1..6000 {
            let (kind, header, frame) = bad(&mut random);
            kinds.insert(kind);
            if number % 50 == 0 {
                // Less than a header.
                bad_one.send(&header[..random.below(HEADER_BYTES as u64) as usize], &[]);
            }
            bad_one.send(&header, &frame);
            for _ in 0..10 {
                bad_one.pairs[0].tx.kick().unwrap();
                bad_one.pairs[0].rx.kick().unwrap();
            }
            let (there, back) = (b.frame(mac(3), number, 300), c.frame(mac(2), number, 300));
            b.send(&PLAIN, &there);
            assert_eq!(receive_from(&mut c, mac(2)), there);
            c.send(&PLAIN, &back);
            assert_eq!(receive_from(&mut b, mac(3)), back);
        }
        assert_eq!(kinds.len(), 7);
        bad_one.sent();
        // Each of its frames is counted where it was lost, for the reason that it was.
        for reason in [
            QueueCounter::DropPktTooSmall,
            QueueCounter::DropMacInvalidSource,
            QueueCounter::DropMacIeeeMacControl,
            QueueCounter::DropVlanFilter,
            QueueCounter::DropInvalidHwol,
        ] {
            assert!(server.count_of("ent1", reason) > 0, "{reason:?}");
        }
        let too_long = |name| server.count_of(name, QueueCounter::DropMtuExceeded);
        assert!(too_long("ent2") > 0 && too_long("ent3") > 0);
        // Whom it flooded knows its neighbours as before: nothing of what they say to each other went anywhere else.
        for name in ["ent2", "ent3"] {
            for reason in [QueueCounter::DropFullRing, QueueCounter::DropRxNoBuffer] {
                assert_eq!(server.count_of(name, reason), 0, "{name} {reason:?}");
            }
        }
        // It is served as any other once it behaves.
        drop(bad_one);
        server.settled_named("ent1");
        let socket = server.dir.path().join("ent1.sock");
        let mut good = Client::connect(&socket, 1, How::default());
        let frame = good.frame(mac(2), 1, 100);
        good.send(&PLAIN, &frame);
        assert_eq!(receive_from(&mut b, mac(1)), frame);
    }
}

#[test]
fn a_flood_of_stations_and_vlans_is_learned_up_to_its_quota_and_forgotten_with_its_client() {
    let server = Server::new(2);
    let vids: Vec<u16> = (2..=200).collect();
    let mut flood = server.client(1, How::default(), |card| card.vids = vids.clone());
    let mut b = server.client(2, How::default(), |card| card.vids = vids);
    let mut c = server.client(3, How::default(), |_| ());
    let mut random = Random::new(7);
    for number in 0..20_000_u16 {
        let vid = (1 + number % 200).to_be_bytes();
        let mut frame =
            [&mac(2)[..], &any_mac(&mut random), &[0x81, 0], &vid, &[0x88, 0xb5]].concat();
        frame.resize(64, 0);
        flood.send(&PLAIN, &frame);
        if number % 32 == 0 {
            flood.sent();
            while b.receive_within(Duration::ZERO).is_some() {}
            while c.receive_within(Duration::ZERO).is_some() {}
        }
    }
    // What waits for the others has reached them, or there would be no room for what comes now.
    let last = flood.frame(ALL, 1, 60);
    let reached = |client: &mut Client| {
        std::iter::from_fn(|| client.receive_within(Duration::ZERO)).any(|it| it.frame == last)
    };
    let (mut b_has, mut c_has) = (false, false);
    wait("the flood to be over", || {
        flood.send(&PLAIN, &last);
        b_has |= reached(&mut b);
        c_has |= reached(&mut c);
        (b_has && c_has).then_some(())
    });
    // Others are learned all the same.
    b.send(&PLAIN, &b.frame(ALL, 1, 60));
    c.send(&PLAIN, &c.frame(ALL, 1, 60));
    receive_from(&mut b, mac(3));
    receive_from(&mut c, mac(2));
    wait("both to be heard", || {
        while flood.receive_within(Duration::ZERO).is_some() {}
        (server.count_of("ent1", QueueCounter::RxFrames) == 2).then_some(())
    });
    for number in 0..100 {
        let frame = b.frame(mac(3), number, 100);
        b.send(&PLAIN, &frame);
        assert_eq!(receive_from(&mut c, mac(2)), frame);
    }
    assert_eq!(server.count_of("ent1", QueueCounter::RxFrames), 2, "nothing was flooded");
}
