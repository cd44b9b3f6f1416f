//! The load generator: drives any vhost-user-blk server, or a LUN of a vhost-user-scsi server, by its socket and measures what that costs on both sides.
//!
//! [`run`] connects, starts one thread per queue (or fewer), supervises them from the calling thread, and returns a
//! [`Report`]. The I/O threads own their queues and share nothing with each other. The calling thread speaks with the server,
//! reconnects when it died, reads the server's CPU time and calls back with the progress; it wakes up a few dozen times a second.
//!
//! What is promised: every request that was submitted is either completed and judged, or reported as lost. With `verify`, every
//! block read is compared with what was last acknowledged, and in the end everything written is read once more. What is left to
//! the caller: printing, and deciding what is fast enough.

mod lane;
mod options;
mod port;
mod report;
mod sleeper;
mod supervisor;
mod verify;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memory::clock;

pub use self::options::{Holds, LoadOptions, Order, WaitMode};
pub use self::port::ScsiLun;
pub use self::report::{
    ClientCost, Failure, FailureKind, Progress, QueueReport, Report, Restart, ServerCost,
    ServerFacts, Stage, VerifyReport,
};
pub use self::verify::Corruption;

use self::lane::{Lane, Published};
use self::options::Part;
use self::port::{Disk, Port};
use self::sleeper::Sleeper;
use self::supervisor::{Outcome, Supervisor};
use self::worker::{Schedule, Worker};
use crate::cpu;
use crate::hist::Histogram;
use crate::scsi::{self, ScsiError, cdb};
use crate::session::{Device, ScsiQueues, Session, SessionError, SessionOptions};

/// Why a run could not be done at all. What goes wrong in a run that was done stands in its report.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The server.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The options do not fit together or do not fit the disk.
    #[error("{0}")]
    Options(String),
    /// The LUN does not say what it is.
    #[error("{0}; is there such a target and LUN? see --target and --lun")]
    Lun(#[from] ScsiError),
    /// A thread could not be started or placed.
    #[error("cannot {what}: {source}")]
    Thread {
        /// What could not be done.
        what: String,
        /// The reason.
        source: std::io::Error,
    },
}

