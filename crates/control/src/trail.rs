//! The trail: what was changed and by whom, and what happened to data planes, clients and volumes.
//!
//! Each event goes to the log, with its fields, and into a bounded file beside the store, `events.jsonl`, so that it is still there after
//! a restart. It has a file of its own: no flood of events delays a change, or can harm the state. Who wants to follow waits for a
//! number higher than the last that it saw.

use crate::caller::Caller;
use crate::store::is_at;
use crate::trouble::Trouble;
use fabric::attribute::Object;
use protocol::now_ms;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use tokio::sync::watch;
use utoipa::ToSchema;

mod book;
mod filling;
mod links;
mod pools;

use book::Book;
use filling::Filling;
use links::LinkBook;
pub use links::{LinkChange, LinkCounts, Links};

/// Most events that are kept.
pub const EVENTS_MAX: usize = 2000;
/// Longest message that is kept; what is beyond is cut.
const MESSAGE_BYTES_MAX: usize = 1000;

/// What kind of thing happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The server started.
    ServerStarted,
    /// The server ended in good order.
    ServerStopped,
    /// Somebody changed something, or tried to.
    Change,
    /// A data plane was started.
    DataplaneStarted,
    /// A data plane that ran already was taken over.
    DataplaneAdopted,
    /// A data plane went away.
    DataplaneDied,
    /// A data plane does not answer.
    DataplaneSilent,
    /// A data plane answers again.
    DataplaneAnswers,
    /// A client connected to an adapter.
    ClientConnected,
    /// A client left an adapter.
    ClientLeft,
    /// The link of an adapter or a port went down.
    LinkDown,
    /// It is there.
    LinkUp,
    /// An adapter went from one port to another.
    Remapped,
    /// The client of an adapter has another number of channels, or uses another number of queues.
    Renegotiated,
    /// A shared Ethernet adapter bridges, or bridges no more.
    Failover,
    /// Requests to a volume failed.
    VolumeError,
    /// Something is wrong with an open storage pool.
    PoolError,
    /// A storage pool is full, and writes wait for space.
    PoolFull,
    /// None waits any more.
    PoolSpace,
    /// A storage pool comes near to what it was to be warned of: filled to a threshold, full in days, overcommitted.
    PoolAlert,
    /// It no longer does.
    PoolAlertOver,
    /// A PV of a mirrored storage pool failed, or was not there when that was opened.
    PvLost,
    /// It is there again.
    PvReturned,
    /// PVs that were away get what they missed.
    ResyncStarted,
    /// They have it.
    ResyncEnded,
    /// What could not be read on a PV was written there again from the other failure group.
    PvRepaired,
    /// … and cannot be read all the same.
    PvUnreadable,
    /// What the failure groups have differs.
    LegsDiffer,
    /// Something cannot be read on any PV.
    BlockLost,
    /// An operation that took a while has ended.
    Operation,
}

impl Kind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::ServerStarted => "server_started",
            Kind::ServerStopped => "server_stopped",
            Kind::Change => "change",
            Kind::DataplaneStarted => "dataplane_started",
            Kind::DataplaneAdopted => "dataplane_adopted",
            Kind::DataplaneDied => "dataplane_died",
            Kind::DataplaneSilent => "dataplane_silent",
            Kind::DataplaneAnswers => "dataplane_answers",
            Kind::ClientConnected => "client_connected",
            Kind::ClientLeft => "client_left",
            Kind::LinkDown => "link_down",
            Kind::LinkUp => "link_up",
            Kind::Remapped => "remapped",
            Kind::Renegotiated => "renegotiated",
            Kind::Failover => "failover",
            Kind::VolumeError => "volume_error",
            Kind::PoolError => "pool_error",
            Kind::PoolFull => "pool_full",
            Kind::PoolSpace => "pool_space",
            Kind::PoolAlert => "pool_alert",
            Kind::PoolAlertOver => "pool_alert_over",
            Kind::PvLost => "pv_lost",
            Kind::PvReturned => "pv_returned",
            Kind::ResyncStarted => "resync_started",
            Kind::ResyncEnded => "resync_ended",
            Kind::PvRepaired => "pv_repaired",
            Kind::PvUnreadable => "pv_unreadable",
            Kind::LegsDiffer => "legs_differ",
            Kind::BlockLost => "block_lost",
            Kind::Operation => "operation",
        }
    }

    /// Whether it is about a data plane, and so about all that it serves.
    fn is_of_dataplane(self) -> bool {
        use Kind::*;
        matches!(
            self,
            DataplaneStarted
                | DataplaneAdopted
                | DataplaneDied
                | DataplaneSilent
                | DataplaneAnswers
        )
    }

    /// Whether somebody should look at it.
    fn is_bad(self) -> bool {
        use Kind::*;
        matches!(
            self,
            DataplaneDied
                | DataplaneSilent
                | VolumeError
                | PoolError
                | PoolFull
                | PoolAlert
                | PvLost
                | PvUnreadable
                | LegsDiffer
                | BlockLost
        )
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Its number: each has a higher one than the event before.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// What kind of thing.
    pub kind: Kind,
    /// To whom: the name of an adapter, a volume or a data plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Who else it is about: what a change changed, the port of a link, the adapters of a port or a data plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// What, in words.
    pub message: String,
    /// Of a change: `done`, `refused` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Of a change: who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
}

