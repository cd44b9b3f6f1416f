//! How fast chunks are copied on a PV while clients use it: a controller without clock or thread. Times are since any moment that stays the same.
//!
//! ```text
//! client's operation ── no copy was beside it ──► what its latency is without (the last 2,048 of them)
//!        └── while something is copied ─────────► more than one of a hundred takes longer than 1.2 of that 99th percentile?
//!                                                     yes: half as fast        no: faster
//! ```
//!
//! - *It ends*: it never asks for less than [`FLOOR`], and however slow operations are, the next copy is put off no further than that says.
//! - *What comes without it is not taken for its doing*: a busy host makes some operations in a row slow now and then. Each that was quick earns a hundredth of one that may be slow, as far as a few,
//!   and what is slow without copies is remembered for so long that it has happened before.
//! - *Without clients it does not slow down*: where none had an operation within a second, every copy may begin at once.
//! - *It knows what it compares with*: where copies follow each other so closely that no operation is without one beside it, they pause for 100 ms every 2 s at most.

use std::collections::VecDeque;
use std::time::Duration;

/// Bytes per second that may always be copied.
pub(crate) const FLOOR: f64 = (1 << 20) as f64;
/// … that are copied first when clients are there.
const START: f64 = (8 << 20) as f64;
/// It is not counted any more beyond this.
const CEILING: f64 = (64_u64 << 30) as f64;
/// Copies under way at once on a PV that no client uses, besides those that somebody waits for; beside clients it is one.
const AT_ONCE: u32 = 4;
/// What the 99th percentile may be, of what it is without: clients are promised 1.3, and see what both PVs do.
const TARGET: f64 = 1.2;
/// Without an operation for so long there are no clients.
const IDLE: Duration = Duration::from_secs(1);
/// Latencies without copies that are remembered, and without how many nothing is judged.
const KEPT: usize = 2048;
const ENOUGH: usize = 16;
/// … of which none is remembered longer, but for the last so many.
const LATELY: Duration = Duration::from_secs(20);
const LEAST: usize = 256;
/// After so many new ones it is looked again what they say.
const LOOKED: u32 = 64;
/// How many operations may be slow one after the other where so many hundreds were quick before.
const CREDIT: f64 = 6.0;
/// How long after a copy an operation begins that has nothing of it before it in the device's queue.
const SETTLED: Duration = Duration::from_millis(10);
/// A pause, how often there may be one, and how many latencies without copies make the next one needless.
const PAUSE: Duration = Duration::from_millis(100);
const BETWEEN_PAUSES: Duration = Duration::from_secs(2);
const QUIET_WANTED: u32 = 32;
/// A round ends well after so many operations that took at least so long together, or after so long.
const ROUND: u32 = 100;
const ROUND_SHORT: Duration = Duration::from_millis(100);
const ROUND_LONG: Duration = Duration::from_secs(2);

/// An operation of a client that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    since: Duration,
    /// Copies that had begun by then, if none was under way or had just been.
    alone: Option<u64>,
}

impl Mark {
    /// How long it took.
    pub(crate) fn took(self, now: Duration) -> Duration {
        now.saturating_sub(self.since)
    }
}

/// What has happened since the speed was last judged.
#[derive(Debug, Default)]
struct Round {
    since: Duration,
    operations: u32,
    bytes: u64,
    /// A copy was held back.
    held: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: f64,
    /// When it was made slower: what began before says nothing of how it is since.
    slowed: Duration,
    /// Nothing was too slow so far.
    tries: bool,
    next: Duration,
    /// Latencies without copies, in nanoseconds, and when they were seen, the oldest first.
    quiet: VecDeque<(Duration, u64)>,
    /// The longest latency that is none too many, and after how many new ones it is looked for again.
    limit: Option<u64>,
    unseen: u32,
    /// How many more operations may be slow.
    credit: f64,
    round: Round,
    /// Operations of clients under way, and when the last began or ended.
    clients: u32,
    client: Option<Duration>,
    /// Copies under way, all that ever began, and when the last ended.
    copies: u32,
    begun: u64,
    copied: Option<Duration>,
    /// Until when it pauses, or did; latencies without copies since that began.
    pause: Option<Duration>,
    quiet_since: u32,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            rate: START,
            slowed: Duration::ZERO,
            tries: true,
            next: Duration::ZERO,
            quiet: VecDeque::new(),
            limit: None,
            unseen: 0,
            credit: 1.0,
            round: Round::default(),
            clients: 0,
            client: None,
            copies: 0,
            begun: 0,
            copied: None,
            pause: None,
            quiet_since: 0,
        }
    }
}

