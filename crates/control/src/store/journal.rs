//! The journal of operations in the store: a record each, with a sum. One that cannot be read is left out, with a warning: the state itself
//! is whole without it.

use crate::operation::{Journal, Operation};
use crate::sum::sum;
use redb::{ReadTransaction, ReadableTable, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize};

/// By number, as JSON. Under 0: the highest number that was given out.
const OPERATIONS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("operations");

/// The version that this program writes.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    version: u32,
    sum: u64,
    operation: Operation,
}

fn sum_of(operation: &Operation) -> u64 {
    sum(&[&serde_json::to_vec(operation).expect("plain values are JSON")])
}

/// What is kept.
pub(super) fn read(read: &ReadTransaction) -> Result<Journal, redb::Error> {
    let table = match read.open_table(OPERATIONS) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Journal::default()),
        Err(error) => return Err(error.into()),
    };
    let mut journal = Journal::default();
    for entry in table.iter()? {
        let (id, bytes) = entry?;
        let (id, bytes) = (id.value(), bytes.value());
        if id == 0 {
            journal.last = journal.last.max(serde_json::from_slice(bytes).unwrap_or(0));
            continue;
        }
        journal.last = journal.last.max(id);
        match serde_json::from_slice::<Record>(bytes) {
            Ok(record) if record.version <= VERSION && record.sum == sum_of(&record.operation) => {
                journal.operations.insert(id, record.operation);
            }
            Ok(_) => tracing::warn!(id, "an operation is damaged in the store, and left out"),
            Err(error) => {
                tracing::warn!(id, %error, "an operation cannot be read from the store, and is left out");
            }
        }
    }
    Ok(journal)
}

/// Writes what differs.
pub(super) fn write(
    write: &WriteTransaction,
    now: &Journal,
    next: &Journal,
) -> Result<(), redb::Error> {
    let mut table = write.open_table(OPERATIONS)?;
    for id in now.operations.keys().filter(|id| !next.operations.contains_key(id)) {
        table.remove(id)?;
    }
    for (id, operation) in &next.operations {
        if now.operations.get(id) != Some(operation) {
            let (version, sum) = (VERSION, sum_of(operation));
            let record = Record { version, sum, operation: operation.clone() };
            let bytes = serde_json::to_vec(&record).expect("plain values are JSON");
            table.insert(id, bytes.as_slice())?;
        }
    }
    let last = serde_json::to_vec(&next.last).expect("a number is JSON");
    table.insert(0, last.as_slice())?;
    Ok(())
}
