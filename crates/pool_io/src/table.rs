//! What channels and the pools' thread have in common.
//!
//! # A look-up
//!
//! ```text
//! channel                                      thread
//! count itself in the epoch                    show that the chunk is the pool's alone
//! fence                                        fence
//! look up ── there: read or write the PV       next epoch; fence
//!        └── else: uncount, ask                … until nobody counts in the epoch before
//! ```
//!
//! Either the thread sees the count, and waits until the channel's I/O is over, or the channel sees what was shown before, and asks. A channel that counted itself in an epoch that had just
//! ended delays the next wait for that parity, and nothing else: what it looked up is as new.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use block::FileVolume;
use pool::format::{BLOCK_BYTES, CHUNK_BYTES, MemberState, Uuid};
use pool::{ChunkId, KeptPart, LuSpace, PvSpace, Shown, Way};
use spec::Traffic;

use crate::away::Pause;
use crate::chain::{Chain, Space};
use crate::copies::Copies;
use crate::findings::ChecksView;
use crate::shadow::Shadow;
use crate::traffic::Meters;

/// PVs that are not open: numbers, where they are, and why they are not.
pub(crate) type Absent = Vec<(u16, PathBuf, Option<String>)>;

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Lists and figures are whole at any moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Of a word of a [`Table`]: the chunk reads as zeros.
const ZEROS: u64 = 1;
/// … or is at the PV (12 bits from 52 on) and its chunk (26 bits from 26 on); else the pool has to be asked.
const THERE: u64 = 2;

pub(crate) fn word(way: Way) -> u64 {
    match way {
        Way::Ask => 0,
        Way::Zeros => ZEROS,
        Way::There(id) => THERE | u64::from(id.pv) << 52 | u64::from(id.chunk) << 26,
    }
}

/// An LU: where each of its chunks is.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) number: u32,
    /// Chunks that it has. There may be words for more, which say that the pool has to be asked.
    count: AtomicU32,
    first: Part,
    /// The size of the volume that it is, which ends somewhere in its last chunk.
    pub(crate) size: AtomicU64,
    /// Lanes to it.
    pub(crate) lanes: AtomicU32,
    /// It is gone: whoever has it open still is told so.
    gone: AtomicBool,
    /// Volumes that are open on it.
    pub(crate) users: AtomicU32,
    /// It shares what it holds: channels look for it in its chain, and the pool cuts each request into parts.
    pub(crate) shares: AtomicBool,
    /// How often its chain has changed, and what it is; none while the pool has to be asked.
    changes: AtomicU64,
    chain: Mutex<Option<Arc<Chain>>>,
}

/// Words of chunks, and those that came when it grew: nothing moves at which channels look.
#[derive(Debug)]
struct Part {
    chunks: Box<[AtomicU64]>,
    next: OnceLock<Box<Part>>,
}

impl Part {
    fn of(words: impl Iterator<Item = u64>) -> Part {
        Part { chunks: words.map(AtomicU64::new).collect(), next: OnceLock::new() }
    }
}

/// What a look-up finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Ask,
    Zeros,
    /// Number of the PV, and byte of it.
    There(u16, u64),
}

impl Table {
    pub(crate) fn new(number: u32, ways: impl Iterator<Item = Way>) -> Table {
        let first = Part::of(ways.map(word));
        Table {
            number,
            // As many as the pool said, which counts them so.
            count: AtomicU32::new(first.chunks.len() as u32),
            first,
            size: AtomicU64::new(0),
            lanes: AtomicU32::new(0),
            gone: AtomicBool::new(false),
            users: AtomicU32::new(0),
            shares: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            chain: Mutex::default(),
        }
    }

    /// What it holds is there from now on; none: the pool is asked.
    pub(crate) fn show_chain(&self, chain: Option<Arc<Chain>>) {
        let mut now = locked(&self.chain);
        *now = chain.filter(|_| !self.gone.load(Relaxed));
        self.changes.fetch_add(1, SeqCst);
    }

