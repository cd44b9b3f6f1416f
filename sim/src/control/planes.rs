//! The data plane as the server reaches it: a process that lives, dies and is silent, and a line to it that is cut. What it does with a message is
//! the shipped handler's.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use control::link::{CALL_TIMEOUT, Link, LinkError};
use control::model::resolve::DataPlaneSpec;
use control::supervisor::{Asks, Launcher, Look};
use dataplane::sim::Handler;
use memory::sim;
use protocol::message::{
    Account, Changes, Failure, FailureCode, Reply, Request, Selection, Status,
};
use protocol::socket::{FrameError, MESSAGE_BYTES_MAX};

/// The data plane of a run.
#[derive(Default)]
pub(super) struct Plane {
    handler: Option<Rc<Handler>>,
    pid: u32,
    socket: PathBuf,
    /// The data plane's ends of the lines to it.
    lines: Vec<UnixStream>,
    /// It answers nothing.
    silent: bool,
    /// It is to die before the next step.
    doomed: bool,
    /// Once in so many: a message is refused, a line is cut, a start fails, somebody else goes on before an answer.
    pub refuses: u64,
    pub cuts: u64,
    pub fails: u64,
    pub late: u64,
    /// Since when adapters have a client.
    pub clients: BTreeMap<String, u64>,
    /// What was changed.
    pub messages: u64,
    /// Names of what could not be had since it was started.
    pub failed: BTreeSet<String>,
    /// Adapters that were taken from their clients: when that was told, and since when they had them.
    pub parted: Vec<(u64, String, u64)>,
}

thread_local! {
    static PLANE: RefCell<Plane> = RefCell::default();
}

pub(super) fn with<T>(act: impl FnOnce(&mut Plane) -> T) -> T {
    PLANE.with_borrow_mut(act)
}

/// Nothing runs.
pub(super) fn new(socket: PathBuf) {
    PLANE.set(Plane { socket, pid: 1000, ..Plane::default() });
}

/// What runs, if anything does.
pub(super) fn handler() -> Option<Rc<Handler>> {
    with(|plane| plane.handler.clone())
}

pub(super) fn is_silent() -> bool {
    with(|plane| plane.silent)
}

pub(super) fn be_silent(silent: bool) {
    with(|plane| plane.silent = silent);
}

/// It is to die, if it lives.
pub(super) fn doom() {
    with(|plane| plane.doomed = plane.handler.is_some());
}

pub(super) fn is_doomed() -> bool {
    with(|plane| plane.doomed && plane.handler.is_some())
}

/// It dies, with nobody in the middle of something in it.
pub(super) fn die() {
    let (handler, lines) = with(|plane| {
        (plane.silent, plane.doomed) = (false, false);
        plane.clients.clear();
        (plane.handler.take(), std::mem::take(&mut plane.lines))
    });
    let Some(handler) = handler else { return };
    sim::tell(|| "the data plane dies".to_owned());
    sim::met("the data plane dies");
    dataplane::sim::end_threads();
    sim::set_dead(true);
    drop(handler);
    sim::set_dead(false);
    // It had no I/O.
    sim::exhume();
    drop(lines);
}

/// Its account of itself, with the number of its process.
pub(super) fn status() -> Option<Status> {
    Some(own(handler()?.status()))
}

/// With the number of its process.
fn own(status: Status) -> Status {
    Status { pid: with(|plane| plane.pid), ..status }
}

/// Starts and reaches it, for one life of the server.
pub(super) struct Hand {
    pub life: u64,
}

fn cut() -> LinkError {
    LinkError::Frame(FrameError::Io(io::ErrorKind::ConnectionReset.into()))
}

impl Hand {
    fn connect_it(&self) -> Option<Line> {
        let (ours, theirs) = UnixStream::pair().ok()?;
        ours.set_nonblocking(true).ok()?;
        with(|plane| {
            plane.handler.as_ref()?;
            plane.lines.push(theirs);
            Some(Line { life: self.life, pid: plane.pid, ours, told: Account::default() })
        })
    }
}

