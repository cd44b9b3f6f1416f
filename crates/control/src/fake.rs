//! A data plane without I/O: it keeps the books, holds to the rules, and speaks `protocol` over a
//! real socket. For tests, here and in the command line.

mod lus;

use crate::link::{Link, LinkError, SocketLink};
use crate::model::resolve::{DataPlaneSpec, NOT_KNOWN};
use crate::supervisor::Launcher;
use protocol::message::{
    Account, AdapterSpec, AdapterState, AdapterStatus, BlockSpec, ChannelStatus, CopyStatus,
    Failure, FailureCode, LuStatus, MINOR, Named, OpeningStatus, PoolSpec, PoolStatus, PvState,
    PvStatus, Reply, Request, Selection, Status, Tally, TallyReport, TallySpec, UnitSpec,
    UnitStatus, UplinkSpec, UplinkStatus, VERSION, VolumeKind, VolumeSpec, VolumeStatus,
};
use protocol::socket::Connection;
use protocol::stats::{AdapterStats, ChannelStats, LunStats, QueueStats, StatsRegion};
use spec::{Change, FileIdentity, change};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockWriteGuard};

/// The books of a data plane, and its rules.
#[derive(Debug, Clone, Default)]
pub struct Books {
    /// What is there.
    pub status: Status,
    /// Every request that was carried out, in order, without the asking ones.
    pub log: Vec<Request>,
    /// An adapter or volume that cannot be made.
    pub refuse: Option<String>,
    /// Descriptors that came with adapters.
    pub passed: Vec<String>,
    /// What stands in the place of files: the inode number of another one, or 0 where there is none. Elsewhere is file 1.
    pub files: BTreeMap<PathBuf, u64>,
    /// Files that another process has.
    pub locked: BTreeMap<PathBuf, String>,
    /// Adapters with something under way at a disk that hangs.
    pub hung: BTreeSet<String>,
    /// It knows the first messages only.
    pub earlier: bool,
    /// Copies of LUs from files and into files, by number; those that begin end at once but where they are to wait.
    pub copies: BTreeMap<u64, CopyStatus>,
    /// See there.
    pub holds_copies: bool,
    /// LUs are made that are asked for and not there.
    pub makes_lus: bool,
    /// What has passed its uplinks, whichever it is.
    pub tallies: Vec<Tally>,
    /// How often it was asked for all that it has, and how many objects it was asked for by name.
    pub asked: (u64, u64),
}

/// The PVs of a pool after it was told of these: they come and go at once. One that is away stays, and a pool has the failure groups that it was made with.
fn pvs_of(spec: &PoolSpec, now: &[PvStatus]) -> Result<Vec<PvStatus>, String> {
    let is_gone = |pv: &&PvStatus| !spec.pvs.contains(&pv.path);
    if let Some(pv) = now.iter().filter(is_gone).find(|pv| pv.state == PvState::Away) {
        return Err(format!("PV {} is away, and cannot be removed", pv.path.display()));
    }
    let new = |path: &std::path::PathBuf| PvStatus {
        path: path.clone(),
        uuid: path.display().to_string(),
        bytes: 1 << 40,
        free_bytes: 1 << 40,
        group: spec.group_of(path),
        tier: spec.tier_of(path),
        state: PvState::Active,
        ..PvStatus::default()
    };
    let known = |path: &std::path::PathBuf| now.iter().find(|pv| pv.path == *path).cloned();
    let pvs: Vec<_> =
        spec.pvs.iter().map(|path| known(path).unwrap_or_else(|| new(path))).collect();
    let mirrored = |pvs: &[PvStatus]| pvs.iter().any(|pv| pv.group != 0);
    if !now.is_empty() && mirrored(&pvs) && !mirrored(now) {
        return Err(format!("pool `{}` has one failure group", spec.name));
    }
    Ok(pvs)
}

