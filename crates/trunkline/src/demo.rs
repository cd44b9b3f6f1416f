//! `trunkline demo`: everything once, in less than a minute, on a machine that has nothing but this program.
//!
//! A folder with four backing files; `serve` and its data planes as processes of their own; volumes and adapters made
//! through the API; two clients on real vhost-user sockets, which write checksummed blocks and read them back, and are then
//! measured, first with one channel behind them, then with several.
//!
//! | module | what |
//! |---|---|
//! | [`server`] | the processes and their objects |
//! | [`clients`] | two clients at the same time, and what they cost the server |
//! | [`table`] | the table |
//!
//! One channel and several are two data planes, so that CPU time and wake-ups of each can be told apart: `one` has one
//! channel, `main` has as many as it needs. Clients are the same for both.

mod clients;
mod server;
mod table;

use crate::bench::args::time;
use crate::bench::cpus;
use crate::cli::{EmitArgs, EmitTarget, Format, Global};
use crate::exit::Failure;
use crate::output::{print, put, quoted};
use crate::progress::Bar;
use crate::scratch::Scratch;
use clap::Args;
use control::error::ApiError;
use partition::load::LoadOptions;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) const EXAMPLES: &str = "\
The backing files lie in a folder of their own in --dir, or, without it, in memory (/dev/shm) if there is room, else
in the folder for temporary files. In memory the table shows what the server costs, on a disk mostly what the disk does.

Examples:
  trunkline demo
  trunkline demo --dir /srv
  trunkline demo --keep";

/// `trunkline demo`
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    // In the place of the general option of this name, with a text of its own.
    /// Put the backing files and the server into a folder of their own in this one [default: /dev/shm if there is room,
    /// else the folder for temporary files]
    #[arg(long, env = "TRUNKLINE_DIR", hide_env_values = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Leave the server up, and say how to attach a virtual machine and how to stop it
    #[arg(long)]
    keep: bool,
    /// How long each of the four measurements takes
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = time)]
    time: Duration,
    /// Size of each backing file
    #[arg(long, default_value = "64MiB", value_name = "SIZE", value_parser = fabric::units::parse_size)]
    size: u64,
}

/// Requests outstanding in each queue of a client.
const DEPTH: u16 = 16;
/// Before each measurement, as a share of it.
const WARM_UP_SHARE: u32 = 10;
/// Most queues of a client, however many CPUs there are.
const QUEUES_MAX: usize = 8;
/// Backing files must have room for what the clients keep in flight while they verify.
const SIZE_MIN: u64 = 8 << 20;

/// How the load depends on the machine.
#[derive(Debug, Clone, Copy, Serialize)]
struct Plan {
    /// CPUs that the demo may use.
    cpus: usize,
    /// Queues of each client. A quarter of the CPUs, as two clients share them with a server that has as many
    /// channels as they have queues; at least two, since several are to be shown.
    queues: u16,
    /// Threads of each client.
    threads: u16,
    depth: u16,
}

impl Plan {
    fn of(cpus: usize) -> Plan {
        let quarter = (cpus / 4).clamp(1, QUEUES_MAX);
        // At most `QUEUES_MAX`.
        let (threads, queues) = (quarter as u16, quarter.max(2) as u16);
        Plan { cpus, queues, threads, depth: DEPTH }
    }

    /// Channels of the data plane that has several: one for each queue of both clients as far as there are CPUs.
    fn channels(&self) -> u16 {
        let room = u16::try_from(self.cpus / 2).unwrap_or(u16::MAX).max(2);
        (2 * self.queues).min(room)
    }
}

/// What `demo` prints.
#[derive(Debug, Serialize)]
struct Shown {
    version: &'static str,
    /// Where the backing files were.
    folder: PathBuf,
    /// Size of each.
    file_bytes: u64,
    /// How the volumes were accessed.
    access: String,
    #[serde(flatten)]
    plan: Plan,
    verified: clients::Verified,
    rows: Vec<clients::Row>,
    /// With --keep: what goes on.
    kept: Option<Kept>,
}

/// What --keep left running.
#[derive(Debug, Serialize)]
struct Kept {
    /// The control plane's process.
    pid: u32,
    /// Adapters and their sockets.
    adapters: Vec<(String, PathBuf)>,
    /// What ends and removes everything.
    stop: String,
}

/// Runs it.
pub(crate) fn run(global: &Global, args: &DemoArgs) -> Result<(), Failure> {
    if args.time < Duration::from_millis(10) {
        return Err(ApiError::invalid("--time: expected at least 10ms").into());
    }
    if args.size < SIZE_MIN || !args.size.is_multiple_of(4096) {
        let text = "--size: expected at least 8MiB, a multiple of 4KiB";
        return Err(ApiError::invalid(text).into());
    }
    let parent = args.dir.clone().unwrap_or_else(|| parent(args.size));
    let scratch = Scratch::new(&parent, "demo")?;
    let shown = show(&scratch, args).map_err(|failure| {
        // Beginning with the step, ending with the logs.
        Failure::other(format!("{failure}{}", scratch.keep_logs()))
    })?;
    print(global, &shown, table::page)?;
    if shown.kept.is_some() {
        let folder = Global { dir: Some(scratch.folder().to_owned()), ..global.clone() };
        scratch.keep();
        if global.output == Format::Table {
            goodbye(&folder, &shown)?;
        }
    }
    Ok(())
}

