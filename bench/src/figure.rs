//! Figures: what is measured in a round, and what many rounds say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A quantity that a round can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Figure {
    /// Requests completed per second.
    Iops,
    /// Mean latency as the client sees it.
    LatencyUs,
    /// Half of the requests are at most this late.
    P50Us,
    /// 99 of 100 requests are at most this late.
    P99Us,
    /// CPU time of all threads of the server, per request.
    ServerCpuUs,
    /// CPU time of the client's I/O threads, per request; for a native program, of all of it.
    ClientCpuUs,
    /// Requests between two times that a thread of the server went to sleep (voluntary context switches).
    IosPerServerSleep,
    /// Requests between two times that the client went to sleep. A client that waits in a read of its eventfd does not sleep if
    /// the server was quicker than the system call.
    IosPerClientSleep,
    /// Requests completed for each interrupt that the client took.
    IosPerInterrupt,
    /// CPU time as a share of one core.
    CpuPercent,
    /// Resident memory.
    ResidentMib,
    /// Milliseconds from the beginning of a command to its end.
    Ms,
    /// Bytes written, of those that had to be.
    OfMissed,
    /// The time left that was told, by the one that it was, or the other way round where that is more.
    LeftFactor,
    /// Instructions executed per request.
    Instructions,
    /// Cycles for each byte or transaction: CPU time times the clock.
    Cycles,
    /// Frames that arrive, in a second.
    FramesPerS,
    /// MiB that arrive for each second of CPU time of all that take part.
    MibPerCpuS,
    /// What another client does that is not measured, in a second.
    OthersPerS,
}

impl Figure {
    /// In the order of the table.
    pub(crate) const ALL: [Figure; 19] = [
        Figure::Iops,
        Figure::LatencyUs,
        Figure::P50Us,
        Figure::P99Us,
        Figure::ServerCpuUs,
        Figure::ClientCpuUs,
        Figure::IosPerServerSleep,
        Figure::IosPerClientSleep,
        Figure::IosPerInterrupt,
        Figure::CpuPercent,
        Figure::ResidentMib,
        Figure::Ms,
        Figure::OfMissed,
        Figure::LeftFactor,
        Figure::Instructions,
        Figure::Cycles,
        Figure::FramesPerS,
        Figure::MibPerCpuS,
        Figure::OthersPerS,
    ];

    /// Head of its column.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Figure::Iops => "IOPS",
            Figure::LatencyUs => "mean, µs",
            Figure::P50Us => "p50, µs",
            Figure::P99Us => "p99, µs",
            Figure::ServerCpuUs => "server CPU per I/O, µs",
            Figure::ClientCpuUs => "client CPU per I/O, µs",
            Figure::IosPerServerSleep => "I/Os per sleep of the server",
            Figure::IosPerClientSleep => "I/Os per sleep of the client",
            Figure::IosPerInterrupt => "I/Os per interrupt",
            Figure::CpuPercent => "% of a core",
            Figure::ResidentMib => "MiB resident",
            Figure::Ms => "ms",
            Figure::OfMissed => "written, of what was missed",
            Figure::LeftFactor => "time left, wrong by a factor of",
            Figure::Instructions => "instructions per request",
            Figure::Cycles => "cycles",
            Figure::FramesPerS => "frames per second",
            Figure::MibPerCpuS => "MiB per second of CPU time",
            Figure::OthersPerS => "the other client's, per second",
        }
    }
}

/// What one round measured.
pub(crate) type Round = BTreeMap<Figure, f64>;

/// The middle of some values, and how far they reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Not so where something was divided by nothing.
    pub(crate) fn is_finite(&self) -> bool {
        [self.median, self.min, self.max].iter().all(|value| value.is_finite())
    }

    /// `None` when there are no values.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Spread { median, min, max })
    }
}

/// All rounds of one contestant.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Series {
    /// Its name in bars.toml and in the tables.
    pub(crate) label: String,
    /// Its settings, for readers.
    pub(crate) about: String,
    /// In the order in which they were run.
    pub(crate) rounds: Vec<Round>,
}

impl Series {
    /// Without a round so far.
    pub(crate) fn new(label: impl Into<String>, about: impl Into<String>) -> Series {
        Series { label: label.into(), about: about.into(), rounds: Vec::new() }
    }

    /// A figure over all rounds that have it.
    pub(crate) fn spread(&self, figure: Figure) -> Option<Spread> {
        Spread::of(self.values(figure))
    }

    /// The values of a figure, round by round.
    pub(crate) fn values(&self, figure: Figure) -> impl Iterator<Item = f64> {
        self.rounds.iter().filter_map(move |round| round.get(&figure).copied())
    }
}

/// A number with about three digits that matter.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 {
        grouped(value)
    } else if size >= 100.0 {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 0.1 || size == 0.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let spread = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(spread(&[4.0, 1.0]).unwrap().median, 2.5);
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn numbers_are_short() {
        let cases = [(1_234_567.0, "1 234 567"), (123.4, "123"), (12.34, "12.3"), (1.234, "1.23")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!(short(0.0123), "0.012");
        assert_eq!(short(1000.0), "1 000");
    }
}
