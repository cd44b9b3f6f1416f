//! LUs that come from files and go into them.

use std::fs::File;
use std::os::fd::OwnedFd;

use pool_io::{CopyEnd, CopyJob, CopyView, CopyWay};
use protocol::message::{CopyAct, CopySpec, CopyStatus, Failure, FailureCode, Reply};

use super::super::{Plane, failure, not_found};
use super::pool_failure;

impl Plane {
    /// Begins a copy, or has one end; says how far it is. It waits for no disk.
    pub(in crate::plane) fn copy(
        &self,
        spec: &CopySpec,
        fds: Vec<OwnedFd>,
    ) -> Result<Reply, Failure> {
        let open = self.state().open_pool(&spec.pool)?;
        let CopySpec { lu, id, act, .. } = *spec;
        let (way, under_clients) = match act {
            CopyAct::Look => return told(spec, open.handle.copy(id)),
            CopyAct::Stop => return told(spec, open.handle.stop_copy(id)),
            CopyAct::Import { force } => (CopyWay::Import, force),
            CopyAct::Export { bytes, force } => (CopyWay::Export { bytes }, force),
        };
        let file = fds.into_iter().next().ok_or_else(|| {
            failure(
                FailureCode::BadMessage,
                "a copy without a file".to_owned(),
                "pass its descriptor",
            )
        })?;
        let job = CopyJob { id, lu, way, under_clients };
        let begun = open.handle.begin_copy(job, File::from(file));
        told(spec, Some(begun.map_err(|error| pool_failure(&spec.pool, &error))?))
    }
}

fn told(spec: &CopySpec, view: Option<CopyView>) -> Result<Reply, Failure> {
    let view = view.ok_or_else(|| not_found("copy", &spec.id.to_string()))?;
    let CopyView { planned, done, waits, end } = view;
    let failed = match &end {
        Some(Err(CopyEnd::Failed(error))) => Some(pool_failure(&spec.pool, error)),
        _ => None,
    };
    Ok(Reply::Copy(Box::new(CopyStatus {
        planned_bytes: planned,
        copied_bytes: done,
        waits,
        over: end.is_some(),
        stopped: matches!(end, Some(Err(CopyEnd::Stopped))),
        failed,
    })))
}
