//! A vhost-user front end that says whatever it is told to, with rings that are written by hand.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::fs::File;
use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::EventfdFlags;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use vring::driver::{DriverMemory, DriverRange};

/// Message codes.
pub mod code {
    pub const GET_FEATURES: u32 = 1;
    pub const SET_FEATURES: u32 = 2;
    pub const SET_OWNER: u32 = 3;
    pub const SET_MEM_TABLE: u32 = 5;
    pub const SET_LOG_BASE: u32 = 6;
    pub const SET_VRING_NUM: u32 = 8;
    pub const SET_VRING_ADDR: u32 = 9;
    pub const SET_VRING_BASE: u32 = 10;
    pub const GET_VRING_BASE: u32 = 11;
    pub const SET_VRING_KICK: u32 = 12;
    pub const SET_VRING_CALL: u32 = 13;
    pub const SET_VRING_ERR: u32 = 14;
    pub const GET_PROTOCOL_FEATURES: u32 = 15;
    pub const SET_PROTOCOL_FEATURES: u32 = 16;
    pub const SET_VRING_ENABLE: u32 = 18;
    pub const SET_BACKEND_REQ_FD: u32 = 21;
    pub const GET_CONFIG: u32 = 24;
    pub const SET_CONFIG: u32 = 25;
    pub const SET_INFLIGHT_FD: u32 = 32;
    pub const RESET_DEVICE: u32 = 34;
    pub const ADD_MEM_REG: u32 = 37;
    pub const REM_MEM_REG: u32 = 38;
}

pub const VERSION_1: u64 = 1 << 32;
pub const PROTOCOL_FEATURES: u64 = 1 << 30;
pub const INDIRECT: u64 = 1 << 28;
pub const FLUSH: u64 = 1 << 9;
pub const CONFIG_WCE: u64 = 1 << 11;
/// What is written is in the dirty log.
pub const LOG_ALL: u64 = 1 << 26;

const LOG_BYTES: u64 = 1 << 20;

/// MQ, LOG_SHMFD, REPLY_ACK, BACKEND_REQ, CONFIG, INFLIGHT_SHMFD, RESET_DEVICE, CONFIGURE_MEM_SLOTS.
const PROTOCOL: u64 = 1 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 9 | 1 << 12 | 1 << 13 | 1 << 15;

/// Descriptor flags.
pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const TABLE: u16 = 4;

/// How long anything may take before a test gives up.
pub const GUARD: Duration = Duration::from_secs(20);

