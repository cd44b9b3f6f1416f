//! The queues that a client and its VIOS agreed on, against what goes through them.
//!
//! A virtual Fibre Channel adapter has as many queues as the least of its terms allows: `num_io_queues` of the client
//! and of the port, `num_per_range` of the adapter or, where that is 0, of `viosnpiv0`. What was agreed on is printed by
//! the adapter's statistics as channels. The load comes from the same statistics, or from `fcstat`; the I/Os in flight
//! are the load times the service time that the client's `iostat` shows, or the high-water mark of its adapter.
//!
//! Both published conditions must hold by a wide margin, and for too many queues a value must have been raised:
//! a port of eight queues and a client with little to do is how every system starts.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Change, Draft, Severity};
use super::mapping::{Npiv, clients_on};
use super::measure::{Counter, load, seconds_between};
use super::queues::{FEATURE, RESTART};
use super::thresholds::{QUEUES_FAR, fact, own};
use super::view::{Device, Role, View, as_f64, shown};
use super::{Out, disk};
use crate::capture::{At, Fcstat, VfcStats};
use crate::facts::id::{MQ_IOPS_MIN, MQ_IOS_PER_QUEUE_MIN, MQ_QUEUES_USUAL};
use crate::trace::{Figure, Term, number};

/// What a rule has spoken about here, so that the same is not said again of a port alone.
pub(super) type Spoken<'a> = BTreeSet<(&'static str, usize, &'a str)>;

pub(super) fn check<'a>(view: &View<'a>, maps: &[Npiv<'a>], out: &mut Out) -> Spoken<'a> {
    let stats = statistics(view);
    let fcstats = view.fc_ports();
    let mut adapters: BTreeSet<Device<'a>> = stats.keys().copied().collect();
    adapters.extend(maps.iter().map(|map| (map.vios, map.map.name.as_str())));
    let mut spoken = Spoken::new();
    for (vios, device) in adapters {
        let samples = stats.get(&(vios, device)).map_or(&[][..], Vec::as_slice);
        let path = Path::new(view, maps, &fcstats, (vios, device), samples);
        if path.too_old(view) {
            continue;
        }
        let rule = if too_many(view, &path, maps, out) {
            "mq-too-many-queues"
        } else if too_few(view, &path, out) {
            "mq-too-few-queues"
        } else {
            continue;
        };
        spoken.extend(path.ends().map(|(host, device)| (rule, host, device)));
    }
    spoken
}

/// The statistics of each virtual adapter, in the order of time.
fn statistics<'a>(view: &View<'a>) -> BTreeMap<Device<'a>, Vec<&'a VfcStats>> {
    let mut all: BTreeMap<Device<'a>, Vec<&VfcStats>> = BTreeMap::new();
    for (host, report) in view.reports() {
        let Some(stats) = report.vfc_stats() else { continue };
        let Some(device) = &stats.head.device else { continue };
        all.entry((host, &device.value)).or_default().push(stats);
    }
    all
}

/// One of the values whose least is the number of queues.
struct Limit<'a> {
    host: usize,
    device: &'a str,
    /// Under which the data files know the device.
    kind: &'static str,
    attribute: &'static str,
    value: f64,
    at: At,
}

/// From a client's adapter to the port.
struct Path<'a> {
    vios: usize,
    device: &'a str,
    port: Option<&'a str>,
    client: Option<usize>,
    client_adapter: Option<&'a str>,
    limits: Vec<Limit<'a>>,
    queues: Option<(f64, At)>,
    /// Measured between two captures.
    iops: Option<(Figure, Vec<At>)>,
    in_flight: Option<InFlight>,
}

/// How many I/Os were under way at a time.
struct InFlight {
    figure: Figure,
    at: Vec<At>,
    /// The most since the reset, not the usual.
    peak: bool,
}

