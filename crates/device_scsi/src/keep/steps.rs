//! The steps of replacing a file. In the simulator each may fail, and be the last one of its process; outside of it they are what they call.

use std::fs::File;
use std::io::{Result, Write as _};
use std::path::Path;

/// Stands between any two steps that a crash may separate, for the simulator; otherwise it is nothing.
#[inline(always)]
pub(super) fn crash_point() {
    #[cfg(feature = "sim")]
    memory::sim::point();
}

/// A step is about to be made.
#[inline(always)]
fn begin(of_folder: bool) -> Result<()> {
    crash_point();
    #[cfg(feature = "sim")]
    memory::sim::folder::step(of_folder)?;
    let _ = of_folder;
    Ok(())
}

/// A name is another one's, or nobody's.
#[inline(always)]
fn renamed() {
    #[cfg(feature = "sim")]
    memory::sim::folder::renamed();
}

pub(super) fn create(path: &Path) -> Result<File> {
    begin(false)?;
    let file = File::create(path)?;
    renamed();
    Ok(file)
}

pub(super) fn write(file: &mut File, bytes: &[u8]) -> Result<()> {
    if let Err(error) = begin(false) {
        // Full, or broken, after a part of it.
        file.write_all(&bytes[..bytes.len() / 2])?;
        return Err(error);
    }
    file.write_all(bytes)
}

pub(super) fn sync(file: &File) -> Result<()> {
    begin(false)?;
    if memory::planted("kept-unsynced") {
        return Ok(());
    }
    file.sync_all()?;
    #[cfg(feature = "sim")]
    memory::sim::folder::synced(file);
    Ok(())
}

/// As `to` does it: a hard link, mostly.
pub(super) fn link(from: &Path, to: &Path, by: impl Fn(&Path, &Path) -> Result<()>) -> Result<()> {
    begin(false)?;
    by(from, to)?;
    renamed();
    Ok(())
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    begin(false)?;
    std::fs::rename(from, to)?;
    renamed();
    Ok(())
}

pub(super) fn remove(path: &Path) -> Result<()> {
    crash_point();
    std::fs::remove_file(path)?;
    renamed();
    Ok(())
}

/// What an earlier process has left of a folder survives a power loss from then on.
pub(super) fn settle(folder: &Path, by: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    crash_point();
    if memory::planted("kept-unsettled") {
        return Ok(());
    }
    by(folder)?;
    #[cfg(feature = "sim")]
    memory::sim::folder::folder_synced();
    Ok(())
}

/// What the names in a folder are survives a power loss from then on.
pub(super) fn sync_folder(folder: &Path, by: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    begin(true)?;
    if memory::planted("kept-unsynced") {
        return Ok(());
    }
    by(folder)?;
    #[cfg(feature = "sim")]
    memory::sim::folder::folder_synced();
    Ok(())
}
