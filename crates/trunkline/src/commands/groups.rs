//! Verbs that change the PVs of a storage pool and its failure groups. Both groups are lists in attributes of the pool, which are read, changed and sent back together.

use super::lists;
use crate::cli::{Global, How};
use crate::exit::Failure;
use control::error::{ApiError, Code};
use control::server::ObjectView;
use fabric::attribute::{Object, attr};
use serde_json::{Map, Value, json};

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Act {
    /// These are in the pool afterwards, in the failure group of this name.
    Add(Vec<String>, Option<String>),
    /// These are not in it afterwards.
    Remove(Vec<String>),
    /// In the place of the first, and in its group, is the second afterwards.
    Replace(String, String),
    /// There is a second failure group of this name, with these.
    Create(String, Vec<String>),
    /// The failure group of this name is gone, with its PVs.
    Drop(String),
    /// A failure group has another name.
    Rename(String, String),
}

/// The failure groups of a pool: the PVs and the name of each. The second one is there if it has PVs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Groups {
    pool: String,
    pvs: [Vec<String>; 2],
    names: [String; 2],
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
        let pvs = |name| fabric::san::words(&text(name)).map(str::to_owned).collect();
        Groups {
            pool: view.name.clone(),
            pvs: attributes().map(|(list, _)| pvs(list)),
            names: attributes().map(|(_, name)| text(name)),
        }
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
        self.pvs.iter().position(|pvs| pvs.iter().any(|one| one == path)).ok_or_else(|| {
            let what = format!("has no PV `{path}`");
            let help = format!("`trunkline pool show {}` has the list", self.pool);
            self.refused(Code::NotFound, what, help).on(attr::pool::PVS.name)
        })
    }

    /// Takes PVs out of their groups.
    fn without(&mut self, paths: &[&str]) -> Result<(), ApiError> {
        for path in paths {
            let group = self.group_of(path)?;
            self.pvs[group].retain(|one| one != path);
        }
        Ok(())
    }

    fn add(&mut self, group: usize, paths: &[&str]) {
        for path in paths {
            if !self.pvs[group].iter().any(|one| one == path) {
                self.pvs[group].push((*path).to_owned());
            }
        }
    }

    /// The groups as they shall be.
    fn changed(&self, act: &Act) -> Result<Groups, ApiError> {
        let mut next = self.clone();
        let words = |paths| flat(paths).collect::<Vec<&str>>();
        match act {
            Act::Add(paths, group) => {
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
                next.add(group, &words(paths));
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
                next.without(&[old])?;
                next.add(group, &[new]);
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
                next.add(1, &words(paths));
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
        }
        Ok(next)
    }

    /// What is to be set so that it is as another.
    fn to(&self, next: &Groups) -> Map<String, Value> {
        let mut set = Map::new();
        for (index, (list, name)) in attributes().into_iter().enumerate() {
            if self.pvs[index] != next.pvs[index] {
                set.insert(list.to_owned(), json!(next.pvs[index].join(",")));
            }
            if self.names[index] != next.names[index] {
                set.insert(name.to_owned(), json!(next.names[index]));
            }
        }
        set
    }
}

fn flat(paths: &[String]) -> impl Iterator<Item = &str> {
    paths.iter().flat_map(|paths| fabric::san::words(paths))
}

/// Changes the PVs or the failure groups of a pool.
pub(crate) fn change(global: &Global, pool: &str, act: &Act, how: How) -> Result<(), Failure> {
    lists::edit(global, (Object::Pool, pool), how, |view| {
        let groups = Groups::of(view);
        Ok(groups.to(&groups.changed(act)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(first: &str, second: &str) -> Groups {
        let pvs = [first, second].map(|list| fabric::san::words(list).map(str::to_owned).collect());
        Groups { pool: "p0".to_owned(), pvs, names: ["Default", "Mirror"].map(str::to_owned) }
    }

    fn these(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn set(groups: &Groups, act: &Act) -> Result<String, ApiError> {
        let next = groups.changed(act)?;
        let set = groups.to(&next).into_iter();
        let set = set.map(|(name, value)| format!("{name}={}", value.as_str().unwrap()));
        Ok(set.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn pvs_come_and_go_in_their_groups() {
        let (plain, mirrored) = (groups("/a, /b", ""), groups("/a,/b", "/c,/d"));
        let add = |paths, group: Option<&str>| Act::Add(these(paths), group.map(str::to_owned));
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
}
