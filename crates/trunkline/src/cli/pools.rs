//! The commands of LUs, PVs, tiers and failure groups: an LU is a volume of the kind `lu`, and the others are parts of their pool, so none is an object of its own.

use super::objects::{ObjectCommand, Verb, VolumeVerb};
use super::{How, ListArgs, NameArg, NewArgs, RemoveArgs, ResizeArgs, ShowArgs};
use crate::commands::filter;
use crate::commands::groups::Act;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand, ValueEnum};
use control::image::Format;
use fabric::attribute::words::VolumeKind;
use fabric::attribute::{Attributes, Object, Value, attr};
use std::path::PathBuf;

/// What an argument is called that is the name of a failure group.
pub(super) const FAILGRP: &str = "failgrp";
/// … and of a tier.
pub(super) const TIER: &str = "tier";

#[derive(Debug, Subcommand)]
enum LuVerb {
    /// Make a new LU: a volume of the kind `lu`, which adapters and targets use like any other
    #[command(after_help = "\
Examples:
  trunkline lu create lu0 --pool p0 --size 10GiB
  trunkline lu create db --pool p0 --size 200GiB --thick
  trunkline lu create log --pool p0 --size 20GiB --tier fast
  trunkline lu create ledger --pool safe --size 1TiB --checksums")]
    Create(LuArgs),
    /// List LUs
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show LUs, one or several
    Show(ShowArgs),
    /// Say how an LU lies on the PVs of its pool, which of its chunks lack a copy, move or are copied, what its clients have waited for, what is wrong with it and its pool, since when, and what to do about it
    Explain(NameArg),
    /// Make a new LU of what a snapshot holds: at once, and it takes space only for what is written to it
    #[command(after_help = "\
Examples:
  trunkline lu clone test0 before-upgrade
  trunkline lu clone test1 nightly:db --size 200GiB")]
    Clone {
        #[command(flatten)]
        new: NewArgs,
        /// The snapshot, with `:` and the LU if it is of several
        #[arg(value_name = "SNAPSHOT[:LU]")]
        snapshot: String,
        /// Its size, such as `20GiB`, where it is to be larger than the LU was
        #[arg(long)]
        size: Option<String>,
    },
    /// Let LUs share nothing with snapshots and clones any more: what they share is copied into space of their own while their clients work, and takes that space. The original and its snapshots stay as they are, and can be removed
    #[command(after_help = "\
Examples:
  trunkline lu detach test0
  trunkline lu detach test0 --no-wait
  trunkline operation cancel 12")]
    Detach(DetachArgs),
    /// Let an LU hold what a file holds, raw or qcow2, and zeros behind that; what was in it is gone. With --pool the LU is made first, as large as what the file holds
    #[command(after_help = "\
Examples:
  trunkline lu import lu0 /srv/images/debian.raw
  trunkline lu import guest7 /srv/images/debian.qcow2 --pool p0
  trunkline lu import lu0 /srv/images/debian.raw --no-wait")]
    Import(ImportArgs),
    /// Let a new file hold what an LU holds, or a snapshot of it, with holes where there are zeros
    #[command(after_help = "\
Examples:
  trunkline lu export lu0 /srv/images/lu0.raw --snapshot nightly
  trunkline lu export lu0 /srv/images/lu0.qcow2 --snapshot nightly --format qcow2")]
    Export(ExportArgs),
    /// Change the size of an LU; running guests see it at once
    #[command(after_help = "\
Examples:
  trunkline lu resize lu0 20GiB
  trunkline lu resize lu0 5GiB --shrink")]
    Resize(ResizeArgs),
    /// Let an LU go to another tier of its pool, while its clients work: what it has moves there by itself, which `pool show` tells
    #[command(after_help = "\
Examples:
  trunkline lu move lu0 fast")]
    Move {
        /// The LU
        #[arg(value_name = "NAME")]
        name: String,
        /// The tier
        tier: String,
        #[command(flatten)]
        how: How,
    },
    /// Remove LUs, with what is in them
    #[command(visible_alias = "rm")]
    Remove(RemoveArgs),
    /// Let an LU that is nobody's be a volume, with what is in it, by the number that `pool show` has
    #[command(after_help = "\
Examples:
  trunkline lu adopt p0 7 db")]
    Adopt {
        /// The storage pool
        pool: String,
        /// Its number
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        number: u32,
        /// The name that it gets
        name: String,
        /// The size that it had, if that was no multiple of 64 MiB: a pool knows no other
        #[arg(long)]
        size: Option<String>,
        #[command(flatten)]
        how: How,
    },
    /// Remove LUs that are nobody's, with what is in them, by the numbers that `pool show` has
    #[command(after_help = "\
Examples:
  trunkline lu purge p0 7")]
    Purge {
        /// The storage pool
        pool: String,
        /// Their numbers
        #[arg(required = true, value_name = "NUMBER")]
        numbers: Vec<u32>,
        /// Say what would change, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
}

/// What is detached, or scrubbed.
#[derive(Debug, Args)]
pub(crate) struct DetachArgs {
    /// Names
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not wait until it is done: print the number of the operation
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// A pool that is opened.
#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// Its name
    pub(crate) name: String,
    /// Open it also where a whole failure group is missing that may have gone on elsewhere without the PVs that are there. What it answered since is lost; if it did, it does not return
    #[arg(long)]
    pub(crate) force: bool,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// How a file keeps what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImageFormat {
    /// As it is
    Raw,
    /// As QEMU does; `qemu-img` converts
    Qcow2,
}

impl From<ImageFormat> for Format {
    fn from(format: ImageFormat) -> Format {
        match format {
            ImageFormat::Raw => Format::Raw,
            ImageFormat::Qcow2 => Format::Qcow2,
        }
    }
}

/// What comes from a file.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The LU
    pub(crate) name: String,
    /// The file, which the server reads
    pub(crate) file: PathBuf,
    /// How it keeps what it holds; else that is seen
    #[arg(long)]
    pub(crate) format: Option<ImageFormat>,
    /// Make the LU first, cut from this storage pool
    #[arg(long, value_name = "POOL")]
    pub(crate) pool: Option<String>,
    /// Of a new LU: set all of its space aside now
    #[arg(long, requires = "pool")]
    pub(crate) thick: bool,
    /// Of a new LU: the tier of the pool that it is cut from
    #[arg(long, value_name = "TIER", requires = "pool")]
    pub(crate) tier: Option<String>,
    #[command(flatten)]
    pub(crate) how: How,
}

