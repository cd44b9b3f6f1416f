//! The supervisor of a data plane: starts it or adopts it, tells it what to be, starts it again.
//!
//! A data plane lives longer than the control plane: it is a session of its own, and a control plane
//! that starts connects to the socket first and only starts a process when nobody answers. Each data
//! plane has one supervisor thread, which makes all calls to it; the asynchronous part of the server
//! sends `Command`s and awaits answers. The thread sleeps until there is a command, the data
//! plane hangs up (a second thread waits for just that), or something that failed is due again.
//! Whoever only reads does not wait for it: `pulse` knows how the data plane is.
//!
//! A process is started only where nobody listens and nobody lives. One that does not answer is left
//! alone, and tried again.

mod ailing;
mod backoff;
mod carry;
mod frames;
mod lasting;
mod process;
mod pulse;
mod refusal;
mod view;
mod visits;

pub use ailing::Ailment;
pub use backoff::Backoff;
pub(crate) use carry::FEWER;
pub(crate) use process::forget;
pub use process::{Launcher, ProcessLauncher};
pub use pulse::{Asks, Look};
pub use view::{Known, View};

use crate::error::{ApiError, Code};
use crate::link::{Link, LinkError, listener};
use crate::model::loss::stays_away;
use crate::model::resolve::{DataPlaneSpec, Wanted};
use crate::reconcile::{Inventory, Names, Subject, differences};
use crate::trail::{Kind, Trail};
use crate::turns::{self, Attends};
use carry::{Undone, granted, taken};
use fabric::attribute::Object;
use frames::{Tallied, Traced};
use lasting::{Copied, Detached, Laid, RolledBack, Scrubbed};
use protocol::message::{
    Account, Changes, CopySpec, DetachSpec, LayoutSpec, Reply, Request, RollbackSpec, ScrubSpec,
    Selection, TallySpec, TraceSpec,
};
use protocol::opener::{self, Grants, Passing, Witnesses};
use protocol::planted;
use protocol::socket::FrameError;
use protocol::stats::StatsReader;
use pulse::Pulse;
use refusal::refusal;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};
use view::lock;

/// How long until what failed is tried again, and the longest that this grows to.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long until a volume that is being opened is looked at again, and the longest that this grows to.
const LOOK: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// How long until a data plane that does not answer is called again.
const CALL_AGAIN: Duration = Duration::from_secs(2);
/// How long a data plane may be silent before a change does not wait for it any more.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// How often a change looks whether the data plane that it waits for is silent.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Where an answer goes.
type Answer<T> = oneshot::Sender<T>;

/// What a supervisor is asked.
enum Command {
    /// This is what the data plane shall be from now on.
    Want {
        wanted: Box<Wanted>,
        spec: DataPlaneSpec,
        done: Answer<Outcome>,
    },
    /// The high-water marks of an adapter, or of a port, begin again.
    ResetMarks(Object, String, Answer<Result<(), ApiError>>),
    /// Frames of a network are watched.
    Trace(TraceSpec, Answer<Traced>),
    Tallies(TallySpec, Answer<Tallied>),
    /// An LU is rolled back.
    Rollback(RollbackSpec, Answer<RolledBack>),
    /// A pool is scrubbed.
    Scrub(ScrubSpec, Answer<Scrubbed>),
    /// How an LU lies on PVs is asked for.
    Layout(LayoutSpec, Answer<Laid>),
    /// An LU is detached.
    Detach(DetachSpec, Answer<Detached>),
    /// An LU comes from a file or goes into one.
    Copy(CopySpec, Option<OwnedFd>, Answer<Copied>),
    /// Stop it in good order; the supervisor starts it again with its present attributes.
    Restart(Answer<Result<(), ApiError>>),
    /// The supervisor ends; the data plane with it, or not.
    End {
        data_plane: bool,
        done: Answer<()>,
    },
    /// The data plane of this generation hung up.
    Hangup(u64),
    /// There is nobody at its socket, perhaps since its file was removed.
    Unreachable,
}

/// What became of a [`Supervisor::post`].
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Whether the data plane answers at all.
    pub connected: bool,
    /// What it could not do.
    pub failures: BTreeMap<Subject, ApiError>,
    /// Volumes that it is opening, and what waits for them.
    pub opening: BTreeMap<Subject, ApiError>,
}

