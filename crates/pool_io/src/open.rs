//! Making and opening a pool, on the thread of whoever wants it: it waits for each PV as long as that takes. The pools' thread gets the pool when all of it is read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::{FileVolume, Volume, VolumeError};
use pool::format::{
    CHUNK_BYTES, LABEL_BYTES, Label, MARKS_AT, Member, MemberState, Place, SECTOR_BYTES,
    Superblock, Uuid,
};
use pool::{
    NewPv, NotChosen, NotOpened, Policy, Pool, ReadFailed, Shadow as Left, Source, choose, make,
    superblocks,
};
use spec::PoolSpec;

use crate::PoolError;
use crate::post::Inbox;
use crate::remote::{PvLane, Reading, Refused};
use crate::shadow::Shadow;
use crate::signature;
use crate::table::{Absent, OpenPv, Shared};
use crate::thread::{At, Candidate, NotThere, Opening};
use crate::turns::drawn;
use crate::volume::chunks_for;
use crate::work::{DEADLINE, Work, taken_over};

/// Opens a pool: its PVs in the order of members, what a process before left, the core. It does not serve yet. With it the PVs that have left it and that a process
/// before did not come to erase, or not to the end: to be erased when it serves, for then it is durable that they have left.
pub(crate) fn open(
    inbox: &Inbox,
    number: u32,
    opening: Opening,
) -> Result<(Work, Vec<OpenPv>), PoolError> {
    let Opening { spec, owner, candidates: (pvs, mut absent), shadow } = opening;
    let limit = (!spec.mirror.is_empty() && !spec.fresh).then_some(DEADLINE);
    let (mut candidates, mut lanes) = (Vec::new(), Vec::new());
    let (mut whole, mut fenced) = (true, false);
    for candidate in pvs {
        let lane = lane_of(inbox, &candidate.pv).map(|lane| lane.at_most(limit));
        let found = lane.and_then(|lane| {
            let looked = match candidate.must {
                true => look(&spec, owner.pool, &candidate.pv, &lane).map(|label| label.is_some()),
                false => Ok(true),
            };
            fenced |= lane.is_fenced();
            Ok((lane, looked?))
        });
        // Of the others nobody knows what they still are.
        if fenced {
            return Err(taken_over());
        }
        match found {
            Ok((lane, is_whole)) => {
                whole &= is_whole;
                candidates.push(candidate);
                lanes.push(lane);
            }
            // The pool may do without it.
            Err(error) if candidate.must && !spec.fresh => {
                absent.push(NotThere { path: candidate.pv.path, error });
            }
            Err(error) => return Err(error),
        }
    }
    let pvs = candidates;
    if !whole {
        new_pool(owner.pool, &pvs, &lanes)?;
    }
    let chosen = in_order(owner.pool, &pvs, &lanes, &mut absent);
    let fenced = || lanes.iter().any(PvLane::is_fenced);
    if fenced() {
        return Err(taken_over());
    }
    // Why one is not there says more than that too few are.
    let first =
        |absent: Vec<NotThere>, error| absent.into_iter().next().map_or(error, |one| one.error);
    let (superblock, mut order) = match chosen {
        Ok(chosen) => chosen,
        Err(error) => return Err(first(absent, error)),
    };
    if !superblock.mirrors() && !absent.is_empty() {
        return Err(absent.swap_remove(0).error);
    }
    let may_be_gone = pvs.iter().zip(&lanes).filter(|(candidate, _)| !candidate.must);
    let gone = may_be_gone.filter(|(candidate, lane)| is_gone(&superblock, &candidate.pv, lane));
    let gone = gone.map(|(candidate, _)| candidate.pv.clone()).collect();
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
    let left = left.map(|(epoch, chunks, parts)| {
        let of = (epoch, chunks, parts.iter().copied());
        (epoch, Left::of(owner.server, of.0, of.1, of.2, shadow.lost()), parts)
    });
    let known = left.as_ref().map(|(_, left, _)| left);
    let policy = Policy { layers: true, paced: true, alone: spec.alone, ..Policy::default() };
    // Those that are there, and on which something else failed than to read their superblocks.
    let mut without = BTreeSet::new();
    for (number, at) in (0..).zip(&order) {
        if let Some(candidate) = at.map(|at| &pvs[at])
            && let Some(error) = candidate.unfit.clone()
        {
            without.insert(number);
            absent.push(NotThere { path: candidate.pv.path.clone(), error });
        }
    }
    let mut core = loop {
        let mut source = Reading(order.iter().map(|at| at.map(|at| &lanes[at])).collect());
        let opened = Pool::open_without(&mut source, owner.server, known, &without, policy);
        let error = match opened {
            Ok(core) => break core,
            Err(_) if fenced() => return Err(taken_over()),
            Err(error) => error,
        };
        let told = PoolError { what: error.to_string(), help: None };
        match error {
            NotOpened::Read(ReadFailed { pv, .. }) if superblock.mirrors() => {
                let Some(place) = order.get_mut(usize::from(pv)) else { return Err(told) };
                let Some(at) = *place else { return Err(told) };
                if without.insert(pv) {
                    let (path, error) = (pvs[at].pv.path.clone(), unread(&pvs[at].pv));
                    absent.push(NotThere { path, error });
                } else {
                    // By now not even its superblocks can be read: it is as one that is not there.
                    *place = None;
                }
            }
            NotOpened::Missing(_) => return Err(first(absent, told)),
            NotOpened::Undecided(_) => {
                let PoolError { what, .. } = first(absent, told);
                let what = format!("{what}; it may have gone on without those that are there");
                let help = format!(
                    "put it back; if it has not gone on, or what it answered since may be lost: `trunkline pool open {} --force`",
                    spec.name
                );
                return Err(PoolError::new(what, help));
            }
            _ => return Err(told),
        }
    };
    for (number, at) in (0..).zip(&mut order) {
        at.take_if(|_| without.contains(&number));
    }
    let open = order.iter().map(|at| at.map(|at| pvs[at].pv.clone())).collect();
    let found = |path: &&PathBuf| order.iter().flatten().any(|at| pvs[*at].pv.path == **path);
    let leaving = spec.leaving.iter().filter(|path| !spec.pvs.contains(path) && !found(path));
    let leaving = leaving.cloned().collect();
    let absent = known_by(&superblock, &order, (absent, leaving), &spec);
    let epoch = core.superblock().epoch;
    // What does not hold the core has not taken up, and nobody may find it later.
    let ours = core.superblock().owners[0].server == owner.server;
    let holds = |of: u64| ours && Left::is_of(of, epoch);
    match left.filter(|(of, ..)| holds(*of)) {
        // A part whose container was never mapped is not there, and what it had may be another's soon.
        Some((.., parts)) => {
            for part in &parts {
                match core.kept_part(part.layer, part.part) {
                    Some(kept) if kept == *part => {}
                    // The journal knows of more.
                    Some(kept) if kept.slot == part.slot => _ = shadow.parts.keep(&kept),
                    _ => shadow.parts.forget(part),
                }
            }
            shadow.parts.retain(|layer| core.is_layer(layer));
        }
        None => shadow.clear(),
    }
    // Before the epoch is raised.
    shadow.holds_for(owner, epoch);
    core.start();
    let mirrors = superblock.mirrors();
    let shared = Shared::new(&spec.name, (owner.pool, mirrors), (open, absent), shadow);
    // The others are given up.
    let lanes = order.iter().map(|at| at.and_then(|at| lanes[at].keep())).collect();
    Ok((Work::new(number, owner, Arc::new(shared), core, lanes), gone))
}

