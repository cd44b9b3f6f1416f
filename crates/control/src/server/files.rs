//! The files of volumes: what data planes have opened is recorded, and what is to hold when one is missing or another.

use super::{ApplyOutcome, Done, Server, failure_of};
use crate::error::{ApiError, Code};
use crate::model::Desired;
use crate::model::files::{self, Made};
use crate::model::transition::{AttributeChange, Change, Verb};
use crate::reconcile::Subject;
use crate::store::Store;
use fabric::attribute::words::VolumeKind;
use fabric::attribute::{Effect, Object, attr};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long a change of a volume waits for it: a little longer than a data plane waits for who has its file.
const OPENING_WAIT: Duration = Duration::from_secs(40);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(100);

/// What is to hold for a volume that cannot be opened because of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAct {
    /// What is there now is its file, with what is in it: a backup that was put back, a copy on another file system.
    Accept,
    /// An empty file is made, where there is none.
    Recreate,
}

impl Server {
    /// Adds what data planes that answer have open.
    pub(super) fn learn_files(&self, desired: &mut Desired) -> bool {
        let views = self.keeper_views().into_values().filter(|view| view.pid.is_some());
        // All of them, whatever the first has.
        views.filter(|view| files::learn(desired, &view.opened)).count() > 0
    }

    /// Records what data planes have open.
    pub(super) fn record_files(&self, store: &mut dyn Store) -> Result<(), ApiError> {
        let mut desired = self.desired();
        if self.learn_files(&mut desired) { self.commit(store, &desired) } else { Ok(()) }
    }

    /// Records it whenever a supervisor has learned something.
    pub(super) fn record_files_as_they_come(&self) {
        let (server, learned) = (Weak::clone(&self.myself), Arc::clone(&self.learned));
        tokio::spawn(async move {
            loop {
                learned.notified().await;
                let Some(server) = server.upgrade() else { return };
                let mut store = server.change.lock().await;
                if let Err(refusal) = server.record_files(store.as_mut()) {
                    tracing::error!("the files of new volumes are not recorded: {refusal}");
                }
            }
        });
    }

    /// Waits until volumes that a change is about are open or failed. Others, and whoever asks how things are, do not wait with it.
    pub(super) async fn await_openings(
        &self,
        mut told: ApplyOutcome,
        changes: &[Change],
        next: &Desired,
    ) -> ApplyOutcome {
        let until = Instant::now() + OPENING_WAIT;
        while let Some(opening) = failure_of(&told.opening, changes, next) {
            if Instant::now() > until {
                let subjects = std::mem::take(&mut told.opening).into_iter();
                let (mine, others) = subjects.partition(|(_, refusal)| *refusal == opening);
                told.opening = others;
                told.failures.extend::<BTreeMap<Subject, ApiError>>(mine);
            } else {
                tokio::time::sleep(LOOK).await;
                told = self.tell_dataplanes(next).await;
            }
        }
        told
    }

    /// Says what is to hold for the file of a volume.
    pub async fn renew_file(
        &self,
        name: &str,
        act: FileAct,
        dry_run: bool,
    ) -> Result<Done, ApiError> {
        let name = name.to_owned();
        self.to_the_end(dry_run, move |server| async move {
            server.renew_file_now(&name, act, dry_run).await
        })
        .await
    }

    async fn renew_file_now(
        &self,
        name: &str,
        act: FileAct,
        dry_run: bool,
    ) -> Result<Done, ApiError> {
        let mut store = self.change.lock().await;
        let mut now = self.desired();
        let set =
            now[Object::Volume].get(name).ok_or_else(|| self.not_found(Object::Volume, name))?;
        if attr::volume::KIND.of(set) == Some(VolumeKind::Null) {
            return Err(ApiError::invalid(format!("volume `{name}` has no file")));
        }
        if act == FileAct::Recreate && !attr::volume::SIZE.is_set(set) {
            let refusal = ApiError::invalid(format!("volume `{name}` has no `size`"));
            return Err(refusal.on("size").help(format!(
                "say how large the new file is to be: `trunkline volume set {name} --size SIZE`"
            )));
        }
        self.learn_files(&mut now);
        let views = self.keeper_views().into_values().filter(|view| view.pid.is_some());
        if views.into_iter().any(|view| view.opened.contains_key(name)) {
            let problem = format!("volume `{name}` is open and has its file");
            return Err(ApiError::new(Code::InUse, problem)
                .help("this is for volumes that failed; see `trunkline volume show`"));
        }
        let (made, to) = match act {
            FileAct::Accept => (Made::Taken, "what is there now"),
            FileAct::Recreate => (Made::Again, "an empty one"),
        };
        let attribute = AttributeChange {
            attribute: "file".to_owned(),
            from: Some("the one that was opened".to_owned()),
            to: Some(to.to_owned()),
            takes_effect: Some(Effect::Live.word().to_owned()),
        };
        let change = Change {
            verb: Verb::Change,
            object: Object::Volume,
            name: name.to_owned(),
            attributes: vec![attribute],
        };
        let mut done = Done { changes: vec![change], ..Done::default() };
        if dry_run {
            return Ok(done);
        }
        let mut next = now.clone();
        next.allocations.files.insert(name.to_owned(), made);
        self.commit(store.as_mut(), &next)?;
        let told = self.tell(&next).await;
        let ApplyOutcome { mut failures, down, .. } =
            self.await_openings(told, &done.changes, &next).await;
        if let Some(failure) = failures.remove(&Subject::Volume(name.to_owned())) {
            self.commit(store.as_mut(), &now)?;
            self.tell(&now).await;
            return Err(failure);
        }
        self.record_files(store.as_mut())?;
        let home = next.dataplane_of_volume(name);
        done.waiting = down.get(home).map(|home| self.waits(home)).into_iter().collect();
        Ok(done)
    }
}
