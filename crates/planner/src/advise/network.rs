//! Ethernet adapters: links, speeds, the negotiation with the switch, packets that find no buffer, resets; and the queues
//! of a shared adapter.
//!
//! An adapter is judged where it carries something: a member of an aggregation or of a shared adapter, or one that moved
//! packets. A spare port without a cable is no fault. Counters are judged by growth, as everywhere.

mod backup;
mod checksums;
mod errors;
mod lacp;
mod members;
mod transmit;
mod unbridged;
mod vlans;

use std::collections::BTreeMap;

use super::change::Change;
use super::finding::{Draft, Severity};
use super::measure::{Counter, Waits, by_time, seconds_between, waits, waits_from};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::sea_pair;
use super::thresholds::{
    BUFFER_LIMITS, GROWTH_SHARE, LOST_LONG_SECONDS, LOST_PER_SECOND, LOST_PER_SECOND_LONG,
    LOST_SHARE, MANY_LEAST, RESETS_GROWTH, RESETS_ONCE, SHOWN_SHARE,
};
use super::view::{Role, View, as_f64, shown};
use crate::capture::{At, Buffers, Entstat, Ethernet, Report, VirtualEthernet};
use crate::trace::number;

/// One adapter of one system, in every report that shows it.
pub(super) struct Wire<'a> {
    pub(super) host: usize,
    pub(super) name: &'a str,
    /// In the order of time.
    samples: Vec<&'a Ethernet>,
    /// The report of the last one.
    run: &'a Entstat,
    /// The report of the one before.
    before: Option<&'a Entstat>,
}

impl<'a> Wire<'a> {
    fn last(&self) -> &'a Ethernet {
        // There is one by construction; the first is as good.
        self.samples.last().copied().unwrap_or(self.samples[0])
    }

    /// Whether it is a virtual adapter; without `-d` or `-all` its type alone says so.
    fn is_virtual(&self) -> bool {
        let last = self.last();
        let kind = last.device_type.as_ref().map_or("", |read| &read.value);
        last.virtual_adapter.is_some() || kind.starts_with("Virtual I/O Ethernet")
    }

    /// A shared adapter or an aggregation, which have counters of their members.
    fn is_made_of_others(&self) -> bool {
        let kind = self.last().device_type.as_ref().map_or("", |read| &read.value);
        self.last().aggregation.is_some()
            || ["Shared Ethernet", "Link Aggregation", "EtherChannel", "VLAN"]
                .iter()
                .any(|word| kind.contains(word))
    }

    fn is_physical(&self) -> bool {
        !self.is_virtual() && !self.is_made_of_others()
    }

    /// The aggregation that it is a member of.
    fn aggregation(&self) -> Option<&'a Ethernet> {
        let member = |of: &&Ethernet| {
            of.aggregation
                .as_ref()
                .is_some_and(|of| of.members.iter().any(|name| name == self.name))
        };
        self.run.adapters.iter().find(member)
    }

    /// Whether no other member of its aggregation has a link, of those that were captured.
    fn is_last_of_its_members(&self, view: &View<'_>) -> bool {
        let Some(of) = self.aggregation().and_then(|of| of.aggregation.as_ref()) else {
            return false;
        };
        let down = |name: &String| {
            let same = |other: &&Wire<'_>| other.host == self.host && other.name == *name;
            view.wires().iter().find(same).is_some_and(|other| other.link_down().is_some())
        };
        of.members.iter().all(down)
    }

    /// Whether something hangs on it.
    fn is_used(&self) -> bool {
        let real = self.run.sea.as_ref().and_then(|sea| sea.real_adapter.as_ref());
        // A filter may have left it out of the last capture.
        let mut counts = self.samples.iter().rev().filter_map(|one| one.transmitted.packets);
        let sent = counts.next().is_some_and(|read| read.value > 0);
        self.aggregation().is_some() || real.is_some_and(|read| read.value == self.name) || sent
    }

    fn link_down(&self) -> Option<At> {
        let link = self.last().link_status.as_ref()?;
        link.value.to_ascii_lowercase().starts_with("down").then_some(link.at)
    }

    fn counter(
        &self,
        read: impl Fn(&Ethernet) -> Option<crate::capture::Read<u64>>,
    ) -> Option<Counter> {
        Counter::over(&self.samples, |adapter| read(adapter))
    }

    fn draft(
        &self,
        view: &View<'_>,
        rule: &'static str,
        severity: Severity,
        title: String,
    ) -> Draft {
        Draft::new(rule, self.host, view.object(self.host, self.name), severity, title)
    }
}

