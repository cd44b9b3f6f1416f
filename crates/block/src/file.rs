//! [`FileVolume`]: a regular file or a block device, through io_uring.
//!
//! # What happens to a request
//!
//! - **Read, write**: one operation on the registered file. With direct I/O, memory that does not lie as the device wants it goes
//!   through a bounce buffer of a small pool of the lane ([`bounce`]). A transfer that ends early goes round again behind what was
//!   moved; a read or write that moves nothing has hit the end of a file that became shorter, and fails.
//!   In a tmpfs the transfer is a system call on the channel's thread instead, because the ring could only hand it to a worker.
//! - **Flush**: [`flush`]: one `fdatasync` serves all flushes that waited for it.
//! - **Discard, write-zeroes**: `fallocate`, where the target knows it ([`zero`]).
//!
//! A volume's block size is never smaller than the target's unit when the cache is bypassed; a 512-byte volume on a target with
//! 4096-byte sectors goes through the page cache. So the read-modify-write that such a volume needs is the kernel's, under
//! its page lock, and two neighbouring blocks written at once by two lanes cannot undo each other.
//!
//! # Durability
//!
//! With a write cache, a write is durable after the next flush. Without, and with `fua`, it is written with `RWF_DSYNC`. When an
//! `fdatasync` fails, the kernel has already dropped the pages that it could not write, and the next one would succeed: so the
//! first failure, of a flush or of a durable write, poisons the volume, and from then on all writes and flushes fail until it is opened
//! again. A flush is answered only after another look at that. Whichever lane asks learns of a loss: see [`witness`]. What an earlier life of
//! the server lost, and died before it could tell, is known to whoever outlives it ([`crate::Testimony`]): such a volume is poisoned from the start.
//!
//! # A disk that hangs
//!
//! What waits for it in the kernel occupies threads that all volumes of a channel share: [`workers`] bounds how many.
//! `EAGAIN` and `EINTR` are no errors of the medium; such a round is done again.
//!
//! # Who else has the file
//!
//! The volume locks the descriptor that all its I/O goes through (`flock`, shared when read-only). A write can outlive the process
//! that submitted it, and so does the lock then, because the kernel's operation keeps the descriptor open: a successor that gets
//! the lock knows that nothing of its predecessor is still under way. Nothing may hold that descriptor open beyond the volume and its lanes.

mod bounce;
mod flush;
mod identity;
mod lane;
mod lock;
mod target;
mod witness;
mod workers;
mod zero;

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::FallocateFlags;
use spec::{FileSpec, VolumeSpec};
use uring::Ring;

use crate::fail::{Failure, fail};
use crate::files::Testimony;
use crate::kinds::{Kind, OpenEvent, Opening, size_of};
use crate::{Geometry, Lane, LaneId, Seat, Volume, VolumeError};
pub(crate) use identity::{boot, identity, memory, removed, trouble};
pub(crate) use lane::ZEROES;
use lane::{FileLane, Files};
pub(crate) use lock::lock;
use target::Target;
pub(crate) use target::{NewFile, not_special, on_tmpfs, set_blocking};
use witness::Witnesses;

/// A regular file or a block device. See the module for what it promises.
#[derive(Debug)]
pub struct FileVolume {
    name: String,
    shared: Arc<Shared>,
}

/// What the lanes of a volume have in common. Read with each request, written almost never.
#[derive(Debug)]
struct Shared {
    /// Declared first, dropped first: nothing depends on the order, but the lock goes with it.
    file: File,
    bytes: AtomicU64,
    block_size: u32,
    read_only: bool,
    write_cache: bool,
    target: Target,
    witnesses: Arc<Witnesses>,
    /// Whoever outlives this process learns from it what was lost.
    testimony: Testimony,
    /// How many there are.
    lanes: Mutex<u32>,
    /// One change of the size at a time.
    resizing: Mutex<()>,
    /// Something was lost.
    poisoned: AtomicBool,
    /// What the target turned out not to know.
    no_discard: AtomicBool,
    no_punch: AtomicBool,
    no_zero_range: AtomicBool,
}

impl Shared {
    /// Something was lost: from now on writes and flushes fail, and those of later processes until clients have been told.
    #[cold]
    fn poison(&self) {
        // First: whoever sees the other tells it, and may be the last one to do so.
        if let Some(witness) = &self.testimony.witness {
            let noted = memory::cache::note_loss(witness.as_fd(), true);
            debug_assert!(noted.is_ok(), "a note of a loss: {noted:?}");
        }
        self.poisoned.store(true, Ordering::SeqCst);
    }
}

impl Kind for FileSpec {
    fn check(&self, spec: &VolumeSpec) -> Result<(), VolumeError> {
        if self.create { size_of(spec, "create is set").map(drop) } else { Ok(()) }
    }

