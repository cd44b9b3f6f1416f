//! Carries operations to their end: asks [`next`] what is to be done, and does it.

use super::change::Begun;
use super::media;
use super::registry::{Key, Live, Shown};
use super::shared::{ApplyOutcome, Done, Ledger, Server};
use crate::caller;
use crate::error::{ApiError, Code};
use crate::model::files::Made;
use crate::model::pools::pool_of;
use crate::model::resolve::{self, Wanted};
use crate::model::validate::validate;
use crate::model::{Desired, san};
use crate::operation::{Action, Carried, Edit, Facts, Kind, Operation, Step, Work, next};
use crate::reconcile::Subject;
use crate::trail::Kind as EventKind;
use crate::turns;
use fabric::attribute::{Attributes, Object, attr};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a change of a volume waits for it: a little longer than a data plane waits for who has its file.
const OPENING_WAIT: Duration = Duration::from_secs(40);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(100);
/// How often it is looked how far an operation is that goes on in a data plane.
pub(super) const PROGRESS_LOOK: Duration = Duration::from_millis(300);
/// How often it is tried to take back a change, while the store does not take that.
const STORE_AGAIN: Duration = Duration::from_secs(1);

impl Server {
    /// The operations that there are, the oldest first.
    pub fn operations(&self) -> Vec<Shown> {
        self.registry.all()
    }

    /// How many there are, by how far they are.
    pub fn operation_counts(&self) -> BTreeMap<Step, u64> {
        self.registry.counts()
    }

    /// One of them.
    pub fn operation(&self, id: u64) -> Result<Shown, ApiError> {
        let missing = || {
            ApiError::new(Code::NotFound, format!("there is no operation {id}"))
                .help("`trunkline operation list` shows those that there are")
        };
        self.registry.all().into_iter().find(|one| one.operation.id == id).ok_or_else(missing)
    }

    /// Returns when an operation has ended, with how.
    pub async fn operation_ended(&self, id: u64) -> Result<Shown, ApiError> {
        self.operation(id)?;
        self.registry.ended(id).await;
        self.operation(id)
    }

    /// Has an operation undone. It goes on until it is.
    pub async fn cancel_operation(&self, id: u64) -> Result<Shown, ApiError> {
        let mut ledger = self.change.lock().await;
        let shown = self.operation(id)?;
        let Operation { step, .. } = shown.operation;
        if !shown.operation.can_cancel() {
            let why = match step {
                step if step.has_ended() => "has ended",
                Step::Cleaning => "is being undone",
                _ => "is carried to its end",
            };
            let refusal = ApiError::new(Code::InUse, format!("operation {id} {why}"));
            return Err(refusal.help(format!("see `trunkline operation show {id}`")));
        }
        self.registry.update(id, |operation| (operation.cancelled, operation.shown) = (true, true));
        if let Some(live) = self.registry.live(id) {
            live.cancelled.store(true, Ordering::Relaxed);
        }
        if let Err(error) = self.commit(&mut ledger, &self.desired()) {
            tracing::warn!(
                id,
                "a crash now would forget that the operation was cancelled: {error}"
            );
        }
        drop(ledger);
        self.operation(id)
    }

    /// Goes on with what an earlier server began.
    pub(super) fn resume_operations(&self) {
        let (journal, views) = (self.registry.journal(), self.supervisor_views());
        for operation in journal.running() {
            let Some(server) = self.myself.upgrade() else { return };
            let id = operation.id;
            self.registry.resume(id);
            let mut facts = Facts { resumed: true, ..Facts::default() };
            if let Work::Restart { dataplane, pid } = &operation.work {
                let now = views.get(dataplane).and_then(|view| view.pid);
                facts.same_process = now.is_some() && now == *pid;
            }
            let all: BTreeSet<String> = self.desired().dataplane_names().into_iter().collect();
            tokio::spawn(async move {
                if let Err(why) = server.drive(id, facts, &all).await {
                    tracing::warn!(id, "an operation that an earlier server began: {why}");
                }
            });
        }
    }

