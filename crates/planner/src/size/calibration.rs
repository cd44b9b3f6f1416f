//! What a shared Ethernet adapter costs on a host of our own: what to measure, the published tables with the measured ones beside them, and a file
//! of facts that sizing reckons with.
//!
//! A [`Case`] is one cell of the published tables; who measures gives what it [`Counted`]. [`Calibration::facts`] is the file: numbers under the
//! keys of the built-in ones, for `--measured` and `--facts`, to be corrected by hand like any other. A [`Mix`] is what was not measured for the
//! file: [`Check`] holds what sizing says of it against what it took.
//!
//! A cycle is CPU time times the clock. Where the clock is wrong, cycles are wrong by as much, and processors of the same host are not: the clock is
//! divided by again.

mod answer;
mod check;

use std::fmt::Write as _;

use serde::Serialize;

use crate::facts::{Facts, id};
use crate::trace::number;

pub use check::{Check, Mix, Round, Seen};

/// The attribute `thread` of the published tables, and what it is here.
const THREADS: [(bool, &str); 2] = [(true, "threaded"), (false, "plain")];
/// The MTUs of the published tables.
pub const MTUS: [u32; 2] = [1500, 9000];
/// Their sizes of a transaction.
pub const TRANSACTIONS: [u32; 2] = [64, 1024];

/// A kind of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Data that flows, one way or both ways.
    Stream {
        /// Its MTU.
        mtu: u32,
        /// Both ways at a time.
        duplex: bool,
    },
    /// The same in packets of 64 KB, which nobody cuts on their way: what segmentation offload (`largesend`) makes of a stream. Nobody has published it.
    Uncut {
        /// Both ways at a time.
        duplex: bool,
    },
    /// Requests with their responses.
    Transactions {
        /// Bytes of each of the two.
        bytes: u32,
    },
}

/// A cell of the tables, or one that is beside them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Case {
    /// The attribute `thread`.
    pub threaded: bool,
    /// The load.
    #[serde(flatten)]
    pub load: Load,
}

impl Case {
    /// All cells, in the order of the tables.
    pub fn all() -> Vec<Case> {
        let mut cases = Vec::new();
        for (threaded, _) in THREADS {
            for duplex in [false, true] {
                let stream = |mtu| Case { threaded, load: Load::Stream { mtu, duplex } };
                cases.extend(MTUS.map(stream));
            }
            cases.extend(
                [false, true].map(|duplex| Case { threaded, load: Load::Uncut { duplex } }),
            );
            cases.extend(
                TRANSACTIONS.map(|bytes| Case { threaded, load: Load::Transactions { bytes } }),
            );
        }
        cases
    }

    /// The key of its number among the facts.
    pub fn key(&self) -> String {
        let word = if self.threaded { "threaded" } else { "plain" };
        let direction = |duplex| if duplex { "duplex" } else { "simplex" };
        match self.load {
            Load::Stream { mtu, duplex } => {
                format!("sea.cycles-per-byte.{word}.{mtu}.{}", direction(duplex))
            }
            Load::Uncut { duplex } => {
                format!("sea.cycles-per-byte.{word}.uncut.{}", direction(duplex))
            }
            Load::Transactions { bytes } => format!("sea.cycles-per-transaction.{word}.{bytes}"),
        }
    }

    /// What it is, for people.
    pub fn title(&self) -> String {
        format!("{}, thread={}", self.load.title(), u8::from(self.threaded))
    }
}

impl Load {
    /// What it is, for people.
    pub fn title(&self) -> String {
        match self {
            Load::Stream { mtu, duplex: false } => format!("stream one way, MTU {mtu}"),
            Load::Stream { mtu, duplex: true } => format!("stream both ways, MTU {mtu}"),
            Load::Uncut { duplex: false } => "stream one way, uncut".to_owned(),
            Load::Uncut { duplex: true } => "stream both ways, uncut".to_owned(),
            Load::Transactions { bytes } => format!("transactions of {bytes} bytes"),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Load::Stream { .. } | Load::Uncut { .. } => "cycles/byte",
            Load::Transactions { .. } => "cycles/transaction",
        }
    }
}

/// What was counted in one round of a load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Counted {
    /// Bytes of payload, or transactions.
    pub units: u64,
    /// CPU time of the data plane in seconds, without its looking for work that was not there.
    pub cpu_seconds: f64,
    /// How long the round took.
    pub seconds: f64,
}

/// The host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Its processor, as the system calls it.
    pub processor: String,
    /// The clock, in cycles a second.
    pub clock_hz: f64,
    /// How the clock is known, as a part of a sentence.
    pub clock_by: String,
    /// The version of the program that measured.
    pub version: String,
    /// CPUs that the data plane had.
    pub server_cpus: usize,
    /// Who talked to whom.
    pub between: Between,
}

/// Who talks to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// Two clients of one network.
    Clients,
    /// A client and the world outside, by an uplink that is a TAP.
    ClientAndTap,
}

