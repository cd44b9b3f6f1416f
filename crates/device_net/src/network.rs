//! Virtual switches by name: which ports each has, and what waits for whom. Off the path of a frame, but for [`Pair`].

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use channel::elements::Wake;
use channel::room::Waiters;
use crossbeam_queue::ArrayQueue;
use memory::{IoBuf, Lasting, clock};
use switch::{
    ANNOUNCEMENT_BYTES, Aggregation, Announcement, Egress, FRAME_BYTES_MAX, HEAD_BYTES, Links, Mac,
    News, Offload, PortId, PortSpec, Question, Reason, Sighting, Switch, Vid, View,
};

use crate::INBOX_FRAMES;
use crate::copy::{Place, Source};
use crate::patience::{Bells, PATIENCE_NS};
use crate::talks::Talks;
use crate::trace::{Decision, Event, Tracer, Watch};
use crate::uplink::Tallies;
use crate::waiting::{Frame, put};

/// Room of a parcel: whole pages, of which only those are ever there that a frame has touched.
pub(crate) const PARCEL_BYTES: usize = FRAME_BYTES_MAX.next_multiple_of(4096);
/// News that wait for a channel.
const NEWS_MAX: usize = 512;
/// Stations that have moved and of whose addresses others hear. With more the oldest gives way.
const MOVED_MAX: usize = 256;
/// So long channels say what they know of a station that has moved.
const MOVED_NS: u64 = 5_000_000_000;

/// The networks of a data plane.
#[derive(Debug, Default)]
pub struct Networks(Mutex<BTreeMap<String, Weak<Network>>>);

impl Networks {
    /// The network of a name; made if nobody has it.
    pub fn named(&self, name: &str) -> Arc<Network> {
        let mut networks = self.0.lock().expect("a panic ends the process");
        networks.retain(|_, network| network.strong_count() > 0);
        if let Some(network) = networks.get(name).and_then(Weak::upgrade) {
            return network;
        }
        let (version, members) = (AtomicU64::new(1), Mutex::default());
        let (tracer, moved) = (Mutex::default(), Mutex::default());
        let (bells, patience_ns) = (Bells::default(), AtomicU64::new(PATIENCE_NS));
        let network = Network { version, members, tracer, moved, bells, patience_ns };
        let network = Arc::new(network);
        networks.insert(name.to_owned(), Arc::downgrade(&network));
        network
    }

    /// The network of a name, if somebody has it.
    pub(crate) fn known(&self, name: &str) -> Option<Arc<Network>> {
        self.0.lock().expect("a panic ends the process").get(name).and_then(Weak::upgrade)
    }

    /// All that somebody has.
    pub(crate) fn all(&self) -> Vec<Arc<Network>> {
        let networks = self.0.lock().expect("a panic ends the process");
        networks.values().filter_map(Weak::upgrade).collect()
    }
}

/// A virtual switch: its ports, for all channels.
#[derive(Debug)]
pub struct Network {
    /// Another number with every change: channels look at it with each batch of frames.
    version: AtomicU64,
    members: Mutex<Members>,
    /// Who watches frames.
    tracer: Mutex<Option<Arc<Tracer>>>,
    /// Stations that have moved, and whose addresses others have yet to hear of.
    moved: Mutex<VecDeque<Moved>>,
    /// What wakes those who wait for room in an inbox.
    pub(crate) bells: Bells,
    /// How long they wait at most.
    pub(crate) patience_ns: AtomicU64,
}

/// A station that is behind another port now. One channel alone may not know its addresses: it has queues of the network since a moment ago, or what it is to
/// hear of them is on its way. So each says those that nobody has said.
#[derive(Debug)]
struct Moved {
    station: Mac,
    to: PortId,
    since_ns: u64,
    /// Channels that have said what they know.
    asked: Vec<u32>,
    said: Vec<Announcement>,
}

