//! Copying a frame from where it lies into a client's buffers.

use std::ops::Range;

use memory::IoBuf;
use switch::{NetHeader, Piece, Sum, View};

/// What is summed is copied by way of the stack, in pieces of this size: the sum must be of what arrives.
const BOUNCE_BYTES: usize = 2048;

/// Where a frame lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    /// The buffers.
    pub(crate) bufs: &'a [IoBuf],
    /// Bytes in them before the frame: its header.
    pub(crate) skip: usize,
}

impl Source<'_> {
    /// Bytes from the beginning of the buffers to their end.
    #[inline]
    pub(crate) fn whole(self) -> usize {
        match self.bufs {
            [one] => one.len(),
            all => all.iter().map(|buf| buf.len()).sum(),
        }
    }

    /// Copies a part of the frame out.
    #[inline]
    pub(crate) fn read(self, from: usize, to: &mut [u8]) {
        let at = self.skip + from;
        match self.bufs {
            // Most frames lie in one buffer with their header.
            [first, ..] if at + to.len() <= first.len() => first.read(at, to),
            _ => self.gather(from, to),
        }
    }

    fn gather(self, from: usize, to: &mut [u8]) {
        let mut place = Place::new(self.bufs, self.skip + from);
        let mut done = 0;
        while done < to.len() {
            let piece = place.take(to.len() - done);
            piece.read(0, &mut to[done..done + piece.len()]);
            done += piece.len();
        }
    }

    /// Copies a part of the frame to a place, which has room for it; what arrives there is added to the sum.
    pub(crate) fn copy(self, range: Range<usize>, to: &mut Place<'_>, sum: Option<&mut Sum>) {
        if let Some(sum) = sum {
            let mut bounce = [0; BOUNCE_BYTES];
            let mut from = range.start;
            while from < range.end {
                let piece = &mut bounce[..(range.end - from).min(BOUNCE_BYTES)];
                self.read(from, piece);
                sum.add(piece);
                to.write(piece);
                from += piece.len();
            }
            return;
        }
        let mut left = range.len();
        let mut place = Place::new(self.bufs, self.skip + range.start);
        while left > 0 {
            let room = to.take(left);
            let mut done = 0;
            while done < room.len() {
                let piece = place.take(room.len() - done);
                room.slice(done, piece.len()).copy_from(piece);
                done += piece.len();
            }
            left -= room.len();
        }
    }
}

/// Writes a part of a frame behind so many bytes of its header, which are written last.
pub(crate) fn write_piece(
    source: Source<'_>,
    piece: &mut Piece<'_>,
    bufs: &[IoBuf],
    header: usize,
) {
    let range = piece.rest.clone();
    let behind = header + piece.head().len();
    if piece.wants_sum() {
        let mut rest = Place::new(bufs, behind);
        piece.fill(|sum| source.copy(range, &mut rest, Some(sum)));
    } else if !range.is_empty() {
        source.copy(range, &mut Place::new(bufs, behind), None);
    }
    let mut place = Place::new(bufs, 0);
    place.write(&piece.header.write()[..header]);
    place.write(piece.head());
}

/// Writes a frame as it came behind so many bytes of a header; what was looked at is written last.
#[inline(always)] // At one place.
pub(crate) fn write_whole(
    source: Source<'_>,
    its: &NetHeader,
    view: &View<'_>,
    bufs: &[IoBuf],
    header: usize,
) {
    let head = view.head();
    if head.len() < view.len() {
        let rest = head.len()..view.len();
        source.copy(rest, &mut Place::new(bufs, header + head.len()), None);
    }
    let its = its.write();
    match bufs {
        // As nearly all are, with a number of bytes that the compiler knows.
        [first, ..] if header == its.len() && header + head.len() <= first.len() => {
            first.write(0, &its);
            first.write(header, head);
        }
        _ => {
            let mut place = Place::new(bufs, 0);
            place.write(&its[..header]);
            place.write(head);
        }
    }
}

/// A place in a list of buffers.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    bufs: &'a [IoBuf],
    at: usize,
}

impl<'a> Place<'a> {
    /// So many bytes behind the beginning.
    pub(crate) fn new(mut bufs: &'a [IoBuf], mut at: usize) -> Place<'a> {
        while let [first, rest @ ..] = bufs
            && at >= first.len()
        {
            at -= first.len();
            bufs = rest;
        }
        Place { bufs, at }
    }

    /// The next bytes that lie together, up to so many, and goes behind them.
    ///
    /// # Panics
    ///
    /// At the end: lengths are ours.
    pub(crate) fn take(&mut self, most: usize) -> IoBuf {
        let first = self.bufs.first().expect("the caller knows how long it is");
        let len = most.min(first.len() - self.at);
        let piece = first.slice(self.at, len);
        *self = Place::new(self.bufs, self.at + len);
        piece
    }

    /// Writes bytes, and goes behind them.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        match self.bufs {
            [first, ..] if self.at + bytes.len() <= first.len() => {
                first.write(self.at, bytes);
                self.at += bytes.len();
            }
            _ => self.scatter(bytes),
        }
    }

    fn scatter(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let piece = self.take(bytes.len());
            let (now, later) = bytes.split_at(piece.len());
            piece.write(0, now);
            bytes = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use memory::Lasting;

    use super::*;

    #[test]
    fn bytes_arrive_in_order_whatever_the_buffers_are() {
        let memory = Lasting::new(16384).expect("memory");
        let memory = memory.buf(0, 16384).expect("all of it");
        let from: Vec<u8> = (0..5000_u32).map(|byte| (byte * 7 + byte / 256) as u8).collect();
        memory.write(100, &from);
        let lengths = [1, 0, 7, 2000, 3, 2989];
        let mut at = 100;
        let cut = |len: &usize| {
            at += len;
            memory.slice(at - len, *len)
        };
        let bufs: Vec<IoBuf> = lengths.iter().map(cut).collect();
        let source = Source { bufs: &bufs, skip: 12 };
        let ranges = [(0..4988, true), (0..4988, false), (9..2500, true), (4987..4988, false)];
        for (range, summed) in ranges {
            {
                let rooms = [memory.slice(8192, 5), IoBuf::EMPTY, memory.slice(8197, 6000)];
                memory.slice(8192, 6005).fill(0xee);
                let mut sum = Sum::default();
                let mut place = Place::new(&rooms, 3);
                source.copy(range.clone(), &mut place, summed.then_some(&mut sum));
                let mut arrived = vec![0; range.len() + 4];
                memory.read(8192 + 2, &mut arrived);
                let wanted = &from[12 + range.start..12 + range.end];
                assert_eq!(arrived[1..=range.len()], *wanted, "{range:?}");
                assert_eq!((arrived[0], arrived[range.len() + 1]), (0xee, 0xee), "beside it");
                let mut right = Sum::default();
                right.add(wanted);
                assert!(!summed || sum.fold() == right.fold(), "{range:?}");
            }
        }
    }
}
