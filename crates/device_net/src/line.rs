//! What a descriptor of an uplink is: a TAP, or a packet socket of an interface. This alone tells them apart. AF_XDP sockets have no operation for each
//! frame: [`crate::xdp`].
//!
//! Both take a frame behind the net header of virtio, and give one so. A packet socket gives the frame's tag beside it: the place where it belongs is left
//! free when the frame is read, so that nothing is moved.
//!
//! ```text
//!   TAP:     │ net header │ frame ...
//!   packet:  │ envelope │ net header, addresses │ (tag) │ the rest of the frame ...
//! ```

use memory::IoBuf;
use memory::packet::Tag;
use spec::UplinkKind;
use switch::{NetHeader, Reason};
use uring::{FileSlot, Op, message};

/// The driver threw a frame away that it was given (EBUSY), of an AF_XDP socket.
pub(crate) const DROPPED: i32 = -16;
/// Bytes of the header before each frame, as the descriptor was set up.
pub(crate) const HEADER_BYTES: usize = NetHeader::BYTES;
/// Room for what comes beside a frame.
const ENVELOPE_BYTES: usize = 256;
/// The net header and both addresses.
const FIRST_BYTES: usize = HEADER_BYTES + 12;
const TAG_BYTES: usize = 4;

const _: () = assert!(message::ENVELOPE_BYTES <= ENVELOPE_BYTES);

/// What a read of a descriptor without frames says (EAGAIN).
const NOTHING_THERE: i32 = -11;
/// The interface was set down (ENETDOWN): a packet socket says so once, and hears when it is up again.
const DOWN: i32 = -100;
/// A frame that the net header has no words for (EINVAL), of a packet socket: it is gone.
const NO_WORDS: i32 = -22;
/// There is no interface behind it any more (ENXIO, EBADFD): a packet socket's, a TAP's.
const GONE: [i32; 2] = [-6, -77];
/// The kernel has no room for what is to be sent (EAGAIN, ENOBUFS).
const NO_ROOM: [i32; 2] = [-11, -105];

/// A frame that came: its pieces, with the header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came {
    pieces: [IoBuf; 2],
    count: usize,
}

impl Came {
    pub(crate) fn bufs(&self) -> &[IoBuf] {
        &self.pieces[..self.count]
    }

    fn one(piece: IoBuf) -> Came {
        Came { pieces: [piece, IoBuf::EMPTY], count: 1 }
    }
}

/// What a read that brought no frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Without {
    /// There is none now.
    Nothing,
    /// One was lost, and there may be more.
    Lost,
    /// Something is wrong with the interface.
    Failed,
}

/// Reads a frame into a slot, without waiting.
pub(crate) fn read<'a>(
    kind: UplinkKind,
    file: FileSlot,
    slot: IoBuf,
    pieces: &'a mut [IoBuf; 2],
) -> Op<'a> {
    match kind {
        UplinkKind::Tap => {
            pieces[0] = slot;
            Op::Read { file, bufs: &pieces[..1], offset: 0, nowait: true }
        }
        UplinkKind::Packet | UplinkKind::Xdp => {
            let (envelope, frame) = parts(slot);
            let behind = FIRST_BYTES + TAG_BYTES;
            *pieces = [frame.slice(0, FIRST_BYTES), frame.slice(behind, frame.len() - behind)];
            Op::Receive { file, bufs: pieces, envelope }
        }
    }
}

/// A slot for a packet socket: the envelope, and the rest.
fn parts(slot: IoBuf) -> (IoBuf, IoBuf) {
    let rest = slot.slice(ENVELOPE_BYTES, slot.len() - ENVELOPE_BYTES);
    (slot.slice(0, ENVELOPE_BYTES), rest)
}

/// The frame in a slot, as it was on the wire.
pub(crate) fn came(kind: UplinkKind, slot: IoBuf, bytes: usize) -> Result<Came, Reason> {
    if kind == UplinkKind::Tap {
        return Ok(Came::one(slot.slice(0, bytes)));
    }
    let (envelope, frame) = parts(slot);
    let beside = message::beside(envelope);
    if beside.cut {
        return Err(Reason::PktTooBig);
    }
    let Some(rest) = bytes.checked_sub(FIRST_BYTES) else {
        return Ok(Came::one(frame.slice(0, bytes)));
    };
    let Some(Tag { tpid, tci }) = Tag::of(beside.control()) else {
        let pieces = [frame.slice(0, FIRST_BYTES), frame.slice(FIRST_BYTES + TAG_BYTES, rest)];
        return Ok(Came { pieces, count: 2 });
    };
    frame.write(FIRST_BYTES, &[tpid.to_be_bytes(), tci.to_be_bytes()].concat());
    let mut header = [0; HEADER_BYTES];
    frame.read(0, &mut header);
    let mut header = NetHeader::read(&header);
    // Of a frame that is longer now.
    header.csum_start = header.csum_start.wrapping_add(TAG_BYTES as u16);
    frame.write(0, &header.write());
    Ok(Came::one(frame.slice(0, bytes + TAG_BYTES)))
}

