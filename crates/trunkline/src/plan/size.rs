//! `trunkline size`

use super::calibrate::{self, CalibrateArgs};
use super::read::{self, WithReading};
use super::show::{AnswerArgs, FactsArgs, called, has_format, read_text};
use crate::cli::Global;
use crate::exit::Failure;
use crate::output::put;
use clap::{Args, Subcommand, ValueEnum};
use control::error::ApiError;
use planner::facts::Facts;
use planner::size::{
    Backing, Both, Direction, Given, Processors, Sea, Ssp, Vios, VirtualFc, Vscsi, Workloads,
    captured,
};
use std::path::PathBuf;

pub(crate) const HELP: &str = "\
Costs of a shared Ethernet adapter and of virtual SCSI are published tables; those of virtual Fibre \
Channel and pools are assumptions, marked as unconfirmed, and give ranges. Who has measured puts a \
figure in a file for --facts. `size calibrate` measures what a shared Ethernet adapter of our own server costs on this host, and \
`size sea --measured` answers by that too.

Captures tell the loads of the servers that they are of: what shared Ethernet adapters, ports, disks and pools were \
seen to carry, each input with its lines, and what is missing with the command that would tell it. --loads writes \
them as a file of the kind below, to be completed by hand.

Several loads of one server, as a file:

  [vios]
  clock_ghz = 3.8
  processors = \"shared\"
  [[sea]]
  streaming_mb = 200
  [[virtual_fc]]
  name = \"databases\"
  adapters = 12
  iops = 150000
  block_bytes = 8192
  [[ssp]]
  iops = 20000
  block_bytes = 16384
  clients = 40
  pool_tb = 8

Examples:
  trunkline size sea --streaming 200
  trunkline size sea --streaming 400 --direction duplex --mtu 9000 --clock-ghz 3.8 --explain
  trunkline size vfc --iops 150000 --block 8KiB --adapters 12 --clock-ghz 3.8
  trunkline size vscsi --iops 20000 --block 4KiB --disks 24 --queue-depth 32
  trunkline size ssp --iops 20000 --block 16KiB --clients 40 --pool-tb 8
  trunkline size calibrate
  trunkline size sea --streaming 200 --measured sea-costs.toml
  trunkline size workloads.toml --html size.html
  trunkline size --from captures/
  trunkline size --from captures/ --vios vios1 --loads vios1.toml";

/// Options of `size`.
#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    #[command(subcommand)]
    command: Option<SizeCommand>,
    /// Loads as a TOML file, `-` for standard input
    #[arg(required_unless_present = "from", value_name = "FILE")]
    file: Option<PathBuf>,
    /// Take the loads from captures of Virtual I/O Servers and their clients: files, folders, `-` for standard input
    #[arg(long, num_args = 1.., value_name = "PATH", conflicts_with = "file", help_heading = "Captures")]
    from: Vec<PathBuf>,
    /// With --from: the server to size [default: every one]
    #[arg(
        long,
        value_name = "NAME",
        requires = "from",
        conflicts_with = "file",
        help_heading = "Captures"
    )]
    vios: Option<String>,
    /// With --from: write the loads as a TOML file, too; `-` prints that instead
    #[arg(
        long,
        value_name = "FILE",
        requires = "from",
        conflicts_with = "file",
        help_heading = "Captures"
    )]
    loads: Option<PathBuf>,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    facts: FactsArgs,
}

#[derive(Debug, Subcommand)]
enum SizeCommand {
    #[command(flatten)]
    Load(LoadCommand),
    /// Measure what a shared Ethernet adapter costs on this host
    #[command(after_help = calibrate::EXAMPLES)]
    Calibrate(Box<CalibrateArgs>),
}

/// One load on the command line.
#[derive(Debug, Subcommand)]
enum LoadCommand {
    /// A shared Ethernet adapter
    Sea(SeaArgs),
    /// Clients over virtual Fibre Channel
    Vfc(VfcArgs),
    /// Clients over virtual SCSI
    Vscsi(VscsiArgs),
    /// Clients of a shared storage pool
    Ssp(SspArgs),
}

