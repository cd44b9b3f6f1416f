//! What a file or device is known by: [`spec::FileIdentity`] of an opened one.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags};
use spec::FileIdentity;

use crate::files::Files;

/// File systems whose inode numbers are another file's after the next mount: FAT, exFAT, FUSE, 9P, overlays.
const PASSING_INODES: [i64; 5] = [0x4d44, 0x2011_bab0, 0x6573_5546, 0x0102_1997, 0x794c_7630];

/// What a file or a block device is known by.
pub(crate) fn identity(file: &File, files: &dyn Files) -> io::Result<FileIdentity> {
    let bytes = super::target::size(file)?;
    let meta = file.metadata()?;
    if meta.file_type().is_block_device() {
        return Ok(FileIdentity::Device { id: device_id(meta.rdev(), files), bytes });
    }
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let found = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted)?;
    let born_ns = (found.stx_mask & StatxFlags::BTIME.bits() != 0)
        .then(|| u64::try_from(found.stx_btime.tv_sec).ok())
        .flatten()
        .map(|seconds| seconds * 1_000_000_000 + u64::from(found.stx_btime.tv_nsec));
    // The type's width and sign differ between architectures.
    #[allow(clippy::unnecessary_cast)]
    let passing =
        rustix::fs::fstatfs(file).is_ok_and(|fs| PASSING_INODES.contains(&(fs.f_type as i64)));
    Ok(FileIdentity::File { inode: (!passing).then(|| meta.ino()), born_ns, bytes })
}

/// What a file in a tmpfs is known by as long as the host runs.
pub(crate) fn memory(file: &File, files: &dyn Files) -> io::Result<FileIdentity> {
    let meta = file.metadata()?;
    let (tmpfs, inode, bytes) = (meta.dev(), meta.ino(), meta.len());
    Ok(FileIdentity::Memory { boot: boot(files)?, tmpfs, inode, bytes })
}

/// This boot of the host.
pub(crate) fn boot(files: &dyn Files) -> io::Result<String> {
    let text = files.text(Path::new("/proc/sys/kernel/random/boot_id"))?;
    #[cfg(feature = "sim")]
    let text = format!("{text} {}", memory::sim::boots());
    Ok(text.trim().to_owned())
}

/// The name that a block device has for itself, whatever number the kernel gave it: its WWID, its UUID in the device mapper or
/// of the array, its serial number. A partition's is its disk's, with its number.
fn device_id(device: u64, files: &dyn Files) -> Option<String> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let folder = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let text = |path: PathBuf| {
        let text = files.text(&path).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let disk = |folder: &Path| {
        let names = ["wwid", "device/wwid", "dm/uuid", "md/uuid", "serial"];
        names.into_iter().find_map(|name| text(folder.join(name)))
    };
    match text(folder.join("partition")) {
        Some(number) => Some(format!("{} partition {number}", disk(&folder.join(".."))?)),
        None => disk(&folder),
    }
}

/// What is wrong with a file that was removed, or cut.
const REMOVED: &str =
    "its file was removed; its data lasts until the volume is closed: copy it from the clients now";

/// What became of an opened file, which is to have this length at least. Asks no server of the file system.
pub(crate) fn trouble(file: &File, bytes: Option<u64>) -> Option<String> {
    let found = look(file, StatxFlags::NLINK | StatxFlags::SIZE)?;
    if found.stx_nlink == 0 {
        return Some(REMOVED.to_owned());
    }
    let found = found.stx_size;
    let bytes = bytes.filter(|bytes| found < *bytes)?;
    Some(format!(
        "its file was cut to {found} bytes and had {bytes}: what lay behind that is lost, and reads of it fail"
    ))
}

/// Whether an opened file will not be found again: its last name is gone. Asks no server of the file system.
pub(crate) fn removed(file: &File) -> bool {
    look(file, StatxFlags::NLINK).is_some_and(|found| found.stx_nlink == 0)
}

fn look(file: &File, what: StatxFlags) -> Option<rustix::fs::Statx> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(file, c"", flags, what).ok()
}
