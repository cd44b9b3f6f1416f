//! What passes an uplink, counted by station and VLAN, where that is asked for (`accounting`).
//!
//! Each descriptor has a table of its own, to which its channel alone writes, by plain stores; who reads adds them up. An uplink without `accounting` has no tables, and looks once
//! at each frame whether it has.
//!
//! A station has a place once it is known behind another port of the network, so that a client fills no more of the table than addresses were learned of it. What is sent to
//! groups and to stations that nobody has seen is counted for the VLAN alone.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use memory::clock;
use protocol::message::{Passed, Tally};
use switch::{Claim, Mac, Switch, Vid, View};

/// Stations in VLANs, and VLANs, that one descriptor counts. Of others nothing is counted.
const PLACES: usize = 4096;
/// Places in which one may be.
const PROBES: usize = 32;

/// The table of a descriptor.
#[derive(Debug)]
pub(crate) struct Tallies {
    places: Box<[Place]>,
    /// Without it a client could choose addresses that leave none to others.
    seed: u64,
}

/// One line of the cache.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Place {
    /// The address of the station, 0 for the VLAN as a whole, and in the low 16 bits the VLAN. 0: nobody's.
    key: AtomicU64,
    /// Frames that went out, and bytes.
    sent: [AtomicU64; 2],
    /// Frames that came for it, and bytes.
    received: [AtomicU64; 2],
    /// Its IP address: of IPv4 in the first word. Who reads it while it changes may see half of each.
    address: [AtomicU64; 2],
    /// The version of that, or 0, and above 8 bits the priority of its last frame with a tag.
    about: AtomicU64,
}

fn key(station: Mac, vid: Vid) -> u64 {
    let [a, b, c, d, e, f] = station.0;
    u64::from_be_bytes([a, b, c, d, e, f, 0, 0]) | u64::from(vid.get())
}

fn add([frames, bytes]: &[AtomicU64; 2], its: usize) {
    frames.store(frames.load(Relaxed) + 1, Relaxed);
    bytes.store(bytes.load(Relaxed) + its as u64, Relaxed);
}

impl Place {
    /// An IPv4 address before any other, as far as it is known.
    fn is_at(&self, address: IpAddr) {
        let about = self.about.load(Relaxed);
        let (words, version) = match address {
            IpAddr::V4(it) => ([u64::from(it.to_bits()), 0], 4),
            IpAddr::V6(_) if about & 0xff == 4 => return,
            IpAddr::V6(it) => ([(it.to_bits() >> 64) as u64, it.to_bits() as u64], 6),
        };
        self.address.iter().zip(words).for_each(|(at, word)| at.store(word, Relaxed));
        self.about.store(about & !0xff | version, Relaxed);
    }

    fn address(&self) -> Option<IpAddr> {
        let [first, second] = [0, 1].map(|at| self.address[at].load(Relaxed));
        match self.about.load(Relaxed) & 0xff {
            4 => Some(Ipv4Addr::from_bits(first as u32).into()),
            6 => Some(Ipv6Addr::from_bits(u128::from(first) << 64 | u128::from(second)).into()),
            _ => None,
        }
    }
}

impl Tallies {
    pub(crate) fn new() -> Tallies {
        let places = (0..PLACES).map(|_| Place::default()).collect();
        Tallies { places, seed: memory::random::mix(clock::ticks()) }
    }

    /// Its place, which is given to it if there is one and it may.
    fn place(&self, key: u64, may: impl FnOnce() -> bool) -> Option<(&Place, bool)> {
        let first = memory::random::mix(key ^ self.seed) as usize;
        let mut places = (0..PROBES).map(|probe| &self.places[(first + probe) % PLACES]);
        let place = places.find(|place| [0, key].contains(&place.key.load(Relaxed)))?;
        if place.key.load(Relaxed) == key {
            return Some((place, false));
        }
        may().then(|| {
            place.key.store(key, Relaxed);
            (place, true)
        })
    }

    fn of(&self, switch: &Switch, station: Mac, vid: Vid) -> Option<&Place> {
        let may = || switch.knows(clock::to_ns(clock::ticks()), station, vid);
        let (place, new) = self.place(key(station, vid), may)?;
        if new {
            switch.addresses_of(station, vid).for_each(|address| place.is_at(address));
        }
        Some(place)
    }

    fn whole(&self, vid: Vid) -> Option<&Place> {
        self.place(key(Mac::default(), vid), || true).map(|(place, _)| place)
    }

    /// A frame of a station goes out.
    pub(crate) fn sent(&self, switch: &Switch, vid: Vid, view: &View<'_>) {
        self.whole(vid).inspect(|place| add(&place.sent, view.len()));
        let Some(place) = self.of(switch, view.source(), vid) else { return };
        add(&place.sent, view.len());
        if let Some(tag) = view.tag() {
            let about = place.about.load(Relaxed) & 0xff;
            place.about.store(about | u64::from(tag.tci >> 13) << 8, Relaxed);
        }
        if Claim::may_be_in(view)
            && let Some(claim) = Claim::of(view)
        {
            place.is_at(claim.address);
        }
    }