#[derive(Debug, Default)]
struct Members {
    ports: Vec<Option<Member>>,
    /// What each channel with queues of the network has yet to hear.
    listeners: Vec<(u32, Weak<Ear>)>,
}

impl Members {
    /// A port as it takes part now.
    fn spec(&self, id: PortId) -> Option<&PortSpec> {
        self.ports.get(usize::from(id.0))?.as_ref()?.spec.as_ref()
    }

    /// The port of a name.
    fn named(&self, name: &str) -> Option<PortId> {
        let mut ports = self.ports.iter().flatten();
        ports.find(|member| member.port.name == name).map(|member| member.port.id)
    }

    /// A port of that name comes or goes: those that have copies sent there are looked at anew.
    fn renew_mirrors(&mut self, name: &str, revision: u64) {
        for member in self.ports.iter_mut().flatten() {
            if member.mirror.as_deref() == Some(name) {
                member.revision = revision;
            }
        }
    }
}

/// What a channel has yet to hear of the others.
#[derive(Debug)]
pub(crate) struct Ear {
    news: ArrayQueue<News>,
    /// There was no room for something that no frame may tell soon.
    missed: AtomicBool,
}

impl Ear {
    fn new() -> Ear {
        Ear { news: ArrayQueue::new(NEWS_MAX), missed: AtomicBool::new(false) }
    }

    /// Where a station is, for which there is no room, is learned from its next frame.
    pub(crate) fn tell(&self, news: News) {
        if self.news.push(news).is_err() && matches!(news, News::Group(_)) {
            self.missed.store(true, Release);
        }
    }

    /// A switch learns all that was told.
    pub(crate) fn hear(&self, now_ns: u64, switch: &mut Switch) {
        while let Some(news) = self.news.pop() {
            switch.learn(now_ns, news);
        }
        if self.missed.load(Relaxed) && self.missed.swap(false, Acquire) {
            switch.miss();
        }
    }
}

#[derive(Debug)]
struct Member {
    port: Arc<Port>,
    /// None: no client is there.
    spec: Option<PortSpec>,
    /// The port that gets copies of all that it sends and gets, by name.
    mirror: Option<String>,
    /// Another number with every change of it.
    revision: u64,
}

/// A port as a channel takes it over.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) port: Arc<Port>,
    pub(crate) spec: Option<PortSpec>,
    pub(crate) revision: u64,
}

impl Network {
    /// What tells it from all others that there are.
    pub(crate) fn number(self: &Arc<Network>) -> usize {
        Arc::as_ptr(self).addr()
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().expect("a panic ends the process")
    }

    /// Changes in steps of one. A channel that has this number has seen all before it.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Who watches frames, if anybody does.
    pub(crate) fn tracer(&self) -> Option<Arc<Tracer>> {
        self.tracer.lock().expect("a panic ends the process").clone()
    }

    /// Somebody watches frames from now on, or nobody. Channels hear of it as of any change.
    pub(crate) fn set_tracer(&self, tracer: Option<Arc<Tracer>>) {
        *self.tracer.lock().expect("a panic ends the process") = tracer;
        self.touch();
    }

