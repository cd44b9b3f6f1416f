//! Who copies next, where a lane does the work on its channel's thread: bookkeeping without I/O.
//!
//! While such a lane copies, nobody else on its channel gets anything. So between two ticks (a completion that the lane makes itself,
//! see [`LaneId::TICK`](crate::LaneId::TICK)) a lane copies a *round* at most for all its long requests together; these take turns, and the
//! channel serves its other queues, and publishes what it did for them, before each round. Short requests ([`SHORT`]) go at once.
//!
//! A round is as many bytes as the copies of late did in about [`ROUND_TIME`]: memory that the client has never touched is made and cleared by the
//! kernel while it is copied to, which takes ten times as long.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use memory::clock;

use crate::slab::IN_FLIGHT_MAX;
use crate::{Finish, Outcome, Request, Submit, Tag, Wait};

/// Most bytes for long requests between two ticks.
pub(crate) const ROUND: u64 = 1 << 20;
/// The least; a multiple of every block size, as all rounds are.
const ROUND_MIN: u64 = 16 * 1024;
/// How long the channel's other queues wait for a round.
const ROUND_TIME: Duration = Duration::from_micros(8);
/// A request that waits for nobody.
const SHORT: u64 = 16 * 1024;
/// When to try again where no more can wait.
const NO_ROOM: Duration = Duration::from_millis(1);

/// What a request may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Copy at most so many bytes; [`Turns::copied`] says how it goes on.
    Copy(u64),
    /// Wait: a [`Finish`] comes.
    Wait {
        /// The caller starts a tick.
        tick: bool,
    },
    /// There is no room to wait.
    Full,
}

/// The requests of a lane.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Those that wait for their next round, with what is done of each, and what is left.
    waiting: VecDeque<(Tag, u64, u64)>,
    /// Whose turn it is: several, if all of them fit into the round.
    next: Vec<Tag>,
    /// What long requests may copy between two ticks now.
    round: u64,
    /// What is left of that before the next tick.
    left: u64,
    /// When the last one began.
    began: Option<Instant>,
}

impl Turns {
    pub(crate) fn new() -> Turns {
        let waiting = VecDeque::with_capacity(IN_FLIGHT_MAX);
        // A round of the longest has room for no more that are not short.
        let next = Vec::with_capacity((ROUND / SHORT) as usize);
        Turns { waiting, next, round: SHORT, left: SHORT, began: None }
    }

    /// A request comes, or comes again for its next round.
    #[inline]
    pub(crate) fn ask(&mut self, request: &Request<'_>) -> Turn {
        if request.len <= SHORT {
            return Turn::Copy(request.len);
        }
        self.ask_long(request)
    }

    fn ask_long(&mut self, request: &Request<'_>) -> Turn {
        let mine = self.next.iter().position(|next| *next == request.tag);
        if let Some(mine) = mine {
            self.next.swap_remove(mine);
        }
        if mine.is_some() || self.waiting.is_empty() && self.left > 0 {
            self.began = Some(clock::instant());
            return Turn::Copy(self.left.max(ROUND_MIN));
        }
        self.wait(request, request.done)
    }

    fn wait(&mut self, request: &Request<'_>, done: u64) -> Turn {
        if self.waiting.len() == IN_FLIGHT_MAX {
            return Turn::Full;
        }
        self.waiting.push_back((request.tag, done, request.len.saturating_sub(done)));
        Turn::Wait { tick: self.waiting.len() == 1 }
    }

    /// A request has copied: it is `done` to there. `None` when that is all of it.
    #[inline]
    pub(crate) fn copied(&mut self, request: &Request<'_>, done: u64) -> Option<Turn> {
        if request.len > SHORT {
            let copied = done - request.done;
            self.left = self.left.saturating_sub(copied);
            if let Some(began) = self.began.take().filter(|_| copied >= self.round) {
                self.round = next_round(self.round, clock::instant().duration_since(began));
            }
        }
        if done >= request.len { None } else { Some(self.wait(request, done)) }
    }

    /// A tick has ended: whose turn it is. True when another one is to be started.
    pub(crate) fn tick(&mut self, out: &mut Vec<Finish>) -> bool {
        self.left = self.round;
        // Who had a turn and did not come is past it.
        self.next.clear();
        let mut room = self.round;
        while let Some((tag, done, rest)) = self.waiting.front().copied() {
            if !self.next.is_empty() && rest > room || self.next.len() == self.next.capacity() {
                break;
            }
            room = room.saturating_sub(rest);
            self.waiting.pop_front();
            self.next.push(tag);
            out.push(Finish { tag, outcome: Outcome::Again { done } });
        }
        !self.waiting.is_empty()
    }

