//! Following a chain of descriptors (virtio 1.3, 2.7.5), direct and indirect.
//!
//! There are two walks. The quick one is a loop over a few registers that knows chains as sane
//! drivers make them; at anything else (an error, a buffer over the border of two regions, one without
//! bytes, too many) it gives up without an opinion. Then the careful one starts over from the head, reads
//! everything anew, and is the only one that judges. So no field is used that was read twice, and what is wrong
//! with a chain is said in one place. A property test holds the two against each other.

use memory::IoBuf;
use thiserror::Error;

use crate::layout::{DESC_BYTES, DESC_F_INDIRECT, DESC_F_NEXT, DESC_F_WRITE, Desc, Rings};
use crate::mem::{BadAddress, GuestAddr, MemTable, Span};

/// Entries of the longest indirect table that is accepted. Windows sends up to 515 whatever the
/// ring's size is.
pub const INDIRECT_MAX: u32 = 1024;

/// 2.7.5.2: a chain has at most 2^32 bytes.
const CHAIN_BYTES_MAX: u64 = 1 << 32;

/// Where a chain goes. The storage is the caller's.
#[derive(Debug)]
pub struct Chain<'a> {
    /// The buffers, those the device reads first.
    pub bufs: &'a mut [IoBuf],
    /// How many of them the device reads.
    pub readable: usize,
    /// How many there are.
    pub total: usize,
    /// Bytes the device may read.
    pub readable_bytes: u64,
    /// Bytes the device may write.
    pub writable_bytes: u64,
}

impl<'a> Chain<'a> {
    /// An empty chain that can take as many buffers as `bufs` has.
    #[inline]
    pub fn new(bufs: &'a mut [IoBuf]) -> Chain<'a> {
        Chain { bufs, readable: 0, total: 0, readable_bytes: 0, writable_bytes: 0 }
    }
}

/// What is wrong with a chain. The request fails, the queue goes on.
///
/// After the first group of errors the walk went on to the end of the chain, and `Chain` is filled as if
/// all was well, with an empty buffer in place of each bad range: a device that finds a writable last
/// buffer can still write its status there. After the second group there is nothing to rely on, and
/// `Chain` is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ChainError {
    // The chain has an end and the buffers are known.
    #[error("a buffer is outside of the client's memory: {0}")]
    BadAddress(BadAddress),
    #[error("a buffer that the device may only read follows one that it may write (2.7.4.2)")]
    WritableThenReadable,
    #[error("the chain has more than 2^32 bytes (2.7.5.2)")]
    LengthOverflow,
    #[error("the chain has no bytes")]
    Empty,
    // The chain itself is broken, or does not fit.
    #[error("the chain has a loop")]
    Loop,
    #[error("a descriptor names {next} as the next one, of {size}")]
    NextOutOfRange { next: u16, size: u16 },
    #[error("an indirect descriptor inside an indirect table (2.7.5.3.1)")]
    IndirectInIndirect,
    #[error("an indirect descriptor with a next one (2.7.5.3.1)")]
    IndirectNext,
    #[error("an indirect descriptor, which was not negotiated (2.7.5.3.1)")]
    IndirectNotNegotiated,
    #[error("an indirect table of {len} bytes: 1 to {INDIRECT_MAX} entries of 16 are accepted")]
    IndirectLength { len: u32 },
    #[error("an indirect table outside of the client's memory: {0}")]
    IndirectAddress(BadAddress),
    #[error("the chain needs {needed} buffers")]
    TooLong { needed: usize },
}

impl ChainError {
    /// Whether the chain was followed to its end, so that its last buffer can be used for a status.
    #[must_use]
    pub fn has_buffers(&self) -> bool {
        matches!(
            self,
            ChainError::BadAddress(_)
                | ChainError::WritableThenReadable
                | ChainError::LengthOverflow
                | ChainError::Empty
        )
    }

    /// How many descriptors were followed for it, at most. Of a chain that is too long it says itself how many it has.
    #[must_use]
    pub fn followed(&self, found: &Chain<'_>) -> usize {
        match self {
            ChainError::TooLong { .. } => 0,
            error if error.has_buffers() => found.total,
            // Perhaps all of a table, and of the longest.
            _ => INDIRECT_MAX as usize,
        }
    }
}