    /// Channels look at what has changed.
    pub(crate) fn touch(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    /// The numbers of the ports by their names, and the names.
    pub(crate) fn names(&self) -> Vec<(PortId, String)> {
        let members = self.members();
        let ports = members.ports.iter().flatten();
        ports.map(|member| (member.port.id, member.port.name.clone())).collect()
    }

    /// Adds a port, without a client.
    pub(crate) fn join(self: &Arc<Network>, name: &str, pairs: u16) -> Arc<Port> {
        self.join_by(name, pairs, None)
    }

    /// The same of a port whose pairs belong to several links.
    pub(crate) fn join_by(
        self: &Arc<Network>,
        name: &str,
        pairs: u16,
        bundle: Option<Bundle>,
    ) -> Arc<Port> {
        let mut members = self.members();
        let free = members.ports.iter().position(Option::is_none);
        let at = free.unwrap_or(members.ports.len());
        let id = PortId(u16::try_from(at).expect("a data plane has fewer queues than that"));
        let pairs = (0..pairs).map(|_| Pair::default()).collect();
        let (name, network) = (name.to_owned(), Arc::downgrade(self));
        let until_ns = AtomicU64::new(FOR_EVER);
        let asks = Asks::default();
        let port = Arc::new(Port { id, name, pairs, bundle, until_ns, asks, network });
        let revision = self.version.fetch_add(1, Ordering::AcqRel);
        let member = Some(Member { port: Arc::clone(&port), spec: None, mirror: None, revision });
        members.renew_mirrors(&port.name, revision);
        match members.ports.get_mut(at) {
            Some(place) => *place = member,
            None => members.ports.push(member),
        }
        port
    }

    /// Takes a port away. Channels that have yet to hear of it may go on putting frames into its inboxes.
    pub(crate) fn leave(&self, port: &Port) {
        let member = {
            let mut members = self.members();
            let revision = self.version.fetch_add(1, Ordering::AcqRel);
            members.renew_mirrors(&port.name, revision);
            members.ports[usize::from(port.id.0)].take()
        };
        // Not under the lock: it may be the last who holds the port.
        drop(member);
    }

    /// What waits for a pair is lost: who it was for is gone. The first receiving queue of who sent it counts it.
    pub(crate) fn lose(&self, pair: &Pair) {
        let kept = pair.kept().take();
        let inbox = pair.inbox.get().into_iter();
        let waiting =
            kept.into_iter().chain(inbox.flat_map(|it| std::iter::from_fn(|| it.full.pop())));
        let tracer = self.tracer();
        for parcel in waiting {
            if let Some(tracer) = &tracer {
                let Frame { from, view, egress, number, .. } = parcel.frame();
                let (head, len, to) = (view.head(), view.len(), Some(egress.port));
                let decision = Decision::Lost(Reason::PortDown);
                let event = Event { number, from, to, vid: None, head, len, decision };
                (&**tracer).note(|| event);
            }
            let members = self.members();
            let sender = members.ports.get(usize::from(parcel.from.0)).and_then(Option::as_ref);
            if let Some(its) = sender.and_then(|member| member.port.pairs.first()) {
                let left = if parcel.egress.mirror { &its.left_copies } else { &its.left };
                left.fetch_add(1, Ordering::Relaxed);
                its.ring();
            }
            drop(members);
            let inbox = pair.inbox.get().expect("the parcel is its own");
            assert!(inbox.free.push(parcel).is_ok(), "it has room for all");
        }
    }

    /// The client of a port is gone.
    pub(crate) fn reset(&self, port: &Port) {
        for pair in &port.pairs {
            pair.sent.store(false, Ordering::Relaxed);
            self.lose(pair);
        }
    }

    /// Its client is here and has negotiated, or is gone. What was learned behind it is forgotten.
    /// The number after which a channel has heard of it.
    pub(crate) fn set(&self, port: &Port, spec: Option<PortSpec>, mirror: Option<&str>) -> u64 {
        let mut members = self.members();
        let revision = self.version.fetch_add(1, Ordering::AcqRel);
        if let Some(member) = &mut members.ports[usize::from(port.id.0)] {
            (member.spec, member.revision) = (spec, revision);
            member.mirror = mirror.map(str::to_owned);
        }
        revision + 1
    }

    /// Others hear that a station is behind this port now: that it is there (RARP), without a tag, at once; and with which addresses as soon as channels that know
    /// them look, in all VLANs. An address that the port may not use is nobody's concern.
    pub(crate) fn announce(&self, port: &Port, station: Mac) {
        let vid = {
            let members = self.members();
            let Some(spec) = members.spec(port.id) else { return };
            let may = spec.guard.macs.is_empty() || spec.guard.macs.contains(&station);
            if !may || station.is_group() {
                return;
            }
            spec.pvid
        };
        let to = port.id;
        {
            let mut moved = self.moved();
            moved.retain(|one| one.station != station);
            if moved.len() == MOVED_MAX {
                moved.pop_front();
            }
            let since_ns = clock::to_ns(clock::ticks());
            moved.push_back(Moved { station, to, since_ns, asked: Vec::new(), said: Vec::new() });
        }
        self.version.fetch_add(1, Ordering::AcqRel);
        let there = vid.map(|vid| Announcement { station, vid, claim: None });
        self.say(to, there.as_slice());
        // Who is rung looks at what has changed.
        let ports: Vec<Arc<Port>> = {
            let members = self.members();
            members.ports.iter().flatten().map(|member| Arc::clone(&member.port)).collect()
        };
        let pairs = ports.iter().flat_map(|port| &port.pairs);
        pairs.filter(|pair| pair.open.load(Ordering::Relaxed)).for_each(Pair::ring);
    }

    fn moved(&self) -> MutexGuard<'_, VecDeque<Moved>> {
        self.moved.lock().expect("a panic ends the process")
    }

