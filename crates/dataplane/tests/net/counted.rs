//! Every frame is delivered, or counted with a reason, once for each adapter that was to get it.

use crate::common::Server;
use crate::common::net::{BUFFER_BYTES, Client, How, PLAIN, card, mac, wait};
use partition::net::feature;
use proptest::prelude::*;
use protocol::message::{Reply, Request, TraceRecord, TraceReport, TraceSpec};
use protocol::stats::QueueCounter;

const ALL: [u8; 6] = [0xff; 6];
const PORTS: usize = 4;

/// Frames that were delivered or lost, of all adapters.
fn counted(server: &Server) -> u64 {
    let stats = server.stats();
    let ends = QueueCounter::ALL.iter().filter(|counter| {
        counter.info().name.starts_with("drop_") || **counter == QueueCounter::RxFrames
    });
    ends.map(|end| stats.queues.iter().map(|queue| queue.get(*end)).sum::<u64>()).sum()
}

#[track_caller]
fn settles_at(server: &Server, frames: u64) {
    wait("all frames to be delivered or counted", || {
        let now = counted(server);
        assert!(now <= frames, "{now} of {frames} frames were counted");
        (now == frames).then_some(())
    });
}

#[test]
fn what_was_for_a_ring_that_broke_is_counted_once() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |_| ());
        let mut b = server.client(2, How { post: (0, 0), ..How::default() }, |_| ());
        for number in 0..5 {
            a.send(&PLAIN, &a.frame(ALL, number, 100));
        }
        a.sent();
        b.pairs[0].rx.lie(5000).unwrap();
        for number in 5..9 {
            a.send(&PLAIN, &a.frame(ALL, number, 100));
            a.sent();
        }
        drop(b);
        server.settled_named("ent2");
        settles_at(&server, 9);
        // Its own queue had to run for that.
        a.send(&PLAIN, &a.frame(ALL, 9, 100));
        a.sent();
        settles_at(&server, 10);
    }
}

/// What is told of frames on the network since the last time.
fn told(server: &Server, change: impl FnOnce(&mut TraceSpec)) -> TraceReport {
    let mut spec = TraceSpec { network: "net".into(), id: 1, ..TraceSpec::default() };
    change(&mut spec);
    match server.ask(Request::Trace(spec)) {
        Reply::Trace(report) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn frames_are_followed_to_their_end() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |card| card.mtu = 9000);
        let mut b = server.client(2, How::default(), |card| card.vids = vec![7]);
        a.send(&PLAIN, &a.frame(mac(2), 0, 100));
        assert_eq!(b.receive().frame, a.frame(mac(2), 0, 100));
        assert_eq!(told(&server, |_| ()), TraceReport::default(), "it begins now");
        let frame = a.frame(mac(2), 1, 300);
        a.send(&PLAIN, &frame);
        assert_eq!(b.receive().frame, frame);
        a.send(&PLAIN, &a.frame(mac(2), 2, 2000));
        let tagged = [&frame[..12], &[0x81, 0, 0, 9], &frame[12..]].concat();
        b.send(&PLAIN, &tagged);
        b.sent();
        a.sent();
        settles_at(&server, 4);
        let mut events = Vec::new();
        wait("all events", || {
            events.extend(told(&server, |_| ()).records);
            let ends = events.iter().filter(|it| ["lost", "delivered"].contains(&&*it.decision));
            (ends.count() == 3).then_some(())
        });
        events.retain(|it| it.decision != "waits");
        events.sort_by_key(|it| (it.frame, it.to.clone()));
        let seen: Vec<_> = events
            .iter()
            .map(|it| {
                (
                    &*it.from,
                    it.to.as_deref(),
                    it.vlan,
                    it.bytes,
                    &*it.decision,
                    it.reason.as_deref(),
                )
            })
            .collect();
        let (from, to, vlan) = ("ent1", Some("ent2"), Some(1));
        let expected = [
            (from, None, vlan, 300, "sent", None),
            (from, to, vlan, 300, "delivered", None),
            (from, None, vlan, 2000, "sent", None),
            (from, to, vlan, 2000, "lost", Some("mtu_exceeded")),
            ("ent2", None, None, 304, "lost", Some("vlan_filter")),
        ];
        // Two senders may have been served in either order.
        let mut seen = seen;
        seen.sort_by_key(|it| it.0);
        assert_eq!(seen, expected, "{channels} channels");
        assert_eq!((events[0].copies, events[0].frame), (1, events[1].frame));
        let head: String = frame[..256].iter().map(|it| format!("{it:02x}")).collect();
        assert_eq!(events[0].head, head);
        // Somebody else waits for the end, and looks for something else.
        let other = TraceSpec { network: "net".into(), id: 2, ..TraceSpec::default() };
        assert!(matches!(server.ask(Request::Trace(other)), Reply::Error(_)));
        told(&server, |spec| spec.stop = true);
        let narrow = |spec: &mut TraceSpec| {
            (spec.id, spec.lost, spec.port) = (2, true, Some("ent2".into()));
        };
        told(&server, narrow);
        a.send(&PLAIN, &frame);
        assert_eq!(b.receive().frame, frame);
        a.send(&PLAIN, &a.frame(mac(2), 3, 2000));
        a.sent();
        settles_at(&server, 6);
        let mut lost = Vec::new();
        wait("what was lost", || {
            lost.extend(told(&server, narrow).records);
            (!lost.is_empty()).then_some(())
        });
        assert_eq!((lost.len(), lost[0].bytes), (1, 2000));
        for wrong in [Some("ent9".to_owned()), None] {
            let network = if wrong.is_some() { "net" } else { "no" }.to_owned();
            let spec = TraceSpec { network, id: 3, port: wrong, ..TraceSpec::default() };
            told(&server, |it| (it.id, it.stop) = (2, true));
            assert!(matches!(server.ask(Request::Trace(spec)), Reply::Error(_)));
        }
    }
}

