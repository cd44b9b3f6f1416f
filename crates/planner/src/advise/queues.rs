//! Multi-queue NPIV: how many queues, against how much load.
//!
//! The rules of the published article: below 150,000 IOPS, or with fewer than six I/Os in a queue at a time, more
//! queues bring nothing and fewer are better; 16 were no better than 8 except on a physical port that several clients
//! share, which wants the maximum. Eight is the default and never a fault by itself: without load nothing is asked for.

use super::change::Change;
use super::finding::{Draft, Severity};
use super::load::Load;
use super::mapping::{Npiv, clients_on};
use super::out::Out;
use super::paths;
use super::rule::{Applicability, Kind, Object, Rule};
use super::thresholds::{AVERAGE_HIDES, GLOBAL_SHARE, MANY_CLIENTS, fact, own};
use super::view::{Role, Value, View, as_f64, count, shown};
use crate::capture::{Named, Report, VfcStats};
use crate::facts::id::{MQ_IOPS_MIN, MQ_QUEUES_USUAL};
use crate::trace::{Figure, Term, number};

const LOAD: &str = "cat /proc/sys/adapter/vfc/vfchostN/stats on the VIOS twice, each with date; or fcstat -D fcsN twice; with num_io_queues, num_per_range and lsmap -all -npiv";
const STATS: &str = "cat /proc/sys/adapter/vfc/vfchostN/stats on the VIOS, as root";

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "mq-too-many-queues",
        about: "more queues than the load can fill",
        on: Kind::Path,
        evidence: LOAD,
        weight: 1.0,
        applies: paths::new_enough,
        judge: paths::too_many,
    },
    Rule {
        name: "mq-too-few-queues",
        about: "fewer queues than the load needs",
        on: Kind::Path,
        evidence: LOAD,
        weight: 1.0,
        applies: paths::new_enough,
        judge: paths::too_few,
    },
    Rule {
        name: "mq-shared-port",
        about: "a busy port that is shared has fewer queues than it can have",
        on: Kind::Port,
        evidence: LOAD,
        weight: 1.0,
        applies: of_shared,
        judge: shared_port,
    },
    Rule {
        name: "mq-single-queue",
        about: "a single queue where several are possible",
        on: Kind::Server,
        evidence: "lsdev -dev vfchostN -attr and cat /proc/sys/adapter/vfc/vfchostN/stats on the VIOS",
        weight: 1.0,
        applies: of_several_queues,
        judge: single_queue,
    },
    Rule {
        name: "mq-single-queue",
        about: "a single queue where several are possible",
        on: Kind::Port,
        evidence: "num_io_queues of each fcsN (lsdev -dev fcsN -attr, lsattr -El fcsN)",
        weight: 1.0,
        applies: |view, port| {
            let known = view.number(port.host, port.device, "num_io_queues").is_some();
            Applicability::where_that(known && !view.too_old_for(port.host, FEATURE))
        },
        judge: one_queue_configured,
    },
    Rule {
        name: "mq-local-commands",
        about: "queues take commands from the global queue",
        on: Kind::Server,
        evidence: STATS,
        weight: 1.0,
        applies: of_statistics,
        judge: |view, server, out| pool_finding(view, server, Pool::Commands, out),
    },
    Rule {
        name: "mq-local-buffers",
        about: "commands take buffers from the global pool",
        on: Kind::Server,
        evidence: STATS,
        weight: 1.0,
        applies: of_statistics,
        judge: |view, server, out| pool_finding(view, server, Pool::Buffers, out),
    },
];

/// The feature of the data files whose levels say whether a system can have several queues.
pub(super) const FEATURE: &str = "npiv-multi-queue";

pub(super) const RESTART: &str = "It takes effect when the adapter is configured again; on a VIOS port, when the VIOS is restarted.";

/// The adapter's own statistics have to be there.
fn of_statistics<'a>(view: &View<'a>, server: &Object<'a>) -> Applicability {
    match vfc_stats(view, server) {
        Some(_) => Applicability::Judged,
        None => Applicability::Lacking {
            why: "its statistics were not captured".to_owned(),
            capture: format!(
                "cat /proc/sys/adapter/vfc/{}/stats on {}, as root",
                server.device,
                view.spoken(server.host)
            ),
        },
    }
}

/// A VIOS whose level can have several queues.
fn of_several_queues<'a>(view: &View<'a>, server: &Object<'a>) -> Applicability {
    if view.role(server.host) == Role::Client || view.too_old_for(server.host, FEATURE) {
        return Applicability::Elsewhere;
    }
    match view.attribute(server.host, server.device, "limit_intr") {
        Some(_) => Applicability::Judged,
        None => of_statistics(view, server),
    }
}

