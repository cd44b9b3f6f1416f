//! Making and opening a pool, on its thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::{FileVolume, OpKind, Volume, VolumeError};
use pool::format::{
    CHUNK_BYTES, LABEL_BYTES, Label, MemberState, Place, SECTOR_BYTES, Superblock, Uuid,
};
use pool::{NewPv, Policy, Pool, ReadFailed, Shadow as Left, Source, choose, make, superblocks};
use spec::PoolSpec;

use crate::PoolError;
use crate::engine::Engine;
use crate::shadow::Shadow;
use crate::signature;
use crate::table::Shared;
use crate::thread::Opening;
use crate::work::{For, Work, chunks_for};

/// Bytes that are read at once while a pool is opened.
const READ: usize = 128 << 10;
/// Bytes that are written at once while one is made.
const WRITE: usize = 128 << 10;

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
pub(crate) fn open(
    engine: &mut Engine<For>,
    number: u32,
    opening: Opening,
) -> Result<Work, PoolError> {
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

/// What is wrong with a PV, by its path.
pub(crate) fn of_pv(path: &Path, error: VolumeError) -> PoolError {
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
