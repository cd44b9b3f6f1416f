//! The lock that keeps two servers from one file, and a successor from overtaking its predecessor's last write.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::fail::{Failure, fail};
use crate::{OpenEvent, VolumeError, VolumeSpec};

/// How often the lock is tried.
const RETRY: Duration = Duration::from_millis(20);

/// Locks the file, exclusively unless the volume is read-only.
pub(crate) fn lock(
    spec: &VolumeSpec,
    path: &Path,
    file: &File,
    wait: Duration,
    event: &mut dyn FnMut(OpenEvent),
) -> Result<(), VolumeError> {
    let operation = if spec.read_only {
        FlockOperation::NonBlockingLockShared
    } else {
        FlockOperation::NonBlockingLockExclusive
    };
    let deadline = Instant::now() + wait;
    let mut told = false;
    loop {
        match flock(file, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(error) => {
                let what = format!("locking {}", path.display());
                return Err(fail(&spec.name, what).because(error));
            }
        }
        if Instant::now() >= deadline {
            let holder = name(file);
            let what = format!("{} is still locked by {holder} after {wait:?}", path.display());
            return Err(fail(&spec.name, what).help("end that process, or name another file"));
        }
        if !told {
            told = true;
            event(OpenEvent::WaitsForLock { holder: name(file) });
        }
        std::thread::sleep(RETRY.min(wait));
    }
}

fn name(file: &File) -> String {
    holder(file).unwrap_or_else(|| "another process".to_owned())
}

/// Who holds a lock on the file, according to `/proc/locks`.
pub(super) fn holder(file: &File) -> Option<String> {
    let meta = file.metadata().ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    // "1: FLOCK  ADVISORY  WRITE 1234 fe:00:4711 0 EOF"; the device is that of the inode's file system.
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let inode = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    let pid = locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let at = fields.iter().position(|field| *field == inode)?;
        (fields.get(1) == Some(&"FLOCK")).then_some(())?;
        fields.get(at.checked_sub(1)?).map(|pid| (*pid).to_owned())
    })?;
    Some(match std::fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("process {pid} ({})", name.trim()),
        // Its last operations are still under way in the kernel.
        Err(_) => format!("process {pid}, which has ended and whose last I/O has not"),
    })
}