/// An event, and when it was by a clock that nobody sets.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Noted {
    #[serde(flatten)]
    event: Event,
    /// Earlier programs kept none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    up: Option<Up>,
}

/// A time since the start of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Up {
    /// Which start: a sum over what the kernel calls it.
    boot: u64,
    ms: u64,
}

impl Up {
    /// Nothing where the system does not say which start it was.
    fn now() -> Option<Up> {
        static BOOT: OnceLock<Option<u64>> = OnceLock::new();
        let boot = *BOOT.get_or_init(|| {
            let id = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
            Some(crate::sum::sum(&[&id]))
        });
        let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let ms =
            u64::try_from(up.tv_sec).ok()? * 1000 + u64::try_from(up.tv_nsec).ok()? / 1_000_000;
        Some(Up { boot: boot?, ms })
    }
}

/// Two clocks at one moment.
#[derive(Debug, Clone, Copy)]
struct Moment {
    at_ms: u64,
    up: Option<Up>,
}

impl Moment {
    fn now() -> Moment {
        Moment { at_ms: now_ms(), up: Up::now() }
    }

    /// What the clock of the host, as it goes now, would have shown when something happened: it may have been set since.
    fn of(&self, noted: &Noted) -> u64 {
        match (self.up, noted.up) {
            (Some(now), Some(then)) if now.boot == then.boot => {
                self.at_ms.saturating_sub(now.ms.saturating_sub(then.ms))
            }
            _ => noted.event.at_ms,
        }
    }
}

/// The trail of a server.
#[derive(Debug)]
pub struct Trail {
    kept: Mutex<Kept>,
    links: Mutex<LinkBook>,
    filling: Mutex<Book<Filling>>,
    last: watch::Sender<u64>,
}

#[derive(Debug)]
struct Kept {
    events: VecDeque<Noted>,
    /// By kind, since this server started.
    counts: BTreeMap<Kind, u64>,
    path: PathBuf,
    /// Nothing while it cannot be written.
    file: Option<File>,
    /// Why.
    trouble: Trouble,
    /// Lines in the file.
    lines: usize,
}

