//! SCSI logical units: made, given another medium, removed.
//!
//! A unit is the fence between its clients. So there is one way to the bytes of its volume, itself; no two adapters are the same initiator port to
//! it; and its registrations outlive it ([`Left`]).

use std::sync::{Arc, MutexGuard};

use block::Volume;
use device_scsi::{Medium, Unit};
use protocol::message::{Failure, FailureCode, Reply, Request};
use spec::{Change, Reservations, UnitKind, UnitSpec, change};

use super::going::{self, Subject};
use super::{Plane, Renewal, State, failure, in_use, not_found, sees};
use crate::adapter::Adapter;
use crate::lock::locked;
use crate::storage::{Left, Storage};

impl Storage {
    /// The volume that a unit is to have.
    fn volume_of(&self, spec: &UnitSpec) -> Result<Option<Arc<dyn Volume>>, Failure> {
        let Some(name) = &spec.volume else { return Ok(None) };
        let open = self.volumes.get(name).ok_or_else(|| not_found("volume", name))?;
        Ok(Some(Arc::clone(&open.volume)))
    }

    /// The unit on a volume whose reservations would be passed by on another way to the volume: nobody can write a read-only one.
    pub(super) fn fence_on(&self, volume: &str) -> Option<&str> {
        let writable = self.volumes.get(volume).is_some_and(|open| !open.spec.read_only);
        let mut units = self.units_on(volume).filter(|_| writable);
        units.find(|name| fences(&self.units[*name].spec)).map(String::as_str)
    }

    /// A second unit on a volume would pass by the reservations of the first. Discs are only read, and drives are not told apart by them.
    fn check_alone(&self, spec: &UnitSpec) -> Result<(), Failure> {
        let Some(volume) = &spec.volume else { return Ok(()) };
        let both = |other: &&String| {
            **other != spec.name
                && (self.units[*other].spec.kind, spec.kind)
                    != (UnitKind::Optical, UnitKind::Optical)
        };
        let Some(other) = self.units_on(volume).find(both) else { return Ok(()) };
        let help = "show that unit to all clients: under reservations they share it";
        Err(in_use(format!("volume {volume}"), &format!("unit {other}"), help))
    }
}

impl Plane {
    pub(super) fn put_unit(&self, spec: UnitSpec) -> Result<Reply, Failure> {
        let changing = locked(&self.changes);
        let mut state = self.state();
        let about = Subject::Unit(spec.name.clone());
        if let Some(told) = state.told(&about, &Request::PutUnit(spec.clone())) {
            return told;
        }
        state.check_free(spec.volume.iter().map(|name| Subject::Volume(name.clone())))?;
        let volume = state.storage.volume_of(&spec)?;
        state.storage.check_alone(&spec)?;
        state.check_no_block_disk(&spec)?;
        let Some(old) = state.storage.units.get(&spec.name) else {
            let left = state.storage.left.get(&spec.name);
            let unit = Unit::new(spec, volume, left.map(|left| &*left.unit))?;
            self.enter(&mut state, unit);
            return Ok(Reply::Done);
        };
        if old.spec == spec {
            return Ok(Reply::Done);
        }
        match (change::unit(&old.spec, &spec), spec.kind) {
            (Change::Live, UnitKind::Optical) => {
                return self.change_medium(changing, state, spec, volume);
            }
            (Change::Live, UnitKind::Disk) => return self.fill(changing, state, spec, volume),
            _ => {}
        }
        let unit = format!("unit {}", spec.name);
        state.check_settled(state.seers(&spec.name))?;
        if let Some((user, _)) = state.seers(&spec.name).next() {
            let help = "take it out of the adapter's targets first";
            return Err(in_use(unit, &format!("adapter {user}"), help));
        }
        let unit = Unit::new(spec, volume, Some(&old.unit))?;
        self.enter(&mut state, unit);
        Ok(Reply::Done)
    }

    fn enter(&self, state: &mut State, unit: Unit) {
        let (name, keep) = (unit.spec.name.clone(), unit.spec.keep.clone());
        self.context.services.scsi.add_unit(&unit.unit, &name, keep);
        state.storage.left.remove(&name);
        state.storage.put_unit(unit);
    }

    pub(super) fn remove_unit(&self, name: &str) -> Result<Reply, Failure> {
        let _changing = locked(&self.changes);
        let mut state = self.state();
        let asked = Request::RemoveUnit { name: name.to_owned() };
        if let Some(told) = state.told(&Subject::Unit(name.to_owned()), &asked) {
            return told;
        }
        if !state.storage.units.contains_key(name) {
            return Err(not_found("unit", name));
        }
        state.check_settled(state.seers(name))?;
        if let Some((user, _)) = state.seers(name).next() {
            let help = "take it out of the adapter's targets, or remove the adapter, first";
            return Err(in_use(format!("unit {name}"), &format!("adapter {user}"), help));
        }
        if let Some(Unit { unit, spec, .. }) = state.storage.take_unit(name)
            && !unit.registrations().0.is_empty()
        {
            state.storage.left.insert(name.to_owned(), Left { unit, volume: spec.volume });
        }
        state.named.forget_unit(name);
        Ok(Reply::Done)
    }
}

