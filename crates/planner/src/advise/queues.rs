//! Multi-queue NPIV: how many queues, against how much load.
//!
//! The rules of the published article: below 150,000 IOPS, or with fewer than six I/Os in a queue at a time, more
//! queues bring nothing and fewer are better; 16 were no better than 8 except on a physical port that several clients
//! share, which wants the maximum. Eight is the default and never a fault by itself: without load nothing is asked for.

use std::collections::BTreeMap;

use super::Out;
use super::finding::{Change, Draft, Severity};
use super::mapping::{Npiv, clients_on, npiv};
use super::measure::{Load, load};
use super::paths::{self, Spoken};
use super::thresholds::{GLOBAL_SHARE, MANY_CLIENTS, fact, own};
use super::view::{Role, Value, View, as_f64, count, shown};
use crate::capture::{Fcstat, Named, Report, VfcStats};
use crate::facts::id::{MQ_IOPS_MIN, MQ_IOS_PER_QUEUE_MIN, MQ_QUEUES_USUAL};
use crate::trace::{Figure, Term, number};

pub(super) fn check(view: &View<'_>, out: &mut Out) {
    let maps = npiv(view);
    let ports = queue_ports(view);
    if ports.is_empty() {
        for rule in ["mq-too-many-queues", "mq-too-few-queues", "mq-shared-port"] {
            out.absent(rule, "num_io_queues of each fcsN (lsdev -dev fcsN -attr, lsattr -El fcsN) and fcstat -D fcsN twice");
        }
    }
    let spoken = paths::check(view, &maps, out);
    for port in &ports {
        if port.on_client {
            client_port(view, port, &spoken, out);
        } else {
            vios_port(view, port, &maps, &spoken, out);
        }
    }
    single_queue(view, &maps, out);
    global_pools(view, out);
}

/// A port whose number of queues is known.
struct Port<'a> {
    host: usize,
    device: &'a str,
    queues: f64,
    at: crate::capture::At,
    on_client: bool,
    load: Option<Load>,
    /// Commands active at the moment of the last capture, and the most there ever were.
    active: Option<crate::capture::Read<u64>>,
    active_high: Option<crate::capture::Read<u64>>,
}

fn queue_ports<'a>(view: &View<'a>) -> Vec<Port<'a>> {
    let fcstats = view.fc_ports();
    let none: Vec<&Fcstat> = Vec::new();
    let mut ports = Vec::new();
    for host in view.hosts() {
        for device in view.devices(host, "fcs") {
            let Some((queues, at)) = view.number(host, device, "num_io_queues") else { continue };
            let samples = fcstats.get(&(host, device)).unwrap_or(&none);
            let on_client =
                view.is_virtual(host, device, samples).unwrap_or(view.role(host) == Role::Client);
            let last = samples.last();
            let active = last
                .and_then(|fcstat| fcstat.adapter_queue.active.or(fcstat.protocol_queue.active));
            let high = |fcstat: &&Fcstat| {
                fcstat.adapter_queue.active_high.or(fcstat.protocol_queue.active_high)
            };
            ports.push(Port {
                host,
                device,
                queues,
                at,
                on_client,
                load: load(samples),
                active,
                active_high: last.and_then(high),
            });
        }
    }
    ports
}

impl Port<'_> {
    /// I/Os that were in a queue at a time, at most since the reset.
    fn peak_per_queue(&self) -> Option<Figure> {
        let high = self.active_high?;
        let terms = vec![
            Term::read("high-water active", as_f64(high.value), "I/Os", high.at),
            Term::read("queues", self.queues, "queues", self.at),
        ];
        (self.queues > 0.0).then(|| {
            Figure::new(
                "most I/Os in a queue at a time",
                "I/Os",
                "high-water active ÷ queues",
                terms,
            )
        })
    }

    fn iops(&self) -> Option<f64> {
        self.load.as_ref().map(|load| load.iops.low)
    }

    /// A load that fills queues: the published rate measured, six I/Os in each queue right now, or an average since
    /// the reset that needs such peaks.
    fn busy(&self, view: &View<'_>) -> bool {
        let rate = fact(view.facts, MQ_IOPS_MIN);
        let each = fact(view.facts, MQ_IOS_PER_QUEUE_MIN);
        let now = self.active.is_some_and(|read| as_f64(read.value) >= each * self.queues);
        let measured = self.load.as_ref().is_some_and(|load| load.measured);
        let iops = self.iops().unwrap_or(0.0);
        iops >= rate || (now && iops >= rate / 3.0) || (!measured && iops >= rate / 3.0)
    }

    fn with_load(&self, mut draft: Draft) -> Draft {
        if let Some(load) = &self.load {
            draft = draft.see(load.at.iter().copied()).figure(load.iops.clone());
        }
        match self.peak_per_queue() {
            Some(peak) => draft.see(self.active_high.map(|read| read.at)).figure(peak),
            None => draft,
        }
    }
}

