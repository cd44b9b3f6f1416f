//! vhost-user messages of one client: what the `vhost` crate hands over, checked and passed on to [`Queues`].
//!
//! The crate parses messages, receives descriptors and acknowledges. It knows no way to send
//! VHOST_USER_BACKEND_CONFIG_CHANGE_MSG, so [`backend_channel`] looks at a message before the crate does and keeps a copy of the
//! descriptor that SET_BACKEND_REQ_FD brings; [`enable_ahead`] takes a SET_VRING_ENABLE for which the crate thinks it too early, and
//! [`card_message`] NET_SET_MTU and SEND_RARP, which the crate knows and refuses.
//!
//! A request that cannot be carried out is answered with an error where the client asked for an answer, and ends the session
//! otherwise; the reason stays with the adapter.

use std::fs::File;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, MutexGuard};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserProtocolFeatures as Protocol,
    VhostUserShMemConfig, VhostUserSharedMsg, VhostUserSingleMemoryRegion, VhostUserVringAddrFlags,
    VhostUserVringState,
};
use vhost::vhost_user::{Error, GpuBackend, Result, VhostUserBackendReqHandler};
use vring::{GuestAddr, InflightRegion, RegionSpec, UserAddr};

use crate::adapter::Shared;
use crate::queues::{Queues, RingAddress, feature, open_log};
use channel::device::Written;

/// Most memory regions: what QEMU asks for at most, and far below the limit of mappings.
const MEM_SLOTS: u64 = 509;
/// Bytes of configuration space that may be asked for; what lies beyond the fields reads as zero.
const CONFIG_BYTES_MAX: u32 = 256;

/// One client's session.
pub(crate) struct Session {
    shared: Arc<Shared>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Session {
        // What the client before acknowledged says nothing of this one.
        shared.set_protocol_features(0);
        Session { shared }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.shared.queues()
    }

    /// The queues, if there is one of this number.
    fn with_index(&self, index: u32) -> Result<(MutexGuard<'_, Queues>, usize)> {
        let mut queues = self.queues();
        let index = index as usize;
        if index >= queues.count() {
            return Err(Error::InvalidParam);
        }
        queues.name(index);
        Ok((queues, index))
    }

    /// Commands in flight are recorded there from now on.
    fn keep(&self, region: InflightRegion) {
        let mut queues = self.queues();
        queues.set_inflight(region);
        self.shared.update(&queues);
    }

    /// Remembers why a message failed, for the adapter's state.
    fn refuse(&self, what: String) -> Error {
        self.shared.note(what);
        Error::InvalidParam
    }

    /// A descriptor that a channel polls or writes to. Only an eventfd never makes it wait: a file on FUSE could, for as long as
    /// its server likes.
    fn eventfd(&self, file: File) -> Result<OwnedFd> {
        let fd = OwnedFd::from(file);
        let link = rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new());
        if !link.is_ok_and(|link| link.to_bytes() == b"anon_inode:[eventfd]") {
            return Err(self.refuse("kick, call and error descriptors must be eventfds".into()));
        }
        rustix::fs::fcntl_setfl(&fd, rustix::fs::OFlags::NONBLOCK)
            .map_err(|_| Error::InvalidParam)?;
        Ok(fd)
    }

    /// Memory that a channel touches: where a page fault could wait for somebody else, all clients of the channel would wait with it.
    fn memory_file(&self, file: File) -> Result<File> {
        const TMPFS: u64 = 0x0102_1994;
        const HUGETLBFS: u64 = 0x9584_58f6;
        let kind = rustix::fs::fstatfs(&file).map_err(|_| Error::InvalidParam)?.f_type as u64;
        if !matches!(kind & 0xffff_ffff, TMPFS | HUGETLBFS) {
            let what = "shared memory must be a memfd, or a file in a tmpfs or hugetlbfs; for a guest's use memory-backend-memfd,share=on";
            return Err(self.refuse(what.into()));
        }
        Ok(file)
    }
}

