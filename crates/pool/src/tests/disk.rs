//! PVs with caches that a power cut empties in any order, and that tear what they were writing.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::pool::{ReadFailed, Source};

const PAGE: u64 = 4096;
pub(super) const SECTOR: usize = 512;
/// What is on a disk that nobody wrote to: never zeros.
const BEFORE: [u8; PAGE as usize] = [0xee; PAGE as usize];

/// What is on all PVs, by page; shared between images.
pub(super) type Pages = BTreeMap<(u16, u64), Rc<[u8; PAGE as usize]>>;

/// A write.
#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) pv: u16,
    pub(super) at: u64,
    pub(super) bytes: Rc<Vec<u8>>,
}

impl Write {
    fn overlaps(&self, other: &Write) -> bool {
        self.pv == other.pv
            && self.at < other.at + other.bytes.len() as u64
            && other.at < self.at + self.bytes.len() as u64
    }
}

/// How much of a write is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Nothing,
    /// So many sectors from the front.
    Front(usize),
    /// All but so many sectors from the front.
    Back(usize),
    All,
}

/// All PVs, as somebody finds them: shared pages, and those of its own.
#[derive(Clone)]
pub(super) struct Image<'a> {
    base: &'a Pages,
    own: Pages,
    /// That PV is not there.
    pub(super) gone: Option<u16>,
}

impl<'a> Image<'a> {
    pub(super) fn new(base: &'a Pages) -> Image<'a> {
        Image { base, own: Pages::new(), gone: None }
    }

    /// Without that PV.
    pub(super) fn without(self, gone: Option<u16>) -> Image<'a> {
        Image { gone, ..self }
    }

    pub(super) fn apply(&mut self, write: &Write, part: Part) {
        let sectors = write.bytes.len() / SECTOR;
        let range = match part {
            Part::Nothing => return,
            Part::Front(count) => 0..count.min(sectors) * SECTOR,
            Part::Back(count) => count.min(sectors) * SECTOR..write.bytes.len(),
            Part::All => 0..write.bytes.len(),
        };
        for (page, start, bytes) in by_page(write.at + range.start as u64, &write.bytes[range]) {
            let key = (write.pv, page);
            let before = || self.base.get(&key).cloned().unwrap_or_else(|| Rc::new(BEFORE));
            let page = Rc::make_mut(self.own.entry(key).or_insert_with(before));
            page[start..start + bytes.len()].copy_from_slice(bytes);
        }
    }

    pub(super) fn pages(self) -> Pages {
        let mut pages = self.base.clone();
        pages.extend(self.own);
        pages
    }
}

impl Source for Image<'_> {
    fn is_there(&mut self, pv: u16) -> bool {
        self.gone != Some(pv)
    }

    fn read(&mut self, pv: u16, at: u64, bytes: usize) -> Result<Vec<u8>, ReadFailed> {
        if self.gone == Some(pv) {
            return Err(ReadFailed { pv, at });
        }
        let mut all = Vec::with_capacity(bytes);
        while all.len() < bytes {
            let from = at + all.len() as u64;
            let key = (pv, from / PAGE);
            let page =
                self.own.get(&key).or_else(|| self.base.get(&key)).map_or(&BEFORE, |page| page);
            let start = (from % PAGE) as usize;
            let end = (PAGE as usize).min(start + bytes - all.len());
            all.extend_from_slice(&page[start..end]);
        }
        Ok(all)
    }
}

/// The pieces of some bytes by page: number of the page, where in it, which bytes.
fn by_page(at: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, usize, &[u8])> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let from = at + done as u64;
        let start = (from % PAGE) as usize;
        let count = (PAGE as usize - start).min(bytes.len() - done);
        let piece = (from / PAGE, start, &bytes[done..done + count]);
        done += count;
        (count > 0).then_some(piece)
    })
}

/// A write that is in a cache, in the order in which they were done.
#[derive(Clone, Debug)]
struct Cached {
    number: u64,
    write: Write,
    durable: bool,
}

/// The PVs at work.
#[derive(Clone, Default)]
pub(super) struct Disks {
    stable: Pages,
    now: Pages,
    cached: Vec<Cached>,
    number: u64,
}

impl Disks {
    pub(super) fn new(pages: Pages) -> Disks {
        Disks { now: pages.clone(), stable: pages, cached: Vec::new(), number: 0 }
    }