    fn open(
        &self,
        spec: &VolumeSpec,
        opening: &mut Opening<'_>,
    ) -> Result<Arc<dyn Volume>, VolumeError> {
        let volume = FileVolume::open(spec, self, opening)?;
        (opening.event)(OpenEvent::Access(if volume.direct() { "direct" } else { "buffered" }));
        Ok(Arc::new(volume))
    }
}

impl FileVolume {
    /// Opens, and where the specification says so creates, the file; waits for its lock.
    ///
    /// # Errors
    ///
    /// Names what is wrong with the file or the specification, and what mends it.
    pub(crate) fn open(
        spec: &VolumeSpec,
        file_spec: &FileSpec,
        opening: &mut Opening<'_>,
    ) -> Result<FileVolume, VolumeError> {
        let (file, mut target, new) = target::open(spec, file_spec, opening)?;
        target.inline &= opening.slot.is_none();
        let bytes = capacity(spec, &file, opening)?;
        let known = identity(&file, opening.files)
            .map_err(|error| fail(&spec.name, "looking at its file").because(error))?;
        let no_discard = spec.read_only || !target.discard;
        // In a tmpfs there is nothing to flush, and what nobody writes to loses nothing.
        let (witnesses, testimony) = match spec.read_only || target.inline {
            true => (Witnesses::none(), Testimony::default()),
            false => learn(&file_spec.path, &file, opening).map_err(|error| {
                fail(&spec.name, "opening its file once more, for flushes")
                    .because(error)
                    .help("mount /proc, and raise the limit of open files (LimitNOFILE)")
            })?,
        };
        new.keep(&spec.name, &file)?;
        (opening.event)(OpenEvent::Identity(known));
        Ok(FileVolume {
            name: spec.name.clone(),
            shared: Arc::new(Shared {
                file,
                bytes: AtomicU64::new(bytes),
                block_size: spec.block_size,
                read_only: spec.read_only,
                write_cache: !spec.write_through,
                no_discard: AtomicBool::new(no_discard),
                no_punch: AtomicBool::new(!target.punch),
                target,
                witnesses: Arc::new(witnesses),
                lanes: Mutex::new(0),
                resizing: Mutex::new(()),
                poisoned: AtomicBool::new(testimony.lost && !opening.made_up_for),
                testimony,
                no_zero_range: AtomicBool::new(false),
            }),
        })
    }

    /// Whether the page cache is bypassed.
    #[must_use]
    pub fn direct(&self) -> bool {
        self.shared.target.direct.is_some()
    }

    /// A lane that is a part of another volume's.
    ///
    /// # Errors
    ///
    /// As [`Volume::lane`].
    pub fn lane_at(&self, ring: &mut Ring, id: Seat) -> Result<Box<dyn Lane>, VolumeError> {
        let files = Files::register(&self.shared, ring).map_err(|error| {
            let what = format!("cannot be attached to another channel: {error}");
            fail(&self.name, what).help("use fewer adapters for each channel")
        })?;
        match FileLane::new(self.shared.clone(), files, id) {
            Ok(lane) => Ok(Box::new(lane)),
            Err((files, error)) => {
                files.give_back(ring);
                let what = format!("no memory for its bounce buffers: {error}");
                Err(fail(&self.name, what).help("free some memory"))
            }
        }
    }

    fn resize_file(&self, bytes: u64) -> Result<(), VolumeError> {
        let (name, file) = (&self.name, &self.shared.file);
        let now = self.shared.bytes.load(Ordering::Relaxed);
        // A write that was judged by the old size would make the file longer again. No lane comes while this is held; growing, which may take
        // long, holds up nobody.
        let lanes =
            (bytes < now).then(|| self.shared.lanes.lock().unwrap_or_else(PoisonError::into_inner));
        let used = lanes.as_deref().filter(|count| **count > 0);
        if let Some(count) = used.filter(|_| !memory::planted("cut-running")) {
            let what = format!("is in use by {count} channels and cannot be made smaller");
            return Err(fail(name, what).help("stop its clients' queues first"));
        }
        if let Err(error) = file.set_len(bytes) {
            let what = format!("resizing its file to {bytes} bytes");
            return Err(fail(name, what)
                .because(error)
                .help("see whether the file system is full"));
        }
        if self.shared.target.preallocate
            && bytes > now
            && let Err(error) =
                rustix::fs::fallocate(file, FallocateFlags::empty(), now, bytes - now)
        {
            // The size stands; the space is then taken as it is written.
            if error != rustix::io::Errno::OPNOTSUPP {
                let restored = file.set_len(now);
                let what = format!("preallocating {} bytes (then: {restored:?})", bytes - now);
                return Err(fail(name, what).because(error).help("free some space"));
            }
        }
        self.shared.bytes.store(bytes, Ordering::SeqCst);
        Ok(())
    }