/// An LU that is to go to another tier, where it cannot: of a mirrored pool they stay.
fn stays_in_its_tier(spec: &PoolSpec, lus: &[LuStatus]) -> Option<u32> {
    let elsewhere =
        |lu: &&LuStatus| spec.placed.iter().any(|it| it.lu == lu.number && it.tier != lu.tier);
    lus.iter().filter(|_| !spec.mirror.is_empty()).find(elsewhere).map(|lu| lu.number)
}

fn failure(code: FailureCode, message: impl Into<String>) -> Reply {
    Reply::Error(Failure { code, message: message.into(), help: None })
}

impl Books {
    /// A data plane with two channels.
    pub fn new() -> Books {
        let channel = |index| ChannelStatus { index, cpu: Some(index), queues: 0 };
        let status = Status {
            // Of no process: tests print it.
            pid: 4242,
            version: "0.0.0-fake".to_owned(),
            uptime_s: 7,
            channels: vec![channel(0), channel(1)],
            ..Status::default()
        };
        Books { status, ..Books::default() }
    }

    fn all(&mut self) -> Status {
        self.asked.0 += 1;
        self.status.clone()
    }

    /// What is named, and nothing else of its lists.
    pub fn part(&mut self, of: &Selection) -> Status {
        fn those<T: Named>(all: &[T], names: &[String]) -> Vec<T> {
            let named = |one: &&T| names.iter().any(|name| name == one.name());
            all.iter().filter(named).cloned().collect()
        }
        let lists = [&of.volumes, &of.units, &of.adapters, &of.uplinks, &of.pools];
        self.asked.1 += lists.iter().map(|names| names.len() as u64).sum::<u64>();
        let all = &self.status;
        Status {
            volumes: those(&all.volumes, &of.volumes),
            units: those(&all.units, &of.units),
            adapters: those(&all.adapters, &of.adapters),
            uplinks: those(&all.uplinks, &of.uplinks),
            pools: those(&all.pools, &of.pools),
            pid: all.pid,
            version: all.version.clone(),
            uptime_s: all.uptime_s,
            confinement: all.confinement.clone(),
            channels: all.channels.clone(),
            opening: all.opening.clone(),
        }
    }

    /// Carries a request out, or says which rule it breaks.
    pub fn handle(&mut self, request: &Request) -> Reply {
        let reply = match request.clone() {
            Request::PutVolume(spec) => self.put_volume(spec),
            Request::ResizeVolume { name, bytes, shrink } => self.resize(&name, bytes, shrink),
            Request::RemoveVolume { name, .. } => self.remove_volume(&name),
            Request::PutUnit(spec) => self.put_unit(spec),
            Request::RemoveUnit { name } => self.remove_unit(&name),
            Request::PutAdapter(spec) => self.put_adapter(spec),
            Request::RemoveAdapter { name } => self.remove_adapter(&name),
            Request::PutUplink(spec) => self.put_uplink(spec),
            Request::RemoveUplink { name } => self.remove_uplink(&name),
            Request::PutPool(spec) => self.put_pool(spec),
            Request::RemovePool { name } => self.remove_pool(&name),
            Request::Layout(spec) => return self.layout(&spec),
            Request::Copy(spec) => self.copy(&spec),
            Request::Tallies(TallySpec { clear, .. }) => {
                let tallies = self.tallies.clone();
                self.tallies.retain(|_| !clear);
                return Reply::Tallies(TallyReport { tallies });
            }
            _ => return failure(FailureCode::BadMessage, "not for the books"),
        };
        if reply == Reply::Done {
            self.log.push(request.clone());
        }
        reply
    }

    fn users(&self, volume: &str) -> bool {
        let unit = |status: &UnitStatus| status.spec.volume.as_deref() == Some(volume);
        self.status.adapters.iter().any(|adapter| adapter.spec.uses_volume(volume))
            || self.status.units.iter().any(unit)
    }

