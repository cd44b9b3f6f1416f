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

use super::change::Change;
use super::disk;
use super::finding::{Draft, Severity};
use super::load::{Load, Rate};
use super::mapping::{Npiv, clients_on};
use super::out::Out;
use super::queues::{FEATURE, RESTART};
use super::rule::{Applicability, Object};
use super::thresholds::{QUEUES_FAR, fact, own};
use super::view::{Device, Role, Value, View, as_f64};
use crate::capture::{At, VfcStats};
use crate::facts::id::{
    MQ_GAIN_TIMES, MQ_GAP_CLOSED, MQ_IOPS_MIN, MQ_IOS_PER_QUEUE_MIN, MQ_QUEUES_USUAL,
};
use crate::trace::{Figure, number};

/// Every path: one for each virtual adapter, and one for each port with a number of queues that is on none of them.
pub(super) fn paths<'a>(view: &View<'a>) -> Vec<Path<'a>> {
    let stats = statistics(view);
    let mut adapters: BTreeSet<Device<'a>> = stats.keys().copied().collect();
    adapters.extend(view.npiv().iter().map(|map| (map.vios, map.map.name.as_str())));
    let of = |adapter: Device<'a>| stats.get(&adapter).map_or(&[][..], Vec::as_slice);
    let mut paths: Vec<Path<'a>> =
        adapters.into_iter().map(|adapter| Path::new(view, adapter, of(adapter))).collect();
    let on: BTreeSet<Device<'a>> = paths.iter().flat_map(Path::ends).collect();
    for host in view.hosts() {
        let ports = view.devices(host, "fcs").into_iter().map(|device| (host, device));
        let known = |port: &Device<'a>| view.number(port.0, port.1, "num_io_queues").is_some();
        let alone = ports.filter(|port| !on.contains(port)).filter(known);
        paths.extend(alone.map(|port| Path::of_port(view, port)));
    }
    paths
}

/// What goes through a virtual adapter, as far as the captures show it.
pub(super) fn load_of<'v>(view: &'v View<'_>, server: &Object<'_>) -> Option<&'v Load> {
    let of = |path: &&Path<'_>| path.vios == server.host && path.device == server.device;
    view.paths().iter().find(of).map(|path| &path.load)
}

/// What goes through a client's adapter or a port: what was seen of the whole path goes before its own counters.
pub(super) fn load_through(view: &View<'_>, host: usize, device: &str) -> Load {
    let of = |path: &&Path<'_>| path.client_end() == Some((host, device));
    match view.paths().iter().find(of) {
        Some(path) => path.load.clone(),
        None => Load::of_port(view.fcstats(host, device)),
    }
}

/// Levels that can have several queues.
pub(super) fn new_enough(view: &View<'_>, path: &Object<'_>) -> Applicability {
    let path = view.paths().get(path.index);
    let too_old = |host| view.too_old_for(host, FEATURE);
    let hosts = path.map(|path| [Some(path.vios), path.client]);
    Applicability::where_that(hosts.is_some_and(|hosts| !hosts.into_iter().flatten().any(too_old)))
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
pub(super) struct Path<'a> {
    /// The VIOS; of a client's adapter alone the client.
    pub(super) vios: usize,
    /// `vfchostN`, or the port where no virtual adapter is known.
    pub(super) device: &'a str,
    port: Option<&'a str>,
    client: Option<usize>,
    client_adapter: Option<&'a str>,
    /// How many clients use the port; a client's own adapter has none.
    clients: Option<usize>,
    limits: Vec<Limit<'a>>,
    /// As many as were agreed on, or the least that is configured.
    pub(super) queues: Option<Value>,
    load: Load,
}

impl<'a> Path<'a> {
    fn new(view: &View<'a>, (vios, device): Device<'a>, samples: &[&'a VfcStats]) -> Self {
        let maps = view.npiv();
        let map = maps.iter().find(|map| map.vios == vios && map.map.name == device);
        let port = map.and_then(Npiv::port);
        let client = map.and_then(|map| map.client);
        let client_adapter = map.and_then(Npiv::client_adapter);
        let mut path = Self {
            vios,
            device,
            port,
            client,
            client_adapter,
            clients: port.and_then(|port| clients_on(maps, vios, port)).map(|all| all.len()),
            limits: Vec::new(),
            queues: None,
            load: Load::default(),
        };
        path.limits = path.find_limits(view);
        let channels = samples.last().and_then(|stats| stats.channels);
        path.queues = match channels {
            Some(read) => Some((as_f64(read.value), read.at)),
            None => path.least().map(|limit| (limit.value, limit.at)),
        };
        let of = |end: Option<Device<'a>>| {
            end.map_or(&[][..], |(host, device)| view.fcstats(host, device))
        };
        let shared = if path.clients == Some(1) { of(path.port_end()) } else { &[][..] };
        let service = path.client.and_then(|client| disk::mean_service(view, client));
        path.load = Load::of_path(samples, [of(path.client_end()), shared], service);
        path
    }

