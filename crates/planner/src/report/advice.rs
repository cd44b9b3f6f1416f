//! The advisor's answer as sections: a first page in words, then what an administrator works by, then what was covered.

mod coverage;
mod front;
mod many;
mod map;

use std::collections::{BTreeMap, BTreeSet};

use super::trends::Trends;
use super::{Answer, Bar, Bars, Block, Chart, Detail, Section, Table, Tone};
use crate::advise::{Advice, Finding, NotChecked, Severity, rule, rules};
use crate::capture::{At, Captures, FileInfo, Head, Report};
use crate::trace::Figure;

/// Advice with the captures that it rests on.
pub struct AdviceReport<'a> {
    /// What the advisor said.
    pub advice: &'a Advice,
    /// What it was said of.
    pub captures: &'a Captures,
    /// Gives the text of a captured line, where the caller kept it.
    pub line: Option<&'a dyn Fn(At) -> Option<String>>,
    /// Whether a terminal gets the coverage object by object however many they are; else many are told by system.
    pub every_object: bool,
}

impl AdviceReport<'_> {
    /// What was found.
    fn found(&self) -> Vec<Section> {
        let mut sections = front::page(self.advice);
        let in_full = many::in_full(self.advice);
        let is_long = in_full.contains(&false);
        if self.advice.findings.len() > 1 {
            let overview = |detail: Detail, shown: &dyn Fn(usize) -> bool| {
                overview(self.advice, shown).only(detail)
            };
            match is_long {
                true => sections.extend([
                    overview(Detail::Brief, &|at| in_full.get(at) == Some(&true)),
                    overview(Detail::Full, &|_| true),
                ]),
                false => sections.push(overview(Detail::Always, &|_| true)),
            }
        }
        sections.extend(map::sections(&self.advice.map, &self.advice.findings));
        for (at, (finding, in_full)) in self.advice.findings.iter().zip(&in_full).enumerate() {
            let detail = if *in_full { Detail::Always } else { Detail::Full };
            sections.push(finding_section(at + 1, finding).only(detail));
        }
        if is_long {
            sections.push(many::more(self.advice, &in_full).only(Detail::Brief));
        }
        sections
    }

    /// What stands behind the findings.
    fn rest(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        sections.extend(Section::sources_differ(&self.advice.contradictions));
        sections.extend(silenced(self.advice));
        sections.extend(compared(self.advice));
        sections.extend(refused(self.captures));
        sections.extend(self.cut_section());
        sections.extend(to_capture(self.advice));
        sections.extend(not_checked(self.advice));
        sections.extend(coverage::sections(self.advice, self.every_object));
        sections
    }
}

/// The same with what its captures show over time, as a page has it.
pub struct WithTrends<'a> {
    /// The advice.
    pub report: &'a AdviceReport<'a>,
    /// What its captures show over time.
    pub trends: &'a Trends,
}

impl Answer for WithTrends<'_> {
    fn kind(&self) -> &'static str {
        self.report.kind()
    }

    fn title(&self) -> String {
        self.report.title()
    }

    fn summary(&self) -> String {
        self.report.summary()
    }

    fn sections(&self) -> Vec<Section> {
        let found = self.report.found().into_iter();
        found.chain(self.trends.on_a_page()).chain(self.report.rest()).collect()
    }

    fn file_name(&self, file: u32) -> Option<String> {
        self.report.file_name(file)
    }

    fn line_text(&self, at: At) -> Option<String> {
        self.report.line_text(at)
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        self.report.data()
    }
}