    /// Goes on until the operation has ended or, of a change whose media were copied, is to be stored. What data planes said of it last.
    pub(super) async fn drive(
        &self,
        id: u64,
        mut facts: Facts,
        concerned: &BTreeSet<String>,
    ) -> Result<ApplyOutcome, ApiError> {
        let mut told = ApplyOutcome::default();
        let until = turns::now() + OPENING_WAIT;
        loop {
            let Some(operation) = self.registry.get(id) else { return Ok(told) };
            let late = turns::now() > until;
            match next(&operation, &facts) {
                Action::Commit => return Ok(told),
                Action::Nothing => {
                    return match operation.error {
                        Some(error) => Err(error),
                        None => Ok(told),
                    };
                }
                Action::Copy => facts.finished = Some(self.copy(&operation).await),
                Action::Restart => facts.finished = Some(self.restart(&operation).await),
                Action::Detach => facts.finished = self.detach(&operation, facts.resumed).await,
                Action::Scrub => facts.finished = self.scrub(&operation, facts.resumed).await,
                Action::Image => facts.finished = self.image(&operation, facts.resumed).await,
                Action::Tell => {
                    let early = self.asks_before_it_is_known(&operation);
                    told = self.tell(Some(concerned)).await;
                    // It was opened with that, and may be in the tier that it was to be in before.
                    if early {
                        told = self.tell(Some(concerned)).await;
                    }
                    facts.carried = self.carried(&operation, &told, late);
                }
                Action::Wait => {
                    if !operation.shown {
                        self.registry.update(id, |operation| operation.shown = true);
                    }
                    let cancelled =
                        self.registry.until(|all| all.get(id).is_none_or(|it| it.cancelled));
                    let _ = tokio::time::timeout(LOOK, cancelled).await;
                    told = self.told();
                    facts.carried = self.carried(&operation, &told, late);
                    // What one data plane has let go of now, another is to have.
                    if facts.carried == Carried::Holds {
                        told = self.tell(Some(concerned)).await;
                        facts.carried = self.carried(&operation, &told, late);
                    }
                }
                Action::GiveUp(why) => {
                    let ledger = &mut *self.change.lock().await;
                    self.registry
                        .update(id, |it| (it.step, it.error) = (Step::Cleaning, Some(why)));
                    // Without it the next server comes to the same.
                    self.commit_or_warn(ledger, id);
                }
                Action::Revert(why) => {
                    if let Err(error) = self.revert(id, &why).await {
                        self.revert_later(id, why.clone(), concerned.clone());
                        let help = format!(
                            "it could not be taken back so far: {error}; operation {id} goes on trying"
                        );
                        // Whoever did not wait for the answer finds it there.
                        let subject = id.to_string();
                        self.trail.note(
                            EventKind::Operation,
                            Some(&subject),
                            format!("{why}; {help}"),
                        );
                        return Err(why.help(help));
                    }
                }
                Action::Clean if !matches!(operation.kind, Kind::Change | Kind::Copy) => {
                    // All was copied, or read, before that was known: what is done is done.
                    if self.stop_detach(&operation).await
                        || self.stop_scrub(&operation).await
                        || self.stop_image(&operation).await
                    {
                        self.finish(id, Step::Done, None, facts.resumed).await;
                    }
                    facts.clean = true;
                }
                Action::Clean => {
                    told = self.tell(Some(concerned)).await;
                    self.clean(&operation);
                    facts.clean = true;
                }
                Action::End(step, error) => self.finish(id, step, error, facts.resumed).await,
            }
            if self.ended.load(Ordering::Relaxed)
                && self.registry.get(id).is_some_and(|it| !it.step.has_ended())
            {
                self.registry.abandon(id);
                let why = format!("the server is ending; the next one goes on with operation {id}");
                return Err(ApiError::new(Code::Unavailable, why));
            }
        }
    }

    /// How a change stands with the data planes.
    fn carried(&self, operation: &Operation, told: &ApplyOutcome, late: bool) -> Carried {
        let desired = self.desired();
        // What it asks of its pool is the pool's to say.
        let pools = asks_pools(operation).filter_map(|(_, set)| pool_of(set));
        let touched = operation.touches().chain(pools.map(|pool| (Object::Pool, pool)));
        let touched: Vec<(Object, &str)> = touched.collect();
        let of = |all| failure_of(all, touched.iter().copied(), &desired);
        match (of(&told.failures), of(&told.opening)) {
            (Some(failure), _) => Carried::Failed(failure),
            (None, Some(opening)) if late => Carried::Late(opening),
            (None, Some(_)) => Carried::Opening,
            // It is not taken back for that: who is shut out by it stays so, and it is done when the disk answers.
            (None, None) if !late && self.changes_one_of(operation, &told.opening, &desired) => {
                Carried::Opening
            }
            (None, None) => Carried::Holds,
        }
    }

