//! Telling the data planes: all of them what they shall be, in the order in which changes were stored; and waiting for those that a change is for.

use super::shared::{ApplyOutcome, Ledger, Server};
use crate::model::MAIN;
use crate::model::resolve::{self, DataPlaneSpec, Wanted};
use crate::reconcile::Subject;
use crate::supervisor::{self, Outcome, Supervisor};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How often it is looked whether a data plane has let go of something at last.
const LOOK: Duration = Duration::from_millis(200);

/// What one data plane was told.
struct Ticket {
    dataplane: String,
    supervisor: Arc<Supervisor>,
    answer: oneshot::Receiver<Outcome>,
    /// Another data plane waits until this one has let go of something.
    awaited: bool,
}

/// What all were told.
pub(super) struct Posted {
    post: u64,
    tickets: Vec<Ticket>,
    ends: Vec<JoinHandle<()>>,
    /// Those without a supervisor.
    down: BTreeSet<String>,
}

impl Server {
    /// Brings the virtual ports on the host's HBAs about, tells every data plane what it shall be, and waits for these; for all, if none are named.
    pub(super) async fn tell(&self, concerned: Option<&BTreeSet<String>>) -> ApplyOutcome {
        self.settle_vports(false).await;
        let mut told = self.tell_dataplanes(concerned).await;
        let desired = self.desired();
        let failures = desired.discovered.failures();
        told.failures.extend(failures.map(|(name, why)| (Subject::Adapter(name), why)));
        self.look_from_time_to_time(&desired);
        told
    }

    /// The same without the HBAs.
    pub(super) async fn tell_dataplanes(
        &self,
        concerned: Option<&BTreeSet<String>>,
    ) -> ApplyOutcome {
        let mut posted = self.post(&mut *self.change.lock().await);
        loop {
            let (told, again) = self.settle(posted, concerned).await;
            match again {
                Some(again) => posted = again,
                None => return told,
            }
        }
    }

    /// What is known of the data planes now, without telling them anything.
    pub(super) fn told(&self) -> ApplyOutcome {
        let mut told = ApplyOutcome::default();
        for (name, supervisor) in self.supervisors() {
            known(&mut told, &name, &supervisor);
        }
        told
    }

    /// Tells every data plane what it shall be, starts supervisors of new ones, and begins to end those that are not wanted.
    pub(super) fn post(&self, ledger: &mut Ledger) -> Posted {
        let telling = &mut ledger.telling;
        let mut desired = self.desired();
        self.learn_files(&mut desired);
        let mut wanted = Arc::unwrap_or_clone(self.wanted(&desired));
        let volumes = wanted.values().flat_map(|wanted| wanted.volumes.values());
        let written = volumes.filter(|spec| !spec.read_only).filter_map(|spec| spec.kind.path());
        supervisor::close(self.passing.want(written.map(Path::to_owned).collect()));
        telling.tell(&mut wanted);
        let mut posted = Posted {
            post: telling.post,
            tickets: Vec::new(),
            ends: Vec::new(),
            down: BTreeSet::new(),
        };
        let mut ticket = |name: &str, supervisor: Arc<Supervisor>, wanted, spec| {
            let (dataplane, answer) = (name.to_owned(), supervisor.post(wanted, spec));
            let awaited = telling.is_awaited(name);
            posted.tickets.push(Ticket { dataplane, supervisor, answer, awaited });
        };
        let mut names = desired.dataplane_names();
        for (name, supervisor) in self.supervisors() {
            if names.contains(&name) || telling.ending.contains(&name) {
                continue;
            }
            let spec = resolve::dataplane(&desired, &name);
            ticket(&name, Arc::clone(&supervisor), Wanted::default(), spec);
            posted.ends.extend(self.end_dataplane(&name, supervisor));
        }
        // The main one last: it takes the passed sockets that no other has a use for.
        names.sort_by_key(|name| name == MAIN);
        for name in &names {
            let spec = resolve::dataplane(&desired, name);
            let wanted = wanted.remove(name).unwrap_or_default();
            self.make_folders(&wanted);
            if telling.ending.contains(name) {
                // One of its name is being ended; it is started after that.
                posted.down.insert(name.clone());
                continue;
            }
            match self.supervisor(name, &spec, &wanted) {
                Ok(supervisor) => ticket(name, supervisor, wanted, spec),
                Err(error) => {
                    tracing::error!(dataplane = %name, %error, "no supervisor");
                    posted.down.insert(name.clone());
                }
            }
        }
        for dataplane in posted.tickets.iter().map(|ticket| &ticket.dataplane) {
            if !names.contains(dataplane) {
                telling.ending.insert(dataplane.clone());
            }
        }
        posted
    }

    /// Ends a data plane that is not wanted any more, and tells the others when it is gone.
    fn end_dataplane(&self, name: &str, supervisor: Arc<Supervisor>) -> Option<JoinHandle<()>> {
        let (server, name) = (self.myself.upgrade()?, name.to_owned());
        Some(tokio::spawn(async move {
            supervisor.end(true).await;
            let posted = {
                let mut ledger = server.change.lock().await;
                server.write_supervisors().remove(&name);
                ledger.telling.is_gone(&name);
                server.post(&mut ledger)
            };
            server.settle_behind(posted);
        }))
    }