/// The feature of the data files whose levels say whether a system can have several queues.
pub(super) const FEATURE: &str = "npiv-multi-queue";

pub(super) const RESTART: &str = "It takes effect when the adapter is configured again; on a VIOS port, when the VIOS is restarted.";

fn client_port(view: &View<'_>, port: &Port<'_>, spoken: &Spoken<'_>, out: &mut Out) {
    own_port(view, port, Some(0), spoken, out);
}

/// A port that no two clients share; what was said of a whole path is not said again of its ends.
fn own_port(
    view: &View<'_>,
    port: &Port<'_>,
    clients: Option<usize>,
    spoken: &Spoken<'_>,
    out: &mut Out,
) {
    if !spoken.contains(&("mq-too-many-queues", port.host, port.device)) {
        too_many(view, port, clients, out);
    }
    if !spoken.contains(&("mq-too-few-queues", port.host, port.device)) {
        too_few(view, port, out);
    }
}

fn vios_port(
    view: &View<'_>,
    port: &Port<'_>,
    maps: &[Npiv<'_>],
    spoken: &Spoken<'_>,
    out: &mut Out,
) {
    let clients = clients_on(maps, port.host, port.device).map(|clients| clients.len());
    if clients.is_none() {
        out.missing("mq-shared-port", format!("lsmap -all -npiv on {}", view.spoken(port.host)));
    }
    if clients.is_some_and(|clients| clients >= 2) {
        shared_port(view, port, clients.unwrap_or(0), maps, out);
        return;
    }
    own_port(view, port, clients, spoken, out);
}

/// `mq-too-many-queues`: more than the usual number, on a port of one client's own, with a load that cannot fill them.
fn too_many(view: &View<'_>, port: &Port<'_>, clients: Option<usize>, out: &mut Out) {
    const RULE: &str = "mq-too-many-queues";
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    if port.queues <= usual {
        return;
    }
    let Some(clients) = clients else {
        out.missing_for(
            RULE,
            format!(
                "whether {} is shared and may need its {} queues",
                port.device,
                number(port.queues)
            ),
            format!("lsmap -all -npiv on {}", view.spoken(port.host)),
        );
        return;
    };
    let each = fact(view.facts, MQ_IOS_PER_QUEUE_MIN);
    let slow = port.iops().map(|iops| iops < fact(view.facts, MQ_IOPS_MIN));
    let shallow = port.peak_per_queue().map(|peak| peak.low < each);
    let confidence = match (slow, shallow, port.load.as_ref().is_some_and(|load| load.measured)) {
        (Some(false), _, _) => return,
        (_, Some(true), _) => 0.85,
        (Some(true), _, true) => 0.75,
        (Some(true), _, false) => 0.6,
        (None, _, _) => {
            out.missing_for(
                RULE,
                "the load",
                format!("fcstat -D {} on {} twice", port.device, view.spoken(port.host)),
            );
            return;
        }
    };
    let draft = Draft::new(RULE, port.host, view.object(port.host, port.device), Severity::Warning, format!("{} queues are more than the load fills", number(port.queues)))
        .see([port.at])
        .because("Each queue has a thread. With fewer than six I/Os in a queue at a time, or below 150,000 IOPS, the threads cost processor time and bring nothing; then fewer queues are better.")
        .because(if clients <= 1 { "The port serves no more than one client, so no sharing asks for the maximum." } else { "" })
        .figure(Figure::plain(view.facts.term(MQ_IOPS_MIN, "IOPS below which more queues bring nothing")));
    let change = Change::new(view, port.host, port.device).set(
        "num_io_queues",
        Some(&format!("{:.0}", port.queues)),
        format!("{usual:.0}"),
    );
    out.push(
        port.with_load(draft)
            .change(&change)
            .effect(format!("Fewer threads wake for the same I/O: less processor time for each. {RESTART}"))
            .harm("A load that grows beyond 150,000 IOPS would find fewer queues; measure again when it does.")
            .weigh(confidence, 0.8),
    );
}

/// `mq-too-few-queues`: fewer than the usual number under a load that fills them.
fn too_few(view: &View<'_>, port: &Port<'_>, out: &mut Out) {
    const RULE: &str = "mq-too-few-queues";
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    // A single queue is another rule's.
    if port.queues >= usual || port.queues <= 1.0 {
        return;
    }
    if port.load.is_none() {
        out.missing_for(
            RULE,
            "the load",
            format!("fcstat -D {} on {} twice", port.device, view.spoken(port.host)),
        );
    }
    let each = fact(view.facts, MQ_IOS_PER_QUEUE_MIN);
    if !port.busy(view) || port.peak_per_queue().is_some_and(|peak| peak.low < each) {
        return;
    }
    let draft = Draft::new(RULE, port.host, view.object(port.host, port.device), Severity::Warning, format!("{} queues are fewer than the load needs", number(port.queues)))
        .see([port.at])
        .because("Above 150,000 IOPS with more than six I/Os in a queue at a time, more queues let more processors work: up to eight the published measurements gained.")
        .figure(Figure::plain(view.facts.term(MQ_IOPS_MIN, "IOPS from which more queues help")));
    let change = Change::new(view, port.host, port.device).set(
        "num_io_queues",
        Some(&format!("{:.0}", port.queues)),
        format!("{usual:.0}"),
    );
    let confidence = if port.load.as_ref().is_some_and(|load| load.measured) { 0.9 } else { 0.7 };
    out.push(
        port.with_load(draft)
            .change(&change)
            .effect(format!("More I/O at lower latency under the same load. {RESTART} The number in use is the least of client, adapter and port: raise the others with it."))
            .harm("More threads and more memory on the VIOS; watch its processors.")
            .weigh(confidence, 1.1),
    );
}

/// `mq-shared-port`: several clients on a busy port that has fewer queues than it can have.
fn shared_port(view: &View<'_>, port: &Port<'_>, clients: usize, maps: &[Npiv<'_>], out: &mut Out) {
    const RULE: &str = "mq-shared-port";
    let limits = view.allowed(port.host, port.device, &["fcs"], "num_io_queues");
    let Some(max) = limits.max.filter(|max| port.queues < as_f64(*max)) else { return };
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    let busy = port.busy(view);
    let confidence = match (&port.load, busy) {
        (_, true) => 0.85,
        // A load that is known and low asks for nothing.
        (Some(_), false) => return,
        (None, false) if clients >= MANY_CLIENTS => 0.5,
        (None, false) if port.queues < usual => 0.6,
        (None, false) => {
            out.missing_for(
                RULE,
                "the load",
                format!("fcstat -D {} on {} twice", port.device, view.spoken(port.host)),
            );
            return;
        }
    };
    let severity = if busy { Severity::Warning } else { Severity::Note };
    let lines = maps
        .iter()
        .filter(|map| map.vios == port.host && map.port() == Some(port.device))
        .map(|map| map.map.at);
    let mut draft = Draft::new(RULE, port.host, view.object(port.host, port.device), severity, format!("{clients} clients share {} queues", number(port.queues)))
        .see([port.at])
        .see(lines)
        .because("A physical port that several virtual adapters use should have the greatest number of queues: their queues meet on it.")
        .figure(Figure::plain(Term::new("clients on the port", count(clients), "clients", crate::trace::Origin::Computed)))
        .figure(shown("queues of the port", port.queues, "queues", port.at));
    draft = limits
        .max_term("greatest number of queues", "queues")
        .map(Figure::plain)
        .into_iter()
        .fold(draft, Draft::figure);
    if !busy {
        draft = draft.because("The load of the port is not among the captures, so this is a note: below 150,000 IOPS in all it would gain nothing.");
    }
    let change = Change::new(view, port.host, port.device).set(
        "num_io_queues",
        Some(&format!("{:.0}", port.queues)),
        max.to_string(),
    );
    out.push(
        port.with_load(draft)
            .change(&change)
            .effect(format!("The clients' queues no longer wait for each other at the port. {RESTART}"))
            .harm("One more thread for each queue, and memory, on the VIOS; it has to be restarted, so do one VIOS of the pair at a time.")
            .weigh(confidence, 1.1),
    );
}

/// The statistics of each virtual adapter, as captured last.
fn vfc_stats<'a>(view: &View<'a>) -> BTreeMap<(usize, &'a str), &'a VfcStats> {
    let named = |(host, report): (usize, &'a Report)| {
        let stats = report.vfc_stats()?;
        Some(((host, stats.head.device.as_ref()?.value.as_str()), stats))
    };
    view.reports().filter_map(named).collect()
}

/// `mq-single-queue`: a single queue between client and VIOS where several are possible.
fn single_queue(view: &View<'_>, maps: &[Npiv<'_>], out: &mut Out) {
    const RULE: &str = "mq-single-queue";
    let stats = vfc_stats(view);
    let mut judged = false;
    let able = |host: &usize| !view.too_old_for(*host, FEATURE);
    for host in view.hosts().filter(|host| view.role(*host) != Role::Client).filter(able) {
        let mut adapters = view.devices(host, "vfchost");
        adapters
            .extend(stats.keys().filter(|(owner, _)| *owner == host).map(|(_, device)| *device));
        for device in adapters {
            judged = true;
            let limited = view
                .attribute(host, device, "limit_intr")
                .filter(|attribute| attribute.value.eq_ignore_ascii_case("true"));
            if let Some(attribute) = limited {
                let change = Change::new(view, host, device).set(
                    "limit_intr",
                    Some(&attribute.value),
                    "false",
                );
                let draft = Draft::new(RULE, host, view.object(host, device), Severity::Warning, "limit_intr allows a single queue".into())
                    .see([attribute.at])
                    .because("limit_intr=true overrides every other attribute: the adapter has one queue, whatever client and port could do.")
                    .change(&change)
                    .effect("Client and VIOS agree on several queues again, up to the least of client, adapter and port, once the VIOS is restarted.")
                    .harm("More interrupt sources and threads on the VIOS. If it was set on purpose, for a client with little I/O, leave it.")
                    .weigh(0.85, 0.9);
                out.push(draft);
            } else if let Some(stats) = stats.get(&(host, device)) {
                one_channel(view, host, device, stats, maps, out);
            }
        }
    }
    let one = |port: &&Port<'_>| port.queues == 1.0 && able(&port.host);
    for port in queue_ports(view).iter().filter(one) {
        judged = true;
        one_queue_configured(view, port, out);
    }
    if !judged {
        out.absent(
            RULE,
            "lsdev -dev vfchostN -attr and cat /proc/sys/adapter/vfc/vfchostN/stats on the VIOS",
        );
    }
}

/// An adapter whose statistics show one channel although more are configured around it.
fn one_channel(
    view: &View<'_>,
    host: usize,
    device: &str,
    stats: &VfcStats,
    maps: &[Npiv<'_>],
    out: &mut Out,
) {
    let Some(channels) = stats.channels.filter(|read| read.value <= 1) else { return };
    let map = maps.iter().find(|map| map.vios == host && map.map.name == device);
    if map.and_then(|map| map.client).is_some_and(|client| view.too_old_for(client, FEATURE)) {
        return;
    }
    let port = map.and_then(Npiv::port);
    let of_port = port.and_then(|port| view.number(host, port, "num_io_queues"));
    let any_port = || {
        view.devices(host, "fcs")
            .into_iter()
            .find_map(|port| view.number(host, port, "num_io_queues"))
    };
    let of_client =
        map.and_then(|map| view.number(map.client?, map.client_adapter()?, "num_io_queues"));
    let of_vios = view.number(host, device, "num_per_range").filter(|(value, _)| *value > 0.0);
    let of_vios = of_vios.or_else(|| view.number(host, "viosnpiv0", "num_per_range"));
    let Some((queues, at)) = of_port.or_else(any_port).or(of_vios) else {
        let port = port.unwrap_or("fcsN");
        out.missing_for(
            "mq-single-queue",
            view.object(host, device),
            format!(
                "lsdev -dev {port} -attr and lsdev -dev viosnpiv0 -attr on {}",
                view.spoken(host)
            ),
        );
        return;
    };
    if [Some((queues, at)), of_client, of_vios].into_iter().flatten().any(|(value, _)| value <= 1.0)
    {
        return;
    }
    let os = map.and_then(|map| map.map.client_os.as_ref());
    // Older Linux and IBM i clients have one queue and nothing to mend.
    let old = os.is_some_and(|os| os.value != "AIX") && of_client.is_none();
    let confidence = if of_client.is_some() { 0.9 } else { 0.75 };
    out.push(
        Draft::new("mq-single-queue", host, view.object(host, device), if old { Severity::Note } else { Severity::Warning }, "a single queue is in use where several are configured".into())
            .see([channels.at, at])
            .see(of_client.map(|(_, at)| at))
            .see(of_vios.map(|(_, at)| at))
            .because("The statistics show at most one channel between client and VIOS; the attributes around it allow more.")
            .because("That is what is left after a migration through a VIOS or firmware without multi-queue, or when the client was configured before the levels were raised: the number agreed on first is never exceeded until the client's adapter is configured again.")
            .figure(shown("channels in use", as_f64(channels.value), "channels", channels.at))
            .figure(shown("queues configured", queues, "queues", at))
            .effect("No attribute has to change. Configure the client's adapter again (rmdev -Rl fcsN, then cfgmgr; one path at a time) or restart the client: it then agrees on as many queues as all sides have.")
            .harm("The path is down while its adapter is configured again; do it only while the other path carries the I/O.")
            .weigh(if old { 0.5 } else { confidence }, 0.9),
    );
}

/// `num_io_queues=1`: on a client or on a port.
fn one_queue_configured(view: &View<'_>, port: &Port<'_>, out: &mut Out) {
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    let slow = port.load.as_ref().is_some_and(|load| load.iops.low < fact(view.facts, MQ_IOPS_MIN));
    let change = Change::new(view, port.host, port.device).set(
        "num_io_queues",
        Some("1"),
        format!("{usual:.0}"),
    );
    let draft = Draft::new(
        "mq-single-queue",
        port.host,
        view.object(port.host, port.device),
        if slow { Severity::Note } else { Severity::Warning },
        "num_io_queues is 1".into(),
    )
    .see([port.at])
    .because(
        "The adapter knows num_io_queues, so its level can have several queues; one is configured.",
    );
    let draft = if slow {
        draft.because("The load seen is below 150,000 IOPS, where several queues bring little.")
    } else {
        draft
    };
    out.push(
        port.with_load(draft)
            .change(&change)
            .effect(format!("Several processors work on the I/O at a time. {RESTART}"))
            .harm("More threads and memory on the VIOS. If one queue was chosen on purpose, for a client with little I/O, leave it.")
            .weigh(if slow { 0.4 } else { 0.75 }, 0.9),
    );
}

/// `mq-local-commands` and `mq-local-buffers`: what queues take from global pools, against the commands they received.
fn global_pools(view: &View<'_>, out: &mut Out) {
    let stats = vfc_stats(view);
    if stats.is_empty() {
        for rule in ["mq-local-commands", "mq-local-buffers"] {
            out.absent(rule, "cat /proc/sys/adapter/vfc/vfchostN/stats on the VIOS, as root");
        }
    }
    for ((host, device), stats) in &stats {
        let received: f64 = stats.commands_received.iter().map(|read| as_f64(read.value)).sum();
        let pool = |words: &[&str]| {
            let of = |named: &&Named| {
                let name = named.name.to_ascii_lowercase();
                name.contains("global") && words.iter().any(|word| name.contains(word))
            };
            stats.named.iter().filter(of).max_by_key(|named| named.value)
        };
        if let Some(named) = pool(&["buf"]) {
            pool_finding(view, *host, device, named, received, stats, Pool::Buffers, out);
        }
        if let Some(named) = pool(&["command", "cmd"])
            .filter(|named| !named.name.to_ascii_lowercase().contains("buf"))
        {
            pool_finding(view, *host, device, named, received, stats, Pool::Commands, out);
        }
    }
}

#[derive(Clone, Copy)]
enum Pool {
    Commands,
    Buffers,
}

#[allow(clippy::too_many_arguments)]
fn pool_finding(
    view: &View<'_>,
    host: usize,
    device: &str,
    named: &Named,
    received: f64,
    stats: &VfcStats,
    pool: Pool,
    out: &mut Out,
) {
    let (rule, attribute, what) = match pool {
        Pool::Commands => ("mq-local-commands", "num_local_cmds", "commands"),
        Pool::Buffers => ("mq-local-buffers", "bufs_per_cmd", "buffers"),
    };
    let taken = as_f64(named.value);
    if received <= 0.0 || taken / received < GLOBAL_SHARE {
        return;
    }
    let of = stats.commands_received.iter().max_by_key(|read| read.value);
    let terms = vec![
        Term::read("taken", taken, what, named.at),
        of.map_or_else(
            || Term::given("received", received, "commands"),
            |read| Term::read("received", received, "commands", read.at),
        ),
    ];
    let share =
        Figure::new(&format!("{what} from the global pool"), "%", "taken × 100 ÷ received", terms);
    let object = view.object(host, device);
    let now = view.number(host, "viosnpiv0", attribute);
    let draft = Draft::new(rule, host, object, Severity::Warning, format!("many {what} come from the global pool"))
        .see([named.at])
        .see(now.map(|(_, at)| at))
        .because(format!("Each queue's thread has its own {what} and takes them without a lock; what it lacks comes from a global pool behind one. Here that is no exception."))
        .figure(share)
        .figure(Figure::plain(own("share from which it is no exception", GLOBAL_SHARE * 100.0, "%")))
        .harm("More memory of the VIOS for every queue of every virtual adapter.")
        .weigh(0.85, 0.9 + (taken / received).min(1.0) * 0.2);
    out.push(pool_change(view, host, (attribute, what), now, draft));
}

/// The command that doubles what each queue has of its own, within the range.
fn pool_change(
    view: &View<'_>,
    host: usize,
    (attribute, what): (&'static str, &str),
    now: Option<Value>,
    draft: Draft,
) -> Draft {
    let limits = view.allowed(host, "viosnpiv0", &["viosnpiv0"], attribute);
    let default = view
        .facts
        .attribute("viosnpiv0", attribute)
        .and_then(|fact| fact.default.as_ref()?.as_number());
    let current = now
        .map(|(value, _)| value)
        .or(default.and_then(|value| u64::try_from(value).ok()).map(as_f64));
    let target = current.and_then(|current| {
        limits.fit_or_max(current * 2.0).filter(|target| as_f64(*target) > current)
    });
    match target {
        Some(target) => {
            let old = now.map(|(value, _)| format!("{value:.0}"));
            let doubled = match now {
                Some((value, at)) => Figure::new("proposed", what, "configured × 2", vec![Term::read("configured", value, what, at)]),
                None => Figure::plain(Term::new("proposed", as_f64(target), what, crate::trace::Origin::Computed)),
            };
            draft
                .change(&Change::new(view, host, "viosnpiv0").set(attribute, old.as_deref(), target.to_string()))
                .figure(doubled)
                .effect("Threads find their own and no longer meet at the lock. Whether the VIOS must be restarted for it is said in its documentation; look at the statistics again afterwards.")
        }
        None => draft.effect(format!("{attribute} is already at its greatest value. Next step: spread the clients over more virtual adapters or more VIOS.")),
    }
}
