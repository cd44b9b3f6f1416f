//! Network cards: frames between clients, on one channel and on two.

use std::time::Duration;

use crate::common::Server;
use crate::common::net::{Client, How, OFFLOADS, PLAIN, mac, wait};
use partition::net::{HEADER_BYTES, feature};
use protocol::message::Request;
use protocol::stats::QueueCounter;

const ALL: [u8; 6] = [0xff; 6];

/// Everybody is heard once, so that nothing is flooded.
fn introduce(clients: &mut [&mut Client]) {
    for from in 0..clients.len() {
        let frame = clients[from].frame(ALL, 0xffff_ffff, 60);
        clients[from].send(&PLAIN, &frame);
        for (to, client) in clients.iter_mut().enumerate() {
            if to != from {
                assert_eq!(client.receive().frame, frame);
            }
        }
    }
}

#[test]
fn frames_of_all_lengths_arrive_as_they_were_sent() {
    for channels in [1, 2] {
        for without in [0, feature::MRG_RXBUF, 1 << 35, 1 << 29, 1 << 28] {
            let server = Server::new(channels);
            let how = How { without, ..How::default() };
            let mut a = server.client(1, how, |_| ());
            let mut b = server.client(2, how, |_| ());
            introduce(&mut [&mut a, &mut b]);
            for (number, len) in (0..).zip([60, 61, 255, 256, 257, 268, 269, 1000, 1514, 18]) {
                let (there, back) = (a.frame(b.mac(), number, len), b.frame(a.mac(), number, len));
                a.send(&PLAIN, &there);
                b.send(&PLAIN, &back);
                for (client, frame) in [(&mut b, there), (&mut a, back)] {
                    let received = client.receive();
                    assert_eq!(received.frame, frame, "{channels} channels, {len} bytes");
                    let header = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
                    assert_eq!(received.header, header, "one buffer, and nothing left to do");
                }
            }
            // A frame is counted when its sender gets its buffers back, and may arrive before.
            a.sent();
            let sent = server.count_of("ent1", QueueCounter::TxFrames);
            assert_eq!((sent, server.count_of("ent2", QueueCounter::RxFrames)), (11, 11));
        }
    }
}

#[test]
fn many_frames_arrive_in_their_order() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |_| ());
        let mut b = server.client(2, How::default(), |_| ());
        introduce(&mut [&mut a, &mut b]);
        let (mut sent, mut came) = (0, 0);
        // No more at once than fit an inbox, so that none is lost.
        while came < 20_000 {
            while sent < 20_000 && sent - came < 60 {
                let frame = a.frame(mac(2), sent, 60 + (sent as usize * 37) % 1400);
                a.send(&PLAIN, &frame);
                sent += 1;
            }
            let frame = b.receive().frame;
            assert_eq!(frame, a.frame(mac(2), came, 60 + (came as usize * 37) % 1400));
            came += 1;
        }
        assert_eq!(server.count_of("ent2", QueueCounter::RxFrames), 20_001);
    }
}

#[test]
fn a_frame_lies_in_as_many_buffers_as_it_needs() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |_| ());
        let mut b = server.client(2, How { post: (0, 0), ..How::default() }, |_| ());
        b.pairs[0].rx.post(2, 512).unwrap();
        a.send(&PLAIN, &a.frame(mac(2), 7, 1500));
        wait("the frame to be sent", || {
            (server.count_of("ent1", QueueCounter::TxFrames) == 1).then_some(())
        });
        a.sent();
        b.has_nothing();
        // The third buffer is what it waited for.
        b.pairs[0].rx.post(1, 512).unwrap();
        let received = wait("the frame", || b.pairs[0].rx.receive().unwrap());
        assert_eq!(received.header[10], 3);
        assert_eq!(received.frame, a.frame(mac(2), 7, 1500));
    }
}

