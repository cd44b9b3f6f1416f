//! What the advisor says, and how much it weighs.

mod together;

use std::collections::BTreeSet;

use serde::Serialize;

use super::change::{Change, Setting};
use super::compared::Compared;
use super::measure::Counter;
use super::overview::{Map, SystemState};
use super::rule::Kind;
use crate::capture::At;
use crate::facts::Contradiction;
use crate::report::clean::tame;
use crate::trace::{Figure, number};
use together::FailingDisk;

pub(super) use together::tell_failing_disks_once;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing suffers now.
    Note,
    /// Performance or redundancy suffers, or will under load.
    Warning,
    /// I/O or the network fails, or is about to.
    Critical,
}

impl Severity {
    fn weight(self) -> f64 {
        match self {
            Self::Note => 25.0,
            Self::Warning => 60.0,
            Self::Critical => 100.0,
        }
    }
}

/// Something that should be changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The rule that speaks, one of [`rules`](super::rules). Stable.
    pub rule: &'static str,
    /// What it is about: `fcs0 on vios1`.
    pub object: String,
    /// The system that it is on.
    pub system: String,
    /// Other systems whose trouble it explains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub affects: Vec<String>,
    /// The finding in a sentence.
    pub title: String,
    /// How bad it is.
    pub severity: Severity,
    /// The lines that show it.
    pub evidence: Vec<At>,
    /// Why, step by step.
    pub reasoning: Vec<String>,
    /// The numbers.
    pub figures: Vec<Figure>,
    /// The one command to run; `None` where no command mends it, and [`effect`](Self::effect) then says what does, and
    /// where the captures do not tell enough for one, and [`look_up`](Self::look_up) then says what to find out.
    pub command: Option<String>,
    /// Where and as whom to run it: `as padmin on vios1`.
    pub place: Option<String>,
    /// What was worked out to be set, `num_cmd_elems=2048`, where no command is printed for it.
    pub to_set: Option<String>,
    /// What has to be known before it is set, each with its command.
    pub look_up: Vec<String>,
    /// What to expect.
    pub effect: String,
    /// What the change could harm.
    pub harm: String,
    /// How to take it back.
    pub undo: Option<String>,
    /// How sure the rule is, 0 to 1.
    pub confidence: f64,
    /// Orders findings: severity × confidence × impact.
    pub score: f64,
}

impl Finding {
    /// Whether it is about this system; what is about a pair is about both, and what explains another's trouble about that.
    #[must_use]
    pub fn is_of(&self, system: &str) -> bool {
        self.systems().contains(system)
    }

    /// The systems that it is about, and what could be one's name in what the object is called.
    pub(super) fn systems(&self) -> BTreeSet<&str> {
        // A name may have an ` on ` in itself, as that of a file can.
        let names = |part| {
            std::iter::successors(Some(part), |rest: &&str| Some(rest.split_once(" on ")?.1))
        };
        let named = self.object.split(" and ").flat_map(move |part| names(part).skip(1));
        let all = [&self.system].into_iter().chain(&self.affects).map(String::as_str);
        all.chain(named).collect()
    }
}

/// Why no command is printed.
#[derive(Debug, Clone, Default)]
pub(super) struct NoCommand {
    /// What was worked out to be set.
    pub(super) values: String,
    /// What has to be known first.
    pub(super) look_up: Vec<String>,
    /// What was set before and waits to take effect, with its lines.
    pub(super) already: Option<(String, Vec<At>)>,
}

/// A rule that could not judge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NotChecked {
    /// The rule.
    pub rule: &'static str,
    /// What to capture, after what it is for.
    pub missing: String,
    /// The command alone.
    pub capture: String,
    /// The object that was not judged, or what the capture would show of it; may be empty.
    pub about: String,
    /// Whether the captures hold nothing at all of what the rule is about.
    pub absent: bool,
}

impl NotChecked {
    pub(super) fn new(
        rule: &'static str,
        about: impl Into<String>,
        capture: impl Into<String>,
    ) -> Self {
        let (about, capture) = (about.into(), tame(&capture.into()));
        let missing = match about.is_empty() {
            true => capture.clone(),
            false => format!("{about}: {capture}"),
        };
        Self { rule, missing, capture, about, absent: false }
    }
}