/// A port of a VIOS that two clients or more use.
fn of_shared(view: &View<'_>, port: &Object<'_>) -> Applicability {
    if view.number(port.host, port.device, "num_io_queues").is_none()
        || view.is_virtual(port.host, port.device, view.fcstats(port.host, port.device))
            == Some(true)
        || view.role(port.host) == Role::Client
    {
        return Applicability::Elsewhere;
    }
    match clients_on(view.npiv(), port.host, port.device) {
        Some(clients) => Applicability::where_that(clients.len() >= 2),
        None => Applicability::Lacking {
            why: "whether clients share it was not captured".to_owned(),
            capture: format!("lsmap -all -npiv on {}", view.spoken(port.host)),
        },
    }
}

/// `mq-shared-port`: several clients on a busy port that has fewer queues than it can have.
fn shared_port(view: &View<'_>, port: &Object<'_>, out: &mut Out) {
    const RULE: &str = "mq-shared-port";
    let Some((queues, at)) = view.number(port.host, port.device, "num_io_queues") else { return };
    let clients = clients_on(view.npiv(), port.host, port.device).map_or(0, |all| all.len());
    let limits = view.allowed(port.host, port.device, &["fcs"], "num_io_queues");
    let Some(max) = limits.max.filter(|max| queues < as_f64(*max)) else { return };
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    let load = Load::of_port(view.fcstats(port.host, port.device));
    let busy = load.heavy(view);
    let confidence = match (load.iops.is_some(), busy) {
        (_, true) => 0.85,
        // A load that is known and low asks for nothing.
        (true, false) => return,
        (false, false) if clients >= MANY_CLIENTS => 0.5,
        (false, false) if queues < usual => 0.6,
        (false, false) => {
            out.lack(
                "the load",
                format!("fcstat -D {} on {} twice", port.device, view.spoken(port.host)),
            );
            return;
        }
    };
    let severity = if busy { Severity::Warning } else { Severity::Note };
    let lines = view
        .npiv()
        .iter()
        .filter(|map| map.vios == port.host && map.port() == Some(port.device))
        .map(|map| map.map.at);
    let mut draft = Draft::new(RULE, port.host, port.label.clone(), severity, format!("{clients} clients share {} queues", number(queues)))
        .see([at])
        .see(lines)
        .because("A physical port that several virtual adapters use should have the greatest number of queues: their queues meet on it.")
        .figure(Figure::plain(Term::new("clients on the port", count(clients), "clients", crate::trace::Origin::Computed)))
        .figure(shown("queues of the port", queues, "queues", at));
    draft = limits
        .max_term("greatest number of queues", "queues")
        .map(Figure::plain)
        .into_iter()
        .fold(draft, Draft::figure);
    if !busy {
        draft = draft.because("The load of the port is not among the captures, so this is a note: below 150,000 IOPS in all it would gain nothing.");
    }
    let change = Change::new(view, port.host, port.device).set("num_io_queues", max.to_string());
    out.push(
        load.show(draft, Some((queues, at)))
            .change(&change)
            .effect(format!("The clients' queues no longer wait for each other at the port. {RESTART}"))
            .harm("One more thread for each queue, and memory, on the VIOS; it has to be restarted, so do one VIOS of the pair at a time.")
            .weigh(confidence, 1.1),
    );
}

/// The statistics of a virtual adapter, as captured last.
fn vfc_stats<'a>(view: &View<'a>, server: &Object<'a>) -> Option<&'a VfcStats> {
    let own = |stats: &&VfcStats| {
        stats.head.device.as_ref().is_some_and(|device| device.value == server.device)
    };
    view.of(server.host).filter_map(Report::vfc_stats).filter(own).last()
}

/// `mq-single-queue`: a single queue between client and VIOS where several are possible.
fn single_queue<'a>(view: &View<'a>, server: &Object<'a>, out: &mut Out) {
    let limited = view
        .attribute(server.host, server.device, "limit_intr")
        .filter(|attribute| attribute.value.eq_ignore_ascii_case("true"));
    let Some(attribute) = limited else {
        if let Some(stats) = vfc_stats(view, server) {
            one_channel(view, server, stats, out);
        }
        return;
    };
    // One queue is what little I/O costs least with: it was chosen, or does no harm.
    let rate = fact(view.facts, MQ_IOPS_MIN) / AVERAGE_HIDES;
    let load = paths::load_of(view, server).filter(|load| load.measured());
    let iops = load.and_then(Load::iops);
    if iops.is_some_and(|iops| iops < rate) {
        return;
    }
    let change = Change::new(view, server.host, server.device).set("limit_intr", "false");
    let mut draft = Draft::new("mq-single-queue", server.host, server.label.clone(), Severity::Warning, "limit_intr allows a single queue".into())
        .see([attribute.at])
        .because("limit_intr=true overrides every other attribute: the adapter has one queue, whatever client and port could do.")
        .change(&change)
        .effect("Client and VIOS agree on several queues again, up to the least of client, adapter and port, once the VIOS is restarted.")
        .harm("More interrupt sources and threads on the VIOS. If it was set on purpose, for a client with little I/O, leave it.")
        .weigh(0.85, 0.9);
    if iops.is_none() {
        let (device, on) = (server.device, view.spoken(server.host));
        draft = draft.in_doubt(format!("whether its load asks for several queues: cat /proc/sys/adapter/vfc/{device}/stats on {on}, twice under load"));
    }
    out.push(draft);
}

