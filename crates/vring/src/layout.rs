//! The bytes of a split ring (virtio 1.3, 2.7), as both sides see them.
//!
//! [`Rings`] holds the three resolved pointers and the frozen size. Every access masks its index
//! with that size, so that no value a peer writes, and no mistake of a caller, reaches beyond the
//! three parts. Every field is read once per call: by a volatile load, or, for the indices, flags
//! and events by which the two sides synchronise, by an atomic one through [`Word`].

use std::sync::atomic::{AtomicU16, Ordering};

use crate::handshake::Word;

/// The chain goes on at `next` (2.7.5).
pub(crate) const DESC_F_NEXT: u16 = 1;
/// The device may write this buffer; without it, it may read it.
pub(crate) const DESC_F_WRITE: u16 = 2;
/// The buffer is a table of descriptors (2.7.5.3).
pub(crate) const DESC_F_INDIRECT: u16 = 4;
/// Bytes of a descriptor.
pub(crate) const DESC_BYTES: usize = 16;
/// Set in `avail.flags`: the device need not interrupt. The same bit in `used.flags` says that the
/// driver need not kick.
pub(crate) const RING_F_QUIET: u16 = 1;

/// The largest queue this crate serves. The protocol allows 32768; nobody asks for more than 1024,
/// and the bound fixes the bytes of everything that is indexed by head.
pub const QUEUE_SIZE_MAX: u16 = 1024;

/// One descriptor (2.7.5), copied out of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Desc {
    pub(crate) addr: u64,
    pub(crate) len: u32,
    pub(crate) flags: u16,
    pub(crate) next: u16,
}

impl Desc {
    #[inline]
    fn from_words(addr: u64, rest: u64) -> Desc {
        let (addr, rest) = (u64::from_le(addr), u64::from_le(rest));
        // The casts take the fields apart: the low half, the third and the fourth quarter.
        Desc { addr, len: rest as u32, flags: (rest >> 32) as u16, next: (rest >> 48) as u16 }
    }

    #[inline]
    pub(crate) fn from_bytes(bytes: [u8; DESC_BYTES]) -> Desc {
        let both = u128::from_ne_bytes(bytes);
        let [low, high] = if cfg!(target_endian = "little") {
            [both as u64, (both >> 64) as u64]
        } else {
            [(both >> 64) as u64, both as u64]
        };
        Desc::from_words(low, high)
    }

    #[inline]
    fn words(self) -> [u64; 2] {
        let rest = u64::from(self.len) | u64::from(self.flags) << 32 | u64::from(self.next) << 48;
        [self.addr.to_le(), rest.to_le()]
    }

    /// Reads entry `index` of a table. Two loads, each field seen once.
    ///
    /// # Safety
    /// `table` is aligned to 8 bytes and entry `index` lies in mapped memory.
    #[inline]
    pub(crate) unsafe fn read(table: *const u64, index: usize) -> Desc {
        // SAFETY: the caller promises alignment and range; volatile, because the peer may write
        // at the same time.
        unsafe {
            let entry = table.add(index * 2);
            Desc::from_words(entry.read_volatile(), entry.add(1).read_volatile())
        }
    }

    /// Writes entry `index` of a table.
    ///
    /// # Safety
    /// As for [`Desc::read`], and the memory is writable.
    #[inline]
    pub(crate) unsafe fn write(self, table: *mut u64, index: usize) {
        let [addr, rest] = self.words();
        // SAFETY: the caller promises alignment and range.
        unsafe {
            let entry = table.add(index * 2);
            entry.write_volatile(addr);
            entry.add(1).write_volatile(rest);
        }
    }
}

/// A little-endian 16-bit word that both sides use at the same time.
#[repr(transparent)]
pub(crate) struct Le16(AtomicU16);

impl Word for Le16 {
    #[inline]
    fn load(&self, order: Ordering) -> u16 {
        u16::from_le(self.0.load(order))
    }

    #[inline]
    fn store(&self, value: u16, order: Ordering) {
        self.0.store(value.to_le(), order);
    }

