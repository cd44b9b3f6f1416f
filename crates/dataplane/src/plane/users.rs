//! Who may use what: for each volume and each unit, the adapters one of whose forms has named it.
//!
//! It names too many rather than too few: an adapter that uses something no longer is still named, and whoever asks looks at the adapter itself
//! ([`crate::adapter::Adapter::is`]). So nothing has to be kept up with forms that come and go by themselves, and who uses one volume is found
//! without a look at all adapters.

use std::collections::{BTreeMap, BTreeSet};

use protocol::message::AdapterSpec;

/// From so many on, what is named for one thing is looked through when its count is a power of two.
const MANY: usize = 8;

/// See the module. Adapters have numbers here, which are not given twice: of those that are gone nothing has to be found.
#[derive(Debug, Default)]
pub(super) struct Users {
    names: BTreeMap<u32, String>,
    numbers: BTreeMap<String, u32>,
    next: u32,
    volumes: BTreeMap<String, BTreeSet<u32>>,
    units: BTreeMap<String, BTreeSet<u32>>,
}

impl Users {
    /// An adapter has this form now, or is to have it.
    pub(super) fn note(&mut self, spec: &AdapterSpec) {
        let next = &mut self.next;
        let number = *self.numbers.entry(spec.name.clone()).or_insert_with(|| {
            *next += 1;
            *next
        });
        self.names.entry(number).or_insert_with(|| spec.name.clone());
        if let Some(block) = spec.block() {
            enter(&mut self.volumes, &block.volume, number, &self.names);
        }
        let targets = spec.scsi().into_iter().flat_map(|scsi| &scsi.targets);
        for unit in targets.flat_map(|target| target.luns.values()) {
            enter(&mut self.units, unit, number, &self.names);
        }
    }

    /// An adapter is gone.
    pub(super) fn leave(&mut self, adapter: &str) {
        if let Some(number) = self.numbers.remove(adapter) {
            self.names.remove(&number);
        }
    }

    /// A volume, or a unit, is gone, and nobody uses it.
    pub(super) fn forget_volume(&mut self, volume: &str) {
        self.volumes.remove(volume);
    }

    pub(super) fn forget_unit(&mut self, unit: &str) {
        self.units.remove(unit);
    }

    /// Those who may have a volume as their disk, or see one of these units, by name.
    pub(super) fn of<'a>(
        &self,
        volume: Option<&str>,
        units: impl IntoIterator<Item = &'a String>,
    ) -> BTreeSet<&str> {
        let disks = volume.and_then(|volume| self.volumes.get(volume));
        let seen = units.into_iter().filter_map(|unit| self.units.get(unit));
        let numbers = disks.into_iter().chain(seen).flatten();
        numbers.filter_map(|number| self.names.get(number)).map(String::as_str).collect()
    }
}

fn enter(
    all: &mut BTreeMap<String, BTreeSet<u32>>,
    what: &str,
    number: u32,
    names: &BTreeMap<u32, String>,
) {
    let numbers = match all.get_mut(what) {
        Some(numbers) => numbers,
        None => all.entry(what.to_owned()).or_default(),
    };
    if numbers.insert(number) && numbers.len() >= MANY && numbers.len().is_power_of_two() {
        numbers.retain(|number| names.contains_key(number));
    }
}

#[cfg(test)]
mod tests {
    use protocol::message::{BlockSpec, Initiator, ScsiSpec, TargetSpec};

    use super::*;

    fn disk(name: &str, volume: &str) -> AdapterSpec {
        AdapterSpec::new(name, "/s", BlockSpec::on(volume))
    }

    fn seer(name: &str, units: &[&str]) -> AdapterSpec {
        let luns = (0..).zip(units.iter().map(|unit| (*unit).to_owned())).collect();
        let target = TargetSpec { id: 0, wwpn: None, port: 1, luns };
        AdapterSpec::new(name, "/s", ScsiSpec::new(Initiator::Fc { wwpn: 1 }, vec![target]))
    }

    #[test]
    fn each_form_is_found_until_its_adapter_is_gone() {
        let mut users = Users::default();
        users.note(&disk("a", "v"));
        users.note(&seer("b", &["u", "w"]));
        users.note(&seer("b", &["x"]));
        let of = |users: &Users, volume: &str, units: &[&str]| -> Vec<String> {
            let units: Vec<String> = units.iter().map(|unit| (*unit).to_owned()).collect();
            users.of(Some(volume), &units).into_iter().map(str::to_owned).collect()
        };
        assert_eq!(of(&users, "v", &["u", "x"]), ["a", "b"]);
        assert_eq!(of(&users, "u", &["v"]), [""; 0], "a unit is no volume");
        users.leave("b");
        assert_eq!(of(&users, "v", &["u", "x"]), ["a"]);
        // Another adapter of that name is another one.
        users.note(&disk("b", "v"));
        assert_eq!(of(&users, "v", &["u"]), ["a", "b"]);
        assert_eq!(of(&users, "", &["u"]), [""; 0]);
        users.forget_volume("v");
        users.forget_unit("u");
        assert!(users.volumes.is_empty() && !users.units.contains_key("u"));
    }

    #[test]
    fn those_that_came_and_went_are_not_kept_for_ever() {
        let mut users = Users::default();
        for turn in 0..1000 {
            let name = format!("a{turn}");
            users.note(&disk(&name, "v"));
            users.leave(&name);
        }
        assert!(users.volumes["v"].len() < 2 * MANY, "{}", users.volumes["v"].len());
    }
}
