use super::*;
use crate::{Guard, Limit, Meter, Prefix, Rate, Storm, Tag, Vids};

mod groups;
mod runs;

const SECOND: u64 = 1_000_000_000;

fn vid(vid: u16) -> Vid {
    Vid::new(vid).unwrap()
}

fn switch(ports: &[PortSpec]) -> Switch {
    let mut switch = Switch::new(Sizes { macs: 1000, age_s: 300, groups: 8, claims: 40, seed: 7 });
    for (id, spec) in ports.iter().enumerate() {
        switch.set_port(PortId(id as u16), spec.clone());
    }
    switch
}

fn station(id: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, id]
}

fn frame(to: [u8; 6], from: [u8; 6], rest: &[u8]) -> Vec<u8> {
    [&to, &from, rest, &[0; 40]].concat()
}

/// Where a frame goes.
fn send(switch: &mut Switch, now_ns: u64, from: u16, frame: &[u8]) -> Result<Vec<u16>, Reason> {
    let mut to = Vec::new();
    let view = View::new(frame, frame.len())?;
    switch.forward(now_ns, PortId(from), &view, &mut to)?;
    Ok(to.iter().map(|egress| egress.port.0).collect())
}

const PLAIN: [u8; 2] = [0x88, 0xb5];

#[test]
fn a_run_to_one_destination_costs_one_look_up() {
    let mut switch = switch(&[PortSpec::access(vid(1)), PortSpec::access(vid(1))]);
    send(&mut switch, 0, 1, &frame([0xff; 6], station(1), &PLAIN)).unwrap();
    for _ in 0..1000 {
        let to = send(&mut switch, 0, 0, &frame(station(1), station(0), &PLAIN));
        assert_eq!(to, Ok(vec![1]));
    }
    // One each for: the first station, the second one, and the destination.
    assert!(switch.table.probes <= 3, "{} look-ups", switch.table.probes);
    // A station that moves meanwhile is found where it is now.
    switch.set_port(PortId(2), PortSpec::access(vid(1)));
    send(&mut switch, 0, 2, &frame([0xff; 6], station(1), &PLAIN)).unwrap();
    assert_eq!(send(&mut switch, 0, 0, &frame(station(1), station(0), &PLAIN)), Ok(vec![2]));
}

#[test]
fn a_flood_of_addresses_fills_its_own_quota() {
    let mut switch = switch(&[PortSpec::access(vid(1)), PortSpec::access(vid(1))]);
    for id in 0..2000u16 {
        let [high, low] = id.to_be_bytes();
        send(&mut switch, 0, 0, &frame([0xff; 6], [2, 1, 1, 1, high, low], &PLAIN)).unwrap();
    }
    assert_eq!(switch.learned(PortId(0)), Some((64, 1936)));
    send(&mut switch, 0, 1, &frame([0xff; 6], station(1), &PLAIN)).unwrap();
    assert_eq!(switch.learned(PortId(1)), Some((1, 0)));
}

#[test]
fn what_was_flushed_stays_forgotten_when_the_numbers_of_flushes_begin_again() {
    let mut switch = switch(&[(); 3].map(|()| PortSpec::access(vid(1))));
    send(&mut switch, 0, 1, &frame([0xff; 6], station(1), &PLAIN)).unwrap();
    for _ in 0..=u16::MAX {
        switch.flush(PortId(1));
    }
    let to = send(&mut switch, 0, 0, &frame(station(1), station(0), &PLAIN));
    assert_eq!((to, switch.learned(PortId(1))), (Ok(vec![1, 2]), Some((0, 0))));
}

#[test]
fn replicas_agree_and_age_by_themselves() {
    let ports = [PortSpec::access(vid(1)), PortSpec::access(vid(1)), PortSpec::access(vid(1))];
    let (mut one, mut two) = (switch(&ports), switch(&ports));
    let hello = frame([0xff; 6], station(1), &PLAIN);
    let view = View::new(&hello, hello.len()).unwrap();
    let mut told = Vec::new();
    // Once a second for ten minutes: said at first, and again before others would forget.
    for now_s in 0..600 {
        one.forward(now_s * SECOND, PortId(1), &view, &mut Vec::new()).unwrap();
        let news = one.take_news();
        told.extend(news.map(|_| now_s));
        news.into_iter().for_each(|news| two.learn(now_s * SECOND, news));
        let to = send(&mut two, now_s * SECOND, 0, &frame(station(1), station(0), &PLAIN));
        assert_eq!(to, Ok(vec![1]), "second {now_s}");
    }
    assert_eq!(told, [0, 75, 150, 225, 300, 375, 450, 525]);
    let later = (525 + 300) * SECOND;
    let to = send(&mut two, later, 0, &frame(station(1), station(0), &PLAIN));
    assert_eq!(to, Ok(vec![1, 2]));
}

