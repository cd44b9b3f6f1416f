//! The command line: nouns, verbs and options. The commands of objects come from their table.

mod attributes;
pub(crate) mod objects;
pub(crate) mod pools;
mod vlans;

use crate::exit;
use clap::{Args, Parser, Subcommand, ValueEnum};
use control::paths::Paths;
use std::path::PathBuf;

/// Disks for virtual machines over many queues
///
/// Trunkline gives virtual machines their disks over vhost-user sockets. A volume holds data; an
/// adapter is a socket to which one virtual machine connects and where it sees a volume as its disk,
/// or, as a virtual Fibre Channel or SCSI adapter, the LUNs that it is given; a data plane is a
/// process that moves the I/O, with as many channels (threads) as you give it.
#[derive(Debug, Parser)]
#[command(
    name = "trunkline",
    version,
    max_term_width = 100,
    propagate_version = true,
    after_help = EXAMPLES,
    after_long_help = const_help(),
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  trunkline serve --dir /tmp/t &
  export TRUNKLINE_DIR=/tmp/t
  trunkline volume create disk0 --kind file --path /tmp/t/disk0.img --size 10GiB --create true
  trunkline adapter create vhost0 --volume disk0
  trunkline emit qemu vhost0
  trunkline stats vhost0 --watch";

const fn const_help() -> &'static str {
    exit::HELP
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Keep sockets and state in this folder [default: /run/trunkline and /var/lib/trunkline for
    /// root, else trunkline in the user's runtime and state folders]
    #[arg(long, global = true, env = "TRUNKLINE_DIR", hide_env_values = true, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// How to print
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub(crate) output: Format,
    /// Print tables without their headings
    #[arg(long, global = true)]
    pub(crate) no_headers: bool,
}

impl Global {
    /// The folders.
    pub(crate) fn paths(&self) -> Paths {
        match &self.dir {
            Some(dir) => Paths::in_one(std::path::absolute(dir).unwrap_or_else(|_| dir.clone())),
            None => Paths::standard(),
        }
    }
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// What the API answers
    Json,
    /// The same as YAML
    Yaml,
    /// Names alone, one a line
    Name,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server: control plane, and a data plane beside it
    #[command(after_help = SERVE_HELP)]
    Serve(ServeArgs),
    #[command(flatten)]
    Object(objects::ObjectCommand),
    /// Make the server what a configuration file says
    #[command(after_help = APPLY_HELP)]
    Apply(ApplyArgs),
    /// Print the desired state as a configuration file
    Export(ExportArgs),
    /// Print what to paste to attach a virtual machine to adapters, and what is missing
    #[command(after_help = EMIT_HELP)]
    Emit(EmitArgs),
    /// Print statistics of adapters and channels
    Stats(StatsArgs),
    /// Print the last events of each channel
    Flight(FlightArgs),
    /// Load a vhost-user-blk server and measure it
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true,
        after_help = crate::bench::EXAMPLES)]
    Bench(Box<crate::bench::BenchArgs>),
    /// Show everything in less than a minute: a server, two clients, a table
    #[command(after_help = crate::demo::EXAMPLES)]
    Demo(crate::demo::DemoArgs),
    /// Advice and migration outcome for PowerVM systems, from what their commands print
    Plan {
        #[command(subcommand)]
        command: crate::plan::PlanCommand,
    },
    /// Say what a Virtual I/O Server of a PowerVM system needs for a load
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true,
        after_help = crate::plan::size::HELP)]
    Size(Box<crate::plan::size::SizeArgs>),
    /// Commands of a PowerVM Virtual I/O Server: fcstat, lsmap, lsdev, lsattr, chdev
    #[command(disable_help_flag = true)]
    Ioscli {
        /// The command and its flags, as the original has them; alone it lists the commands
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        words: Vec<String>,
    },
    /// Print how the server is
    Status(StatusArgs),
    /// Print what happened: changes and who made them, data planes, clients, errors
    #[command(after_help = EVENTS_HELP)]
    Events(EventsArgs),
    /// What takes long: copies of media, files that are being opened, restarts of data planes
    #[command(alias = "operations", after_help = OPERATION_HELP)]
    Operation {
        #[command(subcommand)]
        command: OperationCommand,
    },
    /// Print the attributes that objects can have
    Attributes(AttributesArgs),
    /// Stop the server; I/O goes on unless told otherwise
    Stop(StopArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

const SERVE_HELP: &str = "\
The data planes are processes of their own: they go on when the server ends, and a server that
starts finds them again. Sockets that systemd passes in are used by name: `api` for the API, every
other name is an adapter's.

Examples:
  trunkline serve
  trunkline serve --config /etc/trunkline.toml
  trunkline serve --dir /tmp/t --with-dataplanes";

const APPLY_HELP: &str = "\
Objects that the file does not name stay, unless --prune is given. Applying the same file again
changes nothing.

Examples:
  trunkline apply trunkline.toml --dry-run
  trunkline apply trunkline.toml --prune
  trunkline export | trunkline apply -";

const EMIT_HELP: &str = "\
Examples:
  trunkline emit qemu vhost0 vhost1 --vcpus 2
  trunkline emit qemu vhost1 --device-only
  trunkline emit libvirt vhost1 --device-only | virsh attach-device guest /dev/stdin";

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Apply this configuration; what it does not name stays as the last run left it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Remove what the configuration does not name, unless that takes a disk from a client
    #[arg(long, requires = "config")]
    pub(crate) prune: bool,
    /// Put a store that cannot be read aside, and start from the last good copy of the state
    #[arg(long)]
    pub(crate) restore: bool,
    /// End the data planes when the server ends
    #[arg(long)]
    pub(crate) with_dataplanes: bool,
    /// The sysfs in which HBAs are looked for; for tests
    #[arg(long, hide = true, default_value = "/sys", value_name = "DIR")]
    pub(crate) sysfs: PathBuf,
    /// How much to log: error, warn, info, debug, trace, or by part: `info,control=debug`
    #[arg(long, env = "TRUNKLINE_LOG", default_value = "info", value_name = "LEVEL")]
    pub(crate) log: String,
}

