//! Interfaces of the host: what is asked of them by name.
//!
//! Here since an `ioctl` and a `setsockopt` cannot be made without `unsafe`, and no crate above may.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Whether an interface is up and has a carrier.
///
/// # Errors
///
/// The kernel's: ENODEV, there is none of that name.
pub fn is_up(interface: &str) -> io::Result<bool> {
    let up = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(flags(interface, &control_socket()?)? & up == up)
}

/// Its `IFF_*` flags.
pub(crate) fn flags(interface: &str, socket: &OwnedFd) -> io::Result<libc::c_int> {
    let mut request = named(interface)?;
    // SAFETY: the request is an ifreq and lives through the call, which writes its flags.
    result(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) })?;
    // SAFETY: the call has written them.
    Ok(libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags }))
}

/// Its number; `None`: there is none of that name.
pub(crate) fn index(interface: &str, socket: &OwnedFd) -> io::Result<Option<libc::c_int>> {
    let mut request = named(interface)?;
    // SAFETY: the request is an ifreq and lives through the call, which writes its index.
    let found = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFINDEX, &raw mut request) };
    if found != 0 {
        return Ok(None);
    }
    // SAFETY: the call has written it.
    Ok(Some(unsafe { request.ifr_ifru.ifru_ifindex }))
}

pub(crate) fn control_socket() -> io::Result<OwnedFd> {
    // What a socket does not know itself goes to the interfaces, of any family; and who confines itself has no other.
    socket(libc::AF_UNIX, libc::SOCK_DGRAM)
}

pub(crate) fn socket(family: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: numbers alone.
    let socket = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: the descriptor was made just now, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(result(socket)?) })
}

pub(crate) fn named(interface: &str) -> io::Result<libc::ifreq> {
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

pub(crate) fn result(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_the_kernel_would_cut_is_refused() {
        for name in ["", "an-interface-of-17"] {
            for error in [
                crate::tap::open(name, 1500).unwrap_err(),
                crate::packet::open(name, None, false).unwrap_err(),
                is_up(name).unwrap_err(),
            ] {
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            }
        }
    }

    #[test]
    fn an_interface_that_is_not_there_is_neither_up_nor_down() {
        assert_eq!(is_up("no-such").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
