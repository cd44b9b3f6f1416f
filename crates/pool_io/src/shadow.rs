//! Which blocks of each chunk are written, in memory that survives the process: a file in a tmpfs.
//!
//! | words of 64 bits | what |
//! |---|---|
//! | 0 | the magic number |
//! | 1, 2 | UUID of the pool |
//! | 3, 4 | UUID of the server |
//! | 5, 6 | the boot of the host |
//! | 7 | 2: what this table says |
//! | 8 | epoch of the pool: it holds for this one and the next |
//! | 16 to 31 | a bit for each PV, by number: it was lost, and no superblock says so yet |
//! | from 512 on, at a page, for each PV that was ever in the pool | UUID of the PV, how many chunks it has, 509 words that are not used; then 17 words for each chunk: `VALID` and how often it was given out, then its 1,024 bits |
//!
//! The pools' thread writes it and no other; channels read bits. The kernel keeps every store of a process that is killed, in order: so a chunk is made invalid before its bits
//! become those of another generation, and all that was stored before an answer is there. Where a PV's words are follows from how many chunks those before it have: a PV that comes later changes nothing
//! of what is there, and its words are made before anything can be on it. A PV that grows keeps its place there, as large as it was at first; the words of its further chunks are at [`FAR`] and so many times [`STRIDE`] as its number says,
//! behind a page with its UUID and how many chunks it had at first, where a successor finds that. What a successor has to know of layers is far behind all that ([`parts`](crate::parts)).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Mutex, OnceLock};

use memory::{Access, Mapping};
use pool::format::{BLOCKS, MEMBERS_MAX, Uuid};
use pool::{ChunkId, Kept, KeptPart};

use crate::parts::Parts;
use crate::table::locked;
use crate::turns::point;

const MAGIC: u64 = u64::from_le_bytes(*b"TLSHADOW");
const HEADER: usize = 512;
const BITS: usize = BLOCKS / 64;
const CHUNK: usize = 1 + BITS;
/// Where the bits of PVs are that were lost.
const LOST: usize = 16;
const LOST_WORDS: usize = MEMBERS_MAX / 64;
/// What the module's table says.
const LAYOUT: u64 = 2;
/// The bit of a chunk's first word that says that the rest holds.
const VALID: u64 = 1 << 63;

/// Where the words are of chunks that PVs got later: behind all that is of [parts](crate::parts); and room for those of any one.
const FAR: u64 = 1 << 48;
const STRIDE: u64 = 1 << 40;

/// What it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) pool: Uuid,
    pub(crate) server: Uuid,
    /// The boot of the host: memory that is older lies on a disk.
    pub(crate) boot: Uuid,
}

/// A PV of it: which, and how many chunks it has.
pub(crate) type OfPv = (Uuid, u32);

/// The mapped file.
#[derive(Debug)]
pub(crate) struct Shadow {
    file: File,
    header: Mapping,
    pub(crate) parts: Parts,
    /// By number of the member.
    pvs: Box<[OnceLock<Mapping>]>,
    /// Words of the chunks that each got later.
    more: Box<[OnceLock<Box<More>>]>,
    /// How many chunks those had at first that have grown, also such as are gone.
    first: Mutex<BTreeMap<usize, u32>>,
    /// All that are mapped have numbers below.
    end: AtomicUsize,
}

/// The words of all chunks that a PV got later.
#[derive(Debug)]
struct More {
    first: u32,
    mapping: Mapping,
    /// The same, when there were more.
    next: OnceLock<Box<More>>,
}

impl More {
    fn entry(&self, chunk: u32) -> Option<&[AtomicU64]> {
        let start = HEADER + chunk.checked_sub(self.first)? as usize * CHUNK;
        let here = self.mapping.words().get(start..start + CHUNK);
        here.or_else(|| self.next.get()?.entry(chunk))
    }

    /// All of them.
    fn last(&self) -> &More {
        self.next.get().map_or(self, |next| next.last())
    }
}

