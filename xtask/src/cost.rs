//! The instruction gate: hot paths stay within the budgets of `bench/budgets.toml`.
//!
//! Each budget names an example of a crate that takes a number of requests as its argument. It runs twice under
//! callgrind, with different numbers, and the difference of the instruction counts divided by the difference of the
//! numbers is the cost of one request: what start and end cost falls out, and no toggle has to be placed in the code.
//! Instructions, unlike time, are the same on a busy machine.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::run::{self, Because, Context, Failure, Result};

/// Requests of the two runs: enough to reach the steady state, few enough for seconds under valgrind.
const REQUESTS: [u64; 2] = [3_200, 35_200];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budgets {
    budget: Vec<Budget>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    package: String,
    example: String,
    about: String,
    instructions_per_request_max: f64,
}

/// Measures every budget and fails if one is exceeded.
pub(crate) fn check(context: &Context) -> Result {
    let path = context.root.join("bench/budgets.toml");
    let text = fs::read_to_string(&path).because(format_args!("cannot read {}", path.display()))?;
    let budgets: Budgets = toml::from_str(&text).because("bench/budgets.toml is not understood")?;
    let mut over = Vec::new();
    for budget in &budgets.budget {
        run::visible(&mut context.cargo(&[
            "build",
            "--release",
            "-p",
            &budget.package,
            "--example",
            &budget.example,
        ]))?;
        let binary = context.target.join("release/examples").join(&budget.example);
        let [few, many] = REQUESTS;
        let difference = instructions(context, &binary, many)?
            .checked_sub(instructions(context, &binary, few)?)
            .ok_or_else(|| Failure(format!("{}: more requests cost less", budget.example)))?;
        // Both numbers are far below 2^52, so they are exact as floating point.
        let cost = difference as f64 / (many - few) as f64;
        let limit = budget.instructions_per_request_max;
        println!(
            "{}: {cost:.1} instructions per request, {limit} are allowed ({})",
            budget.example, budget.about
        );
        if cost > limit {
            over.push(budget.example.as_str());
        }
    }
    if over.is_empty() { Ok(()) } else { Err(Failure(format!("over budget: {over:?}"))) }
}

fn instructions(context: &Context, binary: &Path, requests: u64) -> Result<u64> {
    let out = context.target.join(format!("callgrind.{requests}"));
    let mut valgrind = context.command("valgrind");
    valgrind
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()));
    run::captured(valgrind.arg(binary).arg(requests.to_string()))?;
    let profile =
        fs::read_to_string(&out).because(format_args!("cannot read {}", out.display()))?;
    total(&profile).ok_or_else(|| Failure(format!("{} has no total", out.display())))
}

/// The grand total of a callgrind profile: its `totals:` line, or `summary:` where a version writes that.
fn total(profile: &str) -> Option<u64> {
    let value =
        |key: &str| profile.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    value("totals:").or_else(|| value("summary:"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn totals_are_found() {
        assert_eq!(super::total("events: Ir\nsummary: 12\n\ntotals: 345\n"), Some(345));
        assert_eq!(super::total("events: Ir\nsummary: 12\n"), Some(12));
        assert_eq!(super::total("events: Ir\n"), None);
    }
}
