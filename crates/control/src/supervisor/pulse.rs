//! Whether a data plane answers: a second connection to it, on which its account of itself is asked for, and nothing else.
//!
//! The supervisor's own calls may take long: a file is waited for, a volume is preallocated. So whoever reads does not wait for the
//! supervisor. A thread of its own asks when somebody wants to know, and every few seconds by itself, and notes the answer. A request
//! that is not answered in time stays where it is, and the data plane is *silent* until its answer comes or the connection ends: it
//! is stopped, or waits for something under its locks. Silence is not death: nobody else may have what it has.

use super::ailing::{ERRORS, Errors};
use super::view::{Known, View, lock};
use crate::caller::Caller;
use crate::model::loss::has_client;
use crate::trail::{Kind, Trail};
use protocol::message::{
    Account, AdapterStatus, MINOR, Reply, Request, Status, VERSION, VolumeStatus,
};
use protocol::place::reach;
use protocol::socket::Connection;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
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
    asks: Sender<oneshot::Sender<()>>,
}

impl Pulse {
    /// Starts the thread, for the data plane of that name behind that socket.
    pub(super) fn start(
        name: &str,
        socket: PathBuf,
        view: Arc<Mutex<View>>,
        trail: Arc<Trail>,
    ) -> std::io::Result<Pulse> {
        let (asks, inbox) = channel();
        let errors = Errors::default();
        let body = PulseThread { name: name.to_owned(), socket, view, trail, line: None, errors };
        let thread = std::thread::Builder::new().name(format!("pulse-{name}"));
        thread.spawn(move || body.run(&inbox))?;
        Ok(Pulse { asks })
    }

    /// Returns when the data plane was asked: it has answered, or it was noted that it does not.
    pub(super) async fn look(&self) {
        let (done, looked) = oneshot::channel();
        if self.asks.send(done).is_ok() {
            // An error is the end of the thread; what is known stays.
            let _ = looked.await;
        }
    }
}

/// A connection, and since when an answer is awaited on it.
struct Line {
    connection: Connection,
    pending: Option<Instant>,
    /// What the data plane knows beyond the version.
    minor: u32,
    account: Account,
}

struct PulseThread {
    name: String,
    socket: PathBuf,
    view: Arc<Mutex<View>>,
    trail: Arc<Trail>,
    line: Option<Line>,
    errors: Errors,
}

/// How a look ended.
enum Look {
    Answered(Box<Status>),
    /// Nobody is there, or somebody who does not speak this language.
    Nobody,
    /// Nothing came since then.
    Silent(Instant),
}

