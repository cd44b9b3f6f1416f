//! PVs come, grow with their devices, and go, as whoever has the pool asks.

use std::path::PathBuf;
use std::sync::Arc;

use block::{Files, OpenEvent, Volume};
use pool::{Fault, Request};

use crate::PoolError;
use crate::open::{chunks_of, lane_of, may_join, of_pv};
use crate::post::Message;
use crate::table::PvView;
use crate::thread::{At, PoolHandle, ask, open_pv};
use crate::work::Work;

impl PoolHandle {
    /// Adds PVs, each with its tier and failure group: all of them are looked at before the first is written to.
    ///
    /// # Errors
    ///
    /// Names the PV and what mends it. Those before it are in the pool only if it failed while it was written to.
    pub fn add_pvs(
        &self,
        files: &dyn Files,
        server: Option<&str>,
        paths: &[(PathBuf, impl Into<At> + Copy)],
        event: &mut dyn FnMut(OpenEvent),
    ) -> Result<(), PoolError> {
        let mut pvs = Vec::new();
        for (path, at) in paths {
            let pv = open_pv(files, server, &self.shared.name, path, false, event)?;
            pvs.push((pv, (*at).into()));
        }
        let shared = Arc::clone(&self.shared);
        let superblock = ask(&self.inbox, |reply| Message::Superblock(shared, reply))?;
        let mut new = Vec::new();
        for (pv, at) in pvs {
            let lane = lane_of(&self.inbox, &pv)?;
            let joins = may_join(&superblock, (&pv, at), &lane)?;
            new.push((pv, lane, joins));
        }
        for (pv, mut lane, new) in new {
            let shared = Arc::clone(&self.shared);
            let Some(lane) = lane.keep() else { continue };
            ask(&self.inbox, |reply| Message::Join(shared, (pv, lane, new), reply))??;
        }
        Ok(())
    }

    /// Begins to remove a PV, which goes on by itself, also after the pool was opened again: what is on it moves to the others first.
    ///
    /// # Errors
    ///
    /// What is on it has no room elsewhere.
    pub fn remove_pv(&self, pv: &PvView) -> Result<(), PoolError> {
        self.leave(pv, false)
    }

    /// … which was promised before: it begins when there is room, and is told as a trouble until then.
    ///
    /// # Errors
    ///
    /// It cannot be removed, whatever room there is.
    pub fn remove_promised_pv(&self, pv: &PvView) -> Result<(), PoolError> {
        self.leave(pv, true)
    }

    fn leave(&self, pv: &PvView, promised: bool) -> Result<(), PoolError> {
        let (shared, which) = (Arc::clone(&self.shared), (pv.space.pv, promised));
        let begun = ask(&self.inbox, |reply| Message::Leave(shared, which, reply))?;
        begun.map_err(|fault| {
            let path = pv.path.display();
            if fault == Fault::NoSpace {
                let what = format!("PV {path}: what is on it has no room on the other PVs");
                return PoolError::new(what, "add a PV first, or remove LUs");
            }
            let what = format!("PV {path} cannot be removed: {fault}");
            PoolError::new(what, "see `trunkline pool show`")
        })
    }

    /// Uses all that is on PVs that have become larger; those that are away have to return first. Nothing waits for it but who asks.
    ///
    /// # Errors
    ///
    /// The first that could not be: others are used.
    pub fn grow_pvs(&self) -> Result<(), PoolError> {
        let mut first = Ok(());
        for pv in self.shared.view().pvs {
            let (number, chunks) = (pv.space.pv, pv.space.chunks);
            let there = self.shared.pv(number).filter(|_| pv.space.state.is_there());
            let Some(there) = there else { continue };
            // Its size, as it is now: nothing of it is changed.
            let looked = there.volume.resize(0).map_err(|error| of_pv(&there.path, error));
            let found = looked.map(|()| chunks_of(&there.volume));
            let grown = found.and_then(|found| match found > chunks {
                true => self.grow_pv(&pv, found),
                false => Ok(()),
            });
            first = first.and(grown);
        }
        first
    }

    fn grow_pv(&self, pv: &PvView, chunks: u32) -> Result<(), PoolError> {
        let (shared, number, path) = (Arc::clone(&self.shared), pv.space.pv, pv.path.display());
        let room = ask(&self.inbox, |reply| Message::Room(shared, (number, chunks), reply))?;
        room.map_err(|what| {
            let help = "enlarge the file system of its data plane's run directory";
            PoolError::new(format!("PV {path}: {what}"), help)
        })?;
        self.core(Request::GrowPv { pv: number, chunks })?.map(drop).map_err(|fault| {
            let what = format!("PV {path} is used as far as it was: {fault}");
            PoolError::new(what, "see `trunkline pool show`")
        })
    }
}

impl Work {
    /// Makes room in the shadow, before the pool knows of them, for the chunks of a PV that is about to have so many.
    pub(crate) fn make_room(&self, pv: u16, chunks: u32) -> Result<(), String> {
        let superblock = self.superblock();
        let member = superblock.members.get(usize::from(pv));
        match member.filter(|member| member.chunks < chunks) {
            Some(member) => self.shared.shadow.grow(pv, member.chunks, (member.pv, chunks)),
            None => Ok(()),
        }
    }
}