    /// A channel says what it knows of stations that have moved, and others have not said.
    pub(crate) fn say_moved(&self, now_ns: u64, channel: u32, switch: &Switch) {
        let mut moved = self.moved();
        moved.retain(|one| now_ns.saturating_sub(one.since_ns) < MOVED_NS);
        for one in moved.iter_mut().filter(|one| !one.asked.contains(&channel)) {
            one.asked.push(channel);
            let mut new = switch.announcements_of(one.station, one.to);
            new.retain(|announcement| !one.said.contains(announcement));
            self.say(one.to, &new);
            one.said.extend(new);
        }
    }

    /// Others hear this of stations as if they had sent it by that port: each channel's switch, and all ports of the VLAN. Who has no room for it learns it from a
    /// frame.
    pub(crate) fn say(&self, from: PortId, announcements: &[Announcement]) {
        let members = self.members();
        let Some(spec) = members.spec(from) else { return };
        for announcement in announcements {
            let Announcement { station, vid, claim } = *announcement;
            let news = News::Station(Sighting { mac: station, vid, port: from, claim });
            for channel in members.listeners.iter().filter_map(|(_, ear)| ear.upgrade()) {
                channel.tell(news);
            }
            let mut room = [0; ANNOUNCEMENT_BYTES];
            let bytes = announcement.frame(&mut room);
            let view = View::new(bytes, bytes.len()).expect("it is a frame");
            let (offload, number) = (Offload::None { valid: false }, 0);
            for member in members.ports.iter().flatten().filter(|it| it.port.id != from) {
                let reaches = member.spec.as_ref().and_then(|to| spec.reaches(to, vid));
                let Some(edit) = reaches else { continue };
                let is_open = |pair: &&Pair| pair.open.load(Ordering::Relaxed);
                let Some(pair) = member.port.pairs.iter().find(is_open) else { continue };
                let egress = Egress { port: member.port.id, edit, mirror: false };
                // All of it is in what was looked at.
                let source = Source { bufs: &[], skip: 0 };
                let frame = Frame { from, view, source, offload, egress, number };
                if put(pair, &frame, 0, |parcel| parcel.number = 0).is_ok() {
                    pair.ring();
                }
            }
        }
    }

    /// The ports now, by number, and who else is to hear what a channel learns.
    pub(crate) fn look(&self, channel: u32) -> (Vec<Option<Entry>>, Vec<Arc<Ear>>) {
        let mut members = self.members();
        members.listeners.retain(|(_, ear)| ear.strong_count() > 0);
        let entry = |member: &Member| {
            let Member { port, spec, mirror, revision } = member;
            let mirror = mirror.as_deref().and_then(|name| members.named(name));
            let spec = spec.clone().map(|spec| PortSpec { mirror, ..spec });
            Entry { port: Arc::clone(port), spec, revision: *revision }
        };
        let ports = members.ports.iter().map(|member| member.as_ref().map(entry)).collect();
        let others = members.listeners.iter().filter(|(other, _)| *other != channel);
        (ports, others.filter_map(|(_, ear)| ear.upgrade()).collect())
    }