/// Where they are.
fn far(number: usize) -> u64 {
    FAR + number as u64 * STRIDE
}

fn halves(uuid: Uuid) -> [u64; 2] {
    let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| uuid.0[at + index]));
    [half(0), half(8)]
}

/// What stands before the chunks of a PV.
fn front((pv, chunks): OfPv) -> [u64; 3] {
    let [first, second] = halves(pv);
    [first, second, u64::from(chunks)]
}

/// Bytes of the words of a PV.
fn bytes_of(chunks: u32) -> u64 {
    (8 * (HEADER as u64 + u64::from(chunks) * CHUNK as u64)).next_multiple_of(4096)
}

/// Maps a part of the file, with all its memory; what there was none of is zeros.
fn part(file: &File, at: u64, bytes: u64) -> Result<Mapping, String> {
    let say = |error: std::io::Error| error.to_string();
    if file.metadata().map_err(say)?.len() < at + bytes {
        file.set_len(at + bytes).map_err(say)?;
    }
    let flags = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(file.as_fd(), flags, at, bytes)
        .map_err(|error| format!("its {bytes} bytes of memory: {error}"))?;
    Mapping::file(file, at, bytes as usize, Access::ReadWrite).map_err(|error| error.to_string())
}

impl Shadow {
    /// Maps a file for a pool with such PVs, in the order of members; those that are gone have a place and no memory. Words of another PV are forgotten.
    pub(crate) fn map(file: File, pvs: &[(OfPv, bool)]) -> Result<Shadow, String> {
        let header = part(&file, 0, 8 * HEADER as u64)?;
        let parts = file.try_clone().map_err(|error| error.to_string())?;
        let parts = Parts::map(parts)?;
        let shadow = Shadow {
            file,
            header,
            parts,
            pvs: (0..MEMBERS_MAX).map(|_| OnceLock::new()).collect(),
            more: (0..MEMBERS_MAX).map(|_| OnceLock::new()).collect(),
            first: Mutex::default(),
            end: AtomicUsize::new(0),
        };
        let mut at = 8 * HEADER as u64;
        for (number, (pv, there)) in pvs.iter().enumerate() {
            let first = shadow.had_first(number, *pv);
            if *there {
                shadow.map_pv(number, at, (pv.0, first))?;
            }
            if first < pv.1 {
                locked(&shadow.first).insert(number, first);
                if *there {
                    shadow.map_more(number, first, *pv)?;
                }
            }
            at += bytes_of(first);
        }
        Ok(shadow)
    }

