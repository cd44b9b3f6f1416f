//! What must be there and who must have it, and the steps that try to spoil it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use serde_json::Value;

use super::client::Client;
use crate::torture::kit::{Dice, folder, quiet};
use crate::torture::server::{PATIENCE, Server, send};
use anyhow::{Context as _, Result, anyhow};

/// How a failure begins whose cause is that something is not there that must be, or the other way round.
pub(super) const LOST: &str = "the server is not as it must be";
/// Most disks at a time.
const DISKS_MAX: usize = 8;
/// How long a client that has done its last request may take to end.
const GOING: Duration = Duration::from_secs(10);
/// Size of a disk. Clients write all of it and read it back.
const SIZE: &str = "4MiB";

/// A volume and the adapter on it.
struct Disk {
    ram: bool,
    client: Option<Client>,
    /// Its file is not to be had now.
    trouble: bool,
}

pub(super) struct World {
    server: Server,
    disks: BTreeMap<u32, Disk>,
    dice: Dice,
    sabotage: bool,
    /// A file system of a few blocks, if this process may mount one.
    small: Option<PathBuf>,
    last: u32,
    clients: u32,
    verified: u32,
    pub(super) steps: Vec<String>,
}

/// What is done, and how often of a hundred times.
type Step = fn(&mut World) -> Result<Option<String>>;
const STEPS: &[(usize, Step)] = &[
    (14, World::create),
    (6, World::remove),
    (6, World::remove_from_a_client),
    (14, World::attach),
    (10, World::apply_a_part),
    (6, World::prune),
    (4, World::apply_nothing),
    (8, World::kill_the_control_plane),
    (8, World::kill_the_data_plane),
    (5, World::stop_the_data_plane),
    (4, World::stop_the_control_plane),
    (6, World::kill_during_a_change),
    (5, World::kill_the_caller),
    (4, World::locked_file),
    (4, World::missing_file),
    (3, World::full_and_read_only),
];

impl World {
    pub(super) fn new(binary: PathBuf, seed: u64, sabotage: bool) -> Result<World> {
        let mut server = Server::new(binary, folder()?);
        server.start()?;
        let small = server.path("small");
        std::fs::create_dir(&small).context("cannot make a folder")?;
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2M", "none"]).arg(&small);
        let mounted = quiet(&mut mount).status().is_ok_and(|status| status.success());
        if !mounted {
            println!("no full and no read-only file systems: mounting needs root");
        }
        Ok(World {
            server,
            disks: BTreeMap::new(),
            dice: Dice::new(seed),
            sabotage,
            small: mounted.then_some(small),
            last: 0,
            clients: 0,
            verified: 0,
            steps: Vec::new(),
        })
    }

