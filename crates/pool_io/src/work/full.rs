//! A pool that is full, or nearly so: writes are slowed, wait, and fail where they are not to wait for ever.
//!
//! A tier that is filled to its limit gives out space so that what it has left lasts an hour, or 64 MiB a second where that is more. What it did not give out, it gives out later, up to that of a
//! minute: who writes little is not slowed. So there is time between a warning and the moment from which on writes wait until somebody has made space.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use memory::clock;
use pool::Pool;
use pool::format::CHUNK_BYTES;
use spec::{FullLuSpec, FullSpec};

use super::Work;
use crate::post::ReplyTo;

/// How long what a tier has left lasts.
const LASTS: Duration = Duration::from_secs(3600);
/// A chunk is given out at least so often.
const SLOWEST: Duration = Duration::from_secs(1);
/// What was not given out within that time is given out later.
const LATER: Duration = Duration::from_secs(60);
/// How often it is looked how full tiers are, while something happens.
const LOOK: Duration = Duration::from_millis(100);

/// A tier that gives out space slowly.
#[derive(Debug)]
struct Throttle {
    /// How much time is not used up that chunks take.
    saved: Duration,
    /// When that was so.
    at: Instant,
    /// The time that a chunk takes.
    each: Duration,
    /// How many chunks it was allowed.
    given: u32,
    /// When a write last waited for that.
    slowed: Option<Instant>,
}

impl Throttle {
    fn new(at: Instant) -> Throttle {
        Throttle { saved: LATER, at, each: SLOWEST, given: 0, slowed: None }
    }

    /// How many chunks it may give out now, of `room` that it has, if `left` of those before are left.
    fn allow(&mut self, now: Instant, left: u32, room: u64) -> u32 {
        self.saved = self.saved.saturating_sub(self.each * (self.given - left.min(self.given)));
        self.saved = (self.saved + now.saturating_duration_since(self.at)).min(LATER);
        self.at = now;
        let each = LASTS.as_nanos() as u64 / room.max(1);
        self.each = Duration::from_nanos(each.max(1)).min(SLOWEST);
        self.given = (self.saved.as_nanos() / self.each.as_nanos()) as u32;
        self.given
    }