impl Launcher for Hand {
    fn connect(&mut self) -> Result<Box<dyn Link>, LinkError> {
        if !super::lives(self.life) {
            return Err(LinkError::Absent);
        }
        if is_silent() {
            sim::wait(Duration::from_secs(2), || !is_silent() || !super::lives(self.life));
        }
        if is_silent() {
            return Err(LinkError::Silent { pid: Some(with(|plane| plane.pid)) });
        }
        match self.connect_it() {
            Some(line) => Ok(Box::new(line)),
            None => Err(LinkError::Absent),
        }
    }

    fn launch(&mut self, _: &DataPlaneSpec) -> io::Result<Box<dyn Link>> {
        if !super::lives(self.life) || sim::once_in(with(|plane| plane.fails)) {
            sim::tell(|| "server: the data plane does not start".to_owned());
            return Err(io::Error::other("it does not start"));
        }
        let socket = with(|plane| plane.socket.clone());
        let handler = Handler::start(&socket).map_err(io::Error::other)?;
        with(|plane| {
            plane.pid += 1;
            plane.failed.clear();
            plane.handler = Some(Rc::new(handler));
        });
        sim::tell(|| format!("server: starts data plane {}", with(|plane| plane.pid)));
        self.connect_it()
            .map(|line| Box::new(line) as Box<dyn Link>)
            .ok_or_else(|| io::Error::other("it died"))
    }

    fn started_with(&self) -> Option<DataPlaneSpec> {
        None
    }

    fn reap(&mut self) -> Option<String> {
        None
    }

    fn await_end(&mut self, _: bool) -> bool {
        doom();
        sim::wait(Duration::from_secs(5), || handler().is_none() || !super::lives(self.life));
        handler().is_none()
    }

    fn socket(&self) -> &Path {
        Path::new("/nowhere")
    }

    fn line(&self) -> Box<dyn Asks> {
        Box::new(Question { life: self.life, since: None, told: Account::default() })
    }
}

/// How the server asks how it is.
struct Question {
    life: u64,
    since: Option<std::time::Instant>,
    told: Account,
}

impl Asks for Question {
    fn look(&mut self, of: Option<Selection>, _: Option<std::time::Instant>) -> Look {
        if is_silent() {
            sim::wait(Duration::from_millis(700), || !is_silent() || !super::lives(self.life));
        }
        if is_silent() {
            return Look::Silent(*self.since.get_or_insert_with(sim::instant));
        }
        self.since = None;
        let Some(handler) = handler() else { return Look::Nobody };
        match of {
            Some(of) => match handler.handle(Request::ChangesOf(of.clone())) {
                Reply::Status(status) => {
                    Look::Named(Box::new(changes(self.told.tell_of(of, own(status)))))
                }
                other => panic!("no account: {other:?}"),
            },
            None => status().map_or(Look::Nobody, |status| Look::Answered(Box::new(status))),
        }
    }
}

/// What a reply has of changes.
fn changes(reply: Reply) -> Changes {
    match reply {
        Reply::Changes(changes) => changes,
        other => panic!("no changes: {other:?}"),
    }
}

/// A line to it.
struct Line {
    life: u64,
    pid: u32,
    ours: UnixStream,
    told: Account,
}

