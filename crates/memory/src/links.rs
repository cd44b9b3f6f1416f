//! What the kernel tells of the interfaces of a network namespace, by itself: which there are, and whether they have a carrier (rtnetlink).
//!
//! Who opens ([`open`]) and who listens ([`Links`]) may be two processes: a socket stays in the namespace where it was made.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

/// The group that hears of links.
const GROUP_LINK: u32 = 1;
/// Bytes of a header (`struct nlmsghdr`), and of what each message about a link begins with (`struct ifinfomsg`).
const HEADER_BYTES: usize = 16;
const LINK_BYTES: usize = 16;
/// What is read at once: the kernel makes its answers no longer.
const ROOM_BYTES: usize = 32 << 10;

/// A socket that hears of links from now on; it never blocks.
///
/// # Errors
///
/// The kernel's.
pub fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    bind(&socket, &SocketAddrNetlink::new(0, GROUP_LINK))?;
    Ok(socket)
}

/// An interface as it was heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Which one of its name: another one has another number.
    pub index: i32,
    /// It is up and has a carrier.
    pub up: bool,
}

/// The links of a namespace.
#[derive(Debug)]
pub struct Links {
    socket: OwnedFd,
    /// By number: the name, whether it is up, and that it was heard of since all were asked for.
    there: BTreeMap<i32, (Vec<u8>, bool, bool)>,
    all: All,
}

/// What is known of all links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum All {
    Asked,
    /// Something was lost meanwhile.
    AskedInVain,
    Known,
}

impl Links {
    /// Listens at a socket, and asks for all that there are now.
    ///
    /// # Errors
    ///
    /// The kernel's.
    pub fn new(socket: OwnedFd) -> io::Result<Links> {
        let mut links = Links { socket, there: BTreeMap::new(), all: All::Known };
        links.ask()?;
        Ok(links)
    }

