//! What is tested, one function per scenario.

mod cluster;
mod disk;
mod fault;
mod fc;
mod fence;
mod kills;
mod net;
mod peer;
mod pool;
mod port;
mod vscsi;

use std::path::PathBuf;

use crate::kit::Kit;
use anyhow::Result;

/// What every scenario needs.
pub(crate) struct World {
    /// Kernel and initramfs.
    pub(crate) kit: Kit,
    /// The server's binary.
    pub(crate) server: PathBuf,
}

/// One test.
pub(crate) struct Scenario {
    /// Short name, unique.
    pub(crate) name: &'static str,
    /// What it shows, as a sentence.
    pub(crate) about: &'static str,
    /// The test.
    pub(crate) run: fn(&World) -> Result<()>,
}

/// What runs each time; the ones that show whether the machine can run the others come first, then the longest, beside which the others run.
pub(crate) const USUAL: &[Scenario] = &[
    Scenario {
        name: "peer",
        about: "the test machine itself: a guest on QEMU's own server makes a filesystem and verifies data",
        run: peer::filesystem,
    },
    Scenario {
        name: "peer-bios",
        about: "the test machine itself: SeaBIOS boots from a disk of QEMU's own server",
        run: peer::bios,
    },
    Scenario {
        name: "network",
        about: "two network cards exchange packets and a file, before and after the data plane was killed",
        run: net::exchange,
    },
    Scenario {
        name: "uplink",
        about: "a guest gets its address and streams over uplinks, with tags and without, before and after the data plane was killed; and again over shared adapters, with a disk, all of it from one file",
        run: net::uplink,
    },
    Scenario {
        name: "bios",
        about: "SeaBIOS boots from the disk, reads and writes it",
        run: disk::bios,
    },
    Scenario {
        name: "queues",
        about: "disks with 1, 4 and 64 hardware queues carry verified data, also after device resets",
        run: disk::queues,
    },
    Scenario {
        name: "filesystem",
        about: "mkfs, fio with verification, fstrim, shutdown; a second boot finds the same data",
        run: disk::filesystem,
    },
    Scenario {
        name: "attributes",
        about: "serial number, block size and read-only are what was set",
        run: disk::attributes,
    },
    Scenario {
        name: "resize",
        about: "a running guest sees and uses a larger disk",
        run: disk::resize,
    },
    Scenario {
        name: "pause",
        about: "queues stop and start again with I/O in flight on a slow disk",
        run: fault::pause,
    },
    Scenario {
        name: "crash-every-kind",
        about: "the data plane is killed under load with a block device, virtual Fibre Channel and virtual SCSI at once, with a QEMU that connects all of them again",
        run: fault::every_kind,
    },
    Scenario {
        name: "fc-see",
        about: "targets and LUNs of a virtual Fibre Channel adapter, as the tools of a SAN show them",
        run: fc::see,
    },
    Scenario {
        name: "fc-hotplug",
        about: "LUNs come, grow and go, zones change and the adapter is remapped while the guest runs",
        run: fc::hotplug,
    },
    Scenario {
        name: "fc-conformance",
        about: "libiscsi's tests on disks with two paths and with large blocks",
        run: fc::conformance,
    },
    Scenario {
        name: "fc-load",
        about: "filesystems on two LUNs over four queues while the control plane is killed",
        run: fc::load,
    },
    Scenario {
        name: "fc-negotiate",
        about: "clients with 1, 4 and 64 queues at one port: terms, pools, counters, resets",
        run: port::negotiate,
    },
    Scenario {
        name: "fc-fence",
        about: "a fenced node is refused, also after both processes were killed",
        run: fence::fence,
    },
    Scenario {
        name: "fc-hosts",
        about: "one of two hosts is fenced, writes all the time while paths fail and the data plane is killed, and never gets behind the fence",
        run: fence::hosts,
    },
    Scenario {
        name: "fc-mask",
        about: "masks change under I/O, and a masked LUN is never reached",
        run: fence::mask,
    },
    Scenario {
        name: "vscsi-media",
        about: "a disk and an optical drive: media loaded, exchanged, unloaded and ejected",
        run: vscsi::media,
    },
];

/// What takes long and goes the way of a usual one in another coat.
pub(crate) const MORE: &[Scenario] = &[
    Scenario {
        name: "peer-scsi",
        about: "the test machine itself: QEMU's own SCSI disk under sg3-utils and libiscsi's tests",
        run: peer::scsi,
    },
    Scenario {
        name: "pool",
        about: "a mirrored thin LU carries verified data while a PV fails and returns, PVs come, it is rolled back, its pool fills up and is extended, and both processes are killed",
        run: pool::mirror,
    },
    Scenario {
        name: "uplink-later",
        about: "as uplink, under a QEMU that connects SCSI adapters again",
        run: net::uplink_later,
    },
    Scenario {
        name: "network-kills",
        about: "a data plane is killed a hundred times under two network cards that exchange packets: all of their buffers are there afterwards",
        run: kills::installed,
    },
    Scenario {
        name: "network-kills-later",
        about: "the same under a QEMU that connects SCSI adapters again",
        run: kills::later,
    },
    Scenario {
        name: "disk-kills",
        about: "the same under disks of all kinds, which are written and compared meanwhile",
        run: kills::disks,
    },
    Scenario {
        name: "control-plane-crash",
        about: "the control plane is killed under load and nobody notices",
        run: fault::control_plane,
    },
    Scenario {
        name: "data-plane-crash",
        about: "the data plane is killed three times under load on a slow disk and nothing is lost",
        run: fault::data_plane,
    },
    Scenario {
        name: "listening",
        about: "the data plane is killed three times under load, with QEMU listening at the socket and the data plane connecting to it",
        run: fault::listening,
    },
    Scenario {
        name: "crash-control",
        about: "crashes without the in-flight region lose requests: the test can fail",
        run: fault::control,
    },
    Scenario {
        name: "vscsi-hosts",
        about: "a fence between two hosts as in fc-hosts, by virtual SCSI adapters",
        run: fence::scsi_hosts,
    },
    Scenario {
        name: "fc-cluster",
        about: "a fence by a cluster's own means: fence_scsi and mpathpersist on devices of two paths each, under multipathd",
        run: cluster::fence_agent,
    },
];
