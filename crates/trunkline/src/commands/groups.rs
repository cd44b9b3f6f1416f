//! Verbs that change the PVs of a storage pool, its tiers and its failure groups. Both groups are lists in attributes of the pool, with the tiers of the PVs, which are read, changed and sent back together.

use super::lists;
use crate::cli::{Global, How};
use crate::exit::Failure;
use control::error::{ApiError, Code};
use control::server::ObjectView;
use fabric::attribute::{Object, attr};
use fabric::pvs::Listed;
use serde_json::{Map, Value, json};

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Act {
    /// These are in the pool afterwards, in the failure group and the tier of these names.
    Add(Vec<String>, Option<String>, Option<String>),
    /// These are not in it afterwards.
    Remove(Vec<String>),
    /// In the place of the first, and in its group and tier, is the second afterwards.
    Replace(String, String),
    /// There is a second failure group of this name, with these.
    Create(String, Vec<String>),
    /// The failure group of this name is gone, with its PVs.
    Drop(String),
    /// A failure group has another name.
    Rename(String, String),
    /// There is a tier of this name, with these PVs in the first failure group and those in the second.
    CreateTier(String, [Vec<String>; 2]),
    /// The tier of this name is gone, with its PVs.
    DropTier(String),
    /// A tier has another name.
    RenameTier(String, String),
    /// New LUs are in the tier of this name, if none is said.
    DefaultTier(String),
}

/// A PV, with the name of its tier; none of the first.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seat {
    tier: Option<String>,
    path: String,
}

/// The failure groups of a pool: the PVs and the name of each. The second one is there if it has PVs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Groups {
    pool: String,
    pvs: [Vec<Seat>; 2],
    names: [String; 2],
    /// The name of the first tier, and that of the default tier where it is set.
    tiers: (String, Option<String>),
}

/// PVs as they are listed, in a tier of this name if they say none.
fn seats<'a>(text: &'a str, tier: Option<&'a str>) -> impl Iterator<Item = Seat> + 'a {
    Listed::all(text).map(move |one| Seat {
        tier: one.tier.or(tier).map(str::to_owned),
        path: one.path.to_owned(),
    })
}

fn listed(seats: &[Seat]) -> String {
    let one = |seat: &Seat| Listed { tier: seat.tier.as_deref(), path: &seat.path }.to_string();
    seats.iter().map(one).collect::<Vec<_>>().join(",")
}

/// The attributes of each group: its PVs, and its name.
fn attributes() -> [(&'static str, &'static str); 2] {
    [
        (attr::pool::PVS.line().name, attr::pool::FAILGRP.line().name),
        (attr::pool::MIRROR.line().name, attr::pool::MIRROR_FAILGRP.line().name),
    ]
}

impl Groups {
    fn of(view: &ObjectView) -> Groups {
        let text = |name: &str| {
            let value = view.effective.get(name).and_then(|value| value.as_text());
            value.unwrap_or_default().to_owned()
        };
        let pvs = |name| seats(&text(name), None).collect();
        let default = text(attr::pool::DEFAULT_TIER.line().name);
        let tiers =
            (text(attr::pool::TIER.line().name), Some(default).filter(|name| !name.is_empty()));
        Groups {
            pool: view.name.clone(),
            pvs: attributes().map(|(list, _)| pvs(list)),
            names: attributes().map(|(_, name)| text(name)),
            tiers,
        }
        .plain()
    }

    /// PVs of the first tier are listed without it.
    fn plain(mut self) -> Groups {
        let first = &self.tiers.0;
        let of_first = |seat: &&mut Seat| seat.tier.as_ref() == Some(first);
        self.pvs.iter_mut().flatten().filter(of_first).for_each(|seat| seat.tier = None);
        self
    }

    /// The names of the tiers, that of the first before the others.
    fn tier_names(&self) -> Vec<&str> {
        let mut names = vec![self.tiers.0.as_str()];
        for tier in self.pvs.iter().flatten().filter_map(|seat| seat.tier.as_deref()) {
            if !names.contains(&tier) {
                names.push(tier);
            }
        }
        names
    }

