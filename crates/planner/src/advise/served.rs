//! A running Trunkline server, by two readings of its statistics.
//!
//! What it counts has its own meaning (`docs/guide/statistics.md`) and its own thresholds (`facts/server.toml`): commands
//! that waited, and for what; channels that are busy all the time, and who keeps their number; devices that are slow;
//! commands that failed. Only what happened between the readings counts. Elements that a port lacks are the port's: one finding, whoever waits.

use super::finding::{Draft, NoCommand, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule, always};
use super::thresholds::fact;
use super::view::{View, as_f64};
use crate::capture::{At, Elements, Read, Report, Served, ServerStats};
use crate::facts::id::{
    SERVER_BUSY_PERCENT, SERVER_COMMANDS_MIN, SERVER_DEVICE_MS_MAX, SERVER_WAITED_PERCENT,
};
use crate::trace::{Figure, Term};

const EVIDENCE: &str = "trunkline plan advise --server, which reads the statistics twice";

/// A rule on one reason for which commands wait.
macro_rules! wait {
    ($name:literal, $about:literal, $reason:ident) => {
        Rule {
            name: $name,
            about: $about,
            on: Kind::Served,
            evidence: EVIDENCE,
            weight: 1.0,
            applies: worked,
            judge: |view, adapter, out| waits(view, adapter, &$reason, out),
        }
    };
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "server-no-space",
        about: "commands fail because the file system under a volume is full",
        on: Kind::Served,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: always,
        judge: |view, adapter, out| failed(view, adapter, &NO_SPACE, out),
    },
    Rule {
        name: "server-volume-gone",
        about: "commands fail because the file or device of a volume is gone",
        on: Kind::Served,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: always,
        judge: |view, adapter, out| failed(view, adapter, &GONE, out),
    },
    wait!("server-throttled", "commands wait for a limit of their volume", THROTTLED),
    wait!(
        "server-no-command",
        "commands wait since their adapter's elements are all used",
        NO_COMMAND
    ),
    wait!(
        "server-no-element",
        "commands wait since their port's elements are all lent",
        NO_ELEMENT
    ),
    wait!("server-no-buffer", "commands wait for a bounce buffer or a segment list", NO_BUFFER),
    wait!("server-back-end-full", "commands wait for a volume that takes no more", BACK_END_FULL),
    Rule {
        name: "server-device-slow",
        about: "the device behind a volume is slow",
        on: Kind::Served,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: worked,
        judge: slow_device,
    },
    Rule {
        name: "server-channels-full",
        about: "the channels of an adapter have no time left, and it may have no more",
        on: Kind::Served,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: worked,
        judge: full_channels,
    },
];

/// An adapter that runs, in its two readings.
struct Meanwhile<'a> {
    before: Option<&'a Served>,
    after: &'a Served,
    seconds: Term,
}

impl<'a> Meanwhile<'a> {
    fn of(view: &View<'a>, adapter: &Object<'a>) -> Option<Self> {
        let readings: Vec<&'a ServerStats> =
            view.of(adapter.host).filter_map(Report::server).collect();
        let (last, first) = (readings.last()?, readings.first()?);
        let find = |reading: &'a ServerStats| {
            reading.adapters.iter().find(|served| served.name == adapter.device)
        };
        let seconds = last.seconds.value - first.seconds.value;
        Some(Self {
            before: (readings.len() > 1).then(|| find(first)).flatten(),
            after: find(last)?,
            seconds: Term::read("elapsed", seconds, "s", last.seconds.at),
        })
    }

    /// What a counter grew by; one that began anew counts from zero.
    fn grown(&self, pick: impl Fn(&Served) -> Option<Read<u64>>) -> Option<(u64, At)> {
        let after = pick(self.after)?;
        let before = self.before.and_then(pick).map_or(0, |read| read.value);
        Some((after.value.checked_sub(before).unwrap_or(after.value), after.at))
    }

    fn counter(&self, name: &str) -> (u64, At) {
        self.grown(|served| served.counters.get(name).copied()).unwrap_or((0, self.after.at))
    }

    /// Where a counter stood in both readings.
    fn lines(&self, name: &str) -> impl Iterator<Item = At> + use<'a> {
        let both = [self.before, Some(self.after)]
            .map(|served| served.and_then(|served| served.counters.get(name)).map(|read| read.at));
        both.into_iter().flatten()
    }
}