/// The advisor's answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Advice {
    /// Best first.
    pub findings: Vec<Finding>,
    /// By rule.
    pub not_checked: Vec<NotChecked>,
    /// What became of each rule on each object that it is about, by object.
    pub coverage: Vec<Judged>,
    /// The systems that were captured, by name.
    pub systems: Vec<SystemState>,
    /// What hangs on what.
    pub map: Map,
    /// Where the text of a source says something else than the numbers that a finding goes by.
    pub contradictions: Vec<Contradiction>,
    /// What IBM's own advisor says, where its report is among the captures, beside what is said here.
    pub compared: Vec<Compared>,
    /// Rules that were not asked, because the user's own facts say so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silenced: Vec<Silenced>,
}

/// A rule of which a user wants to hear nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Silenced {
    /// Its name.
    pub rule: &'static str,
    /// Why, in the user's words.
    pub why: String,
}

impl Advice {
    /// Whether every rule that applies could be judged, and there was something to judge.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.coverage.is_empty()
            && self.coverage.iter().all(|judged| judged.state != State::NotJudged)
    }
}

/// What became of one rule on one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Judged {
    /// The kind of object.
    pub kind: Kind,
    /// The object: `fcs0 on vios1`.
    pub object: String,
    /// The system that it is on.
    pub system: String,
    /// The rule.
    pub rule: &'static str,
    /// What came of it.
    pub state: State,
    /// Why it was not judged; else empty.
    pub why: String,
    /// The command whose output would decide, where it was not judged; else empty.
    pub capture: String,
}

/// Whether a rule found something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Judged, and something was found.
    Finding,
    /// Not judged: something was not captured.
    NotJudged,
    /// Judged, and nothing was found.
    Healthy,
}

/// Adds what is not there yet.
fn add_new<T: PartialEq>(all: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

/// A finding that is being put together.
pub(super) struct Draft {
    pub(super) rule: &'static str,
    pub(super) host: usize,
    confidence: f64,
    impact: f64,
    /// What it goes through, nearest first: the trouble of any of these would explain it.
    pub(super) through: Vec<String>,
    /// Objects whose trouble may be its cause, each as a user reads it.
    pub(super) follows: Vec<String>,
    /// What its command sets.
    pub(super) sets: Vec<Setting>,
    /// The other of a pair, which says the same where it is the same trouble.
    pub(super) twin: Option<String>,
    /// The slow disk that it is about.
    pub(super) slow: Option<SlowDisk>,
    /// The disk with errors in the log that it is about.
    failing: Option<FailingDisk>,
    /// The storage ports that all the paths have in common that are down, and no other path has.
    pub(super) storage_ports: BTreeSet<String>,
    /// Other systems whose trouble it explains.
    affects: BTreeSet<usize>,
    /// What of the reasoning is of its own system, and says nothing of several.
    here: Vec<String>,
    finding: Finding,
}

/// A disk that answers slowly.
#[derive(Debug, Clone)]
pub(super) struct SlowDisk {
    pub(super) name: String,
    /// Its service time.
    pub(super) ms: f64,
    /// The array that it is of.
    pub(super) array: Array,
}

/// What tells which array a disk is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Array {
    /// A port of the array: whichever system sees it.
    Port(String),
    /// What the disk says that it is; of one system.
    Model(String),
    /// Nothing was captured that tells.
    Unknown,
}

/// What begins the sentence that says how harm is stopped before its cause is mended.
const STOP: &str = "To stop a loop at once,";

impl Draft {
    pub(super) fn new(
        rule: &'static str,
        host: usize,
        object: String,
        severity: Severity,
        title: String,
    ) -> Self {
        let finding = Finding {
            rule,
            object,
            system: String::new(),
            affects: Vec::new(),
            title,
            severity,
            evidence: Vec::new(),
            reasoning: Vec::new(),
            figures: Vec::new(),
            command: None,
            place: None,
            to_set: None,
            look_up: Vec::new(),
            effect: String::new(),
            harm: String::new(),
            undo: None,
            confidence: 0.0,
            score: 0.0,
        };
        Self {
            rule,
            host,
            confidence: 0.5,
            impact: 1.0,
            through: Vec::new(),
            follows: Vec::new(),
            sets: Vec::new(),
            twin: None,
            slow: None,
            failing: None,
            storage_ports: BTreeSet::new(),
            affects: BTreeSet::new(),
            here: Vec::new(),
            finding,
        }
    }

    /// A line that shows it; each once, in the order given.
    pub(super) fn see(mut self, at: impl IntoIterator<Item = At>) -> Self {
        add_new(&mut self.finding.evidence, at);
        self
    }