/// Erases what says that a PV is of a pool that it has left. It is gone whether that can be written or not.
pub(crate) fn erase(inbox: &Inbox, pv: &OpenPv) {
    let Ok(lane) = lane_of(inbox, pv) else { return };
    let erased = MARKS_AT.into_iter().all(|at| lane.write(at, &[0; SECTOR_BYTES]).is_ok());
    let _ = erased && lane.flush().is_ok();
}

/// Where members are that are not there: the paths that are left over, of the same failure group first; of those that are to leave those paths.
fn known_by(
    superblock: &Superblock,
    order: &[Option<usize>],
    (mut absent, leaving): (Vec<NotThere>, Vec<PathBuf>),
    spec: &PoolSpec,
) -> Absent {
    let members = (0..).zip(&superblock.members).zip(order);
    let missing =
        members.filter(|((_, member), at)| at.is_none() && member.state != MemberState::Gone);
    let mut leaving = leaving.into_iter();
    let of = |(number, member): (u16, &Member)| {
        let group = |one: &NotThere| spec.group_of(&one.path) == member.group;
        let at = absent.iter().position(group).or((!absent.is_empty()).then_some(0));
        let leaves = |path: PathBuf| (number, path, None);
        if member.state == MemberState::Dismissed
            && let Some(known) = leaving.next().map(leaves)
        {
            return known;
        }
        match at.map(|at| absent.remove(at)) {
            Some(NotThere { path, error }) => (number, path, Some(error.to_string())),
            None if leaving.len() > 0 => leaving.next().map(leaves).unwrap_or_default(),
            // Nobody said where it is.
            None => (number, member.pv.to_string().into(), None),
        }
    };
    missing.map(|(member, _)| member).map(of).collect()
}

