//! The conditions of a measurement: versions of everything, and how quiet the machine is.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde::Serialize;

use crate::stage::Settled;
use anyhow::{Context as _, Result};

/// What the figures depend on.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    /// Name and version of each thing, in the order of the table.
    pub(crate) facts: Vec<(String, String)>,
}

impl Machine {
    /// Asks everybody.
    pub(crate) fn describe(settled: &Settled) -> Machine {
        let facts = [
            ("date", first_line("date", &["-u", "+%Y-%m-%d %H:%M UTC"])),
            ("commit", commit()),
            ("kernel", first_line("uname", &["-srm"])),
            ("CPU", cpu()),
            ("idle CPUs", cpu_idle()),
            ("scheduling", scheduling()),
            ("rustc", first_line("rustc", &["--version"])),
            ("peer", first_line("qemu-storage-daemon", &["--version"])),
            ("native", first_line("fio", &["--version"])),
            ("disk", file_system(settled)),
        ];
        Machine { facts: facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect() }
    }
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output();
    match done {
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stdout).into_owned();
            said.lines().next().unwrap_or("says nothing").to_owned()
        }
        Err(error) => format!("{program}: {error}"),
    }
}

fn commit() -> String {
    let commit = first_line("git", &["rev-parse", "--short=12", "HEAD"]);
    let mut status = Command::new("git");
    status.args(["status", "--porcelain", "--", "crates", "Cargo.lock"]);
    let changed = status.output().is_ok_and(|done| !done.stdout.is_empty());
    if changed { format!("{commit}, with changes that are not committed") } else { commit }
}

fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        let line = info.lines().find(|line| line.starts_with(key))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    let count = info.lines().filter(|line| line.starts_with("processor")).count();
    let name = value("model name").unwrap_or_else(|| "unknown".to_owned());
    let family = value("cpu family").zip(value("model\t"));
    let family = family
        .map_or(String::new(), |(family, model)| format!(" (family {family}, model {model})"));
    let hypervisor = if info.contains(" hypervisor") { ", in a virtual machine" } else { "" };
    format!("{count} × {name}{family}{hypervisor}")
}

/// How an idle CPU waits decides what a wake-up costs.
fn cpu_idle() -> String {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
    let driver = read("/sys/devices/system/cpu/cpuidle/current_driver").unwrap_or("none".into());
    let governor =
        read("/sys/devices/system/cpu/cpuidle/current_governor").unwrap_or("none".into());
    let poll = read("/sys/module/haltpoll/parameters/guest_halt_poll_ns");
    let poll = poll.map_or(String::new(), |ns| format!(", guest_halt_poll_ns {ns}"));
    format!("driver {driver}, governor {governor}{poll}")
}

/// With a real-time policy the figures hold on a machine that is not quiet, but for what the kernel keeps for others.
fn scheduling() -> String {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    // The policy is field 41 of proc_pid_stat(5); what follows the name begins with field 3.
    match fields.split_ascii_whitespace().nth(41 - 3) {
        Some("0") => "as every program".to_owned(),
        Some("1") => "real-time (FIFO)".to_owned(),
        Some("2") => "real-time (round robin): what others do disturbs little".to_owned(),
        other => format!("policy {}", other.unwrap_or("unknown")),
    }
}

fn file_system(settled: &Settled) -> String {
    let path = settled.disk.display().to_string();
    let said = Command::new("findmnt").args(["-no", "FSTYPE,SOURCE", "-T", &path]).output();
    said.map_or("unknown".to_owned(), |done| {
        let said = String::from_utf8_lossy(&done.stdout);
        said.split_ascii_whitespace().collect::<Vec<_>>().join(" on ")
    })
}

/// CPU time that is used on the machine while nothing of ours runs, in percent of one CPU.
pub(crate) fn others_percent(look: Duration) -> Result<f64> {
    let before = busy_ticks()?;
    std::thread::sleep(look);
    let ticks = busy_ticks()?.saturating_sub(before);
    let seconds = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    Ok(seconds / look.as_secs_f64() * 100.0)
}

fn busy_ticks() -> Result<u64> {
    let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    let fields = stat.lines().next().unwrap_or_default().split_ascii_whitespace().skip(1);
    let numbers: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal (proc_stat(5)): all but idle and iowait.
    Ok(numbers
        .iter()
        .take(8)
        .enumerate()
        .filter(|(at, _)| !matches!(at, 3 | 4))
        .map(|(_, n)| n)
        .sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_works_is_not_idle() {
        let (end, worker) = {
            let end = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let seen = std::sync::Arc::clone(&end);
            let work = move || while !seen.load(std::sync::atomic::Ordering::Relaxed) {};
            (end, std::thread::spawn(work))
        };
        let percent = others_percent(Duration::from_millis(300)).unwrap();
        end.store(true, std::sync::atomic::Ordering::Relaxed);
        worker.join().unwrap();
        assert!(percent > 10.0, "{percent}");
        assert!(cpu().contains('×'));
    }
}