/// Enough work to judge shares and averages.
fn worked<'a>(view: &View<'a>, adapter: &Object<'a>) -> Applicability {
    let least = fact(view.facts, SERVER_COMMANDS_MIN);
    let Some(now) = Meanwhile::of(view, adapter) else { return Applicability::Elsewhere };
    match as_f64(now.counter("commands_received").0) >= least {
        true => Applicability::Judged,
        false => Applicability::Lacking {
            why: format!("too little work to judge: fewer than {least:.0} commands"),
            capture: "trunkline plan advise --server --seconds 60, under load".to_owned(),
        },
    }
}

/// A reason for which commands fail that is the server's, not the client's.
struct Failure {
    rule: &'static str,
    counter: &'static str,
    why: &'static str,
    remedy: &'static str,
}

const NO_SPACE: Failure = Failure {
    rule: "server-no-space",
    counter: "errors_no_space",
    why: "the file system under it is full",
    remedy: "Make room on the file system of the volume's file; the guest must try again.",
};

const GONE: Failure = Failure {
    rule: "server-volume-gone",
    counter: "errors_gone",
    why: "its file or device is gone",
    remedy: "Bring the device back, then connect the client again.",
};

fn failed<'a>(view: &View<'a>, adapter: &Object<'a>, failure: &Failure, out: &mut Out) {
    let Some(now) = Meanwhile::of(view, adapter) else { return };
    let (failed, at) = now.counter(failure.counter);
    if failed == 0 {
        return;
    }
    let volume = &now.after.volume;
    let of = if volume.is_empty() { "its volume".to_owned() } else { format!("volume {volume}") };
    let title = format!("commands fail, {of}: {}", failure.why);
    out.push(
        Draft::new(failure.rule, adapter.host, adapter.label.clone(), Severity::Critical, title)
            .see(now.lines(failure.counter))
            .because(format!("`{}` grew between the readings.", failure.counter))
            .figure(Figure::plain(Term::read("failed", as_f64(failed), "commands", at)))
            .unknown(look_up(format!("the volume: trunkline volume show {volume}")))
            .effect(failure.remedy)
            .harm("None.")
            .weigh(0.98, 1.2),
    );
}

/// What shows more, where no command mends it.
fn look_up(what: String) -> NoCommand {
    NoCommand { look_up: vec![what], ..NoCommand::default() }
}

/// A reason for which commands wait in the server. A modelled delay is meant to be waited for.
struct Wait {
    rule: &'static str,
    counter: &'static str,
    severity: Severity,
    what_for: fn(&Served) -> String,
    /// Whose elements are too few, where that is what they wait for.
    elements: fn(&Served) -> Option<Short<'_>>,
    effect: &'static str,
    harm: &'static str,
}

/// Who has too few elements: the noun of the command line, the name, and how many there are.
type Short<'a> = (&'static str, &'a str, Elements<Read<u64>>);

/// Waits for something else than an element.
fn no_elements(_: &Served) -> Option<Short<'_>> {
    None
}

const THROTTLED: Wait = Wait {
    rule: "server-throttled",
    counter: "wait_throttled",
    severity: Severity::Note,
    what_for: |served| {
        let limits: Vec<String> =
            served.limits.iter().map(|(name, read)| format!("{name}={}", read.value)).collect();
        match limits.is_empty() {
            true => format!("the limit of volume {}", served.volume),
            false => format!("{} of volume {}", limits.join(" and "), served.volume),
        }
    },
    elements: no_elements,
    effect: "If the limit is not meant to be felt, raise it, or take it off (`trunkline volume set VOLUME --unset ATTRIBUTE`): then they do not wait.",
    harm: "Other clients of the same device lose what the limit kept for them.",
};

const NO_COMMAND: Wait = Wait {
    rule: "server-no-command",
    counter: "wait_no_command",
    severity: Severity::Warning,
    what_for: |_| "a command element of their adapter".to_owned(),
    elements: |served| Some(("adapter", &served.name, served.elements?)),
    effect: "With a higher `num_cmd_elems` of the adapter (it takes effect at once) more of them are active at a time.",
    harm: "More commands at the device at once, which another adapter of the port may lack.",
};

