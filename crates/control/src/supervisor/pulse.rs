//! Whether a data plane answers: a second connection to it, on which its account of itself is asked for, and nothing else.
//!
//! The supervisor's own calls may take long: a file is waited for, a volume is preallocated. So whoever reads does not wait for the
//! supervisor. A thread of its own asks when somebody wants to know, and every few seconds by itself, and notes the answer. A request
//! that is not answered in time stays where it is, and the data plane is *silent* until its answer comes or the connection ends: it
//! is stopped, or waits for something under its locks. Silence is not death: nobody else may have what it has.

mod pool_events;

use super::Command;
use super::ailing::{ERRORS, Errors};
use super::view::{Known, View, lock};
use super::visits;
use crate::trail::{Kind, Trail};
use crate::turns::{self, Attends};
use protocol::message::{
    Account, Changes, MINOR, Reply, Request, Selection, Status, VERSION, VolumeStatus,
};
use protocol::place::reach;
use protocol::socket::Connection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long an answer may take before what is known has to do. Reads are answered within a second.
const PATIENCE: Duration = Duration::from_millis(700);
/// How often a data plane is asked when nobody wants to know.
const EVERY: Duration = Duration::from_secs(5);
/// How long an answer that has begun may take to arrive.
const FRAME_TIMEOUT: Duration = Duration::from_secs(5);

/// A handle on the thread.
#[derive(Debug)]
pub(super) struct Pulse {
    asks: Sender<Ask>,
}

/// What somebody wants to know.
#[derive(Debug)]
enum Ask {
    /// All: it is noted.
    All(oneshot::Sender<()>),
    /// What is named, which is noted nowhere; nothing where all was looked at in its place.
    Of(Selection, oneshot::Sender<Option<Changes>>),
}

impl Pulse {
    /// Starts the thread, for the data plane of that name at the end of that line.
    pub(super) fn start(
        name: &str,
        line: Box<dyn Asks>,
        view: Arc<Mutex<View>>,
        trail: Arc<Trail>,
        supervisor: Sender<Command>,
    ) -> std::io::Result<Pulse> {
        let (asks, inbox) = channel();
        let errors = Errors::default();
        let body = PulseThread {
            name: name.to_owned(),
            line,
            view,
            trail,
            supervisor,
            told: None,
            errors,
            silent_pid: None,
            due: turns::now() + EVERY,
        };
        turns::start(format!("pulse-{name}"), inbox, body)?;
        Ok(Pulse { asks })
    }

    /// Returns when the data plane was asked: it has answered, or it was noted that it does not.
    pub(super) async fn look(&self) {
        let (done, looked) = oneshot::channel();
        if self.asks.send(Ask::All(done)).is_ok() {
            // An error is the end of the thread; what is known stays.
            let _ = looked.await;
        }
    }

    /// What the data plane has of what is named. Nothing where it says nothing of that alone: then what is known is as new as can be.
    pub(super) async fn look_at(&self, of: Selection) -> Option<Changes> {
        let (done, looked) = oneshot::channel();
        self.asks.send(Ask::Of(of, done)).ok()?;
        looked.await.ok()?
    }
}

/// A connection, and since when an answer is awaited on it.
#[derive(Debug)]
struct Line {
    connection: Connection,
    pending: Option<Instant>,
    /// What the data plane knows beyond the version.
    minor: u32,
    account: Account,
}

struct PulseThread {
    name: String,
    line: Box<dyn Asks>,
    view: Arc<Mutex<View>>,
    trail: Arc<Trail>,
    supervisor: Sender<Command>,
    /// The account up to which it was told what happened.
    told: Option<Arc<Status>>,
    errors: Errors,
    /// The process that is silent.
    silent_pid: Option<u32>,
    /// When it asks although nobody wants to know.
    due: Instant,
}

/// How a data plane is asked how it is. Tests bring one without a socket.
pub trait Asks: Send {
    /// Asks for what is named, or for all, and waits a little. `since`: it is silent since then.
    fn look(&mut self, of: Option<Selection>, since: Option<Instant>) -> Look;
}

/// How a look ended.
#[derive(Debug)]
pub enum Look {
    /// With its account.
    Answered(Box<Status>),
    /// What was named.
    Named(Box<Changes>),
    /// Nobody is there, or somebody who does not speak this language.
    Nobody,
    /// Nothing came since then.
    Silent(Instant),
}

impl Attends for PulseThread {
    type Message = Ask;

    fn due(&self) -> Option<Instant> {
        Some(self.due)
    }

    fn attend(&mut self, ask: Option<Ask>, inbox: &Receiver<Ask>) -> bool {
        let mut waiting = Vec::new();
        match ask {
            Some(Ask::Of(of, done)) => {
                let _ = done.send(self.look_at(of));
                return true;
            }
            Some(Ask::All(done)) => waiting.push(done),
            None => {}
        }
        // Whoever came before the question is asked gets its answer.
        let mut named = Vec::new();
        for ask in inbox.try_iter() {
            match ask {
                Ask::All(done) => waiting.push(done),
                Ask::Of(_, done) => named.push(done),
            }
        }
        let look = self.look(None);
        self.note(look);
        for done in waiting {
            let _ = done.send(());
        }
        for done in named {
            let _ = done.send(None);
        }
        self.due = turns::now() + EVERY;
        true
    }
}

