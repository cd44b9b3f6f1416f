//! The two processes under torture, and commands to them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::kit::quiet;
use anyhow::{Context as _, Result, anyhow};

/// How long the server may take to be as it must: longer than any wait of its own.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

/// The exit status of a change that is stored, and carried out when its data plane runs.
const WAITING: i32 = 7;

pub(super) struct Server {
    pub(super) dir: PathBuf,
    binary: PathBuf,
    child: Option<Child>,
}

impl Server {
    pub(super) fn new(binary: PathBuf, dir: PathBuf) -> Server {
        Server { dir, binary, child: None }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A command line for the server.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.env("TRUNKLINE_DIR", &self.dir).env_remove("JOURNAL_STREAM").args(words);
        quiet(&mut command);
        command
    }

    pub(super) fn ask(&self, words: &[&str]) -> Result<Output> {
        self.command(words).output().context("cannot run trunkline")
    }

    /// A command that must succeed. A change may have to wait for a data plane that was just killed.
    pub(super) fn must(&self, words: &[&str]) -> Result<String> {
        let output = self.ask(words)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let why = String::from_utf8_lossy(&output.stderr);
        if output.status.success() || output.status.code() == Some(WAITING) {
            return Ok(text);
        }
        Err(anyhow!("`{}` was refused: {text}{why}", words.join(" ")))
    }

    /// Whether a command is refused.
    pub(super) fn refuses(&self, words: &[&str]) -> Result<bool> {
        let output = self.ask(words)?;
        Ok(!output.status.success() && output.status.code() != Some(WAITING))
    }

    /// A command that must not be carried out; whether it was stored for a data plane that does not run.
    pub(super) fn refused_or_stored(&self, words: &[&str]) -> Result<bool> {
        let output = self.ask(words)?;
        match output.status.success() {
            true => Err(anyhow!("`{}` was carried out", words.join(" "))),
            false => Ok(output.status.code() == Some(WAITING)),
        }
    }

    /// A command that must be refused.
    pub(super) fn refused(&self, words: &[&str]) -> Result<()> {
        match self.refuses(words)? {
            true => Ok(()),
            false => Err(anyhow!("`{}` was carried out", words.join(" "))),
        }
    }

    pub(super) fn status(&self) -> Option<Value> {
        let output = self.ask(&["status", "-o", "json"]).ok()?;
        serde_json::from_slice(&output.stdout).ok()
    }

    /// Whether an adapter has a client whose driver works.
    pub(super) fn is_running(&self, adapter: &str) -> bool {
        self.status().is_some_and(|status| {
            let mut all = status["adapters"].as_array().into_iter().flatten();
            all.any(|it| it["name"] == *adapter && it["state"] == "running")
        })
    }

    /// Starts the control plane and waits until it answers.
    pub(super) fn start(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.path("serve.log"));
        let log = log.context("cannot open the log")?;
        let mut command = self.command(&["serve"]);
        command.stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().context("cannot start the server")?);
        let deadline = Instant::now() + PATIENCE;
        while self.status().is_none() {
            if let Some(Ok(Some(status))) = self.child.as_mut().map(Child::try_wait) {
                return Err(anyhow!("the server ended: {status}"));
            }
            if Instant::now() > deadline {
                return Err(anyhow!("the server does not answer"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Kills the control plane.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(child) = &self.child {
            send(child.id(), signal);
        }
    }

    /// The data plane's process.
    pub(super) fn dataplane(&self) -> Option<u32> {
        let status = self.status()?;
        u32::try_from(status["dataplanes"][0]["pid"].as_u64()?).ok()
    }

    /// Ends both.
    pub(super) fn end(&mut self) {
        if self.child.is_none() {
            let _ = self.start();
        }
        let dataplane = self.dataplane();
        let _ = self.ask(&["stop", "--with-dataplanes"]);
        let deadline = Instant::now() + Duration::from_secs(20);
        while Instant::now() < deadline
            && matches!(self.child.as_mut().map(Child::try_wait), Some(Ok(None)))
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.kill();
        if let Some(pid) = dataplane.filter(|pid| is_ours(*pid, &self.dir)) {
            send(pid, Signal::KILL);
        }
    }

    pub(super) fn log(&self) -> String {
        let text = std::fs::read_to_string(self.path("serve.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().rev().take(40).collect();
        format!("log:\n{}", lines.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }
}

/// Whether a process is one of this folder's.
fn is_ours(pid: u32, dir: &Path) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).contains(&*dir.to_string_lossy())
}

pub(super) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended.
        let _ = kill_process(pid, signal);
    }
}