/// Every adapter of every system.
pub(super) fn wires<'a>(view: &View<'a>) -> Vec<Wire<'a>> {
    let mut all: BTreeMap<(usize, &'a str), Vec<Sample<'a>>> = BTreeMap::new();
    for (host, report) in view.reports() {
        let Report::Entstat(run) = report else { continue };
        for adapter in &run.adapters {
            let name = adapter.name.value.as_str();
            all.entry((host, name)).or_default().push((run, adapter));
        }
    }
    let wire = |((host, name), mut samples): ((usize, &'a str), Vec<Sample<'a>>)| {
        in_order(view, &mut samples);
        let (run, rest) = samples.split_last().map(|((run, _), rest)| (*run, rest))?;
        let before = rest.last().map(|(run, _)| *run);
        let samples = samples.into_iter().map(|(_, adapter)| adapter).collect();
        Some(Wire { host, name, samples, run, before })
    };
    all.into_iter().filter_map(wire).collect()
}

pub(super) type Sample<'a> = (&'a Entstat, &'a Ethernet);

/// The order of time.
pub(super) fn in_order(view: &View<'_>, samples: &mut [Sample<'_>]) {
    let age = |(_, adapter): &Sample<'_>| adapter.elapsed_seconds.map(|read| read.value);
    let moved = |(_, adapter): &Sample<'_>| Some(adapter.received.packets.map(|read| read.value));
    by_time(view, samples, |(run, _)| &run.head, age, moved);
}

pub(super) const EVIDENCE: &str = "entstat -all entN of each shared Ethernet adapter, entstat -d entN of a client, twice, some minutes apart";

/// A rule of an adapter: when it applies, and how it judges.
macro_rules! rules {
    ($($name:literal $about:literal $weight:literal $applies:expr, $judge:expr;)*) => {
        &[$(Rule {
            name: $name,
            about: $about,
            on: Kind::Ethernet,
            evidence: EVIDENCE,
            weight: $weight,
            applies: |view, adapter| applies(view, adapter, $applies),
            judge: |view, adapter, out| {
                if let Some(wire) = view.wires().get(adapter.index) {
                    $judge(view, wire, out);
                }
            },
        },)*]
    };
}

pub(super) const RULES: &[Rule] = rules! {
    "net-link-down" "the link of an adapter that is used is down" 1.3
        |wire| wire.is_physical() && wire.is_used() && wire.last().link_status.is_some(), link_down;
    "net-lacp-partner" "a member of an aggregation hears no partner, or another one than the rest" 1.2
        |wire| wire.last().lacp.is_some(), lacp::partner;
    "net-lacp-churn" "a member leaves and joins its aggregation" 1.1
        |wire| wire.last().lacp.is_some(), lacp::churn;
    "net-speed" "a port runs slower than its sisters, or at half duplex" 1.2
        |wire| wire.is_physical() && wire.is_used() && wire.last().speed.is_some(), speed;
    "net-crc" "frames arrive with a wrong checksum" 1.2
        |wire| wire.is_physical() && wire.last().received.crc.is_some(), checksums::judge;
    "net-receive-loss" "a physical adapter loses packets that arrive" 1.0
        |wire| wire.is_physical(), receive_loss;
    "net-receive-errors" "frames arrive broken in another way than by their checksum" 1.1
        |wire| wire.is_physical() && wire.last().received.errors.is_some(), errors::received;
    "net-no-mbuf" "packets are lost because the system has no network memory" 1.1
        |wire| !wire.is_made_of_others() && wire.last().no_mbuf_errors.is_some(), errors::no_mbuf;
    "net-transmit-queue" "a physical adapter's queue overflows with what is to be sent" 1.0
        |wire| wire.is_physical() && wire.last().queue_overflow.is_some(), transmit::judge;
    "net-transmit-errors" "a physical adapter does not get its packets sent" 1.1
        |wire| wire.is_physical(), transmit::errors;
    "net-one-member" "an aggregation sends nearly all over one member" 1.2
        |wire| wire.last().aggregation.is_some(), members::judge;
    "net-virtual-buffers" "a virtual adapter has no receive buffers left" 1.1
        |wire| wire.is_virtual(), virtual_buffers;
    "net-receivers" "packets are lost because their receivers have no buffers" 0.9
        |wire| wire.is_virtual(), receivers;
    "net-vlan" "packets of VLANs that the adapter is not in" 1.0
        |wire| wire.is_virtual() && !is_trunk(wire), vlans::judge;
    "net-resets" "an adapter resets itself again and again" 1.2
        |wire| !wire.is_virtual(), resets;
    "net-backup-ping" "a backup adapter that nothing tells to take over" 0.9
        |wire| wire.is_made_of_others(), backup::judge;
};

