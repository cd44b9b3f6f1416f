//! Scrubs of pools, and what was found where legs were read.

use super::progress;
use pool::{Fault, Finding, FindingKind};
use pool_io::{ChecksView, PoolError, PoolHandle, PvView, ScrubView};
use protocol::message::{FoundBlock, FoundKind, FoundStatus, ScrubSpec, ScrubStatus};

/// Begins a scrub or ends it, and says how far it is.
pub(super) fn scrub(pool: &PoolHandle, spec: &ScrubSpec) -> Result<ScrubStatus, PoolError> {
    let ScrubView { progress: now, end, found: all } = match spec.stop {
        true => pool.stop_scrub(spec.id)?,
        false => pool.scrub(spec.id)?,
    };
    let stopped = match end {
        None | Some(Ok(())) => false,
        Some(Err(Fault::Cancelled)) => true,
        Some(Err(fault)) => {
            let help = Some("see `trunkline pool show`".to_owned());
            return Err(PoolError { what: format!("it could not be scrubbed: {fault}"), help });
        }
    };
    let found = found(&all, &pool.view().pvs);
    Ok(ScrubStatus { progress: progress(now), over: end.is_some(), stopped, found })
}

/// What was found, with the paths of PVs.
pub(super) fn found(all: &ChecksView, pvs: &[PvView]) -> FoundStatus {
    let path = |number: u16| {
        let pv = pvs.iter().find(|pv| pv.space.pv == number);
        pv.map_or_else(|| format!("number {number}").into(), |pv| pv.path.clone())
    };
    let block = |finding: &Finding| FoundBlock {
        kind: match finding.kind {
            FindingKind::Differs => FoundKind::Differs,
            FindingKind::Repaired => FoundKind::Repaired,
            FindingKind::Unreadable => FoundKind::Unreadable,
            FindingKind::Lost => FoundKind::Lost,
        },
        lu: finding.lu,
        at: finding.at,
        pvs: finding.pvs.into_iter().flatten().map(path).collect(),
    };
    FoundStatus {
        differs: all.differs,
        repaired: all.repaired,
        unreadable: all.unreadable,
        lost: all.lost,
        last: all.last.iter().map(block).collect(),
    }
}
