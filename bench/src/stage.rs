//! Where a case is played: servers on one CPU, the client on another, rounds in turn.

use std::any::Any;
use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memory::random::Random;
use partition::load::{self, LoadOptions, Progress, Stage as LoadStage, WaitMode};
use tempfile::TempDir;

use crate::figure::{Figure, Round, Series};
use crate::native::{self, Fio};
use crate::ours::{DataPlane, Plan, Served};
use crate::peer::{Node, Settings, StorageDaemon};
use crate::process;
use anyhow::{Context as _, Result, anyhow};

/// Bytes of every volume: far more than the caches of a CPU hold.
pub(crate) const VOLUME_BYTES: u64 = 1 << 30;

/// Settings of the peer within this share of the highest IOPS count as equally fast; the one that costs least CPU is taken.
const AS_FAST: f64 = 0.97;

/// What a run was asked to do.
#[derive(Debug, Clone)]
pub(crate) struct Settled {
    /// `trunkline`, built with optimisation.
    pub(crate) server: PathBuf,
    pub(crate) client_cpu: usize,
    pub(crate) server_cpu: usize,
    /// All CPUs for clients where a case can use several; none of them is the server's.
    pub(crate) client_cpus: Vec<usize>,
    /// All CPUs for the server where a case can use several.
    pub(crate) server_cpus: Vec<usize>,
    pub(crate) rounds: usize,
    pub(crate) warm_up: Duration,
    pub(crate) duration: Duration,
    /// How long idle servers are watched.
    pub(crate) idle: Duration,
    /// A folder in a tmpfs.
    pub(crate) tmpfs: PathBuf,
    /// A folder on a disk that can do O_DIRECT.
    pub(crate) disk: PathBuf,
}

impl Settled {
    /// A round's load as everybody gets it: 4 KiB random reads, one queue, depth 32, a client that sleeps.
    pub(crate) fn load(&self) -> LoadOptions {
        LoadOptions {
            duration: self.duration,
            warm_up: self.warm_up,
            cpus: vec![self.client_cpu],
            ..LoadOptions::default()
        }
    }
}

/// A server that listens.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    socket: PathBuf,
    pid: u32,
    about: String,
}

enum Runner {
    /// A client for each seat, at the same time; all seats are one server's.
    Driven {
        seats: Vec<Seat>,
        load: Box<LoadOptions>,
    },
    /// A client, and what somebody else does meanwhile, until it is told that it is over.
    Beside {
        seat: Seat,
        load: Box<LoadOptions>,
        trouble: Trouble,
    },
    Native(Fio),
}

/// What somebody else does while a client is measured.
pub(crate) type Trouble = Box<dyn Fn(&AtomicBool) -> Result<()> + Sync>;

/// One who takes part in a case.
pub(crate) struct Contestant {
    label: String,
    runner: Runner,
}

impl Contestant {
    /// A server under a load.
    pub(crate) fn driven(label: &str, seat: &Seat, load: LoadOptions) -> Contestant {
        Contestant::crowd(label, std::slice::from_ref(seat), load)
    }

    /// A server under the load of several clients, one for each seat.
    pub(crate) fn crowd(label: &str, seats: &[Seat], load: LoadOptions) -> Contestant {
        let runner = Runner::Driven { seats: seats.to_vec(), load: Box::new(load) };
        Contestant { label: label.to_owned(), runner }
    }

    /// A server under a load, while somebody else makes trouble.
    pub(crate) fn beside(
        label: &str,
        seat: &Seat,
        load: LoadOptions,
        trouble: Trouble,
    ) -> Contestant {
        let runner = Runner::Beside { seat: seat.clone(), load: Box::new(load), trouble };
        Contestant { label: label.to_owned(), runner }
    }

    /// fio on the file itself.
    pub(crate) fn native(label: &str, fio: Fio) -> Contestant {
        Contestant { label: label.to_owned(), runner: Runner::Native(fio) }
    }

