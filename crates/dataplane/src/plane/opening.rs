//! Volumes that are being opened: each on a thread of its own, so that one that waits for a lock or for a disk delays nothing but itself.
//!
//! ```text
//! put ─► opening ─► open            a put answers when that is over, or after GRACE says that it goes on;
//!           │                       put again, it says the same, or, once, why it failed; then it begins anew
//!           └─────► failed
//! ```

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use block::Files;
use protocol::message::{Failure, FailureCode, OpeningStatus, Reply};
use spec::{Change, FileIdentity, VolumeKind, VolumeSpec, change};

use super::going::GRACE;
use super::volumes::{identity, no_thread, open_volume, reopen_volume, take_out};
use super::{Plane, State, failure, in_use};
use crate::lock::locked;
use crate::storage::OpenVolume;
use crate::turns;

/// An opening that was begun, and is not over or not told.
pub(crate) struct Opening {
    told: VolumeSpec,
    since: Instant,
    /// Who has its file.
    waits_for: Arc<Mutex<Option<String>>>,
    /// What it was before is being closed.
    closes: bool,
    failed: Option<Failure>,
}

/// What is to be opened.
pub(super) enum Plan {
    /// A volume that is not there.
    New(VolumeSpec),
    /// One that is closed for it, in another form; if that cannot be, in its old one.
    Again { then: VolumeSpec, now: Box<VolumeSpec>, known: Option<FileIdentity> },
}

impl Plan {
    fn told(&self) -> &VolumeSpec {
        let (Plan::New(spec) | Plan::Again { then: spec, .. }) = self;
        spec
    }

    /// Opens it. With a failure may come the volume as it was before.
    fn carry_out(
        self,
        files: &dyn Files,
        state: &Mutex<State>,
        owner: Option<String>,
        waits: &mut dyn FnMut(String),
    ) -> (Option<OpenVolume>, Option<Failure>) {
        let opened = match self {
            Plan::New(spec) => not_shared(state, &spec)
                .and_then(|()| open_volume(files, state, spec, owner, &mut *waits)),
            Plan::Again { then, now, known } => {
                // It may wait for what is under way, and for what the kernel has yet to bring to the disk.
                match take_out(state, &then.name) {
                    Ok(old) => drop(old),
                    Err(failure) => return (None, Some(failure)),
                }
                closed(state, &then.name);
                match reopen_volume(files, state, then, known.clone(), owner.clone(), &mut *waits) {
                    Err(failure) => {
                        return (
                            reopen_volume(files, state, *now, known, owner, waits).ok(),
                            Some(failure),
                        );
                    }
                    opened => opened,
                }
            }
        };
        match opened {
            Ok(open) => (Some(open), None),
            Err(failure) => (None, Some(failure)),
        }
    }
}

/// No other volume is on its file, unless neither can write.
pub(super) fn not_shared(state: &Mutex<State>, spec: &VolumeSpec) -> Result<(), Failure> {
    let Some(file) = identity(spec) else { return Ok(()) };
    let shared = |open: &&OpenVolume| !(open.spec.read_only && spec.read_only);
    let other = locked(state).storage.volumes_on(file).find(shared).map(|it| it.spec.name.clone());
    let Some(other) = other else { return Ok(()) };
    let what = format!("the file of volume {}", spec.name);
    let help = "name another file, or put both adapters on one volume";
    Err(in_use(what, &format!("volume {other}"), help))
}

impl Opening {
    pub(super) fn status(&self) -> OpeningStatus {
        OpeningStatus {
            name: self.told.name.clone(),
            since_ms: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            waits_for: locked(&self.waits_for).clone(),
        }
    }

    /// Whether what it was before is being closed.
    pub(super) fn closes(&self) -> bool {
        self.closes && self.failed.is_none()
    }

    /// That it goes on, and for whom it waits.
    pub(super) fn goes_on(&self) -> Failure {
        let waits = locked(&self.waits_for).clone();
        let waits = waits.map(|holder| format!(", waits for {holder}")).unwrap_or_default();
        let what = format!("volume {}: opening{waits}", self.told.name);
        failure(FailureCode::Opening, what, "it is opened as soon as it can be")
    }
}

impl State {
    /// A volume that is being opened, and is an LU of this pool.
    pub(super) fn opens_lu_of(&self, pool: &str) -> Option<&str> {
        let mut opens = self.opening.iter().filter(|(_, opening)| opening.failed.is_none());
        let of = |told: &VolumeSpec| match &told.kind {
            VolumeKind::Lu(lu) => lu.pool == pool,
            _ => false,
        };
        opens.find(|(_, opening)| of(&opening.told)).map(|(name, _)| name.as_str())
    }