impl PulseThread {
    fn look(&mut self, of: Option<Selection>) -> Look {
        let (since, pid) = {
            let view = lock(&self.view);
            (view.silent, view.pid)
        };
        let look = self.line.look(of, since);
        // The supervisor is connected still, where only the file of the socket is gone.
        if matches!(look, Look::Nobody) && pid.is_some() {
            let _ = self.supervisor.send(Command::Unreachable);
        }
        look
    }

    fn look_at(&mut self, of: Selection) -> Option<Changes> {
        // Whoever was silent is asked for all: what it has to say of that is to be noted.
        let of = Some(of).filter(|_| lock(&self.view).silent.is_none());
        match self.look(of) {
            Look::Named(changes) => Some(*changes),
            other => {
                self.note(other);
                None
            }
        }
    }

    fn note(&mut self, look: Look) {
        let mut view = lock(&self.view);
        let (mut seen, mut ill, mut of_pools) = (Vec::new(), Vec::new(), Vec::new());
        let silent = match look {
            Look::Answered(status) => {
                let now = Known::new(*status);
                // The supervisor asks, too: what is known already may not have been told.
                let told = self.told.replace(Arc::clone(&now.status));
                let lost = |pool: &str| self.trail.lost_pvs(pool);
                let known_until = |adapter: &str| self.trail.last_visit_ms(adapter);
                let is_first = told.is_none();
                let first = is_first.then_some(known_until);
                let known = view.known.replace(now.clone()).map(|known| known.status);
                if let Some(before) = told.or(known) {
                    seen = visits::between(&before, &now.status, first);
                    ill = troubles(&before, &now.status);
                    of_pools = pool_events::between(&before, &now.status, is_first, lost);
                } else {
                    let nothing = Status::default();
                    of_pools = pool_events::between(&nothing, &now.status, is_first, lost);
                }
                None
            }
            Look::Nobody | Look::Named(_) => None,
            Look::Silent(since) => Some(since),
        };
        let pid = view.pid.map(|pid| format!("process {pid} ")).unwrap_or_default();
        let turn = match (view.silent, silent) {
            (None, Some(_)) => {
                view.silences += 1;
                self.silent_pid = view.pid;
                Some((Kind::DataplaneSilent, format!("{pid}does not answer")))
            }
            // One that died of it answers no more; its death is told.
            (Some(_), None) if view.pid != self.silent_pid => None,
            (Some(since), None) => {
                let seconds = turns::since(since).as_secs();
                Some((Kind::DataplaneAnswers, format!("{pid}was silent for {seconds} s")))
            }
            _ => None,
        };
        view.silent = silent;
        let counted = view.stats.as_ref().map(|stats| stats.count(ERRORS));
        let take = |counted| self.errors.take(&counted, turns::now());
        let errors = counted.map(take).unwrap_or_default();
        view.ailing = self.errors.ailing();
        let known = view.known.as_ref().map(|known| Arc::clone(&known.status));
        drop(view);
        if let Some((kind, message)) = turn {
            self.trail.note(kind, Some(&self.name), message);
        }
        for visits::Seen { at_ms, kind, adapter, message } in seen {
            self.trail.note_at(at_ms, kind, Some(&adapter), message);
        }
        for (kind, name, message) in ill {
            self.trail.note(kind, Some(&name), message);
        }
        for pool_events::Told { kind, pool, pv, message } in of_pools {
            self.trail.of_pool(kind, &pool, pv, message);
        }
        for (adapter, message) in errors {
            let mut all = known.iter().flat_map(|status| &status.adapters);
            let spec = all.find(|it| it.spec.name == adapter).map(|it| &it.spec);
            let volume = spec.and_then(|spec| spec.block()).map(|block| block.volume.as_str());
            self.trail.failing(&adapter, volume, message);
        }
    }
}

/// Asks through a connection of its own.
#[derive(Debug)]
pub(super) struct Asking {
    socket: PathBuf,
    line: Option<Line>,
}

impl Asks for Asking {
    fn look(&mut self, of: Option<Selection>, since: Option<Instant>) -> Look {
        let until = turns::now() + PATIENCE;
        // A connection that ended since the last look is made anew, once.
        for _ in 0..2 {
            let line = match self.line.take() {
                Some(line) => line,
                None => match self.connect() {
                    Ok(line) => line,
                    Err(error) if is_absent(&error) => return Look::Nobody,
                    // A backlog that is full: it accepts nobody.
                    Err(_) => {
                        return Look::Silent(since.unwrap_or_else(turns::now));
                    }
                },
            };
            match self.ask(line, of.as_ref(), until) {
                Some(look) => return look,
                None => self.line = None,
            }
        }
        Look::Nobody
    }
}

