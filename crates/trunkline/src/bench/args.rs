//! The options of a run, as people write them.

use crate::exit::Failure;
use clap::{Args, ValueEnum};
use control::error::ApiError;
use partition::config::feature;
use partition::load::{Holds, LoadOptions, Order, ScsiLun, WaitMode};
use partition::session::{SessionOptions, protocol_feature};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// How a client waits for its completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wait {
    /// Looks at the rings all the time: lowest latency, one CPU for each thread
    Poll,
    /// Sleeps until the server interrupts it, as a guest does
    Sleep,
}

impl From<Wait> for WaitMode {
    fn from(wait: Wait) -> WaitMode {
        match wait {
            Wait::Poll => WaitMode::Poll,
            Wait::Sleep => WaitMode::Sleep,
        }
    }
}

/// Which block comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BlockOrder {
    /// Any, evenly
    Random,
    /// The following one; every queue has its own part of the disk
    Sequential,
}

/// What the blocks hold when a verified run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Held {
    /// Nobody knows: what this run has not written is not compared
    Anything,
    /// Zeros, as those of a new disk
    Zeros,
    /// What an earlier run with the same seed and size wrote to each of them once
    Written,
}

/// What a client can leave unused although a server offers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Feature {
    /// Notifications by index, which spare most of them
    EventIdx,
    /// Tracking of requests in flight: without it a restart of the server can lose some
    Inflight,
    /// Several queues
    Mq,
    /// Acknowledged messages
    ReplyAck,
    /// Memory regions one by one
    MemSlots,
    /// The configuration space; needs --capacity
    Config,
}

/// What one run does.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The vhost-user-blk socket, with --scsi the vhost-user-scsi socket: of an adapter, or of any other server that listens on one
    #[arg(required = true, value_name = "SOCKET")]
    pub(crate) socket: Option<PathBuf>,

    /// The socket is one of a virtual FC or virtual SCSI adapter: load one of its LUNs
    #[arg(long, help_heading = "Load")]
    scsi: bool,
    /// With --scsi: the target, as the client numbers it
    #[arg(long, default_value_t = 0, requires = "scsi", value_name = "N", help_heading = "Load")]
    target: u8,
    /// With --scsi: the LUN
    #[arg(long, default_value_t = 0, requires = "scsi", value_name = "N", help_heading = "Load",
        value_parser = clap::value_parser!(u16).range(0..=0x3fff))]
    lun: u16,
    /// Queues to use; a guest has one for each virtual CPU
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Load",
        value_parser = clap::value_parser!(u16).range(1..=256))]
    queues: u16,
    /// Requests outstanding in each queue: 1 shows latency, 32 and more throughput
    #[arg(long, default_value_t = 32, value_name = "N", help_heading = "Load",
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    depth: u16,
    /// Size of one request
    #[arg(long, default_value = "4KiB", value_name = "SIZE", value_parser = block_size, help_heading = "Load")]
    size: u32,
    /// Percent of the requests that are reads; the others are writes, which destroy what is there
    #[arg(long, default_value_t = 100, value_name = "PERCENT", help_heading = "Load",
        value_parser = clap::value_parser!(u8).range(0..=100))]
    mix: u8,
    /// Which block comes next
    #[arg(long, value_enum, default_value = "random", value_name = "ORDER", help_heading = "Load")]
    order: BlockOrder,
    /// How long to measure
    #[arg(long, default_value = "5s", value_name = "TIME", value_parser = time, help_heading = "Load")]
    time: Duration,
    /// How long to run before measuring
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = time, help_heading = "Load")]
    warm_up: Duration,
    /// End after so many requests over all queues, even if there is time left
    #[arg(long, value_name = "N", help_heading = "Load",
        value_parser = clap::value_parser!(u64).range(1..))]
    operations: Option<u64>,
    /// First byte of the disk to use
    #[arg(long, default_value = "0", value_name = "SIZE", value_parser = fabric::units::parse_size, help_heading = "Load")]
    offset: u64,
    /// Bytes of the disk to use [default: up to its end]
    #[arg(long, value_name = "SIZE", value_parser = fabric::units::parse_size, help_heading = "Load")]
    length: Option<u64>,
    /// Flush after this many writes of a queue
    #[arg(long, value_name = "N", help_heading = "Load",
        value_parser = clap::value_parser!(u32).range(1..))]
    flush_every: Option<u32>,
    /// Where the order of blocks and the patterns begin; the same seed makes the same load
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Load")]
    seed: u64,

    /// Write checksummed blocks, compare everything that is read with what was last acknowledged,
    /// and read everything back at the end
    #[arg(long, help_heading = "Checks")]
    verify: bool,
    /// With --verify: what the blocks hold before, which is compared as well
    #[arg(
        long,
        value_enum,
        default_value = "anything",
        value_name = "WHAT",
        help_heading = "Checks"
    )]
    holds: Held,
    /// Wait so long for a server that died to come back, and go on; without it that is a failure
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Checks")]
    reconnect: Option<Duration>,
    /// A request that takes longer counts as lost
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = time, help_heading = "Checks")]
    stuck_after: Duration,

    /// How the client waits for completions
    #[arg(long, value_enum, default_value = "sleep", value_name = "MODE", help_heading = "Client")]
    wait: Wait,
    /// Threads [default: one for each queue]
    #[arg(long, value_name = "N", help_heading = "Client",
        value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// CPUs for the threads, one each in turn, such as `2-5,8`; the server is better off elsewhere
    #[arg(long, value_name = "CPUS", value_parser = cpu_list, help_heading = "Client")]
    cpus: Option<CpuList>,
    /// Entries of a ring, a power of two [default: 128, or what the depth needs]
    #[arg(long, value_name = "N", help_heading = "Client",
        value_parser = clap::value_parser!(u16).range(2..=32768))]
    queue_size: Option<u16>,
    /// Use indirect descriptors: one ring entry for each request, as Linux does
    #[arg(long, help_heading = "Client")]
    indirect: bool,
    /// Descriptors for the data of one request
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Client",
        value_parser = clap::value_parser!(u16).range(1..=1022))]
    segments: u16,

    /// Process of the server, to count its CPU time [default: the process that listens on SOCKET]
    #[arg(long, value_name = "PID", help_heading = "Server")]
    pub(crate) server_pid: Option<u32>,
    /// Make SOCKET and wait so long for the server to connect to it, as an adapter with
    /// `socket_role` `client` does
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Server")]
    listen: Option<Duration>,
    /// Size of the disk, for servers that do not tell
    #[arg(long, value_name = "SIZE", value_parser = fabric::units::parse_size, help_heading = "Server")]
    capacity: Option<u64>,
    /// How long the server may take to answer a message
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = time, help_heading = "Server")]
    timeout: Duration,
    /// Do not use these although the server offers them
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        value_name = "FEATURES",
        help_heading = "Server"
    )]
    without: Vec<Feature>,
}

