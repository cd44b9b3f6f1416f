//! Failure groups and PVs of storage pools: `failgrp`, `pv`.

use super::{Pool, Pv, Tier, megabytes, needed, of_each, one, table, tiers, verb};
use crate::cli::How;
use crate::commands::groups::{self, Act};
use crate::exit::Failure;
use crate::ioscli::words::Words;
use crate::ioscli::{Context, wrong};
use control::server::{FailgrpView, PvView};
use fabric::attribute::{Attributes, attr};

/// A failure group, sizes in MB.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::ioscli) struct Group {
    pub(in crate::ioscli) name: String,
    pub(in crate::ioscli) size: u64,
    /// As `-list` has it.
    pub(in crate::ioscli) state: &'static str,
}

impl Group {
    pub(super) fn of(view: &FailgrpView) -> Group {
        let state = match view.state.as_str() {
            "online" => "ONLINE",
            "away" => "OFFLINE",
            "resyncing" => "SYNCING",
            _ => "DEGRADED",
        };
        Group { name: view.name.clone(), size: megabytes(view.size_bytes), state }
    }

    /// Those of a pool of which nothing else is known.
    pub(super) fn named(set: &Attributes) -> Vec<Group> {
        let mirrored = attr::pool::MIRROR.of(set).is_some_and(|pvs| !pvs.is_empty());
        let names = [attr::pool::FAILGRP.value(set), attr::pool::MIRROR_FAILGRP.value(set)];
        let named = |name: &str| Group { name: name.to_owned(), size: 0, state: "OFFLINE" };
        names.into_iter().take(if mirrored { 2 } else { 1 }).map(named).collect()
    }
}

/// How a PV stands, in the original's way.
pub(super) fn state_of(pv: &PvView) -> &'static str {
    match pv.state.as_str() {
        "away" => "OFFLINE",
        "resyncing" => "SYNCING",
        "leaving" => "REMOVING",
        _ => "ONLINE",
    }
}

impl Pool {
    /// Whether there are two copies of what is in it.
    pub(super) fn mirror_state(&self) -> &'static str {
        let any = |state| self.groups.iter().any(|group| group.state == state);
        match self.groups.len() {
            0 | 1 => "NOT_MIRRORED",
            _ if any("OFFLINE") || any("DEGRADED") => "DEGRADED",
            _ if any("SYNCING") => "SYNCING",
            _ => "SYNCED",
        }
    }
}

/// `pv -list`: a table for each failure group of each tier.
pub(in crate::ioscli) fn pvs(pool: &Pool, delimiter: Option<&str>) -> String {
    let row =
        |pv: &Pv| vec![pv.path.clone(), pv.size.to_string(), pv.state.to_owned(), pv.udid.clone()];
    let heading = ["PV_NAME", "SIZE(MB)", "STATE", "UDID"];
    let of_group = |(tier, group): (&Tier, &Group)| {
        let place = [
            ("POOL_NAME", pool.name.as_str()),
            ("TIER_NAME", tier.name.as_str()),
            ("FG_NAME", group.name.as_str()),
        ];
        let its = |pv: &&Pv| pv.group == group.name && pv.tier == tier.name;
        table(&place, &heading, pool.pvs.iter().filter(its).map(row), delimiter)
    };
    let places =
        pool.tiers.iter().flat_map(|tier| pool.groups.iter().map(move |group| (tier, group)));
    let tables: Vec<String> = places.map(of_group).collect();
    tables.join(if delimiter.is_some() { "" } else { "\n" })
}

/// PVs behind a flag, some of them behind the name of a failure group and `:`. The name that begins is that of `-fg`, if it is there.
pub(super) fn placed(words: &[String], group: Option<&str>) -> Vec<(Option<String>, Vec<String>)> {
    let mut all: Vec<(Option<String>, Vec<String>)> = Vec::new();
    let mut now = group.map(|name| name.trim_end_matches(':').to_owned());
    for word in words {
        // A path has its `:`, if any, behind a `/`.
        let (name, path) = match word.split_once(':') {
            Some((name, path)) if !name.contains('/') && !name.is_empty() => (Some(name), path),
            _ => (None, word.as_str()),
        };
        if let Some(name) = name {
            now = Some(name.to_owned());
        }
        if path.is_empty() {
            continue;
        }
        match all.last_mut().filter(|(group, _)| *group == now) {
            Some((_, paths)) => paths.push(path.to_owned()),
            None => all.push((now.clone(), vec![path.to_owned()])),
        }
    }
    all
}

/// What is asked for. Where it takes no PVs behind it, there are none.
pub(super) fn verb_of_pvs<'a>(
    words: &Words,
    verbs: &[&'a str],
    command: &str,
) -> Result<&'a str, Failure> {
    let verb = verb(words, verbs, command)?;
    match words.plain.first().filter(|_| !matches!(verb, "-add" | "-create")) {
        Some(more) => Err(wrong(format!("`{more}` is one word too many"), "see -help")),
        None => Ok(verb),
    }
}