impl<'a> Path<'a> {
    fn new(
        view: &View<'a>,
        maps: &[Npiv<'a>],
        fcstats: &BTreeMap<Device<'a>, Vec<&'a Fcstat>>,
        (vios, device): Device<'a>,
        samples: &[&'a VfcStats],
    ) -> Self {
        let map = maps.iter().find(|map| map.vios == vios && map.map.name == device);
        // Without any mapping, only what leaves no choice is taken to be on the path.
        let unmapped = maps.iter().all(|map| map.vios != vios);
        let alone = |host: usize| only(view.devices(host, "fcs").into_iter());
        let clients = || view.hosts().filter(|host| view.role(*host) == Role::Client);
        let port = match map {
            Some(map) => map.port(),
            None => unmapped.then(|| alone(vios)).flatten(),
        };
        let client = match map {
            Some(map) => map.client,
            None => unmapped.then(|| only(clients())).flatten(),
        };
        let client_adapter = map.and_then(Npiv::client_adapter).or_else(|| client.and_then(alone));
        let mut path = Self {
            vios,
            device,
            port,
            client,
            client_adapter,
            limits: Vec::new(),
            queues: None,
            iops: None,
            in_flight: None,
        };
        path.limits = path.find_limits(view);
        let channels = samples.last().and_then(|stats| stats.channels);
        path.queues = match channels {
            Some(read) => Some((as_f64(read.value), read.at)),
            None => path.least().map(|limit| (limit.value, limit.at)),
        };
        let of = |end: Option<Device<'a>>| {
            end.and_then(|end| fcstats.get(&end)).map_or(&[][..], Vec::as_slice)
        };
        let own = of(path.client_end());
        let single = path.clients(maps) == Some(1);
        let shared = if single { of(path.port_end()) } else { &[][..] };
        path.iops = commands(samples).or_else(|| measured(own)).or_else(|| measured(shared));
        path.in_flight =
            path.under_way(view).or_else(|| high_water(own)).or_else(|| high_water(shared));
        path
    }

    fn client_end(&self) -> Option<Device<'a>> {
        Some((self.client?, self.client_adapter?))
    }

    fn port_end(&self) -> Option<Device<'a>> {
        Some((self.vios, self.port?))
    }

    fn ends(&self) -> impl Iterator<Item = Device<'a>> {
        self.client_end().into_iter().chain(self.port_end())
    }

    /// How many clients use the port.
    fn clients(&self, maps: &[Npiv<'a>]) -> Option<usize> {
        clients_on(maps, self.vios, self.port?).map(|clients| clients.len())
    }

    fn too_old(&self, view: &View<'_>) -> bool {
        [Some(self.vios), self.client]
            .into_iter()
            .flatten()
            .any(|host| view.too_old_for(host, FEATURE))
    }

    /// The values that were captured, the adapter's own first: it touches no other client.
    fn find_limits(&self, view: &View<'a>) -> Vec<Limit<'a>> {
        let read = |(host, device): Device<'a>, kind, attribute| {
            let (value, at) = view.number(host, device, attribute)?;
            Some(Limit { host, device, kind, attribute, value, at })
        };
        let own = read((self.vios, self.device), "vfchost", "num_per_range");
        let inherits = own.as_ref().is_none_or(|limit| limit.value == 0.0);
        let all = inherits.then(|| read((self.vios, "viosnpiv0"), "viosnpiv0", "num_per_range"));
        let ends = [self.port_end(), self.client_end()].into_iter().flatten();
        let ends = ends.filter_map(|end| read(end, "fcs", "num_io_queues"));
        own.filter(|limit| limit.value > 0.0).into_iter().chain(all.flatten()).chain(ends).collect()
    }

    fn least(&self) -> Option<&Limit<'a>> {
        self.limits.iter().min_by(|one, two| one.value.total_cmp(&two.value))
    }

    /// The load times the service time: I/Os under way on this path, whatever other paths the client has.
    fn under_way(&self, view: &View<'_>) -> Option<InFlight> {
        let (iops, _) = self.iops.as_ref()?;
        let service = disk::mean_service(view, self.client?)?;
        let at = service.terms.iter().filter_map(|term| match term.origin {
            crate::trace::Origin::Capture(at) => Some(at),
            _ => None,
        });
        let at = at.collect();
        let terms = vec![Term::of(iops).named("load"), Term::of(&service).named("service time")];
        let figure = Figure::new("I/Os in flight", "I/Os", "load × service time ÷ 1000", terms);
        Some(InFlight { figure, at, peak: false })
    }

    /// The I/Os in each queue at a time.
    fn per_queue(&self) -> Option<Figure> {
        let (queues, at) = self.queues.filter(|(queues, _)| *queues > 0.0)?;
        let terms = vec![
            Term::of(&self.in_flight.as_ref()?.figure).named("in flight"),
            Term::read("queues", queues, "queues", at),
        ];
        Some(Figure::new("I/Os in a queue at a time", "I/Os", "in flight ÷ queues", terms))
    }

    /// The load and what it means for each queue, on a finding.
    fn show(&self, view: &View<'_>, per_queue: Figure, mut draft: Draft) -> Draft {
        draft =
            draft.see(self.queues.map(|(_, at)| at)).see(self.limits.iter().map(|limit| limit.at));
        if let Some((iops, at)) = &self.iops {
            draft = draft.see(at.iter().copied()).figure(iops.clone());
        }
        if let Some(in_flight) = &self.in_flight {
            draft = draft.see(in_flight.at.iter().copied()).figure(in_flight.figure.clone());
        }
        if let Some((queues, at)) = self.queues {
            draft = draft.figure(shown("queues in use", queues, "queues", at));
        }
        draft
            .figure(per_queue)
            .figure(Figure::plain(view.facts.term(MQ_IOPS_MIN, "IOPS from which more queues help")))
            .figure(Figure::plain(
                view.facts.term(MQ_IOS_PER_QUEUE_MIN, "I/Os in a queue from which more help"),
            ))
            .figure(Figure::plain(own("margin before this rule speaks", QUEUES_FAR, "times")))
    }
}

