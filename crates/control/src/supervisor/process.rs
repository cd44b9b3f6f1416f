//! The data plane as a process: connecting, starting, waiting for its end.

use super::pulse::{Asking, Asks, is_absent};
use crate::link::{Link, LinkError, SocketLink, listener};
use crate::model::resolve::DataPlaneSpec;
use crate::turns;
use protocol::place::{claimant, reach};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a new data plane may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a data plane may take to finish what is in flight when it is shut down.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How long from a process's hanging up to its end.
const HANGUP_TO_END: Duration = Duration::from_millis(200);
/// How long the kernel may take to bury a process, with what it has in flight.
const LAST_BREATH: Duration = Duration::from_secs(5);
/// How much of its log is searched for what it died of.
const LOG_TAIL: u64 = 16 << 10;
/// How often to look while waiting for a start or an end.
const STEP: Duration = Duration::from_millis(5);

/// How a supervisor gets at its data plane. Tests bring one without processes.
pub trait Launcher: Send {
    /// Connects to a data plane that runs already.
    fn connect(&mut self) -> Result<Box<dyn Link>, LinkError>;
    /// Starts one, and connects when it is up.
    fn launch(&mut self, spec: &DataPlaneSpec) -> io::Result<Box<dyn Link>>;
    /// With what the data plane was started to which [`Launcher::connect`] connected.
    fn started_with(&self) -> Option<DataPlaneSpec>;
    /// It seems to have died: collects it, without waiting for long, and says how it ended, if that is known.
    fn reap(&mut self) -> Option<String>;
    /// It was told to end, or, with `kill`, is not expected to: waits until it has, and kills it when it does not. Whether it is gone.
    fn await_end(&mut self, kill: bool) -> bool;
    /// Where it takes messages.
    fn socket(&self) -> &Path;
    /// A way of its own on which it is asked how it is.
    fn line(&self) -> Box<dyn Asks> {
        Box::new(Asking::at(self.socket().to_owned()))
    }
}

/// Starts `trunkline dataplane` as a process of its own session.
pub struct ProcessLauncher {
    /// The program.
    pub program: PathBuf,
    /// Where it takes messages.
    pub socket: PathBuf,
    /// Where its output goes, unless the journal collects it.
    pub log: PathBuf,
    /// Where it keeps reservations: the only folder that it can open files of by itself.
    pub reservations: PathBuf,
    child: Option<Child>,
    /// Its process, if it was found running.
    adopted: Option<OwnedFd>,
}

/// Which file or folder it was.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl ProcessLauncher {
    /// For a program and a socket.
    pub fn new(
        program: PathBuf,
        socket: PathBuf,
        log: PathBuf,
        reservations: PathBuf,
    ) -> ProcessLauncher {
        ProcessLauncher { program, socket, log, reservations, child: None, adopted: None }
    }

    /// What the data plane was started with is noted beside its socket, for who adopts it.
    fn note(&self) -> PathBuf {
        self.socket.with_extension("json")
    }

    /// Its log. None: its output goes where this process's goes, to the journal, or because no log can be written (the disk is full, or
    /// read-only), since clients wait.
    fn log_file(&self) -> Option<std::fs::File> {
        if std::env::var_os("JOURNAL_STREAM").is_some() {
            return None;
        }
        let log = std::fs::File::options().create(true).append(true).open(&self.log);
        log.inspect_err(|error| {
            let path = self.log.display();
            tracing::warn!(%path, %error, "no log of the data plane: its output stands here");
        })
        .ok()
    }

    /// Its own words where it has left some: they name the setting that mends it.
    fn ended_at_once(&self, status: ExitStatus, log_from: u64, logged: bool) -> String {
        let log = self.log.display();
        match last_error(&self.log, log_from) {
            Some(error) => format!("it ended at once: {error} (log: {log})"),
            None if std::env::var_os("JOURNAL_STREAM").is_some() => {
                format!("it ended at once ({status}); its output is in the journal")
            }
            None if !logged => {
                format!("it ended at once ({status}); its output is in the log of this server")
            }
            None => format!("it ended at once ({status}); its output is in {log}"),
        }
    }

    fn is_gone(&mut self) -> bool {
        match (&mut self.child, &self.adopted) {
            (Some(child), _) => !matches!(child.try_wait(), Ok(None)),
            (None, Some(process)) => has_ended(process),
            (None, None) => matches!(reach(&self.socket), Err(error) if is_absent(&error)),
        }
    }

    /// Nobody listens; but one that lives has the files and sockets of its volumes and adapters. One that is just ending is waited for.
    fn nobody_lives(&self) -> io::Result<()> {
        let deadline = Instant::now() + LAST_BREATH;
        while let Some(pid) = claimant(&self.socket)? {
            if Instant::now() > deadline {
                let what = format!(
                    "process {pid} is still there and does not listen: its socket was removed, or it is ending; \
                     if it does not end, `trunkline dataplane restart` kills it, and clients connect to its successor"
                );
                return Err(io::Error::new(io::ErrorKind::AddrInUse, what));
            }
            std::thread::sleep(STEP);
        }
        Ok(())
    }

    /// A process that was not started here is held by a descriptor, so that its number cannot become another's.
    fn adopt(&mut self, pid: Option<u32>) {
        let child = self.child.as_ref().is_some_and(|child| Some(child.id()) == pid);
        if !child {
            // Never this process itself.
            let pid = pid.filter(|pid| *pid != std::process::id());
            let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
            self.adopted = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        }
    }

    fn kill(&mut self) {
        let killed = match (&mut self.child, &self.adopted) {
            (Some(child), _) => child.kill(),
            (None, Some(process)) => {
                rustix::process::pidfd_send_signal(process, rustix::process::Signal::KILL)
                    .map_err(io::Error::from)
            }
            (None, None) => return,
        };
        match killed {
            Ok(()) => {
                tracing::warn!(socket = %self.socket.display(), "a data plane was killed: it did not end")
            }
            Err(error) => tracing::warn!(%error, "a data plane could not be killed"),
        }
    }
}

