//! QEMU's machine protocol, as far as the tests need it: one command, one answer, events passed over.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustix::process::Pid;
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

    /// QEMU's process.
    pub(crate) fn process(&self) -> Result<Pid> {
        let who = socket_peercred(self.stream.get_ref()).context("cannot ask who QEMU is")?;
        Ok(who.pid)
    }

    /// Descriptor chains that a queue's driver has made available and the device has not used, as the rings in the guest's memory say. Of a
    /// card with one pair of queues.
    pub(crate) fn outstanding(&mut self, path: &str, queue: u16) -> Result<u16> {
        let about = json!({ "path": path, "queue": queue });
        // The command without `vhost` asks the back end for a number, which stops the queue.
        let rings = self.execute("x-query-virtio-vhost-queue-status", about)?;
        let [available, used] = ["avail-phys", "used-phys"].map(|ring| {
            let address = rings[ring].as_u64().with_context(|| format!("no {ring}: {rings}"))?;
            self.word(address + 2)
        });
        Ok(available?.wrapping_sub(used?))
    }

    /// 16 bits of the guest's memory.
    fn word(&mut self, address: u64) -> Result<u16> {
        let line = json!({ "command-line": format!("xp /1hx {address:#x}") });
        let said = self.execute("human-monitor-command", line)?;
        let word = said.as_str().and_then(|said| said.trim().rsplit_once(": 0x"));
        word.and_then(|(_, word)| u16::from_str_radix(word, 16).ok())
            .with_context(|| format!("no word of memory: {said}"))
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
