//! What stands still is ended, and shown: a test harness names its threads after the tests.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Seek as _;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process, nice};

use crate::run::describe;

/// No program that a step runs takes a third of this, on two cores with nothing else to do.
const PATIENCE: Duration = Duration::from_secs(25 * 60);

/// Runs a command with its output on the terminal. A program that it runs and that does not end is shown, and killed.
pub(crate) fn visible(command: &mut Command) -> Result<()> {
    watch(command, PATIENCE, Duration::from_millis(200))
}

/// A command that runs while something else does, and whose output waits for its end.
pub(crate) struct Beside {
    line: String,
    output: File,
    done: JoinHandle<Result<()>>,
}

/// Starts a command as [`visible`] does, with its output kept, and so much nicer than this process (nice(2), 0 to 19).
pub(crate) fn beside(mut command: Command, nicer: i32) -> Result<Beside> {
    let output = File::from(memfd_create("output", MemfdFlags::CLOEXEC)?);
    command.stdout(output.try_clone()?).stderr(output.try_clone()?);
    let line = describe(&command);
    let run = move || {
        // On Linux this is of the thread, and of what it starts.
        nice(nicer).context("cannot be nicer")?;
        visible(&mut command)
    };
    Ok(Beside { line, output, done: std::thread::spawn(run) })
}

impl Beside {
    /// Waits for its end, and shows what it printed.
    pub(crate) fn finish(mut self) -> Result<()> {
        let outcome = self.done.join().expect("it was shown why");
        self.output.rewind()?;
        println!("$ {}", self.line);
        std::io::copy(&mut self.output, &mut std::io::stdout())?;
        outcome
    }
}

/// Runs two commands beside each other as [`visible`] does. The output of the first is on the terminal, that of the second comes when both have ended.
pub(crate) fn visible_beside(first: &mut Command, second: Command) -> Result<()> {
    let second = beside(second, 0)?;
    match (visible(first), second.finish()) {
        (Err(one), Err(two)) => Err(anyhow!("{one}; {two}")),
        (one, two) => one.and(two),
    }
}

fn watch(command: &mut Command, patience: Duration, pause: Duration) -> Result<()> {
    let line = describe(command);
    println!("$ {line}");
    let mut cargo =
        command.stdin(Stdio::null()).spawn().with_context(|| format!("cannot run {line}"))?;
    let mut since = HashMap::new();
    let mut stood = Vec::new();
    let status = loop {
        if let Some(status) = cargo.try_wait()? {
            break status;
        }
        let mut running = children(cargo.id());
        // `cargo run` becomes what it runs. What builds or tests everything has the time of two.
        let own = i32::try_from(cargo.id())?;
        running.push(own);
        since.retain(|pid, _| running.contains(pid));
        for pid in running {
            let patience = if pid == own { 2 * patience } else { patience };
            if since.entry(pid).or_insert_with(Instant::now).elapsed() < patience {
                continue;
            }
            let name = read(&format!("/proc/{pid}/comm"));
            println!("{name} (process {pid}) stands still:\n{}", threads(pid));
            if let Some(pid) = Pid::from_raw(pid) {
                // It may have ended meanwhile.
                _ = kill_process(pid, Signal::KILL);
            }
            stood.push(name);
            since.remove(&pid);
        }
        std::thread::sleep(pause);
    };
    match stood.as_slice() {
        [] if status.success() => Ok(()),
        [] => Err(anyhow!("{line}: {status}")),
        names => Err(anyhow!("{line}: {} did not end and was killed", names.join(", "))),
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn children(parent: u32) -> Vec<i32> {
    let list = read(&format!("/proc/{parent}/task/{parent}/children"));
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Each thread with what it does in the kernel.
fn threads(pid: i32) -> String {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let line = |task: fs::DirEntry| {
        let of = |what| read(&format!("{}/{what}", task.path().display()));
        let stat = of("stat");
        let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
        format!("  {:<16} {} {}\n", of("comm"), state.unwrap_or("?"), of("wchan"))
    };
    tasks.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_end_is_named_and_killed() {
        // The shell has twice that: it may begin what it runs late, and is not to be the first whose time is over.
        let (patience, pause) = (Duration::from_secs(2), Duration::from_millis(5));
        let mut shell = Command::new("sh");
        let error = watch(shell.args(["-c", "sleep 1000; true"]), patience, pause).unwrap_err();
        assert!(error.to_string().contains("sleep did not end"), "{error}");
    }

    #[test]
    fn so_is_the_program_itself() {
        let pause = Duration::from_millis(5);
        let error = watch(Command::new("sleep").arg("1000"), 4 * pause, pause).unwrap_err();
        assert!(error.to_string().contains("sleep did not end"), "{error}");
    }

    #[test]
    fn of_two_both_run_at_once_and_each_failure_is_told() {
        // Each waits for the other.
        let folder = std::env::temp_dir().join(format!("beside-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let of = |mine: &str, other: &str, end: &str| {
            let mut command = Command::new("sh");
            let script =
                format!(": > {mine}; until [ -e {other} ]; do sleep 0.01; done; exit {end}");
            command.current_dir(&folder).args(["-c", &script]);
            command
        };
        visible_beside(&mut of("a", "b", "0"), of("b", "a", "0")).unwrap();
        for (first, second) in [("0", "3"), ("3", "0")] {
            let error = visible_beside(&mut of("a", "b", first), of("b", "a", second));
            assert!(error.unwrap_err().to_string().contains("exit status: 3"));
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn who_ends_is_left_alone() {
        let (long, pause) = (Duration::from_secs(100), Duration::from_millis(5));
        watch(Command::new("sh").args(["-c", "true; true"]), long, pause).unwrap();
        let error = watch(Command::new("sh").args(["-c", "exit 3"]), long, pause).unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
    }
}
