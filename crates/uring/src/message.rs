//! Messages of sockets, with what comes beside them.

use std::mem::{offset_of, size_of};
use std::ptr;

use memory::IoBuf;

/// Most pieces that a message is received into.
const BUFS_MAX: usize = 2;
/// Room for control messages, in bytes.
const CONTROL_BYTES: usize = 64;

/// What the kernel is given with a message, and writes into.
#[repr(C)]
struct Envelope {
    head: libc::msghdr,
    bufs: [IoBuf; BUFS_MAX],
    control: [u64; CONTROL_BYTES / 8],
}

/// Bytes of an envelope ([`crate::Op::Receive`]).
pub const ENVELOPE_BYTES: usize = size_of::<Envelope>();

/// What came beside a message.
#[derive(Debug, Clone, Copy)]
pub struct Beside {
    /// It was longer than the room for it; the rest is lost.
    pub cut: bool,
    control: [u8; CONTROL_BYTES],
    len: usize,
}

impl Beside {
    /// Control messages.
    #[must_use]
    pub fn control(&self) -> &[u8] {
        &self.control[..self.len]
    }
}

/// Fills an envelope in.
///
/// # Panics
///
/// When it is too short or does not begin at a multiple of 8, or there are more than two pieces.
pub(crate) fn seal(envelope: IoBuf, bufs: &[IoBuf]) -> *mut libc::msghdr {
    let at: *mut Envelope = envelope.as_ptr().cast();
    assert!(envelope.len() >= ENVELOPE_BYTES && at.is_aligned(), "no room for an envelope");
    let mut pieces = [IoBuf::EMPTY; BUFS_MAX];
    pieces[..bufs.len()].copy_from_slice(bufs);
    // SAFETY: a plain structure of numbers and pointers, for which zeroes are values.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    // SAFETY: only addresses are computed, inside the envelope (asserted above).
    let (its, control) = unsafe { (&raw mut (*at).bufs, &raw mut (*at).control) };
    (head.msg_iov, head.msg_iovlen) = (its.cast(), bufs.len() as _);
    (head.msg_control, head.msg_controllen) = (control.cast(), CONTROL_BYTES as _);
    let control = [0; CONTROL_BYTES / 8];
    // SAFETY: the envelope is mapped (IoBuf's constructor), long enough and aligned (asserted above). IoBuf is an iovec (repr(transparent)).
    unsafe { ptr::write(at, Envelope { head, bufs: pieces, control }) };
    at.cast()
}

/// What came beside the message of an envelope, once it was received.
///
/// # Panics
///
/// When it is too short.
#[must_use]
pub fn beside(envelope: IoBuf) -> Beside {
    let mut flags = [0; size_of::<libc::c_int>()];
    envelope.read(offset_of!(libc::msghdr, msg_flags), &mut flags);
    let mut len = [0; size_of::<usize>()];
    envelope.read(offset_of!(libc::msghdr, msg_controllen), &mut len);
    let mut control = [0; CONTROL_BYTES];
    envelope.read(offset_of!(Envelope, control), &mut control);
    let cut = libc::c_int::from_ne_bytes(flags) & libc::MSG_TRUNC != 0;
    Beside { cut, control, len: usize::from_ne_bytes(len).min(CONTROL_BYTES) }
}
