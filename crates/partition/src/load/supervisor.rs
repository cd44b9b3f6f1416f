//! The calling thread's part of a run: watches the server and the clock while the I/O threads work.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use memory::clock;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use vmm_sys_util::eventfd::EventFd;

use super::LoadError;
use super::lane::Published;
use super::options::{LoadOptions, WaitMode};
use super::report::{Failure, FailureKind, Progress, Restart, ServerCost, Stage};
use super::worker::{Schedule, Shared, Worker};
use crate::cpu;
use crate::session::{NUDGE, Session};

/// How often this thread looks around; sleeping I/O threads are woken as often, to see phases end and requests get lost.
const TICK: Duration = Duration::from_millis(20);

/// How often the progress is reported.
const PROGRESS: Duration = Duration::from_millis(200);

/// One attempt to reach a successor, so that the progress goes on meanwhile.
const RECONNECT_SLICE: Duration = Duration::from_millis(200);

/// What a run left behind.
pub(super) struct Outcome {
    pub(super) workers: Vec<Worker>,
    pub(super) failures: Vec<Failure>,
    pub(super) failure_count: u64,
    pub(super) restarts: Vec<Restart>,
    pub(super) server: Option<ServerCost>,
    /// Whether there still is a server to be stopped.
    pub(super) connected: bool,
}

/// The server's CPU time and the requests completed, read at the same moment.
#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    cpu_ns: u64,
    operations: u64,
}

pub(super) struct Supervisor<'a> {
    session: &'a mut Session,
    options: &'a LoadOptions,
    schedule: Schedule,
    published: Vec<Arc<Published>>,
    shared: Shared,
    begin: Instant,
    samples: [Option<Sample>; 2],
    failures: Vec<Failure>,
    restarts: Vec<Restart>,
    /// When the server was lost.
    lost_at: Option<Instant>,
    /// There is no server any more; the threads are ending.
    given_up: bool,
    reported: (Instant, u64),
}

/// Counts a thread as finished, also when it panics.
struct Finished<'a>(&'a File);

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        // The counter cannot overflow with so few threads.
        let _ = self.0.write(&1u64.to_ne_bytes());
    }
}

/// Makes the threads end when the supervisor leaves, in particular when the caller's progress function panics.
struct EndThreads<'a> {
    shared: &'a Shared,
    calls: Vec<Arc<EventFd>>,
}

impl Drop for EndThreads<'_> {
    fn drop(&mut self) {
        self.shared.abort.store(true, Ordering::Release);
        for call in &self.calls {
            let _ = call.write(NUDGE);
        }
    }
}

