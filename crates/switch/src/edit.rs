//! What is done to a frame for one destination: tags, checksum, segmentation.
//!
//! The frame stays where it is. For each frame that the destination gets there is a [`Piece`]: a net header, the first bytes with all
//! that changed, and the range of the original that follows them and is copied by the caller:
//!
//! ```text
//! original   | Ethernet | IP | TCP |  payload .................................. |
//! piece 0    | head: Ethernet tag IP TCP | rest: payload[0..1448]               |
//! piece 1    | head: Ethernet tag IP TCP | rest: payload[1448..2896]            |   ...
//! ```
//!
//! If a piece [wants a sum](Piece::wants_sum), the caller sums what it copied, then [fills](Piece::fill) the checksum in, then copies the
//! head. So bytes that the sender changes meanwhile can spoil the checksum of its own frame, and nothing else.
//!
//! The head is of the private copy: what was judged is what arrives.

use std::ops::Range;

use crate::address::Tag;
use crate::checksum::Sum;
use crate::offload::{Gso, NetHeader, Offload, Offloads, Partial, plain};
use crate::packet::protocol;
use crate::reason::Reason;
use crate::view::{HEAD_BYTES, View, be16};

/// What happens to the outermost tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagEdit {
    /// Nothing.
    Keep,
    /// It is taken away.
    Strip,
    /// One is put before what is there.
    Insert(Tag),
    /// It becomes another.
    Replace(Tag),
}

impl TagEdit {
    /// Bytes that the frame grows by.
    fn growth(self) -> isize {
        match self {
            TagEdit::Keep | TagEdit::Replace(_) => 0,
            TagEdit::Strip => -4,
            TagEdit::Insert(_) => 4,
        }
    }
}

/// What a destination can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Takes {
    /// What may be left to it.
    pub offloads: Offloads,
    /// Longest packet behind the Ethernet header and its tags, of each segment, in bytes.
    pub mtu: usize,
}

/// Room for a head that is being changed; its contents mean nothing to the caller.
#[derive(Debug, Clone)]
pub struct Scratch([u8; HEAD_BYTES + 4]);

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch([0; HEAD_BYTES + 4])
    }
}

/// The frames that a destination gets for one frame.
#[derive(Debug)]
pub struct Pieces<'a> {
    view: View<'a>,
    scratch: &'a mut Scratch,
    /// Bytes of the head; 0 stands for the view's, unchanged.
    head: usize,
    moved: isize,
    work: Work,
    next: usize,
}

#[derive(Debug, Clone, Copy)]
enum Work {
    Send(NetHeader),
    Fill(Partial),
    /// Cut; with the flag the segments' checksums are left to the receiver.
    Cut(Gso, bool),
    Done,
}

/// One frame for a destination.
#[derive(Debug)]
pub struct Piece<'p> {
    /// The net header. `num_buffers` is 1.
    pub header: NetHeader,
    /// What follows the head, as a range of the original frame.
    pub rest: Range<usize>,
    head: Head<'p>,
    fill: Option<Fill>,
}

#[derive(Debug)]
enum Head<'p> {
    AsIs(&'p [u8]),
    Changed(&'p mut [u8]),
}

#[derive(Debug, Clone, Copy)]
struct Fill {
    sum: Sum,
    field: usize,
    udp: bool,
}

/// The net header of a frame that its destination gets as it is, if it does.
#[inline]
pub(crate) fn as_it_came(
    view: &View<'_>,
    offload: &Offload,
    edit: TagEdit,
    takes: Takes,
) -> Option<NetHeader> {
    let Offload::None { valid } = *offload else { return None };
    let fits = matches!(edit, TagEdit::Keep) && view.len() - view.l3() <= takes.mtu;
    fits.then(|| plain(valid && takes.offloads.consistent().has(Offloads::CSUM)))
}

/// Makes a frame into what its destination can take.
pub fn adapt<'a>(
    view: View<'a>,
    offload: Offload,
    edit: TagEdit,
    takes: Takes,
    scratch: &'a mut Scratch,
) -> Result<Pieces<'a>, Reason> {
    let can = takes.offloads.consistent();
    let work = match offload {
        Offload::None { valid } => Work::Send(plain(valid && can.has(Offloads::CSUM))),
        Offload::Checksum(partial) if can.has(Offloads::CSUM) => {
            Work::Send(partial.header(edit.growth()))
        }
        Offload::Checksum(partial) => Work::Fill(partial),
        Offload::Segment(gso) if can.has(gso.needs()) => Work::Send(gso.header(edit.growth())),
        Offload::Segment(gso) => Work::Cut(gso, can.has(Offloads::CSUM)),
    };
    let longest = match offload {
        Offload::Segment(gso) => view.len().min(gso.payload() + gso.size()),
        _ => view.len(),
    };
    if longest - view.l3() > takes.mtu {
        return Err(Reason::MtuExceeded);
    }
    let next = if let Offload::Segment(gso) = offload { gso.payload() } else { 0 };
    let mut pieces = Pieces { view, scratch, head: 0, moved: edit.growth(), work, next };
    let as_is = edit == TagEdit::Keep && matches!(work, Work::Send(_));
    if !as_is || matches!(offload, Offload::Segment(_)) {
        pieces.head = pieces.lay_out(edit, offload);
    }
    if let (Offload::Segment(gso), Work::Send(_)) = (offload, work) {
        pieces.lengths(&gso, view.len() - gso.payload(), 0);
        pieces.pseudo(&gso, view.len() - gso.payload());
    }
    Ok(pieces)
}

