//! The chain of a request queue (virtio 1.3, clause 5.6.6.1).
//!
//! Readable: header and data-out. Writable: response and data-in. Where one ends and the other begins is a matter of bytes, not of
//! descriptors (clause 2.7.4). The usual framing (header and response each on their own) takes the short way.

use memory::IoBuf;
use scsi::Class;

use super::Sizes;

/// Bytes of the header before the CDB: lun (8), id (8), task_attr, prio, crn.
const CDB_AT: usize = 19;
/// The most bytes of a CDB that are looked at. What lies behind belongs to no command that is known here.
pub const CDB_BYTES_MAX: usize = 32;

/// A header, copied out of the client's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; CDB_AT + CDB_BYTES_MAX],
    cdb: usize,
}

impl Header {
    /// Nothing yet.
    pub const EMPTY: Header = Header { bytes: [0; CDB_AT + CDB_BYTES_MAX], cdb: 0 };

    /// The address, undecoded: see [`super::Place::decode`].
    #[inline]
    #[must_use]
    pub fn address(&self) -> [u8; 8] {
        self.eight(0)
    }

    /// The client's name for the command.
    #[inline]
    #[must_use]
    pub fn id(&self) -> u64 {
        u64::from_le_bytes(self.eight(8))
    }

    /// The CDB, with whatever follows it in the field.
    #[inline]
    #[must_use]
    pub fn cdb(&self) -> &[u8] {
        &self.bytes[CDB_AT..][..self.cdb]
    }

    /// The operation code; 0 when the CDB has no bytes.
    #[inline]
    #[must_use]
    pub fn opcode(&self) -> u8 {
        self.bytes[CDB_AT]
    }

    /// What the command is; TEST UNIT READY's when the CDB has no bytes.
    #[inline]
    #[must_use]
    pub fn class(&self) -> Class {
        Class::of(self.opcode())
    }

    #[inline]
    fn eight(&self, at: usize) -> [u8; 8] {
        self.bytes[at..at + 8].try_into().expect("8 bytes")
    }

    /// Copies the header from the start of the readable part; whether it was all there. Nothing is cut.
    #[must_use]
    pub fn peek(&mut self, sizes: &Sizes, readable: &[IoBuf]) -> bool {
        self.cdb = usize::from(sizes.cdb()).min(CDB_BYTES_MAX);
        let (mut filled, whole) = (0, CDB_AT + self.cdb);
        for buf in readable {
            let count = buf.len().min(whole - filled);
            buf.read(0, &mut self.bytes[filled..filled + count]);
            filled += count;
        }
        filled == whole
    }
}

/// Buffers of a chain: from `first` up to, not including, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    /// The first.
    pub first: u16,
    /// One past the last.
    pub end: u16,
}

impl Range {
    /// A chain has at most some thousand buffers.
    #[inline]
    fn of(first: usize, end: usize) -> Range {
        Range { first: first as u16, end: end as u16 }
    }

    /// The buffers.
    #[inline]
    #[must_use]
    pub fn of_bufs<'a>(&self, bufs: &'a [IoBuf]) -> &'a [IoBuf] {
        &bufs[usize::from(self.first)..usize::from(self.end)]
    }

    /// How many.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.end) - usize::from(self.first)
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first == self.end
    }
}

/// Where the parts of a request are, after header and response were cut off in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed {
    /// Data-out.
    pub data_out: Range,
    /// Data-in.
    pub data_in: Range,
    /// The response, exactly [`Sizes::response_bytes`]; one buffer, in the usual framing.
    pub response: Range,
    /// Bytes of data-out.
    pub out_bytes: u64,
    /// Bytes of data-in.
    pub in_bytes: u64,
}

/// Why a chain is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// Header or response is not all there.
    TooShort,
    /// A buffer has to be divided and there is no place for another one: parse it again in a longer list.
    NoRoom,
}