    /// Whether an LU asks its pool for something whose number is not known: the pool cannot be told yet.
    fn asks_before_it_is_known(&self, operation: &Operation) -> bool {
        if asks_pools(operation).next().is_none() {
            return false;
        }
        let mut desired = self.desired();
        self.learn_files(&mut desired);
        asks_pools(operation).any(|(name, _)| desired.lu_number(name).is_none())
    }

    /// Whether one of these is an adapter that is another by this change, as by that of a mask: it may wait for what a disk has under way.
    fn changes_one_of(
        &self,
        operation: &Operation,
        opening: &BTreeMap<Subject, ApiError>,
        desired: &Desired,
    ) -> bool {
        let Work::Change { edits, files } = &operation.work else { return false };
        let adapters = opening.keys().filter_map(|subject| match subject {
            Subject::Adapter(name) => Some(name),
            _ => None,
        });
        let mut adapters = adapters.peekable();
        if adapters.peek().is_none() {
            return false;
        }
        let (before, now) = (self.wanted(&back(desired, edits, files)), self.wanted(desired));
        let of = |all: &BTreeMap<String, Wanted>, name: &String| {
            all.values().find_map(|wanted| wanted.adapters.get(name).cloned())
        };
        adapters.any(|name| of(&before, name) != of(&now, name))
    }

    async fn copy(&self, operation: &Operation) -> Result<(), ApiError> {
        let (paths, ended) = (self.paths.clone(), Arc::clone(&self.ended));
        let live = self.registry.live(operation.id).unwrap_or_default();
        let operation = operation.clone();
        let copying = tokio::task::spawn_blocking(move || {
            let stopped =
                || live.cancelled.load(Ordering::Relaxed) || ended.load(Ordering::Relaxed);
            let progress = |copied, bytes| {
                let Live { copied: of, bytes: all, .. } = &*live;
                of.store(copied, Ordering::Relaxed);
                all.store(bytes, Ordering::Relaxed);
            };
            media::copy_all(&paths, &operation, stopped, progress)
        });
        let failed =
            |error| ApiError::new(Code::Failed, format!("the copy was not finished: {error}"));
        copying.await.map_err(failed)?
    }

    async fn restart(&self, operation: &Operation) -> Result<(), ApiError> {
        let Work::Restart { dataplane, .. } = &operation.work else { return Ok(()) };
        let supervisor = self.supervisors().get(dataplane).cloned();
        match supervisor {
            Some(supervisor) => supervisor.restart().await,
            None => Err(self.not_found(Object::DataPlane, dataplane)),
        }
    }

    /// Puts back what was before, where it is still as this change left it, in one transaction with the step.
    async fn revert(&self, id: u64, why: &ApiError) -> Result<(), ApiError> {
        let ledger = &mut *self.change.lock().await;
        let Some(operation) = self.registry.get(id) else { return Ok(()) };
        let Work::Change { edits, files } = &operation.work else { return Ok(()) };
        let now = self.desired();
        let back = back(&now, edits, files);
        let (next, step, why) = match validate(&back, &self.paths) {
            Ok(_) => (back, Step::Cleaning, with_what_stays(why.clone(), &now, edits)),
            // Somebody builds on it by now.
            Err(refusal) => {
                let help = format!("it stays and is tried again, since without it {refusal}");
                (now, Step::Done, why.clone().help(help))
            }
        };
        let before = self.registry.update(id, |it| {
            (it.step, it.error, it.shown) = (step, Some(why), true);
        });
        let stored = self.commit(ledger, &next);
        if let (Err(_), Some(before)) = (&stored, before) {
            self.registry.restore(before);
        }
        stored
    }

