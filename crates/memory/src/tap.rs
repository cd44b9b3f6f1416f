//! Descriptors of TAP interfaces: what is written to one the host receives, and what the host sends is read.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use crate::interface::{control_socket, index, named, result};

/// Bytes before each frame: the net header of virtio 1.0 and later, little-endian.
pub const HEADER_BYTES: usize = 12;

/// What the kernel may leave to whoever reads, and be left by whoever writes: checksums and the segmentation of TCP and UDP (`TUN_F_*`). Nothing of tunnels: the
/// kernel takes these bits with this header, and then every read fails.
const OFFLOADS: libc::c_ulong = (libc::TUN_F_CSUM
    | libc::TUN_F_TSO4
    | libc::TUN_F_TSO6
    | libc::TUN_F_TSO_ECN
    | libc::TUN_F_USO4
    | libc::TUN_F_USO6) as libc::c_ulong;

/// Longest packet of a TAP: with its Ethernet header it is 65,535 bytes.
const MTU_MAX: u16 = 65_521;

/// A descriptor of the interface; it never blocks. One that is not there is made: it stays when the last descriptor is closed, is up, and has this MTU. One
/// that is there stays as it is. Each call gives another descriptor (queue) of it, if it was made with `multi_queue`.
///
/// # Errors
///
/// The kernel's: EPERM, who may not make interfaces or does not own this one; EINVAL, it is no TAP or was made without `vnet_hdr`; EBUSY, it has no
/// more descriptors to give; ENOENT, the kernel has no TAPs; EOPNOTSUPP, it is older than Linux 6.4.
pub fn open(interface: &str, mtu: u16) -> io::Result<OwnedFd> {
    let socket = control_socket()?;
    let there = index(interface, &socket)?.is_some();
    let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero byte.
    let tap = result(unsafe { libc::open(c"/dev/net/tun".as_ptr(), flags) })?;
    // SAFETY: the descriptor was made just now, and nobody else has it.
    let tap = unsafe { OwnedFd::from_raw_fd(tap) };
    let plain = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
    let attach = |flags: libc::c_int| {
        let mut request = named(interface)?;
        // All of these are below 1 << 15.
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: the request is an ifreq and lives through the call.
        result(unsafe { libc::ioctl(tap.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
    };
    attach(plain | libc::IFF_MULTI_QUEUE).or_else(|error| match error.raw_os_error() {
        // It was made for one descriptor.
        Some(libc::EINVAL) => attach(plain),
        _ => Err(error),
    })?;
    let (bytes, yes) = (HEADER_BYTES as libc::c_int, 1_i32);
    // SAFETY: the numbers live through the calls, which read them.
    unsafe {
        result(libc::ioctl(tap.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const bytes))?;
        result(libc::ioctl(tap.as_raw_fd(), libc::TUNSETVNETLE, &raw const yes))?;
        result(libc::ioctl(tap.as_raw_fd(), libc::TUNSETOFFLOAD, OFFLOADS))?;
    }
    takes_nowait(&tap)?;
    if !there {
        // SAFETY: a number; an interface that whoever opens it has made.
        result(unsafe { libc::ioctl(tap.as_raw_fd(), libc::TUNSETPERSIST, 1) })?;
        let mut request = named(interface)?;
        request.ifr_ifru.ifru_mtu = libc::c_int::from(mtu.min(MTU_MAX));
        // SAFETY: the request is an ifreq and lives through the call.
        result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFMTU, &raw mut request) })?;
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        // SAFETY: as above.
        result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw mut request) })?;
    }
    Ok(tap)
}

/// From now on the interface goes with its last descriptor. It has one, and is such that [`open`] made.
///
/// # Errors
///
/// As of [`open`].
pub fn until_closed(interface: &str) -> io::Result<()> {
    let tap = open(interface, 0)?;
    // SAFETY: a number.
    result(unsafe { libc::ioctl(tap.as_raw_fd(), libc::TUNSETPERSIST, 0) }).map(drop)
}

/// Whether reads of it can be such that they never wait (`RWF_NOWAIT`): those of a TAP can since Linux 6.4. A frame that is there already is lost by that, as
/// those before it were.
fn takes_nowait(tap: &OwnedFd) -> io::Result<()> {
    let mut byte = 0_u8;
    let room = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: the iovec and the byte live through the call.
    let read = unsafe { libc::preadv2(tap.as_raw_fd(), &raw const room, 1, -1, libc::RWF_NOWAIT) };
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) if read < 0 => Err(error),
        _ => Ok(()),
    }
}
