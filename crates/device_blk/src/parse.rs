//! A descriptor chain to an [`Action`].
//!
//! Clause 5.2.6 says what a request is, clause 2.7.4 that its framing says nothing: the header may be spread over descriptors or share one
//! with data, and the status is simply the last writable byte. The usual framing (a 16-byte header, data, a 1-byte status, each on its
//! own) takes the short way.

use block::OpKind;
use memory::IoBuf;

use super::{ID_BYTES, RANGE_SECTORS_MAX, SECTOR, Shape, Status, kind};

const HEADER_BYTES: usize = 16;
/// sector (8), num_sectors (4), flags (4).
const RANGE_BYTES: usize = 16;
const FLAG_UNMAP: u32 = 1;

/// What is to be done for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Ask the volume.
    Submit {
        /// What.
        op: OpKind,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// Copy the serial number into the data buffers.
    GetId,
    /// Answer at once.
    Reject(Reject),
}

/// Why a request is answered without asking the volume. Each is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reject {
    /// No header, no status, or data where none belongs.
    BadChain,
    /// A type or a flag that is not served: UNSUPP.
    Unsupported,
    /// Beyond the end, or not a multiple of the block size: IOERR.
    OutOfRange,
    /// A write to a read-only disk: IOERR.
    ReadOnly,
}

impl Reject {
    /// The status that the clause names.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Reject::Unsupported => Status::Unsupported,
            Reject::BadChain | Reject::OutOfRange | Reject::ReadOnly => Status::IoErr,
        }
    }
}

/// A judged request. `bufs[first..end]` of the chain is its data, cut to exclude header and status.
#[derive(Debug, Clone, Copy)]
pub struct Parsed {
    /// What is to be done.
    pub action: Action,
    /// First data buffer.
    pub first: usize,
    /// One past the last data buffer.
    pub end: usize,
    /// Where the status goes; empty when the chain has no writable byte.
    pub status: IoBuf,
}

/// A chain as it comes from the ring.
#[derive(Debug)]
pub struct Chain<'a> {
    /// Its buffers, the readable ones first.
    pub bufs: &'a mut [IoBuf],
    /// How many of them are readable.
    pub readable: usize,
    /// Bytes of the readable ones.
    pub readable_bytes: u64,
    /// Bytes of the others.
    pub writable_bytes: u64,
}

/// Judges a chain. Cuts header and status off its buffers, in place.
#[inline]
pub fn parse(shape: &Shape, chain: &mut Chain<'_>) -> Parsed {
    let (readable, total) = (chain.readable, chain.bufs.len());
    let mut header = [0; HEADER_BYTES];
    let usual = match &*chain.bufs {
        [first, .., last] => {
            readable >= 1 && readable < total && first.len() == HEADER_BYTES && last.len() == 1
        }
        _ => false,
    };
    let (data_first, data_end, status) = if usual {
        chain.bufs[0].read(0, &mut header);
        (1, total - 1, chain.bufs[total - 1])
    } else {
        match cut_unusual(chain.bufs, readable, &mut header) {
            Ok(cut) => cut,
            Err(status) => {
                return Parsed {
                    action: Action::Reject(Reject::BadChain),
                    first: 0,
                    end: 0,
                    status,
                };
            }
        }
    };
    // Data that the device reads ends where the readable part does; data that it writes begins there. Both lengths are known from
    // the walk: all but the header, and all but the status.
    let (out, inward) = ((data_first, readable), (readable, data_end));
    let lengths = Lengths {
        out: chain.readable_bytes - HEADER_BYTES as u64,
        inward: chain.writable_bytes - 1,
    };
    let kind = u32::from_le_bytes(header[..4].try_into().expect("4 bytes"));
    let sector = u64::from_le_bytes(header[8..].try_into().expect("8 bytes"));
    let (action, (first, end)) = match kind {
        kind::IN if lengths.out == 0 => {
            (transfer(shape, OpKind::Read, sector, lengths.inward), inward)
        }
        kind::OUT if lengths.inward == 0 => {
            let op = OpKind::Write { fua: shape.write_through() };
            (transfer(shape, op, sector, lengths.out), out)
        }
        _ => rare(shape, kind, chain.bufs, out, inward, &lengths),
    };
    Parsed { action, first, end, status }
}

/// Bytes of data in each direction.
struct Lengths {
    out: u64,
    inward: u64,
}

