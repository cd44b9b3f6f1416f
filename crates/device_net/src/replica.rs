//! One channel's part of a network: its switch, and which RX queues are at hand.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use channel::QueueId;
use memory::clock;
use switch::{PortId, PortSpec, Sizes, Switch, Vids, View};

use crate::network::{Ear, FOR_EVER, Network, Port};
use crate::trace::Tracer;

/// MAC addresses that a network learns.
const MACS: usize = 8192;
/// Memberships of multicast groups that it keeps.
const GROUPS: usize = 2048;
/// IP addresses of stations that it keeps.
const CLAIMS: usize = 2048;
/// Seconds after which a station that keeps quiet is forgotten.
const AGE_S: u32 = 300;
/// How often a part of what is too old is freed.
const AGE_EVERY_NS: u64 = 1_000_000_000;

/// What the queues of a channel share: its part of each network.
#[derive(Debug, Default)]
pub struct Shared(Vec<Weak<RefCell<Replica>>>);

impl Shared {
    /// This channel's part of a network.
    pub(crate) fn of(&mut self, network: &Arc<Network>, channel: u32) -> Rc<RefCell<Replica>> {
        self.0.retain(|replica| replica.strong_count() > 0);
        let mut replicas = self.0.iter().filter_map(Weak::upgrade);
        let known = replicas.find(|replica| Arc::ptr_eq(&replica.borrow().network, network));
        known.unwrap_or_else(|| {
            let replica = Rc::new(RefCell::new(Replica::new(network, channel)));
            self.0.push(Rc::downgrade(&replica));
            replica
        })
    }
}

/// One channel's part of a network.
#[derive(Debug)]
pub(crate) struct Replica {
    network: Arc<Network>,
    channel: u32,
    pub(crate) switch: Switch,
    /// What was taken over of the network.
    version: u64,
    ports: Vec<Option<Place>>,
    /// Ports that pass frames until a deadline, and what of them is passed on now.
    leased: Vec<Leased>,
    ear: Arc<Ear>,
    others: Vec<Arc<Ear>>,
    /// RX queues on this channel: of which pair of which port.
    here: Vec<(PortId, u16, QueueId)>,
    /// The way that was found last in this batch, and for what: most frames of a batch have the same.
    last: Option<(PortId, u16, QueueId, u16)>,
    aged_ns: u64,
    /// Who watches frames: taken over as ports are, so that nobody looks for it while nobody does.
    tracer: Option<Arc<Tracer>>,
}

/// A port as it was taken over.
#[derive(Debug)]
struct Place {
    port: Arc<Port>,
    revision: u64,
}

/// A port with a deadline.
#[derive(Debug)]
struct Leased {
    port: Arc<Port>,
    spec: PortSpec,
    /// The deadline has passed: all of its VLANs are in standby.
    lapsed: bool,
}

impl Leased {
    fn has_passed(port: &Port) -> bool {
        clock::boot_ns() >= port.until_ns.load(Acquire)
    }

    /// As the switch is to have it.
    fn shown(&self) -> PortSpec {
        let standby = if self.lapsed { Vids::ALL } else { self.spec.standby.clone() };
        PortSpec { standby, ..self.spec.clone() }
    }
}

/// Where a frame goes.
#[derive(Debug)]
pub(crate) enum Way {
    /// To a queue of this channel, which is of the pair of that number.
    Here(QueueId, u16),
    /// Into the inbox of that pair.
    Away(Arc<Port>, u16),
}

impl Replica {
    fn new(network: &Arc<Network>, channel: u32) -> Replica {
        let seed = memory::random::mix(clock::ticks() ^ u64::from(channel) << 48);
        Replica {
            network: Arc::clone(network),
            channel,
            switch: Switch::new(Sizes {
                macs: MACS,
                age_s: AGE_S,
                groups: GROUPS,
                claims: CLAIMS,
                seed,
            }),
            version: 0,
            ports: Vec::new(),
            leased: Vec::new(),
            ear: network.listen(channel),
            others: Vec::new(),
            here: Vec::new(),
            last: None,
            aged_ns: 0,
            tracer: None,
        }
    }

    /// The version of the network that was taken over.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The network.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Whether a port is as it was when this version was taken over.
    pub(crate) fn is_as_of(&self, port: PortId, version: u64) -> bool {
        let place = self.ports.get(usize::from(port.0)).and_then(Option::as_ref);
        place.is_some_and(|place| place.revision < version)
    }

