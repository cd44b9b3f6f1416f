//! A client in user space: `trunkline bench --verify`, which writes, reads and compares, and waits for a server that comes again.

use crate::torture::kit;
use crate::torture::server::Server;
use anyhow::{Result, anyhow};

/// How long a client waits for its server.
const RECONNECT: &str = "80s";

pub(super) struct Client {
    process: kit::Client,
    socket: String,
}

impl Client {
    /// Connects to an adapter and loads it for so many seconds.
    pub(super) fn start(
        server: &Server,
        adapter: &str,
        seconds: usize,
        seed: u64,
    ) -> Result<Client> {
        let socket = server.path(&format!("{adapter}.sock")).display().to_string();
        let (time, seed) = (format!("{seconds}s"), seed.to_string());
        let mut command = server.command(&["bench", &socket, "--verify", "--mix", "50"]);
        command.args(["--depth", "4", "--time", &time, "--seed", &seed, "--timeout", "80s"]);
        command.args(["--reconnect", RECONNECT, "--stuck-after", RECONNECT, "-o", "json"]);
        Ok(Client { process: kit::Client::start(&mut command)?, socket })
    }

    /// Whether it has ended, which it may only with all data as it was written.
    pub(super) fn ended(&mut self) -> Result<bool> {
        let Some(status) = self.process.ended()? else { return Ok(false) };
        if status.success() {
            return Ok(true);
        }
        let words = self.process.words();
        Err(anyhow!("the client of {}: {status}: {words}", self.socket))
    }

    /// Goes away without a word.
    pub(super) fn kill(&mut self) {
        self.process.kill();
    }
}
