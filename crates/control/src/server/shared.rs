//! What all parts of the server share.

use super::carry::Reckoning;
use super::parting::Telling;
use super::registry::Registry;
use super::stats_files::StatsFiles;
use crate::error::{ApiError, Code};
use crate::model::Desired;
use crate::model::loss::Loss;
use crate::model::neighbours::{self, Neighbours};
use crate::model::resolve;
use crate::model::transition::{Allow, Change};
use crate::paths::Paths;
use crate::reconcile::Subject;
use crate::store::{Store, StoreError};
use crate::supervisor::{Known, Launcher, Supervisor, View};
use crate::trail::{Kind, Trail};
use crate::turns;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Object, attr};
use fabric::suggest;
use protocol::message::Status;
use protocol::opener::Passing;
use protocol::planted;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Makes the launcher of a data plane, by name.
pub type LauncherOf = Box<dyn Fn(&str) -> Box<dyn Launcher> + Send + Sync>;

/// What each data plane shall be, by name.
pub(super) type WantedOfAll = Arc<neighbours::WantedOfAll>;

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
    /// Whether the answer waits for data planes, or comes as soon as the operation is stored.
    pub wait: bool,
}

/// How long the server's end waits for a change that is under way.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// Of how many states it is kept what data planes shall be: what was, what will be, and one that learned more meanwhile.
const RESOLVED_KEPT: usize = 3;

/// What is said when the desired state could not be stored.
const STORE_HELP: &str =
    "the state is as it was before; free some space or mend the disk, then try again";

/// … and while another file is where the store was.
const REPLACED_HELP: &str = "the state is as it was before, and `trunkline export` has it; \
    remove that file, and the store is made again; a restart of the server takes what is there";

/// What to do about what is not kept of the state.
pub(super) const STORE_MENDS: &str =
    "free some space, mend the disk, or remove the other file; it is tried again by itself";

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
    /// The operation that goes on, for who did not want to wait.
    pub operation: Option<u64>,
}

/// The configuration that each start applies, as this one found it.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whether a start removes what it does not name.
    pub prune: bool,
    /// What it names.
    pub names: BTreeSet<(Object, String)>,
}

/// What became of telling the data planes.
#[derive(Debug, Default)]
pub(super) struct ApplyOutcome {
    pub(super) failures: BTreeMap<Subject, ApiError>,
    /// Volumes that are being opened, and what waits for them.
    pub(super) opening: BTreeMap<Subject, ApiError>,
    /// Those that do not answer.
    pub(super) down: BTreeSet<String>,
}

/// What is behind the lock of changes. Nobody waits for a data plane, a disk of a user or another request while holding it.
pub(super) struct Ledger {
    pub(super) store: Box<dyn Store>,
    pub(super) telling: Telling,
    /// The files of new volumes could not be recorded.
    pub(super) unrecorded: bool,
}

/// A running server; shared by all requests.
pub struct Server {
    pub(super) paths: Paths,
    pub(super) launcher: LauncherOf,
    pub(super) desired: RwLock<Desired>,
    supervisors: RwLock<BTreeMap<String, Arc<Supervisor>>>,
    /// Listening sockets that were passed in, by adapter, until a data plane's supervisor gets them.
    pub(super) listeners: Mutex<BTreeMap<String, OwnedFd>>,
    /// Held while the state is judged, stored and posted to the supervisors.
    pub(super) change: tokio::sync::Mutex<Ledger>,
    /// Held by whoever makes or removes virtual ports; the kernel answers when the HBA has.
    pub(super) hbas: tokio::sync::Mutex<()>,
    /// Whether somebody looks at the host's HBAs from time to time.
    pub(super) looking: AtomicBool,
    pub(super) registry: Registry,
    pub(super) ended: Arc<AtomicBool>,
    /// A supervisor has learned of the file of a volume.
    pub(super) learned: Arc<Notify>,
    /// What goes with files from one data plane to another.
    pub(super) passing: Arc<Passing>,
    pub(super) myself: Weak<Server>,
    stop: Notify,
    stop_dataplanes: AtomicBool,
    /// The configuration that each start applies.
    pub(super) file: RwLock<Option<ConfigFile>>,
    pub(super) trail: Arc<Trail>,
    pub(super) stats_files: Mutex<StatsFiles>,
    /// What data planes shall be in the states that were asked for last, the latest first.
    resolved: Mutex<Vec<(Desired, WantedOfAll)>>,
    /// What accounts of data planes take.
    pub(super) reckoning: Mutex<Reckoning>,
    /// Why something is not kept beside the state.
    pub(super) not_kept: Mutex<Vec<ApiError>>,
    /// Whether everybody was told what he shall be.
    started: watch::Sender<bool>,
    /// Who has to do with whom in the state that was judged from last.
    pub(super) neighbours: Mutex<Neighbours>,
    /// How often that was worked out.
    #[cfg(test)]
    pub(crate) resolutions: std::sync::atomic::AtomicU64,
    /// Of how many objects in all.
    #[cfg(test)]
    pub(crate) resolved_objects: std::sync::atomic::AtomicU64,
}