/// A handle on a supervisor thread.
pub struct Supervisor {
    commands: Sender<Command>,
    view: Arc<Mutex<View>>,
    pulse: Pulse,
}

impl Supervisor {
    /// Starts the thread. It connects to the data plane, or starts one, at the first command.
    pub fn start(
        launcher: Box<dyn Launcher>,
        spec: DataPlaneSpec,
        listeners: BTreeMap<String, OwnedFd>,
        learned: Arc<Notify>,
        trail: Arc<Trail>,
        passing: &Arc<Passing>,
    ) -> std::io::Result<Supervisor> {
        let (commands, inbox) = mpsc::channel();
        let view = Arc::new(Mutex::new(View::default()));
        let name = format!("supervisor-{}", spec.name);
        let pulse = Pulse::start(
            &spec.name,
            launcher.line(),
            Arc::clone(&view),
            Arc::clone(&trail),
            commands.clone(),
        )?;
        let body = SupervisorThread {
            launcher,
            spec,
            listeners,
            learned,
            wanted: Wanted::default(),
            has: Inventory::default(),
            about: Names::new(),
            again: false,
            stale: true,
            taken: Grants::default(),
            myself: commands.clone(),
            view: Arc::clone(&view),
            link: None,
            generation: 0,
            grants: Arc::default(),
            witnesses: Arc::new(Witnesses::beside(passing)),
            tokens: Arc::default(),
            backoff: Backoff::new(),
            connect_at: None,
            retry_at: None,
            retry_in: RETRY.0,
            look_in: LOOK.0,
            trail,
        };
        turns::start(name, inbox, body)?;
        Ok(Supervisor { commands, view, pulse })
    }

    /// Makes `wanted` what the data plane shall be, without waiting for it. What was posted first is carried out first.
    pub fn post(&self, wanted: Wanted, spec: DataPlaneSpec) -> oneshot::Receiver<Outcome> {
        let (done, answer) = oneshot::channel();
        // One that has ended drops the other end, which is an answer as well.
        let _ = self.commands.send(Command::Want { wanted: Box::new(wanted), spec, done });
        answer
    }

    /// What became of a [`Supervisor::post`]; nothing where the data plane is silent, which does it when it can.
    pub async fn answer(&self, answer: &mut oneshot::Receiver<Outcome>) -> Option<Outcome> {
        tokio::select! {
            biased;
            outcome = answer => Some(outcome.unwrap_or_default()),
            () = self.silence() => None,
        }
    }

    /// Returns when the data plane has been silent for longer than a change waits.
    async fn silence(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            self.pulse.look().await;
            let view = self.view();
            if view.silent.is_some_and(|since| turns::since(since) > SILENCE_MAX) {
                return;
            }
        }
    }

    /// What is known of the data plane, asked for now: its account, or the one before when it does not answer at once.
    pub async fn look(&self) -> View {
        self.pulse.look().await;
        self.view()
    }

    /// The same without waiting where it is known not to answer.
    pub async fn look_unless_silent(&self) -> View {
        if self.view().silent.is_none() {
            self.pulse.look().await;
        }
        self.view()
    }

    /// What the data plane has of what is named, asked for now. Nothing where it is known not to answer, or does not know the question: then what is known
    /// is as new as it can be.
    pub async fn look_at(&self, of: Selection) -> Option<Changes> {
        if self.view().silent.is_some() {
            return None;
        }
        self.pulse.look_at(of).await
    }

    /// Stops the data plane in good order and starts it again. One that is silent is killed.
    pub async fn restart(&self) -> Result<(), ApiError> {
        self.interrupting(Command::Restart).await.unwrap_or_else(|| Err(gone()))
    }

    /// The high-water marks of an adapter, or of a port, begin again.
    pub async fn reset_marks(&self, object: Object, name: &str) -> Result<(), ApiError> {
        let command = |done| Command::ResetMarks(object, name.to_owned(), done);
        self.interrupting(command).await.unwrap_or_else(|| Err(gone()))
    }

    /// Ends the supervisor; the data plane too, or it goes on by itself.
    pub async fn end(&self, data_plane: bool) {
        self.interrupting(|done| Command::End { data_plane, done }).await;
    }

    /// What is known without asking.
    pub fn view(&self) -> View {
        lock(&self.view).clone()
    }

    /// Asks, and ends a call that a silent data plane does not answer.
    async fn interrupting<T>(&self, command: impl FnOnce(Answer<T>) -> Command) -> Option<T> {
        let (answer, reply) = oneshot::channel();
        self.commands.send(command(answer)).ok()?;
        let mut reply = std::pin::pin!(reply);
        loop {
            tokio::select! {
                biased;
                answer = &mut reply => return answer.ok(),
                () = self.silence() => {
                    if let Some(line) = self.view().line {
                        // The supervisor sees an end, and goes on with what it is asked.
                        let _ = line.shutdown(std::net::Shutdown::Both);
                    }
                }
            }
        }
    }
}

