//! Clients that talk are on one channel: their frames are copied once, and nobody is woken for them. By counts, as [`QueueCounter::HandedOver`] has them.

use std::time::Instant;

use crate::common::Server;
use crate::common::net::{BUFFER_BYTES, Client, How, PLAIN, card, mac};
use crate::common::raw::GUARD;
use memory::random::Random;
use partition::blk::{self, Queue, SlotPlan, Status};
use partition::session::{Session, SessionOptions, StartPlan};
use protocol::message::{AdapterSpec, Placement, Request};
use protocol::stats::QueueCounter;

/// Frames on their way at once, in each direction.
const WINDOW: usize = 16;

fn handed_over(server: &Server) -> u64 {
    let queues = server.stats().queues;
    queues.iter().map(|queue| queue.get(QueueCounter::HandedOver)).sum()
}

/// The channels of the queues of a card, by their numbers.
fn channels_of(server: &Server, name: &str) -> Vec<u32> {
    let mut queues = server.stats().queues;
    queues.retain(|queue| queue.adapter == name);
    queues.sort_by_key(|queue| queue.queue);
    queues.iter().map(|queue| queue.channel).collect()
}

/// Each sends the other a window of frames by that pair, and gets the other's by any.
fn exchange(clients: &mut [Client; 2], by: usize) {
    for (from, to) in [(0, 1), (1, 0)] {
        let frame = clients[from].frame(mac(to as u8 + 1), 7, 100);
        for _ in 0..WINDOW {
            let tx = &mut clients[from].pairs[by].tx;
            tx.reap().unwrap();
            assert!(tx.add(&PLAIN, &frame).unwrap(), "there is room for a window");
            tx.publish().unwrap();
        }
    }
    for client in clients {
        let mut left = WINDOW;
        crate::common::net::wait("the other's frames", || {
            left -= taken(client);
            (left == 0).then_some(())
        });
        let tx = &mut client.pairs[by].tx;
        crate::common::net::wait("the end of sending", || {
            tx.reap().unwrap();
            (tx.outstanding() == 0).then_some(())
        });
    }
}

/// Takes what has come: how many frames.
fn taken(client: &mut Client) -> usize {
    let mut frames = 0;
    for pair in &mut client.pairs {
        while pair.rx.receive().unwrap().is_some() {
            frames += 1;
        }
        pair.rx.post(usize::MAX, BUFFER_BYTES).unwrap();
    }
    frames
}

/// Two cards with so many pairs.
fn clients(server: &Server, pairs: u16, placement: Placement) -> [Client; 2] {
    let how = How { queues: 2 * pairs, ..How::default() };
    [1, 2].map(|number| {
        let spec = card(server.dir.path(), number, |_| ());
        let spec = AdapterSpec { queues: how.queues, placement, ..spec };
        server.must(Request::PutAdapter(spec.clone()));
        Client::connect(&spec.socket, number, how)
    })
}

#[test]
fn a_pair_is_on_one_channel_and_pairs_of_one_number_hand_nothing_over() {
    let server = Server::new(2);
    let mut clients = clients(&server, 2, Placement::Spread);
    for name in ["ent1", "ent2"] {
        let channels = channels_of(&server, name);
        assert_eq!(channels[0], channels[1], "{name}: {channels:?}");
        assert_eq!(channels[2], channels[3], "{name}: {channels:?}");
        assert_ne!(channels[0], channels[2], "{name}: {channels:?}");
    }
    // All learn where all are, and that they use both pairs.
    for by in [0, 1, 0, 1] {
        exchange(&mut clients, by);
    }
    let before = handed_over(&server);
    for by in [0, 1, 0, 1] {
        exchange(&mut clients, by);
    }
    assert_eq!(handed_over(&server) - before, 0, "of {} frames", 8 * WINDOW);
}

#[test]
fn every_frame_between_two_channels_is_handed_over_and_counted() {
    let server = Server::new(2);
    let mut clients = clients(&server, 1, Placement::Spread);
    let [one, other] = ["ent1", "ent2"].map(|name| channels_of(&server, name));
    assert!(one[0] == one[1] && other[0] == other[1] && one[0] != other[0]);
    exchange(&mut clients, 0);
    let before = handed_over(&server);
    exchange(&mut clients, 0);
    assert_eq!(handed_over(&server) - before, 2 * WINDOW as u64);
}

/// A client sends more at once than an inbox has room for, to one on another channel that has buffers for all of it: what that channel has had no turn for waits with its sender. (A thread that the
/// scheduler keeps off its CPU for a millisecond costs frames all the same, so it is tried until it did not.)
#[test]
fn what_another_channel_has_had_no_turn_for_is_not_lost() {
    let server = Server::new(2);
    let mut clients = clients(&server, 1, Placement::Spread);
    exchange(&mut clients, 0);
    let count = |counter| ["ent1", "ent2"].map(|name| server.count_of(name, counter));
    let lost = || count(QueueCounter::DropFullRing)[0];
    let frame = clients[0].frame(mac(2), 7, 100);
    let mut sent = WINDOW as u64;
    crate::common::net::wait("a while without a lost frame", || {
        let before = lost();
        for _ in 0..50 {
            let [sender, receiver] = &mut clients;
            let tx = &mut sender.pairs[0].tx;
            while tx.add(&PLAIN, &frame).unwrap() {
                sent += 1;
            }
            tx.publish().unwrap();
            sender.sent();
            // All has arrived, or was counted.
            crate::common::net::wait("all frames", || {
                taken(receiver);
                let arrived = count(QueueCounter::RxFrames)[1];
                let none = count(QueueCounter::DropRxNoBuffer);
                (arrived + lost() + none[0] + none[1] == sent).then_some(())
            });
        }
        (lost() == before).then_some(())
    });
    assert!(sent > 50 * 64, "{sent} frames");
    let waits = count(QueueCounter::WaitBackEndFull)[0];
    println!("{sent} frames, {} lost, {waits} waited", lost());
    assert!(waits > 0);
}

