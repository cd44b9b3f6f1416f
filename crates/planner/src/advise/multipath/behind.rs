//! The disks of servers that may stand behind paths over virtual SCSI that are down.

use super::paths;
use crate::advise::disk_behind::in_front_of;
use crate::advise::view::{Role, View};
use crate::capture::DiskPath;

/// The disks behind these paths, where all are over virtual SCSI: those that are known to be, else all that servers give to
/// a client of which nothing was captured, where this one is the only client here.
pub(super) fn behind_scsi(view: &View<'_>, host: usize, down: &[&DiskPath]) -> Vec<String> {
    let scsi =
        |path: &&DiskPath| path.parent.as_deref().is_some_and(|parent| parent.starts_with("vscsi"));
    if !down.iter().all(scsi) {
        return Vec::new();
    }
    let object = |(vios, disk): &(usize, &str)| view.object(*vios, disk);
    let is_down = |disk: &str| down.iter().any(|path| path.disk == disk);
    let known = view
        .backing()
        .iter()
        .filter(|(vios, disk)| in_front_of(view, (*vios, disk), host).is_some_and(is_down));
    let known: Vec<String> = known.map(object).collect();
    if !known.is_empty() {
        return known;
    }
    let clients = view.hosts().filter(|of| view.role(*of) != Role::Vios);
    let mut with_paths = clients.filter(|of| paths(view, *of).is_some());
    let only = with_paths.next() == Some(host) && with_paths.next().is_none();
    // A server whose client is known to be another one is not behind these.
    let of_other = |vios: usize, disk: &str| {
        let mut of = view.vhosts().iter().filter(|(server, adapter)| {
            let behind = |target: &crate::capture::Vtd| {
                target.backing.as_ref().is_some_and(|read| read.value == disk)
            };
            *server == vios && adapter.devices.iter().any(behind)
        });
        of.any(|(_, adapter)| {
            let named = view.model.named_at(adapter.at);
            named.is_some_and(|named| named != host && view.of(named).next().is_some())
        })
    };
    let all = view.backing().iter().filter(|(vios, disk)| only && !of_other(*vios, disk));
    all.map(object).collect()
}