/// What goes into a file.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The LU
    pub(crate) name: String,
    /// The file, which the server makes: nothing may be there
    pub(crate) file: PathBuf,
    /// A snapshot of the LU, rather than the LU as it is
    #[arg(long, value_name = "SNAPSHOT")]
    pub(crate) snapshot: Option<String>,
    /// How it keeps what it holds; else raw
    #[arg(long)]
    pub(crate) format: Option<ImageFormat>,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, Args)]
struct LuArgs {
    #[command(flatten)]
    new: NewArgs,
    /// The storage pool that it is cut from
    #[arg(long, value_name = "POOL")]
    pool: String,
    /// Its size
    #[arg(long, value_name = "SIZE")]
    size: String,
    /// Set all of its space aside now, instead of taking it as it is written
    #[arg(long)]
    thick: bool,
    /// Keep a checksum of each 4 KiB, and hold what is read against it; in a pool with a mirror, and without snapshots
    #[arg(long)]
    checksums: bool,
    /// The tier of the pool that it is cut from; else the pool's default tier
    #[arg(long, value_name = "TIER")]
    tier: Option<String>,
}

#[derive(Debug, Subcommand)]
enum PvVerb {
    /// List the PVs of all storage pools: their failure groups, and how they stand
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Add PVs to a pool: disks or files that hold nothing. What is in the pool spreads over them by itself
    #[command(after_help = "\
Examples:
  trunkline pv add p0 /dev/sdc
  trunkline pv add p0 /srv/pv2 /srv/pv3
  trunkline pv add p0 /dev/sde --failgrp Mirror
  trunkline pv add p0 /dev/nvme1n1 --tier fast")]
    Add(AddArgs),
    /// Remove PVs from a pool: what is on them moves to the others first, while clients work, which `pv list` shows. Added again before that is over, they stay
    #[command(
        visible_alias = "rm",
        after_help = "\
Examples:
  trunkline pv remove p0 /dev/sdb"
    )]
    Remove(PvArgs),
    /// Put a PV in the place of another, and in its failure group and tier: it is added, and what is on the other moves away
    #[command(after_help = "\
