//! What moves from one data plane to another: the one that has it lets go before the other is told, since two cannot have one file or one
//! socket open.

use crate::model::Desired;
use crate::model::resolve::Wanted;
use fabric::attribute::Object;
use std::collections::{BTreeMap, BTreeSet};

/// Volumes and adapters by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Names {
    volumes: BTreeSet<String>,
    adapters: BTreeSet<String>,
}

impl Names {
    fn of(wanted: &Wanted) -> Names {
        Names {
            volumes: wanted.volumes.keys().cloned().collect(),
            adapters: wanted.adapters.keys().cloned().collect(),
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
}

/// What data planes were told, and what of it they may still have.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// Counts how often all were told.
    pub(super) post: u64,
    told: BTreeMap<String, Names>,
    leaving: Vec<Leaving>,
    /// Those that are being ended.
    pub(super) ending: BTreeSet<String>,
}

impl Telling {
    /// Data planes are about to be told this; what another may still have is left out of it.
    pub(super) fn tell(&mut self, desired: &Desired, wanted: &mut BTreeMap<String, Wanted>) {
        self.post += 1;
        for (dataplane, names) in &self.told {
            let now = wanted.get(dataplane);
            let volumes = names.volumes.iter().filter(|name| {
                now.is_none_or(|now| !now.volumes.contains_key(*name))
                    && desired[Object::Volume].contains_key(name)
            });
            let adapters = names.adapters.iter().filter(|name| {
                now.is_none_or(|now| !now.adapters.contains_key(*name))
                    && desired[Object::Adapter].contains_key(name)
            });
            let names = Names {
                volumes: volumes.cloned().collect(),
                adapters: adapters.cloned().collect(),
            };
            if !names.is_empty() {
                let (dataplane, post) = (dataplane.clone(), self.post);
                self.leaving.push(Leaving { dataplane, post, names });
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
            for other in self.leaving.iter().filter(|leaving| leaving.dataplane != *dataplane) {
                wanted.volumes.retain(|name, _| !other.names.volumes.contains(name));
                wanted.adapters.retain(|name, _| !other.names.adapters.contains(name));
                wanted.drop_dangling();
            }
        }
        self.told = wanted.iter().map(|(name, wanted)| (name.clone(), Names::of(wanted))).collect();
    }

    /// Whether others wait for this one to let go.
    pub(super) fn is_awaited(&self, dataplane: &str) -> bool {
        self.leaving.iter().any(|leaving| leaving.dataplane == dataplane)
    }

    /// A data plane has done what it was told then. Whether others were waiting for that.
    pub(super) fn has_let_go(&mut self, dataplane: &str, post: u64) -> bool {
        let before = self.leaving.len();
        self.leaving.retain(|leaving| leaving.dataplane != dataplane || leaving.post > post);
        self.leaving.len() != before
    }

    /// A data plane is gone, with all it had.
    pub(super) fn is_gone(&mut self, dataplane: &str) {
        self.has_let_go(dataplane, u64::MAX);
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
            telling.tell(&desired, &mut all);
            let has = |wanted: &Wanted| (wanted.volumes.len(), wanted.adapters.len());
            ["x", "y"].map(|name| has(&all[name]))
        };
        assert_eq!(told(&mut telling, "x"), [(1, 1), (0, 0)]);
        assert_eq!(told(&mut telling, "y"), [(0, 0), (0, 0)], "x may still have it");
        assert!(telling.is_awaited("x") && !telling.has_let_go("x", 1), "that was before");
        // Whatever else is told meanwhile.
        assert_eq!(told(&mut telling, "y"), [(0, 0), (0, 0)]);
        assert!(telling.has_let_go("x", 2));
        assert_eq!(told(&mut telling, "y"), [(0, 0), (1, 1)]);
        // There and back again: it never left.
        assert_eq!(told(&mut telling, "x"), [(0, 0), (0, 0)]);
        assert_eq!(told(&mut telling, "y"), [(0, 0), (1, 1)]);
        assert!(!telling.is_awaited("y"));
        telling.is_gone("y");
        assert_eq!(told(&mut telling, "x"), [(1, 1), (0, 0)]);
    }
}