    fn about(&self) -> String {
        match &self.runner {
            Runner::Driven { seats, load } => {
                let client = format!("{:?}", load.wait).to_lowercase();
                format!("{}; client {client}s", seats[0].about)
            }
            Runner::Beside { seat, .. } => format!("{}, and another client", seat.about),
            Runner::Native(fio) => format!("fio {}", fio.arguments().join(" ")),
        }
    }

    /// `number` makes every round choose other blocks, as fio does: what an earlier round read may be in somebody's cache.
    fn round(&self, settled: &Settled, number: u64) -> Result<Round> {
        match &self.runner {
            Runner::Driven { seats, load } => {
                let load = LoadOptions { seed: number, ..LoadOptions::clone(load) };
                match &seats[..] {
                    [seat] => driven(seat, &load),
                    seats => crowd(seats, &load),
                }
            }
            Runner::Beside { seat, load, trouble } => {
                let load = LoadOptions { seed: number, ..LoadOptions::clone(load) };
                let over = AtomicBool::new(false);
                std::thread::scope(|threads| {
                    let trouble = threads.spawn(|| trouble(&over));
                    let round = driven(seat, &load);
                    over.store(true, Ordering::Relaxed);
                    trouble.join().expect("it does not panic")?;
                    round
                })
            }
            Runner::Native(fio) => fio.round(settled.warm_up, settled.duration),
        }
    }
}

/// The servers of one case. They end with it.
pub(crate) struct Stage<'a> {
    /// The run's settings.
    pub(crate) settled: &'a Settled,
    /// Each with its folder; they end when they are dropped.
    servers: Vec<(Box<dyn Any>, TempDir)>,
}

impl Seat {
    /// Of a server that was started elsewhere.
    pub(crate) fn new(socket: PathBuf, pid: u32, about: String) -> Seat {
        Seat { socket, pid, about }
    }
}

