//! The tiers of a storage pool: names in its lists of PVs, and numbers on them.
//!
//! PVs know the number of their tier and not its name. A name keeps its number as long as PVs are listed under it, or leave it. A new name under which PVs of a tier are listed whose own name
//! is not listed any more is another name of that tier, and LUs are in it under that name from then on. The first tier, 0, is that of the PVs that are listed without one.

use super::{Kept, Open};
use crate::error::ApiError;
use crate::model::Desired;
use crate::paths::Paths;
use fabric::attribute::{Attributes, Object, attr};
use fabric::pvs::Listed;
use spec::PlacedLu;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Tiers that a pool has at most.
pub const TIERS_MAX: usize = 10;

/// What the first tier of a pool is called.
pub fn first(set: &Attributes) -> &str {
    attr::pool::TIER.value(set)
}

/// The tier that new LUs get for which none is said.
pub fn default(set: &Attributes) -> &str {
    attr::pool::DEFAULT_TIER.of(set).unwrap_or_else(|| first(set))
}

/// The PVs of a list, each with the name of its tier.
fn placed<'a>(
    set: &'a Attributes,
    list: Option<&'a str>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let all = Listed::all(list.unwrap_or_default());
    all.map(|one| (one.tier.unwrap_or_else(|| first(set)), one.path))
}

/// The PVs of each failure group, each with the name of its tier.
pub fn by_group(set: &Attributes) -> [Vec<(&str, &str)>; 2] {
    [attr::pool::PVS.of(set), attr::pool::MIRROR.of(set)].map(|list| placed(set, list).collect())
}

/// The name of each PV's tier.
pub fn by_pv<'a>(set: &'a Attributes, paths: &Paths) -> BTreeMap<PathBuf, &'a str> {
    let all = by_group(set).into_iter().flatten();
    all.map(|(tier, path)| (paths.absolute(path), tier)).collect()
}

/// The tiers of a pool, the first of them first.
pub fn names(set: &Attributes) -> Vec<&str> {
    let mut names = vec![first(set)];
    for (tier, _) in by_group(set).into_iter().flatten() {
        if !names.contains(&tier) {
            names.push(tier);
        }
    }
    names
}

/// The numbers of all tiers but the first. One that gets none is one too many.
fn numbers(kept: &Kept, before: Option<&Attributes>, set: &Attributes) -> BTreeMap<String, u8> {
    let names = names(set);
    let names = &names[1..];
    let all = |set| by_group(set).into_iter().flatten();
    let had: Vec<(&str, &str)> = before.into_iter().flat_map(all).collect();
    let mut numbers: BTreeMap<String, u8> = BTreeMap::new();
    for name in names {
        numbers.extend(kept.tiers.get(*name).map(|number| ((*name).to_owned(), *number)));
    }
    for name in names {
        if numbers.contains_key(*name) {
            continue;
        }
        let own = all(set).filter(|(tier, _)| tier == name);
        let mut earlier = own.filter_map(|(_, path)| had.iter().find(|(_, of)| *of == path));
        let number = earlier.find_map(|(tier, _)| {
            let number = kept.tiers.get(*tier)?;
            numbers.values().all(|other| other != number).then_some(number)
        });
        numbers.extend(number.map(|number| ((*name).to_owned(), *number)));
    }
    // Those whose PVs are still about to leave.
    for (name, number) in &kept.tiers {
        let leaves = kept.of_tier.values().any(|of| of == number);
        if leaves && !numbers.contains_key(name) && numbers.values().all(|of| of != number) {
            numbers.insert(name.clone(), *number);
        }
    }
    for name in names {
        let is_free = |number: &u8| {
            numbers.values().chain(kept.of_tier.values()).all(|other| other != number)
        };
        if !numbers.contains_key(*name)
            && let Some(number) = (1..TIERS_MAX as u8).find(is_free)
        {
            numbers.insert((*name).to_owned(), number);
        }
    }
    numbers
}

/// Gives tiers of a pool their numbers. Those that have another name now, by the name before.
pub(super) fn settle(
    kept: &mut Kept,
    (before, after): (Option<&Attributes>, &Attributes),
) -> BTreeMap<String, String> {
    let numbers = numbers(kept, before, after);
    let name_of = |number: &u8| numbers.iter().find(|(_, of)| *of == number).map(|(name, _)| name);
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    for (name, number) in &kept.tiers {
        if let Some(now) = name_of(number).filter(|now| *now != name) {
            renamed.insert(name.clone(), now.clone());
        }
    }
    if let Some(before) = before.map(first).filter(|before| *before != first(after))
        && !numbers.contains_key(before)
    {
        renamed.insert(before.to_owned(), first(after).to_owned());
    }
    kept.tiers = numbers;
    renamed
}

