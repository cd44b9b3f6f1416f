//! Clients in user space: `trunkline bench run --verify`, which waits for a server that comes again. Several kinds of them, by what they know and leave behind.

use std::fs::File;
use std::path::PathBuf;

use serde_json::Value;

use crate::torture::kit;
use crate::torture::server::Server;
use anyhow::{Context as _, Result, anyhow};

const MIB: u64 = 1 << 20;
/// The part of an LU that is written once, whole: over the border of two chunks.
const WHOLE: (u64, u64) = (32 * MIB, 64 * MIB);
/// The part that is written and read at random, over the next border.
const RANDOM: (u64, u64) = (112 * MIB, 32 * MIB);
/// How long a client waits for its server, and for an answer. A pool that is full gets space before that.
const PATIENCE: &str = "100s";

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Writes one part whole, which holds what follows from the seed when it is done.
    Write { seed: u64 },
    /// Reads that part, which must hold that.
    Compare { seed: u64 },
    /// Writes and reads the other part at random, for so many seconds; it begins as zeros if nobody wrote there.
    Random { seed: u64, seconds: usize, fresh: bool },
    /// Reads that part once, which is zeros.
    Zeros { offset_mib: u64, mib: u64 },
    /// Writes so many blocks anywhere, which begins as zeros.
    Flood { seed: u64, blocks: usize },
}

/// How a client stands.
#[derive(Debug)]
pub(super) enum Ended {
    Not,
    /// It found nobody to begin with.
    BeforeItBegan(String),
    Well(Done),
}

/// What a client that has ended did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    /// Blocks that were the first writes to where they are, as far as that is known.
    pub(super) first_writes: u64,
    pub(super) compared: u64,
    /// Servers that died under it.
    pub(super) deaths: u64,
}

pub(super) struct Client {
    process: kit::Client,
    pub(super) kind: Kind,
    adapter: String,
    report: PathBuf,
}

/// Bytes of a request: another one for other seeds.
fn block(seed: u64) -> u64 {
    [16, 64, 256][(seed % 3) as usize] << 10
}

impl Client {
    pub(super) fn start(server: &Server, adapter: &str, kind: Kind) -> Result<Client> {
        let socket = server.path(&format!("{adapter}.sock")).display().to_string();
        let mut words: Vec<String> =
            ["bench", "run", &socket, "--verify"].map(str::to_owned).into();
        let mut say = |text: String| words.extend(text.split(' ').map(str::to_owned));
        let part = |(offset, length): (u64, u64)| format!("--offset {offset} --length {length}");
        match kind {
            Kind::Write { seed } | Kind::Compare { seed } => {
                let size = block(seed);
                say(part(WHOLE));
                say(format!("--size {size} --seed {seed} --order sequential --depth 4"));
                say(format!("--operations {} --time 1000s", WHOLE.1 / size));
                say(match kind {
                    // No flush: what was answered is there.
                    Kind::Write { .. } => "--mix 0".to_owned(),
                    _ => "--mix 100 --holds written".to_owned(),
                });
            }
            Kind::Random { seed, seconds, fresh } => {
                say(part(RANDOM));
                say(format!("--mix 50 --depth 8 --queues 2 --seed {seed} --time {seconds}s"));
                say("--flush-every 50".to_owned());
                say(format!("--holds {}", if fresh { "zeros" } else { "anything" }));
            }
            Kind::Zeros { offset_mib, mib } => {
                say(part((offset_mib * MIB, mib * MIB)));
                say("--mix 100 --size 65536 --order sequential --depth 4 --holds zeros".to_owned());
                say(format!("--operations {} --time 1000s", mib * MIB / 65536));
            }
            Kind::Flood { seed, blocks } => {
                say(format!("--mix 0 --size 65536 --depth 4 --seed {seed} --operations {blocks}"));
                say("--time 1000s --holds zeros".to_owned());
            }
        }
        say(format!(
            "--timeout {PATIENCE} --reconnect {PATIENCE} --stuck-after {PATIENCE} -o json"
        ));
        let report = server.path(&format!("{adapter}.report"));
        let out = File::create(&report).context("cannot make a file")?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let process = kit::Client::start(server.command(&words).stdout(out))?;
        Ok(Client { process, kind, adapter: adapter.to_owned(), report })
    }

    /// Whether it has ended, which it may only with all data as it must be.
    pub(super) fn ended(&mut self) -> Result<Ended> {
        let Some(status) = self.process.ended()? else { return Ok(Ended::Not) };
        let text = std::fs::read_to_string(&self.report).unwrap_or_default();
        let Ok(report) = serde_json::from_str::<Value>(&text) else {
            return Ok(Ended::BeforeItBegan(self.process.words()));
        };
        if !status.success() || report["verify"]["blocks_corrupt"] != 0 {
            let (kind, failures) = (self.kind, &report["failures"]);
            return Err(anyhow!("the client of {} ({kind:?}): {status}: {failures}", self.adapter));
        }
        let operations = || report["operations"].as_u64().unwrap_or_default();
        Ok(Ended::Well(Done {
            first_writes: match self.kind {
                Kind::Write { .. } | Kind::Flood { .. } => operations(),
                _ => 0,
            },
            compared: report["verify"]["blocks_checked"].as_u64().unwrap_or_default(),
            deaths: report["restarts"].as_array().map_or(0, |all| all.len() as u64),
        }))
    }

    /// Goes away without a word.
    pub(super) fn kill(&mut self) {
        self.process.kill();
    }
}
