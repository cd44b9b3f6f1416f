//! A monitor: copies of what others send and get, and no harm to them.

use crate::common::Server;
use crate::common::net::{Client, How, OFFLOADS, PLAIN, mac, wait};
use partition::net::HEADER_BYTES;
use protocol::message::{EthernetSpec, Request};
use protocol::stats::QueueCounter;

const ALL: [u8; 6] = [0xff; 6];

/// The first which is watched.
fn watched(card: &mut EthernetSpec) {
    card.mirror = Some("ent9".to_owned());
}

fn monitor(card: &mut EthernetSpec) {
    card.monitor = true;
}

/// Frames that were lost, of all reasons, with an adapter.
fn lost(server: &Server, name: &str) -> u64 {
    let drops = QueueCounter::ALL.iter().filter(|it| it.info().name.starts_with("drop_"));
    drops.map(|counter| server.count_of(name, *counter)).sum()
}

/// Sends a frame; each of these gets it.
#[track_caller]
fn pass(from: &mut Client, frame: &[u8], to: &mut [&mut Client]) {
    from.send(&PLAIN, frame);
    from.sent();
    for client in to {
        assert_eq!(client.receive().frame, frame, "at {}", client.number);
    }
}

#[test]
fn a_monitor_gets_each_frame_of_who_is_watched_once() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), watched);
        let mut b = server.client(2, How::default(), |_| ());
        let mut c = server.client(3, How::default(), |_| ());
        // It comes last, and is of no VLAN of theirs.
        let mut ear = server.client(9, How::default(), |card| {
            monitor(card);
            card.pvid = 77;
        });
        let (hello, answer) = (a.frame(ALL, 1, 60), b.frame(ALL, 2, 60));
        pass(&mut a, &hello, &mut [&mut b, &mut c, &mut ear]);
        pass(&mut b, &answer, &mut [&mut a, &mut c, &mut ear]);
        let others = c.frame(mac(2), 3, 200);
        pass(&mut c, &others, &mut [&mut b]);
        let (there, back) = (a.frame(mac(2), 4, 1514), b.frame(mac(1), 5, 300));
        pass(&mut a, &there, &mut [&mut b, &mut ear]);
        pass(&mut b, &back, &mut [&mut a, &mut ear]);
        // Two that are watched exchange a frame, which comes once.
        server.change(2, watched);
        for (client, frame) in [(&mut b, answer), (&mut a, hello)] {
            client.send(&PLAIN, &frame);
            client.sent();
        }
        for (client, frames) in [(&mut a, 1), (&mut b, 1), (&mut c, 2), (&mut ear, 2)] {
            (0..frames).for_each(|_| drop(client.receive()));
        }
        wait("all to be counted", || {
            (server.count_of("ent9", QueueCounter::RxFrames) == 6).then_some(())
        });
        pass(&mut a, &there, &mut [&mut b, &mut ear]);
        // What it sends is lost, and it is nobody's neighbour.
        ear.send(&PLAIN, &ear.frame(mac(1), 6, 100));
        ear.sent();
        assert_eq!(server.count_of("ent9", QueueCounter::DropMirrorOnly), 1);
        let stray = a.frame(mac(9), 7, 100);
        pass(&mut a, &stray, &mut [&mut b, &mut c, &mut ear]);
        server.change(1, |_| ());
        server.change(2, |_| ());
        let last = a.frame(ALL, 8, 100);
        pass(&mut a, &last, &mut [&mut b, &mut c]);
        ear.has_nothing();
        for name in ["ent1", "ent2", "ent3"] {
            assert_eq!(lost(&server, name), 0, "{name}");
        }
    }
}

