//! Ports that stand for HBAs of the host: their virtual ports are made and removed, and what appears under them is noticed.

use super::shared::Server;
use crate::error::{ApiError, Code};
use crate::hba::{Disk, HbaError, Sysfs, is_held};
use crate::model::Desired;
use crate::model::discovered::{Discovered, Vport, unit, vports};
use crate::turns;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

/// How often the disks under virtual ports are looked at while there are any.
const LOOK_EVERY: Duration = Duration::from_secs(2);

impl Server {
    /// Removes virtual ports that are not wanted any more, makes those that are, and looks what is behind them. Before one goes, data planes
    /// let go of the disks behind it. Where all are there, only `again`. Whether data planes have to be told of something else.
    pub(super) async fn settle_vports(&self, again: bool) -> bool {
        let known = self.desired();
        let wanted = vports(&known);
        let (made, found) = (&known.allocations.vports, &known.discovered);
        let settled = wanted.values().collect::<BTreeSet<_>>() == made.iter().collect()
            && wanted.keys().eq(found.seen.keys())
            && found.troubles.is_empty();
        if settled && (wanted.is_empty() || !again) {
            return false;
        }
        let _hbas = self.hbas.lock().await;
        if self.part_from_vports().await {
            self.tell_dataplanes(None).await;
        }
        let known = self.desired();
        let wanted = vports(&known);
        let all: BTreeSet<&Vport> = wanted.values().collect();
        let sysfs = Sysfs::at(&self.paths.sys);
        let mut found = Discovered::default();
        let mut gone: BTreeSet<Vport> = BTreeSet::new();
        // The kernel answers when the HBA has.
        turns::blocking(|| {
            let unwanted = known.allocations.vports.iter().filter(|vport| !all.contains(vport));
            gone.extend(unwanted.filter(|vport| removed(&sysfs, vport)).cloned());
            for (adapter, vport) in &wanted {
                look(&sysfs, adapter, vport, &known.discovered, &mut found);
            }
        });
        let _change = self.change.lock().await;
        let mut desired = self.desired.write().unwrap_or_else(PoisonError::into_inner);
        let wanted: BTreeSet<Vport> = vports(&desired).into_values().collect();
        // What was removed is forgotten on disk with the next change; to remove it again does nothing.
        desired.allocations.vports.retain(|vport| !gone.contains(vport) || wanted.contains(vport));
        let changed = desired.discovered.seen != found.seen;
        desired.discovered = Arc::new(found);
        changed
    }

    /// What is behind virtual ports that go is not known any more. Whether there was something.
    async fn part_from_vports(&self) -> bool {
        let _change = self.change.lock().await;
        let mut desired = self.desired.write().unwrap_or_else(PoisonError::into_inner);
        let wanted = vports(&desired);
        let before = desired.discovered.seen.len();
        let made = desired.allocations.vports.clone();
        Arc::make_mut(&mut desired.discovered).seen.retain(|adapter, _| {
            wanted.get(adapter).is_some_and(|vport| {
                let elsewhere = |other: &Vport| other.wwpn == vport.wwpn && other != vport;
                !made.iter().any(elsewhere)
            })
        });
        desired.discovered.seen.len() != before
    }

    /// As long as there are virtual ports, or some to be removed, what is behind them is looked at.
    pub(super) fn look_from_time_to_time(&self, next: &Desired) {
        if next.allocations.vports.is_empty() || self.looking.swap(true, Ordering::Relaxed) {
            return;
        }
        let (server, ended) = (Weak::clone(&self.myself), Arc::clone(&self.ended));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let Some(server) = server.upgrade() else { return };
                if !server.look_again().await {
                    return;
                }
            }
        });
    }

    /// Tries again what failed, and tells data planes what has appeared or gone. Whether there is something to look at.
    async fn look_again(&self) -> bool {
        if self.desired().allocations.vports.is_empty() {
            self.looking.store(false, Ordering::Relaxed);
            return false;
        }
        if self.settle_vports(true).await {
            self.tell_dataplanes(None).await;
        }
        true
    }
}

/// Whether a virtual port is gone now.
fn removed(sysfs: &Sysfs, vport: &Vport) -> bool {
    match sysfs.delete(&vport.host, vport.wwpn) {
        Ok(()) => true,
        Err(error) => {
            tracing::warn!(host = vport.host, wwpn = %vport.wwpn, %error, "a virtual port stays");
            false
        }
    }
}

/// Makes the virtual port of an adapter if it is not there, and notes what is behind it.
fn look(sysfs: &Sysfs, adapter: &str, vport: &Vport, earlier: &Discovered, found: &mut Discovered) {
    let disks = sysfs.create(&vport.host, vport.wwpn).and_then(|()| sysfs.disks(vport.wwpn));
    let mut disks = match disks {
        Ok(disks) => disks,
        Err(error) => {
            let why = refusal(adapter, vport, &error);
            if earlier.troubles.get(adapter) != Some(&why) {
                tracing::warn!("{why}; it is tried again");
            }
            found.troubles.insert(adapter.to_owned(), why);
            return;
        }
    };
    let known = earlier.seen.get(adapter).map_or(&[][..], Vec::as_slice);
    // What a client has already stays its own.
    let is_free = |disk: &Disk| known.contains(disk) || !is_held(&disk.device);
    if let Some(disk) = disks.iter().find(|disk| !is_free(disk)) {
        let why = held(adapter, disk);
        found.troubles.insert(adapter.to_owned(), why);
    }
    disks.retain(is_free);
    found.seen.insert(adapter.to_owned(), disks);
}

fn held(adapter: &str, disk: &Disk) -> ApiError {
    let (device, lun, target) = (disk.device.display(), disk.lun, disk.target);
    let message = format!(
        "adapter `{adapter}`: the host itself uses {device}, LUN {lun} of {target}, so that the client does not get it"
    );
    ApiError::new(Code::InUse, message).help(format!(
        "unmount it, or take it out of the host's multipath, LVM or RAID; `lsblk {device}` shows who has it ({})",
        unit(disk)
    ))
}

/// Why an adapter has no virtual port, and what mends that.
fn refusal(adapter: &str, vport: &Vport, error: &HbaError) -> ApiError {
    let host = &vport.host;
    let help = match error {
        HbaError::NoNpiv { .. } => format!(
            "`ls -d /sys/class/fc_host/*/vport_create` lists those that have it; NPIV may have to be switched on in the driver \
             of {host}; or map the adapter to another port: `trunkline port map {adapter} PORT`"
        ),
        HbaError::System { error, .. } if error.kind() == ErrorKind::PermissionDenied => {
            "run the server as root: the kernel lets nobody else make virtual ports".to_owned()
        }
        HbaError::System { .. } => format!(
            "compare npiv_vports_inuse with max_npiv_vports in /sys/class/fc_host/{host}, and see that its port_state is Online \
             and that the switch allows NPIV; or map the adapter to another port: `trunkline port map {adapter} PORT`"
        ),
    };
    ApiError::new(Code::Failed, format!("adapter `{adapter}`: no virtual port on {host}: {error}"))
        .on("port")
        .help(help)
}
