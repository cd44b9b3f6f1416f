//! Failover of a shared Ethernet adapter: a thread that carries out what [`switch::failover`] says.
//!
//! ```text
//!   control file ── tokens, beacons ──► Driver ── Machine ──► UplinkPort: which VLANs are in standby, until when
//!   or leases in etcd ─────────────────►  │
//!   the link's carrier ───────────────►   │
//!   UplinkPort: answers of netaddr ───►   │
//!                                         └─► FailoverStatus, for who asks
//! ```
//!
//! The thread waits for nobody but its clock and who wakes it: what could hang is another thread's, and it hears of the carrier. If it is stopped, VLANs
//! stay as they are and their tokens where they are.
//!
//! What is left to others: the file's folder, and that nobody removes the file. One that was removed is no token any more: nothing is bridged until it is
//! made again, and until that is noticed, within one beat, the other may bridge as well.

mod control;
mod lease;

use std::collections::BTreeSet;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use control::{Control, Heard};
use device_net::UplinkPort;
use lease::Lease;
use protocol::message::{FailoverStatus, UplinkSpec};
use protocol::opener::Interface;
use spec::{FailoverMode, FailoverSpec};
use switch::failover::{
    Act, Beacon, Cause, Event, Failback, Machine, Mode, Settings, State, VidSet,
};
use switch::{Mac, Question, Reach, Vid};

use crate::carrier::{Carrier, Carriers, Watch};
use crate::lock::locked;
use crate::outside::Outside;

/// Between two beacons.
const BEAT: Duration = Duration::from_millis(100);
/// While something is on its way that another server may carry afterwards.
const LOOK: Duration = Duration::from_millis(1);
/// Beats between two questions for an address outside.
const ASK_EVERY: u32 = 10;

/// The failover of one uplink.
pub(crate) struct Failover {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Place>>,
    carriers: Carriers,
    watch: Mutex<Option<Watch>>,
}

struct Shared {
    next: Mutex<Next>,
    wake: Condvar,
    status: Mutex<FailoverStatus>,
    link_up: AtomicBool,
    /// Whose carrier matters; none: that of the uplink's members is known anyway.
    link: Mutex<Option<Interface>>,
}

#[derive(Default)]
struct Next {
    spec: Option<UplinkSpec>,
    stop: bool,
    /// The link has changed.
    look: bool,
}

