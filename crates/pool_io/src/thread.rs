//! The pools' thread, and who talks to it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use block::{FileVolume, Files, OpKind, OpenEvent, Volume, VolumeError, VolumeSpec, open_part};
use pool::format::{
    CHUNK_BYTES, LABEL_BYTES, Label, MemberState, Place, SECTOR_BYTES, Superblock, Uuid,
};
use pool::{
    Fault, NewPv, Policy, Pool, ReadFailed, Request, Shadow as Left, Source, choose, make,
    superblocks,
};
use rustix::fs::OFlags;
use spec::{FileIdentity, FileSpec, LuSpec, PoolSpec};

use crate::PoolError;
use crate::engine::Engine;
use crate::post::{Bell, Inbox, Message, Wanted};
use crate::shadow::{Owner, Shadow};
use crate::signature;
use crate::table::{PoolView, Shared, locked};
use crate::volume::LuVolume;
use crate::work::{For, Work, chunks_for};

/// How often it is looked whether channels are done, while they are waited for.
const LOOK: Duration = Duration::from_millis(1);
/// How long the lock of a PV is waited for: an earlier process of this server may have operations under way.
const LOCK_WAIT_MS: u64 = 5000;
/// Bytes that are read at once while a pool is opened.
const READ: usize = 128 << 10;
/// Bytes that are written at once while one is made.
const WRITE: usize = 128 << 10;

/// The thread that serves the pools of a process.
pub struct Pools {
    inbox: Arc<Inbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A pool that is open. It closes with [`PoolHandle::close`].
#[derive(Clone)]
pub struct PoolHandle {
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
}

/// What the thread needs to open a pool.
pub(crate) struct Opening {
    spec: PoolSpec,
    owner: Owner,
    /// In the order of the specification.
    pvs: Vec<Arc<FileVolume>>,
    shadow: File,
}

impl Pools {
    /// Starts the thread. Its io_uring is made here.
    ///
    /// # Errors
    ///
    /// The system has no ring, eventfd or thread for it.
    pub fn start() -> std::io::Result<Pools> {
        let bell = Arc::new(Bell::new()?);
        let (sender, messages) = channel();
        let (ready, is_ready) = sync_channel(1);
        let inbox = Arc::new(Inbox::new(sender, Arc::clone(&bell)));
        let run = move || match Engine::new(bell) {
            Ok(engine) => {
                let _ = ready.send(Ok(()));
                run(engine, &messages);
            }
            Err(error) => drop(ready.send(Err(error))),
        };
        let thread = std::thread::Builder::new().name("pools".into()).spawn(run)?;
        match is_ready.recv() {
            Ok(Ok(())) => Ok(Pools { inbox, thread: Mutex::new(Some(thread)) }),
            Ok(Err(error)) => Err(std::io::Error::other(error)),
            Err(_) => Err(std::io::Error::other("the pools' thread ended")),
        }
    }

    /// Opens a pool, made first where that is wanted. Waits for its PVs' locks; `event` is told who has one.
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
        let mut pvs = Vec::new();
        for path in &spec.pvs {
            // It is tried again soon by whoever wants it; meanwhile others have their turn.
            let file = FileSpec { lock_wait_ms: LOCK_WAIT_MS, ..FileSpec::new(path) };
            let volume = VolumeSpec::new(&spec.name, file.clone());
            let opened = open_part(files, server, &volume, &file, event);
            pvs.push(Arc::new(opened.map_err(|error| of_pv(path, error))?));
        }
        let shadow = files
            .open(&spec.shadow, OFlags::RDWR)
            .or_else(|_| files.open(&spec.shadow, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL));
        let shadow = shadow.map_err(|error| {
            let what = format!("opening {}: {error}", spec.shadow.display());
            PoolError::new(what, "let the server write there")
        })?;
        let opening = Opening { spec: spec.clone(), owner, pvs, shadow };
        let shared = self.ask(|reply| Message::Open(Box::new(opening), reply))??;
        Ok(PoolHandle { shared, inbox: Arc::clone(&self.inbox) })
    }

