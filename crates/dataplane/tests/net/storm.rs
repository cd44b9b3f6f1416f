//! Storms of one client, and private adapters.

use std::time::Instant;

use crate::common::Server;
use crate::common::net::{How, PLAIN, mac, wait};
use protocol::message::StormSpec;
use protocol::stats::QueueCounter;

const ALL: [u8; 6] = [0xff; 6];
const GROUP: [u8; 6] = [1, 0, 0x5e, 1, 2, 3];
const NOBODY: [u8; 6] = [2, 0, 0, 0, 0, 99];

#[test]
fn a_storm_is_held_at_its_sender_and_what_is_known_passes() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |_| ());
        let mut b = server.client(2, How::default(), |_| ());
        b.send(&PLAIN, &b.frame(ALL, 0, 60));
        a.receive();
        let kinds = [
            (ALL, QueueCounter::DropStormBroadcast),
            (GROUP, QueueCounter::DropStormMulticast),
            (NOBODY, QueueCounter::DropStormUnknown),
        ];
        let (mut all, mut got) = (0, 0);
        for (number, (_, reason)) in kinds.into_iter().enumerate() {
            let since = Instant::now();
            let bound = |at| if at == number { 5 } else { 0 };
            let storm = StormSpec { broadcast: bound(0), multicast: bound(1), unknown: bound(2) };
            server.change(1, |card| card.storm = storm);
            for round in 0..100 {
                // Each kind, of which one is bounded, and one for somebody who is known.
                for destination in [ALL, GROUP, NOBODY, mac(2)] {
                    a.send(&PLAIN, &a.frame(destination, round, 100));
                }
                all += 4;
                // No more at once than a receiver takes that has not run for a while.
                wait("all to be delivered or counted", || {
                    got += b.empty() as u64;
                    let lost: u64 =
                        kinds.iter().map(|(_, reason)| server.count_of("ent1", *reason)).sum();
                    (got + lost == all).then_some(())
                });
            }
            let passed = 100 - server.count_of("ent1", reason);
            let most = 5 + 5 * (since.elapsed().as_secs() + 1);
            assert!((5..=most).contains(&passed), "{passed} of at most {most}");
        }
        server.change(1, |_| ());
        for number in 0..50 {
            let frame = a.frame(ALL, number, 100);
            a.send(&PLAIN, &frame);
            assert_eq!(b.receive().frame, frame);
        }
    }
}

#[test]
fn private_adapters_talk_to_all_but_each_other_whenever_that_is_said() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |_| ());
        let mut b = server.client(2, How::default(), |card| card.private = true);
        let mut open = server.client(3, How::default(), |_| ());
        for client in [&mut a, &mut b, &mut open] {
            client.send(&PLAIN, &client.frame(ALL, 0, 60));
            client.sent();
        }
        // Each hears the other two.
        for client in [&mut a, &mut b, &mut open] {
            client.receive();
            client.receive();
        }
        server.change(1, |card| card.private = true);
        // Learned anew, or not: it is lost either way.
        for to in [ALL, mac(3)] {
            let frame = a.frame(to, 1, 100);
            a.send(&PLAIN, &frame);
            assert_eq!(open.receive().frame, frame);
        }
        for (number, (from, to, who)) in
            [(&mut a, mac(2), "ent1"), (&mut b, mac(1), "ent2")].into_iter().enumerate()
        {
            let frame = from.frame(to, 2, 100);
            from.send(&PLAIN, &frame);
            from.sent();
            // Whom the switch does not know any more the open one alone hears of.
            let lost = server.count_of(who, QueueCounter::DropPrivatePort);
            if lost == 0 {
                assert_eq!(open.receive().frame, frame, "{number}");
            }
        }
        // Nothing came to the other.
        let last = open.frame(ALL, 3, 100);
        open.send(&PLAIN, &last);
        assert_eq!((a.receive().frame, b.receive().frame), (last.clone(), last));
        for (from, who) in [(&mut a, "ent1"), (&mut b, "ent2")] {
            let other = if who == "ent1" { mac(2) } else { mac(1) };
            from.send(&PLAIN, &from.frame(ALL, 4, 100));
            open.receive();
            let before = server.count_of(who, QueueCounter::DropPrivatePort);
            from.send(&PLAIN, &from.frame(other, 5, 100));
            from.sent();
            let lost = server.count_of(who, QueueCounter::DropPrivatePort) - before;
            assert!(lost == 1 || open.receive().frame == from.frame(other, 5, 100));
        }
        server.change(1, |_| ());
        let frame = a.frame(mac(2), 6, 100);
        a.send(&PLAIN, &frame);
        assert_eq!(b.receive().frame, frame);
    }
}