/// The tokens of an uplink that is stopped: whoever drops it says that nothing of the uplink is on its way any more.
#[must_use]
pub(crate) struct Tokens(#[expect(dead_code, reason = "it is kept for its locks")] Option<Place>);

/// What the partners share.
enum Place {
    File(Control),
    Etcd(Lease),
}

impl Place {
    fn open(outside: &Arc<Outside>, failover: &FailoverSpec) -> io::Result<Place> {
        match failover.lease() {
            Some(place) => Lease::open(outside, place).map(Place::Etcd),
            None => Control::open(outside.as_ref(), &failover.control).map(Place::File),
        }
    }

    fn is_removed(&self) -> bool {
        matches!(self, Place::File(control) if control.is_removed())
    }

    fn take(&mut self, vids: &VidSet) -> VidSet {
        match self {
            Place::File(control) => control.take(vids),
            Place::Etcd(lease) => lease.take(vids),
        }
    }

    fn give_back(&mut self, vids: &VidSet) {
        match self {
            Place::File(control) => control.give_back(vids),
            Place::Etcd(lease) => lease.give_back(vids),
        }
    }

    fn say(&mut self, beacon: &Beacon) {
        match self {
            Place::File(control) => control.say(beacon),
            Place::Etcd(lease) => lease.say(beacon),
        }
    }

    fn hear(&mut self) -> Heard {
        match self {
            Place::File(control) => control.hear(),
            Place::Etcd(lease) => lease.hear(),
        }
    }
}

/// The VLANs of an uplink.
fn vlans(spec: &UplinkSpec) -> BTreeSet<Vid> {
    spec.vids.iter().chain([&spec.pvid]).copied().filter_map(Vid::new).collect()
}

/// Of an uplink that takes part in failover, until it has tokens.
pub(crate) fn standby(spec: &UplinkSpec) -> BTreeSet<Vid> {
    if spec.failover.is_some() { vlans(spec) } else { BTreeSet::new() }
}

fn settings(spec: &UplinkSpec, failover: &FailoverSpec) -> Settings {
    let mode = match failover.mode {
        FailoverMode::Disabled => Mode::Disabled,
        FailoverMode::Auto => Mode::Auto,
        FailoverMode::Standby => Mode::Standby,
        FailoverMode::Sharing => Mode::Sharing,
    };
    let left = |vid: Vid| u16::from(failover.leaves.contains(&vid.get()));
    let vlans = vlans(spec).into_iter().map(|vid| (vid, left(vid))).collect();
    let failback = match failover.failback {
        spec::Failback::AtOnce => Failback::AtOnce,
        spec::Failback::After(_) => Failback::Delayed,
        spec::Failback::Never => Failback::ByHand,
    };
    Settings { mode, priority: failover.priority, failback, vlans }
}

/// The interface whose carrier matters, beside those of the members of an aggregated uplink.
fn link(spec: &UplinkSpec, failover: &FailoverSpec) -> Option<Interface> {
    let name = Some(&failover.link).filter(|name| !name.is_empty());
    name.map(|name| Interface { name: name.clone(), ..Interface::of(spec) })
}

impl Failover {
    /// Begins, with nothing bridged.
    pub(crate) fn start(
        (outside, carriers): (&Arc<Outside>, &Carriers),
        spec: &UplinkSpec,
        failover: &FailoverSpec,
        port: Arc<UplinkPort>,
    ) -> io::Result<Failover> {
        let place = Place::open(outside, failover)?;
        let identity = memory::random::mix(memory::clock::ticks() ^ u64::from(std::process::id()));
        let mut machine = Machine::new(identity, settings(spec, failover));
        let mut asks = Asks { station: station(identity), ..Asks::default() };
        if failover.netaddr.is_some() {
            (asks.address, asks.reach) = (failover.netaddr, Reach::unknown());
            let acts = machine.step(Event::Reaches(false));
            debug_assert!(acts.is_empty(), "it has nothing yet");
        }
        let shared = Arc::new(Shared {
            next: Mutex::default(),
            wake: Condvar::new(),
            status: Mutex::default(),
            link_up: AtomicBool::new(true),
            link: Mutex::new(link(spec, failover)),
        });
        let driver = Driver {
            shared: Arc::clone(&shared),
            outside: Arc::clone(outside),
            spec: spec.clone(),
            port,
            place,
            machine,
            closing: None,
            link_up: true,
            until_ns: 0,
            asks,
            waits_since: None,
            takeovers: 0,
            since: (None, 0),
        };
        let watch = Mutex::new(watch(&shared, carriers)?);
        let thread = std::thread::Builder::new().name("failover".into());
        let thread = Some(thread.spawn(move || driver.run())?);
        Ok(Failover { shared, thread, carriers: carriers.clone(), watch })
    }

    /// It is configured anew. Its control file stays.
    pub(crate) fn set(&self, spec: &UplinkSpec) {
        if let Some(failover) = &spec.failover {
            self.look_at(link(spec, failover));
        }
        locked(&self.shared.next).spec = Some(spec.clone());
        self.shared.wake.notify_all();
    }

    /// Where the system has no thread for another link, that of before is looked at.
    fn look_at(&self, link: Option<Interface>) {
        let before = std::mem::replace(&mut *locked(&self.shared.link), link.clone());
        if before == link {
            return;
        }
        match watch(&self.shared, &self.carriers) {
            Ok(watch) => *locked(&self.watch) = watch,
            Err(_) => *locked(&self.shared.link) = before,
        }
    }

    pub(crate) fn status(&self) -> FailoverStatus {
        locked(&self.shared.status).clone()
    }

    /// Ends the thread. What is bridged goes on being bridged, and the tokens stay taken until they are dropped.
    pub(crate) fn stop(mut self) -> Tokens {
        locked(&self.shared.next).stop = true;
        self.shared.wake.notify_all();
        Tokens(self.thread.take().map(|thread| thread.join().expect("a panic ends the process")))
    }
}

/// Keeps what is known of the link's carrier new; where no link matters, all is well.
fn watch(shared: &Arc<Shared>, carriers: &Carriers) -> io::Result<Option<Watch>> {
    let Some(link) = locked(&shared.link).clone() else {
        shared.link_up.store(true, Relaxed);
        return Ok(None);
    };
    let (weak, its) = (Arc::downgrade(shared), link.clone());
    let told = move |carrier| {
        let Some(shared) = weak.upgrade() else { return };
        // Another one may matter by now.
        let matters = locked(&shared.link);
        if matters.as_ref() != Some(&its) {
            return;
        }
        let up = carrier == Carrier::Up;
        if shared.link_up.swap(up, Relaxed) != up {
            locked(&shared.next).look = true;
            shared.wake.notify_all();
        }
    };
    carriers.watch(link, told).map(Some)
}

/// What is known of the address that is asked for.
#[derive(Default)]
struct Asks {
    station: Mac,
    address: Option<Ipv4Addr>,
    reach: Reach,
    /// Beats until it is asked for again.
    left: u32,
    /// How often it was heard when it was asked for last; none: it was not yet.
    heard: Option<u64>,
}

/// Who asks: an address that no station has, and the partner neither.
fn station(identity: u64) -> Mac {
    let [first, rest @ ..] = identity.to_le_bytes();
    let [second, third, fourth, fifth, sixth, ..] = rest;
    // Given locally, of a station and not of a group.
    Mac([first & 0xfc | 2, second, third, fourth, fifth, sixth])
}

/// What the thread has.
struct Driver {
    shared: Arc<Shared>,
    outside: Arc<Outside>,
    spec: UplinkSpec,
    port: Arc<UplinkPort>,
    place: Place,
    machine: Machine,
    /// What the port has to have heard of, for VLANs that are being closed.
    closing: Option<u64>,
    link_up: bool,
    /// How long channels were told that they may go on.
    until_ns: u64,
    asks: Asks,
    /// Since when the machine waits before it takes the bridge back.
    waits_since: Option<Instant>,
    takeovers: u64,
    /// The state that was told last, and when it began, in milliseconds since 1970.
    since: (Option<State>, u64),
}

impl Driver {
    fn run(mut self) -> Place {
        let mut beat = Instant::now();
        loop {
            let left = beat.saturating_duration_since(Instant::now());
            let wait = if self.closing.is_some() { LOOK.min(left) } else { left };
            let Next { spec, stop, look: _ } = self.wait(wait);
            if stop {
                return self.place;
            }
            if let Some(spec) = spec {
                self.configure(spec);
            }
            // Without a token's file there is no token.
            let removed = self.place.is_removed();
            let link = self.shared.link_up.load(Relaxed) && self.port.has_link();
            let up = link && !removed;
            if up != self.link_up {
                self.link_up = up;
                self.step(Event::Link(up));
            }
            self.look_at_lease();
            if self.closing.is_some_and(|since| self.port.is_quiet(since)) {
                self.closing = None;
                self.step(Event::Quiet);
            }
            if Instant::now() >= beat {
                beat = Instant::now() + BEAT;
                if removed && self.closing.is_none() {
                    self.open_again();
                }
                self.beat();
            }
            self.tell();
        }
    }

    fn wait(&self, wait: Duration) -> Next {
        let next = locked(&self.shared.next);
        let idle = |next: &mut Next| next.spec.is_none() && !next.stop && !next.look;
        let waited = self.shared.wake.wait_timeout_while(next, wait, idle);
        let (mut next, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *next)
    }

    fn configure(&mut self, spec: UplinkSpec) {
        self.spec = spec;
        if let Some(failover) = &self.spec.failover {
            let settings = settings(&self.spec, failover);
            self.step(Event::Settings(settings));
        }
        self.show();
    }

    /// What was lost is closed, and only when that is true everywhere do channels hear how long they may go on.
    fn look_at_lease(&mut self) {
        let Place::Etcd(lease) = &mut self.place else { return };
        let (lost, until_ns) = (lease.lost(), lease.until_ns());
        if !lost.is_empty() {
            self.step(Event::Lost(lost));
        }
        if self.closing.is_none() && until_ns != self.until_ns {
            self.until_ns = until_ns;
            self.port.pass_until(until_ns);
        }
    }

    /// Another file has its path, or none.
    fn open_again(&mut self) {
        let Some(failover) = &self.spec.failover else { return };
        match Place::open(&self.outside, failover) {
            Ok(place) => self.place = place,
            Err(error) => {
                let (sea, path) = (&failover.sea, failover.control.display());
                tracing::warn!("{sea}: the control file {path} cannot be opened again: {error}");
            }
        }
    }

    /// Asks for the address outside, and takes in whether it has answered since it was asked for last.
    fn ask(&mut self) {
        let address = self.spec.failover.as_ref().and_then(|failover| failover.netaddr);
        let Asks { station, address: before, .. } = self.asks;
        if address != before {
            // Not as at the start: one that bridges does not let go of it to try an address.
            self.asks = Asks { station, address, ..Asks::default() };
            self.port.ask(None);
            self.step(Event::Reaches(true));
        }
        let Some(address) = address else { return };
        let asks = &mut self.asks;
        if asks.left > 0 {
            asks.left -= 1;
            return;
        }
        asks.left = ASK_EVERY - 1;
        let heard = self.port.heard();
        let before = asks.heard.replace(heard);
        let reaches = before.map(|before| asks.reach.asked(heard != before));
        self.port.ask(Some(Question { station, address }));
        if let Some(reaches) = reaches {
            self.step(Event::Reaches(reaches));
        }
    }

    fn beat(&mut self) {
        self.ask();
        match self.place.hear() {
            Heard::Beacon(beacon) => self.step(Event::Heard(beacon)),
            Heard::Nobody if self.machine.hears().is_some() => self.step(Event::Gone),
            Heard::Nobody | Heard::Nothing => {}
        }
        self.look_at_wait();
        self.step(Event::Beat);
    }

    /// A wait before the bridge goes back has its time; a pause of it begins it anew.
    fn look_at_wait(&mut self) {
        let failback = self.spec.failover.as_ref().map(|failover| failover.failback);
        let (Some(spec::Failback::After(seconds)), Some(Failback::Delayed)) =
            (failback, self.machine.waits())
        else {
            self.waits_since = None;
            return;
        };
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= Duration::from_secs(seconds.into()) {
            self.step(Event::Waited);
        }
    }

    fn step(&mut self, event: Event) {
        for act in self.machine.step(event) {
            match act {
                Act::Take(vids) => {
                    let got = self.place.take(&vids);
                    self.step(Event::Got(got));
                }
                Act::Open(vids) => {
                    self.takeovers += 1;
                    self.show();
                    self.port.announce(vids);
                }
                Act::Close(_) => self.closing = Some(self.show()),
                Act::GiveBack(vids) => self.place.give_back(&vids),
                Act::Say(beacon) => self.place.say(&beacon),
            }
        }
    }

    /// The port bridges what is open.
    fn show(&self) -> u64 {
        self.port.show(&self.spec, &(&vlans(&self.spec) - self.machine.open()))
    }

    fn tell(&mut self) {
        let (state, cause) = self.machine.state();
        if self.since.0 != Some(state) {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            self.since = (Some(state), u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
            let sea = self.spec.failover.as_ref().map_or("", |failover| failover.sea.as_str());
            tracing::info!("{sea}: {}: {}", state.word(), cause.word());
        }
        let trouble = match &self.place {
            Place::File(control) => control.is_removed().then_some("the control file was removed"),
            Place::Etcd(lease) if [Cause::TokenTaken, Cause::Yielding].contains(&cause) => {
                lease.trouble()
            }
            Place::Etcd(_) => None,
        };
        let reason = trouble.unwrap_or(cause.word());
        let heard = self.machine.hears();
        *locked(&self.shared.status) = FailoverStatus {
            state: state.word().to_owned(),
            reason: reason.to_owned(),
            partner: heard.map(|(mode, priority)| format!("{} {priority}", mode.word())),
            bridges: self.machine.open().iter().map(|vid| vid.get()).collect(),
            takeovers: self.takeovers,
            since_ms: self.since.1,
            answers: self.asks.address.map(|_| self.asks.reach.answers()),
        };
    }
}
