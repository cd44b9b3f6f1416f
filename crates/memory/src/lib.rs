//! Memory that somebody else may change or take away at any moment.
//!
//! Two things live here, because both need `unsafe` and everything above must not:
//!
//! - [`Mapping`]: a shared mapping of a file (a RAM volume, an in-flight region, statistics). A
//!   file that is truncated under a mapping makes the next access raise SIGBUS; the handler installed here puts
//!   zero pages in place of the whole mapping and marks it [`damaged`](Mapping::damaged), so that the owner of that file
//!   hurts itself alone and the process goes on.
//! - [`Lent`]: memory of a client's, guarded in the same way, whose addresses are never those of anything of ours afterwards.
//! - [`Lasting`]: memory of the program's own, which stays mapped; [`Shown`]: a file in place of its pages.
//! - [`IoBuf`]: a piece of such memory, as the kernel's `iovec`. Whoever makes one promises that the memory stays
//!   mapped until the last use; whoever holds one may copy in and out of it without further proof. Without a promise they are had
//!   of memory that is never unmapped, and of the rest there is a [`View`], which cannot outlive it.
//!
//! - [`clock`]: a cheap monotonic tick counter; [`random`]: seeded numbers; [`cache`]: what the kernel's page cache has lost; [`interface`],
//!   [`links`], [`tap`], [`packet`], [`xdp`]: interfaces of the host and descriptors of them, also in another network [`namespace`]; [`inherited`]: descriptors that the process was started with.
//!
//! What is *not* here: what the bytes mean. Address translation is `vring`'s, files are `block`'s.
#![allow(unsafe_code)] // UNSAFE: mmap, a signal handler and copies through raw pointers; one of the three crates that may.

mod buf;
pub mod cache;
pub mod clock;
mod guard;
pub mod inherited;
pub mod interface;
mod lasting;
mod lent;
pub mod links;
mod mapping;
pub mod namespace;
pub mod packet;
pub mod random;
mod shown;
#[cfg(feature = "sim")]
pub mod sim;
pub mod tap;
pub mod xdp;

/// Whether a run of the simulator is to find this fault: `false` in everything that is not built for it.
#[inline(always)]
#[must_use]
pub fn planted(fault: &str) -> bool {
    #[cfg(feature = "sim")]
    return sim::planted(fault);
    #[cfg(not(feature = "sim"))]
    {
        let _ = fault;
        false
    }
}

/// Whether what is dropped now belongs to a process that is about to end: it unwinds, or a simulated one has died.
#[must_use]
pub fn is_ending() -> bool {
    #[cfg(feature = "sim")]
    if sim::dead() {
        return true;
    }
    std::thread::panicking()
}

pub use buf::IoBuf;
pub use lasting::Lasting;
pub use lent::Lent;
pub use mapping::{Access, MapError, Mapping, View};
pub use shown::Shown;
