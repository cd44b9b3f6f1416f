//! A block of the journal.

use super::{
    Form, RECORD_BYTES, Record, Refused, Sum, Uuid, get, get_bytes, layout, put, put_bytes,
};

layout! {
    /// The header of a block of the journal; its records follow at 96.
    JOURNAL:
    SEQUENCE 48 + 8 "number of the block; it stands at block `SEQUENCE` modulo blocks of the journal";
    EPOCH 56 + 8 "epoch of the pool under which it was written";
    PREVIOUS 64 + 16 "checksum of the block before it";
    OWNER_EPOCH 80 + 8 "epoch of the slot's owner";
    SLOT 88 + 1 "slot of the server whose journal this is, 0 to 63";
    MORE 89 + 1 "1: the transaction goes on in the next block, and without its end it never was";
    JOURNAL_RESERVED 90 + 6 "0";
}
const FORM: Form = Form { magic: *b"TLPOOLJB", what: "journal block" };
const HEADER_BYTES: usize = 96;
/// What a block of the journal takes.
pub const JOURNAL_BLOCK_BYTES: usize = 4096;
/// Records in a block at most.
pub const JOURNAL_BLOCK_RECORDS: usize = (JOURNAL_BLOCK_BYTES - HEADER_BYTES) / RECORD_BYTES;

/// A block of the journal: what one commit says, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalBlock {
    /// The pool.
    pub pool: Uuid,
    /// Slot of the server whose journal this is.
    pub slot: u8,
    /// Number of the block.
    pub sequence: u64,
    /// Epoch of the pool.
    pub epoch: u64,
    /// Epoch of the slot's owner.
    pub owner_epoch: u64,
    /// Checksum of the block before it.
    pub previous: Sum,
    /// The transaction goes on in the next block.
    pub more: bool,
    /// What it says; at most [`JOURNAL_BLOCK_RECORDS`].
    pub records: Vec<Record>,
}

impl JournalBlock {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.records.len() <= JOURNAL_BLOCK_RECORDS, "a block has room for its records");
        let mut block = vec![0; JOURNAL_BLOCK_BYTES];
        put(&mut block, SEQUENCE, self.sequence);
        put(&mut block, EPOCH, self.epoch);
        put_bytes(&mut block, PREVIOUS, &self.previous);
        put(&mut block, OWNER_EPOCH, self.owner_epoch);
        put(&mut block, SLOT, self.slot.into());
        put(&mut block, MORE, self.more.into());
        Record::encode_all(&self.records, &mut block[HEADER_BYTES..]);
        FORM.seal(&mut block, self.pool, HEADER_BYTES + RECORD_BYTES * self.records.len());
        block
    }

    /// The block with that number in the journal of a slot.
    pub fn decode(
        block: &[u8],
        pool: Uuid,
        slot: u8,
        sequence: u64,
    ) -> Result<JournalBlock, Refused> {
        if block.len() != JOURNAL_BLOCK_BYTES {
            return Err(Refused::Magic(FORM.what));
        }
        let used = FORM.open(block, HEADER_BYTES, Some(pool))?;
        FORM.placed(used, SLOT, slot.into())?;
        FORM.placed(used, SEQUENCE, sequence)?;
        let more = get(used, MORE);
        if more > 1 {
            return FORM.value(MORE, more);
        }
        let records = &used[HEADER_BYTES..];
        if records.len() % RECORD_BYTES != 0 {
            return FORM.value(super::LENGTH, used.len() as u64);
        }
        Ok(JournalBlock {
            pool,
            slot,
            sequence,
            epoch: get(used, EPOCH),
            owner_epoch: get(used, OWNER_EPOCH),
            previous: get_bytes(used, PREVIOUS),
            more: more == 1,
            records: Record::decode_all(FORM.what, records)?,
        })
    }

    /// The checksum that the next block names; of encoded bytes.
    pub fn checksum(block: &[u8]) -> Sum {
        get_bytes(block, super::CHECKSUM)
    }
}
