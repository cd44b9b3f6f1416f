//! What data planes do with pools and LUs by themselves, and are asked again for until it is over; and what they say of one when they are asked.

use super::{Command, Supervisor, SupervisorThread, gone};
use crate::error::ApiError;
use protocol::message::{
    CopySpec, CopyStatus, DetachSpec, Failure, LayoutSpec, LayoutStatus, ProgressStatus, Reply,
    Request, RollbackSpec, ScrubSpec, ScrubStatus,
};
use std::os::fd::{AsFd, OwnedFd};

/// How far a copy of an LU from a file or into one is, or what became of it.
pub(super) type Copied = Result<Result<CopyStatus, Failure>, ApiError>;

/// What became of a rollback so far.
pub(super) type RolledBack = Result<Result<(), Failure>, ApiError>;

/// How far a scrub is, or what became of it.
pub(super) type Scrubbed = Result<Result<ScrubStatus, Failure>, ApiError>;
/// How an LU lies on the PVs of its pool.
pub(super) type Laid = Result<Result<LayoutStatus, Failure>, ApiError>;
/// How far the detaching of an LU is; none when it is done.
pub(super) type Detached = Result<Result<Option<ProgressStatus>, Failure>, ApiError>;

impl Supervisor {
    /// Rolls an LU back, or asks what became of that.
    pub async fn rollback(&self, spec: RollbackSpec) -> RolledBack {
        let command = |done| Command::Rollback(spec, done);
        self.interrupting(command).await.unwrap_or_else(|| Err(gone()))
    }

    /// Scrubs a pool, or has that end, or asks how far it is.
    pub async fn scrub(&self, spec: ScrubSpec) -> Scrubbed {
        let command = |done| Command::Scrub(spec, done);
        self.interrupting(command).await.unwrap_or_else(|| Err(gone()))
    }

    /// Asks how an LU lies on the PVs of its pool.
    pub async fn layout(&self, spec: LayoutSpec) -> Laid {
        let command = |done| Command::Layout(spec, done);
        self.interrupting(command).await.unwrap_or_else(|| Err(gone()))
    }

    /// Detaches an LU, or has that stop, or asks how far it is.
    pub async fn detach(&self, spec: DetachSpec) -> Detached {
        let command = |done| Command::Detach(spec, done);
        self.interrupting(command).await.unwrap_or_else(|| Err(gone()))
    }

    /// Copies an LU from a file or into one, which comes with that, or has that end, or asks how far it is.
    pub async fn copy(&self, spec: CopySpec, file: Option<OwnedFd>) -> Copied {
        let command = |done| Command::Copy(spec, file, done);
        self.interrupting(command).await.unwrap_or_else(|| Err(gone()))
    }
}

impl SupervisorThread {
    pub(super) fn copy(&mut self, spec: CopySpec, file: Option<OwnedFd>) -> Copied {
        let file = file.as_ref().map(AsFd::as_fd);
        match self.ask_with(&Request::Copy(spec), file.as_slice())? {
            Some(Reply::Error(failure)) => Ok(Err(failure)),
            Some(Reply::Copy(now)) => Ok(Ok(*now)),
            Some(_) | None => Err(gone()),
        }
    }

    pub(super) fn rollback(&mut self, spec: RollbackSpec) -> RolledBack {
        match self.ask(&Request::Rollback(spec))? {
            Some(Reply::Error(failure)) => Ok(Err(failure)),
            Some(_) => Ok(Ok(())),
            None => Err(gone()),
        }
    }

    pub(super) fn scrub(&mut self, spec: ScrubSpec) -> Scrubbed {
        match self.ask(&Request::Scrub(spec))? {
            Some(Reply::Error(failure)) => Ok(Err(failure)),
            Some(Reply::Scrub(now)) => Ok(Ok(*now)),
            Some(_) | None => Err(gone()),
        }
    }

    pub(super) fn layout(&mut self, spec: LayoutSpec) -> Laid {
        match self.ask(&Request::Layout(spec))? {
            Some(Reply::Error(failure)) => Ok(Err(failure)),
            Some(Reply::Layout(layout)) => Ok(Ok(*layout)),
            Some(_) | None => Err(gone()),
        }
    }

    pub(super) fn detach(&mut self, spec: DetachSpec) -> Detached {
        match self.ask(&Request::Detach(spec))? {
            Some(Reply::Error(failure)) => Ok(Err(failure)),
            Some(Reply::Progress(now)) => Ok(Ok(Some(now))),
            Some(_) => Ok(Ok(None)),
            None => Err(gone()),
        }
    }
}
