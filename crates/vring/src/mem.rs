//! The guest's memory, as the regions that a client shared.
//!
//! A [`MemTable`] is one immutable generation of the client's memory: regions sorted by guest
//! address, each mapped once. The session makes a new generation when the client adds or removes
//! memory, sharing the mappings that stay; every queue keeps the generation it was started with
//! (`Arc<MemTable>`) until it is drained. That is why the [`IoBuf`]s that a table gives out stay
//! mapped as long as a command uses them; one that was used later would find nothing, and never
//! what is this program's own ([`memory::Lent`]).
//!
//! Promises: every address is checked against the regions before it becomes a pointer; a range
//! that no region covers, or that wraps at 2^64, is refused. Leaves to others: who may read or
//! write what. Used from the session's thread to build and from channel threads to look up.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use memory::{IoBuf, Lent, MapError};
use thiserror::Error;

#[cfg(test)]
mod tests;

/// More regions than any front end sends (QEMU has 509 slots).
pub const REGIONS_MAX: usize = 512;

/// An address in the guest's physical address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestAddr(pub u64);

/// An address in the front end's own address space, as vhost-user names rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserAddr(pub u64);

/// A region as the front end describes it.
#[derive(Debug)]
pub struct RegionSpec {
    /// Where the guest sees it.
    pub guest: GuestAddr,
    /// Where the front end has it mapped.
    pub user: UserAddr,
    /// Bytes.
    pub size: u64,
    /// Where it starts in the file.
    pub offset: u64,
    /// The memory.
    pub file: File,
}

/// What a table knows of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionInfo {
    /// Where the guest sees it.
    pub guest: GuestAddr,
    /// Where the front end has it mapped.
    pub user: UserAddr,
    /// Bytes.
    pub size: u64,
}

/// Why a region cannot be taken.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum MemError {
    #[error("memory region at guest {guest:#x} has no bytes; the front end must not send it")]
    NoBytes { guest: u64 },
    #[error(
        "memory region of {size:#x} bytes at guest {guest:#x}, user {user:#x}, file offset \
         {offset:#x} goes beyond the end of the address space"
    )]
    Wraps { guest: u64, user: u64, size: u64, offset: u64 },
    #[error("memory region at guest {guest:#x} overlaps the one at guest {other:#x}")]
    Overlap { guest: u64, other: u64 },
    #[error("more than {REGIONS_MAX} memory regions; give the guest fewer, larger memory devices")]
    TooMany,
    #[error("no memory region of {size:#x} bytes at guest {guest:#x}, user {user:#x} to remove")]
    Unknown { guest: u64, user: u64, size: u64 },
    #[error("cannot map the memory region at guest {guest:#x}")]
    Map { guest: u64, source: MapError },
}

/// A range of guest addresses that is not memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{len} bytes at guest {:#x} are not in the client's memory", addr.0)]
pub struct BadAddress {
    /// The first address of the range.
    pub addr: GuestAddr,
    /// Its bytes.
    pub len: u32,
}

/// What a lookup needs of a region: two lines of cache hold five.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    guest: u64,
    size: u64,
    host: *mut u8,
}

impl Span {
    /// Covers nothing.
    pub(crate) const NONE: Span = Span { guest: 0, size: 0, host: std::ptr::null_mut() };

    /// The buffer of `len` bytes at `addr` if this span has all of it. None of no bytes: that is
    /// the same comparison, since `len - 1` wraps.
    #[inline]
    pub(crate) fn buf(&self, addr: u64, len: u32) -> Option<IoBuf> {
        let offset = addr.wrapping_sub(self.guest);
        let len = u64::from(len);
        // Below the region the subtraction wraps to something larger than any size.
        if offset < self.size && len.wrapping_sub(1) < self.size - offset {
            // SAFETY: inside memory that was lent, which the table keeps, and whose addresses are
            // never anything of ours. The casts fit: a mapped size fits in usize.
            Some(unsafe { IoBuf::new(self.host.add(offset as usize), len as usize) })
        } else {
            None
        }
    }
}