/// Lets the LUs of a pool be in the tiers that they are in by the names that these have now.
pub(super) fn rename_of_lus(next: &mut Desired, pool: &str, renamed: &BTreeMap<String, String>) {
    if renamed.is_empty() {
        return;
    }
    let lus = super::lus_in(next, pool);
    let other = |set: &Attributes| renamed.get(attr::volume::TIER.of(set)?).cloned();
    let lus: Vec<_> = lus.filter_map(|(name, set)| Some((name.clone(), other(set)?))).collect();
    for (name, tier) in lus {
        let mut set = next[Object::Volume].get(&name).cloned().unwrap_or_default();
        attr::volume::TIER.put(&mut set, &tier);
        next[Object::Volume].insert(name, set);
    }
}

/// Notes of which tiers PVs are. A name under which PVs of one tier are listed alone is that one's.
pub(super) fn learn(kept: &mut Kept, open: &Open, set: &Attributes, paths: &Paths) {
    kept.of_tier.clone_from(&open.tiers);
    let placed = by_pv(set, paths);
    for name in &names(set)[1..] {
        let own =
            placed.iter().filter(|(path, tier)| tier == &name && open.members.contains(*path));
        let mut own = own.map(|(path, _)| open.tiers.get(path).copied().unwrap_or(0));
        let Some(number) = own.next().filter(|number| *number > 0) else { continue };
        let taken = kept.tiers.iter().any(|(other, of)| other != *name && *of == number);
        if own.all(|of| of == number) && !taken {
            kept.tiers.insert((*name).to_owned(), number);
        }
    }
}

/// Whether PVs stay in their tiers.
pub(super) fn may_change(
    kept: &Kept,
    name: &str,
    (before, after): (&Attributes, &Attributes),
    paths: &Paths,
) -> Result<(), ApiError> {
    let numbers = numbers(kept, Some(before), after);
    let had = by_pv(before, paths);
    for (path, tier) in by_pv(after, paths) {
        if !kept.members.contains(&path) || had.get(&path) == Some(&tier) {
            continue;
        }
        let is = kept.of_tier.get(&path).copied().unwrap_or(0);
        // What it is called is not known after its server was lost.
        let is_named = is == 0 || numbers.values().any(|number| *number == is);
        let is_new = tier != first(after) && !kept.tiers.contains_key(tier);
        if numbers.get(tier).copied().unwrap_or(0) == is || is_new && !is_named {
            continue;
        }
        let from = had.get(&path).copied().map(str::to_owned);
        let from = from.unwrap_or_else(|| self::name(kept, before, is));
        let path = path.display();
        let what =
            format!("pool `{name}` has {path} in its tier `{from}`: it cannot go to `{tier}`");
        let help = format!(
            "take it out first (`trunkline pv remove {name} {path}`), and add it when it has left"
        );
        return Err(ApiError::invalid(what).on(attr::pool::PVS.name).help(help));
    }
    Ok(())
}

/// The name of a tier by its number.
pub fn name(kept: &Kept, set: &Attributes, number: u8) -> String {
    if number == 0 {
        return first(set).to_owned();
    }
    let mut known = kept.tiers.iter().filter(|(_, of)| **of == number);
    known.next().map_or_else(|| format!("tier-{number}"), |(name, _)| name.clone())
}

/// The LUs of a pool that say in which tier they are to be, as far as they were made.
pub(super) fn placed_lus(desired: &Desired, pool: &str) -> Vec<PlacedLu> {
    let says = super::lus_in(desired, pool).filter(|(_, set)| attr::volume::TIER.is_set(set));
    let placed = says.filter_map(|(name, set)| {
        Some(PlacedLu { lu: desired.lu_number(name)?, tier: of_lu(desired, set)? })
    });
    placed.collect()
}

/// The number of the tier in which an LU is to be: that which it says, or the default.
pub fn of_lu(desired: &Desired, set: &Attributes) -> Option<u8> {
    let name = super::pool_of(set)?;
    let pool = desired[Object::Pool].get(name)?;
    let wanted = attr::volume::TIER.of(set).unwrap_or_else(|| default(pool));
    let kept = desired.allocations.pools.get(name);
    let number = kept.and_then(|kept| kept.tiers.get(wanted).copied());
    Some(number.filter(|_| wanted != first(pool)).unwrap_or(0))
}
