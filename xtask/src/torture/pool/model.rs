//! What must be there, and how it is found out that it is not.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::Options;
use super::client::{Client, Ended, Kind};
use super::media::{Can, Medium};
use super::tally::Tally;
use crate::torture::kit::{Dice, folder};
use crate::torture::server::{Server, send};
use anyhow::{Context as _, Result, anyhow};

/// How long the server may take to be as it must: longer than any wait of its own.
pub(super) const PATIENCE: Duration = Duration::from_secs(100);
/// Failure groups of the mirrored pool, and tiers of the other.
pub(super) const SIDES: usize = 2;
/// PVs of each.
pub(super) const PVS: usize = 3;
/// PVs of one that is added to where it is full, at most.
const PVS_MAX: usize = 16;
/// The names of the failure groups.
const GROUPS: [&str; SIDES] = ["Default", "Mirror"];
/// Those of the tiers.
pub(super) const TIERS: [&str; SIDES] = ["SYSTEM", "fast"];

pub(super) struct Pv {
    pub(super) medium: Medium,
    /// Its failure group or tier.
    pub(super) side: usize,
    pub(super) away: bool,
    pub(super) leaving: bool,
    pub(super) slow: bool,
}

impl Pv {
    pub(super) fn new(medium: Medium, side: usize) -> Pv {
        Pv { medium, side, away: false, leaving: false, slow: false }
    }

    pub(super) fn path(&self) -> String {
        self.medium.path().display().to_string()
    }
}

pub(super) struct Pool {
    pub(super) name: &'static str,
    pub(super) mirrored: bool,
    /// Its LUs have checksums.
    pub(super) sums: bool,
    pub(super) pvs: Vec<Pv>,
    /// When it was last extended because writers waited.
    pub(super) extended: Option<Instant>,
}

pub(super) struct Lu {
    pub(super) pool: usize,
    pub(super) size_mib: u64,
    /// As large it was at first: nobody writes behind that.
    pub(super) first_mib: u64,
    /// What its part that is written whole holds, if that is known.
    pub(super) holds: Option<u64>,
    /// Nobody wrote to the other part.
    pub(super) fresh: bool,
    pub(super) clone: bool,
    /// The tier to which it went last.
    pub(super) tier: usize,
    pub(super) client: Option<Client>,
}

pub(super) struct Snapshot {
    pub(super) lu: u32,
    /// As large was the LU, and as large at first.
    pub(super) sizes_mib: [u64; 2],
    pub(super) holds: Option<u64>,
    pub(super) fresh: bool,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Done,
    /// For a reason that may be.
    Refused,
}

pub(super) struct World {
    pub(super) server: Server,
    pub(super) dice: Dice,
    pub(super) can: Can,
    verbose: bool,
    pub(super) sabotage: bool,
    pub(super) pools: Vec<Pool>,
    pub(super) lus: BTreeMap<u32, Lu>,
    pub(super) snapshots: BTreeMap<u32, Snapshot>,
    pub(super) last: u32,
    pub(super) tally: Tally,
    pub(super) steps: Vec<String>,
}

impl World {
    pub(super) fn new(binary: PathBuf, seed: u64, options: &Options) -> Result<World> {
        let mut server = Server::new(binary, folder()?);
        server.start()?;
        let mut world = World {
            server,
            dice: Dice::new(seed),
            can: Can::find(),
            verbose: options.verbose,
            sabotage: options.sabotage,
            pools: Vec::new(),
            lus: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            last: 0,
            tally: Tally::default(),
            steps: Vec::new(),
        };
        for (name, mirrored, sums) in
            [("one", false, false), ("two", true, false), ("sums", true, true)]
        {
            world.make_pool(name, mirrored, sums)?;
        }
        Ok(world)
    }

