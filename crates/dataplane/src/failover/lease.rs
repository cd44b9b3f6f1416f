//! Tokens that are leases, which the control plane keeps in etcd ([`protocol::opener::Tokens`]): partners may be on two hosts.
//!
//! A thread of its own asks the control plane, which may be stopped or away, ten times a second: what it wants, what it has, for how long. Nobody else waits for that.
//! The time that it has is counted from before the question. What it had and has no longer is *lost*, as is everything when the time is over; then
//! the channels have stopped by themselves, for they look at the same deadline.
//!
//! An answer to a question of before something was given up says nothing of what is asked for since: each question has the number of its generation.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use memory::clock::boot_ns;
use protocol::opener::{Holds, Wants};
use switch::Vid;
use switch::failover::{Beacon, VidSet};

use super::control::{self, Heard};
use crate::lock::locked;
use crate::outside::Outside;

/// Between two questions.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// After so long without an answer the control plane is said to be away.
const AWAY_NS: u64 = 1_000_000_000;

/// A partner's hold on a place in etcd.
#[derive(Debug)]
pub(super) struct Lease {
    shared: Arc<Shared>,
    /// What it may bridge, or is about to give back.
    mine: VidSet,
    /// What it asked for with this beat.
    asked: VidSet,
    answer: Answer,
    /// The answer is newer than what was heard last.
    fresh: bool,
    /// Hangs up when this process ends, however it does, or the uplink.
    #[expect(dead_code, reason = "it is kept to be closed")]
    held: UnixStream,
}

#[derive(Debug)]
struct Shared {
    place: String,
    question: Mutex<Question>,
    answer: Mutex<Option<Answer>>,
    /// The other end of what is held.
    holder: UnixStream,
}

#[derive(Debug, Clone, Default)]
struct Question {
    beacon: Option<Beacon>,
    vids: VidSet,
    /// Another number when something is no longer wanted.
    generation: u64,
}

/// What is known by the last answer.
#[derive(Debug, Clone, Default)]
struct Answer {
    generation: u64,
    /// What it has; nothing: that is not known.
    has: Option<VidSet>,
    /// Until when ([`boot_ns`]).
    until_ns: u64,
    partner: Option<Beacon>,
    trouble: Option<String>,
    at_ns: u64,
}

impl Lease {
    pub(super) fn open(outside: &Arc<Outside>, place: &str) -> io::Result<Lease> {
        let (held, holder) = UnixStream::pair()?;
        let shared = Arc::new(Shared {
            place: place.to_owned(),
            question: Mutex::default(),
            answer: Mutex::default(),
            holder,
        });
        let (its, outside) = (Arc::downgrade(&shared), Arc::clone(outside));
        let ask = move || {
            while let Some(shared) = its.upgrade() {
                shared.ask(&outside);
                drop(shared);
                std::thread::sleep(ASK_EVERY);
            }
        };
        std::thread::Builder::new().name("token".into()).spawn(ask)?;
        let (mine, asked) = (VidSet::new(), VidSet::new());
        let answer = Answer { at_ns: boot_ns(), ..Answer::default() };
        Ok(Lease { shared, mine, asked, answer, fresh: false, held })
    }

    /// What it had and has no longer.
    pub(super) fn lost(&mut self) -> VidSet {
        if let Some(answer) = locked(&self.shared.answer).take() {
            // An answer that does not know how long leaves what was told before.
            let until_ns = match answer.has {
                Some(_) => answer.until_ns,
                None => self.answer.until_ns,
            };
            self.answer = Answer { until_ns: until_ns.max(self.answer.until_ns), ..answer };
            self.fresh = true;
        }
        let kept = match &self.answer.has {
            _ if boot_ns() >= self.answer.until_ns => VidSet::new(),
            Some(has) => &self.mine & has,
            None => return VidSet::new(),
        };
        let lost = &self.mine - &kept;
        if !lost.is_empty() {
            self.mine = kept;
            self.ask_for();
        }
        lost
    }

    /// Until when it has what it has.
    pub(super) fn until_ns(&self) -> u64 {
        self.answer.until_ns
    }

    /// Those of the tokens that it has by now. Others come with a later beat.
    pub(super) fn take(&mut self, vids: &VidSet) -> VidSet {
        self.asked.clone_from(vids);
        let current = locked(&self.shared.question).generation == self.answer.generation;
        let Some(has) = self.answer.has.as_ref().filter(|_| current) else { return VidSet::new() };
        if boot_ns() >= self.answer.until_ns {
            return VidSet::new();
        }
        let got = vids & has;
        self.mine.extend(&got);
        got
    }

    pub(super) fn give_back(&mut self, vids: &VidSet) {
        self.mine = &self.mine - vids;
        self.ask_for();
    }

    /// The last thing in a beat.
    pub(super) fn say(&mut self, beacon: &Beacon) {
        locked(&self.shared.question).beacon = Some(beacon.clone());
        self.ask_for();
        self.asked.clear();
    }

    /// A partner that is there speaks with every answer, though it may say the same.
    pub(super) fn hear(&mut self) -> Heard {
        let Answer { has, trouble, .. } = &self.answer;
        // With trouble it is what was known before.
        if !std::mem::take(&mut self.fresh) || has.is_none() || trouble.is_some() {
            return Heard::Nothing;
        }
        self.answer.partner.clone().map_or(Heard::Nobody, Heard::Beacon)
    }

