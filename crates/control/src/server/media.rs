//! Files of the server's own: copies of optical media, kept reservations, memory of RAM volumes.

use super::shared::Server;
use crate::error::{ApiError, Code};
use crate::model::Desired;
use crate::model::map::Difference;
use crate::model::resolve::{Wanted, own_file};
use crate::operation::{Edit, Operation, Work};
use crate::paths::Paths;
use fabric::attribute::{Attributes, Object, attr};
use protocol::planted;
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How much is copied between two looks whether somebody has cancelled it.
const ROUND_BYTES: u64 = 4 << 20;

/// New media of which a copy is taken.
pub(super) fn to_copy<'a>(
    now: &'a Desired,
    next: &'a Desired,
) -> impl Iterator<Item = (&'a String, &'a Attributes)> {
    new_media(now, next).filter(|(_, set)| attr::medium::COPY.value(set))
}

fn new_media<'a>(
    now: &'a Desired,
    next: &'a Desired,
) -> impl Iterator<Item = (&'a String, &'a Attributes)> {
    let new = |difference: &Difference<Attributes>| difference.before.is_none();
    let differences = now.differences(Object::Medium, next).into_iter().filter(new);
    differences.filter_map(|difference| next[Object::Medium].get_key_value(difference.name()))
}

/// The new media of an operation of which a copy is taken.
fn copies(operation: &Operation) -> impl Iterator<Item = (&String, &Attributes)> {
    let edits = match &operation.work {
        Work::Change { edits, .. } => edits.as_slice(),
        Work::Restart { .. } | Work::Detach { .. } | Work::Scrub { .. } | Work::Image(_) => &[],
    };
    let new = edits.iter().filter(|edit| edit.object == Object::Medium && edit.before.is_none());
    let new = new.filter_map(|edit| Some((&edit.name, edit.after.as_ref()?)));
    new.filter(|(_, set)| attr::medium::COPY.value(set))
}

/// What an operation has copied of a medium, until it is the medium's.
fn part(paths: &Paths, operation: u64, name: &str, set: &Attributes) -> PathBuf {
    paths.medium(name, set).with_extension(format!("{operation}.part"))
}

fn source(paths: &Paths, set: &Attributes) -> PathBuf {
    paths.absolute(attr::medium::PATH.of(set).unwrap_or_default())
}

fn failed(name: &str, source: &Path, error: &io::Error) -> ApiError {
    let what = format!("medium `{name}`: {}: {error}", source.display());
    ApiError::new(Code::Failed, what).on("path").help("name an ISO image that can be read")
}

/// Takes the copies of an operation's media.
pub(super) fn copy_all(
    paths: &Paths,
    operation: &Operation,
    stopped: impl Fn() -> bool,
    progress: impl Fn(u64, u64),
) -> Result<(), ApiError> {
    let (mut sources, mut all) = (Vec::new(), 0);
    for (name, set) in copies(operation) {
        let source = source(paths, set);
        let opened = open(&source).map_err(|error| failed(name, &source, &error))?;
        all += opened.1;
        sources.push((name, set, source, opened));
    }
    let mut done = 0;
    for (name, set, source, (file, bytes)) in sources {
        let to = part(paths, operation.id, name, set);
        let copied =
            copy(file, &to, &stopped, |copied| progress(done + copied, all.max(done + copied)));
        copied.map_err(|error| failed(name, &source, &error))?;
        done += bytes;
    }
    Ok(())
}

/// Makes the copies of an operation the media's own.
pub(super) fn take_copies(
    paths: &Paths,
    operation: u64,
    now: &Desired,
    next: &Desired,
) -> Result<(), ApiError> {
    for (name, set) in to_copy(now, next) {
        let (part, to) = (part(paths, operation, name, set), paths.medium(name, set));
        std::fs::rename(&part, &to).map_err(|error| {
            let what = format!("medium `{name}`: {}: {error}", to.display());
            ApiError::new(Code::Failed, what).help("try again")
        })?;
    }
    Ok(())
}

/// Removes what an operation has copied and not made a medium's own.
pub(super) fn forget_parts(paths: &Paths, operation: &Operation) {
    for (name, set) in copies(operation) {
        remove(&part(paths, operation.id, name, set));
    }
}

impl Server {
    /// That new media that are used in their place can be read.
    pub(super) fn media_are_there(&self, now: &Desired, next: &Desired) -> Result<(), ApiError> {
        for (name, set) in new_media(now, next) {
            let source = source(&self.paths, set);
            let found = std::fs::metadata(&source).and_then(|file| readable(&file));
            found.map_err(|error| failed(name, &source, &error))?;
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

    /// Removes the files of the server's own that objects had which are gone: copies of media, kept reservations and memory of volumes. A file
    /// that the user chose stays.
    pub(super) fn forget<'a>(&self, objects: impl Iterator<Item = (&'a Edit, &'a Attributes)>) {
        let desired = self.desired();
        for (Edit { object, name, .. }, set) in objects {
            if desired[*object].contains_key(name) || planted("file-left") {
                continue;
            }
            match object {
                Object::Medium if attr::medium::COPY.value(set) => {
                    remove(&self.paths.medium(name, set));
                }
                Object::Volume => {
                    remove(&self.paths.reservations(name));
                    if let Some(path) = own_file(name, set, &self.paths) {
                        remove(&path);
                    }
                }
                _ => {}
            }
        }
    }
}

pub(super) fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "a file of no more use stays");
        }
        _ => {}
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

/// What is to be copied, and its length in bytes.
fn open(from: &Path) -> io::Result<(File, u64)> {
    readable(&std::fs::metadata(from)?)?;
    // What took the place meanwhile is not waited for.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut source = File::options().read(true).custom_flags(flags).open(from)?;
    readable(&source.metadata()?)?;
    let bytes = source.seek(SeekFrom::End(0))?;
    source.rewind()?;
    Ok((source, bytes))
}

/// A whole copy or none.
fn copy(
    mut source: File,
    to: &Path,
    stopped: impl Fn() -> bool,
    progress: impl Fn(u64),
) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = File::options();
    let mode = source.metadata()?.mode() & 0o777;
    let mut copy = options.write(true).create(true).truncate(true).mode(mode).open(to)?;
    let mut done = 0;
    progress(done);
    loop {
        if stopped() {
            return Err(io::Error::other("the copy was stopped"));
        }
        let copied = io::copy(&mut (&mut source).take(ROUND_BYTES), &mut copy)?;
        if copied == 0 {
            return copy.sync_all();
        }
        done += copied;
        progress(done);
    }
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
        assert!(open(&fifo).unwrap_err().to_string().contains("neither a regular file"));
        assert!(readable(&std::fs::metadata(&fifo).unwrap()).is_err());
        let disc = folder.path().join("disc");
        let bytes = vec![7; 2 * ROUND_BYTES as usize + 5];
        std::fs::write(&disc, &bytes).unwrap();
        let (source, length) = open(&disc).unwrap();
        assert_eq!(length, bytes.len() as u64);
        copy(source, &to, || false, |_| {}).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), bytes);
        let rounds = std::cell::Cell::new(0);
        let stop = || rounds.replace(rounds.get() + 1) == 1;
        let (source, _) = open(&disc).unwrap();
        assert!(copy(source, &to, stop, |_| {}).is_err());
        assert_eq!(std::fs::metadata(&to).unwrap().len(), ROUND_BYTES, "stopped after a round");
    }
}
