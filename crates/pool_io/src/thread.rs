//! The pools' thread, and who talks to it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use block::{Files, OpenEvent, Volume, VolumeError, VolumeSpec, open_part};
use memory::clock;
use pool::{Fault, GROUP_MAX, Group, Reply, Request};
use rustix::fs::OFlags;
use spec::{FileIdentity, FileSpec, FullSpec, LuSpec, PoolSpec};

use crate::PoolError;
use crate::engine::Engine;
use crate::open::{erase, of_pv, open, parse};
use crate::post::{Bell, Inbox, Mail, Message, Parting, ReplyTo, Wanted};
use crate::remote::for_caller;
use crate::shadow::Owner;
use crate::table::{OpenPv, Progress, PvView, Shared, Table, locked};
use crate::turns::{self, Thread};
use crate::volume::{LuVolume, chunks_for, size};
use crate::work::{For, Work, taken_over};

/// How often it is looked whether channels are done, while they are waited for.
const LOOK: Duration = Duration::from_millis(1);
/// How long the lock of a PV is waited for: an earlier process of this server may have operations under way.
const LOCK_WAIT_MS: u64 = 5000;
/// The slot of this server in each pool: one server has a pool.
const SLOT: u8 = 0;

/// The thread that serves the pools of a process.
pub struct Pools {
    inbox: Arc<Inbox>,
    /// The number of the next pool.
    next: AtomicU32,
    thread: Mutex<Option<Thread>>,
}

/// A pool that is open. It closes with [`PoolHandle::close`].
#[derive(Clone)]
pub struct PoolHandle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) inbox: Arc<Inbox>,
}

/// What the thread needs to open a pool.
pub(crate) struct Opening {
    pub(crate) spec: PoolSpec,
    pub(crate) owner: Owner,
    pub(crate) candidates: (Vec<Candidate>, Vec<NotThere>),
    pub(crate) shadow: File,
}

/// What should be a PV of the pool, and cannot be opened, read or written.
#[derive(Clone)]
pub(crate) struct NotThere {
    pub(crate) path: PathBuf,
    pub(crate) error: PoolError,
}

/// Where a PV belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// Its tier.
    pub tier: u8,
    /// Its failure group.
    pub group: u8,
}

/// A failure group of the first tier.
impl From<u8> for At {
    fn from(group: u8) -> At {
        At { tier: 0, group }
    }
}

/// What may be a PV of the pool.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) pv: OpenPv,
    /// It is known to be.
    pub(crate) must: bool,
    /// Where it belongs, if it is new.
    pub(crate) at: At,
    /// Why it cannot be used, although it can be read.
    pub(crate) unfit: Option<PoolError>,
}

impl Pools {
    /// Starts the thread. Its io_uring is made here.
    ///
    /// # Errors
    ///
    /// The system has no ring, eventfd or thread for it.
    pub fn start() -> std::io::Result<Pools> {
        let bell = Arc::new(Bell::new()?);
        let inbox = Arc::new(Inbox::new(Arc::clone(&bell)));
        let mail = Mail(Arc::clone(&inbox));
        let begin = move || Ok(Running::new(Engine::new(bell)?, mail));
        let thread = turns::spawn("pools", begin, Running::turn)?;
        Ok(Pools { inbox, next: AtomicU32::new(1), thread: Mutex::new(Some(thread)) })
    }