fn region(region: &VhostUserMemoryRegion, file: File) -> RegionSpec {
    RegionSpec {
        guest: GuestAddr(region.guest_phys_addr),
        user: UserAddr(region.user_addr),
        size: region.memory_size,
        offset: region.mmap_offset,
        file,
    }
}

impl VhostUserBackendReqHandler for Session {
    fn set_owner(&self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&self) -> Result<()> {
        self.reset_device()
    }

    fn reset_device(&self) -> Result<()> {
        self.queues().reset();
        self.shared.device.reset();
        self.shared.mended();
        Ok(())
    }

    fn get_features(&self) -> Result<u64> {
        Ok(self.shared.features())
    }

    fn set_features(&self, features: u64) -> Result<()> {
        let unknown = features & !self.shared.features();
        if unknown != 0 {
            return Err(
                self.refuse(format!("the client set features that were not offered: {unknown:#x}"))
            );
        }
        // The device hears first, so that its queues start with what was negotiated. A client that begins to log says its features
        // again; what its driver set since then stays.
        let mut queues = self.queues();
        if (queues.features() ^ features) & !feature::LOG_ALL != 0 {
            self.shared.device.negotiated(features);
        }
        queues.set_features(features);
        Ok(())
    }

    fn set_mem_table(
        &self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _: Option<bool>,
    ) -> Result<Option<Vec<u64>>> {
        let spec = |(spec, file)| Ok(region(spec, self.memory_file(file)?));
        let specs = regions.iter().zip(files).map(spec).collect::<Result<_>>()?;
        self.queues().set_memory(specs).map_err(|what| self.refuse(what))?;
        Ok(None)
    }

    fn set_vring_num(&self, index: u32, size: u32) -> Result<()> {
        let (mut queues, index) = self.with_index(index)?;
        let max = self.shared.queue_size_max();
        match u16::try_from(size) {
            Ok(size) if size <= max && size.is_power_of_two() => queues.set_size(index, size),
            _ => {
                let what = format!(
                    "the client asked for a queue of {size}; a power of two up to {max} is accepted (queue_size of the adapter)"
                );
                return Err(self.refuse(what));
            }
        }
        Ok(())
    }

    fn set_vring_addr(
        &self,
        index: u32,
        flags: VhostUserVringAddrFlags,
        descriptor: u64,
        used: u64,
        available: u64,
        log: u64,
    ) -> Result<()> {
        let (mut queues, index) = self.with_index(index)?;
        let logged = flags.contains(VhostUserVringAddrFlags::VHOST_VRING_F_LOG);
        let address = RingAddress {
            desc: UserAddr(descriptor),
            used: UserAddr(used),
            avail: UserAddr(available),
            used_log: logged.then_some(GuestAddr(log)),
        };
        queues.set_address(index, address);
        Ok(())
    }

    fn set_vring_base(&self, index: u32, base: u32) -> Result<()> {
        let (mut queues, index) = self.with_index(index)?;
        let base = u16::try_from(base).map_err(|_| Error::InvalidParam)?;
        queues.set_base(index, base);
        Ok(())
    }

    fn get_vring_base(&self, index: u32) -> Result<VhostUserVringState> {
        let (mut queues, at) = self.with_index(index)?;
        let base = queues.stop(at);
        self.shared.update(&queues);
        Ok(VhostUserVringState::new(index, u32::from(base)))
    }

    fn set_vring_kick(&self, index: u8, fd: Option<File>) -> Result<()> {
        let (mut queues, index) = self.with_index(u32::from(index))?;
        let Some(fd) = fd else {
            return Err(self.refuse(
                "a queue without a kick descriptor is not supported; use eventfds".into(),
            ));
        };
        let kick = self.eventfd(fd)?;
        queues.set_kick(index, Some(kick));
        self.shared.update(&queues);
        Ok(())
    }

