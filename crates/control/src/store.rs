//! The store: the desired state on disk.
//!
//! A state is written as a whole set of changed records in one transaction that is durable when
//! [`Store::commit`] returns: after a crash at any moment the store holds the last committed state
//! or, while a commit was under way, the one before or after it, never a mixture.
//!
//! Records are JSON with a version of their own, so that a later program reads what an earlier one
//! wrote. Attributes that the program does not know are kept out of the model by validation, with an
//! error that names them.
//!
//! What is read is not believed: `seal` says by checksums whether it is what was written. Of each
//! state that is, a copy is kept beside the store (`good`), from which a server can start
//! when the store cannot be read.
//!
//! What a commit writes, here and there, is what was changed, however much there is beside it.

mod given;
mod good;
mod journal;
mod seal;

use crate::model::Desired;
use crate::model::allocations::Allocations;
use crate::operation::Journal;
use fabric::attribute::{Attributes, Object};
use protocol::planted;
use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
    backends::FileBackend,
};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where desired states are kept.
pub trait Store: Send {
    /// The last committed state; the empty one when there was none.
    fn load(&mut self) -> Result<Desired, StoreError>;

    /// The operations that were kept with it.
    fn journal(&self) -> Journal;

    /// Makes `next` the state, and `journal` the operations, durably and both or none. Records that did not change are not written.
    fn commit(&mut self, next: &Desired, journal: &Journal) -> Result<(), StoreError>;

    /// Whether it may hold something else than what was committed last: a commit that failed may still have come there. The next one settles it.
    fn is_unsure(&self) -> bool {
        false
    }

    /// Tries again to keep beside the state what could not be kept. Why it still cannot, if so.
    fn mend(&mut self) -> Option<String> {
        None
    }
}

/// Why the store could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another server uses it.
    #[error("the store {0} is in use by another `trunkline serve`; stop it, or use another --dir")]
    Busy(String),
    /// The engine or the file system failed.
    #[error("the store {path}: {problem}")]
    Engine {
        /// The file.
        path: String,
        /// What happened.
        problem: String,
    },
    /// It does not hold what was written.
    #[error("the store {path} is damaged: {problem}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It is not the file that was opened.
    #[error("the store {0} is another file than the one that this server has open")]
    Replaced(String),
    /// A record is from a later program or damaged.
    #[error("the store {path}: the record of {object} `{name}` cannot be read: {problem}")]
    Record {
        /// The file.
        path: String,
        /// Kind of object.
        object: String,
        /// Its name.
        name: String,
        /// What happened.
        problem: String,
    },
}

/// Key: kind of object and name. Value: a [`Record`] as JSON.
const OBJECTS: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("objects");

/// What was given out: see [`given`].
const GIVEN: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("given");
const GIVEN_KEY: &str = "given";
/// The [`seal::Seal`] of the whole state, as JSON under this key of the same table.
const SEAL_KEY: &str = "seal";

/// The version that this program writes. The first one had no checksums.
const RECORD_VERSION: u32 = 2;

/// An object as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    attributes: Attributes,
    /// See [`seal::of_object`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sum: Option<u64>,
}

fn newer(version: u32, up_to: u32) -> String {
    format!("it has version {version}, this program reads up to {up_to}; use a newer trunkline")
}

/// What is read of a record before it is known whether this program understands it.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// The store of one host: a redb database.
pub struct RedbStore {
    /// Nothing only between closing and opening again.
    database: Option<Database>,
    /// Opens it again after an error of the medium: the engine then refuses everything until that was done.
    open: Box<dyn FnMut() -> Result<Database, redb::DatabaseError> + Send>,
    failed: bool,
    path: String,
    /// Its file, if it is in one.
    place: Option<Arc<Place>>,
    /// Why it could not be mended, as far as that was said.
    trouble: Option<String>,
    /// The copy of the last good state.
    copy: Option<good::Good>,
    /// What it holds, once it was read or written: nobody else writes to it.
    holds: Option<Desired>,
    /// The sums of that.
    sums: Option<seal::Sums>,
    /// The records of what was given out are those of an earlier version.
    old: bool,
    /// Bytes of records that were written.
    #[cfg(test)]
    written: std::cell::Cell<u64>,
    /// The operations that it holds.
    journal: Journal,
}

/// The file of a store, and which one was opened.
struct Place {
    path: PathBuf,
    opened: Mutex<Option<(u64, u64)>>,
}