#[test]
fn who_reads_too_slowly_misses_events_and_nothing_else() {
    let server = Server::new(1);
    let mut a = server.client(1, How::default(), |_| ());
    let mut b = server.client(2, How::default(), |_| ());
    told(&server, |_| ());
    for number in 0..3000 {
        let frame = a.frame(mac(2), number, 60);
        a.send(&PLAIN, &frame);
        assert_eq!(b.receive().frame, frame);
    }
    a.sent();
    let (mut events, mut missed) = (0, 0);
    loop {
        let report = told(&server, |_| ());
        missed += report.missed;
        events += report.records.len() as u64;
        if report.records.is_empty() {
            break;
        }
    }
    assert!(missed > 0 && events + missed == 6000, "{events} events, {missed} missed");
    assert_eq!(server.count_of("ent2", QueueCounter::RxFrames), 3000);
}

/// One thing that happens.
#[derive(Debug, Clone)]
enum Event {
    Send { from: usize, to: u8, len: usize, tag: Option<u16>, spoof: bool },
    Post { client: usize, buffers: usize },
    Leave { client: usize },
    Break { client: usize },
}

/// How a client and its adapter are.
#[derive(Debug, Clone)]
struct Member {
    pvid: u16,
    vids: Vec<u16>,
    mtu: u16,
    mergeable: bool,
    buffers: (usize, u32),
}