    /// How often its chain has changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Acquire)
    }

    /// Its chain, and how often that has changed.
    pub(crate) fn chain(&self) -> (u64, Option<Arc<Chain>>) {
        let now = locked(&self.chain);
        (self.changes(), now.clone())
    }

    pub(crate) fn chunks(&self) -> u32 {
        self.count.load(Relaxed)
    }

    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.chunks()) * CHUNK_BYTES
    }

    /// The word of a chunk.
    #[inline]
    fn word(&self, vchunk: usize) -> Option<&AtomicU64> {
        match self.first.chunks.get(vchunk) {
            Some(chunk) => Some(chunk),
            None => self.later(vchunk),
        }
    }

    /// … that came later. Each part is as large as those before it together, so there are few.
    #[inline(never)]
    fn later(&self, mut vchunk: usize) -> Option<&AtomicU64> {
        let mut part = &self.first;
        while vchunk >= part.chunks.len() {
            vchunk -= part.chunks.len();
            part = part.next.get()?;
        }
        part.chunks.get(vchunk)
    }

    pub(crate) fn show(&self, vchunk: u32, way: Way) {
        if let Some(chunk) = self.word(vchunk as usize)
            && !self.gone.load(Relaxed)
        {
            chunk.store(word(way), Release);
        }
    }

    /// Chunks from this one on are about to go: the pool is asked for them.
    pub(crate) fn cut(&self, count: u32) {
        (count..self.chunks()).for_each(|vchunk| self.show(vchunk, Way::Ask));
    }

    /// It has so many chunks now, and what is new of them is there.
    pub(crate) fn resize(&self, count: u32, way: impl Fn(u32) -> Way) {
        let (mut part, mut words) = (&self.first, self.first.chunks.len());
        while words < count as usize {
            let more = words.max(count as usize - words);
            part = part.next.get_or_init(|| Box::new(Part::of((0..more).map(|_| 0))));
            words += part.chunks.len();
        }
        self.cut(count);
        (self.chunks()..count).for_each(|vchunk| self.show(vchunk, way(vchunk)));
        self.count.store(count, Relaxed);
    }

    /// The LU goes: from now on the pool is asked, which knows none.
    pub(crate) fn go(&self) {
        self.gone.store(true, Relaxed);
        let mut part = Some(&self.first);
        while let Some(Part { chunks, next }) = part {
            chunks.iter().for_each(|chunk| chunk.store(0, Release));
            part = next.get().map(|next| &**next);
        }
        self.show_chain(None);
    }
}

/// What one lane has begun on PVs, by parity of the epoch. One channel writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Begun([AtomicU64; 2]);

impl Begun {
    /// Something ends.
    #[inline]
    pub(crate) fn end(&self, parity: u8) {
        let count = &self.0[usize::from(parity & 1)];
        count.store(count.load(Relaxed) - 1, Release);
    }
}

/// A pool that is open.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) uuid: Uuid,
    /// Chunks of LUs have two legs: the thread serves these.
    pub(crate) mirrors: bool,
    /// By number of the member; those that are gone or not there are none.
    pvs: Mutex<Vec<Option<OpenPv>>>,
    /// PVs that are away, and why they did not return so far.
    away: Mutex<Away>,
    /// Somebody is away, or it closes.
    stirred: Condvar,
    /// PVs that are gone since it was opened: lanes may still have one.
    pub(crate) gone: AtomicU64,
    pub(crate) shadow: Shadow,
    /// Layers and spaces in which channels look for what LUs share.
    pub(crate) spaces: Mutex<BTreeMap<u32, Arc<Space>>>,
    /// What channels have written in slots that they took, of which the pool does not know.
    pub(crate) taken: Mutex<Vec<KeptPart>>,
    epoch: AtomicU64,
    lanes: Mutex<Vec<Arc<Begun>>>,
    /// Writes wait for space.
    pub(crate) full: AtomicBool,
    /// Another server has the pool: nothing is answered.
    pub(crate) fenced: AtomicBool,
    view: Mutex<PoolView>,
    /// LUs that come from files or go into them.
    pub(crate) copies: Mutex<Copies>,
}

