//! Builds and runs the fuzz targets with the stable toolchain.
//!
//! The layout is cargo-fuzz's, and who has it and a nightly toolchain can use it. What it does is no more than flags:
//! LLVM's coverage pass, libFuzzer's runtime from the `libfuzzer-sys` crate, and the address sanitizer, whose runtime is
//! shipped with the stable toolchain but whose flag is not stable yet, hence RUSTC_BOOTSTRAP for this build alone.
//!
//! Inputs found so far grow in `fuzz/corpus` (not committed); `fuzz/seeds` holds committed ones: good starting points, and
//! every input that once broke something.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::Deserialize;

use crate::run::{self, Context};
use anyhow::{Context as _, Result, anyhow};

/// With an explicit target, the flags reach the fuzzed code only, not build scripts and procedural macros.
const TRIPLE: &str = if cfg!(target_arch = "aarch64") {
    "aarch64-unknown-linux-gnu"
} else {
    "x86_64-unknown-linux-gnu"
};

const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Zsanitizer=address";

/// Limits for one input: a target that needs more has found something.
const LIMITS: &[&str] =
    &["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1", "-verbosity=1"];

#[derive(Deserialize)]
struct Manifest {
    bin: Vec<Binary>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Binary {
    name: String,
    /// Those that need one are for long runs.
    #[serde(default)]
    required_features: Vec<String>,
}

/// Which targets are run.
#[derive(Clone, Copy)]
pub(crate) enum Targets<'a> {
    /// This one.
    One(&'a str),
    /// Those that are built and get anywhere within seconds.
    Quick,
    /// All of them.
    All,
}

impl Targets<'_> {
    fn have(self, binary: &Binary) -> bool {
        match self {
            Targets::One(name) => binary.name == name,
            Targets::Quick => binary.required_features.is_empty(),
            Targets::All => true,
        }
    }
}

/// One target under way.
struct Run {
    name: String,
    log: PathBuf,
    child: Child,
}

/// Runs these targets for that many seconds each, as many at a time as there are CPUs.
pub(crate) fn run(context: &Context, targets: Targets<'_>, seconds: u32) -> Result<()> {
    let home = context.root.join("fuzz");
    let text =
        fs::read_to_string(home.join("Cargo.toml")).context("cannot read fuzz/Cargo.toml")?;
    let manifest: Manifest = toml::from_str(&text).context("fuzz/Cargo.toml is not understood")?;
    let chosen: Vec<&Binary> = manifest.bin.iter().filter(|it| targets.have(it)).collect();
    if chosen.is_empty() {
        let all: Vec<&String> = manifest.bin.iter().map(|it| &it.name).collect();
        return Err(anyhow!("there is no such fuzz target; there are {all:?}"));
    }
    let target = context.target.join("fuzz");
    build(context, &home, &target, &chosen)?;
    let width = std::thread::available_parallelism().map_or(1, usize::from);
    for group in chosen.chunks(width) {
        // All are started before the first is waited for.
        let started: Result<Vec<Run>> =
            group.iter().map(|it| start(&home, &target, &it.name, seconds)).collect();
        let outcomes: Vec<Result<()>> =
            started?.into_iter().map(|run| finish(&home, run)).collect();
        outcomes.into_iter().collect::<Result<Vec<()>>>()?;
    }
    Ok(())
}

fn build(context: &Context, home: &Path, target: &Path, chosen: &[&Binary]) -> Result<()> {
    let mut cargo = context.cargo(&["build", "--release", "--locked", "--target", TRIPLE]);
    cargo.args(chosen.iter().flat_map(|it| ["--bin", &it.name]));
    cargo
        .args(chosen.iter().flat_map(|it| &it.required_features).flat_map(|it| ["--features", it]));
    cargo.current_dir(home).arg("--target-dir").arg(target);
    cargo.env("RUSTFLAGS", RUSTFLAGS).env("RUSTC_BOOTSTRAP", "1");
    run::visible(&mut cargo)
}

fn start(home: &Path, target: &Path, name: &str, seconds: u32) -> Result<Run> {
    let folder = |kind: &str| -> Result<PathBuf> {
        let path = home.join(kind).join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(path)
    };
    let corpus = folder("corpus")?;
    let artifacts = folder("artifacts")?;
    let seeds = home.join("seeds").join(name);
    let log = target.join(format!("{name}.log"));
    let out = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
    let mut command = Command::new(target.join(TRIPLE).join("release").join(name));
    command.args(LIMITS).arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display())).arg(corpus);
    if seeds.is_dir() {
        command.arg(seeds);
    }
    // Rust code reports leaks by its tests; libFuzzer's leak check needs ptrace, which containers forbid.
    command.env("ASAN_OPTIONS", "detect_leaks=0");
    let errors = out.try_clone().context("cannot share the log")?;
    let child = command.stdin(Stdio::null()).stdout(out).stderr(errors).spawn();
    Ok(Run {
        name: name.to_owned(),
        log,
        child: child.with_context(|| format!("cannot start {name}"))?,
    })
}

fn finish(home: &Path, mut run: Run) -> Result<()> {
    let status = run.child.wait().with_context(|| format!("cannot wait for {}", run.name))?;
    let bytes = fs::read(&run.log).with_context(|| format!("cannot read {}", run.log.display()))?;
    let log = String::from_utf8_lossy(&bytes);
    let inputs = final_value(&log, "stat::number_of_executed_units:");
    if !status.success() || inputs.is_none() {
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(80)..].join("\n");
        let again =
            format!("cargo xtask fuzz {} (inputs in {}/artifacts)", run.name, home.display());
        return Err(anyhow!("fuzz target {}: {status}\n{tail}\n{again}", run.name));
    }
    println!(
        "{}: {} inputs, coverage {}, nothing found",
        run.name,
        inputs.unwrap_or(0),
        coverage(&log)
    );
    Ok(())
}

fn final_value(log: &str, key: &str) -> Option<u64> {
    log.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
}

/// The last `cov: N` that libFuzzer printed.
fn coverage(log: &str) -> u64 {
    let words = log.lines().rev().find_map(|line| line.split("cov: ").nth(1));
    words.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn statistics_are_read_from_the_log() {
        let log = "#2\tINITED cov: 16 ft: 16\n#9 NEW    cov: 18 ft: 18\nDone\nstat::number_of_executed_units: 42\n";
        assert_eq!(super::final_value(log, "stat::number_of_executed_units:"), Some(42));
        assert_eq!(super::coverage(log), 18);
        assert_eq!(super::final_value("", "stat::number_of_executed_units:"), None);
    }
}
