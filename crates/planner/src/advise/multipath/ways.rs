//! The ways to each disk of a system, over virtual and Fibre Channel adapters.

use std::collections::{BTreeMap, BTreeSet};

use crate::capture::{At, DiskPath, DiskPaths};

/// The paths by disk, and examples of disks with several.
#[derive(Debug, Default)]
pub(in crate::advise) struct Ways<'a> {
    of: BTreeMap<&'a str, Vec<&'a DiskPath>>,
    /// By kind of adapter, a path of a disk that has several.
    several: BTreeMap<&'a str, &'a DiskPath>,
    /// The same, of a disk with paths over several adapters.
    over_several: BTreeMap<&'a str, &'a DiskPath>,
}

impl<'a> Ways<'a> {
    pub(super) fn new(list: &'a DiskPaths) -> Self {
        let mut ways = Self::default();
        for path in &list.paths {
            let parent = path.parent.as_deref().unwrap_or("");
            if parent.starts_with("vscsi") || parent.starts_with("fscsi") {
                ways.of.entry(&path.disk).or_default().push(path);
            }
        }
        for own in ways.of.values().filter(|own| own.len() > 1) {
            let over_several = parents(own).len() > 1;
            for path in own {
                ways.several.entry(kind(path)).or_insert(path);
                if over_several {
                    ways.over_several.entry(kind(path)).or_insert(path);
                }
            }
        }
        ways
    }

    /// The disks.
    pub(in crate::advise) fn disks(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.of.keys().copied()
    }

    /// The adapters that any path leads over, with the line of one.
    pub(in crate::advise) fn adapters(&self) -> BTreeMap<&'a str, At> {
        let paths = self.of.values().flatten();
        paths.filter_map(|path| Some((path.parent.as_deref()?, path.at))).collect()
    }

    /// The paths of a disk over half of the adapters or less that all others of its kind have, so that there are three of
    /// these at least; with the adapters that it lacks and a path of another disk over one of them.
    pub(super) fn part(
        &self,
        disk: &str,
    ) -> Option<(&[&'a DiskPath], BTreeSet<&'a str>, &'a DiskPath)> {
        const OTHERS: usize = 3;
        let own = self.of.get(disk)?;
        let of_kind = kind(own.first()?);
        let mine = parents(own);
        let mut others = self.of.iter().filter(|(name, paths)| {
            **name != disk && paths.first().is_some_and(|first| kind(first) == of_kind)
        });
        let (_, example) = others.next()?;
        let all = parents(example);
        let alike =
            others.clone().all(|(_, paths)| parents(paths) == all) && others.count() + 1 >= OTHERS;
        let lacks: BTreeSet<&'a str> = all.difference(&mine).copied().collect();
        let half = mine.is_subset(&all) && mine.len() > 1 && mine.len() <= lacks.len();
        let over = example
            .iter()
            .find(|path| path.parent.as_deref().is_some_and(|parent| lacks.contains(parent)))?;
        (alike && half).then_some((own.as_slice(), lacks, *over))
    }

    /// The paths of a disk, all over one adapter; and one of another disk that has more than it over the same kind.
    pub(super) fn fewer(&self, disk: &str) -> Option<(&[&'a DiskPath], &'a DiskPath)> {
        let own = self.of.get(disk)?;
        let only = own.first().filter(|_| parents(own).len() == 1)?;
        let others = if own.len() == 1 { &self.several } else { &self.over_several };
        Some((own, others.get(kind(only))?))
    }
}

/// The adapters that paths lead over.
pub(super) fn parents<'p>(paths: &[&'p DiskPath]) -> BTreeSet<&'p str> {
    paths.iter().filter_map(|path| path.parent.as_deref()).collect()
}

/// The kind of adapter that a path leads over.
fn kind(path: &DiskPath) -> &str {
    let parent = path.parent.as_deref().unwrap_or("");
    parent.trim_end_matches(|c: char| c.is_ascii_digit())
}
