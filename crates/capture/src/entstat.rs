//! `entstat -all` (VIOS), `entstat -d` and `netstat -v` (AIX): statistics of Ethernet adapters.
//!
//! For a shared Ethernet adapter the command prints the SEA first, then every adapter below it, each under a heading
//! of its own.

mod link_read;
mod memory_read;
mod read;
mod sea_read;

pub(super) use read::report;

use serde::Serialize;

use super::{At, Head, Info, Read};

/// One run of the command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entstat {
    /// Where it came from; the device is the command's, or that of the first heading.
    pub head: Head,
    /// Every adapter, in the order printed.
    pub adapters: Vec<Ethernet>,
    /// What the shared Ethernet adapter says of itself.
    pub sea: Option<Sea>,
}

/// One adapter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ethernet {
    /// The line of its heading.
    pub at: At,
    /// `entN`.
    pub name: Read<String>,
    /// `Device Type`.
    pub device_type: Option<Read<String>>,
    /// `Hardware Address`, as printed.
    pub mac: Option<Read<String>>,
    /// `Elapsed Time` since the counters were reset, seconds.
    pub elapsed_seconds: Option<Read<u64>>,
    /// Transmitted.
    pub transmitted: Packets,
    /// Received.
    pub received: Packets,
    /// `Max Packets on S/W Transmit Queue`.
    pub queue_max: Option<Read<u64>>,
    /// `S/W Transmit Queue Overflow`.
    pub queue_overflow: Option<Read<u64>>,
    /// `No mbuf Errors`.
    pub no_mbuf_errors: Option<Read<u64>>,
    /// `Late Collision Errors`.
    pub late_collisions: Option<Read<u64>>,
    /// `Adapter Reset Count`.
    pub reset_count: Option<Read<u64>>,
    /// `Adapter Data Rate`.
    pub data_rate: Option<Read<u64>>,
    /// `Driver Flags`, also from the lines that follow.
    pub driver_flags: Vec<String>,
    /// `Link Status`, `Physical Port Link Status`.
    pub link_status: Option<Read<String>>,
    /// `Media Speed Running`, `Physical Port Speed`.
    pub speed: Option<Read<String>>,
    /// `Media Speed Selected`: what the port was told to do.
    pub speed_selected: Option<Read<String>>,
    /// `Logical Port Link Status`, of an adapter that is divided.
    pub logical_link_status: Option<Read<String>>,
    /// What an aggregation says of itself.
    pub aggregation: Option<Aggregation>,
    /// What a member of an aggregation says of its negotiation with the switch.
    pub lacp: Option<Lacp>,
    /// What only a virtual adapter prints.
    pub virtual_adapter: Option<VirtualEthernet>,
    /// Every line of the part that the driver prints, in the order printed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Info>,
}

/// `Statistics for every adapter in the IEEE 802.3ad Link Aggregation`, or in an EtherChannel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Aggregation {
    /// `Number of adapters`.
    pub adapters: Option<Read<u32>>,
    /// `Operating mode`.
    pub mode: Option<Read<String>>,
    /// `Aggregation status`: `Aggregated`, `Negotiating`, `Failed`, `Inactive`.
    pub status: Option<Read<String>>,
    /// `Received LACPDUs`.
    pub received: Option<Read<u64>>,
    /// `Transmitted LACPDUs`.
    pub transmitted: Option<Read<u64>>,
    /// `Active channel`: `primary channel`, `backup adapter`.
    pub active_channel: Option<Read<String>>,
    /// `Hash mode`.
    pub hash_mode: Option<Read<String>>,
    /// The members, by the headings that follow.
    pub members: Vec<String>,
}

/// `IEEE 802.3ad Port Statistics`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Lacp {
    /// This side.
    pub actor: LacpSide,
    /// The switch; its system is all zero when it was never heard.
    pub partner: LacpSide,
    /// `Received LACPDUs`.
    pub received: Option<Read<u64>>,
    /// `Transmitted LACPDUs`.
    pub transmitted: Option<Read<u64>>,
    /// `Received illegal PDUs`.
    pub illegal: Option<Read<u64>>,
}

