//! Channels that tell each other what they learn, with all that is read of frames to many: IGMP, MLD, ARP, neighbour discovery.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Input;
use crate::{
    Egress, Limit, Mac, Meter, PortId, PortSpec, Rate, Reason, Sizes, Storm, Switch, Tag, Vid, View,
};

const CHANNELS: u8 = 3;
const PORTS: u8 = 5;
const MACS_MAX: usize = 12;
const GROUPS_MAX: usize = 20;
const CLAIMS_MAX: usize = 3;
/// A report holds so long (RFC 3376 clause 8.4).
const MEMBER_S: u64 = 260;

/// What is in a frame.
struct Sent {
    frame: Vec<u8>,
    vid: u16,
    /// Groups that its sender wants, and wants no more.
    says: Vec<(IpAddr, bool)>,
    /// Of the group's traffic.
    data: Option<IpAddr>,
    /// Something in it is not as it should be: it may say anything.
    broken: bool,
}

/// A few channels of one network: whoever asked for a group gets it, whatever else comes, by each channel; and nobody has more kept or told than it may.
///
/// # Panics
///
/// When that is not so, or a frame goes where it must not.
pub fn fuzz_groups(data: &[u8]) {
    let mut input = Input(data.iter());
    let seed = u64::from(input.byte());
    let sizes =
        Sizes { macs: 40, age_s: 100, groups: usize::from(input.below(60)), claims: 8, seed };
    let mut all: Vec<Switch> = (0..CHANNELS).map(|_| Switch::new(sizes)).collect();
    let mut specs: Vec<PortSpec> = (0..PORTS).map(|_| port(&mut input)).collect();
    for switch in &mut all {
        specs.iter().zip(0..).for_each(|(spec, id)| switch.set_port(PortId(id), spec.clone()));
    }
    let mut wanted: BTreeMap<(u8, u16, IpAddr), u64> = BTreeMap::new();
    let (mut now_s, mut misses) = (100, None);
    while input.0.len() > 0 {
        let channel = usize::from(input.below(CHANNELS));
        let id = input.below(PORTS);
        match input.byte() {
            0..20 => now_s += u64::from(input.below(70)),
            20..24 => {
                // Channels find out one after the other.
                specs[usize::from(id)] = port(&mut input);
                for switch in &mut all {
                    switch.set_port(PortId(id.into()), specs[usize::from(id)].clone());
                }
            }
            24..27 => all[channel].flush(PortId(id.into())),
            27..30 => misses = Some(channel),
            _ => {
                let sent = sent(&mut input, &specs[usize::from(id)]);
                let (to, told) = tell(&mut all, (now_s, channel, id), &sent, misses.take());
                assert!(told <= 34, "{told}");
                let heard = match &to {
                    Ok(to) => {
                        judge(&specs, id, &sent, to);
                        true
                    }
                    Err(reason) => *reason == Reason::NoTxTarget,
                };
                if let (Some(group), true) = (sent.data, heard) {
                    let to = to.unwrap_or_default();
                    for port in (0..PORTS).filter(|port| reaches(&specs, id, *port, sent.vid)) {
                        let until = wanted.get(&(port, sent.vid, group)).copied().unwrap_or(0);
                        let gets = to.iter().any(|egress| egress.port.0 == u16::from(port));
                        assert!(gets || until <= now_s, "{group} for {port} by {channel}");
                    }
                }
                if sent.broken {
                    wanted.retain(|(port, ..), _| *port != id);
                }
                for (group, wants) in sent.says.iter().filter(|_| heard) {
                    let until = if *wants { now_s + MEMBER_S } else { 0 };
                    wanted.insert((id, sent.vid, *group), until);
                }
            }
        }
        for switch in &mut all {
            switch.age(now_s * 1_000_000_000);
            for id in (0..PORTS).map(|id| PortId(id.into())) {
                assert!(switch.learned(id).expect("it is there").0 <= MACS_MAX);
            }
        }
    }
}