    /// How many chunks a PV had at first.
    fn had_first(&self, number: usize, (pv, chunks): OfPv) -> u32 {
        let mut words = [0; 24];
        let read = self.file.read_exact_at(&mut words, far(number));
        let mut words = words
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(std::array::from_fn(|index| word[index])));
        let known = read.is_ok() && halves(pv).into_iter().all(|half| words.next() == Some(half));
        let first = words.next().filter(|first| known && (1..u64::from(chunks)).contains(first));
        first.map_or(chunks, |first| first as u32)
    }

    /// Where the words of each of these PVs begin, and how many chunks are there.
    fn places(&self, pvs: impl Iterator<Item = u32>) -> impl Iterator<Item = (u64, u32)> {
        let first = locked(&self.first).clone();
        let mut end = 8 * HEADER as u64;
        pvs.enumerate().map(move |(number, chunks)| {
            let chunks = first.get(&number).copied().unwrap_or(chunks);
            let at = end;
            end += bytes_of(chunks);
            (at, chunks)
        })
    }

    /// Makes room for the chunks that a PV is about to have, which has so many now.
    pub(crate) fn grow(&self, number: u16, before: u32, pv: OfPv) -> Result<(), String> {
        let number = usize::from(number);
        let first = *locked(&self.first).entry(number).or_insert(before);
        self.map_more(number, first, pv)
    }

    fn map_more(&self, number: usize, first: u32, (pv, chunks): OfPv) -> Result<(), String> {
        let mapping = part(&self.file, far(number), bytes_of(chunks - first))?;
        let words = mapping.words();
        let front = front((pv, first));
        if !words.iter().map(|word| word.load(Relaxed)).take(3).eq(front) {
            forget(words);
            words.iter().zip(front).for_each(|(word, value)| word.store(value, Release));
        }
        let more = Box::new(More { first, mapping, next: OnceLock::new() });
        let place = self.more.get(number).ok_or("the pool has too many PVs")?;
        // Nobody else maps it: there is one thread.
        let _ = place.get().map_or(place, |before| &before.last().next).set(more);
        Ok(())
    }

    /// Makes room for another PV, which has the number after those that were ever in the pool.
    pub(crate) fn add(&self, pvs: impl Iterator<Item = u32>, new: OfPv) -> Result<(), String> {
        let places: Vec<(u64, u32)> = self.places(pvs).collect();
        let number = places.len();
        let at = places.last().map_or(8 * HEADER as u64, |(at, chunks)| at + bytes_of(*chunks));
        // It was prepared for one that did not come after all.
        match self.pvs.get(number).is_some_and(|place| place.get().is_some()) {
            true => self.begin_pv(number, new),
            false => self.map_pv(number, at, new),
        }
    }

    fn map_pv(&self, number: usize, at: u64, pv: OfPv) -> Result<(), String> {
        let place = self.pvs.get(number).ok_or("the pool has too many PVs")?;
        let mapping = part(&self.file, at, bytes_of(pv.1))?;
        let known = mapping.words().iter().map(|word| word.load(Relaxed)).take(3).eq(front(pv));
        // Nobody else maps it: there is one thread.
        let _ = place.set(mapping);
        self.end.fetch_max(number + 1, Relaxed);
        if known { Ok(()) } else { self.begin_pv(number, pv) }
    }

    /// Nothing is known of a PV.
    fn begin_pv(&self, number: usize, pv: OfPv) -> Result<(), String> {
        let words = self.pvs[number].get().map(Mapping::words).unwrap_or_default();
        if words.len() * 8 < bytes_of(pv.1) as usize {
            return Err("a PV of another size was about to be added: restart the data plane".into());
        }
        forget(words);
        words.iter().zip(front(pv)).for_each(|(word, value)| word.store(value, Release));
        Ok(())
    }

    /// Gives the memory back of a PV that is gone: nobody looks there any more.
    pub(crate) fn drop_pv(&self, number: u16, pvs: impl Iterator<Item = u32>) {
        let number = usize::from(number);
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        let here = self.places(pvs).nth(number).map(|(at, chunks)| (at, bytes_of(chunks)));
        // How many chunks it had at first says where the others are.
        let front = 8 * HEADER as u64;
        let more = self.more.get(number).and_then(OnceLock::get);
        let more = more.map(|more| more.last().mapping.words().len() as u64 * 8 - front);
        let more = more.map(|bytes| (far(number) + front, bytes));
        for (at, bytes) in here.into_iter().chain(more).filter(|(_, bytes)| *bytes > 0) {
            // It is only memory.
            let _ = rustix::fs::fallocate(self.file.as_fd(), flags, at, bytes);
        }
    }

    /// These PVs are lost, and no superblock says so. To be said before anything follows from it.
    pub(crate) fn lose(&self, lost: &BTreeSet<u16>) {
        for (index, word) in self.header.words()[LOST..LOST + LOST_WORDS].iter().enumerate() {
            let here = lost.iter().filter(|pv| usize::from(**pv) / 64 == index);
            let value = here.fold(0, |value, pv| value | 1 << (pv % 64));
            if word.load(Relaxed) != value {
                word.store(value, Release);
                point();
            }
        }
    }

    /// PVs that a process before this one had lost, as far as it is one whose memory counts ([`Shadow::left`]).
    pub(crate) fn lost(&self) -> BTreeSet<u16> {
        let bits = |(index, word): (usize, &AtomicU64)| {
            let word = word.load(Acquire);
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * index as u16 + bit)
        };
        let words = &self.header.words()[LOST..LOST + LOST_WORDS];
        words.iter().enumerate().flat_map(bits).collect()
    }

    /// Nothing is known any more of what is on a PV.
    pub(crate) fn forget_pv(&self, number: u16) {
        let mapped = self.mapped().filter(|(pv, ..)| *pv == usize::from(number));
        mapped.for_each(|(.., words)| forget(&words[HEADER..]));
    }

    /// What a process before this one left, if it was this server in this boot of the host: the epoch for which it holds, the chunks, and the parts of layers.
    pub(crate) fn left(&self, owner: Owner) -> Option<(u64, Vec<Kept>, Vec<KeptPart>)> {
        let words = self.header.words();
        let found: Vec<u64> = words[..9].iter().map(|word| word.load(Acquire)).collect();
        if found[0] != MAGIC || found[1..8] != Self::owner(owner) {
            return None;
        }
        let mut kept = Vec::new();
        for (pv, first, words) in self.mapped() {
            for (chunk, entry) in (first..).zip(words[HEADER..].chunks_exact(CHUNK)) {
                let first = entry[0].load(Acquire);
                if first & VALID == 0 {
                    continue;
                }
                let bits = std::array::from_fn(|index| {
                    let word = entry[1 + index / 2].load(Relaxed);
                    (word >> (32 * (index % 2))) as u32
                });
                // Numbers of PVs and chunks are those of the superblock, of 16 and 32 bits.
                let id = ChunkId { pv: pv as u16, chunk };
                kept.push((id, first as u16, bits));
            }
        }
        Some((found[8], kept, self.parts.left()))
    }

    /// Number of a PV, its first chunk that is there, and the words of that and those after it.
    fn mapped(&self) -> impl Iterator<Item = (usize, u32, &[AtomicU64])> {
        let pvs = self.pvs.iter().zip(&self.more).enumerate().take(self.end.load(Relaxed));
        pvs.flat_map(|(pv, (place, more))| {
            let first = place.get().map(|mapping| (pv, 0, mapping.words()));
            let more = more.get().map(|more| (pv, more.first, more.last().mapping.words()));
            first.into_iter().chain(more)
        })
    }

    fn owner(Owner { pool, server, boot }: Owner) -> [u64; 7] {
        let [a, b] = halves(pool);
        let [c, d] = halves(server);
        let [e, f] = halves(boot);
        [a, b, c, d, e, f, LAYOUT]
    }

    /// Forgets everything: nobody's memory, until [`Shadow::holds_for`].
    pub(crate) fn clear(&self) {
        self.header.words()[0].store(0, Release);
        forget(&self.header.words()[1..]);
        self.mapped().for_each(|(.., words)| forget(&words[HEADER..]));
        self.parts.retain(|_| false);
    }

    /// From now on it is this one's, for the pool at this epoch and the next.
    pub(crate) fn holds_for(&self, owner: Owner, epoch: u64) {
        let words = self.header.words();
        for (word, value) in words[1..8].iter().zip(Self::owner(owner)) {
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
            point();
        }
        for (index, word) in entry[1..].iter().enumerate() {
            let value = u64::from(bits[2 * index]) | u64::from(bits[2 * index + 1]) << 32;
            if word.load(Relaxed) != value {
                word.store(value, Release);
                point();
            }
        }
        entry[0].store(first, Release);
        point();
    }

    #[inline]
    fn entry(&self, id: ChunkId) -> Option<&[AtomicU64]> {
        let words = self.pvs.get(usize::from(id.pv))?.get()?.words();
        let start = HEADER + id.chunk as usize * CHUNK;
        words.get(start..start + CHUNK).or_else(|| self.later(id))
    }

    /// Those of a chunk that a PV got later. The first few may have had room at the end of its last page.
    #[cold]
    fn later(&self, id: ChunkId) -> Option<&[AtomicU64]> {
        self.more.get(usize::from(id.pv))?.get()?.entry(id.chunk)
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
        let pvs = || self.pvs.iter().zip(&self.more).take(self.end.load(Relaxed));
        let damaged = |more: &OnceLock<Box<More>>| {
            more.get().is_some_and(|more| more.last().mapping.damaged())
        };
        self.header.damaged()
            || self.parts.damaged()
            || pvs().any(|(pv, more)| pv.get().is_some_and(Mapping::damaged) || damaged(more))
    }
}

