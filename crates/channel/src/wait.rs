//! When to look again and when to sleep.
//!
//! Looking costs CPU, sleeping costs a wake-up: CPU on both sides, and the client's time. The rule buys whichever is cheaper on
//! average. A sleep is priced at as much looking as the longest window, so looking longer than that can never pay. From the waits
//! that were looked at, `History` knows how likely a wait is to end at each moment, so it knows what each window would cost.
//!
//! Two things make the waits that are observed differ from those that are decided about:
//!
//! - A wait that was slept through seems longer than it is: waking up is in it, and on a virtual machine that can be most of it. So
//!   of such a wait only the part counts that was looked at, as in the product-limit estimate of survival times. To learn about longer
//!   windows than the present one, after every `SLEEPS_PER_TRIAL` sleeps waits are looked at as long as could ever pay, until one
//!   of them was in vain.
//! - Waiting for a device and waiting for the client are different things, often ten times apart. Each has its own history.
//!
//! A pure state machine over nanoseconds.

use protocol::message::WaitMode;

/// Sleeps between two trials.
const SLEEPS_PER_TRIAL: u8 = 32;
/// Into how many parts the longest window is divided: windows are multiples of one.
const PARTS: usize = 16;
/// So many waits are remembered of each part; with that many the weight of all is halved.
const REMEMBERED: u16 = 64;
/// After so many waits that were caught the best window is chosen anew; one that was missed asks for it at once.
const CAUGHT_PER_CHOICE: u8 = 8;

/// What to do after a turn that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Look again.
    Look,
    /// Arm the queues and sleep.
    Sleep,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// Nothing is under way: the client's next request.
    Client,
    /// Something is: an answer of the device, or the client.
    Device,
}

/// How many of the waits that were looked at in a part of the longest window ended in it.
#[derive(Debug, Default, Clone, Copy)]
struct Part {
    looked: u16,
    ended: u16,
}

/// How long the waits of one kind were, as far as they were looked at.
#[derive(Debug, Default)]
struct History {
    parts: [Part; PARTS],
    /// The window that costs least, in parts.
    best: usize,
    /// Sleeps before the next trial.
    sleeps_left: u8,
    caught: u8,
}

impl History {
    /// The window for the next wait, in parts.
    fn window(&self) -> usize {
        if self.sleeps_left == 0 { PARTS } else { self.best }
    }

    /// A wait ended while it was looked at, in this part.
    fn caught(&mut self, part: usize) {
        self.looked(part + 1);
        self.parts[part].ended += 1;
        self.caught += 1;
        if self.caught == CAUGHT_PER_CHOICE || part >= self.best {
            (self.caught, self.best) = (0, self.cheapest());
        }
    }

    /// A wait was slept through after it had been looked at for a window.
    fn missed(&mut self, window: usize) {
        if window > 0 {
            self.looked(window);
            self.best = self.cheapest();
        }
        self.sleeps_left =
            if window == PARTS { SLEEPS_PER_TRIAL } else { self.sleeps_left.saturating_sub(1) };
    }

    fn looked(&mut self, window: usize) {
        for part in &mut self.parts[..window] {
            if part.looked >= REMEMBERED {
                (part.looked, part.ended) = (part.looked / 2, part.ended / 2);
            }
            part.looked += 1;
        }
    }

    /// The window with the least cost; the shortest of several. The unit is a part: a wait that ends in one ends in its middle, and
    /// a sleep is worth [`PARTS`].
    fn cheapest(&self) -> usize {
        let (mut best, mut least) = (0, PARTS as f32);
        // The share of the waits that are not over yet, and what those that are have cost.
        let (mut left, mut cost) = (1.0, 0.0);
        for (index, part) in self.parts.iter().enumerate() {
            let ended = left * f32::from(part.ended) / f32::from(part.looked.max(1));
            left -= ended;
            cost += ended * (index as f32 + 0.5);
            let with_sleeps = cost + left * (index + 1 + PARTS) as f32;
            if with_sleeps < least {
                (best, least) = (index + 1, with_sleeps);
            }
        }
        best
    }
}

