//! Processes: starting them on a CPU, and what they cost.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use anyhow::{Context as _, Result, anyhow};

/// How long a program may take to listen on its socket.
const START_MAX: Duration = Duration::from_secs(20);
/// How long a program may take to end when asked to.
const END_MAX: Duration = Duration::from_secs(5);

/// A command whose process, with all its threads, runs on one CPU. `taskset` becomes the program, so that the process id is
/// the program's.
pub(crate) fn on_cpu(cpu: usize, program: impl AsRef<OsStr>) -> Command {
    on_cpus(&[cpu], program)
}

/// The same for several CPUs.
pub(crate) fn on_cpus(cpus: &[usize], program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(list(cpus)).arg(program);
    command
}

/// CPUs as a list.
pub(crate) fn list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

/// A server in a process of its own; it is ended when this is dropped.
pub(crate) struct Process {
    child: Child,
    name: String,
}

impl Process {
    /// Starts a server; its messages go to a file in `folder`.
    pub(crate) fn start(mut command: Command, name: &str, folder: &Path) -> Result<Process> {
        let log = fs::File::create(folder.join(format!("{name}.log")))
            .context("cannot make a log file")?;
        let errors = log.try_clone().context("cannot make a log file")?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start {name} ({command:?})"))?;
        Ok(Process { child, name: name.to_owned() })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `ready` says that it can be used.
    pub(crate) fn wait_until(
        &mut self,
        folder: &Path,
        mut ready: impl FnMut() -> bool,
    ) -> Result<()> {
        let end = Instant::now() + START_MAX;
        loop {
            if ready() {
                return Ok(());
            }
            let ended = self.child.try_wait().context("cannot wait for a process")?;
            if ended.is_some() || Instant::now() > end {
                let said = fs::read_to_string(folder.join(format!("{}.log", self.name)));
                let state = ended.map_or("does not listen".to_owned(), |status| status.to_string());
                return Err(anyhow!("{}: {state}\n{}", self.name, said.unwrap_or_default()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            // It may have ended already.
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
        let end = Instant::now() + END_MAX;
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process has used up to now, all threads together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Usage {
    /// CPU time, from the scheduler's own counters.
    pub(crate) cpu_ns: u64,
    /// Times that a thread went to sleep.
    pub(crate) sleeps: u64,
}

/// Reads what a process has used.
pub(crate) fn usage(pid: u32) -> Result<Usage> {
    let tasks = format!("/proc/{pid}/task");
    let mut sum = Usage::default();
    for task in fs::read_dir(&tasks).with_context(|| format!("cannot list {tasks}"))? {
        let task = task.with_context(|| format!("cannot list {tasks}"))?.path();
        // A thread that ends while we look counts as nothing.
        let schedstat = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        sum.cpu_ns += first_number(&schedstat).unwrap_or(0);
        sum.sleeps += field(&status, "voluntary_ctxt_switches:").unwrap_or(0);
    }
    Ok(sum)
}

/// Resident memory of a process in MiB.
pub(crate) fn resident_mib(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let kib = field(&status, "VmRSS:").ok_or_else(|| anyhow!("{path} has no VmRSS"))?;
    Ok(kib as f64 / 1024.0)
}

fn first_number(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

fn field(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| first_number(line.strip_prefix(name)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_used_something() {
        let pid = std::process::id();
        assert!(usage(pid).unwrap().cpu_ns > 0);
        assert!(resident_mib(pid).unwrap() > 0.5);
        assert!(usage(u32::MAX).is_err());
    }

    #[test]
    fn fields_are_found() {
        let status =
            "VmRSS:\t   2048 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t9\n";
        assert_eq!(field(status, "VmRSS:"), Some(2048));
        assert_eq!(field(status, "voluntary_ctxt_switches:"), Some(7));
        assert_eq!(field(status, "VmSwap:"), None);
    }

    #[test]
    fn a_program_that_ends_at_once_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such option; exit 3"]);
        let mut process = Process::start(command, "example", folder.path()).unwrap();
        let text = process.wait_until(folder.path(), || false).unwrap_err().to_string();
        assert!(text.contains("no such option") && text.contains('3'), "{text}");
    }
}