fn forget(words: &[AtomicU64]) {
    words.iter().for_each(|word| {
        // Pages that nobody ever touched stay so.
        if word.load(Relaxed) != 0 {
            word.store(0, Relaxed);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Owner = Owner { pool: Uuid([1; 16]), server: Uuid([2; 16]), boot: Uuid([3; 16]) };

    fn file() -> File {
        tempfile::tempfile_in("/dev/shm").expect("a file in /dev/shm")
    }

    fn pvs(chunks: &[u32]) -> Vec<(OfPv, bool)> {
        (1..).zip(chunks).map(|(pv, chunks)| ((Uuid([pv; 16]), *chunks), true)).collect()
    }

    fn map(file: &File, chunks: &[u32]) -> Shadow {
        Shadow::map(file.try_clone().unwrap(), &pvs(chunks)).unwrap()
    }

    fn id(pv: u16, chunk: u32) -> ChunkId {
        ChunkId { pv, chunk }
    }

    #[test]
    fn a_successor_finds_what_was_kept_and_nobody_else_does() {
        let file = file();
        let shadow = map(&file, &[3, 5]);
        assert_eq!(shadow.left(ONE), None);
        shadow.holds_for(ONE, 7);
        let mut bits = [0; BLOCKS / 32];
        (bits[0], bits[31]) = (5, 1 << 31);
        shadow.keep(&(id(1, 4), 9, bits));
        shadow.keep(&(id(0, 0), u16::MAX, [0; BLOCKS / 32]));
        drop(shadow);
        let next = map(&file, &[3, 5]);
        let kept = vec![(id(0, 0), u16::MAX, [0; BLOCKS / 32]), (id(1, 4), 9, bits)];
        assert_eq!(next.left(ONE), Some((7, kept, Vec::new())));
        for other in [
            Owner { pool: Uuid([9; 16]), ..ONE },
            Owner { server: Uuid([9; 16]), ..ONE },
            Owner { boot: Uuid([9; 16]), ..ONE },
        ] {
            assert_eq!(next.left(other), None, "{other:?}");
        }
        next.clear();
        next.holds_for(ONE, 8);
        assert_eq!(next.left(ONE), Some((8, Vec::new(), Vec::new())));
        next.keep(&(id(1, 4), 9, bits));
        next.keep(&(id(0, 1), 2, bits));
        // Another PV in the place of one that is known: what it has is nobody's.
        let one = vec![(id(0, 1), 2, bits)];
        assert_eq!(map(&file, &[3, 6]).left(ONE), Some((8, one, Vec::new())));
    }

    #[test]
    fn a_pv_that_comes_has_its_own_place_and_one_that_is_gone_none() {
        let file = file();
        let shadow = map(&file, &[3, 5]);
        shadow.holds_for(ONE, 7);
        let bits = [7; BLOCKS / 32];
        shadow.keep(&(id(2, 0), 1, bits));
        assert!(!shadow.has_all(id(2, 0), 0, 0), "there is no such PV");
        shadow.keep(&(id(1, 4), 9, bits));
        for pv in [8, 9] {
            shadow.add([3, 5].into_iter(), (Uuid([pv; 16]), 600)).unwrap();
            assert!(!shadow.has_all(id(2, 599), 0, 0), "nothing is known of it");
            shadow.keep(&(id(2, 599), 1, bits));
            assert!(shadow.has_all(id(2, 599), 0, 2));
        }
        assert!(shadow.add([3, 5].into_iter(), (Uuid([9; 16]), 9000)).is_err());
        let all = [pvs(&[3, 5]), vec![((Uuid([9; 16]), 600), true)]].concat();
        let next = |all: &[(OfPv, bool)]| Shadow::map(file.try_clone().unwrap(), all).unwrap();
        let kept = vec![(id(1, 4), 9, bits), (id(2, 599), 1, bits)];
        assert_eq!(next(&all).left(ONE), Some((7, kept.clone(), Vec::new())));
        // A successor that does not know of it yet.
        assert_eq!(next(&all[..2]).left(ONE), Some((7, kept[..1].to_vec(), Vec::new())));
        let mut gone = all;
        gone[1].1 = false;
        let shadow = next(&gone);
        assert_eq!(shadow.left(ONE), Some((7, kept[1..].to_vec(), Vec::new())));
        shadow.drop_pv(1, [3, 5, 600].into_iter());
        assert!(shadow.has_all(id(2, 599), 0, 2) && !shadow.damaged());
    }

    /// Once, and again, while others are behind it: nobody's words move, and a successor finds all of them.
    #[test]
    fn a_pv_that_grows_keeps_what_is_known_of_it_and_of_those_behind_it() {
        let file = file();
        let shadow = map(&file, &[3, 5]);
        shadow.holds_for(ONE, 7);
        let bits = |seed: u32| [seed; BLOCKS / 32];
        let mut kept = vec![(id(0, 2), 1, bits(1)), (id(1, 4), 9, bits(2))];
        kept.iter().for_each(|one| shadow.keep(one));
        for (before, chunks) in [(3, 700), (700, 9000), (9000, 9001)] {
            let uuid = pvs(&[3])[0].0.0;
            let shown = |shadow: &Shadow| shadow.has_all(id(0, chunks - 1), 0, 0);
            shadow.grow(0, before, (uuid, chunks)).unwrap();
            assert!(!shown(&shadow));
            // It came to nothing, as far as a successor knows.
            assert_eq!(map(&file, &[before, 5]).left(ONE), Some((7, kept.clone(), Vec::new())));
            for chunk in [before, chunks - 1] {
                let one = (id(0, chunk), 4, bits(chunk));
                shadow.keep(&one);
                kept.retain(|(id, ..)| *id != one.0);
                kept.push(one);
            }
            kept.sort_unstable_by_key(|(id, ..)| (id.pv, id.chunk));
            assert!(!shadow.damaged());
            let next = map(&file, &[chunks, 5]);
            assert_eq!(next.left(ONE), Some((7, kept.clone(), Vec::new())));
        }
        // One that comes has a place behind all, also when it is gone and the next comes.
        let uuid = |pv: u8| Uuid([pv; 16]);
        shadow.add([9001, 5].into_iter(), (uuid(3), 4)).unwrap();
        let one = (id(2, 3), 5, bits(5));
        shadow.keep(&one);
        kept.push(one);
        let next = map(&file, &[9001, 5, 4]);
        assert_eq!(next.left(ONE), Some((7, kept.clone(), Vec::new())));
        next.drop_pv(0, [9001, 5, 4].into_iter());
        kept.retain(|(id, ..)| id.pv > 0);
        let mut gone = pvs(&[9001, 5, 4]);
        gone[0].1 = false;
        let last = Shadow::map(file.try_clone().unwrap(), &gone).unwrap();
        assert_eq!(last.left(ONE), Some((7, kept.clone(), Vec::new())));
        last.add([9001, 5, 4].into_iter(), (uuid(4), 4)).unwrap();
        last.forget_pv(1);
        last.keep(&(id(3, 0), 1, bits(6)));
        kept = vec![kept[1], (id(3, 0), 1, bits(6))];
        assert_eq!(last.left(ONE), Some((7, kept, Vec::new())));
        last.clear();
        last.holds_for(ONE, 8);
        assert_eq!(last.left(ONE), Some((8, Vec::new(), Vec::new())));
    }

    #[test]
    fn ranges_of_blocks_are_looked_up_as_a_list_of_bits_has_them() {
        let shadow = map(&file(), &[2]);
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
