//! The native line: fio with io_uring on the file itself, no server between.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::figure::{Figure, Round};
use crate::process;
use anyhow::{Context as _, Result, anyhow};

/// A fio job.
#[derive(Debug, Clone)]
pub(crate) struct Fio {
    pub(crate) file: PathBuf,
    pub(crate) read_percent: u8,
    pub(crate) block_bytes: u32,
    /// Requests outstanding in all.
    pub(crate) depth: u16,
    /// CPUs that it runs on, with a thread on each: the server's, since it does the server's work.
    pub(crate) cpus: Vec<usize>,
}

impl Fio {
    /// Runs it once.
    pub(crate) fn round(&self, warm_up: Duration, duration: Duration) -> Result<Round> {
        let mut command = process::on_cpus(&self.cpus, "fio");
        command.args(self.arguments());
        command.arg(format!("--ramp_time={}ms", warm_up.as_millis()));
        command.arg(format!("--runtime={}ms", duration.as_millis()));
        let done = command.output().context("cannot run fio")?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(anyhow!("fio: {}\n{said}", done.status));
        }
        let said = String::from_utf8_lossy(&done.stdout);
        // fio may print notes before its JSON.
        let json = said.find('{').map_or("", |at| &said[at..]);
        let report: Value = serde_json::from_str(json).context("cannot read fio's report")?;
        round(&report, self.jobs()).ok_or_else(|| anyhow!("fio's report lacks figures: {json}"))
    }

    fn jobs(&self) -> u16 {
        (self.cpus.len() as u16).min(self.depth)
    }

    /// Its settings, without the times.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let fixed = "--name=native --ioengine=io_uring --direct=1 --fixedbufs=1 --registerfiles=1 --nonvectored=1 \
                     --norandommap=1 --randrepeat=0 --time_based=1 --group_reporting=1 --output-format=json";
        let mut arguments: Vec<String> =
            fixed.split_ascii_whitespace().map(str::to_owned).collect();
        arguments.push(format!("--bs={}", self.block_bytes));
        match self.read_percent {
            0 => arguments.push("--rw=randwrite".into()),
            100 => arguments.push("--rw=randread".into()),
            percent => arguments.extend(["--rw=randrw".into(), format!("--rwmixread={percent}")]),
        }
        let jobs = self.jobs();
        if jobs > 1 {
            arguments.extend(["--thread=1".into(), format!("--numjobs={jobs}")]);
        }
        arguments.push(format!("--iodepth={}", self.depth / jobs));
        arguments.push(filename(&self.file));
        arguments
    }
}

/// Reads a whole file past the page cache. A virtual machine's disk may be slow for blocks that its host has not read lately: after
/// this all contestants find the same.
pub(crate) fn read_whole(file: &Path) -> Result<()> {
    let mut command = Command::new("fio");
    let fixed = "--name=whole --ioengine=io_uring --direct=1 --rw=read --bs=1m --iodepth=4";
    command.args(fixed.split_ascii_whitespace()).arg(filename(file));
    let done = command.output().context("cannot run fio")?;
    let said = || String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.success() { Ok(()) } else { Err(anyhow!("fio: {}", said())) }
}

fn filename(path: &Path) -> String {
    // fio takes a colon for a separator of names.
    format!("--filename={}", path.display().to_string().replace(':', "\\:"))
}

/// Both directions together; percentiles only where there is one, since two cannot be added.
fn round(report: &Value, jobs: u16) -> Option<Round> {
    let job = report.get("jobs")?.get(0)?;
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_f64);
    let sides = ["read", "write"].map(|side| job.get(side));
    let sides: Vec<&Value> = sides
        .into_iter()
        .flatten()
        .filter(|side| number(side, "iops").is_some_and(|iops| iops > 0.0))
        .collect();
    let iops: f64 = sides.iter().map(|side| number(side, "iops")).sum::<Option<f64>>()?;
    let share =
        |side: &&Value| Some(number(side, "iops")? / iops * number(side.get("lat_ns")?, "mean")?);
    let latency = sides.iter().map(share).sum::<Option<f64>>()?;
    // Shares of the threads' time, averaged over the threads.
    let cpu = (number(job, "usr_cpu")? + number(job, "sys_cpu")?) / 100.0 * f64::from(jobs);
    let mut round = Round::from([
        (Figure::Iops, (iops > 0.0).then_some(iops)?),
        (Figure::LatencyUs, latency / 1000.0),
        (Figure::ClientCpuUs, cpu * 1e6 / iops),
    ]);
    if let [side] = sides[..] {
        let percentile = side.get("clat_ns")?.get("percentile")?;
        round.insert(Figure::P50Us, number(percentile, "50.000000")? / 1000.0);
        round.insert(Figure::P99Us, number(percentile, "99.000000")? / 1000.0);
    }
    Some(round)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_in_a_report() {
        let report = serde_json::json!({ "jobs": [{
            "usr_cpu": 10.0, "sys_cpu": 15.0,
            "read": { "iops": 50_000.0, "lat_ns": { "mean": 20_000.0 },
                      "clat_ns": { "percentile": { "50.000000": 15_000, "99.000000": 30_000 } } },
        }]});
        let round = round(&report, 1).unwrap();
        assert_eq!(round[&Figure::Iops], 50_000.0);
        assert_eq!(round[&Figure::LatencyUs], 20.0);
        assert_eq!(round[&Figure::P99Us], 30.0);
        assert!((round[&Figure::ClientCpuUs] - 5.0).abs() < 1e-9);
        let idle = serde_json::json!({ "jobs": [{ "usr_cpu": 0.0, "sys_cpu": 0.0 }]});
        assert!(super::round(&idle, 1).is_none());
    }
}
