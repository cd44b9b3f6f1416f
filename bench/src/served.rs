//! The server of this repository with its control plane, asked by its own command line.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, anyhow, ensure};
use serde_json::Value;

use crate::process::{self, Process};
use crate::stage::Seat;

/// A server and its data plane, which end with it.
pub(crate) struct Server {
    program: PathBuf,
    folder: PathBuf,
    cpus: Vec<usize>,
    process: Option<Process>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // If it does not answer, there is nobody to say it to.
        let _ = self.ask(&["stop", "--with-dataplanes"]);
    }
}

impl Server {
    /// Starts it on these CPUs, with its state in `folder`, until it answers.
    pub(crate) fn start(program: &Path, folder: &Path, cpus: &[usize]) -> Result<Server> {
        let (program, folder) = (program.to_owned(), folder.to_owned());
        let mut server = Server { program, folder, cpus: cpus.to_vec(), process: None };
        server.start_again()?;
        Ok(server)
    }

    /// The same, when it was stopped.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        let mut command = self.of_folder(process::on_cpus(&self.cpus, &self.program));
        command.arg("serve");
        let mut process = Process::start(command, "serve", &self.folder)?;
        process.wait_until(&self.folder, || self.ask(&["dataplane", "list"]).is_ok())?;
        self.process = Some(process);
        Ok(())
    }

    /// Stops it, and leaves its data plane alone.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.ask(&["stop"])?;
        self.process = None;
        Ok(())
    }

    fn of_folder(&self, mut command: Command) -> Command {
        command.current_dir(&self.folder).env("TRUNKLINE_DIR", &self.folder);
        command
    }

    /// What a command prints.
    pub(crate) fn ask(&self, words: &[&str]) -> Result<String> {
        let output = self
            .of_folder(Command::new(&self.program))
            .args(words)
            .output()
            .context("cannot run trunkline")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "trunkline {}: {said}", words.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What the API says of an object, without a process for it: for those who ask often while something is measured.
    pub(crate) fn look(&self, path: &str) -> Result<Value> {
        let socket = self.folder.join("trunkline.sock");
        let mut stream = UnixStream::connect(&socket).context("cannot reach the API")?;
        write!(stream, "GET /v1/{path} HTTP/1.1\r\nHost: trunkline\r\nConnection: close\r\n\r\n")
            .context("cannot ask the API")?;
        let mut said = String::new();
        stream.read_to_string(&mut said).context("the API does not answer")?;
        let body = said.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        serde_json::from_str(body).with_context(|| format!("the API says of {path}: {said}"))
    }

    /// A block adapter on a volume, with the settings that users get.
    pub(crate) fn seat(&self, adapter: &str, volume: &str, about: &str) -> Result<Seat> {
        self.ask(&["adapter", "create", adapter, "--volume", volume])?;
        self.ask(&["adapter", "wait", adapter, "--for", "listening"])?;
        let asked = |words: &[&str]| -> Result<Value> {
            serde_json::from_str(&self.ask(words)?).context("what trunkline prints")
        };
        let adapter = asked(&["adapter", "show", adapter, "-o", "json"])?;
        let planes = asked(&["dataplane", "list", "-o", "json"])?;
        let missing = || anyhow!("no socket or data plane in {adapter} and {planes}");
        let socket = adapter["socket"].as_str().ok_or_else(missing)?;
        let pid = planes[0]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        Ok(Seat::new(socket.into(), pid.ok_or_else(missing)?, about.to_owned()))
    }
}
