//! The commands of objects, made from their table: five verbs for each, and what some have beside these.

use super::attributes::{augment, read};
use super::{
    DataplaneRunArgs, EditArgs, How, ListArgs, NameArg, NewArgs, RemoveArgs, ResizeArgs,
    RestartArgs, ShowArgs, WaitArgs, pools, vlans,
};
use crate::cli::Global;
use crate::client::Client;
use crate::commands::filter::Filter;
use crate::commands::groups::Act;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand, ValueEnum};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use fabric::attribute::{Attributes, Object};

/// `trunkline NOUN VERB`.
#[derive(Debug)]
pub(crate) struct ObjectCommand {
    pub(crate) object: Object,
    pub(crate) verb: Verb,
}

/// What is to be done with an object.
#[derive(Debug)]
pub(crate) enum Verb {
    Create(NewArgs, Attributes),
    List(ListArgs),
    Show(ShowArgs),
    Wait(WaitArgs),
    Set(EditArgs, Attributes),
    Remove(RemoveArgs),
    /// The VLANs of networks, or of one.
    Vlans(Option<String>),
    /// One, on all networks or on one.
    Vlan(u16, Option<String>),
    /// The PVs of storage pools.
    Pvs(Vec<Filter>),
    /// The failure groups of storage pools.
    Failgrps(Vec<Filter>),
    /// One of a pool.
    Failgrp(String, String),
    /// The tiers of storage pools.
    Tiers(Vec<Filter>),
    /// One of a pool.
    Tier(String, String),
    /// The PVs of a storage pool, its tiers, or its failure groups, become others.
    ChangeGroups(String, Act, How),
    /// What is wrong with a storage pool, or with a PV of it.
    ExplainPool(String, Option<String>),
    /// What goes on in storage pools.
    TopPools(PoolTopArgs),
    /// What is wrong with how storage pools are laid out.
    CheckPools,
    /// What is left of a storage pool that is on these PVs; its map is made again, or not.
    RescuePool(Vec<std::path::PathBuf>, bool),
    /// What is wrong with an LU.
    ExplainLu(String),
    /// LUs of a storage pool go that are nobody's.
    PurgeLus(String, Vec<u32>, bool),
    /// An LU goes to another tier.
    MoveLu(String, String, How),
    /// LUs share nothing any more.
    DetachLus(pools::DetachArgs),
    /// An LU comes from a file.
    ImportLu(Box<pools::ImportArgs>),
    /// An LU goes into a file.
    ExportLu(Box<pools::ExportArgs>),
    /// Storage pools are read.
    ScrubPools(pools::DetachArgs),
    OpenPool(pools::OpenArgs),
    /// PVs of a pool that were made larger are used as far as they go.
    GrowPvs(String),
    /// A new LU of what a snapshot holds.
    CloneLu(NewArgs, String, Option<String>),
    Snapshot(SnapshotVerb),
    Volume(VolumeVerb),
    Adapter(AdapterVerb),
    Port(PortVerb),
    Medium(MediumVerb),
    Target(TargetVerb),
    Zone(ZoneVerb),
    Network(NetworkVerb),
    Sea(SeaVerb),
    DataPlane(DataPlaneVerb),
    /// The data plane itself, instead of something about it.
    Process(Box<DataplaneRunArgs>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum VolumeVerb {
    /// Change the size of a volume; running guests see it at once
    Resize(ResizeArgs),
    /// Take the file that is there now as the volume's own: for a volume that failed because its file was replaced, by a backup that was
    /// put back for example
    Accept(RemoveArgs),
    /// Make an empty file: for a volume that failed because its file is missing. What was in it is not brought back
    Recreate(RemoveArgs),
}

#[derive(Debug, Subcommand)]
enum PoolVerb {
    /// Say what is wrong with a storage pool, since when, and what to do about it
    Explain(NameArg),
    /// Show what goes on in storage pools: what is moving, copied or waiting, how full tiers are, and what each PV and LU does per second. IN FLIGHT is what a PV has to do now, DEPTH what it had on the average, LATENCY how long an operation took; of an LU, what its clients asked for, and how long the pool had it
    #[command(after_help = "\
Examples:
  trunkline pool top
  trunkline pool top p0 --watch
  trunkline pool top p0 --seconds 10 -o json")]
    Top(PoolTopArgs),
    /// Hold all storage pools against the rules for their layout, with the arithmetic, and say what mends what; ends with 8 if there is something
    Check,
    /// Read all that is written in storage pools from every PV that has it, while clients work: what cannot be read on one PV of a mirrored pool is written there again, what differs is told with its place and left alone, since nothing says which copy is right. It gives way to clients
    #[command(after_help = "\
Examples:
  trunkline pool scrub safe
  trunkline pool scrub safe --no-wait
  trunkline operation cancel 12
  trunkline pool explain safe")]
    Scrub(super::pools::DetachArgs),
    /// Open a storage pool that is not open now, or say why that cannot be done
    #[command(after_help = "\
Examples:
  trunkline pool open safe
  trunkline pool open safe --force")]
    Open(super::pools::OpenArgs),
    /// Look at a pool that does not open any more by its PVs, which nobody may have open, and say what is left of it; with --write make its map again
    #[command(after_help = "\
Examples:
  trunkline pool rescue --pvs /dev/sdb,/dev/sdc
  trunkline pool rescue --pvs /dev/sdb,/dev/sdc --write")]
    Rescue {
        /// All its PVs, of all tiers and failure groups, separated by commas
        #[arg(long, required = true, value_name = "PATH,…", value_delimiter = ',')]
        pvs: Vec<std::path::PathBuf>,
        /// Write what it takes to open it: pages that are lost, and nothing else
        #[arg(long)]
        write: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotVerb {
    /// Let LUs hold again what a snapshot holds: what was written to them since is gone
    #[command(after_help = "\
Examples:
  trunkline snapshot rollback before-upgrade
  trunkline snapshot rollback nightly db")]
    Rollback {
        /// The snapshot
        snapshot: String,
        /// LUs of it; all if none is named
        #[arg(value_name = "LU")]
        volumes: Vec<String>,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdapterVerb {
    /// Say why an adapter has as many channels and commands as it has, and where its attributes come from
    Explain(NameArg),
    /// Forget how many channels clients under the policy `aix` had, and negotiate anew; they keep running
    Reconfigure(RemoveArgs),
    /// Let the high-water marks of an adapter and its queues begin again, at what is there now; nothing else is touched
    ResetMarks(NameArg),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PortVerb {
    /// Map an adapter to a port; its client keeps running and sees the targets of the new one
    #[command(after_help = "\
Examples:
  trunkline port map vfchost0 fcs1")]
    Map {
        /// The virtual Fibre Channel adapter
        adapter: String,
        /// The port
        port: String,
        #[command(flatten)]
        how: How,
    },
    /// Take adapters off their ports: their commands wait for `link_hold` seconds, and then fail until they are mapped again
    Unmap {
        /// Names
        #[arg(required = true, value_name = "NAME")]
        adapters: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Take the links of ports down: commands of their adapters wait for `link_hold` seconds, and then fail until the link is up
    Down(LinkArgs),
    /// Let ports have their links again
    Up(LinkArgs),
    /// Show who is logged in where, and with which WWPN
    Logins,
    /// Say who has the command elements of a port, who waits for them, and who has more than its part
    Explain(NameArg),
    /// Show which adapters use their port most, per second
    #[command(after_help = "\
Examples:
  trunkline port top fcs0
  trunkline port top --watch
  trunkline port top --by waits --seconds 10")]
    Top(TopArgs),
    /// Let the high-water marks of a port begin again, at what is there now on all its adapters; nothing else is touched
    ResetMarks(NameArg),
}

#[derive(Debug, Args)]
pub(crate) struct LinkArgs {
    /// Names
    #[arg(required = true, value_name = "NAME")]
    pub(crate) ports: Vec<String>,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Only the adapters on this port
    pub(crate) port: Option<String>,
    #[command(flatten)]
    pub(crate) rounds: Rounds,
    /// What makes one adapter more than another
    #[arg(long, value_enum, default_value_t = TopBy::Bytes, value_name = "WHAT")]
    pub(crate) by: TopBy,
}

/// How long is watched, and how often.
#[derive(Debug, Args)]
pub(crate) struct Rounds {
    /// How long to watch before each print
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = super::interval)]
    pub(crate) seconds: f64,
    /// How often to print; once, or with --watch until it is interrupted
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// Print again every so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
        conflicts_with = "seconds", value_parser = super::interval)]
    pub(crate) watch: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct PoolTopArgs {
    /// Only this pool
    #[arg(value_name = "NAME")]
    pub(crate) pool: Option<String>,
    #[command(flatten)]
    pub(crate) rounds: Rounds,
}

/// What adapters are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopBy {
    /// Bytes read and written
    Bytes,
    /// Commands
    Commands,
    /// Times that a command had to wait
    Waits,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MediumVerb {
    /// Put a medium into an optical drive, in place of the one that is there
    #[command(after_help = "\
Examples:
  trunkline media create debian --path /srv/debian.iso
  trunkline vtd create vtopt0 --adapter vhost0 --kind optical
  trunkline media load debian vtopt0")]
    Load {
        /// The medium
        medium: String,
        /// The drive: an optical virtual target device
        #[arg(value_name = "DRIVE")]
        vtd: String,
        #[command(flatten)]
        how: How,
    },
    /// Take media out of drives
    Unload {
        /// The drives
        #[arg(required = true, value_name = "DRIVE")]
        vtds: Vec<String>,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TargetVerb {
    /// Give a target more LUNs; its others stay, and so do those that somebody else adds meanwhile
    #[command(after_help = "\
Examples:
  trunkline target add-lun storage0 4=disk4 5=disk5")]
    AddLun {
        /// The target
        target: String,
        /// LUNs with their volumes
        #[arg(required = true, value_name = "LUN=VOLUME")]
        luns: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Take LUNs from a target; their volumes stay
    RemoveLun {
        /// The target
        target: String,
        /// Their numbers
        #[arg(required = true, value_name = "LUN")]
        luns: Vec<String>,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ZoneVerb {
    /// Put adapters, targets or WWPNs into a zone; its others stay, and so do those that somebody else adds meanwhile
    #[command(after_help = "\
Examples:
  trunkline zone add-member zone0 vfchost4 storage0")]
    AddMember {
        /// The zone
        zone: String,
        /// Adapters, targets or WWPNs
        #[arg(required = true, value_name = "MEMBER")]
        members: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Take adapters, targets or WWPNs out of a zone
    RemoveMember {
        /// The zone
        zone: String,
        /// Adapters, targets or WWPNs
        #[arg(required = true, value_name = "MEMBER")]
        members: Vec<String>,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SeaVerb {
    /// Say what is wrong with the shared Ethernet adapters and with who uses them, and what mends it; ends with 8 if there is something
    Check,
    /// Show what has passed a shared Ethernet adapter by client and by trunk adapter; needs `accounting` on it
    Clients {
        /// The shared Ethernet adapter
        sea: String,
        /// The counts begin anew with nothing, after that
        #[arg(long)]
        clear: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum NetworkVerb {
    /// Follow frames: where each came in, to whom it goes, and what became of it there, with the reason if it is lost
    #[command(after_help = "\
Examples:
  trunkline network trace --port ent0
  trunkline net trace net0 --mac 02:00:00:00:00:01 --lost
  trunkline net trace net0 --vlan 10 --write vlan10.pcapng --for 1m")]
    Trace(TraceArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The network; without it the only one, or that of --port
    pub(crate) network: Option<String>,
    /// Only frames from or to this address
    #[arg(long, value_name = "MAC")]
    pub(crate) mac: Option<String>,
    /// Only frames that came by this adapter, uplink or shared adapter, or go there
    #[arg(long, value_name = "NAME")]
    pub(crate) port: Option<String>,
    /// Only frames of this VLAN
    #[arg(long, value_name = "N")]
    pub(crate) vlan: Option<u16>,
    /// Only what is lost
    #[arg(long)]
    pub(crate) lost: bool,
    /// How long; until it is interrupted if not given
    #[arg(long = "for", value_name = "TIME", value_parser = crate::commands::events::parse_time)]
    pub(crate) time: Option<std::time::Duration>,
    /// End after so many events
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// Write a capture (pcapng) instead of lines: the first 256 bytes of each frame, as it came
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<std::path::PathBuf>,
    /// Most bytes of the capture; it ends there
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, requires = "write")]
    pub(crate) size: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataPlaneVerb {
    /// Stop a data plane in good order and start it with its present attributes
    Restart(RestartArgs),
}

/// Adds what an object has beside the verbs of all.
fn with_own_verbs(object: Object, command: Command) -> Command {
    match object {
        Object::Volume => VolumeVerb::augment_subcommands(command),
        Object::Pool => PoolVerb::augment_subcommands(command),
        Object::Snapshot => SnapshotVerb::augment_subcommands(command),
        Object::Adapter => AdapterVerb::augment_subcommands(command),
        Object::Port => PortVerb::augment_subcommands(command),
        Object::Medium => MediumVerb::augment_subcommands(command),
        Object::Target => TargetVerb::augment_subcommands(command),
        Object::Zone => ZoneVerb::augment_subcommands(command),
        Object::Sea => SeaVerb::augment_subcommands(command),
        Object::Network => NetworkVerb::augment_subcommands(command).alias("net"),
        Object::DataPlane => {
            let command = DataPlaneVerb::augment_subcommands(command);
            DataplaneRunArgs::augment_args(command)
                .about("Run a data plane, or administer those of the server")
                .args_conflicts_with_subcommands(true)
                .subcommand_negates_reqs(true)
                .subcommand_required(false)
                .arg_required_else_help(false)
        }
        _ => command,
    }
}

/// A verb that not all have.
fn own_verb(object: Object, matches: &ArgMatches) -> Result<Verb, Error> {
    Ok(match object {
        Object::Volume => Verb::Volume(VolumeVerb::from_arg_matches(matches)?),
        Object::Pool => match PoolVerb::from_arg_matches(matches)? {
            PoolVerb::Explain(NameArg { name }) => Verb::ExplainPool(name, None),
            PoolVerb::Top(args) => Verb::TopPools(args),
            PoolVerb::Check => Verb::CheckPools,
            PoolVerb::Scrub(args) => Verb::ScrubPools(args),
            PoolVerb::Open(args) => Verb::OpenPool(args),
            PoolVerb::Rescue { pvs, write } => Verb::RescuePool(pvs, write),
        },
        Object::Snapshot => Verb::Snapshot(SnapshotVerb::from_arg_matches(matches)?),
        Object::Adapter => Verb::Adapter(AdapterVerb::from_arg_matches(matches)?),
        Object::Port => Verb::Port(PortVerb::from_arg_matches(matches)?),
        Object::Medium => Verb::Medium(MediumVerb::from_arg_matches(matches)?),
        Object::Target => Verb::Target(TargetVerb::from_arg_matches(matches)?),
        Object::Zone => Verb::Zone(ZoneVerb::from_arg_matches(matches)?),
        Object::Sea => Verb::Sea(SeaVerb::from_arg_matches(matches)?),
        Object::Network => Verb::Network(NetworkVerb::from_arg_matches(matches)?),
        Object::DataPlane if matches.subcommand_name().is_none() => {
            Verb::Process(Box::new(DataplaneRunArgs::from_arg_matches(matches)?))
        }
        Object::DataPlane => Verb::DataPlane(DataPlaneVerb::from_arg_matches(matches)?),
        _ => return Err(Error::new(clap::error::ErrorKind::MissingSubcommand)),
    })
}

/// What stands at the end of a verb's help.
fn examples(object: Object, verb: &str) -> &'static str {
    match (object, verb) {
        (Object::Volume, "create") => {
            "\
Examples:
  trunkline volume create disk0 --kind file --path /srv/disk0.img --size 10GiB --create true
  trunkline volume create raw0 --kind file --path /dev/nvme0n1
  trunkline volume create scratch --kind ram --size 512MiB"
        }
        (Object::Pool, "create") => {
            "\
Examples:
  trunkline pool create p0 --pvs /dev/sdb,/dev/sdc
  trunkline pool create test --pvs /srv/pv0,/srv/pv1
  trunkline pool create safe --pvs /dev/sdb,/dev/sdc --mirror /dev/sdd,/dev/sde"
        }
        (Object::Snapshot, "create") => {
            "\
Examples:
  trunkline snapshot create before-upgrade --volumes lu0
  trunkline snapshot create nightly --volumes db,log"
        }
        (Object::Volume | Object::Adapter | Object::DataPlane, "list") => {
            "\
Examples:
  trunkline volume list --where state=failed
  trunkline adapter list --where dataplane=main -o name"
        }
        (Object::Volume | Object::Adapter | Object::DataPlane, "wait") => {
            "\
Examples:
  trunkline adapter wait vhost0 --for running --timeout 5m
  trunkline volume wait disk0 --for failed,gone"
        }
        (Object::Volume, "set") => {
            "\
Examples:
  trunkline volume set disk0 --limit-iops 5000
  trunkline volume set disk0 --unset limit_iops"
        }
        (Object::Adapter, "create") => {
            "\
Examples:
  trunkline adapter create vhost0 --volume disk0
  trunkline adapter create vhost1 --volume disk1 --queues 8 --channels 2 --wait poll
  trunkline adapter create vfchost0 --kind fc --port fcs0
  trunkline adapter create vhost2 --kind scsi"
        }
        _ => "",
    }
}

/// What else a removal does, where that is not plain.
fn removal(object: Object) -> &'static str {
    match object {
        Object::Volume => "; their files stay, LUs are gone",
        Object::Pool => "; what is on their PVs stays there",
        Object::Snapshot => "; LUs and clones keep what they hold",
        Object::Adapter => "; their clients are disconnected",
        _ => "",
    }
}

/// The command of an object.
fn command(object: Object) -> Command {
    let (noun, title) = (object.noun(), object.title().to_lowercase());
    // Arguments bring a description of their own; the verb's comes last.
    let verb = |name: &'static str, arguments: fn(Command) -> Command, about: String| {
        arguments(Command::new(name)).about(about).after_help(examples(object, name))
    };
    let create = verb("create", NewArgs::augment_args, format!("Make a new {noun}"));
    let set = verb("set", EditArgs::augment_args, format!("Change attributes of one {noun}"));
    let remove = format!("Remove {title}{}", removal(object));
    let command = Command::new(noun)
        .about(format!("{}: {}", object.title(), object.about()))
        .alias(object.collection())
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(augment(object, create))
        .subcommand(
            verb("list", ListArgs::augment_args, format!("List {title}")).visible_alias("ls"),
        )
        .subcommand(verb("show", ShowArgs::augment_args, format!("Show {title}, one or several")))
        .subcommand(augment(object, set))
        .subcommand(verb("remove", RemoveArgs::augment_args, remove).visible_alias("rm"));
    let command = match has_state(object) {
        true => {
            let about = format!("Wait until {title} serve, or are in another state");
            command.subcommand(verb("wait", WaitArgs::augment_args, about))
        }
        false => command,
    };
    with_own_verbs(object, command)
}

/// Whether it has a state that changes by itself.
fn has_state(object: Object) -> bool {
    matches!(
        object,
        Object::Volume | Object::Adapter | Object::DataPlane | Object::Uplink | Object::Pool
    )
}

impl FromArgMatches for ObjectCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ObjectCommand, Error> {
        let missing = || Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (noun, matches) = matches.subcommand().ok_or_else(missing)?;
        if noun == vlans::NOUN {
            return vlans::read(matches);
        }
        if pools::has(noun) {
            return pools::read(noun, matches);
        }
        let object = Object::of_noun(noun).ok_or_else(missing)?;
        let verb = match matches.subcommand() {
            Some(("create", of)) => Verb::Create(NewArgs::from_arg_matches(of)?, read(object, of)),
            Some(("list", of)) => Verb::List(ListArgs::from_arg_matches(of)?),
            Some(("show", of)) => Verb::Show(ShowArgs::from_arg_matches(of)?),
            Some(("wait", of)) => Verb::Wait(WaitArgs::from_arg_matches(of)?),
            Some(("set", of)) => Verb::Set(EditArgs::from_arg_matches(of)?, read(object, of)),
            Some(("remove", of)) => Verb::Remove(RemoveArgs::from_arg_matches(of)?),
            _ => own_verb(object, matches)?,
        };
        Ok(ObjectCommand { object, verb })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = ObjectCommand::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for ObjectCommand {
    fn augment_subcommands(all: Command) -> Command {
        all.subcommands(Object::ALL.map(command))
            .subcommands(pools::commands())
            .subcommand(vlans::command())
    }

    fn augment_subcommands_for_update(all: Command) -> Command {
        ObjectCommand::augment_subcommands(all)
    }

    fn has_subcommand(name: &str) -> bool {
        Object::of_noun(name).is_some() || pools::has(name) || name == vlans::NOUN
    }
}

/// The whole command line, for completion: where an argument is the name of an object, those that there are are offered. Such an argument is
/// called by the object's noun or collection, or `name` below a noun. So it is with tiers and failure groups of storage pools.
pub(crate) fn with_names(command: Command, below: Option<Object>) -> Command {
    let below = Object::of_noun(command.get_name()).or(below);
    let is_new = command.get_name() == "create";
    let command = command.mut_args(|argument| {
        let id = argument.get_id().as_str();
        let named = Object::ALL
            .into_iter()
            .find(|object| id == object.noun() || id == object.collection())
            .or(below.filter(|_| matches!(id, "name" | "names") && !is_new));
        match named {
            Some(object) => argument.add(ArgValueCandidates::new(move || names(object, "/name"))),
            None if id == pools::FAILGRP => {
                let groups = || names(Object::Pool, "/space/failgrps/*/name");
                argument.add(ArgValueCandidates::new(groups))
            }
            None if id == pools::TIER => {
                let tiers = || names(Object::Pool, "/space/tiers/*/name");
                argument.add(ArgValueCandidates::new(tiers))
            }
            None => argument,
        }
    });
    command.mut_subcommands(|command| with_names(command, below))
}

/// How long a completion waits for the server.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(500);

/// The names that the server has, if it answers: what stands at a place of each object, `*` in it for each of a list.
fn names(object: Object, place: &'static str) -> Vec<CompletionCandidate> {
    let dir = std::env::var_os("TRUNKLINE_DIR").map(Into::into);
    let global = Global { dir, output: super::Format::Json, no_headers: false };
    let path = format!("/v1/{}", object.collection());
    // Who types does not wait for a server that hangs.
    let (told, list) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let list = Client::new(&global).and_then(|client| client.get::<serde_json::Value>(&path));
        let _ = told.send(list.ok());
    });
    let list = list.recv_timeout(PATIENCE).ok().flatten();
    let items = list.and_then(|list| Some(list.get("items")?.as_array()?.clone()));
    let mut found: Vec<String> = items.iter().flatten().flat_map(|item| at(item, place)).collect();
    found.dedup();
    found.into_iter().map(CompletionCandidate::new).collect()
}

/// What stands at a place.
fn at(value: &serde_json::Value, place: &str) -> Vec<String> {
    if let Some((list, rest)) = place.split_once("/*") {
        let all = value.pointer(list).and_then(|list| list.as_array());
        return all.into_iter().flatten().flat_map(|one| at(one, rest)).collect();
    }
    value.pointer(place).and_then(|text| text.as_str()).map(str::to_owned).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_found_at_their_place() {
        let group = |name: &str| json!({ "name": name });
        let pool =
            json!({ "name": "p", "space": { "failgrps": [group("north"), group("south")] } });
        assert_eq!(at(&pool, "/name"), ["p"]);
        assert_eq!(at(&pool, "/space/failgrps/*/name"), ["north", "south"]);
        assert_eq!(at(&json!({ "name": "closed" }), "/space/failgrps/*/name"), [""; 0]);
    }
}