impl Pace {
    /// A client's operation begins on the PV.
    pub(crate) fn client_begins(&mut self, now: Duration) -> Mark {
        self.clients += 1;
        self.client = Some(now);
        let settled = self.copied.is_none_or(|copied| now >= copied + SETTLED);
        Mark { since: now, alone: (self.copies == 0 && settled).then_some(self.begun) }
    }

    /// It is over, well or not.
    pub(crate) fn client_ends(&mut self, now: Duration, mark: Mark) {
        self.clients = self.clients.saturating_sub(1);
        self.client = Some(now);
        let took = mark.took(now).as_nanos() as u64;
        if mark.alone == Some(self.begun) {
            self.keep(now, took);
        }
        let copies = self.copied.is_some_and(|copied| now < copied + IDLE);
        if !copies && self.copies == 0 {
            return;
        }
        let Some(limit) = self.limit() else { return };
        self.round.operations += 1;
        let slow = took > limit && mark.since >= self.slowed;
        self.credit = (self.credit + 0.01).min(CREDIT) - f64::from(u8::from(slow));
        self.judge(now);
    }

    /// A copy of so many bytes begins to read or write the PV.
    pub(crate) fn copy_begins(&mut self, now: Duration, bytes: u64) {
        if self.copies == 0 && self.copied.is_none_or(|copied| now >= copied + IDLE) {
            self.round = Round { since: now, ..Round::default() };
        }
        self.copies += 1;
        self.begun += 1;
        self.round.bytes += bytes;
        // What was late is made up for, as far as a few copies.
        let takes = Duration::from_secs_f64(bytes as f64 / self.rate);
        self.next = self.next.max(now.saturating_sub(takes * 2)) + takes;
    }

    /// It does not any more.
    pub(crate) fn copy_ends(&mut self, now: Duration) {
        self.copies = self.copies.saturating_sub(1);
        self.copied = Some(now);
    }

    /// Whether so many copies are under way that the next one begins when one is over.
    pub(crate) fn is_full(&self, now: Duration) -> bool {
        self.copies >= if self.is_used(now) { 1 } else { AT_ONCE }
    }

    /// Whether clients use the PV.
    fn is_used(&self, now: Duration) -> bool {
        self.clients > 0 || self.client.is_some_and(|client| now < client + IDLE)
    }

    /// Whether another copy may begin; or when it is to be asked again.
    pub(crate) fn leave(&mut self, now: Duration) -> Result<(), Duration> {
        if !self.is_used(now) {
            return Ok(());
        }
        if let Some(until) = self.pause.filter(|until| now < *until)
            && self.quiet_since < QUIET_WANTED
        {
            self.round.held = true;
            return Err(until);
        }
        let lately = self.pause.is_some_and(|until| now < until + BETWEEN_PAUSES);
        if !lately {
            let wants = self.limit.is_none() || self.quiet_since < QUIET_WANTED;
            self.quiet_since = 0;
            self.pause = Some(if wants { now + PAUSE } else { now });
            return self.leave(now);
        }
        if now < self.next {
            self.round.held = true;
            return Err(self.next);
        }
        Ok(())
    }