    /// Of which pair the inbox is that a frame waits in for a port, as [`Replica::find_way`] leads there.
    pub(crate) fn inbox_of(
        &self,
        port: PortId,
        number: u16,
        view: &View<'_>,
    ) -> Option<(Arc<Port>, u16)> {
        match self.find_way(port, number, view)? {
            Way::Away(port, pair) => Some((port, pair)),
            Way::Here(_, pair) => Some((self.port(port)?, pair)),
        }
    }

    /// Who watches frames. To be asked for once in a batch of them.
    pub(crate) fn tracer(&self) -> Option<Arc<Tracer>> {
        self.tracer.clone()
    }

    /// Takes over what has changed, and what others have learned. To be called before a batch of frames; the moment of it in nanoseconds.
    pub(crate) fn catch_up(&mut self) -> u64 {
        let now_ns = clock::to_ns(clock::ticks());
        self.last = None;
        if !self.leased.is_empty() {
            self.look_at_deadlines();
        }
        let version = self.network.version();
        let has_changed = version != self.version;
        if has_changed {
            self.take_over();
            self.version = version;
        }
        self.ear.hear(now_ns, &mut self.switch);
        if has_changed {
            // With what has just been heard.
            self.network.say_moved(now_ns, self.channel, &self.switch);
        }
        if now_ns.saturating_sub(self.aged_ns) > AGE_EVERY_NS {
            self.aged_ns = now_ns;
            self.switch.age(now_ns);
        }
        now_ns
    }

    /// A port whose deadline has passed passes nothing from this batch on, and one whose deadline was moved does again.
    fn look_at_deadlines(&mut self) {
        for one in &mut self.leased {
            let lapsed = Leased::has_passed(&one.port);
            if lapsed != one.lapsed {
                one.lapsed = lapsed;
                self.switch.set_port(one.port.id, one.shown());
            }
        }
    }

    #[cold]
    fn take_over(&mut self) {
        let (entries, others) = self.network.look(self.channel);
        self.others = others;
        self.tracer = self.network.tracer();
        let most = self.ports.len().max(entries.len());
        self.ports.resize_with(most, || None);
        let mut entries = entries.into_iter();
        for (index, place) in self.ports.iter_mut().enumerate() {
            let id = PortId(index as u16);
            let entry = entries.next().flatten();
            let known = entry.as_ref().zip(place.as_ref());
            if known.is_none_or(|(entry, place)| place.revision != entry.revision) {
                self.leased.retain(|one| one.port.id != id);
            }
            let Some(entry) = entry else {
                self.switch.remove_port(id);
                *place = None;
                continue;
            };
            if place.as_ref().is_some_and(|place| place.revision == entry.revision) {
                continue;
            }
            match entry.spec {
                Some(spec) if entry.port.until_ns.load(Acquire) != FOR_EVER => {
                    let (port, lapsed) = (Arc::clone(&entry.port), Leased::has_passed(&entry.port));
                    let leased = Leased { port, spec, lapsed };
                    self.switch.set_port(id, leased.shown());
                    self.leased.push(leased);
                }
                Some(spec) => self.switch.set_port(id, spec),
                None => self.switch.remove_port(id),
            }
            *place = Some(Place { port: entry.port, revision: entry.revision });
        }
    }

    /// Others hear what was learned of a frame: before it is delivered, so that they have it when its answer comes.
    #[cold]
    pub(crate) fn tell(&mut self) {
        while let Some(news) = self.switch.take_news() {
            self.others.iter().for_each(|other| other.tell(news));
        }
    }

    /// An RX queue is here.
    pub(crate) fn enter(&mut self, port: PortId, pair: u16, queue: QueueId) {
        self.last = None;
        self.here.push((port, pair, queue));
    }

    /// It goes.
    pub(crate) fn leave(&mut self, port: PortId, pair: u16) {
        self.last = None;
        self.here.retain(|(at, number, _)| (*at, *number) != (port, pair));
    }

    /// A port.
    #[cold]
    pub(crate) fn port(&self, id: PortId) -> Option<Arc<Port>> {
        Some(Arc::clone(&self.ports.get(usize::from(id.0))?.as_ref()?.port))
    }

    /// As [`Replica::find_way`], which is asked once of each batch where it leads to a queue of this channel.
    #[inline]
    pub(crate) fn way_to(&mut self, id: PortId, number: u16, view: &View<'_>) -> Option<Way> {
        if let Some((port, from, queue, pair)) = self.last
            && (port, from) == (id, number)
        {
            return Some(Way::Here(queue, pair));
        }
        self.look_for_way(id, number, view)
    }

