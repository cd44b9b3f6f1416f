//! DPDK's testpmd as the client of network cards, in both roles of the socket, and over deaths of the data plane.

use std::time::{Duration, Instant};

use crate::common::Server;
use crate::common::net::{How, PLAIN, card, mac, wait};
use crate::common::process::Process;
use crate::common::testpmd::{Counted, RING, Testpmd};
use protocol::message::{AdapterSpec, Request, SocketRole};
use protocol::stats::{QueueCounter, Snapshot};

/// How many deaths there are to be.
const KILLS: &str = "TRUNKLINE_NET_KILLS";

/// A card, and what testpmd is told of it.
fn card_and_device(
    folder: &std::path::Path,
    number: u8,
    role: SocketRole,
    queues: u16,
) -> (AdapterSpec, String) {
    let card = card(folder, number, |_| ());
    let card = AdapterSpec { socket_role: role, queues: 2 * queues, ..card };
    let listens = if role == SocketRole::Client { ",server=1" } else { "" };
    let [a, b, c, d, e, f] = mac(number);
    let several = if queues > 1 { format!(",queues={queues},cq=1") } else { String::new() };
    let device = format!(
        "path={},mac={a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}{listens}{several}",
        card.socket.display()
    );
    (card, device)
}

fn sum(stats: &Snapshot, card: &str, wanted: impl Fn(&QueueCounter) -> bool) -> u64 {
    let queues = || stats.queues.iter().filter(|queue| queue.adapter == card);
    let counters = QueueCounter::ALL.iter().filter(|counter| wanted(counter));
    counters.map(|counter| queues().map(|queue| queue.get(*counter)).sum::<u64>()).sum()
}

/// Frames that were taken of a card's client, also such as nobody was there for (which are not sent), that it got, and that were lost.
fn frames(stats: &Snapshot, number: u8) -> [u64; 3] {
    let card = format!("ent{number}");
    [
        sum(stats, &card, |counter| *counter == QueueCounter::CommandsReceived),
        sum(stats, &card, |counter| *counter == QueueCounter::RxFrames),
        sum(stats, &card, |counter| counter.info().name.starts_with("drop_")),
    ]
}

#[test]
fn two_ports_exchange_frames_in_both_roles_of_the_socket() {
    // As it is, without IN_ORDER, without mergeable buffers besides, and with two pairs of queues.
    let variants = [("", 1), (",in_order=0", 1), (",in_order=0,mrg_rxbuf=0", 1), ("", 2)];
    for role in [SocketRole::Server, SocketRole::Client] {
        for (more, pairs) in variants {
            let server = Server::new(2);
            let (cards, devices): (Vec<_>, Vec<_>) = [1, 2]
                .map(|number| card_and_device(server.dir.path(), number, role, pairs))
                .into_iter()
                .unzip();
            cards.into_iter().for_each(|card| server.must(Request::PutAdapter(card)));
            let devices: Vec<_> = devices.iter().map(|device| format!("{device}{more}")).collect();
            let [rxq, txq] = ["rxq", "txq"].map(|word| format!("--{word}={pairs}"));
            let mut testpmd = Testpmd::start(&devices, &[&rxq, &txq]);
            testpmd.ready();
            // Each port sends 32 for each of its queues. What a port gets the other one sends again, so that they go round.
            testpmd.say("start tx_first");
            wait("frames to go round", || {
                let stats = server.stats();
                [1, 2].iter().all(|number| frames(&stats, *number)[1] > 5000).then_some(())
            });
            testpmd.stop();
            let counted = testpmd.counted();
            wait(&format!("all frames to be counted: {role:?}{more}, {counted:?}"), || {
                let stats = server.stats();
                let [a, b] = [1, 2].map(|number| frames(&stats, number));
                assert!(a[0] <= counted[0].sent && b[0] <= counted[1].sent);
                let all_sent = (a[0], b[0]) == (counted[0].sent, counted[1].sent);
                let ends = a[1] + b[1] + a[2] + b[2];
                (all_sent && ends == a[0] + b[0]).then_some(())
            });
            testpmd.quit();
        }
    }
}

#[test]
fn what_testpmd_sends_back_is_what_it_got() {
    for role in [SocketRole::Server, SocketRole::Client] {
        let server = Server::new(2);
        let (card, device) = card_and_device(server.dir.path(), 1, role, 1);
        server.must(Request::PutAdapter(card));
        let mut testpmd = Testpmd::start(&[device], &["--port-topology=loop"]);
        testpmd.ready();
        testpmd.say("set fwd macswap");
        testpmd.say("start");
        let mut client = server.client(2, How::default(), |_| ());
        for (number, len) in (0..).zip([60, 61, 64, 255, 256, 257, 1000, 1513, 1514].repeat(20)) {
            let frame = client.frame(mac(1), number, len);
            client.send(&PLAIN, &frame);
            let back = [&frame[6..12], &frame[..6], &frame[12..]].concat();
            assert_eq!(client.receive().frame, back, "{len} bytes");
        }
        testpmd.stop();
        let sent = server.count_of("ent2", QueueCounter::TxFrames);
        assert_eq!(testpmd.counted(), [Counted { received: sent, sent }]);
        testpmd.quit();
    }
}

/// A data plane with two cards, whose only client is testpmd.
struct Under {
    testpmd: Testpmd,
    process: Option<Process>,
}

