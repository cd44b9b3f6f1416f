//! The server: desired state, store and supervisors together.
//!
//! All changes go through [`Server::change`], one at a time: judge, store, tell the data planes,
//! and, where the user asked for one object by name and a data plane could not do it, go back. So a
//! `create` either holds or leaves nothing behind, while `apply` keeps what was wanted and goes on
//! trying.

mod apply;
mod carry;
mod edit;
mod explain;
mod files;
mod hba;
mod logins;
mod machine;
mod media;
mod objects;
mod restart;
mod views;

pub use apply::ConfigFile;
pub use edit::Expected;
pub use explain::{AttributeSource, CommandTermView, CommandsView, Explanation, TermView};
pub use files::FileAct;
pub use logins::{LoginTargetView, LoginView, LunView};
pub use objects::ObjectView;
pub(crate) use views::has_client;
pub use views::{AdapterView, AnyView, ChannelView, DataPlaneView, StatusView, VolumeView};

use crate::caller::{self, Caller};
use crate::error::{ApiError, Code};
use crate::model::loss::{self, Loss, losses};
use crate::model::resolve::{self, DataPlaneSpec, Wanted};
use crate::model::transition::{Allow, Change, Transition, transition};
use crate::model::{Desired, MAIN, allocations};
use crate::paths::Paths;
use crate::reconcile::Subject;
use crate::store::{Store, StoreError};
use crate::supervisor::{Launcher, Outcome, Supervisor, View};
use crate::trail::{Kind, Trail};
use fabric::attribute::words::VolumeKind;
use fabric::attribute::{Object, attr};
use fabric::suggest;
use protocol::message::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// Makes the launcher of a data plane, by name.
pub type LauncherOf = Box<dyn Fn(&str) -> Box<dyn Launcher> + Send + Sync>;

/// What happens when a data plane cannot do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// The change is taken back and the failure is the answer.
    Revert,
    /// The change stays; it is tried again, and the failure stands in the object's state.
    Keep,
}

/// How a change is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeOptions {
    /// Judge and say what would change, and no more.
    pub dry_run: bool,
    /// What the user has allowed.
    pub allow: Allow,
    /// See [`OnFailure`].
    pub on_failure: OnFailure,
}

/// How long the server's end waits for a change that is under way.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// What is said when the desired state could not be stored.
const STORE_HELP: &str =
    "the state is as it was before; free some space or mend the disk, then try again";

/// What a change came to.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// What changed, or would.
    pub changes: Vec<Change>,
    /// What data planes could not do yet.
    pub failures: Vec<ApiError>,
    /// Data planes that the change is for and that do not run: it is stored, and carried out when they do.
    pub waiting: Vec<ApiError>,
    /// What clients lose, or would.
    pub losses: Vec<Loss>,
    /// What the user should know before the next start.
    pub warnings: Vec<String>,
}

/// What became of telling the data planes.
#[derive(Default)]
struct ApplyOutcome {
    failures: BTreeMap<Subject, ApiError>,
    /// Volumes that are being opened, and what waits for them.
    opening: BTreeMap<Subject, ApiError>,
    /// Those that do not answer.
    down: BTreeSet<String>,
}

/// A running server; shared by all requests.
pub struct Server {
    paths: Paths,
    launcher: LauncherOf,
    desired: RwLock<Desired>,
    supervisors: RwLock<BTreeMap<String, Arc<Supervisor>>>,
    /// Listening sockets that were passed in, by adapter, until a data plane's supervisor gets them.
    listeners: Mutex<BTreeMap<String, OwnedFd>>,
    /// Held through a change; the store is written under it.
    change: tokio::sync::Mutex<Box<dyn Store>>,
    /// Whether somebody looks at the host's HBAs from time to time.
    looking: AtomicBool,
    ended: Arc<AtomicBool>,
    /// A supervisor has learned of the file of a volume.
    learned: Arc<Notify>,
    myself: Weak<Server>,
    stop: Notify,
    stop_dataplanes: AtomicBool,
    /// The configuration that each start applies.
    file: RwLock<Option<ConfigFile>>,
    trail: Arc<Trail>,
}