pub(super) fn change(context: &Context<'_>, pool: &str, act: &Act) -> Result<(), Failure> {
    let how = How { dry_run: false, force: context.force, no_wait: false };
    groups::change(context.global, pool, act, how)
}

/// `pv`
pub(in crate::ioscli) fn pv(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let mut pool = None;
    let acts = match verb_of_pvs(words, &["-list", "-add", "-remove", "-replace"], "pv")? {
        "-list" => return of_each(context, words, pvs),
        "-add" => {
            let all = [words.all("-add"), &words.plain].concat();
            let placed = placed(&all, words.one("-fg")).into_iter();
            let there = one(context, words)?;
            let tier = words
                .one("-tier")
                .map(|name| Ok::<_, Failure>(tiers::of(&there, name)?.name.clone()));
            let tier = tier.transpose()?;
            pool = Some(there);
            placed.map(|(group, paths)| Act::Add(paths, group, tier.clone())).collect()
        }
        "-remove" => match words.all("-pv") {
            [] => return Err(wrong("-pv PATH is missing", "see -help")),
            pvs => vec![Act::Remove(pvs.to_vec())],
        },
        _ => match (words.all("-oldpv"), words.all("-newpv")) {
            ([old], [new]) => vec![Act::Replace(old.clone(), new.clone())],
            _ => return Err(wrong("pv -replace needs -oldpv PATH -newpv PATH", "one of each")),
        },
    };
    let pool = pool.map_or_else(|| one(context, words), Ok)?;
    acts.iter().try_for_each(|act| change(context, &pool.name, act))?;
    Ok(String::new())
}

/// `failgrp -list`
pub(in crate::ioscli) fn list(pool: &Pool, delimiter: Option<&str>) -> String {
    let row =
        |group: &Group| vec![group.name.clone(), group.size.to_string(), group.state.to_owned()];
    let tiers = pool.tiers.iter().map(|tier| tier.name.as_str()).collect::<Vec<_>>().join(",");
    let place = [("POOL_NAME", pool.name.as_str()), ("TIER_NAME", tiers.as_str())];
    let heading = ["FG_NAME", "FG_SIZE(MB)", "FG_STATE"];
    table(&place, &heading, pool.groups.iter().map(row), delimiter)
}

/// `failgrp`
pub(in crate::ioscli) fn failgrp(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    let verbs = ["-list", "-create", "-modify", "-remove"];
    let (act, done) = match verb_of_pvs(words, &verbs, "failgrp")? {
        "-list" => return of_each(context, words, list),
        "-create" => {
            let mut placed = placed(&words.plain, words.one("-fg")).into_iter();
            let (Some((Some(name), paths)), None) = (placed.next(), placed.next()) else {
                let help = "such as failgrp -create FG2: /dev/sdd /dev/sde";
                return Err(wrong(
                    "failgrp -create needs a name with `:`, and PVs behind it",
                    help,
                ));
            };
            (Act::Create(name.clone(), paths), format!("Failure group {name} is made."))
        }
        "-modify" => {
            let name = needed(words, "-fg", "GROUP")?.to_owned();
            let to = words.one("-attr").and_then(|attribute| attribute.split_once('='));
            let Some(("fg_name", to)) = to else {
                let help = "a failure group has no other attribute";
                return Err(wrong("failgrp -modify needs -attr fg_name=NAME", help));
            };
            let done = format!("Failure group {name} is {to} now.");
            (Act::Rename(name, to.to_owned()), done)
        }
        _ => {
            let name = needed(words, "-fg", "GROUP")?.to_owned();
            (Act::Drop(name.clone()), format!("Failure group {name} is removed."))
        }
    };
    let pool = one(context, words)?;
    change(context, &pool.name, &act)?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pvs_stand_behind_the_names_of_their_groups() {
        let of = |text: &str, group| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let all = placed(&words, group).into_iter();
            let all = all
                .map(|(group, paths)| format!("{}:{}", group.unwrap_or_default(), paths.join(",")));
            all.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("/a /b", None), ":/a,/b");
        assert_eq!(of("/a /b", Some("FG2")), "FG2:/a,/b");
        assert_eq!(of("FG1: /a /b FG2: /c", None), "FG1:/a,/b FG2:/c");
        assert_eq!(of("FG1:/a FG2:/c", Some("FG1:")), "FG1:/a FG2:/c");
        assert_eq!(
            of("/dev/disk/by-path/pci-0000:00:1f", None),
            ":/dev/disk/by-path/pci-0000:00:1f"
        );
    }
}
