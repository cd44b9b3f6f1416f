//! AF_XDP sockets of an interface: frames cross by rings in memory that is shared with the kernel.
//!
//! ```text
//!   who opens ([`open`])                                     who moves frames ([`Rings`])
//!   program, map, a socket for each queue of the card ──────► descriptors: rings, chunks of frames
//! ```
//!
//! The program is six instructions: what comes by a queue goes to the socket of that queue, and to the host's stack where there is none. It is
//! attached for as long as somebody has one of the descriptors in [`Opened::keeps`], and so is the interface promiscuous: whoever moves frames
//! keeps them, and with its death both end.

mod rings;

use std::fs::File;
use std::io;
use std::mem::{size_of, size_of_val};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};

use crate::interface::{control_socket, flags, index, named, result, socket};

pub use rings::{Received, Rings};

/// Bytes of a chunk, of which a frame takes one or several.
pub const CHUNK_BYTES: usize = 4096;
/// Chunks for what comes, and as many for what is sent. Each ring has room for all of them: none is ever full.
const CHUNKS: u32 = 1024;
/// Bytes of the memory of one socket.
const MEMORY_BYTES: usize = 2 * CHUNKS as usize * CHUNK_BYTES;
/// What a socket may have under way to the interface, so that its chunks and nothing else are the limit.
const SENDING_BYTES: libc::c_int = 8 << 20;
/// Most queues of a card.
pub const QUEUES_MAX: u32 = 30;

// Of `linux/bpf.h`.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// It may be given frames in several pieces (`BPF_F_XDP_HAS_FRAGS`).
const HAS_FRAGS: u32 = 1 << 5;
const PASS: i32 = 2;
const REDIRECT_BY_MAP: i32 = 51;
// Of `linux/if_link.h`.
const BY_DRIVER: u32 = 1 << 2;
const BY_STACK: u32 = 1 << 1;
// Of `linux/ethtool.h`.
const GET_FLAGS: u32 = 0x25;
const SET_FLAGS: u32 = 0x26;
const GET_CHANNELS: u32 = 0x3c;
const STRIPS_TAGS: u32 = 1 << 8;

/// Sockets of an interface, one for each of its queues.
#[derive(Debug)]
pub struct Opened {
    /// By the number of the queue.
    pub queues: Vec<Queue>,
    /// Descriptors that do nothing but keep the program attached and the interface promiscuous.
    pub keeps: [OwnedFd; 2],
    /// The program is called by the driver, and not by the host's stack.
    pub by_driver: bool,
}

/// One of them.
#[derive(Debug)]
pub struct Queue {
    /// The socket, which is bound.
    pub socket: OwnedFd,
    /// The file whose pages its frames are in.
    pub memory: OwnedFd,
}

/// Opens all queues of an interface that is up. Everything that comes by it from then on goes to these sockets, and nothing of it to the host. That the card takes
/// tags out of frames is switched off: nobody would learn of them.
///
/// # Errors
///
/// The kernel's: EPERM, who has not `CAP_NET_RAW`, `CAP_NET_ADMIN` and `CAP_BPF`; ENODEV, there is no such interface; ENETDOWN, it is not up; EMEDIUMTYPE, it is no Ethernet
/// interface; EBUSY, somebody has a program at it, or a socket of one of its queues; ENOBUFS, the memory is more than `RLIMIT_MEMLOCK` lets the user lock; E2BIG, it has more than [`QUEUES_MAX`] queues; EPROTO, its driver takes tags out of frames and does not leave that; EAFNOSUPPORT, the kernel
/// has no such sockets; EINVAL, it is older than Linux 6.6.
pub fn open(interface: &str) -> io::Result<Opened> {
    let asks = control_socket()?;
    let missing = || io::Error::from_raw_os_error(libc::ENODEV);
    let index = index(interface, &asks)?.ok_or_else(missing)?;
    if flags(interface, &asks)? & libc::IFF_UP == 0 {
        return Err(io::Error::from_raw_os_error(libc::ENETDOWN));
    }
    if hardware(interface, &asks)? != libc::ARPHRD_ETHER {
        return Err(io::Error::from_raw_os_error(libc::EMEDIUMTYPE));
    }
    let count = queues_of(interface, &asks)?;
    let map = map_of_sockets(count)?;
    let program = program(&map)?;
    // Whoever has a queue is found before anything is changed.
    let queues: Vec<Queue> =
        (0..count).map(|number| queue(index, number)).collect::<io::Result<_>>()?;
    leave_tags(interface, &asks)?;
    let promiscuous = promiscuous(index)?;
    for (number, queue) in (0..count).zip(&queues) {
        put(&map, number, &queue.socket)?;
    }
    let (link, by_driver) = match attach(&program, index, BY_DRIVER) {
        Ok(link) => (link, true),
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Err(error),
        // Of a driver that knows none, or none with this MTU.
        Err(_) => (attach(&program, index, BY_STACK)?, false),
    };
    Ok(Opened { queues, keeps: [link, promiscuous], by_driver })
}

