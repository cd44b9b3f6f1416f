//! Whether what a data plane shall be, and its account of that, fit the messages between it and the control plane: judged before a
//! change is stored, since a data plane with more than that could not be told, nor asked, any more.

use super::shared::Server;
use crate::error::ApiError;
use crate::model::map::SharedMap;
use crate::model::resolve::Wanted;
use crate::supervisor::FEWER;
use protocol::message::{AdapterSpec, UnitSpec, VolumeSpec};
use protocol::socket::{MESSAGE_BYTES_MAX, size};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

/// What an account says of an object beyond its specification, in bytes, generously: its state, reasons, queues, registrations.
const ACCOUNT_BYTES: u64 = 2048;

/// What accounts take at most of what data planes shall be, by data plane: followed, so that a change costs what it changes.
#[derive(Debug, Default)]
pub(super) struct Reckoning(BTreeMap<String, (Wanted, u64)>);

impl Reckoning {
    fn follow(&mut self, name: &str, wanted: &Wanted) -> u64 {
        let (before, bytes) = self.0.remove(name).unwrap_or_default();
        let (less, more) = difference(&before, wanted);
        let bytes = bytes + more - less;
        self.0.insert(name.to_owned(), (wanted.clone(), bytes));
        bytes
    }
}

impl Server {
    /// Refuses what the messages do not carry.
    pub(super) fn can_carry(&self, wanted: &BTreeMap<String, Wanted>) -> Result<(), ApiError> {
        let views = self.supervisor_views();
        let mut reckoning = self.reckoning.lock().unwrap_or_else(PoisonError::into_inner);
        reckoning.0.retain(|name, _| wanted.contains_key(name));
        for (name, wanted) in wanted {
            let known = views.get(name).and_then(|view| view.message_bytes_max);
            let limit = known.unwrap_or(MESSAGE_BYTES_MAX).into();
            if reckoning.follow(name, wanted) > limit {
                let bytes = bytes(wanted);
                if bytes > limit {
                    let what = format!(
                        "data plane `{name}` would have adapters and LUNs that take {bytes} bytes to name, and its messages carry {limit}"
                    );
                    return Err(ApiError::invalid(what).help(FEWER));
                }
            }
        }
        Ok(())
    }
}

/// What an account takes less and more at most, where other objects are wanted than before.
fn difference(before: &Wanted, after: &Wanted) -> (u64, u64) {
    fn of<V: Clone + PartialEq>(
        (before, after): (&SharedMap<V>, &SharedMap<V>),
        bytes: fn(&str, &V) -> usize,
    ) -> (u64, u64) {
        let one = |entry: Option<Arc<(String, V)>>| {
            entry.map_or(0, |entry| bytes(&entry.0, &entry.1) as u64 + 2 * ACCOUNT_BYTES)
        };
        let differences = before.differences(after).into_iter();
        differences.fold((0, 0), |(less, more), difference| {
            (less + one(difference.before), more + one(difference.after))
        })
    }
    let volumes = of((&before.volumes, &after.volumes), volume_at_most);
    let units = of((&before.units, &after.units), unit_at_most);
    let adapters = of((&before.adapters, &after.adapters), adapter_at_most);
    (volumes.0 + units.0 + adapters.0, volumes.1 + units.1 + adapters.1)
}

// What an account says of one at most, reckoned from the lengths of names and paths.

fn volume_at_most(name: &str, spec: &VolumeSpec) -> usize {
    2 * name.len() + spec.kind.path().map_or(0, |path| 2 * path.as_os_str().len())
}

fn unit_at_most(name: &str, spec: &UnitSpec) -> usize {
    3 * name.len() + spec.keep.as_ref().map_or(0, |path| 2 * path.as_os_str().len())
}

fn adapter_at_most(name: &str, spec: &AdapterSpec) -> usize {
    let targets = spec.scsi().into_iter().flat_map(|scsi| &scsi.targets);
    let luns = targets.flat_map(|target| target.luns.values()).map(|unit| unit.len() + 16);
    let targets = spec.scsi().map_or(0, |scsi| 64 * scsi.targets.len());
    2 * name.len() + 2 * spec.socket.as_os_str().len() + targets + luns.sum::<usize>()
}

/// What an account of it takes.
fn bytes(wanted: &Wanted) -> u64 {
    // What cannot be written down cannot be carried either.
    let exact = |size: Result<u64, _>| size.unwrap_or(u64::from(u32::MAX)) + ACCOUNT_BYTES;
    let volumes = wanted.volumes.values().map(|spec| exact(size(spec)));
    let units = wanted.units.values().map(|spec| exact(size(spec)));
    let adapters = wanted.adapters.values().map(|spec| exact(size(spec)));
    volumes.chain(units).chain(adapters).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{allocations, resolve, samples};

    fn wanted(text: &str) -> Wanted {
        let mut desired = crate::config::read(text).unwrap();
        allocations::settle(&Default::default(), &mut desired, 1).unwrap();
        resolve::wanted(&desired, "main", &samples::paths())
    }

    const SCSI: &str = "[volume.v]\nkind=\"file\"\npath=\"/some/file\"\nsize=4096\n[volume.w]\nkind=\"null\"\nsize=4096\n\
        [adapter.b]\nvolume=\"w\"\n[port.p]\n[target.t]\nluns=\"0=v\"\n[adapter.f]\nkind=\"fc\"\nport=\"p\"\n\
        [zone.z]\nmembers=\"f,t\"\n[mask.m]\ninitiators=\"f\"\ntargets=\"t\"\n";

    fn at_most(wanted: &Wanted) -> u64 {
        difference(&Wanted::default(), wanted).1
    }

    #[test]
    fn the_reckoning_is_no_less_than_what_it_takes() {
        let wanted = wanted(SCSI);
        let counts = (wanted.volumes.len(), wanted.units.len(), wanted.adapters.len());
        assert_eq!(counts, (2, 1, 2));
        assert!(bytes(&wanted) <= at_most(&wanted), "{wanted:?}");
        assert!(bytes(&wanted) > 5 * ACCOUNT_BYTES);
    }

    #[test]
    fn what_is_followed_is_what_is_reckoned_anew() {
        let one = "[volume.v]\nkind=\"file\"\npath=\"/another/and/longer/file\"\n";
        let other =
            SCSI.replace("[adapter.b]", "[adapter.a-longer-name]").replace("0=v", "0=v,7=w");
        let all = ["", one, SCSI, &other.replace("[adapter.a-longer-name]\nvolume=\"w\"\n", "")];
        let all = all.map(wanted);
        let mut reckoning = Reckoning::default();
        for from in &all {
            for to in &all {
                assert_eq!(reckoning.follow("main", from), at_most(from));
                assert_eq!(reckoning.follow("main", to), at_most(to));
                assert_eq!(reckoning.follow("another", to), at_most(to));
            }
        }
    }
}
