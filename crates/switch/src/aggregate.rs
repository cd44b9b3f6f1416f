//! Several links to the world outside that are one port of the switch: which of them a frame takes.
//!
//! As it is one port, what came by one link never leaves by another, and what goes to many leaves once. A link that goes changes nothing that
//! was learned.

use core::net::IpAddr;

use crate::packet::{Fragment, Packet};
use crate::view::View;

/// Which link of an aggregate a frame takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aggregation {
    /// The first one that is up. What comes by another is a copy of what comes by this one, or of nobody's concern.
    ActiveBackup,
    /// One of those that are up, all frames of a flow the same. The switch outside takes them for one as well, so frames come by any.
    Hash,
}

/// Links of an aggregate, such as those that are up: a bit for each, the first one the lowest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Links(pub u64);

impl Links {
    /// Most links of an aggregate.
    pub const MAX: usize = 64;

    /// Whether that link is among them.
    #[must_use]
    pub fn has(self, link: u16) -> bool {
        self.0.checked_shr(link.into()).unwrap_or(0) & 1 != 0
    }

    /// The first one.
    #[must_use]
    pub fn first(self) -> Option<u16> {
        (self.0 != 0).then_some(self.0.trailing_zeros() as u16)
    }

    /// By which of these, which are up, a frame leaves; none: they are all down.
    #[must_use]
    pub fn chosen(self, how: Aggregation, view: &View<'_>) -> Option<u16> {
        match how {
            Aggregation::ActiveBackup => self.first(),
            Aggregation::Hash => {
                let count = u64::from(self.0.count_ones());
                let chosen = flow(view).checked_rem(count)?;
                // Without as many of the first ones.
                Links((0..chosen).fold(self.0, |left, _| left & (left - 1))).first()
            }
        }
    }

    /// Whether what comes by a link is taken, while these are up.
    #[must_use]
    pub fn takes(self, how: Aggregation, link: u16) -> bool {
        match how {
            Aggregation::ActiveBackup => self.first() == Some(link),
            Aggregation::Hash => true,
        }
    }
}

/// A number that all frames of a flow have: of their MAC addresses, IP addresses, and ports, if all of its packets tell these. Of a packet that comes in fragments only the
/// first one does, so none of it is asked.
fn flow(view: &View<'_>) -> u64 {
    let macs = mix(word(&view.source().0), word(&view.destination().0));
    let Packet::Ip(ip) = Packet::of(view) else { return macs };
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => {
            let [one, two] = [0, 64].map(|at| (address.to_bits() >> at) as u64);
            mix(one, two)
        }
    };
    let ips = mix(address(ip.source), address(ip.destination));
    let (from, to) = match ip.fragment {
        Fragment::Whole => ip.ports(view).unwrap_or_default(),
        Fragment::First | Fragment::Later => (0, 0),
    };
    mix(mix(macs, ips), u64::from(from) << 16 | u64::from(to))
}

fn word(bytes: &[u8; 6]) -> u64 {
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Every bit of both has to do with the upper half of the product, and with what is left of that.
fn mix(one: u64, two: u64) -> u64 {
    let product = u128::from(one ^ 0x9e37_79b9_7f4a_7c15) * u128::from(two ^ 0xd1b5_4a32_d192_ed03);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP packet from a port, of station 1 to station 2, behind this many tags; of fragments the one at that place.
    fn udp(from: u16, tagged: bool, place: u16) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        if tagged {
            frame.extend([0x81, 0, 0, 20]);
        }
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0]);
        frame.extend(place.to_be_bytes());
        frame.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(from.to_be_bytes());
        frame.extend([0, 53, 0, 8, 0, 0]);
        frame
    }

    fn chosen(links: u64, how: Aggregation, frame: &[u8]) -> Option<u16> {
        Links(links).chosen(how, &View::new(frame, frame.len()).unwrap())
    }

    #[test]
    fn with_a_backup_frames_leave_by_the_first_link_that_is_up_and_come_by_no_other() {
        use Aggregation::ActiveBackup;
        for from in 0..100 {
            let frame = udp(from, false, 0);
            for (up, active) in [(0b111, Some(0)), (0b110, Some(1)), (0b100, Some(2)), (0, None)] {
                assert_eq!(chosen(up, ActiveBackup, &frame), active);
                for link in 0..4 {
                    assert_eq!(Links(up).takes(ActiveBackup, link), active == Some(link));
                }
            }
        }
        assert_eq!(chosen(1 << 63, ActiveBackup, &udp(1, false, 0)), Some(63));
    }

    #[test]
    fn flows_are_spread_over_the_links_that_are_up_and_each_keeps_its_own() {
        use Aggregation::Hash;
        for up in [0b1_u64, 0b10, 0b11, 0b1011, 1 << 63 | 1] {
            let mut counts = [0_u32; 64];
            for from in 0..1000 {
                let link = chosen(up, Hash, &udp(from, false, 0)).unwrap();
                assert!(Links(up).has(link), "{link} of {up:b}");
                assert_eq!(chosen(up, Hash, &udp(from, true, 0)), Some(link), "with a tag");
                counts[usize::from(link)] += 1;
            }
            let fair = 1000 / up.count_ones();
            for count in counts.into_iter().filter(|count| *count > 0) {
                assert!(count.abs_diff(fair) < fair / 4 + 1, "{count} of {fair}");
            }
        }
        assert_eq!(chosen(0, Hash, &udp(1, false, 0)), None);
        assert!((0..64).all(|link| Links(0b11).takes(Hash, link)));
    }

    #[test]
    fn all_fragments_of_a_packet_take_one_link() {
        let at = |from, place| chosen(u64::MAX, Aggregation::Hash, &udp(from, false, place));
        for from in 0..100 {
            assert_eq!(at(from, 0x2000), at(0, 0x0001));
        }
    }

    #[test]
    fn what_is_no_ip_takes_a_link_by_its_stations() {
        let at = |last: u8| {
            let mut frame = udp(0, false, 0);
            (frame[5], frame[12], frame[13]) = (last, 0x88, 0xb5);
            chosen(0b1111, Aggregation::Hash, &frame).unwrap()
        };
        let used: std::collections::BTreeSet<u16> = (0..100).map(at).collect();
        assert_eq!(used.len(), 4);
    }
}