    fn sees(&self, unit: &str) -> bool {
        let seen = |adapter: &AdapterStatus| {
            let targets = adapter.spec.scsi().map_or(&[][..], |scsi| &scsi.targets);
            targets.iter().any(|target| target.luns.values().any(|name| name == unit))
        };
        self.status.adapters.iter().any(seen)
    }

    fn put_unit(&mut self, spec: UnitSpec) -> Reply {
        let volume = match &spec.volume {
            Some(name) => match self.status.volumes.iter().find(|v| v.spec.name == *name) {
                Some(volume) => Some(volume.bytes),
                None => return failure(FailureCode::NotFound, format!("no volume `{name}`")),
            },
            None => None,
        };
        if spec.naa == NOT_KNOWN {
            return failure(FailureCode::Invalid, format!("unit `{}` has no name", spec.name));
        }
        let seen = self.sees(&spec.name);
        let bytes = volume.unwrap_or(0);
        let medium = volume.is_some();
        if let Some(old) = self.status.units.iter_mut().find(|u| u.spec.name == spec.name) {
            if seen && change::unit(&old.spec, &spec) > Change::Live {
                return failure(FailureCode::InUse, format!("unit `{}` is in use", spec.name));
            }
            (old.spec, old.bytes, old.medium) = (spec, bytes, medium);
            return Reply::Done;
        }
        let (registrations, reservation) = (Vec::new(), None);
        self.status.units.push(UnitStatus { spec, bytes, medium, registrations, reservation });
        Reply::Done
    }

    fn put_uplink(&mut self, spec: UplinkSpec) -> Reply {
        let uplinks = &mut self.status.uplinks;
        match uplinks.iter_mut().find(|uplink| uplink.spec.name == spec.name) {
            Some(old) if change::uplink(&old.spec, &spec) == Change::Recreate => {
                return failure(FailureCode::InUse, format!("uplink `{}` is in use", spec.name));
            }
            Some(old) => old.spec = spec,
            None => uplinks.push(UplinkStatus {
                spec,
                channel_of_queue: vec![0, 1],
                failover: None,
                way: None,
                members: Vec::new(),
            }),
        }
        Reply::Done
    }

    fn put_pool(&mut self, spec: PoolSpec) -> Reply {
        let pools = &mut self.status.pools;
        let old = pools.iter_mut().find(|pool| pool.spec.name == spec.name);
        let is_other = |old: &&mut PoolStatus| old.spec.uuid != spec.uuid;
        if old.as_ref().is_some_and(is_other) {
            return failure(FailureCode::InUse, format!("pool `{}` is in use", spec.name));
        }
        let stays = old.as_ref().and_then(|old| stays_in_its_tier(&spec, &old.lus));
        if let Some(lu) = stays {
            let what = format!("LU {lu} does not go to another tier: its pool is mirrored");
            return failure(FailureCode::System, what);
        }
        match pvs_of(&spec, old.as_ref().map_or(&[], |old| &old.pvs)) {
            Err(what) => return failure(FailureCode::Invalid, what),
            Ok(pvs) => match old {
                Some(old) => (old.spec, old.pvs) = (spec, pvs),
                None => pools.push(PoolStatus {
                    spec,
                    pvs,
                    lus: Vec::new(),
                    snapshots: Vec::new(),
                    free_bytes: 1 << 40,
                    tiers: Vec::new(),
                    paused: 0,
                    pauses: 0,
                    trouble: None,
                    balance: None,
                    resync: None,
                    after_crash_bytes: None,
                    found: Default::default(),
                }),
            },
        }
        Reply::Done
    }

    fn remove_pool(&mut self, name: &str) -> Reply {
        let on = |volume: &VolumeStatus| matches!(&volume.spec.kind, VolumeKind::Lu(lu) if lu.pool == name);
        if self.status.volumes.iter().any(on) {
            return failure(FailureCode::InUse, format!("pool `{name}` is in use"));
        }
        let before = self.status.pools.len();
        self.status.pools.retain(|pool| pool.spec.name != name);
        if self.status.pools.len() == before {
            return failure(FailureCode::NotFound, format!("no pool `{name}`"));
        }
        Reply::Done
    }