    fn ask<T>(
        &self,
        message: impl FnOnce(crate::post::ReplyTo<T>) -> Message,
    ) -> Result<T, PoolError> {
        ask(&self.inbox, message)
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

fn ask<T>(
    inbox: &Inbox,
    message: impl FnOnce(crate::post::ReplyTo<T>) -> Message,
) -> Result<T, PoolError> {
    let (reply, answer) = sync_channel(1);
    inbox.post(message(reply));
    answer
        .recv()
        .map_err(|_| PoolError::new("the pools' thread has ended", "restart the data plane"))
}

impl PoolHandle {
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
            None if lu.fresh => {
                let Some(bytes) = spec.bytes.filter(|bytes| *bytes > 0) else {
                    return Err(fail("has no size".to_owned(), "set size"));
                };
                Wanted::New { chunks: chunks_for(bytes), thick: lu.thick }
            }
            known => {
                let which = known.as_ref().map_or_else(
                    || "was never made in it".to_owned(),
                    |known| format!("was made elsewhere: {known:?}"),
                );
                let what = format!("is not in pool {}: it {which}", self.shared.name);
                return Err(fail(what, "remove it, and make a new one"));
            }
        };
        let shared = Arc::clone(&self.shared);
        let opened = ask(&self.inbox, |reply| Message::Lu(shared, wanted, reply))
            .map_err(|error| fail(error.what, "restart the data plane"))?;
        let table = opened.map_err(|fault| match fault {
            Fault::NoSuchLu => fail(
                format!("is not in pool {} any more", self.shared.name),
                "remove it, and make a new one",
            ),
            fault => {
                fail(format!("in pool {}: {fault}", self.shared.name), "see `trunkline pool show`")
            }
        })?;
        let bytes = spec.bytes.unwrap_or(table.bytes());
        if bytes > table.bytes() {
            let what = format!("has {} bytes in its pool, and size says {bytes}", table.bytes());
            return Err(fail(what, "an LU keeps the size with which it was made: correct size"));
        }
        let number = table.number;
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
        for number in numbers.iter().filter(|number| there.iter().any(|lu| lu.number == **number)) {
            let request = Request::Delete { lu: *number };
            let shared = Arc::clone(&self.shared);
            match ask(&self.inbox, |reply| Message::Core(shared, request, reply))? {
                Ok(_) | Err(Fault::NoSuchLu) => {}
                Err(fault) => {
                    let what = format!("LU {number} cannot be removed: {fault}");
                    return Err(PoolError::new(what, "see `trunkline pool show`"));
                }
            }
        }
        Ok(())
    }

    /// How it stands.
    #[must_use]
    pub fn view(&self) -> PoolView {
        let mut view = self.shared.view();
        let lost = self
            .shared
            .pvs
            .iter()
            .zip(&self.shared.paths)
            .find_map(|(pv, path)| Some(format!("PV {}: {}", path.display(), pv.trouble()?)));
        view.trouble = view.trouble.or(lost);
        view
    }

    /// Closes it, when what is under way is done. Its LUs' volumes must be gone by then.
    pub fn close(self) {
        let shared = self.shared;
        // Without the thread it is closed.
        let _ = ask(&self.inbox, |reply| Message::Close(shared, reply));
    }
}

fn of_pv(path: &std::path::Path, error: VolumeError) -> PoolError {
    let source = error.source.map(|source| format!(": {source}")).unwrap_or_default();
    let what = error.what;
    let what = if what.contains(&path.display().to_string()) {
        what
    } else {
        format!("PV {}: {what}", path.display())
    };
    PoolError {
        what: format!("{what}{source}"),
        help: error.help.filter(|help| !help.contains("create")),
    }
}

fn parse(text: &str) -> Option<Uuid> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let text = std::str::from_utf8(&digits).ok().filter(|text| text.len() == 32)?;
    Some(Uuid(u128::from_str_radix(text, 16).ok()?.to_be_bytes()))
}

