//! A frame that is one more of a run goes where it would go by itself: held against a switch that forgets the run before each frame.

use proptest::prelude::*;

use super::*;

/// What happens between two frames.
#[derive(Debug, Clone, Copy)]
enum Change {
    Nothing,
    Later(u64),
    Set(u16, Kind),
    Remove(u16),
    Flush(u16),
    /// Another channel has seen a station behind a port.
    Learn(u8, u16),
    Age,
}

/// What a port is.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Access(u16),
    Trunk,
    Private,
    Standby,
    Guarded,
    Watched,
    Watches,
    Limited,
}

#[derive(Debug, Clone, Copy)]
enum Body {
    Plain,
    Tagged(u16),
    Arp(u8),
    /// From an address by that last byte, to a port of UDP.
    Udp(u8, u8),
    Broken,
}

const PORTS: u16 = 4;

fn spec(kind: Kind) -> PortSpec {
    let access = PortSpec::access(vid(1));
    match kind {
        Kind::Access(number) => PortSpec::access(vid(number)),
        Kind::Trunk => PortSpec { vids: [vid(2)].into_iter().collect::<Vids>(), ..access },
        Kind::Private => PortSpec { private: true, ..access },
        Kind::Standby => PortSpec { standby: Vids::ALL, ..access },
        Kind::Guarded => {
            let addresses = vec![Prefix { address: [10, 0, 0, 1].into(), bits: 32 }];
            let guard = Guard { macs: vec![Mac(station(1))], addresses, ..Guard::default() };
            PortSpec { guard: Guard { dhcp_server: false, ..guard }, ..access }
        }
        Kind::Watched => PortSpec { mirror: Some(PortId(3)), ..access },
        Kind::Watches => PortSpec { mirror_only: true, ..access },
        // Of its own: two switches do not share it.
        Kind::Limited => PortSpec {
            limit_in: Limit::new(Some(Rate { per_second: 2, burst: 3 }), None),
            ..access
        },
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        (1..3_u16).prop_map(Kind::Access),
        Just(Kind::Trunk),
        Just(Kind::Private),
        Just(Kind::Standby),
        Just(Kind::Guarded),
        Just(Kind::Watched),
        Just(Kind::Watches),
        Just(Kind::Limited),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let port = || 0..PORTS;
    prop_oneof![
        20 => Just(Change::Nothing),
        2 => prop_oneof![Just(1), Just(SECOND / 3), Just(SECOND), Just(301 * SECOND)].prop_map(Change::Later),
        3 => (port(), kind()).prop_map(|(port, kind)| Change::Set(port, kind)),
        1 => port().prop_map(Change::Remove),
        1 => port().prop_map(Change::Flush),
        2 => (0..3_u8, port()).prop_map(|(station, port)| Change::Learn(station, port)),
        1 => Just(Change::Age),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        6 => Just(Body::Plain),
        1 => (0..3_u16).prop_map(Body::Tagged),
        1 => (0..3_u8).prop_map(Body::Arp),
        3 => (0..3_u8, prop_oneof![Just(67_u8), Just(68), Just(9)]).prop_map(|(from, to)| Body::Udp(from, to)),
        1 => Just(Body::Broken),
    ]
}

/// By which port a frame comes, from and to which station, and what is in it.
fn sent() -> impl Strategy<Value = (u16, u8, u8, Body)> {
    (0..PORTS, 0..3_u8, prop_oneof![6 => 0..3_u8, 1 => Just(3), 1 => Just(0xff_u8)], body())
}

fn bytes(to: [u8; 6], from: [u8; 6], body: Body) -> Vec<u8> {
    match body {
        Body::Plain => frame(to, from, &PLAIN),
        Body::Tagged(number) => frame(to, from, &[0x81, 0, 0, number as u8, PLAIN[0], PLAIN[1]]),
        Body::Arp(last) => frame(to, from, &arp(1, from, [10, 0, 0, last])),
        Body::Udp(last, port) => {
            frame(to, from, &ipv4(17, [10, 0, 0, last], [10, 0, 0, 9], &udp(9, port)))
        }
        Body::Broken => frame(to, from, &[8, 0, 0x43]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn each_frame_of_a_run_goes_where_it_would_go_by_itself(
        first in prop::collection::vec(kind(), usize::from(PORTS)),
        steps in prop::collection::vec(
            // A frame, or the one of before again.
            (change(), prop_oneof![3 => Just(None), 2 => sent().prop_map(Some)], 1..3_usize),
            1..80,
        ),
    ) {
        let both = [(); 2].map(|()| switch(&first.iter().copied().map(spec).collect::<Vec<_>>()));
        let [mut ours, mut alone] = both;
        let mut now_ns = 0;
        let mut last = (0, 0, 1, Body::Plain);
        for (change, sent, times) in steps {
            let (from, source, destination, body) = sent.unwrap_or(last);
            last = (from, source, destination, body);
            for switch in [&mut ours, &mut alone] {
                match change {
                    Change::Nothing | Change::Later(_) => {}
                    Change::Set(port, kind) => switch.set_port(PortId(port), spec(kind)),
                    Change::Remove(port) => switch.remove_port(PortId(port)),
                    Change::Flush(port) => switch.flush(PortId(port)),
                    Change::Learn(who, port) => {
                        let (mac, port) = (Mac(station(who)), PortId(port));
                        let seen = Sighting { mac, vid: vid(1), port, claim: None };
                        switch.learn(now_ns, News::Station(seen));
                    }
                    Change::Age => switch.age(now_ns),
                }
            }
            if let Change::Later(ns) = change {
                now_ns += ns;
            }
            let to = if destination == 0xff { [0xff; 6] } else { station(destination) };
            let frame = bytes(to, station(source), body);
            let view = View::new(&frame, frame.len()).unwrap();
            for _ in 0..times {
                alone.run = None;
                let [got, wanted] = [&mut ours, &mut alone].map(|switch| {
                    let mut to = Vec::new();
                    let found = switch.forward(now_ns, PortId(from), &view, &mut to);
                    (found, to, switch.take_news())
                });
                prop_assert_eq!(got, wanted);
            }
        }
        for id in (0..PORTS).map(PortId) {
            let seen = |switch: &Switch| format!("{:?} {:?}", switch.counters(id), switch.learned(id));
            prop_assert_eq!(seen(&ours), seen(&alone));
        }
    }
}
