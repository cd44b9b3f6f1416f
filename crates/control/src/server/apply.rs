//! A configuration as a whole: applying it, pruning, and the file that each start applies.

use super::shared::{ChangeOptions, ConfigFile, Done, Server, read};
use crate::error::ApiError;
use crate::model::Desired;
use crate::model::transition::{Change, Verb};
use fabric::attribute::Object;
use std::collections::BTreeSet;
use std::path::PathBuf;

impl ConfigFile {
    /// Of what was read from a file.
    pub fn new(path: PathBuf, prune: bool, wanted: &Desired) -> ConfigFile {
        ConfigFile { path, prune, names: names(wanted) }
    }

    /// Whether the next start takes a change back.
    fn undoes(&self, change: &Change) -> bool {
        self.has(change) || (self.prune && change.verb != Verb::Remove)
    }

    fn has(&self, change: &Change) -> bool {
        self.names.contains(&(change.object, change.name.clone()))
    }
}

fn names(desired: &Desired) -> BTreeSet<(Object, String)> {
    let of = |object: Object| desired[object].keys().map(move |name| (object, name.clone()));
    Object::ALL.into_iter().flat_map(of).collect()
}

impl Server {
    /// Makes the named objects what a configuration says; with `prune`, objects go that it does not name. Gives what was done and
    /// the objects that are not named and stay.
    pub async fn apply(
        &self,
        wanted: Desired,
        prune: bool,
        options: ChangeOptions,
    ) -> Result<(Done, Vec<String>), ApiError> {
        let named = names(&wanted);
        if named.is_empty() && !options.allow.force {
            return Err(ApiError::invalid("the configuration names no object at all").help(
                "see that the file is the one you mean and that what wrote it did not fail; `--prune --force` removes everything",
            ));
        }
        let edit = move |desired: &mut Desired| {
            if prune {
                *desired = wanted.clone();
                return Ok(());
            }
            for object in Object::ALL {
                let wanted = wanted[object].iter();
                desired[object].extend(wanted.map(|(name, set)| (name.clone(), set.clone())));
            }
            Ok(())
        };
        let done = self.change_named(options, named.clone(), edit).await?;
        let all = if prune { BTreeSet::new() } else { names(&self.desired()) };
        let others = all.difference(&named).map(|(object, name)| format!("{object} {name}"));
        Ok((done, others.collect()))
    }

    /// Remembers the configuration that each start applies, so that commands can say what it will undo.
    pub fn has_file(&self, file: ConfigFile) {
        *self.file.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(file);
    }

    /// What the next start makes undone of these changes, since its configuration file says something else.
    pub(super) fn undone_by_the_file(&self, changes: &[Change]) -> Vec<String> {
        let file = read(&self.file);
        let Some(file) = file.as_ref() else { return Vec::new() };
        let undone = changes.iter().filter(|change| file.undoes(change));
        let (there, gone): (Vec<&Change>, Vec<&Change>) = undone.partition(|it| file.has(it));
        let warning = |changes: Vec<&Change>, what: &str| {
            let names: Vec<String> =
                changes.iter().map(|it| format!("{} {}", it.object, it.name)).collect();
            let path = file.path.display();
            (!names.is_empty()).then(|| {
                let names = names.join(", ");
                format!("the next start of the server applies {path}, and {what}: {names}; change the file, too")
            })
        };
        let all = [
            warning(there, "these will be as that file has them"),
            warning(gone, "removes what it does not have, with its data"),
        ];
        all.into_iter().flatten().collect()
    }
}