/// The walk's state. Sums of 32-bit lengths over at most 2048 descriptors fit easily.
struct Walk<'w> {
    mem: &'w MemTable,
    hit: &'w mut Span,
    bufs: &'w mut [IoBuf],
    total: usize,
    readable: usize,
    readable_bytes: u64,
    writable_bytes: u64,
    /// The first error after which the walk went on.
    fault: Option<ChainError>,
}

impl Walk<'_> {
    /// Adds the buffer that a descriptor names.
    fn buffer(&mut self, desc: &Desc) {
        let before = self.total;
        match self.hit.buf(desc.addr, desc.len) {
            Some(buf) => self.push(buf),
            None => self.far_buffer(desc),
        }
        if desc.flags & DESC_F_WRITE != 0 {
            self.writable_bytes += u64::from(desc.len);
        } else {
            if self.writable_bytes != 0 && desc.len != 0 {
                self.fault.get_or_insert(ChainError::WritableThenReadable);
            }
            self.readable += self.total - before;
            self.readable_bytes += u64::from(desc.len);
        }
    }

    fn push(&mut self, buf: IoBuf) {
        if let Some(place) = self.bufs.get_mut(self.total) {
            *place = buf;
        }
        // Counted even where there is no room, so that the caller learns how much it takes.
        self.total += 1;
    }

    /// A buffer that is not in the last region. A descriptor without bytes names no memory (2.7.5
    /// does not forbid it) and adds nothing.
    fn far_buffer(&mut self, desc: &Desc) {
        let mem = self.mem;
        if let Some(span) = mem.span(desc.addr) {
            *self.hit = *span;
        }
        let found = mem.resolve(GuestAddr(desc.addr), desc.len, &mut |buf| self.push(buf));
        if let Err(bad) = found {
            self.push(IoBuf::EMPTY);
            self.fault.get_or_insert(ChainError::BadAddress(bad));
        }
    }

    /// The table that an indirect descriptor names, walked from its first entry to the end.
    fn indirect(&mut self, desc: &Desc) -> Result<(), ChainError> {
        let bytes = DESC_BYTES as u32;
        let entries = desc.len / bytes;
        if !desc.len.is_multiple_of(bytes) || entries == 0 || entries > INDIRECT_MAX {
            return Err(ChainError::IndirectLength { len: desc.len });
        }
        let whole = match self.hit.buf(desc.addr, desc.len) {
            Some(buf) => Some(buf),
            None => self.mem.resolve_one(GuestAddr(desc.addr), desc.len),
        };
        match whole {
            Some(table) if table.as_ptr().addr() % 8 == 0 => {
                let table = table.as_ptr().cast::<u64>();
                // SAFETY: `follow` asks for entries below `entries`, which are inside the buffer,
                // which is aligned.
                self.follow(entries, |i| Ok(unsafe { Desc::read(table, i) }))
            }
            _ => self.far_table(desc, entries),
        }
    }

    /// A table that is not aligned, or goes over the border of a region: entry by entry.
    fn far_table(&mut self, desc: &Desc, entries: u32) -> Result<(), ChainError> {
        let mem = self.mem;
        let base = desc.addr;
        self.follow(entries, |i| {
            let bytes = DESC_BYTES as u32;
            let bad = BadAddress { addr: GuestAddr(base), len: entries * bytes };
            let addr = base.checked_add((i * DESC_BYTES) as u64).ok_or(bad);
            let mut entry = [0; DESC_BYTES];
            let mut filled = 0;
            addr.and_then(|addr| {
                mem.resolve(GuestAddr(addr), bytes, &mut |buf| {
                    buf.read(0, &mut entry[filled..filled + buf.len()]);
                    filled += buf.len();
                })
            })
            .map_err(ChainError::IndirectAddress)?;
            Ok(Desc::from_bytes(entry))
        })
    }

    /// Follows a table of `entries` from entry 0. One that is visited twice is a loop, and then
    /// more than `entries` are visited.
    fn follow(
        &mut self,
        entries: u32,
        mut read: impl FnMut(usize) -> Result<Desc, ChainError>,
    ) -> Result<(), ChainError> {
        let mut index = 0;
        for _ in 0..entries {
            let desc = read(index as usize)?;
            if desc.flags & DESC_F_INDIRECT != 0 {
                return Err(ChainError::IndirectInIndirect);
            }
            self.buffer(&desc);
            if desc.flags & DESC_F_NEXT == 0 {
                return Ok(());
            }
            index = u32::from(desc.next);
            if index >= entries {
                // The cast fits: at most INDIRECT_MAX.
                return Err(ChainError::NextOutOfRange { next: desc.next, size: entries as u16 });
            }
        }
        Err(ChainError::Loop)
    }

    /// Follows the chain in the ring's own table from `head`.
    fn ring(&mut self, rings: &Rings, indirect: bool, head: u16) -> Result<(), ChainError> {
        let mut index = head;
        for _ in 0..rings.size() {
            let desc = rings.desc(index);
            if desc.flags & DESC_F_INDIRECT != 0 {
                if !indirect {
                    return Err(ChainError::IndirectNotNegotiated);
                }
                if desc.flags & DESC_F_NEXT != 0 {
                    return Err(ChainError::IndirectNext);
                }
                // Its write flag is ignored (2.7.5.3.2).
                return self.indirect(&desc);
            }
            self.buffer(&desc);
            if desc.flags & DESC_F_NEXT == 0 {
                return Ok(());
            }
            index = desc.next;
            if index >= rings.size() {
                return Err(ChainError::NextOutOfRange { next: index, size: rings.size() });
            }
        }
        Err(ChainError::Loop)
    }
}

