//! Loads that were not measured for the file: what sizing says of them, against what they took.

use serde::Serialize;

use super::{Calibration, Spread};
use crate::facts::Facts;
use crate::size::{Direction, Sea, SizeError, Workloads};
use crate::trace::number;

/// A stream and transactions at the same time, of sizes that the tables do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Mix {
    /// The attribute `thread`.
    pub threaded: bool,
    /// MTU of the stream.
    pub mtu: u32,
    /// Both ways at a time.
    pub duplex: bool,
    /// Bytes of a request and of its response.
    pub transaction_bytes: u32,
    /// Percent of what is on its way at a time that are packets of the stream; the others are requests.
    pub stream_percent: u8,
}

/// What was carried in one round of a mix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Seen {
    /// Bytes of the stream's payload.
    pub bytes: u64,
    /// Transactions.
    pub transactions: u64,
    /// CPU time of the data plane in seconds, without its looking for work that was not there.
    pub cpu_seconds: f64,
    /// How long the round took.
    pub seconds: f64,
}

/// A round of a mix and what was said of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Round {
    /// The round.
    #[serde(flatten)]
    pub seen: Seen,
    /// Processors that it took.
    pub measured: f64,
    /// Processors that sizing says for what was carried.
    pub predicted: f64,
}

/// A mix, what it took and what was said of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// The mix.
    #[serde(flatten)]
    pub mix: Mix,
    /// Its rounds.
    pub rounds: Vec<Round>,
    /// Processors that it took.
    pub measured: Spread,
    /// Processors that sizing says for what was carried, round by round.
    pub predicted: Spread,
    /// The prediction against the measurement, round by round, in percent: above 0 it was too high.
    pub error_percent: Spread,
}

impl Mix {
    /// Four that are far apart, with and without `thread`.
    pub fn all() -> Vec<Mix> {
        let mix = |threaded, mtu, duplex, transaction_bytes, stream_percent| Mix {
            threaded,
            mtu,
            duplex,
            transaction_bytes,
            stream_percent,
        };
        let of = |threaded| {
            [
                mix(threaded, 1500, false, 256, 70),
                mix(threaded, 4000, false, 512, 70),
                mix(threaded, 1500, true, 128, 30),
                mix(threaded, 9000, false, 768, 30),
            ]
        };
        [true, false].into_iter().flat_map(of).collect()
    }

    /// What it is, for people.
    pub fn title(&self) -> String {
        let Mix { mtu, transaction_bytes, stream_percent, .. } = self;
        let ways = if self.duplex { "both ways" } else { "one way" };
        format!(
            "{stream_percent} % stream {ways}, MTU {mtu}; {} % transactions of {transaction_bytes} bytes; thread={}",
            100u8.saturating_sub(*stream_percent),
            u8::from(self.threaded)
        )
    }

    /// The load that it was in a round, for sizing.
    fn load(&self, seen: &Seen) -> Workloads {
        let direction = if self.duplex { Direction::Duplex } else { Direction::Simplex };
        let sea = Sea {
            name: None,
            streaming_mb: (seen.bytes as f64 / seen.seconds / (1024.0 * 1024.0)).into(),
            direction,
            mtu: self.mtu,
            threaded: Some(self.threaded),
            transactions: (seen.transactions as f64 / seen.seconds).into(),
            transaction_bytes: self.transaction_bytes.into(),
        };
        Workloads { sea: vec![sea], ..Workloads::default() }
    }
}

impl Check {
    /// Sizes what was carried in each round by the measured facts; none without a round in which something was.
    ///
    /// # Errors
    /// A load that sizing refuses.
    pub fn new(mix: Mix, rounds: Vec<Seen>, facts: &Facts) -> Result<Option<Check>, SizeError> {
        let mut judged = Vec::new();
        for seen in rounds {
            let sizing = mix.load(&seen).size(facts)?;
            let processors = sizing.parts.first().and_then(|part| part.processors.as_ref());
            let predicted = processors.map_or(f64::NAN, |term| term.high);
            judged.push(Round { seen, measured: seen.cpu_seconds / seen.seconds, predicted });
        }
        let error = |round: &Round| (round.predicted / round.measured - 1.0) * 100.0;
        let of = |value: &dyn Fn(&Round) -> f64| Spread::of(judged.iter().map(value));
        let spreads = (of(&|round| round.measured), of(&|round| round.predicted), of(&error));
        Ok(match spreads {
            (Some(measured), Some(predicted), Some(error_percent)) => {
                Some(Check { mix, rounds: judged, measured, predicted, error_percent })
            }
            _ => None,
        })
    }
}

impl Calibration {
    /// How far the worst median is off, in percent.
    pub fn worst_error_percent(&self) -> Option<f64> {
        let errors = self.checks.iter().map(|check| check.error_percent.median.abs());
        errors.max_by(f64::total_cmp)
    }

    /// The sentence about the checks.
    pub(super) fn checked(&self) -> Option<String> {
        let worst = self.worst_error_percent()?;
        let mixes = self.checks.len();
        Some(format!(
            "Of {mixes} mixes that were not measured for the tables, sizing is at most {} % off.",
            number(worst)
        ))
    }
}
