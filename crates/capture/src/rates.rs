//! Two captures of the same thing: how fast its counters grew.
//!
//! A counter that is smaller than before was reset, or it wrapped around, or something else happened; which of these is
//! told and no figure is made of it. Whether counters were reset is known where the report says how long ago that was.

use std::collections::HashMap;

use serde::Serialize;

use super::{Entstat, Fcstat, FcstatClient, Head, Read, Report, Seastat, Taken, VfcStats};

/// How the counters of one thing changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rates {
    /// The time between the captures in seconds, when it is known.
    pub seconds: Option<f64>,
    /// Where the time is from, or why it is not known.
    pub seconds_from: &'static str,
    /// Whether all counters were reset between the captures; `None` when the report does not say.
    pub reset: Option<bool>,
    /// Every counter that both captures have.
    pub counters: Vec<Rate>,
}

impl Rates {
    /// The counter of that name.
    pub fn get(&self, name: &str) -> Option<&Rate> {
        self.counters.iter().find(|rate| rate.name == name)
    }
}

/// One counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rate {
    /// Its name, as the field is called; with the row's name before it where there are several rows.
    pub name: String,
    /// As it was.
    pub earlier: Read<u64>,
    /// As it is.
    pub later: Read<u64>,
    /// What happened between.
    pub change: Change,
}

impl Rate {
    /// How much it grew, when it did nothing else.
    pub fn grew(&self) -> Option<u64> {
        match self.change {
            Change::Grew { by, .. } => Some(by),
            _ => None,
        }
    }

    /// How much it grew in a second.
    pub fn per_second(&self) -> Option<f64> {
        match self.change {
            Change::Grew { per_second, .. } => per_second,
            _ => None,
        }
    }
}

/// What a counter did between two captures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It grew, or stayed the same.
    Grew {
        /// By so much.
        by: u64,
        /// In each second, when the time between the captures is known.
        per_second: Option<f64>,
    },
    /// The counters were reset between the captures, as their age says: the difference means nothing.
    Reset,
    /// It is smaller though nothing was reset, and before it was close to the greatest number of so many bits.
    Wrapped {
        /// 32 or 64.
        bits: u32,
    },
    /// It is smaller, and whether it was reset or wrapped is not known.
    Fell,
}

/// Why two reports cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
pub enum Incomparable {
    /// They are of different commands.
    #[error("one is of {earlier}, the other of {later}")]
    Commands {
        /// The first one's.
        earlier: &'static str,
        /// The second one's.
        later: &'static str,
    },
    /// They are about different devices, ports or partitions.
    #[error("one is about {earlier}, the other about {later}")]
    Subjects {
        /// The first one's.
        earlier: String,
        /// The second one's.
        later: String,
    },
    /// The report has no counters: it shows settings or averages.
    #[error("{command} prints no counters")]
    NoCounters {
        /// The command.
        command: &'static str,
    },
}

/// A counter of a report, or `None` where the report has none.
type Counter = (String, Option<Read<u64>>);

/// How the counters changed between two captures of the same thing.
///
/// # Errors
///
/// [`Incomparable`] when they are not of the same thing.
pub fn rates(earlier: &Report, later: &Report) -> Result<Rates, Incomparable> {
    let (before, after) = (earlier.command(), later.command());
    if before != after {
        return Err(Incomparable::Commands { earlier: before, later: after });
    }
    same_subject(earlier, later)?;
    let (Some(old), Some(new)) = (counters(earlier), counters(later)) else {
        return Err(Incomparable::NoCounters { command: before });
    };
    let (seconds, seconds_from) = between(earlier, later);
    let reset = was_reset(earlier, later, seconds);
    let old: HashMap<String, Read<u64>> =
        old.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let mut found = Vec::new();
    for (name, value) in new {
        let (Some(later), Some(earlier)) = (value, old.get(&name).copied()) else { continue };
        let change = change(earlier.value, later.value, reset, seconds);
        found.push(Rate { name, earlier, later, change });
    }
    Ok(Rates { seconds, seconds_from, reset, counters: found })
}

fn change(earlier: u64, later: u64, reset: Option<bool>, seconds: Option<f64>) -> Change {
    if reset == Some(true) {
        return Change::Reset;
    }
    if let Some(by) = later.checked_sub(earlier) {
        return Change::Grew { by, per_second: seconds.map(|seconds| to_float(by) / seconds) };
    }
    // In the upper quarter of the range a wrap is nearer than anything else.
    let limit = u64::from(u32::MAX);
    match reset {
        Some(false) if earlier <= limit && earlier > limit / 4 * 3 => Change::Wrapped { bits: 32 },
        Some(false) if earlier > u64::MAX / 4 * 3 => Change::Wrapped { bits: 64 },
        _ => Change::Fell,
    }
}