fn run(mut engine: Engine<For>, messages: &Receiver<Message>) {
    let mut works: BTreeMap<u32, Work> = BTreeMap::new();
    let mut next = 0;
    loop {
        let soon = works.values().any(Work::waits_for_channels);
        engine.wait(soon.then_some(LOOK));
        while let Ok(message) = messages.try_recv() {
            let work = |works: &mut BTreeMap<u32, Work>, of: &Arc<Shared>| {
                let found = works.iter().find(|(_, work)| Arc::ptr_eq(&work.shared, of));
                found.map(|(number, _)| *number)
            };
            match message {
                Message::Open(opening, reply) => {
                    next += 1;
                    let opened = open(&mut engine, next, *opening);
                    let opened = opened.map(|work| {
                        let shared = Arc::clone(&work.shared);
                        works.insert(next, work);
                        shared
                    });
                    let _ = reply.send(opened);
                }
                Message::Ask(of, ask) => {
                    if let Some(work) = work(&mut works, &of).and_then(|at| works.get_mut(&at)) {
                        work.ask(ask);
                    }
                }
                Message::Core(of, request, reply) => {
                    if let Some(work) = work(&mut works, &of).and_then(|at| works.get_mut(&at)) {
                        work.core(request, reply);
                    }
                }
                Message::Lu(of, wanted, reply) => {
                    if let Some(work) = work(&mut works, &of).and_then(|at| works.get_mut(&at)) {
                        work.lu(wanted, reply);
                    }
                }
                Message::Close(of, reply) => {
                    if let Some(work) = work(&mut works, &of).and_then(|at| works.get_mut(&at)) {
                        work.close(reply);
                    }
                }
                Message::Exit => return,
            }
        }
        while let Some(mut arrived) = engine.next() {
            let For::Effect { pool, op, then } =
                std::mem::replace(&mut arrived.what_for, For::Opening)
            else {
                continue;
            };
            if let Some(work) = works.get_mut(&pool) {
                work.arrived(&mut engine, op, then, arrived);
            }
        }
        works.values_mut().for_each(|work| work.pump(&mut engine));
        let closed = works.iter().filter(|(_, work)| work.closing.is_some() && work.rests());
        for number in closed.map(|(number, _)| *number).collect::<Vec<_>>() {
            if let Some(mut work) = works.remove(&number) {
                work.lanes.drain(..).for_each(|lane| engine.leave(lane));
                let reply = work.closing.take();
                // The PVs' locks go before whoever waits goes on.
                drop(work);
                let _ = reply.map(|reply| reply.send(()));
            }
        }
    }
}

/// PVs that are read at once, by the numbers of their lanes.
struct Reading<'a> {
    engine: &'a mut Engine<For>,
    lanes: &'a [u16],
}

impl Source for Reading<'_> {
    fn read(&mut self, pv: u16, at: u64, bytes: usize) -> Result<Vec<u8>, ReadFailed> {
        let failed = ReadFailed { pv, at };
        let lane = *self.lanes.get(usize::from(pv)).ok_or(failed)?;
        let mut all = vec![0; bytes];
        for (index, part) in all.chunks_mut(READ).enumerate() {
            let from = at + (index * READ) as u64;
            // Blocks of the pool that are not there any more, in a file that became shorter, are as bytes of another kind: no error of the pool's.
            let buffer = self.engine.buffer(READ).ok_or(failed)?;
            let len = part.len() as u64;
            let (result, buffer) =
                self.engine.at_once(lane, OpKind::Read, from, len, Some(buffer), For::Opening);
            let Some(buffer) = buffer else { return Err(failed) };
            buffer.part(0, part.len()).read(0, part);
            self.engine.give_back(buffer);
            result.map_err(|_| failed)?;
        }
        Ok(all)
    }
}

/// Opens a pool: its PVs in the order of members, what a process before left, the core.
fn open(engine: &mut Engine<For>, number: u32, opening: Opening) -> Result<Work, PoolError> {
    let mut lanes = Vec::new();
    for (path, pv) in opening.spec.pvs.iter().zip(&opening.pvs) {
        match engine.join(pv) {
            Ok(lane) => lanes.push(lane),
            Err(error) => {
                lanes.into_iter().for_each(|lane| engine.leave(lane));
                return Err(of_pv(path, error));
            }
        }
    }
    let opened = open_on(engine, number, opening, &lanes);
    if opened.is_err() {
        lanes.into_iter().for_each(|lane| engine.leave(lane));
    }
    opened
}