impl Server {
    /// Loads the desired state, and brings the data planes up.
    pub async fn start(
        paths: Paths,
        store: Box<dyn Store>,
        launcher: LauncherOf,
        listeners: BTreeMap<String, OwnedFd>,
    ) -> Result<Arc<Server>, StoreError> {
        let server = Server::load(paths, store, launcher, listeners)?;
        server.bring_up().await;
        server.has_started();
        Ok(server)
    }

    /// Loads the desired state. Nobody is told anything so far.
    pub fn load(
        paths: Paths,
        mut store: Box<dyn Store>,
        launcher: LauncherOf,
        listeners: BTreeMap<String, OwnedFd>,
    ) -> Result<Arc<Server>, StoreError> {
        let desired = store.load()?;
        let journal = store.journal();
        let trail = Arc::new(Trail::open(&paths.events()));
        trail.note(Kind::ServerStarted, None, format!("process {}", std::process::id()));
        Ok(Arc::new_cyclic(|myself| Server {
            paths,
            launcher,
            desired: RwLock::new(desired),
            supervisors: RwLock::default(),
            listeners: Mutex::new(listeners),
            change: tokio::sync::Mutex::new(Ledger {
                store,
                telling: Telling::default(),
                unrecorded: false,
            }),
            hbas: tokio::sync::Mutex::default(),
            looking: false.into(),
            registry: Registry::new(journal),
            ended: Arc::default(),
            learned: Arc::default(),
            passing: Arc::default(),
            myself: Weak::clone(myself),
            stop: Notify::new(),
            stop_dataplanes: false.into(),
            file: RwLock::default(),
            trail,
            resolved: Mutex::default(),
            reckoning: Mutex::default(),
            not_kept: Mutex::default(),
            neighbours: Mutex::default(),
            #[cfg(test)]
            resolutions: 0.into(),
            #[cfg(test)]
            resolved_objects: 0.into(),
            stats_files: Mutex::default(),
            started: watch::Sender::new(false),
        }))
    }

    /// Brings the data planes up, which takes as long as they have adapters to make; whoever asks is answered meanwhile.
    pub async fn bring_up(&self) {
        self.record_files_as_they_come();
        self.tell(None).await;
        self.resume_operations();
        self.keep_stats_files();
        self.mend_what_is_kept();
        self.watch_pools();
    }

    /// All that a start does is done: changes are taken.
    pub fn has_started(&self) {
        self.started.send_replace(true);
    }

    /// Whether a start is done.
    pub fn is_started(&self) -> bool {
        *self.started.borrow()
    }

    /// Waits until a start is done.
    pub async fn started(&self) {
        // Its sender is this server's own.
        let _ = self.started.subscribe().wait_for(|started| *started).await;
    }

    /// Where things lie.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The desired state now.
    pub fn desired(&self) -> Desired {
        read(&self.desired).clone()
    }

    /// Whether an adapter is there and its client sees LUNs. Asked for each queue, so nothing is copied for it.
    pub(crate) fn is_scsi(&self, adapter: &str) -> bool {
        let desired = read(&self.desired);
        let set = desired[Object::Adapter].get(adapter);
        set.is_some_and(|set| {
            matches!(attr::adapter::KIND.value(set), AdapterKind::Fc | AdapterKind::Scsi)
        })
    }

