//! The three waits of an adapter, told apart: no command resource (a client's virtual adapter), no adapter elements
//! (the physical port), no DMA resource (memory for transfers).
//!
//! Two published rules size `num_cmd_elems`, and both are shown side by side:
//! - D. Braden: at least high-water active + high-water pending.
//! - S. Sangeek and others: raise it while the resource counter grows.
//!
//! They measure different things. The high-water marks are the worst moment since the reset and never come down; the
//! counter tells how often a request waited. So a growing counter decides; marks alone, with a counter that stands
//! still, are a peak that is over; a counter since the reset against marks that fit needs a second capture.

mod dma;
mod idle;
mod shares;
mod sisters;

use std::collections::BTreeMap;

use super::change::Change;
use super::finding::{Draft, Severity};
use super::measure::{Counter, Waits, requests, waits, waits_from};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::thresholds;
use super::view::{Limits, Role, Value, View, as_f64};
use crate::capture::{ClientRow, Fcstat, QueueUse, Read, Report};
use crate::trace::{Figure, Term, number};

/// One adapter's use of its resources.
pub(super) struct Usage<'a> {
    pub(super) host: usize,
    pub(super) device: &'a str,
    /// Whether it is a client's virtual adapter; `None` when nothing tells.
    pub(super) is_virtual: Option<bool>,
    no_dma: Option<Counter>,
    no_elements: Option<Counter>,
    no_command: Option<Counter>,
    requests: Vec<Counter>,
    /// The high-water marks, where the report has them.
    active: Option<Read<u64>>,
    pending: Option<Read<u64>>,
}

const EVIDENCE: &str = "fcstat -D fcsN, twice under load, some minutes apart";

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "fc-virtual-elements",
        about: "a client's virtual adapter has too few command elements",
        on: Kind::Port,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: |view, port| match kind(view, port) {
            Some(false) => Applicability::Elsewhere,
            _ => captured(view, port),
        },
        judge: |view, port, out| {
            let Some(usage) = view.usage(port) else { return };
            elements(view, usage, Layer::Virtual, usage.no_command, out);
        },
    },
    Rule {
        name: "fc-physical-elements",
        about: "a physical port has too few command elements",
        on: Kind::Port,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: captured,
        judge: |view, port, out| {
            let Some(usage) = view.usage(port) else { return };
            match usage.is_virtual {
                Some(true) => virtual_port(view, usage, out),
                Some(false) => physical_port(view, usage, out),
                // Without a device type the counter names the layer by itself.
                None => elements(view, usage, Layer::Physical, usage.no_elements, out),
            }
        },
    },
    Rule {
        name: "fc-dma-resource",
        about: "transfers wait for DMA memory",
        on: Kind::Port,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: captured,
        judge: |view, port, out| {
            if let Some(usage) = view.usage(port) {
                dma::dma(view, usage, out);
            }
        },
    },
    Rule {
        name: "fc-port-oversubscribed",
        about: "the clients of a port may have more commands active than the port",
        on: Kind::Port,
        evidence: "fcstat -D fcsN on the VIOS twice, lsmap -all -npiv, num_cmd_elems of port and clients",
        weight: 1.1,
        applies: |view, port| match view.role(port.host) {
            Role::Client => Applicability::Elsewhere,
            _ => of_physical(view, port),
        },
        judge: |view, port, out| {
            if let Some(usage) = view.usage(port) {
                super::fc::oversubscribed(view, usage, out);
            }
        },
    },
];

/// Whether a port is a client's virtual adapter; `None` when nothing tells.
fn kind(view: &View<'_>, port: &Object<'_>) -> Option<bool> {
    match view.usage(port) {
        Some(usage) => usage.is_virtual,
        None => view.is_virtual(port.host, port.device, &[]),
    }
}

/// Its counters have to be there.
fn captured(view: &View<'_>, port: &Object<'_>) -> Applicability {
    match view.usage(port) {
        Some(_) => Applicability::Judged,
        None => Applicability::Lacking {
            why: "its counters were not captured".to_owned(),
            capture: format!("fcstat -D {} on {}, twice", port.device, view.spoken(port.host)),
        },
    }
}

/// A rule for ports that have a link; a virtual adapter has none.
pub(super) fn of_physical(view: &View<'_>, port: &Object<'_>) -> Applicability {
    match kind(view, port) {
        Some(true) => Applicability::Elsewhere,
        _ => captured(view, port),
    }
}