/// See [`Shared`].
#[derive(Debug, Default)]
struct Away {
    /// Where PVs are that were not there when the pool was opened, or are not open any more, by number.
    paths: BTreeMap<u16, PathBuf>,
    why: BTreeMap<u16, String>,
    /// How long they are left alone.
    pauses: BTreeMap<u16, Pause>,
    some: bool,
    closes: bool,
}

/// A PV that is open.
#[derive(Clone, Debug)]
pub(crate) struct OpenPv {
    pub(crate) volume: Arc<FileVolume>,
    pub(crate) path: PathBuf,
    /// What goes on there.
    pub(crate) meters: Arc<Meters>,
}

impl OpenPv {
    pub(crate) fn new(volume: Arc<FileVolume>, path: impl Into<PathBuf>) -> OpenPv {
        OpenPv { volume, path: path.into(), meters: Arc::default() }
    }
}

/// What there is to tell of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolView {
    /// Its PVs, in the order of members.
    pub pvs: Vec<PvView>,
    /// Its LUs.
    pub lus: Vec<LuSpace>,
    /// Chunks that are free and set aside for nobody, in all tiers.
    pub free: u64,
    /// The same of each tier, with the requests that wait for space in it.
    pub tiers: Vec<TierView>,
    /// Writes that wait for space now, and since it was opened.
    pub paused: u64,
    /// Requests that wait for space now, by LU.
    pub paused_lus: BTreeMap<u32, u64>,
    /// Requests that had to wait for space since it was opened.
    pub pauses: u64,
    /// Chunks that move to where less is, while some do.
    pub balance: Option<Progress>,
    /// Chunks that get what a PV that was away has missed, or of which legs may differ, while there are some.
    pub resync: Option<Progress>,
    /// Chunks of LUs with two legs that were changed lately: after a crash these are copied from the first leg to the second.
    pub active: u64,
    /// LUs that are being detached, or lose layers that they need no more, by number; in chunks of them.
    pub detaching: BTreeMap<u32, Progress>,
    /// What was found where legs were read, since it was opened.
    pub checks: ChecksView,
    /// What is wrong with it.
    pub trouble: Option<String>,
}

/// What is left in a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierView {
    /// Its number.
    pub tier: u8,
    /// Chunks that are free and set aside for nobody.
    pub free: u64,
    /// Writes that wait for space in it, because there is none.
    pub paused: u64,
    /// Writes that wait because it is nearly full and gives out space slowly.
    pub slowed: u64,
    /// When one last did.
    pub slowed_at: Option<Instant>,
}

/// How far something is that copies chunks, in blocks of 64 KiB: of what is not known block by block, all 1,024 of a chunk count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Blocks that are to be copied.
    pub planned: u64,
    /// Those that are, never more.
    pub moved: u64,
    /// Those that could not be.
    pub failed: u64,
    /// Seconds until it is over, at the pace that it has had within the last minute.
    pub left_s: Option<u64>,
}

/// What there is to tell of a PV.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PvView {
    /// Where it is.
    pub path: PathBuf,
    /// What it has.
    pub space: PvSpace,
    /// It leaves, and so far its chunks are elsewhere.
    pub leaving: Option<Progress>,
    /// … or has to wait for room.
    pub waits: bool,
    /// What goes on there; nothing where it is not open.
    pub traffic: Traffic,
}

impl PvView {
    /// Whether it is away, and looked for.
    #[must_use]
    pub fn may_return(&self) -> bool {
        self.space.state == MemberState::Stale && (self.leaving.is_none() || self.waits)
    }
}

