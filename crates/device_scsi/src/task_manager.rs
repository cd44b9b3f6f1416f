//! The task manager: what SCSI commands need and a channel may not do. One thread for each data plane, asleep in a receive.
//!
//! | off-path request | what the task manager does |
//! |---|---|
//! | `Store` | writes a unit's persistent reservations to its file, so that they survive a power loss |
//! | `Abort` | has commands aborted on every channel (PREEMPT AND ABORT) |
//! | `Manage` | carries out a task management function: aborts or counts on every channel, then changes the unit |
//!
//! # Why nobody waits for ever
//!
//! A command that is aborted may itself wait for the task manager: its reservations are being stored. So the task manager never waits for a
//! channel. It asks all channels and goes back to its mailbox; their answers come there as messages ([`Pending::then`]), and the last one of a
//! job ends it. Nor does it take a lock that anybody holds while waiting for a channel or for the task manager: not the plane's, not that
//! of an adapter's queues; only those of the [`Directory`] and of a device's state, which are held for moments. A channel hands a request over
//! without waiting, and its queue goes on with other commands. What is left to wait for is the disk under the reservations: while it does not
//! answer, no request is done, and reads and writes go on.
//!
//! A task management function waits for queues of its client that do not run ([`Presence::Awaited`]), without holding anything: the device
//! hands it in again. A session never waits for a function while one of its queues is awaited: it stops its control queue first, and then those
//! functions fail. A queue that the client does not use may still have commands in its ring, which nobody can know of: the device keeps for
//! it what was carried out meanwhile, and its commands end by that when it comes.
//!
//! [`Pending::then`]: channel::mailbox::Pending::then
//! [`Presence::Awaited`]: channel::device::Presence::Awaited

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use channel::device::AskChannels;
use channel::{Answer, Attendant, Desk};
use scsi::management::{Function, Scope};
use scsi::{LogicalUnit, Nexus, Persistent};

use crate::control::Management;
use crate::device::ScsiDevice;
use crate::keep;
use crate::{AbortReason, AbortScope, AbortTarget, OffPath, Question, Response};

/// A unit, its name, and where its reservations are kept.
type Entry = (Weak<LogicalUnit>, String, Option<PathBuf>);

/// Gets how many commands there were, by question.
type End = Box<dyn FnOnce(&[u32]) + Send>;

/// What the task manager has to know of units. Weak: it keeps nothing alive.
#[derive(Default)]
struct Directory {
    units: Mutex<Vec<Entry>>,
}

impl Directory {
    /// A unit, and where its reservations are kept.
    fn add_unit(&self, unit: &Arc<LogicalUnit>, name: &str, keep: Option<PathBuf>) {
        let mut units = locked(&self.units);
        units.retain(|(unit, ..)| unit.strong_count() > 0);
        units.push((Arc::downgrade(unit), name.to_owned(), keep));
    }

    fn keep_of(&self, unit: &Arc<LogicalUnit>) -> Option<(String, PathBuf)> {
        let units = locked(&self.units);
        let found = units.iter().find(|(each, ..)| std::ptr::eq(each.as_ptr(), &**unit));
        found.and_then(|(_, name, keep)| Some((name.clone(), keep.clone()?)))
    }
}

enum Work {
    /// Of a client's device.
    OffPath(Weak<ScsiDevice>, OffPath),
    /// A channel's answer to one question of a job.
    Counted {
        job: u64,
        question: usize,
        count: u32,
    },
    Stop,
}

/// The thread's handle.
pub struct TaskManager {
    thread: Attendant<Work>,
    directory: Arc<Directory>,
}

impl std::fmt::Debug for TaskManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskManager").finish_non_exhaustive()
    }
}

impl TaskManager {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When there is none to be had.
    pub(crate) fn start(ask: AskChannels<Question>) -> std::io::Result<TaskManager> {
        let directory = Arc::new(Directory::default());
        let known = Arc::clone(&directory);
        let thread = Attendant::start("task-manager", |desk| {
            let mut manager =
                Manager { ask, directory: known, desk, jobs: HashMap::new(), last: 0 };
            move |work| manager.act(work)
        })?;
        Ok(TaskManager { thread, directory })
    }

