//! Counters since the last `fcstat -z`.
//!
//! The counters in the shared memory have one writer, the channel, and nobody else resets them. A reset is a copy
//! of them, kept in a file of the state folder, from which later reports are reckoned. What began anew since (a data
//! plane that was started again, a client that came again) counts from its own beginning.

use super::fcstat::Counts;
use crate::exit::Failure;
use control::statistics::{Counters, Measures, StatsView};
use protocol::stats::{Kind, QueueCounter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The counters of each queue of each adapter, and those of ports and of what each adapter did on them ([`on_port`]) as of one queue.
pub(super) type Reading = BTreeMap<String, BTreeMap<u32, Counters>>;

/// The counters as they were when a device was reset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Baseline {
    /// Seconds since 1970.
    taken_s: u64,
    /// The process of the data plane: another one began at zero.
    pid: Option<u32>,
    reading: Reading,
    /// Times that the link had been down.
    #[serde(default)]
    link_failures: u64,
}

/// A reading of the statistics.
pub(super) fn reading(stats: &StatsView) -> Reading {
    let adapter = |adapter: &control::statistics::AdapterStatsView| {
        let queues =
            adapter.queues.iter().map(|queue| (queue.queue, queue.measures.counters.clone()));
        (adapter.adapter.clone(), queues.collect())
    };
    let one = |measures: &Measures| BTreeMap::from([(0, measures.counters.clone())]);
    let ports = stats.ports.iter().flat_map(|port| {
        let parts = port.adapters.iter();
        let parts = parts.map(|part| (on_port(&port.port, &part.adapter), one(&part.measures)));
        parts.chain([(on_port(&port.port, ""), one(&port.total))])
    });
    stats.adapters.iter().map(adapter).chain(ports).collect()
}

/// What an adapter did on a port, and with no adapter all of them, is called in a reading.
pub(super) fn on_port(port: &str, adapter: &str) -> String {
    format!("{port}/{adapter}")
}

/// The high-water marks of active, pending and waiting commands that are of all queues at once, by adapter.
pub(super) fn marks(stats: &StatsView) -> BTreeMap<String, [u64; 3]> {
    let of_all = stats.adapters.iter().filter(|adapter| adapter.active_max_at_ms.is_some());
    let mark = |adapter: &control::statistics::AdapterStatsView| {
        let mark = |mark: QueueCounter| get(&adapter.total.counters, mark.info().name);
        let marks = [QueueCounter::ActiveMax, QueueCounter::PendingMax, QueueCounter::WaitingMax];
        (adapter.adapter.clone(), marks.map(mark))
    };
    of_all.map(mark).collect()
}

impl Baseline {
    /// A baseline of these adapters, taken now.
    pub(super) fn of(reading: Reading, pid: Option<u32>, link_failures: u64) -> Baseline {
        Baseline { taken_s: now_s(), pid, reading, link_failures }
    }

    /// Of the times that a link went down, those since then: the server counts them, whichever data plane runs.
    pub(super) fn failures_since(&self, link_failures: u64) -> u64 {
        link_failures.saturating_sub(self.link_failures)
    }

    /// How long ago it was taken, unless the data plane is another one.
    pub(super) fn age_s(&self, pid: Option<u32>) -> Option<u64> {
        (self.pid == pid).then(|| now_s().saturating_sub(self.taken_s))
    }

    /// The counters of an adapter since then.
    pub(super) fn since(
        &self,
        adapter: &str,
        now: &BTreeMap<u32, Counters>,
        pid: Option<u32>,
    ) -> BTreeMap<u32, Counters> {
        let then = self.reading.get(adapter).filter(|_| self.pid == pid);
        let queue = |(number, now): (&u32, &Counters)| {
            let then = then.and_then(|queues| queues.get(number));
            (*number, then.map_or_else(|| now.clone(), |then| queue_since(now, then)))
        };
        now.iter().map(queue).collect()
    }
}

fn queue_since(now: &Counters, then: &Counters) -> Counters {
    let received = QueueCounter::CommandsReceived.info().name;
    if get(now, received) < get(then, received) {
        return now.clone();
    }
    let mut since = now.clone();
    // Gauges and high-water marks stay: what they would be since then, nobody has counted.
    let counters = QueueCounter::ALL.iter().map(|counter| counter.info());
    for info in counters.filter(|info| info.kind == Kind::Counter) {
        if let Some(value) = since.get_mut(info.name) {
            *value = value.saturating_sub(get(then, info.name));
        }
    }
    since
}

fn get(counters: &Counters, name: &str) -> u64 {
    counters.get(name).copied().unwrap_or(0)
}

