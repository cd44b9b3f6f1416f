//! Adapters: made, changed, removed.

use std::os::fd::OwnedFd;
use std::sync::{Arc, MutexGuard};

use protocol::message::{
    AdapterSpec, AdapterStatus, DeviceSpec, EthernetSpec, Failure, FailureCode, Reply, Request,
    ScsiSpec,
};
use protocol::stats::NAME_BYTES_MAX;
use spec::{Change, change};

use super::going::{self, Subject};
use super::{Plane, State, failure, in_use, not_found, renew, sees};
use crate::adapter::Adapter;
use crate::devices::{Backing, fixed_queues};
use crate::lock::locked;
use crate::storage::forget;

impl Plane {
    pub(super) fn put_adapter(
        &self,
        spec: AdapterSpec,
        listener: Option<OwnedFd>,
    ) -> Result<Reply, Failure> {
        check_adapter(&spec)?;
        let changing = locked(&self.changes);
        let mut state = self.state();
        let about = Subject::Adapter(spec.name.clone());
        let asked = Request::PutAdapter(spec.clone());
        if let Some(told) = state.told(&about, &asked) {
            return told;
        }
        check_backing(&spec, &state)?;
        state.check_initiator(&spec)?;
        let Some(adapter) = state.adapters.get(&spec.name) else {
            return self.start_adapter(state, spec, listener);
        };
        // Its next client could have another disk, but not at another socket.
        let mut alike = AdapterSpec::clone(&adapter.shared().spec());
        if let (Some(now), Some(then)) = (alike.block_mut(), spec.block()) {
            now.volume.clone_from(&then.volume);
        }
        if change::adapter(&alike, &spec) == Change::Recreate {
            let user = "what it was made with: its socket, or who its client is";
            let what = format!("adapter {}", spec.name);
            return Err(in_use(what, user, "remove the adapter first"));
        }
        let adapter = Arc::clone(adapter);
        // From now on it is seen by whoever asks who uses something.
        state.named.note(&spec);
        adapter.is_to_be(&spec);
        let what = "changes, waits for what its disks have under way";
        let change = going::Change { asked, what, holds: vec![about.clone()], about };
        self.go_on(changing, state, change, move |all| {
            adapter.put(&spec, |spec| Backing::of(spec, &locked(all).storage)).map_err(|what| {
                let help = "give it fewer logical units, let the data plane's process have more open files, or see who may use its socket";
                let what = format!("adapter {} cannot change: {what}", spec.name);
                failure(FailureCode::System, what, help)
            })
        })
    }

    /// Makes an adapter. Somebody else opens its socket, and may take long.
    fn start_adapter(
        &self,
        state: MutexGuard<'_, State>,
        spec: AdapterSpec,
        listener: Option<OwnedFd>,
    ) -> Result<Reply, Failure> {
        let backing = Backing::of(&spec, &state.storage);
        drop(state);
        let name = spec.name.clone();
        let adapter = Adapter::start(&self.context, spec, &backing, listener).map_err(|error| {
            let what = format!("adapter {name} cannot listen: {error}");
            failure(FailureCode::System, what, "see the socket's path")
        })?;
        let adapter = Arc::new(adapter);
        self.state().enter_adapter(name, Arc::clone(&adapter));
        // What it waits for may have come meanwhile.
        if backing.is_whole() {
            Ok(Reply::Done)
        } else {
            renew(&self.state, &adapter).map(|()| Reply::Done)
        }
    }

    pub(super) fn reset_marks(&self, name: &str) -> Result<Reply, Failure> {
        let adapter = self.state().adapters.get(name).cloned();
        if adapter.ok_or_else(|| not_found("adapter", name))?.reset_marks() {
            return Ok(Reply::Done);
        }
        let what = format!("adapter {name}: its queues are being changed, or wait for a disk");
        Err(failure(FailureCode::InUse, what, "try again later"))
    }

    /// What it has under way may be at a disk that hangs.
    pub(super) fn remove_adapter(&self, name: &str) -> Result<Reply, Failure> {
        let changing = locked(&self.changes);
        let mut state = self.state();
        let about = Subject::Adapter(name.to_owned());
        let asked = Request::RemoveAdapter { name: name.to_owned() };
        if let Some(told) = state.told(&about, &asked) {
            return told;
        }
        let adapter = state.adapters.get(name).cloned();
        let adapter = adapter.ok_or_else(|| not_found("adapter", name))?;
        let what = "removed, waits for what its disks have under way";
        let change = going::Change { asked, what, holds: vec![about.clone()], about };
        let name = name.to_owned();
        self.go_on(changing, state, change, move |all| {
            adapter.remove();
            drop(adapter);
            // When it is seen no more, nobody has what was behind it.
            locked(all).leave_adapter(&name);
            Ok(())
        })
    }
}

