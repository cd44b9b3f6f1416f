//! Files of the server's own: copies of optical media, kept reservations.

use super::Server;
use crate::error::{ApiError, Code};
use crate::model::Desired;
use crate::model::resolve::Wanted;
use fabric::attribute::{Attributes, Object, attr};
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

impl Server {
    /// Takes the copies of new media. One that fails leaves nothing behind.
    pub(super) fn copy_media(&self, now: &Desired, next: &Desired) -> Result<(), ApiError> {
        for (name, set) in
            next[Object::Medium].iter().filter(|(name, _)| !now[Object::Medium].contains_key(*name))
        {
            let source = self.paths().absolute(attr::medium::PATH.of(set).unwrap_or_default());
            let copied = match attr::medium::COPY.value(set) {
                true => {
                    let to = self.paths().medium(name, set);
                    tokio::task::block_in_place(|| copy(&source, &to))
                }
                false => std::fs::metadata(&source).and_then(|file| readable(&file)),
            };
            copied.map_err(|error| {
                let what = format!("medium `{name}`: {}: {error}", source.display());
                ApiError::new(Code::Failed, what)
                    .on("path")
                    .help("name an ISO image that can be read")
            })?;
        }
        Ok(())
    }

    /// The folder in which a data plane keeps reservations. Without it, its units say so themselves.
    pub(super) fn make_folders(&self, wanted: &Wanted) {
        let folders: BTreeSet<&Path> = wanted
            .units
            .values()
            .filter_map(|unit| unit.keep.as_deref().and_then(Path::parent))
            .collect();
        for folder in folders {
            if let Err(error) = std::fs::create_dir_all(folder) {
                tracing::warn!(path = %folder.display(), %error, "no folder for reservations");
            }
        }
    }

    /// Removes copies of media that are gone, and kept reservations of volumes that are gone.
    pub(super) fn forget_media(&self, now: &Desired, next: &Desired) {
        let media = now[Object::Medium]
            .iter()
            .filter(|(name, _)| !next[Object::Medium].contains_key(*name));
        let copies = media.filter(|(_, set)| attr::medium::COPY.value(set));
        let copies =
            copies.map(|(name, set): (&String, &Attributes)| self.paths().medium(name, set));
        let volumes =
            now[Object::Volume].keys().filter(|name| !next[Object::Volume].contains_key(*name));
        let kept = volumes.map(|name| self.paths().reservations(name));
        for path in copies.chain(kept) {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "a file of no more use stays");
                }
                _ => {}
            }
        }
    }
}

/// Only a regular file or a block device: reading another can wait for ever.
fn readable(found: &Metadata) -> io::Result<()> {
    match found.file_type() {
        kind if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        kind if kind.is_file() || kind.is_block_device() => Ok(()),
        _ => Err(io::Error::other("it is neither a regular file nor a block device")),
    }
}

/// A whole copy or none.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    readable(&std::fs::metadata(from)?)?;
    // What took the place meanwhile is not waited for.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut source = File::options().read(true).custom_flags(flags).open(from)?;
    let found = source.metadata()?;
    readable(&found)?;
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let part = to.with_extension("part");
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(found.mode() & 0o777);
    let copied = options
        .open(&part)
        .and_then(|mut copy| io::copy(&mut source, &mut copy).and_then(|_| copy.sync_all()))
        .and_then(|()| std::fs::rename(&part, to));
    if copied.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    copied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_special_file_is_no_medium_and_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let to = folder.path().join("copy.iso");
        assert!(copy(&fifo, &to).unwrap_err().to_string().contains("neither a regular file"));
        assert!(readable(&std::fs::metadata(&fifo).unwrap()).is_err());
        std::fs::write(folder.path().join("disc"), b"disc").unwrap();
        copy(&folder.path().join("disc"), &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"disc");
    }
}
