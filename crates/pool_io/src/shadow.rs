//! Which blocks of each chunk are written, in memory that survives the process: a file in a tmpfs.
//!
//! | words of 64 bits | what |
//! |---|---|
//! | 0 | the magic number |
//! | 1, 2 | UUID of the pool |
//! | 3, 4 | UUID of the server |
//! | 5, 6 | the boot of the host |
//! | 7 | how many chunks each PV has, as one number |
//! | 8 | epoch of the pool |
//! | from 512 on | 17 words for each chunk of each PV: `VALID` and how often it was given out, then its 1,024 bits |
//!
//! The pools' thread writes it and no other; channels read bits. The kernel keeps every store of a process that is killed, in order: so a chunk is made invalid before its bits
//! become those of another generation, and all that was stored before an answer is there.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use memory::{Access, Mapping};
use pool::format::{BLOCKS, Uuid};
use pool::{ChunkId, Kept};

const MAGIC: u64 = u64::from_le_bytes(*b"TLSHADOW");
const HEADER: usize = 512;
const BITS: usize = BLOCKS / 64;
const CHUNK: usize = 1 + BITS;
/// The bit of a chunk's first word that says that the rest holds.
const VALID: u64 = 1 << 63;

/// What it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) pool: Uuid,
    pub(crate) server: Uuid,
    /// The boot of the host: memory that is older lies on a disk.
    pub(crate) boot: Uuid,
}

/// The mapped file.
#[derive(Debug)]
pub(crate) struct Shadow {
    mapping: Mapping,
    /// The first word of each PV's chunks.
    starts: Vec<usize>,
    /// The layout, as one number.
    layout: u64,
}

fn halves(uuid: Uuid) -> [u64; 2] {
    let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| uuid.0[at + index]));
    [half(0), half(8)]
}

impl Shadow {
    /// Maps a file for a pool whose PVs have so many chunks; one of another size is emptied. All its memory is taken at once.
    pub(crate) fn map(file: &File, chunks: &[u32]) -> Result<Shadow, String> {
        let mut words = HEADER;
        let mut starts = Vec::with_capacity(chunks.len());
        for count in chunks {
            starts.push(words);
            words += *count as usize * CHUNK;
        }
        let bytes = (8 * words).next_multiple_of(4096);
        let say = |error: std::io::Error| error.to_string();
        if file.metadata().map_err(say)?.len() != bytes as u64 {
            file.set_len(0).map_err(say)?;
            file.set_len(bytes as u64).map_err(say)?;
        }
        let flags = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(file.as_fd(), flags, 0, bytes as u64)
            .map_err(|error| format!("its {bytes} bytes of memory: {error}"))?;
        let mapping =
            Mapping::file(file, 0, bytes, Access::ReadWrite).map_err(|error| error.to_string())?;
        let add = |sum: u64, count: &u32| {
            (sum ^ u64::from(*count)).wrapping_mul(0x100_0000_01b3).rotate_left(5)
        };
        let layout = chunks.iter().fold(chunks.len() as u64, add);
        Ok(Shadow { mapping, starts, layout })
    }

    /// What a process before this one left, if it was this server in this boot of the host: the epoch for which it holds, and the chunks.
    pub(crate) fn left(&self, owner: Owner) -> Option<(u64, Vec<Kept>)> {
        let words = self.mapping.words();
        let found: Vec<u64> = words[..9].iter().map(|word| word.load(Acquire)).collect();
        if found[0] != MAGIC || found[1..8] != self.owner(owner) {
            return None;
        }
        let mut kept = Vec::new();
        for (pv, start) in self.starts.iter().enumerate() {
            let end = self.starts.get(pv + 1).copied().unwrap_or(words.len());
            for (chunk, entry) in words[*start..end].chunks_exact(CHUNK).enumerate() {
                let first = entry[0].load(Acquire);
                if first & VALID == 0 {
                    continue;
                }
                let bits = std::array::from_fn(|index| {
                    let word = entry[1 + index / 2].load(Relaxed);
                    (word >> (32 * (index % 2))) as u32
                });
                // Numbers of PVs and chunks are those of the superblock, of 16 and 32 bits.
                let id = ChunkId { pv: pv as u16, chunk: chunk as u32 };
                kept.push((id, first as u16, bits));
            }
        }
        Some((found[8], kept))
    }

    fn owner(&self, Owner { pool, server, boot }: Owner) -> [u64; 7] {
        let [a, b] = halves(pool);
        let [c, d] = halves(server);
        let [e, f] = halves(boot);
        [a, b, c, d, e, f, self.layout]
    }

    /// Forgets everything: nobody's memory, until [`Shadow::holds_for`].
    pub(crate) fn clear(&self) {
        let words = self.mapping.words();
        words[0].store(0, Release);
        words[1..].iter().for_each(|word| {
            // Pages that nobody ever touched stay so.
            if word.load(Relaxed) != 0 {
                word.store(0, Relaxed);
            }
        });
    }