struct Region {
    info: RegionInfo,
    /// The first byte of the region: its mapping may start before.
    host: *mut u8,
    mapping: Arc<Lent>,
}

impl Clone for Region {
    fn clone(&self) -> Region {
        Region { info: self.info, host: self.host, mapping: Arc::clone(&self.mapping) }
    }
}

/// One generation of a client's memory.
pub struct MemTable {
    /// Sorted by guest address.
    regions: Vec<Region>,
    /// The same order.
    spans: Box<[Span]>,
}

// SAFETY: the pointers name shared mappings that the table keeps alive; using them needs no
// thread of its own, and the table itself never changes.
unsafe impl Send for MemTable {}
// SAFETY: as for Send.
unsafe impl Sync for MemTable {}

impl MemTable {
    /// Maps all regions.
    pub fn new(specs: Vec<RegionSpec>) -> Result<MemTable, MemError> {
        let mut regions = Vec::with_capacity(specs.len().min(REGIONS_MAX));
        for spec in specs {
            insert(&mut regions, spec)?;
        }
        Ok(MemTable::of(regions))
    }

    /// A table without memory.
    pub fn empty() -> MemTable {
        MemTable::of(Vec::new())
    }

    fn of(regions: Vec<Region>) -> MemTable {
        let spans = regions
            .iter()
            .map(|r| Span { guest: r.info.guest.0, size: r.info.size, host: r.host })
            .collect();
        MemTable { regions, spans }
    }

    /// The next generation, with one region more.
    pub fn with_region(&self, spec: RegionSpec) -> Result<MemTable, MemError> {
        let mut regions = self.regions.clone();
        insert(&mut regions, spec)?;
        Ok(MemTable::of(regions))
    }

    /// The next generation, without the region that has exactly these addresses and this size.
    pub fn without_region(
        &self,
        guest: GuestAddr,
        user: UserAddr,
        size: u64,
    ) -> Result<MemTable, MemError> {
        let gone = RegionInfo { guest, user, size };
        let mut regions = self.regions.clone();
        regions.retain(|r| r.info != gone);
        if regions.len() == self.regions.len() {
            return Err(MemError::Unknown { guest: guest.0, user: user.0, size });
        }
        Ok(MemTable::of(regions))
    }

    /// The span that has the byte at `addr`. Not inlined: it would push the loop that follows chains out
    /// of its registers, for a case that is rare.
    #[inline(never)]
    pub(crate) fn span(&self, addr: u64) -> Option<&Span> {
        let after = self.spans.partition_point(|s| s.guest <= addr);
        let span = &self.spans[after.checked_sub(1)?];
        (addr - span.guest < span.size).then_some(span)
    }

    /// Gives the buffers that make up `len` bytes at `addr`: one, or several where the range
    /// crosses from one region into the next. No bytes are no buffers, wherever they are.
    /// On an error some buffers may have been given already.
    pub(crate) fn resolve(
        &self,
        addr: GuestAddr,
        len: u32,
        out: &mut impl FnMut(IoBuf),
    ) -> Result<(), BadAddress> {
        let bad = BadAddress { addr, len };
        let end = addr.0.checked_add(u64::from(len)).ok_or(bad)?;
        let mut at = addr.0;
        while at < end {
            let span = self.span(at).ok_or(bad)?;
            // The cast fits: never more than `len`.
            let take = (end - at).min(span.size - (at - span.guest)) as u32;
            out(span.buf(at, take).ok_or(bad)?);
            at += u64::from(take);
        }
        Ok(())
    }

    /// The `len` bytes at `addr` if one region has them all; nothing for no bytes.
    pub(crate) fn resolve_one(&self, addr: GuestAddr, len: u32) -> Option<IoBuf> {
        self.span(addr.0)?.buf(addr.0, len)
    }

    /// The `len` bytes that the front end has at `addr`, if one region has them all.
    pub(crate) fn user(&self, addr: UserAddr, len: u32) -> Option<IoBuf> {
        self.regions.iter().find_map(|region| {
            let offset = addr.0.checked_sub(region.info.user.0)?;
            let span = Span { guest: 0, size: region.info.size, host: region.host };
            span.buf(offset, len)
        })
    }