impl State {
    pub(super) fn status_of(&self, name: &str, adapter: &Adapter) -> AdapterStatus {
        let status = adapter.status();
        let goes_on = self.held(&Subject::Adapter(name.to_owned()));
        let goes_on = goes_on.map(|goes_on| goes_on.message);
        AdapterStatus { reason: goes_on.or(status.reason), ..status }
    }

    fn enter_adapter(&mut self, name: String, adapter: Arc<Adapter>) {
        let spec = adapter.shared().spec();
        self.named.note(&spec);
        if let Some(scsi) = spec.scsi() {
            self.initiators.entry(scsi.initiator).or_default().insert(name.clone());
        }
        self.adapters.insert(name, adapter);
    }

    fn leave_adapter(&mut self, name: &str) {
        let Some(adapter) = self.adapters.remove(name) else { return };
        self.named.leave(name);
        if let Some(scsi) = adapter.shared().spec().scsi() {
            forget(&mut self.initiators, &scsi.initiator, name);
        }
    }

    /// A second adapter with an initiator port would have the rights of the first: its registrations, and what it has reserved.
    fn check_initiator(&self, spec: &AdapterSpec) -> Result<(), Failure> {
        let Some(own) = spec.scsi() else { return Ok(()) };
        let twins = self.initiators.get(&own.initiator).into_iter().flatten();
        let mut twins = twins.filter(|name| **name != spec.name).peekable();
        if twins.peek().is_none() {
            return Ok(());
        }
        let units: Vec<String> =
            own.targets.iter().flat_map(|target| target.luns.values().cloned()).collect();
        let seen = |name: &&String| self.adapters[*name].is(|other| sees(other, &units));
        let Some(other) = twins.find(seen) else { return Ok(()) };
        let what = format!("the initiator port of adapter {}", spec.name);
        let user = format!("adapter {other}, which sees one of its logical units");
        Err(in_use(what, &user, "give each adapter WWPNs of its own"))
    }
}

/// Everything that the specification names is there, and stays.
fn check_backing(spec: &AdapterSpec, state: &State) -> Result<(), Failure> {
    let storage = &state.storage;
    let volume = |name: &String| Subject::Volume(name.clone());
    match &spec.device {
        DeviceSpec::Block(block) => {
            state.check_free([volume(&block.volume)])?;
            if !storage.volumes.contains_key(&block.volume) {
                return Err(not_found("volume", &block.volume));
            }
            match storage.fence_on(&block.volume) {
                None => Ok(()),
                Some(unit) => {
                    let help =
                        "give the client the logical unit, or let the unit refuse reservations";
                    Err(in_use(format!("volume {}", block.volume), &format!("unit {unit}"), help))
                }
            }
        }
        DeviceSpec::Ethernet(_) => Ok(()),
        DeviceSpec::Scsi(scsi) => {
            for name in scsi.targets.iter().flat_map(|target| target.luns.values()) {
                let unit = storage.units.get(name).ok_or_else(|| not_found("unit", name))?;
                let its = unit.spec.volume.as_ref().map(volume);
                state.check_free(its.into_iter().chain([Subject::Unit(name.clone())]))?;
            }
            Ok(())
        }
    }
}

fn check_adapter(spec: &AdapterSpec) -> Result<(), Failure> {
    let invalid = |what: String, help: &str| Err(failure(FailureCode::Invalid, what, help));
    if spec.name.len() > NAME_BYTES_MAX {
        return invalid(format!("the name {} is too long", spec.name), "use at most 256 bytes");
    }
    // The messages for eventfds have eight bits for a queue, and some of them are not for I/O.
    let most = 256 - fixed_queues(spec);
    if spec.queues == 0 || spec.queues > most {
        let help = format!("use 1 to {most}");
        return invalid(format!("queues is {}", spec.queues), &help);
    }
    if !spec.queue_size.is_power_of_two() || spec.queue_size > vring::QUEUE_SIZE_MAX {
        return invalid(
            format!("queue_size is {}", spec.queue_size),
            "use a power of two up to 1024",
        );
    }
    match &spec.device {
        DeviceSpec::Block(_) => Ok(()),
        DeviceSpec::Scsi(scsi) => check_targets(&spec.name, scsi),
        DeviceSpec::Ethernet(_) if spec.queues % 2 == 1 => {
            invalid(format!("queues is {}", spec.queues), "use two for each pair")
        }
        DeviceSpec::Ethernet(ethernet) => check_ethernet(&spec.name, ethernet),
    }
}