#[test]
fn a_buffer_that_is_too_short_loses_the_frame_and_stays() {
    let server = Server::new(1);
    let how = How { without: feature::MRG_RXBUF, post: (1, 128), ..How::default() };
    let mut a = server.client(1, How::default(), |_| ());
    let mut b = server.client(2, how, |_| ());
    a.send(&PLAIN, &a.frame(mac(2), 1, 200));
    wait("the frame to be lost", || {
        (server.count_of("ent2", QueueCounter::DropRxBufferTooSmall) == 1).then_some(())
    });
    a.send(&PLAIN, &a.frame(mac(2), 2, 100));
    assert_eq!(b.receive().frame, a.frame(mac(2), 2, 100));
}

#[test]
fn a_vlan_is_seen_by_its_members_alone() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |card| card.pvid = 10);
        let mut b = server.client(2, How::default(), |card| card.pvid = 20);
        let mut trunk = server.client(3, How::default(), |card| card.vids = vec![10]);
        let frame = a.frame(ALL, 1, 100);
        a.send(&PLAIN, &frame);
        let tagged = [&frame[..12], &[0x81, 0, 0, 10], &frame[12..]].concat();
        assert_eq!(trunk.receive().frame, tagged);
        let back = trunk.frame(mac(1), 2, 100);
        trunk.send(&PLAIN, &[&back[..12], &[0x81, 0, 0, 10], &back[12..]].concat());
        assert_eq!(a.receive().frame, back);
        // Of a VLAN that it is no member of.
        trunk.send(&PLAIN, &[&back[..12], &[0x81, 0, 0, 20], &back[12..]].concat());
        trunk.sent();
        assert_eq!(server.count_of("ent3", QueueCounter::DropVlanFilter), 1);
        assert_eq!(server.count_of("ent2", QueueCounter::RxFrames), 0);
        b.has_nothing();
    }
}

#[test]
fn vlans_change_under_a_running_client() {
    let server = Server::new(2);
    let mut a = server.client(1, How::default(), |_| ());
    let mut b = server.client(2, How::default(), |_| ());
    introduce(&mut [&mut a, &mut b]);
    let change = |pvid| {
        let spec = crate::common::net::card(server.dir.path(), 2, |card| card.pvid = pvid);
        server.must(Request::PutAdapter(spec));
    };
    change(2);
    a.send(&PLAIN, &a.frame(mac(2), 1, 100));
    a.sent();
    assert_eq!(server.count_of("ent1", QueueCounter::DropNoTxTarget), 1);
    change(1);
    a.send(&PLAIN, &a.frame(mac(2), 2, 100));
    assert_eq!(b.receive().frame, a.frame(mac(2), 2, 100));
}

#[test]
fn what_is_longer_than_the_mtu_is_lost_and_counted() {
    let server = Server::new(1);
    let mut a = server.client(1, How::default(), |card| card.mtu = 9000);
    let mut b = server.client(2, How::default(), |_| ());
    a.send(&PLAIN, &a.frame(mac(2), 1, 1515));
    a.send(&PLAIN, &a.frame(mac(2), 2, 1514));
    assert_eq!(b.receive().frame, a.frame(mac(2), 2, 1514));
    assert_eq!(server.count_of("ent2", QueueCounter::DropMtuExceeded), 1);
    for bad in [&[][..], &PLAIN[..5], &PLAIN] {
        a.send(bad, &[]);
    }
    a.sent();
    let short = server.count_of("ent1", QueueCounter::DropPktTooSmall);
    let broken = server.count_of("ent1", QueueCounter::DropGuestMemory);
    assert_eq!(short + broken, 3);
}

#[test]
fn a_client_that_may_use_its_own_address_alone_is_held_to_it() {
    let server = Server::new(1);
    let mut a = server.client(1, How::default(), |card| card.any_mac = false);
    let mut b = server.client(2, How::default(), |_| ());
    let mut frame = a.frame(mac(2), 1, 100);
    frame[11] = 9;
    a.send(&PLAIN, &frame);
    a.send(&PLAIN, &a.frame(mac(2), 2, 100));
    assert_eq!(b.receive().frame, a.frame(mac(2), 2, 100));
    assert_eq!(server.count_of("ent1", QueueCounter::DropSpoofMac), 1);
}

