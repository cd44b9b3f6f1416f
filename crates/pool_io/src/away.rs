//! PVs that are away: looked for by whoever has the pool, and used again when they are there.
//!
//! One that is lost again soon after it was there again is left alone for longer each time ([`Pause`]): each return costs a checkpoint and copies, and clients wait for the superblock that says that it is lost.

use std::sync::Arc;
use std::time::{Duration, Instant};

use block::{Files, OpenEvent};
use memory::clock;
use pool::format::{LABEL_BYTES, Label};

use crate::PoolError;
use crate::open::{chunks_of, lane_of};
use crate::post::Message;
use crate::table::PvView;
use crate::thread::{PoolHandle, ask, open_pv};

/// One that is lost within that time after its return was not in order.
const SOON: Duration = Duration::from_secs(60);
/// That may happen so often.
const CHANCE: u32 = 2;
/// How long it is left alone from then on; twice as long each time, up to the last.
const PAUSES: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(900));

/// How long a PV is left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pause {
    /// When it was there again for the last time, if it was not lost since as far as is known.
    returned: Option<Instant>,
    /// It was lost soon so many times, one after the other, and is looked for again then.
    times: u32,
    until: Option<Instant>,
}

impl Pause {
    /// It is there again.
    pub(crate) fn returned(&mut self, now: Instant) {
        (self.returned, self.until) = (Some(now), None);
    }

    /// It is away: how long it is left alone from now on; none if it may be looked for.
    pub(crate) fn away(&mut self, now: Instant) -> Option<Duration> {
        if let Some(returned) = self.returned.take() {
            let soon = now.saturating_duration_since(returned) < SOON;
            self.times = if soon { self.times + 1 } else { 0 };
            let more = self.times.checked_sub(CHANCE + 1);
            let pause = |more: u32| (PAUSES.0 * (1 << more.min(16))).min(PAUSES.1);
            self.until = more.map(|more| now + pause(more));
        }
        let left = self.until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// How many times it was lost soon after it was there again.
    pub(crate) fn times(&self) -> u32 {
        self.times
    }
}

impl PoolHandle {
    /// Whether its chunks have two legs.
    #[must_use]
    pub fn mirrors(&self) -> bool {
        self.shared.mirrors
    }

    /// Waits as long as that, and then until a PV is away; false if the pool closes.
    #[must_use]
    pub fn wait_for_away(&self, least: Duration) -> bool {
        self.shared.wait_for_away(least)
    }

    /// Looks for PVs that are away: those that are there again are used again, and get what they missed. How many are still away.
    pub fn look_for_away(
        &self,
        files: &dyn Files,
        server: Option<&str>,
        event: &mut dyn FnMut(OpenEvent),
    ) -> usize {
        let pvs = self.shared.view().pvs;
        let away: Vec<&PvView> = pvs.iter().filter(|pv| pv.may_return()).collect();
        let tried = away.iter().map(|pv| {
            let number = pv.space.pv;
            let now = clock::instant();
            if let Some((left, times)) = self.shared.pause(number, |pause| {
                pause.away(now).map(|left| (left, pause.times()))
            }) {
                let why = format!(
                    "it was lost {times} times soon after it was there again, and is left alone for {} s: see whether the device is slow or fails now and then",
                    left.as_secs().max(1)
                );
                self.shared.still_away(number, Some(why));
                return 1;
            }
            let error = self.return_pv(files, server, (pv, &away), event).err();
            let still = error.is_some();
            self.shared.still_away(number, error.map(|error| error.to_string()));
            if !still {
                self.shared.pause(number, |pause| pause.returned(clock::instant()));
            }
            usize::from(still)
        });
        tried.sum()
    }

    /// A PV is opened anew: it may be another device by now that is at its path.
    fn return_pv(
        &self,
        files: &dyn Files,
        server: Option<&str>,
        (pv, away): (&PvView, &[&PvView]),
        event: &mut dyn FnMut(OpenEvent),
    ) -> Result<(), PoolError> {
        let number = pv.space.pv;
        let shared = Arc::clone(&self.shared);
        if !ask(&self.inbox, |reply| Message::LetGo(shared, number, reply))? {
            let what =
                format!("PV {}: operations on it have not come back so far", pv.path.display());
            return Err(PoolError::new(what, "see whether the device is in order"));
        }
        // Another may have been looked for there by mistake.
        let path = self.shared.path_of(number).unwrap_or_else(|| pv.path.clone());
        // What it lost it missed, and gets again.
        let open = open_pv(files, server, &self.shared.name, &path, true, event)?;
        let mut lane = lane_of(&self.inbox, &open)?;
        let label = lane.read(number, 0, LABEL_BYTES).ok();
        let label = label.and_then(|label| Label::decode(&label).ok());
        let label = label.filter(|label| label.pool == self.shared.uuid);
        let shown = path.display();
        if let Some(label) = label
            && let Some(other) = away.iter().find(|other| other.space.uuid == label.pv)
            && other.space.pv != number
        {
            self.shared.swap_paths(number, other.space.pv);
            let what = format!("PV {shown} is another one of this pool that is away");
            return Err(PoolError { what, help: None });
        }
        let chunks = chunks_of(&open.volume);
        if chunks < pv.space.chunks {
            let what =
                format!("PV {shown} has {chunks} chunks of 64 MiB, and had {}", pv.space.chunks);
            return Err(PoolError::new(what, "correct the path, or put the device back"));
        }
        let shared = Arc::clone(&self.shared);
        let Some(lane) = lane.keep() else { return Ok(()) };
        ask(&self.inbox, |reply| Message::Return(shared, number, (open, lane), reply))??;
        // By now a superblock says that it lacks something: a successor need not be told. One that is told leaves it out when it opens the pool, and it returns then.
        let _ = files.made_up_for(&path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_lost_again_and_again_is_left_alone_for_longer_each_time() {
        let (mut pause, mut now) = (Pause::default(), Instant::now());
        let second = Duration::from_secs(1);
        assert_eq!(pause.away(now), None, "it was there since the pool was opened");
        let mut pauses = Vec::new();
        for _ in 0..9 {
            pause.returned(now);
            now += 20 * second;
            let left = pause.away(now).unwrap_or_default();
            pauses.push(left.as_secs());
            assert_eq!(pause.away(now + left / 2), (!left.is_zero()).then_some(left / 2));
            now += left;
            assert_eq!(pause.away(now), None);
        }
        assert_eq!(pauses, [0, 0, 30, 60, 120, 240, 480, 900, 900]);
        // It was in order for a while.
        pause.returned(now);
        now += SOON;
        assert_eq!((pause.away(now), pause.times()), (None, 0));
    }
}
