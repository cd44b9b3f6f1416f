//! The kinds of volume, the wrappers around them, and [`open`], which builds a volume from its specification.
//!
//! ```text
//! limit ─► delay ─► fault ─► file | ram | null
//! ```
//!
//! A kind is a module that implements [`Kind`] for its part of the specification, and one line of [`kind`]. What changes of it under
//! running clients stands in [`spec::change`]. A wrapper is a function of [`WRAPPERS`]; it goes around any kind.

use std::sync::Arc;

use spec::{FileIdentity, FileSpec, LuSpec, VolumeKind, VolumeSpec};

use crate::FileVolume;
use crate::fail::{Failure, fail};
use crate::files::{Files, Here};
use crate::{Delayed, Faulty, Limited, Volume, VolumeError};

/// What a volume is kept in.
pub(crate) trait Kind {
    /// Whether its settings fit the others, as far as that can be said without looking at a file.
    fn check(&self, spec: &VolumeSpec) -> Result<(), VolumeError>;

    /// Opens it. `spec` was checked.
    fn open(
        &self,
        spec: &VolumeSpec,
        opening: &mut Opening<'_>,
    ) -> Result<Arc<dyn Volume>, VolumeError>;
}

/// The list of kinds.
fn kind(kind: &VolumeKind) -> &dyn Kind {
    match kind {
        VolumeKind::File(file) => file,
        VolumeKind::Ram(ram) => ram,
        VolumeKind::Null(null) => null,
        VolumeKind::Lu(lu) => lu,
    }
}

/// An LU is opened by its pool (`pool_io`), which puts the wrappers around it.
impl Kind for LuSpec {
    fn check(&self, _: &VolumeSpec) -> Result<(), VolumeError> {
        Ok(())
    }

    fn open(&self, spec: &VolumeSpec, _: &mut Opening<'_>) -> Result<Arc<dyn Volume>, VolumeError> {
        let what = format!("is an LU of pool {}, which is not open here", self.pool);
        Err(fail(&spec.name, what).help("open it where its pool is open"))
    }
}

/// Puts something around a volume if its specification says so. The last is the wrapper's place in the stack.
type Wrap = fn(&VolumeSpec, Arc<dyn Volume>, u8) -> Arc<dyn Volume>;

/// The list of wrappers, innermost first.
const WRAPPERS: [Wrap; 3] = [
    |spec, inner, depth| match &spec.fault {
        Some(fault) => Arc::new(Faulty::new(inner, fault, depth)),
        None => inner,
    },
    |spec, inner, depth| match &spec.delay {
        Some(delay) => Arc::new(Delayed::new(inner, delay, depth)),
        None => inner,
    },
    |spec, inner, depth| match &spec.limit {
        Some(limit) if !limit.is_none() => Arc::new(Limited::new(inner, limit, depth)),
        _ => inner,
    },
];

/// The place of limits that are put around a whole volume afterwards: those of a client.
pub const DEPTH_CLIENT: u8 = WRAPPERS.len() as u8;

/// What happens while a volume is being opened, for whoever shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenEvent {
    /// Another process has the file locked; its name, as far as it can be told. Comes once.
    WaitsForLock {
        /// The holder.
        holder: String,
    },
    /// How it is read and written: `direct`, `buffered`, `memory` or `none`. Comes once.
    Access(&'static str),
    /// What it is known by from now on. Comes once for what is kept in a file.
    Identity(FileIdentity),
    /// Something that a user should know and that stops nothing.
    Note(String),
}

/// Who opens a volume, and wants to know how that goes.
pub(crate) struct Opening<'a> {
    pub(crate) files: &'a dyn Files,
    /// Which server it is.
    pub(crate) owner: Option<&'a str>,
    pub(crate) event: &'a mut dyn FnMut(OpenEvent),
    /// It becomes a part of another volume, whose lanes copy nothing themselves, in this slot of several servers'.
    pub(crate) slot: Option<u8>,
    /// Whoever opens it makes up for what it has lost.
    pub(crate) made_up_for: bool,
}