    #[inline]
    fn fence() {
        std::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// Bytes of the descriptor table of a ring of `size`.
pub(crate) fn desc_bytes(size: u16) -> usize {
    DESC_BYTES * usize::from(size)
}

/// Bytes of the available ring: flags, idx, the entries, used_event (2.7.6).
pub(crate) fn avail_bytes(size: u16) -> usize {
    6 + 2 * usize::from(size)
}

/// Bytes of the used ring: flags, idx, the elements, avail_event (2.7.8).
pub(crate) fn used_bytes(size: u16) -> usize {
    6 + 8 * usize::from(size)
}

/// The three parts of a ring, resolved, with the size that they were resolved for.
#[derive(Clone, Copy)]
pub(crate) struct Rings {
    desc: *mut u64,
    avail: *mut u16,
    used: *mut u16,
    size: u16,
    /// `size - 1`.
    mask: u16,
}

impl Rings {
    /// # Safety
    /// The parts have the bytes that [`desc_bytes`], [`avail_bytes`] and [`used_bytes`] say for
    /// `size`, are aligned to 16, 2 and 4, and stay mapped as long as any copy of the value is
    /// used. `size` is a power of two.
    pub(crate) unsafe fn new(desc: *mut u8, avail: *mut u8, used: *mut u8, size: u16) -> Rings {
        assert!(size.is_power_of_two());
        assert!(
            desc.addr().is_multiple_of(16)
                && avail.addr().is_multiple_of(2)
                && used.addr().is_multiple_of(4)
        );
        Rings { desc: desc.cast(), avail: avail.cast(), used: used.cast(), size, mask: size - 1 }
    }

    #[inline]
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// The position of a free-running index in the ring.
    #[inline]
    fn at(&self, index: u16) -> usize {
        usize::from(index & self.mask)
    }

    /// The descriptor table: `size` entries, aligned to 16.
    #[inline]
    pub(crate) fn desc_table(&self) -> *const u64 {
        self.desc
    }

    #[inline]
    pub(crate) fn desc(&self, index: u16) -> Desc {
        // SAFETY: masked, so inside the table, which `new` was promised.
        unsafe { Desc::read(self.desc, self.at(index)) }
    }

    #[inline]
    pub(crate) fn set_desc(&self, index: u16, desc: Desc) {
        // SAFETY: masked, so inside the table, which `new` was promised.
        unsafe { desc.write(self.desc, self.at(index)) }
    }

    /// # Safety
    /// The word lies in the part that `base` points to.
    #[inline]
    unsafe fn word(&self, base: *mut u16, index: usize) -> &Le16 {
        // SAFETY: inside the part, aligned (the parts are, and words are two bytes), mapped as
        // long as `self` is used, and only ever used atomically on this side.
        unsafe { &*base.add(index).cast::<Le16>() }
    }

    #[inline]
    pub(crate) fn avail_flags(&self) -> &Le16 {
        // SAFETY: the first word of the part.
        unsafe { self.word(self.avail, 0) }
    }

    #[inline]
    pub(crate) fn avail_idx(&self) -> &Le16 {
        // SAFETY: the second word of the part.
        unsafe { self.word(self.avail, 1) }
    }

    /// Where the driver says at which used index it wants to be interrupted (2.7.7).
    #[inline]
    pub(crate) fn used_event(&self) -> &Le16 {
        // SAFETY: the word behind the entries is the last of the part.
        unsafe { self.word(self.avail, 2 + usize::from(self.size())) }
    }

    #[inline]
    pub(crate) fn used_flags(&self) -> &Le16 {
        // SAFETY: the first word of the part.
        unsafe { self.word(self.used, 0) }
    }

    #[inline]
    pub(crate) fn used_idx(&self) -> &Le16 {
        // SAFETY: the second word of the part.
        unsafe { self.word(self.used, 1) }
    }

    /// Where the device says at which available index it wants to be kicked (2.7.10).
    #[inline]
    pub(crate) fn avail_event(&self) -> &Le16 {
        // SAFETY: the word behind the elements is the last of the part.
        unsafe { self.word(self.used, 2 + 4 * usize::from(self.size())) }
    }

    #[inline]
    pub(crate) fn avail_entry(&self, index: u16) -> u16 {
        // SAFETY: masked, so inside the part.
        u16::from_le(unsafe { self.avail.add(2 + self.at(index)).read_volatile() })
    }

    #[inline]
    pub(crate) fn set_avail_entry(&self, index: u16, head: u16) {
        // SAFETY: masked, so inside the part.
        unsafe { self.avail.add(2 + self.at(index)).write_volatile(head.to_le()) }
    }

    /// The used element at `index`: id and bytes written.
    #[inline]
    pub(crate) fn used_entry(&self, index: u16) -> (u32, u32) {
        // SAFETY: masked, so inside the part; elements are aligned to 4 as the part is.
        unsafe {
            let entry = self.used.add(2 + 4 * self.at(index)).cast::<u32>();
            (u32::from_le(entry.read_volatile()), u32::from_le(entry.add(1).read_volatile()))
        }
    }

    #[inline]
    pub(crate) fn set_used_entry(&self, index: u16, id: u32, written: u32) {
        // SAFETY: masked, so inside the part; elements are aligned to 4 as the part is.
        unsafe {
            let entry = self.used.add(2 + 4 * self.at(index)).cast::<u32>();
            entry.write_volatile(id.to_le());
            entry.add(1).write_volatile(written.to_le());
        }
    }
}
