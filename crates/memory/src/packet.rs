//! Packet sockets (packet(7)) of an interface: what is written to one leaves by it, and what comes by it is read.
//!
//! Before each frame is the net header of virtio ([`HEADER_BYTES`]): checksums and segmentation pass as they are. A tag that a frame came with the kernel keeps beside it:
//! [`Tag::of`].

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use crate::interface::{control_socket, flags, index, result, socket};

pub use crate::tap::HEADER_BYTES;

/// Bytes of what comes with a frame (`struct tpacket_auxdata`) in a control message.
const AUXDATA_BYTES: usize = 20;
/// Room for frames that wait to be read, and for those that the interface has not sent yet: a few hundred of 64 KiB would not fit otherwise.
const SOCKET_BYTES: libc::c_int = 8 << 20;

// Of `linux/if_packet.h`.
const PACKET_FANOUT: libc::c_int = 18;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const PACKET_FANOUT_HASH: libc::c_int = 0;
const PACKET_FANOUT_FLAG_UNIQUEID: libc::c_int = 0x2000;
const PACKET_FANOUT_FLAG_IGNORE_OUTGOING: libc::c_int = 0x4000;
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
const PACKET_ADD_MEMBERSHIP: libc::c_int = 1;
const PACKET_AUXDATA: libc::c_int = 8;
const PACKET_VNET_HDR_SZ: libc::c_int = 24;
const PACKET_MR_PROMISC: u16 = 1;

/// A packet socket of an interface that is up; it never blocks, hears everything that comes by the interface, whomever it is for, and nothing that leaves by it. With `beside`,
/// another one of the same interface that was opened to be `shared`, both share what comes: frames of one flow go to one of them.
///
/// # Errors
///
/// The kernel's: EPERM, who has no `CAP_NET_RAW`; ENODEV, there is no such interface; ENETDOWN, it is not up; EMEDIUMTYPE, it is no Ethernet
/// interface; ENOPROTOOPT, the kernel is older than Linux 6.5.
pub fn open(interface: &str, beside: Option<BorrowedFd<'_>>, shared: bool) -> io::Result<OwnedFd> {
    let asks = control_socket()?;
    let missing = || io::Error::from_raw_os_error(libc::ENODEV);
    let index = index(interface, &asks)?.ok_or_else(missing)?;
    // For no protocol: nothing comes before all is set.
    let packets = socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK)?;
    if flags(interface, &asks)? & libc::IFF_UP == 0 {
        return Err(io::Error::from_raw_os_error(libc::ENETDOWN));
    }
    set(&packets, PACKET_VNET_HDR_SZ, &(HEADER_BYTES as libc::c_int))?;
    set(&packets, PACKET_AUXDATA, &1)?;
    set(&packets, PACKET_IGNORE_OUTGOING, &1)?;
    for (forced, plain) in
        [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
        // Without CAP_NET_ADMIN as much as the system lets everybody have.
        set_of(&packets, libc::SOL_SOCKET, forced, &SOCKET_BYTES)
            .or_else(|_| set_of(&packets, libc::SOL_SOCKET, plain, &SOCKET_BYTES))?;
    }
    hear_all(&packets, index)?;
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: a plain structure of numbers, for which zeroes are values.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    (address.sll_protocol, address.sll_ifindex) = (protocol, index);
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address lives through both calls, and the second one writes no more than its length.
    unsafe {
        result(libc::bind(packets.as_raw_fd(), (&raw const address).cast(), length))?;
        let own = (&raw mut address).cast();
        result(libc::getsockname(packets.as_raw_fd(), own, &raw mut length))?;
    }
    if address.sll_hatype != libc::ARPHRD_ETHER {
        return Err(io::Error::from_raw_os_error(libc::EMEDIUMTYPE));
    }
    let ignore = PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
    match beside {
        Some(other) => {
            let group = group_of(other)? & 0xffff;
            set(&packets, PACKET_FANOUT, &(group | ignore << 16))?;
        }
        None if shared => {
            let alone = ignore | PACKET_FANOUT_FLAG_UNIQUEID;
            set(&packets, PACKET_FANOUT, &(alone << 16))?;
        }
        None => {}
    }
    Ok(packets)
}