impl<'a> Stage<'a> {
    /// An empty stage.
    pub(crate) fn new(settled: &'a Settled) -> Stage<'a> {
        Stage { settled, servers: Vec::new() }
    }

    /// Keeps a server until the case is over.
    pub(crate) fn keep(&mut self, server: Box<dyn Any>, folder: TempDir) {
        self.servers.push((server, folder));
    }

    /// Starts our server.
    pub(crate) fn ours(&mut self, plan: &Plan) -> Result<Seat> {
        Ok(self.ours_for(plan, 1)?.remove(0))
    }

    /// Starts our server with an adapter for each of `clients`, all on its volume.
    pub(crate) fn ours_for(&mut self, plan: &Plan, clients: usize) -> Result<Vec<Seat>> {
        let settled = self.settled;
        let folder = folder()?;
        let cpus = if plan.channels as usize == settled.server_cpus.len() {
            &settled.server_cpus[..]
        } else {
            std::slice::from_ref(&settled.server_cpu)
        };
        let mut plane = DataPlane::start(&settled.server, folder.path(), cpus, plan)?;
        plane.put_volume(plan)?;
        let channels = if plan.channels == 1 {
            "1 channel".into()
        } else {
            format!("{} channels", plan.channels)
        };
        let device = if plan.served == Served::Scsi { ", scsi" } else { "" };
        let window = if plan.measures_sleep { ", poll_us_max auto" } else { "" };
        let about = format!("data plane{device}, {channels}, wait {:?}{window}", plan.wait);
        let about = about.to_lowercase();
        let seats = (0..clients).map(|index| {
            let socket = plane.put_adapter(plan, index)?;
            Ok(Seat { socket, pid: plane.pid(), about: about.clone() })
        });
        let seats = seats.collect::<Result<Vec<Seat>>>()?;
        self.servers.push((Box::new(plane), folder));
        Ok(seats)
    }

    /// Starts the peer.
    pub(crate) fn peer(&mut self, node: &Node, settings: Settings) -> Result<Seat> {
        let folder = folder()?;
        let daemon =
            StorageDaemon::start(folder.path(), self.settled.server_cpu, node, settings, 1)?;
        let about = format!("qemu-storage-daemon, {settings}");
        let seat = Seat { socket: daemon.socket.clone(), pid: daemon.pid(), about };
        self.servers.push((Box::new(daemon), folder));
        Ok(seat)
    }

    /// The settings with which the peer is fastest under a load, found by a round with each.
    pub(crate) fn fastest(&self, node: &Node, load: &LoadOptions) -> Result<Settings> {
        let mut tried = Vec::new();
        for settings in Settings::all_for(node) {
            let mut alone = Stage::new(self.settled);
            let seat = alone.peer(node, settings)?;
            let round = driven(&seat, load)?;
            let cpu = round.get(&Figure::ServerCpuUs).copied().unwrap_or(f64::MAX);
            tried.push((settings, round[&Figure::Iops], cpu));
        }
        choose(&tried).ok_or_else(|| anyhow!("the peer has no settings"))
    }

    /// Runs all rounds: one of each contestant in turn, so that what changes on the machine meets all of them.
    pub(crate) fn play(&self, contestants: &[Contestant]) -> Result<Vec<Series>> {
        let mut series: Vec<Series> = contestants
            .iter()
            .map(|contestant| Series::new(&contestant.label, contestant.about()))
            .collect();
        let mut number = 0;
        for _ in 0..self.settled.rounds {
            for (contestant, series) in contestants.iter().zip(&mut series) {
                number += 1;
                let round = contestant
                    .round(self.settled, number)
                    .with_context(|| contestant.label.clone())?;
                series.rounds.push(round);
            }
        }
        Ok(series)
    }
}

fn choose(tried: &[(Settings, f64, f64)]) -> Option<Settings> {
    let most = tried.iter().map(|(_, iops, _)| *iops).fold(0.0, f64::max);
    let fast = tried.iter().filter(|(_, iops, _)| *iops >= most * AS_FAST);
    fast.min_by(|a, b| a.2.total_cmp(&b.2)).map(|(settings, ..)| *settings)
}

/// A folder for sockets, whose paths must be short.
pub(crate) fn folder() -> Result<TempDir> {
    tempfile::Builder::new().prefix("tlb").tempdir().context("cannot make a folder")
}

/// The file on the disk, made and read once.
pub(crate) fn disk_file(settled: &Settled) -> Result<PathBuf> {
    let path = settled.disk.join("bench.img");
    if std::fs::metadata(&path).map_or(0, |found| found.len()) != VOLUME_BYTES {
        fill(&path)?;
    }
    native::read_whole(&path)?;
    Ok(path)
}

/// A file full of data that does not compress, so that every read finds blocks of its own.
pub(crate) fn fill(path: &Path) -> Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let mut file = File::create(path).context(failed())?;
    let mut chunk = vec![0u8; 1 << 20];
    let mut random = Random::new(1);
    for _ in 0..VOLUME_BYTES / chunk.len() as u64 {
        for word in chunk.chunks_exact_mut(8) {
            word.copy_from_slice(&random.next().to_le_bytes());
        }
        file.write_all(&chunk).context(failed())?;
    }
    file.sync_all().context(failed())
}

/// One round of a load against a server.
pub(crate) fn driven(seat: &Seat, load: &LoadOptions) -> Result<Round> {
    let load = LoadOptions { server_pid: Some(seat.pid), ..load.clone() };
    let looks = RefCell::new(Looks::default());
    let mut progress = |progress: &Progress| looks.borrow_mut().look(seat.pid, progress);
    let report = load::run(&seat.socket, &load, &mut progress)
        .with_context(|| format!("load on {}", seat.about))?;
    if let Some(failure) = report.failures.first() {
        return Err(anyhow!("{}: {failure:#}", seat.about));
    }
    let us = |ns: u64| ns as f64 / 1000.0;
    let mut round = Round::from([
        (Figure::Iops, report.iops),
        (Figure::LatencyUs, report.latency.mean_ns / 1000.0),
        (Figure::P50Us, us(report.latency.p50_ns)),
        (Figure::P99Us, us(report.latency.p99_ns)),
        (Figure::ClientCpuUs, report.client.cpu_ns_per_io / 1000.0),
    ]);
    if let Some(cost) = &report.server_cost {
        round.insert(Figure::ServerCpuUs, cost.cpu_ns_per_io / 1000.0);
    }
    if load.wait == WaitMode::Sleep && report.client.interrupts > 0 {
        let interrupts = report.client.interrupts as f64;
        round.insert(Figure::IosPerInterrupt, report.operations as f64 / interrupts);
    }
    looks.into_inner().add_to(&mut round, load.wait);
    Ok(round)
}

