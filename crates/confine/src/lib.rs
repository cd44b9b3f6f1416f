//! What a process of this program gives up before it serves anybody.
//!
//! | | data plane | control plane |
//! |---|---|---|
//! | [`files`] (Landlock) | opens nothing but files of one folder | not used: it opens what its users name, and starts data planes |
//! | [`interfaces`] (capabilities) | changes no interface of the host | not used |
//! | [`data_plane`], [`control_plane`] (seccomp) | a list of the calls that it makes | a list of those that it has no use for |
//! | `no_new_privs` | yes | yes |
//!
//! Landlock and capabilities bind the calling thread and those that it starts afterwards, seccomp all threads at once. Neither can be taken back. A kernel
//! that lacks one of them is told of by an error; what it means to go on without is the caller's to say.
#![forbid(unsafe_code)]

mod calls;

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

pub use calls::{control_plane, data_plane};

/// Why a process is not confined, for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unconfined(pub String);

impl std::fmt::Display for Unconfined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unconfined {}

/// From now on the calling thread, and threads that it starts, change no interface or route of the host, whoever runs the process: what is asked of the
/// kernel by a socket that hears of interfaces is judged by who asks.
///
/// # Errors
///
/// The kernel's: then nothing has changed.
pub fn interfaces() -> Result<(), Unconfined> {
    let given_up = (|| {
        let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
        if !permitted.contains(CapabilitySet::NET_ADMIN) {
            return Ok(());
        }
        let less = |set: CapabilitySet| set.difference(CapabilitySet::NET_ADMIN);
        let (effective, permitted) = (less(effective), less(permitted));
        let inheritable = less(inheritable);
        set_capabilities(None, CapabilitySets { effective, permitted, inheritable })
    })();
    given_up.map_err(|error| Unconfined(format!("CAP_NET_ADMIN: {error}")))
}

/// The newest rules that are asked for; an older kernel enforces those that it knows.
const NEWEST: ABI = ABI::V6;

/// From now on the calling thread, and threads that it starts, open, make, rename, link and remove files in `folder` only, and run no program. Nor
/// do they listen or connect by TCP (Linux 6.7), or send signals out of the process (6.12).
///
/// Descriptors that are there or come by a socket stay of use.
///
/// # Errors
///
/// When the kernel has no Landlock, or has it switched off: then nothing has changed.
pub fn files(folder: &Path) -> Result<(), Unconfined> {
    let failed = |error: &dyn std::fmt::Display| Unconfined(format!("Landlock: {error}"));
    let inside: BitFlags<AccessFs> = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::RemoveFile;
    let enforced = (|| {
        let folder = PathFd::new(folder)?;
        let status = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?
            .add_rule(PathBeneath::new(folder, inside))?
            .restrict_self()?;
        Ok::<_, Box<dyn std::error::Error>>(status)
    })();
    let status = enforced.map_err(|error| failed(&error))?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced, _) => Ok(()),
        (_, LandlockStatus::NotEnabled) => {
            let what = "Landlock is switched off (add it to `lsm=` of the kernel's command line)";
            Err(Unconfined(what.to_owned()))
        }
        _ => {
            let what = "the kernel has no Landlock (Linux 5.13), or a filter of system calls keeps it from us (`SystemCallFilter=` of systemd)";
            Err(Unconfined(what.to_owned()))
        }
    }
}