fn gone() -> ApiError {
    ApiError::new(Code::Unavailable, "the data plane's supervisor has ended")
}

/// The state of the thread.
struct SupervisorThread {
    launcher: Box<dyn Launcher>,
    spec: DataPlaneSpec,
    listeners: BTreeMap<String, OwnedFd>,
    /// Told when it has another volume open.
    learned: Arc<Notify>,
    wanted: Wanted,
    /// What the data plane has.
    has: Inventory,
    /// What of both has to be compared: it has changed, or it could not be done.
    about: Names,
    /// It is time to try something again.
    again: bool,
    /// Whether more may be granted, and witnessed, than is wanted.
    stale: bool,
    /// What was wanted and may be granted still.
    taken: Grants,
    myself: Sender<Command>,
    view: Arc<Mutex<View>>,
    link: Option<Box<dyn Link>>,
    /// Counts connections, so that an old one's hang-up is not taken for the present one's.
    generation: u64,
    /// What the data plane may have opened.
    grants: Arc<Mutex<Grants>>,
    /// What they saw of the files that it writes.
    witnesses: Arc<Witnesses>,
    /// Its leases.
    tokens: Arc<crate::tokens::Keeper>,
    backoff: Backoff,
    /// When to connect or start again.
    connect_at: Option<Instant>,
    /// When to try again what failed.
    retry_at: Option<Instant>,
    retry_in: Duration,
    look_in: Duration,
    trail: Arc<Trail>,
}

impl Attends for SupervisorThread {
    type Message = Command;

    fn due(&self) -> Option<Instant> {
        [self.connect_at, self.retry_at].into_iter().flatten().min()
    }

    fn attend(&mut self, command: Option<Command>, _: &Receiver<Command>) -> bool {
        match command {
            Some(Command::End { data_plane, done }) => {
                if data_plane {
                    self.shut_down();
                    close(self.witnesses.keep(|_| false));
                }
                let _ = done.send(());
                return false;
            }
            Some(command) => self.handle(command),
            None => {
                self.again = true;
                self.bring_about();
            }
        }
        true
    }
}

impl SupervisorThread {
    fn handle(&mut self, command: Command) {
        // An answer that nobody waits for any more is dropped.
        match command {
            Command::Want { wanted, spec, done } => {
                let mut about = differences(&self.wanted, &wanted);
                self.taken.add(&taken(&self.wanted, &wanted, &about));
                self.about.append(&mut about);
                (self.wanted, self.spec) = (*wanted, spec);
                (self.retry_in, self.look_in) = (RETRY.0, LOOK.0);
                self.bring_about();
                let (failures, opening) = self.shown();
                let _ = done.send(Outcome { connected: self.link.is_some(), failures, opening });
            }
            Command::ResetMarks(object, name, done) => {
                let _ = done.send(self.reset_marks(object, name));
            }
            Command::Trace(spec, done) => {
                let _ = done.send(self.trace(spec));
            }
            Command::Tallies(spec, done) => {
                let _ = done.send(self.tallies(spec));
            }
            Command::Rollback(spec, done) => {
                let _ = done.send(self.rollback(spec));
            }
            Command::Scrub(spec, done) => {
                let _ = done.send(self.scrub(spec));
            }
            Command::Layout(spec, done) => {
                let _ = done.send(self.layout(spec));
            }
            Command::Detach(spec, done) => {
                let _ = done.send(self.detach(spec));
            }
            Command::Copy(spec, file, done) => {
                let _ = done.send(self.copy(spec, file));
            }
            Command::Restart(done) => {
                self.shut_down();
                self.backoff = Backoff::new();
                self.bring_about();
                let _ = done.send(self.connected());
            }
            Command::Hangup(generation) => {
                if generation == self.generation && self.link.is_some() {
                    self.lost("it went away");
                    self.bring_about();
                }
            }
            // Whoever is asked how things are looks after its sockets, and here there is a connection still.
            Command::Unreachable if self.link.is_some() => {
                self.again = true;
                self.bring_about();
            }
            Command::Unreachable => {}
            Command::End { .. } => unreachable!("handled by attend"),
        }
    }