/// A chain as it comes from the ring. Valid are the first `total` buffers; one place more may be needed.
#[derive(Debug)]
pub struct Chain<'a> {
    /// The readable ones first.
    pub bufs: &'a mut [IoBuf],
    /// How many there are.
    pub total: usize,
    /// How many of them are readable.
    pub readable: usize,
    /// Bytes of the readable ones.
    pub readable_bytes: u64,
    /// Bytes of the others.
    pub writable_bytes: u64,
}

/// Finds the parts of a request, and copies its header.
///
/// # Errors
///
/// When there is no whole header or response, or no room to divide a buffer.
#[inline]
pub fn parse(
    sizes: &Sizes,
    chain: &mut Chain<'_>,
    header: &mut Header,
) -> Result<Parsed, ParseError> {
    let (readable, total) = (chain.readable, chain.total);
    let (header_bytes, response_bytes) = (sizes.header_bytes(), sizes.response_bytes());
    let usual = readable >= 1
        && readable < total
        && total <= chain.bufs.len()
        && chain.bufs[0].len() == header_bytes
        && chain.bufs[readable].len() == response_bytes;
    if !usual || header_bytes != CDB_AT + CDB_BYTES_MAX {
        return parse_unusual(sizes, chain, header);
    }
    chain.bufs[0].read(0, &mut header.bytes);
    header.cdb = CDB_BYTES_MAX;
    Ok(Parsed {
        data_out: Range::of(1, readable),
        data_in: Range::of(readable + 1, total),
        response: Range::of(readable, readable + 1),
        out_bytes: chain.readable_bytes - header_bytes as u64,
        in_bytes: chain.writable_bytes - response_bytes as u64,
    })
}

/// Any other framing, and other sizes.
#[cold]
fn parse_unusual(
    sizes: &Sizes,
    chain: &mut Chain<'_>,
    header: &mut Header,
) -> Result<Parsed, ParseError> {
    let (header_bytes, response_bytes) = (sizes.header_bytes(), sizes.response_bytes());
    let total = chain.total.min(chain.bufs.len());
    let readable = chain.readable.min(total);
    let sum = |bufs: &[IoBuf]| bufs.iter().map(|buf| buf.len() as u64).sum::<u64>();
    let (out_bytes, in_bytes) = (sum(&chain.bufs[..readable]), sum(&chain.bufs[readable..total]));
    let (Some(out_bytes), Some(in_bytes)) =
        (out_bytes.checked_sub(header_bytes as u64), in_bytes.checked_sub(response_bytes as u64))
    else {
        return Err(ParseError::TooShort);
    };
    if !header.peek(sizes, &chain.bufs[..readable]) {
        return Err(ParseError::TooShort);
    }
    let (response_end, over) = reach(&chain.bufs[readable..total], response_bytes);
    let response_end = readable + response_end;
    let mut end = total;
    if over > 0 {
        // The last buffer of the response holds data-in as well.
        if total == chain.bufs.len() {
            return Err(ParseError::NoRoom);
        }
        chain.bufs[response_end..=total].rotate_right(1);
        let shared = chain.bufs[response_end - 1];
        let len = shared.len() - over;
        chain.bufs[response_end - 1] = shared.slice(0, len);
        chain.bufs[response_end] = shared.slice(len, over);
        end += 1;
    }
    let (mut out_first, over) = reach(&chain.bufs[..readable], header_bytes);
    if over > 0 {
        out_first -= 1;
        let shared = chain.bufs[out_first];
        chain.bufs[out_first] = shared.slice(shared.len() - over, over);
    }
    Ok(Parsed {
        data_out: Range::of(out_first, readable),
        data_in: Range::of(response_end, end),
        response: Range::of(readable, response_end),
        out_bytes,
        in_bytes,
    })
}

/// How many buffers it takes to hold `bytes`, and how many bytes the last of them has beyond. There are that many.
fn reach(bufs: &[IoBuf], bytes: usize) -> (usize, usize) {
    let (mut count, mut held) = (0, 0);
    while held < bytes {
        held += bufs[count].len();
        count += 1;
    }
    (count, held - bytes)
}

#[cfg(test)]
mod tests;
