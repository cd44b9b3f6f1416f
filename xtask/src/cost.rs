//! The instruction gate: hot paths stay within the budgets of `bench/budgets.toml`.
//!
//! Each budget names an example of a crate that takes a number of rounds as its first argument, and the function that
//! serves one round; only what that function executes is counted. The example runs twice, with different numbers, and
//! the difference of the counts divided by the difference of the requests is the cost of one request: what the first rounds
//! cost more falls out. Instructions, unlike time, are the same on a busy machine.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use crate::run::{self, Context};
use anyhow::{Context as _, Result, anyhow};

/// Rounds of the two runs: enough to reach the steady state, few enough for seconds under valgrind.
const ROUNDS: [u64; 2] = [100, 1_100];

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
    /// Arguments after the number of rounds.
    #[serde(default)]
    arguments: Vec<String>,
    /// Instructions are counted while this function runs.
    function: String,
    requests_per_round: u64,
    instructions_per_request_max: f64,
}

/// What one request costs.
#[derive(Serialize)]
struct Cost {
    about: String,
    instructions_per_request: f64,
    /// What the budget allows.
    budget: f64,
}

/// Measures every budget and fails if one is exceeded.
pub(crate) fn check(context: &Context) -> Result<()> {
    let mut over = Vec::new();
    for Cost { about, instructions_per_request, budget } in measure_all(context)? {
        println!(
            "{instructions_per_request:>7.1} instructions per request, {budget} are allowed: {about}"
        );
        if instructions_per_request > budget {
            over.push(about);
        }
    }
    if over.is_empty() { Ok(()) } else { Err(anyhow!("over budget: {over:#?}")) }
}

/// Measures every budget and prints what was found as JSON, whether it is exceeded or not.
pub(crate) fn print_json(context: &Context) -> Result<()> {
    let costs = measure_all(context)?;
    println!("{}", serde_json::to_string(&costs).context("cannot write JSON")?);
    Ok(())
}

fn measure_all(context: &Context) -> Result<Vec<Cost>> {
    let path = context.root.join("bench/budgets.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let budgets: Budgets = toml::from_str(&text).context("bench/budgets.toml is not understood")?;
    build(context, &budgets.budget)?;
    let budgets = budgets.budget;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut costs = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(budget) = budgets.get(at) else { return costs };
            costs.push((at, measure(context, at, budget)));
        }
    };
    // Instructions are the same whatever else runs: as many at a time as there are CPUs.
    let width = std::thread::available_parallelism().map_or(1, usize::from);
    let mut costs: Vec<(usize, Result<f64>)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..width).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("a panic was reported by its thread"))
            .collect()
    });
    costs.sort_unstable_by_key(|(at, _)| *at);
    let cost = |((_, instructions), budget): ((usize, Result<f64>), Budget)| {
        Ok(Cost {
            instructions_per_request: instructions?,
            budget: budget.instructions_per_request_max,
            about: budget.about,
        })
    };
    costs.into_iter().zip(budgets).map(cost).collect()
}

/// Builds all examples at once: each is a unit of its own to the linker, and takes one CPU for minutes.
fn build(context: &Context, budgets: &[Budget]) -> Result<()> {
    let mut cargo = context.cargo(&["build", "--profile", "cost", "--locked"]);
    let named: BTreeSet<[&str; 2]> = budgets
        .iter()
        .flat_map(|budget| [["-p", &budget.package], ["--example", &budget.example]])
        .collect();
    run::captured(cargo.args(named.iter().flatten()))?;
    Ok(())
}

/// The budget at this place of the list.
fn measure(context: &Context, at: usize, budget: &Budget) -> Result<f64> {
    let [few, many] = ROUNDS;
    let difference = instructions(context, at, budget, many)?
        .checked_sub(instructions(context, at, budget, few)?)
        .filter(|difference| *difference > 0)
        .ok_or_else(|| anyhow!("{}: {} never ran", budget.example, budget.function))?;
    // Both numbers are far below 2^52, so they are exact as floating point.
    Ok(difference as f64 / ((many - few) * budget.requests_per_round) as f64)
}

fn instructions(context: &Context, at: usize, budget: &Budget, rounds: u64) -> Result<u64> {
    let out = context.target.join(format!("callgrind.{at}.{rounds}"));
    let mut valgrind = context.command("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet"]);
    valgrind.arg(format!("--callgrind-out-file={}", out.display()));
    valgrind.arg(format!("--toggle-collect={}", budget.function));
    valgrind.arg(context.target.join("cost/examples").join(&budget.example));
    run::captured(valgrind.arg(rounds.to_string()).args(&budget.arguments))?;
    let profile =
        fs::read_to_string(&out).with_context(|| format!("cannot read {}", out.display()))?;
    total(&profile).ok_or_else(|| anyhow!("{} has no total", out.display()))
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
