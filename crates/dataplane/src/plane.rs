//! What exists in this data plane, and how a message changes it.
//!
//! One message is judged at a time. None of this is on the I/O path: a message that must change something under
//! running queues has them stopped, changed and started by their adapter, or gives them another LUN map. What of that waits for a disk
//! goes on by itself.
//!
//! No channel waits for a lock of this, and neither does the task manager, for which a channel's command may wait.

mod adapters;
mod going;
mod lines;
mod opening;
mod pools;
mod units;
mod uplinks;
mod users;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{JoinHandle, ScopedJoinHandle};
use std::time::{Duration, Instant};

use channel::{ChannelConfig, ChannelError};
use memory::MapError;
use pool_io::Pools;
use protocol::message::{
    AdapterSpec, ChannelStatus, Failure, FailureCode, Initiator, MINOR, Reply, Request, Selection,
    Status, VERSION, VolumeStatus,
};
use protocol::stats::CHANNELS_MAX;
#[cfg(not(feature = "sim"))]
use protocol::stats::StatsRegion;

use crate::Options;
#[cfg(not(feature = "sim"))]
use crate::acceptor::Acceptor;
use crate::acceptor::Entry;
use crate::adapter::{Adapter, PlaneContext};
use crate::balance::Balancer;
use crate::carrier::Carriers;
use crate::devices::{Backing, Channel, Services};
#[cfg(not(feature = "sim"))]
use crate::journal::Relay;
use crate::lock::locked;
use crate::outside::Outside;
use crate::storage::Storage;
use crate::turns::Thread;
use going::{Going, Subject};
use opening::Opening;
use pools::OpenPool;
use uplinks::Uplink;
use users::Users;

