//! The control plane with a large state: what a change, and what a look at it, takes. The figures have the command that asks in them.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::figure::{Figure, Round, Series};
use crate::served::Server;
use crate::stage::{self, Settled};

/// Adapters of virtual Fibre Channel, beside as many volumes and ten times as many masks: a state of the usual size, and a large one.
const SMALL: usize = 10;
const LARGE: usize = 1000;
/// LUNs of a target, and the adapters that see them.
const TOGETHER: usize = 10;
/// Adapters of a port.
const ON_A_PORT: usize = 250;

/// What is timed, in this order: a name, and the command; an empty one is the start of a server that finds its data plane.
const STEPS: [(&str, &[&str]); 9] = [
    ("apply", &["apply", "state.toml"]),
    ("apply again", &["apply", "state.toml"]),
    // The first hears what became of the apply, and learns who has to do with whom.
    ("first change", &["adapter", "set", "f1", "--queues", "3"]),
    ("one change", &["adapter", "set", "f1", "--queues", "4"]),
    ("status", &["status", "-o", "json"]),
    ("volumes", &["volume", "list", "-o", "json"]),
    ("adapters", &["adapter", "list", "-o", "json"]),
    ("masks", &["mask", "list", "-o", "json"]),
    ("adoption", &[]),
];

/// Changes of which the median counts.
const CHANGES: usize = 15;

/// Each step, with a large state and with a small one.
pub(crate) fn run(settled: &Settled) -> Result<Vec<Series>> {
    let mut all = Vec::new();
    for count in [LARGE, SMALL] {
        let rounds: Vec<_> = (0..settled.rounds).map(|_| round(settled, count)).collect();
        let rounds = rounds.into_iter().collect::<Result<Vec<_>>>()?;
        for (index, (step, words)) in STEPS.iter().enumerate() {
            let took = |round: &Vec<f64>| Round::from([(Figure::Ms, round[index])]);
            let command = if words.is_empty() { "serve".to_owned() } else { words.join(" ") };
            all.push(Series {
                label: format!("{step}, {count}"),
                about: format!(
                    "`trunkline {command}` with {count} adapters of virtual Fibre Channel, {count} volumes and {} masks",
                    10 * count
                ),
                rounds: rounds.iter().map(took).collect(),
            });
        }
    }
    Ok(all)
}

/// Milliseconds of each step.
fn round(settled: &Settled, count: usize) -> Result<Vec<f64>> {
    let folder = stage::folder()?;
    std::fs::write(folder.path().join("state.toml"), state(count)).context("the state")?;
    let mut server = Server::start(&settled.server, folder.path(), &settled.server_cpus)?;
    let mut took = Vec::new();
    for (step, words) in STEPS {
        if words.is_empty() {
            // The end of the old one is not part of the start.
            server.stop()?;
            let begun = Instant::now();
            server.start_again()?;
            took.push(ms(begun));
            continue;
        }
        if step == "one change" {
            took.push(changes(&server)?);
            continue;
        }
        let begun = Instant::now();
        let said = server.ask(words)?;
        took.push(ms(begun));
        if step == "adapters" {
            let there = said.matches("\"state\": \"listening\"").count();
            ensure!(there == count, "{there} of {count} adapters listen");
        }
    }
    Ok(took)
}

/// The median of some changes, one after the other: what the clock brings beside one is not its cost.
fn changes(server: &Server) -> Result<f64> {
    let mut took = Vec::new();
    for queues in ["4", "3"].into_iter().cycle().take(CHANGES) {
        let begun = Instant::now();
        server.ask(&["adapter", "set", "f1", "--queues", queues])?;
        took.push(ms(begun));
    }
    took.sort_by(f64::total_cmp);
    Ok(took[CHANGES / 2])
}

fn ms(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

/// So many adapters, each zoned to one target with ten LUNs that ten adapters share, each of which a mask of its own gives to each.
fn state(count: usize) -> String {
    let mut text = String::new();
    let target = |adapter: usize| adapter / TOGETHER;
    for port in 0..count.div_ceil(ON_A_PORT) {
        let _ = writeln!(text, "[port.p{port}]\nmax_adapters = 255");
    }
    for target in 0..count.div_ceil(TOGETHER) {
        let luns: Vec<String> =
            (0..TOGETHER).map(|lun| format!("{lun}=v{}", target * TOGETHER + lun)).collect();
        let _ = writeln!(text, "[target.t{target}]\nluns = \"{}\"", luns.join(","));
    }
    for n in 0..count {
        let (port, target) = (n / ON_A_PORT, target(n));
        let _ = writeln!(text, "[volume.v{n}]\nkind = \"null\"\nsize = \"1MiB\"");
        let _ = writeln!(text, "[adapter.f{n}]\nkind = \"fc\"\nport = \"p{port}\"");
        let _ = writeln!(text, "[zone.z{n}]\nmembers = \"f{n},t{target}\"");
        for lun in 0..TOGETHER {
            let _ = writeln!(
                text,
                "[mask.m{n}x{lun}]\ninitiators = \"f{n}\"\ntargets = \"t{target}\"\nluns = \"{lun}\""
            );
        }
    }
    text
}