    /// Asks the data plane, which is there; nothing if it ended meanwhile and another is there now.
    fn ask(&mut self, request: &Request) -> Result<Option<Reply>, ApiError> {
        self.ask_with(request, &[])
    }

    /// … with descriptors.
    fn ask_with(
        &mut self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<Option<Reply>, ApiError> {
        self.connected()?;
        let Some(link) = &mut self.link else { return Err(gone()) };
        match link.call(request, fds) {
            Ok((reply, _)) => Ok(Some(reply)),
            Err(error) => {
                self.lost(&error.to_string());
                self.connected().map(|()| None)
            }
        }
    }

    fn reset_marks(&mut self, object: Object, name: String) -> Result<(), ApiError> {
        let (request, subject) = match object {
            Object::Port => (Request::ResetPortMarks { name: name.clone() }, Subject::Port(name)),
            _ => (Request::ResetMarks { name: name.clone() }, Subject::Adapter(name)),
        };
        match self.ask(&request)? {
            Some(Reply::Error(failure)) => Err(refusal(&self.spec.name, subject, failure)),
            _ => Ok(()),
        }
    }

    /// What could not be done, and what is being opened.
    fn shown(&self) -> (BTreeMap<Subject, ApiError>, BTreeMap<Subject, ApiError>) {
        let view = lock(&self.view);
        (view.failures.clone(), view.opening.clone())
    }

    fn connected(&self) -> Result<(), ApiError> {
        if self.link.is_some() {
            return Ok(());
        }
        let trouble = lock(&self.view).reason().unwrap_or_default();
        Err(ApiError::new(
            Code::Unavailable,
            format!("data plane `{}` is not running: {trouble}", self.spec.name),
        )
        .help("see `trunkline status`; it is started again by itself"))
    }

    /// Connects if need be and allowed by now, then makes the data plane what it shall be.
    fn bring_about(&mut self) {
        self.retry_at = None;
        if self.link.is_none() && self.connect_at.is_none_or(|at| at <= turns::now()) {
            self.connect();
        }
        if self.link.is_none() {
            if lock(&self.view).pid.is_none() {
                // Nobody writes what was taken from one that is dead.
                let granted = granted(&self.wanted, self.launcher.socket(), None);
                close(self.witnesses.keep(|path| granted.writes(path)));
            }
            return;
        }
        match self.carry_out() {
            Ok(Undone { failures, opening }) => {
                // That a PV is gone is heard by asking, and an LU that cannot go to its tier goes when it is asked for again.
                let leaving = self.wanted.pools.values().any(|pool| !pool.leaving.is_empty());
                let hindered = failures.is_empty() && self.hinders();
                if !opening.is_empty() || leaving || hindered {
                    self.retry_at = Some(turns::now() + self.look_in);
                    self.look_in = (self.look_in * 2).min(LOOK.1);
                } else if !failures.is_empty() && !planted("never-again") {
                    self.retry_at = Some(turns::now() + self.retry_in);
                    self.retry_in = (self.retry_in * 2).min(RETRY.1);
                }
                let mut view = lock(&self.view);
                let before = std::mem::replace(&mut view.failures, failures);
                view.opening = opening;
                let new = view.failures.iter().filter(|(subject, refusal)| {
                    before.get(subject).is_none_or(|earlier| earlier.message != refusal.message)
                });
                let new: Vec<(Subject, String)> =
                    new.map(|(of, refusal)| (of.clone(), refusal.message.clone())).collect();
                drop(view);
                for (subject, message) in new {
                    if let Subject::Volume(name) = subject {
                        self.trail.note(Kind::VolumeError, Some(&name), message);
                    }
                }
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Whether an LU does not go to the tier in which it is to be.
    fn hinders(&self) -> bool {
        let placed = |name| self.has.pool(name).map(|now| &now.spec.placed);
        let mut pools = self.wanted.pools.iter();
        pools.any(|(name, then)| placed(name).is_some_and(|placed| *placed != then.placed))
    }

    /// Connects to the data plane that is there, or starts one where there is none.
    fn connect(&mut self) {
        self.connect_at = None;
        match self.launcher.connect() {
            Ok(link) => self.attach(link, None),
            Err(LinkError::Absent) => {
                // One that was there and went while nobody was connected to it.
                let ended = self.launcher.reap();
                self.died(ended.as_deref().unwrap_or("it went away"));
                self.backoff.started(turns::now());
                self.start();
            }
            Err(error) => self.failed(&error),
        }
    }

    /// Starts one with its present attributes, or, where these do not work, with the last that did.
    fn start(&mut self) {
        let worked = lock(&self.view).started_with.clone().or_else(|| self.launcher.started_with());
        let error = match self.launcher.launch(&self.spec) {
            Ok(link) => return self.attach(link, Some(self.spec.clone())),
            Err(error) => error.to_string(),
        };
        let Some(worked) = worked.filter(|worked| *worked != self.spec) else {
            return self.lost(&error);
        };
        match self.launcher.launch(&worked) {
            Ok(link) => {
                self.attach(link, Some(worked));
                let why = format!(
                    "it runs with its earlier attributes, since it does not start with the present ones: {error}"
                );
                tracing::warn!(dataplane = %self.spec.name, "{why}");
                lock(&self.view).trouble = Some(why);
            }
            Err(_) => self.lost(&error),
        }
    }

    /// There is no process any more, if there was one.
    fn died(&self, how: &str) {
        let mut view = lock(&self.view);
        let known = view.known.as_ref().map(|known| Arc::clone(&known.status));
        if let Some(pid) = view.died() {
            drop(view);
            let message = format!("process {pid}: {how}; another is started");
            self.trail.note(Kind::DataplaneDied, Some(&self.spec.name), message);
            let adapters = known.iter().flat_map(|status| &status.adapters);
            for adapter in adapters.filter(|adapter| stays_away(adapter)) {
                let who = adapter.client.map(|client| format!(" (process {})", client.pid));
                let who = who.unwrap_or_default();
                let message = format!(
                    "its data plane died, and the client{who} does not connect again: restart its machine"
                );
                self.trail.note(Kind::ClientLeft, Some(&adapter.spec.name), message);
            }
        }
    }

    /// A call failed. A data plane that may be alive is called again, and no other is started.
    fn failed(&mut self, error: &LinkError) {
        let silent = lock(&self.view).silent.is_some();
        let pid = match error {
            LinkError::Silent { pid } => *pid,
            _ if error.is_silence() || silent => lock(&self.view).pid,
            LinkError::Version(_) => return self.lost(&error.to_string()),
            // It is there, and says what is not understood.
            LinkError::Frame(FrameError::TooLong { .. } | FrameError::Malformed(_)) => {
                lock(&self.view).pid.or_else(|| listener(self.launcher.socket()))
            }
            _ if self.link.is_some() => return self.lost(&error.to_string()),
            _ => None,
        };
        self.launcher.reap();
        // A call that was cut says nothing of the next one.
        let cut = self.link.take().is_some() && !error.is_silence();
        let wait = if cut { Duration::ZERO } else { CALL_AGAIN };
        self.connect_at = Some(turns::now() + wait);
        let mut view = lock(&self.view);
        let why = error.to_string();
        if view.trouble.as_ref() != Some(&why) {
            tracing::warn!(dataplane = %self.spec.name, pid, "{why}; it is called again");
        }
        (view.pid, view.trouble, view.line) = (pid, Some(why), None);
    }

    /// Lets a data plane ask for what it has to open. One of an earlier version opens that by itself, and says that it does not know the message.
    /// One that is there already brings the witnesses of its files with that.
    fn lend(&self, link: &mut dyn Link) -> Result<(), LinkError> {
        grants(&self.grants).add(&granted(&self.wanted, self.launcher.socket(), None));
        // It opens what it has to by itself.
        if cfg!(feature = "sim") {
            return Ok(());
        }
        let tokens = Arc::clone(&self.tokens);
        match opener::serve(Arc::clone(&self.grants), Arc::clone(&self.witnesses), tokens) {
            Ok(theirs) => link.call(&Request::Opener, &[theirs.as_fd()]).map(drop),
            Err(error) => {
                tracing::warn!(dataplane = %self.spec.name, %error, "it cannot open files and sockets");
                Ok(())
            }
        }
    }

    fn attach(&mut self, mut link: Box<dyn Link>, started: Option<DataPlaneSpec>) {
        if let Err(error) = self.lend(link.as_mut()) {
            return self.failed(&error);
        }
        let stats = match link.call(&Request::Stats, &[]) {
            Ok((Reply::Stats, fds)) => {
                fds.into_iter().next().map(|fd| StatsReader::open(&File::from(fd)))
            }
            Ok(_) => None,
            Err(error) => return self.failed(&error),
        };
        let account = match link.account() {
            Ok(account) => account,
            Err(error) => return self.failed(&error),
        };
        let mut heard = Account::default();
        heard.hear(account.clone());
        let (pid, known) = (account.pid, Some(Known::new(heard.status())));
        // Of this one nothing is known yet.
        self.has = Inventory::default();
        self.about = self.has.hear(account);
        if !planted("start-untold") {
            self.about.append(&mut differences(&Wanted::default(), &self.wanted));
        }
        self.stale = true;
        self.generation += 1;
        let line = link.watch().map(Arc::new);
        let message_bytes_max = Some(link.message_bytes_max());
        if let Some(stream) = link.watch() {
            let (generation, supervisor) = (self.generation, self.myself.clone());
            process::watch(stream, move || {
                // The supervisor may have ended before.
                let _ = supervisor.send(Command::Hangup(generation));
            });
        }
        self.link = Some(link);
        let kind = if started.is_some() { Kind::DataplaneStarted } else { Kind::DataplaneAdopted };
        self.trail.note(kind, Some(&self.spec.name), format!("process {pid}"));
        let mut view = lock(&self.view);
        (view.pid, view.known, view.line) = (Some(pid), known, line);
        view.message_bytes_max = message_bytes_max;
        view.opened = Arc::default();
        view.pools.clear();
        view.trouble = None;
        view.started_with = started.or_else(|| self.launcher.started_with());
        view.stats = match stats {
            Some(Ok(reader)) => Some(Arc::new(reader)),
            Some(Err(error)) => {
                tracing::warn!(dataplane = %self.spec.name, %error, "no statistics");
                None
            }
            None => None,
        };
    }

    /// There is no data plane now; says why and when to try again.
    fn lost(&mut self, why: &str) {
        let now = turns::now();
        let ended = self.launcher.reap();
        self.link = None;
        let wait = self.backoff.next(now);
        self.connect_at = Some(now + wait);
        self.died(ended.as_deref().unwrap_or(why));
        lock(&self.view).trouble = Some(why.to_owned());
        if !wait.is_zero() {
            tracing::warn!(dataplane = %self.spec.name, why, ?wait, "data plane is down");
        }
    }

    /// Asks the data plane to finish and waits until it is gone; one that does not is killed.
    fn shut_down(&mut self) {
        let silent = lock(&self.view).silent.is_some();
        self.generation += 1;
        let mut link = self.link.take().filter(|_| !silent);
        // Losses that its clients know of are over with it. What it has yet to tell, the next one tells.
        match link.as_mut().and_then(|link| link.account().ok()) {
            Some(account) => drop(self.has.hear(account)),
            None => self.has = Inventory::default(),
        }
        // Whoever cannot be asked is not expected to end.
        let mut kill = link.is_none();
        if let Some(mut link) = link
            && let Err(error) = link.call(&Request::Shutdown, &[])
        {
            tracing::debug!(%error, "no answer to shutdown");
            kill = lock(&self.view).silent.is_some();
        }
        if !self.launcher.await_end(kill) {
            tracing::warn!(dataplane = %self.spec.name, "the data plane does not end and cannot be killed");
        }
        let lost = std::mem::take(&mut self.has);
        let lost = lost.volumes().filter(|volume| volume.lost);
        lost.filter_map(|volume| volume.spec.kind.path())
            .for_each(|path| self.witnesses.told(path));
        self.connect_at = None;
        let mut view = lock(&self.view);
        (view.pid, view.stats, view.line) = (None, None, None);
        view.trouble = Some("it was shut down".to_owned());
    }
}

/// Closes witnesses. Whoever closes a device last waits until everything is written back to it.
pub(crate) fn close(gone: Vec<Arc<OwnedFd>>) {
    if !gone.is_empty() {
        let _ = turns::apart("closing", move || drop(gone));
    }
}

fn grants(all: &Mutex<Grants>) -> MutexGuard<'_, Grants> {
    all.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