    /// A tier that is there: its name in a list, none of the first.
    fn tier(&self, name: &str) -> Result<Option<String>, ApiError> {
        let names = self.tier_names();
        if names.contains(&name) {
            return Ok(Some(name.to_owned()).filter(|_| name != names[0]));
        }
        let what = format!("has no tier `{name}`");
        let help = format!(
            "it has {}; `trunkline tier create {} {name} PATH` makes one",
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
            self.pool
        );
        Err(self.refused(Code::NotFound, what, help))
    }

    fn mirrored(&self) -> bool {
        !self.pvs[1].is_empty()
    }

    fn refused(&self, code: Code, what: String, help: String) -> ApiError {
        ApiError::new(code, format!("pool `{}` {what}", self.pool)).help(help)
    }

    /// The group of a name.
    fn group(&self, name: &str) -> Result<usize, ApiError> {
        let there = if self.mirrored() { &self.names[..] } else { &self.names[..1] };
        there.iter().position(|one| one == name).ok_or_else(|| {
            let what = format!("has no failure group `{name}`");
            let help = match self.mirrored() {
                true => format!("it has `{}` and `{}`", self.names[0], self.names[1]),
                false => format!(
                    "it has `{}`; `trunkline failgrp create {} {name} PATH` makes a second one",
                    self.names[0], self.pool
                ),
            };
            self.refused(Code::NotFound, what, help)
        })
    }

    /// The group of a PV.
    fn group_of(&self, path: &str) -> Result<usize, ApiError> {
        self.pvs.iter().position(|pvs| pvs.iter().any(|one| one.path == path)).ok_or_else(|| {
            let what = format!("has no PV `{path}`");
            let help = format!("`trunkline pool show {}` has the list", self.pool);
            self.refused(Code::NotFound, what, help).on(attr::pool::PVS.name)
        })
    }

    /// Takes PVs out of their groups.
    fn without(&mut self, paths: &[&str]) -> Result<(), ApiError> {
        for path in paths {
            let group = self.group_of(path)?;
            self.pvs[group].retain(|one| one.path != *path);
        }
        Ok(())
    }

    fn add(&mut self, group: usize, seats: impl Iterator<Item = Seat>) {
        for seat in seats {
            if self.pvs[group].iter().all(|one| one.path != seat.path) {
                self.pvs[group].push(seat);
            }
        }
    }