/// The state of one channel's waiting. Times are in nanoseconds of one monotonic clock.
#[derive(Debug)]
pub struct Waiter {
    mode: WaitMode,
    window_ns_max: u64,
    /// One part of the longest window.
    part_ns: u64,
    awaited: Awaited,
    /// How long this wait is looked at, in parts and in nanoseconds.
    window: usize,
    window_ns: u64,
    client: History,
    device: History,
    /// When the last turn with work ended.
    idle_since_ns: u64,
}

fn part_ns(window_ns_max: u64) -> u64 {
    window_ns_max.div_ceil(PARTS as u64).max(1)
}

impl Waiter {
    /// Begins awake at `now_ns`. `window_ns_max` is the price of a sleep, and the longest look.
    #[must_use]
    pub fn new(mode: WaitMode, window_ns_max: u64, now_ns: u64) -> Waiter {
        Waiter {
            mode,
            window_ns_max,
            part_ns: part_ns(window_ns_max),
            awaited: Awaited::Client,
            window: 0,
            window_ns: 0,
            client: History::default(),
            device: History::default(),
            idle_since_ns: now_ns,
        }
    }

    /// Changes the mode; what was learnt is forgotten.
    pub fn set_mode(&mut self, mode: WaitMode) {
        if mode != self.mode {
            self.mode = mode;
            self.look_for(0);
            (self.client, self.device) = (History::default(), History::default());
        }
    }

    /// A sleep is worth so much from now on. What was learnt is in parts of the longest window, and is forgotten.
    pub fn set_price(&mut self, window_ns_max: u64) {
        self.window_ns_max = window_ns_max;
        self.part_ns = part_ns(window_ns_max);
        self.look_for(0);
        (self.client, self.device) = (History::default(), History::default());
    }

    /// Whether a sleep's price matters to it.
    #[inline]
    #[must_use]
    pub fn weighs(&self) -> bool {
        self.mode == WaitMode::Adaptive
    }

    fn history(&mut self) -> &mut History {
        match self.awaited {
            Awaited::Client => &mut self.client,
            Awaited::Device => &mut self.device,
        }
    }

    fn look_for(&mut self, window: usize) {
        self.window = window;
        self.window_ns = (window as u64 * self.part_ns).min(self.window_ns_max);
    }

    /// A turn with work has begun; if looking found it, that is a wait to learn from.
    #[inline]
    pub fn found(&mut self, now_ns: u64) {
        if self.mode == WaitMode::Adaptive && self.window > 0 {
            let part = now_ns.saturating_sub(self.idle_since_ns) / self.part_ns;
            // At most: the look ended with the window.
            let last = self.window - 1;
            self.history().caught((part as usize).min(last));
        }
    }

    /// A turn with work has ended. `awaited` comes next.
    #[inline]
    pub fn worked(&mut self, awaited: Awaited, now_ns: u64) {
        (self.idle_since_ns, self.awaited) = (now_ns, awaited);
        if self.mode == WaitMode::Adaptive {
            let window = self.history().window();
            self.look_for(window);
        }
    }

    /// A turn found nothing.
    #[inline]
    #[must_use]
    pub fn idle(&self, now_ns: u64) -> Decision {
        let window_ns = match self.mode {
            WaitMode::Poll => return Decision::Look,
            WaitMode::Adaptive => self.window_ns,
            WaitMode::Interrupt => 0,
        };
        if now_ns.saturating_sub(self.idle_since_ns) < window_ns {
            Decision::Look
        } else {
            Decision::Sleep
        }
    }

    /// The sleep is over.
    pub fn woke(&mut self, now_ns: u64) {
        self.idle_since_ns = now_ns;
        if self.mode != WaitMode::Adaptive {
            return;
        }
        let window = self.window;
        self.history().missed(window);
        // The turn that follows finds work without having looked for it.
        self.look_for(0);
    }

    /// Nanoseconds since the last work, or since the last wake-up.
    #[must_use]
    pub fn idle_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.idle_since_ns)
    }

    /// How long this wait is looked at before it is slept through.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }
}

#[cfg(test)]
mod tests;
