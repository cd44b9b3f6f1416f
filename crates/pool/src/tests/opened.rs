//! What a crash left, opened and read.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::disk::{Image, Part, Write};
use super::oracle::{Death, Oracle};
use super::world::{POLICY, SERVER};
use crate::format::MemberState;
use crate::pool::{
    Effect, Extent, NotOpened, Outcome, Payload, Pool, Reader, Request, Rule, Shadow, Source,
};

/// Nothing is asked of a PV that is removed without being there.
pub(super) fn refuse_strangers(pool: &Pool, effect: &Effect) {
    let members = &pool.superblock().members;
    for pv in effect.pvs().into_iter().flatten() {
        let member = members.get(usize::from(pv));
        let stranger = |member: &crate::format::Member| {
            member.state == MemberState::Dismissed || member.left_while_away()
        };
        assert!(!member.is_some_and(stranger), "{effect:?} is for a PV that has left");
    }
}

/// Parts of each chunk that are read of what a crash left: bytes from its beginning. The last is where a container has its first slot.
pub(super) const READ: [(u64, u64); 3] = [(0, 12 << 10), (60 << 10, 8 << 10), (128 << 10, 8 << 10)];

/// Opens what a crash left, and holds all of it against the oracle.
pub(super) fn judge(
    image: Image<'_>,
    shadow: Option<&Shadow>,
    oracle: &Oracle,
    broken: Option<Rule>,
) -> Result<(), String> {
    let death = if shadow.is_some() { Death::Process } else { Death::Power };
    let mut opened = Opened::open(image, shadow, broken).map_err(|error| error.to_string())?;
    opened.judge(death, oracle)?;
    if opened.pool.superblock().features[0] & crate::choose::MIRROR == 0 {
        return Ok(());
    }
    // What was away returns, and both legs are the same.
    opened.bring_back()?;
    let mut legs = Vec::new();
    for last in [false, true] {
        opened.pool.last_leg = last;
        opened.judge(death, oracle).map_err(|wrong| format!("{wrong}\n  last leg: {last}"))?;
        legs.push(opened.read_all()?);
    }
    if legs[0] != legs[1] {
        return Err("both legs are there, and differ".to_string());
    }
    Ok(())
}

/// What is read of an LU: which, from which byte on.
pub(super) type Found = Vec<(u32, u64, Vec<u8>)>;

/// Opens what a crash left, and reads all LUs.
pub(super) fn read_all(
    image: Image<'_>,
    shadow: Option<&Shadow>,
    broken: Option<Rule>,
) -> Result<(BTreeMap<u32, u32>, Found), String> {
    let mut opened =
        Opened::open(image, shadow, broken).map_err(|error| format!("not opened: {error}"))?;
    let found = opened.read_all()?;
    Ok((opened.pool.lus().collect(), found))
}

/// A pool that was opened after a crash. Its effects are carried out at once, in order.
pub(super) struct Opened<'a> {
    pub(super) pool: Pool,
    image: Image<'a>,
    buffers: BTreeMap<u64, (u32, u64, Vec<u8>)>,
    tag: u64,
}

