//! A folder and processes that exist only while a command runs: those of `demo` and `bench scale`.
//!
//! Promises: when the command ends, by itself, by an error, by a panic, by ctrl-c or by SIGTERM, the processes that it
//! started and the data planes that serve in its folder are ended, each by its own process id, and the folder is removed.
//! [`Scratch::keep`] gives all of it to the user instead. What SIGKILL leaves behind stays.
//!
//! Threads: a thread waits for the signals; it and the owner share the list of what is to be cleaned up under a lock.

use crate::exit::Failure;
use crate::output::tell;
use control::link::{Link, SocketLink};
use protocol::message::Request;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// How long a control plane and its data planes may take until they answer.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a process may take to end when it is asked to.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// How often to look meanwhile.
const STEP: Duration = Duration::from_millis(5);
/// Folders of earlier commands that had the same process id and were killed.
const NAMES_MAX: u32 = 100;

/// What is to be cleaned up.
struct Contents {
    folder: Option<PathBuf>,
    children: Vec<Child>,
    /// Files outside of the folder.
    files: Vec<PathBuf>,
    /// Leave `*.log` in the folder.
    keep_logs: bool,
}

/// A folder and the processes that work in it; see the module.
pub(crate) struct Scratch {
    contents: Arc<Mutex<Contents>>,
    folder: PathBuf,
}

