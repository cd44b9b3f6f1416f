//! What lies on the PVs, byte by byte: `docs/formats/pool.md` is made from the tables here.
//!
//! Every kind of block begins with the same envelope, is of one pool, and is bound to its place, so that a block that a disk put elsewhere is
//! never taken for the one that belongs there. What a checksum does not cover must be zero or is held against the place, so no bit can change
//! without notice.

use crate::hash::{self, Sum};

mod home;
mod journal;
mod label;
mod page;
mod record;
mod sums;
mod superblock;
#[cfg(test)]
mod tests;

pub use home::{HOME_BYTES, Home, HomeState};
pub use journal::{JOURNAL_BLOCK_BYTES, JOURNAL_BLOCK_RECORDS, JournalBlock};
pub use label::{LABEL_BYTES, Label};
pub use page::{PAGE_BYTES, PAGE_RECORDS, Page, PageKind};
pub use record::{Kind, RECORD_BYTES, Record};
pub use sums::{
    SUM_OF_BYTES, SUMS_APART, SUMS_BYTES, SUMS_IN_CHUNK, SUMS_OF_CHUNK, decode_sums, encode_sums,
};
pub use superblock::{
    Extent, MARKS_AT, MEMBERS_MAX, Member, MemberState, OWNERS, Owner, Place, Root, SUPERBLOCK_AT,
    SUPERBLOCK_BYTES_MAX, Superblock, SystemKind,
};

/// What an LU is cut into.
pub const CHUNK_BYTES: u64 = 64 << 20;
/// What a chunk knows to be written or not.
pub const BLOCK_BYTES: u64 = 64 << 10;
/// Blocks in a chunk.
pub const BLOCKS: usize = (CHUNK_BYTES / BLOCK_BYTES) as usize;
/// Metadata is written in units of this many bytes, at such offsets.
pub const SECTOR_BYTES: usize = 4096;
/// The version of everything here.
pub const VERSION: u16 = 1;

/// The identity of a pool, a PV or a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

impl std::fmt::Debug for Uuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::fmt::Display for Uuid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if [4, 6, 8, 10].contains(&index) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Why bytes are not the block that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Another magic number: never written, or another kind of block.
    #[error("there is no {0} here")]
    Magic(&'static str),
    /// A later version.
    #[error(
        "the {what} has version {found} and this program knows {VERSION}: use the program that made it, or a later one"
    )]
    Version {
        /// The kind of block.
        what: &'static str,
        /// Its version.
        found: u16,
    },
    /// The checksum or what follows the checked bytes is wrong.
    #[error("the {0} is damaged: its checksum does not hold")]
    Damaged(&'static str),
    /// A valid block of another pool.
    #[error("the {what} belongs to pool {found}")]
    Pool {
        /// The kind of block.
        what: &'static str,
        /// Whose it is.
        found: Uuid,
    },
    /// A valid block that belongs elsewhere.
    #[error("the {what} belongs elsewhere: its {field} is {found}, not {expected}")]
    Misplaced {
        /// The kind of block.
        what: &'static str,
        /// What tells the place.
        field: &'static str,
        /// What it says.
        found: u64,
        /// What this place has.
        expected: u64,
    },
    /// A checked block says what cannot be.
    #[error("the {what} cannot be understood: {field} is {found}")]
    Value {
        /// The kind of block.
        what: &'static str,
        /// The field.
        field: &'static str,
        /// What it says.
        found: u64,
    },
}

/// One field of a layout.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name on the page.
    pub name: &'static str,
    /// Its first byte.
    pub at: usize,
    /// Its bytes, of one item if there are several.
    pub size: usize,
    /// Its meaning.
    pub what: &'static str,
}