#[test]
fn a_copy_is_as_its_sender_sent_it() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |card| {
            watched(card);
            card.pvid = 10;
        });
        let mut trunk = server.client(2, How::default(), |card| card.vids = vec![10]);
        // It takes nothing that is uncut.
        let mut ear = server.client(9, How { without: OFFLOADS, ..How::default() }, monitor);
        let tag = |frame: &[u8]| [&frame[..12], &[0x81, 0, 0x60, 10], &frame[12..]].concat();
        let plain = a.frame(ALL, 1, 100);
        a.send(&PLAIN, &plain);
        let mut arrives = tag(&plain);
        arrives[14] = 0;
        assert_eq!((trunk.receive().frame, ear.receive().frame), (arrives, plain));
        let tagged = tag(&trunk.frame(mac(1), 2, 100));
        trunk.send(&PLAIN, &tagged);
        assert_eq!(ear.receive().frame, tagged);
        assert_eq!(a.receive().frame, trunk.frame(mac(1), 2, 100));
        // A packet that is to be cut: whole for the one, in segments for the other.
        let payload: Vec<u8> = (0..10_000_u32).map(|at| (at * 7) as u8).collect();
        let mut packet = [&mac(2)[..], &mac(1), &[8, 0, 0x45, 0]].concat();
        packet.extend((40 + payload.len() as u16).to_be_bytes());
        packet.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend([0, 9, 0, 80, 0, 0, 1, 0, 0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
        packet.extend(&payload);
        let mut header = [0; HEADER_BYTES];
        (header[0], header[1]) = (1, 1);
        header[2..4].copy_from_slice(&54_u16.to_le_bytes());
        header[4..6].copy_from_slice(&1448_u16.to_le_bytes());
        header[6..8].copy_from_slice(&34_u16.to_le_bytes());
        header[8..10].copy_from_slice(&16_u16.to_le_bytes());
        a.send(&header, &packet);
        assert_eq!(trunk.receive().frame.len(), packet.len() + 4);
        let mut bytes: Vec<u8> = Vec::new();
        while bytes.len() < payload.len() {
            let segment = ear.receive().frame;
            assert!(segment.len() <= 1514);
            bytes.extend(&segment[54..]);
        }
        assert_eq!(bytes, payload);
        ear.has_nothing();
    }
}

#[test]
fn a_monitor_that_is_slow_or_away_costs_nobody_a_frame() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), watched);
        let mut b = server.client(2, How::default(), |_| ());
        let mut number = 0;
        let mut exchange = |a: &mut Client, b: &mut Client| {
            for _ in 0..300 {
                number += 1;
                let (there, back) = (a.frame(mac(2), number, 300), b.frame(mac(1), number, 300));
                pass(a, &there, &mut [&mut *b]);
                pass(b, &back, &mut [&mut *a]);
            }
        };
        // It is not there yet.
        exchange(&mut a, &mut b);
        assert_eq!(lost(&server, "ent1") + lost(&server, "ent2"), 0);
        // It has no buffers: what an inbox holds waits, and all else is counted, and as nothing else.
        let ear = server.client(9, How { post: (0, 0), ..How::default() }, monitor);
        exchange(&mut a, &mut b);
        let copies = || {
            let counted = |name| server.count_of(name, QueueCounter::DropMirrorCopy);
            assert_eq!(lost(&server, "ent1"), counted("ent1"));
            assert_eq!(lost(&server, "ent2"), counted("ent2"));
            counted("ent1") + counted("ent2")
        };
        // A receiver on the same channel counts what it cannot store itself.
        let own = || lost(&server, "ent9");
        let held = device_net::INBOX_FRAMES as u64;
        wait("the rest to be counted", || (copies() + own() == 600 - held).then_some(()));
        let own_then = own();
        // It goes, and with it what waited.
        drop(ear);
        server.settled_named("ent9");
        exchange(&mut a, &mut b);
        wait("what waited to be counted", || (copies() + own_then == 600).then_some(()));
        server.must(Request::RemoveAdapter { name: "ent9".to_owned() });
        exchange(&mut a, &mut b);
        assert_eq!(copies() + own_then, 600);
        // Another one of its name takes its place.
        let mut ear = server.client(9, How::default(), monitor);
        let frame = a.frame(mac(2), 0, 100);
        pass(&mut a, &frame, &mut [&mut b, &mut ear]);
        assert_eq!(copies() + own_then, 600);
    }
}