#[test]
fn who_never_posts_buffers_holds_up_nobody() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |_| ());
        let mut b = server.client(2, How::default(), |_| ());
        let mut idle = server.client(3, How { post: (0, 0), ..How::default() }, |_| ());
        for number in 0..1000 {
            let frame = a.frame(ALL, number, 300);
            a.send(&PLAIN, &frame);
            assert_eq!(b.receive().frame, frame);
        }
        a.sent();
        let count = |counter| server.count_of("ent3", counter) + server.count_of("ent1", counter);
        let dropped = || count(QueueCounter::DropRxNoBuffer) + count(QueueCounter::DropFullRing);
        // What an inbox holds is neither lost nor delivered yet.
        let held = device_net::INBOX_FRAMES as u64;
        assert_eq!(dropped(), 1000 - held);
        idle.pairs[0].rx.post(usize::MAX, 1024).unwrap();
        for number in 0..held as u32 {
            let received = wait("a frame", || idle.pairs[0].rx.receive().unwrap());
            assert_eq!(received.frame, a.frame(ALL, number, 300), "the oldest first");
        }
        assert_eq!(server.count_of("ent3", QueueCounter::RxFrames), held);
    }
}

/// The checksum of some bytes, as each host makes it.
fn sum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let words = bytes
        .chunks(2)
        .map(|two| u64::from(two[0]) << 8 | u64::from(two.get(1).copied().unwrap_or(0)));
    let mut total: u64 = words.sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

/// TCP over IPv4 with nothing in its checksums.
fn tcp(from: &Client, to: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&mac(to)[..], &from.mac(), &[8, 0]].concat();
    let total = (40 + payload.len()) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from.number, 10, 0, 0, to]);
    let ip = sum(&[&frame[14..34]]);
    frame[24..26].copy_from_slice(&ip.to_be_bytes());
    frame.extend([0x30, 0x39, 0, 80, 0, 0, 1, 0, 0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    frame.extend(payload);
    frame
}

/// Both checksums of a frame are right.
fn assert_sums(frame: &[u8]) {
    assert_eq!(sum(&[&frame[14..34]]), 0, "the header's");
    let length = (frame.len() - 34) as u16;
    let pseudo = [&frame[26..34], &[0, 6], &length.to_be_bytes()].concat();
    assert_eq!(sum(&[&pseudo, &frame[34..]]), 0, "the payload's");
}

#[test]
fn what_a_receiver_does_not_take_is_done_for_it() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |_| ());
        let mut b = server.client(2, How { without: OFFLOADS, ..How::default() }, |_| ());
        let mut c = server.client(3, How::default(), |_| ());
        introduce(&mut [&mut a, &mut b, &mut c]);
        let payload: Vec<u8> = (0..60_001_u32).map(|at| (at * 13 + at / 251) as u8).collect();
        let mut header = [0; HEADER_BYTES];
        (header[0], header[1]) = (1, 1);
        header[2..4].copy_from_slice(&54_u16.to_le_bytes());
        header[4..6].copy_from_slice(&1448_u16.to_le_bytes());
        header[6..8].copy_from_slice(&34_u16.to_le_bytes());
        header[8..10].copy_from_slice(&16_u16.to_le_bytes());

        // One that takes it gets it as it is.
        a.send(&header, &tcp(&a, 3, &payload));
        let received = c.receive();
        assert_eq!((received.header[1], received.frame.len()), (1, 54 + payload.len()));
        assert!(received.frame[54..] == payload);

        a.send(&header, &tcp(&a, 2, &payload));
        let mut arrived: Vec<u8> = Vec::new();
        while arrived.len() < payload.len() {
            let received = b.receive();
            assert_eq!(received.header[..10], [0; 10], "nothing is left to it");
            assert_sums(&received.frame);
            let sequence = u32::from_be_bytes(received.frame[38..42].try_into().unwrap());
            assert_eq!(sequence as usize, 0x100 + arrived.len());
            assert!(received.frame.len() <= 54 + 1448);
            arrived.extend(&received.frame[54..]);
        }
        assert!(arrived == payload, "{channels} channels");

        // A checksum alone.
        (header[1], header[4], header[5]) = (0, 0, 0);
        let mut frame = tcp(&a, 2, b"odd");
        let pseudo = !sum(&[&frame[26..34], &[0, 6], &23_u16.to_be_bytes()]);
        frame[50..52].copy_from_slice(&pseudo.to_be_bytes());
        a.send(&header, &frame);
        assert_sums(&b.receive().frame);
        // What a client has not negotiated it may not use.
        b.send(&header, &tcp(&b, 1, b"odd"));
        b.sent();
        assert_eq!(server.count_of("ent2", QueueCounter::DropInvalidHwol), 1);
    }
}

