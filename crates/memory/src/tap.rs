//! Descriptors of TAP interfaces: what is written to one the host receives, and what the host sends is read.
//!
//! Here since an `ioctl` cannot be made without `unsafe`, and no crate above may.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Bytes before each frame: the net header of virtio 1.0 and later, little-endian.
pub const HEADER_BYTES: usize = 12;

/// What the kernel may leave to whoever reads, and be left by whoever writes: checksums and TCP segmentation (`TUN_F_*`). Nothing of tunnels: the
/// kernel takes these bits with this header, and then every read fails.
const OFFLOADS: libc::c_ulong =
    (libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN) as libc::c_ulong;

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
    let mut request = named(interface)?;
    let socket = control_socket()?;
    // SAFETY: the request is an ifreq and lives through the call, which writes its index.
    let there = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFINDEX, &raw mut request) };
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
    if there != 0 {
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

/// Whether an interface is up and has a carrier.
///
/// # Errors
///
/// The kernel's: ENODEV, there is none of that name.
pub fn is_up(interface: &str) -> io::Result<bool> {
    let mut request = named(interface)?;
    let socket = control_socket()?;
    // SAFETY: the request is an ifreq and lives through the call, which writes its flags.
    result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) })?;
    // SAFETY: the call has written them.
    let flags = libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags });
    let up = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(flags & up == up)
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

fn control_socket() -> io::Result<OwnedFd> {
    // What a socket does not know itself goes to the interfaces, of any family; and who confines itself has no other.
    // SAFETY: numbers alone.
    let socket = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: as of the TAP.
    Ok(unsafe { OwnedFd::from_raw_fd(result(socket)?) })
}

fn named(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an ifreq is numbers, for which zeroes are values.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let bytes = interface.as_bytes();
    if bytes.is_empty() || bytes.len() >= request.ifr_name.len() {
        let what = format!("the name {interface:?} of an interface has 1 to 15 bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(request)
}

fn result(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_the_kernel_would_cut_is_refused() {
        for name in ["", "an-interface-of-17"] {
            assert_eq!(open(name, 1500).unwrap_err().kind(), io::ErrorKind::InvalidInput);
            assert_eq!(is_up(name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn an_interface_that_is_not_there_is_neither_up_nor_down() {
        assert_eq!(is_up("no-such").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