#[test]
fn a_priority_tag_names_no_vlan_and_its_priority_stays() {
    let mut trunk = PortSpec::access(vid(9));
    trunk.vids = Vids::from_iter([vid(1)]);
    let mut switch = switch(&[PortSpec::access(vid(1)), PortSpec::access(vid(1)), trunk]);
    let tagged = frame([0xff; 6], station(0), &[0x81, 0, 0xa0, 0, 0x88, 0xb5]);
    let view = View::new(&tagged, tagged.len()).unwrap();
    let mut to = Vec::new();
    switch.forward(0, PortId(0), &view, &mut to).unwrap();
    let edits: Vec<TagEdit> = to.iter().map(|egress| egress.edit).collect();
    let tag = crate::Tag { tpid: 0x8100, tci: 0xa001 };
    assert_eq!(edits, [TagEdit::Strip, TagEdit::Replace(tag)]);
}

#[test]
fn storms_and_rates_are_bounded_and_counted() {
    let rate = |per_second, burst| Some(Meter::new(Rate { per_second, burst }));
    let mut spec = PortSpec::access(vid(1));
    spec.storm = Storm { broadcast: rate(10, 5), multicast: rate(20, 5), unknown: rate(40, 5) };
    let mut slow = PortSpec::access(vid(1));
    slow.limit_in = Limit::new(None, Some(Rate { per_second: 5400, burst: 540 }));
    let mut switch = switch(&[spec, slow]);
    let kinds = [
        ([0xff; 6], Reason::StormBroadcast, 10),
        ([1, 0, 0x5e, 9, 9, 9], Reason::StormMulticast, 20),
        (station(9), Reason::StormUnknown, 40),
    ];
    for (to, reason, per_second) in kinds {
        let mut passed = 0;
        // Ten seconds of a thousand frames a second.
        for at in 0..10_000 {
            let sent = send(&mut switch, at * SECOND / 1000, 0, &frame(to, station(0), &PLAIN));
            assert!(sent.is_ok() || sent == Err(reason));
            passed += u64::from(sent.is_ok());
        }
        assert!((10 * per_second..=10 * per_second + 5).contains(&passed), "{passed} {reason:?}");
        let (came, _) = switch.counters(PortId(0)).unwrap();
        assert_eq!(came.dropped(reason), 10_000 - passed);
    }
    // 54-byte frames: a hundred a second.
    let mut sends = (0..10_000)
        .map(|at| send(&mut switch, at * SECOND / 1000, 1, &frame(station(0), station(1), &PLAIN)));
    let passed = sends.by_ref().filter(Result::is_ok).count();
    assert!((1000..=1011).contains(&passed), "{passed}");
}

#[test]
fn a_burst_that_is_over_at_once_lets_frames_through() {
    for per_second in [1, 1_000_000_000, 1 << 42] {
        let meter = Meter::new(Rate { per_second, burst: 1 });
        assert!(meter.take(5, 1), "{per_second}");
        assert_eq!(meter.take(5, 1), per_second > 1_000_000_000, "{per_second}");
        assert!(meter.take(u64::MAX - 1, u64::MAX));
    }
}