    /// Opens a pool, made first where that is wanted. Waits for its PVs' locks, of which `event` is told who has one, and for the PVs themselves; no other pool does.
    ///
    /// # Errors
    ///
    /// Names the PV and what mends it.
    pub fn open(
        &self,
        files: &dyn Files,
        server: Option<&str>,
        spec: &PoolSpec,
        event: &mut dyn FnMut(OpenEvent),
    ) -> Result<PoolHandle, PoolError> {
        let uuid = |text: &str| {
            parse(text).ok_or_else(|| {
                PoolError::new(format!("{text} is no UUID"), "use 32 hexadecimal digits")
            })
        };
        let boot = files.text("/proc/sys/kernel/random/boot_id".as_ref());
        let boot = boot.ok().and_then(|text| parse(text.trim())).ok_or_else(|| {
            PoolError::new("the host does not say which boot this is", "mount /proc")
        })?;
        let owner = Owner { pool: uuid(&spec.uuid)?, server: uuid(&spec.server)?, boot };
        let (mut pvs, mut absent) = (Vec::new(), Vec::new());
        for path in &spec.pvs {
            let must = spec.fresh || !spec.joining.contains(path);
            let at = At { tier: spec.tier_of(path), group: spec.group_of(path) };
            match try_pv(files, server, &spec.name, path, false, event) {
                Ok(pv) => pvs.push(Candidate { pv, must, at, unfit: None }),
                Err(error) if spec.fresh => return Err(of_pv(path, error)),
                Err(error) if must && error.is_fenced() => return Err(taken_over()),
                // The others say whether it can be done without.
                Err(error) if must => {
                    let error = of_pv(path, error);
                    absent.push(NotThere { path: path.clone(), error });
                }
                // Whoever adds it says so.
                Err(_) => {}
            }
        }
        for path in spec.leaving.iter().filter(|path| !spec.pvs.contains(path)) {
            // It may be in another's hands by now. Where the pool has something on it, it is missing.
            let opened = open_pv(files, server, &spec.name, path, false, event);
            let new = |pv| Candidate { pv, must: false, at: At::default(), unfit: None };
            pvs.extend(opened.ok().map(new));
        }
        let shadow = files
            .open(&spec.shadow, OFlags::RDWR)
            .or_else(|_| files.open(&spec.shadow, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL));
        let shadow = shadow.map_err(|error| {
            let what = format!("opening {}: {error}", spec.shadow.display());
            PoolError::new(what, "let the server write there")
        })?;
        let shared = loop {
            let candidates = (pvs.clone(), absent.clone());
            let shadow = shadow.try_clone().map_err(|error| {
                let what = format!("opening {}: {error}", spec.shadow.display());
                PoolError::new(what, "raise the limit of open files (LimitNOFILE)")
            })?;
            let opening = Opening { spec: spec.clone(), owner, candidates, shadow };
            match self.try_to_open(opening)? {
                Ok(shared) => break shared,
                Err(path) => {
                    let what = format!("PV {} cannot be written", path.display());
                    let error = PoolError::new(what, "see whether the device is in order");
                    let mut fits = pvs.iter_mut().filter(|one| one.unfit.is_none());
                    match fits.find(|one| one.pv.path == path) {
                        Some(candidate) => candidate.unfit = Some(error),
                        None => return Err(error),
                    }
                }
            }
        };
        let handle = PoolHandle { shared, inbox: Arc::clone(&self.inbox) };
        // What could not be used is used when somebody asks for it, who is told why not.
        let _ = handle.grow_pvs();
        Ok(handle)
    }

    /// Opens a pool with these PVs. One on which it failed, and without which it may open, is told.
    fn try_to_open(&self, opening: Opening) -> Result<Result<Arc<Shared>, PathBuf>, PoolError> {
        let number = self.next.fetch_add(1, Relaxed);
        let (work, gone) = open(&self.inbox, number, opening)?;
        let work = Box::new(work);
        let shared = match ask(&self.inbox, |reply| Message::Serve(work, reply))? {
            Ok(shared) => shared,
            Err((_, Some(path))) => return Ok(Err(path)),
            Err((error, None)) => return Err(error),
        };
        gone.iter().for_each(|pv| erase(&self.inbox, pv));
        Ok(Ok(shared))
    }

