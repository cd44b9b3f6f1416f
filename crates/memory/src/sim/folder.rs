//! Small files that are replaced whole: what goes wrong with them, and what a power failure leaves of them.
//!
//! The files are real. Names reach the platter in their order, as a journal brings them there, all of them with a sync of their folder; what a file has
//! when it was synced. Of one that was not, the power leaves any part.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{die_at, met, once_in, pick, runs, tell};

/// Names, each with the number of its file.
type Names = BTreeMap<PathBuf, u64>;

#[derive(Default)]
struct Folder {
    path: PathBuf,
    /// Each state of the names that the platter may have: what it has, and each that came since.
    states: Vec<Names>,
    /// What files have on the platter, as far as they were synced.
    synced: BTreeMap<u64, Vec<u8>>,
    /// A step fails once in so many times; 0: never.
    fails_every: u64,
    /// The process dies soon after a name has changed, once in so many times.
    dies_every: u64,
    /// The last sync of the folder failed.
    has_failed: bool,
}

thread_local! {
    static FOLDER: RefCell<Folder> = RefCell::default();
}

impl Folder {
    fn names(&self) -> Names {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let kept = entries.filter(|entry| entry.file_name().as_encoded_bytes().contains(&b'.'));
        kept.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.ino()))).collect()
    }
}

/// A run begins: in this folder files whose names have a dot are such. A step of theirs fails, or the process dies behind it, once in so many times.
pub fn begin(path: &Path, fails_every: u64, dies_every: u64) {
    FOLDER.set(Folder { path: path.to_owned(), fails_every, dies_every, ..Folder::default() });
}

/// Nothing fails any more.
pub fn heal() {
    FOLDER.with_borrow_mut(|folder| (folder.fails_every, folder.dies_every) = (0, 0));
}

/// A step is about to be made: it may fail. `whole`: it is the sync of the folder. From one that failed to the next nothing does: it is undone meanwhile.
///
/// # Errors
///
/// When it does.
pub fn step(whole: bool) -> io::Result<()> {
    if !runs() {
        return Ok(());
    }
    let (every, again) = FOLDER.with_borrow_mut(|folder| {
        if folder.states.is_empty() {
            let names = folder.names();
            folder.states.push(names);
        }
        let again = folder.has_failed;
        folder.has_failed &= !whole;
        (folder.fails_every, again)
    });
    if again || !once_in(every) {
        return Ok(());
    }
    met("keeping fails");
    tell(|| "what is kept cannot be written".into());
    FOLDER.with_borrow_mut(|folder| folder.has_failed |= whole);
    let error = if once_in(2) { libc::ENOSPC } else { libc::EIO };
    Err(io::Error::from_raw_os_error(error))
}

/// A name was made, changed or removed.
pub fn renamed() {
    let dies_every = FOLDER.with_borrow_mut(|folder| {
        let names = folder.names();
        folder.states.push(names);
        folder.dies_every
    });
    if runs() && once_in(dies_every) {
        die_at(Some(pick(3) as u64));
    }
}

/// A file was synced.
pub fn synced(file: &fs::File) {
    let Ok(found) = file.metadata() else { return };
    FOLDER.with_borrow_mut(|folder| {
        let names = folder.names();
        let path = names.iter().find(|(_, inode)| **inode == found.ino());
        if let Some(bytes) = path.and_then(|(path, _)| fs::read(path).ok()) {
            folder.synced.insert(found.ino(), bytes);
        }
    });
}

/// The folder was synced.
pub fn folder_synced() {
    FOLDER.with_borrow_mut(|folder| folder.states = vec![folder.names()]);
}

/// The host loses its power.
pub fn lose_power() {
    let count = FOLDER.with_borrow(|folder| folder.states.len());
    if count == 0 {
        return;
    }
    let at = pick(count);
    FOLDER.with_borrow_mut(|folder| {
        let state = folder.states.swap_remove(at);
        let now = folder.names();
        let text = |inode: &u64| {
            let synced = folder.synced.get(inode).cloned();
            synced.unwrap_or_else(|| {
                let path = now.iter().find(|(_, other)| *other == inode).map(|(path, _)| path);
                let mut torn = path.and_then(|path| fs::read(path).ok()).unwrap_or_default();
                torn.truncate(pick(torn.len() + 1));
                torn
            })
        };
        let files: Vec<(PathBuf, Vec<u8>)> =
            state.iter().map(|(path, inode)| (path.clone(), text(inode))).collect();
        now.keys().for_each(|path| drop(fs::remove_file(path)));
        folder.synced.clear();
        for (path, bytes) in files {
            let written = fs::write(&path, &bytes);
            debug_assert!(written.is_ok(), "{written:?}");
            if let Ok(found) = fs::metadata(&path) {
                folder.synced.insert(found.ino(), bytes);
            }
        }
        folder.states = vec![folder.names()];
    });
}