    /// Requests a second between two captures of anything that shows this path.
    pub(super) fn measured_rate(&self) -> Option<&Rate> {
        self.load.iops.as_ref().filter(|rate| rate.measured)
    }

    /// A port or a client's adapter of whose path nothing else was captured.
    fn of_port(view: &View<'a>, (host, device): Device<'a>) -> Self {
        let fcstats = view.fcstats(host, device);
        let client =
            view.is_virtual(host, device, fcstats).unwrap_or(view.role(host) == Role::Client);
        let mut path = Self {
            vios: host,
            device,
            port: Some(device),
            client: None,
            client_adapter: None,
            clients: match client {
                true => Some(0),
                false => clients_on(view.npiv(), host, device).map(|all| all.len()),
            },
            limits: Vec::new(),
            queues: None,
            load: Load::of_port(fcstats),
        };
        path.limits = path.find_limits(view);
        path.queues = path.least().map(|limit| (limit.value, limit.at));
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

    /// The load and what it means for each queue, on a finding.
    fn show(&self, view: &View<'_>, mut draft: Draft) -> Draft {
        draft =
            draft.see(self.queues.map(|(_, at)| at)).see(self.limits.iter().map(|limit| limit.at));
        self.load
            .show(draft, self.queues)
            .figure(Figure::plain(view.facts.term(MQ_IOPS_MIN, "IOPS from which more queues help")))
            .figure(Figure::plain(
                view.facts.term(MQ_IOS_PER_QUEUE_MIN, "I/Os in a queue from which more help"),
            ))
            .figure(Figure::plain(own("margin before this rule speaks", QUEUES_FAR, "times")))
    }

    /// The captures that tell the load of a path and what is in flight on it.
    fn to_capture(&self, view: &View<'_>) -> String {
        let on = view.spoken(self.vios);
        match super::view::is_numbered(self.device, "fcs") {
            true => format!("fcstat -D {} on {on} twice", self.device),
            false => format!(
                "cat /proc/sys/adapter/vfc/{}/stats on {on} twice, each with date, and iostat -D on the client",
                self.device
            ),
        }
    }
}

/// `mq-too-many-queues`: more than the usual number since somebody raised a value, and little to fill them with.
pub(super) fn too_many(view: &View<'_>, path: &Object<'_>, out: &mut Out) {
    const RULE: &str = "mq-too-many-queues";
    let Some(path) = view.paths().get(path.index) else { return };
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    let Some(queues) = path.queues.filter(|(queues, _)| *queues > usual) else { return };
    // The client's own value asks; what the VIOS raised is what can be taken back here.
    let mut raised = path.limits.iter().filter(|limit| limit.value > usual);
    let Some(raised) = raised.find(|limit| limit.host == path.vios) else { return };
    match path.clients {
        Some(0 | 1) => {}
        Some(_) => return,
        None => {
            let about = format!(
                "whether {} is shared and may need its {} queues",
                path.port.unwrap_or(path.device),
                number(queues.0)
            );
            return out.lack(about, format!("lsmap -all -npiv on {}", view.spoken(path.vios)));
        }
    }
    // Both published conditions must hold by far; where one was not captured, the other.
    let (rate, each) = (fact(view.facts, MQ_IOPS_MIN), fact(view.facts, MQ_IOS_PER_QUEUE_MIN));
    let slow = path.load.iops().map(|iops| iops * QUEUES_FAR < rate);
    let shallow = path.load.per_queue(queues).map(|figure| figure.low * QUEUES_FAR < each);
    let virtual_adapter = path.port != Some(path.device);
    let confidence = match (slow, shallow, path.load.measured()) {
        (Some(true), Some(true), true) => 0.88,
        (Some(true), Some(true), false) => 0.85,
        (None, Some(true), _) if !virtual_adapter => 0.7,
        (Some(true), None, _) if !virtual_adapter => 0.6,
        (Some(false), _, _) | (_, Some(false), _) => return,
        _ => return out.lack("the load", path.to_capture(view)),
    };
    // A value for the whole VIOS is left; the adapter's own goes before it.
    let device = if raised.device == "viosnpiv0" { path.device } else { raised.device };
    let change = Change::new(view, raised.host, device)
        .lowering()
        .set(raised.attribute, format!("{usual:.0}"));
    let title = format!("{} queues are more than the load fills", number(queues.0));
    let draft = Draft::new(RULE, path.vios, view.object(raised.host, device), Severity::Warning, title)
        .see([raised.at])
        .because(format!("{} of {} was raised to {}; the default gives {} queues.", raised.attribute, raised.device, number(raised.value), number(usual)))
        .because("The load is below 150,000 IOPS by far and fewer than six I/Os are in a queue at a time, as far as either was captured. Each queue has a thread, which then costs processor time and brings nothing.")
        .because("The port serves no more than one client, so no sharing asks for the maximum.");
    out.push(
        path.show(view, draft)
            .change(&change)
            .effect(format!("Fewer threads wake for the same I/O: less processor time for each. {RESTART}"))
            .harm("A load that grows beyond 150,000 IOPS would find fewer queues; measure again when it does.")
            .weigh(confidence, 0.8),
    );
}

/// `mq-too-few-queues`: fewer than the usual number under a load that fills them by far.
pub(super) fn too_few(view: &View<'_>, path: &Object<'_>, out: &mut Out) {
    let Some(path) = view.paths().get(path.index) else { return };
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    // A single queue is another rule's; a shared port is judged by its clients together.
    let few = path.queues.filter(|(queues, _)| *queues > 1.0 && *queues < usual);
    let alone = path.port == Some(path.device) && path.clients.is_some_and(|clients| clients > 1);
    let Some(queues) = few.filter(|_| !alone) else { return };
    if path.load.iops.is_none() {
        return out.lack("the load", path.to_capture(view));
    }
    if !path.load.heavy(view) {
        return;
    }
    let Some(per_queue) = path.load.per_queue(queues) else {
        return out.lack("the I/Os in flight", "iostat -D 30 4 on the client under load");
    };
    if per_queue.low <= fact(view.facts, MQ_IOS_PER_QUEUE_MIN) * QUEUES_FAR {
        return;
    }
    let able = |limit: &&Limit<'_>| {
        let allowed = view.allowed(limit.host, limit.device, &[limit.kind], limit.attribute);
        allowed.max.is_none_or(|max| as_f64(max) >= usual)
    };
    // What is greater than the number agreed on does not hold it down.
    match path.least().filter(|limit| limit.value <= queues.0).filter(able) {
        Some(binding) => out.push(few_queues(view, path, binding)),
        None => out.lack(
            format!("what limits {}", path.device),
            "num_io_queues of the client's fcsN and of the port, num_per_range of vfchostN and viosnpiv0",
        ),
    }
}