impl Between {
    /// As a part of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Between::Clients => "between two clients",
            Between::ClientAndTap => "between a client and the host, by an uplink (TAP)",
        }
    }

    /// What the attribute `thread` is here.
    fn thread(self, threaded: bool) -> &'static str {
        match (self, threaded) {
            (Between::Clients, true) => {
                "thread=1: each client on a channel of its own, every frame handed over"
            }
            (Between::Clients, false) => "thread=0: both clients on one channel",
            (Between::ClientAndTap, true) => {
                "thread=1: the client on one channel, the uplink on another"
            }
            (Between::ClientAndTap, false) => "thread=0: both on one channel",
        }
    }
}

/// A case and its rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// What was counted.
    pub rounds: Vec<Counted>,
}

/// The middle of some values, and how far they reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The lowest.
    pub low: f64,
    /// The median.
    pub median: f64,
    /// The highest.
    pub high: f64,
}

impl Spread {
    /// None of no values, or of any that is no number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let (low, high, middle) = (*values.first()?, *values.last()?, values.len() / 2);
        let median = match values.len() % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        Some(Spread { low, median, high })
    }
}

/// Everything that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The host.
    pub host: Host,
    /// The cases, in the order of [`Case::all`].
    pub costs: Vec<Cost>,
    /// What sizing says of mixes, against what they took; none where that was not asked for.
    pub checks: Vec<Check>,
    /// What to mind.
    pub notes: Vec<String>,
    /// The file that has the numbers, where one was written.
    pub file: Option<String>,
    /// Each case as the tables show it, beside the published number.
    #[serde(skip)]
    published: Facts,
}

impl Cost {
    /// Cycles of a byte or a transaction at that clock.
    pub fn cycles(&self, clock_hz: f64) -> Option<Spread> {
        Spread::of(
            self.rounds.iter().map(|round| round.cpu_seconds * clock_hz / round.units as f64),
        )
    }

    /// Bytes or transactions a second.
    pub fn rate(&self) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(|round| round.units as f64 / round.seconds))
    }

    /// Processors in use.
    pub fn processors(&self) -> Option<Spread> {
        Spread::of(self.rounds.iter().map(|round| round.cpu_seconds / round.seconds))
    }
}

/// The name under which the facts of a calibration cite their source.
const SOURCE: &str = "measured";

impl Calibration {
    /// Of what was measured; `published` are the tables that stand beside it.
    pub fn new(host: Host, costs: Vec<Cost>, published: Facts) -> Calibration {
        Calibration { host, costs, checks: Vec::new(), notes: Vec::new(), file: None, published }
    }

    /// The numbers as a file of facts.
    pub fn facts(&self) -> String {
        let Host { processor, clock_hz, clock_by, version, between, .. } = &self.host;
        let mut text = format!(
            "# What a shared Ethernet adapter costs on this host, as `trunkline size calibrate` measured it.\n\
             # For `trunkline size sea --measured FILE`. Every number may be corrected by hand.\n\n\
             [source.{SOURCE}]\n\
             text = {}\n\n\
             [number.\"{}\"]\n\
             value = {clock_hz:?}\n\
             unit = \"cycles/s\"\n\
             meaning = {}\n\
             source = \"{SOURCE}\"\n\
             confirmed = true\n",
            quoted(&format!(
                "trunkline size calibrate (version {version}) on {processor}, {}",
                between.words()
            )),
            id::SEA_REFERENCE_CLOCK,
            quoted(&format!("Clock of the host that was measured: {clock_by}.")),
        );
        for cost in &self.costs {
            let Some(cycles) = cost.cycles(*clock_hz) else { continue };
            let _ = write!(
                text,
                "\n[number.\"{}\"]\n\
                 value = {:?}\n\
                 unit = \"{}\"\n\
                 meaning = {}\n\
                 source = \"{SOURCE}\"\n\
                 confirmed = true\n",
                cost.case.key(),
                cycles.median,
                cost.case.load.unit(),
                quoted(&self.meaning(cost, &cycles)),
            );
        }
        text
    }

    fn meaning(&self, cost: &Cost, cycles: &Spread) -> String {
        let mut text = cost.case.title();
        if let (Some(rate), Some(processors)) = (cost.rate(), cost.processors()) {
            let rate = rate_of(cost.case.load, rate.median);
            let percent = number(processors.median * 100.0);
            text.push_str(&format!(": {rate} at {percent} % of a processor"));
        }
        let (rounds, low, high) = (cost.rounds.len(), number(cycles.low), number(cycles.high));
        format!("{text}; median of {rounds} rounds, {low} to {high}.")
    }
}

/// A rate with its unit.
fn rate_of(load: Load, units: f64) -> String {
    match load {
        Load::Stream { .. } | Load::Uncut { .. } => {
            format!("{} MB/s", number(units / (1024.0 * 1024.0)))
        }
        Load::Transactions { .. } => format!("{} a second", number(units)),
    }
}

/// A string of TOML. Names of processors come from the system, and may hold anything.
fn quoted(text: &str) -> String {
    toml::Value::String(text.chars().filter(|c| !c.is_control()).collect()).to_string()
}
