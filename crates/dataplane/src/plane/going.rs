//! Changes that wait for a disk: each goes on in a thread of its own, so that one whose disk hangs delays nothing but what it is about.
//!
//! ```text
//! asked ─► going ─► over        who asks is answered when it is over, or after GRACE is told that it goes on;
//!                               asked again, is told the same, or, once, what became of it; then it begins anew
//! ```
//!
//! Nobody holds a lock of the plane's meanwhile. What a change is about is changed by no other until it is over, and nothing is built on what it
//! *holds*: whoever wants that is told that it goes on, too.

use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use protocol::message::{Failure, FailureCode, Reply, Request};

use super::{Plane, State, failure};
use crate::adapter::Adapter;
use crate::lock::locked;
use crate::turns::{self, Thread};

/// How long whoever asks for a change waits for it. One connection carries one message at a time, so that all others wait as long.
pub(super) const GRACE: Duration = Duration::from_millis(200);

/// What a change is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Volume(String),
    Unit(String),
    Adapter(String),
    Pool(String),
}

impl Subject {
    fn name(&self) -> String {
        match self {
            Subject::Volume(name) => format!("volume {name}"),
            Subject::Unit(name) => format!("unit {name}"),
            Subject::Adapter(name) => format!("adapter {name}"),
            Subject::Pool(name) => format!("pool {name}"),
        }
    }
}

/// A change that was begun, and is not over or not told.
pub(crate) struct Going {
    asked: Request,
    /// What it does, and for what it waits.
    what: &'static str,
    holds: Vec<Subject>,
    number: u64,
    /// Until it is over.
    pub(super) thread: Option<Thread>,
    outcome: Option<Result<(), Failure>>,
}

impl Going {
    /// Whether it goes on, and something goes with it.
    pub(super) fn removes(&self) -> bool {
        self.outcome.is_none() && matches!(self.asked, Request::RemoveAdapter { .. })
    }
}

/// A change that is to go on.
pub(super) struct Change {
    pub(super) about: Subject,
    pub(super) asked: Request,
    pub(super) what: &'static str,
    /// On what nothing is to be built meanwhile.
    pub(super) holds: Vec<Subject>,
}

impl State {
    /// What there is to say to who asks for a change of something that is being changed, or was. The outcome of a change that nobody has asked
    /// for again is forgotten.
    pub(super) fn told(
        &mut self,
        about: &Subject,
        asked: &Request,
    ) -> Option<Result<Reply, Failure>> {
        if let Some(goes_on) = self.held(about) {
            return Some(Err(goes_on));
        }
        let going = self.going.get_mut(about)?;
        let Some(outcome) = going.outcome.take() else {
            return Some(Err(goes_on(about, going.what)));
        };
        let same = going.asked == *asked;
        self.going.remove(about);
        same.then(|| outcome.map(|()| Reply::Done))
    }

    /// That a change holds something, or closes it.
    pub(super) fn held(&self, subject: &Subject) -> Option<Failure> {
        if let Subject::Volume(name) = subject
            && let Some(opening) = self.opening.get(name).filter(|opening| opening.closes())
        {
            return Some(opening.goes_on());
        }
        let mut going = self.going.iter().filter(|(_, going)| going.outcome.is_none());
        let (about, going) = going.find(|(_, going)| going.holds.contains(subject))?;
        Some(goes_on(about, going.what))
    }

    /// Nothing of this is held.
    pub(super) fn check_free(
        &self,
        subjects: impl IntoIterator<Item = Subject>,
    ) -> Result<(), Failure> {
        subjects.into_iter().find_map(|subject| self.held(&subject)).map_or(Ok(()), Err)
    }

    /// None of these adapters is being changed, or leaves.
    pub(super) fn check_settled<'a>(
        &self,
        adapters: impl IntoIterator<Item = (&'a String, &'a Arc<Adapter>)>,
    ) -> Result<(), Failure> {
        self.check_free(adapters.into_iter().map(|(name, _)| Subject::Adapter(name.clone())))
    }

    /// Whether an adapter is there only until the end of what it has under way.
    pub(super) fn leaves(&self, adapter: &str) -> bool {
        let going = self.going.get(&Subject::Adapter(adapter.to_owned()));
        going.is_some_and(Going::removes) && self.adapters.contains_key(adapter)
    }
}

impl Plane {
    /// Begins a change, and waits a little for it. `work` is done without a lock.
    pub(super) fn go_on(
        &self,
        changing: MutexGuard<'_, ()>,
        mut state: MutexGuard<'_, State>,
        change: Change,
        work: impl FnOnce(&Mutex<State>) -> Result<(), Failure> + Send + 'static,
    ) -> Result<Reply, Failure> {
        let Change { about, asked, what, holds } = change;
        state.changes += 1;
        let number = state.changes;
        let (done, over) = mpsc::channel();
        let (all, its) = (Arc::clone(&self.state), about.clone());
        let job = Arc::new(Mutex::new(Some(move || {
            let outcome = work(&all);
            end(&all, &its, number, outcome.clone());
            // Whoever asked may wait no more.
            let _ = done.send(outcome);
        })));
        let of_thread = Arc::clone(&job);
        // It needs the state's lock to end, so that it is noted before that.
        let thread = turns::spawn("changing", move || carry_out(&of_thread)).ok();
        let here = thread.is_none();
        let going = Going { asked, what, holds, number, thread, outcome: None };
        state.going.insert(about.clone(), going);
        drop((state, changing));
        if here {
            // Without a thread it is waited for.
            carry_out(&job);
        }
        let outcome = turns::wait(&over, GRACE);
        let mut state = self.state();
        let mine = state.going.get(&about).is_some_and(|going| going.number == number);
        match outcome {
            Some(outcome) => {
                if mine {
                    state.going.remove(&about);
                }
                outcome.map(|()| Reply::Done)
            }
            None => Err(goes_on(&about, what)),
        }
    }
}

fn carry_out(job: &Mutex<Option<impl FnOnce()>>) {
    let job = locked(job).take();
    job.into_iter().for_each(|job| job());
}

/// A change is over.
fn end(all: &Mutex<State>, about: &Subject, number: u64, outcome: Result<(), Failure>) {
    let mut state = locked(all);
    let mine = state.going.get_mut(about).filter(|going| going.number == number);
    if let Some(going) = mine {
        going.outcome = Some(outcome);
        // Nobody waits for this thread any more.
        drop(going.thread.take());
    }
}

fn goes_on(about: &Subject, what: &str) -> Failure {
    let what = format!("{}: {what}", about.name());
    failure(FailureCode::Opening, what, "it goes on as soon as they have answered")
}