/// Every adapter that was captured, from `fcstat` and from the rows of `fcstat -client`.
pub(super) fn usages<'a>(view: &View<'a>) -> Vec<Usage<'a>> {
    let mut all = Vec::new();
    for ((host, device), samples) in view.fc_ports() {
        let is_virtual = view.is_virtual(*host, device, samples);
        all.push(from_fcstat(*host, device, is_virtual, samples));
    }
    let mut rows: BTreeMap<(usize, &str), Vec<(bool, &ClientRow)>> = BTreeMap::new();
    for (vios, report) in view.reports() {
        let Report::FcstatClient(report) = report else { continue };
        for (own, row) in report.owned() {
            let host = if own { Some(vios) } else { view.model.named_at(row.at) };
            if let Some(host) = host {
                rows.entry((host, &row.device)).or_default().push((own, row));
            }
        }
    }
    for ((host, device), samples) in rows {
        let known = |usage: &Usage<'_>| (usage.host, usage.device) == (host, device);
        let Some((own, _)) = samples.first().copied().filter(|_| !all.iter().any(known)) else {
            continue;
        };
        let rows: Vec<&ClientRow> = samples.iter().map(|(_, row)| *row).collect();
        all.push(from_rows(host, device, own, &rows));
    }
    all
}

fn greater(one: Option<Read<u64>>, two: Option<Read<u64>>) -> Option<Read<u64>> {
    one.into_iter().chain(two).max_by_key(|read| read.value)
}

/// A counter, unless it stands in the last line of a report that ends early: it may be cut there.
fn whole(fcstat: &Fcstat, counter: Option<Read<u64>>) -> Option<Read<u64>> {
    let ends = fcstat.head.incomplete.is_some() && !fcstat.head.is_filtered();
    let cut = |read: &Read<u64>| ends && read.at.line == fcstat.head.last;
    counter.filter(|read| !cut(read))
}

fn from_fcstat<'a>(
    host: usize,
    device: &'a str,
    is_virtual: Option<bool>,
    samples: &[&Fcstat],
) -> Usage<'a> {
    let high = |pick: fn(&QueueUse) -> Option<Read<u64>>| {
        let of =
            |fcstat: &&Fcstat| greater(pick(&fcstat.adapter_queue), pick(&fcstat.protocol_queue));
        samples.iter().rev().find_map(of)
    };
    Usage {
        host,
        device,
        is_virtual,
        no_dma: Counter::over(samples, |fcstat| whole(fcstat, fcstat.resources.no_dma)),
        no_elements: Counter::over(samples, |fcstat| whole(fcstat, fcstat.resources.no_elements)),
        no_command: Counter::over(samples, |fcstat| whole(fcstat, fcstat.resources.no_command)),
        requests: requests(samples),
        active: high(|queue| queue.active_high),
        pending: high(|queue| queue.pending_high),
    }
}

fn from_rows<'a>(host: usize, device: &'a str, own: bool, rows: &[&ClientRow]) -> Usage<'a> {
    let read = |value: fn(&ClientRow) -> Option<u64>| {
        Counter::over(rows, move |row| value(row).map(|value| Read { value, at: row.at }))
    };
    let requests = [read(|row| Some(row.input_requests)), read(|row| Some(row.output_requests))];
    Usage {
        host,
        device,
        is_virtual: Some(!own),
        no_dma: read(|row| row.no_dma),
        no_elements: read(|row| row.no_elements),
        no_command: read(|row| row.no_command),
        requests: requests.into_iter().flatten().collect(),
        active: None,
        pending: None,
    }
}

/// Which layer is short of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Virtual,
    Physical,
}

impl Layer {
    fn rule(self) -> &'static str {
        match self {
            Self::Virtual => "fc-virtual-elements",
            Self::Physical => "fc-physical-elements",
        }
    }

    fn counter(self) -> &'static str {
        match self {
            Self::Virtual => "No Command Resource Count",
            Self::Physical => "No Adapter Elements Count",
        }
    }

    /// The kinds of device of the data files whose range applies.
    fn kinds(self, configured: Option<f64>) -> &'static [&'static str] {
        match self {
            Self::Physical => &["fcs"],
            // Below the least value of multi-queue levels it can only be an adapter of the levels before.
            Self::Virtual if configured.is_some_and(|now| now < 512.0) => &["fcs-client-single"],
            Self::Virtual => &["fcs-client"],
        }
    }
}