    fn remove_uplink(&mut self, name: &str) -> Reply {
        let before = self.status.uplinks.len();
        self.status.uplinks.retain(|uplink| uplink.spec.name != name);
        if self.status.uplinks.len() == before {
            return failure(FailureCode::NotFound, format!("no uplink `{name}`"));
        }
        Reply::Done
    }

    fn remove_unit(&mut self, name: &str) -> Reply {
        if self.sees(name) {
            return failure(FailureCode::InUse, format!("unit `{name}` is in use"));
        }
        let before = self.status.units.len();
        self.status.units.retain(|unit| unit.spec.name != name);
        if self.status.units.len() == before {
            return failure(FailureCode::NotFound, format!("no unit `{name}`"));
        }
        Reply::Done
    }

    fn put_volume(&mut self, spec: VolumeSpec) -> Reply {
        if self.refuse.as_ref() == Some(&spec.name) {
            return failure(FailureCode::System, "it was told to refuse it");
        }
        if let VolumeKind::File(file) = &spec.kind
            && file.path.starts_with("/missing")
            && !file.create
        {
            return Reply::Error(Failure {
                code: FailureCode::System,
                message: format!("{}: no such file", file.path.display()),
                help: Some("set `create = true` to make it".to_owned()),
            });
        }
        self.status.opening.retain(|opening| opening.name != spec.name);
        if let Some(holder) = spec.kind.path().and_then(|path| self.locked.get(path)) {
            let (name, waits_for) = (spec.name.clone(), Some(holder.clone()));
            let message = format!("volume {name}: opening, waits for {holder}");
            self.status.opening.push(OpeningStatus { name, since_ms: 3000, waits_for });
            return failure(FailureCode::Opening, message);
        }
        let used = self.users(&spec.name);
        let disk = self.status.adapters.iter().any(|it| it.spec.uses_volume(&spec.name));
        let identity = match self.find_file(&spec) {
            Ok(identity) => identity,
            Err(message) => return failure(FailureCode::System, message),
        };
        let Some(old) = self.status.volumes.iter_mut().find(|v| v.spec.name == spec.name) else {
            let bytes = spec.bytes.unwrap_or(1 << 30);
            let (access, trouble) = ("direct".to_owned(), None);
            self.status.volumes.push(VolumeStatus {
                spec,
                bytes,
                access,
                trouble,
                lost: false,
                removed: false,
                identity,
            });
            return Reply::Done;
        };
        let live = change::volume(&old.spec, &spec) <= Change::Live && old.spec.bytes == spec.bytes;
        let moves = change::moves(&old.spec, &spec) && !disk;
        if used && !live && !moves {
            return failure(FailureCode::InUse, format!("volume `{}` is in use", spec.name));
        }
        old.bytes = spec.bytes.unwrap_or(old.bytes);
        old.spec = spec;
        Reply::Done
    }

    /// What is at a volume's place, made where it is to be.
    fn find_file(&mut self, spec: &VolumeSpec) -> Result<Option<FileIdentity>, String> {
        let Some(path) = spec.kind.path() else { return Ok(self.find_lu(spec)) };
        let (make, known) = (spec.kind.makes(), spec.kind.identity());
        let inode = self.files.entry(path.to_owned()).or_insert(1);
        if *inode == 0 && (!make || known.is_some()) {
            return Err(format!("opening {}: no such file", path.display()));
        }
        *inode = (*inode).max(1);
        let bytes = spec.bytes.unwrap_or(1 << 30);
        let found = FileIdentity::File { inode: Some(*inode), born_ns: None, bytes };
        match known.and_then(|known| known.differs(&found, spec.bytes)) {
            Some(how) => Err(format!("{}: {how}", path.display())),
            None => Ok(Some(found)),
        }
    }