    fn set_vring_call(&self, index: u8, fd: Option<File>) -> Result<()> {
        let (mut queues, index) = self.with_index(u32::from(index))?;
        let call = fd.map(|fd| self.eventfd(fd)).transpose()?;
        queues.set_call(index, call);
        // The first that QEMU says of any of them, before its driver begins.
        self.shared.update(&queues);
        Ok(())
    }

    fn set_vring_err(&self, index: u8, fd: Option<File>) -> Result<()> {
        let (mut queues, index) = self.with_index(u32::from(index))?;
        let error = fd.map(|fd| self.eventfd(fd)).transpose()?;
        queues.set_error(index, error);
        Ok(())
    }

    fn get_protocol_features(&self) -> Result<Protocol> {
        Ok(self.shared.protocol_features())
    }

    fn set_protocol_features(&self, features: u64) -> Result<()> {
        let offered = self.shared.protocol_features() | Protocol::REPLY_ACK;
        let unknown = features & !offered.bits();
        if unknown != 0 {
            let what =
                format!("the client set protocol features that were not offered: {unknown:#x}");
            return Err(self.refuse(what));
        }
        self.shared.set_protocol_features(features);
        Ok(())
    }

    fn get_queue_num(&self) -> Result<u64> {
        Ok(self.queues().count() as u64)
    }

    fn set_vring_enable(&self, index: u32, enable: bool) -> Result<()> {
        let (mut queues, index) = self.with_index(index)?;
        queues.set_enabled(index, enable);
        self.shared.update(&queues);
        Ok(())
    }

    fn get_config(&self, offset: u32, size: u32, _: VhostUserConfigFlags) -> Result<Vec<u8>> {
        let end = offset
            .checked_add(size)
            .filter(|end| *end <= CONFIG_BYTES_MAX)
            .ok_or(Error::InvalidParam)?;
        let mut space = self.shared.config_space();
        space.resize(CONFIG_BYTES_MAX as usize, 0);
        Ok(space[offset as usize..end as usize].to_vec())
    }

    fn set_config(&self, offset: u32, bytes: &[u8], _: VhostUserConfigFlags) -> Result<()> {
        let mut queues = self.queues();
        match self.shared.device.set_config(offset as usize, bytes, queues.features()) {
            Written::Now => Ok(()),
            Written::WithNewQueues => {
                queues.restart();
                Ok(())
            }
            Written::No => Err(self.refuse(format!(
                "the client wrote {} bytes at {offset} of the configuration space",
                bytes.len()
            ))),
        }
    }

    fn set_gpu_socket(&self, _: GpuBackend) -> Result<()> {
        Err(Error::InvalidMessage)
    }

    fn get_shared_object(&self, _: VhostUserSharedMsg) -> Result<File> {
        Err(Error::InvalidMessage)
    }

    fn get_inflight_fd(&self, wanted: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        let (count, size) = (wanted.num_queues, wanted.queue_size);
        let (file, region) =
            InflightRegion::create(count, size).map_err(|error| self.refuse(error.to_string()))?;
        let bytes = InflightRegion::bytes(count, size);
        self.keep(region);
        Ok((VhostUserInflight::new(bytes, 0, count, size), file))
    }

    fn set_inflight_fd(&self, kept: &VhostUserInflight, file: File) -> Result<()> {
        let file = self.memory_file(file)?;
        let (offset, len) = (kept.mmap_offset, kept.mmap_size);
        let region = InflightRegion::open(&file, offset, len, kept.num_queues, kept.queue_size)
            .map_err(|error| self.refuse(error.to_string()))?;
        self.keep(region);
        Ok(())
    }

    fn get_max_mem_slots(&self) -> Result<u64> {
        Ok(MEM_SLOTS)
    }

    fn add_mem_region(
        &self,
        added: &VhostUserSingleMemoryRegion,
        file: File,
        _: Option<bool>,
    ) -> Result<Option<u64>> {
        let mut queues = self.queues();
        if queues.regions() as u64 >= MEM_SLOTS {
            return Err(
                self.refuse(format!("the client added more than {MEM_SLOTS} memory regions"))
            );
        }
        let spec = region(added, self.memory_file(file)?);
        queues.add_region(spec).map_err(|what| self.refuse(what))?;
        Ok(None)
    }

