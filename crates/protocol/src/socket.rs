//! Frames on a Unix stream socket: a length (u32, little-endian), then that many bytes of CBOR. Descriptors travel with
//! the first byte of the frame that they belong to.
//!
//! A message that is longer than a frame goes in several: all but the last have the highest bit of their length set. They are sent
//! to a peer that has said that it knows them ([`crate::message::MINOR`]), and understood from everyone.
//!
//! Blocking; a connection is used by one thread at a time on each side.

use std::io::{IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest frame that is accepted, in bytes.
pub const FRAME_BYTES_MAX: u32 = 16 << 20;
/// Longest message that is accepted, in bytes: an account of ten thousand adapters with a thousand LUNs each.
pub const MESSAGE_BYTES_MAX: u32 = 512 << 20;
/// In the length of a frame: the message goes on in the next one.
const MORE: u32 = 1 << 31;
/// Most descriptors in one frame: those of an interface with as many queues as [`memory::xdp::QUEUES_MAX`].
pub const FDS_MAX: usize = 2 + 2 * memory::xdp::QUEUES_MAX as usize;

/// Why a frame could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer closed the connection between two frames.
    #[error("the other side closed the connection")]
    Closed,
    /// The socket failed, or the peer closed it within a frame.
    #[error("socket: {0}")]
    Io(#[from] std::io::Error),
    /// A message, or a frame of one, that is longer than it may be. Of one that was to be sent, nothing was.
    #[error("a message of {bytes} bytes is longer than the limit of {limit}")]
    TooLong {
        /// Its length.
        bytes: u64,
        /// How long it may be: [`FRAME_BYTES_MAX`] or [`MESSAGE_BYTES_MAX`].
        limit: u32,
    },
    /// The bytes are no such message.
    #[error("message not understood: {0}")]
    Malformed(String),
}

/// A connection between the two processes.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    /// Whether the peer understands messages of several frames.
    parts: bool,
}

impl Connection {
    /// Uses a connected stream.
    #[must_use]
    pub fn new(stream: UnixStream) -> Connection {
        Connection { stream, parts: false }
    }

    /// The peer has said that it understands messages of several frames.
    pub fn allow_parts(&mut self) {
        self.parts = true;
    }

    /// The longest message that can be sent, in bytes.
    #[must_use]
    pub fn message_bytes_max(&self) -> u32 {
        if self.parts { MESSAGE_BYTES_MAX } else { FRAME_BYTES_MAX }
    }

    /// The stream, to set timeouts or to shut it down from another thread.
    #[must_use]
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Sends a message and the descriptors that belong to it.
    ///
    /// # Errors
    ///
    /// When the socket fails or the message is too long.
    pub fn send<M: Serialize>(
        &mut self,
        message: &M,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), FrameError> {
        assert!(fds.len() <= FDS_MAX);
        let mut frame = encode(message, self.message_bytes_max())?;
        let length = frame.len() - 4;
        let first = length.min(FRAME_BYTES_MAX as usize);
        frame[..4].copy_from_slice(&header(first, first < length));
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            let fits = ancillary.push(SendAncillaryMessage::ScmRights(fds));
            assert!(fits, "the buffer has room for FDS_MAX descriptors");
        }
        let sent = loop {
            match rustix::net::sendmsg(
                self.stream.as_fd(),
                &[IoSlice::new(&frame[..4 + first])],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            ) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result.map_err(std::io::Error::from)?,
            }
        };
        send_rest(&self.stream, &frame[sent..4 + first])?;
        let mut rest = &frame[4 + first..];
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.len().min(FRAME_BYTES_MAX as usize));
            send_rest(&self.stream, &header(part.len(), !after.is_empty()))?;
            send_rest(&self.stream, part)?;
            rest = after;
        }
        Ok(())
    }

    /// Receives a message and its descriptors; blocks until it is whole.
    ///
    /// # Errors
    ///
    /// When the socket fails, the peer goes away, or sends what is no such message.
    pub fn receive<M: DeserializeOwned>(&mut self) -> Result<(M, Vec<OwnedFd>), FrameError> {
        let mut length = [0; 4];
        let (first, fds) = self.receive_with_fds(&mut length)?;
        if first == 0 {
            return Err(FrameError::Closed);
        }
        self.stream.read_exact(&mut length[first..])?;
        let mut bytes = Vec::new();
        while self.receive_part(u32::from_le_bytes(length), &mut bytes)? {
            self.stream.read_exact(&mut length)?;
        }
        Ok((decode(&bytes)?, fds))
    }

    /// One frame of a message; whether another follows.
    fn receive_part(&self, header: u32, bytes: &mut Vec<u8>) -> Result<bool, FrameError> {
        let length = header & !MORE;
        if length > FRAME_BYTES_MAX {
            return Err(FrameError::TooLong { bytes: length.into(), limit: FRAME_BYTES_MAX });
        }
        let whole = bytes.len() as u64 + u64::from(length);
        if whole > u64::from(MESSAGE_BYTES_MAX) {
            return Err(FrameError::TooLong { bytes: whole, limit: MESSAGE_BYTES_MAX });
        }
        (&self.stream).take(u64::from(length)).read_to_end(bytes)?;
        if bytes.len() as u64 != whole {
            return Err(FrameError::Io(std::io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(header & MORE != 0)
    }

    fn receive_with_fds(&self, bytes: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), FrameError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            match rustix::net::recvmsg(
                self.stream.as_fd(),
                &mut [IoSliceMut::new(bytes)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            ) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result.map_err(std::io::Error::from)?,
            }
        };
        let mut fds = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = message {
                fds.extend(passed);
            }
        }
        Ok((received.bytes, fds))
    }
}

fn send_rest(mut stream: &UnixStream, bytes: &[u8]) -> Result<(), FrameError> {
    use std::io::Write;
    Ok(stream.write_all(bytes)?)
}

/// The length of a frame as it stands before it. Frames are shorter than the bit that says whether another follows.
fn header(length: usize, more: bool) -> [u8; 4] {
    let length = u32::try_from(length).expect("a part is no longer than a frame");
    (length | if more { MORE } else { 0 }).to_le_bytes()
}

/// A message, after room for the length of a frame.
///
/// # Errors
///
/// When it is longer than `limit` bytes.
pub fn encode<M: Serialize>(message: &M, limit: u32) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; 4];
    ciborium::into_writer(message, &mut frame)
        .map_err(|error| FrameError::Malformed(error.to_string()))?;
    let bytes = frame.len() as u64 - 4;
    if bytes > u64::from(limit) {
        return Err(FrameError::TooLong { bytes, limit });
    }
    Ok(frame)
}

/// How many bytes a message has.
///
/// # Errors
///
/// When it cannot be written down.
pub fn size<M: Serialize>(message: &M) -> Result<u64, FrameError> {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    ciborium::into_writer(message, &mut count)
        .map_err(|error| FrameError::Malformed(error.to_string()))?;
    Ok(count.0)
}

/// The message in a frame's bytes (without the length).
///
/// # Errors
///
/// When they are no such message.
pub fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<M, FrameError> {
    // CBOR may nest; the limit keeps a hostile peer from exhausting the stack.
    ciborium::de::from_reader_with_recursion_limit(bytes, 32)
        .map_err(|error| FrameError::Malformed(error.to_string()))
}

#[cfg(test)]
mod tests;