/// The physical port behind a client's adapter, where a mapping tells it.
fn port_behind<'a>(view: &View<'a>, usage: &Usage<'_>) -> Option<(usize, &'a str)> {
    let of_it = |map: &&super::mapping::Npiv<'a>| {
        map.client == Some(usage.host) && map.client_adapter() == Some(usage.device)
    };
    let map = view.npiv().iter().find(of_it)?;
    Some((map.vios, map.port()?))
}

/// A client waits behind a port that is short of elements itself, or has fewer than the client is to have: the port comes
/// first, for with more of the client's commands it is shorter still.
fn port_first(view: &View<'_>, usage: &Usage<'_>, mut draft: Draft, target: Option<f64>) -> Draft {
    let Some((vios, port)) = port_behind(view, usage) else { return draft };
    let object = view.object(vios, port);
    let of_port = |one: &&Usage<'_>| (one.host, one.device) == (vios, port);
    if view.usages().iter().find(of_port).is_some_and(|one| one.pressure().is_some()) {
        draft.waits_for(
            &format!(
                "{object}, through which it goes, is short of elements, too: that comes first."
            ),
            format!(
                "whether it still waits when {object} has what it needs: the same captures again"
            ),
        );
        return draft;
    }
    match (view.number(vios, port, "num_cmd_elems"), target) {
        (Some((has, at)), Some(target)) if has < target => {
            draft = draft.see([at]);
            draft.waits_for(
                &format!("{object}, through which it goes, has {} elements: what a client sends beyond that waits there.", number(has)),
                format!("num_cmd_elems of {object}, which is to be {} at least before the client is raised", number(target)),
            );
            draft
        }
        _ => draft,
    }
}

/// Adapter elements belong to the physical port behind it.
fn virtual_port(view: &View<'_>, usage: &Usage<'_>, out: &mut Out) {
    let Some(counter) = usage.no_elements else { return };
    let Some(waits) = waits(Layer::Physical.counter(), counter, &usage.requests) else { return };
    let port = port_behind(view, usage);
    if port.is_some_and(|(vios, port)| view.fc_ports().contains_key(&(vios, port))) {
        return;
    }
    let object = match port {
        Some((vios, port)) => view.object(vios, port),
        None => format!("the port behind {} on {}", usage.device, view.spoken(usage.host)),
    };
    let mut draft = Draft::new("fc-physical-elements", usage.host, object, Severity::Warning, "the physical port runs out of command elements".into())
        .see(waits.counter.places())
        .because(waits.why)
        .unless_over(&waits.counter)
        .because("The counter stands on the client, but adapter elements belong to the physical port on the VIOS. Its own fcstat tells how many it needs.")
        .effect("Take fcstat -D and lsdev -attr of the port on the VIOS; they size num_cmd_elems there.")
        .harm("Nothing is changed here.")
        .weigh(waits.confidence * 0.8, 1.0);
    for figure in waits.figures {
        draft = draft.figure(figure);
    }
    let fcstat = port.map_or_else(
        || "the physical port on the VIOS".to_owned(),
        |(vios, port)| view.object(vios, port),
    );
    out.lack("num_cmd_elems, too", format!("fcstat -D of {fcstat}"));
    out.push(draft);
}

fn physical_port<'a>(view: &View<'a>, usage: &Usage<'a>, out: &mut Out) {
    let judged = |counter: Option<Counter>, name| {
        counter.and_then(|counter| waits(name, counter, &usage.requests))
    };
    let of_elements = judged(usage.no_elements, Layer::Physical.counter()).is_some();
    let of_commands = judged(usage.no_command, Layer::Virtual.counter()).is_some();
    let none = usage.no_elements.is_none_or(|counter| counter.last.value == 0);
    let counter =
        if !of_elements && (of_commands || none) { usage.no_command } else { usage.no_elements };
    let counter = counter.or(usage.no_elements);
    elements(view, usage, Layer::Physical, counter, out);
}

/// The judgement on one counter and the high-water marks beside it.
struct Judged {
    waits: Waits,
    severity: Severity,
    verdict: String,
    confidence: f64,
}

