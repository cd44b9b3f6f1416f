//! The label: by which tools know a PV of a pool.

use super::{
    CHUNK_BYTES, Field, Form, Refused, SECTOR_BYTES, SUPERBLOCK_AT, Uuid, get, get_bytes, layout,
    put, put_bytes,
};

layout! {
    /// The label, at byte 0 of a PV.
    LABEL:
    PV 48 + 16 "UUID of the PV";
    CHUNK 64 + 8 "bytes of a chunk: 67108864";
    SUPERBLOCKS 72 + 8 "first of four numbers of 8 bytes: where the copies of the superblock are";
}
const FORM: Form = Form { magic: *b"TLPOOLPV", what: "label" };
/// What a label takes.
pub const LABEL_BYTES: usize = SECTOR_BYTES;
const LENGTH: usize = 104;

/// Says that a device is a PV of a pool; at its very beginning, where other programs look for what a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// The pool.
    pub pool: Uuid,
    /// The PV.
    pub pv: Uuid,
}

impl Label {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut block = vec![0; LABEL_BYTES];
        put_bytes(&mut block, PV, &self.pv.0);
        put(&mut block, CHUNK, CHUNK_BYTES);
        for (index, at) in SUPERBLOCK_AT.into_iter().enumerate() {
            put(&mut block, Field { at: SUPERBLOCKS.at + 8 * index, ..SUPERBLOCKS }, at);
        }
        FORM.seal(&mut block, self.pool, LENGTH);
        block
    }

    /// A label of whatever pool.
    pub fn decode(block: &[u8]) -> Result<Label, Refused> {
        if block.len() != LABEL_BYTES {
            return Err(Refused::Magic(FORM.what));
        }
        let block = FORM.open(block, LENGTH, None)?;
        let chunk = get(block, CHUNK);
        if chunk != CHUNK_BYTES {
            return FORM.value(CHUNK, chunk);
        }
        Ok(Label { pool: Uuid(get_bytes(block, super::POOL)), pv: Uuid(get_bytes(block, PV)) })
    }
}