/// A descriptor of a process is readable when the process has ended.
fn has_ended(process: &OwnedFd) -> bool {
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

impl Launcher for ProcessLauncher {
    fn connect(&mut self) -> Result<Box<dyn Link>, LinkError> {
        let link = SocketLink::connect(&self.socket);
        match &link {
            Err(LinkError::Absent) => {}
            _ => self.adopt(listener(&self.socket)),
        }
        Ok(Box::new(link?))
    }

    fn launch(&mut self, spec: &DataPlaneSpec) -> io::Result<Box<dyn Link>> {
        self.reap();
        self.adopted = None;
        self.nobody_lives()?;
        // `--detach` makes the process a session of its own, so that no signal to ours reaches it.
        let mut command = std::process::Command::new(&self.program);
        command.args(["dataplane", "--detach", "--socket"]).arg(&self.socket);
        command.args(["--name", &spec.name, "--cpus", &spec.cpus]);
        command.args(["--channels", &spec.channels.to_string()]);
        let told = spec.poll_us_max.map(|told| told.to_string());
        command.args(["--poll-us-max", told.as_deref().unwrap_or("auto")]);
        std::fs::create_dir_all(&self.reservations)
            .map_err(|error| at(&self.reservations, &error))?;
        command.arg("--confine").arg(&self.reservations);
        let log = self.log_file();
        let output = || {
            let log = log.as_ref().and_then(|log| log.try_clone().ok());
            log.map_or_else(Stdio::inherit, Stdio::from)
        };
        command.stdin(Stdio::null()).stdout(output()).stderr(output());
        // What the server may (uplinks take capabilities) a data plane has no need of. A kernel without such sets hands nothing on.
        let _ = rustix::thread::clear_ambient_capability_set();
        let written = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        self.child = Some(command.spawn().map_err(|error| at(&self.program, &error))?);
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(status) = self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                self.child = None;
                return Err(io::Error::other(self.ended_at_once(status, written, log.is_some())));
            }
            match SocketLink::connect(&self.socket) {
                Ok(link) => {
                    // Only what works is noted. One that works is not given up because that cannot be.
                    let note = serde_json::to_vec(spec).map_err(io::Error::other)?;
                    let note = std::fs::write(self.note(), note);
                    if let Err(error) = note {
                        let path = self.note().display().to_string();
                        tracing::warn!(%path, %error, "it is not noted how the data plane was started");
                        // That of an earlier one would be wrong.
                        let _ = std::fs::remove_file(self.note());
                    }
                    return Ok(Box::new(link));
                }
                Err(error) if Instant::now() > deadline => return Err(io::Error::other(error)),
                Err(_) => std::thread::sleep(STEP),
            }
        }
    }

    fn started_with(&self) -> Option<DataPlaneSpec> {
        serde_json::from_slice(&std::fs::read(self.note()).ok()?).ok()
    }

    fn reap(&mut self) -> Option<String> {
        let deadline = Instant::now() + HANGUP_TO_END;
        // One that hung up and still runs stays; the next call collects it.
        while !self.is_gone() {
            if Instant::now() > deadline || (self.child.is_none() && self.adopted.is_none()) {
                return None;
            }
            std::thread::sleep(STEP);
        }
        match (self.child.take(), self.adopted.take()) {
            (Some(mut child), _) => {
                child.try_wait().ok().flatten().map(|status| format!("it ended ({status})"))
            }
            (None, Some(_)) => Some(
                "it ended; an earlier server had started it, so that the system does not say how"
                    .to_owned(),
            ),
            (None, None) => None,
        }
    }

    fn await_end(&mut self, kill: bool) -> bool {
        if kill && self.child.is_none() && self.adopted.is_none() {
            // One that was never reached may live and not listen.
            let pid = claimant(&self.socket).ok().flatten();
            self.adopt(pid);
            // The number is that process's: it was there before the descriptor, and is after.
            if pid.is_some() && claimant(&self.socket).ok().flatten() != pid {
                self.adopted = None;
            }
        }
        let mut deadline = Instant::now() + if kill { Duration::ZERO } else { END_TIMEOUT };
        let mut killed = false;
        while !self.is_gone() {
            if Instant::now() > deadline {
                if killed {
                    return false;
                }
                self.kill();
                (killed, deadline) = (true, Instant::now() + LAST_BREATH);
            }
            std::thread::sleep(STEP);
        }
        self.reap();
        self.adopted = None;
        if killed {
            // It had no time to.
            forget(&self.socket);
        }
        true
    }

    fn socket(&self) -> &Path {
        &self.socket
    }
}

