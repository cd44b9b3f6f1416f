//! The store: the desired state on disk.
//!
//! A state is written as a whole set of changed records in one transaction that is durable when
//! [`Store::commit`] returns: after a crash at any moment the store holds the last committed state
//! or, while a commit was under way, the one before or after it, never a mixture.
//!
//! Records are JSON with a version of their own, so that a later program reads what an earlier one
//! wrote. Attributes that the program does not know are kept out of the model by validation, with an
//! error that names them.

use crate::model::Desired;
use crate::model::given::Given;
use fabric::attribute::{Attributes, Object};
use redb::{
    Database, Durability, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
    backends::FileBackend,
};
use serde::{Deserialize, Serialize};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Where desired states are kept.
pub trait Store: Send {
    /// The last committed state; the empty one when there was none.
    fn load(&self) -> Result<Desired, StoreError>;

    /// Makes `next` the state, durably. Records that did not change are not written.
    fn commit(&mut self, next: &Desired) -> Result<(), StoreError>;
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

/// What was given out, as JSON under this key.
const GIVEN: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("given");
const GIVEN_KEY: &str = "given";

/// The version that this program writes.
const RECORD_VERSION: u32 = 1;

/// An object as it is stored.
#[derive(Serialize, Deserialize)]
struct Record {
    version: u32,
    attributes: Attributes,
}

/// The store of one host: a redb database.
pub struct RedbStore {
    /// Nothing only between closing and opening again.
    database: Option<Database>,
    /// Opens it again after an error of the medium: the engine then refuses everything until that was done.
    open: Box<dyn FnMut() -> Result<Database, redb::DatabaseError> + Send>,
    failed: bool,
    path: String,
}

impl RedbStore {
    /// Opens the store, and makes it when it is missing.
    pub fn open(path: &Path) -> Result<RedbStore, StoreError> {
        let shown = path.display().to_string();
        let path = path.to_owned();
        RedbStore::with(shown, move || {
            // Names of files and machines are nobody else's business; one that is there keeps its mode.
            let mut options = std::fs::OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let backend = FileBackend::new(file.open(&path)?)?;
            Database::builder().create_with_backend(backend)
        })
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
        let mut store = RedbStore { database: None, open: Box::new(open), failed: false, path };
        store.reopen()?;
        Ok(store)
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        // The old one lets go of the lock first.
        self.database = None;
        let database = (self.open)().map_err(|error| match error {
            redb::DatabaseError::DatabaseAlreadyOpen => StoreError::Busy(self.path.clone()),
            error => StoreError::Engine { path: self.path.clone(), problem: error.to_string() },
        })?;
        self.database = Some(database);
        self.failed = false;
        Ok(())
    }

    fn database(&self) -> Result<&Database, StoreError> {
        let closed = || StoreError::Engine {
            path: self.path.clone(),
            problem: "it could not be opened again after an error".to_owned(),
        };
        self.database.as_ref().ok_or_else(closed)
    }

    fn engine(&self, error: impl Into<redb::Error>) -> StoreError {
        StoreError::Engine { path: self.path.clone(), problem: error.into().to_string() }
    }

    fn decode(&self, object: &str, name: &str, bytes: &[u8]) -> Result<Attributes, StoreError> {
        let refuse = |problem: String| StoreError::Record {
            path: self.path.clone(),
            object: object.to_owned(),
            name: name.to_owned(),
            problem,
        };
        let record: Record =
            serde_json::from_slice(bytes).map_err(|error| refuse(error.to_string()))?;
        if record.version > RECORD_VERSION {
            return Err(refuse(format!(
                "it has version {}, this program reads up to {RECORD_VERSION}; use a newer trunkline",
                record.version
            )));
        }
        Ok(record.attributes)
    }
}

impl Store for RedbStore {
    fn load(&self) -> Result<Desired, StoreError> {
        let mut desired = Desired::default();
        let read = self.database()?.begin_read().map_err(|e| self.engine(e))?;
        let table = match read.open_table(OBJECTS) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(desired),
            Err(error) => return Err(self.engine(error)),
        };
        for entry in table.iter().map_err(|e| self.engine(e))? {
            let (key, value) = entry.map_err(|e| self.engine(e))?;
            let (noun, name) = key.value();
            let set = self.decode(noun, name, value.value())?;
            let Some(object) = Object::ALL.into_iter().find(|object| object.noun() == noun) else {
                return Err(StoreError::Record {
                    path: self.path.clone(),
                    object: noun.to_owned(),
                    name: name.to_owned(),
                    problem: "this program knows no such objects; use a newer trunkline".to_owned(),
                });
            };
            desired.of_mut(object).insert(name.to_owned(), set);
        }
        desired.given = self.given(&read)?;
        Ok(desired)
    }

    fn commit(&mut self, next: &Desired) -> Result<(), StoreError> {
        if self.failed {
            self.reopen()?;
        }
        let written = self.write(next);
        self.failed = written.is_err();
        written
    }
}

impl RedbStore {
    fn given(&self, read: &redb::ReadTransaction) -> Result<Given, StoreError> {
        let table = match read.open_table(GIVEN) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Given::default()),
            Err(error) => return Err(self.engine(error)),
        };
        let Some(bytes) = table.get(GIVEN_KEY).map_err(|e| self.engine(e))? else {
            return Ok(Given::default());
        };
        serde_json::from_slice(bytes.value()).map_err(|error| StoreError::Record {
            path: self.path.clone(),
            object: GIVEN_KEY.to_owned(),
            name: GIVEN_KEY.to_owned(),
            problem: error.to_string(),
        })
    }

    fn write(&self, next: &Desired) -> Result<(), StoreError> {
        let now = self.load()?;
        if now == *next {
            return Ok(());
        }
        let mut write = self.database()?.begin_write().map_err(|e| self.engine(e))?;
        // Two-phase commit: the new root is checked by its checksum before it counts, so a torn
        // write of it cannot be taken for a state. Quick repair: opening after a crash takes no walk.
        write.set_two_phase_commit(true);
        write.set_quick_repair(true);
        write.set_durability(Durability::Immediate).map_err(|e| self.engine(e))?;
        {
            let mut table = write.open_table(OBJECTS).map_err(|e| self.engine(e))?;
            for object in Object::ALL {
                for name in now.of(object).keys().filter(|n| !next.of(object).contains_key(*n)) {
                    table.remove((object.noun(), name.as_str())).map_err(|e| self.engine(e))?;
                }
                for (name, set) in next.of(object) {
                    if now.of(object).get(name) == Some(set) {
                        continue;
                    }
                    let record = Record { version: RECORD_VERSION, attributes: set.clone() };
                    let bytes = serde_json::to_vec(&record).expect("a map of plain values is JSON");
                    table
                        .insert((object.noun(), name.as_str()), bytes.as_slice())
                        .map_err(|e| self.engine(e))?;
                }
            }
        }
        if now.given != next.given {
            let mut table = write.open_table(GIVEN).map_err(|e| self.engine(e))?;
            let bytes = serde_json::to_vec(&next.given).expect("plain values are JSON");
            table.insert(GIVEN_KEY, bytes.as_slice()).map_err(|e| self.engine(e))?;
        }
        write.commit().map_err(|e| self.engine(e))
    }
}

#[cfg(test)]
mod tests;