#[test]
fn clients_come_and_go() {
    let server = Server::new(2);
    let mut a = server.client(1, How::default(), |_| ());
    let socket = server.path("ent2.sock");
    let mut b = Some(server.client(2, How::default(), |_| ()));
    for round in 0..20 {
        let mut here = b.take().unwrap_or_else(|| Client::connect(&socket, 2, How::default()));
        introduce(&mut [&mut a, &mut here]);
        a.send(&PLAIN, &a.frame(mac(2), round, 500));
        assert_eq!(here.receive().frame, a.frame(mac(2), round, 500));
        if round % 2 == 0 {
            here.session.stop().unwrap();
        }
        drop(here);
        server.settled_named("ent2");
        a.send(&PLAIN, &a.frame(mac(2), round, 500));
        a.sent();
    }
    // Nobody was there to get these.
    assert_eq!(server.count_of("ent1", QueueCounter::DropNoTxTarget), 20);
    let gone = Request::RemoveAdapter { name: "ent1".to_owned() };
    server.must(gone);
}

#[test]
fn what_waited_for_one_who_left_is_counted_by_who_sent_it() {
    let server = Server::new(1);
    let mut sender = server.client(1, How::default(), |_| ());
    let slow = How { post: (0, 0), ..How::default() };
    let lost = || server.count_of("ent1", QueueCounter::DropPortDown);
    for (round, removed) in [false, true].into_iter().enumerate() {
        let round = round as u64;
        let gone = server.client(2, slow, |_| ());
        for number in 0..10 {
            let frame = sender.frame(mac(2), number, 100);
            sender.send(&PLAIN, &frame);
        }
        sender.sent();
        assert_eq!(lost(), 10 * round);
        if removed {
            server.must(Request::RemoveAdapter { name: "ent2".to_owned() });
        }
        drop(gone);
        wait("the frames to be counted", || (lost() == 10 * (round + 1)).then_some(()));
        if !removed {
            server.must(Request::RemoveAdapter { name: "ent2".to_owned() });
        }
    }
    // Nothing is counted twice.
    let mut other = server.client(2, How::default(), |_| ());
    let frame = other.frame([0xff; 6], 1, 100);
    other.send(&PLAIN, &frame);
    assert_eq!(sender.receive().frame, frame);
    assert_eq!(lost(), 20);
}

#[test]
fn two_networks_know_nothing_of_each_other() {
    let server = Server::new(1);
    let mut a = server.client(1, How::default(), |_| ());
    let mut b = server.client(2, How::default(), |card| card.network = "other".to_owned());
    a.send(&PLAIN, &a.frame(ALL, 1, 100));
    a.sent();
    b.has_nothing();
    assert_eq!(server.count_of("ent1", QueueCounter::DropNoTxTarget), 1);
}

