//! A frame as the switch sees it: a private copy of its first bytes, and its length.

use crate::address::{CUSTOMER_TPID, Mac, SERVICE_TPID, Tag};
use crate::reason::Reason;

/// How many of a frame's first bytes are judged. Headers that go further are not understood.
pub const HEAD_BYTES: usize = 256;
/// Ethernet header without tags.
pub const ETHERNET_BYTES: usize = 14;
/// The longest frame: an IP packet of 65,535 bytes with its IPv6 header, behind tags.
pub const FRAME_BYTES_MAX: usize = ETHERNET_BYTES + 4 * TAGS_MAX + 40 + 65535;
/// So many tags are looked behind.
const TAGS_MAX: usize = 4;

/// A frame's first bytes, copied from where their sender can still write, and how long the frame is.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    head: &'a [u8],
    len: usize,
    l3: usize,
    ethertype: u16,
}

impl<'a> View<'a> {
    /// Looks at a frame of `len` bytes. `head` should hold its first [`HEAD_BYTES`], or all if it is shorter; with less,
    /// less is understood, and what is longer is not looked at.
    #[inline]
    pub fn new(head: &'a [u8], len: usize) -> Result<View<'a>, Reason> {
        let head = &head[..head.len().min(HEAD_BYTES).min(len)];
        if head.len() < ETHERNET_BYTES {
            return Err(Reason::PktTooSmall);
        }
        if len > FRAME_BYTES_MAX {
            return Err(Reason::PktTooBig);
        }
        let mut l3 = ETHERNET_BYTES;
        let mut ethertype = u16::from_be_bytes([head[12], head[13]]);
        while is_tpid(ethertype) && l3 < ETHERNET_BYTES + 4 * TAGS_MAX {
            ethertype = be16(head, l3 + 2).ok_or(Reason::PktTooSmall)?;
            l3 += 4;
        }
        Ok(View { head, len, l3, ethertype })
    }

    /// The bytes that are known.
    #[inline]
    #[must_use]
    pub fn head(&self) -> &'a [u8] {
        self.head
    }

    /// Length of the frame in bytes, without FCS.
    #[expect(clippy::len_without_is_empty, reason = "no frame is empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Where it goes.
    #[inline]
    #[must_use]
    pub fn destination(&self) -> Mac {
        Mac(*self.head.first_chunk().expect("as long as an Ethernet header"))
    }

    /// Where it says that it comes from.
    #[inline]
    #[must_use]
    pub fn source(&self) -> Mac {
        Mac(*self.head[6..].first_chunk().expect("as long as an Ethernet header"))
    }

    /// The first bytes: both addresses, and the type or the beginning of a tag.
    #[inline]
    pub(crate) fn ethernet(&self) -> [u8; ETHERNET_BYTES] {
        *self.head.first_chunk().expect("as long as an Ethernet header")
    }

    /// The outermost tag.
    #[inline]
    #[must_use]
    pub fn tag(&self) -> Option<Tag> {
        let tpid = be16(self.head, 12).filter(|tpid| is_tpid(*tpid))?;
        Some(Tag { tpid, tci: be16(self.head, 14)? })
    }

    /// The type behind all tags; below 1536 it is a length, and an LLC header follows (802.3 clause 3.2.6).
    #[must_use]
    pub fn ethertype(&self) -> u16 {
        self.ethertype
    }

    /// Destination and source service access points, if the frame has an LLC header.
    #[must_use]
    pub fn llc(&self) -> Option<[u8; 2]> {
        let length = usize::from(self.ethertype);
        let fits = self.ethertype < 1536 && length >= 3 && self.l3 + length <= self.len;
        fits.then(|| self.head.get(self.l3..self.l3 + 2)?.try_into().ok())?
    }

    /// Where the Ethernet header with all its tags ends.
    #[must_use]
    pub fn l3(&self) -> usize {
        self.l3
    }
}

fn is_tpid(ethertype: u16) -> bool {
    ethertype == CUSTOMER_TPID || ethertype == SERVICE_TPID
}

/// The big-endian number at that place, if the bytes go so far.
#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|two| u16::from_be_bytes(*two))
}