    #[inline(never)]
    fn look_for_way(&mut self, id: PortId, number: u16, view: &View<'_>) -> Option<Way> {
        let way = self.find_way(id, number, view);
        let place = self.ports.get(usize::from(id.0)).and_then(Option::as_ref);
        if let Some(Way::Here(queue, pair)) = way
            && place.is_some_and(|place| !place.port.goes_by_flow())
        {
            self.last = Some((id, number, queue, pair));
        }
        way
    }

    /// Which queue of a port gets a frame that came by the pair of that number at its sender's. A pair that the driver has not sent by is none that it
    /// uses (clause 5.1.6.5.5), but for the first. Of an aggregated uplink only the pairs of one member are asked. None: the client uses no queue.
    fn find_way(&self, id: PortId, number: u16, view: &View<'_>) -> Option<Way> {
        let port = &self.ports.get(usize::from(id.0))?.as_ref()?.port;
        let pairs = port.pairs_for(view)?;
        let is_used = |pair: u16| {
            let pair_ = &port.pairs[usize::from(pair)];
            pair_.open.load(Relaxed) && (pair == pairs.start || pair_.sent.load(Relaxed))
        };
        let wanted = pairs.start + number % pairs.len() as u16;
        let is_its = |at: PortId, pair: u16| at == id && pairs.contains(&pair) && is_used(pair);
        let here = || self.here.iter().filter(|(at, pair, _)| is_its(*at, *pair));
        let near = here().find(|(_, pair, _)| *pair == wanted).or_else(|| here().next());
        if let Some((_, pair, queue)) = near {
            return Some(Way::Here(*queue, *pair));
        }
        let pair = [wanted, pairs.start].into_iter().find(|pair| is_used(*pair))?;
        Some(Way::Away(Arc::clone(port), pair))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Release;

    use switch::{Announcement, Claim, Mac, News, PortSpec, Reason, Vid, View};

    use super::*;
    use crate::network::Networks;

    #[test]
    fn a_port_passes_frames_until_its_deadline_and_again_when_that_has_moved() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let spec = || Some(PortSpec::access(Vid::new(1).unwrap()));
        let network = Networks::default().named("net");
        let [client, uplink] = ["client", "uplink"].map(|name| network.join(name, 1));
        uplink.until_ns.store(0, Release);
        network.set(&client, spec(), None);
        network.set(&uplink, spec(), None);
        let mut replica = Replica::new(&network, 0);
        let mut passes = || {
            [&client, &uplink].map(|from| {
                let mut frame = [0; 60];
                frame[..12].copy_from_slice(&[255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 9]);
                frame[11] = from.id.0 as u8;
                frame[12..14].copy_from_slice(&[0x88, 0xb5]);
                let now_ns = replica.catch_up();
                let view = View::new(&frame, frame.len()).unwrap();
                replica.switch.forward(now_ns, from.id, &view, &mut Vec::new())
            })
        };
        assert_eq!(passes(), [Err(Reason::Standby); 2]);
        uplink.until_ns.store(clock::boot_ns() + HOUR_NS, Release);
        assert_eq!(passes(), [Ok(()); 2]);
        network.set(&uplink, spec(), None);
        assert_eq!(passes(), [Ok(()); 2]);
        uplink.until_ns.store(clock::boot_ns(), Release);
        assert_eq!(passes(), [Err(Reason::Standby); 2]);
        network.set(&uplink, spec(), None);
        assert_eq!(passes(), [Err(Reason::Standby); 2]);
    }