impl Asking {
    pub(super) fn at(socket: PathBuf) -> Asking {
        Asking { socket, line: None }
    }

    fn connect(&self) -> std::io::Result<Line> {
        let stream = reach(&self.socket)?;
        stream.set_read_timeout(Some(FRAME_TIMEOUT))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut connection = Connection::new(stream);
        let hello = Request::Hello { version: VERSION, minor: MINOR };
        connection.send(&hello, &[]).map_err(std::io::Error::other)?;
        Ok(Line { connection, pending: Some(turns::now()), minor: 0, account: Account::default() })
    }

    /// Nothing when the connection has ended.
    fn ask(&mut self, mut line: Line, of: Option<&Selection>, until: Instant) -> Option<Look> {
        // Of what was asked earlier the answer is not what is wanted now.
        let mut asked = None;
        loop {
            if line.pending.is_none() {
                let named = of.filter(|_| line.minor >= 8);
                let question = match named {
                    Some(of) => Request::ChangesOf(of.clone()),
                    None => Account::question(line.minor),
                };
                line.connection.send(&question, &[]).ok()?;
                (line.pending, asked) = (Some(turns::now()), Some(named.is_some()));
            }
            if !readable(&line.connection, until) {
                let since = line.pending.unwrap_or_else(turns::now);
                self.line = Some(line);
                return Some(Look::Silent(since));
            }
            let (reply, _) = line.connection.receive::<Reply>().ok()?;
            line.pending = None;
            let look = match reply {
                Reply::Hello { minor, .. } => {
                    line.minor = minor.min(MINOR);
                    continue;
                }
                // One of an earlier version tells all.
                Reply::Status(status) => {
                    line.account.tell(status);
                    Look::Answered(Box::new(line.account.status()))
                }
                Reply::Changes(changes) => {
                    line.account.hear(changes.clone());
                    match asked {
                        Some(true) => Look::Named(Box::new(changes)),
                        Some(false) => Look::Answered(Box::new(line.account.status())),
                        None => continue,
                    }
                }
                // Another version: the supervisor says so.
                Reply::Error(_) => return Some(Look::Nobody),
                _ => continue,
            };
            if asked.is_some() {
                self.line = Some(line);
                return Some(look);
            }
        }
    }
}

/// Open volumes with which something is wrong now, and was not, or something else.
fn troubles(before: &Status, now: &Status) -> Vec<(Kind, String, String)> {
    let ill = now.volumes.iter().filter_map(|volume| Some((volume, volume.trouble.as_ref()?)));
    let known = |volume: &VolumeStatus, trouble: &String| {
        let mut earlier = before.volumes.iter().filter(|_| before.pid == now.pid);
        earlier.any(|it| it.spec.name == volume.spec.name && it.trouble.as_ref() == Some(trouble))
    };
    let new = ill.filter(|(volume, trouble)| !known(volume, trouble));
    new.map(|(volume, trouble)| (Kind::VolumeError, volume.spec.name.clone(), trouble.clone()))
        .collect()
}

/// Whether nobody listens there, by what a connection was refused with. Everything else leaves it open.
pub(super) fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, NotFound};
    matches!(error.kind(), ConnectionRefused | NotFound)
}

fn readable(connection: &Connection, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(turns::now());
        let timeout = Timespec::try_from(left).ok();
        let mut fds = [PollFd::new(connection.stream(), PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) | Err(_) => return false,
            // The end can be read as well.
            Ok(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::message::{NullSpec, VolumeSpec};

    #[test]
    fn what_goes_wrong_with_an_open_volume_is_told_once() {
        let with = |pid, trouble: Option<&str>| {
            let mut status = Status { pid, ..Status::default() };
            status.volumes.push(VolumeStatus {
                spec: VolumeSpec::new("v", NullSpec::default()),
                bytes: 4096,
                access: "none".to_owned(),
                trouble: trouble.map(str::to_owned),
                lost: false,
                removed: false,
                identity: None,
            });
            status
        };
        for (before, now, told) in [
            ((1, None), (1, None), false),
            ((1, None), (1, Some("its file was removed")), true),
            ((1, Some("its file was removed")), (1, Some("its file was removed")), false),
            ((1, Some("its file was removed")), (1, Some("it is shorter")), true),
            ((1, Some("it is shorter")), (1, None), false),
            ((1, Some("it is shorter")), (2, Some("it is shorter")), true),
        ] {
            let found = troubles(&with(before.0, before.1), &with(now.0, now.1));
            let expected = now.1.filter(|_| told);
            let expected = expected.map(|it| (Kind::VolumeError, "v".to_owned(), it.to_owned()));
            assert_eq!(found, Vec::from_iter(expected), "{before:?} to {now:?}");
        }
    }
}