    pub(super) fn next(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// Says what was done.
    pub(super) fn done(&mut self, step: String) {
        if self.verbose {
            println!("{step}");
        }
        self.steps.push(step);
    }

    pub(super) fn seed(&mut self) -> u64 {
        self.dice.below(1 << 30) as u64
    }

    pub(super) fn log(&self) -> String {
        self.server.log()
    }

    /// Leaves nothing behind.
    pub(super) fn end(&mut self) {
        self.lus.values_mut().filter_map(|lu| lu.client.as_mut()).for_each(Client::kill);
        // A PV that is waited for holds up who ends.
        for pv in self.pools.iter_mut().flat_map(|pool| &mut pool.pvs).filter(|pv| pv.away) {
            let _ = pv.medium.away(false);
        }
        self.server.end();
        self.pools.clear();
        let _ = std::fs::remove_dir_all(&self.server.dir);
    }

    // Changes ---------------------------------------------------------------------------------------------------------

    pub(super) fn kill_data(&mut self) -> bool {
        let Some(pid) = self.server.dataplane() else { return false };
        send(pid, Signal::KILL);
        self.tally.kills[0] += 1;
        true
    }

    pub(super) fn kill_control(&mut self) -> Result<()> {
        self.server.kill();
        self.tally.kills[1] += 1;
        self.server.start()
    }

    /// Makes a change; now and then a process dies meanwhile. Whether it was done is then asked of `is_done`, and it is made again if not.
    pub(super) fn change(
        &mut self,
        words: &[&str],
        is_done: impl Fn(&Server) -> Option<bool>,
    ) -> Result<Change> {
        let harm = self.dice.below(8);
        let child = self.server.command(words).spawn().context("cannot run trunkline")?;
        match harm {
            0 | 1 => {
                self.dice.pause(150);
                self.kill_data();
            }
            2 => {
                self.dice.pause(100);
                self.kill_control()?;
            }
            _ => {}
        }
        let mut output = child.wait_with_output().context("trunkline")?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            // What a process that died was asked for may be done or not.
            match output.status.code() {
                Some(0 | 7) => return Ok(Change::Done),
                _ if is_done(&self.server) == Some(true) => return Ok(Change::Done),
                _ if may_be(&output) => {
                    self.tally.refused += 1;
                    self.done(format!("refused: `{}`: {}", words.join(" "), said(&output)));
                    return Ok(Change::Refused);
                }
                _ if Instant::now() < deadline && cannot_now(&output) => {}
                _ => {
                    let status = self.server.status();
                    let differs = status.and_then(|status| self.differs(&status));
                    let state = differs.unwrap_or_else(|| "all else is well".to_owned());
                    return Err(anyhow!("`{}`: {}; {state}", words.join(" "), said(&output)));
                }
            }
            self.collect()?;
            self.relieve()?;
            std::thread::sleep(Duration::from_millis(100));
            output = self.server.ask(words)?;
        }
    }

    /// … which a process that dies must not keep from being done.
    pub(super) fn must(
        &mut self,
        words: &[&str],
        is_done: impl Fn(&Server) -> Option<bool>,
    ) -> Result<()> {
        match self.change(words, is_done)? {
            Change::Done => Ok(()),
            Change::Refused => Err(anyhow!("`{}` was refused", words.join(" "))),
        }
    }

    // What is there ---------------------------------------------------------------------------------------------------