impl Trail {
    /// Opens the trail of earlier servers, to go on with it. What cannot be read of it is left out.
    pub fn open(path: &Path) -> Trail {
        let events = read(path);
        let last = events.back().map_or(0, |noted: &Noted| noted.event.number);
        let mut kept = Kept { events, ..Kept::empty(path) };
        kept.rewrite();
        let links = LinkBook::open(path.with_file_name("links.json"), "counts of links");
        let filling = Book::open(path.with_file_name("filling.json"), "samples of pools");
        Trail {
            kept: Mutex::new(kept),
            links: Mutex::new(links),
            filling: Mutex::new(filling),
            last: watch::Sender::new(last),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Notes that something happened to somebody.
    pub fn note(&self, kind: Kind, subject: Option<&str>, message: impl Into<String>) {
        self.note_at(None, kind, subject, message);
    }

    /// The same of something that is known to have happened at a time, in milliseconds since 1970: others may have been noted that came after it.
    pub fn note_at(
        &self,
        at_ms: Option<u64>,
        kind: Kind,
        subject: Option<&str>,
        message: impl Into<String>,
    ) {
        let event = Event::new(kind, message.into());
        let at_ms = at_ms.unwrap_or(event.at_ms);
        self.add(Event { at_ms, subject: subject.map(str::to_owned), ..event });
    }

    /// Notes that requests of an adapter's client failed, which is about the volume behind it, too.
    pub fn failing(&self, adapter: &str, volume: Option<&str>, message: String) {
        let (subject, of) = (Some(adapter.to_owned()), volume.map(str::to_owned));
        let event = Event::new(Kind::VolumeError, message);
        self.add(Event { subject, of: of.into_iter().collect(), ..event });
    }

    /// Until when it is known who came to an adapter and who left, in milliseconds since 1970: the time of what was noted last, whatever times
    /// others have, since the clock may have been set back.
    pub fn last_visit_ms(&self, adapter: &str) -> u64 {
        let kept = self.kept();
        let visit = |event: &&Event| {
            matches!(event.kind, Kind::ClientConnected | Kind::ClientLeft) && event.is_of(adapter)
        };
        kept.all().rev().find(visit).map_or(0, |event| event.at_ms)
    }

    /// Notes what somebody did to the link of one, about which others are told, too. It is counted for `counted`.
    pub fn link(
        &self,
        by: Option<Caller>,
        kind: Kind,
        (subject, of): (&str, Vec<String>),
        counted: &[(Object, String)],
        message: String,
    ) {
        let change = LinkChange { at_ms: now_ms(), kind, message: message.clone(), by };
        self.links().count(counted, &change);
        self.add(Event { subject: Some(subject.to_owned()), of, by, ..Event::new(kind, message) });
    }

    /// What became of the links of ports and adapters so far.
    pub fn link_counts(&self) -> Arc<Links> {
        self.links().counts()
    }

    /// A port or an adapter is gone for good.
    pub fn forget_link(&self, object: Object, name: &str) {
        self.links().forget(object, name);
    }

    fn links(&self) -> MutexGuard<'_, LinkBook> {
        self.links.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Notes what became of a change of these objects.
    pub fn changed(&self, by: Option<Caller>, result: &str, of: Vec<String>, message: String) {
        let result = Some(result.to_owned());
        self.add(Event { of, result, by, ..Event::new(Kind::Change, message) });
    }

    fn add(&self, mut event: Event) {
        if event.message.len() > MESSAGE_BYTES_MAX {
            let end = (0..=MESSAGE_BYTES_MAX).rev().find(|at| event.message.is_char_boundary(*at));
            event.message.truncate(end.unwrap_or(0));
            event.message.push('…');
        }
        log(&event);
        let mut kept = self.kept();
        event.number = kept.events.back().map_or(0, |last| last.event.number) + 1;
        let number = event.number;
        *kept.counts.entry(event.kind).or_default() += 1;
        let Moment { at_ms, up } = Moment::now();
        // What is told late was earlier.
        let late = at_ms.saturating_sub(event.at_ms);
        let up = up.map(|up| Up { ms: up.ms.saturating_sub(late), ..up });
        kept.append(Noted { event, up });
        drop(kept);
        self.last.send_replace(number);
    }

    /// The events behind a number, not older than a moment of the host's clock as it goes now, oldest first.
    pub fn since(&self, number: u64, at_ms: u64) -> Vec<Event> {
        self.kept().behind((number, at_ms), Moment::now()).cloned().collect()
    }

    /// Those of them that are about somebody, and, from the first of these that is kept on, those about the data plane that serves it.
    pub fn of(&self, name: &str, home: Option<&str>, (number, at_ms): (u64, u64)) -> Vec<Event> {
        let kept = self.kept();
        let first = kept.all().find(|event| event.is_of(name)).map(|event| event.number);
        let of_home = |event: &Event| {
            home.is_some() && event.kind.is_of_dataplane() && event.subject.as_deref() == home
        };
        let wanted = |event: &&Event| {
            event.is_of(name) || first.is_some_and(|n| event.number > n) && of_home(event)
        };
        kept.behind((number, at_ms), Moment::now()).filter(wanted).cloned().collect()
    }

    /// Tries again to keep over a restart what could not be kept. Why it still cannot, if so.
    pub fn mend(&self) -> Option<String> {
        let mut kept = self.kept();
        // Somebody may have removed it.
        if !kept.file.as_ref().is_some_and(|file| is_at(&kept.path, file)) {
            kept.rewrite();
        }
        let events = kept.trouble.why().cloned();
        drop(kept);
        events.or(self.links().mend()).or(self.filling().mend())
    }

    /// Returns when there is an event behind a number.
    pub async fn beyond(&self, number: u64) {
        // An error is the end of the trail, which is not before its server's.
        let _ = self.last.subscribe().wait_for(|last| *last > number).await;
    }

    /// The number of the last one.
    pub fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// How many there were of each kind since this server started.
    pub fn counts(&self) -> BTreeMap<Kind, u64> {
        self.kept().counts.clone()
    }
}

impl Event {
    fn new(kind: Kind, message: String) -> Event {
        let (subject, of, result, by) = (None, Vec::new(), None, None);
        Event { number: 0, at_ms: now_ms(), kind, subject, of, message, result, by }
    }

    /// Whether it is about somebody.
    pub fn is_of(&self, name: &str) -> bool {
        self.subject.as_deref() == Some(name) || self.of.iter().any(|one| one == name)
    }
}

impl Kept {
    fn empty(path: &Path) -> Kept {
        let (events, counts) = (VecDeque::new(), BTreeMap::new());
        let (path, trouble) = (path.to_owned(), Trouble::default());
        Kept { events, counts, path, file: None, trouble, lines: 0 }
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = &Event> {
        self.events.iter().map(|noted| &noted.event)
    }

    /// Those behind a number, not older than a moment of the host's clock as it goes now.
    fn behind(&self, (number, at_ms): (u64, u64), now: Moment) -> impl Iterator<Item = &Event> {
        let wanted = move |noted: &&Noted| noted.event.number > number && now.of(noted) >= at_ms;
        self.events.iter().filter(wanted).map(|noted| &noted.event)
    }

    fn append(&mut self, noted: Noted) {
        let line = serde_json::to_string(&noted).expect("plain values are JSON");
        self.events.push_back(noted);
        bound(&mut self.events);
        let Some(file) = &mut self.file else { return };
        if let Err(error) = writeln!(file, "{line}") {
            self.failed(&error);
            return;
        }
        self.lines += 1;
        if self.lines > 2 * EVENTS_MAX {
            self.rewrite();
        }
    }

    /// Writes the file anew, with what is kept.
    fn rewrite(&mut self) {
        let draft = self.path.with_extension("new");
        let write = || -> io::Result<File> {
            let mut options = File::options();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            for noted in &self.events {
                let line = serde_json::to_string(noted).expect("plain values are JSON");
                writeln!(file, "{line}")?;
            }
            std::fs::rename(&draft, &self.path)?;
            Ok(file)
        };
        match write() {
            Ok(file) => {
                (self.file, self.lines) = (Some(file), self.events.len());
                self.trouble.is_over();
            }
            Err(error) => {
                // What could not be written takes no room from who can write less.
                let _ = std::fs::remove_file(&draft);
                self.failed(&error);
            }
        }
    }

    /// From now on nothing is written, until all of it can be.
    fn failed(&mut self, error: &io::Error) {
        self.file = None;
        self.trouble.came(&self.path, error, "events are not kept over a restart");
    }
}

/// With its fields, for whoever collects the log.
fn log(event: &Event) {
    let Event { kind, subject, message, result, by, .. } = event;
    let (event, subject, result) = (kind.as_str(), subject.as_deref(), result.as_deref());
    let (uid, by_pid) = (by.map(|by| by.uid), by.and_then(|by| by.pid));
    if kind.is_bad() || result == Some("failed") {
        tracing::warn!(event, subject, result, uid, by_pid, "{message}");
    } else {
        tracing::info!(event, subject, result, uid, by_pid, "{message}");
    }
}

/// The oldest one goes where there are too many. Clients, who come and go as they please, put out only each other.
fn bound(events: &mut VecDeque<Noted>) {
    if events.len() <= EVENTS_MAX {
        return;
    }
    let is_clients =
        |noted: &Noted| matches!(noted.event.kind, Kind::ClientConnected | Kind::ClientLeft);
    let theirs = events.iter().filter(|noted| is_clients(noted)).count();
    let oldest = if theirs > EVENTS_MAX / 2 { events.iter().position(is_clients) } else { None };
    events.remove(oldest.unwrap_or(0));
}

fn read(path: &Path) -> VecDeque<Noted> {
    let Ok(file) = File::open(path) else { return VecDeque::new() };
    let lines = BufReader::new(file).lines().map_while(Result::ok);
    let mut events = VecDeque::new();
    // The last line may be half of one; one of a later program may be another kind.
    for noted in lines.filter_map(|line| serde_json::from_str::<Noted>(&line).ok()) {
        if events.back().is_none_or(|last: &Noted| last.event.number < noted.event.number) {
            events.push_back(noted);
        }
        bound(&mut events);
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_a_restart_and_are_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let trail = Trail::open(&path);
        for n in 0..3 * EVENTS_MAX {
            trail.note(Kind::ClientConnected, Some("a"), format!("client {n}"));
        }
        let by = Some(Caller { uid: 7, pid: Some(8) });
        trail.changed(by, "done", vec!["b".into()], "x".repeat(5000));
        let all = trail.since(0, 0);
        assert_eq!(all.len(), EVENTS_MAX);
        let last = all.last().unwrap();
        assert_eq!(
            (last.number, last.message.len()),
            (3 * EVENTS_MAX as u64 + 1, 1000 + "…".len())
        );
        assert_eq!(trail.counts()[&Kind::ClientConnected], 3 * EVENTS_MAX as u64);
        assert!(last.is_of("b") && !last.is_of("a") && all[0].is_of("a"));
        drop(trail);
        let lines = std::fs::read_to_string(&path).unwrap();
        assert!(lines.lines().count() <= 2 * EVENTS_MAX + 1);
        // A crash in the middle of a line.
        std::fs::write(&path, format!("{lines}{{\"number\":9")).unwrap();
        let trail = Trail::open(&path);
        assert_eq!(trail.since(0, 0), all);
        trail.note(Kind::ServerStarted, None, "again");
        assert_eq!(trail.since(last.number, 0).len(), 1);
        assert!(trail.since(0, u64::MAX).is_empty());
    }

    #[test]
    fn what_fails_is_about_the_adapter_and_the_volume_behind_it() {
        let dir = tempfile::tempdir().unwrap();
        let trail = Trail::open(&dir.path().join("events.jsonl"));
        trail.failing("a", Some("v"), "requests fail".to_owned());
        trail.failing("s", None, "requests fail".to_owned());
        let of = |name: &str| trail.of(name, None, (0, 0)).len();
        assert_eq!(["a", "v", "s", "w"].map(of), [1, 1, 1, 0]);
        assert_eq!(trail.since(0, 0)[0].subject.as_deref(), Some("a"));
    }

    #[test]
    fn clients_that_come_and_go_put_out_no_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let trail = Trail::open(&path);
        for n in 0..3 * EVENTS_MAX {
            if n % 10 == 0 {
                trail.changed(None, "done", vec!["b".into()], "a change".to_owned());
            }
            trail.note(Kind::ClientConnected, Some("a"), "a client");
        }
        let changes = |trail: &Trail| trail.of("b", None, (0, 0)).len();
        assert_eq!(changes(&trail), 3 * EVENTS_MAX / 10);
        drop(trail);
        assert_eq!(changes(&Trail::open(&path)), 3 * EVENTS_MAX / 10);
    }

    #[test]
    fn a_clock_that_was_set_back_hides_no_later_client() {
        let dir = tempfile::tempdir().unwrap();
        let trail = Trail::open(&dir.path().join("events.jsonl"));
        for (at, kind) in [(9000, Kind::ClientConnected), (500, Kind::ClientLeft)] {
            trail.note_at(Some(at), kind, Some("a"), "client");
        }
        trail.note_at(Some(7000), Kind::ClientLeft, Some("b"), "client");
        assert_eq!(trail.last_visit_ms("a"), 500);
        assert_eq!(trail.last_visit_ms("c"), 0);
    }

    #[test]
    fn a_clock_that_was_set_leaves_out_nothing_of_the_last_minutes() {
        fn since_then(kept: &Kept, now: Moment, ago: u64) -> Vec<&str> {
            let behind = kept.behind((0, now.at_ms - ago), now);
            behind.map(|event| event.message.as_str()).collect()
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let minutes = |n: u64| n * 60_000;
        let trail = Trail::open(&path);
        let boot = 7;
        let note = |at_ms: u64, up: Option<Up>, message: &str| {
            let event = Event { at_ms, ..Event::new(Kind::Change, message.to_owned()) };
            let mut kept = trail.kept();
            let number = kept.events.len() as u64 + 1;
            kept.append(Noted { event: Event { number, ..event }, up });
        };
        // It was set forward by a day, and then back by two.
        let day = minutes(24 * 60);
        note(2 * day, Some(Up { boot: 6, ms: minutes(900) }), "before the host was started");
        note(2 * day, Some(Up { boot, ms: minutes(1) }), "long ago");
        note(2 * day + minutes(50), Some(Up { boot, ms: minutes(51) }), "before the steps");
        note(3 * day + minutes(53), Some(Up { boot, ms: minutes(54) }), "between them");
        note(day + minutes(57), Some(Up { boot, ms: minutes(58) }), "after them");
        drop(trail);
        // Another server reads them.
        let kept = Kept { events: read(&path), ..Kept::empty(&path) };
        let now = Moment { at_ms: day + minutes(60), up: Some(Up { boot, ms: minutes(61) }) };
        let since = |ago: u64| since_then(&kept, now, minutes(ago));
        let early = "before the host was started";
        // Of what was before the host's start the clock as it was is all that there is.
        assert_eq!(since(15), [early, "before the steps", "between them", "after them"]);
        assert_eq!(since(8), [early, "between them", "after them"]);
        assert_eq!(since(4), [early, "after them"]);
        assert_eq!(since(61).len(), 5);
        // While it was ahead, what was just before that was a day ago by its own time.
        let now = Moment { at_ms: 3 * day + minutes(55), up: Some(Up { boot, ms: minutes(56) }) };
        assert!(since_then(&kept, now, minutes(6)).contains(&"before the steps"));
        assert!(!since_then(&kept, now, minutes(6)).contains(&"long ago"));
        // Where nobody says when the host started, nothing else than that clock is known, either.
        let now = Moment { at_ms: day + minutes(60), up: None };
        assert_eq!(since_then(&kept, now, minutes(4)).len(), 5);
    }

    #[test]
    fn what_could_not_be_kept_is_when_it_can_be() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let trail = Trail::open(&path);
        trail.note(Kind::ClientConnected, Some("a"), "kept");
        // As on a file system without room: neither the file nor another one can be written.
        trail.kept().file = File::options().write(true).open("/dev/full").ok();
        let drafts = ["events.new", "links.new"].map(|name| dir.path().join(name));
        drafts.iter().for_each(|draft| std::fs::create_dir(draft).unwrap());
        let counted = [(Object::Port, "p".to_owned())];
        trail.link(None, Kind::LinkDown, ("p", vec![]), &counted, "not kept".to_owned());
        assert!(trail.mend().unwrap().starts_with(path.to_str().unwrap()));
        std::fs::remove_dir(&drafts[0]).unwrap();
        assert!(trail.mend().unwrap().contains("links.json"));
        std::fs::remove_dir(&drafts[1]).unwrap();
        assert_eq!(trail.mend(), None);
        // Nor is what somebody removed.
        std::fs::remove_file(&path).unwrap();
        trail.note(Kind::ClientLeft, Some("a"), "into a file that nobody finds");
        assert_eq!(trail.mend(), None);
        drop(trail);
        let trail = Trail::open(&path);
        assert_eq!(trail.since(0, 0).len(), 3);
        assert_eq!(trail.link_counts().of(Object::Port, "p").failures, 1);
    }

    #[test]
    fn what_was_told_late_is_as_old_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let trail = Trail::open(&dir.path().join("events.jsonl"));
        let now = now_ms();
        trail.note_at(Some(now - 3_600_000), Kind::ClientLeft, Some("a"), "an hour ago");
        trail.note(Kind::ClientLeft, Some("a"), "now");
        assert_eq!(trail.since(0, now - 60_000).len(), 1);
        assert_eq!(trail.since(0, now - 3_660_000).len(), 2);
    }

    #[test]
    fn who_did_what_to_a_link_last_is_kept_with_its_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let by = Some(Caller { uid: 7, pid: Some(8) });
        let both = [(Object::Port, "x".to_owned()), (Object::Adapter, "x".to_owned())];
        let down = |trail: &Trail| {
            trail.link(by, Kind::LinkDown, ("x", vec!["x".to_owned()]), &both, "gone".to_owned());
        };
        let trail = Trail::open(&path);
        down(&trail);
        trail.link(None, Kind::LinkUp, ("x", vec![]), &both[..1], "back".to_owned());
        drop(trail);
        let trail = Trail::open(&path);
        down(&trail);
        let links = trail.link_counts();
        let [port, adapter] = [Object::Port, Object::Adapter].map(|object| links.of(object, "x"));
        assert_eq!(
            (port.failures, port.recoveries, adapter.failures, adapter.recoveries),
            (2, 1, 2, 0)
        );
        let last = adapter.last.unwrap();
        assert_eq!((last.by, last.message.as_str()), (by, "gone"));
        // What cannot be read is begun anew, and harms nothing else.
        std::fs::write(dir.path().join("links.json"), "{").unwrap();
        let trail = Trail::open(&path);
        assert_eq!(trail.link_counts().of(Object::Port, "x"), LinkCounts::default());
        assert_eq!(trail.since(0, 0).len(), 3);
    }
}