    pub(super) fn because(mut self, why: impl Into<String>) -> Self {
        let why = why.into();
        if !why.is_empty() {
            self.finding.reasoning.push(why);
        }
        self
    }

    pub(super) fn figure(mut self, figure: Figure) -> Self {
        self.finding.figures.push(figure);
        self
    }

    /// The change that mends it: its command and its undoing, or what has to be looked up first.
    pub(super) fn change(mut self, change: &Change<'_, '_>) -> Self {
        match change.command() {
            Ok([command, place, undo]) => {
                self.finding.command = Some(command);
                self.finding.place = Some(place);
                self.finding.undo = Some(undo);
                self.finding.to_set = Some(change.values());
                self.sets = change.sets();
            }
            Err(why) => return self.unknown(why),
        }
        self
    }

    /// No command, because of what is not known.
    pub(super) fn unknown(mut self, why: NoCommand) -> Self {
        self.finding.to_set = Some(why.values).filter(|values| !values.is_empty());
        self.finding.look_up = why.look_up;
        let Some((values, lines)) = why.already else { return self };
        self.see(lines).because(format!("{values} is set already, for later, and not in force: only the restart is missing, or that the device is configured anew."))
    }

    /// No command before it is known what the value is that is to be changed.
    pub(super) fn in_doubt(mut self, look_up: String) -> Self {
        (self.finding.command, self.finding.place, self.finding.undo) = (None, None, None);
        self.finding.look_up.push(look_up);
        self
    }

    /// A command that is no change of an attribute, where to run it, and the one that takes it back.
    pub(super) fn run(mut self, command: String, place: &str, undo: String) -> Self {
        self.finding.command = Some(command);
        self.finding.place = Some(place.to_owned());
        self.finding.undo = Some(undo);
        self
    }

    /// How a change that is no command is taken back.
    pub(super) fn undone_by(mut self, undo: String) -> Self {
        self.finding.undo = Some(undo);
        self
    }

    pub(super) fn effect(mut self, effect: impl Into<String>) -> Self {
        self.finding.effect = effect.into();
        self
    }

    pub(super) fn harm(mut self, harm: impl Into<String>) -> Self {
        self.finding.harm = harm.into();
        self
    }

    /// How sure the rule is (0 to 1) and how much hangs on it (1 is usual).
    pub(super) fn weigh(mut self, confidence: f64, impact: f64) -> Self {
        self.confidence = confidence.clamp(0.0, 1.0);
        self.impact = impact.clamp(0.1, 2.0);
        self
    }

    /// Another finding sets this attribute, to a value that serves both: two commands for it would undo each other.
    pub(super) fn gives_way(&mut self, device: &str, attribute: &str, rule: &str) {
        self.sets.clear();
        let finding = &mut self.finding;
        (finding.command, finding.place, finding.undo) = (None, None, None);
        finding.to_set = None;
        finding.reasoning.push(format!(
            "The command of {rule} sets {attribute} of {device} to a value that serves this, too."
        ));
    }

    /// It is worth knowing and hurts nobody.
    pub(super) fn only_noted(mut self, why: &str) -> Self {
        self.finding.severity = Severity::Note;
        self.because(why)
    }

    /// What it rests on is over, or happens now.
    pub(super) fn unless_over(mut self, counter: &Counter) -> Self {
        let Some(why) = counter.is_over() else { return self };
        self.finding.severity = Severity::Note;
        self.because(why)
    }

    /// An object that it goes through, as a user reads it.
    pub(super) fn through(mut self, objects: impl IntoIterator<Item = String>) -> Self {
        self.through.extend(objects);
        self
    }

    /// Objects whose trouble may be its cause, each as a user reads it.
    pub(super) fn may_follow(mut self, objects: Vec<String>) -> Self {
        self.follows.extend(objects);
        self
    }

    /// What it may be the cause of, which is seen already.
    pub(super) fn may_explain(&mut self, effect: &mut Self) {
        self.finding.reasoning.push(format!(
            "{} now, over virtual SCSI: that is what it looks like.",
            capital(&effect.finding.title)
        ));
        self.finding.severity = self.finding.severity.max(effect.finding.severity);
        self.affects.extend(Some(effect.host).filter(|host| *host != self.host));
        add_new(&mut self.finding.evidence, effect.finding.evidence.iter().copied());
        effect.waits_for(
            &format!(
                "{} may be the cause (“{}”): mend that first.",
                self.finding.object, self.finding.title
            ),
            String::new(),
        );
    }

