//! Nouns of virtual Fibre Channel and virtual SCSI.

use super::attributes::{
    MaskOptions, MediumOptions, PortOptions, TargetOptions, VtdOptions, ZoneOptions,
};
use super::{EditArgs, How, NameArg, NewArgs, RemoveArgs};
use clap::{Args, Subcommand, ValueEnum};

/// What every noun has.
#[derive(Debug, Subcommand)]
pub(crate) enum ObjectCommand<O: Args> {
    /// Make one
    Create {
        #[command(flatten)]
        object: NewArgs,
        #[command(flatten)]
        options: O,
    },
    /// List all
    List,
    /// Show one
    Show(NameArg),
    /// Change attributes
    Set {
        #[command(flatten)]
        object: EditArgs,
        #[command(flatten)]
        options: O,
    },
    /// Remove some
    Remove(RemoveArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum PortCommand {
    #[command(flatten)]
    Object(ObjectCommand<PortOptions>),
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
    /// Take adapters off their ports; their clients see no targets
    Unmap(RemoveArgs),
    /// Show who is logged in where, and with which WWPN
    Logins,
    /// Show which adapters use their port most, per second
    #[command(after_help = "\
Examples:
  trunkline port top fcs0
  trunkline port top --by waits --seconds 10")]
    Top(TopArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Only the adapters on this port
    pub(crate) port: Option<String>,
    /// How long to watch before each print
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) seconds: u64,
    /// How often to print
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: u64,
    /// What makes one adapter more than another
    #[arg(long, value_enum, default_value_t = TopBy::Bytes, value_name = "WHAT")]
    pub(crate) by: TopBy,
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
pub(crate) enum TargetCommand {
    #[command(flatten)]
    Object(ObjectCommand<TargetOptions>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ZoneCommand {
    #[command(flatten)]
    Object(ObjectCommand<ZoneOptions>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum MaskCommand {
    #[command(flatten)]
    Object(ObjectCommand<MaskOptions>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum VtdCommand {
    #[command(flatten)]
    Object(ObjectCommand<VtdOptions>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum MediaCommand {
    #[command(flatten)]
    Object(ObjectCommand<MediumOptions>),
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
        drive: String,
        #[command(flatten)]
        how: How,
    },
    /// Take media out of drives
    Unload(RemoveArgs),
}