    /// A write is done.
    pub(super) fn write(&mut self, write: Write, durable: bool) {
        apply(&mut self.now, &write);
        self.number += 1;
        self.cached.push(Cached { number: self.number, write, durable });
        if durable {
            self.settle();
        }
    }

    /// What a flush that begins now has to make durable.
    pub(super) fn mark(&self) -> u64 {
        self.number
    }

    /// A flush is done that began at a mark.
    pub(super) fn flush(&mut self, pv: u16, mark: u64) {
        for cached in &mut self.cached {
            cached.durable |= cached.write.pv == pv && cached.number <= mark;
        }
        self.settle();
    }

    /// A PV was without power: of what was in its cache there is what `keeps` says.
    pub(super) fn lose_cache(&mut self, pv: u16, mut keeps: impl FnMut() -> bool) {
        self.cached.retain(|cached| cached.write.pv != pv || cached.durable || keeps());
        self.now.clone_from(&self.stable);
        self.cached.iter().for_each(|cached| apply(&mut self.now, &cached.write));
        for cached in &mut self.cached {
            cached.durable |= cached.write.pv == pv;
        }
        self.settle();
    }

    /// A bit of what is on a PV turns, of what is durable and of what is read.
    pub(super) fn turn_bit(&mut self, pv: u16, at: u64, bit: u8) {
        for all in [&mut self.stable, &mut self.now] {
            let page = all.entry((pv, at / PAGE)).or_insert_with(|| Rc::new(BEFORE));
            Rc::make_mut(page)[(at % PAGE) as usize] ^= 1 << bit;
        }
    }

    /// Another disk stands in the place of a PV.
    pub(super) fn replace(&mut self, pv: u16, pages: Pages) {
        self.cached.retain(|cached| cached.write.pv != pv);
        for all in [&mut self.stable, &mut self.now] {
            all.retain(|(other, _), _| *other != pv);
            all.extend(pages.clone());
        }
    }

    /// Moves what is durable and lies on nothing that is not.
    fn settle(&mut self) {
        let mut rest: Vec<Cached> = Vec::new();
        for cached in std::mem::take(&mut self.cached) {
            let free = !rest.iter().any(|before| before.write.overlaps(&cached.write));
            if cached.durable && free {
                apply(&mut self.stable, &cached.write);
            } else {
                rest.push(cached);
            }
        }
        self.cached = rest;
    }

    pub(super) fn now(&self) -> &Pages {
        &self.now
    }

    pub(super) fn stable(&self) -> &Pages {
        &self.stable
    }

    /// What is in caches, in order, and whether it is durable.
    pub(super) fn cached(&self) -> impl Iterator<Item = (&Write, bool)> {
        self.cached.iter().map(|cached| (&cached.write, cached.durable))
    }
}

fn apply(pages: &mut Pages, write: &Write) {
    for (page, start, bytes) in by_page(write.at, &write.bytes) {
        let page = pages.entry((write.pv, page)).or_insert_with(|| Rc::new(BEFORE));
        Rc::make_mut(page)[start..start + bytes.len()].copy_from_slice(bytes);
    }
}

#[test]
fn a_flush_covers_what_was_done_before_it_and_nothing_else() {
    let write = |at, byte: u8| Write { pv: 0, at, bytes: Rc::new(vec![byte; SECTOR]) };
    let mut disks = Disks::new(Pages::new());
    disks.write(write(0, 1), false);
    let mark = disks.mark();
    disks.write(write(0, 2), false);
    disks.write(write(512, 3), true);
    disks.flush(0, mark);
    let stable = Image::new(disks.stable()).read(0, 0, 1536).unwrap();
    assert_eq!([stable[0], stable[512], stable[1024]], [1, 3, 0xee]);
    let now = Image::new(disks.now()).read(0, 0, 1024).unwrap();
    assert_eq!([now[0], now[512]], [2, 3]);
    let mut torn = Image::new(disks.stable());
    let [first, then] =
        [1, 2].map(|byte| Write { bytes: Rc::new(vec![byte; 1024]), ..write(0, 0) });
    torn.apply(&first, Part::Front(1));
    torn.apply(&then, Part::Back(1));
    let torn = torn.read(0, 0, 1024).unwrap();
    assert_eq!([torn[0], torn[512]], [1, 2]);
}