impl Answer for AdviceReport<'_> {
    fn kind(&self) -> &'static str {
        "advice"
    }

    fn title(&self) -> String {
        "Tuning advice".to_owned()
    }

    fn summary(&self) -> String {
        let files = counted(self.captures.files.len(), "file", "files");
        let reports = counted(self.captures.reports.len(), "report", "reports");
        let open = coverage::open(self.advice);
        let lacking = counted(open, "judgement lacks a capture", "judgements lack a capture");
        let not_read = self.captures.refused.len();
        let mut refused =
            if not_read > 0 { format!("; {not_read} could not be read") } else { String::new() };
        let in_part =
            self.captures.files.iter().filter(|file| file.left_out_from.is_some()).count();
        if in_part > 0 {
            let files = counted(in_part, "file was", "files were");
            refused.push_str(&format!("; {files} read in part (see what was read)"));
        }
        let cut = self.cut_short().len();
        let whole = open == 0 && refused.is_empty() && cut == 0;
        let open_ends = match (open, cut) {
            (0, 0) => String::new(),
            (0, cut) => {
                format!("; {}", counted(cut, "report is not whole", "reports are not whole"))
            }
            _ => format!("; {lacking} (see the coverage)"),
        };
        match (self.advice.findings.len(), self.advice.coverage.len()) {
            (0, 0) => format!("Nothing could be judged in {reports} of {files}{refused}."),
            (0, all) if whole => {
                format!(
                    "Nothing to change: all {all} judgements that apply were made, in {reports} of {files}."
                )
            }
            (0, all) if open < all => format!(
                "Nothing was found in what could be judged, in {reports} of {files}{refused}{open_ends}."
            ),
            (0, _) => format!(
                "Nothing could be judged in {reports} of {files}{refused}; {lacking} (see the coverage)."
            ),
            (count, _) => {
                let found = counted(count, "finding", "findings");
                let open = if open > 0 { format!("; {lacking}") } else { String::new() };
                format!("{found} in {reports} of {files}{refused}{open}.")
            }
        }
    }

    fn sections(&self) -> Vec<Section> {
        self.found().into_iter().chain(self.rest()).collect()
    }

    fn file_name(&self, file: u32) -> Option<String> {
        self.captures.files.get(usize::try_from(file).ok()?).map(|file| file.name.clone())
    }

    fn line_text(&self, at: At) -> Option<String> {
        self.line.and_then(|line| line(at))
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        let mut data = serde_json::to_value(self.advice)?;
        if let Some(map) = data.as_object_mut() {
            map.insert("refused".to_owned(), serde_json::to_value(&self.captures.refused)?);
        }
        Ok(data)
    }
}

impl AdviceReport<'_> {
    /// Reports that ended early or have lines that were not understood.
    fn cut_short(&self) -> Vec<String> {
        let why = |head: &Head| {
            let lines: u32 = head.unread.iter().map(|unread| unread.lines).sum();
            match (&head.incomplete, lines) {
                (Some(why), _) => Some(why.to_string()),
                (None, 0) => None,
                (None, lines) => Some(format!("{lines} of its lines were not understood")),
            }
        };
        let told = |report: &Report| {
            let head = report.head();
            let place = super::place(self, head.first);
            why(head).map(|why| format!("{place} {}: {why}", report.command()))
        };
        let damaged = |file: &FileInfo| {
            let note = file.notes.iter().find(|note| note.contains("damaged"))?;
            Some(format!("{}: {note}", file.name))
        };
        let files = self.captures.files.iter().filter_map(damaged);
        files.chain(self.captures.reports.iter().filter_map(told)).collect()
    }

    fn cut_section(&self) -> Vec<Section> {
        let section = Section::new("Reports that may not be whole", Tone::Note);
        many::items(&section, &self.cut_short())
    }
}

pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Note => Tone::Note,
        Severity::Warning => Tone::Warning,
        Severity::Critical => Tone::Critical,
    }
}

fn overview(advice: &Advice, shown: &dyn Fn(usize) -> bool) -> Section {
    let mut table = Table::new("", &["#no", "rule", "object", "finding", "#sure"]);
    for (at, finding) in advice.findings.iter().enumerate().filter(|(at, _)| shown(*at)) {
        let sure = format!("{:.0} %", finding.confidence * 100.0);
        table.row_to(
            format!("finding-{}", at + 1),
            [
                (at + 1).to_string(),
                finding.rule.to_owned(),
                finding.object.clone(),
                finding.title.clone(),
                sure,
            ],
        );
    }
    Section::new("In order of importance", Tone::Plain).block(Block::Table(table))
}