    /// The other of its pair, as a user reads it.
    pub(super) fn twin(mut self, object: Option<String>) -> Self {
        self.twin = object;
        self
    }

    /// The slow disk that it is about.
    pub(super) fn slow(mut self, disk: SlowDisk) -> Self {
        self.slow = Some(disk);
        self
    }

    /// The same, as long as it is of one system alone.
    pub(super) fn because_here(mut self, why: String) -> Self {
        self.here.push(why.clone());
        self.because(why)
    }

    /// The storage ports that the paths have in common that are down.
    pub(super) fn at_storage_ports(mut self, ports: BTreeSet<String>) -> Self {
        self.storage_ports = ports;
        self
    }

    /// Says it of several systems that lost their paths to the same storage ports.
    pub(super) fn speaks_for_systems(
        &mut self,
        others: Vec<Self>,
        spoken: impl Fn(usize) -> String,
    ) {
        self.storage_ports.extend(others.iter().flat_map(|other| other.storage_ports.clone()));
        let ports = self.storage_ports.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let hosts: BTreeSet<usize> =
            [self.host].into_iter().chain(others.iter().map(|other| other.host)).collect();
        let names: Vec<String> = hosts.iter().map(|host| spoken(*host)).collect();
        let why = format!(
            "Of {} systems all paths to the storage ports {ports} are down and others are up: look at that node or controller of the array, or its links, and not at each system.",
            hosts.len()
        );
        let told: Vec<String> = [self.finding.title.clone()]
            .into_iter()
            .chain(others.iter().map(|other| other.finding.title.clone()))
            .map(|title| format!("{}.", capital(&title)))
            .collect();
        self.finding.reasoning.retain(|why| !self.here.contains(why));
        self.finding.reasoning.splice(0..0, [why].into_iter().chain(told));
        self.finding.object = names.join(" and ");
        self.finding.title =
            format!("paths to the storage ports {ports} are down, for {} systems", hosts.len());
        for other in others {
            self.confidence = self.confidence.max(other.confidence);
            self.impact = self.impact.max(other.impact);
            self.affects.extend(Some(other.host).filter(|host| *host != self.host));
            add_new(&mut self.finding.evidence, other.finding.evidence);
        }
    }