fn open_on(
    engine: &mut Engine<For>,
    number: u32,
    opening: Opening,
    lanes: &[u16],
) -> Result<Work, PoolError> {
    let Opening { spec, owner, pvs, shadow } = opening;
    let labels = look(engine, &spec, owner.pool, lanes)?;
    if labels.iter().any(Option::is_none) {
        new_pool(engine, &spec, owner.pool, &pvs, lanes)?;
    }
    let order = in_order(engine, &spec, owner.pool, lanes)?;
    let lanes: Vec<u16> = order.iter().map(|at| lanes[*at]).collect();
    let paths: Vec<PathBuf> = order.iter().map(|at| spec.pvs[*at].clone()).collect();
    let chunks: Vec<u32> = order.iter().map(|at| chunks_of(&pvs[*at])).collect();
    let pvs = order.iter().map(|at| Arc::clone(&pvs[*at])).collect();
    let shadow = Shadow::map(&shadow, &chunks).map_err(|what| {
        let what = format!("{}: {what}", spec.shadow.display());
        PoolError::new(what, "enlarge that file system")
    })?;
    let left = shadow.left(owner);
    let left = left.map(|(epoch, chunks)| (epoch, Left::of(owner.server, epoch, chunks)));
    let mut source = Reading { engine, lanes: &lanes };
    let known = left.as_ref().map(|(_, left)| left);
    let mut core = Pool::open(&mut source, owner.server, known, Policy::default())
        .map_err(|error| PoolError { what: error.to_string(), help: None })?;
    let epoch = core.superblock().epoch;
    // What holds for neither this epoch nor the one before it the core has not taken up, and nobody may find it later.
    let ours = core.superblock().owners[0].server == owner.server;
    let holds = |(of, _): &(u64, Left)| ours && (*of..=of.saturating_add(1)).contains(&epoch);
    if !left.as_ref().is_some_and(holds) {
        shadow.clear();
    }
    // Before the epoch is raised: it holds for this one and the next.
    shadow.holds_for(owner, epoch);
    core.start();
    let shared = Shared::new(&spec.name, owner.pool, pvs, paths, shadow);
    let mut work = Work::new(number, Arc::new(shared), core, lanes);
    serve(engine, &mut work)
        .map_err(|what| PoolError::new(what, "see whether its PVs are in order"))?;
    work.shared.shadow.holds_for(owner, epoch + 1);
    Ok(work)
}

/// Until it serves.
fn serve(engine: &mut Engine<For>, work: &mut Work) -> Result<(), String> {
    let mut others = Vec::new();
    let served = loop {
        work.pump(engine);
        if work.serves() {
            break Ok(());
        }
        if work.rests() {
            break Err("its own blocks cannot be written".to_owned());
        }
        engine.wait(None);
        while let Some(mut arrived) = engine.next() {
            match std::mem::replace(&mut arrived.what_for, For::Opening) {
                For::Effect { pool, op, then } if pool == work.number() => {
                    work.arrived(engine, op, then, arrived);
                }
                what_for => {
                    arrived.what_for = what_for;
                    others.push(arrived);
                }
            }
        }
    };
    others.into_iter().for_each(|arrived| engine.keep(arrived));
    served
}

fn chunks_of(pv: &FileVolume) -> u32 {
    chunks_for(pv.geometry().bytes / CHUNK_BYTES * CHUNK_BYTES)
}

/// The label of each PV; none where the pool is to be made on it.
fn look(
    engine: &mut Engine<For>,
    spec: &PoolSpec,
    pool: Uuid,
    lanes: &[u16],
) -> Result<Vec<Option<Label>>, PoolError> {
    let mut labels = Vec::new();
    let mut source = Reading { engine, lanes };
    for (pv, path) in (0..).zip(&spec.pvs) {
        let path = path.display();
        let front = source.read(pv, 0, signature::FRONT).map_err(|_| {
            PoolError::new(
                format!("PV {path} cannot be read"),
                "see whether the device is in order",
            )
        })?;
        let label = match Label::decode(&front[..LABEL_BYTES]) {
            Ok(label) if label.pool == pool => Some(label),
            Ok(label) => {
                let what = format!("PV {path} belongs to another pool, {}", label.pool);
                return Err(PoolError::new(
                    what,
                    "name another device; one whose pool nobody needs any more is freed by `wipefs -a` or by overwriting its first 4096 bytes",
                ));
            }
            Err(_) => None,
        };
        if label.is_none() && !spec.fresh {
            let what = match signature::found(&front) {
                Some(found) => format!("PV {path} is not of this pool any more: {found} is there"),
                None => format!("PV {path} is not of this pool: it has no label"),
            };
            return Err(PoolError::new(what, "correct the path, or put the device back"));
        }
        if let (None, Some(found)) = (&label, signature::found(&front)) {
            let what = format!("PV {path} holds {found}");
            return Err(PoolError::new(
                what,
                "name another device, or, if nobody needs what is there, remove it with `wipefs -a`",
            ));
        }
        labels.push(label);
    }
    Ok(labels)
}

