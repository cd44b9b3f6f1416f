//! Whether counters add up: what the statistics say of a queue, a LUN and a port is what their clients have seen since the process began.

use protocol::stats::{QueueCounter, Snapshot, StatsReader};

use crate::clients::Any;
use crate::world::{Process, STATS, Scene};

thread_local! {
    static READER: StatsReader =
        STATS.with(|stats| StatsReader::open(stats.file())).expect("statistics of its own");
}

/// What is compared. Discards and zeroes are one figure.
const COUNTERS: [&[QueueCounter]; 11] = [
    &[QueueCounter::CommandsReceived],
    &[QueueCounter::Reads],
    &[QueueCounter::ReadBytes],
    &[QueueCounter::Writes],
    &[QueueCounter::WrittenBytes],
    &[QueueCounter::Flushes],
    &[QueueCounter::Discards, QueueCounter::WriteZeroes],
    &[QueueCounter::Errors],
    &[QueueCounter::Aborted],
    &[QueueCounter::CheckConditions, QueueCounter::UnitAttentions],
    &[QueueCounter::ReservationConflicts],
];

/// What a LUN is counted for whatever becomes of its commands.
const OF_LUN: std::ops::Range<usize> = 1..6;

/// What a client has seen of a queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub answered: u64,
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub flushes: u64,
    pub discards: u64,
    pub errors: u64,
    pub aborted: u64,
    /// CHECK CONDITION, and once more for each unit attention.
    pub checks: u64,
    pub conflicts: u64,
}

impl Seen {
    fn all(&self) -> [u64; COUNTERS.len()] {
        let Seen { answered, reads, read_bytes, writes, written_bytes, .. } = *self;
        let Seen { flushes, discards, errors, aborted, checks, conflicts, .. } = *self;
        [
            answered,
            reads,
            read_bytes,
            writes,
            written_bytes,
            flushes,
            discards,
            errors,
            aborted,
            checks,
            conflicts,
        ]
    }

    pub(crate) fn read(&mut self, bytes: u64) {
        self.reads += 1;
        self.read_bytes += bytes;
    }

    pub(crate) fn wrote(&mut self, bytes: u64) {
        self.writes += 1;
        self.written_bytes += bytes;
    }

    /// What is counted for a queue is this.
    pub(crate) fn is(&self, counted: impl Fn(QueueCounter) -> u64) -> Result<(), String> {
        let sum = |counters: &[QueueCounter]| counters.iter().map(|it| counted(*it)).sum();
        compare(COUNTERS.iter().zip(self.all()), sum)
    }
}

fn compare<'a>(
    seen: impl Iterator<Item = (&'a &'a [QueueCounter], u64)>,
    counted: impl Fn(&[QueueCounter]) -> u64,
) -> Result<(), String> {
    for (counters, seen) in seen {
        let counted = counted(counters);
        if counted != seen {
            return Err(format!("{counters:?} is {counted}, and its client has seen {seen}"));
        }
    }
    Ok(())
}

/// What all queues of an adapter's client have seen is what is counted for its only LUN, on all channels.
fn of_lun<'a>(
    snapshot: &Snapshot,
    adapter: &str,
    seen: impl Iterator<Item = &'a Seen>,
) -> Result<(), String> {
    let luns = || snapshot.luns.iter().filter(|lun| lun.counted.adapter == adapter);
    let one = |counter: &QueueCounter| luns().map(|lun| lun.counted.get(*counter)).sum::<u64>();
    let counted = |counters: &[QueueCounter]| counters.iter().map(one).sum();
    compare(COUNTERS[OF_LUN].iter().zip(sum(seen)[OF_LUN].iter().copied()), counted)
        .map_err(|wrong| format!("of the LUN of {adapter} {wrong}"))
}

/// What the clients of all adapters on a port have seen is what is counted for the port.
fn of_port<'a>(
    snapshot: &Snapshot,
    port: &str,
    seen: impl Iterator<Item = &'a Seen>,
) -> Result<(), String> {
    let Some(total) = snapshot.port(port) else {
        return Err(format!("nothing is counted for {port}"));
    };
    let counted = |counters: &[QueueCounter]| counters.iter().map(|it| total.total.get(*it)).sum();
    compare(COUNTERS.iter().zip(sum(seen)), counted).map_err(|wrong| format!("of {port} {wrong}"))
}

fn sum<'a>(seen: impl Iterator<Item = &'a Seen>) -> [u64; COUNTERS.len()] {
    let mut sum = [0; COUNTERS.len()];
    for each in seen {
        sum.iter_mut().zip(each.all()).for_each(|(sum, more)| *sum += more);
    }
    sum
}

/// Everything is answered: what was counted is what was seen.
pub(crate) fn look_at_counters(process: &Process, scene: &Scene) -> Result<(), String> {
    let clients: Vec<_> = scene.clients.iter().map(|client| client.borrow()).collect();
    for (session, client) in process.sessions.iter().zip(&clients) {
        if !client.front().is_counted {
            continue;
        }
        for line in &client.front().lines {
            let counted = |counter| session.counted(line.number, counter);
            let of = |wrong| format!("of {} queue {} {wrong}", client.front().name, line.number);
            line.adds_up(counted).map_err(of)?;
        }
    }
    let Some((_, port)) = &scene.drawn.scsi else { return Ok(()) };
    if scene.removed.get() {
        return Ok(());
    }
    let snapshot = READER.with(StatsReader::snapshot);
    let seen = |client: &Any| client.front().lines.iter().map(|line| line.seen.clone()).collect();
    let seen: Vec<Vec<Seen>> = clients.iter().map(|client| seen(client)).collect();
    for (number, seen) in seen.iter().enumerate() {
        of_lun(&snapshot, &format!("client{number}"), seen.iter())?;
    }
    match port {
        Some(_) => of_port(&snapshot, "fcs0", seen.iter().flatten()),
        None => Ok(()),
    }
}