/// Collects the buffers of `head` into `out`.
#[inline(always)] // Where the result is used, it is in registers.
pub(super) fn walk(
    rings: &Rings,
    mem: &MemTable,
    hit: &mut Span,
    indirect: bool,
    head: u16,
    out: &mut Chain<'_>,
) -> Result<(), ChainError> {
    if let Some(Found { total, readable, readable_bytes, writable_bytes }) =
        quick(rings, mem, hit, indirect, head, out.bufs)
    {
        (out.total, out.readable) = (total, readable);
        (out.readable_bytes, out.writable_bytes) = (readable_bytes, writable_bytes);
        return Ok(());
    }
    // One of its own: who has `out` can keep it in registers as long as nobody is given its address.
    let mut careful_out = Chain::new(out.bufs);
    let walked = careful(rings, mem, hit, indirect, head, &mut careful_out);
    let Chain { readable, total, readable_bytes, writable_bytes, .. } = careful_out;
    (out.total, out.readable) = (total, readable);
    (out.readable_bytes, out.writable_bytes) = (readable_bytes, writable_bytes);
    walked
}

/// What the quick walk has found: see [`Chain`].
struct Found {
    total: usize,
    readable: usize,
    readable_bytes: u64,
    writable_bytes: u64,
}

/// The flags that say what a descriptor is. Others are reserved and ignored.
const KINDS: u16 = DESC_F_NEXT | DESC_F_WRITE | DESC_F_INDIRECT;

/// The quick walk. Nothing: the chain is for the careful one.
///
/// A sane chain is readable descriptors and then writable ones, all but the last with NEXT; so one loop
/// for each sort, with one comparison of the flags per descriptor. Or it is all in an indirect table.
#[inline(always)]
fn quick(
    rings: &Rings,
    mem: &MemTable,
    hit: &mut Span,
    indirect: bool,
    head: u16,
    bufs: &mut [IoBuf],
) -> Option<Found> {
    let mut table = Table { entry: rings.desc_table(), entries: rings.size() };
    let mut desc = table.read(head)?;
    if desc.flags & DESC_F_INDIRECT != 0 {
        table = if indirect { quick_table(mem, hit, &desc)? } else { return None };
        desc = table.read(0)?;
    }
    let mut span = *hit;
    // A loop in the chain ends when there is no place left.
    let (mut total, mut bytes) = (0, 0);
    while desc.flags & KINDS == DESC_F_NEXT {
        *bufs.get_mut(total)? = quick_buffer(mem, hit, &mut span, &desc)?;
        (total, bytes) = (total + 1, bytes + u64::from(desc.len));
        desc = table.read(desc.next)?;
    }
    let (mut readable, mut readable_bytes) = (total, bytes);
    while desc.flags & KINDS == DESC_F_NEXT | DESC_F_WRITE {
        *bufs.get_mut(total)? = quick_buffer(mem, hit, &mut span, &desc)?;
        (total, bytes) = (total + 1, bytes + u64::from(desc.len));
        desc = table.read(desc.next)?;
    }
    let all_readable = desc.flags & KINDS == 0 && readable == total;
    if desc.flags & KINDS != DESC_F_WRITE && !all_readable {
        return None;
    }
    *bufs.get_mut(total)? = quick_buffer(mem, hit, &mut span, &desc)?;
    (total, bytes) = (total + 1, bytes + u64::from(desc.len));
    if all_readable {
        (readable, readable_bytes) = (total, bytes);
    }
    let writable_bytes = bytes - readable_bytes;
    (bytes <= CHAIN_BYTES_MAX).then_some(Found { total, readable, readable_bytes, writable_bytes })
}