    /// Where the guest sees a buffer that this table gave out.
    pub fn guest_of(&self, buf: IoBuf) -> Option<GuestAddr> {
        let at = buf.as_ptr().addr() as u64;
        self.spans.iter().find_map(|span| {
            let offset = at.checked_sub(span.host.addr() as u64)?;
            (offset < span.size).then(|| GuestAddr(span.guest + offset))
        })
    }

    /// Whether the file of some region became shorter than the region (the client truncated its
    /// own memory): the affected pages are private now and the client's data is not what it thinks.
    pub fn damaged(&self) -> bool {
        self.regions.iter().any(|region| region.mapping.damaged())
    }

    /// The regions, by guest address.
    pub fn regions(&self) -> impl Iterator<Item = RegionInfo> {
        self.regions.iter().map(|region| region.info)
    }
}

impl std::fmt::Debug for MemTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.regions()).finish()
    }
}

fn insert(regions: &mut Vec<Region>, spec: RegionSpec) -> Result<(), MemError> {
    let RegionSpec { guest: GuestAddr(guest), user: UserAddr(user), size, offset, file } = spec;
    if size == 0 {
        return Err(MemError::NoBytes { guest });
    }
    let wraps = |start: u64| start.checked_add(size).is_none();
    if wraps(guest) || wraps(user) || wraps(offset) || usize::try_from(size).is_err() {
        return Err(MemError::Wraps { guest, user, size, offset });
    }
    if regions.len() >= REGIONS_MAX {
        return Err(MemError::TooMany);
    }
    let overlap = |a: u64, b: u64, b_size: u64| a < b + b_size && b < a + size;
    if let Some(other) = regions.iter().find(|r| {
        overlap(guest, r.info.guest.0, r.info.size) || overlap(user, r.info.user.0, r.info.size)
    }) {
        return Err(MemError::Overlap { guest, other: other.info.guest.0 });
    }
    let window = Window::of(&file, offset, size);
    let mapping = Lent::file(&file, window.offset, window.len, window.block)
        .map_err(|source| MemError::Map { guest, source })?;
    // SAFETY: the window has `before` bytes and then the region.
    let host = unsafe { mapping.as_ptr().add(window.before) };
    let info = RegionInfo { guest: GuestAddr(guest), user: UserAddr(user), size };
    let at = regions.partition_point(|r| r.info.guest.0 < guest);
    regions.insert(at, Region { info, host, mapping: Arc::new(mapping) });
    Ok(())
}

/// What to map so that a region of a file is in it: the region, widened to the file system's
/// pages. Front ends cut a guest's memory where the PC has its holes; on hugetlbfs that is in the
/// middle of a page of the file, and the kernel maps (and unmaps) whole ones only.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    offset: u64,
    len: usize,
    /// Bytes of the window before the region.
    before: usize,
    /// Bytes of a page.
    block: usize,
}

impl Window {
    fn of(file: &File, offset: u64, size: u64) -> Window {
        let page = rustix::param::page_size() as u64;
        // On hugetlbfs the block size is the size of its pages. Other file systems have small ones,
        // and then aligning to them is harmless.
        let (block, end_of_file) = match file.metadata() {
            Ok(meta) if meta.blksize().is_power_of_two() => (meta.blksize().max(page), meta.size()),
            Ok(meta) => (page, meta.size()),
            Err(_) => (page, 0),
        };
        Window::aligned(offset, size, block, end_of_file)
    }

    fn aligned(offset: u64, size: u64, block: u64, end_of_file: u64) -> Window {
        let start = offset & !(block - 1);
        let end = offset + size;
        // Only as far as the file goes: a mapping beyond its end would be refused.
        let rounded = end.checked_next_multiple_of(block).filter(|&to| to <= end_of_file);
        let len = rounded.unwrap_or(end) - start;
        // The casts fit: the caller checked the size, and a block is small beside it or 1 GiB.
        let (before, block) = ((offset - start) as usize, block as usize);
        Window { offset: start, len: len as usize, before, block }
    }
}
