//! What tests of whole folders share.

use planner::capture::Captures;
use std::path::{Path, PathBuf};

/// The files of a folder of systems, read in the order of their names; without what is written of them.
pub(crate) fn captures_of(folder: &Path) -> Captures {
    let mut files: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_none_or(|end| end != "toml"));
    files.sort();
    let mut captures = Captures::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        captures.read(&name, &std::fs::read(&file).unwrap(), None);
    }
    captures
}
