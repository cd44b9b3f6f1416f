//! Making a ring: flags from the newest to the oldest, required features, restrictions, limits.

use std::io;
use std::time::Duration;

use io_uring::IoUring;
use io_uring::register::Restriction;
use io_uring::squeue::Flags;

use crate::error::RingError;
use crate::op;

/// How a ring is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingConfig {
    /// Submission entries; a power of two, otherwise the kernel rounds up.
    pub entries: u32,
    /// Completion entries: at least as many as operations can be in flight, or completions take
    /// the slow way through the kernel's overflow list. At least `entries`.
    pub cq_entries: u32,
    /// Slots of the table of registered files.
    pub fixed_files: u32,
    /// Let the kernel refuse everything that this crate does not do, and every file that is not
    /// registered. For tests of this crate alone there is a reason to turn it off.
    pub restrict: bool,
}

impl Default for RingConfig {
    /// 256 submissions, 4096 completions, 256 files, restricted.
    fn default() -> RingConfig {
        RingConfig { entries: 256, cq_entries: 4096, fixed_files: 256, restrict: true }
    }
}

/// Threads that the kernel may start for one channel's punted operations: bounded ones are file
/// I/O that cannot be done without blocking (buffered writes, `fdatasync`, `fallocate`), and those that
/// use such files add theirs ([`crate::Ring::add_workers`]); unbounded ones are the rest, of which
/// there is next to nothing here. Without a limit the kernel takes four times the CPUs and the process limit.
pub(crate) const WORKERS_BOUNDED: u32 = 4;
pub(crate) const WORKERS_UNBOUNDED: u32 = 4;

/// A set of set-up flags. `SUBMIT_ALL`, `CQSIZE` and `CLAMP` are always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// Linux 6.6: `SINGLE_ISSUER`, `DEFER_TASKRUN`, `TASKRUN_FLAG`, `NO_SQARRAY`.
    NoSqArray,
    /// Linux 6.1: `SINGLE_ISSUER`, `DEFER_TASKRUN`, `TASKRUN_FLAG`.
    DeferTaskrun,
    /// Linux 6.0: `SINGLE_ISSUER`, `COOP_TASKRUN`, `TASKRUN_FLAG`.
    SingleIssuer,
    /// Linux 5.19: `COOP_TASKRUN`, `TASKRUN_FLAG`.
    CoopTaskrun,
}

impl Rung {
    /// The order in which the sets are tried.
    pub const ALL: [Rung; 4] =
        [Rung::NoSqArray, Rung::DeferTaskrun, Rung::SingleIssuer, Rung::CoopTaskrun];

    fn build(self, config: &RingConfig) -> io::Result<IoUring> {
        let mut builder = IoUring::builder();
        builder.setup_submit_all().setup_clamp();
        builder.setup_cqsize(config.cq_entries.max(config.entries)).setup_taskrun_flag();
        match self {
            Rung::NoSqArray => {
                builder.setup_single_issuer().setup_defer_taskrun().setup_no_sqarray()
            }
            Rung::DeferTaskrun => builder.setup_single_issuer().setup_defer_taskrun(),
            Rung::SingleIssuer => builder.setup_single_issuer().setup_coop_taskrun(),
            Rung::CoopTaskrun => builder.setup_coop_taskrun(),
        };
        if config.restrict {
            builder.setup_r_disabled();
        }
        builder.dontfork().build(config.entries.max(1))
    }
}

/// How often, and after which pause, a ring is tried again that there is no memory for. Rings of an ordinary user count against
/// the locked-memory limit, and one that was dropped is taken from the count a little later, when the kernel has wound it up.
const MEMORY_RETRIES: u32 = 100;
const MEMORY_PAUSE: Duration = Duration::from_millis(10);

/// Makes a ring, waiting a moment for the memory of those that were dropped just now.
fn build_patiently(rung: Rung, config: &RingConfig) -> io::Result<IoUring> {
    for _ in 0..MEMORY_RETRIES {
        match rung.build(config) {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                std::thread::sleep(MEMORY_PAUSE);
            }
            result => return result,
        }
    }
    rung.build(config)
}

/// Tries the sets from `first` on; a set that the kernel does not know is `EINVAL`.
pub(crate) fn build(config: &RingConfig, first: Rung) -> Result<(IoUring, Rung), RingError> {
    let mut refused = io::Error::from_raw_os_error(libc::EINVAL);
    for rung in Rung::ALL.into_iter().filter(|rung| *rung >= first) {
        match build_patiently(rung, config) {
            Ok(ring) => {
                check_features(&ring)?;
                return Ok((ring, rung));
            }
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
            Err(error) => return Err(classify(error, config)),
        }
    }
    Err(RingError::TooOld(refused))
}

fn classify(error: io::Error, config: &RingConfig) -> RingError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS) => RingError::Forbidden(error),
        Some(libc::ENOMEM) => RingError::Memory { entries: config.entries, source: error },
        _ => RingError::Setup { step: "io_uring_setup", source: error },
    }
}

fn check_features(ring: &IoUring) -> Result<(), RingError> {
    let params = ring.params();
    for (present, name) in [
        (params.is_feature_nodrop(), "IORING_FEAT_NODROP"),
        (params.is_feature_submit_stable(), "IORING_FEAT_SUBMIT_STABLE"),
        (params.is_feature_ext_arg(), "IORING_FEAT_EXT_ARG"),
        (params.is_feature_single_mmap(), "IORING_FEAT_SINGLE_MMAP"),
    ] {
        if !present {
            return Err(RingError::Lacks(name));
        }
    }
    Ok(())
}

/// The register operations that a restricted ring still needs (from `linux/io_uring.h`; the
/// io-uring crate keeps these numbers to itself).
const REGISTER_FILES_UPDATE: u8 = 6;
const REGISTER_IOWQ_MAX_WORKERS: u8 = 19;
const UNREGISTER_RING_FDS: u8 = 21;

/// Files, limits, restrictions, and then the ring is enabled.
pub(crate) fn prepare(ring: &IoUring, config: &RingConfig) -> Result<(), RingError> {
    let step = |step| move |source| RingError::Setup { step, source };
    let submitter = ring.submitter();
    if config.fixed_files > 0 {
        submitter
            .register_files_sparse(config.fixed_files)
            .map_err(step("registering the table of files (RingConfig::fixed_files, ulimit -n)"))?;
    }
    submitter
        .register_iowq_max_workers(&mut [WORKERS_BOUNDED, WORKERS_UNBOUNDED])
        .map_err(step("limiting the kernel's workers"))?;
    if config.restrict {
        let mut rules: Vec<Restriction> =
            op::OPCODES.iter().map(|code| Restriction::sqe_op(*code)).collect();
        rules.push(Restriction::sqe_flags_required(Flags::FIXED_FILE.bits()));
        rules.push(Restriction::register_op(REGISTER_FILES_UPDATE));
        rules.push(Restriction::register_op(REGISTER_IOWQ_MAX_WORKERS));
        rules.push(Restriction::register_op(UNREGISTER_RING_FDS));
        submitter.register_restrictions(&mut rules).map_err(step("registering restrictions"))?;
    }
    Ok(())
}
