//! [`Lent`]: memory of somebody else's, at addresses that nothing of our own ever has.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use rustix::mm::{MapFlags, ProtFlags};

use crate::guard::Slot;
use crate::{IoBuf, MapError, mapping};

/// Addresses of memory that was given back: mapped, to nothing.
static LEFT: Mutex<Ranges> = Mutex::new(Ranges(BTreeMap::new()));

/// Memory that another process lends: a part of its file, mapped and shared with it, and guarded against truncation.
///
/// When it is dropped the file's pages are gone, and the addresses stay: nobody can read or write there, and the kernel answers `EFAULT`. They are given
/// to memory that is lent later, and to nothing else. So a buffer that is used too late ends the process or fails, or, at the worst, finds
/// what somebody else lends; never what is this program's own.
#[derive(Debug)]
pub struct Lent {
    ptr: NonNull<u8>,
    len: usize,
    slot: Option<Slot>,
}

// SAFETY: memory of the process, valid on every thread until it is dropped; access goes through IoBuf.
unsafe impl Send for Lent {}
// SAFETY: as for Send.
unsafe impl Sync for Lent {}

impl Lent {
    /// Maps `len` bytes of `file` from `offset`, at an address that is a multiple of `align`, which is a power of two: the pages of the file's file system.
    ///
    /// # Errors
    ///
    /// When the file is shorter than that, the offset is not a multiple of the page size, or the kernel refuses.
    pub fn file(file: &File, offset: u64, len: usize, align: usize) -> Result<Lent, MapError> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // Where the kernel likes at first, so that no range is taken for what it refuses.
        let (ptr, slot) = mapping::map(file, offset, len, protection)?;
        let mut lent = Lent { ptr, len, slot: Some(slot) };
        if let Some(start) = ranges(|left| left.take(whole_pages(len), align)) {
            let (at, flags) = (ptr::with_exposed_provenance_mut(start), MapFlags::SHARED);
            // SAFETY: a range that was mapped to nothing and that the list above has given to nobody else.
            let mapped = unsafe {
                rustix::mm::mmap(at, len, protection, flags | MapFlags::FIXED, file.as_fd(), offset)
            };
            match mapped {
                Ok(mapped) => lent.moves_to(mapped.cast()),
                // It stays where it is.
                Err(_) => keep_again(start, len),
            }
        }
        Ok(lent)
    }

    /// It is mapped there as well, and nobody knows yet where it was.
    fn moves_to(&mut self, mapped: *mut u8) {
        let ptr = NonNull::new(mapped).expect("mmap returned a null pointer");
        let first = std::mem::replace(&mut self.ptr, ptr);
        let slot = self.slot.as_ref().expect("it is guarded until it is dropped");
        slot.arm(ptr.as_ptr().expose_provenance(), self.len);
        // SAFETY: the range was mapped by the constructor, and nothing has been read or written there.
        let gone = unsafe { rustix::mm::munmap(first.as_ptr().cast(), self.len) };
        debug_assert!(gone.is_ok(), "munmap: {gone:?}");
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: there is at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Where it begins.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// As [`crate::Mapping::damaged`].
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.slot.as_ref().is_some_and(Slot::damaged)
    }

    /// The `len` bytes from `offset`, or `None` when they are not all inside.
    #[must_use]
    pub fn buf(&self, offset: usize, len: usize) -> Option<IoBuf> {
        let end = offset.checked_add(len)?;
        if end > self.len {
            return None;
        }
        // SAFETY: inside a mapping of memory that nobody has a reference to, whose addresses are never anything of ours.
        Some(unsafe { IoBuf::new(self.as_ptr().wrapping_add(offset), len) })
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The slot first, so that nobody puts pages there once the addresses are another's.
        self.slot = None;
        let (start, len) = (self.ptr.as_ptr().expose_provenance(), self.len);
        let leave = move || {
            let (none, nobody) = (ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE);
            // SAFETY: the range was mapped by the constructor, and nobody has a reference to it.
            let gone = unsafe {
                let at = ptr::with_exposed_provenance_mut(start);
                rustix::mm::mmap_anonymous(at, len, none, nobody | MapFlags::FIXED)
            };
            // Else the file stays mapped: better that than addresses that become somebody else's.
            if gone.is_ok() {
                ranges(|left| left.give(start, whole_pages(len)));
            }
        };
        #[cfg(feature = "sim")]
        if crate::sim::bury(leave) {
            return;
        }
        leave();
    }
}

/// After a mapping that failed it is not said whether the range is still mapped to nothing: it is given out again only if it is.
#[cold]
fn keep_again(start: usize, len: usize) {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
    let at = ptr::with_exposed_provenance_mut(start);
    // SAFETY: it takes nothing from anybody: where something is mapped it fails.
    let again = unsafe { rustix::mm::mmap_anonymous(at, len, ProtFlags::empty(), flags) };
    if again.is_ok_and(|found| found.addr() == start) {
        ranges(|left| left.give(start, whole_pages(len)));
    }
}

fn whole_pages(len: usize) -> usize {
    len.next_multiple_of(rustix::param::page_size())
}