fn member() -> impl Strategy<Value = Member> {
    let vids = prop::collection::btree_set(1..4_u16, 0..3);
    let buffers = (prop::sample::select(vec![0, 3, 80]), prop::sample::select(vec![128, 2048]));
    (1..3_u16, vids, prop::sample::select(vec![576, 1500]), any::<bool>(), buffers).prop_map(
        |(pvid, vids, mtu, mergeable, buffers)| {
            let vids = vids.into_iter().filter(|vid| *vid != pvid).collect();
            Member { pvid, vids, mtu, mergeable, buffers }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let len = prop_oneof![1 => 1..14_usize, 6 => 18..400_usize, 2 => 500..1800_usize];
    let tag = prop::option::weighted(0.4, 0..5_u16);
    let send = (0..PORTS, 0..8_u8, len, tag, prop::bool::weighted(0.05))
        .prop_map(|(from, to, len, tag, spoof)| Event::Send { from, to, len, tag, spoof });
    prop_oneof![
        40 => send,
        4 => (0..PORTS, 1..40_usize).prop_map(|(client, buffers)| Event::Post { client, buffers }),
        1 => (0..PORTS).prop_map(|client| Event::Leave { client }),
        1 => (0..PORTS).prop_map(|client| Event::Break { client }),
    ]
}

fn destination(to: u8) -> [u8; 6] {
    match to {
        0..4 => mac(to + 1),
        4 => mac(99),
        5 => [1, 0, 0x5e, 1, 2, 3],
        6 => [1, 0x80, 0xc2, 0, 0, 0],
        _ => ALL,
    }
}

fn bytes(from: usize, event: &Event) -> Vec<u8> {
    let Event::Send { to, len, tag, spoof, .. } = event else { unreachable!() };
    let source = if *spoof { mac(77) } else { mac(from as u8 + 1) };
    let mut frame = [&destination(*to)[..], &source].concat();
    if let Some(vid) = tag {
        frame.extend([0x81, 0, 0, *vid as u8]);
    }
    frame.extend([0x88, 0xb5]);
    frame.resize((*len).max(1), 7);
    frame
}

/// For how many adapters a frame is counted: worked out from what is configured and who is there.
fn copies(members: &[Member], here: &[bool], from: usize, event: &Event) -> u64 {
    let Event::Send { to, tag, spoof, .. } = event else { unreachable!() };
    let frame = bytes(from, event);
    let tag = tag.filter(|_| frame.len() >= 18);
    let is_member =
        |of: usize, vid: u16| members[of].pvid == vid || members[of].vids.contains(&vid);
    let vid = match tag {
        Some(vid) if vid != 0 => vid,
        _ => members[from].pvid,
    };
    let refused = frame.len() < 14 || *spoof || *to == 6 || !is_member(from, vid);
    let owner = usize::from(*to);
    if refused || owner == from {
        return 1;
    }
    if owner < PORTS && here[owner] && is_member(owner, vid) {
        return 1;
    }
    let all = (0..PORTS).filter(|at| *at != from && here[*at] && is_member(*at, vid)).count();
    all.max(1) as u64
}

/// What a run does to its clients.
fn run(channels: u32, members: &[Member], events: &[Event], traced: bool) {
    let server = Server::new(channels);
    let join = |at: usize, how: How| {
        let change = |spec: &mut protocol::message::EthernetSpec| {
            (spec.pvid, spec.vids) = (members[at].pvid, members[at].vids.clone());
            (spec.mtu, spec.any_mac) = (members[at].mtu, false);
        };
        let spec = card(server.dir.path(), at as u8 + 1, change);
        let socket = spec.socket.clone();
        server.must(Request::PutAdapter(spec));
        Client::connect(&socket, at as u8 + 1, how)
    };
    let how = |member: &Member| {
        let without = if member.mergeable { 0 } else { feature::MRG_RXBUF };
        How { without, post: member.buffers, ..How::default() }
    };
    let mut clients: Vec<Option<Client>> =
        members.iter().enumerate().map(|(at, member)| Some(join(at, how(member)))).collect();
    let mut broken = [false; PORTS];
    let (mut expected, mut ends) = (0, 0);
    let mut follow = || {
        let report = told(&server, |_| ());
        assert_eq!(report.missed, 0);
        let is_end = |it: &&TraceRecord| ["lost", "delivered"].contains(&&*it.decision);
        ends += report.records.iter().filter(is_end).count() as u64;
        ends
    };
    if traced {
        follow();
    }
    let leave = |clients: &mut Vec<Option<Client>>, at: usize| {
        if clients[at].take().is_some() {
            server.settled_named(&format!("ent{}", at + 1));
        }
    };
    for event in events {
        if traced {
            follow();
        }
        match event {
            Event::Send { from, .. } => {
                let here: Vec<bool> = clients.iter().map(Option::is_some).collect();
                let Some(client) = &mut clients[*from] else { continue };
                expected += copies(members, &here, *from, event);
                client.send(&PLAIN, &bytes(*from, event));
                client.sent();
            }
            Event::Post { client: at, buffers } if !broken[*at] => {
                if let Some(client) = &mut clients[*at] {
                    let rx = &mut client.pairs[0].rx;
                    while rx.receive().unwrap().is_some() {}
                    rx.post(*buffers, members[*at].buffers.1).unwrap();
                }
            }
            Event::Break { client: at } if !broken[*at] => {
                if let Some(client) = &mut clients[*at]
                    && client.pairs[0].rx.outstanding() == 0
                {
                    client.pairs[0].rx.lie(5000).unwrap();
                    broken[*at] = true;
                }
            }
            Event::Leave { client: at } => {
                leave(&mut clients, *at);
                broken[*at] = false;
            }
            Event::Post { .. } | Event::Break { .. } => {}
        }
    }
    // What waits for a broken ring is lost with its client; who sent it counts it when it is there.
    (0..PORTS).filter(|at| broken[*at]).for_each(|at| leave(&mut clients, at));
    for (at, place) in clients.iter_mut().enumerate() {
        let plenty = || How { post: (usize::MAX, BUFFER_BYTES), ..how(&members[at]) };
        place.get_or_insert_with(|| join(at, plenty()));
    }
    wait("all frames to be delivered or counted", || {
        for client in clients.iter_mut().flatten() {
            let rx = &mut client.pairs[0].rx;
            while rx.receive().unwrap().is_some() {}
            rx.post(usize::MAX, BUFFER_BYTES).unwrap();
        }
        let now = counted(&server);
        assert!(now <= expected, "{now} of {expected} frames were counted");
        (now == expected).then_some(())
    });
    if traced {
        wait("the end of each frame to be told", || {
            let told = follow();
            assert!(told <= expected, "{told} of {expected} ends were told");
            (told == expected).then_some(())
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn each_frame_is_delivered_or_counted_once_for_each_that_was_to_get_it(
        channels in 1..3_u32,
        traced in any::<bool>(),
        members in prop::collection::vec(member(), PORTS),
        events in prop::collection::vec(event(), 1..250),
    ) {
        run(channels, &members, &events, traced);
    }
}