/// Counters are far below 2^53 where a rate is wanted; above, the nearest number that has a float is good enough.
#[expect(clippy::cast_precision_loss, reason = "a rate needs no more than 53 bits")]
fn to_float(value: u64) -> f64 {
    value as f64
}

fn name(read: &Option<Read<String>>) -> Option<&str> {
    read.as_ref().map(|read| read.value.as_str())
}

fn same_subject(earlier: &Report, later: &Report) -> Result<(), Incomparable> {
    let subject = |report: &Report| -> Vec<(&'static str, Option<String>)> {
        let head = report.head();
        let mut parts = vec![
            ("", name(&head.device).map(str::to_owned)),
            ("partition ", name(&head.partition).map(str::to_owned)),
        ];
        if let Report::Fcstat(report) = report {
            parts.push(("port ", report.wwpn.map(|read| read.value.to_string())));
        }
        parts
    };
    for ((kind, old), (_, new)) in subject(earlier).into_iter().zip(subject(later)) {
        if let (Some(old), Some(new)) = (old, new)
            && old != new
        {
            return Err(Incomparable::Subjects {
                earlier: format!("{kind}{old}"),
                later: format!("{kind}{new}"),
            });
        }
    }
    Ok(())
}

/// Seconds since the counters were reset, as the report says.
fn age(report: &Report) -> Option<u64> {
    match report {
        Report::Fcstat(report) => report.seconds_since_reset.map(|read| read.value),
        Report::Entstat(report) => report.adapters.first()?.elapsed_seconds.map(|read| read.value),
        _ => None,
    }
}

/// The time between two captures: by clocks, otherwise by the age of their counters.
fn between(earlier: &Report, later: &Report) -> (Option<f64>, &'static str) {
    if let (Some(old), Some(new)) = (&earlier.head().taken, &later.head().taken) {
        match clock(old, new) {
            Some(0) | None => {}
            Some(seconds) => {
                return (Some(to_float(seconds)), "the times at which they were taken");
            }
        }
    }
    match (age(earlier), age(later)) {
        (Some(old), Some(new)) if new > old => {
            (Some(to_float(new - old)), "the age of their counters")
        }
        (Some(_), Some(_)) => (None, "not known: the counters are no older than before"),
        _ => (None, "not known: no time stands with them"),
    }
}

fn clock(earlier: &Taken, later: &Taken) -> Option<u64> {
    let (one, two) = (earlier.clock(), later.clock());
    (one.0 == two.0).then(|| two.1.checked_sub(one.1))?
}

/// Whether the counters began anew in between: then they are younger than the time that passed.
fn was_reset(earlier: &Report, later: &Report, seconds: Option<f64>) -> Option<bool> {
    let (old, new) = (age(earlier)?, age(later)?);
    // A virtual adapter's report may always say 0: then its age says nothing.
    if old == 0 && new == 0 {
        return None;
    }
    if new < old {
        return Some(true);
    }
    // Two seconds for the time between the clock and the command.
    Some(seconds.is_some_and(|seconds| to_float(new - old) + 2.0 < seconds))
}

fn counters(report: &Report) -> Option<Vec<Counter>> {
    Some(match report {
        Report::Fcstat(report) => fcstat(report),
        Report::FcstatClient(report) => clients(report),
        Report::Entstat(report) => entstat(report),
        Report::Seastat(report) => seastat(report),
        Report::VfcStats(report) => vfc(report),
        _ => return None,
    })
}