    fn resize(&mut self, name: &str, bytes: u64, shrink: bool) -> Reply {
        match self.status.volumes.iter_mut().find(|volume| volume.spec.name == name) {
            None => failure(FailureCode::NotFound, format!("no volume `{name}`")),
            Some(volume) if bytes < volume.bytes && !shrink => {
                failure(FailureCode::Invalid, format!("volume `{name}` would shrink"))
            }
            Some(volume) => {
                volume.bytes = bytes;
                volume.spec.bytes = Some(bytes);
                Reply::Done
            }
        }
    }

    fn remove_volume(&mut self, name: &str) -> Reply {
        let adapters = self.status.adapters.iter().filter(|it| it.spec.uses_volume(name));
        if let Some(hung) = adapters.map(|it| &it.spec.name).find(|it| self.hung.contains(*it)) {
            return failure(FailureCode::Opening, format!("adapter {hung}: removed, waits"));
        }
        if self.users(name) {
            return failure(FailureCode::InUse, format!("volume `{name}` is in use"));
        }
        let count = |status: &Status| status.volumes.len() + status.opening.len();
        let before = count(&self.status);
        self.status.volumes.retain(|volume| volume.spec.name != name);
        self.status.opening.retain(|opening| opening.name != name);
        if count(&self.status) == before {
            return failure(FailureCode::NotFound, format!("no volume `{name}`"));
        }
        Reply::Done
    }

    fn put_adapter(&mut self, spec: AdapterSpec) -> Reply {
        if let Some(BlockSpec { volume: wanted, .. }) = spec.block()
            && !self.status.volumes.iter().any(|volume| volume.spec.name == *wanted)
        {
            return failure(FailureCode::NotFound, format!("no volume `{wanted}`"));
        }
        if self.refuse.as_ref() == Some(&spec.name) {
            return failure(FailureCode::System, "it was told to refuse it");
        }
        let units = spec.scsi().into_iter().flat_map(|scsi| &scsi.targets);
        for unit in units.flat_map(|target| target.luns.values()) {
            if !self.status.units.iter().any(|status| status.spec.name == *unit) {
                return failure(FailureCode::NotFound, format!("no unit `{unit}`"));
            }
        }
        let other = |a: &AdapterStatus| a.spec.name != spec.name && a.spec.socket == spec.socket;
        if self.status.adapters.iter().any(other) {
            return failure(FailureCode::InUse, format!("{} is in use", spec.socket.display()));
        }
        if let Some(old) = self.status.adapters.iter_mut().find(|a| a.spec.name == spec.name) {
            if change::adapter(&old.spec, &spec) == Change::Recreate {
                return failure(FailureCode::InUse, "what it was made with is fixed");
            }
            if self.hung.contains(&spec.name) && *old.spec != spec {
                let what = "changes, waits for what its disks have under way";
                return failure(FailureCode::Opening, format!("adapter {}: {what}", spec.name));
            }
            old.spec = spec.into();
            return Reply::Done;
        }
        self.status.adapters.push(AdapterStatus {
            spec: spec.into(),
            state: AdapterState::Listening,
            reason: None,
            hidden: None,
            client_queues: 0,
            client_num_io_queues: 0,
            channel_of_queue: Vec::new(),
            connections: 0,
            visits: Vec::new(),
            features: Vec::new(),
            client: None,
            becoming: false,
        });
        Reply::Done
    }

    fn remove_adapter(&mut self, name: &str) -> Reply {
        if self.hung.contains(name) {
            let what = "removed, waits for what its disks have under way";
            return failure(FailureCode::Opening, format!("adapter {name}: {what}"));
        }
        let before = self.status.adapters.len();
        self.status.adapters.retain(|adapter| adapter.spec.name != name);
        if self.status.adapters.len() == before {
            return failure(FailureCode::NotFound, format!("no adapter `{name}`"));
        }
        Reply::Done
    }
}

