//! A client that says its vhost-user messages in bytes, through a socket, and the session that hears them.

use std::fs::File;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use vhost::vhost_user::BackendReqHandler;
use vhost::vhost_user::message::FrontendReq;
use vring::{InflightRegion, RegionSpec};

use super::Ring;
use crate::adapter::Shared;
use crate::session::Session;

/// Bytes of a message's header.
const HEADER: usize = 12;
/// Version 1, and an answer is wanted.
const FLAGS: u32 = 1 | 1 << 3;
/// Of the protocol: MQ, REPLY_ACK, CONFIG, INFLIGHT_SHMFD.
const PROTOCOL: u64 = 1 << 0 | 1 << 3 | 1 << 9 | 1 << 12;
/// Descriptors with a message: a memory table's.
const FDS_MAX: usize = 8;

/// Both ends of a connection.
pub(super) struct Wire {
    client: UnixStream,
    watched: UnixStream,
    session: Arc<Session>,
    handler: BackendReqHandler<Session>,
}

impl Wire {
    pub(super) fn new(shared: &Arc<Shared>) -> Wire {
        let (client, server) = UnixStream::pair().expect("a socket");
        let watched = server.try_clone().expect("a descriptor");
        let session = Arc::new(Session::new(Arc::clone(shared)));
        let handler = BackendReqHandler::from_stream(server, Arc::clone(&session));
        Wire { client, watched, session, handler }
    }

    /// Says one thing, and has it heard. What comes back; nothing before answers were agreed on.
    fn say(
        &mut self,
        shared: &Shared,
        request: FrontendReq,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<Option<u64>, String> {
        let mut message = Vec::with_capacity(HEADER + payload.len());
        let len = u32::try_from(payload.len()).expect("short");
        for word in [request as u32, FLAGS, len] {
            message.extend(word.to_le_bytes());
        }
        message.extend(payload);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(fds.is_empty() || ancillary.push(SendAncillaryMessage::ScmRights(fds)));
        let bytes = [IoSlice::new(&message)];
        let sent = rustix::net::sendmsg(&self.client, &bytes, &mut ancillary, SendFlags::empty());
        assert_eq!(sent, Ok(message.len()));
        shared
            .hear(&self.session, &mut self.handler, self.watched.as_fd())
            .map_err(|error| format!("{request:?} is refused: {error}"))?;
        self.answer().map_err(|error| format!("{request:?} is answered badly: {error}"))
    }

    /// An answer of a header and eight bytes, if there is one.
    fn answer(&mut self) -> std::io::Result<Option<u64>> {
        let mut bytes = [0; HEADER + 8];
        match rustix::net::recv(&self.client, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((_, len)) if len == bytes.len() => {}
            Ok(_) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Err(Errno::AGAIN) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let (_, word) = bytes.split_last_chunk().expect("longer");
        Ok(Some(u64::from_le_bytes(*word)))
    }

    /// Says something that is answered with 0 when it was done.
    fn tell(
        &mut self,
        shared: &Shared,
        request: FrontendReq,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), String> {
        match self.say(shared, request, payload, fds)? {
            Some(0) => Ok(()),
            other => Err(format!("{request:?} is answered with {other:?}")),
        }
    }

    fn word(&mut self, shared: &Shared, request: FrontendReq, word: u64) -> Result<(), String> {
        self.tell(shared, request, &word.to_le_bytes(), &[])
    }

    /// Two words about a ring.
    fn ring(
        &mut self,
        shared: &Shared,
        request: FrontendReq,
        number: u16,
        word: u32,
    ) -> Result<(), String> {
        let payload = [u32::from(number).to_le_bytes(), word.to_le_bytes()].concat();
        self.tell(shared, request, &payload, &[])
    }

    /// What QEMU says before it speaks of memory.
    pub(super) fn greet(&mut self, shared: &Shared, features: u64) -> Result<(), String> {
        let offered = self.say(shared, FrontendReq::GET_FEATURES, &[], &[])?;
        let offered = offered.ok_or("no features are offered")?;
        if features & !offered != 0 {
            return Err(format!("{:#x} is not offered", features & !offered));
        }
        let known = self.say(shared, FrontendReq::GET_PROTOCOL_FEATURES, &[], &[])?;
        if known.is_none_or(|known| PROTOCOL & !known != 0) {
            return Err(format!("of the protocol {known:x?} is offered"));
        }
        let payload = PROTOCOL.to_le_bytes();
        self.say(shared, FrontendReq::SET_PROTOCOL_FEATURES, &payload, &[])?;
        self.tell(shared, FrontendReq::SET_OWNER, &[], &[])?;
        self.word(shared, FrontendReq::SET_FEATURES, features)
    }

    pub(super) fn set_memory(
        &mut self,
        shared: &Shared,
        regions: &[RegionSpec],
    ) -> Result<(), String> {
        let mut payload = (regions.len() as u64).to_le_bytes().to_vec();
        for RegionSpec { guest, user, size, offset, .. } in regions {
            for word in [guest.0, *size, user.0, *offset] {
                payload.extend(word.to_le_bytes());
            }
        }
        let fds: Vec<_> = regions.iter().map(|region| region.file.as_fd()).collect();
        self.tell(shared, FrontendReq::SET_MEM_TABLE, &payload, &fds)
    }

    pub(super) fn set_inflight(
        &mut self,
        shared: &Shared,
        file: &File,
        (count, size): (u16, u16),
    ) -> Result<(), String> {
        let mut payload = InflightRegion::bytes(count, size).to_le_bytes().to_vec();
        payload.extend([0; 8]);
        payload.extend([count.to_le_bytes(), size.to_le_bytes(), [0; 2], [0; 2]].concat());
        self.tell(shared, FrontendReq::SET_INFLIGHT_FD, &payload, &[file.as_fd()])
    }

    pub(super) fn set_ring(&mut self, shared: &Shared, ring: &Ring) -> Result<(), String> {
        let Ring { number, size, addresses, base, kick, call } = ring;
        self.ring(shared, FrontendReq::SET_VRING_NUM, *number, u32::from(*size))?;
        self.ring(shared, FrontendReq::SET_VRING_BASE, *number, u32::from(*base))?;
        // Without logging.
        let mut payload = [u32::from(*number).to_le_bytes(), [0; 4]].concat();
        for word in [addresses.desc.0, addresses.used.0, addresses.avail.0, addresses.used_guest.0]
        {
            payload.extend(word.to_le_bytes());
        }
        self.tell(shared, FrontendReq::SET_VRING_ADDR, &payload, &[])?;
        let number = u64::from(*number).to_le_bytes();
        self.tell(shared, FrontendReq::SET_VRING_CALL, &number, &[call.as_fd()])?;
        self.tell(shared, FrontendReq::SET_VRING_KICK, &number, &[kick.as_fd()])
    }

    pub(super) fn enable(
        &mut self,
        shared: &Shared,
        number: u16,
        enabled: bool,
    ) -> Result<(), String> {
        self.ring(shared, FrontendReq::SET_VRING_ENABLE, number, u32::from(enabled))
    }
}
