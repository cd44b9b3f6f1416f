//! Making and opening a pool, on its thread.

use std::path::Path;
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
use crate::table::{OpenPv, Shared};
use crate::thread::{Candidate, Opening};
use crate::work::{For, Work, chunks_for};

/// Bytes that are read at once while a pool is opened.
const READ: usize = 128 << 10;
/// Bytes that are written at once while one is made.
const WRITE: usize = 128 << 10;

/// PVs that are read at once, by the numbers of their lanes.
struct Reading<'a> {
    engine: &'a mut Engine<For>,
    lanes: &'a [Option<u16>],
}

impl Source for Reading<'_> {
    fn read(&mut self, pv: u16, at: u64, bytes: usize) -> Result<Vec<u8>, ReadFailed> {
        let failed = ReadFailed { pv, at };
        let lane = self.lanes.get(usize::from(pv)).copied().flatten().ok_or(failed)?;
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

    fn is_there(&mut self, pv: u16) -> bool {
        self.lanes.get(usize::from(pv)).copied().flatten().is_some()
    }
}

/// Opens a pool: its PVs in the order of members, what a process before left, the core.
pub(crate) fn open(
    engine: &mut Engine<For>,
    number: u32,
    opening: Opening,
) -> Result<Work, PoolError> {
    let mut lanes = Vec::new();
    for candidate in &opening.pvs {
        match engine.join(&candidate.pv.volume) {
            Ok(lane) => lanes.push(lane),
            Err(error) => {
                lanes.into_iter().for_each(|lane| engine.leave(lane));
                return Err(of_pv(&candidate.pv.path, error));
            }
        }
    }
    let opened = open_on(engine, number, opening, &lanes);
    let used: &[Option<u16>] = opened.as_ref().map_or(&[], |work| work.lanes.as_slice());
    let others: Vec<u16> = lanes.into_iter().filter(|lane| !used.contains(&Some(*lane))).collect();
    others.into_iter().for_each(|lane| engine.leave(lane));
    opened
}

