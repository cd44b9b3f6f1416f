//! What a shared Ethernet adapter takes, by the server's own `size calibrate`, and what sizing says of loads that were not measured for it.

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::Value;

use crate::figure::{Figure, Round, Series};
use crate::process;
use crate::stage::{self, Settled};

/// A series for each load of the tables, and two for each mix: what it took, and what was said.
pub(crate) fn run(settled: &Settled) -> Result<Vec<Series>> {
    let folder = stage::folder()?;
    let cpus = [&settled.server_cpus[..], &settled.client_cpus].concat();
    // Clients that look all the time, with real-time priority, would leave nothing of their CPU to a channel that shares it.
    let mut command = process::on_cpus(&cpus, "chrt");
    command.args(["--other", "0"]).arg(&settled.server);
    command.current_dir(folder.path()).env("TRUNKLINE_DIR", folder.path());
    command.args(["size", "calibrate", "--check", "-o", "json"]);
    command.args(["--rounds", &settled.rounds.to_string()]);
    command.args(["--time", &format!("{}ms", settled.duration.as_millis())]);
    // Two channels have two CPUs, beside the clients if there are no more.
    let (first, rest) = cpus.split_first().context("no CPUs")?;
    let server = match settled.server_cpus.len() {
        0 | 1 => vec![*first, *rest.first().unwrap_or(first)],
        _ => settled.server_cpus.clone(),
    };
    command.args(["--server-cpus", &process::list(&server)]);
    command.args(["--client-cpu", &settled.client_cpu.to_string()]);
    let output = command.output().context("cannot run trunkline")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    let answer: Value = serde_json::from_slice(&output.stdout).context("what trunkline prints")?;
    series(&answer["answer"]).ok_or_else(|| anyhow!("not a calibration: {answer}"))
}

fn series(answer: &Value) -> Option<Vec<Series>> {
    let clock = answer["host"]["clock_hz"].as_f64()?;
    let by = answer["host"]["clock_by"].as_str()?;
    let mut all = Vec::new();
    for cost in answer["costs"].as_array()? {
        let round = |round: &Value| {
            let seconds = round["cpu_seconds"].as_f64()?;
            Some(Round::from([(Figure::Cycles, seconds * clock / round["units"].as_f64()?)]))
        };
        all.push(Series {
            label: cost["title"].as_str()?.to_owned(),
            about: format!("size calibrate, {} GHz {by}", clock / 1e9),
            rounds: cost["rounds"].as_array()?.iter().map(round).collect::<Option<_>>()?,
        });
    }
    for check in answer["checks"].as_array()? {
        let title = check["title"].as_str()?;
        for (what, about) in [
            ("measured", "CPU time of the data plane"),
            ("predicted", "what size sea says by the tables for what was carried"),
        ] {
            let round = |round: &Value| {
                Some(Round::from([(Figure::CpuPercent, round[what].as_f64()? * 100.0)]))
            };
            all.push(Series {
                label: format!("{title}, {what}"),
                about: about.to_owned(),
                rounds: check["rounds"].as_array()?.iter().map(round).collect::<Option<_>>()?,
            });
        }
    }
    Some(all)
}
