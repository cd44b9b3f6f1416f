//! The SIGBUS guard: which mapping an address belongs to, without locks, readable from a signal handler.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use crate::MapError;

/// How many file mappings one process can guard: sixteen regions for the clients of 1024 adapters, four thousand for those who have more, and
/// all of them twice, since memory that is exchanged is mapped before the old one is unmapped. (A process has 65,530 mappings by the kernel's default.)
pub(crate) const SLOTS: usize = 40960;

struct Entry {
    taken: AtomicBool,
    /// Odd while the next two are being changed. A handler on another thread must never see the start of one mapping with the length of another: it
    /// would replace memory that belongs to neither. (A sequence lock; whoever has `taken` is its one writer.)
    version: AtomicUsize,
    /// Start address; 0 while the slot guards nothing.
    start: AtomicUsize,
    len: AtomicUsize,
    damaged: AtomicBool,
}

static TABLE: [Entry; SLOTS] = [const { Entry::new() }; SLOTS];

/// Where to look for a free place first: behind the last one that was given out.
static NEXT: AtomicUsize = AtomicUsize::new(0);

impl Entry {
    const fn new() -> Entry {
        Entry {
            taken: AtomicBool::new(false),
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            damaged: AtomicBool::new(false),
        }
    }

    fn set(&self, start: usize, len: usize) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version | 1, Ordering::Relaxed);
        // The odd number is seen before anything of what follows.
        fence(Ordering::Release);
        self.start.store(start, Ordering::Relaxed);
        self.len.store(len, Ordering::Relaxed);
        self.version.store((version | 1).wrapping_add(1), Ordering::Release);
    }

    /// Start and length, if the address lies in what is guarded. An entry that is changing is nobody's: a mapping that is in use is neither
    /// being made nor being dropped.
    fn covering(&self, address: usize) -> Option<(usize, usize)> {
        let version = self.version.load(Ordering::Acquire);
        let (start, len) = (self.start.load(Ordering::Relaxed), self.len.load(Ordering::Relaxed));
        // What was read above is older than the second look.
        fence(Ordering::Acquire);
        let whole = version.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == version;
        let inside = start != 0 && address >= start && address - start < len;
        (whole && inside).then_some((start, len))
    }
}

/// The action for SIGBUS that was there before ours (Rust's own stack overflow report, usually).
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A place in the table, given back on drop.
#[derive(Debug)]
pub(crate) struct Slot(usize);

/// Takes a free place; installs the handler on first use.
pub(crate) fn reserve() -> Result<Slot, MapError> {
    install();
    let begin = NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS;
    let mut places = (begin..SLOTS).chain(0..begin);
    let free = |place: &usize| !TABLE[*place].taken.swap(true, Ordering::AcqRel);
    places.find(free).map(Slot).ok_or(MapError::TooMany(SLOTS))
}

impl Slot {
    /// Guards `len` bytes from `start`.
    pub(crate) fn arm(&self, start: usize, len: usize) {
        let entry = &TABLE[self.0];
        entry.damaged.store(false, Ordering::Relaxed);
        entry.set(start, len);
    }

    pub(crate) fn damaged(&self) -> bool {
        TABLE[self.0].damaged.load(Ordering::Acquire)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let entry = &TABLE[self.0];
        entry.set(0, 0);
        entry.taken.store(false, Ordering::Release);
    }
}

fn install() {
    PREVIOUS.get_or_init(|| {
        let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: `action` is fully initialised, the handler only does what is allowed in a signal handler (atomics, mmap,
        // sigaction), and both pointers are valid for the call.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_sigbus as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            let result = libc::sigaction(libc::SIGBUS, &raw const action, previous.as_mut_ptr());
            assert_eq!(result, 0, "sigaction(SIGBUS)");
            previous.assume_init()
        }
    });
}

/// Runs on the thread that touched the missing page. It replaces the whole mapping, not one page: huge page
/// mappings cannot be replaced in part, and whoever truncated the file has lost its adapter anyway.
extern "C" fn on_sigbus(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo for SA_SIGINFO handlers.
    let address = unsafe { (*info).si_addr() } as usize;
    for entry in &TABLE {
        let Some((start, len)) = entry.covering(address) else { continue };
        entry.damaged.store(true, Ordering::Release);
        // SAFETY: the range is one of our own mappings (the table says so and is cleared before unmapping), so replacing
        // it takes nothing from anybody else.
        let page = unsafe {
            libc::mmap(
                start as *mut libc::c_void,
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if page != libc::MAP_FAILED {
            return;
        }
    }
    // Not ours: let the previous action have it when the access is repeated on return.
    // SAFETY: the action was given by the kernel; restoring it is allowed in a handler.
    unsafe {
        let previous = PREVIOUS.get().map_or(ptr::null(), ptr::from_ref);
        if previous.is_null() {
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
        } else {
            libc::sigaction(libc::SIGBUS, previous, ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_covers_its_range_and_nothing_while_it_changes() {
        let entry = Entry::new();
        assert_eq!(entry.covering(0), None);
        entry.set(0x10_000, 0x1000);
        assert_eq!(entry.covering(0x10_fff), Some((0x10_000, 0x1000)));
        assert_eq!((entry.covering(0xffff), entry.covering(0x11_000)), (None, None));
        // As in the middle of `set`: a new length, and still the old start.
        entry.version.fetch_add(1, Ordering::Relaxed);
        entry.len.store(0x8000, Ordering::Relaxed);
        assert_eq!((entry.covering(0x10_000), entry.covering(0x11_000)), (None, None));
        entry.set(0, 0);
        assert_eq!(entry.covering(0x10_000), None);
    }
}