/// A lane of the thread to a PV.
pub(crate) fn lane_of<'a>(inbox: &'a Inbox, pv: &OpenPv) -> Result<PvLane<'a>, PoolError> {
    PvLane::new(inbox, pv).map_err(|refused| match refused {
        Refused::Pool(error) => error,
        Refused::Volume(error) => of_pv(&pv.path, error),
    })
}

pub(crate) fn chunks_of(pv: &FileVolume) -> u32 {
    chunks_for(pv.geometry().bytes / CHUNK_BYTES * CHUNK_BYTES)
}

fn unread(pv: &OpenPv) -> PoolError {
    let what = format!("PV {} cannot be read", pv.path.display());
    PoolError::new(what, "see whether the device is in order")
}

fn front(pv: &OpenPv, lane: &PvLane<'_>) -> Result<Vec<u8>, PoolError> {
    lane.read(0, 0, signature::FRONT).map_err(|_| unread(pv))
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
    spec: &PoolSpec,
    pool: Uuid,
    pv: &OpenPv,
    lane: &PvLane<'_>,
) -> Result<Option<Label>, PoolError> {
    let front = front(pv, lane)?;
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
    pool: &Superblock,
    (pv, at): (&OpenPv, At),
    lane: &PvLane<'_>,
) -> Result<NewPv, PoolError> {
    let front = front(pv, lane)?;
    // What was about to be added, or was removed, has a label that no superblock names.
    let label = label(pool.pool, pv, &front)?;
    let member = label.and_then(|label| member_of(pool, &label));
    if member.is_some_and(Member::left_while_away) {
        let path = pv.path.display();
        let what = format!(
            "PV {path} was removed from this pool while it was away, and holds what it had then"
        );
        let help = "remove that with `wipefs -a`, if nobody needs it, and add it as a new one";
        return Err(PoolError::new(what, help));
    }
    if member.is_some_and(|member| member.state != MemberState::Gone) {
        let what = format!("PV {} is in this pool already, by another path", pv.path.display());
        return Err(PoolError::new(what, "name each device once"));
    }
    if let (None, Some(found)) = (label, signature::found(&front)) {
        return Err(holds(pv, found));
    }
    let there = |member: &&Member| member.state != MemberState::Gone && member.group == at.group;
    if !pool.members.iter().any(|member| there(&member)) {
        let what = format!("PV {} cannot begin another failure group", pv.path.display());
        return Err(PoolError::new(
            what,
            "add it to a failure group that the pool has; one with a mirror is made so from the beginning",
        ));
    }
    let At { tier, group } = at;
    let new = NewPv { pv: fresh_uuid(), chunks: chunks_of(&pv.volume), tier, group };
    make(pool.pool, &[new]).map(|_| new).map_err(|error| too_small(pv, &error))
}