    /// What is known of each data plane without asking it.
    pub fn supervisor_views(&self) -> BTreeMap<String, View> {
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

    /// The same for a change, which is not to wait for those that are known to be silent.
    pub(super) async fn look_for_a_change(&self) -> BTreeMap<String, View> {
        let mut looks = tokio::task::JoinSet::new();
        for (name, supervisor) in self.supervisors() {
            looks.spawn(async move { (name, supervisor.look_unless_silent().await) });
        }
        looks.join_all().await.into_iter().collect()
    }

    /// Each data plane's account of itself, the last one where it does not answer now.
    pub async fn statuses(&self) -> BTreeMap<String, Arc<Status>> {
        accounts(&self.look().await)
    }

    /// What happened.
    pub fn trail(&self) -> &Trail {
        &self.trail
    }

    /// That a data plane does not run and why.
    pub(super) fn waits(&self, dataplane: &str) -> ApiError {
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
        let down = self.supervisor_views().into_iter().filter(|(_, view)| bad(view));
        down.map(|(name, _)| self.waits(&name)).collect()
    }

    /// Stores a state, with the operations as they are in memory.
    pub(super) fn commit(&self, ledger: &mut Ledger, next: &Desired) -> Result<(), ApiError> {
        let journal = self.registry.journal();
        if planted("said-first") {
            *self.desired.write().unwrap_or_else(PoisonError::into_inner) = next.clone();
        }
        // Milliseconds, for two syncs; changes are rare.
        turns::blocking(|| ledger.store.commit(next, &journal)).map_err(|error| {
            let replaced = matches!(error, StoreError::Replaced(_));
            let help = if replaced { REPLACED_HELP } else { STORE_HELP };
            ApiError::new(Code::Failed, error.to_string()).help(help)
        })?;
        *self.desired.write().unwrap_or_else(PoisonError::into_inner) = next.clone();
        Ok(())
    }

    /// What each data plane shall be. That of the last few states is known: a change asks for what was and what will be, and whoever tells
    /// the data planes asks again. What it becomes is made of what it was, and costs what changes.
    pub(super) fn wanted(&self, desired: &Desired) -> WantedOfAll {
        let mut known = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = known.iter().position(|(state, _)| state == desired) {
            let found = known.remove(at);
            known.insert(0, found);
            return Arc::clone(&known[0].1);
        }
        let neighbours = self.neighbours.lock().unwrap_or_else(PoisonError::into_inner);
        let beside = known
            .first()
            .and_then(|(state, wanted)| neighbours.wanted((state, wanted), desired, &self.paths));
        drop(neighbours);
        let (wanted, _objects) = beside.unwrap_or_else(|| {
            let names = desired.dataplane_names().into_iter();
            let of = |name: String| (name.clone(), resolve::wanted(desired, &name, &self.paths));
            let objects = Object::ALL.into_iter().map(|object| desired[object].len());
            (names.map(of).collect(), objects.sum())
        });
        let wanted: WantedOfAll = Arc::new(wanted);
        known.insert(0, (desired.clone(), Arc::clone(&wanted)));
        known.truncate(RESOLVED_KEPT);
        #[cfg(test)]
        {
            self.resolutions.fetch_add(1, Ordering::Relaxed);
            self.resolved_objects.fetch_add(_objects as u64, Ordering::Relaxed);
        }
        wanted
    }

    pub(super) fn supervisors(&self) -> BTreeMap<String, Arc<Supervisor>> {
        read(&self.supervisors).clone()
    }

    /// That of a data plane.
    pub(super) fn supervisor_of(&self, dataplane: &str) -> Result<Arc<Supervisor>, ApiError> {
        let known = read(&self.supervisors).get(dataplane).cloned();
        known.ok_or_else(|| self.not_found(Object::DataPlane, dataplane))
    }

    pub(super) fn write_supervisors(
        &self,
    ) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<Supervisor>>> {
        self.supervisors.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the server to stop; [`Server::stopped`] returns then.
    pub fn stop(&self, data_planes: bool) {
        self.stop_dataplanes.fetch_or(data_planes, Ordering::Relaxed);
        self.stop.notify_one();
    }

    /// When the server ends, by whatever cause, its data planes end too.
    pub fn end_dataplanes_too(&self) {
        self.stop_dataplanes.store(true, Ordering::Relaxed);
    }

    /// Waits until somebody asks the server to stop.
    pub async fn stopped(&self) {
        self.stop.notified().await;
    }

    /// Ends the supervisors, and the data planes with them if that was asked for.
    pub async fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        let data_planes = self.stop_dataplanes.load(Ordering::Relaxed);
        // What is under way is carried to its end, if that comes soon; the next server goes on with the rest.
        let idle = self.registry.until(|operations| !operations.busy());
        let _ = tokio::time::timeout(END_PATIENCE, idle).await;
        let _change = self.change.lock().await;
        for supervisor in self.supervisors().values() {
            supervisor.end(data_planes).await;
        }
        self.remove_stats_files();
        let with = if data_planes { ", with its data planes" } else { "" };
        self.trail.note(Kind::ServerStopped, None, format!("process {}{with}", std::process::id()));
    }

    /// That an object is not there, with the nearest one that is.
    pub fn not_found(&self, object: Object, name: &str) -> ApiError {
        not_found(&self.desired(), object, name)
    }
}

/// The same in a state.
pub(super) fn not_found(desired: &Desired, object: Object, name: &str) -> ApiError {
    let refusal = ApiError::new(Code::NotFound, format!("there is no {object} `{name}`"));
    match suggest::nearest(name, desired[object].keys().map(String::as_str)) {
        Some(near) => refusal.help(format!("did you mean `{near}`?")),
        None => refusal.help(format!("`trunkline {object} list` shows those that there are")),
    }
}

/// What is behind a lock that no panic can leave half written.
pub(super) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// The accounts of processes that are there.
pub(super) fn accounts(views: &BTreeMap<String, View>) -> BTreeMap<String, Arc<Status>> {
    let accounts = views.iter().filter_map(|(name, view)| {
        let known: &Known = view.account()?;
        Some((name.clone(), Arc::clone(&known.status)))
    });
    accounts.collect()
}
