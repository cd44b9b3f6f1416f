//! The control file of two partners: the tokens of their VLANs, and what each says of itself (`docs/formats/control-file.md`).
//!
//! Locks belong to the open file (`F_OFD_SETLK`), which is the data plane's alone: they go when it ends, however it ends, and stay while it is stopped. A beacon that is
//! read while it is written has another sum, and counts as not heard.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use block::Files;
use rustix::fs::OFlags;
use rustix::io::Errno;
use switch::Vid;
use switch::failover::{Beacon, Mode, VidSet};
use uring::claim;

const PLACES: [u64; 2] = [8192, 12288];
const BYTES: usize = 1064;
const MAGIC: [u8; 8] = *b"TLSEA\0\0\x01";

/// What is known of the partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// It said something new.
    Beacon(Beacon),
    /// It is there, and has said nothing since.
    Nothing,
    /// Nobody is there.
    Nobody,
}

/// A partner's hold on the control file.
#[derive(Debug)]
pub(super) struct Control {
    file: File,
    place: usize,
    number: u64,
    /// Identity and number of the last beacon that was heard.
    heard: Option<(u64, u64)>,
}

impl Control {
    /// Opens the file, which is made if it is not there, and takes a place in it.
    pub(super) fn open(files: &dyn Files, path: &Path) -> io::Result<Control> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let opened = files.open(path, flags).or_else(|error| {
            if error.raw_os_error() != Some(Errno::NOENT.raw_os_error()) {
                return Err(error);
            }
            let made = files.open(path, flags | OFlags::CREATE | OFlags::EXCL);
            // The partner was faster.
            made.or_else(|_| files.open(path, flags))
        });
        let file = opened?;
        for (place, byte) in PLACES.into_iter().enumerate() {
            if claim::take(file.as_fd(), byte)? {
                return Ok(Control { file, place, number: 0, heard: None });
            }
        }
        Err(io::Error::other("two others have it already: a control file is for one pair"))
    }

    /// The file was removed: who opens its path next has another one.
    pub(super) fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|meta| meta.nlink() == 0)
    }

    /// Those of the tokens that are to be had. What the system refuses is not.
    pub(super) fn take(&self, vids: &VidSet) -> VidSet {
        let take = |vid: &Vid| claim::take(self.file.as_fd(), vid.get().into()).unwrap_or(false);
        vids.iter().copied().filter(take).collect()
    }

    pub(super) fn give_back(&self, vids: &VidSet) {
        // One that cannot be given back stays: nobody else bridges it then.
        vids.iter().for_each(|vid| drop(claim::free(self.file.as_fd(), vid.get().into())));
    }

    /// A beacon that cannot be written is not heard.
    pub(super) fn say(&mut self, beacon: &Beacon) {
        self.number += 1;
        let _ = self.file.write_all_at(&encode(beacon, self.number), PLACES[self.place]);
    }

    pub(super) fn hear(&mut self) -> Heard {
        let other = PLACES[1 - self.place];
        if !claim::marked_by_other(self.file.as_fd(), other).unwrap_or(true) {
            return Heard::Nobody;
        }
        let mut bytes = [0; BYTES];
        let read = self.file.read_exact_at(&mut bytes, other);
        let Some((beacon, number)) = read.ok().and_then(|()| decode(&bytes)) else {
            return Heard::Nothing;
        };
        let known = self.heard.replace((beacon.identity, number));
        // What a partner of before has left is not this one's.
        let first = known.is_none_or(|(identity, _)| identity != beacon.identity);
        match known {
            Some(known) if !first && number > known.1 => Heard::Beacon(beacon),
            _ => Heard::Nothing,
        }
    }
}

pub(super) fn encode(beacon: &Beacon, number: u64) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes[16..24].copy_from_slice(&beacon.identity.to_le_bytes());
    let mode = Mode::ALL.iter().position(|mode| *mode == beacon.mode).expect("it is one of them");
    // One of before says nothing of addresses, and asks for none.
    let bits = [u8::from(beacon.fit), u8::from(!beacon.reaches)];
    bytes[24..28].copy_from_slice(&[mode as u8, beacon.priority, bits[0], bits[1]]);
    for (vids, at) in [(&beacon.has, 32), (&beacon.claims, 544)] {
        for vid in vids {
            bytes[at + usize::from(vid.get() / 8)] |= 1 << (vid.get() % 8);
        }
    }
    let sum = sum(&bytes[..BYTES - 8]);
    bytes[BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

pub(super) fn decode(bytes: &[u8; BYTES]) -> Option<(Beacon, u64)> {
    let number = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("8 bytes"));
    if bytes[..8] != MAGIC || number(BYTES - 8) != sum(&bytes[..BYTES - 8]) {
        return None;
    }
    let vids = |at: usize| -> VidSet {
        let has = |vid: &Vid| bytes[at + usize::from(vid.get() / 8)] >> (vid.get() % 8) & 1 != 0;
        (1..4095).filter_map(Vid::new).filter(has).collect()
    };
    let beacon = Beacon {
        identity: number(16),
        mode: *Mode::ALL.get(usize::from(bytes[24]))?,
        priority: bytes[25],
        fit: bytes[26] != 0,
        reaches: bytes[27] == 0,
        has: vids(32),
        claims: vids(544),
    };
    Some((beacon, number(8)))
}

fn sum(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::Here;

    fn vids(numbers: &[u16]) -> VidSet {
        numbers.iter().copied().filter_map(Vid::new).collect()
    }

    fn beacon(identity: u64) -> Beacon {
        let (has, claims) = (vids(&[1, 20, 4094]), vids(&[20]));
        Beacon {
            identity,
            mode: Mode::Sharing,
            priority: 3,
            fit: true,
            reaches: false,
            has,
            claims,
        }
    }

    #[test]
    fn a_beacon_is_read_as_it_was_written_and_not_if_a_bit_is_another() {
        let bytes = encode(&beacon(7), 9);
        assert_eq!(decode(&bytes), Some((beacon(7), 9)));
        for at in 0..BYTES {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(decode(&other), None, "byte {at}");
        }
    }

    #[test]
    fn partners_hear_each_other_and_no_token_is_had_twice() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("net0");
        let open = || Control::open(&Here, &path);
        let (mut one, mut other) = (open().expect("made"), open().expect("there"));
        assert!(open().is_err(), "a third");
        assert_eq!(one.hear(), Heard::Nothing);
        for _ in 0..2 {
            other.say(&beacon(2));
            let _ = one.hear();
        }
        other.say(&beacon(2));
        assert_eq!(one.hear(), Heard::Beacon(beacon(2)));
        assert_eq!(one.hear(), Heard::Nothing, "it is an old one");
        assert_eq!(one.take(&vids(&[1, 20])), vids(&[1, 20]));
        assert_eq!(other.take(&vids(&[20, 30])), vids(&[30]));
        one.give_back(&vids(&[20]));
        assert_eq!(other.take(&vids(&[20])), vids(&[20]));
        // Its end frees all that it had; its last beacon stays, and says nothing.
        drop(other);
        assert_eq!(one.hear(), Heard::Nobody);
        assert_eq!(one.take(&vids(&[20, 30])), vids(&[20, 30]));
        let _next = open().expect("the place is free");
        assert_eq!(one.hear(), Heard::Nothing);
        assert!(!one.is_removed());
        std::fs::remove_file(&path).expect("remove");
        assert!(one.is_removed());
    }
}