    fn remove_mem_region(&self, gone: &VhostUserSingleMemoryRegion) -> Result<()> {
        let (guest, user) = (GuestAddr(gone.guest_phys_addr), UserAddr(gone.user_addr));
        let size = gone.memory_size;
        let removed = self.queues().remove_region(guest, user, size);
        removed.map_err(|what| self.refuse(what))
    }

    fn set_device_state_fd(
        &self,
        _: VhostTransferStateDirection,
        _: VhostTransferStatePhase,
        _: File,
    ) -> Result<Option<File>> {
        Err(Error::InvalidMessage)
    }

    fn check_device_state(&self) -> Result<()> {
        Err(Error::InvalidMessage)
    }

    fn get_shmem_config(&self) -> Result<VhostUserShMemConfig> {
        Err(Error::InvalidMessage)
    }

    fn set_log_base(&self, log: &VhostUserLog, file: File) -> Result<()> {
        let file = self.memory_file(file)?;
        let log =
            open_log(&file, log.mmap_offset, log.mmap_size).map_err(|what| self.refuse(what))?;
        self.queues().set_log(log);
        Ok(())
    }
}

/// Message codes and sizes of the vhost-user protocol that are handled here.
mod wire {
    pub(super) const HEADER_BYTES: usize = 12;
    /// VHOST_USER_SET_BACKEND_REQ_FD.
    pub(super) const SET_BACKEND_REQ_FD: u32 = 21;
    /// VHOST_USER_SET_VRING_ENABLE: two 32-bit numbers behind the header.
    pub(super) const SET_VRING_ENABLE: u32 = 18;
    /// VHOST_USER_SEND_RARP: a MAC address and two bytes more behind the header.
    pub(super) const SEND_RARP: u32 = 19;
    /// VHOST_USER_NET_SET_MTU: a 64-bit number.
    pub(super) const NET_SET_MTU: u32 = 20;
    /// Each of these three.
    pub(super) const MESSAGE_BYTES: usize = HEADER_BYTES + 8;
    pub(super) type Message = [u8; MESSAGE_BYTES];
    /// In the flags: the sender waits for an answer; this is one.
    pub(super) const NEED_REPLY: u32 = 1 << 3;
    pub(super) const REPLY: u32 = 1 << 2;
    /// VHOST_USER_BACKEND_CONFIG_CHANGE_MSG.
    pub(super) const CONFIG_CHANGE_MSG: u32 = 2;
    /// Version 1, no reply wanted.
    pub(super) const FLAGS: u32 = 1;
}

/// If the next message on `socket` is SET_BACKEND_REQ_FD, a copy of its descriptor. The message stays where it is.
pub(crate) fn backend_channel(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut header = [0; wire::HEADER_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::PEEK | RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let peeked =
        rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut header)], &mut ancillary, flags)
            .ok()?;
    let code = u32::from_le_bytes(header[..4].try_into().expect("4 bytes"));
    if peeked.bytes < wire::HEADER_BYTES || code != wire::SET_BACKEND_REQ_FD {
        return None;
    }
    ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    })
}

/// The next message on `socket`, if it is one of these and has eight bytes behind its header. It stays where it is.
fn next_of(socket: BorrowedFd<'_>, codes: &[u32]) -> Option<wire::Message> {
    let mut message = [0; wire::MESSAGE_BYTES];
    let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let whole =
        rustix::net::recv(socket, &mut message, peek).is_ok_and(|(_, it)| it == message.len());
    let payload = (message.len() - wire::HEADER_BYTES) as u32;
    let wanted = codes.contains(&word(&message, 0)) && word(&message, 8) == payload;
    (whole && wanted).then_some(message)
}

fn word(message: &wire::Message, at: usize) -> u32 {
    u32::from_le_bytes(message[at..at + 4].try_into().expect("4 bytes"))
}