/// What a read with this error says.
pub(crate) fn without(kind: UplinkKind, error: i32) -> Without {
    match (kind, error) {
        (_, NOTHING_THERE) | (UplinkKind::Packet, DOWN) => Without::Nothing,
        (UplinkKind::Packet, NO_WORDS) => Without::Lost,
        _ => Without::Failed,
    }
}

/// Why a frame was not sent, by the kernel's error.
pub(crate) fn refused(error: i32) -> Reason {
    if NO_ROOM.contains(&error) { Reason::FullRing } else { Reason::Failure }
}

/// Whether an error of a write says that there will never be an interface again.
pub(crate) fn is_gone(error: i32) -> bool {
    GONE.contains(&error)
}

#[cfg(test)]
mod tests {
    use memory::Lasting;

    use super::*;

    const SLOT_BYTES: usize = 8192;

    /// A slot with what a packet socket gives for a frame: without its tag, and that beside it.
    fn slot(header: NetHeader, frame: &[u8], tag: Option<(u16, u16)>, cut: bool) -> Lasting {
        let memory = Lasting::new(SLOT_BYTES).unwrap();
        let (envelope, room) = parts(memory.buf(0, SLOT_BYTES).unwrap());
        let given = [&header.write()[..], frame].concat();
        let first = given.len().min(FIRST_BYTES);
        room.write(0, &given[..first]);
        room.write(FIRST_BYTES + TAG_BYTES, &given[first..]);
        // A `struct msghdr` of 64 bits, two pieces, and the control message (packet(7)).
        let mut beside = vec![0; 56 + 32];
        beside[40] = 40;
        beside[48] = if cut { 0x20 } else { 0 };
        beside.extend([36, 0, 0, 0, 0, 0, 0, 0]);
        beside.extend(263_i32.to_ne_bytes());
        beside.extend(8_i32.to_ne_bytes());
        beside.extend(if tag.is_some() { 0x51_u32 } else { 1 }.to_ne_bytes());
        beside.extend([0; 12]);
        let (tpid, tci) = tag.unwrap_or_default();
        beside.extend(tci.to_ne_bytes());
        beside.extend(tpid.to_ne_bytes());
        envelope.write(0, &beside);
        memory
    }

    fn bytes(came: &Came) -> Vec<u8> {
        let mut all = Vec::new();
        for piece in came.bufs() {
            let mut bytes = vec![0; piece.len()];
            piece.read(0, &mut bytes);
            all.extend(bytes);
        }
        all
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_frame_of_a_packet_socket_is_as_it_was_on_the_wire() {
        let frame: Vec<u8> = (0..200).collect();
        let header =
            NetHeader { flags: 1, csum_start: 34, csum_offset: 16, ..NetHeader::default() };
        for len in [0, 1, 12, 13, 14, 60, 200] {
            let frame = &frame[..len];
            let memory = slot(header, frame, None, false);
            let slot = memory.buf(0, SLOT_BYTES).unwrap();
            let found = came(UplinkKind::Packet, slot, HEADER_BYTES + len).unwrap();
            assert_eq!(bytes(&found), [&header.write()[..], frame].concat());
        }
        for tpid in [0x8100, 0x88a8] {
            let memory = slot(header, &frame, Some((tpid, 0x6014)), false);
            let slot = memory.buf(0, SLOT_BYTES).unwrap();
            let found = came(UplinkKind::Packet, slot, HEADER_BYTES + frame.len()).unwrap();
            let tag = [tpid.to_be_bytes(), [0x60, 0x14]].concat();
            let moved = NetHeader { csum_start: 38, ..header }.write();
            assert_eq!(bytes(&found), [&moved[..], &frame[..12], &tag, &frame[12..]].concat());
        }
        let memory = slot(header, &frame, None, true);
        let cut = came(UplinkKind::Packet, memory.buf(0, SLOT_BYTES).unwrap(), 212);
        assert_eq!(cut.err(), Some(Reason::PktTooBig));
    }

    #[test]
    fn what_a_read_without_a_frame_says_depends_on_what_it_is() {
        use UplinkKind::{Packet, Tap};
        for (error, tap, packet) in [
            (-11, Without::Nothing, Without::Nothing),
            (-100, Without::Failed, Without::Nothing),
            (-22, Without::Failed, Without::Lost),
            (-77, Without::Failed, Without::Failed),
        ] {
            assert_eq!((without(Tap, error), without(Packet, error)), (tap, packet));
        }
        assert_eq!((refused(-105), refused(-100)), (Reason::FullRing, Reason::Failure));
    }
}