/// The only one there is.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let one = all.next()?;
    all.next().is_none().then_some(one)
}

/// Commands a second, from the first and the last statistics with the same queues.
fn commands(samples: &[&VfcStats]) -> Option<(Figure, Vec<At>)> {
    let (last, before) = samples.split_last()?;
    let same = |stats: &&&VfcStats| stats.commands_received.len() == last.commands_received.len();
    let first = before.iter().find(same)?;
    let seconds = seconds_between(&first.head, &last.head)?;
    let pairs = || first.commands_received.iter().zip(&last.commands_received);
    // A queue that counts less than before was set up anew in between.
    if pairs().any(|(one, two)| two.value < one.value) {
        return None;
    }
    let sum = |stats: &VfcStats| -> f64 {
        stats.commands_received.iter().map(|read| as_f64(read.value)).sum()
    };
    let (one, two) = pairs().max_by_key(|(_, two)| two.value)?;
    let terms = vec![
        Term::read("later", sum(last), "commands", two.at),
        Term::read("earlier", sum(first), "commands", one.at),
        Term::read("seconds", seconds, "s", last.head.first),
    ];
    let iops =
        Figure::new("commands a second, all queues", "I/O/s", "(later − earlier) ÷ seconds", terms);
    Some((iops, vec![one.at, two.at]))
}

/// Requests a second, where two captures of a port show them.
fn measured(samples: &[&Fcstat]) -> Option<(Figure, Vec<At>)> {
    load(samples).filter(|load| load.measured).map(|load| (load.iops, load.at))
}

/// The most commands active since the reset.
fn high_water(samples: &[&Fcstat]) -> Option<InFlight> {
    let high =
        |fcstat: &Fcstat| fcstat.adapter_queue.active_high.or(fcstat.protocol_queue.active_high);
    let last = Counter::over(samples, high)?.last;
    let figure = shown("high-water active", as_f64(last.value), "I/Os", last.at);
    Some(InFlight { figure, at: vec![last.at], peak: true })
}

/// The captures that tell the load of a path and what is in flight on it.
fn statistics_twice(view: &View<'_>, path: &Path<'_>) -> String {
    format!(
        "cat /proc/sys/adapter/vfc/{}/stats on {} twice, each with date, and iostat -D on the client",
        path.device,
        view.spoken(path.vios)
    )
}