    /// Goes on trying to take back what the store did not take.
    fn revert_later(&self, id: u64, why: ApiError, concerned: BTreeSet<String>) {
        let Some(server) = self.myself.upgrade() else { return };
        tokio::spawn(async move {
            loop {
                if server.ended.load(Ordering::Relaxed) {
                    return server.registry.abandon(id);
                }
                tokio::time::sleep(STORE_AGAIN).await;
                if server.revert(id, &why).await.is_ok() {
                    // Why it was taken back was the answer already.
                    let _ = Box::pin(server.drive(id, Facts::default(), &concerned)).await;
                    return;
                }
            }
        });
    }

    /// Removes what is left of objects that are not there.
    fn clean(&self, operation: &Operation) {
        media::forget_parts(&self.paths, operation);
        let Work::Change { edits, .. } = &operation.work else { return };
        let made = edits.iter().filter(|edit| edit.before.is_none());
        let made = made.filter_map(|edit| Some((edit, edit.after.as_ref()?)));
        self.forget(made);
    }

    /// It has ended, unless somebody cancelled it just now.
    pub(super) async fn finish(&self, id: u64, step: Step, error: Option<ApiError>, resumed: bool) {
        let ledger = &mut *self.change.lock().await;
        let Some(operation) = self.registry.get(id) else { return };
        if step == Step::Done && operation.cancelled && operation.can_cancel() {
            return;
        }
        let shown = operation.shown || resumed;
        if let Work::Change { edits, .. } = &operation.work
            && step == Step::Done
        {
            media::forget_parts(&self.paths, &operation);
            let gone = edits.iter().filter(|edit| edit.after.is_none());
            self.forget(gone.filter_map(|edit| Some((edit, edit.before.as_ref()?))));
        }
        if shown {
            let subjects = operation.subjects().join(", ");
            let kind = operation.kind.as_str();
            let why = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            let message =
                format!("operation {id}, {kind} of {subjects}, is {}{why}", step.as_str());
            self.trail.note(EventKind::Operation, Some(&id.to_string()), message);
        }
        self.registry.update(id, |it| (it.step, it.error, it.shown) = (step, error, shown));
        // What is done is done: the next change writes it, or the next server finds the same.
        self.commit_or_warn(ledger, id);
    }

    /// Has work done that changes no object: begins it, or waits for the same that somebody has begun; false: it was that one. It is done also where how far it
    /// is cannot be written down.
    pub(super) async fn have_done(
        &self,
        begun: &Begun,
        is: impl Fn(&Work) -> bool,
        what: (Kind, Step, Work),
        done: &Done,
    ) -> Result<bool, ApiError> {
        let mut ledger = self.change.lock().await;
        if let Some(id) = self.registry.running(is) {
            drop(ledger);
            begun.with(id, &Done::default());
            self.registry.ended(id).await;
            let Operation { step, error, .. } = self.operation(id)?.operation;
            return match error {
                Some(error) => Err(error),
                None if step.has_ended() => Ok(false),
                None => Err(ApiError::new(Code::Unavailable, "the server is ending")),
            };
        }
        let set = |operation: &mut Operation| {
            (operation.caller, operation.shown) = (caller::present(), true);
        };
        let id = self.registry.begin(what, BTreeSet::new(), set);
        self.commit_or_warn(&mut ledger, id);
        drop(ledger);
        begun.with(id, done);
        self.drive(id, Facts::default(), &BTreeSet::new()).await?;
        Ok(true)
    }

    /// Whether nobody wants an operation any more: it was cancelled, or this server ends.
    pub(super) fn is_given_up(&self, id: u64) -> bool {
        self.registry.get(id).is_none_or(|it| it.cancelled) || self.ended.load(Ordering::Relaxed)
    }

    /// Tells how far an operation is that goes on in a data plane.
    pub(super) fn tell_progress(&self, id: u64, bytes: u64, copied: u64) {
        if let Some(live) = self.registry.live(id) {
            live.bytes.store(bytes, Ordering::Relaxed);
            live.copied.store(copied, Ordering::Relaxed);
        }
    }

    /// Until it is looked again how far an operation is, or it is cancelled.
    pub(super) async fn before_next_look(&self, id: u64) {
        let cancelled = self.registry.until(|all| all.get(id).is_none_or(|it| it.cancelled));
        let _ = tokio::time::timeout(PROGRESS_LOOK, cancelled).await;
    }