/// Whomever it is for: everything comes in that passes the interface, for as long as somebody has the socket.
pub(crate) fn hear_all(packets: &OwnedFd, index: libc::c_int) -> io::Result<()> {
    let [a, b, c, d] = index.to_ne_bytes();
    // A `struct packet_mreq`: index, type, length and address.
    let mut membership = [0_u16; 8];
    (membership[0], membership[1]) = (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d]));
    membership[2] = PACKET_MR_PROMISC;
    set(packets, PACKET_ADD_MEMBERSHIP, &membership)
}

fn set<T>(socket: &OwnedFd, option: libc::c_int, value: &T) -> io::Result<()> {
    set_of(socket, libc::SOL_PACKET, option, value)
}

fn set_of<T>(
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let (value, length) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the value lives through the call, which reads so many bytes of it.
    result(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) }).map(drop)
}

/// The group of sockets that it shares frames with, and how.
fn group_of(socket: BorrowedFd<'_>) -> io::Result<libc::c_int> {
    let (mut group, mut length) = (0, size_of::<libc::c_int>() as libc::socklen_t);
    let value = (&raw mut group).cast();
    let (level, option) = (libc::SOL_PACKET, PACKET_FANOUT);
    // SAFETY: both live through the call, which writes no more than the length says.
    result(unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), level, option, value, &raw mut length)
    })?;
    Ok(group)
}

/// A tag that the kernel has taken out of a frame (802.1Q, 802.1ad).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// Which kind.
    pub tpid: u16,
    /// Priority, drop eligible, VLAN.
    pub tci: u16,
}

impl Tag {
    /// The tag in the control messages that came with a frame, if it had one.
    #[must_use]
    pub fn of(control: &[u8]) -> Option<Tag> {
        let word = |at: usize| Some(i32::from_ne_bytes(*control.get(at..)?.first_chunk()?));
        // A `struct cmsghdr` (length, level, type), and behind it the data. There is one: nothing else was asked for.
        const HEADER: usize = size_of::<libc::cmsghdr>();
        const LEVEL: usize = std::mem::offset_of!(libc::cmsghdr, cmsg_level);
        const TYPE: usize = std::mem::offset_of!(libc::cmsghdr, cmsg_type);
        if (word(LEVEL)?, word(TYPE)?) != (libc::SOL_PACKET, PACKET_AUXDATA) {
            return None;
        }
        let data: &[u8; AUXDATA_BYTES] = control.get(HEADER..)?.first_chunk()?;
        let status = u32::from_ne_bytes(*data.first_chunk()?);
        let half = |at: usize| u16::from_ne_bytes([data[at], data[at + 1]]);
        let known = status & TP_STATUS_VLAN_TPID_VALID != 0;
        let tpid = if known { half(18) } else { libc::ETH_P_8021Q as u16 };
        (status & TP_STATUS_VLAN_VALID != 0).then_some(Tag { tpid, tci: half(16) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(kind: libc::c_int, status: u32, tci: u16, tpid: u16) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<libc::cmsghdr>()];
        bytes[8..12].copy_from_slice(&libc::SOL_PACKET.to_ne_bytes());
        bytes[12..16].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend(status.to_ne_bytes());
        bytes.extend([0; 12]);
        bytes.extend(tci.to_ne_bytes());
        bytes.extend(tpid.to_ne_bytes());
        bytes
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_tag_beside_a_frame_is_found() {
        let customer = Some(Tag { tpid: 0x8100, tci: 0x6014 });
        assert_eq!(Tag::of(&control(PACKET_AUXDATA, 0x10, 0x6014, 0)), customer);
        let service = Some(Tag { tpid: 0x88a8, tci: 5 });
        assert_eq!(Tag::of(&control(PACKET_AUXDATA, 0x50, 5, 0x88a8)), service);
        for without in [control(PACKET_AUXDATA, 1, 5, 0x8100), control(9, 0x50, 5, 0x8100)] {
            assert_eq!(Tag::of(&without), None);
        }
        let whole = control(PACKET_AUXDATA, 0x50, 5, 0x8100);
        assert!((0..whole.len()).all(|known| Tag::of(&whole[..known]).is_none()));
    }

    #[test]
    fn an_interface_that_is_not_there_is_told() {
        let error = open("no-such", None, false).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
