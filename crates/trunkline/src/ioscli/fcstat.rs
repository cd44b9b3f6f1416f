//! `fcstat`: what it prints, of plain numbers.

use super::text::{hex, lines};
use crate::output::{duration, table};

/// What is counted of an adapter, or of all adapters on a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) control: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    /// Waits for memory (`No DMA Resource Count`).
    pub(super) no_dma: u64,
    /// Waits for a command element of the port (`No Adapter Elements Count`).
    pub(super) no_elements: u64,
    /// Waits for a command element of the adapter (`No Command Resource Count`).
    pub(super) no_command: u64,
    pub(super) active: u64,
    pub(super) active_max: u64,
    pub(super) pending: u64,
    pub(super) pending_max: u64,
    /// Active commands that wait in the server.
    pub(super) waiting: u64,
    pub(super) waiting_max: u64,
    /// Notifications to the client.
    pub(super) interrupts: u64,
}

/// A port, or an adapter, as `fcstat` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FcReport {
    pub(super) device: String,
    pub(super) device_type: String,
    /// None where the adapter is no Fibre Channel adapter.
    pub(super) wwpn: Option<u64>,
    pub(super) link_gbit: Option<u64>,
    pub(super) link_up: bool,
    /// Times that the link went down.
    pub(super) link_failures: u64,
    pub(super) seconds: u64,
    pub(super) counts: Counts,
    /// Longest transfer in bytes.
    pub(super) max_transfer: Option<u64>,
}

/// How much of a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// What every form has.
    Plain,
    /// Also the driver's: `-e` and `-D`.
    Driver,
}

const FC4: &str = "0x0000010000000000000000000000000000000000000000000000000000000000";

/// `fcstat DEVICE`
pub(super) fn report(report: &FcReport, detail: Detail) -> String {
    let gbit = |gbit: Option<u64>| gbit.map_or("UNKNOWN".to_owned(), |gbit| format!("{gbit} GBIT"));
    let mut text = lines(&[
        format!("\nFIBRE CHANNEL STATISTICS REPORT: {}\n", report.device),
        format!("Device Type: {}", report.device_type),
        "Serial Number: UNKNOWN".to_owned(),
        "Option ROM Version: UNKNOWN".to_owned(),
        "ZA: UNKNOWN".to_owned(),
        report.wwpn.map(names).unwrap_or_default(),
        format!("FC-4 TYPES:\n  Supported: {FC4}\n  Active:    {FC4}"),
        "Class of Service: 3".to_owned(),
        format!("Port Speed (supported): {}", gbit(report.link_gbit)),
        format!("Port Speed (running):   {}", gbit(report.link_gbit)),
        "Port FC ID: 0x0".to_owned(),
        "Port Type: Fabric".to_owned(),
        format!("Attention Type:   Link {}", if report.link_up { "Up" } else { "Down" }),
        "Topology:  Point to Point or Fabric".to_owned(),
        format!("\nSeconds Since Last Reset: {}", report.seconds),
    ]);
    text.push_str(&link(report.link_failures));
    if detail == Detail::Driver {
        text.push_str(&driver(&report.counts));
    }
    text.push_str(&traffic(&report.counts));
    if let Some(bytes) = report.max_transfer {
        text.push_str(&format!("\nAdapter Effective max transfer value:   {}\n", hex(bytes)));
    }
    text
}

/// A port has no node of its own: both names are its one.
fn names(wwpn: u64) -> String {
    format!("World Wide Node Name: 0x{wwpn:016X}\nWorld Wide Port Name: 0x{wwpn:016X}\n")
}

/// There are no frames, words and signals: a virtual adapter of the original prints zeroes as well.
fn link(failures: u64) -> String {
    format!(
        "
\tTransmit Statistics\tReceive Statistics
\t-------------------\t------------------
Frames: 0\t0
Words:  0\t0

LIP Count: 0
NOS Count: 0
Error Frames:  0
Dumped Frames: 0
Link Failure Count: {failures}
Loss of Sync Count: 0
Loss of Signal: 0
Primitive Seq Protocol Error Count: 0
Invalid Tx Word Count: 0
Invalid CRC Count: 0
"
    )
}

