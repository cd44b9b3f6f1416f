//! The files of volumes: made once, and known from then on.
//!
//! ```text
//!            opened                    recreate               opened
//! New ────────────────► Is(identity) ──────────► Again ────────────────► Is(identity)
//!                            │   accept                        opened
//!                            └─────────────────► Taken ────────────────► Is(identity)
//! ```
//!
//! Only under `New` and `Again` is a file made. A file that is missing or another one later is a failed volume, until somebody says what
//! is to hold. Volumes of a state that is older than this have nothing, and are opened as ever, once.

use super::Desired;
use super::pools::{digits, hyphened, pool_of};
use super::resolve::volume_path;
use crate::paths::Paths;
use fabric::attribute::{Attributes, Object, attr};
use protocol::planted;
use serde::{Deserialize, Serialize};
use spec::{FileIdentity, VolumeKind, VolumeSpec};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How it stands with the file of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    /// It was never opened: what is missing is made, if the volume says so.
    New,
    /// Somebody wants an empty one, where none is.
    Again,
    /// Somebody takes what is there.
    Taken,
    /// It was opened: this one, or none.
    Is(FileIdentity),
}

/// What data planes have open, by volume.
pub type Opened = BTreeMap<String, Found>;

/// What is open as a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub path: Option<PathBuf>,
    /// Which file it is; nothing from a data plane that tells none.
    pub identity: Option<FileIdentity>,
}

/// Whether a volume of this kind is made once, and known again by what it was made with.
pub fn is_made(kind: &VolumeKind) -> bool {
    kind.path().is_some() || matches!(kind, VolumeKind::Lu(_))
}

fn has_file(desired: &Desired, name: &str) -> bool {
    desired[Object::Volume].get(name).is_some_and(|set| {
        attr::volume::PATH.applies(Object::Volume, set) || pool_of(set).is_some()
    })
}

impl Desired {
    /// What a volume was known by when it was last opened.
    pub(super) fn identity_of(&self, name: &str) -> Option<&FileIdentity> {
        match self.allocations.files.get(name)? {
            Made::Is(identity) => Some(identity),
            Made::New | Made::Again | Made::Taken => None,
        }
    }

    /// How long the file of a volume was when it was last opened.
    pub(super) fn bytes_of_file(&self, name: &str) -> Option<u64> {
        self.identity_of(name).map(FileIdentity::bytes)
    }
}

/// New volumes have new files; those that are gone are forgotten.
pub(super) fn settle(now: &Desired, next: &mut Desired) {
    let mut files = std::mem::take(&mut next.allocations.files);
    for difference in now.differences(Object::Volume, next) {
        let name = difference.name();
        if difference.before.is_none() && has_file(next, name) {
            let adopted = next[Object::Volume].get(name).and_then(|set| adopted(next, set));
            files.insert(name.to_owned(), adopted.map_or(Made::New, Made::Is));
        } else if difference.before.is_none() || !has_file(next, name) {
            files.remove(name);
        }
    }
    next.allocations.files = files;
}

/// The LU that a volume is by its attributes, which was made before.
fn adopted(desired: &Desired, set: &Attributes) -> Option<FileIdentity> {
    let number = u32::try_from(attr::volume::NUMBER.of(set)?).ok()?;
    // As data planes write it.
    let digits = digits(desired[Object::Pool].get(pool_of(set)?)?).to_ascii_lowercase();
    let pool = hyphened(&digits)?;
    // Its size is learnt.
    Some(FileIdentity::Lu { pool, number, bytes: 0 })
}

/// Notes what is open. Whether there was something new. What an earlier volume of the name has at another place is not a new one's: a data plane
/// that was told of it late may have opened it.
pub fn learn(desired: &mut Desired, opened: &Opened, paths: &Paths) -> bool {
    let mut learned = false;
    for (name, Found { path, identity }) in opened {
        let set = desired[Object::Volume].get(name);
        if set.is_none_or(|set| volume_path(name, set, paths) != *path) {
            continue;
        }
        let known = desired.allocations.files.get(name);
        let now = match (identity, known) {
            (Some(identity), _) => Made::Is(identity.clone()),
            (None, Some(Made::New | Made::Again)) => Made::Taken,
            (None, _) => continue,
        };
        if known != Some(&now) {
            desired.allocations.files.insert(name.clone(), now);
            learned = true;
        }
    }
    learned
}

