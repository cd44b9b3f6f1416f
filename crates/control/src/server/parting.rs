//! What moves from one data plane to another: the one that has it lets go before the other is told, since two cannot have one file or one
//! socket open.

use crate::model::map::SharedMap;
use crate::model::resolve::Wanted;
use crate::reconcile::Subject;
use std::collections::{BTreeMap, BTreeSet};

/// Volumes and adapters by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Names {
    volumes: BTreeSet<String>,
    adapters: BTreeSet<String>,
}

impl Names {
    /// What a data plane was to have and is not to have any more. What both share is not looked at.
    fn gone(before: &Wanted, now: &Wanted) -> Names {
        fn of<V: Clone + PartialEq>(before: &SharedMap<V>, now: &SharedMap<V>) -> BTreeSet<String> {
            let gone = before.differences(now).into_iter().filter(|it| it.after.is_none());
            gone.map(|it| it.name().to_owned()).collect()
        }
        Names {
            volumes: of(&before.volumes, &now.volumes),
            adapters: of(&before.adapters, &now.adapters),
        }
    }

    fn is_empty(&self) -> bool {
        self.volumes.is_empty() && self.adapters.is_empty()
    }
}

/// What a data plane was told to let go of.
#[derive(Debug)]
struct Leaving {
    dataplane: String,
    /// When it was told.
    post: u64,
    names: Names,
    /// Another data plane is to have some of it.
    awaited: bool,
    /// It could not yet, and somebody looks when it has.
    watched: bool,
}

/// What data planes were told, and what of it they may still have.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// Counts how often all were told.
    pub(super) post: u64,
    told: BTreeMap<String, Wanted>,
    leaving: Vec<Leaving>,
    /// Those that are being ended.
    pub(super) ending: BTreeSet<String>,
}

impl Telling {
    /// Data planes are about to be told this; what another may still have is left out of it.
    pub(super) fn tell(&mut self, wanted: &mut BTreeMap<String, Wanted>) {
        self.post += 1;
        let nothing = Wanted::default();
        for (dataplane, before) in &self.told {
            // Also what nobody wants now: it may be wanted elsewhere before a disk that hangs has let go of it.
            let names = Names::gone(before, wanted.get(dataplane).unwrap_or(&nothing));
            if !names.is_empty() {
                let (dataplane, post) = (dataplane.clone(), self.post);
                self.leaving.push(Leaving {
                    dataplane,
                    post,
                    names,
                    awaited: false,
                    watched: false,
                });
            }
        }
        // What it is to have again does not leave.
        for leaving in &mut self.leaving {
            let Some(now) = wanted.get(&leaving.dataplane) else { continue };
            leaving.names.volumes.retain(|name| !now.volumes.contains_key(name));
            leaving.names.adapters.retain(|name| !now.adapters.contains_key(name));
        }
        self.leaving.retain(|leaving| !leaving.names.is_empty());
        for (dataplane, wanted) in wanted.iter_mut() {
            for other in self.leaving.iter_mut().filter(|leaving| leaving.dataplane != *dataplane) {
                let before = wanted.volumes.len() + wanted.adapters.len();
                wanted.volumes.retain(|name, _| !other.names.volumes.contains(name));
                wanted.adapters.retain(|name, _| !other.names.adapters.contains(name));
                other.awaited |= before != wanted.volumes.len() + wanted.adapters.len();
                wanted.drop_dangling();
            }
        }
        self.told.clone_from(wanted);
    }

    /// Whether others wait for this one to let go.
    pub(super) fn is_awaited(&self, dataplane: &str) -> bool {
        self.leaving.iter().any(|leaving| leaving.dataplane == dataplane && leaving.awaited)
    }

    /// A data plane has done what it was told then, but for what is undone: a disk may not answer. Whether others were waiting for some of it.
    pub(super) fn has_let_go(
        &mut self,
        dataplane: &str,
        post: u64,
        undone: &BTreeSet<Subject>,
    ) -> bool {
        let mut released = false;
        for leaving in self.until(dataplane, post) {
            let before = leaving.names.clone();
            let Names { volumes, adapters } = &mut leaving.names;
            volumes.retain(|name| undone.contains(&Subject::Volume(name.clone())));
            adapters.retain(|name| undone.contains(&Subject::Adapter(name.clone())));
            released |= leaving.awaited && leaving.names != before;
        }
        self.leaving.retain(|leaving| !leaving.names.is_empty());
        released
    }