/// Memory, if it has room for the files and as much again.
fn parent(file_bytes: u64) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let needed = 2 * server::DISKS.len() as u64 * file_bytes;
    match rustix::fs::statvfs(memory) {
        Ok(space) if space.f_bavail.saturating_mul(space.f_frsize) >= needed => memory.to_owned(),
        _ => std::env::temp_dir(),
    }
}

/// All steps. Errors begin with the step.
fn show(scratch: &Scratch, args: &DemoArgs) -> Result<Shown, Failure> {
    let plan = Plan::of(cpus::allowed().len());
    let mut bar = Bar::new(8);
    let mut server =
        step(&mut bar, "start the control plane", |_| server::Server::start(scratch, args.keep))?;
    step(&mut bar, "create volumes and adapters", |_| server.create(&plan, args.size))?;
    let mut verified = clients::Verified::default();
    for side in [server::Side::One, server::Side::Several] {
        let what = format!("write and verify both disks of `{}`", side.dataplane());
        verified += step(&mut bar, &what, |bar| {
            clients::verify(&server, side, &plan, args.size, |p| bar.show(&what, p))
        })?;
    }
    let mut rows = Vec::new();
    for side in [server::Side::One, server::Side::Several] {
        for read_percent in [100, 0] {
            let noun = if read_percent == 0 { "writes" } else { "reads" };
            let channels = if side == server::Side::One { "one channel" } else { "several" };
            let what = format!("4KiB random {noun}, {channels}");
            let options = LoadOptions {
                queues: plan.queues,
                threads: Some(plan.threads),
                depth: plan.depth,
                read_percent,
                duration: args.time,
                warm_up: args.time / WARM_UP_SHARE,
                ..LoadOptions::default()
            };
            rows.push(step(&mut bar, &what, |bar| {
                clients::measure(&server, side, &options, |p| bar.show(&what, p))
            })?);
        }
    }
    Ok(Shown {
        version: env!("CARGO_PKG_VERSION"),
        folder: scratch.folder().to_owned(),
        file_bytes: args.size,
        access: server.access()?,
        plan,
        verified,
        rows,
        kept: args.keep.then(|| kept(scratch.folder(), &server)),
    })
}

fn step<T>(
    bar: &mut Bar,
    what: &str,
    work: impl FnOnce(&Bar) -> Result<T, Failure>,
) -> Result<T, Failure> {
    bar.begin(what);
    let result = work(bar);
    bar.done();
    result.map_err(|failure| Failure::other(format!("{what}: {failure}")))
}

fn kept(folder: &Path, server: &server::Server) -> Kept {
    let program = std::env::current_exe().unwrap_or_else(|_| "trunkline".into());
    let [program, folder] = [&*program, folder].map(|path| quoted(&path.display().to_string()));
    Kept {
        pid: server.pid(),
        adapters: server::DISKS
            .iter()
            .map(|disk| (disk.adapter.to_owned(), server.socket(disk)))
            .collect(),
        stop: format!("{program} --dir {folder} stop --with-dataplanes && rm -r {folder}"),
    }
}

/// How to go on with a server that was left up.
fn goodbye(folder: &Global, shown: &Shown) -> Result<(), Failure> {
    let Some(kept) = &shown.kept else { return Ok(()) };
    let dir = quoted(&shown.folder.display().to_string());
    put(&format!("\nThe server is up, process {}. To use its commands:", kept.pid))?;
    put(&format!("  export TRUNKLINE_DIR={dir}"))?;
    put("\nTo attach a QEMU guest to an adapter, start it with these options:\n")?;
    let adapter = server::DISKS[server::DISKS.len() - 1].adapter.to_owned();
    let args = EmitArgs {
        target: EmitTarget::Qemu,
        adapters: vec![adapter],
        device_only: false,
        vcpus: u32::from(shown.plan.queues),
        memory: "1GiB".to_owned(),
        qemu_version: "7.2".to_owned(),
    };
    crate::emit::run(folder, &args)?;
    put(&format!("\nTo stop the server and remove its files:\n  {}", kept.stop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_follows_the_machine() {
        let plan = |cpus| {
            let plan = Plan::of(cpus);
            (plan.queues, plan.threads, plan.channels())
        };
        assert_eq!(plan(1), (2, 1, 2));
        assert_eq!(plan(2), (2, 1, 2));
        assert_eq!(plan(8), (2, 2, 4));
        assert_eq!(plan(16), (4, 4, 8));
        assert_eq!(plan(512), (8, 8, 16));
    }
}