    /// A unit, and where its reservations are kept.
    pub(crate) fn add_unit(&self, unit: &Arc<LogicalUnit>, name: &str, keep: Option<PathBuf>) {
        self.directory.add_unit(unit, name, keep);
    }

    /// What a device's channels call with an off-path request. It does not wait.
    pub(crate) fn requests(&self, device: Weak<ScsiDevice>) -> Box<dyn Fn(OffPath) + Send + Sync> {
        let desk = self.thread.desk().clone();
        // After the end of the thread the request is dropped, and its command is told that it failed.
        Box::new(move |request| desk.hand_in(Work::OffPath(device.clone(), request)))
    }

    /// Ends the thread. No SCSI queue runs.
    pub(crate) fn stop(&self) {
        self.thread.desk().hand_in(Work::Stop);
        self.thread.join();
    }
}

/// Something that the channels have been asked for.
struct Job {
    /// Answers that have yet to come.
    left: usize,
    /// Commands, by question.
    counts: Vec<u32>,
    end: End,
}

/// The thread's own.
struct Manager {
    ask: AskChannels<Question>,
    directory: Arc<Directory>,
    desk: Desk<Work>,
    jobs: HashMap<u64, Job>,
    last: u64,
}

impl Manager {
    /// Does one thing; whether another one may follow.
    fn act(&mut self, work: Work) -> bool {
        match work {
            Work::OffPath(device, request) => self.begin(&device, request),
            Work::Counted { job, question, count } => self.counted(job, question, count),
            Work::Stop => return false,
        }
        true
    }

    fn begin(&mut self, device: &Weak<ScsiDevice>, request: OffPath) {
        match request {
            OffPath::Store { unit, state, answer } => answer.send(self.store(&unit, &state)),
            OffPath::Abort { scope, answer } => {
                let questions = vec![Question::Abort(scope)];
                self.ask(questions, Box::new(move |_| answer.send(())));
            }
            OffPath::Manage { request, answer } => match device.upgrade() {
                Some(device) => self.manage_when_all_are_here(&device, request, answer),
                None => answer.send(Response::Failure),
            },
        }
    }

    /// A function covers commands on queues that do not run now: of an earlier process, or that came while a queue was being moved. So it
    /// is carried out when all queues of the client are here. Until then what is here is ended: a queue that is to move may wait for it.
    fn manage_when_all_are_here(
        &mut self,
        device: &Arc<ScsiDevice>,
        request: Management,
        answer: Answer<Response>,
    ) {
        match device.attend() {
            // They stay while channels are asked.
            Ok(mut all) => {
                all.owe(request);
                self.manage(device, &request, answer);
            }
            Err(postpone) => {
                postpone.until_all_are_here(OffPath::Manage { request, answer });
                self.end_own(device, &request);
            }
        }
    }

    /// Ends what a function would end of the client's own, and that is all.
    fn end_own(&mut self, device: &Arc<ScsiDevice>, request: &Management) {
        let Management { function, target, lun, id } = *request;
        let Some(reason) = AbortReason::of(function) else { return };
        let nexuses = match lun {
            Some(lun) => device.nexus(target, lun).into_iter().collect(),
            None => device.nexuses(target),
        };
        let question = |nexus: &Arc<Nexus>| {
            let target = match function {
                Function::AbortTask => {
                    let adapter = Arc::clone(device.adapter());
                    AbortTarget::One { adapter, nexus: nexus.id(), id }
                }
                _ => AbortTarget::Nexuses(vec![nexus.id()]),
            };
            let unit = Arc::clone(nexus.unit());
            Question::Abort(AbortScope { unit, target, except: None, reason })
        };
        let questions = nexuses.iter().map(question).collect();
        self.ask(questions, Box::new(|_| ()));
    }

    fn store(&self, unit: &Arc<LogicalUnit>, state: &Persistent) -> bool {
        let Some((name, path)) = self.directory.keep_of(unit) else { return false };
        match keep::write(&path, state) {
            Ok(()) => true,
            // A simulation has it fail all the time.
            Err(_) if cfg!(feature = "sim") => false,
            Err(error) => {
                eprintln!(
                    "unit {name}: its reservations cannot be kept in {}: {error}; the client was told that its command failed",
                    path.display()
                );
                false
            }
        }
    }