/// Makes a pool, or makes it anew where that was not finished.
fn new_pool(
    engine: &mut Engine<For>,
    spec: &PoolSpec,
    pool: Uuid,
    pvs: &[Arc<FileVolume>],
    lanes: &[u16],
) -> Result<(), PoolError> {
    let new =
        |pv: &Arc<FileVolume>| NewPv { pv: fresh_uuid(), chunks: chunks_of(pv), tier: 0, group: 0 };
    let new: Vec<NewPv> = pvs.iter().map(new).collect();
    let (_, parts) = make(pool, &new).map_err(|error| match error {
        pool::NotMade::Small { pv, chunks, least } => {
            let at = new.iter().position(|one| one.pv == pv).unwrap_or(0);
            let what = format!(
                "PV {} is too small: it has {chunks} chunks of 64 MiB, of which the pool itself needs {least}",
                spec.pvs[at].display()
            );
            PoolError::new(what, "name a larger device")
        }
        other => PoolError { what: other.to_string(), help: None },
    })?;
    let write = OpKind::Write { fua: false };
    for part in parts {
        for (pv, at, bytes) in part {
            let (lane, path) = (lanes[usize::from(pv)], spec.pvs[usize::from(pv)].display());
            let failed = || {
                PoolError::new(
                    format!("PV {path} cannot be written"),
                    "see whether the device is in order",
                )
            };
            for (index, piece) in bytes.chunks(WRITE).enumerate() {
                let buffer = engine.buffer(WRITE).ok_or_else(failed)?;
                buffer.part(0, piece.len()).write(0, piece);
                let (offset, len) = (at + (index * WRITE) as u64, piece.len() as u64);
                let (result, buffer) =
                    engine.at_once(lane, write, offset, len, Some(buffer), For::Opening);
                buffer.into_iter().for_each(|buffer| engine.give_back(buffer));
                result.map_err(|_| failed())?;
            }
        }
        for (lane, path) in lanes.iter().zip(&spec.pvs) {
            let (result, _) = engine.at_once(*lane, OpKind::Flush, 0, 0, None, For::Opening);
            result.map_err(|_| {
                let what = format!("PV {} cannot be flushed", path.display());
                PoolError::new(what, "see whether the device is in order")
            })?;
        }
    }
    Ok(())
}

/// Which PV of the specification each member is.
fn in_order(
    engine: &mut Engine<For>,
    spec: &PoolSpec,
    pool: Uuid,
    lanes: &[u16],
) -> Result<Vec<usize>, PoolError> {
    let plain = |what: String| PoolError { what, help: None };
    let mut source = Reading { engine, lanes };
    let mut copies: Vec<(Superblock, Place)> = Vec::new();
    let mut whose = Vec::new();
    for pv in 0..lanes.len() as u16 {
        let found = superblocks(&mut source, pv).map_err(|error| plain(error.to_string()))?;
        let own: Vec<(Superblock, Place)> =
            found.into_iter().filter(|(superblock, _)| superblock.pool == pool).collect();
        let label = source.read(pv, 0, SECTOR_BYTES).map_err(|error| plain(error.to_string()))?;
        let label = Label::decode(&label).ok().map(|label| label.pv);
        whose.push(own.first().map(|(_, place)| place.pv).or(label));
        copies.extend(own);
    }
    let chosen = choose(&copies).map_err(|error| plain(error.to_string()))?;
    let mut order = Vec::new();
    for member in &chosen.superblock.members {
        let at = whose.iter().position(|pv| *pv == Some(member.pv));
        match at {
            Some(at) => order.push(at),
            // Its number stays, and nothing is read of it.
            None if member.state == MemberState::Gone => order.push(0),
            None => {
                let what = format!("PV {} of the pool is missing", member.pv);
                return Err(PoolError::new(
                    what,
                    "put the device back; the pool opens when all its PVs are there",
                ));
            }
        }
    }
    if let Some(extra) = (0..lanes.len()).find(|at| !order.contains(at)) {
        let what = format!("PV {} is no member of the pool", spec.pvs[extra].display());
        return Err(PoolError::new(what, "correct the paths of its PVs"));
    }
    Ok(order)
}

/// Nobody's so far: the standard library's seeds of hashes, which come from the system.
fn fresh_uuid() -> Uuid {
    use std::hash::{BuildHasher, RandomState};
    let half = || RandomState::new().hash_one(std::process::id()).to_be_bytes();
    let (first, second) = (half(), half());
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first);
    bytes[8..].copy_from_slice(&second);
    // Version 4, as RFC 9562 marks it.
    (bytes[6], bytes[8]) = (bytes[6] & 0x0f | 0x40, bytes[8] & 0x3f | 0x80);
    Uuid(bytes)
}
