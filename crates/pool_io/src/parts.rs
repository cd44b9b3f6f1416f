//! Which parts of layers are written, and where, in memory that survives the process: the end of the file that [`Shadow`](crate::shadow) has.
//!
//! From [`AT`] on it has *segments*, one after the other. A segment begins with a directory, a word for each of its 1,024 *blocks*, and then has these. A block is of one chunk of the LUs above one layer; its word
//! of the directory has the layer in its upper half and the chunk in its lower, and is 0 while the block is nobody's. The block has two words for each of the chunk's 2,048 parts: one more than the
//! number of the slot in the layer, 0 if it is not known, all ones if it is known to be nowhere; and the sectors that are there.
//!
//! A part stays in its slot and gains sectors, as long as its layer is there; so its slot is stored first, and a process that is killed leaves no sectors of another. A slot without sectors is one in which
//! somebody is about to write: after a death it is nobody's.
//!
//! Channels read it ([`chain`](crate::chain)), the sectors first: where they see some, the slot is the one in which these are. Memory that somebody took away is zeros, and says of no part where it is.
//!
//! Who gives a part its slot changes it from nowhere, and one alone does: a channel, which [holds](Parts::hold) it while it takes a slot, or the pools' thread, to what is not known before it places the part itself
//! ([`Parts::close`]). Sectors are added by whoever has written them.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::{Mutex, OnceLock};

use memory::{Access, Mapping};
use pool::format::{BLOCKS as CHUNK_BLOCKS, MEMBERS_MAX};
use pool::{KeptPart, PARTS};
use rustix::fs::{FallocateFlags, fallocate};

use crate::table::locked;

/// Where it begins: behind all words of as many and as large PVs as a pool can ever have.
const AT: u64 = 1 << 44;
const _: () = assert!((MEMBERS_MAX * (CHUNK_BLOCKS / 64 + 2) * 8) as u64 * (1 << 26) < AT);
/// Blocks of a segment.
const BLOCKS: usize = 1024;
/// Words of a block.
const BLOCK: usize = 2 * PARTS as usize;
const DIRECTORY_BYTES: u64 = 8 * BLOCKS as u64;
const BLOCK_BYTES: u64 = 8 * BLOCK as u64;
const SEGMENT_BYTES: u64 = DIRECTORY_BYTES + BLOCKS as u64 * BLOCK_BYTES;
/// Segments at most: 64 TiB that snapshots are written over.
const SEGMENTS_MAX: usize = 1024;

/// The mapped segments.
#[derive(Debug)]
pub(crate) struct Parts {
    file: File,
    segments: Box<[OnceLock<Mapping>]>,
    book: Mutex<Book>,
}

/// Whose the blocks are.
#[derive(Debug, Default)]
struct Book {
    /// By layer and chunk.
    blocks: BTreeMap<(u32, u32), usize>,
    free: Vec<usize>,
    /// Segments that are mapped.
    end: usize,
}

/// The first word of a part that is known to be nowhere in its layer; and while a channel takes a slot for it.
const NOWHERE: u64 = u64::MAX;
const HELD: u64 = u64::MAX - 1;

/// Where a part is in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Nowhere,
    /// The number of its slot, and the sectors that are there; none so far, perhaps.
    Slot {
        slot: u32,
        present: u64,
    },
}

