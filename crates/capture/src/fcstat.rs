//! `fcstat`: statistics of one Fibre Channel adapter, and per client with `-client`.
//!
//! A physical and a virtual adapter print the same headings; the virtual one is told by its device type
//! (`IBM,vfc-client`) and leaves frame and link counters at zero. `-D` adds the queue statistics, `-e` the driver's.

mod clients;
mod read;

pub(super) use clients::client_report;
pub(super) use read::report;

use serde::Serialize;

use super::{At, Head, Read, Wwn};

/// `fcstat fcsN`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fcstat {
    /// Where it came from; the device is the one of the heading.
    pub head: Head,
    /// As printed, with the path in brackets.
    pub device_type: Option<Read<String>>,
    /// Whether it is a client's virtual adapter, by its device type.
    pub is_virtual: Option<Read<bool>>,
    /// `Serial Number`; `UNKNOWN` on a virtual adapter.
    pub serial_number: Option<Read<String>>,
    /// `Option ROM Version`.
    pub rom_version: Option<Read<String>>,
    /// `ZA` or `Firmware Version`.
    pub firmware: Option<Read<String>>,
    /// World Wide Node Name.
    pub wwnn: Option<Read<Wwn>>,
    /// World Wide Port Name.
    pub wwpn: Option<Read<Wwn>>,
    /// `Class of Service`.
    pub class_of_service: Option<Read<String>>,
    /// `Port Speed (supported)` in Gbit/s; `None` also when printed as `UNKNOWN`.
    pub speed_supported_gbit: Option<Read<u32>>,
    /// `Port Speed (running)` in Gbit/s.
    pub speed_running_gbit: Option<Read<u32>>,
    /// `Port FC ID`.
    pub port_fc_id: Option<Read<u32>>,
    /// `Port Type`: `Fabric`, `Private Loop`, `Unknown` …
    pub port_type: Option<Read<String>>,
    /// `Attention Type`: `Link Up`, `Link Down`.
    pub attention_type: Option<Read<String>>,
    /// `Topology`.
    pub topology: Option<Read<String>>,
    /// `Seconds Since Last Reset`.
    pub seconds_since_reset: Option<Read<u64>>,
    /// `Frames`.
    pub frames: TwoWay,
    /// `Words`.
    pub words: TwoWay,
    /// `LIP Count`.
    pub lip: Option<Read<u64>>,
    /// `NOS Count`.
    pub nos: Option<Read<u64>>,
    /// `Error Frames`.
    pub error_frames: Option<Read<u64>>,
    /// `Dumped Frames`.
    pub dumped_frames: Option<Read<u64>>,
    /// `Link Failure Count`.
    pub link_failures: Option<Read<u64>>,
    /// `Loss of Sync Count`.
    pub sync_losses: Option<Read<u64>>,
    /// `Loss of Signal`.
    pub signal_losses: Option<Read<u64>>,
    /// `Primitive Seq Protocol Error Count`.
    pub sequence_errors: Option<Read<u64>>,
    /// `Invalid Tx Word Count`.
    pub invalid_words: Option<Read<u64>>,
    /// `Invalid CRC Count`.
    pub invalid_crcs: Option<Read<u64>>,
    /// `Elastic buffer overrun count`; `None` also when printed as `UNSUPPORTED`.
    pub elastic_overruns: Option<Read<u64>>,
    /// Waits for resources of IP over FC.
    pub ip_resources: Resources,
    /// Waits for resources of SCSI: the three counters that advice starts from.
    pub resources: Resources,
    /// Waits for resources of NVMe.
    pub nvme_resources: Resources,
    /// IP over FC.
    pub ip_traffic: Traffic,
    /// SCSI.
    pub traffic: Traffic,
    /// NVMe.
    pub nvme_traffic: Traffic,
    /// `Number of interrupts`.
    pub interrupts: Option<Read<u64>>,
    /// `Number of spurious interrupts`.
    pub spurious_interrupts: Option<Read<u64>>,
    /// `Long term DMA pool size`, bytes.
    pub long_term_dma_bytes: Option<Read<u64>>,
    /// `I/O DMA pool size`, bytes.
    pub io_dma_bytes: Option<Read<u64>>,
    /// `FC SCSI Adapter Driver Queue Statistics`.
    pub adapter_queue: QueueUse,
    /// `FC SCSI Protocol Driver Queue Statistics`.
    pub protocol_queue: QueueUse,
    /// `Adapter Effective max transfer value`, bytes.
    pub max_transfer_bytes: Option<Read<u64>>,
}