    /// Why it has no token.
    pub(super) fn trouble(&self) -> Option<&str> {
        let away = boot_ns().saturating_sub(self.answer.at_ns) > AWAY_NS;
        let away = away.then_some("the control plane does not answer");
        away.or(self.answer.trouble.as_deref())
    }

    fn ask_for(&self) {
        let wanted = &self.mine | &self.asked;
        let mut question = locked(&self.shared.question);
        if !question.vids.is_subset(&wanted) {
            question.generation += 1;
        }
        question.vids = wanted;
    }
}

impl Shared {
    fn ask(&self, outside: &Outside) {
        let Question { beacon, vids, generation } = locked(&self.question).clone();
        let Some(beacon) = beacon else { return };
        let wants = Wants {
            place: self.place.clone(),
            identity: beacon.identity,
            beacon: control::encode(&beacon, 0).to_vec(),
            vids: vids.iter().map(|vid| vid.get()).collect(),
        };
        let at_ns = boot_ns();
        let holds = outside
            .tokens(wants, self.holder.as_fd())
            .unwrap_or_else(|error| Holds { trouble: Some(error.to_string()), ..Holds::default() });
        let partner = holds.partner.as_deref().and_then(|bytes| bytes.try_into().ok());
        *locked(&self.answer) = Some(Answer {
            generation,
            has: holds.vids.map(|vids| vids.into_iter().filter_map(Vid::new).collect()),
            until_ns: at_ns.saturating_add(holds.for_ns),
            partner: partner.and_then(|bytes| Some(control::decode(bytes)?.0)),
            trouble: holds.trouble,
            at_ns,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 3_600_000_000_000;

    fn vids(numbers: &[u16]) -> VidSet {
        numbers.iter().copied().filter_map(Vid::new).collect()
    }

    fn beacon() -> Beacon {
        let (has, claims) = (vids(&[1, 2]), vids(&[1, 2]));
        let mode = switch::failover::Mode::Auto;
        Beacon { identity: 7, mode, priority: 1, fit: true, reaches: true, has, claims }
    }

    /// A lease whose answers are the test's.
    fn lease() -> Lease {
        let (held, holder) = UnixStream::pair().unwrap();
        let (question, answer) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { place: String::new(), question, answer, holder });
        let (mine, asked) = (VidSet::new(), VidSet::new());
        Lease { shared, mine, asked, answer: Answer::default(), fresh: false, held }
    }

    /// Its control plane answers the last question: it has these, for so long.
    fn answer(lease: &Lease, has: Option<&[u16]>, for_ns: u64) {
        let generation = locked(&lease.shared.question).generation;
        let at_ns = boot_ns();
        *locked(&lease.shared.answer) = Some(Answer {
            generation,
            has: has.map(vids),
            until_ns: at_ns + for_ns,
            partner: Some(beacon()),
            trouble: None,
            at_ns,
        });
    }

    /// A beat in which all is wanted that it has not; what it gets.
    fn beat(lease: &mut Lease) -> VidSet {
        let got = lease.take(&(&vids(&[1, 2]) - &lease.mine.clone()));
        lease.say(&beacon());
        got
    }

    #[test]
    fn what_was_asked_for_is_had_when_an_answer_of_since_then_says_so() {
        let mut lease = lease();
        assert_eq!(beat(&mut lease), vids(&[]));
        answer(&lease, Some(&[1]), HOUR_NS);
        assert_eq!((lease.lost(), lease.hear()), (vids(&[]), Heard::Beacon(beacon())));
        assert_eq!((beat(&mut lease), lease.hear()), (vids(&[1]), Heard::Nothing));
        // Given back, it may be somebody else's before an answer of before comes.
        answer(&lease, Some(&[1, 2]), HOUR_NS);
        lease.give_back(&vids(&[1]));
        assert_eq!((lease.lost(), beat(&mut lease)), (vids(&[]), vids(&[])));
        answer(&lease, Some(&[1, 2]), HOUR_NS);
        assert_eq!((lease.lost(), beat(&mut lease)), (vids(&[]), vids(&[1, 2])));
    }

    #[test]
    fn what_is_not_had_any_more_is_lost_once_and_so_is_all_when_the_time_is_over() {
        let mut lease = lease();
        beat(&mut lease);
        answer(&lease, Some(&[1, 2]), HOUR_NS);
        assert_eq!((lease.lost(), beat(&mut lease)), (vids(&[]), vids(&[1, 2])));
        // A control plane that has just come knows nothing, and takes nothing away.
        let until_ns = lease.until_ns();
        answer(&lease, None, 0);
        assert_eq!(
            (lease.lost(), lease.until_ns(), lease.hear()),
            (vids(&[]), until_ns, Heard::Nothing)
        );
        answer(&lease, Some(&[2]), HOUR_NS);
        assert_eq!((lease.lost(), lease.lost()), (vids(&[1]), vids(&[])));
        lease.answer.until_ns = boot_ns();
        assert_eq!(
            (lease.lost(), lease.lost(), beat(&mut lease)),
            (vids(&[2]), vids(&[]), vids(&[]))
        );
    }
}