fn locked(contents: &Mutex<Contents>) -> MutexGuard<'_, Contents> {
    // A panic elsewhere is one more reason to clean up.
    contents.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scratch {
    /// Makes a folder `trunkline-PURPOSE-PID` in `parent`.
    pub(crate) fn new(parent: &Path, purpose: &str) -> Result<Scratch, Failure> {
        let folder = make_folder(parent, purpose)?;
        let contents = Contents {
            folder: Some(folder.clone()),
            children: Vec::new(),
            files: Vec::new(),
            keep_logs: false,
        };
        let scratch = Scratch { contents: Arc::new(Mutex::new(contents)), folder };
        watch_signals(Arc::clone(&scratch.contents))
            .map_err(|error| Failure::other(format!("cannot wait for signals: {error}")))?;
        Ok(scratch)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A name in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts this program once more with its output in `NAME.log`. Ctrl-c on the terminal does not reach it: it is this
    /// process that ends it.
    pub(crate) fn start<'a>(
        &self,
        name: &str,
        args: impl IntoIterator<Item = &'a str>,
    ) -> Result<u32, Failure> {
        let failed = |error: io::Error| Failure::other(format!("cannot start `{name}`: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path(&format!("{name}.log")))
            .map_err(failed)?;
        let mut command = Command::new(program);
        command.args(args).env_remove("TRUNKLINE_DIR").env_remove("JOURNAL_STREAM");
        command.stdin(Stdio::null()).stdout(log.try_clone().map_err(failed)?).stderr(log);
        command.process_group(0);
        // Under the lock, so that no signal finds a process that is not in the list.
        let mut contents = locked(&self.contents);
        let child = command.spawn().map_err(failed)?;
        let pid = child.id();
        contents.children.push(child);
        Ok(pid)
    }

    /// Starts a data plane at a socket in the folder, on the first of these CPUs, one for each channel; what it says is in `NAME.log`.
    pub(crate) fn start_data_plane(
        &self,
        name: &str,
        messages: &Path,
        cpus: &[usize],
        channels: u16,
    ) -> Result<u32, Failure> {
        let socket = messages.to_str().ok_or_else(|| {
            Failure::other(format!("{}: the path is not UTF-8", messages.display()))
        })?;
        let cpus = cpus.iter().take(channels.into()).copied().collect();
        let (cpus, channels) = (fabric::units::format_cpus(&cpus), channels.to_string());
        let args = ["--socket", socket, "--cpus", &cpus, "--channels", &channels, "--log", "warn"];
        self.start(name, ["dataplane"].into_iter().chain(args))
    }

    /// How a process ended, if it has.
    pub(crate) fn ended(&self, pid: u32) -> Option<ExitStatus> {
        let mut contents = locked(&self.contents);
        let child = contents.children.iter_mut().find(|child| child.id() == pid)?;
        child.try_wait().ok().flatten()
    }

    /// Calls `attempt` until it works, the process has ended, or it takes too long. `what` names what is waited for.
    pub(crate) fn wait_for<T, E: std::fmt::Display>(
        &self,
        pid: u32,
        what: &str,
        patience: Duration,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + patience;
        loop {
            match attempt() {
                Ok(value) => return Ok(value),
                Err(error) if Instant::now() > deadline => {
                    let seconds = patience.as_secs();
                    return Err(Failure::other(format!(
                        "{what} is not ready within {seconds} s: {error}"
                    )));
                }
                Err(_) => {}
            }
            if let Some(status) = self.ended(pid) {
                return Err(Failure::other(format!("{what} ended at once ({status})")));
            }
            std::thread::sleep(STEP);
        }
    }

    /// Ends one process that was started here.
    pub(crate) fn end(&self, pid: u32) {
        let mut contents = locked(&self.contents);
        if let Some(at) = contents.children.iter().position(|child| child.id() == pid) {
            end_child(&mut contents.children.remove(at));
        }
    }

    /// A file outside of the folder that is to be removed too.
    pub(crate) fn also_remove(&self, file: PathBuf) {
        locked(&self.contents).files.push(file);
    }

    /// The last lines of the logs, for an error message; the logs stay where they are when everything else is removed.
    pub(crate) fn keep_logs(&self) -> String {
        locked(&self.contents).keep_logs = true;
        let mut text = String::new();
        for path in logs(&self.folder) {
            text += &format!("\nlog: {}", path.display());
            let log = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
                text += &format!("\n  | {line}");
            }
        }
        text
    }

    /// Leaves everything as it is.
    pub(crate) fn keep(self) {
        let mut contents = locked(&self.contents);
        contents.folder = None;
        contents.children.clear();
        contents.files.clear();
    }
}

/// Lines of each log in an error message.
const LOG_LINES: usize = 8;

impl Drop for Scratch {
    fn drop(&mut self) {
        locked(&self.contents).clean();
    }
}

impl Contents {
    /// Ends and removes everything. Doing it again does nothing.
    fn clean(&mut self) {
        // The control plane before the data planes, which it would start again.
        for mut child in self.children.drain(..).rev() {
            end_child(&mut child);
        }
        let Some(folder) = self.folder.take() else { return };
        for socket in
            entries(&folder, |name| name.starts_with("dataplane-") && name.ends_with(".sock"))
        {
            end_dataplane(&socket);
        }
        for file in self.files.drain(..) {
            // It may never have been made.
            let _ = fs::remove_file(file);
        }
        let removed = if self.keep_logs && !logs(&folder).is_empty() {
            remove_all_but_logs(&folder)
        } else {
            fs::remove_dir_all(&folder)
        };
        if let Err(error) = removed {
            tell(&format!("warning: {} was not removed: {error}", folder.display()));
        }
    }
}

fn make_folder(parent: &Path, purpose: &str) -> Result<PathBuf, Failure> {
    let failed = |path: &Path, error: io::Error| {
        Failure::other(format!(
            "cannot make the folder {}: {error}; --dir names another place",
            path.display()
        ))
    };
    DirBuilder::new().recursive(true).create(parent).map_err(|error| failed(parent, error))?;
    let parent = fs::canonicalize(parent).map_err(|error| failed(parent, error))?;
    let pid = std::process::id();
    for number in 0..NAMES_MAX {
        let suffix = if number > 0 { format!("-{number}") } else { String::new() };
        let folder = parent.join(format!("trunkline-{purpose}-{pid}{suffix}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&folder, error)),
        }
    }
    let error = io::Error::from(io::ErrorKind::AlreadyExists);
    Err(failed(&parent.join(format!("trunkline-{purpose}-{pid}")), error))
}

fn entries(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(&wanted))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

fn logs(folder: &Path) -> Vec<PathBuf> {
    entries(folder, |name| name.ends_with(".log"))
}

fn remove_all_but_logs(folder: &Path) -> io::Result<()> {
    for entry in entries(folder, |name| !name.ends_with(".log")) {
        if entry.is_dir() { fs::remove_dir_all(entry) } else { fs::remove_file(entry) }?;
    }
    Ok(())
}

/// Asks a child to end, and does not ask again.
fn end_child(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw)
        && matches!(child.try_wait(), Ok(None))
    {
        // The child is not collected yet, so that the id is still its own.
        let _ = rustix::process::kill_process(pid, Signal::TERM);
        let deadline = Instant::now() + END_TIMEOUT;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(STEP);
        }
    }
    // Both fail only for a process that has ended and was collected.
    let _ = child.kill();
    let _ = child.wait();
}