/// Waits until something holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + GUARD;
    while !holds() {
        assert!(Instant::now() < end, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap()
}

pub fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub fn halves(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// guest address, size, user address, offset in the file.
pub type Region = [u64; 4];

pub struct Front {
    pub stream: UnixStream,
    pub memory: Arc<DriverMemory>,
}

impl Front {
    /// Connects and negotiates everything but EVENT_IDX; nothing runs yet and no memory is shared.
    #[track_caller]
    pub fn connect(socket: &Path) -> Front {
        Front::with_features(socket, VERSION_1 | PROTOCOL_FEATURES | INDIRECT | FLUSH | CONFIG_WCE)
    }

    #[track_caller]
    pub fn with_features(socket: &Path, features: u64) -> Front {
        Front::with_protocol(socket, features, PROTOCOL)
    }

    #[track_caller]
    pub fn with_protocol(socket: &Path, features: u64, protocol: u64) -> Front {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        let front = Front { stream, memory: Arc::new(DriverMemory::new(8 << 20).unwrap()) };
        front.send(code::SET_OWNER, &[], &[]);
        let offered = front.ask(code::GET_FEATURES, &[], &[]);
        assert_eq!(offered.len(), 8);
        front.send(code::SET_FEATURES, &words(&[features]), &[]);
        front.ask(code::GET_PROTOCOL_FEATURES, &[], &[]);
        front.send(code::SET_PROTOCOL_FEATURES, &words(&[protocol]), &[]);
        front
    }

    /// Connects, shares its memory and starts one queue, with a write cache where there is one.
    #[track_caller]
    pub fn ready(socket: &Path) -> (Front, Ring) {
        let front = Front::connect(socket);
        front.share_memory();
        front.set_config(WRITEBACK, &[1]);
        let ring = front.start(0, 64);
        (front, ring)
    }

    fn write(&self, code: u32, flags: u32, body: &[u8], fds: &[BorrowedFd<'_>]) {
        let header = halves(&[code, flags, body.len() as u32]);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(ancillary.push(SendAncillaryMessage::ScmRights(fds)));
        }
        let parts = [IoSlice::new(&header), IoSlice::new(body)];
        // A server that has hung up shows in what is asked next.
        let _ = rustix::net::sendmsg(&self.stream, &parts, &mut ancillary, SendFlags::NOSIGNAL);
    }

    /// A message without an answer.
    pub fn send(&self, code: u32, body: &[u8], fds: &[BorrowedFd<'_>]) {
        self.write(code, 1, body, fds);
    }

    fn answer(&self) -> std::io::Result<Vec<u8>> {
        let mut header = [0; 12];
        (&self.stream).read_exact(&mut header)?;
        let length = u32::from_le_bytes(header[8..].try_into().unwrap());
        let mut body = vec![0; length as usize];
        (&self.stream).read_exact(&mut body)?;
        Ok(body)
    }

    /// A message with an answer of its own.
    #[track_caller]
    pub fn ask(&self, code: u32, body: &[u8], fds: &[BorrowedFd<'_>]) -> Vec<u8> {
        self.write(code, 1, body, fds);
        self.answer().unwrap()
    }

    /// Asks for an acknowledgement: whether the server has carried it out.
    #[track_caller]
    pub fn accepted(&self, code: u32, body: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
        self.write(code, 1 | 8, body, fds);
        match self.answer() {
            Ok(body) => body == words(&[0]),
            // A message that the parser refuses ends the session without an answer.
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => false,
            Err(error) => panic!("message {code}: no answer, {error}"),
        }
    }

    /// The regions of this front end's memory.
    pub fn regions(&self) -> Vec<Region> {
        let regions = self.memory.regions().unwrap();
        regions.iter().map(|r| [r.guest.0, r.size, r.user.0, r.offset]).collect()
    }

    #[track_caller]
    pub fn share_memory(&self) {
        let regions = self.regions();
        assert!(self.set_mem_table(&regions, self.memory.file()));
    }

    /// SET_MEM_TABLE, all regions of one file.
    #[track_caller]
    pub fn set_mem_table(&self, regions: &[Region], file: &File) -> bool {
        let mut body = halves(&[regions.len() as u32, 0]);
        regions.iter().for_each(|region| body.extend(words(region)));
        let fds: Vec<_> = regions.iter().map(|_| file.as_fd()).collect();
        self.accepted(code::SET_MEM_TABLE, &body, &fds)
    }

    pub fn add_region(&self, region: &Region, file: &File) -> bool {
        let body = [words(&[0]), words(region)].concat();
        self.accepted(code::ADD_MEM_REG, &body, &[file.as_fd()])
    }

    pub fn remove_region(&self, region: &Region) -> bool {
        self.accepted(code::REM_MEM_REG, &[words(&[0]), words(region)].concat(), &[])
    }

    pub fn state(&self, code: u32, index: u32, value: u32) -> bool {
        self.accepted(code, &halves(&[index, value]), &[])
    }

    pub fn set_addresses(&self, index: u32, desc: u64, used: u64, avail: u64) -> bool {
        let body = [halves(&[index, 0]), words(&[desc, used, avail, 0])].concat();
        self.accepted(code::SET_VRING_ADDR, &body, &[])
    }

    pub fn set_fd(&self, code: u32, index: u64, fd: BorrowedFd<'_>) -> bool {
        self.accepted(code, &words(&[index]), &[fd])
    }

    /// Makes a ring in the shared memory and starts a queue on it.
    #[track_caller]
    pub fn start(&self, index: u32, size: u16) -> Ring {
        let ring = Ring::new(&self.memory, index, size);
        self.run(&ring);
        ring
    }

    /// Starts a queue on a ring where that stands.
    #[track_caller]
    pub fn run(&self, ring: &Ring) {
        let user = |range: &DriverRange| range.buf.as_ptr().addr() as u64;
        assert!(self.state(code::SET_VRING_NUM, ring.index, u32::from(ring.size)));
        assert!(self.state(code::SET_VRING_BASE, ring.index, u32::from(ring.used_index())));
        let (desc, used, avail) = (user(&ring.desc), user(&ring.used), user(&ring.avail));
        assert!(self.set_addresses(ring.index, desc, used, avail));
        let index = u64::from(ring.index);
        assert!(self.set_fd(code::SET_VRING_ERR, index, ring.error.as_fd()));
        assert!(self.set_fd(code::SET_VRING_CALL, index, ring.call.as_fd()));
        assert!(self.set_fd(code::SET_VRING_KICK, index, ring.kick.as_fd()));
        assert!(self.state(code::SET_VRING_ENABLE, ring.index, 1));
    }

    /// The log is in this file, from when the feature is acknowledged on.
    pub fn set_log_base(&self, log: &File) {
        self.ask(code::SET_LOG_BASE, &words(&[LOG_BYTES, 0]), &[log.as_fd()]);
    }

    #[track_caller]
    pub fn set_features(&self, features: u64) {
        assert!(self.accepted(code::SET_FEATURES, &words(&[features]), &[]));
    }

    /// From now on the used ring is logged, too.
    #[track_caller]
    pub fn log_ring(&self, ring: &Ring) {
        let user = |range: &DriverRange| range.buf.as_ptr().addr() as u64;
        let addresses = [user(&ring.desc), user(&ring.used), user(&ring.avail), ring.used.guest.0];
        let body = [halves(&[ring.index, 1]), words(&addresses)].concat();
        assert!(self.accepted(code::SET_VRING_ADDR, &body, &[]));
    }

    /// Stops a queue; its next available index.
    #[track_caller]
    pub fn stop(&self, index: u32) -> u32 {
        let body = self.ask(code::GET_VRING_BASE, &halves(&[index, 0]), &[]);
        u32::from_le_bytes(body[4..].try_into().unwrap())
    }

    /// GET_CONFIG; empty: refused.
    #[track_caller]
    pub fn config(&self, offset: u32, size: u32) -> Vec<u8> {
        let body = [halves(&[offset, size, 0]), vec![0; size as usize]].concat();
        self.ask(code::GET_CONFIG, &body, &[]).split_off(12)
    }

    pub fn set_config(&self, offset: u32, bytes: &[u8]) -> bool {
        let body = [halves(&[offset, bytes.len() as u32, 0]), bytes.to_vec()].concat();
        self.accepted(code::SET_CONFIG, &body, &[])
    }

    /// Whether the server has hung up.
    #[track_caller]
    pub fn hung_up(&self) -> bool {
        let mut bytes = [0; 64];
        loop {
            match (&self.stream).read(&mut bytes) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        }
    }
}

/// A ring without a driver: every byte of it is the test's to write.
pub struct Ring {
    pub index: u32,
    pub size: u16,
    pub desc: DriverRange,
    pub avail: DriverRange,
    pub used: DriverRange,
    pub header: DriverRange,
    pub data: DriverRange,
    pub status: DriverRange,
    pub kick: OwnedFd,
    pub call: OwnedFd,
    pub error: OwnedFd,
    next: std::cell::Cell<u16>,
    _memory: Arc<DriverMemory>,
}

/// The field `writeback` of the configuration space.
pub const WRITEBACK: u32 = 32;
/// What stands in a status byte that nobody has written.
pub const UNSET: u8 = 0xee;
/// Bytes of the data buffer.
pub const DATA: u32 = 1 << 16;

impl Ring {
    pub fn new(memory: &Arc<DriverMemory>, index: u32, size: u16) -> Ring {
        let alloc = |len: usize| {
            let range = memory.alloc(len, 4096).unwrap();
            range.buf.fill(0);
            range
        };
        let entries = usize::from(size);
        Ring {
            index,
            size,
            desc: alloc(16 * entries),
            avail: alloc(6 + 2 * entries),
            used: alloc(6 + 8 * entries),
            header: alloc(16 * entries),
            data: alloc(DATA as usize),
            status: alloc(entries),
            kick: eventfd(),
            call: eventfd(),
            error: eventfd(),
            next: 0.into(),
            _memory: Arc::clone(memory),
        }
    }

    /// The same memory as a ring of another size.
    pub fn resized(self, size: u16) -> Ring {
        Ring { size, ..self }
    }

    pub fn set_desc(&self, index: u16, addr: u64, len: u32, flags: u16, next: u16) {
        self.desc.buf.write(16 * usize::from(index), &descriptor(addr, len, flags, next));
    }

    pub fn set_header(&self, head: u16, kind: u32, sector: u64) {
        let bytes = [kind.to_le_bytes().to_vec(), vec![0; 4], sector.to_le_bytes().to_vec()];
        self.header.buf.write(16 * usize::from(head), &bytes.concat());
        self.status.buf.write(usize::from(head), &[UNSET]);
    }

    pub fn header_at(&self, head: u16) -> u64 {
        self.header.guest.0 + 16 * u64::from(head)
    }

    pub fn status_at(&self, head: u16) -> u64 {
        self.status.guest.0 + u64::from(head)
    }

    pub fn status_of(&self, head: u16) -> u8 {
        let mut byte = [0];
        self.status.buf.read(usize::from(head), &mut byte);
        byte[0]
    }

    /// A request in three descriptors from `head` on; `data` is address, length and flags of the middle one.
    pub fn request(&self, head: u16, kind: u32, sector: u64, data: (u64, u32, u16)) {
        self.set_header(head, kind, sector);
        self.set_desc(head, self.header_at(head), 16, NEXT, head + 1);
        self.set_desc(head + 1, data.0, data.1, data.2 | NEXT, head + 2);
        self.set_desc(head + 2, self.status_at(head), 1, WRITE, 0);
    }

    /// A sane read of 512 bytes.
    pub fn read(&self, head: u16, sector: u64) {
        self.request(head, 0, sector, (self.data.guest.0, 512, WRITE));
    }

    pub fn set_avail_index(&self, index: u16) {
        self.next.set(index);
        // The entries before the index: the device reads them when it sees the index.
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        self.avail.buf.write(2, &index.to_le_bytes());
    }

    pub fn kick(&self) {
        rustix::io::write(&self.kick, &1_u64.to_ne_bytes()).unwrap();
    }

    /// Makes heads available and kicks.
    pub fn offer(&self, heads: &[u16]) {
        self.offer_silently(heads);
        self.kick();
    }

    /// Makes heads available.
    pub fn offer_silently(&self, heads: &[u16]) {
        let mut index = self.next.get();
        for head in heads {
            let at = 4 + 2 * usize::from(index % self.size);
            self.avail.buf.write(at, &head.to_le_bytes());
            index = index.wrapping_add(1);
        }
        self.set_avail_index(index);
    }

    pub fn used_index(&self) -> u16 {
        let mut bytes = [0; 2];
        self.used.buf.read(2, &mut bytes);
        u16::from_le_bytes(bytes)
    }

    /// Waits for everything that was offered.
    #[track_caller]
    pub fn wait(&self) {
        let to = self.next.get();
        until("completions", || self.used_index() == to);
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }

    /// The used element `back` before the newest: head and bytes written.
    pub fn used_element(&self, back: u16) -> (u32, u32) {
        let at = 4 + 8 * usize::from(self.used_index().wrapping_sub(1 + back) % self.size);
        let mut bytes = [0; 8];
        self.used.buf.read(at, &mut bytes);
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        (half(0), half(4))
    }

    /// Offers one head, waits for its end, and gives its status.
    #[track_caller]
    pub fn status_after(&self, head: u16) -> u8 {
        self.offer(&[head]);
        self.wait();
        self.status_of(head)
    }

    /// A sane request goes through.
    #[track_caller]
    pub fn works(&self) {
        let head = self.size - 3;
        self.read(head, 0);
        assert_eq!(self.status_after(head), 0, "a sane read");
        assert_eq!(self.used_element(0), (u32::from(head), 513));
    }

    /// Whether the error descriptor was written to.
    pub fn error_signalled(&self) -> bool {
        let mut count = [0; 8];
        rustix::io::read(&self.error, &mut count).is_ok()
    }
}

/// A dirty log that is empty.
pub fn log_file(name: &str) -> File {
    let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(file);
    file.set_len(LOG_BYTES).unwrap();
    file
}

/// Whether the page of an address is in the log.
pub fn logged(log: &File, guest: u64) -> bool {
    let page = guest >> 12;
    let mut byte = [0];
    log.read_exact_at(&mut byte, page / 8).unwrap();
    byte[0] & 1 << (page % 8) != 0
}

pub fn descriptor(addr: u64, len: u32, flags: u16, next: u16) -> Vec<u8> {
    let (flags, next) = (flags.to_le_bytes().to_vec(), next.to_le_bytes().to_vec());
    [addr.to_le_bytes().to_vec(), len.to_le_bytes().to_vec(), flags, next].concat()
}