fn named(list: &[(&str, Option<Read<u64>>)]) -> Vec<Counter> {
    list.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn fcstat(report: &Fcstat) -> Vec<Counter> {
    let mut all = named(&[
        ("frames_transmitted", report.frames.transmitted),
        ("frames_received", report.frames.received),
        ("words_transmitted", report.words.transmitted),
        ("words_received", report.words.received),
        ("lip", report.lip),
        ("nos", report.nos),
        ("error_frames", report.error_frames),
        ("dumped_frames", report.dumped_frames),
        ("link_failures", report.link_failures),
        ("sync_losses", report.sync_losses),
        ("signal_losses", report.signal_losses),
        ("sequence_errors", report.sequence_errors),
        ("invalid_words", report.invalid_words),
        ("invalid_crcs", report.invalid_crcs),
        ("no_dma", report.resources.no_dma),
        ("no_elements", report.resources.no_elements),
        ("no_command", report.resources.no_command),
        ("interrupts", report.interrupts),
        ("spurious_interrupts", report.spurious_interrupts),
    ]);
    for (protocol, traffic) in [("", report.traffic), ("nvme_", report.nvme_traffic)] {
        let list = [
            ("input_requests", traffic.input_requests),
            ("output_requests", traffic.output_requests),
            ("control_requests", traffic.control_requests),
            ("input_bytes", traffic.input_bytes),
            ("output_bytes", traffic.output_bytes),
        ];
        all.extend(list.map(|(name, value)| (format!("{protocol}{name}"), value)));
    }
    all
}

fn clients(report: &FcstatClient) -> Vec<Counter> {
    let row = |row: &super::ClientRow| {
        let read = |value: u64| Some(Read { value, at: row.at });
        let wwpn = row.wwpn.map_or_else(String::new, |wwpn| wwpn.to_string());
        let who = format!("{} {} {wwpn}", row.hostname, row.device);
        [
            ("input_requests", read(row.input_requests)),
            ("output_requests", read(row.output_requests)),
            ("control_requests", read(row.control_requests)),
            ("input_bytes", read(row.input_bytes)),
            ("output_bytes", read(row.output_bytes)),
            ("no_dma", row.no_dma.and_then(read)),
            ("no_elements", row.no_elements.and_then(read)),
            ("no_command", row.no_command.and_then(read)),
        ]
        .map(|(name, value)| (format!("{who} {name}"), value))
    };
    report.rows.iter().flat_map(row).collect()
}

fn entstat(report: &Entstat) -> Vec<Counter> {
    let mut all = Vec::new();
    for adapter in &report.adapters {
        for (side, packets) in
            [("transmitted", adapter.transmitted), ("received", adapter.received)]
        {
            let list = [
                ("packets", packets.packets),
                ("bytes", packets.bytes),
                ("errors", packets.errors),
                ("dropped", packets.dropped),
                ("no_resource", packets.no_resource),
            ];
            all.extend(
                list.map(|(name, value)| (format!("{} {side}_{name}", adapter.name.value), value)),
            );
        }
        let own = adapter.virtual_adapter.as_ref();
        let list = [
            ("queue_overflow", adapter.queue_overflow),
            ("reset_count", adapter.reset_count),
            ("send_failures", own.and_then(|own| own.send_failures)),
            ("receive_failures", own.and_then(|own| own.receive_failures)),
        ];
        all.extend(list.map(|(name, value)| (format!("{} {name}", adapter.name.value), value)));
    }
    if let Some(sea) = &report.sea {
        let failover = sea.failover.as_ref();
        all.extend(named(&[
            ("sea real_dropped", sea.real_side.dropped),
            ("sea virtual_dropped", sea.virtual_side.dropped),
            ("sea thread_overflow", sea.thread_overflow),
            ("sea became_backup", failover.and_then(|failover| failover.became_backup)),
            ("sea became_primary", failover.and_then(|failover| failover.became_primary)),
            ("sea limbo", failover.and_then(|failover| failover.limbo)),
        ]));
    }
    all
}

fn seastat(report: &Seastat) -> Vec<Counter> {
    let client = |client: &super::SeaClient| {
        let vlan = client.vlan.map_or_else(String::new, |vlan| format!(" vlan {}", vlan.value));
        [
            ("transmitted_packets", client.transmitted_packets),
            ("transmitted_bytes", client.transmitted_bytes),
            ("received_packets", client.received_packets),
            ("received_bytes", client.received_bytes),
        ]
        .map(|(name, value)| (format!("{}{vlan} {name}", client.mac), value))
    };
    report.clients.iter().flat_map(client).collect()
}

fn vfc(report: &VfcStats) -> Vec<Counter> {
    let queues = report.commands_received.iter().enumerate();
    queues
        .map(|(index, value)| (format!("queue {index} commands_received"), Some(*value)))
        .collect()
}

/// The time that a report's clock showed, for callers that order captures.
impl Head {
    /// Whether this was taken before the other, when both clocks can be compared.
    pub fn is_before(&self, other: &Head) -> Option<bool> {
        let (own, other) = (self.taken.as_ref()?.clock(), other.taken.as_ref()?.clock());
        (own.0 == other.0).then_some(own.1 < other.1)
    }
}