fn key(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

fn place(block: usize) -> u64 {
    let (segment, within) = ((block / BLOCKS) as u64, (block % BLOCKS) as u64);
    AT + segment * SEGMENT_BYTES + DIRECTORY_BYTES + within * BLOCK_BYTES
}

/// Where a part is, in its two words: those of the slot that it has, or of one that no channel could take.
fn keep(part: &[AtomicU64], kept: &KeptPart) {
    let [slot, present] = part else { return };
    let wanted = u64::from(kept.slot) + 1;
    if slot.load(Relaxed) != wanted {
        present.store(0, Release);
        slot.store(wanted, Release);
    }
    present.fetch_or(kept.present, Release);
}

impl Parts {
    /// Maps what is there. A pool without layers has nothing, and costs nothing.
    pub(crate) fn map(file: File) -> Result<Parts, String> {
        let bytes = file.metadata().map_err(|error| error.to_string())?.len();
        let segments = (0..SEGMENTS_MAX).map(|_| OnceLock::new()).collect();
        let parts = Parts { file, segments, book: Mutex::default() };
        let there = bytes.saturating_sub(AT).div_ceil(SEGMENT_BYTES).min(SEGMENTS_MAX as u64);
        let mut book = locked(&parts.book);
        for segment in 0..there as usize {
            parts.map_segment(&mut book)?;
            for (index, word) in parts.directory(segment).iter().enumerate() {
                let (block, word) = (segment * BLOCKS + index, word.load(Acquire));
                let taken = word == 0 || book.blocks.insert(key(word), block).is_some();
                if taken {
                    book.free.push(block);
                    continue;
                }
                // Whoever was about to write there is dead.
                let words = parts.block(block).unwrap_or_default().chunks_exact(2);
                let empty = words.filter(|part| part[1].load(Acquire) == 0);
                empty.for_each(|part| part[0].store(0, Release));
            }
        }
        drop(book);
        Ok(parts)
    }

    /// Another segment. Its blocks get memory when they are somebody's.
    fn map_segment(&self, book: &mut Book) -> Result<(), String> {
        let say = |error: std::io::Error| error.to_string();
        let place = self.segments.get(book.end).ok_or("there are too many parts")?;
        let at = AT + book.end as u64 * SEGMENT_BYTES;
        if self.file.metadata().map_err(say)?.len() < at + SEGMENT_BYTES {
            self.file.set_len(at + SEGMENT_BYTES).map_err(say)?;
        }
        fallocate(self.file.as_fd(), FallocateFlags::empty(), at, DIRECTORY_BYTES)
            .map_err(|error| error.to_string())?;
        let mapping = Mapping::file(&self.file, at, SEGMENT_BYTES as usize, Access::ReadWrite);
        // Nobody else maps it: there is one thread.
        let _ = place.set(mapping.map_err(|error| error.to_string())?);
        book.end += 1;
        Ok(())
    }

    fn directory(&self, segment: usize) -> &[AtomicU64] {
        let words = self.segments.get(segment).and_then(OnceLock::get).map(Mapping::words);
        words.map_or(&[], |words| &words[..BLOCKS])
    }

    /// The words of a block.
    fn block(&self, block: usize) -> Option<&[AtomicU64]> {
        let words = self.segments.get(block / BLOCKS)?.get()?.words();
        words.get(BLOCKS + block % BLOCKS * BLOCK..)?.get(..BLOCK)
    }

    /// What is there.
    pub(crate) fn left(&self) -> Vec<KeptPart> {
        let mut all = Vec::new();
        for (&(layer, chunk), &block) in &locked(&self.book).blocks {
            let first = u64::from(chunk) * PARTS;
            let Some(words) = self.block(block) else { continue };
            for (number, part) in (first..).zip(words.chunks_exact(2)) {
                let present = part[1].load(Acquire);
                let slot = part[0].load(Relaxed).wrapping_sub(1) as u32;
                if present != 0 {
                    all.push(KeptPart { layer, part: number, slot, present });
                }
            }
        }
        all
    }

    /// Where a part is, by its block and its number in the chunk. None: that is not known.
    #[inline]
    pub(crate) fn at(&self, block: usize, part: u64) -> Option<At> {
        let within = 2 * part as usize;
        let [slot, present] = self.block(block)?.get(within..within + 2)? else { return None };
        let present = present.load(Acquire);
        match (slot.load(Acquire), present) {
            (0, _) => None,
            (NOWHERE | HELD, 0) => Some(At::Nowhere),
            (NOWHERE | HELD, _) => None,
            (slot, present) => Some(At::Slot { slot: (slot - 1) as u32, present }),
        }
    }

    /// Holds a part that is nowhere, so that nobody else gives it a slot before it is [let go](Parts::let_go): at once, since the pools' thread may wait for it.
    pub(crate) fn hold(&self, block: usize, part: u64) -> bool {
        let word = self.block(block).and_then(|words| words.get(2 * part as usize));
        word.is_some_and(|word| word.compare_exchange(NOWHERE, HELD, AcqRel, Acquire).is_ok())
    }

    /// It has that slot from now on, or is nowhere as before.
    pub(crate) fn let_go(&self, block: usize, part: u64, slot: Option<u32>) {
        if let Some(word) = self.block(block).and_then(|words| words.get(2 * part as usize)) {
            word.store(slot.map_or(NOWHERE, |slot| u64::from(slot) + 1), Release);
        }
    }

    /// Sectors were written in the slot of a part. False: the memory that says so was taken away.
    pub(crate) fn add(&self, block: usize, part: u64, sectors: u64) -> bool {
        let present = self.block(block).and_then(|words| words.get(2 * part as usize + 1));
        let segment = self.segments.get(block / BLOCKS).and_then(OnceLock::get);
        present.is_some_and(|present| {
            present.fetch_or(sectors, Release);
            segment.is_some_and(|segment| !segment.damaged())
        })
    }

    /// No channel takes a slot for that part of a layer from now on; the slot that one has taken.
    pub(crate) fn close(&self, layer: u32, part: u64) -> Option<u32> {
        let block = *locked(&self.book).blocks.get(&(layer, (part / PARTS) as u32))?;
        let word = self.block(block)?.get(2 * (part % PARTS) as usize)?;
        loop {
            match word.compare_exchange(NOWHERE, 0, AcqRel, Acquire) {
                Ok(_) | Err(0) => return None,
                // A few instructions of a channel, which may have to get its CPU first.
                Err(HELD) => std::thread::yield_now(),
                Err(slot) => return Some((slot - 1) as u32),
            }
        }
    }

    /// All that a layer has of a chunk of the LUs above it, in the block whose number this is. An error: the file system has no memory for it.
    pub(crate) fn keep_all(&self, key: (u32, u32), all: &[KeptPart]) -> Result<usize, String> {
        let block = self.block_of(key)?;
        let mut all = all.iter().peekable();
        // What is known already stays as it is at each moment.
        for (number, part) in (0..).zip(self.block(block).unwrap_or_default().chunks_exact(2)) {
            match all.next_if(|kept| kept.part % PARTS == number) {
                Some(kept) => keep(part, kept),
                // A channel may have taken one meanwhile.
                None => _ = part[0].compare_exchange(0, NOWHERE, AcqRel, Acquire),
            }
        }
        Ok(block)
    }

    /// What holds of a part now. An error: the file system has no memory for it.
    pub(crate) fn keep(&self, kept: &KeptPart) -> Result<(), String> {
        let chunk = (kept.part / PARTS) as u32;
        let block = self.block_of((kept.layer, chunk))?;
        let within = 2 * (kept.part % PARTS) as usize;
        let part = self.block(block).and_then(|words| words.get(within..within + 2));
        keep(part.unwrap_or_default(), kept);
        Ok(())
    }

    /// The block of a chunk, given out if there is none.
    fn block_of(&self, key: (u32, u32)) -> Result<usize, String> {
        let book = &mut *locked(&self.book);
        if let Some(block) = book.blocks.get(&key) {
            return Ok(*block);
        }
        if book.free.is_empty() {
            let first = book.end * BLOCKS;
            self.map_segment(book)?;
            book.free.extend((first..first + BLOCKS).rev());
        }
        let Some(block) = book.free.pop() else { return Err("there are too many parts".into()) };
        // What it had is gone, and it has memory, before it is anybody's.
        self.punch(block);
        if let Err(error) =
            fallocate(self.file.as_fd(), FallocateFlags::empty(), place(block), BLOCK_BYTES)
        {
            book.free.push(block);
            return Err(error.to_string());
        }
        let word = u64::from(key.0) << 32 | u64::from(key.1);
        self.directory(block / BLOCKS)[block % BLOCKS].store(word, Release);
        book.blocks.insert(key, block);
        Ok(block)
    }

    fn punch(&self, block: usize) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if fallocate(self.file.as_fd(), flags, place(block), BLOCK_BYTES).is_err() {
            let words = self.block(block).unwrap_or_default();
            words.iter().for_each(|word| word.store(0, Relaxed));
        }
    }

    /// Forgets the parts of which nothing holds.
    pub(crate) fn forget(&self, kept: &KeptPart) {
        let block =
            locked(&self.book).blocks.get(&(kept.layer, (kept.part / PARTS) as u32)).copied();
        let words = block.and_then(|block| self.block(block)).unwrap_or_default();
        let within = 2 * (kept.part % PARTS) as usize;
        if let Some([slot, present]) = words.get(within..within + 2) {
            present.store(0, Release);
            slot.store(0, Release);
        }
    }

    /// Forgets layers, and gives their memory back.
    pub(crate) fn retain(&self, stays: impl Fn(u32) -> bool) {
        let book = &mut *locked(&self.book);
        let gone: Vec<(u32, u32)> =
            book.blocks.keys().filter(|(layer, _)| !stays(*layer)).copied().collect();
        for key in gone {
            let Some(block) = book.blocks.remove(&key) else { continue };
            self.directory(block / BLOCKS)[block % BLOCKS].store(0, Release);
            self.punch(block);
            book.free.push(block);
        }
    }

    /// Its memory was taken away: somebody truncated the file.
    pub(crate) fn damaged(&self) -> bool {
        let end = locked(&self.book).end;
        self.segments.iter().take(end).filter_map(OnceLock::get).any(Mapping::damaged)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn map(file: &File) -> Parts {
        Parts::map(file.try_clone().unwrap()).unwrap()
    }

    #[test]
    fn a_successor_finds_what_was_kept() {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file in /dev/shm");
        let parts = map(&file);
        assert_eq!((parts.left(), file.metadata().unwrap().len()), (Vec::new(), 0), "no layers");
        let mut kept = BTreeMap::new();
        for (layer, part, slot, present) in
            [(3, 0, 0, 1), (3, 5, 1, u64::MAX), (3, 0, 0, 3), (3, PARTS + 7, 2, 4), (9, 0, 0, 8)]
        {
            let one = KeptPart { layer, part, slot, present };
            parts.keep(&one).unwrap();
            kept.insert((layer, part), one);
        }
        let all = |kept: &BTreeMap<_, KeptPart>| kept.values().copied().collect::<Vec<_>>();
        assert_eq!(parts.left(), all(&kept));
        assert_eq!(map(&file).left(), all(&kept));
        // Only of what is used there is memory.
        assert!(file.metadata().unwrap().blocks() * 512 < 5 * BLOCK_BYTES);
        parts.forget(&kept.remove(&(3, 5)).unwrap());
        parts.retain(|layer| layer == 3);
        kept.remove(&(9, 0));
        assert_eq!(map(&file).left(), all(&kept));
        assert!(file.metadata().unwrap().blocks() * 512 < 4 * BLOCK_BYTES);
        // A block is another's, and has nothing of what it had.
        let another = KeptPart { layer: 12, part: 1, slot: 0, present: 1 };
        parts.keep(&another).unwrap();
        kept.insert((12, 1), another);
        assert_eq!(map(&file).left(), all(&kept));
        assert!(!parts.damaged());
    }

    /// Channels and the pools' thread give parts their slots at once: each has one, and no two have the same.
    #[test]
    fn a_part_has_the_slot_that_one_alone_gave_it() {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file in /dev/shm");
        let parts = map(&file);
        let block = parts.keep_all((3, 0), &[]).unwrap();
        let next = AtomicU64::new(0);
        let begin = std::sync::Barrier::new(3);
        let gives = |as_channel: bool| {
            begin.wait();
            let mut given = BTreeMap::new();
            for part in 0..PARTS {
                let has = match as_channel {
                    true if parts.hold(block, part) => {
                        let slot = next.fetch_add(1, Relaxed) as u32;
                        parts.let_go(block, part, Some(slot));
                        Some(slot)
                    }
                    true => None,
                    // Every third is placed by the pool.
                    false if part % 3 == 0 => parts.close(3, part).or_else(|| {
                        let slot = next.fetch_add(1, Relaxed) as u32;
                        let kept = KeptPart { layer: 3, part, slot, present: 1 };
                        parts.keep(&kept).map(|()| slot).ok()
                    }),
                    false => None,
                };
                given.extend(has.map(|slot| (part, slot)));
                assert!(has.is_none() || parts.add(block, part, 1 << (part % 64)));
            }
            given
        };
        let given = std::thread::scope(|scope| {
            let threads = [true, true, false].map(|channel| scope.spawn(move || gives(channel)));
            threads.map(|thread| thread.join().unwrap())
        });
        let mut slots = BTreeMap::new();
        for (part, slot) in given.into_iter().flatten() {
            let at = parts.at(block, part);
            assert!(
                matches!(at, Some(At::Slot { slot: has, .. }) if has == slot),
                "{part}: {at:?}"
            );
            assert!(*slots.entry(slot).or_insert(part) == part, "slot {slot} has two parts");
        }
        assert_eq!(slots.into_keys().collect::<Vec<_>>(), (0..PARTS as u32).collect::<Vec<_>>());
    }

    /// Of what a process was about to write a successor knows nothing.
    #[test]
    fn a_slot_without_sectors_is_nobodys_after_a_death() {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file in /dev/shm");
        let parts = map(&file);
        let block = parts.keep_all((3, 0), &[]).unwrap();
        assert_eq!(parts.at(block, 5), Some(At::Nowhere));
        assert!(parts.hold(block, 5) && !parts.hold(block, 5));
        assert_eq!(parts.at(block, 5), Some(At::Nowhere));
        parts.let_go(block, 5, None);
        assert!(parts.hold(block, 5));
        parts.let_go(block, 5, Some(9));
        assert_eq!((parts.hold(block, 5), parts.close(3, 5)), (false, Some(9)));
        assert_eq!(parts.at(block, 5), Some(At::Slot { slot: 9, present: 0 }));
        assert_eq!((parts.close(3, 6), parts.hold(block, 6)), (None, false));
        assert!(parts.hold(block, 8), "it dies meanwhile");
        assert!(parts.hold(block, 7));
        parts.let_go(block, 7, Some(12));
        assert!(parts.add(block, 7, 6));
        // What the pool knows adds to it.
        let kept = KeptPart { layer: 3, part: 7, slot: 12, present: 1 };
        parts.keep_all((3, 0), &[kept]).unwrap();
        assert_eq!(parts.left(), [KeptPart { present: 7, ..kept }]);
        let next = map(&file);
        assert_eq!(next.left(), [KeptPart { present: 7, ..kept }]);
        let block = next.keep_all((3, 0), &[KeptPart { present: 7, ..kept }]).unwrap();
        assert!(next.hold(block, 5) && next.hold(block, 8));
    }

    #[test]
    fn there_are_as_many_blocks_as_are_needed() {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file in /dev/shm");
        let parts = map(&file);
        let chunks = BLOCKS as u64 + 2;
        let of = |chunk| KeptPart { layer: 1, part: chunk * PARTS, slot: 0, present: chunk + 1 };
        (0..chunks).for_each(|chunk| parts.keep(&of(chunk)).unwrap());
        assert_eq!(map(&file).left(), (0..chunks).map(of).collect::<Vec<_>>());
        let before = file.metadata().unwrap().len();
        parts.retain(|_| false);
        (0..chunks).for_each(|chunk| parts.keep(&of(chunk)).unwrap());
        assert_eq!(file.metadata().unwrap().len(), before, "what came free is used again");
    }
}
