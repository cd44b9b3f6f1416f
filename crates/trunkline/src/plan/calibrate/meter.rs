//! CPU time of a data plane's threads without what they spent looking for work in vain, and the clock of its CPUs.

use crate::exit::Failure;
use control::error::ApiError;
use protocol::stats::{ChannelCounter, StatsReader};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// What a data plane had used at a moment.
#[derive(Debug, Clone, Default)]
struct Used {
    /// CPU time of each thread, by its name; of several with one name the sum.
    threads: BTreeMap<String, u64>,
    /// What each channel says of its time: working, looking for work.
    channels: Vec<(u64, u64)>,
}

/// Measures what a data plane works.
pub(super) struct Meter {
    pid: u32,
    stats: StatsReader,
    begin: io::Result<Used>,
    end: io::Result<Used>,
}

impl Meter {
    pub(super) fn new(pid: u32, stats: StatsReader) -> Meter {
        Meter { pid, stats, begin: Ok(Used::default()), end: Ok(Used::default()) }
    }

    pub(super) fn begin(&mut self) {
        self.begin = self.used();
    }

    pub(super) fn end(&mut self) {
        self.end = self.used();
    }

    fn used(&self) -> io::Result<Used> {
        let mut threads = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{}/task", self.pid))? {
            let task = task?.path();
            // A thread that ends while we look counts as nothing.
            let Ok(name) = fs::read_to_string(task.join("comm")) else { continue };
            let Ok(times) = fs::read_to_string(task.join("schedstat")) else { continue };
            let ran = times.split_ascii_whitespace().next().and_then(|ns| ns.parse().ok());
            *threads.entry(name.trim_end().to_owned()).or_insert(0) += ran.unwrap_or(0u64);
        }
        if threads.values().all(|ran| *ran == 0) {
            let text = "the kernel counts no CPU time of threads (schedstat)";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let channels = self.stats.snapshot().channels;
        let channel = |channel: &protocol::stats::ChannelSnapshot| {
            (channel.get(ChannelCounter::Busy), channel.get(ChannelCounter::Spin))
        };
        Ok(Used { threads, channels: channels.iter().map(channel).collect() })
    }

    /// CPU time between begin and end.
    pub(super) fn worked(self) -> io::Result<Duration> {
        Ok(Duration::from_nanos(worked(&self.begin?, &self.end?)))
    }
}

/// CPU time of all threads; of a channel without the part of its time awake in which it looked for work in vain.
fn worked(begin: &Used, end: &Used) -> u64 {
    let mut sum = 0;
    for (name, until) in &end.threads {
        let ran = until.saturating_sub(begin.threads.get(name).copied().unwrap_or(0));
        let number = name.strip_prefix("channel-").and_then(|number| number.parse().ok());
        let channel = number.and_then(|number: usize| {
            Some((begin.channels.get(number)?, end.channels.get(number)?))
        });
        sum += match channel {
            Some((before, after)) => {
                let busy = after.0.saturating_sub(before.0);
                let spun = after.1.saturating_sub(before.1);
                working(ran, busy, spun)
            }
            None => ran,
        };
    }
    sum
}

/// Both of the channel's times run on while others have its CPU, alike: their sum is held against its CPU time, which has going to sleep in it, too.
fn working(ran: u64, busy: u64, spun: u64) -> u64 {
    let awake = (busy + spun).max(1) as f64;
    let vain = spun as f64 * (ran as f64 / awake).min(1.0);
    ran.saturating_sub(vain as u64)
}

/// The clock of some CPUs.
pub(super) struct Clock {
    given: Option<f64>,
    cpus: Vec<usize>,
    by: &'static str,
    seen: Vec<f64>,
}

impl Clock {
    /// As it was given, or else as the system tells it.
    pub(super) fn new(ghz: Option<f64>, cpus: &[usize]) -> Result<Clock, Failure> {
        let mut clock = Clock { given: None, cpus: cpus.to_vec(), by: "given", seen: Vec::new() };
        if let Some(ghz) = ghz {
            if !(0.1..=20.0).contains(&ghz) {
                let text = format!("--clock-ghz: expected 0.1 to 20, not {ghz}");
                return Err(ApiError::invalid(text)
                    .help("give the processor's clock, as in --clock-ghz 3.8")
                    .into());
            }
            clock.given = Some(ghz * 1e9);
            return Ok(clock);
        }
        let Some((by, hz)) = asked(Path::new("/"), cpus) else {
            let text = "the system does not tell the clock of this processor: there is no cpufreq, as on many virtual machines, and no `cpu MHz` in /proc/cpuinfo";
            return Err(ApiError::invalid(text)
                .help("give it, as in --clock-ghz 2.6; any value serves to size this host, for its processors are cycles by the same clock")
                .into());
        };
        clock.by = by;
        clock.seen.push(hz);
        Ok(clock)
    }

