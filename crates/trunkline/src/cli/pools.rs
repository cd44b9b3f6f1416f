//! The commands of LUs and PVs: an LU is a volume of the kind `lu`, and a PV is a part of its pool, so neither is an object of its own.

use super::objects::{ObjectCommand, Verb};
use super::{ListArgs, NewArgs, RemoveArgs, ShowArgs};
use crate::commands::filter;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use fabric::attribute::words::VolumeKind;
use fabric::attribute::{Attributes, Object, Value, attr};

#[derive(Debug, Subcommand)]
enum LuVerb {
    /// Make a new LU: a volume of the kind `lu`, which adapters and targets use like any other
    #[command(after_help = "\
Examples:
  trunkline lu create lu0 --pool p0 --size 10GiB
  trunkline lu create db --pool p0 --size 200GiB --thick")]
    Create(LuArgs),
    /// List LUs
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Show LUs, one or several
    Show(ShowArgs),
    /// Remove LUs, with what is in them
    #[command(visible_alias = "rm")]
    Remove(RemoveArgs),
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
}

#[derive(Debug, Subcommand)]
enum PvVerb {
    /// List the PVs of all storage pools
    #[command(visible_alias = "ls")]
    List(ListArgs),
}

/// The nouns that are none of the table's.
pub(super) fn commands() -> [Command; 2] {
    let noun = |name: &'static str, about: &'static str| {
        Command::new(name).about(about).subcommand_required(true).arg_required_else_help(true)
    };
    [
        LuVerb::augment_subcommands(noun("lu", "LUs: volumes that are cut from storage pools")),
        PvVerb::augment_subcommands(noun("pv", "PVs: the disks and files of storage pools")),
    ]
}

pub(super) fn has(name: &str) -> bool {
    ["lu", "pv"].contains(&name)
}

/// What such a command means.
pub(super) fn read(noun: &str, matches: &ArgMatches) -> Result<ObjectCommand, Error> {
    let (object, verb) = if noun == "pv" {
        let PvVerb::List(ListArgs { filters }) = PvVerb::from_arg_matches(matches)?;
        (Object::Pool, Verb::Pvs(filters))
    } else {
        let verb = match LuVerb::from_arg_matches(matches)? {
            LuVerb::Create(args) => create(args),
            LuVerb::List(mut args) => {
                args.filters.push(filter::kind(VolumeKind::Lu.word()));
                Verb::List(args)
            }
            LuVerb::Show(args) => Verb::Show(args),
            LuVerb::Remove(args) => Verb::Remove(args),
        };
        (Object::Volume, verb)
    };
    Ok(ObjectCommand { object, verb })
}

fn create(LuArgs { new, pool, size, thick }: LuArgs) -> Verb {
    let mut attributes = Attributes::new();
    let text = |value: &str| Value::Text(value.to_owned());
    let named = [
        (attr::volume::KIND.name, text(VolumeKind::Lu.word())),
        (attr::volume::POOL.name, text(&pool)),
        (attr::volume::SIZE.name, text(&size)),
    ];
    attributes.extend(named.map(|(name, value)| (name.to_owned(), value)));
    if thick {
        attributes.insert(attr::volume::THICK.name.to_owned(), Value::Switch(true));
    }
    Verb::Create(new, attributes)
}
