//! The attributes' *takes effect*, held against what [`spec::change`] says of the specifications that come of them.
//!
//! For every attribute: a random state, in which just this one changes on one object; both are resolved, and every volume, unit and
//! adapter of before and after is compared. This walks the same way as a change through the API, and asks what reconcile and the data
//! plane ask.

use super::{Wanted, wanted};
use crate::model::map::SharedMap;
use crate::model::{Desired, allocations, samples, validate::validate};
use fabric::attribute::{Attribute, Effect, Object, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use spec::{Change, change};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// An object of the attribute's sort, by an index over all that there are, with the attribute set to this.
fn changed(
    before: &Desired,
    attribute: &Attribute,
    index: usize,
    value: Value,
) -> Option<(String, Desired)> {
    let objects = &before[attribute.object];
    let (name, set) = objects.iter().nth(index % objects.len().max(1))?;
    if !attribute.is_of(attribute.object.kind_of(set)) || set.get(attribute.name) == Some(&value) {
        return None;
    }
    let mut after = before.clone();
    let set = after[attribute.object].get_mut(name)?;
    set.insert(attribute.name.to_owned(), value);
    allocations::settle(before, &mut after, 42).ok()?;
    let after = validate(&after, &samples::paths()).ok()?;
    Some((name.clone(), after))
}

fn all<T>(
    before: &SharedMap<T>,
    after: &SharedMap<T>,
    change: impl Fn(&T, &T) -> Change,
) -> Vec<(String, Change)> {
    let both = before.iter().filter_map(|(name, now)| Some((name, now, after.get(name)?)));
    both.map(|(name, now, then)| (name.clone(), change(now, then))).collect()
}

/// Whether an attribute that takes effect then may change a specification so. `own`: of the very object that it is set on.
fn agrees(effect: Effect, object: Object, what: Object, own: bool, change: Change) -> bool {
    use Change::{Live, NextConnect, Recreate, Reopen, Same};
    match (effect, change) {
        (_, Same) => true,
        (Effect::Live, change) => change == Live,
        (Effect::NextConnect, change) => change == NextConnect,
        // Nothing of it is in a specification but what starts the process.
        (Effect::Restart, _) => false,
        // Of a volume in use it is refused, so an adapter may take it as it takes its own.
        (Effect::Unused, change) => what == Object::Adapter || matches!(change, Reopen | Recreate),
        // It is refused on an object that stays; others may see it in any way.
        (Effect::Fixed, change) => !own || object != what || change == Recreate,
    }
}

#[test]
fn every_attribute_takes_effect_as_the_table_says() {
    let seen: RefCell<BTreeSet<(Object, &str)>> = RefCell::default();
    for attribute in Object::ALL.into_iter().flat_map(Object::attributes) {
        let index = any::<proptest::sample::Index>().prop_map(|index| index.index(8));
        let cases = (samples::desired(), index, samples::change_of(attribute));
        let config = Config { cases: 12, failure_persistence: None, ..Config::default() };
        let result = TestRunner::new(config).run(&cases, |(before, index, value)| {
            let Some((subject, after)) = changed(&before, attribute, index, value) else {
                return Ok(());
            };
            for dataplane in ["main", "side"] {
                let resolve = |desired| -> Wanted { wanted(desired, dataplane, &samples::paths()) };
                let (before, after) = (resolve(&before), resolve(&after));
                let volumes = all(&before.volumes, &after.volumes, change::volume);
                let units = all(&before.units, &after.units, change::unit);
                let adapters = all(&before.adapters, &after.adapters, change::adapter);
                let of = |what, changes: Vec<(String, Change)>| {
                    changes.into_iter().map(move |(name, change)| (what, name, change))
                };
                let changes = of(Object::Volume, volumes)
                    .chain(of(Object::Vtd, units))
                    .chain(of(Object::Adapter, adapters));
                for (what, name, change) in changes {
                    if change != Change::Same {
                        seen.borrow_mut().insert((attribute.object, attribute.name));
                    }
                    let Attribute { object, effect, .. } = *attribute;
                    prop_assert!(
                        agrees(effect, object, what, name == subject, change),
                        "{object} {}: {effect:?}, but {what} {name}: {change:?}",
                        attribute.name
                    );
                }
            }
            Ok(())
        });
        if let Err(error) = result {
            panic!("{} {}: {error}", attribute.object, attribute.name);
        }
    }
    // The test is worth something only where changes are seen.
    assert!(seen.borrow().len() > 50, "{:?}", seen.borrow());
}