/// One side of the negotiation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LacpSide {
    /// `Actor System`, `Partner System`: a MAC address.
    pub system: Option<Read<String>>,
    /// The operational key: ports of one aggregation have the same.
    pub key: Option<Read<String>>,
    /// `Synchronization` is `IN_SYNC`.
    pub in_sync: Option<Read<bool>>,
    /// `Collecting`.
    pub collecting: Option<Read<bool>>,
    /// `Distributing`.
    pub distributing: Option<Read<bool>>,
    /// `Defaulted`: nothing was heard of the other side, what stands here is assumed.
    pub defaulted: Option<Read<bool>>,
    /// `Expired`.
    pub expired: Option<Read<bool>>,
}

/// Counters of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// `Packets`.
    pub packets: Option<Read<u64>>,
    /// `Bytes`.
    pub bytes: Option<Read<u64>>,
    /// `Interrupts`.
    pub interrupts: Option<Read<u64>>,
    /// `Transmit Errors`, `Receive Errors`.
    pub errors: Option<Read<u64>>,
    /// `Packets Dropped`.
    pub dropped: Option<Read<u64>>,
    /// `No Resource Errors`.
    pub no_resource: Option<Read<u64>>,
    /// `DMA Underrun` of what is sent, `DMA Overrun` of what is received.
    pub dma: Option<Read<u64>>,
    /// `Packets Discarded by Adapter`, of what is received.
    pub discarded: Option<Read<u64>>,
    /// `Timeout Errors`, of what is sent.
    pub timeouts: Option<Read<u64>>,
    /// `No Carrier Sense`, of what is sent.
    pub no_carrier: Option<Read<u64>>,
    /// `CRC Errors`, of what is received.
    pub crc: Option<Read<u64>>,
}

/// A virtual Ethernet adapter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VirtualEthernet {
    /// `Port VLAN ID`.
    pub port_vlan: Option<Read<u16>>,
    /// `VLAN Tag IDs`; empty for `None`.
    pub vlans: Option<Read<Vec<u16>>>,
    /// `Switch ID`.
    pub switch: Option<Read<String>>,
    /// `Trunk Adapter`.
    pub trunk: Option<Read<bool>>,
    /// `Priority` of a trunk adapter.
    pub priority: Option<Read<u32>>,
    /// `Active` of a trunk adapter.
    pub active: Option<Read<bool>>,
    /// `Hypervisor Send Failures`.
    pub send_failures: Option<Read<u64>>,
    /// `Receiver Failures`: the part of them whose receiver had no buffer.
    pub receiver_failures: Option<Read<u64>>,
    /// `Hypervisor Receive Failures`.
    pub receive_failures: Option<Read<u64>>,
    /// `Invalid VLAN ID Packets`.
    pub invalid_vlan: Option<Read<u64>>,
    /// `LAN State`: `Operational`.
    pub lan_state: Option<Read<String>>,
    /// Receive buffers by size, `Tiny` to `Huge`, and `Control` where present.
    pub buffers: Vec<Buffers>,
    /// `Buffer Mode`: `Min`, `Max`, `Max Min`; which of the numbers are allocated from the beginning.
    pub buffer_mode: Option<Read<String>>,
    /// `Total VRM Minimum (KB)`.
    pub vrm_minimum_kb: Option<Read<u64>>,
    /// `Total VRM Desired (KB)`.
    pub vrm_desired_kb: Option<Read<u64>>,
    /// `Total DMA Max Min (KB)`.
    pub dma_max_min_kb: Option<Read<u64>>,
}

/// Receive buffers of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Buffers {
    /// `Tiny`, `Small`, `Medium`, `Large`, `Huge`, `Control`.
    pub kind: String,
    /// `Min Buffers`.
    pub min: Option<Read<u64>>,
    /// `Max Buffers`.
    pub max: Option<Read<u64>>,
    /// `Allocated`.
    pub allocated: Option<Read<u64>>,
    /// `Registered`.
    pub registered: Option<Read<u64>>,
    /// `Max Allocated` of the history.
    pub max_allocated: Option<Read<u64>>,
    /// `Lowest Registered` of the history.
    pub lowest_registered: Option<Read<u64>>,
}