/// Says in a specification how it is to be opened.
pub(super) fn say(made: Option<&Made>, spec: &mut VolumeSpec) {
    let identity = match made {
        None => return,
        // The second bar before what was left there.
        Some(Made::New) if planted("file-left") => return,
        Some(Made::New) => return spec.kind.first(),
        Some(Made::Again) => return spec.kind.anew(),
        Some(Made::Taken) => None,
        Some(Made::Is(identity)) => Some(identity.clone()),
    };
    spec.kind.settle(identity);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::model::{allocations, resolve, samples, validate};

    const FILE: &str = "[volume.v]\nkind=\"file\"\npath=\"/v\"\ncreate=true\nsize=4096\n[volume.r]\nkind=\"ram\"\nsize=4096\n";

    fn kinds(desired: &Desired) -> (spec::FileSpec, spec::RamSpec) {
        let wanted = resolve::wanted(desired, "main", &samples::paths());
        let (VolumeKind::File(file), VolumeKind::Ram(ram)) =
            (&wanted.volumes["v"].kind, &wanted.volumes["r"].kind)
        else {
            panic!("{wanted:?}")
        };
        (file.clone(), ram.clone())
    }

    #[test]
    fn a_file_is_made_until_it_was_opened_once() {
        let mut desired = config::read(FILE).unwrap();
        allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
        let (file, ram) = kinds(&desired);
        assert_eq!((file.create, file.fresh, ram.fresh), (true, false, true));
        let identity = FileIdentity::File { inode: Some(7), born_ns: None, bytes: 4096 };
        let paths = samples::paths();
        let found = |path: PathBuf| Found { path: Some(path), identity: Some(identity.clone()) };
        let (v, r) = (PathBuf::from("/v"), paths.ram("r"));
        // An earlier volume of the name had it elsewhere.
        for (name, path) in [("v", r.clone()), ("r", v.clone()), ("v", "/w".into())] {
            assert!(!learn(&mut desired, &[(name.into(), found(path))].into(), &paths), "{name}");
        }
        let opened: Opened =
            [("v", v.clone()), ("r", r), ("other", v)].map(|(v, at)| (v.into(), found(at))).into();
        assert!(learn(&mut desired, &opened, &paths));
        assert!(!learn(&mut desired, &opened, &paths), "nothing new");
        let (file, ram) = kinds(&desired);
        assert_eq!((file.create, file.fresh, ram.fresh), (false, false, false));
        assert_eq!((file.identity, ram.identity), (Some(identity.clone()), Some(identity)));
        // It stays so over changes, and a new volume of the name is a new one.
        let mut changed = desired.clone();
        changed[Object::Volume].remove("r");
        allocations::settle(&desired, &mut changed, 1).unwrap();
        assert_eq!(changed.allocations.files.keys().collect::<Vec<_>>(), ["v"]);
        let mut again = desired.clone();
        allocations::settle(&changed, &mut again, 1).unwrap();
        assert_eq!(again.allocations.files["r"], Made::New);
        assert_eq!(again.allocations.files["v"], desired.allocations.files["v"]);
    }

    #[test]
    fn a_data_plane_that_tells_no_identity_has_made_its_files_all_the_same() {
        let mut desired = config::read(FILE).unwrap();
        allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
        let paths = samples::paths();
        let found = |path| Found { path: Some(path), identity: None };
        let opened = [("v", "/v".into()), ("r", paths.ram("r"))];
        learn(&mut desired, &opened.map(|(v, path)| (v.into(), found(path))).into(), &paths);
        let (file, ram) = kinds(&desired);
        assert_eq!((file.create, file.fresh, ram.fresh), (false, false, false));
    }

    #[test]
    fn an_lu_that_a_volume_is_by_its_number_was_made_before() {
        let text = "[pool.p]\npvs=\"/pv\"\nuuid=\"1712E971492c4360bfb15204ba4b76b6\"\n[volume.v]\nkind=\"lu\"\npool=\"p\"\nnumber=7\n";
        let settled = |more: &str| {
            let mut desired = config::read(&format!("{text}{more}")).unwrap();
            allocations::settle(&Desired::default(), &mut desired, 1).unwrap();
            desired
        };
        let judge = |desired: &Desired| validate::validate(desired, &samples::paths());
        let desired = settled("");
        judge(&desired).unwrap();
        let pool = "1712e971-492c-4360-bfb1-5204ba4b76b6".to_owned();
        let lu = FileIdentity::Lu { pool, number: 7, bytes: 0 };
        assert_eq!(desired.allocations.files["v"], Made::Is(lu));
        // It is one volume's, how it was made is past, and it has to stay.
        let second = "[volume.w]\nkind=\"lu\"\npool=\"p\"\nnumber=7\n";
        for (more, what) in
            [(second, "LU 7 of pool `p` is volume `v` already"), ("thick=true", "`thick` says how")]
        {
            let refused = judge(&settled(more)).unwrap_err();
            assert!(refused.message.contains(what), "{refused:?}");
        }
        let mut goes = desired;
        let mut kept = goes.allocations.pools.get("p").cloned().unwrap_or_default();
        kept.doomed.insert(7);
        goes.allocations.pools.insert("p".to_owned(), kept);
        let refused = judge(&goes).unwrap_err();
        assert!(refused.message.contains("is being removed"), "{refused:?}");
    }
}
