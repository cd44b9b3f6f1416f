//! Tiers of storage pools: `tier`.

use super::groups::{change, placed, verb_of_pvs};
use super::{Pool, load, megabytes, needed, one, table};
use crate::commands::groups::Act;
use crate::exit::Failure;
use crate::ioscli::words::Words;
use crate::ioscli::{Context, wrong};
use control::error::{ApiError, Code};
use control::server::TierView;
use fabric::attribute::{Attributes, attr};
use fabric::pvs::Listed;

/// A tier, sizes in MB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::ioscli) struct Tier {
    pub(in crate::ioscli) name: String,
    pub(in crate::ioscli) size: u64,
    pub(in crate::ioscli) free: u64,
}

impl Tier {
    pub(super) fn of(view: &TierView) -> Tier {
        let (size, free) = (megabytes(view.size_bytes), megabytes(view.free_bytes));
        Tier { name: view.name.clone(), size, free }
    }

    /// Those of a pool of which nothing else is known.
    pub(super) fn named(set: &Attributes) -> Vec<Tier> {
        let mut names = vec![attr::pool::TIER.value(set)];
        for tier in Listed::all(attr::pool::PVS.of(set).unwrap_or_default()) {
            names.extend(tier.tier.filter(|tier| !names.contains(tier)));
        }
        names.into_iter().map(|name| Tier { name: name.to_owned(), size: 0, free: 0 }).collect()
    }
}

/// The tier of a name.
pub(super) fn of<'a>(pool: &'a Pool, name: &str) -> Result<&'a Tier, Failure> {
    pool.tiers.iter().find(|tier| tier.name == name).ok_or_else(|| {
        let names: Vec<&str> = pool.tiers.iter().map(|tier| tier.name.as_str()).collect();
        let what = format!("storage pool {} has no tier {name}", pool.name);
        let help = format!("it has {}", names.join(", "));
        ApiError::new(Code::NotFound, what).help(help).into()
    })
}

/// `tier -list`
pub(in crate::ioscli) fn list(pools: &[Pool], delimiter: Option<&str>) -> String {
    let row = |(pool, tier): (&Pool, &Tier)| {
        let (size, free) = (tier.size.to_string(), tier.free.to_string());
        vec![tier.name.clone(), size, free, pool.mirror_state().to_owned(), pool.name.clone()]
    };
    let all = pools.iter().flat_map(|pool| pool.tiers.iter().map(move |tier| (pool, tier)));
    let heading = ["TIER_NAME", "SIZE(MB)", "FREE_SPACE(MB)", "MIRROR_STATE", "POOL_NAME"];
    table(&[], &heading, all.map(row), delimiter)
}

/// The PVs of a tier that is made, by failure group: those behind the name of one and `:`, else of the first.
fn in_groups(pool: &Pool, glued: &str, more: &[String]) -> Result<[Vec<String>; 2], Failure> {
    let glued = Some(glued.to_owned()).filter(|path| !path.is_empty());
    let all: Vec<String> = glued.into_iter().chain(more.iter().cloned()).collect();
    let mut pvs = [Vec::new(), Vec::new()];
    for (group, mut paths) in placed(&all, None) {
        let place =
            pool.groups.iter().position(|one| group.as_ref().is_none_or(|name| *name == one.name));
        match place.and_then(|place| pvs.get_mut(place)) {
            Some(its) => its.append(&mut paths),
            None => {
                let what = format!(
                    "storage pool {} has no failure group {}",
                    pool.name,
                    group.unwrap_or_default()
                );
                let help = "`trunkline ioscli failgrp -list` lists them";
                return Err(ApiError::new(Code::NotFound, what).help(help).into());
            }
        }
    }
    if pvs[0].is_empty() {
        let help = "such as tier -create -tier FAST: /dev/sdd /dev/sde";
        return Err(wrong("tier -create needs a name with `:`, and PVs behind it", help));
    }
    Ok(pvs)
}

/// `tier`
pub(in crate::ioscli) fn tier(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let (act, done) = match verb_of_pvs(words, &["-list", "-create", "-modify", "-remove"], "tier")?
    {
        "-list" => return Ok(list(&load(context, words)?, words.one("-fmt"))),
        "-create" => {
            let pool = one(context, words)?;
            let typed = needed(words, "-tier", "TIER:")?;
            let (name, glued) = typed.split_once(':').unwrap_or((typed, ""));
            let pvs = in_groups(&pool, glued, &words.plain)?;
            let done = format!("Tier {name} is made.");
            (Act::CreateTier(name.to_owned(), pvs), done)
        }
        "-modify" => {
            let name = needed(words, "-tier", "TIER")?.to_owned();
            match words.one("-attr").and_then(|attribute| attribute.split_once('=')) {
                Some(("tier_name", to)) => {
                    let done = format!("Tier {name} is {to} now.");
                    (Act::RenameTier(name, to.to_owned()), done)
                }
                Some(("default", "yes")) => {
                    let done = format!("Tier {name} is the default.");
                    (Act::DefaultTier(name), done)
                }
                _ => {
                    let help = "a tier has no other attribute";
                    let what = "tier -modify needs -attr tier_name=NAME or default=yes";
                    return Err(wrong(what, help));
                }
            }
        }
        _ => {
            let name = needed(words, "-tier", "TIER")?.to_owned();
            (Act::DropTier(name.clone()), format!("Tier {name} is removed."))
        }
    };
    let pool = one(context, words)?;
    change(context, &pool.name, &act)?;
    Ok(done)
}
