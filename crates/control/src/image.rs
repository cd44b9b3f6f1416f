//! Files that whole LUs come from and go into: raw ones, and qcow2, which `qemu-img` converts.
//!
//! A qcow2 may name files of the host, which whoever reads it reads as well: those that do are refused here, from their header, before any program looks at them.

use crate::error::{ApiError, Code};
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use utoipa::ToSchema;

/// What converts.
pub const QEMU_IMG: &str = "qemu-img";

/// What a qcow2 begins with.
const MAGIC: [u8; 4] = *b"QFI\xfb";
/// Bytes of its header that are looked at.
const HEADER_BYTES: usize = 80;
/// Of its incompatible features: what it holds is in another file.
const EXTERNAL_DATA: u64 = 1 << 2;

/// How a file keeps what it holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// As it is, with holes or without.
    #[default]
    Raw,
    /// As QEMU does.
    Qcow2,
}

impl Format {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Raw => "raw",
            Format::Qcow2 => "qcow2",
        }
    }
}

/// A file that an LU may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// How it keeps what it holds.
    pub format: Format,
    /// What it holds, in bytes.
    pub bytes: u64,
    /// Device and inode.
    pub identity: (u64, u64),
}

/// Device and inode of a file.
pub(crate) fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Opens a file to read it; whatever took its place is not waited for.
///
/// # Errors
///
/// It is no regular file, or cannot be read.
pub fn open(path: &Path) -> Result<File, ApiError> {
    let failed = |error: io::Error| {
        let what = format!("{}: {error}", path.display());
        ApiError::invalid(what).on("file").help("name a file that the server can read")
    };
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no regular file")));
    }
    Ok(file)
}

/// Looks what a file is. Of one of which nobody says how it keeps what it holds that is found by how it begins.
///
/// # Errors
///
/// It cannot be read, holds nothing, or is a qcow2 that nobody should convert.
pub fn look(path: &Path, format: Option<Format>) -> Result<Found, ApiError> {
    let file = open(path)?;
    let of = |error: io::Error| ApiError::invalid(format!("{}: {error}", path.display()));
    let metadata = file.metadata().map_err(of)?;
    let mut header = [0; HEADER_BYTES];
    let there = HEADER_BYTES.min(usize::try_from(metadata.len()).unwrap_or(HEADER_BYTES));
    file.read_exact_at(&mut header[..there], 0).map_err(of)?;
    let is_qcow2 = header.starts_with(&MAGIC);
    let format = format.unwrap_or(if is_qcow2 { Format::Qcow2 } else { Format::Raw });
    let bytes = match format {
        Format::Raw => metadata.len(),
        Format::Qcow2 if is_qcow2 => qcow2_bytes(&header)
            .map_err(|(what, help)| refused(path, what).on("file").help(help))?,
        Format::Qcow2 => {
            return Err(refused(path, "it is no qcow2").on("format").help("leave the format out"));
        }
    };
    if bytes == 0 {
        return Err(refused(path, "it holds nothing").on("file").help("name another file"));
    }
    Ok(Found { format, bytes, identity: identity(&metadata) })
}

fn refused(path: &Path, what: &str) -> ApiError {
    ApiError::invalid(format!("{}: {what}", path.display()))
}

/// What a qcow2 holds, in bytes; or why it is not converted, and what helps.
fn qcow2_bytes(header: &[u8; HEADER_BYTES]) -> Result<u64, (&'static str, &'static str)> {
    let at = |first: usize| {
        let bytes: [u8; 8] = header[first..first + 8].try_into().expect("it is inside");
        u64::from_be_bytes(bytes)
    };
    let version = (at(4) >> 32) as u32;
    let features = match version {
        2 => 0,
        3 => at(72),
        _ => return Err(("a qcow2 of a version that is not known", "convert it to raw first")),
    };
    let alone = "make it whole first, where you know what it names: `qemu-img convert -O qcow2`";
    if at(8) != 0 {
        return Err(("a qcow2 with a backing file", alone));
    }
    if features & EXTERNAL_DATA != 0 {
        return Err(("a qcow2 whose data is in another file", alone));
    }
    if at(32) >> 32 != 0 {
        return Err(("an encrypted qcow2", "decrypt it first: `qemu-img convert -O qcow2`"));
    }
    Ok(at(24))
}

