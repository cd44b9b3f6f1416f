//! What comes out: JSON for programs, Markdown for `docs/performance.md`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::bars::{Judgement, Verdict};
use crate::figure::{Figure, Series, Spread, short};
use crate::machine::Machine;
use crate::npiv;
use anyhow::{Context as _, Result, anyhow};

/// Between these lines a document keeps the results of the last run.
const BEGIN: &str = "<!-- results: written by `cargo xtask bench --markdown` -->";
const END: &str = "<!-- end of results -->";
/// And between these the tables of virtual Fibre Channel.
const BEGIN_NPIV: &str = "<!-- npiv: written by `cargo xtask bench npiv --npiv` -->";
const END_NPIV: &str = "<!-- end of npiv -->";
/// Where their plots are, beside the document.
const PLOTS: &str = "npiv";

/// Above this share of a CPU, others disturb.
pub(crate) const QUIET_PERCENT: f64 = 5.0;

/// A case that was run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Played {
    pub(crate) name: String,
    pub(crate) title: String,
    /// What others used of a CPU just before, in percent.
    pub(crate) others_percent: f64,
    pub(crate) series: Vec<Series>,
    pub(crate) verdicts: Vec<Verdict>,
}

/// A whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) command: String,
    pub(crate) rounds: usize,
    pub(crate) seconds_per_round: f64,
    pub(crate) machine: Machine,
    /// What a reader has to know of the machine to read the tables of virtual Fibre Channel.
    pub(crate) note: String,
    /// CPUs of the servers, and of the clients, where a case can use several.
    pub(crate) cpus: (usize, usize),
    pub(crate) cases: Vec<Played>,
}

impl Report {
    /// For programs.
    pub(crate) fn write_json(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("cannot write JSON")?;
        fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
    }