/// Line by line as the original has it. Its adapter driver is the server, in which a command that has its element may wait; its protocol driver
/// hands these out, so that what is pending there lacks one. Buffers are the client's own, so there are no pools of them; a command that waits
/// is pending, so none is held off; and a client is not interrupted without a completion.
fn driver(counts: &Counts) -> String {
    lines(&[
        "\nDriver Statistics".to_owned(),
        format!("  Number of interrupts:   {}", counts.interrupts),
        "  Number of spurious interrupts:   0".to_owned(),
        "  Long term DMA pool size:   0".to_owned(),
        "  I/O DMA pool size:  0".to_owned(),
        "\n  FC SCSI Adapter Driver Queue Statistics".to_owned(),
        format!("    Number of active commands:   {}", counts.active),
        format!("    High water mark  of active commands:   {}", counts.active_max),
        format!("    Number of pending commands:   {}", counts.waiting),
        format!("    High water mark of pending commands:   {}", counts.waiting_max),
        "    Number of commands in the Adapter Driver Held off queue:  0".to_owned(),
        "    High water mark of number of commands in the Adapter Driver Held off queue:  0"
            .to_owned(),
        "\n  FC SCSI Protocol Driver Queue Statistics".to_owned(),
        format!("    Number of active commands:   {}", counts.active),
        format!("    High water mark  of active commands:   {}", counts.active_max),
        format!("    Number of pending commands:   {}", counts.pending),
        format!("    High water mark of pending commands:   {}", counts.pending_max),
    ])
}

fn traffic(counts: &Counts) -> String {
    lines(&[
        "\nFC SCSI Adapter Driver Information".to_owned(),
        format!("  No DMA Resource Count: {}", counts.no_dma),
        format!("  No Adapter Elements Count: {}", counts.no_elements),
        format!("  No Command Resource Count: {}", counts.no_command),
        "\nFC SCSI Traffic Statistics".to_owned(),
        format!("  Input Requests:   {}", counts.reads),
        format!("  Output Requests:  {}", counts.writes),
        format!("  Control Requests: {}", counts.control),
        format!("  Input Bytes:  {}", counts.read_bytes),
        format!("  Output Bytes: {}", counts.written_bytes),
    ])
}

/// Where the time of commands went, in one interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LayerTimes {
    /// The original's word for the layer.
    pub(super) layer: &'static str,
    pub(super) commands: u64,
    pub(super) mean_ns: u64,
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
    pub(super) p999_ns: u64,
    pub(super) max_ns: u64,
}

/// Reads, or writes, in one interval: their mean times in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WayTimes {
    pub(super) completion: &'static str,
    pub(super) commands: u64,
    pub(super) san_ns: u64,
    pub(super) vios_ns: u64,
    /// Of all commands: what a command is, is known when it has left the ring.
    pub(super) hypervisor_ns: u64,
}

/// Reads, or writes, of one LUN in one interval. The time in the ring is the adapter's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LunTimes {
    pub(super) target: u32,
    pub(super) lun: u32,
    pub(super) way: WayTimes,
}

/// One interval of `fcstat -l`: reads and writes apart, as the original has them, then each layer with its percentiles, then each LUN.
pub(super) fn long_running(
    device: &str,
    from: u64,
    to: u64,
    ways: &[WayTimes],
    layers: &[LayerTimes],
    luns: &[LunTimes],
) -> String {
    let us = |ns: u64| format!("{}.{}", ns / 1000, ns / 100 % 10);
    let ways = ways.iter().map(|way| {
        let times = [way.san_ns, way.vios_ns, way.hypervisor_ns];
        let mut row = vec![way.completion.to_owned(), way.commands.to_string()];
        row.extend([times.iter().sum(), times[0], times[1], times[2]].map(us));
        row
    });
    let by_way = ["Completion", "Commands", "Average", "SAN", "VIOS", "Hypervisor"];
    let by_way = table(&by_way, &[1, 2, 3, 4, 5], ways.collect());
    let rows = layers.iter().map(|layer| {
        vec![
            layer.layer.to_owned(),
            layer.commands.to_string(),
            duration(layer.mean_ns),
            duration(layer.p50_ns),
            duration(layer.p99_ns),
            duration(layer.p999_ns),
            duration(layer.max_ns),
        ]
    });
    let heading = ["Time in", "Commands", "Average", "50%", "99%", "99.9%", "Maximum"];
    let by_layer = table(&heading, &[1, 2, 3, 4, 5, 6], rows.collect());
    let rows = luns.iter().map(|LunTimes { target, lun, way }| {
        let times = [way.san_ns + way.vios_ns, way.san_ns, way.vios_ns].map(us);
        let mut row = vec![target.to_string(), lun.to_string(), way.completion.to_owned()];
        row.push(way.commands.to_string());
        row.extend(times);
        row
    });
    let by_lun = match luns {
        [] => String::new(),
        _ => {
            let heading = ["Target", "LUN", "Completion", "Commands", "Average", "SAN", "VIOS"];
            format!("\n{}\n", table(&heading, &[0, 1, 3, 4, 5, 6], rows.collect()))
        }
    };
    format!(
        "FIBRE CHANNEL LATENCY REPORT: {device}, second {from} to {to}, in microseconds\n\n{by_way}\n\n{by_layer}\n{by_lun}"
    )
}