    /// Stores what is known of files and operations.
    pub(super) fn commit_or_warn(&self, ledger: &mut Ledger, id: u64) {
        let mut desired = self.desired();
        self.learn_files(&mut desired);
        if let Err(error) = self.commit(ledger, &desired) {
            tracing::warn!(id, "how far an operation is was not stored: {error}");
        }
    }
}

/// The LUs that were there and go to another tier, or are to have more set aside, by this change, with what they will be.
fn asks_pools(operation: &Operation) -> impl Iterator<Item = (&str, &Attributes)> {
    let edits = match &operation.work {
        Work::Change { edits, .. } => edits.as_slice(),
        _ => &[],
    };
    let volumes = edits.iter().filter(|edit| edit.object == Object::Volume);
    volumes.filter_map(|Edit { name, before, after, .. }| {
        let (before, after) = (before.as_ref()?, after.as_ref()?);
        let tier = attr::volume::TIER.of(after);
        let moves = tier.is_some() && attr::volume::TIER.of(before) != tier;
        let reserve = |set| attr::volume::RESERVE.value(set);
        (moves || reserve(before) < reserve(after)).then_some((name.as_str(), after))
    })
}

/// Says what of a change stays although it is taken back.
fn with_what_stays(why: ApiError, now: &Desired, edits: &[Edit]) -> ApiError {
    let stays =
        edits.iter().filter(|it| it.kept && now[it.object].get(&it.name) == it.after.as_ref());
    let names: Vec<String> = stays.map(|it| format!("{} `{}`", it.object, it.name)).collect();
    match names.as_slice() {
        [] => why,
        names => why.help(format!(
            "it was taken back, but for {}: it stays, since a configuration names it",
            names.join(", ")
        )),
    }
}

/// The state without a change, where nobody has made another of it or wants it kept.
fn back(now: &Desired, edits: &[Edit], files: &BTreeMap<String, Option<Made>>) -> Desired {
    let mut back = now.clone();
    let mut moved: BTreeSet<Key> = BTreeSet::new();
    for Edit { object, name, before, after, kept } in edits {
        if *kept || now[*object].get(name) != after.as_ref() {
            moved.insert((*object, name.clone()));
            continue;
        }
        match before {
            Some(before) => back[*object].insert(name.clone(), before.clone()),
            None => back[*object].remove(name),
        };
    }
    // What was given out stays so: a data plane may have told it to others.
    for (name, made) in files {
        let here = back[Object::Volume].contains_key(name);
        match made {
            _ if moved.contains(&(Object::Volume, name.clone())) => {}
            Some(made) if here => {
                back.allocations.files.insert(name.clone(), made.clone());
            }
            _ => {
                back.allocations.files.remove(name);
            }
        }
    }
    back
}

/// The failure of an object that a change is about: the cause, where others follow from it.
pub(super) fn failure_of<'a>(
    failures: &BTreeMap<Subject, ApiError>,
    touched: impl Iterator<Item = (Object, &'a str)>,
    desired: &Desired,
) -> Option<ApiError> {
    let subjects = touched.flat_map(|(object, name)| {
        let own = name.to_owned();
        match object {
            Object::Volume => vec![Subject::Volume(own)],
            Object::Adapter => vec![Subject::Adapter(own)],
            Object::Uplink => vec![Subject::Uplink(own)],
            Object::Pool => vec![Subject::Pool(own)],
            Object::Snapshot => {
                let pool = desired.pool_of_snapshot(name).map(str::to_owned);
                pool.map(Subject::Pool).into_iter().collect()
            }
            Object::Sea => {
                let set = desired[Object::Sea].get(name);
                let uplink = set.and_then(|set| attr::sea::REAL_ADAPTER.of(set));
                uplink.map(|uplink| Subject::Uplink(uplink.to_owned())).into_iter().collect()
            }
            Object::Target => {
                let luns = desired[Object::Target].get(name).map(san::luns);
                luns.unwrap_or_default().into_values().map(Subject::Unit).collect()
            }
            Object::Vtd => {
                let set = desired[Object::Vtd].get(name);
                set.map(|set| Subject::Unit(resolve::unit_of_vtd(name, set))).into_iter().collect()
            }
            _ => Vec::new(),
        }
    });
    subjects
        .filter_map(|subject| failures.get_key_value(&subject))
        .min_by_key(|(subject, _)| *subject)
        .map(|(_, failure)| failure.clone())
}