fn open_on(
    engine: &mut Engine<For>,
    number: u32,
    opening: Opening,
    found: &[u16],
) -> Result<Work, PoolError> {
    let Opening { spec, owner, pvs, shadow } = opening;
    let mut whole = true;
    for (candidate, lane) in pvs.iter().zip(found) {
        if candidate.must {
            whole &= look(engine, &spec, owner.pool, &candidate.pv, *lane)?.is_some();
        }
    }
    if !whole {
        new_pool(engine, owner.pool, &pvs, found)?;
    }
    let (superblock, order) = in_order(engine, owner.pool, &pvs, found)?;
    let lanes: Vec<Option<u16>> = order.iter().map(|at| at.map(|at| found[at])).collect();
    let open = order.iter().map(|at| at.map(|at| pvs[at].pv.clone())).collect();
    let layout: Vec<_> = superblock
        .members
        .iter()
        .map(|member| ((member.pv, member.chunks), member.state != MemberState::Gone))
        .collect();
    let shadow = Shadow::map(shadow, &layout).map_err(|what| {
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
    let shared = Shared::new(&spec.name, owner.pool, open, shadow);
    let mut work = Work::new(number, owner, Arc::new(shared), core, lanes);
    let served = serve(engine, &mut work);
    served.map_err(|what| PoolError::new(what, "see whether its PVs are in order"))?;
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

pub(crate) fn chunks_of(pv: &FileVolume) -> u32 {
    chunks_for(pv.geometry().bytes / CHUNK_BYTES * CHUNK_BYTES)
}

fn front(engine: &mut Engine<For>, pv: &OpenPv, lane: u16) -> Result<Vec<u8>, PoolError> {
    let mut source = Reading { engine, lanes: &[Some(lane)] };
    source.read(0, 0, signature::FRONT).map_err(|_| {
        let what = format!("PV {} cannot be read", pv.path.display());
        PoolError::new(what, "see whether the device is in order")
    })
}

/// What a PV says of itself, if it is of the pool; one of another pool is refused.
fn label(pool: Uuid, pv: &OpenPv, front: &[u8]) -> Result<Option<Label>, PoolError> {
    match Label::decode(&front[..LABEL_BYTES]) {
        Ok(label) if label.pool == pool => Ok(Some(label)),
        Ok(label) => {
            let what = format!("PV {} belongs to another pool, {}", pv.path.display(), label.pool);
            Err(PoolError::new(
                what,
                "name another device; one whose pool nobody needs any more is freed by `wipefs -a` or by overwriting its first 4096 bytes",
            ))
        }
        Err(_) => Ok(None),
    }
}

fn holds(pv: &OpenPv, what: &str) -> PoolError {
    let what = format!("PV {} holds {what}", pv.path.display());
    let help = "name another device, or, if nobody needs what is there, remove it with `wipefs -a`";
    PoolError::new(what, help)
}

fn too_small(pv: &OpenPv, error: &pool::NotMade) -> PoolError {
    let pool::NotMade::Small { chunks, least, .. } = error else {
        return PoolError { what: error.to_string(), help: None };
    };
    let what = format!(
        "PV {} is too small: it has {chunks} chunks of 64 MiB, of which the pool itself needs {least}",
        pv.path.display()
    );
    PoolError::new(what, "name a larger device")
}

/// The label of a PV; none where the pool is to be made on it.
fn look(
    engine: &mut Engine<For>,
    spec: &PoolSpec,
    pool: Uuid,
    pv: &OpenPv,
    lane: u16,
) -> Result<Option<Label>, PoolError> {
    let front = front(engine, pv, lane)?;
    let label = label(pool, pv, &front)?;
    let path = pv.path.display();
    if label.is_none() && !spec.fresh {
        let what = match signature::found(&front) {
            Some(found) => format!("PV {path} is not of this pool any more: {found} is there"),
            None => format!("PV {path} is not of this pool: it has no label"),
        };
        return Err(PoolError::new(what, "correct the path, or put the device back"));
    }
    match signature::found(&front) {
        Some(found) if label.is_none() => Err(holds(pv, found)),
        _ => Ok(label),
    }
}

/// Whether a PV can be added to a pool that is open.
pub(crate) fn may_join(
    engine: &mut Engine<For>,
    pool: &Superblock,
    pv: &OpenPv,
    lane: u16,
) -> Result<NewPv, PoolError> {
    let front = front(engine, pv, lane)?;
    // What was about to be added, or was removed, has a label that no superblock names.
    let label = label(pool.pool, pv, &front)?;
    let there = |label: Label| {
        let mut members = pool.members.iter();
        members.any(|member| member.pv == label.pv && member.state != MemberState::Gone)
    };
    if label.is_some_and(there) {
        let what = format!("PV {} is in this pool already, by another path", pv.path.display());
        return Err(PoolError::new(what, "name each device once"));
    }
    if let (None, Some(found)) = (label, signature::found(&front)) {
        return Err(holds(pv, found));
    }
    let new = NewPv { pv: fresh_uuid(), chunks: chunks_of(&pv.volume), tier: 0, group: 0 };
    make(pool.pool, &[new]).map(|_| new).map_err(|error| too_small(pv, &error))
}

/// Makes a pool, or makes it anew where that was not finished.
fn new_pool(
    engine: &mut Engine<For>,
    pool: Uuid,
    pvs: &[Candidate],
    lanes: &[u16],
) -> Result<(), PoolError> {
    let new = |candidate: &Candidate| {
        let chunks = chunks_of(&candidate.pv.volume);
        NewPv { pv: fresh_uuid(), chunks, tier: 0, group: 0 }
    };
    let new: Vec<NewPv> = pvs.iter().map(new).collect();
    let (_, parts) = make(pool, &new).map_err(|error| {
        let small = new
            .iter()
            .position(|one| matches!(error, pool::NotMade::Small { pv, .. } if one.pv == pv));
        too_small(&pvs[small.unwrap_or(0)].pv, &error)
    })?;
    let write = OpKind::Write { fua: false };
    for part in parts {
        for (pv, at, bytes) in part {
            let (lane, path) = (lanes[usize::from(pv)], pvs[usize::from(pv)].pv.path.display());
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
        for (lane, candidate) in lanes.iter().zip(pvs) {
            let (result, _) = engine.at_once(*lane, OpKind::Flush, 0, 0, None, For::Opening);
            result.map_err(|_| {
                let what = format!("PV {} cannot be flushed", candidate.pv.path.display());
                PoolError::new(what, "see whether the device is in order")
            })?;
        }
    }
    Ok(())
}

/// The superblock that counts, and which of the PVs each of its members is; those that are gone are none.
fn in_order(
    engine: &mut Engine<For>,
    pool: Uuid,
    pvs: &[Candidate],
    lanes: &[u16],
) -> Result<(Superblock, Vec<Option<usize>>), PoolError> {
    let plain = |what: String| PoolError { what, help: None };
    let lanes: Vec<Option<u16>> = lanes.iter().copied().map(Some).collect();
    let mut source = Reading { engine, lanes: &lanes };
    let mut copies: Vec<(bool, (Superblock, Place))> = Vec::new();
    let mut whose = Vec::new();
    for (number, candidate) in (0..).zip(pvs) {
        let found = superblocks(&mut source, number).map_err(|error| plain(error.to_string()))?;
        let own: Vec<(Superblock, Place)> =
            found.into_iter().filter(|(superblock, _)| superblock.pool == pool).collect();
        let label =
            source.read(number, 0, SECTOR_BYTES).map_err(|error| plain(error.to_string()))?;
        let label = Label::decode(&label).ok().filter(|label| label.pool == pool);
        whose.push(own.first().map(|(_, place)| place.pv).or(label.map(|label| label.pv)));
        copies.extend(own.into_iter().map(|copy| (candidate.must, copy)));
    }
    let all: Vec<_> = copies.iter().map(|(_, copy)| copy.clone()).collect();
    let chosen = choose(&all).or_else(|error| {
        // One that is not known to be in the pool does not keep the others from it.
        let known = copies.into_iter().filter_map(|(must, copy)| must.then_some(copy));
        choose(&known.collect::<Vec<_>>()).map_err(|_| error)
    });
    let superblock = chosen.map_err(|error| plain(error.to_string()))?.superblock;
    let mut order = Vec::new();
    for member in &superblock.members {
        let at = whose.iter().position(|pv| *pv == Some(member.pv));
        match at {
            _ if member.state == MemberState::Gone => order.push(None),
            Some(at) => order.push(Some(at)),
            None => {
                let what = format!("PV {} of the pool is missing", member.pv);
                return Err(PoolError::new(
                    what,
                    "put the device back; the pool opens when all its PVs are there",
                ));
            }
        }
    }
    let extra = |at: &usize| pvs[*at].must && !order.contains(&Some(*at));
    if let Some(extra) = (0..pvs.len()).find(extra) {
        let what = format!("PV {} is no member of the pool", pvs[extra].pv.path.display());
        return Err(PoolError::new(what, "correct the paths of its PVs"));
    }
    Ok((superblock, order))
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