    /// A frame has come in.
    pub(crate) fn received(&self, switch: &Switch, vid: Vid, view: &View<'_>) {
        self.whole(vid).inspect(|place| add(&place.received, view.len()));
        let station = view.destination();
        let place = (!station.is_group()).then(|| self.of(switch, station, vid)).flatten();
        place.inspect(|place| add(&place.received, view.len()));
    }

    /// Adds what is counted here to that of other descriptors.
    pub(crate) fn add_to(&self, all: &mut BTreeMap<(u16, [u8; 6]), Tally>) {
        for place in &self.places {
            let key = place.key.load(Relaxed);
            if key == 0 {
                continue;
            }
            let [a, b, c, d, e, f, ..] = key.to_be_bytes();
            let (vlan, station) = (key as u16, [a, b, c, d, e, f]);
            let one = all.entry((vlan, station)).or_insert_with(|| Tally {
                station: (station != [0; 6]).then_some(station),
                vlan,
                ..Tally::default()
            });
            let passed = |[frames, bytes]: &[AtomicU64; 2]| Passed {
                frames: frames.load(Relaxed),
                bytes: bytes.load(Relaxed),
            };
            one.sent += passed(&place.sent);
            one.received += passed(&place.received);
            let its = place.address();
            one.address = one.address.filter(|known| known.is_ipv4()).or(its).or(one.address);
            one.priority = one.priority.max((place.about.load(Relaxed) >> 8) as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use switch::{PortId, PortSpec, Sizes};

    use super::*;

    fn frame(to: [u8; 6], from: [u8; 6], rest: &[u8]) -> Vec<u8> {
        let mut frame = [&to[..], &from, rest].concat();
        frame.resize(60, 0);
        frame
    }

    fn all(tallies: &Tallies) -> Vec<Tally> {
        let mut all = BTreeMap::new();
        tallies.add_to(&mut all);
        tallies.add_to(&mut BTreeMap::new());
        all.into_values().collect()
    }

    #[test]
    fn who_was_seen_is_counted_with_its_address_and_the_vlan_with_all_that_passes() {
        let vid = Vid::new(1).unwrap();
        let mut switch = Switch::new(Sizes { macs: 64, age_s: 300, groups: 8, claims: 8, seed: 7 });
        (0..2).for_each(|id| switch.set_port(PortId(id), PortSpec::access(vid)));
        let (client, world, tallies) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 9], Tallies::new());
        let arp = [&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1][..], &client, &[10, 0, 0, 7]].concat();
        let asks = frame([255; 6], client, &arp);
        let view = View::new(&asks, asks.len()).unwrap();
        // Nobody has seen it.
        tallies.sent(&switch, vid, &view);
        assert_eq!(all(&tallies).iter().filter(|one| one.station.is_some()).count(), 0);
        let now_ns = clock::to_ns(clock::ticks());
        switch.forward(now_ns, PortId(0), &view, &mut Vec::new()).unwrap();
        let plain = frame(world, client, &[0x88, 0xb5]);
        tallies.sent(&switch, vid, &View::new(&plain, 60).unwrap());
        let prior = frame(world, client, &[0x81, 0, 0x60, 0, 0x88, 0xb5]);
        tallies.sent(&switch, vid, &View::new(&prior, 60).unwrap());
        for to in [client, [255; 6], world] {
            let came = frame(to, world, &[0x88, 0xb5]);
            tallies.received(&switch, vid, &View::new(&came, 1000).unwrap());
        }
        let passed = |frames, bytes| Passed { frames, bytes };
        let wanted = [
            Tally { vlan: 1, sent: passed(3, 180), received: passed(3, 3000), ..Tally::default() },
            Tally {
                station: Some(client),
                vlan: 1,
                priority: 3,
                address: Some([10, 0, 0, 7].into()),
                sent: passed(2, 120),
                received: passed(1, 1000),
            },
        ];
        assert_eq!(all(&tallies), wanted);
    }

    #[test]
    fn a_full_table_counts_those_who_are_in_it() {
        let tallies = Tallies::new();
        let stations: Vec<u64> = (1..=2 * PLACES as u64).map(|number| number << 16 | 1).collect();
        for _ in 0..2 {
            for key in &stations {
                if let Some((place, _)) = tallies.place(*key, || true) {
                    add(&place.sent, 60);
                }
            }
        }
        let all = all(&tallies);
        assert!(all.len() > PLACES / 2 && all.len() <= PLACES, "{}", all.len());
        assert!(all.iter().all(|one| one.sent == Passed { frames: 2, bytes: 120 }));
    }
}