#[test]
fn a_rate_is_shared_by_all_channels_and_survives_another_change() {
    let rate = |per_second| Some(Rate { per_second, burst: per_second / 10 });
    let mut slow = PortSpec::access(vid(1));
    // The frames are what is short: 54 bytes each.
    slow.limit_in = Limit::new(rate(100), rate(100 * 1000));
    slow.limit_out = Limit::new(rate(50), None);
    let mut switches = [0, 1].map(|_| switch(&[slow.clone(), PortSpec::access(vid(1))]));
    let (mut came, mut went) = (0, 0);
    for at in 0..10_000 {
        let switch = &mut switches[at % 2];
        if at == 5000 {
            slow.pvid = Some(vid(1));
            switch.set_port(PortId(0), slow.clone());
        }
        let now_ns = at as u64 * SECOND / 1000;
        let sent = send(switch, now_ns, 0, &frame(station(1), station(0), &PLAIN));
        assert!(sent.is_ok() || sent == Err(Reason::QosDrop));
        came += u64::from(sent.is_ok());
        let egress = switch.towards(PortId(0), vid(1)).unwrap();
        let admitted = switch.admits(now_ns, egress, 54);
        assert!(admitted.is_ok() || admitted == Err(Reason::RxQosDrop));
        went += u64::from(admitted.is_ok());
    }
    assert!((1000..=1011).contains(&came), "{came}");
    assert!((500..=506).contains(&went), "{went}");
}

fn ipv4(protocol: u8, from: [u8; 4], to: [u8; 4], body: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + body.len() as u16).to_be_bytes();
    let fixed = [0x45, 0, high, low, 0, 0, 0, 0, 1, protocol, 0, 0];
    [&[8, 0][..], &fixed, &from, &to, body].concat()
}

fn ipv6(next: u8, from: [u8; 16], to: [u8; 16], body: &[u8]) -> Vec<u8> {
    let [high, low] = (body.len() as u16).to_be_bytes();
    [&[0x86, 0xdd, 0x60, 0, 0, 0, high, low, next, 255][..], &from, &to, body].concat()
}