/// What the HMC's lists tell of adapters.
pub(super) const OF_LISTS: &[Rule] = &[Rule {
    name: "net-vlan",
    about: "a virtual adapter is alone in its VLAN, which no trunk adapter carries",
    on: Kind::System,
    evidence: "lshwres -r virtualio --rsubtype eth --level lpar -m MACHINE on the HMC",
    weight: 1.0,
    applies: unbridged::applies,
    judge: unbridged::alone,
}];

fn applies(view: &View<'_>, adapter: &Object<'_>, holds: fn(&Wire<'_>) -> bool) -> Applicability {
    Applicability::where_that(view.wires().get(adapter.index).is_some_and(holds))
}

fn is_trunk(wire: &Wire<'_>) -> bool {
    let own = wire.last().virtual_adapter.as_ref();
    own.and_then(|own| own.trunk).is_some_and(|read| read.value)
}

/// The adapters of a report whose link is down, where none has a link.
pub(super) fn without_link(run: &Entstat) -> Vec<&str> {
    let links = run.adapters.iter().filter_map(|adapter| {
        let link = adapter.link_status.as_ref()?;
        Some((adapter.name.value.as_str(), link.value.to_ascii_lowercase().starts_with("down")))
    });
    let (names, down): (Vec<&str>, Vec<bool>) = links.unzip();
    if down.iter().all(|down| *down) { names } else { Vec::new() }
}

fn link_down(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let Some(at) = wire.link_down() else { return };
    let state = wire.run.sea.as_ref().and_then(|sea| sea.failover.as_ref()?.state.as_ref());
    let limbo = state.filter(|state| state.value.contains("LIMBO"));
    // A member that is left would carry it.
    let limbo = limbo.filter(|_| !without_link(wire.run).is_empty());
    let mut draft = wire
        .draft(view, "net-link-down", Severity::Critical, format!("{} has no link", wire.name))
        .see([at]);
    if let Some(of) = wire.aggregation() {
        let of = &of.name.value;
        draft = draft.because(match wire.is_last_of_its_members(view) {
            true => format!("It is a member of {of}, and no member of it has a link: nothing goes over {of}."),
            false => format!("It is a member of {of}: what is left of the aggregation carries everything, and nothing is left behind that."),
        });
    }
    let real = wire.run.sea.as_ref().and_then(|sea| {
        let name = sea.name.as_ref()?;
        let set = view.attribute(wire.host, &name.value, "real_adapter");
        let real = sea.real_adapter.as_ref().map(|real| &*real.value);
        let real = real.or_else(|| set.map(|set| &*set.value));
        real.is_some_and(|real| real == wire.name).then_some(name)
    });
    let backup = state.filter(|state| state.value.starts_with("BACKUP"));
    if let Some(sea) = real {
        let sea = &sea.value;
        draft = draft.because(match backup {
            Some(_) => format!("It is the only way out of {sea}, which is the backup: nothing is lost now, and when the other server is restarted the clients have no network."),
            None => format!("It is the only way out of {sea}."),
        });
        draft = draft.see(backup.map(|state| state.at));
    }
    if let Some(limbo) = limbo {
        draft = draft.see([limbo.at]).because("The shared adapter is in LIMBO: it sees no network and bridges nothing. That follows from the link.");
    }
    out.push(
        draft
            .effect("No command mends it. Look at the cable, the transceiver and the switch port; the link comes back by itself.")
            .harm("None by looking. Before work on the cable make sure that the other side carries the clients.")
            .weigh(0.97, 1.0),
    );
}

/// `10 Gbps Full Duplex`, `1000 Mbps Full Duplex`, `10Gbps` in Mbit/s.
fn megabits(text: &str) -> Option<f64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let value: f64 = text.get(..digits)?.parse().ok()?;
    let unit = text[digits..].trim_start().to_ascii_lowercase();
    match unit.get(..4)? {
        "gbps" => Some(value * 1000.0),
        "mbps" => Some(value),
        _ => None,
    }
}

