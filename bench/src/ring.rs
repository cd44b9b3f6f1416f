//! Instructions of the ring's hot path: `cargo xtask cost` counts them with callgrind, by `bench/budgets.toml`.

use std::process::Command;

use serde::Deserialize;

use crate::figure::{Figure, Round, Series};
use anyhow::{Context as _, Result, anyhow};

#[derive(Deserialize)]
struct Cost {
    about: String,
    budget: f64,
    instructions_per_request: f64,
}

/// Counts. One round: instructions do not vary.
pub(crate) fn run() -> Result<Vec<Series>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let done = Command::new(cargo)
        .args(["xtask", "cost", "--json"])
        .output()
        .context("cannot run cargo xtask cost")?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(anyhow!("cargo xtask cost: {}\n{said}", done.status));
    }
    let costs: Vec<Cost> = serde_json::from_slice(&done.stdout)
        .context("cannot read what cargo xtask cost printed")?;
    let series = |cost: Cost| Series {
        label: cost.about,
        about: format!("callgrind; the tests allow {}", cost.budget),
        rounds: vec![Round::from([(Figure::Instructions, cost.instructions_per_request)])],
    };
    Ok(costs.into_iter().map(series).collect())
}