impl Place {
    /// What became of the file that was opened: somebody may have removed it, or put another one there.
    fn look(&self, shown: &str) -> Result<bool, StoreError> {
        let opened = *self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        match std::fs::metadata(&self.path) {
            Ok(there) if Some(which(&there)) == opened => Ok(true),
            Ok(_) => Err(StoreError::Replaced(shown.to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(engine(shown, &error)),
        }
    }
}

/// Which file it is, as long as it is open.
fn which(file: &std::fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Whether a path leads to this file.
pub(crate) fn is_at(path: &Path, file: &std::fs::File) -> bool {
    let both = (std::fs::metadata(path), file.metadata());
    matches!(both, (Ok(there), Ok(ours)) if which(&there) == which(&ours))
}

/// Where the copy of the last good state of a store is.
pub fn copy_of(store: &Path) -> PathBuf {
    store.with_extension("good")
}

/// The last good state of a store.
pub fn last_good(store: &Path) -> Result<Desired, StoreError> {
    let path = copy_of(store);
    let shown = path.display().to_string();
    good::read(&path).map_err(|unread| match unread {
        good::Unread::System(error) => engine(&shown, &error),
        good::Unread::Damaged(problem) => StoreError::Damaged { path: shown, problem },
    })
}

/// The engine or the file system failed.
fn engine(path: &str, problem: &dyn std::fmt::Display) -> StoreError {
    StoreError::Engine { path: path.to_owned(), problem: problem.to_string() }
}

/// Where a store is made that is to take the place of one.
fn draft_of(path: &Path) -> PathBuf {
    path.with_extension("restored")
}

/// Makes it, whole.
fn make_draft(path: &Path, state: &Desired, journal: &Journal) -> Result<(), StoreError> {
    let draft = draft_of(path);
    remove_if_there(&draft).map_err(|error| engine(&path.display().to_string(), &error))?;
    RedbStore::in_file(draft)?.commit(state, journal)
}

fn remove_if_there(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl RedbStore {
    /// Opens the store, and makes it when it is missing.
    ///
    /// One that is missing or empty where there was one is refused, as one that is damaged: it would be a state without objects.
    pub fn open(path: &Path) -> Result<RedbStore, StoreError> {
        let shown = path.display().to_string();
        let (path, copy) = (path.to_owned(), copy_of(path));
        let nothing = match std::fs::metadata(&path) {
            Ok(file) => file.len() == 0,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            // What is there is not known, and stays.
            Err(error) => return Err(engine(&shown, &error)),
        };
        if nothing && copy.try_exists().map_err(|error| engine(&shown, &error))? {
            let problem = "it is missing or empty, and was not".to_owned();
            return Err(StoreError::Damaged { path: shown, problem });
        }
        if nothing {
            // One that is being made is no store yet: whatever ends this, the next start finds a whole one, or none.
            make_draft(&path, &Desired::default(), &Journal::default())?;
            std::fs::rename(draft_of(&path), &path).map_err(|error| engine(&shown, &error))?;
        }
        let mut store = RedbStore::in_file(path)?;
        store.copy = Some(good::Good::new(copy));
        Ok(store)
    }

    /// One that keeps no copy of itself.
    fn in_file(path: PathBuf) -> Result<RedbStore, StoreError> {
        let shown = path.display().to_string();
        let place = Arc::new(Place { path, opened: Mutex::default() });
        let opens = Arc::clone(&place);
        let mut store = RedbStore::with(shown, move || {
            // Names of files and machines are nobody else's business; one that is there keeps its mode.
            let mut options = std::fs::OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = file.open(&opens.path)?;
            let opened = which(&file.metadata()?);
            let database = Database::builder().create_with_backend(FileBackend::new(file)?)?;
            *opens.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
            Ok(database)
        })?;
        store.place = Some(place);
        Ok(store)
    }

    /// Makes the file again, with all that is to be in it: whole before it is there, so that nobody finds an empty state.
    fn make_again(&mut self, next: &Desired, journal: &Journal) -> Result<(), StoreError> {
        let Some(place) = self.place.clone() else { return Ok(()) };
        let draft = draft_of(&place.path);
        let make = || {
            make_draft(&place.path, next, journal)?;
            std::fs::rename(&draft, &place.path).map_err(|error| engine(&self.path, &error))
        };
        make().inspect_err(|_| drop(remove_if_there(&draft)))?;
        tracing::warn!(path = %self.path, "the file of the store was removed; it is made again");
        (self.holds, self.sums) = (None, None);
        self.reopen()
    }

    /// Whether the file is where it was, made again if it was removed.
    fn be_there(&mut self, next: &Desired, journal: &Journal) -> Result<(), StoreError> {
        match &self.place {
            Some(place) if !place.look(&self.path)? => self.make_again(next, journal),
            _ => Ok(()),
        }
    }

    /// Puts a damaged store aside, and makes a new one of the last good state.
    ///
    /// The new one is whole before the other goes: whatever ends this, the next start finds one of both, and the copy is never away.
    pub fn restore(path: &Path) -> Result<RedbStore, StoreError> {
        // A server that lives goes on with its store, and what it commits must not go aside.
        let taken = std::fs::File::open(path).map(|file| file.try_lock());
        if let Ok(Err(std::fs::TryLockError::WouldBlock)) = taken {
            return Err(StoreError::Busy(path.display().to_string()));
        }
        make_draft(path, &last_good(path)?, &Journal::default())?;
        let failed = |error: std::io::Error| engine(&path.display().to_string(), &error);
        let unless_absent = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(failed(error)),
        };
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
        let aside = path.with_extension(format!("damaged-{now}"));
        std::fs::rename(path, aside).or_else(unless_absent)?;
        std::fs::rename(draft_of(path), path).map_err(failed)?;
        RedbStore::open(path)
    }

    /// Opens a store on another medium; tests bring one that fails.
    pub fn on(backend: impl StorageBackend + Clone) -> Result<RedbStore, StoreError> {
        RedbStore::with("in memory".to_owned(), move || {
            Database::builder().create_with_backend(backend.clone())
        })
    }

    fn with(
        path: String,
        open: impl FnMut() -> Result<Database, redb::DatabaseError> + Send + 'static,
    ) -> Result<RedbStore, StoreError> {
        let mut store = RedbStore {
            database: None,
            open: Box::new(open),
            failed: false,
            path,
            place: None,
            trouble: None,
            copy: None,
            holds: None,
            sums: None,
            old: false,
            #[cfg(test)]
            written: 0.into(),
            journal: Journal::default(),
        };
        store.reopen()?;
        Ok(store)
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        // The old one lets go of the lock first.
        self.database = None;
        let database = self.guarded(|store| Ok((store.open)()))?;
        let database = database.map_err(|error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => StoreError::Busy(self.path.clone()),
            error => engine(&self.path, &error),
        })?;
        self.database = Some(database);
        self.failed = false;
        Ok(())
    }

    fn database(&self) -> Result<&Database, StoreError> {
        let closed = || engine(&self.path, &"it could not be opened again after an error");
        self.database.as_ref().ok_or_else(closed)
    }

    /// The engine panics over some damage.
    fn guarded<T>(
        &mut self,
        work: impl FnOnce(&mut RedbStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let path = self.path.clone();
        let work = std::panic::AssertUnwindSafe(|| work(self));
        std::panic::catch_unwind(work).unwrap_or_else(|_| {
            let problem = "its structure makes no sense".to_owned();
            Err(StoreError::Damaged { path, problem })
        })
    }

    fn engine(&self, error: impl Into<redb::Error>) -> StoreError {
        engine(&self.path, &error.into())
    }

    fn decode(&self, object: &str, name: &str, bytes: &[u8]) -> Result<Record, StoreError> {
        let refuse = |problem: String| StoreError::Record {
            path: self.path.clone(),
            object: object.to_owned(),
            name: name.to_owned(),
            problem,
        };
        let read = |error: serde_json::Error| refuse(error.to_string());
        let Version { version } = serde_json::from_slice(bytes).map_err(read)?;
        if version > RECORD_VERSION {
            return Err(refuse(newer(version, RECORD_VERSION)));
        }
        let record: Record = serde_json::from_slice(bytes).map_err(read)?;
        let sum = seal::of_object(object, name, &record.attributes);
        if (version, record.sum) != (1, None)
            && (version, record.sum) != (RECORD_VERSION, Some(sum))
        {
            return Err(refuse("its checksum does not fit".to_owned()));
        }
        Ok(record)
    }
}

impl Store for RedbStore {
    fn load(&mut self) -> Result<Desired, StoreError> {
        let (desired, journal) = self.guarded(RedbStore::read)?;
        self.journal = journal;
        let sums = seal::Sums::of(&desired);
        if let Some(copy) = &mut self.copy {
            copy.keep(&desired, sums.seal(&desired.allocations));
        }
        (self.holds, self.sums) = (Some(desired.clone()), Some(sums));
        Ok(desired)
    }

    fn journal(&self) -> Journal {
        self.journal.clone()
    }

    fn commit(&mut self, next: &Desired, journal: &Journal) -> Result<(), StoreError> {
        self.be_there(next, journal)?;
        if self.failed {
            self.reopen()?;
        }
        let (before, held) = (self.sums.take(), self.holds.take());
        let written = self.guarded(|store| store.write(held.as_ref(), next, journal, before));
        self.failed = written.is_err();
        let sums = written?;
        self.sums = Some(sums);
        let same = held.as_ref() == Some(next);
        if let Some(copy) = self.copy.as_mut().filter(|_| !same) {
            let to = (next, sums.seal(&next.allocations));
            match (&held, before) {
                (Some(now), Some(sums)) => copy.follow((now, sums.seal(&now.allocations)), to),
                _ => copy.keep(to.0, to.1),
            }
        }
        (self.holds, self.journal) = (Some(next.clone()), journal.clone());
        Ok(())
    }

    fn is_unsure(&self) -> bool {
        self.failed || self.holds.is_none()
    }

    fn mend(&mut self) -> Option<String> {
        let (holds, sums) = (self.holds.clone()?, self.sums?);
        let journal = self.journal.clone();
        // What is committed next would be lost, and what was is in nobody's file.
        let there = self.be_there(&holds, &journal).err().map(|error| error.to_string());
        if let Some(trouble) = there.as_ref().filter(|_| there != self.trouble) {
            tracing::error!("{trouble}");
        }
        self.trouble = there;
        (self.holds, self.sums) = (Some(holds), Some(sums));
        let (copy, holds) = (self.copy.as_mut()?, self.holds.as_ref()?);
        if !copy.is_there() {
            copy.keep(holds, sums.seal(&holds.allocations));
        }
        let copy = copy.trouble.why();
        let copy =
            copy.map(|why| format!("the last good copy of the state is an earlier one: {why}"));
        self.trouble.clone().or(copy)
    }
}

impl RedbStore {
    fn read(&mut self) -> Result<(Desired, Journal), StoreError> {
        let mut desired = Desired::default();
        let read = self.database()?.begin_read().map_err(|e| self.engine(e))?;
        let table = match read.open_table(OBJECTS) {
            Ok(table) => Some(table),
            Err(redb::TableError::TableDoesNotExist(_)) => None,
            Err(error) => return Err(self.engine(error)),
        };
        let entries = table.as_ref().map(|table| table.iter()).transpose();
        let mut newest = 0;
        for entry in entries.map_err(|e| self.engine(e))?.into_iter().flatten() {
            let (key, value) = entry.map_err(|e| self.engine(e))?;
            let (noun, name) = key.value();
            let Record { version, attributes, .. } = self.decode(noun, name, value.value())?;
            newest = newest.max(version);
            let Some(object) = Object::of_noun(noun) else {
                return Err(StoreError::Record {
                    path: self.path.clone(),
                    object: noun.to_owned(),
                    name: name.to_owned(),
                    problem: "this program knows no such objects; use a newer trunkline".to_owned(),
                });
            };
            desired[object].insert(name.to_owned(), attributes);
        }
        let (given, seal, version) = self.given(&read)?;
        desired.allocations = given;
        // Those of the first version had none.
        let whole = match seal {
            Some(seal) if version < given::VERSION => seal == seal::of_state_2(&desired),
            Some(seal) => seal == seal::of_state(&desired),
            None => newest < RECORD_VERSION,
        };
        if !whole {
            let problem = "the checksum over all records does not fit".to_owned();
            return Err(StoreError::Damaged { path: self.path.clone(), problem });
        }
        let journal = journal::read(&read).map_err(|e| self.engine(e))?;
        self.old = version < given::VERSION;
        Ok((desired, journal))
    }

    /// What was given out, the seal of the state, and their version; a state of the first version has no seal.
    fn given(
        &self,
        read: &redb::ReadTransaction,
    ) -> Result<(Allocations, Option<seal::Seal>, u32), StoreError> {
        let table = match read.open_table(GIVEN) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => {
                return Ok((Allocations::default(), None, 0));
            }
            Err(error) => return Err(self.engine(error)),
        };
        let refuse = |problem: String| StoreError::Record {
            path: self.path.clone(),
            object: GIVEN_KEY.to_owned(),
            name: GIVEN_KEY.to_owned(),
            problem,
        };
        let parse = |error: serde_json::Error| refuse(error.to_string());
        let value = |key| table.get(key).map_err(|e| self.engine(e));
        let seal = value(SEAL_KEY)?;
        let seal = seal.map(|bytes| serde_json::from_slice(bytes.value())).transpose();
        let seal: Option<seal::Seal> = seal.map_err(parse)?;
        let Some(bytes) = value(GIVEN_KEY)? else { return Ok((Allocations::default(), seal, 0)) };
        if seal.is_none() {
            return Ok((serde_json::from_slice(bytes.value()).map_err(parse)?, None, 1));
        }
        let Version { version } = serde_json::from_slice(bytes.value()).map_err(parse)?;
        if version > given::VERSION {
            return Err(refuse(newer(version, given::VERSION)));
        }
        let given::Rest { mut allocations, .. } =
            serde_json::from_slice(bytes.value()).map_err(parse)?;
        for entry in table.iter().map_err(|e| self.engine(e))? {
            let (key, bytes) = entry.map_err(|e| self.engine(e))?;
            let known = [GIVEN_KEY, SEAL_KEY].contains(&key.value())
                || given::put(&mut allocations, key.value(), Some(bytes.value())).map_err(parse)?;
            if !known {
                return Err(refuse(format!("`{}` is not known", key.value())));
            }
        }
        Ok((allocations, seal, version))
    }

    /// Gives the sums of what it holds then.
    fn write(
        &mut self,
        held: Option<&Desired>,
        next: &Desired,
        journal: &Journal,
        sums: Option<seal::Sums>,
    ) -> Result<seal::Sums, StoreError> {
        let read;
        let (now, kept) = match held {
            Some(now) => (now, self.journal.clone()),
            None => {
                read = self.read()?;
                (&read.0, read.1.clone())
            }
        };
        let mut sums = sums.unwrap_or_else(|| seal::Sums::of(now));
        if now == next && kept == *journal {
            return Ok(sums);
        }
        let mut write = self.database()?.begin_write().map_err(|e| self.engine(e))?;
        // Two-phase commit: the new root is checked by its checksum before it counts, so a torn
        // write of it cannot be taken for a state. Quick repair: opening after a crash takes no walk.
        write.set_two_phase_commit(true);
        write.set_quick_repair(true);
        let unsynced = planted("store-unsynced");
        let durability = if unsynced { Durability::None } else { Durability::Immediate };
        write.set_durability(durability).map_err(|e| self.engine(e))?;
        journal::write(&write, &kept, journal).map_err(|e| self.engine(e))?;
        if now == next {
            write.commit().map_err(|e| self.engine(e))?;
            return Ok(sums);
        }
        sums.follow(now, next);
        {
            let mut table = write.open_table(OBJECTS).map_err(|e| self.engine(e))?;
            for (object, name) in now.touched(next) {
                let key = (object.noun(), name.as_str());
                let Some(set) = next[object].get(&name) else {
                    table.remove(key).map_err(|e| self.engine(e))?;
                    continue;
                };
                let sum = Some(seal::of_object(object.noun(), &name, set));
                let record = Record { version: RECORD_VERSION, attributes: set.clone(), sum };
                let bytes = serde_json::to_vec(&record).expect("a map of plain values is JSON");
                self.count(&bytes);
                table.insert(key, bytes.as_slice()).map_err(|e| self.engine(e))?;
            }
        }
        {
            let mut table = write.open_table(GIVEN).map_err(|e| self.engine(e))?;
            let nothing = Desired::default();
            let written = if self.old { &nothing } else { now };
            for (key, _, bytes) in given::differences(written, next) {
                match bytes {
                    Some(bytes) => {
                        self.count(&bytes);
                        table.insert(key.as_str(), bytes.as_slice()).map_err(|e| self.engine(e))?;
                    }
                    None => drop(table.remove(key.as_str()).map_err(|e| self.engine(e))?),
                }
            }
            let (version, allocations) = (given::VERSION, given::rest(&next.allocations));
            let rest = seal::json(&given::Rest { version, allocations });
            self.count(&rest);
            table.insert(GIVEN_KEY, rest.as_slice()).map_err(|e| self.engine(e))?;
            let seal = seal::json(&sums.seal(&next.allocations));
            table.insert(SEAL_KEY, seal.as_slice()).map_err(|e| self.engine(e))?;
        }
        write.commit().map_err(|e| self.engine(e))?;
        self.old = false;
        Ok(sums)
    }

    /// Notes what was written, for tests.
    fn count(&self, bytes: &[u8]) {
        #[cfg(test)]
        self.written.set(self.written.get() + bytes.len() as u64);
        #[cfg(not(test))]
        let _ = bytes;
    }
}

#[cfg(test)]
mod tests;