const LOCAL: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
const OWN: [u8; 16] = [0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
const OTHER: [u8; 16] = [0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6];

fn guarded() -> PortSpec {
    let prefix = |address, bits| Prefix { address, bits };
    let mut spec = PortSpec::access(vid(1));
    spec.guard = Guard {
        macs: vec![Mac(station(0))],
        addresses: vec![prefix([10, 0, 0, 5].into(), 32), prefix(OWN.into(), 128)],
        dhcp_server: false,
        router: false,
    };
    spec
}

fn arp(operation: u8, mac: [u8; 6], address: [u8; 4]) -> Vec<u8> {
    [&[8, 6, 0, 1, 8, 0, 6, 4, 0, operation][..], &mac, &address, &[0; 10]].concat()
}

fn udp(from: u8, to: u8) -> [u8; 8] {
    [0, from, 0, to, 0, 8, 0, 0]
}

fn nd(kind: u8, target: [u8; 16], option: u8, mac: [u8; 6]) -> Vec<u8> {
    [&[kind, 0, 0, 0, 0, 0, 0, 0][..], &target, &[option, 1], &mac].concat()
}

#[test]
fn a_guarded_port_speaks_for_itself_alone() {
    use Reason::*;
    let (me, you, mine, yours) = (station(0), station(9), [10, 0, 0, 5], [10, 0, 0, 6]);
    let first = |protocol, body: &[u8]| {
        let mut packet = ipv4(protocol, mine, yours, body);
        packet[8] = 0x20;
        packet
    };
    let to_router = |body: &[u8]| ipv6(58, LOCAL, OTHER, body);
    let hidden = |next: u8, body: &[u8]| {
        let chain = [&[next, 39][..], &[0; 318], body].concat();
        ipv6(60, OWN, OTHER, &chain)
    };
    let fragment = |body: &[u8]| ipv6(44, OWN, OTHER, &[&[58, 0, 0, 1, 0, 0, 0, 1], body].concat());
    let cases: Vec<(Vec<u8>, Result<(), Reason>)> = vec![
        (PLAIN.to_vec(), Ok(())),
        (arp(1, me, mine), Ok(())),
        (arp(1, me, [0; 4]), Ok(())),
        (arp(2, me, [0; 4]), Err(SpoofArp)),
        (arp(2, me, yours), Err(SpoofArp)),
        (arp(2, you, mine), Err(SpoofArp)),
        // Another kind of ARP, which other stations may read all the same.
        ([&[8, 6, 0, 6][..], &arp(2, me, yours)[4..]].concat(), Err(SpoofArp)),
        // Behind a tag of the client's own.
        ([&[0x81, 0, 0, 1][..], &arp(2, me, yours)].concat(), Err(SpoofArp)),
        ([&[0x81, 0, 0, 1].repeat(5)[..], &arp(2, me, yours)].concat(), Err(HeaderChain)),
        (ipv4(6, mine, yours, &[0; 20]), Ok(())),
        (ipv4(6, yours, mine, &[0; 20]), Err(SpoofIp)),
        (ipv4(17, [0; 4], [255; 4], &udp(68, 67)), Ok(())),
        (ipv4(17, [0; 4], [255; 4], &udp(68, 53)), Err(SpoofIp)),
        (ipv4(17, mine, yours, &udp(67, 68)), Err(DhcpServer)),
        (first(17, &udp(67, 68)), Err(DhcpServer)),
        (ipv4(17, mine, yours, &udp(53, 68)), Err(DhcpServer)),
        (ipv6(17, OWN, OTHER, &[0, 53, 2, 0x22, 0, 8, 0, 0]), Err(DhcpServer)),
        (ipv4(1, mine, yours, &[9, 0, 0, 0]), Err(RouterAdvert)),
        // In SNAP, with a length that is right, and one that is not; and a frame that is no packet: a bridge's (STP).
        (
            [&[0, 36, 0xaa, 0xaa, 3, 0, 0, 0][..], &ipv4(17, yours, mine, &udp(67, 68))].concat(),
            Err(HeaderChain),
        ),
        ([&[5, 0xff, 0xab, 0xaa, 3, 0, 0, 0][..], &arp(2, me, yours)].concat(), Err(HeaderChain)),
        ([&[0x81, 0, 0, 1, 0, 9][..], &[0xaa; 46]].concat(), Err(HeaderChain)),
        ([&[0, 38][..], &[0x42, 0x42, 3], &[0; 43]].concat(), Ok(())),
        (ipv4(17, mine, yours, &[]), Err(HeaderChain)),
        (ipv4(1, mine, yours, &[5, 0, 0, 0]), Err(RouterAdvert)),
        (ipv4(1, mine, yours, &[8, 0, 0, 0]), Ok(())),
        ([&[8, 0, 0x42][..], &[0; 20]].concat(), Err(HeaderChain)),
        (ipv6(6, OTHER, OWN, &[0; 20]), Err(SpoofIp)),
        (ipv6(6, LOCAL, OWN, &[0; 20]), Ok(())),
        (ipv6(17, OWN, OTHER, &[2, 0x23, 2, 0x22, 0, 8, 0, 0]), Err(DhcpServer)),
        (to_router(&[134, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(RouterAdvert)),
        (to_router(&nd(137, OWN, 2, me)), Err(RouterAdvert)),
        (to_router(&nd(136, OWN, 2, me)), Ok(())),
        (to_router(&nd(136, OTHER, 2, me)), Err(SpoofNd)),
        (to_router(&nd(136, OWN, 2, you)), Err(SpoofNd)),
        (to_router(&nd(135, OTHER, 1, me)), Ok(())),
        (to_router(&nd(135, OTHER, 1, you)), Err(SpoofNd)),
        (ipv6(58, [0; 16], OTHER, &nd(135, OTHER, 14, me)), Err(SpoofNd)),
        (ipv6(58, [0; 16], OTHER, &nd(135, OWN, 14, me)), Ok(())),
        (to_router(&[&nd(136, OWN, 2, me)[..], &[1, 0]].concat()), Err(HeaderChain)),
        (hidden(58, &[134, 0, 0, 0]), Err(HeaderChain)),
        (fragment(&nd(136, OWN, 2, me)), Err(HeaderChain)),
        (fragment(&[128, 0, 0, 0]), Ok(())),
    ];
    let mut switch = switch(&[guarded(), PortSpec::access(vid(1))]);
    for (index, (rest, expected)) in cases.iter().enumerate() {
        let sent = send(&mut switch, 0, 0, &frame(station(3), me, rest)).map(|_| ());
        assert_eq!(sent, *expected, "case {index}");
    }
    let stolen = frame(station(3), you, &PLAIN);
    assert_eq!(send(&mut switch, 0, 0, &stolen), Err(SpoofMac));
    // Nobody else is that station, and it is found before it ever spoke.
    switch.flush(PortId(0));
    assert_eq!(send(&mut switch, 0, 1, &frame(station(3), me, &PLAIN)), Err(SpoofMac));
    assert_eq!(send(&mut switch, 0, 1, &frame(me, you, &PLAIN)), Ok(vec![0]));
}

#[test]
fn two_ports_may_own_an_address_in_different_vlans() {
    let mut other = guarded();
    other.pvid = Some(vid(2));
    let free = |vid| PortSpec::access(vid);
    let mut switch = switch(&[guarded(), other, free(vid(1)), free(vid(2))]);
    for (port, from) in [(0, 2), (1, 3)] {
        let hello = frame([0xff; 6], station(0), &PLAIN);
        assert_eq!(send(&mut switch, 0, port, &hello), Ok(vec![from]));
        switch.flush(PortId(port));
        assert_eq!(
            send(&mut switch, 0, from, &frame(station(0), station(9), &PLAIN)),
            Ok(vec![port])
        );
        assert_eq!(send(&mut switch, 0, from, &hello), Err(Reason::SpoofMac));
    }
}

#[test]
fn a_switch_without_ports_grows_old() {
    let mut switch = switch(&[]);
    (0..20).for_each(|second| switch.age(second * SECOND));
}

#[test]
fn a_vlan_in_standby_passes_nothing_in_either_direction() {
    let standby: Vids = [vid(1)].into_iter().collect();
    let uplink = |standby: Vids| {
        let vids = [vid(20)].into_iter().collect();
        PortSpec { vids, standby, ..PortSpec::access(vid(1)) }
    };
    let mut switch =
        switch(&[PortSpec::access(vid(1)), PortSpec::access(vid(1)), uplink(standby.clone())]);
    let broadcast = |from| frame([0xff; 6], station(from), &PLAIN);
    assert_eq!(send(&mut switch, 0, 2, &broadcast(9)), Err(Reason::Standby));
    assert_eq!(send(&mut switch, 0, 0, &broadcast(0)), Ok(vec![1]));
    // Nobody else is there to get it.
    switch.remove_port(PortId(1));
    assert_eq!(send(&mut switch, 0, 0, &broadcast(0)), Err(Reason::Standby));
    // Its other VLAN is bridged.
    switch.set_port(PortId(1), PortSpec::access(vid(20)));
    assert_eq!(send(&mut switch, 0, 1, &broadcast(1)), Ok(vec![2]));
    // Open, it passes, and what was forwarded before it closed does not.
    switch.set_port(PortId(2), uplink(Vids::NONE));
    let bytes = frame(station(9), station(0), &PLAIN);
    let view = View::new(&bytes, bytes.len()).unwrap();
    let mut to = Vec::new();
    switch.forward(0, PortId(0), &view, &mut to).unwrap();
    switch.set_port(PortId(2), uplink(standby));
    let mut scratch = Scratch::default();
    let late = switch.adapt(to[0], view, Offload::None { valid: false }, &mut scratch);
    assert_eq!(late.err(), Some(Reason::Standby));
    assert_eq!(switch.counters(PortId(2)).unwrap().1.dropped(Reason::Standby), 1);
    let mut tagged = bytes.clone();
    tagged.splice(12..12, [0x81, 0, 0, 20]);
    let view = View::new(&tagged, tagged.len()).unwrap();
    let passes = switch.adapt(to[0], view, Offload::None { valid: false }, &mut scratch);
    assert!(passes.is_ok());
    // Who is to be announced: all but those behind the uplink.
    let elsewhere = switch.announcements(0, PortId(2), |_| true);
    let of = |id, vid| Announcement { station: Mac(station(id)), vid, claim: None };
    assert_eq!(elsewhere, [of(0, vid(1)), of(1, vid(20))]);
    assert_eq!(switch.announcements(0, PortId(2), |it| it == vid(20)), [of(1, vid(20))]);
    assert_eq!(switch.towards(PortId(2), vid(30)), None);
    let edit = switch.towards(PortId(2), vid(20)).unwrap().edit;
    assert_eq!(edit, TagEdit::Insert(Tag { tpid: 0x8100, tci: 20 }));
}

/// What is announced by a port: the last byte of each station, and of its address, if it is with one.
fn announced(switch: &Switch, by: u16) -> Vec<(u8, Option<u8>)> {
    let all = switch.announcements(0, PortId(by), |_| true);
    let last = |claim: crate::Claim| match claim.address {
        core::net::IpAddr::V4(address) => address.octets()[3],
        core::net::IpAddr::V6(address) => address.octets()[15],
    };
    all.iter().map(|it| (it.station.0[5], it.claim.map(last))).collect()
}

#[test]
fn a_station_is_announced_with_the_addresses_that_it_claimed() {
    let mut switch = switch(&[(); 3].map(|()| PortSpec::access(vid(1))));
    let claim = |id, last| frame([0xff; 6], station(id), &arp(1, station(id), [10, 0, 0, last]));
    send(&mut switch, 0, 0, &claim(1, 5)).unwrap();
    let advertisement = nd(136, OWN, 2, station(1));
    let mut said = ipv6(58, OWN, [0xff; 16], &advertisement);
    said[2 + 7] = 255;
    said[2 + 40 + 4] = 0x20;
    send(&mut switch, 0, 0, &frame([0x33, 0x33, 0, 0, 0, 1], station(1), &said)).unwrap();
    send(&mut switch, 0, 2, &claim(9, 1)).unwrap();
    assert_eq!(announced(&switch, 2), [(1, None), (1, Some(5)), (1, Some(5))]);
    assert_eq!(announced(&switch, 0), [(9, None), (9, Some(1))]);
    // Somebody outside has the address now.
    send(&mut switch, SECOND, 2, &claim(9, 5)).unwrap();
    assert_eq!(announced(&switch, 2), [(1, None), (1, Some(5))]);
    // A station that comes to another port keeps its addresses, as far as it may have them there.
    let of = |switch: &Switch, at| switch.announcements_of(Mac(station(1)), PortId(at)).len();
    assert_eq!((of(&switch, 1), of(&switch, 7)), (1, 0));
    let mut spec = PortSpec::access(vid(1));
    spec.guard.addresses = vec![Prefix { address: [10, 0, 0, 0].into(), bits: 8 }];
    switch.set_port(PortId(1), spec);
    assert_eq!(of(&switch, 1), 0);
}

#[test]
fn what_is_learned_is_told_wherever_the_frame_goes() {
    let uplink = |standby: &[u16]| PortSpec {
        standby: standby.iter().map(|number| vid(*number)).collect::<Vids>(),
        ..PortSpec::access(vid(1))
    };
    let ports = [PortSpec::access(vid(1)), uplink(&[1])];
    let (mut one, mut two) = (switch(&ports), switch(&ports));
    let claim = |id, last| frame([0xff; 6], station(id), &arp(1, station(id), [10, 0, 0, last]));
    assert_eq!(send(&mut one, 0, 0, &claim(1, 5)), Err(Reason::Standby));
    two.learn(0, one.take_news().expect("it is new"));
    assert_eq!(announced(&two, 1), [(1, None), (1, Some(5))]);
    // In standby what comes from outside goes nowhere and teaches nothing, but that an address is somebody else's.
    assert_eq!(send(&mut one, SECOND, 1, &claim(9, 5)), Err(Reason::Standby));
    two.learn(SECOND, one.take_news().expect("it has changed"));
    for switch in [&one, &two] {
        assert_eq!(announced(switch, 1), [(1, None)]);
        assert_eq!(announced(switch, 0), []);
    }
}

#[test]
fn addresses_that_nobody_has_are_not_looked_for_in_the_table() {
    let spec = PortSpec { macs_max: 64, ..PortSpec::access(vid(1)) };
    let mut switch = switch(&[spec, PortSpec::access(vid(1))]);
    let any = |number: u32| {
        let [a, b, c, d] = number.wrapping_mul(0x9e37_79b9).to_be_bytes();
        [2, 7, a, b, c, d]
    };
    for number in 0..64 {
        send(&mut switch, 0, 0, &frame([0xff; 6], any(number), &PLAIN)).unwrap();
    }
    let before = switch.table.probes;
    for number in 64..10_064 {
        send(&mut switch, 0, 0, &frame(any(number + 100_000), any(number), &PLAIN)).unwrap();
    }
    assert_eq!(switch.learned(PortId(0)), Some((64, 10_000)));
    // Of 20,000 addresses those that would stand, by chance, where one of the 64 does.
    let probes = switch.table.probes - before;
    assert!((1..2_000).contains(&probes), "{probes} look-ups");
}