/// Opens a file or device that is to be a part of another volume, without wrappers. One that has lost something fails writes and flushes, unless whoever opens it makes up for that: then says
/// so ([`Files::made_up_for`]) as soon as it need not be known any more. Who has
/// another slot (0 to 63) may have it open at the same time, and nobody else.
///
/// # Errors
///
/// As for [`open`].
pub fn open_part(
    files: &dyn Files,
    owner: Option<&str>,
    spec: &VolumeSpec,
    file: &FileSpec,
    slot: u8,
    made_up_for: bool,
    event: &mut dyn FnMut(OpenEvent),
) -> Result<FileVolume, VolumeError> {
    check(spec)?;
    FileVolume::open(
        spec,
        file,
        &mut Opening { files, owner, event, slot: Some(slot), made_up_for },
    )
}

/// Puts the wrappers of a specification around a volume of a kind that is opened elsewhere.
///
/// # Errors
///
/// Names the setting that does not fit.
pub fn wrapped(
    spec: &VolumeSpec,
    mut volume: Arc<dyn Volume>,
) -> Result<Arc<dyn Volume>, VolumeError> {
    check(spec)?;
    for (wrap, depth) in WRAPPERS.iter().zip(0..) {
        volume = wrap(spec, volume, depth);
    }
    Ok(volume)
}

/// Opens a volume with its wrappers.
///
/// # Errors
///
/// Names the setting or the file and what mends it.
pub fn open(spec: &VolumeSpec) -> Result<Arc<dyn Volume>, VolumeError> {
    open_with(spec, &mut |_| {})
}

/// [`open`], with a report of what it waits for and of notes.
///
/// # Errors
///
/// As for [`open`].
pub fn open_with(
    spec: &VolumeSpec,
    event: &mut dyn FnMut(OpenEvent),
) -> Result<Arc<dyn Volume>, VolumeError> {
    open_for(&Here, None, spec, event)
}

/// [`open_with`], by that way to files, for a server of that name. One life of a server at a time has a volume of one name: the next one waits until the last operation
/// of the one before has ended, be it a read of a file that others may read, too.
///
/// # Errors
///
/// As for [`open`].
pub fn open_for(
    files: &dyn Files,
    owner: Option<&str>,
    spec: &VolumeSpec,
    event: &mut dyn FnMut(OpenEvent),
) -> Result<Arc<dyn Volume>, VolumeError> {
    check(spec)?;
    let mut opening = Opening { files, owner, event, slot: None, made_up_for: false };
    wrapped(spec, kind(&spec.kind).open(spec, &mut opening)?)
}

/// Whether the values fit together, as far as that can be said without looking at a file.
fn check(spec: &VolumeSpec) -> Result<(), VolumeError> {
    let name = &spec.name;
    if !matches!(spec.block_size, 512 | 4096) {
        let what = format!("block_size is {}", spec.block_size);
        return Err(fail(name, what).help("use 512 or 4096"));
    }
    if let Some(size) = spec.bytes
        && (size == 0 || !size.is_multiple_of(u64::from(spec.block_size)))
    {
        let what = format!("size is {size} bytes");
        let help = format!("use a multiple of block_size, {} bytes", spec.block_size);
        return Err(fail(name, what).help(help));
    }
    if let Some(delay) = &spec.delay
        && delay.min_us > delay.max_us
    {
        let what = format!("delay min {} µs is above max {} µs", delay.min_us, delay.max_us);
        return Err(fail(name, what).help("swap them"));
    }
    kind(&spec.kind).check(spec)
}

/// The size of a volume that cannot do without one.
pub(crate) fn size_of(spec: &VolumeSpec, why: &str) -> Result<u64, VolumeError> {
    spec.bytes
        .ok_or_else(|| fail(&spec.name, format!("{why}, but size is not set")).help("set size"))
}