Examples:
  trunkline pv replace p0 /dev/sdb /dev/sdd")]
    Replace {
        /// The storage pool
        pool: String,
        /// The PV that leaves
        old: String,
        /// The one that comes
        new: String,
        #[command(flatten)]
        how: How,
    },
    /// Use all that is on the PVs of a pool whose disks or files were made larger, while clients work; what waits for space goes on. When a pool is opened that is done by itself
    #[command(after_help = "\
Examples:
  trunkline pv grow p0")]
    Grow {
        /// The storage pool
        pool: String,
    },
    /// Say what is wrong with a PV, since when, and what to do about it
    #[command(after_help = "\
Examples:
  trunkline pv explain p0 /dev/sdb")]
    Explain {
        /// The storage pool
        pool: String,
        /// The PV
        #[arg(value_name = "PATH")]
        pv: String,
    },
}

#[derive(Debug, Subcommand)]
enum FailgrpVerb {
    /// List the failure groups of all storage pools, and how they stand
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show a failure group with its PVs
    #[command(after_help = "\
Examples:
  trunkline failgrp show p0 Mirror")]
    Show {
        /// The storage pool
        pool: String,
        /// The failure group
        failgrp: String,
    },
    /// Make the second failure group of a pool, of PVs that hold nothing: only of a pool that was never open; other pools keep the failure groups that they were made with
    #[command(after_help = "\
Examples:
  trunkline failgrp create p0 Mirror /dev/sdd /dev/sde")]
    Create {
        /// The storage pool
        pool: String,
        /// Its name
        #[arg(value_name = "FAILGRP")]
        group: String,
        /// Paths of its PVs
        #[arg(required = true, value_name = "PATH")]
        pvs: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Give a failure group another name
    #[command(after_help = "\
Examples:
  trunkline failgrp rename p0 Mirror north")]
    Rename {
        /// The storage pool
        pool: String,
        /// The failure group
        failgrp: String,
        /// Its new name
        #[arg(value_name = "NEW")]
        to: String,
        #[command(flatten)]
        how: How,
    },
    /// Remove the second failure group of a pool: only of a pool that was never open
    #[command(visible_alias = "rm")]
    Remove {
        /// The storage pool
        pool: String,
        /// The failure group
        failgrp: String,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Debug, Subcommand)]
enum TierVerb {
    /// List the tiers of all storage pools, and how full they are
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show a tier with its PVs and LUs
    #[command(after_help = "\
Examples:
  trunkline tier show p0 fast")]
    Show {
        /// The storage pool
        pool: String,
        /// The tier
        tier: String,
    },
    /// Make another tier in a pool, of PVs that hold nothing, up to ten; LUs are in one tier or another
    #[command(after_help = "\
Examples:
  trunkline tier create p0 fast /dev/nvme0n1 /dev/nvme1n1
  trunkline tier create safe fast /dev/nvme0n1 --mirror /dev/nvme1n1")]
    Create {
        /// The storage pool
        pool: String,
        /// Its name
        #[arg(value_name = "TIER")]
        new: String,
        /// Paths of its PVs
        #[arg(required = true, value_name = "PATH")]
        pvs: Vec<String>,
        /// Of a mirrored pool: paths of its PVs in the second failure group, separated by commas
        #[arg(long, value_name = "PATH,…")]
        mirror: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Give a tier another name
    #[command(after_help = "\
Examples:
  trunkline tier rename p0 SYSTEM base")]
    Rename {
        /// The storage pool
        pool: String,
        /// The tier
        tier: String,
        /// Its new name
        #[arg(value_name = "NEW")]
        to: String,
        #[command(flatten)]
        how: How,
    },
    /// Let new LUs be in a tier for which none is said
    #[command(after_help = "\
Examples:
  trunkline tier default p0 fast")]
    Default {
        /// The storage pool
        pool: String,
        /// The tier
        tier: String,
        #[command(flatten)]
        how: How,
    },
    /// Remove a tier in which there is no LU, with its PVs
    #[command(visible_alias = "rm")]
    Remove {
        /// The storage pool
        pool: String,
        /// The tier
        tier: String,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Debug, Args)]
struct AddArgs {
    #[command(flatten)]
    which: PvArgs,
    /// The failure group to which they are added, of a mirrored pool
    #[arg(long, value_name = "FAILGRP")]
    failgrp: Option<String>,
    /// The tier to which they are added, if it is not the first
    #[arg(long, value_name = "TIER")]
    tier: Option<String>,
}

#[derive(Debug, Args)]
struct PvArgs {
    /// The storage pool
    pool: String,
    /// Paths of the PVs
    #[arg(required = true, value_name = "PATH")]
    pvs: Vec<String>,
    #[command(flatten)]
    how: How,
}

/// The nouns that are none of the table's.
pub(super) fn commands() -> [Command; 4] {
    let noun = |name: &'static str, about: &'static str| {
        Command::new(name).about(about).subcommand_required(true).arg_required_else_help(true)
    };
    [
        LuVerb::augment_subcommands(noun("lu", "LUs: volumes that are cut from storage pools")),
        PvVerb::augment_subcommands(noun("pv", "PVs: the disks and files of storage pools")),
        TierVerb::augment_subcommands(noun(
            "tier",
            "Tiers: the PVs of a storage pool that are of one kind, fast ones and others",
        )),
        FailgrpVerb::augment_subcommands(noun(
            "failgrp",
            "Failure groups: the PVs of a storage pool that have one copy of what is in its LUs",
        )),
    ]
}

pub(super) fn has(name: &str) -> bool {
    ["lu", "pv", "tier", "failgrp"].contains(&name)
}

/// What such a command means.
pub(super) fn read(noun: &str, matches: &ArgMatches) -> Result<ObjectCommand, Error> {
    let (object, verb) = if noun == "pv" {
        let verb = match PvVerb::from_arg_matches(matches)? {
            PvVerb::List(ListArgs { filters }) => Verb::Pvs(filters),
            PvVerb::Add(AddArgs { which: PvArgs { pool, pvs, how }, failgrp, tier }) => {
                Verb::ChangeGroups(pool, Act::Add(pvs, failgrp, tier), how)
            }
            PvVerb::Remove(PvArgs { pool, pvs, how }) => {
                Verb::ChangeGroups(pool, Act::Remove(pvs), how)
            }
            PvVerb::Replace { pool, old, new, how } => {
                Verb::ChangeGroups(pool, Act::Replace(old, new), how)
            }
            PvVerb::Grow { pool } => Verb::GrowPvs(pool),
            PvVerb::Explain { pool, pv } => Verb::ExplainPool(pool, Some(pv)),
        };
        (Object::Pool, verb)
    } else if noun == "tier" {
        let verb = match TierVerb::from_arg_matches(matches)? {
            TierVerb::List(ListArgs { filters }) => Verb::Tiers(filters),
            TierVerb::Show { pool, tier } => Verb::Tier(pool, tier),
            TierVerb::Create { pool, new, pvs, mirror, how } => {
                Verb::ChangeGroups(pool, Act::CreateTier(new, [pvs, mirror]), how)
            }
            TierVerb::Rename { pool, tier, to, how } => {
                Verb::ChangeGroups(pool, Act::RenameTier(tier, to), how)
            }
            TierVerb::Default { pool, tier, how } => {
                Verb::ChangeGroups(pool, Act::DefaultTier(tier), how)
            }
            TierVerb::Remove { pool, tier, how } => {
                Verb::ChangeGroups(pool, Act::DropTier(tier), how)
            }
        };
        (Object::Pool, verb)
    } else if noun == "failgrp" {
        let verb = match FailgrpVerb::from_arg_matches(matches)? {
            FailgrpVerb::List(ListArgs { filters }) => Verb::Failgrps(filters),
            FailgrpVerb::Show { pool, failgrp } => Verb::Failgrp(pool, failgrp),
            FailgrpVerb::Create { pool, group, pvs, how } => {
                Verb::ChangeGroups(pool, Act::Create(group, pvs), how)
            }
            FailgrpVerb::Rename { pool, failgrp, to, how } => {
                Verb::ChangeGroups(pool, Act::Rename(failgrp, to), how)
            }
            FailgrpVerb::Remove { pool, failgrp, how } => {
                Verb::ChangeGroups(pool, Act::Drop(failgrp), how)
            }
        };
        (Object::Pool, verb)
    } else {
        let verb = match LuVerb::from_arg_matches(matches)? {
            LuVerb::Create(args) => create(args),
            LuVerb::List(mut args) => {
                args.filters.push(filter::kind(VolumeKind::Lu.word()));
                Verb::List(args)
            }
            LuVerb::Show(args) => Verb::Show(args),
            LuVerb::Explain(NameArg { name }) => Verb::ExplainLu(name),
            LuVerb::Clone { new, snapshot, size } => Verb::CloneLu(new, snapshot, size),
            LuVerb::Detach(args) => Verb::DetachLus(args),
            LuVerb::Import(args) => Verb::ImportLu(Box::new(args)),
            LuVerb::Export(args) => Verb::ExportLu(Box::new(args)),
            LuVerb::Resize(args) => Verb::Volume(VolumeVerb::Resize(args)),
            LuVerb::Move { name, tier, how } => Verb::MoveLu(name, tier, how),
            LuVerb::Remove(args) => Verb::Remove(args),
            LuVerb::Adopt { pool, number, name, size, how } => {
                adopt(&pool, number, size, NewArgs { name, how })
            }
            LuVerb::Purge { pool, numbers, dry_run } => Verb::PurgeLus(pool, numbers, dry_run),
        };
        (Object::Volume, verb)
    };
    Ok(ObjectCommand { object, verb })
}

fn adopt(pool: &str, number: u32, size: Option<String>, new: NewArgs) -> Verb {
    let text = |value: &str| Value::Text(value.to_owned());
    let named = [
        (attr::volume::KIND.name, text(VolumeKind::Lu.word())),
        (attr::volume::POOL.name, text(pool)),
        (attr::volume::NUMBER.name, Value::Number(number.into())),
    ];
    let size = size.map(|size| (attr::volume::SIZE.name, text(&size)));
    let attributes = named.into_iter().chain(size).map(|(name, value)| (name.to_owned(), value));
    Verb::Create(new, attributes.collect())
}

fn create(LuArgs { new, pool, size, thick, checksums, tier }: LuArgs) -> Verb {
    Verb::Create(new, attributes(&pool, &size, (thick, checksums), tier.as_deref()))
}

/// The attributes of a new LU.
pub(crate) fn attributes(
    pool: &str,
    size: &str,
    (thick, checksums): (bool, bool),
    tier: Option<&str>,
) -> Attributes {
    let mut attributes = Attributes::new();
    let text = |value: &str| Value::Text(value.to_owned());
    let named = [
        (attr::volume::KIND.name, text(VolumeKind::Lu.word())),
        (attr::volume::POOL.name, text(pool)),
        (attr::volume::SIZE.name, text(size)),
    ];
    attributes.extend(named.map(|(name, value)| (name.to_owned(), value)));
    if let Some(tier) = tier {
        attributes.insert(attr::volume::TIER.name.to_owned(), text(tier));
    }
    if thick {
        attributes.insert(attr::volume::THICK.name.to_owned(), Value::Switch(true));
    }
    if checksums {
        attributes.insert(attr::volume::CHECKSUMS.name.to_owned(), Value::Switch(true));
    }
    attributes
}