    fn keep(&mut self, now: Duration, took: u64) {
        let old = |seen: Duration, kept: usize| kept > LEAST && seen + LATELY < now;
        while let Some((seen, _)) = self.quiet.front()
            && (self.quiet.len() >= KEPT || old(*seen, self.quiet.len()))
        {
            self.quiet.pop_front();
        }
        self.quiet.push_back((now, took));
        self.unseen += 1;
        self.quiet_since = self.quiet_since.saturating_add(1);
    }

    /// 1.2 of the 99th percentile without copies, if that is known.
    fn limit(&mut self) -> Option<u64> {
        let due = if self.quiet.len() > LEAST { LOOKED } else { ENOUGH as u32 };
        if self.quiet.len() >= ENOUGH && (self.limit.is_none() || self.unseen >= due) {
            self.unseen = 0;
            let mut all: Vec<u64> = self.quiet.iter().map(|(_, took)| *took).collect();
            let at = (all.len() * 99).div_ceil(100) - 1;
            let (_, high, _) = all.select_nth_unstable(at);
            self.limit = Some((*high as f64 * TARGET) as u64);
        }
        self.limit
    }

    /// Slower as soon as too many were slow, faster when a round was well.
    fn judge(&mut self, now: Duration) {
        let Round { since, operations, bytes, held } = self.round;
        let spent = now.saturating_sub(since);
        if self.credit < 0.0 {
            self.credit = 0.0;
            // What it did not reach it need not give up.
            let reached = bytes as f64 / spent.as_secs_f64().max(0.001);
            let from = if held { self.rate } else { self.rate.min(reached) };
            (self.tries, self.slowed) = (false, now);
            // At the least rate it is put off no more: it would never come to its turn beside clients that are slow all the time.
            if self.rate > FLOOR {
                self.rate = (from / 2.0).max(FLOOR);
                self.next = self.next.max(now + Duration::from_secs_f64(65536.0 / self.rate));
            }
        } else if operations >= ROUND && spent >= ROUND_SHORT || spent >= ROUND_LONG {
            // It is no proof that more can be borne where less was asked for.
            if held && bytes > 0 {
                let faster = if self.tries { 2.0 } else { 1.1 };
                self.rate = (self.rate * faster).min(CEILING);
            }
        } else {
            return;
        }
        self.round = Round { since: now, ..Round::default() };
    }
}

/// How long something takes that goes on as it went lately.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// How much was done at which time, the latest last.
    seen: VecDeque<(Duration, u64)>,
}

impl Left {
    /// What went before that says nothing.
    const WINDOW: Duration = Duration::from_secs(60);
    /// The speed lately says most of a time that is as long as that, and no shorter.
    const LATELY: Duration = Duration::from_secs(5);
    const STEP: Duration = Duration::from_secs(1);

    /// Seconds until all is done, with so much of it done now; none while that is not known. All may grow meanwhile.
    pub(crate) fn after(&mut self, now: Duration, done: u64, all: u64) -> Option<u64> {
        if self.seen.back().is_some_and(|(_, before)| done < *before) {
            self.seen.clear();
        }
        let last = self.seen.back().map(|(at, _)| *at);
        if last.is_none_or(|last| now >= last + Self::STEP) {
            self.seen.push_back((now, done));
        }
        // The first that stays is as old as the window, or older.
        while self.seen.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= Self::WINDOW) {
            self.seen.pop_front();
        }
        let since = |(at, before): (Duration, u64)| {
            let (did, spent) = (done - before, now.saturating_sub(at).as_secs_f64());
            (did > 0).then(|| spent / did as f64 * all.saturating_sub(done) as f64)
        };
        let left = since(*self.seen.front()?)?;
        let lately = Duration::from_secs_f64(left.min(1e6)).max(Self::LATELY);
        let near = self.seen.iter().rfind(|(at, _)| now.saturating_sub(*at) >= lately);
        Some(near.and_then(|near| since(*near)).unwrap_or(left).ceil() as u64)
    }
}

#[cfg(test)]
mod tests;
