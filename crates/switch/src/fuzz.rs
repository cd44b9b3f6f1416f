//! Structured targets for fuzzing: a frame with its header through all that is done to one, a switch against its oracle, and several that tell each other
//! what they learn.

mod groups;

pub use groups::fuzz_groups;

use crate::group::Groups;
use crate::oracle::Oracle;
use crate::{
    Claim, Guard, Mac, NetHeader, Offload, Offloads, Packet, PortId, PortSpec, Prefix, Reason,
    Scratch, Sizes, Switch, Tag, TagEdit, Tagging, Takes, Vid, View, adapt,
};

const PORTS: u16 = 6;
const AGE_S: u64 = 10;
const MACS_MAX: usize = 24;

/// Bytes of the fuzzer; zeroes when they are used up.
struct Input<'a>(std::slice::Iter<'a, u8>);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn below(&mut self, bound: u8) -> u8 {
        self.byte() % bound
    }

    fn vid(&mut self) -> Option<Vid> {
        Vid::new(u16::from(self.below(5)))
    }

    fn mac(&mut self) -> Mac {
        match self.byte() {
            0..16 => Mac::BROADCAST,
            16..20 => Mac([1, 0x80, 0xc2, 0, 0, self.below(18)]),
            20..24 => Mac([0; 6]),
            24..32 => Mac([1, 0, 0x5e, 1, 2, 3]),
            other => Mac([2, 0, 0, 0, 0, other % 40]),
        }
    }
}

/// One frame with a virtio-net header: judged, guarded, and made into what a destination takes.
///
/// # Panics
///
/// When what comes out is not all of the frame, or more than there is.
pub fn fuzz_frame(data: &[u8]) {
    let Some((header, frame)) = data.split_first_chunk::<16>() else { return };
    let [setup, known, mtu, tag, header @ ..] = *header;
    let known = &frame[..frame.len().min(14 + usize::from(known))];
    let Ok(view) = View::new(known, frame.len()) else { return };
    let mut header = NetHeader::read(&header);
    if let (Packet::Ip(ip), true) = (Packet::of(&view), setup & 1 != 0) {
        assert!(ip.l4 <= ip.end && ip.end <= view.len());
        header.flags |= 1;
        header.csum_start = ip.l4 as u16;
        header.csum_offset = if ip.protocol == 6 { 16 } else { 6 };
    }
    let guard = Guard {
        addresses: vec![Prefix { address: [10, 0, 0, 0].into(), bits: 8 }],
        dhcp_server: false,
        router: false,
        ..Guard::default()
    };
    let _ = guard.check(&view);
    let _ = Claim::of(&view);
    if let Packet::Ip(ip) = Packet::of(&view) {
        let mut groups = Groups::new(4);
        groups.add_port(PortId(0));
        let from = (PortId(0), Vid::new(1).expect("a VLAN"));
        groups.hear(1, from, &view, &ip, (3, true, true));
        assert!(std::iter::from_fn(|| groups.take_told()).count() <= 4);
    }
    let Ok(offload) = Offload::judge(&header, &view, Offloads::ALL, setup & 2 != 0) else { return };
    let offloads = [Offloads::NONE, Offloads::CSUM, Offloads::ALL][usize::from(setup >> 2) % 3];
    let new = Tag { tpid: 0x8100, tci: u16::from(tag) };
    let edit = match (view.tag(), tag % 4) {
        (_, 0) => TagEdit::Insert(new),
        (Some(_), 1) => TagEdit::Strip,
        (Some(_), 2) => TagEdit::Replace(new),
        _ => TagEdit::Keep,
    };
    let takes = Takes { offloads, mtu: usize::from(mtu) * 100 };
    let mut scratch = Scratch::default();
    let Ok(mut pieces) = adapt(view, offload, edit, takes, &mut scratch) else { return };
    let mut end = None;
    while let Some(mut piece) = pieces.next() {
        assert!(piece.len() <= takes.mtu + 14 + 20 || piece.header.gso_type != 0);
        assert!(end.is_none_or(|end| end == piece.rest.start));
        end = Some(piece.rest.end);
        piece.fill(|_| ());
    }
    assert_eq!(end, Some(frame.len()));
}