    /// What there is to say to who puts a volume that is being opened. An opening for something else is given up.
    pub(super) fn opening_of(&mut self, spec: &VolumeSpec) -> Option<Failure> {
        let opening = self.opening.get_mut(&spec.name)?;
        if change::volume(&opening.told, spec) != Change::Same {
            self.opening.remove(&spec.name);
            return None;
        }
        match opening.failed.take() {
            Some(failure) => {
                self.opening.remove(&spec.name);
                Some(failure)
            }
            None => Some(opening.goes_on()),
        }
    }
}

impl Plane {
    /// Begins to open a volume, and waits a little for it.
    pub(super) fn begin(
        &self,
        changing: MutexGuard<'_, ()>,
        mut state: MutexGuard<'_, State>,
        plan: Plan,
    ) -> Result<Reply, Failure> {
        let name = plan.told().name.clone();
        let opening = Opening {
            told: plan.told().clone(),
            since: Instant::now(),
            waits_for: Arc::default(),
            closes: matches!(plan, Plan::Again { .. }),
            failed: None,
        };
        let waits_for = Arc::clone(&opening.waits_for);
        state.opening.insert(name.clone(), opening);
        // What it opens, the thread puts in as a change of its own.
        drop((state, changing));
        let (done, over) = mpsc::channel();
        let whose = Arc::clone(&waits_for);
        let (changes, all) = (Arc::clone(&self.changes), Arc::clone(&self.state));
        let (outside, owner) = (Arc::clone(&self.context.outside), self.owner());
        let work = move || open(&*outside, &changes, &all, plan, owner, &whose, &done);
        let begun = turns::spawn("opening", work);
        if let Err(error) = begun {
            self.state().opening.remove(&name);
            return Err(no_thread(&name, &error));
        }
        let outcome = turns::wait(&over, GRACE);
        let mut state = self.state();
        let mine = |opening: &&Opening| Arc::ptr_eq(&opening.waits_for, &waits_for);
        let goes_on = state.opening.get(&name).filter(mine).map(Opening::goes_on);
        match (outcome, goes_on) {
            (Some(outcome), there) => {
                if there.is_some() {
                    state.opening.remove(&name);
                }
                outcome.map(|()| Reply::Done)
            }
            (None, Some(goes_on)) => Err(goes_on),
            // It was over in this moment, or was given up.
            (None, None) if state.storage.volumes.contains_key(&name) => Ok(Reply::Done),
            (None, None) => Err(failure(
                FailureCode::System,
                format!("volume {name}: given up"),
                "put it again",
            )),
        }
    }
}

/// What a volume was before it is opened again is gone.
fn closed(all: &Mutex<State>, name: &str) {
    let mut state = locked(all);
    state.away.remove(name);
    state.opening.get_mut(name).into_iter().for_each(|opening| opening.closes = false);
}

/// Opens a volume and gives it to those who wait for it, unless it was given up meanwhile.
fn open(
    files: &dyn Files,
    changes: &Mutex<()>,
    all: &Mutex<State>,
    plan: Plan,
    owner: Option<String>,
    whose: &Arc<Mutex<Option<String>>>,
    done: &Sender<Result<(), Failure>>,
) {
    let name = plan.told().name.clone();
    let (opened, failed) =
        plan.carry_out(files, all, owner, &mut |holder| *locked(whose) = Some(holder));
    // Not in the middle of a change that is being judged.
    let changing = locked(changes);
    let mut state = locked(all);
    let mine = |opening: &&mut Opening| Arc::ptr_eq(&opening.waits_for, whose);
    let Some(opening) = state.opening.get_mut(&name).filter(mine) else {
        drop((state, changing));
        // Given up: this may close it.
        return drop(opened);
    };
    let result = match opened {
        Some(open) => {
            state.opening.remove(&name);
            // Adapters and units that were without it are waiting for it.
            state.put_in(open);
            let renewal = state.renewal_of(&name);
            drop((state, changing));
            failed.map_or(renewal.carry_out_at_once(all), Err)
        }
        None => {
            opening.failed.clone_from(&failed);
            failed.map_or(Ok(()), Err)
        }
    };
    // Whoever put it may have left.
    let _ = done.send(result);
}