/// Half duplex is what is left where one side negotiates and the other is set: both then lose packets under load.
fn half_duplex(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) -> bool {
    let last = wire.last();
    let half = last.speed.as_ref().filter(|read| read.value.to_ascii_lowercase().contains("half"));
    let Some(speed) = half.filter(|_| wire.link_down().is_none()) else { return false };
    let negotiates = last.speed_selected.as_ref().filter(|read| {
        let told = read.value.to_ascii_lowercase();
        told.contains("auto") || told.contains("negotiat")
    });
    let mut draft = wire
        .draft(
            view,
            "net-speed",
            Severity::Warning,
            format!("{} runs at half duplex ({})", wire.name, speed.value),
        )
        .see([speed.at])
        .see(negotiates.map(|read| read.at));
    let collisions = wire.counter(|adapter| adapter.late_collisions);
    if let Some(by) = collisions.and_then(|counter| counter.growth()).filter(|by| *by > 0.0) {
        draft = draft.see(collisions.iter().flat_map(Counter::places)).because(format!(
            "Late collisions, which a link in order does not have, grew by {} between the captures.",
            number(by)
        ));
    }
    let (why, effect) = match negotiates {
        Some(_) => (
            "This side negotiates. Half duplex is what it falls back to where the switch port does not answer, because speed and duplex are set fast there.",
            "No command on this system mends it. Have the switch port negotiate, too.",
        ),
        None => (
            "Half duplex is what is left where one side is set fast and the other negotiates, or where it was set on purpose for equipment that is gone.",
            "Let both sides negotiate: look at media_speed of the adapter and at the switch port.",
        ),
    };
    out.push(
        draft
            .because(why)
            .effect(effect)
            .harm("The link is down for a moment while it negotiates anew.")
            .weigh(0.9, 1.0),
    );
    true
}

/// Whether two adapters carry the two bridges of a pair to the outside: one has to do what the other does.
fn stands_for(view: &View<'_>, one: &Wire<'_>, two: &Wire<'_>) -> bool {
    let carries = |wire: &Wire<'_>, at: usize| {
        let Some(bridge) = view.bridges().get(at) else { return false };
        let carrier = wire.aggregation().map_or(wire.name, |of| of.name.value.as_str());
        bridge.host == wire.host && bridge.real_adapter(view) == Some(carrier)
    };
    view.pairs().iter().any(|(first, second)| {
        carries(one, *first) && carries(two, *second)
            || carries(one, *second) && carries(two, *first)
    })
}

/// Whether two adapters have one name on two VIOS of a pair, which are set up alike.
fn is_twin(view: &View<'_>, one: &Wire<'_>, two: &Wire<'_>) -> bool {
    let of_vios = |wire: &Wire<'_>| view.role(wire.host) == Role::Vios;
    one.name == two.name
        && of_vios(one)
        && of_vios(two)
        && sea_pair::are_partners(view, one.host, two.host)
}

/// A card of 1 Gbit/s that negotiates and arrives at less: of the four pairs of its cable two are left, or the switch port is
/// set.
fn below_gigabit(view: &View<'_>, wire: &Wire<'_>, (own, at): (f64, At), out: &mut Out) {
    let last = wire.last();
    let is_gigabit = last.device_type.as_ref().is_some_and(|read| {
        let kind = read.value.to_ascii_lowercase();
        ["gigabit", "1gbe", "1000 base", "10/100/1000"].iter().any(|name| kind.contains(name))
    });
    let auto = last
        .speed_selected
        .as_ref()
        .filter(|read| read.value.to_ascii_lowercase().starts_with("auto"));
    let Some(auto) = auto.filter(|_| is_gigabit && own <= 100.0 && wire.link_down().is_none())
    else {
        return;
    };
    let title = format!("{} runs at {} Mbit/s and can 1000", wire.name, number(own));
    out.push(
        wire.draft(view, "net-speed", Severity::Warning, title)
            .see([at, auto.at])
            .figure(shown(&format!("speed of {}", wire.name), own, "Mbit/s", at))
            .because("This side negotiates. It ends below a gigabit where a pair of the cable is broken, or where the switch port is set to less.")
            .effect("Look at the cable and at the speed that the switch port is set to. Nothing is to be changed on this system as long as it negotiates.")
            .harm("None by looking.")
            .weigh(0.85, 1.0),
    );
}