/// What the word of a chunk says of a part of it.
#[inline]
pub(crate) fn there(shadow: &Shadow, word: u64, within: u64, bytes: u64) -> Found {
    if word == ZEROS {
        return Found::Zeros;
    }
    if word & THERE == 0 || bytes == 0 {
        return Found::Ask;
    }
    let id = ChunkId { pv: (word >> 52) as u16, chunk: (word >> 26) as u32 & ((1 << 26) - 1) };
    let (first, last) = (within / BLOCK_BYTES, (within + bytes - 1) / BLOCK_BYTES);
    if !shadow.has_all(id, first as usize, last as usize) {
        return Found::Ask;
    }
    Found::There(id.pv, u64::from(id.chunk) * CHUNK_BYTES + within)
}

impl Shared {
    pub(crate) fn new(
        name: &str,
        (uuid, mirrors): (Uuid, bool),
        (pvs, absent): (Vec<Option<OpenPv>>, Absent),
        shadow: Shadow,
    ) -> Shared {
        let paths = absent.iter().map(|(pv, path, _)| (*pv, path.clone())).collect();
        let why = absent.into_iter().filter_map(|(pv, _, why)| Some((pv, why?))).collect();
        Shared {
            name: name.to_owned(),
            uuid,
            mirrors,
            pvs: Mutex::new(pvs),
            away: Mutex::new(Away { paths, why, ..Away::default() }),
            stirred: Condvar::new(),
            gone: AtomicU64::new(0),
            shadow,
            spaces: Mutex::default(),
            taken: Mutex::default(),
            epoch: AtomicU64::new(0),
            lanes: Mutex::default(),
            full: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
            view: Mutex::default(),
            copies: Mutex::default(),
        }
    }

    pub(crate) fn view(&self) -> PoolView {
        locked(&self.view).clone()
    }

    /// Where a PV is, or was.
    pub(crate) fn path_of(&self, number: u16) -> Option<PathBuf> {
        let open = self.pv(number).map(|pv| pv.path);
        open.or_else(|| locked(&self.away).paths.get(&number).cloned())
    }

    /// Why a PV that is away did not return when it was last looked for.
    pub(crate) fn why_away(&self, number: u16) -> Option<String> {
        locked(&self.away).why.get(&number).cloned()
    }

    pub(crate) fn still_away(&self, number: u16, why: Option<String>) {
        let mut away = locked(&self.away);
        match why {
            Some(why) => _ = away.why.insert(number, why),
            None => _ = away.why.remove(&number),
        }
    }

    /// What is known of how long a PV is left alone.
    pub(crate) fn pause<R>(&self, number: u16, of: impl FnOnce(&mut Pause) -> R) -> R {
        of(locked(&self.away).pauses.entry(number).or_default())
    }

    /// Each of two PVs that are away is where the other was looked for.
    pub(crate) fn swap_paths(&self, one: u16, other: u16) {
        let paths = &mut locked(&self.away).paths;
        if let (Some(first), Some(second)) = (paths.get(&one).cloned(), paths.get(&other).cloned())
        {
            paths.insert(one, second);
            paths.insert(other, first);
        }
    }

    /// A PV that is away is open from now on, or no more.
    pub(crate) fn put_pv(&self, number: u16, pv: Option<OpenPv>) {
        let mut pvs = locked(&self.pvs);
        let Some(place) = pvs.get_mut(usize::from(number)) else { return };
        let paths = &mut locked(&self.away).paths;
        match (&pv, &place) {
            (None, Some(before)) => _ = paths.insert(number, before.path.clone()),
            (Some(_), _) => _ = paths.remove(&number),
            (None, None) => {}
        }
        *place = pv;
    }

    /// Whether PVs are away.
    pub(crate) fn set_away(&self, some: bool) {
        let mut away = locked(&self.away);
        if away.some != some {
            away.some = some;
            self.stirred.notify_all();
        }
    }

    pub(crate) fn closes(&self) {
        locked(&self.away).closes = true;
        self.stirred.notify_all();
    }

