//! What exists in this data plane, and how a message changes it.
//!
//! One message is carried out at a time. None of this is on the I/O path: a message that must change something under
//! running queues has them stopped, changed and started by their adapter.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use block::{OpenEvent, Volume, VolumeError};
use channel::{Channel, ChannelConfig, ChannelError};
use memory::MapError;
use protocol::message::{
    AdapterSpec, ChannelStatus, Failure, FailureCode, Reply, Request, Status, VERSION, VolumeKind,
    VolumeSpec, VolumeStatus,
};
use protocol::stats::{CHANNELS_MAX, NAME_BYTES_MAX, StatsRegion};

use crate::Options;
use crate::adapter::{Adapter, Means};
use crate::balance::Balancer;
use crate::convert;
use crate::session::locked;

/// Why a data plane could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PlaneError {
    /// A channel.
    #[error(transparent)]
    Channel(#[from] ChannelError),
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

struct OpenVolume {
    spec: VolumeSpec,
    volume: Arc<dyn Volume>,
    notes: Vec<String>,
    identity: Option<Identity>,
}

/// Device and inode: what a path must still lead to when a volume is opened again under its clients.
type Identity = (u64, u64);

fn identity(spec: &VolumeSpec) -> Option<Identity> {
    let (VolumeKind::File { path, .. } | VolumeKind::Ram { path }) = &spec.kind else {
        return None;
    };
    let found = std::fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Volumes and adapters by name.
#[derive(Default)]
pub(crate) struct State {
    volumes: BTreeMap<String, OpenVolume>,
    pub(crate) adapters: BTreeMap<String, Adapter>,
}

/// A data plane.
pub struct Plane {
    means: Means,
    state: Arc<Mutex<State>>,
    balancer: Balancer,
    started: Instant,
}

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
        let available = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        let count = match (options.channels, cpus.len() as u32) {
            (0, 0) => available,
            (0, bound) => bound,
            (count, _) => count,
        };
        let count = count.min(CHANNELS_MAX as u32);
        let balancer =
            Balancer::new().map_err(|source| ChannelError::System { index: 0, source })?;
        let stats = StatsRegion::create(count as usize)?;
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
        let means = Means { channels: Arc::new(channels), stats: Arc::new(stats) };
        let state = Arc::new(Mutex::new(State::default()));
        balancer.start(means.clone(), Arc::clone(&state));
        Ok(Plane { means, state, balancer, started: Instant::now() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Carries out one message; with [`Reply::Stats`] comes a descriptor.
    pub fn handle(&self, request: Request, fds: Vec<OwnedFd>) -> (Reply, Option<BorrowedFd<'_>>) {
        let result = match request {
            Request::Hello { version } if version != VERSION => Err(failure(
                FailureCode::Version,
                format!("this data plane speaks version {VERSION} of the messages, not {version}"),
                "restart the data plane",
            )),
            Request::Hello { .. } => Ok(Reply::Hello { version: VERSION, pid: std::process::id() }),
            Request::PutVolume(spec) => self.put_volume(spec),
            Request::ResizeVolume { name, bytes, shrink } => {
                self.resize_volume(&name, bytes, shrink)
            }
            Request::RemoveVolume { name } => self.remove_volume(&name),
            Request::PutUnit(_) | Request::RemoveUnit { .. } => Err(no_scsi()),
            Request::PutAdapter(spec) => self.put_adapter(spec, fds.into_iter().next()),
            Request::RemoveAdapter { name } => self.remove_adapter(&name),
            Request::Status => Ok(Reply::Status(self.status())),
            Request::Stats => return (Reply::Stats, Some(self.means.stats.file().as_fd())),
            Request::Shutdown => {
                self.shut_down();
                Ok(Reply::Done)
            }
        };
        (result.unwrap_or_else(Reply::Error), None)
    }

    fn put_volume(&self, spec: VolumeSpec) -> Result<Reply, Failure> {
        let mut state = self.state();
        let State { volumes, adapters } = &mut *state;
        let Some(open) = volumes.get_mut(&spec.name) else {
            drop(state);
            return self.open_new(spec);
        };
        if open.spec == spec {
            return Ok(Reply::Done);
        }
        let users: Vec<&Adapter> =
            adapters.values().filter(|adapter| adapter.uses(&spec.name)).collect();
        if !users.is_empty() && !changes_only_behaviour(&open.spec, &spec) {
            return Err(in_use(
                format!("volume {}", spec.name),
                "an adapter",
                "remove its adapters first",
            ));
        }
        if open.identity != identity(&open.spec) {
            let what = format!(
                "volume {}: its file was removed or replaced since it was opened",
                spec.name
            );
            let help = "put the file back, or remove the volume's adapters and the volume first";
            return Err(failure(FailureCode::System, what, help));
        }
        // The file is locked by whoever has it open, so the old volume has to go before the new one comes.
        let name = spec.name.clone();
        users.iter().for_each(|adapter| adapter.set_volume(&name, None));
        let old = volumes.remove(&name).expect("found above").spec;
        let (reopened, result) = match open_volume(spec) {
            Ok(open) => (open, Ok(Reply::Done)),
            // If the old one cannot be had again either, its adapters wait until the volume is put once more.
            Err(failure) => (open_volume(old)?, Err(failure)),
        };
        users.iter().for_each(|adapter| adapter.set_volume(&name, Some(&reopened.volume)));
        volumes.insert(name, reopened);
        result
    }

    /// Opens a volume that is not there yet. Outside of the lock: while a predecessor's last writes are under way its file stays
    /// locked, and everything else is to be answered meanwhile.
    fn open_new(&self, spec: VolumeSpec) -> Result<Reply, Failure> {
        let file = identity(&spec);
        let shared = |open: &&OpenVolume| {
            file.is_some() && open.identity == file && !(open.spec.read_only && spec.read_only)
        };
        if let Some(open) = self.state().volumes.values().find(shared) {
            let (what, user) =
                (format!("the file of volume {}", spec.name), format!("volume {}", open.spec.name));
            return Err(in_use(
                what,
                &user,
                "name another file, or put both adapters on one volume",
            ));
        }
        let opened = open_volume(spec)?;
        let mut state = self.state();
        let name = &opened.spec.name;
        if state.volumes.contains_key(name) {
            return Err(in_use(format!("the name {name}"), "a volume made meanwhile", "ask again"));
        }
        // Adapters whose volume could not be opened again after a change are waiting for it.
        for adapter in state.adapters.values().filter(|adapter| adapter.uses(name)) {
            adapter.set_volume(name, Some(&opened.volume));
        }
        state.volumes.insert(name.clone(), opened);
        Ok(Reply::Done)
    }

    fn resize_volume(&self, name: &str, bytes: u64, shrink: bool) -> Result<Reply, Failure> {
        let mut state = self.state();
        let State { volumes, adapters } = &mut *state;
        let open = volumes.get_mut(name).ok_or_else(|| not_found("volume", name))?;
        let before = open.volume.geometry().bytes;
        if bytes < before && !shrink {
            let what =
                format!("volume {name} has {before} bytes; {bytes} would cut off what lies behind");
            return Err(failure(FailureCode::Invalid, what, "say explicitly that it may shrink"));
        }
        open.volume.resize(bytes).map_err(|error| volume_failure(&error))?;
        open.spec.bytes = Some(bytes);
        let geometry = open.volume.geometry();
        for adapter in adapters.values().filter(|adapter| adapter.uses(name)) {
            adapter.resized(name, geometry);
        }
        Ok(Reply::Done)
    }

    fn remove_volume(&self, name: &str) -> Result<Reply, Failure> {
        let mut state = self.state();
        if !state.volumes.contains_key(name) {
            return Err(not_found("volume", name));
        }
        if let Some((user, _)) = state.adapters.iter().find(|(_, adapter)| adapter.uses(name)) {
            return Err(in_use(
                format!("volume {name}"),
                &format!("adapter {user}"),
                "remove the adapter first",
            ));
        }
        state.volumes.remove(name);
        Ok(Reply::Done)
    }

    fn put_adapter(&self, spec: AdapterSpec, listener: Option<OwnedFd>) -> Result<Reply, Failure> {
        check_adapter(&spec)?;
        let mut state = self.state();
        let State { volumes, adapters } = &mut *state;
        let name = &spec.block().ok_or_else(no_scsi)?.volume;
        let volume = &volumes.get(name).ok_or_else(|| not_found("volume", name))?.volume;
        if let Some(adapter) = adapters.get(&spec.name) {
            if adapter.shared().spec().socket != spec.socket {
                return Err(in_use(
                    format!("adapter {}", spec.name),
                    "its socket",
                    "remove the adapter first",
                ));
            }
            adapter.put(&spec, volume);
            return Ok(Reply::Done);
        }
        let name = spec.name.clone();
        let adapter =
            Adapter::start(&self.means, spec, Arc::clone(volume), listener).map_err(|error| {
                failure(
                    FailureCode::System,
                    format!("adapter {name} cannot listen: {error}"),
                    "see the socket's path",
                )
            })?;
        adapters.insert(name, adapter);
        Ok(Reply::Done)
    }

    fn remove_adapter(&self, name: &str) -> Result<Reply, Failure> {
        let mut state = self.state();
        let adapter = state.adapters.remove(name).ok_or_else(|| not_found("adapter", name))?;
        adapter.remove();
        Ok(Reply::Done)
    }

    /// Removes everything, after what is in flight is done.
    fn shut_down(&self) {
        let mut state = self.state();
        while let Some((_, adapter)) = state.adapters.pop_first() {
            adapter.remove();
        }
        state.volumes.clear();
    }

    fn status(&self) -> Status {
        let state = self.state();
        let owned = self.means.queues_of_channels();
        let channel = |channel: &Channel| {
            let config = channel.config();
            let queues = owned[config.index as usize] as u32;
            ChannelStatus { index: config.index, cpu: config.cpu, queues }
        };
        let volume = |open: &OpenVolume| VolumeStatus {
            spec: open.spec.clone(),
            bytes: open.volume.geometry().bytes,
            access: access(open),
        };
        Status {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.started.elapsed().as_secs(),
            channels: self.means.channels.iter().map(channel).collect(),
            volumes: state.volumes.values().map(volume).collect(),
            units: Vec::new(),
            adapters: state.adapters.values().map(Adapter::status).collect(),
        }
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.balancer.stop();
        self.shut_down();
    }
}

/// What a client cannot notice but by its speed.
fn changes_only_behaviour(now: &VolumeSpec, then: &VolumeSpec) -> bool {
    let then =
        VolumeSpec { limit: now.limit, delay: now.delay, fault: now.fault.clone(), ..then.clone() };
    match (&now.kind, &then.kind) {
        (VolumeKind::File { path: a, .. }, VolumeKind::File { path: b, .. }) if a == b => {
            VolumeSpec { kind: now.kind.clone(), ..then } == *now
        }
        _ => then == *now,
    }
}

fn open_volume(spec: VolumeSpec) -> Result<OpenVolume, Failure> {
    let mut notes = Vec::new();
    let mut note = |event: OpenEvent| match event {
        OpenEvent::WaitsForLock { holder } => {
            eprintln!("volume {}: waits for {holder} to let go of it", spec.name)
        }
        OpenEvent::Access(access) => notes.insert(0, access.to_owned()),
        OpenEvent::Note(note) => notes.push(note),
    };
    let volume = block::open_with(&convert::volume(&spec), &mut note)
        .map_err(|error| volume_failure(&error))?;
    let identity = identity(&spec);
    Ok(OpenVolume { spec, volume, notes, identity })
}

fn access(open: &OpenVolume) -> String {
    let kind = match &open.spec.kind {
        VolumeKind::File { .. } => None,
        VolumeKind::Ram { .. } => Some("memory"),
        VolumeKind::Null { .. } => Some("none"),
    };
    kind.into_iter().chain(open.notes.iter().map(String::as_str)).collect::<Vec<_>>().join("; ")
}

fn check_adapter(spec: &AdapterSpec) -> Result<(), Failure> {
    let invalid = |what: String, help: &str| Err(failure(FailureCode::Invalid, what, help));
    if spec.name.len() > NAME_BYTES_MAX {
        return invalid(format!("the name {} is too long", spec.name), "use at most 48 bytes");
    }
    if spec.queues == 0 || spec.queues > 256 {
        return invalid(format!("queues is {}", spec.queues), "use 1 to 256");
    }
    if !spec.queue_size.is_power_of_two() || spec.queue_size > vring::QUEUE_SIZE_MAX {
        return invalid(
            format!("queue_size is {}", spec.queue_size),
            "use a power of two up to 1024",
        );
    }
    Ok(())
}

fn failure(code: FailureCode, message: String, help: &str) -> Failure {
    Failure { code, message, help: Some(help.to_owned()) }
}

fn no_scsi() -> Failure {
    let what = "this data plane serves block adapters only".to_owned();
    failure(FailureCode::Invalid, what, "make a block adapter")
}

fn not_found(kind: &str, name: &str) -> Failure {
    failure(FailureCode::NotFound, format!("there is no {kind} {name}"), "create it first")
}

fn in_use(what: String, user: &str, help: &str) -> Failure {
    failure(FailureCode::InUse, format!("{what} is in use by {user}"), help)
}

fn volume_failure(error: &VolumeError) -> Failure {
    use std::error::Error;
    let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    let message = format!("volume {}: {}{source}", error.volume, error.what);
    Failure { code: FailureCode::System, message, help: error.help.clone() }
}
