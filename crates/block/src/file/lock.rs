//! The lock that keeps two servers from one file, and a successor from overtaking its predecessor's last operation.
//!
//! A file that is only read is shared by all who read it, so the lock makes no successor wait, and a read can outlive the process that submitted
//! it as a write can: it would arrive in memory that the client has given to something else meanwhile. So a server also marks the file
//! ([`uring::claim`]), at a byte that its name and the volume's make; whoever comes after it under the same names waits for that mark.
//!
//! What is a part of a volume of several servers has a slot for each of them. There the lock of the file is shared, so that it keeps out whoever wants it alone, also a
//! server of a version that knows no slots; beside it each has the byte of its slot, and who only reads has all of these with others who do.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use memory::clock;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use uring::claim;

use crate::fail::{Failure, fail};
use crate::files::Files;
use crate::kinds::{OpenEvent, Opening};
use crate::{VolumeError, VolumeSpec};

/// How often the lock is tried.
const RETRY: Duration = Duration::from_millis(20);

/// Where the bytes of slots begin: behind all marks.
const SLOTS_AT: u64 = 1 << 62;

/// How many slots there are.
const SLOTS: u16 = 64;

/// How often the kernel's list of locks is read until the file is in it.
const READS: usize = 5;

/// Locks the file, exclusively unless the volume is read-only or has a slot; then what an earlier life of the same server has under way is waited for.
pub(crate) fn lock(
    spec: &VolumeSpec,
    path: &Path,
    file: &File,
    wait: Duration,
    opening: &mut Opening<'_>,
) -> Result<(), VolumeError> {
    let hold = match opening.slot {
        _ if spec.read_only => Hold::Readers,
        Some(slot) => Hold::Slot(slot),
        None => Hold::Alone,
    };
    let marks = spec.read_only && !memory::planted("shared-lock");
    let byte = opening.owner.filter(|_| marks).map(|owner| byte(owner, &spec.name));
    let deadline = clock::instant() + wait;
    let mut told = false;
    loop {
        let holder = match attempt(file, hold, byte) {
            Ok(Attempt::Locked) => return Ok(()),
            Ok(_) if memory::planted("no-lock") => return Ok(()),
            Ok(Attempt::Held) => name(file, opening.files),
            Ok(Attempt::Read) => {
                "an earlier process of this server, whose last reads have not ended".to_owned()
            }
            Err(error) => {
                let what = format!("locking {}", path.display());
                return Err(fail(&spec.name, what).because(error));
            }
        };
        if clock::instant() >= deadline {
            let what = format!("{} is still locked by {holder} after {wait:?}", path.display());
            return Err(fail(&spec.name, what).help("end that process, or name another file"));
        }
        if !told {
            told = true;
            (opening.event)(OpenEvent::WaitsForLock { holder });
        }
        clock::sleep(RETRY.min(wait));
    }
}

/// Who may have the file beside this volume.
#[derive(Clone, Copy)]
enum Hold {
    /// Nobody.
    Alone,
    /// Who has another slot.
    Slot(u8),
    /// Who reads, too.
    Readers,
}

enum Attempt {
    Locked,
    /// Another process has the lock.
    Held,
    /// Reads of an earlier life are under way.
    Read,
}

fn attempt(file: &File, hold: Hold, byte: Option<u64>) -> io::Result<Attempt> {
    let operation = match hold {
        Hold::Alone => FlockOperation::NonBlockingLockExclusive,
        Hold::Slot(_) | Hold::Readers => FlockOperation::NonBlockingLockShared,
    };
    match flock(file, operation) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(Attempt::Held),
        Err(error) => return Err(error.into()),
    }
    let free = match hold {
        Hold::Alone => true,
        Hold::Slot(slot) => claim::take(file.as_fd(), SLOTS_AT + u64::from(slot))?,
        Hold::Readers => claim::share(file.as_fd(), SLOTS_AT, SLOTS)?,
    };
    if !free {
        // Who has it is looked for among those who have this lock.
        flock(file, FlockOperation::Unlock)?;
        return Ok(Attempt::Held);
    }
    let Some(byte) = byte else { return Ok(Attempt::Locked) };
    if claim::marked_by_other(file.as_fd(), byte)? {
        return Ok(Attempt::Read);
    }
    claim::mark(file.as_fd(), byte)?;
    Ok(Attempt::Locked)
}

/// Where a server marks a volume's file: far behind any end, and the same in every version of this program (FNV-1a).
fn byte(owner: &str, volume: &str) -> u64 {
    let bytes = owner.bytes().chain([0]).chain(volume.bytes());
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.fold(0xcbf2_9ce4_8422_2325, step) >> 2 | 1 << 61
}

fn name(file: &File, files: &dyn Files) -> String {
    holder(file, files).unwrap_or_else(|| "another process".to_owned())
}

/// Who holds a lock on the file, according to `/proc/locks`.
pub(super) fn holder(file: &File, files: &dyn Files) -> Option<String> {
    let meta = file.metadata().ok()?;
    // "1: FLOCK  ADVISORY  WRITE 1234 fe:00:4711 0 EOF"; the device is that of the inode's file system.
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let inode = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    let of_line = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let at = fields.iter().position(|field| *field == inode)?;
        (fields.get(1) == Some(&"FLOCK")).then_some(())?;
        fields.get(at.checked_sub(1)?).map(|pid| (*pid).to_owned())
    };
    // The kernel gives out its list in pieces and counts lines between them: where others unlock meanwhile, lines are passed over.
    let pid = (0..READS)
        .find_map(|_| files.text(Path::new("/proc/locks")).ok()?.lines().find_map(of_line))?;
    Some(match files.text(Path::new(&format!("/proc/{pid}/comm"))) {
        Ok(name) => format!("process {pid} ({})", name.trim()),
        // Its last operations are still under way in the kernel.
        Err(_) => format!("process {pid}, which has ended and whose last I/O has not"),
    })
}
