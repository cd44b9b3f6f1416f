//! A change: judged and stored under the lock, carried out after it.

use super::looked::{self, Looked};
use super::registry::Key;
use super::shared::{ApplyOutcome, ChangeOptions, Done, Ledger, OnFailure, Server, WantedOfAll};
use super::{drive, machine, media};
use crate::caller;
use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::model::loss::{self, Loss, losses};
use crate::model::resolve::{Wanted, own_file};
use crate::model::transition::{Change, Transition, transition_beside};
use crate::model::{Desired, allocations, mentions_of};
use crate::operation::{Edit, Facts, Kind, Step, Work, cancelled};
use crate::reconcile::reconcile;
use crate::supervisor::View;
use crate::turns;
use fabric::attribute::Object;
use protocol::planted;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Makes one state of another; asked anew after the change has waited for somebody else's.
pub(super) type EditOf = dyn Fn(&mut Desired) -> Result<(), ApiError> + Send + Sync;

/// Who does not wait for the end, until the operation is stored.
#[derive(Default)]
pub(super) struct Begun(Mutex<Option<oneshot::Sender<Done>>>);

impl Begun {
    /// Whether somebody wants its number, and so will ask for it.
    pub(super) fn is_waited_for(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn with(&self, id: u64, done: &Done) {
        let waits = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waits) = waits {
            let _ = waits.send(Done { operation: Some(id), ..done.clone() });
        }
    }
}

/// A change that may be made.
pub(super) struct Judged {
    now: Desired,
    next: Desired,
    changes: Vec<Change>,
    losses: Vec<Loss>,
    warnings: Vec<String>,
    /// What has to be known as it is now: adapters that change, and new volumes.
    pub(super) adapters: BTreeSet<String>,
    pub(super) volumes: BTreeSet<String>,
    /// What data planes were told, and what they will be.
    before: WantedOfAll,
    after: WantedOfAll,
}

impl Judged {
    fn done(&self) -> Done {
        let (changes, losses) = (self.changes.clone(), self.losses.clone());
        Done { changes, losses, warnings: self.warnings.clone(), ..Done::default() }
    }

    /// The data planes that become something else by it.
    fn concerned(&self) -> BTreeSet<String> {
        let names = self.before.keys().chain(self.after.keys());
        names.filter(|name| self.before.get(*name) != self.after.get(*name)).cloned().collect()
    }

    fn touched(&self) -> BTreeSet<Key> {
        self.changes.iter().map(|change| (change.object, change.name.clone())).collect()
    }

    /// What it changes, and all that these name, before or after.
    fn footprint(&self, touched: &BTreeSet<Key>) -> BTreeSet<Key> {
        let mut all = touched.clone();
        for (object, name) in touched {
            for set in [&self.now, &self.next].into_iter().filter_map(|it| it[*object].get(name)) {
                for of in mentions_of(*object, set) {
                    all.extend(of.objects.iter().map(|object| (*object, of.name.clone())));
                }
            }
        }
        all
    }

    fn work(&self) -> Work {
        let edits = self.changes.iter().map(|Change { object, name, .. }| Edit {
            object: *object,
            name: name.clone(),
            before: self.now[*object].get(name).cloned(),
            after: self.next[*object].get(name).cloned(),
            kept: false,
        });
        let volumes = self.changes.iter().filter(|change| change.object == Object::Volume);
        let file = |change: &Change| self.now.allocations.files.get(&change.name).cloned();
        let files = volumes.map(|change| (change.name.clone(), file(change))).collect();
        Work::Change { edits: edits.collect(), files }
    }
}

/// What was asked for.
pub(super) struct Asked {
    pub(super) options: ChangeOptions,
    /// Objects that are wanted as they will be, whether or not they change.
    pub(super) named: BTreeSet<Key>,
    pub(super) begun: Begun,
}

/// How far an attempt came.
enum Attempt {
    Done(Done),
    /// Something that the change has to do with is not decided yet.
    After(u64),
    /// Media have to be copied first.
    Copy(u64),
    /// It is stored.
    Stored(u64, Done, BTreeSet<String>),
}

impl Server {
    /// Makes the state what `edit` makes of it. What was begun is carried to its end, whether or not the caller still listens.
    pub async fn change(
        &self,
        options: ChangeOptions,
        edit: impl Fn(&mut Desired) -> Result<(), ApiError> + Send + Sync + 'static,
    ) -> Result<Done, ApiError> {
        self.change_named(options, BTreeSet::new(), edit).await
    }