/// What queues counted together, as `fcstat` has it. The high-water mark of several queues is the sum of theirs, at least what there ever
/// was at once; where an adapter has a mark of its own, that one holds.
pub(super) fn counts<'a>(queues: impl IntoIterator<Item = &'a Counters>) -> Counts {
    let mut sum = Counts::default();
    for queue in queues {
        let value = |counter: QueueCounter| get(queue, counter.info().name);
        sum.reads += value(QueueCounter::Reads);
        sum.writes += value(QueueCounter::Writes);
        sum.control += [
            QueueCounter::ControlRequests,
            QueueCounter::Flushes,
            QueueCounter::Discards,
            QueueCounter::WriteZeroes,
            QueueCounter::GetIds,
        ]
        .map(value)
        .iter()
        .sum::<u64>();
        sum.read_bytes += value(QueueCounter::ReadBytes);
        sum.written_bytes += value(QueueCounter::WrittenBytes);
        sum.no_dma += value(QueueCounter::WaitNoDma);
        sum.no_elements += value(QueueCounter::WaitNoElement);
        sum.no_command += value(QueueCounter::WaitNoCommand);
        sum.active += value(QueueCounter::Active);
        sum.active_max += value(QueueCounter::ActiveMax);
        sum.pending += value(QueueCounter::Pending);
        sum.pending_max += value(QueueCounter::PendingMax);
        sum.waiting += value(QueueCounter::Waiting);
        sum.waiting_max += value(QueueCounter::WaitingMax);
        sum.interrupts += value(QueueCounter::Notifications);
    }
    sum
}

/// The baselines of all devices that were reset.
#[derive(Debug)]
pub(super) struct Baselines {
    path: PathBuf,
    all: BTreeMap<String, Baseline>,
}

impl Baselines {
    /// Reads the file; there need not be one.
    pub(super) fn open(state: &Path) -> Result<Baselines, Failure> {
        let path = state.join("fcstat-reset.json");
        let all = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                Failure::other(format!("{}: {error}; remove it to start anew", path.display()))
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(Failure::other(format!("{}: {error}", path.display()))),
        };
        Ok(Baselines { path, all })
    }

    /// The baseline of a device, or an empty one.
    pub(super) fn get(&self, device: &str) -> Option<&Baseline> {
        self.all.get(device)
    }

    /// Keeps a baseline. The file is replaced as a whole: a reader never sees half of it.
    pub(super) fn put(&mut self, device: &str, baseline: Baseline) -> Result<(), Failure> {
        self.all.insert(device.to_owned(), baseline);
        let text = serde_json::to_vec_pretty(&self.all).map_err(Failure::other)?;
        let fresh = self.path.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&fresh, text)
            .and_then(|()| std::fs::rename(&fresh, &self.path))
            .map_err(|error| Failure::other(format!("{}: {error}", self.path.display())))
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(received: u64, reads: u64, active_max: u64) -> Counters {
        let pairs = [
            ("commands_received", received),
            ("reads", reads),
            ("commands_active_max", active_max),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).into()
    }

    #[test]
    fn counters_go_on_from_the_reset_and_marks_stay() {
        let then = Reading::from([("vfchost0".to_owned(), [(0, queue(10, 4, 7))].into())]);
        let baseline = Baseline::of(then, Some(1), 2);
        let now = BTreeMap::from([(0, queue(30, 14, 9)), (1, queue(5, 5, 1))]);
        let since = baseline.since("vfchost0", &now, Some(1));
        assert_eq!(since, BTreeMap::from([(0, queue(20, 10, 9)), (1, queue(5, 5, 1))]));
        assert_eq!(counts(since.values()).reads, 15);
        assert_eq!(counts(since.values()).active_max, 10);
        assert_eq!((baseline.failures_since(5), baseline.failures_since(0)), (3, 0));
    }

    #[test]
    fn what_began_anew_counts_from_its_beginning() {
        let then = Reading::from([("vfchost0".to_owned(), [(0, queue(10, 4, 7))].into())]);
        let baseline = Baseline::of(then, Some(1), 2);
        let again = BTreeMap::from([(0, queue(9, 9, 2))]);
        assert_eq!(baseline.since("vfchost0", &again, Some(1)), again);
        let more = BTreeMap::from([(0, queue(90, 80, 2))]);
        assert_eq!(baseline.since("vfchost0", &more, Some(2)), more);
        assert_eq!((baseline.age_s(Some(2)), baseline.age_s(Some(1)).is_some()), (None, true));
    }

    #[test]
    fn the_file_keeps_every_device() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Baselines::open(folder.path()).unwrap();
        assert!(file.get("fcs0").is_none());
        let baseline = Baseline::of(Reading::new(), Some(3), 0);
        file.put("fcs0", baseline.clone()).unwrap();
        Baselines::open(folder.path()).unwrap().put("fcs1", baseline.clone()).unwrap();
        let file = Baselines::open(folder.path()).unwrap();
        assert_eq!((file.get("fcs0"), file.get("fcs1")), (Some(&baseline), Some(&baseline)));
        std::fs::write(folder.path().join("fcstat-reset.json"), "{").unwrap();
        assert!(Baselines::open(folder.path()).is_err());
    }
}
