//! A pool that nobody has open and that does not open any more: what is left of it, and its map made again.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use block::Here;
use pool::format::{MemberState, Uuid};
use pool::{ReadFailed, Source, choose, superblocks};

use crate::PoolError;
use crate::table::OpenPv;
use crate::thread::open_pv;

/// What there is after a rescue.
#[derive(Clone, Debug)]
pub struct Rescued {
    /// The pool.
    pub pool: Uuid,
    /// Its LUs.
    pub lus: Vec<pool::RescuedLu>,
    /// What was found, in words.
    pub found: Vec<String>,
    /// Blocks that are to be written, or were.
    pub writes: usize,
}

/// PVs, by number of the member or of the candidate. Nothing is read past an end.
struct Files(Vec<Option<File>>);

impl Source for Files {
    fn read(&mut self, pv: u16, at: u64, bytes: usize) -> Result<Vec<u8>, ReadFailed> {
        let failed = || ReadFailed { pv, at };
        let file = self.0.get(usize::from(pv)).and_then(Option::as_ref).ok_or_else(failed)?;
        let mut all = vec![0; bytes];
        file.read_exact_at(&mut all, at).map_err(|_| failed())?;
        Ok(all)
    }

    fn is_there(&mut self, pv: u16) -> bool {
        self.0.get(usize::from(pv)).is_some_and(Option::is_some)
    }
}

fn wrong(path: &Path, what: impl std::fmt::Display) -> PoolError {
    PoolError::new(format!("PV {}: {what}", path.display()), "see whether the device is in order")
}

/// Looks at a pool by all its PVs, which nobody may have open meanwhile, and with `write` makes its map again.
///
/// # Errors
///
/// Names the PV, or what cannot be made up for.
pub fn rescue(paths: &[PathBuf], write: bool) -> Result<Rescued, PoolError> {
    // Their locks are held until it is over.
    let mut held: Vec<OpenPv> = Vec::new();
    let mut files = Vec::new();
    for path in paths {
        held.push(open_pv(&Here, None, "rescue", path, false, &mut |_| ())?);
        let file = OpenOptions::new().read(true).write(write).open(path);
        files.push(Some(file.map_err(|error| wrong(path, error))?));
    }
    let plain = |error: &dyn std::fmt::Display| PoolError { what: error.to_string(), help: None };
    let mut candidates = Files(files);
    let (mut copies, mut owner) = (Vec::new(), Vec::new());
    for (number, path) in (0..).zip(paths) {
        let found = superblocks(&mut candidates, number).map_err(|error| wrong(path, error))?;
        owner.push(found.first().map(|(_, place)| place.pv));
        copies.extend(found);
    }
    let superblock = choose(&copies).map_err(|error| plain(&error))?.superblock;
    let mut members = Files(Vec::new());
    let mut whose = Vec::new();
    for member in &superblock.members {
        let at = owner.iter().position(|pv| *pv == Some(member.pv));
        let at = at.filter(|_| member.state != MemberState::Gone);
        members.0.push(at.and_then(|at| candidates.0[at].take()));
        whose.push(at);
    }
    let rescue = pool::rescue(&mut members).map_err(|error| plain(&error))?;
    if write {
        let of = |pv: u16| whose[usize::from(pv)].map_or(Path::new(""), |at| &paths[at]);
        for (pv, at, bytes) in &rescue.writes {
            let file = members.0.get(usize::from(*pv)).and_then(Option::as_ref);
            let written = file.map(|file| file.write_all_at(bytes, *at));
            written.unwrap_or(Ok(())).map_err(|error| wrong(of(*pv), error))?;
        }
        for (pv, file) in (0..).zip(&members.0) {
            let flushed = file.as_ref().map_or(Ok(()), File::sync_all);
            flushed.map_err(|error| wrong(of(pv), error))?;
        }
    }
    drop(held);
    Ok(Rescued {
        pool: rescue.superblock.pool,
        lus: rescue.lus,
        found: rescue.found.iter().map(ToString::to_string).collect(),
        writes: rescue.writes.len(),
    })
}
