//! Frames on a Unix stream socket: a length (u32, little-endian), then that many bytes of CBOR. Descriptors travel with
//! the first byte of the frame that they belong to.
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

/// Longest frame that is accepted: a status with a few thousand adapters fits several times.
pub const FRAME_BYTES_MAX: u32 = 16 << 20;
/// Most descriptors in one frame.
pub const FDS_MAX: usize = 4;

/// Why a frame could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer closed the connection between two frames.
    #[error("the other side closed the connection")]
    Closed,
    /// The socket failed, or the peer closed it within a frame.
    #[error("socket: {0}")]
    Io(#[from] std::io::Error),
    /// A frame longer than [`FRAME_BYTES_MAX`].
    #[error("a frame of {0} bytes is longer than the limit of {FRAME_BYTES_MAX}")]
    TooLong(u64),
    /// The bytes are no such message.
    #[error("message not understood: {0}")]
    Malformed(String),
}

/// A connection between the two processes.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Uses a connected stream.
    #[must_use]
    pub fn new(stream: UnixStream) -> Connection {
        Connection { stream }
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
        let frame = encode(message)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            let fits = ancillary.push(SendAncillaryMessage::ScmRights(fds));
            assert!(fits, "the buffer has room for FDS_MAX descriptors");
        }
        let sent = loop {
            match rustix::net::sendmsg(
                self.stream.as_fd(),
                &[IoSlice::new(&frame)],
                &mut ancillary,
                SendFlags::NOSIGNAL,
            ) {
                Err(rustix::io::Errno::INTR) => {}
                result => break result.map_err(std::io::Error::from)?,
            }
        };
        send_rest(&self.stream, &frame[sent..])
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
        let length = u32::from_le_bytes(length);
        if length > FRAME_BYTES_MAX {
            return Err(FrameError::TooLong(u64::from(length)));
        }
        let mut bytes = Vec::new();
        (&self.stream).take(u64::from(length)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != u64::from(length) {
            return Err(FrameError::Io(std::io::ErrorKind::UnexpectedEof.into()));
        }
        Ok((decode(&bytes)?, fds))
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

/// A message as a frame.
///
/// # Errors
///
/// When it is longer than [`FRAME_BYTES_MAX`].
pub fn encode<M: Serialize>(message: &M) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; 4];
    ciborium::into_writer(message, &mut frame)
        .map_err(|error| FrameError::Malformed(error.to_string()))?;
    let length = frame.len() - 4;
    match u32::try_from(length) {
        Ok(short) if short <= FRAME_BYTES_MAX => frame[..4].copy_from_slice(&short.to_le_bytes()),
        _ => return Err(FrameError::TooLong(length as u64)),
    }
    Ok(frame)
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