/// What the published measurements gained by several queues.
fn gained(view: &View<'_>) -> String {
    let gains = || view.facts.numbers("mq.gain-percent.").map(|gain| gain.low);
    let (least, most) = (gains().fold(f64::INFINITY, f64::min), gains().fold(0.0, f64::max));
    match least <= most {
        true => format!(
            "Several queues against one gained {} % there (writes of 4 KB) to {} % (reads of 4 KB, two clients), {} times for some loads, and closed {} % of the gap to a port of one's own.",
            number(least),
            number(most),
            number(fact(view.facts, MQ_GAIN_TIMES)),
            number(fact(view.facts, MQ_GAP_CLOSED))
        ),
        false => String::new(),
    }
}

fn few_queues(view: &View<'_>, path: &Path<'_>, binding: &Limit<'_>) -> Draft {
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    let queues = path.queues.map_or(binding.value, |(queues, _)| queues);
    let change = Change::new(view, binding.host, binding.device)
        .set(binding.attribute, format!("{usual:.0}"));
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
        .because("Above 150,000 IOPS with more than six I/Os in a queue at a time, more queues let more processors work: up to eight the published measurements gained.")
        .because(gained(view));
    let peak = path.load.in_flight.as_ref().is_some_and(|in_flight| in_flight.peak);
    path.show(view, draft)
        .change(&change)
        .effect(format!("More I/O at lower latency under the same load. {RESTART} The client's adapter has to be configured again, too, to ask for more than it agreed on.{next}"))
        .harm("More threads and more memory on the VIOS; watch its processors.")
        .weigh(
            match (peak, path.load.measured()) {
                (false, _) => 0.93,
                (true, true) => 0.85,
                (true, false) => 0.7,
            },
            1.1,
        )
}