    /// The groups as they shall be.
    fn changed(&self, act: &Act) -> Result<Groups, ApiError> {
        let mut next = self.clone();
        let words = |paths| flat(paths).collect::<Vec<&str>>();
        match act {
            Act::Add(paths, group, tier) => {
                let group = match group {
                    Some(name) => self.group(name)?,
                    None if self.mirrored() => {
                        let what = "is mirrored: it is not said in which failure group".to_owned();
                        let [one, other] = &self.names;
                        let help = format!("add --failgrp {one}, or --failgrp {other}");
                        return Err(self.refused(Code::Invalid, what, help));
                    }
                    None => 0,
                };
                let tier = tier.as_deref().map(|name| self.tier(name)).transpose()?.flatten();
                next.add(group, placed(paths, tier.as_deref()));
            }
            Act::Remove(paths) => {
                next.without(&words(paths))?;
                let emptied = [0, 1].into_iter().find(|group| next.pvs[*group].is_empty());
                if let Some(group) = emptied.filter(|_| self.mirrored()) {
                    let name = &self.names[group];
                    let what = format!("has no other PV in its failure group `{name}`");
                    let help = format!(
                        "each has one at least: add one first, with `--failgrp {name}`, or put another in its place: `trunkline pv replace {} OLD NEW`",
                        self.pool
                    );
                    return Err(self.refused(Code::InUse, what, help));
                }
            }
            Act::Replace(old, new) => {
                let group = self.group_of(old)?;
                let mut seats = self.pvs[group].iter();
                let tier = seats.find(|one| one.path == *old).and_then(|one| one.tier.clone());
                next.without(&[old])?;
                next.add(group, [Seat { tier, path: new.clone() }].into_iter());
            }
            Act::Create(name, paths) => {
                if self.mirrored() {
                    let what = format!(
                        "has the failure groups `{}` and `{}`",
                        self.names[0], self.names[1]
                    );
                    let help = format!(
                        "it has two at most; `trunkline pv add {} PATH --failgrp NAME` adds to one",
                        self.pool
                    );
                    return Err(self.refused(Code::Exists, what, help));
                }
                name.clone_into(&mut next.names[1]);
                next.add(1, placed(paths, None));
            }
            Act::Drop(name) => {
                if self.group(name)? == 0 {
                    let what = format!("cannot be without `{name}`, its first failure group");
                    let help = format!(
                        "its second one can go: {}",
                        match self.mirrored() {
                            true => format!(
                                "`trunkline failgrp remove {} {}`",
                                self.pool, self.names[1]
                            ),
                            false => "it has none".to_owned(),
                        }
                    );
                    return Err(self.refused(Code::Invalid, what, help));
                }
                next.pvs[1].clear();
            }
            Act::Rename(from, to) => {
                let group = self.group(from)?;
                to.clone_into(&mut next.names[group]);
            }
            Act::CreateTier(name, lists) => {
                if self.tier_names().contains(&name.as_str()) {
                    let what = format!("has a tier `{name}`");
                    let help =
                        format!("`trunkline pv add {} PATH --tier {name}` adds to it", self.pool);
                    return Err(self.refused(Code::Exists, what, help));
                }
                if lists[1].is_empty() == self.mirrored() {
                    let (what, help) = match self.mirrored() {
                        true => (
                            "is mirrored",
                            "name PVs of its second failure group too: --mirror PATH,…",
                        ),
                        false => ("is not mirrored", "leave --mirror out"),
                    };
                    return Err(self.refused(Code::Invalid, what.to_owned(), help.to_owned()));
                }
                for (group, paths) in lists.iter().enumerate() {
                    next.add(group, placed(paths, Some(name)));
                }
            }
            Act::DropTier(name) => {
                let tier = self.tier(name)?;
                if tier.is_none() {
                    let what = format!("cannot be without `{name}`, its first tier");
                    let help = "its other tiers can go".to_owned();
                    return Err(self.refused(Code::Invalid, what, help));
                }
                next.pvs.iter_mut().for_each(|pvs| pvs.retain(|one| one.tier != tier));
            }
            Act::RenameTier(from, to) => {
                let tier = self.tier(from)?;
                if self.tier_names().contains(&to.as_str()) {
                    let what = format!("has a tier `{to}`");
                    return Err(self.refused(Code::Exists, what, "choose another name".to_owned()));
                }
                match tier {
                    None => to.clone_into(&mut next.tiers.0),
                    Some(_) => {
                        let its = next.pvs.iter_mut().flatten().filter(|one| one.tier == tier);
                        its.for_each(|one| one.tier = Some(to.clone()));
                    }
                }
                if next.tiers.1.as_ref() == Some(from) {
                    next.tiers.1 = Some(to.clone());
                }
            }
            Act::DefaultTier(name) => {
                self.tier(name)?;
                next.tiers.1 = Some(name.clone());
            }
        }
        Ok(next)
    }

    /// What is to be set so that it is as another.
    fn to(&self, next: &Groups) -> Map<String, Value> {
        let mut set = Map::new();
        for (index, (list, name)) in attributes().into_iter().enumerate() {
            if self.pvs[index] != next.pvs[index] {
                set.insert(list.to_owned(), json!(listed(&next.pvs[index])));
            }
            if self.names[index] != next.names[index] {
                set.insert(name.to_owned(), json!(next.names[index]));
            }
        }
        if self.tiers.0 != next.tiers.0 {
            set.insert(attr::pool::TIER.line().name.to_owned(), json!(next.tiers.0));
        }
        if self.tiers.1 != next.tiers.1 {
            set.insert(attr::pool::DEFAULT_TIER.line().name.to_owned(), json!(next.tiers.1));
        }
        set
    }
}