/// `mq-too-many-queues`: more than the usual number since somebody raised a value, and little to fill them with.
fn too_many(view: &View<'_>, path: &Path<'_>, maps: &[Npiv<'_>], out: &mut Out) -> bool {
    const RULE: &str = "mq-too-many-queues";
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    let Some((queues, _)) = path.queues.filter(|(queues, _)| *queues > usual) else { return false };
    // The client's own value asks; what the VIOS raised is what can be taken back here.
    let mut raised = path.limits.iter().filter(|limit| limit.value > usual);
    let Some(raised) = raised.find(|limit| limit.host == path.vios) else { return false };
    if path.clients(maps) != Some(1) {
        return false;
    }
    let Some((iops, per_queue)) = path.iops.as_ref().zip(path.per_queue()) else {
        out.missing_for(RULE, "the load", statistics_twice(view, path));
        return false;
    };
    let slow = iops.0.low * QUEUES_FAR < fact(view.facts, MQ_IOPS_MIN);
    let shallow = per_queue.low * QUEUES_FAR < fact(view.facts, MQ_IOS_PER_QUEUE_MIN);
    if !(slow && shallow) {
        return false;
    }
    // A value for the whole VIOS is left; the adapter's own goes before it.
    let device = if raised.device == "viosnpiv0" { path.device } else { raised.device };
    let own = view.number(raised.host, device, raised.attribute);
    let old = own.map(|(value, _)| number(value));
    let change = Change::new(view, raised.host, device).set(
        raised.attribute,
        old.as_deref(),
        format!("{usual:.0}"),
    );
    let title = format!("{} queues are more than the load fills", number(queues));
    let draft = Draft::new(RULE, path.vios, view.object(raised.host, device), Severity::Warning, title)
        .see([raised.at])
        .because(format!("{} of {} was raised to {}; the default gives {} queues.", raised.attribute, raised.device, number(raised.value), number(usual)))
        .because("Both published conditions hold by far: the load is below 150,000 IOPS and fewer than six I/Os are in a queue at a time. Each queue has a thread, which then costs processor time and brings nothing.")
        .because("The port serves one client, so no sharing asks for the maximum.");
    out.push(
        path.show(view, per_queue, draft)
            .change(&change)
            .effect(format!("Fewer threads wake for the same I/O: less processor time for each. {RESTART}"))
            .harm("A load that grows beyond 150,000 IOPS would find fewer queues; measure again when it does.")
            .weigh(0.88, 0.8),
    );
    true
}

/// `mq-too-few-queues`: fewer than the usual number under a load that fills them by far.
fn too_few(view: &View<'_>, path: &Path<'_>, out: &mut Out) -> bool {
    const RULE: &str = "mq-too-few-queues";
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    // A single queue is another rule's.
    let few = path.queues.filter(|(queues, _)| *queues > 1.0 && *queues < usual);
    let Some((queues, _)) = few else { return false };
    let Some(iops) = path.iops.as_ref() else {
        out.missing_for(RULE, "the load", statistics_twice(view, path));
        return false;
    };
    if iops.0.low <= fact(view.facts, MQ_IOPS_MIN) {
        return false;
    }
    let Some(per_queue) = path.per_queue() else {
        out.missing_for(RULE, "the I/Os in flight", "iostat -D 30 4 on the client under load");
        return false;
    };
    let deep = per_queue.low > fact(view.facts, MQ_IOS_PER_QUEUE_MIN) * QUEUES_FAR;
    let able = |limit: &&Limit<'_>| {
        let allowed = view.allowed(limit.host, limit.device, &[limit.kind], limit.attribute);
        allowed.max.is_none_or(|max| as_f64(max) >= usual)
    };
    // What is greater than the number agreed on does not hold it down.
    let Some(binding) = path.least().filter(|limit| limit.value <= queues).filter(able) else {
        if deep {
            out.missing_for(RULE, format!("what limits {}", path.device), "num_io_queues of the client's fcsN and of the port, num_per_range of vfchostN and viosnpiv0");
        }
        return false;
    };
    if deep {
        out.push(few_queues(view, path, binding, per_queue));
    }
    deep
}

fn few_queues(view: &View<'_>, path: &Path<'_>, binding: &Limit<'_>, per_queue: Figure) -> Draft {
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    let queues = path.queues.map_or(binding.value, |(queues, _)| queues);
    let change = Change::new(view, binding.host, binding.device).set(
        binding.attribute,
        Some(&number(binding.value)),
        format!("{usual:.0}"),
    );
    let others: Vec<String> = path
        .limits
        .iter()
        .filter(|limit| limit.at != binding.at && limit.value < usual)
        .map(|limit| {
            format!(
                "{} of {} ({})",
                limit.attribute,
                view.object(limit.host, limit.device),
                number(limit.value)
            )
        })
        .collect();
    let next = match others.is_empty() {
        true => String::new(),
        false => format!(" Raise with it what limits next: {}.", others.join(", ")),
    };
    let object = view.object(binding.host, binding.device);
    let title = format!("{} queues are fewer than the load needs", number(queues));
    let draft = Draft::new("mq-too-few-queues", path.vios, object, Severity::Warning, title)
        .see([binding.at])
        .because(format!("The queues in use are the least of what client, virtual adapter and port allow. {} of {} allows {}, and is what binds.", binding.attribute, binding.device, number(binding.value)))
        .because("Above 150,000 IOPS with more than six I/Os in a queue at a time, more queues let more processors work: up to eight the published measurements gained.");
    let peak = path.in_flight.as_ref().is_some_and(|in_flight| in_flight.peak);
    path.show(view, per_queue, draft)
        .change(&change)
        .effect(format!("More I/O at lower latency under the same load. {RESTART} The client's adapter has to be configured again, too, to ask for more than it agreed on.{next}"))
        .harm("More threads and more memory on the VIOS; watch its processors.")
        .weigh(if peak { 0.8 } else { 0.93 }, 1.1)
}