    /// The same, where it is known which objects are wanted so.
    pub(super) async fn change_named(
        &self,
        options: ChangeOptions,
        named: BTreeSet<Key>,
        edit: impl Fn(&mut Desired) -> Result<(), ApiError> + Send + Sync + 'static,
    ) -> Result<Done, ApiError> {
        let work = move |server: Arc<Server>, begun| async move {
            server.change_now(&Asked { options, named, begun }, &edit).await
        };
        self.to_the_end(options.dry_run, options.wait, work).await
    }

    /// Does something in a task of its own, which nobody's leaving ends, and remembers what became of it.
    pub(super) async fn to_the_end<F>(
        &self,
        dry_run: bool,
        wait: bool,
        work: impl FnOnce(Arc<Server>, Begun) -> F,
    ) -> Result<Done, ApiError>
    where
        F: Future<Output = Result<Done, ApiError>> + Send + 'static,
    {
        let gone = || ApiError::new(Code::Unavailable, "the server is ending");
        let server = self.myself.upgrade().ok_or_else(gone)?;
        let (sender, mut begun) = oneshot::channel();
        let sender = (!wait).then_some(sender);
        let caller = caller::present();
        let work = work(Arc::clone(&server), Begun(Mutex::new(sender)));
        let mut task = tokio::spawn(caller::on_behalf_of(caller, async move {
            let done = work.await;
            if !dry_run {
                server.remember(caller, &done);
            }
            done
        }));
        let ended = tokio::select! {
            biased;
            ended = &mut task => ended,
            Ok(begun) = &mut begun => return Ok(begun),
        };
        // It may have ended before anybody looked: who does not wait is told its number all the same.
        if let Ok(begun) = begun.try_recv() {
            return Ok(begun);
        }
        ended.map_err(|error| {
            tracing::error!(%error, "a change was not finished");
            ApiError::new(Code::Failed, format!("the change was not finished: {error}"))
                .help("see `trunkline status` for what is there now, and the log for the reason")
        })?
    }

    /// What was done, or not, goes into the trail.
    fn remember(&self, caller: Option<Caller>, done: &Result<Done, ApiError>) {
        match done {
            // Nothing was changed.
            Ok(done) if done.changes.is_empty() && done.failures.is_empty() => {}
            Ok(done) => {
                let what: Vec<String> = done.changes.iter().map(ToString::to_string).collect();
                let mut message = match what.is_empty() {
                    true => "nothing to change".to_owned(),
                    false => what.join("; "),
                };
                if let Some(failure) = done.failures.first() {
                    message += &format!(" (not carried out so far: {failure})");
                }
                let of = done.changes.iter().map(|change| change.name.clone()).collect();
                self.trail.changed(caller, "done", of, message);
                self.note_links(caller, &done.changes);
            }
            Err(refusal) => {
                let failed = matches!(refusal.code, Code::Failed | Code::Unavailable);
                let result = if failed { "failed" } else { "refused" };
                self.trail.changed(caller, result, Vec::new(), refusal.message.clone());
            }
        }
    }

    async fn change_now(&self, asked: &Asked, edit: &EditOf) -> Result<Done, ApiError> {
        let mut copied = None;
        loop {
            if copied.is_none() && self.ended.load(Ordering::Relaxed) {
                return Err(ApiError::new(Code::Unavailable, "the server is ending"));
            }
            match self.attempt(asked, edit, copied).await {
                Ok(Attempt::Done(done)) => {
                    if let Some(id) = copied {
                        // Somebody else has made the same meanwhile.
                        self.finish(id, Step::Done, None, false).await;
                    }
                    return Ok(done);
                }
                Ok(Attempt::After(id)) => self.registry.ended(id).await,
                Ok(Attempt::Copy(id)) => {
                    self.drive(id, Facts::default(), &BTreeSet::new()).await?;
                    copied = Some(id);
                }
                Ok(Attempt::Stored(id, mut done, concerned)) => {
                    let told = self.drive(id, Facts::default(), &concerned).await?;
                    self.report(&mut done, told, &concerned);
                    return Ok(done);
                }
                Err(refusal) => {
                    if let Some(id) = copied {
                        // It was allowed before the media were copied.
                        let facts =
                            Facts { finished: Some(Err(refusal.clone())), ..Facts::default() };
                        self.drive(id, facts, &BTreeSet::new()).await?;
                    }
                    return Err(refusal);
                }
            }
        }
    }

