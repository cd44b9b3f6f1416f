//! Whether both failure groups of a storage pool lie on one disk: then that disk takes both copies with it.

use crate::model::transition::Change;
use crate::model::{Desired, pools};
use crate::paths::Paths;
use fabric::attribute::{Object, attr};
use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Nobody waits longer to be warned: a path may hang.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);
/// Where the kernel shows block devices by their numbers.
pub(super) const DEVICES: &str = "/sys/dev/block";
/// Devices on devices, as deep as that is followed.
const DEPTH: u32 = 8;

/// A warning for each pool whose PVs a change names.
pub(super) fn warnings(next: &Desired, changes: &[Change], paths: &Paths) -> Vec<String> {
    let names = [attr::pool::PVS.name, attr::pool::MIRROR.name];
    let is_about = |change: &&Change| {
        change.object == Object::Pool
            && change.attributes.iter().any(|one| names.contains(&one.attribute.as_str()))
    };
    let warning = |change: &Change| {
        let set = next[Object::Pool].get(&change.name)?;
        let (mut first, second) = (pools::pvs(set, paths), pools::mirror(set, paths));
        first.truncate(first.len() - second.len());
        if second.is_empty() {
            return None;
        }
        let (told, found) = channel();
        std::thread::spawn(move || {
            let _ = told.send(shared(&first, &second, Path::new(DEVICES)));
        });
        let (one, other) = found.recv_timeout(PATIENCE).ok()??;
        let [one_group, other_group] = pools::groups(set);
        Some(format!(
            "pool {}: {} of failure group `{one_group}` and {} of `{other_group}` lie on one disk, which takes both copies with it when it fails: \
             give each group disks of its own",
            change.name,
            one.display(),
            other.display(),
        ))
    };
    changes.iter().filter(is_about).filter_map(warning).collect()
}

/// Two of which one disk has something.
pub(super) fn shared(
    first: &[PathBuf],
    second: &[PathBuf],
    devices: &Path,
) -> Option<(PathBuf, PathBuf)> {
    let second: Vec<_> = second.iter().map(|path| (path, disks(path, devices))).collect();
    first.iter().find_map(|path| {
        let own = disks(path, devices);
        let (other, _) = second.iter().find(|(_, its)| !own.is_disjoint(its))?;
        Some((path.clone(), (*other).clone()))
    })
}

/// The disks on which something lies; empty where that cannot be told.
fn disks(path: &Path, devices: &Path) -> BTreeSet<String> {
    let Ok(metadata) = std::fs::metadata(path) else { return BTreeSet::new() };
    let is_device = metadata.file_type().is_block_device();
    let number = if is_device { metadata.rdev() } else { metadata.dev() };
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let device = format!("{major}:{minor}");
    let mut all = BTreeSet::new();
    below(&devices.join(&device), DEPTH, &mut all);
    if all.is_empty() {
        // No block device that is shown, such as a tmpfs or a file system of several: it is one to who loses it.
        all.insert(device);
    }
    all
}

/// What a device is made of: a partition of its disk, a mapped device of those below it.
fn below(device: &Path, depth: u32, all: &mut BTreeSet<String>) {
    let Ok(device) = std::fs::canonicalize(device) else { return };
    if device.join("partition").exists()
        && let Some(disk) = device.parent()
    {
        return below(disk, depth, all);
    }
    let slaves = std::fs::read_dir(device.join("slaves")).into_iter().flatten().flatten();
    let slaves: Vec<PathBuf> = slaves.map(|entry| entry.path()).collect();
    if slaves.is_empty() || depth == 0 {
        all.extend(device.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    if depth > 0 {
        slaves.iter().for_each(|slave| below(slave, depth - 1, all));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::samples;
    use crate::model::transition::{Allow, transition};

    fn said(text: &str) -> Vec<String> {
        let next = crate::config::read(text).unwrap();
        let paths = samples::paths();
        let change = transition(&Desired::default(), &next, &paths, Allow::default()).unwrap();
        warnings(&next, &change.changes, &paths)
    }

    #[test]
    fn groups_on_one_file_system_are_warned_of() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, b"x").unwrap();
            path.display().to_string()
        };
        let (a, b) = (path("a"), path("b"));
        let found = said(&format!("[pool.p]\npvs=\"{a}\"\nmirror=\"{b}\"\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        let told = format!("{a} of failure group `Default` and {b} of `Mirror` lie on one disk");
        assert!(found[0].contains(&told), "{found:?}");
        assert_eq!(said(&format!("[pool.p]\npvs=\"{a},{b}\"\n")), [""; 0], "one copy is meant");
        let missing = said(&format!("[pool.p]\npvs=\"{a}\"\nmirror=\"{a}-missing\"\n"));
        assert_eq!(missing, [""; 0], "nothing is known of it");
    }

    #[test]
    fn partitions_and_what_is_mapped_are_of_the_disks_below() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        let link = std::os::unix::fs::symlink::<PathBuf, PathBuf>;
        for device in ["sda/sda1", "sda/sda2", "sdb/slaves", "dm-0/slaves", "by"] {
            std::fs::create_dir_all(at(device)).unwrap();
        }
        for partition in ["sda/sda1/partition", "sda/sda2/partition"] {
            std::fs::write(at(partition), b"1").unwrap();
        }
        link(at("sda/sda2"), at("dm-0/slaves/sda2")).unwrap();
        link(at("sdb"), at("dm-0/slaves/sdb")).unwrap();
        for (number, device) in [("8:1", "sda/sda1"), ("8:16", "sdb"), ("253:0", "dm-0")] {
            link(at(device), at("by").join(number)).unwrap();
        }
        let of = |number: &str| {
            let mut all = BTreeSet::new();
            below(&at("by").join(number), DEPTH, &mut all);
            all.into_iter().collect::<Vec<_>>()
        };
        assert_eq!((of("8:1"), of("8:16")), (vec!["sda".to_owned()], vec!["sdb".to_owned()]));
        assert_eq!(of("253:0"), ["sda", "sdb"]);
    }
}