/// One round of several clients at once. IOPS are the sum; latencies and costs are the means over all requests.
fn crowd(seats: &[Seat], load: &LoadOptions) -> Result<Round> {
    let rounds = std::thread::scope(|scope| {
        let client = |(index, seat)| {
            let load = LoadOptions { seed: load.seed + 1000 * index as u64, ..load.clone() };
            scope.spawn(move || driven(seat, &load))
        };
        let clients: Vec<_> = seats.iter().enumerate().map(client).collect();
        let joined = clients.into_iter().map(|client| client.join().expect("it does not panic"));
        joined.collect::<Result<Vec<Round>>>()
    })?;
    let iops = |round: &Round| round[&Figure::Iops];
    let total: f64 = rounds.iter().map(iops).sum();
    let mean = |figure: Figure| {
        let part = |round: &Round| Some(round.get(&figure)? * iops(round) / total);
        Some((figure, rounds.iter().map(part).sum::<Option<f64>>()?))
    };
    // Each client sees the whole server's CPU time against its own requests only.
    let server = |(figure, value)| (figure, value / rounds.len() as f64);
    let mut round: Round =
        [Figure::LatencyUs, Figure::ClientCpuUs].into_iter().filter_map(mean).collect();
    round.extend(mean(Figure::ServerCpuUs).map(server));
    round.insert(Figure::Iops, total);
    Ok(round)
}

/// How often both sides went to sleep between the first and the last progress report of a measurement.
#[derive(Default)]
struct Looks {
    first: Option<Look>,
    last: Option<Look>,
}

#[derive(Clone, Copy)]
struct Look {
    operations: u64,
    server_sleeps: u64,
    client_sleeps: u64,
}

impl Looks {
    fn look(&mut self, server: u32, progress: &Progress) {
        if progress.stage != LoadStage::Measuring {
            return;
        }
        let sleeps = |pid| process::usage(pid).map(|usage| usage.sleeps);
        let (Ok(server_sleeps), Ok(client_sleeps)) = (sleeps(server), sleeps(std::process::id()))
        else {
            return;
        };
        let look = Look { operations: progress.operations, server_sleeps, client_sleeps };
        self.first.get_or_insert(look);
        self.last = Some(look);
    }

    fn add_to(&self, round: &mut Round, wait: WaitMode) {
        let (Some(first), Some(last)) = (self.first, self.last) else { return };
        let operations = last.operations.saturating_sub(first.operations) as f64;
        let mut add = |figure, sleeps: u64| {
            if sleeps > 0 {
                round.insert(figure, operations / sleeps as f64);
            }
        };
        add(Figure::IosPerServerSleep, last.server_sleeps.saturating_sub(first.server_sleeps));
        // A polling client never sleeps; its supervisor does, fifty times a second.
        if wait == WaitMode::Sleep {
            add(Figure::IosPerClientSleep, last.client_sleeps.saturating_sub(first.client_sleeps));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn among_equally_fast_settings_the_cheapest_is_taken() {
        let other = Settings { iothread: true, aio: None };
        assert_eq!(choose(&[(Settings::PLAIN, 100.0, 9.0), (other, 98.0, 5.0)]), Some(other));
        assert_eq!(
            choose(&[(Settings::PLAIN, 100.0, 9.0), (other, 50.0, 5.0)]),
            Some(Settings::PLAIN)
        );
        assert_eq!(choose(&[]), None);
    }
}
