//! One connection to a server: the socket, the handshake, and a limit on how long an answer may take.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use vhost::VhostBackend;
use vhost::vhost_user::message::{
    VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserProtocolFeatures as Protocol,
};
use vhost::vhost_user::{Frontend, VhostUserFrontend};

use super::endpoint::Endpoint;
use super::{Device, SessionError, SessionOptions};
use crate::config::{BlkConfig, CONFIG_BYTES, feature};
use crate::net;
use crate::scsi::{self, ScsiConfig};

/// How many queues a server may say it has; the vhost-user messages for eventfds carry the index in eight bits.
const QUEUES_MAX: u16 = 256;

/// What a server offers and what was taken of it.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Virtio features offered.
    pub features: u64,
    /// Virtio features in use: offered, known and not masked.
    pub acked: u64,
    /// Protocol features offered.
    pub protocol_offered: Protocol,
    /// Protocol features in use.
    pub protocol: Protocol,
    /// Queues for I/O that can be set up.
    pub queues: u16,
    /// The disk; of a SCSI device, whose disks say themselves what they are, nothing but what concerns rings.
    pub config: BlkConfig,
    /// The configuration space of a SCSI device, if it has one.
    pub scsi: Option<ScsiConfig>,
}

impl Offer {
    /// Whether a virtio feature is in use.
    #[must_use]
    pub fn has(&self, bit: u64) -> bool {
        self.acked & bit != 0
    }
}

/// The protocol features that this client can use. There are no shared objects here: SHARED_OBJECT tells a server that this is a client that connects
/// again, as it is of a QEMU that does.
fn wanted() -> Protocol {
    Protocol::MQ
        | Protocol::CONFIG
        | Protocol::REPLY_ACK
        | Protocol::CONFIGURE_MEM_SLOTS
        | Protocol::INFLIGHT_SHMFD
        | Protocol::SHARED_OBJECT
}

/// A connected socket with the `vhost` crate's front end on it.
pub(super) struct Link {
    pub(super) frontend: Frontend,
    stream: UnixStream,
    timeout: Duration,
    acks: bool,
}

impl Link {
    /// Meets the server, trying for `patience`.
    pub(super) fn open(
        endpoint: &Endpoint,
        options: &SessionOptions,
        patience: Duration,
    ) -> Result<Self, SessionError> {
        let stream = endpoint.pass(patience)?;
        let fail = |source| SessionError::Socket { step: "connecting", source };
        let clone = stream.try_clone().map_err(fail)?;
        let frontend = Frontend::from_stream(clone, u64::from(QUEUES_MAX));
        Ok(Self { frontend, stream, timeout: options.timeout, acks: false })
    }

