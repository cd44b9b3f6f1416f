//! `trunkline plan advise --server`: a running Trunkline server, judged by two readings of its statistics.
//!
//! Rules for PowerVM do not fit here: their thresholds come from drivers that are not ours, and their commands are those of
//! AIX. What a Trunkline server counts has its own meaning (`docs/guide/statistics.md`), and so it has rules of its own:
//! commands that waited, and for what; channels that are busy all the time, and who keeps their number; devices that are slow;
//! commands that failed. Only what happened between the two readings counts, not what happened before.

use super::show::AnswerArgs;
use crate::cli::Global;
use crate::client::Client;
use crate::exit::Failure;
use control::server::{AdapterView, StatusView, VolumeView};
use control::statistics::{Counters, Measures, StatsView};
use planner::facts::Facts;
use planner::report::{Answer, Block, Section, Tone};
use planner::trace::{Figure, Term};
use serde::Serialize;
use std::time::{Duration, Instant};

/// A share of commands that waited from which on it is worth a word, in percent.
const WAITED_PERCENT: f64 = 1.0;
/// A channel that works so much of the time is full, in percent. Placement moves queues away from 70 % on, where it can.
const BUSY_PERCENT: f64 = 90.0;
/// With fewer commands nothing is said about shares and averages.
const COMMANDS_MIN: u64 = 100;

/// Reads twice, judges, prints; says whether something was found.
pub(super) fn run(
    global: &Global,
    seconds: u64,
    answer: &AnswerArgs,
    facts: &Facts,
) -> Result<bool, Failure> {
    let client = Client::new(global)?;
    let before: StatsView = client.get("/v1/stats")?;
    let since = Instant::now();
    std::thread::sleep(Duration::from_secs(seconds));
    let after: StatsView = client.get("/v1/stats")?;
    let seconds = since.elapsed().as_secs_f64();
    let status: StatusView = client.get("/v1/status")?;
    let health = Readings { status, before, after, seconds }.judge(facts);
    answer.show(global, &health, &health, None)?;
    Ok(!health.findings.is_empty())
}

/// What was read.
struct Readings {
    status: StatusView,
    before: StatsView,
    after: StatsView,
    seconds: f64,
}

/// What came of it.
#[derive(Debug, Serialize)]
struct Health {
    seconds: f64,
    adapters: usize,
    /// Adapters with too little work to be judged.
    quiet: Vec<String>,
    findings: Vec<Finding>,
}

/// One thing to mend.
#[derive(Debug, Serialize)]
struct Finding {
    rule: &'static str,
    object: String,
    severity: Tone,
    title: String,
    reasoning: String,
    figures: Vec<Figure>,
    command: Option<String>,
    effect: String,
    harm: String,
}

/// What an adapter did between the readings.
struct Worked<'a> {
    adapter: &'a AdapterView,
    volume: Option<&'a VolumeView>,
    before: Option<&'a Measures>,
    after: &'a Measures,
}

impl Readings {
    fn judge(&self, facts: &Facts) -> Health {
        let mut findings = Vec::new();
        let mut quiet = Vec::new();
        for after in &self.after.adapters {
            let name = &after.adapter;
            let Some(adapter) = self.status.adapters.iter().find(|a| a.name == *name) else {
                continue;
            };
            let before = self.before.adapters.iter().find(|other| other.adapter == *name);
            let volume = self.status.volumes.iter().find(|volume| volume.name == adapter.volume);
            let before = before.map(|before| &before.total);
            let worked = Worked { adapter, volume, before, after: &after.total };
            findings.extend(worked.failed());
            if worked.grown("commands_received") < COMMANDS_MIN {
                quiet.push(name.clone());
                continue;
            }
            findings.extend(worked.waits());
            findings.extend(worked.slow_device(facts));
            findings.extend(self.full_channels(adapter));
        }
        findings.sort_by_key(|finding| std::cmp::Reverse(rank(finding.severity)));
        Health { seconds: self.seconds, adapters: self.after.adapters.len(), quiet, findings }
    }