/// Makes a pool, or makes it anew where that was not finished.
fn new_pool(pool: Uuid, pvs: &[Candidate], lanes: &[PvLane<'_>]) -> Result<(), PoolError> {
    let new = |candidate: &Candidate| {
        let chunks = chunks_of(&candidate.pv.volume);
        let At { tier, group } = candidate.at;
        NewPv { pv: fresh_uuid(), chunks, tier, group }
    };
    let new: Vec<NewPv> = pvs.iter().map(new).collect();
    if !new.is_empty() && new.iter().all(|pv| pv.group == 1) {
        return Err(PoolError::new(
            "all its PVs are in the second failure group",
            "leave some to the first: each chunk is on a PV of either",
        ));
    }
    let places = || new.iter().map(|pv| (pv.tier, pv.group));
    let lacks = |(tier, group): (u8, u8)| {
        places().any(|(_, of)| of == group) && !places().any(|of| of == (tier, group))
    };
    if let Some((tier, _)) = places().find(|(tier, _)| lacks((*tier, 0)) || lacks((*tier, 1))) {
        return Err(PoolError::new(
            format!("tier {tier} of it has PVs of one failure group, and another tier of two"),
            "give each tier PVs of both, or all of them PVs of one",
        ));
    }
    let (_, parts) = make(pool, &new).map_err(|error| {
        let small = new
            .iter()
            .position(|one| matches!(error, pool::NotMade::Small { pv, .. } if one.pv == pv));
        too_small(&pvs[small.unwrap_or(0)].pv, &error)
    })?;
    for part in parts {
        for (pv, at, bytes) in part {
            let (lane, path) = (&lanes[usize::from(pv)], pvs[usize::from(pv)].pv.path.display());
            lane.write(at, &bytes).map_err(|_| {
                let what = format!("PV {path} cannot be written");
                PoolError::new(what, "see whether the device is in order")
            })?;
        }
        for (lane, candidate) in lanes.iter().zip(pvs) {
            lane.flush().map_err(|_| {
                let what = format!("PV {} cannot be flushed", candidate.pv.path.display());
                PoolError::new(what, "see whether the device is in order")
            })?;
        }
    }
    Ok(())
}

/// The superblock that counts, and which of the PVs each of its members is; those that are gone are none.
fn in_order(
    pool: Uuid,
    pvs: &[Candidate],
    lanes: &[PvLane<'_>],
    absent: &mut Vec<NotThere>,
) -> Result<(Superblock, Vec<Option<usize>>), PoolError> {
    let plain = |what: String| PoolError { what, help: None };
    let mut source = Reading(lanes.iter().map(Some).collect());
    let mut copies: Vec<(bool, (Superblock, Place))> = Vec::new();
    let mut whose = Vec::new();
    for (number, candidate) in (0..).zip(pvs) {
        let found = match superblocks(&mut source, number) {
            Ok(found) => found,
            Err(_) if candidate.must => {
                let path = candidate.pv.path.clone();
                absent.push(NotThere { path, error: unread(&candidate.pv) });
                whose.push(None);
                continue;
            }
            Err(error) => return Err(plain(error.to_string())),
        };
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
    let superblock = match chosen {
        Ok(chosen) => chosen.superblock,
        Err(NotChosen::Fork { first, second, .. }) => {
            let side = |side: &[Uuid]| {
                let its = pvs
                    .iter()
                    .zip(&whose)
                    .filter(|(_, pv)| pv.is_some_and(|pv| side.contains(&pv)));
                let paths: Vec<String> =
                    its.map(|(of, _)| of.pv.path.display().to_string()).collect();
                paths.join(", ")
            };
            let what = format!(
                "the pool was written to on two sides apart from each other, by {} and by {}",
                side(&first),
                side(&second)
            );
            return Err(PoolError::new(
                what,
                "decide which side's changes are given up, and take the PVs of that side away, or overwrite their first 4096 bytes (the guide: storage pools, two sides)",
            ));
        }
        Err(error) => return Err(plain(error.to_string())),
    };
    let mut order = Vec::new();
    for member in &superblock.members {
        let at = whose.iter().position(|pv| *pv == Some(member.pv));
        match at {
            _ if member.state == MemberState::Gone => order.push(None),
            Some(at) => order.push(Some(at)),
            // Whether the pool opens without it is said by what is on the others.
            None if superblock.mirrors() => order.push(None),
            None => {
                let what = format!("PV {} of the pool is missing", member.pv);
                return Err(PoolError::new(
                    what,
                    "put the device back; the pool opens when all its PVs are there",
                ));
            }
        }
    }
    let extra = |at: &usize| {
        let is_absent = absent.iter().any(|one| one.path == pvs[*at].pv.path);
        pvs[*at].must && !is_absent && !order.contains(&Some(*at))
    };
    if let Some(extra) = (0..pvs.len()).find(extra) {
        let what = format!("PV {} is no member of the pool", pvs[extra].pv.path.display());
        return Err(PoolError::new(what, "correct the paths of its PVs"));
    }
    Ok((superblock, order))
}

/// Whether a PV was of the pool and is nobody's, as its label has it: its superblocks may be left of what it was before another took it. One that was away when it was removed keeps what it has.
fn is_gone(superblock: &Superblock, pv: &OpenPv, lane: &PvLane<'_>) -> bool {
    let label = front(pv, lane).ok().and_then(|front| label(superblock.pool, pv, &front).ok()?);
    let member = label.and_then(|label| member_of(superblock, &label));
    member.is_some_and(|member| member.state == MemberState::Gone && !member.left_while_away())
}

/// What a PV with this label is to the pool, if it ever was in it.
fn member_of<'a>(pool: &'a Superblock, label: &Label) -> Option<&'a Member> {
    pool.members.iter().find(|member| member.pv == label.pv)
}

/// Nobody's so far.
fn fresh_uuid() -> Uuid {
    let (first, second) = (drawn().to_be_bytes(), drawn().to_be_bytes());
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

/// A UUID of 32 hexadecimal digits, with dashes or without.
pub(crate) fn parse(text: &str) -> Option<Uuid> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    let text = std::str::from_utf8(&digits).ok().filter(|text| text.len() == 32)?;
    Some(Uuid(u128::from_str_radix(text, 16).ok()?.to_be_bytes()))
}