impl<'a> Pieces<'a> {
    /// The next frame, until there is no more.
    #[expect(clippy::should_implement_trait, reason = "each piece is in the same scratch")]
    pub fn next(&mut self) -> Option<Piece<'_>> {
        let work = self.work;
        match work {
            Work::Done => None,
            Work::Send(header) => {
                self.work = Work::Done;
                Some(self.piece(header, self.view.head().len()..self.view.len(), None))
            }
            Work::Fill(partial) => {
                self.work = Work::Done;
                let place = |at: usize| at.wrapping_add_signed(self.moved);
                let mut sum = Sum::default();
                sum.add(&self.scratch.0[place(partial.start())..self.head]);
                let fill = Fill { sum, field: place(partial.field()), udp: partial.udp };
                let rest = self.view.head().len()..self.view.len();
                Some(self.piece(plain(false), rest, Some(fill)))
            }
            Work::Cut(gso, leave) => Some(self.segment(&gso, leave)),
        }
    }

    /// Leaves so many out, without making them: they have arrived before.
    pub fn skip(&mut self, count: usize) {
        match self.work {
            Work::Cut(gso, _) => {
                let next = self.next.saturating_add(count.saturating_mul(gso.size()));
                self.next = next.min(self.view.len());
                if self.next == self.view.len() {
                    self.work = Work::Done;
                }
            }
            _ if count > 0 => self.work = Work::Done,
            _ => {}
        }
    }

    fn piece(&mut self, header: NetHeader, rest: Range<usize>, fill: Option<Fill>) -> Piece<'_> {
        let head = match self.head {
            0 => Head::AsIs(self.view.head()),
            bytes => Head::Changed(&mut self.scratch.0[..bytes]),
        };
        Piece { header, rest, head, fill }
    }

    /// Copies the head with its tag edited. Of a frame that is cut only the headers are wanted. Returns its length.
    fn lay_out(&mut self, edit: TagEdit, offload: Offload) -> usize {
        let head = match (offload, self.work) {
            (Offload::Segment(gso), Work::Cut(..)) => &self.view.head()[..gso.payload()],
            _ => self.view.head(),
        };
        let out = &mut self.scratch.0;
        let (tag, from) = match edit {
            TagEdit::Keep => (None, 12),
            TagEdit::Strip => (None, 16),
            TagEdit::Insert(tag) => (Some(tag), 12),
            TagEdit::Replace(tag) => (Some(tag), 16),
        };
        let mut at = 12;
        out[..at].copy_from_slice(&head[..at]);
        if let Some(tag) = tag {
            out[at..at + 4].copy_from_slice(&tag.bytes());
            at += 4;
        }
        let rest = &head[from..];
        out[at..at + rest.len()].copy_from_slice(rest);
        at + rest.len()
    }

    /// Writes what is of one segment into the headers: lengths, identification, IPv4 checksum.
    fn lengths(&mut self, gso: &Gso, payload: usize, index: usize) {
        let l3 = self.view.l3().wrapping_add_signed(self.moved);
        let l4 = gso.l4().wrapping_add_signed(self.moved);
        let headers = gso.payload() - gso.l4();
        let out = &mut self.scratch.0;
        if gso.v4 {
            put(out, l3 + 2, l4 - l3 + headers + payload);
            let id = be16(self.view.head(), self.view.l3() + 4).unwrap_or(0);
            put(out, l3 + 4, usize::from(id.wrapping_add(index as u16)));
            put(out, l3 + 10, 0);
            let mut sum = Sum::default();
            sum.add(&out[l3..l4]);
            put(out, l3 + 10, usize::from(sum.checksum(false)));
        } else {
            put(out, l3 + 4, l4 - l3 - 40 + headers + payload);
        }
        if !gso.tcp {
            put(out, l4 + 4, 8 + payload);
        }
    }

    /// Stores the sum of the pseudo header where the checksum belongs (RFC 9293 clause 3.1, RFC 8200 clause 8.1).
    fn pseudo(&mut self, gso: &Gso, payload: usize) {
        let l3 = self.view.l3().wrapping_add_signed(self.moved);
        let l4 = gso.l4().wrapping_add_signed(self.moved);
        let upper = gso.payload() - gso.l4() + payload;
        let out = &mut self.scratch.0;
        let addresses = if gso.v4 { l3 + 12..l3 + 20 } else { l3 + 8..l3 + 40 };
        let mut sum = Sum::default();
        sum.add(&out[addresses]);
        sum.add(&(upper as u32).to_be_bytes());
        sum.add(&[0, if gso.tcp { protocol::TCP } else { protocol::UDP }]);
        put(out, l4 + gso.csum_offset(), usize::from(sum.fold()));
    }

    fn segment(&mut self, gso: &Gso, leave: bool) -> Piece<'_> {
        let (from, to) = (self.next, self.view.len().min(self.next + gso.size()));
        let (first, last) = (from == gso.payload(), to == self.view.len());
        self.next = to;
        if last {
            self.work = Work::Done;
        }
        self.lengths(gso, to - from, (from - gso.payload()) / gso.size());
        let l4 = gso.l4().wrapping_add_signed(self.moved);
        if gso.tcp {
            self.tcp(gso, l4, from, first, last);
        }
        self.pseudo(gso, to - from);
        let partial = Partial::new(gso.l4(), gso.l4() + gso.csum_offset(), !gso.tcp);
        if leave {
            return self.piece(partial.header(self.moved), from..to, None);
        }
        let mut sum = Sum::default();
        sum.add(&self.scratch.0[l4..self.head]);
        let fill = Fill { sum, field: l4 + gso.csum_offset(), udp: partial.udp };
        self.piece(plain(false), from..to, Some(fill))
    }

    /// Sequence number and flags: CWR is the first segment's (RFC 3168 clause 6.1.2), FIN and PSH are the last one's.
    fn tcp(&mut self, gso: &Gso, l4: usize, from: usize, first: bool, last: bool) {
        const FIN: u8 = 1;
        const PSH: u8 = 8;
        const CWR: u8 = 0x80;
        let original = &self.view.head()[gso.l4()..];
        let sequence = u32::from_be_bytes([original[4], original[5], original[6], original[7]]);
        let sequence = sequence.wrapping_add((from - gso.payload()) as u32);
        let mut flags = original[13];
        if !first {
            flags &= !CWR;
        }
        if !last {
            flags &= !(FIN | PSH);
        }
        let out = &mut self.scratch.0[l4..];
        out[4..8].copy_from_slice(&sequence.to_be_bytes());
        out[13] = flags;
    }
}

impl Piece<'_> {
    /// The first bytes of the frame.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        match &self.head {
            Head::AsIs(head) => head,
            Head::Changed(head) => head,
        }
    }

    /// Length of the frame in bytes.
    #[expect(clippy::len_without_is_empty, reason = "no frame is empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.head().len() + self.rest.len()
    }

    /// Whether [`Piece::fill`] must be called.
    #[must_use]
    pub fn wants_sum(&self) -> bool {
        self.fill.is_some()
    }

    /// Fills the checksum in. `rest` hands each part of [`Piece::rest`] as it was copied, in order, to the sum that it is given.
    pub fn fill(&mut self, rest: impl FnOnce(&mut Sum)) {
        let (Some(mut fill), Head::Changed(head)) = (self.fill.take(), &mut self.head) else {
            return;
        };
        rest(&mut fill.sum);
        put(head, fill.field, usize::from(fill.sum.checksum(fill.udp)));
    }
}

fn put(out: &mut [u8], at: usize, value: usize) {
    out[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

#[cfg(test)]
mod tests;