/// Descriptors to follow: the ring's, or those of an indirect table.
#[derive(Clone, Copy)]
struct Table {
    /// At least `entries`, aligned to 8 bytes, in memory that stays mapped.
    entry: *const u64,
    entries: u16,
}

impl Table {
    #[inline(always)]
    fn read(&self, index: u16) -> Option<Desc> {
        if index >= self.entries {
            return None;
        }
        // SAFETY: in range, just checked, and aligned, as the field promises.
        Some(unsafe { Desc::read(self.entry, usize::from(index)) })
    }
}

/// The buffer of a descriptor, if one region has all of it. `span` is the loop's own copy of `hit`.
#[inline(always)]
fn quick_buffer(mem: &MemTable, hit: &mut Span, span: &mut Span, desc: &Desc) -> Option<IoBuf> {
    if let Some(buf) = span.buf(desc.addr, desc.len) {
        return Some(buf);
    }
    *span = *mem.span(desc.addr)?;
    *hit = *span;
    span.buf(desc.addr, desc.len)
}

/// The table that an indirect descriptor names, if it is a usual one: first and last of its chain,
/// aligned, in one region.
#[inline(always)]
fn quick_table(mem: &MemTable, hit: &mut Span, desc: &Desc) -> Option<Table> {
    let bytes = DESC_BYTES as u32;
    let odd = desc.flags & DESC_F_NEXT != 0 || !desc.len.is_multiple_of(bytes);
    if odd || desc.len > INDIRECT_MAX * bytes {
        return None;
    }
    let mut span = *hit;
    let entry = quick_buffer(mem, hit, &mut span, desc)?.as_ptr();
    // The cast fits: at most INDIRECT_MAX.
    let entries = (desc.len / bytes) as u16;
    entry.addr().is_multiple_of(8).then_some(Table { entry: entry.cast(), entries })
}

/// The careful walk.
#[cold]
#[inline(never)]
pub(super) fn careful(
    rings: &Rings,
    mem: &MemTable,
    hit: &mut Span,
    indirect: bool,
    head: u16,
    out: &mut Chain<'_>,
) -> Result<(), ChainError> {
    let mut walk = Walk {
        mem,
        hit,
        bufs: out.bufs,
        total: 0,
        readable: 0,
        readable_bytes: 0,
        writable_bytes: 0,
        fault: None,
    };
    let ended = walk.ring(rings, indirect, head);
    let result = match (ended, walk.fault) {
        (Err(error), _) => Err(error),
        (Ok(()), _) if walk.total > walk.bufs.len() => {
            Err(ChainError::TooLong { needed: walk.total })
        }
        (Ok(()), Some(fault)) => Err(fault),
        (Ok(()), None) => Ok(()),
    };
    let (total, readable) = (walk.total, walk.readable);
    let (readable_bytes, writable_bytes) = (walk.readable_bytes, walk.writable_bytes);
    if result.as_ref().is_err_and(|error| !error.has_buffers()) {
        (out.total, out.readable, out.readable_bytes, out.writable_bytes) = (0, 0, 0, 0);
        return result;
    }
    out.total = total;
    out.readable = readable;
    out.readable_bytes = readable_bytes;
    out.writable_bytes = writable_bytes;
    if readable_bytes + writable_bytes > CHAIN_BYTES_MAX {
        return result.and(Err(ChainError::LengthOverflow));
    }
    if total == 0 {
        return result.and(Err(ChainError::Empty));
    }
    result
}