/// Declares the fields of a layout as constants, and the table of them all.
macro_rules! layout {
    ($(#[$doc:meta])* $table:ident: $($name:ident $at:literal + $size:literal $what:literal;)+) => {
        $(const $name: $crate::format::Field = $crate::format::Field {
            name: stringify!($name), at: $at, size: $size, what: $what,
        };)+
        $(#[$doc])*
        pub(super) const $table: &[$crate::format::Field] = &[$($name),+];
    };
}
use layout;

layout! {
    /// How every block begins.
    ENVELOPE:
    MAGIC 0 + 8 "the kind of the block, eight letters";
    CHECKSUM 8 + 16 "SipHash-2-4-128 of the bytes from 24 to `LENGTH`; its key is the pool's UUID, whose first half is exclusive-or with the magic";
    POOL 24 + 16 "UUID of the pool";
    LENGTH 40 + 4 "bytes that are in use; those after it, up to the end of the block, are 0";
    FORMAT 44 + 2 "version of the format: 1";
    ENVELOPE_RESERVED 46 + 2 "0";
}
const ENVELOPE_BYTES: usize = 48;

fn put(block: &mut [u8], field: Field, value: u64) {
    block[field.at..field.at + field.size].copy_from_slice(&value.to_le_bytes()[..field.size]);
}

fn put_bytes(block: &mut [u8], field: Field, bytes: &[u8]) {
    block[field.at..field.at + field.size].copy_from_slice(bytes);
}

fn get(block: &[u8], field: Field) -> u64 {
    let mut value = [0; 8];
    value[..field.size].copy_from_slice(&block[field.at..field.at + field.size]);
    u64::from_le_bytes(value)
}

fn get_bytes<const N: usize>(block: &[u8], field: Field) -> [u8; N] {
    block[field.at..field.at + field.size].try_into().expect("a field of this size")
}

/// A kind of block: its magic number and its word.
struct Form {
    magic: [u8; 8],
    what: &'static str,
}

impl Form {
    fn sum(&self, pool: Uuid, bytes: &[u8]) -> Sum {
        let mut key = pool.0;
        key.iter_mut().zip(self.magic).for_each(|(byte, magic)| *byte ^= magic);
        hash::sum(key, bytes)
    }

    /// Writes the envelope around what stands in the first `length` bytes; the last thing that is done to a block.
    fn seal(&self, block: &mut [u8], pool: Uuid, length: usize) {
        put_bytes(block, MAGIC, &self.magic);
        put_bytes(block, POOL, &pool.0);
        put(block, LENGTH, length as u64);
        put(block, FORMAT, u64::from(VERSION));
        let sum = self.sum(pool, &block[POOL.at..length]);
        put_bytes(block, CHECKSUM, &sum);
    }

    /// The bytes in use of a whole and undamaged block. Without `pool` any pool will do.
    fn open<'a>(
        &self,
        block: &'a [u8],
        least: usize,
        pool: Option<Uuid>,
    ) -> Result<&'a [u8], Refused> {
        let what = self.what;
        if block.len() < least.max(ENVELOPE_BYTES) || block[..8] != self.magic {
            return Err(Refused::Magic(what));
        }
        let length = get(block, LENGTH) as usize;
        if length < least || length > block.len() {
            return Err(Refused::Damaged(what));
        }
        let found = Uuid(get_bytes(block, POOL));
        if self.sum(found, &block[POOL.at..length]) != get_bytes::<16>(block, CHECKSUM)
            || !zero(&block[length..])
        {
            return Err(Refused::Damaged(what));
        }
        // After the checksum, since a damaged version is no later version.
        let version = get(block, FORMAT) as u16;
        if version != VERSION {
            return Err(Refused::Version { what, found: version });
        }
        if pool.is_some_and(|pool| pool != found) {
            return Err(Refused::Pool { what, found });
        }
        Ok(&block[..length])
    }

    fn value<T>(&self, field: Field, found: u64) -> Result<T, Refused> {
        Err(Refused::Value { what: self.what, field: field.name, found })
    }

    /// Holds a field that tells the place against the place.
    fn placed(&self, block: &[u8], field: Field, expected: u64) -> Result<(), Refused> {
        let found = get(block, field);
        if found == expected {
            return Ok(());
        }
        Err(Refused::Misplaced { what: self.what, field: field.name, found, expected })
    }
}

fn zero(bytes: &[u8]) -> bool {
    let mut words = bytes.chunks_exact(64);
    words.all(|piece| piece.iter().fold(0, |all, byte| all | byte) == 0)
        && words.remainder().iter().all(|byte| *byte == 0)
}

fn up_to_sector(bytes: usize) -> usize {
    bytes.next_multiple_of(SECTOR_BYTES)
}

/// All layouts with their headings, as the page has them.
pub const LAYOUTS: &[(&str, &[Field])] = &[
    ("Envelope", ENVELOPE),
    ("Label", label::LABEL),
    ("Superblock", superblock::SUPERBLOCK),
    ("Owner", superblock::OWNER),
    ("Member", superblock::MEMBER),
    ("Extent", superblock::EXTENT),
    ("Journal block", journal::JOURNAL),
    ("Page", page::PAGE),
    ("Record", record::RECORD),
    ("Home record", home::HOME),
    ("Checksums", sums::SUMS),
];