    /// Asks every channel.
    fn ask(&mut self, questions: Vec<Question>, end: End) {
        let counts = vec![0; questions.len()];
        let ask = |(at, question)| (self.ask)(question).into_iter().map(move |it| (at, it));
        let asked: Vec<_> = questions.into_iter().enumerate().flat_map(ask).collect();
        if asked.is_empty() {
            return end(&counts);
        }
        self.last += 1;
        let job = self.last;
        self.jobs.insert(job, Job { left: asked.len(), counts, end });
        for (question, pending) in asked {
            let desk = self.desk.clone();
            pending.then(move |count| {
                let count = count.unwrap_or(0);
                // The thread ends after the last queue.
                desk.hand_in(Work::Counted { job, question, count });
            });
        }
    }

    fn counted(&mut self, job: u64, question: usize, count: u32) {
        let Some(found) = self.jobs.get_mut(&job) else { return };
        found.counts[question] += count;
        found.left -= 1;
        if found.left == 0
            && let Some(job) = self.jobs.remove(&job)
        {
            (job.end)(&job.counts);
        }
    }

    /// Task management (SAM-5, clause 7).
    fn manage(&mut self, device: &Arc<ScsiDevice>, request: &Management, answer: Answer<Response>) {
        let Management { function, target, lun, id } = *request;
        let Some(lun) = lun else { return self.reset_nexus(device, target, answer) };
        let Some(nexus) = device.nexus(target, lun) else {
            return answer.send(Response::IncorrectLun);
        };
        let unit = Arc::clone(nexus.unit());
        let (own, all) = (nexus.id(), AbortTarget::Everybody);
        let scope =
            |target, reason| AbortScope { unit: Arc::clone(&unit), target, except: None, reason };
        let ask = |target, reason| vec![Question::Abort(scope(target, reason))];
        let count = |target| vec![Question::Count(scope(target, AbortReason::Aborted))];
        let one = AbortTarget::One { adapter: Arc::clone(device.adapter()), nexus: own, id };
        let owns = || AbortTarget::Nexuses(vec![own]);
        let questions = match (function, function.scope()) {
            (Function::QueryTask, _) => count(one),
            (_, Scope::Nobody) => count(owns()),
            (_, Scope::One) => ask(one, AbortReason::Aborted),
            (_, Scope::Own) if memory::planted("abort-neighbours") => {
                ask(all, AbortReason::Aborted)
            }
            (_, Scope::Own) => ask(owns(), AbortReason::Aborted),
            // The others' end with a status of their own, since TAS is 1.
            (Function::ClearTaskSet, Scope::Everybody) => vec![
                Question::Abort(scope(owns(), AbortReason::Aborted)),
                Question::Abort(scope(all, AbortReason::TaskAborted)),
            ],
            (_, Scope::Everybody) => ask(all, AbortReason::Reset),
        };
        self.ask(
            questions,
            Box::new(move |counts| {
                let any = counts.iter().any(|count| *count > 0);
                function.finish(&nexus);
                let there = function.scope() == Scope::Nobody && any;
                answer.send(if there { Response::FunctionSucceeded } else { Response::Ok });
            }),
        );
    }

    /// I_T NEXUS RESET concerns every unit of the target.
    fn reset_nexus(&mut self, device: &ScsiDevice, target: u8, answer: Answer<Response>) {
        let nexuses = device.nexuses(target);
        let question = |nexus: &Arc<Nexus>| {
            Question::Abort(AbortScope {
                unit: Arc::clone(nexus.unit()),
                target: AbortTarget::Nexuses(vec![nexus.id()]),
                except: None,
                reason: AbortReason::Reset,
            })
        };
        let questions = nexuses.iter().map(question).collect();
        self.ask(
            questions,
            Box::new(move |_| {
                nexuses.iter().for_each(|nexus| Function::NexusReset.finish(nexus));
                answer.send(Response::Ok);
            }),
        );
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a panic ends the process")
}