/// Whether reservations of a unit are a promise.
fn fences(spec: &UnitSpec) -> bool {
    spec.kind == UnitKind::Disk && spec.reservations == Reservations::Local
}

impl State {
    /// A block adapter knows no reservations, so none is on the volume of a unit that has them.
    fn check_no_block_disk(&self, spec: &UnitSpec) -> Result<(), Failure> {
        let volume = spec.volume.as_deref().filter(|_| fences(spec));
        let open = volume.and_then(|volume| self.storage.volumes.get(volume));
        match volume.filter(|volume| self.is_block_disk(volume)) {
            Some(volume) if open.is_some_and(|open| !open.spec.read_only) => {
                let help = "remove that adapter, or let the unit refuse reservations";
                Err(in_use(format!("volume {volume}"), "a block adapter", help))
            }
            _ => Ok(()),
        }
    }

    /// Adapters whose client sees a unit, now or in their next form.
    fn seers(&self, unit: &str) -> impl Iterator<Item = (&String, &Arc<Adapter>)> {
        let unit = [unit.to_owned()];
        let named = self.named.of(None, &unit).into_iter();
        let named = named.filter_map(|name| self.adapters.get_key_value(name));
        named.filter(move |(_, adapter)| adapter.is(|spec| sees(spec, &unit)))
    }

    /// They get what a unit is now.
    fn renewal_of_seers(&self, unit: &str) -> Renewal {
        Renewal(self.seers(unit).map(|(_, adapter)| Arc::clone(adapter)).collect())
    }
}

impl Plane {
    /// The volume of a disk that waited for it: to clients, the same disk is ready.
    fn fill(
        &self,
        changing: MutexGuard<'_, ()>,
        mut state: MutexGuard<'_, State>,
        spec: UnitSpec,
        volume: Option<Arc<dyn Volume>>,
    ) -> Result<Reply, Failure> {
        let name = spec.name.clone();
        state.check_settled(state.seers(&name))?;
        let awaited = state.storage.units.get(&name).map(|unit| Arc::clone(&unit.unit));
        // What an earlier unit of the name has left is newer than what was kept.
        let left = awaited.filter(|unit| !unit.registrations().0.is_empty());
        let about = Subject::Unit(name.clone());
        let holds = spec.volume.clone().map(Subject::Volume).into_iter().chain([about.clone()]);
        let (holds, asked) = (holds.collect(), Request::PutUnit(spec.clone()));
        self.enter(&mut state, Unit::new(spec, volume, left.as_deref())?);
        let what = "gets its volume, waits for a client";
        let renewal = state.renewal_of_seers(&name);
        self.go_on(changing, state, going::Change { about, asked, what, holds }, move |all| {
            renewal.carry_out_at_once(all)
        })
    }

    /// Another medium in an optical drive, or none. The old one goes first; a client that prevents its removal is heard.
    fn change_medium(
        &self,
        changing: MutexGuard<'_, ()>,
        mut state: MutexGuard<'_, State>,
        spec: UnitSpec,
        volume: Option<Arc<dyn Volume>>,
    ) -> Result<Reply, Failure> {
        let name = spec.name.clone();
        state.check_settled(state.seers(&name))?;
        let unit = state.storage.units.get(&name).cloned();
        let mut unit = unit.ok_or_else(|| not_found("unit", &name))?;
        Unit::new(UnitSpec { keep: None, ..spec.clone() }, volume.clone(), None)?;
        unit.take_medium().map_err(|what| {
            let help = "let the client unmount the medium and eject it, or stop the client";
            failure(FailureCode::InUse, format!("unit {name}: {what}"), help)
        })?;
        let about = Subject::Unit(name.clone());
        let old = unit.spec.volume.take().map(Subject::Volume);
        let holds = old.into_iter().chain([about.clone()]).collect();
        let (asked, what) =
            (Request::PutUnit(spec.clone()), "gets another medium, waits for a disk");
        unit.medium = volume.clone().map_or(Medium::None, Medium::Volume);
        unit.spec = spec;
        state.storage.put_unit(unit);
        let renewal = state.renewal_of_seers(&name);
        self.go_on(changing, state, going::Change { about, asked, what, holds }, move |all| {
            renewal.carry_out_at_once(all)?;
            // Clients see it when their channels can read it.
            if let (Some(volume), Some(unit)) = (volume, locked(all).storage.units.get(&name)) {
                unit.load_medium(volume.geometry().bytes);
            }
            Ok(())
        })
    }
}
