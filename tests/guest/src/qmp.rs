//! QEMU's machine protocol, as far as the tests need it: one command, one answer, events passed over.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use anyhow::{Context as _, Result, anyhow};

/// How long QEMU may take to listen, and to answer.
const LIMIT: Duration = Duration::from_secs(60);

/// A monitor connection.
pub(crate) struct Qmp {
    stream: BufReader<UnixStream>,
}

impl Qmp {
    /// Connects, as soon as QEMU listens, and leaves the negotiation mode.
    pub(crate) fn connect(socket: &Path) -> Result<Qmp> {
        let deadline = Instant::now() + LIMIT;
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                // QEMU opens its sockets one after the other.
                Err(_) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(error) => return Err(error).context("cannot connect to QEMU's monitor"),
            }
        };
        stream.set_read_timeout(Some(LIMIT)).context("cannot set a time limit")?;
        let mut qmp = Qmp { stream: BufReader::new(stream) };
        qmp.read()?;
        qmp.execute("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Runs a command and returns its `return` value.
    pub(crate) fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let mut request = json!({ "execute": command });
        if arguments.as_object().is_some_and(|object| !object.is_empty()) {
            request["arguments"] = arguments;
        }
        writeln!(self.stream.get_mut(), "{request}").context("cannot write to QEMU's monitor")?;
        loop {
            let mut answer = self.read()?;
            if let Some(error) = answer.get("error") {
                return Err(anyhow!("QEMU refused {command}: {error}"));
            }
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
    }

    fn read(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.stream.read_line(&mut line).context("no answer from QEMU's monitor")?;
        serde_json::from_str(&line).context("QEMU's monitor does not speak JSON")
    }
}
