//! Whether this machine has what a change asks for: judged before anything is stopped.

use crate::error::ApiError;
use crate::model::Desired;
use crate::model::transition::Change;
use fabric::attribute::{Object, attr};
use fabric::units::{format_cpus, parse_cpus};
use protocol::place::Access;
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
    users_are_known(next, changes)
}

/// Refuses users and groups, newly set on an adapter, that this machine does not know.
fn users_are_known(next: &Desired, changes: &[Change]) -> Result<(), ApiError> {
    let (owner, group) = (attr::adapter::OWNER, attr::adapter::GROUP);
    for change in changes.iter().filter(|change| change.object == Object::Adapter) {
        let Some(set) = next[Object::Adapter].get(&change.name) else { continue };
        for attribute in change.attributes.iter().map(|one| one.attribute.as_str()) {
            let mut access = Access::of_mode(0);
            if attribute == owner.name {
                access.owner = owner.of(set).map(str::to_owned);
            } else if attribute == group.name {
                access.group = group.of(set).map(str::to_owned);
            }
            if let Err(error) = access.check() {
                let problem = format!("adapter `{}`: {error}", change.name);
                let help = "name one that there is, or give its number";
                return Err(ApiError::invalid(problem).on(attribute).help(help));
            }
        }
    }
    Ok(())
}
