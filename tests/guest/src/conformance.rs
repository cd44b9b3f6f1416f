//! What libiscsi's test tool, `iscsi-test-cu`, says about a disk, read from its output.
//!
//! It has 230 tests (version 1.19). Through `/dev/sg` a part of them is *skipped*: those of the iSCSI protocol, those that need
//! removable media or write protection, those of optional commands. The tool counts a skipped test as passed, and so do the
//! figures that others publish. Here they are told apart.

use std::collections::BTreeMap;

use crate::machine::Transcript;
use anyhow::{Result, anyhow, ensure};

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All of it was right.
    Passed,
    /// Nothing was wrong, and something was not tried: for the first of these reasons.
    Skipped(String),
    /// What was wrong, one line each.
    Failed(Vec<String>),
}

/// All tests of a run, by `Suite.Test`.
#[derive(Debug, Default)]
pub(crate) struct Results {
    tests: BTreeMap<String, Outcome>,
}

impl Results {
    /// The runs in a guest's output, in their order: what the script's `conformance` wrote.
    pub(crate) fn of(transcript: &Transcript) -> Result<Vec<Results>> {
        let parts = transcript.output.split("@conformance ").skip(1);
        let runs = parts.map(|part| {
            let text = part.split("@conformance-end").next().unwrap_or_default();
            Results::parse(text)
        });
        runs.collect::<Result<Vec<_>>>()
            .map_err(|error| anyhow!("{error:#}\n{}", transcript.report()))
    }

    /// Reads the tool's output. A run that did not come to its summary, or whose summary counts otherwise, is an error.
    pub(crate) fn parse(text: &str) -> Result<Results> {
        let mut reader = Reader::default();
        let mut summary = None;
        for line in text.lines() {
            if let Some(counts) = line.trim_start().strip_prefix("tests ") {
                summary = Some(counts.split_whitespace().collect::<Vec<_>>());
                break;
            }
            reader.line(line);
        }
        let results = reader.finish();
        let Some(summary) = summary else {
            let last = results.tests.len();
            return Err(anyhow!("iscsi-test-cu ended after {last} tests"));
        };
        // Total, ran, passed, failed, inactive.
        let failed = results.failed().count();
        let (total, passed) = (results.tests.len(), results.tests.len() - failed);
        let counted = [total, total, passed, failed].map(|count| count.to_string());
        ensure!(
            summary.get(..4).is_some_and(|said| said == counted),
            "iscsi-test-cu counts {summary:?}, its lines {counted:?}"
        );
        Ok(results)
    }

    /// How many tests there are.
    pub(crate) fn total(&self) -> usize {
        self.tests.len()
    }

    /// As the tool counts: also what was skipped.
    pub(crate) fn passed(&self) -> usize {
        self.total() - self.failed().count()
    }

    /// What failed, and why.
    pub(crate) fn failed(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.tests.iter().filter_map(|(name, outcome)| match outcome {
            Outcome::Failed(why) => Some((name.as_str(), why.as_slice())),
            _ => None,
        })
    }

    /// What was skipped, at least in part, and why.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tests.iter().filter_map(|(name, outcome)| match outcome {
            Outcome::Skipped(why) => Some((name.as_str(), why.as_str())),
            _ => None,
        })
    }

    /// One line: how many of each.
    pub(crate) fn summary(&self) -> String {
        let skipped = self.skipped().count();
        format!(
            "{} of {} passed, {skipped} of them skipped at least in part",
            self.passed(),
            self.total()
        )
    }

    /// What failed, with the tool's reasons, for people.
    pub(crate) fn failures(&self) -> String {
        self.failed().map(|(name, why)| format!("{name}\n    {}\n", why.join("\n    "))).collect()
    }

    /// Fails unless at least `least` tests pass, and those that do not are exactly the `explained` ones: a fault that was mended
    /// must leave the list. Says how it went.
    pub(crate) fn judge(&self, least: usize, explained: &[Explained]) -> Result<()> {
        println!("    {}", self.summary());
        for each in explained {
            println!("    {} fails: {}", each.test, each.why);
        }
        let unexplained: Vec<_> = self
            .failed()
            .filter(|(name, _)| !explained.iter().any(|each| each.test == *name))
            .map(|(name, _)| name)
            .collect();
        let mended: Vec<_> = explained
            .iter()
            .filter(|each| !matches!(self.tests.get(each.test), Some(Outcome::Failed(_))))
            .map(|each| each.test)
            .collect();
        ensure!(
            self.passed() >= least && unexplained.is_empty() && mended.is_empty(),
            "{}; at least {least} have to pass. Failed without an explanation: {unexplained:?}; explained and not failed: \
             {mended:?}\n{}",
            self.summary(),
            self.failures()
        );
        Ok(())
    }
}

/// A test that fails, and why that is right.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Explained {
    /// `Suite.Test`.
    pub(crate) test: &'static str,
    /// A sentence.
    pub(crate) why: &'static str,
}

/// Puts lines together to tests.
#[derive(Default)]
struct Reader {
    results: Results,
    suite: String,
    test: Option<Test>,
}

/// A test whose lines are being read.
struct Test {
    name: String,
    skipped: Option<String>,
    said: Vec<String>,
    verdict: Option<Verdict>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if let Some(suite) = line.strip_prefix("Suite: ") {
            self.end();
            suite.trim().clone_into(&mut self.suite);
        } else if let Some((name, rest)) =
            line.strip_prefix("  Test: ").and_then(|rest| rest.split_once(" ..."))
        {
            self.end();
            let name = format!("{}.{name}", self.suite);
            self.test = Some(Test { name, skipped: None, said: Vec::new(), verdict: None });
            self.text(rest.trim());
        } else {
            self.text(line.trim());
        }
    }

    /// What a test prints. Its verdict stands behind the dots or on a line of its own, then come numbered lines with reasons.
    fn text(&mut self, text: &str) {
        let Some(test) = &mut self.test else { return };
        match text {
            "passed" => test.verdict = Some(Verdict::Passed),
            "FAILED" => test.verdict = Some(Verdict::Failed),
            // Later versions write the time before it.
            _ if text.contains("[SKIPPED]") => {
                let why = &text[text.find("[SKIPPED]").unwrap_or(0)..];
                test.skipped.get_or_insert_with(|| why.to_owned());
            }
            _ if test.verdict.is_none() || text.starts_with(|c: char| c.is_ascii_digit()) => {
                test.said.extend((!text.is_empty()).then(|| text.to_owned()));
            }
            _ => {}
        }
    }

    /// A test without a verdict leaves nothing: the tool ended in it, and the counts tell.
    fn end(&mut self) {
        let Some(Test { name, skipped, said, verdict: Some(verdict) }) = self.test.take() else {
            return;
        };
        let outcome = match (verdict, skipped) {
            (Verdict::Failed, _) => Outcome::Failed(said),
            (Verdict::Passed, Some(why)) => Outcome::Skipped(why),
            (Verdict::Passed, None) => Outcome::Passed,
        };
        self.results.tests.insert(name, outcome);
    }

    fn finish(mut self) -> Results {
        self.end();
        self.results
    }
}

#[cfg(test)]
mod tests;
