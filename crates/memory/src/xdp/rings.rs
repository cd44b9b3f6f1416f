//! [`Rings`]: the side of an AF_XDP socket that moves frames.
//!
//! ```text
//!   chunks to fill ──► fill ──► kernel ──► received ──► chunks with frames
//!   chunks with frames ──► send ──► kernel ──► done ──► chunks to be written
//! ```
//!
//! What the kernel writes is believed as far as that it is the kernel's; still no number of it leads out of the memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::{CHUNK_BYTES, CHUNKS, MEMORY_BYTES, get, map};
use crate::{IoBuf, Shown};

/// With fewer chunks than these left to the kernel it may have lost frames.
const FEW: u32 = 64;
/// What stands for a frame that was taken back: it is for nobody who forwards it (802.1Q, table 8-1), and from nobody, so that no bridge learns of it. A
/// descriptor that the kernel does not take would do as well, but Linux 6.18 then has room for one frame less, for good.
const EMPTY: [u8; 60] = {
    let mut frame = [0; 60];
    [frame[0], frame[1], frame[2], frame[5], frame[12], frame[13]] =
        [0x01, 0x80, 0xc2, 0x01, 0x88, 0xb5];
    frame
};

/// A ring of entries that one side writes and the other one reads.
struct Ring<T> {
    at: NonNull<u8>,
    length: usize,
    places: libc::xdp_ring_offset,
    /// Our own index: of the producer of a ring that we fill, else of the consumer.
    own: u32,
    _of: PhantomData<T>,
}

// SAFETY: a mapping of our own, at which nobody else looks by this address.
unsafe impl<T> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    fn new(
        socket: BorrowedFd<'_>,
        place: u64,
        places: libc::xdp_ring_offset,
    ) -> io::Result<Ring<T>> {
        let length = places.desc as usize + CHUNKS as usize * size_of::<T>();
        let fits = |at: u64, align: u64| at + 4 <= length as u64 && at.is_multiple_of(align);
        if !fits(places.producer, 4) || !fits(places.consumer, 4) || !fits(places.desc, 8) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let at = NonNull::new(map(socket, place, length)?).expect("mmap returned a null pointer");
        Ok(Ring { at, length, places, own: 0, _of: PhantomData })
    }

    fn index(&self, place: u64) -> &AtomicU32 {
        // SAFETY: inside the mapping and aligned (as was looked at when it was made), which lives as long as `self`; the kernel changes it as an atomic.
        unsafe { &*self.at.as_ptr().add(place as usize).cast::<AtomicU32>() }
    }

    fn entry(&self, number: u32) -> *mut T {
        let at = self.places.desc as usize + (number % CHUNKS) as usize * size_of::<T>();
        self.at.as_ptr().wrapping_add(at).cast()
    }

    /// Of a ring that the kernel fills: how many entries there are, from our own index on.
    fn filled(&self) -> u32 {
        self.index(self.places.producer).load(Acquire).wrapping_sub(self.own).min(CHUNKS)
    }

    fn read(&self, number: u32) -> T {
        // SAFETY: an entry inside the mapping, of numbers; whatever is there is a value.
        unsafe { ptr::read_volatile(self.entry(number)) }
    }

    /// So many entries are the kernel's again.
    fn took(&mut self, count: u32) {
        self.own = self.own.wrapping_add(count);
        self.index(self.places.consumer).store(self.own, Release);
    }

    /// Of a ring that we fill: the first entry that the kernel has not taken.
    fn first(&self) -> u32 {
        self.index(self.places.consumer).load(Acquire)
    }

    /// How many entries the kernel has not taken.
    fn left(&self) -> u32 {
        self.own.wrapping_sub(self.first()).min(CHUNKS)
    }

    fn write(&self, number: u32, entry: T) {
        // SAFETY: as for `read`.
        unsafe { ptr::write_volatile(self.entry(number), entry) }
    }

    /// One more, for which there is room; the kernel sees it when it is shown.
    fn push(&mut self, entry: T) {
        self.write(self.own, entry);
        self.own = self.own.wrapping_add(1);
    }

    fn show(&self) {
        self.index(self.places.producer).store(self.own, Release);
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: a mapping of our own, to which no reference is left.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr().cast(), self.length) };
    }
}

/// Frames that came, of which some may be looked at.
#[derive(Debug, Default)]
pub struct Received {
    pieces: Vec<IoBuf>,
    /// Where the pieces of each end, and its bytes.
    frames: Vec<(usize, usize)>,
    chunks: Vec<u64>,
}

