//! Who watches frames of a network: what became of each, where and why.
//!
//! While nobody watches, nothing of this is there: a channel hears of a watcher as it hears of changed ports, looks once in a batch whether it has one, and
//! without one goes a way in which [`Nobody`] watches, who is compiled away.
//!
//! What is told goes into a bounded queue. Who reads too slowly misses what comes then, and is told how much; who reads no more is forgotten.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_queue::ArrayQueue;
use memory::clock;
use protocol::message::{TraceRecord, TraceReport, TraceSpec};
use switch::{HEAD_BYTES, Mac, PortId, Reason, Vid};

use crate::network::{Network, Networks};

/// Events that wait for who watches.
const EVENTS_MAX: usize = 4096;
/// Events of one answer.
const REPORT_MAX: usize = 512;
/// Who has not asked for so long watches no more.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Does something with who watches: `unless!(tracer, watch => …)`, compiled once for nobody.
macro_rules! unless {
    ($tracer:expr, $watch:ident => $work:expr) => {
        match $tracer {
            None => {
                let $watch = $crate::trace::Nobody;
                $work
            }
            Some(tracer) => {
                let $watch = &*tracer;
                $work
            }
        }
    };
}
pub(crate) use unless;

/// What became of a frame at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It goes to so many ports.
    Sent(usize),
    /// It waits for its destination.
    Waits,
    /// It reached its destination.
    Delivered,
    /// It did not.
    Lost(Reason),
}

/// Something that happened to a frame.
pub(crate) struct Event<'a> {
    /// The frame's number, or 0.
    pub(crate) number: u64,
    pub(crate) from: PortId,
    /// None where it came in.
    pub(crate) to: Option<PortId>,
    pub(crate) vid: Option<Vid>,
    pub(crate) head: &'a [u8],
    pub(crate) len: usize,
    pub(crate) decision: Decision,
}

/// Who is told what becomes of frames.
pub(crate) trait Watch: Copy {
    /// Whether anybody is.
    const ON: bool;

    /// The number of the next frame.
    fn number(self) -> u64;

    /// Something happened.
    fn note<'a>(self, event: impl FnOnce() -> Event<'a>);
}

/// Nobody.
#[derive(Clone, Copy)]
pub(crate) struct Nobody;

impl Watch for Nobody {
    const ON: bool = false;

    #[inline(always)]
    fn number(self) -> u64 {
        0
    }

    #[inline(always)]
    fn note<'a>(self, _: impl FnOnce() -> Event<'a>) {}
}

/// Which events are of interest: those that all of it fits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Filter {
    /// The source or the destination.
    mac: Option<Mac>,
    /// Where it came in or is to go.
    port: Option<PortId>,
    vid: Option<Vid>,
    /// Lost frames alone.
    lost: bool,
}

impl Filter {
    fn fits(&self, event: &Event<'_>) -> bool {
        let mac = |wanted: Mac| event.head.chunks_exact(6).take(2).any(|mac| mac == wanted.0);
        let port = |wanted| event.from == wanted || event.to == Some(wanted);
        let lost = matches!(event.decision, Decision::Lost(_));
        self.mac.is_none_or(mac)
            && self.port.is_none_or(port)
            && self.vid.is_none_or(|vid| event.vid == Some(vid))
            && (lost || !self.lost)
    }
}

/// An event that waits.
struct Record {
    at_ns: u64,
    number: u64,
    from: PortId,
    to: Option<PortId>,
    vid: Option<Vid>,
    decision: Decision,
    len: usize,
    known: usize,
    head: [u8; HEAD_BYTES],
}

/// Somebody who watches.
pub(crate) struct Tracer {
    /// Whose it is.
    id: u64,
    filter: Filter,
    events: ArrayQueue<Record>,
    missed: AtomicU64,
    /// The number of the next frame, and of the first.
    next: AtomicU64,
    first: u64,
    /// When it was asked for events last.
    asked_ns: AtomicU64,
    /// One moment by both clocks: ours, and the time since 1970.
    epoch: (u64, u64),
    /// Names of ports, of those that are gone as well.
    names: Mutex<Vec<(PortId, String)>>,
}

impl std::fmt::Debug for Tracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tracer").field("filter", &self.filter).finish_non_exhaustive()
    }
}

fn now_ns() -> u64 {
    clock::to_ns(clock::ticks())
}

impl Watch for &Tracer {
    const ON: bool = true;