fn speed(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    if half_duplex(view, wire, out) {
        return;
    }
    let kind = |adapter: &Ethernet| adapter.device_type.as_ref().map(|read| read.value.clone());
    let read = |adapter: &Ethernet| {
        let speed = adapter.speed.as_ref()?;
        Some((megabits(&speed.value)?, speed.at))
    };
    let Some((own, at)) = read(wire.last()) else { return };
    // Sisters are members of the same aggregation, ports of the same kind on this system, or what the other one of a pair
    // of bridges has in this one's place.
    let sister = |other: &&Wire<'_>| {
        (other.host == wire.host || stands_for(view, wire, other) || is_twin(view, wire, other))
            && (other.host, other.name) != (wire.host, wire.name)
            && other.is_physical()
            && other.is_used()
            && other.link_down().is_none()
            && kind(other.last()).is_some()
            && kind(other.last()) == kind(wire.last())
    };
    let faster = view
        .wires()
        .iter()
        .filter(sister)
        .filter_map(|other| {
            let far = || view.object(other.host, other.name);
            let name = if other.host == wire.host { other.name.to_owned() } else { far() };
            Some((read(other.last())?, name))
        })
        .find(|((speed, _), _)| *speed > own * 1.5);
    let Some(((other, other_at), name)) = faster.filter(|_| wire.link_down().is_none()) else {
        below_gigabit(view, wire, (own, at), out);
        return;
    };
    let mut draft = wire
        .draft(
            view,
            "net-speed",
            Severity::Warning,
            format!(
                "{} runs at {} Mbit/s where {name} runs at {}",
                wire.name,
                number(own),
                number(other)
            ),
        )
        .see([at, other_at])
        .figure(shown(&format!("speed of {}", wire.name), own, "Mbit/s", at))
        .figure(shown(&format!("speed of {name}"), other, "Mbit/s", other_at))
        .because("Both are ports of the same kind.");
    if let Some(of) = wire.aggregation() {
        let of = &of.name.value;
        draft = draft.because(format!(
            "Members of different speed do not aggregate: {of} carries its traffic over the others."
        ));
    }
    out.push(
        draft
            .effect("Look at the cable, the transceiver and the speed that the switch port is set to. Nothing is to be changed on this system as long as it negotiates.")
            .harm("None by looking.")
            .weigh(0.9, 1.0),
    );
}

/// The share of the packets from which a loss is told. Of a busy adapter a small one is many packets a second, each of
/// which a connection waits for.
fn lost_share(wire: &Wire<'_>, counter: &Counter) -> f64 {
    let aged = || wire.counter(|adapter| adapter.elapsed_seconds)?.newest().growth();
    let clocks = wire.before.and_then(|before| seconds_between(&before.head, &wire.run.head));
    let seconds = clocks.or_else(aged).filter(|seconds| *seconds > 0.0);
    let rate = counter.newest().growth().zip(seconds).map(|(lost, seconds)| lost / seconds);
    // A mean over hours hides the bursts that it is of.
    let long = seconds.is_some_and(|seconds| seconds >= LOST_LONG_SECONDS);
    let least = if long { LOST_PER_SECOND_LONG } else { LOST_PER_SECOND };
    if rate.is_some_and(|rate| rate >= least) { LOST_SHARE } else { GROWTH_SHARE }
}

