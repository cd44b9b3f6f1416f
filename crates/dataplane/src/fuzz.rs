//! Fuzz target: the messages of a vhost-user session.
//!
//! A client that mostly follows the protocol (a memory table, rings inside it, eventfds), in any order and with some values
//! spoilt, against a real session, a real channel and a null volume. Whatever it says, the session answers or ends, and its queues
//! drain.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use block::{NullVolume, Volume};
use channel::{ChannelConfig, Drain};
use device_scsi::Unit;
use protocol::message::{
    AdapterSpec, BlockSpec, CommandSpec, DeviceSpec, EthernetSpec, Initiator, ScsiSpec, TargetSpec,
    UnitSpec, WaitMode,
};
use protocol::stats::StatsRegion;
use rustix::event::EventfdFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use vhost::vhost_user::BackendReqHandler;

use crate::acceptor::Acceptor;
use crate::adapter::{Condition, PlaneContext, Shared};
use crate::carrier::Carriers;
use crate::devices::{Backing, Channel, Services};
use crate::journal::{Journal, Relay};
use crate::outside::Outside;
use crate::session::{Session, ahead, backend_channel};

const MEMORY_BYTES: u64 = 1 << 20;
/// Where the client says that it has its memory mapped.
const USER_BASE: u64 = 0x7000_0000_0000;

/// A byte at a time from the fuzzer; zeroes at the end.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Mostly `usual`, sometimes something else.
    fn mostly(&mut self, usual: u64) -> u64 {
        match self.byte() {
            0..=239 => usual,
            240..=247 => u64::from(self.byte()),
            248..=251 => usual ^ (1 << (self.byte() % 64)),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }
}

fn context() -> &'static PlaneContext {
    static CONTEXT: OnceLock<PlaneContext> = OnceLock::new();
    CONTEXT.get_or_init(|| {
        let stats = StatsRegion::create(1).expect("memory for statistics");
        let config = ChannelConfig {
            index: 0,
            cpu: None,
            files_max: 256,
            poll_us_max: Some(0),
            activity: None,
        };
        let channel = Channel::start(config, stats.channel(0)).expect("a channel");
        let channels = Arc::new(vec![channel]);
        let services = Arc::new(Services::start(&channels).expect("a thread"));
        let relay = Relay::start().expect("a thread");
        let outside = Arc::new(Outside::of(false));
        let acceptor = Acceptor::start().expect("a thread");
        let stats = Arc::new(stats);
        let (pools, keeps_one) = (None, Arc::default());
        let carriers = Carriers::new(&outside);
        PlaneContext {
            channels,
            stats,
            services,
            relay,
            outside,
            carriers,
            acceptor,
            pools,
            keeps_one,
        }
    })
}

fn spec(device: DeviceSpec) -> AdapterSpec {
    AdapterSpec {
        queues: 4,
        queue_size: 256,
        wait: WaitMode::Interrupt,
        ..AdapterSpec::new("fuzz", PathBuf::new(), device)
    }
}

/// A block device, or a SCSI device with a unit, on a null volume; or a network card.
fn adapter(kind: u8) -> (AdapterSpec, Backing) {
    if kind == 2 {
        let card = EthernetSpec::on("net", [2, 0, 0, 0, 0, 1]);
        return (spec(DeviceSpec::Ethernet(card)), Backing::Ethernet(()));
    }
    let volume: Arc<dyn Volume> = Arc::new(NullVolume::new("v", 1 << 20, 512, false, false));
    if kind == 0 {
        return (spec(DeviceSpec::Block(BlockSpec::on("v"))), Backing::Block(Some(volume)));
    }
    let unit = UnitSpec {
        name: "lu0".into(),
        serial: "fuzz".into(),
        ..UnitSpec::disk("v", 0x3000_0000_0000_0001)
    };
    let luns = [(0, unit.name.clone())].into();
    let commands = CommandSpec {
        num_cmd_elems: 64,
        num_local_cmds: 8,
        bufs_per_cmd: 2,
        queue_depth: 16,
        ..CommandSpec::default()
    };
    let targets = vec![TargetSpec { id: 0, wwpn: Some(1), port: 1, luns }];
    let initiator = Initiator::Fc { wwpn: 2 };
    let scsi = ScsiSpec { commands, ..ScsiSpec::new(initiator, targets) };
    let unit = Unit::new(unit, Some(volume), None).expect("a good unit");
    let units = [(unit.spec.name.clone(), unit)].into();
    (spec(DeviceSpec::Scsi(scsi)), Backing::Scsi(units))
}