/// The server that carries the load.
#[derive(Debug, Args)]
struct Server {
    /// Clock of its processors [default: 1.65, that of the tables]
    #[arg(long, value_name = "GHZ", help_heading = "Server")]
    clock_ghz: Option<f64>,
    /// How it gets processors [default: both are told]
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Server")]
    processors: Option<How>,
    /// What to add in a shared partition, as a part of the load: 0.25 is a quarter [default: the
    /// range of the facts]
    #[arg(long, value_name = "PART", help_heading = "Server")]
    contingency: Option<f64>,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    facts: FactsArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum How {
    /// Whole ones of its own
    Dedicated,
    /// A share, with an entitlement
    Shared,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Ways {
    /// One way at a time
    Simplex,
    /// Both ways at a time
    Duplex,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Behind {
    /// A physical disk or LUN
    Disk,
    /// A logical volume
    Volume,
}

#[derive(Debug, Args)]
struct SeaArgs {
    /// Streamed data in MB/s, both directions together
    #[arg(long, value_name = "MB", required_unless_present = "transactions")]
    streaming: Option<f64>,
    /// Whether data streams one way or both ways at a time
    #[arg(long, value_enum, default_value = "simplex", value_name = "WAYS")]
    direction: Ways,
    /// 1500, 9000 for jumbo frames, or between
    #[arg(long, default_value_t = 1500, value_name = "BYTES")]
    mtu: u32,
    /// Its attribute thread: 1 or 0 [default: 1]
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    thread: Option<u8>,
    /// Requests with their responses each second
    #[arg(long, value_name = "N")]
    transactions: Option<f64>,
    /// Size of a request and of its response
    #[arg(long, default_value = "64", value_name = "SIZE", value_parser = bytes)]
    transaction_size: u32,
    /// Answer by this file too, beside the published tables: what `size calibrate` measured
    #[arg(long, value_name = "FILE")]
    measured: Option<PathBuf>,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Args)]
struct Load {
    /// I/Os each second, of all clients together
    #[arg(long, value_name = "N")]
    iops: f64,
    /// Size of an I/O
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    block: u32,
}

#[derive(Debug, Args)]
struct VfcArgs {
    #[command(flatten)]
    load: Load,
    /// Virtual adapters
    #[arg(long, default_value_t = 1, value_name = "N")]
    adapters: u32,
    /// Queues of each adapter [default: that of the adapters]
    #[arg(long, value_name = "N")]
    queues: Option<u32>,
    /// Response time of an I/O [default: the range of the facts]
    #[arg(long, value_name = "MS")]
    latency_ms: Option<f64>,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Args)]
struct VscsiArgs {
    #[command(flatten)]
    load: Load,
    /// What stands behind the disks
    #[arg(long, value_enum, default_value = "disk", value_name = "WHAT")]
    backing: Behind,
    /// Disks of one client; with it, the adapters that it needs are told
    #[arg(long, value_name = "N")]
    disks: Option<u32>,
    /// queue_depth of the client's disks [default: the system's]
    #[arg(long, value_name = "N")]
    queue_depth: Option<u32>,
    #[command(flatten)]
    server: Server,
}

#[derive(Debug, Args)]
struct SspArgs {
    #[command(flatten)]
    load: Load,
    /// Clients of this server
    #[arg(long, value_name = "N")]
    clients: u32,
    /// Size of the pool in TB
    #[arg(long, value_name = "TB")]
    pool_tb: f64,
    /// LUNs of the pool [default: as many as are recommended]
    #[arg(long, value_name = "N")]
    luns: Option<u32>,
    /// queue_depth of the pool's LUNs [default: the system's]
    #[arg(long, value_name = "N")]
    lun_depth: Option<u32>,
    /// queue_depth of a client's LU [default: the system's]
    #[arg(long, value_name = "N")]
    lu_depth: Option<u32>,
    #[command(flatten)]
    server: Server,
}

/// A size that is given in bytes or with a unit.
fn bytes(text: &str) -> Result<u32, String> {
    let size = fabric::units::parse_size(text)?;
    u32::try_from(size).map_err(|_| format!("`{text}` is too large for one I/O"))
}

/// Works it out and prints it.
pub(crate) fn main(global: &Global, args: &SizeArgs) -> Result<(), Failure> {
    has_format(global)?;
    if !args.from.is_empty() {
        return by_captures(global, args, &args.facts.read()?);
    }
    let (workloads, answer, facts, what) = match (&args.command, &args.file) {
        (Some(SizeCommand::Calibrate(args)), _) => return calibrate::main(global, args),
        (Some(SizeCommand::Load(command)), _) => {
            let (workloads, server) = command.workloads();
            (workloads, &server.answer, &server.facts, String::new())
        }
        (None, Some(path)) => {
            let what = format!("{}: ", called(path));
            let read = Workloads::read(&read_text(path)?);
            let read = read.map_err(|error| ApiError::excerpt(&format!("{what}{error}")))?;
            (read, &args.answer, &args.facts, what)
        }
        (None, None) => return Err(ApiError::invalid("nothing to size").into()),
    };
    let facts = facts.read()?;
    if let Some(SizeCommand::Load(LoadCommand::Sea(SeaArgs { measured: Some(path), .. }))) =
        &args.command
    {
        let measured = calibrate::measured(&facts, path)?;
        let both = Both::size(&workloads, &facts, &measured)
            .map_err(|error| ApiError::invalid(error.to_string()))?;
        return answer.show(global, &both, &both, None);
    }
    let sizing =
        workloads.size(&facts).map_err(|error| ApiError::invalid(format!("{what}{error}")))?;
    answer.show(global, &sizing, &sizing, None)
}

/// Sizes the servers of captures.
fn by_captures(global: &Global, args: &SizeArgs, facts: &Facts) -> Result<(), Failure> {
    let reading = read::read(&args.from)?;
    let mut sizings = captured(&reading.captures, facts)
        .map_err(|error| ApiError::invalid(format!("by the captures: {error}")))?;
    let all: Vec<String> = sizings.servers.iter().map(|(server, _)| server.vios.clone()).collect();
    if let Some(wanted) = &args.vios {
        sizings.servers.retain(|(server, _)| server.vios.eq_ignore_ascii_case(wanted));
    }
    if sizings.servers.is_empty() {
        return Err(match (&args.vios, all.is_empty()) {
            (Some(wanted), false) => {
                ApiError::invalid(format!("no Virtual I/O Server `{wanted}` is among the captures"))
                    .help(format!("there are {}", all.join(", ")))
            }
            _ => ApiError::invalid("nothing in the captures is of a Virtual I/O Server")
                .help("capture `ioslevel` and `lsmap -all -npiv` there, with a prompt or `hostname` before"),
        }
        .into());
    }
    if let Some(path) = &args.loads {
        let [(server, _)] = sizings.servers.as_slice() else {
            return Err(ApiError::invalid("--loads writes the loads of one server")
                .help(format!("add --vios with one of {}", all.join(", ")))
                .into());
        };
        let text = toml::to_string(&server.workloads).map_err(Failure::other)?;
        if path.as_os_str() == "-" {
            return put(text.trim_end());
        }
        std::fs::write(path, text)
            .map_err(|error| Failure::other(format!("--loads {}: {error}", path.display())))?;
    }
    let page = WithReading { answer: &sizings, reading: &reading, all: true };
    let text = WithReading { all: args.answer.explain(), ..page };
    args.answer.show(global, &text, &page, Some(("inputs", reading.as_json()?)))
}

impl LoadCommand {
    fn workloads(&self) -> (Workloads, &Server) {
        let mut all = Workloads::default();
        let server = match self {
            LoadCommand::Sea(args) => {
                all.sea = vec![args.load()];
                &args.server
            }
            LoadCommand::Vfc(args) => {
                all.virtual_fc = vec![args.load()];
                &args.server
            }
            LoadCommand::Vscsi(args) => {
                all.vscsi = vec![args.load()];
                &args.server
            }
            LoadCommand::Ssp(args) => {
                all.ssp = vec![args.load()];
                &args.server
            }
        };
        all.vios = Vios {
            clock_ghz: server.clock_ghz.map(Given::from),
            processors: server.processors.map(|how| match how {
                How::Dedicated => Processors::Dedicated,
                How::Shared => Processors::Shared,
            }),
            contingency: server.contingency,
        };
        (all, server)
    }
}

impl SeaArgs {
    fn load(&self) -> Sea {
        Sea {
            name: None,
            streaming_mb: self.streaming.unwrap_or(0.0).into(),
            direction: match self.direction {
                Ways::Simplex => Direction::Simplex,
                Ways::Duplex => Direction::Duplex,
            },
            mtu: self.mtu,
            threaded: self.thread.map(|thread| thread == 1),
            transactions: self.transactions.unwrap_or(0.0).into(),
            transaction_bytes: self.transaction_size.into(),
        }
    }
}

impl VfcArgs {
    fn load(&self) -> VirtualFc {
        VirtualFc {
            name: None,
            adapters: self.adapters.into(),
            iops: self.load.iops.into(),
            block_bytes: self.load.block.into(),
            queues: self.queues.map(Given::from),
            latency_ms: self.latency_ms.map(Given::from),
        }
    }
}

impl VscsiArgs {
    fn load(&self) -> Vscsi {
        Vscsi {
            name: None,
            iops: self.load.iops.into(),
            block_bytes: self.load.block.into(),
            backing: match self.backing {
                Behind::Disk => Backing::Disk,
                Behind::Volume => Backing::Volume,
            },
            disks: self.disks.map(Given::from),
            queue_depth: self.queue_depth.map(Given::from),
        }
    }
}

impl SspArgs {
    fn load(&self) -> Ssp {
        Ssp {
            name: None,
            iops: self.load.iops.into(),
            block_bytes: self.load.block.into(),
            clients: self.clients.into(),
            pool_tb: self.pool_tb.into(),
            luns: self.luns.map(Given::from),
            lun_depth: self.lun_depth.map(Given::from),
            lu_depth: self.lu_depth.map(Given::from),
        }
    }
}
