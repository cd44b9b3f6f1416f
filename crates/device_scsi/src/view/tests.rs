use std::collections::BTreeSet;
use std::sync::LazyLock;

use block::NullVolume;
use proptest::prelude::*;
use protocol::message::{Initiator, TargetSpec, UnitSpec};

use super::*;

static UNITS: LazyLock<Units> = LazyLock::new(|| {
    let unit = |number: u64| {
        let spec = UnitSpec {
            name: format!("lu{number}"),
            ..UnitSpec::disk("v", 0x3000_0000_0000_0000 | number)
        };
        let volume = Arc::new(NullVolume::new("v", 1 << 20, 512, false, false));
        (spec.name.clone(), Unit::new(spec, Some(volume), None).unwrap())
    };
    (0..4).map(unit).collect()
});

/// By target and LUN, the number of a unit.
type Table = BTreeMap<(u8, u16), u64>;

fn spec(table: &Table) -> ScsiSpec {
    let targets: BTreeSet<u8> = table.keys().map(|place| place.0).chain([0]).collect();
    let target = |id: u8| TargetSpec {
        id,
        wwpn: Some(0x5000 + u64::from(id)),
        port: u16::from(id) + 1,
        luns: table
            .range((id, 0)..=(id, u16::MAX))
            .map(|(place, unit)| (place.1, format!("lu{unit}")))
            .collect(),
    };
    ScsiSpec::new(Initiator::Fc { wwpn: 0xc050 }, targets.into_iter().map(target).collect())
}

fn view(table: &Table, before: &View) -> View {
    View::new(&spec(table), &UNITS, before, Arc::clone).unwrap()
}

fn table() -> impl Strategy<Value = Table> {
    let lun = prop_oneof![0_u16..6, 254_u16..258, Just(Lun::MAX)];
    proptest::collection::btree_map((0_u8..3, lun), 0_u64..4, 0..12)
}

proptest! {
    /// Whatever a mask becomes: the map shows the table and nothing else, what stays is the same object, and the change is the
    /// difference of the tables.
    #[test]
    fn a_view_is_its_table_and_a_change_the_difference(first in table(), second in table()) {
        let before = view(&first, &View::default());
        let after = view(&second, &before);
        let map = after.map().unwrap();
        let shown: Table = map
            .entries()
            .map(|(target, lun, entry)| {
                let name = UNITS.iter().find(|(_, unit)| Arc::ptr_eq(&unit.unit, entry.nexus.unit()));
                let number = name.unwrap().0[2..].parse().unwrap();
                prop_assert_eq!(entry.nexus.id().port, u16::from(target) + 1);
                Ok(((target, lun.number()), number))
            })
            .collect::<Result<_, TestCaseError>>()?;
        prop_assert_eq!(&shown, &second);
        let change = before.change(&after);
        let differs = |a: &Table, b: &Table| -> Vec<Place> {
            a.iter().filter(|(place, unit)| b.get(place) != Some(unit)).map(|(place, _)| *place).collect()
        };
        prop_assert_eq!(&change.gone, &differs(&first, &second));
        prop_assert_eq!(&change.come, &differs(&second, &first));
        let touched: BTreeSet<u8> = change.gone.iter().chain(&change.come).map(|place| place.0).collect();
        let mut stay = 0;
        for (place, seen) in &after.entries {
            let same = before.entries.get(place).is_some_and(|old| Arc::ptr_eq(&old.nexus, &seen.nexus));
            prop_assert_eq!(same, first.get(place) == second.get(place));
            stay += usize::from(same && touched.contains(&place.0));
        }
        prop_assert_eq!(change.told.len(), stay);
    }
}

#[test]
fn volumes_that_are_awaited_are_let_go_and_the_nexus_stays() {
    let table: Table = [((0, 1), 0), ((0, 2), 1)].into();
    let mut seen = view(&table, &View::default());
    let nexus = Arc::clone(&seen.entries[&(0, 1)].nexus);
    let mut units = UNITS.clone();
    units.get_mut("lu0").unwrap().medium = Medium::Awaited;
    seen.let_go(&units);
    assert!(seen.entries[&(0, 1)].volume.is_none() && seen.entries[&(0, 2)].volume.is_some());
    let again = view(&table, &seen);
    assert!(Arc::ptr_eq(&again.entries[&(0, 1)].nexus, &nexus));
    assert!(again.entries[&(0, 1)].volume.is_some());
    assert!(seen.change(&again).come.is_empty());
}

#[test]
fn the_same_limits_stay_around_a_volume_that_stays() {
    let table: Table = [((0, 1), 0)].into();
    let wrap = |_: &Arc<dyn Volume>| -> Arc<dyn Volume> {
        Arc::new(NullVolume::new("limited", 1 << 20, 512, false, false))
    };
    let first = View::new(&spec(&table), &UNITS, &View::default(), wrap).unwrap();
    let second = View::new(&spec(&table), &UNITS, &first, wrap).unwrap();
    let volume = |view: &View| view.map().unwrap().entry(0).unwrap().volume.clone().unwrap();
    assert!(Arc::ptr_eq(&volume(&first), &volume(&second)));
}

/// A driver that is told that a disk is gone, and come, takes it from those who use it.
#[test]
fn what_was_becoming_ready_neither_goes_nor_comes_when_it_is_ready() {
    let table: Table = [((0, 1), 0), ((0, 2), 1)].into();
    let mut units = UNITS.clone();
    let awaited = UnitSpec { volume: None, ..units["lu0"].spec.clone() };
    units.insert("lu0".into(), Unit::new(awaited, None, None).unwrap());
    let of = |table: &Table, units: &Units, before: &View| {
        View::new(&spec(table), units, before, Arc::clone).unwrap()
    };
    let before = of(&table, &units, &View::default());
    assert!(before.map().unwrap().entry(0).unwrap().volume.is_none());
    let after = of(&table, &UNITS, &before);
    assert!(after.map().unwrap().entry(0).unwrap().volume.is_some());
    let change = before.change(&after);
    assert_eq!((change.gone, change.come, change.ready), (vec![], vec![], vec![(0, 1)]));
    assert!(change.told.is_empty());
    // It waits on, and another unit takes its number.
    let same = before.change(&of(&table, &units, &before));
    assert_eq!((same.gone, same.come, same.ready), (vec![], vec![], vec![]));
    let other: Table = [((0, 1), 2), ((0, 2), 1)].into();
    let change = before.change(&of(&other, &UNITS, &before));
    assert_eq!((change.gone, change.come, change.ready), (vec![(0, 1)], vec![(0, 1)], vec![]));
}
