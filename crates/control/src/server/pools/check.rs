//! Storage pools as the rules of [`fabric::pool`] see them: what they have, and what is known of the devices and file systems beneath their PVs.

use super::PoolView;
use crate::model::pools;
use crate::model::pools::pool_of;
use crate::paths::Paths;
use crate::server::one_disk::{DEVICES, PATIENCE, shared};
use crate::server::shared::Server;
use crate::server::views::AnyView;
use fabric::attribute::{Attributes, Object, attr};
use fabric::pool::{Files, Finding, Pool, Pv};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use tokio::sync::oneshot;

/// Bytes of what `stat` counts as blocks of a file.
const STAT_BLOCK: u64 = 512;

/// What is beneath PVs. Nothing is known of one whose path hangs.
#[derive(Debug, Default)]
struct Beneath {
    one_disk: Option<(PathBuf, PathBuf)>,
    depths: BTreeMap<String, u64>,
    files: Vec<Files>,
}

impl Server {
    /// Everything that is wrong with how storage pools are laid out, worst first.
    pub async fn check_pools(&self) -> Vec<Finding> {
        let desired = self.desired();
        let mut reachable: BTreeMap<&str, u64> = BTreeMap::new();
        let volumes = self.objects(Object::Volume).await;
        for view in &volumes {
            if let AnyView::Volume(volume) = view
                && let Some(pool) = pool_of(&volume.attributes)
                && !(volume.adapters.is_empty() && volume.luns.is_empty())
            {
                *reachable.entry(pool).or_default() += 1;
            }
        }
        let mut all = Vec::new();
        for view in self.objects(Object::Pool).await {
            let AnyView::Object(view) = view else { continue };
            let Some(set) = desired[Object::Pool].get(&view.name) else { continue };
            let lus = reachable.get(view.name.as_str()).copied().unwrap_or_default();
            all.push(match &view.space {
                Some(space) => {
                    let beneath = beneath(set, self.paths()).await;
                    described(&view.name, set, space, beneath, lus)
                }
                None => {
                    let why = view.reason.clone().unwrap_or_else(|| "nothing is known".to_owned());
                    Pool { name: view.name.clone(), closed: Some(why), ..Pool::default() }
                }
            });
        }
        fabric::pool::check(&all)
    }
}

/// A pool that is open. PVs that leave are none of it any more.
fn described(name: &str, set: &Attributes, space: &PoolView, beneath: Beneath, lus: u64) -> Pool {
    let pv = |pv: &super::PvView| Pv {
        path: pv.path.clone(),
        group: pv.failgrp.clone(),
        bytes: pv.size_bytes,
        away: pv.state == "away",
        depth: beneath.depths.get(&pv.path).copied(),
    };
    let text = |path: &PathBuf| path.display().to_string();
    Pool {
        name: name.to_owned(),
        closed: None,
        pvs: space.pvs.iter().filter(|pv| pv.leaving.is_none()).map(pv).collect(),
        size: space.size_bytes,
        free: space.free_bytes,
        allocated: space.allocated_bytes,
        warn_percent: attr::pool::WARN_PERCENT.value(set),
        lus,
        one_disk: beneath.one_disk.as_ref().map(|(one, other)| (text(one), text(other))),
        files: beneath.files,
    }
}

/// Looks at the PVs of a pool, and does not wait for one that hangs.
async fn beneath(set: &Attributes, paths: &Paths) -> Beneath {
    let (mut first, second) = (pools::pvs(set, paths), pools::mirror(set, paths));
    first.truncate(first.len() - second.len());
    let (told, found) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = told.send(look(&first, &second, Path::new(DEVICES)));
    });
    let found = tokio::time::timeout(PATIENCE, found).await;
    found.ok().and_then(Result::ok).unwrap_or_default()
}

fn look(first: &[PathBuf], second: &[PathBuf], devices: &Path) -> Beneath {
    let all = || first.iter().chain(second);
    let depths = all().filter_map(|path| Some((path.display().to_string(), depth(path, devices)?)));
    Beneath {
        one_disk: shared(first, second, devices),
        depths: depths.collect(),
        files: files(all()),
    }
}

/// How many requests a block device takes at a time. Of one that is made of others, and of a file, that is not known.
fn depth(path: &Path, devices: &Path) -> Option<u64> {
    let metadata = std::fs::metadata(path).ok().filter(|it| it.file_type().is_block_device())?;
    let number = metadata.rdev();
    let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
    depth_of(&devices.join(number))
}

fn depth_of(device: &Path) -> Option<u64> {
    let mut device = std::fs::canonicalize(device).ok()?;
    if device.join("partition").exists() {
        device.pop();
    }
    let mut below = std::fs::read_dir(device.join("slaves")).into_iter().flatten();
    if below.next().is_some() {
        return None;
    }
    // What a SCSI device takes, which its queue does not know.
    ["device/queue_depth", "queue/nr_requests"].into_iter().find_map(|name| {
        let text = std::fs::read_to_string(device.join(name)).ok()?;
        text.trim().parse().ok()
    })
}

/// The file systems of PVs that are files, and what these can still take.
fn files<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Vec<Files> {
    let mut all: BTreeMap<u64, Files> = BTreeMap::new();
    for path in paths {
        let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file);
        let Some((metadata, free)) = metadata.zip(free(path)) else { continue };
        let missing = metadata.len().saturating_sub(metadata.blocks().saturating_mul(STAT_BLOCK));
        let first = || Files { path: path.display().to_string(), missing: 0, free };
        let of = all.entry(metadata.dev()).or_insert_with(first);
        of.missing = of.missing.saturating_add(missing);
    }
    all.into_values().collect()
}

/// What a file system has left, in bytes.
fn free(path: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(path).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_those_of_disks() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for device in [
            "sda/device",
            "sda/queue",
            "sda/sda1",
            "nvme0n1/queue",
            "dm-0/slaves/sda",
            "dm-0/queue",
        ] {
            std::fs::create_dir_all(at(device)).unwrap();
        }
        let write = |path: &str, text: &str| std::fs::write(at(path), text).unwrap();
        write("sda/device/queue_depth", "32\n");
        write("sda/queue/nr_requests", "256\n");
        write("sda/sda1/partition", "1\n");
        write("nvme0n1/queue/nr_requests", "1023\n");
        write("dm-0/queue/nr_requests", "128\n");
        let of = |device: &str| depth_of(&at(device));
        assert_eq!([of("sda"), of("sda/sda1")], [Some(32); 2]);
        assert_eq!(of("nvme0n1"), Some(1023));
        assert_eq!([of("dm-0"), of("missing")], [None; 2]);
    }

    #[test]
    fn what_files_can_still_take_is_summed_by_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str, bytes: u64| {
            let path = folder.path().join(name);
            std::fs::File::create(&path).unwrap().set_len(bytes).unwrap();
            path
        };
        let paths = [path("a", 1 << 30), path("b", 1 << 31), folder.path().join("missing")];
        let found = files(paths.iter());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].path.clone(), found[0].missing),
            (paths[0].display().to_string(), 3 << 30)
        );
    }
}