/// That what converts is installed.
///
/// # Errors
///
/// Says what to install.
pub fn has_qemu_img() -> Result<(), ApiError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    match std::env::split_paths(&path).any(|folder| folder.join(QEMU_IMG).is_file()) {
        true => Ok(()),
        false => Err(no_qemu_img()),
    }
}

pub(crate) fn no_qemu_img() -> ApiError {
    let what = format!("`{QEMU_IMG}` is not there, which converts qcow2");
    let help = "install it (Debian and Ubuntu: qemu-utils; Fedora: qemu-img), or use a raw file";
    ApiError::new(Code::Failed, what).help(help)
}

/// A file beside another that an operation has until it is over.
pub(crate) fn part(file: &Path, operation: u64, what: &str) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".trunkline-{operation}.{what}"));
    file.with_file_name(name)
}

/// Makes a file that nobody else may read; one of that name that an earlier server has left goes.
pub(crate) fn make(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Gives a whole file its name, which nobody has; both are on the disk then.
pub(crate) fn settle(part: &Path, file: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    let here = rustix::fs::CWD;
    match rustix::fs::renameat_with(here, part, here, file, flags) {
        // A file system without it.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            std::fs::hard_link(part, file)?;
            std::fs::remove_file(part)?;
        }
        other => other?,
    }
    let folder = file.parent().unwrap_or(Path::new("/"));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(version: u32, backing: u64, bytes: u64, features: u64) -> Vec<u8> {
        let mut header = [&MAGIC[..], &version.to_be_bytes(), &backing.to_be_bytes()].concat();
        header.extend([0; 8]);
        header.extend(bytes.to_be_bytes());
        header.resize(72, 0);
        header.extend(features.to_be_bytes());
        header
    }

    #[test]
    fn what_a_file_is_is_seen_and_what_names_other_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        let found = |bytes: &[u8], format| {
            std::fs::write(&path, bytes).unwrap();
            let found = look(&path, format).map(|found| (found.format, found.bytes));
            found.map_err(|error| format!("{error}; {}", error.help.as_deref().unwrap_or("")))
        };
        assert_eq!(found(&[7; 5], None), Ok((Format::Raw, 5)));
        assert_eq!(found(&header(3, 0, 1 << 30, 0), None), Ok((Format::Qcow2, 1 << 30)));
        assert_eq!(found(&header(2, 0, 512, u64::MAX), None), Ok((Format::Qcow2, 512)));
        assert_eq!(found(&header(3, 0, 512, 0), Some(Format::Raw)), Ok((Format::Raw, 80)));
        for (bytes, format, why) in [
            (header(3, 104, 512, 0), None, "a backing file"),
            (header(3, 0, 512, EXTERNAL_DATA), None, "in another file"),
            (header(4, 0, 512, 0), None, "not known"),
            (header(3, 0, 0, 0), None, "holds nothing"),
            (MAGIC.to_vec(), None, "not known"),
            (vec![7; 100], Some(Format::Qcow2), "no qcow2"),
            (vec![], None, "holds nothing"),
        ] {
            let refused = found(&bytes, format).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let of = |path: &Path| look(path, None).unwrap_err().to_string();
        assert!(of(folder.path()).contains("no regular file"));
        assert!(of(Path::new("/dev/null")).contains("no regular file"));
        assert!(of(&folder.path().join("none")).contains("No such file"));
    }

    #[test]
    fn a_file_gets_its_name_when_it_is_whole_and_replaces_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("image");
        let part = part(&file, 7, "part");
        assert_eq!(part, folder.path().join("image.trunkline-7.part"));
        std::fs::write(&part, "of an earlier server").unwrap();
        drop(make(&part).unwrap());
        assert_eq!(std::fs::metadata(&part).unwrap().mode() & 0o777, 0o600);
        settle(&part, &file).unwrap();
        assert!(!part.exists() && file.exists());
        drop(make(&part).unwrap());
        assert!(settle(&part, &file).is_err(), "it is there");
    }
}