    /// What became of a change that holds.
    pub(super) fn report(&self, done: &mut Done, told: ApplyOutcome, concerned: &BTreeSet<String>) {
        let ApplyOutcome { failures, opening, down } = told;
        let desired = self.desired();
        let touched = done.changes.iter().map(|change| (change.object, change.name.as_str()));
        let opening = drive::failure_of(&opening, touched, &desired);
        // Attributes of a data plane itself wait for its next start anyway.
        let down = down.intersection(concerned).map(|name| self.waits(name));
        done.waiting = down.chain(opening).collect();
        done.failures = failures.into_values().collect();
    }

    /// What is stored and not carried out, without what failed.
    fn undone(&self, told: &ApplyOutcome) -> Vec<ApiError> {
        let (wanted, views) = (self.wanted(&self.desired()), self.supervisor_views());
        let behind = |name: &&String| {
            let Some(wanted) = wanted.get(*name) else { return false };
            match views.get(*name).and_then(View::account) {
                Some(known) => !reconcile(wanted, &known.status).is_empty(),
                // Whoever is started has nothing yet.
                None => *wanted != Wanted::default(),
            }
        };
        let down = told.down.iter().filter(behind).map(|name| self.waits(name));
        down.chain(told.opening.values().cloned()).collect()
    }

    /// One try: it ends with the change stored, or before anything was done.
    async fn attempt(
        &self,
        asked: &Asked,
        edit: &EditOf,
        copied: Option<u64>,
    ) -> Result<Attempt, ApiError> {
        let options = asked.options;
        let mut looked = Looked::new(self);
        let (mut ledger, judged) = loop {
            let ledger = self.change.lock().await;
            let judged = self.judge(&looked, options, edit)?;
            if looked.suffices(&judged) {
                break (ledger, judged);
            }
            drop(ledger);
            looked.look(self, &judged).await;
        };
        if options.dry_run {
            return Ok(Attempt::Done(judged.done()));
        }
        if !options.allow.force && !judged.losses.is_empty() {
            return Err(loss::refusal(&judged.losses));
        }
        let touched = judged.touched();
        let footprint = judged.footprint(&touched);
        let keep = options.on_failure == OnFailure::Keep;
        if !keep && let Some(id) = self.registry.in_the_way(&touched, &footprint, copied) {
            return Ok(Attempt::After(id));
        }
        let copies = copied.is_none() && media::to_copy(&judged.now, &judged.next).next().is_some();
        let kept = if keep && !copies {
            self.registry.keep(&touched.union(&asked.named).cloned().collect())
        } else {
            Vec::new()
        };
        let attempt = self.store(
            &mut ledger,
            asked,
            (copied, copies),
            (judged, footprint, &looked),
            !kept.is_empty(),
        );
        if attempt.is_err() {
            kept.into_iter().for_each(|operation| self.registry.restore(operation));
        }
        match attempt? {
            Attempt::Done(done) => {
                drop(ledger);
                // What an earlier change left undone is tried at once.
                let told = self.tell(None).await;
                // Who applies a file hears of what is still to be done, whoever changed it.
                let waiting = if keep { self.undone(&told) } else { Vec::new() };
                let failures = told.failures.into_values().collect();
                Ok(Attempt::Done(Done { failures, waiting, ..done }))
            }
            other => Ok(other),
        }
    }

    /// Stores a change that was judged, or that media are copied for it.
    fn store(
        &self,
        ledger: &mut Ledger,
        asked: &Asked,
        (copied, copies): (Option<u64>, bool),
        (judged, footprint, looked): (Judged, BTreeSet<Key>, &Looked),
        journal: bool,
    ) -> Result<Attempt, ApiError> {
        let Judged { now, next, changes, .. } = &judged;
        if changes.is_empty() {
            if journal || *now != self.desired() {
                self.commit(ledger, now)?;
            }
            return Ok(Attempt::Done(Done::default()));
        }
        self.find_nothing(now, next, looked)?;
        self.media_are_there(now, next)?;
        if let Some(id) = copied {
            if self.registry.get(id).is_none_or(|operation| operation.cancelled) {
                return Err(cancelled());
            }
            media::take_copies(&self.paths, id, now, next)?;
            let work = judged.work();
            let before = self.registry.update(id, |it| (it.step, it.work) = (Step::Waiting, work));
            let stored = self.commit(ledger, next);
            if let (Err(_), Some(before)) = (&stored, before) {
                self.registry.restore(before);
            }
            stored?;
            return Ok(Attempt::Stored(id, judged.done(), judged.concerned()));
        }
        let (kind, step, state) = match copies {
            true => (Kind::Copy, Step::Copying, now),
            false => (Kind::Change, Step::Waiting, next),
        };
        let id = self.registry.begin((kind, step, judged.work()), footprint, |operation| {
            operation.caller = caller::present();
            operation.shown = copies || !asked.options.wait;
            operation.lasting = asked.options.on_failure == OnFailure::Keep;
        });
        self.commit(ledger, state).inspect_err(|_| self.registry.forget(id))?;
        asked.begun.with(id, &judged.done());
        Ok(match copies {
            true => Attempt::Copy(id),
            false => Attempt::Stored(id, judged.done(), judged.concerned()),
        })
    }