fn elements<'a>(
    view: &View<'a>,
    usage: &Usage<'a>,
    layer: Layer,
    counter: Option<Counter>,
    out: &mut Out,
) {
    let Some(counter) = counter else { return };
    let configured = view.number(usage.host, usage.device, "num_cmd_elems");
    let marks = usage.active.zip(usage.pending);
    let name = match usage.no_command {
        Some(commands) if commands.last.at == counter.last.at => Layer::Virtual.counter(),
        _ => layer.counter(),
    };
    let of: fn(&Usage<'a>) -> Option<Counter> = match name == Layer::Virtual.counter() {
        true => |usage| usage.no_command,
        false => |usage| usage.no_elements,
    };
    let least = sisters::least_share(view, usage, counter, of, &["num_cmd_elems"]);
    let Some(judged) = judge(name, counter, &usage.requests, least, configured, marks) else {
        return;
    };
    if configured.is_none() {
        out.lack("num_cmd_elems", show(view, usage, layer));
    }
    if marks.is_none() {
        out.lack(
            "the high-water marks",
            format!("fcstat -D {} on {}", usage.device, view.spoken(usage.host)),
        );
    }
    let limits = view.allowed(
        usage.host,
        usage.device,
        layer.kinds(configured.map(|(now, _)| now)),
        "num_cmd_elems",
    );
    let draft = element_finding(view, usage, layer, judged, configured, marks, &limits);
    let draft = match idle::sister(view, usage).filter(|_| layer == Layer::Virtual) {
        Some((why, places)) => draft.see(places).because(why),
        None => draft,
    };
    out.push(match shares::most(view, usage).filter(|_| layer == Layer::Physical) {
        Some((why, at)) => draft.see([at]).because(why),
        None => draft,
    });
}

fn show(view: &View<'_>, usage: &Usage<'_>, layer: Layer) -> String {
    match layer {
        Layer::Virtual => format!("lsattr -El {} on {}", usage.device, view.spoken(usage.host)),
        Layer::Physical => view.show_attributes(usage.host, usage.device),
    }
}

/// Both rules side by side, and which of them decides.
fn judge(
    name: &str,
    counter: Counter,
    requests: &[Counter],
    least: f64,
    configured: Option<Value>,
    marks: Option<(Read<u64>, Read<u64>)>,
) -> Option<Judged> {
    let needed = marks.map(|(active, pending)| as_f64(active.value) + as_f64(pending.value));
    let over = needed.zip(configured).map(|(needed, (now, _))| needed > now);
    let severity = Severity::Warning;
    let waits = waits_from(name, counter, requests, least)
        .or_else(|| full(name, counter, configured, marks));
    let waits = waits?;
    let (severity, verdict, confidence) = match (waits.grows, over) {
        (true, Some(true)) => (
            severity,
            "Both rules agree: the counter grows and the high-water marks add up to more than is configured.",
            waits.confidence,
        ),
        (false, Some(true)) => (
            severity,
            "Both rules agree: requests waited, and the high-water marks add up to more than is configured.",
            (waits.confidence + 0.15).min(0.85),
        ),
        (true, Some(false)) => (
            severity,
            "The rules disagree: the high-water marks fit into what is configured, but the counter grows. The growing counter decides: requests wait now. The marks are counted per driver and may miss elements that the adapter keeps for itself.",
            waits.confidence * 0.85,
        ),
        (false, Some(false)) => (
            Severity::Note,
            "The rules disagree: requests waited since the reset, but the high-water marks fit into what is configured. A second capture decides: if the counter grows, raise the elements; if it stands still, leave them.",
            0.45,
        ),
        (_, None) => (
            severity,
            "Only the counter can be judged; what would show the other rule is listed under what was not checked.",
            waits.confidence * 0.9,
        ),
    };
    Some(Judged { waits, severity, verdict: verdict.to_owned(), confidence })
}

