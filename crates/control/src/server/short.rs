//! What is asked for and cannot run: channels of adapters beyond those of their data plane, and channels of a data plane beyond its CPUs.

use crate::model::Desired;
use crate::model::transition::Change;
use fabric::attribute::words::AdapterKind;
use fabric::attribute::{Attribute, Attributes, Object, attr};
use fabric::units::parse_cpus;
use protocol::message::Status;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One warning for each number that a change sets and that something smaller binds.
pub(super) fn warnings(
    next: &Desired,
    changes: &[Change],
    accounts: &BTreeMap<String, Arc<Status>>,
) -> Vec<String> {
    let warning = |change: &Change| {
        let sets = |attribute: &Attribute| {
            change.attributes.iter().any(|one| one.attribute == attribute.name && one.to.is_some())
        };
        let name = &change.name;
        match change.object {
            Object::Adapter => {
                let set = next[Object::Adapter].get(name)?;
                let account = accounts.get(next.dataplane_of_adapter(name)).map(Arc::as_ref);
                of_adapter(next, name, set, account).filter(|_| sets(channels_of(set)))
            }
            Object::DataPlane => of_dataplane(next, name).filter(|_| {
                sets(attr::dataplane::CHANNELS.line()) || sets(attr::dataplane::CPUS.line())
            }),
            _ => None,
        }
    };
    changes.iter().filter_map(warning).collect()
}

/// With which attribute an adapter asks for channels.
fn channels_of(set: &Attributes) -> &'static Attribute {
    match attr::adapter::KIND.value(set) {
        AdapterKind::Fc => attr::adapter::NUM_PER_RANGE.line(),
        _ => attr::adapter::CHANNELS.line(),
    }
}

/// An adapter that asks for more channels than its data plane has. Who has set no number asks for none.
pub(super) fn of_adapter(
    desired: &Desired,
    name: &str,
    set: &Attributes,
    account: Option<&Status>,
) -> Option<String> {
    let attribute = channels_of(set).name;
    let asked = set.get(attribute)?.as_number()?;
    let dataplane = desired.dataplane_of_adapter(name);
    // Those that it has been told, else those that it runs.
    let told = Some(attr::dataplane::CHANNELS.value(desired.dataplane(dataplane)));
    let run = || Some(account?.channels.len() as u64);
    let run = told.filter(|told| *told > 0).or_else(run).filter(|run| *run > 0)?;
    (asked > run).then(|| {
        format!(
            "adapter {name} asks for {asked} channels (`{attribute}`), and data plane {dataplane} has {run}: \
             give it more `channels` or `cpus`"
        )
    })
}

/// A data plane that asks for more channels than it has CPUs.
pub(super) fn of_dataplane(desired: &Desired, name: &str) -> Option<String> {
    let set = desired.dataplane(name);
    let asked = attr::dataplane::CHANNELS.value(set);
    let cpus = parse_cpus(attr::dataplane::CPUS.value(set)).unwrap_or_default().len();
    let cpus = if cpus == 0 { allowed()? } else { cpus } as u64;
    (asked > cpus).then(|| {
        format!(
            "data plane {name} has {asked} channels and {cpus} CPUs for them: \
             several share one, and are no faster for it"
        )
    })
}

/// CPUs that a data plane may use where nothing else is said.
fn allowed() -> Option<usize> {
    std::thread::available_parallelism().ok().map(std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::samples;
    use crate::model::transition::{Allow, transition};

    /// What is said of the change from nothing to a configuration, on a data plane that runs two channels.
    fn said(text: &str) -> Vec<String> {
        let mut next = crate::config::read(text).unwrap();
        crate::model::allocations::settle(&Desired::default(), &mut next, 42).unwrap();
        let change = transition(&Desired::default(), &next, &samples::paths(), Allow::default());
        let changes = change.unwrap().changes;
        let channel = protocol::message::ChannelStatus::default();
        let status = Status { channels: vec![channel; 2], ..Status::default() };
        let accounts = [("main".to_owned(), Arc::new(status))].into();
        warnings(&next, &changes, &accounts)
    }

    #[test]
    fn what_is_set_beyond_what_runs_is_warned_of_and_nothing_else() {
        assert_eq!(said("[adapter.f]\nkind=\"fc\"\n"), [""; 0], "nobody asked for the default");
        assert_eq!(said("[adapter.f]\nkind=\"fc\"\nnum_per_range=2\n"), [""; 0]);
        let found = said(
            "[adapter.f]\nkind=\"fc\"\nnum_per_range=16\n[adapter.s]\nkind=\"scsi\"\nchannels=3\n",
        );
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("adapter f asks for 16 channels (`num_per_range`)"), "{found:?}");
        assert!(found[1].contains("data plane main has 2"), "{found:?}");
        // It will have four.
        let four = "[dataplane.main]\nchannels=4\ncpus=\"0\"\n";
        let found = said(&format!("{four}[adapter.s]\nkind=\"scsi\"\nchannels=3\n"));
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("has 4 channels and 1 CPUs"), "{found:?}");
    }
}