    /// All channels that serve an adapter work all the time, and the adapter may not have more.
    fn full_channels(&self, adapter: &AdapterView) -> Option<Finding> {
        let mut used = adapter.channel_of_queue.clone();
        used.sort_unstable();
        used.dedup();
        let busy = |channel: &u32| {
            let of = |stats: &StatsView| {
                let same = stats.channels.iter().find(|other| {
                    other.dataplane == adapter.dataplane && other.channel == *channel
                })?;
                same.counters.get("busy_ns").copied()
            };
            Some(grown(of(&self.before), of(&self.after)?))
        };
        let busy: Vec<u64> = used.iter().map(busy).collect::<Option<_>>()?;
        let least = *busy.iter().min()?;
        let share = Figure::new(
            "busy",
            "%",
            "working ÷ elapsed × 100",
            vec![
                Term::given("working", real(least) / 1e9, "s of the least busy channel"),
                Term::given("elapsed", self.seconds, "s"),
            ],
        );
        if share.low < BUSY_PERCENT || adapter.channels < adapter.channels_max {
            return None;
        }
        let name = &adapter.name;
        Some(Finding {
            rule: "server-channels-full",
            object: name.clone(),
            severity: Tone::Warning,
            title: format!("{name}: its channels have no time left"),
            reasoning: format!(
                "Each of the {} channels that serve it works all the time, and it may not have more: \
                 the {} sets the number.",
                used.len(),
                adapter.limited_by
            ),
            figures: vec![share],
            command: Some(format!("trunkline adapter explain {name}")),
            effect: format!("To lift it: {}.", adapter.limited_by.remedy()),
            harm: "More channels take more processor time from others.".to_owned(),
        })
    }
}