    /// A channel has queues of the network from now on, for as long as it keeps what it gets: what others have learned.
    pub(crate) fn listen(&self, channel: u32) -> Arc<Ear> {
        let ear = Arc::new(Ear::new());
        self.members().listeners.push((channel, Arc::downgrade(&ear)));
        self.version.fetch_add(1, Ordering::AcqRel);
        ear
    }
}

/// An adapter in its network.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) id: PortId,
    /// Of its adapter or uplink.
    name: String,
    pub(crate) pairs: Box<[Pair]>,
    /// Of an aggregated uplink.
    pub(crate) bundle: Option<Bundle>,
    /// It passes frames until then, in nanoseconds of [`clock::boot_ns`]; or for ever. Channels look at it with each batch of frames.
    pub(crate) until_ns: AtomicU64,
    /// Of an uplink: what is asked of the world outside.
    pub(crate) asks: Asks,
    network: Weak<Network>,
}

/// Whose the pairs of an aggregated uplink are, and which of its members are up.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) how: Aggregation,
    /// The pairs of each member.
    pub(crate) members: Box<[Range<u16>]>,
    pub(crate) up: AtomicU64,
    /// Members whose interface is not there any more, until somebody looks.
    pub(crate) gone: AtomicU64,
    /// How often it is still said again which stations are here.
    pub(crate) again: AtomicU64,
}

impl Bundle {
    pub(crate) fn up(&self) -> Links {
        Links(self.up.load(Acquire))
    }

    fn chosen(&self, view: &View<'_>) -> Option<Range<u16>> {
        let chosen = self.up().chosen(self.how, view)?;
        self.members.get(usize::from(chosen)).cloned()
    }

    fn member_of(&self, pair: u16) -> Option<u16> {
        self.members.iter().position(|pairs| pairs.contains(&pair)).map(|member| member as u16)
    }

    fn takes(&self, pair: u16) -> bool {
        self.member_of(pair).is_some_and(|member| self.up().takes(self.how, member))
    }

    /// The interface behind a pair is gone.
    #[cold]
    pub(crate) fn lose(&self, pair: u16) {
        if let Some(member) = self.member_of(pair) {
            self.gone.fetch_or(1 << member, Release);
        }
    }
}

/// A question that an uplink asks, beside all networks, and what was heard.
#[derive(Debug, Default)]
pub(crate) struct Asks {
    /// 0: nobody is asked. Who sees a new one with the station of before takes an answer for somebody else's, once.
    address: AtomicU32,
    station: AtomicU64,
    /// Frames that said that the address is there.
    pub(crate) heard: AtomicU64,
}

impl Asks {
    pub(crate) fn set(&self, question: Option<Question>) {
        let [a, b, c, d, e, f] = question.map_or([0; 6], |asks| asks.station.0);
        self.station.store(u64::from_be_bytes([0, 0, a, b, c, d, e, f]), Release);
        self.address.store(question.map_or(0, |asks| asks.address.to_bits()), Release);
    }

    #[inline]
    pub(crate) fn question(&self) -> Option<Question> {
        match self.address.load(Acquire) {
            0 => None,
            address => {
                let [_, _, station @ ..] = self.station.load(Acquire).to_be_bytes();
                Some(Question { station: Mac(station), address: address.into() })
            }
        }
    }
}

impl Port {
    /// The pairs by which a frame may leave; none: it cannot.
    #[inline]
    pub(crate) fn pairs_for(&self, view: &View<'_>) -> Option<Range<u16>> {
        match &self.bundle {
            None => Some(0..self.pairs.len() as u16),
            Some(bundle) => bundle.chosen(view),
        }
    }