fn ranges<T>(with: impl FnOnce(&mut Ranges) -> T) -> T {
    with(&mut LEFT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Ranges of addresses, by their start; none touches another.
#[derive(Debug, Default)]
struct Ranges(BTreeMap<usize, usize>);

impl Ranges {
    /// The first of them that has so many bytes from a multiple of `align` on.
    fn take(&mut self, len: usize, align: usize) -> Option<usize> {
        let fits = |(start, has): (&usize, &usize)| {
            let at = start.checked_next_multiple_of(align)?;
            (at.checked_add(len)? <= start + has).then_some((*start, *has, at))
        };
        let (start, has, at) = self.0.iter().find_map(fits)?;
        self.0.remove(&start);
        let parts = [(start, at - start), (at + len, start + has - at - len)];
        self.0.extend(parts.into_iter().filter(|(_, len)| *len > 0));
        Some(at)
    }

    /// A range that is free now.
    fn give(&mut self, start: usize, len: usize) {
        let (mut start, mut end) = (start, start + len);
        if let Some(after) = self.0.remove(&end) {
            end += after;
        }
        if let Some((before, has)) = self.0.range(..start).next_back()
            && before + has == start
        {
            start = *before;
        }
        self.0.insert(start, end - start);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::fd::AsRawFd as _;

    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;
    use crate::random::Random;

    const PAGE: usize = 4096;

    fn file(len: usize) -> File {
        let fd = memfd_create("lent", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, len as u64).unwrap();
        File::from(fd)
    }

    /// What the kernel says to somebody who wants it to read from there.
    fn asked(buf: IoBuf) -> std::io::Result<()> {
        let into = file(PAGE);
        // SAFETY: the kernel judges the address.
        let result = unsafe { libc::write(into.as_raw_fd(), buf.as_ptr().cast(), buf.len()) };
        if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    }

    #[test]
    fn a_buffer_that_outlives_its_memory_never_leads_to_our_own() {
        let lent = Lent::file(&file(64 * PAGE), 0, 64 * PAGE, PAGE).unwrap();
        let buf = lent.buf(PAGE, 8).unwrap();
        asked(buf).unwrap();
        assert!(lent.buf(64 * PAGE - 7, 8).is_none() && !lent.damaged());
        let whole = lent.as_ptr().addr()..lent.as_ptr().addr() + lent.len();
        drop(lent);
        assert_eq!(asked(buf).unwrap_err().raw_os_error(), Some(libc::EFAULT));
        // Memory of our own lies elsewhere, whatever its size.
        let own: Vec<Vec<u8>> = (1..=256).map(|pages| vec![1; pages * PAGE]).collect();
        assert!(own.iter().all(|it| !whole.contains(&it.as_ptr().addr())));
        // Nor are addresses lost over a file that cannot be mapped, however often that is tried.
        let bytes = file(64 * PAGE);
        let path = format!("/proc/self/fd/{}", bytes.as_raw_fd());
        let sealed = file(64 * PAGE);
        rustix::fs::fcntl_add_seals(&sealed, rustix::fs::SealFlags::FUTURE_WRITE).unwrap();
        for refused in [File::open(path).unwrap(), sealed] {
            let refused = Lent::file(&refused, 0, 64 * PAGE, PAGE);
            assert!(matches!(refused, Err(MapError::Kernel { .. })), "{refused:?}");
        }
        // What is lent next is there: a small one, and others beside it.
        let bytes = file(16 * PAGE);
        let others: Vec<Lent> =
            (0..2).map(|_| Lent::file(&bytes, 0, 16 * PAGE, PAGE).unwrap()).collect();
        assert!(others.iter().all(|it| whole.contains(&it.as_ptr().addr())), "{others:?}");
        others[0].buf(0, 8).unwrap().fill(7);
        let mut found = [0; 8];
        others[1].buf(0, 8).unwrap().read(0, &mut found);
        assert_eq!(found, [7; 8], "both are the file");
    }

    #[test]
    fn what_cannot_be_mapped_is_refused() {
        let short = file(PAGE);
        assert!(matches!(Lent::file(&short, 0, PAGE + 1, PAGE), Err(MapError::OutOfFile { .. })));
        assert!(matches!(Lent::file(&short, 0, 0, PAGE), Err(MapError::OutOfFile { .. })));
        assert!(matches!(Lent::file(&short, 1, 8, PAGE), Err(MapError::Kernel { .. })));
    }

    /// Against a set of single addresses.
    #[test]
    fn ranges_are_given_out_once_and_grow_together_again() {
        let mut random = Random::new(1);
        let (mut ranges, mut free) = (Ranges::default(), BTreeSet::new());
        ranges.give(100, 200);
        free.extend(100..300);
        let mut taken: Vec<(usize, usize)> = Vec::new();
        for _ in 0..20_000 {
            if random.below(2) == 0 {
                let (len, align) = (1 + random.below(20) as usize, 1 << random.below(5));
                let fits = |at: &usize| {
                    at.is_multiple_of(align) && (*at..at + len).all(|it| free.contains(&it))
                };
                let first = free.iter().copied().find(fits);
                assert_eq!(ranges.take(len, align), first);
                if let Some(at) = first {
                    free.retain(|it| !(at..at + len).contains(it));
                    taken.push((at, len));
                }
            } else if !taken.is_empty() {
                let (at, len) = taken.swap_remove(random.below(taken.len() as u64) as usize);
                ranges.give(at, len);
                free.extend(at..at + len);
            }
            let all = ranges.0.iter().flat_map(|(start, len)| *start..start + len);
            assert!(all.eq(free.iter().copied()));
            let touches = |(start, len): (&usize, &usize)| ranges.0.contains_key(&(start + len));
            assert!(!ranges.0.iter().any(touches), "{ranges:?}");
        }
        taken.into_iter().for_each(|(at, len)| ranges.give(at, len));
        assert_eq!(ranges.0, BTreeMap::from([(100, 200)]));
    }
}