/// Runs a load against the server behind `socket`. `progress` is called a few times a second, from this thread.
///
/// # Errors
/// No server, a server that lacks something, or options that cannot work.
pub fn run(
    socket: &Path,
    options: &LoadOptions,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report, LoadError> {
    let device = if options.scsi.is_some() { Device::Scsi } else { Device::Block };
    let session = SessionOptions { device, ..options.session.clone() };
    let (mut session, started) = begin(socket, &session, options)?;
    if let Some(pid) = options.server_pid {
        cpu::process_ns(pid).map_err(|source| LoadError::Thread {
            what: format!("read the CPU time of the server's process {pid}"),
            source,
        })?;
    }
    let Started { disk, ports, parts, fixed } = started;
    let published: Vec<_> = ports.iter().map(|_| Arc::new(Published::default())).collect();
    let lanes = ports
        .into_iter()
        .zip(&parts)
        .zip(&published)
        .zip(0..)
        .map(|(((queue, part), published), index)| {
            Lane::new(index, queue, *part, options, Arc::clone(published))
        })
        .collect();
    let schedule = schedule(options);
    let workers = share_out(lanes, &session, options, schedule)?;
    let supervisor = Supervisor::new(&mut session, options, schedule, published);
    let outcome = supervisor.supervise(workers, progress)?;
    // Without a server there is nothing to stop, and that stands in the failures already.
    let mut stopped = if outcome.connected { session.stop().map(Some) } else { Ok(None) };
    if options.reconnect.is_some() && stopped.as_ref().is_err_and(SessionError::is_hang_up) {
        // It dies after the last answer. A successor has nothing to do for a client that leaves.
        stopped = Ok(None);
    }
    if let Ok(Some(bases)) = &mut stopped {
        bases.drain(..usize::from(device.queues_before_io()));
    }
    drop(fixed);
    Ok(report(&session, &disk, options, outcome, stopped))
}

/// Connects, and starts the device. A server that dies meanwhile is one more restart, where these are waited for.
fn begin(
    socket: &Path,
    session: &SessionOptions,
    options: &LoadOptions,
) -> Result<(Session, Started), LoadError> {
    let end = Instant::now() + options.reconnect.unwrap_or_default();
    let mut met = false;
    loop {
        let begun = Session::connect(socket, session).map_err(LoadError::from);
        let begun = begun.and_then(|mut session| {
            let started = start(&mut session, options)?;
            Ok((session, started))
        });
        let Err(LoadError::Session(error)) = begun else { return begun };
        // Where nobody was there at all, there is no successor to wait for.
        met |= !matches!(error, SessionError::Socket { .. });
        if !met || !error.is_hang_up() || Instant::now() >= end {
            return Err(error.into());
        }
        std::thread::sleep(AGAIN);
    }
}

/// How long to wait until a server that died is looked for again.
const AGAIN: Duration = Duration::from_millis(50);

/// A device that serves.
struct Started {
    disk: Disk,
    ports: Vec<Port>,
    parts: Vec<Part>,
    /// Control and events of a SCSI device, of which a load has no use.
    fixed: Option<(scsi::control::Control, scsi::control::Events)>,
}

fn start(session: &mut Session, options: &LoadOptions) -> Result<Started, LoadError> {
    let plan = options.start_plan();
    let Some(lun) = options.scsi else {
        let config = &session.offer().config;
        let disk = Disk {
            capacity_bytes: config.capacity_bytes,
            block_size: config.block_size,
            read_only: config.read_only,
            flush: config.flush,
        };
        let parts = options.parts(&disk)?;
        let ports = session.start(&plan)?.into_iter().map(Port::Block).collect();
        return Ok(Started { disk, ports, parts, fixed: None });
    };
    let ScsiQueues { control, events, mut requests } = session.start_scsi(&plan)?;
    let disk = ask(&mut requests[0], scsi::address(lun.target, lun.lun), options)?;
    let parts = options.parts(&disk)?;
    let port = |queue| Port::scsi(queue, lun, disk.block_size);
    let ports = requests.into_iter().map(port).collect();
    Ok(Started { disk, ports, parts, fixed: Some((control, events)) })
}

/// What a LUN says of itself.
fn ask(queue: &mut scsi::Queue, lun: [u8; 8], options: &LoadOptions) -> Result<Disk, LoadError> {
    let patience = options.session.timeout;
    let capacity = queue.insist("READ CAPACITY", lun, &cdb::read_capacity(), 32, patience)?.data;
    let mode = queue.insist("MODE SENSE", lun, &cdb::mode_sense(), 4, patience)?.data;
    let last = u64::from_be_bytes(capacity[..8].try_into().expect("eight"));
    let block_size = u32::from_be_bytes(capacity[8..12].try_into().expect("four"));
    if !(512..=1 << 20).contains(&block_size) || !block_size.is_power_of_two() {
        return Err(LoadError::Options(format!("the LUN has blocks of {block_size} bytes")));
    }
    let capacity_bytes = last.saturating_add(1).saturating_mul(u64::from(block_size));
    Ok(Disk { capacity_bytes, block_size, read_only: mode[2] & 0x80 != 0, flush: true })
}

fn schedule(options: &LoadOptions) -> Schedule {
    let ticks = |time: Duration| clock::from_ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let measure_at = clock::ticks().saturating_add(ticks(options.warm_up));
    Schedule {
        measure_at,
        end_at: measure_at.saturating_add(ticks(options.duration)),
        stuck_after: ticks(options.stuck_after),
    }
}

fn share_out(
    lanes: Vec<Lane>,
    session: &Session,
    options: &LoadOptions,
    schedule: Schedule,
) -> Result<Vec<Worker>, LoadError> {
    let threads = usize::from(options.thread_count());
    let mut groups: Vec<Vec<Lane>> = (0..threads).map(|_| Vec::new()).collect();
    for lane in lanes {
        // As the session shares out the call eventfds.
        groups[usize::from(lane.index) % threads].push(lane);
    }
    let budgeted = options.operations.is_some();
    groups
        .into_iter()
        .zip(session.calls())
        .map(|(lanes, call)| {
            let call = Sleeper::new(call).map_err(|source| LoadError::Thread {
                what: "watch the interrupts".into(),
                source,
            })?;
            Ok(Worker::new(lanes, call, options.wait, schedule, budgeted))
        })
        .collect()
}

fn report(
    session: &Session,
    disk: &Disk,
    options: &LoadOptions,
    outcome: Outcome,
    stopped: Result<Option<Vec<u16>>, SessionError>,
) -> Report {
    let Outcome { workers, mut failures, mut failure_count, restarts, server, .. } = outcome;
    let mut sums = Sums::default();
    let mut queues = Vec::new();
    for worker in &workers {
        queues.extend(sums.add(worker));
    }
    queues.sort_by_key(|queue| queue.queue);
    for lane in workers.iter().flat_map(|worker| &worker.lanes) {
        failures.extend(lane.failures.iter().cloned());
        failure_count += lane.failure_count;
    }
    for failure in stop_failures(stopped, &workers) {
        failures.push(failure);
        failure_count += 1;
    }
    let mut both = sums.reads.clone();
    both.merge(&sums.writes);
    let iops = queues.iter().map(|queue| queue.iops).sum::<f64>();
    Report {
        options: options.clone(),
        server: facts(session, disk),
        seconds: clock::to_ns(sums.ticks) as f64 / 1e9,
        operations: both.count(),
        iops,
        bytes_per_second: iops * f64::from(options.block_bytes),
        latency: both.summary(),
        read_latency: sums.reads.summary(),
        write_latency: sums.writes.summary(),
        queues,
        client: sums.client(both.count()),
        server_cost: server,
        verify: options.verify.then_some(sums.verify),
        restarts,
        failures,
        failure_count,
    }
}

/// What the threads add up to.
#[derive(Default)]
struct Sums {
    reads: Histogram,
    writes: Histogram,
    verify: VerifyReport,
    client: ClientCost,
    /// The longest measurement.
    ticks: u64,
}

impl Sums {
    fn add(&mut self, worker: &Worker) -> Vec<QueueReport> {
        let cost = &worker.cost;
        self.ticks = self.ticks.max(cost.ticks);
        self.client.cpu_ns += cost.cpu_ns;
        self.client.interrupts += cost.interrupts;
        self.client.wake_ups += cost.wake_ups;
        let seconds = clock::to_ns(cost.ticks) as f64 / 1e9;
        let lanes = worker.lanes.iter().zip(&worker.measured);
        lanes.map(|(lane, measured)| self.add_lane(lane, measured, seconds)).collect()
    }

    fn add_lane(&mut self, lane: &Lane, measured: &lane::Measured, seconds: f64) -> QueueReport {
        self.reads.merge(&measured.reads);
        self.writes.merge(&measured.writes);
        self.client.kicks += measured.kicks;
        self.client.sent_again += lane.queue.again();
        if let Some(verifier) = &lane.verifier {
            self.verify.blocks_checked += verifier.checked;
            self.verify.blocks_read_back += lane.read_back;
            self.verify.blocks_corrupt += lane.corrupt;
        }
        let mut both = measured.reads.clone();
        both.merge(&measured.writes);
        QueueReport {
            queue: lane.index,
            reads: measured.reads.count(),
            writes: measured.writes.count(),
            flushes: measured.flushes,
            errors: measured.errors,
            iops: if seconds > 0.0 { both.count() as f64 / seconds } else { 0.0 },
            kicks: measured.kicks,
            latency: both.summary(),
        }
    }

    fn client(&self, operations: u64) -> ClientCost {
        let per = |amount: u64, of: u64| if of > 0 { amount as f64 / of as f64 } else { 0.0 };
        ClientCost {
            cpu_ns_per_io: per(self.client.cpu_ns, operations),
            ios_per_wake_up: (self.client.wake_ups > 0)
                .then(|| per(operations, self.client.wake_ups)),
            ..self.client.clone()
        }
    }
}

/// A server that stopped in order has taken all that was submitted.
fn stop_failures(
    stopped: Result<Option<Vec<u16>>, SessionError>,
    workers: &[Worker],
) -> Vec<Failure> {
    let bases = match stopped {
        Ok(bases) => bases.unwrap_or_default(),
        Err(error) => {
            return vec![Failure {
                kind: FailureKind::Server,
                queue: None,
                message: error.to_string(),
            }];
        }
    };
    workers
        .iter()
        .flat_map(|worker| &worker.lanes)
        .map(|lane| (lane.index, lane.queue.ring().avail_index()))
        .filter_map(|(index, submitted)| {
            let base = *bases.get(usize::from(index))?;
            (base != submitted).then(|| Failure {
                kind: FailureKind::Server,
                queue: Some(index),
                message: format!("the server stopped at {base}, {submitted} were submitted"),
            })
        })
        .collect()
}

fn facts(session: &Session, disk: &Disk) -> ServerFacts {
    let offer = session.offer();
    ServerFacts {
        features: offer.features,
        features_used: offer.acked,
        protocol_features: offer.protocol_offered.bits(),
        protocol_features_used: offer.protocol.bits(),
        queues: offer.queues,
        capacity_bytes: disk.capacity_bytes,
        block_size: disk.block_size,
        tracks_inflight: session.tracks_inflight(),
    }
}