    /// Whether frames of one sender may leave by different members.
    pub(crate) fn goes_by_flow(&self) -> bool {
        self.bundle.as_ref().is_some_and(|bundle| bundle.how == Aggregation::Hash)
    }

    /// Whether what comes by a pair is taken.
    #[inline]
    pub(crate) fn takes(&self, pair: u16) -> bool {
        self.bundle.as_ref().is_none_or(|bundle| bundle.takes(pair))
    }

    /// The pair by which an uplink says what it has to say itself.
    pub(crate) fn speaks_by(&self) -> Option<&Pair> {
        let first = match &self.bundle {
            None => 0,
            Some(bundle) => bundle.members[usize::from(bundle.up().first()?)].start,
        };
        self.pairs.get(usize::from(first))
    }

    /// Those of a place look again whether there is room in an inbox of this port.
    #[cold]
    pub(crate) fn ring_sender(&self, place: u32) {
        if let Some(network) = self.network.upgrade() {
            network.bells.ring(place);
        }
    }
}

/// No deadline.
pub(crate) const FOR_EVER: u64 = u64::MAX;

impl Drop for Port {
    /// Nobody can put a frame into its inboxes any more, and nobody will take those out that are there.
    fn drop(&mut self) {
        if let Some(network) = self.network.upgrade() {
            self.pairs.iter().for_each(|pair| network.lose(pair));
        }
    }
}

/// A pair of queues, as others see it.
#[derive(Default)]
pub(crate) struct Pair {
    inbox: OnceLock<Arc<Inbox>>,
    /// The client uses its RX queue, which may be on its way between channels.
    pub(crate) open: AtomicBool,
    /// The driver has sent by its TX queue: it uses the pair (clause 5.1.6.5.5). Or it is of an uplink, whose descriptors take frames at any time.
    pub(crate) sent: AtomicBool,
    /// Frames that this client had sent and that waited for another, who has gone; they were not counted yet.
    pub(crate) left: AtomicU64,
    /// The same of copies for who watches.
    pub(crate) left_copies: AtomicU64,
    /// The channel of the RX queue knows that there is something in the inbox.
    pub(crate) rung: AtomicBool,
    /// It waits for buffers.
    pub(crate) starved: AtomicBool,
    /// Those who wait for room in the inbox.
    pub(crate) waiters: Waiters,
    /// One of them has waited in vain since the queue has taken something, or had room.
    pub(crate) stands_still: AtomicBool,
    /// Of an uplink: the version of the network by which everything was judged that is on its way to the kernel or will be.
    pub(crate) settled: AtomicU64,
    /// Of an uplink: VLANs whose stations are to be announced.
    pub(crate) announce: Mutex<Vec<Vid>>,
    /// Of an uplink: its question is to be asked.
    pub(crate) ask: AtomicBool,
    /// Of an uplink with `accounting`: where its channel counts.
    pub(crate) tallies: Mutex<Option<Arc<Tallies>>>,
    /// To whom it sends.
    pub(crate) talks: Talks,
    bell: Mutex<Option<Wake>>,
    /// The parcel at hand, while the queue is between channels.
    kept: Mutex<Option<Box<Parcel>>>,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("open", &self.open).finish_non_exhaustive()
    }
}

/// Frames on their way to an RX queue. All parcels are its own, so that nobody else runs out of them.
pub(crate) struct Inbox {
    pub(crate) free: ArrayQueue<Box<Parcel>>,
    pub(crate) full: ArrayQueue<Box<Parcel>>,
    _memory: Lasting,
}

/// A frame on its way, as it came from its sender.
#[derive(Debug)]
pub(crate) struct Parcel {
    head: [u8; HEAD_BYTES],
    memory: IoBuf,
    pub(crate) len: usize,
    from: PortId,
    offload: Offload,
    egress: Egress,
    /// Of what it is cut into, so many have arrived.
    pub(crate) arrived: usize,
    /// Its number, if frames were traced when it came; else that of some other.
    pub(crate) number: u64,
}

