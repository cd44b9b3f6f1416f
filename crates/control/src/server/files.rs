//! The files of volumes: what data planes have opened is recorded, and what is to hold when one is missing or another.

use super::change::Begun;
use super::shared::{Done, Ledger, Server};
use crate::caller;
use crate::error::{ApiError, Code};
use crate::model::Desired;
use crate::model::files::{self, Made};
use crate::model::pools;
use crate::model::transition::Change;
use crate::operation::{Facts, Kind, Step, Work};
use crate::supervisor::View;
use fabric::attribute::{Object, attr};
use spec::VolumeKind;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

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
        let views = self.supervisor_views().into_values().filter(|view| view.pid.is_some());
        // All of them, whatever the first has.
        let mut learn = |view: &View| {
            // Both, whatever the first has.
            files::learn(desired, &view.opened, &self.paths)
                | pools::learn(desired, &view.pools, &self.paths)
        };
        views.filter(|view| learn(view)).count() > 0
    }

    /// Records what data planes have open.
    pub(super) fn record_files(&self, ledger: &mut Ledger) -> Result<(), ApiError> {
        let mut desired = self.desired();
        let recorded =
            if self.learn_files(&mut desired) { self.commit(ledger, &desired) } else { Ok(()) };
        ledger.unrecorded = recorded.is_err();
        recorded
    }

    /// Records it whenever a supervisor has learned something.
    pub(super) fn record_files_as_they_come(&self) {
        let (server, learned) = (Weak::clone(&self.myself), Arc::clone(&self.learned));
        tokio::spawn(async move {
            loop {
                learned.notified().await;
                let Some(server) = server.upgrade() else { return };
                let mut ledger = server.change.lock().await;
                let before = server.desired();
                if let Err(refusal) = server.record_files(&mut ledger) {
                    tracing::error!("the files of new volumes are not recorded: {refusal}");
                }
                drop(ledger);
                // A PV that is gone is let go of, and one that nobody wants leaves; snapshots and clones wait for what they are of, an LU that is to be in another tier or to go for its number.
                let leaves = |desired: &Desired| {
                    let wanted = server.wanted(desired);
                    let pools = wanted.values().flat_map(|wanted| wanted.pools.values());
                    let pools = pools.map(|pool| {
                        let lus = (pool.placed.clone(), pool.full.clone(), pool.doomed.clone());
                        (pool.leaving.clone(), pool.snapshots.clone(), lus)
                    });
                    let clones = wanted.values().flat_map(|wanted| wanted.volumes.values());
                    let clones = clones.filter_map(|volume| match &volume.kind {
                        VolumeKind::Lu(lu) if lu.fresh => lu.snapshot,
                        _ => None,
                    });
                    (pools.collect::<Vec<_>>(), clones.collect::<Vec<_>>())
                };
                if leaves(&before) != leaves(&server.desired()) {
                    server.tell_dataplanes(Some(&BTreeSet::new())).await;
                }
            }
        });
    }

    /// Says what is to hold for the file of a volume.
    pub async fn renew_file(
        &self,
        name: &str,
        act: FileAct,
        (dry_run, wait): (bool, bool),
    ) -> Result<Done, ApiError> {
        let name = name.to_owned();
        let work = move |server: Arc<Server>, begun| async move {
            server.renew_file_now(&name, act, dry_run, &begun).await
        };
        self.to_the_end(dry_run, wait, work).await
    }

    async fn renew_file_now(
        &self,
        name: &str,
        act: FileAct,
        dry_run: bool,
        begun: &Begun,
    ) -> Result<Done, ApiError> {
        let own = BTreeSet::from([(Object::Volume, name.to_owned())]);
        let mut ledger = self.change.lock().await;
        while let Some(id) = self.registry.in_the_way(&own, &own, None) {
            drop(ledger);
            self.registry.ended(id).await;
            ledger = self.change.lock().await;
        }
        let mut now = self.desired();
        let set =
            now[Object::Volume].get(name).ok_or_else(|| self.not_found(Object::Volume, name))?;
        if !attr::volume::PATH.applies(Object::Volume, set) {
            return Err(ApiError::invalid(format!("volume `{name}` has no file")));
        }
        if act == FileAct::Recreate && !attr::volume::SIZE.is_set(set) {
            let refusal = ApiError::invalid(format!("volume `{name}` has no `size`"));
            return Err(refusal.on("size").help(format!(
                "say how large the new file is to be: `trunkline volume set {name} --size SIZE`"
            )));
        }
        self.learn_files(&mut now);
        let views = self.supervisor_views().into_values().filter(|view| view.pid.is_some());
        if views.into_iter().any(|view| view.opened.contains_key(name)) {
            let problem = format!("volume `{name}` is open and has its file");
            return Err(ApiError::new(Code::InUse, problem)
                .help("this is for volumes that failed; see `trunkline volume show`"));
        }
        let (made, to) = match act {
            FileAct::Accept => (Made::Taken, "what is there now"),
            FileAct::Recreate => (Made::Again, "an empty one"),
        };
        let from = Some("the one that was opened".to_owned());
        let change = Change::live(Object::Volume, name, "file", from, to.to_owned());
        let mut done = Done { changes: vec![change], ..Done::default() };
        if dry_run {
            return Ok(done);
        }
        let mut next = now.clone();
        let before = next.allocations.files.insert(name.to_owned(), made);
        let work = Work::Change { edits: Vec::new(), files: [(name.to_owned(), before)].into() };
        let id = self.registry.begin((Kind::Change, Step::Waiting, work), own, |operation| {
            operation.caller = caller::present();
            operation.shown = begun.is_waited_for();
        });
        self.commit(&mut ledger, &next).inspect_err(|_| self.registry.forget(id))?;
        drop(ledger);
        begun.with(id, &done);
        let home = BTreeSet::from([next.dataplane_of_volume(name).to_owned()]);
        let told = self.drive(id, Facts::default(), &home).await?;
        self.report(&mut done, told, &home);
        done.failures.clear();
        Ok(done)
    }
}
