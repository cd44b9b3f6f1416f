//! Whether what a data plane shall be, and its account of that, fit the messages between it and the control plane: judged before a
//! change is stored, since a data plane with more than that could not be told, nor asked, any more.

use super::shared::Server;
use crate::error::ApiError;
use crate::model::resolve::Wanted;
use crate::supervisor::FEWER;
use protocol::socket::{MESSAGE_BYTES_MAX, size};
use std::collections::BTreeMap;

/// What an account says of an object beyond its specification, in bytes, generously: its state, reasons, queues, registrations.
const ACCOUNT_BYTES: u64 = 2048;

impl Server {
    /// Refuses what the messages do not carry.
    pub(super) fn can_carry(&self, wanted: &BTreeMap<String, Wanted>) -> Result<(), ApiError> {
        let views = self.supervisor_views();
        for (name, wanted) in wanted {
            let known = views.get(name).and_then(|view| view.message_bytes_max);
            let limit = known.unwrap_or(MESSAGE_BYTES_MAX).into();
            if bytes_at_most(wanted) > limit {
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

/// What an account of it takes at most, reckoned from the lengths of names and paths.
fn bytes_at_most(wanted: &Wanted) -> u64 {
    let volumes = wanted.volumes.iter().map(|(name, spec)| {
        2 * name.len() + spec.kind.path().map_or(0, |path| 2 * path.as_os_str().len())
    });
    let units = wanted.units.iter().map(|(name, spec)| {
        3 * name.len() + spec.keep.as_ref().map_or(0, |path| 2 * path.as_os_str().len())
    });
    let adapters = wanted.adapters.iter().map(|(name, spec)| {
        let targets = spec.scsi().into_iter().flat_map(|scsi| &scsi.targets);
        let luns = targets.flat_map(|target| target.luns.values()).map(|unit| unit.len() + 16);
        let targets = spec.scsi().map_or(0, |scsi| 64 * scsi.targets.len());
        2 * name.len() + 2 * spec.socket.as_os_str().len() + targets + luns.sum::<usize>()
    });
    let all = volumes.chain(units).chain(adapters);
    all.map(|bytes| bytes as u64 + 2 * ACCOUNT_BYTES).sum()
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

    #[test]
    fn the_reckoning_is_no_less_than_what_it_takes() {
        let text = "[volume.v]\nkind=\"file\"\npath=\"/some/file\"\nsize=4096\n[volume.w]\nkind=\"null\"\nsize=4096\n\
            [adapter.b]\nvolume=\"w\"\n[port.p]\n[target.t]\nluns=\"0=v\"\n[adapter.f]\nkind=\"fc\"\nport=\"p\"\n\
            [zone.z]\nmembers=\"f,t\"\n[mask.m]\ninitiators=\"f\"\ntargets=\"t\"\n";
        let mut desired = crate::config::read(text).unwrap();
        allocations::settle(&Default::default(), &mut desired, 1).unwrap();
        let wanted = resolve::wanted(&desired, "main", &samples::paths());
        let counts = (wanted.volumes.len(), wanted.units.len(), wanted.adapters.len());
        assert_eq!(counts, (2, 1, 2));
        assert!(bytes(&wanted) <= bytes_at_most(&wanted), "{wanted:?}");
        assert!(bytes(&wanted) > 5 * ACCOUNT_BYTES);
    }
}
