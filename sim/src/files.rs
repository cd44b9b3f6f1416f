//! Files as a process gets at them, and as the oracle looks at them.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use block::{Files, Here, Testimony};
use protocol::opener::Witnesses;
use rustix::fs::OFlags;
use uring::sim as kernel;

use crate::client::SECTOR;
use crate::oracle::{Look, Stamp};

/// How the process gets at files: as a data plane does whose control plane keeps witnesses of them, which lives on.
#[derive(Default)]
pub(crate) struct Keeper(Witnesses);

impl Files for Keeper {
    fn open(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let opened = Here.open(path, flags)?;
        kernel::opened(opened.as_fd());
        Ok(opened)
    }

    fn again(&self, file: &File) -> io::Result<File> {
        let opened = Here.again(file)?;
        kernel::opened(opened.as_fd());
        Ok(opened)
    }

    fn text(&self, path: &Path) -> io::Result<String> {
        if path == Path::new("/proc/sys/kernel/random/boot_id") {
            return Ok(format!("{:032x}", memory::sim::boots()));
        }
        Here.text(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Here.remove(path)
    }

    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        Here.sync_folder_of(path)
    }

    fn testimony(&self, path: &Path, file: &File) -> io::Result<Testimony> {
        let (lost, witness) = self.0.of(path, &file.try_clone()?.into())?;
        // A new one hears of errors from now on.
        memory::cache::has_lost(witness.as_fd())?;
        Ok(Testimony { lost, witness: Some(witness) })
    }

    fn made_up_for(&self, path: &Path) -> io::Result<()> {
        self.0.told(path);
        Ok(())
    }
}

/// Looks at the file behind the volume, when it is there.
pub(crate) fn medium(path: &Path) -> Look {
    let (path, file) = (path.to_owned(), std::cell::OnceCell::new());
    Box::new(move |sectors| {
        let count = (sectors.end - sectors.start) as usize;
        if file.get().is_none()
            && let Ok(opened) = File::open(&path)
        {
            file.set(opened).expect("it was not there");
        }
        let mut bytes = vec![0; count * SECTOR as usize];
        let read = |file: &File| file.read_at(&mut bytes, sectors.start * SECTOR).ok();
        let there = file.get().and_then(read).unwrap_or(0);
        let stamp = |at: usize| {
            let whole = (at + 1) * SECTOR as usize <= there;
            let word = bytes[at * SECTOR as usize..][..8].try_into().expect("8 bytes");
            whole.then_some(Stamp::from_le_bytes(word))
        };
        (0..count).map(stamp).collect()
    })
}

/// How long a file is, in sectors. It has no part of one.
pub(crate) fn sectors(path: &Path) -> Result<u64, String> {
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    match found.len().is_multiple_of(SECTOR) {
        true => Ok(found.len() / SECTOR),
        false => Err(format!("the file has {} bytes", found.len())),
    }
}