/// The client asks for nothing that its own attribute keeps from it, so that attribute is not named.
const NO_ELEMENT: Wait = Wait {
    rule: "server-no-element",
    counter: "wait_no_adapter_element",
    severity: Severity::Warning,
    what_for: |_| "a command element of their port, which has lent all".to_owned(),
    elements: |served| {
        let port = served.port.as_ref()?;
        Some(("port", &port.name, port.elements))
    },
    effect: "With a higher `num_cmd_elems` of the port (it takes effect at once), or with fewer adapters on it, they do not wait; `share` says who waits less. A higher `num_cmd_elems` of an adapter gives nothing.",
    harm: "More commands at the devices behind the port at once.",
};

const NO_BUFFER: Wait = Wait {
    rule: "server-no-buffer",
    counter: "wait_no_dma",
    severity: Severity::Warning,
    what_for: |_| "a bounce buffer or a long segment list".to_owned(),
    elements: no_elements,
    effect: "A client whose buffers are aligned to the volume's block size, or a volume with buffered I/O (`direct` false), needs none; so do requests of fewer segments (`seg_max`).",
    harm: "Buffered I/O takes memory of the host and answers before the device has the data.",
};

const BACK_END_FULL: Wait = Wait {
    rule: "server-back-end-full",
    counter: "wait_back_end_full",
    severity: Severity::Warning,
    what_for: |served| format!("volume {}, which took no more", served.volume),
    elements: no_elements,
    effect: "More channels give the volume more submission queues; a smaller depth in the client keeps the wait there.",
    harm: "More channels take more processor time from others.",
};

fn waits<'a>(view: &View<'a>, adapter: &Object<'a>, wait: &Wait, out: &mut Out) {
    let Some(now) = Meanwhile::of(view, adapter) else { return };
    let ((waits, at), (commands, of)) =
        (now.counter(wait.counter), now.counter("commands_received"));
    let terms = vec![
        Term::read("waits", as_f64(waits), "", at),
        Term::read("commands", as_f64(commands), "", of),
    ];
    let share = Figure::new("waited", "% of the commands", "waits ÷ commands × 100", terms);
    if share.low < fact(view.facts, SERVER_WAITED_PERCENT) {
        return;
    }
    let title = format!("commands wait for {}", (wait.what_for)(now.after));
    let elements = (wait.elements)(now.after);
    let object = match elements {
        Some((_, of, _)) => view.object(adapter.host, of),
        None => adapter.label.clone(),
    };
    let culprit = now.after.port.as_ref().and_then(|port| port.held_up_by.as_ref());
    let culprit = culprit.filter(|_| elements.is_some_and(|(noun, ..)| noun == "port"));
    let held_up =
        |by: &String| format!("{by} has most beyond its part of the port while others wait.");
    let draft = Draft::new(wait.rule, adapter.host, object, wait.severity, title)
        .see(now.lines(wait.counter))
        .see(now.lines("commands_received"))
        .see(now.after.limits.values().map(|read| read.at))
        .because(format!("`{}` of {} grew between the readings.", wait.counter, now.after.name))
        .because(culprit.map(held_up).unwrap_or_default())
        .figure(share)
        .figure(Figure::plain(view.facts.term(SERVER_WAITED_PERCENT, "worth a word from")))
        .effect(wait.effect)
        .harm(wait.harm)
        .weigh(0.9, 1.0);
    out.push(match elements {
        Some((noun, name, elements)) => more_elements(draft, noun, name, &elements),
        None => draft
            .unknown(look_up(format!("where the time goes: trunkline stats {}", now.after.name))),
    });
}