fn receive_loss(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let packets = wire.counter(|adapter| adapter.received.packets);
    type Pick = fn(&Ethernet) -> Option<crate::capture::Read<u64>>;
    let counters: [(&str, Pick); 3] = [
        ("No Resource Errors", |adapter| adapter.received.no_resource),
        ("DMA Overrun", |adapter| adapter.received.dma),
        ("Packets Discarded by Adapter", |adapter| adapter.received.discarded),
    ];
    let found: Vec<_> = counters
        .into_iter()
        .filter_map(|(name, read)| {
            let counter = wire.counter(read)?;
            let least = lost_share(wire, &counter);
            // Where a filter left out the packets, so many a second are a loss of whatever comes in.
            let told = packets.is_some() || least == LOST_SHARE;
            waits_from(name, counter, packets.as_slice(), least).filter(|_| told)
        })
        .collect();
    if found.is_empty() {
        return;
    }
    let title = format!("{} loses packets that arrive", wire.name);
    let mut draft = wire.draft(view, "net-receive-loss", Severity::Warning, title);
    for waits in &found {
        draft = waits.tell(draft);
    }
    let confidence = found.iter().map(|waits| waits.confidence).fold(0.0, f64::max);
    let show = view.show_attributes(wire.host, wire.name);
    out.push(
        draft
            .because("The card has no buffer for them, or the bus is too slow: they are lost before any queue of this system.")
            .effect(format!("Look at the adapter's receive buffers and at its flow control: {show}. The names of the attributes differ by card, so no command is given."))
            .harm("More buffers take memory of this system; the adapter has to be configured again.")
            .weigh(confidence, 1.0),
    );
}

/// Buffers of which all were in use and none was left.
fn exhausted(own: &VirtualEthernet) -> Vec<(&str, u64, At)> {
    own.buffers
        .iter()
        .filter_map(|buffers| {
            let (max, most) = (buffers.max?, buffers.max_allocated?);
            let lowest = buffers.lowest_registered?;
            (most.value >= max.value && lowest.value == 0).then_some((
                buffers.kind.as_str(),
                max.value,
                most.at,
            ))
        })
        .collect()
}

fn lost(wire: &Wire<'_>) -> Option<Waits> {
    let failures = wire.counter(|adapter| adapter.virtual_adapter.as_ref()?.receive_failures);
    let packets = wire.counter(|adapter| adapter.received.packets)?;
    if let Some(failures) = failures {
        // Buffers that were all in use show what is lost for want of them.
        let many = failures.growth().is_some_and(|growth| growth >= MANY_LEAST);
        let in_use = wire.last().virtual_adapter.as_ref().is_some_and(|own| {
            let all = |of: &Buffers| {
                of.max.zip(of.max_allocated).is_some_and(|(max, most)| most.value >= max.value)
            };
            own.buffers.iter().any(all)
        });
        let least = if many && in_use { SHOWN_SHARE } else { GROWTH_SHARE };
        return waits_from("Hypervisor Receive Failures", failures, &[packets], least);
    }
    // Without the driver's part the general one counts them.
    waits("No Resource Errors", wire.counter(|adapter| adapter.received.no_resource)?, &[packets])
}

fn virtual_buffers(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let Some(waits) = lost(wire) else { return };
    let own = wire.last().virtual_adapter.as_ref();
    let exhausted = own.map(exhausted).unwrap_or_default();
    let kinds: Vec<String> = exhausted.iter().map(|(kind, ..)| kind.to_ascii_lowercase()).collect();
    let title = match kinds.is_empty() {
        true => format!("{} loses packets for want of receive buffers", wire.name),
        false => format!("{} has no {} receive buffers left", wire.name, kinds.join(", ")),
    };
    let draft = wire.draft(view, "net-virtual-buffers", Severity::Warning, title);
    let mut draft = waits.tell(draft).see(exhausted.iter().map(|(_, _, at)| *at));
    let mut change = Change::new(view, wire.host, wire.name);
    let mut any = false;
    for (kind, max, at) in &exhausted {
        draft = draft.figure(shown(
            &format!("greatest number of {kind} buffers"),
            as_f64(*max),
            "",
            *at,
        ));
        let limit = BUFFER_LIMITS.iter().find(|(name, ..)| name.eq_ignore_ascii_case(kind));
        let Some((_, attribute, limit)) = limit else { continue };
        let wanted = (max * 2).min(*limit);
        if wanted > *max {
            change = change.set_running(attribute, *max, wanted.to_string());
            any = true;
        }
    }
    if any {
        draft = draft.change(&change);
    }
    out.push(
        draft
            .because("The receiver is this adapter: its buffers are what the hypervisor found empty.")
            .effect("More buffers are held ready for bursts. The change needs the interface down, or a restart.")
            .harm("Buffers take memory of this partition that is pinned.")
            .weigh(waits.confidence, 1.0),
    );
}