impl Received {
    /// The pieces of a frame behind the room that was asked for, which reads as zeroes; and its bytes with that.
    #[must_use]
    pub fn frame(&self, number: usize) -> Option<(&[IoBuf], usize)> {
        let (end, bytes) = *self.frames.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.frames[before].0);
        Some((&self.pieces[start..end], bytes))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}

/// Rings and memory of one socket. Neither is anybody else's but the kernel's.
pub struct Rings {
    socket: OwnedFd,
    memory: Shown,
    fill: Ring<u64>,
    received: Ring<libc::xdp_desc>,
    send: Ring<libc::xdp_desc>,
    done: Ring<u64>,
    /// Chunks in which nothing is.
    free: Vec<u64>,
    /// The chunks of the frame that is being written.
    writing: Vec<IoBuf>,
    /// Frames that the kernel has not taken: the entry behind their last one, and what they are to their owner.
    sending: VecDeque<(u32, usize)>,
    /// What is before this entry was taken back, as far as it was there.
    void: u32,
    /// Frames that the kernel had lost.
    lost: u64,
}

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rings").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Rings {
    /// Those of a socket that was [opened](super::open), once.
    ///
    /// # Errors
    ///
    /// When the kernel refuses: the descriptors are others.
    pub fn new(socket: BorrowedFd<'_>, memory: &OwnedFd) -> io::Result<Rings> {
        let places: libc::xdp_mmap_offsets = get(socket, libc::XDP_MMAP_OFFSETS)?;
        let memory = Shown::file(&File::from(memory.try_clone()?), MEMORY_BYTES);
        let memory = memory.map_err(io::Error::other)?;
        let mut rings = Rings {
            socket: socket.try_clone_to_owned()?,
            memory,
            fill: Ring::new(socket, libc::XDP_UMEM_PGOFF_FILL_RING, places.fr)?,
            received: Ring::new(socket, libc::XDP_PGOFF_RX_RING as u64, places.rx)?,
            send: Ring::new(socket, libc::XDP_PGOFF_TX_RING as u64, places.tx)?,
            done: Ring::new(socket, libc::XDP_UMEM_PGOFF_COMPLETION_RING, places.cr)?,
            free: (u64::from(CHUNKS)..2 * u64::from(CHUNKS)).rev().collect(),
            writing: Vec::new(),
            sending: VecDeque::with_capacity(CHUNKS as usize),
            void: 0,
            lost: 0,
        };
        if rings.fill.left() != 0 || rings.fill.first() != 0 || rings.send.first() != 0 {
            // Somebody else has filled them.
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        rings.lost = rings.lost_in_all();
        for chunk in 0..u64::from(CHUNKS) {
            rings.fill.push(chunk * CHUNK_BYTES as u64);
        }
        rings.fill.show();
        Ok(rings)
    }

    fn lost_in_all(&self) -> u64 {
        let told: io::Result<libc::xdp_statistics> = get(&self.socket, libc::XDP_STATISTICS);
        told.map_or(self.lost, |told| told.rx_dropped.wrapping_add(told.rx_ring_full))
    }

    /// Takes frames that came, at most so many, each with `room` bytes before it. They are to be [given back](Rings::give_back) before more are taken. Then: frames that the kernel has lost.
    pub fn receive(&mut self, most: usize, room: usize, to: &mut Received) -> u64 {
        to.pieces.clear();
        to.frames.clear();
        let (filled, few) = (self.received.filled(), self.fill.left() < FEW);
        let (mut bytes, mut taken) = (0, 0);
        for number in 0..filled {
            if to.frames.len() == most {
                break;
            }
            let entry = self.received.read(self.received.own.wrapping_add(number));
            let first = bytes == 0;
            let (before, len) = (if first { room } else { 0 }, entry.len as usize);
            let at = entry.addr as usize;
            let chunk = at / CHUNK_BYTES;
            let start = at.checked_sub(before).filter(|start| start / CHUNK_BYTES == chunk);
            let end = at.saturating_add(len) <= (chunk + 1) * CHUNK_BYTES;
            let piece = start.filter(|_| end && chunk < CHUNKS as usize);
            let piece = piece.and_then(|start| self.memory.buf(start, before + len));
            if let Some(piece) = piece {
                piece.slice(0, before).fill(0);
                to.pieces.push(piece);
                bytes += piece.len();
                to.chunks.push((chunk * CHUNK_BYTES) as u64);
            }
            if entry.options & libc::XDP_PKT_CONTD == 0 {
                to.frames.push((to.pieces.len(), bytes));
                (bytes, taken) = (0, number + 1);
            }
        }
        // The rest of a frame comes with it, as a rule at once.
        let whole = to.frames.last().map_or(0, |last| last.0);
        let rest = to.pieces.len() - whole;
        to.pieces.truncate(whole);
        to.chunks.truncate(to.chunks.len() - rest);
        self.received.took(taken);
        if !few {
            return 0;
        }
        let lost = self.lost_in_all();
        lost.wrapping_sub(std::mem::replace(&mut self.lost, lost))
    }

    /// What was received is looked at no more.
    pub fn give_back(&mut self, from: &mut Received) {
        from.pieces.clear();
        from.frames.clear();
        // There is room: they have come by it.
        from.chunks.drain(..).for_each(|chunk| self.fill.push(chunk));
        self.fill.show();
    }

    /// Memory for a frame of so many bytes, to be written from its beginning on; none: nothing is free.
    pub fn room(&mut self, bytes: usize) -> Option<&[IoBuf]> {
        let count = bytes.div_ceil(CHUNK_BYTES);
        self.reap();
        if self.free.len() < count || self.send.left() as usize + count > CHUNKS as usize {
            return None;
        }
        self.writing.clear();
        for chunk in self.free.iter().rev().take(count) {
            let at = *chunk as usize * CHUNK_BYTES;
            self.writing.push(self.memory.buf(at, CHUNK_BYTES).expect("it is a chunk"));
        }
        Some(&self.writing)
    }

    /// Sends what was written to the [`room`](Rings::room), so many bytes, without the first ones of them; the kernel is to be told.
    pub fn push(&mut self, skip: usize, bytes: usize) {
        let (mut left, mut skip) = (bytes, skip);
        while left > 0 {
            let chunk = self.free.pop().expect("there was room");
            let here = left.min(CHUNK_BYTES);
            left -= here;
            let addr = chunk * CHUNK_BYTES as u64 + skip as u64;
            let options = if left > 0 { libc::XDP_PKT_CONTD } else { 0 };
            self.send.push(libc::xdp_desc { addr, len: (here - skip) as u32, options });
            skip = 0;
        }
        self.send.show();
    }

    /// When the kernel has taken what was pushed until now, [`Rings::sent`] gives this.
    pub fn mark(&mut self, what: usize) {
        self.sending.push_back((self.send.own, what));
    }

    /// The entry that the kernel takes next.
    #[must_use]
    pub fn taken(&self) -> u32 {
        self.send.first()
    }

    /// How many entries the kernel has yet to take, with those that were taken back.
    #[must_use]
    pub fn left(&self) -> u32 {
        self.send.left()
    }

    /// The next frame that the kernel has taken.
    pub fn sent(&mut self) -> Option<usize> {
        let (end, what) = *self.sending.front()?;
        let behind = self.send.first().wrapping_sub(end).cast_signed() >= 0;
        behind.then(|| self.sending.pop_front())?;
        Some(what)
    }

    /// How many of them were not taken back.
    #[must_use]
    pub fn under_way(&self) -> u32 {
        let first = self.send.first();
        let void = self.void.wrapping_sub(first).cast_signed().max(0).cast_unsigned();
        self.send.left().saturating_sub(void)
    }

    /// Takes back what the kernel has not taken, which it does not while it is not told to, so that nothing of it leaves later; the next of the frames that are not sent so.
    pub fn withdraw(&mut self) -> Option<usize> {
        let first = self.send.first();
        let mut number =
            if self.void.wrapping_sub(first).cast_signed() > 0 { self.void } else { first };
        while number != self.send.own {
            let addr = self.send.read(number).addr / CHUNK_BYTES as u64 * CHUNK_BYTES as u64;
            let chunk = self.memory.buf(addr as usize, EMPTY.len()).expect("an entry of ours");
            chunk.write(0, &EMPTY);
            self.send.write(number, libc::xdp_desc { addr, len: EMPTY.len() as u32, options: 0 });
            number = number.wrapping_add(1);
        }
        self.void = number;
        self.sending.pop_front().map(|(_, what)| what)
    }

    /// How many entries there are that were taken back.
    #[must_use]
    pub fn void(&self) -> u32 {
        self.send.left() - self.under_way()
    }

    /// Chunks that were sent are free again.
    fn reap(&mut self) {
        let filled = self.done.filled();
        for number in 0..filled {
            let chunk = self.done.read(self.done.own.wrapping_add(number)) / CHUNK_BYTES as u64;
            if (u64::from(CHUNKS)..2 * u64::from(CHUNKS)).contains(&chunk) {
                self.free.push(chunk);
            }
        }
        if filled > 0 {
            self.done.took(filled);
        }
    }
}
