//! Pages of records: the map of a PV's chunks, and the LUs.

use super::{Form, RECORD_BYTES, Record, Refused, Uuid, get, layout, put};

layout! {
    /// The header of a page; its records follow at 1536.
    PAGE:
    PAGE_SEQUENCE 48 + 8 "number of the journal block up to which it holds what was said";
    PAGE_EPOCH 56 + 8 "epoch of the pool under which it was written";
    PAGE_NUMBER 64 + 4 "number of the page among those of its kind on this PV";
    PAGE_PV 68 + 2 "number of the PV among the members";
    PAGE_KIND 70 + 1 "1: map, record n of page p is of chunk 2000 p + n of this PV; 2: LUs, record n of page p is of LU 2000 p + n; 3: slots, record n of page p is of slot n of the container that is chunk p of this PV";
    PAGE_COPY 71 + 1 "which of its two places this is, 0 or 1";
    PAGE_RESERVED 72 + 1464 "0";
}
const FORM: Form = Form { magic: *b"TLPOOLPG", what: "page" };
const HEADER_BYTES: usize = 1536;
/// What a page takes.
pub const PAGE_BYTES: usize = 64 << 10;
/// Records in a page at most.
pub const PAGE_RECORDS: usize = (PAGE_BYTES - HEADER_BYTES) / RECORD_BYTES;

/// What the records of a page are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// Chunks of this PV.
    Map = 1,
    /// LUs.
    Lus = 2,
    /// Slots of a container, in the container itself.
    Slots = 3,
}

/// A page of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The pool.
    pub pool: Uuid,
    /// What its records are of.
    pub kind: PageKind,
    /// The PV that it is on.
    pub pv: u16,
    /// Its number.
    pub number: u32,
    /// Which of its two places this is.
    pub copy: u8,
    /// The journal block up to which it is true.
    pub sequence: u64,
    /// Epoch of the pool.
    pub epoch: u64,
    /// At most [`PAGE_RECORDS`]; those that are not there are [`Kind::None`](super::Kind::None).
    pub records: Vec<Record>,
}

impl Page {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.records.len() <= PAGE_RECORDS, "a page has room for its records");
        let mut block = vec![0; PAGE_BYTES];
        put(&mut block, PAGE_SEQUENCE, self.sequence);
        put(&mut block, PAGE_EPOCH, self.epoch);
        put(&mut block, PAGE_NUMBER, self.number.into());
        put(&mut block, PAGE_PV, self.pv.into());
        put(&mut block, PAGE_KIND, self.kind as u64);
        put(&mut block, PAGE_COPY, self.copy.into());
        Record::encode_all(&self.records, &mut block[HEADER_BYTES..]);
        FORM.seal(&mut block, self.pool, HEADER_BYTES + RECORD_BYTES * self.records.len());
        block
    }

    /// The page that belongs at this place.
    pub fn decode(
        block: &[u8],
        pool: Uuid,
        kind: PageKind,
        pv: u16,
        number: u32,
        copy: u8,
    ) -> Result<Page, Refused> {
        if block.len() != PAGE_BYTES {
            return Err(Refused::Magic(FORM.what));
        }
        let used = FORM.open(block, HEADER_BYTES, Some(pool))?;
        FORM.placed(used, PAGE_KIND, kind as u64)?;
        FORM.placed(used, PAGE_PV, pv.into())?;
        FORM.placed(used, PAGE_NUMBER, number.into())?;
        FORM.placed(used, PAGE_COPY, copy.into())?;
        let records = &used[HEADER_BYTES..];
        if records.len() % RECORD_BYTES != 0 {
            return FORM.value(super::LENGTH, used.len() as u64);
        }
        Ok(Page {
            pool,
            kind,
            pv,
            number,
            copy,
            sequence: get(used, PAGE_SEQUENCE),
            epoch: get(used, PAGE_EPOCH),
            records: Record::decode_all(FORM.what, records)?,
        })
    }
}
