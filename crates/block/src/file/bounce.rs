//! Memory for requests whose own does not lie as direct I/O needs it.

use memory::{IoBuf, Lasting, MapError};

use crate::fail::walk;

/// Bounce buffers of a lane. A request that finds none waits as [`crate::Wait::NoDma`].
const BUFFERS: usize = 16;
/// Bytes in one; a larger request goes in rounds of this.
const BYTES: usize = 128 * 1024;
/// Pieces of a request that one round can gather. One block of one-byte pieces fits, so every round moves a block at least.
const PIECES: usize = 4096;

/// A lane's bounce buffers: address space until they are used.
#[derive(Debug)]
pub(super) struct BouncePool {
    memory: Lasting,
    free: Vec<u8>,
    /// Where a read's data goes when it has arrived: [`PIECES`] places for each buffer that was ever used. Reserved
    /// for all of them, so it never moves; memory is taken by those that are used, the first ones mostly.
    pieces: Vec<IoBuf>,
    /// How many of its places a buffer uses.
    counts: [usize; BUFFERS],
}

/// One buffer in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounce(u8);

impl BouncePool {
    pub(super) fn new() -> Result<BouncePool, MapError> {
        Ok(BouncePool {
            memory: Lasting::new(BUFFERS * BYTES)?,
            free: (0..BUFFERS as u8).rev().collect(),
            pieces: Vec::with_capacity(BUFFERS * PIECES),
            counts: [0; BUFFERS],
        })
    }

    pub(super) fn take(&mut self) -> Option<Bounce> {
        self.free.pop().map(Bounce)
    }

    pub(super) fn give_back(&mut self, bounce: Bounce) {
        debug_assert!(!self.free.contains(&bounce.0));
        self.free.push(bounce.0);
    }

    /// Notes the pieces of `bufs` from `skip` on, as many as go into the buffer in one round, and returns the buffer cut to
    /// them; `unit` is a power of two that its length is a multiple of.
    pub(super) fn gather(
        &mut self,
        bounce: Bounce,
        bufs: &[IoBuf],
        skip: u64,
        limit: u64,
        unit: u32,
    ) -> IoBuf {
        let index = usize::from(bounce.0);
        if self.pieces.len() < (index + 1) * PIECES {
            self.pieces.resize((index + 1) * PIECES, IoBuf::EMPTY);
        }
        let places = &mut self.pieces[index * PIECES..(index + 1) * PIECES];
        let mut count = 0;
        let bytes = walk(bufs, skip, limit.min(BYTES as u64), |piece| {
            let place = places.get_mut(count);
            let room = place.is_some();
            if let Some(place) = place {
                *place = piece;
                count += 1;
            }
            room
        });
        self.counts[index] = count;
        // At most BYTES.
        let bytes = bytes as usize & !(unit as usize - 1);
        self.buffer(bounce).slice(0, bytes)
    }

    /// Copies the gathered pieces into the buffer, `bytes` in all.
    pub(super) fn fill(&self, bounce: Bounce, bytes: usize) {
        let buffer = self.buffer(bounce);
        self.each(bounce, bytes, |offset, piece| {
            buffer.slice(offset, piece.len()).copy_from(piece);
        });
    }

    /// Copies the first `bytes` of the buffer out to the gathered pieces.
    pub(super) fn drain(&self, bounce: Bounce, bytes: usize) {
        let buffer = self.buffer(bounce);
        self.each(bounce, bytes, |offset, piece| {
            piece.copy_from(buffer.slice(offset, piece.len()));
        });
    }

    fn each(&self, bounce: Bounce, bytes: usize, mut copy: impl FnMut(usize, IoBuf)) {
        let mut offset = 0;
        let index = usize::from(bounce.0);
        for piece in &self.pieces[index * PIECES..][..self.counts[index]] {
            let len = piece.len().min(bytes - offset);
            copy(offset, piece.slice(0, len));
            offset += len;
        }
    }

    fn buffer(&self, bounce: Bounce) -> IoBuf {
        self.memory.buf(usize::from(bounce.0) * BYTES, BYTES).expect("inside the pool")
    }
}