fn tell(
    all: &mut [Switch],
    (now_s, channel, from): (u64, usize, u8),
    sent: &Sent,
    misses: Option<usize>,
) -> (Result<Vec<Egress>, Reason>, usize) {
    let (now_ns, mut to, mut told) = (now_s * 1_000_000_000, Vec::new(), 0);
    let found = View::new(&sent.frame, sent.frame.len())
        .and_then(|view| all[channel].forward(now_ns, PortId(from.into()), &view, &mut to));
    while let Some(news) = all[channel].take_news() {
        told += 1;
        for (at, other) in all.iter_mut().enumerate().filter(|(at, _)| *at != channel) {
            if misses == Some(at) {
                other.miss();
            } else {
                other.learn(now_ns, news);
            }
        }
    }
    (found.map(|()| to), told)
}

/// Whether a port is one that a frame to all goes to.
fn reaches(specs: &[PortSpec], from: u8, to: u8, vid: u16) -> bool {
    let [from_spec, to_spec] = [from, to].map(|id| &specs[usize::from(id)]);
    let is_member = Vid::new(vid).is_some_and(|vid| to_spec.is_member(vid));
    from != to && is_member && !(from_spec.private && to_spec.private)
}

fn judge(specs: &[PortSpec], from: u8, sent: &Sent, to: &[Egress]) {
    for (at, egress) in to.iter().enumerate() {
        let port = u8::try_from(egress.port.0).expect("there are few");
        assert!(sent.broken || reaches(specs, from, port, sent.vid));
        assert!(to[..at].iter().all(|other| other.port != egress.port), "twice");
    }
}

fn port(input: &mut Input<'_>) -> PortSpec {
    let bits = input.byte();
    let mut spec = PortSpec::access(Vid::new(1 + u16::from(bits & 1)).expect("a VLAN"));
    if bits & 6 == 6 {
        spec.vids = [1, 2].into_iter().filter_map(Vid::new).collect();
    }
    spec.private = bits & 24 == 24;
    spec.guard.router = bits & 96 != 96;
    spec.macs_max = MACS_MAX;
    spec.claims_max = CLAIMS_MAX;
    spec.groups_max = usize::from(input.byte()) % GROUPS_MAX;
    if bits & 128 != 0 && input.below(4) == 0 {
        let rate = |per_second| Some(Rate { per_second, burst: per_second });
        spec.storm = Storm { multicast: rate(5).map(Meter::new), ..Storm::default() };
        spec.limit_in = Limit::new(rate(20), rate(10_000));
    }
    spec
}