/// Whether two virtual adapters can send to each other: one switch, and a VLAN that both are in, as far as both say it.
fn meet(one: &Wire<'_>, two: &Wire<'_>) -> bool {
    let [Some(one), Some(two)] = [one, two].map(|wire| wire.last().virtual_adapter.as_ref()) else {
        return false;
    };
    let switches = one.switch.as_ref().zip(two.switch.as_ref());
    let apart = switches.is_some_and(|(one, two)| one.value != two.value);
    let (mine, theirs) = (super::sea::vlans(one), super::sea::vlans(two));
    let shares = || mine.keys().any(|vlan| theirs.contains_key(vlan));
    !apart && (mine.is_empty() || theirs.is_empty() || shares())
}

fn receivers(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let of = |read: fn(&VirtualEthernet) -> Option<crate::capture::Read<u64>>| {
        wire.counter(|adapter| read(adapter.virtual_adapter.as_ref()?))
    };
    let Some(packets) = wire.counter(|adapter| adapter.transmitted.packets) else { return };
    let found = match (of(|own| own.receiver_failures), of(|own| own.send_failures)) {
        (Some(failures), _) => waits("Receiver Failures", failures, &[packets]),
        // Who does not print the part of them prints the whole.
        (None, Some(failures)) => waits("Hypervisor Send Failures", failures, &[packets]),
        (None, None) => None,
    };
    let Some(waits) = found else { return };
    // The receiver is among the captures: it speaks for itself.
    let near = |host| host == wire.host || view.same_machine(host, wire.host);
    let itself = |other: &Wire<'_>| other.host == wire.host && other.name == wire.name;
    let hears = |other: &&Wire<'_>| !itself(other) && near(other.host) && meet(wire, other);
    if view.wires().iter().filter(hears).any(|other| lost(other).is_some()) {
        return;
    }
    let title = format!("receivers of {} have no buffers", wire.name);
    let draft = wire.draft(view, "net-receivers", Severity::Note, title);
    out.push(
        waits
            .tell(draft)
            .because("What was sent found no buffer at the partition that it was for. The buffers of this adapter have no part in it.")
            .effect("Find the receiver: on the client partitions, `entstat -d entN` shows Hypervisor Receive Failures and which buffers are at their maximum. Raise the buffers there.")
            .harm("None by looking.")
            .weigh(waits.confidence, 0.8),
    );
}

fn resets(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let Some(counter) = wire.counter(|adapter| adapter.reset_count) else { return };
    let (storm, confidence) = match counter.growth() {
        Some(growth) => (growth >= RESETS_GROWTH, 0.95),
        None => (counter.value() >= RESETS_ONCE, 0.6),
    };
    if !storm {
        return;
    }
    let mut draft = wire
        .draft(
            view,
            "net-resets",
            Severity::Critical,
            format!("{} resets itself again and again", wire.name),
        )
        .see(counter.places());
    draft = match counter.growth() {
        Some(growth) => {
            let figure = counter.growth_figure("growth of Adapter Reset Count", "resets");
            figure.into_iter().fold(draft, Draft::figure).because(format!(
                "Adapter Reset Count grew by {} between the captures.",
                number(growth)
            ))
        }
        None => draft
            .figure(shown("Adapter Reset Count", counter.value(), "", counter.last.at))
            .because("One capture cannot show whether it still grows; take a second one."),
    };
    let timeouts = wire.counter(|adapter| adapter.transmitted.timeouts);
    if let Some(timeouts) = timeouts.filter(|timeouts| timeouts.growth().is_some_and(|by| by > 0.0))
    {
        draft = draft.see(timeouts.places()).because(format!(
            "Timeout Errors grew by {} with it: the card does not answer.",
            number(timeouts.growth().unwrap_or(0.0))
        ));
    }
    out.push(
        draft
            .because("Traffic stands still at each reset. It is the card, its firmware or its slot, not the load.")
            .effect("Move the traffic to another port or to the other VIOS, then have the adapter's microcode updated or the card replaced.")
            .harm("Moving the traffic interrupts it for as long as the failover takes.")
            .weigh(confidence, 1.0),
    );
}
