//! What a sleep costs here: learnt from how late timers wake.
//!
//! `wait` weighs looking for work against a sleep, and so needs the price of one. It differs between machines, and on one machine with how long its
//! processors have been idle: 3 µs where an idle one still looks for work itself, 25 to 45 µs on a virtual machine that its host has to wake. Told too
//! low, a channel sleeps through waits that would have ended while its client's call was still on the way; told too high, it looks where a
//! sleep would have been cheaper.
//!
//! ```text
//! sleep ─► Probe::before_sleep ─ one in SLEEPS_PER_PROBE ─► a timer ─ wakes the channel ─► Probe::woken: so late
//!                                                                                             │
//!                                   a timer, while it stays awake ◄───────────────────────────┘
//!                                     │
//! price ◄─ Price::learn ◄─ so much later ◄─ Probe::awake_over
//! ```
//!
//! - A timer says when it should have woken its channel, which a client's kick does not. But a timer has a way of its own, 15 µs on a virtual machine,
//!   asleep or not: what a second one takes while the channel stays awake for it is taken off. What is left was within a fifth of what
//!   a kick takes, measured beside it.
//! - Only a sleep that was about to happen arms one, and what the timer ends is no such sleep: a channel that nobody wakes is not woken for this.
//! - What counts is a timer that found the channel asleep for [`ASLEEP_NS`] and was the first that woke it. One that is overtaken by work runs out
//!   whenever it does, and may find a later sleep.
//! - The price is the median of the last 31 samples: what a busy host adds now and then does not move it.
//!
//! Pure state machines over nanoseconds.

/// What is assumed of a machine before enough is known of it.
pub const ASSUMED_NS: u64 = 32_000;
/// No sleep is held cheaper: calls of the kernel on both sides are that much.
pub const LEAST_NS: u64 = 2_000;
/// No sleep is held dearer: on a machine whose processors are all busy a wake-up waits for one, and looking would keep it from others.
pub const MOST_NS: u64 = 64_000;

/// One of so many sleeps arms a timer.
pub const SLEEPS_PER_PROBE: u8 = 64;
/// The timer, from the moment when the channel falls asleep.
pub const PROBE_NS: u64 = 64_000;
/// A processor that has been idle for less may not be idle yet.
pub const ASLEEP_NS: u64 = 16_000;
/// The timer that finds the channel awake.
pub const AWAKE_NS: u64 = 10_000;
/// It is waited for so long after that.
pub const PATIENCE_NS: u64 = 100_000;

/// So many are remembered; odd, so that one is in the middle.
const KEPT: usize = 31;
/// With fewer the assumption stands.
const ENOUGH: usize = 7;

/// What a sleep is held to cost.
#[derive(Debug, Clone)]
pub struct Price {
    late_ns: [u64; KEPT],
    seen: u64,
    price_ns: u64,
}

impl Default for Price {
    fn default() -> Price {
        Price { late_ns: [0; KEPT], seen: 0, price_ns: ASSUMED_NS }
    }
}

impl Price {
    /// What holds now.
    #[must_use]
    pub fn ns(&self) -> u64 {
        self.price_ns
    }

    /// How many timers it was learnt from, those that are forgotten among them.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// A timer was so much later for a sleeping channel than for one that is awake. Whether the price is another one now: it moves when the median is a quarter away from it, since
    /// what was learnt of waits is in parts of it.
    pub fn learn(&mut self, late_ns: u64) -> bool {
        self.late_ns[(self.seen % KEPT as u64) as usize] = late_ns;
        self.seen += 1;
        let kept = self.seen.min(KEPT as u64) as usize;
        if kept < ENOUGH {
            return false;
        }
        let mut sorted = self.late_ns;
        let (_, median, _) = sorted[..kept].select_nth_unstable(kept / 2);
        let median_ns = (*median).clamp(LEAST_NS, MOST_NS);
        let moves = median_ns.abs_diff(self.price_ns) > self.price_ns / 4;
        if moves {
            self.price_ns = median_ns;
        }
        moves
    }
}

/// When timers are armed, and what their ends say.
#[derive(Debug, Default)]
pub struct Probe {
    /// Sleeps since the last one was armed.
    sleeps: u8,
    /// When the one that is armed should wake the channel.
    due_ns: Option<u64>,
    /// It ended a sleep, the rest of which is none of its own.
    goes_on: bool,
    /// When the other one should run out, and how late the first one was.
    awake: Option<(u64, u64)>,
}

impl Probe {
    /// A sleep begins. Whether a timer of [`PROBE_NS`] is to be armed with it.
    #[inline]
    pub fn before_sleep(&mut self, now_ns: u64) -> bool {
        if std::mem::take(&mut self.goes_on) {
            return false;
        }
        self.sleeps = self.sleeps.saturating_add(1);
        let armed = self.due_ns.is_some() || self.awake.is_some();
        let arms = self.sleeps >= SLEEPS_PER_PROBE && !armed;
        if arms {
            (self.sleeps, self.due_ns) = (0, Some(now_ns + PROBE_NS));
        }
        arms
    }

    /// There was no room for a timer.
    pub fn not_armed(&mut self) {
        (self.due_ns, self.awake) = (None, None);
    }

    /// A sleep is over; whether the timer may have ended it.
    #[inline]
    #[must_use]
    pub fn may_have_woken(&self, end_ns: u64) -> bool {
        self.due_ns.is_some_and(|due| due <= end_ns)
    }

    /// A sleep from `begin_ns` to `end_ns` was ended by the timer before anything else. Whether that says something, and one of [`AWAKE_NS`] is to
    /// be armed now.
    pub fn woken(&mut self, begin_ns: u64, end_ns: u64) -> bool {
        self.goes_on = true;
        let due = self.due_ns.unwrap_or(end_ns);
        let says = begin_ns + ASLEEP_NS <= due;
        if says {
            self.awake = Some((end_ns + AWAKE_NS, end_ns.saturating_sub(due)));
        }
        says
    }

    /// The timer has run out.
    pub fn over(&mut self) {
        self.due_ns = None;
    }

    /// Whether the channel stays awake for the other one.
    #[inline]
    #[must_use]
    pub fn stays_awake(&self, now_ns: u64) -> bool {
        self.awake.is_some_and(|(due, _)| now_ns < due + PATIENCE_NS)
    }

    /// That one has run out, and was seen at `now_ns`: how much later the first one was.
    pub fn awake_over(&mut self, now_ns: u64) -> Option<u64> {
        let (due, late_ns) = self.awake.take()?;
        (now_ns < due + PATIENCE_NS).then(|| late_ns.saturating_sub(now_ns.saturating_sub(due)))
    }
}

#[cfg(test)]
mod tests;