impl Line {
    /// It is still the process to which it leads, and nobody has cut it.
    fn holds(&self) -> bool {
        let mut byte = [0];
        let open = matches!(io::Read::read(&mut &self.ours, &mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        open && super::lives(self.life)
            && with(|plane| plane.handler.is_some() && plane.pid == self.pid && !plane.doomed)
    }

    fn cut(&self, when: &str) -> LinkError {
        sim::met("a line is cut");
        sim::tell(|| format!("the line is cut {when}"));
        let _ = self.ours.shutdown(std::net::Shutdown::Both);
        cut()
    }
}

/// What a message changes, in words.
fn name(request: &Request) -> Option<String> {
    Some(match request {
        Request::PutVolume(spec) => format!("put volume {}", spec.name),
        Request::ResizeVolume { name, bytes, .. } => format!("resize volume {name} to {bytes}"),
        Request::RemoveVolume { name, .. } => format!("remove volume {name}"),
        Request::PutUnit(spec) => format!("put unit {}", spec.name),
        Request::RemoveUnit { name } => format!("remove unit {name}"),
        Request::PutAdapter(spec) => format!("put adapter {}", spec.name),
        Request::RemoveAdapter { name } => format!("remove adapter {name}"),
        _ => return None,
    })
}

/// What a message was to bring could not be had.
fn fails(request: &Request) {
    let name = match request {
        Request::PutVolume(spec) => &spec.name,
        Request::PutUnit(spec) => &spec.name,
        _ => return,
    };
    with(|plane| plane.failed.insert(name.clone()));
}

impl Link for Line {
    fn call(
        &mut self,
        request: &Request,
        _: &[BorrowedFd<'_>],
    ) -> Result<(Reply, Vec<OwnedFd>), LinkError> {
        let (late, cuts, refuses) = with(|plane| (plane.late, plane.cuts, plane.refuses));
        while sim::once_in(late) {
            sim::others();
        }
        if is_silent() {
            sim::wait(CALL_TIMEOUT, || !is_silent() || !self.holds());
            if is_silent() && self.holds() {
                return Err(LinkError::Frame(FrameError::Io(io::ErrorKind::TimedOut.into())));
            }
        }
        if !self.holds() {
            return Err(cut());
        }
        let what = name(request);
        if what.is_some() && sim::once_in(cuts) {
            return Err(self.cut("before a message"));
        }
        let puts =
            matches!(request, Request::PutVolume(_) | Request::PutUnit(_) | Request::PutAdapter(_));
        if puts && sim::once_in(refuses) {
            sim::met("a message is refused");
            fails(request);
            sim::tell(|| format!("data plane: refuses to {}", what.unwrap_or_default()));
            let failure = Failure {
                code: FailureCode::System,
                message: "there is no memory for it".to_owned(),
                help: None,
            };
            return Ok((Reply::Error(failure), Vec::new()));
        }
        let Some(handler) = handler() else { return Err(cut()) };
        if let Request::Stats = request {
            return Ok((Reply::Done, Vec::new()));
        }
        let parts = match request {
            Request::RemoveAdapter { name } => {
                with(|plane| plane.clients.get(name).map(|since| (name.clone(), *since)))
            }
            _ => None,
        };
        if what.is_some() {
            with(|plane| plane.messages += 1);
        }
        let reply = handler.handle(request.clone());
        if let Reply::Error(Failure { code, .. }) = &reply
            && *code != FailureCode::Opening
        {
            fails(request);
        }
        if let Some(what) = &what {
            sim::tell(|| {
                let answer = match &reply {
                    Reply::Error(failure) => super::clean(&failure.message),
                    _ => "done".to_owned(),
                };
                format!("data plane: {what}: {answer}")
            });
        }
        if let (Some((name, since)), Reply::Done) = (parts, &reply) {
            with(|plane| {
                plane.clients.remove(&name);
                plane.parted.push((sim::now_ns(), name, since));
            });
        }
        drop(handler);
        if !self.holds() {
            return Err(cut());
        }
        if what.is_some() && sim::once_in(cuts) {
            return Err(self.cut("before an answer"));
        }
        if *request == Request::Shutdown {
            doom();
        }
        Ok((reply, Vec::new()))
    }

    fn account(&mut self) -> Result<Changes, LinkError> {
        let reply = self.call(&Request::Status, &[])?.0;
        let Reply::Status(status) = reply else {
            return Err(LinkError::OutOfTurn(format!("{reply:?}")));
        };
        Ok(changes(self.told.tell(Status { pid: self.pid, ..status })))
    }

    fn account_of(&mut self, of: Selection) -> Result<Changes, LinkError> {
        let reply = self.call(&Request::ChangesOf(of.clone()), &[])?.0;
        let Reply::Status(status) = reply else {
            return Err(LinkError::OutOfTurn(format!("{reply:?}")));
        };
        Ok(changes(self.told.tell_of(of, Status { pid: self.pid, ..status })))
    }

    fn message_bytes_max(&self) -> u32 {
        MESSAGE_BYTES_MAX
    }

    fn watch(&self) -> Option<UnixStream> {
        self.ours.try_clone().ok()
    }
}

/// Adapters that have a client now, and that could have one.
pub(super) fn adapters() -> (BTreeSet<String>, BTreeSet<String>) {
    let has: BTreeSet<String> = with(|plane| plane.clients.keys().cloned().collect());
    let all = status().map(|status| status.adapters).unwrap_or_default();
    let all = all.into_iter().map(|adapter| adapter.spec.name.clone());
    (has.clone(), all.filter(|name| !has.contains(name)).collect())
}