impl Server {
    /// Loads the desired state and brings the data planes up.
    pub async fn start(
        paths: Paths,
        mut store: Box<dyn Store>,
        launcher: LauncherOf,
        listeners: BTreeMap<String, OwnedFd>,
    ) -> Result<Arc<Server>, StoreError> {
        let desired = store.load()?;
        let trail = Arc::new(Trail::open(&paths.events()));
        trail.note(Kind::ServerStarted, None, format!("process {}", std::process::id()));
        let server = Arc::new_cyclic(|myself| Server {
            paths,
            launcher,
            desired: RwLock::new(desired.clone()),
            supervisors: RwLock::default(),
            listeners: Mutex::new(listeners),
            change: tokio::sync::Mutex::new(store),
            looking: false.into(),
            ended: Arc::default(),
            learned: Arc::default(),
            myself: Weak::clone(myself),
            stop: Notify::new(),
            stop_dataplanes: false.into(),
            file: RwLock::default(),
            trail,
        });
        server.record_files_as_they_come();
        let guard = server.change.lock().await;
        server.tell(&desired).await;
        drop(guard);
        Ok(server)
    }

    /// Where things lie.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The desired state now.
    pub fn desired(&self) -> Desired {
        read(&self.desired).clone()
    }

    /// What is known of each data plane without asking it.
    pub fn keeper_views(&self) -> BTreeMap<String, View> {
        let supervisors = self.supervisors();
        supervisors.iter().map(|(name, supervisor)| (name.clone(), supervisor.view())).collect()
    }

    /// What is known of each data plane, asked for now: within a second, whether or not it answers.
    pub async fn look(&self) -> BTreeMap<String, View> {
        let mut looks = tokio::task::JoinSet::new();
        for (name, supervisor) in self.supervisors() {
            looks.spawn(async move { (name, supervisor.look().await) });
        }
        looks.join_all().await.into_iter().collect()
    }

    /// Each data plane's account of itself, the last one where it does not answer now.
    pub async fn statuses(&self) -> BTreeMap<String, Arc<Status>> {
        let views = self.look().await.into_iter();
        let accounts = views.filter_map(|(name, view)| {
            let known = view.account()?;
            Some((name, Arc::clone(&known.status)))
        });
        accounts.collect()
    }

    /// Makes the state what `edit` makes of it. What was begun is carried to its end, whether or not the caller still listens.
    pub async fn change(
        &self,
        options: ChangeOptions,
        edit: impl FnOnce(&mut Desired) -> Result<(), ApiError> + Send + 'static,
    ) -> Result<Done, ApiError> {
        self.to_the_end(
            options.dry_run,
            |server| async move { server.change_now(options, edit).await },
        )
        .await
    }

    /// Does something in a task of its own, which nobody's leaving ends, and remembers what became of it.
    async fn to_the_end<F>(
        &self,
        dry_run: bool,
        work: impl FnOnce(Arc<Server>) -> F,
    ) -> Result<Done, ApiError>
    where
        F: Future<Output = Result<Done, ApiError>> + Send + 'static,
    {
        let gone = || ApiError::new(Code::Unavailable, "the server is ending");
        let server = self.myself.upgrade().ok_or_else(gone)?;
        let (caller, work) = (caller::present(), work(Arc::clone(&server)));
        let task = tokio::spawn(async move {
            let done = work.await;
            if !dry_run {
                server.remember(caller, &done);
            }
            done
        });
        task.await.map_err(|error| {
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
                let mut message = what.join("; ");
                if let Some(failure) = done.failures.first() {
                    message += &format!(" (not carried out so far: {failure})");
                }
                self.trail.changed(caller, "done", message);
            }
            Err(refusal) => {
                let failed = matches!(refusal.code, Code::Failed | Code::Unavailable);
                let result = if failed { "failed" } else { "refused" };
                self.trail.changed(caller, result, refusal.message.clone());
            }
        }
    }

    /// What happened.
    pub fn trail(&self) -> &Trail {
        &self.trail
    }