impl Drop for Under {
    fn drop(&mut self) {
        if std::thread::panicking() && self.process.is_some() {
            let stats = self.stats();
            for port in [0, 1] {
                eprintln!("port {port}: {:?}", self.testpmd.rings(port));
                for queue in &stats.queues {
                    let counted =
                        QueueCounter::ALL.iter().map(|it| (it.info().name, queue.get(*it)));
                    let counted: Vec<_> = counted.filter(|(_, count)| *count > 0).collect();
                    eprintln!("{} queue {}: {counted:?}", queue.adapter, queue.queue);
                }
            }
        }
    }
}

impl Under {
    fn stats(&mut self) -> Snapshot {
        self.process.as_mut().unwrap().stats()
    }

    /// Waits until each port has got so many frames, more than its ring has descriptors.
    fn passes(&mut self, more: u64) {
        let before = self.stats();
        wait("frames to go both ways", || {
            let stats = self.stats();
            let got = |number| frames(&stats, number)[1] - frames(&before, number)[1];
            (got(1) >= more && got(2) >= more).then_some(())
        });
    }

    /// Takes all that is still to come, and stops with both rings of both ports at rest: nothing to be sent, and all buffers posted.
    fn drains(&mut self) {
        self.testpmd.say("set fwd rxonly");
        self.testpmd.say("start");
        wait("rings at rest", || {
            let stats = self.stats();
            let [a, b] = [1, 2].map(|number| frames(&stats, number));
            // Nothing is on its way in the server.
            let ended = a[0] + b[0] == a[1] + b[1] + a[2] + b[2];
            let rings = [0, 1].map(|port| self.testpmd.rings(port));
            let rest = rings.iter().all(|[rx, tx]| (rx.out(), tx.out()) == (RING, 0));
            (ended && rest).then_some(())
        });
        self.testpmd.stop();
    }
}

#[test]
fn a_data_plane_is_killed_under_its_traffic_again_and_again() {
    let began = Instant::now();
    let deaths = torture(&|deaths| deaths < 5 || began.elapsed() < Duration::from_secs(20));
    println!("{deaths} deaths");
}

#[test]
#[ignore = "long: cargo xtask torture net"]
fn as_many_deaths_as_are_asked_for() {
    let kills: u32 = std::env::var(KILLS).expect("how many").parse().expect("a number");
    assert_eq!(torture(&|deaths| deaths < kills), kills);
}

/// A data plane dies under traffic as often as `again` says; how often that was.
fn torture(again: &dyn Fn(u32) -> bool) -> u32 {
    let dir = tempfile::tempdir().unwrap();
    // Of DPDK's roles the one that survives a back end: it listens.
    let (cards, devices): (Vec<_>, Vec<_>) = [1, 2]
        .map(|number| card_and_device(dir.path(), number, SocketRole::Client, 1))
        .into_iter()
        .unzip();
    let setup: Vec<_> = cards.into_iter().map(Request::PutAdapter).collect();
    let peers = ["--eth-peer=0,02:00:00:00:00:02", "--eth-peer=1,02:00:00:00:00:01"];
    let process = Some(Process::start(dir.path(), &setup));
    let mut under = Under { testpmd: Testpmd::start(&devices, &peers), process };
    under.testpmd.ready();
    // Sends from both ports as fast as there is room, and takes what comes.
    under.testpmd.say("set fwd flowgen");
    under.testpmd.say("start");
    let mut deaths = 0;
    while again(deaths) {
        // At different distances from a start; now and then while it is told of the rings.
        if deaths % 5 != 4 {
            under.passes(u64::from(RING) * (2 + u64::from(deaths * 7 % 11)));
        }
        under.process.take().unwrap().kill();
        deaths += 1;
        under.process = Some(Process::start(dir.path(), &setup));
    }
    under.passes(4 * u64::from(RING));
    under.testpmd.stop();
    under.drains();

    // Both sides count the same from now on: none is used twice.
    under.testpmd.say("clear port stats all");
    let before = under.stats();
    under.testpmd.say("set fwd flowgen");
    under.testpmd.say("start");
    under.passes(20 * u64::from(RING));
    under.testpmd.stop();
    under.drains();
    let (counted, after) = (under.testpmd.counted(), under.stats());
    let since = |number| {
        let (before, after) = (frames(&before, number), frames(&after, number));
        [0, 1, 2].map(|which| after[which] - before[which])
    };
    let [a, b] = [since(1), since(2)];
    assert_eq!(counted[0], Counted { sent: a[0], received: a[1] });
    assert_eq!(counted[1], Counted { sent: b[0], received: b[1] });
    assert_eq!(a[0] + b[0], a[1] + b[1] + a[2] + b[2], "each was delivered, or lost and counted");

    // Every descriptor of a ring for receiving is there: a port that takes nothing gets as many frames as it has buffers.
    for (from, to) in [(0, 1), (1, 0)] {
        let got = |under: &mut Under| frames(&under.stats(), to + 1);
        let before = got(&mut under);
        under.testpmd.say(&format!("set portlist {from}"));
        under.testpmd.say("set fwd txonly");
        under.testpmd.say("start");
        wait("the ring to be full", || {
            let sent = frames(&under.stats(), from + 1)[0];
            let filled = got(&mut under)[1] - before[1] >= u64::from(RING);
            (filled && sent >= 8 * u64::from(RING)).then_some(())
        });
        under.testpmd.stop();
        let [received, sent] = under.testpmd.rings(usize::from(to));
        assert_eq!((received.out(), sent.out()), (0, 0), "all buffers are used");
        assert_eq!(got(&mut under)[1] - before[1], u64::from(RING));
        under.testpmd.say("set portlist 0,1");
        under.drains();
    }
    under.testpmd.quit();
    under.process.take().unwrap().shut_down();
    deaths
}