/// What kind of hardware it is (`ARPHRD_*`).
fn hardware(interface: &str, asks: &OwnedFd) -> io::Result<libc::c_ushort> {
    let mut request = named(interface)?;
    // SAFETY: the request is an ifreq and lives through the call, which writes an address.
    result(unsafe { libc::ioctl(asks.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) })?;
    // SAFETY: the call has written it.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

/// A question to the driver, or something that it is told: numbers, of which the first says which.
fn driver<const N: usize>(interface: &str, asks: &OwnedFd, words: &mut [u32; N]) -> io::Result<()> {
    let mut request = named(interface)?;
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: request and words live through the call, and the words are as many as the first one says that they are.
    result(unsafe { libc::ioctl(asks.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) }).map(drop)
}

/// How many queues frames come by.
fn queues_of(interface: &str, asks: &OwnedFd) -> io::Result<u32> {
    // A `struct ethtool_channels`: at most (received, sent, other, combined), and now.
    let mut words = [0; 9];
    words[0] = GET_CHANNELS;
    let count = match driver(interface, asks, &mut words) {
        Ok(()) => words[5].saturating_add(words[8]).max(1),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => 1,
        Err(error) => return Err(error),
    };
    if count > QUEUES_MAX {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    Ok(count)
}

/// From now on tags stay in the frames that come.
fn leave_tags(interface: &str, asks: &OwnedFd) -> io::Result<()> {
    let strips = || {
        let mut words = [GET_FLAGS, 0];
        match driver(interface, asks, &mut words) {
            Ok(()) => Ok(words[1]),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(0),
            Err(error) => Err(error),
        }
    };
    let before = strips()?;
    if before & STRIPS_TAGS == 0 {
        return Ok(());
    }
    let told = driver(interface, asks, &mut [SET_FLAGS, before & !STRIPS_TAGS]);
    if told.is_err() || strips()? & STRIPS_TAGS != 0 {
        return Err(io::Error::from_raw_os_error(libc::EPROTO));
    }
    Ok(())
}

/// Everything that passes the interface comes in, for as long as somebody has this socket, by which nothing comes.
fn promiscuous(index: libc::c_int) -> io::Result<OwnedFd> {
    let keeps = socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK)?;
    crate::packet::hear_all(&keeps, index)?;
    Ok(keeps)
}

/// A call of `bpf(2)` that makes a descriptor or nothing.
fn bpf<T>(command: libc::c_int, attributes: &T) -> io::Result<RawFd> {
    // SAFETY: the kernel reads the structure, whose size it is told, and what the addresses in it name, which the callers hold.
    let made =
        unsafe { libc::syscall(libc::SYS_bpf, command, ptr::from_ref(attributes), size_of::<T>()) };
    if made < 0 { Err(io::Error::last_os_error()) } else { Ok(made as RawFd) }
}

fn made<T>(command: libc::c_int, attributes: &T) -> io::Result<OwnedFd> {
    let made = bpf(command, attributes)?;
    // SAFETY: the descriptor was made just now, and nobody else has it. It is closed when a program is executed, as all of this call.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

/// Sockets by the number of their queue.
fn map_of_sockets(count: u32) -> io::Result<OwnedFd> {
    // Type, bytes of a key, bytes of a value, most entries.
    made(MAP_CREATE, &[MAP_OF_SOCKETS, 4, 4, count])
}

fn put(map: &OwnedFd, number: u32, socket: &OwnedFd) -> io::Result<()> {
    #[repr(C)]
    struct Update {
        map: u32,
        pad: u32,
        key: u64,
        value: u64,
        flags: u64,
    }
    let value = socket.as_raw_fd() as u32;
    let address = |word: &u32| ptr::from_ref(word).expose_provenance() as u64;
    let (key, value) = (address(&number), address(&value));
    bpf(MAP_UPDATE, &Update { map: map.as_raw_fd() as u32, pad: 0, key, value, flags: 0 }).map(drop)
}

/// One instruction: code, registers (destination below, source above), offset, number.
const fn instruction(code: u8, registers: u8, offset: i16, number: i32) -> [u8; 8] {
    let ([a, b], [c, d, e, f]) = (offset.to_ne_bytes(), number.to_ne_bytes());
    [code, registers, a, b, c, d, e, f]
}

/// `return bpf_redirect_map(map, context->rx_queue_index, XDP_PASS)`.
fn program(map: &OwnedFd) -> io::Result<OwnedFd> {
    let code: [[u8; 8]; 6] = [
        instruction(0x61, 0x12, 16, 0),
        instruction(0x18, 0x11, 0, map.as_raw_fd()),
        instruction(0, 0, 0, 0),
        instruction(0xb7, 0x03, 0, PASS),
        instruction(0x85, 0, 0, REDIRECT_BY_MAP),
        instruction(0x95, 0, 0, 0),
    ];
    #[repr(C)]
    struct Load {
        kind: u32,
        count: u32,
        code: u64,
        license: u64,
        log: [u64; 2],
        version: u32,
        flags: u32,
    }
    let address = |bytes: *const u8| bytes.expose_provenance() as u64;
    let (count, code_at) = (code.len() as u32, address(code.as_ptr().cast()));
    let license = address(c"Apache-2.0".as_ptr().cast());
    let (log, version, flags) = ([0; 2], 0, HAS_FRAGS);
    made(
        PROGRAM_LOAD,
        &Load { kind: PROGRAM_XDP, count, code: code_at, license, log, version, flags },
    )
}

/// The program is called for what comes by the interface, for as long as somebody has this.
fn attach(program: &OwnedFd, index: libc::c_int, mode: u32) -> io::Result<OwnedFd> {
    made(LINK_CREATE, &[program.as_raw_fd() as u32, index.cast_unsigned(), ATTACH_XDP, mode])
}

/// A socket of a queue, with its memory.
fn queue(index: libc::c_int, number: u32) -> io::Result<Queue> {
    let socket = socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_NONBLOCK)?;
    let options = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = rustix::fs::memfd_create("frames", options)?;
    rustix::fs::ftruncate(&memory, MEMORY_BYTES as u64)?;
    rustix::fs::fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    let memory = File::from(memory);
    {
        // The kernel keeps the pages; the addresses are of no use to it afterwards.
        let here = crate::Mapping::file(&memory, 0, MEMORY_BYTES, crate::Access::ReadWrite)
            .map_err(io::Error::other)?;
        // SAFETY: numbers, for which zeroes are values.
        let mut region: libc::xdp_umem_reg = unsafe { std::mem::zeroed() };
        region.addr = here.as_ptr().expose_provenance() as u64;
        (region.len, region.chunk_size) = (MEMORY_BYTES as u64, CHUNK_BYTES as u32);
        set(&socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
    }
    for ring in [
        libc::XDP_UMEM_FILL_RING,
        libc::XDP_UMEM_COMPLETION_RING,
        libc::XDP_RX_RING,
        libc::XDP_TX_RING,
    ] {
        set(&socket, libc::SOL_XDP, ring, &CHUNKS)?;
    }
    set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SENDING_BYTES)
        .or_else(|_| set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, &SENDING_BYTES))?;
    // SAFETY: numbers, for which zeroes are values.
    let mut address: libc::sockaddr_xdp = unsafe { std::mem::zeroed() };
    address.sxdp_family = libc::AF_XDP as libc::c_ushort;
    address.sxdp_flags = libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP | libc::XDP_USE_SG;
    (address.sxdp_ifindex, address.sxdp_queue_id) = (index.cast_unsigned(), number);
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the address lives through the call, which reads so many bytes of it.
    result(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    Ok(Queue { socket, memory: memory.into() })
}

fn set<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let (value, length) = (ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the value lives through the call, which reads so many bytes of it.
    result(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) }).map(drop)
}

/// What the kernel says of a socket.
fn get<T: Copy>(socket: impl AsFd, option: libc::c_int) -> io::Result<T> {
    // SAFETY: only structures of numbers are asked for, for which zeroes are values.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    let to = (&raw mut value).cast();
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: both live through the call, which writes no more than the length says.
    result(unsafe { libc::getsockopt(socket, libc::SOL_XDP, option, to, &raw mut length) })?;
    if length as usize != size_of::<T>() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    Ok(value)
}

/// A ring of a socket, where the kernel has it.
fn map(socket: impl AsFd, place: u64, length: usize) -> io::Result<*mut u8> {
    let (protection, flags) =
        (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
    let at =
        unsafe { rustix::mm::mmap(ptr::null_mut(), length, protection, flags, socket, place) }?;
    Ok(at.cast())
}

#[cfg(test)]
mod tests;