    /// The interface of this name, if there is one; nothing: that is not known yet.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Option<Link>> {
        let found = self.there.iter().find(|(_, (its, ..))| its == name.as_bytes());
        let found = found.map(|(index, (_, up, _))| Link { index: *index, up: *up });
        (found.is_some() || self.all == All::Known).then_some(found)
    }

    /// Takes everything that was told since. Where the kernel had no room for some of it, all are asked for anew.
    ///
    /// # Errors
    ///
    /// The kernel's: nothing more will be heard by this socket.
    pub fn hear(&mut self) -> io::Result<()> {
        let mut room = vec![0; ROOM_BYTES];
        loop {
            match recv(&self.socket, &mut room[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) | Err(Errno::AGAIN) => return Ok(()),
                Ok((bytes, _)) => self.take(&room[..bytes])?,
                Err(Errno::INTR) => (),
                Err(Errno::NOBUFS) => match self.all {
                    All::Known => self.ask()?,
                    All::Asked | All::AskedInVain => self.all = All::AskedInVain,
                },
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn ask(&mut self) -> io::Result<()> {
        let bytes = (HEADER_BYTES + LINK_BYTES) as u32;
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        let mut message = bytes.to_ne_bytes().to_vec();
        message.extend(libc::RTM_GETLINK.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.resize(bytes as usize, 0);
        send(&self.socket, &message, SendFlags::empty())?;
        self.there.values_mut().for_each(|(.., heard)| *heard = false);
        self.all = All::Asked;
        Ok(())
    }

    fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some((kind, flags, message, rest)) = first(bytes) {
            match kind {
                _ if c_int(flags) & libc::NLM_F_DUMP_INTR != 0 => self.all = All::AskedInVain,
                libc::RTM_NEWLINK | libc::RTM_DELLINK => self.told(kind, message),
                DONE if self.all == All::Asked => {
                    self.there.retain(|_, (.., heard)| *heard);
                    self.all = All::Known;
                }
                DONE => self.ask()?,
                ERROR => {
                    let number = message.first_chunk().map_or(0, |it| -i32::from_ne_bytes(*it));
                    return Err(io::Error::from_raw_os_error(number));
                }
                _ => {}
            }
            bytes = rest;
        }
        Ok(())
    }

    fn told(&mut self, kind: u16, message: &[u8]) {
        let Some((link, attributes)) = message.split_at_checked(LINK_BYTES) else { return };
        let word = |at: usize| link[at..at + 4].try_into().expect("four bytes");
        // A bridge tells of its ports by the same words.
        if link[0] != libc::AF_UNSPEC as u8 {
            return;
        }
        let (index, flags) = (i32::from_ne_bytes(word(4)), i32::from_ne_bytes(word(8)));
        if kind == libc::RTM_DELLINK {
            self.there.remove(&index);
        } else if let Some(name) = name(attributes) {
            let up = libc::IFF_UP | libc::IFF_RUNNING;
            self.there.insert(index, (name, flags & up == up, true));
        }
    }
}

impl AsFd for Links {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const DONE: u16 = libc::NLMSG_DONE as u16;
const ERROR: u16 = libc::NLMSG_ERROR as u16;

fn c_int(flags: u16) -> libc::c_int {
    flags.into()
}

/// The first message: kind, flags, what it says; and what is behind it.
fn first(bytes: &[u8]) -> Option<(u16, u16, &[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = u32::from_ne_bytes(*length) as usize;
    let (kind, rest) = rest.split_first_chunk()?;
    let (flags, _) = rest.split_first_chunk()?;
    let message = bytes.get(HEADER_BYTES..length)?;
    let rest = bytes.get(aligned(length)..).unwrap_or_default();
    Some((u16::from_ne_bytes(*kind), u16::from_ne_bytes(*flags), message, rest))
}

/// The name among the attributes of a link.
fn name(mut attributes: &[u8]) -> Option<Vec<u8>> {
    loop {
        let (length, rest) = attributes.split_first_chunk()?;
        let (kind, _) = rest.split_first_chunk()?;
        let length = usize::from(u16::from_ne_bytes(*length));
        let value = attributes.get(4..length)?;
        if u16::from_ne_bytes(*kind) == libc::IFLA_IFNAME {
            return Some(value.split(|byte| *byte == 0).next()?.to_vec());
        }
        attributes = attributes.get(aligned(length)..)?;
    }
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, family: u8, index: i32, flags: libc::c_int, name: &str) -> Vec<u8> {
        let attribute = |kind: u16, value: &[u8]| {
            let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(value);
            bytes.resize(aligned(bytes.len()), 0);
            bytes
        };
        let mut all = vec![0; HEADER_BYTES];
        all.extend([family, 0, 0, 0]);
        all.extend(index.to_ne_bytes());
        all.extend(flags.to_ne_bytes());
        all.extend([0; 4]);
        all.extend(attribute(1, &[2, 0, 0, 0, 0, 1]));
        all.extend(attribute(libc::IFLA_IFNAME, format!("{name}\0").as_bytes()));
        let length = all.len() as u32;
        all[..4].copy_from_slice(&length.to_ne_bytes());
        all[4..6].copy_from_slice(&kind.to_ne_bytes());
        all
    }

    const RUNS: libc::c_int = libc::IFF_UP | libc::IFF_RUNNING;

    /// Those of this namespace, known.
    fn links() -> Links {
        let mut links = Links::new(open().unwrap()).unwrap();
        while links.all != All::Known {
            links.hear().unwrap();
        }
        links
    }

    #[test]
    fn what_there_is_is_known_before_anything_happens() {
        let links = links();
        assert_eq!(links.get("lo").flatten().map(|link| link.index), Some(1));
        assert_eq!(links.get("no-such"), Some(None));
    }

    #[test]
    fn what_is_not_known_yet_is_not_told_as_missing() {
        let links = Links::new(open().unwrap()).unwrap();
        assert_eq!(links.get("no-such"), None);
    }

    #[test]
    fn a_link_is_told_with_its_carrier_and_another_one_of_its_name_is_another() {
        let mut links = links();
        let is = |index, up| Some(Some(Link { index, up }));
        let all = [
            message(libc::RTM_NEWLINK, 0, 7001, RUNS, "card7"),
            message(libc::RTM_NEWLINK, 0, 7002, libc::IFF_UP, "card8"),
        ];
        links.take(&all.concat()).unwrap();
        assert_eq!((links.get("card7"), links.get("card8")), (is(7001, true), is(7002, false)));
        // It leaves a bridge, and is still there.
        let port = message(libc::RTM_DELLINK, libc::AF_BRIDGE as u8, 7001, RUNS, "card7");
        links.take(&port).unwrap();
        assert_eq!(links.get("card7"), is(7001, true));
        let all = [
            message(libc::RTM_DELLINK, 0, 7001, 0, "card7"),
            message(libc::RTM_NEWLINK, 0, 7003, RUNS, "card7"),
            // It has another name now.
            message(libc::RTM_NEWLINK, 0, 7002, RUNS, "card9"),
        ];
        links.take(&all.concat()).unwrap();
        assert_eq!((links.get("card7"), links.get("card9")), (is(7003, true), is(7002, true)));
        assert_eq!(links.get("card8"), Some(None));
    }

    #[test]
    fn what_was_missed_is_found_by_asking_for_all() {
        let mut links = links();
        links.take(&message(libc::RTM_NEWLINK, 0, 7001, RUNS, "card7")).unwrap();
        links.ask().unwrap();
        while links.all != All::Known {
            links.hear().unwrap();
        }
        assert_eq!(links.get("card7"), Some(None));
        assert!(links.get("lo").flatten().is_some());
    }

    #[test]
    fn a_message_that_is_cut_off_ends_what_is_read() {
        let mut links = links();
        let whole = message(libc::RTM_NEWLINK, 0, 7001, RUNS, "card7");
        for bytes in 0..whole.len() {
            links.take(&whole[..bytes]).unwrap();
        }
        assert_eq!(links.get("card7"), Some(None));
    }
}