impl<'a> Opened<'a> {
    pub(super) fn open(
        mut image: Image<'a>,
        shadow: Option<&Shadow>,
        broken: Option<Rule>,
    ) -> Result<Opened<'a>, NotOpened> {
        let mut pool = Pool::open(&mut image, SERVER, shadow, POLICY)?;
        pool.broken = broken;
        pool.start();
        Ok(Opened { pool, image, buffers: BTreeMap::new(), tag: 0 })
    }

    fn carry_out(&mut self) -> Result<(), String> {
        loop {
            for held in self.pool.held_copies() {
                self.pool.let_copy(held);
            }
            let effects = self.pool.effects();
            if effects.is_empty() {
                return Ok(());
            }
            for effect in effects {
                refuse_strangers(&self.pool, &effect);
                if self.image.gone.is_some() && effect.pvs().contains(&self.image.gone) {
                    return Err(format!("it needs the PV that is away, {:?}", effect.pvs()));
                }
                let image = &mut self.image;
                let (op, outcome) = match effect {
                    Effect::Write { op, pv, at, what: Payload::Own(bytes), .. } => {
                        image.apply(&Write { pv, at, bytes: Rc::new(bytes) }, Part::All);
                        (op, Outcome::Done)
                    }
                    // PVs that were leaving go on leaving.
                    Effect::Write { op, pv, at, what: Payload::Zeros(bytes), .. } => {
                        let bytes = Rc::new(vec![0; bytes as usize]);
                        image.apply(&Write { pv, at, bytes }, Part::All);
                        (op, Outcome::Done)
                    }
                    Effect::Copy { op, from, to: (pv, at), bytes } => {
                        let bytes = Rc::new(image.read(from.0, from.1, bytes as usize).unwrap());
                        image.apply(&Write { pv, at, bytes }, Part::All);
                        (op, Outcome::Done)
                    }
                    Effect::Read { op, pv, at, bytes, to } => {
                        let found = image.read(pv, at, bytes as usize).unwrap();
                        if let Reader::Client { tag, from } = to {
                            let buffer = &mut self.buffers.get_mut(&tag).unwrap().2;
                            buffer[from as usize..][..found.len()].copy_from_slice(&found);
                        }
                        (op, Outcome::Bytes(found))
                    }
                    Effect::Zero { tag, from, bytes } => {
                        let buffer = &mut self.buffers.get_mut(&tag).unwrap().2;
                        buffer[from as usize..][..bytes as usize].fill(0);
                        continue;
                    }
                    Effect::Give { tag, from, bytes } => {
                        let buffer = &mut self.buffers.get_mut(&tag).unwrap().2;
                        buffer[from as usize..][..bytes.len()].copy_from_slice(&bytes);
                        continue;
                    }
                    Effect::Flush { op, .. } | Effect::Drain { op } => (op, Outcome::Done),
                    Effect::Answer { result: Ok(_), .. } => continue,
                    other => return Err(format!("{other:?}")),
                };
                self.pool.done(op, outcome);
            }
        }
    }

    fn read_all(&mut self) -> Result<Found, String> {
        self.carry_out()?;
        if !self.pool.is_serving() {
            return Err("it does not come to serve".to_string());
        }
        for (lu, chunks) in self.pool.lus().collect::<Vec<_>>() {
            for (chunk, (at, bytes)) in
                (0..chunks).flat_map(|chunk| READ.iter().map(move |read| (chunk, *read)))
            {
                let at = u64::from(chunk) * crate::format::CHUNK_BYTES + at;
                self.tag += 1;
                self.buffers.insert(self.tag, (lu, at, vec![0x77; bytes as usize]));
                self.pool.submit(self.tag, Request::Read(Extent { lu, at, bytes }));
            }
        }
        self.carry_out()?;
        Ok(std::mem::take(&mut self.buffers).into_values().collect())
    }

    fn judge(&mut self, death: Death, oracle: &Oracle) -> Result<(), String> {
        let found = self.read_all()?;
        oracle.judge_lus(&self.pool.lus().collect())?;
        if let Some(lu) = self.pool.torn() {
            return Err(format!("what LU {lu} needs is in several tiers"));
        }
        found.iter().try_for_each(|(lu, at, bytes)| oracle.judge(death, *lu, *at, bytes))
    }

    /// PVs that were away return, and everything gets what it missed.
    fn bring_back(&mut self) -> Result<(), String> {
        self.image.gone = None;
        for pv in 0..self.pool.superblock().members.len() as u16 {
            let state = self.pool.superblock().members[usize::from(pv)].state;
            if self.pool.is_away(pv) && state != MemberState::Dismissed {
                self.tag += 1;
                self.pool.submit(self.tag, Request::ReturnPv { pv });
                self.carry_out()?;
            }
        }
        let resync = self.pool.resync();
        if resync.failed > 0 || resync.over != resync.planned {
            return Err(format!("not all is whole again: {resync:?}"));
        }
        let state = |pv: u16| self.pool.superblock().members[usize::from(pv)].state;
        let mut all = (0..self.pool.superblock().members.len() as u16).map(state);
        if !all.all(|state| {
            matches!(state, MemberState::In | MemberState::Gone | MemberState::Leaving)
        }) {
            let states: Vec<_> =
                (0..self.pool.superblock().members.len() as u16).map(state).collect();
            return Err(format!(
                "not whole again: {states:?}, {:?}, {resync:?}",
                self.pool.halves()
            ));
        }
        Ok(())
    }
}

impl Effect {
    /// Its number.
    pub(super) fn op(&self) -> u64 {
        match self {
            Effect::Write { op, .. }
            | Effect::Read { op, .. }
            | Effect::Copy { op, .. }
            | Effect::Flush { op, .. }
            | Effect::Drain { op } => *op,
            Effect::Zero { .. } | Effect::Give { .. } | Effect::Answer { .. } => {
                unreachable!("nobody tells of it")
            }
        }
    }
}