#[test]
fn traffic_goes_on_after_a_data_plane_was_killed() {
    // With the in-flight region, without it as QEMU, and without even an index of its rings as DPDK's virtio-user.
    let without = partition::session::protocol_feature::INFLIGHT_SHMFD;
    for (mask_protocol, forgets_base) in [(0, false), (without, false), (without, true)] {
        let dir = tempfile::tempdir().unwrap();
        let cards = [1, 2].map(|number| crate::common::net::card(dir.path(), number, |_| ()));
        let setup = cards.clone().map(Request::PutAdapter);
        let mut process = crate::common::process::Process::start(dir.path(), &setup);
        let how = How { mask_protocol, forgets_base, ..How::default() };
        let [mut a, mut b] = [1, 2]
            .map(|number: u8| Client::connect(&cards[usize::from(number) - 1].socket, number, how));
        introduce(&mut [&mut a, &mut b]);
        let (mut sent, mut last) = (0_u32, 0_u32);
        for round in 0..8 {
            // Under way when it dies: sent, taken, and received.
            for _ in 0..200 + round * 37 {
                let tx = &mut a.pairs[0].tx;
                tx.reap().unwrap();
                sent += 1;
                let frame =
                    crate::common::net::frame(mac(1), mac(2), sent, 60 + sent as usize % 1400);
                let _ = tx.add(&PLAIN, &frame).unwrap();
                tx.publish().unwrap();
                if let Some(received) = b.pairs[0].rx.receive().unwrap() {
                    last = last.max(check(&received.frame));
                    b.pairs[0].rx.post(usize::MAX, crate::common::net::BUFFER_BYTES).unwrap();
                }
            }
            process.kill();
            process = crate::common::process::Process::start(dir.path(), &setup);
            let patience = std::time::Duration::from_secs(60);
            a.session.reconnect(patience).unwrap();
            b.session.reconnect(patience).unwrap();
            // What is sent from now on arrives: both have all their buffers.
            sent += 1000;
            let mark = sent;
            wait("a frame that was sent afterwards", || {
                sent += 1;
                a.pairs[0].tx.reap().unwrap();
                let frame = crate::common::net::frame(mac(1), mac(2), sent, 100);
                let _ = a.pairs[0].tx.add(&PLAIN, &frame).unwrap();
                a.pairs[0].tx.publish().unwrap();
                let received = b.pairs[0].rx.receive().unwrap()?;
                b.pairs[0].rx.post(usize::MAX, crate::common::net::BUFFER_BYTES).unwrap();
                last = check(&received.frame);
                (last > mark).then_some(())
            });
            a.sent();
            wait("the rest", || b.pairs[0].rx.receive().unwrap().is_none().then_some(()));
            b.pairs[0].rx.post(usize::MAX, crate::common::net::BUFFER_BYTES).unwrap();
            assert_eq!(b.pairs[0].rx.outstanding(), 80, "no buffer is lost or doubled");
        }
    }
}

#[test]
fn a_client_whose_adapter_is_removed_finds_its_rings_at_rest() {
    let server = Server::new(1);
    let mut late = 0;
    for _ in 0..200 {
        let mut client = server.client(1, How::default(), |_| ());
        let frame = client.frame(mac(2), 1, 60);
        std::thread::scope(|scope| {
            scope.spawn(|| server.must(Request::RemoveAdapter { name: "ent1".to_owned() }));
            let tx = &mut client.pairs[0].tx;
            while !client.session.closed_within(Duration::ZERO).unwrap() {
                tx.reap().unwrap();
                while tx.add(&PLAIN, &frame).unwrap() {}
                tx.publish().unwrap();
            }
            // QEMU uses the ring itself from now on.
            tx.reap().unwrap();
            let before = tx.outstanding();
            std::thread::sleep(Duration::from_millis(5));
            tx.reap().unwrap();
            late += before - tx.outstanding();
        });
    }
    assert_eq!(late, 0, "frames that were used by both");
}

/// A frame arrived whole; its number.
fn check(frame: &[u8]) -> u32 {
    let number = u32::from_be_bytes(frame[14..18].try_into().unwrap());
    if number != 0xffff_ffff {
        assert!(
            *frame == crate::common::net::frame(mac(1), mac(2), number, frame.len()),
            "it is torn"
        );
    }
    number
}
