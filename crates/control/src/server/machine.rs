//! Whether this machine has what a change asks for: judged before anything is stopped.

use crate::error::ApiError;
use crate::model::Desired;
use crate::model::transition::Change;
use fabric::attribute::{Object, attr};
use fabric::units::{format_cpus, parse_cpus};
use std::collections::BTreeSet;

/// Refuses CPUs, newly set on a data plane, that its process could not be bound to.
pub(super) fn has(next: &Desired, changes: &[Change]) -> Result<(), ApiError> {
    let of_dataplanes = changes.iter().filter(|c| c.object == Object::DataPlane);
    let sets = |change: &&Change| {
        change.attributes.iter().any(|one| one.attribute == attr::dataplane::CPUS.name)
    };
    for change in of_dataplanes.filter(sets) {
        let wanted = attr::dataplane::CPUS.value(next.dataplane(&change.name));
        let wanted = parse_cpus(wanted).unwrap_or_default();
        // A process hands on what it may use itself. Where that is not known, the data plane will say.
        let Ok(mine) = rustix::thread::sched_getaffinity(None) else { return Ok(()) };
        let mine: BTreeSet<usize> =
            (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| mine.is_set(*cpu)).collect();
        if let Some(missing) = wanted.difference(&mine).next() {
            return Err(ApiError::invalid(format!(
                "data plane `{}`: CPU {missing} is not one that this server may use",
                change.name
            ))
            .on("cpus")
            .help(format!("these are: {}", format_cpus(&mine))));
        }
    }
    Ok(())
}