/// How many threads finished since the last call.
fn count(mut finished: &File) -> u64 {
    let mut count = [0; 8];
    // Not readable yet: none.
    finished.read_exact(&mut count).map_or(0, |()| u64::from_ne_bytes(count))
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(
        session: &'a mut Session,
        options: &'a LoadOptions,
        schedule: Schedule,
        published: Vec<Arc<Published>>,
    ) -> Self {
        let begin = Instant::now();
        Self {
            session,
            options,
            schedule,
            published,
            shared: Shared::default(),
            begin,
            samples: [None; 2],
            failures: Vec::new(),
            restarts: Vec::new(),
            lost_at: None,
            given_up: false,
            reported: (begin, 0),
        }
    }

    /// Runs the workers to their end.
    pub(super) fn supervise(
        mut self,
        workers: Vec<Worker>,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Outcome, LoadError> {
        let thread = |what: &str, source| LoadError::Thread { what: what.into(), source };
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let finished = rustix::event::eventfd(0, flags)
            .map(File::from)
            .map_err(|source| thread("make an eventfd", source.into()))?;
        let shared = std::mem::take(&mut self.shared);
        // Before the first request, where there is no warm-up.
        self.sample(false);
        let cpus = &self.options.cpus;
        let workers = std::thread::scope(|scope| {
            let calls = self.session.calls().to_vec();
            let end_threads = EndThreads { shared: &shared, calls };
            let mut threads = Vec::new();
            for (index, mut worker) in workers.into_iter().enumerate() {
                let cpu = (!cpus.is_empty()).then(|| cpus[index % cpus.len()]);
                let (finished, shared) = (&finished, &shared);
                let body = move || {
                    let _finished = Finished(finished);
                    let placed = cpu.map_or(Ok(()), cpu::pin);
                    if placed.is_ok() {
                        worker.run(shared);
                    }
                    placed.map(|()| worker).map_err(|source| LoadError::Thread {
                        what: format!("run on CPU {}", cpu.unwrap_or_default()),
                        source,
                    })
                };
                let name = format!("load-{index}");
                match std::thread::Builder::new().name(name).spawn_scoped(scope, body) {
                    Ok(handle) => threads.push(handle),
                    Err(source) => return Err(thread("start a thread", source)),
                }
            }
            self.watch(&shared, &finished, threads.len() as u64, progress);
            drop(end_threads);
            threads
                .into_iter()
                .map(|thread| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect::<Result<Vec<_>, _>>()
        })?;
        let server = self.server_cost();
        let failure_count = self.failures.len() as u64;
        let Self { failures, restarts, given_up, .. } = self;
        Ok(Outcome { workers, failures, failure_count, restarts, server, connected: !given_up })
    }

    fn watch(
        &mut self,
        shared: &Shared,
        finished: &File,
        threads: u64,
        progress: &mut dyn FnMut(&Progress),
    ) {
        let mut ended = 0;
        while ended < threads {
            if self.lost_at.is_some() {
                self.reconnect(shared);
            } else if self.pause(finished) {
                self.server_lost(shared);
            }
            ended += count(finished);
            if self.options.until.as_ref().is_some_and(|until| until.load(Ordering::Acquire)) {
                shared.over.store(true, Ordering::Release);
            }
            if self.options.wait == WaitMode::Sleep || shared.abort.load(Ordering::Acquire) {
                for call in self.session.calls() {
                    // Fails only when the counter is full, which wakes its reader as well.
                    let _ = call.write(NUDGE);
                }
            }
            self.sample(ended > 0);
            self.report(progress);
        }
    }

    /// Waits for the next tick, for a thread to end or for the server to hang up; true for the last.
    fn pause(&self, finished: &File) -> bool {
        let tick = if self.options.wait == WaitMode::Sleep { TICK } else { TICK * 2 };
        let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(tick.subsec_nanos()) };
        let server = self.session.fd();
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut fds =
            [PollFd::new(finished, PollFlags::IN), PollFd::new(&server, PollFlags::RDHUP)];
        let watched = if self.given_up { &mut fds[..1] } else { &mut fds[..] };
        // An interrupted or failed wait is a short one.
        let _ = rustix::event::poll(watched, Some(&tick));
        fds[1].revents().intersects(gone)
    }

    fn server_lost(&mut self, shared: &Shared) {
        if self.options.reconnect.is_none() {
            let hint = "the server hung up while requests were outstanding; --reconnect waits for its successor";
            self.give_up(shared, hint.into());
            return;
        }
        shared.disconnected.store(true, Ordering::Release);
        self.lost_at = Some(Instant::now());
    }

    fn give_up(&mut self, shared: &Shared, message: String) {
        self.failures.push(Failure { kind: FailureKind::Server, queue: None, message });
        self.lost_at = None;
        self.given_up = true;
        shared.abort.store(true, Ordering::Release);
    }

    fn reconnect(&mut self, shared: &Shared) {
        let Some(lost_at) = self.lost_at else { return };
        let patience = self.options.reconnect.unwrap_or_default();
        match self.session.reconnect(RECONNECT_SLICE.min(patience)) {
            Ok(()) => {
                self.restarts.push(Restart {
                    at_seconds: (lost_at - self.begin).as_secs_f64(),
                    pause_seconds: lost_at.elapsed().as_secs_f64(),
                });
                shared.connected_at.store(clock::ticks(), Ordering::Release);
                shared.disconnected.store(false, Ordering::Release);
                self.lost_at = None;
            }
            Err(error) if error.is_final() || lost_at.elapsed() >= patience => {
                let seconds = lost_at.elapsed().as_secs_f64();
                self.give_up(shared, format!("no server again after {seconds:.1} s: {error}"));
            }
            Err(_) => {}
        }
    }

    /// Reads the server's CPU time when the measurement begins and when it ends.
    fn sample(&mut self, ended: bool) {
        let Some(pid) = self.options.server_pid else { return };
        let now = clock::ticks();
        let due = [now >= self.schedule.measure_at, now >= self.schedule.end_at || ended];
        for (sample, due) in self.samples.iter_mut().zip(due) {
            if due && sample.is_none() {
                *sample = cpu::process_ns(pid).ok().map(|cpu_ns| Sample {
                    at: Instant::now(),
                    cpu_ns,
                    operations: self.published.iter().map(|lane| lane.get()).sum(),
                });
            }
        }
    }

    fn server_cost(&self) -> Option<ServerCost> {
        let [Some(begin), Some(end)] = self.samples else { return None };
        let operations = end.operations.saturating_sub(begin.operations);
        // A server that was restarted, or threads of it that ended, make the counter go back: no honest number then.
        let cpu_ns = end.cpu_ns.checked_sub(begin.cpu_ns)?;
        let seconds = (end.at - begin.at).as_secs_f64();
        (operations > 0 && seconds > 0.0).then(|| ServerCost {
            cpu_ns,
            cpu_ns_per_io: cpu_ns as f64 / operations as f64,
            cpu_share: cpu_ns as f64 / 1e9 / seconds,
        })
    }

    fn report(&mut self, progress: &mut dyn FnMut(&Progress)) {
        let (last, before) = self.reported;
        let elapsed = last.elapsed();
        if elapsed < PROGRESS {
            return;
        }
        let operations: u64 = self.published.iter().map(|lane| lane.get()).sum();
        self.reported = (Instant::now(), operations);
        let now = clock::ticks();
        let Schedule { measure_at, end_at, .. } = self.schedule;
        let by_time =
            now.saturating_sub(measure_at) as f64 / end_at.saturating_sub(measure_at).max(1) as f64;
        let by_count =
            self.options.operations.map_or(0.0, |all| operations as f64 / all.max(1) as f64);
        let stage = match self.lost_at {
            Some(_) => Stage::Reconnecting,
            None if now < measure_at => Stage::WarmUp,
            None if by_time.max(by_count) < 1.0 => Stage::Measuring,
            None => Stage::Finishing,
        };
        progress(&Progress {
            stage,
            fraction: by_time.max(by_count).min(1.0),
            operations,
            iops: operations.saturating_sub(before) as f64 / elapsed.as_secs_f64(),
        });
    }
}