/// A fake data plane on a socket. Dropping the handle leaves it running, as a real one would be.
#[derive(Clone)]
pub struct FakeDataPlane {
    socket: PathBuf,
    books: Arc<Mutex<Books>>,
    stats: Arc<StatsRegion>,
    /// Connections, to cut them.
    streams: Arc<Mutex<Vec<UnixStream>>>,
    /// Held by whoever wants no answers.
    silence: Arc<RwLock<()>>,
    stopped: Arc<std::sync::atomic::AtomicBool>,
}

/// As long as this lives, a fake data plane answers nothing.
pub struct Silence<'a> {
    _held: RwLockWriteGuard<'a, ()>,
}

impl FakeDataPlane {
    /// Listens and serves, on threads of its own.
    pub fn start(socket: &Path) -> io::Result<FakeDataPlane> {
        let _ = std::fs::remove_file(socket);
        let listener = UnixListener::bind(socket)?;
        let stats = StatsRegion::create(2).map_err(io::Error::other)?;
        let fake = FakeDataPlane {
            socket: socket.to_owned(),
            books: Arc::new(Mutex::new(Books::new())),
            stats: Arc::new(stats),
            streams: Arc::default(),
            silence: Arc::default(),
            stopped: Arc::default(),
        };
        let accept = fake.clone();
        std::thread::Builder::new().name("fake-accept".to_owned()).spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if accept.stopped.load(std::sync::atomic::Ordering::SeqCst) {
                    break;
                }
                let serve = accept.clone();
                std::thread::spawn(move || serve.serve(stream));
            }
        })?;
        Ok(fake)
    }

    /// The books, to look or to change.
    pub fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether it is this one, and not one that was started later.
    pub fn is(&self, other: &FakeDataPlane) -> bool {
        Arc::ptr_eq(&self.books, &other.books)
    }

    /// It takes requests and answers none, as one that is stopped, for as long as this is held.
    pub fn silence(&self) -> Silence<'_> {
        Silence { _held: self.silence.write().unwrap_or_else(std::sync::PoisonError::into_inner) }
    }

    /// Counters of a queue of an adapter, to count in.
    pub fn queue_stats(&self, adapter: &str, queue: u16) -> Option<QueueStats> {
        self.stats.queue(adapter, queue)
    }

    /// The high-water mark of an adapter, to be set.
    pub fn adapter_stats(&self, adapter: &str) -> Option<AdapterStats> {
        self.stats.adapter(adapter)
    }

    /// What a SCSI adapter counts, it counts for its port.
    fn map(&self, spec: &AdapterSpec) {
        let Some(scsi) = spec.scsi() else { return };
        if let Some(adapter) = self.stats.adapter(&spec.name) {
            let port = scsi.port.as_ref().map(|port| port.name.as_str());
            self.stats.map_adapter(adapter, port);
        }
    }

    /// Counters of a LUN of an adapter on a channel, to count in.
    pub fn lun_stats(&self, adapter: &str, place: (u8, u16), channel: u32) -> Option<LunStats> {
        self.stats.lun(adapter, place.0, place.1, channel)
    }

    /// Counters of a channel, to count in.
    pub fn channel_stats(&self, channel: usize) -> ChannelStats {
        self.stats.channel(channel)
    }

    /// Dies: nobody listens any more and every connection is cut.
    pub fn kill(&self) {
        self.close();
        self.cut();
    }

    /// From now on it is one of an earlier version, which has lost its connections.
    pub fn become_earlier(&self) {
        self.books().earlier = true;
        self.cut();
    }

    fn cut(&self) {
        for stream in self.streams().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Lets go of the socket. The next one may listen there as soon as this returns.
    fn close(&self) {
        self.stopped.store(true, std::sync::atomic::Ordering::SeqCst);
        // Wakes the accepting thread, which then ends.
        drop(UnixStream::connect(&self.socket));
        let _ = std::fs::remove_file(&self.socket);
    }

    fn streams(&self) -> MutexGuard<'_, Vec<UnixStream>> {
        self.streams.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn serve(&self, stream: UnixStream) {
        if let Ok(copy) = stream.try_clone() {
            self.streams().push(copy);
        }
        let mut connection = Connection::new(stream);
        let mut told = Account::default();
        while let Ok((request, fds)) = connection.receive::<Request>() {
            drop(self.silence.read());
            let mut passed: Vec<BorrowedFd<'_>> = Vec::new();
            let reply = match &request {
                Request::Hello { .. } => {
                    let minor = if self.books().earlier { 0 } else { MINOR };
                    Reply::Hello { version: VERSION, minor, pid: std::process::id() }
                }
                Request::Status => Reply::Status(self.books().all()),
                Request::Changes => told.tell(self.books().all()),
                Request::ChangesOf(of) => {
                    let part = self.books().part(of);
                    told.tell_of(of.clone(), part)
                }
                Request::Stats => {
                    passed.push(self.stats.file().as_fd());
                    Reply::Stats
                }
                Request::Shutdown => {
                    self.close();
                    let _ = connection.send(&Reply::Done, &[]);
                    self.cut();
                    return;
                }
                other => {
                    let mut books = self.books();
                    match other {
                        Request::PutAdapter(spec) if !fds.is_empty() => {
                            books.passed.push(spec.name.clone());
                        }
                        Request::Copy(spec) if !fds.is_empty() => {
                            books.passed.push(format!("LU {}", spec.lu));
                        }
                        _ => {}
                    }
                    let reply = books.handle(other);
                    if let (Request::PutAdapter(spec), Reply::Done) = (other, &reply) {
                        self.map(spec);
                    }
                    reply
                }
            };
            if connection.send(&reply, &passed).is_err() {
                return;
            }
        }
    }
}