/// An adapter whose statistics show one channel although more are configured around it.
fn one_channel(view: &View<'_>, server: &Object<'_>, stats: &VfcStats, out: &mut Out) {
    let (host, device) = (server.host, server.device);
    let Some(channels) = stats.channels.filter(|read| read.value <= 1) else { return };
    let map = view.npiv().iter().find(|map| map.vios == host && map.map.name == device);
    if map.and_then(|map| map.client).is_some_and(|client| view.too_old_for(client, FEATURE)) {
        return;
    }
    let port = map.and_then(Npiv::port);
    let of_port = port.and_then(|port| view.number(host, port, "num_io_queues"));
    let of_client =
        map.and_then(|map| view.number(map.client?, map.client_adapter()?, "num_io_queues"));
    let of_vios = view.number(host, device, "num_per_range").filter(|(value, _)| *value > 0.0);
    let of_vios = of_vios.or_else(|| view.number(host, "viosnpiv0", "num_per_range"));
    let Some((queues, at)) = of_port.or(of_vios) else {
        let port = port.unwrap_or("fcsN");
        out.lack(
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
        Draft::new("mq-single-queue", host, server.label.clone(), if old { Severity::Note } else { Severity::Warning }, "a single queue is in use where several are configured".into())
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
fn one_queue_configured(view: &View<'_>, port: &Object<'_>, out: &mut Out) {
    let one = view.number(port.host, port.device, "num_io_queues");
    let Some((queues, at)) = one.filter(|(queues, _)| *queues == 1.0) else { return };
    let load = paths::load_through(view, port.host, port.device);
    let usual = fact(view.facts, MQ_QUEUES_USUAL);
    let slow = load.iops().is_some() && !load.heavy(view);
    let change =
        Change::new(view, port.host, port.device).set("num_io_queues", format!("{usual:.0}"));
    let draft = Draft::new(
        "mq-single-queue",
        port.host,
        port.label.clone(),
        if slow { Severity::Note } else { Severity::Warning },
        "num_io_queues is 1".into(),
    )
    .see([at])
    .because(
        "The adapter knows num_io_queues, so its level can have several queues; one is configured.",
    );
    let draft = if slow {
        draft.because("The load seen is below 150,000 IOPS, where several queues bring little.")
    } else {
        draft
    };
    out.push(
        load.show(draft, Some((queues, at)))
            .change(&change)
            .effect(format!("Several processors work on the I/O at a time. {RESTART}"))
            .harm("More threads and memory on the VIOS. If one queue was chosen on purpose, for a client with little I/O, leave it.")
            .weigh(if slow { 0.4 } else { 0.75 }, 0.9),
    );
}

#[derive(Clone, Copy)]
enum Pool {
    Commands,
    Buffers,
}

impl Pool {
    /// How often it was asked, by the statistics' own words.
    fn taken(self, stats: &VfcStats) -> Option<&Named> {
        let of = |named: &&Named| {
            let name = named.name.to_ascii_lowercase();
            let buffers = name.contains("buf");
            name.contains("global")
                && match self {
                    Self::Buffers => buffers,
                    Self::Commands => {
                        !buffers && (name.contains("command") || name.contains("cmd"))
                    }
                }
        };
        stats.named.iter().filter(of).max_by_key(|named| named.value)
    }
}

/// `mq-local-commands` and `mq-local-buffers`: what queues take from global pools, against the commands they received.
fn pool_finding<'a>(view: &View<'a>, server: &Object<'a>, pool: Pool, out: &mut Out) {
    let (rule, attribute, what) = match pool {
        Pool::Commands => ("mq-local-commands", "num_local_cmds", "commands"),
        Pool::Buffers => ("mq-local-buffers", "bufs_per_cmd", "buffers"),
    };
    let host = server.host;
    let Some(stats) = vfc_stats(view, server) else { return };
    let Some(named) = pool.taken(stats) else { return };
    let received: f64 = stats.commands_received.iter().map(|read| as_f64(read.value)).sum();
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
    let now = view.number(host, "viosnpiv0", attribute);
    let draft = Draft::new(rule, host, server.label.clone(), Severity::Warning, format!("many {what} come from the global pool"))
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
            let doubled = match now {
                Some((value, at)) => Figure::new("proposed", what, "configured × 2", vec![Term::read("configured", value, what, at)]),
                None => Figure::plain(Term::new("proposed", as_f64(target), what, crate::trace::Origin::Computed)),
            };
            draft
                .change(&Change::new(view, host, "viosnpiv0").set(attribute, target.to_string()))
                .figure(doubled)
                .effect("Threads find their own and no longer meet at the lock. Whether the VIOS must be restarted for it is said in its documentation; look at the statistics again afterwards.")
        }
        None => draft.effect(format!("{attribute} is already at its greatest value. Next step: spread the clients over more virtual adapters or more VIOS.")),
    }
}