/// Everything but sane reads and writes.
#[cold]
fn rare(
    shape: &Shape,
    kind: u32,
    bufs: &[IoBuf],
    out: (usize, usize),
    inward: (usize, usize),
    lengths: &Lengths,
) -> (Action, (usize, usize)) {
    let nothing = (0, 0);
    let out = out.0..out.1.max(out.0);
    match kind {
        kind::IN | kind::OUT => (Action::Reject(Reject::BadChain), nothing),
        kind::FLUSH => (Action::Submit { op: OpKind::Flush, offset: 0, len: 0 }, nothing),
        // The clause asks for 20 bytes of room; some drivers offer more.
        kind::GET_ID if lengths.inward < ID_BYTES as u64 => {
            (Action::Reject(Reject::BadChain), nothing)
        }
        kind::GET_ID => (Action::GetId, inward),
        kind::DISCARD if shape.discard => (range(shape, &bufs[out], lengths.out, false), nothing),
        kind::WRITE_ZEROES if shape.write_zeroes => {
            (range(shape, &bufs[out], lengths.out, true), nothing)
        }
        kind::DISCARD | kind::WRITE_ZEROES if shape.read_only => {
            (Action::Reject(Reject::ReadOnly), nothing)
        }
        _ => (Action::Reject(Reject::Unsupported), nothing),
    }
}

/// A read or a write.
#[inline]
fn transfer(shape: &Shape, op: OpKind, sector: u64, len: u64) -> Action {
    if shape.read_only && op != OpKind::Read {
        return Action::Reject(Reject::ReadOnly);
    }
    match checked_range(shape, sector, len) {
        Some(offset) => Action::Submit { op, offset, len },
        None => Action::Reject(Reject::OutOfRange),
    }
}

/// The byte offset of a range, if it is whole blocks inside the disk.
#[inline]
fn checked_range(shape: &Shape, sector: u64, len: u64) -> Option<u64> {
    let offset = sector.checked_mul(SECTOR)?;
    let end = offset.checked_add(len)?;
    let mask = u64::from(shape.block_size) - 1;
    (end <= shape.bytes() && (offset | len) & mask == 0).then_some(offset)
}

/// DISCARD or WRITE_ZEROES: one range, as `max_discard_seg` and `max_write_zeroes_seg` say.
fn range(shape: &Shape, data: &[IoBuf], len: u64, zeroes: bool) -> Action {
    let mut bytes = [0; RANGE_BYTES];
    match len {
        16 => gather(data, &mut bytes),
        len if len > 16 && len.is_multiple_of(16) => return Action::Reject(Reject::Unsupported),
        _ => return Action::Reject(Reject::BadChain),
    }
    let sector = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
    let sectors = u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes"));
    let flags = u32::from_le_bytes(bytes[12..].try_into().expect("4 bytes"));
    // Clause 5.2.6.2: unknown flags, and unmap on a discard, are UNSUPP.
    if flags & !FLAG_UNMAP != 0 || (!zeroes && flags != 0) {
        return Action::Reject(Reject::Unsupported);
    }
    let len = u64::from(sectors) * SECTOR;
    let (true, Some(offset)) = (sectors <= RANGE_SECTORS_MAX, checked_range(shape, sector, len))
    else {
        return Action::Reject(Reject::OutOfRange);
    };
    let op = if zeroes {
        OpKind::WriteZeroes { unmap: flags & FLAG_UNMAP != 0, fua: shape.write_through() }
    } else {
        OpKind::Discard
    };
    Action::Submit { op, offset, len }
}

/// Copies the first bytes of `bufs` into `to`; there are at least that many.
fn gather(bufs: &[IoBuf], to: &mut [u8]) {
    let mut filled = 0;
    for buf in bufs {
        let count = buf.len().min(to.len() - filled);
        buf.read(0, &mut to[filled..filled + count]);
        filled += count;
    }
}

/// Any other framing: cuts 16 bytes from the readable part and the last byte from the writable part. `Err`: the chain has no
/// whole header or no status byte; holds the status byte if there is one.
#[cold]
fn cut_unusual(
    bufs: &mut [IoBuf],
    readable: usize,
    header: &mut [u8; HEADER_BYTES],
) -> Result<(usize, usize, IoBuf), IoBuf> {
    let (outward, inward) = bufs.split_at_mut(readable.min(bufs.len()));
    let mut data_end = inward.len();
    while data_end > 0 && inward[data_end - 1].is_empty() {
        data_end -= 1;
    }
    let Some(last) = data_end.checked_sub(1) else {
        return Err(IoBuf::EMPTY);
    };
    let whole = inward[last];
    let status = whole.slice(whole.len() - 1, 1);
    if outward.iter().map(|buf| buf.len()).sum::<usize>() < HEADER_BYTES {
        return Err(status);
    }
    inward[last] = whole.slice(0, whole.len() - 1);
    if inward[last].is_empty() {
        data_end = last;
    }
    gather(outward, header);
    let (mut first, mut left) = (0, HEADER_BYTES);
    while left > 0 {
        let count = outward[first].len().min(left);
        outward[first] = outward[first].slice(count, outward[first].len() - count);
        left -= count;
        if outward[first].is_empty() {
            first += 1;
        }
    }
    Ok((first, outward.len() + data_end, status))
}

#[cfg(test)]
mod tests;