    /// Says it of several disks of one array: this one and the others.
    pub(super) fn speaks_for_disks(&mut self, others: Vec<Self>, spoken: impl Fn(usize) -> String) {
        const NAMED: usize = 12;
        let mut of: Vec<(usize, Vec<SlowDisk>)> = Vec::new();
        let own = self.slow.clone().map(|disk| (self.host, disk));
        let more = others.iter().filter_map(|other| Some((other.host, other.slow.clone()?)));
        for (host, disk) in own.into_iter().chain(more) {
            match of.iter_mut().find(|(same, _)| *same == host) {
                Some((_, disks)) => disks.push(disk),
                None => of.push((host, vec![disk])),
            }
        }
        for (_, disks) in &mut of {
            disks.sort_by(|a, b| (a.name.len(), &a.name).cmp(&(b.name.len(), &b.name)));
        }
        let named = |disks: &[SlowDisk]| {
            let names = disks.iter().take(NAMED).map(|disk| disk.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            match disks.len().saturating_sub(NAMED) {
                0 => names,
                more => format!("{names}, {more} more"),
            }
        };
        let objects =
            of.iter().map(|(host, disks)| format!("{} on {}", named(disks), spoken(*host)));
        self.finding.object = objects.collect::<Vec<_>>().join(" and ");
        let count: usize = of.iter().map(|(_, disks)| disks.len()).sum();
        let times = of.iter().flat_map(|(_, disks)| disks).map(|disk| disk.ms);
        let (low, high) =
            times.fold((f64::MAX, 0.0_f64), |(low, high), ms| (low.min(ms), high.max(ms)));
        let (what, share) = match self.slow.as_ref().map(|disk| &disk.array) {
            Some(Array::Port(port)) => (format!("the array whose port is {port}"), "of one array"),
            Some(Array::Model(model)) => {
                (format!("what calls itself {model}"), "of one kind of array")
            }
            _ => (
                "one system, whose arrays were not captured (lspath and lscfg tell them)"
                    .to_owned(),
                "of one system",
            ),
        };
        let (low, high) = (number(low.round()), number(high.round()));
        let range = if low == high { low } else { format!("{low} to {high}") };
        self.finding.title = format!("{count} disks {share} answer slowly");
        self.finding.reasoning.insert(
            0,
            format!("{count} disks of {what} answer slowly, in {range} ms: one cause behind all of them is likelier than one each."),
        );
        for other in others {
            self.confidence = self.confidence.max(other.confidence);
            self.affects.extend(Some(other.host).filter(|host| *host != self.host));
            add_new(&mut self.finding.evidence, other.finding.evidence);
            self.finding.figures.extend(other.finding.figures.into_iter().filter(|figure| {
                figure.name.contains("service time")
                    && figure.unit == "ms"
                    && !figure.name.contains("usual")
            }));
        }
    }

    /// Says it of both of a pair.
    pub(super) fn speaks_for(&mut self, twin: &Self) {
        self.finding.object = format!("{} and {}", self.finding.object, twin.finding.object);
        self.affects.insert(twin.host);
        add_new(&mut self.finding.evidence, twin.finding.evidence.iter().copied());
    }

    pub(super) fn title(&self) -> &str {
        &self.finding.title
    }

    /// What else comes of it.
    pub(super) fn explains(&mut self, effect: &Self) {
        self.finding.reasoning.push(format!("For that reason {}.", effect.finding.title));
        self.affects.extend(Some(effect.host).filter(|host| *host != self.host));
        add_new(&mut self.finding.evidence, effect.finding.evidence.iter().copied());
    }

    /// What comes of it is as bad as this, and stopped as this is.
    pub(super) fn is_as_bad_as(&mut self, effect: &Self) {
        self.finding.severity = self.finding.severity.max(effect.finding.severity);
        if let Some(at) = effect.finding.effect.find(STOP) {
            self.finding.effect =
                format!("{} {}", self.finding.effect, &effect.finding.effect[at..]);
        }
    }

    /// The same trouble, seen at another place: its reasons, lines and figures come to these.
    pub(super) fn joins(&mut self, other: Self) {
        let Finding { evidence, reasoning, figures, .. } = other.finding;
        add_new(&mut self.finding.evidence, evidence);
        add_new(&mut self.finding.reasoning, reasoning);
        add_new(&mut self.finding.figures, figures);
    }

    /// Something else may be behind it: it comes after that, and nothing is changed before.
    pub(super) fn waits_for(&mut self, why: &str, look_up: String) {
        self.impact *= 0.6;
        self.sets.clear();
        let finding = &mut self.finding;
        finding.reasoning.push(why.to_owned());
        if finding.command.is_some() || finding.to_set.is_some() {
            (finding.command, finding.place, finding.undo) = (None, None, None);
            finding.look_up.insert(0, look_up);
        }
    }

    pub(super) fn evidence(&self) -> &[At] {
        &self.finding.evidence
    }

    pub(super) fn object(&self) -> &str {
        &self.finding.object
    }

    /// The finding, by the weight of its rule.
    pub(super) fn finish(self, weight: f64, spoken: impl Fn(usize) -> String) -> Finding {
        let Self { confidence, impact, mut finding, host, affects, .. } = self;
        finding.confidence = confidence;
        finding.system = spoken(host);
        finding.affects = affects.into_iter().map(spoken).collect();
        finding.look_up = finding.look_up.iter().map(|what| tame(what)).collect();
        for typed in [&mut finding.command, &mut finding.place, &mut finding.undo] {
            *typed = typed.as_deref().map(tame);
        }
        // What is only worth knowing asks for a second look, not for a change.
        if finding.severity == Severity::Note && finding.command.is_some() {
            (finding.command, finding.place, finding.undo) = (None, None, None);
            finding.look_up =
                vec!["whether it goes on: the same captures again, under load".to_owned()];
        }
        if let Some(command) = &finding.command {
            finding.to_set = None;
            if command.ends_with(" -U") {
                finding.effect = at_once(&finding.effect);
            }
        }
        finding.score = finding.severity.weight() * confidence * impact * weight;
        finding
    }
}

/// A sentence's beginning.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What a change in use brings: rules say when it takes effect where the device has to be configured again, and `chdev -U`
/// changes the device and what is kept of it together.
fn at_once(effect: &str) -> String {
    const LATER: &str = "It takes effect when ";
    let Some((before, after)) = effect.split_once(LATER) else { return effect.to_owned() };
    let rest = after.split_once('.').map_or("", |(_, rest)| rest);
    format!("{before}It takes effect at once and stays.{rest}")
}