    fn judge(
        &self,
        looked: &Looked,
        options: ChangeOptions,
        edit: &EditOf,
    ) -> Result<Judged, ApiError> {
        let stored = self.desired();
        let mut now = stored.clone();
        let accounts = looked.accounts();
        now.allocations.maxima = self.maxima(&now, &accounts, looked);
        self.learn_files(&mut now);
        let mut next = now.clone();
        edit(&mut next)?;
        allocations::settle(&now, &mut next, turns::fresh_number())?;
        next.discovered = Arc::clone(&now.discovered);
        let Transition { next, changes } = {
            let mut neighbours = self.neighbours.lock().unwrap_or_else(PoisonError::into_inner);
            neighbours.follow(&now, &self.paths);
            transition_beside(&neighbours, &now, &next, &self.paths, options.allow)?
        };
        machine::has(&next, &changes)?;
        let (before, after) = (self.wanted(&now), self.wanted(&next));
        if !changes.is_empty() {
            self.can_carry(&after)?;
        }
        let mut adapters = looked::adapters_of(&before, &after);
        let touched = changes.iter().filter(|change| change.object == Object::Adapter);
        let touched = touched.filter(|change| now[Object::Adapter].contains_key(&change.name));
        adapters.extend(touched.map(|change| change.name.clone()));
        looked.add_beside(&mut adapters, (&before, &after));
        let mut connected = looked.connected(&adapters);
        loss::identify(&mut connected, (&before, &after));
        let losses = losses(&before, &after, &connected);
        let new = now.differences(Object::Volume, &next).into_iter();
        let new = new.filter(|difference| difference.before.is_none());
        let volumes = new.map(|difference| difference.name().to_owned()).collect();
        let mut warnings = self.undone_by_the_file(&changes);
        warnings.extend(super::short::warnings(&next, &changes, &accounts));
        warnings.extend(super::one_disk::warnings(&next, &changes, &self.paths));
        // What clients have negotiated since then was told nobody yet.
        let before =
            if now.allocations == stored.allocations { before } else { self.wanted(&stored) };
        Ok(Judged { now, next, changes, losses, warnings, adapters, volumes, before, after })
    }

    /// A new object begins with nothing: what an earlier one of its name left behind goes first.
    fn find_nothing(&self, now: &Desired, next: &Desired, looked: &Looked) -> Result<(), ApiError> {
        let differences = now.differences(Object::Volume, next).into_iter();
        let new = differences.filter(|difference| difference.before.is_none());
        for entry in new.filter_map(|difference| difference.after) {
            let (name, set) = &*entry;
            // A removal that waits for a data plane: the volume there is still the earlier one.
            if let Some((plane, view)) = looked.holder_of(name) {
                let message = format!("data plane `{plane}` still has an earlier volume `{name}`");
                let why = view.reason().unwrap_or_else(|| "its removal is tried again".to_owned());
                return Err(ApiError::new(Code::InUse, message)
                    .help(format!("wait until it is gone ({why}), or take another name")));
            }
            let memory = own_file(name, set, &self.paths);
            let left = memory.into_iter().chain([self.paths.reservations(name)]);
            for path in left.filter(|_| !planted("file-left")) {
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Ok(()) => {
                        tracing::warn!(path = %path.display(), "left behind by an earlier volume: removed")
                    }
                    Err(error) => {
                        let message = format!(
                            "volume `{name}`: {} is left of an earlier one and stays: {error}",
                            path.display()
                        );
                        return Err(ApiError::new(Code::Failed, message).help("remove the file"));
                    }
                }
            }
        }
        Ok(())
    }
}