    /// Waits for those that are concerned, and for those that others wait for. What all were told then, if something was let go of.
    async fn settle(
        &self,
        posted: Posted,
        concerned: Option<&BTreeSet<String>>,
    ) -> (ApplyOutcome, Option<Posted>) {
        let Posted { post, tickets, ends, down } = posted;
        let mut told = ApplyOutcome { down, ..ApplyOutcome::default() };
        let mut again = None;
        for Ticket { dataplane, supervisor, mut answer, awaited } in tickets {
            if !awaited && concerned.is_some_and(|names| !names.contains(&dataplane)) {
                known(&mut told, &dataplane, &supervisor);
                continue;
            }
            match supervisor.answer(&mut answer).await {
                Some(outcome) => {
                    let undone = undone(&outcome);
                    note(&mut told, &dataplane, outcome);
                    let posted = self.has_let_go(&dataplane, &supervisor, post, &undone).await;
                    again = posted.or(again);
                }
                None => {
                    told.down.insert(dataplane.clone());
                    if awaited {
                        self.await_behind(dataplane, supervisor, post, answer);
                    }
                }
            }
        }
        for end in ends {
            // It panicked, or it is done.
            let _ = end.await;
        }
        (told, again)
    }

    /// A data plane has answered. What it has let go of is told to others; what it could not let go of, a disk of which does not answer perhaps, is told when it has.
    async fn has_let_go(
        &self,
        dataplane: &str,
        supervisor: &Arc<Supervisor>,
        post: u64,
        undone: &BTreeSet<Subject>,
    ) -> Option<Posted> {
        let mut ledger = self.change.lock().await;
        let released = ledger.telling.has_let_go(dataplane, post, undone);
        if ledger.telling.watch(dataplane, post) {
            self.watch(dataplane.to_owned(), Arc::clone(supervisor), post);
        }
        released.then(|| self.post(&mut ledger))
    }

    /// Looks until a data plane has let go of what it was told then. Its supervisor goes on trying.
    fn watch(&self, dataplane: String, supervisor: Arc<Supervisor>, post: u64) {
        let server = self.myself.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK).await;
                let Some(server) = server.upgrade() else { return };
                let view = supervisor.view();
                let connected = view.pid.is_some();
                let (failures, opening) = (view.failures, view.opening);
                let undone = undone(&Outcome { connected, failures, opening });
                let mut ledger = server.change.lock().await;
                if ledger.telling.has_let_go(&dataplane, post, &undone) {
                    let posted = server.post(&mut ledger);
                    server.settle_behind(posted);
                }
                if !ledger.telling.lets_go(&dataplane, post) || server.ended.load(Relaxed) {
                    return;
                }
            }
        });
    }

    /// Nobody waits for these; but what is let go of has to reach its new place.
    fn settle_behind(self: &Arc<Self>, posted: Posted) {
        let server = Arc::clone(self);
        tokio::spawn(async move {
            let (nobody, mut next) = (BTreeSet::new(), Some(posted));
            while let Some(posted) = next {
                next = server.settle(posted, Some(&nobody)).await.1;
            }
        });
    }

    /// A data plane that is silent lets go of something when it answers.
    fn await_behind(
        &self,
        dataplane: String,
        supervisor: Arc<Supervisor>,
        post: u64,
        answer: oneshot::Receiver<Outcome>,
    ) {
        let server = self.myself.clone();
        tokio::spawn(async move {
            // An error is the end of the supervisor: the data plane is gone, or another server has it.
            let undone = answer.await.map(|outcome| undone(&outcome)).unwrap_or_default();
            let Some(server) = server.upgrade() else { return };
            let posted = server.has_let_go(&dataplane, &supervisor, post, &undone).await;
            posted.into_iter().for_each(|posted| server.settle_behind(posted));
        });
    }

    /// The supervisor of a data plane, made when there is none.
    fn supervisor(
        &self,
        name: &str,
        spec: &DataPlaneSpec,
        wanted: &Wanted,
    ) -> std::io::Result<Arc<Supervisor>> {
        if let Some(supervisor) = self.supervisors().get(name) {
            return Ok(Arc::clone(supervisor));
        }
        let mut all = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let adapters: Vec<String> = all
            .keys()
            .filter(|adapter| name == MAIN || wanted.adapters.contains_key(adapter))
            .cloned()
            .collect();
        let listeners: BTreeMap<_, _> =
            adapters.into_iter().filter_map(|name| all.remove_entry(&name)).collect();
        let supervisor = Arc::new(Supervisor::start(
            (self.launcher)(name),
            spec.clone(),
            listeners,
            Arc::clone(&self.learned),
            Arc::clone(&self.trail),
            &self.passing,
        )?);
        self.write_supervisors().insert(name.to_owned(), Arc::clone(&supervisor));
        Ok(supervisor)
    }
}

/// What a data plane has not done. One that is not there has nothing any more.
fn undone(outcome: &Outcome) -> BTreeSet<Subject> {
    let Outcome { connected, failures, opening } = outcome;
    let all = failures.keys().chain(opening.keys());
    all.filter(|_| *connected).cloned().collect()
}

fn note(told: &mut ApplyOutcome, dataplane: &str, outcome: Outcome) {
    let Outcome { connected, failures, opening } = outcome;
    if connected {
        told.failures.extend(failures);
        told.opening.extend(opening);
    } else {
        // What is noted of it is from earlier.
        told.down.insert(dataplane.to_owned());
    }
}

/// How a data plane stands that nobody waits for.
fn known(told: &mut ApplyOutcome, dataplane: &str, supervisor: &Supervisor) {
    let view = supervisor.view();
    let connected = view.pid.is_some() && view.silent.is_none();
    let (failures, opening) = (view.failures, view.opening);
    note(told, dataplane, Outcome { connected, failures, opening });
}