/// The shared Ethernet adapter's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sea {
    /// The line of its heading.
    pub at: At,
    /// `entN`.
    pub name: Option<Read<String>>,
    /// `Number of adapters`.
    pub adapter_count: Option<Read<u32>>,
    /// `SEA Flags` as a number.
    pub flags: Option<Read<u64>>,
    /// The flags by name: `THREAD`, `LARGESEND` …
    pub flag_names: Vec<Read<String>>,
    /// `VLAN Ids` of each trunk adapter.
    pub vlans: Vec<TrunkVlans>,
    /// `Real Side Statistics`.
    pub real_side: Side,
    /// `Virtual Side Statistics`.
    pub virtual_side: Side,
    /// `Output packets generated`.
    pub output_generated: Option<Read<u64>>,
    /// `Output packets dropped`.
    pub output_dropped: Option<Read<u64>>,
    /// `Device output failures`.
    pub output_failures: Option<Read<u64>>,
    /// `Memory allocation failures`.
    pub memory_failures: Option<Read<u64>>,
    /// `ICMP error packets sent`.
    pub icmp_errors_sent: Option<Read<u64>>,
    /// `Non IP packets larger than MTU`.
    pub larger_than_mtu: Option<Read<u64>>,
    /// `Thread queue overflow packets`.
    pub thread_overflow: Option<Read<u64>>,
    /// `SEA THREADS INFORMATION`.
    pub threads: Vec<SeaThread>,
    /// `High Availability Statistics`; `None` when failover is not configured.
    pub failover: Option<Failover>,
    /// `Real Adapter`, in the lines between the adapters.
    pub real_adapter: Option<Read<String>>,
    /// `Virtual Adapter`, likewise.
    pub virtual_adapters: Vec<Read<String>>,
    /// `Control Adapter`, likewise.
    pub control_adapter: Option<Read<String>>,
}

/// The VLANs that one trunk adapter brings to the SEA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrunkVlans {
    /// The line.
    pub at: At,
    /// `entN`.
    pub adapter: String,
    /// Its VLANs, the port VLAN first.
    pub vlans: Vec<u16>,
}

/// Packets on one side of the bridge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Side {
    /// `Packets received`.
    pub received: Option<Read<u64>>,
    /// `Packets bridged`.
    pub bridged: Option<Read<u64>>,
    /// `Packets consumed`.
    pub consumed: Option<Read<u64>>,
    /// `Packets fragmented`.
    pub fragmented: Option<Read<u64>>,
    /// `Packets transmitted`.
    pub transmitted: Option<Read<u64>>,
    /// `Packets dropped`.
    pub dropped: Option<Read<u64>>,
    /// `Packets filtered(VlanId)`.
    pub filtered_vlan: Option<Read<u64>>,
    /// `Packets filtered(Reserved address)`.
    pub filtered_reserved: Option<Read<u64>>,
}

/// One thread of the SEA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeaThread {
    /// The line of its heading.
    pub at: At,
    /// Its number.
    pub index: u32,
    /// `Queue full dropped packets`.
    pub dropped: Option<Read<u64>>,
    /// `Queue packets queued`.
    pub queued: Option<Read<u64>>,
    /// `Queue average packets queued`.
    pub average: Option<Read<u64>>,
    /// `Queue packets count`.
    pub count: Option<Read<u64>>,
    /// `Queue max packets queued`.
    pub max: Option<Read<u64>>,
}

/// Failover between two VIOS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Failover {
    /// `Control Channel PVID`.
    pub control_vlan: Option<Read<u16>>,
    /// `Control Packets in`.
    pub control_in: Option<Read<u64>>,
    /// `Control Packets out`.
    pub control_out: Option<Read<u64>>,
    /// `Keep-Alive Packets`.
    pub keep_alive: Option<Read<u64>>,
    /// `Recovery Packets`.
    pub recovery: Option<Read<u64>>,
    /// `Notify Packets`.
    pub notify: Option<Read<u64>>,
    /// `Limbo Packets`.
    pub limbo: Option<Read<u64>>,
    /// `State`: `PRIMARY`, `BACKUP`, `PRIMARY_SH` …
    pub state: Option<Read<String>>,
    /// `Bridge Mode`: `All`, `Partial`, `None`.
    pub bridge_mode: Option<Read<String>>,
    /// `VID shared`, while sharing.
    pub shared_vlans: Option<Read<Vec<u16>>>,
    /// `Number of Times Server became Backup`.
    pub became_backup: Option<Read<u64>>,
    /// `Number of Times Server became Primary`.
    pub became_primary: Option<Read<u64>>,
    /// `High Availability Mode`: `Auto`, `Sharing`, `Standby` …
    pub mode: Option<Read<String>>,
    /// `Priority`: the lower number is primary.
    pub priority: Option<Read<u32>>,
}