    async fn change_now(
        &self,
        options: ChangeOptions,
        edit: impl FnOnce(&mut Desired) -> Result<(), ApiError> + Send,
    ) -> Result<Done, ApiError> {
        let mut store = self.change.lock().await;
        let mut now = self.desired();
        now.allocations.maxima = self.maxima(&now).await;
        self.learn_files(&mut now);
        let mut next = now.clone();
        edit(&mut next)?;
        allocations::settle(&now, &mut next, fresh_number())?;
        next.discovered = now.discovered.clone();
        let Transition { next, changes } = transition(&now, &next, &self.paths, options.allow)?;
        machine::has(&next, &changes)?;
        let (before, after) = (self.wanted(&now), self.wanted(&next));
        if !changes.is_empty() {
            self.can_carry(&after)?;
        }
        let losses = losses(&before, &after, &self.connected().await);
        let warnings = self.undone_by_the_file(&changes);
        if options.dry_run {
            return Ok(Done { changes, losses, warnings, ..Done::default() });
        }
        if !options.allow.force && !losses.is_empty() {
            return Err(loss::refusal(&losses));
        }
        if changes.is_empty() {
            // What an earlier change left undone is tried at once.
            let ApplyOutcome { failures, .. } = self.tell_wanted(&next, after).await;
            return Ok(Done { failures: failures.into_values().collect(), ..Done::default() });
        }
        self.find_nothing(&now, &next)?;
        self.copy_media(&now, &next)?;
        self.commit(store.as_mut(), &next)?;
        self.part((&now, &before), (&next, &after)).await;
        let concerned: BTreeSet<String> = after
            .iter()
            .filter(|(name, it)| before.get(*name) != Some(it))
            .map(|(n, _)| n.clone())
            .collect();
        let mut told = self.tell_wanted(&next, after).await;
        if options.on_failure == OnFailure::Revert {
            told = self.await_openings(told, &changes, &next).await;
        }
        let ApplyOutcome { failures, opening, down } = told;
        if options.on_failure == OnFailure::Revert
            && let Some(failure) = failure_of(&failures, &changes, &next)
        {
            // What was given out stays so: the data plane may have told it to others.
            let mut back = Desired { allocations: next.allocations.clone(), ..now.clone() };
            back.allocations.files = now.allocations.files;
            self.commit(store.as_mut(), &back)?;
            self.tell(&back).await;
            self.forget_memory(&next, &back);
            self.forget_media(&next, &back);
            return Err(failure);
        }
        self.record_files(store.as_mut())?;
        self.forget_memory(&now, &next);
        self.forget_media(&now, &next);
        // Attributes of a data plane itself wait for its next start anyway.
        let waiting = down
            .intersection(&concerned)
            .map(|name| self.waits(name))
            .chain(failure_of(&opening, &changes, &next))
            .collect();
        let failures = failures.into_values().collect();
        Ok(Done { changes, failures, waiting, losses, warnings })
    }

    /// What each data plane shall be.
    fn wanted(&self, desired: &Desired) -> BTreeMap<String, Wanted> {
        let names = desired.dataplane_names().into_iter();
        names.map(|name| (name.clone(), resolve::wanted(desired, &name, &self.paths))).collect()
    }

    /// That a data plane does not run and why.
    fn waits(&self, dataplane: &str) -> ApiError {
        let view = self
            .supervisors()
            .get(dataplane)
            .map(|supervisor| supervisor.view())
            .unwrap_or_default();
        let why = view.reason().map(|why| format!(": {why}")).unwrap_or_default();
        let (state, help) = match view.silent {
            Some(_) => (
                "unresponsive",
                format!(
                    "it goes on when it answers; `trunkline dataplane restart {dataplane}` kills it and starts another"
                ),
            ),
            None => {
                ("not running", "it is started again by itself; see `trunkline status`".to_owned())
            }
        };
        ApiError::new(Code::Unavailable, format!("data plane `{dataplane}` is {state}{why}"))
            .help(help)
    }

    /// The data planes that do not run or do not answer, and why.
    pub fn troubles(&self) -> Vec<ApiError> {
        let bad = |view: &View| view.pid.is_none() || view.silent.is_some();
        let down = self.keeper_views().into_iter().filter(|(_, view)| bad(view));
        down.map(|(name, _)| self.waits(&name)).collect()
    }