/// A count that is small against the traffic, but beside marks that show the adapter full with a queue behind it.
fn full(
    name: &str,
    counter: Counter,
    configured: Option<Value>,
    marks: Option<(Read<u64>, Read<u64>)>,
) -> Option<Waits> {
    let ((now, _), (active, pending)) = configured.zip(marks)?;
    let is_full = as_f64(active.value) >= 0.9 * now && as_f64(pending.value) >= now;
    let grown = counter.growth();
    if !is_full || grown.is_some() || counter.value() < thresholds::ONCE_LEAST / 2.0 {
        return None;
    }
    let why = format!(
        "{name} is {} since the last reset or boot, which is little against the traffic; but the high-water marks show every element in use and a full set of requests waiting behind.",
        number(counter.value())
    );
    Some(Waits { counter, confidence: 0.45, grows: false, figures: Vec::new(), why })
}

/// The elements that the marks ask for, in steps of 256 so that there is some room; the double where they do not ask.
fn wanted(
    configured: Option<Value>,
    marks: Option<(Read<u64>, Read<u64>)>,
    is_full: bool,
) -> (Vec<Figure>, f64) {
    let mut figures = Vec::new();
    let (mut wanted, mut sum_of_marks) = (0.0, 0.0);
    if let Some((active, pending)) = marks {
        let terms = || {
            vec![
                Term::read("high-water active", as_f64(active.value), "commands", active.at),
                Term::read("high-water pending", as_f64(pending.value), "commands", pending.at),
            ]
        };
        let sum = "high-water active + high-water pending";
        let rule = Figure::new("elements by the high-water rule", "elements", sum, terms());
        sum_of_marks = rule.low;
        figures.push(rule);
        let up = Figure::new(
            "with room to the next 256",
            "elements",
            &format!("round_up({sum}, 256)"),
            terms(),
        );
        wanted = up.low;
        figures.push(up);
    }
    if let Some((now, at)) = configured
        && sum_of_marks <= now
    {
        let double = Figure::new(
            "twice what is configured",
            "elements",
            "configured × 2",
            vec![Term::read("configured", now, "elements", at)],
        );
        wanted = f64::max(wanted, double.low);
        figures.push(double);
    } else if let Some((now, at)) = configured.filter(|_| is_full) {
        let double = Figure::new(
            "twice what is configured, to the next 256",
            "elements",
            "round_up(configured × 2, 256)",
            vec![Term::read("configured", now, "elements", at)],
        );
        if double.low > wanted {
            wanted = double.low;
            figures.push(double);
        }
    }
    (figures, wanted)
}

fn element_finding(
    view: &View<'_>,
    usage: &Usage<'_>,
    layer: Layer,
    judged: Judged,
    configured: Option<Value>,
    marks: Option<(Read<u64>, Read<u64>)>,
    limits: &Limits,
) -> Draft {
    let what = match layer {
        Layer::Virtual => "the virtual adapter",
        Layer::Physical => "the physical port",
    };
    let object = view.object(usage.host, usage.device);
    let title = format!("{what} runs out of command elements");
    // Full while requests waited: what the marks add up to is then the least, for the queue before it is not counted.
    let is_full = configured.zip(marks).is_some_and(|((now, _), (active, _))| {
        matches!(layer, Layer::Virtual) && as_f64(active.value) >= 0.95 * now
    });
    let (figures, wanted) = wanted(configured, marks, is_full);
    let places = marks.into_iter().flat_map(|(active, pending)| [active.at, pending.at]);
    let share = judged
        .waits
        .figures
        .iter()
        .find(|figure| figure.unit == "%")
        .map_or(0.0, |figure| figure.low);
    let mut draft = Draft::new(layer.rule(), usage.host, object, judged.severity, title)
        .see(judged.waits.counter.places())
        .see(places)
        .see(configured.map(|(_, at)| at))
        .because(judged.waits.why)
        .unless_over(&judged.waits.counter)
        .because(judged.verdict)
        .weigh(judged.confidence, 1.0 + 0.4 * (share / 10.0).clamp(0.0, 1.0));
    for figure in judged.waits.figures.into_iter().chain(figures) {
        draft = draft.figure(figure);
    }
    let harm = match layer {
        Layer::Virtual => {
            "More commands reach the VIOS and the storage at a time: the latency of other clients of the same port can rise. The sum of all clients' elements should stay within what the physical port has."
        }
        Layer::Physical => {
            "More commands reach the fabric at a time: latency at the storage can rise, also for others. The adapter takes more memory of its system."
        }
    };
    let doubt = in_doubt(view, usage, configured, marks);
    let draft = size(view, usage, layer, draft, configured, wanted, limits).harm(harm);
    let target = limits.fit_or_max(wanted).map(as_f64);
    match (doubt, layer) {
        (Some((why, look_up)), _) => draft.because(why).in_doubt(look_up),
        (None, Layer::Virtual) => port_first(view, usage, draft, target),
        (None, Layer::Physical) => draft,
    }
}