    fn until(&mut self, dataplane: &str, post: u64) -> impl Iterator<Item = &mut Leaving> {
        let leaving = self.leaving.iter_mut();
        leaving.filter(move |leaving| leaving.dataplane == dataplane && leaving.post <= post)
    }

    /// Whether a data plane has yet to let go of something that it was told then.
    pub(super) fn lets_go(&mut self, dataplane: &str, post: u64) -> bool {
        self.until(dataplane, post).next().is_some()
    }

    /// Whether it has, and nobody looks when that is over: the caller does from now on.
    pub(super) fn watch(&mut self, dataplane: &str, post: u64) -> bool {
        let unwatched = self.until(dataplane, post).filter(|leaving| !leaving.watched);
        unwatched.map(|leaving| leaving.watched = true).count() > 0
    }

    /// A data plane is gone, with all it had.
    pub(super) fn is_gone(&mut self, dataplane: &str) {
        self.has_let_go(dataplane, u64::MAX, &BTreeSet::new());
        self.told.remove(dataplane);
        self.ending.remove(dataplane);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{resolve, samples};

    #[test]
    fn what_moves_is_told_to_the_next_when_the_one_before_has_let_go() {
        let on = |dataplane: &str| {
            let text = format!(
                "[volume.v]\nkind=\"null\"\nsize=4096\n[dataplane.x]\n[dataplane.y]\n[adapter.a]\nvolume=\"v\"\ndataplane=\"{dataplane}\"\n"
            );
            crate::config::read(&text).unwrap()
        };
        let mut telling = Telling::default();
        let told = |telling: &mut Telling, dataplane: &str| {
            let desired = on(dataplane);
            let names = ["main", "x", "y"].into_iter();
            let wanted = |name: &str| resolve::wanted(&desired, name, &samples::paths());
            let mut all: BTreeMap<String, Wanted> =
                names.map(|name| (name.to_owned(), wanted(name))).collect();
            telling.tell(&mut all);
            let has = |wanted: &Wanted| (wanted.volumes.len(), wanted.adapters.len());
            ["x", "y"].map(|name| has(&all[name]))
        };
        assert_eq!(told(&mut telling, "x"), [(1, 1), (0, 0)]);
        assert_eq!(told(&mut telling, "y"), [(0, 0), (0, 0)], "x may still have it");
        let done = BTreeSet::new();
        assert!(telling.is_awaited("x") && !telling.has_let_go("x", 1, &done), "that was before");
        // Whatever else is told meanwhile.
        assert_eq!(told(&mut telling, "y"), [(0, 0), (0, 0)]);
        // A disk of the adapter's does not answer, and it still has both.
        let undone =
            BTreeSet::from([Subject::Adapter("a".to_owned()), Subject::Volume("v".to_owned())]);
        assert!(!telling.has_let_go("x", 2, &undone) && telling.lets_go("x", 2));
        assert!(telling.watch("x", 2) && !telling.watch("x", 2), "one looks");
        assert_eq!(told(&mut telling, "y"), [(0, 0), (0, 0)]);
        assert!(telling.has_let_go("x", 2, &done) && !telling.lets_go("x", 2));
        assert_eq!(told(&mut telling, "y"), [(0, 0), (1, 1)]);
        // There and back again: it never left.
        assert_eq!(told(&mut telling, "x"), [(0, 0), (0, 0)]);
        assert_eq!(told(&mut telling, "y"), [(0, 0), (1, 1)]);
        assert!(!telling.is_awaited("y"));
        // What nobody wants meanwhile is not forgotten: it is wanted elsewhere before it was let go of.
        let desired = crate::config::read("[dataplane.x]\n[dataplane.y]\n").unwrap();
        let wanted = |name: &str| resolve::wanted(&desired, name, &samples::paths());
        let mut none: BTreeMap<String, Wanted> =
            ["main", "x", "y"].map(|name| (name.to_owned(), wanted(name))).into();
        telling.tell(&mut none);
        assert!(!telling.is_awaited("y"), "nobody waits for it");
        assert_eq!(told(&mut telling, "x"), [(0, 0), (0, 0)]);
        assert!(telling.is_awaited("y") && telling.has_let_go("y", u64::MAX, &done));
        assert_eq!(told(&mut telling, "x"), [(1, 1), (0, 0)]);
        assert_eq!(told(&mut telling, "y"), [(0, 0), (0, 0)]);
        assert!(telling.has_let_go("x", u64::MAX, &done));
        assert_eq!(told(&mut telling, "y"), [(0, 0), (1, 1)]);
        telling.is_gone("y");
        assert_eq!(told(&mut telling, "x"), [(1, 1), (0, 0)]);
    }
}
