//! What it means to go from one specification of an object to another.
//!
//! Every field is named here once, with what a change of it takes. Whoever acts on a change asks: the control plane, which says what
//! goes and comes and in which order; the data plane, which holds it to that; and a test, which holds the attributes' *takes effect*
//! against it. A new field does not compile before it has its line.

use crate::{
    AdapterSpec, BlockSpec, CommandSpec, DeviceSpec, EthernetSpec, FileSpec, ScsiSpec, UnitKind,
    UnitSpec, UplinkSpec, VolumeKind, VolumeSpec,
};

/// What a change takes, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Nothing: there is none.
    Same,
    /// It happens under running clients.
    Live,
    /// It is taken over when the adapter's client connects the next time.
    NextConnect,
    /// A volume is closed and opened again, which nobody may use meanwhile.
    Reopen,
    /// It is another object: the old one goes, and a new one comes.
    Recreate,
}

use Change::{Live, NextConnect, Recreate, Reopen, Same};

/// The gravest of all fields that differ.
pub(crate) fn gravest<const N: usize>(fields: [(Change, bool); N]) -> Change {
    let differing = fields.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(change, _)| change).max().unwrap_or(Same)
}

/// What it takes to change a volume. Its size has a message of its own; the fields of its kind stand with the kind, in `kinds`.
#[must_use]
pub fn volume(now: &VolumeSpec, then: &VolumeSpec) -> Change {
    let VolumeSpec { name, kind, bytes, block_size, read_only, write_through, limit, delay, fault } =
        now;
    let whole = gravest([
        (Recreate, *name != then.name),
        (Live, *bytes != then.bytes),
        (Reopen, *block_size != then.block_size),
        (Reopen, *read_only != then.read_only),
        (Reopen, *write_through != then.write_through),
        (Live, *limit != then.limit),
        (Live, *delay != then.delay),
        (Live, *fault != then.fault),
    ]);
    whole.max(kind.change(&then.kind))
}

/// Whether a volume is at another path, and differs in nothing else but what changes live: another path to the same disk, which the logical units on
/// it survive.
#[must_use]
pub fn moves(now: &VolumeSpec, then: &VolumeSpec) -> bool {
    let (VolumeKind::File(here), VolumeKind::File(there)) = (&now.kind, &then.kind) else {
        return false;
    };
    let stayed = FileSpec { path: here.path.clone(), ..there.clone() };
    here.path != there.path
        && now.bytes == then.bytes
        && volume(now, &VolumeSpec { kind: VolumeKind::File(stayed), ..then.clone() }) <= Live
}

/// What it takes to change a logical unit: a drive takes another medium; all else is another unit to its clients.
#[must_use]
pub fn unit(now: &UnitSpec, then: &UnitSpec) -> Change {
    let UnitSpec {
        name,
        volume,
        kind,
        vendor,
        product,
        revision,
        serial,
        naa,
        read_only,
        thin,
        keep,
        reservations,
    } = now;
    // A disk gets its volume once.
    let given = *kind == UnitKind::Optical || volume.is_none();
    let medium = if given { Live } else { Recreate };
    gravest([
        (Recreate, *name != then.name),
        (medium, *volume != then.volume),
        (Recreate, *kind != then.kind),
        (Recreate, *vendor != then.vendor),
        (Recreate, *product != then.product),
        (Recreate, *revision != then.revision),
        (Recreate, *serial != then.serial),
        (Recreate, *naa != then.naa),
        (Recreate, *read_only != then.read_only),
        (Recreate, *thin != then.thin),
        (Recreate, *keep != then.keep),
        (Recreate, *reservations != then.reservations),
    ])
}

/// What it takes to change an adapter.
#[must_use]
pub fn adapter(now: &AdapterSpec, then: &AdapterSpec) -> Change {
    let AdapterSpec {
        name,
        socket,
        socket_role,
        socket_mode,
        socket_owner,
        socket_group,
        queues,
        channels,
        queue_size,
        seg_max,
        wait,
        placement,
        withhold,
        device,
    } = now;
    let whole = gravest([
        (Recreate, *name != then.name),
        (Recreate, *socket != then.socket),
        (Recreate, *socket_role != then.socket_role),
        (Live, *socket_mode != then.socket_mode),
        (Live, *socket_owner != then.socket_owner),
        (Live, *socket_group != then.socket_group),
        (NextConnect, *queues != then.queues),
        (Live, *channels != then.channels),
        (NextConnect, *queue_size != then.queue_size),
        (NextConnect, *seg_max != then.seg_max),
        (Live, *wait != then.wait),
        (Live, *placement != then.placement),
        (NextConnect, *withhold != then.withhold),
    ]);
    whole.max(match (device, &then.device) {
        (DeviceSpec::Block(now), DeviceSpec::Block(then)) => block(now, then),
        (DeviceSpec::Scsi(now), DeviceSpec::Scsi(then)) => scsi(now, then),
        (DeviceSpec::Ethernet(now), DeviceSpec::Ethernet(then)) => ethernet(now, then),
        _ => Recreate,
    })
}