impl Parcel {
    /// Packs a frame. What was judged is what arrives.
    pub(crate) fn pack(&mut self, frame: &Frame<'_>) {
        let Frame { from, view, source, offload, egress, .. } = frame;
        (self.from, self.offload, self.egress) = (*from, *offload, *egress);
        let head = view.head();
        self.head[..head.len()].copy_from_slice(head);
        self.len = view.len();
        // There as well: of what is cut, the head is its headers alone.
        self.memory.write(0, head);
        let rest = head.len()..view.len();
        let memory = [self.memory];
        source.copy(rest, &mut Place::new(&memory, head.len()), None);
    }

    /// The frame in it.
    pub(crate) fn frame(&self) -> Frame<'_> {
        let Parcel { from, offload, egress, number, .. } = *self;
        let view = View::new(&self.head, self.len).expect("it was looked at before");
        let source = Source { bufs: std::slice::from_ref(&self.memory), skip: 0 };
        Frame { from, view, source, offload, egress, number }
    }
}

impl Pair {
    /// Makes room for frames. Called before a channel has the RX queue for the first time.
    pub(crate) fn make_inbox(&self) -> Result<(), String> {
        if self.inbox.get().is_some() {
            return Ok(());
        }
        let memory =
            Lasting::new(INBOX_FRAMES * PARCEL_BYTES).map_err(|error| error.to_string())?;
        let buf = memory.buf(0, memory.len()).expect("it is so long");
        let free = ArrayQueue::new(INBOX_FRAMES);
        for index in 0..INBOX_FRAMES {
            let parcel = Parcel {
                head: [0; HEAD_BYTES],
                memory: buf.slice(index * PARCEL_BYTES, PARCEL_BYTES),
                len: 0,
                from: PortId(0),
                offload: Offload::None { valid: false },
                egress: Egress { port: PortId(0), edit: switch::TagEdit::Keep, mirror: false },
                arrived: 0,
                number: 0,
            };
            assert!(free.push(Box::new(parcel)).is_ok(), "it has room for all");
        }
        let full = ArrayQueue::new(INBOX_FRAMES);
        let _ = self.inbox.set(Arc::new(Inbox { free, full, _memory: memory }));
        Ok(())
    }

    /// The parcel at hand, while the queue is between channels.
    pub(crate) fn kept(&self) -> MutexGuard<'_, Option<Box<Parcel>>> {
        self.kept.lock().expect("a panic ends the process")
    }

    /// Frames on their way; none before it has run.
    pub(crate) fn inbox(&self) -> Option<&Arc<Inbox>> {
        self.inbox.get()
    }

    /// Its channel has the queue from now on. What came while it was nowhere waits for a look.
    pub(crate) fn opened(&self, wake: Wake) {
        wake();
        self.rung.store(true, Ordering::SeqCst);
        self.set_bell(Some(wake));
    }

    /// Its queue has looked, and took something or nothing. One that could take nothing, and has no room, goes on standing still: an uplink whose interface takes no frames looks for other reasons all the while.
    pub(crate) fn goes_on(&self, took: bool) {
        let has_room = || self.inbox().is_some_and(|inbox| !inbox.free.is_empty());
        if self.stands_still.load(Relaxed) && (took || has_room()) {
            self.stands_still.store(false, Relaxed);
        }
    }

    /// Who is to be woken when something comes.
    pub(crate) fn set_bell(&self, wake: Option<Wake>) {
        *self.bell.lock().expect("a panic ends the process") = wake;
    }

    /// Something has come. Only who finds that the bell was not rung rings it, so its lock is taken once for many frames.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst)
            && let Some(wake) = &*self.bell.lock().expect("a panic ends the process")
        {
            wake();
        }
    }
}