/// Why a data plane could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PlaneError {
    /// A channel.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The thread of storage pools.
    #[error("the thread of storage pools: {0}")]
    Pools(#[source] std::io::Error),
    /// The statistics.
    #[error("statistics: {0}")]
    Stats(#[from] MapError),
    /// The CPUs.
    #[error("cannot use the CPUs {cpus:?}: {source}; see `cpus` of the data plane")]
    Cpus {
        /// Which.
        cpus: Vec<u32>,
        /// The kernel's reason.
        source: std::io::Error,
    },
}

/// Everything that there is, by name.
#[derive(Default)]
pub(crate) struct State {
    storage: Storage,
    opening: BTreeMap<String, Opening>,
    /// Volumes whose paths are looked at.
    looking: BTreeSet<String>,
    /// Volumes that are being taken from their users, exchanged or closed, as they were.
    away: BTreeMap<String, VolumeStatus>,
    pub(crate) adapters: BTreeMap<String, Arc<Adapter>>,
    /// Changes that wait for a disk. What is removed is there until its change is over.
    going: BTreeMap<Subject, Going>,
    /// Counts them.
    changes: u64,
    /// The adapters of each initiator port. It stays what it is for as long as an adapter exists.
    initiators: BTreeMap<Initiator, BTreeSet<String>>,
    /// The adapters that have named each volume and each unit.
    named: Users,
    uplinks: BTreeMap<String, Uplink>,
    pools: BTreeMap<String, OpenPool>,
    /// Nothing comes any more.
    ended: bool,
}

/// Whether a client of such an adapter sees one of these units.
fn sees(spec: &AdapterSpec, units: &[String]) -> bool {
    spec.scsi().is_some_and(|scsi| {
        let mut names = scsi.targets.iter().flat_map(|target| target.luns.values());
        names.any(|name| units.contains(name))
    })
}

impl State {
    /// Adapters whose present or next form is on a volume, or sees a unit that is.
    fn users(&self, volume: &str) -> impl Iterator<Item = (&String, &Arc<Adapter>)> {
        let units: Vec<String> = self.storage.units_on(volume).cloned().collect();
        let named = self.named.of(Some(volume), &units).into_iter();
        let named = named.filter_map(|name| self.adapters.get_key_value(name));
        let uses = move |spec: &AdapterSpec| spec.uses_volume(volume) || sees(spec, &units);
        named.filter(move |(_, adapter)| adapter.is(&uses))
    }

    /// Those who use a volume, to be given what there is of it.
    fn renewal_of(&self, volume: &str) -> Renewal {
        Renewal(self.users(volume).map(|(_, adapter)| Arc::clone(adapter)).collect())
    }

    /// The same without those who leave, and need nothing any more.
    fn renewal_of_those_who_stay(&self, volume: &str) -> Renewal {
        let stay = self.users(volume).filter(|(name, _)| !self.leaves(name));
        Renewal(stay.map(|(_, adapter)| Arc::clone(adapter)).collect())
    }
}

/// Adapters that are to have behind each of their forms what the storage has now. That may wait for what is out at a disk, so it is done without
/// the state's lock. Each looks at the storage when it is its turn: whoever is last to change it is the last to be looked at.
#[must_use]
struct Renewal(Vec<Arc<Adapter>>);

impl Renewal {
    /// One after the other.
    fn carry_out(&self, all: &Mutex<State>) -> Result<(), Failure> {
        let renewed = self.0.iter().map(|adapter| renew(all, adapter));
        // All get it, whatever becomes of the first.
        renewed.fold(Ok(()), Result::and)
    }

    /// Where one adapter may wait long for what is out at a disk: the others do not wait for it.
    fn carry_out_at_once(&self, all: &Mutex<State>) -> Result<(), Failure> {
        at_once(&self.0, |adapter| renew(all, adapter)).into_iter().fold(Ok(()), Result::and)
    }
}

/// Does something with each, with none waiting for another.
fn at_once<A: Sync, T: Send>(all: &[A], work: impl Fn(&A) -> T + Sync) -> Vec<T> {
    if let [one] = all {
        return vec![work(one)];
    }
    if cfg!(feature = "sim") {
        return all.iter().map(work).collect();
    }
    let work = &work;
    std::thread::scope(|threads| {
        let begin = |one| {
            let thread = std::thread::Builder::new();
            (one, thread.spawn_scoped(threads, move || work(one)))
        };
        let begun: Vec<_> = all.iter().map(begin).collect();
        let end = |(one, thread): (&A, std::io::Result<ScopedJoinHandle<'_, T>>)| match thread {
            Ok(thread) => thread.join().expect("a panic ends the process"),
            // The system has no thread for it.
            Err(_) => work(one),
        };
        begun.into_iter().map(end).collect()
    })
}

fn renew(all: &Mutex<State>, adapter: &Adapter) -> Result<(), Failure> {
    let renewed = adapter.renew(|spec| Backing::of(spec, &locked(all).storage));
    renewed.map_err(|what| {
        let name = adapter.shared().spec().name.clone();
        let help = "free the resources that it needs, and put it again";
        failure(FailureCode::System, format!("adapter {name}: {what}"), help)
    })
}

/// A data plane.
pub struct Plane {
    context: PlaneContext,
    /// Held by whoever judges a change and begins it; what of it may wait for a disk goes on without it ([`going`]). Locked before the state,
    /// which is never held while something is waited for, so that it can always be told.
    changes: Arc<Mutex<()>>,
    state: Arc<Mutex<State>>,
    balancer: Balancer,
    started: Instant,
    socket: PathBuf,
    /// Where control planes come in.
    pub(crate) entrance: OnceLock<Arc<Entry>>,
    lookout: Lookout,
    /// What the process gave up, once that is known.
    pub(crate) confinement: OnceLock<String>,
}

/// How often it is looked whether sockets still have their files, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Who looks after the sockets' files, or did, and since when.
type Lookout = Mutex<Option<(JoinHandle<()>, Instant)>>;

/// Files that a channel can have registered: two for each of its queues' share, generously.
const FILES_MAX: u32 = 8192;

impl Plane {
    /// Starts the channels. Binds the process to the CPUs, if any are named.
    ///
    /// # Errors
    ///
    /// When a channel cannot be made, or a CPU is not to be had.
    pub fn new(options: &Options) -> Result<Plane, PlaneError> {
        let cpus = &options.cpus;
        if !cpus.is_empty() {
            let mut set = rustix::thread::CpuSet::new();
            cpus.iter().for_each(|cpu| set.set(*cpu as usize));
            rustix::thread::sched_setaffinity(None, &set)
                .map_err(|error| PlaneError::Cpus { cpus: cpus.clone(), source: error.into() })?;
        }
        let count = options.channel_count().min(CHANNELS_MAX as u32);
        let balancer =
            Balancer::new().map_err(|source| ChannelError::System { index: 0, source })?;
        #[cfg(feature = "sim")]
        let stats = crate::sim::stats();
        #[cfg(not(feature = "sim"))]
        let stats = Arc::new(StatsRegion::create(count as usize)?);
        let channel = |index: u32| {
            let cpu = cpus.get(index as usize % cpus.len().max(1)).copied();
            let config = ChannelConfig {
                index,
                cpu,
                files_max: FILES_MAX,
                poll_us_max: options.poll_us_max,
                activity: Some(Arc::clone(balancer.activity())),
            };
            Channel::start(config, stats.channel(index as usize))
        };
        let channels: Vec<Channel> = (0..count).map(channel).collect::<Result<_, _>>()?;
        let channels = Arc::new(channels);
        let services = Services::start(&channels)
            .map_err(|source| ChannelError::System { index: 0, source })?;
        let services = Arc::new(services);
        #[cfg(feature = "sim")]
        let (relay, acceptor) = crate::sim::common();
        #[cfg(not(feature = "sim"))]
        let relay = Relay::start().map_err(|source| ChannelError::System { index: 0, source })?;
        #[cfg(not(feature = "sim"))]
        let acceptor =
            Acceptor::start().map_err(|source| ChannelError::System { index: 0, source })?;
        let outside = Arc::new(Outside::of(options.confine.is_some()));
        // Its ring is made before the process gives up making any.
        let pools = if cfg!(feature = "sim") {
            None
        } else {
            Some(Arc::new(Pools::start().map_err(PlaneError::Pools)?))
        };
        let keeps_one = Arc::default();
        let carriers = Carriers::new(&outside);
        let context = PlaneContext {
            channels,
            stats,
            services,
            relay,
            outside,
            carriers,
            acceptor,
            pools,
            keeps_one,
        };
        let state = Arc::new(Mutex::new(State::default()));
        let of_balancer = Arc::clone(&state);
        let adapters = move || {
            locked(&of_balancer).adapters.values().map(|adapter| adapter.shared()).collect()
        };
        balancer.start(context.clone(), Box::new(adapters));
        let socket = options.socket.clone();
        Ok(Plane {
            context,
            changes: Arc::default(),
            state,
            balancer,
            started: Instant::now(),
            socket,
            entrance: OnceLock::new(),
            lookout: Mutex::default(),
            confinement: OnceLock::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Carries out one message; with [`Reply::Stats`] comes a descriptor.
    pub fn handle(&self, request: Request, fds: Vec<OwnedFd>) -> (Reply, Option<BorrowedFd<'_>>) {
        let result = match request {
            Request::Hello { version, .. } if version != VERSION => Err(failure(
                FailureCode::Version,
                format!("this data plane speaks version {VERSION} of the messages, not {version}"),
                "restart the data plane",
            )),
            Request::Hello { .. } => {
                Ok(Reply::Hello { version: VERSION, minor: MINOR, pid: std::process::id() })
            }
            Request::PutVolume(spec) => self.put_volume(spec),
            Request::ResizeVolume { name, bytes, shrink } => {
                self.resize_volume(&name, bytes, shrink)
            }
            Request::RemoveVolume { name, forget } => self.remove_volume(&name, forget),
            Request::PutUnit(spec) => self.put_unit(spec),
            Request::RemoveUnit { name } => self.remove_unit(&name),
            Request::PutAdapter(spec) => self.put_adapter(spec, fds.into_iter().next()),
            Request::RemoveAdapter { name } => self.remove_adapter(&name),
            Request::PutPool(spec) => self.put_pool(spec),
            Request::RemovePool { name } => self.remove_pool(&name),
            Request::GrowPvs { pool } => self.grow_pvs(pool),
            Request::Rollback(spec) => self.rollback(spec),
            Request::Detach(spec) => self.detach(&spec),
            Request::Scrub(spec) => self.scrub(&spec),
            Request::Layout(spec) => self.layout(&spec),
            Request::Copy(spec) => self.copy(&spec, fds),
            Request::PutUplink(spec) => self.put_uplink(spec),
            Request::RemoveUplink { name } => self.remove_uplink(&name),
            Request::ResetMarks { name } => self.reset_marks(&name),
            Request::ResetPortMarks { name } => {
                self.context.services.scsi.reset_port_marks(&self.context.stats, &name);
                Ok(Reply::Done)
            }
            Request::Trace(spec) => self.trace(&spec),
            Request::Tallies(spec) => self.tallies(&spec),
            // Who asks for changes is told them by its connection, which knows what it has told.
            Request::Status | Request::Changes => {
                self.look_after_sockets();
                self.context.services.ethernet.end_traces();
                Ok(Reply::Status(self.status(None)))
            }
            Request::ChangesOf(of) => Ok(Reply::Status(self.status(Some(&of)))),
            Request::Stats => return (Reply::Stats, Some(self.context.stats.file().as_fd())),
            Request::Opener => {
                self.lend(fds, 0);
                Ok(Reply::Done)
            }
            Request::Shutdown => {
                self.shut_down();
                Ok(Reply::Done)
            }
        };
        (result.unwrap_or_else(Reply::Error), None)
    }

    /// A control plane that knows this [`MINOR`] brings what is asked for files and sockets.
    pub(crate) fn lend(&self, fds: Vec<OwnedFd>, minor: u32) {
        self.context.outside.attach(fds.into_iter().next(), minor);
    }

    /// Removes everything, after what is in flight is done.
    fn shut_down(&self) {
        let _changing = locked(&self.changes);
        let (adapters, going, uplinks) = {
            let mut state = self.state();
            state.ended = true;
            state.initiators.clear();
            let adapters = std::mem::take(&mut state.adapters);
            let stay = adapters.into_iter().filter(|(name, _)| {
                let subject = Subject::Adapter(name.clone());
                !state.going.get(&subject).is_some_and(Going::removes)
            });
            let stay: Vec<_> = stay.map(|(_, adapter)| adapter).collect();
            (stay, std::mem::take(&mut state.going), std::mem::take(&mut state.uplinks))
        };
        adapters.iter().for_each(|adapter| adapter.remove());
        drop(adapters);
        // A pool that is being opened is given up; one that is being closed is closed below.
        let over = going.into_iter().filter(|(about, _)| !matches!(about, Subject::Pool(_)));
        let over = over.filter_map(|(_, going)| going.thread).map(Thread::join);
        over.for_each(|over| assert!(over.is_ok(), "a panic ends the process"));
        uplinks.into_values().for_each(|uplink| uplink.remove());
        let mut state = self.state();
        state.opening.clear();
        let storage = std::mem::take(&mut state.storage);
        let pools: Vec<_> = std::mem::take(&mut state.pools).into_values().collect();
        drop(state);
        drop(storage);
        // None waits for the PVs of another.
        at_once(&pools, OpenPool::close);
    }

    /// How all is, or what is named.
    fn status(&self, of: Option<&Selection>) -> Status {
        let state = self.state();
        let owned = self.context.queues_of_channels();
        let channel = |channel: &Channel| {
            let config = channel.config();
            let queues = owned[config.index as usize] as u32;
            ChannelStatus { index: config.index, cpu: config.cpu, queues }
        };
        let units = &state.storage.units;
        Status {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.started.elapsed().as_secs(),
            confinement: self.confinement.get().cloned().unwrap_or_default(),
            channels: self.context.channels.iter().map(channel).collect(),
            volumes: match of {
                None => state.volumes(),
                Some(of) => of.volumes.iter().filter_map(|name| state.volume(name)).collect(),
            },
            opening: state.opening.values().map(Opening::status).collect(),
            units: those(units, of.map(|of| &of.units), |_, unit| unit.status()),
            adapters: those(&state.adapters, of.map(|of| &of.adapters), |name, adapter| {
                state.status_of(name, adapter)
            }),
            uplinks: those(&state.uplinks, of.map(|of| &of.uplinks), |_, it| it.status()),
            pools: those(&state.pools, of.map(|of| &of.pools), |_, pool| pool.status()),
        }
    }
}

/// Something of all there are, or of those that are named.
fn those<T, S>(
    all: &BTreeMap<String, T>,
    names: Option<&Vec<String>>,
    of: impl Fn(&String, &T) -> S,
) -> Vec<S> {
    match names {
        None => all.iter().map(|(name, one)| of(name, one)).collect(),
        Some(names) => {
            let found = names.iter().filter_map(|name| all.get_key_value(name));
            found.map(|(name, one)| of(name, one)).collect()
        }
    }
}

impl Plane {
    #[cfg(feature = "sim")]
    pub(crate) fn adapter(&self, name: &str) -> Option<Arc<Adapter>> {
        self.state().adapters.get(name).cloned()
    }

    pub(crate) fn context(&self) -> &PlaneContext {
        &self.context
    }

    /// Makes sockets again whose files were removed: while somebody asks how things are, since only a control plane can open one for a
    /// confined data plane. A thread of its own does it: no answer waits for a file system.
    fn look_after_sockets(&self) {
        // Nobody removes sockets there.
        if cfg!(feature = "sim") {
            return;
        }
        let Ok(mut lookout) = self.lookout.try_lock() else { return };
        let lately = |since: &Instant| since.elapsed() < LOOK_EVERY;
        if lookout.as_ref().is_some_and(|(it, since)| lately(since) || !it.is_finished()) {
            return;
        }
        let adapters: Vec<Arc<Adapter>> = self.state().adapters.values().cloned().collect();
        let entrance = self.entrance.get().cloned();
        let look = move || {
            adapters.iter().for_each(|adapter| adapter.renew_socket());
            if let Some(entrance) = entrance.filter(|entrance| entrance.renew()) {
                tracing::warn!("the data plane's socket was removed; it is made again");
                entrance.expect();
            }
        };
        let thread = std::thread::Builder::new().name("sockets".into()).spawn(look);
        *lookout = thread.ok().map(|thread| (thread, Instant::now()));
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // A dead process does nothing more.
        if memory::is_ending() && cfg!(feature = "sim") {
            return self.context.services.stop();
        }
        self.balancer.stop();
        self.shut_down();
        #[cfg(not(feature = "sim"))]
        self.context.acceptor.stop();
        if let Some((thread, _)) = locked(&self.lookout).take() {
            let _ = thread.join();
        }
        self.context.services.stop();
    }
}

pub(super) fn failure(code: FailureCode, message: String, help: &str) -> Failure {
    Failure { code, message, help: Some(help.to_owned()) }
}

pub(super) fn not_found(kind: &str, name: &str) -> Failure {
    failure(FailureCode::NotFound, format!("there is no {kind} {name}"), "create it first")
}

pub(super) fn in_use(what: String, user: &str, help: &str) -> Failure {
    failure(FailureCode::InUse, format!("{what} is in use by {user}"), help)
}