    /// Runs messages of one step of the protocol. A server that does not answer in time has its socket shut, which ends the
    /// call: the `vhost` crate takes a read timeout of the socket for a reason to read again.
    pub(super) fn step<T>(
        &mut self,
        step: &'static str,
        call: impl FnOnce(&mut Frontend) -> Result<T, vhost::Error>,
    ) -> Result<T, SessionError> {
        let shut = |source| SessionError::Socket { step, source };
        let stream = self.stream.try_clone().map_err(shut)?;
        let (finished, waiting) = mpsc::channel::<()>();
        let expired = AtomicBool::new(false);
        let (timeout, noted) = (self.timeout, &expired);
        let result = std::thread::scope(|scope| {
            scope.spawn(move || {
                if waiting.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Timeout) {
                    noted.store(true, Ordering::Release);
                    // Nothing to do about an error: the socket is gone already.
                    let _ = stream.shutdown(Shutdown::Both);
                }
            });
            let result = call(&mut self.frontend);
            drop(finished);
            result
        });
        match result {
            Ok(value) => Ok(value),
            Err(_) if expired.load(Ordering::Acquire) => {
                Err(SessionError::NoAnswer { step, seconds: self.timeout.as_secs_f64() })
            }
            Err(source) => Err(SessionError::Protocol { step, source }),
        }
    }

    /// Asks for acknowledgement of the messages that follow, where the server can give it. Not for messages that have an
    /// answer of their own.
    pub(super) fn acknowledged(&self, on: bool) {
        let flags = if on && self.acks {
            VhostUserHeaderFlag::NEED_REPLY
        } else {
            VhostUserHeaderFlag::empty()
        };
        self.frontend.set_hdr_flags(flags);
    }

    /// Waits until the server closes the connection, at most `timeout`; true when it did.
    pub(super) fn closed_within(&self, timeout: Duration) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        let timeout = Timespec::try_from(timeout).ok();
        match rustix::event::poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let gone = PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR;
        Ok(fds[0].revents().intersects(gone))
    }

    /// The socket, for callers that wait on more than this.
    pub(super) fn fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Features, protocol features, number of queues, configuration space.
    pub(super) fn handshake(&mut self, options: &SessionOptions) -> Result<Offer, SessionError> {
        let features = self.step("feature negotiation", |frontend| {
            frontend.set_owner()?;
            frontend.get_features()
        })?;
        if features & feature::VERSION_1 == 0 {
            return Err(SessionError::Missing {
                what: "VIRTIO_F_VERSION_1 (bit 32)",
                mends: "the server must serve virtio 1.0 or later",
            });
        }
        let known = match options.device {
            Device::Block => feature::KNOWN,
            Device::Scsi => scsi::feature::KNOWN,
            Device::Net => net::feature::KNOWN,
        };
        let acked = features & known & !options.mask_features;
        let (protocol_offered, protocol) = self.protocol_features(acked, options)?;
        self.acks = protocol.contains(Protocol::REPLY_ACK);
        let queues = if protocol.contains(Protocol::MQ) {
            let offered = self.step("number of queues", |frontend| frontend.get_queue_num())?;
            u16::try_from(offered).unwrap_or(QUEUES_MAX).min(QUEUES_MAX)
        } else {
            1 + options.device.queues_before_io()
        };
        let queues = queues.saturating_sub(options.device.queues_before_io());
        let (config, scsi) = match options.device {
            Device::Block => (self.config(protocol, acked, options)?, None),
            Device::Scsi => self.scsi_config(protocol)?,
            Device::Net => (BlkConfig::parse(&[], 0), None),
        };
        // Not limited by num_queues of the configuration space: that field is the front end's to set, and some servers leave 1.
        Ok(Offer { features, acked, protocol_offered, protocol, queues, config, scsi })
    }

    /// A device without a configuration space is driven all the same.
    fn scsi_config(
        &mut self,
        protocol: Protocol,
    ) -> Result<(BlkConfig, Option<ScsiConfig>), SessionError> {
        let rings = BlkConfig::parse(&[], 0);
        if !protocol.contains(Protocol::CONFIG) {
            return Ok((rings, None));
        }
        let (_, bytes) = self.step("configuration space", |frontend| {
            let flags = VhostUserConfigFlags::empty();
            let bytes = [0; scsi::CONFIG_BYTES];
            frontend.get_config(0, scsi::CONFIG_BYTES as u32, flags, &bytes)
        })?;
        let config = ScsiConfig::parse(&bytes);
        Ok((BlkConfig { seg_max: Some(config.seg_max), ..rings }, Some(config)))
    }

    fn protocol_features(
        &mut self,
        acked: u64,
        options: &SessionOptions,
    ) -> Result<(Protocol, Protocol), SessionError> {
        if acked & feature::PROTOCOL_FEATURES == 0 {
            return Ok((Protocol::empty(), Protocol::empty()));
        }
        let mask = Protocol::from_bits_truncate(options.mask_protocol);
        self.step("protocol feature negotiation", |frontend| {
            let offered = frontend.get_protocol_features()?;
            let protocol = (offered & wanted()).difference(mask);
            frontend.set_protocol_features(protocol)?;
            Ok((offered, protocol))
        })
    }

    fn config(
        &mut self,
        protocol: Protocol,
        acked: u64,
        options: &SessionOptions,
    ) -> Result<BlkConfig, SessionError> {
        if protocol.contains(Protocol::CONFIG) {
            let (_, bytes) = self.step("configuration space", |frontend| {
                let flags = VhostUserConfigFlags::empty();
                frontend.get_config(0, CONFIG_BYTES as u32, flags, &[0; CONFIG_BYTES])
            })?;
            return Ok(BlkConfig::parse(&bytes, acked));
        }
        let Some(bytes) = options.capacity_bytes else {
            return Err(SessionError::Missing {
                what: "the protocol feature CONFIG, so that the size of the disk is unknown",
                mends: "say it with --capacity",
            });
        };
        // Without a configuration space nothing vouches for its fields but the size that the user gave.
        let config = BlkConfig::parse(&(bytes / 512).to_le_bytes(), acked & feature::RO);
        Ok(BlkConfig { flush: acked & feature::FLUSH != 0, ..config })
    }
}
