//! Witnesses: open files of the control plane's, through which it learns of writes that were lost, whatever becomes of data planes.
//!
//! The kernel tells of a write that it could not bring to the disk to each open file that was there before, once, and to one that is made later only if
//! nobody was told yet. What a data plane was told, or was still to be told, dies with its open files; its successor's know nothing of it. So
//! the control plane has one of its own for each file that a data plane writes, made when that first opened it. A data plane that opens the
//! file again asks what it has seen. Nobody flushes through it: it is only asked here, where the answer is kept.
//!
//! ```text
//!  data plane ── opens its file, and the descriptors for its flushes
//!             ── asks: was something lost?   ──► the witness of that file, or a new one
//!             ◄── yes or no, and the witness ──  kept until the file is not to be written any more
//!  ...
//!             ── the witness ──► the next control plane, when that comes
//! ```
//!
//! What was lost before the data plane had its descriptors is what the witness has seen; of what is lost later they are told themselves, and the data
//! plane leaves a note with the witness ([`memory::cache::note_loss`]), before it says so to anybody: of a failed flush of a device's own cache the kernel
//! tells no witness. A loss is known until a data plane has ended in good order that said so to its clients ([`Witnesses::told`]), or until
//! one says that it has made up for it ([`super::Opener::made_up_for`]): a pool whose other legs have what a PV lost.
//!
//! A file that another data plane is to write takes its witness along: [`Passing`].

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::{again, locked};

/// The witnesses of the files of one data plane, by path.
#[derive(Debug, Default)]
pub struct Witnesses {
    all: Mutex<BTreeMap<PathBuf, Witness>>,
    passing: Arc<Passing>,
}

/// What the data planes of a server have in common: witnesses of files that one of them has let go of and another is to write.
#[derive(Debug, Default)]
pub struct Passing(Mutex<Between>);

#[derive(Debug, Default)]
struct Between {
    /// Files that any data plane is to write.
    wanted: BTreeSet<PathBuf>,
    witnesses: BTreeMap<PathBuf, Witness>,
}

impl Passing {
    /// These files are to be written from now on, by whichever data plane. What is kept of others is returned, as by [`Witnesses::keep`].
    #[must_use]
    pub fn want(&self, paths: BTreeSet<PathBuf>) -> Vec<Arc<OwnedFd>> {
        let mut between = locked(&self.0);
        between.wanted = paths;
        let Between { wanted, witnesses } = &mut *between;
        let gone = witnesses.extract_if(.., |path, _| !wanted.contains(path));
        gone.map(|(_, witness)| witness.file).collect()
    }

    fn take(&self, path: &Path, of: &Identity) -> Option<Witness> {
        let mut between = locked(&self.0);
        let witness = between.witnesses.remove(path)?;
        if witness.of == *of {
            return Some(witness);
        }
        between.witnesses.insert(path.to_owned(), witness);
        None
    }
}

#[derive(Debug)]
struct Witness {
    of: Identity,
    file: Arc<OwnedFd>,
    lost: bool,
}

/// File system and inode, or which device. A witness keeps them from becoming another file's.
#[derive(Debug, PartialEq, Eq)]
enum Identity {
    File(u64, u64),
    Device(u64),
}

fn identity(file: impl AsFd) -> io::Result<Identity> {
    let found = rustix::fs::fstat(file)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => Ok(Identity::File(found.st_dev, found.st_ino)),
        FileType::BlockDevice => Ok(Identity::Device(found.st_rdev)),
        _ => Err(Errno::BADF.into()),
    }
}

impl Witness {
    /// Touches no disk.
    fn ask(&mut self) -> io::Result<bool> {
        let file = self.file.as_fd();
        self.lost |= memory::cache::has_lost(file)? || memory::cache::is_loss_noted(file)?;
        Ok(self.lost)
    }
}

impl Witnesses {
    /// Those of a data plane beside others.
    #[must_use]
    pub fn beside(passing: &Arc<Passing>) -> Witnesses {
        Witnesses { all: Mutex::default(), passing: Arc::clone(passing) }
    }

    /// Whether something was lost of this file, and its witness: the one that is kept for the path, or, for another file than that one's, a new one.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened again, or is neither a regular file nor a block device.
    pub fn of(&self, path: &Path, file: &OwnedFd) -> io::Result<(bool, Arc<OwnedFd>)> {
        let of = identity(file)?;
        if let Some(witness) = self.passing.take(path, &of) {
            let before = locked(&self.all).insert(path.to_owned(), witness);
            drop(before);
        }
        if let Some(witness) = locked(&self.all).get_mut(path).filter(|witness| witness.of == of) {
            return Ok((witness.ask()?, Arc::clone(&witness.file)));
        }
        let file = Arc::new(again(file)?);
        let new = Witness { of, file: Arc::clone(&file), lost: false };
        // What it sees is news to the data plane's own descriptors, too, which were made just now.
        let before = locked(&self.all).insert(path.to_owned(), new);
        drop(before);
        Ok((false, file))
    }

    /// A witness that an earlier control plane had made. One that is there already is the same, or of a later file.
    pub(super) fn take_back(&self, path: &Path, file: OwnedFd, lost: bool) -> io::Result<()> {
        // One that writes could hold the file's lock.
        let flags = rustix::fs::fcntl_getfl(&file)?;
        if flags.intersects(OFlags::PATH | OFlags::WRONLY | OFlags::RDWR) {
            return Err(Errno::BADF.into());
        }
        let witness = Witness { of: identity(&file)?, file: Arc::new(file), lost };
        locked(&self.all).entry(path.to_owned()).or_insert(witness);
        Ok(())
    }

    /// Clients were told of every loss of this file, by a data plane that has ended in good order.
    pub fn told(&self, path: &Path) {
        if let Some(witness) = locked(&self.all).get_mut(path) {
            // One that cannot be asked would have said so when its file was opened.
            let _ = witness.ask();
            let _ = memory::cache::note_loss(witness.file.as_fd(), false);
            witness.lost = false;
        }
    }

    /// Keeps those of these paths. The others go on to the next data plane, or, where none is to write the file, are returned, to be closed where it
    /// harms nobody: that can wait for a disk.
    #[must_use]
    pub fn keep(&self, wanted: impl Fn(&Path) -> bool) -> Vec<Arc<OwnedFd>> {
        let mut between = locked(&self.passing.0);
        let mut all = locked(&self.all);
        let mut closed = Vec::new();
        for (path, witness) in all.extract_if(.., |path, _| !wanted(path)) {
            let gone = match between.wanted.contains(&path) {
                true => between.witnesses.insert(path, witness),
                false => Some(witness),
            };
            closed.extend(gone.map(|witness| witness.file));
        }
        closed
    }
}
