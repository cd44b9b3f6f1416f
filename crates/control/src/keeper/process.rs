//! The data plane as a process: connecting, starting, waiting for its end.

use super::Command;
use crate::link::{Link, LinkError, SocketLink};
use crate::model::resolve::DataPlaneSpec;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How long a new data plane may take until it answers.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a data plane may take to finish what is in flight when it is shut down.
const END_TIMEOUT: Duration = Duration::from_secs(30);
/// How much of its log is searched for what it died of.
const LOG_TAIL: u64 = 16 << 10;
/// How often to look while waiting for a start or an end.
const STEP: Duration = Duration::from_millis(5);

/// How a keeper gets at its data plane. Tests bring one without processes.
pub trait Launcher: Send {
    /// Connects to a data plane that runs already.
    fn connect(&mut self) -> Result<Box<dyn Link>, LinkError>;
    /// Starts one, and connects when it is up.
    fn launch(&mut self, spec: &DataPlaneSpec) -> io::Result<Box<dyn Link>>;
    /// With what the data plane was started to which [`Launcher::connect`] connected.
    fn started_with(&self) -> Option<DataPlaneSpec>;
    /// It seems to have died: collects it, without waiting.
    fn reap(&mut self);
    /// It was told to end: waits until it has.
    fn await_end(&mut self);
}

/// Starts `trunkline dataplane` as a process of its own session.
pub struct ProcessLauncher {
    /// The program.
    pub program: PathBuf,
    /// Where it takes messages.
    pub socket: PathBuf,
    /// Where its output goes, unless the journal collects it.
    pub log: PathBuf,
    child: Option<Child>,
}

impl ProcessLauncher {
    /// For a program and a socket.
    pub fn new(program: PathBuf, socket: PathBuf, log: PathBuf) -> ProcessLauncher {
        ProcessLauncher { program, socket, log, child: None }
    }

    /// What the data plane was started with is noted beside its socket, for who adopts it.
    fn note(&self) -> PathBuf {
        self.socket.with_extension("json")
    }

    fn output(&self) -> io::Result<Stdio> {
        if std::env::var_os("JOURNAL_STREAM").is_some() {
            return Ok(Stdio::inherit());
        }
        let log = std::fs::File::options().create(true).append(true).open(&self.log)?;
        Ok(log.into())
    }

    /// Its own words where it has left some: they name the setting that mends it.
    fn ended_at_once(&self, status: ExitStatus, log_from: u64) -> String {
        let log = self.log.display();
        match last_error(&self.log, log_from) {
            Some(error) => format!("it ended at once: {error} (log: {log})"),
            None if std::env::var_os("JOURNAL_STREAM").is_some() => {
                format!("it ended at once ({status}); its output is in the journal")
            }
            None => format!("it ended at once ({status}); its output is in {log}"),
        }
    }

    fn is_gone(&mut self) -> bool {
        match &mut self.child {
            Some(child) => !matches!(child.try_wait(), Ok(None)),
            None => UnixStream::connect(&self.socket).is_err(),
        }
    }
}

impl Launcher for ProcessLauncher {
    fn connect(&mut self) -> Result<Box<dyn Link>, LinkError> {
        Ok(Box::new(SocketLink::connect(&self.socket)?))
    }

    fn launch(&mut self, spec: &DataPlaneSpec) -> io::Result<Box<dyn Link>> {
        self.reap();
        // Nobody listens there: a connection was just refused.
        remove_if_there(&self.socket)?;
        let note = serde_json::to_vec(spec).map_err(io::Error::other)?;
        std::fs::write(self.note(), note)?;
        // `--detach` makes the process a session of its own, so that no signal to ours reaches it.
        let mut command = std::process::Command::new(&self.program);
        command.args(["dataplane", "--detach", "--socket"]).arg(&self.socket);
        command.args(["--name", &spec.name, "--cpus", &spec.cpus]);
        command.args(["--channels", &spec.channels.to_string()]);
        command.args(["--poll-us-max", &spec.poll_us_max.to_string()]);
        command.stdin(Stdio::null()).stdout(self.output()?).stderr(self.output()?);
        let written = std::fs::metadata(&self.log).map_or(0, |log| log.len());
        self.child = Some(command.spawn()?);
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(status) = self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                self.child = None;
                return Err(io::Error::other(self.ended_at_once(status, written)));
            }
            match SocketLink::connect(&self.socket) {
                Ok(link) => return Ok(Box::new(link)),
                Err(error) if Instant::now() > deadline => return Err(io::Error::other(error)),
                Err(_) => std::thread::sleep(STEP),
            }
        }
    }

    fn started_with(&self) -> Option<DataPlaneSpec> {
        serde_json::from_slice(&std::fs::read(self.note()).ok()?).ok()
    }

    fn reap(&mut self) {
        // One that hung up and still runs stays a child; the next call collects it.
        if let Some(child) = &mut self.child
            && !matches!(child.try_wait(), Ok(None))
        {
            self.child = None;
        }
    }

    fn await_end(&mut self) {
        let deadline = Instant::now() + END_TIMEOUT;
        while !self.is_gone() && Instant::now() < deadline {
            std::thread::sleep(STEP);
        }
        self.reap();
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

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Waits, on a thread of its own, until the stream hangs up.
pub(super) fn watch(stream: UnixStream, generation: u64, keeper: Sender<Command>) {
    let wait = move || {
        loop {
            let mut fds = [PollFd::new(&stream, PollFlags::RDHUP)];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => {}
                // No data is asked for, so whatever comes is the end.
                _ => break,
            }
        }
        // The keeper may have ended before.
        let _ = keeper.send(Command::Hangup(generation));
    };
    if let Err(error) = std::thread::Builder::new().name("hangup".to_owned()).spawn(wait) {
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
        let launcher = ProcessLauncher::new(PathBuf::new(), dir.path().join("socket"), log.clone());
        let problem = launcher.ended_at_once(ExitStatus::default(), from);
        assert_eq!(problem, format!("it ended at once: {quoted} (log: {})", log.display()));
    }

    #[test]
    fn one_that_ends_without_a_word_has_its_status_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let mut launcher = ProcessLauncher::new("/bin/false".into(), path("socket"), path("log"));
        let spec =
            DataPlaneSpec { name: "main".into(), cpus: "".into(), channels: 1, poll_us_max: 0 };
        let problem = launcher.launch(&spec).err().unwrap().to_string();
        assert!(
            problem.starts_with("it ended at once (exit status: 1); its output is in "),
            "{problem}"
        );
    }
}