    /// Waits until PVs are away and the time is over, or it closes: false.
    pub(crate) fn wait_for_away(&self, least: Duration) -> bool {
        let away = locked(&self.away);
        let closes = |away: &mut Away| !away.closes;
        let waited = self.stirred.wait_timeout_while(away, least, closes);
        let (away, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let rests = |away: &mut Away| !away.closes && !away.some;
        let away = self.stirred.wait_while(away, rests);
        !away.unwrap_or_else(PoisonError::into_inner).closes
    }

    /// A PV, by number of the member.
    pub(crate) fn pv(&self, number: u16) -> Option<OpenPv> {
        locked(&self.pvs).get(usize::from(number))?.clone()
    }

    /// All PVs, with their numbers.
    pub(crate) fn pvs(&self) -> Vec<(u16, OpenPv)> {
        let pvs = locked(&self.pvs);
        (0..).zip(&*pvs).filter_map(|(number, pv)| Some((number, pv.clone()?))).collect()
    }

    /// A PV comes, after those that were ever there; without one the last is taken back.
    pub(crate) fn add_pv(&self, pv: Option<OpenPv>) {
        match pv {
            Some(pv) => locked(&self.pvs).push(Some(pv)),
            None => drop(locked(&self.pvs).pop()),
        }
    }

    /// A PV is gone, and nothing is under way on it.
    pub(crate) fn drop_pv(&self, number: u16) {
        if let Some(pv) = locked(&self.pvs).get_mut(usize::from(number)) {
            *pv = None;
        }
        self.gone.fetch_add(1, SeqCst);
    }

    pub(crate) fn set_view(&self, view: PoolView) {
        self.full.store(view.paused > 0, Relaxed);
        *locked(&self.view) = view;
    }

    /// Shows what holds of a chunk now.
    pub(crate) fn show(
        &self,
        (table, space): (Option<&Table>, Option<&Space>),
        vchunk: u32,
        shown: &Shown,
    ) {
        let show = |there: bool| {
            let is_now = |way: &Way| matches!(way, Way::There(_)) == there;
            if let Some(table) = table.filter(|_| is_now(&shown.way)) {
                table.show(vchunk, shown.way);
            }
            if let Some(space) = space.filter(|_| is_now(&shown.beneath)) {
                space.show(vchunk, shown.beneath);
            }
        };
        show(false);
        if !memory::planted("shadow-unkept") {
            shown.kept.iter().for_each(|kept| self.shadow.keep(kept));
        }
        show(true);
    }

    /// Counts something in that a lane begins; the parity is for [`Begun::end`].
    #[inline]
    pub(crate) fn begin(&self, begun: &Begun) -> u8 {
        // Its lowest bit is all that matters.
        let parity = (self.epoch.load(Relaxed) & 1) as u8;
        let count = &begun.0[usize::from(parity)];
        count.store(count.load(Relaxed) + 1, Relaxed);
        fence(SeqCst);
        parity
    }

    /// Where a part of one chunk is. To be asked between [`Shared::begin`] and [`Begun::end`].
    #[inline]
    pub(crate) fn look(&self, table: &Table, at: u64, bytes: u64) -> Found {
        let Some(chunk) = table.word((at / CHUNK_BYTES) as usize) else { return Found::Ask };
        there(&self.shadow, chunk.load(Acquire), at % CHUNK_BYTES, bytes)
    }

    /// Another lane.
    pub(crate) fn join(&self) -> Arc<Begun> {
        let begun = Arc::new(Begun::default());
        locked(&self.lanes).push(Arc::clone(&begun));
        begun
    }

    /// A lane goes, with nothing in flight.
    pub(crate) fn leave(&self, begun: &Arc<Begun>) {
        locked(&self.lanes).retain(|other| !Arc::ptr_eq(other, begun));
    }

    /// The next epoch begins; the parity of the one before.
    pub(crate) fn next_epoch(&self) -> u8 {
        fence(SeqCst);
        let before = self.epoch.fetch_add(1, SeqCst);
        fence(SeqCst);
        (before & 1) as u8
    }

    /// Whether nothing is under way that was begun in epochs of this parity.
    pub(crate) fn is_over(&self, parity: u8) -> bool {
        let lanes = locked(&self.lanes);
        lanes.iter().all(|begun| begun.0[usize::from(parity & 1)].load(Acquire) == 0)
    }
}