    /// Puts the tables between the marks of a document; a file without marks becomes the tables.
    pub(crate) fn write_markdown(&self, path: &Path) -> Result<()> {
        let old = fs::read_to_string(path).unwrap_or_default();
        let new = splice(&old, &self.markdown());
        fs::write(path, new).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Puts the tables of virtual Fibre Channel between their marks of a document, and their plots into the folder `npiv` beside it.
    pub(crate) fn write_npiv(&self, path: &Path) -> Result<()> {
        let old = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        if !old.contains(BEGIN_NPIV) {
            return Err(anyhow!("{} has no line {BEGIN_NPIV}", path.display()));
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.conditions(&mut text);
        let (tables, plots) = npiv::section(&self.cases, self.cpus, PLOTS);
        let _ = self.verdicts(&mut text, "npiv-");
        let _ = writeln!(text, "{}.\n\n{tables}", self.note);
        let new = splice_between(&old, &text, BEGIN_NPIV, END_NPIV);
        fs::write(path, new).with_context(|| format!("cannot write {}", path.display()))?;
        let folder = path.with_file_name(PLOTS);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        for plot in plots {
            let path = folder.join(&plot.file);
            fs::write(&path, plot.svg).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    fn markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.conditions(&mut text);
        let _ = self.verdicts(&mut text, "");
        let tables = npiv::tables(&self.cases);
        if !tables.is_empty() {
            let _ = writeln!(text, "### Virtual Fibre Channel\n\n{}.\n\n{tables}", self.note);
        }
        let _ = self.figures(&mut text);
        text
    }

    fn conditions(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "### Conditions\n\n| | |\n|---|---|")?;
        writeln!(text, "| command | `{}` |", self.command)?;
        writeln!(
            text,
            "| rounds | {} of {} s each, in turn |",
            self.rounds, self.seconds_per_round
        )?;
        for (name, fact) in &self.machine.facts {
            writeln!(text, "| {name} | {fact} |")?;
        }
        let most = self.cases.iter().map(|case| case.others_percent).fold(0.0, f64::max);
        let quiet = if most > QUIET_PERCENT {
            "**the machine was not quiet: ratios are indicative, absolute figures are not valid**"
        } else {
            "quiet"
        };
        writeln!(text, "| others on this machine | up to {most:.0} % of a CPU; {quiet} |\n")
    }

    /// Of the cases whose names begin like that.
    fn verdicts(&self, text: &mut String, prefix: &str) -> std::fmt::Result {
        writeln!(text, "### Bars\n")?;
        writeln!(text, "Medians; in brackets the lowest and the highest of the rounds.\n")?;
        writeln!(text, "| case | figure | bar | reached | |\n|---|---|---|---|---|")?;
        for case in self.cases.iter().filter(|case| case.name.starts_with(prefix)) {
            for verdict in &case.verdicts {
                let bar = &verdict.bar;
                let against = bar.against.as_ref().map_or(String::new(), |it| format!(" / {it}"));
                let met = match verdict.judgement {
                    Judgement::Met => "met",
                    Judgement::Missed => "**missed**",
                    Judgement::Unsteady => "*not judged: unsteady*",
                    Judgement::Unmeasured => "*not judged: nothing was measured*",
                    Judgement::Shown => "",
                };
                writeln!(
                    text,
                    "| {} | {}: {}{against} ({}) | {} | {} | {met} |",
                    case.name,
                    bar.figure.title(),
                    bar.of,
                    bar.why,
                    bar.limit(),
                    reached(verdict)
                )?;
            }
        }
        writeln!(text)
    }

    fn figures(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "### Figures\n")?;
        for case in &self.cases {
            writeln!(text, "**{}**: {}\n", case.name, case.title)?;
            let has = |figure: &Figure| case.series.iter().any(|it| it.spread(*figure).is_some());
            let figures: Vec<Figure> = Figure::ALL.into_iter().filter(has).collect();
            write!(text, "| |")?;
            figures.iter().try_for_each(|figure| write!(text, " {} |", figure.title()))?;
            writeln!(text, "\n|---|{}", "---|".repeat(figures.len()))?;
            for series in &case.series {
                write!(text, "| {} |", series.label)?;
                for figure in &figures {
                    let cell = series.spread(*figure).map_or("–".to_owned(), spread);
                    write!(text, " {cell} |")?;
                }
                writeln!(text)?;
            }
            writeln!(text)?;
            for series in &case.series {
                writeln!(text, "- {}: {}", series.label, series.about)?;
            }
            writeln!(text)?;
        }
        Ok(())
    }
}

/// For the terminal while the run goes on.
pub(crate) fn summary(case: &Played) -> String {
    let mut text = String::new();
    for series in &case.series {
        let _ = write!(text, "  {:<28}", series.label);
        for figure in Figure::ALL {
            if let Some(found) = series.spread(figure) {
                let _ = write!(text, " {} {};", short(found.median), figure.title());
            }
        }
        let _ = writeln!(text);
    }
    for verdict in &case.verdicts {
        let met = match verdict.judgement {
            Judgement::Met => "met     ",
            Judgement::Missed => "MISSED  ",
            Judgement::Unsteady => "unsteady",
            Judgement::Unmeasured => "NOTHING ",
            Judgement::Shown => "        ",
        };
        let bar = &verdict.bar;
        let (title, limit) = (bar.figure.title(), bar.limit());
        let _ = writeln!(
            text,
            "  {met} {title} {}: {} ({limit} {})",
            bar.of,
            reached(verdict),
            bar.why
        );
    }
    text
}

fn reached(verdict: &Verdict) -> String {
    verdict.reached.map_or("–".to_owned(), spread)
}

pub(crate) fn spread(spread: Spread) -> String {
    // Bit for bit the same: there was one round.
    if spread.min.to_bits() == spread.max.to_bits() {
        return short(spread.median);
    }
    format!("{} ({}–{})", short(spread.median), short(spread.min), short(spread.max))
}

fn splice(old: &str, results: &str) -> String {
    splice_between(old, results, BEGIN, END)
}

fn splice_between(old: &str, results: &str, begin: &str, end: &str) -> String {
    let results = format!("{begin}\n\n{}\n\n{end}", results.trim_end());
    match old.split_once(begin).and_then(|(head, rest)| Some((head, rest.split_once(end)?.1))) {
        Some((head, tail)) => format!("{head}{results}{tail}"),
        None => results + "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let first = splice("", "one");
        let document = format!("# Title\n\n{first}\nThe end.\n");
        let second = splice(&document, "two");
        assert!(second.starts_with("# Title\n") && second.ends_with("The end.\n"), "{second}");
        assert!(second.contains("two") && !second.contains("one"), "{second}");
        assert_eq!(splice(&second, "two"), second);
    }

    #[test]
    fn one_round_has_no_spread() {
        assert_eq!(spread(Spread { median: 2.0, min: 2.0, max: 2.0 }), "2.00");
        assert_eq!(spread(Spread { median: 2.0, min: 1.0, max: 3.0 }), "2.00 (1.00–3.00)");
    }
}
