//! What adapters cost that do nothing.

use std::time::Instant;

use partition::blk::{Queue, SlotPlan};
use partition::session::{Session, SessionOptions, StartPlan};

use crate::figure::{Figure, Round, Series};
use crate::ours::{DataPlane, Plan};
use crate::process;
use crate::stage::{self, Settled};
use anyhow::{Context as _, Result};

/// How many adapters.
const ADAPTERS: usize = 200;
/// Queues of each, all started.
const QUEUES: u16 = 4;

/// Without clients, and with clients that have started all queues and send nothing.
pub(crate) fn run(settled: &Settled) -> Result<Vec<Series>> {
    raise_file_limit();
    let kinds = [("no clients", false), ("clients started", true)];
    kinds
        .into_iter()
        .map(|(name, clients)| {
            // One look each: memory does not vary, and the time watched is long.
            let (round, wake_ups) = watch(settled, clients)?;
            Ok(Series {
                label: format!("{ADAPTERS} adapters, {name}"),
                about: format!(
                    "{QUEUES} queues each, wait adaptive, 1 channel; watched for {} s, in which the channel woke {wake_ups} times; \
                     memory beyond the first adapter",
                    settled.idle.as_secs_f64()
                ),
                rounds: vec![round],
            })
        })
        .collect()
}

fn watch(settled: &Settled, clients: bool) -> Result<(Round, u64)> {
    let folder = stage::folder()?;
    let plan = Plan { queues: QUEUES, ..Plan::null() };
    let mut plane = DataPlane::start(&settled.server, folder.path(), &[settled.server_cpu], &plan)?;
    plane.put_volume(&plan)?;
    let mut sessions: Vec<(Session, Vec<Queue>)> = Vec::new();
    let mut first_mib = 0.0;
    for index in 0..ADAPTERS {
        let socket = plane.put_adapter(&plan, index)?;
        if clients {
            let mut session = Session::connect(&socket, &SessionOptions::default())
                .with_context(|| format!("adapter {index}"))?;
            let queues =
                session.start(&start_plan()).with_context(|| format!("adapter {index}"))?;
            sessions.push((session, queues));
        }
        if index == 0 {
            first_mib = process::resident_mib(plane.pid())?;
        }
    }
    // What the set-up left to do is not idleness.
    std::thread::sleep(settled.warm_up);
    let (before, woken, since) = (process::usage(plane.pid())?, plane.wake_ups()?, Instant::now());
    std::thread::sleep(settled.idle);
    let (after, watched) = (process::usage(plane.pid())?, since.elapsed());
    let resident = process::resident_mib(plane.pid())?;
    let share = (after.cpu_ns - before.cpu_ns) as f64 / watched.as_nanos() as f64;
    let round = Round::from([
        (Figure::CpuPercent, share * 100.0),
        (Figure::ResidentMib, resident - first_mib),
    ]);
    let wake_ups = plane.wake_ups()? - woken;
    drop(sessions);
    Ok((round, wake_ups))
}

fn start_plan() -> StartPlan {
    StartPlan {
        queues: QUEUES,
        queue_size: 128,
        threads: 1,
        slots: SlotPlan { slots: 32, data_bytes: 4096, data_segments: 1, indirect: false },
    }
}

/// Every session has a socket, memory and eventfds: the usual soft limit of 1024 is not enough.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused, connecting says so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