    /// Steps until the time is over, then all clients to their end.
    pub(super) fn run(&mut self, until: Instant) -> Result<()> {
        while Instant::now() < until {
            if let Some(what) = self.dice.weighted(STEPS)(self)? {
                self.steps.push(what);
                self.check()?;
            }
        }
        let deadline = Instant::now() + PATIENCE;
        while self.disks.values().any(|disk| disk.client.is_some()) {
            self.check()?;
            if Instant::now() > deadline {
                return Err(anyhow!("a client does not come to its end"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    pub(super) fn tally(&self) -> String {
        format!("{} clients compared all that they wrote", self.verified)
    }

    pub(super) fn log(&self) -> String {
        self.server.log()
    }

    /// Leaves nothing behind.
    pub(super) fn end(&mut self) {
        self.disks.values_mut().filter_map(|disk| disk.client.as_mut()).for_each(Client::kill);
        // Memory of RAM volumes lies outside of the folder, and is given back when they are removed.
        let _ = self.server.ask(&["apply", "-", "--prune", "--force"]);
        self.server.end();
        if let Some(small) = &self.small {
            let _ = quiet(std::process::Command::new("umount").arg("-l").arg(small)).status();
        }
        let _ = std::fs::remove_dir_all(&self.server.dir);
    }

    // What is there ---------------------------------------------------------------------------------------------------

    /// The tables of disks in a configuration.
    fn tables(&self, numbers: impl IntoIterator<Item = u32>) -> String {
        let table = |number: u32| {
            let ram = self.disks.get(&number).is_some_and(|disk| disk.ram);
            let volume = if ram {
                format!("[volume.v{number}]\nkind = \"ram\"\nsize = \"{SIZE}\"\n")
            } else {
                let path = self.file(number);
                format!(
                    "[volume.v{number}]\nkind = \"file\"\npath = \"{}\"\ncreate = true\nsize = \"{SIZE}\"\n",
                    path.display()
                )
            };
            format!("{volume}[adapter.a{number}]\nvolume = \"v{number}\"\n")
        };
        numbers.into_iter().map(table).collect()
    }

    fn file(&self, number: u32) -> PathBuf {
        self.server.path(&format!("v{number}.img"))
    }

    fn write_config(&self, numbers: impl IntoIterator<Item = u32>) -> Result<String> {
        let path = self.server.path("t.toml");
        std::fs::write(&path, self.tables(numbers)).context("cannot write a configuration")?;
        Ok(path.display().to_string())
    }

    /// A disk by chance of those that are so.
    fn some(&mut self, so: impl Fn(&Disk) -> bool) -> Option<u32> {
        let fit = self.disks.iter().filter(|(_, disk)| so(disk));
        self.dice.one_of(fit.map(|(number, _)| *number))
    }

    fn add(&mut self, number: u32, ram: bool) {
        self.disks.insert(number, Disk { ram, client: None, trouble: false });
    }

    fn next(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    /// Waits until the server is as the model says, and fails when it does not become so.
    fn check(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.collect()?;
            let problem = match self.server.status() {
                Some(status) => self.differs(&status),
                None => Some("it does not answer".to_owned()),
            };
            match problem {
                None => return Ok(()),
                Some(problem) if Instant::now() > deadline || is_final(&problem) => {
                    return Err(anyhow!("{LOST}: {problem}"));
                }
                Some(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Clients that have come to their end have found their data.
    fn collect(&mut self) -> Result<()> {
        for disk in self.disks.values_mut() {
            if let Some(client) = &mut disk.client
                && client.ended()?
            {
                disk.client = None;
                self.verified += 1;
            }
        }
        Ok(())
    }

    /// What of a status is not as it must be.
    fn differs(&self, status: &Value) -> Option<String> {
        let names = |objects: &Value| -> BTreeSet<String> {
            let all = objects.as_array().into_iter().flatten();
            all.filter_map(|object| object["name"].as_str().map(str::to_owned)).collect()
        };
        let numbered = |letter: char| -> BTreeSet<String> {
            self.disks.keys().map(|number| format!("{letter}{number}")).collect()
        };
        for (kind, wanted) in [("volumes", numbered('v')), ("adapters", numbered('a'))] {
            let there = names(&status[kind]);
            if there != wanted {
                let (lost, more) = (wanted.difference(&there), there.difference(&wanted));
                let (lost, more): (Vec<_>, Vec<_>) = (lost.collect(), more.collect());
                return Some(format!("{kind} {FINAL}: {lost:?} are gone, {more:?} are too many"));
            }
        }
        let plane = &status["dataplanes"][0];
        if plane["state"] != "running" {
            return Some(format!("the data plane is {}: {}", plane["state"], plane["reason"]));
        }
        let of = |kind: &str, name: &str| -> Value {
            let mut all = status[kind].as_array().into_iter().flatten();
            all.find(|object| object["name"] == name).cloned().unwrap_or_default()
        };
        for (number, disk) in &self.disks {
            let volume = of("volumes", &format!("v{number}"));
            if (volume["state"] == "open") == disk.trouble {
                return Some(format!("v{number} is {}: {}", volume["state"], volume["reason"]));
            }
            let adapter = of("adapters", &format!("a{number}"));
            let good: &[&str] = match (&disk.client, disk.trouble) {
                // One that has just come to its end may have gone.
                (Some(_), _) => &["running", "connected", "listening"],
                (None, true) => &["failed", "pending", "listening"],
                (None, false) => &["listening"],
            };
            if !good.iter().any(|state| adapter["state"] == *state) {
                return Some(format!("a{number} is {}: {}", adapter["state"], adapter["reason"]));
            }
        }
        None
    }

    // Steps -----------------------------------------------------------------------------------------------------------

    fn create(&mut self) -> Result<Option<String>> {
        if self.disks.len() >= DISKS_MAX {
            return Ok(None);
        }
        let (number, ram) = (self.next(), self.dice.below(2) == 0);
        let (volume, adapter) = (format!("v{number}"), format!("a{number}"));
        let path = self.file(number).display().to_string();
        let mut words = vec!["volume", "create", &volume, "--size", SIZE, "--kind"];
        words.extend(if ram { vec!["ram"] } else { vec!["file", "--path", &path, "--create"] });
        self.server.must(&words)?;
        self.server.must(&["adapter", "create", &adapter, "--volume", &volume])?;
        self.add(number, ram);
        Ok(Some(format!("create {number}")))
    }

    fn remove(&mut self) -> Result<Option<String>> {
        let Some(number) = self.some(|disk| disk.client.is_none()) else { return Ok(None) };
        self.server.must(&["adapter", "remove", &format!("a{number}")])?;
        self.server.must(&["volume", "remove", &format!("v{number}")])?;
        self.disks.remove(&number);
        Ok(Some(format!("remove {number}")))
    }

    /// Refused as long as the client is there.
    fn remove_from_a_client(&mut self) -> Result<Option<String>> {
        let Some(number) = self.with_client()? else { return Ok(None) };
        if self.server.refuses(&["adapter", "remove", &format!("a{number}")])? {
            return Ok(Some(format!("remove {number} from its client: refused")));
        }
        self.had_gone(number)?;
        self.server.must(&["volume", "remove", &format!("v{number}")])?;
        self.disks.remove(&number);
        Ok(Some(format!("remove {number}, whose client had just gone")))
    }

    /// What was not refused is right if the client had come to its end just then, with its data as it must be.
    fn had_gone(&mut self, number: u32) -> Result<()> {
        let deadline = Instant::now() + GOING;
        let client = self.disks.get_mut(&number).and_then(|disk| disk.client.as_mut());
        let Some(client) = client else { return Ok(()) };
        while !client.ended()? {
            if Instant::now() > deadline {
                return Err(anyhow!("{LOST}: a{number} was taken from its client"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.verified += 1;
        Ok(())
    }

    /// A disk whose client is there and goes on for a while.
    fn with_client(&mut self) -> Result<Option<u32>> {
        self.collect()?;
        let Some(number) = self.some(|disk| disk.client.is_some()) else { return Ok(None) };
        Ok(self.server.is_running(&format!("a{number}")).then_some(number))
    }

    fn attach(&mut self) -> Result<Option<String>> {
        let free = |disk: &Disk| disk.client.is_none() && !disk.trouble;
        let Some(number) = self.some(free) else { return Ok(None) };
        let seconds = 5 + self.dice.below(20);
        let name = format!("a{number}");
        let deadline = Instant::now() + PATIENCE;
        // A data plane that was just killed has no place for a new client; one that it had waits for the next.
        loop {
            self.clients += 1;
            let mut client = Client::start(&self.server, &name, seconds, self.clients.into())?;
            while client.ended().is_ok_and(|ended| !ended) {
                if self.server.is_running(&name) {
                    if let Some(disk) = self.disks.get_mut(&number) {
                        disk.client = Some(client);
                    }
                    return Ok(Some(format!("client of {number} for {seconds} s")));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            if Instant::now() > deadline {
                return Err(anyhow!("{name} takes no client"));
            }
        }
    }

    /// What a configuration does not name stays.
    fn apply_a_part(&mut self) -> Result<Option<String>> {
        let Some(number) = self.some(|_| true) else { return Ok(None) };
        let config = self.write_config([number])?;
        let mut words = vec!["apply", &config];
        if self.sabotage {
            words.extend(["--prune", "--force"]);
        }
        self.server.must(&words)?;
        Ok(Some(format!("apply {number} alone")))
    }

    /// What a configuration does not name goes, unless a client has it.
    fn prune(&mut self) -> Result<Option<String>> {
        if let Some(number) = self.with_client()? {
            let others = self.disks.keys().copied().filter(|other| *other != number);
            let config = self.write_config(others.collect::<Vec<_>>())?;
            if self.disks.len() > 1 {
                if self.server.refuses(&["apply", &config, "--prune"])? {
                    return Ok(Some(format!("prune {number} from its client: refused")));
                }
                self.had_gone(number)?;
                self.disks.remove(&number);
                return Ok(Some(format!("prune {number}, whose client had just gone")));
            }
        }
        let Some(number) = self.some(|disk| disk.client.is_none()) else { return Ok(None) };
        let others: Vec<u32> = self.disks.keys().copied().filter(|n| *n != number).collect();
        if others.is_empty() {
            return Ok(None);
        }
        let config = self.write_config(others)?;
        self.server.must(&["apply", &config, "--prune"])?;
        self.disks.remove(&number);
        Ok(Some(format!("prune {number}")))
    }

    fn apply_nothing(&mut self) -> Result<Option<String>> {
        // Its input is empty.
        self.server.refused(&["apply", "-"])?;
        self.server.refused(&["apply", "-", "--prune"])?;
        Ok(Some("apply nothing: refused".to_owned()))
    }

    fn kill_the_control_plane(&mut self) -> Result<Option<String>> {
        self.server.kill();
        self.dice.pause(500);
        self.server.start()?;
        Ok(Some("kill the control plane".to_owned()))
    }

    fn kill_the_data_plane(&mut self) -> Result<Option<String>> {
        let Some(pid) = self.server.dataplane() else { return Ok(None) };
        send(pid, Signal::KILL);
        Ok(Some(format!("kill the data plane ({pid})")))
    }

    fn stop_the_data_plane(&mut self) -> Result<Option<String>> {
        let Some(pid) = self.server.dataplane() else { return Ok(None) };
        send(pid, Signal::STOP);
        self.dice.pause(3000);
        // Who only reads is answered.
        let answered = self.server.status().is_some();
        send(pid, Signal::CONT);
        if !answered {
            return Err(anyhow!("no status while the data plane is stopped"));
        }
        Ok(Some("stop the data plane".to_owned()))
    }

    fn stop_the_control_plane(&mut self) -> Result<Option<String>> {
        self.server.signal(Signal::STOP);
        self.dice.pause(1500);
        self.server.signal(Signal::CONT);
        Ok(Some("stop the control plane".to_owned()))
    }

    /// Before or after: there is nothing between.
    fn kill_during_a_change(&mut self) -> Result<Option<String>> {
        if self.disks.len() >= DISKS_MAX {
            return Ok(None);
        }
        let ([number, other], mut apply) = self.begin_a_change()?;
        self.dice.pause(60);
        self.server.kill();
        let _ = apply.wait();
        self.server.start()?;
        let done = self.settle([number, other])?;
        Ok(Some(format!("kill during the creation of {number}, {other}: {done}")))
    }

    /// A change goes to its end whoever listens.
    fn kill_the_caller(&mut self) -> Result<Option<String>> {
        if self.disks.len() >= DISKS_MAX {
            return Ok(None);
        }
        let ([number, other], mut apply) = self.begin_a_change()?;
        self.dice.pause(40);
        let _ = apply.kill();
        let _ = apply.wait();
        // One that was begun holds up the next one.
        self.server.must(&["apply", &self.write_config([])?, "--force"])?;
        let done = self.settle([number, other])?;
        Ok(Some(format!("kill the caller that makes {number}, {other}: {done}")))
    }

    /// Begins to make two disks with one file.
    fn begin_a_change(&mut self) -> Result<([u32; 2], Child)> {
        let numbers = [self.next(), self.next()];
        let config = self.write_config(numbers)?;
        let mut apply = self.server.command(&["apply", &config]);
        Ok((numbers, apply.spawn().context("cannot run trunkline")?))
    }

    /// Both new disks are there, or neither.
    fn settle(&mut self, numbers: [u32; 2]) -> Result<&'static str> {
        let text = self.server.must(&["export"])?;
        let there = numbers.map(|number| {
            [format!("[volume.v{number}]"), format!("[adapter.a{number}]")]
                .map(|table| text.contains(&table))
        });
        match there {
            [[true, true], [true, true]] => {
                numbers.into_iter().for_each(|number| self.add(number, false));
                Ok("done")
            }
            [[false, false], [false, false]] => Ok("not done"),
            mixed => Err(anyhow!("{LOST}: {numbers:?} are there in part: {mixed:?}")),
        }
    }

    /// A volume whose file somebody has delays nobody else.
    fn locked_file(&mut self) -> Result<Option<String>> {
        if self.disks.len() >= DISKS_MAX {
            return Ok(None);
        }
        let number = self.next();
        let file = File::create(self.file(number)).context("cannot make a file")?;
        file.set_len(4 << 20).context("cannot make a file")?;
        flock(&file, FlockOperation::LockExclusive).context("cannot lock a file")?;
        self.add(number, false);
        let config = self.write_config([number])?;
        // What cannot be opened is kept, and said.
        let _ = self.server.ask(&["apply", &config])?;
        self.trouble(number, true);
        self.check()?;
        drop(file);
        self.trouble(number, false);
        Ok(Some(format!("{number} on a locked file")))
    }

    /// A volume whose file is gone is failed, and no empty disk.
    fn missing_file(&mut self) -> Result<Option<String>> {
        let free = |disk: &Disk| disk.client.is_none() && !disk.ram;
        let Some(number) = self.some(free) else { return Ok(None) };
        let (file, away) = (self.file(number), self.server.path("away"));
        let Some(pid) = self.server.dataplane() else { return Ok(None) };
        std::fs::rename(&file, &away).context("cannot move a file")?;
        send(pid, Signal::KILL);
        self.trouble(number, true);
        self.check()?;
        if file.exists() {
            return Err(anyhow!("v{number}: another file was made"));
        }
        std::fs::rename(&away, &file).context("cannot move a file")?;
        self.trouble(number, false);
        // What an earlier attempt left undone is tried at once.
        self.server.must(&["apply", &self.write_config([number])?])?;
        Ok(Some(format!("the file of {number} was away")))
    }

    fn trouble(&mut self, number: u32, trouble: bool) {
        if let Some(disk) = self.disks.get_mut(&number) {
            disk.trouble = trouble;
        }
    }

    /// What has no room, or may not be written, is refused and leaves nothing behind.
    fn full_and_read_only(&mut self) -> Result<Option<String>> {
        let Some(small) = self.small.clone() else { return Ok(None) };
        let number = self.next();
        let (volume, file) = (format!("v{number}"), small.join("disk"));
        let path = file.display().to_string();
        let read_only = self.dice.below(2) == 0;
        let remount = |how: &str| {
            let mut mount = std::process::Command::new("mount");
            mount.args(["-o", &format!("remount,{how}")]).arg(&small);
            quiet(&mut mount).status().context("cannot mount")
        };
        if read_only {
            remount("ro")?;
        }
        let words = ["volume", "create", &volume, "--kind", "file", "--path", &path, "--create"];
        let more = ["--size", SIZE, "--preallocate"];
        let words = [&words[..], &more[..]].concat();
        // Stored, if its data plane died just now: then it goes before there is room.
        let refused = self.server.refused_or_stored(&words).and_then(|stored| match stored {
            true => self.server.must(&["volume", "remove", &volume]).map(drop),
            false => Ok(()),
        });
        if read_only {
            remount("rw")?;
        }
        refused?;
        if file.exists() {
            return Err(anyhow!("{path} was left behind"));
        }
        let what = if read_only { "read-only" } else { "full" };
        Ok(Some(format!("a volume on a {what} file system: refused")))
    }
}

/// In a problem that does not pass by itself.
const FINAL: &str = "differ";

/// Objects come and go with changes alone, and none is under way when this is asked.
fn is_final(problem: &str) -> bool {
    problem.contains(FINAL)
}
