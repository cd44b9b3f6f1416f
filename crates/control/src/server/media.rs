//! Files of the server's own: copies of optical media, kept reservations.

use super::Server;
use crate::model::resolve::Wanted;
use crate::model::{Desired, is_on, text};
use crate::refusal::{Code, Refusal};
use fabric::attribute::Attributes;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

impl Server {
    /// Takes the copies of new media. One that fails leaves nothing behind.
    pub(super) fn copy_media(&self, now: &Desired, next: &Desired) -> Result<(), Refusal> {
        for (name, set) in next.media.iter().filter(|(name, _)| !now.media.contains_key(*name)) {
            let source = self.paths().absolute(text(set, "path").unwrap_or_default());
            let copied = match is_on(set, "copy") {
                true => {
                    let to = self.paths().medium(name, set);
                    tokio::task::block_in_place(|| copy(&source, &to))
                }
                false => std::fs::metadata(&source).and_then(|file| match file.is_dir() {
                    true => Err(io::Error::from(io::ErrorKind::IsADirectory)),
                    false => Ok(()),
                }),
            };
            copied.map_err(|error| {
                let what = format!("medium `{name}`: {}: {error}", source.display());
                Refusal::new(Code::Failed, what)
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
        let media = now.media.iter().filter(|(name, _)| !next.media.contains_key(*name));
        let copies = media.filter(|(_, set)| is_on(set, "copy"));
        let copies =
            copies.map(|(name, set): (&String, &Attributes)| self.paths().medium(name, set));
        let volumes = now.volumes.keys().filter(|name| !next.volumes.contains_key(*name));
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

/// A whole copy or none.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let part = to.with_extension("part");
    let copied = std::fs::copy(from, &part)
        .and_then(|_| std::fs::File::open(&part)?.sync_all())
        .and_then(|()| std::fs::rename(&part, to));
    if copied.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    copied
}
