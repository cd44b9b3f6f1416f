//! What a data plane says of frames when it is asked.

use super::{Command, Supervisor, SupervisorThread, gone};
use crate::error::ApiError;
use protocol::message::{Failure, Reply, Request, TallyReport, TallySpec, TraceReport, TraceSpec};

/// What has happened to frames, or why that is not told.
pub(super) type Traced = Result<Result<TraceReport, Failure>, ApiError>;

/// What has passed an uplink, or why that is not told.
pub(super) type Tallied = Result<Result<TallyReport, Failure>, ApiError>;

impl Supervisor {
    /// Begins to watch frames of a network, or goes on.
    pub async fn trace(&self, spec: TraceSpec) -> Traced {
        let command = |done| Command::Trace(spec, done);
        self.interrupting(command).await.unwrap_or_else(|| Err(gone()))
    }

    /// Asks what has passed an uplink, by station and VLAN.
    pub async fn tallies(&self, spec: TallySpec) -> Tallied {
        let command = |done| Command::Tallies(spec, done);
        self.interrupting(command).await.unwrap_or_else(|| Err(gone()))
    }
}

impl SupervisorThread {
    pub(super) fn trace(&mut self, spec: TraceSpec) -> Traced {
        match self.ask(&Request::Trace(spec))? {
            Some(Reply::Error(failure)) => Ok(Err(failure)),
            Some(Reply::Trace(report)) => Ok(Ok(report)),
            Some(_) => Ok(Ok(TraceReport::default())),
            None => Err(gone()),
        }
    }

    pub(super) fn tallies(&mut self, spec: TallySpec) -> Tallied {
        match self.ask(&Request::Tallies(spec))? {
            Some(Reply::Error(failure)) => Ok(Err(failure)),
            Some(Reply::Tallies(report)) => Ok(Ok(report)),
            Some(_) | None => Err(gone()),
        }
    }
}