    fn number(self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    fn note<'a>(self, event: impl FnOnce() -> Event<'a>) {
        let event = event();
        let now_ns = now_ns();
        if !self.filter.fits(&event) || self.is_over(now_ns) {
            return;
        }
        let Event { number, from, to, vid, head, len, decision } = event;
        // A parcel that was packed while nobody watched has the number of another.
        let number = if number < self.first { 0 } else { number };
        let known = head.len().min(HEAD_BYTES);
        let mut record = Record {
            at_ns: now_ns,
            number,
            from,
            to,
            vid,
            decision,
            len,
            known,
            head: [0; HEAD_BYTES],
        };
        record.head[..known].copy_from_slice(&head[..known]);
        if self.events.push(record).is_err() {
            self.missed.fetch_add(1, Relaxed);
        }
    }
}

impl Tracer {
    fn new(id: u64, filter: Filter, first: u64) -> Tracer {
        let now = now_ns();
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Tracer {
            id,
            filter,
            events: ArrayQueue::new(EVENTS_MAX),
            missed: AtomicU64::new(0),
            next: AtomicU64::new(first),
            first,
            asked_ns: AtomicU64::new(now),
            epoch: (now, u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)),
            names: Mutex::default(),
        }
    }

    fn is_over(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.asked_ns.load(Relaxed)) > PATIENCE_NS
    }

    /// What has happened since it was asked for last.
    fn report(&self, network: &Network) -> TraceReport {
        let now = network.names();
        let mut names = self.names.lock().expect("a panic ends the process");
        names.retain(|(id, _)| now.iter().all(|(other, _)| other != id));
        names.extend(now);
        let name = |id: PortId| {
            let known = names.iter().find(|(other, _)| *other == id);
            known.map(|(_, name)| name.clone()).unwrap_or_default()
        };
        let records = std::iter::from_fn(|| self.events.pop()).take(REPORT_MAX);
        let records = records.map(|record| {
            let (decision, reason) = match record.decision {
                Decision::Sent(_) => ("sent", None),
                Decision::Waits => ("waits", None),
                Decision::Delivered => ("delivered", None),
                Decision::Lost(reason) => ("lost", Some(reason.word().to_owned())),
            };
            TraceRecord {
                at_ns: (self.epoch.1 + record.at_ns).saturating_sub(self.epoch.0),
                frame: record.number,
                from: name(record.from),
                to: record.to.map(name),
                vlan: record.vid.map(Vid::get),
                bytes: record.len as u64,
                decision: decision.to_owned(),
                copies: match record.decision {
                    Decision::Sent(copies) => copies as u32,
                    _ => 0,
                },
                reason,
                head: record.head[..record.known].iter().map(|it| format!("{it:02x}")).collect(),
            }
        });
        let records = records.collect();
        TraceReport { records, missed: self.missed.swap(0, Relaxed) }
    }
}

/// Why nobody can watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceError {
    /// There is no such network in this data plane: no adapter is on it.
    Network,
    /// Nothing of that name is on the network.
    Port,
    /// Somebody else watches.
    Busy,
}

impl Networks {
    /// Begins to watch frames, or goes on: what has happened since the last time. It ends when nobody asks for ten seconds, or with `stop`.
    ///
    /// # Errors
    ///
    /// When there is nothing to be watched, or another watches.
    pub fn trace(&self, spec: &TraceSpec) -> Result<TraceReport, TraceError> {
        let network = self.known(&spec.network).ok_or(TraceError::Network)?;
        let now = now_ns();
        let present = network.tracer();
        if let Some(its) = present.as_ref().filter(|its| its.id == spec.id) {
            its.asked_ns.store(now, Relaxed);
            let report = its.report(&network);
            if spec.stop {
                network.set_tracer(None);
            }
            return Ok(report);
        }
        if spec.stop {
            return Ok(TraceReport::default());
        }
        if present.as_ref().is_some_and(|its| !its.is_over(now)) {
            return Err(TraceError::Busy);
        }
        let names = network.names();
        let port = match &spec.port {
            None => None,
            Some(name) => {
                let port = names.iter().find(|(_, other)| other == name);
                Some(port.ok_or(TraceError::Port)?.0)
            }
        };
        let filter = Filter {
            mac: spec.mac.map(Mac),
            port,
            vid: spec.vlan.and_then(Vid::new),
            lost: spec.lost,
        };
        let first = present.map_or(1, |its| its.next.load(Relaxed));
        network.set_tracer(Some(Arc::new(Tracer::new(spec.id, filter, first))));
        Ok(TraceReport::default())
    }

    /// Forgets those who ask no more.
    pub fn end_traces(&self) {
        let now = now_ns();
        for network in self.all() {
            if network.tracer().is_some_and(|its| its.is_over(now)) {
                network.set_tracer(None);
            }
        }
    }
}
