//! Rates of adapters: between the first and the last capture, else the average since the reset.

use crate::advise::load::Rate;
use crate::advise::measure::{Counter, agree, fcstat_seconds, seconds_between};
use crate::advise::view::as_f64;
use crate::capture::{At, Entstat, Ethernet, Fcstat, Read};
use crate::trace::{Figure, Term};

/// Counters over time: what they grew by between the captures, else what they count since their reset.
fn grown(
    counters: &[Counter],
    between: Option<Term>,
    age: Option<Read<u64>>,
) -> Option<(Vec<f64>, Term, bool)> {
    let growth: Option<Vec<f64>> = counters.iter().map(Counter::growth).collect();
    if let (Some(seconds), Some(growth)) = (between, growth) {
        return Some((growth, seconds, true));
    }
    let age = age.filter(|read| read.value > 0)?;
    let seconds = Term::read("seconds", as_f64(age.value), "s", age.at);
    Some((counters.iter().map(Counter::value).collect(), seconds, false))
}

/// The lines that a value rests on.
fn places(counter: &Counter, measured: bool) -> impl Iterator<Item = At> {
    let skipped = usize::from(!measured && counter.first.is_some());
    counter.places().skip(skipped)
}

/// What a real adapter sent and received.
pub(super) struct Traffic {
    /// Bytes sent, bytes received, packets sent, packets received.
    terms: [Term; 4],
    seconds: Term,
    pub(super) bytes: [f64; 2],
    /// Where the counters stood, first and last.
    pub(super) lines: Vec<At>,
    pub(super) measured: bool,
}

impl Traffic {
    pub(super) fn of(samples: &[(&Entstat, &Ethernet)]) -> Option<Self> {
        let adapters: Vec<&Ethernet> = samples.iter().map(|(_, adapter)| *adapter).collect();
        let counters = [
            Counter::over(&adapters, |adapter| adapter.transmitted.bytes)?,
            Counter::over(&adapters, |adapter| adapter.received.bytes)?,
            Counter::over(&adapters, |adapter| adapter.transmitted.packets)?,
            Counter::over(&adapters, |adapter| adapter.received.packets)?,
        ];
        let ((first, earlier), (last, later)) = (samples.first()?, samples.last()?);
        let aged = earlier.elapsed_seconds.zip(later.elapsed_seconds).and_then(|(one, two)| {
            let apart = two.value.checked_sub(one.value).filter(|apart| *apart > 0)?;
            Some((as_f64(apart), two.at))
        });
        let clocks = seconds_between(&first.head, &last.head)
            .filter(|clocks| aged.is_none_or(|(aged, _)| agree(*clocks, aged)))
            .map(|seconds| (seconds, last.head.first));
        let between = clocks.or(aged).map(|(seconds, at)| Term::read("seconds", seconds, "s", at));
        let (values, seconds, measured) = grown(&counters, between, later.elapsed_seconds)?;
        let names = ["bytes sent", "bytes received", "packets sent", "packets received"];
        let term = |at: usize| {
            let unit = if at < 2 { "bytes" } else { "packets" };
            Term::read(names[at], values[at], unit, counters[at].last.at)
        };
        Some(Self {
            terms: [term(0), term(1), term(2), term(3)],
            seconds,
            bytes: [values[0], values[1]],
            lines: counters.iter().flat_map(|counter| places(counter, measured)).collect(),
            measured,
        })
    }

    fn figure(&self, name: &str, unit: &str, formula: &str, with: &[usize]) -> Figure {
        let mut terms: Vec<Term> = with.iter().map(|at| self.terms[*at].clone()).collect();
        if formula.contains("seconds") {
            terms.push(self.seconds.clone());
        }
        Figure::new(name, unit, formula, terms)
    }

    pub(super) fn megabytes(&self) -> Figure {
        let formula = "(bytes sent + bytes received) ÷ seconds ÷ 1024 ÷ 1024";
        self.figure("MB/s", "MB/s", formula, &[0, 1])
    }

    /// A request and its response are two packets.
    pub(super) fn transactions(&self) -> Figure {
        let formula = "(packets sent + packets received) ÷ 2 ÷ seconds";
        self.figure("transactions/s", "1/s", formula, &[2, 3])
    }

    pub(super) fn bytes_of_a_packet(&self) -> Figure {
        let formula = "(bytes sent + bytes received) ÷ (packets sent + packets received)";
        self.figure("bytes of a transaction", "bytes", formula, &[0, 1, 2, 3])
    }
}

/// What a Fibre Channel port did.
pub(super) struct Requests {
    pub(super) rate: Figure,
    pub(super) bytes: Option<Figure>,
    /// Where the counters of requests stood, and those of their size.
    pub(super) lines: [Vec<At>; 2],
    pub(super) measured: bool,
}

impl Requests {
    pub(super) fn of(samples: &[&Fcstat]) -> Option<Self> {
        let counters = [
            Counter::over(samples, |fcstat| fcstat.traffic.input_requests)?,
            Counter::over(samples, |fcstat| fcstat.traffic.output_requests)?,
            Counter::over(samples, |fcstat| fcstat.traffic.input_bytes)?,
            Counter::over(samples, |fcstat| fcstat.traffic.output_bytes)?,
        ];
        let (last, before) = samples.split_last()?;
        let first = before.iter().find(|fcstat| fcstat.traffic.input_requests.is_some());
        let between = first.and_then(|first| fcstat_seconds(first, last)).map(|(_, term)| term);
        let (values, seconds, measured) = grown(&counters, between, last.seconds_since_reset)?;
        let names = ["reads", "writes", "bytes read", "bytes written"];
        let term = |at: usize| {
            let unit = if at < 2 { "requests" } else { "bytes" };
            Term::read(names[at], values[at], unit, counters[at].last.at)
        };
        let formula = "(reads + writes) ÷ seconds";
        let rate = Figure::new("I/O/s", "1/s", formula, vec![term(0), term(1), seconds]);
        let formula = "(bytes read + bytes written) ÷ (reads + writes)";
        let terms = (0..4).map(term).collect();
        let bytes = Figure::new("bytes of an I/O", "bytes", formula, terms);
        let lines = |of: &[Counter]| -> Vec<At> {
            of.iter().flat_map(|counter| places(counter, measured)).collect()
        };
        let lines = [lines(&counters[..2]), lines(&counters)];
        Some(Self { rate, bytes: Some(bytes), lines, measured })
    }

    /// A rate that was measured elsewhere, and the size that `counted` tells.
    pub(super) fn seen(rate: &Rate, counted: Option<&Self>) -> Self {
        let figure = Figure { name: "I/O/s".to_owned(), ..rate.figure.clone() };
        let sizes = counted.map_or_else(Vec::new, |counted| counted.lines[1].clone());
        Self {
            rate: figure,
            bytes: counted
                .and_then(|counted| counted.bytes.clone())
                .filter(|bytes| bytes.low > 0.0),
            lines: [rate.at.clone(), sizes],
            measured: rate.measured,
        }
    }
}