/// Ends the data plane that takes messages on a socket: it is no child of this process but of the control plane.
fn end_dataplane(socket: &Path) {
    let Ok(mut link) = SocketLink::connect(socket) else { return };
    // A descriptor stays with that process even if its number is used again.
    let process = i32::try_from(link.pid())
        .ok()
        .and_then(Pid::from_raw)
        .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
    if let Some(stream) = link.watch() {
        // Without it the wait is longer, not wrong.
        let _ = stream.set_read_timeout(Some(END_TIMEOUT));
    }
    // It may hang up before its answer arrives.
    let _ = link.call(&Request::Shutdown, &[]);
    let Some(process) = process else { return };
    let deadline = Instant::now() + END_TIMEOUT;
    while !has_ended(process.as_fd()) {
        if Instant::now() > deadline {
            let _ = rustix::process::pidfd_send_signal(&process, Signal::KILL);
            return;
        }
        std::thread::sleep(STEP);
    }
}

/// A descriptor of a process is readable when the process has ended.
fn has_ended(process: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Cleans up and ends this process when a signal asks for it.
fn watch_signals(contents: Arc<Mutex<Contents>>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupt, mut term, mut hangup) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        )
    };
    let wait = move || {
        let number = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => SignalKind::interrupt(),
                _ = term.recv() => SignalKind::terminate(),
                _ = hangup.recv() => SignalKind::hangup(),
            }
        });
        // Held until the end, so that the owner cannot report what is now falling apart as an error.
        let mut contents = locked(&contents);
        contents.clean();
        tell("\ninterrupted; what was started is ended");
        // As a shell reports a process that a signal ended.
        std::process::exit(128 + number.as_raw_value());
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_leaves_nothing_behind() {
        let parent = std::env::temp_dir().join(format!("scratch-test-{}", std::process::id()));
        let scratch = Scratch::new(&parent, "test").expect("a folder");
        let outside = parent.join("outside");
        fs::write(&outside, "x").expect("written");
        fs::write(scratch.path("inside"), "x").expect("written");
        scratch.also_remove(outside.clone());
        let folder = scratch.folder().to_owned();
        assert!(folder.is_dir());
        drop(scratch);
        assert!(!folder.exists() && !outside.exists());
        fs::remove_dir(&parent).expect("empty");
    }

    #[test]
    fn logs_stay_after_a_failure_and_are_quoted() {
        let parent = std::env::temp_dir().join(format!("scratch-logs-{}", std::process::id()));
        let scratch = Scratch::new(&parent, "test").expect("a folder");
        fs::write(scratch.path("serve.log"), "first\nlast words\n").expect("written");
        fs::write(scratch.path("disk0"), "x").expect("written");
        let text = scratch.keep_logs();
        assert!(text.contains("serve.log") && text.contains("| last words"), "{text}");
        let (log, disk) = (scratch.path("serve.log"), scratch.path("disk0"));
        drop(scratch);
        assert!(log.exists() && !disk.exists());
        fs::remove_dir_all(&parent).expect("removed");
    }
}