fn finding_section(number: usize, finding: &Finding) -> Section {
    let labelled = |label: &str, text: &str| Block::Labelled {
        label: label.to_owned(),
        text: text.to_owned(),
    };
    let heading = format!("{number}. {}: {}", finding.object, finding.title);
    let mut section = Section::new(heading, tone(finding.severity))
        .at(format!("finding-{number}"))
        .block(labelled(
            "rule",
            &format!("{}, {:.0} % sure", finding.rule, finding.confidence * 100.0),
        ))
        .block(Block::List(finding.reasoning.clone()));
    if !finding.figures.is_empty() {
        section = section.block(Block::Figures(finding.figures.clone()));
    }
    if let Some(chart) = chart(finding) {
        section = section.block(Block::Chart(chart));
    }
    section = match (&finding.command, &finding.place) {
        (Some(command), place) => {
            let place = place.as_deref().map_or(String::new(), |place| format!("{place}:"));
            section.block(labelled("run", &place)).block(Block::Command(command.clone()))
        }
        (None, _) if finding.look_up.is_empty() => {
            section.block(labelled("run", "no single command; see the effect"))
        }
        (None, _) => {
            let set = finding.to_set.as_deref().map_or_else(
                || "no command on a guess; find out first".to_owned(),
                |values| format!("no command on a guess; {values} was worked out. Find out first"),
            );
            section.block(labelled("run", &set)).block(Block::List(finding.look_up.clone()))
        }
    };
    section =
        section.block(labelled("effect", &finding.effect)).block(labelled("harm", &finding.harm));
    if let Some(undo) = &finding.undo {
        section = match finding.command {
            Some(_) => section.block(labelled("undo", "")).block(Block::Command(undo.clone())),
            None => section.block(labelled("undo", undo)),
        };
    }
    section.block(labelled("lines", "")).block(Block::Places(finding.evidence.clone()))
}

/// The figures of one unit beside each other, where there are several that a picture helps to compare.
fn chart(finding: &Finding) -> Option<Chart> {
    const UNITS: [&str; 6] = ["elements", "commands", "I/O/s", "MB", "queues", "%"];
    let drawn = |figure: &&Figure| figure.low.is_finite() && figure.low >= 0.0;
    let of = |unit: &str| {
        finding
            .figures
            .iter()
            .filter(|figure| figure.unit == unit)
            .filter(drawn)
            .collect::<Vec<_>>()
    };
    let (unit, figures) =
        UNITS.iter().map(|unit| (*unit, of(unit))).find(|(_, figures)| figures.len() >= 2)?;
    let bar = |figure: &&Figure| Bar {
        label: figure.name.clone(),
        value: figure.high,
        tone: tone(finding.severity),
    };
    Some(Chart::Bars(Bars {
        title: "Side by side".to_owned(),
        unit: unit.to_owned(),
        bars: figures.iter().map(bar).collect(),
    }))
}

/// What IBM's own advisor says, beside what is said here.
fn compared(advice: &Advice) -> Vec<Section> {
    let columns = ["system", "about", "value", "suggested", "its weight", "here"];
    let mut table = Table::new("", &columns);
    for one in &advice.compared {
        table.row([&one.system, &one.about, &one.value, &one.suggested, &one.weight, &one.here]);
    }
    let unsure =
        "The layout of its file could not be confirmed: whatever has a suggested value is listed.";
    let section = Section::new("What IBM's advisor (part) says", Tone::Plain).paragraph(unsure);
    many::listed(&section, &table)
}

fn refused(captures: &Captures) -> Vec<Section> {
    let name = |at: At| captures.file_name(at).to_owned();
    let mut table = Table::new("", &["file", "#line", "command", "why"]);
    for refused in &captures.refused {
        table.row([
            name(refused.at),
            refused.at.line.to_string(),
            refused.command.clone(),
            refused.why.clone(),
        ]);
    }
    many::listed(&Section::new("Not read", Tone::Warning), &table)
}