impl Worked<'_> {
    fn grown(&self, counter: &str) -> u64 {
        let of = |counters: &Counters| counters.get(counter).copied();
        grown(
            self.before.and_then(|before| of(&before.counters)),
            of(&self.after.counters).unwrap_or(0),
        )
    }

    fn name(&self) -> &str {
        &self.adapter.name
    }

    /// Commands that failed for a reason that is the server's, not the client's.
    fn failed(&self) -> Vec<Finding> {
        let causes = [
            (
                "errors_no_space",
                "server-no-space",
                "the file system under it is full",
                "make room on the file system of the volume's file; the guest must try again",
            ),
            (
                "errors_gone",
                "server-volume-gone",
                "its file or device is gone",
                "bring the device back, then connect the client again",
            ),
        ];
        let found = causes.into_iter().filter(|(counter, ..)| self.grown(counter) > 0);
        found
            .map(|(counter, rule, why, remedy)| {
                let failed = Term::given("failed", real(self.grown(counter)), "commands");
                let volume = &self.adapter.volume;
                Finding {
                    rule,
                    object: self.name().to_owned(),
                    severity: Tone::Critical,
                    title: format!("{}: commands fail, volume {volume}: {why}", self.name()),
                    reasoning: format!("`{counter}` grew between the readings."),
                    figures: vec![Figure::plain(failed)],
                    command: Some(format!("trunkline volume show {volume}")),
                    effect: format!("To mend it: {remedy}."),
                    harm: "None.".to_owned(),
                }
            })
            .collect()
    }

    /// Commands that waited in the server, by reason. A modelled delay is meant to be waited for.
    fn waits(&self) -> Vec<Finding> {
        let volume = &self.adapter.volume;
        let limits: Vec<&str> = ["limit_iops", "limit_bytes_per_s"]
            .into_iter()
            .filter(|limit| self.volume.is_some_and(|v| v.attributes.contains_key(*limit)))
            .collect();
        let lift = limits.iter().map(|limit| format!(" --unset {limit}")).collect::<String>();
        let lift = (!lift.is_empty()).then(|| format!("trunkline volume set {volume}{lift}"));
        [
            self.wait(
                ("wait_throttled", "server-throttled", Tone::Note),
                format!("the limit of volume {volume}"),
                lift,
                "Without the limit they do not wait; raise it if it is meant to be there.",
                "Other clients of the same device lose what the limit kept for them.",
            ),
            self.wait(
                ("wait_no_dma", "server-no-buffer", Tone::Warning),
                "a bounce buffer or a long segment list".to_owned(),
                None,
                "A client whose buffers are aligned to the volume's block size, or a volume with buffered I/O \
                 (`direct` false), needs none; so do requests of fewer segments (`seg_max`).",
                "Buffered I/O takes memory of the host and answers before the device has the data.",
            ),
            self.wait(
                ("wait_back_end_full", "server-back-end-full", Tone::Warning),
                format!("volume {volume}, which took no more"),
                None,
                "More channels give the volume more submission queues; a smaller depth in the client keeps \
                 the wait there.",
                "More channels take more processor time from others.",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn wait(
        &self,
        (counter, rule, severity): (&str, &'static str, Tone),
        what_for: String,
        command: Option<String>,
        effect: &str,
        harm: &str,
    ) -> Option<Finding> {
        let share = Figure::new(
            "waited",
            "% of the commands",
            "waits ÷ commands × 100",
            vec![
                Term::given("waits", real(self.grown(counter)), ""),
                Term::given("commands", real(self.grown("commands_received")), ""),
            ],
        );
        (share.low >= WAITED_PERCENT).then(|| Finding {
            rule,
            object: self.name().to_owned(),
            severity,
            title: format!("{}: commands wait for {what_for}", self.name()),
            reasoning: format!("`{counter}` grew between the readings."),
            figures: vec![share],
            command,
            effect: effect.to_owned(),
            harm: harm.to_owned(),
        })
    }

    /// The time from handing a command to the volume to its completion, on average between the readings.
    fn slow_device(&self, facts: &Facts) -> Option<Finding> {
        let total = |measures: &Measures| {
            let latency = measures.latency.get("device")?;
            Some((latency.count, u128::from(latency.count) * u128::from(latency.mean_ns)))
        };
        let (count, sum) = total(self.after)?;
        let (count_before, sum_before) = self.before.and_then(total).unwrap_or((0, 0));
        let (count, sum) = match count.checked_sub(count_before).zip(sum.checked_sub(sum_before)) {
            Some(grown) => grown,
            None => (count, sum),
        };
        if count < COMMANDS_MIN {
            return None;
        }
        let milliseconds = f64::from(u32::try_from(sum / u128::from(count) / 1000).ok()?) / 1000.0;
        let least = facts.find("disk.service-ms-max")?;
        (milliseconds > least.high).then(|| Finding {
            rule: "server-device-slow",
            object: self.adapter.volume.clone(),
            severity: Tone::Warning,
            title: format!("volume {}: its device is slow", self.adapter.volume),
            reasoning: "The time counts from handing a command to the device to its completion; waits in the server \
                        are not in it."
                .to_owned(),
            figures: vec![
                Figure::plain(Term::given("service time", milliseconds, "ms on average")),
                Figure::plain(least.term("slow from")),
            ],
            command: Some(format!("trunkline stats {}", self.name())),
            effect: "A faster device, or less load on it, mends it; no attribute of the server does.".to_owned(),
            harm: "None.".to_owned(),
        })
    }
}

/// How much a counter grew; one that began anew counts from zero.
fn grown(before: Option<u64>, after: u64) -> u64 {
    after.checked_sub(before.unwrap_or(0)).unwrap_or(after)
}

/// A counter as a number to reckon with; beyond 2^53 it is near enough.
#[allow(clippy::cast_precision_loss)]
fn real(counter: u64) -> f64 {
    counter as f64
}

fn rank(tone: Tone) -> u8 {
    match tone {
        Tone::Critical => 3,
        Tone::Warning => 2,
        Tone::Note => 1,
        Tone::Good | Tone::Plain => 0,
    }
}

impl Answer for Health {
    fn kind(&self) -> &'static str {
        "server"
    }

    fn title(&self) -> String {
        "Advice for this server".to_owned()
    }

    fn summary(&self) -> String {
        let found = match self.findings.len() {
            0 => "nothing to mend".to_owned(),
            1 => "one finding".to_owned(),
            n => format!("{n} findings"),
        };
        let quiet = match self.quiet.len() {
            0 => String::new(),
            _ => format!("; too little work to judge: {}", self.quiet.join(", ")),
        };
        format!("{} adapters, {:.0} seconds: {found}{quiet}.", self.adapters, self.seconds)
    }

    fn sections(&self) -> Vec<Section> {
        let section = |finding: &Finding| {
            let labelled = |label: &str, text: &String| Block::Labelled {
                label: label.to_owned(),
                text: text.clone(),
            };
            let mut section = Section::new(finding.title.clone(), finding.severity)
                .paragraph(finding.reasoning.clone())
                .block(Block::Figures(finding.figures.clone()));
            if let Some(command) = &finding.command {
                section = section.block(Block::Command(command.clone()));
            }
            section
                .block(labelled("effect", &finding.effect))
                .block(labelled("harm", &finding.harm))
        };
        self.findings.iter().map(section).collect()
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(self)
    }
}

#[cfg(test)]
mod tests;
