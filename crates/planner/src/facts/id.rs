//! The keys of the numbers that the planner's rules use. A test holds that each of them is in the data files.

macro_rules! ids {
    ($($name:ident = $id:literal;)*) => {
        $(#[doc = concat!("`", $id, "`: see the data files for its meaning and source.")]
        pub const $name: &str = $id;)*
        /// All of them.
        pub const ALL: &[&str] = &[$($id),*];
    };
}

ids! {
    MQ_IOPS_MIN = "mq.iops-min";
    MQ_IOS_PER_QUEUE_MIN = "mq.ios-per-queue-min";
    MQ_QUEUES_USUAL = "mq.queues-usual";
    MQ_GAP_CLOSED = "mq.gap-closed-percent";
    MQ_GAIN_TIMES = "mq.gain-times";
    SSP_MEASURED_DIRECT_MB = "ssp.measured.direct-mb";
    SSP_MEASURED_DIRECT_MS = "ssp.measured.direct-ms";
    SSP_MEASURED_POOL_MB = "ssp.measured.pool-mb";
    SSP_MEASURED_POOL_MS = "ssp.measured.pool-ms";
    SSP_MEASURED_VSCSI_MB = "ssp.measured.vscsi-mb";
    SSP_MEASURED_VSCSI_MS = "ssp.measured.vscsi-ms";
    NPIV_CLIENTS_16G = "npiv.clients-max.16gbit";
    NPIV_CLIENTS_32G = "npiv.clients-max.32gbit";
    NPIV_WWPNS_PER_ADAPTER = "npiv.wwpns-per-adapter";
    VSCSI_ELEMENTS = "vscsi.elements";
    VSCSI_ELEMENTS_RESERVED = "vscsi.elements-reserved";
    VSCSI_ELEMENTS_PER_DISK = "vscsi.elements-per-disk";
    VSCSI_PATH_TIMEOUT = "vscsi.path-timeout-seconds";
    DISK_SERVICE_MS_MAX = "disk.service-ms-max";
    SSP_CHUNK_MIB = "ssp.chunk-mib";
    SSP_LUNS_MIN = "ssp.luns-min";
    SSP_LUNS_PER_TB = "ssp.luns-per-tb";
    SSP_LUNS_PER_TB_ABOVE = "ssp.luns-per-tb-above";
    SSP_LUN_DEPTH_MIN = "ssp.lun-depth-min";
    SSP_NODES_MAX = "ssp.nodes-max";
    SSP_PVS_MAX = "ssp.pvs-max";
    SSP_LUS_MAX = "ssp.lus-max";
    SSP_POOL_TB_MAX = "ssp.pool-tb-max";
    SSP_LU_TB_MAX = "ssp.lu-tb-max";
    SSP_NODE_PROCESSORS_MIN = "ssp.node-processors-min";
    SSP_NODE_MEMORY_GB_MIN = "ssp.node-memory-gb-min";
    SSP_CLIENTS_AT_MIN = "ssp.clients-at-min";
    SSP_CLIENTS_AT_LARGE = "ssp.clients-at-large";
    SSP_PROCESSORS_AT_LARGE = "ssp.processors-at-large";
    SSP_MEMORY_GB_AT_LARGE = "ssp.memory-gb-at-large";
    SEA_REFERENCE_CLOCK = "sea.reference-clock";
    SEA_ROUNDING = "sea.rounding";
    SEA_CONTINGENCY = "sea.shared-contingency";
    SEA_SHARED_BELOW = "sea.shared-below";
    SEA_VLANS_MAX = "sea.vlans-per-trunk-max";
    SEA_TRUNKS_MAX = "sea.trunks-max";
    VFC_MEMORY_MB = "vfc.hypervisor-memory-mb";
    VFC_CYCLES_PER_IO_MULTI = "vfc.cycles-per-io.multi-queue";
    VFC_CYCLES_PER_IO_SINGLE = "vfc.cycles-per-io.single-queue";
    VFC_CYCLES_PER_BYTE = "vfc.cycles-per-byte";
    VFC_LATENCY_MS = "vfc.latency-ms";
    VFC_COMMAND_BYTES = "vfc.command-bytes";
    SSP_CYCLES_PER_IO = "ssp.cycles-per-io";
    VIOS_VIRTUAL_PROCESSORS_ABOVE = "vios.virtual-processors-above";
    VIOS_MEMORY_GB_BASE = "vios.memory-gb-base";
    SERVER_COMMANDS_MIN = "server.commands-min";
    SERVER_WAITED_PERCENT = "server.waited-percent";
    SERVER_BUSY_PERCENT = "server.busy-percent";
    SERVER_DEVICE_MS_MAX = "server.device-ms-max";
    LPM_FIRMWARE_UNCOUNTED = "lpm.firmware-uncounted";
}

/// The families whose keys end in a size in bytes: costs by size, between which sizing interpolates. A user's file may
/// add sizes.
pub const BY_SIZE: [&str; 4] = [
    "sea.cycles-per-transaction.threaded.",
    "sea.cycles-per-transaction.plain.",
    "vscsi.cycles-per-io.disk.",
    "vscsi.cycles-per-io.volume.",
];

/// The size in bytes at the end of a key of one of these families.
pub fn size_of(id: &str) -> Option<u32> {
    let family = BY_SIZE.into_iter().find(|family| id.starts_with(family))?;
    id[family.len()..].parse().ok().filter(|size| *size > 0)
}

/// What the keys of the costs of a streamed byte begin with.
pub const OF_STREAMS: &str = "sea.cycles-per-byte.";

/// A key of the costs of a streamed byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streamed<'a> {
    /// `threaded` or `plain`.
    pub thread: &'a str,
    /// The MTU; none: packets of 64 KB, which nobody cuts. A user's file may add both.
    pub mtu: Option<u32>,
    /// `simplex` or `duplex`.
    pub direction: &'a str,
}

/// The parts of a key, if it is one of the costs of a streamed byte.
pub fn streamed(id: &str) -> Option<Streamed<'_>> {
    let (thread, rest) = id.strip_prefix(OF_STREAMS)?.split_once('.')?;
    let (mtu, direction) = rest.split_once('.')?;
    let mtu = match mtu {
        "uncut" => None,
        mtu => Some(mtu.parse().ok().filter(|mtu| *mtu > 0)?),
    };
    let known =
        ["threaded", "plain"].contains(&thread) && ["simplex", "duplex"].contains(&direction);
    known.then_some(Streamed { thread, mtu, direction })
}
