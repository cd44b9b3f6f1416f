//! The file of a RAM volume: found again, made, or refused.
//!
//! | known | there | the file |
//! |---|---|---|
//! | nothing | one, none | that one; made |
//! | the volume is new | one, none | goes, and a new one is made; made. Where somebody chose the place one that is there is refused |
//! | one of this boot | that one | that one |
//! | one of this boot | another, none | refused: its memory was lost while the host ran |
//! | one of an earlier boot, or of a tmpfs that is gone | one, none | as for a new volume |

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use spec::{FileIdentity, RamSpec, VolumeSpec};

use crate::VolumeError;
use crate::fail::{Failure, fail};
use crate::file::{NewFile, boot, lock, memory, not_special, on_tmpfs, set_blocking};
use crate::files::Files;
use crate::kinds::Opening;

/// Opens and locks the file, made before where it is to be.
pub(super) fn open<'a>(
    spec: &VolumeSpec,
    ram: &RamSpec,
    opening: &mut Opening<'a>,
) -> Result<(File, NewFile<'a>), VolumeError> {
    let (name, path) = (&spec.name, &ram.path);
    let failed = |error: io::Error| {
        let help = "name a file in a tmpfs such as /dev/shm, and set size";
        fail(name, format!("opening {}", path.display())).because(error).help(help)
    };
    let known = match &ram.identity {
        Some(known) if lasts(known, path, opening.files).map_err(failed)? => Some(known),
        _ => None,
    };
    let new = ram.fresh || ram.identity.is_some() && known.is_none();
    if new && !spec.read_only {
        clear(spec, ram, opening)?;
    }
    match std::fs::metadata(path) {
        Ok(found) => not_special(name, path, &found)?,
        Err(error) if error.kind() == ErrorKind::NotFound && known.is_some() => {
            return Err(lost(spec, ram, "its file was removed"));
        }
        _ => {}
    }
    let flags = OFlags::NONBLOCK | if spec.read_only { OFlags::RDONLY } else { OFlags::RDWR };
    let make = !spec.read_only && known.is_none();
    let making = if make { OFlags::CREATE | OFlags::EXCL } else { OFlags::empty() };
    let (file, made) = match opening.files.open(path, flags | making) {
        Ok(file) => (file, make),
        // What came in between is another's.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && !new => {
            (opening.files.open(path, flags).map_err(failed)?, false)
        }
        Err(error) => return Err(failed(error)),
    };
    let found = file.metadata().map_err(failed)?;
    not_special(name, path, &found)?;
    set_blocking(&file).map_err(|error| failed(error.into()))?;
    if !on_tmpfs(&file) {
        drop(NewFile::new(opening.files, made.then_some(path)));
        let help = "choose a path in a tmpfs such as /dev/shm, or use a file volume";
        return Err(fail(name, format!("{} is not in a tmpfs", path.display())).help(help));
    }
    lock(spec, path, &file, Duration::from_millis(ram.lock_wait_ms), opening)?;
    let new = NewFile::new(opening.files, made.then_some(path));
    if let Some(known) = known {
        let found = memory(&file, opening.files).map_err(failed)?;
        if let Some(how) = known.differs(&found, spec.bytes) {
            return Err(lost(spec, ram, &how));
        }
    }
    Ok((file, new))
}

/// Whether the memory of a volume can still be there: neither the host nor the tmpfs began anew.
fn lasts(known: &FileIdentity, path: &Path, files: &dyn Files) -> io::Result<bool> {
    let FileIdentity::Memory { boot: then, tmpfs, .. } = known else { return Ok(true) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let here = std::fs::metadata(folder.unwrap_or(Path::new(".")))?.dev();
    Ok(*then == boot(files)? && *tmpfs == here)
}

/// Removes what is at the place of a new volume, unless somebody has it.
fn clear(spec: &VolumeSpec, ram: &RamSpec, opening: &mut Opening<'_>) -> Result<(), VolumeError> {
    let path = &ram.path;
    let failed = |error: io::Error| {
        fail(&spec.name, format!("removing what was left at {}", path.display()))
            .because(error)
            .help("remove it, or choose another path")
    };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => not_special(&spec.name, path, &found.map_err(failed)?)?,
    }
    if ram.named {
        let what = format!("{} is there already, and would be lost", path.display());
        return Err(fail(&spec.name, what).help("remove it, or choose another path"));
    }
    let left = opening.files.open(path, OFlags::RDWR | OFlags::NONBLOCK).map_err(failed)?;
    lock(spec, path, &left, Duration::from_millis(ram.lock_wait_ms), opening)?;
    opening.files.remove(path).map_err(failed)
}

fn lost(spec: &VolumeSpec, ram: &RamSpec, how: &str) -> VolumeError {
    fail(&spec.name, format!("its memory is lost: {}: {how}", ram.path.display()))
        .help("`trunkline volume recreate` makes an empty one")
}