/// The command that gives an adapter, or a port, the elements that its marks ask for.
fn more_elements(draft: Draft, noun: &str, name: &str, elements: &Elements<Read<u64>>) -> Draft {
    let Elements { now, most, active_max, pending_max } = elements;
    let term = |name, read: &Read<u64>| Term::read(name, as_f64(read.value), "", read.at);
    let marks = vec![
        term("high-water active", active_max),
        term("high-water pending", pending_max),
        term("the most that may be set", most),
    ];
    let asked = active_max.value.saturating_add(pending_max.value).min(most.value);
    let formula = "min(high-water active + high-water pending, the most that may be set)";
    let draft = draft
        .see([now, active_max, pending_max].map(|read| read.at))
        .figure(Figure::new("elements by the high-water rule", "elements", formula, marks))
        .figure(Figure::plain(term("num_cmd_elems now", now)));
    if asked > now.value {
        let set = |value| format!("trunkline {noun} set {name} --num-cmd-elems {value}");
        return draft.run(set(asked), "on this host", set(now.value));
    }
    let why = if now.value >= most.value {
        format!("It has the most that may be set, {}: less at once is what helps.", most.value)
    } else {
        "Its high-water marks fit into what it has now: they do not say how much more it needs."
            .to_owned()
    };
    draft
        .because(why)
        .unknown(look_up(format!("who waits, and for whom: trunkline {noun} explain {name}")))
}

/// The time from handing a command to the device to its completion, on average between the readings.
fn slow_device<'a>(view: &View<'a>, adapter: &Object<'a>, out: &mut Out) {
    let Some(now) = Meanwhile::of(view, adapter) else { return };
    let commands = now.grown(|served| served.device_commands);
    let Some(((count, count_at), (sum, sum_at))) = commands.zip(now.grown(|one| one.device_ns))
    else {
        return;
    };
    if as_f64(count) < fact(view.facts, SERVER_COMMANDS_MIN) {
        return;
    }
    let terms = vec![
        Term::read("time", as_f64(sum), "ns", sum_at),
        Term::read("commands", as_f64(count), "commands", count_at),
    ];
    let service = Figure::new("service time", "ms on average", "time ÷ commands ÷ 1000000", terms);
    if service.low <= fact(view.facts, SERVER_DEVICE_MS_MAX) {
        return;
    }
    let volume = &now.after.volume;
    let label = if volume.is_empty() { adapter.label.clone() } else { format!("volume {volume}") };
    out.push(
        Draft::new("server-device-slow", adapter.host, label, Severity::Warning, "its device is slow".into())
            .see([count_at, sum_at])
            .because("The time counts from handing a command to the device to its completion; waits in the server are not in it.")
            .figure(service)
            .figure(Figure::plain(view.facts.term(SERVER_DEVICE_MS_MAX, "slow from")))
            .unknown(look_up(format!("how it is spread: trunkline stats {}", now.after.name)))
            .effect("A faster device, or less load on it, mends it; no attribute of the server does.")
            .harm("None.")
            .weigh(0.9, 1.0),
    );
}

/// All channels that serve an adapter work all the time, and the adapter may not have more.
fn full_channels<'a>(view: &View<'a>, adapter: &Object<'a>, out: &mut Out) {
    let Some(now) = Meanwhile::of(view, adapter) else { return };
    let busy = now.after.busy_ns.keys();
    let busy = busy.filter_map(|channel| now.grown(|served| served.busy_ns.get(channel).copied()));
    let Some((least, at)) = busy.min_by_key(|(busy, _)| *busy) else { return };
    let terms = vec![
        Term::read("working", as_f64(least), "ns of the least busy channel", at),
        now.seconds.clone(),
    ];
    let share = Figure::new("busy", "%", "working ÷ 1000000000 ÷ elapsed × 100", terms);
    let served = now.after;
    let may_have_more = served.channels.value < served.channels_max.value;
    // Not a number, where both readings are of one moment.
    let full = share.low >= fact(view.facts, SERVER_BUSY_PERCENT);
    if may_have_more || !full {
        return;
    }
    out.push(
        Draft::new("server-channels-full", adapter.host, adapter.label.clone(), Severity::Warning, "its channels have no time left".into())
            .see([at, served.channels.at, served.channels_max.at])
            .because(format!(
                "Each of the {} channels that serve it works all the time, and it may not have more: the {} sets the number.",
                served.busy_ns.len(),
                served.limited_by
            ))
            .figure(share)
            .figure(Figure::plain(view.facts.term(SERVER_BUSY_PERCENT, "full from")))
            .unknown(look_up(format!("who sets the number: trunkline adapter explain {}", served.name)))
            .effect(format!("To lift it: {}.", served.remedy))
            .harm("More channels take more processor time from others.")
            .weigh(0.9, 1.0),
    );
}