    /// Ends the thread, with all pools that are still open.
    pub fn stop(&self) {
        self.inbox.post(Message::Exit);
        if let Some(thread) = locked(&self.thread).take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Pools {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn ask<T>(
    inbox: &Inbox,
    message: impl FnOnce(ReplyTo<T>) -> Message,
) -> Result<T, PoolError> {
    let (reply, answer) = sync_channel(1);
    inbox.post(message(reply));
    let ended = || PoolError::new("the pools' thread has ended", "restart the data plane");
    turns::wait(&answer).ok_or_else(ended)
}

/// What the core of a pool says to a request.
pub(crate) fn ask_core(
    inbox: &Inbox,
    shared: &Arc<Shared>,
    request: Request,
) -> Result<Result<Reply, Fault>, PoolError> {
    ask(inbox, |reply| Message::Core(Arc::clone(shared), request, reply))
}

/// Opens a PV, and has its lock.
fn try_pv(
    files: &dyn Files,
    server: Option<&str>,
    pool: &str,
    path: &Path,
    returns: bool,
    event: &mut dyn FnMut(OpenEvent),
) -> Result<OpenPv, VolumeError> {
    // It is tried again soon by whoever wants it; meanwhile others have their turn.
    let file = FileSpec { lock_wait_ms: LOCK_WAIT_MS, ..FileSpec::new(path) };
    let volume = VolumeSpec::new(pool, file.clone());
    let opened = open_part(files, server, &volume, &file, SLOT, returns, event)?;
    Ok(OpenPv::new(Arc::new(opened), path))
}

/// The same, for who is told of it as of a pool's.
pub(crate) fn open_pv(
    files: &dyn Files,
    server: Option<&str>,
    pool: &str,
    path: &Path,
    returns: bool,
    event: &mut dyn FnMut(OpenEvent),
) -> Result<OpenPv, PoolError> {
    try_pv(files, server, pool, path, returns, event).map_err(|error| of_pv(path, error))
}

impl PoolHandle {
    /// Lets an LU be in a tier: what it has elsewhere moves there by itself, also after the pool was opened again.
    ///
    /// # Errors
    ///
    /// It has no room there, or shares what it holds with another LU.
    pub fn set_tier(&self, lu: u32, tier: u8) -> Result<(), PoolError> {
        self.core(Request::SetTier { lu, tier })?.map(drop).map_err(|fault| {
            let help = match fault {
                Fault::NoSpace => "add a PV to that tier, or remove LUs from it",
                Fault::SharesTier | Fault::MirrorTier => "until then leave it where it is",
                _ => "see `trunkline pool show`",
            };
            PoolError::new(format!("LU {lu} does not go to another tier: {fault}"), help)
        })
    }

    /// What holds from now on where the pool is full, or nearly so, also for what waits by now. The LUs that get no more set aside than they had, since there is no room: none, if that is not `asked`
    /// for but was before the pool was opened: so much is set aside then as there is, and the rest as it comes.
    ///
    /// # Errors
    ///
    /// The pools' thread has ended.
    pub fn when_full(&self, what: &FullSpec, asked: bool) -> Result<Vec<u32>, PoolError> {
        let (shared, what) = (Arc::clone(&self.shared), what.clone());
        if !asked {
            self.inbox.post(Message::WhenFull(shared, what, None));
            return Ok(Vec::new());
        }
        ask(&self.inbox, |reply| Message::WhenFull(shared, what, Some(reply)))
    }

    /// A PV that is to leave stays.
    ///
    /// # Errors
    ///
    /// It is too late.
    pub fn keep_pv(&self, pv: &PvView) -> Result<(), PoolError> {
        self.core(Request::KeepPv { pv: pv.space.pv })?.map(drop).map_err(|fault| {
            let what = format!("PV {} does not stay: {fault}", pv.path.display());
            PoolError::new(what, "add it again when it is removed")
        })
    }

    /// PVs that are gone since it was opened. Lanes of channels may still have one, until they are made anew.
    #[must_use]
    pub fn gone(&self) -> u64 {
        self.shared.gone.load(SeqCst)
    }

    /// What the core says to a request.
    pub(crate) fn core(&self, request: Request) -> Result<Result<Reply, Fault>, PoolError> {
        ask_core(&self.inbox, &self.shared, request)
    }

    /// An LU of the pool, which may be made first.
    pub(crate) fn lu(&self, wanted: Wanted) -> Result<Result<Arc<Table>, Fault>, PoolError> {
        let shared = Arc::clone(&self.shared);
        ask(&self.inbox, |reply| Message::Lu(shared, wanted, reply))
    }

    /// An LU as a volume, made first where that is wanted, and what it is known by.
    ///
    /// # Errors
    ///
    /// Names what is wrong with the specification or the pool, and what mends it.
    pub fn open_lu(
        &self,
        spec: &VolumeSpec,
        lu: &LuSpec,
    ) -> Result<(Arc<dyn Volume>, FileIdentity), VolumeError> {
        let fail = |what: String, help: &str| VolumeError {
            volume: spec.name.clone(),
            what,
            help: Some(help.to_owned()),
            source: None,
        };
        let pool = self.shared.uuid.to_string();
        let wanted = match &lu.identity {
            Some(FileIdentity::Lu { pool: known, number, .. }) if *known == pool => {
                Wanted::Number(*number)
            }
            None if lu.fresh => match (lu.snapshot, spec.bytes.filter(|bytes| *bytes > 0)) {
                (Some(snapshot), _) => Wanted::Clone { snapshot, asked: lu.asked },
                (None, Some(bytes)) => {
                    let (chunks, tier) = (chunks_for(bytes), lu.tier.unwrap_or(0));
                    let (thick, sums) = (lu.thick, lu.checksums);
                    Wanted::New { chunks, thick, sums, tier, asked: lu.asked }
                }
                (None, None) => return Err(fail("has no size".to_owned(), "set size")),
            },
            known => {
                let which = known.as_ref().map_or_else(
                    || "was never made in it".to_owned(),
                    |known| format!("was made elsewhere: {known:?}"),
                );
                let what = format!("is not in pool {}: it {which}", self.shared.name);
                return Err(fail(what, "remove it, and make a new one"));
            }
        };
        let opened = self.lu(wanted).map_err(|error| fail(error.what, "restart the data plane"))?;
        let table = opened.map_err(|fault| match fault {
            Fault::NoSuchLu => fail(
                format!("is not in pool {} any more", self.shared.name),
                "remove it, and make a new one",
            ),
            Fault::NoSnapshot => fail(
                "the snapshot of which it is to be made is not there, not made yet, or of several LUs".to_owned(),
                "see `trunkline snapshot list`; of several LUs say which, as in NAME:VOLUME",
            ),
            fault => {
                fail(format!("in pool {}: {fault}", self.shared.name), "see `trunkline pool show`")
            }
        })?;
        let number = table.number;
        let chunks = spec.bytes.map_or(0, chunks_for);
        if lu.snapshot.is_some() && chunks > table.chunks() {
            // A clone is made as large as its snapshot. Whoever wants it larger finds it so as soon as it is there, or not at all.
            let grown = self.core(Request::Resize { lu: number, chunks });
            let grown = grown.map_err(|error| fail(error.what, "restart the data plane"))?;
            if let Err(fault) = grown {
                let _ = self.core(Request::Delete { lu: number });
                let what = format!("cannot be that much larger than its snapshot: {fault}");
                return Err(fail(what, "choose a smaller size, or see `trunkline pool show`"));
            }
        }
        let bytes = size(&table, spec.bytes, lu.identity.as_ref());
        let volume =
            LuVolume::new(spec, Arc::clone(&self.shared), table, Arc::clone(&self.inbox), bytes);
        Ok((block::wrapped(spec, Arc::new(volume))?, FileIdentity::Lu { pool, number, bytes }))
    }

    /// Removes LUs that are there. What they had is given out again, and reads as zeros.
    ///
    /// # Errors
    ///
    /// When one is open, or the pool can write nothing.
    pub fn remove_lus(&self, numbers: &[u32]) -> Result<(), PoolError> {
        let there = self.shared.view().lus;
        for number in numbers.iter().filter(|number| there.iter().any(|lu| lu.lu == **number)) {
            match self.core(Request::Delete { lu: *number })? {
                Ok(_) | Err(Fault::NoSuchLu) => {}
                Err(fault) => {
                    let what = format!("LU {number} cannot be removed: {fault}");
                    return Err(PoolError::new(what, "see `trunkline pool show`"));
                }
            }
        }
        Ok(())
    }

    /// Makes snapshots of LUs, all of one moment; their numbers, in the order of the LUs. What was answered before is in them, and on the PVs. Whoever asks again
    /// with the same number, and it is not 0, is told of those that were made then, whatever became of the process meanwhile.
    ///
    /// # Errors
    ///
    /// One of the LUs is not there, or there are too many.
    pub fn snapshot(&self, lus: &[u32], asked: u64) -> Result<Vec<u32>, PoolError> {
        if lus.len() > GROUP_MAX {
            let what = format!("a snapshot of {} LUs at once", lus.len());
            return Err(PoolError::new(what, format!("name {GROUP_MAX} at most")));
        }
        match self.core(Request::Snapshot { lus: Group::of(lus), asked })? {
            Ok(Reply::Snapshots(made)) => Ok(made.iter().collect()),
            Ok(_) => Err(PoolError::new("no snapshot was made", "try again")),
            Err(fault) => Err(PoolError::new(
                format!("the snapshot cannot be made: {fault}"),
                "see `trunkline pool show`",
            )),
        }
    }

    /// The snapshots of these LUs that were made when somebody asked for them under this number, with their LUs.
    ///
    /// # Errors
    ///
    /// The pool cannot write any more.
    pub fn snapshots_made(&self, lus: &[u32], asked: u64) -> Result<Vec<(u32, u32)>, PoolError> {
        let mut made = Vec::new();
        for lu in lus {
            match self.core(Request::FindSnapshot { lu: *lu, asked })? {
                Ok(Reply::Snapshots(found)) => made.extend(found.iter().map(|made| (*lu, made))),
                Ok(_) => {}
                Err(fault) => {
                    let what = format!("it is not known which snapshots there are: {fault}");
                    return Err(PoolError::new(what, "see `trunkline pool show`"));
                }
            }
        }
        Ok(made)
    }

    /// Each of these LUs holds what a snapshot of it holds from now on, all from the same moment, and what was written since is gone. What clients know of them, in their memory, is of
    /// before; so it is done under them only where that is wanted.
    ///
    /// # Errors
    ///
    /// One is no snapshot of its LU, or clients use that.
    pub fn rollback(&self, lus: &[(u32, u32)], under_clients: bool) -> Result<(), PoolError> {
        if lus.len() > GROUP_MAX {
            let what = format!("a rollback of {} LUs at once", lus.len());
            return Err(PoolError::new(what, format!("name {GROUP_MAX} at most")));
        }
        for (lu, _) in lus {
            let lanes = self.lu(Wanted::Number(*lu))?.map_or(0, |table| table.lanes.load(SeqCst));
            if lanes > 0 && !under_clients {
                let what = if lus.len() > 1 { format!("LU {lu}") } else { "it".to_owned() };
                let what =
                    format!("{what} is in use: clients would go on with what they remember of it");
                return Err(PoolError::new(what, "stop its clients, or use --force"));
            }
            self.is_not_copied(*lu)?;
        }
        let (lus, snapshots): (Vec<u32>, Vec<u32>) = lus.iter().copied().unzip();
        let request = Request::Rollback { lus: Group::of(&lus), snapshots: Group::of(&snapshots) };
        self.core(request)?.map(drop).map_err(|fault| {
            let what = format!("it cannot be rolled back: {fault}");
            PoolError::new(what, "see `trunkline snapshot list`")
        })
    }

    /// Begins to have all that an LU holds in its own space, so that it shares nothing; or says how far that is, or that it is done: none. It goes on by itself. What went wrong is told to who asks with the
    /// number under which it began.
    ///
    /// # Errors
    ///
    /// Others need what the LU has, or there is no space.
    pub fn detach(&self, lu: u32, id: u64) -> Result<Option<Progress>, PoolError> {
        self.part(Parting { lu, id, stops: false })
    }

    /// Has an LU that is being detached go on sharing; says how far it is until that holds.
    ///
    /// # Errors
    ///
    /// The pool can write nothing any more.
    pub fn stop_detach(&self, lu: u32) -> Result<Option<Progress>, PoolError> {
        self.part(Parting { lu, id: 0, stops: true })
    }

    fn part(&self, parting: Parting) -> Result<Option<Progress>, PoolError> {
        let shared = Arc::clone(&self.shared);
        let done = ask(&self.inbox, |reply| Message::Part(shared, parting, reply))?;
        done.map_err(|fault| {
            let help = match fault {
                Fault::NoSpace => "add a PV, or remove what is not needed",
                _ => "see `trunkline snapshot list`",
            };
            PoolError::new(format!("the LU cannot be detached: {fault}"), help)
        })
    }

    /// The size of an LU that is open, which ends somewhere in its last chunk.
    pub fn bytes(&self, lu: u32) -> Option<u64> {
        let table = self.lu(Wanted::Number(lu)).ok()?.ok()?;
        let size = table.size.load(Relaxed);
        Some(if size == 0 { table.bytes() } else { size })
    }

    /// Closes it, when what is under way is done. Its LUs' volumes must be gone by then.
    pub fn close(self) {
        self.close_copies();
        let shared = self.shared;
        shared.closes();
        // Without the thread it is closed.
        let _ = ask(&self.inbox, |reply| Message::Close(shared, reply));
    }
}

/// What the thread has.
struct Running {
    works: BTreeMap<u32, Work>,
    /// Lanes to be given up when nothing is under way on them.
    retired: Vec<u16>,
    engine: Engine<For>,
    /// Whoever waits goes on when all else is gone.
    mail: Mail,
}

impl Running {
    fn new(engine: Engine<For>, mail: Mail) -> Running {
        Running { works: BTreeMap::new(), retired: Vec::new(), engine, mail }
    }

    /// Sleeps until something happens, and does what follows. False: it is to end.
    fn turn(&mut self) -> bool {
        let Running { engine, mail, works, retired } = self;
        let soon = works.values().any(Work::waits_for_channels);
        let due = works.values().filter_map(Work::due).min();
        let due = due.map(|due| due.saturating_duration_since(clock::instant()));
        engine.wait(if soon { Some(LOOK) } else { due });
        let messages = mail.take();
        // Who asked after an answer finds what was answered.
        works.values_mut().for_each(Work::learn_taken);
        for message in messages {
            match message {
                Message::Attach(pv, reply) => drop(reply.send(engine.join(&pv))),
                Message::Detach(lane) => retired.push(lane),
                Message::Io { lane, op, offset, data, reply } => {
                    for_caller(engine, (lane, op, offset), data, reply);
                }
                Message::Serve(mut work, reply) => {
                    work.opening = Some(reply);
                    works.insert(work.number, *work);
                }
                Message::Ask(of, ask) => {
                    if let Some(work) = work_of(works, &of) {
                        work.ask(ask);
                    }
                }
                Message::Taken(of, lu) => {
                    if let Some(work) = work_of(works, &of) {
                        work.offer(lu);
                    }
                }
                Message::Fenced(of) => {
                    let _ = work_of(works, &of).map(Work::fence);
                }
                Message::WhenFull(of, what, reply) => {
                    if let Some(work) = work_of(works, &of) {
                        work.when_full(&what, reply);
                    }
                }
                Message::OfCopy(of, what) => {
                    let _ = work_of(works, &of).map(|work| work.of_copy(what));
                }
                Message::Core(of, request, reply) => {
                    if let Some(work) = work_of(works, &of) {
                        work.core(request, reply);
                    }
                }
                Message::Lu(of, wanted, reply) => {
                    if let Some(work) = work_of(works, &of) {
                        work.lu(wanted, reply);
                    }
                }
                Message::Superblock(of, reply) => {
                    if let Some(work) = work_of(works, &of) {
                        let _ = reply.send(work.superblock());
                    }
                }
                Message::Join(of, new, reply) => match work_of(works, &of) {
                    Some(work) => work.join(engine, new, reply),
                    None => retired.push(new.1),
                },
                Message::Room(of, (pv, chunks), reply) => {
                    if let Some(work) = work_of(works, &of) {
                        let _ = reply.send(work.make_room(pv, chunks));
                    }
                }
                Message::LetGo(of, pv, reply) => {
                    if let Some(work) = work_of(works, &of) {
                        let _ = reply.send(work.let_go_of(engine, pv));
                    }
                }
                Message::Return(of, number, pv, reply) => match work_of(works, &of) {
                    Some(work) => work.return_pv(engine, number, pv, reply),
                    None => retired.push(pv.1),
                },
                Message::Leave(of, (pv, promised), reply) => {
                    if let Some(work) = work_of(works, &of) {
                        work.leave(pv, promised, reply);
                    }
                }
                Message::Part(of, parting, reply) => {
                    if let Some(work) = work_of(works, &of) {
                        let _ = reply.send(work.part(parting));
                    }
                }
                Message::Scrub(of, scrubs, reply) => {
                    if let Some(work) = work_of(works, &of) {
                        let _ = reply.send(work.scrub(scrubs));
                    }
                }
                Message::Layout(of, lu, reply) => {
                    if let Some(work) = work_of(works, &of) {
                        let _ = reply.send(work.layout(lu));
                    }
                }
                Message::Close(of, reply) => {
                    if let Some(work) = work_of(works, &of) {
                        work.close(reply);
                    }
                }
                Message::Exit => return false,
            }
        }
        while let Some(mut arrived) = engine.next() {
            match std::mem::replace(&mut arrived.what_for, For::Nobody) {
                For::Effect { pool, op, pv, then, paced } => {
                    if let Some(work) = works.get_mut(&pool) {
                        work.arrived(engine, (op, pv, then, paced), arrived);
                    }
                }
                For::Caller(mut data, reply) => {
                    if arrived.result.is_ok() && !data.is_empty() {
                        arrived.buf.read(0, &mut data);
                    }
                    arrived.buffer.into_iter().for_each(|buffer| engine.give_back(buffer));
                    let _ = reply.send((arrived.result, data));
                }
                For::Late { pool, pv } => {
                    if let (Some(work), Some(buffer)) = (works.get_mut(&pool), &arrived.buffer) {
                        work.pay(pv, buffer, false);
                    }
                    arrived.buffer.into_iter().for_each(|buffer| engine.give_back(buffer));
                }
                For::Nobody => {}
            }
        }
        works.values_mut().for_each(|work| work.pump(engine));
        let over = works.iter_mut().filter_map(|(number, work)| {
            let closed = work.closing.is_some() && work.rests();
            (work.opened() == Some(false) || closed).then_some(*number)
        });
        for number in over.collect::<Vec<_>>() {
            if let Some(mut work) = works.remove(&number) {
                // Nobody waits for what never came back.
                retired.extend(work.lanes.drain(..).flatten());
                engine.leave_idle(retired);
                let (opening, closing) = (work.opening.take(), work.closing.take());
                let failed = (work.not_served(), work.failed_on());
                // The PVs' locks go before whoever waits goes on.
                drop(work);
                let _ = opening.map(|reply| reply.send(Err(failed)));
                let _ = closing.map(|reply| reply.send(()));
            }
        }
        engine.leave_idle(retired);
        true
    }
}

/// The work on a pool.
fn work_of<'a>(works: &'a mut BTreeMap<u32, Work>, of: &Arc<Shared>) -> Option<&'a mut Work> {
    works.values_mut().find(|work| Arc::ptr_eq(&work.shared, of))
}