    /// When it may give out the next.
    fn next(&self) -> Instant {
        self.at + self.each.saturating_sub(self.saved)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Full {
    /// How long writes of LUs wait for space.
    pauses: BTreeMap<u32, Duration>,
    /// Since when requests of these wait.
    since: BTreeMap<u64, Instant>,
    /// How much of a tier is taken when it gives out space slowly.
    percent: Option<u8>,
    tiers: BTreeMap<u8, Throttle>,
    /// When it was last looked how full they are.
    looked: Option<Instant>,
    /// When it has to be looked, although nothing happens.
    due: Option<Instant>,
}

impl Full {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// When a write of a tier last waited although there was space.
    pub(super) fn slowed(&self, tier: u8) -> Option<Instant> {
        self.tiers.get(&tier)?.slowed
    }

    /// Lets tiers give out what they may.
    fn throttle(&mut self, core: &mut Pool, now: Instant) {
        let percent = u64::from(self.percent.unwrap_or(FullSpec::THROTTLE_PERCENT));
        for tier in core.tiers() {
            let room = core.room(tier.tier);
            let all = tier.chunks / u64::from(core.legs_of_tier(tier.tier).max(1));
            if percent >= 100 || room * 100 > all * (100 - percent) {
                self.tiers.remove(&tier.tier);
                core.allow(tier.tier, None);
                continue;
            }
            let of = self.tiers.entry(tier.tier).or_insert_with(|| Throttle::new(now));
            if tier.slowed > 0 {
                of.slowed = Some(now);
            }
            let left = core.allowed(tier.tier).unwrap_or(of.given);
            let allowed = of.allow(now, left, room);
            core.allow(tier.tier, Some(allowed));
        }
        self.looked = Some(now);
    }
}

impl Work {
    /// What holds where it is full, from now on.
    pub(crate) fn when_full(&mut self, what: &FullSpec, reply: Option<ReplyTo<Vec<u32>>>) {
        let reserve = |of: &FullLuSpec| {
            let chunks = of.reserve_bytes.div_ceil(CHUNK_BYTES);
            (chunks > 0).then(|| (of.lu, u32::try_from(chunks).unwrap_or(u32::MAX)))
        };
        let reserves = what.lus.iter().filter_map(reserve).collect();
        let refused = self.core.set_reserves(reserves, reply.is_none());
        let pause = |of: &FullLuSpec| Some((of.lu, Duration::from_secs(of.pause_s?.into())));
        self.full.pauses = what.lus.iter().filter_map(pause).collect();
        self.full.percent = what.throttle_percent;
        self.full.looked = None;
        self.stale = true;
        if let Some(reply) = reply {
            self.tell();
            let _ = reply.send(refused);
        }
    }

    /// Gives out what may be given out, and calls back what has waited long enough.
    pub(super) fn look_at_the_full(&mut self) {
        let now = clock::instant();
        let waits = self.full.tiers.values().any(|of| of.next() <= now) && self.core.slowed() > 0;
        if waits || self.full.looked.is_none_or(|at| at + LOOK <= now) {
            self.full.throttle(&mut self.core, now);
        }
        let slowed = self.core.slowed() > 0;
        let next = self.full.tiers.values().map(Throttle::next).filter(|_| slowed).min();
        let over = self.end_pauses(now);
        self.full.due = next.into_iter().chain(over).min();
    }

    /// Calls back what has waited for space long enough. When the next has.
    fn end_pauses(&mut self, now: Instant) -> Option<Instant> {
        if self.full.pauses.is_empty() || self.core.paused() == 0 {
            self.full.since.clear();
            return None;
        }
        let paused = self.core.paused_requests();
        self.full.since.retain(|tag, _| paused.contains_key(tag));
        let mut next: Option<Instant> = None;
        for (tag, lu) in paused {
            let Some(pause) = self.full.pauses.get(&lu) else { continue };
            let over = *self.full.since.entry(tag).or_insert(now) + *pause;
            if over <= now {
                self.core.cancel(tag);
            } else {
                next = Some(next.map_or(over, |next| next.min(over)));
            }
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is given out in an hour by a tier that has so much room, if as much is asked for each second as there is.
    fn hour(mut room: u64) -> Vec<u64> {
        let begin = Instant::now();
        let (mut of, mut seconds) = (Throttle::new(begin), Vec::new());
        for second in 0..3600 {
            let given = of.allow(begin + Duration::from_secs(second), 0, room);
            let taken = u64::from(given).min(room);
            of.given = taken as u32;
            room -= taken;
            seconds.push(taken);
        }
        seconds
    }

    #[test]
    fn what_is_left_lasts_an_hour_after_a_minute_that_was_saved() {
        // 50 GiB: a minute's worth at once, and then a chunk a second.
        let small = hour(800);
        assert_eq!((small[0], small[1], small[2], small.iter().sum()), (60, 1, 1, 800));
        // 16 TiB: after an hour a third is left, since there is less each second.
        let large = hour(1 << 18);
        let given: u64 = large.iter().sum();
        assert!(
            (4300..4400).contains(&large[0]) && (68..74).contains(&large[1]),
            "{:?}",
            &large[..3]
        );
        assert!((0.62..0.65).contains(&(given as f64 / f64::from(1 << 18))), "{given}");
        assert!(large.windows(2).skip(1).all(|pair| pair[1] <= pair[0] + 1));
    }

    #[test]
    fn what_was_not_asked_for_is_saved_for_a_minute_and_the_next_has_its_time() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut of = Throttle::new(begin);
        assert_eq!(of.allow(at(0), 0, 10), 60);
        assert_eq!(of.allow(at(0), 0, 10), 0);
        assert_eq!(of.next(), at(1));
        assert_eq!(of.allow(at(10), 0, 10), 10);
        assert_eq!(of.allow(at(10), 4, 10), 4, "six were taken");
        assert_eq!(of.allow(at(1000), 4, 10), 60);
        // None is left, which is somebody else's to say.
        assert_eq!(of.allow(at(1000), 60, 0), 60);
    }
}
