//! Network cards with bounds on how much their clients send and get.

use std::time::Instant;

use crate::common::Server;
use crate::common::net::{Client, How, PLAIN, card, mac, wait};
use protocol::message::{AdapterSpec, Placement, RateSpec, Request};
use protocol::stats::QueueCounter;

const FRAMES: RateSpec =
    RateSpec { frames_per_s: 1, frames_burst: 10, bytes_per_s: 0, bytes_burst: 0 };
const BYTES: RateSpec =
    RateSpec { frames_per_s: 0, frames_burst: 0, bytes_per_s: 100, bytes_burst: 1000 };
const SENT: u64 = 300;

/// Sends frames of 100 bytes from one to another; how many arrived; the others were lost for that reason.
fn storm(
    server: &Server,
    from: &mut Client,
    to: &mut Client,
    (who, reason): (&str, QueueCounter),
) -> u64 {
    let before = server.count_of(who, reason);
    let mut passed = 0;
    for number in 0..SENT {
        from.send(&PLAIN, &from.frame(to.mac(), number as u32, 100));
        // One at a time: a receiver that has not run for a while would have no room for more.
        wait("it to be delivered or counted", || {
            while to.pairs[0].rx.receive().unwrap().is_some() {
                passed += 1;
            }
            to.pairs[0].rx.post(usize::MAX, 2048).unwrap();
            (passed + server.count_of(who, reason) - before == number + 1).then_some(())
        });
    }
    passed
}

#[test]
fn what_a_client_sends_and_gets_is_bounded_and_let_go_while_it_runs() {
    let small = || How { post: (usize::MAX, 2048), ..How::default() };
    for channels in [1, 2] {
        for bound in [FRAMES, BYTES] {
            let server = Server::new(channels);
            let mut a = server.client(1, small(), |_| ());
            let mut b = server.client(2, small(), |_| ());
            // Both are known.
            for (from, to) in [(1, 2), (2, 1)] {
                let (from, to) = if from < to { (&mut a, &mut b) } else { (&mut b, &mut a) };
                let frame = from.frame([0xff; 6], 0, 60);
                from.send(&PLAIN, &frame);
                assert_eq!(to.receive().frame, frame);
            }
            let (sends, gets) =
                (("ent1", QueueCounter::DropQosDrop), ("ent2", QueueCounter::DropRxQosDrop));
            // A hundred bytes each, ten at once, and one a second: by frames as by bytes.
            let holds = |passed: u64, since: Instant| {
                let most = 10 + since.elapsed().as_secs() + 1;
                assert!((10..=most).contains(&passed), "{passed} of at most {most}");
            };
            let since = Instant::now();
            server.change(1, |card| card.limit_tx = bound);
            holds(storm(&server, &mut a, &mut b, sends), since);
            // What it gets is not what it sends.
            assert_eq!(storm(&server, &mut b, &mut a, gets), SENT);
            // Another change does not fill the bucket again.
            server.change(1, |card| (card.limit_tx, card.pvid, card.vids) = (bound, 1, vec![7]));
            let again = storm(&server, &mut a, &mut b, sends);
            assert!(again <= since.elapsed().as_secs() + 1, "{again}");
            let since = Instant::now();
            server.change(1, |card| card.limit_rx = bound);
            assert_eq!(storm(&server, &mut a, &mut b, sends), SENT);
            holds(storm(&server, &mut b, &mut a, gets), since);
            server.change(1, |_| ());
            assert_eq!(storm(&server, &mut a, &mut b, sends), SENT);
            assert_eq!(storm(&server, &mut b, &mut a, gets), SENT);
        }
    }
}

#[test]
fn a_rate_holds_once_for_queues_on_several_channels() {
    let server = Server::new(3);
    let spec = card(server.dir.path(), 1, |card| card.limit_tx = FRAMES);
    let spec = AdapterSpec { queues: 8, placement: Placement::Spread, ..spec };
    let socket = spec.socket.clone();
    server.must(Request::PutAdapter(spec));
    let since = Instant::now();
    let mut a = Client::connect(&socket, 1, How { queues: 8, ..How::default() });
    let mut b = server.client(2, How::default(), |_| ());
    for number in 0..100 {
        let frame = a.frame(mac(2), number, 100);
        for pair in &mut a.pairs {
            wait("a free buffer", || {
                pair.tx.reap().unwrap();
                pair.tx.add(&PLAIN, &frame).unwrap().then_some(())
            });
            pair.tx.publish().unwrap();
        }
        while b.receive_within(std::time::Duration::ZERO).is_some() {}
    }
    let sent = 4 * 100;
    let passed = wait("all to be counted", || {
        while b.receive_within(std::time::Duration::ZERO).is_some() {}
        let passed = server.count_of("ent2", QueueCounter::RxFrames);
        let lost = server.count_of("ent1", QueueCounter::DropQosDrop);
        (passed + lost == sent).then_some(passed)
    });
    let most = 10 + since.elapsed().as_secs() + 1;
    assert!((10..=most).contains(&passed), "{passed} of at most {most}");
    let stats = server.stats();
    let mut busy: Vec<_> = stats
        .queues
        .iter()
        .filter(|queue| queue.adapter == "ent1" && queue.get(QueueCounter::DropQosDrop) > 0)
        .map(|queue| queue.channel)
        .collect();
    busy.sort_unstable();
    busy.dedup();
    assert_eq!(busy.len(), 3, "all channels have lost some");
}

#[test]
fn a_client_that_connects_again_has_no_more_for_that() {
    let server = Server::new(1);
    let mut b = server.client(2, How::default(), |_| ());
    let since = Instant::now();
    let spec = card(server.dir.path(), 1, |card| card.limit_tx = FRAMES);
    let socket = spec.socket.clone();
    server.must(Request::PutAdapter(spec));
    for round in 0..5_u64 {
        let mut a = Client::connect(&socket, 1, How::default());
        for number in 0..20 {
            a.send(&PLAIN, &a.frame(mac(2), number, 100));
        }
        a.sent();
        wait("all to be counted", || {
            while b.receive_within(std::time::Duration::ZERO).is_some() {}
            let passed = server.count_of("ent2", QueueCounter::RxFrames);
            let lost = server.count_of("ent1", QueueCounter::DropQosDrop);
            (passed + lost == 20 * (round + 1)).then_some(())
        });
        drop(a);
        server.settled_named("ent1");
    }
    let passed = server.count_of("ent2", QueueCounter::RxFrames);
    let most = 10 + since.elapsed().as_secs() + 1;
    assert!((10..=most).contains(&passed), "{passed} of at most {most}");
}