    /// What a lane answers to a request that has to wait; `tick` starts a tick.
    pub(crate) fn answer(turn: Turn, tick: impl FnOnce()) -> Submit {
        match turn {
            Turn::Wait { tick: false } => Submit::Pending,
            Turn::Wait { tick: true } => {
                tick();
                Submit::Pending
            }
            Turn::Copy(_) | Turn::Full => {
                let until = clock::instant() + NO_ROOM;
                Submit::Park { reason: Wait::BackEndFull, until: Some(until) }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// How long a round is to be after one that took so long.
fn next_round(round: u64, took: Duration) -> u64 {
    let next = match took {
        took if took > ROUND_TIME => round / 2,
        took if took < ROUND_TIME / 3 => round * 2,
        _ => round,
    };
    next.clamp(ROUND_MIN, ROUND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpKind;
    use proptest::prelude::*;

    fn request(tag: u32, len: u64, done: u64) -> Request<'static> {
        Request { op: OpKind::Read, offset: 0, len, bufs: &[], tag: Tag(tag), done, passed: 0 }
    }

    proptest! {
        /// Long requests of any lengths: between two ticks one round is copied, all end, and none waits for more than a round of each other.
        #[test]
        fn long_requests_take_turns(lengths in prop::collection::vec(SHORT + 1..8 * ROUND, 1..20)) {
            let mut turns = Turns::new();
            let (mut ticking, mut ticks, mut copied) = (false, 0, 0);
            let mut left: Vec<u64> = lengths.clone();
            let mut out = Vec::new();
            let mut asks: Vec<(u32, u64)> = (0..lengths.len() as u32).map(|tag| (tag, 0)).collect();
            loop {
                for (tag, done) in asks.drain(..) {
                    let request = request(tag, lengths[tag as usize], done);
                    let mut turn = Some(turns.ask(&request));
                    if let Some(Turn::Copy(limit)) = turn {
                        let bytes = limit.min(request.len - done);
                        copied += bytes;
                        left[tag as usize] -= bytes;
                        turn = turns.copied(&request, done + bytes);
                    }
                    match turn {
                        Some(Turn::Wait { tick }) => {
                            prop_assert!(!(tick && ticking), "one tick at a time");
                            ticking |= tick;
                        }
                        None => prop_assert_eq!(left[tag as usize], 0),
                        other => prop_assert!(false, "{:?}", other),
                    }
                    // A round may begin with what the one before it has left.
                    prop_assert!(copied < 2 * ROUND);
                }
                if !ticking {
                    break;
                }
                (ticks, copied) = (ticks + 1, 0);
                ticking = turns.tick(&mut out);
                for finish in out.drain(..) {
                    let Outcome::Again { done } = finish.outcome else { panic!("{finish:?}") };
                    asks.push((finish.tag.0, done));
                }
            }
            prop_assert!(turns.is_empty());
            prop_assert!(left.iter().all(|left| *left == 0));
            let rounds: u64 = lengths.iter().map(|len| len.div_ceil(ROUND_MIN)).sum();
            prop_assert!(ticks <= rounds + lengths.len() as u64);
        }
    }

    /// Copies at one speed settle at a round that takes about its time, from either side, within the bounds.
    #[test]
    fn rounds_become_as_long_as_their_time_allows() {
        let settled = |bytes_per_us: u64, mut round: u64| {
            for _ in 0..10 {
                round = next_round(round, Duration::from_nanos(round * 1000 / bytes_per_us));
            }
            round
        };
        for start in [ROUND_MIN, SHORT, ROUND] {
            assert_eq!(settled(100, start), ROUND_MIN, "100 MB/s");
            assert!((64 * 1024..=128 * 1024).contains(&settled(13_000, start)), "13 GB/s");
            assert_eq!(settled(1_000_000, start), ROUND);
        }
    }

    #[test]
    fn short_requests_wait_for_nobody() {
        let mut turns = Turns::new();
        let long = request(1, 4 * ROUND, 0);
        assert_eq!(turns.ask(&long), Turn::Copy(SHORT));
        assert_eq!(turns.copied(&long, SHORT), Some(Turn::Wait { tick: true }));
        assert_eq!(turns.ask(&request(2, SHORT, 0)), Turn::Copy(SHORT));
        assert_eq!(turns.ask(&request(3, SHORT + 512, 0)), Turn::Wait { tick: false });
    }

    /// A round that is longer than a request is shared by those that fit into it, and a turn that nobody used is nobody's.
    #[test]
    fn a_round_is_for_as_many_as_fit_into_it() {
        let mut turns = Turns { round: ROUND, left: 0, ..Turns::new() };
        let requests: Vec<_> = (0..6).map(|tag| request(tag, ROUND / 4, 0)).collect();
        for request in &requests {
            assert_eq!(turns.ask(request), Turn::Wait { tick: request.tag == Tag(0) });
        }
        let mut granted = Vec::new();
        assert!(turns.tick(&mut granted));
        let tags = |granted: &[Finish]| granted.iter().map(|it| it.tag.0).collect::<Vec<_>>();
        assert_eq!(tags(&granted), [0, 1, 2, 3]);
        // The channel may take them in any order. One does not come.
        for tag in [3, 1, 0] {
            let request = &requests[tag];
            assert!(matches!(turns.ask(request), Turn::Copy(limit) if limit >= request.len));
            assert_eq!(turns.copied(request, request.len), None);
        }
        granted.clear();
        assert!(!turns.tick(&mut granted));
        assert_eq!(tags(&granted), [4, 5]);
        turns.left = 0;
        assert_eq!(turns.ask(&requests[2]), Turn::Wait { tick: true });
    }
}
