//! The SIGBUS guard: which mapping an address belongs to, without locks, readable from a signal handler.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::MapError;

/// How many file mappings one process can guard: 1024 adapters with 8 memory regions each.
pub(crate) const SLOTS: usize = 8192;

struct Entry {
    taken: AtomicBool,
    /// Start address; 0 while the slot guards nothing.
    start: AtomicUsize,
    len: AtomicUsize,
    damaged: AtomicBool,
}

static TABLE: [Entry; SLOTS] = [const {
    Entry {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        damaged: AtomicBool::new(false),
    }
}; SLOTS];

/// The action for SIGBUS that was there before ours (Rust's own stack overflow report, usually).
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A place in the table, given back on drop.
#[derive(Debug)]
pub(crate) struct Slot(usize);

/// Takes a free place; installs the handler on first use.
pub(crate) fn reserve() -> Result<Slot, MapError> {
    install();
    let free = |entry: &Entry| !entry.taken.swap(true, Ordering::AcqRel);
    TABLE.iter().position(free).map(Slot).ok_or(MapError::TooMany(SLOTS))
}

impl Slot {
    /// Guards `len` bytes from `start`.
    pub(crate) fn arm(&self, start: usize, len: usize) {
        let entry = &TABLE[self.0];
        entry.damaged.store(false, Ordering::Relaxed);
        entry.len.store(len, Ordering::Relaxed);
        entry.start.store(start, Ordering::Release);
    }

    pub(crate) fn damaged(&self) -> bool {
        TABLE[self.0].damaged.load(Ordering::Acquire)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let entry = &TABLE[self.0];
        entry.start.store(0, Ordering::Release);
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
        let start = entry.start.load(Ordering::Acquire);
        let len = entry.len.load(Ordering::Relaxed);
        if start == 0 || address < start || address - start >= len {
            continue;
        }
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
