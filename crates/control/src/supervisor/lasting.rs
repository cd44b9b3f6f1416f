//! What a data plane is asked for beside what it is to have: what it does by itself with pools and LUs, for which it is asked again until it is over, and what it tells of one thing.

use super::{Command, Supervisor, SupervisorThread, gone};
use crate::error::ApiError;
use protocol::message::{
    CopySpec, CopyStatus, DetachSpec, Failure, FailureCode, LayoutSpec, LayoutStatus,
    ProgressStatus, Reply, Request, RollbackSpec, ScrubSpec, ScrubStatus, TallyReport, TallySpec,
    TraceReport, TraceSpec,
};
use spec::PoolSpec;
use std::os::fd::{AsFd, OwnedFd};

/// What a data plane answered, or refused; or why it was not asked.
type Asked<T> = Result<Result<T, Failure>, ApiError>;
/// … to anything.
pub(super) type Answered = Asked<Reply>;

impl Supervisor {
    /// Begins to watch frames of a network, or goes on.
    pub async fn trace(&self, spec: TraceSpec) -> Asked<TraceReport> {
        let answered = self.ask(Request::Trace(spec), None).await?;
        let report =
            |reply| if let Reply::Trace(report) = reply { report } else { Default::default() };
        Ok(answered.map(report))
    }

    /// Asks what has passed an uplink, by station and VLAN.
    pub async fn tallies(&self, spec: TallySpec) -> Asked<TallyReport> {
        let answered = self.ask(Request::Tallies(spec), None).await?;
        of_kind(
            answered,
            |reply| if let Reply::Tallies(report) = reply { Some(report) } else { None },
        )
    }

    /// Has all used that is on PVs of a pool that have become larger, or asks what became of that.
    pub async fn grow_pvs(&self, pool: String) -> Asked<()> {
        Ok(self.ask(Request::GrowPvs { pool }, None).await?.map(drop))
    }

    /// Rolls an LU back, or asks what became of that.
    pub async fn rollback(&self, spec: RollbackSpec) -> Asked<()> {
        Ok(self.ask(Request::Rollback(spec), None).await?.map(drop))
    }

    /// Scrubs a pool, or has that end, or asks how far it is.
    pub async fn scrub(&self, spec: ScrubSpec) -> Asked<ScrubStatus> {
        let answered = self.ask(Request::Scrub(spec), None).await?;
        of_kind(answered, |reply| if let Reply::Scrub(now) = reply { Some(*now) } else { None })
    }

    /// Asks how an LU lies on the PVs of its pool.
    pub async fn layout(&self, spec: LayoutSpec) -> Asked<LayoutStatus> {
        let answered = self.ask(Request::Layout(spec), None).await?;
        of_kind(
            answered,
            |reply| if let Reply::Layout(layout) = reply { Some(*layout) } else { None },
        )
    }

    /// Detaches an LU, or has that stop, or asks how far it is; none when it is done.
    pub async fn detach(&self, spec: DetachSpec) -> Asked<Option<ProgressStatus>> {
        let answered = self.ask(Request::Detach(spec), None).await?;
        let now = |reply| if let Reply::Progress(now) = reply { Some(now) } else { None };
        Ok(answered.map(now))
    }

    /// Copies an LU from a file or into one, which comes with that, or has that end, or asks how far it is.
    pub async fn copy(&self, spec: CopySpec, file: Option<OwnedFd>) -> Asked<CopyStatus> {
        let answered = self.ask(Request::Copy(spec), file).await?;
        of_kind(answered, |reply| if let Reply::Copy(now) = reply { Some(*now) } else { None })
    }

    /// Opens a pool that is wanted, if need be by one failure group alone, or asks what became of that.
    pub async fn open_pool(&self, name: &str, alone: bool) -> Asked<()> {
        let command = |done| Command::OpenPool { name: name.to_owned(), alone, done };
        let answered = self.interrupting(command).await.unwrap_or_else(|| Err(gone()));
        Ok(answered?.map(drop))
    }

    async fn ask(&self, request: Request, file: Option<OwnedFd>) -> Answered {
        let command = |done| Command::Ask(Box::new(request), file, done);
        self.interrupting(command).await.unwrap_or_else(|| Err(gone()))
    }
}

/// The answer, where it is the one to what was asked.
fn of_kind<T>(answered: Result<Reply, Failure>, kind: impl FnOnce(Reply) -> Option<T>) -> Asked<T> {
    match answered {
        Ok(reply) => kind(reply).map(Ok).ok_or_else(gone),
        Err(failure) => Ok(Err(failure)),
    }
}

impl SupervisorThread {
    pub(super) fn asked(&mut self, request: &Request, file: Option<&OwnedFd>) -> Answered {
        let file = file.map(AsFd::as_fd);
        match self.ask_with(request, file.as_slice())? {
            Some(Reply::Error(failure)) => Ok(Err(failure)),
            Some(reply) => Ok(Ok(reply)),
            None => Err(gone()),
        }
    }

    pub(super) fn open_pool(&mut self, name: String, alone: bool) -> Answered {
        let Some(spec) = self.wanted.pools.get(&name) else {
            let message = format!("pool {name} is not wanted");
            return Ok(Err(Failure { code: FailureCode::NotFound, message, help: None }));
        };
        let spec = PoolSpec { alone, ..spec.clone() };
        let opened = self.asked(&Request::PutPool(spec), None)?;
        if opened.is_ok() {
            // What waits for it goes on.
            self.tries_again();
        }
        Ok(opened)
    }
}