    /// Takes over the size that the file or device has now.
    fn adopt(&self, wanted: u64) -> Result<(), VolumeError> {
        let (name, block) = (&self.name, u64::from(self.shared.block_size));
        let found = target::size(&self.shared.file)
            .map_err(|error| fail(name, "reading its size").because(error))?;
        let bytes = found - found % block;
        if bytes == 0 || wanted != 0 && wanted != bytes {
            let what = format!("cannot be resized to {wanted} bytes: its device has {found}");
            return Err(
                fail(name, what).help("resize the device itself, then repeat with its size")
            );
        }
        let lanes = self.shared.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes < self.shared.bytes.load(Ordering::Relaxed)
            && *lanes > 0
            && !self.shared.target.block_device
        {
            let what = format!("is in use by {lanes} channels, and its file has become shorter");
            return Err(fail(name, what).help("stop its clients' queues first"));
        }
        self.shared.bytes.store(bytes, Ordering::SeqCst);
        Ok(())
    }
}

impl Volume for FileVolume {
    fn geometry(&self) -> Geometry {
        let shared = &self.shared;
        Geometry {
            bytes: shared.bytes.load(Ordering::Relaxed),
            block_size: shared.block_size,
            physical_block_size: shared.target.physical_block_size.max(shared.block_size),
            optimal_io_size: shared.target.optimal_io_size,
            discard: !shared.no_discard.load(Ordering::Relaxed),
            write_zeroes: !shared.read_only,
            read_only: shared.read_only,
            write_cache: shared.write_cache,
        }
    }

    fn trouble(&self) -> Option<String> {
        if self.shared.poisoned.load(Ordering::Relaxed) {
            let what = "a write was lost; writes and flushes fail until its data plane is restarted (`trunkline dataplane restart`)";
            return Some(what.to_owned());
        }
        // While it is resized its file may be shorter than it.
        let resizing = self.shared.resizing.try_lock().is_err();
        let is_file = !self.shared.target.block_device && !resizing;
        let bytes = is_file.then(|| self.shared.bytes.load(Ordering::SeqCst));
        trouble(&self.shared.file, bytes)
    }

    fn lost(&self) -> bool {
        self.shared.poisoned.load(Ordering::Relaxed)
    }

    fn removed(&self) -> bool {
        removed(&self.shared.file)
    }

    fn lane(&self, ring: &mut Ring, id: LaneId) -> Result<Box<dyn Lane>, VolumeError> {
        self.lane_at(ring, id.into())
    }

    /// For a regular file the new size; a block device follows its own size, which must be the one given. 0 takes over the size that
    /// the file or device has now.
    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        let shared = &self.shared;
        let _alone = shared.resizing.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes == 0 || shared.target.block_device {
            return self.adopt(bytes);
        }
        if !bytes.is_multiple_of(u64::from(shared.block_size)) {
            let what = format!("cannot be resized to {bytes} bytes");
            let help = format!("choose a multiple of its block_size, {}", shared.block_size);
            return Err(fail(&self.name, what).help(help));
        }
        if shared.read_only {
            return Err(fail(&self.name, "is read-only and cannot be resized")
                .help("resize its file, then resize it to 0, which takes over the file's size"));
        }
        self.resize_file(bytes)
    }
}

/// Who tells of losses from now on, and then what was lost before.
fn learn(
    path: &Path,
    file: &File,
    opening: &Opening<'_>,
) -> std::io::Result<(Witnesses, Testimony)> {
    let witnesses = Witnesses::open(file, opening.files)?;
    Ok((witnesses, opening.files.testimony(path, file)?))
}

/// The size of an opened file as the volume's: whole blocks, and what the specification says if it says something.
fn capacity(spec: &VolumeSpec, file: &File, opening: &mut Opening<'_>) -> Result<u64, VolumeError> {
    let (name, block) = (&spec.name, u64::from(spec.block_size));
    let found = target::size(file).map_err(|e| fail(name, "reading its size").because(e))?;
    let bytes = found - found % block;
    if bytes == 0 {
        let what = format!("its file has {found} bytes, less than one block of {block}");
        return Err(
            fail(name, what).help("name another file, or truncate this one to the size wanted")
        );
    }
    if let Some(size) = spec.bytes
        && size != bytes
        && !spec.is_to_be_resized(found)
    {
        let what = format!("its file has {found} bytes, but size says {size}");
        return Err(fail(name, what).help("leave size out, correct it, or resize the volume"));
    }
    if bytes != found {
        (opening.event)(OpenEvent::Note(format!(
            "volume {name}: its file has {found} bytes, no multiple of block_size {block}; the last {} are not used",
            found - bytes
        )));
    }
    // One byte that can be read: a file on a dead device, or encrypted without its key, says so now.
    let mut probe = target::Aligned::new();
    if let Err(error) = file.read_at(probe.block(4096.min(bytes)), 0) {
        return Err(fail(name, "its file cannot be read").because(error));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