/// Exchanges frames until a while has passed without one that was handed over.
fn settle(server: &Server, clients: &mut [Client; 2]) {
    let end = Instant::now() + 3 * GUARD;
    let (mut count, mut rounds) = (handed_over(server), 0);
    while rounds < 50 {
        exchange(clients, 0);
        let now = handed_over(server);
        rounds = if now == count { rounds + 1 } else { 0 };
        count = now;
        assert!(Instant::now() < end, "{count} were handed over");
    }
}

/// Large reads: the server copies, the client does next to nothing.
const BYTES: u32 = 256 << 10;

/// A disk that stays where it is, and its client.
fn disk(server: &Server, name: &str, queues: u16) -> (Session, Vec<Queue>) {
    let socket = server.dir.path().join(format!("{name}.sock"));
    let base = server.adapter(name);
    server.must(Request::PutAdapter(AdapterSpec {
        socket: socket.clone(),
        queues,
        channels: 1,
        placement: Placement::Spread,
        ..base
    }));
    let mut session = Session::connect(&socket, &SessionOptions::default()).unwrap();
    let slots = SlotPlan { slots: 16, data_bytes: BYTES, data_segments: 1, indirect: false };
    let plan = StartPlan { queues, queue_size: 64, threads: 1, slots };
    let queues = session.start(&plan).unwrap();
    (session, queues)
}

/// The disk's client reads all the time, and the cards' send what there is room for.
fn under_load(queue: &mut Queue, clients: &mut [Client; 2], random: &mut Random) {
    while let Some(done) = queue.poll().unwrap() {
        assert_eq!(done.status, Status::Ok);
        queue.give_back(done.slot);
    }
    while let Some(slot) = queue.take() {
        let offset = random.below(128) * u64::from(BYTES);
        queue.submit(slot, blk::Request::Read { offset, bytes: BYTES }).unwrap();
    }
    queue.publish().unwrap();
    for (from, to) in [(0, 1), (1, 0)] {
        let frame = clients[from].frame(mac(to as u8 + 1), 7, 100);
        let tx = &mut clients[from].pairs[0].tx;
        tx.reap().unwrap();
        for _ in 0..4 {
            tx.add(&PLAIN, &frame).unwrap();
        }
        tx.publish().unwrap();
        taken(&mut clients[to]);
    }
    std::thread::sleep(std::time::Duration::from_micros(50));
}

#[test]
fn those_that_talk_come_together_and_leave_the_channel_of_a_busy_disk() {
    let server = Server::new(2);
    server.must(Request::PutVolume(server.ram(32)));
    let mut clients = clients(&server, 1, Placement::Adaptive);
    assert_ne!(channels_of(&server, "ent1")[0], channels_of(&server, "ent2")[0]);
    exchange(&mut clients, 0);
    assert!(handed_over(&server) > 0, "they begin apart");
    settle(&server, &mut clients);
    let home = channels_of(&server, "ent1");
    assert_eq!(home, channels_of(&server, "ent2"));
    assert_eq!(home[0], home[1]);
    // The first one goes to the channel that has no queues, the second one to that with fewer: theirs.
    let _other = disk(&server, "other", 8);
    let (mut session, mut queues) = disk(&server, "disk", 1);
    assert_eq!(channels_of(&server, "disk"), [home[0]]);
    let (mut random, end) = (Random::new(3), Instant::now() + 3 * GUARD);
    let away =
        || ["ent1", "ent2"].iter().all(|name| !channels_of(&server, name).contains(&home[0]));
    while !away() {
        (0..10).for_each(|_| under_load(&mut queues[0], &mut clients, &mut random));
        assert!(Instant::now() < end, "they stay: {:?}", server.stats().channels);
    }
    session.stop().unwrap();
    // What was on its way.
    for _ in 0..2 {
        for client in &mut clients {
            client.sent();
            crate::common::net::wait("what waits", || (taken(client) == 0).then_some(()));
        }
    }
    settle_after(&server, &mut clients);
}

/// As [`settle`], where frames of before may still come.
fn settle_after(server: &Server, clients: &mut [Client; 2]) {
    let sent = || {
        server.count_of("ent1", QueueCounter::TxFrames)
            + server.count_of("ent2", QueueCounter::TxFrames)
    };
    let got = || {
        let stats = server.stats().queues;
        let ends = QueueCounter::ALL
            .iter()
            .filter(|it| it.info().name.starts_with("drop_") || **it == QueueCounter::RxFrames);
        ends.map(|end| stats.iter().map(|queue| queue.get(*end)).sum::<u64>()).sum::<u64>()
    };
    crate::common::net::wait("all frames to arrive", || {
        clients.iter_mut().for_each(|client| assert!(taken(client) <= 80));
        (sent() == got()).then_some(())
    });
    clients.iter_mut().for_each(|client| assert!(taken(client) <= 80));
    settle(server, clients);
}