/// Requests waited although what is set was never nearly in use, or more was in use than is set: what is set and what is in
/// force may be two values.
fn in_doubt(
    view: &View<'_>,
    usage: &Usage<'_>,
    configured: Option<Value>,
    marks: Option<(Read<u64>, Read<u64>)>,
) -> Option<(String, String)> {
    let ((now, _), (active, pending)) = configured.zip(marks)?;
    let (active, both) = (as_f64(active.value), as_f64(active.value) + as_f64(pending.value));
    let more = active > now;
    // What waited, too, would have had room: then nearly all of them were in use, if they are in force.
    let share = if both <= now { thresholds::IN_FORCE_SHARE } else { thresholds::IN_FORCE_LEAST };
    let fits = active >= now * share && !more;
    (!fits && !view.shows_in_force(usage.host, usage.device)).then(|| {
        let (active, now) = (number(active), number(now));
        let why = match more {
            true => format!("{active} commands were active at a time, more than the {now} that are set: what is set is not what was in force."),
            false => format!("At most {active} commands were active at a time of the {now} that are set, and requests waited all the same: they may have been set for later and not be in force."),
        };
        let look_up = format!(
            "which value is in force: lsattr -Pl {} as root on {}",
            usage.device,
            view.spoken(usage.host)
        );
        (why, look_up)
    })
}

/// The command for the size wanted, or the next step where the range ends.
fn size(
    view: &View<'_>,
    usage: &Usage<'_>,
    layer: Layer,
    draft: Draft,
    configured: Option<Value>,
    wanted: f64,
    limits: &Limits,
) -> Draft {
    let next = match layer {
        Layer::Virtual => {
            "spread the disks over more virtual adapters, or lower the queue_depth of disks that do not need it"
        }
        Layer::Physical => {
            "move clients to another physical port, or lower num_cmd_elems of clients that do not need it"
        }
    };
    let at_maximum = configured.zip(limits.max).is_some_and(|((now, _), max)| now >= as_f64(max));
    if at_maximum {
        let figure = limits.max_term("greatest value allowed", "elements").map(Figure::plain);
        let draft = figure.into_iter().fold(draft, Draft::figure);
        return draft.effect(format!("num_cmd_elems is already at the greatest value that the adapter allows, so no command raises it. Next step: {next}."));
    }
    let target = limits.fit_or_max(wanted).filter(|target| *target > 0);
    let Some(target) = target.filter(|_| wanted > 0.0) else {
        return draft.effect("Capture num_cmd_elems and the high-water marks (fcstat -D); they tell the value to set.".to_owned());
    };
    let is_virtual = matches!(layer, Layer::Virtual);
    let change = Change::new(view, usage.host, usage.device)
        .needing(is_virtual.then_some("vfc-2048-elements"))
        .set("num_cmd_elems", target.to_string());
    // What was set before, for later, may be more than is needed.
    let later = view.for_later(usage.host, usage.device, "num_cmd_elems");
    let reached = later.and_then(|later| later.number()).map_or(target, |later| later.max(target));
    let mut effect = format!(
        "Up to {} commands are active at a time; the counter stops growing. It takes effect when the adapter is configured again or the system is restarted.",
        number(as_f64(reached))
    );
    let mut draft = draft.change(&change);
    if as_f64(target) < wanted {
        draft = limits
            .max_term("greatest value allowed", "elements")
            .map(Figure::plain)
            .into_iter()
            .fold(draft, Draft::figure);
        effect.push_str(&format!(" More is not allowed; if the counter still grows then, {next}."));
    }
    draft.effect(effect)
}

impl Usage<'_> {
    /// Whether requests wait at this port: its own counters, or marks that show it full.
    pub(super) fn pressure(&self) -> Option<Waits> {
        let judged = |counter: Option<Counter>, name| waits(name, counter?, &self.requests);
        judged(self.no_elements, Layer::Physical.counter())
            .or_else(|| judged(self.no_command, Layer::Virtual.counter()))
    }
}