/// The process itself; `trunkline serve` starts it with these.
#[derive(Debug, Args)]
pub(crate) struct DataplaneRunArgs {
    /// Take messages of the control plane on this socket
    #[arg(long, required = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Name of the data plane, for its log
    #[arg(long, default_value = "main", value_name = "NAME")]
    pub(crate) name: String,
    /// CPUs that the channels run on, such as `2-5,8`; empty is every CPU that the process may use
    #[arg(long, default_value = "", value_name = "CPUS")]
    pub(crate) cpus: String,
    /// I/O threads; 0 is one per CPU
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) channels: u32,
    /// Longest that an adaptive channel looks for work before it sleeps, in µs; `auto` is what a wake-up takes on this machine
    #[arg(long, default_value = poll_us_max(), value_name = "N|auto", value_parser = number_or_auto)]
    pub(crate) poll_us_max: NumberOrAuto,
    /// How much to log: error, warn, info, debug, trace
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    pub(crate) log: String,
    /// Open nothing but files of this folder, and make no system call beyond those of a data plane at work; the control plane opens the rest
    #[arg(long, value_name = "FOLDER")]
    pub(crate) confine: Option<PathBuf>,
    /// Become a session of its own, so that no signal to the starter's group arrives
    #[arg(long)]
    pub(crate) detach: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// Its name
    pub(crate) name: String,
    /// Under clients that will not connect again, too: their machines have to be restarted
    #[arg(long)]
    pub(crate) force: bool,
    /// Return as soon as the operation is begun
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NameArg {
    /// Its name
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Names
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only those of which this holds: `state=failed`, `dataplane!=main`; may be given several times, and all must hold
    #[arg(long = "where", value_name = "WHAT=VALUE", value_parser = crate::commands::filter::parse)]
    pub(crate) filters: Vec<crate::commands::filter::Filter>,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// Names
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The state that is waited for; several, separated by commas: any of them; `gone`: until it is removed [default: it serves]
    #[arg(long = "for", value_name = "STATE", value_delimiter = ',')]
    pub(crate) states: Vec<String>,
    /// Give up after this time, such as `90s`, `10m` or `2h`
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = crate::commands::events::parse_time)]
    pub(crate) timeout: std::time::Duration,
}

/// How a change is made.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct How {
    /// Say what would change and which clients it would hit, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take disks from clients that are connected, too
    #[arg(long)]
    pub(crate) force: bool,
    /// Return as soon as the change is stored, with the number of the operation that goes on
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// What is done with operations.
#[derive(Debug, Subcommand)]
pub(crate) enum OperationCommand {
    /// List what goes on, and what has ended of late
    #[command(visible_alias = "ls")]
    List,
    /// Show one operation
    Show(OperationArgs),
    /// Wait until an operation has ended; fails if it was undone
    Wait(OperationArgs),
    /// Have an operation undone, and wait until nothing of it is left
    Cancel(OperationArgs),
}

#[derive(Debug, Args)]
pub(crate) struct OperationArgs {
    /// Its number
    #[arg(value_name = "ID")]
    pub(crate) id: u64,
}