fn group(input: &mut Input<'_>, v6: bool) -> IpAddr {
    let last = input.below(24);
    // One in eight is near, or none at all.
    match (v6, input.below(8)) {
        (false, 7) => Ipv4Addr::new(224, 0, 0, last).into(),
        (false, 6) => Ipv4Addr::new(10, 0, 0, last).into(),
        (false, _) => Ipv4Addr::new(239, 1, 2, last).into(),
        (true, 7) => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, last.into()).into(),
        (true, _) => Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, last.into()).into(),
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn sent(input: &mut Input<'_>, spec: &PortSpec) -> Sent {
    let v6 = input.byte() & 1 == 1;
    let address = group(input, v6);
    let octets = octets(address);
    // Code, checksum and what else is before the group in all but version 3.
    let fixed = if v6 { 7 } else { 3 };
    let old = |kind: u8| [&[kind][..], &vec![0; fixed], &octets].concat();
    let (mut says, mut to, mut data) = (Vec::new(), address, None);
    let nodes: IpAddr = match v6 {
        true => Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).into(),
        false => Ipv4Addr::new(224, 0, 0, 1).into(),
    };
    let control = if v6 { 58 } else { 2 };
    let (protocol, body) = match input.below(16) {
        0..4 => {
            says.push((address, true));
            let kind = if input.byte() & 1 == 0 { 0x12 } else { 0x16 };
            (control, old(if v6 { 131 } else { kind }))
        }
        4 => {
            says.push((address, false));
            (control, old(if v6 { 132 } else { 0x17 }))
        }
        5..7 => (control, records(input, v6, &mut says)),
        7..9 => {
            to = nodes;
            (control, [&[if v6 { 130 } else { 0x11 }][..], &vec![0; fixed + octets.len()]].concat())
        }
        9 => (control, old(if v6 { 130 } else { 0x11 })),
        10 => (103, vec![0x20; 8]),
        11 => {
            // An advertisement of a neighbour; of IPv4, none of anybody.
            let target = Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, input.below(12).into());
            let option = [2, 1, 2, 0, 0, 0, 0, input.below(12)];
            (58, [&[136, 0, 0, 0, 0x20, 0, 0, 0][..], &target.octets(), &option].concat())
        }
        _ => {
            data = Some(address);
            (17, vec![0; 8])
        }
    };
    let source = [2, 0, 0, 0, 0, input.below(30)];
    let packet = packet(v6, protocol, to, &body);
    let (ethertype, packet) = match (input.below(12), v6) {
        (0, _) => ([8, 6], arp(input, source)),
        (_, true) => ([0x86, 0xdd], packet),
        (_, false) => ([8, 0], packet),
    };
    if ethertype == [8, 6] {
        (says, data) = (Vec::new(), None);
    }
    let pvid = spec.pvid.map_or(0, Vid::get);
    let vid = if input.byte() & 1 == 1 { 3 - pvid } else { pvid };
    let vid = if Vid::new(vid).is_some_and(|vid| spec.is_member(vid)) { vid } else { pvid };
    let tag = Tag { tpid: 0x8100, tci: vid }.bytes();
    let tag = if vid == pvid { &[][..] } else { &tag };
    let mut frame = [&[1, 0, 0x5e, 1, 2, 3], &source[..], tag, &ethertype, &packet].concat();
    // Where it names none, nobody asks for it.
    says.retain(|(group, _)| group.is_multicast());
    let broken = input.below(10) == 9;
    if broken {
        let at = usize::from(input.byte()) % frame.len();
        frame[at] = input.byte();
        frame.truncate(frame.len() - usize::from(input.below(40)));
        (says, data) = (Vec::new(), None);
    }
    Sent { frame, vid, says, data: data.filter(IpAddr::is_multicast), broken }
}

/// A report of version 3, or of version 2 of MLD. What is said last of a group counts.
fn records(input: &mut Input<'_>, v6: bool, says: &mut Vec<(IpAddr, bool)>) -> Vec<u8> {
    let count = input.below(6);
    let mut body = [&[if v6 { 143 } else { 0x22 }][..], &[0; 6], &[count]].concat();
    for _ in 0..count {
        let (kind, sources, extra) = (1 + input.below(6), input.below(3), input.below(2));
        let address = group(input, v6);
        body.extend([kind, extra, 0, sources]);
        body.extend(octets(address));
        let each = if v6 { 16 } else { 4 };
        body.resize(body.len() + usize::from(sources) * each + usize::from(extra) * 4, 7);
        match (kind, sources) {
            (1 | 3, 0) => says.push((address, false)),
            (6, _) => {}
            _ => says.push((address, true)),
        }
    }
    body
}

fn packet(v6: bool, protocol: u8, to: IpAddr, body: &[u8]) -> Vec<u8> {
    let to = octets(to);
    if v6 {
        let local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 5).octets();
        let length = (body.len() as u16).to_be_bytes();
        return [&[0x60, 0, 0, 0][..], &length, &[protocol, 255], &local, &to, body].concat();
    }
    let length = (20 + body.len() as u16).to_be_bytes();
    let rest = [0, 0, 0, 0, 1, protocol, 0, 0, 10, 0, 0, 5];
    [&[0x45, 0][..], &length, &rest, &to, body].concat()
}

fn arp(input: &mut Input<'_>, source: [u8; 6]) -> Vec<u8> {
    let sender = if input.below(4) == 0 { Mac([2, 0, 0, 0, 0, 9]).0 } else { source };
    let (operation, address) = (1 + input.below(2), [10, 0, 0, input.below(12)]);
    [&[0, 1, 8, 0, 6, 4, 0, operation][..], &sender, &address, &[0; 6], &address].concat()
}