/// Takes that message off the socket, carries it out, and answers if that is wanted; if not, what went wrong ends the session.
fn take(
    socket: BorrowedFd<'_>,
    mut message: wire::Message,
    carry_out: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let io = |error: rustix::io::Errno| Error::SocketError(error.into());
    rustix::net::recv(socket, &mut message, RecvFlags::DONTWAIT).map_err(io)?;
    let done = carry_out();
    if word(&message, 4) & wire::NEED_REPLY == 0 {
        return done;
    }
    let mut answer = message;
    answer[4..8].copy_from_slice(&(wire::FLAGS | wire::REPLY).to_le_bytes());
    answer[12..].copy_from_slice(&u64::from(done.is_err()).to_le_bytes());
    rustix::net::send(socket, &answer, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).map_err(io)?;
    Ok(())
}

/// Carries out the next message on `socket` if it is one that the crate would refuse. Whether there was one.
///
/// # Errors
///
/// It cannot be carried out, or the client cannot be answered.
pub(crate) fn ahead(session: &Session, socket: BorrowedFd<'_>) -> Result<bool> {
    Ok(enable_ahead(session, socket)? || card_message(session, socket)?)
}

/// Carries out SET_VRING_ENABLE if that is the next message on `socket` and comes before SET_FEATURES, as QEMU sends it for network
/// devices as soon as it has asked for the protocol's features. The crate refuses it until SET_FEATURES has said that they are used.
/// Whether there was one.
///
/// # Errors
///
/// The queue is none of the adapter's, or the client cannot be answered.
fn enable_ahead(session: &Session, socket: BorrowedFd<'_>) -> Result<bool> {
    if session.queues().features() & feature::PROTOCOL_FEATURES != 0 {
        return Ok(false);
    }
    let Some(message) = next_of(socket, &[wire::SET_VRING_ENABLE]) else { return Ok(false) };
    let carry_out = || match word(&message, 16) {
        0 => session.set_vring_enable(word(&message, 12), false),
        1 => session.set_vring_enable(word(&message, 12), true),
        _ => Err(Error::InvalidParam),
    };
    take(socket, message, carry_out).map(|()| true)
}

/// Carries out NET_SET_MTU or SEND_RARP if that is the next message on `socket`: the crate refuses both. Whether there was one.
///
/// # Errors
///
/// The adapter cannot do that, or the client cannot be answered.
fn card_message(session: &Session, socket: BorrowedFd<'_>) -> Result<bool> {
    let next = next_of(socket, &[wire::NET_SET_MTU, wire::SEND_RARP]);
    let Some(message) = next else { return Ok(false) };
    let value: [u8; 8] = message[wire::HEADER_BYTES..].try_into().expect("8 bytes");
    let device = &session.shared.device;
    let carry_out = || {
        let done = match word(&message, 0) {
            wire::NET_SET_MTU => device.set_mtu(u64::from_le_bytes(value)),
            // The address lies in the number as it does in memory.
            _ => device.announce(*value.first_chunk().expect("6 of 8 bytes")),
        };
        done.map_err(|what| session.refuse(what))
    };
    take(socket, message, carry_out).map(|()| true)
}

/// Tells a client that the configuration space has changed. Never waits: a client that does not read misses it.
pub(crate) fn send_config_change(channel: &OwnedFd) {
    let mut message = [0; wire::HEADER_BYTES];
    message[..4].copy_from_slice(&wire::CONFIG_CHANGE_MSG.to_le_bytes());
    message[4..8].copy_from_slice(&wire::FLAGS.to_le_bytes());
    let _ = rustix::net::send(channel, &message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// What a client may find in the features of an adapter besides its disk's.
pub(crate) const RING_FEATURES: u64 = feature::VERSION_1
    | feature::EVENT_IDX
    | feature::INDIRECT_DESC
    | feature::PROTOCOL_FEATURES
    | feature::LOG_ALL;