fn block(now: &BlockSpec, then: &BlockSpec) -> Change {
    let BlockSpec { volume, serial, read_only, write_cache, discard } = now;
    gravest([
        (Recreate, *volume != then.volume),
        (NextConnect, *serial != then.serial),
        (NextConnect, *read_only != then.read_only),
        (NextConnect, *write_cache != then.write_cache),
        (NextConnect, *discard != then.discard),
    ])
}

fn ethernet(now: &EthernetSpec, then: &EthernetSpec) -> Change {
    let EthernetSpec {
        network,
        mac,
        any_mac,
        mtu,
        pvid,
        vids,
        guest_offloads,
        guard,
        limit_tx,
        limit_rx,
        storm,
        private,
        mirror,
        monitor,
        tagging,
    } = now;
    gravest([
        (Recreate, *network != then.network),
        // These the client was told.
        (NextConnect, *mac != then.mac),
        (NextConnect, *mtu != then.mtu),
        (Live, *any_mac != then.any_mac),
        (Live, *guest_offloads != then.guest_offloads),
        (Live, *guard != then.guard),
        (Live, *limit_tx != then.limit_tx),
        (Live, *limit_rx != then.limit_rx),
        (Live, *storm != then.storm),
        (Live, *private != then.private),
        (Live, *mirror != then.mirror),
        (Live, *monitor != then.monitor),
        (Live, *tagging != then.tagging),
        (Live, *pvid != then.pvid),
        (Live, *vids != then.vids),
    ])
}

/// What a change of an uplink takes.
#[must_use]
pub fn uplink(now: &UplinkSpec, then: &UplinkSpec) -> Change {
    let UplinkSpec {
        name,
        network,
        kind,
        interface,
        netns,
        mtu,
        pvid,
        vids,
        failover,
        storm,
        mirror,
        tagging,
        thread,
        accounting,
        aggregate,
    } = now;
    let control = |of: &UplinkSpec| of.failover.as_ref().map(|it| it.control.clone());
    gravest([
        (Recreate, *name != then.name),
        (Recreate, *network != then.network),
        (Recreate, *kind != then.kind),
        (Recreate, *interface != then.interface),
        (Recreate, *netns != then.netns),
        (Recreate, *aggregate != then.aggregate),
        // Whose bridge it is is asked elsewhere.
        (Recreate, control(now) != control(then)),
        (Live, *failover != then.failover),
        (Live, *storm != then.storm),
        (Live, *mirror != then.mirror),
        (Live, *tagging != then.tagging),
        (Live, *thread != then.thread),
        (Live, *accounting != then.accounting),
        // As of the adapters of the network.
        (NextConnect, *mtu != then.mtu),
        (Live, *pvid != then.pvid),
        (Live, *vids != then.vids),
    ])
}

fn scsi(now: &ScsiSpec, then: &ScsiSpec) -> Change {
    let ScsiSpec { initiator, targets, commands, limit, port, link } = now;
    let CommandSpec {
        num_cmd_elems,
        num_sp_cmd_elem,
        num_local_cmds,
        bufs_per_cmd,
        queue_depth,
        max_xfer_bytes,
    } = *commands;
    gravest([
        (Recreate, *initiator != then.initiator),
        (Live, *targets != then.targets),
        (Live, *limit != then.limit),
        (Live, *port != then.port),
        (Live, *link != then.link),
        (Live, num_cmd_elems != then.commands.num_cmd_elems),
        (Live, num_sp_cmd_elem != then.commands.num_sp_cmd_elem),
        (Live, num_local_cmds != then.commands.num_local_cmds),
        (Live, bufs_per_cmd != then.commands.bufs_per_cmd),
        // These the client was told.
        (NextConnect, queue_depth != then.commands.queue_depth),
        (NextConnect, max_xfer_bytes != then.commands.max_xfer_bytes),
    ])
}