/// The whole list, rule by rule.
fn not_checked(advice: &Advice) -> Option<Section> {
    let mut table = Table::new(
        "Capture these and run again with all files.",
        &["rule", "looks for", "capture"],
    );
    for of_rule in advice.not_checked.chunk_by(|one, two| one.rule == two.rule) {
        let about = rule(of_rule[0].rule).map_or("", |rule| rule.about);
        let missing: Vec<&str> = of_rule.iter().map(|not| not.missing.as_str()).collect();
        table.row([of_rule[0].rule, about, &missing.join("; ")]);
    }
    let section = Section::new("Not checked", Tone::Plain).only(Detail::Full);
    (!table.rows.is_empty()).then(|| section.block(Block::Table(table)))
}

/// What the rules are about, by how their names begin.
const FAMILIES: [(&str, &str); 7] = [
    ("fc-", "Fibre Channel adapters"),
    ("mq-", "queues of virtual Fibre Channel"),
    ("disk-", "disks"),
    ("vscsi-", "virtual SCSI"),
    ("sea-", "shared Ethernet adapters"),
    ("ssp-", "shared storage pools"),
    ("vios-", "processors of the VIOS"),
];

/// Rules that were not asked.
fn silenced(advice: &Advice) -> Option<Section> {
    let told = advice.silenced.iter().map(|one| format!("{}: {}", one.rule, one.why));
    let list: Vec<String> = told.collect();
    (!list.is_empty())
        .then(|| Section::new("Silenced by your own facts", Tone::Plain).block(Block::List(list)))
}

/// The same by what is to be captured: one row for each command, with the rules that it would let judge.
///
/// Of a family without any report nobody asked for advice; it is named in one sentence.
fn to_capture(advice: &Advice) -> Option<Section> {
    let of = |family: &str| {
        let family = family.to_owned();
        move |not: &&NotChecked| not.rule.starts_with(&family)
    };
    let absent = |family: &str| {
        let rules = rules().filter(|rule| rule.name.starts_with(family));
        let listed: BTreeSet<&str> =
            advice.not_checked.iter().filter(of(family)).map(|not| not.rule).collect();
        let judged = rules.filter(|rule| !listed.contains(rule.name));
        judged.count() == 0 && advice.not_checked.iter().filter(of(family)).all(|not| not.absent)
    };
    let nothing: Vec<(&str, &str)> =
        FAMILIES.into_iter().filter(|(family, _)| absent(family)).collect();
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    let mut row_of: BTreeMap<&str, usize> = BTreeMap::new();
    for not in &advice.not_checked {
        if nothing.iter().any(|(family, _)| not.rule.starts_with(family)) {
            continue;
        }
        let rule = match not.about.is_empty() {
            true => not.rule.to_owned(),
            false => format!("{} ({})", not.rule, not.about),
        };
        let row = *row_of.entry(&not.capture).or_insert(rows.len());
        match rows.get_mut(row) {
            Some((_, rules)) => rules.push(rule),
            None => rows.push((&not.capture, vec![rule])),
        }
    }
    // What lets most be judged comes first.
    rows.sort_by_key(|(_, rules)| std::cmp::Reverse(rules.len()));
    let mut section = Section::new("Not checked", Tone::Plain).only(Detail::Brief);
    if !rows.is_empty() {
        let mut table = Table::new(
            "Capture these and run again with all files.",
            &["capture", "lets be judged"],
        );
        for (capture, rules) in rows {
            table.row([capture.to_owned(), rules.join(", ")]);
        }
        section = section.block(Block::Table(table));
    }
    let names: Vec<&str> = nothing.into_iter().map(|(_, name)| name).collect();
    if !names.is_empty() {
        section = section.paragraph(format!(
            "Nothing was captured of: {}. --explain lists the commands.",
            names.join(", ")
        ));
    }
    (!section.blocks.is_empty()).then_some(section)
}