fn check_ethernet(adapter: &str, spec: &EthernetSpec) -> Result<(), Failure> {
    let invalid = |what: String, help: &str| {
        Err(failure(FailureCode::Invalid, format!("adapter {adapter}: {what}"), help))
    };
    if spec.mac[0] & 1 != 0 || spec.mac == [0; 6] {
        return invalid("its MAC address is none of a station".to_owned(), "use another");
    }
    let mut vlans = spec.vids.iter().chain([&spec.pvid]);
    if let Some(vid) = vlans.find(|vid| !(1..=4094).contains(*vid)) {
        return invalid(format!("VLAN {vid}"), "use 1 to 4094");
    }
    if !MTU.contains(&spec.mtu) {
        return invalid(format!("mtu is {}", spec.mtu), "use 576 to 65535");
    }
    Ok(())
}

/// What an adapter's MTU may be: from what each host must take (RFC 791) to the longest packet.
const MTU: std::ops::RangeInclusive<u16> = 576..=65535;

fn check_targets(adapter: &str, spec: &ScsiSpec) -> Result<(), Failure> {
    let invalid = |what: String, help: &str| {
        Err(failure(FailureCode::Invalid, format!("adapter {adapter}: {what}"), help))
    };
    for (index, target) in spec.targets.iter().enumerate() {
        let others = &spec.targets[..index];
        if others.iter().any(|other| other.id == target.id) {
            return invalid(format!("target {} is named twice", target.id), "number them anew");
        }
        if target.port == 0 || others.iter().any(|other| other.port == target.port) {
            let what = format!("the relative port of target {} is {}", target.id, target.port);
            return invalid(what, "use a number from 1 that no other target has");
        }
        let above = target.luns.keys().find(|lun| **lun > scsi::Lun::MAX);
        if let Some(lun) = above {
            return invalid(format!("LUN {lun} of target {}", target.id), "use 0 to 16383");
        }
    }
    let luns: usize = spec.targets.iter().map(|target| target.luns.len()).sum();
    if luns > LUNS_MAX {
        let help = "use at most 65535 for one client";
        return invalid(format!("{luns} logical units"), help);
    }
    Ok(())
}

/// Most logical units of a client: what a LUN map holds.
const LUNS_MAX: usize = 65_535;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use protocol::message::{
        Initiator, NullSpec, PortShare, Request, TargetSpec, UnitSpec, VolumeSpec,
    };

    use super::*;
    use crate::Options;
    use crate::adapter::LOOKS;

    fn put(plane: &Plane, request: Request) -> Reply {
        plane.handle(request, Vec::new()).0
    }

    #[test]
    fn an_adapter_is_made_without_a_look_at_all_others() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            socket: dir.path().join("plane.sock"),
            cpus: Vec::new(),
            channels: 1,
            poll_us_max: Some(0),
            confine: None,
        };
        let plane = Plane::new(&options).unwrap();
        let names: Vec<String> = (0..40).map(|number| format!("v{number}")).collect();
        for name in &names {
            let spec =
                VolumeSpec { bytes: Some(4096), ..VolumeSpec::new(name, NullSpec::default()) };
            assert_eq!(put(&plane, Request::PutVolume(spec)), Reply::Done);
        }
        for (name, naa) in names.iter().zip(1..) {
            assert_eq!(put(&plane, Request::PutUnit(UnitSpec::disk(name, naa))), Reply::Done);
        }
        let adapter = |name: &str, wwpn: u64, unit: &str| {
            let luns = BTreeMap::from([(0, unit.to_owned())]);
            let target = TargetSpec { id: 0, wwpn: Some(1), port: 1, luns };
            let port = PortShare { name: "p".to_owned(), num_cmd_elems: 64, share: 1 };
            let scsi = ScsiSpec {
                port: Some(port),
                ..ScsiSpec::new(Initiator::Fc { wwpn }, vec![target])
            };
            let spec =
                AdapterSpec { queues: 1, ..AdapterSpec::new(name, dir.path().join(name), scsi) };
            Request::PutAdapter(spec)
        };
        LOOKS.with(|looks| looks.set(0));
        for (number, unit) in (0..).zip(&names) {
            assert_eq!(put(&plane, adapter(&format!("f{number}"), number, unit)), Reply::Done);
        }
        assert_eq!(LOOKS.with(std::cell::Cell::get), 0);
        // Who has the same initiator port is looked at, and nobody else.
        let Reply::Error(failure) = put(&plane, adapter("twin", 7, "v7")) else {
            panic!("two adapters are one initiator port to a unit");
        };
        assert!(failure.message.contains("adapter f7"), "{failure:?}");
        assert_eq!(LOOKS.with(std::cell::Cell::get), 1);
        assert_eq!(put(&plane, adapter("twin", 7, "v8")), Reply::Done, "no unit is seen by both");
        // When both are gone, nobody is remembered.
        for name in ["f7", "twin"] {
            let gone = Request::RemoveAdapter { name: name.to_owned() };
            assert_eq!(put(&plane, gone), Reply::Done);
        }
        assert_eq!(put(&plane, adapter("next", 7, "v7")), Reply::Done);
        assert_eq!(LOOKS.with(std::cell::Cell::get), 2);
    }
}
