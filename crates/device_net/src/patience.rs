//! Senders that wait for room in an inbox: for how long, and who wakes them.
//!
//! A frame for a queue on another channel that finds the inbox full has come before that channel had a turn, as a rule. Its sender takes no more heads until there is room, so a slow channel presses back into the
//! rings of those who send to it. The receiver wakes them when it has looked into its inbox ([`channel::room`]).
//!
//! Nobody waits longer than [`PATIENCE_NS`] with a frame for one receiver, since those behind it may be for others. And when somebody has waited in vain the receiver *stands still*: then nobody
//! waits for it any more, until it has taken something, or has room. A client without buffers is no reason to wait: its channel has looked, and has said so.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};

use channel::elements::Wake;
use channel::room::PLACES;

/// So long a frame waits for room.
pub(crate) const PATIENCE_NS: u64 = 1_000_000;

/// How long a sender has waited for one receiver with one frame.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    since_ns: Option<u64>,
}

impl Patience {
    /// There is no room, and the receiver stands still or does not; until when it is waited for. None: no longer, and it stands still from now on.
    pub(crate) fn until(&mut self, most_ns: u64, stands_still: bool, now_ns: u64) -> Option<u64> {
        let until = self.since_ns.get_or_insert(now_ns).saturating_add(most_ns);
        (!stands_still && now_ns < until).then_some(until)
    }

    /// There was room, or it is waited for no longer.
    pub(crate) fn over(&mut self) {
        self.since_ns = None;
    }
}

/// What wakes the sending queues of a network. Each has a place; several share one where there are more of them.
pub(crate) struct Bells {
    number: AtomicU32,
    places: [Mutex<Vec<(u32, Wake)>>; PLACES as usize],
}

impl std::fmt::Debug for Bells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bells").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Default for Bells {
    fn default() -> Bells {
        Bells { number: AtomicU32::new(0), places: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl Bells {
    fn place(&self, number: u32) -> MutexGuard<'_, Vec<(u32, Wake)>> {
        self.places[(number % PLACES) as usize].lock().expect("a panic ends the process")
    }

    /// A channel has a sending queue from now on; its number, by which it waits.
    pub(crate) fn hang(&self, wake: Wake) -> u32 {
        let number = self.number.fetch_add(1, Relaxed);
        self.place(number).push((number, wake));
        number
    }

    /// … and no more.
    pub(crate) fn take_down(&self, number: u32) {
        self.place(number).retain(|(its, _)| *its != number);
    }

    /// Those of a place look again.
    pub(crate) fn ring(&self, place: u32) {
        self.place(place).iter().for_each(|(_, wake)| wake());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    /// What happens to one sender with frames for one receiver, who looks now and then.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        /// So much time passes.
        Later(u64),
        /// The sender tries, and there is room or not.
        Tries(bool),
        /// The receiver looks.
        Looks,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..400_000_u64).prop_map(Step::Later),
            any::<bool>().prop_map(Step::Tries),
            Just(Step::Looks),
        ];
        prop::collection::vec(step, 1..100)
    }

    proptest! {
        /// Held against all that has happened: a frame waits exactly as long as it has not been tried a millisecond ago and nobody has waited in vain since the receiver looked last.
        #[test]
        fn a_frame_waits_a_millisecond_at_most_and_once_for_each_standstill(steps in steps()) {
            let (mut patience, mut stands_still) = (Patience::default(), false);
            let mut now = 7;
            // All moments at which this frame was tried, and when somebody gave up and the receiver looked.
            let (mut tried, mut in_vain, mut looked) = (Vec::new(), Vec::new(), vec![0]);
            for step in steps {
                now += 1;
                match step {
                    Step::Later(ns) => now += ns,
                    Step::Looks => {
                        stands_still = false;
                        looked.push(now);
                    }
                    Step::Tries(true) => {
                        patience.over();
                        tried.clear();
                    }
                    Step::Tries(false) => {
                        tried.push(now);
                        let first = tried[0];
                        let last_look = *looked.last().unwrap();
                        let stood = in_vain.iter().any(|moment| *moment > last_look);
                        let waits = !stood && now - first < PATIENCE_NS;
                        let until = patience.until(PATIENCE_NS, stands_still, now);
                        prop_assert_eq!(until, waits.then_some(first + PATIENCE_NS));
                        if !waits {
                            patience.over();
                            stands_still = true;
                            tried.clear();
                            in_vain.push(now);
                        }
                    }
                }
            }
        }

        /// Those that hang there are rung, those of other places and those that were taken down are not.
        #[test]
        fn those_of_a_place_are_rung(gone in prop::collection::vec(any::<bool>(), 0..200), place in 0..PLACES) {
            let bells = Bells::default();
            let rung: Vec<_> = gone.iter().map(|_| Arc::new(AtomicU32::new(0))).collect();
            let numbers: Vec<_> = rung.iter().map(|count| {
                let count = Arc::clone(count);
                bells.hang(Box::new(move || {
                    count.fetch_add(1, Relaxed);
                }))
            }).collect();
            for (number, _) in numbers.iter().zip(&gone).filter(|(_, gone)| **gone) {
                bells.take_down(*number);
            }
            bells.ring(place);
            for ((number, gone), count) in numbers.iter().zip(&gone).zip(&rung) {
                let wanted = u32::from(number % PLACES == place && !gone);
                prop_assert_eq!(count.load(Relaxed), wanted);
            }
        }
    }
}