/// A switch with a few ports against its oracle: frames, changes, time.
///
/// # Panics
///
/// When they differ, or a frame is not counted exactly once.
pub fn fuzz_forward(data: &[u8]) {
    let mut input = Input(data.iter());
    let seed = u64::from(input.byte());
    let sizes = Sizes { macs: MACS_MAX, age_s: AGE_S as u32, groups: 16, claims: 8, seed };
    let (mut switch, mut oracle) = (Switch::new(sizes), Oracle::new(AGE_S, MACS_MAX));
    for id in 0..PORTS {
        let spec = port(&mut input, id);
        switch.set_port(PortId(id), spec.clone());
        oracle.set_port(id, spec);
    }
    let (mut now_s, mut sent, mut got) = (100, [0; PORTS as usize], [0; PORTS as usize]);
    while input.0.len() > 0 {
        let id = u16::from(input.below(PORTS as u8));
        match input.byte() {
            0..10 => now_s += u64::from(input.below(12)),
            10..13 => {
                switch.flush(PortId(id));
                oracle.forget(id);
            }
            13..15 => {
                let spec = port(&mut input, id);
                switch.set_port(PortId(id), spec.clone());
                oracle.set_port(id, spec);
            }
            _ => {
                sent[usize::from(id)] += 1;
                step(&mut switch, &mut oracle, now_s, id, &frame(&mut input), &mut got);
            }
        }
        (0..8).for_each(|_| switch.age(now_s * 1_000_000_000));
        oracle.expire(now_s);
        for id in 0..PORTS {
            assert_eq!(switch.learned(PortId(id)).expect("it is there").0, oracle.stations(id));
            let (came, went) = switch.counters(PortId(id)).expect("it is there");
            assert_eq!(came.frames + came.dropped_all(), sent[usize::from(id)]);
            assert_eq!(went.frames + went.dropped_all(), got[usize::from(id)]);
        }
    }
}

fn step(
    switch: &mut Switch,
    oracle: &mut Oracle,
    now_s: u64,
    from: u16,
    frame: &[u8],
    got: &mut [u64; PORTS as usize],
) {
    let view = match View::new(frame, frame.len()) {
        Ok(view) => view,
        Err(reason) => {
            assert_eq!(reason, Reason::PktTooSmall);
            return switch.refused(PortId(from), reason);
        }
    };
    let (now_ns, mut to) = (now_s * 1_000_000_000, Vec::new());
    let ours = switch.forward(now_ns, PortId(from), &view, &mut to).map(|_| ());
    let theirs = oracle.send(now_s, from, frame);
    assert_eq!(ours, theirs.as_ref().map(|_| ()).map_err(|reason| *reason));
    let theirs = theirs.unwrap_or_default();
    assert_eq!(to.len(), theirs.len());
    for egress in to {
        got[usize::from(egress.port.0)] += 1;
        let mut scratch = Scratch::default();
        let offload = Offload::None { valid: false };
        let mut pieces = match switch.adapt(egress, view, offload, &mut scratch) {
            Ok(pieces) => pieces,
            Err(reason) => {
                assert_eq!(reason, Reason::MtuExceeded);
                continue;
            }
        };
        let piece = pieces.next().expect("one piece");
        let bytes = [piece.head(), &frame[piece.rest.clone()]].concat();
        assert!(pieces.next().is_none());
        assert_eq!(Some(&bytes), theirs.get(&(egress.port.0, egress.mirror)));
        switch.delivered(egress.port, bytes.len());
    }
}

fn port(input: &mut Input<'_>, id: u16) -> PortSpec {
    let bits = input.byte();
    let mut spec = PortSpec::access(Vid::new(1).expect("a VLAN"));
    spec.pvid = input.vid();
    spec.vids = (0..input.below(5)).filter_map(|_| input.vid()).collect();
    spec.tagging = match bits & 3 {
        0 => Tagging::Service,
        1 => Tagging::None,
        _ => Tagging::Customer,
    };
    spec.private = bits & 12 == 12;
    spec.macs_max = usize::from(bits >> 4);
    spec.mirror_only = input.below(8) == 7;
    spec.mirror = (input.below(4) == 3).then(|| PortId(u16::from(input.below(PORTS as u8))));
    if input.below(8) == 7 {
        // Pairs of ports have the same.
        spec.guard.macs = vec![Mac([2, 0, 0, 0, 0, id as u8 / 2])];
    }
    spec
}

fn frame(input: &mut Input<'_>) -> Vec<u8> {
    let mut frame = [input.mac().0, input.mac().0].concat();
    for _ in 0..input.below(4) {
        let tpid = if input.below(3) == 0 { 0x88a8 } else { 0x8100 };
        let vid = if input.below(20) == 0 { 4095 } else { u16::from(input.below(6)) };
        frame.extend(Tag { tpid, tci: u16::from(input.byte()) << 12 | vid }.bytes());
    }
    frame.extend([0x88, 0xb5]);
    let long = if input.below(10) == 9 { 1500 } else { 0 };
    frame.resize(frame.len() + usize::from(input.byte()) + long, input.byte());
    if input.below(16) == 15 {
        frame.truncate(usize::from(input.below(20)));
    }
    frame
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn the_switch_does_as_its_oracle(data in prop::collection::vec(any::<u8>(), 0..3000)) {
            super::fuzz_forward(&data);
        }

        #[test]
        fn channels_agree_on_groups(data in prop::collection::vec(any::<u8>(), 0..4000)) {
            super::fuzz_groups(&data);
        }

        #[test]
        fn any_bytes_are_survived(data in prop::collection::vec(any::<u8>(), 16..400)) {
            super::fuzz_frame(&data);
        }
    }
}