/// What was typed, in a tier of this name if it says none.
fn placed<'a>(paths: &'a [String], tier: Option<&'a str>) -> impl Iterator<Item = Seat> + 'a {
    paths.iter().flat_map(move |paths| seats(paths, tier))
}

fn flat(paths: &[String]) -> impl Iterator<Item = &str> {
    paths.iter().flat_map(|paths| fabric::san::words(paths))
}

/// Changes the PVs, the tiers or the failure groups of a pool.
pub(crate) fn change(global: &Global, pool: &str, act: &Act, how: How) -> Result<(), Failure> {
    lists::edit(global, (Object::Pool, pool), how, |view| {
        let groups = Groups::of(view);
        Ok(groups.to(&groups.changed(act)?.plain()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(first: &str, second: &str) -> Groups {
        let pvs = [first, second].map(|list| seats(list, None).collect());
        let (names, tiers) =
            (["Default", "Mirror"].map(str::to_owned), ("SYSTEM".to_owned(), None));
        Groups { pool: "p0".to_owned(), pvs, names, tiers }.plain()
    }

    fn these(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn set(groups: &Groups, act: &Act) -> Result<String, ApiError> {
        let next = groups.changed(act)?.plain();
        let set = groups.to(&next).into_iter();
        let set = set.map(|(name, value)| format!("{name}={}", value.as_str().unwrap()));
        Ok(set.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn pvs_come_and_go_in_their_groups() {
        let (plain, mirrored) = (groups("/a, /b", ""), groups("/a,/b", "/c,/d"));
        let add =
            |paths, group: Option<&str>| Act::Add(these(paths), group.map(str::to_owned), None);
        let replace = |old: &str, new: &str| Act::Replace(old.to_owned(), new.to_owned());
        for (groups, act, told) in [
            (&plain, add("/c", None), "pvs=/a,/b,/c"),
            (&plain, add("/c", Some("Default")), "pvs=/a,/b,/c"),
            (&plain, add("/b", None), ""),
            (
                &plain,
                Act::Create("FG2".to_owned(), these("/c /d")),
                "mirror=/c,/d mirror_failgrp=FG2",
            ),
            (&mirrored, add("/e,/f", Some("Mirror")), "mirror=/c,/d,/e,/f"),
            (&mirrored, Act::Remove(these("/a /d")), "mirror=/c pvs=/b"),
            (&mirrored, replace("/d", "/e"), "mirror=/c,/e"),
            (&mirrored, replace("/a", "/e"), "pvs=/b,/e"),
            (&groups("/a", "/c"), replace("/c", "/e"), "mirror=/e"),
            (&mirrored, Act::Rename("Default".to_owned(), "north".to_owned()), "failgrp=north"),
            (&mirrored, Act::Drop("Mirror".to_owned()), "mirror="),
        ] {
            assert_eq!(set(groups, &act).unwrap(), told, "{act:?}");
        }
        for (groups, act, told, help) in [
            (
                &plain,
                add("/c", Some("Mirror")),
                "has no failure group `Mirror`",
                "failgrp create p0 Mirror",
            ),
            (&plain, Act::Remove(these("/c")), "has no PV `/c`", "pool show p0"),
            (&plain, replace("/c", "/d"), "has no PV `/c`", "pool show p0"),
            (&plain, Act::Drop("Default".to_owned()), "cannot be without `Default`", "it has none"),
            (
                &plain,
                Act::Rename("Mirror".to_owned(), "x".to_owned()),
                "has no failure group",
                "failgrp create",
            ),
            (
                &mirrored,
                add("/e", None),
                "it is not said in which failure group",
                "--failgrp Mirror",
            ),
            (&mirrored, add("/e", Some("x")), "has no failure group `x`", "`Default` and `Mirror`"),
            (
                &mirrored,
                Act::Remove(these("/c /d")),
                "no other PV in its failure group `Mirror`",
                "--failgrp Mirror",
            ),
            (
                &mirrored,
                Act::Create("x".to_owned(), these("/e")),
                "has the failure groups",
                "two at most",
            ),
            (
                &mirrored,
                Act::Drop("Default".to_owned()),
                "cannot be without",
                "failgrp remove p0 Mirror",
            ),
        ] {
            let refused = set(groups, &act).unwrap_err();
            assert!(refused.message.contains(told), "{act:?}: {}", refused.message);
            assert!(refused.help.as_ref().unwrap().contains(help), "{act:?}: {:?}", refused.help);
        }
    }

    #[test]
    fn pvs_come_and_go_in_their_tiers() {
        let (plain, mirrored) =
            (groups("/a,SYSTEM:/b,fast:/f", ""), groups("/a,fast:/f", "/c,fast:/g"));
        let add = |paths, group: Option<&str>, tier: Option<&str>| {
            Act::Add(these(paths), group.map(str::to_owned), tier.map(str::to_owned))
        };
        let name = str::to_owned;
        for (groups, act, told) in [
            (&plain, add("/h", None, None), "pvs=/a,/b,fast:/f,/h"),
            (&plain, add("/h /i", None, Some("fast")), "pvs=/a,/b,fast:/f,fast:/h,fast:/i"),
            (&plain, add("fast:/h,/i", None, None), "pvs=/a,/b,fast:/f,fast:/h,/i"),
            (&plain, add("/h", None, Some("SYSTEM")), "pvs=/a,/b,fast:/f,/h"),
            (&plain, Act::Replace(name("/f"), name("/h")), "pvs=/a,/b,fast:/h"),
            (&plain, Act::Remove(these("/f")), "pvs=/a,/b"),
            (
                &plain,
                Act::CreateTier(name("slow"), [these("/h"), vec![]]),
                "pvs=/a,/b,fast:/f,slow:/h",
            ),
            (
                &mirrored,
                Act::CreateTier(name("slow"), [these("/h"), these("/i")]),
                "mirror=/c,fast:/g,slow:/i pvs=/a,fast:/f,slow:/h",
            ),
            (&mirrored, add("/h", Some("Mirror"), Some("fast")), "mirror=/c,fast:/g,fast:/h"),
            (&mirrored, Act::DropTier(name("fast")), "mirror=/c pvs=/a"),
            (
                &mirrored,
                Act::RenameTier(name("fast"), name("nvme")),
                "mirror=/c,nvme:/g pvs=/a,nvme:/f",
            ),
            (&plain, Act::RenameTier(name("SYSTEM"), name("base")), "tier=base"),
            (&plain, Act::DefaultTier(name("fast")), "default_tier=fast"),
        ] {
            assert_eq!(set(groups, &act).unwrap(), told, "{act:?}");
        }
        let default =
            Groups { tiers: ("SYSTEM".to_owned(), Some("fast".to_owned())), ..plain.clone() };
        let renamed = set(&default, &Act::RenameTier(name("fast"), name("nvme"))).unwrap();
        assert_eq!(renamed, "default_tier=nvme pvs=/a,/b,nvme:/f");
        for (groups, act, told, help) in [
            (
                &plain,
                add("/h", None, Some("x")),
                "has no tier `x`",
                "`SYSTEM`, `fast`; `trunkline tier create p0 x",
            ),
            (
                &plain,
                Act::CreateTier(name("fast"), [these("/h"), vec![]]),
                "has a tier `fast`",
                "--tier fast",
            ),
            (
                &plain,
                Act::CreateTier(name("x"), [these("/h"), these("/i")]),
                "is not mirrored",
                "leave --mirror",
            ),
            (
                &mirrored,
                Act::CreateTier(name("x"), [these("/h"), vec![]]),
                "is mirrored",
                "--mirror PATH",
            ),
            (&plain, Act::DropTier(name("SYSTEM")), "cannot be without `SYSTEM`", "other tiers"),
            (
                &plain,
                Act::RenameTier(name("fast"), name("SYSTEM")),
                "has a tier `SYSTEM`",
                "another",
            ),
            (&plain, Act::DefaultTier(name("x")), "has no tier `x`", "it has"),
        ] {
            let refused = set(groups, &act).unwrap_err();
            assert!(refused.message.contains(told), "{act:?}: {}", refused.message);
            assert!(refused.help.as_ref().unwrap().contains(help), "{act:?}: {:?}", refused.help);
        }
    }
}