/// "Starts" fakes where a real launcher starts processes. Clones share the fake that runs now.
#[derive(Clone)]
pub struct FakeLauncher {
    socket: PathBuf,
    current: Arc<Mutex<Option<FakeDataPlane>>>,
    /// It does not start with so many channels.
    pub refuse: Arc<Mutex<Option<u32>>>,
}

impl FakeLauncher {
    /// For a socket.
    pub fn new(socket: PathBuf) -> FakeLauncher {
        FakeLauncher { socket, current: Arc::default(), refuse: Arc::default() }
    }

    /// The data plane that was started last.
    pub fn current(&self) -> Option<FakeDataPlane> {
        self.current.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

impl Launcher for FakeLauncher {
    fn connect(&mut self) -> Result<Box<dyn Link>, LinkError> {
        Ok(Box::new(SocketLink::connect(&self.socket)?))
    }

    fn launch(&mut self, spec: &DataPlaneSpec) -> io::Result<Box<dyn Link>> {
        let refused = *self.refuse.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if refused == Some(spec.channels) {
            return Err(io::Error::other("it was told not to start with these"));
        }
        let fake = FakeDataPlane::start(&self.socket)?;
        let mut current = self.current.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(before) = &*current {
            let (files, locked) = {
                let before = before.books();
                (before.files.clone(), before.locked.clone())
            };
            let mut books = fake.books();
            (books.files, books.locked) = (files, locked);
        }
        *current = Some(fake);
        drop(current);
        Ok(Box::new(SocketLink::connect(&self.socket).map_err(io::Error::other)?))
    }

    fn started_with(&self) -> Option<DataPlaneSpec> {
        None
    }

    fn reap(&mut self) -> Option<String> {
        None
    }

    fn await_end(&mut self, _kill: bool) -> bool {
        true
    }

    fn socket(&self) -> &Path {
        &self.socket
    }
}