impl RunArgs {
    /// As the load generator wants them.
    pub(crate) fn options(&self, server_pid: Option<u32>) -> Result<LoadOptions, Failure> {
        if self.time.is_zero() {
            return Err(ApiError::invalid("--time: nothing can be measured in no time").into());
        }
        Ok(LoadOptions {
            scsi: self.scsi.then_some(ScsiLun { target: self.target, lun: self.lun }),
            queues: self.queues,
            depth: self.depth,
            threads: self.threads,
            queue_size: self.queue_size,
            read_percent: self.mix,
            order: match self.order {
                BlockOrder::Random => Order::Random,
                BlockOrder::Sequential => Order::Sequential,
            },
            block_bytes: self.size,
            offset: self.offset,
            length: self.length,
            stride: None,
            duration: self.time,
            until: None,
            operations: self.operations,
            warm_up: self.warm_up,
            wait: self.wait.into(),
            cpus: self.cpus.clone().unwrap_or_default().0,
            seed: self.seed,
            verify: self.verify,
            holds: match self.holds {
                Held::Anything => Holds::Anything,
                Held::Zeros => Holds::Zeros,
                Held::Written => Holds::Written,
            },
            flush_every: self.flush_every,
            indirect: self.indirect,
            data_segments: self.segments,
            reconnect: self.reconnect,
            stuck_after: self.stuck_after,
            server_pid,
            session: self.session(),
        })
    }

    fn session(&self) -> SessionOptions {
        let (mut mask_features, mut mask_protocol) = (0, 0);
        for without in &self.without {
            match without {
                Feature::EventIdx => mask_features |= feature::EVENT_IDX,
                Feature::Inflight => mask_protocol |= protocol_feature::INFLIGHT_SHMFD,
                Feature::Mq => mask_protocol |= protocol_feature::MQ,
                Feature::ReplyAck => mask_protocol |= protocol_feature::REPLY_ACK,
                Feature::MemSlots => mask_protocol |= protocol_feature::CONFIGURE_MEM_SLOTS,
                Feature::Config => mask_protocol |= protocol_feature::CONFIG,
            }
        }
        SessionOptions {
            mask_features,
            mask_protocol,
            timeout: self.timeout,
            capacity_bytes: self.capacity,
            listen: self.listen,
            ..SessionOptions::default()
        }
    }
}

/// CPUs in ascending order. A type of its own: clap takes a plain list for several values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CpuList(pub(crate) Vec<usize>);

/// Reads `2-5,8`.
pub(crate) fn cpu_list(text: &str) -> Result<CpuList, String> {
    let cpus: BTreeSet<usize> = fabric::units::parse_cpus(text)?;
    if cpus.is_empty() {
        return Err("name at least one CPU, such as `2-5,8`".to_owned());
    }
    Ok(CpuList(cpus.into_iter().collect()))
}

/// Reads the size of a request.
pub(crate) fn block_size(text: &str) -> Result<u32, String> {
    let bytes = fabric::units::parse_size(text)?;
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes > 0 && bytes.is_multiple_of(512))
        .ok_or_else(|| format!("`{text}`: expected a multiple of 512 bytes, such as `4KiB`"))
}

/// Reads `5s`, `500ms`, `1.5s` or `2m`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let expected = || format!("`{text}` is not a time; write a number and a unit, such as `5s`");
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(expected)?;
    let (number, unit) = text.split_at(split);
    let seconds = match unit.trim() {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(expected()),
    };
    let number: f64 = number.parse().map_err(|_| expected())?;
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|_| expected())?;
    // Deadlines are sums of a clock and a time; a week is far from where these overflow.
    if time > TIME_MAX {
        return Err(format!("`{text}` is longer than a week"));
    }
    Ok(time)
}

const TIME_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(time("250 ms"), Ok(Duration::from_millis(250)));
        assert_eq!(time("1.5m"), Ok(Duration::from_secs(90)));
        for wrong in ["", "5", "s", "5 days", "-1s", "1e9s", "999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn requests_are_whole_sectors() {
        assert_eq!(block_size("4KiB"), Ok(4096));
        for wrong in ["0", "100", "8GiB", "4kb"] {
            assert!(block_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_names_a_cpu() {
        assert_eq!(cpu_list("2-3,8"), Ok(CpuList(vec![2, 3, 8])));
        assert!(cpu_list("").is_err());
    }
}