    /// Waits until the server is as the model says, and fails when it does not become so.
    pub(super) fn check(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.collect()?;
            self.relieve()?;
            self.purge()?;
            self.give_up_snapshots()?;
            let problem = match self.server.status() {
                Some(status) => self.differs(&status),
                None => Some("it does not answer".to_owned()),
            };
            match problem {
                None => return Ok(()),
                Some(problem) if Instant::now() > deadline => {
                    return Err(anyhow!("the server is not as it must be: {problem}"));
                }
                Some(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// What of a status is not as it must be.
    fn differs(&self, status: &Value) -> Option<String> {
        let plane = &status["dataplanes"][0];
        if plane["state"] != "running" {
            return Some(format!("the data plane is {}: {}", plane["state"], plane["reason"]));
        }
        let of = |kind: &str, name: &str| -> Value {
            let mut all = status[kind].as_array().into_iter().flatten();
            all.find(|object| object["name"] == name).cloned().unwrap_or_default()
        };
        for number in self.lus.keys() {
            let volume = of("volumes", &format!("v{number}"));
            if volume["state"] != "open" {
                return Some(format!("v{number} is {}: {}", volume["state"], volume["reason"]));
            }
        }
        for (number, view) in self.snapshots_shown() {
            if view["state"] != "made" {
                return Some(format!("s{number} is {}: {}", view["state"], view["reason"]));
            }
        }
        let pools = self.shown();
        for (pool, view) in self.pools.iter().zip(&pools) {
            let state = view["state"].as_str().unwrap_or("not shown");
            if state != "open" && !(pool.mirrored && state == "degraded") {
                return Some(format!("pool {} is {state}: {}", pool.name, view["reason"]));
            }
            if let Some(lu) = nobodys(view).next() {
                return Some(format!("LU {lu} of {} is nobody's", pool.name));
            }
        }
        None
    }

    /// How the pools stand, in their order.
    pub(super) fn shown(&self) -> Vec<Value> {
        let output = self.server.ask(&["pool", "list", "-o", "json"]).ok();
        let all: Option<Value> = output.and_then(|it| serde_json::from_slice(&it.stdout).ok());
        let all = all.unwrap_or_default();
        let of = |pool: &Pool| {
            let mut shown = all.as_array().into_iter().flatten();
            shown.find(|view| view["name"] == pool.name).cloned().unwrap_or_default()
        };
        self.pools.iter().map(of).collect()
    }

    /// A data plane that died while it made an LU may leave one that is nobody's. They go with what is in them.
    fn purge(&mut self) -> Result<()> {
        for (at, view) in self.shown().iter().enumerate() {
            for number in nobodys(view) {
                let words = ["lu", "purge", self.pools[at].name, &number.to_string()];
                let output = self.server.ask(&words)?;
                if output.status.success() {
                    self.tally.orphans += 1;
                } else if !cannot_now(&output) && !matches!(output.status.code(), Some(3 | 5)) {
                    return Err(anyhow!("`{}`: {}", words.join(" "), said(&output)));
                }
            }
        }
        Ok(())
    }

    /// A snapshot that was stored while no data plane ran, and for which there is no space now, is given up.
    fn give_up_snapshots(&mut self) -> Result<()> {
        for (number, view) in self.snapshots_shown() {
            let why = view["reason"].as_str().unwrap_or_default();
            if view["state"] == "made" || !no_space(why) {
                continue;
            }
            let output = self.server.ask(&["snapshot", "remove", &format!("s{number}")])?;
            if matches!(output.status.code(), Some(0 | 7)) {
                self.snapshots.remove(&number);
                self.tally.refused += 1;
                self.done(format!("give snapshot {number} up: {why}"));
            }
        }
        Ok(())
    }

    /// Those of the model, with how they stand.
    fn snapshots_shown(&self) -> Vec<(u32, Value)> {
        let output = self.server.ask(&["snapshot", "list", "-o", "json"]).ok();
        let all: Option<Value> = output.and_then(|it| serde_json::from_slice(&it.stdout).ok());
        let all = all.unwrap_or_default();
        let of = |number: &u32| {
            let mut shown = all.as_array().into_iter().flatten();
            let view = shown.find(|view| view["name"] == *format!("s{number}"));
            (*number, view.cloned().unwrap_or_default())
        };
        self.snapshots.keys().map(of).collect()
    }

    /// Clients that have come to their end have found their data.
    pub(super) fn collect(&mut self) -> Result<()> {
        for lu in self.lus.values_mut() {
            let Some(client) = &mut lu.client else { continue };
            let done = match client.ended()? {
                Ended::Not => continue,
                Ended::BeforeItBegan(why) => return Err(anyhow!("a client does not begin: {why}")),
                Ended::Well(done) => done,
            };
            if let Kind::Write { seed } = client.kind {
                lu.holds = Some(seed);
            }
            lu.client = None;
            self.tally.clients += 1;
            self.tally.first_writes += done.first_writes;
            self.tally.compared += done.compared;
            self.tally.deaths_seen += done.deaths;
        }
        Ok(())
    }

    /// A pool whose writers wait for space gets a PV, and its PVs that have left are gone.
    pub(super) fn relieve(&mut self) -> Result<()> {
        let views = self.shown();
        let wanting = self.pools_that_lack_space();
        for (at, view) in views.iter().enumerate() {
            let space = &view["space"];
            let Some(shown) = space["pvs"].as_array() else { continue };
            let there = |pv: &Pv| shown.iter().any(|one| one["path"] == *pv.path());
            self.pools[at].pvs.retain(|pv| !pv.leaving || there(pv));
            // Who waits goes on soon, once there is space.
            let just_now =
                self.pools[at].extended.is_some_and(|then| then.elapsed() < Duration::from_secs(1));
            let wants = space["paused"].as_u64().unwrap_or_default() > 0 || wanting.contains(&at);
            if !wants || just_now {
                continue;
            }
            for side in 0..SIDES {
                let pool = &self.pools[at];
                // Of tiers, those in which somebody waits.
                let paused = pool.tier(view, side)["paused"].as_u64() != Some(0);
                if !pool.mirrored && !paused && !wanting.contains(&at) {
                    continue;
                }
                let own = || pool.pvs.iter().filter(|pv| pv.side == side);
                if own().count() >= PVS_MAX {
                    return Err(anyhow!(
                        "pool {} has {PVS_MAX} PVs and is full: {space}",
                        pool.name
                    ));
                }
                // One after the other: the last one may have been added just now.
                if own().all(|pv| pv.leaving || pv.away || there(pv)) {
                    self.add_pv(at, side)?;
                }
            }
            self.pools[at].extended = Some(Instant::now());
            self.tally.full += 1;
        }
        Ok(())
    }

    /// Those of which an LU that was stored while no data plane ran has no space now.
    fn pools_that_lack_space(&self) -> Vec<usize> {
        let status = self.server.status().unwrap_or_default();
        let lacks = |(number, lu): (&u32, &Lu)| {
            let mut volumes = status["volumes"].as_array().into_iter().flatten();
            let volume = volumes.find(|volume| volume["name"] == *format!("v{number}"))?;
            let why = volume["reason"].as_str().unwrap_or_default();
            (volume["state"] != "open" && no_space(why)).then_some(lu.pool)
        };
        self.lus.iter().filter_map(lacks).collect()
    }

    /// Adds one, without harm: that is for `change`.
    pub(super) fn add_pv(&mut self, at: usize, side: usize) -> Result<()> {
        let number = self.next();
        let kind = self.dice.below(3);
        let medium = Medium::make(&self.server, self.can, number, kind)?;
        let path = medium.path().display().to_string();
        let name = self.pools[at].name;
        let words = [&["pv", "add", name, &path][..], &self.pools[at].belongs(side)].concat();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let output = self.server.ask(&words)?;
            match output.status.code() {
                Some(0 | 7) => break,
                _ if has_pv(&self.server, name, &path) == Some(true) => break,
                _ if self.call_back(at, &said(&output))? => {}
                _ if Instant::now() < deadline && cannot_now(&output) => {}
                _ => return Err(anyhow!("`{}`: {}", words.join(" "), said(&output))),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.pools[at].pvs.push(Pv::new(medium, side));
        self.tally.pvs[0] += 1;
        Ok(())
    }

    /// A removal that was stored while no data plane ran, and for which there is no room now, keeps its pool from being changed: it is called back.
    fn call_back(&mut self, at: usize, said: &str) -> Result<bool> {
        if !said.contains("has no room on the other PVs") {
            return Ok(false);
        }
        let pool = &self.pools[at];
        let called = |pv: &Pv| pv.leaving && said.contains(&pv.path());
        let Some(index) = pool.pvs.iter().position(called) else { return Ok(false) };
        let path = pool.pvs[index].path();
        let belongs = pool.belongs(pool.pvs[index].side);
        let words = [&["pv", "add", pool.name, &path][..], &belongs].concat();
        let output = self.server.ask(&words)?;
        if matches!(output.status.code(), Some(0 | 7)) {
            self.pools[at].pvs[index].leaving = false;
            self.tally.called_back += 1;
        } else if !cannot_now(&output) {
            return Err(anyhow!("`{}`: {}", words.join(" "), self::said(&output)));
        }
        Ok(true)
    }
}

/// The numbers of LUs that no volume is.
fn nobodys(view: &Value) -> impl Iterator<Item = u64> {
    let lus = view["space"]["lus"].as_array().into_iter().flatten();
    lus.filter(|lu| lu["volume"].is_null()).filter_map(|lu| lu["number"].as_u64())
}

impl Pool {
    /// The words that say in which failure group or tier a PV is to be.
    fn belongs(&self, side: usize) -> [&'static str; 2] {
        if self.mirrored { ["--failgrp", GROUPS[side]] } else { ["--tier", TIERS[side]] }
    }

    /// How that side of it is called.
    pub(super) fn side(&self, side: usize) -> &'static str {
        self.belongs(side)[1]
    }

    /// A tier, of how it stands.
    pub(super) fn tier<'a>(&self, view: &'a Value, side: usize) -> &'a Value {
        let mut tiers = view["space"]["tiers"].as_array().into_iter().flatten();
        tiers.find(|tier| tier["name"] == TIERS[side]).unwrap_or(&Value::Null)
    }

    /// Whether all of its LUs are in their tiers, but for those that cannot be for a reason that is told.
    pub(super) fn is_gathered(view: &Value) -> bool {
        let mut lus = view["space"]["lus"].as_array().into_iter().flatten();
        lus.all(|lu| lu["astray_bytes"].as_u64().unwrap_or(0) == 0) || !view["reason"].is_null()
    }

    /// Whether nothing of it is away or on its way.
    pub(super) fn is_whole(&self, view: &Value) -> bool {
        view["state"] == "open" && !self.pvs.iter().any(|pv| pv.away || pv.leaving)
    }
}

/// Whether a PV is one of a pool's.
pub(super) fn has_pv(server: &Server, pool: &str, path: &str) -> Option<bool> {
    let output = server.ask(&["pool", "show", pool, "-o", "json"]).ok()?;
    let view: Value = serde_json::from_slice(&output.stdout).ok()?;
    let view = view.as_array().and_then(|all| all.first()).unwrap_or(&view);
    let named = |name: &str| {
        let list = view["attributes"][name].as_str().unwrap_or_default();
        // A path alone, or behind the name of a tier.
        let is_it = |one: &str| one.strip_suffix(path).is_some_and(|tier| !tier.contains('/'));
        list.split(',').any(is_it)
    };
    view["attributes"].is_object().then(|| named("pvs") || named("mirror"))
}

/// Whether there is such an object.
pub(super) fn is_there(server: &Server, noun: &str, name: &str) -> Option<bool> {
    let output = server.ask(&[noun, "show", name]).ok()?;
    match output.status.code() {
        Some(0) => Some(true),
        Some(3) => Some(false),
        _ => None,
    }
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    format!("{}{} ({})", text(&output.stdout), text(&output.stderr), output.status)
}

/// A refusal that a pool in this state may give.
fn may_be(output: &Output) -> bool {
    let said = said(output);
    no_space(&said) || said.contains("shares what it holds with another LU")
}

/// Whether it is space that is wanting, by the words of the messages.
fn no_space(said: &str) -> bool {
    ["no space", "no room", "not so much"].iter().any(|part| said.contains(part))
}

/// Something that passes: a process that starts again, or that does something else first. A control plane that was just started may not know yet that a snapshot is made.
fn cannot_now(output: &Output) -> bool {
    matches!(output.status.code(), Some(1 | 4 | 6)) || said(output).contains("not made yet")
}
