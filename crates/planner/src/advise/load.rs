//! One notion of load, for every rule on queues: how many requests a second, and how many under way at a time.
//!
//! Requests a second are measured between two captures; where there is only one, the average since the reset stands
//! for them, which hides peaks and is marked so. What is under way is the load times the service time that the
//! client's `iostat` shows, else the high-water mark of active commands, which is the worst moment and not the usual.

use super::finding::Draft;
use super::measure::{Counter, fcstat_seconds, seconds_between};
use super::thresholds::{AVERAGE_HIDES, fact};
use super::view::{Value, View, as_f64, shown};
use crate::capture::{At, Fcstat, VfcStats};
use crate::facts::id::MQ_IOPS_MIN;
use crate::trace::{Figure, Term};

/// What a path or a port was seen doing.
#[derive(Debug, Clone, Default)]
pub(super) struct Load {
    pub(super) iops: Option<Rate>,
    pub(super) in_flight: Option<InFlight>,
}

/// Requests a second.
#[derive(Debug, Clone)]
pub(super) struct Rate {
    pub(super) figure: Figure,
    pub(super) at: Vec<At>,
    /// Between two captures; otherwise an average since the reset.
    pub(super) measured: bool,
}

/// How many requests were under way at a time.
#[derive(Debug, Clone)]
pub(super) struct InFlight {
    pub(super) figure: Figure,
    pub(super) at: Vec<At>,
    /// The most since the reset, not the usual.
    pub(super) peak: bool,
}

impl Load {
    /// What a port's own `fcstat` shows.
    pub(super) fn of_port(samples: &[&Fcstat]) -> Self {
        Self { iops: requests(samples), in_flight: high_water(samples) }
    }

    /// What the captures of a path show, best first: the adapter's statistics, the client's port, the VIOS's port
    /// where no other client uses it. Measured goes before averages. `service_ms` is that of the client's disks.
    pub(super) fn of_path(
        statistics: &[&VfcStats],
        ports: [&[&Fcstat]; 2],
        service_ms: Option<Figure>,
    ) -> Self {
        let of_ports = || ports.into_iter().filter_map(requests);
        let measured = commands(statistics).or_else(|| of_ports().find(|rate| rate.measured));
        let iops = measured.or_else(|| of_ports().next());
        let under_way = iops.as_ref().filter(|rate| rate.measured).zip(service_ms);
        let in_flight = under_way
            .map(|(rate, service)| under_way_now(rate, &service))
            .or_else(|| ports.into_iter().find_map(high_water));
        Self { iops, in_flight }
    }

    pub(super) fn iops(&self) -> Option<f64> {
        self.iops.as_ref().map(|rate| rate.figure.low)
    }

    pub(super) fn measured(&self) -> bool {
        self.iops.as_ref().is_some_and(|rate| rate.measured)
    }

    /// The requests in each queue at a time.
    pub(super) fn per_queue(&self, queues: Value) -> Option<Figure> {
        let (queues, at) = Some(queues).filter(|(queues, _)| *queues > 0.0)?;
        let terms = vec![
            Term::of(&self.in_flight.as_ref()?.figure).named("in flight"),
            Term::read("queues", queues, "queues", at),
        ];
        Some(Figure::new("I/Os in a queue at a time", "I/Os", "in flight ÷ queues", terms))
    }

    /// Whether it reaches the published rate; an average reaches it where its peaks do.
    pub(super) fn heavy(&self, view: &View<'_>) -> bool {
        let rate = fact(view.facts, MQ_IOPS_MIN);
        let least = if self.measured() { rate } else { rate / AVERAGE_HIDES };
        self.iops().is_some_and(|iops| iops >= least)
    }

    /// The load and what it means for each queue, on a finding.
    pub(super) fn show(&self, mut draft: Draft, queues: Option<Value>) -> Draft {
        if let Some(rate) = &self.iops {
            draft = draft.see(rate.at.iter().copied()).figure(rate.figure.clone());
        }
        if let Some(in_flight) = &self.in_flight {
            draft = draft.see(in_flight.at.iter().copied()).figure(in_flight.figure.clone());
        }
        let per_queue = queues.and_then(|queues| self.per_queue(queues));
        per_queue.into_iter().fold(draft, Draft::figure)
    }
}

/// The load times the service time: what is under way on this path, whatever other paths the client has.
fn under_way_now(rate: &Rate, service: &Figure) -> InFlight {
    let terms = vec![Term::of(&rate.figure).named("load"), Term::of(service).named("service time")];
    let figure = Figure::new("I/Os in flight", "I/Os", "load × service time ÷ 1000", terms);
    let at = service.terms.iter().filter_map(|term| match term.origin {
        crate::trace::Origin::Capture(at) => Some(at),
        _ => None,
    });
    InFlight { figure, at: at.collect(), peak: false }
}

/// Requests a second of a port: between the captures, else since the reset.
fn requests(samples: &[&Fcstat]) -> Option<Rate> {
    let (last, before) = samples.split_last()?;
    let counters = [
        Counter::over(samples, |fcstat| fcstat.traffic.input_requests)?,
        Counter::over(samples, |fcstat| fcstat.traffic.output_requests)?,
    ];
    let earlier = before.iter().find(|fcstat| fcstat.traffic.input_requests.is_some());
    let between = earlier.and_then(|earlier| fcstat_seconds(earlier, last));
    let rate = |name, reads, writes, seconds| {
        let terms = vec![
            Term::read("reads", reads, "requests", counters[0].last.at),
            Term::read("writes", writes, "requests", counters[1].last.at),
            seconds,
        ];
        Figure::new(name, "I/O/s", "(reads + writes) ÷ seconds", terms)
    };
    if let (Some((_, seconds)), [Some(reads), Some(writes)]) =
        (between, counters.map(|counter| counter.growth()))
    {
        return Some(Rate {
            figure: rate("requests a second between the captures", reads, writes, seconds),
            at: counters.iter().flat_map(Counter::places).collect(),
            measured: true,
        });
    }
    let seconds = last.seconds_since_reset.filter(|read| read.value > 0)?;
    let seconds = Term::read("seconds", as_f64(seconds.value), "s", seconds.at);
    let [reads, writes] = counters.map(|counter| counter.value());
    Some(Rate {
        figure: rate("requests a second since the reset", reads, writes, seconds),
        at: counters.iter().map(|counter| counter.last.at).collect(),
        measured: false,
    })
}

/// Commands a second, from the first and the last statistics with the same queues.
fn commands(samples: &[&VfcStats]) -> Option<Rate> {
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
    let figure =
        Figure::new("commands a second, all queues", "I/O/s", "(later − earlier) ÷ seconds", terms);
    Some(Rate { figure, at: vec![one.at, two.at], measured: true })
}

/// The most commands active since the reset.
fn high_water(samples: &[&Fcstat]) -> Option<InFlight> {
    let high =
        |fcstat: &Fcstat| fcstat.adapter_queue.active_high.or(fcstat.protocol_queue.active_high);
    let last = Counter::over(samples, high)?.last;
    let figure = shown("high-water active", as_f64(last.value), "I/Os", last.at);
    Some(InFlight { figure, at: vec![last.at], peak: true })
}