    /// A new object begins with nothing: what an earlier one of its name left behind goes first.
    fn find_nothing(&self, now: &Desired, next: &Desired) -> Result<(), ApiError> {
        let new = next[Object::Volume]
            .iter()
            .filter(|(name, _)| !now[Object::Volume].contains_key(*name));
        let views = self.keeper_views();
        let mut open: BTreeMap<&str, (&String, &View)> = BTreeMap::new();
        for (plane, view) in &views {
            let volumes = view.account().into_iter().flat_map(|known| &known.status.volumes);
            open.extend(volumes.map(|volume| (volume.spec.name.as_str(), (plane, view))));
        }
        for (name, set) in new {
            // A removal that waits for a data plane: the volume there is still the earlier one.
            if let Some((plane, view)) = open.get(name.as_str()) {
                let message = format!("data plane `{plane}` still has an earlier volume `{name}`");
                let why = view.reason().unwrap_or_else(|| "its removal is tried again".to_owned());
                return Err(ApiError::new(Code::InUse, message)
                    .help(format!("wait until it is gone ({why}), or take another name")));
            }
            let ours = attr::volume::KIND.of(set) == Some(VolumeKind::Ram)
                && !attr::volume::PATH.is_set(set);
            let memory = ours.then(|| self.paths.ram(name));
            for path in memory.into_iter().chain([self.paths.reservations(name)]) {
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

    /// The memory of RAM volumes that are gone is given back; a file that the user chose stays.
    fn forget_memory(&self, now: &Desired, next: &Desired) {
        for (name, set) in &now[Object::Volume] {
            let ours = attr::volume::KIND.of(set) == Some(VolumeKind::Ram)
                && !attr::volume::PATH.is_set(set);
            if ours && !next[Object::Volume].contains_key(name) {
                let path = self.paths.ram(name);
                match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        tracing::warn!(path = %path.display(), %error, "its memory stays in use");
                    }
                    _ => {}
                }
            }
        }
    }

    fn commit(&self, store: &mut dyn Store, next: &Desired) -> Result<(), ApiError> {
        // Milliseconds, for two syncs; changes are rare.
        tokio::task::block_in_place(|| store.commit(next))
            .map_err(|error| ApiError::new(Code::Failed, error.to_string()).help(STORE_HELP))?;
        *self.desired.write().unwrap_or_else(std::sync::PoisonError::into_inner) = next.clone();
        Ok(())
    }

    /// Before a volume or an adapter moves to another data plane, the one that has it lets go: two
    /// cannot have one file or one socket open.
    async fn part(
        &self,
        (now, before): (&Desired, &BTreeMap<String, Wanted>),
        (next, after): (&Desired, &BTreeMap<String, Wanted>),
    ) {
        let nothing = Wanted::default();
        for (name, supervisor) in self.supervisors() {
            let before = before.get(&name).unwrap_or(&nothing);
            let after = after.get(&name).unwrap_or(&nothing);
            let volume_stays = |name: &String| {
                after.volumes.contains_key(name) || !next[Object::Volume].contains_key(name)
            };
            let adapter_stays = |name: &String| {
                after.adapters.contains_key(name) || !next[Object::Adapter].contains_key(name)
            };
            if before.volumes.keys().all(volume_stays) && before.adapters.keys().all(adapter_stays)
            {
                continue;
            }
            let mut wanted = before.clone();
            wanted.volumes.retain(|name, _| volume_stays(name));
            wanted.adapters.retain(|name, _| adapter_stays(name));
            wanted.drop_dangling();
            supervisor.want(wanted, resolve::dataplane(now, &name)).await;
        }
    }

    /// Brings the virtual ports on the host's HBAs about, and tells every data plane what it shall be.
    async fn tell(&self, next: &Desired) -> ApplyOutcome {
        self.tell_wanted(next, self.wanted(next)).await
    }

    /// The same, where it is known what data planes shall be as long as the HBAs show nothing else.
    async fn tell_wanted(&self, next: &Desired, wanted: BTreeMap<String, Wanted>) -> ApplyOutcome {
        let found = &next.discovered;
        let mut next = next.clone();
        self.part_from_vports(&mut next).await;
        self.bring_vports_about(&mut next);
        let wanted = if next.discovered == *found { wanted } else { self.wanted(&next) };
        let mut told = self.tell_each(&next, wanted).await;
        let failures = next.discovered.failures();
        told.failures.extend(failures.map(|(name, why)| (Subject::Adapter(name), why)));
        self.look_from_time_to_time(&next);
        told
    }

    /// Tells every data plane what it shall be, starts new ones, ends those that are not wanted.
    async fn tell_dataplanes(&self, next: &Desired) -> ApplyOutcome {
        self.tell_each(next, self.wanted(next)).await
    }

    async fn tell_each(
        &self,
        next: &Desired,
        mut wanted: BTreeMap<String, Wanted>,
    ) -> ApplyOutcome {
        let mut names = next.dataplane_names();
        // The main one last: it takes the passed sockets that no other has a use for.
        names.sort_by_key(|name| name == MAIN);
        let mut told = ApplyOutcome::default();
        let gone: Vec<(String, Arc<Supervisor>)> =
            self.supervisors().into_iter().filter(|(name, _)| !names.contains(name)).collect();
        for (name, supervisor) in gone {
            supervisor.want(Wanted::default(), resolve::dataplane(next, &name)).await;
            supervisor.end(true).await;
            self.write_supervisors().remove(&name);
        }
        for name in &names {
            let spec = resolve::dataplane(next, name);
            let wanted = wanted.remove(name).unwrap_or_default();
            self.make_folders(&wanted);
            match self.supervisor(name, &spec, &wanted) {
                Ok(supervisor) => {
                    let Outcome { connected, failures, opening } =
                        supervisor.want(wanted, spec).await;
                    if connected {
                        told.failures.extend(failures);
                        told.opening.extend(opening);
                    } else {
                        // What is noted of it is from earlier.
                        told.down.insert(name.clone());
                    }
                }
                Err(error) => {
                    tracing::error!(dataplane = %name, %error, "no supervisor");
                    told.down.insert(name.clone());
                }
            }
        }
        told
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
        let mut all = self.listeners.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let adapters: Vec<String> = all
            .keys()
            .filter(|adapter| name == MAIN || wanted.adapters.contains_key(*adapter))
            .cloned()
            .collect();
        let listeners = adapters.into_iter().filter_map(|name| all.remove_entry(&name)).collect();
        let supervisor = Arc::new(Supervisor::start(
            (self.launcher)(name),
            spec.clone(),
            listeners,
            Arc::clone(&self.learned),
            Arc::clone(&self.trail),
        )?);
        self.write_supervisors().insert(name.to_owned(), Arc::clone(&supervisor));
        Ok(supervisor)
    }

    fn supervisors(&self) -> BTreeMap<String, Arc<Supervisor>> {
        read(&self.supervisors).clone()
    }

    fn write_supervisors(
        &self,
    ) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<Supervisor>>> {
        self.supervisors.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Asks the server to stop; [`Server::stopped`] returns then.
    pub fn stop(&self, data_planes: bool) {
        self.stop_dataplanes.fetch_or(data_planes, std::sync::atomic::Ordering::Relaxed);
        self.stop.notify_one();
    }

    /// When the server ends, by whatever cause, its data planes end too.
    pub fn end_dataplanes_too(&self) {
        self.stop_dataplanes.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Waits until somebody asks the server to stop.
    pub async fn stopped(&self) {
        self.stop.notified().await;
    }

    /// Ends the supervisors, and the data planes with them if that was asked for.
    pub async fn end(&self) {
        self.ended.store(true, std::sync::atomic::Ordering::Relaxed);
        let data_planes = self.stop_dataplanes.load(std::sync::atomic::Ordering::Relaxed);
        // A change that is under way is carried to its end, if that comes soon.
        let _change = tokio::time::timeout(END_PATIENCE, self.change.lock()).await;
        for supervisor in self.supervisors().values() {
            supervisor.end(data_planes).await;
        }
        let with = if data_planes { ", with its data planes" } else { "" };
        self.trail.note(Kind::ServerStopped, None, format!("process {}{with}", std::process::id()));
    }

    /// That an object is not there, with the nearest one that is.
    pub fn not_found(&self, object: Object, name: &str) -> ApiError {
        let desired = self.desired();
        let refusal = ApiError::new(Code::NotFound, format!("there is no {object} `{name}`"));
        match suggest::nearest(name, desired[object].keys().map(String::as_str)) {
            Some(near) => refusal.help(format!("did you mean `{near}`?")),
            None => refusal.help(format!("`trunkline {object} list` shows those that there are")),
        }
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The failure of an object that the change was about.
fn failure_of(
    failures: &BTreeMap<Subject, ApiError>,
    changes: &[Change],
    next: &Desired,
) -> Option<ApiError> {
    changes.iter().find_map(|change| {
        let name = change.name.clone();
        let subjects = match change.object {
            Object::Volume => vec![Subject::Volume(name)],
            Object::Adapter => vec![Subject::Adapter(name)],
            Object::Target => {
                let luns = next[Object::Target].get(&name).map(crate::model::san::luns);
                luns.unwrap_or_default().into_values().map(Subject::Unit).collect()
            }
            Object::Vtd => {
                let set = next[Object::Vtd].get(&name)?;
                vec![Subject::Unit(resolve::unit_of_vtd(&name, set))]
            }
            _ => return None,
        };
        subjects.iter().find_map(|subject| failures.get(subject).cloned())
    })
}

/// A number that no other server has drawn: the standard library's hashers begin with random keys of the system.
fn fresh_number() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}