/// Removes what a data plane that is gone had beside its socket.
pub(crate) fn forget(socket: &Path) {
    for path in [socket.to_owned(), socket.with_extension("lock"), socket.with_extension("json")] {
        let _ = std::fs::remove_file(path);
    }
}

/// What a data plane reported on its way out: the last `error:` in its log behind an offset, with the `help:` below it.
fn last_error(log: &Path, from: u64) -> Option<String> {
    let mut file = std::fs::File::open(log).ok()?;
    let end = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(from.max(end.saturating_sub(LOG_TAIL)))).ok()?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let error = &text[text.rfind("error: ")? + "error: ".len()..];
    let mut lines = error.lines();
    let what = lines.next()?.trim().to_owned();
    match lines.find_map(|line| line.strip_prefix("help: ")) {
        Some(help) => Some(format!("{what}; {}", help.trim())),
        None => Some(what),
    }
}

/// Waits, on a thread of its own, until the stream hangs up.
pub(super) fn watch(stream: UnixStream, gone: impl FnOnce() + Send + 'static) {
    let hung_up = move |patience: Option<&Timespec>| {
        let mut fds = [PollFd::new(&stream, PollFlags::RDHUP)];
        // No data is asked for, so whatever comes is the end.
        !matches!(poll(&mut fds, patience), Err(rustix::io::Errno::INTR) | Ok(0))
    };
    if let Err(error) = turns::when("hangup", hung_up, gone) {
        tracing::warn!(%error, "cannot watch the data plane; its end is noticed at the next call");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_plane_that_cannot_start_is_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let earlier = "error: of an earlier one\n";
        let words =
            "starting\nerror: no memory for a ring; use fewer channels\nhelp: or raise ulimit -l\n";
        std::fs::write(&log, format!("{earlier}{words}")).unwrap();
        let from = u64::try_from(earlier.len()).unwrap();
        let quoted = "no memory for a ring; use fewer channels; or raise ulimit -l";
        assert_eq!(last_error(&log, from).as_deref(), Some(quoted));
        assert_eq!(last_error(&log, from + u64::try_from(words.len()).unwrap()), None);
        let launcher = ProcessLauncher::new(
            PathBuf::new(),
            dir.path().join("socket"),
            log.clone(),
            dir.path().join("reservations"),
        );
        let problem = launcher.ended_at_once(ExitStatus::default(), from, true);
        assert_eq!(problem, format!("it ended at once: {quoted} (log: {})", log.display()));
    }

    #[test]
    fn one_that_ends_without_a_word_has_its_status_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let mut launcher = ProcessLauncher::new(
            "/bin/false".into(),
            path("socket"),
            path("log"),
            path("reservations"),
        );
        let spec =
            DataPlaneSpec { name: "main".into(), cpus: "".into(), channels: 1, poll_us_max: None };
        let problem = launcher.launch(&spec).err().unwrap().to_string();
        assert!(
            problem.starts_with("it ended at once (exit status: 1); its output is in "),
            "{problem}"
        );
    }

    #[test]
    fn nobody_is_sent_to_a_log_that_could_not_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("log")).unwrap();
        let mut launcher = ProcessLauncher::new(
            "/bin/false".into(),
            path("socket"),
            path("log"),
            path("reservations"),
        );
        let spec =
            DataPlaneSpec { name: "main".into(), cpus: "".into(), channels: 1, poll_us_max: None };
        let problem = launcher.launch(&spec).err().unwrap().to_string();
        let begin = "it ended at once (exit status: 1); its output is in the ";
        assert!(problem.starts_with(begin), "{problem}");
    }
}