#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Its name: a letter or a digit, then letters, digits, `-`, `_` or `.`
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// Its name
    pub(crate) name: String,
    /// Put an attribute back to its default; may be given several times
    #[arg(long, value_name = "ATTRIBUTE")]
    pub(crate) unset: Vec<String>,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Names
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
pub(crate) struct ResizeArgs {
    /// Its name
    pub(crate) name: String,
    /// The new size, such as `20GiB`
    pub(crate) size: String,
    /// Allow the volume to become smaller, which loses what lies beyond
    #[arg(long)]
    pub(crate) shrink: bool,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Return as soon as the change is stored, with the number of the operation that goes on
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// The configuration, `-` for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove the objects that the file does not name
    #[arg(long)]
    pub(crate) prune: bool,
    /// Take disks from clients that are connected, too, and take a file that names nothing
    #[arg(long)]
    pub(crate) force: bool,
    /// Allow volumes to become smaller, which loses what lies beyond
    #[arg(long)]
    pub(crate) shrink: bool,
    /// Return as soon as it is stored, with the number of the operation that goes on
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// End with exit code 8 when something is not as it should be
    #[arg(long)]
    pub(crate) exit_code: bool,
}

const OPERATION_HELP: &str = "\
Examples:
  trunkline medium create debian --path /srv/debian.iso --copy --no-wait
  trunkline operation wait 12
  trunkline operation cancel 12";

const EVENTS_HELP: &str = "\
Examples:
  trunkline events --since 1h
  trunkline events --of vfchost0
  trunkline events --follow";

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Only what happened in this time, such as `90s`, `10m`, `2h` or `7d`
    #[arg(long, value_name = "TIME", value_parser = crate::commands::events::parse_time)]
    pub(crate) since: Option<std::time::Duration>,
    /// Only what is about this adapter, port, volume, data plane or other object
    #[arg(long, value_name = "NAME")]
    pub(crate) of: Option<String>,
    /// Go on printing as things happen
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Of the last good copy of the state, without a server
    #[arg(long)]
    pub(crate) last_good: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EmitArgs {
    /// For whom
    #[arg(value_enum)]
    pub(crate) target: EmitTarget,
    /// The adapters
    #[arg(required = true, value_name = "ADAPTER")]
    pub(crate) adapters: Vec<String>,
    /// What belongs to the adapters alone: for a machine that there is already, and for `virsh attach-device`
    #[arg(long)]
    pub(crate) device_only: bool,
    /// Virtual CPUs of the machine: one queue for each
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) vcpus: u32,
    /// Memory of the machine
    #[arg(long, default_value = "4GiB", value_name = "SIZE")]
    pub(crate) memory: String,
    /// Version of QEMU that it is for; from 9.2 on it takes `reconnect-ms`
    #[arg(long, default_value = "7.2", value_name = "X.Y")]
    pub(crate) qemu_version: String,
}

/// For whom `emit` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmitTarget {
    /// Arguments of a QEMU command
    Qemu,
    /// Elements of a libvirt domain
    Libvirt,
    /// Options of cloud-hypervisor
    CloudHypervisor,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// Only this adapter, queue by queue
    pub(crate) adapter: Option<String>,
    /// Print again every so many seconds, as rates
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
        value_parser = interval)]
    pub(crate) watch: Option<f64>,
    /// With --watch: end after so many prints
    #[arg(long, value_name = "N", requires = "watch")]
    pub(crate) count: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct FlightArgs {
    /// Only this channel
    pub(crate) channel: Option<u32>,
    /// Only this data plane
    #[arg(long, value_name = "NAME")]
    pub(crate) dataplane: Option<String>,
    /// At most so many events of each channel, the newest
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) last: usize,
}

#[derive(Debug, Args)]
pub(crate) struct AttributesArgs {
    /// As the reference page in Markdown
    #[arg(long)]
    pub(crate) markdown: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// Stop the data planes too: all I/O ends
    #[arg(long)]
    pub(crate) with_dataplanes: bool,
}

/// Seconds between two prints.
pub(crate) fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.ok_or_else(|| format!("`{text}` is no time from 0.1 to 3600 seconds"))
}

/// A number, or none for `auto`.
pub(crate) type NumberOrAuto = Option<u32>;

fn number_or_auto(text: &str) -> Result<NumberOrAuto, String> {
    match text {
        "auto" => Ok(None),
        _ => text.parse().map(Some).map_err(|_| format!("`{text}` is neither a number nor `auto`")),
    }
}

/// As the table of attributes has it.
fn poll_us_max() -> String {
    fabric::attribute::attr::dataplane::POLL_US_MAX.default_text().replace('`', "")
}