    /// From now on it is this one's, for the pool at this epoch and the next.
    pub(crate) fn holds_for(&self, owner: Owner, epoch: u64) {
        let words = self.mapping.words();
        for (word, value) in words[1..8].iter().zip(self.owner(owner)) {
            word.store(value, Relaxed);
        }
        words[8].store(epoch, Release);
        words[0].store(MAGIC, Release);
    }

    /// What is written of a chunk now.
    pub(crate) fn keep(&self, (id, generation, bits): &Kept) {
        let Some(entry) = self.entry(*id) else { return };
        let first = VALID | u64::from(*generation);
        let same = entry[0].load(Relaxed) == first;
        if !same {
            entry[0].store(0, Release);
        }
        for (index, word) in entry[1..].iter().enumerate() {
            let value = u64::from(bits[2 * index]) | u64::from(bits[2 * index + 1]) << 32;
            if word.load(Relaxed) != value {
                word.store(value, Release);
            }
        }
        entry[0].store(first, Release);
    }

    fn entry(&self, id: ChunkId) -> Option<&[std::sync::atomic::AtomicU64]> {
        let start = self.starts.get(usize::from(id.pv))? + id.chunk as usize * CHUNK;
        self.mapping.words().get(start..start + CHUNK)
    }

    /// Whether blocks `first` to `last` of a chunk are all written.
    #[inline]
    pub(crate) fn has_all(&self, id: ChunkId, first: usize, last: usize) -> bool {
        let Some(entry) = self.entry(id) else { return false };
        (first / 64..=last / 64).all(|word| {
            let low = first.max(64 * word) - 64 * word;
            let high = last.min(64 * word + 63) - 64 * word;
            let wanted = (u64::MAX >> (63 - (high - low))) << low;
            // Beyond the last block there is no word.
            entry.get(1 + word).is_some_and(|bits| bits.load(Acquire) & wanted == wanted)
        })
    }

    /// Its memory was taken away: somebody truncated the file.
    pub(crate) fn damaged(&self) -> bool {
        self.mapping.damaged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Owner = Owner { pool: Uuid([1; 16]), server: Uuid([2; 16]), boot: Uuid([3; 16]) };

    fn file() -> File {
        tempfile::tempfile_in("/dev/shm").expect("a file in /dev/shm")
    }

    fn id(pv: u16, chunk: u32) -> ChunkId {
        ChunkId { pv, chunk }
    }

    #[test]
    fn a_successor_finds_what_was_kept_and_nobody_else_does() {
        let file = file();
        let shadow = Shadow::map(&file, &[3, 5]).unwrap();
        assert_eq!(shadow.left(ONE), None);
        shadow.holds_for(ONE, 7);
        let mut bits = [0; BLOCKS / 32];
        (bits[0], bits[31]) = (5, 1 << 31);
        shadow.keep(&(id(1, 4), 9, bits));
        shadow.keep(&(id(0, 0), u16::MAX, [0; BLOCKS / 32]));
        drop(shadow);
        let next = Shadow::map(&file, &[3, 5]).unwrap();
        let kept = vec![(id(0, 0), u16::MAX, [0; BLOCKS / 32]), (id(1, 4), 9, bits)];
        assert_eq!(next.left(ONE), Some((7, kept)));
        for other in [
            Owner { pool: Uuid([9; 16]), ..ONE },
            Owner { server: Uuid([9; 16]), ..ONE },
            Owner { boot: Uuid([9; 16]), ..ONE },
        ] {
            assert_eq!(next.left(other), None, "{other:?}");
        }
        next.clear();
        next.holds_for(ONE, 8);
        assert_eq!(next.left(ONE), Some((8, Vec::new())));
        assert_eq!(Shadow::map(&file, &[3, 6]).unwrap().left(ONE), None, "another pool's size");
    }

    #[test]
    fn ranges_of_blocks_are_looked_up_as_a_list_of_bits_has_them() {
        let shadow = Shadow::map(&file(), &[2]).unwrap();
        let mut random = memory::random::Random::new(4);
        for _ in 0..50 {
            // Mostly ones, or no range is ever whole.
            let bits: [u32; BLOCKS / 32] =
                std::array::from_fn(|_| if random.below(9) == 0 { 0xffff_7fff } else { u32::MAX });
            shadow.keep(&(id(0, 1), 1, bits));
            let has = |block: usize| bits[block / 32] >> (block % 32) & 1 == 1;
            for _ in 0..200 {
                let first = random.below(BLOCKS as u64) as usize;
                let last = (first + random.below(200) as usize).min(BLOCKS - 1);
                let expected = (first..=last).all(has);
                assert_eq!(shadow.has_all(id(0, 1), first, last), expected, "{first}..={last}");
            }
        }
        assert!(!shadow.has_all(id(0, 0), 0, 0), "a chunk that nobody kept");
        assert!(!shadow.has_all(id(7, 0), 0, 0) && !shadow.has_all(id(0, 9), 0, 0));
    }
}