impl PulseThread {
    fn run(mut self, inbox: &Receiver<oneshot::Sender<()>>) {
        loop {
            let mut waiting = match inbox.recv_timeout(EVERY) {
                Ok(done) => vec![done],
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // Whoever came before the question is asked gets its answer.
            waiting.extend(inbox.try_iter());
            let look = self.look(Instant::now() + PATIENCE);
            self.note(look);
            for done in waiting {
                let _ = done.send(());
            }
        }
    }

    fn note(&mut self, look: Look) {
        let mut view = lock(&self.view);
        let mut seen = Vec::new();
        let silent = match look {
            Look::Answered(status) => {
                if let Some(before) = &view.known {
                    seen = visits(&before.status, &status);
                    seen.extend(troubles(&before.status, &status));
                }
                view.known = Some(Known::new(*status));
                None
            }
            Look::Nobody => None,
            Look::Silent(since) => Some(since),
        };
        let pid = view.pid.map(|pid| format!("process {pid} ")).unwrap_or_default();
        let turn = match (view.silent, silent) {
            (None, Some(_)) => {
                view.silences += 1;
                Some((Kind::DataplaneSilent, format!("{pid}does not answer")))
            }
            (Some(since), None) => {
                let seconds = since.elapsed().as_secs();
                Some((Kind::DataplaneAnswers, format!("{pid}was silent for {seconds} s")))
            }
            _ => None,
        };
        view.silent = silent;
        let counted = view.stats.as_ref().map(|stats| stats.count(ERRORS)).unwrap_or_default();
        let errors = self.errors.take(counted, Instant::now());
        view.ailing = self.errors.ailing();
        drop(view);
        if let Some((kind, message)) = turn {
            self.trail.note(kind, Some(&self.name), message);
        }
        for (kind, adapter, message) in seen.into_iter().chain(errors) {
            self.trail.note(kind, Some(&adapter), message);
        }
    }

    fn look(&mut self, until: Instant) -> Look {
        // A connection that ended since the last look is made anew, once.
        for _ in 0..2 {
            let line = match self.line.take() {
                Some(line) => line,
                None => match self.connect() {
                    Ok(line) => line,
                    Err(error) if is_absent(&error) => return Look::Nobody,
                    // A backlog that is full: it accepts nobody.
                    Err(_) => {
                        return Look::Silent(lock(&self.view).silent.unwrap_or_else(Instant::now));
                    }
                },
            };
            match self.ask(line, until) {
                Some(look) => return look,
                None => self.line = None,
            }
        }
        Look::Nobody
    }

    fn connect(&self) -> std::io::Result<Line> {
        let stream = reach(&self.socket)?;
        stream.set_read_timeout(Some(FRAME_TIMEOUT))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut connection = Connection::new(stream);
        let hello = Request::Hello { version: VERSION, minor: MINOR };
        connection.send(&hello, &[]).map_err(std::io::Error::other)?;
        Ok(Line {
            connection,
            pending: Some(Instant::now()),
            minor: 0,
            account: Account::default(),
        })
    }

    /// Nothing when the connection has ended.
    fn ask(&mut self, mut line: Line, until: Instant) -> Option<Look> {
        // Of what was asked earlier the answer is not what is wanted now.
        let mut asked = false;
        loop {
            if line.pending.is_none() {
                line.connection.send(&Account::question(line.minor), &[]).ok()?;
                (line.pending, asked) = (Some(Instant::now()), true);
            }
            if !readable(&line.connection, until) {
                let since = line.pending.unwrap_or_else(Instant::now);
                self.line = Some(line);
                return Some(Look::Silent(since));
            }
            let (reply, _) = line.connection.receive::<Reply>().ok()?;
            line.pending = None;
            match line.account.hear(reply) {
                Reply::Hello { minor, .. } => line.minor = minor.min(MINOR),
                Reply::Status(status) if asked => {
                    self.line = Some(line);
                    return Some(Look::Answered(Box::new(status)));
                }
                // Another version: the supervisor says so.
                Reply::Error(_) => return Some(Look::Nobody),
                _ => {}
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

/// Clients that came or went between two accounts.
fn visits(before: &Status, now: &Status) -> Vec<(Kind, String, String)> {
    let mut visits = Vec::new();
    // Of another life it says nothing.
    let known = before.adapters.iter().filter(|_| before.pid == now.pid);
    let known: BTreeMap<&str, &AdapterStatus> =
        known.map(|earlier| (earlier.spec.name.as_str(), earlier)).collect();
    for adapter in &now.adapters {
        let name = adapter.spec.name.as_str();
        let earlier = known.get(name);
        let (had, connections) = earlier.map_or((false, 0), |a| (has_client(a), a.connections));
        let has = has_client(adapter);
        let came = has && !had || adapter.connections > connections;
        let left = had && !has || (had || !has) && adapter.connections > connections;
        let reason = adapter.reason.as_deref().unwrap_or("it closed the connection");
        let mut add = |kind, message: String| visits.push((kind, name.to_owned(), message));
        if had && left {
            add(Kind::ClientLeft, reason.to_owned());
        }
        if came {
            let who = adapter.client.map(|client| format!(", {}", Caller::from(client)));
            let who = who.unwrap_or_default();
            add(Kind::ClientConnected, format!("connection {}{who}", adapter.connections));
        }
        if !had && left {
            add(Kind::ClientLeft, reason.to_owned());
        }
        let channels = earlier.map_or(adapter.spec.channels, |earlier| earlier.spec.channels);
        if had && has && !came && channels != adapter.spec.channels {
            let message = format!("channels: {channels}, then {}", adapter.spec.channels);
            add(Kind::Renegotiated, message);
        }
        // From none and to none is a start and a reset.
        let queues = earlier.map_or(0, |earlier| earlier.client_queues);
        if had && has && !came && queues != 0 && ![0, queues].contains(&adapter.client_queues) {
            let message = format!("queues of the client: {queues}, then {}", adapter.client_queues);
            add(Kind::Renegotiated, message);
        }
    }
    visits
}

/// Whether nobody listens there, by what a connection was refused with. Everything else leaves it open.
pub(super) fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, NotFound};
    matches!(error.kind(), ConnectionRefused | NotFound)
}

fn readable(connection: &Connection, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
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
    use protocol::message::{AdapterSpec, AdapterState, NullSpec, VolumeSpec};

    fn status(pid: u32, state: AdapterState, connections: u64) -> Status {
        let desired = crate::config::read(
            "[volume.v]\nkind=\"null\"\nsize=4096\n[adapter.a]\nvolume=\"v\"\n",
        );
        let paths = crate::paths::Paths::in_one("/run/t");
        let wanted = crate::model::resolve::wanted(&desired.unwrap(), "main", &paths);
        let spec: AdapterSpec = wanted.adapters["a"].clone();
        let (reason, channel_of_queue, features) = (None, Vec::new(), Vec::new());
        let adapter = AdapterStatus {
            spec: spec.into(),
            state,
            reason,
            client_queues: 0,
            client_num_io_queues: 0,
            channel_of_queue,
            connections,
            features,
            client: None,
        };
        Status { pid, adapters: vec![adapter], ..Status::default() }
    }

    #[test]
    fn another_number_of_channels_or_queues_under_a_client_is_seen() {
        let before = status(1, AdapterState::Running, 1);
        let mut now = before.clone();
        let mut spec = AdapterSpec::clone(&now.adapters[0].spec);
        spec.channels = 3;
        now.adapters[0].spec = spec.into();
        let found = visits(&before, &now);
        let message = "channels: 0, then 3".to_owned();
        assert_eq!(found, [(Kind::Renegotiated, "a".to_owned(), message)]);
        assert_eq!(visits(&status(1, AdapterState::Listening, 1), &now).len(), 1, "it has come");
        // Other queues of the same client; one that has none is about to have some.
        let mut more = now.clone();
        (now.adapters[0].client_queues, more.adapters[0].client_queues) = (2, 8);
        let message = "queues of the client: 2, then 8".to_owned();
        assert_eq!(visits(&now, &more), [(Kind::Renegotiated, "a".to_owned(), message)]);
        more.adapters[0].client_queues = 0;
        assert_eq!((visits(&now, &more), visits(&more, &now)), (vec![], vec![]));
    }

    #[test]
    fn what_goes_wrong_with_an_open_volume_is_told_once() {
        let with = |pid, trouble: Option<&str>| {
            let mut status = status(pid, AdapterState::Listening, 0);
            status.volumes.push(VolumeStatus {
                spec: VolumeSpec::new("v", NullSpec::default()),
                bytes: 4096,
                access: "none".to_owned(),
                trouble: trouble.map(str::to_owned),
                lost: false,
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

    #[test]
    fn clients_that_come_and_go_between_two_looks_are_seen() {
        use AdapterState::{Listening, Running};
        use Kind::{ClientConnected as Came, ClientLeft as Left};
        for (before, now, expected) in [
            ((1, Listening, 0), (1, Listening, 0), vec![]),
            ((1, Listening, 0), (1, Running, 1), vec![Came]),
            ((1, Running, 1), (1, Running, 1), vec![]),
            ((1, Running, 1), (1, Listening, 1), vec![Left]),
            ((1, Running, 1), (1, Running, 2), vec![Left, Came]),
            ((1, Listening, 1), (1, Listening, 2), vec![Came, Left]),
            // Another process: its client has come to it.
            ((1, Running, 1), (2, Running, 1), vec![Came]),
        ] {
            let state = |(pid, state, connections)| status(pid, state, connections);
            let found = visits(&state(before), &state(now));
            let kinds: Vec<Kind> = found.iter().map(|(kind, ..)| *kind).collect();
            assert_eq!(kinds, expected, "{before:?} to {now:?}");
        }
    }
}