    #[test]
    fn a_station_that_has_moved_has_all_its_addresses_said_once_whoever_looks_first() {
        let (v, station) = (Vid::new(1).unwrap(), Mac([2, 0, 0, 0, 0, 9]));
        let claim = |last: u8| {
            let claim = Claim { address: [10, 0, 0, last].into(), router: false };
            Announcement { station, vid: v, claim: Some(claim) }
        };
        for first in 0..3 {
            let network = Networks::default().named("net");
            let [before, now, other] = ["before", "now", "other"].map(|name| {
                let port = network.join(name, 1);
                network.set(&port, Some(PortSpec::access(v)), None);
                port
            });
            other.pairs[0].make_inbox().unwrap();
            other.pairs[0].open.store(true, Relaxed);
            let mut old = [Replica::new(&network, 0), Replica::new(&network, 1)];
            for replica in &mut old {
                replica.catch_up();
            }
            network.say(before.id, &[claim(1)]);
            old[0].catch_up();
            // What channels have yet to hear when the station moves; the third one was not there before.
            network.say(before.id, &[claim(2)]);
            let [zero, one] = old;
            let mut all = [zero, one, Replica::new(&network, 2)];
            let inbox = other.pairs[0].inbox().unwrap();
            while inbox.full.pop().is_some() {}
            for _ in 0..2 {
                network.announce(&now, station);
                for at in 0..3 {
                    all[(first + at) % 3].catch_up();
                }
                let kinds =
                    std::iter::from_fn(|| inbox.full.pop().map(|it| it.frame().view.ethertype()));
                let mut kinds: Vec<u16> = kinds.collect();
                kinds[1..].sort_unstable();
                assert_eq!(kinds, [0x8035, 0x0806, 0x0806]);
            }
        }
    }

    #[test]
    fn a_pair_by_which_nothing_was_sent_gets_nothing() {
        let network = Networks::default().named("net");
        let port = network.join("client", 3);
        network.set(&port, Some(PortSpec::access(Vid::new(1).unwrap())), None);
        let mut replica = Replica::new(&network, 0);
        replica.catch_up();
        let frame = [0; 60];
        let view = View::new(&frame, frame.len()).unwrap();
        let mut pairs = || {
            [0, 1, 2, 4].map(|number| match replica.way_to(port.id, number, &view) {
                Some(Way::Here(_, pair) | Way::Away(_, pair)) => Some(pair),
                None => None,
            })
        };
        assert_eq!(pairs(), [None; 4]);
        port.pairs.iter().for_each(|pair| pair.open.store(true, Relaxed));
        // The first one alone needs to have sent nothing.
        assert_eq!(pairs(), [Some(0); 4]);
        port.pairs[1].sent.store(true, Relaxed);
        assert_eq!(pairs(), [Some(0), Some(1), Some(0), Some(1)]);
        port.pairs[1].open.store(false, Relaxed);
        assert_eq!(pairs(), [Some(0); 4]);
        port.pairs[0].open.store(false, Relaxed);
        assert_eq!(pairs(), [None; 4]);
    }

    #[test]
    fn a_channel_that_has_no_room_for_what_others_hear_of_groups_withholds_nothing() {
        const SECOND_NS: u64 = 1_000_000_000;
        let sizes = Sizes { macs: 8, age_s: 300, groups: 8, claims: 8, seed: 7 };
        let [mut ours, mut theirs] = [(); 2].map(|()| {
            let mut switch = Switch::new(sizes);
            for id in 0..3 {
                switch.set_port(PortId(id), PortSpec::access(Vid::new(1).unwrap()));
            }
            switch.age(0);
            switch
        });
        let send = |switch: &mut Switch, now_s: u64, from, protocol, to: [u8; 4], body: &[u8]| {
            let link = [1, 0, 0x5e, 1, 2, 3, 2, 0, 0, 0, 0, from, 8, 0];
            let ip = [0x45, 0, 0, 28, 0, 0, 0, 0, 1, protocol, 0, 0, 10, 0, 0, from];
            let frame = [&link[..], &ip, &to, body].concat();
            let (view, mut all) = (View::new(&frame, frame.len()).unwrap(), Vec::new());
            let from = PortId(from.into());
            switch.forward(now_s * SECOND_NS, from, &view, &mut all).unwrap();
            all.iter().map(|egress| egress.port.0).collect::<Vec<u16>>()
        };
        send(&mut ours, 1000, 0, 2, [224, 0, 0, 1], &[0x11, 100, 0, 0, 0, 0, 0, 0]);
        let report = [0x16, 0, 0, 0, 239, 1, 2, 3];
        send(&mut theirs, 1000, 1, 2, [239, 1, 2, 3], &report);
        let mut told = std::iter::from_fn(|| theirs.take_news());
        let heard = told.find(|news| matches!(news, News::Group(_))).unwrap();
        let ear = Networks::default().named("net").listen(0);
        for (times, wanted) in [(1, vec![1]), (512, vec![1]), (513, vec![1, 2])] {
            (0..times).for_each(|_| ear.tell(heard));
            ear.hear(1026 * SECOND_NS, &mut ours);
            assert_eq!(send(&mut ours, 1026, 0, 17, [239, 1, 2, 3], &[0; 8]), wanted, "{times}");
        }
    }
}