/// A counter for both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TwoWay {
    /// Transmitted.
    pub transmitted: Option<Read<u64>>,
    /// Received.
    pub received: Option<Read<u64>>,
}

/// How often a request found no resource.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// `No DMA Resource Count`.
    pub no_dma: Option<Read<u64>>,
    /// `No Adapter Elements Count`.
    pub no_elements: Option<Read<u64>>,
    /// `No Command Resource Count`.
    pub no_command: Option<Read<u64>>,
}

/// What one protocol moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// `Input Requests`.
    pub input_requests: Option<Read<u64>>,
    /// `Output Requests`.
    pub output_requests: Option<Read<u64>>,
    /// `Control Requests`.
    pub control_requests: Option<Read<u64>>,
    /// `Input Bytes`.
    pub input_bytes: Option<Read<u64>>,
    /// `Output Bytes`.
    pub output_bytes: Option<Read<u64>>,
}

/// How full a driver's queue is and was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueUse {
    /// `Number of active commands`.
    pub active: Option<Read<u64>>,
    /// `High water mark of active commands`.
    pub active_high: Option<Read<u64>>,
    /// `Number of pending commands`.
    pub pending: Option<Read<u64>>,
    /// `High water mark of pending commands`.
    pub pending_high: Option<Read<u64>>,
    /// `Number of commands in the Adapter Driver Held off queue`.
    pub held_off: Option<Read<u64>>,
    /// `High water mark of number of commands in the Adapter Driver Held off queue`.
    pub held_off_high: Option<Read<u64>>,
}

/// `fcstat -client`, on a VIOS.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FcstatClient {
    /// Where it came from.
    pub head: Head,
    /// In the order printed; the first row of a port is the VIOS itself.
    pub rows: Vec<ClientRow>,
}

impl FcstatClient {
    /// The rows, each with whether it is the VIOS's own.
    ///
    /// A list of which somebody kept the rows of one client alone has none: the port name of a virtual adapter is never that
    /// of a port.
    pub fn owned(&self) -> impl Iterator<Item = (bool, &ClientRow)> {
        let of_client = |row: &ClientRow| match row.wwpn {
            Some(wwpn) => wwpn.is_virtual(),
            None => self.head.masked.iter().any(|masked| {
                let digits = masked.text.trim_start_matches("0x").trim_start_matches("0X");
                masked.at == row.at && digits.starts_with(['c', 'C'])
            }),
        };
        let first = self.rows.iter().find(|row| !of_client(row)).map(|row| row.hostname.as_str());
        let own = move |row: &ClientRow| {
            let said = !row.hostname.is_empty() || row.wwpn.is_some();
            said && Some(row.hostname.as_str()) == first && !of_client(row)
        };
        self.rows.iter().map(move |row| (own(row), row))
    }
}

/// One client's use of a physical port, since the counters' last reset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientRow {
    /// The line.
    pub at: At,
    /// The client's host name, or the VIOS's own; empty when the client told none, or the column was cut off.
    pub hostname: String,
    /// The adapter: of the VIOS in the port's first row, of the client in the others.
    pub device: String,
    /// Its port name; `None` when it was made unreadable, see [`Head::masked`].
    pub wwpn: Option<Wwn>,
    /// `inreqs`.
    pub input_requests: u64,
    /// `outreqs`.
    pub output_requests: u64,
    /// `ctrlreqs`.
    pub control_requests: u64,
    /// `inbytes`.
    pub input_bytes: u64,
    /// `outbytes`.
    pub output_bytes: u64,
    /// `DMA_errs`: no DMA resource.
    pub no_dma: Option<u64>,
    /// `Elem_errs`: no adapter elements.
    pub no_elements: Option<u64>,
    /// `Comm_errs`: no command resource.
    pub no_command: Option<u64>,
}