/// One message: its code, body and descriptors.
struct Message {
    code: u32,
    body: Vec<u8>,
    fds: Vec<OwnedFd>,
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn state(input: &mut Input<'_>, value: u64) -> Vec<u8> {
    let index = input.mostly(0) as u32 & 7;
    let value = input.mostly(value) as u32;
    [index.to_le_bytes(), value.to_le_bytes()].concat()
}

fn eventfd() -> OwnedFd {
    rustix::event::eventfd(1, EventfdFlags::CLOEXEC).expect("an eventfd")
}

fn memfd() -> OwnedFd {
    let fd = rustix::fs::memfd_create("fuzz", rustix::fs::MemfdFlags::CLOEXEC).expect("a memfd");
    rustix::fs::ftruncate(&fd, MEMORY_BYTES).expect("a memfd can grow");
    fd
}

/// guest address, size, user address, offset in the file.
fn region(input: &mut Input<'_>) -> Vec<u8> {
    let values = [0, MEMORY_BYTES, USER_BASE, 0].map(|usual| input.mostly(usual));
    words(&values)
}

fn message(input: &mut Input<'_>) -> Message {
    let fd = |input: &mut Input<'_>| if input.byte() < 250 { eventfd() } else { memfd() };
    let (code, body, fds) = match input.byte() % 26 {
        0 => (1, vec![], vec![]),
        1 => (2, words(&[input.mostly(1 << 32 | 1 << 30 | 1 << 29 | 1 << 28)]), vec![]),
        2 => (3, vec![], vec![]),
        3 | 4 => {
            let head = [1_u32.to_le_bytes(), [0; 4]].concat();
            (5, [head, region(input)].concat(), vec![memfd()])
        }
        5 => (6, words(&[input.mostly(64 << 10), 0]), vec![memfd()]),
        6 | 7 => (8, state(input, 64), vec![]),
        8 | 9 => {
            let head = [
                (input.mostly(0) as u32 & 7).to_le_bytes(),
                (u32::from(input.byte()) >> 7).to_le_bytes(),
            ]
            .concat();
            let at = [0x1000, 0x3000, 0x2000, 0x3000].map(|usual| input.mostly(USER_BASE + usual));
            (9, [head, words(&at)].concat(), vec![])
        }
        10 => (10, state(input, 0), vec![]),
        11 => (11, state(input, 0), vec![]),
        12 | 13 => (12, words(&[input.mostly(0) & 0x1ff]), vec![fd(input)]),
        14 => (13, words(&[input.mostly(0) & 0x1ff]), vec![fd(input)]),
        15 => (14, words(&[input.mostly(0) & 0x1ff]), vec![fd(input)]),
        16 => (15, vec![], vec![]),
        17 => (16, words(&[input.mostly(0x1_ffff)]), vec![]),
        18 | 19 => (18, state(input, 1), vec![]),
        20 => {
            let head = [input.mostly(0) as u32, input.mostly(60) as u32 & 0xfff, 0]
                .map(u32::to_le_bytes)
                .concat();
            let len = u32::from_le_bytes(head[4..8].try_into().expect("4 bytes")) as usize;
            (24, [head, vec![0; len]].concat(), vec![])
        }
        21 => (31, words(&[0, 0, u64::from(input.byte()) << 16 | 4]), vec![]),
        22 => (32, words(&[input.mostly(1 << 16), 0, 64 << 16 | 4]), vec![memfd()]),
        // Where the station is, and how long its packets are.
        23 => (19, words(&[input.mostly(0x0900_0000_0002)]), vec![]),
        24 => (20, words(&[input.mostly(1500)]), vec![]),
        _ => (input.mostly(37) as u32, [words(&[0]), region(input)].concat(), vec![memfd()]),
    };
    Message { code, body, fds }
}

fn send(socket: &UnixStream, message: &Message, cut: bool) {
    let need_reply = 1 << 3;
    let head =
        [message.code, 1 | need_reply, message.body.len() as u32].map(u32::to_le_bytes).concat();
    let mut bytes = [head, message.body.clone()].concat();
    if cut {
        bytes.truncate(bytes.len() * 2 / 3);
    }
    let fds: Vec<_> = message.fds.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let sent =
        rustix::net::sendmsg(socket, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL);
    if let Ok(count) = sent {
        let mut socket = socket;
        let _ = socket.write_all(&bytes[count..]);
    }
}

/// Plays one session.
///
/// # Panics
///
/// When the session or the channel breaks one of its own invariants.
pub fn fuzz_session(data: &[u8]) {
    let mut input = Input(data);
    let (theirs, ours) = UnixStream::pair().expect("a socket pair");
    theirs.set_nonblocking(true).expect("an ordinary socket");
    let (spec, backing) = adapter(input.byte() % 3);
    let condition = Arc::new(Mutex::new(Condition::default()));
    let journal = Arc::new(Journal::new(&spec.name, context().relay.clone()));
    let shared = Shared::new(context(), spec, &backing, condition, journal, Vec::new());
    let shared = Arc::new(shared.expect("a good specification"));
    let watched = ours.try_clone().expect("a descriptor");
    let session = Arc::new(Session::new(Arc::clone(&shared)));
    let mut handler = BackendReqHandler::from_stream(ours, Arc::clone(&session));
    let mut replies = [0; 4096];
    while !input.0.is_empty() {
        let next = message(&mut input);
        let cut = input.byte() == 255;
        send(&theirs, &next, cut);
        if cut {
            // The session would wait for the rest for as long as the client stays.
            let _ = theirs.shutdown(Shutdown::Write);
        }
        drop(backend_channel(watched.as_fd()));
        let handled = match ahead(&session, watched.as_fd()) {
            Ok(false) => handler.handle_request(),
            Ok(true) => Ok(()),
            Err(error) => Err(error),
        };
        let _ = (&theirs).read(&mut replies);
        if handled.is_err() {
            break;
        }
    }
    shared.queues().end_session(Drain::SkipWaits);
    shared.device.client_lost();
    shared.queues().release_stats();
    shared.device.removed();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_sessions_end_and_drain() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..1500 {
            let bytes: Vec<u8> = (0..96)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state >> 32) as u8
                })
                .collect();
            fuzz_session(&bytes);
        }
    }
}
