//! [`Data`]: the client's buffers of one command in one direction.

use memory::IoBuf;

/// Bytes that are copied or compared through the stack at a time.
const PIECE: usize = 512;

/// Buffers and the sum of their lengths, which whoever walked them knows already. The client may change their bytes at any time,
/// so each byte that decides something is read once and the copy is judged.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// The pieces, in order.
    pub bufs: &'a [IoBuf],
    /// Their bytes together.
    pub len: u64,
}

impl<'a> Data<'a> {
    /// No buffers.
    pub const NONE: Data<'static> = Data { bufs: &[], len: 0 };

    /// Counts the bytes.
    #[must_use]
    pub fn new(bufs: &'a [IoBuf]) -> Data<'a> {
        Data { bufs, len: bufs.iter().map(|buf| buf.len() as u64).sum() }
    }

    /// Calls `each` with the pieces from `at` on until `len` bytes are seen or the buffers end; returns how many were seen.
    fn walk(&self, at: u64, len: usize, mut each: impl FnMut(usize, IoBuf)) -> usize {
        let (mut skip, mut seen) = (at, 0);
        for buf in self.bufs {
            if seen == len {
                break;
            }
            let size = buf.len() as u64;
            if skip >= size {
                skip -= size;
                continue;
            }
            // Below `size`, which is a usize.
            let from = skip as usize;
            let take = (buf.len() - from).min(len - seen);
            each(seen, buf.slice(from, take));
            (skip, seen) = (0, seen + take);
        }
        seen
    }

    /// Appends the pieces that hold `len` bytes from `skip` on: the buffers of a [`crate::BlockRequest`]. False: there are not
    /// that many.
    #[inline]
    pub fn slice(&self, skip: u64, len: u64, to: &mut Vec<IoBuf>) -> bool {
        let Ok(len) = usize::try_from(len) else {
            return false;
        };
        self.walk(skip, len, |_, buf| to.push(buf)) == len
    }

    /// Copies bytes from `at` on out of the buffers; returns how many there were.
    pub(crate) fn read(&self, at: u64, to: &mut [u8]) -> usize {
        let len = to.len();
        self.walk(at, len, |seen, buf| buf.read(0, &mut to[seen..seen + buf.len()]))
    }

    /// Copies bytes into the buffers from `at` on; returns how many there was room for.
    pub(crate) fn write(&self, at: u64, from: &[u8]) -> usize {
        self.walk(at, from.len(), |seen, buf| buf.write(0, &from[seen..seen + buf.len()]))
    }

    /// Copies the whole of `from` into the buffers from `at` on, as far as there is room.
    pub(crate) fn write_buf(&self, at: u64, from: IoBuf) -> usize {
        self.walk(at, from.len(), |seen, buf| buf.copy_from(from.slice(seen, buf.len())))
    }

    /// Copies bytes from `at` on into the whole of `to`; returns how many there were.
    pub(crate) fn read_buf(&self, at: u64, to: IoBuf) -> usize {
        self.walk(at, to.len(), |seen, buf| to.slice(seen, buf.len()).copy_from(buf))
    }

    /// The first byte from `at` on that differs from `with`, as its distance from `at`. Bytes that are missing differ.
    pub(crate) fn differs(&self, at: u64, with: IoBuf) -> Option<usize> {
        let (mut ours, mut theirs) = ([0; PIECE], [0; PIECE]);
        let mut seen = 0;
        while seen < with.len() {
            let take = PIECE.min(with.len() - seen);
            let got = self.read(at + seen as u64, &mut ours[..take]);
            with.read(seen, &mut theirs[..take]);
            if ours[..got] != theirs[..got] {
                let first = ours[..got].iter().zip(&theirs).position(|(a, b)| a != b);
                return first.map(|first| seen + first);
            }
            if got < take {
                return Some(seen + got);
            }
            seen += take;
        }
        None
    }
}

/// Whether a buffer holds nothing but zeroes.
pub(crate) fn is_zero(buf: IoBuf) -> bool {
    let mut piece = [0; PIECE];
    let mut seen = 0;
    while seen < buf.len() {
        let take = PIECE.min(buf.len() - seen);
        buf.read(seen, &mut piece[..take]);
        if piece[..take].iter().any(|byte| *byte != 0) {
            return false;
        }
        seen += take;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory::Lasting;

    /// Pieces of these sizes with a gap of one byte between them.
    fn pieces(mapping: &Lasting, sizes: &[usize]) -> Vec<IoBuf> {
        let mut at = 0;
        let piece = |size: &usize| {
            let buf = mapping.buf(at, *size).expect("inside");
            at += size + 1;
            buf
        };
        sizes.iter().map(piece).collect()
    }

    #[test]
    fn bytes_go_through_any_pieces() {
        let mapping = Lasting::new(8192).expect("memory");
        let bufs = pieces(&mapping, &[3, 0, 1, 700, 5]);
        let data = Data::new(&bufs);
        assert_eq!(data.len, 709);
        let bytes: Vec<u8> = (0..709_u32).map(|i| (i % 251) as u8).collect();
        for (at, len) in [(0, 709), (2, 3), (3, 700), (704, 5), (708, 1)] {
            assert_eq!(data.write(at as u64, &bytes[at..at + len]), len);
            let mut back = vec![0; len];
            assert_eq!(data.read(at as u64, &mut back), len);
            assert_eq!(back, bytes[at..at + len]);
        }
        assert_eq!(data.write(700, &bytes[..20]), 9, "cut at the end");
        assert_eq!(data.read(709, &mut [0; 4]), 0);
        assert_eq!(data.read(u64::MAX, &mut [0; 4]), 0);
    }

    #[test]
    fn the_first_difference_is_found() {
        let mapping = Lasting::new(8192).expect("memory");
        let bufs = pieces(&mapping, &[600, 600]);
        let data = Data::new(&bufs);
        let with = mapping.buf(4096, 1200).expect("inside");
        assert_eq!(data.differs(0, with), None);
        for at in [0, 1, 511, 512, 599, 600, 601, 1199] {
            with.write(at, &[1]);
            assert_eq!(data.differs(0, with), Some(at));
            with.write(at, &[0]);
        }
        assert_eq!(data.differs(1, with), Some(1199), "one byte is missing");
        assert!(is_zero(with));
        with.write(1199, &[1]);
        assert!(!is_zero(with));
    }
}
