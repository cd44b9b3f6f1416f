//! What the advisor says, and how much it weighs.

use serde::Serialize;

use super::rule::Kind;
use super::view::{Role, View};
use crate::capture::At;
use crate::report::clean::is_word;
use crate::trace::Figure;

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
    /// The one command to run; `None` where no command mends it, and [`effect`](Self::effect) then says what does.
    pub command: Option<String>,
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
        let (about, capture) = (about.into(), capture.into());
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
}

/// What became of one rule on one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Judged {
    /// The kind of object.
    pub kind: Kind,
    /// The object: `fcs0 on vios1`.
    pub object: String,
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

/// A finding that is being put together.
pub(super) struct Draft {
    pub(super) rule: &'static str,
    pub(super) host: usize,
    confidence: f64,
    impact: f64,
    finding: Finding,
}

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
            title,
            severity,
            evidence: Vec::new(),
            reasoning: Vec::new(),
            figures: Vec::new(),
            command: None,
            effect: String::new(),
            harm: String::new(),
            undo: None,
            confidence: 0.0,
            score: 0.0,
        };
        Self { rule, host, confidence: 0.5, impact: 1.0, finding }
    }

    /// A line that shows it; each once, in the order given.
    pub(super) fn see(mut self, at: impl IntoIterator<Item = At>) -> Self {
        for at in at {
            if !self.finding.evidence.contains(&at) {
                self.finding.evidence.push(at);
            }
        }
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

    /// The change that mends it: its command, and its undoing.
    pub(super) fn change(mut self, change: &Change) -> Self {
        self.finding.command = change.command();
        self.finding.undo = self.finding.command.is_some().then(|| change.undo());
        self
    }

    /// A command that is no change of an attribute.
    pub(super) fn run(mut self, command: String, undo: Option<String>) -> Self {
        self.finding.command = Some(command);
        self.finding.undo = undo;
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

    /// Something else may be behind it: it comes after that.
    pub(super) fn behind(&mut self, why: &str) {
        self.impact *= 0.6;
        self.finding.reasoning.push(why.to_owned());
    }

    pub(super) fn object(&self) -> &str {
        &self.finding.object
    }

    /// The finding, by the weight of its rule.
    pub(super) fn finish(self, weight: f64) -> Finding {
        let Self { confidence, impact, mut finding, .. } = self;
        finding.confidence = confidence;
        finding.score = finding.severity.weight() * confidence * impact * weight;
        finding
    }
}

/// A change of attributes of one device.
pub(super) struct Change {
    vios: bool,
    device: String,
    /// Name, old value where known, new value.
    sets: Vec<(&'static str, Option<String>, String)>,
    /// Whether it waits for the next configuration of the device.
    later: bool,
}

impl Change {
    pub(super) fn new(view: &View<'_>, host: usize, device: &str) -> Self {
        Self {
            vios: view.role(host) == Role::Vios,
            device: device.to_owned(),
            sets: Vec::new(),
            later: true,
        }
    }

    /// The change is made on a client, wherever the capture is from.
    pub(super) fn on_client(mut self) -> Self {
        self.vios = false;
        self
    }

    /// The change is made on the running device.
    pub(super) fn live(mut self) -> Self {
        self.later = false;
        self
    }

    pub(super) fn set(
        mut self,
        name: &'static str,
        old: Option<&str>,
        new: impl Into<String>,
    ) -> Self {
        self.sets.push((name, old.map(str::to_owned), new.into()));
        self
    }

    /// `chdev` as the VIOS or AIX spells it; `None` when a name from the capture is no device's name.
    fn command(&self) -> Option<String> {
        let words = self.sets.iter().flat_map(|(_, old, new)| old.iter().chain([new]));
        let usable = is_word(&self.device)
            && !self.sets.is_empty()
            && words.into_iter().all(|word| is_word(word));
        usable.then(|| self.spell(|(_, _, new)| new))
    }

    fn spell<'s>(
        &'s self,
        value: impl Fn(&'s (&'static str, Option<String>, String)) -> &'s str,
    ) -> String {
        let sets: Vec<String> =
            self.sets.iter().map(|set| format!("{}={}", set.0, value(set))).collect();
        match (self.vios, self.later) {
            (true, later) => {
                format!(
                    "chdev -dev {} -attr {}{}",
                    self.device,
                    sets.join(" "),
                    if later { " -perm" } else { "" }
                )
            }
            (false, later) => {
                format!(
                    "chdev -l {} -a {}{}",
                    self.device,
                    sets.join(" -a "),
                    if later { " -P" } else { "" }
                )
            }
        }
    }

    fn undo(&self) -> String {
        if self.sets.iter().all(|(_, old, _)| old.is_some()) {
            return self.spell(|(_, old, new)| old.as_deref().unwrap_or(new));
        }
        let show = if self.vios {
            format!("lsdev -dev {} -attr", self.device)
        } else {
            format!("lsattr -El {}", self.device)
        };
        format!(
            "The old value is not in the captures. Note it first ({show}); undo with the same command and that value."
        )
    }
}