    /// Looks again: it changes with the load.
    pub(super) fn look(&mut self) {
        if self.given.is_none() {
            self.seen.extend(asked(Path::new("/"), &self.cpus).map(|(_, hz)| hz));
        }
    }

    /// The median of what was seen.
    pub(super) fn hz(&self) -> f64 {
        let spread = planner::size::calibration::Spread::of(self.seen.iter().copied());
        self.given.or(spread.map(|spread| spread.median)).unwrap_or(f64::NAN)
    }

    /// How it is known.
    pub(super) fn by(&self) -> String {
        self.by.to_owned()
    }
}

/// The mean clock of these CPUs, and who tells it.
fn asked(root: &Path, cpus: &[usize]) -> Option<(&'static str, f64)> {
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let khz = |cpu: &usize| {
        let file = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        fs::read_to_string(root.join(file))
            .ok()?
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|khz| *khz > 0.0)
    };
    if let Some(khz) = mean(cpus.iter().filter_map(khz).collect()) {
        return Some(("by cpufreq", khz * 1e3));
    }
    let text = fs::read_to_string(root.join("proc/cpuinfo")).ok()?;
    let mhz = mean(megahertz(&text, cpus))?;
    Some(("by /proc/cpuinfo", mhz * 1e6))
}

fn megahertz(cpuinfo: &str, cpus: &[usize]) -> Vec<f64> {
    let (mut cpu, mut found) = (None, Vec::new());
    for line in cpuinfo.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        match key.trim() {
            "processor" => cpu = value.trim().parse().ok(),
            "cpu MHz" if cpu.is_some_and(|cpu| cpus.contains(&cpu)) => {
                found.extend(value.trim().parse::<f64>().ok().filter(|mhz| *mhz > 0.0));
            }
            _ => {}
        }
    }
    found
}

/// The processor's name.
pub(super) fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(threads: &[(&str, u64)], channels: &[(u64, u64)]) -> Used {
        let threads = threads.iter().map(|(name, ran)| ((*name).to_owned(), *ran)).collect();
        Used { threads, channels: channels.to_vec() }
    }

    #[test]
    fn looking_in_vain_is_no_work() {
        let begin = used(&[("channel-0", 100), ("messages", 5)], &[(50, 50)]);
        let end = used(&[("channel-0", 1100), ("messages", 7)], &[(850, 250)]);
        // 800 of 1000 awake were work; what others used counts as it is.
        assert_eq!(worked(&begin, &end), 802);
    }

    #[test]
    fn time_that_others_had_the_cpu_counts_for_nobody() {
        // Awake for 1000 by the clock, and 500 of them on the CPU.
        assert_eq!(working(500, 800, 200), 400);
        // Going to sleep takes CPU time that the channel does not count.
        assert_eq!(working(1200, 800, 200), 1000);
        assert_eq!(working(0, 0, 0), 0);
    }

    #[test]
    fn the_clock_is_that_of_the_cpus_in_use() {
        let text = "processor\t: 0\ncpu MHz\t\t: 1000.5\n\nprocessor\t: 1\ncpu MHz\t\t: 3000\n";
        assert_eq!(megahertz(text, &[1]), [3000.0]);
        assert_eq!(megahertz(text, &[0, 1]), [1000.5, 3000.0]);
        assert_eq!(megahertz("processor : 0\nBogoMIPS : 48\n", &[0]), [] as [f64; 0]);
    }

    #[test]
    fn cpufreq_is_asked_first_and_who_has_neither_says_so() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(asked(root.path(), &[0]), None);
        fs::create_dir(root.path().join("proc")).unwrap();
        fs::write(root.path().join("proc/cpuinfo"), "processor : 0\ncpu MHz : 2000\n").unwrap();
        assert_eq!(asked(root.path(), &[0]), Some(("by /proc/cpuinfo", 2e9)));
        let folder = root.path().join("sys/devices/system/cpu/cpu0/cpufreq");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("scaling_cur_freq"), "2500000\n").unwrap();
        assert_eq!(asked(root.path(), &[0]), Some(("by cpufreq", 2.5e9)));
    }
}
